//! Naive rewriter from closed typed expressions to normal forms, which tries the equations one
//! after the other.
//!
//! It is the oracle for the engine, in tests and in checks of results at run time. It shares no
//! code with the engine and uses the simplest method everywhere. Covered: user equations, Bool,
//! numbers (integers), lists, finite sets and bags, membership in set comprehensions, structured
//! sorts, functions (beta reduction, update), `whr`, quantifiers over finite sorts. Other terms
//! stay unevaluated. A pattern that depends on the value of one, such as an `exists` over numbers,
//! is not decided, and the term around it has no normal form. Innermost, with lazy `if` and
//! connectives. Cost: all equations of an operation are tried for each term.

use super::expr::{Binder, DataSpec, Equation, Expr, ExprKind, Substitution};
use super::signature::{Builtin, OpKind, Signature};
use super::sort::{SortKind, basic};
use ahash::AHashMap;
use mu_base::ids::{OpId, SortId};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive};
use std::cmp::Ordering;
use std::rc::Rc;

/// Order of numbers without a value, which are terms that the rewriter leaves unevaluated.
pub trait NumberOrder: std::fmt::Debug {
    /// Compares two terms of number sorts; `None` if they are not comparable.
    fn order(&self, a: &Expr, b: &Expr) -> Option<Ordering>;
    /// Returns the value of a term, if it has only one.
    fn value(&self, e: &Expr) -> Option<BigInt>;
    /// Returns the entry of an array without a value, a variable, if it is known.
    fn entry(&self, _array: &Expr, _args: &[Expr]) -> Option<Expr> {
        None
    }
}

/// Limit on the elements of a sort that are listed.
const MAX_ELEMENTS: usize = 1 << 16;

/// Naive rewriter.
///
/// With [`Naive::with_numbers`], numbers may be undefined constants plus literals. Then all
/// comparisons of numbers are those of a [`NumberOrder`], and a term has no normal form if a
/// condition of an equation stays undecided.
#[derive(Debug)]
pub struct Naive {
    spec: DataSpec,
    /// Equations by the operation at the head of the left-hand side, in the order of the text.
    equations: AHashMap<OpId, Rc<[Equation]>>,
    steps: u64,
    numbers: Option<Rc<dyn NumberOrder>>,
}

impl Naive {
    /// Creates a rewriter with a limit on steps.
    pub fn new(spec: &DataSpec, steps: u64) -> Self {
        Self::of(spec.clone(), steps)
    }

    /// Returns the same, taking ownership of the specification.
    pub fn of(spec: DataSpec, steps: u64) -> Self {
        let mut equations: AHashMap<OpId, Vec<Equation>> = AHashMap::new();
        for equation in &spec.equations {
            if let Some(op) = equation.lhs.head() {
                equations.entry(op).or_default().push(equation.clone());
            }
        }
        let equations = equations.into_iter().map(|(op, all)| (op, all.into())).collect();
        Self { spec, equations, steps, numbers: None }
    }

    /// Sets the order of numbers without a value.
    pub fn with_numbers(&mut self, numbers: Option<Rc<dyn NumberOrder>>) {
        self.numbers = numbers;
    }

