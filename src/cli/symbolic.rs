//! `--engine symbolic` and `--engine auto`: counts of `explore` and verdicts of `check` by decision diagrams.
//!
//! `auto` searches one state at a time while the states are few, then as sets of states; if these outgrow the memory, one at a time again.

use super::args::{CheckArgs, ExploreArgs, SetStrategy};
use super::counts::Report;
use super::explore::{counted, explicit};
use super::files::Form;
use super::pipeline::Session;
use super::progress::grouped;
use mu_base::{Budget, Diagnostic, Limits, Stage, Stop};
use mu_formula::typed::TypedFormula;
use mu_labels::ActionLabels;
use mu_model::Model;
use mu_pbes::symbolic::check_symbolically;
use mu_pbes::{Answer, Verdict};
use mu_symbolic::{Options, Outcome, Strategy, reach};
use std::time::Instant;

/// States that `auto` searches one by one.
const FEW: u64 = 200_000;

fn refuse(what: &str) -> Diagnostic {
    Diagnostic::new(Stage::Usage, format!("{what} cannot be combined with `--engine symbolic`"))
        .note("omit `--engine` to use the explicit engine")
}

/// Options of one of `searches` searches at a time, which share the threads.
fn options(session: &Session, searches: usize) -> Options {
    Options { threads: (session.threads() / searches.max(1)).max(1), ..Options::default() }
}

fn say(session: &Session, model: &dyn Model, outcome: &Outcome) {
    let order: Vec<&str> = outcome.order.iter().map(|&s| model.slots().get(s as usize).map_or("", |s| s.name.as_str())).collect();
    session.say(format!("order of slots: {}", order.join(" ")));
    session.say(format!(
        "{} relations of {} nodes, learned by {} calls; {} nodes for {} states; at most {} nodes, {} collections",
        outcome.relations, outcome.relation_nodes, outcome.calls, outcome.nodes, outcome.states, outcome.peak_nodes, outcome.collections
    ));
}

/// Options of the one search of `explore`.
fn with_strategy(session: &Session, args: &ExploreArgs) -> Options {
    let strategy = match args.strategy {
        Some(SetStrategy::BreadthFirst) => Strategy::BreadthFirst,
        Some(SetStrategy::Chaining) => Strategy::Chaining,
        Some(SetStrategy::Saturation) | None => Strategy::Saturation,
    };
    Options { strategy, ..options(session, 1) }
}

fn report(session: &Session, args: &ExploreArgs, model: &dyn Model, outcome: Outcome) -> Report {
    say(session, model, &outcome);
    let layers = if args.strategy == Some(SetStrategy::Chaining) { "rounds" } else { "levels" };
    Report {
        engine: "symbolic",
        reason: None,
        states: outcome.states,
        transitions: outcome.transitions,
        deadlocks: outcome.deadlocks,
        ends: None,
        warnings: Vec::new(),
        stop: outcome.stop,
        nodes: Some((outcome.nodes, outcome.peak_nodes)),
        layers: outcome.levels.map(|count| (layers, count)),
        reduced: None,
    }
}

/// `explore --engine symbolic`
pub(super) fn explore(session: &mut Session, args: &ExploreArgs) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    if let Some(what) = only_explicit(args) {
        return Err(refuse(what));
    }
    let model = session.load(&args.model, "none")?.model;
    let outcome = reach(&*model, &with_strategy(session, args), &session.budget)?;
    report(session, args, &*model, outcome).print(session, start)
}

/// What is asked for that the symbolic engine does not do.
fn only_explicit(args: &ExploreArgs) -> Option<&'static str> {
    if args.out.is_some() || args.reduce.is_some() {
        Some("writing or reducing a transition system")
    } else if args.keeping.is_wanted() {
        Some("`--checkpoint`")
    } else if !args.relabelling.hide.is_empty() || !args.relabelling.rename.is_empty() {
        Some("`--hide` or `--rename`")
    } else if args.confluence != "none" {
        Some("`--confluence`")
    } else if Form::of(&args.model).is_lts() {
        Some("a file of a transition system")
    } else {
        None
    }
}

