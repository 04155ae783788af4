//! Benchmarks, run by hand:
//! `cargo test --release -p mu-check-lts measure:: -- --ignored --nocapture`.

use mu_base::host::Instant;

use super::equivalence::{Equivalence, reduce};
use super::{Labels, Lts, aut};
use mu_base::ids::{LabelId, StateId};
use mu_base::random::Random;

/// Runs and prints wall time and processor time (all threads).
fn measure<T>(what: &str, f: impl FnOnce() -> T) -> T {
    let (start, cpu) = (Instant::now(), cpu_seconds());
    let result = f();
    println!(
        "{what}: {:.2} s, processor {:.2} s",
        start.elapsed().as_secs_f64(),
        cpu_seconds() - cpu
    );
    result
}

/// Returns user and system time of the process in seconds, if `/proc` reports it (in hundredths).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11).take(2);
    fields.filter_map(|f| f.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Returns `copies` copies of a random system, in which steps switch between copies at random; tau
/// steps descend in the base system.
fn copies(base: usize, copies: usize, degree: usize, taus: bool) -> Lts {
    let mut random = Random::new(11);
    let mut edges = Vec::new();
    let mut table = Labels::default();
    table.texts.extend((1..20).map(|i| format!("action({i})")));
    let shape: Vec<(usize, usize, usize)> = (0..base * degree)
        .map(|i| {
            let label = if taus && random.chance(1, 4) { 0 } else { 1 + random.below(19) };
            let s = i / degree;
            (s, label, if label == 0 { random.below(s + 1) } else { random.below(base) })
        })
        .collect();
    for c in 0..copies {
        for &(s, l, t) in &shape {
            edges.push((
                StateId::new(c * base + s),
                LabelId::new(l),
                StateId::new(random.below(copies) * base + t),
            ));
        }
    }
    Lts::from_edges(StateId::of(0), base * copies, &edges, table)
}

#[test]
#[ignore = "measures"]
fn speed() {
    for (name, base, n, taus) in [
        ("10^6 states, all different", 1_000_000, 1, false),
        ("10^4 classes", 10_000, 100, false),
        ("10^4 classes with tau", 10_000, 100, true),
        ("10^6 states with tau", 1_000_000, 1, true),
    ] {
        let lts = copies(base, n, 10, taus);
        println!("{name}: {} states, {} transitions", lts.state_count(), lts.transition_count());
        for e in [Equivalence::STRONG, Equivalence::BRANCHING] {
            for threads in [1, 2] {
                let q = measure(&format!("  {} with {threads} threads", e.name()), || {
                    reduce(&lts, e, threads)
                });
                println!("    {} states, {} transitions", q.state_count(), q.transition_count());
            }
        }
        if base == 10_000 && !taus {
            let mut bytes = Vec::new();
            measure("  write .aut", || aut::write(&lts, &mut bytes).unwrap());
            println!("    {} MB", bytes.len() / 1_000_000);
            let back = measure("  read .aut", || {
                aut::read(bytes.as_slice(), &Default::default()).unwrap()
            });
            assert_eq!(back.targets, lts.targets);
        }
    }
}
