//! Compiled models: nodes over bit matrices, each computed from earlier ones, and the checks that
//! read some of them.
//!
//! Nodes are hash-consed, so that equal expressions are computed once. A node has a *stage*, the
//! latest input that it depends on. Stage 0 is the skeleton, 1 is `rf`, 2 is `co`, 3 and above are
//! choices of the model itself (`with x from s`). Stages are evaluated one after the other
//! (`super::run`): when a front end tries the next coherence order, stages 0 and 1 are not
//! recomputed.
//!
//! `let rec` creates a *group*: variables that are initially empty, and a body that is repeated up
//! to the fixpoint. A node that does not depend on a group's variables is outside its body, even if
//! it is inside in the text.
//!
//! Peephole optimisations: `[s];r` and `r;[s]` become restrictions, as does `r & (s * t)`;
//! `let rec r = e | r;r` becomes `e+`.

use std::collections::HashMap;
use std::sync::Arc;

use mu_base::{Span, id_types, narrow};

use super::ast::{Exp, TestKind, TestRole};
use super::value::Env;
use crate::execution::{NameMeaning, RelationId, SetId};

id_types! {
    /// A node of a program, by its index.
    pub CatNodeId,
}

/// The type of a node's value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CatType {
    /// A set of events.
    Set,
    /// A relation.
    Relation,
    /// Any value of the interpreter, for instance a set of relations.
    Value,
}

/// The operation that computes a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CatOp {
    /// A set of the skeleton.
    GivenSet(SetId),
    /// A relation of the skeleton or of the choice.
    GivenRelation(RelationId),
    /// The empty set or relation.
    Nothing,
    /// Union of two nodes of one type.
    Union(CatNodeId, CatNodeId),
    /// Intersection of two nodes of one type.
    Intersection(CatNodeId, CatNodeId),
    /// Difference of two nodes of one type.
    Difference(CatNodeId, CatNodeId),
    /// Complement.
    Complement(CatNodeId),
    /// Composition of two relations.
    Compose(CatNodeId, CatNodeId),
    /// Product of two sets.
    Product(CatNodeId, CatNodeId),
    /// Identity on a set.
    Identity(CatNodeId),
    /// Pairs of a relation (second) that begin in a set (first).
    From(CatNodeId, CatNodeId),
    /// Pairs of a relation (first) that end in a set (second).
    To(CatNodeId, CatNodeId),
    /// Transitive closure.
    Plus(CatNodeId),
    /// Reflexive transitive closure.
    Star(CatNodeId),
    /// Union with the identity.
    Optional(CatNodeId),
    /// Inverse.
    Inverse(CatNodeId),
    /// Domain of a relation.
    Domain(CatNodeId),
    /// Range of a relation.
    Range(CatNodeId),
    /// The variable of a group.
    Variable(u32, u32),
    /// The fixpoint of a variable of a group.
    Fixpoint(u32, u32),
    /// The element that `with x from s` chooses, or over which `forall x in s` ranges.
    Element(u32),
    /// The set of all relations that are a strict total order on the events of a set at each
    /// location and extend a relation.
    Orders(CatNodeId, CatNodeId),
    /// The set of all strict total orders on a set that extend a relation.
    Linearisations(CatNodeId, CatNodeId),
    /// An expression for the interpreter.
    Interpret(u32),
    /// A value that must be a set of events.
    AsSet(CatNodeId),
    /// A value that must be a relation.
    AsRelation(CatNodeId),
    /// A value that must be a relation, or a set of events, which denotes its identity.
    AsPairs(CatNodeId),
    /// Pairs of a relation with different values.
    DifferentValues(CatNodeId),
    /// A set or relation that must be empty: arguments of tests about page tables and the like,
    /// which executions here do not have.
    OnlyEmpty(CatNodeId),
}

