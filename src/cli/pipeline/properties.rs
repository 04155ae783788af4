//! Formulas of `check`: files, standard input and the command line become named texts, each parsed
//! and type checked separately.
//!
//! A file may contain several properties: a line `%% property NAME` (a comment to other tools)
//! begins a property, which extends to the next such line. Text before the first one belongs to
//! none. Invariant: places in a property are places in its file, because all other text is replaced
//! by blanks.

use crate::pipeline::Session;
use crate::pipeline::load::Loaded;
use mu_base::{Diagnostic, SourceId, Stage};
use mu_data::expr::DataSpec;
use mu_formula::parentheses::{Correction, corrections};
use mu_formula::typecheck::{check_formula, check_over_labels};
use mu_formula::typed::TypedFormula;
use mu_frontends::state_conditions::ConditionedFormula;
use mu_frontends::{FormulaNames, Input};
use mu_process::labels::ActionDecl;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Start of a property in a file with several.
const PROPERTY_HEAD: &str = "%% property ";
/// Maximum length of the name of a formula from the command line, in characters.
const MAX_NAME: usize = 60;

/// A formula before parsing.
pub(crate) struct FormulaText {
    /// Name in results: the file, the file and the property name, or the text.
    pub name: PathBuf,
    /// Name for files about it.
    pub stem: String,
    source: SourceId,
    /// Its text.
    pub text: String,
    /// Number of earlier formulas with the same text: each has its own checkpoints.
    copy: usize,
    /// Conditions on variables of the model, if the formula has some.
    conditions: Option<Arc<Vec<ConditionedFormula>>>,
    /// Names of its model, once that is read.
    model: OnceLock<FormulaNames>,
    /// The error of a file that cannot be read.
    pub unreadable: Option<Diagnostic>,
}

/// Finds the conditions on variables of a model in formulas, and requires that the model shows
/// them. Error: a variable of a condition has no type of the model.
pub(crate) fn find_conditions(
    session: &mut Session,
    model: &Path,
    texts: &mut [FormulaText],
) -> Result<(), Diagnostic> {
    if texts.iter().all(|t| !t.text.contains("val")) {
        return Ok(());
    }
    let input = Input::file(model);
    let front_end = mu_frontends::of(&input);
    let Some(names) = session.with_loading(|loading| front_end.variables(&input, loading))? else {
        return Ok(());
    };
    let (mut formulas, mut count) = (Vec::new(), 0);
    for text in texts.iter() {
        // A text with another error is reported when it is read.
        let found =
            match mu_frontends::state_conditions::find(text.source, &text.text, &names, count) {
                Ok(found) => found,
                Err(error) if error.stage == Stage::Syntax => ConditionedFormula::plain(&text.text),
                Err(error) => return Err(error),
            };
        session.conditions.extend(found.conditions().cloned());
        count += found.conditions().count();
        formulas.push(found);
    }
    if count == 0 {
        return Ok(());
    }
    let all = Arc::new(formulas);
    texts.iter_mut().for_each(|t| t.conditions = Some(all.clone()));
    Ok(())
}

/// Returns the texts of all formulas in the order of the command line, files first. A file that
/// cannot be read is a formula with this error, unless it is the only one. Errors: the only file
/// cannot be read; two properties with the same name in a file.
pub(crate) fn formula_texts(
    session: &mut Session,
    files: &[PathBuf],
    given: &[String],
) -> Result<Vec<FormulaText>, Diagnostic> {
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
            match session.read_source(path) {
                Ok(read) => (path.clone(), read),
                Err(error) => {
                    let error = suggest_option(error, path);
                    if files.len() + given.len() == 1 {
                        return Err(error);
                    }
                    let source = session.sources.add(path.display().to_string(), String::new());
                    let text = FormulaText::new(path.clone(), stem_of(path), source, String::new());
                    texts.push(FormulaText { unreadable: Some(error), ..text });
                    continue;
                }
            }
        };
        let stem = stem_of(&path);
        let parts = split(&text);
        if parts.is_empty() {
            texts.push(FormulaText::new(path, stem, source, text));
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
            texts.push(FormulaText::new(full, format!("{stem}.{name}"), source, part.clone()));
        }
    }
    for (i, text) in given.iter().enumerate() {
        let short: String =
            text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_NAME).collect();
        let more = if short.chars().count() == MAX_NAME { "…" } else { "" };
        let source = session.sources.add(format!("formula {}", i + 1), text.clone());
        let name = format!("{short}{more}").into();
        texts.push(FormulaText::new(name, format!("formula-{}", i + 1), source, text.clone()));
    }
    for at in 0..texts.len() {
        texts[at].copy = texts[..at].iter().filter(|before| before.text == texts[at].text).count();
    }
    Ok(texts)
}

