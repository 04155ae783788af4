//! Tests that derived constraints follow from the given ones, and that two numbers compare in one
//! of the listed orders.

use mu_base::random::Random;
use mu_prove::atom::{Atom, Cell, LinearConstraint, Literal, Signature, SymbolSort};
use mu_prove::cube::Cube;
use mu_prove::derive::{comparisons, consequences, numbers, weaker_atoms};
use mu_prove::simplex::ZeroRelation;

const CELLS: usize = 4;

fn holds(atom: &Atom, values: &[i64]) -> bool {
    let Atom::Linear(l) = atom else { panic!("{atom:?} is no constraint") };
    let sum = l.constant + l.terms.iter().map(|(c, f)| f * values[c.symbol()]).sum::<i64>();
    match l.relation {
        ZeroRelation::Le => sum <= 0,
        ZeroRelation::Lt => sum < 0,
        ZeroRelation::Eq => sum == 0,
        ZeroRelation::Ne => sum != 0,
    }
}

#[test]
fn what_is_derived_follows() {
    let seed = std::env::var("DERIVED_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed);
    let signature = Signature {
        sorts: vec![SymbolSort::Integer; CELLS],
        weak: vec![false; CELLS],
        arity: vec![0; CELLS],
        rigid: vec![false; CELLS],
        beyond: false,
        counts: Vec::new(),
        fixed: 0,
        most: None,
    };
    let (mut derived_count, mut tested, mut compared) = (0, 0, 0);
    for _ in 0..3000 {
        let relations = [
            ZeroRelation::Le,
            ZeroRelation::Lt,
            ZeroRelation::Eq,
            ZeroRelation::Eq,
            ZeroRelation::Ne,
        ];
        let atoms: Vec<Atom> = (0..2 + random.below(2))
            .filter_map(|_| {
                let factors = [-2, -1, -1, 1, 1, 2];
                let terms = (0..1 + random.below(2))
                    .map(|_| (Cell::new(random.below(CELLS), &[]), factors[random.below(6)]))
                    .collect();
                match LinearConstraint::new(
                    terms,
                    random.below(5) as i64 - 2,
                    relations[random.below(5)],
                    true,
                ) {
                    Ok(Literal::Atom(atom)) => Some(atom),
                    _ => None,
                }
            })
            .collect();
        let Some(cube) = Cube::new(&signature, 0, atoms) else { continue };
        let found = consequences(&signature, &cube.atoms);
        derived_count += found.len();
        let pairs = numbers(&signature, &cube);
        for code in 0..usize::pow(7, CELLS as u32) {
            let values: Vec<i64> =
                (0..CELLS).map(|c| (code / usize::pow(7, c as u32) % 7) as i64 - 3).collect();
            if !cube.atoms.iter().all(|a| holds(a, &values)) {
                continue;
            }
            tested += 1;
            for atom in found.iter().chain(&weaker_atoms(&signature, &cube)) {
                assert!(
                    holds(atom, &values),
                    "DERIVED_SEED={seed}: {atom:?} does not follow from {cube:?}: {values:?}"
                );
            }
            for (left, right) in &pairs {
                let orders = comparisons(&signature, *left, *right);
                assert_eq!(
                    orders.iter().filter(|a| holds(a, &values)).count(),
                    1,
                    "DERIVED_SEED={seed}: {orders:?} at {values:?}"
                );
                compared += 1;
            }
        }
    }
    assert!(
        derived_count > 500 && tested > 10_000 && compared > 10_000,
        "{derived_count} derived, {tested} tested, {compared} compared"
    );
}
