//! Audit of a proof by sampling concrete obligations: each must be covered by an abstract one.
//!
//! In: a finished exploration. Out: the number of concrete obligations, all covered; an internal
//! error if one is not. A sample is an obligation on a random walk through the game of an instance:
//! random values of the symbolic parameters, the steps of the direct semantics
//! (`process::direct_steps`), tests by the naive rewriter. It shares no evaluation with the
//! exploration. What the rewriter does not decide is counted and skipped. Cost: the number of
//! samples, in the time that the caller allows.

use crate::obligations::{Prover, root};
use crate::positions::Position;
use ahash::AHashMap;
use mu_base::ids::{SortId, VarId};
use mu_base::random::Random;
use mu_base::{Diagnostic, Stage};
use mu_data::engine::{Engine, Value};
use mu_data::expr::{Binder, Expr, ExprKind, Substitution};
use mu_data::naive::Naive;
use mu_data::sort::{SortKind, basic};
use mu_process::direct_steps::DirectSteps;
use num_traits::ToPrimitive;
use std::rc::Rc;

/// Limit on the length of a walk.
const LONGEST: usize = 60;
/// Limit on the rewrite steps of one evaluation; beyond it, it is undecided.
const STEP_LIMIT: u64 = 100_000;
/// Limit on the values tried for a variable.
const MAX_VALUES: usize = 12;

/// Number of samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditCounts {
    /// Concrete obligations that are covered.
    pub samples: usize,
    /// Steps of the process among the moves between them.
    pub steps: usize,
    /// Evaluations without a result.
    pub undecided: u64,
}

/// A concrete obligation.
#[derive(Clone)]
struct Concrete {
    position: usize,
    /// Values of the parameters.
    state: Vec<Expr>,
    /// Values of the formula's variables.
    vars: AHashMap<VarId, Expr>,
}

impl Concrete {
    fn at(&self, position: usize) -> Self {
        Self { position, ..self.clone() }
    }
}

