//! Linearisation: transformation of a typed process specification to a linear process.
//!
//! - `term`: equations become sequential terms;
//! - `termination`: continuations of processes that never terminate are removed;
//! - `sequential`: each parallel component becomes an automaton with data;
//! - `chance`, `sum_over_dist`: probabilistic choices move in front of locations;
//! - `simplify`: constants, duplicates and, if requested, dead variables are removed, per location;
//! - `fold`: locations become data if composition would multiply too many edges;
//! - `network`: communication, allow, hide, rename, block are multiplied out, as far as the result
//!   may be allowed;
//! - `assemble`: locations and variables become parameters.
//!
//! The linear process has exactly the states (process instances and their live arguments) that the
//! text describes: an argument that does not occur in the continuation is reset to a default value,
//! and no other states are merged.

mod assemble;
mod chance;
mod termination;
mod fold;
mod network;
mod composition;
mod sequence;
mod sequential;
mod simplify;
mod sum_over_dist;
mod term;

use self::assemble::Placeholders;
use self::fold::Fold;
use self::network::{ActionNames, Combined, Composer, Name, Network};
use self::sequential::{Automaton, AutomatonBuilder};
use crate::linear::LinearProcess;
use crate::open_constants::{self, OpenConstants};
use crate::spec::{Proc, ProcKind, ProcSpec};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{OpId, ProcId, VarId};
use mu_base::{Diagnostic, Stage};
use mu_data::engine::{Engine, Program};
use mu_data::expr::{DataSpec, Expr, Substitution};
use mu_data::signature::Signature;
use std::rc::Rc;

pub use self::assemble::{default_value, placeholder_name};

/// Options of linearisation.
#[derive(Clone, Debug)]
pub struct LineariserOptions {
    /// Remove variables that are constant at a location.
    pub constants: bool,
    /// Remove variables that equal another one at a location.
    pub duplicates: bool,
    /// Remove sum variables that a conjunct `x == e` of the condition determines.
    pub eliminate: bool,
    /// Remove summands that are unreachable by control flow.
    pub control: bool,
    /// Remove parameters on which nothing depends; this may merge states that are strongly
    /// bisimilar.
    pub dead: bool,
    /// Replace sums over small finite sorts by a summand for each value.
    pub instantiate: bool,
    /// Replace parameters that are records by their fields, if summands then depend on few of
    /// them.
    pub unfold: bool,
    /// With `unfold`: create a summand for each value of a parameter that selects fields of other
    /// parameters. The result names the values, so this is off for a sort that stands for sorts of
    /// any size.
    pub positions: bool,
    /// With `unfold`: constants of sorts that stand for sorts of any size. Sums over these sorts
    /// are not replaced by a summand for each constant.
    pub any_size: Vec<String>,
    /// Constants without a value, which stand for any value. Terms that depend on one are not
    /// evaluated.
    pub open_constants: Vec<String>,
    /// Limit on summands above which composition folds the locations of components into data.
    pub fold_above: usize,
    /// Minimum factor by which folding must reduce the summands, since those of folded components
    /// are tried in every state.
    pub fold_gain: usize,
    /// Limit on summands; beyond it, linearisation fails.
    pub max_summands: usize,
}

impl Default for LineariserOptions {
    fn default() -> Self {
        Self {
            constants: true,
            duplicates: true,
            eliminate: true,
            control: true,
            dead: false,
            instantiate: false,
            unfold: true,
            positions: true,
            any_size: Vec::new(),
            open_constants: Vec::new(),
            fold_above: 5_000,
            fold_gain: 50,
            max_summands: 2_000_000,
        }
    }
}

impl LineariserOptions {
    /// Names of the simplifications.
    pub const SIMPLIFICATIONS: [&str; 7] =
        ["constants", "duplicates", "eliminate", "control", "unfold", "dead", "instantiate"];

    /// Returns options without any simplification.
    pub fn plain() -> Self {
        Self::default().with_all(false)
    }

