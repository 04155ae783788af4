//! Static analysis of a model: it detects whether the model implies coherence.
//!
//! If a model implies coherence, a front end drops incoherent choices of `rf` and `co` before
//! evaluating the model. The analysis of the axioms is sound: it never answers yes for a model that
//! allows incoherent executions, but may answer no for a model that does not.

use super::CatModel;
use super::ast::{TestKind, TestRole};
use super::program::{AxiomCheck, CatNodeId, CatOp, Property};
use crate::execution::RelationId;

/// The stage of the first choice of a model.
const FIRST_CHOICE: usize = 3;

impl CatModel {
    /// True if every execution that the model allows is sequentially consistent at each location:
    /// `po-loc | rf | co | fr` is acyclic (Alglave, Maranget, Tautschnig 2014, their first axiom).
    ///
    /// This is so if an axiom states it for this union or a larger one, or if an axiom forbids
    /// cycles of program order followed by communication.
    pub fn is_coherent(&self) -> bool {
        self.program.checks.iter().any(|c| match c.property {
            _ if c.role != TestRole::Axiom || c.negated || self.is_in_forall(c) => false,
            Property::Test(TestKind::Acyclic, node_id) => {
                self.has_program_order(node_id) && self.has_communication(node_id)
            }
            Property::Test(TestKind::Irreflexive, node_id) => {
                match self.program.nodes[node_id.index()].op {
                    // `hb ; eco?` with program order in `hb` and closed communication in `eco`.
                    CatOp::Compose(a, b) => {
                        let CatOp::Optional(b) = self.program.nodes[b.index()].op else {
                            return false;
                        };
                        let closed = |s: CatNodeId| match self.program.nodes[s.index()].op {
                            CatOp::Plus(inner) => Some(inner),
                            _ => None,
                        };
                        self.has_program_order(closed(a).unwrap_or(a))
                            && closed(b).is_some_and(|b| self.has_communication(b))
                    }
                    _ => false,
                }
            }
            _ => false,
        })
    }
    /// True if a check is evaluated for each element of a set, which may have none.
    fn is_in_forall(&self, check: &AxiomCheck) -> bool {
        let Some(of) = usize::from(check.stage).checked_sub(FIRST_CHOICE) else { return false };
        let choices = self.program.choices.iter().enumerate();
        choices.filter(|(_, c)| c.all).any(|(first, c)| (first..c.end).contains(&of))
    }
    /// Returns the names of the flags of `undefined_unless`.
    pub fn undefined_flags(&self) -> Vec<&str> {
        let flags = self.program.checks.iter().filter(|c| c.role == TestRole::UndefinedUnless);
        flags.map(|c| c.name.as_str()).collect()
    }
    fn parts(&self, node_id: CatNodeId) -> Vec<CatOp> {
        let mut parts = Vec::new();
        self.program.parts(node_id, &mut parts);
        parts.into_iter().map(|p| self.program.nodes[p.index()].op).collect()
    }
    fn has_program_order(&self, node_id: CatNodeId) -> bool {
        let po = CatOp::GivenRelation(RelationId::PO);
        let loc = CatOp::GivenRelation(RelationId::LOC);
        let is = |s: CatNodeId, op: CatOp| self.program.nodes[s.index()].op == op;
        self.parts(node_id).into_iter().any(|op| match op {
            CatOp::Intersection(a, b) => is(a, po) && is(b, loc) || is(a, loc) && is(b, po),
            op => op == po,
        })
    }
    fn has_communication(&self, node_id: CatNodeId) -> bool {
        // `fr` from the front end, or `rf^-1; co`, possibly in a union.
        let from_reads = |op: CatOp| match op {
            CatOp::Compose(a, b) => {
                matches!(self.program.nodes[a.index()].op, CatOp::Inverse(r) if self.contains(r, RelationId::RF))
                    && self.contains(b, RelationId::CO)
            }
            op => op == CatOp::GivenRelation(RelationId::FR),
        };
        self.contains(node_id, RelationId::RF)
            && self.contains(node_id, RelationId::CO)
            && self.parts(node_id).into_iter().any(from_reads)
    }
    /// True if a node contains a given relation, by its form: a union or a closure of it.
    /// `lock.cat` of the Linux kernel extends `rf` and `co` in this way.
    fn contains(&self, node_id: CatNodeId, id: RelationId) -> bool {
        let mut todo = vec![node_id];
        while let Some(at) = todo.pop() {
            match self.program.nodes[at.index()].op {
                op if op == CatOp::GivenRelation(id) => return true,
                CatOp::Union(a, b) => todo.extend([a, b]),
                CatOp::Plus(a) | CatOp::Star(a) | CatOp::Optional(a) => todo.push(a),
                _ => {}
            }
        }
        false
    }
}
