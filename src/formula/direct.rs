//! Direct evaluator of typed formulas on a small explicit transition system: the textbook
//! semantics, by sets of states. It is the oracle of the engines and the checker of evidence, and
//! shares only the data engine with them: no normal form, no automaton, no game.
//!
//! Input: typed formula, transition system, multi-actions of its labels. Output: the set of states
//! that satisfy the formula. Fixed points are iterated from bottom or top for each required
//! valuation of their parameters; nested ones are iterated anew each time. Quantifiers range over
//! finite sorts completely. Over an infinite sort they range over the values that occur in the
//! labels (with their parts), the adjacent numbers, and some small ones. This is exact if no other
//! value can be distinguished from these, as for variables that are guarded by an action's
//! arguments.
//!
//! Cost: exponential in the nesting of fixed points; for small systems only.

use super::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use ahash::{AHashMap, AHashSet};
use fixedbitset::FixedBitSet;
use mu_base::ids::{FixId, LabelId, SortId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::engine::{Code, Engine, Program, Value};
use mu_data::expr::{DataSpec, Expr, ExprKind};
use mu_data::signature::OpKind;
use mu_data::sort::{SortKind, basic};
use mu_lts::Lts;
use mu_process::labels::{ActionLabels, MultiAction};
use num_bigint::BigInt;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

type Environment = AHashMap<VarId, Value>;
type FixpointTable = AHashMap<Vec<Value>, FixedBitSet>;

/// Limit on the values over which one quantifier ranges.
const MOST_VALUES: usize = 100_000;

/// Returns the states of `lts` that satisfy the formula.
pub fn satisfying_states(
    formula: &TypedFormula,
    lts: &Lts,
    labels: &dyn ActionLabels,
) -> Result<FixedBitSet, Diagnostic> {
    let mut naive = DirectEvaluator::new(formula, lts, labels)?;
    naive.state(&formula.formula, &Environment::new())
}

/// True if the initial state satisfies the formula; `None` if that takes more than `fuel`
/// elementary steps.
pub fn holds_within(
    formula: &TypedFormula,
    lts: &Lts,
    labels: &dyn ActionLabels,
    fuel: u64,
) -> Result<Option<bool>, Diagnostic> {
    let mut naive = DirectEvaluator::new(formula, lts, labels)?;
    naive.fuel = fuel;
    match naive.state(&formula.formula, &Environment::new()) {
        Ok(set) => Ok(Some(set.contains(lts.initial.index()))),
        Err(_) if naive.fuel == 0 => Ok(None),
        Err(e) => Err(e),
    }
}

/// Decides as [`holds_within`]. The second flag is true if the result depends on values of an
/// infinite sort that a quantifier omitted; numbers below `also` are included.
pub fn holds_for(
    formula: &TypedFormula,
    lts: &Lts,
    labels: &dyn ActionLabels,
    fuel: u64,
    also: u32,
) -> Result<Option<(bool, bool)>, Diagnostic> {
    let mut naive = DirectEvaluator::with_numbers(formula, lts, labels, also)?;
    naive.fuel = fuel;
    match naive.state(&formula.formula, &Environment::new()) {
        Ok(set) => Ok(Some((set.contains(lts.initial.index()), naive.sampled))),
        Err(_) if naive.fuel == 0 => Ok(None),
        Err(e) => Err(e),
    }
}

/// True if the initial state satisfies the formula.
pub fn holds(
    formula: &TypedFormula,
    lts: &Lts,
    labels: &dyn ActionLabels,
) -> Result<bool, Diagnostic> {
    Ok(satisfying_states(formula, lts, labels)?.contains(lts.initial.index()))
}

struct DirectEvaluator<'a> {
    lts: &'a Lts,
    data: &'a DataSpec,
    engine: Engine,
    actions: Vec<Arc<MultiAction>>,
    values: Vec<Vec<Vec<Value>>>,
    /// Occurring values of infinite sorts.
    occurring: AHashMap<SortId, Vec<Value>>,
    domains: AHashMap<SortId, Rc<Vec<Value>>>,
    codes: AHashMap<Expr, (Code, Vec<VarId>)>,
    tables: AHashMap<FixId, Vec<(bool, FixpointTable)>>,
    /// Remaining elementary steps.
    fuel: u64,
    /// True if a quantifier ranged over some values of an infinite sort.
    sampled: bool,
}

