//! Assembly of combined summands into a linear process: control locations and variables become
//! parameters.
//!
//! Each component gets a control parameter (if it has more than one location) and as few data
//! parameters as its locations need at once: variables of one sort that are never live together
//! share a parameter. A parameter that is not live holds a placeholder. Cost: summands times
//! their parts.

use super::chance::product;
use super::composition;
use super::network::{Combined, NetworkPart, one_point};
use super::sequential::{Automaton, Location};
use crate::anatomy::Anatomy;
use crate::labels::{ActionDecl, TERMINATE};
use crate::linear::{Act, Chance, LinearProcess, Param, ParamRole, Summand};
use crate::spec::ProcSpec;
use ahash::AHashMap;
use fixedbitset::FixedBitSet;
use mu_base::ids::{ActId, OpId, SortId, VarId};
use mu_base::{Diagnostic, Place, narrow};
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind, Substitution};
use mu_data::signature::{Builtin, Op, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use mu_data::typecheck::PLACEHOLDER;

impl Automaton {
    /// Creates the auxiliary component that records if a first step was done by the initial
    /// multi-actions of a parallel composition ([`super::network::Network::First`]): two locations,
    /// no edges of its own.
    pub(super) fn first_step_monitor() -> Automaton {
        let location = Location { vars: Vec::new(), terminated: true };
        Automaton {
            name: "phase".into(),
            phase: true,
            locations: vec![location.clone(), location],
            edges: Vec::new(),
            initial_chance: None,
            initial: 0,
            initial_values: Vec::new(),
        }
    }
}

/// Returns a closed term of a sort: `false`, 0, the empty collection, or the first constructor with
/// finite terms.
pub fn default_value(signature: &mut Signature, sort: SortId) -> Expr {
    try_default_value(signature, sort, &mut Vec::new()).unwrap_or_else(|| {
        let name = format!(
            "any_{}",
            signature.sorts.text(sort).replace(|c: char| !c.is_alphanumeric(), "_")
        );
        let known =
            signature.ops().find(|(_, o)| o.name == name && o.sort == sort).map(|(id, _)| id);
        let op =
            known.unwrap_or_else(|| signature.add_op(Op { name, sort, kind: OpKind::Mapping }));
        Expr::op(signature, op)
    })
}

/// Returns a closed term of a sort. `None` if every term of the sort needs a term of an enclosing
/// one.
fn try_default_value(
    signature: &mut Signature,
    sort: SortId,
    enclosing: &mut Vec<SortId>,
) -> Option<Expr> {
    Some(match signature.sorts.kind(sort).clone() {
        SortKind::Bool => Expr::boolean(signature, false),
        SortKind::Pos => Expr::number(1, sort),
        SortKind::Nat | SortKind::Int => Expr::number(0, sort),
        SortKind::Real => {
            let zero = Expr::number(0, basic::INT);
            Expr::builtin(signature, Builtin::IntToReal, vec![zero], basic::REAL)
        }
        SortKind::List(_) => Expr::builtin(signature, Builtin::EmptyList, vec![], sort),
        SortKind::FSet(_) => Expr::builtin(signature, Builtin::EmptySet, vec![], sort),
        SortKind::FBag(_) => Expr::builtin(signature, Builtin::EmptyBag, vec![], sort),
        SortKind::Set(element) => {
            let finite = signature.sorts.intern(SortKind::FSet(element));
            let empty = Expr::builtin(signature, Builtin::EmptySet, vec![], finite);
            Expr::builtin(signature, Builtin::FSetToSet, vec![empty], sort)
        }
        SortKind::Bag(element) => {
            let finite = signature.sorts.intern(SortKind::FBag(element));
            let empty = Expr::builtin(signature, Builtin::EmptyBag, vec![], finite);
            Expr::builtin(signature, Builtin::FBagToBag, vec![empty], sort)
        }
        SortKind::Function(domain, range) => {
            let body = try_default_value(signature, range, enclosing)?;
            let vars = domain.iter().map(|s| signature.fresh_var("x", *s)).collect();
            Expr::new(ExprKind::Bind(Binder::Lambda, vars, body), sort, Default::default())
        }
        SortKind::Named(named) => {
            if enclosing.contains(&sort) {
                return None;
            }
            enclosing.push(sort);
            let constructors = signature.sorts.named[named as usize].constructors.clone();
            let mut found = None;
            for c in constructors {
                let domain = signature.domain_range(signature.op(c).sort).0.to_vec();
                let args: Option<Vec<Expr>> = domain
                    .into_iter()
                    .map(|s| try_default_value(signature, s, enclosing))
                    .collect();
                if let Some(args) = args {
                    found = Some(Expr::apply(signature, c, args));
                    break;
                }
            }
            enclosing.pop();
            // For a sort without constructors, any constant.
            match found {
                Some(e) => e,
                None => {
                    let constant = signature
                        .ops()
                        .find(|(_, o)| o.sort == sort && o.kind == OpKind::Mapping)
                        .map(|(id, _)| id);
                    Expr::op(signature, constant?)
                }
            }
        }
    })
}

/// Returns the name of the placeholder for parameters of a sort, if the specification does not use
/// that name.
pub fn placeholder_name(signature: &Signature, sort: SortId) -> String {
    format!(
        "{PLACEHOLDER}{}",
        signature.sorts.text(sort).replace(|c: char| !c.is_ascii_alphanumeric(), "_")
    )
}

/// Placeholders of parameters while they are not live. For declared sorts and functions it is a
/// constant without equations, made at first use, with further underscores if
/// the specification uses its name. It is not a constructor, so it does not
/// distinguish one of several interchangeable values.
#[derive(Clone, Default)]
pub(super) struct Placeholders(AHashMap<SortId, Expr>);

impl Placeholders {
    pub(super) fn value(&mut self, signature: &mut Signature, sort: SortId) -> Expr {
        if !matches!(signature.sorts.kind(sort), SortKind::Named(_) | SortKind::Function(..)) {
            return default_value(signature, sort);
        }
        if let Some(e) = self.0.get(&sort) {
            return e.clone();
        }
        let name = signature.free_op_name(placeholder_name(signature, sort));
        let op = signature.add_op(Op { name, sort, kind: OpKind::Mapping });
        let e = Expr::op(signature, op);
        self.0.insert(sort, e.clone());
        e
    }
}

/// Groups the variables of a component by shared parameter: variables of one sort that are never
/// live at one location.
pub(super) fn shared_parameters(automaton: &Automaton, signature: &Signature) -> Vec<Vec<VarId>> {
    let mut order = Vec::new();
    let mut live: AHashMap<VarId, Vec<usize>> = AHashMap::new();
    for (l, location) in automaton.locations.iter().enumerate() {
        for v in &location.vars {
            let at = live.entry(*v).or_default();
            if at.is_empty() {
                order.push(*v);
            }
            at.push(l);
        }
    }
    // Each group with the locations where one of its variables is live.
    let mut places: Vec<(Vec<VarId>, FixedBitSet)> = Vec::new();
    for v in order {
        let (sort, at) = (signature.var(v).sort, &live[&v]);
        let is_compatible = |(shared, taken): &(Vec<VarId>, FixedBitSet)| {
            signature.var(shared[0]).sort == sort && !at.iter().any(|l| taken.contains(*l))
        };
        let place = places.iter().position(is_compatible).unwrap_or_else(|| {
            places.push((Vec::new(), FixedBitSet::with_capacity(automaton.locations.len())));
            places.len() - 1
        });
        places[place].0.push(v);
        at.iter().for_each(|l| places[place].1.insert(*l));
    }
    places.into_iter().map(|(shared, _)| shared).collect()
}

/// Assignment of a component's location and variables to parameters.
pub(super) struct Placement {
    /// Parameter of the control location, if there is one.
    pub control: Option<usize>,
    /// Parameter of each variable.
    pub of_var: AHashMap<VarId, usize>,
}

/// Creates the step `Terminate`, which all components do together from their last locations;
/// component `c` then moves to its location `dead`.
fn terminate_summand(
    automata: &[Automaton],
    placements: &[Placement],
    param_exprs: &[Expr],
    data: &mut DataSpec,
    declared: &mut Vec<ActionDecl>,
    (c, dead): (usize, usize),
) -> Summand {
    let at = |signature: &mut Signature, control: usize, location: usize| {
        let here = Expr::number(narrow::index(location) + 1, basic::POS);
        Expr::equal(signature, param_exprs[control].clone(), here)
    };
    let known = declared.iter().position(|a| a.name == TERMINATE && a.sorts.is_empty());
    let action = ActId::new(known.unwrap_or_else(|| {
        declared.push(ActionDecl { name: TERMINATE.into(), sorts: vec![] });
        declared.len() - 1
    }));
    let mut guard = Expr::boolean(&mut data.signature, true);
    for (automaton, placement) in automata.iter().zip(placements) {
        if automaton.phase {
            continue;
        }
        let location = automaton
            .locations
            .iter()
            .position(|l| l.terminated)
            .expect("every component terminates");
        if let Some(control) = placement.control {
            let at = at(&mut data.signature, control, location);
            guard = Expr::and(&mut data.signature, guard, at);
        }
    }
    let control = placements[c].control.expect("two locations at least");
    let updates = vec![(control, Expr::number(narrow::index(dead) + 1, basic::POS))];
    let actions = vec![Act { action, args: vec![], from: vec![], place: Place::default() }];
    Summand {
        sum_vars: vec![],
        guard,
        actions,
        hidden: vec![],
        updates,
        chance: None,
        time: None,
        had_sum: false,
    }
}

/// Parameters and their assignment to components.
struct ParameterLayout {
    params: Vec<Param>,
    /// Placeholder of each parameter.
    placeholders: Vec<Expr>,
    /// Placement of each component.
    placements: Vec<Placement>,
    /// `None` if some component cannot terminate; else a component, and its location without edges
    /// to which `Terminate` leads.
    terminated_at: Option<(usize, usize)>,
}

fn layout_parameters(
    automata: &[Automaton],
    data: &mut DataSpec,
    placeholders: &mut Placeholders,
) -> ParameterLayout {
    let signature = &mut data.signature;
    let mut params: Vec<Param> = Vec::new();
    let mut param_placeholders: Vec<Expr> = Vec::new();
    let mut placements = Vec::new();
    let terminates =
        !automata.is_empty() && automata.iter().all(|a| a.locations.iter().any(|l| l.terminated));
    let mut terminated_at = None;
    for (c, automaton) in automata.iter().enumerate() {
        let component = narrow::index(c);
        let mut locations = automaton.locations.len();
        if terminates && terminated_at.is_none() && !automaton.phase {
            terminated_at = Some((c, locations));
            locations += 1;
        }
        let control = (locations > 1).then(|| {
            let var = signature.fresh_var(format!("s{}", c + 1), basic::POS);
            let init = Expr::number(narrow::index(automaton.initial) + 1, basic::POS);
            params.push(Param { var, role: ParamRole::Control(component), init });
            param_placeholders.push(Expr::number(1, basic::POS));
            params.len() - 1
        });
        let mut of_var: AHashMap<VarId, usize> = AHashMap::new();
        for shared in shared_parameters(automaton, signature) {
            let sort = signature.var(shared[0]).sort;
            let init = placeholders.value(signature, sort);
            let var = signature.copy_var(shared[0]);
            of_var.extend(shared.into_iter().map(|v| (v, params.len())));
            params.push(Param { var, role: ParamRole::Data(component), init: init.clone() });
            param_placeholders.push(init);
        }
        for (v, value) in &automaton.initial_values {
            let param = of_var[v];
            params[param].init = value.clone();
            // `process::unfold` replaces a list of constant length by one parameter for each
            // element, so its placeholder has that length too.
            if value.is_closed() && matches!(signature.sorts.kind(value.sort), SortKind::List(_)) {
                param_placeholders[param] = value.clone();
            }
        }
        placements.push(Placement { control, of_var });
    }
    ParameterLayout { params, placeholders: param_placeholders, placements, terminated_at }
}

/// Builder of summands from joint steps of automata.
struct SummandBuilder<'a> {
    automata: &'a [Automaton],
    placements: &'a [Placement],
    /// Placeholders of the parameters.
    placeholders: &'a [Expr],
    /// The parameters, as expressions.
    params: &'a [Expr],
    /// Variables of locations by their parameters.
    as_param: &'a Substitution,
    /// Values of global variables.
    globals: &'a Substitution,
}

