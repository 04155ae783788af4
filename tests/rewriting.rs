//! The programs of the rewriting benchmark at small size: their normal forms, by the engine and by the naive rewriter.

#[path = "../benches/rewriting/programs.rs"]
mod programs;

use mu_check::base::Diagnostic;
use mu_check::data::engine::{Engine, Program};
use mu_check::data::naive::Naive;
use mu_check::data::print::expression;
use mu_check::data::typecheck::check_expression;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax::{parse_data, parse_specification};

/// The small expression's normal form by the engine, and by the naive rewriter if it gets to an end.
fn results(program: &programs::Program) -> Result<(String, Option<String>), Diagnostic> {
    let tree = parse_specification(Default::default(), &format!("{}\ninit delta;", program.declarations))?;
    let mut spec = check_specification(&tree)?.data;
    let mut check = |text: &str| check_expression(&parse_data(Default::default(), text)?, &mut spec, None);
    let (full, quick) = (check(program.full.0)?, check(program.quick.0)?);
    assert_ne!(full, quick, "{}", program.name);
    let mut engine = Engine::new(Program::compile(&spec)?);
    engine.set_step_limit(10_000_000);
    let value = engine.from_expr(&quick)?;
    let mut naive = Naive::new(&spec, 300_000);
    let second = naive.normal(&quick).map(|n| expression(naive.signature(), &n));
    Ok((engine.text(&value, 1000), second))
}

#[test]
fn programs_have_their_results() {
    let mut twice = Vec::new();
    for program in programs::PROGRAMS {
        let (engine, naive) = results(program).unwrap_or_else(|e| panic!("{}: {e:?}", program.name));
        assert_eq!(engine, program.quick.1, "{}", program.name);
        if let Some(naive) = naive {
            assert_eq!(naive, program.quick.1, "{}, naive", program.name);
            twice.push(program.name);
        }
    }
    println!("by the naive rewriter as well: {twice:?}");
    assert!(programs::PROGRAMS.len() >= 12 && twice.len() >= 12);
}
