//! Translation of the typed system to the representation of the prover: symbols with sorts, rules
//! with packed cells, claims. A rule's process variables are template numbers: a parameter or bound
//! variable is its number, `#n` is [`FIXED`]` + n - 1`; an instance replaces them.
//!
//! Unsupported systems are rejected by [`crate::premises`] first, so that the answer is *unknown*,
//! not wrong.

use crate::atom::{
    Atom, Cell, JOINT, LinearConstraint, Literal, MAX_PROCESSES, Point, Signature, SymbolSort,
    TooLarge,
};
use crate::cube::Cube;
use crate::decide::satisfiable;
use crate::initial::initial;
use crate::premises::{Premises, Refusal, premises};
use crate::residues::{self, Residues};
use crate::simplex::{SimplexAnswer, ZeroRelation};
use mu_base::narrow;
use mu_base::source::Place;
use mu_cubicle::system::{
    self, ComparisonOp, Proc, SymbolKind, System, Term, Transition, TypeId, Update,
};
use num_traits::{One, ToPrimitive};

/// The template number of `#1`.
pub const FIXED: u8 = 0x80;

/// The memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Sequential consistency: weak symbols are plain.
    Sc,
    /// Total store order.
    Tso,
}

/// A value of a template or of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleValue {
    /// A process variable.
    Process(u8),
    /// The n-th constructor of its type.
    Constant(u32),
    /// A non-numeric cell.
    Cell(Cell),
    /// A sum of cells times factors, divided by `scale`.
    Sum {
        /// Cells with factors.
        terms: Vec<(Cell, i64)>,
        /// The constant part.
        constant: i64,
        /// The divisor, positive.
        scale: i64,
    },
    /// Any value.
    Any,
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The left side.
    pub left: RuleValue,
    /// The comparison operator.
    pub op: ComparisonOp,
    /// The right side.
    pub right: RuleValue,
    /// The number of bits of the remainders that are compared, of words.
    pub bits: Option<u32>,
}

/// The effect of an update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateEffect {
    /// Assignment of one cell.
    Assign(Cell, RuleValue),
    /// All cells of a symbol: bound variables, cases.
    Cases(usize, Vec<u8>, Vec<(Vec<Comparison>, RuleValue)>),
}

impl UpdateEffect {
    /// Returns the symbol of its cells.
    pub fn symbol(&self) -> usize {
        match self {
            UpdateEffect::Assign(c, _) => c.symbol(),
            UpdateEffect::Cases(s, ..) => *s,
        }
    }
}

/// A transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its transition in the system.
    pub transition: usize,
    /// Number of parameters; the first `declared` count for `universal`.
    pub params: usize,
    /// See [`system::Transition::declared`].
    pub declared: usize,
    /// The process that accesses memory.
    pub actor: Option<u8>,
    /// True if it reads memory.
    pub reads: bool,
    /// True if it writes memory.
    pub writes: bool,
    /// True if it requires an empty buffer.
    pub fence: bool,
    /// The guard.
    pub guard: Vec<Comparison>,
    /// For every other process, one of these must hold; true: it also requires an empty buffer of
    /// the actor.
    pub universal: Vec<(u8, Vec<(Vec<Comparison>, bool)>)>,
    /// The updates.
    pub changes: Vec<UpdateEffect>,
}

/// The system in the representation of the prover.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The symbols.
    pub signature: Signature,
    /// The transitions.
    pub rules: Vec<Rule>,
    /// Number of parameters of `init`, and its cubes.
    pub init: (usize, Vec<Vec<Comparison>>),
    /// The claims that must never hold: parameters and tests.
    pub unsafes: Vec<(usize, Vec<Comparison>)>,
    /// The assumptions in [`Premises::assumed`]: claims that never hold.
    pub invariants: Vec<(usize, Vec<Comparison>)>,
    /// Further cubes that must be unreachable, for the counting invariants of the signature.
    pub obligations: Vec<Cube>,
    /// The memory model; [`Memory::Sc`] if nothing is in memory.
    pub memory: Memory,
    /// The assumptions of the proof.
    pub premises: Premises,
}

impl Rules {
    /// True if some symbol is numeric.
    pub fn has_numbers(&self) -> bool {
        self.signature.sorts.iter().any(|s| s.is_numeric())
    }
}

struct Translator<'a> {
    system: &'a System,
    index: Vec<u32>,
}

