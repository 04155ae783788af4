//! Symbolic check of conjunctive (dually disjunctive) formulas: computes which obligations reach
//! which states, over sets of states.
//!
//! Input: model, labels, formula. Output: verdict, the numbers of states and of pairs of state and
//! obligation, a deciding run if there is one. The formula's automaton is the [`Observer`] of
//! [`mu_symbolic::watch`]: an obligation is a formula state with its data, so one search handles
//! all instances of outer quantifiers, and the symbolic engine knows nothing of formulas.
//!
//! For formulas that suit the product search (`product.rs`): obligations of the formula's
//! connective, others that the outgoing labels of a state decide, and least fixed points (dually
//! none) if the obligations have no cycle, or only cycles of that one kind. All others are solved
//! as games (`symbolic_game.rs`).
//!
//! Cost: that of the model's search, and at most as much for each obligation. Invariant: numbers of
//! formula states belong to one automaton.

use super::automaton::{Automaton, FormulaState, ObligationSet, Start};
use super::check::{Answer, Method, Verdict};
use super::product::{
    ObligationKind, ProductAnalysis, analyse, closure, has_cycle_without_transitions, local_value,
};
use super::symbolic_game::by_game;
use super::transitions::steps_of;
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use mu_evidence::{Evidence, EvidenceStep, TakenStep};
use mu_formula::normal::NormalNode;
use mu_formula::typed::TypedFormula;
use mu_model::Model;
use mu_model::step_cache::StepCache;
use mu_process::labels::ActionLabels;
use mu_symbolic::{DecisionKind, GameOutcome, LabelTest, Observer, ProductOutcome, watch};
use num_bigint::BigUint;
use std::rc::Rc;

/// Result of a symbolic check.
#[derive(Clone, Debug)]
pub struct SymbolicAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// Result and cost of the product search; `None` if the formula is a constant, or was solved as
    /// a game.
    pub product_outcome: Option<ProductOutcome>,
    /// Result and cost of the game, if there was one.
    pub game_outcome: Option<GameOutcome>,
    /// Evidence, if a run decides the formula and was found within the limits.
    pub evidence: Option<Evidence>,
    /// See [`Automaton::more_equations`].
    more: u64,
}

impl SymbolicAnswer {
    fn constant(value: bool) -> Self {
        Self {
            verdict: if value { Verdict::True } else { Verdict::False },
            product_outcome: None,
            game_outcome: None,
            evidence: None,
            more: 0,
        }
    }
    pub(super) fn game(
        verdict: Verdict,
        game_outcome: GameOutcome,
        evidence: Option<Evidence>,
        more: u64,
    ) -> Self {
        Self { verdict, product_outcome: None, game_outcome: Some(game_outcome), evidence, more }
    }
    /// Returns the result and cost of the search of the model. `None` if the formula is a constant.
    pub fn outcome(&self) -> Option<&mu_symbolic::ReachOutcome> {
        self.product_outcome
            .as_ref()
            .map(|w| &w.outcome)
            .or(self.game_outcome.as_ref().map(|p| &p.outcome))
    }
    /// Returns the number of pairs of system state and obligation.
    pub fn equations(&self) -> BigUint {
        let pairs = self
            .product_outcome
            .as_ref()
            .map(|w| &w.pairs)
            .or(self.game_outcome.as_ref().map(|p| &p.vertices));
        pairs.map_or_else(BigUint::default, |pairs| pairs + self.more)
    }
    /// Returns the number of reached states of the model, at least 1.
    pub fn states(&self) -> BigUint {
        self.outcome().map_or_else(|| BigUint::from(1u32), |o| o.states.clone())
    }
    /// Converts to the result of the explicit methods, with numbers up to 2^64 - 1.
    pub fn into_answer(self) -> Answer {
        let small = |n: BigUint| u64::try_from(n).unwrap_or(u64::MAX);
        let method = match (&self.product_outcome, &self.game_outcome) {
            (Some(_), _) => Method::Symbolic,
            (_, Some(_)) => Method::SymbolicGame,
            _ => Method::Constant,
        };
        Answer {
            equations: small(self.equations()),
            states: small(self.states()),
            evidence: self.evidence,
            ..Answer::new(self.verdict, method)
        }
    }
}

