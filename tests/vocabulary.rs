//! Vocabulary of names, comments, and documents: banned words, first words of doc comments, and
//! lines of at most 100 columns (CONTRIBUTING.md, `docs/glossary.md`).
//!
//! In: Rust sources and Markdown files of the project. A folder that still has findings stands in
//! `REMAINING` with their number, which may only fall.

use super::read;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with findings and how many they may have. Lower a number when a folder gets better;
/// remove the row at zero.
const REMAINING: &[(&str, usize)] = &[("src/cli", 10)];

/// Words that no name, comment, or document contains.
const BANNED: [&str; 8] =
    ["told", "tell", "tells", "telling", "asked", "whose", "beside", "besides"];

/// Words that are no name of a function: neither an action nor its result. `write_rows` and `rows`
/// are names, `written` is not.
const FUNCTIONS: &str = "abstracted alternating assuming beginning bounded buffered checked \
                         compared confirmed conforming continuing counting deciding differing \
                         discarding drawn enclosing ended ending entered enumerating exceeded \
                         excluding explored extended failed failing fitting folding found given \
                         held holding interrupted joined judged keeping kept limited listed \
                         loaded locked made masked meeting merged merging met named negated \
                         normalised numbered occurring opaque opening ordered ordering others \
                         parsed preferring promoted proved quantified reaching reading refined \
                         refused renamed renaming renumbered said sampled searched settled \
                         sharing shown stored stuck taken terminating touched typed typing \
                         unbounded unfollowed waiting widened written";

/// Words that no doc comment begins with.
const FIRST: [&str; 8] = ["What", "Whose", "Whether", "Which", "How", "Why", "So", "Who"];

const COLUMNS: usize = 100;

/// Where code, comments, and literals begin and end in a Rust source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Code,
    Comment,
    Literal,
}

/// Returns the part to which each character of a source belongs.
fn parts(text: &[char]) -> Vec<Part> {
    let mut out = Vec::with_capacity(text.len());
    let at = |i: usize| text.get(i).copied().unwrap_or('\n');
    let mut i = 0;
    while i < text.len() {
        let start = i;
        let part = match at(i) {
            '/' if at(i + 1) == '/' => {
                i += text[i..].iter().position(|c| *c == '\n').unwrap_or(text.len() - i);
                Part::Comment
            }
            '/' if at(i + 1) == '*' => {
                let (mut depth, mut end) = (1, i + 2);
                while depth > 0 && end < text.len() {
                    match (at(end), at(end + 1)) {
                        ('*', '/') => (depth, end) = (depth - 1, end + 2),
                        ('/', '*') => (depth, end) = (depth + 1, end + 2),
                        _ => end += 1,
                    }
                }
                i = end.min(text.len());
                Part::Comment
            }
            // A raw string ends at a quote with as many hashes.
            'r' if (at(i + 1) == '"' || at(i + 1) == '#')
                && !(i > 0 && (at(i - 1).is_alphanumeric() && at(i - 1) != 'b')) =>
            {
                let hashes = text[i + 1..].iter().take_while(|c| **c == '#').count();
                if at(i + 1 + hashes) == '"' {
                    let mut end = i + 2 + hashes;
                    while end < text.len()
                        && !(at(end) == '"'
                            && text[end + 1..].iter().take(hashes).filter(|c| **c == '#').count()
                                == hashes)
                    {
                        end += 1;
                    }
                    i = (end + 1 + hashes).min(text.len());
                    Part::Literal
                } else {
                    i += 1;
                    Part::Code
                }
            }
            '"' => {
                let mut end = i + 1;
                while end < text.len() && at(end) != '"' {
                    end += if at(end) == '\\' { 2 } else { 1 };
                }
                i = (end + 1).min(text.len());
                Part::Literal
            }
            // A character; a lifetime has no quote after its first letter.
            '\'' if at(i + 1) == '\\' => {
                let mut end = i + 3;
                while end < text.len() && at(end) != '\'' {
                    end += 1;
                }
                i = (end + 1).min(text.len());
                Part::Literal
            }
            '\'' if at(i + 2) == '\'' => {
                i += 3;
                Part::Literal
            }
            _ => {
                i += 1;
                Part::Code
            }
        };
        out.extend(std::iter::repeat_n(part, i - start));
    }
    out
}

/// Returns the words of a text in lower case; `_` and capitals separate words in `names`.
fn words(text: &str, names: bool) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut last = ' ';
    for c in text.chars() {
        let separates = !c.is_alphanumeric() && (names || c != '_');
        if separates || (names && c.is_uppercase() && last.is_lowercase()) {
            out.push(String::new());
        }
        if !separates {
            out.last_mut().unwrap().extend(c.to_lowercase());
        }
        last = c;
    }
    out.retain(|w| !w.is_empty());
    out
}

/// Returns the banned words of a text, `so many` included.
fn banned_words(words: &[String]) -> Vec<String> {
    let mut out: Vec<String> =
        words.iter().filter(|w| BANNED.contains(&w.as_str())).cloned().collect();
    let pairs = words.windows(2).filter(|pair| pair[0] == "so" && pair[1] == "many");
    out.extend(pairs.map(|_| "so many".to_string()));
    out
}

