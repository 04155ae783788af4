//! Evaluation of a compiled model on executions.
//!
//! A [`Session`] owns the matrices of all nodes and reuses them for all executions. Only the
//! interpreter allocates for each execution. [`Session::start`] reads a skeleton and computes stage
//! 0; [`ModelRun::reads`] reads `rf`, [`ModelRun::coherence`] reads `co`. Each returns whether the
//! axioms that are determined so far hold, so that a front end drops a choice as early as possible.

use std::rc::Rc;

use mu_base::{Diagnostic, Span, Stage, narrow};

use super::CatModel;
use super::ast::{TestKind, TestRole};
use super::interpret::{
    Data, Interpreter, Nodes, by_location, each_order, is_order, transitive_closure,
};
use super::plan::{PlanStep, dependencies, steps};
use super::program::{CatNodeId, CatOp, CatType, Property};
use super::specialise::Special;
use crate::execution::{Execution, NameMeaning, RelationId, SetId, Skeleton};
use crate::relation::{Relation, Set};

/// The reason why an execution is forbidden.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViolatedAxiom {
    /// The axiom's name, or its text if it has none.
    pub axiom: String,
    /// Its position.
    pub span: Span,
    /// The predicate of the axiom.
    pub kind: Option<TestKind>,
    /// For `acyclic` and `irreflexive`: a shortest cycle, each event once. For `empty`: the two
    /// events of a pair, or one event of a set. Empty if the axiom is negated, or if the coherence
    /// order is not one of the model's.
    pub events: Vec<usize>,
    /// For each event, except the last of a pair: the model's name of the relation to the next
    /// event.
    pub edges: Vec<String>,
}

/// The verdict of a model on an execution.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelVerdict {
    /// True if all axioms hold.
    pub allowed: bool,
    /// The first axiom that is violated.
    pub failed: Option<ViolatedAxiom>,
    /// The flags that the execution has, in the order of the model.
    pub flags: Vec<String>,
}

/// The working memory of a model: the matrices of its nodes.
pub struct Session<'m> {
    model: &'m CatModel,
    n: usize,
    sets: Vec<Set>,
    relations: Vec<Relation>,
    values: Vec<Data>,
    scratch: Relation,
    /// The model, folded for the current skeleton.
    pub(super) special: Special,
    /// The value of each event, for `different-values`.
    event_values: Vec<u64>,
}

/// A session on a skeleton.
pub struct ModelRun<'m, 's> {
    session: &'s mut Session<'m>,
    skeleton: &'s Skeleton,
    holds: bool,
    /// Number of stages for which the flags are computed.
    flagged: usize,
    /// The check that failed last.
    failed: Option<u32>,
    /// The flags of all allowed choices of the model, while they are collected.
    collected: Option<Vec<String>>,
}

/// Returns an empty matrix, as a placeholder for one that is moved out.
fn placeholder() -> Relation {
    Relation::empty(0)
}

impl<'m> Session<'m> {
    /// Creates the working memory of a model.
    pub fn new(model: &'m CatModel) -> Self {
        let count = |kind| model.program.nodes.iter().filter(|n| n.kind == kind).count();
        let none = Set::empty(0);
        Self {
            model,
            n: 0,
            sets: vec![none; count(CatType::Set)],
            relations: vec![placeholder(); count(CatType::Relation)],
            values: vec![Data::Empty; count(CatType::Value)],
            scratch: placeholder(),
            special: Special::default(),
            event_values: Vec::new(),
        }
    }
    /// Reads a skeleton with the model's vocabulary, and computes the nodes that depend on it
    /// alone. Cost: that of the model's operations. Nothing is allocated if the previous skeleton
    /// had the same number of events.
    pub fn start<'s>(&'s mut self, skeleton: &'s Skeleton) -> Result<ModelRun<'m, 's>, Diagnostic> {
        let n = skeleton.len();
        if n != self.n || self.scratch.universe() != n {
            self.n = n;
            self.sets.iter_mut().for_each(|s| *s = Set::empty(n));
            self.relations.iter_mut().for_each(|r| *r = Relation::empty(n));
            self.scratch = Relation::empty(n);
        }
        self.values.iter_mut().for_each(|v| *v = Data::Empty);
        self.event_values.clear();
        self.event_values.extend(skeleton.events().iter().map(|e| e.value));
        self.special.reset(self.model);
        let mut run = ModelRun {
            session: self,
            skeleton,
            holds: false,
            flagged: 0,
            failed: None,
            collected: None,
        };
        run.holds = run.steps(0)?;
        if run.holds {
            super::specialise::fold(&mut run)?;
        }
        Ok(run)
    }
    fn at(&self, node_id: CatNodeId) -> usize {
        self.model.index_in_type[self.special.same[node_id.index()].index()] as usize
    }
    fn set(&self, node_id: CatNodeId) -> &Set {
        &self.sets[self.at(node_id)]
    }
    fn relation(&self, node_id: CatNodeId) -> &Relation {
        &self.relations[self.at(node_id)]
    }
    fn value(&self, node_id: CatNodeId) -> &Data {
        &self.values[self.at(node_id)]
    }
}

