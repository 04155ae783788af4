//! Hiding and renaming of labels in explicit transition systems.
//!
//! A label is a multi-action, `send(1)|tick`: its parts are separated by `|` outside brackets and
//! quotes; the name of a part is the text before its arguments. Renaming comes first, then hiding;
//! a label is tau if all its parts are hidden, and labels that become the same text become one. A
//! part can also be named by its whole text, `send(1)`.
//!
//! Cost: linear in the label table, and one pass over the transitions. Invariant: states and
//! transitions are unchanged.

use ahash::AHashMap;
use std::collections::HashMap;

use super::typed::TypedDeclarations;
use super::{Labels, Lts};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage};

/// Names to rename and to hide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relabel {
    /// Old and new names.
    pub rename: Vec<(String, String)>,
    /// Names to hide.
    pub hide: Vec<String>,
}

impl Relabel {
    /// True if there is nothing to rename or hide.
    pub fn is_empty(&self) -> bool {
        self.rename.is_empty() && self.hide.is_empty()
    }

    /// Renames and hides labels of some systems. Error: a name occurs in no label of any of them;
    /// the error lists the names.
    pub fn apply<const N: usize>(&self, mut systems: [Lts; N]) -> Result<[Lts; N], Diagnostic> {
        for name in self.rename.iter().map(|(old, _)| old).chain(&self.hide) {
            let labels = systems.iter().flat_map(|lts| lts.table.texts.iter().skip(1));
            let made =
                self.rename.iter().any(|(_, new)| new == name || name_of(new) == name_of(name));
            if !made && !labels.flat_map(|t| parts(t)).any(|p| matches(p, name)) {
                return Err(unknown(name, &systems));
            }
        }
        if !self.is_empty() {
            systems.iter_mut().for_each(|lts| renumber(lts, |label| self.text(label)));
        }
        Ok(systems)
    }

    /// Renames the parts of typed labels as well.
    pub fn rename_typed(&self, typed: &mut TypedDeclarations) {
        typed.rename(|part| {
            let (old, new) = self.rename.iter().find(|(old, _)| matches(part, old))?;
            // The arguments of a whole new text have unknown sorts.
            match part == old && name_of(new) != new {
                true => None,
                false => Some((self.rename_part(part), new.clone())),
            }
        });
    }

    /// Returns a part under its new name, if it has one.
    fn rename_part(&self, part: &str) -> String {
        match self.rename.iter().find(|(old, _)| matches(part, old)) {
            Some((old, new)) if part == old => new.clone(),
            Some((_, new)) => format!("{new}{}", &part[name_of(part).len()..]),
            None => part.to_string(),
        }
    }

    /// Returns the new text of a label; empty if all of it is hidden.
    fn text(&self, label: &str) -> String {
        let mut left = Vec::new();
        for part in parts(label) {
            let part = self.rename_part(part);
            if !self.hide.iter().any(|name| matches(&part, name)) {
                left.push(part);
            }
        }
        left.join("|")
    }
}

/// True if a name denotes a part.
fn matches(part: &str, name: &str) -> bool {
    part == name || name_of(part) == name
}

/// Sorts the parts of each multi-action by their texts, so that `b|a` and `a|b` are one label.
#[must_use]
pub fn in_order(mut lts: Lts) -> Lts {
    renumber(&mut lts, ordered);
    lts
}

/// Sorts the parts of a multi-action by their texts.
pub fn ordered(label: &str) -> String {
    let mut all = parts(label);
    all.sort_unstable();
    all.join("|")
}

/// Makes labels of these texts internal, as `i` in files of CADP. A text without label has no
/// effect.
#[must_use]
pub fn with_internal(mut lts: Lts, texts: &[String]) -> Lts {
    if lts.table.texts.iter().skip(1).any(|label| texts.contains(label)) {
        renumber(&mut lts, |label| {
            if texts.iter().any(|t| t == label) { String::new() } else { label.to_string() }
        });
    }
    lts
}

/// Gives visible labels new texts and merges equal ones. A label that is missing in `texts` keeps
/// its text.
#[must_use]
pub fn with_texts(mut lts: Lts, texts: &HashMap<String, String>) -> Lts {
    renumber(&mut lts, |label| texts.get(label).map_or_else(|| label.to_string(), String::clone));
    lts
}

/// Gives the visible labels new texts (an empty one is tau) and merges equal ones.
fn renumber(lts: &mut Lts, new: impl Fn(&str) -> String) {
    let mut table = Labels::default();
    let mut known: AHashMap<String, LabelId> =
        [(String::new(), LabelId::TAU), ("tau".to_string(), LabelId::TAU)].into_iter().collect();
    let visible = lts.table.texts.iter().skip(1).map(|label| {
        let text = new(label);
        *known.entry(text.clone()).or_insert_with(|| {
            table.texts.push(text);
            LabelId::new(table.texts.len() - 1)
        })
    });
    let names: Vec<LabelId> = std::iter::once(LabelId::TAU).chain(visible).collect();
    lts.labels.iter_mut().for_each(|l| *l = names[l.index()]);
    lts.table = table;
}

