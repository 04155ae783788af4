//! Labels of a model with their sorts, as declarations that type them.
//!
//! In: names of actions with values of types. Out: the text of each label, and the text of
//! declarations of sorts and actions (`Labels::declarations`). A type with members has the sort
//! of its name: `sort Node = struct Node_1 | Node_2;`. Types that share members, a union and its
//! parts, share a sort, of which each is a subset ([`NamedSubset`]). Ranges are numbers: `Nat`, or
//! `Int` if the range has a negative number. A type or member with a name that is a word or
//! function of formulas has a sort or constant with a number behind the name (`Set_2`, `count_2`),
//! and so have booleans as members of a union (`true_2`).
//! Invariant: every label is of a declared action. Cost: linear.

use crate::actions::{is_word, words_of_constants};
use crate::symmetry::Exchange;
use crate::typed::{Model, Type, TypeId, TypeKind};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Name of a type with fewer values than its sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSubset {
    /// Name of the type.
    pub name: String,
    /// Its values.
    pub values: Values,
}

/// Values of a type, as a subset of its sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Numbers from the first to the second, inclusive.
    Interval(i64, i64),
    /// Constants, by name.
    Constants(Vec<String>),
}

/// Table of labels; the first is tau.
#[derive(Debug)]
pub(crate) struct Labels {
    texts: Vec<String>,
    /// Action and arguments of each label.
    parts: Vec<(String, Vec<String>)>,
    ids: AHashMap<String, LabelId>,
    /// Actions with the sorts of their arguments.
    actions: BTreeSet<(String, Vec<String>)>,
    /// Names in `violation`, which are constants of one sort.
    pub(crate) claims: Vec<String>,
}

/// Argument of a label: its text and its sort.
pub(crate) type Argument = (String, String);

/// Sort of the names of invariants.
pub(crate) const CLAIM: &str = "Invariant";

impl Labels {
    pub(crate) fn new() -> Self {
        let ids = AHashMap::from([("tau".to_string(), LabelId::TAU)]);
        let parts = vec![("tau".to_string(), Vec::new())];
        Self { texts: vec!["tau".into()], parts, ids, actions: BTreeSet::new(), claims: Vec::new() }
    }
    /// Returns the label of an action with arguments.
    pub(crate) fn add(&mut self, action: &str, arguments: &[Argument]) -> LabelId {
        let values: Vec<String> = arguments.iter().map(|a| a.0.clone()).collect();
        let text = text(action, &values);
        let sorts = arguments.iter().map(|a| a.1.clone()).collect();
        self.actions.insert((action.to_string(), sorts));
        let next = LabelId::new(self.texts.len());
        let id = *self.ids.entry(text.clone()).or_insert(next);
        if id == next {
            self.texts.push(text);
            self.parts.push((action.to_string(), values));
        }
        id
    }
    /// Declares an action without labels, unless it has some.
    pub(crate) fn declare(&mut self, action: &str, sorts: Vec<String>) {
        if !self.actions.iter().any(|(name, _)| name == action) {
            self.actions.insert((action.to_string(), sorts));
        }
    }
    /// Returns the image of a label, with the images of its arguments; `None` if there is none.
    pub(crate) fn image(&self, label: LabelId, exchange: &Exchange) -> Option<LabelId> {
        let (action, values) = &self.parts[label.index()];
        let values: Vec<String> = values.iter().map(|v| exchange.text(v).to_string()).collect();
        self.ids.get(&text(action, &values)).copied()
    }
    pub(crate) fn text(&self, label: LabelId) -> &str {
        &self.texts[label.index()]
    }
    pub(crate) fn count(&self) -> usize {
        self.texts.len()
    }
    /// Returns the actions with the sorts of their arguments. Rules of one name are one action,
    /// whatever their ranges: its numbers are integers if a range has a negative number.
    fn declared_actions(&self) -> Vec<(&str, Vec<String>)> {
        let mut all: BTreeMap<(&str, Vec<&str>), Vec<String>> = BTreeMap::new();
        for (name, sorts) in &self.actions {
            let widest = sorts.iter().map(|s| if s == "Nat" { "Int" } else { s.as_str() });
            let known = all.entry((name, widest.collect())).or_insert_with(|| sorts.clone());
            for (known, sort) in known.iter_mut().zip(sorts) {
                if sort == "Int" {
                    known.clone_from(sort);
                }
            }
        }
        all.into_iter().map(|((name, _), sorts)| (name, sorts)).collect()
    }
    /// Returns the declarations of sorts and actions, in the language of mCRL2 specifications.
    pub(crate) fn declarations(&self, model: &Model) -> String {
        let mut text = String::new();
        let mut names = BTreeSet::new();
        for group in groups(model) {
            let _ = writeln!(text, "sort {} = struct {};", group.sort, group.members.join(" | "));
            names.insert(group.sort.clone());
            for name in group.types.iter().map(|(name, _)| name) {
                if names.insert(name.clone()) {
                    let _ = writeln!(text, "sort {name} = {};", group.sort);
                }
            }
        }
        for (name, ty) in &model.type_names {
            let is_simple =
                matches!(model.types.kind(*ty), TypeKind::Range { .. } | TypeKind::Boolean);
            let name = sort_name(model, name);
            if is_simple && names.insert(name.clone()) {
                let _ = writeln!(text, "sort {name} = {};", sort(model, *ty, false));
            }
        }
        if !self.claims.is_empty() {
            let claims: BTreeSet<&String> = self.claims.iter().collect();
            let all: Vec<&str> = claims.into_iter().map(String::as_str).collect();
            let _ = writeln!(text, "sort {CLAIM} = struct {};", all.join(" | "));
        }
        for (name, sorts) in self.declared_actions() {
            let _ = match &sorts[..] {
                [] => writeln!(text, "act {name};"),
                sorts => writeln!(text, "act {name}: {};", sorts.join(" # ")),
            };
        }
        text
    }
}

