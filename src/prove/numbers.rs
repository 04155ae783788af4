//! Concrete numbers for undetermined cells of a counterexample.
//!
//! Input: a path of cubes. Output: values of cells in an initial state in its first cube, and
//! candidates for cells that a step leaves open. The machine executes the run with them and alone
//! decides whether it is one. Values come from the final solution of the simplex; its infinitesimal
//! becomes a power of 1/2, and each constraint is evaluated again.

use crate::atom::{Atom, Cell, LinearConstraint, Literal, NONE, SymbolSort};
use crate::decide::Decider;
use crate::initial::initial;
use crate::names::steps;
use crate::rules::Rules;
use crate::search::CubeNode;
use crate::simplex::{SimplexAnswer, ZeroRelation};
use mu_cubicle::system::{self, Init, Sum, SymbolId, System, Term, TypeId, Update};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

/// Limit on the numbers of the file that are tried for an undetermined cell.
const MAX_OF_FILE: usize = 12;
/// Limit on the numbers of a path that are tried before them.
const MAX_OF_PATH: usize = 12;
/// Limit on the halvings of the infinitesimal.
const MAX_HALVINGS: u32 = 64;

/// Numbers that a machine of few processes tries.
#[derive(Clone, Debug, Default)]
pub struct TrialNumbers {
    /// Candidate values of open cells.
    pub candidates: Vec<BigRational>,
    /// Values of cells in the initial state: symbol, processes, number.
    pub start: Vec<(SymbolId, Vec<u32>, BigRational)>,
}

impl TrialNumbers {
    /// Collects the numbers of the system with their neighbours, and a few small ones.
    pub fn of_file(system: &System) -> TrialNumbers {
        let mut found = Candidates::default();
        [0, 1, 2, 3, -1]
            .into_iter()
            .for_each(|n| found.add(BigRational::from_integer(n.into()), MAX_OF_FILE));
        let mut constants = Vec::new();
        system.unsafes.iter().for_each(|c| of_cube(&c.cube, &mut constants));
        let Init { dnf, .. } = &system.init;
        dnf.iter().for_each(|c| of_cube(c, &mut constants));
        for t in &system.transitions {
            of_cube(&t.guard, &mut constants);
            t.universal.iter().flat_map(|u| &u.dnf).for_each(|c| of_cube(c, &mut constants));
        }
        let half = BigRational::new(1.into(), 2.into());
        let real = system.symbols.iter().any(|s| s.sort == TypeId::REAL);
        for n in constants {
            let neighbours =
                [n.clone() - BigRational::one(), n.clone(), n.clone() + BigRational::one()];
            neighbours
                .into_iter()
                .chain(real.then(|| n + &half))
                .for_each(|n| found.add(n, MAX_OF_FILE));
        }
        TrialNumbers { candidates: found.0, start: Vec::new() }
    }
    /// Solves the cubes of a path that ends in an initial state, in the order of the run: cells
    /// that no step of the path writes keep their values. The numbers of the file follow.
    pub fn of_path(system: &System, rules: &Rules, path: &[CubeNode]) -> TrialNumbers {
        let named = steps(rules, path);
        let written = |c: &Cell| {
            let transitions = named
                .steps
                .iter()
                .map(|(rule, _)| &system.transitions[rules.rules[*rule].transition]);
            transitions.flat_map(|t| &t.updates).any(|u| u.symbol().index() == c.symbol())
        };
        let mut found = Candidates::default();
        let (mut start, mut stored_values) = (Vec::new(), Vec::new());
        if let Some(first) = path.last() {
            let processes = first.cube.processes.max(1);
            let values = initial(rules, &first.cube)
                .ok()
                .flatten()
                .and_then(|atoms| solution(rules, processes, &atoms));
            for (cell, value) in values.unwrap_or_default() {
                found.add(value.clone(), MAX_OF_PATH);
                let args =
                    cell.args().into_iter().take_while(|p| *p != NONE).map(u32::from).collect();
                start.push((SymbolId::new(cell.symbol()), args, value.clone()));
                if !written(&cell) {
                    stored_values.push((cell, value));
                }
            }
        }
        for (node, names) in path.iter().rev().zip(&named.names) {
            let on_machine =
                |c: &Cell| c.current().map(|p| names.get(usize::from(p)).copied().unwrap_or(p));
            let mut cells: Vec<Cell> = node.cube.atoms.iter().flat_map(Atom::cells).collect();
            cells.sort_unstable();
            cells.dedup();
            let value = |c: Cell| {
                stored_values.iter().find(|k| k.0 == on_machine(&c)).and_then(|k| equation(c, &k.1))
            };
            let atoms: Vec<Atom> = node
                .cube
                .atoms
                .iter()
                .cloned()
                .chain(cells.into_iter().filter_map(value))
                .collect();
            let values = solution(rules, node.cube.processes, &atoms).unwrap_or_default();
            values.into_iter().for_each(|v| found.add(v.1, MAX_OF_PATH));
        }
        for n in TrialNumbers::of_file(system).candidates {
            found.add(n, MAX_OF_PATH + MAX_OF_FILE);
        }
        TrialNumbers { candidates: found.0, start }
    }
}

