//! Typed data of labels, for files that contain typed terms: sorts, operations, equations, actions,
//! parts of labels.
//!
//! A front end fills in a [`TypedDeclarations`]; a writer stores it with the transitions. The
//! semantics of operations is unknown here: operations are names at sorts. A label's text is split
//! into the parts of its multi-action ([`super::relabel::parts`]). Each part has its action and its
//! arguments as terms, so that the typed form is found by text after hiding, renaming and
//! reduction.
//!
//! Cost: sorts and terms are shared, each is stored once. Invariant: the parts of a sort or term
//! have smaller numbers than it.

use super::Lts;
use super::relabel::parts;
use ahash::AHashMap;
use mu_base::label_time;
use mu_base::narrow;
use num_bigint::BigInt;
use std::hash::Hash;

mod check;

/// Number of a sort.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SortRef(u32);

/// Number of a term.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TermRef(u32);

/// Number of an action.
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

/// Constructor of a structured sort.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Constructor {
    /// Name.
    pub name: String,
    /// Sorts of its arguments, with the names of their projections.
    pub arguments: Vec<(Option<String>, SortRef)>,
    /// Name of the recogniser.
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
    /// An integer at a sort that contains it.
    Number(BigInt, NumberSort),
    /// An application to at least one argument.
    Apply(TermRef, Vec<TermRef>),
    /// A binder with its variables.
    Bind(Binder, Vec<TermRef>, TermRef),
    /// A term with definitions of variables.
    Where(TermRef, Vec<(TermRef, TermRef)>),
}

/// Conditional equation `condition -> left = right`.
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

/// Action: its name and the sorts of its arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Action {
    /// The name.
    pub name: String,
    /// The sorts.
    pub sorts: Vec<SortRef>,
}

/// Part of a label: an action with values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypedPart {
    /// The action.
    pub action: ActionRef,
    /// Its arguments.
    pub arguments: Vec<TermRef>,
}

/// Interning table.
#[derive(Clone, Debug)]
struct InternTable<T> {
    all: Vec<T>,
    numbers: AHashMap<T, u32>,
}

impl<T> Default for InternTable<T> {
    fn default() -> Self {
        Self { all: Vec::new(), numbers: AHashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> InternTable<T> {
    fn intern(&mut self, it: T) -> u32 {
        let next = narrow::index(self.all.len());
        let number = *self.numbers.entry(it.clone()).or_insert(next);
        if number == next {
            self.all.push(it);
        }
        number
    }
}

/// Declarations of data and actions, and the typed parts of labels.
#[derive(Clone, Debug, Default)]
pub struct TypedDeclarations {
    sorts: InternTable<Sort>,
    terms: InternTable<Term>,
    actions: InternTable<Action>,
    parts: AHashMap<String, TypedPart>,
    /// By text: the times of labels.
    times: AHashMap<String, TermRef>,
    /// Declared sorts other than structured sorts.
    pub declared: Vec<SortRef>,
    /// Names of sorts with the sorts that they denote, structured ones included.
    pub aliases: Vec<(SortRef, SortRef)>,
    /// Constructors of declared sorts.
    pub constructors: Vec<TermRef>,
    /// Mappings.
    pub mappings: Vec<TermRef>,
    /// Equations, in order.
    pub equations: Vec<Equation>,
}

impl TypedDeclarations {
    /// Returns the number of a sort.
    pub fn sort(&mut self, sort: Sort) -> SortRef {
        SortRef(self.sorts.intern(sort))
    }
    /// Returns the number of a term.
    pub fn term(&mut self, term: Term) -> TermRef {
        TermRef(self.terms.intern(term))
    }
    /// Returns the number of an action, declaring it if it is new.
    pub fn action(&mut self, action: Action) -> ActionRef {
        ActionRef(self.actions.intern(action))
    }
    /// Records the typed form of a part of labels; the first record for a text counts.
    pub fn note(&mut self, text: &str, part: impl FnOnce(&mut Self) -> TypedPart) {
        if !self.parts.contains_key(text) {
            let part = part(self);
            self.parts.insert(text.into(), part);
        }
    }
    /// Records the typed form of a time of labels.
    pub fn note_time(&mut self, text: &str, value: TermRef) {
        self.times.insert(text.into(), value);
    }
    /// True if the part of a label has a typed form.
    pub fn knows(&self, text: &str) -> bool {
        self.parts.contains_key(text)
    }
    /// Returns the typed form of a label, its parts and its time; `None` if a part or the time has
    /// none.
    pub fn label(&self, text: &str) -> Option<(Vec<&TypedPart>, Option<TermRef>)> {
        let (actions, time) = label_time::split(text);
        let time = match time {
            Some(time) => Some(*self.times.get(time)?),
            None => None,
        };
        let parts = match actions {
            "" | "tau" => Vec::new(),
            _ => parts(actions)
                .into_iter()
                .map(|p| self.parts.get(p))
                .collect::<Option<Vec<&TypedPart>>>()?,
        };
        Some((parts, time))
    }
    /// Returns a label of a system without typed form; `None` if all have one.
    pub fn untyped_label<'l>(&self, lts: &'l Lts) -> Option<&'l str> {
        // The first label is tau, independent of its text.
        lts.table.texts.iter().skip(1).find(|t| self.label(t).is_none()).map(String::as_str)
    }
    /// Records parts under other names as well: `new` gives text and name, and `None` for a part
    /// without change.
    pub(crate) fn rename(&mut self, new: impl Fn(&str) -> Option<(String, String)>) {
        let renamed: Vec<(String, String, TypedPart)> = self
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
            self.note(&text, |_| TypedPart { action, arguments });
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
