//! Running half of the formula automaton: interned formula states and memoised answers to "what does state `q` demand here" and "what
//! does it demand beyond a transition labelled `l`".
//!
//! A formula sees labels only, never process parameters, so together with any transition system this is an alternating parity automaton
//! (cf. Wilke 2001; for data, the PBES of Groote & Willemse 2005 with the process abstracted to its labels). A state is a node of the
//! normal form with the values of its live data variables. Answers are interned sets of states.
//!
//! Cost: one evaluation or solution of data conditions for each (state, label) met; then a hash lookup.
//! Invariant: states are append-only; equal (node, values) have equal numbers.

use super::rules::{self, Effect, Rules, When};
use crate::base::ids::{FixId, LabelId, OpId, VarId};
use crate::base::{Budget, Diagnostic, Stage};
use crate::data::engine::{Code, Engine, Problem, Program, Value};
use crate::data::expr::Expr;
use crate::formula::normal::{Node, NodeId, Normal, normalise};
use crate::formula::typed::TypedFormula;
use crate::process::linear::ActionLabels;
use ahash::{AHashMap, AHashSet};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// A formula state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FormulaState(pub u32);

/// An interned demand: a set of states.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Demand(pub u32);

impl Demand {
    /// Demands nothing: neutral for the owner's connective.
    pub const NOTHING: Demand = Demand(0);
    /// Decides the owner: false if it is universal, true if existential.
    pub const DECIDED: Demand = Demand(u32::MAX);
}

/// A node with the values of its live variables.
type Key = (NodeId, Rc<[Value]>);

/// A formula's value at the start: known, or the conjunction (disjunction) of states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// The formula is this constant.
    Constant(bool),
    /// Its states and whether they are meant as a conjunction.
    States(bool, Vec<FormulaState>),
}

/// Where the value of a live variable of a target comes from.
#[derive(Clone, Debug)]
enum Source {
    /// Position in the environment.
    Copy(usize),
    /// A term over the environment.
    Term(Code),
}

/// A target, compiled for an environment (live variables of the owner, then the rule's unknowns).
#[derive(Clone, Debug)]
enum Target {
    Const(bool),
    Test(Code),
    /// Operands are taken apart if the owner has the same connective; else tests are evaluated and what remains, if more than one, is
    /// the state of the node itself.
    Junction {
        all: bool,
        tests: Vec<Code>,
        rest: Vec<Target>,
        whole: Option<(NodeId, Vec<Source>)>,
    },
    State(NodeId, Vec<Source>),
}

/// A condition, compiled.
#[derive(Clone, Debug)]
enum Condition {
    Never,
    Always,
    Test(Code),
    Solve(Problem),
}

struct CompiledRule {
    /// Index 0 for `When::Always`; by class otherwise. Compiled at first use.
    conditions: Vec<Option<Condition>>,
    /// Compiled at first use; `None` for `Decide`.
    target: Option<Target>,
    /// Whether the target uses an unknown (if not, one solution suffices).
    uses_unknowns: bool,
    /// Whether an instance was ever met.
    met: bool,
}

struct Label {
    class: usize,
    args: Vec<Value>,
}

/// The automaton of one formula. Grows while it is used; belongs to one thread at a time.
pub struct Automaton {
    normal: Normal,
    rules: Arc<Rules>,
    engine: Engine,
    compiled: AHashMap<NodeId, Vec<CompiledRule>>,
    states: Vec<Key>,
    state_ids: AHashMap<Key, FormulaState>,
    sets: Vec<Arc<[FormulaState]>>,
    set_ids: AHashMap<Arc<[FormulaState]>, Demand>,
    labels: Vec<Option<Rc<Label>>>,
    here: Vec<Option<Demand>>,
    here_if: AHashMap<(FormulaState, LabelId), Demand>,
    steps: AHashMap<(FormulaState, LabelId), Demand>,
    mentions: Option<AHashSet<OpId>>,
}

