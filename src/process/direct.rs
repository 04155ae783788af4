//! Structural operational semantics of process terms, as an oracle for the lineariser.
//!
//! In: a typed specification. Out: its states and transitions, by the rules for mCRL2 (Groote,
//! Mousavi, "Modeling and Analysis of Communicating Systems", 2014, chapter 15, untimed), on closed
//! terms. Nothing is linearised and no code is shared with the lineariser. `sum` ranges over finite
//! sorts only. Cost: every step substitutes and rewrites; meant for small processes.

use crate::labels::MultiAction;
use crate::spec::{NameSet, Proc, ProcKind, ProcSpec};
use ahash::AHashMap;
use mu_base::ids::{ActId, VarId};
use mu_base::{Diagnostic, Stage, narrow};
use mu_data::engine::{Engine, Program, Value};
use mu_data::expr::{Expr, Substitution};
use mu_data::signature::Signature;
use std::rc::Rc;

/// Values of the free variables of a part of the specification, in its own order.
type Binding = Vec<(VarId, Expr)>;

/// State: a part of the specification under a binding, or a composition of such states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum DirectState {
    /// Successful termination.
    Done,
    /// The part with this number, with values for its free variables.
    Part(usize, Rc<Binding>),
    Seq(Rc<DirectState>, Rc<DirectState>),
    Parallel(Rc<DirectState>, Rc<DirectState>),
    /// The operator (hide, allow, …) with this part number around a state.
    Around(usize, Rc<DirectState>),
}

/// Explored transition system.
pub struct Direct {
    /// Number of states; 0 is initial.
    pub states: usize,
    /// Source, multi-action, target. `None` is `Terminate`.
    pub transitions: Vec<(u32, Option<MultiAction>, u32)>,
    /// Signature of the labels' arguments: that of the specification, extended by operations that
    /// occur in values.
    pub signature: Signature,
}

/// Explores a specification by the rules. Error: more than `max_states` states, or an unsupported
/// construct.
pub fn explore(spec: &ProcSpec, max_states: usize) -> Result<Direct, Diagnostic> {
    let mut rules = DirectSemantics::new(spec)?;
    let root = rules.part_of(&spec.init);
    let initial = DirectState::Part(root, Rc::default());
    let mut ids: AHashMap<DirectState, u32> = AHashMap::from([(initial.clone(), 0)]);
    let mut states = vec![Some(initial)];
    let mut transitions = Vec::new();
    let mut dead = None;
    let mut next = 0;
    while next < states.len() {
        if states.len() > max_states {
            return Err(Diagnostic::new(Stage::Process, format!("more than {max_states} states")));
        }
        let Some(state) = states[next].clone() else {
            next += 1;
            continue;
        };
        if state == DirectState::Done {
            let target = *dead.get_or_insert_with(|| {
                states.push(None);
                narrow::index(states.len()) - 1
            });
            transitions.push((narrow::index(next), None, target));
        } else {
            let mut steps = Vec::new();
            rules.steps(&state, 0, &mut steps)?;
            for (label, target) in steps {
                let id = *ids.entry(target.clone()).or_insert_with(|| {
                    states.push(Some(target));
                    narrow::index(states.len()) - 1
                });
                transitions.push((narrow::index(next), Some(label), id));
            }
        }
        next += 1;
    }
    Ok(Direct {
        states: states.len(),
        transitions,
        signature: rules.engine.program().signature().clone(),
    })
}

/// Limit on nested calls without an action; beyond it, the recursion is unguarded.
const MAX_UNFOLDINGS: usize = 1000;

/// Runs a recursion with enough stack: sequences and unfoldings nest as deeply as a process
/// recurses.
fn deep<T>(recursion: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 4 << 20, recursion)
}

struct DirectSemantics<'a> {
    spec: &'a ProcSpec,
    engine: Engine,
    parts: Vec<&'a Proc>,
    ids: AHashMap<*const Proc, usize>,
    free: Vec<Option<Rc<Vec<VarId>>>>,
}

impl<'a> DirectSemantics<'a> {
    fn new(spec: &'a ProcSpec) -> Result<Self, Diagnostic> {
        let engine = Engine::new(Program::compile(&spec.data)?);
        Ok(Self { spec, engine, parts: Vec::new(), ids: AHashMap::new(), free: Vec::new() })
    }

    fn part_of(&mut self, proc: &'a Proc) -> usize {
        let parts = &mut self.parts;
        let free = &mut self.free;
        *self.ids.entry(proc as *const Proc).or_insert_with(|| {
            parts.push(proc);
            free.push(None);
            parts.len() - 1
        })
    }

