//! Static part of the formula automaton: the obligations of each formula state at a system state
//! and its outgoing labels, as rules over data conditions.
//!
//! Input: a formula in normal form. Output: for each node that can be an automaton state a list of
//! [`Rule`]s. A state is *universal* (a conjunction of its rules' instances) or existential (a
//! disjunction). A rule is a leaf of the state's boolean structure with the quantifiers and guards
//! on the path to it. Because `forall` commutes with conjunction and with boxes (`exists` with
//! disjunction and diamonds), the quantified variables of a rule become *unknowns* that are solved
//! for when the label is known. So `forall n: Nat. [a(n)]f(n)` has one instance for each available
//! label `a(n)`. Action formulas become data conditions over the label's arguments, one for each
//! *class* of labels (the action names of a multi-action).
//!
//! Cost: (leaves) x (classes of the formula). Invariant: an unknown of a rule occurs in its
//! condition or is live in its target.

use ahash::AHashMap;
use mu_base::ids::{ActId, VarId};
use mu_base::{Diagnostic, Span, Stage, permutations};
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind};
use mu_data::signature::Builtin;
use mu_data::sort::basic;
use mu_formula::normal::{NodeId, Normal, NormalNode};
use mu_formula::typed::Action;
use mu_process::labels::ActionDecl;

/// Labels with the same action names. Class 0 contains every label with names that no multi-action
/// of the formula has.
#[derive(Clone, Debug, Default)]
pub struct LabelClass {
    /// The action names, ascending.
    pub shape: Vec<ActId>,
    /// Variables that stand for the arguments, in order.
    pub args: Vec<VarId>,
}

/// Condition of a rule.
#[derive(Clone, Debug)]
pub enum RuleCondition {
    /// Independent of labels; `None` is `true`.
    Always(Option<Expr>),
    /// For each outgoing label: condition by class of the label (`None` inside: never), over the
    /// class's argument variables too.
    Label(Vec<Option<Expr>>),
}

/// Obligation of a rule instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The state is decided: false if universal, true if existential.
    Decide,
    /// The node, at the same system state.
    Here(NodeId),
    /// The node, at the target of the transition (`When::Label` only).
    Step(NodeId),
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Quantified variables to solve for.
    pub unknowns: Vec<VarId>,
    /// Its condition.
    pub when: RuleCondition,
    /// Its obligation.
    pub effect: Effect,
    /// Position of the leaf in the source.
    pub span: Span,
    /// The target of the modality that a step comes from; `None` for other effects, and for a
    /// modality that is meant to match nothing, `[a]false`.
    pub modality: Option<NodeId>,
}

/// The rules of a node.
#[derive(Clone, Debug)]
pub struct StateRules {
    /// True for a conjunction.
    pub universal: bool,
    /// The rules.
    pub rules: Vec<Rule>,
}

/// The rules of a formula.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Label classes; the first is [`OTHER_CLASS`].
    pub classes: Vec<LabelClass>,
    /// Class by shape.
    class_of: AHashMap<Vec<ActId>, usize>,
    /// By node; present for nodes that can be automaton states.
    pub states: AHashMap<NodeId, StateRules>,
    /// The term `true`.
    pub always: Expr,
}

/// The class of all labels with a shape that the formula does not name.
pub const OTHER_CLASS: usize = 0;

impl Rules {
    /// Returns the class of the labels of a shape.
    pub fn class(&self, shape: &[ActId]) -> usize {
        self.class_of.get(shape).copied().unwrap_or(OTHER_CLASS)
    }
}

