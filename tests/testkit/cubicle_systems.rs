//! Generator of random, small, well-typed systems that use the whole language: weak variables and
//! arrays, matrices, constants, guards with quantifiers, cases, undetermined values, arithmetic.
//! For random comparisons of the machine with its oracle, of the prover with the machine, and of
//! the printer with the parser. The system depends only on the seed.
//!
//! Guards restrict numbers to `0..=3`, so that instances are finite.

use mu_base::random::Random;
use mu_base::source::Place;
use mu_cubicle::ast::{
    Cmp, DeclarationKind, File, Formula, Item, Name, QuantifierKind, Right, Term, Update, Value,
};
use num_rational::BigRational;

/// The features of a system.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Symbols in memory.
    pub weak: bool,
    /// Arithmetic.
    pub arithmetic: bool,
    /// Quantifiers in guards.
    pub quantifiers: bool,
    /// Cells that `init` does not determine, `:= .`, constants.
    pub open: bool,
    /// Processes interact only through memory: variables are weak, and only the process itself
    /// accesses its cell of a plain array.
    pub private: bool,
    /// Assumptions.
    pub assumptions: bool,
    /// Largest number of transitions.
    pub transitions: usize,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            weak: true,
            arithmetic: true,
            quantifiers: true,
            open: true,
            private: false,
            assumptions: false,
            transitions: 5,
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Sort {
    Loc,
    Bool,
    Int,
    Proc,
}

struct Symbol {
    name: &'static str,
    arity: usize,
    sort: Sort,
    declared: DeclarationKind,
}

struct Maker<'r> {
    random: &'r mut Random,
    shape: Shape,
    symbols: Vec<Symbol>,
}

fn name(text: impl Into<String>) -> Name {
    Name { text: text.into(), place: Place::default() }
}

fn number(n: i64) -> Term {
    Term::Number(BigRational::from_integer(n.into()), false, Place::default())
}

fn name_term(text: &str) -> Term {
    Term::Name(name(text))
}

fn and(mut parts: Vec<Formula>) -> Formula {
    if parts.len() == 1 { parts.remove(0) } else { Formula::And(parts) }
}

/// Generates a random system.
pub fn file(random: &mut Random, shape: Shape) -> File {
    let mut symbols =
        vec![Symbol { name: "Pc", arity: 1, sort: Sort::Loc, declared: DeclarationKind::Plain }];
    let mut maybe = |random: &mut Random, allowed: bool, name, arity, sort, declared| {
        if allowed && random.chance(1, 2) {
            symbols.push(Symbol { name, arity, sort, declared });
        }
    };
    maybe(random, true, "Flag", 1, Sort::Bool, DeclarationKind::Plain);
    let shared = if shape.private { DeclarationKind::Weak } else { DeclarationKind::Plain };
    maybe(random, true, "Turn", 0, Sort::Proc, shared);
    maybe(random, true, "Mode", 0, Sort::Loc, shared);
    maybe(random, shape.arithmetic, "Count", 0, Sort::Int, shared);
    maybe(random, shape.arithmetic && !shape.weak, "Ticket", 1, Sort::Int, DeclarationKind::Plain);
    maybe(random, shape.quantifiers && !shape.weak, "Link", 2, Sort::Bool, DeclarationKind::Plain);
    maybe(random, shape.open, "Kind", 1, Sort::Bool, DeclarationKind::Constant);
    maybe(random, shape.weak, "X", 0, Sort::Bool, DeclarationKind::Weak);
    maybe(random, shape.weak, "Y", 0, Sort::Loc, DeclarationKind::Weak);
    maybe(random, shape.weak, "W", 1, Sort::Bool, DeclarationKind::Weak);
    maybe(random, shape.weak && shape.arithmetic, "Z", 0, Sort::Int, DeclarationKind::Weak);
    Maker { random, shape, symbols }.file()
}