    /// Returns a part under a binding restricted to the free variables of the part.
    fn state(&mut self, proc: &'a Proc, binding: &Binding) -> DirectState {
        let part = self.part_of(proc);
        if self.free[part].is_none() {
            let mut vars = Vec::new();
            free_vars(proc, &mut Vec::new(), &mut vars);
            self.free[part] = Some(Rc::new(vars));
        }
        let free = self.free[part].clone().expect("just computed");
        let restricted = free
            .iter()
            .filter_map(|v| binding.iter().rev().find(|(w, _)| w == v).cloned())
            .collect();
        DirectState::Part(part, Rc::new(restricted))
    }

    fn normal_form(&mut self, e: &Expr, binding: &Binding) -> Result<Expr, Diagnostic> {
        let by: Substitution = binding.iter().cloned().collect();
        let value = self.engine.from_expr(&e.substitute(&by))?;
        let value = self.engine.normal_functions(&value, e.sort);
        Ok(self.engine.to_expr_at(&value, e.sort))
    }

    fn is_true(&mut self, e: &Expr, binding: &Binding) -> Result<bool, Diagnostic> {
        let by: Substitution = binding.iter().cloned().collect();
        let value = self.engine.from_expr(&e.substitute(&by))?;
        Ok(value.is_true())
    }

    fn steps(
        &mut self,
        state: &DirectState,
        depth: usize,
        out: &mut Vec<(MultiAction, DirectState)>,
    ) -> Result<(), Diagnostic> {
        match state {
            DirectState::Done => Ok(()),
            DirectState::Part(part, binding) => {
                let proc = self.parts[*part];
                self.part_steps(proc, &binding.clone(), depth, out)
            }
            DirectState::Seq(p, q) => {
                let mut first = Vec::new();
                deep(|| self.steps(p, depth, &mut first))?;
                out.extend(first.into_iter().map(|(a, p)| (a, sequence(p, (**q).clone()))));
                Ok(())
            }
            DirectState::Parallel(p, q) => {
                let (mut ps, mut qs) = (Vec::new(), Vec::new());
                deep(|| self.steps(p, depth, &mut ps))?;
                deep(|| self.steps(q, depth, &mut qs))?;
                for (a, p2) in &ps {
                    out.push((a.clone(), parallel(p2.clone(), (**q).clone())));
                    for (b, q2) in &qs {
                        out.push((union(a, b), parallel(p2.clone(), q2.clone())));
                    }
                }
                out.extend(qs.into_iter().map(|(b, q2)| (b, parallel((**p).clone(), q2))));
                Ok(())
            }
            DirectState::Around(part, inner) => {
                let proc = self.parts[*part];
                let mut steps = Vec::new();
                deep(|| self.steps(inner, depth, &mut steps))?;
                for (label, target) in steps {
                    if let Some(label) = self.pass(proc, label)? {
                        out.push((label, wrap(*part, target)));
                    }
                }
                Ok(())
            }
        }
    }

