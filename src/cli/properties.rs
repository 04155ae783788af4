//! The formulas of `check`: files, standard input, the command line -> named texts, and each of
//! them parsed and type checked by itself.
//!
//! A file may hold several properties: a line `%% property NAME` (a comment to other tools) begins
//! one, which goes up to the next such line. What stands before the first of them belongs to none.
//! Invariant: places in a property are those of its file, since what is not its own is blanked.

use super::load::Loaded;
use super::pipeline::Session;
use mu_base::{Diagnostic, SourceId, Stage};
use mu_data::expr::DataSpec;
use mu_formula::parentheses::{Correction, corrections};
use mu_formula::typecheck::{check_formula, check_over_labels};
use mu_formula::typed::TypedFormula;
use mu_labels::ActionDecl;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What begins a property in a file of several.
const HEAD: &str = "%% property ";
/// Longest name of a formula that was given on the command line, in characters.
const LONGEST: usize = 60;

/// A formula before it is read.
pub(super) struct Text {
    /// What it is called in results: its file, its file and its own name, or its text.
    pub name: PathBuf,
    /// A name for files about it.
    pub stem: String,
    source: SourceId,
    /// Its text.
    pub text: String,
    /// The number of formulas before it with the same text: each has checkpoints of its own.
    copy: usize,
}

/// The texts of all formulas, in the order of the command line, those of files first. Errors: a
/// file that cannot be read, two properties of one name in a file.
pub(super) fn gather(
    session: &mut Session,
    files: &[PathBuf],
    given: &[String],
) -> Result<Vec<Text>, Diagnostic> {
    let mut texts = Vec::new();
    for path in files {
        let (path, (source, text)) = if path.as_os_str() == "-" {
            let mut text = String::new();
            let read = mu_base::host::input().lock().read_to_string(&mut text);
            read.map_err(|e| {
                Diagnostic::new(
                    Stage::File,
                    format!("cannot read a formula from standard input: {e}"),
                )
            })?;
            let name = PathBuf::from("standard input");
            let text = text.trim_start_matches('\u{feff}').to_string();
            (name, (session.sources.add("standard input", text.clone()), text))
        } else {
            (path.clone(), session.read_source(path)?)
        };
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let parts = split(&text);
        if parts.is_empty() {
            texts.push(Text { name: path, stem, source, text, copy: 0 });
            continue;
        }
        for (i, (name, part)) in parts.iter().enumerate() {
            if parts[..i].iter().any(|p| p.0 == *name) {
                return Err(Diagnostic::new(
                    Stage::Usage,
                    format!("`{}` has two properties `{name}`", path.display()),
                ));
            }
            let full = PathBuf::from(format!("{}#{name}", path.display()));
            texts.push(Text {
                name: full,
                stem: format!("{stem}.{name}"),
                source,
                text: part.clone(),
                copy: 0,
            });
        }
    }
    for (i, text) in given.iter().enumerate() {
        let short: String =
            text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect();
        let more = if short.chars().count() == LONGEST { "…" } else { "" };
        let source = session.sources.add(format!("formula {}", i + 1), text.clone());
        texts.push(Text {
            name: format!("{short}{more}").into(),
            stem: format!("formula-{}", i + 1),
            source,
            text: text.clone(),
            copy: 0,
        });
    }
    for at in 0..texts.len() {
        texts[at].copy = texts[..at].iter().filter(|before| before.text == texts[at].text).count();
    }
    Ok(texts)
}

/// The properties of a file of several, with blanks for all that is not their own; none if it is a
/// file of one.
fn split(text: &str) -> Vec<(String, String)> {
    let mut heads: Vec<(usize, usize, String)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(name) = line
            .strip_prefix(HEAD)
            .map(|n| n.trim().trim_end_matches(':'))
            .filter(|n| !n.is_empty())
        {
            heads.push((at, at + line.len(), name.to_string()));
        }
        at += line.len();
    }
    let blank = |part: &str| {
        part.chars()
            .flat_map(|c| {
                std::iter::repeat_n(
                    if c == '\n' { '\n' } else { ' ' },
                    if c == '\n' { 1 } else { c.len_utf8() },
                )
            })
            .collect::<String>()
    };
    let one = |(i, (_, from, name)): (usize, &(usize, usize, String))| {
        let to = heads.get(i + 1).map_or(text.len(), |h| h.0);
        (
            name.clone(),
            format!("{}{}{}", blank(&text[..*from]), &text[*from..to], blank(&text[to..])),
        )
    };
    heads.iter().enumerate().map(one).collect()
}