impl Maker<'_> {
    fn file(&mut self) -> File {
        let mut items = vec![Item::Type(name("loc"), ["A", "B", "C"].map(name).into())];
        for s in &self.symbols {
            let sort = match s.sort {
                Sort::Loc => "loc",
                Sort::Bool => "bool",
                Sort::Int => "int",
                Sort::Proc => "proc",
            };
            items.push(Item::Symbol {
                declared: s.declared,
                name: name(s.name),
                indices: vec![name("proc"); s.arity],
                sort: name(sort),
            });
        }
        items.push(self.init());
        for _ in 0..=self.random.below(2) {
            let (params, body) = self.claim();
            items.push(Item::Unsafe(params, body, Place::default()));
        }
        for i in 0..=self.random.below(self.shape.transitions) {
            items.push(self.transition(i));
        }
        if self.shape.assumptions {
            for _ in 0..=self.random.below(2) {
                let (params, body) = self.claim();
                items.push(Item::Invariant(params, body, Place::default()));
            }
        }
        File { items, end: Place::default() }
    }
    fn init(&mut self) -> Item {
        let mut parts = Vec::new();
        for at in 0..self.symbols.len() {
            let s = &self.symbols[at];
            let (sort, open) = (s.sort, s.sort != Sort::Int && self.shape.open);
            let cell = match s.arity {
                0 => name_term(s.name),
                1 => Term::Cell(name(s.name), vec![name("p")]),
                _ => Term::Cell(name(s.name), vec![name("p"), name("q")]),
            };
            if sort == Sort::Proc || open && self.random.chance(1, 8) {
                continue;
            }
            let value = match sort {
                Sort::Int => number(0),
                Sort::Bool => name_term("False"),
                _ => name_term("A"),
            };
            let own = Formula::Compare(cell.clone(), Cmp::Eq, value);
            let other = Formula::Compare(
                cell,
                Cmp::Eq,
                if sort == Sort::Loc { name_term("B") } else { name_term("True") },
            );
            parts.push(if open && self.random.chance(1, 10) {
                Formula::Or(vec![own, other])
            } else {
                own
            });
        }
        let body =
            if parts.is_empty() { Formula::Constant(true, Place::default()) } else { and(parts) };
        Item::Init(vec![name("p"), name("q")], body, Place::default())
    }
    fn claim(&mut self) -> (Vec<Name>, Formula) {
        let params: Vec<_> =
            ["x", "y", "z"][..=self.random.below(3)].iter().map(|p| name(*p)).collect();
        let parts: Vec<_> =
            (0..=self.random.below(3)).map(|_| self.literal(&params, true)).collect();
        (params, and(parts))
    }
    fn index(&mut self, procs: &[Name]) -> Name {
        let fixed = self.random.chance(1, 30);
        if fixed { name("#1") } else { self.random.choose(procs).clone() }
    }
    /// True if only the process itself accesses its cell of the array.
    fn is_own(&self, at: usize) -> bool {
        self.shape.private
            && self.symbols[at].arity > 0
            && self.symbols[at].declared == DeclarationKind::Plain
    }
    /// Chooses a cell of a symbol. In claims, memory is read by some process.
    fn cell(&mut self, at: usize, procs: &[Name], claim: bool) -> Term {
        let own = self.is_own(at) && !claim;
        let args: Vec<_> = (0..self.symbols[at].arity)
            .map(|_| if own { name("p") } else { self.index(procs) })
            .collect();
        let s = &self.symbols[at];
        let cell = if args.is_empty() { name_term(s.name) } else { Term::Cell(name(s.name), args) };
        if claim && s.declared == DeclarationKind::Weak {
            return Term::By(self.random.choose(procs).clone(), Box::new(cell));
        }
        cell
    }
    fn constant(&mut self, sort: Sort, procs: &[Name]) -> Term {
        match sort {
            Sort::Loc => name_term(["A", "B", "C"][self.random.below(3)]),
            Sort::Bool => name_term(["True", "False"][self.random.below(2)]),
            Sort::Int => number(self.random.below(3) as i64),
            Sort::Proc => Term::Name(self.index(procs)),
        }
    }
    fn literal(&mut self, procs: &[Name], claim: bool) -> Formula {
        if self.random.chance(1, 16) && procs.len() > 1 {
            let (a, b) = (self.index(procs), self.index(procs));
            return Formula::Compare(
                Term::Name(a),
                *self.random.choose(&[Cmp::Eq, Cmp::Neq, Cmp::Lt, Cmp::Ge]),
                Term::Name(b),
            );
        }
        let at = self.random.below(self.symbols.len());
        let sort = self.symbols[at].sort;
        let left = self.cell(at, procs, claim);
        let same: Vec<_> =
            (0..self.symbols.len()).filter(|i| self.symbols[*i].sort == sort).collect();
        let mut right = if self.random.chance(1, 4) {
            let other = *self.random.choose(&same);
            self.cell(other, procs, claim)
        } else {
            self.constant(sort, procs)
        };
        let cmp = match sort {
            Sort::Int => {
                *self.random.choose(&[Cmp::Eq, Cmp::Neq, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge])
            }
            _ => *self.random.choose(&[Cmp::Eq, Cmp::Eq, Cmp::Neq]),
        };
        if sort == Sort::Int && self.random.chance(1, 5) {
            right = Term::Sub(Box::new(right), Box::new(number(1)));
        }
        Formula::Compare(left, cmp, right)
    }
    fn formula(&mut self, procs: &[Name], depth: usize) -> Formula {
        match self.random.below(if depth == 0 { 1 } else { 8 }) {
            0..=3 => self.literal(procs, false),
            4 => Formula::Or(vec![self.formula(procs, depth - 1), self.formula(procs, depth - 1)]),
            5 => Formula::Not(Box::new(self.formula(procs, depth - 1))),
            6 => Formula::And(vec![self.formula(procs, depth - 1), self.formula(procs, depth - 1)]),
            _ => {
                let (a, b) = (
                    Box::new(self.formula(procs, depth - 1)),
                    Box::new(self.formula(procs, depth - 1)),
                );
                match self.random.below(3) {
                    0 => Formula::Implies(a, b),
                    1 => Formula::Iff(a, b),
                    _ => Formula::If(Box::new(self.literal(procs, false)), a, b),
                }
            }
        }
    }
    fn transition(&mut self, number_of: usize) -> Item {
        let two = self.random.chance(1, 3);
        let params: Vec<_> = if two { vec![name("p"), name("q")] } else { vec![name("p")] };
        let mut guard = vec![Formula::Compare(
            Term::Cell(name("Pc"), vec![name("p")]),
            Cmp::Eq,
            self.constant(Sort::Loc, &params),
        )];
        if self.random.chance(1, 2) {
            guard.push(self.formula(&params, 2));
        }
        if self.shape.weak && self.random.chance(1, 8) {
            guard.push(Formula::Fence(None, Place::default()));
        }
        let mut updates = Vec::new();
        for at in 0..self.symbols.len() {
            if self.symbols[at].declared != DeclarationKind::Constant
                && self.random.chance(if at == 0 { 3 } else { 1 }, 4)
            {
                updates.push(self.update(at, &params, &mut guard));
            }
        }
        if self.shape.quantifiers && self.random.chance(1, 4) {
            let q =
                QuantifierKind { all: self.random.chance(2, 3), other: self.random.chance(3, 4) };
            let procs = [&params[..], &[name("o")]].concat();
            guard.push(Formula::Quantified(q, vec![name("o")], Box::new(self.formula(&procs, 1))));
        }
        let params = params.into_iter().enumerate().map(|(i, p)| (p, i == 0)).collect();
        Item::Transition {
            name: name(format!("t{number_of}")),
            params,
            requires: Some(and(guard)),
            updates,
        }
    }
    fn update(&mut self, at: usize, params: &[Name], guard: &mut Vec<Formula>) -> Update {
        let (arity, sort) = (self.symbols[at].arity, self.symbols[at].sort);
        let target = name(self.symbols[at].name);
        if !self.is_own(at) && self.random.chance(1, 4) {
            let bound: Vec<_> = ["j", "k"][..arity].iter().map(|n| name(*n)).collect();
            let procs = [params, &bound[..]].concat();
            let mut cases = Vec::new();
            for _ in 0..=self.random.below(2) {
                let condition = self.formula(&procs, 1);
                cases.push((Some(condition), Value::Term(self.constant(sort, params))));
            }
            if self.random.chance(2, 3) {
                let own = if arity == 0 {
                    Term::Name(target.clone())
                } else {
                    Term::Cell(target.clone(), bound.clone())
                };
                cases.push((
                    None,
                    Value::Term(if self.random.chance(2, 3) {
                        own
                    } else {
                        self.constant(sort, params)
                    }),
                ));
            }
            return Update { by: None, name: target, args: bound, right: Right::Cases(cases) };
        }
        let own = self.is_own(at);
        let args: Vec<_> = (0..arity)
            .map(|_| if own { name("p") } else { self.random.choose(params).clone() })
            .collect();
        let open = self.shape.open && sort != Sort::Int && self.random.chance(1, 10);
        let value =
            if open { Value::Any } else { Value::Term(self.value(at, sort, params, guard)) };
        Update { by: None, name: target, args, right: Right::Value(value) }
    }
    fn value(&mut self, at: usize, sort: Sort, params: &[Name], guard: &mut Vec<Formula>) -> Term {
        let same: Vec<_> =
            (0..self.symbols.len()).filter(|i| self.symbols[*i].sort == sort).collect();
        if self.random.chance(1, 2) {
            return self.constant(sort, params);
        }
        let other = if sort == Sort::Int { at } else { *self.random.choose(&same) };
        let cell = self.cell(other, params, false);
        if sort != Sort::Int {
            return cell;
        }
        let up = self.random.chance(1, 2);
        guard.push(Formula::Compare(
            cell.clone(),
            if up { Cmp::Lt } else { Cmp::Gt },
            number(if up { 3 } else { 0 }),
        ));
        let one = Box::new(number(1));
        if up { Term::Add(Box::new(cell), one) } else { Term::Sub(Box::new(cell), one) }
    }
}
