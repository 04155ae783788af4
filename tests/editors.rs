//! The editors as `editors/README.md` sets them up: its lines stand word for word in the editor's own file, and a script opens the tutorial's model, breaks
//! it, sees why, and mends it. `language_server` tests what the server answers; this tests that whoever copies the page gets as far as that.
//!
//! Each test costs a second, and says that it is skipped where the editor is not installed.

use crate::support::package;
use std::path::Path;
use std::process::{Command, Stdio};

/// The only block of a language on a page.
fn block(page: &str, language: &str) -> String {
    let text = std::fs::read_to_string(package(page)).unwrap();
    let head = format!("\n```{language}\n");
    let mut blocks = text.split(&head).skip(1).map(|rest| rest.split("\n```").next().unwrap().to_string() + "\n");
    let found = blocks.next().unwrap_or_else(|| panic!("{page} has no block of {language}"));
    assert_eq!(blocks.next(), None, "{page} has two blocks of {language}");
    found
}

/// A file of the tutorial.
fn tutorial(name: &str) -> String {
    let text = std::fs::read_to_string(package("docs/tutorial.md")).unwrap();
    let extension = Path::new(name).extension().unwrap().to_str().unwrap();
    let rest = text.split(&format!("\n```{extension} {name}\n")).nth(1).unwrap_or_else(|| panic!("{name} is no file of the tutorial"));
    rest.split("\n```").next().unwrap().to_string() + "\n"
}

/// Runs an editor in a home of its own: `settings` is the file that the page says to write, and what stands in it.
fn edit(program: &str, settings: (&str, &str), arguments: &[&str]) {
    if Command::new(program).arg("--version").output().is_err() {
        println!("skipped: `{program}` is not installed");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let (file, models) = (home.path().join(settings.0), home.path().join("models"));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::create_dir(&models).unwrap();
    std::fs::write(&file, settings.1).unwrap();
    for name in ["banks.mcrl2", "order.mcf"] {
        std::fs::write(models.join(name), tutorial(name)).unwrap();
    }
    let command = Path::new(env!("CARGO_BIN_EXE_mu-check")).parent().unwrap();
    let output = Command::new(program)
        .args(arguments.iter().map(|a| a.replace("{settings}", &file.display().to_string())))
        .env("PATH", format!("{}:{}", command.display(), std::env::var("PATH").unwrap_or_default()))
        .env("HOME", home.path())
        .env("MU_CHECK_FOLDER", &models)
        .env_remove("XDG_CONFIG_HOME")
        .stdin(Stdio::null())
        .output()
        .expect("the editor runs");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {out}{error}");
    match out.lines().find(|l| l.starts_with("skipped")) {
        Some(line) => println!("{line}"),
        None => assert!(out.lines().any(|l| l == "ok"), "{program}: {out}{error}"),
    }
}

#[test]
fn neovim() {
    let script = format!("luafile {}", package("tests/editors/tutorial.lua"));
    edit("nvim", (".config/nvim/init.lua", &block("editors/README.md", "lua")), &["--headless", "-n", "-c", &script]);
}

#[test]
fn emacs() {
    let script = package("tests/editors/tutorial.el");
    edit("emacs", ("init.el", &block("editors/README.md", "elisp")), &["--batch", "-l", "{settings}", "-l", &script]);
}

/// Every path of an extension's description, wherever it stands.
fn paths(value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if text.starts_with("./") => out.push(text[2..].to_string()),
        serde_json::Value::Array(parts) => parts.iter().for_each(|p| paths(p, out)),
        serde_json::Value::Object(parts) => parts.values().for_each(|p| paths(p, out)),
        _ => {}
    }
}

/// What the extension of Visual Studio Code names goes into its package.
#[test]
fn visual_studio_code_packs_what_it_names() {
    let read = |name: &str| std::fs::read_to_string(package(&format!("editors/vscode/{name}"))).unwrap();
    let mut named = Vec::new();
    paths(&serde_json::from_str(&read("package.json")).unwrap(), &mut named);
    assert!(named.iter().any(|n| n == "nested-comments.json"), "{named:?}");
    let ignore = read(".vscodeignore");
    for name in named {
        let folder = name.split_once('/').map_or("", |n| n.0);
        let kept =
            ignore.lines().filter_map(|l| l.strip_prefix('!')).any(|l| l == name || !folder.is_empty() && l == format!("{folder}/*.json"));
        assert!(kept, "{name} is left out of the package");
        assert!(name.starts_with("out/") || Path::new(&package(&format!("editors/vscode/{name}"))).exists(), "{name} is missing");
    }
}