/// Reads a formula over the data and the actions of a model.
pub(super) fn read(
    text: &Text,
    data: &DataSpec,
    actions: &[ActionDecl],
) -> Result<TypedFormula, Diagnostic> {
    let file = mu_syntax::parse_formula(text.source, &text.text)?;
    check_formula(&file, data, actions).map_err(|error| {
        match corrections(&text.text, &error, data, actions) {
            Some(all) => {
                let words: Vec<String> = all.iter().map(|c| correction(&text.text, *c)).collect();
                error.note(format!("well typed with {}", words.join(", and ")))
            }
            None => error,
        }
    })
}

/// Reads a formula over a loaded model. Over labels without declarations, a label that does not
/// occur is no error, but a warning.
pub(super) fn read_over(
    session: &Session,
    text: &Text,
    subject: &Loaded,
) -> Result<TypedFormula, Diagnostic> {
    if subject.declared || subject.stored.is_none() {
        return read(text, &subject.data, &subject.actions);
    }
    let (formula, warnings) = check_over_labels(&text.parsed()?, &subject.data, &subject.actions)?;
    super::notes::warn(session, &warnings);
    Ok(formula)
}

/// A correction in words.
fn correction(text: &str, correction: Correction) -> String {
    let place = |at: usize| {
        let before = &text[..at];
        let line = before.rfind('\n').map_or(0, |n| n + 1);
        format!("{}:{}", before.matches('\n').count() + 1, text[line..at].chars().count() + 1)
    };
    match correction {
        Correction::Pair(open, close) => {
            let line: String = text[open..]
                .lines()
                .next()
                .unwrap_or("")
                .trim_end()
                .chars()
                .take(LONGEST)
                .collect();
            format!("`(` at {} and `)` at {}, around `{line}` …", place(open), place(close))
        }
        Correction::Closes(here, there) => {
            format!("`)` at {} instead of {}", place(here), place(there))
        }
    }
}

impl Text {
    /// Its syntax tree.
    pub(super) fn parsed(&self) -> Result<mu_syntax::ast::FormulaFile, Diagnostic> {
        mu_syntax::parse_formula(self.source, &self.text)
    }

    /// What checkpoints of searches for it belong to: its text and how its equations are told
    /// apart.
    pub(super) fn identity(&self, formula: &TypedFormula) -> String {
        let how = if formula.as_written { "% counted with all parameters\n" } else { "" };
        let copy = if self.copy > 0 { format!("% copy {}\n", self.copy) } else { String::new() };
        format!("{how}{copy}{}", self.text)
    }
}

/// What files about a formula are called.
pub(super) fn file_for(path: &Path, stem: &str, several: bool) -> PathBuf {
    match path.extension() {
        Some(ending) if several => path.with_extension(format!(
            "{}.{}",
            stem.replace(['/', '\\'], "_"),
            ending.to_string_lossy()
        )),
        _ => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_several() {
        let text = "% about\n%% property first\ntrue\n%% property second:\n[ä]false\n";
        let parts = split(text);
        assert_eq!(parts.iter().map(|p| p.0.as_str()).collect::<Vec<_>>(), ["first", "second"]);
        // The places are those of the file.
        assert!(
            parts
                .iter()
                .all(|p| p.1.len() == text.len() && p.1.lines().count() == text.lines().count()),
            "{parts:?}"
        );
        assert_eq!((parts[0].1.trim(), parts[1].1.trim()), ("true", "[ä]false"));
        assert_eq!(
            (parts[0].1.find("true"), parts[1].1.find("[ä]")),
            (text.find("true"), text.find("[ä]"))
        );
        assert!(split("% a formula\n[true*]<true>true").is_empty());
    }

    #[test]
    fn names_of_files() {
        assert_eq!(file_for(Path::new("why.svg"), "a", true), Path::new("why.a.svg"));
        assert_eq!(file_for(Path::new("why.svg"), "a", false), Path::new("why.svg"));
    }
}
