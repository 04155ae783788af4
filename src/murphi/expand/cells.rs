//! Cells: where the values of a variable are in memory.

use super::{Result, Writer, reject};
use crate::typed::{Local, LocalKind, Place, Root, Step, TypeId, TypeKind, Types};

/// Returns the number of cells of a type. A multiset has for each element a cell that is `ok(1)` if
/// the element exists, followed by the cells of the element.
pub(super) fn size(types: &Types, ty: TypeId) -> u64 {
    match types.kind(ty) {
        TypeKind::Array { index, element } => {
            types.count(*index).unwrap_or(0) * size(types, *element)
        }
        TypeKind::Multiset { capacity, element } => {
            u64::from(*capacity) * (1 + size(types, *element))
        }
        TypeKind::Record { fields } => fields.iter().map(|f| size(types, f.ty)).sum(),
        _ => 1,
    }
}

/// Returns the number of cells of a local: a reference has the number of a cell, a position that of
/// an element.
pub(super) fn of_local(types: &Types, local: &Local) -> u64 {
    match local.kind {
        LocalKind::Reference | LocalKind::Position => 1,
        _ => size(types, local.ty),
    }
}

/// Adds the multisets in a variable: first cell, capacity, cells of a block. Inner ones come first.
pub(super) fn multisets(types: &Types, ty: TypeId, first: u64, out: &mut Vec<(u64, u64, u64)>) {
    match types.kind(ty) {
        TypeKind::Array { index, element } => {
            let step = size(types, *element);
            for i in 0..types.count(*index).unwrap_or(0) {
                multisets(types, *element, first + i * step, out);
            }
        }
        TypeKind::Multiset { capacity, element } => {
            let block = 1 + size(types, *element);
            for i in 0..u64::from(*capacity) {
                multisets(types, *element, first + i * block + 1, out);
            }
            out.push((first, u64::from(*capacity), block));
        }
        TypeKind::Record { fields } => {
            let mut at = first;
            for field in fields {
                multisets(types, field.ty, at, out);
                at += size(types, field.ty);
            }
        }
        _ => {}
    }
}

/// Number of a cell.
#[derive(Clone, Debug)]
pub(super) enum Addr {
    /// Cell of the state.
    Fixed(u64),
    /// Cell of the frame at `b`.
    Frame(u64),
    /// Term of sort `Cell`, and a number to add.
    Dynamic(String, u64),
}

impl Addr {
    /// Adds a number of cells.
    pub(super) fn plus(self, n: u64) -> Addr {
        match self {
            Addr::Fixed(k) => Addr::Fixed(k + n),
            Addr::Frame(k) => Addr::Frame(k + n),
            Addr::Dynamic(term, k) => Addr::Dynamic(term, k + n),
        }
    }
    /// Returns the number as a term of sort `Cell`.
    pub(super) fn term(&self) -> String {
        match self {
            Addr::Fixed(k) => format!("ok({k})"),
            Addr::Frame(k) => format!("ok(b + {k})"),
            Addr::Dynamic(term, 0) => term.clone(),
            Addr::Dynamic(term, k) => format!("plus({term}, {k})"),
        }
    }
    /// Returns the contents as a term of sort `Cell`.
    pub(super) fn read(&self) -> String {
        match self {
            Addr::Fixed(k) => format!("cell(m, {k})"),
            Addr::Frame(k) => format!("cell(m, b + {k})"),
            Addr::Dynamic(..) => format!("get(m, {})", self.term()),
        }
    }
}

impl Writer<'_> {
    /// Translates a place.
    pub(super) fn address(&mut self, place: &Place) -> Result<Addr> {
        let mut addr = match place.root {
            Root::Global(id) => Addr::Fixed(self.globals[id.index()]),
            Root::Local(id) if self.frame.get(id).kind == LocalKind::Reference => {
                Addr::Dynamic(self.local(id).read(), 0)
            }
            Root::Local(id) => self.local(id),
        };
        for step in &place.steps {
            addr = match step {
                Step::Field { record, field, span } => {
                    let TypeKind::Record { fields } = self.model.types.kind(*record) else {
                        return reject(*span, "this is no record");
                    };
                    let types = &self.model.types;
                    addr.plus(fields[..*field as usize].iter().map(|f| size(types, f.ty)).sum())
                }
                Step::Index { array, index, span } => {
                    let TypeKind::Array { index: of, element } = *self.model.types.kind(*array)
                    else {
                        return reject(*span, "this is no array");
                    };
                    let step = size(&self.model.types, element);
                    let fixed = match index.kind {
                        crate::typed::ExprKind::Constant(value) => {
                            self.model.types.position(of, value)
                        }
                        _ => None,
                    };
                    match fixed {
                        Some(position) => addr.plus(position * step),
                        None => {
                            let value = self.value(index)?;
                            let k = self.domain(of);
                            let term = format!("at({}, o{k}({value}), {step})", addr.term());
                            Addr::Dynamic(term, 0)
                        }
                    }
                }
                Step::Element { multiset, position, span } => {
                    let TypeKind::Multiset { element, .. } = *self.model.types.kind(*multiset)
                    else {
                        return reject(*span, "this is no multiset");
                    };
                    let block = 1 + size(&self.model.types, element);
                    let slot = self.local(*position).read();
                    Addr::Dynamic(format!("at({}, {slot}, {block})", addr.term()), 1)
                }
            };
        }
        Ok(addr)
    }
    /// Returns the number of the mappings for a simple type: `o` for the position of a value, `f`
    /// for a value that the type has, `w` for the value at a position.
    pub(super) fn domain(&mut self, ty: TypeId) -> usize {
        if let Some(k) = self.domains.get(&ty) {
            return *k;
        }
        let k = self.fresh();
        self.domains.insert(ty, k);
        self.map(&format!("o{k}"), "Cell -> Cell");
        self.map(&format!("f{k}"), "Cell -> Cell");
        self.map(&format!("w{k}"), "Int -> Int");
        let Some(parts) = self.model.types.parts(ty) else {
            // Integers without a range.
            self.equation(&format!("f{k}(x) = x"));
            return k;
        };
        let (mut position, mut member, mut value) =
            ("bad".to_string(), "false".to_string(), "0".to_string());
        let mut before: u64 = parts.iter().map(|p| p.1).sum();
        for (first, count) in parts.iter().rev() {
            before -= count;
            let last = first.saturating_add_unsigned(count.saturating_sub(1));
            let inside = if *count == 0 {
                "false".to_string()
            } else {
                format!("{first} <= n && n <= {last}")
            };
            position = format!("if({inside}, ok(n - {first} + {before}), {position})");
            member = format!("{inside} || {member}");
            value = format!("if(i < {}, i - {before} + {first}, {value})", before + count);
        }
        self.equation(&format!("o{k}(ok(n)) = {position}"));
        self.equation(&format!("o{k}(undef) = bad"));
        self.equation(&format!("o{k}(bad) = bad"));
        self.equation(&format!("f{k}(ok(n)) = if({member}, ok(n), bad)"));
        self.equation(&format!("f{k}(undef) = undef"));
        self.equation(&format!("f{k}(bad) = bad"));
        self.equation(&format!("w{k}(i) = {value}"));
        k
    }
}
