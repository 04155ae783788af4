//! Evaluation of the checker: terms over numbers without a value, by the naive rewriter.
//!
//! In: terms of the process and the formula, values with variables in the place of numbers, a case.
//! Out: normal forms, truth values, the choices of sums. What the rewriter does not decide is an
//! error. The value of a term without numbers in its variables is computed once. Cost:
//! naive rewriting.

use super::numbers::{Case, CaseOrder, Memory, Numbers};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{SortId, VarId};
use mu_base::{Budget, Diagnostic, Span, Stage};
use mu_data::builtins::linear::least;
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind, Substitution};
use mu_data::naive::Naive;
use mu_data::print;
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use mu_process::linear::LinearProcess;
use num_traits::ToPrimitive;
use std::rc::Rc;

/// Limit on the numbers of a state, those of sums and quantifiers included.
pub const MAX_NUMBERS: usize = 96;
/// Limit on the rewrite steps of one evaluation.
const STEP_LIMIT: u64 = 1_000_000;
/// Limit on the cases of one evaluation.
const MAX_CASES: usize = 50_000;
/// Limit on stored values.
const MAX_STORED: usize = 1 << 20;

/// Returns the error for what the checker does not decide.
pub(super) fn fails(text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::Unsupported, text.into())
}

/// Returns the error for a certificate that does not prove the formula.
pub(super) fn wrong(text: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Stage::Formula, text.into())
}

/// A term with its free variables.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub e: Expr,
    pub free: Vec<VarId>,
}

impl Term {
    pub fn new(e: &Expr) -> Self {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        Self { e: e.clone(), free }
    }
}

/// Values of variables, and which of them contain numbers without a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub by: Substitution,
    open: AHashSet<VarId>,
}

impl Values {
    pub fn insert(&mut self, var: VarId, value: Expr) {
        if value.is_closed() {
            self.open.remove(&var);
        } else {
            self.open.insert(var);
        }
        self.by.insert(var, value);
    }

    pub fn get(&self, var: VarId) -> Option<&Expr> {
        self.by.get(&var)
    }

    /// Returns the values after a replacement of variables in them.
    pub fn with(mut self, by: &Substitution) -> Self {
        for var in self.open.iter().copied().collect::<Vec<_>>() {
            if let Some(e) = self.by.get(&var) {
                let e = e.substitute(by);
                self.insert(var, e);
            }
        }
        self
    }

    pub fn is_open(&self, var: VarId) -> bool {
        self.open.contains(&var) || !self.by.contains_key(&var)
    }
}

/// A summand of the process.
#[derive(Clone, Debug)]
pub(super) struct Summand {
    /// Parts of its condition.
    pub guard: Vec<Term>,
    /// Variables of its sum that are used.
    sum: Vec<VarId>,
    pub arguments: Vec<Term>,
    pub updates: Vec<(VarId, Term)>,
    span: Span,
}

/// Evaluation with the naive rewriter.
pub(super) struct Evaluator<'a> {
    pub budget: &'a Budget,
    pub naive: Naive,
    pub signature: Rc<Signature>,
    pub numbers: Rc<Numbers>,
    order: CaseOrder,
    /// Variables for numbers, by sort.
    pub pool: &'a AHashMap<SortId, Vec<VarId>>,
    pub summands: Rc<[Summand]>,
    /// Operations with equations.
    defined: AHashSet<mu_base::ids::OpId>,
    /// Normal forms of terms by the values of their variables.
    stored: AHashMap<(Expr, Vec<Expr>), Expr>,
    evaluations: u64,
    /// Updates of arrays by sort.
    updates: AHashMap<SortId, mu_base::ids::OpId>,
}

/// The cases of one evaluation, one after the other.
pub(super) struct Cases {
    start: Option<Case>,
    prefix: Vec<u32>,
    /// Results of the last case that hold in the next one.
    memory: Memory,
    count: usize,
}

impl Cases {
    /// Creates the cases of these constraints; there are none if these have no solution.
    pub fn of(start: Option<Case>) -> Self {
        Self { start, prefix: Vec::new(), memory: Memory::default(), count: 0 }
    }

