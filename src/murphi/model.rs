//! Murphi model as slots and transition groups, for every engine.
//!
//! A slot is a simple variable; its value is the content of its field, 0 if it is undefined. A
//! group is an instance of a rule, labelled with its name and the values of its parameters:
//! `acquire(Node_1)`. A name is written with `_` for all other characters than letters and digits.
//! Several start states are the results of a first group, labelled `startstate`, that one more slot
//! enables.
//!
//! Failures are steps that leave the state unchanged: `error` if a guard or rule fails,
//! `violation(NAME)` in a state that violates an invariant. So formulas can refer to them, and no
//! engine needs to know them. Top-level assumptions discard the results of rules; of rules with
//! priorities only those with the lowest number have steps. `cover` and liveness are claims of
//! `explore`, and formulas here.
//!
//! *Conditions* of a caller ([`crate::additions`]) are steps too: `NAME(values)` in a state where
//! the condition is true, `not_NAME(values)` where it is false or reads an undefined variable. Any
//! other failure is an error.
//! *Shown values* are the last argument of the labels of a rule: the value of a variable after it.
//!
//! Reads and writes of a group come from its code ([`crate::footprint`]). A group that writes to a
//! multiset writes all of it, sorted. Cost: one run of the guard and the rule for each query.

use crate::actions::{START, identifiers, numbered_actions, rule_actions, words_of_constants};
use crate::additions::ShownValue;
use crate::code::{Fault, Program};
use crate::footprint::{Footprint, footprint};
use crate::labels::{
    Argument, CLAIM, Labels, NamedSubset, constants, rename_members, renamed_types, sort, subsets,
};
use crate::normal::Normal;
use crate::path::{property_name, rule_name};
use crate::run::{Ended, Interpreter, read, write};
use crate::search::{discarding_invariants, priorities};
use crate::symmetry::{Exchange, exchanges};
use crate::typed::{Binding, Claim, Model as Typed, TypeKind};
use crate::variables::{Variable, variables};
use mu_base::ids::LabelId;
use mu_base::mixing::{FNV_BASIS, fnv};
use mu_base::{Diagnostic, Stage, Stop};
use mu_model::{Group, Model, Portable, Slot, SlotInfo, Steps, Symmetry, Worker};
use std::collections::BTreeSet;

pub use crate::actions::{ERROR, VIOLATION};

/// Behaviour of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// Instance of a rule.
    Rule(u32),
    /// Instance of an invariant.
    Invariant(u32),
    /// Instance of a condition of a caller, and the value that the step shows.
    Condition(u32, bool),
    /// Choice of the start state.
    Start,
}

/// Value in the labels of a group: a variable, and the label of each of its values.
#[derive(Debug)]
struct Shown {
    variable: usize,
    /// By the content of the field; `None` for a content without a value.
    labels: Vec<Option<LabelId>>,
}

/// Murphi model with slots and groups.
pub struct ProtocolModel {
    typed: Typed,
    program: Program,
    variables: Vec<Variable>,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    moves: Vec<Move>,
    labels: Labels,
    /// Label of each group.
    own: Vec<LabelId>,
    /// Value in the labels of each group, if there is one.
    shown: Vec<Option<Shown>>,
    /// Action of each rule.
    names: Vec<String>,
    /// Members with other names in labels: old and new name.
    renamed: Vec<(String, String)>,
    /// Number of the properties of the model itself; the others are conditions of the caller.
    own_properties: usize,
    /// Label [`ERROR`].
    error: LabelId,
    starts: Vec<Vec<u64>>,
    assumptions: Vec<(u32, Footprint)>,
    /// Invariants that discard states, as [`discarding_invariants`].
    discarding: Vec<u32>,
    priorities: Vec<i64>,
    fingerprint: String,
    symmetries: Vec<Symmetry>,
    /// Exchange of each symmetry.
    exchanges: Vec<Exchange>,
}

