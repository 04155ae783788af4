//! Type checker of terms and formulas: resolves names, infers sorts, and converts formulas to
//! disjunctive normal form. Input: syntax tree. Output: parts of [`crate::system`].
//!
//! `forall_other` is preserved, `exists_other` becomes an additional process; `forall` and `exists`
//! without *other* become these and one instance for each parameter. A conjunct has at most one
//! existential, and quantifiers are not nested; other formulas are rejected by name. Cost: the size
//! of the normal form, at most [`MAX_CUBES`] cubes.

use crate::ast::{self, Cmp, Formula, Name};
use crate::system::{
    Atom, CellAccess, ComparisonOp, Cube, Proc, Sum, SymbolId, System, Term, TypeId, Universal,
};
use crate::words::{self, SideForm};
use mu_base::source::Span;
use mu_base::{Diagnostic, Stage};
use num_rational::BigRational;
use num_traits::Zero;
use std::collections::HashMap;

/// Largest number of cubes of a normal form; larger ones are rejected.
pub const MAX_CUBES: usize = 20_000;

pub(crate) type CheckResult<T> = Result<T, Diagnostic>;

pub(crate) fn refuse<T>(place: Span, message: impl Into<String>) -> CheckResult<T> {
    Err(Diagnostic::at(Stage::Type, place, message))
}

/// A predicate of the syntax tree.
pub(crate) struct PredicateSyntax<'a> {
    pub(crate) params: &'a [Name],
    pub(crate) body: &'a Formula,
}

/// The names of a file.
#[derive(Default)]
pub(crate) struct DeclaredNames<'a> {
    pub(crate) types: HashMap<&'a str, TypeId>,
    pub(crate) constructors: HashMap<&'a str, crate::system::ConsId>,
    pub(crate) symbols: HashMap<&'a str, SymbolId>,
    pub(crate) predicates: HashMap<&'a str, PredicateSyntax<'a>>,
}

/// The sort of a term: an integer literal is both an `int` and a `real`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermSort {
    Is(TypeId),
    Whole,
}

/// The meaning of a lower-case name.
#[derive(Clone)]
pub(crate) enum NameMeaning {
    Proc(Proc),
    Term(Term, TermSort),
}

/// The process that reads memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingProcess {
    /// None: `init` refers to memory itself.
    Memory,
    /// The named process, or none: `unsafe`, `invariant`.
    Named,
    /// Only this process: transitions.
    Actor(Option<Proc>),
}

/// The quantifiers that a formula may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedQuantifiers {
    None,
    Exists,
    Both,
}

/// One disjunct.
#[derive(Clone, Default)]
pub(crate) struct Conjunct {
    pub(crate) cube: Cube,
    pub(crate) universal: Vec<Universal>,
    /// The number and name of the existential process, if there is one.
    pub(crate) exists: Option<(u32, String)>,
}

/// The scope of a formula.
pub(crate) struct FormulaScope<'s, 'a> {
    pub(crate) system: &'s System,
    pub(crate) names: &'s DeclaredNames<'a>,
    pub(crate) bindings: HashMap<String, NameMeaning>,
    pub(crate) reader: ReadingProcess,
    pub(crate) allowed: AllowedQuantifiers,
    /// Number of declared parameters, which are the first variables.
    pub(crate) declared: u32,
    /// The next number for a bound variable.
    pub(crate) next: u32,
    /// True if memory was read.
    pub(crate) reads: bool,
    /// Predicates that are being expanded.
    pub(crate) unfolding: Vec<String>,
}