/// True if a sort has finitely many elements.
pub fn is_finite(data: &DataSpec, sort: SortId) -> bool {
    fn go(data: &DataSpec, sort: SortId, open: &mut Vec<SortId>) -> bool {
        match data.signature.sorts.kind(sort) {
            SortKind::Bool => true,
            SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => false,
            SortKind::List(_) | SortKind::Bag(_) | SortKind::FBag(_) => false,
            SortKind::Set(s) | SortKind::FSet(s) => go(data, *s, open),
            SortKind::Function(domain, range) => {
                go(data, *range, open) && domain.iter().all(|d| go(data, *d, open))
            }
            SortKind::Named(_) => {
                if open.contains(&sort) {
                    return false;
                }
                let Some(named) = data.signature.sorts.declared_sort(sort) else { return false };
                open.push(sort);
                let finite = !named.constructors.is_empty()
                    && named.constructors.iter().all(|c| {
                        let (domain, _) = data.signature.domain_range(data.signature.op(*c).sort);
                        domain.iter().all(|d| go(data, *d, open))
                    });
                open.pop();
                finite
            }
        }
    }
    go(data, sort, &mut Vec::new())
}

impl<'a> DirectEvaluator<'a> {
    fn new(
        formula: &'a TypedFormula,
        lts: &'a Lts,
        labels: &dyn ActionLabels,
    ) -> Result<Self, Diagnostic> {
        Self::with_numbers(formula, lts, labels, 3)
    }

    fn with_numbers(
        formula: &'a TypedFormula,
        lts: &'a Lts,
        labels: &dyn ActionLabels,
        least: u32,
    ) -> Result<Self, Diagnostic> {
        let engine = Engine::new(Program::compile(&formula.data)?);
        let mut naive = Self {
            lts,
            data: &formula.data,
            engine,
            actions: Vec::new(),
            values: Vec::new(),
            occurring: AHashMap::new(),
            domains: AHashMap::new(),
            codes: AHashMap::new(),
            tables: AHashMap::new(),
            fuel: u64::MAX,
            sampled: false,
        };
        let mut numbers: AHashSet<BigInt> = (0..least.max(3)).map(BigInt::from).collect();
        let used: AHashSet<LabelId> = lts.labels.iter().copied().collect();
        for i in 0..lts.table.texts.len() {
            let label = LabelId::new(i);
            let multi =
                if used.contains(&label) { labels.multi_action(label) } else { Arc::default() };
            let mut values = Vec::new();
            for (_, args) in multi.iter() {
                let mut row = Vec::new();
                for e in args {
                    naive.note_values(e, &mut numbers)?;
                    row.push(naive.engine.from_expr(e)?);
                }
                values.push(row);
            }
            naive.actions.push(multi);
            naive.values.push(values);
        }
        let mut all: Vec<BigInt> = numbers.iter().flat_map(|n| [n - 1, n.clone(), n + 1]).collect();
        all.sort();
        all.dedup();
        for (sort, least) in
            [(basic::POS, Some(1)), (basic::NAT, Some(0)), (basic::INT, None), (basic::REAL, None)]
        {
            for n in &all {
                if least.is_none_or(|l| *n >= BigInt::from(l)) {
                    let v = naive.engine.from_expr(&Expr::number(n.clone(), sort))?;
                    naive.occurring.entry(sort).or_default().push(v);
                }
            }
        }
        for values in naive.occurring.values_mut() {
            let mut seen = AHashSet::new();
            values.retain(|v| seen.insert(v.clone()));
        }
        Ok(naive)
    }

    /// Records the parts of a label's argument.
    fn note_values(&mut self, e: &Expr, numbers: &mut AHashSet<BigInt>) -> Result<(), Diagnostic> {
        let mut stack = vec![e.clone()];
        while let Some(e) = stack.pop() {
            match &e.kind {
                ExprKind::Number(n) => {
                    numbers.insert(n.clone());
                    continue;
                }
                ExprKind::Apply(head, args) => {
                    if matches!(&head.kind, ExprKind::Op(op) if matches!(self.data.signature.op(*op).kind, OpKind::Constructor(_) | OpKind::Builtin(_)))
                    {
                        stack.extend(args.iter().cloned());
                    }
                }
                // A function is an indivisible value.
                ExprKind::Op(_) | ExprKind::Bind(..) => {}
                ExprKind::Var(_) | ExprKind::Where(..) => continue,
            }
            if !matches!(e.sort, basic::POS | basic::NAT | basic::INT)
                && !is_finite(self.data, e.sort)
            {
                let v = self.engine.from_expr(&e)?;
                self.occurring.entry(e.sort).or_default().push(v);
            }
        }
        Ok(())
    }

