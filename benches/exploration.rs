//! Benchmark: exploration of the hand-written ARCx model, for comparison with a hand-written
//! explorer of the same model.
//!
//! `cargo bench --bench exploration -- N [none|full] [THREADS...]` prints a line for each number of
//! threads: counts, seconds, states per second, bytes of the store and peak resident bytes per
//! state.

#[path = "../tests/support/models.rs"]
mod models;

use models::arcx;
use mu_check::base::{Budget, limits};
use mu_check::explore::{Options, Silent, explore};

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let max = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(2);
    let full = arguments.get(1).is_none_or(|a| a == "full");
    let mut threads: Vec<usize> = arguments.iter().skip(2).filter_map(|a| a.parse().ok()).collect();
    if threads.is_empty() {
        threads = vec![1, 2];
    }
    for threads in threads {
        let model = arcx(max);
        let mut options = Options { threads, ..Options::default() };
        if full {
            options = options.with_confluence_of(&model);
        }
        match explore(&model, &options, &Budget::default(), &Silent) {
            Ok(o) => {
                let (s, states) = (o.elapsed.as_secs_f64(), o.states as f64);
                println!(
                    "N={max} confluence={full} threads={threads} states={} transitions={} deadlocks={} levels={} seconds={s:.2} \
                     states_per_second={:.0} store_bytes_per_state={:.2} frontier_bytes_per_state={:.2} peak_resident_per_state={:.2} {:?}",
                    o.states,
                    o.transitions,
                    o.deadlocks,
                    o.levels,
                    states / s,
                    o.store_bytes as f64 / states,
                    o.frontier_bytes as f64 / states,
                    limits::peak_resident_bytes() as f64 / states,
                    o.cache
                );
            }
            Err(error) => println!("{error:?}"),
        }
    }
}
