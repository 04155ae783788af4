//! Derivation of atoms that follow from a cube, and of the possible orders of its numbers, as
//! material for a larger cube.
//!
//! For example, a ticket lock is safe because no two processes have the same ticket. No pre-image
//! of *both are inside* states this: it states that both tickets equal the one that is served.
//! Eliminating the served number gives it (Fourier and Motzkin, from two constraints). If each
//! process sees a different served number, nothing follows; but something follows in each of the
//! three orders of their own tickets.
//!
//! Invariant: every state of the cube satisfies each atom of [`weaker_atoms`] and [`consequences`],
//! and one of [`comparisons`].

use crate::atom::{Atom, Cell, LinearConstraint, Literal, OTHER, Signature, SymbolSort};
use crate::cube::Cube;
use crate::simplex::ZeroRelation;

/// Limits on the atoms derived from a cube, and on the terms of one.
const MAX_DERIVED: usize = 12;
const MAX_TERMS: usize = 2;
/// Limit on the pairs of numbers that are compared.
const MAX_PAIRS: usize = 6;

fn is_integer(signature: &Signature, terms: &[(Cell, i64)]) -> bool {
    terms.iter().all(|t| signature.sort(t.0) == SymbolSort::Integer)
}

/// Eliminates a common cell from the second constraint, if the first can be added with an integer
/// factor.
fn eliminate(
    signature: &Signature,
    first: &LinearConstraint,
    second: &LinearConstraint,
    cell: Cell,
) -> Option<Atom> {
    let factor = |l: &LinearConstraint| l.terms.iter().find(|t| t.0 == cell).map(|t| t.1);
    let (a, b) = (factor(first)?, factor(second)?);
    let ordered = |l: &LinearConstraint| matches!(l.relation, ZeroRelation::Le | ZeroRelation::Lt);
    let equation = first.relation == ZeroRelation::Eq && second.relation != ZeroRelation::Ne;
    // Inequalities are only added, never subtracted.
    if a.abs() != 1 || !(equation || ordered(first) && ordered(second) && a.signum() != b.signum())
    {
        return None;
    }
    let times = b.checked_mul(a)?.checked_neg()?;
    let relation = match (first.relation, second.relation) {
        (ZeroRelation::Eq, r) | (r, ZeroRelation::Eq) => r,
        (ZeroRelation::Lt, _) | (_, ZeroRelation::Lt) => ZeroRelation::Lt,
        _ => ZeroRelation::Le,
    };
    let mut terms = second.terms.clone();
    for (c, f) in &first.terms {
        terms.push((*c, f.checked_mul(times)?));
    }
    let constant = second.constant.checked_add(first.constant.checked_mul(times)?)?;
    let integer = is_integer(signature, &terms);
    match LinearConstraint::new(terms, constant, relation, integer).ok()? {
        Literal::Atom(Atom::Linear(l)) if l.terms.len() <= MAX_TERMS => Some(Atom::Linear(l)),
        _ => None,
    }
}

/// Returns constraints on few numbers that follow from two of the atoms, with those that these
/// imply.
pub fn consequences(signature: &Signature, atoms: &[Atom]) -> Vec<Atom> {
    let linear: Vec<&LinearConstraint> = atoms
        .iter()
        .filter_map(|a| if let Atom::Linear(l) = a { Some(&**l) } else { None })
        .collect();
    let mut found: Vec<Atom> = Vec::new();
    for (i, first) in linear.iter().enumerate() {
        for second in linear.iter().skip(i + 1) {
            for (cell, _) in &first.terms {
                let one = eliminate(signature, first, second, *cell)
                    .or_else(|| eliminate(signature, second, first, *cell));
                let Some(Atom::Linear(l)) = one else { continue };
                for atom in halves(signature, &l).into_iter().chain([Atom::Linear(l)]) {
                    if found.len() < MAX_DERIVED && !found.contains(&atom) {
                        found.push(atom);
                    }
                }
            }
        }
    }
    found
}