    /// Begins the next case, in which `vars` are the first numbers; false after the last.
    pub fn begin(&mut self, by: &Evaluator, vars: &[VarId]) -> Result<bool, Diagnostic> {
        let Some(start) = &self.start else { return Ok(false) };
        self.count += 1;
        if self.count > MAX_CASES {
            return Err(fails(format!("more than {MAX_CASES} cases")));
        }
        *by.numbers.of.borrow_mut() = vars.iter().enumerate().map(|(i, v)| (*v, i + 1)).collect();
        let mut case = start.with(std::mem::take(&mut self.prefix));
        case.memory = std::mem::take(&mut self.memory);
        case.picked.named = by.numbers.merged.borrow().iter().map(|m| m.tracked).collect();
        *by.numbers.case.borrow_mut() = case;
        Ok(true)
    }

    /// Ends a case.
    pub fn end(&mut self, by: &Evaluator) {
        let mut case = by.numbers.case.borrow_mut();
        match case.next() {
            Some(next) => {
                // All decisions before the last one are those of this case.
                case.memory.keep(next.len() - 1);
                self.memory = std::mem::take(&mut case.memory);
                self.prefix = next;
            }
            None => self.start = None,
        }
    }
}

impl<'a> Evaluator<'a> {
    pub fn new(
        process: &LinearProcess,
        data: &DataSpec,
        pool: &'a AHashMap<SortId, Vec<VarId>>,
        budget: &'a Budget,
    ) -> Self {
        let signature = Rc::new(data.signature.clone());
        let numbers = Rc::new(Numbers::default());
        let order = || CaseOrder { numbers: numbers.clone(), signature: signature.clone() };
        let mut naive = Naive::new(data, STEP_LIMIT);
        naive.with_numbers(Some(Rc::new(order())));
        let summands = process.summands.iter().map(|s| {
            let arguments: Vec<Term> =
                s.actions.iter().flat_map(|a| &a.args).map(Term::new).collect();
            let updates: Vec<(VarId, Term)> =
                s.updates.iter().map(|(at, e)| (process.params[*at].var, Term::new(e))).collect();
            let guard: Vec<Term> = s.guard.conjuncts(&signature).iter().map(Term::new).collect();
            let all = arguments.iter().chain(updates.iter().map(|u| &u.1)).chain(&guard);
            let used: AHashSet<VarId> = all.flat_map(|t| t.free.iter().copied()).collect();
            let sum = s.sum_vars.iter().copied().filter(|v| used.contains(v)).collect();
            Summand { guard, sum, arguments, updates, span: s.span() }
        });
        let summands = summands.collect::<Vec<_>>().into();
        let defined = data.equations.iter().filter_map(|e| e.lhs.head()).collect();
        Self {
            budget,
            naive,
            order: order(),
            signature,
            numbers,
            pool,
            summands,
            defined,
            stored: AHashMap::new(),
            evaluations: 0,
            updates: AHashMap::new(),
        }
    }

    pub fn choose(&self, options: usize) -> usize {
        self.numbers.case.borrow_mut().choose(options)
    }

    /// Creates a number of a sort that may have any value.
    pub fn any_number(&mut self, sort: SortId) -> Result<Expr, Diagnostic> {
        let at = self.numbers.case.borrow_mut().number(least(sort));
        let var = self.pool.get(&sort).and_then(|all| all.get(MAX_NUMBERS + at)).copied();
        let var = var.ok_or_else(|| fails("too many numbers"))?;
        self.numbers.of.borrow_mut().insert(var, at);
        Ok(Expr::new(ExprKind::Var(var), sort, Span::default()))
    }

