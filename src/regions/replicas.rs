//! Replicated components: one or several for each constant of a sort of any size.
//!
//! Input: a compiled process with [`SIZE`] such constants that have components and
//! [`EXTRA_CONSTANTS`] that have none ([`crate::constant_counts`]), the specification, the process
//! for one more constant. Output: [`Replicas`]: the owner of each slot and summand, the number of
//! identities that participate in one step, and the operations of steps on lists of identities
//! ([`crate::words`]).
//!
//! The following is checked, and violations are reported with their position. Components of
//! different identities are the same except for the identity, and the process is invariant under
//! permutations of identities. The summands of some identities are those of the process for one
//! more. An `allow` around all components bounds how many of them participate in a step, each with
//! an action. Identities are only copied and compared, and the list of all identities is only
//! traversed. So the process for any number of identities has these summands, once for each choice
//! of identities. Cost: the text of the summands, for each identity.

use crate::abstractable_model::constant;
use crate::sizes::{Family, SIZE};
use crate::study::is_read;
use crate::words::{Lists, Uses};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{OpId, SortId, VarId};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_compile::Compiled;
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;
use mu_model::{Model, Slot};
use mu_process::anatomy::OperatorKind;
use mu_process::linear::{LinearProcess, Param, ParamRole};
use mu_process::spec::ProcSpec;
use std::collections::BTreeSet;

/// Number of additional constants without components: letters of lists.
pub const EXTRA_CONSTANTS: usize = 40;

/// The replicated components of a process.
#[derive(Clone, Debug)]
pub struct Replicas {
    /// The identities; those with components first.
    pub family: Family,
    /// For each slot: the identity of its component.
    pub owner: Vec<Option<usize>>,
    /// For each identity: its slots.
    pub local: Vec<Vec<Slot>>,
    /// For each slot: true if it contains a list of identities.
    pub lists: Vec<bool>,
    /// The slot of the list of all identities, if there is one.
    pub all: Option<Slot>,
    /// The uses of identities by each group.
    pub groups: Vec<GroupIdentities>,
    /// Largest number of identities that participate in a step.
    pub most: usize,
    /// The constructors of lists of identities: empty list, and cons.
    pub list: Option<(OpId, OpId)>,
}

/// Uses of identities by a group.
#[derive(Clone, Debug, Default)]
pub struct GroupIdentities {
    /// The identities with participating components.
    pub identities: Vec<usize>,
    /// Its operations on lists.
    pub uses: Uses,
    /// The list of which it tests more than emptiness.
    pub list: Option<Slot>,
    /// The lists that become sublists of themselves, if they are written.
    pub shrinks: Vec<Slot>,
    /// Number of summed variables that may differ from all identities that it reads.
    pub sums: usize,
    /// Slots that must be equal and contain no identity.
    pub equal: Vec<(Slot, Slot)>,
}

fn reject<T>(text: impl Into<String>, span: Span) -> Result<T, Diagnostic> {
    Err(Diagnostic::new(Stage::Unsupported, text).or_span(span))
}

