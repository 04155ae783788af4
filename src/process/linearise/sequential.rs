//! Linearisation of one sequential component to a finite automaton with data.
//!
//! In: a closed sequential term. Out: [`Automaton`]: locations with the data variables that are
//! live there, and summands between them. A location is a continuation (a sequence of terms); its
//! variables are the free variables of that sequence, so a variable that no longer occurs is
//! dropped. A sequence that starts with a process instance is the location of that process: its
//! arguments become the values of the process's own parameters. A conditional at the start is
//! resolved at once. The regular form of Usenko, "Linearization in muCRL" (2002), chapter 4, with
//! variables per location.
//!
//! If an equation calls itself with a continuation after the call, sequences would grow without
//! bound. Such calls push the continuation onto a stack (a data value of a generated structured
//! sort); the end of a process pops it. A call in a choice is inlined. It pushes when its first
//! action is done, and not at all if that action ends it.
//!
//! Cost: linear in the number of locations times the size of their terms.
//! Invariant: every summand from a location reads only that location's variables, its own sum
//! variables, and the stack.

use super::chance;
use super::sequence::{Sequence, Sequences};
use super::sum_over_dist::SumValues;
use super::term::ProcessTerm;
use crate::linear::{Act, Chance};
use crate::open_constants::OpenConstants;
use crate::spec::ProcSpec;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{OpId, ProcId, SortId, VarId};
use mu_base::{Diagnostic, Stage, narrow};
use mu_data::expr::{Expr, ExprKind, Substitution};
use mu_data::signature::{Op, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use std::rc::Rc;

/// Limit on locations of one component; beyond it, linearisation fails, since the process is almost
/// certainly infinite.
const MAX_LOCATIONS: usize = 200_000;

/// Control location.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// Live variables. If the component has a stack, its variable comes first.
    pub vars: Vec<VarId>,
    /// True if it is successful termination.
    pub terminated: bool,
}

/// Summand between locations.
#[derive(Clone, Debug)]
pub(super) struct LocationEdge {
    pub from: usize,
    pub sum_vars: Vec<VarId>,
    /// Conjuncts.
    pub guard: Vec<Expr>,
    pub acts: Vec<Act>,
    /// Time of the action, if it has one.
    pub time: Option<Expr>,
    /// Probabilistic choice after the action: `assigns` may refer to it.
    pub chance: Option<Chance>,
    pub to: usize,
    /// A value for each live variable of `to`.
    pub assigns: Vec<(VarId, Expr)>,
    pub had_sum: bool,
}

/// Component as an automaton with data.
#[derive(Clone, Debug)]
pub(super) struct Automaton {
    pub name: String,
    /// True for the auxiliary component that records whether a first step was done.
    pub phase: bool,
    pub locations: Vec<Location>,
    pub edges: Vec<LocationEdge>,
    /// Initial probabilistic choice.
    pub initial_chance: Option<Chance>,
    /// Initial location and values of its variables (closed except for chosen variables).
    pub initial: usize,
    pub initial_values: Vec<(VarId, Expr)>,
}

/// Stack of a component with non-regular recursion.
struct Stack {
    sort: SortId,
    var: VarId,
    empty: OpId,
    frames: Vec<StackFrame>,
    by_rest: AHashMap<Sequence, usize>,
}

struct StackFrame {
    rest: Sequence,
    vars: Vec<VarId>,
    constructor: OpId,
    recogniser: OpId,
    /// Projection of each variable, then of the rest of the stack.
    projections: Vec<OpId>,
}

/// Locations with sequences of one shape.
#[derive(Clone, Copy)]
enum ShapeLocations {
    /// One so far, which is not in `by_sequence`.
    One(usize),
    /// They are in `by_sequence`.
    Several,
}

/// Target of a step: a condition, and a location with its values (and the new stack).
struct StepTarget {
    guard: Vec<Expr>,
    /// `None`: the location that the stack determines.
    to: Option<usize>,
    assigns: Vec<(VarId, Expr)>,
    chance: Option<Chance>,
}

/// Edge without its target.
#[derive(Clone)]
struct OpenEdge {
    from: usize,
    sum_vars: Vec<VarId>,
    guard: Vec<Expr>,
    acts: Vec<Act>,
    time: Option<Expr>,
    had_sum: bool,
}

