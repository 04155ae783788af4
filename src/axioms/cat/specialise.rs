//! Specialisation of a compiled model to a skeleton: what is empty in all of its executions.
//!
//! A general model such as that of the Linux kernel defines locks, RCU, SRCU, and data races. Most
//! programs use few of them, so that most nodes are empty in every execution of a skeleton. After
//! stage 0 is computed, this module propagates emptiness through the operations. It replaces unions
//! with an empty side by the other side. It then determines the stages of nodes anew, because a
//! node that depends on `co` only through an empty part belongs to an earlier stage, and plans the
//! remaining steps. A choice of the model (`with x from s`) with a single alternative becomes a
//! constant.
//!
//! Invariant: the value of each node that a check reads is the same as without specialisation. A
//! fixpoint is empty if its body is empty for empty variables, since it is computed from there.
//!
//! Cost: linear in the size of the model for each skeleton.

use mu_base::Diagnostic;
use mu_base::narrow;

use super::CatModel;
use super::ast::TestRole;
use super::plan::{PlanStep, root};
use super::program::{CatNodeId, CatOp, CatType};
use super::run::ModelRun;
use crate::execution::RelationId;

/// A model folded for a skeleton.
#[derive(Debug, Default)]
pub(super) struct Special {
    /// For each node, the node that has its value.
    pub same: Vec<CatNodeId>,
    /// True for a node that is empty in all executions.
    pub empty: Vec<bool>,
    /// The steps of the axioms, by stage.
    pub axioms: Vec<Vec<PlanStep>>,
    /// The steps of the flags, by stage.
    pub flags: Vec<Vec<PlanStep>>,
    /// The stage of each check; 0 if all executions agree on it.
    pub check_stage: Vec<u8>,
    /// True for a choice with a single alternative.
    pub fixed: Vec<bool>,
    /// True if a flag depends on a choice of the model.
    pub chosen_flags: bool,
    /// The stage of each node.
    stage: Vec<u8>,
}

impl Special {
    /// Restores the general model.
    pub(super) fn reset(&mut self, model: &CatModel) {
        let program = &model.program;
        let n = program.nodes.len();
        self.same.clear();
        self.same.extend(CatNodeId::all(n));
        self.empty.clear();
        self.empty.resize(n, false);
        self.axioms.clone_from(&model.plan.axioms);
        self.flags.clone_from(&model.plan.flags);
        self.check_stage.clear();
        self.check_stage.extend(program.checks.iter().map(|c| c.stage));
        self.fixed.clear();
        self.fixed.resize(program.choices.len(), false);
        self.chosen_flags = true;
        self.stage.clear();
        self.stage.extend(program.nodes.iter().map(|node| node.stage));
    }
    fn node_facts(&self, node_id: CatNodeId) -> (CatNodeId, bool, u8) {
        let same = self.same[node_id.index()];
        (same, self.empty[same.index()], self.stage[same.index()])
    }
}

/// The form of a node after folding.
enum FoldedNode {
    /// It is empty.
    Empty,
    /// It has the value of another node.
    Same(CatNodeId),
    /// It is computed in this stage.
    Computed(u8),
}

/// Folds a node, given the folded forms of its inputs.
fn folded_form(
    op: CatOp,
    kind: CatType,
    known: &dyn Fn(CatNodeId) -> (CatNodeId, bool, u8),
) -> FoldedNode {
    let inputs = || op.inputs().map(|i| known(i).2).max().unwrap_or(0);
    match op {
        CatOp::Nothing => FoldedNode::Empty,
        CatOp::Union(a, b) => {
            let ((a, no_a, _), (b, no_b, _)) = (known(a), known(b));
            match (no_a, no_b) {
                (true, true) => FoldedNode::Empty,
                (true, false) => FoldedNode::Same(b),
                (false, true) => FoldedNode::Same(a),
                _ if a == b => FoldedNode::Same(a),
                _ => FoldedNode::Computed(inputs()),
            }
        }
        CatOp::Intersection(a, b)
        | CatOp::Compose(a, b)
        | CatOp::Product(a, b)
        | CatOp::From(a, b)
        | CatOp::To(a, b) => {
            if known(a).1 || known(b).1 {
                FoldedNode::Empty
            } else {
                FoldedNode::Computed(inputs())
            }
        }
        CatOp::Difference(a, b) => {
            let ((a, no_a, _), (_, no_b, _)) = (known(a), known(b));
            match (no_a, no_b) {
                (true, _) => FoldedNode::Empty,
                (false, true) => FoldedNode::Same(a),
                _ => FoldedNode::Computed(inputs()),
            }
        }
        CatOp::Identity(a)
        | CatOp::Plus(a)
        | CatOp::Inverse(a)
        | CatOp::Domain(a)
        | CatOp::Range(a)
        | CatOp::DifferentValues(a)
            if known(a).1 =>
        {
            FoldedNode::Empty
        }
        CatOp::DifferentValues(_) => FoldedNode::Computed(inputs().max(1)),
        CatOp::AsSet(a) | CatOp::AsRelation(a) | CatOp::AsPairs(a) if kind != CatType::Value => {
            FoldedNode::Computed(known(a).2)
        }
        _ => FoldedNode::Computed(inputs()),
    }
}

