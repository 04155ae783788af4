//! Cover of values by the obligations of a certificate: the same shape, implied constraints.
//!
//! In: values after a step, the obligations at a position. Out: one with solutions that contain the
//! values in every solution of the case. Numbers match numbers, collections match in any order.
//! Obligations are found by position and shape. Cost: the matches of one shape.

use super::Checker;
use super::evaluate::{Values, fails, wrong};
use super::numbers::Constraint;
use crate::certificate::Obligation;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::builtins::linear::least;
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use num_traits::ToPrimitive;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The sum in the place of each number of an obligation.
type Sums = Vec<Option<(usize, i64)>>;
/// Obligations by position and shape.
pub(super) type Index = AHashMap<(usize, u64), Vec<usize>>;

/// True if a binder or a real number occurs in a term: equal values may have different terms.
fn has_several_terms(e: &Expr) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
        _ if e.sort == basic::REAL => true,
        ExprKind::Bind(..) | ExprKind::Where(..) => true,
        ExprKind::Apply(f, xs) => has_several_terms(f) || xs.iter().any(has_several_terms),
        _ => false,
    })
}

/// Returns the obligations by position and shape.
pub(super) fn index_obligations(signature: &Signature, obligations: &[Obligation]) -> Index {
    let mut at = Index::new();
    for (i, o) in obligations.iter().enumerate() {
        let number = |e: &Expr| is_number(signature, e);
        let shapes = o.values.iter().map(|e| shape(signature, e, &number));
        at.entry((o.position, hash_all(shapes))).or_default().push(i);
    }
    at
}

/// True for a variable in the place of a number, and for a literal.
fn is_number(signature: &Signature, e: &Expr) -> bool {
    match &without_conversions(signature, e).kind {
        ExprKind::Var(_) => true,
        ExprKind::Number(n) => n.to_i64().is_some(),
        _ => false,
    }
}

/// Returns a number without conversions between sorts of numbers.
fn without_conversions<'e>(signature: &Signature, e: &'e Expr) -> &'e Expr {
    use Builtin::{NatToInt, PosToInt, PosToNat};
    let mut at = e;
    while let Some((PosToNat | PosToInt | NatToInt, [inner])) = at.as_builtin(signature) {
        at = inner;
    }
    at
}

fn mix(a: u64, b: u64) -> u64 {
    (a ^ b.rotate_left(31)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// Returns the hash of shapes in order.
fn hash_all(shapes: impl Iterator<Item = u64>) -> u64 {
    shapes.fold(7, mix)
}

/// Returns a hash that values which match have in common: numbers count as equal, and collections
/// have no order.
fn shape(signature: &Signature, e: &Expr, number: &dyn Fn(&Expr) -> bool) -> u64 {
    if [basic::POS, basic::NAT, basic::INT].contains(&e.sort) && number(e) {
        return 1;
    }
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let part = |e: &Expr| shape(signature, e, number);
        if is_collection(signature, e) {
            let (held, rest) = entries(signature, e);
            let sum = held.iter().map(|own| hash_all(own.iter().map(part)));
            return mix(sum.fold(held.len() as u64, u64::wrapping_add), part(&rest));
        }
        match &e.kind {
            ExprKind::Apply(f, xs) => hash_all(std::iter::once(f).chain(xs).map(part)),
            // Bound names may differ, and the body has numbers.
            ExprKind::Bind(_, vars, _) => {
                hash_all(vars.iter().map(|v| signature.var(*v).sort.index() as u64))
            }
            _ => {
                let mut state = DefaultHasher::new();
                e.kind.hash(&mut state);
                state.finish()
            }
        }
    })
}

fn is_collection(signature: &Signature, e: &Expr) -> bool {
    matches!(e.as_builtin(signature), Some((Builtin::SetInsert | Builtin::BagInsert, _)))
}

/// Returns the entries of a finite set or bag, each with its arguments other than the rest, and
/// what is left.
fn entries(signature: &Signature, e: &Expr) -> (Vec<Vec<Expr>>, Expr) {
    let (mut out, mut at) = (Vec::new(), e);
    while let Some((Builtin::SetInsert | Builtin::BagInsert, args)) = at.as_builtin(signature) {
        let Some((rest, own)) = args.split_last() else { break };
        out.push(own.to_vec());
        at = rest;
    }
    (out, at.clone())
}

