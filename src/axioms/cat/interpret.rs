//! Interpreter for expressions that are not sets and relations of events: sets of relations,
//! matches on sets, recursive functions.
//!
//! The herd tools' library uses these to enumerate coherence orders and the like. Interpretation is
//! slow compared with the compiled part. Its steps are counted, so that a model that does not
//! terminate is an error.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use mu_base::{Diagnostic, Span, Stage};

use super::ast::{
    Binary, BindingPattern, Exp, ExpressionKind, IfCondition, LetBinding, SetClause, UnaryOperator,
};
use super::program::CatNodeId;
use super::value::{CatValue, Env, Primitive};
use crate::execution::{NameMeaning, SetId, Skeleton, Vocabulary};
use crate::relation::{Relation, Set};

/// Limit on the steps of one expression; beyond it the evaluation is an error.
const MAX_STEPS: u64 = 20_000_000;
/// Limit on the depth of function calls; beyond it the evaluation is an error.
const MAX_DEPTH: u32 = 20_000;
/// Limit on the number of listed orders of a set; beyond it the evaluation is an error.
const MAX_ORDERS: usize = 1_000_000;

/// A value during evaluation.
#[derive(Clone, Debug)]
pub enum Data {
    /// A set of events.
    Set(Rc<Set>),
    /// A relation.
    Relation(Rc<Relation>),
    /// The empty set of anything.
    Empty,
    /// An event.
    Event(usize),
    /// A pair of events.
    Pair(usize, usize),
    /// A tuple.
    Tuple(Rc<Vec<Data>>),
    /// A set of other values, without duplicates.
    Many(Rc<Vec<Data>>),
    /// The total orders on a set, or on its part at each location, that extend a relation.
    Orders {
        /// The ordered events.
        set: Rc<Set>,
        /// The relation that the orders extend.
        extends: Rc<Relation>,
        /// True if each location is ordered separately.
        by_location: bool,
    },
    /// A function created by the interpreter.
    Function(Rc<CatFunction>),
    /// A value of the compiler: a function or tag.
    Known(CatValue),
}

/// A function created by the interpreter.
#[derive(Debug)]
pub struct CatFunction {
    pattern: BindingPattern,
    body: Arc<Exp>,
    names: BoundNames,
    group: Option<Rc<Vec<(String, BindingPattern, Arc<Exp>)>>>,
}

/// Names bound by the interpreter, then those bound by the compiler.
#[derive(Clone, Debug)]
pub struct BoundNames {
    own: Option<Rc<OwnName>>,
    base: Env,
}

#[derive(Debug)]
struct OwnName {
    name: String,
    value: Data,
    next: Option<Rc<OwnName>>,
}

impl BoundNames {
    fn with(&self, name: &str, value: Data) -> BoundNames {
        BoundNames {
            own: Some(Rc::new(OwnName { name: name.to_string(), value, next: self.own.clone() })),
            base: self.base.clone(),
        }
    }
    fn find(&self, name: &str) -> Option<&Data> {
        let mut at = &self.own;
        while let Some(link) = at {
            if link.name == name {
                return Some(&link.value);
            }
            at = &link.next;
        }
        None
    }
}

/// Access to the values of nodes.
pub trait Nodes {
    /// Returns the value of a node.
    fn data_of(&self, node_id: CatNodeId) -> Data;
    /// Returns the value of a name of the vocabulary.
    fn vocabulary_value(&self, name: NameMeaning) -> Data;
}

/// The interpreter.
pub struct Interpreter<'a> {
    /// The nodes.
    pub nodes: &'a dyn Nodes,
    /// The names that the compiler did not bind.
    pub vocabulary: &'a Vocabulary,
    /// The variants of the run.
    pub variants: &'a [String],
    /// The events.
    pub skeleton: &'a Skeleton,
    steps: Cell<u64>,
    depth: Cell<u32>,
}

type Answer<T = Data> = Result<T, Diagnostic>;

fn wrong<T>(span: Span, message: impl Into<String>) -> Answer<T> {
    Err(Diagnostic::at(Stage::Type, span, message))
}