impl Prover<'_> {
    /// Samples concrete obligations until there are enough.
    ///
    /// # Errors
    ///
    /// Internal: an obligation is not covered, with its values.
    pub(crate) fn audit(
        &mut self,
        samples: usize,
        seed: u64,
        enough: &dyn Fn() -> bool,
    ) -> Result<AuditCounts, Diagnostic> {
        let process = self.question.process;
        let mut direct = DirectSteps::new(process, self.data.clone());
        let mut random = Random::new(seed);
        let mut numbers = literals(
            &self.data.equations.iter().flat_map(|e| [&e.lhs, &e.rhs]).collect::<Vec<_>>(),
        );
        let parts = process
            .summands
            .iter()
            .flat_map(|s| std::iter::once(&s.guard).chain(s.updates.iter().map(|u| &u.1)));
        numbers.extend(literals(&parts.collect::<Vec<_>>()));
        numbers.retain(|n| (0..1 << 40).contains(n));
        numbers.extend(0..8);
        let mut out = AuditCounts::default();
        while out.samples < samples && !enough() {
            let before = out.samples + out.undecided as usize;
            self.walk(&mut direct, &mut random, &numbers, &mut out)?;
            if out.samples + out.undecided as usize == before {
                break;
            }
        }
        out.undecided += direct.undecided;
        Ok(out)
    }

    fn walk(
        &mut self,
        direct: &mut DirectSteps,
        random: &mut Random,
        numbers: &[i64],
        out: &mut AuditCounts,
    ) -> Result<(), Diagnostic> {
        let process = self.question.process;
        let mut by = Substitution::new();
        for (param, least) in self.question.symbolic {
            let var = process.params[*param].var;
            let n = *random.choose(numbers) + *random.choose(&[0, 0, 1, 2, 40]);
            by.insert(var, Expr::number(n.max(*least), self.signature.var(var).sort));
        }
        let mut state = Vec::new();
        for (i, p) in process.params.iter().enumerate() {
            let own = self.question.initial.iter().find(|(at, _)| *at == i).map(|(_, e)| e);
            let value = match by.get(&p.var) {
                Some(n) => Some(n.clone()),
                None => value(&mut direct.naive, &own.unwrap_or(&p.init).substitute(&by)),
            };
            let Some(value) = value else {
                out.undecided += 1;
                return Ok(());
            };
            state.push(value);
        }
        let mut now = Concrete { position: self.positions.start, state, vars: AHashMap::new() };
        if !self.is_covered(&now, out)? {
            return Ok(());
        }
        for _ in 0..LONGEST {
            let mut next = Vec::new();
            for concrete in self.successors(&now, direct, random, numbers, out) {
                if self.is_covered(&concrete, out)? {
                    next.push(concrete);
                }
            }
            if next.is_empty() {
                break;
            }
            now = random.choose(&next).clone();
        }
        Ok(())
    }

    /// Fails if no abstract obligation covers a concrete one. False if that is not decided, or if
    /// the prover loses the abstract one.
    fn is_covered(&mut self, at: &Concrete, out: &mut AuditCounts) -> Result<bool, Diagnostic> {
        let (mut values, mut numbers) = (Vec::new(), Vec::new());
        let params = self.question.process.params.iter().map(|p| p.var).zip(&at.state);
        let live = self.positions.live[at.position].iter().map(|v| (*v, at.vars.get(v)));
        let live = live.map(|(v, e)| e.map(|e| (v, e))).collect::<Option<Vec<_>>>();
        let Some(live) = live else {
            out.undecided += 1;
            return Ok(false);
        };
        for (v, e) in params.chain(live) {
            let value = self.engine.from_expr(e)?;
            let sort = self.signature.var(v).sort;
            let shape = self.engine.numbers(&value, sort, root(v), &mut |leaf| {
                numbers.push(leaf.offset);
                Value::Unknown(numbers.len() as u32 - 1)
            });
            match shape {
                Ok(shape) => values.push(shape),
                Err(_) => {
                    out.undecided += 1;
                    return Ok(false);
                }
            }
        }
        let unordered = values.iter().any(Engine::is_unordered);
        let values: Rc<[Value]> = values.into();
        let known = self.known.get(&(at.position, values));
        let mut covering =
            known.into_iter().flatten().filter(|n| self.nodes[**n].zone.holds(&numbers)).peekable();
        if covering.peek().is_some() {
            out.samples += 1;
            return Ok(covering.any(|n| !self.lost.contains(n)));
        }
        if unordered {
            out.undecided += 1;
            return Ok(false);
        }
        let names = mu_process::print::parameter_names(self.question.process);
        let shown = |e: &Expr| mu_data::print::expression(&self.signature, e);
        let state = names.iter().zip(&at.state).map(|(name, e)| format!("{name} = {}", shown(e)));
        let vars =
            at.vars.iter().map(|(v, e)| format!("{} = {}", self.signature.var(*v).name, shown(e)));
        let text = "the check of the answer by samples failed: the abstraction does not cover an obligation of an instance";
        Err(Diagnostic::new(Stage::Internal, text)
            .note(format!("state: {}", state.collect::<Vec<_>>().join(", ")))
            .note(format!(
                "formula: {:?}; {}",
                self.positions.all[at.position],
                vars.collect::<Vec<_>>().join(", ")
            )))
    }

    /// Returns successors of a concrete obligation, as far as they are decided.
    fn successors(
        &mut self,
        at: &Concrete,
        direct: &mut DirectSteps,
        random: &mut Random,
        numbers: &[i64],
        out: &mut AuditCounts,
    ) -> Vec<Concrete> {
        let process = self.question.process;
        let by: Substitution = process
            .params
            .iter()
            .map(|p| p.var)
            .zip(at.state.iter().cloned())
            .chain(at.vars.iter().map(|(v, e)| (*v, e.clone())))
            .collect();
        direct.naive.allow(STEP_LIMIT);
        match self.positions.all[at.position].clone() {
            Position::True | Position::False | Position::Test(..) => Vec::new(),
            Position::Unless(e, expected, _, other) => {
                match value(&mut direct.naive, &e.substitute(&by))
                    .and_then(|v| v.as_bool(direct.naive.signature()))
                {
                    Some(b) if b == expected => Vec::new(),
                    Some(_) => vec![at.at(other)],
                    None => {
                        out.undecided += 1;
                        Vec::new()
                    }
                }
            }
            Position::All(next) | Position::Any(next) => next.iter().map(|n| at.at(*n)).collect(),
            Position::Forall(v, next, _) | Position::Exists(v, next, _) => {
                let sort = self.signature.var(v).sort;
                let with = |e: Expr| {
                    let mut found = at.at(next);
                    found.vars.insert(v, e);
                    found
                };
                some_values(sort, &mut direct.naive, &at.state, numbers, random)
                    .into_iter()
                    .map(with)
                    .collect()
            }
            Position::Assign(set, next) => {
                let mut found = at.at(next);
                for (v, e) in set.iter().filter(|(v, _)| self.positions.live[next].contains(v)) {
                    match value(&mut direct.naive, &e.substitute(&by)) {
                        Some(e) => found.vars.insert(*v, e),
                        None => {
                            out.undecided += 1;
                            return Vec::new();
                        }
                    };
                }
                vec![found]
            }
            Position::Box(conditions, next) => {
                let seed = random.next_u64();
                let steps = direct.steps(&at.state, &mut |sort, naive, state| {
                    some_values(sort, naive, state, numbers, &mut Random::new(seed))
                });
                let mut found = Vec::new();
                for step in steps {
                    let Some(condition) = &conditions[step.summand] else { continue };
                    let args = step.label.iter().flat_map(|a| a.1.iter().cloned());
                    let mut by = by.clone();
                    by.extend(self.positions.arguments[step.summand].iter().copied().zip(args));
                    direct.naive.allow(STEP_LIMIT);
                    let values: Vec<Expr> = by.values().cloned().collect();
                    match holds(&mut direct.naive, &condition.substitute(&by), &values) {
                        Some(true) => {
                            out.steps += 1;
                            found.push(Concrete {
                                position: next,
                                state: step.target,
                                vars: at.vars.clone(),
                            });
                        }
                        Some(false) => {}
                        None => out.undecided += 1,
                    }
                }
                found
            }
        }
    }
}