impl Checker<'_> {
    /// Checks that an obligation of these values is covered. Returns the one that covers it.
    pub(super) fn find_cover(
        &mut self,
        position: usize,
        values: &Values,
    ) -> Result<usize, Diagnostic> {
        let params = self.question.process.params.iter().map(|p| p.var);
        let vars = params.chain(self.positions.live[position].iter().copied());
        let own: Vec<Expr> = vars
            .map(|v| values.get(v).cloned().ok_or_else(|| fails("a variable has no value")))
            .collect::<Result<_, _>>()?;
        let signature = self.by.naive.signature();
        let numbers = &self.by.numbers;
        let number = |e: &Expr| numbers.linear(signature, e).is_some();
        let key = hash_all(own.iter().map(|e| shape(signature, e, &number)));
        for i in self.at.get(&(position, key)).into_iter().flatten() {
            let o = &self.certificate.obligations[*i];
            let case = numbers.case.borrow();
            // The numbers of an obligation belong to their sorts.
            let lowest = o.sorts.iter().enumerate();
            let lowest: Vec<Constraint> =
                lowest.filter_map(|(k, sort)| Some((0, k + 1, -least(*sort)?))).collect();
            let implied = |sums: &[Option<(usize, i64)>]| {
                let at = |x: usize| if x == 0 { Some((0, 0)) } else { sums[x - 1] };
                sums.iter().all(Option::is_some)
                    && o.bounds.iter().chain(&lowest).all(|(x, y, c)| match (at(*x), at(*y)) {
                        (Some((a, p)), Some((b, q))) => c
                            .checked_sub(p)
                            .and_then(|c| c.checked_add(q))
                            .is_some_and(|c| case.implies(a, b, c)),
                        _ => false,
                    })
            };
            let pairs = own.iter().cloned().zip(o.values.iter().cloned()).rev().collect();
            let sums = vec![None; o.sorts.len()];
            if own.len() == o.values.len() && self.fits(pairs, sums, &implied) {
                return Ok(*i);
            }
        }
        let shown: Vec<String> = own.iter().map(|e| self.by.term_text(e)).collect();
        let text = format!("no obligation covers a successor: {}", shown.join(", "));
        Err(if own.iter().any(has_several_terms) { fails(text) } else { wrong(text) })
    }

    /// Matches values with those of an obligation, collections in any order. True if the sums in
    /// the place of its numbers satisfy `implied` for some match.
    fn fits(
        &self,
        mut pairs: Vec<(Expr, Expr)>,
        mut sums: Sums,
        implied: &dyn Fn(&[Option<(usize, i64)>]) -> bool,
    ) -> bool {
        let signature = self.by.naive.signature();
        while let Some((e, shape)) = pairs.pop() {
            let number = [basic::POS, basic::NAT, basic::INT].contains(&e.sort);
            if number && let Some(sum) = self.by.numbers.linear(signature, &e) {
                if !self.is_in_place(&shape, sum, &mut sums) {
                    return false;
                }
                continue;
            }
            if is_collection(signature, &e) && is_collection(signature, &shape) {
                let ((xs, end), (ys, other)) = (entries(signature, &e), entries(signature, &shape));
                pairs.push((end, other));
                return xs.len() == ys.len()
                    && orders(xs.len()).any(|order| {
                        let parts = order.iter().zip(&ys).flat_map(|(x, y)| {
                            xs[*x].iter().cloned().zip(y.iter().cloned()).collect::<Vec<_>>()
                        });
                        let rest = pairs.iter().cloned().chain(parts).collect();
                        self.fits(rest, sums.clone(), implied)
                    });
            }
            match (&e.kind, &shape.kind) {
                (ExprKind::Apply(f, xs), ExprKind::Apply(g, ys)) if xs.len() == ys.len() => {
                    pairs.push((f.clone(), g.clone()));
                    pairs.extend(xs.iter().cloned().zip(ys.iter().cloned()));
                }
                (ExprKind::Bind(..), _)
                    if self.matches_binder(&e, &shape, &mut Vec::new(), &mut sums) => {}
                _ if e == shape => {}
                _ => return false,
            }
        }
        implied(&sums)
    }

    /// Matches a term with binders up to the names of bound variables, and numbers as
    /// [`Self::fits`]. `bound`: pairs of bound variables, the innermost last.
    fn matches_binder(
        &self,
        e: &Expr,
        shape: &Expr,
        bound: &mut Vec<(VarId, VarId)>,
        sums: &mut Sums,
    ) -> bool {
        let signature = self.by.naive.signature();
        if let (ExprKind::Var(x), ExprKind::Var(y)) = (&e.kind, &shape.kind)
            && let Some(pair) = bound.iter().rev().find(|p| p.0 == *x || p.1 == *y)
        {
            return *pair == (*x, *y);
        }
        let number = [basic::POS, basic::NAT, basic::INT].contains(&e.sort);
        if number && let Some(sum) = self.by.numbers.linear(signature, e) {
            return self.is_in_place(shape, sum, sums);
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || match (&e.kind, &shape.kind) {
            (ExprKind::Apply(f, xs), ExprKind::Apply(g, ys)) if xs.len() == ys.len() => {
                self.matches_binder(f, g, bound, sums)
                    && xs.iter().zip(ys).all(|(x, y)| self.matches_binder(x, y, bound, sums))
            }
            (ExprKind::Bind(b, xs, body), ExprKind::Bind(c, ys, other)) => {
                let sort = |v: &VarId| signature.var(*v).sort;
                if b != c || !xs.iter().map(sort).eq(ys.iter().map(sort)) {
                    return false;
                }
                let before = bound.len();
                bound.extend(xs.iter().copied().zip(ys.iter().copied()));
                let same = self.matches_binder(body, other, bound, sums);
                bound.truncate(before);
                same
            }
            (ExprKind::Op(_) | ExprKind::Number(_), _) => e == shape,
            // No variable of a binder occurs in them.
            _ => bound.is_empty() && e == shape,
        })
    }

    /// Matches a sum with a number of an obligation.
    fn is_in_place(&self, shape: &Expr, sum: (usize, i64), sums: &mut Sums) -> bool {
        match &without_conversions(self.by.naive.signature(), shape).kind {
            ExprKind::Var(v) => match self.place_of(*v) {
                Some(k) if k < sums.len() && sums[k].is_none_or(|old| old == sum) => {
                    sums[k] = Some(sum);
                    true
                }
                _ => false,
            },
            ExprKind::Number(n) => sum.0 == 0 && n.to_i64() == Some(sum.1),
            _ => false,
        }
    }

    /// Returns the number of an obligation that a variable stands for.
    fn place_of(&self, var: VarId) -> Option<usize> {
        self.place_of.get(&var).copied()
    }
}

/// Returns all orders of the numbers below `n`; only the given one if there are many.
fn orders(n: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut all = vec![Vec::new()];
    for next in 0..n {
        if n > 5 {
            return vec![(0..n).collect()].into_iter();
        }
        let longer = |row: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..=row.len()).map(|at| [&row[..at], &[next], &row[at..]].concat()).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all.into_iter()
}
