//! Which registers matter from where on, and which cells a thread may still touch: two analyses
//! over the control flow of a thread.
//!
//! In: a thread, the registers that somebody looks at. Out: for each step (and the end) the
//! registers that may be read before they are set, and the cells that may be read or written.
//! Backward fixed points; cost: steps times registers, a few rounds.

use super::expr::Expr;
use super::{Access, Next, Program, Register, Step, Thread};

/// The steps that may follow step `at` of a thread with `count` steps.
pub fn successors(step: &Step, at: usize, count: usize) -> impl Iterator<Item = usize> {
    let (fall, jump) = match step.next {
        Next::Fall => (Some(at + 1), None),
        Next::Jump(to) => (None, Some(to as usize)),
        Next::Branch(_, to) => (Some(at + 1), Some(to as usize)),
    };
    fall.into_iter().chain(jump).map(move |to| to.min(count))
}

/// Calls `visit` with each register that a step reads.
pub fn registers_read(step: &Step, visit: &mut impl FnMut(Register)) {
    match &step.access {
        Access::None | Access::Fence(_) => {}
        Access::Read { address, .. } => address.registers(visit),
        Access::Write { address, value, when, .. }
        | Access::Update { address, value, when, .. } => {
            address.registers(visit);
            value.registers(visit);
            if let Some(when) = when {
                when.registers(visit);
            }
        }
    }
    for (_, e) in &step.assigns {
        e.registers(visit);
    }
    if let Next::Branch(e, _) = &step.next {
        e.registers(visit);
    }
}

/// For each step and the end: whether each register is live there. The observed ones are at the
/// end, or `always`.
pub fn live(thread: &Thread, observed: &[Register], always: bool) -> Vec<Vec<bool>> {
    let count = thread.steps.len();
    let mut end = vec![false; thread.registers.len()];
    for &r in observed {
        end[r as usize] = true;
    }
    let mut live = vec![end; count + 1];
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..count).rev() {
            let step = &thread.steps[at];
            let mut here = vec![false; thread.registers.len()];
            for to in successors(step, at, count) {
                for (h, &l) in here.iter_mut().zip(&live[to]) {
                    *h |= l;
                }
            }
            for (r, _) in &step.assigns {
                here[*r as usize] = observed.contains(r);
            }
            registers_read(step, &mut |r| here[r as usize] = true);
            if always {
                observed.iter().for_each(|&r| here[r as usize] = true);
            }
            if here != live[at] {
                live[at] = here;
                changed = true;
            }
        }
    }
    live
}

/// A set of cells, cell `c` being bit `c mod 64`: a superset where there are more than 64.
pub type Cells = u64;

/// The set of one cell.
pub fn cell_bit(cell: u32) -> Cells {
    1 << (cell % 64)
}

/// The cells that a thread may read and write from a step on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Future {
    /// Those that it may load.
    pub reads: Cells,
    /// Those that it may store to.
    pub writes: Cells,
}

/// For each step of a thread and its end, what it may still access by steps.
pub fn futures(program: &Program, thread: &Thread) -> Vec<Future> {
    let cells = |address: &Expr| match address {
        Expr::Const(a) => program.cell_at(*a).map_or(Cells::MAX, |c| cell_bit(c as u32)),
        _ => Cells::MAX,
    };
    let own: Vec<Future> = (thread.steps.iter())
        .map(|s| match &s.access {
            Access::None | Access::Fence(_) => Future::default(),
            Access::Read { address, .. } => Future { reads: cells(address), writes: 0 },
            Access::Write { address, .. } => Future { reads: 0, writes: cells(address) },
            Access::Update { address, .. } => {
                Future { reads: cells(address), writes: cells(address) }
            }
        })
        .collect();
    let count = own.len();
    let mut all = own;
    all.push(Future::default());
    let mut changed = true;
    while changed {
        changed = false;
        for at in (0..count).rev() {
            let mut f = all[at];
            for to in successors(&thread.steps[at], at, count) {
                f.reads |= all[to].reads;
                f.writes |= all[to].writes;
            }
            changed |= f != all[at];
            all[at] = f;
        }
    }
    all
}
