//! Linearisation: from a typed process specification to a linear process.
//!
//! - `term`: equations become sequential terms;
//! - `sequential`: each parallel component becomes an automaton with data;
//! - `simplify`: constants and duplicates go, per location;
//! - `network`: communication, allow, hide, rename, block are multiplied out, as far as something allowed can come of it;
//! - `assemble`: locations and variables become parameters.
//!
//! The linear process has exactly the states (process instances and their live arguments) that the text describes: an argument that
//! no longer occurs in what is left to do is reset to a default value, and nothing else is merged.

mod assemble;
mod network;
mod sequential;
mod simplify;
mod term;

use self::network::{Composer, Name, Names, Network};
use self::sequential::{Automaton, Builder};
use crate::base::ids::VarId;
use crate::base::{Diagnostic, Stage};
use crate::data::expr::{Expr, Substitution};
use crate::data::signature::Signature;
use crate::process::linear::LinearProcess;
use crate::process::spec::{Proc, ProcKind, ProcSpec};
use ahash::AHashMap;
use std::rc::Rc;

pub use self::assemble::default_value;

/// What linearisation may do besides.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Remove variables that are constant at a location.
    pub constants: bool,
    /// Remove variables that equal another one at a location.
    pub duplicates: bool,
    /// Refuse to build more summands than this.
    pub max_summands: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { constants: true, duplicates: true, max_summands: 2_000_000 }
    }
}

/// Linearises a specification.
///
/// Errors: unguarded recursion, constructs without untimed meaning, parallel operators in a place that has no finite network, each
/// with its place.
pub fn linearise(spec: &ProcSpec, options: &Options) -> Result<LinearProcess, Diagnostic> {
    let mut data = spec.data.clone();
    let parallel = term::parallel_equations(spec);
    let mut bodies = Vec::with_capacity(spec.procs.len());
    let reachable = reachable_equations(spec);
    for (i, def) in spec.procs.iter().enumerate() {
        bodies.push(if parallel[i] || !reachable[i] { None } else { Some(term::convert(&def.body)?) });
    }
    let mut names = Names::new(&spec.actions);
    let mut layout = Layout { spec, parallel: &parallel, names: &mut names, components: Vec::new(), calls: Vec::new() };
    let network = layout.network(&spec.init, &Substitution::new())?;
    let components = layout.components;
    let titles = titles(&components, &data.signature);
    let mut builder = Builder::new(spec, &mut data.signature, bodies);
    let mut automata = Vec::new();
    for component in components {
        automata.push(match component {
            Component::Term(name, _, term) => {
                let automaton = builder.build(name, term)?;
                let mut automaton = rename_apart(automaton, builder.signature);
                if options.constants {
                    simplify::constants(&mut automaton);
                }
                if options.duplicates {
                    simplify::duplicates(&mut automaton, builder.signature);
                }
                automaton
            }
            Component::Phase => Automaton::phase(),
        });
    }
    let mut composer = Composer {
        automata: &automata,
        names: &names,
        signature: &mut data.signature,
        actions: &spec.actions,
        rewritten: data.equations.iter().filter_map(|e| e.lhs.head()).collect(),
        limit: options.max_summands,
    };
    let combined = composer.compose(&network)?;
    let mut process = assemble::assemble(spec, data, &automata, combined)?;
    process.components = titles;
    Ok(process)
}

