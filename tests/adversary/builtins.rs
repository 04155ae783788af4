//! Built-in operations of the data language, as the type checker declares them, and their uses in a
//! text.
//!
//! In: the declarations in `src/data/typecheck/builtins.rs`; typed signatures. Out: the schemes
//! that drive the generator of expressions; for each operation at each kind of sort, whether a
//! signature has it. An operation that is added there is generated without a change here.

use mu_check::data::signature::{OpKind, Signature};
use mu_check::data::sort::SortKind;
use std::collections::BTreeSet;

/// A sort of a scheme; `S` and `T` are variables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    Basic(&'static str),
    Var(usize),
    Container(&'static str, usize),
    Function(usize, usize),
}

/// An operation at a family of sorts.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// As it is written: `+`, `head`.
    pub name: String,
    /// Name of its meaning: `Add`, `Union`.
    pub builtin: String,
    pub params: Vec<Pattern>,
    pub result: Pattern,
}

fn pattern(text: &str) -> Pattern {
    let variables: Vec<usize> =
        text.chars().filter_map(|c| c.to_digit(10)).map(|d| d as usize).collect();
    match text.split('(').next().unwrap_or_default() {
        "BOOL" => Pattern::Basic("Bool"),
        "POS" => Pattern::Basic("Pos"),
        "NAT" => Pattern::Basic("Nat"),
        "INT" => Pattern::Basic("Int"),
        "REAL" => Pattern::Basic("Real"),
        "Var" => Pattern::Var(variables[0]),
        "List" => Pattern::Container("List", variables[0]),
        "Set" => Pattern::Container("Set", variables[0]),
        "FSet" => Pattern::Container("FSet", variables[0]),
        "Bag" => Pattern::Container("Bag", variables[0]),
        "FBag" => Pattern::Container("FBag", variables[0]),
        "Function" => Pattern::Function(variables[0], variables[1]),
        other => panic!("`{other}` is no sort of a scheme"),
    }
}

/// Splits at commas outside of brackets.
fn between_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    found.push(text[start..].trim());
    found.retain(|part| !part.is_empty());
    found
}

/// Reads the schemes.
pub fn schemes() -> Vec<Scheme> {
    let path = crate::support::package("src/data/typecheck/builtins.rs");
    let text = std::fs::read_to_string(path).expect("the declarations of the built-in operations");
    let body =
        text.split("pub(super) fn schemes(").nth(1).expect("the function that declares them");
    let mut found = Vec::new();
    for arm in body.split("schemes! {").skip(1).zip(body.split("schemes! {")) {
        let (declared, before) = arm;
        let name = before.rsplit('"').nth(1).expect("the name before the schemes").to_string();
        let declared = declared.split('}').next().unwrap_or_default();
        for line in declared.split(';').map(str::trim).filter(|l| !l.is_empty()) {
            let (builtin, rest) = line.split_once(':').expect("an operation and its sort");
            let (params, result) = rest.split_once("=>").expect("parameters and a result");
            let params = between_commas(params).into_iter().map(pattern).collect();
            found.push(Scheme {
                name: name.clone(),
                builtin: builtin.trim().into(),
                params,
                result: pattern(result.trim()),
            });
        }
    }
    assert!(found.len() > 90, "{} schemes", found.len());
    found
}

/// Returns a word for the kind of a sort.
fn kind(signature: &Signature, sort: mu_check::base::ids::SortId) -> &'static str {
    use mu_check::data::sort::basic;
    match signature.sorts.kind(sort) {
        _ if sort == basic::BOOL => "Bool",
        _ if sort == basic::POS => "Pos",
        _ if sort == basic::NAT => "Nat",
        _ if sort == basic::INT => "Int",
        _ if sort == basic::REAL => "Real",
        SortKind::List(_) => "List",
        SortKind::Set(_) => "Set",
        SortKind::Bag(_) => "Bag",
        SortKind::FSet(_) => "FSet",
        SortKind::FBag(_) => "FBag",
        SortKind::Function(..) => "function",
        _ => "declared",
    }
}

/// The built-in operations of a signature, each with the kinds of the sorts of its arguments: `Add
/// Nat Nat`.
pub fn collect_builtins(signature: &Signature, found: &mut BTreeSet<String>) {
    for (_, op) in signature.ops() {
        if let OpKind::Builtin(builtin) = op.kind {
            let (domain, range) = signature.domain_range(op.sort);
            let sorts: Vec<&str> = if domain.is_empty() {
                vec![kind(signature, range)]
            } else {
                domain.iter().map(|s| kind(signature, *s)).collect()
            };
            found.insert(format!("{builtin:?} {}", sorts.join(" ")));
        }
    }
}

/// Kinds of sorts at which an operation on any sort is to be generated.
const KINDS: [&str; 12] = [
    "Bool", "Pos", "Nat", "Int", "Real", "List", "Set", "FSet", "Bag", "FBag", "function",
    "declared",
];

/// Returns all operations at all kinds of sorts that must be generated.
pub fn required_operations() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for scheme in schemes() {
        let polymorphic =
            scheme.params.iter().chain([&scheme.result]).any(|p| *p == Pattern::Var(0));
        let contained = scheme
            .params
            .iter()
            .any(|p| matches!(p, Pattern::Container(..) | Pattern::Function(..)));
        let kinds: &[&str] = if polymorphic && !contained { &KINDS } else { &["declared"] };
        for kind in kinds {
            // Functions have no order; that of sets and bags is inclusion.
            let ordered =
                ["Less", "LessEqual", "Greater", "GreaterEqual"].contains(&scheme.builtin.as_str());
            if ordered && (*kind == "function" || kind.ends_with("Set") || kind.ends_with("Bag")) {
                found.extend(
                    [
                        "Subset FSet FSet",
                        "ProperSubset Set Set",
                        "Subset Bag Bag",
                        "ProperSubset FBag FBag",
                    ]
                    .map(String::from),
                );
                continue;
            }
            if scheme.builtin == "Update" {
                found.extend(
                    ["Update function declared Bool", "Update function declared Nat"]
                        .map(String::from),
                );
                continue;
            }
            let word = |p: &Pattern| match p {
                Pattern::Basic(name) | Pattern::Container(name, _) => *name,
                Pattern::Var(_) => kind,
                Pattern::Function(..) => "function",
            };
            let sorts: Vec<&str> = if scheme.params.is_empty() {
                vec![word(&scheme.result)]
            } else {
                scheme.params.iter().map(word).collect()
            };
            found.insert(format!("{} {}", scheme.builtin, sorts.join(" ")));
        }
    }
    found
}