/// The limits for a first look: few states. Whether the user's own limit is lower.
fn first_look(session: &Session) -> (Limits, bool) {
    let limits = *session.budget.limits();
    let own = limits.max_states.is_some_and(|n| n <= FEW);
    (Limits { max_states: limits.max_states.map_or(Some(FEW), |n| Some(n.min(FEW))), ..limits }, own)
}

/// `explore --engine auto`
pub(super) fn explore_by_either(session: &mut Session, args: &ExploreArgs) -> Result<u8, Diagnostic> {
    let start = Instant::now();
    if let Some(what) = only_explicit(args) {
        return explicit(session, args, Some(format!("required by {what}")));
    }
    let model = session.load(&args.model, "none")?.model;
    let (limits, own) = first_look(session);
    let mut few = counted(session, args, &*model, &session.budget.with_limits(limits))?;
    if few.stop != Stop::States || own {
        few.reason = Some(format!("not more than {} states", grouped(FEW)));
        return few.print(session, start);
    }
    let limits = *session.budget.limits();
    // What is left to the explicit engine should the diagrams outgrow their half.
    let half = Limits { max_memory: limits.max_memory.map(|m| m / 2), ..limits };
    let outcome = reach(&*model, &with_strategy(session, args), &session.budget.with_limits(half))?;
    if outcome.stop != Stop::Memory {
        let reason = Some(format!("more than {} states", grouped(FEW)));
        return Report { reason, ..report(session, args, &*model, outcome) }.print(session, start);
    }
    let reason = Some("the diagrams outgrew half of the memory".to_string());
    Report { reason, ..counted(session, args, &*model, &session.budget)? }.print(session, start)
}

/// A formula of `check --engine auto`.
pub(super) fn check_by_either(
    session: &Session,
    args: &CheckArgs,
    (model, labels): (&dyn Model, &dyn ActionLabels),
    formula: &TypedFormula,
    run: &dyn Fn(&Budget) -> Result<Answer, Diagnostic>,
) -> Result<(Answer, String), Diagnostic> {
    if let Some(what) = asks_for_explicit(args) {
        return Ok((run(&session.budget)?, format!("explicit: required by {what}")));
    }
    let (limits, own) = first_look(session);
    let answer = run(&session.budget.with_limits(limits))?;
    if own || answer.verdict != Verdict::Unknown(Stop::States) {
        return Ok((answer, format!("explicit: not more than {} states", grouped(FEW))));
    }
    let limits = *session.budget.limits();
    let half = Limits { max_memory: limits.max_memory.map(|m| m / 2), ..limits };
    let why = match check_symbolically(model, labels, formula, &options(session, args.formulas.len()), &session.budget.with_limits(half)) {
        Ok(answer) if answer.verdict == Verdict::Unknown(Stop::Memory) => "the diagrams outgrew half of the memory".to_string(),
        Ok(answer) => return Ok((answer.into_answer(), format!("symbolic: more than {} states", grouped(FEW)))),
        Err(refusal) if refusal.stage == Stage::Unsupported => refusal.message,
        Err(error) => return Err(error),
    };
    Ok((run(&session.budget)?, format!("explicit: {why}")))
}

/// What is asked of `check` that the symbolic engine does not do.
fn asks_for_explicit(args: &CheckArgs) -> Option<&'static str> {
    if args.keeping.is_wanted() {
        return Some("`--checkpoint`");
    }
    (args.confluence != "none").then_some("`--confluence`")
}

/// A formula of `check --engine symbolic`.
pub(super) fn check(
    session: &Session,
    args: &CheckArgs,
    (model, labels): (&dyn Model, &dyn ActionLabels),
    formula: &TypedFormula,
) -> Result<Answer, Diagnostic> {
    if let Some(what) = asks_for_explicit(args) {
        return Err(refuse(what));
    }
    let answer = check_symbolically(model, labels, formula, &options(session, args.formulas.len()), &session.budget)?;
    if let Some(watched) = &answer.watched {
        say(session, model, &watched.outcome);
        session.say(format!("{} obligations met states, {} pairs", watched.obligations, watched.pairs));
    }
    Ok(answer.into_answer())
}
