//! Rejection of names that are declared for several sorts of numbers.
//!
//! Input: a specification. Output: the position of a declaration over numbers of one sort, if
//! another declaration of the same name is over numbers of another sort. A literal has the least
//! possible sort: `f(0)` is that of `Nat` and `f(3)` that of `Pos`, so the resolution can depend on
//! the value of a parameter, but the constant that represents the parameter has one sort. Sorts are
//! compared by their text; a declared name is a sort of numbers if its definition contains one.
//! Cost: quadratic in the declarations of one name.

use mu_base::{Diagnostic, Stage};
use mu_syntax::ast::{Ident, Section, Sort, SortKind, Specification, StructConstructor};
use std::collections::{BTreeMap, BTreeSet};

/// Finds such a declaration. `None` if there is none.
pub fn find_overload(tree: &Specification) -> Option<Diagnostic> {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    let definitions = || {
        let sections = tree
            .sections
            .iter()
            .filter_map(|s| if let Section::Sorts(all) = s { Some(all) } else { None });
        sections.flatten().filter_map(|(name, sort)| Some((name, sort.as_ref()?)))
    };
    loop {
        let before = names.len();
        let more: Vec<&str> =
            definitions().filter(|d| has_numbers(d.1, &names)).map(|d| d.0.kind.as_str()).collect();
        names.extend(more);
        if names.len() == before {
            break;
        }
    }
    let mut known = Declarations::new();
    let mut add = |name, domain| note(&mut known, name, domain);
    for (_, sort) in definitions() {
        for constructor in constructors(sort) {
            add(&constructor.name, constructor.args.iter().map(|a| &a.1).collect());
        }
    }
    for section in &tree.sections {
        match section {
            Section::Constructors(all) | Section::Mappings(all) => {
                all.iter().for_each(|(name, sort)| add(name, domain(sort)));
            }
            Section::Actions(all) => {
                all.iter().for_each(|(name, sorts)| add(name, sorts.iter().collect()))
            }
            Section::Processes(all) => {
                all.iter().for_each(|equation| {
                    add(&equation.name, equation.params.iter().map(|p| &p.sort).collect())
                });
            }
            _ => {}
        }
    }
    let differ = |x: &&Sort, y: &&Sort| {
        text(x) != text(y) && has_numbers(x, &names) && has_numbers(y, &names)
    };
    for all in known.values() {
        for (i, (name, domain)) in all.iter().enumerate() {
            if all[..i].iter().any(|(_, other)| domain.iter().zip(other).any(|(x, y)| differ(x, y)))
            {
                let message = format!(
                    "`{}` is declared for several sorts of numbers, and its meaning may depend on a parameter",
                    name.kind
                );
                return Some(Diagnostic::at(Stage::Unsupported, name.span, message));
            }
        }
    }
    None
}

/// Declarations by name and number of arguments.
type Declarations<'t> = BTreeMap<(&'t str, usize), Vec<(&'t Ident, Vec<&'t Sort>)>>;

fn note<'t>(known: &mut Declarations<'t>, name: &'t Ident, domain: Vec<&'t Sort>) {
    known.entry((name.kind.as_str(), domain.len())).or_default().push((name, domain));
}

/// Returns the arguments of an operation of a sort.
fn domain(sort: &Sort) -> Vec<&Sort> {
    match &sort.kind {
        SortKind::Function(domain, _) => domain.iter().collect(),
        _ => Vec::new(),
    }
}

fn constructors(sort: &Sort) -> &[StructConstructor] {
    match &sort.kind {
        SortKind::Struct(all) => all,
        _ => &[],
    }
}

/// True if a sort is one of numbers, or contains one. `names`: the declared sorts that do.
fn has_numbers(sort: &Sort, names: &BTreeSet<&str>) -> bool {
    match &sort.kind {
        // The constructors of a structured sort determine the sort.
        SortKind::Bool | SortKind::Struct(_) => false,
        SortKind::Pos | SortKind::Nat | SortKind::Int | SortKind::Real => true,
        SortKind::List(of)
        | SortKind::Set(of)
        | SortKind::Bag(of)
        | SortKind::FSet(of)
        | SortKind::FBag(of) => has_numbers(of, names),
        SortKind::Name(name) => names.contains(name.as_str()),
        SortKind::Function(domain, range) => {
            domain.iter().chain([&**range]).any(|s| has_numbers(s, names))
        }
    }
}

/// Prints a sort without positions.
fn text(sort: &Sort) -> String {
    let of = |sort: &Sort| text(sort);
    match &sort.kind {
        SortKind::Bool => "Bool".into(),
        SortKind::Pos => "Pos".into(),
        SortKind::Nat => "Nat".into(),
        SortKind::Int => "Int".into(),
        SortKind::Real => "Real".into(),
        SortKind::List(s) => format!("List({})", of(s)),
        SortKind::Set(s) => format!("Set({})", of(s)),
        SortKind::Bag(s) => format!("Bag({})", of(s)),
        SortKind::FSet(s) => format!("FSet({})", of(s)),
        SortKind::FBag(s) => format!("FBag({})", of(s)),
        SortKind::Struct(all) => {
            let one = |c: &StructConstructor| {
                format!(
                    "{}({})",
                    c.name.kind,
                    c.args.iter().map(|a| of(&a.1)).collect::<Vec<_>>().join(",")
                )
            };
            format!("struct {}", all.iter().map(one).collect::<Vec<_>>().join("|"))
        }
        SortKind::Name(name) => name.clone(),
        SortKind::Function(domain, range) => {
            format!("({})->{}", domain.iter().map(of).collect::<Vec<_>>().join("#"), of(range))
        }
    }
}
