//! Values of quantified variables for which evidence shows a verdict.
//!
//! A false formula `forall f: S. …` fails for a value of `f`, and a true formula `exists f: S. …`
//! holds for one. The formula states of the evidence have it among the values of their live
//! variables. Quantifiers inside fixed points are left out: an infinite path may bind them to
//! different values. Cost: linear in the formula and in the formula states of the evidence.

use super::{Automaton, FormulaState};
use mu_data::engine::Value;
use mu_data::signature::Signature;
use mu_formula::typed::{StateKind, TypedFormula};

/// Limit on the text of a value in bytes; a longer text is shortened.
const MAX_TEXT: usize = 200;

/// Names of the variables of quantifiers outside of fixed points.
#[derive(Clone, Debug, Default)]
pub(super) struct QuantifiedNames {
    universal: Vec<String>,
    existential: Vec<String>,
}

impl QuantifiedNames {
    pub(super) fn of(formula: &TypedFormula, signature: &Signature) -> Self {
        let mut found = Self::default();
        let mut open = vec![(&formula.formula, true)];
        while let Some((state, positive)) = open.pop() {
            match &state.kind {
                StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => {}
                StateKind::Fix { .. } => {}
                StateKind::Not(a) => open.push((a, !positive)),
                StateKind::Implies(a, b) => open.extend([(&**a, !positive), (&**b, positive)]),
                StateKind::And(a, b) | StateKind::Or(a, b) => {
                    open.extend([(&**a, positive), (&**b, positive)]);
                }
                StateKind::Must(_, a) | StateKind::May(_, a) => open.push((a, positive)),
                StateKind::Forall(vars, a) | StateKind::Exists(vars, a) => {
                    let all = matches!(state.kind, StateKind::Forall(..));
                    let names =
                        if all == positive { &mut found.universal } else { &mut found.existential };
                    names.extend(vars.iter().map(|v| signature.var(*v).name.clone()));
                    open.push((a, positive));
                }
            }
        }
        found
    }
}

impl Automaton {
    /// Returns the quantified variables that have one value in the formula states of evidence, with
    /// that value, in the order of their first occurrence.
    pub fn deciding_values(
        &self,
        verdict: bool,
        states: impl IntoIterator<Item = FormulaState>,
    ) -> Vec<(String, String)> {
        let names = if verdict { &self.quantified.existential } else { &self.quantified.universal };
        if names.is_empty() {
            return Vec::new();
        }
        // `None` for a variable with several values.
        let mut found: Vec<(&str, Option<Value>)> = Vec::new();
        for q in states {
            let (node, values) = &self.states[q.index()];
            for (v, value) in self.normal.live(*node).iter().zip(values.iter()) {
                let name = &self.data.signature.var(*v).name;
                if !names.contains(name) {
                    continue;
                }
                match found.iter_mut().find(|f| f.0 == name) {
                    None => found.push((name, Some(value.clone()))),
                    Some((_, known)) => {
                        if known.as_ref().is_some_and(|known| known != value) {
                            *known = None;
                        }
                    }
                }
            }
        }
        let text = |(name, value): (&str, Option<Value>)| {
            Some((name.to_string(), self.engine.text(&value?, MAX_TEXT)))
        };
        found.into_iter().filter_map(text).collect()
    }
}