/// Returns the process with a parameter that replaces the list of all identities, which no equation
/// defines, and the name of that list.
pub fn with_list(
    mut process: LinearProcess,
    name: Option<&str>,
) -> Result<LinearProcess, Diagnostic> {
    let Some(name) = name else { return Ok(process) };
    let signature = &mut process.data.signature;
    let found = signature
        .ops()
        .find(|(_, o)| o.name == name && o.kind == OpKind::Mapping)
        .map(|(id, o)| (id, o.sort));
    let Some((op, list)) = found else {
        return Err(Diagnostic::internal(format!("the list `{name}` does not exist")));
    };
    let SortKind::List(element) = *signature.sorts.kind(list) else {
        return Err(Diagnostic::new(
            Stage::Unsupported,
            format!("`{name}` is not a list of constants"),
        ));
    };
    let sort = signature.sorts.text(element);
    let var = signature.fresh_var(name, list);
    let first = crate::abstractable_model::constants(signature, element).first().copied();
    let Some(first) = first.map(|op| Expr::op(signature, op)) else {
        return Err(Diagnostic::internal("a sort without constants"));
    };
    // So that lists can be constructed.
    let empty = Expr::builtin(signature, Builtin::EmptyList, vec![], list);
    let init = Expr::builtin(signature, Builtin::Cons, vec![first, empty], list);
    let by = AHashMap::from([(op, Expr::var(signature, var))]);
    let speaks = |e: &Expr| {
        let mut found = false;
        e.each_op(&mut |o| found |= o == op);
        found
    };
    let text = format!(
        "uses `{name}`, the list of all constants of `{sort}`, of which there may be any number"
    );
    if let Some(e) = process
        .data
        .equations
        .iter()
        .find(|e| [&e.lhs, &e.rhs].into_iter().chain(&e.condition).any(speaks))
    {
        return reject(format!("an equation {text}"), e.span);
    }
    if let Some(p) = process.params.iter().find(|p| speaks(&p.init)) {
        let var = process.data.signature.var(p.var);
        let text = format!(
            "the initial value of `{}` {text}; only steps may use the list, since its order is chosen when a step first uses it",
            var.name
        );
        return reject(text, var.span);
    }
    for summand in &mut process.summands {
        summand.guard = summand.guard.replace_operations(&by);
        summand.updates.iter_mut().for_each(|u| u.1 = u.1.replace_operations(&by));
        summand
            .actions
            .iter_mut()
            .chain(&mut summand.hidden)
            .flat_map(|a| &mut a.args)
            .for_each(|e| *e = e.replace_operations(&by));
    }
    process.params.push(Param {
        var,
        role: ParamRole::Data(narrow::index(process.components.len())),
        init,
    });
    process.components.push("parameters".into());
    Ok(process)
}

