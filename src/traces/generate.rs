//! Random programs that log their own loads and stores: constrained-random tests of the memory of
//! a processor, as in TSOtool (Hangal, Vahia, Manovit, Lu, Narayanan. ISCA 2004).
//!
//! In: [`GeneratorSettings`]. Out: C with pthreads, or assembly for x86-64 or RISC-V with a harness
//! in C. A program runs its threads in rounds; before each, memory is 0. It prints a trace for each
//! round in the format of Axe. All stored values differ, so a loaded value names its store. The
//! same settings give the same text. Linear in the number of operations.
//!
//! A third of the addresses are those of the two operations before, so that accesses to one address
//! meet. Compiled with `-DREORDER`, a load of each round overtakes a store of its thread to the
//! same address: a fault that every checker must find.

use mu_base::narrow;
use mu_base::random::Random;
use std::fmt::Write;

/// Language of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProgramLanguage {
    /// C11 with POSIX threads.
    C,
    /// Assembly of RISC-V (RV64IA).
    RiscV,
    /// Assembly of x86-64.
    X86,
}

impl ProgramLanguage {
    /// All languages.
    pub const ALL: [ProgramLanguage; 3] =
        [ProgramLanguage::C, ProgramLanguage::RiscV, ProgramLanguage::X86];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            ProgramLanguage::C => "c",
            ProgramLanguage::RiscV => "riscv",
            ProgramLanguage::X86 => "x86",
        }
    }
    /// Returns its description.
    pub fn summary(self) -> &'static str {
        match self {
            ProgramLanguage::C => "C with POSIX threads",
            ProgramLanguage::RiscV => "assembly of RISC-V (RV64IA) with a harness in C",
            ProgramLanguage::X86 => "assembly of x86-64 with a harness in C",
        }
    }
    /// Returns the language with a name. `None` if there is none.
    pub fn by_name(name: &str) -> Option<ProgramLanguage> {
        Self::ALL.into_iter().find(|l| l.name() == name)
    }
}

/// Size and seed of a program.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorSettings {
    /// Number of threads.
    pub threads: u32,
    /// Number of addresses.
    pub addresses: u32,
    /// Number of operations of each thread.
    pub operations: u32,
    /// Seed.
    pub seed: u64,
    /// Language.
    pub language: ProgramLanguage,
}

/// An operation of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgramOperation {
    Load(u32),
    Store(u32, u64),
    Exchange(u32, u64),
    Fence,
}

/// The file with `main`, with names between `@` for what depends on the settings.
const HARNESS: &str = include_str!("harness.c");

/// Bytes between addresses: a line of the cache.
const STRIDE: u32 = 64;

/// Returns the operations of all threads.
fn operations(settings: &GeneratorSettings) -> Vec<Vec<ProgramOperation>> {
    let mut random = Random::new(settings.seed);
    let mut value = 0;
    let mut thread = || {
        let mut recent = [0; 2];
        let mut list = Vec::new();
        for _ in 0..settings.operations {
            let address = if random.chance(1, 3) {
                *random.choose(&recent)
            } else {
                narrow::index(random.below(settings.addresses as usize))
            };
            recent = [recent[1], address];
            value += 1;
            list.push(match random.below(100) {
                0..46 => ProgramOperation::Load(address),
                46..92 => ProgramOperation::Store(address, value),
                92..96 => ProgramOperation::Exchange(address, value),
                _ => ProgramOperation::Fence,
            });
        }
        list
    };
    (0..settings.threads).map(|_| thread()).collect()
}

/// Returns the files of a program: name and text.
pub fn generate(settings: &GeneratorSettings) -> Vec<(&'static str, String)> {
    let threads = operations(settings);
    let functions = match settings.language {
        ProgramLanguage::C => c_functions(&threads),
        _ => (0..threads.len())
            .map(|t| format!("extern void thread_{t}(volatile uint64_t *memory, uint64_t *log);\n"))
            .collect(),
    };
    let harness = harness(settings, &threads, &functions);
    match settings.language {
        ProgramLanguage::C => vec![("trace.c", harness)],
        ProgramLanguage::X86 => vec![("trace.c", harness), ("threads.s", x86(&threads))],
        ProgramLanguage::RiscV => vec![("trace.c", harness), ("threads.s", risc_v(&threads))],
    }
}

/// Returns the threads as C functions of 200 operations each, so that compilers stay fast.
fn c_functions(threads: &[Vec<ProgramOperation>]) -> String {
    let mut out = String::from(
        "static inline __attribute__((always_inline)) uint64_t load(volatile uint64_t *p) { return *p; }
static inline __attribute__((always_inline)) void store(volatile uint64_t *p, uint64_t v) { *p = v; }
static inline __attribute__((always_inline)) uint64_t exchange(volatile uint64_t *p, uint64_t v)
{
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
}
static inline __attribute__((always_inline)) void fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
",
    );
    for (t, thread) in threads.iter().enumerate() {
        let parts: Vec<&[ProgramOperation]> = thread.chunks(200).collect();
        for (i, part) in parts.iter().enumerate() {
            let _ = writeln!(
                out,
                "\nstatic inline uint64_t *part_{t}_{i}(volatile uint64_t *m, uint64_t *log)\n{{"
            );
            for operation in *part {
                let _ = match operation {
                    ProgramOperation::Load(a) => {
                        writeln!(out, "    *log++ = load(m + {a} * STRIDE);")
                    }
                    ProgramOperation::Store(a, v) => {
                        writeln!(out, "    store(m + {a} * STRIDE, {v});")
                    }
                    ProgramOperation::Exchange(a, v) => {
                        writeln!(out, "    *log++ = exchange(m + {a} * STRIDE, {v});")
                    }
                    ProgramOperation::Fence => writeln!(out, "    fence();"),
                };
            }
            out += "    return log;\n}\n";
        }
        let _ =
            writeln!(out, "\nstatic void thread_{t}(volatile uint64_t *memory, uint64_t *log)\n{{");
        for i in 0..parts.len() {
            let _ = writeln!(out, "    log = part_{t}_{i}(memory, log);");
        }
        out += "    (void)log;\n}\n";
    }
    out
}

