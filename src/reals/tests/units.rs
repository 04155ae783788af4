//! Tests of the solver on random systems: it is compared with fixed-point iteration, and with laws
//! of the bounds. Failures print the seed.

use mu_base::Budget;
use mu_base::random::Random;
use mu_reals::number::Real;
use mu_reals::solve::{Bounds, solve};
use mu_reals::system::{RealEquations, RealOp};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};

fn number(n: i64, d: i64) -> Real {
    Real::Number(BigRational::new(BigInt::from(n), BigInt::from(d)))
}

fn solve_exactly(equations: &RealEquations) -> Bounds {
    solve(equations, &Budget::default()).unwrap()
}

/// Generates a random system with a fixed-point variable as node 0: means, added constants, minima
/// and maxima of two nodes.
fn random_equations(random: &mut Random, signs: usize) -> RealEquations {
    let mut equations = RealEquations::default();
    let n = 3 + random.below(9);
    for _ in 0..n {
        equations.reserve();
    }
    equations.least = (0..signs).map(|i| i % 2 == 0).collect();
    for i in 0..n {
        let node = |random: &mut Random| random.below(n) as u32;
        let op = match random.below(8) {
            0 => {
                let value = match random.below(6) {
                    0 => Real::Minus,
                    1 => Real::Plus,
                    k => number(k as i64 - 4, 1 + random.below(3) as i64),
                };
                RealOp::Value(equations.value(value))
            }
            kind @ 1..=4 => {
                // Often with a number: otherwise hardly any cycle has a finite value.
                let number = equations.value(number(random.below(4) as i64 - 1, 1));
                let other = if random.chance(1, 2) {
                    equations.add(RealOp::Value(number))
                } else {
                    node(random)
                };
                let args = [node(random), other].into();
                if kind <= 2 { RealOp::Least(args) } else { RealOp::Greatest(args) }
            }
            5 => {
                let constant = equations.value(number(random.below(5) as i64 - 2, 2));
                let (constant, one) =
                    (equations.add(RealOp::Value(constant)), equations.factor(&BigRational::one()));
                RealOp::Sum([(one, node(random)), (one, constant)].into(), false)
            }
            _ => {
                let half = equations.factor(&BigRational::new(1.into(), 2.into()));
                RealOp::Sum([(half, node(random)), (half, node(random))].into(), false)
            }
        };
        equations.nodes[i] = op;
    }
    // Every node is a head of its own, so that every cycle passes one.
    for i in 0..n {
        let inner = equations.add(equations.nodes[i].clone());
        equations.nodes[i] = RealOp::Head(inner);
        equations.ranks[i] = Some(random.below(signs) as u32);
    }
    equations
}

/// Returns the values of all nodes after some exact rounds of iteration: from minus infinity for a
/// least fixed point, from plus infinity for a greatest one.
fn iterate(equations: &RealEquations, least: bool, rounds: usize) -> Vec<Real> {
    let mut values = vec![Real::truth(!least); equations.nodes.len()];
    for _ in 0..rounds {
        values = (0..equations.nodes.len())
            .map(|i| equations.evaluate(i as u32, &|a| &values[a as usize]))
            .collect();
    }
    values
}

#[test]
fn one_sign_is_what_iteration_converges_to() {
    let (mut numbers, mut infinite, mut cycles) = (0, 0, 0);
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let mut equations = random_equations(&mut random, 1);
        let least = seed % 2 == 0;
        equations.least = vec![least];
        let bounds = solve_exactly(&equations);
        let near = iterate(&equations, least, 60)[0].clone();
        let later = iterate(&equations, least, 120)[0].clone();
        let value = bounds.value().unwrap_or_else(|| panic!("seed {seed}: {bounds:?}"));
        // Iteration approaches the solution from one side.
        let close = match (value, &later) {
            (Real::Number(v), Real::Number(l)) => {
                let gap = if least { v - l } else { l - v };
                assert!(gap >= BigRational::zero(), "seed {seed}: {value} and {later}");
                gap < BigRational::new(1.into(), 20.into())
            }
            (Real::Plus, Real::Number(l)) => least && matches!(&near, Real::Number(n) if l > n),
            (Real::Minus, Real::Number(l)) => !least && matches!(&near, Real::Number(n) if l < n),
            (a, b) => a == b,
        };
        assert!(close, "seed {seed}, least {least}: solved {value}, iterated {near} and {later}");
        numbers += usize::from(matches!(value, Real::Number(_)));
        infinite += usize::from(near != later && !matches!(value, Real::Number(_)));
        cycles += usize::from(near != later);
    }
    assert!(numbers > 300 && infinite > 3 && cycles > 20, "{numbers} {infinite} {cycles}");
}

#[test]
fn solutions_of_both_signs_are_bounds_of_the_iteration() {
    let mut exact = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let equations = random_equations(&mut random, 2);
        let bounds = solve_exactly(&equations);
        assert!(bounds.lower <= bounds.upper, "seed {seed}: {bounds:?}");
        // With least fixed points only the solution is smaller, with greatest only it is greater.
        let one = |least: bool| {
            let mut all = equations.clone();
            all.least = vec![least; 2];
            solve_exactly(&all)
        };
        assert!(
            one(true).lower <= bounds.upper && bounds.lower <= one(false).upper,
            "seed {seed}: {bounds:?}"
        );
        exact += usize::from(bounds.value().is_some());
    }
    assert!(exact > 300, "{exact}");
}

/// Builds `X = max(0, factor * X + added)`.
fn growth(factor: BigRational, added: Real) -> RealEquations {
    let mut equations = RealEquations::default();
    equations.least = vec![true];
    let head = equations.reserve();
    let (zero, added) = (equations.value(Real::zero()), equations.value(added));
    let (zero, added) = (equations.add(RealOp::Value(zero)), equations.add(RealOp::Value(added)));
    let (factor, one) = (equations.factor(&factor), equations.factor(&BigRational::one()));
    let sum = equations.add(RealOp::Sum([(factor, head), (one, added)].into(), false));
    let body = equations.add(RealOp::Greatest([zero, sum].into()));
    equations.nodes[head as usize] = RealOp::Head(body);
    equations.ranks[head as usize] = Some(0);
    equations
}

#[test]
fn sums_that_grow() {
    let half = || BigRational::new(1.into(), 2.into());
    let cases = [
        (half(), number(1, 1), number(2, 1)),
        (BigRational::one(), number(1, 1), Real::Plus),
        (BigRational::one(), number(0, 1), number(0, 1)),
        (BigRational::one(), number(-1, 1), number(0, 1)),
        (BigRational::from(BigInt::from(2)), number(1, 1), Real::Plus),
        (BigRational::from(BigInt::from(2)), number(-1, 1), number(0, 1)),
        (half(), Real::Plus, Real::Plus),
        (half(), Real::Minus, number(0, 1)),
    ];
    for (factor, added, expected) in cases {
        assert_eq!(
            solve_exactly(&growth(factor.clone(), added.clone())),
            Bounds { lower: expected.clone(), upper: expected },
            "{factor} {added}"
        );
    }
}
