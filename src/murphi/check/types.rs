//! Types: type expressions, equality and compatibility.

use super::{Checker, Meaning, Result, wrong};
use crate::ast::{Name, TypeExpr, TypeExprKind};
use crate::typed::{Field, Member, Type, TypeId, TypeKind, Types};
use mu_base::naming::NameRole;
use mu_base::{Diagnostic, Span, Stage};

/// Limit on the number of simple values in a variable; a model beyond it is rejected.
pub(super) const MAX_LEAVES: u64 = 1 << 24;

/// True if two types are equal: the same type expression, or the same structure of ranges with
/// equal bounds, enumerations with equal members, and the same scalarsets.
pub(super) fn same(types: &Types, a: TypeId, b: TypeId) -> bool {
    if a == b {
        return true;
    }
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || match (types.kind(a), types.kind(b)) {
        (TypeKind::Range { low, high }, TypeKind::Range { low: l, high: h }) => {
            (low, high) == (l, h)
        }
        (TypeKind::Enum { first, .. }, TypeKind::Enum { first: other, .. }) => first == other,
        (TypeKind::Union { members }, TypeKind::Union { members: others }) => {
            members.len() == others.len()
                && members.iter().zip(others).all(|(a, b)| same(types, *a, *b))
        }
        (
            TypeKind::Array { index, element },
            TypeKind::Array { index: other, element: other_element },
        ) => same(types, *index, *other) && same(types, *element, *other_element),
        (
            TypeKind::Multiset { capacity, element },
            TypeKind::Multiset { capacity: other, element: other_element },
        ) => capacity == other && same(types, *element, *other_element),
        (TypeKind::Record { fields }, TypeKind::Record { fields: others }) => {
            fields.len() == others.len()
                && fields
                    .iter()
                    .zip(others)
                    .all(|(a, b)| a.name == b.name && same(types, a.ty, b.ty))
        }
        _ => false,
    })
}

/// True if a value of one type may be compared with, or assigned to, the other type: equal types,
/// any two ranges, and unions with a common member.
pub(super) fn agree(types: &Types, a: TypeId, b: TypeId) -> bool {
    if types.is_integer(a) && types.is_integer(b) {
        return true;
    }
    let members = |ty: TypeId| match types.kind(ty) {
        TypeKind::Union { members } => Some(members.clone()),
        _ => None,
    };
    match (members(a), members(b)) {
        (None, None) => same(types, a, b),
        (a_members, b_members) => {
            let a_members = a_members.unwrap_or_else(|| vec![a]);
            let b_members = b_members.unwrap_or_else(|| vec![b]);
            a_members.iter().any(|a| b_members.iter().any(|b| same(types, *a, *b)))
        }
    }
}

/// Returns the number of simple values in a type; a multiset counts its capacity.
pub(super) fn leaves(types: &Types, ty: TypeId) -> u64 {
    match types.kind(ty) {
        TypeKind::Array { index, element } => {
            types.count(*index).unwrap_or(u64::MAX).saturating_mul(leaves(types, *element))
        }
        TypeKind::Multiset { capacity, element } => {
            u64::from(*capacity).saturating_mul(leaves(types, *element))
        }
        TypeKind::Record { fields } => {
            fields.iter().fold(0, |n: u64, f| n.saturating_add(leaves(types, f.ty)))
        }
        _ => 1,
    }
}

/// True if the type contains a scalarset with several elements, or a union with one.
pub(super) fn has_scalarset(types: &Types, ty: TypeId) -> bool {
    match types.kind(ty) {
        TypeKind::Scalarset { size, .. } => *size > 1,
        TypeKind::Union { members } => members.iter().any(|m| has_scalarset(types, *m)),
        TypeKind::Array { element, .. } => has_scalarset(types, *element),
        TypeKind::Record { fields } => fields.iter().any(|f| has_scalarset(types, f.ty)),
        // Clearing a multiset removes its elements.
        _ => false,
    }
}

/// True if the type contains a multiset.
pub(crate) fn has_multiset(types: &Types, ty: TypeId) -> bool {
    match types.kind(ty) {
        TypeKind::Multiset { .. } => true,
        TypeKind::Array { element, .. } => has_multiset(types, *element),
        TypeKind::Record { fields } => fields.iter().any(|f| has_multiset(types, f.ty)),
        _ => false,
    }
}