impl Nodes for Session<'_> {
    fn data_of(&self, node_id: CatNodeId) -> Data {
        match self.model.program.kind(node_id) {
            CatType::Set => Data::Set(Rc::new(self.set(node_id).clone())),
            CatType::Relation => Data::Relation(Rc::new(self.relation(node_id).clone())),
            CatType::Value => self.value(node_id).clone(),
        }
    }
    fn vocabulary_value(&self, name: NameMeaning) -> Data {
        self.model.input_nodes.get(&name).map_or(Data::Empty, |s| self.data_of(*s))
    }
}

impl<'m> ModelRun<'m, '_> {
    pub(super) fn model(&self) -> &'m super::CatModel {
        self.session.model
    }
}

impl ModelRun<'_, '_> {
    /// True if the axioms that depend on the skeleton alone hold.
    pub fn holds(&self) -> bool {
        self.holds
    }
    /// Returns the events.
    pub fn skeleton(&self) -> &Skeleton {
        self.skeleton
    }
    /// Sets the values of all events, which only the function `different-values` reads. Initially
    /// they are those of the skeleton.
    pub fn set_values(&mut self, values: impl IntoIterator<Item = u64>) {
        self.session.event_values.clear();
        self.session.event_values.extend(values);
    }
    /// Returns the flags that executions of this skeleton may have, in addition to those that all
    /// of them have.
    pub fn open_flags(&self) -> impl Iterator<Item = &str> {
        let checks = self.session.model.program.checks.iter().enumerate();
        checks
            .filter(|(i, c)| {
                !matches!(c.role, TestRole::Axiom | TestRole::Assert)
                    && self.session.special.check_stage[*i] > 0
            })
            .map(|(_, c)| c.name.as_str())
    }
    /// Sets `rf`. Returns true if the axioms hold that depend on it but not on `co`. Axioms of the
    /// skeleton are not evaluated again.
    pub fn set_reads_from(&mut self, rf: &Relation) -> Result<bool, Diagnostic> {
        self.flagged = self.flagged.min(1);
        self.give(RelationId::RF, rf);
        self.steps(1)
    }
    /// Sets `co`, after `rf`. Returns true if the axioms that depend on it hold. Axioms of earlier
    /// stages are not evaluated again.
    pub fn set_coherence(&mut self, rf: &Relation, co: &Relation) -> Result<bool, Diagnostic> {
        self.flagged = self.flagged.min(2);
        self.give(RelationId::CO, co);
        let model = self.session.model;
        if let Some(node_id) = model.input_nodes.get(&NameMeaning::Relation(RelationId::FR)) {
            let at = self.session.at(*node_id);
            Execution::from_reads(self.skeleton, rf, co, &mut self.session.relations[at]);
        }
        if let Some(node_id) = model.input_nodes.get(&NameMeaning::Set(SetId::FINAL)) {
            let at = self.session.at(*node_id);
            let writes = self.skeleton.set(SetId::WRITES);
            let set = &mut self.session.sets[at];
            // `co` may order events that are no writes, such as locks.
            set.copy(self.skeleton.finals());
            for w in self.skeleton.finals().iter() {
                if co.successors(w).any(|later| writes.contains(later)) {
                    set.remove(w);
                }
            }
        }
        Ok(self.steps(2)? && self.choose(0, None)?)
    }
    /// Returns true if the axioms hold for a part of `rf` and a part of `co`, which is transitive.
    /// Reads without a source have no pair in `fr`. For [`super::CatModel::lower_bound`]: if this
    /// is false, the model forbids each execution with these pairs.
    pub fn admits(&mut self, rf: &Relation, co: &Relation) -> Result<bool, Diagnostic> {
        self.flagged = self.flagged.min(1);
        if !self.holds {
            return Ok(false);
        }
        self.give(RelationId::RF, rf);
        if !self.steps(1)? {
            return Ok(false);
        }
        self.give(RelationId::CO, co);
        if let Some(node_id) =
            self.session.model.input_nodes.get(&NameMeaning::Relation(RelationId::FR))
        {
            let at = self.session.at(*node_id);
            let fr = &mut self.session.relations[at];
            fr.clear();
            for (w, r) in rf.pairs() {
                co.successors(w).filter(|&later| later != r).for_each(|later| fr.insert(r, later));
            }
        }
        Ok(self.steps(2)? && self.choose(0, None)?)
    }
    /// Returns true if an execution of the skeleton is allowed, by evaluating all stages.
    pub fn allows(&mut self, rf: &Relation, co: &Relation) -> Result<bool, Diagnostic> {
        Ok(self.holds && self.set_reads_from(rf)? && self.set_coherence(rf, co)?)
    }
    /// Returns the verdict on an execution of the skeleton, with the reason and the flags.
    pub fn verdict(&mut self, rf: &Relation, co: &Relation) -> Result<ModelVerdict, Diagnostic> {
        // All stages are evaluated to the end, so that the reason is available.
        if self.allows(rf, co)? {
            return Ok(ModelVerdict { allowed: true, failed: None, flags: self.flags()? });
        }
        self.give(RelationId::RF, rf);
        let all = self.set_coherence(rf, co)?;
        let program = &self.session.model.program;
        for (i, c) in program.checks.iter().enumerate() {
            if !matches!(c.role, TestRole::Axiom | TestRole::Assert) {
                continue;
            }
            let (Property::Test(_, node_id) | Property::CoherenceIn(node_id)) = c.property;
            // A violated choice of the model has no single reason.
            if self.session.special.check_stage[i] > 2 {
                continue;
            }
            self.demand(node_id)?;
            if !self.passes(c.property, c.negated) {
                return Ok(ModelVerdict {
                    allowed: false,
                    failed: Some(self.failure(c)?),
                    flags: Vec::new(),
                });
            }
        }
        debug_assert!(!all, "an execution is forbidden, but all axioms hold");
        // A failure inside a `forall`, or with the only alternatives, was computed last.
        let fixed = &self.session.special.fixed;
        let determined = program.choices.iter().enumerate().all(|(k, c)| c.all || fixed[k]);
        if let Some(i) = self.failed.filter(|_| determined) {
            let failed = Some(self.failure(&program.checks[i as usize])?);
            return Ok(ModelVerdict { allowed: false, failed, flags: Vec::new() });
        }
        let failed = program.choices.first().map(|c| ViolatedAxiom {
            axiom: "no choice of the model satisfies its axioms".to_string(),
            span: c.span,
            kind: None,
            events: Vec::new(),
            edges: Vec::new(),
        });
        Ok(ModelVerdict { allowed: false, failed, flags: Vec::new() })
    }
    /// Returns the flags of an allowed execution, after [`ModelRun::set_coherence`].
    ///
    /// # Errors
    /// Those of the model's functions.
    pub fn flags(&mut self) -> Result<Vec<String>, Diagnostic> {
        let special = &self.session.special;
        if special.fixed.iter().all(|f| *f) || !special.chosen_flags {
            return self.flags_until(usize::MAX);
        }
        // Each allowed choice of the model is an execution with flags of its own.
        self.collected = Some(Vec::new());
        self.choose(0, None)?;
        Ok(self.collected.take().unwrap_or_default())
    }
    /// Returns the flags that depend on the skeleton alone: each of its allowed executions has
    /// them.
    ///
    /// # Errors
    ///
    /// Those of the model's functions.
    pub fn flags_of_skeleton(&mut self) -> Result<Vec<String>, Diagnostic> {
        self.flags_until(0)
    }
    /// Returns the flags of stages up to `last`, without repetition, in the order of the model.
    fn flags_until(&mut self, last: usize) -> Result<Vec<String>, Diagnostic> {
        let model = self.session.model;
        let end = model.plan.flags.len().min(last.saturating_add(1));
        for stage in self.flagged..end {
            for i in 0..self.session.special.flags[stage].len() {
                let step = self.session.special.flags[stage][i];
                if !matches!(step, PlanStep::Check(_)) {
                    self.step(step)?;
                }
            }
        }
        self.flagged = self.flagged.max(end);
        let mut out: Vec<String> = Vec::new();
        for (i, c) in model.program.checks.iter().enumerate() {
            if usize::from(self.session.special.check_stage[i]) > last {
                continue;
            }
            let raised = match c.role {
                TestRole::Flag => self.passes(c.property, c.negated),
                TestRole::UndefinedUnless => !self.passes(c.property, c.negated),
                TestRole::Axiom | TestRole::Assert => continue,
            };
            if raised && !out.contains(&c.name) {
                out.push(c.name.clone());
            }
        }
        Ok(out)
    }
    /// Returns the relations that drawings show, and the named ones that an explanation may use,
    /// with their values for the last execution.
    pub fn shown_relations(&mut self) -> Result<Vec<(String, Relation)>, Diagnostic> {
        let model = self.session.model;
        let mut out = Vec::new();
        for (name, node_id) in &model.show_statements {
            self.demand(*node_id)?;
            out.push((name.clone(), self.session.relation(*node_id).clone()));
        }
        Ok(out)
    }
    /// Returns the value, for the last execution, of the relation that the model defines under a
    /// name; `None` if there is none. For drawings and tests.
    pub fn defined_relation(&mut self, name: &str) -> Result<Option<Relation>, Diagnostic> {
        let model = self.session.model;
        let Some(&node_id) = model.definitions.get(name) else { return Ok(None) };
        self.demand(node_id)?;
        Ok(Some(match model.program.kind(node_id) {
            CatType::Relation => self.session.relation(node_id).clone(),
            CatType::Set => {
                let mut r = Relation::empty(self.session.n);
                r.identity_on(self.session.set(node_id));
                r
            }
            CatType::Value => return Ok(None),
        }))
    }