/// Which rules an evaluation looks at.
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
        let mut automaton = Self {
            normal,
            rules: Arc::new(rules),
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
            mentions: super::mentions::mentions(formula),
        };
        automaton.intern_set(Vec::new());
        Ok(automaton)
    }

    /// The same under the limits of a run: evaluations end with an error of stage `Limit` when one is met.
    #[must_use]
    pub fn limited(mut self, budget: &Budget) -> Self {
        self.engine = self.engine.limited(budget);
        self
    }

    /// The normal form.
    pub fn normal(&self) -> &Normal {
        &self.normal
    }
    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }
    /// Number of states so far.
    pub fn state_count(&self) -> usize {
        self.states.len()
    }
    /// The node of a state.
    pub fn node(&self, q: FormulaState) -> NodeId {
        self.states[q.0 as usize].0
    }
    /// Whether a state is a conjunction of its demands.
    pub fn universal(&self, q: FormulaState) -> bool {
        self.rules.states[&self.node(q)].universal
    }
    /// Rank of a state: that of its fixed-point variable, 0 for other nodes.
    pub fn rank(&self, q: FormulaState) -> u32 {
        match self.normal.node(self.node(q)) {
            Node::Head(fix) => self.normal.fix(*fix).rank,
            _ => 0,
        }
    }
    /// The states of a demand (none for `DECIDED`).
    pub fn set(&self, demand: Demand) -> Arc<[FormulaState]> {
        if demand == Demand::DECIDED { Arc::from([]) } else { self.sets[demand.0 as usize].clone() }
    }
    /// Interns a set of states.
    pub fn intern_set(&mut self, mut states: Vec<FormulaState>) -> Demand {
        states.sort_unstable();
        states.dedup();
        let states: Arc<[FormulaState]> = states.into();
        if let Some(&id) = self.set_ids.get(&states) {
            return id;
        }
        let id = Demand(self.sets.len() as u32);
        self.sets.push(states.clone());
        self.set_ids.insert(states, id);
        id
    }
    /// Whether a state has rules whose instances at the same system state are drawn from the outgoing labels.
    pub fn asks_labels(&self, q: FormulaState) -> bool {
        let rules = &self.rules.states[&self.node(q)].rules;
        rules.iter().any(|r| matches!((&r.when, r.effect), (When::Label(_), Effect::Here(_))))
    }
    /// Text of a state, for messages: the variable or the kind of node, with the values of its live variables.
    pub fn state_text(&mut self, q: FormulaState, show: &dyn Fn(&Expr) -> String) -> String {
        let (node, values) = self.states[q.0 as usize].clone();
        let mut text = match self.normal.node(node) {
            Node::Head(fix) => self.normal.fix(*fix).name.clone(),
            Node::Must(..) => "[..]".into(),
            Node::May(..) => "<..>".into(),
            Node::All(_) => "&&".into(),
            Node::Any(_) => "||".into(),
            Node::Forall(..) => "forall".into(),
            Node::Exists(..) => "exists".into(),
            _ => "val".into(),
        };
        if !values.is_empty() {
            let values: Vec<String> = values.iter().map(|v| show(&self.engine.to_expr(v))).collect();
            text.push_str(&format!("({})", values.join(", ")));
        }
        text
    }

    /// Whether the answers are known to be symmetric under a permutation of constants: those of the image are the images of those.
    pub fn ignores(&self, map: &[(OpId, OpId)]) -> bool {
        self.mentions.as_ref().is_some_and(|m| map.iter().all(|(from, to)| !m.contains(from) && !m.contains(to)))
    }

    /// What a permutation of constants makes of a state: the same node, with the images of the values; none if that is not known.
    pub fn image(&mut self, q: FormulaState, map: &[(OpId, OpId)]) -> Option<FormulaState> {
        let (node, values) = self.states[q.0 as usize].clone();
        let images: Vec<Value> = values.iter().map(|v| self.engine.image(v, map)).collect::<Option<_>>()?;
        let Self { states, state_ids, .. } = self;
        Some(Interner { states, state_ids }.number((node, images.into())))
    }

    /// The formula at the start.
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

    /// What `q` demands at the same system state, whatever its labels.
    pub fn here(&mut self, q: FormulaState) -> Result<Demand, Diagnostic> {
        if let Some(Some(answer)) = self.here.get(q.0 as usize) {
            return Ok(*answer);
        }
        let answer = self.evaluate(q, Phase::Here, None)?;
        if self.here.len() <= q.0 as usize {
            self.here.resize(q.0 as usize + 1, None);
        }
        self.here[q.0 as usize] = Some(answer);
        Ok(answer)
    }

    /// What `q` demands at the same system state because this label leaves it.
    pub fn here_if(&mut self, q: FormulaState, label: LabelId, labels: &dyn ActionLabels) -> Result<Demand, Diagnostic> {
        if let Some(&answer) = self.here_if.get(&(q, label)) {
            return Ok(answer);
        }
        let l = self.label(label, labels)?;
        let answer = self.evaluate(q, Phase::HereIf, Some(&l))?;
        self.here_if.insert((q, label), answer);
        Ok(answer)
    }

    /// What `q` demands at the target of a transition with this label.
    pub fn step(&mut self, q: FormulaState, label: LabelId, labels: &dyn ActionLabels) -> Result<Demand, Diagnostic> {
        if let Some(&answer) = self.steps.get(&(q, label)) {
            return Ok(answer);
        }
        let l = self.label(label, labels)?;
        let answer = self.evaluate(q, Phase::Step, Some(&l))?;
        self.steps.insert((q, label), answer);
        Ok(answer)
    }

    /// The same as [`Automaton::step`], for callers that ask each question once: nothing is remembered.
    pub fn step_once(&mut self, q: FormulaState, label: LabelId, labels: &dyn ActionLabels) -> Result<Demand, Diagnostic> {
        let l = self.label(label, labels)?;
        self.evaluate(q, Phase::Step, Some(&l))
    }

    /// Whether a multi-action of the formula has the label's action names; labels of which none has are all alike.
    pub fn names(&mut self, label: LabelId, labels: &dyn ActionLabels) -> Result<bool, Diagnostic> {
        Ok(self.label(label, labels)?.class != 0)
    }

    /// Places of modalities that were asked and that no label has fitted: what the formula says beyond them was never put to the test.
    /// A modality such as `[a]false`, whose purpose is that nothing fits, does not count.
    pub fn never_met(&self) -> Vec<crate::base::Span> {
        let mut modalities: AHashMap<(crate::base::Span, NodeId), bool> = AHashMap::new();
        for (node, rules) in &self.rules.states {
            let Some(compiled) = self.compiled.get(node) else { continue };
            for (rule, run) in rules.rules.iter().zip(compiled) {
                if let Some(modality) = rule.modality {
                    *modalities.entry((rule.span, modality)).or_default() |= run.met;
                }
            }
        }
        let mut out: Vec<_> = modalities.into_iter().filter(|s| !s.1).map(|s| s.0.0).collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    fn label(&mut self, label: LabelId, labels: &dyn ActionLabels) -> Result<Rc<Label>, Diagnostic> {
        if let Some(Some(l)) = self.labels.get(label.index()) {
            return Ok(l.clone());
        }
        let multi = labels.multi_action(label);
        let shape: Vec<_> = multi.iter().map(|a| a.0).collect();
        let class = self.rules.class_of.get(&shape).copied().unwrap_or(0);
        let mut args = Vec::new();
        if class != 0 {
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

    fn evaluate(&mut self, q: FormulaState, phase: Phase, label: Option<&Label>) -> Result<Demand, Diagnostic> {
        let (node, values) = self.states[q.0 as usize].clone();
        let all_rules = self.rules.clone();
        let state_rules = &all_rules.states[&node];
        let mut compiled = match self.compiled.remove(&node) {
            Some(c) => c,
            None => state_rules
                .rules
                .iter()
                .map(|r| CompiledRule {
                    conditions: match &r.when {
                        When::Always(_) => vec![None],
                        When::Label(list) => vec![None; list.len()],
                    },
                    target: None,
                    uses_unknowns: false,
                    met: false,
                })
                .collect(),
        };
        let result = self.evaluate_rules(node, &values, state_rules, &mut compiled, phase, label);
        self.compiled.insert(node, compiled);
        result
    }

    fn evaluate_rules(
        &mut self,
        node: NodeId,
        values: &[Value],
        rules: &rules::StateRules,
        compiled: &mut [CompiledRule],
        phase: Phase,
        label: Option<&Label>,
    ) -> Result<Demand, Diagnostic> {
        let mut out: Vec<FormulaState> = Vec::new();
        let mut stuck = None;
        for (rule, run) in rules.rules.iter().zip(compiled) {
            let class = match (&rule.when, rule.effect, phase) {
                (When::Always(_), _, Phase::Here) => 0,
                (When::Label(_), Effect::Step(_), Phase::Step) | (When::Label(_), Effect::Here(_), Phase::HereIf) => {
                    label.map_or(0, |l| l.class)
                }
                _ => continue,
            };
            match self.evaluate_rule(node, values, rules.universal, rule, run, class, label, &mut out) {
                Ok(true) => return Ok(Demand::DECIDED),
                Ok(false) => {}
                Err(d) if d.stage == Stage::Data => {
                    stuck.get_or_insert_with(|| self.explain(d, rule));
                }
                Err(d) => return Err(self.explain(d, rule)),
            }
        }
        match stuck {
            Some(d) => Err(d),
            None => Ok(self.intern_set(out)),
        }
    }

    /// Adds what one rule demands; true if it decides the owner.
    #[allow(clippy::too_many_arguments)]
    fn evaluate_rule(
        &mut self,
        node: NodeId,
        values: &[Value],
        all: bool,
        rule: &rules::Rule,
        run: &mut CompiledRule,
        class: usize,
        label: Option<&Label>,
        out: &mut Vec<FormulaState>,
    ) -> Result<bool, Diagnostic> {
        let live = self.normal.live(node).to_vec();
        if run.conditions[class].is_none() {
            run.conditions[class] = Some(self.compile_condition(rule, class, &live)?);
        }
        if run.target.is_none()
            && let Effect::Here(n) | Effect::Step(n) = rule.effect
        {
            let layout: Vec<VarId> = live.iter().chain(&rule.unknowns).copied().collect();
            run.target = Some(self.compile_target(n, all, &layout)?);
            run.uses_unknowns = rule.unknowns.iter().any(|v| self.normal.live(n).contains(v));
        }
        let Some(condition) = run.conditions[class].clone() else { return Ok(false) };
        let mut env: Vec<Value> = values.to_vec();
        env.extend(label.iter().flat_map(|l| l.args.iter().cloned()));
        match condition {
            Condition::Never => Ok(false),
            Condition::Always | Condition::Test(_) => {
                if let Condition::Test(code) = &condition
                    && !self.test(code, &env)?
                {
                    return Ok(false);
                }
                run.met = true;
                match &run.target {
                    None => Ok(true),
                    Some(t) => self.run_target(t, all, values, out),
                }
            }
            Condition::Solve(problem) => {
                let once = run.target.is_none() || !run.uses_unknowns;
                let (decided, met) = self.solve_rule(&problem, &env, once, values, run.target.as_ref(), all, out)?;
                run.met |= met;
                Ok(decided)
            }
        }
    }

    /// Runs a target for each solution; whether the owner is decided, and whether there was a solution.
    #[allow(clippy::too_many_arguments)]
    fn solve_rule(
        &mut self,
        problem: &Problem,
        env: &[Value],
        once: bool,
        values: &[Value],
        target: Option<&Target>,
        all: bool,
        out: &mut Vec<FormulaState>,
    ) -> Result<(bool, bool), Diagnostic> {
        let (mut decided, mut met) = (false, false);
        let Self { engine, states, state_ids, .. } = self;
        let mut interner = Interner { states, state_ids };
        let mut each = |engine: &mut Engine, solution: &[Value]| -> Result<ControlFlow<()>, Diagnostic> {
            met = true;
            let stop = match target {
                None => true,
                Some(t) => {
                    let full: Vec<Value> = values.iter().chain(solution).cloned().collect();
                    interner.run(engine, t, all, &full, out)?
                }
            };
            decided |= stop;
            Ok(if stop || once { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        };
        engine.solve(problem, env, &mut each)?;
        Ok((decided, met))
    }

    fn explain(&self, diagnostic: Diagnostic, rule: &rules::Rule) -> Diagnostic {
        if diagnostic.stage == Stage::Data {
            diagnostic.within(rule.span, "for this part of the formula")
        } else {
            diagnostic.placed(rule.span)
        }
    }

    fn test(&mut self, code: &Code, env: &[Value]) -> Result<bool, Diagnostic> {
        test(&mut self.engine, code, env)
    }

    fn compile_condition(&mut self, rule: &rules::Rule, class: usize, live: &[VarId]) -> Result<Condition, Diagnostic> {
        let expr = match &rule.when {
            When::Always(None) => None,
            When::Always(Some(e)) => Some(e),
            When::Label(list) => match &list[class] {
                None => return Ok(Condition::Never),
                Some(e) => Some(e),
            },
        };
        let mut layout = live.to_vec();
        if matches!(rule.when, When::Label(_)) {
            layout.extend(&self.rules.classes[class].args);
        }
        if rule.unknowns.is_empty() {
            return Ok(match expr {
                None => Condition::Always,
                Some(e) => Condition::Test(self.engine.code(e, &layout)?),
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
        Ok(Condition::Solve(self.engine.problem(&rule.unknowns, expr, &layout)?))
    }

    fn sources(&mut self, node: NodeId, fix: Option<(FixId, &[Expr])>, layout: &[VarId]) -> Result<Vec<Source>, Diagnostic> {
        let live = self.normal.live(node).to_vec();
        let mut out = Vec::with_capacity(live.len());
        for v in live {
            if let Some((fix, args)) = fix
                && let Some(i) = self.normal.fix(fix).params.iter().position(|p| *p == v)
            {
                out.push(Source::Term(self.engine.code(&args[i], layout)?));
                continue;
            }
            let at = layout
                .iter()
                .position(|l| *l == v)
                .ok_or_else(|| Diagnostic::new(Stage::Internal, "a live variable of a formula state is not in scope"))?;
            out.push(Source::Copy(at));
        }
        Ok(out)
    }

    fn compile_target(&mut self, node: NodeId, all: bool, layout: &[VarId]) -> Result<Target, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            Ok(match self.normal.node(node).clone() {
                Node::Const(b) => Target::Const(b),
                Node::Val(e) => Target::Test(self.engine.code(&e, layout)?),
                Node::All(list) | Node::Any(list) => {
                    let conjunction = matches!(self.normal.node(node), Node::All(_));
                    let (mut tests, mut rest) = (Vec::new(), Vec::new());
                    for n in list {
                        if let Node::Val(e) = self.normal.node(n).clone() {
                            tests.push(self.engine.code(&e, layout)?);
                        } else {
                            rest.push(n);
                        }
                    }
                    let single = rest.len() <= 1 || conjunction == all;
                    let rest = if single {
                        rest.into_iter().map(|n| self.compile_target(n, all, layout)).collect::<Result<_, _>>()?
                    } else {
                        Vec::new()
                    };
                    let whole = if single { None } else { Some((node, self.sources(node, None, layout)?)) };
                    Target::Junction { all: conjunction, tests, rest, whole }
                }
                Node::Call(fix, args) => {
                    let head = self.normal.fix(fix).head;
                    Target::State(head, self.sources(head, Some((fix, &args)), layout)?)
                }
                Node::Forall(..) | Node::Exists(..) | Node::Must(..) | Node::May(..) | Node::Head(_) => {
                    Target::State(node, self.sources(node, None, layout)?)
                }
            })
        })
    }

    fn run_target(&mut self, target: &Target, all: bool, env: &[Value], out: &mut Vec<FormulaState>) -> Result<bool, Diagnostic> {
        let Self { engine, states, state_ids, .. } = self;
        Interner { states, state_ids }.run(engine, target, all, env, out)
    }
}

/// A condition's value. One that rewrites to neither constant is an error of stage `Data`: it is raised only if nothing else decides.
fn test(engine: &mut Engine, code: &Code, env: &[Value]) -> Result<bool, Diagnostic> {
    let value = engine.eval(code, env)?;
    match (value.is_true(), value.is_false()) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => {
            let text = engine.text(&value, 120);
            Err(Diagnostic::new(Stage::Data, "a condition of the formula rewrites to neither true nor false").note(format!("to: {text}")))
        }
    }
}

/// The part of the automaton that targets need while the engine is lent out.
struct Interner<'a> {
    states: &'a mut Vec<Key>,
    state_ids: &'a mut AHashMap<Key, FormulaState>,
}

impl Interner<'_> {
    fn number(&mut self, key: Key) -> FormulaState {
        if let Some(&q) = self.state_ids.get(&key) {
            return q;
        }
        let q = FormulaState(self.states.len() as u32);
        self.states.push(key.clone());
        self.state_ids.insert(key, q);
        q
    }
    fn state(
        &mut self,
        engine: &mut Engine,
        node: NodeId,
        sources: &[Source],
        env: &[Value],
        out: &mut Vec<FormulaState>,
    ) -> Result<bool, Diagnostic> {
        let mut values = Vec::with_capacity(sources.len());
        for s in sources {
            values.push(match s {
                Source::Copy(i) => env[*i].clone(),
                Source::Term(code) => engine.eval(code, env)?,
            });
        }
        let q = self.number((node, Rc::from(values)));
        out.push(q);
        Ok(false)
    }

    /// Adds what the target demands; true if that decides an owner with connective `all`.
    fn run(
        &mut self,
        engine: &mut Engine,
        target: &Target,
        all: bool,
        env: &[Value],
        out: &mut Vec<FormulaState>,
    ) -> Result<bool, Diagnostic> {
        match target {
            Target::Const(b) => Ok(*b != all),
            Target::Test(code) => Ok(test(engine, code, env)? != all),
            Target::State(node, sources) => self.state(engine, *node, sources, env, out),
            Target::Junction { all: conjunction, tests, rest, whole } => {
                let mut stuck = None;
                for code in tests {
                    match test(engine, code, env) {
                        // A test that decides the junction.
                        Ok(value) if value != *conjunction => return Ok(*conjunction == all),
                        Ok(_) => {}
                        Err(d) if d.stage == Stage::Data => stuck = Some(d),
                        Err(d) => return Err(d),
                    }
                }
                if let Some(d) = stuck {
                    return Err(d);
                }
                if let Some((node, sources)) = whole {
                    return self.state(engine, *node, sources, env, out);
                }
                if rest.is_empty() {
                    return Ok(*conjunction != all);
                }
                for t in rest {
                    if self.run(engine, t, all, env, out)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}
