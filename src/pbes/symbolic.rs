//! Conjunctive (dually disjunctive) formulas by symbolic search: reachability of a decision in the product of model and formula, over sets.
//!
//! Input: model, labels, formula. Output: verdict, the number of product states, a shortest path if a decision is reachable. The product is a
//! [`Model`]: the slots of the model and one more, the formula state; each group reads and writes that slot too, so the symbolic
//! engine needs to know nothing of formulas. A product state is a pair of system state and *one* obligation; "each obligation of the
//! conjunction" is a step for each. The formula's slot stands last, so that groups keep their tops and saturation its locality.
//!
//! Not for every formula: each automaton state must be of the formula's own connective and its recursion of the matching sign (safety, or
//! dually reachability); others are refused by name of the explicit engine.
//! Cost: (short vectors of groups) x (formula states met with them) look-ups, and the symbolic search.
//! Invariant: numbers of formula states belong to one worker; a search has one worker.

use super::automaton::{Automaton, Demand, FormulaState, Start};
use super::check::Verdict;
use super::product::{Kind, shape};
use crate::base::ids::LabelId;
use crate::base::{Budget, Diagnostic, Stage, Stop};
use crate::formula::typed::TypedFormula;
use crate::model::{Group, Model, Slot, SlotInfo, Steps, Worker};
use crate::process::linear::ActionLabels;
use crate::symbolic::{self, Goal, Order, Trace};
use ahash::{AHashMap, AHashSet};
use num_bigint::BigUint;

/// The answer of a symbolic check.
#[derive(Clone, Debug)]
pub struct SymbolicAnswer {
    /// The verdict.
    pub verdict: Verdict,
    /// What the search found and cost; none if the formula is a constant. Its states are those of the product.
    pub outcome: Option<symbolic::Outcome>,
    /// Path of the model (labels and states) that decides the formula, if one does.
    pub path: Option<Trace>,
}

/// Marks the label of a step that decides the formula.
const DECIDED: u32 = 1 << 31;
/// Value of the formula slot before the first obligation is chosen, and after the decision.
const START: u32 = 0;

/// Checks a formula by symbolic search. The order of `options`, if fixed, is one of the model's slots.
pub fn check_symbolically(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    options: &symbolic::Options,
    budget: &Budget,
) -> Result<SymbolicAnswer, Diagnostic> {
    let constant = |value| SymbolicAnswer { verdict: if value { Verdict::True } else { Verdict::False }, outcome: None, path: None };
    let mut automaton = Automaton::new(formula)?;
    let (all, roots) = match automaton.start()? {
        Start::Constant(value) => return Ok(constant(value)),
        Start::States(all, roots) => (all, roots),
    };
    let fits = |all| shape(&automaton, &roots, all).filter(|s| s.hostile.is_empty() && s.kinds.values().all(|k| *k == Kind::Flow));
    let all = match (fits(all), roots.len()) {
        (Some(shape), _) => shape.universal,
        (None, 1) if fits(!all).is_some() => !all,
        _ => {
            let message = "the symbolic engine checks formulas of one connective only, such as safety properties";
            return Err(Diagnostic::new(Stage::Unsupported, message).note("the explicit engine checks this formula"));
        }
    };
    let product = SymbolicProduct::new(model, labels, formula);
    if product.roots(&mut automaton)?.is_none() {
        return Ok(constant(!all));
    }
    let mut options = options.clone();
    let mut order = options.order.of(model);
    order.push(model.slots().len() as Slot);
    options.order = Order::Fixed(order);
    (options.transitions, options.deadlocks) = (false, false);
    let goal = |label: LabelId| label.0 & DECIDED != 0;
    let (outcome, trace) = symbolic::find(&product, &Goal::Label(&goal), &options, budget)?;
    let verdict = match (&trace, &outcome.stop) {
        (Some(_), _) => !all,
        (None, Stop::Complete) => all,
        (None, stop) => return Ok(SymbolicAnswer { verdict: Verdict::Unknown(stop.clone()), outcome: Some(outcome), path: None }),
    };
    let path = trace.map(|trace| product.path_of(trace));
    Ok(SymbolicAnswer { path, ..SymbolicAnswer { outcome: Some(outcome), ..constant(verdict) } })
}

impl SymbolicAnswer {
    /// Number of pairs of system state and obligation found.
    pub fn equations(&self) -> BigUint {
        self.outcome.as_ref().map_or_else(BigUint::default, |o| o.states.clone())
    }
}

/// A model beside a formula.
struct SymbolicProduct<'a> {
    model: &'a dyn Model,
    labels: &'a dyn ActionLabels,
    formula: &'a TypedFormula,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
}