impl OpenEdge {
    fn to(self, to: usize, assigns: Vec<(VarId, Expr)>, chance: Option<Chance>) -> LocationEdge {
        let OpenEdge { from, sum_vars, guard, acts, time, had_sum } = self;
        LocationEdge { from, sum_vars, guard, acts, time, chance, to, assigns, had_sum }
    }
}

/// State of the unfolding of a location's term.
struct Unfolding {
    from: usize,
    sum_vars: Vec<VarId>,
    /// Conjuncts.
    guard: Vec<Expr>,
    had_sum: bool,
    /// Time of the action, if it has one.
    time: Option<Expr>,
    /// Inlined calls.
    calls: Vec<ProcId>,
    /// Continuations of the inlined calls that use the stack, outermost first; none is empty.
    after: Vec<Sequence>,
}

/// Builder of automata from sequential terms; it shares converted equations between components.
pub(super) struct AutomatonBuilder<'a> {
    pub spec: &'a ProcSpec,
    pub signature: &'a mut Signature,
    /// Constants without a value.
    pub(super) open: &'a OpenConstants,
    /// Converted bodies, by process.
    pub bodies: Vec<Option<Rc<ProcessTerm>>>,
    /// True for each process with calls that use a stack, see [`non_regular`].
    pub uses_stack: Vec<bool>,
    /// True for processes that may start with a probabilistic choice.
    pub(super) starts_with_dist: Vec<bool>,
    /// Values of the variables of sums under conditions.
    pub(super) sum_values: AHashMap<(Vec<VarId>, Expr), SumValues>,
    pub(super) sequences: Sequences,
    locations: Vec<Location>,
    /// Continuation of each location.
    at: Vec<Sequence>,
    /// Locations by sequence as first encountered.
    by_original: AHashMap<Sequence, usize>,
    /// Locations by sequence with canonical variables, for shapes that several sequences have.
    by_sequence: AHashMap<Sequence, usize>,
    by_shape: AHashMap<u64, ShapeLocations>,
    edges: Vec<LocationEdge>,
    /// Steps that end a process on the stack. Their edges are the pops, created when all frames
    /// are known.
    ends: Vec<OpenEdge>,
    stack: Option<Stack>,
    renamed: AHashMap<VarId, VarId>,
    /// Canonical variables of a sequence, by position and sort.
    canonical: AHashMap<(usize, SortId), VarId>,
    stack_count: usize,
}

/// Returns the processes on a cycle of calls that includes a call with a continuation: those need a
/// stack. `bodies` of processes that are not sequential are `None`.
pub(super) fn non_regular(bodies: &[Option<Rc<ProcessTerm>>]) -> Vec<bool> {
    fn calls(term: &ProcessTerm, tail: bool, out: &mut Vec<(ProcId, bool)>) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match term {
            ProcessTerm::Call(p, _) => out.push((*p, tail)),
            ProcessTerm::Seq(p, q) => {
                calls(p, false, out);
                calls(q, tail, out);
            }
            ProcessTerm::Choice(p, q) | ProcessTerm::If(_, p, q) => {
                calls(p, tail, out);
                calls(q, tail, out);
            }
            ProcessTerm::Sum(_, p) | ProcessTerm::Dist(_, _, p) | ProcessTerm::At(p, _) => {
                calls(p, tail, out)
            }
            ProcessTerm::Action(_) | ProcessTerm::Delta => {}
        });
    }
    let n = bodies.len();
    let mut edges = vec![Vec::new(); n];
    for (i, body) in bodies.iter().enumerate() {
        if let Some(body) = body {
            calls(body, true, &mut edges[i]);
        }
    }
    let reach: Vec<AHashSet<usize>> = (0..n)
        .map(|from| {
            let mut seen = AHashSet::new();
            let mut todo = vec![from];
            while let Some(p) = todo.pop() {
                for (q, _) in &edges[p] {
                    if seen.insert(q.index()) {
                        todo.push(q.index());
                    }
                }
            }
            seen
        })
        .collect();
    let mut uses_stack = vec![false; n];
    for p in 0..n {
        for &(q, tail) in &edges[p] {
            if !tail && reach[q.index()].contains(&p) {
                // All processes in the strongly connected component of that cycle.
                for r in 0..n {
                    if reach[r].contains(&p) && reach[p].contains(&r) {
                        uses_stack[r] = true;
                    }
                }
            }
        }
    }
    uses_stack
}

