//! A small rewriter without compilation, as an oracle for the engine: closed typed expression -> normal form, by matching
//! equations against terms one after the other.
//!
//! It shares no code with the engine and takes the shortest way everywhere. Covered: user equations, Bool, numbers (integers),
//! lists, finite sets, structured sorts, functions (beta reduction, update), `whr`, quantifiers over finite sorts. Terms of
//! anything else stay as they are. Innermost, with lazy `if` and connectives. Cost: of no concern.
#![allow(dead_code)] // each package uses some of it

use mu_base::ids::SortId;
use mu_data::expr::{Binder, DataSpec, Equation, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive};
use std::cmp::Ordering;

/// Rewrites by trial.
#[derive(Debug)]
pub struct Naive {
    spec: DataSpec,
    steps: u64,
}

impl Naive {
    /// A rewriter that gives up after a number of steps.
    pub fn new(spec: &DataSpec, steps: u64) -> Self {
        Self { spec: spec.clone(), steps }
    }

    /// The signature of the normal forms: what was given, with the operations that came up since.
    pub fn signature(&self) -> &Signature {
        &self.spec.signature
    }

    /// The normal form; `None` if the steps are used up.
    pub fn normal(&mut self, e: &Expr) -> Option<Expr> {
        self.steps = self.steps.checked_sub(1)?;
        stacker::maybe_grow(256 << 10, 4 << 20, || match &e.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => Some(e.clone()),
            ExprKind::Op(_) => self.rules(e.clone()),
            ExprKind::Where(body, definitions) => {
                let by = definitions.iter().map(|(v, d)| Some((*v, self.normal(d)?))).collect::<Option<Substitution>>()?;
                self.normal(&body.substitute(&by))
            }
            ExprKind::Bind(binder @ (Binder::Forall | Binder::Exists), vars, body) => {
                let Some((var, others)) = vars.split_first() else { return self.normal(body) };
                let sort = self.spec.signature.var(*var).sort;
                let Some(values) = self.elements(sort) else { return Some(e.clone()) };
                let rest = if others.is_empty() {
                    body.clone()
                } else {
                    Expr::new(ExprKind::Bind(*binder, others.to_vec(), body.clone()), e.sort, e.span)
                };
                for v in values {
                    let instance = self.normal(&rest.substitute(&[(*var, v)].into_iter().collect()))?;
                    match instance.as_bool(&self.spec.signature) {
                        Some(b) if b == (*binder == Binder::Exists) => return Some(instance),
                        Some(_) => {}
                        None => return Some(e.clone()),
                    }
                }
                Some(self.boolean(*binder == Binder::Forall))
            }
            ExprKind::Bind(..) => Some(e.clone()),
            ExprKind::Apply(head, args) => self.apply(e, head, args),
        })
    }

    fn boolean(&mut self, b: bool) -> Expr {
        Expr::boolean(&mut self.spec.signature, b)
    }

    fn apply(&mut self, e: &Expr, head: &Expr, args: &[Expr]) -> Option<Expr> {
        // Lazy operations look at their first argument only.
        let signature = &self.spec.signature;
        if let Some((builtin @ (Builtin::If | Builtin::And | Builtin::Or | Builtin::Implies), _)) = e.as_builtin(signature) {
            let first = self.normal(&args[0])?;
            if let Some(b) = first.as_bool(&self.spec.signature) {
                return match (builtin, b) {
                    (Builtin::If, true) | (Builtin::And, true) | (Builtin::Or, false) | (Builtin::Implies, true) => self.normal(&args[1]),
                    (Builtin::If, false) => self.normal(&args[2]),
                    (Builtin::And, false) => Some(first),
                    _ => Some(self.boolean(true)),
                };
            }
        }
        let head = self.normal(head)?;
        let args: Vec<Expr> = args.iter().map(|a| self.normal(a)).collect::<Option<_>>()?;
        if let ExprKind::Bind(Binder::Lambda, vars, body) = &head.kind {
            let by: Substitution = vars.iter().copied().zip(args).collect();
            return self.normal(&body.substitute(&by));
        }
        if let Some((Builtin::Update, [f, k, v])) = head.as_builtin(&self.spec.signature) {
            let (f, k, v) = (f.clone(), k.clone(), v.clone());
            return match self.same(&k, &args[0]) {
                Some(true) => Some(v),
                Some(false) => self.normal(&Expr::new(ExprKind::Apply(f, args), e.sort, e.span)),
                None => Some(Expr::new(ExprKind::Apply(head.clone(), args), e.sort, e.span)),
            };
        }
        self.rules(Expr::new(ExprKind::Apply(head, args), e.sort, e.span))
    }

    /// A term whose parts are normal forms.
    fn rules(&mut self, e: Expr) -> Option<Expr> {
        for i in 0..self.spec.equations.len() {
            let equation: Equation = self.spec.equations[i].clone();
            let mut by = Substitution::new();
            if !matches(&self.spec.signature, &equation.lhs, &e, &mut by) {
                continue;
            }
            if let Some(c) = &equation.condition {
                let c = self.normal(&c.substitute(&by))?;
                if c.as_bool(&self.spec.signature) != Some(true) {
                    continue;
                }
            }
            return self.normal(&equation.rhs.substitute(&by));
        }
        Some(self.builtin(&e).unwrap_or(e))
    }

    /// What a built-in operation, projection or recogniser gives; `None` if it stays.
    fn builtin(&mut self, e: &Expr) -> Option<Expr> {
        use Builtin::*;
        let ExprKind::Apply(head, args) = &e.kind else { return None };
        let ExprKind::Op(op) = head.kind else { return None };
        match &self.spec.signature.op(op).kind {
            OpKind::Projection(parts) => {
                let (constructor, values) = constructed(&self.spec.signature, &args[0])?;
                let (_, i) = parts.iter().find(|p| p.0 == constructor)?;
                return values.get(*i as usize).cloned();
            }
            OpKind::Recogniser(constructors) => {
                let (constructor, _) = constructed(&self.spec.signature, &args[0])?;
                let b = constructors.contains(&constructor);
                return Some(self.boolean(b));
            }
            _ => {}
        }
        let (builtin, _) = e.as_builtin(&self.spec.signature)?;
        let number = |n: BigInt| Some(Expr::number(n, e.sort));
        let int = |i: usize| match &args[i].kind {
            ExprKind::Number(n) => Some(n.clone()),
            _ => None,
        };
        match builtin {
            Equal => self.same(&args[0], &args[1]).map(|b| self.boolean(b)),
            NotEqual => self.same(&args[0], &args[1]).map(|b| self.boolean(!b)),
            Less | LessEqual | Greater | GreaterEqual => {
                let order = self.order(&args[0], &args[1])?;
                let b = match builtin {
                    Less => order == Ordering::Less,
                    LessEqual => order != Ordering::Greater,
                    Greater => order == Ordering::Greater,
                    _ => order != Ordering::Less,
                };
                Some(self.boolean(b))
            }
            Not => args[0].as_bool(&self.spec.signature).map(|b| self.boolean(!b)),
            And | Or => {
                let decides = builtin == Or;
                match args[1].as_bool(&self.spec.signature) {
                    Some(b) if b == decides => Some(args[1].clone()),
                    Some(_) => Some(args[0].clone()),
                    None => None,
                }
            }
            PosToNat | PosToInt | NatToInt => number(int(0)?),
            NatToPos | IntToPos => int(0).filter(|n| n.is_positive()).and_then(number),
            IntToNat => int(0).filter(|n| !n.is_negative()).and_then(number),
            Max => number(int(0)?.max(int(1)?)),
            Min => number(int(0)?.min(int(1)?)),
            Abs => number(int(0)?.abs()),
            Negate => number(-int(0)?),
            Succ => number(int(0)? + 1),
            Pred => number(int(0)? - 1),
            Add => number(int(0)? + int(1)?),
            Subtract => number(int(0)? - int(1)?),
            Multiply => number(int(0)? * int(1)?),
            Div => int(1).filter(Signed::is_positive).and_then(|m| number(int(0)?.div_floor(&m))),
            Mod => int(1).filter(Signed::is_positive).and_then(|m| number(int(0)?.mod_floor(&m))),
            Snoc => {
                let (mut items, empty) = self.items(&args[0])?;
                items.push(args[1].clone());
                Some(self.chain(Cons, items, empty, e.sort))
            }
            Concat => {
                let (items, _) = self.items(&args[0])?;
                Some(self.chain(Cons, items, args[1].clone(), e.sort))
            }
            At => self.items(&args[0])?.0.get(int(1)?.to_usize()?).cloned(),
            Head => self.items(&args[0])?.0.first().cloned(),
            RHead => self.items(&args[0])?.0.last().cloned(),
            Tail | RTail => {
                let (mut items, empty) = self.items(&args[0])?;
                let at = if builtin == Tail { 0 } else { items.len().checked_sub(1)? };
                (!items.is_empty()).then(|| items.remove(at))?;
                Some(self.chain(Cons, items, empty, e.sort))
            }
            Size => number(BigInt::from(self.items(&args[0])?.0.len())),
            In => {
                for item in self.items(&args[1])?.0 {
                    if self.same(&args[0], &item)? {
                        return Some(self.boolean(true));
                    }
                }
                Some(self.boolean(false))
            }
            SetInsert => {
                let (mut items, empty) = self.items(&args[1])?;
                items.push(args[0].clone());
                self.set(items, empty, e.sort)
            }
            Union | Difference | Intersection if matches!(self.spec.signature.sorts.kind(e.sort), SortKind::FSet(_)) => {
                let ((a, empty), (b, _)) = (self.items(&args[0])?, self.items(&args[1])?);
                if builtin == Union {
                    return self.set(a.into_iter().chain(b).collect(), empty, e.sort);
                }
                let mut kept = Vec::new();
                for x in a {
                    let mut inside = false;
                    for y in &b {
                        inside |= self.same(&x, y)?;
                    }
                    if inside == (builtin == Intersection) {
                        kept.push(x);
                    }
                }
                self.set(kept, empty, e.sort)
            }
            Subset | ProperSubset => {
                let ((a, _), (b, _)) = (self.items(&args[0])?, self.items(&args[1])?);
                let mut included = true;
                for x in &a {
                    let mut inside = false;
                    for y in &b {
                        inside |= self.same(x, y)?;
                    }
                    included &= inside;
                }
                let b = included && (builtin == Subset || a.len() < b.len());
                Some(self.boolean(b))
            }
            _ => None,
        }
    }

    /// The elements of a list, set or the like, and its end.
    fn items(&self, e: &Expr) -> Option<(Vec<Expr>, Expr)> {
        let mut out = Vec::new();
        let mut at = e;
        loop {
            match at.as_builtin(&self.spec.signature)? {
                (Builtin::EmptyList | Builtin::EmptySet, _) => return Some((out, at.clone())),
                (Builtin::Cons | Builtin::SetInsert, [x, rest]) => {
                    out.push(x.clone());
                    at = rest;
                }
                _ => return None,
            }
        }
    }

    fn chain(&mut self, how: Builtin, items: Vec<Expr>, end: Expr, sort: SortId) -> Expr {
        items.into_iter().rev().fold(end, |list, x| Expr::builtin(&mut self.spec.signature, how, vec![x, list], sort))
    }

    fn set(&mut self, mut items: Vec<Expr>, empty: Expr, sort: SortId) -> Option<Expr> {
        // Insertion sort, so that an undecided comparison shows.
        let mut sorted: Vec<Expr> = Vec::new();
        for x in items.drain(..) {
            let mut at = 0;
            let mut new = true;
            for y in &sorted {
                match self.order(&x, y)? {
                    Ordering::Greater => at += 1,
                    Ordering::Equal => new = false,
                    Ordering::Less => break,
                }
            }
            if new {
                sorted.insert(at, x);
            }
        }
        Some(self.chain(Builtin::SetInsert, sorted, empty, sort))
    }

    /// Whether two normal forms are equal, if they are data.
    fn same(&self, a: &Expr, b: &Expr) -> Option<bool> {
        if a == b {
            return Some(true);
        }
        self.order(a, b).map(|o| o == Ordering::Equal)
    }

    /// The order of data: by constructor, then lexicographic.
    fn order(&self, a: &Expr, b: &Expr) -> Option<Ordering> {
        let signature = &self.spec.signature;
        if let (ExprKind::Number(m), ExprKind::Number(n)) = (&a.kind, &b.kind) {
            return Some(m.cmp(n));
        }
        if let (Some(x), Some(y)) = (a.as_bool(signature), b.as_bool(signature)) {
            return Some(x.cmp(&y));
        }
        if let (Some((xs, _)), Some((ys, _))) = (self.items(a), self.items(b)) {
            for (x, y) in xs.iter().zip(&ys) {
                match self.order(x, y)? {
                    Ordering::Equal => {}
                    unequal => return Some(unequal),
                }
            }
            return Some(xs.len().cmp(&ys.len()));
        }
        let ((f, xs), (g, ys)) = (constructed(signature, a)?, constructed(signature, b)?);
        if f != g {
            return Some(f.cmp(&g));
        }
        for (x, y) in xs.iter().zip(ys) {
            match self.order(x, y)? {
                Ordering::Equal => {}
                unequal => return Some(unequal),
            }
        }
        Some(Ordering::Equal)
    }

    /// The elements of Bool or of a sort whose constructors are constants or take elements of such sorts.
    fn elements(&mut self, sort: SortId) -> Option<Vec<Expr>> {
        if sort == basic::BOOL {
            return Some(vec![self.boolean(false), self.boolean(true)]);
        }
        let constructors = self.spec.signature.sorts.named_of(sort)?.constructors.clone();
        let mut out = Vec::new();
        for c in constructors {
            let (domain, _) = self.spec.signature.domain_range(self.spec.signature.op(c).sort);
            let domain = domain.to_vec();
            if domain.contains(&sort) {
                return None;
            }
            let mut tuples: Vec<Vec<Expr>> = vec![vec![]];
            for d in domain {
                let values = self.elements(d)?;
                tuples = tuples.iter().flat_map(|t| values.iter().map(move |v| [t.clone(), vec![v.clone()]].concat())).collect();
            }
            for args in tuples {
                let e = Expr::apply(&self.spec.signature, c, args);
                out.push(self.normal(&e)?);
            }
        }
        (!out.is_empty()).then_some(out)
    }
}