/// Folds the model of a run after its stage 0.
///
/// # Errors
///
/// Those of the model's functions.
pub(super) fn fold(run: &mut ModelRun<'_, '_>) -> Result<(), Diagnostic> {
    let model = run.model();
    let program = &model.program;
    if program.choices.iter().any(|c| c.all) {
        return Ok(());
    }
    // The nodes of stage 0 that only flags need.
    for &step in &model.plan.flags[0] {
        if !matches!(step, PlanStep::Check(_)) {
            run.step(step)?;
        }
    }
    let mut decided = vec![None; program.groups.len()];
    for &node_id in &model.plan.live {
        let node = &program.nodes[node_id.index()];
        if node.groups == 0 && node.stage == 0 {
            let empty = run.is_empty(node_id);
            run.special_mut().empty[node_id.index()] = empty;
            continue;
        }
        let special = run.special();
        let form = match node.op {
            CatOp::GivenRelation(_) | CatOp::GivenSet(_) | CatOp::Variable(..) => {
                FoldedNode::Computed(node.stage)
            }
            CatOp::Fixpoint(g, _) => {
                let g = g as usize;
                let empty = *decided[g].get_or_insert_with(|| empty_group(model, special, g));
                let results = program.groups[g].results.iter();
                let stage = results.map(|r| special.node_facts(*r).2).max().unwrap_or(0);
                if empty { FoldedNode::Empty } else { FoldedNode::Computed(stage) }
            }
            CatOp::Interpret(i) => {
                let inputs = program.interpreted[i as usize].inputs.iter();
                FoldedNode::Computed(inputs.map(|r| special.node_facts(*r).2).max().unwrap_or(0))
            }
            CatOp::Element(k) => {
                let from = program.choices[k as usize].from;
                let fixed = special.node_facts(from).2 == 0 && run.fix(from, node_id);
                run.special_mut().fixed[k as usize] = fixed;
                FoldedNode::Computed(if fixed { 0 } else { node.stage })
            }
            op => folded_form(op, node.kind, &|s| special.node_facts(s)),
        };
        match form {
            FoldedNode::Empty => {
                run.clear(node_id);
                let special = run.special_mut();
                (special.empty[node_id.index()], special.stage[node_id.index()]) = (true, 0);
            }
            FoldedNode::Same(other) => run.special_mut().same[node_id.index()] = other,
            FoldedNode::Computed(stage) => {
                run.special_mut().stage[node_id.index()] = stage;
                if stage == 0 && node.groups == 0 {
                    match node.op {
                        CatOp::Element(_) => {}
                        CatOp::Fixpoint(g, _) => {
                            run.step(PlanStep::Group(g))?;
                            run.step(PlanStep::Node(node_id))?;
                        }
                        _ => run.step(PlanStep::Node(node_id))?,
                    }
                    let empty = run.is_empty(node_id);
                    run.special_mut().empty[node_id.index()] = empty;
                }
            }
        }
    }
    for check in plan(model, run.special_mut()) {
        run.demand_constant(check);
    }
    Ok(())
}

/// True if a group is empty: its results are empty for empty variables.
fn empty_group(model: &CatModel, special: &Special, g: usize) -> bool {
    let group = &model.program.groups[g];
    let mut empty: std::collections::HashMap<CatNodeId, bool> = std::collections::HashMap::new();
    for &node_id in &group.body {
        let node = &model.program.nodes[node_id.index()];
        let is = match node.op {
            CatOp::Variable(owner, _) if owner as usize == g => true,
            _ if special.node_facts(node_id).1 => true,
            CatOp::Fixpoint(..) | CatOp::Variable(..) => false,
            op => {
                let known = |s: CatNodeId| {
                    let (same, none, stage) = special.node_facts(s);
                    (same, none || empty.get(&s) == Some(&true), stage)
                };
                match folded_form(op, node.kind, &known) {
                    FoldedNode::Empty => true,
                    FoldedNode::Same(other) => known(other).1,
                    FoldedNode::Computed(_) => false,
                }
            }
        };
        empty.insert(node_id, is);
    }
    group.variables.iter().chain(&group.results).all(|r| {
        matches!(model.program.nodes[r.index()].op, CatOp::Variable(..))
            || empty.get(r).copied().unwrap_or_else(|| special.node_facts(*r).1)
    })
}

