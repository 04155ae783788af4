//! Commands printed in documents and help texts: each runs as printed, in a copy of the
//! folders that commands name.
//!
//! - A block with a name after its language is a file of the reader.
//! - In a `console` block a line that starts with `$ ` is a command for `sh`. The lines below are
//!   its output, errors included; a line `..` stands for any lines. Times, memory, and the sizes of
//!   diagrams are not compared.
//! - A picture `docs/images/NAME.svg` equals a file `NAME.svg` that the commands before it wrote.
//! - Other commands (lines that start with `mu-check`, inline code, examples of help texts) end
//!   with exit code 0, 1, or 3. Commands with placeholders (`MODEL`, `FILE`, …) and those in
//!   `NOT_RUN` are checked for their options only.
//!
//! `MU_CHECK_WRITE=1` writes the outputs and the pictures anew.

use crate::support::package;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands that are checked for their options only: a part of the command, and the reason.
const NOT_RUN: &[(&str, &str)] = &[
    ("cluster run", "starts programs on other hosts"),
    ("--cluster", "needs other hosts"),
    ("--suite", "takes a minute"),
    ("mu-check lsp", "serves until its client leaves"),
    ("mu-check studio", "serves until it is interrupted"),
    ("simulate model.mcrl2 --trace", "a screen in a terminal"),
    ("max_operation_id=any --operations any", "takes a minute"),
    ("max_operation_id=7", "takes minutes"),
    ("max_operation_id=9", "takes minutes"),
    ("max_operation_id=0..=9", "takes minutes"),
    ("max_operation_id=0..=6", "takes minutes"),
    ("max_operation_id=0..=5", "takes minutes"),
    ("max_operation_id=0..=4", "takes minutes"),
    ("max_operation_id=4", "takes seconds of all processors"),
    ("max_operation_id=5", "takes seconds of all processors"),
    ("man -l", "needs the program man"),
    ("tools/memory-model", "needs the sources of the Linux kernel"),
    ("~/", "writes into the home folder"),
];

/// Interactive commands: a screen in a terminal.
fn is_interactive(command: &str) -> bool {
    command.contains("simulate ")
        && !command.contains("--script")
        && !command.contains("--requests")
}

/// Files of a reader that documents and help texts name without defining them.
const FILES: &[(&str, &str)] = &[
    (
        "model.mcrl2",
        "$param cores: Pos = 2;\nact send, receive, internal, error, give, take;\nproc P = send . give . P; Q = take . receive . Q;\ninit allow({send, receive, internal}, comm({give|take -> internal}, P || Q));\n",
    ),
    ("model.m", LOCK),
    ("protocol.m", LOCK),
    ("formula.mcf", "[true*]<true>true\n"),
    ("safety.mcf", "[true*.error]false\n"),
    ("never.mcf", "[true*.unsafe]false\n"),
    ("system.aut", "des (0, 2, 2)\n(0, \"send\", 1)\n(1, \"receive\", 0)\n"),
    ("a.aut", "des (0, 2, 2)\n(0, \"send\", 1)\n(1, \"receive\", 0)\n"),
    ("b.aut", "des (0, 2, 2)\n(0, \"send\", 1)\n(1, \"send\", 0)\n"),
    ("model.aut", "des (0, 2, 2)\n(0, \"send\", 1)\n(1, \"receive\", 0)\n"),
    ("implementation.aut", "des (0, 2, 2)\n(0, \"send\", 1)\n(1, \"internal\", 0)\n"),
    ("specification.aut", "des (0, 1, 1)\n(0, \"send\", 0)\n"),
    ("game.pg", "parity 1;\n0 2 0 1;\n1 1 1 0;\n"),
    ("equations.bes", "pbes nu X = X && Y; mu Y = X || Y; init X;\n"),
    ("system.pbes", "pbes nu X(n: Nat) = val(n < 9) && X((n + 1) mod 3); init X(0);\n"),
    ("commands.txt", "step 1\nstate\nquit\n"),
    ("my.cat", "\"Mine\"\nacyclic po | rf | co | fr as sc\n"),
    ("models/riscv.cat", "\"Mine\"\nacyclic po | rf | co | fr as sc\n"),
    ("hosts", "127.0.0.1:7117\n127.0.0.1:7118\n"),
    ("models/model.mcrl2", "act a;\nproc P = a . P;\ninit P;\n"),
    (
        "riscv-tests/MP.litmus",
        "RISCV MP\n{ 0:x6=x; 0:x8=y; 1:x6=y; 1:x8=x; }\n P0          | P1          ;\n ori x5,x0,1 | lw x5,0(x6) ;\n sw x5,0(x6) | lw x7,0(x8) ;\n sw x5,0(x8) |             ;\nexists (1:x5=1 /\\ 1:x7=0)\n",
    ),
    ("verdicts.tsv", "MP.litmus\t-\t0\n"),
    ("expected.txt", "RWC Sometimes\n"),
];