/// Returns the name of a file without its ending.
fn stem_of(path: &Path) -> String {
    path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Adds the option for a formula on the command line to the error about a file that cannot be read,
/// if the name of the file is a formula.
fn suggest_option(error: Diagnostic, path: &Path) -> Diagnostic {
    let text = path.to_string_lossy();
    let symbols = text.contains(['<', '[', '(', '&', '|', '!']);
    let word = ["true", "false"].contains(&&*text);
    if !(symbols || word) || !mu_syntax::is_formula(SourceId::FIRST, &text) {
        return error;
    }
    error.note(format!("a formula on the command line follows `-f`: -f '{text}'"))
}

/// Returns the text of the only formula of a file, with blanks for all other text; `None` if the
/// file has several properties.
pub(crate) fn only_formula(text: &str) -> Option<String> {
    let mut parts = split(text);
    match parts.len() {
        0 => Some(text.to_string()),
        1 => parts.pop().map(|part| part.1),
        _ => None,
    }
}

/// Splits a file into properties, with blanks for all other text; empty if the file has a single
/// formula.
fn split(text: &str) -> Vec<(String, String)> {
    let mut heads: Vec<(usize, usize, String)> = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if let Some(name) = line
            .strip_prefix(PROPERTY_HEAD)
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

/// Parses and type checks a formula over the data and the actions of a model.
pub(crate) fn read(
    text: &FormulaText,
    data: &DataSpec,
    actions: &[ActionDecl],
) -> Result<TypedFormula, Diagnostic> {
    let file = text.parse()?;
    check_formula(&file, data, actions).map_err(|error| {
        match corrections(&text.text, &error, data, actions) {
            Some(all) => {
                let words: Vec<String> = all.iter().map(|c| correction(&text.text, *c)).collect();
                error.note(format!("the formula is well typed with {}", words.join(", and ")))
            }
            None => error,
        }
    })
}

/// Reads a formula over a loaded model. If the model does not declare labels, an unknown label
/// causes a warning, not an error.
pub(crate) fn read_over(
    session: &Session,
    text: &FormulaText,
    subject: &Loaded,
) -> Result<TypedFormula, Diagnostic> {
    if subject.declared || subject.stored.is_none() {
        return read(text, &subject.data, &subject.actions);
    }
    let hint = "`--data MODEL` reads the data types and actions of a specification";
    let with_hint = |error: Diagnostic| match error.message.ends_with("is not declared") {
        true => error.note(hint),
        false => error,
    };
    let checked = check_over_labels(&text.parse()?, &subject.data, &subject.actions);
    let (formula, warnings) = checked.map_err(with_hint)?;
    crate::output::notes::warn(&session.sources, session.common.quiet, &warnings);
    Ok(formula)
}

/// Describes a correction.
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
                .take(MAX_NAME)
                .collect();
            format!("`(` at {} and `)` at {}, around `{line}` …", place(open), place(close))
        }
        Correction::Closes(here, there) => {
            format!("`)` at {} instead of {}", place(here), place(there))
        }
    }
}

impl FormulaText {
    fn new(name: PathBuf, stem: String, source: SourceId, text: String) -> Self {
        let (conditions, model) = (None, OnceLock::new());
        Self { name, stem, source, text, copy: 0, conditions, model, unreadable: None }
    }
    /// Parses the formula; it is about every start state of a model that was recorded.
    pub(crate) fn parse(&self) -> Result<mu_syntax::ast::FormulaFile, Diagnostic> {
        if let Some(error) = &self.unreadable {
            return Err(error.clone());
        }
        let plain = ConditionedFormula::plain(&self.text);
        let all: Vec<&ConditionedFormula> =
            self.conditions.as_ref().map_or_else(|| vec![&plain], |all| all.iter().collect());
        let own = all.iter().find(|f| f.is_of(&self.text));
        let own = own.ok_or_else(|| Diagnostic::internal("a formula without its conditions"))?;
        let unknown = FormulaNames::default();
        self.model.get().unwrap_or(&unknown).parse(own, self.source, &all)
    }
    /// Records the names of the model.
    pub(crate) fn set_model(&self, model: &Loaded) {
        self.model.get_or_init(|| model.names.clone());
    }

    /// Returns the identity of the formula for checkpoints: its text and the way to count
    /// equations.
    pub(crate) fn identity(&self, formula: &TypedFormula) -> String {
        let how = if formula.as_written { "% counted with all parameters\n" } else { "" };
        let copy = if self.copy > 0 { format!("% copy {}\n", self.copy) } else { String::new() };
        format!("{how}{copy}{}", self.text)
    }
}

/// Returns the file name for output about a formula.
pub(crate) fn file_for(path: &Path, stem: &str, several: bool) -> PathBuf {
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
        // Places are those of the file.
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
