//! Values as mCRL2 text, and back: for files that another run reads.
//!
//! Text to value: parsed, type checked at the value's sort, evaluated. Some functions do not
//! survive the round trip, so a writer compares first: [`round_trip_texts`]. Cost: one compilation
//! of the data equations for each call of [`read`].

use super::engine::{Engine, Program};
use super::expr::{DataSpec, Expr};
use super::print;
use super::signature::Signature;
use super::sort::SortKind;
use mu_base::ids::SortId;
use mu_base::{Diagnostic, SourceId, Stage};

/// Returns the value of each text, at a sort if it is given, over the operations of the
/// specification.
pub fn read<'t>(
    data: &DataSpec,
    texts: impl Iterator<Item = (&'t str, Option<SortId>)>,
) -> Result<Vec<Expr>, Diagnostic> {
    // The checker may add operations, which get higher numbers.
    let mut data = data.clone();
    let mut checked = Vec::new();
    for (text, sort) in texts {
        let tree = mu_syntax::parse_data(SourceId::FIRST, text)?;
        checked.push((super::typecheck::check_expression(&tree, &mut data, sort)?, sort));
    }
    let mut engine = Engine::new(Program::compile(&data)?);
    let mut values = Vec::with_capacity(checked.len());
    for (term, sort) in &checked {
        let value = engine.from_expr(term)?;
        values.push(match sort {
            Some(sort) => engine.to_expr_at(&value, *sort),
            None => engine.to_expr(&value),
        });
    }
    Ok(values)
}

/// True if values of a sort may be functions or contain some, except in sets and bags, which can be
/// written.
pub fn may_hold_functions(signature: &Signature, sort: SortId) -> bool {
    let (mut seen, mut open) = (vec![sort], vec![sort]);
    while let Some(sort) = open.pop() {
        let parts: Vec<SortId> = match signature.sorts.kind(sort) {
            SortKind::Function(..) => return true,
            SortKind::List(of)
            | SortKind::Set(of)
            | SortKind::Bag(of)
            | SortKind::FSet(of)
            | SortKind::FBag(of) => vec![*of],
            SortKind::Named(_) => {
                let named = signature.sorts.declared_sort(sort);
                let constructors = named.iter().flat_map(|named| &named.constructors);
                constructors
                    .flat_map(|op| signature.domain_range(signature.op(*op).sort).0.to_vec())
                    .collect()
            }
            SortKind::Bool | SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => {
                Vec::new()
            }
        };
        for part in parts {
            if !seen.contains(&part) {
                seen.push(part);
                open.push(part);
            }
        }
    }
    false
}

/// Returns the texts of values. Error: a text that is not read back as the same value.
pub fn round_trip_texts(
    data: &DataSpec,
    values: &[(&Expr, Option<SortId>)],
) -> Result<Vec<String>, Diagnostic> {
    let texts: Vec<String> =
        values.iter().map(|(value, _)| print::expression(&data.signature, value)).collect();
    let read = read(data, texts.iter().zip(values).map(|(t, v)| (&t[..], v.1)));
    let read = read.map_err(|_| {
        Diagnostic::new(Stage::Unsupported, "some values cannot be stored in a file")
    })?;
    match read.iter().zip(values).position(|(read, (value, _))| read != *value) {
        None => Ok(texts),
        Some(i) => Err(Diagnostic::new(
            Stage::Unsupported,
            format!("the value `{}` cannot be stored in a file", texts[i]),
        )),
    }
}
