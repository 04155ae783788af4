//! Hiding and renaming of labels in explicit transition systems.
//!
//! A label is a multi-action, `send(1)|tick`, perhaps with a time, `send(1)|tick @ 3`: its parts
//! are separated by `|` outside brackets and quotes; the name of a part is the text before its
//! arguments. Renaming comes first, then hiding; a part with the new name `tau` is hidden as well.
//! A label is tau if all its parts are hidden; at a time, this is `tau @ 3`. Labels with the same
//! parts in any order become one. A part can also be named by its whole text, `send(1)`, and with
//! its time, `send(1) @ 3`.
//!
//! Cost: linear in the label table, and one pass over the transitions. Invariant: states are
//! unchanged; transitions that become equal are one.

use ahash::{AHashMap, AHashSet};
use std::collections::HashMap;
use std::hash::Hash;

use super::typed::TypedDeclarations;
use super::{Labels, Lts};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage, label_time};

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

    /// Renames and hides labels of some systems. A name that occurs in no label has no effect.
    pub fn apply<const N: usize>(&self, systems: [Lts; N]) -> [Lts; N] {
        if self.is_empty() {
            return systems;
        }
        systems.map(|mut lts| {
            renumber(&mut lts, |label| self.text(label));
            merge_orders(lts)
        })
    }

    /// Returns the names that occur in no label of any of these systems, and that no renaming
    /// gives.
    pub fn unmatched_names(&self, systems: &[Lts]) -> Vec<&str> {
        let occurs = |name: &str| {
            let mut labels = systems.iter().flat_map(|lts| lts.table.texts.iter().skip(1));
            let has = |label: &String| {
                parts(label).into_iter().any(|p| matches(p, label_time::split(label).1, name))
            };
            let gives = |new: &String| new.as_str() == name || name_of(new) == name_of(name);
            self.rename.iter().any(|(_, new)| gives(new)) || labels.any(has)
        };
        let names = self.rename.iter().map(|(old, _)| old).chain(&self.hide).map(String::as_str);
        names.filter(|name| !occurs(name)).collect()
    }

    /// Renames the parts of typed labels as well.
    pub fn rename_typed(&self, typed: &mut TypedDeclarations) {
        typed.rename(|part| {
            let (old, new) = self.rename.iter().find(|(old, _)| matches(part, None, old))?;
            // The arguments of a whole new text have unknown sorts.
            match new == "tau" || part == old && name_of(new) != new {
                true => None,
                false => Some((self.rename_part(part, None), new.clone())),
            }
        });
    }

    /// Returns a part under its new name, if it has one.
    fn rename_part(&self, part: &str, time: Option<&str>) -> String {
        match self.rename.iter().find(|(old, _)| matches(part, time, old)) {
            // Tau has no arguments.
            Some((_, new)) if new == "tau" => new.clone(),
            Some((old, new)) if part == label_time::split(old).0 => new.clone(),
            Some((_, new)) => format!("{new}{}", &part[name_of(part).len()..]),
            None => part.to_string(),
        }
    }

    /// Returns the new text of a label; empty if all of it is hidden.
    fn text(&self, label: &str) -> String {
        let time = label_time::split(label).1;
        let mut left = Vec::new();
        for part in parts(label) {
            let part = self.rename_part(part, time);
            if part != "tau" && !self.hide.iter().any(|name| matches(&part, time, name)) {
                left.push(part);
            }
        }
        let actions = left.join("|");
        match time {
            Some(_) if left.is_empty() => at_time("tau", time),
            _ => at_time(&actions, time),
        }
    }
}

/// Adds the text of a time to actions.
fn at_time(actions: &str, time: Option<&str>) -> String {
    match time {
        Some(time) => format!("{actions}{}{time}", label_time::TIME_MARK),
        None => actions.to_string(),
    }
}

/// True if a name denotes a part of a label with this time. A name with a time denotes parts at
/// this time.
fn matches(part: &str, time: Option<&str>, name: &str) -> bool {
    let (name, at) = label_time::split(name);
    (part == name || name_of(part) == name) && (at.is_none() || at == time)
}