/// A Murphi model: a lock that one node at a time owns.
const LOCK: &str = "type Node: scalarset(2);
var owner: Node;
startstate undefine owner; end;
ruleset n: Node do rule \"acquire\" isundefined(owner) ==> owner := n; end; end;
rule \"release\" !isundefined(owner) ==> undefine owner; end;
";

/// Commands that prepare files of a reader.
const PREPARATION: &[&str] = &[
    "mu-check new cpu project > /dev/null && cp project/cpu.mcrl2 .",
    "mkdir x86-tests && cp docs/gallery/rwc.litmus x86-tests && cp docs/gallery/rwc.litmus SB.litmus",
    "mu-check explore model.mcrl2 --format json > monday.json; cp monday.json tuesday.json",
    "mu-check sweep model.mcrl2 formula.mcf -D cores=1..=2 --out sweep --quiet > /dev/null",
    "mu-check prove specs/cubicle/naive_mutex.cub --certificate mutex.proof > /dev/null",
    "mu-check conform specs/machines/sc.spec --interface specs/machines/direct.interface -D values=3 --operations any --certificate sc.proof > /dev/null",
    "printf 'random 60\\nsave walk.csv\\n' | mu-check simulate specs/machines/tso.spec --interface specs/machines/machine.interface --script - > /dev/null",
];