impl Replicas {
    /// Analyses a process. `names`: the names of all constants; `list`: the name of the list of
    /// all; `larger`: the process for one identity more, with the names of its constants.
    pub fn new(
        compiled: &Compiled,
        spec: &ProcSpec,
        names: &[String],
        list: Option<&str>,
        (larger, larger_names): (&LinearProcess, &[String]),
    ) -> Result<Self, Diagnostic> {
        let process = compiled.process();
        if process.is_probabilistic() || process.is_timed() {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                "components of any number with time or chance",
            ));
        }
        let mut family = Family::with_names(compiled, names)?;
        let mut signature = spec.data.signature.clone();
        let someone = signature.fresh_var("someone", family.sort);
        let by = family.constants.iter().map(|op| (*op, Expr::var(&signature, someone))).collect();
        family.check_source(spec, &by)?;
        family.all = process
            .data
            .signature
            .ops()
            .find(|(_, o)| Some(o.name.as_str()) == list && o.kind == OpKind::Mapping)
            .map(|o| o.0);
        family.data(&process.data)?;
        let shape = Ownership::new(process, names, SIZE)?;
        let above = Ownership::new(larger, larger_names, SIZE + 1)?;
        let most = shape.participant_bound()?;
        shape.check(&above)?;
        if most + 1 > SIZE {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                format!("{most} components may participate in one step, which are too many"),
            ));
        }
        let signature = &process.data.signature;
        family.slots =
            process.params.iter().map(|p| family.holds(signature.var(p.var).sort)).collect();
        family.arrays = vec![None; process.params.len()];
        let list_sort = (0..signature.sorts.len())
            .map(SortId::new)
            .find(|s| *signature.sorts.kind(*s) == SortKind::List(family.sort));
        let builtin = |b: Builtin| {
            let of = |op: &mu_data::signature::Op| {
                op.kind == OpKind::Builtin(b)
                    && Some(signature.domain_range(op.sort).1) == list_sort
            };
            signature.ops().find(|(_, op)| of(op)).map(|(id, _)| id)
        };
        let lists =
            process.params.iter().map(|p| Some(signature.var(p.var).sort) == list_sort).collect();
        let local = (0..SIZE).map(|i| {
            (0..process.params.len())
                .filter(|s| shape.owner[*s] == Some(i))
                .map(|s| s as Slot)
                .collect()
        });
        let mut replicas = Self {
            owner: shape.owner.clone(),
            local: local.collect(),
            lists,
            all: None,
            groups: Vec::new(),
            most,
            list: builtin(Builtin::EmptyList).zip(builtin(Builtin::Cons)),
            family,
        };
        // Only the list of all identities has that sort and belongs to no component.
        let own = process.anatomy.components.len();
        let of_none = |p: &Param| matches!(p.role, ParamRole::Data(c) if c as usize >= own);
        let at = process
            .params
            .iter()
            .position(|p| of_none(p) && Some(signature.var(p.var).sort) == list_sort);
        replicas.all = at.map(|s| s as Slot);
        replicas.check(compiled, &shape, list_sort)?;
        Ok(replicas)
    }

    /// Checks the uses of identities in summands.
    fn check(
        &mut self,
        compiled: &Compiled,
        shape: &Ownership,
        list: Option<SortId>,
    ) -> Result<(), Diagnostic> {
        let process = compiled.process();
        let mut signature = process.data.signature.clone();
        let sort = self.family.sort;
        let someone = signature.fresh_var("someone", sort);
        let by: AHashMap<OpId, Expr> =
            self.family.constants.iter().map(|op| (*op, Expr::var(&signature, someone))).collect();
        let lists = list.map(|list| Lists::new(&process.data, list));
        let within = |s: SortId| {
            list.is_some_and(|list| self.family.component_sorts(&signature, s).contains(&list))
        };
        for param in &process.params {
            let var = signature.var(param.var);
            self.family.plain(&signature, var.sort, var.span)?;
            if Some(var.sort) != list && within(var.sort) {
                return reject(
                    format!("lists of `{}` are nested in other data", self.family.name),
                    var.span,
                );
            }
            self.family.expr(&signature, &param.init.replace_operations(&by))?;
        }
        if let Some(slot) =
            (0..process.params.len()).find(|s| self.lists[*s] && self.owner[*s].is_some())
        {
            let text = format!(
                "a component of which there may be any number has a list of `{}`",
                self.family.name
            );
            return reject(text, signature.var(process.params[slot].var).span);
        }
        for action in &process.actions {
            for sort in &action.sorts {
                self.family.plain(&signature, *sort, Span::default())?;
                if within(*sort) {
                    return Err(Diagnostic::new(
                        Stage::Unsupported,
                        format!("`{}` has lists of `{}`", action.name, self.family.name),
                    ));
                }
            }
        }
        for (g, group) in compiled.groups().iter().enumerate() {
            let at = compiled.summand_of(g);
            let summand = &process.summands[at];
            let over = |v: &&VarId| self.family.holds(signature.var(**v).sort);
            if let Some(v) =
                summand.sum_vars.iter().find(|v| over(v) && signature.var(**v).sort != sort)
            {
                let text = format!(
                    "`sum {}` is over data that contain constants of `{}`",
                    signature.var(*v).name,
                    self.family.name
                );
                return reject(text, summand.span());
            }
            let sums = summand.sum_vars.iter().filter(over).count();
            let mut joint = GroupIdentities {
                identities: shape.identities(at).into_iter().collect(),
                ..GroupIdentities::default()
            };
            let parts = std::iter::once(&summand.guard).chain(summand.updates.iter().map(|u| &u.1));
            let mut looked = AHashSet::new();
            for e in parts.chain(summand.actions.iter().flat_map(|a| &a.args)) {
                self.family
                    .expr(&signature, &e.replace_operations(&by))
                    .map_err(|d| d.or_span(summand.span()))?;
                if let Some(lists) = &lists {
                    let uses = lists.uses(e).map_err(|d| d.or_span(summand.span()))?;
                    joint.uses.operations = joint.uses.operations.max(uses.operations);
                    joint.uses.sieves |= uses.sieves;
                    lists.inspected_lists(e, &mut looked);
                }
            }
            let own = |(p, e): &&(usize, Expr)| {
                self.lists[*p]
                    && lists.as_ref().is_some_and(|l| l.is_part(e, process.params[*p].var))
            };
            joint.shrinks = summand.updates.iter().filter(own).map(|u| u.0 as Slot).collect();
            if joint.identities.len() > self.most {
                return reject("a step in which all components participate", summand.span());
            }
            // A summed variable is read if it equals a part of the state that is not a letter of a
            // list.
            let condition = summand.guard.conjuncts(&signature);
            let is_given = |v: &VarId| {
                let plain =
                    condition.iter().filter(|c| lists.as_ref().is_none_or(|l| !l.mentions(c)));
                plain.into_iter().any(|c| is_read(&signature, c, *v, &summand.sum_vars))
            };
            joint.sums = summand.sum_vars.iter().filter(|v| over(v) && !is_given(v)).count();
            self.family.sums.push(sums);
            // The emptiness of the list of all identities is not observable either.
            let is_looked_at = |s: &Slot| {
                self.all == Some(*s) || looked.contains(&process.params[*s as usize].var)
            };
            let mut found = group
                .reads
                .iter()
                .copied()
                .filter(|s| self.lists[*s as usize])
                .filter(is_looked_at);
            joint.list = found.next();
            if found.next().is_some() {
                return reject(
                    format!("a step reads two lists of `{}`", self.family.name),
                    summand.span(),
                );
            }
            joint.equal = equal_slots(process, &self.family, &summand.guard);
            self.groups.push(joint);
        }
        Ok(())
    }

    /// Returns the constants of the letters of a list of identities, in order; `None` if it is not
    /// such a list.
    pub fn letters(&self, signature: &Signature, list: &Expr) -> Option<Vec<usize>> {
        let (mut letters, mut rest) = (Vec::new(), list.clone());
        loop {
            match rest.clone().as_builtin(signature) {
                Some((Builtin::EmptyList, _)) => return Some(letters),
                Some((Builtin::Cons, [letter, more])) => {
                    letters.push(
                        self.family.constants.iter().position(|c| Some(*c) == letter.head())?,
                    );
                    rest = more.clone();
                }
                _ => return None,
            }
        }
    }

    /// Builds the list of these constants.
    pub fn list_of(&self, signature: &Signature, letters: &[usize]) -> Result<Expr, Diagnostic> {
        let Some((empty, cons)) = self.list else {
            return Err(Diagnostic::internal("there are no lists of identities"));
        };
        let mut list = Expr::op(signature, empty);
        for letter in letters.iter().rev() {
            list = Expr::apply(
                signature,
                cons,
                vec![Expr::op(signature, self.family.constants[*letter]), list],
            );
        }
        Ok(list)
    }

    /// Returns the largest number of identities that can be tracked.
    pub fn room(&self) -> usize {
        SIZE - self.most
    }
}

