//! Searches all states of a model, and prints counts and times:
//! `cargo run --release -p mu-check-murphi --example explore -- FILE.m [--without-symmetry]`.

use mu_base::SourceMap;
use mu_base::limits::Budget;
use mu_murphi::search::{SearchOptions, explore};
use mu_murphi::{Settings, compile, read};
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().expect("a file");
    let symmetry = arguments.next().is_none();
    let text = String::from_utf8_lossy(&std::fs::read(&file).expect("a file")).into_owned();
    let mut sources = SourceMap::new();
    let source = sources.add(file.as_str(), text.as_str());
    let compiled = read(source, &text, &Settings::default())
        .and_then(|model| compile(&model).map(|program| (model, program)));
    let (model, program) = compiled.unwrap_or_else(|error| {
        eprint!("{}", error.render(&sources));
        std::process::exit(2);
    });
    let begin = Instant::now();
    let options = SearchOptions { symmetry, ..SearchOptions::default() };
    let found = explore(&model, &program, options, &Budget::default(), &mut |_, _| {});
    let verdict = found.failure.map_or_else(|| "ok".into(), |f| format!("{:?}", f.broken));
    println!(
        "{verdict} states {} rules {} depth {} bytes {:.1} seconds {:.3}",
        found.states,
        found.rules,
        found.depth,
        found.memory as f64 / found.states as f64,
        begin.elapsed().as_secs_f64()
    );
}
