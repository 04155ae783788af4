//! Conditions of groups in which no sum variable occurs: asked before anything is enumerated, and
//! once for all groups of a state that ask the same.
//!
//! In: a group's condition. Out: its conjuncts that are such conditions, up to the last that calls
//! a function or that other groups ask as well, as numbers; a negation asks what it negates. `sum
//! x, y. (empty(x, y, b) && !wins(b)) -> …` and `wins(b) -> …` evaluate `wins(b)` once in a state.
//! Cost: of each condition the last answer is kept, and those before it while they recur: whether
//! three pieces stand in a line is known of all lines soon.
//!
//! Invariant: a condition that is no truth value, or whose evaluation fails, is left to the whole
//! condition, which tells why. A condition on many variables is answered by those which its
//! evaluation looks at ([`super::decisions`]).

use super::GroupCode;
use super::decisions::{Decisions, Found, Place};
use super::recall::Recall;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::{SortId, VarId};
use mu_data::engine::{Code, Engine, Partly, Value};
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, OpKind, Signature};

/// A condition, whoever asks.
struct Known {
    code: Code,
    vars: Vec<VarId>,
    /// The numbers of the values that it was asked for last, and the answer.
    last: Option<(Vec<u32>, bool)>,
    before: Recall<bool>,
    /// Of one on many variables, the answers by what it looks at, and the sorts of the variables.
    decisions: Option<(Decisions, Vec<SortId>)>,
}

/// Fewest variables of a condition without calls that is asked once for several groups: one on
/// fewer is evaluated as fast as it is looked up.
const WIDE: usize = 3;

/// Fewest variables of a condition that is answered by those which it looks at.
const MANY: usize = 5;

/// A condition without its negation.
fn plain<'e>(signature: &Signature, e: &'e Expr) -> (&'e Expr, bool) {
    match e.as_builtin(signature) {
        Some((Builtin::Not, [inner])) => (inner, true),
        _ => (e, false),
    }
}

/// The wide conditions that several groups ask of the state alone.
pub(super) fn common(signature: &Signature, codes: &[GroupCode]) -> AHashSet<Expr> {
    let mut times: AHashMap<Expr, usize> = AHashMap::new();
    let mut vars = Vec::new();
    for code in codes {
        for c in code.guard.conjuncts(signature) {
            vars.clear();
            c.free_vars(&mut vars);
            if vars.len() >= WIDE && vars.iter().all(|v| code.reads.contains(v)) {
                *times.entry(plain(signature, &c).0.clone()).or_default() += 1;
            }
        }
    }
    times.into_iter().filter(|(_, times)| *times > 1).map(|(e, _)| e).collect()
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
    /// Where the last question that was not answered is in its tree.
    place: Option<Place>,
    /// What it looked at.
    seen: Vec<usize>,
}

/// Whether evaluating an expression may call a function of the user.
fn calls(signature: &Signature, e: &Expr) -> bool {
    let mut found = false;
    e.each_op(&mut |op| found |= matches!(signature.op(op).kind, OpKind::Mapping));
    found
}

impl Shared {
    /// Takes the conditions out of a guard that can be asked first. Returns them and what is left.
    pub(super) fn of(
        &mut self,
        engine: &mut Engine,
        (guard, reads): (&Expr, &[VarId]),
        common: &AHashSet<Expr>,
    ) -> Result<(Vec<Question>, Vec<Expr>), Diagnostic> {
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
        let asks = |c: &Expr| calls(signature, c) || common.contains(plain(signature, c).0);
        let Some(last) =
            (0..conjuncts.len()).rev().find(|&i| first[i].is_some() && asks(&conjuncts[i]))
        else {
            return Ok((Vec::new(), conjuncts));
        };
        let (mut questions, mut rest) = (Vec::new(), Vec::new());
        for (i, (c, vars)) in conjuncts.into_iter().zip(first).enumerate() {
            let Some(vars) = vars.filter(|_| i <= last) else {
                rest.push(c);
                continue;
            };
            let (asked, negated) = plain(signature, &c);
            let asked = asked.clone();
            let number = match self.numbers.get(&asked) {
                Some(&known) => known,
                None => {
                    let code = engine.code(&asked, &vars)?;
                    let sorts = || vars.iter().map(|v| signature.var(*v).sort).collect();
                    let decisions = (vars.len() >= MANY).then(|| (Decisions::default(), sorts()));
                    self.all.push(Known {
                        code,
                        vars,
                        last: None,
                        before: Recall::default(),
                        decisions,
                    });
                    self.numbers.insert(asked, self.all.len() - 1);
                    self.all.len() - 1
                }
            };
            let position =
                |v: &VarId| reads.iter().position(|r| r == v).expect("only what is read occurs");
            questions.push(Question {
                number,
                negated,
                positions: self.all[number].vars.iter().map(position).collect(),
            });
        }
        Ok((questions, rest))
    }