/// Options of a symbolic check.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckOptions {
    /// All relevant runs are known to end, though the model may have cycles: see
    /// [`super::Options::runs_end`].
    pub runs_end: bool,
    /// Compute evidence even if it only shows that something holds everywhere.
    pub witnesses: bool,
}

/// Checks a formula by symbolic search.
pub fn check_symbolically(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    options: &mu_symbolic::SymbolicOptions,
    budget: &Budget,
) -> Result<SymbolicAnswer, Diagnostic> {
    check_with_options(model, labels, formula, options, CheckOptions::default(), budget)
}

/// Checks as [`check_symbolically`], with options.
pub fn check_with_options(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    options: &mu_symbolic::SymbolicOptions,
    check_options: CheckOptions,
    budget: &Budget,
) -> Result<SymbolicAnswer, Diagnostic> {
    let mut automaton = Automaton::new(formula)?.with_budget(budget);
    let (all, roots) = match automaton.start()? {
        Start::Constant(value) => return Ok(SymbolicAnswer::constant(value)),
        Start::States(all, roots) => (all, roots),
    };
    let mut suitable = analyse(&automaton, &roots, all);
    if suitable.is_none() && roots.len() == 1 {
        // A single state of the other connective: `<true*.a>true`.
        suitable = analyse(&automaton, &roots, !all);
    }
    if let Some(analysis) = suitable {
        match by_product(
            (model, labels),
            automaton,
            analysis,
            &roots,
            check_options,
            options,
            budget,
        )? {
            Ok(answer) => return Ok(answer),
            Err(back) => automaton = back,
        }
    }
    by_game((model, labels, formula), automaton, (all, &roots), check_options, options, budget)
}

/// Checks by the product search; returns the automaton if that does not decide.
fn by_product(
    (model, labels): (&dyn Model, &dyn ActionLabels),
    mut automaton: Automaton,
    analysis: ProductAnalysis,
    roots: &[FormulaState],
    check_options: CheckOptions,
    options: &mu_symbolic::SymbolicOptions,
    budget: &Budget,
) -> Result<Result<SymbolicAnswer, Automaton>, Diagnostic> {
    let conjunctive = analysis.conjunctive;
    let Some(members) = closure(&mut automaton, &analysis, roots)?.members() else {
        return Ok(Ok(SymbolicAnswer::constant(!conjunctive)));
    };
    let start: Vec<u32> = members.iter().map(|q| q.number()).collect();
    let mut observer = Obligations::new(automaton, labels, analysis, check_options.runs_end);
    let options =
        mu_symbolic::SymbolicOptions { transitions: false, deadlocks: false, ..options.clone() };
    let product_outcome = watch(model, &mut observer, &start, &options, budget)?;
    let Obligations { mut automaton, analysis, .. } = observer;
    if !product_outcome.decided
        && product_outcome.outcome.stop == Stop::Complete
        && !analysis.hostile.is_empty()
    {
        let states: Vec<FormulaState> = FormulaState::all(automaton.state_count()).collect();
        // A fixed-point variable that can call itself without an intermediate step.
        if has_cycle_without_transitions(&mut automaton, &analysis, &states)? {
            return Ok(Err(automaton));
        }
    }
    let endless =
        product_outcome.run.as_ref().is_some_and(|r| matches!(r.end, DecisionKind::Back(_)));
    if product_outcome.decided
        && (endless || product_outcome.run.is_none())
        && is_mixed(&automaton, &analysis)
    {
        return Ok(Err(automaton));
    }
    let verdict = match (product_outcome.decided, &product_outcome.outcome.stop) {
        (true, _) if conjunctive => Verdict::False,
        (true, _) => Verdict::True,
        (false, Stop::Complete) if conjunctive => Verdict::True,
        (false, Stop::Complete) => Verdict::False,
        (false, stop) => Verdict::Unknown(stop.clone()),
    };
    let evidence = match &product_outcome.run {
        Some(run) => Some(evidence(model, labels, &mut automaton, run, verdict == Verdict::True)?),
        None => None,
    };
    Ok(Ok(SymbolicAnswer {
        verdict,
        product_outcome: Some(product_outcome),
        game_outcome: None,
        evidence,
        more: automaton.more_equations(),
    }))
}

