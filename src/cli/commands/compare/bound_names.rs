//! Canonical labels, up to the names of bound variables and parentheses: `c(lambda x: Nat. x < 1)`
//! and `c(lambda y: Nat. (y < 1))` are one label.
//!
//! Input: the texts of labels. Output: for each label the first of those that are equal to it. A
//! label's canonical form is a text in which the n-th binder has the n-th name of a fixed list, and
//! expressions have no redundant parentheses. `None`: the label is not a multi-action of mCRL2, or
//! has neither binders nor operators, so that its text is its identity. Cost: linear in the texts.

use mu_syntax::ast::{Data, DataKind, VarDecl};
use mu_syntax::print;
use std::collections::BTreeMap;

/// Prefix of the names; it occurs in no mCRL2 text.
const NAME: &str = "@";

/// Returns for each label the first of the labels that have its canonical form.
pub(crate) fn first_of_equal_labels(texts: &[String]) -> Vec<usize> {
    let mut known = BTreeMap::new();
    let first = |(i, text): (usize, &String)| {
        canonical(text).map_or(i, |key| *known.entry(key).or_insert(i))
    };
    texts.iter().enumerate().map(first).collect()
}

/// Returns the canonical form of a label; a time follows it as it is.
fn canonical(label: &str) -> Option<String> {
    let (acts, time) = split_time(label);
    canonical_multi_action(acts).map(|acts| acts + time)
}

/// Splits a label into its multi-action and its time, ` @ 1` or nothing.
fn split_time(label: &str) -> (&str, &str) {
    let (mut depth, mut at) = (0, label.len());
    for (i, c) in label.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '@' if depth == 0 => at = i,
            _ => {}
        }
    }
    let acts = label[..at].trim_end();
    // A multi-action with a time may be in parentheses.
    let inner =
        acts.strip_prefix('(').and_then(|a| a.strip_suffix(')')).filter(|_| at < label.len());
    (inner.unwrap_or(acts), &label[acts.len()..])
}

fn canonical_multi_action(text: &str) -> Option<String> {
    let mut acts = mu_syntax::parse_multi_action(Default::default(), text).ok()?;
    let mut renamer = Renamer { scope: Vec::new(), binders: 0, has_operators: false };
    for argument in acts.iter_mut().flat_map(|(_, args)| args) {
        renamer.rename(argument);
    }
    if renamer.binders == 0 && !renamer.has_operators {
        return None;
    }
    let act = |(name, args): &(mu_syntax::ast::Ident, Vec<Data>)| {
        format!("{}({})", name.kind, args.iter().map(print::data).collect::<Vec<_>>().join(", "))
    };
    let mut acts: Vec<String> = acts.iter().map(act).collect();
    acts.sort_unstable();
    Some(acts.join("|"))
}

struct Renamer {
    /// Bound names with their new names, innermost last.
    scope: Vec<(String, String)>,
    binders: usize,
    /// True if the label contains an operator.
    has_operators: bool,
}

impl Renamer {
    fn rename(&mut self, data: &mut Data) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &mut data.kind {
            DataKind::Name(name) => {
                if let Some((_, new)) = self.scope.iter().rev().find(|(bound, _)| bound == name) {
                    name.clone_from(new);
                }
            }
            DataKind::Number(_) => {}
            DataKind::List(all) | DataKind::Set(all) => all.iter_mut().for_each(|e| self.rename(e)),
            DataKind::Bag(all) => all.iter_mut().for_each(|(e, n)| {
                self.rename(e);
                self.rename(n);
            }),
            DataKind::Apply(head, args) => {
                self.rename(head);
                args.iter_mut().for_each(|e| self.rename(e));
            }
            DataKind::Update(a, b, c) => [a, b, c].into_iter().for_each(|e| self.rename(e)),
            DataKind::Unary(_, a) => {
                self.has_operators = true;
                self.rename(a);
            }
            DataKind::Binary(_, a, b) => {
                self.has_operators = true;
                [a, b].into_iter().for_each(|e| self.rename(e));
            }
            DataKind::Comprehension(var, body) => {
                self.with_scope(std::slice::from_mut(&mut **var), body)
            }
            DataKind::Lambda(vars, body)
            | DataKind::Forall(vars, body)
            | DataKind::Exists(vars, body) => self.with_scope(vars, body),
            DataKind::Where(body, definitions) => {
                definitions.iter_mut().for_each(|(_, e)| self.rename(e));
                let before = self.scope.len();
                for (name, _) in definitions.iter_mut() {
                    self.bind(&mut name.kind);
                }
                self.rename(body);
                self.scope.truncate(before);
            }
        });
    }

    fn with_scope(&mut self, vars: &mut [VarDecl], body: &mut Data) {
        let before = self.scope.len();
        vars.iter_mut().for_each(|var| self.bind(&mut var.name.kind));
        self.rename(body);
        self.scope.truncate(before);
    }

    fn bind(&mut self, name: &mut String) {
        let new = format!("{NAME}{}", self.binders);
        self.binders += 1;
        self.scope.push((std::mem::replace(name, new.clone()), new));
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn names_of_bound_variables_do_not_matter() {
        let same = [
            ("c(lambda x: Nat. x < 1)", "c((lambda y: Nat. (y < 1)))"),
            ("a({x: Nat | x > 5})", "a({ x_1: Nat | (x_1 > 5) })"),
            (
                "a(lambda x: Nat. exists y: Nat. x < y)|b",
                "b|a(lambda y: Nat. exists x: Nat. y < x)",
            ),
            ("a(lambda x: Nat. forall x: Nat. x < 1)", "a(lambda y: Nat. forall z: Nat. z < 1)"),
            ("c(lambda x: Nat. x < 1) @ 2", "c(lambda y: Nat. (y < 1)) @ 2"),
            ("(d|c(lambda x: Nat. x < 1)) @ 2", "(c(lambda y: Nat. y < 1)|d) @ 2"),
        ];
        for (a, b) in same {
            assert!(
                canonical(a).is_some() && canonical(a) == canonical(b),
                "{a}, {b}: {:?}, {:?}",
                canonical(a),
                canonical(b)
            );
        }
        let different = [
            ("c(lambda x: Nat. x < 1)", "c(lambda x: Pos. x < 1)"),
            ("c(lambda x, y: Nat. x < y)", "c(lambda x, y: Nat. y < x)"),
            ("c(lambda x: Nat. x < y)", "c(lambda x: Nat. x < x)"),
            ("c(lambda x: Nat. x < 1) @ 2", "c(lambda x: Nat. x < 1) @ 3"),
            ("c(lambda x: Nat. x < 1) @ 2", "c(lambda x: Nat. x < 1)"),
        ];
        for (a, b) in different {
            assert_ne!(canonical(a), canonical(b), "{a}, {b}");
        }
        assert_eq!(canonical("a((x == y) && z)"), canonical("a(((x == y) && z))"));
        assert_ne!(canonical("a(x == (y && z))"), canonical("a((x == y) && z)"));
        // Without binders and operators the text is the identity.
        assert!(
            ["a(1, 2)", "PUT !1", "a|b", "tau"].into_iter().all(|label| canonical(label).is_none())
        );
    }
}
