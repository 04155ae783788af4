//! Simple parts of the state with their names, for paths and formulas.

use crate::layout::{Layout, Shape};
use crate::run::read;
use crate::typed::{Model, TypeId, TypeKind};

/// Simple part of a global variable, such as `cache[Proc_1].state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Name: fields after dots, indices in brackets, slots of multisets in braces from 0 on.
    pub name: String,
    /// Type; `boolean` for a slot itself.
    pub ty: TypeId,
    /// Offset of the field in the state, in bits.
    pub offset: u32,
    /// Bits of the field.
    pub width: u8,
    /// Offset of the bit that is set if the slot of a multiset with this part is used.
    pub slot: Option<u32>,
    /// True for the bit of a slot, which is set or not and never undefined.
    pub is_slot: bool,
}

impl Variable {
    /// Returns the text of the variable's value in a state: `undefined` without one, nothing in an
    /// unused slot.
    pub fn text(&self, model: &Model, layout: &Layout, state: &[u64]) -> String {
        let raw = read(state, self.offset as usize, self.width);
        if self.is_slot {
            return if raw == 1 { "present".into() } else { "absent".into() };
        }
        if self.slot.is_some_and(|at| read(state, at as usize, 1) == 0) {
            return String::new();
        }
        match layout.simple(self.ty).and_then(|s| s.value(raw)) {
            Some(value) => layout.text(model, self.ty, value),
            None => "undefined".into(),
        }
    }
}

/// Returns the simple parts of all global variables, in the order of the state.
pub fn variables(model: &Model, layout: &Layout) -> Vec<Variable> {
    let mut all = Vec::new();
    for (global, offset) in model.globals.iter().zip(&layout.globals) {
        collect_parts(model, layout, (global.ty, *offset, None), &global.name, &mut all);
    }
    all
}

/// Adds the simple parts of a part with this type and offset; `slot`: the bit of the multiset's
/// slot that contains it.
fn collect_parts(
    model: &Model,
    layout: &Layout,
    (ty, offset, slot): (TypeId, u32, Option<u32>),
    name: &str,
    all: &mut Vec<Variable>,
) {
    match layout.shape_of(ty) {
        Shape::None => {}
        Shape::Simple(simple) => all.push(Variable {
            name: name.to_string(),
            ty,
            offset,
            width: simple.width,
            slot,
            is_slot: false,
        }),
        Shape::Record(fields) => {
            let TypeKind::Record { fields: named } = model.types.kind(ty) else { return };
            for ((at, inner), field) in fields.iter().zip(named) {
                let name = format!("{name}.{}", field.name);
                collect_parts(model, layout, (*inner, offset + at, slot), &name, all);
            }
        }
        Shape::Array { low, count, stride, element, index } => {
            let simple = layout.simple(*index);
            for n in 0..*count {
                let value = low + i64::from(n);
                if simple.is_some_and(|s| s.contains(value)) {
                    let name = format!("{name}[{}]", layout.text(model, *index, value));
                    collect_parts(model, layout, (*element, offset + n * stride, slot), &name, all);
                }
            }
        }
        Shape::Multiset { capacity, stride, element } => {
            for n in 0..*capacity {
                let (at, name) = (offset + n * stride, format!("{name}{{{n}}}"));
                all.push(Variable {
                    name: name.clone(),
                    ty: TypeId::BOOLEAN,
                    offset: at,
                    width: 1,
                    slot,
                    is_slot: true,
                });
                collect_parts(model, layout, (*element, at + 1, Some(at)), &name, all);
            }
        }
    }
}
