//! Conversion of values to typed expressions, the form in which threads exchange them. Equal values
//! give equal expressions.
//!
//! Values do not store the sorts of numbers: a conversion such as `Pos2Nat` is the identity on
//! them, and a comparison may have operands of other sorts. So an expression is built at its own
//! sort first and then converted to the expected sort; a comparison is made at the least sort that
//! holds both of its sides. Invariant: an expression that is built at a sort has this sort, and
//! every part of it has the sort that its position requires.

use super::MAX_CACHED;
use super::compile::Program;
use super::machine::EvaluationMachine;
use crate::expr::{Expr, ExprKind, Substitution};
use crate::signature::{Builtin, OpKind};
use crate::sort::{SortKind, basic};
use crate::value::{Closure, Rich, Value};
use ahash::AHashMap;
use mu_base::Span;
use mu_base::ids::{OpId, SortId};
use num_bigint::BigInt;

/// Largest number with a shared node for all its occurrences.
const SMALL: u64 = 1 << 12;

/// Shared expressions for frequent leaves.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    operations: AHashMap<OpId, Expr>,
    numbers: AHashMap<(i64, SortId), Expr>,
}

impl EvaluationMachine {
    /// Returns the sort of a value, as far as the value determines it: a number has the narrowest
    /// sort that contains it.
    pub(crate) fn sort_of(&self, p: &Program, v: &Value) -> SortId {
        match v {
            Value::Bool(_) => basic::BOOL,
            Value::Int(n) => match n.signum() {
                1 => basic::POS,
                0 => basic::NAT,
                _ => basic::INT,
            },
            Value::Con(op) | Value::Sym(op) => p.signature.op(*op).sort,
            Value::Nil(sort) => *sort,
            Value::Unknown(u) => self.unknowns.sort(*u),
            Value::Cons(_) => {
                let mut at = v;
                while let Value::Cons(cell) = at {
                    at = &cell.tail;
                }
                self.sort_of(p, at)
            }
            Value::Rich(n) => match &n.kind {
                Rich::Integer(_) => {
                    if v.sign() == Some(1) {
                        basic::POS
                    } else {
                        basic::INT
                    }
                }
                Rich::Rational(_) => basic::REAL,
                Rich::Set(sort, _) | Rich::Bag(sort, _) | Rich::Table(sort, ..) => *sort,
                Rich::Closure(c) => c.lambda.sort,
                Rich::Apply(head, _) => p.signature.domain_range(self.sort_of(p, head)).1,
            },
            Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_) => {
                let (op, args) = v.application();
                result_sort(p, op, args.len())
            }
        }
    }

    /// Builds the expression of a value at a sort. Shared parts are built once, even if several
    /// values share them.
    pub(crate) fn to_expr(&self, p: &Program, v: &Value, sort: SortId) -> Expr {
        convert_to(p, self.to_expr_of_own_sort(p, v, sort), sort)
    }

    /// Builds the expression at the value's own sort, or at the given one if the value belongs to
    /// several.
    fn to_expr_of_own_sort(&self, p: &Program, v: &Value, sort: SortId) -> Expr {
        // The binding of an unknown changes.
        let Some(node) = v.shared_address().filter(|_| !v.is_open()) else {
            return stacker::maybe_grow(128 << 10, 4 << 20, || self.to_expr_deep(p, v, sort));
        };
        self.shared_expr(v, node, || self.to_expr_deep(p, v, sort))
    }

    /// Chooses the comparison of an undecided term: at the least sort that is not below its own and
    /// holds both sides.
    fn comparison(&self, p: &Program, op: OpId, args: &[Value]) -> OpId {
        let ([a, b], OpKind::Builtin(builtin)) = (args, &p.signature.op(op).kind) else {
            return op;
        };
        let own = p.op(op).first;
        if number_index(own).is_none()
            || !matches!(builtin, Builtin::Equal | Builtin::Less | Builtin::LessEqual)
        {
            return op;
        }
        let sides =
            [a, b].map(|v| self.sort_of(p, v)).into_iter().filter(|s| number_index(*s).is_some());
        let wide = sides.fold(own, Ord::max);
        let info = p.sort(wide);
        match builtin {
            _ if wide == own => op,
            Builtin::Equal => info.equal,
            Builtin::Less => info.less,
            _ => info.less_equal,
        }
    }

    /// Returns the cached expression of a shared node, building it at first use.
    fn shared_expr(&self, v: &Value, node: *const Value, build: impl FnOnce() -> Expr) -> Expr {
        if let Some((_, known)) = self.reflected.borrow().get(&node) {
            return known.clone();
        }
        let e = stacker::maybe_grow(128 << 10, 4 << 20, build);
        self.reflects(v, &e);
        e
    }

    /// Caches the normal expression of a value; the entry holds the value.
    pub(crate) fn reflects(&self, v: &Value, e: &Expr) {
        // The cache entry itself is another holder.
        let held = v.clone();
        if let Some(node) = v.shared_address() {
            let mut reflected = self.reflected.borrow_mut();
            if reflected.len() > MAX_CACHED {
                reflected.clear();
            }
            reflected.insert(node, (held, e.clone()));
        }
    }

    /// Returns an operation as an expression; one node for all its occurrences, which are frequent.
    fn operation(&self, p: &Program, op: OpId) -> Expr {
        self.leaves
            .borrow_mut()
            .operations
            .entry(op)
            .or_insert_with(|| Expr::op(&p.signature, op))
            .clone()
    }

    /// Returns a number; one node for all occurrences of a small one.
    fn number(&self, n: i64, sort: SortId) -> Expr {
        if n.unsigned_abs() > SMALL {
            return Expr::number(n, sort);
        }
        self.leaves
            .borrow_mut()
            .numbers
            .entry((n, sort))
            .or_insert_with(|| Expr::number(n, sort))
            .clone()
    }

    /// Builds the expression of a list of a sort; a shared tail is built once.
    fn list_to_expr(&self, p: &Program, v: &Value, sort: SortId) -> Expr {
        let element = match p.signature.sorts.kind(sort) {
            SortKind::List(e) => *e,
            _ => sort,
        };
        let (mut heads, mut at) = (Vec::new(), v);
        let mut rest = None;
        while let Value::Cons(cell) = at {
            if !heads.is_empty()
                && let Some(node) = at.shared_address().filter(|_| !at.is_open())
            {
                rest = Some(self.shared_expr(at, node, || self.list_to_expr(p, at, sort)));
                break;
            }
            heads.push(&cell.head);
            at = &cell.tail;
        }
        let mut list = rest.unwrap_or_else(|| self.to_expr(p, at, sort));
        let insert = self.operation(p, p.sort(sort).insert.expect("a list sort has `|>`"));
        for head in heads.into_iter().rev() {
            let head = self.to_expr(p, head, element);
            list =
                Expr::new(ExprKind::Apply(insert.clone(), vec![head, list]), sort, Span::default());
        }
        list
    }

    fn to_expr_deep(&self, p: &Program, v: &Value, sort: SortId) -> Expr {
        let s = &p.signature;
        let node = |kind, sort| Expr::new(kind, sort, Span::default());
        match v {
            Value::Bool(b) => self.operation(p, if *b { p.truth.0 } else { p.truth.1 }),
            Value::Int(n) => self.number(*n, number_sort(sort)),
            Value::Con(op) | Value::Sym(op) => self.operation(p, *op),
            Value::Unknown(u) => {
                let var = self
                    .unknowns
                    .var(*u)
                    .expect("an unknown that a search made stays in the search");
                node(ExprKind::Var(var), self.unknowns.sort(*u))
            }
            Value::Nil(own) => self.operation(p, p.sort(*own).empty.expect("a list sort has `[]`")),
            Value::Cons(_) => self.list_to_expr(p, v, self.sort_of(p, v)),
            Value::Rich(n) => match &n.kind {
                Rich::Integer(n) => Expr::number(n.clone(), number_sort(sort)),
                Rich::Rational(r) => {
                    let number = |n: &BigInt| Expr::number(n.clone(), basic::REAL);
                    Expr::apply(s, p.divide, vec![number(r.numer()), number(r.denom())])
                }
                Rich::Set(own, elements) => {
                    let entries = elements.iter().map(|e| (e, None));
                    self.collection(
                        p,
                        if own != &sort && is_collection(p, sort) { sort } else { *own },
                        &mut entries.rev(),
                    )
                }
                Rich::Bag(own, entries) => {
                    let entries = entries.iter().map(|(e, n)| (e, Some(n)));
                    self.collection(
                        p,
                        if own != &sort && is_collection(p, sort) { sort } else { *own },
                        &mut entries.rev(),
                    )
                }
                Rich::Closure(closure) => self.closure_expr(p, closure),
                Rich::Table(own, base, entries) => {
                    let (domain, range) = s.domain_range(*own);
                    let key_sort = domain[0];
                    let update = self.operation(
                        p,
                        p.sort(*own)
                            .insert
                            .expect("a sort of functions of one argument has an update"),
                    );
                    let mut f = self.to_expr(p, base, *own);
                    for (k, v) in entries.iter() {
                        let (k, v) = (self.to_expr(p, k, key_sort), self.to_expr(p, v, range));
                        f = node(ExprKind::Apply(update.clone(), vec![f, k, v]), *own);
                    }
                    f
                }
                Rich::Apply(head, args) => {
                    let own = self.sort_of(p, head);
                    let (domain, range) = s.domain_range(own);
                    let args =
                        args.iter().zip(domain).map(|(a, d)| self.to_expr(p, a, *d)).collect();
                    node(ExprKind::Apply(self.to_expr(p, head, own), args), range)
                }
            },
            Value::App1(_) | Value::App2(_) | Value::App3(_) | Value::AppN(_) => {
                let (op, args) = v.application();
                let mut e = self.operation(p, self.comparison(p, op, args));
                let mut left = args;
                while !left.is_empty() {
                    let (domain, range) = s.domain_range(e.sort);
                    let (group, rest) = left.split_at(domain.len().clamp(1, left.len()));
                    let group =
                        group.iter().zip(domain).map(|(a, d)| self.to_expr(p, a, *d)).collect();
                    left = rest;
                    e = node(ExprKind::Apply(e, group), range);
                }
                e
            }
        }
    }

    /// Builds a finite set or bag from its elements, last first.
    fn collection(
        &self,
        p: &Program,
        sort: SortId,
        entries: &mut dyn Iterator<Item = (&Value, Option<&Value>)>,
    ) -> Expr {
        let s = &p.signature;
        let node = |kind, sort| Expr::new(kind, sort, Span::default());
        let info = p.sort(sort);
        let finite = info.coerce.map_or(sort, |op| s.domain_range(s.op(op).sort).0[0]);
        let element = match s.sorts.kind(finite) {
            SortKind::FSet(e) | SortKind::FBag(e) => *e,
            _ => finite,
        };
        let info_finite = p.sort(finite);
        let insert = Expr::op(s, info_finite.insert.expect("a finite collection has an insertion"));
        let mut out = Expr::op(s, info_finite.empty.expect("a finite collection has an empty one"));
        for (e, count) in entries {
            let mut args = vec![self.to_expr(p, e, element)];
            args.extend(count.map(|n| self.to_expr(p, n, basic::NAT)));
            args.push(out);
            out = node(ExprKind::Apply(insert.clone(), args), finite);
        }
        match info.coerce {
            Some(op) => node(ExprKind::Apply(Expr::op(s, op), vec![out]), sort),
            None => out,
        }
    }

    fn closure_expr(&self, p: &Program, closure: &Closure) -> Expr {
        let mut by = Substitution::new();
        for (var, value) in closure.lambda.free.iter().zip(&closure.captures) {
            let sort = super::compile::sort_of_var(&p.signature, *var, &closure.lambda.expr)
                .unwrap_or_else(|_| self.sort_of(p, value));
            by.insert(*var, self.to_expr(p, value, sort));
        }
        closure.lambda.expr.substitute(&by)
    }
}

