//! Random concrete values: numbers at and around literals, numbers close to each other, and numbers
//! far beyond all that the abstraction examined.
//!
//! Cost: a few attempts for each number.

use mu_base::ids::SortId;
use mu_base::random::Random;
use mu_data::engine::Engine;
use mu_data::expr::{DataSpec, Expr, ExprKind};
use mu_data::naive::Naive;
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use mu_process::linear::LinearProcess;
use num_traits::{Signed, ToPrimitive};
use std::collections::BTreeSet;
use std::sync::Arc;

/// With more literals than this, sums of two literals are not used as offsets.
const MANY_LITERALS: usize = 200;

/// Random source of values for one valuation of the parameters.
pub struct Draw {
    /// The generator.
    pub random: Random,
    /// Values of the bases: zero, the parameters, the numbers that the formula quantifies over.
    pub valuation: Vec<i64>,
    /// The text's literals.
    literals: Vec<i64>,
    /// Literals, their neighbours, sums of two, and large numbers.
    pool: Vec<i64>,
    /// Numbers drawn for the current state.
    current_numbers: Vec<i64>,
    signature: Arc<Signature>,
    /// Normalises values; it evaluates only values.
    engine: Engine,
}

/// Collects all integer literals of expressions.
pub fn literals<'e>(expressions: impl Iterator<Item = &'e Expr>) -> BTreeSet<i64> {
    let mut out = BTreeSet::new();
    expressions.for_each(|e| collect(e, &mut out));
    out
}

/// Collects all integer literals of a process and its data.
pub fn literals_of(process: &LinearProcess, data: &DataSpec) -> BTreeSet<i64> {
    let equations =
        data.equations.iter().flat_map(|e| [Some(&e.lhs), Some(&e.rhs), e.condition.as_ref()]);
    let summands = process.summands.iter().flat_map(|s| {
        let args = s.actions.iter().flat_map(|a| &a.args);
        std::iter::once(&s.guard).chain(s.updates.iter().map(|u| &u.1)).chain(args)
    });
    literals(equations.flatten().chain(summands).chain(process.params.iter().map(|p| &p.init)))
}

fn collect(e: &Expr, out: &mut BTreeSet<i64>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        ExprKind::Number(n) => out.extend(n.to_i64().filter(|n| n.abs() < 1 << 60)),
        ExprKind::Var(_) | ExprKind::Op(_) => {}
        ExprKind::Apply(head, args) => {
            collect(head, out);
            args.iter().for_each(|a| collect(a, out));
        }
        ExprKind::Bind(_, _, body) => collect(body, out),
        ExprKind::Where(body, definitions) => {
            collect(body, out);
            definitions.iter().for_each(|d| collect(&d.1, out));
        }
    });
}

/// Returns numbers at which answers may change: literals, their neighbours, sums of two, and large
/// numbers.
pub fn boundaries(literals: &BTreeSet<i64>) -> Vec<i64> {
    let around = |n: i64| [n - 1, n, n + 1];
    let some: Vec<i64> = literals.iter().copied().take(MANY_LITERALS).collect();
    let mut all: BTreeSet<i64> = [0, 1, 2].into();
    all.extend(some.iter().copied().flat_map(around));
    for (i, a) in some.iter().take(24).enumerate() {
        all.extend(some.iter().take(24).skip(i).map(|b| a + b));
    }
    all.extend([1 << 31, 1 << 32].into_iter().flat_map(around));
    all.extend([1000, 1 << 20, 1 << 40, 1_000_000_007]);
    all.into_iter().collect()
}

impl Draw {
    /// Creates a source from the literals of the text and the evaluator of the model.
    pub fn new(seed: u64, literals: &BTreeSet<i64>, engine: Engine) -> Self {
        let pool = boundaries(literals);
        let literals = literals.iter().copied().take(MANY_LITERALS).chain([1]).collect();
        let signature = Arc::new(engine.program().signature().clone());
        Self {
            random: Random::new(seed),
            valuation: Vec::new(),
            literals,
            pool,
            current_numbers: Vec::new(),
            signature,
            engine,
        }
    }

