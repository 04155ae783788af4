//! Generator of random tests from cycles of relations, as in diy (Alglave, Maranget, Sarkar,
//! Sewell, "Fences in weak memory models", CAV 2010), in each language.
//!
//! Input: a seed, an architecture. Output: the text of a test that observes all registers and
//! variables. The text depends only on the seed and the architecture. A cycle alternates steps
//! within a thread (program order, fences, dependencies) with communication between threads
//! (reads-from, from-reads, coherence); its accesses become the test. Models differ in the outcomes
//! of such tests, so comparisons of tools compare their sets of outcomes.

use mu_base::random::Random;
use mu_litmus::code::Arch;
use std::fmt::Write;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The link from an access to the next one of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// Program order only.
    Order,
    /// A fence, by index.
    Fence(usize),
    /// An address dependency.
    Address,
    /// A data dependency.
    Data,
    /// A control dependency.
    Control,
    /// A control dependency followed by a pipeline fence.
    ControlFence,
}

/// An access of a test.
#[derive(Clone, Copy, Debug)]
struct Step {
    access: Access,
    variable: usize,
    value: u64,
    /// The variant, by index: plain, acquire, release, atomic.
    flavour: usize,
    link: Link,
}

const VARIABLES: [&str; 5] = ["x", "y", "z", "a", "b"];

/// Generates the threads of a random cycle.
fn cycle(random: &mut Random, arch: Arch) -> Vec<Vec<Step>> {
    loop {
        let count = 2 + random.below(3);
        let mut threads: Vec<Vec<(Access, usize)>> = Vec::new();
        let mut variable = 0;
        // The first access of a thread has the variable of the last access of the previous thread;
        // communication relates two accesses of which one is a write.
        let mut last = Access::Write;
        for t in 0..count {
            let first = match (t, last) {
                (0, _) => *random.choose(&[Access::Read, Access::Write]),
                (_, Access::Read) => Access::Write,
                (_, Access::Write) => *random.choose(&[Access::Read, Access::Write]),
            };
            let mut thread = vec![(first, variable)];
            for _ in 0..[0, 1, 1, 1, 1, 2, 2][random.below(7)] {
                if random.chance(4, 5) {
                    variable += 1;
                }
                thread.push((*random.choose(&[Access::Read, Access::Write]), variable));
            }
            last = thread[thread.len() - 1].0;
            threads.push(thread);
        }
        let accesses: usize = threads.iter().map(Vec::len).sum();
        let closes = threads[0][0].0 == Access::Write || last == Access::Write;
        if variable == 1 || !closes || accesses > 8 {
            continue;
        }
        // The last step returns to the first variable.
        let wrap = variable.max(1);
        let mut next = [0; VARIABLES.len()];
        if wrap > VARIABLES.len() {
            continue;
        }
        return (threads.into_iter())
            .map(|thread| {
                let mut read_before = false;
                (thread.into_iter().enumerate())
                    .map(|(i, (access, variable))| {
                        let variable = variable % wrap;
                        let value = if access == Access::Write {
                            next[variable] += 1;
                            next[variable]
                        } else {
                            0
                        };
                        let link = if i == 0 {
                            Link::Order
                        } else {
                            link(random, arch, read_before, access)
                        };
                        read_before = access == Access::Read;
                        Step {
                            access,
                            variable,
                            value,
                            flavour: [0, 0, 0, 0, 0, 0, 1, 1, 2, 3][random.below(10)],
                            link,
                        }
                    })
                    .collect()
            })
            .collect();
    }
}

fn link(random: &mut Random, arch: Arch, after_read: bool, to: Access) -> Link {
    let dependencies = after_read && matches!(arch, Arch::RiscV | Arch::AArch64);
    match random.below(if dependencies { 9 } else { 5 }) {
        0..2 => Link::Order,
        2..5 => Link::Fence(random.below(16)),
        5 => Link::Address,
        6 if to == Access::Write => Link::Data,
        6 => Link::Address,
        7 => Link::Control,
        _ => Link::ControlFence,
    }
}

