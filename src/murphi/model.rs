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
//! Reads and writes of a group come from its code ([`crate::footprint`]). A group that writes to a
//! multiset writes all of it, sorted. Cost: one run of the guard and the rule for each query.

use crate::code::Program;
use crate::footprint::{Footprint, footprint};
use crate::normal::Normal;
use crate::path::{property_name, rule_name};
use crate::run::{Ended, Machine, read, write};
use crate::search::priorities;
use crate::typed::{Binding, Claim, Model as Typed};
use crate::variables::{Variable, variables};
use mu_base::ids::LabelId;
use mu_base::mixing::{FNV_BASIS, fnv};
use mu_base::{Diagnostic, Stage};
use mu_model::{Group, Model, Portable, Slot, SlotInfo, Steps, Worker};
use std::collections::BTreeSet;

/// Label of a step that shows an error of a guard or a rule.
pub const ERROR: &str = "error";
/// Name of the label of a step that shows a violated invariant.
pub const VIOLATION: &str = "violation";
const START: &str = "startstate";

/// Behaviour of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    /// Instance of a rule.
    Rule(u32),
    /// Instance of an invariant.
    Invariant(u32),
    /// Choice of the start state.
    Start,
}

/// Murphi model with slots and groups.
pub struct ProtocolModel {
    typed: Typed,
    program: Program,
    variables: Vec<Variable>,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    moves: Vec<Move>,
    labels: Vec<String>,
    /// Label of each group.
    own: Vec<LabelId>,
    /// Label [`ERROR`].
    error: LabelId,
    starts: Vec<Vec<u64>>,
    assumptions: Vec<(u32, Footprint)>,
    priorities: Vec<i64>,
    fingerprint: String,
}