impl CatOp {
    /// Returns the nodes that it reads.
    pub fn inputs(self) -> impl Iterator<Item = CatNodeId> {
        use CatOp::*;
        let (a, b) = match self {
            Union(a, b)
            | Intersection(a, b)
            | Difference(a, b)
            | Compose(a, b)
            | Product(a, b)
            | From(a, b)
            | To(a, b)
            | Orders(a, b)
            | Linearisations(a, b) => (Some(a), Some(b)),
            Complement(a) | Identity(a) | Plus(a) | Star(a) | Optional(a) | Inverse(a)
            | Domain(a) | Range(a) | AsSet(a) | AsRelation(a) | AsPairs(a) | OnlyEmpty(a)
            | DifferentValues(a) => (Some(a), None),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }
}

/// A node.
#[derive(Clone, Debug)]
pub struct CatNode {
    /// The operation that computes it.
    pub op: CatOp,
    /// The type of its value.
    pub kind: CatType,
    /// The latest stage that it depends on.
    pub stage: u8,
    /// The groups with variables that it depends on, as bits.
    pub groups: u64,
}

/// A `let rec` of sets or relations.
#[derive(Clone, Debug, Default)]
pub struct RecursiveGroup {
    /// Its position.
    pub span: Span,
    /// Its variables.
    pub variables: Vec<CatNodeId>,
    /// The value of each variable after a round.
    pub results: Vec<CatNodeId>,
    /// The nodes that a round computes, in order; set by `plan`.
    pub body: Vec<CatNodeId>,
}

/// An expression that the interpreter evaluates.
#[derive(Clone, Debug)]
pub struct InterpretedExpression {
    /// The expression.
    pub exp: Arc<Exp>,
    /// Its environment.
    pub env: Env,
    /// The nodes that it may read.
    pub inputs: Vec<CatNodeId>,
}

/// `with x from s`, or `forall x in s` over a set that depends on the execution.
#[derive(Clone, Debug)]
pub struct ElementChoice {
    /// Its position.
    pub span: Span,
    /// The set to choose from.
    pub from: CatNodeId,
    /// The chosen element.
    pub element: CatNodeId,
    /// True for `forall`, false for `with`.
    pub all: bool,
    /// For a `forall`: the index after the last choice inside it.
    pub end: usize,
}

/// The condition of a check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// A test of a set or relation.
    Test(TestKind, CatNodeId),
    /// The given coherence order must be an element of a set of relations.
    CoherenceIn(CatNodeId),
}

/// A check.
#[derive(Clone, Debug)]
pub struct AxiomCheck {
    /// Its position.
    pub span: Span,
    /// The consequence.
    pub role: TestRole,
    /// True if the condition is negated.
    pub negated: bool,
    /// The condition.
    pub property: Property,
    /// Its name, or its text if it has none.
    pub name: String,
    /// The latest stage that it depends on.
    pub stage: u8,
}

/// A compiled model: nodes, groups, choices and checks.
#[derive(Clone, Debug, Default)]
pub struct CatProgram {
    /// The nodes; each reads earlier nodes and, for a fixpoint, its group.
    pub nodes: Vec<CatNode>,
    /// The groups.
    pub groups: Vec<RecursiveGroup>,
    /// The expressions for the interpreter.
    pub interpreted: Vec<InterpretedExpression>,
    /// The choices, in order.
    pub choices: Vec<ElementChoice>,
    /// The checks, in order.
    pub checks: Vec<AxiomCheck>,
    /// The first name that a `let` gave to a node.
    pub names: HashMap<CatNodeId, String>,
    known: HashMap<(CatOp, CatType), CatNodeId>,
}

