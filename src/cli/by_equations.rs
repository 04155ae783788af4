//! Second attempt at a formula that no search of states decides: as an equation system, in which
//! the formula's modalities supply values that the model leaves open.
//!
//! In: a formula and the compiled specification. Out: a verdict without evidence, or none. The
//! explorer needs all steps of a state; of `sum m: Nat. a(m)` there are infinitely many. In the
//! equations `<a(2)>true` is `exists m: Nat. m == 2`, and quantifier elimination finds the value. A
//! formula that needs no step, such as `mu X. X`, evaluates no condition there.
//!
//! Invariant: the solver's strategies are verified before the verdict is returned. Quantifiers that
//! nothing bounds are tried number by number, for [`MOST_UNROLLED`] instances and no longer.

use super::game::{decided_by, expect_verified};
use super::load::Loaded;
use super::pipeline::Session;
use mu_base::{Budget, Diagnostic, Limits, SourceId, Stop};
use mu_formula::equations::{self, Unrolled};
use mu_formula::typed::TypedFormula;
use mu_game::{Game, Player};
use mu_pbes::print;
use mu_solve::Solver;

/// Instances met at most where a quantifier is tried number by number; then the first refusal
/// stands.
const MOST_UNROLLED: u64 = 4096;

/// True if a check may succeed as an equation system: all that it lacks is a value.
pub(super) fn may_help(error: &Diagnostic, subject: &Loaded) -> bool {
    error.open && subject.compiled.is_some()
}

/// Decides a formula as an equation system: its value and the number of instances.
///
/// # Errors
/// Those of the evaluation, and limits of the run.
pub(super) fn decide(
    session: &Session,
    subject: &Loaded,
    formula: &TypedFormula,
    solver: &dyn Solver,
) -> Result<Option<(bool, u64)>, Diagnostic> {
    let Some(compiled) = &subject.compiled else { return Ok(None) };
    let text = print::text(&print::system(formula, compiled.process())?);
    let mut unrolled = Unrolled::default();
    let game = match decided(session, &text, &unrolled, solver, &session.budget) {
        Err(error) if error.open => {
            unrolled.all = true;
            let most = session
                .budget
                .limits()
                .max_states
                .map_or(MOST_UNROLLED, |most| most.min(MOST_UNROLLED));
            let budget = session
                .budget
                .with_limits(Limits { max_states: Some(most), ..*session.budget.limits() });
            match decided(session, &text, &unrolled, solver, &budget) {
                Err(Diagnostic { stop: Some(Stop::States), .. }) => return Err(error),
                game => game?,
            }
        }
        game => game?,
    };
    let solution = solver.solve(&game, &session.budget).map_err(Diagnostic::stopped)?;
    expect_verified(&game, &solution, solver)?;
    Ok(Some((solution.winner(game.initial) == Player::Even, game.vertex_count() as u64)))
}

/// As much of the game of an equation system as decides it.
fn decided(
    session: &Session,
    text: &str,
    unrolled: &Unrolled,
    solver: &dyn Solver,
    budget: &Budget,
) -> Result<Game, Diagnostic> {
    let system = equations::read_unrolled(SourceId(0), text, unrolled)?;
    decided_by(session, &system, solver, budget)
}

/// A remark on an answer; none if it needs a term that has no value.
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