/// Builds the equation of a cell and a number.
fn equation(cell: Cell, value: &BigRational) -> Option<Atom> {
    let (numerator, denominator) = (value.numer().to_i64()?, value.denom().to_i64()?);
    match LinearConstraint::new(
        vec![(cell, denominator)],
        numerator.checked_neg()?,
        ZeroRelation::Eq,
        false,
    )
    .ok()?
    {
        Literal::Atom(atom) => Some(atom),
        Literal::True | Literal::False => None,
    }
}

/// Numbers without duplicates, in the order in which they are tried.
#[derive(Default)]
struct Candidates(Vec<BigRational>);

impl Candidates {
    fn add(&mut self, n: BigRational, most: usize) {
        if self.0.len() < most && !self.0.contains(&n) {
            self.0.push(n);
        }
    }
}

/// Collects the constants that a conjunction compares with.
fn of_cube(cube: &[system::Atom], found: &mut Vec<BigRational>) {
    for atom in cube {
        if let system::Atom::Compare(left, _, right) = atom {
            found.extend([left, right].into_iter().filter_map(constant));
        }
        if let system::Atom::Words(w) = atom {
            let sums = [&w.left, &w.right].into_iter().map(|s| s.constant.clone());
            found.extend(sums.filter(|n| !n.is_zero()));
        }
    }
}

fn constant(term: &Term) -> Option<BigRational> {
    match term {
        Term::Sum(Sum { constant, .. }) if !constant.is_zero() => Some(constant.clone()),
        _ => None,
    }
}

/// Returns values that satisfy a conjunction; `None` if none are found.
fn solution(rules: &Rules, processes: usize, atoms: &[Atom]) -> Option<Vec<(Cell, BigRational)>> {
    let mut decider = Decider::of(&rules.signature, processes, atoms);
    if decider.check() != SimplexAnswer::Satisfiable {
        return None;
    }
    let values = decider.values();
    let integer = |c: &Cell| rules.signature.sort(*c) == SymbolSort::Integer;
    (0..MAX_HALVINGS).find_map(|halvings| {
        let small = BigRational::new(BigInt::one(), BigInt::one() << halvings);
        let exact: Vec<(Cell, BigRational)> =
            values.iter().map(|(c, real, factor)| (*c, real + factor * &small)).collect();
        let integers_match = exact.iter().all(|(c, n)| !integer(c) || n.is_integer());
        (integers_match && atoms.iter().all(|a| holds(a, &exact))).then_some(exact)
    })
}

/// True unless the values violate a comparison of numbers.
fn holds(atom: &Atom, values: &[(Cell, BigRational)]) -> bool {
    let Atom::Linear(l) = atom else { return true };
    let value = |c: &Cell| {
        values.iter().find(|v| v.0 == *c).map_or_else(BigRational::zero, |v| v.1.clone())
    };
    let constant = BigRational::from_integer(l.constant.into());
    let sum = l
        .terms
        .iter()
        .fold(constant, |sum, (c, f)| sum + value(c) * BigRational::from_integer((*f).into()));
    match l.relation {
        ZeroRelation::Le => sum <= BigRational::zero(),
        ZeroRelation::Lt => sum < BigRational::zero(),
        ZeroRelation::Eq => sum.is_zero(),
        ZeroRelation::Ne => !sum.is_zero(),
    }
}

/// True if some number is not determined by `init`, or a transition stores any number.
pub fn are_open(system: &System, initial_states_are_determined: bool) -> bool {
    let any = |u: &Update| system.symbol(u.symbol()).sort.is_numeric() && u.stores_any();
    system.symbols.iter().any(|s| s.sort.is_numeric())
        && (!initial_states_are_determined
            || system.transitions.iter().flat_map(|t| &t.updates).any(any))
}
