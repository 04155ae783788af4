//! Workspace: open documents, files on disk, and the assignment of formulas to specifications.
//!
//! The model of a formula is the first of the following that exists. (1) The file that a comment
//! `% model: FILE` in the formula names, relative to the formula. (2) The file that the client's
//! setting `model` names, relative to the workspace folder. (3) The nearest specification on which
//! the formula has no error. (4) The nearest specification that declares most of its actions.
//! Distance is measured by folders: first the folder of the formula, then the folders below its
//! parent, and so on up to the workspace folder. The choice stays until another specification
//! matches and this one does not, so that a mistyped name is an error and does not change the
//! model.
//!
//! Analyses are cached by text.

use crate::analysis::Analysis;
use crate::document::OpenDocument;
use crate::foreign::lexicon_of;
use crate::names::Key;
use mu_base::{ends_in, file_extension};
use mu_frontends::mcrl2::MCRL2;
use mu_frontends::{EditResult, EditedText, FrontEnd as _, Input};
use mu_syntax::tokens::{self, TokenKind};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Access to files, supplied by the program that starts the server.
pub trait Files {
    /// Returns the text of a file.
    fn read(&self, path: &Path) -> Option<String>;
    /// Lists a folder; the flag is true for folders.
    fn list(&self, folder: &Path) -> Vec<(PathBuf, bool)>;
}

/// Limit on the files of a workspace; further ones are ignored.
const MAX_FILES: usize = 2_000;
/// Limit on the specifications that are tried for a formula.
const MAX_MODELS: usize = 200;

/// The analysis of a file, as long as its text and its model do not change.
struct KnownFile {
    analysis: Rc<Analysis>,
    /// The analysis of the model that it was analysed with.
    model: Option<Rc<Analysis>>,
    /// See [`Workspace::complete`], once computed.
    complete: Option<Rc<Analysis>>,
}

/// Files and their analyses.
pub(crate) struct Workspace<'f> {
    files: &'f dyn Files,
    pub(crate) roots: Vec<PathBuf>,
    /// The setting `model`.
    pub(crate) model: Option<String>,
    pub(crate) open: BTreeMap<PathBuf, OpenDocument>,
    known: RefCell<HashMap<PathBuf, KnownFile>>,
    /// The model that was found for a formula without a comment or a setting that names one.
    chosen: RefCell<HashMap<PathBuf, PathBuf>>,
}

/// True if the file's name is that of a specification.
pub(crate) fn is_specification(path: &Path) -> bool {
    MCRL2.has_ending(path)
}
/// True if the file's name is that of a formula.
pub(crate) fn is_formula(path: &Path) -> bool {
    ends_in(path, "mcf")
}

impl<'f> Workspace<'f> {
    pub(crate) fn new(files: &'f dyn Files) -> Self {
        Self {
            files,
            roots: Vec::new(),
            model: None,
            open: BTreeMap::new(),
            known: RefCell::default(),
            chosen: RefCell::default(),
        }
    }

    /// Returns the text of a file: as edited, otherwise as on disk; `None` if it cannot be read.
    pub(crate) fn text(&self, path: &Path) -> Option<String> {
        self.open.get(path).map(|o| o.text.clone()).or_else(|| self.files.read(path))
    }

    /// Returns the address of a file, as the client writes it if the file is open.
    pub(crate) fn uri(&self, path: &Path) -> String {
        self.open.get(path).map_or_else(|| uri_of(path), |o| o.uri.clone())
    }

    /// Returns the analysis of a file; `None` if it cannot be read.
    pub(crate) fn analysis(&self, path: &Path) -> Option<Rc<Analysis>> {
        let text = self.text(path)?;
        let formula = self.reads_as_formula(path, &text);
        let model =
            if formula { self.model_of(path).and_then(|m| self.analysis(&m)) } else { None };
        if let Some(known) = self.known.borrow().get(path)
            && known.analysis.text == text
            && known.analysis.formula == formula
            && known
                .analysis
                .included
                .iter()
                .all(|(file, text)| self.text(file).is_none_or(|now| now == *text))
            && is_same_analysis(known.model.as_ref(), model.as_ref())
        {
            return Some(known.analysis.clone());
        }
        let foreign = lexicon_of(path);
        let analysis = Rc::new(if let Some(lexicon) = foreign {
            Analysis::of_foreign(path, &text, lexicon, self.read_foreign(path, &text, &[]))
        } else if formula {
            Analysis::of_formula(&text, model.as_deref())
        } else {
            Analysis::of_specification(&text)
        });
        self.known.borrow_mut().insert(
            path.to_path_buf(),
            KnownFile { analysis: analysis.clone(), model, complete: None },
        );
        Some(analysis)
    }

    /// Checks a text of another front end; other files have their edited text, or the text in
    /// `instead`.
    pub(crate) fn read_foreign(
        &self,
        path: &Path,
        text: &str,
        instead: &[(PathBuf, String)],
    ) -> Option<EditResult> {
        let folder = path.parent()?;
        let sibling = |name: &str| {
            let file = normal(&folder.join(name));
            instead.iter().find(|i| i.0 == file).map(|i| i.1.clone()).or_else(|| self.text(&file))
        };
        let front_end = mu_frontends::of(&Input::text_named(path, text));
        Some(front_end.check_edit(&EditedText { path, text, sibling: &sibling }))
    }

