//! Tests derived from the grammar of instructions, widths and conditions, by two routes: candidate
//! executions under sequential consistency, and all interleavings over an array of bytes.
//!
//! The second route ([`interleave`]) shares no code with the first: it interprets the abstract
//! program that the text is printed from. A seed determines a test; `SEEDS=7..8` replays it.

use super::interleave::{self, Branch, Ins, Op, Program, Size, Variable};
use super::{answer, judge, outcomes};
use mu_base::random::Random;
use mu_litmus::code::Arch;
use mu_program::outcome::Verdict;
use std::collections::BTreeSet;

/// Registers of a thread that instructions use.
pub const REGISTERS: usize = 4;

/// Constants at boundaries of widths.
const BOUNDARIES: [i128; 22] = [
    0,
    1,
    2,
    -1,
    -2,
    127,
    128,
    255,
    256,
    32767,
    32768,
    65535,
    65536,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    -(1 << 31),
    (1 << 63) - 1,
    -(1 << 63),
    (1 << 64) - 1,
    0x8000_0000_0000_0001,
];

fn boundary(random: &mut Random) -> i128 {
    *random.choose(&BOUNDARIES)
}

/// Generator of a program, with counts of each form of instruction.
struct Generator<'r> {
    random: &'r mut Random,
    arch: Arch,
    variables: Vec<Variable>,
    /// The number of accesses that the thread may still have.
    left: usize,
    /// A counter that cycles through operators and orders, so that each occurs.
    turn: usize,
}