impl ProtocolModel {
    /// Creates a model from a typed one.
    ///
    /// # Errors
    /// The model is too large; a start state fails; no start state satisfies the assumptions.
    pub fn new(typed: Typed) -> Result<Self, Diagnostic> {
        Self::with(typed, 0, &[])
    }
    /// Creates a model from a typed one with additions of a caller. `conditions`: the number of
    /// the last properties that are conditions. `shown`: values of variables in labels.
    ///
    /// # Errors
    /// As [`ProtocolModel::new`]; a shown variable does not exist, or is not simple.
    pub fn with(
        mut typed: Typed,
        conditions: usize,
        shown: &[ShownValue],
    ) -> Result<Self, Diagnostic> {
        let program = crate::compile(&typed)?;
        let variables = variables(&typed, &program.layout);
        if let Some(wide) = variables.iter().find(|v| v.width > 32) {
            let text = format!("variable `{}` needs more than 32 bits", wide.name);
            return Err(Diagnostic::new(Stage::Unsupported, text)
                .note("supported by `explore` without other options"));
        }
        let own_properties = typed.properties.len() - conditions;
        let discarding = discarding_invariants(&typed, &program, own_properties);
        let starts = starts(&typed, &program, &discarding)?;
        let assumptions = (0..program.properties.len() as u32)
            .filter(|at| claim(&typed, &program, *at) == Claim::Assume)
            .map(|at| (at, footprint(&program, program.properties[at as usize].guard)))
            .collect();
        let priorities = priorities(&typed, &program);
        let names = rule_actions(&typed);
        let renamed = rename_members(&mut typed);
        let mut model = Self {
            typed,
            program,
            variables,
            slots: Vec::new(),
            groups: Vec::new(),
            moves: Vec::new(),
            labels: Labels::new(),
            own: Vec::new(),
            shown: Vec::new(),
            names,
            renamed,
            own_properties,
            error: LabelId::TAU,
            starts,
            assumptions,
            discarding,
            priorities,
            fingerprint: String::new(),
            symmetries: Vec::new(),
            exchanges: Vec::new(),
        };
        model.error = model.labels.add(ERROR, &[]);
        model.add_slots();
        model.add_groups(shown)?;
        let (typed, layout, slots) = (&model.typed, &model.program.layout, model.slots.len());
        let found = exchanges(typed, layout, &model.variables, slots);
        (model.symmetries, model.exchanges) = found.into_iter().unzip();
        model.fingerprint = model.computed_fingerprint();
        Ok(model)
    }
    /// Computes a name for the behaviour: all parts on which steps and labels depend, without
    /// places in the text.
    fn computed_fingerprint(&self) -> String {
        let Program { layout, code, sites, ranges, unions, tables, multisets, .. } = &self.program;
        let Program { entries, frames, memory, rules, starts, properties, .. } = &self.program;
        let faults: Vec<_> = sites.iter().map(|(at, site)| (at, &site.fault)).collect();
        let claims: Vec<Claim> = self.typed.properties.iter().map(|p| p.claim).collect();
        let texts: Vec<&str> =
            (0..self.labels.count()).map(|n| self.labels.text(LabelId::new(n))).collect();
        let program = (layout, code, faults, ranges, unions, tables, multisets);
        let instances = (entries, frames, memory, rules, starts, properties, claims);
        let groups = (&self.variables, &self.starts, &self.priorities, &self.moves, &self.own);
        let labels = (&self.shown, texts, self.declarations());
        let text = format!("{program:?}{instances:?}{groups:?}{labels:?}");
        format!("murphi {:016x}", fnv(FNV_BASIS, text.bytes()))
    }
    /// Returns the compiled model.
    pub fn program(&self) -> &Program {
        &self.program
    }
    /// Returns the declarations of the sorts and actions of all labels, as a part of an mCRL2
    /// specification.
    pub fn declarations(&self) -> String {
        self.labels.declarations(&self.typed)
    }
    /// Returns the names of types and members that are words or functions of formulas, each with
    /// its name in formulas.
    pub fn renamed_words(&self) -> Vec<(String, String)> {
        [renamed_types(&self.typed), self.renamed.clone()].concat()
    }
    /// Returns the rules with actions that differ from their names, because the identifier of the
    /// name is a reserved word or that of another rule: each name with its action.
    pub fn numbered_actions(&self) -> Vec<(&str, &str)> {
        numbered_actions(&self.typed, &self.names)
    }
    /// Returns the named types with fewer values than their sorts.
    pub fn subsets(&self) -> Vec<NamedSubset> {
        subsets(&self.typed)
    }
    fn add_slots(&mut self) {
        let tested = |v: &Variable| {
            let of = |i: &crate::code::Instance| {
                i.tests.first().is_some_and(|t| t.field.offset == v.offset)
            };
            self.program.rules.iter().any(of)
        };
        let component = |v: &Variable| {
            let after = self.program.layout.globals.partition_point(|g| *g <= v.offset);
            after.saturating_sub(1) as u32
        };
        let mut slots: Vec<SlotInfo> = self
            .variables
            .iter()
            .map(|v| SlotInfo { name: v.name.clone(), component: component(v), control: tested(v) })
            .collect();
        if self.starts.len() > 1 {
            let component = self.typed.globals.len() as u32;
            slots.push(SlotInfo { name: "started".into(), component, control: true });
        }
        self.slots = slots;
    }
    /// Returns the slots that intersect intervals of bits.
    fn slots_of(&self, bits: &[(u32, u32)]) -> BTreeSet<Slot> {
        let meets = |v: &Variable| {
            let end = v.offset + u32::from(v.width);
            bits.iter().any(|b| b.0 < end && v.offset < b.1)
        };
        (0..self.variables.len())
            .filter(|n| meets(&self.variables[*n]))
            .map(|n| n as Slot)
            .collect()
    }
    /// Widens intervals of bits to the whole multisets that they meet.
    fn widen_to_multisets(&self, bits: &[(u32, u32)], normal: &Normal) -> Vec<(u32, u32)> {
        let mut all = bits.to_vec();
        for (from, to) in normal.multisets() {
            if bits.iter().any(|b| b.0 < to && from < b.1) {
                all.push((from, to));
            }
        }
        all
    }
    fn add_groups(&mut self, shown: &[ShownValue]) -> Result<(), Diagnostic> {
        let normal = Normal::new(&self.typed, &self.program, false);
        let started = (self.starts.len() > 1).then_some((self.variables.len() as Slot, 1));
        if let Some((slot, _)) = started {
            let writes = (0..=slot).collect();
            let requires = vec![(slot, 0)];
            let label = self.labels.add(START, &[]);
            let group = group(START.into(), requires, BTreeSet::new(), None, writes);
            self.add(group, Move::Start, label);
        }
        let guards: Vec<Footprint> =
            self.program.rules.iter().map(|r| footprint(&self.program, r.guard)).collect();
        for at in 0..self.program.rules.len() {
            let body = footprint(&self.program, self.program.rules[at].body);
            let writes =
                self.widen_to_multisets(&[&guards[at].writes[..], &body.writes].concat(), &normal);
            let mut tests = guards[at].reads.clone();
            for (other, guard) in guards.iter().enumerate() {
                if !self.priorities.is_empty() && self.priorities[other] < self.priorities[at] {
                    tests.extend(&guard.reads);
                }
            }
            let mut reads = [&tests[..], &body.reads, &writes].concat();
            let mut discards = body.discards || guards[at].discards;
            for (_, assumption) in &self.assumptions {
                reads.extend(&assumption.reads);
                discards = true;
            }
            for invariant in &self.discarding {
                let guard = self.program.properties[*invariant as usize].guard;
                reads.extend(footprint(&self.program, guard).reads);
                discards = true;
            }
            let (tests, mut reads, writes) =
                (self.slots_of(&tests), self.slots_of(&reads), self.slots_of(&writes));
            let tests = if discards { reads.clone() } else { tests };
            let (action, arguments) = self.rule_label(at);
            let value = self.shown_value(at, (&action, &arguments), shown)?;
            reads.extend(value.as_ref().map(|v| v.variable as Slot));
            let label = match &value {
                Some(value) => value.labels.iter().flatten().next().copied(),
                None => Some(self.labels.add(&action, &arguments)),
            };
            let name = rule_name(&self.typed, &self.program, at as u32);
            let requires = started.into_iter().collect();
            let writes = writes.into_iter().collect();
            let group = group(name, requires, reads, Some(tests), writes);
            self.add(group, Move::Rule(at as u32), label.unwrap_or(self.error));
            if let Some(last) = self.shown.last_mut() {
                *last = value;
            }
        }
        self.declare_rules();
        let names: Vec<String> = (0..self.program.properties.len() as u32)
            .map(|at| property_name(&self.typed, &self.program, at))
            .collect();
        let constants = constants(&self.typed);
        let reserved = words_of_constants().into_iter().chain(constants.iter().map(String::as_str));
        let claims = identifiers(names.into_iter(), &reserved.collect::<Vec<_>>());
        for at in 0..self.program.properties.len() as u32 {
            let is_own = self.is_own(at);
            if is_own && claim(&self.typed, &self.program, at) != Claim::Assert {
                continue;
            }
            let reads = footprint(&self.program, self.program.properties[at as usize].guard).reads;
            let reads = self.slots_of(&reads);
            let name = property_name(&self.typed, &self.program, at);
            let requires: Vec<_> = started.into_iter().collect();
            if is_own {
                let claim = claims[at as usize].clone();
                self.labels.claims.push(claim.clone());
                let label = self.labels.add(VIOLATION, &[(claim, CLAIM.to_string())]);
                let group = group(name, requires, reads, None, Vec::new());
                self.add(group, Move::Invariant(at), label);
                continue;
            }
            let (action, arguments) = self.condition_label(at);
            for (value, action) in [(true, action.clone()), (false, format!("not_{action}"))] {
                let label = self.labels.add(&action, &arguments);
                let group = group(name.clone(), requires.clone(), reads.clone(), None, Vec::new());
                self.add(group, Move::Condition(at, value), label);
            }
        }
        Ok(())
    }
    /// Declares the actions of rules without instances: their guards are false for the constants,
    /// or a parameter has no value. A formula that names them is about no transition.
    fn declare_rules(&mut self) {
        for (rule, name) in self.typed.rules.iter().zip(&self.names) {
            let sorts = rule.bindings.iter().filter_map(|binding| match binding {
                Binding::Parameter { local, .. } => {
                    Some(sort(&self.typed, rule.frame.get(*local).ty, false))
                }
                Binding::Choose { .. } => Some("Nat".to_string()),
                Binding::Alias(_) => None,
            });
            self.labels.declare(name, sorts.collect());
        }
    }
    /// Returns the names of the two constants that each symmetry exchanges.
    pub fn exchanged_constants(&self) -> Vec<[String; 2]> {
        self.exchanges.iter().map(|e| e.texts.clone()).collect()
    }
    /// Returns the action of the transitions from the initial state to the start states, if there
    /// are several.
    pub fn start_action(&self) -> Option<&'static str> {
        (self.starts.len() > 1).then_some(START)
    }
    fn add(&mut self, group: Group, movement: Move, label: LabelId) {
        self.groups.push(group);
        self.moves.push(movement);
        self.own.push(label);
        self.shown.push(None);
    }
    /// True if an instance of a property belongs to the model itself.
    fn is_own(&self, at: u32) -> bool {
        (self.program.properties[at as usize].number as usize) < self.own_properties
    }
    /// Returns the action and the arguments of the label of an instance of a rule.
    fn rule_label(&self, at: usize) -> (String, Vec<Argument>) {
        let instance = &self.program.rules[at];
        let rule = &self.typed.rules[instance.number as usize];
        let name = self.names[instance.number as usize].clone();
        let chosen = |local| {
            rule.bindings
                .iter()
                .any(|b| matches!(b, Binding::Choose { local: l, .. } if *l == local))
        };
        // Without a range, a number is an integer if some value of the parameter is negative.
        let negative = self.program.rules.iter().any(|r| {
            r.number == instance.number && r.parameters.iter().any(|(_, value)| *value < 0)
        });
        let values = instance.parameters.iter().map(|(local, value)| {
            if chosen(*local) {
                return (value.to_string(), "Nat".to_string());
            }
            let ty = rule.frame.get(*local).ty;
            let text = self.program.layout.text(&self.typed, ty, *value);
            (text, sort(&self.typed, ty, negative))
        });
        (name, values.collect())
    }
    /// Returns the action and the arguments of the label of a condition.
    fn condition_label(&self, at: u32) -> (String, Vec<Argument>) {
        let instance = &self.program.properties[at as usize];
        let property = &self.typed.properties[instance.number as usize];
        let values = instance.parameters.iter().map(|(local, value)| {
            let ty = property.frame.get(*local).ty;
            let text = self.program.layout.text(&self.typed, ty, *value);
            (text, sort(&self.typed, ty, false))
        });
        (property.name.clone().unwrap_or_default(), values.collect())
    }
    /// Finds the value that the labels of a rule show, and adds these labels.
    fn shown_value(
        &mut self,
        at: usize,
        (action, arguments): (&str, &[Argument]),
        shown: &[ShownValue],
    ) -> Result<Option<Shown>, Diagnostic> {
        let of_rule = |s: &&ShownValue| s.action == action && s.parameters.len() == arguments.len();
        let Some(value) = shown.iter().find(of_rule) else { return Ok(None) };
        let mut depth = 0;
        let mut name = String::new();
        for token in &value.variable {
            depth += i32::from(token == "[") - i32::from(token == "]");
            let named = value.parameters.iter().position(|p| p.as_ref() == Some(token));
            name += named.filter(|_| depth > 0).map_or(token, |n| &arguments[n].0);
        }
        let place = value.span;
        let Some(variable) = self.variables.iter().position(|v| v.name == name) else {
            let text = format!("the model has no simple variable `{name}`");
            let known = self.variables.iter().map(|v| v.name.as_str());
            let mut error = Diagnostic::at(Stage::Type, place, text).note(format!(
                "for the rule `{}`",
                rule_name(&self.typed, &self.program, at as u32)
            ));
            let similar = mu_base::similar::similar_names(&name, known.clone());
            let known: Vec<&str> = match similar.is_empty() {
                true => known.take(8).collect(),
                false => similar,
            };
            error = error.note(format!("similar variables: `{}`", known.join("`, `")));
            return Err(error);
        };
        let (ty, width) = (self.variables[variable].ty, self.variables[variable].width);
        if width > 16 || self.variables[variable].slot.is_some() {
            let text = format!("the variable `{name}` cannot be an argument of labels");
            return Err(Diagnostic::at(Stage::Unsupported, place, text)
                .note("expected a variable of at most 16 bits outside of multisets"));
        }
        let sort = sort(&self.typed, ty, false);
        let layout = &self.program.layout;
        let values: Vec<Option<i64>> = (0..1u64 << width)
            .map(|raw| layout.simple(ty).and_then(|s| s.value(raw).filter(|v| s.contains(*v))))
            .collect();
        let texts: Vec<Option<String>> = values
            .into_iter()
            .map(|value| value.map(|v| layout.text(&self.typed, ty, v)))
            .collect();
        let labels = texts.into_iter().map(|text| {
            let all = [arguments, &[(text?, sort.clone())]].concat();
            Some(self.labels.add(action, &all))
        });
        Ok(Some(Shown { variable, labels: labels.collect() }))
    }
}

