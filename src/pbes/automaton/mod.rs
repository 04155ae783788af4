//! Dynamic part of the formula automaton: interned formula states, and for each state its cached
//! successor obligations, at the same system state and after a transition labelled `l`.
//!
//! A formula refers to labels only, never to process parameters, so together with any transition
//! system this is an alternating parity automaton (cf. Wilke 2001; for data, the PBES of Groote &
//! Willemse 2005 with the process abstracted to its labels). A state is a node of the normal form
//! with the values of its live data variables. Answers are interned sets of states.
//!
//! Cost: one evaluation or solution of the conditions of modalities for each label and each
//! combination of the values that they read; one evaluation of the targets for each state and
//! pattern of matching modalities (`patterns`); then two hash lookups. Invariant: states are
//! append-only; equal (node, values) have equal numbers.

mod serialize;
mod patterns;
mod quantified;
mod target;

use super::rules::{self, Effect, RuleCondition, Rules};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, LabelId, OpId, VarId};
use mu_base::{Budget, Diagnostic, Stage, id_types, narrow};
use mu_data::engine::{Code, Engine, Problem, Program, Value};
use mu_data::expr::{DataSpec, Expr};
use mu_formula::normal::{NodeId, Normal, NormalNode, normalise};
use mu_formula::typed::TypedFormula;
use mu_process::labels::ActionLabels;
use patterns::Patterns;
use quantified::QuantifiedNames;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use target::{Interner, Target, test};

id_types! {
    /// A formula state.
    pub FormulaState,
}

/// Successor obligations of a formula state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ObligationSet {
    /// A set of states, interned.
    Set(u32),
    /// The formula state is decided: false if it is universal, true if existential.
    Decided,
}

impl ObligationSet {
    /// No obligation: the formula state has the neutral value of its connective, true if it is
    /// universal, false if existential.
    pub const EMPTY: ObligationSet = ObligationSet::Set(0);
}

/// A label, as far as the formula distinguishes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum LabelView {
    /// A label with the action names of a multi-action of the formula.
    Label(LabelId),
    /// Any other label; the formula cannot distinguish these.
    Other,
}

/// A node with the values of its live variables.
type Key = (NodeId, Rc<[Value]>);

/// Value of a formula in the initial state: known, or a conjunction (disjunction) of states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The formula is this constant.
    Constant(bool),
    /// True for a conjunction, and its states.
    States(bool, Vec<FormulaState>),
}

/// A compiled condition.
#[derive(Clone, Debug)]
enum CompiledCondition {
    Never,
    Always,
    Test(Code),
    Solve(Problem),
}

struct CompiledRule {
    /// Index 0 for `When::Always`; by class otherwise. Compiled at first use.
    conditions: Vec<Option<CompiledCondition>>,
    /// Compiled at first use; `None` for `Decide`.
    target: Option<Target>,
    /// True if the target uses an unknown (if not, one solution suffices).
    uses_unknowns: bool,
    /// True if an instance ever matched.
    matched: bool,
}

impl CompiledRule {
    fn new(when: &RuleCondition) -> Self {
        let conditions = match when {
            RuleCondition::Always(_) => vec![None],
            RuleCondition::Label(list) => vec![None; list.len()],
        };
        Self { conditions, target: None, uses_unknowns: false, matched: false }
    }
}

/// Successor obligations of a state, collected from its rules. A data error counts only if no other
/// rule decides.
#[derive(Default)]
struct ObligationSetBuilder {
    out: Vec<FormulaState>,
    error: Option<Diagnostic>,
}

impl ObligationSetBuilder {
    /// Adds the result of a rule. Returns true if it decides.
    fn add(&mut self, decided: Result<bool, Diagnostic>) -> Result<bool, Diagnostic> {
        match decided {
            Err(d) if d.stage == Stage::Data => {
                self.error.get_or_insert(d);
                Ok(false)
            }
            other => other,
        }
    }
}

struct Label {
    class: usize,
    args: Vec<Value>,
}