    /// Switches all simplifications on or off.
    #[must_use]
    pub fn with_all(mut self, on: bool) -> Self {
        Self::SIMPLIFICATIONS
            .iter()
            .for_each(|name| *self.simplification(name).expect("its own name") = on);
        self
    }

    /// Returns options for processes with sorts that may stand for sorts of any size: the result
    /// names no values that the specification does not name. `open_constants`: constants without a
    /// value.
    pub fn of_any_size(open_constants: &[String]) -> Self {
        let open_constants = open_constants.to_vec();
        Self { positions: false, open_constants, ..Self::default() }
    }

    /// Returns options for processes with any number of equal components: the form of a summand
    /// depends only on the components that take part in it. `open_constants`: constants without a
    /// value, including lists of all identities.
    pub fn of_any_number(open_constants: &[String]) -> Self {
        Self {
            open_constants: open_constants.to_vec(),
            unfold: false,
            control: false,
            positions: false,
            fold_above: usize::MAX,
            ..Self::default()
        }
    }

    /// Folds all components that take part in compositions and become smaller by it.
    #[must_use]
    pub fn with_all_folded(self) -> Self {
        Self { fold_above: 0, fold_gain: 0, ..self }
    }

    /// Returns the switch of a simplification; `None` if there is none of this name.
    pub fn simplification(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "constants" => &mut self.constants,
            "duplicates" => &mut self.duplicates,
            "eliminate" => &mut self.eliminate,
            "control" => &mut self.control,
            "dead" => &mut self.dead,
            "instantiate" => &mut self.instantiate,
            "unfold" => &mut self.unfold,
            _ => return None,
        })
    }
}

/// Limit on summands for control-flow analysis; above it, the analysis is skipped.
const MAX_CONTROL_FLOW: usize = 100_000;

/// Linearises a specification.
///
/// Errors: unguarded recursion, constructs without untimed meaning, parallel operators without a
/// finite network, each with its place.
pub fn linearise(
    spec: &ProcSpec,
    options: &LineariserOptions,
) -> Result<LinearProcess, Diagnostic> {
    let mut data = spec.data.clone();
    let parallel = term::parallel_equations(spec);
    // A global variable may have any value; none occurs in a continuation.
    let mut globals = Substitution::new();
    for g in &spec.globals {
        let sort = data.signature.var(*g).sort;
        globals.insert(*g, default_value(&mut data.signature, sort));
    }
    let mut bodies = Vec::with_capacity(spec.procs.len());
    let reachable = reachable_equations(spec);
    for (i, def) in spec.procs.iter().enumerate() {
        bodies.push(if parallel[i] || !reachable[i] {
            None
        } else {
            Some(term::convert(&def.body)?.substitute(&globals))
        });
    }
    let ends = termination::can_terminate(&bodies);
    bodies.iter_mut().flatten().for_each(|body| *body = termination::trim(body, &ends));
    let (open, back) =
        OpenConstants::with_names(&mut data.signature, &data.equations, &options.open_constants);
    let mut names = ActionNames::new(&spec.actions);
    let mut layout = NetworkBuilder {
        spec,
        parallel: &parallel,
        names: &mut names,
        components: Vec::new(),
        calls: Vec::new(),
        engine: None,
        open: &open,
    };
    let network = layout.network(&spec.init, &Substitution::new())?;
    let components = layout.components;
    let titles = titles(&components, &data.signature);
    let mut builder = AutomatonBuilder::new(spec, &mut data.signature, bodies, &open);
    let mut automata = Vec::new();
    for component in components {
        automata.push(match component {
            Component::Term(name, _, term) => {
                let automaton =
                    builder.build(name, termination::trim(&term.substitute(&globals), &ends))?;
                let mut automaton = with_fresh_variables(automaton, builder.signature);
                if options.constants {
                    simplify::remove_constant_variables(&mut automaton);
                }
                if options.duplicates {
                    simplify::remove_duplicate_variables(&mut automaton, builder.signature);
                }
                if options.dead {
                    simplify::remove_dead_variables(&mut automaton);
                }
                automaton
            }
            Component::Phase => Automaton::first_step_monitor(),
        });
    }
    if options.constants {
        // Adds the values of conditions to the signature.
        for value in [true, false] {
            Expr::boolean(&mut data.signature, value);
        }
        let mut evaluator = simplify::Evaluator::new(&data, &open);
        automata.iter_mut().for_each(|a| evaluator.evaluate_automaton(a));
    }
    let mut placeholders = Placeholders::default();
    let (automata, combined) =
        compose(spec, &mut data, automata, &network, &names, options, &mut placeholders)?;
    let mut process =
        assemble::assemble(spec, data, &automata, combined, placeholders, options.eliminate)?;
    process.components = titles;
    composition::operators(&network, &names, &mut process.anatomy);
    open_constants::replace(&mut process, &|e| e.replace_operations(&open.constants));
    simplify_process(&mut process, options, &open)?;
    open_constants::replace(&mut process, &|e| e.substitute(&back));
    Ok(process)
}

