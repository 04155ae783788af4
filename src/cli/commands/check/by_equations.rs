//! Fallback for a formula that no search of states decides: an equation system, in which the
//! formula's modalities supply values that the model leaves open.
//!
//! In: a formula and the compiled specification. Out: a verdict without evidence, or none. The
//! explorer needs all transitions of a state; `sum m: Nat. a(m)` has infinitely many. In the
//! equations, `<a(2)>true` is `exists m: Nat. m == 2`, and quantifier elimination finds the value.
//! A formula that needs no transition, such as `mu X. X`, evaluates no condition.
//!
//! Invariant: the solver's strategies are verified before the verdict is returned. Unbounded
//! quantifiers are enumerated, for at most [`MAX_UNROLLED`] instances.

use crate::commands::game::{deciding_part, expect_verified};
use crate::pipeline::Session;
use crate::pipeline::load::Loaded;
use mu_base::{Budget, Diagnostic, Limits, SourceId, Stop};
use mu_explore::Peers;
use mu_formula::equations::{self, UnrollSelection};
use mu_formula::typed::TypedFormula;
use mu_game::solve::Solver;
use mu_game::{Game, Player};
use mu_pbes::{Answer, Method, Verdict, print};

/// Limit on the instances if a quantifier is enumerated; beyond it the original error is reported.
const MAX_UNROLLED: u64 = 4096;

/// True if a check failed only for lack of a value, so that the equation system may help.
pub(super) fn lacks_value(error: &Diagnostic, subject: &Loaded) -> bool {
    error.open && subject.compiled.is_some()
}

/// Decides a formula as an equation system. Returns its value and the number of instances.
///
/// # Errors
/// Those of the evaluation, and limits of the run.
pub(super) fn decide(
    session: &Session,
    subject: &Loaded,
    formula: &TypedFormula,
    solver: &dyn Solver,
    budget: &Budget,
) -> Result<Option<(bool, u64)>, Diagnostic> {
    let Some(compiled) = &subject.compiled else { return Ok(None) };
    let text = print::text(&print::system(formula, compiled.process())?);
    let mut unrolled = UnrollSelection::default();
    let game = match deciding_game(session, &text, &unrolled, solver, budget) {
        Err(error) if error.open => {
            unrolled.all = true;
            let most =
                budget.limits().max_states.map_or(MAX_UNROLLED, |most| most.min(MAX_UNROLLED));
            let fewer = budget.with_limits(Limits { max_states: Some(most), ..*budget.limits() });
            match deciding_game(session, &text, &unrolled, solver, &fewer) {
                Err(Diagnostic { stop: Some(Stop::States), .. }) => return Err(error),
                game => game?,
            }
        }
        game => game?,
    };
    let solution = solver.solve(&game, budget).map_err(Diagnostic::stopped)?;
    expect_verified(&game, &solution, solver)?;
    Ok(Some((solution.winner(game.initial) == Player::Even, game.vertex_count() as u64)))
}

/// As [`decide`]. If several processes check the formula, process 0 decides it, and the others wait
/// for its result. `None` also for an error of the evaluation, because the first error names the
/// place in the model.
///
/// # Errors
/// Limits of the run, and lost processes.
pub(super) fn decide_with(
    peers: Option<&dyn Peers>,
    budget: &Budget,
    decide: &mut dyn FnMut() -> Result<Option<(bool, u64)>, Diagnostic>,
) -> Result<Option<(bool, u64)>, Diagnostic> {
    let mut decided = || match decide() {
        Err(error) if error.stop.is_none() => Ok(None),
        found => found,
    };
    let Some(peers) = peers else { return decided() };
    let mut work = || {
        Ok(decided()?.map_or_else(Vec::new, |(value, instances)| {
            [&[u8::from(value)][..], &instances.to_le_bytes()].concat()
        }))
    };
    let bytes = peers.run_on_leader(budget, &mut work)?.map_err(Diagnostic::stopped)?;
    Ok(match bytes.split_first() {
        Some((value, instances)) => {
            instances.try_into().ok().map(|instances| (*value == 1, u64::from_le_bytes(instances)))
        }
        None => None,
    })
}

/// Returns the answer of a formula that an equation system decides.
pub(super) fn answer(value: bool, equations: u64) -> Answer {
    Answer {
        equations,
        informative: false,
        ..Answer::new(if value { Verdict::True } else { Verdict::False }, Method::Game)
    }
}

/// Returns the reason for an answer by equations. `refusal`: the error of the search of states.
pub(super) fn reason(refusal: &Diagnostic) -> String {
    format!("equations: the search of states fails ({}); there is no path to show", refusal.message)
}

/// Builds the part of the game of an equation system that decides it.
fn deciding_game(
    session: &Session,
    text: &str,
    unrolled: &UnrollSelection,
    solver: &dyn Solver,
    budget: &Budget,
) -> Result<Game, Diagnostic> {
    let system = equations::read_unrolled(SourceId::FIRST, text, unrolled)?;
    deciding_part(session, &system, solver, budget)
}

/// Returns the default instead of an error if a note on an answer needs a term without a value.
///
/// # Errors
/// All others.
pub(super) fn unless_without_value<T: Default>(
    remark: Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    match remark {
        Err(error) if error.open => Ok(T::default()),
        remark => remark,
    }
}
