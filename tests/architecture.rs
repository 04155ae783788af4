//! Checks of ARCHITECTURE.md and CONTRIBUTING.md: layers and rooms, heads and lengths of files,
//! commands, vocabulary.

#[path = "vocabulary.rs"]
mod vocabulary;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const MOST_LINES: usize = 1_200;
const MOST_LINES_OF_A_FUNCTION: usize = 140;

fn read(path: impl AsRef<Path>) -> String {
    let path = Path::new(ROOT).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns all files with the extension below a folder, relative to the package.
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

/// Returns the layers, in the order in which the library names them.
fn modules() -> Vec<String> {
    read("src/lib.rs")
        .lines()
        .filter_map(|l| Some(l.strip_prefix("pub use mu_")?.split_once(" as ")?.0.to_string()))
        .collect()
}

/// Returns the code of a file without comments and without the first `#[cfg(test)] mod` and the
/// text behind it.
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

/// Returns the layers that a code names.
fn imports(code: &str) -> Vec<String> {
    let names = code
        .match_indices("mu_")
        .filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let mut found: Vec<String> = names
        .map(|(at, _)| {
            code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
        })
        .collect();
    found.dedup();
    found
}

#[test]
fn modules_import_only_modules_above_them() {
    let modules = modules();
    assert!(
        modules.len() > 10 && modules[0] == "base" && modules.last().is_some_and(|m| m == "cli"),
        "{modules:?}"
    );
    let mut wrong = Vec::new();
    for (rank, module) in modules.iter().enumerate() {
        for file in files(&format!("src/{module}"), "rs") {
            let name = file.to_string_lossy().to_string();
            if name.ends_with("tests.rs") || name.contains("/tests/") {
                continue;
            }
            for import in imports(&code(&read(&file))) {
                if modules.iter().position(|m| *m == import).is_some_and(|r| r > rank) {
                    wrong.push(format!(
                        "{name}: `{module}` imports `{import}`, which stands below it in src/lib.rs"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found() {
    let text = "use mu_base::{Span, Stage};\n// mu_no\nlet x = mu_model::new(emu_lation);\n#[cfg(test)]\nmod tests {\n use mu_cli;\n}\n";
    assert_eq!(imports(&code(text)), ["base", "model"]);
}

/// A layer's manifest names layers above it only, and each folder with a manifest is a layer.
#[test]
fn manifests_follow_the_order_of_the_layers() {
    let modules = modules();
    for manifest in files("src", "toml") {
        let layer = manifest.parent().unwrap().file_name().unwrap().to_string_lossy().to_string();
        let rank = modules
            .iter()
            .position(|m| *m == layer)
            .unwrap_or_else(|| panic!("{layer} is not in src/lib.rs"));
        let text = read(&manifest);
        let normal = text.split("\n[dev-dependencies]").next().unwrap();
        for line in normal.lines().filter_map(|l| l.strip_prefix("mu-check-")) {
            let other = line.split(['.', ' ']).next().unwrap();
            let place = modules.iter().position(|m| m == other);
            assert!(
                place.is_some_and(|p| p < rank),
                "`{layer}` depends on `{other}`, which does not stand above it in src/lib.rs"
            );
        }
    }
}

/// Oracles and generators of tests are in a package that is not published and on which only tests
/// depend.
#[test]
fn products_do_not_depend_on_the_testkit() {
    let own = "tests/testkit/Cargo.toml";
    assert!(read(own).contains("\npublish = false\n"));
    let mut users = 0;
    for manifest in files("src", "toml").into_iter().chain([PathBuf::from("Cargo.toml")]) {
        let text = read(&manifest);
        let (normal, tests) = text.split_once("\n[dev-dependencies]").unwrap_or((&text, ""));
        let name = "mu-check-testkit.workspace";
        assert!(!normal.contains(name), "{}: it is for tests only", manifest.display());
        users += usize::from(tests.contains(name));
    }
    assert!(users > 3, "{users}");
}

/// Returns the layers that a layer's manifest names, tests aside.
fn dependencies(layer: &str) -> Vec<String> {
    let text = read(format!("src/{layer}/Cargo.toml"));
    let normal = text.split("\n[dev-dependencies]").next().unwrap();
    normal
        .lines()
        .filter_map(|l| Some(l.strip_prefix("mu-check-")?.split(['.', ' ']).next()?.to_string()))
        .collect()
}

/// Returns the names between backquotes.
fn backquoted_names(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(String::from).collect()
}

/// Returns the rows of the table of ARCHITECTURE.md with this heading, cells trimmed.
fn table(heading: &str) -> Vec<Vec<String>> {
    let text = read("ARCHITECTURE.md");
    let rows: Vec<&str> = text
        .lines()
        .skip_while(|l| *l != heading)
        .skip(2)
        .take_while(|l| l.starts_with('|'))
        .collect();
    assert!(!rows.is_empty(), "no table `{heading}`");
    rows.iter()
        .map(|r| r.trim_matches('|').split('|').map(|c| c.trim().to_string()).collect())
        .collect()
}

/// No layer reaches a layer in its last column of the code map, directly or through other layers.
/// Words for several layers count too.
#[test]
fn layers_do_not_reach_what_they_must_never_know() {
    let modules = modules();
    let words: [(&str, &[&str]); 5] = [
        (
            "all of the rest",
            &["syntax", "data", "process", "lts", "model", "program", "explore", "formula"],
        ),
        ("what a name means", &["data", "process", "formula"]),
        ("formulas", &["formula", "pbes"]),
        ("engines", &["explore", "symbolic", "safety", "prove", "pbes"]),
        ("how states are searched", &["explore", "symbolic"]),
    ];
    let mut checked = 0;
    for row in table("| module | what it holds | what it must never know |") {
        let [layer, _, never] = &row[..] else { panic!("{row:?}") };
        let layer = backquoted_names(layer).remove(0);
        let mut never_known = backquoted_names(never);
        never_known.extend(
            words
                .iter()
                .filter(|w| never.contains(w.0))
                .flat_map(|w| w.1.iter().map(ToString::to_string)),
        );
        let mut reached = dependencies(&layer);
        let mut next = 0;
        while next < reached.len() {
            for further in dependencies(&reached[next]) {
                if !reached.contains(&further) {
                    reached.push(further);
                }
            }
            next += 1;
        }
        for other in never_known {
            assert!(modules.contains(&other), "`{layer}`: `{other}` is no layer");
            assert!(
                !reached.contains(&other),
                "`{layer}` reaches `{other}`, which it must never know"
            );
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

/// Every package names the same minimum version of Rust, which clippy compares with the used
/// functions of the standard library.
#[test]
fn manifests_name_one_minimum_rust_version() {
    let version = |text: &str| {
        text.lines().find_map(|l| Some(l.strip_prefix("rust-version = ")?.to_string()))
    };
    let own = version(&read("Cargo.toml")).expect("the workspace has a minimum version");
    let mut inherited = 0;
    let layers: Vec<String> = modules().iter().map(|layer| format!("src/{layer}")).collect();
    for folder in layers.iter().map(String::as_str).chain(["tests/layers", "tests/testkit"]) {
        let text = read(format!("{folder}/Cargo.toml"));
        inherited += usize::from(text.contains("\nrust-version.workspace = true"));
    }
    assert_eq!(inherited, layers.len() + 2);
    for other in ["python", "web", "fuzz", "concurrency"] {
        let text = read(format!("{other}/Cargo.toml"));
        assert_eq!(version(&text).as_ref(), Some(&own), "{other}");
    }
}

/// The command line has four parts, and forms of modules for browsers: a command is found by
/// its name.
#[test]
fn the_command_line_has_four_parts() {
    let files = files("src/cli", "rs");
    let part = |file: &PathBuf| {
        let rest = file.strip_prefix("src/cli").unwrap();
        rest.components().next().unwrap().as_os_str().to_string_lossy().into_owned()
    };
    let parts: BTreeSet<String> = files.iter().map(part).collect();
    assert_eq!(
        parts.into_iter().collect::<Vec<_>>(),
        ["args", "browser", "commands", "lib.rs", "output", "pipeline"]
    );
}

/// The arguments of `check` become a plan at the entrance: no other file knows their structure.
#[test]
fn only_the_entrance_knows_the_arguments_of_check() {
    let files = files("src/cli", "rs");
    let outside = files.iter().filter(|f| !f.starts_with("src/cli/args"));
    let known: BTreeSet<&Path> = outside
        .filter(|file| code(&read(file)).contains("CheckArgs"))
        .map(|file| file.as_path())
        .collect();
    let entrance = ["check/mod.rs", "check/plan.rs", "explore/plan.rs"];
    let entrance: Vec<PathBuf> =
        entrance.iter().map(|f| Path::new("src/cli/commands").join(f)).collect();
    assert_eq!(known.into_iter().collect::<Vec<_>>(), entrance);
}

/// Files outside `frontends` that name the ending of a model file, with the number of times and the
/// reason. A new front end touches none of them: it is a file or folder in `frontends` and a row of
/// its registry.
const NAMED_ENDINGS: [(&str, usize, &str); 6] = [
    ("src/cli/commands/chance.rs", 2, "a format of probabilistic systems"),
    ("src/cli/pipeline/files.rs", 2, "formats of games"),
    ("src/cli/commands/litmus/mod.rs", 1, "a picture of an execution"),
    ("src/cli/commands/trace/mod.rs", 1, "the output name of a litmus test"),
    ("src/cli/commands/trace/part.rs", 1, "the output name of a litmus test"),
    ("src/cli/commands/trace/picture.rs", 1, "a picture of an execution"),
];

/// The registry alone decides the kind of a model file.
#[test]
fn only_the_registry_knows_the_endings_of_models() {
    let mut endings: Vec<String> = Vec::new();
    for file in
        files("src/frontends", "rs").into_iter().filter(|f| !f.starts_with("src/frontends/tests"))
    {
        let text = code(&read(&file));
        for body in text.split("fn endings(").skip(1) {
            let body = body.split("fn ").next().unwrap();
            endings.extend(body.split('"').skip(1).step_by(2).map(String::from));
        }
    }
    assert!(endings.len() > 15 && endings.iter().all(|e| e.starts_with('.')), "{endings:?}");
    let mut wrong = Vec::new();
    for file in ["cli", "library", "lsp", "report", "studio"]
        .iter()
        .flat_map(|layer| files(&format!("src/{layer}"), "rs"))
    {
        let name = file.to_string_lossy().replace('\\', "/");
        if name.contains("/tests") {
            continue;
        }
        let text = code(&read(&file));
        let named = |line: &str| {
            let is_ending = |e: &String| {
                let (dotted, bare) = (format!("\"{e}\""), format!("\"{}\"", &e[1..]));
                // A bare ending is also the name of a command or a key.
                line.contains(&dotted)
                    || line.contains(&bare) && (line.contains("ends_in(") || line.contains("Some("))
            };
            endings.iter().any(is_ending)
        };
        let count = text.lines().filter(|l| named(l)).count();
        let allowed = NAMED_ENDINGS.iter().find(|n| n.0 == name).map_or(0, |n| n.1);
        if count != allowed {
            wrong.push(format!("{name}: {count} lines name an ending, {allowed} are expected"));
        }
    }
    assert!(wrong.is_empty(), "use `mu_frontends::by_name`:\n{}", wrong.join("\n"));
}

/// Paths of modules that a file names: of other layers `[layer]`, of its own `[layer, module]`.
/// `super` is resolved by where the file is.
fn named_modules(layer: &str, own: &[String], code: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = imports(code).into_iter().map(|l| vec![l]).collect();
    let word = |rest: &str| {
        rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    for (at, _) in code.match_indices("crate::") {
        let first = word(&code[at + 7..]);
        if !first.is_empty() {
            found.push(vec![layer.to_string(), first]);
        }
    }
    for (at, _) in code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("super::"))
    {
        let (mut rest, mut path) = (&code[at..], own.to_vec());
        // An indented import belongs to a module within the file.
        if code[..at].ends_with("    use ") {
            path.push(String::new());
        }
        while let Some(further) = rest.strip_prefix("super::") {
            path.pop();
            rest = further;
        }
        let items: Vec<String> = match rest.strip_prefix('{') {
            // The first words of a list of imports.
            Some(list) => {
                list.split(['}', ';']).next().unwrap().split(',').map(|i| word(i.trim())).collect()
            }
            None => vec![word(rest)],
        };
        for item in items.into_iter().filter(|i| !i.is_empty()) {
            found.push(
                [layer.to_string()].into_iter().chain(path.iter().cloned()).chain([item]).collect(),
            );
        }
    }
    found
}

/// Rooms that stand alone name only the layers, or modules of their own layer, that ARCHITECTURE.md
/// allows.
#[test]
fn rooms_that_stand_alone_name_nothing_else() {
    let rows = table("| room | what it may know |");
    for row in &rows {
        let room = backquoted_names(&row[0]).remove(0);
        let allowed: Vec<Vec<String>> = backquoted_names(row.get(1).map_or("", |c| c))
            .iter()
            .map(|a| a.split("::").map(String::from).collect())
            .collect();
        let path: Vec<String> = room.split("::").map(String::from).collect();
        let layer = &path[0];
        let mut all = files(&format!("src/{}", path.join("/")), "rs");
        let alone = PathBuf::from(format!("src/{}.rs", path.join("/")));
        if Path::new(ROOT).join(&alone).exists() {
            all.push(alone);
        }
        assert!(!all.is_empty(), "there is no module `{room}`");
        for file in all {
            let name = file.to_string_lossy().replace('\\', "/");
            if name.ends_with("tests.rs") || name.contains("/tests/") {
                continue;
            }
            // The file's module, without the layer: `super` leads to what is above it.
            let inside = name
                .trim_start_matches(&format!("src/{layer}/"))
                .trim_end_matches(".rs")
                .trim_end_matches("/mod")
                .to_string();
            let own: Vec<String> = inside.split('/').map(String::from).collect();
            for used in named_modules(layer, &own, &code(&read(&file))) {
                // Items of the room, and names that are no module: types of a parent that is itself
                // allowed.
                let module = |m: &[String]| {
                    let m = m.join("/");
                    Path::new(ROOT).join(format!("src/{m}.rs")).exists()
                        || Path::new(ROOT).join(format!("src/{m}")).is_dir()
                };
                let inner = used.starts_with(&path);
                let of_layer = used.len() == 2 && used[0] == *layer && !module(&used);
                // The layer's own name allows only the items at its top.
                let own_layer = std::slice::from_ref(layer);
                let fits = inner
                    || allowed.iter().any(|a| a != own_layer && used.starts_with(a))
                    || (of_layer && allowed.contains(&vec![layer.clone()]));
                assert!(fits, "{name}: the room `{room}` names `{}`", used.join("::"));
            }
        }
    }
    assert!(rows.len() >= 8, "{} rooms", rows.len());
}

#[test]
fn paths_of_modules_are_found() {
    let own = ["ldd".to_string(), "store".to_string()];
    let text = "use mu_base::ids;\nuse super::{cache::Cache, table};\nuse super::super::helpers;\nuse crate::order::Order;\n";
    let found: Vec<String> =
        named_modules("symbolic", &own, text).iter().map(|p| p.join("::")).collect();
    assert_eq!(
        found,
        [
            "base",
            "symbolic::order",
            "symbolic::ldd::cache",
            "symbolic::ldd::table",
            "symbolic::helpers"
        ]
    );
}

#[test]
fn every_module_is_in_the_code_map_in_order() {
    let text = read("ARCHITECTURE.md");
    let at: Vec<usize> = modules()
        .iter()
        .map(|m| {
            text.find(&format!("\n| `{m}` |"))
                .unwrap_or_else(|| panic!("{m} is not in the code map"))
        })
        .collect();
    assert!(at.is_sorted(), "the code map is not in the order of src/lib.rs");
}

#[test]
fn every_dependency_has_its_reason() {
    let text = read("ARCHITECTURE.md");
    let reasons = &text[text.find("\n## Dependencies").expect("a section on dependencies")..];
    let manifest = read("Cargo.toml");
    let mut inside = false;
    let mut seen = 0;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        } else if let Some((name, _)) =
            line.split_once('=').filter(|(name, _)| inside && !name.starts_with("mu-check"))
        {
            assert!(
                reasons.contains(&format!("`{}`", name.trim())),
                "ARCHITECTURE.md does not say why {} is there",
                name.trim()
            );
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen} dependencies");
    for manifest in files("src", "toml") {
        let text = read(&manifest);
        let lines =
            text.lines().skip_while(|l| *l != "[dependencies]").filter(|l| !l.starts_with('['));
        let own = lines.clone().find(|l| l.contains(" = \"") || l.contains("version ="));
        assert!(own.is_none(), "{}: {own:?} is not from the workspace", manifest.display());
    }
}

#[test]
fn files_open_with_their_purpose_and_stay_short() {
    for file in rust_files() {
        let text = read(&file);
        assert!(text.starts_with("//! "), "{} does not open with `//! `", file.display());
        let lines = text.lines().count();
        assert!(
            lines <= MOST_LINES,
            "{} has {lines} lines, more than {MOST_LINES}: split it",
            file.display()
        );
    }
}

/// Returns the functions of a formatted file: name, first line, number of lines.
fn functions(text: &str) -> Vec<(String, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let words: Vec<&str> = line.split_whitespace().take_while(|w| !w.contains('=')).collect();
        let Some(name) = words.iter().position(|w| *w == "fn").and_then(|at| words.get(at + 1))
        else {
            continue;
        };
        // A signature ends with an opening brace, or with a semicolon in a trait; its end has the
        // indentation of its start.
        let Some(opening) = (i..lines.len()).find(|&j| {
            lines[j].ends_with('{') || lines[j].ends_with(';') || lines[j].ends_with('}')
        }) else {
            continue;
        };
        if !lines[opening].ends_with('{') {
            continue;
        }
        let end = format!("{indent}}}");
        if let Some(last) = (opening..lines.len()).find(|&j| lines[j] == end) {
            let name = name.split(['(', '<']).next().unwrap_or(name);
            found.push((name.to_string(), i + 1, last - i + 1));
        }
    }
    found
}

/// A package is built from its own folder alone when it is published, so it includes nothing from
/// outside of it.
#[test]
fn packages_include_only_files_of_their_own() {
    for file in files("src", "rs")
        .into_iter()
        .filter(|f| !f.iter().any(|part| part.to_string_lossy().contains("tests")))
    {
        let code = code(&read(&file));
        // A file in `src/<layer>/a` may go up once.
        let depth = file.components().count().saturating_sub(3);
        for (at, _) in
            code.match_indices("include_str!(").chain(code.match_indices("include_bytes!("))
        {
            let up = code[at..].lines().next().map_or(0, |line| line.matches("../").count());
            assert!(up <= depth, "{}: includes a file from outside of its package", file.display());
        }
    }
}

#[test]
fn functions_stay_short() {
    let text = "trait T {\n    fn a(&self);\n    fn b(\n        &self,\n    ) -> u32 {\n        1\n    }\n}\nfn c() {}\n";
    assert_eq!(functions(text), [("b".to_string(), 3, 5)]);
    let mut long = Vec::new();
    for path in
        files("src", "rs").into_iter().filter(|p| p.components().all(|c| c.as_os_str() != "tests"))
    {
        let all = functions(&read(&path));
        long.extend(
            all.into_iter()
                .filter(|f| f.2 > MOST_LINES_OF_A_FUNCTION)
                .map(|(name, at, n)| format!("{}:{at}: `{name}` has {n} lines", path.display())),
        );
    }
    assert!(long.is_empty(), "longer than {MOST_LINES_OF_A_FUNCTION} lines:\n{}", long.join("\n"));
}

#[test]
fn no_unsafe_code() {
    // Two calls into the allocator, each with its argument next to it.
    let allowed = |f: &Path| f == Path::new("src/allocator.rs");
    let text = read(Path::new("src/allocator.rs"));
    assert_eq!(
        text.matches("unsafe {").count(),
        text.matches("// SAFETY: ").count(),
        "each unsafe block has its argument"
    );
    // Tests hold texts in languages that have the word.
    for file in files("src", "rs")
        .into_iter()
        .filter(|f| !allowed(f) && !f.components().any(|c| c.as_os_str() == "tests"))
    {
        let text = code(&read(&file));
        assert!(
            !text.lines().any(|l| l.trim_start().starts_with("unsafe ") || l.contains("unsafe {")),
            "{} has unsafe code",
            file.display()
        );
    }
}

/// Product code narrows numbers by `base::narrow` or `try_from`, which check them. A layer has at
/// most the casts listed here, each with the reason why it loses nothing; others have none.
#[test]
fn narrowing_is_checked() {
    const CASTS: [(&str, usize); 5] =
        [("base", 7), ("cli", 1), ("explore", 5), ("game", 3), ("prove", 2)];
    // Layers that do not follow the rule yet.
    const OPEN: [&str; 2] = ["murphi", "zones"];
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let casts = |text: &str| {
        let words = [" as u8", " as u16", " as u32"];
        words.map(|w| text.split(w).skip(1).filter(|rest| ends(rest)).count()).iter().sum::<usize>()
    };
    let is_test =
        |f: &Path| f.components().any(|c| c.as_os_str() == "tests") || f.ends_with("tests.rs");
    let mut seen = 0;
    for layer in modules().into_iter().filter(|l| !OPEN.contains(&l.as_str())) {
        let folder = format!("src/{layer}");
        let product = files(&folder, "rs").into_iter().filter(|f| !is_test(f));
        let found: usize = product.map(|f| casts(&code(&read(&f)))).sum();
        let most = CASTS.iter().find(|c| c.0 == layer).map_or(0, |c| c.1);
        assert!(found <= most, "{folder}: {found} narrowing casts, at most {most} expected");
        seen += found;
    }
    assert!(seen > 0, "no cast was found");
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
        assert!(
            ci.lines().any(|l| l == format!("step {command}")),
            "`{command}` of README.md is not in .ci/run"
        );
    }
}

/// A layer with `test = false` in its manifest has no unit tests: they would never run.
#[test]
fn unit_tests_run() {
    let mut without = 0;
    for manifest in
        files("src", "toml").iter().filter(|m| read(m).lines().any(|l| l == "test = false"))
    {
        without += 1;
        let folder = manifest.parent().unwrap();
        for file in rust_files()
            .iter()
            .filter(|f| f.starts_with(folder) && !f.starts_with(folder.join("tests")))
        {
            assert!(!read(file).contains("#[test]"), "{}: its tests never run", file.display());
        }
    }
    assert!(without > 5, "{without}");
}

/// `cargo test` runs the tests of layers through the package tests/layers, which names every file
/// with tests and every example. The tests of a default member of the workspace run as its own.
#[test]
fn tests_of_layers_run() {
    let own = read("tests/layers/Cargo.toml");
    let named: Vec<String> = files("tests/layers", "rs").iter().map(read).chain([own]).collect();
    let workspace = read("Cargo.toml");
    let members = workspace.lines().find(|l| l.starts_with("default-members = ")).unwrap();
    let (mut inside, mut outside) = (0, 0);
    for layer in modules().into_iter().filter(|l| !members.contains(&format!("\"src/{l}\""))) {
        let folder = format!("src/{layer}");
        let entrances: Vec<PathBuf> = ["tests", "examples"]
            .iter()
            .flat_map(|f| files(&format!("{folder}/{f}"), "rs"))
            .filter(|f| f.components().count() == 4 || f.ends_with("main.rs"))
            .collect();
        outside += entrances.len();
        let has_inner =
            |f: &Path| !f.starts_with(format!("{folder}/tests")) && read(f).contains("#[test]");
        let private = files(&folder, "rs").iter().any(|f| has_inner(f));
        inside += usize::from(private);
        let library = private.then(|| PathBuf::from(format!("{folder}/lib.rs")));
        for file in entrances.into_iter().chain(library) {
            let path = format!("path = \"../../{}\"", file.display());
            let times = named.iter().map(|text| text.matches(&path).count()).sum::<usize>();
            assert_eq!(times, 1, "tests/layers names {} {times} times", file.display());
        }
    }
    assert!(inside > 5 && outside > 50, "{inside} layers with inner tests, {outside} files");
}

/// Removes what formatting may change: white space, and a comma before a closing bracket.
fn without_layout(text: &str) -> String {
    let compact: String = text.split_whitespace().collect();
    [')', ']', '}']
        .iter()
        .fold(compact, |text, close| text.replace(&format!(",{close}"), &close.to_string()))
}

/// The text of each seeded fault occurs in its file exactly once, so that `tests/mutations/run` can
/// apply the fault. Layout does not matter.
#[test]
fn seeded_faults_fit_the_code() {
    let (mut file, mut title, mut faults) = (String::new(), String::new(), 0);
    for line in read("tests/mutations/faults.txt").lines() {
        if let Some(name) = line.strip_prefix("=== ") {
            title = name.to_string();
        } else if line.starts_with("src/") {
            file = without_layout(&read(line));
        } else if let Some(text) = line.strip_prefix("- ") {
            let wanted = without_layout(text);
            assert_eq!(file.matches(wanted.trim_end_matches(',')).count(), 1, "{title}: {text}");
            faults += 1;
        }
    }
    assert!(faults >= 40, "{faults}");
}
