//! Monotone lower bounds of a model, for executions of which a part is known.
//!
//! A search chooses `rf` and `co` pair by pair. If the lower bound forbids some pairs of them, the
//! model forbids every execution that has these pairs.
//!
//! A node is *exact* if it depends on the skeleton alone. Every other node is monotone in `rf`,
//! `co`, and `fr`, or it becomes empty: complements, differences with a second part that is not
//! exact, final writes, and values of the interpreter. Only axioms about cycles, self-loops, and
//! emptiness remain. Soundness follows by induction over the nodes: a node's value on a part of an
//! execution is a subset of its value on the whole. Cost: linear in the model.

use super::CatModel;
use super::ast::{TestKind, TestRole};
use super::plan::EvaluationPlan;
use super::program::{CatNodeId, CatOp, CatProgram, CatType, Property};
use crate::execution::{RelationId, SetId};

impl CatModel {
    /// Returns the model with monotone lower bounds of its axioms only. [`super::ModelRun::admits`]
    /// evaluates it on parts of executions.
    #[must_use]
    pub fn lower_bound(&self) -> CatModel {
        let mut core = self.clone();
        let program = &mut core.program;
        // A `forall` over parts of the skeleton is a conjunction; other choices are dropped.
        let choices = program.choices.iter();
        let keeps = choices.clone().all(|c| c.all && program.nodes[c.from.index()].stage == 0);
        let exact = exact_nodes(program, keeps);
        let unknown_value = |program: &CatProgram, s: CatNodeId| {
            program.kind(s) == CatType::Value && !exact[s.index()]
        };
        for i in (0..program.nodes.len()).filter(|&i| !exact[i]) {
            let op = program.nodes[i].op;
            let is_monotone = match op {
                CatOp::Complement(_)
                | CatOp::Interpret(_)
                | CatOp::Element(_)
                | CatOp::Orders(..)
                | CatOp::Linearisations(..)
                | CatOp::GivenSet(SetId::FINAL) => false,
                CatOp::Difference(_, b) => exact[b.index()],
                _ => true,
            };
            let opaque = program.nodes[i].kind == CatType::Value
                || op.inputs().any(|s| unknown_value(program, s));
            if !is_monotone || opaque {
                program.nodes[i].op = CatOp::Nothing;
            }
        }
        if !keeps {
            program.choices.clear();
        }
        let last = 2 + program.choices.len();
        program.checks.retain(|c| {
            let positive = matches!(
                c.property,
                Property::Test(TestKind::Acyclic | TestKind::Irreflexive | TestKind::Empty, _)
            );
            c.role == TestRole::Axiom && !c.negated && usize::from(c.stage) <= last && positive
        });
        core.plan = EvaluationPlan::of(program);
        core
    }
}

/// Returns for each node whether it depends on the skeleton alone. `elements`: true if the elements
/// of choices count as parts of the skeleton.
fn exact_nodes(program: &CatProgram, elements: bool) -> Vec<bool> {
    // Groups are assumed to be exact until one of their results is not.
    let mut groups = vec![true; program.groups.len()];
    loop {
        let mut exact = vec![false; program.nodes.len()];
        for (i, node) in program.nodes.iter().enumerate() {
            exact[i] = match node.op {
                CatOp::GivenSet(id) => id != SetId::FINAL,
                CatOp::GivenRelation(id) => {
                    ![RelationId::RF, RelationId::CO, RelationId::FR].contains(&id)
                }
                CatOp::Element(_) => elements,
                CatOp::Variable(group, _) | CatOp::Fixpoint(group, _) => groups[group as usize],
                CatOp::Interpret(e) => {
                    program.interpreted[e as usize].inputs.iter().all(|s| exact[s.index()])
                }
                op => op.inputs().all(|s| exact[s.index()]),
            };
        }
        let mut changed = false;
        for (known, group) in groups.iter_mut().zip(&program.groups) {
            let is_exact = *known && group.results.iter().all(|r| exact[r.index()]);
            changed |= std::mem::replace(known, is_exact) != is_exact;
        }
        if !changed {
            return exact;
        }
    }
}