    /// Starts a new state.
    pub fn start_state(&mut self) {
        self.current_numbers.clear();
        self.current_numbers.extend(&self.valuation);
    }

    /// Records the numbers of the current state, for drawing numbers close to them.
    pub fn record_numbers(&mut self, e: &Expr) {
        let mut found = BTreeSet::new();
        collect(e, &mut found);
        self.current_numbers.extend(found);
    }

    /// Draws any number.
    pub fn any_number(&mut self) -> i64 {
        match self.random.below(6) {
            0 => *self.random.choose(&self.pool),
            1 => self.random.below(24) as i64,
            2 => self.near_boundary(1),
            3 => {
                let offset = *self.random.choose(&self.literals);
                self.near_boundary(offset)
            }
            4 => {
                let offset = self.random.below(21) as i64;
                self.near_boundary(offset)
            }
            _ => {
                let bits = self.random.below(40);
                let far = self.random.next_u64() >> (63 - bits);
                if self.random.chance(1, 8) { -(far as i64) } else { far as i64 }
            }
        }
    }

    fn near_boundary(&mut self, offset: i64) -> i64 {
        let current_numbers = if self.current_numbers.is_empty() {
            0
        } else {
            *self.random.choose(&self.current_numbers)
        };
        match self.random.below(4) {
            0 => current_numbers,
            1 => current_numbers.saturating_sub(offset),
            _ => current_numbers.saturating_add(offset),
        }
    }

    /// Draws a number that `accept` accepts; `starts` are numbers around which there may be some.
    /// `None` if none of the drawn numbers and of those near `starts` is accepted.
    pub fn number(&mut self, starts: &[i64], accept: impl Fn(i64) -> bool) -> Option<i64> {
        for _ in 0..48 {
            let n = self.any_number();
            if accept(n) {
                self.current_numbers.push(n);
                return Some(n);
            }
        }
        let more = starts
            .iter()
            .map(|s| s.saturating_add(self.random.below(4) as i64))
            .chain(starts.iter().copied());
        let fitting: Vec<i64> = more.filter(|n| accept(*n)).collect();
        let found = (!fitting.is_empty()).then(|| *self.random.choose(&fitting));
        self.current_numbers.extend(found);
        found
    }

    /// Draws values of the bases of these sorts, of which the first is zero. Returns false if
    /// `accept` rejects all attempts.
    pub fn valuate(&mut self, sorts: &[SortId], accept: impl Fn(&[i64]) -> bool) -> bool {
        for _ in 0..400 {
            self.current_numbers = vec![0];
            self.valuation = vec![0];
            for sort in sorts {
                let n = loop {
                    let n = self.any_number();
                    if in_sort(n, *sort) {
                        break n;
                    }
                };
                self.current_numbers.push(n);
                self.valuation.push(n);
            }
            if accept(&self.valuation) {
                return true;
            }
        }
        false
    }

    /// Normalises a value; `None` if it is not a value.
    pub fn normal(&mut self, e: &Expr) -> Option<Expr> {
        let known = self.signature.op_count();
        let mut own = true;
        e.each_op(&mut |op| own &= op.index() < known);
        if !own {
            return None;
        }
        let value = self.engine.from_expr(e).ok()?;
        Some(self.engine.to_expr_at(&value, e.sort))
    }

    /// True if all numbers in a value are in their sorts.
    pub fn has_values(&self, e: &Expr) -> bool {
        let mut all = true;
        numbers(e, &mut |n, sort| all &= n.to_i64().is_some_and(|n| in_sort(n, sort)));
        all
    }

