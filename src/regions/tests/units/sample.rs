//! Comparison of samples with enumeration: each choice of numbers up to a limit is equivalent to
//! some sample, and each sample to its twin.

use mu_base::random::Random;
use mu_regions::cuts::{Case, CutLine, CutTerm, Distinction, Grain, LabelPredicate};
use mu_regions::sample::{Sample, SampleRequest, samples};
use mu_regions::separation::Capacities;
use std::collections::BTreeSet;

/// Computes all differences of zero, literals, constants and numbers, truncated at the bound.
fn likeness(sample: &Sample, literals: &[i64], bound: i64) -> Vec<i64> {
    let points: Vec<i64> =
        sample.valuation.iter().chain(literals).chain(&sample.numbers).copied().collect();
    points.iter().flat_map(|a| points.iter().map(move |b| (a - b).clamp(-bound, bound))).collect()
}

fn random_line(r: &mut Random) -> CutLine {
    let bases = 2 + r.below(2);
    let term = |r: &mut Random| CutTerm { base: r.below(bases), offset: r.below(3) as i64 };
    let predicates: Vec<LabelPredicate> = (0..1 + r.below(2))
        .map(|_| {
            if r.chance(1, 2) {
                LabelPredicate::Equal(term(r))
            } else {
                LabelPredicate::Less(term(r))
            }
        })
        .collect();
    let mut cuts: Vec<CutTerm> = predicates.iter().flat_map(|p| p.cuts()).collect();
    cuts.sort_unstable();
    cuts.dedup();
    let tests = (0..r.below(3)).map(|_| match r.below(3) {
        0 => Distinction::order(term(r), term(r)),
        1 => Distinction::less(term(r), term(r)),
        _ => Distinction::side(term(r), term(r)),
    });
    let tests = tests.collect();
    CutLine {
        least: std::iter::once(0).chain((1..bases).map(|_| r.below(2) as i64)).collect(),
        cuts,
        tests,
        predicates,
    }
}

/// Returns all tuples of numbers up to a limit.
fn tuples(length: usize, most: i64) -> Vec<Vec<i64>> {
    (0..length).fold(vec![Vec::new()], |all, _| {
        all.iter()
            .flat_map(|t| (0..=most).map(move |n| t.iter().copied().chain([n]).collect()))
            .collect()
    })
}

#[test]
fn every_choice_is_like_a_sample() {
    for seed in 0..15 {
        let r = &mut Random::new(seed);
        let line = random_line(r);
        let bases = line.least.len() - 1;
        let wanted_numbers = if bases == 2 { 1 } else { 1 + r.below(2) };
        let literals: Vec<i64> = if r.chance(1, 2) { vec![r.below(4) as i64] } else { Vec::new() };
        let (strict, joined) = (line.cases(), line.joint_cases());
        assert!(joined.len() <= strict.len(), "seed {seed}");
        for valuation in tuples(bases, 7) {
            let valuation: Vec<i64> = std::iter::once(0).chain(valuation).collect();
            if valuation.iter().zip(&line.least).any(|(v, l)| v < l) {
                continue;
            }
            let of = |cases: &[Case]| {
                cases.iter().filter(|c| allows(&line, c, &valuation)).cloned().collect::<Vec<_>>()
            };
            assert_eq!(of(&strict).len(), 1, "seed {seed}: {valuation:?} is of one case");
            assert!(!of(&joined).is_empty(), "seed {seed}: {valuation:?} is of a joined case");
            for case in of(&strict).iter().chain(&of(&joined)) {
                assert!(
                    answers_alike(&line, case, &valuation),
                    "seed {seed}: {valuation:?} {case:?}"
                );
                choices_are_like_samples(
                    seed,
                    &line,
                    case,
                    &valuation,
                    (wanted_numbers, &literals),
                );
            }
        }
    }
}

/// Computes the interval of each number, and the order of the numbers.
fn order(case: &Case, sample: &Sample) -> Vec<usize> {
    let interval = |n: &i64| case.interval(*n, |c| Some(c.value(&sample.valuation)));
    let pairs = sample
        .numbers
        .iter()
        .flat_map(|a| sample.numbers.iter().map(move |b| (a.cmp(b) as usize).wrapping_add(1)));
    sample.numbers.iter().map(interval).chain(pairs.map(|o| o % 3)).collect()
}

