//! Audit of an abstraction by sampling concrete states, before an answer that relies on the
//! abstraction is reported.
//!
//! Input: an abstract model that satisfies a formula, and the linear process with the instances
//! that it covers. Output: the number of sampled concrete states ([`Audit`]); an internal error if
//! one has a step that the abstract model lacks. A sample consists of values of the parameters
//! within the case, a reachable abstract state, and a concrete state that it covers ([`cover`]),
//! with numbers far outside those that the abstraction examined ([`draw`]). Each step of the
//! concrete state in the direct semantics (`process::direct_steps`) must be covered by a step of
//! the abstract state, under a label that the formula cannot distinguish ([`view`]). The initial
//! state must be covered, and all closed tests of the formula must agree in a case. So the
//! simulation that docs/regions.md proves is tested by code that shares no evaluation with it.
//!
//! Cost: the time that the caller allows. Invariant: every sampled step is a step of an instance,
//! so a violation is an error of the abstraction.

pub mod components;
pub mod cover;
pub mod draw;
pub mod translate;
pub mod view;

use crate::abstractable_model::AbstractableModel;
use crate::cuts::{Case, CutTest};
use crate::study::Study;
use ahash::{AHashMap, AHashSet};
use draw::{Draw, literals_of};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage, narrow};
use mu_data::expr::{Expr, Substitution};
use mu_model::{Steps, Worker};
use mu_process::direct_steps::{ConcreteStep, DirectSteps, label_text, state_text, with_constants};
use mu_process::labels::MultiAction;
use mu_process::linear::LinearProcess;
use std::rc::Rc;
use view::{FormulaEvaluator, FormulaView};

/// Number of samples for one valuation of the parameters.
const PER_VALUATION: usize = 30;
/// Largest number of stored abstract states to sample from.
const MAX_STATES: usize = 50_000;

/// Input of the audit.
pub struct AuditRequest<'a> {
    /// The study of the formula.
    pub study: &'a Study<'a>,
    /// The case.
    pub case: &'a Case,
    /// The abstract model of the case.
    pub base: &'a dyn AbstractableModel,
    /// The process before symbolic constants became parameters.
    pub process: &'a LinearProcess,
    /// Number of samples.
    pub samples: usize,
    /// Seed of the random choices, for replay.
    pub seed: u64,
    /// True when the time is used up.
    pub enough: &'a dyn Fn() -> bool,
}

/// The result of an audit.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Number of concrete states, including initial ones.
    pub samples: usize,
    /// Number of their steps.
    pub steps: usize,
    /// Number of evaluations that the direct semantics does not decide.
    pub undecided: u64,
    /// The part that cannot be audited.
    pub unchecked: Option<String>,
}

impl Audit {
    /// Adds the result for another case.
    pub fn add(&mut self, other: Audit) {
        self.samples += other.samples;
        self.steps += other.steps;
        self.undecided += other.undecided;
        self.unchecked = self.unchecked.take().or(other.unchecked);
    }
}

/// Reachable abstract states found so far, with their steps.
struct Explored<'a> {
    base: &'a dyn AbstractableModel,
    worker: Box<dyn Worker + 'a>,
    states: Vec<Rc<[u32]>>,
    known: AHashSet<Rc<[u32]>>,
    answers: AHashMap<(usize, Vec<u32>), Rc<Steps>>,
    successors: AHashMap<usize, Rc<Successors>>,
    labels: AHashMap<LabelId, MultiAction>,
    /// The states with known successors.
    expanded: Vec<usize>,
}

/// Labels with next states.
type Successors = AHashSet<(MultiAction, Rc<[u32]>)>;

impl<'a> Explored<'a> {
    fn new(base: &'a dyn AbstractableModel) -> Self {
        let first: Rc<[u32]> = base.initial().into();
        Self {
            base,
            worker: base.worker(),
            states: vec![first.clone()],
            known: [first].into(),
            answers: AHashMap::new(),
            successors: AHashMap::new(),
            labels: AHashMap::new(),
            expanded: Vec::new(),
        }
    }

    fn steps(&mut self, group: usize, state: &[u32]) -> Result<Rc<Steps>, Diagnostic> {
        let reads: Vec<u32> =
            self.base.groups()[group].reads.iter().map(|s| state[*s as usize]).collect();
        let key = (group, reads);
        if let Some(known) = self.answers.get(&key) {
            return Ok(known.clone());
        }
        let mut steps = Steps::default();
        self.worker.steps(group, &key.1, &mut steps)?;
        let steps = Rc::new(steps);
        self.answers.insert(key, steps.clone());
        Ok(steps)
    }

