//! Models for tests and benchmarks, written by hand. A package that needs them includes this file
//! as a module.
//!
//! [`arcx`] is a small multiprocessor (two cores with store buffers of one place and a shared
//! memory of two cells, operation numbers up to a bound) with state spaces of published sizes;
//! [`counters`] and [`ring`] have sizes that a formula gives; [`random`] is a function of its seed.
#![allow(dead_code)] // each package uses some of them

use mu_base::random::Random;
use mu_model::Slot;
use mu_model::hand::HandModel;

/// Slots of one core of [`arcx`].
#[derive(Clone, Copy)]
struct Core {
    /// 0 idle, 1 chosen to issue, 2 store waits for the buffer, 3 end of store next, 4 load
    /// stalled by the buffer, 5 load waits for memory, 6 load in memory, 7 end of load next, 9
    /// reset next, 10 stopped.
    at: Slot,
    /// 0 no, 1 observe next, 2 handshake back to memory next.
    observing: Slot,
    n: Slot,
    a: Slot,
    d: Slot,
}

/// Slots of a store buffer: at 0 free, 1 occupied, 2 sent to memory, 3 observed by its own core.
#[derive(Clone, Copy)]
struct Buffer {
    at: Slot,
    a: Slot,
    d: Slot,
    n: Slot,
}

/// Slots of the memory. At 0 no command, 1 write queued, 2 read queued, 3 store-finish handshake, 4
/// offers an observation, 5 observation under way, 6 answers a read, 7 no command but the last
/// one's fields are kept.
#[derive(Clone, Copy)]
struct Memory {
    at: Slot,
    cell: [Slot; 2],
    a: Slot,
    d: Slot,
    c: Slot,
    n: Slot,
}

/// Two cores with store buffers and one memory command at a time; operation numbers `0..=max`. 25
/// slots in 5 components.
///
/// `reset` and `mem_wb_sync_store_finish` are hidden and confluent. States (transitions): for `max`
/// 0: 6,052 (13,828), 1: 275,528 (692,652), 2: 2,771,160 (7,147,580); with the confluent steps
/// taken at once 2,909 (5,966), 171,413 (417,116), 2,045,581 (5,222,562), 9,960,661 (25,833,152),
/// 30,595,877 (79,886,782).
pub fn arcx(max: u32) -> HandModel {
    let mut m = HandModel::new();
    let core = [0, 1].map(|i: u32| Core {
        at: m.slot(format!("core{i}.at"), i, true, 0),
        observing: m.slot(format!("core{i}.observing"), i, true, 0),
        n: m.slot(format!("core{i}.n"), i, false, 0),
        a: m.slot(format!("core{i}.a"), i, false, 0),
        d: m.slot(format!("core{i}.d"), i, false, 0),
    });
    let buffer = [0, 1].map(|i: u32| Buffer {
        at: m.slot(format!("buffer{i}.at"), 2 + i, true, 0),
        a: m.slot(format!("buffer{i}.a"), 2 + i, false, 0),
        d: m.slot(format!("buffer{i}.d"), 2 + i, false, 0),
        n: m.slot(format!("buffer{i}.n"), 2 + i, false, 0),
    });
    let memory = Memory {
        at: m.slot("memory.at", 4, true, 0),
        cell: [0, 1].map(|i| m.slot(format!("memory.cell{i}"), 4, false, 0)),
        a: m.slot("memory.a", 4, false, 0),
        d: m.slot("memory.d", 4, false, 0),
        c: m.slot("memory.c", 4, true, 0),
        n: m.slot("memory.n", 4, false, 0),
    };
    for i in 0..2u32 {
        core_groups(&mut m, i, max, core[i as usize], buffer[i as usize], memory);
        buffer_groups(&mut m, i, buffer[i as usize], memory);
    }
    // A queued write reaches its cell; the other core is to observe it.
    m.group(
        "write",
        &[(memory.at, 1)],
        &[memory.a, memory.d, memory.n],
        &[memory.at, memory.cell[0]],
        move |r, e| {
            if r[0] == 0 {
                e.step(format!("write(0, {}, {})", r[1], r[2]), &[4, r[1] + 1]);
            }
        },
    );
    m.group(
        "write'",
        &[(memory.at, 1)],
        &[memory.a, memory.d, memory.n],
        &[memory.at, memory.cell[1]],
        move |r, e| {
            if r[0] == 1 {
                e.step(format!("write(1, {}, {})", r[1], r[2]), &[4, r[1] + 1]);
            }
        },
    );
    m.group("read", &[(memory.at, 2)], &[], &[memory.at], |_, e| e.step("read", &[6]));
    m
}

