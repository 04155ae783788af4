//! Equation systems and games (`pbes`, `solve`).

use crate::args::{PbesArgs, SolveArgs};
use crate::commands::lts::report_unknown;
use crate::commands::translate::{report_written, text_result};
use crate::output::answers;
use crate::pipeline::Session;
use crate::pipeline::files::{is_equation_system, read_game, write, write_text};
use mu_base::host::Instant;
use mu_base::{Budget, Diagnostic, Stage};
use mu_compile::typed::process::Terms;
use mu_formula::equations::{self, UnrollSelection};
use mu_formula::typecheck::check_formula;
use mu_frontends::equation_systems::EquationText;
use mu_frontends::rejected::GAMES;
use mu_frontends::{FrontEnd as _, Input};
use mu_game::solve::{Solver, by_name, default_solver};
use mu_game::{Game, Player, Solution, pg, verify};
use mu_lts::{behaviour, mcrl2};
use mu_pbes::print;
use mu_process::linearise;
use mu_process::typecheck::check_specification;
use serde_json::json;
use std::path::Path;

/// Prints or writes the equation system.
pub(crate) fn pbes(session: &mut Session, args: &PbesArgs) -> Result<u8, Diagnostic> {
    if let Some(out) = args.out.as_ref().filter(|out| GAMES.has_ending(out)) {
        let message = format!(
            "`{}` has the ending of a game, and `pbes` writes equation systems",
            out.display()
        );
        return Err(Diagnostic::new(Stage::Usage, message)
            .note("for a game: `pbes … --out system.pbes`, then `convert system.pbes game.pg`"));
    }
    let (source, text) = match (&args.formula, &args.text) {
        (Some(path), _) => session.read_source(path)?,
        (None, text) => {
            let text = text.clone().unwrap_or_default();
            (session.sources.add("formula", text.clone()), text)
        }
    };
    let process = session.linear_process(&args.model, &linearise::LineariserOptions::default())?;
    let tree = mu_syntax::parse_formula(source, &text)?;
    let formula = check_formula(&tree, &process.data, &process.actions)?;
    let system = print::system(&formula, &process)?;
    let Some(out) = &args.out else {
        return text_result(session, "equations", print::text(&system));
    };
    if is_equation_system(out) && !out.to_string_lossy().to_lowercase().ends_with(".txt") {
        let typed = typed_equations(&system)?;
        write(out, |file| mcrl2::write_equations(&typed, file))?;
    } else {
        write_text(out, &print::text(&system))?;
    }
    report_written(session, out)
}

/// Converts an equation system to the typed terms of a file.
pub fn typed_equations(system: &print::System) -> Result<behaviour::Equations, Diagnostic> {
    let mut terms = Terms::new(&system.data)?;
    let globals = terms.declare_all(&system.globals);
    let initial = (system.initial.0.clone(), terms.terms(&system.initial.1)?);
    let mut equations = Vec::new();
    for e in &system.equations {
        let mark = terms.open();
        let parameters = terms.declare_all(&e.params);
        let body = typed_predicate(&mut terms, &e.body)?;
        terms.close(mark);
        equations.push(behaviour::FixedPoint {
            least: e.least,
            name: e.name.clone(),
            parameters,
            body,
        });
    }
    Ok(behaviour::Equations { typed: terms.finish(), globals, equations, initial })
}

fn typed_predicate(
    terms: &mut Terms,
    p: &print::Predicate,
) -> Result<behaviour::Predicate, Diagnostic> {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        Ok(match p {
            print::Predicate::Const(value) => behaviour::Predicate::Const(*value),
            print::Predicate::Data(e) => behaviour::Predicate::Data(terms.term(e)?),
            print::Predicate::Junction(all, parts) => {
                let parts: Result<Vec<_>, _> =
                    parts.iter().map(|p| typed_predicate(terms, p)).collect();
                behaviour::Predicate::Junction(*all, parts?)
            }
            print::Predicate::Quantifier(all, vars, body) => {
                let vars = terms.declare_all(vars);
                behaviour::Predicate::Quantifier(
                    *all,
                    vars,
                    Box::new(typed_predicate(terms, body)?),
                )
            }
            print::Predicate::Call(name, values) => {
                behaviour::Predicate::Call(name.clone(), terms.terms(values)?)
            }
        })
    })
}

