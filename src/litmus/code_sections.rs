//! Jumps to the code of other threads.
//!
//! Input: the threads of a test. Output: the same threads; each one that jumps to the address of a
//! register also contains the code of all others, so that the paths of a thread stay in its own
//! operations. An address of code belongs to the thread of its label; [`Thread::target`] finds the
//! copy. Registers are matched by name. Cost: linear in the code of all threads, for each thread
//! that jumps so.

use crate::code::{CodeSection, Op, Register, RegisterExpr, Thread};
use mu_base::{Span, narrow};

/// Adds the code of the other threads to each thread that jumps to an address.
pub fn share(threads: &mut [Thread]) {
    let jumps = |thread: &Thread| thread.ops.iter().any(|op| matches!(op, Op::Jump(_)));
    if !threads.iter().any(jumps) {
        return;
    }
    let originals = threads.to_vec();
    for (t, thread) in threads.iter_mut().enumerate().filter(|(_, thread)| jumps(thread)) {
        let mut ends = Vec::new();
        add_section(thread, t, None, &mut ends);
        for (u, other) in originals.iter().enumerate().filter(|(u, _)| *u != t) {
            add_section(thread, u, Some(other), &mut ends);
        }
        let end = narrow::index(thread.ops.len());
        for at in ends {
            thread.ops[at] = Op::Branch { when: None, to: end };
        }
    }
}

/// Adds a section with the code of another thread, or with the thread's own code, which is there
/// already, and a jump to the end of all code. `ends` are these jumps.
fn add_section(thread: &mut Thread, of: usize, other: Option<&Thread>, ends: &mut Vec<usize>) {
    let first = other.map_or(0, |_| narrow::index(thread.texts.len()));
    if let Some(other) = other {
        let shift = narrow::index(thread.ops.len());
        let registers: Vec<Register> =
            other.registers.iter().map(|r| thread.register(&r.0)).collect();
        for (op, instruction) in other.ops.iter().zip(&other.instruction) {
            let mut op = op.clone();
            relocate(&mut op, &registers, shift);
            thread.ops.push(op);
            thread.instruction.push(first + instruction);
        }
        thread.texts.extend(other.texts.iter().cloned());
    }
    let length = narrow::index(thread.texts.len()) - first;
    let labels = other.map_or(&thread.labels, |o| &o.labels).iter().map(|l| l.1).collect();
    thread.sections.push(CodeSection { thread: narrow::index(of), first, length, labels });
    ends.push(thread.ops.len());
    thread.ops.push(Op::Branch { when: None, to: 0 });
    thread.instruction.push(narrow::index(thread.texts.len()));
    let span = thread.texts.last().map_or(Span::default(), |t| t.1);
    thread.texts.push(("the end of the code".to_string(), span));
}

/// Renames the registers of an operation, and moves its targets.
fn relocate(op: &mut Op, registers: &[Register], shift: u32) {
    let name = |r: &mut Register| *r = registers[usize::from(*r)];
    let value = |e: &mut RegisterExpr| rename(e, registers);
    match op {
        Op::Let(r, e) => {
            name(r);
            value(e);
        }
        Op::Load { into, value: result, address, .. } => {
            into.iter_mut().for_each(name);
            value(result);
            value(address);
        }
        Op::Store { address, value: stored, .. } => {
            value(address);
            value(stored);
        }
        Op::StoreConditional { status, address, value: stored, second, .. } => {
            status.iter_mut().for_each(name);
            value(address);
            value(stored);
            second.iter_mut().for_each(value);
        }
        Op::Update { into, address, value: stored, when, .. } => {
            if let Some((r, result)) = into {
                name(r);
                value(result);
            }
            value(address);
            value(stored);
            when.iter_mut().for_each(value);
        }
        Op::Mark { into, address, value: stored, .. } => {
            if let Some((r, result)) = into {
                name(r);
                value(result);
            }
            value(address);
            value(stored);
        }
        Op::Assume(e) | Op::Choose(e) | Op::Defined(e) | Op::Jump(e) => value(e),
        Op::Either { to } => *to += shift,
        Op::Branch { when, to } => {
            when.iter_mut().for_each(value);
            *to += shift;
        }
        Op::Fence(_) | Op::Enter | Op::Leave | Op::Ordered => {}
    }
}

fn rename(e: &mut RegisterExpr, registers: &[Register]) {
    match e {
        RegisterExpr::Register(r) => *r = registers[usize::from(*r)],
        RegisterExpr::Unary(_, a) => rename(a, registers),
        RegisterExpr::Binary(_, a, b) => {
            rename(a, registers);
            rename(b, registers);
        }
        // Threads of x86 have no jumps to addresses.
        RegisterExpr::Const(_) | RegisterExpr::Loaded | RegisterExpr::X86(..) => {}
    }
}