    /// Whether all of these hold, as far as it is known for the numbers of values: the first that
    /// is not known leaves it open.
    pub(super) fn known(&mut self, questions: &[Question], numbers: &[u32]) -> Option<bool> {
        for q in questions {
            if self.answer(q, numbers)? == q.negated {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The answer to a question, if it is known; if it is not, `key` holds what it is kept by.
    fn answer(&mut self, q: &Question, numbers: &[u32]) -> Option<bool> {
        let known = &mut self.all[q.number];
        self.place = None;
        if let Some((decisions, _)) = &mut known.decisions {
            self.seen.clear();
            match decisions.find(|i| numbers[q.positions[i]], |i| self.seen.push(i)) {
                Found::Answer(answer) => return Some(answer),
                Found::Open(place) => {
                    self.place = Some(place);
                    return None;
                }
                Found::Nothing => {}
            }
        }
        if let Some((key, answer)) = &known.last
            && q.positions.iter().zip(key).all(|(&i, k)| numbers[i] == *k)
        {
            return Some(*answer);
        }
        self.key.clear();
        self.key.extend(q.positions.iter().map(|&i| numbers[i]));
        let answer = *known.before.get(&self.key)?;
        known.last = Some((self.key.clone(), answer));
        Some(answer)
    }

    /// Whether all of these hold for values and their numbers; none if one of them must be told by
    /// the whole condition.
    pub(super) fn hold(
        &mut self,
        engine: &mut Engine,
        questions: &[Question],
        numbers: &[u32],
        env: &[Value],
    ) -> Option<bool> {
        for q in questions {
            let answer = match self.answer(q, numbers) {
                Some(answer) => answer,
                None if self.place.is_some() => self.decided(engine, q, numbers, env)?,
                None => {
                    let known = &mut self.all[q.number];
                    let values: Vec<Value> = q.positions.iter().map(|&i| env[i].clone()).collect();
                    let value = engine.eval(&known.code, &values).ok()?;
                    if !value.is_true() && !value.is_false() {
                        return None;
                    }
                    known.before.keep(&self.key, value.is_true(), 1);
                    known.last = Some((self.key.clone(), value.is_true()));
                    value.is_true()
                }
            };
            if answer == q.negated {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The answer to a question that is not in its tree yet, where it is put; none if there is
    /// none.
    fn decided(
        &mut self,
        engine: &mut Engine,
        q: &Question,
        numbers: &[u32],
        env: &[Value],
    ) -> Option<bool> {
        let known = &mut self.all[q.number];
        let (decisions, sorts) = known.decisions.as_mut()?;
        let mut at = self.place.take()?;
        let mut given: Vec<Option<Value>> = vec![None; sorts.len()];
        self.seen.iter().for_each(|&i| given[i] = Some(env[q.positions[i]].clone()));
        loop {
            match engine.partly(&known.code, &given, sorts) {
                Partly::Known(value) if value.is_true() || value.is_false() => {
                    decisions.answer(at, value.is_true());
                    decisions.judge();
                    return Some(value.is_true());
                }
                Partly::Needs(i) if given[i].is_none() => {
                    let position = q.positions[i];
                    given[i] = Some(env[position].clone());
                    at = decisions.look(at, i, numbers[position]);
                }
                _ => {
                    decisions.unclear(at);
                    let values: Vec<Value> = q.positions.iter().map(|&i| env[i].clone()).collect();
                    let value = engine.eval(&known.code, &values).ok()?;
                    return (value.is_true() || value.is_false()).then(|| value.is_true());
                }
            }
        }
    }
}