/// Builds the part of the game of an equation system with data that decides it. Unbounded
/// quantifiers over numbers become equations that enumerate the numbers.
fn deciding_game(
    session: &mut Session,
    path: &Path,
    solver: &dyn Solver,
) -> Result<Game, Diagnostic> {
    let equations =
        session.with_loading(|loading| EquationText::open(&Input::file(path), loading))?;
    let mut unrolled = UnrollSelection::default();
    let mut first_error = None;
    loop {
        let system = equations.read(&unrolled)?;
        let why = match deciding_part(session, &system, solver, &session.budget) {
            Err(why) if why.stop.is_none() && why.stage == Stage::Data => why,
            other => return other,
        };
        // An unbounded variable, or its substitute.
        let place = why.span.filter(|s| system.quantified.contains(s));
        if system.quantified.is_empty() {
            return Err(first_error.unwrap_or(why));
        }
        match place {
            Some(place) => unrolled.places.push(place),
            None => unrolled.all = true,
        }
        session.log(format!("{}; its values are enumerated", why.message));
        first_error.get_or_insert(why);
    }
}

/// Explores the part of the game of an equation system that decides it, within a budget.
pub(crate) fn deciding_part(
    session: &Session,
    system: &equations::System,
    solver: &dyn Solver,
    budget: &Budget,
) -> Result<Game, Diagnostic> {
    let mut options = linearise::LineariserOptions::default();
    if let Some(dead) = options.simplification("dead") {
        *dead = true;
    }
    let process = session.linearise(&check_specification(&system.specification)?, &options)?;
    let model = session.compile(process, "none")?;
    let start = (system.prefix.as_str(), &system.least[..], system.initial.as_str());
    let otherwise = || mu_pbes::data_free::decide(system, solver, budget);
    let found = mu_pbes::on_the_fly::decide(&model, start, (solver, &otherwise), budget)?;
    session.log(format!(
        "the answer is {}: {} instances and parts, {} more were generated but not needed",
        found.value,
        found.game.vertex_count() - found.left_out,
        found.left_out
    ));
    Ok(found.game)
}

/// Verifies the strategies of a solution, independently of the solver.
///
/// # Errors
/// Internal: the solution is wrong.
pub(crate) fn expect_verified(
    game: &Game,
    solution: &Solution,
    solver: &dyn Solver,
) -> Result<(), Diagnostic> {
    let wrong = |flaw| {
        Diagnostic::new(
            Stage::Internal,
            format!("solver {} gives a wrong solution: {flaw}", solver.name()),
        )
    };
    verify::verify(game, solution).map_err(wrong)
}

/// Returns the solver of an option, or the default.
pub(crate) fn solver(name: Option<&String>) -> &'static dyn Solver {
    name.and_then(|n| by_name(n)).unwrap_or(default_solver())
}

/// Solves a game file and verifies the solution.
pub(crate) fn solve(session: &mut Session, args: &SolveArgs) -> Result<u8, Diagnostic> {
    let solver = solver(args.solver.as_ref());
    let read = if is_equation_system(&args.input) {
        deciding_game(session, &args.input, solver)
    } else {
        read_game(session, &args.input)
    };
    let game = match read {
        Err(Diagnostic { stop: Some(stop), .. }) => return report_unknown(session, &stop),
        game => game?,
    };
    session.log(format!(
        "{} vertices, {} moves; solver {}",
        game.vertex_count(),
        game.edge_count(),
        solver.name()
    ));
    let start = Instant::now();
    crate::output::begin_stage("solving");
    let solution = match solver.solve(&game, &session.budget) {
        Ok(solution) => solution,
        Err(stop) => return report_unknown(session, &stop),
    };
    let seconds = start.elapsed().as_secs_f64();
    expect_verified(&game, &solution, solver)?;
    session
        .log(format!("solved in {seconds:.3} s; winners and strategies of both players verified"));
    let winner = solution.winner(game.initial);
    let even = solution.winners.iter().filter(|w| **w == Player::Even).count();
    let odd = game.vertex_count() - even;
    // Equation systems have named variables; the result is the value of the initial one.
    let name = game.names.get(game.initial.index()).filter(|n| !n.is_empty());
    let object = json!({
        "file": args.input.display().to_string(),
        "verdict": (winner == Player::Even).to_string(),
        "initial": game.initial.number(),
        "name": name,
        "winner": if winner == Player::Even { "even" } else { "odd" },
        "vertices": game.vertex_count(),
        "edges": game.edge_count(),
        "won_by_even": even,
        "won_by_odd": odd,
        "solver": solver.name(),
        "verified": true,
        "seconds": seconds,
        "peak_memory_bytes": session.peak_memory(),
        "stop": "complete",
    });
    let who = if winner == Player::Even { "Even (true)" } else { "Odd (false)" };
    let what = name.map_or_else(
        || format!("vertex {}", game.initial.number()),
        |n| format!("vertex {} ({n})", game.initial.number()),
    );
    let text = format!(
        "{what} is won by {who}\nEven wins {even} of {} vertices, Odd {odd}; strategies verified\n",
        game.vertex_count()
    );
    answers::set_complete(object, text, u8::from(winner == Player::Odd));
    if let Some(out) = &args.out {
        write(out, |file| pg::write_solution(&solution, file))?;
    }
    answers::finish(session.common.format)
}