/// Applies the simplifications of a whole process, in which variables stand for constants without a
/// value.
fn simplify_process(
    process: &mut LinearProcess,
    options: &LineariserOptions,
    open: &OpenConstants,
) -> Result<(), Diagnostic> {
    let plain = !process.is_probabilistic() && !process.is_timed();
    if options.unfold && plain {
        crate::unfold::unfold(process, options.positions, &options.any_size, open)?;
    }
    if options.instantiate {
        crate::simplify::instantiate(process, open)?;
    }
    if options.control && process.summands.len() <= MAX_CONTROL_FLOW {
        crate::simplify::control(process, open);
    }
    if options.dead {
        crate::simplify::remove_dead_parameters(process);
    }
    Ok(())
}

/// Composes the components. Returns them, and the summands of the whole. If composition reaches its
/// limit, components are folded, those with the largest gain first. They are restored if the total
/// gain is too small.
fn compose(
    spec: &ProcSpec,
    data: &mut DataSpec,
    automata: Vec<Automaton>,
    network: &Network,
    names: &ActionNames,
    options: &LineariserOptions,
    placeholders: &mut Placeholders,
) -> Result<(Vec<Automaton>, Vec<Combined>), Diagnostic> {
    let rewritten: AHashSet<OpId> = data.equations.iter().filter_map(|e| e.lhs.head()).collect();
    // The summands with the peak number during composition, or the error if there were too many.
    let compose = |automata: &[Automaton], data: &mut DataSpec, limit: usize| {
        let signature = &mut data.signature;
        let mut composer = Composer {
            automata,
            names,
            signature,
            actions: &spec.actions,
            rewritten: &rewritten,
            limit,
            most: 0,
        };
        match composer.compose(network) {
            Err(refused) if composer.most > limit => Ok(Err(refused)),
            other => other.map(|combined| Ok((combined, composer.most))),
        }
    };
    let few = options.fold_above.min(options.max_summands);
    if let Ok((combined, _)) = compose(&automata, data, few)? {
        return Ok((automata, combined));
    }
    let (plain_data, plain_placeholders) = (data.clone(), placeholders.clone());
    let folds: Vec<Fold> =
        automata.iter().map(|a| Fold::new(a, &mut data.signature, placeholders)).collect();
    let mut gains: Vec<usize> = folds.iter().map(Fold::gain).collect();
    if gains.iter().all(|g| *g == 0) {
        let (combined, _) = compose(&automata, data, options.max_summands)??;
        return Ok((automata, combined));
    }
    let mut folded = automata.clone();
    let (combined, most) = loop {
        let best = gains.iter().copied().max().unwrap_or(0);
        if best == 0 {
            break compose(&folded, data, options.max_summands)??;
        }
        // Equal components are folded together, so that they remain interchangeable.
        for (i, gain) in gains.iter_mut().enumerate().filter(|(_, gain)| **gain == best) {
            folded[i] = folds[i].build(data, placeholders);
            *gain = 0;
        }
        if let Ok(composition) = compose(&folded, data, few)? {
            break composition;
        }
    };
    let (folded_data, folded_placeholders) =
        (std::mem::replace(data, plain_data), std::mem::replace(placeholders, plain_placeholders));
    let worth = most.min(few).saturating_mul(options.fold_gain);
    if let Ok((plain, _)) = compose(&automata, data, options.max_summands.min(worth))? {
        return Ok((automata, plain));
    }
    (*data, *placeholders) = (folded_data, folded_placeholders);
    Ok((folded, combined))
}