impl Generator<'_> {
    fn register(&mut self) -> usize {
        self.random.below(REGISTERS)
    }
    /// Chooses the variable and offset of an access with at least some width.
    fn place(&mut self, least: u8) -> (usize, u8, u8) {
        loop {
            let v = self.random.below(self.variables.len());
            let size = self.variables[v].size.bytes;
            // In C an access has the type of its variable; elsewhere some accesses are narrower.
            let width = if self.arch == Arch::C || self.random.chance(1, 2) {
                size
            } else {
                *self.random.choose(&[1, 2, 4, 8])
            };
            if width <= size && width >= least {
                let offset = self.random.below(usize::from(size / width)) as u8 * width;
                return (v, offset, width);
            }
        }
    }
    fn access(&mut self) -> Vec<Ins> {
        let atomics = self.arch != Arch::RiscV;
        match self.random.below(9) {
            0..=2 => {
                let (var, at, width) = self.place(1);
                let signed = self.arch == Arch::RiscV && self.random.chance(2, 3);
                vec![Ins::Load {
                    d: self.register(),
                    var,
                    at,
                    width,
                    signed,
                    form: self.random.below(4),
                }]
            }
            3..=4 => {
                let (var, at, width) = self.place(1);
                vec![Ins::Store { s: self.register(), var, at, width, form: self.random.below(4) }]
            }
            5..=6 => {
                let (var, at, width) = self.place(if atomics { 1 } else { 4 });
                let all = [
                    Op::Swap,
                    Op::Add,
                    Op::Or,
                    Op::Clear,
                    Op::Xor,
                    Op::Max,
                    Op::Min,
                    Op::MaxU,
                    Op::MinU,
                ];
                let op = loop {
                    self.turn += 1;
                    let op = all[self.turn / 4 % all.len()];
                    let bitwise = matches!(op, Op::Swap | Op::Add | Op::Or | Op::Xor);
                    if self.arch != Arch::C || bitwise {
                        break op;
                    }
                };
                // RISC-V has `and`, but Armv8 has an operation that clears bits.
                let op = if self.arch == Arch::RiscV && op == Op::Clear { Op::And } else { op };
                let d = self.random.chance(2, 3).then(|| self.register());
                vec![Ins::Fetch { op, d, s: self.register(), var, at, width, form: self.turn % 4 }]
            }
            7 if self.arch == Arch::AArch64 => {
                let (var, at, width) = self.place(1);
                vec![Ins::Compare {
                    e: self.register(),
                    s: self.register(),
                    var,
                    at,
                    width,
                    form: self.random.below(4),
                }]
            }
            8 if self.arch == Arch::AArch64 && self.variables.iter().any(|v| v.size.bytes == 8) => {
                let var = self.variables.iter().position(|v| v.size.bytes == 8).unwrap_or(0);
                let first = self.register();
                vec![Ins::Pair {
                    load: self.random.chance(1, 2),
                    r: [first, (first + 1) % REGISTERS],
                    var,
                }]
            }
            _ if self.arch == Arch::C => self.access(),
            _ => {
                let (var, at, width) = self.place(if self.arch == Arch::RiscV { 4 } else { 1 });
                let form = self.random.below(4);
                let (d, s, t) = (self.register(), self.register(), self.register());
                // The status register differs from the registers that the instruction reads.
                let t = if t == s { (t + 1) % REGISTERS } else { t };
                let mut list = vec![Ins::Reserve { d, var, at, width, form }];
                list.extend(self.random.chance(1, 2).then(|| self.computation()));
                list.push(Ins::Conditional { t, s, var, at, width, form: self.random.below(4) });
                list
            }
        }
    }
    fn computation(&mut self) -> Ins {
        let wide = self.random.chance(1, 2);
        let (d, a, b) = (self.register(), self.register(), self.register());
        if self.random.chance(1, 3) {
            return Ins::Set { d, value: boundary(self.random) as u64 };
        }
        let all = [
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::And,
            Op::Or,
            Op::Xor,
            Op::Shl,
            Op::Shr,
            Op::Sar,
            Op::Less,
            Op::Below,
        ];
        loop {
            let op = *self.random.choose(&all);
            let fits = match self.arch {
                Arch::AArch64 => !matches!(op, Op::Sar | Op::Less | Op::Below),
                Arch::C => !matches!(op, Op::Shl | Op::Shr | Op::Sar | Op::Below),
                // These have no word form.
                _ => wide || !matches!(op, Op::And | Op::Or | Op::Xor | Op::Less | Op::Below),
            };
            if fits {
                return Ins::Compute { op, wide, d, a, b };
            }
        }
    }
    fn branch(&mut self) -> Ins {
        let wide = self.random.chance(1, 2) || self.arch != Arch::AArch64;
        let all = [
            Branch::Eq,
            Branch::Ne,
            Branch::Less,
            Branch::LessEqual,
            Branch::Greater,
            Branch::GreaterEqual,
            Branch::Below,
            Branch::BelowEqual,
            Branch::Above,
            Branch::AboveEqual,
            Branch::Zero,
            Branch::NotZero,
        ];
        loop {
            let when = *self.random.choose(&all);
            let unsigned = matches!(
                when,
                Branch::Below | Branch::BelowEqual | Branch::Above | Branch::AboveEqual
            );
            if self.arch != Arch::C || !unsigned {
                return Ins::Skip { when, wide, a: self.register(), b: self.register() };
            }
        }
    }
    fn thread(&mut self) -> Vec<Ins> {
        let mut list = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            match self.random.below(8) {
                0..=4 if self.left > 0 => {
                    let more = self.access();
                    self.left -= 1;
                    list.extend(more);
                }
                5 => list.push(Ins::Fence(self.random.below(12))),
                6 => {
                    // A branch skips the instruction after it.
                    let skip = self.branch();
                    let over = self.computation();
                    list.extend([skip, over]);
                }
                _ => {
                    let own = self.computation();
                    list.push(own);
                }
            }
        }
        list
    }
}

/// Generates a random program from a seed.
fn program(random: &mut Random, arch: Arch, seed: u64) -> Program {
    let sizes = [
        (1, true),
        (1, false),
        (2, true),
        (2, false),
        (4, true),
        (4, false),
        (8, true),
        (8, false),
    ];
    let size = |random: &mut Random| {
        let (bytes, signed) = *random.choose(&sizes);
        Size { bytes, signed }
    };
    let variables = (0..2)
        .map(|v| {
            // Atomic instructions of RISC-V need four bytes: the first variable has them.
            let wide = arch == Arch::RiscV && v == 0;
            let declared = !wide && (arch == Arch::C || random.chance(3, 4));
            let size = if wide && random.chance(1, 2) {
                return Variable {
                    declared: true,
                    size: Size { bytes: 8, signed: random.chance(1, 2) },
                    initial: boundary(random),
                };
            } else if declared {
                size(random)
            } else {
                Size { bytes: 4, signed: true }
            };
            Variable {
                declared,
                size,
                initial: if random.chance(1, 2) { boundary(random) } else { 0 },
            }
        })
        .collect();
    let threads = 2;
    let registers = (0..threads)
        .map(|_| {
            (0..REGISTERS)
                .map(|_| {
                    let declared = arch == Arch::C || random.chance(1, 3);
                    let size =
                        if declared { size(random) } else { Size { bytes: 4, signed: true } };
                    Variable {
                        declared,
                        size,
                        initial: if random.chance(2, 3) { boundary(random) } else { 0 },
                    }
                })
                .collect()
        })
        .collect();
    let mut generator = Generator { random, arch, variables, left: 0, turn: seed as usize };
    let code = (0..threads)
        .map(|_| {
            generator.left = 2;
            generator.thread()
        })
        .collect();
    Program { arch, variables: generator.variables, registers, code }
}