/// Plans the steps of the folded model. Returns the axioms of later stages that became constant.
fn plan(model: &CatModel, special: &mut Special) -> Vec<usize> {
    let mut constant = Vec::new();
    let program = &model.program;
    let stages = special.axioms.len();
    let must = |role: TestRole| matches!(role, TestRole::Axiom | TestRole::Assert);
    for list in special.axioms.iter_mut().chain(&mut special.flags) {
        list.clear();
    }
    let mut done = vec![false; program.nodes.len()];
    let mut axioms = vec![Vec::new(); stages];
    let mut flags = vec![Vec::new(); stages];
    special.chosen_flags = false;
    let (of_axioms, of_flags): (Vec<usize>, Vec<usize>) =
        (0..program.checks.len()).partition(|i| must(program.checks[*i].role));
    for i in of_axioms {
        plan_check(model, special, i, &mut done, &mut axioms);
        if special.check_stage[i] == 0 && program.checks[i].stage > 0 {
            constant.push(i);
        }
    }
    for (k, choice) in program.choices.iter().enumerate() {
        if !special.fixed[k] {
            need(model, special, choice.from, &mut done, &mut axioms);
        }
    }
    // Flags come last: the nodes that they share with axioms and choices are computed by then.
    for i in of_flags {
        plan_check(model, special, i, &mut done, &mut flags);
        special.chosen_flags |= special.check_stage[i] > 2;
    }
    special.axioms = axioms;
    special.flags = flags;
    constant
}

/// Determines the stage of a check, and adds its steps unless all executions agree on it.
fn plan_check(
    model: &CatModel,
    special: &mut Special,
    i: usize,
    done: &mut [bool],
    lists: &mut [Vec<PlanStep>],
) {
    let property = model.program.checks[i].property;
    let node_id = root(property);
    let mut stage = special.node_facts(node_id).2;
    if property == super::program::Property::CoherenceIn(node_id) {
        stage = stage.max(2);
    }
    special.check_stage[i] = stage;
    if stage > 0 {
        need(model, special, node_id, done, lists);
        lists[stage as usize].push(PlanStep::Check(narrow::index(i)));
    }
}

/// Adds the steps that compute a node, in the stages of the nodes.
fn need(
    model: &CatModel,
    special: &Special,
    node_id: CatNodeId,
    done: &mut [bool],
    lists: &mut [Vec<PlanStep>],
) {
    let program = &model.program;
    let mut todo = vec![(node_id, false)];
    while let Some((node_id, ready)) = todo.pop() {
        let (node_id, empty, stage) = special.node_facts(node_id);
        let node = &program.nodes[node_id.index()];
        if empty || stage == 0 && node.groups == 0 {
            continue;
        }
        if ready {
            match node.op {
                CatOp::Element(_) | CatOp::Variable(..) => {}
                _ if node.groups != 0 => {}
                CatOp::GivenRelation(RelationId::RF | RelationId::CO | RelationId::FR) => {}
                CatOp::Fixpoint(g, _) => {
                    if !lists.iter().any(|l| l.contains(&PlanStep::Group(g))) {
                        lists[stage as usize].push(PlanStep::Group(g));
                    }
                    lists[stage as usize].push(PlanStep::Node(node_id));
                }
                _ => lists[stage as usize].push(PlanStep::Node(node_id)),
            }
            continue;
        }
        if std::mem::replace(&mut done[node_id.index()], true) {
            continue;
        }
        todo.push((node_id, true));
        todo.extend(node.op.inputs().map(|i| (i, false)));
        match node.op {
            CatOp::Fixpoint(g, _) => {
                todo.extend(program.groups[g as usize].results.iter().map(|r| (*r, false)));
            }
            CatOp::Interpret(i) => {
                todo.extend(program.interpreted[i as usize].inputs.iter().map(|r| (*r, false)));
            }
            CatOp::Element(k) => todo.push((program.choices[k as usize].from, false)),
            _ => {}
        }
    }
}
