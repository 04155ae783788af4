//! What a model says of the data in its labels, for files that hold typed terms: sorts, operations,
//! equations, actions, parts of labels.
//!
//! Whoever knows the data fills in a [`Typed`]; a writer puts it beside the transitions. Nothing
//! here knows what an operation computes: operations are names at sorts. A label's text is cut into
//! the parts of its multi-action ([`super::relabel::parts`]); each part has its action and its
//! arguments as terms, so that systems whose labels were hidden, renamed or made fewer find theirs
//! again by text.
//!
//! Cost: sorts and terms are shared, each is stored once. Invariant: the parts of a sort or term
//! have smaller numbers than it.

use super::Lts;
use super::relabel::parts;
use ahash::AHashMap;
use num_bigint::BigInt;
use std::hash::Hash;

mod check;

/// The number of a sort.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SortRef(u32);

/// The number of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TermRef(u32);

/// The number of an action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ActionRef(u32);

impl SortRef {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
impl TermRef {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
impl ActionRef {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Sorts of collections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Container {
    List,
    Set,
    Bag,
    FSet,
    FBag,
}

/// A constructor of a structured sort.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constructor {
    /// Its name.
    pub name: String,
    /// Sorts of its arguments, with the names of their projections.
    pub arguments: Vec<(Option<String>, SortRef)>,
    /// The name of its recogniser.
    pub recogniser: Option<String>,
}

/// A sort.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Sort {
    /// A sort with a name: `Bool`, `Pos`, `Nat`, `Int`, `Real`, or a declared one.
    Named(String),
    /// A sort of collections.
    Container(Container, SortRef),
    /// A sort of functions; the domain is not empty.
    Function(Vec<SortRef>, SortRef),
    /// A structured sort.
    Struct(Vec<Constructor>),
}

/// Sorts of numbers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum NumberSort {
    Pos,
    Nat,
    Int,
    Real,
}

/// Binders.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Binder {
    Lambda,
    Forall,
    Exists,
}

/// A term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Term {
    /// A variable.
    Variable(String, SortRef),
    /// An operation, unapplied.
    Operation(String, SortRef),
    /// An integer at a sort that has it.
    Number(BigInt, NumberSort),
    /// An application to at least one argument.
    Apply(TermRef, Vec<TermRef>),
    /// A binder with its variables.
    Bind(Binder, Vec<TermRef>, TermRef),
    /// A term with definitions of variables.
    Where(TermRef, Vec<(TermRef, TermRef)>),
}

/// `condition -> left = right`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Equation {
    /// Its variables.
    pub variables: Vec<TermRef>,
    /// The condition, a term of sort `Bool`.
    pub condition: TermRef,
    /// Left-hand side.
    pub left: TermRef,
    /// Right-hand side.
    pub right: TermRef,
}

/// An action: its name and the sorts of its arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Action {
    /// The name.
    pub name: String,
    /// The sorts.
    pub sorts: Vec<SortRef>,
}

/// A part of a label: an action with values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The action.
    pub action: ActionRef,
    /// Its arguments.
    pub arguments: Vec<TermRef>,
}

/// A table of shared things.
#[derive(Clone, Debug)]
struct Table<T> {
    all: Vec<T>,
    numbers: AHashMap<T, u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: AHashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn intern(&mut self, it: T) -> u32 {
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(it.clone()).or_insert(next);
        if number == next {
            self.all.push(it);
        }
        number
    }
}

/// Declarations of data and actions, and what the parts of labels are.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    sorts: Table<Sort>,
    terms: Table<Term>,
    actions: Table<Action>,
    parts: AHashMap<String, Part>,
    /// Declared sorts that are no structured sorts.
    pub declared: Vec<SortRef>,
    /// Names of sorts, with the sorts that they stand for: structured ones too.
    pub aliases: Vec<(SortRef, SortRef)>,
    /// Constructors of declared sorts.
    pub constructors: Vec<TermRef>,
    /// Mappings.
    pub mappings: Vec<TermRef>,
    /// Equations, in order.
    pub equations: Vec<Equation>,
}

impl Typed {
    /// The number of a sort.
    pub fn sort(&mut self, sort: Sort) -> SortRef {
        SortRef(self.sorts.intern(sort))
    }
    /// The number of a term.
    pub fn term(&mut self, term: Term) -> TermRef {
        TermRef(self.terms.intern(term))
    }
    /// The number of an action; it is declared if it was not.
    pub fn action(&mut self, action: Action) -> ActionRef {
        ActionRef(self.actions.intern(action))
    }
    /// Notes what a part of labels is. The first to tell of a text is heard.
    pub fn note(&mut self, text: &str, part: impl FnOnce(&mut Self) -> Part) {
        if !self.parts.contains_key(text) {
            let part = part(self);
            self.parts.insert(text.into(), part);
        }
    }
    /// Whether it is known what a part of labels is.
    pub fn knows(&self, text: &str) -> bool {
        self.parts.contains_key(text)
    }
    /// What a label is; none if that is not known of one of its parts.
    pub fn label(&self, text: &str) -> Option<Vec<&Part>> {
        match text {
            "" | "tau" => Some(Vec::new()),
            _ => parts(text).into_iter().map(|p| self.parts.get(p)).collect(),
        }
    }
    /// A label of a system of which it is not known what it is.
    pub fn unknown<'l>(&self, lts: &'l Lts) -> Option<&'l str> {
        // The first label is tau, whatever its text.
        lts.table.texts.iter().skip(1).find(|t| self.label(t).is_none()).map(String::as_str)
    }
    /// Also notes parts with other names, as `new` gives them: the text and the name, and none
    /// where a part stays.
    pub(crate) fn rename(&mut self, new: impl Fn(&str) -> Option<(String, String)>) {
        let renamed: Vec<(String, String, Part)> = self
            .parts
            .iter()
            .filter_map(|(text, part)| new(text).map(|(text, name)| (text, name, part.clone())))
            .collect();
        for (text, name, part) in renamed {
            let Action { sorts, .. } = self.actions.all[part.action.index()].clone();
            // A label that is renamed as a whole may lose its arguments.
            let (sorts, arguments) =
                if text == name { (Vec::new(), Vec::new()) } else { (sorts, part.arguments) };
            let action = self.action(Action { name, sorts });
            self.note(&text, |_| Part { action, arguments });
        }
    }

    pub(crate) fn all_sorts(&self) -> &[Sort] {
        &self.sorts.all
    }
    pub(crate) fn all_terms(&self) -> &[Term] {
        &self.terms.all
    }
    pub(crate) fn all_actions(&self) -> &[Action] {
        &self.actions.all
    }
}