/// Names of the components for people: those of their processes, with the arguments that tell instances of one process apart.
fn titles(components: &[Component], signature: &Signature) -> Vec<String> {
    let all: Vec<(&str, Vec<String>)> = (components.iter())
        .map(|c| match c {
            Component::Term(name, args, _) => (name.as_str(), args.iter().map(|e| crate::data::print::expression(signature, e)).collect()),
            Component::Phase => ("phase", Vec::new()),
        })
        .collect();
    let mut titles = Vec::new();
    for (i, (name, args)) in all.iter().enumerate() {
        let mut rivals: Vec<usize> = (0..all.len()).filter(|&j| j != i && all[j].0 == *name).collect();
        let alone = rivals.is_empty();
        let mut shown = Vec::new();
        for (k, arg) in args.iter().enumerate() {
            if rivals.iter().any(|&j| all[j].1.get(k) != Some(arg)) {
                rivals.retain(|&j| all[j].1.get(k) == Some(arg));
                shown.push(arg.as_str());
            }
        }
        let number = if rivals.is_empty() { String::new() } else { format!(" {}", 1 + rivals.iter().filter(|&&j| j < i).count()) };
        titles.push(if alone || shown.is_empty() { format!("{name}{number}") } else { format!("{name}({}){number}", shown.join(", ")) });
    }
    titles
}

/// Equations that the initial process reaches; the others are not converted, so what is unsupported in them does not matter.
fn reachable_equations(spec: &ProcSpec) -> Vec<bool> {
    let mut seen = vec![false; spec.procs.len()];
    let mut todo = vec![&spec.init];
    while let Some(p) = todo.pop() {
        match &p.kind {
            ProcKind::Call(id, _) => {
                if !std::mem::replace(&mut seen[id.index()], true) {
                    todo.push(&spec.procs[id.index()].body);
                }
            }
            ProcKind::Action(..) | ProcKind::Delta | ProcKind::Tau => {}
            ProcKind::Choice(a, b)
            | ProcKind::Seq(a, b)
            | ProcKind::Parallel(a, b)
            | ProcKind::LeftMerge(a, b)
            | ProcKind::Sync(a, b)
            | ProcKind::BoundedInit(a, b) => todo.extend([&**a, &**b]),
            ProcKind::If(_, a, b) => {
                todo.push(a);
                todo.extend(b.as_deref());
            }
            ProcKind::At(a, _)
            | ProcKind::Sum(_, a)
            | ProcKind::Dist(_, _, a)
            | ProcKind::Block(_, a)
            | ProcKind::Allow(_, a)
            | ProcKind::Hide(_, a)
            | ProcKind::Rename(_, a)
            | ProcKind::Comm(_, a) => todo.push(a),
        }
    }
    seen
}

enum Component {
    /// A name, the arguments of the process instance, and the term.
    Term(String, Vec<Expr>, Rc<term::Term>),
    /// Remembers whether a left merge or synchronisation has done its first step.
    Phase,
}

/// Unfolds the parallel layer from `init` into a network over components.
struct Layout<'a> {
    spec: &'a ProcSpec,
    parallel: &'a [bool],
    names: &'a mut Names,
    components: Vec<Component>,
    calls: Vec<crate::base::ids::ProcId>,
}

