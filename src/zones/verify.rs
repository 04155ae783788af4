//! Check of certificates: that the obligations of a file are an inductive invariant.
//!
//! In: the process and the formula of a [`Question`], a [`Certificate`]. Out: the numbers of checks
//! of each kind ([`Verified`]), or the obligation that fails. Checked are *initiation* (the first
//! obligations are covered), *consecution* (each successor of an obligation by a step is covered),
//! and the *formula* (tests hold, other successors are covered, no violation is among them, and no
//! cycle of obligations passes through a least fixed point as the outermost one). The terms are
//! evaluated by the naive rewriter (`data::naive`) from the linear process, summand by summand;
//! comparisons of numbers are decided by shortest paths over the constraints (Bellman, Ford).
//! Neither the engine, nor the matrices, the paths, and the exploration of the search take part;
//! the positions of the formula are shared. What the rewriter does not decide makes the check fail.
//! Cost: naive evaluations for each obligation.

use crate::certificate::{Certificate, Obligation, numbers};
use crate::obligations::Question;
use crate::positions::{Position, Positions};
use ahash::AHashMap;
use mu_base::ids::{SortId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::builtins::linear::least;
use mu_data::engine::Program;
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind, Substitution};
use mu_data::naive::{Naive, NumberOrder};
use mu_data::print;
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

/// Limit on the numbers of a state, those of sums and quantifiers included.
pub const MAX_NUMBERS: usize = 96;
/// Limit on the rewrite steps of one evaluation.
const STEP_LIMIT: u64 = 1_000_000;
/// Limit on the cases of one obligation.
const MAX_CASES: usize = 50_000;
/// Widest range of a number with values that are distinguished.
const WIDEST: i64 = 64;

/// Numbers of checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Obligations of the certificate.
    pub obligations: usize,
    /// Checks that a first obligation is covered.
    pub initiation: usize,
    /// Checks that an obligation after a step is covered.
    pub consecution: usize,
    /// Checks of tests, and that other successors are covered.
    pub formula: usize,
}

/// Constraints `x - y <= c`, and the decisions of one case.
#[derive(Debug, Default)]
struct Case {
    size: usize,
    constraints: Vec<(usize, usize, i64)>,
    prefix: Vec<u32>,
    taken: Vec<(u32, u32)>,
}

