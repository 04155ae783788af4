//! Every argument that names a file to read, with a file that is not UTF-8: exit code 2, and the
//! message names this file and the byte.

use crate::support::mu_check;
use std::process::Command;

/// Valid first lines, so that the error is the byte in the second line.
const FIRST: &[u8] = b"% a comment\n";

/// `@` represents the unreadable file, `MODEL` and similar words represent valid files.
const COMMANDS: &[(&str, &str)] = &[
    // Models of every form, by the commands that read them.
    ("m.mcrl2", "explore @"),
    ("m.spec", "explore @"),
    ("m.mcrl2", "check @ -f true"),
    ("m.mcrl2", "linearise @"),
    ("m.mcrl2", "simulate @ --script SCRIPT"),
    ("m.mcrl2", "expand @"),
    ("m.mcrl2", "fmt @"),
    ("m.mcrl2", "eval 1 @"),
    ("m.mcrl2", "sweep @ FORMULA --out sweep"),
    ("m.mcrl2", "compare MODEL @"),
    ("m.mcrl2", "reduce @"),
    ("m.mcrl2", "info @"),
    ("m.mcrl2", "pbes @ FORMULA"),
    ("m.lps", "explore @"),
    ("m.pbes", "solve @"),
    ("m.bes", "solve @"),
    ("m.pg", "solve @"),
    ("m.fsm", "info @"),
    ("m.cub", "prove @"),
    ("m.cub", "explore @"),
    ("m.asm", "program @"),
    ("m.asm", "robust @"),
    ("m.asm", "prove @"),
    ("m.litmus", "litmus @"),
    ("m.litmus", "explore @"),
    // Formulas.
    ("f.mcf", "check MODEL @"),
    ("f.mcf", "fmt @"),
    ("f.mcf", "sweep MODEL @ --out sweep"),
    ("f.mcf", "pbes MODEL @"),
    ("f.mcf", "check MODEL -D n=any @"),
    // Files next to the model.
    ("list.interface", "check MODEL FORMULA --interface @"),
    ("list.interface", "explore MODEL --deadlock --interface @"),
    ("list.interface", "conform MODEL --interface @"),
    ("list.faults", "conform MODEL --interface INTERFACE --fault @"),
    ("d.mcrl2", "check SYSTEM FORMULA --data @"),
    ("c.proof", "verify SAFE @"),
    ("m.cat", "litmus TEST --model @"),
    ("m.cat", "conform MODEL --interface INTERFACE --against @"),
    ("m.views", "conform MODEL --interface INTERFACE --against @"),
    ("expected.tsv", "litmus TEST --expected @"),
    ("@tests.txt", "litmus @"),
    ("script.txt", "simulate MODEL --script @"),
    ("trace.json", "simulate MODEL --trace @ --script SCRIPT"),
    ("result.json", "report @ --out page.html"),
    ("reference.tsv", "sweep MODEL FORMULA --out sweep --reference @"),
    ("sweep.json", "sweep MODEL FORMULA --out ."),
    ("hosts.txt", "check MODEL FORMULA --cluster @ --process 0 --secret SECRET"),
    ("secret.txt", "check MODEL FORMULA --cluster HOSTS --process 0 --secret @"),
];