/// Returns the threads in the assembly of x86-64 (System V calls, AT&T syntax).
fn x86(threads: &[Vec<ProgramOperation>]) -> String {
    let mut out = String::from("# Generated by mu-check trace --generate.\n    .text\n");
    for (t, thread) in threads.iter().enumerate() {
        let _ = writeln!(out, "    .globl thread_{t}\nthread_{t}:");
        let mut log = 0;
        for operation in thread {
            let place = |a: u32| format!("{}(%rdi)", a * STRIDE);
            let _ = match operation {
                ProgramOperation::Load(a) => writeln!(out, "    movq {}, %rax", place(*a)),
                ProgramOperation::Store(a, v) => writeln!(out, "    movq ${v}, {}", place(*a)),
                ProgramOperation::Exchange(a, v) => {
                    writeln!(out, "    movq ${v}, %rax\n    xchgq %rax, {}", place(*a))
                }
                ProgramOperation::Fence => writeln!(out, "    mfence"),
            };
            if matches!(operation, ProgramOperation::Load(_) | ProgramOperation::Exchange(..)) {
                let _ = writeln!(out, "    movq %rax, {}(%rsi)", 8 * log);
                log += 1;
            }
        }
        out += "    ret\n";
    }
    out + "    .section .note.GNU-stack,\"\",@progbits\n"
}

/// Returns the threads in the assembly of RISC-V.
fn risc_v(threads: &[Vec<ProgramOperation>]) -> String {
    let mut out = String::from("# Generated by mu-check trace --generate.\n    .text\n");
    for (t, thread) in threads.iter().enumerate() {
        let _ = writeln!(out, "    .globl thread_{t}\nthread_{t}:");
        for operation in thread {
            // Offsets of loads and stores have 12 bits.
            let mut place = |a: u32, direct: bool| {
                let offset = a * STRIDE;
                if direct && offset < 2048 {
                    return format!("{offset}(a0)");
                }
                let _ = writeln!(out, "    li t1, {offset}\n    add t1, t1, a0");
                "(t1)".to_string()
            };
            let text = match operation {
                ProgramOperation::Load(a) => format!("    ld t0, {}", place(*a, true)),
                ProgramOperation::Store(a, v) => {
                    let place = place(*a, true);
                    format!("    li t2, {v}\n    sd t2, {place}")
                }
                ProgramOperation::Exchange(a, v) => {
                    let place = place(*a, false);
                    format!("    li t2, {v}\n    amoswap.d t0, t2, {place}")
                }
                ProgramOperation::Fence => "    fence rw, rw".to_string(),
            };
            let _ = writeln!(out, "{text}");
            if matches!(operation, ProgramOperation::Load(_) | ProgramOperation::Exchange(..)) {
                out += "    sd t0, 0(a1)\n    addi a1, a1, 8\n";
            }
        }
        out += "    ret\n";
    }
    out + "    .section .note.GNU-stack,\"\",@progbits\n"
}

/// Returns the file with `main`: threads, rounds, and the printing of traces.
fn harness(
    settings: &GeneratorSettings,
    threads: &[Vec<ProgramOperation>],
    functions: &str,
) -> String {
    let GeneratorSettings { addresses, operations, seed, language, .. } = settings;
    let mut tables = String::new();
    for (t, thread) in threads.iter().enumerate() {
        let _ = writeln!(tables, "static const struct operation program_{t}[] = {{");
        for operation in thread {
            let (kind, address, value) = match operation {
                ProgramOperation::Load(a) => ('L', *a, 0),
                ProgramOperation::Store(a, v) => ('S', *a, *v),
                ProgramOperation::Exchange(a, v) => ('X', *a, *v),
                ProgramOperation::Fence => ('F', 0, 0),
            };
            let _ = writeln!(tables, "    {{'{kind}', {address}, {value}}},");
        }
        tables += "};\n";
    }
    let names = |prefix: &str| {
        let all: Vec<String> = (0..threads.len()).map(|t| format!("{prefix}_{t}")).collect();
        all.join(", ")
    };
    let files = match language {
        ProgramLanguage::C => "trace.c",
        _ => "trace.c threads.s",
    };
    let values = [
        ("count", threads.len().to_string()),
        ("addresses", addresses.to_string()),
        ("operations", operations.to_string()),
        ("seed", seed.to_string()),
        ("name", language.name().to_string()),
        ("files", files.to_string()),
        ("stride", (STRIDE / 8).to_string()),
        ("random", (narrow::low(*seed) ^ 0x9e37_79b9).to_string()),
        ("bodies", names("thread")),
        ("programs", names("program")),
        ("functions", functions.to_string()),
        ("tables", tables),
    ];
    values
        .iter()
        .fold(HARNESS.to_string(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}
