//! What ARCHITECTURE.md and CONTRIBUTING.md promise and a program can check: layering, openings of files, their length, commands.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const MOST_LINES: usize = 800;

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files with the extension below a folder, relative to the package.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(ROOT).join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.map(|e| e.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|e| e == extension) {
                found.push(entry.strip_prefix(ROOT).unwrap().to_path_buf());
            }
        }
    }
    found.sort();
    found
}

fn rust_files() -> Vec<PathBuf> {
    ["src", "tests", "benches", "examples"].iter().flat_map(|f| files(f, "rs")).collect()
}

/// The modules of the library, in the order of their declaration.
fn modules() -> Vec<String> {
    read("src/lib.rs").lines().filter_map(|l| Some(l.strip_prefix("pub mod ")?.strip_suffix(';')?.to_string())).collect()
}

/// The code of a file without comments and without what follows the first `#[cfg(test)] mod`.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = lines.peek().map_or("", |l| l.trim_start());
        if line.trim() == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{') {
            break;
        }
        out.push_str(line.split("//").next().unwrap_or(""));
        out.push('\n');
    }
    out
}

/// Names that follow `crate::` in a code, those in `crate::{a::…, b}` included.
fn imports(code: &str) -> Vec<String> {
    let word = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for (at, token) in code.match_indices("crate::") {
        let rest = &code[at + token.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let mut depth = 0usize;
        let mut item = 0;
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => {
                    found.push(word(group[item..i].trim_start()));
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    found.push(word(group[item..i].trim_start()));
                    item = i + 1;
                }
                _ => {}
            }
        }
    }
    found.retain(|f| !f.is_empty());
    found
}

#[test]
fn modules_import_only_modules_above_them() {
    let modules = modules();
    assert!(modules.len() > 10 && modules[0] == "base" && modules.last().is_some_and(|m| m == "cli"), "{modules:?}");
    let mut wrong = Vec::new();
    for (rank, module) in modules.iter().enumerate() {
        for file in files(&format!("src/{module}"), "rs") {
            let name = file.to_string_lossy().to_string();
            if name.ends_with("tests.rs") || name.contains("/tests/") {
                continue;
            }
            for import in imports(&code(&read(&file))) {
                if modules.iter().position(|m| *m == import).is_some_and(|r| r > rank) {
                    wrong.push(format!("{name}: `{module}` imports `{import}`, which stands below it in src/lib.rs"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found() {
    let text = "use crate::base::{Span, Stage};\nuse crate::{data::{A, B}, lts, process::spec};\n// crate::no\nlet x = crate::model::new();\n#[cfg(test)]\nmod tests {\n use crate::cli;\n}\n";
    assert_eq!(imports(&code(text)), ["base", "data", "lts", "process", "model"]);
}

#[test]
fn every_module_is_in_the_code_map_in_order() {
    let text = read("ARCHITECTURE.md");
    let at: Vec<usize> =
        modules().iter().map(|m| text.find(&format!("\n| `{m}` |")).unwrap_or_else(|| panic!("{m} is not in the code map"))).collect();
    assert!(at.is_sorted(), "the code map is not in the order of src/lib.rs");
}

#[test]
fn every_dependency_has_its_reason() {
    let text = read("ARCHITECTURE.md");
    let reasons = &text[text.find("\n## Dependencies").expect("a section on dependencies")..];
    let manifest = read("Cargo.toml");
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]" || line == "[dev-dependencies]";
        } else if let Some((name, _)) = line.split_once('=').filter(|_| inside) {
            assert!(reasons.contains(&format!("`{}`", name.trim())), "ARCHITECTURE.md does not say why {} is there", name.trim());
        }
    }
}

#[test]
fn files_open_with_their_purpose_and_stay_short() {
    for file in rust_files() {
        let text = read(&file);
        assert!(text.starts_with("//! "), "{} does not open with `//! `", file.display());
        let lines = text.lines().count();
        assert!(lines <= MOST_LINES, "{} has {lines} lines, more than {MOST_LINES}: split it", file.display());
    }
}

#[test]
fn no_unsafe_code() {
    for file in files("src", "rs") {
        let text = code(&read(&file));
        assert!(
            !text.lines().any(|l| l.trim_start().starts_with("unsafe ") || l.contains("unsafe {")),
            "{} has unsafe code",
            file.display()
        );
    }
}

#[test]
fn the_commands_of_the_readme_run_in_ci() {
    let readme = read("README.md");
    let ci = read(".ci/run");
    let mut commands = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```sh" => inside = true,
            "```" => inside = false,
            _ if inside => commands.push(line),
            _ => {}
        }
    }
    assert!(commands.len() >= 2, "the README has {} commands", commands.len());
    for command in commands {
        assert!(ci.lines().any(|l| l == format!("step {command}")), "`{command}` of README.md is not in .ci/run");
    }
}

/// The text of each seeded fault stands in its file once, so that `tests/mutations/run` can put the fault there.
#[test]
fn seeded_faults_fit_the_code() {
    let (mut file, mut title, mut faults) = (String::new(), String::new(), 0);
    for line in read("tests/mutations/faults.txt").lines() {
        if let Some(name) = line.strip_prefix("=== ") {
            title = name.to_string();
        } else if line.starts_with("src/") {
            file = read(line);
        } else if let Some(text) = line.strip_prefix("- ") {
            assert_eq!(file.matches(text).count(), 1, "{title}: {text}");
            faults += 1;
        }
    }
    assert!(faults >= 40, "{faults}");
}