/// A transition system with numbered labels.
pub trait Labelled {
    /// Returns the table of labels, and the label of each transition.
    fn labels_mut(&mut self) -> (&mut Labels, &mut [LabelId]);
    /// Removes transitions that equal an earlier one of their state.
    fn merge_transitions(&mut self);
}

impl Labelled for Lts {
    fn labels_mut(&mut self) -> (&mut Labels, &mut [LabelId]) {
        (&mut self.table, &mut self.labels)
    }
    fn merge_transitions(&mut self) {
        merge_rows(&mut self.offsets, &mut self.labels, &mut self.targets);
    }
}

/// Removes transitions that equal an earlier one of their state, from rows in the form of [`Lts`].
pub fn merge_rows<T: Copy + Eq + Hash>(
    offsets: &mut [u64],
    labels: &mut Vec<LabelId>,
    targets: &mut Vec<T>,
) {
    let (mut kept, mut begin) = (0, 0);
    let mut known = AHashSet::new();
    for offset in offsets.iter_mut().skip(1) {
        known.clear();
        for at in begin..*offset as usize {
            let transition = (labels[at], targets[at]);
            if known.insert(transition) {
                (labels[kept], targets[kept]) = transition;
                kept += 1;
            }
        }
        begin = *offset as usize;
        *offset = kept as u64;
    }
    labels.truncate(kept);
    targets.truncate(kept);
}

/// Sorts the parts of each multi-action by their texts, so that `b|a` and `a|b` are one label.
#[must_use]
pub fn in_order<S: Labelled>(mut system: S) -> S {
    renumber(&mut system, sort_parts);
    system
}

/// Gives multi-actions with the same parts in any order the text of the first one.
#[must_use]
pub fn merge_orders<S: Labelled>(mut system: S) -> S {
    let texts = system.labels_mut().0.texts.iter().skip(1);
    let mut first: HashMap<String, String> = HashMap::new();
    for label in texts.clone().filter(|label| label.contains('|')) {
        first.entry(sort_parts(label)).or_insert_with(|| label.clone());
    }
    let is_first = |label: &String| {
        !label.contains('|') || first.get(&sort_parts(label)).is_none_or(|first| first == label)
    };
    if !texts.into_iter().all(is_first) {
        renumber(&mut system, |label| match first.get(&sort_parts(label)) {
            Some(first) if label.contains('|') => first.clone(),
            _ => label.to_string(),
        });
    }
    system
}

/// Sorts the parts of a multi-action by their texts; a time remains at the end.
pub fn sort_parts(label: &str) -> String {
    let mut all = parts(label);
    all.sort_unstable();
    at_time(&all.join("|"), label_time::split(label).1)
}

/// Makes labels of these texts internal, as `i` in files of CADP. A text without label has no
/// effect.
#[must_use]
pub fn with_internal<S: Labelled>(mut system: S, texts: &[String]) -> S {
    if system.labels_mut().0.texts.iter().skip(1).any(|label| texts.contains(label)) {
        renumber(&mut system, |label| {
            if texts.iter().any(|t| t == label) { "tau".to_string() } else { label.to_string() }
        });
    }
    system
}

/// Gives visible labels new texts and merges equal ones. A label that is missing in `texts` keeps
/// its text.
#[must_use]
pub fn with_texts(mut lts: Lts, texts: &HashMap<String, String>) -> Lts {
    renumber(&mut lts, |label| texts.get(label).map_or_else(|| label.to_string(), String::clone));
    lts
}

/// Gives the visible labels new texts (an empty one is tau) and merges equal ones. A label that had
/// an empty text before is visible.
fn renumber(system: &mut impl Labelled, new: impl Fn(&str) -> String) {
    let (texts, labels) = system.labels_mut();
    let mut table = Labels::default();
    let mut known: AHashMap<String, LabelId> =
        [(String::new(), LabelId::TAU), ("tau".to_string(), LabelId::TAU)].into_iter().collect();
    let mut empty: Option<LabelId> = None;
    let visible = texts.texts.iter().skip(1).map(|label| {
        let text = new(label);
        if label.is_empty() && text.is_empty() {
            return *empty.get_or_insert_with(|| {
                table.texts.push(text);
                LabelId::new(table.texts.len() - 1)
            });
        }
        *known.entry(text.clone()).or_insert_with(|| {
            table.texts.push(text);
            LabelId::new(table.texts.len() - 1)
        })
    });
    let names: Vec<LabelId> = std::iter::once(LabelId::TAU).chain(visible).collect();
    labels.iter_mut().for_each(|l| *l = names[l.index()]);
    let before = std::mem::replace(texts, table);
    if texts.texts.len() < before.texts.len() {
        system.merge_transitions();
    }
}