fn is_collection(p: &Program, sort: SortId) -> bool {
    matches!(
        p.signature.sorts.kind(sort),
        SortKind::Set(_) | SortKind::FSet(_) | SortKind::Bag(_) | SortKind::FBag(_)
    )
}

fn number_sort(sort: SortId) -> SortId {
    if number_index(sort).is_some() { sort } else { basic::INT }
}

/// Numbers the sorts of numbers, from `Pos` to `Real`.
fn number_index(sort: SortId) -> Option<usize> {
    (basic::POS.number()..=basic::REAL.number())
        .contains(&sort.number())
        .then(|| (sort.number() - basic::POS.number()) as usize)
}

/// Converts an expression to a sort: adds the conversion that values do not show.
fn convert_to(p: &Program, e: Expr, sort: SortId) -> Expr {
    if e.sort == sort {
        return e;
    }
    let apply = |op: OpId, e: Expr| {
        Expr::new(ExprKind::Apply(Expr::op(&p.signature, op), vec![e]), sort, Span::default())
    };
    if let (Some(from), Some(to)) = (number_index(e.sort), number_index(sort)) {
        return apply(p.conversions[from][to], e);
    }
    match p.sort(sort).coerce {
        Some(op) if p.signature.domain_range(p.signature.op(op).sort).0 == [e.sort] => apply(op, e),
        _ => e,
    }
}

/// Returns the sort of an operation applied to a number of arguments.
pub fn result_sort(p: &Program, op: OpId, args: usize) -> SortId {
    let mut sort = p.signature.op(op).sort;
    let mut left = args;
    while left > 0 {
        let (domain, range) = p.signature.domain_range(sort);
        left = left.saturating_sub(domain.len().max(1));
        sort = range;
    }
    sort
}
