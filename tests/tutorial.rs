//! `docs/tutorial.md` is true: its files are written into a folder, its commands are run there, and
//! what they print is what it says.
//!
//! A block with a name after its language is a file; in a `console` block a line that starts with
//! `$ ` is a command for `sh`, and the lines below are its output, errors included. Times, memory
//! and the sizes of diagrams are not compared. `MU_CHECK_WRITE=1` writes the outputs anew.

use std::path::Path;
use std::process::{Command, Stdio};

const TUTORIAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tutorial.md");

/// Runs a command line in a folder; `last` is the exit code before it. Its output and exit code.
fn run(folder: &Path, line: &str, last: i32) -> (String, i32) {
    let program = Path::new(env!("CARGO_BIN_EXE_mu-check")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; (exit {last}); {line}")])
        .current_dir(folder)
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .expect("sh runs");
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap_or(-1))
}

/// A line without what differs from run to run.
fn masked(line: &str) -> String {
    let line = line.trim_end();
    if let Some(word) =
        ["seconds ", "peak memory ", "nodes "].iter().find(|w| line.starts_with(**w))
    {
        return (*word).to_string();
    }
    let fraction = |w: &&str| {
        w.split_once('.').is_some_and(|(a, b)| [a, b].iter().all(|n| n.parse::<u64>().is_ok()))
    };
    let words: Vec<&str> = line.split(' ').collect();
    // In a row of a table memory stands behind the seconds.
    let end =
        words.iter().position(|w| fraction(w) && line.starts_with('|')).unwrap_or(words.len());
    words[..end].iter().map(|w| if fraction(w) { "#" } else { *w }).collect::<Vec<_>>().join(" ")
}

#[test]
fn masks() {
    assert_eq!(
        masked("f.mcf: true  [4 equations, 0.012 s]"),
        masked("f.mcf: true  [4 equations, 13.9 s]")
    );
    assert_ne!(
        masked("f.mcf: true  [4 equations, 0.012 s]"),
        masked("f.mcf: true  [5 equations, 0.012 s]")
    );
    assert_eq!(masked("| explore | 2 | 9 | 0.04 | 21 |"), masked("| explore | 2 | 9 | 1.04 | 9 |"));
    assert_ne!(
        masked("| explore | 2 | 9 | 0.04 | 21 |"),
        masked("| explore | 2 | 8 | 0.04 | 21 |")
    );
    assert_eq!(masked("seconds      0.012"), masked("seconds      1.2"));
    assert_ne!(masked("states       3"), masked("states       4"));
}

#[test]
fn every_command_does_what_is_written() {
    let text = std::fs::read_to_string(TUTORIAL).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut written = String::new();
    let (mut commands, mut files, mut wrong) = (0, 0, Vec::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        written += &format!("{line}\n");
        let Some(head) = line.strip_prefix("```") else { continue };
        let mut block = Vec::new();
        for inner in lines.by_ref().take_while(|l| *l != "```") {
            block.push(inner);
        }
        match head.split_once(' ') {
            Some((_, name)) => {
                files += 1;
                let content = block.iter().map(|l| format!("{l}\n")).collect::<String>();
                std::fs::write(folder.path().join(name), &content).unwrap();
                written += &content;
            }
            None if head == "console" => {
                let mut last = 0;
                let mut rest = &block[..];
                while let [command, more @ ..] = rest {
                    let shown = command
                        .strip_prefix("$ ")
                        .unwrap_or_else(|| panic!("`{command}` is not a command"));
                    let end = more.iter().position(|l| l.starts_with("$ ")).unwrap_or(more.len());
                    let (expected, after) = more.split_at(end);
                    let (output, code) = run(folder.path(), shown, last);
                    let said: Vec<&str> = output.lines().map(str::trim_end).collect();
                    let mask = |lines: &[&str]| lines.iter().map(|l| masked(l)).collect::<Vec<_>>();
                    let same = mask(&said) == mask(expected);
                    if !same {
                        wrong.push(format!(
                            "$ {shown}\nsays\n{output}\nand the tutorial\n{}\n",
                            expected.join("\n")
                        ));
                    }
                    written += &format!("{command}\n");
                    (if same { expected } else { &said[..] })
                        .iter()
                        .for_each(|l| written += &format!("{l}\n"));
                    (last, rest, commands) = (code, after, commands + 1);
                }
            }
            None => block.iter().for_each(|l| written += &format!("{l}\n")),
        }
        written += "```\n";
    }
    if std::env::var_os("MU_CHECK_WRITE").is_some() {
        std::fs::write(TUTORIAL, written).unwrap();
        return;
    }
    assert!(commands >= 12 && files >= 6, "{commands} commands, {files} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(text, written);
}