fn refusal(message: impl Into<String>) -> Refusal {
    Refusal { message: message.into(), place: Place::default() }
}

fn too_large() -> Refusal {
    refusal("a number needs more than 63 bits")
}

fn template(p: Proc) -> u8 {
    match p {
        Proc::Var(v) => narrow::byte(v as usize),
        Proc::Fixed(n) => FIXED + narrow::byte(n as usize - 1),
    }
}

impl Translator<'_> {
    /// Translates a cell, in the view of the given process if `joint`.
    fn cell(&self, access: &system::CellAccess, joint: bool) -> Cell {
        let args: Vec<u8> = access.args.iter().map(|p| template(*p)).collect();
        let cell = Cell::new(access.symbol.index(), &args);
        match access.by {
            Some(p) if joint => cell.with_view(Some((template(p), JOINT))),
            _ => cell,
        }
    }
    fn value(&self, term: &Term, joint: bool) -> Result<RuleValue, Refusal> {
        Ok(match term {
            Term::Proc(p) => RuleValue::Process(template(*p)),
            Term::Cons(c) => RuleValue::Constant(self.index[c.index()]),
            Term::Cell(a) => RuleValue::Cell(self.cell(a, joint)),
            Term::Sum(s) => {
                let mut scale = s.constant.denom().clone();
                for (_, f) in &s.terms {
                    scale = num_integer::lcm(scale, f.denom().clone());
                }
                let scaled = |r: &num_rational::BigRational| {
                    let r = r * num_rational::BigRational::from_integer(scale.clone());
                    debug_assert!(r.denom().is_one());
                    r.numer().to_i64().filter(|n| *n != i64::MIN).ok_or_else(too_large)
                };
                RuleValue::Sum {
                    terms: s
                        .terms
                        .iter()
                        .map(|(a, f)| Ok((self.cell(a, joint), scaled(f)?)))
                        .collect::<Result<_, Refusal>>()?,
                    constant: scaled(&s.constant)?,
                    scale: scale.to_i64().ok_or_else(too_large)?,
                }
            }
        })
    }
    /// Translates a cube to tests, with true if it requires a fence; `None` if it never holds.
    fn cube(
        &self,
        cube: &system::Cube,
        joint: bool,
    ) -> Result<Option<(Vec<Comparison>, bool)>, Refusal> {
        let (mut tests, mut fence) = (Vec::new(), false);
        for atom in cube {
            match atom {
                system::Atom::False => return Ok(None),
                system::Atom::Fence(_) => fence = true,
                system::Atom::Compare(l, op, r) => {
                    tests.push(Comparison {
                        left: self.value(l, joint)?,
                        op: *op,
                        right: self.value(r, joint)?,
                        bits: None,
                    });
                }
                system::Atom::Words(w) => {
                    let side = |s: &system::Sum| self.value(&Term::Sum(s.clone()), joint);
                    tests.push(Comparison {
                        left: side(&w.left)?,
                        op: w.op,
                        right: side(&w.right)?,
                        bits: Some(w.bits),
                    });
                }
            }
        }
        Ok(Some((tests, fence)))
    }
    fn plain(
        &self,
        dnf: &[system::Cube],
        joint: bool,
        what: &str,
    ) -> Result<Vec<Vec<Comparison>>, Refusal> {
        let mut found = Vec::new();
        for c in dnf {
            match self.cube(c, joint)? {
                Some((_, true)) => {
                    return Err(refusal(format!(
                        "`fence()` occurs in {what}; it is supported only in the guard of a transition"
                    )));
                }
                Some((tests, false)) => found.push(tests),
                None => {}
            }
        }
        Ok(found)
    }
    fn change(&self, update: &Update) -> Result<UpdateEffect, Refusal> {
        let value = |v: &system::AssignedValue| match v {
            system::AssignedValue::Any => Ok(RuleValue::Any),
            system::AssignedValue::Term(t) => self.value(t, false),
        };
        Ok(match update {
            Update::Assign { symbol, args, value: v, .. } => {
                let args: Vec<u8> = args.iter().map(|p| template(*p)).collect();
                UpdateEffect::Assign(Cell::new(symbol.index(), &args), value(v)?)
            }
            Update::Cases { symbol, bound, cases, .. } => {
                let bound = bound.iter().map(|b| narrow::byte(b.0 as usize)).collect();
                let mut list = Vec::new();
                for c in cases {
                    match self.cube(&c.condition, false)? {
                        Some((_, true)) => {
                            return Err(refusal(
                                "`fence()` occurs in a case; it is supported only in the guard of a transition",
                            ));
                        }
                        Some((tests, false)) => list.push((tests, value(&c.value)?)),
                        None => {}
                    }
                }
                UpdateEffect::Cases(symbol.index(), bound, list)
            }
        })
    }
    fn signature(&self, memory: Memory) -> Signature {
        let mut signature = Signature {
            fixed: self.system.fixed as usize,
            most: self.system.processes.map(|n| n as usize),
            ..Signature::default()
        };
        for s in &self.system.symbols {
            let of = self.system.type_of(s.sort);
            let sort = match s.sort {
                TypeId::PROC => SymbolSort::Process,
                TypeId::INT => SymbolSort::Integer,
                TypeId::REAL => SymbolSort::Real,
                t if t.bits().is_some() => SymbolSort::Word(t.bits().unwrap_or(1)),
                _ if of.constructors.is_empty() => SymbolSort::Abstract,
                _ => SymbolSort::Finite(narrow::index(of.constructors.len())),
            };
            signature.sorts.push(sort);
            signature.weak.push(memory == Memory::Tso && s.kind == SymbolKind::Weak);
            signature.arity.push(s.arity);
            signature.rigid.push(s.kind == SymbolKind::Constant);
        }
        signature
    }
}