impl Data {
    fn describe(&self) -> &'static str {
        match self {
            Data::Set(_) => "a set of events",
            Data::Relation(_) => "a relation",
            Data::Empty => "the empty set",
            Data::Event(_) => "an event",
            Data::Pair(..) => "a pair of events",
            Data::Tuple(_) => "a tuple",
            Data::Many(_) | Data::Orders { .. } => "a set of sets",
            Data::Function(_) | Data::Known(CatValue::Closure(_) | CatValue::Primitive(_)) => {
                "a function"
            }
            Data::Known(_) => "a tag",
        }
    }
    /// True if two values are equal; functions are never equal.
    pub fn equals(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::Set(a), Data::Set(b)) => a == b,
            (Data::Relation(a), Data::Relation(b)) => a == b,
            (Data::Empty, Data::Empty) => true,
            (Data::Empty, b) | (b, Data::Empty) => match b {
                Data::Set(s) => s.is_empty(),
                Data::Relation(r) => r.is_empty(),
                Data::Many(m) => m.is_empty(),
                _ => false,
            },
            (Data::Event(a), Data::Event(b)) => a == b,
            (Data::Pair(a, b), Data::Pair(c, d)) => (a, b) == (c, d),
            (Data::Tuple(a), Data::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| x.equals(y))
            }
            (Data::Many(a), Data::Many(b)) => {
                a.len() == b.len() && a.iter().all(|x| b.iter().any(|y| x.equals(y)))
            }
            (Data::Known(CatValue::Tag(a)), Data::Known(CatValue::Tag(b))) => a == b,
            _ => false,
        }
    }
    /// Converts the value to a set of events, if it is one.
    pub fn into_set(self, n: usize, span: Span) -> Answer<Rc<Set>> {
        match self {
            Data::Set(s) => Ok(s),
            Data::Empty => Ok(Rc::new(Set::empty(n))),
            Data::Event(e) => Ok(Rc::new(Set::from_events(n, [e]))),
            other => wrong(span, format!("this is {}: expected a set of events", other.describe())),
        }
    }
    /// Converts the value to a relation, if it is one.
    pub fn into_relation(self, n: usize, span: Span) -> Answer<Rc<Relation>> {
        match self {
            Data::Relation(r) => Ok(r),
            Data::Empty => Ok(Rc::new(Relation::empty(n))),
            Data::Pair(a, b) => Ok(Rc::new(Relation::from_pairs(n, [(a, b)]))),
            other => wrong(span, format!("this is {}: expected a relation", other.describe())),
        }
    }
}

/// Splits a set by location.
pub fn by_location(skeleton: &Skeleton, set: &Set) -> Vec<Set> {
    let mut by: std::collections::BTreeMap<u32, Set> = std::collections::BTreeMap::new();
    for e in set.iter() {
        if let Some(l) = skeleton.events()[e].location {
            by.entry(l).or_insert_with(|| Set::empty(skeleton.len())).insert(e);
        }
    }
    by.into_values().collect()
}

/// Returns the transitive closure of a relation. An order on a set extends the closure, so that
/// paths through events outside the set count as well.
pub fn transitive_closure(relation: &Relation) -> Rc<Relation> {
    let mut closed = relation.clone();
    closed.close_transitively();
    Rc::new(closed)
}

/// Calls `visit` with each of the orders of `Data::Orders` until it returns true. Returns true if
/// it did. `extends` is transitively closed (`closed`).
pub fn each_order(
    parts: &[Set],
    extends: &Relation,
    order: &mut Relation,
    visit: &mut dyn FnMut(&Relation) -> bool,
) -> bool {
    let Some((part, rest)) = parts.split_first() else { return visit(order) };
    // A restriction of a transitive relation to a set is transitive.
    let mut inside = extends.clone();
    inside.restrict_domain(part);
    inside.restrict_range(part);
    inside.linear_extensions(part, &mut |list| {
        for (i, &a) in list.iter().enumerate() {
            list[i + 1..].iter().for_each(|&b| order.insert(a, b));
        }
        let found = each_order(rest, extends, order, visit);
        for (i, &a) in list.iter().enumerate() {
            list[i + 1..].iter().for_each(|&b| order.remove(a, b));
        }
        found
    })
}