/// Splits a multi-action's text into parts.
pub fn parts(label: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut from) = (0usize, false, 0);
    let mut out = Vec::new();
    for (i, c) in label.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '|' if depth == 0 => {
                out.push(label[from..i].trim());
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(label[from..].trim());
    out
}

/// Returns the name of a part: the text before arguments in brackets or, as CADP writes them, after
/// `!`.
pub fn name_of(part: &str) -> &str {
    part[..part.find(['(', '!', '?']).unwrap_or(part.len())].trim_end()
}

fn unknown(name: &str, systems: &[Lts]) -> Diagnostic {
    let labels = systems.iter().flat_map(|lts| lts.table.texts.iter().skip(1));
    let mut names: Vec<&str> = labels.flat_map(|t| parts(t)).map(name_of).collect();
    names.sort_unstable();
    names.dedup();
    let shown = names.iter().take(30).copied().collect::<Vec<_>>().join(", ");
    let more = if names.len() > 30 { ", …" } else { "" };
    Diagnostic::new(Stage::Usage, format!("no label has an action `{name}`")).note(
        if names.is_empty() {
            "there are no visible actions".into()
        } else {
            format!("actions: {shown}{more}")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::ids::StateId;

    fn system(labels: &[&str]) -> Lts {
        let mut table = Labels::default();
        table.texts.extend(labels.iter().map(|l| l.to_string()));
        let edges: Vec<_> = (0..table.texts.len())
            .map(|i| (StateId::of(0), LabelId::new(i), StateId::of(0)))
            .collect();
        Lts::from_edges(StateId::of(0), 1, &edges, table)
    }

    fn texts(lts: &Lts) -> Vec<&str> {
        lts.labels.iter().map(|l| lts.table.texts[l.index()].as_str()).collect()
    }

    #[test]
    fn parts_are_cut_outside_brackets_and_quotes() {
        assert_eq!(parts("a(x || y)|b"), ["a(x || y)", "b"]);
        assert_eq!(parts("PUT !\"p|q\""), ["PUT !\"p|q\""]);
        assert_eq!((name_of("a(1)(2)"), name_of("PUT !1"), name_of("tick")), ("a", "PUT", "tick"));
    }

    #[test]
    fn hiding_and_renaming() {
        let relabel = |rename: &[(&str, &str)], hide: &[&str]| Relabel {
            rename: rename.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(),
            hide: hide.iter().map(|h| h.to_string()).collect(),
        };
        let lts = || system(&["a(1)", "a(2)|b", "c"]);
        assert_eq!(
            texts(&relabel(&[], &["a"]).apply([lts()]).unwrap()[0]),
            ["tau", "tau", "b", "c"]
        );
        assert_eq!(
            texts(&relabel(&[], &["a(1)"]).apply([lts()]).unwrap()[0]),
            ["tau", "tau", "a(2)|b", "c"]
        );
        assert_eq!(
            texts(&relabel(&[("a", "x"), ("c", "x(1)")], &[]).apply([lts()]).unwrap()[0]),
            ["tau", "x(1)", "x(2)|b", "x(1)"]
        );
        // Results of renaming can be hidden, in one step.
        let [both] = relabel(&[("a", "b")], &["b"]).apply([lts()]).unwrap();
        assert_eq!((texts(&both), both.table.texts.len()), (vec!["tau", "tau", "tau", "c"], 2));
        let error = relabel(&[], &["d"]).apply([lts()]).unwrap_err();
        // An occurrence in one of two systems suffices.
        assert!(relabel(&[], &["d"]).apply([lts(), system(&["d"])]).is_ok());
        assert!(error.message.contains("`d`") && error.notes[0].contains("a, b, c"), "{error:?}");
    }

    #[test]
    fn internal_labels_are_whole_texts() {
        let lts = with_internal(system(&["i", "i(1)", "a|i"]), &["i".into(), "exit".into()]);
        assert_eq!(texts(&lts), ["tau", "tau", "i(1)", "a|i"]);
    }

    #[test]
    fn order_of_parts_does_not_count() {
        let lts = in_order(system(&["b|a", "a|b"]));
        assert_eq!(lts.table.texts, ["tau", "a|b"]);
        assert_eq!(lts.labels, [LabelId::of(0), LabelId::of(1), LabelId::of(1)]);
    }
}