/// Returns the constant that owns each parameter of a process with a component for each of these
/// constants.
pub(crate) fn owners(
    process: &LinearProcess,
    names: &[String],
) -> Result<Vec<Option<usize>>, Diagnostic> {
    Ownership::new(process, names, names.len()).map(|shape| shape.owner)
}

/// Returns the pairs of parameters that a guard requires to be equal, of an enumeration without
/// identities.
fn equal_slots(process: &LinearProcess, family: &Family, guard: &Expr) -> Vec<(Slot, Slot)> {
    let signature = &process.data.signature;
    let slot = |e: &Expr| match e.kind {
        ExprKind::Var(v) => process.params.iter().position(|p| p.var == v).map(|s| s as Slot),
        _ => None,
    };
    let plain = |sort: SortId| {
        let named = signature.sorts.declared_sort(sort);
        !family.holds(sort)
            && named.is_some_and(|n| {
                !n.constructors.is_empty()
                    && n.constructors.iter().all(|c| signature.op(*c).sort == sort)
            })
    };
    let pair = |e: &Expr| match e.as_builtin(signature) {
        Some((Builtin::Equal, [a, b])) if plain(a.sort) => slot(a).zip(slot(b)),
        _ => None,
    };
    guard.conjuncts(signature).iter().filter_map(pair).collect()
}

/// The ownership of the parts of a linear process.
struct Ownership<'p> {
    process: &'p LinearProcess,
    /// The constants; those with components first.
    constants: Vec<OpId>,
    size: usize,
    /// The owner of each component.
    components: Vec<Option<usize>>,
    /// The owner of each parameter.
    owner: Vec<Option<usize>>,
    /// For each parameter: its index among those of its owner.
    number: Vec<usize>,
    of: AHashMap<VarId, usize>,
}