/// Splits a multi-action's text into parts, without its time.
pub fn parts(label: &str) -> Vec<&str> {
    split(label_time::split(label).0, '|')
}

/// Splits a text at a separator outside brackets and quotes. A quote after `\` does not end a
/// quoted text.
pub fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut quoted, mut escaped, mut from) = (0usize, false, false, 0);
    let mut out = Vec::new();
    for (i, c) in text.char_indices() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '"' => quoted = !quoted,
            '\\' if quoted => escaped = true,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if c == separator && depth == 0 => {
                out.push(text[from..i].trim());
                from = i + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(text[from..].trim());
    out
}

/// Returns the name of a part: the text before arguments in brackets or, as CADP writes them, after
/// `!`.
pub fn name_of(part: &str) -> &str {
    part[..part.find(['(', '!', '?']).unwrap_or(part.len())].trim_end()
}

/// Returns the message for a name that occurs in no label; its note lists the names that do.
pub fn no_action(name: &str, systems: &[Lts]) -> Diagnostic {
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

/// Returns the message of [`no_action`] as a warning in one line.
pub fn warn_of_no_action(name: &str, systems: &[Lts]) -> String {
    let message = no_action(name, systems);
    format!("{}; {}", message.message, message.notes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::ids::StateId;

    /// Returns a transition with each label, each to a state of its own.
    fn system(labels: &[&str]) -> Lts {
        let mut table = Labels::default();
        table.texts.extend(labels.iter().map(|l| l.to_string()));
        let count = table.texts.len();
        let edges: Vec<_> =
            (0..count).map(|i| (StateId::of(0), LabelId::new(i), StateId::new(i))).collect();
        Lts::from_edges(StateId::of(0), count, &edges, table)
    }

    fn texts(lts: &Lts) -> Vec<&str> {
        lts.labels.iter().map(|l| lts.table.texts[l.index()].as_str()).collect()
    }

    #[test]
    fn parts_are_cut_outside_brackets_and_quotes() {
        assert_eq!(parts("a(x || y)|b"), ["a(x || y)", "b"]);
        assert_eq!(parts("PUT !\"p|q\""), ["PUT !\"p|q\""]);
        assert_eq!(parts(r#"a !"\"|"|b"#), [r#"a !"\"|""#, "b"]);
        assert_eq!(split("a(1,2), b !\"x,y\" ,c", ','), ["a(1,2)", "b !\"x,y\"", "c"]);
        assert_eq!((name_of("a(1)(2)"), name_of("PUT !1"), name_of("tick")), ("a", "PUT", "tick"));
    }

    #[test]
    fn hiding_and_renaming() {
        let relabel = |rename: &[(&str, &str)], hide: &[&str]| Relabel {
            rename: rename.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(),
            hide: hide.iter().map(|h| h.to_string()).collect(),
        };
        let lts = || system(&["a(1)", "a(2)|b", "c"]);
        assert_eq!(texts(&relabel(&[], &["a"]).apply([lts()])[0]), ["tau", "tau", "b", "c"]);
        assert_eq!(
            texts(&relabel(&[], &["a(1)"]).apply([lts()])[0]),
            ["tau", "tau", "a(2)|b", "c"]
        );
        assert_eq!(
            texts(&relabel(&[("a", "x"), ("c", "x(1)")], &[]).apply([lts()])[0]),
            ["tau", "x(1)", "x(2)|b", "x(1)"]
        );
        // Results of renaming can be hidden, in one step.
        let [both] = relabel(&[("a", "b")], &["b"]).apply([lts()]);
        assert_eq!((texts(&both), both.table.texts.len()), (vec!["tau", "tau", "tau", "c"], 2));
        // A name that does not occur has no effect; an occurrence in one of two systems suffices.
        let missing = relabel(&[("b", "e")], &["d", "e", "a(1)"]);
        assert_eq!(missing.unmatched_names(&[lts()]), ["d"]);
        assert_eq!(missing.unmatched_names(&[lts(), system(&["d"])]), [""; 0]);
        assert_eq!(texts(&relabel(&[], &["d"]).apply([lts()])[0]), texts(&lts()));
        let error = no_action("d", &[lts()]);
        assert!(error.message.contains("`d`") && error.notes[0].contains("a, b, c"), "{error:?}");
    }

    fn relabel_texts(labels: &[&str], rename: &[(&str, &str)], hide: &[&str]) -> Vec<String> {
        let relabel = Relabel {
            rename: rename.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect(),
            hide: hide.iter().map(|h| h.to_string()).collect(),
        };
        let [lts] = relabel.apply([system(labels)]);
        texts(&lts).into_iter().skip(1).map(String::from).collect()
    }

    #[test]
    fn actions_renamed_to_tau_are_hidden() {
        assert_eq!(
            relabel_texts(&["a(1)|b", "a(1)", "c"], &[("a", "tau"), ("c", "tau")], &[]),
            ["b", "tau", "tau"]
        );
    }

    #[test]
    fn renamed_parts_in_any_order_are_one_label() {
        assert_eq!(relabel_texts(&["a|b", "b|z"], &[("a", "z")], &[]), ["z|b", "z|b"]);
    }

    #[test]
    fn times_are_no_part_of_actions() {
        let labels = ["a(1)|b @ 3", "b @ 3", "b @ 4"];
        assert_eq!(relabel_texts(&labels, &[], &["b"]), ["a(1) @ 3", "tau @ 3", "tau @ 4"]);
        assert_eq!(relabel_texts(&labels, &[], &["a"]), ["b @ 3", "b @ 3", "b @ 4"]);
        assert_eq!(relabel_texts(&labels, &[], &["b @ 3"]), ["a(1) @ 3", "tau @ 3", "b @ 4"]);
        assert_eq!(
            relabel_texts(&labels, &[("b", "c"), ("a(1)", "d")], &[]),
            ["d|c @ 3", "c @ 3", "c @ 4"]
        );
        assert_eq!(sort_parts("c|a(1) @ (1 / 2)"), "a(1)|c @ (1 / 2)");
    }

    #[test]
    fn transitions_that_become_equal_are_one() {
        let edges: Vec<_> = [(0, 1, 1), (0, 2, 1), (0, 2, 0), (1, 3, 0), (1, 2, 0), (1, 1, 0)]
            .map(|(from, label, to)| (StateId::of(from), LabelId::of(label), StateId::of(to)))
            .into();
        let table = Labels { texts: ["tau", "a", "b", "c"].map(String::from).into() };
        let lts = Lts::from_edges(StateId::of(0), 2, &edges, table);
        let relabel = Relabel { rename: vec![("b".into(), "a".into())], hide: Vec::new() };
        let [lts] = relabel.apply([lts]);
        assert_eq!(lts.offsets, [0, 2, 4]);
        assert_eq!(lts.labels, [1, 1, 2, 1].map(LabelId::of));
        assert_eq!(lts.targets, [1, 0, 0, 0].map(StateId::of));
    }

    #[test]
    fn orders_get_the_first_text() {
        let lts = merge_orders(system(&["b|a", "c", "a|b", "a|b @ 3", "b|a @ 3"]));
        assert_eq!(lts.table.texts, ["tau", "b|a", "c", "a|b @ 3"]);
        assert_eq!(lts.labels, [0, 1, 2, 1, 3, 3].map(LabelId::of));
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

    #[test]
    fn an_empty_label_is_visible() {
        let lts = in_order(system(&["", "b|a"]));
        assert_eq!(texts(&lts), ["tau", "", "a|b"]);
        assert_eq!(texts(&with_internal(lts, &[String::new()])), ["tau", "tau", "a|b"]);
    }
}