impl FormulaScope<'_, '_> {
    /// Looks up a process.
    pub(crate) fn process(&self, name: &Name) -> CheckResult<Proc> {
        if let Some(n) = name.text.strip_prefix('#') {
            let n = n
                .parse()
                .or_else(|_| refuse(name.place.0, format!("`{}` is no process", name.text)))?;
            return Ok(Proc::Fixed(n));
        }
        match self.bindings.get(&name.text) {
            Some(NameMeaning::Proc(p) | NameMeaning::Term(Term::Proc(p), _)) => Ok(*p),
            Some(NameMeaning::Term(..)) => {
                refuse(name.place.0, format!("`{}` is not a process", name.text))
            }
            None => {
                let mut known: Vec<_> = self.bindings.keys().map(|k| format!("`{k}`")).collect();
                known.sort();
                let known = if known.is_empty() {
                    "there is none here".into()
                } else {
                    format!("here are {}", known.join(", "))
                };
                refuse(
                    name.place.0,
                    format!(
                        "`{}` is not a process, expected a process variable: {known}",
                        name.text
                    ),
                )
            }
        }
    }
    /// Looks up a symbol.
    pub(crate) fn symbol(&self, name: &Name) -> CheckResult<SymbolId> {
        match self.names.symbols.get(name.text.as_str()) {
            Some(id) => Ok(*id),
            None if self.names.constructors.contains_key(name.text.as_str()) => refuse(
                name.place.0,
                format!("`{}` is a constructor, expected a variable", name.text),
            ),
            None => refuse(
                name.place.0,
                format!(
                    "`{}` is not declared, expected a variable, array, constant or constructor",
                    name.text
                ),
            ),
        }
    }
    fn access(&mut self, name: &Name, args: &[Name], by: Option<&Name>) -> CheckResult<CellAccess> {
        let symbol = self.symbol(name)?;
        let info = self.system.symbol(symbol);
        if info.arity != args.len() {
            let message = format!(
                "`{}` has {}, but is used with {}",
                name.text,
                indices(info.arity),
                indices(args.len())
            );
            return Err(Diagnostic::at(Stage::Type, name.place.0, message)
                .related(info.place.0, "it is declared here"));
        }
        let args = args.iter().map(|a| self.process(a)).collect::<CheckResult<Vec<_>>>()?;
        let weak = info.kind == crate::system::SymbolKind::Weak;
        let by = match (by, weak) {
            (None, false) => None,
            (Some(by), false) => {
                return refuse(
                    by.place.0,
                    format!(
                        "`{}` is not in memory, expected it without `{} @`",
                        name.text, by.text
                    ),
                );
            }
            (by, true) => self.memory_reader(name, by)?,
        };
        Ok(CellAccess { symbol, args, by })
    }
    /// Returns the process that reads a cell of memory.
    fn memory_reader(&mut self, name: &Name, by: Option<&Name>) -> CheckResult<Option<Proc>> {
        let named = by.map(|n| self.process(n)).transpose()?;
        match (self.reader, named) {
            (ReadingProcess::Memory, Some(_)) => refuse(
                name.place.0,
                format!(
                    "initially all processes read the same value, expected `{}` alone",
                    name.text
                ),
            ),
            (ReadingProcess::Memory, None) => Ok(None),
            (ReadingProcess::Named, named) => Ok(named),
            (ReadingProcess::Actor(actor), named) => {
                self.reads = true;
                let Some(actor) = actor else {
                    let message = format!(
                        "`{}` is in memory: expected a process that reads it, a parameter in brackets `[p]`",
                        name.text
                    );
                    return refuse(name.place.0, message);
                };
                if named.is_some_and(|n| n != actor) {
                    return refuse(
                        name.place.0,
                        "all accesses to memory of a transition are by one process, expected the same as before",
                    );
                }
                Ok(Some(actor))
            }
        }
    }
    /// Checks a term. Returns it with its sort.
    pub(crate) fn term(&mut self, t: &ast::Term) -> CheckResult<(Term, TermSort)> {
        match t {
            ast::Term::Number(n, real, _) => {
                let sort = if *real { TermSort::Is(TypeId::REAL) } else { TermSort::Whole };
                Ok((Term::Sum(Sum::constant(n.clone())), sort))
            }
            ast::Term::Name(name) => self.name(name),
            ast::Term::Cell(name, args) => self.access(name, args, None).map(|a| self.cell(a)),
            ast::Term::By(by, of) => match &**of {
                ast::Term::Name(name) => self.access(name, &[], Some(by)).map(|a| self.cell(a)),
                ast::Term::Cell(name, args) => {
                    self.access(name, args, Some(by)).map(|a| self.cell(a))
                }
                other => {
                    refuse(other.place().0, "expected a variable or a cell of an array after `@`")
                }
            },
            ast::Term::Signed(_) | ast::Term::Mask(..) => refuse(
                t.place().0,
                format!("`{t}` is not supported here, expected it as a side of a comparison"),
            ),
            ast::Term::Add(a, b) => self.add(a, b, false),
            ast::Term::Sub(a, b) => self.add(a, b, true),
            ast::Term::Neg(a) => {
                let (sum, sort) = self.sum(a)?;
                Ok((Term::Sum(scale(sum, &-BigRational::from_integer(1.into()))), sort))
            }
            ast::Term::Mul(a, b) => {
                let ((x, s), (y, t)) = (self.sum(a)?, self.sum(b)?);
                let sort = self.common_sort(s, t, b)?;
                match (x.as_constant(), y.as_constant()) {
                    (Some(c), _) => Ok((Term::Sum(scale(y.clone(), c)), sort)),
                    (_, Some(c)) => Ok((Term::Sum(scale(x.clone(), c)), sort)),
                    _ => refuse(
                        t_place(a, b),
                        "this multiplies two variables, expected a number as one of the factors",
                    ),
                }
            }
        }
    }
    fn name(&mut self, name: &Name) -> CheckResult<(Term, TermSort)> {
        if name.text.starts_with(|c: char| c.is_ascii_uppercase()) {
            if let Some(id) = self.names.constructors.get(name.text.as_str()) {
                return Ok((Term::Cons(*id), TermSort::Is(self.system.constructor(*id).of)));
            }
            let access = self.access(name, &[], None)?;
            return Ok(self.cell(access));
        }
        if let Some(NameMeaning::Term(term, sort)) = self.bindings.get(&name.text) {
            return Ok((term.clone(), *sort));
        }
        Ok((Term::Proc(self.process(name)?), TermSort::Is(TypeId::PROC)))
    }
    fn cell(&self, access: CellAccess) -> (Term, TermSort) {
        let sort = self.system.symbol(access.symbol).sort;
        let term = if sort.is_numeric() {
            Term::Sum(Sum {
                constant: BigRational::zero(),
                terms: vec![(access, BigRational::from_integer(1.into()))],
            })
        } else {
            Term::Cell(access)
        };
        (term, TermSort::Is(sort))
    }
    fn sum(&mut self, t: &ast::Term) -> CheckResult<(Sum, TermSort)> {
        match self.term(t)? {
            (Term::Sum(sum), sort) => Ok((sum, sort)),
            (_, sort) => refuse(
                t.place().0,
                format!("`{t}` is of type {}, expected a number", self.sort_text(sort)),
            ),
        }
    }
    fn add(&mut self, a: &ast::Term, b: &ast::Term, minus: bool) -> CheckResult<(Term, TermSort)> {
        let ((x, s), (y, t)) = (self.sum(a)?, self.sum(b)?);
        let sort = self.common_sort(s, t, b)?;
        let y = if minus { scale(y, &-BigRational::from_integer(1.into())) } else { y };
        Ok((Term::Sum(add(x, y)), sort))
    }
    fn common_sort(&self, a: TermSort, b: TermSort, at: &ast::Term) -> CheckResult<TermSort> {
        match (a, b) {
            (TermSort::Whole, s)
                if s == TermSort::Whole || matches!(s, TermSort::Is(t) if t.is_numeric()) =>
            {
                Ok(s)
            }
            (TermSort::Is(t), TermSort::Whole) if t.is_numeric() => Ok(a),
            (a, b) if a == b => Ok(a),
            (a, b) => refuse(
                at.place().0,
                format!("`{at}` is of type {}, expected {}", self.sort_text(b), self.sort_text(a)),
            ),
        }
    }
    fn sort_text(&self, sort: TermSort) -> String {
        match sort {
            TermSort::Is(t) => format!("`{}`", self.system.type_of(t).name),
            TermSort::Whole => "`int`".into(),
        }
    }
    /// Checks a term of a given sort.
    pub(crate) fn term_of(&mut self, t: &ast::Term, wanted: TypeId) -> CheckResult<Term> {
        let (term, sort) = self.term(t)?;
        if let (Term::Sum(sum), Some(bits)) = (&term, wanted.bits()) {
            self.whole_sum(sum, t, bits)?;
        }
        match sort {
            TermSort::Is(s) if s == wanted => Ok(term),
            TermSort::Whole if wanted.is_numeric() => Ok(term),
            _ => refuse(
                t.place().0,
                format!(
                    "`{t}` is of type {}, expected {}",
                    self.sort_text(sort),
                    self.sort_text(TermSort::Is(wanted))
                ),
            ),
        }
    }
    fn compare(
        &mut self,
        a: &ast::Term,
        cmp: Cmp,
        b: &ast::Term,
        positive: bool,
    ) -> CheckResult<Vec<Conjunct>> {
        let ((a, how_a), (b, how_b)) = (SideForm::of(a), SideForm::of(b));
        let ((x, s), (y, t)) = (self.term(a)?, self.term(b)?);
        let sort = self.common_sort(s, t, b)?;
        let bits = if let TermSort::Is(t) = sort { t.bits() } else { None };
        let ordered = bits.is_some()
            || matches!(
                sort,
                TermSort::Whole | TermSort::Is(TypeId::PROC | TypeId::INT | TypeId::REAL)
            );
        if !ordered && !matches!(cmp, Cmp::Eq | Cmp::Neq) {
            return refuse(
                a.place().0,
                format!(
                    "values of type {} have no order, expected `=` or `<>`",
                    self.sort_text(sort)
                ),
            );
        }
        let (turned, op) = match (cmp, positive) {
            (Cmp::Eq, true) | (Cmp::Neq, false) => (false, ComparisonOp::Eq),
            (Cmp::Neq, true) | (Cmp::Eq, false) => (false, ComparisonOp::Neq),
            (Cmp::Lt, true) | (Cmp::Ge, false) => (false, ComparisonOp::Lt),
            (Cmp::Le, true) | (Cmp::Gt, false) => (false, ComparisonOp::Le),
            (Cmp::Gt, true) | (Cmp::Le, false) => (true, ComparisonOp::Lt),
            (Cmp::Ge, true) | (Cmp::Lt, false) => (true, ComparisonOp::Le),
        };
        if let (Some(bits), Term::Sum(x), Term::Sum(y)) = (bits, &x, &y) {
            let (x, y) = (self.whole_sum(x, a, bits)?, self.whole_sum(y, b, bits)?);
            self.check_comparison((&x, &how_a), (&y, &how_b), (a.place().0, b.place().0), bits)?;
            let (left, right) = ((x, how_a), (y, how_b));
            let (left, right) = if turned { (right, left) } else { (left, right) };
            let cubes = words::compare(left, op, right, bits)
                .or_else(|message| refuse(a.place().0.to(b.place().0), message))?;
            return Ok(cubes
                .into_iter()
                .map(|cube| Conjunct { cube, ..Conjunct::default() })
                .collect());
        }
        if how_a != SideForm::Plain || how_b != SideForm::Plain {
            let message =
                "`signed` and `mask` are for words, expected a sum of a type `word1` to `word32`";
            return refuse(a.place().0.to(b.place().0), message);
        }
        let (x, y) = if turned { (y, x) } else { (x, y) };
        Ok(constant_answer(&x, op, &y).map_or_else(
            || vec![Conjunct { cube: vec![Atom::Compare(x, op, y)], ..Conjunct::default() }],
            truth,
        ))
    }
    /// Returns a sum of words; its factors must be integers, and its literals words.
    fn whole_sum(&self, sum: &Sum, at: &ast::Term, bits: u32) -> CheckResult<Sum> {
        if sum.constant.is_integer() && sum.terms.iter().all(|t| t.1.is_integer()) {
            self.literals(at, sum, bits)?;
            return Ok(sum.clone());
        }
        refuse(at.place().0, format!("`{at}` has a fraction, expected integers in a sum of words"))
    }
    /// Returns the normal form of a formula, or of its negation.
    pub(crate) fn dnf(&mut self, e: &Formula, positive: bool) -> CheckResult<Vec<Conjunct>> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.dnf_inner(e, positive))
    }
    fn dnf_inner(&mut self, e: &Formula, positive: bool) -> CheckResult<Vec<Conjunct>> {
        match e {
            Formula::Constant(value, _) => Ok(truth(*value == positive)),
            Formula::Compare(a, cmp, b) => self.compare(a, *cmp, b, positive),
            Formula::Fence(by, place) => self.fence(by.as_ref(), place.0, positive),
            Formula::Call(name, args) => self.call(name, args, positive),
            Formula::Not(a) => self.dnf(a, !positive),
            Formula::And(all) | Formula::Or(all) => {
                let conjunction = matches!(e, Formula::And(_)) == positive;
                let mut out = truth(conjunction);
                for part in all {
                    let part = self.dnf(part, positive)?;
                    out =
                        if conjunction { conjoin(&out, &part, e)? } else { either(out, part, e)? };
                }
                Ok(out)
            }
            Formula::Implies(a, b) => {
                let (a, b) = (self.dnf(a, !positive)?, self.dnf(b, positive)?);
                if positive { either(a, b, e) } else { conjoin(&a, &b, e) }
            }
            // Both or neither; negated, exactly one of them.
            Formula::Iff(a, b) => {
                let with = conjoin(&self.dnf(a, true)?, &self.dnf(b, positive)?, e)?;
                let without = conjoin(&self.dnf(a, false)?, &self.dnf(b, !positive)?, e)?;
                either(with, without, e)
            }
            Formula::If(c, a, b) => {
                let yes = conjoin(&self.dnf(c, true)?, &self.dnf(a, positive)?, e)?;
                let no = conjoin(&self.dnf(c, false)?, &self.dnf(b, positive)?, e)?;
                either(yes, no, e)
            }
            Formula::Quantified(q, vars, body) => self.expand_quantifier(*q, vars, body, positive),
        }
    }
    fn fence(
        &mut self,
        by: Option<&Name>,
        place: Span,
        positive: bool,
    ) -> CheckResult<Vec<Conjunct>> {
        let ReadingProcess::Actor(actor) = self.reader else {
            return refuse(place, "`fence` is for guards, expected none here");
        };
        let Some(actor) = actor else {
            return refuse(
                place,
                "`fence()` waits for the buffer of a process, expected a parameter in brackets `[p]`",
            );
        };
        if by.map(|n| self.process(n)).transpose()?.is_some_and(|p| p != actor) {
            return refuse(
                place,
                "a transition waits for its own process only, expected the process that accesses memory",
            );
        }
        if !positive {
            return refuse(
                place,
                "`fence` cannot be negated: a program cannot test that its buffer is not empty",
            );
        }
        Ok(vec![Conjunct { cube: vec![Atom::Fence(actor)], ..Conjunct::default() }])
    }
    fn call(
        &mut self,
        name: &Name,
        args: &[ast::Term],
        positive: bool,
    ) -> CheckResult<Vec<Conjunct>> {
        let names = self.names;
        let Some(predicate) = names.predicates.get(name.text.as_str()) else {
            return refuse(name.place.0, format!("`{}` is no predicate", name.text));
        };
        if predicate.params.len() != args.len() {
            return refuse(
                name.place.0,
                format!(
                    "`{}` takes {} arguments, found {}",
                    name.text,
                    predicate.params.len(),
                    args.len()
                ),
            );
        }
        if self.unfolding.contains(&name.text) {
            return refuse(name.place.0, format!("predicate `{}` uses itself", name.text));
        }
        let mut bindings = HashMap::new();
        for (param, arg) in predicate.params.iter().zip(args) {
            let (term, sort) = self.term(arg)?;
            if let (Term::Sum(sum), TermSort::Is(of)) = (&term, sort)
                && let Some(bits) = of.bits()
            {
                self.whole_sum(sum, arg, bits)?;
            }
            bindings.insert(
                param.text.clone(),
                if let Term::Proc(p) = term {
                    NameMeaning::Proc(p)
                } else {
                    NameMeaning::Term(term, sort)
                },
            );
        }
        let outer = std::mem::replace(&mut self.bindings, bindings);
        self.unfolding.push(name.text.clone());
        let result = self.dnf(predicate.body, positive);
        self.unfolding.pop();
        self.bindings = outer;
        result.map_err(|d| d.related(name.place.0, "the predicate is used here"))
    }
    fn expand_quantifier(
        &mut self,
        q: ast::QuantifierKind,
        vars: &[Name],
        body: &Formula,
        positive: bool,
    ) -> CheckResult<Vec<Conjunct>> {
        let place = vars[0].place.0;
        let all = q.all == positive;
        let unsupported = |message: &str| Err(Diagnostic::at(Stage::Unsupported, place, message));
        match (self.allowed, all) {
            (AllowedQuantifiers::None, _) => {
                return unsupported("a quantifier is not supported here");
            }
            (AllowedQuantifiers::Exists, true) => {
                return unsupported(
                    "`forall` is not supported here: it ranges over some processes only",
                );
            }
            _ => {}
        }
        let [var] = vars else {
            return unsupported("one quantified process at a time is supported");
        };
        let mut out = truth(all);
        if !q.other {
            for param in 0..self.declared {
                let part = self.bind(var, Proc::Var(param), body, positive)?;
                out = if all { conjoin(&out, &part, body)? } else { either(out, part, body)? };
            }
        }
        let number = self.next;
        self.next += 1;
        let mut part = self.bind(var, Proc::Var(number), body, positive)?;
        if all {
            let universal = Universal {
                name: var.text.clone(),
                var: number,
                dnf: part.into_iter().map(|c| c.cube).collect(),
            };
            return conjoin(
                &out,
                &[Conjunct { universal: vec![universal], ..Conjunct::default() }],
                body,
            );
        }
        for conjunct in &mut part {
            conjunct.exists = Some((number, var.text.clone()));
        }
        either(out, part, body)
    }
    /// Returns the normal form of a quantifier's body with its variable bound; inner quantifiers
    /// are rejected.
    fn bind(
        &mut self,
        var: &Name,
        to: Proc,
        body: &Formula,
        positive: bool,
    ) -> CheckResult<Vec<Conjunct>> {
        let before = self.bindings.insert(var.text.clone(), NameMeaning::Proc(to));
        let allowed = std::mem::replace(&mut self.allowed, AllowedQuantifiers::None);
        let result = self.dnf(body, positive);
        self.allowed = allowed;
        match before {
            Some(b) => self.bindings.insert(var.text.clone(), b),
            None => self.bindings.remove(&var.text),
        };
        result
    }
}