fn text(action: &str, values: &[String]) -> String {
    match values {
        [] => action.to_string(),
        values => format!("{action}({})", values.join(", ")),
    }
}

/// Returns the sort of the values of a type. `negative`: an integer without a range may be
/// negative.
pub(crate) fn sort(model: &Model, ty: TypeId, negative: bool) -> String {
    let named = |word: &str| match &model.types.get(ty).name {
        // The first of several names of a type.
        Some(name) => sort_name(model, name),
        None => free_name(model, format!("{word}{}", ty.0)),
    };
    match model.types.kind(ty) {
        TypeKind::Boolean => "Bool".into(),
        TypeKind::Integer if negative => "Int".into(),
        TypeKind::Range { low, .. } if *low < 0 => "Int".into(),
        TypeKind::Enum { .. } => named("Enum"),
        TypeKind::Scalarset { .. } => named("Scalarset"),
        TypeKind::Union { .. } => named("Union"),
        _ => "Nat".into(),
    }
}

/// Returns the sort of a named type: its name, unless formulas have another meaning for it.
pub(crate) fn sort_name(model: &Model, name: &str) -> String {
    match is_word(name) || name == CLAIM {
        true => free_name(model, name.to_string()),
        false => name.to_string(),
    }
}

/// Returns a name for a sort that no type has: the given one, or with a number.
fn free_name(model: &Model, name: String) -> String {
    let is_taken = |name: &str| {
        is_word(name) || name == CLAIM || model.type_names.iter().any(|(other, _)| other == name)
    };
    if !is_taken(&name) {
        return name;
    }
    let mut numbered = (2..).map(|n: u32| format!("{name}_{n}"));
    numbered.find(|name| !is_taken(name)).unwrap_or_default()
}

/// Returns the names of types that formulas do not know under these names, each with its sort.
pub fn renamed_types(model: &Model) -> Vec<(String, String)> {
    let all = model.type_names.iter().map(|(name, _)| (name.clone(), sort_name(model, name)));
    all.filter(|(name, sort)| name != sort).collect()
}