    fn give(&mut self, id: RelationId, r: &Relation) {
        if let Some(node_id) = self.session.model.input_nodes.get(&NameMeaning::Relation(id)) {
            let at = self.session.at(*node_id);
            self.session.relations[at].copy(r);
        }
    }
    /// Executes the steps of a stage up to the first violated axiom.
    fn steps(&mut self, stage: usize) -> Result<bool, Diagnostic> {
        let model = self.session.model;
        for at in 0..self.session.special.axioms[stage].len() {
            let step = self.session.special.axioms[stage][at];
            if let PlanStep::Check(i) = step {
                let c = &model.program.checks[i as usize];
                if !self.passes(c.property, c.negated) {
                    if c.role == TestRole::Assert {
                        let message =
                            format!("the model does not apply: its assertion `{}` fails", c.name);
                        return Err(Diagnostic::at(Stage::Unsupported, c.span, message));
                    }
                    self.failed = Some(i);
                    return Ok(false);
                }
            } else {
                self.step(step)?;
            }
        }
        Ok(true)
    }
    /// Tries the choices of the model from `k` on, within a `forall` up to its end.
    fn choose(&mut self, k: usize, end: Option<usize>) -> Result<bool, Diagnostic> {
        let model = self.session.model;
        let Some(choice) = model.program.choices.get(k).filter(|_| Some(k) != end) else {
            // An element of a `forall` alone decides nothing.
            if end.is_some() || self.collected.is_none() {
                return Ok(true);
            }
            // Stages from 3 on depend on choices.
            self.flagged = self.flagged.min(3);
            let raised = self.flags_until(usize::MAX)?;
            let all = self.collected.get_or_insert_default();
            raised.into_iter().for_each(|f| {
                if !all.contains(&f) {
                    all.push(f);
                }
            });
            return Ok(false);
        };
        if self.session.special.fixed[k] {
            return Ok(self.steps(3 + k)? && self.choose(k + 1, end)?);
        }
        let at = self.session.at(choice.element);
        let inner = if choice.all { Some(choice.end) } else { end };
        let mut error = None;
        let mut one = |run: &mut Self, element: Data| {
            run.session.values[at] = element;
            let holds = match run.steps(3 + k) {
                Ok(true) => run.choose(k + 1, inner),
                other => other,
            };
            // Stop when the condition holds for a `with`, or when it fails for a `forall`.
            match holds {
                Ok(holds) => holds != choice.all,
                Err(e) => {
                    error = Some(e);
                    true
                }
            }
        };
        let stopped = match self.session.data_of(choice.from) {
            Data::Orders { set, extends, by_location: apart } => {
                let parts =
                    if apart { by_location(self.skeleton, &set) } else { vec![(*set).clone()] };
                let mut order = Relation::empty(self.session.n);
                each_order(&parts, &extends, &mut order, &mut |r| {
                    one(self, Data::Relation(Rc::new(r.clone())))
                })
            }
            other => {
                let interpreter = Interpreter::new(
                    &*self.session,
                    &model.vocabulary,
                    &model.variants,
                    self.skeleton,
                );
                let elements = interpreter.elements(other, choice.span)?;
                elements.into_iter().any(|e| one(self, e))
            }
        };
        match (error, choice.all) {
            (Some(e), _) => Err(e),
            (None, true) => Ok(!stopped && self.choose(choice.end, end)?),
            (None, false) => Ok(stopped),
        }
    }
    /// Computes a node and all nodes that it needs, even if they were computed before.
    fn demand(&mut self, node_id: CatNodeId) -> Result<(), Diagnostic> {
        let program = &self.session.model.program;
        let mut list = Vec::new();
        steps(program, &dependencies(program, [node_id]), |_| true, &mut list);
        for step in list {
            if let PlanStep::Node(s) = step
                && (self.session.special.same[s.index()] != s
                    || self.session.special.empty[s.index()])
            {
                continue;
            }
            self.step(step)?;
        }
        Ok(())
    }
    pub(super) fn step(&mut self, step: PlanStep) -> Result<(), Diagnostic> {
        match step {
            PlanStep::Node(node_id) => self.node(node_id),
            PlanStep::Group(g) => self.group(g as usize),
            PlanStep::Check(_) => Ok(()),
        }
    }
    fn group(&mut self, g: usize) -> Result<(), Diagnostic> {
        let model = self.session.model;
        let group = &model.program.groups[g];
        for &v in &group.variables {
            let at = self.session.at(v);
            match model.program.kind(v) {
                CatType::Set => self.session.sets[at].clear(),
                _ => self.session.relations[at].clear(),
            }
        }
        // A monotone body adds at least one pair per round.
        let most = self.session.n * self.session.n * group.variables.len() + 2;
        for _ in 0..most {
            for i in 0..group.body.len() {
                let node_id = group.body[i];
                if self.session.special.same[node_id.index()] != node_id
                    || self.session.special.empty[node_id.index()]
                {
                    continue;
                }
                match model.program.nodes[node_id.index()].op {
                    CatOp::Variable(..) => {}
                    CatOp::Fixpoint(inner, 0) => {
                        self.group(inner as usize)?;
                        self.node(node_id)?;
                    }
                    _ => self.node(node_id)?,
                }
            }
            let mut changed = false;
            for (&v, &r) in group.variables.iter().zip(&group.results) {
                let (v_at, r_at) = (self.session.at(v), self.session.at(r));
                match model.program.kind(v) {
                    CatType::Set => {
                        changed |= self.session.sets[v_at] != self.session.sets[r_at];
                        let r = self.session.sets[r_at].clone();
                        self.session.sets[v_at].copy(&r);
                    }
                    _ => {
                        changed |= self.session.relations[v_at] != self.session.relations[r_at];
                        if v_at != r_at {
                            let mut out =
                                std::mem::replace(&mut self.session.relations[v_at], placeholder());
                            out.copy(&self.session.relations[r_at]);
                            self.session.relations[v_at] = out;
                        }
                    }
                }
            }
            if !changed {
                return Ok(());
            }
        }
        Err(Diagnostic::at(
            Stage::Data,
            group.span,
            "this `let rec` has no fixed point: its values grow and shrink",
        ))
    }
    fn node(&mut self, node_id: CatNodeId) -> Result<(), Diagnostic> {
        let model = self.session.model;
        match model.program.nodes[node_id.index()].kind {
            CatType::Set => {
                let at = self.session.at(node_id);
                let mut out = std::mem::replace(&mut self.session.sets[at], Set::empty(0));
                let done = self.set_node(node_id, &mut out);
                self.session.sets[at] = out;
                done
            }
            CatType::Relation => {
                let at = self.session.at(node_id);
                let mut out = std::mem::replace(&mut self.session.relations[at], placeholder());
                let done = self.relation_node(node_id, &mut out);
                self.session.relations[at] = out;
                done
            }
            CatType::Value => {
                let data = self.value_node(node_id)?;
                let at = self.session.at(node_id);
                self.session.values[at] = data;
                Ok(())
            }
        }
    }
    fn place(&self, node_id: CatNodeId) -> Span {
        self.session.model.spans.get(&node_id).copied().unwrap_or_default()
    }
    fn only_empty(&self, node_id: CatNodeId, empty: bool) -> Result<(), Diagnostic> {
        if empty {
            return Ok(());
        }
        Err(Diagnostic::at(
            Stage::Unsupported,
            self.place(node_id),
            "this depends on page tables, which executions do not have here",
        ))
    }
    fn set_node(&mut self, node_id: CatNodeId, out: &mut Set) -> Result<(), Diagnostic> {
        let s = &*self.session;
        match s.model.program.nodes[node_id.index()].op {
            // Set from `co` before the steps of its stage.
            CatOp::GivenSet(SetId::FINAL) => {}
            CatOp::GivenSet(id) => out.copy(self.skeleton.set(id)),
            CatOp::Nothing => out.clear(),
            CatOp::Union(a, b) => {
                out.copy(s.set(a));
                out.unite(s.set(b));
            }
            CatOp::Intersection(a, b) => {
                out.copy(s.set(a));
                out.intersect(s.set(b));
            }
            CatOp::Difference(a, b) => {
                out.copy(s.set(a));
                out.subtract(s.set(b));
            }
            CatOp::Complement(a) => {
                out.copy(self.skeleton.set(SetId::ALL));
                out.subtract(s.set(a));
            }
            CatOp::Domain(a) => out.domain_of(s.relation(a)),
            CatOp::Range(a) => out.range_of(s.relation(a)),
            CatOp::Fixpoint(g, i) => {
                out.copy(s.set(s.model.program.groups[g as usize].variables[i as usize]))
            }
            CatOp::AsSet(a) => out.copy(&*s.value(a).clone().into_set(s.n, self.place(node_id))?),
            CatOp::OnlyEmpty(a) => {
                self.only_empty(node_id, s.set(a).is_empty())?;
                out.clear();
            }
            _ => {}
        }
        Ok(())
    }
    fn relation_node(&mut self, node_id: CatNodeId, out: &mut Relation) -> Result<(), Diagnostic> {
        let s = &*self.session;
        match s.model.program.nodes[node_id.index()].op {
            // The choice is set before the steps of its stage.
            CatOp::GivenRelation(RelationId::RF | RelationId::CO | RelationId::FR) => {}
            CatOp::GivenRelation(id) => out.copy(self.skeleton.relation(id)),
            CatOp::Nothing => out.clear(),
            CatOp::Union(a, b) => {
                out.copy(s.relation(a));
                out.unite(s.relation(b));
            }
            CatOp::Intersection(a, b) => {
                out.copy(s.relation(a));
                out.intersect(s.relation(b));
            }
            CatOp::Difference(a, b) => {
                out.copy(s.relation(a));
                out.subtract(s.relation(b));
            }
            CatOp::Complement(a) => {
                out.copy(s.relation(a));
                out.complement();
                let all = self.skeleton.set(SetId::ALL);
                if all.len() < s.n {
                    out.restrict_domain(all);
                    out.restrict_range(all);
                }
            }
            CatOp::Compose(a, b) => out.compose(s.relation(a), s.relation(b)),
            CatOp::Product(a, b) => out.product(s.set(a), s.set(b)),
            CatOp::Identity(a) => out.identity_on(s.set(a)),
            CatOp::From(a, b) => {
                out.copy(s.relation(b));
                out.restrict_domain(s.set(a));
            }
            CatOp::To(a, b) => {
                out.copy(s.relation(a));
                out.restrict_range(s.set(b));
            }
            CatOp::Plus(a) => {
                out.copy(s.relation(a));
                out.close_transitively();
            }
            CatOp::Star(a) => {
                out.copy(s.relation(a));
                out.close_transitively();
                out.close_reflexively();
            }
            CatOp::Optional(a) => {
                out.copy(s.relation(a));
                out.close_reflexively();
            }
            CatOp::Inverse(a) => out.invert(s.relation(a)),
            CatOp::Fixpoint(g, i) => {
                out.copy(s.relation(s.model.program.groups[g as usize].variables[i as usize]))
            }
            CatOp::AsRelation(a) => {
                out.copy(&*s.value(a).clone().into_relation(s.n, self.place(node_id))?)
            }
            CatOp::AsPairs(a) => match s.value(a).clone() {
                Data::Relation(r) => out.copy(&r),
                value => out.identity_on(&*value.into_set(s.n, self.place(node_id))?),
            },
            CatOp::DifferentValues(a) => {
                out.clear();
                let values = &s.event_values;
                for (x, y) in s.relation(a).pairs().filter(|&(x, y)| values[x] != values[y]) {
                    out.insert(x, y);
                }
            }
            CatOp::OnlyEmpty(a) => {
                self.only_empty(node_id, s.relation(a).is_empty())?;
                out.clear();
            }
            _ => {}
        }
        Ok(())
    }
    fn value_node(&self, node_id: CatNodeId) -> Result<Data, Diagnostic> {
        let s = &*self.session;
        Ok(match s.model.program.nodes[node_id.index()].op {
            CatOp::Orders(a, b) | CatOp::Linearisations(a, b) => Data::Orders {
                set: Rc::new(s.set(a).clone()),
                extends: transitive_closure(s.relation(b)),
                by_location: matches!(s.model.program.nodes[node_id.index()].op, CatOp::Orders(..)),
            },
            CatOp::Interpret(i) => {
                let what = &s.model.program.interpreted[i as usize];
                Interpreter::new(s, &s.model.vocabulary, &s.model.variants, self.skeleton)
                    .run(&what.exp, &what.env)?
            }
            _ => s.value(node_id).clone(),
        })
    }
    fn passes(&self, property: Property, negated: bool) -> bool {
        let s = &*self.session;
        let holds = match property {
            Property::Test(TestKind::Acyclic, node_id) => s.relation(node_id).is_acyclic(),
            Property::Test(TestKind::Irreflexive, node_id) => s.relation(node_id).is_irreflexive(),
            Property::Test(TestKind::Empty, node_id)
                if s.model.program.kind(node_id) == CatType::Set =>
            {
                s.set(node_id).is_empty()
            }
            Property::Test(TestKind::Empty, node_id) => s.relation(node_id).is_empty(),
            Property::CoherenceIn(node_id) => {
                let Some(co) = s.model.input_nodes.get(&NameMeaning::Relation(RelationId::CO))
                else {
                    return false;
                };
                let co = s.relation(*co);
                match s.value(node_id) {
                    Data::Orders { set, extends, by_location: true } => {
                        is_order(&by_location(self.skeleton, set), extends, co)
                    }
                    Data::Orders { set, extends, by_location: false } => {
                        is_order(&[(**set).clone()], extends, co)
                    }
                    Data::Many(all) => all.iter().any(|d| {
                        matches!(d, Data::Relation(r) if **r == *co)
                            || matches!(d, Data::Empty) && co.is_empty()
                    }),
                    _ => false,
                }
            }
        };
        holds != negated
    }
    /// Returns the reason why a check fails, from the last computed values.
    fn failure(&mut self, c: &super::program::AxiomCheck) -> Result<ViolatedAxiom, Diagnostic> {
        let mut out = ViolatedAxiom {
            axiom: c.name.clone(),
            span: c.span,
            kind: None,
            events: Vec::new(),
            edges: Vec::new(),
        };
        let Property::Test(kind, node_id) = c.property else { return Ok(out) };
        out.kind = Some(kind);
        if c.negated {
            return Ok(out);
        }
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        if self.session.model.program.kind(node_id) == CatType::Set {
            out.events.extend(self.session.set(node_id).first());
        } else {
            let r = self.session.relation(node_id);
            match kind {
                TestKind::Acyclic => out.events = r.cycle().unwrap_or_default(),
                TestKind::Irreflexive => {
                    out.events.extend((0..r.universe()).find(|&e| r.contains(e, e)))
                }
                TestKind::Empty => {
                    if let Some((a, b)) = r.pairs().next() {
                        out.events = vec![a, b];
                        pairs.push((a, b));
                    }
                }
            }
            if kind != TestKind::Empty {
                pairs = (0..out.events.len())
                    .map(|i| (out.events[i], out.events[(i + 1) % out.events.len()]))
                    .collect();
            }
        }
        if !pairs.is_empty() {
            let path = super::explain::path(self, node_id, &pairs);
            if !path.is_empty() {
                out.events = path.iter().map(|p| p.0).collect();
                out.edges = path.into_iter().map(|p| p.1).collect();
                if kind == TestKind::Empty {
                    out.events.push(pairs[0].1);
                }
            }
        }
        Ok(out)
    }
    /// Evaluates an axiom on which all executions of the skeleton agree.
    pub(super) fn demand_constant(&mut self, check: usize) {
        let c = &self.session.model.program.checks[check];
        if c.role == TestRole::Assert {
            self.session.special.axioms[1].push(PlanStep::Check(narrow::index(check)));
        } else {
            self.holds &= self.passes(c.property, c.negated);
        }
    }
    /// True if the value of a set or relation is empty.
    pub(super) fn is_empty(&self, node_id: CatNodeId) -> bool {
        match self.session.model.program.kind(node_id) {
            CatType::Set => self.session.set(node_id).is_empty(),
            CatType::Relation => self.session.relation(node_id).is_empty(),
            CatType::Value => false,
        }
    }
    /// Makes a set or relation empty.
    pub(super) fn clear(&mut self, node_id: CatNodeId) {
        let at = self.session.at(node_id);
        match self.session.model.program.kind(node_id) {
            CatType::Set => self.session.sets[at].clear(),
            CatType::Relation => self.session.relations[at].clear(),
            CatType::Value => {}
        }
    }
    /// Sets the element of a choice with a single alternative. Returns false if there are others.
    pub(super) fn fix(&mut self, from: CatNodeId, element: CatNodeId) -> bool {
        let only = match self.session.value(from) {
            Data::Many(all) if all.len() == 1 => all[0].clone(),
            _ => return false,
        };
        let at = self.session.at(element);
        self.session.values[at] = only;
        true
    }
    pub(super) fn special_mut(&mut self) -> &mut Special {
        &mut self.session.special
    }
    pub(super) fn special(&self) -> &Special {
        &self.session.special
    }
    pub(super) fn relation_of(&self, node_id: CatNodeId) -> &Relation {
        self.session.relation(node_id)
    }
}