impl<'a> AutomatonBuilder<'a> {
    pub(super) fn new(
        spec: &'a ProcSpec,
        signature: &'a mut Signature,
        bodies: Vec<Option<Rc<ProcessTerm>>>,
        open: &'a OpenConstants,
    ) -> Self {
        let uses_stack = non_regular(&bodies);
        let starts_with_dist = chance::starts_with_dist(&bodies);
        Self {
            spec,
            signature,
            open,
            bodies,
            uses_stack,
            starts_with_dist,
            sum_values: AHashMap::new(),
            sequences: Sequences::new(),
            locations: Vec::new(),
            at: Vec::new(),
            by_original: AHashMap::new(),
            by_sequence: AHashMap::new(),
            by_shape: AHashMap::new(),
            edges: Vec::new(),
            ends: Vec::new(),
            stack: None,
            renamed: AHashMap::new(),
            canonical: AHashMap::new(),
            stack_count: 0,
        }
    }

    /// Builds the automaton of a closed sequential term.
    pub(super) fn build(
        &mut self,
        name: String,
        term: Rc<ProcessTerm>,
    ) -> Result<Automaton, Diagnostic> {
        self.locations.clear();
        self.at.clear();
        self.by_sequence.clear();
        self.by_shape.clear();
        self.by_original.clear();
        self.edges.clear();
        self.ends.clear();
        self.stack = None;
        if self.reaches_stack(&term) {
            self.make_stack();
        }
        let mut values = Substitution::new();
        if let Some(stack) = &self.stack {
            values.insert(stack.var, Expr::op(self.signature, stack.empty));
        }
        let sequence = self.sequences.push(&term, Sequence::EMPTY);
        let (initial, initial_values, initial_chance) = {
            let resolve_choices = self.resolve_choices(sequence, values, Vec::new())?;
            let (initial, values) = self.enter(resolve_choices.sequence, &resolve_choices.values);
            (initial, values, resolve_choices.chance)
        };
        let mut next = 0;
        while next < self.locations.len() {
            if self.locations.len() > MAX_LOCATIONS {
                let message =
                    format!("process `{name}` has more than {MAX_LOCATIONS} control locations");
                return Err(Diagnostic::new(Stage::Process, message));
            }
            self.expand(next)?;
            next += 1;
            if next == self.locations.len() {
                self.complete_pops()?;
            }
        }
        let edges = std::mem::take(&mut self.edges);
        Ok(Automaton {
            name,
            phase: false,
            locations: std::mem::take(&mut self.locations),
            edges,
            initial_chance,
            initial,
            initial_values,
        })
    }

    fn reaches_stack(&self, term: &ProcessTerm) -> bool {
        let mut seen = AHashSet::new();
        let mut todo: Vec<Rc<ProcessTerm>> = vec![Rc::new(term.clone())];
        while let Some(t) = todo.pop() {
            match &*t {
                ProcessTerm::Call(p, _) => {
                    if self.uses_stack[p.index()] {
                        return true;
                    }
                    if seen.insert(*p)
                        && let Some(body) = &self.bodies[p.index()]
                    {
                        todo.push(body.clone());
                    }
                }
                ProcessTerm::Seq(p, q) | ProcessTerm::Choice(p, q) | ProcessTerm::If(_, p, q) => {
                    todo.extend([p.clone(), q.clone()])
                }
                ProcessTerm::Sum(_, p) | ProcessTerm::Dist(_, _, p) | ProcessTerm::At(p, _) => {
                    todo.push(p.clone())
                }
                ProcessTerm::Action(_) | ProcessTerm::Delta => {}
            }
        }
        false
    }

    fn make_stack(&mut self) {
        let n = self.stack_count;
        self.stack_count += 1;
        let sort = self.signature.sorts.declare(format!("Stack{n}"), true);
        let empty = self.add_constructor(sort, format!("empty_stack{n}"), &[]);
        let var = self.signature.fresh_var(format!("stack{n}"), sort);
        self.stack = Some(Stack { sort, var, empty, frames: Vec::new(), by_rest: AHashMap::new() });
    }

    fn add_constructor(&mut self, sort: SortId, name: String, args: &[SortId]) -> OpId {
        let full = if args.is_empty() {
            sort
        } else {
            self.signature.sorts.intern(SortKind::Function(args.into(), sort))
        };
        let SortKind::Named(named) = *self.signature.sorts.kind(sort) else {
            unreachable!("stack sorts are declared")
        };
        let index = narrow::index(self.signature.sorts.named[named as usize].constructors.len());
        let op = self.signature.add_op(Op { name, sort: full, kind: OpKind::Constructor(index) });
        self.signature.sorts.named[named as usize].constructors.push(op);
        op
    }