    /// Returns any value of a sort, by choices; `None` if it has infinitely many shapes.
    pub fn any_value(&mut self, sort: SortId, depth: usize) -> Result<Option<Expr>, Diagnostic> {
        let merged = self.numbers.merged.borrow().iter().position(|m| m.sort == sort);
        if let Some(at) = merged {
            let e = self.numbers.any_constant(&self.signature, at);
            return e.map(Some).ok_or_else(|| fails("a step reads too many constants"));
        }
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

    /// Returns the normal form of a term over numbers.
    pub fn normal(&mut self, e: &Expr) -> Result<Expr, Diagnostic> {
        self.evaluations += 1;
        if self.evaluations.is_multiple_of(256) {
            self.budget.check(0).map_err(Diagnostic::stopped)?;
        }
        if let Some(known) = self.numbers.case.borrow_mut().recall(e) {
            return Ok(known);
        }
        let before = self.numbers.case.borrow().moment();
        self.naive.allow(STEP_LIMIT);
        let found = self.naive.normal(e);
        if let Some(found) = &found {
            self.numbers.case.borrow_mut().remember(before, e, found);
        }
        // The rewriter adds operations of collections.
        if self.naive.signature().op_count() != self.signature.op_count() {
            self.signature = Rc::new(self.naive.signature().clone());
        }
        found
            .ok_or_else(|| fails(format!("`{}` is not decided", self.term_text(e))).or_span(e.span))
    }

    /// Returns the value of a term.
    pub fn value(&mut self, term: &Term, values: &Values) -> Result<Expr, Diagnostic> {
        if let ExprKind::Var(v) = &term.e.kind
            && let Some(e) = values.get(*v)
        {
            return Ok(e.clone());
        }
        if term.free.iter().any(|v| values.is_open(*v)) {
            return self.normal(&term.e.substitute(&values.by));
        }
        // No number takes part: the same in every case.
        let given: Vec<Expr> = term.free.iter().filter_map(|v| values.get(*v)).cloned().collect();
        let key = (term.e.clone(), given);
        if let Some(e) = self.stored.get(&key) {
            return Ok(e.clone());
        }
        let e = self.normal(&term.e.substitute(&values.by))?;
        if self.stored.len() < MAX_STORED {
            self.stored.insert(key, e.clone());
        }
        Ok(e)
    }

    /// Returns the truth value of a condition.
    pub fn holds(&mut self, term: &Term, values: &Values) -> Result<bool, Diagnostic> {
        let normal = self.value(term, values)?;
        match normal.as_bool(self.naive.signature()) {
            Some(b) => Ok(b),
            None => self.decide_quantified(&normal),
        }
    }

    /// Returns an array after an update of one entry.
    pub fn update(&mut self, array: Expr, key: Expr, entry: Expr) -> Result<Expr, Diagnostic> {
        let sort = array.sort;
        let known = self.updates.get(&sort).copied();
        let op = known.or_else(|| {
            let mut all = self.signature.ops();
            let found = all.find(|(_, op)| {
                op.kind == OpKind::Builtin(Builtin::Update)
                    && self.signature.domain_range(op.sort).1 == sort
            });
            found.map(|(op, _)| op)
        });
        let op = op.ok_or_else(|| fails("arrays have no updates"))?;
        self.updates.insert(sort, op);
        Ok(Expr::apply(&self.signature, op, vec![array, key, entry]))
    }

    pub fn term_text(&self, e: &Expr) -> String {
        let mut text = print::expression(&self.signature, e);
        if let Some((at, _)) = text.char_indices().nth(300) {
            text.truncate(at);
            text.push('…');
        }
        text
    }

    /// True if a value is a normal form of the rewriter in every case: it consists of constructors
    /// without equations, list cells, and numbers.
    pub fn is_plain(&self, e: &Expr) -> bool {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &e.kind {
            ExprKind::Var(_) | ExprKind::Number(_) => true,
            ExprKind::Op(op) => self.is_free(*op),
            ExprKind::Apply(head, args) => {
                matches!(head.kind, ExprKind::Op(op) if self.is_free(op))
                    && args.iter().all(|a| self.is_plain(a))
            }
            _ => false,
        })
    }

    fn is_free(&self, op: mu_base::ids::OpId) -> bool {
        use Builtin::{Cons, EmptyBag, EmptyList, EmptySet, False, True};
        let kind = &self.signature.op(op).kind;
        let known = matches!(
            kind,
            OpKind::Constructor(_)
                | OpKind::Builtin(Cons | EmptyBag | EmptyList | EmptySet | False | True)
        );
        known && !self.defined.contains(&op)
    }