fn indices(n: usize) -> String {
    match n {
        0 => "no index".into(),
        1 => "one index".into(),
        n => format!("{n} indices"),
    }
}

fn t_place(a: &ast::Term, b: &ast::Term) -> Span {
    a.place().0.to(b.place().0)
}

/// Returns the normal form of a constant.
fn truth(value: bool) -> Vec<Conjunct> {
    if value { vec![Conjunct::default()] } else { Vec::new() }
}

fn too_many<T>(at: &Formula) -> CheckResult<T> {
    Err(Diagnostic::at(
        Stage::Unsupported,
        at.place().0,
        format!("the disjunctive normal form of this has more than {MAX_CUBES} cubes"),
    ))
}

fn either(mut a: Vec<Conjunct>, b: Vec<Conjunct>, at: &Formula) -> CheckResult<Vec<Conjunct>> {
    a.extend(b);
    if a.len() > MAX_CUBES { too_many(at) } else { Ok(a) }
}

fn conjoin(a: &[Conjunct], b: &[Conjunct], at: &Formula) -> CheckResult<Vec<Conjunct>> {
    if a.len().saturating_mul(b.len()) > MAX_CUBES {
        return too_many(at);
    }
    let mut out = Vec::with_capacity(a.len() * b.len());
    for x in a {
        for y in b {
            let mut z = x.clone();
            for atom in &y.cube {
                if !z.cube.contains(atom) {
                    z.cube.push(atom.clone());
                }
            }
            z.universal.extend(y.universal.iter().cloned());
            if let Some(e) = &y.exists {
                if z.exists.as_ref().is_some_and(|x| x.0 != e.0) {
                    return Err(Diagnostic::at(
                        Stage::Unsupported,
                        at.place().0,
                        "two `exists` in one conjunction are not supported",
                    ));
                }
                z.exists = Some(e.clone());
            }
            out.push(z);
        }
    }
    Ok(out)
}