/// If numbers are compared only with each other: each choice has the order and the intervals of
/// some sample, and each sample those of its twin.
#[test]
fn every_choice_has_the_order_of_a_sample() {
    let (mut choices, mut kinds) = (0, 0);
    for seed in 0..60 {
        let r = &mut Random::new(1000 + seed);
        let line = random_line(r);
        let bases = line.least.len() - 1;
        let count = if bases == 2 { 2 } else { 2 + r.below(2) };
        let cases: Vec<Case> = line.cases().into_iter().chain(line.joint_cases()).collect();
        for case in &cases {
            let rooms = Capacities::new(&line, case, count).unwrap();
            let grains: Vec<Grain> = (0..count)
                .map(|_| if r.chance(1, 2) { Grain::Intervals } else { Grain::Predicates })
                .collect();
            let mut known: Vec<(Vec<(Grain, i64)>, BTreeSet<Vec<usize>>)> = Vec::new();
            for valuation in tuples(bases, 6)
                .into_iter()
                .map(|v| std::iter::once(0).chain(v).collect::<Vec<i64>>())
            {
                if valuation.iter().zip(&line.least).any(|(v, l)| v < l)
                    || !allows(&line, case, &valuation)
                {
                    continue;
                }
                for numbers in tuples(count, 8) {
                    let block = |(n, grain): (&i64, &Grain)| {
                        (*grain, case.abstract_number(*grain, *n, &valuation))
                    };
                    let blocks: Vec<(Grain, i64)> =
                        numbers.iter().zip(&grains).map(block).collect();
                    let at = known.iter().position(|k| k.0 == blocks).unwrap_or_else(|| {
                        let found = rooms.samples(case, &blocks).unwrap();
                        for (sample, twin) in &found {
                            assert_eq!(
                                order(case, sample),
                                order(case, twin),
                                "seed {seed}: {sample:?} {twin:?}"
                            );
                            assert!(
                                allows(&line, case, &sample.valuation),
                                "seed {seed}: {sample:?}"
                            );
                            let own = sample.numbers.iter().zip(&grains);
                            let own = own.map(|(n, grain)| {
                                (*grain, case.abstract_number(*grain, *n, &sample.valuation))
                            });
                            assert!(own.eq(blocks.iter().copied()), "seed {seed}: {sample:?}");
                        }
                        let orders: BTreeSet<Vec<usize>> =
                            found.iter().map(|(s, _)| order(case, s)).collect();
                        assert_eq!(
                            orders.len(),
                            found.len(),
                            "seed {seed}: no order is there twice"
                        );
                        kinds += orders.len();
                        known.push((blocks.clone(), orders));
                        known.len() - 1
                    });
                    let choice = Sample { valuation: valuation.clone(), numbers };
                    assert!(
                        known[at].1.contains(&order(case, &choice)),
                        "seed {seed}: {choice:?} of {line:?}"
                    );
                    choices += 1;
                }
            }
        }
    }
    assert!(choices > 100_000 && kinds > 1000, "{choices} choices, {kinds} kinds");
}

fn allows(line: &CutLine, case: &Case, valuation: &[i64]) -> bool {
    line.tests_of_cases()
        .iter()
        .zip(&case.outcome)
        .all(|(test, outcome)| outcome.allows(test.of(valuation)))
}

/// Returns whether all tests have the outcomes of the case's representative valuation.
fn answers_alike(line: &CutLine, case: &Case, valuation: &[i64]) -> bool {
    line.tests.iter().all(|required| {
        let (here, there) = (required.test.of(valuation), required.test.of(&case.valuation));
        (!required.less || here.is_lt() == there.is_lt())
            && (!required.greater || here.is_gt() == there.is_gt())
    })
}

/// Checks that each choice of `count` numbers is equivalent to a sample of its blocks, and that a
/// block determines the predicates of the formula.
fn choices_are_like_samples(
    seed: u64,
    line: &CutLine,
    case: &Case,
    valuation: &[i64],
    (count, literals): (usize, &[i64]),
) {
    let bound = line.reach() + 1;
    for grain in [Grain::Intervals, Grain::Predicates] {
        let mut known: Vec<(Vec<(Grain, i64)>, BTreeSet<Vec<i64>>)> = Vec::new();
        for numbers in tuples(count, 9) {
            let blocks: Vec<(Grain, i64)> = numbers
                .iter()
                .map(|n| (grain, case.abstract_number(grain, *n, valuation)))
                .collect();
            for ((_, block), n) in blocks.iter().zip(&numbers) {
                let alike = line
                    .predicates
                    .iter()
                    .all(|p| p.holds(*n, valuation) == p.holds(*block, &case.valuation));
                assert!(alike, "seed {seed}: {n} under {valuation:?} is {block} in {case:?}");
            }
            let at = known.iter().position(|k| k.0 == blocks).unwrap_or_else(|| {
                let wanted = SampleRequest { line, case, numbers: &blocks, literals, bound };
                let found = samples(&wanted).unwrap();
                for (sample, twin) in &found {
                    assert_eq!(
                        likeness(sample, literals, bound),
                        likeness(twin, literals, bound),
                        "seed {seed}"
                    );
                    for s in [sample, twin] {
                        assert!(allows(line, case, &s.valuation), "seed {seed}");
                        let own = s
                            .numbers
                            .iter()
                            .map(|n| (grain, case.abstract_number(grain, *n, &s.valuation)));
                        assert!(own.eq(blocks.iter().copied()), "seed {seed}: {s:?}");
                    }
                }
                known.push((
                    blocks.clone(),
                    found.iter().map(|(s, _)| likeness(s, literals, bound)).collect(),
                ));
                known.len() - 1
            });
            let choice = Sample { valuation: valuation.to_vec(), numbers };
            assert!(
                known[at].1.contains(&likeness(&choice, literals, bound)),
                "seed {seed}: {choice:?} of {line:?}"
            );
        }
    }
}