/// Joint step of several automata.
#[derive(Default)]
struct JointStep {
    sum_vars: Vec<VarId>,
    /// Conditions on the locations of the automata.
    control: Vec<Expr>,
    guard: Vec<Expr>,
    updates: Vec<(usize, Expr)>,
    /// Variables of the probabilistic choices afterwards, with the weights of all.
    chosen: Vec<VarId>,
    weights: Vec<Expr>,
    /// Times of the steps that have one; all must be equal.
    times: Vec<Expr>,
    had_sum: bool,
}

impl SummandBuilder<'_> {
    /// Returns the summand of a step; `None` if its guard is false. `one_point_rule`: eliminates
    /// sum variables that an equation of the guard determines.
    fn summand(
        &self,
        signature: &mut Signature,
        step: Combined,
        one_point_rule: bool,
    ) -> Option<Summand> {
        let mut joint = JointStep::default();
        for &(c, part) in &step.parts {
            self.add(signature, &mut joint, c, part);
        }
        for &(c, value) in &step.phases {
            joint.control.extend(self.at_location(signature, c, value as usize));
        }
        let JointStep {
            mut sum_vars,
            control,
            mut guard,
            updates,
            chosen,
            weights,
            mut times,
            had_sum,
        } = joint;
        while times.len() > 1 {
            let last = times.pop().expect("there are two at least");
            guard.push(Expr::equal(signature, times[0].clone(), last));
        }
        guard.extend(step.guard.iter().map(|g| g.substitute(self.as_param)));
        let solved = if one_point_rule {
            one_point(signature, &mut sum_vars, &mut guard)
        } else {
            Substitution::new()
        };
        if guard.iter().any(|g| g.as_bool(signature) == Some(false)) {
            return None;
        }
        let finish =
            |e: &Expr| e.substitute(self.as_param).substitute(&solved).substitute(self.globals);
        let act = |a: &Act| Act { args: a.args.iter().map(finish).collect(), ..a.clone() };
        let mut actions: Vec<Act> = step.acts.iter().map(act).collect();
        actions.sort_by_key(|a| a.action);
        let hidden: Vec<Act> = step.hidden.iter().map(act).collect();
        let updates = self.finish_updates(updates, &solved);
        let time = times.first().map(|t| t.substitute(&solved).substitute(self.globals));
        let weights =
            weights.iter().map(|w| w.substitute(&solved).substitute(self.globals)).collect();
        let chance = product(signature, weights).map(|weight| Chance { vars: chosen, weight });
        let mut conjunction = Expr::boolean(signature, true);
        for g in control.into_iter().chain(guard) {
            conjunction = Expr::and(signature, conjunction, g.substitute(self.globals));
        }
        // Every sort has an element, so a sum over an unused variable is redundant.
        let mut used = Vec::new();
        conjunction.free_vars(&mut used);
        actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut used));
        updates.iter().for_each(|(_, e)| e.free_vars(&mut used));
        time.iter().chain(chance.as_ref().map(|c| &c.weight)).for_each(|e| e.free_vars(&mut used));
        sum_vars.retain(|v| used.contains(v));
        Some(Summand {
            sum_vars,
            guard: conjunction,
            actions,
            hidden,
            updates,
            chance,
            time,
            had_sum,
        })
    }

    /// Applies the substitutions to updates, and omits those without effect.
    fn finish_updates(
        &self,
        updates: Vec<(usize, Expr)>,
        solved: &Substitution,
    ) -> Vec<(usize, Expr)> {
        let mut updates: Vec<(usize, Expr)> = updates
            .into_iter()
            .map(|(p, e)| (p, e.substitute(solved).substitute(self.globals)))
            .collect();
        updates.retain(|(p, e)| *e != self.params[*p]);
        updates.sort_by_key(|u| u.0);
        updates
    }

    /// Adds the step of one automaton.
    fn add(&self, signature: &mut Signature, joint: &mut JointStep, c: usize, part: NetworkPart) {
        let placement = &self.placements[c];
        let edge = match part {
            NetworkPart::Edge(e) => &self.automata[c].edges[e],
            NetworkPart::Phase => {
                let p = placement.control.expect("a phase has two locations");
                joint.updates.push((p, Expr::number(2, basic::POS)));
                return;
            }
        };
        joint.had_sum |= edge.had_sum;
        joint.sum_vars.extend(&edge.sum_vars);
        joint.control.extend(self.at_location(signature, c, edge.from));
        joint.guard.extend(edge.guard.iter().map(|g| g.substitute(self.as_param)));
        joint.times.extend(edge.time.iter().map(|t| t.substitute(self.as_param)));
        if let Some(chance) = &edge.chance {
            joint.chosen.extend(&chance.vars);
            joint.weights.push(chance.weight.substitute(self.as_param));
        }
        if let Some(p) = placement.control
            && edge.from != edge.to
        {
            joint.updates.push((p, Expr::number(narrow::index(edge.to) + 1, basic::POS)));
        }
        let mut set = vec![];
        for (v, value) in &edge.assigns {
            let p = placement.of_var[v];
            set.push(p);
            let value = value.substitute(self.as_param);
            if value != self.params[p] {
                joint.updates.push((p, value));
            }
        }
        for v in &self.automata[c].locations[edge.from].vars {
            let p = placement.of_var[v];
            if !set.contains(&p) {
                set.push(p);
                joint.updates.push((p, self.placeholders[p].clone()));
            }
        }
    }

    /// Returns the condition that an automaton is at a location; `None` if it has only one.
    fn at_location(&self, signature: &mut Signature, c: usize, location: usize) -> Option<Expr> {
        let here = Expr::number(narrow::index(location) + 1, basic::POS);
        self.placements[c].control.map(|p| Expr::equal(signature, self.params[p].clone(), here))
    }
}