/// Returns the integer literals of expressions.
fn literals(all: &[&Expr]) -> Vec<i64> {
    let mut out = Vec::new();
    let mut pending: Vec<&Expr> = all.to_vec();
    while let Some(e) = pending.pop() {
        match &e.kind {
            ExprKind::Number(n) => out.extend(n.to_i64()),
            ExprKind::Apply(head, args) => pending.extend(args.iter().chain([head])),
            ExprKind::Bind(_, _, body) => pending.push(body),
            ExprKind::Where(body, definitions) => {
                pending.extend(definitions.iter().map(|d| &d.1).chain([body]));
            }
            ExprKind::Var(_) | ExprKind::Op(_) => {}
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Returns the normal form of a closed expression.
fn value(naive: &mut Naive, e: &Expr) -> Option<Expr> {
    e.is_closed().then(|| naive.normal(e))?
}

/// Returns some values of a sort: numbers of the state and next to them, and of the text.
fn some_values(
    sort: SortId,
    naive: &mut Naive,
    state: &[Expr],
    numbers: &[i64],
    random: &mut Random,
) -> Vec<Expr> {
    let low = match naive.signature().sorts.kind(sort) {
        SortKind::Pos => 1,
        SortKind::Nat | SortKind::Int => 0,
        _ => return naive.elements(sort).filter(|all| all.len() <= 64).unwrap_or_default(),
    };
    let own = literals(&state.iter().collect::<Vec<_>>());
    let mut all: Vec<i64> = Vec::new();
    for _ in 0..MAX_VALUES {
        let from = if own.is_empty() || random.chance(1, 3) { numbers } else { &own };
        all.push(random.choose(from) + random.choose(&[-1, 0, 0, 1]));
    }
    all.retain(|n| *n >= low);
    all.sort_unstable();
    all.dedup();
    all.into_iter().map(|n| Expr::number(n, sort)).collect()
}

/// Decides a condition; an `exists` over numbers is true if one of these values satisfies it, else
/// undecided.
fn holds(naive: &mut Naive, e: &Expr, values: &[Expr]) -> Option<bool> {
    if let ExprKind::Bind(Binder::Exists, vars, body) = &e.kind
        && let Some((var, others)) = vars.split_first()
    {
        let sort = naive.signature().var(*var).sort;
        let rest = match others {
            [] => body.clone(),
            _ => Expr::new(
                ExprKind::Bind(Binder::Exists, others.to_vec(), body.clone()),
                e.sort,
                e.span,
            ),
        };
        let mut tried: Vec<Expr> = match naive.elements(sort) {
            Some(all) => all,
            None => values.iter().filter(|v| v.sort == sort).cloned().collect(),
        };
        if [basic::NAT, basic::POS, basic::INT].contains(&sort) {
            let literals = literals(&values.iter().collect::<Vec<_>>());
            tried.extend(literals.into_iter().map(|n| Expr::number(n, sort)));
        }
        let found = tried.into_iter().any(|v| {
            let instance = rest.substitute(&[(*var, v)].into_iter().collect());
            holds(naive, &instance, values) == Some(true)
        });
        return found.then_some(true);
    }
    value(naive, e)?.as_bool(naive.signature())
}