/// A copy of the folders that commands name, with a program that notes its exit codes.
struct Scratch {
    folder: tempfile::TempDir,
    bin: tempfile::TempDir,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl Scratch {
    fn new() -> Self {
        let scratch =
            Self { folder: tempfile::tempdir().unwrap(), bin: tempfile::tempdir().unwrap() };
        for folder in ["specs", "formulas", "docs/gallery"] {
            copy(Path::new(&package(folder)), &scratch.path(folder));
        }
        std::fs::create_dir(scratch.path("results")).unwrap();
        std::fs::copy(package("results/published.tsv"), scratch.path("results/published.tsv"))
            .unwrap();
        let program = scratch.bin.path().join("mu-check");
        let codes = scratch.codes_file();
        std::fs::write(
            &program,
            format!(
                "#!/bin/sh\n'{}' \"$@\"\ncode=$?\necho $code >> '{}'\nexit $code\n",
                env!("CARGO_BIN_EXE_mu-check"),
                codes.display()
            ),
        )
        .unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn codes_file(&self) -> PathBuf {
        self.bin.path().join("codes")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes the files of a reader.
    fn with_files_of_a_reader(self) -> Self {
        FILES.iter().for_each(|(name, text)| self.write(name, text));
        for line in PREPARATION {
            let (output, codes) = self.run_strictly(line);
            assert!(codes.iter().all(|c| *c == 0), "{line}: {output}");
        }
        self
    }

    /// Runs a command line; `last` is the exit code before it. Returns output and exit code.
    fn run(&self, line: &str, last: i32) -> (String, i32) {
        let path =
            format!("{}:{}", self.bin.path().display(), std::env::var("PATH").unwrap_or_default());
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; (exit {last}); {line}")])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .stdin(Stdio::null())
            .output()
            .expect("sh runs");
        (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap_or(-1))
    }

    /// Runs a command line. Returns its output and the exit codes of all runs of the program in it.
    fn run_strictly(&self, line: &str) -> (String, Vec<i32>) {
        let _ = std::fs::remove_file(self.codes_file());
        let (output, _) = self.run(line, 0);
        let codes = std::fs::read_to_string(self.codes_file()).unwrap_or_default();
        (output, codes.lines().map(|c| c.parse().unwrap()).collect())
    }

    /// Returns the file with this name that a command wrote, in any folder.
    fn written_file(&self, name: &str) -> Option<PathBuf> {
        let mut folders = vec![self.folder.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.file_name().is_some_and(|n| n == name) {
                    return Some(path);
                }
            }
        }
        None
    }
}

/// Returns a line without the figures that differ from run to run.
fn mask(line: &str) -> String {
    let line = line.trim_end();
    if let Some(word) =
        ["seconds ", "peak memory ", "nodes "].iter().find(|w| line.starts_with(**w))
    {
        return (*word).to_string();
    }
    // Random samples: their number depends on the time of the run.
    if line.starts_with("checked ") {
        return "checked".to_string();
    }
    let fraction = |w: &&str| {
        w.split_once('.').is_some_and(|(a, b)| [a, b].iter().all(|n| n.parse::<u64>().is_ok()))
    };
    let words: Vec<&str> = line.split(' ').collect();
    // In a row of a table the memory follows the seconds.
    let end =
        words.iter().position(|w| fraction(w) && line.starts_with('|')).unwrap_or(words.len());
    words[..end].iter().map(|w| if fraction(w) { "#" } else { *w }).collect::<Vec<_>>().join(" ")
}

#[test]
fn masks() {
    assert_eq!(
        mask("f.mcf: true  [4 equations, 0.012 s]"),
        mask("f.mcf: true  [4 equations, 13.9 s]")
    );
    assert_ne!(
        mask("f.mcf: true  [4 equations, 0.012 s]"),
        mask("f.mcf: true  [5 equations, 0.012 s]")
    );
    assert_eq!(mask("| explore | 2 | 9 | 0.04 | 21 |"), mask("| explore | 2 | 9 | 1.04 | 9 |"));
    assert_ne!(mask("| explore | 2 | 9 | 0.04 | 21 |"), mask("| explore | 2 | 8 | 0.04 | 21 |"));
    assert_eq!(mask("seconds      0.012"), mask("seconds      1.2"));
    assert_ne!(mask("states       3"), mask("states       4"));
}

/// True if the lines are those of the document, in which `..` stands for any lines.
fn matches(lines: &[String], expected: &[String]) -> bool {
    match expected {
        [] => lines.is_empty(),
        [first, rest @ ..] if first == ".." => {
            (0..=lines.len()).any(|skipped| matches(&lines[skipped..], rest))
        }
        [first, rest @ ..] => lines.first() == Some(first) && matches(&lines[1..], rest),
    }
}

#[test]
fn omitted_lines() {
    let lines = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
    assert!(matches(&lines("a b c"), &lines("a .. c")) && matches(&lines("a"), &lines("a ..")));
    assert!(!matches(&lines("a b c"), &lines("a .. b")) && !matches(&lines("a b"), &lines("a")));
}

/// Fenced blocks of a page: words after the fence, number of the first line, lines.
fn blocks(text: &str) -> Vec<(String, usize, Vec<&str>)> {
    let mut out = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        let Some(head) = line.trim_start().strip_prefix("```") else { continue };
        let inside = lines
            .by_ref()
            .map(|(_, l)| l.get(indent..).unwrap_or(l.trim_start()))
            .take_while(|l| *l != "```")
            .collect();
        out.push((head.to_string(), number + 2, inside));
    }
    out
}

/// Splits a `console` block into commands, each with its lines and the output below it.
fn commands_with_output<'a>(block: &'a [&'a str]) -> Vec<(&'a [&'a str], &'a [&'a str])> {
    let mut out = Vec::new();
    let mut rest = block;
    while !rest.is_empty() {
        assert!(rest[0].starts_with("$ "), "`{}` is not a command", rest[0]);
        let length = 1 + rest.iter().take_while(|l| l.ends_with('\\')).count();
        let more = &rest[length..];
        let end = more.iter().position(|l| l.starts_with("$ ")).unwrap_or(more.len());
        out.push((&rest[..length], &more[..end]));
        rest = &more[end..];
    }
    out
}

/// Runs the `console` blocks of a page and compares the outputs; compares its pictures. Returns the
/// numbers of commands, files, and pictures.
fn compare_outputs(page: &str) -> [usize; 3] {
    let text = std::fs::read_to_string(package(page)).unwrap();
    let scratch = Scratch::new();
    let (mut commands, mut files, mut pictures, mut wrong) = (0, 0, 0, Vec::new());
    let (mut anew, mut last) = (text.clone(), 0);
    for (head, _, block) in blocks(&text) {
        // `docs/properties.md` and `docs/language.md` have other words after the language.
        if let Some((_, name)) = head.split_once(' ').filter(|(_, name)| name.contains('.')) {
            files += 1;
            scratch.write(name, &block.iter().map(|l| format!("{l}\n")).collect::<String>());
        }
        if head != "console" {
            continue;
        }
        for (command, expected) in commands_with_output(&block) {
            commands += 1;
            let shown = command.join("\n");
            let (output, code) = scratch.run(&shown[2..], last);
            last = code;
            let mask = |lines: &[&str]| lines.iter().map(|l| mask(l)).collect::<Vec<String>>();
            let printed: Vec<&str> = output.lines().map(str::trim_end).collect();
            if !matches(&mask(&printed), &mask(expected)) {
                let lines =
                    |lines: &[&str]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
                wrong.push(format!(
                    "{shown}\nprints\n{output}\nand {page} has\n{}",
                    lines(expected)
                ));
                anew = anew.replacen(
                    &format!("{shown}\n{}", lines(expected)),
                    &format!("{shown}\n{}", lines(&printed)),
                    1,
                );
            }
        }
    }
    for name in text.split("(docs/images/").skip(1).filter_map(|t| Some(t.split_once(')')?.0)) {
        pictures += 1;
        let drawn =
            scratch.written_file(name).unwrap_or_else(|| panic!("no command writes {name}"));
        let drawn = std::fs::read_to_string(drawn).unwrap();
        let committed = package(&format!("docs/images/{name}"));
        if std::env::var_os("MU_CHECK_WRITE").is_some() {
            std::fs::write(committed, drawn).unwrap();
        } else if std::fs::read_to_string(&committed).unwrap_or_default() != drawn {
            wrong.push(format!("{committed} is not the picture that the commands draw now"));
        }
    }
    if std::env::var_os("MU_CHECK_WRITE").is_some() {
        std::fs::write(package(page), anew).unwrap();
    } else {
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
    [commands, files, pictures]
}

#[cfg(unix)]
#[test]
fn outputs_and_pictures_in_documents() {
    let mut sums = [0; 3];
    for page in pages() {
        for (sum, count) in sums.iter_mut().zip(compare_outputs(&page)) {
            *sum += count;
        }
    }
    let [commands, files, pictures] = sums;
    assert!(
        commands >= 20 && files >= 6 && pictures == 3,
        "{commands} commands, {files} files, {pictures} pictures"
    );
}

/// True if a command has words in place of a reader's own: `MODEL`, `FILE.aut`, `N`, `FORMULA…`.
fn has_placeholders(command: &str) -> bool {
    command.contains('…')
        || command.split([' ', '=', '|', '[', ']']).any(|word| {
            let stem = word.split('.').next().unwrap_or(word);
            (stem.len() > 2 || stem == "N" || stem == "A" || stem == "B")
                && stem != "SB"
                && stem.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        })
}

/// A command in a text, with its place.
struct Printed {
    place: String,
    command: String,
}

/// Returns the commands of a page, without `console` blocks: their outputs are compared.
fn commands_of_page(page: &str) -> Vec<Printed> {
    let text = std::fs::read_to_string(package(page)).unwrap();
    let mut out = Vec::new();
    let mut push = |line: usize, command: &str| {
        out.push(Printed { place: format!("{page}:{line}"), command: command.to_string() });
    };
    for (head, first, block) in blocks(&text) {
        if !["", "sh", "text"].contains(&head.as_str()) {
            continue;
        }
        let mut lines = block.iter().enumerate();
        while let Some((i, line)) = lines.next() {
            let mut command = line.to_string();
            while command.ends_with('\\') {
                command = format!("{}\n{}", command, lines.next().map_or("", |(_, l)| *l));
            }
            if command.starts_with("mu-check ") {
                push(first + i, &command);
            }
        }
    }
    let mut inside = false;
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            for code in line.split('`').skip(1).step_by(2).filter(|c| c.starts_with("mu-check ")) {
                push(i + 1, code);
            }
        }
    }
    out
}

/// Commands of the examples in help texts, as the manual pages have them.
fn commands_of_help(scratch: &Scratch) -> Vec<Printed> {
    let (output, codes) = scratch.run_strictly("mu-check manual --out manual");
    assert_eq!(codes, [0], "{output}");
    let mut out = Vec::new();
    let mut pages: Vec<PathBuf> = std::fs::read_dir(scratch.path("manual"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    pages.sort();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let place = page.file_stem().unwrap().to_string_lossy().into_owned();
        let lines = text.lines().skip_while(|l| !l.starts_with("Example"));
        for line in lines.skip(1).skip_while(|l| *l == ".nf").take_while(|l| l.starts_with("  ")) {
            let command = line.replace("\\*(Aq", "'").replace("\\-", "-").replace("\\e", "\\");
            out.push(Printed { place: place.clone(), command: command.trim().to_string() });
        }
    }
    out
}

/// Checks that each option of a command is one that its help describes.
fn wrong_options(printed: &Printed, help: &mut BTreeMap<String, String>) -> Option<String> {
    for part in printed.command.split("mu-check ").skip(1) {
        let words: Vec<&str> =
            part.split(|c: char| c.is_whitespace() || c == ';').filter(|w| !w.is_empty()).collect();
        let name = words.first().copied().unwrap_or_default();
        let known = name.chars().all(|c| c.is_ascii_lowercase());
        let name = match name {
            "cluster" => "cluster run",
            "help" => continue,
            name if known => name,
            _ => "check",
        };
        let text = help.entry(name.to_string()).or_insert_with(|| {
            let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
                .args(name.split(' '))
                .arg("--help")
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        });
        let options: BTreeSet<&str> = text.split(|c: char| c.is_whitespace() || c == ',').collect();
        let end = words.iter().position(|w| ["|", "||", "&&", "--"].contains(w));
        for word in words[..end.unwrap_or(words.len())].iter().filter(|w| w.starts_with('-')) {
            let option = word.split('=').next().unwrap_or(word);
            if option.len() > 1 && option != "--" && !options.contains(option) {
                return Some(format!(
                    "{}: `{}`: `{name}` has no option {option}",
                    printed.place, printed.command
                ));
            }
        }
    }
    None
}

/// Checks commands in the order of their texts. Returns the problems and the number of commands
/// that ran.
fn check_commands(
    scratch: &Scratch,
    commands: &[Printed],
    used: &mut BTreeSet<&'static str>,
) -> (Vec<String>, usize) {
    let (mut wrong, mut ran, mut help) = (Vec::new(), 0, BTreeMap::new());
    for printed in commands {
        wrong.extend(wrong_options(printed, &mut help));
        let command = &printed.command;
        let reason = NOT_RUN.iter().find(|(part, _)| command.contains(part));
        used.extend(reason.map(|r| r.0));
        if reason.is_some() || has_placeholders(command) || is_interactive(command) {
            continue;
        }
        // A name of a command, in a sentence.
        if command.split_whitespace().count() == 2 && !printed.place.starts_with("mu-check") {
            continue;
        }
        let start = std::time::Instant::now();
        let (output, codes) = scratch.run_strictly(command);
        println!(
            "{:6.2} s  {}: {command}  {codes:?}",
            start.elapsed().as_secs_f64(),
            printed.place
        );
        ran += 1;
        if codes.is_empty() || !codes.iter().all(|code| [0, 1, 3].contains(code)) {
            wrong.push(format!("{}: `{command}`: exit codes {codes:?}\n{output}", printed.place));
        }
    }
    (wrong, ran)
}

/// Returns the checked pages: all documents for users.
fn pages() -> Vec<String> {
    let mut pages = vec![
        "README.md".to_string(),
        "ARCHITECTURE.md".into(),
        "CONTRIBUTING.md".into(),
        "docs/gallery/README.md".into(),
    ];
    let entries = std::fs::read_dir(package("docs")).unwrap();
    pages.extend(
        entries
            .map(|e| e.unwrap().path())
            .filter(|p| p.extension().is_some_and(|e| e == "md"))
            .map(|p| format!("docs/{}", p.file_name().unwrap().to_string_lossy())),
    );
    pages.sort();
    pages
}

#[cfg(unix)]
#[test]
fn commands_of_documents_and_help() {
    let (mut wrong, mut ran, mut used) = (Vec::new(), 0, BTreeSet::new());
    for page in pages() {
        let scratch = Scratch::new().with_files_of_a_reader();
        // The commands of a gallery are relative to it.
        if page == "docs/gallery/README.md" {
            copy(Path::new(&package("docs/gallery")), &scratch.path("."));
        }
        let text = std::fs::read_to_string(package(&page)).unwrap();
        for (head, _, block) in blocks(&text) {
            if let Some((_, name)) = head.split_once(' ').filter(|(_, name)| name.contains('.')) {
                scratch.write(name, &block.iter().map(|l| format!("{l}\n")).collect::<String>());
            }
        }
        let commands = commands_of_page(&page);
        let (problems, count) = check_commands(&scratch, &commands, &mut used);
        wrong.extend(problems);
        ran += count;
    }
    let scratch = Scratch::new().with_files_of_a_reader();
    let (problems, count) = check_commands(&scratch, &commands_of_help(&scratch), &mut used);
    wrong.extend(problems);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ran >= 20 && count >= 40, "{ran} commands of documents, {count} of help texts");
    let unused: Vec<&str> =
        NOT_RUN.iter().map(|r| r.0).filter(|part| !used.contains(part)).collect();
    assert!(unused.is_empty(), "no command contains {unused:?}");
}
