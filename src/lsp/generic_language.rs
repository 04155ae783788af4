//! Names of texts of other front ends: one implementation for all languages with a
//! [`mu_base::naming::Naming`].
//!
//! A rename is tested before it is returned: each changed file is read again, and every name in it
//! must have the same meaning as before, place by place. So no name is captured, for any scoping
//! rules, and no language needs its own renaming rules.

use crate::analysis::{Analysis, Occurrence};
use crate::foreign::{NamedEntity, lexicon_of};
use crate::names::Key;
use crate::positions::Lines;
use crate::workspace::Workspace;
use mu_base::file_extension;
use mu_syntax::tokens::TokenKind;
use serde_json::{Map, Value, json};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Returns the files with names of a key: the declaring file and, if texts include others, the
/// files in its folder that contain the name.
pub(crate) fn files_with(
    workspace: &Workspace,
    path: &Path,
    key: &Key,
) -> Vec<(PathBuf, Rc<Analysis>)> {
    let mut paths = vec![path.to_path_buf()];
    if let (Key::Placed(file, _), true) = (key, lexicon_of(path).is_some_and(|l| l.includes)) {
        paths.extend(workspace.like(file));
    }
    paths.sort();
    paths.dedup();
    let found = paths.into_iter().filter_map(|p| workspace.complete(&p).map(|a| (p, a)));
    found.filter(|(_, a)| a.names.iter().any(|n| n.key == *key)).collect()
}

pub(crate) fn hover(
    workspace: &Workspace,
    path: &Path,
    analysis: &Analysis,
    name: &Occurrence,
) -> Option<Value> {
    let entity = analysis.entity(&name.key)?;
    let language = file_extension(path)?;
    let mut lines = vec![format!("```{language}\n{}\n```", entity.declaration)];
    let mut word =
        if entity.note.is_empty() { entity.kind.word().to_string() } else { entity.note.clone() };
    match &entity.key {
        Key::Placed(file, _) if **file != *path => {
            let file =
                file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            word.push_str(&format!(", declared in `{file}`"));
        }
        Key::Given(_) => word.push_str(", given by the language"),
        _ => {}
    }
    lines.push(word);
    if let Key::Placed(file, _) = &entity.key
        && let Some(of) = workspace.complete(file)
        && let Some(declaration) = of.declarations.iter().find(|d| d.key == entity.key)
    {
        lines.push(of.comment_near(declaration));
    }
    lines.retain(|l| !l.is_empty());
    Some(json!({
        "contents": { "kind": "markdown", "value": lines.join("\n\n") },
        "range": Lines::new(&analysis.text).range(&analysis.text, &name.range),
    }))
}

/// Returns the names in scope, those of this part of the text first, and the reserved words.
pub(crate) fn completion(analysis: &Analysis, offset: usize) -> Value {
    let mut items: Vec<Value> = Vec::new();
    if analysis.entities.is_empty() {
        items.extend(analysis.declarations.iter().map(|d| json!({ "label": d.name, "kind": 6 })));
    }
    let mut seen: Vec<&str> = Vec::new();
    // The last declaration of a name is in scope.
    for entity in analysis.entities.iter().rev() {
        let inside = entity.scope.as_ref().is_none_or(|s| s.start <= offset && offset <= s.end);
        if inside && !seen.contains(&entity.name.as_str()) {
            seen.push(&entity.name);
            let order = match (&entity.scope, &entity.key) {
                (Some(_), _) => 0,
                (None, Key::Given(_)) => 2,
                _ => 1,
            };
            items.push(json!({
                "label": entity.name, "kind": entity.kind.completion(), "detail": entity.declaration, "documentation": entity.note,
                "sortText": format!("{order}{}", entity.name),
            }));
        }
    }
    items.extend(
        analysis
            .keywords
            .iter()
            .map(|w| json!({ "label": w, "kind": 14, "sortText": format!("3{w}") })),
    );
    Value::Array(items)
}