/// The automaton of one formula. Grows during use; used by one thread at a time.
pub struct Automaton {
    normal: Normal,
    rules: Arc<Rules>,
    data: DataSpec,
    engine: Engine,
    compiled: AHashMap<NodeId, Vec<CompiledRule>>,
    states: Vec<Key>,
    state_ids: AHashMap<Key, FormulaState>,
    sets: Vec<Arc<[FormulaState]>>,
    set_ids: AHashMap<Arc<[FormulaState]>, ObligationSet>,
    labels: Vec<Option<Rc<Label>>>,
    here: Vec<Option<ObligationSet>>,
    here_if: AHashMap<(FormulaState, LabelId), ObligationSet>,
    /// By label, for states without patterns of steps.
    steps: AHashMap<(FormulaState, LabelView), ObligationSet>,
    patterns: Patterns,
    mentions: Option<AHashSet<OpId>>,
    /// The action names, ascending, of each class of labels except the class of all others.
    shapes: Vec<Vec<String>>,
    as_written: bool,
    quantified: QuantifiedNames,
}

/// Rules that an evaluation considers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Here,
    HereIf,
    Step,
}

impl Automaton {
    /// Builds the automaton of a formula: normal form, rules, compiled data.
    pub fn new(formula: &TypedFormula) -> Result<Self, Diagnostic> {
        let mut data = formula.data.clone();
        let normal = normalise(formula, &mut data.signature)?;
        let rules = rules::rules(&normal, &mut data, &formula.actions)?;
        let program = Program::compile(&data)?;
        let engine = Engine::new(program);
        let named = |shape: &[ActId]| {
            let mut names: Vec<String> =
                shape.iter().map(|a| formula.actions[a.index()].name.clone()).collect();
            names.sort_unstable();
            names
        };
        let shapes = rules.classes.iter().skip(1).map(|class| named(&class.shape)).collect();
        let mut automaton = Self {
            normal,
            rules: Arc::new(rules),
            data,
            engine,
            compiled: AHashMap::new(),
            states: Vec::new(),
            state_ids: AHashMap::new(),
            sets: Vec::new(),
            set_ids: AHashMap::new(),
            labels: Vec::new(),
            here: Vec::new(),
            here_if: AHashMap::new(),
            steps: AHashMap::new(),
            patterns: Patterns::default(),
            mentions: super::mentioned_constants::mentions(formula),
            shapes,
            as_written: formula.as_written,
            quantified: QuantifiedNames::of(formula, &formula.data.signature),
        };
        automaton.intern_set(Vec::new());
        Ok(automaton)
    }

    /// Applies the limits of a run: an evaluation beyond a limit ends with an error of stage
    /// `Limit`.
    #[must_use]
    pub fn with_budget(mut self, budget: &Budget) -> Self {
        self.engine = self.engine.with_budget(budget);
        self
    }