impl<'a> SymbolicProduct<'a> {
    fn new(model: &'a dyn Model, labels: &'a dyn ActionLabels, formula: &'a TypedFormula) -> Self {
        let last = model.slots().len() as Slot;
        let mut slots = model.slots().to_vec();
        let component = slots.iter().map(|s| s.component + 1).max().unwrap_or(0);
        slots.push(SlotInfo { name: "formula".into(), component, control: true });
        let mut groups = model.groups().to_vec();
        for g in &mut groups {
            g.reads.push(last);
            g.writes.push(last);
            (g.tau, g.confluent) = (false, false);
        }
        groups.push(Group {
            name: "start".into(),
            requires: vec![(last, START)],
            reads: Vec::new(),
            writes: vec![last],
            hidden: Vec::new(),
            tau: true,
            confluent: false,
        });
        Self { model, labels, formula, slots, groups }
    }

    /// The obligations at the start; none if they are decided there.
    fn roots(&self, automaton: &mut Automaton) -> Result<Option<Vec<FormulaState>>, Diagnostic> {
        match automaton.start()? {
            Start::Constant(_) => Ok(None),
            Start::States(_, roots) => closure(automaton, roots),
        }
    }

    /// The model's part of a path in the product: without its first step, the choice of an obligation, and without formula states.
    fn path_of(&self, mut trace: Trace) -> Trace {
        let width = self.model.slots().len();
        if !trace.steps.is_empty() {
            trace.steps.remove(0);
        }
        trace.initial.truncate(width);
        for (label, to) in &mut trace.steps {
            to.truncate(width);
            label.0 &= !DECIDED;
        }
        trace
    }
}

/// The states of a demand with all that they demand at the same system state; none if that decides one.
fn closure(automaton: &mut Automaton, mut open: Vec<FormulaState>) -> Result<Option<Vec<FormulaState>>, Diagnostic> {
    let mut seen = AHashSet::new();
    let mut flow = Vec::new();
    while let Some(q) = open.pop() {
        if seen.insert(q) {
            let here = automaton.here(q)?;
            if here == Demand::DECIDED {
                return Ok(None);
            }
            open.extend(automaton.set(here).iter());
            flow.push(q);
        }
    }
    flow.sort_unstable();
    Ok(Some(flow))
}

impl Model for SymbolicProduct<'_> {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        let mut initial = self.model.initial();
        initial.push(START);
        initial
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(ProductWorker { product: self, model: self.model.worker(), automaton: None, base: AHashMap::new(), next: AHashMap::new() })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.model.label_text(LabelId(label.0 & !DECIDED))
    }
    fn label_count(&self) -> usize {
        self.model.label_count()
    }
    fn value_text(&self, slot: Slot, value: u32) -> String {
        if (slot as usize) < self.model.slots().len() { self.model.value_text(slot, value) } else { value.to_string() }
    }
}

struct ProductWorker<'a> {
    product: &'a SymbolicProduct<'a>,
    model: Box<dyn Worker + 'a>,
    automaton: Option<Automaton>,
    /// Steps of the model's groups.
    base: AHashMap<(usize, Vec<u32>), Steps>,
    /// What a formula state demands after a label, closed; none if decided.
    next: AHashMap<(u32, LabelId), Option<Vec<FormulaState>>>,
}

impl Worker for ProductWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        if self.automaton.is_none() {
            self.automaton = Some(Automaton::new(self.product.formula)?);
        }
        let Some(automaton) = &mut self.automaton else { return Ok(()) };
        if group == self.product.model.groups().len() {
            for q in self.product.roots(automaton)?.unwrap_or_default() {
                out.labels.push(LabelId::TAU);
                out.values.push(q.0 + 1);
            }
            return Ok(());
        }
        let Some((&formula, reads)) = reads.split_last() else { return Ok(()) };
        if formula == START {
            return Ok(());
        }
        let key = (group, reads.to_vec());
        if !self.base.contains_key(&key) {
            let mut steps = Steps::default();
            self.model.steps(group, reads, &mut steps)?;
            self.base.insert(key.clone(), steps);
        }
        let steps = &self.base[&key];
        let width = self.product.model.groups()[group].writes.len();
        for (i, &label) in steps.labels.iter().enumerate() {
            let q = FormulaState(formula - 1);
            if !self.next.contains_key(&(formula, label)) {
                let demand = automaton.step(q, label, self.product.labels)?;
                let next = if demand == Demand::DECIDED {
                    None
                } else {
                    let open = automaton.set(demand).to_vec();
                    closure(automaton, open)?
                };
                self.next.insert((formula, label), next);
            }
            let values = &steps.values[i * width..(i + 1) * width];
            let mut emit = |label, q| {
                out.labels.push(label);
                out.values.extend_from_slice(values);
                out.values.push(q);
            };
            match &self.next[&(formula, label)] {
                None => emit(LabelId(label.0 | DECIDED), START),
                Some(states) => states.iter().for_each(|q| emit(label, q.0 + 1)),
            }
        }
        Ok(())
    }
}