impl<'p> Ownership<'p> {
    fn new(process: &'p LinearProcess, names: &[String], size: usize) -> Result<Self, Diagnostic> {
        let signature = &process.data.signature;
        let constants: Vec<OpId> =
            names.iter().filter_map(|name| constant(signature, name)).collect();
        if constants.len() != names.len() {
            return Err(Diagnostic::internal("a constant is missing"));
        }
        let of = process.params.iter().enumerate().map(|(i, p)| (p.var, i)).collect();
        let mut shape = Self {
            process,
            constants,
            size,
            components: Vec::new(),
            owner: Vec::new(),
            number: Vec::new(),
            of,
        };
        for c in 0..process.components.len() {
            let named = shape.named_identities(c);
            if named.len() > 1 {
                let text = format!(
                    "the component {} names several constants of a sort of any size",
                    process.components[c]
                );
                return Err(Diagnostic::new(Stage::Unsupported, text));
            }
            shape.components.push(named.first().copied());
        }
        let mut counts: AHashMap<Option<usize>, usize> = AHashMap::new();
        for param in &process.params {
            let (ParamRole::Control(c) | ParamRole::Data(c)) = param.role;
            let owner = shape.components.get(c as usize).copied().flatten();
            let count = counts.entry(owner).or_default();
            shape.owner.push(owner);
            shape.number.push(*count);
            *count += 1;
        }
        Ok(shape)
    }

    fn position(&self, op: OpId) -> Option<usize> {
        self.constants.iter().position(|c| *c == op)
    }

    /// Returns the identities that a component names.
    fn named_identities(&self, component: usize) -> BTreeSet<usize> {
        let mut named = BTreeSet::new();
        let mut see = |e: &Expr| e.each_op(&mut |op| named.extend(self.position(op)));
        if let Some(automaton) = self.process.anatomy.components.get(component) {
            for edge in &automaton.edges {
                see(&edge.guard);
                edge.acts.iter().flat_map(|a| &a.args).for_each(&mut see);
            }
        }
        for param in &self.process.params {
            let (ParamRole::Control(c) | ParamRole::Data(c)) = param.role;
            if c as usize == component && component < self.process.anatomy.components.len() {
                see(&param.init);
            }
        }
        named
    }

    /// Returns the identities of a summand: owners of its parameters, of participating components,
    /// and names in it.
    fn identities(&self, summand: usize) -> BTreeSet<usize> {
        let summand = &self.process.summands[summand];
        let mut found = BTreeSet::new();
        let mut vars = Vec::new();
        let actions = || summand.actions.iter().chain(&summand.hidden);
        let parts = std::iter::once(&summand.guard)
            .chain(summand.updates.iter().map(|u| &u.1))
            .chain(actions().flat_map(|a| &a.args));
        for e in parts {
            e.free_vars(&mut vars);
            e.each_op(&mut |op| found.extend(self.position(op)));
        }
        found.extend(vars.iter().filter_map(|v| self.owner[*self.of.get(v)?]));
        found.extend(summand.updates.iter().filter_map(|u| self.owner[u.0]));
        found.extend(
            actions()
                .flat_map(|a| &a.from)
                .filter_map(|o| *self.components.get(o.component as usize)?),
        );
        found
    }

    /// Checks that identities can be permuted, and that one more changes nothing for the others.
    fn check(&self, above: &Ownership) -> Result<(), Diagnostic> {
        let not = |what: &str| {
            Diagnostic::new(Stage::Unsupported, format!("{what}, of which there may be any number"))
        };
        let shared = |s: &Ownership| s.components.iter().filter(|c| c.is_none()).count();
        if shared(self) != shared(above) {
            return Err(not("some components do not name their constant"));
        }
        let all = self.summands(&|i| i);
        for first in 0..self.size - 1 {
            let swap = |i: usize| match i {
                _ if i == first => first + 1,
                _ if i == first + 1 => first,
                _ => i,
            };
            let swapped = self.summands(&swap);
            if !all.iter().map(|k| &k.0).eq(swapped.iter().map(|k| &k.0)) {
                let other = all.iter().zip(&swapped).find(|(a, b)| a.0 != b.0);
                let span = other.map(|o| self.process.summands[o.0.1].span()).unwrap_or_default();
                return Err(not("a step is not the same for all components").or_span(span));
            }
            if self.initial(&swap) != self.initial(&|i| i) {
                return Err(not("components have different initial values"));
            }
        }
        // The summands of this process are followed by those of the last identity of the other.
        let fewer = |s: &Ownership, at: &usize| s.identities(*at).iter().all(|i| *i < self.size);
        let more = above.summands(&|i| i);
        let same =
            all.iter().map(|k| &k.0).eq(more.iter().filter(|k| fewer(above, &k.1)).map(|k| &k.0));
        let alike = all.iter().all(|k| fewer(self, &k.1));
        if !same || !alike {
            return Err(not("a step depends on the number of components"));
        }
        Ok(())
    }