fn claim(typed: &Typed, program: &Program, at: u32) -> Claim {
    typed.properties[program.properties[at as usize].number as usize].claim
}

fn group(
    name: String,
    requires: Vec<(Slot, u32)>,
    reads: BTreeSet<Slot>,
    tests: Option<BTreeSet<Slot>>,
    writes: Vec<Slot>,
) -> Group {
    let tests = tests.unwrap_or_else(|| reads.clone());
    Group {
        name,
        requires,
        tests: tests.into_iter().collect(),
        reads: reads.into_iter().collect(),
        writes,
        actions: None,
        hidden: Vec::new(),
        tau: false,
        confluent: false,
    }
}

/// Computes the start states that satisfy the assumptions, without repetitions.
fn starts(
    typed: &Typed,
    program: &Program,
    discarding: &[u32],
) -> Result<Vec<Vec<u64>>, Diagnostic> {
    let mut interpreter = Interpreter::new(program, typed.claims.len(), || false);
    let mut normal = Normal::new(typed, program, false);
    let mut all: Vec<Vec<u64>> = Vec::new();
    let fails = |what: &str, at: u32| {
        let (text, span) = match program.site(at) {
            Some(site) => (crate::compile::fault_text(typed, &site.fault), site.span),
            None => ("an instruction failed".into(), mu_base::Span::default()),
        };
        Diagnostic::new(Stage::Data, format!("{what} fails: {text}")).or_span(span)
    };
    for start in &program.starts {
        interpreter.memory.fill(0);
        match interpreter.run(start.body) {
            Ended::Done => {}
            Ended::Fault(at) => return Err(fails("a start state", at)),
            _ => continue,
        }
        normal.sort(&mut interpreter.memory);
        let state = interpreter.memory[..program.layout.words].to_vec();
        let assumptions = (0..program.properties.len() as u32)
            .filter(|at| claim(typed, program, *at) == Claim::Assume);
        match interpreter.check_assumptions(assumptions, &state) {
            Ok(true) if interpreter.discards(discarding, &state) => continue,
            Ok(true) => {}
            Ok(false) => continue,
            Err(at) => return Err(fails("an assumption about a start state", at)),
        }
        if !all.contains(&state) {
            all.push(state);
        }
    }
    if all.is_empty() {
        return Err(Diagnostic::new(Stage::Data, "no start state satisfies the assumptions"));
    }
    Ok(all)
}

