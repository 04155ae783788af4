//! Open document: its text after the client's edits in the order of their versions.
//!
//! In: changes with versions. Out: the text after all changes. The protocol promises ordered
//! changes, but Helix (seen with 25.01) sends fast typing in any order. So the last [`MAX_UNDO`]
//! changes can be undone: a change with a lower version than an earlier one is inserted before it.
//! Cost: a change costs the length of the text; a late change costs as many as come after it.
//! Invariant: the text depends on the set of changes, not on their order, if no change is late by
//! more than `MAX_UNDO`.

use crate::positions::Lines;
use serde_json::Value;
use std::collections::VecDeque;

/// Number of changes that can be undone.
const MAX_UNDO: usize = 64;

/// An applied edit: the bytes at `start` for `length` replaced `old`.
struct AppliedEdit {
    start: usize,
    length: usize,
    old: String,
}

struct DocumentChange {
    version: i64,
    /// The edits as the client sent them.
    edits: Vec<Value>,
    made: Vec<AppliedEdit>,
}

/// An open document of the client.
pub(crate) struct OpenDocument {
    /// Its address as the client writes it; several addresses can denote one path.
    pub(crate) uri: String,
    pub(crate) text: String,
    pub(crate) version: i64,
    recent: VecDeque<DocumentChange>,
}

impl OpenDocument {
    pub(crate) fn new(uri: String, text: String, version: i64) -> Self {
        Self { uri, text, version, recent: VecDeque::new() }
    }

    /// Changes the text; without a version, it gets the next one.
    pub(crate) fn change(&mut self, version: Option<i64>, edits: Vec<Value>) {
        let version = version.unwrap_or(self.version + 1);
        let mut later = Vec::new();
        while self.recent.back().is_some_and(|c| c.version > version) {
            let Some(change) = self.recent.pop_back() else { break };
            for made in change.made.iter().rev() {
                self.text.replace_range(made.start..made.start + made.length, &made.old);
            }
            later.push((change.version, change.edits));
        }
        self.make(version, edits);
        while let Some((version, edits)) = later.pop() {
            self.make(version, edits);
        }
        self.version = self.version.max(version);
        while self.recent.len() > MAX_UNDO {
            self.recent.pop_front();
        }
    }

    /// Applies the edits of a change, up to the first without a valid place.
    fn make(&mut self, version: i64, edits: Vec<Value>) {
        let mut made = Vec::new();
        for edit in &edits {
            let Some(new) = edit["text"].as_str() else { break };
            let lines = Lines::new(&self.text);
            let place = |end: &str| lines.offset(&self.text, &edit["range"][end]);
            let range = match (edit["range"].is_null(), place("start"), place("end")) {
                (true, ..) => 0..self.text.len(),
                (false, Some(start), Some(end)) => start.min(end)..start.max(end),
                _ => break,
            };
            let old = self.text[range.clone()].to_string();
            self.text.replace_range(range.clone(), new);
            made.push(AppliedEdit { start: range.start, length: new.len(), old });
        }
        self.recent.push_back(DocumentChange { version, edits, made });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edit(line: u32, from: u32, to: u32, text: &str) -> Vec<Value> {
        vec![
            json!({ "range": { "start": { "line": line, "character": from }, "end": { "line": line, "character": to } }, "text": text }),
        ]
    }

    /// Typing in an editor that closes parentheses, in an order of arrival that was observed.
    #[test]
    fn changes_are_sorted_by_their_versions() {
        let typed: Vec<(i64, Vec<Value>)> = vec![
            (1, vec![json!({ "text": "init P;\n" })]),
            (2, edit(0, 5, 6, "")),
            (3, edit(0, 5, 5, "B")),
            (4, edit(0, 6, 6, "é𝔽")),
            (5, edit(0, 9, 9, "()")),
            (6, [edit(0, 10, 10, "d"), edit(1, 0, 0, "% end")].concat()),
        ];
        for order in
            [[0, 1, 2, 3, 4, 5], [0, 4, 5, 1, 2, 3], [5, 4, 3, 2, 1, 0], [1, 0, 3, 2, 5, 4]]
        {
            let mut open = OpenDocument::new("file:///m.mcrl2".into(), "act a;\n".into(), 0);
            order.iter().for_each(|i| open.change(Some(typed[*i].0), typed[*i].1.clone()));
            assert_eq!((open.text.as_str(), open.version), ("init Bé𝔽(d);\n% end", 6), "{order:?}");
        }
    }

    #[test]
    fn old_changes_are_forgotten() {
        let mut open = OpenDocument::new("file:///m.mcrl2".into(), String::new(), 7);
        (0..1000).for_each(|i| open.change(None, edit(0, i, i, "a")));
        assert_eq!((open.text.len(), open.version, open.recent.len()), (1000, 1007, MAX_UNDO));
        open.change(Some(1007), edit(0, 0, 1, "b"));
        assert!(open.text.starts_with("ba"));
        // A change without a valid place does not change the text.
        open.change(None, vec![json!({ "range": {}, "text": "c" })]);
        assert_eq!(open.text.len(), 1000);
    }
}
