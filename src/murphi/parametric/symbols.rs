//! Symbols of the system: one for each simple part of a variable, as an array over the processes
//! that select it. Fields, and indices of finite types, are parts of its name.

use super::{Result, reject};
use crate::typed::{GlobalId, Model, TypeId, TypeKind, Types};
use mu_base::{Span, narrow};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of values of a type; the prover has at most 64.
const MAX_VALUES: u64 = 60;
/// Largest number of processes that select a part.
const MAX_INDICES: usize = 3;
/// Largest number of symbols.
const MAX_SYMBOLS: usize = 4096;

/// Selection in the name of a symbol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Part {
    /// A field of a record.
    Field(u32),
    /// An element of an array over a finite type.
    Constant(i64),
    /// An element of an array over the processes.
    Process,
}

/// Simple part of a variable.
pub(super) struct Symbol {
    /// Its name in the system.
    pub name: String,
    /// Type of its values.
    pub ty: TypeId,
    /// Number of processes that select it.
    pub arity: usize,
    /// Place of the variable.
    pub span: Span,
}

/// All symbols.
pub(super) struct Symbols {
    pub all: Vec<Symbol>,
    index: BTreeMap<(u32, Vec<Part>), u32>,
    names: BTreeSet<String>,
}

/// Returns a name with a capital letter first, and letters, digits and `_` else.
pub(super) fn capital(text: &str) -> String {
    let mut name: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'V');
    }
    let first = name[..1].to_ascii_uppercase();
    name.replace_range(..1, &first);
    name
}

/// Returns a name that is not yet in use, with a number if necessary.
pub(super) fn unique(names: &mut BTreeSet<String>, wanted: String) -> String {
    let mut name = wanted.clone();
    let mut number = 2;
    while !names.insert(name.clone()) {
        name = format!("{wanted}_{number}");
        number += 1;
    }
    name
}

/// True if values of the type are or contain elements of the scalarset.
pub(super) fn has_node(types: &Types, ty: TypeId, node: TypeId) -> bool {
    types.constituents(vec![ty]).contains(&node)
}

impl Symbols {
    pub fn new(model: &Model, node: TypeId) -> Result<Self> {
        let mut symbols =
            Symbols { all: Vec::new(), index: BTreeMap::new(), names: BTreeSet::new() };
        // Names of the values `True` and `False` of the system.
        symbols.names.extend(["True".to_string(), "False".to_string()]);
        for (at, global) in model.globals.iter().enumerate() {
            let at = narrow::index(at);
            let mut parts = Vec::new();
            let name = capital(&global.name);
            symbols.add(model, node, (at, global.span), global.ty, &mut parts, name)?;
        }
        Ok(symbols)
    }
    fn add(
        &mut self,
        model: &Model,
        node: TypeId,
        (global, span): (u32, Span),
        ty: TypeId,
        parts: &mut Vec<Part>,
        name: String,
    ) -> Result<()> {
        let types = &model.types;
        match types.kind(ty) {
            TypeKind::Array { index, element } if *index == node => {
                parts.push(Part::Process);
                self.add(model, node, (global, span), *element, parts, name)?;
                parts.pop();
            }
            TypeKind::Array { index, element } => {
                for value in values(types, *index, node, span)? {
                    parts.push(Part::Constant(value));
                    let text = types.value_text(*index, value).replace('-', "m");
                    let name = format!("{name}_{text}");
                    self.add(model, node, (global, span), *element, parts, name)?;
                    parts.pop();
                }
            }
            TypeKind::Record { fields } => {
                for (at, field) in fields.iter().enumerate() {
                    parts.push(Part::Field(narrow::index(at)));
                    let name = format!("{name}_{}", field.name);
                    self.add(model, node, (global, span), field.ty, parts, name)?;
                    parts.pop();
                }
            }
            TypeKind::Multiset { .. } => {
                return reject(span, "a multiset has no proof for every size");
            }
            _ => {
                if ty != node {
                    values(types, ty, node, span)?;
                }
                let arity = parts.iter().filter(|p| **p == Part::Process).count();
                if arity > MAX_INDICES || self.all.len() == MAX_SYMBOLS {
                    let text = format!(
                        "proofs for every size support at most {MAX_INDICES} indices of the scalarset and {MAX_SYMBOLS} parts of variables"
                    );
                    return reject(span, text);
                }
                let name = unique(&mut self.names, capital(&name));
                self.index.insert((global, parts.clone()), narrow::index(self.all.len()));
                self.all.push(Symbol { name, ty, arity, span });
            }
        }
        Ok(())
    }
    /// Returns the symbol of a simple part of a variable.
    pub fn of(&self, global: GlobalId, parts: &[Part]) -> Option<u32> {
        self.index.get(&(global.0, parts.to_vec())).copied()
    }
    /// Returns each symbol with its variable and the selections in it.
    pub fn places(&self) -> impl Iterator<Item = (u32, &[Part], u32)> {
        self.index.iter().map(|((global, parts), symbol)| (*global, &parts[..], *symbol))
    }
    pub fn names(&self) -> BTreeSet<String> {
        self.names.clone()
    }
}

/// Returns the values of a finite simple type.
pub(super) fn values(types: &Types, ty: TypeId, node: TypeId, span: Span) -> Result<Vec<i64>> {
    let count = types.count(ty);
    match (types.parts(ty), count) {
        _ if has_node(types, ty, node) => {
            reject(span, "a union with the scalarset has no proof for every size")
        }
        (Some(parts), Some(count)) if count <= MAX_VALUES => Ok(parts
            .into_iter()
            .flat_map(|(first, n)| (0..n).filter_map(move |i| first.checked_add_unsigned(i)))
            .collect()),
        _ => {
            let text =
                format!("proofs for every size support types of at most {MAX_VALUES} values");
            reject(span, text)
        }
    }
}