impl Case {
    /// Returns the least `c` with `x - y <= c` that the constraints imply: the length of the
    /// shortest path.
    fn shortest(&self, x: usize, y: usize) -> Option<i64> {
        let mut far: Vec<Option<i64>> = vec![None; self.size];
        far[y] = Some(0);
        for _ in 0..self.size {
            let mut changed = false;
            for (a, b, c) in &self.constraints {
                let Some(new) = far[*b].and_then(|d| d.checked_add(*c)) else { continue };
                if far[*a].is_none_or(|old| new < old) {
                    far[*a] = Some(new);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        far[x]
    }

    fn implies(&self, x: usize, y: usize, c: i64) -> bool {
        x == y && c >= 0 || self.shortest(x, y).is_some_and(|d| d <= c)
    }

    /// Decides `x - y <= c`, by the constraints or as the next decision.
    fn at_most(&mut self, x: usize, y: usize, c: i64) -> Option<bool> {
        if x == y {
            return Some(c >= 0);
        }
        let negation = c.checked_neg()?.checked_sub(1)?;
        if self.implies(x, y, c) {
            return Some(true);
        }
        if self.implies(y, x, negation) {
            return Some(false);
        }
        let yes = self.choose(2) == 0;
        self.constraints.push(if yes { (x, y, c) } else { (y, x, negation) });
        Some(yes)
    }

    fn choose(&mut self, options: usize) -> usize {
        if options <= 1 {
            return 0;
        }
        let chosen = self.prefix.get(self.taken.len()).copied().unwrap_or(0);
        self.taken.push((chosen, options as u32));
        chosen as usize
    }

    fn next(&self) -> Option<Vec<u32>> {
        let last = self.taken.iter().rposition(|(chosen, all)| chosen + 1 < *all)?;
        let mut prefix: Vec<u32> = self.taken[..=last].iter().map(|t| t.0).collect();
        prefix[last] += 1;
        Some(prefix)
    }
}

/// The numbers of an evaluation: variables with their places in the constraints.
#[derive(Debug, Default)]
struct Numbers {
    of: RefCell<AHashMap<VarId, usize>>,
    case: RefCell<Case>,
}

impl Numbers {
    /// Returns a term as a variable plus a literal; variable 0 is zero.
    fn linear(&self, signature: &Signature, e: &Expr) -> Option<(usize, i64)> {
        use Builtin::*;
        match &e.kind {
            ExprKind::Number(n) => Some((0, n.to_i64()?)),
            ExprKind::Var(v) => self.of.borrow().get(v).map(|at| (*at, 0)),
            ExprKind::Apply(head, _) if matches!(head.kind, ExprKind::Op(op) if op.index() >= signature.op_count()) => {
                None
            }
            _ => match e.as_builtin(signature)? {
                (PosToNat | PosToInt | NatToInt, [a]) => self.linear(signature, a),
                (Succ, [a]) => self.linear(signature, a).map(|(x, c)| (x, c + 1)),
                (Pred, [a]) => self.linear(signature, a).map(|(x, c)| (x, c - 1)),
                (Add, [a, b]) => {
                    let ((x, c), (y, d)) = (self.linear(signature, a)?, self.linear(signature, b)?);
                    let base = if x == 0 { y } else { x };
                    (x == 0 || y == 0).then_some((base, c.checked_add(d)?))
                }
                (Subtract, [a, b]) => {
                    let ((x, c), (y, d)) = (self.linear(signature, a)?, self.linear(signature, b)?);
                    let c = c.checked_sub(d)?;
                    if y == 0 { Some((x, c)) } else { (x == y).then_some((0, c)) }
                }
                _ => None,
            },
        }
    }
}

/// The order of numbers in the current case.
#[derive(Debug)]
struct CaseOrder {
    numbers: Rc<Numbers>,
    signature: Rc<Signature>,
}

impl NumberOrder for CaseOrder {
    fn order(&self, a: &Expr, b: &Expr) -> Option<Ordering> {
        let (x, c) = self.numbers.linear(&self.signature, a)?;
        let (y, d) = self.numbers.linear(&self.signature, b)?;
        let mut case = self.numbers.case.borrow_mut();
        // a <= b, then b <= a
        if !case.at_most(x, y, d.checked_sub(c)?)? {
            return Some(Ordering::Greater);
        }
        let equal = case.at_most(y, x, c.checked_sub(d)?)?;
        Some(if equal { Ordering::Equal } else { Ordering::Less })
    }

    fn value(&self, e: &Expr) -> Option<BigInt> {
        let (x, c) = self.numbers.linear(&self.signature, e)?;
        let mut case = self.numbers.case.borrow_mut();
        loop {
            let (high, low) = (case.shortest(x, 0)?, case.shortest(0, x)?.checked_neg()?);
            if high.checked_sub(low)? > WIDEST {
                return None;
            }
            if high <= low {
                return Some(BigInt::from(low.checked_add(c)?));
            }
            case.at_most(x, 0, low)?;
        }
    }
}

/// Checker of one certificate.
struct Checker<'a> {
    question: &'a Question<'a>,
    positions: &'a Positions,
    certificate: &'a Certificate,
    naive: Naive,
    signature: Rc<Signature>,
    numbers: Rc<Numbers>,
    /// Variables for numbers, by sort.
    pool: &'a AHashMap<SortId, Vec<VarId>>,
    /// The number that each of these stands for.
    place_of: AHashMap<VarId, usize>,
    /// Obligations by position.
    at: AHashMap<usize, Vec<usize>>,
    /// For each obligation those that cover its successors.
    edges: Vec<Vec<usize>>,
    found: Verified,
}

/// Values of variables.
type Values = Substitution;
/// The sum in the place of each number of an obligation.
type Sums = Vec<Option<(usize, i64)>>;

fn fails(text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, text.into())
}

/// Checks the text of a certificate.
///
/// # Errors
///
/// Of stage `File`: the text is not a certificate. Of stage `Unsupported`: the certificate does not
/// prove the formula, or the rewriter does not decide a part, with the obligation.
pub fn verify(question: &Question, text: &str) -> Result<Verified, Diagnostic> {
    let Question { process, formula, .. } = question;
    let mut signature = formula.data.signature.clone();
    let positions = Positions::new(process, &mut signature, question.constants, &formula.formula)?;
    let pool: AHashMap<SortId, Vec<VarId>> = [basic::POS, basic::NAT, basic::INT]
        .into_iter()
        .map(|sort| (sort, numbers(&mut signature, 2 * MAX_NUMBERS, sort)))
        .collect();
    // All operations that values need.
    let data = DataSpec { signature, equations: formula.data.equations.clone() };
    let program = Program::compile(&data)?;
    let mut data = DataSpec { signature: program.signature().clone(), ..data };
    let signature = data.signature.clone();
    let sorts = |position: usize| {
        let live = positions.live.get(position)?.iter().copied();
        let vars = process.params.iter().map(|p| p.var).chain(live);
        Some(vars.map(|v| signature.var(v).sort).collect())
    };
    let certificate = Certificate::read(text, &mut data, &pool, &sorts)?;
    check(question, &positions, &data, &certificate, &pool)
}

fn check(
    question: &Question,
    positions: &Positions,
    data: &DataSpec,
    certificate: &Certificate,
    pool: &AHashMap<SortId, Vec<VarId>>,
) -> Result<Verified, Diagnostic> {
    let signature = Rc::new(data.signature.clone());
    let numbers = Rc::new(Numbers::default());
    let mut naive = Naive::new(data, STEP_LIMIT);
    naive.with_numbers(Some(Rc::new(CaseOrder {
        numbers: numbers.clone(),
        signature: signature.clone(),
    })));
    let place_of = pool.values().flat_map(|all| all.iter().enumerate().map(|(i, v)| (*v, i)));
    let place_of = place_of.collect();
    let mut at: AHashMap<usize, Vec<usize>> = AHashMap::new();
    for (i, o) in certificate.obligations.iter().enumerate() {
        at.entry(o.position).or_default().push(i);
    }
    let edges = vec![Vec::new(); certificate.obligations.len()];
    let found = Verified { obligations: certificate.obligations.len(), ..Verified::default() };
    let mut checker = Checker {
        question,
        positions,
        certificate,
        naive,
        signature,
        numbers,
        pool,
        place_of,
        at,
        edges,
        found,
    };
    checker.initiation()?;
    for i in 0..certificate.obligations.len() {
        checker.obligation(i).map_err(|why| {
            why.note(format!(
                "obligation {} of the certificate, at position {}",
                i + 1,
                certificate.obligations[i].position
            ))
        })?;
    }
    checker.fixed_points()?;
    Ok(checker.found)
}

impl Checker<'_> {
    /// Calls `what` for each case of these constraints.
    fn cases(
        &mut self,
        sorts: &[SortId],
        vars: &[VarId],
        bounds: &[(usize, usize, i64)],
        what: &mut dyn FnMut(&mut Self) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let mut prefix = Vec::new();
        for _ in 0..MAX_CASES {
            let mut constraints = bounds.to_vec();
            for (i, sort) in sorts.iter().enumerate() {
                constraints.extend(least(*sort).map(|low| (0, i + 1, -low)));
            }
            *self.numbers.of.borrow_mut() =
                vars.iter().enumerate().map(|(i, v)| (*v, i + 1)).collect();
            *self.numbers.case.borrow_mut() = Case {
                size: sorts.len() + 1,
                constraints,
                prefix: std::mem::take(&mut prefix),
                taken: Vec::new(),
            };
            what(self)?;
            match self.numbers.case.borrow().next() {
                Some(next) => prefix = next,
                None => return Ok(()),
            }
        }
        Err(fails(format!("more than {MAX_CASES} cases")))
    }