/// Returns readable names of the components: those of their processes, with the arguments that
/// distinguish instances of one process.
fn titles(components: &[Component], signature: &Signature) -> Vec<String> {
    let all: Vec<(&str, Vec<String>)> = (components.iter())
        .map(|c| match c {
            Component::Term(name, args, _) => (
                name.as_str(),
                args.iter().map(|e| mu_data::print::expression(signature, e)).collect(),
            ),
            Component::Phase => ("phase", Vec::new()),
        })
        .collect();
    let mut titles = Vec::new();
    for (i, (name, args)) in all.iter().enumerate() {
        let mut rivals: Vec<usize> =
            (0..all.len()).filter(|&j| j != i && all[j].0 == *name).collect();
        let alone = rivals.is_empty();
        let mut shown = Vec::new();
        for (k, arg) in args.iter().enumerate() {
            if rivals.iter().any(|&j| all[j].1.get(k) != Some(arg)) {
                rivals.retain(|&j| all[j].1.get(k) == Some(arg));
                shown.push(arg.as_str());
            }
        }
        let number = if rivals.is_empty() {
            String::new()
        } else {
            format!(" {}", 1 + rivals.iter().filter(|&&j| j < i).count())
        };
        titles.push(if alone || shown.is_empty() {
            format!("{name}{number}")
        } else {
            format!("{name}({}){number}", shown.join(", "))
        });
    }
    titles
}

/// Returns the equations that the initial process reaches. The others are not converted, so
/// unsupported constructs in them do not matter.
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
    /// Name, arguments of the process instance, and term.
    Term(String, Vec<Expr>, Rc<term::ProcessTerm>),
    /// Records whether a left merge or synchronisation has done its first step.
    Phase,
}

/// Builder of the network: unfolds the parallel layer from `init` into components.
struct NetworkBuilder<'a> {
    spec: &'a ProcSpec,
    parallel: &'a [bool],
    names: &'a mut ActionNames,
    components: Vec<Component>,
    /// Instances of equations with parallel operators that are being unfolded.
    calls: Vec<(ProcId, Vec<Expr>)>,
    /// Evaluates arguments and conditions; created at first use.
    engine: Option<Engine>,
    open: &'a OpenConstants,
}

/// Limit on equations applied to evaluate an argument or a condition of the parallel layer; beyond
/// it, the expression stays unevaluated.
const MAX_STEPS: u64 = 100_000;
/// Limit on nested instances of one process; beyond it, the recursion counts as infinite.
const MAX_UNFOLDINGS: usize = 2_000;