/// True if a node is a conjunction of its leaves (otherwise a disjunction).
pub fn universal(normal: &Normal, node: NodeId) -> bool {
    let mut node = node;
    loop {
        match normal.node(node) {
            NormalNode::Const(_)
            | NormalNode::Val(_)
            | NormalNode::Forall(..)
            | NormalNode::Must(..)
            | NormalNode::Call(..) => {
                return true;
            }
            NormalNode::Exists(..) | NormalNode::May(..) => return false,
            NormalNode::All(list) | NormalNode::Any(list) => {
                let all = matches!(normal.node(node), NormalNode::All(_));
                let mut rest = list.iter().filter(|n| !is_test(normal, **n));
                match (rest.next(), rest.next()) {
                    (Some(only), None) => node = *only,
                    (None, _) => return true,
                    _ => return all,
                }
            }
            NormalNode::Head(fix) => node = normal.fix(*fix).body,
        }
    }
}

/// True if a node depends on data only.
pub fn is_test(normal: &Normal, node: NodeId) -> bool {
    matches!(normal.node(node), NormalNode::Const(_) | NormalNode::Val(_))
}

/// Computes the rules of all nodes that can be automaton states. Adds new terms to `data`.
pub fn rules(
    normal: &Normal,
    data: &mut DataSpec,
    actions: &[ActionDecl],
) -> Result<Rules, Diagnostic> {
    let mut shapes: Vec<Vec<ActId>> = Vec::new();
    for node in &normal.nodes {
        if let NormalNode::Must(a, _) | NormalNode::May(a, _) = node {
            collect_shapes(a, &mut shapes);
        }
    }
    shapes.sort_unstable();
    shapes.dedup();
    let mut classes = vec![LabelClass::default()];
    let mut class_of = AHashMap::new();
    for shape in shapes {
        let sorts: Vec<_> =
            shape.iter().flat_map(|a| actions[a.index()].sorts.iter().copied()).collect();
        let args = sorts.iter().map(|s| data.signature.fresh_var("label", *s)).collect();
        class_of.insert(shape.clone(), classes.len());
        classes.push(LabelClass { shape, args });
    }
    let mut builder = RulesBuilder { normal, data, classes: &classes, out: AHashMap::new() };
    let mut todo = Vec::new();
    builder.roots_of(normal.root, universal(normal, normal.root), &mut todo);
    while let Some(node) = todo.pop() {
        if builder.out.contains_key(&node) {
            continue;
        }
        let all = universal(normal, node);
        let mut rules = Vec::new();
        let start = match normal.node(node) {
            NormalNode::Head(fix) => normal.fix(*fix).body,
            _ => node,
        };
        builder.collect(start, all, &mut Vec::new(), &mut Vec::new(), &mut rules)?;
        for rule in &rules {
            if let Effect::Here(n) | Effect::Step(n) = rule.effect {
                builder.roots_of(n, all, &mut todo);
            }
        }
        builder.out.insert(node, StateRules { universal: all, rules });
    }
    let states = builder.out;
    let always = Expr::boolean(&mut data.signature, true);
    Ok(Rules { classes, class_of, states, always })
}

/// Returns the condition, over a class's argument variables, that a label of the class is in the
/// set of an action formula.
pub(super) fn condition_of(
    normal: &Normal,
    data: &mut DataSpec,
    action: &Action,
    class: &LabelClass,
    span: Span,
) -> Result<Expr, Diagnostic> {
    let classes = [LabelClass::default(), class.clone()];
    RulesBuilder { normal, data, classes: &classes, out: AHashMap::new() }.matches(action, 1, span)
}

fn collect_shapes(action: &Action, out: &mut Vec<Vec<ActId>>) {
    stacker::maybe_grow(64 << 10, 1 << 20, || match action {
        Action::True | Action::False | Action::Val(_) => {}
        Action::Multi(acts) => out.push(acts.iter().map(|a| a.0).collect()),
        Action::Not(a) | Action::Forall(_, a) | Action::Exists(_, a) => collect_shapes(a, out),
        Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
            collect_shapes(a, out);
            collect_shapes(b, out);
        }
    })
}

/// Limit on the alternatives into which an action formula is split.
const MOST_ALTERNATIVES: usize = 64;
/// Limit on equal action names in one multi-action (all pairings are tried).
const MOST_EQUAL: usize = 5;