/// Returns the transition with the same numbers for the bound variables of all its quantifiers and
/// updates by cases, none of which is inside another: a template has one byte for a number.
fn renumber(transition: &Transition) -> Transition {
    let mut t = transition.clone();
    let free = narrow::index(t.params.len());
    for u in &mut t.universal {
        let bound = u.var;
        u.map_procs(&mut |p| if p == Proc::Var(bound) { Proc::Var(free) } else { p });
    }
    for u in &mut t.updates {
        let Update::Cases { bound, .. } = u else { continue };
        let bound: Vec<u32> = bound.iter().map(|b| b.0).collect();
        u.map_procs(&mut |p| match p {
            Proc::Var(v) => bound
                .iter()
                .position(|b| *b == v)
                .map_or(p, |at| Proc::Var(free + narrow::index(at))),
            p => p,
        });
    }
    t
}

/// Translates the system for the memory model.
pub fn translate(system: &System, memory: Memory) -> Result<Rules, Refusal> {
    let premises = premises(system, memory)?;
    let memory = premises.memory;
    let mut index = vec![0; system.constructors.len()];
    for t in &system.types {
        for (i, c) in t.constructors.iter().enumerate() {
            index[c.index()] = narrow::index(i);
        }
    }
    let t = Translator { system, index };
    let signature = t.signature(memory);
    let joint = memory == Memory::Tso;
    let mut rules = Vec::new();
    for (i, transition) in system.transitions.iter().map(renumber).enumerate() {
        let Some((guard, fence)) = t.cube(&transition.guard, false)? else { continue };
        let universal = transition
            .universal
            .iter()
            .map(|u| {
                let cubes = u.dnf.iter().filter_map(|c| t.cube(c, false).transpose());
                Ok((
                    narrow::byte(u.var as usize),
                    cubes
                        .map(|c| c.map(|(tests, fence)| (tests, fence && memory == Memory::Tso)))
                        .collect::<Result<_, _>>()?,
                ))
            })
            .collect::<Result<Vec<_>, Refusal>>()?;
        let changes =
            transition.updates.iter().map(|u| t.change(u)).collect::<Result<Vec<_>, Refusal>>()?;
        let writes = changes.iter().any(|c| signature.weak[c.symbol()]);
        let mut rule = Rule {
            transition: i,
            params: transition.params.len(),
            declared: transition.declared,
            actor: transition.actor.map(template),
            reads: false,
            writes,
            fence: fence && memory == Memory::Tso,
            guard,
            universal,
            changes,
        };
        rule.reads = memory == Memory::Tso
            && (read_cells(&rule).iter().any(|c| signature.weak[c.symbol()])
                || (transition.locked && writes));
        rules.push(rule);
    }
    let claims = |claims: &mut dyn Iterator<Item = &system::Claim>, what: &str| {
        let mut found = Vec::new();
        for c in claims {
            found.extend(
                t.plain(std::slice::from_ref(&c.cube), joint, what)?
                    .into_iter()
                    .map(|tests| (c.params.len(), tests)),
            );
        }
        Ok::<_, Refusal>(found)
    };
    let invariants =
        claims(&mut premises.assumed.iter().map(|i| &system.invariants[*i]), "`invariant`")?;
    let mut rules = Rules {
        init: (system.init.params.len(), t.plain(&system.init.dnf, false, "`init`")?),
        unsafes: claims(&mut system.unsafes.iter(), "`unsafe`")?,
        invariants,
        obligations: Vec::new(),
        signature,
        rules,
        memory,
        premises,
    };
    rules.signature.beyond = is_beyond(&rules);
    Ok(rules)
}