/// Generates a test.
pub fn litmus(seed: u64, arch: Arch) -> String {
    let mut random = Random::new(seed);
    let threads = cycle(&mut random, arch);
    let mut columns = Vec::new();
    let mut init = String::new();
    let (mut observed, mut own) = (Vec::new(), Vec::new());
    for (t, steps) in threads.iter().enumerate() {
        let mut writer = Writer {
            t,
            lines: Vec::new(),
            init: String::new(),
            observed: Vec::new(),
            registers: 0,
            labels: 0,
            last: None,
            expects: false,
        };
        for step in steps {
            match arch {
                Arch::RiscV => writer.riscv(step, &mut random),
                Arch::AArch64 => writer.aarch64(step, &mut random),
                Arch::C | Arch::Linux => writer.c(step, &mut random),
                Arch::X86 => writer.x86(step),
                Arch::X86_64 => writer.x86_64(step),
                // No test is generated for these.
                Arch::Power | Arch::Arm => {}
            }
        }
        init += &writer.init;
        observed.append(&mut writer.observed);
        columns.push(writer.lines);
        own.push(writer.expects.then(|| format!("int* e{t}")));
    }
    let used: Vec<&str> = VARIABLES
        .into_iter()
        .enumerate()
        .filter(|(v, _)| threads.iter().flatten().any(|s| s.variable == *v))
        .map(|v| v.1)
        .collect();
    observed.extend(used.iter().map(|v| (*v).to_string()));
    let name = format!("cycle{seed}");
    let mut text = format!("{} {name}\n{{ {init}}}\n", arch.name());
    if matches!(arch, Arch::C | Arch::Linux) {
        for (t, lines) in columns.iter().enumerate() {
            let parameters: Vec<String> =
                used.iter().map(|v| format!("atomic_int* {v}")).chain(own[t].clone()).collect();
            let _ = writeln!(text, "P{t} ({}) {{\n{}\n}}", parameters.join(", "), lines.join("\n"));
        }
    } else {
        let heads: Vec<String> = (0..columns.len()).map(|t| format!("P{t}")).collect();
        let _ = writeln!(text, "{} ;", heads.join(" | "));
        for row in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
            let cells: Vec<&str> =
                columns.iter().map(|c| c.get(row).map_or("", String::as_str)).collect();
            let _ = writeln!(text, "{} ;", cells.join(" | "));
        }
    }
    let _ = writeln!(text, "locations [{};]\nexists ({}=0)", observed.join("; "), used[0]);
    text
}

/// Printer of a thread.
struct Writer {
    t: usize,
    lines: Vec<String>,
    init: String,
    observed: Vec<String>,
    registers: usize,
    labels: usize,
    /// The register of the last read.
    last: Option<usize>,
    /// True if it has a variable for expected values.
    expects: bool,
}