/// Steps that a core takes part in.
fn core_groups(m: &mut HandModel, i: u32, max: u32, core: Core, buffer: Buffer, memory: Memory) {
    let Memory { at: mem, a: ma, d: md, c: mc, n: mn, .. } = memory;
    let own = |at: u32| [(core.at, at), (core.observing, 0)];
    let with = |at: u32, rest: &[(Slot, u32)]| {
        own(at).into_iter().chain(rest.iter().copied()).collect::<Vec<_>>()
    };
    // Core issues an operation when the memory is not in the middle of one; that clears the last
    // command's remains.
    for idle in [0, 1, 2] {
        m.group(format!("choose{i}"), &with(0, &[(mem, idle)]), &[], &[core.at], move |_, e| {
            e.step(format!("choose({i})"), &[1])
        });
    }
    m.group(
        format!("choose{i}"),
        &with(0, &[(mem, 7)]),
        &[],
        &[core.at, mem, ma, md, mc, mn],
        move |_, e| {
            e.step(format!("choose({i})"), &[1, 0, 0, 0, 0, 0]);
        },
    );
    m.group(format!("issue{i}"), &own(1), &[core.n], &[core.at, core.a, core.d], move |r, e| {
        for a in 0..2 {
            for d in 1..3 {
                e.step(format!("begin_store({i}, {}, {a}, {d})", r[0]), &[2, a, d]);
            }
            e.step(format!("begin_load({i}, {}, {a})", r[0]), &[4, a, 0]);
        }
    });
    let entry = [core.at, buffer.at, buffer.a, buffer.d, buffer.n];
    m.group(
        format!("enter_buffer{i}"),
        &with(2, &[(buffer.at, 0)]),
        &[core.n, core.a, core.d],
        &entry,
        move |r, e| {
            e.step(
                format!("enter_buffer({i}, {}, {}, {})", r[0], r[1], r[2]),
                &[3, 1, r[1], r[2] - 1, r[0]],
            );
        },
    );
    for (at, name) in [(3, "end_store"), (7, "end_load")] {
        m.group(
            format!("{name}{i}"),
            &own(at),
            &[core.n, core.a, core.d],
            &[core.at, core.n, core.a, core.d],
            move |r, e| {
                let next = if r[0] < max { [0, r[0] + 1, 0, 0] } else { [9, r[0], 0, 0] };
                e.step(format!("{name}({i}, {}, {}, {})", r[0], r[1], r[2]), &next);
            },
        );
    }
    m.group(
        format!("pass_buffer{i}"),
        &own(4),
        &[core.a, buffer.at, buffer.a],
        &[core.at],
        move |r, e| {
            if r[1] == 0 || r[1] == 1 && r[2] != r[0] {
                e.step(format!("pass_buffer({i}, {})", r[0]), &[5]);
            }
        },
    );
    for no_command in [0, 7] {
        let command = [core.at, mem, ma, md, mc, mn];
        m.group(
            format!("request{i}"),
            &with(5, &[(mem, no_command)]),
            &[core.n, core.a],
            &command,
            move |r, e| {
                e.step(format!("request({i}, {}, {})", r[0], r[1]), &[6, 2, r[1], 0, i, r[0]]);
            },
        );
    }
    let answer = [core.at, core.d, mem, ma, md, mc, mn];
    m.group(
        format!("answer{i}"),
        &with(6, &[(mem, 6), (mc, i)]),
        &[memory.cell[0], memory.cell[1], ma],
        &answer,
        move |r, e| {
            e.step(
                format!("answer({i}, {}, {})", r[2], r[r[2] as usize]),
                &[7, r[r[2] as usize], 0, 0, 0, 0, 0],
            );
        },
    );
    let reset = m.group(format!("reset{i}"), &own(9), &[], &[core.at], |_, e| e.step("tau", &[10]));
    (reset.tau, reset.confluent, reset.hidden) = (true, true, vec!["reset".into()]);
    // Observation of the other core's store.
    for at in [0, 2, 4, 5] {
        m.group(
            format!("observe{i}"),
            &with(at, &[(mem, 4), (mc, 1 - i)]),
            &[],
            &[core.observing, mem],
            move |_, e| {
                e.step(format!("offer({i})"), &[1, 5]);
            },
        );
    }
    m.group(
        format!("observe{i}"),
        &[(core.observing, 1)],
        &[core.n],
        &[core.observing],
        move |r, e| {
            e.step(format!("observe({i}, {})", r[0]), &[2]);
        },
    );
    m.group(
        format!("observed{i}"),
        &[(core.observing, 2), (mem, 5), (mc, 1 - i)],
        &[],
        &[core.observing, mem],
        move |_, e| {
            e.step(format!("observed({i})"), &[0, 7]);
        },
    );
}

