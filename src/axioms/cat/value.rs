//! What expressions mean while a model is compiled: nodes, functions, tuples, tags; and the names
//! that are in scope.

use std::collections::BTreeSet;
use std::sync::Arc;

use mu_base::Diagnostic;

use super::ast::{Exp, Ins, Pattern};
use super::program::Slot;

/// A function of the language itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Primitive {
    /// `domain r`.
    Domain,
    /// `range r`.
    Range,
    /// `linearisations(s, r)`.
    Linearisations,
    /// `generate_orders(s, r)` of `cross.cat`: the orders on a set, location by location.
    GenerateOrders,
    /// `classes-loc s`: the parts of a set by location.
    ClassesLoc,
    /// `classes r`: the classes of an equivalence.
    Classes,
    /// `tag2events('t)`.
    TagToEvents,
    /// `same-oa r`, `oa-changes(s, r)`, `at-least-one-writable(s, r)`: what page tables say. Only
    /// of nothing.
    PageTables,
    /// `different-values r`: pairs of events with different values.
    DifferentValues,
}

impl Primitive {
    /// All with their names.
    pub const ALL: &'static [(&'static str, Primitive)] = &[
        ("domain", Primitive::Domain),
        ("range", Primitive::Range),
        ("linearisations", Primitive::Linearisations),
        ("classes-loc", Primitive::ClassesLoc),
        ("classes", Primitive::Classes),
        ("tag2events", Primitive::TagToEvents),
        ("tag2set", Primitive::TagToEvents),
        ("tag2instrs", Primitive::TagToEvents),
        ("same-oa", Primitive::PageTables),
        ("oa-changes", Primitive::PageTables),
        ("at-least-one-writable", Primitive::PageTables),
        ("different-values", Primitive::DifferentValues),
    ];
    /// The primitive of a name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|p| p.0 == name).map(|p| p.1)
    }
}

/// A function of the model.
#[derive(Debug)]
pub struct Closure {
    /// What it takes.
    pub pattern: Pattern,
    /// What it gives.
    pub body: Arc<Exp>,
    /// The names that it sees.
    pub env: Env,
    /// The functions of its `let rec`, itself among them; none if it is not recursive.
    pub group: Option<Arc<Vec<(String, Pattern, Arc<Exp>)>>>,
}

/// A procedure of the model.
#[derive(Debug)]
pub struct Procedure {
    /// What it takes.
    pub pattern: Pattern,
    /// What it does.
    pub body: Arc<Vec<Ins>>,
    /// The names that it sees.
    pub env: Env,
}

/// A meaning.
#[derive(Clone, Debug)]
pub enum Value {
    /// A node: a set, a relation, or something for the interpreter.
    Node(Slot),
    /// `0` or `{}`: the empty set of anything.
    Empty,
    /// A tuple.
    Tuple(Arc<Vec<Value>>),
    /// A set of meanings that are all known: `{a, b}`.
    List(Arc<Vec<Value>>),
    /// A function.
    Closure(Arc<Closure>),
    /// A function of the language.
    Primitive(Primitive),
    /// A procedure.
    Procedure(Arc<Procedure>),
    /// A tag.
    Tag(String),
    /// A set of tags.
    Tags(Arc<BTreeSet<String>>),
    /// Another name for one that is not known: an error where it is used.
    Unknown(Arc<Diagnostic>),
}

/// Names with their meanings, the last one first. Cheap to copy and to extend.
#[derive(Clone, Debug, Default)]
pub struct Env(Option<Arc<Link>>);

#[derive(Debug)]
struct Link {
    name: String,
    value: Value,
    next: Env,
}

impl Env {
    /// With one more name.
    #[must_use]
    pub fn with(&self, name: &str, value: Value) -> Env {
        Env(Some(Arc::new(Link { name: name.to_string(), value, next: self.clone() })))
    }
    /// The meaning of a name.
    pub fn find(&self, name: &str) -> Option<&Value> {
        let mut at = self;
        while let Some(link) = &at.0 {
            if link.name == name {
                return Some(&link.value);
            }
            at = &link.next;
        }
        None
    }
    /// Tells lists of names apart: equal for copies of one.
    pub fn key(&self) -> usize {
        self.0.as_ref().map_or(0, |link| Arc::as_ptr(link) as usize)
    }
    /// All names with their meanings, the last one first; names that are hidden as well.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        let mut at = self;
        std::iter::from_fn(move || {
            let link = at.0.as_ref()?;
            at = &link.next;
            Some((link.name.as_str(), &link.value))
        })
    }
    /// With the functions of a recursive closure.
    #[must_use]
    pub fn with_group(&self, group: &Arc<Vec<(String, Pattern, Arc<Exp>)>>) -> Env {
        group.iter().fold(self.clone(), |env, (name, pattern, body)| {
            let closure = Closure {
                pattern: pattern.clone(),
                body: body.clone(),
                env: self.clone(),
                group: Some(group.clone()),
            };
            env.with(name, Value::Closure(Arc::new(closure)))
        })
    }
}

/// A list of names may be long; it is dropped link by link, not by recursion.
impl Drop for Env {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(link) = next {
            match Arc::try_unwrap(link) {
                Ok(mut link) => next = link.next.0.take(),
                Err(_) => break,
            }
        }
    }
}
