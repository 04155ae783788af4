//! Values during compilation of a model: nodes, functions, tuples, tags; and the environments of
//! names in scope.

use std::collections::BTreeSet;
use std::sync::Arc;

use mu_base::Diagnostic;

use super::ast::{BindingPattern, Exp, Ins};
use super::program::CatNodeId;

/// A built-in function of the language.
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
    /// `same-oa r`, `oa-changes(s, r)`, `at-least-one-writable(s, r)`: predicates on page tables;
    /// supported only for empty arguments.
    PageTables,
    /// `different-values r`: pairs of events with different values.
    DifferentValues,
}

impl Primitive {
    /// All built-in functions with their names.
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
    /// Looks up a built-in function by name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|p| p.0 == name).map(|p| p.1)
    }
}

/// A function of the model.
#[derive(Debug)]
pub struct Closure {
    /// Its parameters.
    pub pattern: BindingPattern,
    /// Its body.
    pub body: Arc<Exp>,
    /// Its environment.
    pub env: Env,
    /// The functions of its `let rec`, including itself; `None` if it is not recursive.
    pub group: Option<Arc<Vec<(String, BindingPattern, Arc<Exp>)>>>,
}

/// A procedure of the model.
#[derive(Debug)]
pub struct Procedure {
    /// Its parameters.
    pub pattern: BindingPattern,
    /// Its body.
    pub body: Arc<Vec<Ins>>,
    /// Its environment.
    pub env: Env,
}

/// A value that is known at compile time.
#[derive(Clone, Debug)]
pub enum CatValue {
    /// A node: a set, a relation, or something for the interpreter.
    Node(CatNodeId),
    /// `0` or `{}`: the empty set of anything.
    Empty,
    /// A tuple.
    Tuple(Arc<Vec<CatValue>>),
    /// A set of known values: `{a, b}`.
    List(Arc<Vec<CatValue>>),
    /// A function.
    Closure(Arc<Closure>),
    /// A built-in function.
    Primitive(Primitive),
    /// A procedure.
    Procedure(Arc<Procedure>),
    /// A tag.
    Tag(String),
    /// A set of tags.
    Tags(Arc<BTreeSet<String>>),
    /// An alias of an unknown name; an error only if it is used.
    Unknown(Arc<Diagnostic>),
}

/// An environment: names with their values, the last one first. Cloning and extension are cheap.
#[derive(Clone, Debug, Default)]
pub struct Env(Option<Arc<Link>>);

#[derive(Debug)]
struct Link {
    name: String,
    value: CatValue,
    next: Env,
}

impl Env {
    /// Extends the environment by one name.
    #[must_use]
    pub fn with(&self, name: &str, value: CatValue) -> Env {
        Env(Some(Arc::new(Link { name: name.to_string(), value, next: self.clone() })))
    }
    /// Looks up a name; `None` if it is not bound.
    pub fn find(&self, name: &str) -> Option<&CatValue> {
        let mut at = self;
        while let Some(link) = &at.0 {
            if link.name == name {
                return Some(&link.value);
            }
            at = &link.next;
        }
        None
    }
    /// Returns a key that identifies the environment; equal for clones.
    pub fn key(&self) -> usize {
        self.0.as_ref().map_or(0, |link| Arc::as_ptr(link) as usize)
    }
    /// Iterates over all names with their values, the last one first, including shadowed names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &CatValue)> {
        let mut at = self;
        std::iter::from_fn(move || {
            let link = at.0.as_ref()?;
            at = &link.next;
            Some((link.name.as_str(), &link.value))
        })
    }
    /// Extends the environment by the functions of a recursive closure.
    #[must_use]
    pub fn with_group(&self, group: &Arc<Vec<(String, BindingPattern, Arc<Exp>)>>) -> Env {
        group.iter().fold(self.clone(), |env, (name, pattern, body)| {
            let closure = Closure {
                pattern: pattern.clone(),
                body: body.clone(),
                env: self.clone(),
                group: Some(group.clone()),
            };
            env.with(name, CatValue::Closure(Arc::new(closure)))
        })
    }
}

/// A long environment is dropped iteratively, because recursion could overflow the stack.
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