    /// Returns the normal form.
    pub fn normal(&self) -> &Normal {
        &self.normal
    }
    /// Returns the number of equations of a literal translation of the formula that no state here
    /// represents: one for a formula that does not begin with a fixed point, because such a
    /// translation adds one.
    pub fn more_equations(&self) -> u64 {
        u64::from(
            self.as_written && !matches!(self.normal.node(self.normal.root), NormalNode::Call(..)),
        )
    }
    /// Returns the rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
    /// Returns the number of states so far.
    pub fn state_count(&self) -> usize {
        self.states.len()
    }
    /// Returns the node of a state.
    pub fn node(&self, q: FormulaState) -> NodeId {
        self.states[q.index()].0
    }
    /// True if a state is the conjunction of its successor obligations; else it is their
    /// disjunction.
    pub fn universal(&self, q: FormulaState) -> bool {
        self.rules.states[&self.node(q)].universal
    }
    /// Returns the rank of a state: that of its fixed-point variable, 0 for other nodes.
    pub fn rank(&self, q: FormulaState) -> u32 {
        match self.normal.node(self.node(q)) {
            NormalNode::Head(fix) => self.normal.fix(*fix).rank,
            _ => 0,
        }
    }
    /// Returns the members of a set (none if it is decided).
    pub fn set(&self, set: ObligationSet) -> Arc<[FormulaState]> {
        match set {
            ObligationSet::Set(id) => self.sets[id as usize].clone(),
            ObligationSet::Decided => Arc::from([]),
        }
    }
    /// Interns a set of states.
    pub fn intern_set(&mut self, mut states: Vec<FormulaState>) -> ObligationSet {
        states.sort_unstable();
        states.dedup();
        let states: Arc<[FormulaState]> = states.into();
        if let Some(&id) = self.set_ids.get(&states) {
            return id;
        }
        let id = ObligationSet::Set(narrow::index(self.sets.len()));
        self.sets.push(states.clone());
        self.set_ids.insert(states, id);
        id
    }
    /// True if a state has rules with instances at the same system state that depend on the
    /// outgoing labels.
    pub fn depends_on_labels_here(&self, q: FormulaState) -> bool {
        let rules = &self.rules.states[&self.node(q)].rules;
        rules
            .iter()
            .any(|r| matches!((&r.when, r.effect), (RuleCondition::Label(_), Effect::Here(_))))
    }
    /// True if the successor obligations of this state depend on labels.
    pub fn follows_labels(&self, q: FormulaState) -> bool {
        self.rules.states[&self.node(q)]
            .rules
            .iter()
            .any(|r| matches!(r.when, RuleCondition::Label(_)))
    }
    /// Returns the text of a state for messages: the variable or the kind of node, with the values
    /// of its live variables.
    pub fn state_text(&mut self, q: FormulaState, show: &dyn Fn(&Expr) -> String) -> String {
        let (node, values) = self.states[q.index()].clone();
        let mut text = match self.normal.node(node) {
            NormalNode::Head(fix) => self.normal.fix(*fix).name.clone(),
            NormalNode::Must(..) => "[..]".into(),
            NormalNode::May(..) => "<..>".into(),
            NormalNode::All(_) => "&&".into(),
            NormalNode::Any(_) => "||".into(),
            NormalNode::Forall(..) => "forall".into(),
            NormalNode::Exists(..) => "exists".into(),
            _ => "val".into(),
        };
        if !values.is_empty() {
            let values: Vec<String> =
                values.iter().map(|v| show(&self.engine.to_expr(v))).collect();
            text.push_str(&format!("({})", values.join(", ")));
        }
        text
    }

    /// True if the answers are known to be symmetric under a permutation of constants.
    pub fn ignores(&self, map: &[(OpId, OpId)]) -> bool {
        self.mentions
            .as_ref()
            .is_some_and(|m| map.iter().all(|(from, to)| !m.contains(from) && !m.contains(to)))
    }

    /// Returns the image of a state under a permutation of constants: the same node with the images
    /// of the values; `None` if it is unknown.
    pub fn image(&mut self, q: FormulaState, map: &[(OpId, OpId)]) -> Option<FormulaState> {
        let (node, values) = self.states[q.index()].clone();
        let images: Vec<Value> =
            values.iter().map(|v| self.engine.image(v, map)).collect::<Option<_>>()?;
        let Self { states, state_ids, .. } = self;
        Some(Interner { states, state_ids }.number((node, images.into())))
    }

    /// Returns the value of the formula in the initial state.
    pub fn start(&mut self) -> Result<Start, Diagnostic> {
        let root = self.normal.root;
        let all = rules::universal(&self.normal, root);
        let target = self.compile_target(root, all, &[])?;
        let mut out = Vec::new();
        Ok(if self.run_target(&target, all, &[], &mut out)? {
            Start::Constant(!all)
        } else if out.is_empty() {
            Start::Constant(all)
        } else {
            out.sort_unstable();
            out.dedup();
            Start::States(all, out)
        })
    }