    fn truth(&mut self, e: &Expr) -> Result<bool, Diagnostic> {
        let normal = self.normal(e)?;
        match normal.as_bool(self.naive.signature()) {
            Some(b) => Ok(b),
            None => self.decide_quantified(&normal),
        }
    }

    /// Decides a condition with quantifiers over variables that equations determine.
    fn decide_quantified(&mut self, e: &Expr) -> Result<bool, Diagnostic> {
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
        match &e.kind {
            ExprKind::Bind(Binder::Exists, vars, body) => self.exists(vars, body),
            ExprKind::Bind(Binder::Forall, vars, body) => self.for_all(vars, body),
            _ => Err(fails(format!("`{}` is not decided", self.term_text(e)))),
        }
    }

    /// Decides `forall vars. body` over numbers that the body bounds by a literal.
    fn for_all(&mut self, vars: &[VarId], body: &Expr) -> Result<bool, Diagnostic> {
        let signature = self.signature.clone();
        let Some((var, others)) = vars.split_first() else { return self.truth(body) };
        if let Some((Builtin::And, [a, b])) = body.as_builtin(&signature) {
            return Ok(self.for_all(vars, a)? && self.for_all(vars, b)?);
        }
        let mut before = Vec::new();
        let mut at = body;
        while let Some((Builtin::Implies, [a, b])) = at.as_builtin(&signature) {
            before.extend(a.conjuncts(&signature));
            at = b;
        }
        let Some(most) = self.greatest_value(*var, &before)? else {
            return Err(fails(format!("`forall {}` is not decided", signature.var(*var).name)));
        };
        for n in least(signature.var(*var).sort).unwrap_or(0)..=most {
            let e = Expr::number(n, signature.var(*var).sort);
            let body = body.substitute(&[(*var, e)].into_iter().collect());
            if !self.for_all(others, &body)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the greatest value of a variable, not Int, that satisfies some condition; `None`
    /// without a small literal bound.
    fn greatest_value(&mut self, var: VarId, all: &[Expr]) -> Result<Option<i64>, Diagnostic> {
        let signature = self.signature.clone();
        if least(signature.var(var).sort).is_none() {
            return Ok(None);
        }
        for c in all {
            let (below, limit, strict) = match c.as_builtin(&signature) {
                Some((Builtin::Less, [a, b])) => (a, b, 1),
                Some((Builtin::LessEqual, [a, b])) => (a, b, 0),
                Some((Builtin::Greater, [a, b])) => (b, a, 1),
                Some((Builtin::GreaterEqual, [a, b])) => (b, a, 0),
                _ => continue,
            };
            if !is_variable(&signature, below, var) || !limit.is_closed() {
                continue;
            }
            let limit = self.normal(limit)?;
            if let (ExprKind::Number(n), true) = (&limit.kind, limit.is_closed())
                && let Some(n) = n.to_i64().filter(|n| *n <= 64)
            {
                return Ok(Some(n - strict));
            }
        }
        Ok(None)
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
            if !self.belongs(&e, *v)? {
                return Ok(false);
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
        for v in &vars {
            let Some(most) = self.greatest_value(*v, &conjuncts)? else { continue };
            for n in least(signature.var(*v).sort).unwrap_or(0)..=most {
                let e = Expr::number(n, signature.var(*v).sort);
                let body = body.substitute(&[(*v, e)].into_iter().collect());
                if self.exists(&without(*v), &body)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Err(fails(format!("`exists {}` is not decided", signature.var(vars[0]).name)))
    }

    /// Decides whether a value belongs to the sort of a variable.
    fn belongs(&self, e: &Expr, var: VarId) -> Result<bool, Diagnostic> {
        let found = self.order.belongs(e, self.signature.var(var).sort);
        found.ok_or_else(|| fails(format!("`{}` is not a number", self.term_text(e))))
    }

    /// True if no step of a summand exists for these values, in any case.
    pub fn is_disabled(&mut self, summand: usize, values: &Values) -> Result<bool, Diagnostic> {
        let all = self.summands.clone();
        for c in &all[summand].guard {
            if c.free.iter().any(|v| values.is_open(*v)) {
                continue;
            }
            match self.holds(c, values) {
                Ok(false) => return Ok(true),
                // Another part may exclude what is not decided.
                Err(why) if why.stop.is_some() => return Err(why),
                _ => {}
            }
        }
        Ok(false)
    }

    /// True if a part of the condition of a summand that reads none of the lists is false in the
    /// case.
    pub fn is_excluded(
        &mut self,
        summand: usize,
        values: &Values,
        lists: &[(VarId, usize)],
    ) -> Result<bool, Diagnostic> {
        let all = self.summands.clone();
        for c in &all[summand].guard {
            let given = |v: &VarId| values.get(*v).is_some() && lists.iter().all(|l| l.0 != *v);
            if c.free.iter().all(given) && !self.holds(c, values)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Chooses values of summed variables that satisfy the condition of a summand; `None` if the
    /// case has none.
    pub fn step(
        &mut self,
        summand: usize,
        mut values: Values,
    ) -> Result<Option<Values>, Diagnostic> {
        let all = self.summands.clone();
        let own = &all[summand];
        let signature = self.signature.clone();
        let mut open = own.sum.clone();
        let mut left: Vec<&Term> = own.guard.iter().collect();
        loop {
            // Conditions without open variables come first.
            let mut rest = Vec::new();
            for c in left {
                if c.free.iter().any(|v| open.contains(v)) {
                    rest.push(c);
                } else if !self.holds(c, &values)? {
                    return Ok(None);
                }
            }
            left = rest;
            if open.is_empty() {
                return Ok(Some(values));
            }
            let determined = open.iter().enumerate().find_map(|(i, v)| {
                let e = left.iter().find_map(|c| equal_to(&signature, &c.e, *v, &open))?;
                Some((i, e))
            });
            if determined.is_none()
                && let Some(bound) = self.member(&left, &open, &values)?
            {
                let Some(bound) = bound else { return Ok(None) };
                for (v, e) in bound {
                    if least(signature.var(v).sort).is_some() && !self.belongs(&e, v)? {
                        return Ok(None);
                    }
                    open.retain(|w| *w != v);
                    values.insert(v, e);
                }
                continue;
            }
            let (i, e) = match determined {
                Some((i, e)) => (i, self.normal(&e.substitute(&values.by))?),
                None => {
                    let sort = signature.var(open[0]).sort;
                    let Some(e) = self.any_value(sort, 0)? else {
                        return Err(fails("a sum over values of any size").or_span(own.span));
                    };
                    (0, e)
                }
            };
            let var = open.remove(i);
            if least(signature.var(var).sort).is_some() && !self.belongs(&e, var)? {
                return Ok(None);
            }
            values.insert(var, e);
        }
    }

    /// Chooses an element of a collection that a condition `pattern in collection` requires, and
    /// returns the values of the pattern's open variables: `None` without such a condition,
    /// `Some(None)` if no element matches.
    #[allow(clippy::type_complexity)]
    fn member(
        &mut self,
        left: &[&Term],
        open: &[VarId],
        values: &Values,
    ) -> Result<Option<Option<Vec<(VarId, Expr)>>>, Diagnostic> {
        let signature = self.signature.clone();
        for c in left {
            let Some((Builtin::In, [pattern, all])) = c.e.as_builtin(&signature) else { continue };
            let mut free = Vec::new();
            all.free_vars(&mut free);
            if free.iter().any(|v| open.contains(v)) || !self.binds(pattern, open) {
                continue;
            }
            let all = self.normal(&all.substitute(&values.by))?;
            let Some(elements) = elements(self.naive.signature(), &all) else { continue };
            if elements.is_empty() {
                return Ok(Some(None));
            }
            let element = &elements[self.choose(elements.len())];
            let mut bound = Vec::new();
            let fits = self.bind(pattern, element, open, &mut bound);
            return Ok(Some(fits.then_some(bound)));
        }
        Ok(None)
    }

    /// Returns the constructor at the head of a term, if no equation concerns it.
    fn constructor(&self, e: &Expr) -> Option<mu_base::ids::OpId> {
        let signature = &self.signature;
        let op = e.head().filter(|op| op.index() < signature.op_count())?;
        let is = matches!(signature.op(op).kind, OpKind::Constructor(_));
        (is && !self.defined.contains(&op)).then_some(op)
    }

    /// True if a pattern of constructors has an open variable.
    fn binds(&self, pattern: &Expr, open: &[VarId]) -> bool {
        if open.iter().any(|v| is_variable(&self.signature, pattern, *v)) {
            return true;
        }
        match &pattern.kind {
            ExprKind::Apply(_, args) => {
                self.constructor(pattern).is_some() && args.iter().any(|a| self.binds(a, open))
            }
            _ => false,
        }
    }

    /// Matches a pattern of constructors with a value: appends the values of open variables. False
    /// if the constructors differ; other parts are not compared.
    fn bind(
        &self,
        pattern: &Expr,
        value: &Expr,
        open: &[VarId],
        out: &mut Vec<(VarId, Expr)>,
    ) -> bool {
        if let Some(v) = open.iter().find(|v| is_variable(&self.signature, pattern, **v)) {
            if !out.iter().any(|o| o.0 == *v) {
                out.push((*v, value.clone()));
            }
            return true;
        }
        match (self.constructor(pattern), self.constructor(value)) {
            (Some(f), Some(g)) if f != g => false,
            (Some(_), Some(_)) => match (&pattern.kind, &value.kind) {
                (ExprKind::Apply(_, xs), ExprKind::Apply(_, ys)) if xs.len() == ys.len() => {
                    xs.iter().zip(ys).all(|(x, y)| self.bind(x, y, open, out))
                }
                _ => true,
            },
            _ => true,
        }
    }
}

/// Adds the variables of numbers that a checker uses, by sort.
pub(super) fn number_variables(signature: &mut Signature) -> AHashMap<SortId, Vec<VarId>> {
    [basic::POS, basic::NAT, basic::INT]
        .into_iter()
        .map(|sort| (sort, crate::certificate::numbers(signature, 2 * MAX_NUMBERS, sort)))
        .collect()
}

/// Returns the elements of a list, a finite set, or a finite bag.
fn elements(signature: &Signature, e: &Expr) -> Option<Vec<Expr>> {
    use Builtin::*;
    let (mut out, mut at) = (Vec::new(), e);
    loop {
        match at.as_builtin(signature)? {
            (EmptyList | EmptySet | EmptyBag, _) => return Some(out),
            (Cons | SetInsert, [x, rest]) | (BagInsert, [x, _, rest]) => {
                out.push(x.clone());
                at = rest;
            }
            (FSetToSet | FBagToBag, [inner]) => at = inner,
            _ => return None,
        }
    }
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
    equation_value(signature, c, &|e| is_variable(signature, e, var), open)
}

/// Returns the value that an equation gives a variable, by terms without the variables `open`.
/// `is_variable`: true for the terms that are the variable. `None` if the condition is another one.
pub fn equation_value(
    signature: &Signature,
    c: &Expr,
    is_variable: &dyn Fn(&Expr) -> bool,
    open: &[VarId],
) -> Option<Expr> {
    let (Builtin::Equal, [a, b]) = c.as_builtin(signature)? else { return None };
    [(a, b), (b, a)].into_iter().find_map(|(x, e)| {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        let closed = !free.iter().any(|v| open.contains(v));
        (closed && is_variable(x)).then(|| e.clone())
    })
}

/// Returns the disjuncts of a condition.
fn disjuncts(signature: &Signature, e: &Expr) -> Vec<Expr> {
    match e.as_builtin(signature) {
        Some((Builtin::Or, [a, b])) => [disjuncts(signature, a), disjuncts(signature, b)].concat(),
        _ => vec![e.clone()],
    }
}
