//! `mu-check fmt` over all models and formulas of the project, and of the folder in
//! `MU_CHECK_MODELS`: only white space changes, the tree is equal, and formatting is idempotent.

use crate::support::{package, reference_models};
use mu_check::syntax::format::{FormatOptions, format, is_same};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn files() -> Vec<PathBuf> {
    reference_models(&["mcrl2", "spec", "mcf"])
}

#[test]
fn all_files() {
    let files = files();
    assert!(files.len() > 25, "{}", files.len());
    for path in files {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        for width in [120, 40] {
            let once = format(&text, FormatOptions { width });
            assert!(is_same(&text, &once), "{} at {width}", path.display());
            assert_eq!(
                once,
                format(&once, FormatOptions { width }),
                "{} at {width}",
                path.display()
            );
        }
    }
}

fn run(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    // The command may end before it reads.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.mcrl2");
    let name = file.display().to_string();
    std::fs::write(&file, "act a;\ninit  a;").unwrap();
    assert_eq!(run(&["fmt", "--check", &name], ""), (1, format!("{name}\n"), String::new()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "act a;\ninit  a;");
    assert_eq!(run(&["fmt", &name], "").0, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "act a;\ninit a;\n");
    assert_eq!(run(&["fmt", "--check", &name], ""), (0, String::new(), String::new()));
    assert_eq!(run(&["fmt", "--stdin"], "[ a ]false"), (0, "[a]false\n".into(), String::new()));
    // `=` of `whr` is no comparison of a Murphi model.
    let whr = "[a && val(x whr x = true end)]false\n";
    assert_eq!(run(&["fmt", "--stdin"], whr), (0, whr.into(), String::new()));
    assert_eq!(run(&["fmt", "--stdin", "--check", "--format", "json"], "[ a ]false").0, 1);
    let (code, out, error) = run(&["fmt", "--stdin"], "act a;\ninit a b;");
    assert!(
        code == 2 && out.is_empty() && error.contains("standard input:2:8: error: unexpected `b`"),
        "{code} {out} {error}"
    );
    assert_eq!(run(&["fmt"], "").0, 2);
    let (code, _, error) = run(&["fmt", &package("specs/cubicle/spinlock.cub")], "");
    assert!(code == 2 && error.contains("error: "), "{error}");
}
