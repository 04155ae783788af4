//! Phases of a check for every value of a parameter (`check -D NAME=any`): the order of the
//! methods, and the reason to go on to the next one.
//!
//! In: a formula and the model over parameters without a value, or the obstacle if there is no such
//! model. Out: the outcome of the formula. Invariant: *true* comes from a proof and passes the spot
//! checks, or from all admitted values; *false* comes from an instance only. Cost: that of the
//! phases, each with limits of its own.

use super::every_value::{Abstract, EveryValueResult, FormulaReport, PairSearch, for_all};
use super::instances::{InstanceSearchResult, Instances, numbers_in_model};
use super::path_proof::{PathLimit, PathProofResult, prove_by_paths, verify_answer};
use super::plan::CheckPlan;
use super::report::FormulaOutcome;
use super::spent::Spent;
use super::verified::Verification;
use crate::args::Reduction;
use crate::pipeline::Session;
use mu_base::host::Instant;
use mu_base::limits::Limits;
use mu_base::{Budget, Diagnostic, Stage};
use mu_formula::normal::normalise;
use mu_formula::typed::TypedFormula;
use mu_zones::NoProof;
use std::time::Duration;

/// Phases, in the order in which they can follow one another.
#[derive(Clone, Copy)]
enum CheckPhase {
    /// Proof along paths, up to a small number of obligations.
    ShortPaths,
    /// The smallest instances.
    QuickInstances,
    /// Proof on the abstract models of [`mu_regions`].
    Regions,
    /// Proof along paths up to a larger number of obligations, if the small one was the obstacle.
    LongPaths,
    /// Some instances, before a formula with a proof is called true.
    SpotChecks,
    /// Instances one by one, for a formula without a proof.
    Instances,
}

/// End of a phase.
enum PhaseEnd {
    /// Another phase follows.
    Next(CheckPhase),
    /// The outcome is known.
    Outcome(Box<FormulaOutcome>),
}

/// State of a check for every value.
struct PhasedCheck<'a> {
    session: &'a mut Session,
    plan: &'a CheckPlan,
    /// Index of the formula.
    index: usize,
    /// The model over parameters without a value, and the formula; `None` if there is no such
    /// model.
    subject: Option<(&'a mut Abstract, &'a TypedFormula)>,
    /// Numbers in the text of the model, and those of [`NoProof::compared`].
    literals: Vec<usize>,
    start: Instant,
    /// Result of the latest phase that searched for a proof.
    result: EveryValueResult,
    /// Reason why [`CheckPhase::ShortPaths`] found no proof.
    path_obstacle: Option<Diagnostic>,
    /// True if that reason is the limit on obligations.
    path_limit_reached: bool,
}

/// Checks a formula for every value. `model` and `formula` contain the obstacle if they do not
/// exist.
pub(super) fn check_every_value(
    session: &mut Session,
    plan: &CheckPlan,
    model: &mut Result<Abstract, Diagnostic>,
    (index, formula): (usize, Option<&TypedFormula>),
) -> Result<FormulaOutcome, Diagnostic> {
    let start = Instant::now();
    let literals = match model {
        Ok(model) => model.literals.clone(),
        Err(_) => session.read(&plan.model).map(|text| numbers_in_model(&text)).unwrap_or_default(),
    };
    let (first, result, subject) = match (model, formula) {
        (Ok(model), Some(formula)) => {
            // A formula that is not monotonic is an error, whatever the value.
            normalise(formula, &mut formula.data.signature.clone())?;
            let no_phase = Diagnostic::internal("no phase has searched for a proof");
            let result = EveryValueResult::open(no_phase);
            (CheckPhase::ShortPaths, result, Some((model, formula)))
        }
        (Err(obstacle), _) => {
            (CheckPhase::Instances, EveryValueResult::open(obstacle.clone()), None)
        }
        (Ok(_), None) => return Err(Diagnostic::internal("a formula was not read")),
    };
    let mut check = PhasedCheck {
        session,
        plan,
        index,
        subject,
        literals,
        start,
        result,
        path_obstacle: None,
        path_limit_reached: false,
    };
    let mut phase = first;
    loop {
        match check.run(phase)? {
            PhaseEnd::Next(next) => phase = next,
            PhaseEnd::Outcome(outcome) => return Ok(*outcome),
        }
    }
}

