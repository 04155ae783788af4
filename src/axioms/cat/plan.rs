//! The order in which a compiled model is evaluated: for each stage, what to compute and when to
//! look at a check.
//!
//! Only nodes that some check needs are computed, each just before the first check that needs it,
//! so that an execution which an early axiom forbids costs little. Flags are planned apart: nobody
//! asks for the flags of a forbidden execution.

use super::ast::Role;
use super::program::{Asked, Op, Program, Slot};

/// One thing to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Compute a node.
    Node(Slot),
    /// Repeat the body of a group until nothing changes.
    Group(u32),
    /// Look at a check.
    Check(u32),
}

/// What to do at each stage.
#[derive(Debug, Default)]
pub struct Plan {
    /// For the axioms.
    pub axioms: Vec<Vec<Step>>,
    /// For the flags, after the axioms of all stages.
    pub flags: Vec<Vec<Step>>,
}

/// The nodes that some nodes need, themselves included, ascending.
pub fn needed(program: &Program, roots: impl IntoIterator<Item = Slot>) -> Vec<Slot> {
    let mut seen = vec![false; program.nodes.len()];
    let mut todo: Vec<Slot> = roots.into_iter().collect();
    while let Some(at) = todo.pop() {
        if std::mem::replace(&mut seen[at.index()], true) {
            continue;
        }
        let op = program.nodes[at.index()].op;
        todo.extend(op.inputs());
        match op {
            Op::Fixpoint(g, _) => {
                let group = &program.groups[g as usize];
                todo.extend(group.results.iter().chain(&group.variables));
            }
            Op::Interpret(i) => todo.extend(&program.interpreted[i as usize].inputs),
            Op::Element(k) => todo.push(program.choices[k as usize].from),
            _ => {}
        }
    }
    (0..program.nodes.len() as u32).map(Slot).filter(|s| seen[s.index()]).collect()
}

/// The steps that compute nodes, of those that a list has outside of groups and `wanted` lets
/// through.
pub fn steps(
    program: &Program,
    list: &[Slot],
    mut wanted: impl FnMut(Slot) -> bool,
    out: &mut Vec<Step>,
) {
    for &slot in list {
        let node = &program.nodes[slot.index()];
        if node.groups != 0 || !wanted(slot) {
            continue;
        }
        push(program, slot, out);
    }
}
fn push(program: &Program, slot: Slot, out: &mut Vec<Step>) {
    match program.nodes[slot.index()].op {
        Op::Fixpoint(g, _) => {
            if !out.contains(&Step::Group(g)) {
                out.push(Step::Group(g));
            }
            out.push(Step::Node(slot));
        }
        Op::Variable(..) | Op::Element(_) => {}
        _ => out.push(Step::Node(slot)),
    }
}

/// What a check looks at.
pub fn root(asked: Asked) -> Slot {
    match asked {
        Asked::Test(_, slot) | Asked::CoherenceIn(slot) => slot,
    }
}

impl Plan {
    /// Plans a program, and fills the bodies of its groups.
    pub fn of(program: &mut Program) -> Self {
        let live = needed(
            program,
            program
                .checks
                .iter()
                .map(|c| root(c.asked))
                .chain(program.choices.iter().map(|c| c.from)),
        );
        Self::bodies(program, &live);
        let stages = 3 + program.choices.len();
        let mut plan = Plan { axioms: vec![Vec::new(); stages], flags: vec![Vec::new(); stages] };
        let mut done = vec![false; program.nodes.len()];
        let must = |role: Role| matches!(role, Role::Axiom | Role::Assert);
        for stage in 0..stages {
            let steps_out = &mut plan.axioms[stage];
            let mut take = |list: &[Slot], out: &mut Vec<Step>| {
                let wanted = |s: Slot| {
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
                take(&needed(program, [root(c.asked)]), steps_out);
                steps_out.push(Step::Check(i as u32));
            }
            // What later stages need of this one.
            let later = program
                .checks
                .iter()
                .filter(|c| must(c.role) && c.stage as usize > stage)
                .map(|c| root(c.asked));
            let later: Vec<Slot> = later.chain(program.choices.iter().map(|c| c.from)).collect();
            take(&needed(program, later), steps_out);
        }
        for stage in 0..stages {
            for (i, c) in program.checks.iter().enumerate().filter(|(_, c)| !must(c.role)) {
                let list = needed(program, [root(c.asked)]);
                let wanted = |s: Slot| {
                    program.nodes[s.index()].stage as usize == stage
                        && !std::mem::replace(&mut done[s.index()], true)
                };
                steps(program, &list, wanted, &mut plan.flags[stage]);
                if c.stage as usize == stage {
                    plan.flags[stage].push(Step::Check(i as u32));
                }
            }
        }
        plan
    }
    /// A node is in the body of the innermost group that it depends on.
    fn bodies(program: &mut Program, live: &[Slot]) {
        for g in 0..program.groups.len() {
            let body: Vec<Slot> = (live.iter().copied())
                .filter(|s| {
                    let groups = program.nodes[s.index()].groups;
                    groups != 0 && groups.ilog2() as usize == g
                })
                .collect();
            program.groups[g].body = body;
        }
    }
}