/// Chooses values for the global variables, which may have any.
fn global_values(spec: &ProcSpec, signature: &mut Signature) -> Substitution {
    let mut globals = Substitution::new();
    for g in &spec.globals {
        let sort = signature.var(*g).sort;
        globals.insert(*g, default_value(signature, sort));
    }
    globals
}

/// Joins the probabilistic choices of the initial states of all automata.
fn initial_chance(
    automata: &[Automaton],
    globals: &Substitution,
    signature: &mut Signature,
) -> Option<Chance> {
    let mut chosen = Vec::new();
    let mut weights = Vec::new();
    for chance in automata.iter().filter_map(|a| a.initial_chance.as_ref()) {
        chosen.extend(&chance.vars);
        weights.push(chance.weight.substitute(globals));
    }
    product(signature, weights).map(|weight| Chance { vars: chosen, weight })
}

/// Assembles combined summands into a linear process. `one_point_rule`: see
/// [`SummandBuilder::summand`].
pub(super) fn assemble(
    spec: &ProcSpec,
    mut data: DataSpec,
    automata: &[Automaton],
    combined: Vec<Combined>,
    mut placeholders: Placeholders,
    one_point_rule: bool,
) -> Result<LinearProcess, Diagnostic> {
    let ParameterLayout { mut params, placeholders: param_placeholders, placements, terminated_at } =
        layout_parameters(automata, &mut data, &mut placeholders);
    // Variables of locations, as parameters.
    let param_exprs: Vec<Expr> = params.iter().map(|p| Expr::var(&data.signature, p.var)).collect();
    let mut as_param = Substitution::new();
    for placement in &placements {
        for (v, p) in &placement.of_var {
            as_param.insert(*v, param_exprs[*p].clone());
        }
    }
    let globals = global_values(spec, &mut data.signature);
    for p in &mut params {
        p.init = p.init.substitute(&globals);
    }
    let chance = initial_chance(automata, &globals, &mut data.signature);
    let builder = SummandBuilder {
        automata,
        placements: &placements,
        placeholders: &param_placeholders,
        params: &param_exprs,
        as_param: &as_param,
        globals: &globals,
    };
    let summands = combined
        .into_iter()
        .filter_map(|c| builder.summand(&mut data.signature, c, one_point_rule));
    let mut summands: Vec<Summand> = summands.collect();
    let mut actions = spec.actions.clone();
    if let Some(terminated_at) = terminated_at {
        summands.push(terminate_summand(
            automata,
            &placements,
            &param_exprs,
            &mut data,
            &mut actions,
            terminated_at,
        ));
    }
    let components = automata.iter().map(|a| a.name.clone()).collect();
    let placed = composition::PlacedAutomata {
        params: &params,
        placements: &placements,
        as_param: &as_param,
        globals: &globals,
    };
    let mut placeholder_ops: Vec<OpId> = placeholders.0.values().filter_map(Expr::head).collect();
    placeholder_ops.sort_unstable();
    let anatomy = Anatomy {
        components: placed.automata(automata, &mut data.signature),
        placeholders: placeholder_ops,
        ..Anatomy::default()
    };
    Ok(LinearProcess {
        data,
        actions,
        globals: Vec::new(),
        params,
        chance,
        summands,
        components,
        anatomy,
    })
}