/// Steps that a store buffer takes part in without its core.
fn buffer_groups(m: &mut HandModel, i: u32, buffer: Buffer, memory: Memory) {
    let command = [buffer.at, memory.at, memory.a, memory.d, memory.c, memory.n];
    for no_command in [0, 7] {
        let requires = [(buffer.at, 1), (memory.at, no_command)];
        m.group(
            format!("drain{i}"),
            &requires,
            &[buffer.a, buffer.d, buffer.n],
            &command,
            move |r, e| {
                e.step(
                    format!("drain({i}, {}, {}, {})", r[0], r[1], r[2]),
                    &[2, 3, r[0], r[1], i, r[2]],
                );
            },
        );
    }
    m.group(
        format!("own{i}"),
        &[(buffer.at, 2)],
        &[buffer.a, buffer.d, buffer.n],
        &[buffer.at],
        move |r, e| {
            e.step(format!("observe_own({i}, {}, {}, {})", r[0], r[1], r[2]), &[3]);
        },
    );
    let free = [buffer.at, buffer.a, buffer.d, buffer.n, memory.at];
    let requires = [(buffer.at, 3), (memory.at, 3), (memory.c, i)];
    let finish = m
        .group(format!("finish{i}"), &requires, &[], &free, |_, e| e.step("tau", &[0, 0, 0, 0, 1]));
    (finish.tau, finish.confluent, finish.hidden) =
        (true, true, vec!["mem_wb_sync_store_finish".into()]);
}

/// `count` independent components that each count from 0 to `max` and stop: `(max + 1)^count`
/// states, no cycle, one deadlock.
pub fn counters(count: u32, max: u32) -> HandModel {
    let mut m = HandModel::new();
    for i in 0..count {
        let slot = m.slot(format!("counter{i}"), i, false, 0);
        m.group(format!("up{i}"), &[], &[slot], &[slot], move |r, e| {
            if r[0] < max {
                e.step(format!("up({i})"), &[r[0] + 1]);
            }
        });
    }
    m
}

/// `count` independent components that each go round `size` values: `size^count` states, every
/// state on a cycle.
pub fn ring(count: u32, size: u32) -> HandModel {
    let mut m = HandModel::new();
    for i in 0..count {
        let slot = m.slot(format!("ring{i}"), i, true, 0);
        for at in 0..size {
            m.group(format!("turn{i}"), &[(slot, at)], &[], &[slot], move |_, e| {
                e.step(format!("turn({i})"), &[(at + 1) % size])
            });
        }
    }
    m
}

/// Shape of a [`random`] model.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Number of slots.
    pub slots: u32,
    /// Values a slot.
    pub values: u32,
    /// Number of components that the slots are dealt to.
    pub components: u32,
    /// Number of groups.
    pub groups: u32,
    /// Number of label texts other than `tau`.
    pub labels: u32,
}

/// Returns a model that is a function of its seed: random slot lists, requirements and steps (none
/// to three a group and read vector, sometimes the same one twice). Groups with `tau` steps only
/// are marked so; none is marked confluent.
pub fn random(seed: u64, shape: Shape) -> HandModel {
    let mut words = Random::new(seed ^ 0x5EED);
    let mut below = move |n: u32| (words.next_u64() % u64::from(n.max(1))) as u32;
    let mut m = HandModel::new();
    for i in 0..shape.slots {
        let component = below(shape.components);
        m.slot(format!("s{i}"), component, below(2) == 0, 0);
    }
    for g in 0..shape.groups {
        let mut pick = |most: u32| {
            let mut list: Vec<Slot> = (0..below(most + 1)).map(|_| below(shape.slots)).collect();
            list.sort_unstable();
            list.dedup();
            list
        };
        let (required, reads, writes) = (pick(2), pick(3), pick(3));
        let requires: Vec<_> =
            required.into_iter().map(|s| (s, below(shape.values.min(3)))).collect();
        let (tau, labels, values, width) =
            (below(4) == 0, shape.labels.max(1), shape.values.max(1), writes.len());
        let salt = seed.wrapping_mul(31).wrapping_add(u64::from(g));
        let group = m.group(format!("g{g}"), &requires, &reads, &writes, move |r, e| {
            let mut words =
                Random::new(r.iter().fold(salt, |h, &x| Random::new(h ^ u64::from(x)).next_u64()));
            for _ in 0..words.next_u64() % 4 {
                let label = words.next_u64() % u64::from(labels);
                let v: Vec<u32> =
                    (0..width).map(|_| (words.next_u64() % u64::from(values)) as u32).collect();
                let text = if tau { "tau".into() } else { format!("a({label})") };
                if words.next_u64().is_multiple_of(8) {
                    e.step(text.clone(), &v);
                }
                e.step(text, &v);
            }
        });
        group.tau = tau;
    }
    m
}