/// Returns the sum of two sums.
fn add(a: Sum, b: Sum) -> Sum {
    let mut terms: std::collections::BTreeMap<CellAccess, BigRational> =
        a.terms.into_iter().collect();
    for (cell, factor) in b.terms {
        *terms.entry(cell).or_insert_with(BigRational::zero) += factor;
    }
    Sum {
        constant: a.constant + b.constant,
        terms: terms.into_iter().filter(|(_, f)| !f.is_zero()).collect(),
    }
}

/// Returns a multiple of a sum.
fn scale(a: Sum, by: &BigRational) -> Sum {
    if by.is_zero() {
        return Sum::constant(BigRational::zero());
    }
    Sum {
        constant: a.constant * by,
        terms: a.terms.into_iter().map(|(cell, f)| (cell, f * by)).collect(),
    }
}

/// Evaluates a comparison of constants; `None` if it depends on variables.
fn constant_answer(a: &Term, op: ComparisonOp, b: &Term) -> Option<bool> {
    let order = match (a, b) {
        (Term::Cons(a), Term::Cons(b)) => a.cmp(b),
        (Term::Proc(Proc::Fixed(a)), Term::Proc(Proc::Fixed(b))) => a.cmp(b),
        (Term::Sum(a), Term::Sum(b)) => a.as_constant()?.cmp(b.as_constant()?),
        _ => return None,
    };
    Some(match op {
        ComparisonOp::Eq => order.is_eq(),
        ComparisonOp::Neq => order.is_ne(),
        ComparisonOp::Lt => order.is_lt(),
        ComparisonOp::Le => order.is_le(),
    })
}
