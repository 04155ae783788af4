//! Editors configured by `editors/README.md`: its lines are copied word for word into the editor's
//! own file, and a script opens the tutorial's model, breaks it, reads the error, and repairs it.
//! `language_server` tests the answers of the server; this tests the instructions of the page.
//!
//! Each test costs a second, and says that it is skipped where the editor is not installed.

use crate::support::package;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the only block of a language on a page.
fn block(page: &str, language: &str) -> String {
    let text = std::fs::read_to_string(package(page)).unwrap();
    let head = format!("\n```{language}\n");
    let mut blocks = text
        .split(&head)
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap().to_string() + "\n");
    let found = blocks.next().unwrap_or_else(|| panic!("{page} has no block of {language}"));
    assert_eq!(blocks.next(), None, "{page} has two blocks of {language}");
    found
}

/// Returns a file of the tutorial.
fn tutorial(name: &str) -> String {
    let text = std::fs::read_to_string(package("docs/tutorial.md")).unwrap();
    let extension = Path::new(name).extension().unwrap().to_str().unwrap();
    let rest = text
        .split(&format!("\n```{extension} {name}\n"))
        .nth(1)
        .unwrap_or_else(|| panic!("{name} is no file of the tutorial"));
    rest.split("\n```").next().unwrap().to_string() + "\n"
}

/// Runs an editor in a home of its own: `settings` is the file that the page says to write, and
/// what stands in it.
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
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {out}{error}");
    match out.lines().find(|l| l.starts_with("skipped")) {
        Some(line) => println!("{line}"),
        None => assert!(out.lines().any(|l| l == "ok"), "{program}: {out}{error}"),
    }
}

#[test]
fn neovim() {
    let script = format!("luafile {}", package("tests/editors/tutorial.lua"));
    edit(
        "nvim",
        (".config/nvim/init.lua", &block("editors/README.md", "lua")),
        &["--headless", "-n", "-c", &script],
    );
}

#[test]
fn emacs() {
    let script = package("tests/editors/tutorial.el");
    edit(
        "emacs",
        ("init.el", &block("editors/README.md", "elisp")),
        &["--batch", "-l", "{settings}", "-l", &script],
    );
}

/// Every path of an extension's description, wherever it stands.
fn paths(value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if text.starts_with("./") => {
            out.push(text[2..].to_string())
        }
        serde_json::Value::Array(parts) => parts.iter().for_each(|p| paths(p, out)),
        serde_json::Value::Object(parts) => parts.values().for_each(|p| paths(p, out)),
        _ => {}
    }
}

/// The package of the extension of Visual Studio Code has all files that the extension names.
#[test]
fn visual_studio_code_packs_what_it_names() {
    let read =
        |name: &str| std::fs::read_to_string(package(&format!("editors/vscode/{name}"))).unwrap();
    let mut named = Vec::new();
    paths(&serde_json::from_str(&read("package.json")).unwrap(), &mut named);
    assert!(named.iter().any(|n| n == "nested-comments.json"), "{named:?}");
    let ignore = read(".vscodeignore");
    for name in named {
        let folder = name.split_once('/').map_or("", |n| n.0);
        let kept = ignore
            .lines()
            .filter_map(|l| l.strip_prefix('!'))
            .any(|l| l == name || !folder.is_empty() && l == format!("{folder}/*.json"));
        assert!(kept, "{name} is left out of the package");
        assert!(
            name.starts_with("out/")
                || Path::new(&package(&format!("editors/vscode/{name}"))).exists(),
            "{name} is missing"
        );
    }
}

/// The extension of Visual Studio Code has each language of texts that the server knows, by which
/// it starts.
#[test]
fn visual_studio_code_knows_the_languages_of_the_server() {
    let text = std::fs::read_to_string(package("editors/vscode/package.json")).unwrap();
    let description: serde_json::Value = serde_json::from_str(&text).unwrap();
    let languages = description["contributes"]["languages"].as_array().unwrap();
    let named: Vec<&str> = languages
        .iter()
        .flat_map(|l| l["extensions"].as_array().unwrap())
        .map(|e| e.as_str().unwrap())
        .collect();
    let mut known = vec![".mcf"];
    for front_end in mu_check::frontends::registry().iter().filter(|f| f.is_edited()) {
        known.extend(front_end.endings().iter().filter(|e| e.matches('.').count() == 1));
    }
    known.sort_unstable();
    let mut named = named;
    named.sort_unstable();
    assert_eq!(named, known);
}

/// A snippet comes before the word of the language that it begins with, else the word is inserted
/// and the snippet never; and what it inserts can be parsed.
#[test]
fn visual_studio_code_inserts_snippets() {
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_str(
            &std::fs::read_to_string(package(&format!("editors/vscode/{name}"))).unwrap(),
        )
        .unwrap()
    };
    let description = read("package.json");
    let mut parsed = 0;
    for of in description["contributes"]["snippets"].as_array().unwrap() {
        let language = of["language"].as_str().unwrap();
        let defaults =
            &description["contributes"]["configurationDefaults"][format!("[{language}]")];
        assert_eq!(defaults["editor.snippetSuggestions"], "top", "{language}");
        for (name, snippet) in read(of["path"].as_str().unwrap()).as_object().unwrap() {
            // What a placeholder suggests stands in its place; where one goes on typing, `true`.
            let mut text = snippet["body"]
                .as_str()
                .unwrap()
                .replace("$0", if language == "mcf" { "true" } else { "" });
            while let Some(start) = text.find("${") {
                let end = start + text[start..].find('}').unwrap();
                let default = text[start + 2..end].split_once(':').map_or("a", |d| d.1).to_string();
                text.replace_range(start..=end, &default);
            }
            let problem = match language {
                "mcf" if text.starts_with('%') => continue,
                "mcf" => mu_check::syntax::parse_formula(Default::default(), &text).err(),
                _ if !["sort", "proc", "init"].iter().any(|w| text.starts_with(w)) => continue,
                _ => mu_check::syntax::parse_specification(Default::default(), &text).err(),
            };
            assert!(problem.is_none(), "{language}, {name}: {text}: {problem:?}");
            parsed += 1;
        }
    }
    assert!(parsed > 6, "{parsed}");
}