/// The constructor of a term of a declared sort and its arguments.
fn constructed<'e>(signature: &Signature, e: &'e Expr) -> Option<(mu_base::ids::OpId, &'e [Expr])> {
    let (op, args): (_, &[Expr]) = match &e.kind {
        ExprKind::Op(op) => (*op, &[]),
        ExprKind::Apply(head, args) => match head.kind {
            ExprKind::Op(op) => (op, args),
            _ => return None,
        },
        _ => return None,
    };
    matches!(signature.op(op).kind, OpKind::Constructor(_)).then_some((op, args))
}

/// Matches a pattern; repeated variables need equal terms.
fn matches(signature: &Signature, pattern: &Expr, e: &Expr, by: &mut Substitution) -> bool {
    match (&pattern.kind, &e.kind) {
        (ExprKind::Var(v), _) => match by.get(v) {
            Some(old) => old == e,
            None => {
                by.insert(*v, e.clone());
                true
            }
        },
        (ExprKind::Number(m), ExprKind::Number(n)) => m == n,
        (ExprKind::Op(f), ExprKind::Op(g)) => f == g,
        (ExprKind::Apply(f, xs), ExprKind::Apply(g, ys)) => {
            xs.len() == ys.len() && matches(signature, f, g, by) && xs.iter().zip(ys).all(|(x, y)| matches(signature, x, y, by))
        }
        (ExprKind::Apply(..), ExprKind::Number(n)) => match pattern.as_builtin(signature) {
            Some((b @ (Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt), [inner])) => {
                let fits = if b == Builtin::NatToInt { !n.is_negative() } else { n.is_positive() };
                fits && matches(signature, inner, &Expr::number(n.clone(), inner.sort), by)
            }
            Some((Builtin::Negate, [inner])) => matches(signature, inner, &Expr::number(-n.clone(), inner.sort), by),
            _ => false,
        },
        _ => false,
    }
}
