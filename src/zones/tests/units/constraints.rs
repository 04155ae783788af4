//! Difference-bound matrices, thresholds, and paths against enumeration of small valuations.

use mu_base::random::Random;
use mu_data::engine::paths::PathOracle;
use mu_zones::Differences;
use mu_zones::path::Paths;
use mu_zones::thresholds::Thresholds;

/// Values of each variable that are enumerated.
const MOST: i64 = 6;

/// Returns all valuations of `n` variables.
fn valuations(n: usize) -> Vec<Vec<i64>> {
    (0..n).fold(vec![Vec::new()], |all, _| {
        all.iter().flat_map(|v| (0..=MOST).map(|k| [&v[..], &[k]].concat())).collect()
    })
}

type Constraint = (usize, usize, i64);

#[test]
fn the_greatest_machine_integer_is_no_bound() {
    let mut zone = Differences::default();
    let x = zone.add(Some(0));
    assert!(!zone.implies(x, 0, i64::MAX) && !zone.excludes(x, 0, i64::MAX));
    assert!(zone.constrain(x, 0, i64::MAX - 1) && zone.implies(x, 0, i64::MAX));
}

fn satisfies(v: &[i64], (x, y, c): Constraint) -> bool {
    let at = |x: usize| if x == 0 { 0 } else { v[x - 1] };
    at(x) - at(y) <= c
}

/// Returns random constraints over `n` variables between 0 and [`MOST`].
fn random_system(random: &mut Random, n: usize) -> (Differences, Vec<Constraint>, bool) {
    let mut zone = Differences::default();
    let mut all = Vec::new();
    for x in 1..=n {
        zone.add(Some(0));
        all.extend([(0, x, 0), (x, 0, MOST)]);
        assert!(zone.constrain(x, 0, MOST));
    }
    let mut possible = true;
    for _ in 0..random.below(5) {
        let (x, y) = (random.below(n + 1), random.below(n + 1));
        let c = random.below(9) as i64 - 4;
        if x != y && possible {
            possible = zone.constrain(x, y, c);
            all.push((x, y, c));
        }
    }
    (zone, all, possible)
}

#[test]
fn constraints_are_decided_as_by_enumeration() {
    let (mut satisfiable, mut not) = (0, 0);
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let n = 1 + random.below(3);
        let (zone, all, possible) = random_system(&mut random, n);
        let solutions: Vec<Vec<i64>> =
            valuations(n).into_iter().filter(|v| all.iter().all(|c| satisfies(v, *c))).collect();
        assert_eq!(possible, !solutions.is_empty(), "seed {seed}: {all:?}");
        if !possible {
            not += 1;
            continue;
        }
        satisfiable += 1;
        assert!(solutions.iter().all(|v| zone.holds(v)), "seed {seed}");
        for v in valuations(n) {
            assert_eq!(zone.holds(&v), solutions.contains(&v), "seed {seed}: {v:?}");
        }
        for _ in 0..20 {
            let c = (random.below(n + 1), random.below(n + 1), random.below(17) as i64 - 8);
            let holding = solutions.iter().filter(|v| satisfies(v, c)).count();
            assert_eq!(
                zone.implies(c.0, c.1, c.2),
                holding == solutions.len(),
                "seed {seed}: {c:?}"
            );
            assert_eq!(zone.excludes(c.0, c.1, c.2), holding == 0, "seed {seed}: {c:?}");
        }
        // A selection of sums has exactly the images of the solutions.
        let sums: Vec<(usize, i64)> = (0..1 + random.below(2))
            .map(|_| (random.below(n + 1), random.below(5) as i64))
            .collect();
        let image = |v: &Vec<i64>| -> Vec<i64> {
            sums.iter().map(|(x, k)| if *x == 0 { *k } else { v[x - 1] + k }).collect()
        };
        let images: Vec<Vec<i64>> = solutions.iter().map(image).collect();
        let selected = zone.select(&sums);
        for v in valuations(sums.len()) {
            assert_eq!(selected.holds(&v), images.contains(&v), "seed {seed}: {sums:?} {v:?}");
        }
        // Rounding keeps all solutions.
        let mut thresholds = Thresholds::default();
        for _ in 0..random.below(4) {
            let (x, y) = (random.below(n + 1) as u64, random.below(n + 1) as u64);
            thresholds.add(x, y, random.below(7) as i64 - 3);
        }
        let places: Vec<u64> = (1..=n as u64).collect();
        let rounded = thresholds.round_up(&zone, &places, &vec![Some(0); n]);
        assert!(rounded.includes(&zone), "seed {seed}");
        assert!(solutions.iter().all(|v| rounded.holds(v)), "seed {seed}");
    }
    assert!(satisfiable > 300 && not > 50, "{satisfiable} {not}");
}

#[test]
fn paths_partition_the_solutions() {
    let mut several = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let n = 1 + random.below(3);
        let (zone, _, possible) = random_system(&mut random, n);
        if !possible {
            continue;
        }
        let posed: Vec<Constraint> = (0..1 + random.below(4))
            .map(|_| (random.below(n + 1), random.below(n + 1), random.below(9) as i64 - 4))
            .collect();
        let unknown = |x: usize| x.checked_sub(1).map(|u| u as u32);
        let mut covered: Vec<Vec<i64>> = Vec::new();
        let mut paths = Paths::new(&zone);
        let mut count = 0;
        while let Some(path) = paths.start().unwrap() {
            count += 1;
            let answers: Vec<bool> = posed
                .iter()
                .map(|(x, y, c)| path.borrow_mut().at_most(unknown(*x), unknown(*y), *c))
                .collect();
            let own: Vec<Vec<i64>> =
                valuations(n).into_iter().filter(|v| path.borrow().zone.holds(v)).collect();
            for v in &own {
                let truth: Vec<bool> = posed.iter().map(|c| satisfies(v, *c)).collect();
                assert_eq!(truth, answers, "seed {seed}");
            }
            assert!(!own.is_empty(), "seed {seed}: a path that nothing takes");
            covered.extend(own);
            paths.end(&path);
        }
        several += usize::from(count > 1);
        let mut all: Vec<Vec<i64>> = valuations(n).into_iter().filter(|v| zone.holds(v)).collect();
        covered.sort();
        all.sort();
        assert_eq!(covered, all, "seed {seed}");
    }
    assert!(several > 100, "{several}");
}