impl Checker<'_> {
    pub(super) fn agree(&self, a: TypeId, b: TypeId) -> bool {
        agree(&self.out.types, a, b)
    }
    pub(super) fn is_simple(&self, ty: TypeId) -> bool {
        self.out.types.is_simple(ty)
    }
    /// Adds a type without a name, once for each place.
    fn add_type(&mut self, span: Span, kind: TypeKind) -> TypeId {
        if let Some(ty) = self.types_at.get(&(span.source, span.start, span.end)) {
            return *ty;
        }
        let ty = self.out.types.add(Type { name: None, span, kind });
        self.types_at.insert((span.source, span.start, span.end), ty);
        ty
    }
    /// Adds a range of a loop variable.
    pub(super) fn add_range(&mut self, span: Span, low: i64, high: i64) -> TypeId {
        self.add_type(span, TypeKind::Range { low, high })
    }
    /// Returns a type with the values of two types that agree, of which one is a union at least.
    pub(super) fn union_of(&mut self, a: TypeId, b: TypeId, span: Span) -> TypeId {
        let members = |ty: TypeId| match self.out.types.kind(ty) {
            TypeKind::Union { members } => members.clone(),
            _ => vec![ty],
        };
        let (mut all, others) = (members(a), members(b));
        let is_in = |all: &[TypeId], ty: TypeId| all.iter().any(|m| same(&self.out.types, *m, ty));
        if others.iter().all(|ty| is_in(&all, *ty)) {
            return a;
        }
        if all.iter().all(|ty| is_in(&others, *ty)) {
            return b;
        }
        let new: Vec<TypeId> = others.into_iter().filter(|ty| !is_in(&all, *ty)).collect();
        all.extend(new);
        self.add_type(span, TypeKind::Union { members: all })
    }
    /// Reserves numbers for the members of a type.
    fn numbers(&mut self, count: u64, span: Span) -> Result<i64> {
        let first = self.next_value;
        // Half of all numbers are left for no particular type.
        match first.checked_add_unsigned(count).filter(|n| *n < i64::MAX / 2) {
            Some(next) => self.next_value = next,
            None => return wrong(span, "the types of the model have too many values"),
        }
        Ok(first)
    }

    /// Checks a type expression. Members of enumerations are declared in the innermost scope.
    pub(super) fn type_of(&mut self, tree: &TypeExpr) -> Result<TypeId> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.type_node(tree))
    }
    fn type_node(&mut self, tree: &TypeExpr) -> Result<TypeId> {
        let span = tree.span;
        let kind = match &tree.kind {
            TypeExprKind::Name(name) => {
                return match self.resolve(name, span, "a type")? {
                    Meaning::Type(ty) => Ok(ty),
                    other => {
                        wrong(span, format!("`{name}` is a {}, expected a type", other.word()))
                    }
                };
            }
            TypeExprKind::Range(low, high) => {
                let (first, last) = (self.constant_integer(low)?, self.constant_integer(high)?);
                if first > last {
                    return wrong(
                        span,
                        format!("the range {first}..{last} is empty: its lower bound is higher"),
                    );
                }
                TypeKind::Range { low: first, high: last }
            }
            TypeExprKind::Enum(names) => return self.enumeration(names, span),
            TypeExprKind::Scalarset(size) => {
                let value = self.constant_integer(size)?;
                let Some(size) = u32::try_from(value).ok().filter(|n| *n > 0) else {
                    let message =
                        format!("a scalarset of size {value}, expected {}", size_of(value));
                    return wrong(size.span, message);
                };
                if let Some(ty) = self.types_at.get(&(span.source, span.start, span.end)) {
                    return Ok(*ty);
                }
                let first = self.numbers(u64::from(size), span)?;
                TypeKind::Scalarset { first, size }
            }
            TypeExprKind::Union(members) => self.union(members, span)?,
            TypeExprKind::Array(index, element) => {
                let of_index = self.type_of(index)?;
                let element = self.type_of(element)?;
                if !self.is_simple(of_index) {
                    let message = format!(
                        "an array cannot have the index type {}, expected a range, an \
                         enumeration, a scalarset or a union",
                        self.type_text(of_index)
                    );
                    return wrong(index.span, message);
                }
                TypeKind::Array { index: of_index, element }
            }
            TypeExprKind::Multiset(capacity, element) => {
                let value = self.constant_integer(capacity)?;
                let Some(capacity) = u32::try_from(value).ok().filter(|n| *n > 0) else {
                    let message =
                        format!("a multiset of size {value}, expected {}", size_of(value));
                    return wrong(capacity.span, message);
                };
                TypeKind::Multiset { capacity, element: self.type_of(element)? }
            }
            TypeExprKind::Record(all) => return self.record(all, span),
        };
        let ty = self.add_type(span, kind);
        if leaves(&self.out.types, ty) > MAX_LEAVES {
            let message = format!("this type has more than {MAX_LEAVES} values in a state");
            return Err(Diagnostic::at(Stage::Unsupported, span, message));
        }
        Ok(ty)
    }
    fn enumeration(&mut self, names: &[Name], span: Span) -> Result<TypeId> {
        let key: Vec<String> = names.iter().map(|n| n.text.clone()).collect();
        let first = match self.enums.get(&key) {
            Some(first) => *first,
            None => {
                let first = self.numbers(names.len() as u64, span)?;
                self.enums.insert(key, first);
                first
            }
        };
        let members = names.iter().map(|n| Member { name: n.text.clone(), span: n.span }).collect();
        let ty = self.add_type(span, TypeKind::Enum { first, members });
        for (i, name) in names.iter().enumerate() {
            let meaning = Meaning::Constant(ty, first + i as i64);
            self.declare(
                name,
                meaning,
                NameRole::Constructor,
                name.span,
                "a member of an enumeration",
            );
        }
        Ok(ty)
    }
    fn union(&mut self, trees: &[TypeExpr], span: Span) -> Result<TypeKind> {
        let mut members: Vec<TypeId> = Vec::new();
        for tree in trees {
            let ty = self.type_of(tree)?;
            let parts = match self.out.types.kind(ty) {
                TypeKind::Boolean | TypeKind::Enum { .. } | TypeKind::Scalarset { .. } => vec![ty],
                TypeKind::Union { members } => members.clone(),
                _ => {
                    let message = format!(
                        "{} cannot be a member of a union, expected an enumeration or a scalarset",
                        self.type_text(ty)
                    );
                    return wrong(tree.span, message);
                }
            };
            for part in parts {
                if members.iter().any(|m| same(&self.out.types, *m, part)) {
                    let message = format!("{} is twice in this union", self.type_text(part));
                    return wrong(tree.span, message);
                }
                members.push(part);
            }
        }
        if members.len() < 2 {
            return wrong(span, "a union has at least two members");
        }
        Ok(TypeKind::Union { members })
    }
    fn record(&mut self, all: &[crate::ast::Fields], span: Span) -> Result<TypeId> {
        let mut fields: Vec<Field> = Vec::new();
        for part in all {
            let ty = self.type_of(&part.ty)?;
            for name in &part.names {
                if let Some(other) = fields.iter().find(|f| f.name == name.text) {
                    let message = format!("the field `{}` is declared twice", name.text);
                    return Err(Diagnostic::at(Stage::Type, name.span, message)
                        .related(other.span, "the first declaration"));
                }
                fields.push(Field { name: name.text.clone(), span: name.span, ty });
            }
        }
        let ty = self.add_type(span, TypeKind::Record { fields: fields.clone() });
        for (i, field) in fields.iter().enumerate() {
            if self.declared.contains_key(&field.span.start) {
                continue;
            }
            let says = format!("{}: {}", field.name, self.out.types.text(field.ty));
            let binding =
                self.naming.declare(NameRole::Storage, &field.name, field.span, field.span, says);
            self.naming.bindings[binding].note = "a field of a record".into();
            self.declared.insert(field.span.start, binding);
            self.mentioned.insert(field.span.start);
            self.fields.insert((ty, i as u32), binding);
        }
        Ok(ty)
    }
}

/// Returns the sizes of scalarsets and multisets that are accepted, for one that is not.
fn size_of(value: i64) -> &'static str {
    if value < 1 { "at least 1" } else { "at most 4294967295" }
}