/// Generates a proposition over the observations of a program. Returns its text, and its truth for
/// each outcome.
fn proposition(
    random: &mut Random,
    names: &[(String, Size)],
    all: &[Vec<u64>],
    depth: u32,
) -> (String, Vec<bool>) {
    let kind = if depth == 0 { 0 } else { random.below(6) };
    match kind {
        1 => {
            let (text, truth) = proposition(random, names, all, depth - 1);
            (format!("not ({text})"), truth.iter().map(|t| !t).collect())
        }
        2..=4 => {
            let (a, p) = proposition(random, names, all, depth - 1);
            let (b, q) = proposition(random, names, all, depth - 1);
            let (sign, of): (_, fn(bool, bool) -> bool) = [
                ("/\\", (|a, b| a && b) as fn(bool, bool) -> bool),
                ("\\/", |a, b| a || b),
                ("=>", |a, b| !a || b),
            ][kind - 2];
            (format!("(({a}) {sign} ({b}))"), p.iter().zip(&q).map(|(a, b)| of(*a, *b)).collect())
        }
        _ => {
            let i = random.below(names.len());
            let (name, size) = &names[i];
            let bits = u32::from(size.bytes) * 8;
            // Half of the constants are values of outcomes, or close to them.
            let number = match random.below(4) {
                0 => boundary(random),
                1 => size.number(random.choose(all)[i]) + [-1, 0, 1][random.below(3)],
                2 => i128::from(interleave::low(random.choose(all)[i], bits)),
                _ => size.number(random.choose(all)[i]),
            };
            let number = if (-(1 << 63)..1 << 64).contains(&number) { number } else { 0 };
            let text = if random.chance(1, 3) {
                format!("{:#x}", number as u64)
            } else {
                number.to_string()
            };
            let (equal, sign) = if random.chance(1, 5) { (false, "!=") } else { (true, "=") };
            let same =
                |value: u64| interleave::low(value, bits) == interleave::low(number as u64, bits);
            (format!("{name}{sign}{text}"), all.iter().map(|o| same(o[i]) == equal).collect())
        }
    }
}

/// Returns the random generator of a seed, after generating the program from it.
fn seeded_program(arch: Arch, seed: u64) -> (Random, Program) {
    let mut random = Random::new(seed.wrapping_mul(5) + arch as u64);
    let program = program(&mut random, arch, seed);
    (random, program)
}

/// Compares both routes on a seed.
fn compare(arch: Arch, seed: u64) {
    let (mut random, program) = seeded_program(arch, seed);
    let all: Vec<Vec<u64>> = interleave::outcomes(&program).into_iter().collect();
    let names = program.names();
    let body = program.text(seed);
    let line = |o: &Vec<u64>| {
        let mut items: Vec<String> = names
            .iter()
            .zip(o)
            .map(|((name, size), v)| format!("{name}={};", size.number(*v)))
            .collect();
        items.sort();
        items.join(" ")
    };
    let wanted: BTreeSet<String> = all.iter().map(line).collect();
    let sc = judge(arch, "sc");
    let listed = format!(
        "{body}locations [{}]\n",
        names.iter().map(|n| format!("{}; ", n.0)).collect::<String>()
    );
    assert_eq!(outcomes(&answer(&listed, &sc)), wanted, "{} seed {seed}\n{listed}", arch.name());
    for _ in 0..3 {
        let (text, truth) = proposition(&mut random, &names, &all, 2);
        let quantifier = *random.choose(&["exists", "~exists", "forall"]);
        let holds = match quantifier {
            "exists" => truth.contains(&true),
            "~exists" => !truth.contains(&true),
            _ => !truth.contains(&false),
        };
        let text = format!("{body}{quantifier} ({text})\n");
        let verdict = answer(&text, &sc).answer.verdict;
        assert_eq!(
            verdict,
            if holds { Verdict::Ok } else { Verdict::No },
            "{} seed {seed}\n{text}",
            arch.name()
        );
    }
}

