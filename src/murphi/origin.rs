//! Instances of a model as the origin of a system of any number of processes, for a check of the
//! translation ([`mu_cubicle::origin`]).
//!
//! In: a compiled model with a size of the scalarset, and the [`Correspondence`] that the
//! translation declares. Steps and failures are those of the register code, which the search
//! executes: nothing of the symbolic execution is in use. A step has the order of the elements that
//! the code has; random states have every other one.
//!
//! Priorities and the assumptions of properties do not restrict the steps, because they are no
//! conditions of the system. Cost: one run of each rule and property for each state.

use crate::code::{Fault, Instance, Program};
use crate::compile::fault_text;
use crate::layout::{Shape, Simple};
use crate::parametric::correspondence::{Correspondence, DeclaredUndefined, PartSelector};
use crate::path::{property_name, rule_name, start_name};
use crate::run::{Ended, Interpreter, read, write};
use crate::typed::{Claim, Model, TypeId, TypeKind};
use mu_base::{Diagnostic, Span, narrow};
use mu_cubicle::origin::{
    Origin, OriginPart, OriginState, OriginStep, OriginUndefined, OriginValues,
};

/// Field of a state that contains a part.
struct PartField {
    name: String,
    ty: TypeId,
    offset: usize,
    values: Simple,
}

/// Instance of a model.
pub struct ModelInstance<'p> {
    model: &'p Model,
    program: &'p Program,
    /// The scalarset of any size.
    node: TypeId,
    size: u32,
    correspondence: &'p Correspondence,
    interpreter: Interpreter<'p>,
    parts: Vec<OriginPart>,
    /// The fields of the parts, in the same order.
    fields: Vec<PartField>,
}

impl<'p> ModelInstance<'p> {
    /// Creates an instance from a compiled model. `poll` returns true if a run must end.
    ///
    /// # Errors
    ///
    /// Internal: a part of the state has no symbol.
    pub fn new(
        model: &'p Model,
        program: &'p Program,
        node: TypeId,
        correspondence: &'p Correspondence,
        poll: impl FnMut() -> bool + 'p,
    ) -> Result<Self, Diagnostic> {
        let Some(TypeKind::Scalarset { size, .. }) =
            model.types.all.get(node.index()).map(|t| &t.kind)
        else {
            return Err(Diagnostic::internal("a size of no scalarset"));
        };
        let mut instance = ModelInstance {
            model,
            program,
            node,
            size: *size,
            correspondence,
            interpreter: Interpreter::new(program, model.claims.len(), poll),
            parts: Vec::new(),
            fields: Vec::new(),
        };
        for (global, of) in model.globals.iter().enumerate() {
            let offset = program.layout.globals[global] as usize;
            let (mut part, mut args) = (Vec::new(), Vec::new());
            let place = (narrow::index(global), of.ty, offset);
            instance.add(place, of.name.clone(), &mut part, &mut args)?;
        }
        Ok(instance)
    }
    /// Adds the parts of a variable.
    fn add(
        &mut self,
        (global, ty, offset): (u32, TypeId, usize),
        name: String,
        part: &mut Vec<PartSelector>,
        args: &mut Vec<u32>,
    ) -> Result<(), Diagnostic> {
        let (types, layout) = (&self.model.types, &self.program.layout);
        match layout.shape_of(ty) {
            Shape::Simple(values) => {
                let (symbol, values) = (self.symbol(global, part, args, ty)?, values.clone());
                self.parts.push(symbol);
                self.fields.push(PartField { name, ty, offset, values });
            }
            Shape::Record(fields) => {
                let TypeKind::Record { fields: named } = types.kind(ty) else {
                    return Err(Diagnostic::internal("a record without fields"));
                };
                for (number, ((at, inner), field)) in fields.iter().zip(named).enumerate() {
                    part.push(PartSelector::Field(narrow::index(number)));
                    let place = (global, *inner, offset + *at as usize);
                    self.add(place, format!("{name}.{}", field.name), part, args)?;
                    part.pop();
                }
            }
            Shape::Array { low, count, stride, element, index } => {
                for at in 0..*count {
                    let own = low + i64::from(at);
                    if layout.simple(*index).is_some_and(|s| !s.contains(own)) {
                        continue;
                    }
                    let value = layout.original(self.model, *index, own);
                    let position = types.position(*index, value);
                    let position = position
                        .ok_or_else(|| Diagnostic::internal("an index outside of its type"))?;
                    let is_element = *index == self.node;
                    part.push(match is_element {
                        true => PartSelector::Element,
                        false => PartSelector::Position(position),
                    });
                    if is_element {
                        args.push(narrow::index(position as usize));
                    }
                    let text = format!("{name}[{}]", types.value_text(*index, value));
                    let place = (global, *element, offset + at as usize * *stride as usize);
                    self.add(place, text, part, args)?;
                    part.pop();
                    if is_element {
                        args.pop();
                    }
                }
            }
            Shape::Multiset { .. } | Shape::None => {
                return Err(Diagnostic::internal("a part of a state without a symbol"));
            }
        }
        Ok(())
    }
    /// Returns the cell that is declared for a part.
    fn symbol(
        &self,
        global: u32,
        part: &[PartSelector],
        args: &[u32],
        ty: TypeId,
    ) -> Result<OriginPart, Diagnostic> {
        let all = &self.correspondence.symbols;
        let found = all.binary_search_by(|s| (s.global, &s.part[..]).cmp(&(global, part)));
        let found =
            found.map_err(|_| Diagnostic::internal("a part of a state without a symbol"))?;
        let declared = &all[found];
        let count = self.model.types.count(ty);
        let values = match &declared.values {
            None if ty == self.node => OriginValues::Processes,
            Some(names) if ty != self.node && Some(names.len() as u64) == count => {
                OriginValues::Constructors(names.clone())
            }
            _ => return Err(Diagnostic::internal("a symbol with the values of another type")),
        };
        let undefined = match &declared.undefined {
            DeclaredUndefined::Never => OriginUndefined::Never,
            DeclaredUndefined::Value(name) => OriginUndefined::Constructor(name.clone()),
            DeclaredUndefined::Flag(name) => OriginUndefined::Flag(name.clone()),
        };
        Ok(OriginPart { symbol: declared.symbol.clone(), args: args.to_vec(), values, undefined })
    }
    /// Writes a state to the memory.
    fn load(&mut self, state: &OriginState) {
        let (types, layout) = (&self.model.types, &self.program.layout);
        self.interpreter.memory.fill(0);
        for (field, value) in self.fields.iter().zip(state) {
            let value = value.and_then(|at| types.value_at(field.ty, u64::from(at)));
            let code = value.map(|v| field.values.code(layout.own(self.model, field.ty, v)));
            let width = field.values.width;
            write(&mut self.interpreter.memory, field.offset, width, code.unwrap_or(0));
        }
    }
    /// Reads a state from the memory.
    fn state(&self) -> OriginState {
        let (types, layout) = (&self.model.types, &self.program.layout);
        let value = |field: &PartField| {
            let own = field.values.value(read(
                &self.interpreter.memory,
                field.offset,
                field.values.width,
            ))?;
            let position = types.position(field.ty, layout.original(self.model, field.ty, own));
            position.map(|at| narrow::index(at as usize))
        };
        self.fields.iter().map(value).collect()
    }
    /// Returns the text of a failing instruction. `None` for a limit.
    fn failure(&self, at: u32) -> Option<String> {
        let site = self.program.site(at);
        match site.map(|s| &s.fault) {
            Some(Fault::Depth) => None,
            Some(fault) => Some(fault_text(self.model, fault)),
            None => Some("an instruction failed".into()),
        }
    }
    /// Executes a guard and a body. `None`: there is no step.
    fn run(&mut self, instance: &Instance, has_guard: bool) -> Option<Result<OriginState, String>> {
        if has_guard {
            match self.interpreter.run(instance.guard) {
                Ended::Yes => {}
                Ended::Fault(at) => return self.failure(at).map(Err),
                _ => return None,
            }
        }
        match self.interpreter.run(instance.body) {
            Ended::Done => Some(Ok(self.state())),
            Ended::Fault(at) => self.failure(at).map(Err),
            _ => None,
        }
    }
}

