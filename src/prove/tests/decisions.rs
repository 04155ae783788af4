//! Tests of the decision procedures against brute force over small random domains: the prover's
//! (simplex, domains, order) and the verifier's (Fourier and Motzkin), which share nothing. A
//! failure prints its seed.

use mu_base::random::Random;
use mu_prove::atom::{Atom, Cell, LinearConstraint, Literal, OTHER, Point, Signature, SymbolSort};
use mu_prove::decide::Decider;
use mu_prove::simplex::{SimplexAnswer, ZeroRelation};
use mu_prove::verify::logic::{self, Fact, ValueKind, World, singleton};
use mu_prove::verify::sums::{CellSum, Sign};

const SORTS: [SymbolSort; 7] = [
    SymbolSort::Integer,
    SymbolSort::Integer,
    SymbolSort::Integer,
    SymbolSort::Finite(3),
    SymbolSort::Finite(3),
    SymbolSort::Process,
    SymbolSort::Process,
];

fn signature() -> Signature {
    Signature {
        sorts: SORTS.to_vec(),
        weak: vec![false; 7],
        arity: vec![0; 7],
        rigid: vec![false; 7],
        fixed: 0,
        most: None,
        beyond: false,
        counts: Vec::new(),
    }
}

fn cell(symbol: usize) -> Cell {
    Cell::new(symbol, &[])
}

/// Generates a random atom over the seven cells and two processes.
fn atom(random: &mut Random) -> Literal {
    let two = |random: &mut Random, from: usize, count: usize| {
        let a = random.below(count);
        (from + a, from + (a + 1 + random.below(count - 1)) % count)
    };
    match random.below(6) {
        0 | 1 => {
            let (a, b) = two(random, 0, 3);
            let factor = |random: &mut Random| random.below(5) as i64 - 2;
            let relation = [ZeroRelation::Le, ZeroRelation::Lt, ZeroRelation::Eq, ZeroRelation::Ne]
                [random.below(4)];
            let terms = vec![(cell(a), factor(random)), (cell(b), factor(random))];
            LinearConstraint::new(terms, random.below(9) as i64 - 4, relation, true)
                .expect("small numbers")
        }
        2 => Literal::Atom(Atom::In(cell(3 + random.below(2)), 1 + random.below(6) as u64)),
        3 => {
            let set = 1 + random.below(6) as u64;
            Literal::Atom(Atom::In(
                cell(5 + random.below(2)),
                set & 3 | if set & 4 != 0 { OTHER } else { 0 },
            ))
        }
        4 => {
            let (a, b) = if random.below(2) == 0 { (3, 4) } else { (5, 6) };
            Atom::equality(cell(a), cell(b), random.below(2) == 0)
        }
        _ => {
            let point = |random: &mut Random| match random.below(4) {
                n @ (0 | 1) => Point::Variable(n as u8),
                n => Point::Cell(cell(3 + n)),
            };
            Atom::order(point(random), point(random), random.below(2) == 0, 0)
        }
    }
}

/// Returns bounds that make brute force complete: numbers in -4..=4.
fn bounds() -> Vec<Atom> {
    let mut found = Vec::new();
    for i in 0..3 {
        for (factor, constant) in [(1, -4), (-1, -4)] {
            if let Ok(Literal::Atom(a)) =
                LinearConstraint::new(vec![(cell(i), factor)], constant, ZeroRelation::Le, true)
            {
                found.push(a);
            }
        }
    }
    found
}

/// Enumerates processes 0..6 in every relevant order: the named ones are 2 and 4, or 4 and 2; the
/// others fill the gaps twice.
fn has_solution(atoms: &[Atom]) -> bool {
    let named = [[2i64, 5], [5, 2]];
    let arithmetic: Vec<&Atom> = atoms.iter().filter(|a| matches!(a, Atom::Linear(_))).collect();
    let numbers = (0..729).any(|n| {
        let values = [n % 9 - 4, n / 9 % 9 - 4, n / 81 - 4];
        arithmetic.iter().all(|a| {
            let Atom::Linear(l) = a else { return true };
            let sum: i64 =
                l.terms.iter().map(|(c, f)| f * values[c.symbol()]).sum::<i64>() + l.constant;
            match l.relation {
                ZeroRelation::Le => sum <= 0,
                ZeroRelation::Lt => sum < 0,
                ZeroRelation::Eq => sum == 0,
                ZeroRelation::Ne => sum != 0,
            }
        })
    });
    let discrete = named.iter().any(|places| {
        (0..9i64 * 64).any(|n| {
            let values = [0, 0, 0, n % 3, n / 3 % 3, n / 9 % 8, n / 72];
            let of = |c: &Cell| values[c.symbol()];
            let point = |p: &Point| match p {
                Point::Variable(v) => places[usize::from(*v)],
                Point::Cell(c) => of(c),
            };
            atoms.iter().all(|a| match a {
                Atom::In(c, set) if c.symbol() < 5 => set & (1 << of(c)) != 0,
                Atom::In(c, set) => match places.iter().position(|p| *p == of(c)) {
                    Some(i) => set & (1 << i) != 0,
                    None => set & OTHER != 0,
                },
                Atom::Same(a, b, equal) => (of(a) == of(b)) == *equal,
                Atom::Before(a, b, true) => point(a) < point(b),
                Atom::Before(a, b, false) => point(a) <= point(b),
                _ => true,
            })
        })
    });
    numbers && discrete
}