#[test]
fn bytes_that_are_not_text_are_refused_with_their_place() {
    let mut bad = Vec::new();
    for (name, command) in COMMANDS {
        let folder = tempfile::tempdir().unwrap();
        let file =
            |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        file("good.mcrl2", b"act a; init a;\n");
        file("good.mcf", b"<a>true\n");
        file("good.interface", b"load a\n");
        file(
            "good.cub",
            b"type t = A | B\nvar X : t\ninit () { X = A }\nunsafe () { X = B }\ntransition go () requires { X = A } { X := A }\n",
        );
        file("good.aut", b"des (0,1,2)\n(0,\"a\",1)\n");
        file("good.proof", b"mu-check certificate 1\n");
        file("good.txt", b"moves\n");
        file("good.litmus", b"X86 T\n{ x=0; }\n P0 ;\n MOV [x],$1 ;\nexists (x=1)\n");
        file("secret", &[b'a'; 64]);
        file("hosts", b"127.0.0.1:1\n127.0.0.1:2\n");
        let first = if name.ends_with("fsm") { b"x(2) Nat \"0\" \"1\"\n" } else { FIRST };
        file(name, &[first, b"  \xba\n"].concat());
        let words = command.split(' ').map(|word| match word {
            "@" => (*name).to_string(),
            "MODEL" => "good.mcrl2".into(),
            "FORMULA" => "good.mcf".into(),
            "INTERFACE" => "good.interface".into(),
            "SAFE" => "good.cub".into(),
            "SYSTEM" => "good.aut".into(),
            "SCRIPT" => "good.txt".into(),
            "SECRET" => "secret".into(),
            "HOSTS" => "hosts".into(),
            "TEST" => "good.litmus".into(),
            word => word.to_string(),
        });
        let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        let named = text.lines().any(|l| {
            l.contains(name.trim_start_matches('@')) && (l.contains("0xba") || l.contains("UTF-8"))
        });
        if output.status.code() != Some(2) || !named {
            bad.push(format!("{name}: {command}: {:?}\n{text}", output.status.code()));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// A name that no file has is rejected, also if it is not UTF-8.
#[cfg(unix)]
#[test]
fn arguments_that_are_not_text_are_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let odd = std::ffi::OsStr::from_bytes(b"odd\xe9.mcrl2");
    for command in ["explore", "eval"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_mu-check")).arg(command).arg(odd).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Names of files need not be UTF-8, on any place of the command line.
#[cfg(unix)]
#[test]
fn names_of_files_need_not_be_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = tempfile::tempdir().unwrap();
    let odd = |name: &'static [u8]| OsStr::from_bytes(name);
    std::fs::write(folder.path().join(odd(b"m\xff.mcrl2")), "act a; init a . delta;").unwrap();
    std::fs::write(folder.path().join(odd(b"m\xfe.mcrl2")), "act b; init b . delta;").unwrap();
    std::fs::write(folder.path().join(odd(b"f\xff.mcf")), "<a>true").unwrap();
    let run = |words: &[&OsStr]| {
        Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let (a, b, formula) = (odd(b"m\xff.mcrl2"), odd(b"m\xfe.mcrl2"), odd(b"f\xff.mcf"));
    let text = |word: &'static str| OsStr::new(word);
    for (words, code) in [
        (vec![text("check"), a, formula], 0),
        (vec![text("check"), b, formula], 2),
        (vec![a, formula], 0),
        (vec![text("sweep"), a, formula, text("--out=sweep")], 0),
        (vec![text("check"), a, formula, text("--processes"), text("2")], 0),
        (vec![text("explore"), b, text("--out"), odd(b"o\xfe.aut")], 0),
        (vec![text("explore"), a, odd(b"--out=o\xff.aut")], 0),
        (vec![text("compare"), odd(b"o\xff.aut"), a], 0),
        (vec![text("compare"), odd(b"o\xff.aut"), odd(b"o\xfe.aut")], 1),
    ] {
        let output = run(&words);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {errors}");
    }
    assert!(folder.path().join(odd(b"o\xff.aut")).exists());
}

/// A file that cannot be read loses the verdict of no other.
#[test]
fn one_missing_formula_leaves_the_other_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    let model = write("m.mcrl2", "act a; init a;");
    let (good, bad) = (write("good.mcf", "<a>true"), write("bad.mcf", "[a]false"));
    let missing = folder.path().join("missing.mcf").display().to_string();
    let report = folder.path().join("j.xml").display().to_string();
    let outcome = mu_check(&["check", &model, &good, &missing, &bad, "--junit", &report]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("cannot read"), "{}", outcome.stderr);
    let results = outcome.json["results"].as_array().unwrap_or_else(|| panic!("{}", outcome.json));
    let verdicts: Vec<&str> = results.iter().map(|r| r["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["true", "unknown", "false"], "{}", outcome.json);
    let junit = std::fs::read_to_string(&report).unwrap();
    assert_eq!(junit.matches("<error").count(), 1, "{junit}");
    // Alone, it ends the command before the model is read.
    let outcome = mu_check(&["check", &model, &missing]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
}
