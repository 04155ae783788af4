//! Labels of a model with their sorts, as declarations that type them.
//!
//! In: names of actions with values of types. Out: the text of each label, and the text of
//! declarations of sorts and actions (`Labels::declarations`). A type with members has the sort
//! of its name: `sort Node = struct Node_1 | Node_2;`. Ranges are numbers: `Nat`, or `Int` if the
//! range has a negative number. Invariant: every label is of a declared action. Cost: linear.

use crate::symmetry::Exchange;
use crate::typed::{Model, TypeId, TypeKind};
use ahash::AHashMap;
use mu_base::ids::LabelId;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Named type of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRange {
    /// Name of the type.
    pub name: String,
    /// Lowest number.
    pub low: i64,
    /// Highest number.
    pub high: i64,
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
    /// Returns the declarations of sorts and actions, in the language of mCRL2 specifications.
    pub(crate) fn declarations(&self, model: &Model) -> String {
        let mut text = String::new();
        let (mut defined, mut names): (AHashMap<TypeId, String>, BTreeSet<String>) =
            Default::default();
        let unnamed = (0..model.types.all.len()).map(TypeId::new);
        let unnamed = unnamed.map(|ty| (sort(model, ty, false), ty));
        let listed = model.type_names.iter().map(|(name, ty)| (name.clone(), *ty));
        for (name, ty) in listed.chain(unnamed) {
            let (members, own) = (members(model, ty), sort(model, ty, false));
            let is_range = matches!(model.types.kind(ty), TypeKind::Range { .. });
            let has_sort = !members.is_empty() || is_range && name != own;
            if !has_sort || !names.insert(name.clone()) {
                continue;
            }
            let _ = match defined.get(&ty) {
                _ if is_range => writeln!(text, "sort {name} = {own};"),
                Some(known) => writeln!(text, "sort {name} = {known};"),
                None => writeln!(text, "sort {name} = struct {};", members.join(" | ")),
            };
            defined.entry(ty).or_insert(name);
        }
        if !self.claims.is_empty() {
            let claims: BTreeSet<&String> = self.claims.iter().collect();
            let all: Vec<&str> = claims.into_iter().map(String::as_str).collect();
            let _ = writeln!(text, "sort {CLAIM} = struct {};", all.join(" | "));
        }
        for (name, sorts) in &self.actions {
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
        Some(name) => name.clone(),
        None => format!("{word}{}", ty.0),
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

/// Returns the named types of numbers.
pub(crate) fn ranges(model: &Model) -> Vec<NamedRange> {
    let range = |(name, ty): &(String, TypeId)| match model.types.kind(*ty) {
        TypeKind::Range { low, high } => {
            Some(NamedRange { name: name.clone(), low: *low, high: *high })
        }
        _ => None,
    };
    model.type_names.iter().filter_map(range).collect()
}