    /// Returns the files of a folder with the same front end as a file in it.
    pub(crate) fn like(&self, path: &Path) -> Vec<PathBuf> {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let on_disk = self.files.list(&folder).into_iter().filter(|e| !e.1).map(|e| e.0);
        let open = self.open.keys().filter(|p| p.parent() == Some(&folder)).cloned();
        let mut found: Vec<PathBuf> =
            on_disk.chain(open).filter(|p| file_extension(p) == file_extension(path)).collect();
        found.sort();
        found.dedup();
        found.truncate(MAX_FILES);
        found
    }

    /// Returns the analysis including the names of parts that are left out by default; `None` if
    /// the file cannot be read.
    pub(crate) fn complete(&self, path: &Path) -> Option<Rc<Analysis>> {
        let analysis = self.analysis(path)?;
        if analysis.formula || analysis.lexicon.is_some() {
            return Some(analysis);
        }
        if let Some(complete) = self.known.borrow().get(path).and_then(|k| k.complete.clone()) {
            return Some(complete);
        }
        let mut complete = Analysis::of_specification(&analysis.text);
        complete.complete();
        let complete = Rc::new(complete);
        self.known
            .borrow_mut()
            .entry(path.to_path_buf())
            .and_modify(|k| k.complete = Some(complete.clone()));
        Some(complete)
    }

    /// True if a document is a formula: by its name, otherwise by its text.
    fn reads_as_formula(&self, path: &Path, text: &str) -> bool {
        is_formula(path)
            || lexicon_of(path).is_none()
                && !is_specification(path)
                && tokens::is_formula(text, &tokens::tokens(text))
    }

    /// True if a file exists and is not a formula, so that it may be a model.
    pub(crate) fn is_model(&self, path: &Path) -> bool {
        lexicon_of(path).is_none()
            && self.text(path).is_some_and(|text| !self.reads_as_formula(path, &text))
    }

    /// Removes the analysis of a file.
    pub(crate) fn forget(&self, path: &Path) {
        self.known.borrow_mut().remove(path);
    }

    /// Returns the model that a comment of a formula names, with the place of the name.
    pub(crate) fn named_model(
        &self,
        path: &Path,
        text: &str,
    ) -> Option<(PathBuf, std::ops::Range<usize>)> {
        let comments =
            tokens::tokens(text).into_iter().take_while(|t| t.kind == TokenKind::Comment);
        for token in comments {
            let comment = token.text(text);
            if let Some(name) = comment.trim_start_matches('%').trim_start().strip_prefix("model:")
            {
                let name = name.trim();
                let start = token.range.end - name.len();
                return Some((normal(&path.parent()?.join(name)), start..token.range.end));
            }
        }
        None
    }

    /// Returns the specification that a formula belongs to; `None` if none is found.
    pub(crate) fn model_of(&self, path: &Path) -> Option<PathBuf> {
        let text = self.text(path)?;
        if let Some((named, _)) = self.named_model(path, &text) {
            return self.is_model(&named).then_some(named);
        }
        if let Some(setting) = &self.model {
            let found =
                self.roots.iter().map(|r| normal(&r.join(setting))).find(|p| self.is_model(p));
            if found.is_some() {
                return found;
            }
        }
        let alone = Analysis::of_formula(&text, None);
        let chosen = self.chosen.borrow().get(path).cloned();
        let chosen = chosen.filter(|c| self.text(c).is_some());
        if let Some(chosen) = &chosen
            && self.declared_actions(&alone, chosen) > 0
        {
            return Some(chosen.clone());
        }
        let found = self.best_model(path, &alone).or(chosen);
        match &found {
            Some(found) => self.chosen.borrow_mut().insert(path.to_path_buf(), found.clone()),
            None => self.chosen.borrow_mut().remove(path),
        };
        found
    }

    /// Returns the nearest specification with which a formula has no error; otherwise the one that
    /// declares most of its actions.
    fn best_model(&self, path: &Path, alone: &Analysis) -> Option<PathBuf> {
        let mut models: Vec<PathBuf> =
            self.files_around(path).into_iter().filter(|p| is_specification(p)).collect();
        models.sort_by_key(|m| (distance(path, m), m.clone()));
        models.truncate(MAX_MODELS);
        let mut best: Option<(usize, PathBuf)> = None;
        for model in models {
            let actions = self.declared_actions(alone, &model);
            let Some(analysis) = self.analysis(&model).filter(|a| a.specification.is_some()) else {
                continue;
            };
            // A formula without actions matches every model and belongs to the nearest.
            if (actions > 0 || !names_actions(alone))
                && Analysis::of_formula(&alone.text, Some(&analysis)).problems.is_empty()
            {
                return Some(model);
            }
            if actions > best.as_ref().map_or(0, |b| b.0) {
                best = Some((actions, model));
            }
        }
        best.map(|b| b.1)
    }