impl PhasedCheck<'_> {
    fn run(&mut self, phase: CheckPhase) -> Result<PhaseEnd, Diagnostic> {
        match phase {
            CheckPhase::ShortPaths => self.short_paths(),
            CheckPhase::QuickInstances => self.quick_instances(),
            CheckPhase::Regions => self.regions(),
            CheckPhase::LongPaths => self.long_paths(),
            CheckPhase::SpotChecks => self.spot_checks(),
            CheckPhase::Instances => self.instances(),
        }
    }

    fn short_paths(&mut self) -> Result<PhaseEnd, Diagnostic> {
        let Some((model, formula)) = &mut self.subject else { return Err(no_model()) };
        if has_paths(model) {
            let part = match self.plan.certificate {
                Some(_) => self.session.budget.clone(),
                None => budget_of_paths(&self.session.budget),
            };
            let whole = std::mem::replace(&mut self.session.budget, part);
            let found = prove_by_paths(self.session, self.plan, model, formula, PathLimit::Short);
            self.session.budget = whole;
            match found? {
                PathProofResult::Proved(proof, verification) => {
                    self.result = EveryValueResult::of_paths(self.plan, *proof, verification);
                    return Ok(PhaseEnd::Next(CheckPhase::SpotChecks));
                }
                PathProofResult::Rejected(why) => {
                    self.result = EveryValueResult::open(why);
                    return Ok(PhaseEnd::Next(CheckPhase::Instances));
                }
                // A limit of the run.
                PathProofResult::Open(open)
                    if open.why.stop.is_some() && self.session.budget.check(0).is_err() =>
                {
                    self.result = EveryValueResult::open(open.why);
                    return Ok(PhaseEnd::Next(CheckPhase::Instances));
                }
                // The limit of this phase.
                PathProofResult::Open(open) if open.why.stop.is_some() => {
                    add_numbers(&mut self.literals, &open);
                    let text = "an evaluation takes longer than its part of the time";
                    self.path_obstacle = Some(Diagnostic::new(Stage::Unsupported, text));
                }
                PathProofResult::Limited(open) => {
                    self.path_limit_reached = true;
                    add_numbers(&mut self.literals, &open);
                    self.path_obstacle = Some(open.why);
                }
                PathProofResult::Open(open) => {
                    add_numbers(&mut self.literals, &open);
                    self.path_obstacle = Some(open.why);
                }
                PathProofResult::Undecided(why) => self.path_obstacle = Some(why),
            }
        }
        if self.plan.certificate.is_some() {
            // The regions give no certificates.
            let text = "only a proof along paths has a certificate";
            self.result = EveryValueResult::open(Diagnostic::new(Stage::Unsupported, text));
            self.result.add_path_obstacle(self.path_obstacle.as_ref());
            return Ok(PhaseEnd::Next(CheckPhase::Instances));
        }
        Ok(PhaseEnd::Next(CheckPhase::QuickInstances))
    }

    fn quick_instances(&mut self) -> Result<PhaseEnd, Diagnostic> {
        Ok(match self.instance_search().quick_counterexample()? {
            Some(outcome) => PhaseEnd::Outcome(Box::new(outcome)),
            None => PhaseEnd::Next(CheckPhase::Regions),
        })
    }

    fn regions(&mut self) -> Result<PhaseEnd, Diagnostic> {
        let Some((model, formula)) = &mut self.subject else { return Err(no_model()) };
        let spent = Spent::begin();
        let verifies = !self.plan.search.without.contains(&Reduction::Verify);
        for pairs in [PairSearch::Tried, PairSearch::Omitted] {
            let part = budget_of_regions(&self.session.budget);
            let whole = std::mem::replace(&mut self.session.budget, part);
            let found = for_all(self.session, self.plan, model, formula, pairs);
            self.session.budget = whole;
            self.result = match found {
                Err(why) if why.stop.is_some() => EveryValueResult::open(why),
                found => found?,
            };
            if self.result.open.is_some() {
                break;
            }
            let verification = if verifies {
                verify_answer(self.session, model, formula, spent.elapsed())
            } else {
                Verification::Missing("`--without verify`".into())
            };
            // A proof by pairs that is not verified is none.
            let missing = verifies && matches!(verification, Verification::Missing(_));
            if self.result.figures.pairs > 0 && missing {
                self.session.log("the proof by pairs of components is not verified");
                continue;
            }
            self.result.figures.verification = verification;
            return Ok(PhaseEnd::Next(CheckPhase::SpotChecks));
        }
        if self.path_limit_reached && self.session.budget.check(0).is_ok() {
            return Ok(PhaseEnd::Next(CheckPhase::LongPaths));
        }
        self.result.add_path_obstacle(self.path_obstacle.as_ref());
        Ok(PhaseEnd::Next(CheckPhase::Instances))
    }

    fn long_paths(&mut self) -> Result<PhaseEnd, Diagnostic> {
        let Some((model, formula)) = &mut self.subject else { return Err(no_model()) };
        match prove_by_paths(self.session, self.plan, model, formula, PathLimit::Long)? {
            PathProofResult::Proved(proof, verification) => {
                let cases = std::mem::take(&mut self.result.cases);
                let found = EveryValueResult::of_paths(self.plan, *proof, verification);
                self.result = EveryValueResult { cases, ..found };
                return Ok(PhaseEnd::Next(CheckPhase::SpotChecks));
            }
            PathProofResult::Rejected(why) => self.result.open = Some(Box::new(why.into())),
            // A limit of the run.
            PathProofResult::Open(open) if open.why.stop.is_some() => {
                self.result.open = Some(Box::new(open.why.into()));
            }
            PathProofResult::Open(open) | PathProofResult::Limited(open) => {
                add_numbers(&mut self.literals, &open);
                self.result.add_path_obstacle(Some(&open.why));
            }
            PathProofResult::Undecided(why) => self.result.add_path_obstacle(Some(&why)),
        }
        Ok(PhaseEnd::Next(CheckPhase::Instances))
    }

    fn spot_checks(&mut self) -> Result<PhaseEnd, Diagnostic> {
        let states = self.result.figures.states;
        let Some(values) = self.instance_search().spot_check_counterexample(states)? else {
            return Ok(PhaseEnd::Outcome(Box::new(self.report().is_true())));
        };
        let at = self.instance_search().at(&values);
        let why = format!(
            "the abstraction has no run that violates the formula, but the formula is false for {at}: the analysis of the model is wrong"
        );
        self.session.log(&why);
        self.result.open = Some(Box::new(Diagnostic::new(Stage::Unsupported, why).into()));
        self.result.cases.push(values);
        Ok(PhaseEnd::Next(CheckPhase::Instances))
    }

    fn instances(&mut self) -> Result<PhaseEnd, Diagnostic> {
        let cases = std::mem::take(&mut self.result.cases);
        let tried = match self.instance_search().counterexample(&cases) {
            Ok(InstanceSearchResult::False(outcome)) => {
                return Ok(PhaseEnd::Outcome(Box::new(outcome)));
            }
            Ok(InstanceSearchResult::TrueForAll(tried)) => {
                let outcome = self.report().is_true_one_by_one(&tried);
                return Ok(PhaseEnd::Outcome(Box::new(outcome)));
            }
            Ok(InstanceSearchResult::Unknown(tried)) => tried,
            Err(why) if why.stop.is_some() => None,
            Err(why) => return Err(why),
        };
        let Some(open) = &mut self.result.open else {
            return Err(Diagnostic::internal("a formula with a proof has no open reason"));
        };
        open.tried = tried;
        let open = self.result.open.as_ref().expect("it was found above");
        Ok(PhaseEnd::Outcome(Box::new(self.report().is_unknown(open))))
    }

    fn instance_search(&mut self) -> Instances<'_> {
        let Self { session, plan, index, literals, .. } = self;
        Instances { session, plan, formula: *index, literals }
    }

    fn report(&self) -> FormulaReport<'_> {
        FormulaReport {
            session: self.session,
            plan: self.plan,
            index: self.index,
            figures: &self.result.figures,
            start: self.start,
        }
    }
}