impl Layout<'_> {
    fn network(&mut self, proc: &Proc, by: &Substitution) -> Result<Network, Diagnostic> {
        if term::is_sequential(proc, self.parallel) {
            let term = term::convert(proc)?.substitute(by);
            let (name, args) = match &proc.kind {
                ProcKind::Call(p, args) => (self.spec.procs[p.index()].name.clone(), args.iter().map(|a| a.substitute(by)).collect()),
                _ => ("init".to_string(), Vec::new()),
            };
            self.components.push(Component::Term(name, args, term));
            return Ok(Network::Component(self.components.len() - 1));
        }
        let set = |this: &mut Self, names: &[String]| names.iter().map(|n| this.names.intern(n)).collect();
        let bag = |this: &mut Self, names: &[String]| {
            let mut bag: Vec<Name> = names.iter().map(|n| this.names.intern(n)).collect();
            bag.sort_unstable();
            bag
        };
        stacker::maybe_grow(64 << 10, 1 << 20, || match &proc.kind {
            ProcKind::Parallel(p, q) => {
                let mut children = Vec::new();
                for child in [p, q] {
                    match self.network(child, by)? {
                        Network::Parallel(more) => children.extend(more),
                        one => children.push(one),
                    }
                }
                Ok(Network::Parallel(children))
            }
            ProcKind::LeftMerge(p, q) | ProcKind::Sync(p, q) => {
                let left = Box::new(self.network(p, by)?);
                let right = Box::new(self.network(q, by)?);
                self.components.push(Component::Phase);
                let sync = matches!(proc.kind, ProcKind::Sync(..));
                Ok(Network::First { sync, phase: self.components.len() - 1, left, right })
            }
            ProcKind::Call(p, args) => {
                if self.calls.contains(p) {
                    let def = &self.spec.procs[p.index()];
                    let message =
                        format!("process `{}` has a parallel operator in its recursion, so it has no finite linear process", def.name);
                    return Err(Diagnostic::at(Stage::Process, proc.span, message)
                        .note("parallel operators may stand outside the recursion only, as in `init P || Q` with sequential P and Q"));
                }
                let def = &self.spec.procs[p.index()];
                let inner: Substitution = def.params.iter().copied().zip(args.iter().map(|a| a.substitute(by))).collect();
                self.calls.push(*p);
                let network = self.network(&def.body, &inner);
                self.calls.pop();
                network
            }
            ProcKind::Block(names, p) => Ok(Network::Block(set(self, names), Box::new(self.network(p, by)?))),
            ProcKind::Hide(names, p) => Ok(Network::Hide(set(self, names), Box::new(self.network(p, by)?))),
            ProcKind::Allow(bags, p) => {
                let bags = bags.iter().map(|b| bag(self, b)).collect();
                Ok(Network::Allow(bags, Box::new(self.network(p, by)?)))
            }
            ProcKind::Rename(pairs, p) => {
                let map: AHashMap<Name, Name> = pairs.iter().map(|(a, b)| (self.names.intern(a), self.names.intern(b))).collect();
                Ok(Network::Rename(map, Box::new(self.network(p, by)?)))
            }
            ProcKind::Comm(rules, p) => {
                let rules = (rules.iter()).map(|(lhs, to)| (bag(self, lhs), to.as_ref().map(|t| self.names.intern(t)))).collect();
                Ok(Network::Comm(rules, Box::new(self.network(p, by)?)))
            }
            // Not sequential because of what is inside: conversion says what and where.
            _ => Err(term::convert(proc).err().unwrap_or_else(|| {
                Diagnostic::at(
                    Stage::Unsupported,
                    proc.span,
                    "a process with parallel operators inside `.`, `+`, `sum` or a conditional is not supported",
                )
            })),
        })
    }
}

/// A copy of an automaton whose variables are its own, so that two copies of one process can stand side by side. Sum variables become
/// different from all variables of locations: as written, a variable that is summed over and then kept is one and the same.
fn rename_apart(mut automaton: Automaton, signature: &mut Signature) -> Automaton {
    let mut map: AHashMap<VarId, VarId> = AHashMap::new();
    for v in automaton.locations.iter().flat_map(|l| &l.vars) {
        if !map.contains_key(v) {
            map.insert(*v, signature.copy_var(*v));
        }
    }
    let of_locations: Substitution = map.iter().map(|(v, w)| (*v, Expr::var(signature, *w))).collect();
    for location in &mut automaton.locations {
        location.vars.iter_mut().for_each(|v| *v = map[v]);
    }
    for (v, _) in &mut automaton.initial_values {
        *v = map[v];
    }
    for edge in &mut automaton.edges {
        let mut by = of_locations.clone();
        for v in &mut edge.sum_vars {
            let own = signature.copy_var(*v);
            by.insert(*v, Expr::var(signature, own));
            *v = own;
        }
        edge.guard.iter_mut().for_each(|g| *g = g.substitute(&by));
        edge.acts.iter_mut().flat_map(|a| a.args.iter_mut()).for_each(|e| *e = e.substitute(&by));
        for (v, e) in &mut edge.assigns {
            *v = map[v];
            *e = e.substitute(&by);
        }
    }
    automaton
}