    /// Returns values of a sort: all values of a small sort, otherwise some close to the current
    /// state.
    pub fn values(&mut self, sort: SortId, naive: &mut Naive, state: &[Expr]) -> Vec<Expr> {
        let signature = self.signature.clone();
        if count(&signature, sort, &mut Vec::new()).is_some_and(|n| n <= 64)
            && let Some(mut all) = naive.elements(sort)
        {
            for i in (1..all.len()).rev() {
                all.swap(i, self.random.below(i + 1));
            }
            return all;
        }
        let mut out: Vec<Expr> = Vec::new();
        state.iter().for_each(|e| parts(e, sort, &mut out));
        for _ in 0..12 {
            out.extend(self.value(&signature, sort, 3));
        }
        let mut seen = ahash::AHashSet::new();
        out.retain(|e| seen.insert(e.clone()));
        out.truncate(24);
        out
    }

    fn value(&mut self, signature: &Signature, sort: SortId, depth: u32) -> Option<Expr> {
        if is_number(sort) {
            let n = (0..20).map(|_| self.any_number()).find(|n| in_sort(*n, sort))?;
            return Some(Expr::number(n, sort));
        }
        if sort == basic::BOOL {
            let b = if self.random.chance(1, 2) { Builtin::True } else { Builtin::False };
            return constant(signature, b, sort);
        }
        match signature.sorts.kind(sort) {
            SortKind::List(_) => constant(signature, Builtin::EmptyList, sort),
            SortKind::FSet(_) => constant(signature, Builtin::EmptySet, sort),
            _ => {
                let constructors = &signature.sorts.declared_sort(sort)?.constructors;
                let op = *self.random.choose(constructors);
                let sorts = signature.domain_range(signature.op(op).sort).0.to_vec();
                if signature.op(op).sort == sort {
                    return Some(Expr::op(signature, op));
                }
                let depth = depth.checked_sub(1)?;
                let args = sorts
                    .iter()
                    .map(|s| self.value(signature, *s, depth))
                    .collect::<Option<_>>()?;
                Some(Expr::apply(signature, op, args))
            }
        }
    }
}

fn constant(signature: &Signature, builtin: Builtin, sort: SortId) -> Option<Expr> {
    let found = signature.ops().find(|(_, o)| o.sort == sort && o.kind == OpKind::Builtin(builtin));
    found.map(|(op, _)| Expr::op(signature, op))
}

/// True for sorts of integers.
pub fn is_number(sort: SortId) -> bool {
    [basic::POS, basic::NAT, basic::INT].contains(&sort)
}

/// True if a number is in a sort.
pub fn in_sort(n: i64, sort: SortId) -> bool {
    match sort {
        basic::POS => n.is_positive(),
        basic::NAT => !n.is_negative(),
        _ => true,
    }
}

fn numbers(e: &Expr, record_numbers: &mut dyn FnMut(&num_bigint::BigInt, SortId)) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        ExprKind::Number(n) => record_numbers(n, e.sort),
        ExprKind::Apply(_, args) => args.iter().for_each(|a| numbers(a, record_numbers)),
        _ => {}
    });
}

/// Collects the parts of a value that have a given sort.
pub(super) fn parts(e: &Expr, sort: SortId, out: &mut Vec<Expr>) {
    if out.len() >= 16 {
        return;
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        if e.sort == sort {
            out.push(e.clone());
        }
        if let ExprKind::Apply(_, args) = &e.kind {
            args.iter().for_each(|a| parts(a, sort, out));
        }
    });
}

/// Returns the number of values of a sort, if it is small.
pub(super) fn count(
    signature: &Signature,
    sort: SortId,
    inside: &mut Vec<SortId>,
) -> Option<usize> {
    if sort == basic::BOOL {
        return Some(2);
    }
    if is_number(sort) || inside.contains(&sort) {
        return None;
    }
    inside.push(sort);
    let mut all = 0usize;
    for op in &signature.sorts.declared_sort(sort)?.constructors {
        let op = signature.op(*op);
        let mut tuples = 1usize;
        if op.sort != sort {
            for s in signature.domain_range(op.sort).0 {
                tuples = tuples.saturating_mul(count(signature, *s, inside)?);
            }
        }
        all = all.saturating_add(tuples);
    }
    inside.pop();
    Some(all)
}
