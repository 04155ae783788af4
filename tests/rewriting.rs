//! The programs of the rewriting benchmark at small size: their normal forms, by the engine and by
//! the naive rewriter.

#[path = "../benches/rewriting/programs.rs"]
mod programs;

use mu_check::base::Diagnostic;
use mu_check::data::engine::{Engine, Program};
use mu_check::data::naive::Naive;
use mu_check::data::print::expression;
use mu_check::data::typecheck::check_expression;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax::{parse_data, parse_specification};

/// Returns the small expression's normal form by the engine, and by the naive rewriter if it gets
/// to an end.
fn results(program: &programs::Program) -> Result<(String, Option<String>), Diagnostic> {
    let tree =
        parse_specification(Default::default(), &format!("{}\ninit delta;", program.declarations))?;
    let mut spec = check_specification(&tree)?.data;
    let mut check =
        |text: &str| check_expression(&parse_data(Default::default(), text)?, &mut spec, None);
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
        let (engine, naive) =
            results(program).unwrap_or_else(|e| panic!("{}: {e:?}", program.name));
        assert_eq!(engine, program.quick.1, "{}", program.name);
        if let Some(naive) = naive {
            assert_eq!(naive, program.quick.1, "{}, naive", program.name);
            twice.push(program.name);
        }
    }
    println!("by the naive rewriter as well: {twice:?}");
    assert!(programs::PROGRAMS.len() >= 12 && twice.len() >= 12);
}

/// An evaluation may have any number of steps if it ends; equations that replace each other for
/// ever are reported.
#[test]
fn long_evaluations_end_and_endless_ones_are_reported() {
    let text = "map tree: Nat -> Nat; grow: Nat -> Nat; var n: Nat; p: Pos;
        eqn tree(0) = 1; tree(p) = tree(Int2Nat(p - 1)) + tree(Int2Nat(p - 1)); grow(n) = grow(n + 1); init delta;";
    let mut spec =
        check_specification(&parse_specification(Default::default(), text).unwrap()).unwrap().data;
    let mut value = |text: &str| {
        let expr =
            check_expression(&parse_data(Default::default(), text).unwrap(), &mut spec, None)
                .unwrap();
        let mut engine = Engine::new(Program::compile(&spec).unwrap());
        engine.from_expr(&expr).map(|v| engine.text(&v, 100)).map_err(|e| e.message)
    };
    // Twice 2^25 steps.
    assert_eq!(value("tree(25)"), Ok((1 << 25).to_string()));
    assert_eq!(
        value("grow(0)"),
        Err("rewriting does not end: more than 50000000 steps, the last of `grow`".to_string())
    );
}