/// A program in a terminal of its own. Dropping it ends the terminal.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Starts a command line in a folder, with a home and with the program of these tests on the
    /// path.
    fn start(command: &str, home: &Path, folder: &Path) -> Self {
        let terminal = Self { socket: home.join("terminal").display().to_string() };
        let program = Path::new(env!("CARGO_BIN_EXE_mu-check")).parent().unwrap();
        let started = terminal
            .command()
            .args(["-f", "/dev/null", "new-session", "-d", "-x", "160", "-y", "40", command])
            .env(
                "PATH",
                format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default()),
            )
            .env("HOME", home)
            .env_remove("XDG_CONFIG_HOME")
            .current_dir(folder)
            .status()
            .unwrap();
        assert!(started.success());
        terminal
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-S", &self.socket]);
        command
    }

    /// Types a text, then a key that has a name.
    fn keys(&self, text: &str, key: Option<&str>) {
        let typed = self.command().args(["send-keys", "-l", text]).status().unwrap();
        let pressed =
            key.is_none_or(|k| self.command().args(["send-keys", k]).status().unwrap().success());
        assert!(typed.success() && pressed);
    }

    /// Waits until what is on the screen passes a test; `again` is done before the first look and
    /// each twentieth.
    fn wait(&self, what: &str, again: impl Fn(), test: impl Fn(&str) -> bool) {
        let begin = std::time::Instant::now();
        for look in 0.. {
            if look % 20 == 0 {
                again();
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            let screen = String::from_utf8_lossy(
                &self.command().args(["capture-pane", "-p"]).output().unwrap().stdout,
            )
            .into_owned();
            if test(&screen) {
                return;
            }
            assert!(begin.elapsed().as_secs() < 120, "timeout: {what}\n{screen}");
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.command().arg("kill-server").output();
    }
}

/// Helix has no mode without a screen: `tmux` gives it one.
#[test]
fn helix() {
    for (program, version) in [("hx", "--version"), ("tmux", "-V")] {
        if Command::new(program).arg(version).output().is_err() {
            println!("skipped: `{program}` is not installed");
            return;
        }
    }
    let home = tempfile::tempdir().unwrap();
    let (settings, models) =
        (home.path().join(".config/helix/languages.toml"), home.path().join("models"));
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::create_dir(&models).unwrap();
    std::fs::write(&settings, block("editors/README.md", "toml")).unwrap();
    for name in ["banks.mcrl2", "order.mcf"] {
        std::fs::write(models.join(name), tutorial(name)).unwrap();
    }
    std::fs::write(
        models.join("parameters.spec"),
        "$param n: Pos = 2;\nact a: Pos;\ninit a(${n});\n",
    )
    .unwrap();
    let good = tutorial("banks.mcrl2");
    let screen = Terminal::start("hx banks.mcrl2", home.path(), &models);
    screen.wait("the model", || (), |s| s.contains("init allow"));
    // Before the server is there, keys can be lost to it. It is when there is an outline. A key
    // right behind Escape would be another key.
    let outline = || {
        screen.keys("", Some("Escape"));
        std::thread::sleep(std::time::Duration::from_millis(500));
        screen.keys(" s", None);
    };
    screen.wait("the outline", outline, |s| s.contains("class") && s.contains("namespace"));
    screen.keys("", Some("Escape"));
    screen.wait("the model again", || (), |s| !s.contains("namespace"));
    screen.keys("/Bank\\(d\\)", Some("Enter"));
    screen.wait("what is found", || (), |s| s.contains(" 2:75"));
    screen.keys("cBnak(d)", None);
    screen.wait("what is typed", || (), |s| s.contains("Bnak(d)") && s.contains("INS"));
    screen.keys("", Some("Escape"));
    screen.wait("an error", || (), |s| s.contains(" NOR ") && s.contains("● 1"));
    // Its message stands at the top right when the cursor is there.
    screen.wait("why", || screen.keys("[d", None), |s| s.contains("similar names: Bank"));
    screen.keys(" a", None);
    screen.wait("the fix", || (), |s| s.contains("replace `Bnak` by `Bank`"));
    screen.keys("", Some("Enter"));
    screen.wait("no error", || (), |s| s.contains("leave(d) . Bank(d);") && !s.contains('●'));
    screen.keys(":write", Some("Enter"));
    let file = || std::fs::read_to_string(models.join("banks.mcrl2")).unwrap();
    screen.wait("the file", || (), |_| file() == good);
    screen.keys(":sh mu-check check banks.mcrl2 order.mcf; true", Some("Enter"));
    screen.wait("the verdict", || (), |s| s.contains("order.mcf: false"));
    screen.keys("", Some("Escape"));
    screen.wait("the model once more", || (), |s| !s.contains("order.mcf: false"));
    // Files of this ending are those of another language where nothing says otherwise.
    screen.keys(":open parameters.spec", Some("Enter"));
    screen.wait("the parameter", || (), |s| s.contains("$param"));
    screen.keys("/\\ba\\b", Some("Enter"));
    screen.keys(" r", None);
    screen.wait("the old name", || (), |s| s.contains("rename-to:a"));
    screen.keys("b", Some("Enter"));
    screen.wait("the new name", || (), |s| s.contains("act ab: Pos") && s.contains("init ab("));
    screen.keys(":quit-all!", Some("Enter"));
}
