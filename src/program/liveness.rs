//! Analyses over the control flow of a thread: live registers, the cells that the thread may still
//! access, and the steps that close loops without memory access.
//!
//! Input: a thread, its observed registers. Output: for each step (and the end) the registers that
//! may be read before they are set, and the cells that may be read or written. Method: backward
//! fixed points. Cost: steps times registers, times a few rounds.

use super::expr::Expr;
use super::{Access, Next, Program, Register, Step, Thread};
use mu_base::narrow;

/// Returns the possible successors of step `at` of a thread with `count` steps.
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

/// Computes the live registers of each step and of the end. The observed registers are live at the
/// end, or everywhere if `always`.
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

/// Returns for each step whether it closes a loop of steps without memory access. Each such loop
/// has at least one of these steps. Depth-first search; linear in the number of steps.
pub fn closes_local_loop(thread: &Thread) -> Vec<bool> {
    let count = thread.steps.len();
    let local = |at: usize| at < count && thread.steps[at].access == Access::None;
    let mut closes = vec![false; count];
    let (mut entered, mut left) = (vec![false; count], vec![false; count]);
    for root in (0..count).filter(|at| local(*at)) {
        let mut path = vec![(root, 0)];
        while let Some((at, tried)) = path.pop() {
            if tried == 0 && std::mem::replace(&mut entered[at], true) {
                continue;
            }
            let Some(to) = successors(&thread.steps[at], at, count).nth(tried) else {
                left[at] = true;
                continue;
            };
            path.push((at, tried + 1));
            if local(to) && entered[to] {
                closes[at] |= !left[to];
            } else if local(to) {
                path.push((to, 0));
            }
        }
    }
    closes
}

/// A set of cells; cell `c` is bit `c mod 64`. With more than 64 cells it is an over-approximation.
pub type Cells = u64;

/// Returns the set of one cell.
pub fn cell_bit(cell: u32) -> Cells {
    1 << (cell % 64)
}

/// The cells that a thread may still read and write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Future {
    /// The cells that it may load.
    pub reads: Cells,
    /// The cells that it may store to.
    pub writes: Cells,
}

/// Computes the cells that a thread may still access, for each step and for the end.
pub fn futures(program: &Program, thread: &Thread) -> Vec<Future> {
    let cells = |address: &Expr| match address {
        Expr::Const(a) => program.cell_at(*a).map_or(Cells::MAX, |c| cell_bit(narrow::index(c))),
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