/// Gives members of enumerations, and booleans in unions, other names if formulas have another
/// meaning for them. Returns the old and the new names.
pub(crate) fn rename_members(model: &mut Model) -> Vec<(String, String)> {
    let words = words_of_constants();
    let mut used: BTreeSet<String> = BTreeSet::new();
    for at in 0..model.types.all.len() {
        let ty = TypeId::new(at);
        if matches!(model.types.kind(ty), TypeKind::Scalarset { .. }) {
            used.extend(members(model, ty));
        }
    }
    let elements = used.clone();
    for ty in &model.types.all {
        if let TypeKind::Enum { members, .. } = &ty.kind {
            used.extend(members.iter().map(|m| m.name.clone()));
        }
    }
    let mut renamed: Vec<(String, String)> = Vec::new();
    for ty in &mut model.types.all {
        let TypeKind::Enum { members, .. } = &mut ty.kind else { continue };
        for member in members {
            if !words.contains(&member.name.as_str()) && !elements.contains(&member.name) {
                continue;
            }
            let known = renamed.iter().find(|(old, _)| *old == member.name);
            let new = known.map(|(_, new)| new.clone()).unwrap_or_else(|| {
                let mut numbered = (2..).map(|n: u32| format!("{}_{n}", member.name));
                numbered.find(|name| !used.contains(name)).unwrap_or_default()
            });
            if known.is_none() {
                used.insert(new.clone());
                renamed.push((member.name.clone(), new.clone()));
            }
            member.name = new;
        }
    }
    let types = &mut model.types;
    let has_booleans = |ty: &Type| match &ty.kind {
        TypeKind::Union { members } => members.contains(&TypeId::BOOLEAN),
        _ => false,
    };
    if types.all.iter().any(has_booleans) {
        for name in &mut types.union_booleans {
            let mut numbered = (2..).map(|n: u32| format!("{name}_{n}"));
            let new = numbered.find(|name| !used.contains(name)).unwrap_or_default();
            renamed.push((name.clone(), new.clone()));
            *name = new;
        }
    }
    renamed
}

/// Returns the names of the members of a type; none if its values are numbers or truth values.
fn members(model: &Model, ty: TypeId) -> Vec<String> {
    match model.types.kind(ty) {
        TypeKind::Enum { .. } | TypeKind::Scalarset { .. } | TypeKind::Union { .. } => {
            let parts = model.types.parts(ty).unwrap_or_default();
            let values = parts
                .into_iter()
                .flat_map(|(first, count)| (0..count).map(move |n| first.wrapping_add_unsigned(n)));
            values.map(|v| model.types.value_text(ty, v)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the names of all members.
pub(crate) fn constants(model: &Model) -> BTreeSet<String> {
    (0..model.types.all.len()).flat_map(|at| members(model, TypeId::new(at))).collect()
}

/// Types that share members, and their common sort.
struct Group {
    sort: String,
    members: Vec<String>,
    /// Types with all their names.
    types: Vec<(String, TypeId)>,
}

/// Returns the types with members, those that share members together. Cost: quadratic in the number
/// of types.
fn groups(model: &Model) -> Vec<Group> {
    let unnamed = (0..model.types.all.len()).map(TypeId::new);
    let unnamed = unnamed.map(|ty| (sort(model, ty, false), ty));
    let listed = model.type_names.iter().map(|(name, ty)| (sort_name(model, name), *ty));
    let mut out: Vec<Group> = Vec::new();
    for (name, ty) in listed.chain(unnamed) {
        let own = members(model, ty);
        if own.is_empty() {
            continue;
        }
        let (met, others): (Vec<Group>, Vec<Group>) =
            out.into_iter().partition(|g| g.members.iter().any(|m| own.contains(m)));
        out = others;
        let mut group = Group { sort: name.clone(), members: own, types: Vec::new() };
        for other in met {
            // The type with all members gives its name to the sort.
            let is_wider = group.members.iter().all(|m| other.members.contains(m));
            if is_wider {
                group.sort = other.sort;
            } else if !other.members.iter().all(|m| group.members.contains(m)) {
                group.sort = format!("{}_or_{}", other.sort, group.sort);
            }
            let new = other.members.into_iter().filter(|m| !group.members.contains(m));
            let new: Vec<String> = new.collect();
            group.members.extend(new);
            group.types.extend(other.types);
        }
        group.types.push((name, ty));
        out.push(group);
    }
    out
}

/// Returns the named types with fewer values than their sorts.
pub(crate) fn subsets(model: &Model) -> Vec<NamedSubset> {
    let intervals = model.type_names.iter().filter_map(|(name, ty)| {
        let TypeKind::Range { low, high } = model.types.kind(*ty) else { return None };
        let name = sort_name(model, name);
        Some(NamedSubset { name, values: Values::Interval(*low, *high) })
    });
    let groups = groups(model);
    let constants = groups.iter().flat_map(|group| {
        group.types.iter().filter_map(|(name, ty)| {
            let own = members(model, *ty);
            let is_part = own.len() < group.members.len();
            is_part.then(|| NamedSubset { name: name.clone(), values: Values::Constants(own) })
        })
    });
    intervals.chain(constants).collect()
}