/// True unless some state with all processes of the file satisfies `init` for sure: otherwise a
/// cell may contain another process, as on the machine.
fn is_beyond(rules: &Rules) -> bool {
    let processes = rules.signature.sorts.contains(&SymbolSort::Process);
    let Some(most) = rules.signature.most.filter(|m| processes && *m <= MAX_PROCESSES) else {
        return false;
    };
    let all = Cube { processes: most, atoms: Vec::new() };
    let found = initial(rules, &all).ok().flatten();
    !found.is_some_and(|atoms| {
        satisfiable(&rules.signature, most, &atoms) == SimplexAnswer::Satisfiable
    })
}

fn add_value(value: &RuleValue, found: &mut Vec<Cell>) {
    match value {
        RuleValue::Cell(c) => found.push(*c),
        RuleValue::Sum { terms, .. } => found.extend(terms.iter().map(|t| t.0)),
        _ => {}
    }
}

/// Adds the cells of the tests.
fn add_cells(tests: &[Comparison], found: &mut Vec<Cell>) {
    for t in tests {
        add_value(&t.left, found);
        add_value(&t.right, found);
    }
}

/// Returns all cells that a rule reads.
fn read_cells(rule: &Rule) -> Vec<Cell> {
    let mut found = Vec::new();
    add_cells(&rule.guard, &mut found);
    for (_, dnf) in &rule.universal {
        for (cube, _) in dnf {
            add_cells(cube, &mut found);
        }
    }
    for c in &rule.changes {
        match c {
            UpdateEffect::Assign(_, v) => add_value(v, &mut found),
            UpdateEffect::Cases(_, _, cases) => {
                for (condition, v) in cases {
                    add_cells(condition, &mut found);
                    add_value(v, &mut found);
                }
            }
        }
    }
    found
}

/// True if the value is the cell itself.
pub fn is_cell(value: &RuleValue, cell: Cell) -> bool {
    match value {
        RuleValue::Cell(c) => *c == cell,
        RuleValue::Sum { terms, constant: 0, scale: 1 } => terms.as_slice() == [(cell, 1)],
        _ => false,
    }
}

/// The scope for comparing values: the signature and the number of processes of the cube.
#[derive(Clone, Copy)]
pub struct ComparisonScope<'a> {
    /// The symbols.
    pub signature: &'a Signature,
    /// Number of processes.
    pub processes: usize,
}