/// True if a relation is one of the orders of [`Data::Orders`].
pub fn is_order(parts: &[Set], extends: &Relation, order: &Relation) -> bool {
    let n = order.universe();
    let mut allowed = Relation::empty(n);
    for part in parts {
        let list: Vec<usize> = part.iter().collect();
        for (i, &a) in list.iter().enumerate() {
            if order.contains(a, a) || extends.contains(a, a) {
                return false;
            }
            for &b in &list[i + 1..] {
                if order.contains(a, b) == order.contains(b, a)
                    || extends.contains(a, b) && !order.contains(a, b)
                    || extends.contains(b, a) && !order.contains(b, a)
                {
                    return false;
                }
            }
        }
        let mut square = Relation::empty(n);
        square.product(part, part);
        allowed.unite(&square);
    }
    order.is_subset(&allowed) && order.is_acyclic()
}

impl<'a> Interpreter<'a> {
    /// Creates an interpreter.
    pub fn new(
        nodes: &'a dyn Nodes,
        vocabulary: &'a Vocabulary,
        variants: &'a [String],
        skeleton: &'a Skeleton,
    ) -> Self {
        Self { nodes, vocabulary, variants, skeleton, steps: Cell::new(0), depth: Cell::new(0) }
    }
    /// Evaluates an expression in an environment of the compiler.
    pub fn run(&self, exp: &Arc<Exp>, base: &Env) -> Answer {
        self.exp(exp, &BoundNames { own: None, base: base.clone() })
    }
    fn n(&self) -> usize {
        self.skeleton.len()
    }
    /// Lists the elements of a set.
    pub fn elements(&self, data: Data, span: Span) -> Answer<Vec<Data>> {
        Ok(match data {
            Data::Empty => Vec::new(),
            Data::Set(s) => s.iter().map(Data::Event).collect(),
            Data::Relation(r) => r.pairs().map(|(a, b)| Data::Pair(a, b)).collect(),
            Data::Many(m) => m.to_vec(),
            Data::Orders { set, extends, by_location: apart } => {
                let parts =
                    if apart { by_location(self.skeleton, &set) } else { vec![(*set).clone()] };
                let mut out = Vec::new();
                let full = each_order(&parts, &extends, &mut Relation::empty(self.n()), &mut |r| {
                    out.push(Data::Relation(Rc::new(r.clone())));
                    out.len() > MAX_ORDERS
                });
                if full {
                    return Err(Diagnostic::at(
                        Stage::Limit,
                        span,
                        format!("more than {MAX_ORDERS} total orders"),
                    ));
                }
                out
            }
            other => return wrong(span, format!("this is {}: expected a set", other.describe())),
        })
    }
    fn exp(&self, exp: &Arc<Exp>, names: &BoundNames) -> Answer {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAX_STEPS {
            return Err(Diagnostic::at(
                Stage::Limit,
                exp.span,
                format!("this takes more than {MAX_STEPS} steps"),
            ));
        }
        if self.depth.get() > MAX_DEPTH {
            return Err(Diagnostic::at(
                Stage::Limit,
                exp.span,
                format!("functions call each other more than {MAX_DEPTH} deep here"),
            ));
        }
        self.depth.set(self.depth.get() + 1);
        let out = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.exp_node(exp, names));
        self.depth.set(self.depth.get() - 1);
        out
    }
    fn exp_node(&self, exp: &Arc<Exp>, names: &BoundNames) -> Answer {
        match &exp.node {
            ExpressionKind::Empty => Ok(Data::Empty),
            ExpressionKind::Universe => {
                Ok(Data::Set(Rc::new(self.skeleton.set(SetId::ALL).clone())))
            }
            ExpressionKind::Name(name) => self.name(name, exp.span, names),
            ExpressionKind::Tag(tag) => Ok(Data::Known(CatValue::Tag(tag.clone()))),
            ExpressionKind::Braces(parts) => {
                let mut out = Data::Empty;
                for p in parts {
                    out = self.add(self.exp(p, names)?, out, p.span)?;
                }
                Ok(out)
            }
            ExpressionKind::Unary(op, of) => self.unary(*op, self.exp(of, names)?, of.span),
            ExpressionKind::Binary(op, a, b) => {
                self.binary(*op, (self.exp(a, names)?, a.span), (self.exp(b, names)?, b.span))
            }
            ExpressionKind::Tuple(parts) => {
                let parts: Answer<Vec<Data>> = parts.iter().map(|p| self.exp(p, names)).collect();
                Ok(Data::Tuple(Rc::new(parts?)))
            }
            ExpressionKind::Apply(f, argument) => self.apply(
                exp.span,
                self.exp(f, names)?,
                self.exp(argument, names)?,
                f.span,
                argument.span,
            ),
            ExpressionKind::Let(recursive, bindings, body) => {
                let names = self.bindings(*recursive, bindings, names)?;
                self.exp(body, &names)
            }
            ExpressionKind::Fun(pattern, body) => {
                let f = CatFunction {
                    pattern: pattern.clone(),
                    body: body.clone(),
                    names: names.clone(),
                    group: None,
                };
                Ok(Data::Function(Rc::new(f)))
            }
            ExpressionKind::Try(first, second) => {
                let known = |n: &str| {
                    !matches!(
                        self.name(n, first.span, names),
                        Err(_) | Ok(Data::Known(CatValue::Unknown(_)))
                    )
                };
                let mut free = BTreeSet::new();
                super::expression::free(first, &known, &mut Vec::new(), &mut free);
                self.exp(if free.iter().all(|n| known(n)) { first } else { second }, names)
            }
            ExpressionKind::If(c, yes, no) => {
                self.exp(if self.condition(c, names)? { yes } else { no }, names)
            }
            ExpressionKind::MatchTag(of, clauses, other) => {
                let Data::Known(CatValue::Tag(tag)) = self.exp(of, names)? else {
                    return wrong(of.span, "expected a tag");
                };
                match clauses.iter().find(|c| c.0.text == tag).map(|c| &c.1).or(other.as_ref()) {
                    Some(e) => self.exp(e, names),
                    None => wrong(exp.span, format!("no clause for the tag `'{tag}`")),
                }
            }
            ExpressionKind::MatchSet(of, empty, clause) => {
                self.match_set(self.exp(of, names)?, of.span, empty, clause, names)
            }
        }
    }
    fn match_set(
        &self,
        set: Data,
        span: Span,
        empty: &Arc<Exp>,
        clause: &SetClause,
        names: &BoundNames,
    ) -> Answer {
        if clause.before.is_some() {
            return Err(Diagnostic::at(
                Stage::Unsupported,
                span,
                "a clause `p | x ++ s` is not supported",
            ));
        }
        let split = match set {
            Data::Empty => None,
            Data::Set(s) => s.first().map(|e| {
                let mut rest = (*s).clone();
                rest.remove(e);
                (Data::Event(e), Data::Set(Rc::new(rest)))
            }),
            Data::Relation(r) => {
                let first = r.pairs().next();
                first.map(|(a, b)| {
                    let mut rest = (*r).clone();
                    rest.remove(a, b);
                    (Data::Pair(a, b), Data::Relation(Rc::new(rest)))
                })
            }
            Data::Many(m) => {
                m.split_first().map(|(e, rest)| (e.clone(), Data::Many(Rc::new(rest.to_vec()))))
            }
            orders @ Data::Orders { .. } => {
                let all = self.elements(orders, span)?;
                all.split_first().map(|(e, rest)| (e.clone(), Data::Many(Rc::new(rest.to_vec()))))
            }
            other => return wrong(span, format!("this is {}: expected a set", other.describe())),
        };
        let Some((element, rest)) = split else { return self.exp(empty, names) };
        let mut inner = names.clone();
        if let Some(n) = &clause.element {
            inner = inner.with(n, element);
        }
        if let Some(n) = &clause.rest {
            inner = inner.with(n, rest);
        }
        self.exp(&clause.body, &inner)
    }
    fn data_of_value(&self, value: &CatValue) -> Data {
        match value {
            CatValue::Node(s) => self.nodes.data_of(*s),
            CatValue::Empty => Data::Empty,
            CatValue::Tuple(parts) => {
                Data::Tuple(Rc::new(parts.iter().map(|p| self.data_of_value(p)).collect()))
            }
            CatValue::List(parts) => {
                Data::Many(Rc::new(parts.iter().map(|p| self.data_of_value(p)).collect()))
            }
            CatValue::Tags(tags) => Data::Many(Rc::new(
                tags.iter().map(|t| Data::Known(CatValue::Tag(t.clone()))).collect(),
            )),
            other => Data::Known(other.clone()),
        }
    }
    fn name(&self, name: &str, span: Span, names: &BoundNames) -> Answer {
        if let Some(data) = names.find(name) {
            return Ok(data.clone());
        }
        if let Some(value) = names.base.find(name) {
            return Ok(self.data_of_value(value));
        }
        if let Some(given) = self.vocabulary.find(name) {
            return Ok(self.nodes.vocabulary_value(given));
        }
        match Primitive::by_name(name) {
            Some(p) => Ok(Data::Known(CatValue::Primitive(p))),
            None => wrong(span, format!("unknown name `{name}`")),
        }
    }
    fn unary(&self, op: UnaryOperator, of: Data, span: Span) -> Answer {
        let n = self.n();
        if op == UnaryOperator::Identity {
            let mut r = Relation::empty(n);
            r.identity_on(&*of.into_set(n, span)?);
            return Ok(Data::Relation(Rc::new(r)));
        }
        // Events that are hidden are in no complement.
        let all = self.skeleton.set(SetId::ALL);
        if let (UnaryOperator::Complement, Data::Set(s)) = (op, &of) {
            let mut rest = all.clone();
            rest.subtract(s);
            return Ok(Data::Set(Rc::new(rest)));
        }
        let r = of.into_relation(n, span)?;
        let mut out = (*r).clone();
        match op {
            UnaryOperator::Complement => {
                out.complement();
                out.restrict_domain(all);
                out.restrict_range(all);
            }
            UnaryOperator::Plus => out.close_transitively(),
            UnaryOperator::Star => {
                out.close_transitively();
                out.close_reflexively();
            }
            UnaryOperator::Optional => out.close_reflexively(),
            _ => out.invert(&r),
        }
        Ok(Data::Relation(Rc::new(out)))
    }
    fn binary(&self, op: Binary, (a, sa): (Data, Span), (b, sb): (Data, Span)) -> Answer {
        let n = self.n();
        match op {
            Binary::Add => return self.add(a, b, sb),
            Binary::Sequence => {
                let mut r = Relation::empty(n);
                r.compose(&*a.into_relation(n, sa)?, &*b.into_relation(n, sb)?);
                return Ok(Data::Relation(Rc::new(r)));
            }
            Binary::Product => {
                let mut r = Relation::empty(n);
                r.product(&*a.into_set(n, sa)?, &*b.into_set(n, sb)?);
                return Ok(Data::Relation(Rc::new(r)));
            }
            _ => {}
        }
        match (&a, &b) {
            (Data::Empty, Data::Empty) => Ok(Data::Empty),
            (Data::Relation(_) | Data::Pair(..), _) | (_, Data::Relation(_) | Data::Pair(..)) => {
                let (mut x, y) = ((*a.into_relation(n, sa)?).clone(), b.into_relation(n, sb)?);
                match op {
                    Binary::Union => x.unite(&y),
                    Binary::Intersection => x.intersect(&y),
                    _ => x.subtract(&y),
                }
                Ok(Data::Relation(Rc::new(x)))
            }
            (Data::Set(_) | Data::Event(_), _) | (_, Data::Set(_) | Data::Event(_)) => {
                let (mut x, y) = ((*a.into_set(n, sa)?).clone(), b.into_set(n, sb)?);
                match op {
                    Binary::Union => x.unite(&y),
                    Binary::Intersection => x.intersect(&y),
                    _ => x.subtract(&y),
                }
                Ok(Data::Set(Rc::new(x)))
            }
            _ => {
                let (x, y) = (self.elements(a, sa)?, self.elements(b, sb)?);
                let in_y = |d: &Data| y.iter().any(|e| e.equals(d));
                let out: Vec<Data> = match op {
                    Binary::Union => {
                        let new: Vec<Data> =
                            y.iter().filter(|d| !x.iter().any(|e| e.equals(d))).cloned().collect();
                        x.into_iter().chain(new).collect()
                    }
                    Binary::Intersection => x.into_iter().filter(in_y).collect(),
                    _ => x.into_iter().filter(|d| !in_y(d)).collect(),
                };
                Ok(Data::Many(Rc::new(out)))
            }
        }
    }
    /// Computes `element ++ set`.
    fn add(&self, element: Data, set: Data, span: Span) -> Answer {
        let n = self.n();
        match element {
            Data::Event(e) => {
                let mut s = (*set.into_set(n, span)?).clone();
                s.insert(e);
                Ok(Data::Set(Rc::new(s)))
            }
            Data::Pair(a, b) => {
                let mut r = (*set.into_relation(n, span)?).clone();
                r.insert(a, b);
                Ok(Data::Relation(Rc::new(r)))
            }
            _ => {
                if matches!(set, Data::Set(_) | Data::Relation(_)) {
                    return wrong(
                        span,
                        format!("{} is not an element of {}", element.describe(), set.describe()),
                    );
                }
                let mut all = self.elements(set, span)?;
                if !all.iter().any(|e| e.equals(&element)) {
                    all.push(element);
                }
                Ok(Data::Many(Rc::new(all)))
            }
        }
    }
    fn bind(
        names: &BoundNames,
        pattern: &BindingPattern,
        value: Data,
        span: Span,
    ) -> Answer<BoundNames> {
        match (pattern, value) {
            (BindingPattern::One(None), _) => Ok(names.clone()),
            (BindingPattern::One(Some(name)), v) => Ok(names.with(name, v)),
            (BindingPattern::Tuple(ns), Data::Tuple(parts)) if ns.len() == parts.len() => {
                Ok(ns.iter().zip(parts.iter()).fold(names.clone(), |out, (n, v)| match n {
                    Some(n) => out.with(n, v.clone()),
                    None => out,
                }))
            }
            (BindingPattern::Tuple(ns), other) => wrong(
                span,
                format!("this is {}: expected a tuple of {}", other.describe(), ns.len()),
            ),
        }
    }
    fn apply(&self, call: Span, f: Data, argument: Data, at_f: Span, at_argument: Span) -> Answer {
        match f {
            Data::Function(f) => {
                let mut names = f.names.clone();
                if let Some(group) = &f.group {
                    for (name, pattern, body) in group.iter() {
                        let again = CatFunction {
                            pattern: pattern.clone(),
                            body: body.clone(),
                            names: f.names.clone(),
                            group: f.group.clone(),
                        };
                        names = names.with(name, Data::Function(Rc::new(again)));
                    }
                }
                let names = Self::bind(&names, &f.pattern, argument, at_argument)?;
                self.exp(&f.body, &names)
            }
            Data::Known(CatValue::Closure(c)) => {
                let base = match &c.group {
                    Some(group) => c.env.with_group(group),
                    None => c.env.clone(),
                };
                let names =
                    Self::bind(&BoundNames { own: None, base }, &c.pattern, argument, at_argument)?;
                self.exp(&c.body, &names)
            }
            Data::Known(CatValue::Primitive(p)) => self.primitive(p, argument, call),
            other => wrong(at_f, format!("this is {}: expected a function", other.describe())),
        }
    }
    fn primitive(&self, p: Primitive, argument: Data, span: Span) -> Answer {
        let n = self.n();
        match p {
            Primitive::Domain | Primitive::Range => {
                let r = argument.into_relation(n, span)?;
                let mut s = Set::empty(n);
                if p == Primitive::Domain {
                    s.domain_of(&r)
                } else {
                    s.range_of(&r)
                }
                Ok(Data::Set(Rc::new(s)))
            }
            Primitive::Linearisations | Primitive::GenerateOrders => match argument {
                Data::Tuple(parts) if parts.len() == 2 => {
                    let set = parts[0].clone().into_set(n, span)?;
                    let given = parts[1].clone().into_relation(n, span)?;
                    let extends = transitive_closure(&given);
                    Ok(Data::Orders { set, extends, by_location: p == Primitive::GenerateOrders })
                }
                other => {
                    wrong(span, format!("this is {}: expected a pair `(s, r)`", other.describe()))
                }
            },
            Primitive::ClassesLoc => {
                let set = argument.into_set(n, span)?;
                Ok(Data::Many(Rc::new(
                    by_location(self.skeleton, &set)
                        .into_iter()
                        .map(|s| Data::Set(Rc::new(s)))
                        .collect(),
                )))
            }
            Primitive::Classes => {
                let r = argument.into_relation(n, span)?;
                let mut out: Vec<Data> = Vec::new();
                let mut done = Set::empty(n);
                for a in 0..n {
                    let class = Set::from_events(n, r.successors(a));
                    if !class.is_empty() && !done.contains(a) {
                        done.unite(&class);
                        out.push(Data::Set(Rc::new(class)));
                    }
                }
                Ok(Data::Many(Rc::new(out)))
            }
            Primitive::TagToEvents | Primitive::PageTables | Primitive::DifferentValues => {
                Err(Diagnostic::at(
                    Stage::Unsupported,
                    span,
                    "this function inside a recursive function is not supported",
                ))
            }
        }
    }
    fn condition(&self, c: &IfCondition, names: &BoundNames) -> Answer<bool> {
        Ok(match c {
            IfCondition::Variant(v) => self.variants.contains(v),
            IfCondition::Not(a) => !self.condition(a, names)?,
            IfCondition::And(a, b) => self.condition(a, names)? && self.condition(b, names)?,
            IfCondition::Or(a, b) => self.condition(a, names)? || self.condition(b, names)?,
            IfCondition::Equal(a, b) => self.exp(a, names)?.equals(&self.exp(b, names)?),
            IfCondition::Subset(a, b) => {
                let (x, y) = (
                    self.elements(self.exp(a, names)?, a.span)?,
                    self.elements(self.exp(b, names)?, b.span)?,
                );
                x.iter().all(|d| y.iter().any(|e| e.equals(d)))
            }
            IfCondition::In(a, b) => {
                let (x, y) = (self.exp(a, names)?, self.elements(self.exp(b, names)?, b.span)?);
                y.iter().any(|e| e.equals(&x))
            }
        })
    }
    fn bindings(
        &self,
        recursive: bool,
        bindings: &[LetBinding],
        names: &BoundNames,
    ) -> Answer<BoundNames> {
        let mut out = names.clone();
        if !recursive {
            for b in bindings {
                out = Self::bind(&out, &b.pattern, self.exp(&b.value, names)?, b.span)?;
            }
            return Ok(out);
        }
        let functions: Option<Vec<_>> = (bindings.iter())
            .map(|b| match (&b.pattern, &b.value.node) {
                (BindingPattern::One(Some(name)), ExpressionKind::Fun(pattern, body)) => {
                    Some((name.text.clone(), pattern.clone(), body.clone()))
                }
                _ => None,
            })
            .collect();
        if let Some(group) = functions {
            let group = Rc::new(group);
            for (name, pattern, body) in group.iter() {
                let f = CatFunction {
                    pattern: pattern.clone(),
                    body: body.clone(),
                    names: names.clone(),
                    group: Some(group.clone()),
                };
                out = out.with(name, Data::Function(Rc::new(f)));
            }
            return Ok(out);
        }
        // Sets and relations: iterate from the empty set to the fixpoint.
        let mut values = vec![Data::Empty; bindings.len()];
        for _ in 0..self.n() * self.n() * bindings.len() + 2 {
            let mut inner = names.clone();
            for (b, v) in bindings.iter().zip(&values) {
                inner = Self::bind(&inner, &b.pattern, v.clone(), b.span)?;
            }
            // Each value uses the new values of those before it.
            let mut next = Vec::with_capacity(bindings.len());
            for b in bindings {
                let value = self.exp(&b.value, &inner)?;
                inner = Self::bind(&inner, &b.pattern, value.clone(), b.span)?;
                next.push(value);
            }
            if next.iter().zip(&values).all(|(a, b)| a.equals(b)) {
                return Ok(inner);
            }
            values = next;
        }
        wrong(bindings[0].span, "this `let rec` has no fixed point: its values grow and shrink")
    }
}
