//! Threads of litmus tests in the C of the Linux kernel.
//!
//! A control dependency covers the statements inside its `if`, so the rest of the thread is inside.
//! A condition that always holds is a comparison with a number beyond all values.

use mu_axioms::EventKind;
use mu_axioms::history::{Dependencies, History, Operation, location_name};
use mu_axioms::models::{FenceSide, MemoryOrdering};
use std::fmt::Write;

/// Above all values of a history.
const BEYOND: u32 = 1000;

/// Writes the threads of a history.
pub(super) fn threads(history: &History) -> Result<String, String> {
    let parameters: Vec<String> =
        (0..history.locations()).map(|l| format!("int *{}", location_name(l))).collect();
    let mut out = String::new();
    for (t, thread) in history.threads.iter().enumerate() {
        let _ = write!(out, "\nP{t}({}) {{\n", parameters.join(", "));
        let (mut registers, mut depth): (Vec<Option<usize>>, usize) = (Vec::new(), 1);
        let loads = thread.iter().filter(|o| o.kind.reads()).count();
        (0..loads).for_each(|i| {
            let _ = writeln!(out, "  int r{i};");
        });
        for o in thread {
            let of = |bits: u32| -> Vec<usize> {
                Dependencies::positions(bits)
                    .filter_map(|p| registers.get(p).copied().flatten())
                    .collect()
            };
            for r in of(o.depends.control) {
                let _ = writeln!(out, "{}if (r{r} < {BEYOND}) {{", "  ".repeat(depth));
                depth += 1;
            }
            let next = registers.iter().flatten().count();
            let line = statement(o, next, &of(o.depends.data))?;
            let _ = writeln!(out, "{}{line}", "  ".repeat(depth));
            registers.push(o.kind.reads().then_some(next));
        }
        (1..=depth).rev().for_each(|d| {
            let _ = writeln!(out, "{}}}", "  ".repeat(d - 1));
        });
    }
    Ok(out)
}

fn statement(o: &Operation, register: usize, data: &[usize]) -> Result<String, String> {
    if o.exclusive {
        return Err("the kernel has no load-reserve and store-conditional".into());
    }
    if o.depends.address != 0 {
        return Err("address dependencies are not written in the C of the kernel".into());
    }
    let (x, r) = (location_name(o.location), format!("r{register}"));
    let mut value = o.value.to_string();
    for d in data {
        value = format!("({value} + (r{d} ^ r{d}))");
    }
    let value = value.strip_prefix('(').and_then(|v| v.strip_suffix(')')).unwrap_or(&value);
    Ok(match (o.kind, o.mark) {
        (EventKind::Fence, MemoryOrdering::Plain) => "smp_mb();".into(),
        (EventKind::Fence, MemoryOrdering::Between(FenceSide::Reads, FenceSide::Reads)) => {
            "smp_rmb();".into()
        }
        (EventKind::Fence, MemoryOrdering::Between(FenceSide::Writes, FenceSide::Writes)) => {
            "smp_wmb();".into()
        }
        (EventKind::Fence, _) => {
            return Err("the kernel has no fence that orders exactly these accesses".into());
        }
        (EventKind::Write, MemoryOrdering::Release) => format!("smp_store_release({x}, {value});"),
        (EventKind::Write, _) => format!("WRITE_ONCE(*{x}, {value});"),
        (EventKind::Update, MemoryOrdering::Plain) => format!("{r} = xchg_relaxed({x}, {value});"),
        (EventKind::Update, MemoryOrdering::Acquire) => {
            format!("{r} = xchg_acquire({x}, {value});")
        }
        (EventKind::Update, MemoryOrdering::Release) => {
            format!("{r} = xchg_release({x}, {value});")
        }
        (EventKind::Update, _) => return Err("the kernel has no such exchange".into()),
        (_, MemoryOrdering::Acquire) => format!("{r} = smp_load_acquire({x});"),
        (..) => format!("{r} = READ_ONCE(*{x});"),
    })
}