/// Returns the text without `code` between back quotes.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// Findings in a Rust source: line and description.
fn findings_in_source(text: &str) -> Vec<(usize, String)> {
    let chars: Vec<char> = text.chars().collect();
    let parts = parts(&chars);
    let mut out = Vec::new();
    let (mut start, mut previous_is_doc, mut inside_block) = (0, false, false);
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let length = line.chars().count();
        let of = |part: Part| -> String {
            (start..start + length).filter(|i| parts[*i] == part).map(|i| chars[i]).collect()
        };
        let (code, comment) = (of(Part::Code), of(Part::Comment));
        start += length + if chars.get(start + length) == Some(&'\r') { 2 } else { 1 };
        let is_comment = !comment.is_empty() && code.trim().is_empty();
        let doc = ["///", "//!"].iter().find_map(|s| comment.trim_start().strip_prefix(s));
        // Blocks of code and tables cannot be broken.
        let text = comment.trim_start().trim_start_matches(['/', '!']).trim_start();
        inside_block = is_comment && inside_block != text.starts_with("```");
        let free = inside_block || text.starts_with('|') || comment.contains("://");
        if is_comment && length > COLUMNS && !free {
            out.push((number, format!("{length} columns")));
        }
        if let Some(doc) = doc.filter(|_| is_comment && !previous_is_doc) {
            let first = doc.split_whitespace().next().unwrap_or_default();
            let first = first.trim_end_matches(|c: char| !c.is_alphanumeric());
            if FIRST.contains(&first) {
                out.push((number, format!("a doc comment begins with `{first}`")));
            }
        }
        previous_is_doc = doc.is_some() && is_comment;
        for word in banned_words(&words(&without_code(&comment), false)) {
            out.push((number, format!("`{word}` in a comment")));
        }
        let tokens: Vec<&str> = code
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|t| !t.is_empty())
            .collect();
        for pair in tokens.windows(2) {
            let declares = ["fn", "struct", "enum", "trait", "type", "mod", "const", "static"];
            if declares.contains(&pair[0]) {
                for word in banned_words(&words(pair[1], true)) {
                    out.push((number, format!("`{word}` in the name `{}`", pair[1])));
                }
            }
            if pair[0] == "fn" && FUNCTIONS.split(' ').any(|w| w == pair[1]) {
                out.push((number, format!("a function has the name `{}`", pair[1])));
            }
        }
    }
    out
}

/// Findings in a Markdown file: line and description.
fn findings_in_document(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        }
        if inside || line.trim_start().starts_with("```") {
            continue;
        }
        let length = line.chars().count();
        let free =
            line.trim_start().starts_with('|') || line.contains("](") || line.contains("://");
        // Code of more than a line's length cannot be broken.
        let code = line.split('`').skip(1).step_by(2).map(|c| c.chars().count()).max();
        if length > COLUMNS && !free && code.unwrap_or(0) < COLUMNS / 2 {
            out.push((number + 1, format!("{length} columns")));
        }
        for word in banned_words(&words(&without_code(line), false)) {
            out.push((number + 1, format!("`{word}`")));
        }
    }
    out
}

/// Returns all files of the project with an extension, without those that tools fetch or write.
fn project_files(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(Path::new(super::ROOT).join(&folder)).unwrap();
        for entry in entries.map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            if entry.file_type().unwrap().is_dir() {
                if !name.starts_with('.')
                    && !["target", "node_modules", "site"].contains(&name.as_str())
                {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Returns the folder of `REMAINING` to which a file belongs: a layer, or a folder at the top.
fn folder_of(file: &Path) -> String {
    let parts: Vec<String> = file.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    match &parts[..] {
        [src, layer, _, ..] if src == "src" => format!("src/{layer}"),
        [folder, _, ..] => folder.clone(),
        _ => ".".into(),
    }
}

#[test]
fn names_comments_and_documents_use_the_vocabulary() {
    let mut by_folder: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |file: &Path, line: usize, what: String| {
        let name = file.to_string_lossy().replace('\\', "/");
        by_folder.entry(folder_of(file)).or_default().push(format!("{name}:{line}: {what}"));
    };
    for file in project_files("rs") {
        for word in banned_words(&words(&file.file_stem().unwrap().to_string_lossy(), true)) {
            add(&file, 1, format!("`{word}` in the name of the file"));
        }
        for (line, what) in findings_in_source(&read(&file)) {
            add(&file, line, what);
        }
    }
    for file in project_files("md") {
        for (line, what) in findings_in_document(&read(&file)) {
            add(&file, line, what);
        }
    }
    let mut wrong = Vec::new();
    for (folder, findings) in &by_folder {
        let allowed = REMAINING.iter().find(|r| r.0 == folder).map_or(0, |r| r.1);
        println!("    (\"{folder}\", {}),", findings.len());
        if findings.len() > allowed {
            wrong.push(format!(
                "{folder}: {} findings, {allowed} are allowed:\n{}",
                findings.len(),
                findings.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn findings_are_found() {
    let source = "//! So it begins.\n\n/// Returns what\n/// Whether is not first.\nfn is_told(x: &'static str) { \
                  let c = '\"'; x(\"asked\", r#\"whose \"#) } // so many\nstruct ToldOnce;\n/// `told`\nlet telling = 1;\nfn written() {}\n";
    let found: Vec<String> =
        findings_in_source(source).iter().map(|(line, what)| format!("{line} {what}")).collect();
    assert_eq!(
        found,
        [
            "1 a doc comment begins with `So`",
            "5 `so many` in a comment",
            "5 `told` in the name `is_told`",
            "6 `told` in the name `ToldOnce`",
            "9 a function has the name `written`"
        ]
    );
    let long = "x".repeat(101);
    let document =
        format!("It is told.\n`told`\n```text\ntold\n```\n| {long} |\n{long}\n[x](y){long}\n");
    let found: Vec<String> = findings_in_document(&document)
        .iter()
        .map(|(line, what)| format!("{line} {what}"))
        .collect();
    assert_eq!(found, ["1 `told`", "7 101 columns"]);
}