    fn part_steps(
        &mut self,
        proc: &'a Proc,
        binding: &Binding,
        depth: usize,
        out: &mut Vec<(MultiAction, DirectState)>,
    ) -> Result<(), Diagnostic> {
        match &proc.kind {
            ProcKind::Action(action, args) => {
                let args: Result<Vec<Expr>, Diagnostic> =
                    args.iter().map(|e| self.normal_form(e, binding)).collect();
                out.push((vec![(*action, args?)], DirectState::Done));
            }
            ProcKind::Tau => out.push((Vec::new(), DirectState::Done)),
            ProcKind::Delta => {}
            ProcKind::Choice(p, q) => {
                self.part_steps(p, binding, depth, out)?;
                self.part_steps(q, binding, depth, out)?;
            }
            ProcKind::Seq(p, q) => {
                let mut first = Vec::new();
                self.part_steps(p, binding, depth, &mut first)?;
                let rest = self.state(q, binding);
                out.extend(first.into_iter().map(|(a, p)| (a, sequence(p, rest.clone()))));
            }
            ProcKind::If(c, p, q) => {
                if self.is_true(c, binding)? {
                    self.part_steps(p, binding, depth, out)?;
                } else if let Some(q) = q {
                    self.part_steps(q, binding, depth, out)?;
                }
            }
            ProcKind::Sum(vars, p) => {
                self.sum_steps(vars, proc, p, &mut binding.clone(), depth, out)?
            }
            ProcKind::Call(id, args) => {
                let def = &self.spec.procs[id.index()];
                if depth > MAX_UNFOLDINGS {
                    return Err(Diagnostic::at(
                        Stage::Process,
                        def.span,
                        format!("unguarded recursion of process `{}`", def.name),
                    ));
                }
                let mut inner = Binding::new();
                for (param, arg) in def.params.iter().zip(args) {
                    inner.push((*param, self.normal_form(arg, binding)?));
                }
                deep(|| self.part_steps(&def.body, &inner, depth + 1, out))?;
            }
            ProcKind::Parallel(p, q) => {
                let both = DirectState::Parallel(
                    Rc::new(self.state(p, binding)),
                    Rc::new(self.state(q, binding)),
                );
                self.steps(&both, depth, out)?;
            }
            ProcKind::LeftMerge(p, q) => {
                let mut ps = Vec::new();
                self.part_steps(p, binding, depth, &mut ps)?;
                let rest = self.state(q, binding);
                out.extend(ps.into_iter().map(|(a, p)| (a, parallel(p, rest.clone()))));
            }
            ProcKind::Sync(p, q) => {
                let (mut ps, mut qs) = (Vec::new(), Vec::new());
                self.part_steps(p, binding, depth, &mut ps)?;
                self.part_steps(q, binding, depth, &mut qs)?;
                for (a, p2) in &ps {
                    for (b, q2) in &qs {
                        out.push((union(a, b), parallel(p2.clone(), q2.clone())));
                    }
                }
            }
            ProcKind::Block(_, p)
            | ProcKind::Allow(_, p)
            | ProcKind::Hide(_, p)
            | ProcKind::Rename(_, p)
            | ProcKind::Comm(_, p) => {
                let part = self.part_of(proc);
                let inner = self.state(p, binding);
                self.steps(&DirectState::Around(part, Rc::new(inner)), depth, out)?;
            }
            ProcKind::BoundedInit(..) | ProcKind::At(..) | ProcKind::Dist(..) => {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    proc.span,
                    "timed and stochastic constructs are not supported",
                ));
            }
        }
        Ok(())
    }

    fn sum_steps(
        &mut self,
        vars: &[VarId],
        whole: &Proc,
        body: &'a Proc,
        binding: &mut Binding,
        depth: usize,
        out: &mut Vec<(MultiAction, DirectState)>,
    ) -> Result<(), Diagnostic> {
        let Some((first, rest)) = vars.split_first() else {
            return self.part_steps(body, binding, depth, out);
        };
        let var = self.spec.data.signature.var(*first);
        let Some(values) = self.engine.values_of(var.sort)? else {
            let message = format!(
                "`sum {}: {}` is over an infinite sort",
                var.name,
                self.spec.data.signature.sorts.text(var.sort)
            );
            return Err(Diagnostic::at(Stage::Data, whole.span, message));
        };
        let values: Vec<Expr> =
            values.iter().map(|v: &Value| self.engine.to_expr_at(v, var.sort)).collect();
        for value in values {
            binding.push((*first, value));
            self.sum_steps(rest, whole, body, binding, depth, out)?;
            binding.pop();
        }
        Ok(())
    }

    fn names(&self, label: &MultiAction) -> NameSet {
        let mut names: NameSet =
            label.iter().map(|(a, _)| self.spec.actions[a.index()].name.clone()).collect();
        names.sort();
        names
    }

    fn overload(&self, name: &str, like: ActId) -> Result<ActId, Diagnostic> {
        let sorts = &self.spec.actions[like.index()].sorts;
        (self.spec.actions.iter().position(|d| d.name == name && d.sorts == *sorts).map(ActId::new))
            .ok_or_else(|| {
                Diagnostic::new(
                    Stage::Process,
                    format!("there is no action `{name}` with the argument sorts of the communicating actions"),
                )
            })
    }

    /// Applies an operator to a label; `None` if the operator blocks it.
    fn pass(
        &self,
        operator: &Proc,
        mut label: MultiAction,
    ) -> Result<Option<MultiAction>, Diagnostic> {
        match &operator.kind {
            ProcKind::Block(names, _) => {
                Ok((!self.names(&label).iter().any(|n| names.contains(n))).then_some(label))
            }
            ProcKind::Allow(sets, _) => {
                let names = self.names(&label);
                let sorted = |set: &NameSet| {
                    let mut set = set.clone();
                    set.sort();
                    set
                };
                Ok((names.is_empty() || sets.iter().any(|s| sorted(s) == names)).then_some(label))
            }
            ProcKind::Hide(names, _) => {
                label.retain(|(a, _)| !names.contains(&self.spec.actions[a.index()].name));
                Ok(Some(label))
            }
            ProcKind::Rename(pairs, _) => {
                for (action, _) in &mut label {
                    let name = &self.spec.actions[action.index()].name;
                    if let Some((_, to)) = pairs.iter().find(|(from, _)| from == name) {
                        *action = self.overload(to, *action)?;
                    }
                }
                Ok(Some(union(&label, &Vec::new())))
            }
            ProcKind::Comm(rules, _) => {
                let mut result = MultiAction::new();
                'again: loop {
                    for (lhs, to) in rules {
                        for first in 0..label.len() {
                            let (action, args) = label[first].clone();
                            if !lhs.contains(&self.spec.actions[action.index()].name) {
                                continue;
                            }
                            // Removes the names of the left-hand side from the label, all with
                            // these arguments.
                            let mut taken: Vec<usize> = Vec::new();
                            let all = lhs.iter().all(|name| {
                                let found = (0..label.len()).find(|i| {
                                    !taken.contains(i)
                                        && self.spec.actions[label[*i].0.index()].name == *name
                                        && label[*i].1 == args
                                });
                                taken.extend(found);
                                found.is_some()
                            });
                            if all {
                                taken.sort_unstable();
                                for i in taken.into_iter().rev() {
                                    label.remove(i);
                                }
                                if let Some(to) = to {
                                    result.push((self.overload(to, action)?, args));
                                }
                                continue 'again;
                            }
                        }
                    }
                    break;
                }
                Ok(Some(union(&label, &result)))
            }
            _ => Ok(Some(label)),
        }
    }
}