    /// Returns the number of a formula's actions that a specification declares. A formula without
    /// actions matches any specification.
    fn declared_actions(&self, formula: &Analysis, model: &Path) -> usize {
        let Some(analysis) = self.analysis(model) else { return 0 };
        let declared: Vec<&str> = analysis
            .declarations
            .iter()
            .filter_map(|d| if let Key::Action(name) = &d.key { Some(name.as_str()) } else { None })
            .collect();
        let mut words: Vec<&str> = formula
            .tokens
            .iter()
            .filter(|t| t.kind == TokenKind::Word)
            .map(|t| t.text(&formula.text))
            .filter(|w| declared.contains(w))
            .collect();
        words.sort_unstable();
        words.dedup();
        words.len().max(usize::from(!names_actions(formula) && formula.problems.is_empty()))
    }

    /// Returns all formulas that belong to a specification.
    pub(crate) fn formulas_of(&self, model: &Path) -> Vec<PathBuf> {
        let mut formulas: Vec<PathBuf> =
            self.files_around(model).into_iter().filter(|p| is_formula(p)).collect();
        formulas.retain(|f| self.model_of(f).as_deref() == Some(model));
        formulas.sort();
        formulas
    }

    /// Returns the files of the workspace around a file, or of its folder without a workspace;
    /// includes open files.
    fn files_around(&self, path: &Path) -> Vec<PathBuf> {
        let root =
            self.roots.iter().filter(|r| path.starts_with(r)).max_by_key(|r| r.as_os_str().len());
        let mut found: Vec<PathBuf> = self.open.keys().cloned().collect();
        let (mut folders, deep) = match root {
            Some(root) => (vec![root.clone()], true),
            None => (path.parent().map(Path::to_path_buf).into_iter().collect(), false),
        };
        while let Some(folder) = folders.pop() {
            for (entry, is_folder) in self.files.list(&folder) {
                let name =
                    entry.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
                if is_folder
                    && deep
                    && !name.starts_with('.')
                    && name != "target"
                    && name != "node_modules"
                {
                    folders.push(entry);
                } else if !is_folder
                    && (is_specification(&entry) || is_formula(&entry))
                    && !self.open.contains_key(&entry)
                {
                    found.push(entry);
                }
            }
            if found.len() > MAX_FILES {
                break;
            }
        }
        found
    }
}

/// True if both are one analysis, or both are missing.
fn is_same_analysis(a: Option<&Rc<Analysis>>, b: Option<&Rc<Analysis>>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}

/// True if a formula contains an action.
fn names_actions(formula: &Analysis) -> bool {
    formula.names.iter().any(|n| matches!(n.key, Key::Action(_)) && !n.declares)
        || !formula.problems.is_empty()
}

/// Returns the number of folders outwards, and then inwards, from the first file to the second.
fn distance(from: &Path, to: &Path) -> (usize, usize) {
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    (from.len() - common, to.len() - common)
}

/// Removes `.` and `..` from a path.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(out.pop()),
            std::path::Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// Returns the path of an address `file://…`; other addresses represent themselves.
pub(crate) fn path_of(uri: &str) -> PathBuf {
    let Some(rest) = uri.strip_prefix("file://") else { return PathBuf::from(uri) };
    let bytes = rest.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%')
            .then(|| rest.get(at + 1..at + 3).and_then(|d| u8::from_str_radix(d, 16).ok()))
            .flatten();
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    let path = String::from_utf8_lossy(&out).into_owned();
    // `/C:/…` on Windows.
    let path = if path.as_bytes().get(2) == Some(&b':') { path[1..].to_string() } else { path };
    PathBuf::from(path)
}

/// Returns the address of a path.
fn uri_of(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    if !text.starts_with('/') && text.contains(':') && text.as_bytes().get(1) != Some(&b':') {
        return text;
    }
    let mut out = String::from(if text.starts_with('/') { "file://" } else { "file:///" });
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~:".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (path, uri) in [
            ("/a b/é%.mcf", "file:///a%20b/%C3%A9%25.mcf"),
            ("untitled:Untitled-1", "untitled:Untitled-1"),
        ] {
            assert_eq!(
                (uri_of(Path::new(path)).as_str(), path_of(uri)),
                (uri, PathBuf::from(path))
            );
        }
        assert_eq!(path_of("file:///%zz%4"), PathBuf::from("/%zz%4"));
    }

    #[test]
    fn distances() {
        let from = Path::new("/p/formulas/a/x.mcf");
        let of = |to: &str| distance(from, Path::new(to));
        assert!(
            of("/p/formulas/a/m.spec") < of("/p/formulas/m.spec")
                && of("/p/formulas/m.spec") < of("/p/specs/m.spec")
        );
        assert!(
            of("/p/m.spec") < of("/p/specs/m.spec")
                && of("/p/specs/m.spec") < of("/p/specs/more/m.spec")
        );
    }
}