impl NetworkBuilder<'_> {
    /// Returns the normal form of a closed expression, and its value if it is a Boolean; other
    /// expressions are unchanged.
    fn value(&mut self, e: &Expr, by: &Substitution) -> Result<(Expr, Option<bool>), Diagnostic> {
        let e = e.substitute(by);
        if !e.is_closed() || self.open.is_used_by(&e) {
            return Ok((e, None));
        }
        if self.engine.is_none() {
            let mut engine = Engine::new(Program::compile(&self.spec.data)?);
            engine.set_step_limit(MAX_STEPS);
            self.engine = Some(engine);
        }
        let engine = self.engine.as_mut().expect("made above");
        let value = engine.from_expr(&e)?;
        let truth = if value.is_true() || value.is_false() { Some(value.is_true()) } else { None };
        let normal = engine.to_expr_at(&value, e.sort);
        // A normal form may need operations that only the engine has: then the expression is
        // unchanged.
        let (known, mut is_expressible) = (self.spec.data.signature.op_count(), true);
        normal.each_op(&mut |op| is_expressible &= op.index() < known);
        Ok((if is_expressible { normal } else { e }, truth))
    }

    /// Replaces a process that is only another name of a process by that process, so that the name
    /// has no location of its own.
    fn resolve_alias(
        &self,
        named: Rc<term::ProcessTerm>,
    ) -> Result<Rc<term::ProcessTerm>, Diagnostic> {
        let mut term = named.clone();
        for _ in 0..self.spec.procs.len() {
            let term::ProcessTerm::Call(p, args) = &*term else { return Ok(term) };
            let def = &self.spec.procs[p.index()];
            if !matches!(def.body.kind, ProcKind::Call(..)) {
                return Ok(term);
            }
            let by: Substitution = def.params.iter().copied().zip(args.iter().cloned()).collect();
            term = term::convert(&def.body)?.substitute(&by);
        }
        // Cyclic names are reported as unguarded recursion, with the place of the source.
        Ok(named)
    }

    fn network(&mut self, proc: &Proc, by: &Substitution) -> Result<Network, Diagnostic> {
        if term::is_sequential(proc, self.parallel) {
            let term = self.resolve_alias(term::convert(proc)?.substitute(by))?;
            let (name, args) = match &proc.kind {
                ProcKind::Call(p, args) => (
                    self.spec.procs[p.index()].name.clone(),
                    args.iter().map(|a| a.substitute(by)).collect(),
                ),
                _ => ("init".to_string(), Vec::new()),
            };
            self.components.push(Component::Term(name, args, term));
            return Ok(Network::Component(self.components.len() - 1));
        }
        let set = |this: &mut Self, names: &[String]| {
            names.iter().map(|n| this.names.intern(n)).collect()
        };
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
                let args = args
                    .iter()
                    .map(|a| self.value(a, by).map_or_else(|_| a.substitute(by), |v| v.0))
                    .collect::<Vec<Expr>>();
                let same = |c: &(ProcId, Vec<Expr>)| c.0 == *p && c.1 == args;
                if self.calls.len() > MAX_UNFOLDINGS || self.calls.iter().any(same) {
                    let def = &self.spec.procs[p.index()];
                    let message = format!(
                        "process `{}` has a parallel operator in its recursion, so it has no finite linear process",
                        def.name
                    );
                    return Err(Diagnostic::at(Stage::Process, proc.span, message)
                        .note("parallel operators may stand outside the recursion only, as in `init P || Q` with sequential P and Q")
                        .note("a bounded number of copies: `Copies(n: Nat) = (n > 1) -> (P(n) || Copies(Int2Nat(n - 1))) <> P(1)`"));
                }
                let def = &self.spec.procs[p.index()];
                let inner: Substitution =
                    def.params.iter().copied().zip(args.iter().cloned()).collect();
                self.calls.push((*p, args));
                let network = self.network(&def.body, &inner);
                self.calls.pop();
                network
            }
            // A condition decided by the arguments selects the branch, so that a number determines
            // the number of copies.
            ProcKind::If(c, p, q) => match self.value(c, by)?.1 {
                Some(true) => self.network(p, by),
                Some(false) => match q {
                    Some(q) => self.network(q, by),
                    None => {
                        self.components.push(Component::Term(
                            "delta".into(),
                            Vec::new(),
                            Rc::new(term::ProcessTerm::Delta),
                        ));
                        Ok(Network::Component(self.components.len() - 1))
                    }
                },
                None => Err(not_sequential(proc)),
            },
            ProcKind::Block(names, p) => {
                Ok(Network::Block(set(self, names), Box::new(self.network(p, by)?), proc.span))
            }
            ProcKind::Hide(names, p) => {
                Ok(Network::Hide(set(self, names), Box::new(self.network(p, by)?), proc.span))
            }
            ProcKind::Allow(bags, p) => {
                let bags = bags.iter().map(|b| bag(self, b)).collect();
                Ok(Network::Allow(bags, Box::new(self.network(p, by)?), proc.span))
            }
            ProcKind::Rename(pairs, p) => {
                let map: AHashMap<Name, Name> = pairs
                    .iter()
                    .map(|(a, b)| (self.names.intern(a), self.names.intern(b)))
                    .collect();
                Ok(Network::Rename(map, Box::new(self.network(p, by)?), proc.span))
            }
            ProcKind::Comm(rules, p) => {
                let rules = (rules.iter())
                    .map(|(lhs, to)| (bag(self, lhs), to.as_ref().map(|t| self.names.intern(t))))
                    .collect();
                Ok(Network::Comm(rules, Box::new(self.network(p, by)?), proc.span))
            }
            _ => Err(not_sequential(proc)),
        })
    }
}

