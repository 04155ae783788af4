//! Evaluation order of a compiled model: for each stage, the nodes to compute and the checks to
//! evaluate.
//!
//! Only nodes that some check needs are computed, each directly before the first check that needs
//! it, so that an execution that an early axiom forbids costs little. Flags have their own plan,
//! because they are evaluated only for allowed executions.

use super::ast::TestRole;
use super::program::{CatNodeId, CatOp, CatProgram, Property};
use mu_base::narrow;

/// A step of the evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanStep {
    /// Compute a node.
    Node(CatNodeId),
    /// Repeat the body of a group up to its fixpoint.
    Group(u32),
    /// Evaluate a check.
    Check(u32),
}

/// The steps of each stage.
#[derive(Clone, Debug, Default)]
pub struct EvaluationPlan {
    /// For the axioms.
    pub axioms: Vec<Vec<PlanStep>>,
    /// For the flags, after the axioms of all stages.
    pub flags: Vec<Vec<PlanStep>>,
    /// The nodes that some check or choice needs, ascending.
    pub live: Vec<CatNodeId>,
}

/// Returns the nodes that the roots depend on, including the roots, ascending.
pub fn dependencies(
    program: &CatProgram,
    roots: impl IntoIterator<Item = CatNodeId>,
) -> Vec<CatNodeId> {
    let mut seen = vec![false; program.nodes.len()];
    let mut todo: Vec<CatNodeId> = roots.into_iter().collect();
    while let Some(at) = todo.pop() {
        if std::mem::replace(&mut seen[at.index()], true) {
            continue;
        }
        let op = program.nodes[at.index()].op;
        todo.extend(op.inputs());
        match op {
            CatOp::Fixpoint(g, _) => {
                let group = &program.groups[g as usize];
                todo.extend(group.results.iter().chain(&group.variables));
            }
            CatOp::Interpret(i) => todo.extend(&program.interpreted[i as usize].inputs),
            CatOp::Element(k) => todo.push(program.choices[k as usize].from),
            _ => {}
        }
    }
    CatNodeId::all(program.nodes.len()).filter(|s| seen[s.index()]).collect()
}

/// Appends the steps that compute the nodes of a list that are outside of groups and that `wanted`
/// accepts.
pub fn steps(
    program: &CatProgram,
    list: &[CatNodeId],
    mut wanted: impl FnMut(CatNodeId) -> bool,
    out: &mut Vec<PlanStep>,
) {
    for &node_id in list {
        let node = &program.nodes[node_id.index()];
        if node.groups != 0 || !wanted(node_id) {
            continue;
        }
        push(program, node_id, out);
    }
}
fn push(program: &CatProgram, node_id: CatNodeId, out: &mut Vec<PlanStep>) {
    match program.nodes[node_id.index()].op {
        CatOp::Fixpoint(g, _) => {
            if !out.contains(&PlanStep::Group(g)) {
                out.push(PlanStep::Group(g));
            }
            out.push(PlanStep::Node(node_id));
        }
        CatOp::Variable(..) | CatOp::Element(_) => {}
        _ => out.push(PlanStep::Node(node_id)),
    }
}

/// Returns the node that a check reads.
pub fn root(property: Property) -> CatNodeId {
    match property {
        Property::Test(_, node_id) | Property::CoherenceIn(node_id) => node_id,
    }
}

impl EvaluationPlan {
    /// Plans a program, and fills the bodies of its groups.
    pub fn of(program: &mut CatProgram) -> Self {
        let live = dependencies(
            program,
            program
                .checks
                .iter()
                .map(|c| root(c.property))
                .chain(program.choices.iter().map(|c| c.from)),
        );
        Self::bodies(program, &live);
        let stages = 3 + program.choices.len();
        let mut plan = EvaluationPlan {
            axioms: vec![Vec::new(); stages],
            flags: vec![Vec::new(); stages],
            live,
        };
        let mut done = vec![false; program.nodes.len()];
        let must = |role: TestRole| matches!(role, TestRole::Axiom | TestRole::Assert);
        for stage in 0..stages {
            let steps_out = &mut plan.axioms[stage];
            let mut take = |list: &[CatNodeId], out: &mut Vec<PlanStep>| {
                let wanted = |s: CatNodeId| {
                    program.nodes[s.index()].stage as usize == stage
                        && !std::mem::replace(&mut done[s.index()], true)
                };
                steps(program, list, wanted, out);
            };
            for (i, c) in program
                .checks
                .iter()
                .enumerate()
                .filter(|(_, c)| must(c.role) && c.stage as usize == stage)
            {
                take(&dependencies(program, [root(c.property)]), steps_out);
                steps_out.push(PlanStep::Check(narrow::index(i)));
            }
            // The nodes of this stage that later stages need.
            let later = program
                .checks
                .iter()
                .filter(|c| must(c.role) && c.stage as usize > stage)
                .map(|c| root(c.property));
            let later: Vec<CatNodeId> =
                later.chain(program.choices.iter().map(|c| c.from)).collect();
            take(&dependencies(program, later), steps_out);
        }
        for stage in 0..stages {
            for (i, c) in program.checks.iter().enumerate().filter(|(_, c)| !must(c.role)) {
                let list = dependencies(program, [root(c.property)]);
                let wanted = |s: CatNodeId| {
                    program.nodes[s.index()].stage as usize == stage
                        && !std::mem::replace(&mut done[s.index()], true)
                };
                steps(program, &list, wanted, &mut plan.flags[stage]);
                if c.stage as usize == stage {
                    plan.flags[stage].push(PlanStep::Check(narrow::index(i)));
                }
            }
        }
        plan
    }
    /// Distributes the nodes over the bodies: a node is in the innermost group that it depends on.
    fn bodies(program: &mut CatProgram, live: &[CatNodeId]) {
        for g in 0..program.groups.len() {
            let body: Vec<CatNodeId> = (live.iter().copied())
                .filter(|s| {
                    let groups = program.nodes[s.index()].groups;
                    groups != 0 && groups.ilog2() as usize == g
                })
                .collect();
            program.groups[g].body = body;
        }
    }
}