/// Rejects entities with a name that cannot change.
pub(crate) fn may_be_renamed(workspace: &Workspace, entity: &NamedEntity) -> Result<(), String> {
    if let Some(why) = entity.fixed {
        return Err(format!("`{}` cannot be renamed: {why}", entity.name));
    }
    match &entity.key {
        Key::Placed(file, _) if workspace.text(file).is_none() => {
            let file =
                file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            Err(format!(
                "`{}` cannot be renamed: it is declared in `{file}`, which is built in",
                entity.name
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the edits that rename a key.
pub(crate) fn rename(
    workspace: &Workspace,
    path: &Path,
    key: &Key,
    new: &str,
) -> Result<Value, String> {
    let mut changes = Map::new();
    let mut renamed: Vec<RenamedFile> = Vec::new();
    for (file, before) in files_with(workspace, path, key) {
        if before.entities.iter().any(|t| matches!(&t.key, Key::Given(name) if name == new)) {
            return Err(format!("`{new}` is a built-in name of the language"));
        }
        let ranges: Vec<Range<usize>> =
            before.names.iter().filter(|n| n.key == *key).map(|n| n.range.clone()).collect();
        let Some(old) = ranges.first().map(|r| &before.text[r.clone()]) else { continue };
        let lines = Lines::new(&before.text);
        // After an error, a part of the text was not read, so the meaning of its words is unknown.
        let unread = |t: &&mu_syntax::tokens::Token| {
            t.kind == TokenKind::Word
                && t.text(&before.text) == old
                && before.name_at(t.range.start).is_none()
        };
        if let Some(token) =
            before.tokens.iter().find(unread).filter(|_| !before.problems.is_empty())
        {
            let line = lines.line(token.range.start).0 + 1;
            return Err(format!(
                "`{old}` in {}:{line} is in a part that cannot be read",
                file.display()
            ));
        }
        let edits: Vec<Value> = ranges
            .iter()
            .map(|r| json!({ "range": lines.range(&before.text, r), "newText": new }))
            .collect();
        let mut text = before.text.clone();
        ranges.iter().rev().for_each(|r| text.replace_range(r.clone(), new));
        changes.insert(workspace.uri(&file), Value::Array(edits));
        renamed.push(RenamedFile { file, before, ranges, text });
    }
    let texts: Vec<(PathBuf, String)> =
        renamed.iter().map(|r| (r.file.clone(), r.text.clone())).collect();
    for r in &renamed {
        let Some(lexicon) = r.before.lexicon else { continue };
        let after = Analysis::of_foreign(
            &r.file,
            &r.text,
            lexicon,
            workspace.read_foreign(&r.file, &r.text, &texts),
        );
        if let (true, Some(problem)) = (r.before.problems.is_empty(), after.problems.first()) {
            return Err(format!("{} would have an error: {}", r.file.display(), problem.message));
        }
        if let Some(wrong) = different(r, &after, &renamed, new) {
            let line = Lines::new(&r.before.text).line(wrong).0 + 1;
            return Err(format!(
                "the name `{new}` would change the meaning of {}:{line}",
                r.file.display()
            ));
        }
    }
    Ok(json!({ "changes": changes }))
}

/// A file with renamed places.
struct RenamedFile {
    file: PathBuf,
    before: Rc<Analysis>,
    ranges: Vec<Range<usize>>,
    text: String,
}

impl RenamedFile {
    /// Returns the new position of an offset.
    fn new_offset(&self, offset: usize, new: &str) -> usize {
        let earlier = self.ranges.iter().filter(|r| r.end <= offset);
        earlier.fold(offset, |at, r| at + new.len() - r.len())
    }
}

/// Returns the place of a name with a changed meaning, or without one.
fn different(of: &RenamedFile, after: &Analysis, all: &[RenamedFile], new: &str) -> Option<usize> {
    let place = |key: &Key| match key {
        Key::Placed(file, at) => {
            let at = all.iter().find(|r| r.file == **file).map_or(*at, |r| r.new_offset(*at, new));
            Key::Placed(file.clone(), at)
        }
        key => key.clone(),
    };
    for (i, name) in of.before.names.iter().enumerate() {
        let (start, end) =
            (of.new_offset(name.range.start, new), of.new_offset(name.range.end, new));
        let same = |n: &&Occurrence| {
            n.range == (start..end) && n.key == place(&name.key) && n.declares == name.declares
        };
        if after.names.get(i).filter(same).is_none() {
            return Some(name.range.start);
        }
    }
    (after.names.len() > of.before.names.len()).then(|| of.ranges.first().map_or(0, |r| r.start))
}