    fn domain(&mut self, var: VarId) -> Result<Rc<Vec<Value>>, Diagnostic> {
        let sort = self.data.signature.var(var).sort;
        if let Some(d) = self.domains.get(&sort) {
            return Ok(d.clone());
        }
        let domain = if is_finite(self.data, sort) {
            let mut signature = self.data.signature.clone();
            let always = Expr::boolean(&mut signature, true);
            let problem = self.engine.problem(&[var], &always, &[])?;
            let mut all = Vec::new();
            self.engine.solve(&problem, &[], &mut |_, solution| {
                all.push(solution[0].clone());
                Ok(if all.len() > MOST_VALUES {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            })?;
            if all.len() > MOST_VALUES {
                let name = &self.data.signature.var(var).name;
                return Err(Diagnostic::new(
                    Stage::Unsupported,
                    format!("the sort of {name} has too many elements for direct evaluation"),
                ));
            }
            all
        } else {
            self.occurring.get(&sort).cloned().unwrap_or_default()
        };
        let domain = Rc::new(domain);
        self.domains.insert(sort, domain.clone());
        Ok(domain)
    }

    fn value(&mut self, e: &Expr, env: &Environment) -> Result<Value, Diagnostic> {
        if !self.codes.contains_key(e) {
            let mut free = Vec::new();
            e.free_vars(&mut free);
            let code = self.engine.code(e, &free)?;
            self.codes.insert(e.clone(), (code, free));
        }
        let (code, free) = &self.codes[e];
        let mut values = Vec::with_capacity(free.len());
        for v in free {
            let value = env.get(v).ok_or_else(|| {
                Diagnostic::new(Stage::Internal, "a data variable is out of scope in a formula")
            })?;
            values.push(value.clone());
        }
        self.engine.eval(code, &values)
    }

    /// Returns an argument of a fixed point, with functions and infinite sets in normal form, so
    /// that one function is one instance.
    fn argument(&mut self, e: &Expr, env: &Environment) -> Result<Value, Diagnostic> {
        let value = self.value(e, env)?;
        Ok(self.engine.normal_functions(&value, e.sort).into_owned())
    }

    fn test(&mut self, e: &Expr, env: &Environment) -> Result<bool, Diagnostic> {
        let value = self.value(e, env)?;
        if value.is_true() {
            Ok(true)
        } else if value.is_false() {
            Ok(false)
        } else {
            Err(Diagnostic::at(
                Stage::Data,
                e.span,
                "a condition of the formula rewrites to neither true nor false",
            ))
        }
    }

    fn burn(&mut self, steps: u64) -> Result<(), Diagnostic> {
        self.fuel = self.fuel.saturating_sub(steps);
        if self.fuel == 0 {
            Err(Diagnostic::new(Stage::Unsupported, "the direct evaluation takes too long"))
        } else {
            Ok(())
        }
    }

    fn full(&self, value: bool) -> FixedBitSet {
        let mut set = FixedBitSet::with_capacity(self.lts.state_count());
        set.set_range(.., value);
        set
    }

    fn state(
        &mut self,
        f: &TypedStateFormula,
        env: &Environment,
    ) -> Result<FixedBitSet, Diagnostic> {
        self.burn(1 + self.lts.state_count() as u64 / 64)?;
        stacker::maybe_grow(256 << 10, 4 << 20, || {
            Ok(match &f.kind {
                StateKind::True => self.full(true),
                StateKind::False => self.full(false),
                StateKind::Val(e) => {
                    let b = self.test(e, env)?;
                    self.full(b)
                }
                StateKind::Not(g) => complement(self.state(g, env)?),
                StateKind::And(a, b) => {
                    let mut a = self.state(a, env)?;
                    if a.is_clear() {
                        return Ok(a);
                    }
                    a.intersect_with(&self.state(b, env)?);
                    a
                }
                StateKind::Or(a, b) => {
                    let mut a = self.state(a, env)?;
                    if a.is_full() {
                        return Ok(a);
                    }
                    a.union_with(&self.state(b, env)?);
                    a
                }
                StateKind::Implies(a, b) => {
                    let a = self.state(a, env)?;
                    if a.is_clear() {
                        return Ok(self.full(true));
                    }
                    let mut a = complement(a);
                    a.union_with(&self.state(b, env)?);
                    a
                }
                StateKind::Forall(vars, g) | StateKind::Exists(vars, g) => {
                    let all = matches!(f.kind, StateKind::Forall(..));
                    self.sampled |= vars
                        .iter()
                        .any(|v| !is_finite(self.data, self.data.signature.var(*v).sort));
                    let mut result = self.full(all);
                    let mut env = env.clone();
                    self.quantify(vars, g, all, &mut env, &mut result)?;
                    result
                }
                StateKind::Must(r, g) => {
                    let target = self.state(g, env)?;
                    complement(self.pre_image(r, complement(target), env)?)
                }
                StateKind::May(r, g) => {
                    let target = self.state(g, env)?;
                    self.pre_image(r, target, env)?
                }
                StateKind::Fix { least, var, params, body } => {
                    let mut start = Vec::new();
                    for (_, e) in params {
                        start.push(self.argument(e, env)?);
                    }
                    let bottom = self.full(!*least);
                    let table: FixpointTable = [(start.clone(), bottom)].into_iter().collect();
                    self.tables.entry(*var).or_default().push((*least, table));
                    let result = self.iterate(*var, params, body, env);
                    let table = self.tables.get_mut(var).and_then(Vec::pop);
                    result?;
                    table.and_then(|(_, mut t)| t.remove(&start)).unwrap_or_default()
                }
                StateKind::Var(var, args) => {
                    let mut key = Vec::new();
                    for e in args {
                        key.push(self.argument(e, env)?);
                    }
                    let states = self.lts.state_count();
                    let Some((least, table)) = self.tables.get_mut(var).and_then(|t| t.last_mut())
                    else {
                        return Err(Diagnostic::at(
                            Stage::Formula,
                            f.span,
                            "a fixed-point variable is not bound here",
                        ));
                    };
                    let least = *least;
                    table
                        .entry(key)
                        .or_insert_with(|| {
                            let mut set = FixedBitSet::with_capacity(states);
                            set.set_range(.., !least);
                            set
                        })
                        .clone()
                }
            })
        })
    }

    fn iterate(
        &mut self,
        var: FixId,
        params: &[(VarId, Expr)],
        body: &TypedStateFormula,
        env: &Environment,
    ) -> Result<(), Diagnostic> {
        loop {
            let table = &self.tables[&var].last().expect("pushed by the caller").1;
            let keys: Vec<Vec<Value>> = table.keys().cloned().collect();
            let before = table.len();
            let mut changed = false;
            for key in keys {
                let mut env = env.clone();
                env.extend(params.iter().map(|p| p.0).zip(key.iter().cloned()));
                let new = self.state(body, &env)?;
                let table = &mut self
                    .tables
                    .get_mut(&var)
                    .and_then(|t| t.last_mut())
                    .expect("pushed by the caller")
                    .1;
                if table[&key] != new {
                    table.insert(key, new);
                    changed = true;
                }
            }
            if !changed && self.tables[&var].last().expect("pushed by the caller").1.len() == before
            {
                return Ok(());
            }
        }
    }

    fn quantify(
        &mut self,
        vars: &[VarId],
        body: &TypedStateFormula,
        all: bool,
        env: &mut Environment,
        result: &mut FixedBitSet,
    ) -> Result<(), Diagnostic> {
        let Some((first, rest)) = vars.split_first() else {
            let one = self.state(body, env)?;
            if all {
                result.intersect_with(&one)
            } else {
                result.union_with(&one)
            }
            return Ok(());
        };
        for value in self.domain(*first)?.iter() {
            env.insert(*first, value.clone());
            self.quantify(rest, body, all, env, result)?;
        }
        Ok(())
    }

    /// Returns the states with an `r`-path into the target.
    fn pre_image(
        &mut self,
        r: &Regular,
        target: FixedBitSet,
        env: &Environment,
    ) -> Result<FixedBitSet, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || match r {
            Regular::Action(a) => {
                let fits = self.matching_labels(a, env)?;
                let mut out = self.full(false);
                for s in 0..self.lts.state_count() {
                    let state = mu_base::ids::StateId::new(s);
                    if self
                        .lts
                        .successors(state)
                        .any(|(l, t)| fits.contains(l.index()) && target.contains(t.index()))
                    {
                        out.insert(s);
                    }
                }
                Ok(out)
            }
            Regular::Seq(a, b) => {
                let rest = self.pre_image(b, target, env)?;
                self.pre_image(a, rest, env)
            }
            Regular::Alt(a, b) => {
                let mut out = self.pre_image(a, target.clone(), env)?;
                out.union_with(&self.pre_image(b, target, env)?);
                Ok(out)
            }
            Regular::Star(a) => {
                let mut out = target;
                loop {
                    let mut next = self.pre_image(a, out.clone(), env)?;
                    next.union_with(&out);
                    if next == out {
                        return Ok(out);
                    }
                    out = next;
                }
            }
            Regular::Plus(a) => {
                let star = Regular::Star(a.clone());
                let rest = self.pre_image(&star, target, env)?;
                self.pre_image(a, rest, env)
            }
        })
    }