    /// Returns the obligations that `q` implies at the same system state, independently of its
    /// labels.
    pub fn obligations_here(&mut self, q: FormulaState) -> Result<ObligationSet, Diagnostic> {
        if let Some(Some(answer)) = self.here.get(q.index()) {
            return Ok(*answer);
        }
        let answer = self.evaluate(q, Phase::Here, None)?;
        if self.here.len() <= q.index() {
            self.here.resize(q.index() + 1, None);
        }
        self.here[q.index()] = Some(answer);
        Ok(answer)
    }

    /// Returns the obligations that `q` implies at a system state with this outgoing label.
    pub fn obligations_here_if(
        &mut self,
        q: FormulaState,
        label: LabelId,
        labels: &dyn ActionLabels,
    ) -> Result<ObligationSet, Diagnostic> {
        if let Some(&answer) = self.here_if.get(&(q, label)) {
            return Ok(answer);
        }
        let l = self.label(label, labels)?;
        let answer = self.evaluate(q, Phase::HereIf, Some(&l))?;
        self.here_if.insert((q, label), answer);
        Ok(answer)
    }

    /// Returns the obligations of `q` at the target of a transition with this label.
    pub fn step(
        &mut self,
        q: FormulaState,
        label: LabelId,
        labels: &dyn ActionLabels,
    ) -> Result<ObligationSet, Diagnostic> {
        let l = self.label(label, labels)?;
        self.step_seen(q, if l.class == 0 { LabelView::Other } else { LabelView::Label(label) }, &l)
    }

    /// Returns the obligations of `q` after a label with action names that occur in no multi-action
    /// of the formula.
    pub fn step_other(&mut self, q: FormulaState) -> Result<ObligationSet, Diagnostic> {
        self.step_seen(q, LabelView::Other, &Label { class: 0, args: Vec::new() })
    }

    /// True if some multi-action of the formula has these ascending action names.
    pub fn has_names(&self, names: &[String]) -> bool {
        self.shapes.iter().any(|shape| shape == names)
    }

    fn step_seen(
        &mut self,
        q: FormulaState,
        name: LabelView,
        l: &Label,
    ) -> Result<ObligationSet, Diagnostic> {
        let Some(pattern) = self.pattern(q, name, l)? else {
            if let Some(&answer) = self.steps.get(&(q, name)) {
                return Ok(answer);
            }
            let answer = self.evaluate(q, Phase::Step, Some(l))?;
            self.steps.insert((q, name), answer);
            return Ok(answer);
        };
        if let Some(answer) = self.patterns.answer(q, pattern) {
            return Ok(answer);
        }
        let answer = self.follow(q, pattern)?;
        self.patterns.remember(q, pattern, answer);
        Ok(answer)
    }

    /// Computes [`Automaton::step`] without caching, for callers that need each answer once.
    pub fn step_once(
        &mut self,
        q: FormulaState,
        label: LabelId,
        labels: &dyn ActionLabels,
    ) -> Result<ObligationSet, Diagnostic> {
        let l = self.label(label, labels)?;
        let name = if l.class == 0 { LabelView::Other } else { LabelView::Label(label) };
        match self.pattern(q, name, &l)? {
            Some(pattern) => self.follow(q, pattern),
            None => self.evaluate(q, Phase::Step, Some(&l)),
        }
    }

    /// True if a multi-action of the formula has the label's action names; the formula cannot
    /// distinguish the other labels.
    pub fn names(&mut self, label: LabelId, labels: &dyn ActionLabels) -> Result<bool, Diagnostic> {
        Ok(self.label(label, labels)?.class != 0)
    }