struct RulesBuilder<'a> {
    normal: &'a Normal,
    data: &'a mut DataSpec,
    classes: &'a [LabelClass],
    out: AHashMap<NodeId, StateRules>,
}

impl RulesBuilder<'_> {
    /// Collects nodes that can become automaton states when a rule of a (universal or existential)
    /// state leads to `node`. Mirrors `Target` of the automaton, which inlines operands of the
    /// owner's connective.
    fn roots_of(&self, node: NodeId, all: bool, out: &mut Vec<NodeId>) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match self.normal.node(node) {
            NormalNode::Const(_) | NormalNode::Val(_) => {}
            NormalNode::All(list) | NormalNode::Any(list) => {
                if matches!(self.normal.node(node), NormalNode::All(_)) != all {
                    out.push(node);
                }
                for n in list {
                    self.roots_of(*n, all, out);
                }
            }
            NormalNode::Call(fix, _) => out.push(self.normal.fix(*fix).head),
            _ => out.push(node),
        })
    }

    fn collect(
        &mut self,
        node: NodeId,
        all: bool,
        unknowns: &mut Vec<VarId>,
        conditions: &mut Vec<Expr>,
        out: &mut Vec<Rule>,
    ) -> Result<(), Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            let normal = self.normal;
            match normal.node(node) {
                NormalNode::Const(b) if *b == all => {}
                NormalNode::Const(_) => self.decide(node, unknowns, conditions, None, out),
                NormalNode::Val(e) => {
                    let e = if all {
                        Expr::negate(&mut self.data.signature, e.clone())
                    } else {
                        e.clone()
                    };
                    self.decide(node, unknowns, conditions, Some(e), out);
                }
                NormalNode::All(list) | NormalNode::Any(list)
                    if matches!(normal.node(node), NormalNode::All(_)) == all =>
                {
                    for n in list {
                        self.collect(*n, all, unknowns, conditions, out)?;
                    }
                }
                NormalNode::All(list) | NormalNode::Any(list) => {
                    // A guard: the other connective with tests and at most one more operand.
                    let before = conditions.len();
                    let mut rest = Vec::new();
                    for n in list {
                        match normal.node(*n) {
                            NormalNode::Val(e) if all => {
                                conditions.push(Expr::negate(&mut self.data.signature, e.clone()))
                            }
                            NormalNode::Val(e) => conditions.push(e.clone()),
                            _ => rest.push(*n),
                        }
                    }
                    match rest[..] {
                        [] => self.decide(node, unknowns, conditions, None, out),
                        [only] => self.collect(only, all, unknowns, conditions, out)?,
                        _ => self.leaf(node, &rest, all, unknowns, conditions, out)?,
                    }
                    conditions.truncate(before);
                }
                NormalNode::Forall(vars, body) | NormalNode::Exists(vars, body)
                    if matches!(normal.node(node), NormalNode::Forall(..)) == all =>
                {
                    let before = unknowns.len();
                    unknowns.extend(vars);
                    self.collect(*body, all, unknowns, conditions, out)?;
                    unknowns.truncate(before);
                }
                NormalNode::Must(action, target) | NormalNode::May(action, target)
                    if matches!(normal.node(node), NormalNode::Must(..)) == all =>
                {
                    self.push_labelled(
                        action,
                        Effect::Step(*target),
                        normal.spans[node.index()],
                        unknowns,
                        conditions,
                        out,
                    )?;
                }
                NormalNode::Call(..) => self.push_here(node, unknowns, conditions, out),
                _ => self.leaf(node, &[node], all, unknowns, conditions, out)?,
            }
            Ok(())
        })
    }

    fn conjunction(&mut self, conditions: &[Expr]) -> Option<Expr> {
        let mut sum: Option<Expr> = None;
        for c in conditions {
            sum = Some(match sum {
                None => c.clone(),
                Some(s) => Expr::and(&mut self.data.signature, s, c.clone()),
            });
        }
        sum.filter(|s| s.as_bool(&self.data.signature) != Some(true))
    }

    fn push(
        &mut self,
        unknowns: &[VarId],
        when: RuleCondition,
        effect: Effect,
        span: Span,
        out: &mut Vec<Rule>,
    ) {
        let mut used = Vec::new();
        match &when {
            RuleCondition::Always(c) => c.iter().for_each(|c| c.free_vars(&mut used)),
            RuleCondition::Label(list) => {
                list.iter().flatten().for_each(|c| c.free_vars(&mut used))
            }
        }
        if let Effect::Here(n) | Effect::Step(n) = effect {
            used.extend(self.normal.live(n));
        }
        let unknowns = unknowns.iter().copied().filter(|v| used.contains(v)).collect();
        let modality = match effect {
            Effect::Step(n) if !matches!(self.normal.node(n), NormalNode::Const(_)) => Some(n),
            _ => None,
        };
        match &when {
            RuleCondition::Always(Some(c)) if c.as_bool(&self.data.signature) == Some(false) => {}
            RuleCondition::Label(list) if list.iter().all(Option::is_none) => {}
            _ => out.push(Rule { unknowns, when, effect, span, modality }),
        }
    }

    fn decide(
        &mut self,
        node: NodeId,
        unknowns: &[VarId],
        conditions: &[Expr],
        last: Option<Expr>,
        out: &mut Vec<Rule>,
    ) {
        let conditions: Vec<Expr> = conditions.iter().cloned().chain(last).collect();
        let when = RuleCondition::Always(self.conjunction(&conditions));
        self.push(unknowns, when, Effect::Decide, self.normal.spans[node.index()], out);
    }

    fn push_here(
        &mut self,
        node: NodeId,
        unknowns: &[VarId],
        conditions: &[Expr],
        out: &mut Vec<Rule>,
    ) {
        let when = RuleCondition::Always(self.conjunction(conditions));
        self.push(unknowns, when, Effect::Here(node), self.normal.spans[node.index()], out);
    }

    /// Adds a leaf that does not have the owner's connective. If it is trivial unless some outgoing
    /// label matches one of its modalities, and it has unknowns, its instances are taken from the
    /// labels.
    fn leaf(
        &mut self,
        node: NodeId,
        operands: &[NodeId],
        all: bool,
        unknowns: &[VarId],
        conditions: &[Expr],
        out: &mut Vec<Rule>,
    ) -> Result<(), Diagnostic> {
        let live = self.normal.live(node);
        let wanted: Vec<VarId> = unknowns.iter().copied().filter(|v| live.contains(v)).collect();
        let mut best: Option<(usize, &Action)> = None;
        if !wanted.is_empty() {
            for n in operands {
                if let NormalNode::Must(action, _) | NormalNode::May(action, _) =
                    self.normal.node(*n)
                    && matches!(self.normal.node(*n), NormalNode::Must(..)) == all
                {
                    let mut free = Vec::new();
                    mu_formula::normal::action_free_vars(action, &mut free);
                    let count = free.iter().filter(|v| wanted.contains(v)).count();
                    if count > best.map_or(0, |b| b.0) {
                        best = Some((count, action));
                    }
                }
            }
        }
        match best {
            Some((_, action)) => {
                let span = self.normal.spans[node.index()];
                self.push_labelled(action, Effect::Here(node), span, unknowns, conditions, out)
            }
            None => {
                self.push_here(node, unknowns, conditions, out);
                Ok(())
            }
        }
    }

    fn push_labelled(
        &mut self,
        action: &Action,
        effect: Effect,
        span: Span,
        unknowns: &[VarId],
        conditions: &[Expr],
        out: &mut Vec<Rule>,
    ) -> Result<(), Diagnostic> {
        for (more, alternative) in alternatives(action) {
            let mut unknowns = unknowns.to_vec();
            unknowns.extend(more);
            let mut by_class = Vec::with_capacity(self.classes.len());
            for class in 0..self.classes.len() {
                let fits = self.matches(&alternative, class, span)?;
                if fits.as_bool(&self.data.signature) == Some(false) {
                    by_class.push(None);
                    continue;
                }
                let all: Vec<Expr> = conditions.iter().cloned().chain([fits]).collect();
                let condition = match self.conjunction(&all) {
                    Some(c) => c,
                    None => Expr::boolean(&mut self.data.signature, true),
                };
                by_class.push(
                    Some(condition).filter(|c| c.as_bool(&self.data.signature) != Some(false)),
                );
            }
            self.push(&unknowns, RuleCondition::Label(by_class), effect, span, out);
        }
        Ok(())
    }

    /// Returns the condition that a label of a class is in the set of an action formula.
    fn matches(&mut self, action: &Action, class: usize, span: Span) -> Result<Expr, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            Ok(match action {
                Action::True => Expr::boolean(&mut self.data.signature, true),
                Action::False => Expr::boolean(&mut self.data.signature, false),
                Action::Val(e) => e.clone(),
                Action::Multi(acts) => return self.equalities(acts, class, span),
                Action::Not(a) => {
                    let a = self.matches(a, class, span)?;
                    Expr::negate(&mut self.data.signature, a)
                }
                Action::And(a, b) => {
                    let (a, b) = (self.matches(a, class, span)?, self.matches(b, class, span)?);
                    Expr::and(&mut self.data.signature, a, b)
                }
                Action::Or(a, b) => {
                    let (a, b) = (self.matches(a, class, span)?, self.matches(b, class, span)?);
                    self.or(a, b)
                }
                Action::Implies(a, b) => {
                    let (a, b) = (self.matches(a, class, span)?, self.matches(b, class, span)?);
                    let a = Expr::negate(&mut self.data.signature, a);
                    self.or(a, b)
                }
                Action::Forall(vars, a) | Action::Exists(vars, a) => {
                    let a = self.matches(a, class, span)?;
                    let binder = if matches!(action, Action::Forall(..)) {
                        Binder::Forall
                    } else {
                        Binder::Exists
                    };
                    self.quantify(binder, vars, a)
                }
            })
        })
    }

    fn or(&mut self, a: Expr, b: Expr) -> Expr {
        match (a.as_bool(&self.data.signature), b.as_bool(&self.data.signature)) {
            (Some(false), _) | (_, Some(true)) => b,
            (_, Some(false)) | (Some(true), _) => a,
            _ => Expr::builtin(&mut self.data.signature, Builtin::Or, vec![a, b], basic::BOOL),
        }
    }

    /// Quantifies over the variables that occur (sorts are not empty). Distributes `exists` over
    /// `||`, `forall` over `&&`, so that each part can be solved by its own equations.
    fn quantify(&mut self, binder: Binder, vars: &[VarId], body: Expr) -> Expr {
        stacker::maybe_grow(128 << 10, 4 << 20, || {
            let mut free = Vec::new();
            body.free_vars(&mut free);
            let vars: Vec<VarId> = vars.iter().copied().filter(|v| free.contains(v)).collect();
            if vars.is_empty() {
                return body;
            }
            match (body.as_builtin(&self.data.signature), binder) {
                (Some((Builtin::Or, args)), Binder::Exists) => {
                    let (a, b) = (args[0].clone(), args[1].clone());
                    let (a, b) = (self.quantify(binder, &vars, a), self.quantify(binder, &vars, b));
                    self.or(a, b)
                }
                (Some((Builtin::And, args)), Binder::Forall) => {
                    let (a, b) = (args[0].clone(), args[1].clone());
                    let (a, b) = (self.quantify(binder, &vars, a), self.quantify(binder, &vars, b));
                    Expr::and(&mut self.data.signature, a, b)
                }
                _ => {
                    let span = body.span;
                    // Merge `exists x. exists y. b` into one quantifier, so that its equations are
                    // solved together.
                    if let ExprKind::Bind(inner, more, b) = &body.kind
                        && *inner == binder
                    {
                        let all = vars.iter().chain(more).copied().collect();
                        return Expr::new(
                            ExprKind::Bind(binder, all, b.clone()),
                            basic::BOOL,
                            span,
                        );
                    }
                    Expr::new(ExprKind::Bind(binder, vars, body), basic::BOOL, span)
                }
            }
        })
    }

    fn equalities(
        &mut self,
        acts: &[(ActId, Vec<Expr>)],
        class: usize,
        span: Span,
    ) -> Result<Expr, Diagnostic> {
        let c = &self.classes[class];
        if class == 0
            || c.shape.len() != acts.len()
            || c.shape.iter().zip(acts).any(|(s, a)| *s != a.0)
        {
            return Ok(Expr::boolean(&mut self.data.signature, false));
        }
        // Arguments of the label, by action.
        let mut at = 0;
        let mut label: Vec<&[VarId]> = Vec::new();
        for a in acts {
            label.push(&c.args[at..at + a.1.len()]);
            at += a.1.len();
        }
        let mut result = Expr::boolean(&mut self.data.signature, true);
        let mut from = 0;
        while from < acts.len() {
            let to = from + acts[from..].iter().take_while(|a| a.0 == acts[from].0).count();
            if to - from > MOST_EQUAL {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    span,
                    format!("a multi-action with more than {MOST_EQUAL} equal action names"),
                ));
            }
            let mut any = Expr::boolean(&mut self.data.signature, false);
            for order in permutations::all(to - from) {
                let mut one = Expr::boolean(&mut self.data.signature, true);
                for (i, j) in order.into_iter().enumerate() {
                    for (e, v) in acts[from + i].1.iter().zip(label[from + j]) {
                        let v = Expr::var(&self.data.signature, *v);
                        let equal = Expr::equal(&mut self.data.signature, e.clone(), v);
                        one = Expr::and(&mut self.data.signature, one, equal);
                    }
                }
                any = self.or(any, one);
            }
            result = Expr::and(&mut self.data.signature, result, any);
            from = to;
        }
        Ok(result)
    }
}