/// Returns the error for a process that is not sequential because of an inner operator. Conversion
/// reports the operator and its place.
fn not_sequential(proc: &Proc) -> Diagnostic {
    term::convert(proc).err().unwrap_or_else(|| {
        let message = "a process with parallel operators inside `.`, `+`, `sum` or a conditional is not supported";
        Diagnostic::at(Stage::Unsupported, proc.span, message)
    })
}

/// Returns a copy of an automaton with fresh variables, so that two copies of one process can be
/// composed. Sum variables become different from all variables of locations: in the source, a sum
/// variable that is then stored is one variable.
fn with_fresh_variables(mut automaton: Automaton, signature: &mut Signature) -> Automaton {
    let mut map: AHashMap<VarId, VarId> = AHashMap::new();
    for v in automaton.locations.iter().flat_map(|l| &l.vars) {
        if !map.contains_key(v) {
            map.insert(*v, signature.copy_var(*v));
        }
    }
    let mut of_locations: Substitution =
        map.iter().map(|(v, w)| (*v, Expr::var(signature, *w))).collect();
    for location in &mut automaton.locations {
        location.vars.iter_mut().for_each(|v| *v = map[v]);
    }
    let mut by = Substitution::new();
    if let Some(chance) = &mut automaton.initial_chance {
        for v in &mut chance.vars {
            let own = signature.copy_var(*v);
            by.insert(*v, Expr::var(signature, own));
            *v = own;
        }
        chance.weight = chance.weight.substitute(&by);
    }
    for (v, e) in &mut automaton.initial_values {
        *v = map[v];
        *e = e.substitute(&by);
    }
    for edge in &mut automaton.edges {
        let by = &mut of_locations;
        let mut hidden = Vec::new();
        for v in edge.sum_vars.iter_mut().chain(edge.chance.iter_mut().flat_map(|c| &mut c.vars)) {
            let own = signature.copy_var(*v);
            hidden.push((*v, by.insert(*v, Expr::var(signature, own))));
            *v = own;
        }
        edge.guard.iter_mut().for_each(|g| *g = g.substitute(by));
        edge.time
            .iter_mut()
            .chain(edge.chance.iter_mut().map(|c| &mut c.weight))
            .for_each(|e| *e = e.substitute(by));
        edge.acts.iter_mut().flat_map(|a| a.args.iter_mut()).for_each(|e| *e = e.substitute(by));
        for (v, e) in &mut edge.assigns {
            *v = map[v];
            *e = e.substitute(by);
        }
        for (v, before) in hidden.into_iter().rev() {
            match before {
                Some(outer) => by.insert(v, outer),
                None => by.remove(&v),
            };
        }
    }
    automaton
}