impl Model for ProtocolModel {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        let several = self.starts.len() > 1;
        let field = |v: &Variable| {
            if several { 0 } else { read(&self.starts[0], v.offset as usize, v.width) as u32 }
        };
        self.variables.iter().map(field).chain(several.then_some(0)).collect()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(ProtocolWorker {
            model: self,
            interpreter: Interpreter::new(&self.program, self.typed.claims.len(), || false),
            normal: Normal::new(&self.typed, &self.program, false),
            state: vec![0; self.program.layout.words],
        })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.labels.text(label).to_string()
    }
    fn label_count(&self) -> usize {
        self.labels.count()
    }
    fn value_text(&self, slot: Slot, value: u32) -> String {
        let Some(variable) = self.variables.get(slot as usize) else {
            return (value == 1).to_string();
        };
        if variable.is_slot {
            return if value == 1 { "present".into() } else { "absent".into() };
        }
        let layout = &self.program.layout;
        match layout.simple(variable.ty).and_then(|s| s.value(u64::from(value))) {
            Some(value) => {
                let text = layout.text(&self.typed, variable.ty, value);
                // States are shown with the names of the model.
                let old = self.renamed.iter().find(|(_, new)| *new == text);
                old.map_or(text, |(old, _)| old.clone())
            }
            None => "undefined".into(),
        }
    }
    fn symmetries(&self) -> &[Symmetry] {
        &self.symmetries
    }
    fn components(&self) -> Vec<String> {
        let names = self.typed.globals.iter().map(|g| g.name.clone());
        names.chain((self.starts.len() > 1).then(|| START.to_string())).collect()
    }
    fn fingerprint(&self) -> Option<String> {
        Some(self.fingerprint.clone())
    }
    fn export_values(&self) -> Result<Vec<Vec<String>>, Diagnostic> {
        // The numbers of values are the same in every run.
        Ok(vec![Vec::new(); self.slots.len()])
    }
    fn import_values(&self, _texts: &[Vec<String>]) -> Result<(), Diagnostic> {
        Ok(())
    }
    fn portable(&self) -> Option<&dyn Portable> {
        Some(self)
    }
}