    fn choose(&self, options: usize) -> usize {
        self.numbers.case.borrow_mut().choose(options)
    }

    /// Creates a number of a sort that may have any value.
    fn any_number(&mut self, sort: SortId) -> Result<Expr, Diagnostic> {
        let mut case = self.numbers.case.borrow_mut();
        let at = case.size;
        let var = self.pool.get(&sort).and_then(|all| all.get(MAX_NUMBERS + at)).copied();
        let var = var.ok_or_else(|| fails("too many numbers"))?;
        case.size += 1;
        case.constraints.extend(least(sort).map(|low| (0, at, -low)));
        self.numbers.of.borrow_mut().insert(var, at);
        Ok(Expr::new(ExprKind::Var(var), sort, Span::default()))
    }

    /// Returns any value of a sort, by choices; `None` if it has infinitely many shapes.
    fn any_value(&mut self, sort: SortId, depth: usize) -> Result<Option<Expr>, Diagnostic> {
        match self.signature.sorts.kind(sort).clone() {
            SortKind::Pos | SortKind::Nat | SortKind::Int => self.any_number(sort).map(Some),
            SortKind::Bool => {
                let b = self.choose(2) == 0;
                let all = self.naive.elements(sort);
                Ok(all.and_then(|all| all.get(usize::from(b)).cloned()))
            }
            SortKind::Named(n) if depth < 8 => {
                let signature = self.signature.clone();
                let constructors = &signature.sorts.named[n as usize].constructors;
                if constructors.is_empty() {
                    return Ok(None);
                }
                let op = constructors[self.choose(constructors.len())];
                if !matches!(signature.op(op).kind, OpKind::Constructor(_)) {
                    return Ok(None);
                }
                let mut args = Vec::new();
                for d in signature.domain_range(signature.op(op).sort).0 {
                    match self.any_value(*d, depth + 1)? {
                        Some(e) => args.push(e),
                        None => return Ok(None),
                    }
                }
                let e = Expr::apply(&signature, op, args);
                self.normal(&e).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn normal(&mut self, e: &Expr) -> Result<Expr, Diagnostic> {
        self.naive.allow(STEP_LIMIT);
        self.naive
            .normal(e)
            .ok_or_else(|| fails(format!("`{}` is not decided", self.shown(e))).or_span(e.span))
    }

    fn shown(&self, e: &Expr) -> String {
        let mut text = print::expression(&self.signature, e);
        if let Some((at, _)) = text.char_indices().nth(300) {
            text.truncate(at);
            text.push('…');
        }
        text
    }

    fn truth(&mut self, e: &Expr) -> Result<bool, Diagnostic> {
        let normal = self.normal(e)?;
        match normal.as_bool(self.naive.signature()) {
            Some(b) => Ok(b),
            None => self.quantified(&normal),
        }
    }

    /// Decides a condition with quantifiers over variables that equations determine.
    fn quantified(&mut self, e: &Expr) -> Result<bool, Diagnostic> {
        let signature = self.signature.clone();
        if let Some((builtin, args)) = e.as_builtin(&signature) {
            match (builtin, args) {
                (Builtin::Not, [a]) => return Ok(!self.truth(a)?),
                (Builtin::And, [a, b]) => return Ok(self.truth(a)? && self.truth(b)?),
                (Builtin::Or, [a, b]) => return Ok(self.truth(a)? || self.truth(b)?),
                (Builtin::Implies, [a, b]) => return Ok(!self.truth(a)? || self.truth(b)?),
                _ => {}
            }
        }
        if let ExprKind::Bind(Binder::Exists, vars, body) = &e.kind {
            return self.exists(vars, body);
        }
        Err(fails(format!("`{}` is not decided", self.shown(e))))
    }

    /// Decides `exists vars. body`: an equation determines a variable, or its sort is finite.
    fn exists(&mut self, vars: &[VarId], body: &Expr) -> Result<bool, Diagnostic> {
        let signature = self.signature.clone();
        let mut free = Vec::new();
        body.free_vars(&mut free);
        let vars: Vec<VarId> = vars.iter().copied().filter(|v| free.contains(v)).collect();
        if vars.is_empty() {
            return self.truth(body);
        }
        let parts = disjuncts(&signature, body);
        if parts.len() > 1 {
            for part in parts {
                if self.exists(&vars, &part)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let conjuncts = body.conjuncts(&signature);
        let without = |v: VarId| vars.iter().copied().filter(|w| *w != v).collect::<Vec<_>>();
        for v in &vars {
            let determined = conjuncts.iter().find_map(|c| equal_to(&signature, c, *v, &vars));
            let Some(e) = determined else { continue };
            let e = self.normal(&e)?;
            if let Some(low) = least(signature.var(*v).sort) {
                let order =
                    CaseOrder { numbers: self.numbers.clone(), signature: signature.clone() };
                match order.order(&e, &Expr::number(low, e.sort)) {
                    Some(Ordering::Less) => return Ok(false),
                    Some(_) => {}
                    None => return Err(fails(format!("`{}` is not a number", self.shown(&e)))),
                }
            }
            let body = body.substitute(&[(*v, e)].into_iter().collect());
            return self.exists(&without(*v), &body);
        }
        for v in &vars {
            let Some(all) = self.naive.elements(signature.var(*v).sort) else { continue };
            for e in all {
                let body = body.substitute(&[(*v, e)].into_iter().collect());
                if self.exists(&without(*v), &body)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Err(fails(format!("`exists {}` is not decided", signature.var(vars[0]).name)))
    }

    /// Checks that an obligation of these values is covered. Returns the one that covers it.
    fn covered(&mut self, position: usize, values: &Values) -> Result<usize, Diagnostic> {
        let params = self.question.process.params.iter().map(|p| p.var);
        let vars = params.chain(self.positions.live[position].iter().copied());
        let own: Vec<Expr> = vars
            .map(|v| values.get(&v).cloned().ok_or_else(|| fails("a variable has no value")))
            .collect::<Result<_, _>>()?;
        for i in self.at.get(&position).into_iter().flatten() {
            let o = &self.certificate.obligations[*i];
            let case = self.numbers.case.borrow();
            let implied = |sums: &[Option<(usize, i64)>]| {
                let at = |x: usize| if x == 0 { Some((0, 0)) } else { sums[x - 1] };
                sums.iter().all(Option::is_some)
                    && o.bounds.iter().all(|(x, y, c)| match (at(*x), at(*y)) {
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
        let shown: Vec<String> = own.iter().map(|e| self.shown(e)).collect();
        Err(fails(format!("no obligation covers a successor: {}", shown.join(", "))))
    }

    /// Matches values with those of an obligation, collections in any order. True if the sums in
    /// the place of its numbers satisfy `implied` for some match.
    fn fits(
        &self,
        mut pairs: Vec<(Expr, Expr)>,
        mut sums: Sums,
        implied: &dyn Fn(&[Option<(usize, i64)>]) -> bool,
    ) -> bool {
        let signature = self.naive.signature();
        while let Some((e, shape)) = pairs.pop() {
            let number = [basic::POS, basic::NAT, basic::INT].contains(&e.sort);
            if number && let Some(sum) = self.numbers.linear(signature, &e) {
                if !self.is_number(&shape, sum, &mut sums) {
                    return false;
                }
                continue;
            }
            let collection = |e: &Expr| {
                let found = e.as_builtin(signature);
                matches!(found, Some((Builtin::SetInsert | Builtin::BagInsert, _)))
            };
            if collection(&e) && collection(&shape) {
                let (xs, ys) = (entries(signature, &e), entries(signature, &shape));
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
                _ if e == shape => {}
                _ => return false,
            }
        }
        implied(&sums)
    }

    /// Matches a sum with a number of an obligation.
    fn is_number(&self, shape: &Expr, sum: (usize, i64), sums: &mut Sums) -> bool {
        use Builtin::{NatToInt, PosToInt, PosToNat};
        let mut at = shape;
        while let Some((PosToNat | PosToInt | NatToInt, [inner])) =
            at.as_builtin(self.naive.signature())
        {
            at = inner;
        }
        match &at.kind {
            ExprKind::Var(v) => match self.place_of.get(v).copied() {
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

    /// Checks that the first obligations are covered.
    fn initiation(&mut self) -> Result<(), Diagnostic> {
        let question = self.question;
        let process = question.process;
        let symbolic: Vec<VarId> =
            question.symbolic.iter().map(|(at, _)| process.params[*at].var).collect();
        let sorts: Vec<SortId> = symbolic.iter().map(|v| self.signature.var(*v).sort).collect();
        let bounds: Vec<(usize, usize, i64)> =
            question.symbolic.iter().enumerate().map(|(i, (_, low))| (0, i + 1, -low)).collect();
        let vars = self.numbered(&sorts);
        self.cases(&sorts, &vars, &bounds, &mut |this| {
            let by: Values = symbolic
                .iter()
                .zip(&vars)
                .zip(&sorts)
                .map(|((p, v), sort)| (*p, variable(*v, *sort)))
                .collect();
            let mut values = by.clone();
            for (i, p) in process.params.iter().enumerate() {
                if !by.contains_key(&p.var) {
                    let own = question.initial.iter().find(|(at, _)| *at == i).map(|(_, e)| e);
                    let e = this.normal(&own.unwrap_or(&p.init).substitute(&by))?;
                    values.insert(p.var, e);
                }
            }
            this.covered(this.positions.start, &values)?;
            this.found.initiation += 1;
            Ok(())
        })
    }

    /// Returns the variables of numbers of these sorts.
    fn numbered(&self, sorts: &[SortId]) -> Vec<VarId> {
        let of =
            |(i, sort): (usize, &SortId)| self.pool.get(sort).and_then(|all| all.get(i)).copied();
        sorts.iter().enumerate().filter_map(of).collect()
    }

    /// Checks one obligation.
    fn obligation(&mut self, at: usize) -> Result<(), Diagnostic> {
        let o = self.certificate.obligations[at].clone();
        let vars = self.numbered(&o.sorts);
        if vars.len() != o.sorts.len() {
            return Err(fails("an obligation has too many numbers"));
        }
        let params = self.question.process.params.iter().map(|p| p.var);
        let live = self.positions.live[o.position].iter().copied();
        let names: Vec<VarId> = params.chain(live).collect();
        if names.len() != o.values.len() {
            return Err(fails("an obligation has no value for some variable"));
        }
        let position = self.positions.all[o.position].clone();
        let bounds = o.bounds.clone();
        match &position {
            Position::Any(next) => {
                let chosen = o.choice.filter(|c| next.contains(c));
                if chosen.is_none() {
                    return Err(fails("an obligation has no choice"));
                }
            }
            Position::Exists(..) => {
                return Err(fails("a certificate does not show the values of an `exists`"));
            }
            Position::False => return Err(fails("an obligation is a violation")),
            _ => {}
        }
        let mut summands: Vec<Option<usize>> = vec![None];
        if let Position::Box(conditions, _) = &position {
            summands =
                (0..conditions.len()).filter(|i| conditions[*i].is_some()).map(Some).collect();
        }
        for summand in summands {
            self.cases(&o.sorts, &vars, &bounds, &mut |this| {
                let mut values: Values =
                    names.iter().copied().zip(o.values.iter().cloned()).collect();
                // Values are normal forms of the engine; those of the rewriter are its own.
                for e in values.values_mut() {
                    *e = this.normal(e)?;
                }
                for next in this.successors(&o, &position, summand, &values)? {
                    let (position, values) = next;
                    let by = this.covered(position, &values)?;
                    this.edges[at].push(by);
                    match summand {
                        Some(_) => this.found.consecution += 1,
                        None => this.found.formula += 1,
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Returns the successors of an obligation in the current case.
    fn successors(
        &mut self,
        o: &Obligation,
        position: &Position,
        summand: Option<usize>,
        values: &Values,
    ) -> Result<Vec<(usize, Values)>, Diagnostic> {
        Ok(match position {
            Position::True => Vec::new(),
            Position::False | Position::Exists(..) => return Err(fails("an obligation is open")),
            Position::Test(e, expected, _) => {
                if self.truth(&e.substitute(values))? != *expected {
                    return Err(fails("a test of the formula fails"));
                }
                self.found.formula += 1;
                Vec::new()
            }
            Position::Unless(e, expected, _, other) => {
                match self.truth(&e.substitute(values))? == *expected {
                    true => Vec::new(),
                    false => vec![(*other, values.clone())],
                }
            }
            Position::All(next) => next.iter().map(|n| (*n, values.clone())).collect(),
            Position::Any(_) => o.choice.map(|next| (next, values.clone())).into_iter().collect(),
            Position::Forall(var, next, _) => {
                let sort = self.signature.var(*var).sort;
                let Some(e) = self.any_value(sort, 0)? else {
                    return Err(fails("a `forall` over values of any size"));
                };
                let mut values = values.clone();
                values.insert(*var, e);
                vec![(*next, values)]
            }
            Position::Assign(set, next) => {
                let mut new = values.clone();
                for (v, e) in set.iter().filter(|(v, _)| self.positions.live[*next].contains(v)) {
                    new.insert(*v, self.normal(&e.substitute(values))?);
                }
                vec![(*next, new)]
            }
            Position::Box(conditions, next) => {
                let (Some(i), process) = (summand, self.question.process) else {
                    return Err(fails("a modality without a summand"));
                };
                let Some(mut values) = self.step(i, values)? else { return Ok(Vec::new()) };
                let summand = &process.summands[i];
                let args = summand.actions.iter().flat_map(|a| &a.args);
                let mut label = values.clone();
                for (v, e) in self.positions.arguments[i].iter().zip(args) {
                    label.insert(*v, self.normal(&e.substitute(&values))?);
                }
                let Some(condition) = &conditions[i] else { return Ok(Vec::new()) };
                if !self.truth(&condition.substitute(&label))? {
                    return Ok(Vec::new());
                }
                let mut after = Vec::new();
                for (at, e) in &summand.updates {
                    after.push((process.params[*at].var, self.normal(&e.substitute(&values))?));
                }
                values.extend(after);
                vec![(*next, values)]
            }
        })
    }

    /// Chooses values of summed variables that satisfy the condition of a summand; `None` if the
    /// case has none.
    fn step(&mut self, summand: usize, values: &Values) -> Result<Option<Values>, Diagnostic> {
        let process = self.question.process;
        let own = &process.summands[summand];
        let signature = self.signature.clone();
        let mut values = values.clone();
        let mut used = Vec::new();
        let results =
            own.updates.iter().map(|u| &u.1).chain(own.actions.iter().flat_map(|a| &a.args));
        std::iter::once(&own.guard).chain(results).for_each(|e| e.free_vars(&mut used));
        let mut open: Vec<VarId> =
            own.sum_vars.iter().copied().filter(|v| used.contains(v)).collect();
        let mut left = own.guard.conjuncts(&signature);
        loop {
            // Conditions without open variables come first.
            let mut rest = Vec::new();
            for c in left {
                let mut free = Vec::new();
                c.free_vars(&mut free);
                if free.iter().any(|v| open.contains(v)) {
                    rest.push(c);
                } else if !self.truth(&c.substitute(&values))? {
                    return Ok(None);
                }
            }
            left = rest;
            if open.is_empty() {
                return Ok(Some(values));
            }
            let determined = open.iter().enumerate().find_map(|(i, v)| {
                let e = left.iter().find_map(|c| equal_to(&signature, c, *v, &open))?;
                Some((i, e))
            });
            let (i, e) = match determined {
                Some((i, e)) => (i, self.normal(&e.substitute(&values))?),
                None => {
                    let sort = signature.var(open[0]).sort;
                    let Some(e) = self.any_value(sort, 0)? else {
                        return Err(fails("a sum over values of any size").or_span(own.span()));
                    };
                    (0, e)
                }
            };
            let var = open.remove(i);
            if let Some(low) = least(signature.var(var).sort) {
                let order =
                    CaseOrder { numbers: self.numbers.clone(), signature: signature.clone() };
                match order.order(&e, &Expr::number(low, e.sort)) {
                    Some(Ordering::Less) => return Ok(None),
                    Some(_) => {}
                    None => return Err(fails(format!("`{}` is not a number", self.shown(&e)))),
                }
            }
            values.insert(var, e);
        }
    }

    /// Checks that no cycle of obligations has a least fixed point as its outermost one.
    fn fixed_points(&mut self) -> Result<(), Diagnostic> {
        let priority =
            |i: usize| self.positions.priorities[self.certificate.obligations[i].position];
        let mut odd: Vec<u32> =
            (0..self.edges.len()).map(priority).filter(|p| p % 2 == 1).collect();
        odd.sort_unstable();
        odd.dedup();
        for p in odd {
            // Obligations without predecessors among those of at most this priority cannot be on a
            // cycle; nor can those that only these precede.
            let mut left: Vec<bool> = (0..self.edges.len()).map(|i| priority(i) <= p).collect();
            for start in (0..self.edges.len()).filter(|i| priority(*i) == p) {
                // Is the obligation reachable from itself?
                let mut seen = vec![false; left.len()];
                let mut pending: Vec<usize> = self.edges[start].clone();
                while let Some(i) = pending.pop() {
                    if !left[i] || std::mem::replace(&mut seen[i], true) {
                        continue;
                    }
                    if i == start {
                        return Err(fails("a least fixed point may be passed forever"));
                    }
                    pending.extend(&self.edges[i]);
                }
                left[start] = false;
            }
            self.found.formula += 1;
        }
        Ok(())
    }
}

fn variable(v: VarId, sort: SortId) -> Expr {
    Expr::new(ExprKind::Var(v), sort, Span::default())
}

/// True if a term is a variable, possibly converted to a wider sort.
fn is_variable(signature: &Signature, e: &Expr, var: VarId) -> bool {
    use Builtin::{NatToInt, PosToInt, PosToNat};
    match e.as_builtin(signature) {
        Some((PosToNat | PosToInt | NatToInt, [inner])) => is_variable(signature, inner, var),
        _ => e.kind == ExprKind::Var(var),
    }
}

/// Returns the value that a condition determines for a variable, by terms without these variables.
fn equal_to(signature: &Signature, c: &Expr, var: VarId, open: &[VarId]) -> Option<Expr> {
    let (Builtin::Equal, [a, b]) = c.as_builtin(signature)? else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(x, e)| {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        let closed = !free.iter().any(|v| open.contains(v));
        (closed && is_variable(signature, x, var)).then(|| e.clone())
    })
}

/// Returns the disjuncts of a condition.
fn disjuncts(signature: &Signature, e: &Expr) -> Vec<Expr> {
    match e.as_builtin(signature) {
        Some((Builtin::Or, [a, b])) => [disjuncts(signature, a), disjuncts(signature, b)].concat(),
        _ => vec![e.clone()],
    }
}

/// Returns the entries of a finite set or bag, each with its arguments other than the rest.
fn entries(signature: &Signature, e: &Expr) -> Vec<Vec<Expr>> {
    let (mut out, mut at) = (Vec::new(), e);
    while let Some((Builtin::SetInsert | Builtin::BagInsert, args)) = at.as_builtin(signature) {
        let Some((rest, own)) = args.split_last() else { break };
        out.push(own.to_vec());
        at = rest;
    }
    out
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