    /// Returns the labels in the set of an action formula.
    fn matching_labels(
        &mut self,
        a: &Action,
        env: &Environment,
    ) -> Result<FixedBitSet, Diagnostic> {
        let n = self.actions.len();
        let mut env = env.clone();
        let mut out = FixedBitSet::with_capacity(n);
        for l in 0..n {
            if self.fits(a, l, &mut env)? {
                out.insert(l);
            }
        }
        Ok(out)
    }

    fn fits(
        &mut self,
        a: &Action,
        label: usize,
        env: &mut Environment,
    ) -> Result<bool, Diagnostic> {
        self.burn(1)?;
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            Ok(match a {
                Action::True => true,
                Action::False => false,
                Action::Val(e) => self.test(e, env)?,
                Action::Multi(acts) => {
                    let multi = self.actions[label].clone();
                    if multi.len() != acts.len() || multi.iter().zip(acts).any(|(m, a)| m.0 != a.0)
                    {
                        return Ok(false);
                    }
                    // Equal as multisets: equality is an equivalence, so the first match suffices.
                    let mut given: Vec<_> =
                        multi.iter().map(|m| m.0).zip(self.values[label].iter().cloned()).collect();
                    for (act, args) in acts {
                        let mut wanted = Vec::new();
                        for e in args {
                            wanted.push((e.sort, self.value(e, env)?));
                        }
                        let mut found = None;
                        for (i, (other, values)) in given.iter().enumerate() {
                            if other == act && self.equal_rows(&wanted, values)? {
                                found = Some(i);
                                break;
                            }
                        }
                        let Some(i) = found else { return Ok(false) };
                        given.swap_remove(i);
                    }
                    true
                }
                Action::Not(a) => !self.fits(a, label, env)?,
                Action::And(a, b) => self.fits(a, label, env)? && self.fits(b, label, env)?,
                Action::Or(a, b) => self.fits(a, label, env)? || self.fits(b, label, env)?,
                Action::Implies(a, b) => !self.fits(a, label, env)? || self.fits(b, label, env)?,
                Action::Forall(vars, b) => self.fits_quantified(vars, b, true, label, env)?,
                Action::Exists(vars, b) => self.fits_quantified(vars, b, false, label, env)?,
            })
        })
    }

    /// Compares the arguments of an action with those of a label, as `==` does.
    ///
    /// # Errors
    /// The equations do not decide, as for `f(1) == f(2)` if `f` has none.
    fn equal_rows(
        &mut self,
        wanted: &[(SortId, Value)],
        given: &[Value],
    ) -> Result<bool, Diagnostic> {
        let mut undecided = false;
        for ((sort, a), b) in wanted.iter().zip(given) {
            let same = self.engine.equal(*sort, a, b)?;
            if same.is_false() {
                return Ok(false);
            }
            undecided |= !same.is_true();
        }
        if undecided {
            return Err(Diagnostic::new(
                Stage::Data,
                "the equations do not decide whether an action matches a label",
            ));
        }
        Ok(true)
    }

    fn fits_quantified(
        &mut self,
        vars: &[VarId],
        a: &Action,
        all: bool,
        label: usize,
        env: &mut Environment,
    ) -> Result<bool, Diagnostic> {
        let Some((first, rest)) = vars.split_first() else { return self.fits(a, label, env) };
        self.sampled |= !is_finite(self.data, self.data.signature.var(*first).sort);
        for value in self.domain(*first)?.iter() {
            env.insert(*first, value.clone());
            if self.fits_quantified(rest, a, all, label, env)? != all {
                return Ok(!all);
            }
        }
        Ok(all)
    }
}

fn complement(mut set: FixedBitSet) -> FixedBitSet {
    set.toggle_range(..);
    set
}
