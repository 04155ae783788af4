//! Conditions of groups in which no sum variable occurs: asked before anything is enumerated, and once for all groups of a state that ask the same.
//!
//! In: a group's condition. Out: its conjuncts that are such conditions, up to the last that calls a function, as numbers; a negation asks what it negates.
//! `sum x, y. (empty(x, y, b) && !wins(b)) -> …` and `wins(b) -> …` evaluate `wins(b)` once in a state. Cost: of each condition the last answer is kept.
//!
//! Invariant: a condition that is no truth value, or whose evaluation fails, is left to the whole condition, which tells why.

use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::engine::{Code, Engine, Value};
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, OpKind, Signature};

/// A condition, whoever asks.
struct Known {
    code: Code,
    vars: Vec<VarId>,
    /// The numbers of the values that it was asked for last, and the answer.
    last: Option<(Vec<u32>, bool)>,
}

/// What a group asks.
pub(super) struct Question {
    number: usize,
    negated: bool,
    /// Of its variables, the positions among what the group reads.
    positions: Vec<usize>,
}

/// All conditions that the groups of a thread ask.
#[derive(Default)]
pub(super) struct Shared {
    numbers: AHashMap<Expr, usize>,
    all: Vec<Known>,
    key: Vec<u32>,
}

/// Whether evaluating an expression may call a function of the user.
fn calls(signature: &Signature, e: &Expr) -> bool {
    let mut found = false;
    e.each_op(&mut |op| found |= matches!(signature.op(op).kind, OpKind::Mapping));
    found
}

impl Shared {
    /// Takes the conditions out of a guard that can be asked first. Returns them and what is left.
    pub(super) fn of(&mut self, engine: &mut Engine, guard: &Expr, reads: &[VarId]) -> Result<(Vec<Question>, Vec<Expr>), Diagnostic> {
        let program = engine.program().clone();
        let signature = program.signature();
        let conjuncts = guard.conjuncts(signature);
        let mut free = Vec::new();
        let first: Vec<Option<Vec<VarId>>> = (conjuncts.iter())
            .map(|c| {
                free.clear();
                c.free_vars(&mut free);
                free.iter().all(|v| reads.contains(v)).then(|| free.clone())
            })
            .collect();
        let Some(last) = (0..conjuncts.len()).rev().find(|&i| first[i].is_some() && calls(signature, &conjuncts[i])) else {
            return Ok((Vec::new(), conjuncts));
        };
        let (mut questions, mut rest) = (Vec::new(), Vec::new());
        for (i, (c, vars)) in conjuncts.into_iter().zip(first).enumerate() {
            let Some(vars) = vars.filter(|_| i <= last) else {
                rest.push(c);
                continue;
            };
            let (asked, negated) = match c.as_builtin(signature) {
                Some((Builtin::Not, [inner])) => (inner.clone(), true),
                _ => (c, false),
            };
            let number = match self.numbers.get(&asked) {
                Some(&known) => known,
                None => {
                    let code = engine.code(&asked, &vars)?;
                    self.all.push(Known { code, vars, last: None });
                    self.numbers.insert(asked, self.all.len() - 1);
                    self.all.len() - 1
                }
            };
            let position = |v: &VarId| reads.iter().position(|r| r == v).expect("only what is read occurs");
            questions.push(Question { number, negated, positions: self.all[number].vars.iter().map(position).collect() });
        }
        Ok((questions, rest))
    }

    /// Whether all of these hold for values and their numbers; none if one of them must be told by the whole condition.
    pub(super) fn hold(&mut self, engine: &mut Engine, questions: &[Question], numbers: &[u32], env: &[Value]) -> Option<bool> {
        for q in questions {
            let known = &mut self.all[q.number];
            self.key.clear();
            self.key.extend(q.positions.iter().map(|&i| numbers[i]));
            let answer = match &known.last {
                Some((key, answer)) if *key == self.key => *answer,
                _ => {
                    let values: Vec<Value> = q.positions.iter().map(|&i| env[i].clone()).collect();
                    let value = engine.eval(&known.code, &values).ok()?;
                    let answer = if value.is_true() {
                        true
                    } else if value.is_false() {
                        false
                    } else {
                        return None;
                    };
                    known.last = Some((self.key.clone(), answer));
                    answer
                }
            };
            if answer == q.negated {
                return Some(false);
            }
        }
        Some(true)
    }
}
