//! Benchmark of the data engine: equations applied per second, on small functional programs.
//!
//! `cargo bench --bench rewriting -- [NAME...]` prints a line for each program: its result, steps,
//! seconds, steps per second.

use mu_check::data::engine::{Engine, Program};
use mu_check::data::typecheck::check_expression;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax::{parse_data, parse_specification};
use std::time::Instant;

#[path = "rewriting/programs.rs"]
mod programs;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    for program in programs::PROGRAMS {
        let name = program.name;
        if !wanted.is_empty() && !wanted.iter().any(|w| w == name) {
            continue;
        }
        match measure(program.declarations, program.full.0) {
            Ok((result, steps, seconds)) if result == program.full.1 => {
                println!(
                    "{name}: {result} steps={steps} seconds={seconds:.3} steps_per_second={:.0}",
                    steps as f64 / seconds
                )
            }
            Ok((result, ..)) => println!("{name}: {result} where {} was expected", program.full.1),
            Err(e) => println!("{name}: {e:?}"),
        }
    }
}

fn measure(
    declarations: &str,
    expression: &str,
) -> Result<(String, u64, f64), mu_check::base::Diagnostic> {
    let ast = parse_specification(Default::default(), &format!("{declarations}\ninit delta;"))?;
    let mut spec = check_specification(&ast)?.data;
    let e = check_expression(&parse_data(Default::default(), expression)?, &mut spec, None)?;
    let mut engine = Engine::new(Program::compile(&spec)?);
    engine.set_step_limit(u64::MAX);
    let start = Instant::now();
    let value = engine.from_expr(&e)?;
    Ok((engine.text(&value, 100), engine.steps(), start.elapsed().as_secs_f64()))
}