/// Returns pairs of numbers that the cube mentions and does not compare, those of one kind first.
pub fn numbers(signature: &Signature, cube: &Cube) -> Vec<(Cell, Cell)> {
    let mut cells: Vec<Cell> = Vec::new();
    let mut compared: Vec<[Cell; 2]> = Vec::new();
    for atom in &cube.atoms {
        let Atom::Linear(l) = atom else { continue };
        cells.extend(l.terms.iter().map(|t| t.0));
        if let [a, b] = l.terms[..] {
            compared.push([a.0, b.0]);
        }
    }
    cells.sort_unstable();
    cells.dedup();
    let mut pairs: Vec<(Cell, Cell)> = Vec::new();
    for (i, a) in cells.iter().enumerate() {
        let others = cells[i + 1..].iter().filter(|b| signature.sort(**b) == signature.sort(*a));
        pairs.extend(others.filter(|b| !compared.contains(&[*a, **b])).map(|b| (*a, *b)));
    }
    pairs.sort_by_key(|(a, b)| a.symbol() != b.symbol());
    pairs.truncate(MAX_PAIRS);
    pairs
}

/// Returns the three orders of two numbers.
pub fn comparisons(signature: &Signature, left: Cell, right: Cell) -> Vec<Atom> {
    let one = |terms: Vec<(Cell, i64)>, relation: ZeroRelation| {
        let integer = is_integer(signature, &terms);
        match LinearConstraint::new(terms, 0, relation, integer) {
            Ok(Literal::Atom(atom)) => Some(atom),
            _ => None,
        }
    };
    let (ascending, descending) = (vec![(left, 1), (right, -1)], vec![(right, 1), (left, -1)]);
    [
        one(ascending.clone(), ZeroRelation::Eq),
        one(ascending, ZeroRelation::Lt),
        one(descending, ZeroRelation::Lt),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the weaker comparisons that a comparison of numbers implies and that are easier to
/// preserve: `a = b` implies `a <= b` and `a >= b`, `a < b` implies `a <= b`.
fn halves(signature: &Signature, sum: &LinearConstraint) -> Vec<Atom> {
    let integer = is_integer(signature, &sum.terms);
    let half = |sign: i64| {
        let terms = sum
            .terms
            .iter()
            .map(|t| Some((t.0, t.1.checked_mul(sign)?)))
            .collect::<Option<Vec<_>>>()?;
        match LinearConstraint::new(
            terms,
            sum.constant.checked_mul(sign)?,
            ZeroRelation::Le,
            integer,
        ) {
            Ok(Literal::Atom(a)) => Some(a),
            _ => None,
        }
    };
    let signs: &[i64] = match sum.relation {
        ZeroRelation::Eq => &[1, -1],
        ZeroRelation::Lt => &[1],
        ZeroRelation::Le | ZeroRelation::Ne => &[],
    };
    signs.iter().filter_map(|s| half(*s)).collect()
}

/// Returns the atoms. A set of a finite domain that excludes values is also given as one atom for
/// each excluded value, and weaker comparisons of numbers come before those that imply them.
pub fn weaker_atoms(signature: &Signature, cube: &Cube) -> Vec<Atom> {
    let mut atoms = Vec::new();
    for a in &cube.atoms {
        if let Atom::Linear(l) = a {
            atoms.extend(halves(signature, l));
        }
        atoms.push(a.clone());
    }
    for a in &cube.atoms {
        let Atom::In(c, set) = a else { continue };
        if c.view().is_some() {
            continue;
        }
        let all = signature.all_values(signature.sort(*c), cube.processes);
        let out = all & !set;
        let split = match signature.sort(*c) {
            SymbolSort::Finite(_) => out.count_ones() > 1 && set.count_ones() > 1,
            _ => set & OTHER != 0 && out.count_ones() > 1,
        };
        if split {
            let mut rest = out;
            while rest != 0 {
                let bit = rest & rest.wrapping_neg();
                rest &= !bit;
                atoms.push(Atom::In(*c, all & !bit));
            }
        }
    }
    atoms
}