    /// Returns the kind of frame for a continuation after a call.
    fn frame(&mut self, rest: Sequence) -> usize {
        if let Some(&f) = self.stack.as_ref().expect("frames need a stack").by_rest.get(&rest) {
            return f;
        }
        let vars = self.sequences.vars(rest).to_vec();
        let stack = self.stack.as_ref().expect("frames need a stack");
        let (sort, index) = (stack.sort, stack.frames.len());
        let mut args: Vec<SortId> = vars.iter().map(|v| self.signature.var(*v).sort).collect();
        args.push(sort);
        let base = format!("{}_frame{index}", self.signature.sorts.text(sort).to_lowercase());
        let constructor = self.add_constructor(sort, base.clone(), &args);
        let bool_fun = self.signature.sorts.intern(SortKind::Function([sort].into(), basic::BOOL));
        let kind = OpKind::Recogniser(vec![constructor]);
        let recogniser =
            self.signature.add_op(Op { name: format!("is_{base}"), sort: bool_fun, kind });
        let projections = (args.iter().enumerate())
            .map(|(i, &arg)| {
                let fun = self.signature.sorts.intern(SortKind::Function([sort].into(), arg));
                let kind = OpKind::Projection(vec![(constructor, narrow::index(i))]);
                self.signature.add_op(Op { name: format!("{base}_{i}"), sort: fun, kind })
            })
            .collect();
        let stack = self.stack.as_mut().expect("frames need a stack");
        stack.frames.push(StackFrame { rest, vars, constructor, recogniser, projections });
        stack.by_rest.insert(rest, index);
        index
    }

    /// Returns the stack with a continuation pushed onto it.
    fn push_frame(&mut self, rest: Sequence, below: Expr, values: &Substitution) -> Expr {
        let frame = self.frame(rest);
        let frame = &self.stack.as_ref().expect("frames need a stack").frames[frame];
        let mut args: Vec<Expr> =
            frame.vars.iter().map(|v| Expr::var(self.signature, *v).substitute(values)).collect();
        args.push(below);
        Expr::apply(self.signature, frame.constructor, args)
    }

    /// Returns the location of a sequence and the values of its variables. `values` gives those of
    /// the sequence's own free variables; a variable that is absent is unchanged. Does not resolve
    /// conditionals.
    fn enter(
        &mut self,
        mut sequence: Sequence,
        values: &Substitution,
    ) -> (usize, Vec<(VarId, Expr)>) {
        let mut values = values.clone();
        let mut stack_value = self.stack.as_ref().map(|s| Expr::var(self.signature, s.var));
        if let Some(v) = self.stack.as_ref().and_then(|s| values.get(&s.var)) {
            stack_value = Some(v.clone());
        }
        if let Some(ProcessTerm::Call(p, args)) = self.sequences.first(sequence).map(|t| &**t) {
            let (p, args) = (*p, args.clone());
            let mut rest = self.sequences.rest(sequence);
            if self.uses_stack[p.index()] && !rest.is_empty() {
                let below = stack_value
                    .take()
                    .expect("a component that calls a uses_stack process has a stack");
                stack_value = Some(self.push_frame(rest, below, &values));
                rest = Sequence::EMPTY;
            }
            // Abstracts the arguments into the process's parameters (renamed if the continuation
            // uses them too).
            let rest_vars = self.sequences.vars(rest);
            let params = self.spec.procs[p.index()].params.clone();
            let mut formals = Vec::new();
            let mut new_values = Vec::new();
            for (param, arg) in params.into_iter().zip(&args) {
                let formal =
                    if rest_vars.contains(&param) { self.rename(param, &rest_vars) } else { param };
                formals.push(Expr::var(self.signature, formal));
                new_values.push((formal, arg.substitute(&values)));
            }
            values.extend(new_values);
            sequence = self.sequences.push(&Rc::new(ProcessTerm::Call(p, formals)), rest);
        }
        let own = self.sequences.vars(sequence);
        let location = self.location(sequence);
        let mut known = own.iter();
        let assigns = (self.locations[location].vars.iter())
            .map(|v| {
                if self.stack.as_ref().is_some_and(|s| s.var == *v) {
                    return (*v, stack_value.clone().expect("has a stack"));
                }
                // The location may have been created under other names of the same variables.
                let mine = known.next().expect("equal sequences have as many variables");
                (*v, values.get(mine).cloned().unwrap_or_else(|| Expr::var(self.signature, *mine)))
            })
            .collect();
        (location, assigns)
    }