impl ComparisonScope<'_> {
    /// Builds `left op right`; [`RuleValue::Any`] on either side makes it true.
    pub fn compare(
        self,
        left: &RuleValue,
        op: ComparisonOp,
        right: &RuleValue,
    ) -> Result<Literal, TooLarge> {
        let truth = |holds: bool| if holds { Literal::True } else { Literal::False };
        let all = |c: Cell| self.signature.all_values(self.signature.sort(c), self.processes);
        let within = |c: Cell, set: u64| match set & all(c) {
            0 => Literal::False,
            s if s == all(c) => Literal::True,
            s => Literal::Atom(Atom::In(c, s)),
        };
        let point = |v: &RuleValue| match v {
            RuleValue::Process(p) => Some(Point::Variable(*p)),
            RuleValue::Cell(c) => Some(Point::Cell(*c)),
            _ => None,
        };
        Ok(match (left, op, right) {
            (RuleValue::Any, ..) | (.., RuleValue::Any) => Literal::True,
            (RuleValue::Sum { .. }, ..) => return self.linear(left, op, right),
            (RuleValue::Constant(a), ComparisonOp::Eq, RuleValue::Constant(b)) => truth(a == b),
            (RuleValue::Constant(a), _, RuleValue::Constant(b)) => truth(a != b),
            (RuleValue::Process(a), ComparisonOp::Eq, RuleValue::Process(b)) => truth(a == b),
            (RuleValue::Process(a), ComparisonOp::Neq, RuleValue::Process(b)) => truth(a != b),
            (RuleValue::Cell(c), ComparisonOp::Eq, RuleValue::Constant(v))
            | (RuleValue::Constant(v), ComparisonOp::Eq, RuleValue::Cell(c)) => within(*c, 1 << v),
            (RuleValue::Cell(c), ComparisonOp::Neq, RuleValue::Constant(v))
            | (RuleValue::Constant(v), ComparisonOp::Neq, RuleValue::Cell(c)) => {
                within(*c, !(1 << v))
            }
            (RuleValue::Cell(c), ComparisonOp::Eq, RuleValue::Process(p))
            | (RuleValue::Process(p), ComparisonOp::Eq, RuleValue::Cell(c)) => within(*c, 1 << p),
            (RuleValue::Cell(c), ComparisonOp::Neq, RuleValue::Process(p))
            | (RuleValue::Process(p), ComparisonOp::Neq, RuleValue::Cell(c)) => {
                within(*c, !(1 << p))
            }
            (RuleValue::Cell(a), ComparisonOp::Eq, RuleValue::Cell(b)) => {
                Atom::equality(*a, *b, true)
            }
            (RuleValue::Cell(a), ComparisonOp::Neq, RuleValue::Cell(b)) => {
                Atom::equality(*a, *b, false)
            }
            (l, ComparisonOp::Lt | ComparisonOp::Le, r) => match (point(l), point(r)) {
                (Some(a), Some(b)) => {
                    Atom::order(a, b, op == ComparisonOp::Lt, self.signature.fixed)
                }
                _ => Literal::False,
            },
            _ => Literal::False,
        })
    }
    /// Builds the comparison of a test; `value` replaces its processes and views.
    pub fn test(
        self,
        test: &Comparison,
        value: &impl Fn(&RuleValue) -> RuleValue,
    ) -> Result<Literal, TooLarge> {
        let (left, right) = (value(&test.left), value(&test.right));
        let Some(bits) = test.bits else { return self.compare(&left, test.op, &right) };
        match (&left, &right) {
            (
                RuleValue::Sum { terms: a, constant: c, scale: s },
                RuleValue::Sum { terms: b, constant: d, scale: t },
            ) => {
                let (a, b) = (residues::whole(a, *c, *s, bits)?, residues::whole(b, *d, *t, bits)?);
                Ok(Residues::compare(&a, relation(test.op), &b, bits))
            }
            _ => Ok(Literal::True),
        }
    }
    fn linear(
        self,
        left: &RuleValue,
        op: ComparisonOp,
        right: &RuleValue,
    ) -> Result<Literal, TooLarge> {
        let (
            RuleValue::Sum { terms: a, constant: c, scale: s },
            RuleValue::Sum { terms: b, constant: d, scale: t },
        ) = (left, right)
        else {
            return Ok(Literal::False);
        };
        let times = |x: i64, y: i64| x.checked_mul(y).ok_or(TooLarge);
        let mut terms = Vec::with_capacity(a.len() + b.len());
        for &(cell, f) in a {
            terms.push((cell, times(f, *t)?));
        }
        for &(cell, f) in b {
            terms.push((cell, times(times(f, *s)?, -1)?));
        }
        let constant = times(*c, *t)?.checked_sub(times(*d, *s)?).ok_or(TooLarge)?;
        let integer = terms.iter().all(|t| self.signature.sort(t.0) == SymbolSort::Integer);
        LinearConstraint::new(terms, constant, relation(op), integer)
    }
}

fn relation(op: ComparisonOp) -> ZeroRelation {
    match op {
        ComparisonOp::Eq => ZeroRelation::Eq,
        ComparisonOp::Neq => ZeroRelation::Ne,
        ComparisonOp::Lt => ZeroRelation::Lt,
        ComparisonOp::Le => ZeroRelation::Le,
    }
}

/// Replaces template processes in a value, and views of memory according to `look`.
pub fn instantiate(
    value: &RuleValue,
    env: &impl Fn(u8) -> u8,
    look: &impl Fn(Cell) -> Cell,
) -> RuleValue {
    match value {
        RuleValue::Process(p) => RuleValue::Process(env(*p)),
        RuleValue::Cell(c) => RuleValue::Cell(look(c.map(env))),
        RuleValue::Sum { terms, constant, scale } => RuleValue::Sum {
            terms: terms.iter().map(|(c, f)| (look(c.map(env)), *f)).collect(),
            constant: *constant,
            scale: *scale,
        },
        other => other.clone(),
    }
}