impl Portable for ProtocolModel {
    fn encoding_fingerprint(&self) -> String {
        self.fingerprint.clone()
    }
    fn export(&self, _slot: Slot, value: u32) -> Result<Vec<u8>, Diagnostic> {
        Ok(value.to_le_bytes().to_vec())
    }
    fn import(&self, _slot: Slot, bytes: &[u8]) -> Result<u32, Diagnostic> {
        let bytes = bytes.try_into().map_err(Diagnostic::internal)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

struct ProtocolWorker<'m> {
    model: &'m ProtocolModel,
    interpreter: Interpreter<'m>,
    normal: Normal,
    state: Vec<u64>,
}

impl ProtocolWorker<'_> {
    fn load(&mut self) {
        self.interpreter.memory[..self.state.len()].copy_from_slice(&self.state);
    }
    /// Returns the label of a rule with the value of a variable after it.
    fn shown_label(&self, group: usize, shown: &Shown) -> Result<LabelId, Diagnostic> {
        let variable = &self.model.variables[shown.variable];
        let raw = read(&self.interpreter.memory, variable.offset as usize, variable.width);
        shown.labels.get(raw as usize).copied().flatten().ok_or_else(|| {
            let text = format!(
                "`{}` is undefined after {}, but its value is an argument of the label",
                variable.name, self.model.groups[group].name
            );
            Diagnostic::new(Stage::Data, text)
        })
    }
    /// Rejects calls that are nested deeper than the limit of this tool.
    fn expect_shallow(&self, pc: u32) -> Result<(), Diagnostic> {
        match self.model.program.site(pc) {
            Some(site) if site.fault == Fault::Depth => {
                let text = crate::compile::fault_text(&self.model.typed, &site.fault);
                Err(Diagnostic { message: text, ..Diagnostic::stopped(Stop::Memory) }
                    .or_span(site.span))
            }
            _ => Ok(()),
        }
    }
    /// True if an instruction fails because a variable is undefined.
    fn is_undefined(&self, pc: u32) -> bool {
        self.model.program.site(pc).is_some_and(|site| site.fault == Fault::Undefined)
    }
    /// Describes an error in a condition of the caller.
    fn condition_error(&self, at: u32, pc: u32) -> Diagnostic {
        let model = self.model;
        let property = &model.program.properties[at as usize];
        let place = model.typed.properties[property.number as usize].span;
        let text = match model.program.site(pc) {
            Some(site) => crate::compile::fault_text(&model.typed, &site.fault),
            None => "an instruction failed".into(),
        };
        Diagnostic::at(Stage::Data, place, format!("this condition fails in a state: {text}"))
            .note("`&`, `|` and `->` evaluate only the operands that they need")
    }
    /// Runs the guard of an instance of a rule in the state. The interpreter keeps the values that
    /// it writes.
    fn is_enabled(&mut self, at: u32) -> Ended {
        self.load();
        self.interpreter.run(self.model.program.rules[at as usize].guard)
    }
    /// Runs an instance of a rule. `None` without a step; the instruction if the guard, the rule or
    /// an assumption about its result fails.
    fn fire(&mut self, at: u32) -> Result<Option<()>, u32> {
        let program = &self.model.program;
        // As in the search, a guard that fails is an error, also if a lower number is enabled.
        match self.is_enabled(at) {
            Ended::Yes => {}
            Ended::Fault(pc) => return Err(pc),
            _ => return Ok(None),
        }
        if let Some(own) = self.model.priorities.get(at as usize) {
            let lower = |other: &usize| self.model.priorities[*other] < *own;
            let lower: Vec<usize> = (0..program.rules.len()).filter(lower).collect();
            if lower.into_iter().any(|other| self.is_enabled(other as u32) == Ended::Yes) {
                return Ok(None);
            }
            self.is_enabled(at);
        }
        match self.interpreter.run(program.rules[at as usize].body) {
            Ended::Done => {}
            Ended::Fault(pc) => return Err(pc),
            _ => return Ok(None),
        }
        self.normal.sort(&mut self.interpreter.memory);
        let after = self.interpreter.memory[..self.state.len()].to_vec();
        let assumptions = self.model.assumptions.iter().map(|(at, _)| *at);
        if !self.interpreter.check_assumptions(assumptions, &after)?
            || self.interpreter.discards(&self.model.discarding, &after)
        {
            return Ok(None);
        }
        Ok(Some(()))
    }
}

