//! `pbes`, `solve`: equation systems and games.

use super::args::{Format, PbesArgs, SolveArgs};
use super::files::{read_game, write};
use super::lts::unknown;
use super::output;
use super::pipeline::Session;
use super::print;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use mu_formula::typecheck::check_formula;
use mu_game::{Player, pg, verify};
use mu_process::linearise;
use mu_solve::{Solver, by_name, default_solver};
use serde_json::json;

/// Prints the equation system.
pub(super) fn pbes(session: &mut Session, args: &PbesArgs) -> Result<u8, Diagnostic> {
    let (source, text) = session.read_source(&args.formula)?;
    let process = session.linear_process(&args.model, &linearise::Options::default())?;
    let tree = mu_syntax::parse_formula(source, &text)?;
    let formula = check_formula(&tree, &process.data, &process.actions)?;
    super::translate::text_result(session, "equations", mu_pbes::print::pbes(&formula, &process)?)
}

/// The solver of an option.
pub(super) fn solver(name: Option<&String>) -> &'static dyn Solver {
    name.and_then(|n| by_name(n)).unwrap_or(default_solver())
}

/// Solves a game file and verifies the solution.
pub(super) fn solve(session: &mut Session, args: &SolveArgs) -> Result<u8, Diagnostic> {
    let game = match read_game(session, &args.input) {
        Err(Diagnostic { stop: Some(stop), .. }) => return unknown(session, &stop),
        game => game?,
    };
    let solver = solver(args.solver.as_ref());
    session.say(format!("{} vertices, {} moves; solver {}", game.vertex_count(), game.edge_count(), solver.name()));
    let start = Instant::now();
    super::output::stage("solving");
    let solution = match solver.solve(&game, &session.budget) {
        Ok(solution) => solution,
        Err(stop) => return unknown(session, &stop),
    };
    let seconds = start.elapsed().as_secs_f64();
    verify::verify(&game, &solution)
        .map_err(|flaw| Diagnostic::new(Stage::Internal, format!("solver {} gives a wrong solution: {flaw}", solver.name())))?;
    session.say(format!("solved in {seconds:.3} s; winners and strategies of both players verified"));
    if let Some(out) = &args.out {
        write(out, |file| pg::write_solution(&solution, file))?;
    }
    let winner = solution.winner(game.initial);
    let even = solution.winners.iter().filter(|w| **w == Player::Even).count();
    let odd = game.vertex_count() - even;
    // A system of equations has named variables: what is asked is the value of one.
    let name = game.names.get(game.initial.index()).filter(|n| !n.is_empty());
    match session.common.format {
        Format::Json => {
            let object = json!({
                "file": args.input.display().to_string(),
                "verdict": (winner == Player::Even).to_string(),
                "initial": game.initial.0,
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
            output::object(object)?;
        }
        Format::Text => {
            let who = if winner == Player::Even { "Even (true)" } else { "Odd (false)" };
            let what = name.map_or_else(|| format!("vertex {}", game.initial.0), |n| format!("vertex {} ({n})", game.initial.0));
            print(&format!(
                "{what} is won by {who}\nEven wins {even} of {} vertices, Odd {odd}; strategies verified\n",
                game.vertex_count()
            ))?;
        }
    }
    Ok(u8::from(winner == Player::Odd))
}
