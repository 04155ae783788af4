//! Files, quotients and comparisons against naive implementations, on random systems.

use mu_base::ids::{LabelId, StateId};
use mu_base::random::Random;
use mu_chance::bisimulation::{bisimilar, reduce};
use mu_chance::{Distributions, ProbabilisticSystem, aut};
use mu_lts::Labels;
use num_bigint::BigInt;
use num_rational::BigRational;

fn read(text: &str) -> ProbabilisticSystem {
    aut::read(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

fn to_text(system: &ProbabilisticSystem) -> String {
    let mut out = Vec::new();
    aut::write(system, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn files_round_trip() {
    let text = "des (0 1/2 1,2,2)\n(0,\"head\",0 1/2 1)\n(1,\"a, \"b\"\",1)\n";
    assert_eq!(to_text(&read(text)), text);
    // Outcomes of one state are added, in the order of the states.
    assert_eq!(to_text(&read("des (1 1/3 0 1/3 1,0,2)")), "des (0 1/3 1,0,2)\n");
}

#[test]
fn errors_in_files_are_reported() {
    let cases = [
        ("", "empty file"),
        ("des (0 1/2, 0, 1)", "a state"),
        ("des (0 2/2 1 1/2 2, 0, 3)", "a sum of at most 1"),
        ("des (0 1/0 1, 0, 2)", "denominator"),
        ("des (0, 1, 1)", "0 steps"),
        ("des (0, 1, 1)\n(0,\"a\",1)", "2 states"),
        ("des (0, 1, 1)\n(2,\"a\",0)", "a state below 1"),
        ("des (0, 1, 1)\n(0,\"a\",0", "`)`"),
    ];
    for (text, expected) in cases {
        let error = aut::read(text.as_bytes()).expect_err(text);
        assert!(error.message.contains(expected), "{text}: {}", error.message);
    }
}

#[test]
fn equal_probabilities_are_one_state() {
    let coin =
        read("des (0 1/2 1,4,4)\n(0,\"a\",2 1/4 3)\n(1,\"a\",3 1/4 2)\n(2,\"b\",2)\n(3,\"b\",3)\n");
    let one = read("des (0,2,2)\n(0,\"a\",1)\n(1,\"b\",1)\n");
    assert_eq!(to_text(&reduce(&coin)), to_text(&one));
    assert!(bisimilar(&coin, &one));
    let other = read("des (0,3,3)\n(0,\"a\",1 1/2 2)\n(1,\"b\",1)\n(2,\"c\",2)\n");
    let third = read("des (0,3,3)\n(0,\"a\",1 1/3 2)\n(1,\"b\",1)\n(2,\"c\",2)\n");
    assert!(!bisimilar(&one, &other) && !bisimilar(&other, &third) && bisimilar(&third, &third));
}

fn random_system(random: &mut Random) -> ProbabilisticSystem {
    let states = 1 + random.below(6);
    let mut distributions = Distributions::default();
    let mut dist = |random: &mut Random| {
        let parts = 1 + random.below(3);
        let outcomes: Vec<_> = (0..parts)
            .map(|_| {
                (
                    StateId::new(random.below(states)),
                    BigRational::new(1.into(), BigInt::from(parts)),
                )
            })
            .collect();
        distributions.intern(outcomes)
    };
    let initial = dist(random);
    let mut edges = Vec::new();
    for s in 0..states {
        for _ in 0..random.below(3) {
            let edge = (s as u32, LabelId::new(1 + random.below(2)), dist(random));
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        }
    }
    let table = Labels { texts: vec!["tau".into(), "a".into(), "b".into()] };
    aut::from_edges(initial, states, edges, distributions, table)
}

/// Computes bisimilar pairs by the definition: removes distinguishable pairs until nothing changes.
fn naive_bisimilarity(system: &ProbabilisticSystem) -> Vec<Vec<bool>> {
    let n = system.state_count();
    let mut same = vec![vec![true; n]; n];
    loop {
        let equal = |d, e| {
            (0..n).all(|s| {
                let weight = |dist| -> BigRational {
                    system
                        .distributions
                        .outcomes(dist)
                        .filter(|(t, _)| same[s][t.index()])
                        .map(|(_, w)| w.clone())
                        .sum()
                };
                weight(d) == weight(e)
            })
        };
        let follows = |s: usize, t: usize| {
            system
                .steps(StateId::new(s))
                .all(|(l, d)| system.steps(StateId::new(t)).any(|(m, e)| l == m && equal(d, e)))
        };
        let next: Vec<Vec<bool>> = (0..n)
            .map(|s| (0..n).map(|t| same[s][t] && follows(s, t) && follows(t, s)).collect())
            .collect();
        if next == same {
            return same;
        }
        same = next;
    }
}

#[test]
fn quotients_agree_with_the_definition() {
    let (mut merged, mut distinguished) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let system = random_system(&mut random);
        let quotient = reduce(&system);
        assert!(bisimilar(&system, &quotient), "seed {seed}");
        let same = naive_bisimilarity(&quotient);
        for (s, row) in same.iter().enumerate() {
            assert!(
                row.iter().take(s).all(|same| !same),
                "seed {seed}: state {s} of the quotient is bisimilar to an earlier one"
            );
        }
        merged += usize::from(quotient.state_count() < system.state_count());
        assert_eq!(to_text(&read(&to_text(&system))), to_text(&system), "seed {seed}");
        let other = random_system(&mut random);
        distinguished += usize::from(!bisimilar(&system, &other));
        assert_eq!(
            bisimilar(&system, &other),
            bisimilar(&quotient, &reduce(&other)),
            "seed {seed}"
        );
    }
    assert!(merged > 50 && distinguished > 50, "{merged} {distinguished}");
}