impl ProtocolModel {
    /// Creates a model from a typed one.
    ///
    /// # Errors
    /// The model is too large; a start state fails; no start state satisfies the assumptions.
    pub fn new(typed: Typed) -> Result<Self, Diagnostic> {
        let program = crate::compile(&typed)?;
        let variables = variables(&typed, &program.layout);
        if let Some(wide) = variables.iter().find(|v| v.width > 32) {
            let text = format!("variable `{}` needs more than 32 bits", wide.name);
            return Err(Diagnostic::new(Stage::Unsupported, text)
                .note("supported by `explore` without other options"));
        }
        let starts = starts(&typed, &program)?;
        let assumptions = (0..program.properties.len() as u32)
            .filter(|at| claim(&typed, &program, *at) == Claim::Assume)
            .map(|at| (at, footprint(&program, program.properties[at as usize].guard)))
            .collect();
        let priorities = priorities(&typed, &program);
        let code = format!("{:?}{:?}", program.code, variables);
        let hash = fnv(FNV_BASIS, code.bytes());
        let mut model = Self {
            typed,
            program,
            variables,
            slots: Vec::new(),
            groups: Vec::new(),
            moves: Vec::new(),
            labels: vec!["tau".into()],
            own: Vec::new(),
            error: LabelId::TAU,
            starts,
            assumptions,
            priorities,
            fingerprint: format!("murphi {hash:016x}"),
        };
        model.error = model.label(ERROR.into());
        model.add_slots();
        model.add_groups();
        Ok(model)
    }
    /// Returns the compiled model.
    pub fn program(&self) -> &Program {
        &self.program
    }
    fn label(&mut self, text: String) -> LabelId {
        let at = self.labels.iter().position(|l| *l == text);
        LabelId::new(at.unwrap_or_else(|| {
            self.labels.push(text);
            self.labels.len() - 1
        }))
    }
    fn add_slots(&mut self) {
        let tested = |v: &Variable| {
            let of = |i: &crate::code::Instance| {
                i.tests.first().is_some_and(|t| {
                    u32::from(t.field.word) * 64 + u32::from(t.field.shift) == v.offset
                })
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
    fn widened(&self, bits: &[(u32, u32)], normal: &Normal) -> Vec<(u32, u32)> {
        let mut all = bits.to_vec();
        for (from, to) in normal.multisets() {
            if bits.iter().any(|b| b.0 < to && from < b.1) {
                all.push((from, to));
            }
        }
        all
    }
    fn add_groups(&mut self) {
        let normal = Normal::new(&self.typed, &self.program.layout, false);
        let started = (self.starts.len() > 1).then_some((self.variables.len() as Slot, 1));
        if let Some((slot, _)) = started {
            let writes = (0..=slot).collect();
            let requires = vec![(slot, 0)];
            let label = self.label(START.into());
            self.add(
                group(START.into(), requires, BTreeSet::new(), None, writes),
                Move::Start,
                label,
            );
        }
        let guards: Vec<Footprint> =
            self.program.rules.iter().map(|r| footprint(&self.program, r.guard)).collect();
        for at in 0..self.program.rules.len() {
            let body = footprint(&self.program, self.program.rules[at].body);
            let writes = self.widened(&[&guards[at].writes[..], &body.writes].concat(), &normal);
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
            let (tests, reads, writes) =
                (self.slots_of(&tests), self.slots_of(&reads), self.slots_of(&writes));
            let tests = if discards { reads.clone() } else { tests };
            let name = rule_name(&self.typed, &self.program, at as u32);
            let label = self.label(self.rule_label(at));
            let requires = started.into_iter().collect();
            let writes = writes.into_iter().collect();
            self.add(
                group(name, requires, reads, Some(tests), writes),
                Move::Rule(at as u32),
                label,
            );
        }
        for at in 0..self.program.properties.len() as u32 {
            if claim(&self.typed, &self.program, at) != Claim::Assert {
                continue;
            }
            let reads = footprint(&self.program, self.program.properties[at as usize].guard).reads;
            let reads = self.slots_of(&reads);
            let name = property_name(&self.typed, &self.program, at);
            let label = self.label(format!("{VIOLATION}({})", identifier(&name)));
            let requires = started.into_iter().collect();
            self.add(group(name, requires, reads, None, Vec::new()), Move::Invariant(at), label);
        }
    }
    fn add(&mut self, group: Group, movement: Move, label: LabelId) {
        self.groups.push(group);
        self.moves.push(movement);
        self.own.push(label);
    }
    /// Returns the label of an instance of a rule.
    fn rule_label(&self, at: usize) -> String {
        let instance = &self.program.rules[at];
        let rule = &self.typed.rules[instance.number as usize];
        let name = match &rule.name {
            Some(name) => identifier(name.trim()),
            None => format!("rule_{}", instance.number + 1),
        };
        let chosen = |local| {
            rule.bindings
                .iter()
                .any(|b| matches!(b, Binding::Choose { local: l, .. } if *l == local))
        };
        let values = instance.parameters.iter().map(|(local, value)| {
            if chosen(*local) {
                return value.to_string();
            }
            self.program.layout.text(&self.typed, rule.frame.get(*local).ty, *value)
        });
        let values: Vec<String> = values.collect();
        if values.is_empty() { name } else { format!("{name}({})", values.join(", ")) }
    }
}

fn claim(typed: &Typed, program: &Program, at: u32) -> Claim {
    typed.properties[program.properties[at as usize].number as usize].claim
}

/// Returns a name with letters, digits and `_` only, and no digit first.
fn identifier(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c != '_' || !text.ends_with('_') {
            text.push(c);
        }
    }
    let text = text.trim_matches('_');
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        format!("rule_{text}")
    } else {
        text.to_string()
    }
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
fn starts(typed: &Typed, program: &Program) -> Result<Vec<Vec<u64>>, Diagnostic> {
    let mut machine = Machine::new(program, typed.claims.len(), || false);
    let mut normal = Normal::new(typed, &program.layout, false);
    let mut all: Vec<Vec<u64>> = Vec::new();
    'starts: for start in &program.starts {
        machine.memory.fill(0);
        match machine.run(start.body) {
            Ended::Done => {}
            Ended::Fault(at) => {
                let (text, span) = match program.site(at) {
                    Some(site) => (crate::compile::fault_text(typed, &site.fault), site.span),
                    None => ("an instruction failed".into(), mu_base::Span::default()),
                };
                return Err(Diagnostic::new(Stage::Data, format!("a start state fails: {text}"))
                    .or_span(span));
            }
            _ => continue,
        }
        normal.sort(&mut machine.memory);
        let state = machine.memory[..program.layout.words].to_vec();
        for at in 0..program.properties.len() as u32 {
            if claim(typed, program, at) == Claim::Assume {
                machine.memory[..state.len()].copy_from_slice(&state);
                if machine.run(program.properties[at as usize].guard) != Ended::Yes {
                    continue 'starts;
                }
            }
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
            machine: Machine::new(&self.program, self.typed.claims.len(), || false),
            normal: Normal::new(&self.typed, &self.program.layout, false),
            state: vec![0; self.program.layout.words],
        })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.labels[label.index()].clone()
    }
    fn label_count(&self) -> usize {
        self.labels.len()
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
            Some(value) => layout.text(&self.typed, variable.ty, value),
            None => "undefined".into(),
        }
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
    fn basis(&self) -> String {
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
    machine: Machine<'m>,
    normal: Normal,
    state: Vec<u64>,
}

impl ProtocolWorker<'_> {
    fn load(&mut self) {
        self.machine.memory[..self.state.len()].copy_from_slice(&self.state);
    }
    /// Runs an instance of a rule. `None` without a step; an error if the guard or rule fails.
    fn fire(&mut self, at: u32) -> Result<Option<()>, ()> {
        let program = &self.model.program;
        if !self.model.priorities.is_empty() {
            let own = self.model.priorities[at as usize];
            for (other, priority) in self.model.priorities.iter().enumerate() {
                if *priority < own {
                    self.load();
                    if self.machine.run(program.rules[other].guard) == Ended::Yes {
                        return Ok(None);
                    }
                }
            }
        }
        self.load();
        let instance = &program.rules[at as usize];
        match self.machine.run(instance.guard) {
            Ended::Yes => {}
            Ended::Fault(_) => return Err(()),
            _ => return Ok(None),
        }
        match self.machine.run(instance.body) {
            Ended::Done => {}
            Ended::Fault(_) => return Err(()),
            _ => return Ok(None),
        }
        self.normal.sort(&mut self.machine.memory);
        let words = self.state.len();
        let after = self.machine.memory[..words].to_vec();
        for (assumption, _) in &self.model.assumptions {
            let property = &program.properties[*assumption as usize];
            if self.machine.run(property.guard) != Ended::Yes {
                return Ok(None);
            }
            self.machine.memory[..words].copy_from_slice(&after);
        }
        Ok(Some(()))
    }
}

impl Worker for ProtocolWorker<'_> {
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
                Ok(Some(())) => model.own[group],
                Err(()) => {
                    self.load();
                    model.error
                }
            },
            Move::Invariant(at) => {
                self.load();
                match self.machine.run(model.program.properties[at as usize].guard) {
                    Ended::No => model.own[group],
                    Ended::Fault(_) => model.error,
                    _ => return Ok(()),
                }
            }
        };
        out.labels.push(label);
        for slot in &info.writes {
            let variable = &model.variables[*slot as usize];
            let raw = read(&self.machine.memory, variable.offset as usize, variable.width);
            out.values.push(raw as u32);
        }
        Ok(())
    }
}