impl Writer {
    fn fresh(&mut self) -> usize {
        self.registers += 1;
        self.registers
    }
    fn line(&mut self, text: String) {
        self.lines.push(text);
    }
    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}{}", self.t, self.labels)
    }

    fn riscv(&mut self, step: &Step, random: &mut Random) {
        const FENCES: [&str; 9] =
            ["rw,rw", "r,r", "r,w", "r,rw", "w,r", "w,w", "w,rw", "rw,r", "rw,w"];
        let x = |n: usize| format!("x{}", 4 + n);
        let base = x(self.fresh());
        let mut address = base.clone();
        let _ = write!(self.init, "{}:{base}={}; ", self.t, VARIABLES[step.variable]);
        let mut value = step.value.to_string();
        match (step.link, self.last) {
            (Link::Fence(f), _) if f >= 14 => self.line("fence.tso".into()),
            (Link::Fence(f), _) => self.line(format!("fence {}", FENCES[f % FENCES.len()])),
            (Link::Address, Some(r)) => {
                let (d, sum) = (self.fresh(), self.fresh());
                self.line(format!("xor {},{},{}", x(d), x(r), x(r)));
                self.line(format!("add {},{base},{}", x(sum), x(d)));
                address = x(sum);
            }
            (Link::Data, Some(r)) => {
                let d = self.fresh();
                self.line(format!("xor {},{},{}", x(d), x(r), x(r)));
                self.line(format!("ori {},{},{value}", x(d), x(d)));
                value = x(d);
            }
            (Link::Control | Link::ControlFence, Some(r)) => {
                let label = self.label();
                self.line(format!("bne {},x0,{label}", x(r)));
                self.line(format!("{label}:"));
                if step.link == Link::ControlFence {
                    self.line("fence.i".into());
                }
            }
            _ => {}
        }
        let order = ["", ".aq", ".rl", ".aq.rl"][random.below(4)];
        // The manual does not define `.rl` alone on a load-reserve.
        let acquire = if order == ".rl" { "" } else { order };
        if step.access == Access::Read {
            let r = self.fresh();
            match step.flavour {
                0 => self.line(format!("lw {},0({address})", x(r))),
                1 => self.line(format!("lw.aq {},0({address})", x(r))),
                2 => self.line(format!("lr.w{acquire} {},0({address})", x(r))),
                _ => self.line(format!("amoor.w{order} {},x0,({address})", x(r))),
            }
            self.observed.push(format!("{}:{}", self.t, x(r)));
            self.last = Some(r);
        } else {
            if !value.starts_with('x') {
                let r = self.fresh();
                self.line(format!("ori {},x0,{value}", x(r)));
                value = x(r);
            }
            match step.flavour {
                0 | 2 => self.line(format!("sw {value},0({address})")),
                1 => self.line(format!("sw.rl {value},0({address})")),
                _ => {
                    let r = self.fresh();
                    self.line(format!("amoswap.w{order} {},{value},({address})", x(r)));
                    self.observed.push(format!("{}:{}", self.t, x(r)));
                }
            }
            self.last = None;
        }
    }

    fn aarch64(&mut self, step: &Step, random: &mut Random) {
        const FENCES: [&str; 5] = ["DMB SY", "DMB LD", "DMB ST", "DMB SY", "DSB SY"];
        let base = self.fresh();
        let _ = write!(self.init, "{}:X{base}={}; ", self.t, VARIABLES[step.variable]);
        let mut address = format!("X{base}");
        let mut value = None;
        match (step.link, self.last) {
            (Link::Fence(f), _) => self.line(FENCES[f % FENCES.len()].into()),
            (Link::Address, Some(r)) => {
                let (d, sum) = (self.fresh(), self.fresh());
                self.line(format!("EOR W{d},W{r},W{r}"));
                self.line(format!("ADD X{sum},X{base},W{d},SXTW"));
                address = format!("X{sum}");
            }
            (Link::Data, Some(r)) => {
                let d = self.fresh();
                self.line(format!("EOR W{d},W{r},W{r}"));
                self.line(format!("ADD W{d},W{d},#{}", step.value));
                value = Some(d);
            }
            (Link::Control | Link::ControlFence, Some(r)) => {
                let label = self.label();
                self.line(format!("CBNZ W{r},{label}"));
                self.line(format!("{label}:"));
                if step.link == Link::ControlFence {
                    self.line("ISB".into());
                }
            }
            _ => {}
        }
        if step.access == Access::Read {
            let r = self.fresh();
            let name = ["LDR", "LDAR", "LDAPR", "LDXR"][step.flavour];
            self.line(format!("{name} W{r},[{address}]"));
            self.observed.push(format!("{}:X{r}", self.t));
            self.last = Some(r);
        } else {
            let v = value.unwrap_or_else(|| {
                let v = self.fresh();
                self.line(format!("MOV W{v},#{}", step.value));
                v
            });
            if step.flavour == 3 {
                let r = self.fresh();
                let name = ["SWP", "SWPA", "SWPL", "SWPAL"][random.below(4)];
                self.line(format!("{name} W{v},W{r},[{address}]"));
                self.observed.push(format!("{}:X{r}", self.t));
            } else {
                let name = if step.flavour == 0 { "STR" } else { "STLR" };
                self.line(format!("{name} W{v},[{address}]"));
            }
            self.last = None;
        }
    }

    fn x86(&mut self, step: &Step) {
        const REGISTERS: [&str; 6] = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI"];
        let v = VARIABLES[step.variable];
        if let Link::Fence(_) = step.link {
            self.line("MFENCE".into());
        }
        let r = REGISTERS[self.registers % REGISTERS.len()];
        if step.access == Access::Read {
            self.registers += 1;
            self.line(format!("MOV {r},[{v}]"));
            self.observed.push(format!("{}:{r}", self.t));
        } else if step.flavour == 3 {
            self.registers += 1;
            self.line(format!("MOV {r},${}", step.value));
            self.line(format!("XCHG [{v}],{r}"));
            self.observed.push(format!("{}:{r}", self.t));
        } else {
            self.line(format!("MOV [{v}],${}", step.value));
        }
    }

    fn x86_64(&mut self, step: &Step) {
        const REGISTERS: [&str; 6] = ["eax", "ebx", "ecx", "edx", "esi", "edi"];
        let v = VARIABLES[step.variable];
        if let Link::Fence(_) = step.link {
            self.line("mfence".into());
        }
        let r = REGISTERS[self.registers % REGISTERS.len()];
        let observed = format!("{}:r{}", self.t, &r[1..]);
        if step.access == Access::Read {
            self.registers += 1;
            self.line(format!("movl ({v}),%{r}"));
            self.observed.push(observed);
        } else if step.flavour == 3 {
            self.registers += 1;
            self.line(format!("movl ${},%{r}", step.value));
            self.line(format!("xchgl %{r},({v})"));
            self.observed.push(observed);
        } else {
            self.line(format!("movl ${},({v})", step.value));
        }
    }

    fn c(&mut self, step: &Step, random: &mut Random) {
        const ORDERS: [&str; 5] = ["relaxed", "acquire", "release", "acq_rel", "seq_cst"];
        let v = VARIABLES[step.variable];
        if let Link::Fence(f) = step.link {
            self.line(format!("  atomic_thread_fence(memory_order_{});", ORDERS[1 + f % 4]));
        }
        if step.access == Access::Read {
            let r = self.fresh();
            match step.flavour {
                3 => self.line(format!("  int r{r} = *{v};")),
                2 => self.line(format!(
                    "  int r{r} = atomic_fetch_add_explicit({v}, 8, memory_order_{});",
                    random.choose(&ORDERS)
                )),
                _ => {
                    let order = *random.choose(&["relaxed", "relaxed", "acquire", "seq_cst"]);
                    self.line(format!(
                        "  int r{r} = atomic_load_explicit({v}, memory_order_{order});"
                    ));
                }
            }
            self.observed.push(format!("{}:r{r}", self.t));
        } else {
            match step.flavour {
                3 => self.line(format!("  *{v} = {};", step.value)),
                2 if random.chance(1, 2) => {
                    // The expected value is the initial one, in a private variable of the thread.
                    let (r, t) = (self.fresh(), self.t);
                    let strength = random.choose(&["strong", "weak"]);
                    let order = random.choose(&ORDERS);
                    self.line(format!(
                        "  int r{r} = atomic_compare_exchange_{strength}_explicit({v}, e{t}, {}, memory_order_{order}, memory_order_relaxed);",
                        step.value,
                    ));
                    self.observed.push(format!("{t}:r{r}"));
                    if !self.expects {
                        self.expects = true;
                        self.observed.push(format!("e{t}"));
                    }
                }
                2 => {
                    let r = self.fresh();
                    self.line(format!(
                        "  int r{r} = atomic_exchange_explicit({v}, {}, memory_order_{});",
                        step.value,
                        random.choose(&ORDERS)
                    ));
                    self.observed.push(format!("{}:r{r}", self.t));
                }
                _ => {
                    let order = *random.choose(&["relaxed", "relaxed", "release", "seq_cst"]);
                    self.line(format!(
                        "  atomic_store_explicit({v}, {}, memory_order_{order});",
                        step.value
                    ));
                }
            }
        }
    }
}
