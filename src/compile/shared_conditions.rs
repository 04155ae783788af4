//! Shared conditions without sum variables: evaluated before any enumeration, and once per state
//! for all groups that contain them.
//!
//! In: a group's condition. Out: the numbers of its conjuncts of this kind, up to the last that
//! calls a function or occurs in other groups as well; a negation shares the number of its operand.
//! `sum x, y. (empty(x, y, b) && !wins(b)) -> …` and `wins(b) -> …` evaluate `wins(b)` once in a
//! state. Cost: the last answer of each condition is cached, and earlier ones while they recur: a
//! condition on one line of a board soon has answers for all its contents.
//!
//! Invariant: if a condition has no truth value, or its evaluation fails, the whole condition is
//! evaluated instead, which reports the reason. A condition on many variables is answered by the
//! variables that its evaluation inspects ([`super::decision_tree`]).

use super::GroupCode;
use super::answer_cache::AnswerCache;
use super::decision_tree::{DecisionTree, LookupResult, OpenLeaf};
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::{SortId, VarId};
use mu_data::engine::{Code, Engine, PartialValue, Value};
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, OpKind, Signature};

/// Condition with its cached answers.
struct CachedCondition {
    code: Code,
    vars: Vec<VarId>,
    /// Numbers of the values of the last evaluation, and the answer.
    last: Option<(Vec<u32>, bool)>,
    before: AnswerCache<bool>,
    /// For a condition on many variables: answers by the values that the evaluation inspects, and
    /// the sorts of the variables.
    decisions: Option<(DecisionTree, Vec<SortId>)>,
}

/// Minimum number of variables of a condition without calls that several groups share. With fewer,
/// evaluation is as fast as a lookup.
const WIDE: usize = 3;

/// Minimum number of variables of a condition that has a decision tree.
const MANY: usize = 5;

/// Strips a negation from a condition. The result is true if there was one.
fn plain<'e>(signature: &Signature, e: &'e Expr) -> (&'e Expr, bool) {
    match e.as_builtin(signature) {
        Some((Builtin::Not, [inner])) => (inner, true),
        _ => (e, false),
    }
}

/// Returns the wide conditions on the state alone that several groups contain.
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

/// Use of a shared condition by a group.
pub(super) struct ConditionUse {
    number: usize,
    negated: bool,
    /// Positions of its variables among the slots that the group reads.
    positions: Vec<usize>,
}

/// All shared conditions of a thread.
#[derive(Default)]
pub(super) struct SharedConditions {
    numbers: AHashMap<Expr, usize>,
    all: Vec<CachedCondition>,
    key: Vec<u32>,
    /// Open leaf of the decision tree at the last unanswered lookup.
    place: Option<OpenLeaf>,
    /// Positions that the last lookup inspected.
    seen: Vec<usize>,
}

/// True if evaluating an expression may call a function of the user.
fn calls(signature: &Signature, e: &Expr) -> bool {
    let mut found = false;
    e.each_op(&mut |op| found |= matches!(signature.op(op).kind, OpKind::Mapping));
    found
}

impl SharedConditions {
    /// Takes the shared conditions out of a guard. Returns them and the remaining conjuncts.
    pub(super) fn of(
        &mut self,
        engine: &mut Engine,
        (guard, reads): (&Expr, &[VarId]),
        common: &AHashSet<Expr>,
    ) -> Result<(Vec<ConditionUse>, Vec<Expr>), Diagnostic> {
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
        let is_shared = |c: &Expr| calls(signature, c) || common.contains(plain(signature, c).0);
        let Some(last) =
            (0..conjuncts.len()).rev().find(|&i| first[i].is_some() && is_shared(&conjuncts[i]))
        else {
            return Ok((Vec::new(), conjuncts));
        };
        let (mut uses, mut rest) = (Vec::new(), Vec::new());
        for (i, (c, vars)) in conjuncts.into_iter().zip(first).enumerate() {
            let Some(vars) = vars.filter(|_| i <= last) else {
                rest.push(c);
                continue;
            };
            let (positive, negated) = plain(signature, &c);
            let positive = positive.clone();
            let number = match self.numbers.get(&positive) {
                Some(&known) => known,
                None => {
                    let code = engine.code(&positive, &vars)?;
                    let sorts = || vars.iter().map(|v| signature.var(*v).sort).collect();
                    let decisions =
                        (vars.len() >= MANY).then(|| (DecisionTree::default(), sorts()));
                    self.all.push(CachedCondition {
                        code,
                        vars,
                        last: None,
                        before: AnswerCache::default(),
                        decisions,
                    });
                    self.numbers.insert(positive, self.all.len() - 1);
                    self.all.len() - 1
                }
            };
            let position =
                |v: &VarId| reads.iter().position(|r| r == v).expect("each variable is read");
            uses.push(ConditionUse {
                number,
                negated,
                positions: self.all[number].vars.iter().map(position).collect(),
            });
        }
        Ok((uses, rest))
    }

    /// True if all of these hold, according to the caches; `None` if one of them is not cached.
    pub(super) fn cached_truth(&mut self, uses: &[ConditionUse], numbers: &[u32]) -> Option<bool> {
        for q in uses {
            if self.answer(q, numbers)? == q.negated {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns the cached answer; if there is none, `key` then holds the cache key.
    fn answer(&mut self, q: &ConditionUse, numbers: &[u32]) -> Option<bool> {
        let known = &mut self.all[q.number];
        self.place = None;
        if let Some((decisions, _)) = &mut known.decisions {
            self.seen.clear();
            match decisions.find(|i| numbers[q.positions[i]], |i| self.seen.push(i)) {
                LookupResult::Answer(answer) => return Some(answer),
                LookupResult::Open(place) => {
                    self.place = Some(place);
                    return None;
                }
                LookupResult::Uncached => {}
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

    /// True if all of these hold for these values with their numbers; `None` if one of them has no
    /// truth value, so that the whole condition must be evaluated.
    pub(super) fn hold(
        &mut self,
        engine: &mut Engine,
        uses: &[ConditionUse],
        numbers: &[u32],
        env: &[Value],
    ) -> Option<bool> {
        for q in uses {
            let answer = match self.answer(q, numbers) {
                Some(answer) => answer,
                None if self.place.is_some() => self.evaluate_with_tree(engine, q, numbers, env)?,
                None => {
                    let known = &mut self.all[q.number];
                    let values: Vec<Value> = q.positions.iter().map(|&i| env[i].clone()).collect();
                    let value = engine.eval(&known.code, &values).ok()?;
                    if !value.is_true() && !value.is_false() {
                        return None;
                    }
                    known.before.insert(&self.key, value.is_true(), 1);
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

    /// Evaluates a condition and adds the answer to its decision tree; `None` if it has no truth
    /// value.
    fn evaluate_with_tree(
        &mut self,
        engine: &mut Engine,
        q: &ConditionUse,
        numbers: &[u32],
        env: &[Value],
    ) -> Option<bool> {
        let known = &mut self.all[q.number];
        let (decisions, sorts) = known.decisions.as_mut()?;
        let mut at = self.place.take()?;
        let mut given: Vec<Option<Value>> = vec![None; sorts.len()];
        self.seen.iter().for_each(|&i| given[i] = Some(env[q.positions[i]].clone()));
        loop {
            match engine.evaluate_partially(&known.code, &given, sorts) {
                PartialValue::Known(value) if value.is_true() || value.is_false() => {
                    decisions.answer(at, value.is_true());
                    decisions.judge();
                    return Some(value.is_true());
                }
                PartialValue::Needs(i) if given[i].is_none() => {
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