impl Origin for ModelInstance<'_> {
    fn processes(&self) -> u32 {
        self.size
    }
    fn parts(&self) -> &[OriginPart] {
        &self.parts
    }
    fn start_symbol(&self) -> Option<&str> {
        self.correspondence.started.as_deref()
    }
    fn failure_symbol(&self) -> Option<&str> {
        self.correspondence.failed.as_deref()
    }
    fn starts(&mut self) -> Vec<OriginStep> {
        let (model, program) = (self.model, self.program);
        let mut out = Vec::new();
        // All transitions for start states have the place of the first.
        let place = model.starts.first().map_or(Span::default(), |s| s.span);
        for (at, instance) in program.starts.iter().enumerate() {
            self.interpreter.memory.fill(0);
            if let Some(next) = self.run(instance, false) {
                let rule = start_name(model, program, narrow::index(at));
                out.push(OriginStep { rule, place, next });
            }
        }
        out
    }
    fn steps(&mut self, state: &OriginState) -> Vec<OriginStep> {
        let (model, program) = (self.model, self.program);
        let mut out = Vec::new();
        for (at, instance) in program.rules.iter().enumerate() {
            self.load(state);
            if let Some(next) = self.run(instance, true) {
                let rule = rule_name(model, program, narrow::index(at));
                let place = model.rules[instance.number as usize].span;
                out.push(OriginStep { rule, place, next });
            }
        }
        out
    }
    fn failures(&mut self, state: &OriginState) -> Vec<String> {
        let (model, program) = (self.model, self.program);
        let mut out = Vec::new();
        for (at, instance) in program.properties.iter().enumerate() {
            let is_invariant = model.properties[instance.number as usize].claim == Claim::Assert;
            self.load(state);
            let text = match self.interpreter.run(instance.guard) {
                Ended::No if is_invariant => Some("it is false".to_string()),
                Ended::Fault(at) => self.failure(at),
                _ => None,
            };
            let name = || property_name(model, program, narrow::index(at));
            out.extend(text.map(|text| format!("property {}: {text}", name())));
        }
        out
    }
    fn text(&self, state: &OriginState, parts: Option<&[usize]>) -> String {
        let types = &self.model.types;
        let text = |at: usize| {
            let field = &self.fields[at];
            let value = state[at].and_then(|value| types.value_at(field.ty, u64::from(value)));
            let value = value
                .map_or_else(|| "undefined".to_string(), |value| types.value_text(field.ty, value));
            format!("{} = {value}", field.name)
        };
        let all: Vec<String> = match parts {
            Some(parts) => parts.iter().copied().map(text).collect(),
            None => (0..self.fields.len()).map(text).collect(),
        };
        all.join(", ")
    }
}