    /// Computes the steps of a state and stores its successors; `None` if the time is used up.
    fn successors(
        &mut self,
        at: usize,
        enough: &dyn Fn() -> bool,
    ) -> Result<Option<Rc<Successors>>, Diagnostic> {
        if let Some(known) = self.successors.get(&at) {
            return Ok(Some(known.clone()));
        }
        let state = self.states[at].clone();
        let mut out = Successors::new();
        for g in 0..self.base.groups().len() {
            if self.base.groups()[g]
                .requires
                .iter()
                .any(|(slot, value)| state[*slot as usize] != *value)
            {
                continue;
            }
            if g % 8 == 7 && enough() {
                return Ok(None);
            }
            let steps = self.steps(g, &state)?;
            let writes = &self.base.groups()[g].writes;
            for (i, label) in steps.labels.iter().enumerate() {
                let mut next = state.to_vec();
                writes
                    .iter()
                    .zip(&steps.values[i * writes.len()..])
                    .for_each(|(slot, value)| next[*slot as usize] = *value);
                let base = self.base;
                let label = self
                    .labels
                    .entry(*label)
                    .or_insert_with(|| sort_actions(&base.multi_action(*label)))
                    .clone();
                let next: Rc<[u32]> = next.into();
                if self.states.len() < MAX_STATES && self.known.insert(next.clone()) {
                    self.states.push(next.clone());
                }
                out.insert((label, next));
            }
        }
        let out = Rc::new(out);
        self.expanded.push(at);
        self.successors.insert(at, out.clone());
        Ok(Some(out))
    }
}

/// Sorts the actions of a multi-action.
fn sort_actions(label: &MultiAction) -> MultiAction {
    let mut label = label.clone();
    if label.len() > 1 {
        label.sort_by_cached_key(|(action, args)| (*action, format!("{args:?}")));
    }
    label
}

/// The audit of one case.
struct CaseAudit<'a> {
    wanted: &'a AuditRequest<'a>,
    draw: Draw,
    explored: Explored<'a>,
    view: FormulaView,
    /// The tests with a fixed outcome in the case.
    tests: Vec<CutTest>,
    audit: Audit,
}

/// Audits an abstract model.
///
/// # Errors
///
/// Internal: the abstract model does not cover a step of an instance. Others from the abstract
/// model.
pub fn audit(wanted: &AuditRequest) -> Result<Audit, Diagnostic> {
    if wanted.samples == 0 {
        return Ok(Audit::default());
    }
    let data = &wanted.process.data;
    let unchecked = if wanted.process.is_probabilistic()
        || wanted.process.is_timed()
        || !wanted.process.globals.is_empty()
    {
        Some("time, chance, and global variables".to_string())
    } else {
        wanted.base.unaudited_part()
    };
    if unchecked.is_some() {
        return Ok(Audit { unchecked, ..Audit::default() });
    }
    let mut literals = literals_of(wanted.process, data);
    literals.extend(literals_of(wanted.process, &wanted.study.rewritten_formula().data));
    let view = FormulaView::new(&wanted.study.rewritten_formula().formula);
    literals.extend(view.literals());
    let draw = Draw::new(wanted.seed, &literals, wanted.base.engine());
    let mut check = CaseAudit {
        wanted,
        draw,
        explored: Explored::new(wanted.base),
        view,
        tests: wanted.study.tests(),
        audit: Audit::default(),
    };
    let mut two = check.eye(&wanted.case.valuation);
    while check.audit.samples < wanted.samples && !(wanted.enough)() {
        check.valuation(&mut two)?;
    }
    Ok(check.audit)
}

impl<'a> CaseAudit<'a> {
    /// Audits samples for one valuation.
    fn valuation(&mut self, two: &mut FormulaEvaluator) -> Result<(), Diagnostic> {
        let wanted = self.wanted;
        let (study, case) = (wanted.study, wanted.case);
        if !self.draw.valuate(&study.sorts(), |v| case.has(&self.tests, v)) {
            self.draw.valuation.clone_from(&case.valuation);
        }
        let valuation = self.draw.valuation.clone();
        let process = wanted.process;
        let signature = wanted.base.signature();
        let data = with_constants(&process.data, signature, &study.constants(&valuation));
        let mut direct = DirectSteps::new(process, data);
        let mut one = self.eye(&valuation);
        if let Some(test) = self.view.test_that_differs(&mut one, two) {
            let text = "a test of the formula differs within a case of the abstraction";
            return Err(self.violation(
                text,
                &[(
                    "test",
                    mu_data::print::expression(&study.rewritten_formula().data.signature, &test),
                )],
            ));
        }
        self.draw.start_state();
        if let Some(state) = direct.initial() {
            self.audit.samples += 1;
            let first = self.image(&state).map(|image| *image == *self.explored.states[0]);
            if first == Some(false) {
                let text = "the abstraction does not cover the initial state";
                return Err(
                    self.violation(text, &[("state", state_text(process, signature, &state))])
                );
            }
            self.sample(0, &state, &mut direct, &mut one, two)?;
        }
        for _ in 0..PER_VALUATION {
            if self.audit.samples >= wanted.samples || (wanted.enough)() {
                break;
            }
            let count = self.explored.states.len();
            let recent = self.draw.random.chance(1, 2);
            let at = if recent {
                count - 1 - self.draw.random.below(count.min(4))
            } else {
                self.draw.random.below(count)
            };
            self.draw.start_state();
            let state: Vec<Expr> = self.explored.states[at]
                .iter()
                .enumerate()
                .map(|(slot, id)| wanted.base.value(narrow::index(slot), *id))
                .collect();
            let Some(mut concrete) = wanted.base.draw(&state, &mut self.draw) else { continue };
            concrete.truncate(process.params.len());
            if self.image(&concrete).is_none_or(|image| image != self.explored.states[at]) {
                continue;
            }
            self.audit.samples += 1;
            self.sample(at, &concrete, &mut direct, &mut one, two)?;
        }
        self.audit.undecided += direct.undecided;
        Ok(())
    }