impl Worker for ProtocolWorker<'_> {
    fn image(
        &mut self,
        symmetry: usize,
        slot: Slot,
        value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        let (model, exchange) = (self.model, &self.model.exchanges[symmetry]);
        let Some(variable) = model.variables.get(slot as usize) else { return Ok(Some(value)) };
        let permuted =
            |kind: &TypeKind| matches!(kind, TypeKind::Scalarset { .. } | TypeKind::Union { .. });
        if variable.is_slot || !permuted(model.typed.types.kind(variable.ty)) {
            return Ok(Some(value));
        }
        let Some(simple) = model.program.layout.simple(variable.ty) else { return Ok(None) };
        let own = simple.value(u64::from(value));
        Ok(Some(own.map_or(value, |own| simple.code(exchange.number(own)) as u32)))
    }
    fn image_label(
        &mut self,
        symmetry: usize,
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        Ok(self.model.labels.image(label, &self.model.exchanges[symmetry]))
    }
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let model = self.model;
        let info = &model.groups[group];
        self.state.fill(0);
        for (slot, value) in info.reads.iter().zip(reads) {
            let variable = &model.variables[*slot as usize];
            write(&mut self.state, variable.offset as usize, variable.width, u64::from(*value));
        }
        let label = match model.moves[group] {
            Move::Start => {
                for start in &model.starts {
                    out.labels.push(model.own[group]);
                    let field = |v: &Variable| read(start, v.offset as usize, v.width) as u32;
                    out.values.extend(model.variables.iter().map(field).chain([1]));
                }
                return Ok(());
            }
            Move::Rule(at) => match self.fire(at) {
                Ok(None) => return Ok(()),
                Ok(Some(())) => match &model.shown[group] {
                    Some(shown) => self.shown_label(group, shown)?,
                    None => model.own[group],
                },
                Err(pc) => {
                    self.expect_shallow(pc)?;
                    self.load();
                    model.error
                }
            },
            Move::Invariant(at) => {
                self.load();
                match self.interpreter.run(model.program.properties[at as usize].guard) {
                    Ended::No => model.own[group],
                    Ended::Fault(pc) => {
                        self.expect_shallow(pc)?;
                        model.error
                    }
                    _ => return Ok(()),
                }
            }
            Move::Condition(at, expected) => {
                self.load();
                match self.interpreter.run(model.program.properties[at as usize].guard) {
                    Ended::Yes if expected => model.own[group],
                    Ended::No if !expected => model.own[group],
                    Ended::Fault(pc) => match self.is_undefined(pc) {
                        true if expected => return Ok(()),
                        true => model.own[group],
                        false => return Err(self.condition_error(at, pc)),
                    },
                    _ => return Ok(()),
                }
            }
        };
        out.labels.push(label);
        for slot in &info.writes {
            let variable = &model.variables[*slot as usize];
            let raw = read(&self.interpreter.memory, variable.offset as usize, variable.width);
            out.values.push(raw as u32);
        }
        Ok(())
    }
}
