//! Confirmation of a difference between two systems, and a test if `check` can read its formula.
//!
//! Input: two systems and a [`Difference`] between them. Labels are opaque here: both systems get a
//! common label table with names of the form `label_3`, so that the formula can be confirmed for
//! labels of any form. The printed formula has the original texts of the labels. `check` parses
//! these texts. The formula may be unreadable or change its meaning if a text is a keyword, is not
//! a multi-action, or denotes the same multi-action as another text. [`checkable`] detects this.
//! Cost: twice the check of the formula on both systems.

use crate::commands::compare::bound_names::first_of_equal_labels;
use crate::pipeline::Session;
use crate::pipeline::load::Loaded;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage};
use mu_data::expr::DataSpec;
use mu_formula::typecheck::{check_formula, check_over_labels};
use mu_formula::typed::TypedFormula;
use mu_lts::compare::disjoint_union;
use mu_lts::distinguish::Difference;
use mu_lts::{Lts, relabel, trace};
use mu_model::from_lts::LtsModel;
use mu_pbes::{Options, Verdict, check};
use mu_process::labels::inferred::InferredLabels;
use mu_process::labels::{ActionDecl, ActionLabels, MultiAction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Limit on the length of a formula that is checked on the systems, in bytes; a longer one is only
/// parsed. For deep formulas the checker takes longer than the comparison.
pub(crate) const MAX_CHECKED_BYTES: usize = 1 << 14;
/// Prefix of the names of labels.
const NAME: &str = "label_";

/// Two systems over one label table with generated names.
pub(crate) struct Pair {
    /// The first system.
    pub a: Arc<Lts>,
    /// The second system.
    pub b: Arc<Lts>,
    /// The texts of the labels in the files.
    texts: Vec<String>,
    /// For each label, the first of the labels that differ from it only in names of bound
    /// variables.
    canonical_label: Vec<usize>,
}

impl Pair {
    /// Creates the pair: one label table for both systems, with generated names. Label 0 is tau and
    /// keeps its name.
    pub fn new(a: &Lts, b: &Lts) -> Self {
        let (union, ..) = disjoint_union(a, b);
        let (mut table, mut labels) = (union.table, union.labels);
        let texts = table.texts.clone();
        let canonical_label = first_of_equal_labels(&texts);
        labels.iter_mut().for_each(|label| *label = LabelId::new(canonical_label[label.index()]));
        table
            .texts
            .iter_mut()
            .enumerate()
            .skip(1)
            .for_each(|(i, text)| *text = format!("{NAME}{i}"));
        let with = |lts: &Lts, labels: &[LabelId]| {
            Arc::new(Lts { labels: labels.to_vec(), table: table.clone(), ..lts.clone() })
        };
        let (first, second) = labels.split_at(a.transition_count());
        Self { a: with(a, first), b: with(b, second), texts, canonical_label }
    }

    /// Replaces the generated names by the original texts.
    pub fn with_original_labels(&self, difference: &Difference) -> Difference {
        match difference {
            Difference::Trace { labels, first } => Difference::Trace {
                labels: labels.iter().map(|name| self.text(name)).collect(),
                first: *first,
            },
            Difference::Formula(formula) => Difference::Formula(self.text(formula)),
            Difference::TooLong => Difference::TooLong,
        }
    }

    /// Replaces the generated names in a text by the original texts.
    fn text(&self, named: &str) -> String {
        let mut text = String::new();
        for (i, part) in named.split(NAME).enumerate() {
            let (number, rest) =
                part.split_at(part.bytes().take_while(|b| i > 0 && b.is_ascii_digit()).count());
            if let Some(label) = number.parse().ok().and_then(|n: usize| self.texts.get(n)) {
                text += label;
            }
            text += rest;
        }
        text
    }

    /// Returns the labels in a text with generated names.
    fn labels(&self, named: &str) -> BTreeSet<&str> {
        let digits = |part: &str| part.bytes().take_while(u8::is_ascii_digit).count();
        let numbers =
            named.split(NAME).skip(1).filter_map(|part| part[..digits(part)].parse::<usize>().ok());
        numbers.filter_map(|n| self.texts.get(n)).map(String::as_str).collect()
    }

    /// Confirms a difference. Returns false if it is too long, or a limit is reached first. `weak`:
    /// traces without taus.
    pub fn confirm(
        &self,
        session: &Session,
        difference: &Difference,
        weak: bool,
    ) -> Result<bool, Diagnostic> {
        let wrong = || {
            Err(Diagnostic::new(
                Stage::Internal,
                "the distinguishing formula does not distinguish the systems",
            ))
        };
        match difference {
            Difference::TooLong => Ok(false),
            Difference::Formula(text) if text.len() > MAX_CHECKED_BYTES => Ok(false),
            Difference::Trace { labels, first } => {
                if trace::can(&self.a, labels, weak) != *first
                    || trace::can(&self.b, labels, weak) == *first
                {
                    return wrong();
                }
                Ok(true)
            }
            Difference::Formula(text) => {
                let labels = InferredLabels::new(&self.a.table.texts)?;
                let tree = mu_syntax::parse_formula(Default::default(), text)?;
                let typed = check_formula(&tree, labels.data(), labels.actions())?;
                match (
                    holds(session, &self.a, &labels, &typed)?,
                    holds(session, &self.b, &labels, &typed)?,
                ) {
                    (Verdict::Unknown(_), _) | (_, Verdict::Unknown(_)) => Ok(false),
                    (Verdict::True, Verdict::False) => Ok(true),
                    _ => wrong(),
                }
            }
        }
    }
}

/// Checks a formula on a system.
fn holds(
    session: &Session,
    lts: &Arc<Lts>,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
) -> Result<Verdict, Diagnostic> {
    let explore = mu_explore::Options { threads: 1, ..Default::default() };
    let options = Options { evidence: false, ..Options::new(&explore) };
    Ok(check(&LtsModel::new(lts.clone()), labels, formula, options, &session.budget)?.verdict)
}

/// The labels of a system as typed multi-actions, as in `check`.
pub(crate) struct LabelTyping {
    data: DataSpec,
    actions: Vec<ActionDecl>,
    labels: BTreeMap<String, Arc<MultiAction>>,
    /// True if the model declares the actions.
    declared: bool,
}

impl LabelTyping {
    /// Returns the labels of an explored model that declares its actions; `None` if it does not.
    pub fn from_declarations(loaded: &Loaded) -> Option<Self> {
        let known = |label| {
            (
                relabel::sort_parts(&loaded.model.label_text(label)),
                loaded.labels.multi_action(label),
            )
        };
        let labels = || (0..loaded.model.label_count()).map(LabelId::new).map(known).collect();
        loaded.declared.then(|| Self {
            data: loaded.data.clone(),
            actions: loaded.actions.clone(),
            labels: labels(),
            declared: true,
        })
    }

    /// Infers the labels of a system from their texts.
    pub fn from_texts(lts: &Lts) -> Result<Self, Diagnostic> {
        let typed = InferredLabels::new(&lts.table.texts)?;
        let labels = lts
            .table
            .texts
            .iter()
            .enumerate()
            .map(|(i, text)| (text.clone(), typed.multi_action(LabelId::new(i))))
            .collect();
        Ok(Self {
            data: typed.data().clone(),
            actions: typed.actions().to_vec(),
            labels,
            declared: false,
        })
    }

    /// Reads a formula as `check` does.
    fn read(&self, formula: &str) -> Result<TypedFormula, Diagnostic> {
        let tree = mu_syntax::parse_formula(Default::default(), formula)?;
        match self.declared {
            true => check_formula(&tree, &self.data, &self.actions),
            false => check_over_labels(&tree, &self.data, &self.actions).map(|read| read.0),
        }
    }

    /// Finds two labels with the same multi-action, one of which the formula uses.
    fn ambiguous_labels(&self, used: &BTreeSet<&str>) -> Option<(&str, &str)> {
        let part = |part: &(mu_base::ids::ActId, Vec<mu_data::expr::Expr>)| {
            let values =
                part.1.iter().map(|value| mu_data::print::expression(&self.data.signature, value));
            (part.0, values.collect::<Vec<_>>())
        };
        let mut known: BTreeMap<Vec<_>, &str> = BTreeMap::new();
        self.labels.iter().find_map(|(text, multi)| {
            let mut key: Vec<_> = multi.iter().map(part).collect();
            key.sort();
            let before = known.insert(key, text)?;
            (used.contains(before) || used.contains(text.as_str()))
                .then_some((before, text.as_str()))
        })
    }

    /// Returns the multi-actions of the labels of a system of the pair; a label without transitions
    /// in it gets the empty one. Error: a transition has a label without multi-action.
    fn of(&self, pair: &Pair, lts: &Lts) -> Result<LabelMultiActions, Diagnostic> {
        let mut found = vec![None; pair.texts.len()];
        for (text, same) in pair.texts.iter().zip(&pair.canonical_label) {
            if let Some(multi) = self.labels.get(text) {
                found[*same] = Some(multi.clone());
            }
        }
        // Label 0 is tau.
        found[0] = Some(Arc::default());
        if let Some(label) = lts.labels.iter().find(|label| found[label.index()].is_none()) {
            let text = &pair.texts[label.index()];
            let message = format!("the label `{text}` has no multi-action");
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
        Ok(LabelMultiActions(found.into_iter().map(Option::unwrap_or_default).collect()))
    }
}

/// The multi-action of each label of a [`Pair`].
struct LabelMultiActions(Vec<Arc<MultiAction>>);

impl ActionLabels for LabelMultiActions {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.0[label.index()].clone()
    }
}

/// Readability of a difference formula for `check`.
pub(crate) enum Checkable {
    /// `check` reads it with the same meaning on both systems. For a formula of more than
    /// [`MAX_CHECKED_BYTES`] only the labels are tested.
    Yes,
    /// `check` cannot read it; the text is the reason.
    No(String),
    /// A limit was reached first.
    Open,
}

/// Tests if `check` reads a formula on both systems with the right verdicts. `named`: the formula
/// with generated names, so that each label has one meaning. `first`: true if only the first system
/// satisfies it, else only the second does.
pub(crate) fn checkable(
    session: &Session,
    pair: &Pair,
    named: &str,
    first: bool,
    typings: [&LabelTyping; 2],
) -> Result<Checkable, Diagnostic> {
    let no = |why: String| Ok(Checkable::No(why));
    let written = pair.text(named);
    let used = pair.labels(named);
    for label in &used {
        if mu_syntax::parse_multi_action(Default::default(), label).is_err() {
            return no(format!("the label `{label}` cannot be written as an action in a formula"));
        }
        if let Some(why) = typings.iter().find_map(|v| v.read(&format!("<{label}>true")).err()) {
            return no(format!("the label `{label}` is rejected: {}", why.message));
        }
    }
    if let Some((x, y)) = typings.iter().find_map(|v| v.ambiguous_labels(&used)) {
        return no(format!("the labels `{x}` and `{y}` are the same action to `check`"));
    }
    if written.len() > MAX_CHECKED_BYTES {
        return Ok(Checkable::Yes);
    }
    let verdict = |lts: &Arc<Lts>, typing: &LabelTyping| {
        let formula = typing.read(&written)?;
        holds(session, lts, &typing.of(pair, lts)?, &formula)
    };
    let expected = |holds: bool| if holds { Verdict::True } else { Verdict::False };
    match (verdict(&pair.a, typings[0]), verdict(&pair.b, typings[1])) {
        (Ok(Verdict::Unknown(_)), _) | (_, Ok(Verdict::Unknown(_))) => Ok(Checkable::Open),
        (Ok(x), Ok(y)) if x == expected(first) && y == expected(!first) => Ok(Checkable::Yes),
        (Err(why), _) | (_, Err(why)) if why.stop.is_some() => Ok(Checkable::Open),
        (Err(why), _) | (_, Err(why)) => no(why.message),
        _ => no("`check` matches its labels differently".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_lts::aut;

    #[test]
    fn labels_are_numbered_alike_in_both() {
        let read = |text: &str| aut::read(text.as_bytes(), &Default::default()).unwrap();
        let (a, b) = (
            read("des (0, 2, 1)\n(0, PUT !1, 0)\n(0, x, 0)\n"),
            read("des (0, 2, 1)\n(0, y, 0)\n(0, PUT !1, 0)\n"),
        );
        let pair = Pair::new(&a, &b);
        assert_eq!(pair.a.table, pair.b.table);
        assert_eq!(pair.a.table.texts, ["tau", "label_1", "label_2", "label_3"]);
        assert_eq!(
            (&pair.a.labels, &pair.b.labels),
            (&vec![LabelId::of(1), LabelId::of(2)], &vec![LabelId::of(3), LabelId::of(1)])
        );
        assert_eq!(pair.text("<label_1>[tau* . label_2]X12"), "<PUT !1>[tau* . x]X12");
        assert_eq!(pair.labels("<label_1>[tau* . label_3]X12"), BTreeSet::from(["PUT !1", "y"]));
    }

    /// A label without multi-action must not count as tau.
    #[test]
    fn labels_of_transitions_need_multi_actions() {
        let read = |text: &str| aut::read(text.as_bytes(), &Default::default()).unwrap();
        let (a, b) = (
            read("des (0, 2, 1)\n(0, tau, 0)\n(0, x, 0)\n"),
            read("des (0, 2, 1)\n(0, y, 0)\n(0, x, 0)\n"),
        );
        let pair = Pair::new(&a, &b);
        let typing = LabelTyping::from_texts(&a).unwrap();
        assert!(typing.of(&pair, &pair.a).is_ok());
        let error = typing.of(&pair, &pair.b).err().unwrap();
        assert_eq!(error.message, "the label `y` has no multi-action");
    }
}