    /// Returns the summands as texts with identities renamed, sorted, each with its index.
    fn summands(&self, rename: &dyn Fn(usize) -> usize) -> Vec<(String, usize)> {
        let mut all: Vec<(String, usize)> =
            (0..self.process.summands.len()).map(|s| (self.summand(s, rename), s)).collect();
        all.sort();
        all
    }

    fn summand(&self, at: usize, rename: &dyn Fn(usize) -> usize) -> String {
        let summand = &self.process.summands[at];
        let signature = &self.process.data.signature;
        let mut bare = CanonicalPrinter { shape: self, rename, vars: None };
        let mut conjuncts: Vec<(String, Expr)> =
            summand.guard.conjuncts(signature).into_iter().map(|e| (bare.text(&e), e)).collect();
        conjuncts.sort_by(|a, b| a.0.cmp(&b.0));
        let mut updates: Vec<(String, &Expr)> =
            summand.updates.iter().map(|u| (self.param(u.0, rename), &u.1)).collect();
        updates.sort_by(|a, b| a.0.cmp(&b.0));
        let mut writer = CanonicalPrinter { shape: self, rename, vars: Some(Vec::new()) };
        let mut text: Vec<String> = conjuncts.iter().map(|c| writer.text(&c.1)).collect();
        for act in &summand.actions {
            let args: Vec<String> = act.args.iter().map(|e| writer.text(e)).collect();
            text.push(format!(
                "! {} {}",
                self.process.actions[act.action.index()].name,
                args.join(" ")
            ));
        }
        text.extend(updates.iter().map(|(p, e)| format!("{p} := {}", writer.text(e))));
        let mut sums: Vec<String> = summand.sum_vars.iter().map(|v| writer.variable(*v)).collect();
        sums.sort();
        text.push(sums.join(" "));
        text.join("; ")
    }

    /// Returns the initial values by parameter.
    fn initial(&self, rename: &dyn Fn(usize) -> usize) -> Vec<(String, String)> {
        let mut writer = CanonicalPrinter { shape: self, rename, vars: None };
        let last = self.process.params.iter().enumerate();
        let own = last.filter(|(_, p)| {
            let (ParamRole::Control(c) | ParamRole::Data(c)) = p.role;
            (c as usize) < self.process.anatomy.components.len()
        });
        let mut all: Vec<(String, String)> =
            own.map(|(i, p)| (self.param(i, rename), writer.text(&p.init))).collect();
        all.sort();
        all
    }

    fn param(&self, at: usize, rename: &dyn Fn(usize) -> usize) -> String {
        match self.owner[at] {
            Some(i) => format!("<{}.{}>", rename(i), self.number[at]),
            None => format!("<{}>", self.number[at]),
        }
    }