/// True if a cycle of hostile obligations may pass through fixed points of both kinds.
fn is_mixed(automaton: &Automaton, analysis: &ProductAnalysis) -> bool {
    analysis.hostile.iter().any(|node| match automaton.normal().node(*node) {
        NormalNode::Head(fix) => {
            automaton.normal().fix(*fix).recursive
                && (automaton.normal().fix(*fix).rank % 2 != 1) == analysis.conjunctive
        }
        _ => false,
    })
}

/// A formula's automaton as an observer.
pub(super) struct Obligations<'a> {
    automaton: Automaton,
    labels: &'a dyn ActionLabels,
    analysis: ProductAnalysis,
    /// True if all runs end, so that no cycle of obligations is a run.
    runs_end: bool,
    /// By obligations: its closure at one system state; `None`: decided.
    closures: AHashMap<ObligationSet, Option<Rc<[u32]>>>,
    /// A label that no modality names.
    other: Option<LabelId>,
}

impl Observer for Obligations<'_> {
    fn class(&mut self, label: LabelId) -> Result<LabelId, Diagnostic> {
        if self.automaton.names(label, self.labels)? {
            Ok(label)
        } else {
            Ok(*self.other.get_or_insert(label))
        }
    }

    fn step(&mut self, obligation: u32, label: LabelId) -> Result<Option<Rc<[u32]>>, Diagnostic> {
        // Each obligation and class is requested once: no caching is needed.
        let obligations =
            self.automaton.step_once(FormulaState::of(obligation), label, self.labels)?;
        if let Some(known) = self.closures.get(&obligations) {
            return Ok(known.clone());
        }
        let mut closed = None;
        let members = self.automaton.set(obligations);
        if obligations != ObligationSet::Decided
            && let Some(members) = closure(&mut self.automaton, &self.analysis, &members)?.members()
        {
            let mut members: Vec<u32> = members.iter().map(|q| q.number()).collect();
            members.sort_unstable();
            members.dedup();
            closed = Some(Rc::from(members));
        }
        self.closures.insert(obligations, closed.clone());
        Ok(closed)
    }

    fn test(
        &mut self,
        obligation: u32,
        labels: &[LabelId],
    ) -> Result<Option<LabelTest>, Diagnostic> {
        let q = FormulaState::of(obligation);
        if self.analysis.kinds.get(&self.automaton.node(q)) != Some(&ObligationKind::Local) {
            return Ok(None);
        }
        let value = self.value(q, labels)?;
        Ok(Some(if self.analysis.conjunctive { value } else { LabelTest::Not(Box::new(value)) }))
    }

    fn hostile(&mut self, obligation: u32) -> bool {
        !self.runs_end
            && self.analysis.hostile.contains(&self.automaton.node(FormulaState::of(obligation)))
    }
}

impl<'a> Obligations<'a> {
    /// Creates an observer. `runs_end`: see [`CheckOptions::runs_end`].
    pub(super) fn new(
        automaton: Automaton,
        labels: &'a dyn ActionLabels,
        analysis: ProductAnalysis,
        runs_end: bool,
    ) -> Self {
        Self { automaton, labels, analysis, runs_end, closures: AHashMap::new(), other: None }
    }

