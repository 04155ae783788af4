//! Subterms of normal forms that have no value.
//!
//! In: a normal form. Out: its innermost subterm without a value, as `head([])`. A term has no
//! value if an operation remains that should have been computed: a built-in one, a projection, a
//! mapping with equations of which none applied, or a mapping without equations into a sort with
//! constructors. A mapping without equations into a sort without constructors is a value of that
//! sort, and a function is a value too. Cost: each shared subterm once; nothing for data.

use super::Engine;
use super::compile::Program;
use super::reflect::result_sort;
use crate::expr::Binder;
use crate::signature::OpKind;
use crate::sort::SortKind;
use crate::value::{Rich, Value};
use ahash::AHashSet;
use mu_base::ids::OpId;

impl Engine {
    /// Returns the innermost subterm of a closed normal form that has no value, if there is one.
    pub fn undefined_subterm(&self, value: &Value) -> Option<Value> {
        let mut found = first_undefined(self.program(), vec![value.clone()])?;
        while let Some(inner) = first_undefined(self.program(), direct_subterms(&found)) {
            found = inner;
        }
        Some(found)
    }
}

/// Returns the first subterm of these values that has no value itself, in the order of the text.
fn first_undefined(p: &Program, mut pending: Vec<Value>) -> Option<Value> {
    pending.reverse();
    let mut seen = AHashSet::new();
    while let Some(v) = pending.pop() {
        if v.is_data() || v.shared_address().is_some_and(|node| !seen.insert(node)) {
            continue;
        }
        if lacks_value(p, &v) {
            return Some(v);
        }
        pending.extend(direct_subterms(&v).into_iter().rev());
    }
    None
}

/// Returns the direct subterms of a value, in the order of the text.
fn direct_subterms(v: &Value) -> Vec<Value> {
    match v {
        Value::Cons(cell) => vec![cell.head.clone(), cell.tail.clone()],
        Value::Rich(node) => match &node.kind {
            Rich::Integer(_) | Rich::Rational(_) | Rich::Closure(_) => Vec::new(),
            Rich::Set(_, elements) => elements.to_vec(),
            Rich::Bag(_, entries) => {
                entries.iter().flat_map(|(e, n)| [e.clone(), n.clone()]).collect()
            }
            Rich::Table(_, base, entries) => [base.clone()]
                .into_iter()
                .chain(entries.iter().flat_map(|(k, v)| [k.clone(), v.clone()]))
                .collect(),
            Rich::Apply(head, args) => {
                [head.clone()].into_iter().chain(args.iter().cloned()).collect()
            }
        },
        _ => v.as_app().map(|(_, args)| args.to_vec()).unwrap_or_default(),
    }
}

/// True if a value itself, apart from its subterms, has no value.
fn lacks_value(p: &Program, v: &Value) -> bool {
    match v {
        Value::Rich(node) => match &node.kind {
            Rich::Apply(..) => true,
            Rich::Closure(c) => matches!(c.lambda.binder, Binder::Forall | Binder::Exists),
            _ => false,
        },
        _ => v.as_app().is_some_and(|(op, args)| is_unevaluated(p, op, args.len())),
    }
}

/// True if an operation on a number of arguments, which no rule matches, should have been computed.
fn is_unevaluated(p: &Program, op: OpId, args: usize) -> bool {
    let sort = result_sort(p, op, args);
    let sorts = &p.signature().sorts;
    if matches!(sorts.kind(sort), SortKind::Function(..)) {
        return false;
    }
    match &p.signature().op(op).kind {
        OpKind::Constructor(_) => false,
        OpKind::Projection(_) | OpKind::Recogniser(_) => true,
        OpKind::Mapping => {
            let has_equations = p.op(op).funcs.iter().any(Option::is_some);
            has_equations
                || sorts.declared_sort(sort).is_none_or(|named| !named.constructors.is_empty())
        }
        // An operation that remains in an infinite set or bag builds its characteristic function,
        // which is a value.
        OpKind::Builtin(_) => !matches!(sorts.kind(sort), SortKind::Set(_) | SortKind::Bag(_)),
    }
}