/// Returns the words that must occur in the tests of an architecture, because a form that is never
/// generated is never tested.
fn required_words(arch: Arch) -> Vec<String> {
    let mut list: Vec<String> = Vec::new();
    let mut product = |stems: &[&str], orders: &[&str], ends: &[&str]| {
        for stem in stems {
            for order in orders {
                list.extend(ends.iter().map(|end| format!("{stem}{order}{end}")));
            }
        }
    };
    match arch {
        Arch::AArch64 => {
            let narrow = ["", "B", "H"];
            product(
                &["LDR", "LDAR", "LDAPR", "STR", "STLR", "LDXR", "LDAXR", "STXR", "STLXR"],
                &[""],
                &narrow,
            );
            let atomics =
                ["SWP", "LDADD", "LDSET", "LDCLR", "LDEOR", "LDSMAX", "LDSMIN", "LDUMAX", "LDUMIN"];
            product(&atomics, &["", "A", "L", "AL"], &[""]);
            product(&atomics, &[""], &narrow);
            product(&["CAS"], &["", "A", "L", "AL"], &narrow);
            product(
                &["STADD", "STSET", "STCLR", "STEOR", "STSMAX", "STSMIN", "STUMAX", "STUMIN"],
                &[""],
                &[""],
            );
            product(
                &[
                    "LDP", "STP", "MOV", "ADD", "SUB", "MUL", "AND", "ORR", "EOR", "LSL", "LSR",
                    "CMP", "CBZ", "CBNZ",
                ],
                &[""],
                &[""],
            );
            product(&["B."], &["EQ", "NE", "LT", "LE", "GT", "GE", "LO", "LS", "HI", "HS"], &[""]);
            product(&["DMB", "DSB", "ISB"], &[""], &[""]);
        }
        Arch::RiscV => {
            let orders = ["", ".aq", ".rl", ".aq.rl"];
            product(
                &["lb", "lh", "lw", "ld", "lbu", "lhu", "lwu", "sb", "sh", "sw", "sd"],
                &[""],
                &[""],
            );
            product(&["lr.w", "lr.d", "sc.w", "sc.d"], &orders, &[""]);
            let atomics = ["swap", "add", "and", "or", "xor", "max", "min", "maxu", "minu"];
            product(&["amo"], &atomics, &[".w", ".d"]);
            product(&["amoadd.w", "amoswap.d"], &orders, &[""]);
            product(&["add", "sub", "mul", "sll", "srl", "sra"], &[""], &["", "w"]);
            product(
                &["and", "or", "xor", "slt", "sltu", "li", "fence", "fence.tso", "fence.i"],
                &[""],
                &[""],
            );
            product(
                &["b"],
                &["eq", "ne", "lt", "le", "gt", "ge", "ltu", "leu", "gtu", "geu", "eqz", "nez"],
                &[""],
            );
        }
        _ => {
            product(
                &["atomic_"],
                &["load", "store", "exchange", "fetch_add", "fetch_or", "fetch_xor"],
                &["_explicit"],
            );
            product(&["atomic_thread_fence", "if", "*v0", "*v1"], &[""], &[""]);
        }
    }
    list
}

#[test]
fn interleavings_and_executions_agree() {
    let range = std::env::var("SEEDS").unwrap_or("0..400".into());
    let (from, to) = range
        .split_once("..")
        .map(|(a, b)| (a.parse::<u64>().unwrap(), b.parse::<u64>().unwrap()))
        .unwrap();
    for arch in [Arch::AArch64, Arch::RiscV, Arch::C] {
        (from..to).for_each(|seed| compare(arch, seed));
    }
}

#[test]
fn every_form_is_generated() {
    for arch in [Arch::AArch64, Arch::RiscV, Arch::C] {
        let mut words: BTreeSet<String> = BTreeSet::new();
        for seed in 0..4000 {
            let lines = seeded_program(arch, seed).1.instructions();
            words
                .extend(lines.iter().map(|l| l.split([' ', '(']).next().unwrap_or("").to_string()));
        }
        let missing: Vec<String> =
            required_words(arch).into_iter().filter(|w| !words.contains(w)).collect();
        assert!(missing.is_empty(), "{}: never generated: {missing:?}", arch.name());
    }
}