    /// Returns the largest number of components that participate in a step. Error: an operator
    /// prevents a bound.
    fn participant_bound(&self) -> Result<usize, Diagnostic> {
        let anatomy = &self.process.anatomy;
        let own: Vec<usize> =
            (0..anatomy.components.len()).filter(|c| self.components[*c].is_some()).collect();
        let Some(first) = own.first() else { return Ok(0) };
        for c in &own {
            if let Some(edge) = anatomy.components[*c].edges.iter().position(|e| e.acts.is_empty())
            {
                let from = anatomy.components[*c].edges[edge].guard.span;
                return reject(
                    format!(
                        "{} has a step without an action, in which any number of components may participate",
                        self.process.components[*c]
                    ),
                    from,
                );
            }
        }
        let around: Vec<usize> = anatomy.above[*first]
            .iter()
            .copied()
            .filter(|o| own.iter().all(|c| anatomy.above[*c].contains(o)))
            .collect();
        for o in own.iter().flat_map(|c| &anatomy.above[*c]).filter(|o| !around.contains(o)) {
            let operator = &anatomy.operators[*o];
            if matches!(operator.kind, OperatorKind::Hide(_) | OperatorKind::Comm(_)) {
                return reject(
                    format!("`{}` around one component of any number", operator.kind.word()),
                    operator.place,
                );
            }
        }
        let mut weights: AHashMap<&str, usize> = AHashMap::new();
        for o in around {
            let operator = &anatomy.operators[o];
            match &operator.kind {
                OperatorKind::Allow(sets) => {
                    let weight = |set: &Vec<String>| {
                        set.iter().map(|n| weights.get(n.as_str()).copied().unwrap_or(1)).sum()
                    };
                    return Ok(sets.iter().map(weight).max().unwrap_or(0));
                }
                OperatorKind::Block(_) => {}
                OperatorKind::Rename(pairs) => {
                    for (a, b) in pairs {
                        let weight = weights.get(a.as_str()).copied().unwrap_or(1);
                        let known = weights.entry(b).or_insert(1);
                        *known = weight.max(*known);
                    }
                }
                OperatorKind::Comm(rules) => {
                    let weight = |names: &Vec<String>| {
                        names
                            .iter()
                            .map(|n| weights.get(n.as_str()).copied().unwrap_or(1))
                            .sum::<usize>()
                    };
                    let found: Vec<(&String, usize)> = rules
                        .iter()
                        .filter_map(|(from, to)| to.as_ref().map(|to| (to, weight(from))))
                        .collect();
                    if found.len() != rules.len() {
                        return reject(
                            "a communication to tau around components of any number",
                            operator.place,
                        );
                    }
                    for (to, weight) in found {
                        let known = weights.entry(to).or_insert(1);
                        *known = weight.max(*known);
                    }
                }
                OperatorKind::Hide(_) => {
                    return reject(
                        "`hide` inside the `allow` around components of any number",
                        operator.place,
                    );
                }
            }
        }
        Err(Diagnostic::new(
            Stage::Unsupported,
            "no `allow` bounds the number of components that participate in one step",
        ))
    }
}

/// Printer of expressions in a form that is comparable between processes.
struct CanonicalPrinter<'s, 'p> {
    shape: &'s Ownership<'p>,
    rename: &'s dyn Fn(usize) -> usize,
    /// The other variables, in order of occurrence; if `None`, all of one name are identified.
    vars: Option<Vec<VarId>>,
}

impl CanonicalPrinter<'_, '_> {
    fn variable(&mut self, v: VarId) -> String {
        let signature = &self.shape.process.data.signature;
        let name = &signature.var(v).name;
        let Some(vars) = &mut self.vars else { return name.clone() };
        if !vars.contains(&v) {
            vars.push(v);
        }
        let number = vars
            .iter()
            .take_while(|w| **w != v)
            .filter(|w| signature.var(**w).name == *name)
            .count();
        format!("{name}#{number}")
    }

    fn text(&mut self, e: &Expr) -> String {
        let signature = &self.shape.process.data.signature;
        stacker::maybe_grow(128 << 10, 4 << 20, || match &e.kind {
            ExprKind::Var(v) => match self.shape.of.get(v) {
                Some(param) => self.shape.param(*param, self.rename),
                None => self.variable(*v),
            },
            ExprKind::Op(op) => match self.shape.position(*op) {
                Some(i) => format!("<{}>'", (self.rename)(i)),
                None => format!(
                    "{}:{}",
                    signature.op(*op).name,
                    signature.sorts.text(signature.op(*op).sort)
                ),
            },
            ExprKind::Number(n) => n.to_string(),
            ExprKind::Apply(head, args) => {
                let mut args: Vec<(String, &Expr)> =
                    args.iter().map(|a| (String::new(), a)).collect();
                if let Some((Builtin::Equal, _)) = e.as_builtin(signature) {
                    let mut bare =
                        CanonicalPrinter { shape: self.shape, rename: self.rename, vars: None };
                    args.iter_mut().for_each(|a| a.0 = bare.text(a.1));
                    args.sort_by(|a, b| a.0.cmp(&b.0));
                }
                let head = self.text(head);
                let args: Vec<String> = args.iter().map(|a| self.text(a.1)).collect();
                format!("{head}({})", args.join(", "))
            }
            ExprKind::Bind(binder, vars, body) => {
                let vars: Vec<String> = vars.iter().map(|v| self.variable(*v)).collect();
                format!("{binder:?} {}. {}", vars.join(" "), self.text(body))
            }
            ExprKind::Where(body, definitions) => {
                let all: Vec<String> = definitions
                    .iter()
                    .map(|(v, d)| format!("{} = {}", self.variable(*v), self.text(d)))
                    .collect();
                format!("{} whr {}", self.text(body), all.join(", "))
            }
        })
    }
}
