//! Declaration of the symbols of a system: the part of a state of the model that each contains,
//! with the names of its values.
//!
//! Numbers of values are positions in their types, which do not depend on the size of the
//! scalarset. Together with the system this is all that a check of the translation needs
//! ([`crate::origin`]).

use super::output::Names;
use super::symbols::Part;
use super::{Result, Translator};
use crate::typed::TypeKind;
use mu_base::Diagnostic;

/// Selection of a part of a variable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PartSelector {
    /// A field of a record, by its number.
    Field(u32),
    /// An element of an array over a finite type, by the position of the index.
    Position(u64),
    /// An element of an array over the scalarset of any size: an index of the symbol.
    Element,
}

/// Representation of an undefined part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeclaredUndefined {
    /// The part is never undefined.
    Never,
    /// A value with this name.
    Value(String),
    /// A symbol with this name and the same indices is false.
    Flag(String),
}

/// Symbol with the part that it contains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeclaredSymbol {
    /// Number of the global variable.
    pub global: u32,
    /// Selections in it.
    pub part: Vec<PartSelector>,
    /// Name of the symbol.
    pub symbol: String,
    /// Names of the values by position. `None`: elements of the scalarset of any size.
    pub values: Option<Vec<String>>,
    /// Representation of an undefined part.
    pub undefined: DeclaredUndefined,
}

/// All symbols of a system.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Correspondence {
    /// Symbols for parts of the state.
    pub symbols: Vec<DeclaredSymbol>,
    /// Symbol that is true after the choice of a start state, if there is one.
    pub started: Option<String>,
    /// Symbol that is true after a failure, if there is one.
    pub failed: Option<String>,
}

impl Translator<'_> {
    /// Declares the symbols of the system.
    pub(super) fn correspondence(&self, names: &Names, has_failed: bool) -> Result<Correspondence> {
        let missing = || Diagnostic::internal("a symbol without a part");
        let types = &self.model.types;
        let mut symbols = Vec::new();
        for (global, parts, number) in self.symbols.places() {
            let of = &self.symbols.all[number as usize];
            let mut ty = self.model.globals.get(global as usize).ok_or_else(missing)?.ty;
            let mut part = Vec::new();
            for selected in parts {
                match (selected, types.kind(ty)) {
                    (Part::Field(field), TypeKind::Record { fields }) => {
                        part.push(PartSelector::Field(*field));
                        ty = fields.get(*field as usize).ok_or_else(missing)?.ty;
                    }
                    (Part::Constant(value), TypeKind::Array { index, element }) => {
                        let position = types.position(*index, *value).ok_or_else(missing)?;
                        part.push(PartSelector::Position(position));
                        ty = *element;
                    }
                    (Part::Process, TypeKind::Array { element, .. }) => {
                        part.push(PartSelector::Element);
                        ty = *element;
                    }
                    _ => return Err(missing()),
                }
            }
            let sort = self.sort(names, of.ty);
            let values = match sort {
                None => None,
                Some(sort) => {
                    let count = types.count(ty).ok_or_else(missing)?;
                    let name = |at: u64| types.value_at(ty, at).and_then(|v| sort.values.get(&v));
                    let all = (0..count).map(|at| name(at).cloned().ok_or_else(missing));
                    Some(all.collect::<Result<Vec<String>>>()?)
                }
            };
            let value = sort.and_then(|s| s.undefined.clone());
            let undefined = match (self.undefined.contains(&number), names.known.get(&number)) {
                (false, _) => DeclaredUndefined::Never,
                (true, Some(flag)) => DeclaredUndefined::Flag(flag.clone()),
                (true, None) => DeclaredUndefined::Value(value.ok_or_else(missing)?),
            };
            let symbol = of.name.clone();
            symbols.push(DeclaredSymbol { global, part, symbol, values, undefined });
        }
        symbols.sort_by(|a, b| (a.global, &a.part).cmp(&(b.global, &b.part)));
        if symbols.len() != self.symbols.all.len() {
            return Err(missing());
        }
        let failed = has_failed.then(|| names.failed.clone());
        Ok(Correspondence { symbols, started: names.started.clone(), failed })
    }
}