    /// Checks all steps of a concrete state that an abstract one covers.
    fn sample(
        &mut self,
        at: usize,
        state: &[Expr],
        direct: &mut DirectSteps,
        one: &mut FormulaEvaluator,
        two: &mut FormulaEvaluator,
    ) -> Result<(), Diagnostic> {
        state.iter().for_each(|e| self.draw.record_numbers(e));
        let draw = &mut self.draw;
        let steps = direct.steps(state, &mut |sort, naive, state| draw.values(sort, naive, state));
        let Some(successors) = self.explored.successors(at, self.wanted.enough)? else {
            return Ok(());
        };
        for step in steps {
            let target = self.image(&step.target);
            let label = self.wanted.base.image_of_label(&step.label, &mut self.draw);
            let (Some(target), Some(label)) = (target, label) else {
                self.audit.undecided += 1;
                continue;
            };
            self.audit.steps += 1;
            if !successors.contains(&(sort_actions(&label), target)) {
                return Err(self.lacks(
                    "the abstraction does not cover a step of an instance",
                    at,
                    state,
                    &step,
                ));
            }
            if self.view.differs((one, &step.label), (two, &label)) {
                return Err(self.lacks(
                    "the formula distinguishes a label from the abstract label that covers it",
                    at,
                    state,
                    &step,
                ));
            }
        }
        Ok(())
    }

    fn eye(&self, valuation: &[i64]) -> FormulaEvaluator {
        let study = self.wanted.study;
        let formula = study.rewritten_formula();
        let signature = &formula.data.signature;
        let data = with_constants(&formula.data, signature, &study.constants(valuation));
        let by: Substitution = study.outer_values(valuation);
        FormulaEvaluator::new(data, by, valuation)
    }

    /// Returns the abstract state that covers a concrete one.
    fn image(&mut self, state: &[Expr]) -> Option<Rc<[u32]>> {
        let wanted = self.wanted;
        let parameters = wanted.study.parameter_values(&self.draw.valuation);
        let whole: Vec<Expr> = state.iter().cloned().chain(parameters).collect();
        let image = wanted.base.image(&whole, &mut self.draw)?;
        Some(
            image
                .iter()
                .enumerate()
                .map(|(slot, e)| wanted.base.intern(narrow::index(slot), e))
                .collect(),
        )
    }

    fn violation(&self, text: &str, parts: &[(&str, String)]) -> Diagnostic {
        let names = self.wanted.study.names();
        let values =
            names.iter().zip(&self.draw.valuation[1..]).map(|(name, n)| format!("{name} = {n}"));
        let mut error = Diagnostic::new(
            Stage::Internal,
            format!("the check of the answer by samples failed: {text}"),
        );
        error = error.note(format!("parameters: {}", values.collect::<Vec<_>>().join(", ")));
        for (name, part) in parts {
            error = error.note(format!("{name}: {part}"));
        }
        error.note(format!("seed: {}", self.wanted.seed))
    }

    fn lacks(&self, text: &str, at: usize, state: &[Expr], step: &ConcreteStep) -> Diagnostic {
        let (process, base) = (self.wanted.process, self.wanted.base);
        let signature = base.signature();
        let covered: Vec<Expr> = self.explored.states[at]
            .iter()
            .enumerate()
            .map(|(slot, id)| base.value(narrow::index(slot), *id))
            .collect();
        let error = self.violation(
            text,
            &[
                ("state", state_text(process, signature, state)),
                ("step", label_text(process, signature, &step.label)),
                ("next state", state_text(process, signature, &step.target)),
                ("abstract state", state_text(base.process(), signature, &covered)),
            ],
        );
        error.or_span(process.summands[step.summand].span())
    }
}