impl CatProgram {
    /// Returns the node of an operation, creating it if necessary.
    pub fn node(&mut self, op: CatOp, kind: CatType) -> CatNodeId {
        if let Some(&node_id) = self.known.get(&(op, kind)) {
            return node_id;
        }
        let (mut stage, mut groups) = op.inputs().fold((0, 0), |(s, g), i| {
            let n = &self.nodes[i.index()];
            (s.max(n.stage), g | n.groups)
        });
        match op {
            CatOp::GivenRelation(RelationId::RF) => stage = 1,
            CatOp::GivenRelation(RelationId::CO | RelationId::FR)
            | CatOp::GivenSet(SetId::FINAL) => stage = 2,
            CatOp::Element(k) => stage = 3 + narrow::byte(k as usize),
            // Values are chosen with the sources of reads.
            CatOp::DifferentValues(_) => stage = stage.max(1),
            CatOp::Variable(group, _) => groups |= 1 << group,
            CatOp::Fixpoint(group, _) => {
                for r in &self.groups[group as usize].results {
                    let n = &self.nodes[r.index()];
                    stage = stage.max(n.stage);
                    groups |= n.groups;
                }
                groups &= !(1 << group);
            }
            CatOp::Interpret(i) => {
                for r in &self.interpreted[i as usize].inputs {
                    let n = &self.nodes[r.index()];
                    stage = stage.max(n.stage);
                    groups |= n.groups;
                }
            }
            _ => {}
        }
        let node_id = CatNodeId::new(self.nodes.len());
        self.nodes.push(CatNode { op, kind, stage, groups });
        self.known.insert((op, kind), node_id);
        node_id
    }
    /// Removes the nodes and groups from these indices on.
    pub fn truncate(&mut self, nodes: usize, groups: usize) {
        self.nodes.truncate(nodes);
        self.groups.truncate(groups);
        self.known.retain(|_, node_id| node_id.index() < nodes);
        self.names.retain(|node_id, _| node_id.index() < nodes);
    }
    /// Returns the type of a node's value.
    pub fn kind(&self, node_id: CatNodeId) -> CatType {
        self.nodes[node_id.index()].kind
    }
    fn op(&self, node_id: CatNodeId) -> CatOp {
        self.nodes[node_id.index()].op
    }
    /// Returns the node of a name of the vocabulary.
    pub fn vocabulary_node(&mut self, name: NameMeaning) -> CatNodeId {
        match name {
            NameMeaning::Set(id) => self.node(CatOp::GivenSet(id), CatType::Set),
            NameMeaning::Relation(id) => self.node(CatOp::GivenRelation(id), CatType::Relation),
        }
    }
    fn nothing(&mut self, kind: CatType) -> CatNodeId {
        self.node(CatOp::Nothing, kind)
    }
    fn is_nothing(&self, node_id: CatNodeId) -> bool {
        self.op(node_id) == CatOp::Nothing
    }
    /// Builds `a | b`.
    pub fn union(&mut self, a: CatNodeId, b: CatNodeId) -> CatNodeId {
        if a == b || self.is_nothing(b) {
            return a;
        }
        if self.is_nothing(a) {
            return b;
        }
        let kind = self.kind(a);
        self.node(CatOp::Union(a, b), kind)
    }
    /// Builds `a & b`.
    pub fn intersection(&mut self, a: CatNodeId, b: CatNodeId) -> CatNodeId {
        if a == b || self.is_nothing(a) {
            return a;
        }
        if self.is_nothing(b) {
            return b;
        }
        for (r, p) in [(a, b), (b, a)] {
            if let CatOp::Product(s, t) = self.op(p) {
                let from = self.node(CatOp::From(s, r), CatType::Relation);
                return self.node(CatOp::To(from, t), CatType::Relation);
            }
        }
        let kind = self.kind(a);
        let (a, b) = (a.min(b), a.max(b));
        self.node(CatOp::Intersection(a, b), kind)
    }
    /// Builds `a \ b`.
    pub fn difference(&mut self, a: CatNodeId, b: CatNodeId) -> CatNodeId {
        let kind = self.kind(a);
        if a == b {
            return self.nothing(kind);
        }
        if self.is_nothing(a) || self.is_nothing(b) {
            return a;
        }
        self.node(CatOp::Difference(a, b), kind)
    }
    /// Builds `~a`.
    pub fn complement(&mut self, a: CatNodeId) -> CatNodeId {
        let kind = self.kind(a);
        self.node(CatOp::Complement(a), kind)
    }
    /// Builds `a ; b` of relations.
    pub fn compose(&mut self, a: CatNodeId, b: CatNodeId) -> CatNodeId {
        if self.is_nothing(a) {
            return a;
        }
        if self.is_nothing(b) {
            return b;
        }
        match (self.op(a), self.op(b)) {
            (CatOp::Identity(s), CatOp::Identity(t)) => {
                let both = self.intersection(s, t);
                self.identity(both)
            }
            (CatOp::Identity(s), _) => self.node(CatOp::From(s, b), CatType::Relation),
            (_, CatOp::Identity(s)) => self.node(CatOp::To(a, s), CatType::Relation),
            _ => self.node(CatOp::Compose(a, b), CatType::Relation),
        }
    }
    /// Builds `a * b` of sets.
    pub fn product(&mut self, a: CatNodeId, b: CatNodeId) -> CatNodeId {
        if self.is_nothing(a) || self.is_nothing(b) {
            return self.nothing(CatType::Relation);
        }
        self.node(CatOp::Product(a, b), CatType::Relation)
    }
    /// Builds `[s]`.
    pub fn identity(&mut self, s: CatNodeId) -> CatNodeId {
        if self.is_nothing(s) {
            return self.nothing(CatType::Relation);
        }
        self.node(CatOp::Identity(s), CatType::Relation)
    }
    /// Builds `r+`.
    pub fn plus(&mut self, r: CatNodeId) -> CatNodeId {
        if self.is_nothing(r) || matches!(self.op(r), CatOp::Plus(_)) {
            return r;
        }
        self.node(CatOp::Plus(r), CatType::Relation)
    }
    /// Builds `r*`.
    pub fn star(&mut self, r: CatNodeId) -> CatNodeId {
        self.node(CatOp::Star(r), CatType::Relation)
    }
    /// Builds `r?`.
    pub fn optional(&mut self, r: CatNodeId) -> CatNodeId {
        self.node(CatOp::Optional(r), CatType::Relation)
    }
    /// Builds `r^-1`.
    pub fn inverse(&mut self, r: CatNodeId) -> CatNodeId {
        match self.op(r) {
            CatOp::Inverse(of) => of,
            CatOp::Nothing | CatOp::Identity(_) => r,
            _ => self.node(CatOp::Inverse(r), CatType::Relation),
        }
    }
    /// Builds `domain r` or `range r`.
    pub fn projection(&mut self, r: CatNodeId, range: bool) -> CatNodeId {
        if self.is_nothing(r) {
            return self.nothing(CatType::Set);
        }
        self.node(if range { CatOp::Range(r) } else { CatOp::Domain(r) }, CatType::Set)
    }
    /// Collects the parts of a union, left to right.
    pub fn parts(&self, node_id: CatNodeId, out: &mut Vec<CatNodeId>) {
        let mut todo = vec![node_id];
        while let Some(at) = todo.pop() {
            match self.op(at) {
                CatOp::Union(a, b) => todo.extend([b, a]),
                _ => out.push(at),
            }
        }
    }
    /// Returns the closure `e+` if a group with one variable `r` has the form `e | r;r` with `r`
    /// not in `e`.
    pub fn as_closure(&mut self, variable: CatNodeId, result: CatNodeId) -> Option<CatNodeId> {
        let CatOp::Variable(group, _) = self.op(variable) else { return None };
        let (mut parts, mut rest) = (Vec::new(), Vec::new());
        self.parts(result, &mut parts);
        let mut squared = false;
        for p in parts {
            match self.op(p) {
                CatOp::Compose(a, b) if a == variable && b == variable => squared = true,
                _ if self.nodes[p.index()].groups >> group & 1 == 0 => rest.push(p),
                _ => return None,
            }
        }
        if !squared || self.kind(variable) != CatType::Relation {
            return None;
        }
        let mut union = self.nothing(CatType::Relation);
        for p in rest {
            union = self.union(union, p);
        }
        Some(self.plus(union))
    }
}