    /// Returns the positions of evaluated modalities `[a]f` that no label matched, so that `f` was
    /// never tested. Excluded are `[a]false`, which is meant to match nothing, `<a>f`, which is
    /// false without a matching label, and modalities with an `f` that was tested elsewhere, as for
    /// an `R*` that is never iterated.
    pub fn unmatched_modalities(&self) -> Vec<mu_base::Span> {
        let mut modalities: AHashMap<(mu_base::Span, NodeId), bool> = AHashMap::new();
        for (node, rules) in self.rules.states.iter().filter(|state| state.1.universal) {
            let Some(compiled) = self.compiled.get(node) else { continue };
            for (rule, run) in rules.rules.iter().zip(compiled) {
                if let Some(modality) = rule.modality {
                    *modalities.entry((rule.span, modality)).or_default() |= run.matched;
                }
            }
        }
        let mut out: Vec<_> = modalities
            .into_iter()
            .filter(|s| !s.1 && !self.was_evaluated(s.0.1))
            .map(|s| s.0.0)
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    /// True if a node, or every part of a conjunction, was evaluated at some system state.
    fn was_evaluated(&self, node: NodeId) -> bool {
        match self.normal.node(node) {
            NormalNode::Call(fix, _) => self.compiled.contains_key(&self.normal.fix(*fix).head),
            NormalNode::All(parts) => parts.iter().all(|n| self.was_evaluated(*n)),
            _ => self.compiled.contains_key(&node),
        }
    }

    fn label(
        &mut self,
        label: LabelId,
        labels: &dyn ActionLabels,
    ) -> Result<Rc<Label>, Diagnostic> {
        if let Some(Some(l)) = self.labels.get(label.index()) {
            return Ok(l.clone());
        }
        let multi = labels.multi_action(label);
        let shape: Vec<_> = multi.iter().map(|a| a.0).collect();
        let class = self.rules.class(&shape);
        let mut args = Vec::new();
        if class != rules::OTHER_CLASS {
            for e in multi.iter().flat_map(|a| &a.1) {
                args.push(self.engine.from_expr(e)?);
            }
        }
        if self.labels.len() <= label.index() {
            self.labels.resize_with(label.index() + 1, || None);
        }
        let l = Rc::new(Label { class, args });
        self.labels[label.index()] = Some(l.clone());
        Ok(l)
    }

    fn evaluate(
        &mut self,
        q: FormulaState,
        phase: Phase,
        label: Option<&Label>,
    ) -> Result<ObligationSet, Diagnostic> {
        let (node, values) = self.states[q.index()].clone();
        self.with_rules(node, |automaton, rules, compiled| {
            let all = rules.universal;
            let mut sum = ObligationSetBuilder::default();
            for (rule, run) in rules.rules.iter().zip(compiled) {
                match (&rule.when, rule.effect, phase) {
                    (RuleCondition::Always(_), _, Phase::Here)
                    | (RuleCondition::Label(_), Effect::Step(_), Phase::Step)
                    | (RuleCondition::Label(_), Effect::Here(_), Phase::HereIf) => {}
                    _ => continue,
                }
                let out = &mut sum.out;
                let decided = automaton.each_match(
                    node,
                    &values,
                    all,
                    rule,
                    run,
                    label,
                    &mut |engine, mut interner, target, env| {
                        target.map_or(Ok(true), |t| interner.run(engine, t, all, env, out))
                    },
                );
                if sum.add(decided.map_err(|d| automaton.explain(d, rule)))? {
                    return Ok(ObligationSet::Decided);
                }
            }
            automaton.intern_sum(sum)
        })
    }

    /// Calls `act` with the rules of a node and their compiled form.
    fn with_rules<T>(
        &mut self,
        node: NodeId,
        act: impl FnOnce(&mut Self, &rules::StateRules, &mut [CompiledRule]) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let all_rules = self.rules.clone();
        let state_rules = &all_rules.states[&node];
        let mut compiled = self.compiled.remove(&node).unwrap_or_else(|| {
            state_rules.rules.iter().map(|rule| CompiledRule::new(&rule.when)).collect()
        });
        let result = act(self, state_rules, &mut compiled);
        self.compiled.insert(node, compiled);
        result
    }

    fn intern_sum(&mut self, sum: ObligationSetBuilder) -> Result<ObligationSet, Diagnostic> {
        match sum.error {
            Some(d) => Err(d),
            None => Ok(self.intern_set(sum.out)),
        }
    }

    /// Calls `each` for each matching instance of a rule, with its target and environment, until it
    /// returns true. Returns true in this case. A target that uses no unknown gets one instance.
    #[allow(clippy::too_many_arguments)]
    fn each_match(
        &mut self,
        node: NodeId,
        values: &[Value],
        all: bool,
        rule: &rules::Rule,
        run: &mut CompiledRule,
        label: Option<&Label>,
        each: &mut dyn FnMut(
            &mut Engine,
            Interner,
            Option<&Target>,
            &[Value],
        ) -> Result<bool, Diagnostic>,
    ) -> Result<bool, Diagnostic> {
        let class = label.map_or(rules::OTHER_CLASS, |l| l.class);
        let live = self.normal.live(node).to_vec();
        if run.conditions[class].is_none() {
            run.conditions[class] = Some(self.compile_condition(rule, class, &live)?);
        }
        if run.target.is_none()
            && let Effect::Here(n) | Effect::Step(n) = rule.effect
        {
            run.uses_unknowns = rule.unknowns.iter().any(|v| self.normal.live(n).contains(v));
            let unknowns: &[VarId] = if run.uses_unknowns { &rule.unknowns } else { &[] };
            let layout: Vec<VarId> = live.iter().chain(unknowns).copied().collect();
            run.target = Some(self.compile_target(n, all, &layout)?);
        }
        let CompiledRule { conditions, target, uses_unknowns, matched } = run;
        let target = target.as_ref();
        let Self { engine, states, state_ids, .. } = self;
        let environment = || {
            values.iter().chain(label.iter().flat_map(|l| &l.args)).cloned().collect::<Vec<Value>>()
        };
        match &conditions[class] {
            None | Some(CompiledCondition::Never) => Ok(false),
            Some(condition @ (CompiledCondition::Always | CompiledCondition::Test(_))) => {
                if let CompiledCondition::Test(code) = condition
                    && !test(engine, code, &environment())?
                {
                    return Ok(false);
                }
                *matched = true;
                each(engine, Interner { states, state_ids }, target, values)
            }
            Some(CompiledCondition::Solve(problem)) => {
                let mut stopped = false;
                engine.solve(
                    problem,
                    &environment(),
                    &mut |engine: &mut Engine, solution: &[Value]| {
                        *matched = true;
                        let with: &[Value] = if *uses_unknowns { solution } else { &[] };
                        let full: Vec<Value> = values.iter().chain(with).cloned().collect();
                        stopped = each(engine, Interner { states, state_ids }, target, &full)?;
                        Ok(if stopped || !*uses_unknowns {
                            ControlFlow::Break(())
                        } else {
                            ControlFlow::Continue(())
                        })
                    },
                )?;
                Ok(stopped)
            }
        }
    }

    fn explain(&self, diagnostic: Diagnostic, rule: &rules::Rule) -> Diagnostic {
        if diagnostic.stage == Stage::Data {
            diagnostic.within(rule.span, "for this part of the formula")
        } else {
            diagnostic.or_span(rule.span)
        }
    }

    fn compile_condition(
        &mut self,
        rule: &rules::Rule,
        class: usize,
        live: &[VarId],
    ) -> Result<CompiledCondition, Diagnostic> {
        let expr = match &rule.when {
            RuleCondition::Always(None) => None,
            RuleCondition::Always(Some(e)) => Some(e),
            RuleCondition::Label(list) => match &list[class] {
                None => return Ok(CompiledCondition::Never),
                Some(e) => Some(e),
            },
        };
        let mut layout = live.to_vec();
        if matches!(rule.when, RuleCondition::Label(_)) {
            layout.extend(&self.rules.classes[class].args);
        }
        if rule.unknowns.is_empty() {
            return Ok(match expr {
                None => CompiledCondition::Always,
                Some(e) => CompiledCondition::Test(self.engine.code(e, &layout)?),
            });
        }
        let always;
        let expr = match expr {
            Some(e) => e,
            None => {
                always = self.rules.always.clone();
                &always
            }
        };
        Ok(CompiledCondition::Solve(
            self.engine.problem(&rule.unknowns, expr, &layout)?.with_binder("a quantifier"),
        ))
    }
}