    /// Returns the variables of the location, of the sums around, and of the continuation.
    fn in_use(&self, at: &Unfolding, rest: Sequence) -> Vec<VarId> {
        let mut vars: Vec<VarId> =
            self.locations[at.from].vars.iter().chain(&at.sum_vars).copied().collect();
        for &sequence in at.after.iter().chain([&rest]) {
            vars.extend_from_slice(&self.sequences.vars(sequence));
        }
        vars
    }

    /// Renames bound variables of the term that are among `free`.
    fn rename_bound(&mut self, term: &Rc<ProcessTerm>, free: &[VarId]) -> Rc<ProcessTerm> {
        if !term.sums_over(free) {
            return term.clone();
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            Rc::new(match &**term {
                ProcessTerm::Choice(p, q) => {
                    ProcessTerm::Choice(self.rename_bound(p, free), self.rename_bound(q, free))
                }
                ProcessTerm::Seq(p, q) => {
                    ProcessTerm::Seq(self.rename_bound(p, free), self.rename_bound(q, free))
                }
                ProcessTerm::If(c, p, q) => ProcessTerm::If(
                    c.clone(),
                    self.rename_bound(p, free),
                    self.rename_bound(q, free),
                ),
                ProcessTerm::Sum(vars, p) => {
                    let fresh: Vec<VarId> = vars.iter().map(|v| self.rename(*v, free)).collect();
                    let by: Substitution = vars
                        .iter()
                        .zip(&fresh)
                        .filter(|(v, w)| v != w)
                        .map(|(v, w)| (*v, Expr::var(self.signature, *w)))
                        .collect();
                    ProcessTerm::Sum(fresh, self.rename_bound(p, free).substitute(&by))
                }
                ProcessTerm::Dist(vars, w, p) => {
                    let fresh: Vec<VarId> = vars.iter().map(|v| self.rename(*v, free)).collect();
                    let by: Substitution = vars
                        .iter()
                        .zip(&fresh)
                        .filter(|(v, w)| v != w)
                        .map(|(v, w)| (*v, Expr::var(self.signature, *w)))
                        .collect();
                    ProcessTerm::Dist(
                        fresh,
                        w.substitute(&by),
                        self.rename_bound(p, free).substitute(&by),
                    )
                }
                ProcessTerm::At(p, t) => ProcessTerm::At(self.rename_bound(p, free), t.clone()),
                ProcessTerm::Action(_) | ProcessTerm::Call(..) | ProcessTerm::Delta => {
                    return term.clone();
                }
            })
        })
    }

    /// Returns a variable in place of `var` that is not among `taken`; the same one each time.
    pub(super) fn rename(&mut self, var: VarId, taken: &[VarId]) -> VarId {
        let mut candidate = var;
        while taken.contains(&candidate) {
            candidate = match self.renamed.get(&candidate) {
                Some(&v) => v,
                None => {
                    let fresh = self.signature.copy_var(candidate);
                    self.renamed.insert(candidate, fresh);
                    fresh
                }
            };
        }
        candidate
    }

    /// Returns the location of a sequence. Sequences that differ only in the names of their
    /// variables are one location.
    fn location(&mut self, sequence: Sequence) -> usize {
        if let Some(&l) = self.by_original.get(&sequence) {
            return l;
        }
        let shape = self.sequences.shape(sequence);
        // Most locations have a unique shape and need no canonical names.
        let mut alike = self.by_shape.get(&shape).copied();
        if let Some(ShapeLocations::One(l)) = alike {
            let key = self.canonical(self.at[l]);
            self.by_sequence.insert(key, l);
            alike = Some(ShapeLocations::Several);
        }
        let l = self.locations.len();
        if alike.is_some() {
            let key = self.canonical(sequence);
            if let Some(&l) = self.by_sequence.get(&key) {
                self.by_shape.insert(shape, ShapeLocations::Several);
                self.by_original.insert(sequence, l);
                return l;
            }
            self.by_sequence.insert(key, l);
        }
        self.by_shape.insert(shape, alike.unwrap_or(ShapeLocations::One(l)));
        let vars = self.sequences.vars(sequence);
        let over = self.sequences.first(sequence).is_none_or(|t| matches!(**t, ProcessTerm::Delta));
        let stack = self.stack.as_ref().filter(|_| !over).map(|s| s.var);
        self.locations.push(Location {
            vars: stack.into_iter().chain(vars.iter().copied()).collect(),
            terminated: sequence.is_empty(),
        });
        self.at.push(sequence);
        self.by_original.insert(sequence, l);
        l
    }

    /// Returns the sequence with canonical variables in place of its own.
    fn canonical(&mut self, sequence: Sequence) -> Sequence {
        let vars = self.sequences.vars(sequence);
        let mut canonical = Vec::with_capacity(vars.len());
        for (i, v) in vars.iter().enumerate() {
            let sort = self.signature.var(*v).sort;
            let signature = &mut *self.signature;
            canonical.push(
                *self
                    .canonical
                    .entry((i, sort))
                    .or_insert_with(|| signature.fresh_var(format!("v{i}"), sort)),
            );
        }
        self.sequences.rename(self.signature, sequence, &canonical)
    }

    /// Computes all targets of a continuation, resolving initial conditionals. `taken`: variables
    /// that probabilistic choices must avoid.
    fn targets(
        &mut self,
        sequence: Sequence,
        guard: Vec<Expr>,
        values: &Substitution,
        taken: &[VarId],
        out: &mut Vec<StepTarget>,
    ) -> Result<(), Diagnostic> {
        let first = self.sequences.first(sequence).cloned();
        match first.as_deref() {
            Some(ProcessTerm::If(c, p, q)) => {
                let (c, rest) = (c.substitute(values), self.sequences.rest(sequence));
                for (condition, branch) in [(c.clone(), p), (Expr::negate(self.signature, c), q)] {
                    let mut guard = guard.clone();
                    match condition.as_bool(self.signature) {
                        Some(false) => continue,
                        Some(true) => {}
                        None => guard.push(condition),
                    }
                    let sequence = self.sequences.push(branch, rest);
                    self.targets(sequence, guard, values, taken, out)?;
                }
            }
            None if self.stack.is_some() => {
                // Pops are completed when all frames are known.
                out.push(StepTarget { guard, to: None, assigns: Vec::new(), chance: None });
            }
            _ => {
                let resolve_choices =
                    self.resolve_choices(sequence, values.clone(), taken.to_vec())?;
                let (to, assigns) = self.enter(resolve_choices.sequence, &resolve_choices.values);
                out.push(StepTarget {
                    guard,
                    to: Some(to),
                    assigns,
                    chance: resolve_choices.chance,
                });
            }
        }
        Ok(())
    }

    /// Adds the edges of a location.
    fn expand(&mut self, from: usize) -> Result<(), Diagnostic> {
        let sequence = self.at[from];
        let Some(first) = self.sequences.first(sequence).cloned() else { return Ok(()) };
        let mut at = Unfolding {
            from,
            sum_vars: vec![],
            guard: vec![],
            had_sum: false,
            time: None,
            calls: vec![],
            after: vec![],
        };
        self.unfold(&first, self.sequences.rest(sequence), &Substitution::new(), &mut at)
    }

    /// Adds the edges of a term followed by `rest`. `values` gives the values of variables that
    /// neither the location nor a sum around has: the parameters of inlined processes. They stay
    /// variables in the continuation, so that a process that counts (`P(n) = a . (b + P(n + 1))`)
    /// has as many locations as its text.
    fn unfold(
        &mut self,
        term: &Rc<ProcessTerm>,
        rest: Sequence,
        values: &Substitution,
        at: &mut Unfolding,
    ) -> Result<(), Diagnostic> {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &**term {
            ProcessTerm::Delta => Ok(()),
            ProcessTerm::Choice(p, q) => {
                self.unfold(p, rest, values, at)?;
                self.unfold(q, rest, values, at)
            }
            ProcessTerm::Seq(p, q) => {
                let longer = self.sequences.push(q, rest);
                self.unfold(p, longer, values, at)
            }
            ProcessTerm::If(c, p, q) => {
                let c = c.substitute(values);
                for (condition, branch) in [(c.clone(), p), (Expr::negate(self.signature, c), q)] {
                    if matches!(**branch, ProcessTerm::Delta) {
                        continue;
                    }
                    match condition.as_bool(self.signature) {
                        Some(false) => {}
                        Some(true) => self.unfold(branch, rest, values, at)?,
                        None => {
                            at.guard.push(condition);
                            self.unfold(branch, rest, values, at)?;
                            at.guard.pop();
                        }
                    }
                }
                Ok(())
            }
            ProcessTerm::Sum(vars, p) => {
                let mut taken = self.in_use(at, rest);
                let mut by = Substitution::new();
                let n = at.sum_vars.len();
                for v in vars {
                    let fresh = self.rename(*v, &taken);
                    taken.push(fresh);
                    if fresh != *v {
                        by.insert(*v, Expr::var(self.signature, fresh));
                    }
                    at.sum_vars.push(fresh);
                }
                let had_sum = std::mem::replace(&mut at.had_sum, true);
                self.unfold(&p.substitute(&by), rest, values, at)?;
                at.had_sum = had_sum;
                at.sum_vars.truncate(n);
                Ok(())
            }
            ProcessTerm::Call(p, args) => self.unfold_call(*p, args, rest, values, at),
            ProcessTerm::Action(acts) => self.unfold_action(acts, rest, values, at),
            ProcessTerm::At(p, t) => self.unfold_at(p, &t.substitute(values), rest, values, at),
            ProcessTerm::Dist(..) => {
                Err(Diagnostic::internal("a location starts with a probabilistic choice"))
            }
        })
    }

    /// Adds the edges of a term with its first action at a given time; if the action has its own
    /// time, both must be equal.
    fn unfold_at(
        &mut self,
        term: &Rc<ProcessTerm>,
        time: &Expr,
        rest: Sequence,
        values: &Substitution,
        at: &mut Unfolding,
    ) -> Result<(), Diagnostic> {
        let outer = at.time.replace(time.clone());
        let same =
            outer.as_ref().map(|outer| Expr::equal(self.signature, outer.clone(), time.clone()));
        at.guard.extend(same.clone());
        self.unfold(term, rest, values, at)?;
        if same.is_some() {
            at.guard.pop();
        }
        at.time = outer;
        Ok(())
    }

    /// Adds the edges of a call by inlining the body of the process.
    fn unfold_call(
        &mut self,
        p: ProcId,
        args: &[Expr],
        rest: Sequence,
        values: &Substitution,
        at: &mut Unfolding,
    ) -> Result<(), Diagnostic> {
        let def = &self.spec.procs[p.index()];
        if at.calls.contains(&p) {
            let message = format!(
                "unguarded recursion: process `{}` calls itself before its first action",
                def.name
            );
            let mut path: Vec<&str> = at
                .calls
                .iter()
                .skip_while(|c| **c != p)
                .map(|c| self.spec.procs[c.index()].name.as_str())
                .collect();
            path.push(&def.name);
            return Err(Diagnostic::at(Stage::Process, def.span, message)
                .note(format!("the calls: {}", path.join(" -> ")))
                .note("put an action before the recursive call, as in `P = a . P`"));
        }
        let params = def.params.clone();
        let mut taken = self.in_use(at, rest);
        taken.extend(values.keys());
        args.iter().for_each(|a| a.free_vars(&mut taken));
        let mut inner = values.clone();
        let mut by = Substitution::new();
        for (param, arg) in params.into_iter().zip(args) {
            let formal = match arg.kind {
                ExprKind::Var(v) => v,
                _ => {
                    let formal = self.rename(param, &taken);
                    taken.push(formal);
                    inner.insert(formal, arg.substitute(values));
                    formal
                }
            };
            if formal != param {
                by.insert(param, Expr::var(self.signature, formal));
            }
        }
        let body = self.bodies[p.index()]
            .clone()
            .expect("calls of sequential terms are to sequential processes");
        // A process that continues within the scope of its own sum: its variables occur in the
        // arguments.
        let mut free = Vec::new();
        by.values().for_each(|e| e.free_vars(&mut free));
        let body = self.rename_bound(&body, &free);
        at.calls.push(p);
        if self.uses_stack[p.index()] && !rest.is_empty() {
            at.after.push(rest);
            self.unfold(&body.substitute(&by), Sequence::EMPTY, &inner, at)?;
            at.after.pop();
        } else {
            self.unfold(&body.substitute(&by), rest, &inner, at)?;
        }
        at.calls.pop();
        Ok(())
    }

    /// Adds an edge for each target of an action.
    fn unfold_action(
        &mut self,
        acts: &[Act],
        rest: Sequence,
        values: &Substitution,
        at: &Unfolding,
    ) -> Result<(), Diagnostic> {
        let mut targets = Vec::new();
        let taken = self.in_use(at, rest);
        match at.after.split_last() {
            None => self.targets(rest, Vec::new(), values, &taken, &mut targets)?,
            Some((&last, before)) => {
                // The action ends the innermost call, or the call has a continuation before that of
                // its caller.
                let (next, over) =
                    if rest.is_empty() { (last, before) } else { (rest, &at.after[..]) };
                let var =
                    self.stack.as_ref().expect("the continuation of such a call is on a stack").var;
                let below = Expr::var(self.signature, var);
                let stack = over.iter().fold(below, |below, &s| self.push_frame(s, below, values));
                let mut values = values.clone();
                values.insert(var, stack);
                self.targets(next, Vec::new(), &values, &taken, &mut targets)?;
            }
        }
        let acts: Vec<Act> = acts
            .iter()
            .map(|a| Act {
                args: a.args.iter().map(|e| e.substitute(values)).collect(),
                ..a.clone()
            })
            .collect();
        for target in targets {
            let mut guard = at.guard.clone();
            guard.extend(target.guard);
            let step = OpenEdge {
                from: at.from,
                sum_vars: at.sum_vars.clone(),
                guard,
                acts: acts.clone(),
                time: at.time.clone(),
                had_sum: at.had_sum,
            };
            match target.to {
                Some(to) => self.edges.push(step.to(to, target.assigns, target.chance)),
                None => self.ends.push(step),
            }
        }
        Ok(())
    }

    /// Adds the pops of each edge that ends a process: one for each kind of frame so far, and
    /// termination.
    fn complete_pops(&mut self) -> Result<(), Diagnostic> {
        let Some(stack) = &self.stack else { return Ok(()) };
        let (var, empty, count) = (stack.var, stack.empty, stack.frames.len());
        let ends = std::mem::take(&mut self.ends);
        // All pops are recomputed: `expand` is complete for all known locations, so only new kinds
        // of frames can add edges.
        let mut done: AHashSet<(usize, Vec<Expr>, Vec<Act>, Option<Expr>, usize)> = AHashSet::new();
        for e in &self.edges {
            done.insert((e.from, e.guard.clone(), e.acts.clone(), e.time.clone(), e.to));
        }
        for end in &ends {
            let stack_now = Expr::var(self.signature, var);
            for f in 0..count {
                let (rest, vars, recogniser, projections) = {
                    let frame = &self.stack.as_ref().expect("has a stack").frames[f];
                    (frame.rest, frame.vars.clone(), frame.recogniser, frame.projections.clone())
                };
                let mut values = Substitution::new();
                for (v, projection) in vars.iter().zip(&projections) {
                    values.insert(
                        *v,
                        Expr::apply(self.signature, *projection, vec![stack_now.clone()]),
                    );
                }
                let below = Expr::apply(
                    self.signature,
                    *projections.last().expect("the stack below"),
                    vec![stack_now.clone()],
                );
                values.insert(var, below);
                let mut targets = Vec::new();
                let mut taken = self.locations[end.from].vars.clone();
                taken.extend(&end.sum_vars);
                let is_frame =
                    vec![Expr::apply(self.signature, recogniser, vec![stack_now.clone()])];
                self.targets(rest, is_frame, &values, &taken, &mut targets)?;
                for target in targets {
                    let mut guard = end.guard.clone();
                    guard.extend(target.guard);
                    let step = OpenEdge { guard, ..end.clone() };
                    let to = target.to.expect("the continuation of a frame is not empty");
                    let time = step.time.clone();
                    if done.insert((step.from, step.guard.clone(), step.acts.clone(), time, to)) {
                        self.edges.push(step.to(to, target.assigns, target.chance));
                    }
                }
            }
            let mut guard = end.guard.clone();
            let empty = Expr::op(self.signature, empty);
            guard.push(Expr::equal(self.signature, stack_now, empty));
            let terminated = self.location(Sequence::EMPTY);
            let key = (end.from, guard.clone(), end.acts.clone(), end.time.clone(), terminated);
            if done.insert(key) {
                self.edges.push(OpenEdge { guard, ..end.clone() }.to(terminated, Vec::new(), None));
            }
        }
        self.ends = ends;
        Ok(())
    }
}