    /// Computes the condition under which a local formula state is true (cf.
    /// `product::local_value`).
    fn value(&mut self, q: FormulaState, labels: &[LabelId]) -> Result<LabelTest, Diagnostic> {
        let all = self.automaton.universal(q);
        let here = self.automaton.obligations_here(q)?;
        if here == ObligationSet::Decided {
            return Ok(LabelTest::Constant(!all));
        }
        let mut parts = Vec::new();
        for &next in self.automaton.set(here).iter() {
            parts.push(self.value(next, labels)?);
        }
        let label_dependent = self.automaton.depends_on_labels_here(q);
        // If one of these labels leaves a state, `q` is decided there.
        let mut deciding = Vec::new();
        for &label in labels {
            let mut answer = self.automaton.step(q, label, self.labels)?;
            if label_dependent && answer != ObligationSet::Decided {
                answer = self.automaton.obligations_here_if(q, label, self.labels)?;
                for &next in self.automaton.set(answer).iter() {
                    let value = self.value(next, labels)?;
                    let leaves = LabelTest::Leaves(vec![label]);
                    parts.push(if all {
                        LabelTest::Any(vec![LabelTest::Not(Box::new(leaves)), value])
                    } else {
                        LabelTest::All(vec![leaves, value])
                    });
                }
            }
            if answer == ObligationSet::Decided {
                deciding.push(label);
            }
        }
        let leaves = LabelTest::Leaves(deciding);
        parts.push(if all { LabelTest::Not(Box::new(leaves)) } else { leaves });
        Ok(if all { LabelTest::All(parts) } else { LabelTest::Any(parts) })
    }
}

/// Converts a run to evidence: each of its positions is a state of its own. If its end depends on
/// the outgoing labels of its last state, the steps that show it are added.
fn evidence(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    automaton: &mut Automaton,
    run: &mu_symbolic::ProductRun,
    verdict: bool,
) -> Result<Evidence, Diagnostic> {
    let mut evaluated = StepCache::new(model);
    let mut states = vec![run.trace.initial.clone()];
    let mut steps = Vec::new();
    let last = run.trace.steps.len();
    for (i, (label, to)) in run.trace.steps.iter().enumerate() {
        let leaving = steps_from(model, &mut evaluated, &states[i])?;
        let Some(taken) = leaving.into_iter().find(|t| t.label == *label && t.state == *to) else {
            return Err(Diagnostic::new(
                Stage::Internal,
                "a step of the symbolic path is not a step of the model",
            ));
        };
        let target = match run.end {
            DecisionKind::Back(back) if i + 1 == last => back,
            _ => i + 1,
        };
        steps.push(EvidenceStep {
            from: narrow::index(i),
            label: *label,
            to: narrow::index(target),
            taken: vec![taken],
        });
        if target == i + 1 {
            states.push(to.clone());
        }
    }
    if let DecisionKind::Test(q) = run.end {
        let leaving = steps_from(model, &mut evaluated, &states[last])?;
        let numbered: Vec<(LabelId, StateId)> =
            leaving.iter().enumerate().map(|(i, t)| (t.label, StateId::new(i))).collect();
        let mut witnesses = Vec::new();
        local_value(automaton, FormulaState::of(q), &numbered, labels, &mut witnesses)?;
        witnesses.sort_unstable();
        witnesses.dedup();
        for (label, i) in witnesses {
            let taken = leaving[i.index()].clone();
            steps.push(EvidenceStep {
                from: narrow::index(last),
                label,
                to: narrow::index(states.len()),
                taken: vec![taken.clone()],
            });
            states.push(taken.state);
        }
    }
    Ok(Evidence { verdict, states, steps, before: Vec::new(), values: Vec::new() })
}

/// Returns all steps from a state.
pub(super) fn steps_from(
    model: &dyn Model,
    evaluated: &mut StepCache,
    from: &[u32],
) -> Result<Vec<TakenStep>, Diagnostic> {
    let mut all = Vec::new();
    for group in 0..model.groups().len() {
        all.extend(steps_of(model, evaluated, narrow::index(group), from)?);
    }
    Ok(all)
}