/// Adds the numbers with which evaluations along paths compared others, such as 289 of
/// `n == 17 * 17`.
fn add_numbers(literals: &mut Vec<usize>, open: &NoProof) {
    literals.extend(open.compared.iter().filter_map(|n| usize::try_from(*n).ok()));
    literals.sort_unstable();
    literals.dedup();
}

/// Returns the error of a phase that needs the model over parameters without a value.
fn no_model() -> Diagnostic {
    Diagnostic::internal("a phase without a model over parameters without a value")
}

/// True if evaluation along paths supports a model.
pub(super) fn has_paths(model: &Abstract) -> bool {
    let only_numbers = model.families.is_empty() && model.replicas.is_none();
    only_numbers && !model.defined.rigid.is_empty() && model.refused.is_none()
}

/// Maximum time of the phase of short paths, without a limit of the run. Otherwise it is one part
/// in `SHORT_PART` of the time that is left.
const SHORT_TIME: Duration = Duration::from_secs(20);
const SHORT_PART: u32 = 4;

/// Returns the budget of the phase of short paths, of which a single evaluation may not end.
fn budget_of_paths(whole: &Budget) -> Budget {
    let (limits, past) = (whole.limits(), whole.elapsed());
    let share = limits.timeout.map(|all| past + all.saturating_sub(past) / SHORT_PART);
    whole.with_limits(Limits { timeout: share.or(Some(past + SHORT_TIME)), ..*limits })
}

/// Returns the budget of the regions: three quarters of the time that is left, so that time remains
/// for the later phases.
fn budget_of_regions(whole: &Budget) -> Budget {
    let limits = whole.limits();
    let timeout = limits.timeout.map(|all| {
        let past = whole.elapsed();
        past + all.saturating_sub(past) * 3 / 4
    });
    whole.with_limits(Limits { timeout, ..*limits })
}