/// Splits an action formula into a union of `exists vars. matrix`. Pulls out the positive outermost
/// existential quantifiers, so that they are solved for together with the rule's unknowns.
fn alternatives(action: &Action) -> Vec<(Vec<VarId>, Action)> {
    stacker::maybe_grow(128 << 10, 4 << 20, || {
        let whole = || vec![(Vec::new(), action.clone())];
        match action {
            Action::Exists(vars, a) => {
                let mut parts = alternatives(a);
                parts.iter_mut().for_each(|p| p.0.extend(vars));
                parts
            }
            Action::Or(a, b) if has_exists(action) => {
                let mut parts = alternatives(a);
                parts.extend(alternatives(b));
                if parts.len() > MOST_ALTERNATIVES { whole() } else { parts }
            }
            Action::And(a, b) if has_exists(action) => {
                let (a, b) = (alternatives(a), alternatives(b));
                if a.len() * b.len() > MOST_ALTERNATIVES {
                    return whole();
                }
                let mut parts = Vec::new();
                for x in &a {
                    for y in &b {
                        let vars = x.0.iter().chain(&y.0).copied().collect();
                        parts.push((
                            vars,
                            Action::And(Box::new(x.1.clone()), Box::new(y.1.clone())),
                        ));
                    }
                }
                parts
            }
            _ => whole(),
        }
    })
}

/// True if `alternatives` can pull out a quantifier.
fn has_exists(action: &Action) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match action {
        Action::Exists(..) => true,
        Action::And(a, b) | Action::Or(a, b) => has_exists(a) || has_exists(b),
        _ => false,
    })
}
