//! Renaming in a specification and its formulas at once.
//!
//! A name is renamed with all its overloads, so that no use needs type information. The new name
//! must not occur where the old one is visible, so that no name is captured. The edits are tested
//! before they are returned: if a file without errors would have an error, the rename is rejected
//! with that error.

use crate::analysis::{Analysis, Occurrence};
use crate::features::files_with;
use crate::generic_language;
use crate::names::Key;
use crate::positions::Lines;
use crate::workspace::Workspace;
use mu_syntax::tokens::{Token, TokenKind, is_name};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Returns the range and the text of a name that can be renamed.
pub(crate) fn prepare(workspace: &Workspace, path: &Path, offset: usize) -> Result<Value, String> {
    let (analysis, name) = find(workspace, path, offset)?;
    let lines = Lines::new(&analysis.text);
    Ok(
        json!({ "range": lines.range(&analysis.text, &name.range), "placeholder": analysis.text[name.range.clone()] }),
    )
}

fn find(
    workspace: &Workspace,
    path: &Path,
    offset: usize,
) -> Result<(Rc<Analysis>, Occurrence), String> {
    let analysis = workspace.complete(path).ok_or("the file cannot be read")?;
    let name = analysis.name_at(offset).cloned().ok_or("there is no name here")?;
    if let Some(entity) = analysis.entity(&name.key) {
        generic_language::may_be_renamed(workspace, entity)?;
        return Ok((analysis, name));
    }
    let files = files_with(workspace, path, &name.key);
    if !files.iter().any(|f| f.1.declarations.iter().any(|d| d.key == name.key)) {
        return Err(format!(
            "`{}` is not declared in these files",
            &analysis.text[name.range.clone()]
        ));
    }
    for (file, of) in &files {
        if let Some(part) = of.names.iter().find(|n| n.key == name.key && !n.is_literal) {
            let line = Lines::new(&of.text).line(part.range.start).0 + 1;
            return Err(format!(
                "the parameter layer builds this name, as `{}` in {}:{line}",
                &of.text[part.range.clone()],
                file.display()
            ));
        }
    }
    Ok((analysis, name))
}

/// Returns the edits that rename the name at an offset.
pub(crate) fn rename(
    workspace: &Workspace,
    path: &Path,
    offset: usize,
    new: &str,
) -> Result<Value, String> {
    let (analysis, name) = find(workspace, path, offset)?;
    if analysis.entity(&name.key).is_some() {
        return generic_language::rename(workspace, path, &name.key, new);
    }
    if !is_name(new) {
        return Err(format!(
            "`{new}` is not a name: letters, digits, `_` and `'`, no leading digit, no reserved word"
        ));
    }
    let mut changes = Map::new();
    let mut renamed: Vec<(PathBuf, Rc<Analysis>, String)> = Vec::new();
    for (file, of) in files_with(workspace, path, &name.key) {
        let places: Vec<&Occurrence> = of.names.iter().filter(|n| n.key == name.key).collect();
        let (Some(first), Some(last)) = (places.first(), places.last()) else { continue };
        // A variable is visible in its declaration, other names in the whole file.
        let visible = match name.key {
            Key::Local(_) => {
                enclosing_section(&of, first.range.start).start
                    ..enclosing_section(&of, last.range.start).end
            }
            _ => 0..of.text.len(),
        };
        let taken = |t: &&Token| {
            t.kind == TokenKind::Word && visible.contains(&t.range.start) && t.text(&of.text) == new
        };
        if let Some(token) = of.tokens.iter().find(taken) {
            let line = Lines::new(&of.text).line(token.range.start).0 + 1;
            return Err(format!("`{new}` is in use already: {}:{line}", file.display()));
        }
        // Parts that no reading covers, or that have an error: the meaning of the name is unknown
        // there.
        let old = &of.text[first.range.clone()];
        if let Some(token) = of.tokens.iter().find(|t| {
            t.kind == TokenKind::Word
                && t.text(&of.text) == old
                && of.name_at(t.range.start).is_none()
        }) {
            let line = Lines::new(&of.text).line(token.range.start).0 + 1;
            return Err(format!(
                "`{old}` in {}:{line} is in a part that cannot be read",
                file.display()
            ));
        }
        let lines = Lines::new(&of.text);
        let mut ranges: Vec<_> = places.iter().map(|n| n.range.clone()).collect();
        ranges.dedup();
        let edits: Vec<Value> = ranges
            .iter()
            .map(|r| json!({ "range": lines.range(&of.text, r), "newText": new }))
            .collect();
        let mut text = of.text.clone();
        ranges.iter().rev().for_each(|r| text.replace_range(r.clone(), new));
        changes.insert(workspace.uri(&file), Value::Array(edits));
        renamed.push((file, of, text));
    }
    verify(workspace, &renamed)?;
    Ok(json!({ "changes": changes }))
}

/// Rejects the edits if a file without errors would have an error.
fn verify(
    workspace: &Workspace,
    renamed: &[(PathBuf, Rc<Analysis>, String)],
) -> Result<(), String> {
    let models: Vec<(&PathBuf, Analysis)> = renamed
        .iter()
        .filter(|r| !r.1.formula)
        .map(|(file, _, text)| (file, Analysis::of_specification(text)))
        .collect();
    for (file, before, text) in renamed {
        let model = if before.formula { workspace.model_of(file) } else { None };
        let formula;
        let after = match models.iter().find(|m| m.0 == file) {
            Some((_, after)) => after,
            None => {
                let known = model.as_ref().and_then(|m| workspace.analysis(m));
                let new = models.iter().find(|m| Some(m.0) == model.as_ref()).map(|m| &m.1);
                formula = Analysis::of_formula(text, new.or(known.as_deref()));
                &formula
            }
        };
        if let (true, Some(problem)) = (before.problems.is_empty(), after.problems.first()) {
            return Err(format!("{} would have an error: {}", file.display(), problem.message));
        }
    }
    Ok(())
}

/// Returns the section or formula around an offset.
fn enclosing_section(analysis: &Analysis, offset: usize) -> std::ops::Range<usize> {
    let section = |t: &&Token| {
        t.kind == TokenKind::Word
            && mu_syntax::tokens::SECTIONS.contains(&t.text(&analysis.text))
            && t.text(&analysis.text) != "eqn"
    };
    let start = analysis
        .tokens
        .iter()
        .filter(section)
        .take_while(|t| t.range.start <= offset)
        .last()
        .map_or(0, |t| t.range.start);
    let end = analysis
        .tokens
        .iter()
        .filter(section)
        .find(|t| t.range.start > offset)
        .map_or(analysis.text.len(), |t| t.range.start);
    start..end
}