/// Collects the free data variables of a process term.
fn free_vars(proc: &Proc, bound: &mut Vec<VarId>, out: &mut Vec<VarId>) {
    let exprs = |es: &[Expr], bound: &[VarId], out: &mut Vec<VarId>| {
        let mut vars = Vec::new();
        es.iter().for_each(|e| e.free_vars(&mut vars));
        for v in vars {
            if !bound.contains(&v) && !out.contains(&v) {
                out.push(v);
            }
        }
    };
    match &proc.kind {
        ProcKind::Action(_, args) | ProcKind::Call(_, args) => exprs(args, bound, out),
        ProcKind::Delta | ProcKind::Tau => {}
        ProcKind::Choice(p, q)
        | ProcKind::Seq(p, q)
        | ProcKind::Parallel(p, q)
        | ProcKind::LeftMerge(p, q)
        | ProcKind::Sync(p, q)
        | ProcKind::BoundedInit(p, q) => {
            free_vars(p, bound, out);
            free_vars(q, bound, out);
        }
        ProcKind::If(c, p, q) => {
            exprs(std::slice::from_ref(c), bound, out);
            free_vars(p, bound, out);
            if let Some(q) = q {
                free_vars(q, bound, out);
            }
        }
        ProcKind::At(p, e) => {
            exprs(std::slice::from_ref(e), bound, out);
            free_vars(p, bound, out);
        }
        ProcKind::Sum(vars, p) => {
            let n = bound.len();
            bound.extend(vars);
            free_vars(p, bound, out);
            bound.truncate(n);
        }
        ProcKind::Dist(vars, e, p) => {
            let n = bound.len();
            bound.extend(vars);
            exprs(std::slice::from_ref(e), bound, out);
            free_vars(p, bound, out);
            bound.truncate(n);
        }
        ProcKind::Block(_, p)
        | ProcKind::Allow(_, p)
        | ProcKind::Hide(_, p)
        | ProcKind::Rename(_, p)
        | ProcKind::Comm(_, p) => free_vars(p, bound, out),
    }
}

fn sequence(p: DirectState, q: DirectState) -> DirectState {
    if p == DirectState::Done { q } else { DirectState::Seq(Rc::new(p), Rc::new(q)) }
}

fn parallel(p: DirectState, q: DirectState) -> DirectState {
    match (p, q) {
        (DirectState::Done, q) => q,
        (p, DirectState::Done) => p,
        (p, q) => DirectState::Parallel(Rc::new(p), Rc::new(q)),
    }
}

fn wrap(part: usize, inner: DirectState) -> DirectState {
    if inner == DirectState::Done {
        DirectState::Done
    } else {
        DirectState::Around(part, Rc::new(inner))
    }
}

/// Returns the sum of two multi-actions, in canonical order.
fn union(a: &MultiAction, b: &MultiAction) -> MultiAction {
    let mut all: MultiAction = a.iter().chain(b).cloned().collect();
    all.sort_by_cached_key(|(act, args)| (*act, format!("{args:?}")));
    all
}