    /// Sets the number of remaining steps.
    pub fn allow(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// Returns the signature of the normal forms: the given one, extended by operations that
    /// occurred since.
    pub fn signature(&self) -> &Signature {
        &self.spec.signature
    }

    /// Computes the normal form; `None` if the limit on steps is reached, or if an equation is not
    /// decided.
    pub fn normal(&mut self, e: &Expr) -> Option<Expr> {
        self.steps = self.steps.checked_sub(1)?;
        stacker::maybe_grow(256 << 10, 4 << 20, || match &e.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => Some(e.clone()),
            ExprKind::Op(_) => self.rules(e.clone()),
            ExprKind::Where(body, definitions) => {
                let by = definitions
                    .iter()
                    .map(|(v, d)| Some((*v, self.normal(d)?)))
                    .collect::<Option<Substitution>>()?;
                self.normal(&body.substitute(&by))
            }
            ExprKind::Bind(binder @ (Binder::Forall | Binder::Exists), vars, body) => {
                let Some((var, others)) = vars.split_first() else { return self.normal(body) };
                let sort = self.spec.signature.var(*var).sort;
                let Some(values) = self.elements(sort) else { return Some(e.clone()) };
                let rest = if others.is_empty() {
                    body.clone()
                } else {
                    Expr::new(
                        ExprKind::Bind(*binder, others.to_vec(), body.clone()),
                        e.sort,
                        e.span,
                    )
                };
                for v in values {
                    let instance =
                        self.normal(&rest.substitute(&[(*var, v)].into_iter().collect()))?;
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
        // Lazy operations need their first argument only.
        let signature = &self.spec.signature;
        if let Some((builtin @ (Builtin::If | Builtin::And | Builtin::Or | Builtin::Implies), _)) =
            e.as_builtin(signature)
        {
            let first = self.normal(&args[0])?;
            if let Some(b) = first.as_bool(&self.spec.signature) {
                return match (builtin, b) {
                    (Builtin::If, true)
                    | (Builtin::And, true)
                    | (Builtin::Or, false)
                    | (Builtin::Implies, true) => self.normal(&args[1]),
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
        if let (ExprKind::Var(_), Some(numbers)) = (&head.kind, &self.numbers)
            && let Some(entry) = numbers.entry(&head, &args)
        {
            return Some(entry);
        }
        if let Some((Builtin::Update, [f, k, v])) = head.as_builtin(&self.spec.signature) {
            let (f, k, v) = (f.clone(), k.clone(), v.clone());
            return match self.equality(&k, &args[0]) {
                Some(true) => Some(v),
                Some(false) => self.normal(&Expr::new(ExprKind::Apply(f, args), e.sort, e.span)),
                None => Some(Expr::new(ExprKind::Apply(head.clone(), args), e.sort, e.span)),
            };
        }
        self.rules(Expr::new(ExprKind::Apply(head, args), e.sort, e.span))
    }

    /// Rewrites a term with normal forms as parts.
    fn rules(&mut self, e: Expr) -> Option<Expr> {
        let own = e.head().and_then(|op| self.equations.get(&op)).cloned();
        let own: Rc<[Equation]> = own.unwrap_or_default();
        for equation in own.iter() {
            let mut by = Substitution::new();
            if !self.matches(&equation.lhs, &e, &mut by)? {
                continue;
            }
            if let Some(c) = &equation.condition {
                let c = self.normal(&c.substitute(&by))?;
                match c.as_bool(&self.spec.signature) {
                    Some(true) => {}
                    None if self.numbers.is_some() || self.is_unevaluated(&c) => return None,
                    _ => continue,
                }
            }
            return self.normal(&equation.rhs.substitute(&by));
        }
        Some(self.builtin(&e).unwrap_or(e))
    }

    /// Evaluates a built-in operation, projection or recogniser; `None` if it is undefined.
    fn builtin(&mut self, e: &Expr) -> Option<Expr> {
        use Builtin::*;
        let ExprKind::Apply(head, args) = &e.kind else { return None };
        let ExprKind::Op(op) = head.kind else { return None };
        match &self.spec.signature.op(op).kind {
            OpKind::Projection(parts) => {
                let (constructor, values) = constructor_of(&self.spec.signature, &args[0])?;
                let (_, i) = parts.iter().find(|p| p.0 == constructor)?;
                return values.get(*i as usize).cloned();
            }
            OpKind::Recogniser(constructors) => {
                let (constructor, _) = constructor_of(&self.spec.signature, &args[0])?;
                let b = constructors.contains(&constructor);
                return Some(self.boolean(b));
            }
            _ => {}
        }
        let (builtin, _) = e.as_builtin(&self.spec.signature)?;
        match builtin {
            Equal => self.equality(&args[0], &args[1]).map(|b| self.boolean(b)),
            NotEqual => self.equality(&args[0], &args[1]).map(|b| self.boolean(!b)),
            // Sets and bags are compared by inclusion, also as parts, which is no total order.
            Less | LessEqual | Greater | GreaterEqual if args.iter().any(|e| self.has_set(e)) => {
                None
            }
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
            _ => self
                .number(builtin, e, args)
                .or_else(|| self.sequence(builtin, e, args))
                .or_else(|| self.set_or_bag(builtin, e, args)),
        }
    }

    /// Evaluates arithmetic on a number without a value: operations that only its order decides.
    fn number_by_order(&self, builtin: Builtin, args: &[Expr]) -> Option<Expr> {
        use Builtin::*;
        let order = &self.numbers.as_ref()?;
        let [a, rest @ ..] = args else { return None };
        let literal = |n: i64| Expr::number(n, a.sort);
        let at_least = |n: i64| Some(order.order(a, &literal(n))? != Ordering::Less);
        match (builtin, rest) {
            (PosToNat | PosToInt | NatToInt, []) => Some(a.clone()),
            (NatToPos | IntToPos, []) => at_least(1)?.then(|| a.clone()),
            (IntToNat, []) => at_least(0)?.then(|| a.clone()),
            (Abs, []) if at_least(0)? => Some(a.clone()),
            (Max | Min, [b]) => {
                let first = (order.order(a, b)? == Ordering::Less) == (builtin == Min);
                Some(if first { a.clone() } else { b.clone() })
            }
            _ => None,
        }
    }

    /// Returns the value of a term that is a number, or has only one value.
    fn number_value(&self, e: &Expr) -> Option<BigInt> {
        match (&e.kind, &self.numbers) {
            (ExprKind::Number(n), _) => Some(n.clone()),
            (_, Some(numbers)) if is_number(e.sort) => numbers.value(e),
            _ => None,
        }
    }

    /// Evaluates arithmetic.
    fn number(&self, builtin: Builtin, e: &Expr, args: &[Expr]) -> Option<Expr> {
        use Builtin::*;
        let number = |n: BigInt| Some(Expr::number(n, e.sort));
        let int = |i: usize| self.number_value(&args[i]);
        if let Some(found) = self.number_by_order(builtin, args) {
            return Some(found);
        }
        match builtin {
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
            _ => None,
        }
    }

    /// Evaluates operations on lists, and those common to lists, sets and bags.
    fn sequence(&mut self, builtin: Builtin, e: &Expr, args: &[Expr]) -> Option<Expr> {
        use Builtin::*;
        let number = |n: BigInt| Some(Expr::number(n, e.sort));
        if let (At, Some(_)) = (builtin, &self.numbers) {
            let items = self.items(&args[0])?.0;
            for (i, item) in items.into_iter().enumerate() {
                if self.equality(&args[1], &Expr::number(i, args[1].sort))? {
                    return Some(item);
                }
            }
            return None;
        }
        let int = |i: usize| match &args[i].kind {
            ExprKind::Number(n) => Some(n.clone()),
            _ => None,
        };
        match builtin {
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
            Size if self.is_bag(&args[0]) => {
                number(self.bag(&args[0])?.0.into_iter().map(|(_, n)| n).sum())
            }
            Size => number(BigInt::from(self.items(&args[0])?.0.len())),
            Count => number(self.copies(&args[0], &args[1])?),
            BagInsert => {
                let ExprKind::Number(copies) = &args[1].kind else { return None };
                let (mut held, empty) = self.bag(&args[2])?;
                held.push((args[0].clone(), copies.clone()));
                self.make_bag(held, empty, e.sort)
            }
            Union if self.is_bag(e) => {
                let ((mut a, empty), (b, _)) = (self.bag(&args[0])?, self.bag(&args[1])?);
                a.extend(b);
                self.make_bag(a, empty, e.sort)
            }
            Difference | Intersection if self.is_bag(e) => {
                let (a, empty) = self.bag(&args[0])?;
                let mut members = Vec::new();
                for (x, n) in a {
                    let other = self.copies(&x, &args[1])?;
                    let n = if builtin == Difference { n - other } else { n.min(other) };
                    members.push((x, n));
                }
                self.make_bag(members, empty, e.sort)
            }
            In if self.is_bag(&args[1]) => {
                let inside = self.copies(&args[0], &args[1])?.is_positive();
                Some(self.boolean(inside))
            }
            In => {
                match &args[1].kind {
                    ExprKind::Bind(Binder::SetComprehension, vars, body) => {
                        let by: Substitution =
                            vars.iter().copied().zip([args[0].clone()]).collect();
                        return self.normal(&body.substitute(&by));
                    }
                    _ => {
                        if let Some((FSetToSet, [inner])) = args[1].as_builtin(&self.spec.signature)
                        {
                            let inside = self.is_item(&args[0], inner)?;
                            return Some(self.boolean(inside));
                        }
                    }
                }
                for item in self.items(&args[1])?.0 {
                    if self.equality(&args[0], &item)? {
                        return Some(self.boolean(true));
                    }
                }
                Some(self.boolean(false))
            }
            _ => None,
        }
    }

    /// Evaluates operations on sets and bags.
    fn set_or_bag(&mut self, builtin: Builtin, e: &Expr, args: &[Expr]) -> Option<Expr> {
        use Builtin::*;
        match builtin {
            SetInsert => {
                let (mut items, empty) = self.items(&args[1])?;
                items.push(args[0].clone());
                self.set(items, empty, e.sort)
            }
            Union | Difference | Intersection
                if matches!(self.spec.signature.sorts.kind(e.sort), SortKind::FSet(_)) =>
            {
                let ((a, empty), (b, _)) = (self.items(&args[0])?, self.items(&args[1])?);
                if builtin == Union {
                    return self.set(a.into_iter().chain(b).collect(), empty, e.sort);
                }
                let mut members = Vec::new();
                for x in a {
                    let mut inside = false;
                    for y in &b {
                        inside |= self.equality(&x, y)?;
                    }
                    if inside == (builtin == Intersection) {
                        members.push(x);
                    }
                }
                self.set(members, empty, e.sort)
            }
            Subset | ProperSubset => {
                let ((a, _), (b, _)) = (self.items(&args[0])?, self.items(&args[1])?);
                let mut included = true;
                for x in &a {
                    let mut inside = false;
                    for y in &b {
                        inside |= self.equality(x, y)?;
                    }
                    included &= inside;
                }
                let b = included && (builtin == Subset || a.len() < b.len());
                Some(self.boolean(b))
            }
            _ => None,
        }
    }

    /// Returns the elements of a list or finite set, and its end.
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

    fn is_item(&self, x: &Expr, set: &Expr) -> Option<bool> {
        let mut inside = false;
        for item in self.items(set)?.0 {
            inside |= self.equality(x, &item)?;
        }
        Some(inside)
    }

    /// True if a set or bag is a part of a normal form.
    fn has_set(&self, e: &Expr) -> bool {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let of_sets = matches!(
                self.spec.signature.sorts.kind(e.sort),
                SortKind::Set(_) | SortKind::FSet(_) | SortKind::Bag(_) | SortKind::FBag(_)
            );
            let args: &[Expr] = if let ExprKind::Apply(_, args) = &e.kind { args } else { &[] };
            of_sets || args.iter().any(|a| self.has_set(a))
        })
    }

    fn is_bag(&self, e: &Expr) -> bool {
        matches!(self.spec.signature.sorts.kind(e.sort), SortKind::FBag(_) | SortKind::Bag(_))
    }

    /// Returns the elements of a finite bag with their multiplicities, and the empty bag.
    fn bag(&self, e: &Expr) -> Option<(Vec<(Expr, BigInt)>, Expr)> {
        let mut out = Vec::new();
        let mut at = e;
        loop {
            match at.as_builtin(&self.spec.signature)? {
                (Builtin::EmptyBag, _) => return Some((out, at.clone())),
                (Builtin::FBagToBag, [inner]) => at = inner,
                (Builtin::BagInsert, [x, count, rest]) => {
                    let ExprKind::Number(copies) = &count.kind else { return None };
                    out.push((x.clone(), copies.clone()));
                    at = rest;
                }
                _ => return None,
            }
        }
    }

    /// Returns the multiplicity of an element in a finite bag.
    fn copies(&self, x: &Expr, bag: &Expr) -> Option<BigInt> {
        let mut all = BigInt::from(0);
        for (y, n) in self.bag(bag)?.0 {
            if self.equality(x, &y)? {
                all += n;
            }
        }
        Some(all)
    }

    /// Builds the finite bag of elements, with ascending elements and positive multiplicities.
    fn make_bag(&mut self, held: Vec<(Expr, BigInt)>, empty: Expr, sort: SortId) -> Option<Expr> {
        if matches!(self.spec.signature.sorts.kind(sort), SortKind::Bag(_)) {
            return None;
        }
        let mut sorted: Vec<(Expr, BigInt)> = Vec::new();
        for (x, n) in held.into_iter().filter(|(_, n)| n.is_positive()) {
            let mut at = 0;
            let mut new = true;
            for (y, _) in &sorted {
                match self.order(&x, y)? {
                    Ordering::Greater => at += 1,
                    Ordering::Equal => new = false,
                    Ordering::Less => break,
                }
            }
            if new {
                sorted.insert(at, (x, n));
            } else {
                sorted[at].1 += n;
            }
        }
        let signature = &mut self.spec.signature;
        let known = signature.ops().find(|(_, o)| {
            o.kind == OpKind::Builtin(Builtin::BagInsert)
                && signature.domain_range(o.sort).1 == sort
        });
        let counts = known.map_or(basic::POS, |(_, o)| signature.domain_range(o.sort).0[1]);
        let insert = |bag, (x, n): (Expr, BigInt)| {
            Expr::builtin(
                signature,
                Builtin::BagInsert,
                vec![x, Expr::number(n, counts), bag],
                sort,
            )
        };
        Some(sorted.into_iter().rev().fold(empty, insert))
    }

    fn chain(&mut self, how: Builtin, items: Vec<Expr>, end: Expr, sort: SortId) -> Expr {
        items
            .into_iter()
            .rev()
            .fold(end, |list, x| Expr::builtin(&mut self.spec.signature, how, vec![x, list], sort))
    }

    fn set(&mut self, mut items: Vec<Expr>, empty: Expr, sort: SortId) -> Option<Expr> {
        // Insertion sort, so that an undecided comparison is noticed.
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

    /// Returns whether two normal forms are equal, if they are data.
    fn equality(&self, a: &Expr, b: &Expr) -> Option<bool> {
        if a == b {
            return Some(true);
        }
        self.order(a, b).map(|o| o == Ordering::Equal)
    }

    /// Compares data: by constructor, then lexicographically.
    fn order(&self, a: &Expr, b: &Expr) -> Option<Ordering> {
        let signature = &self.spec.signature;
        if let (ExprKind::Number(m), ExprKind::Number(n)) = (&a.kind, &b.kind) {
            return Some(m.cmp(n));
        }
        if let Some(numbers) = self.numbers.as_ref().filter(|_| is_number(a.sort)) {
            return numbers.order(a, b);
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
        if let (Some((xs, _)), Some((ys, _))) = (self.bag(a), self.bag(b)) {
            // Only equality matters.
            for ((x, m), (y, n)) in xs.iter().zip(&ys) {
                match self.order(x, y)?.then(m.cmp(n)) {
                    Ordering::Equal => {}
                    unequal => return Some(unequal),
                }
            }
            return Some(xs.len().cmp(&ys.len()));
        }
        let ((f, xs), (g, ys)) = (constructor_of(signature, a)?, constructor_of(signature, b)?);
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

    /// Returns the elements of Bool, or of a sort with constructors that are constants or have
    /// arguments of such sorts. `None` for any other sort, and if some element has no normal form.
    pub fn elements(&mut self, sort: SortId) -> Option<Vec<Expr>> {
        self.elements_inside(sort, &mut Vec::new())
    }

    /// Returns the elements of a sort inside values of other sorts, which have infinitely many if
    /// it is one of these.
    fn elements_inside(&mut self, sort: SortId, outer: &mut Vec<SortId>) -> Option<Vec<Expr>> {
        if sort == basic::BOOL {
            return Some(vec![self.boolean(false), self.boolean(true)]);
        }
        if outer.contains(&sort) {
            return None;
        }
        outer.push(sort);
        let constructors = self.spec.signature.sorts.declared_sort(sort)?.constructors.clone();
        let mut out = Vec::new();
        for c in constructors {
            let (domain, _) = self.spec.signature.domain_range(self.spec.signature.op(c).sort);
            let domain = domain.to_vec();
            let mut tuples: Vec<Vec<Expr>> = vec![vec![]];
            for d in domain {
                let values = self.elements_inside(d, outer)?;
                if tuples.len().saturating_mul(values.len()) > MAX_ELEMENTS {
                    return None;
                }
                tuples = tuples
                    .iter()
                    .flat_map(|t| values.iter().map(move |v| [t.clone(), vec![v.clone()]].concat()))
                    .collect();
            }
            for args in tuples {
                let e = Expr::apply(&self.spec.signature, c, args);
                out.push(self.normal(&e)?);
            }
        }
        outer.pop();
        (!out.is_empty()).then_some(out)
    }
}

/// Returns the constructor of a term of a declared sort and its arguments.
fn constructor_of<'e>(signature: &Signature, e: &'e Expr) -> Option<(OpId, &'e [Expr])> {
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

/// True for the sorts of integers.
fn is_number(sort: SortId) -> bool {
    [basic::POS, basic::NAT, basic::INT].contains(&sort)
}

impl Naive {
    /// Matches a pattern; repeated variables need equal terms. `None`: a number without a value is
    /// not decided.
    fn matches(&self, pattern: &Expr, e: &Expr, by: &mut Substitution) -> Option<bool> {
        let signature = &self.spec.signature;
        Some(match (&pattern.kind, &e.kind) {
            (ExprKind::Var(v), _) => match by.get(v) {
                Some(old) if old == e => true,
                Some(old) if self.numbers.is_some() => self.equality(old, e)?,
                Some(old) => match self.equality(old, e) {
                    None if [old, e].into_iter().any(|e| self.is_unevaluated(e)) => return None,
                    same => same == Some(true),
                },
                None => {
                    by.insert(*v, e.clone());
                    true
                }
            },
            (ExprKind::Number(m), ExprKind::Number(n)) => m == n,
            (ExprKind::Number(_), _) if self.numbers.is_some() => self.equality(e, pattern)?,
            (ExprKind::Op(f), ExprKind::Op(g)) => f == g,
            (ExprKind::Apply(..), _)
                if self.is_open_number(e) && pattern.as_builtin(signature).is_some() =>
            {
                let (b, [inner]) = pattern.as_builtin(signature)? else { return None };
                let low = match b {
                    Builtin::PosToNat | Builtin::PosToInt => 1,
                    Builtin::NatToInt => 0,
                    _ => return None,
                };
                let fits = self.order(e, &Expr::number(low, e.sort))? != Ordering::Less;
                fits && self.matches(inner, e, by)?
            }
            (ExprKind::Apply(f, xs), ExprKind::Apply(g, ys)) => {
                if xs.len() != ys.len() || !self.matches(f, g, by)? {
                    return self.differs(pattern, e);
                }
                let mut decided = true;
                for (x, y) in xs.iter().zip(ys) {
                    match self.matches(x, y, by) {
                        Some(true) => {}
                        Some(false) => return Some(false),
                        None => decided = false,
                    }
                }
                decided.then_some(true)?
            }
            (ExprKind::Apply(..), ExprKind::Number(n)) => match pattern.as_builtin(signature) {
                Some((
                    b @ (Builtin::PosToNat | Builtin::PosToInt | Builtin::NatToInt),
                    [inner],
                )) => {
                    let fits =
                        if b == Builtin::NatToInt { !n.is_negative() } else { n.is_positive() };
                    fits && self.matches(inner, &Expr::number(n.clone(), inner.sort), by)?
                }
                Some((Builtin::Negate, [inner])) => {
                    self.matches(inner, &Expr::number(-n.clone(), inner.sort), by)?
                }
                _ => false,
            },
            _ => return self.differs(pattern, e),
        })
    }

    /// Returns false for a term that has another head than a pattern; `None` if its value may have
    /// the same.
    fn differs(&self, pattern: &Expr, e: &Expr) -> Option<bool> {
        let decided = !self.is_data(pattern) || self.is_data(e) || !self.is_unevaluated(e);
        decided.then_some(false)
    }

    /// True for a number, and for a term with an operation at its head that forms data.
    fn is_data(&self, e: &Expr) -> bool {
        use Builtin::*;
        let forms_data = |kind: &OpKind| match kind {
            OpKind::Constructor(_) => true,
            OpKind::Builtin(b) => matches!(
                b,
                True | False
                    | EmptyList
                    | Cons
                    | EmptySet
                    | SetInsert
                    | EmptyBag
                    | BagInsert
                    | FSetToSet
                    | FBagToBag
            ),
            _ => false,
        };
        matches!(e.kind, ExprKind::Number(_))
            || e.head().is_some_and(|op| forms_data(&self.spec.signature.op(op).kind))
    }

    /// True if a normal form may have a value that this rewriter does not compute. Other terms
    /// without a value, such as `head([])`, are normal forms of every rewriter.
    fn is_unevaluated(&self, e: &Expr) -> bool {
        use Builtin::*;
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Number(_) | ExprKind::Op(_) => false,
            ExprKind::Var(_) | ExprKind::Bind(..) | ExprKind::Where(..) => true,
            ExprKind::Apply(head, args) => {
                let ExprKind::Op(op) = head.kind else { return true };
                let computed = match &self.spec.signature.op(op).kind {
                    OpKind::Builtin(b) => {
                        self.is_data(e)
                            || matches!(
                                b,
                                Head | Tail
                                    | RHead
                                    | RTail
                                    | At
                                    | Div
                                    | Mod
                                    | Add
                                    | Subtract
                                    | Multiply
                                    | Succ
                                    | Pred
                                    | Negate
                                    | Abs
                                    | NatToPos
                                    | IntToPos
                                    | IntToNat
                                    | PosToNat
                                    | PosToInt
                                    | NatToInt
                            )
                    }
                    _ => true,
                };
                !computed || args.iter().any(|a| self.is_unevaluated(a))
            }
        })
    }

    /// True for a number without a value.
    fn is_open_number(&self, e: &Expr) -> bool {
        self.numbers.is_some() && is_number(e.sort) && !matches!(e.kind, ExprKind::Number(_))
    }
}