fn fact(atom: &Atom) -> Fact {
    let cell = |c: &Cell| logic::CertificateCell::new(c.symbol(), [], None);
    let point = |p: &Point| match p {
        Point::Variable(v) => logic::Point::Named(*v),
        Point::Cell(c) => logic::Point::Held(cell(c)),
    };
    match atom {
        Atom::In(c, set) => {
            let other = if set & OTHER != 0 { singleton(logic::OTHER) } else { 0 };
            Fact::Among(cell(c), u128::from(set & 7) | other)
        }
        Atom::Same(a, b, equal) => Fact::Twins(cell(a), cell(b), *equal),
        Atom::Before(a, b, strict) => Fact::Ahead(point(a), point(b), *strict),
        Atom::Linear(l) => {
            let terms = l.terms.iter().map(|(c, f)| (cell(c), i128::from(*f))).collect();
            let sign = match l.relation {
                ZeroRelation::Le => Sign::AtMost,
                ZeroRelation::Lt => Sign::Less,
                ZeroRelation::Eq => Sign::Zero,
                ZeroRelation::Ne => Sign::NotZero,
            };
            Fact::Sum(CellSum::new(terms, l.constant.into(), sign).expect("small numbers"))
        }
        Atom::Residues(_) => unreachable!("no word is generated"),
        Atom::Fence(p, s) => Fact::Fence(*p, *s),
    }
}

const KINDS: [ValueKind; 7] = [
    ValueKind::Integer,
    ValueKind::Integer,
    ValueKind::Integer,
    ValueKind::Values(3),
    ValueKind::Values(3),
    ValueKind::Process,
    ValueKind::Process,
];

#[test]
fn both_procedures_agree_with_brute_force() {
    let signature = signature();
    let (mut contradictory, mut open) = (0, 0);
    for seed in 0..4000u64 {
        let mut random = Random::new(seed);
        let mut atoms = bounds();
        let mut never = false;
        for _ in 0..2 + random.below(6) {
            match atom(&mut random) {
                Literal::Atom(a) => atoms.push(a),
                Literal::False => never = true,
                Literal::True => {}
            }
        }
        if never {
            continue;
        }
        let expected = has_solution(&atoms);
        match Decider::of(&signature, 2, &atoms).check() {
            SimplexAnswer::Satisfiable => assert!(expected, "seed {seed}: no solution, {atoms:?}"),
            SimplexAnswer::Unsatisfiable => {
                assert!(!expected, "seed {seed}: there is a solution, {atoms:?}")
            }
            SimplexAnswer::Unknown => open += 1,
        }
        let world =
            World { kinds: &KINDS, named: 2, fixed: 0, closed: false, counts: &[], spent: None };
        let facts: Vec<Fact> = atoms.iter().map(fact).collect();
        if world.contradicts(&facts) {
            contradictory += 1;
            assert!(
                !expected,
                "seed {seed}: the verifier finds a contradiction and there is a solution, {atoms:?}"
            );
        } else {
            // Rounding is not complete over integers; the verifier then rejects.
            open += u32::from(!expected);
        }
    }
    assert!(contradictory > 500 && open < 40, "{contradictory} contradictions, {open} open");
}

#[test]
fn levels_are_taken_back() {
    let signature = signature();
    for seed in 0..400u64 {
        let mut random = Random::new(seed);
        let base = bounds();
        let mut decider = Decider::of(&signature, 2, &base);
        let mut stack: Vec<Vec<Atom>> = vec![base];
        for _ in 0..12 {
            if stack.len() > 1 && random.below(3) == 0 {
                stack.pop();
                decider.pop();
            } else if let Literal::Atom(a) = atom(&mut random) {
                let mut next = stack[stack.len() - 1].clone();
                next.push(a.clone());
                stack.push(next);
                decider.push();
                decider.assert(&a);
            }
            let fresh = Decider::of(&signature, 2, &stack[stack.len() - 1]).check();
            assert_eq!(decider.check(), fresh, "seed {seed}: {:?}", stack.last());
        }
    }
}
