//! Abstract programs of two threads: printed as litmus tests of an architecture, and executed by
//! all interleavings over arrays of bytes. This shares no code with the parser of litmus tests.

use mu_litmus::code::Arch;
use std::collections::{BTreeSet, HashSet};

/// Width in bytes and signedness of a type.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub bytes: u8,
    pub signed: bool,
}

/// Returns the lowest bits of a value.
pub fn low(value: u64, bits: u32) -> u64 {
    if bits >= 64 { value } else { value & ((1 << bits) - 1) }
}

impl Size {
    fn bits(self) -> u32 {
        u32::from(self.bytes) * 8
    }
    /// Returns the number that the lowest bytes of a value represent.
    pub fn number(self, value: u64) -> i128 {
        let (bits, low_bits) = (self.bits(), low(value, self.bits()));
        let negative = self.signed && low_bits >> (bits - 1) & 1 == 1;
        i128::from(low_bits) - if negative { 1 << bits } else { 0 }
    }
    /// Converts a value to this type, extended to 64 bits.
    fn convert(self, value: u64) -> u64 {
        self.number(value) as u64
    }
    fn name(self) -> String {
        format!("{}int{}_t", if self.signed { "" } else { "u" }, self.bits())
    }
}

/// A variable or register: its type, true if the text declares it, its initial value.
#[derive(Clone, Debug)]
pub struct Variable {
    pub declared: bool,
    pub size: Size,
    pub initial: i128,
}

/// Operators of arithmetic and of read-modify-writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Swap,
    Add,
    Sub,
    Mul,
    And,
    Or,
    Clear,
    Xor,
    Shl,
    Shr,
    Sar,
    Less,
    Below,
    Max,
    Min,
    MaxU,
    MinU,
}

/// Conditions of branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    Eq,
    Ne,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Below,
    BelowEqual,
    Above,
    AboveEqual,
    Zero,
    NotZero,
}

/// An instruction. `form` is its memory order, `at` the offset in its variable.
#[derive(Clone, Debug)]
pub enum Ins {
    Set {
        d: usize,
        value: u64,
    },
    Compute {
        op: Op,
        wide: bool,
        d: usize,
        a: usize,
        b: usize,
    },
    Load {
        d: usize,
        var: usize,
        at: u8,
        width: u8,
        signed: bool,
        form: usize,
    },
    Store {
        s: usize,
        var: usize,
        at: u8,
        width: u8,
        form: usize,
    },
    Fetch {
        op: Op,
        d: Option<usize>,
        s: usize,
        var: usize,
        at: u8,
        width: u8,
        form: usize,
    },
    Compare {
        e: usize,
        s: usize,
        var: usize,
        at: u8,
        width: u8,
        form: usize,
    },
    Pair {
        load: bool,
        r: [usize; 2],
        var: usize,
    },
    Reserve {
        d: usize,
        var: usize,
        at: u8,
        width: u8,
        form: usize,
    },
    Conditional {
        t: usize,
        s: usize,
        var: usize,
        at: u8,
        width: u8,
        form: usize,
    },
    Fence(usize),
    /// Skips the next instruction.
    Skip {
        when: Branch,
        wide: bool,
        a: usize,
        b: usize,
    },
}

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    pub arch: Arch,
    pub variables: Vec<Variable>,
    /// The registers of each thread.
    pub registers: Vec<Vec<Variable>>,
    pub code: Vec<Vec<Ins>>,
}

const ORDERS: [&str; 4] = ["relaxed", "acquire", "release", "seq_cst"];

impl Program {
    /// Returns the components of outcomes, in order: registers, then variables.
    pub fn names(&self) -> Vec<(String, Size)> {
        let register = |r: usize| match self.arch {
            Arch::AArch64 => format!("X{}", 10 + r),
            Arch::RiscV => format!("x{}", 10 + r),
            _ => format!("r{r}"),
        };
        let threads = self.registers.iter().enumerate();
        let registers =
            threads.flat_map(|(t, list)| list.iter().enumerate().map(move |(r, v)| (t, r, v.size)));
        let registers = registers.map(|(t, r, size)| (format!("{t}:{}", register(r)), size));
        registers
            .chain(self.variables.iter().enumerate().map(|(v, x)| (format!("[v{v}]"), x.size)))
            .collect()
    }
    /// Prints the test up to the question.
    pub fn text(&self, seed: u64) -> String {
        let mut initial = String::new();
        for (v, x) in self.variables.iter().enumerate() {
            let ty = if x.declared { format!("{} ", x.size.name()) } else { String::new() };
            initial += &format!("{ty}v{v}={}; ", x.initial);
        }
        if self.arch == Arch::C {
            let parameters: Vec<String> = self
                .variables
                .iter()
                .enumerate()
                .map(|(v, x)| format!("{}* v{v}", x.size.name()))
                .collect();
            let mut text = format!("C random{seed}\n{{ {initial} }}\n");
            for (t, code) in self.code.iter().enumerate() {
                text += &format!("P{t} ({}) {{\n", parameters.join(", "));
                for (r, x) in self.registers[t].iter().enumerate() {
                    text += &format!("  {} r{r} = {};\n", x.size.name(), literal(x.initial as u64));
                }
                code.iter().for_each(|i| text += &format!("  {}\n", c(i)));
                text += "}\n";
            }
            return text;
        }
        for (t, list) in self.registers.iter().enumerate() {
            let (letter, base) = if self.arch == Arch::RiscV { ("x", 26) } else { ("X", 20) };
            for (r, x) in list.iter().enumerate() {
                let ty = if x.declared { format!("{} ", x.size.name()) } else { String::new() };
                initial += &format!("{ty}{t}:{letter}{}={}; ", 10 + r, x.initial);
            }
            (0..self.variables.len())
                .for_each(|v| initial += &format!("{t}:{letter}{}=v{v}; ", base + v));
        }
        let columns: Vec<Vec<String>> = self.code.iter().map(|code| self.rows(code)).collect();
        let mut text = format!("{} random{seed}\n{{ {initial} }}\nP0 | P1 ;\n", self.arch.name());
        for i in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
            let cells: Vec<&str> =
                columns.iter().map(|c| c.get(i).map_or("", String::as_str)).collect();
            text += &format!("{} ;\n", cells.join(" | "));
        }
        text
    }
    /// Prints the instructions.
    pub fn instructions(&self) -> Vec<String> {
        if self.arch == Arch::C {
            let list = self.code.iter().flatten().map(c);
            return list
                .map(|i| {
                    i.strip_prefix("r")
                        .and_then(|i| i.split_once("= "))
                        .map_or(i.clone(), |i| i.1.to_string())
                })
                .collect();
        }
        self.code.iter().flat_map(|code| self.rows(code)).collect()
    }
    /// Prints the rows of a thread.
    fn rows(&self, code: &[Ins]) -> Vec<String> {
        let mut rows = Vec::new();
        let mut label = None;
        for (i, ins) in code.iter().enumerate() {
            rows.extend(if self.arch == Arch::RiscV { riscv(ins, i) } else { arm(ins, i) });
            if let Some(l) = label.take() {
                rows.push(format!("L{l}:"));
            }
            if matches!(ins, Ins::Skip { .. }) {
                label = Some(i);
            }
        }
        rows.extend(label.map(|l| format!("L{l}:")));
        rows
    }
}

fn arm(ins: &Ins, number: usize) -> Vec<String> {
    let sized = |r: usize, bytes: u8| format!("{}{}", if bytes == 8 { "X" } else { "W" }, 10 + r);
    let end = |bytes: u8| match bytes {
        1 => "B",
        2 => "H",
        _ => "",
    };
    let order = |form: usize| ["", "A", "L", "AL"][form];
    // Some forms have no offset: a register contains the address.
    let plain = |var: usize, at: u8| match at {
        0 => (None, format!("[X{}]", 20 + var)),
        _ => (Some(format!("ADD X24,X{},#{at}", 20 + var)), "[X24]".to_string()),
    };
    let with = |(first, address): (Option<String>, String), text: String| {
        first.into_iter().chain([format!("{text},{address}")]).collect()
    };
    match ins {
        Ins::Set { d, value } => vec![format!("MOV {},#{}", sized(*d, 8), *value as i64)],
        Ins::Compute { op, wide, d, a, b } => {
            let name = match op {
                Op::Add => "ADD",
                Op::Sub => "SUB",
                Op::Mul => "MUL",
                Op::And => "AND",
                Op::Or => "ORR",
                Op::Xor => "EOR",
                Op::Shl => "LSL",
                _ => "LSR",
            };
            let bytes = if *wide { 8 } else { 4 };
            vec![format!("{name} {},{},{}", sized(*d, bytes), sized(*a, bytes), sized(*b, bytes))]
        }
        Ins::Load { d, var, at, width, form, .. } => match form {
            0 | 1 => {
                vec![format!("LDR{} {},[X{},#{at}]", end(*width), sized(*d, *width), 20 + var)]
            }
            _ => with(
                plain(*var, *at),
                format!("{}{} {}", ["LDAR", "LDAPR"][form - 2], end(*width), sized(*d, *width)),
            ),
        },
        Ins::Store { s, var, at, width, form } => match form {
            0..=2 => {
                vec![format!("STR{} {},[X{},#{at}]", end(*width), sized(*s, *width), 20 + var)]
            }
            _ => with(plain(*var, *at), format!("STLR{} {}", end(*width), sized(*s, *width))),
        },
        Ins::Fetch { op, d, s, var, at, width, form } => {
            let name = match op {
                Op::Swap => "SWP",
                Op::Add => "ADD",
                Op::Or => "SET",
                Op::Clear => "CLR",
                Op::Xor => "EOR",
                Op::Max => "SMAX",
                Op::Min => "SMIN",
                Op::MaxU => "UMAX",
                _ => "UMIN",
            };
            let load = if *op == Op::Swap { "" } else { "LD" };
            let zero = if *width == 8 { "XZR" } else { "WZR" };
            let text = match d {
                None if *op != Op::Swap && *form < 2 => {
                    format!("ST{name}{}{} {}", ["", "L"][*form], end(*width), sized(*s, *width))
                }
                d => {
                    let into = d.map_or(zero.to_string(), |d| sized(d, *width));
                    format!(
                        "{load}{name}{}{} {},{into}",
                        order(*form),
                        end(*width),
                        sized(*s, *width)
                    )
                }
            };
            with(plain(*var, *at), text)
        }
        Ins::Compare { e, s, var, at, width, form } => with(
            plain(*var, *at),
            format!(
                "CAS{}{} {},{}",
                order(*form),
                end(*width),
                sized(*e, *width),
                sized(*s, *width)
            ),
        ),
        Ins::Pair { load, r, var } => {
            vec![format!(
                "{} {},{},[X{}]",
                if *load { "LDP" } else { "STP" },
                sized(r[0], 4),
                sized(r[1], 4),
                20 + var
            )]
        }
        Ins::Reserve { d, var, at, width, form } => with(
            plain(*var, *at),
            format!("{}{} {}", ["LDXR", "LDAXR"][form % 2], end(*width), sized(*d, *width)),
        ),
        Ins::Conditional { t, s, var, at, width, form } => {
            let name = ["STXR", "STLXR"][form % 2];
            with(
                plain(*var, *at),
                format!("{name}{} {},{}", end(*width), sized(*t, 4), sized(*s, *width)),
            )
        }
        Ins::Fence(n) => {
            let all = [
                "DMB SY",
                "DMB LD",
                "DMB ST",
                "DSB SY",
                "DSB LD",
                "DSB ST",
                "ISB",
                "DMB ISH",
                "DMB ISHLD",
                "DSB ISHST",
                "DMB OSH",
                "NOP",
            ];
            vec![all[*n].to_string()]
        }
        Ins::Skip { when, wide, a, b } => {
            let bytes = if *wide { 8 } else { 4 };
            let name = match when {
                Branch::Zero => return vec![format!("CBZ {},L{number}", sized(*a, bytes))],
                Branch::NotZero => return vec![format!("CBNZ {},L{number}", sized(*a, bytes))],
                Branch::Eq => "EQ",
                Branch::Ne => "NE",
                Branch::Less => "LT",
                Branch::LessEqual => "LE",
                Branch::Greater => "GT",
                Branch::GreaterEqual => "GE",
                Branch::Below => "LO",
                Branch::BelowEqual => "LS",
                Branch::Above => "HI",
                Branch::AboveEqual => "HS",
            };
            vec![
                format!("CMP {},{}", sized(*a, bytes), sized(*b, bytes)),
                format!("B.{name} L{number}"),
            ]
        }
    }
}

fn riscv(ins: &Ins, number: usize) -> Vec<String> {
    let x = |r: usize| format!("x{}", 10 + r);
    let order = |form: usize| ["", ".aq", ".rl", ".aq.rl"][form];
    let letter = |width: u8| match width {
        1 => "b",
        2 => "h",
        4 => "w",
        _ => "d",
    };
    let plain = |var: usize, at: u8| match at {
        0 => (None, format!("(x{})", 26 + var)),
        _ => (Some(format!("addi x24,x{},{at}", 26 + var)), "(x24)".to_string()),
    };
    let with = |(first, address): (Option<String>, String), text: String| {
        first.into_iter().chain([format!("{text},{address}")]).collect()
    };
    match ins {
        Ins::Set { d, value } => vec![format!("li {},{}", x(*d), *value as i64)],
        Ins::Compute { op, wide, d, a, b } => {
            let name = match op {
                Op::Add => "add",
                Op::Sub => "sub",
                Op::Mul => "mul",
                Op::And => "and",
                Op::Or => "or",
                Op::Xor => "xor",
                Op::Shl => "sll",
                Op::Shr => "srl",
                Op::Sar => "sra",
                Op::Less => "slt",
                _ => "sltu",
            };
            vec![format!("{name}{} {},{},{}", if *wide { "" } else { "w" }, x(*d), x(*a), x(*b))]
        }
        Ins::Load { d, var, at, width, signed, form } => {
            let unsigned = if *signed || *width == 8 { "" } else { "u" };
            let order = if *form == 3 { ".aq" } else { "" };
            vec![format!("l{}{unsigned}{order} {},{at}(x{})", letter(*width), x(*d), 26 + var)]
        }
        Ins::Store { s, var, at, width, form } => {
            let order = if *form == 3 { ".rl" } else { "" };
            vec![format!("s{}{order} {},{at}(x{})", letter(*width), x(*s), 26 + var)]
        }
        Ins::Fetch { op, d, s, var, at, width, form } => {
            let name = match op {
                Op::Swap => "swap",
                Op::Add => "add",
                Op::And => "and",
                Op::Or => "or",
                Op::Xor => "xor",
                Op::Max => "max",
                Op::Min => "min",
                Op::MaxU => "maxu",
                _ => "minu",
            };
            let into = d.map_or("x0".to_string(), x);
            with(
                plain(*var, *at),
                format!("amo{name}.{}{} {into},{}", letter(*width), order(*form), x(*s)),
            )
        }
        Ins::Reserve { d, var, at, width, form } => {
            with(plain(*var, *at), format!("lr.{}{} {}", letter(*width), order(*form), x(*d)))
        }
        Ins::Conditional { t, s, var, at, width, form } => with(
            plain(*var, *at),
            format!("sc.{}{} {},{}", letter(*width), order(*form), x(*t), x(*s)),
        ),
        Ins::Fence(n) => {
            let all = ["rw,rw", "r,r", "w,w", "r,rw", "rw,w", "w,r", "r,w", "w,rw", "rw,r"];
            vec![all.get(*n).map_or_else(
                || ["fence.tso", "fence.i", "fence"][n - 9].to_string(),
                |kinds| format!("fence {kinds}"),
            )]
        }
        Ins::Skip { when, a, b, .. } => {
            let name = match when {
                Branch::Zero => return vec![format!("beqz {},L{number}", x(*a))],
                Branch::NotZero => return vec![format!("bnez {},L{number}", x(*a))],
                Branch::Eq => "beq",
                Branch::Ne => "bne",
                Branch::Less => "blt",
                Branch::LessEqual => "ble",
                Branch::Greater => "bgt",
                Branch::GreaterEqual => "bge",
                Branch::Below => "bltu",
                Branch::BelowEqual => "bleu",
                Branch::Above => "bgtu",
                Branch::AboveEqual => "bgeu",
            };
            vec![format!("{name} {},{},L{number}", x(*a), x(*b))]
        }
        Ins::Compare { .. } | Ins::Pair { .. } => Vec::new(),
    }
}

/// Prints a constant of C: the least one has no literal.
fn literal(value: u64) -> String {
    if value as i64 == i64::MIN {
        "(-9223372036854775807 - 1)".to_string()
    } else {
        (value as i64).to_string()
    }
}

fn c(ins: &Ins) -> String {
    let sign = |op: &Op| match op {
        Op::Add => "+",
        Op::Sub => "-",
        Op::Mul => "*",
        Op::And => "&",
        Op::Or => "|",
        Op::Xor => "^",
        _ => "<",
    };
    match ins {
        Ins::Set { d, value } => format!("r{d} = {};", literal(*value)),
        Ins::Compute { op, d, a, b, .. } => format!("r{d} = r{a} {} r{b};", sign(op)),
        Ins::Load { d, var, form: 2, .. } => format!("r{d} = *v{var};"),
        Ins::Load { d, var, form, .. } => {
            format!("r{d} = atomic_load_explicit(v{var}, memory_order_{});", ORDERS[*form])
        }
        Ins::Store { s, var, form: 1, .. } => format!("*v{var} = r{s};"),
        Ins::Store { s, var, form, .. } => {
            format!("atomic_store_explicit(v{var}, r{s}, memory_order_{});", ORDERS[*form])
        }
        Ins::Fetch { op, d, s, var, form, .. } => {
            let name = match op {
                Op::Swap => "exchange",
                Op::Add => "fetch_add",
                Op::Or => "fetch_or",
                _ => "fetch_xor",
            };
            let into = d.map_or(String::new(), |d| format!("r{d} = "));
            format!("{into}atomic_{name}_explicit(v{var}, r{s}, memory_order_{});", ORDERS[*form])
        }
        Ins::Fence(n) => format!("atomic_thread_fence(memory_order_{});", ORDERS[n % 4]),
        Ins::Skip { when, a, b, .. } => {
            // The next statement is the one that it skips.
            let sign = match when {
                Branch::Zero => return format!("if (r{a})"),
                Branch::NotZero => return format!("if (!r{a})"),
                Branch::Eq => "==",
                Branch::Ne => "!=",
                Branch::Less => "<",
                Branch::LessEqual => "<=",
                Branch::Greater => ">",
                _ => ">=",
            };
            format!("if (!(r{a} {sign} r{b}))")
        }
        _ => String::new(),
    }
}

/// A state of all threads.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    at: Vec<usize>,
    /// The halves of a pair that are done.
    half: Vec<u8>,
    registers: Vec<Vec<u64>>,
    memory: Vec<[u8; 8]>,
    reserved: Vec<Option<(usize, u8, u8)>>,
}

impl State {
    fn read(&self, var: usize, at: u8, width: u8) -> u64 {
        (0..width).fold(0, |v, i| v | u64::from(self.memory[var][usize::from(at + i)]) << (8 * i))
    }
    fn write(&mut self, t: usize, var: usize, at: u8, width: u8, value: u64) {
        for i in 0..width {
            self.memory[var][usize::from(at + i)] = (value >> (8 * i)) as u8;
        }
        for (u, reserved) in self.reserved.iter_mut().enumerate() {
            let hit = |(v, a, w): (usize, u8, u8)| v == var && a < at + width && at < a + w;
            if u != t && reserved.is_some_and(hit) {
                *reserved = None;
            }
        }
    }
}

/// Computes all outcomes: registers, then variables.
pub fn outcomes(program: &Program) -> BTreeSet<Vec<u64>> {
    let first = |x: &Variable| {
        if program.arch == Arch::C { x.size.convert(x.initial as u64) } else { x.initial as u64 }
    };
    let start = State {
        at: vec![0; program.code.len()],
        half: vec![0; program.code.len()],
        registers: program.registers.iter().map(|list| list.iter().map(first).collect()).collect(),
        memory: program.variables.iter().map(|v| (v.initial as u64).to_le_bytes()).collect(),
        reserved: vec![None; program.code.len()],
    };
    let (mut todo, mut seen, mut found) = (vec![start], HashSet::new(), BTreeSet::new());
    while let Some(state) = todo.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        let mut ended = true;
        for t in 0..program.code.len() {
            if let Some(ins) = program.code[t].get(state.at[t]) {
                ended = false;
                step(program, &state, t, ins, &mut todo);
            }
        }
        if ended {
            let variables =
                program.variables.iter().enumerate().map(|(v, x)| state.read(v, 0, x.size.bytes));
            found.insert(state.registers.iter().flatten().copied().chain(variables).collect());
        }
    }
    found
}

/// Adds the states after one instruction.
fn step(program: &Program, state: &State, t: usize, ins: &Ins, todo: &mut Vec<State>) {
    let mut next = state.clone();
    next.at[t] += 1;
    let r = |i: usize| state.registers[t][i];
    let is_c = program.arch == Arch::C;
    // The register after an assignment.
    let put = |next: &mut State, d: usize, value: u64| {
        next.registers[t][d] =
            if is_c { program.registers[t][d].size.convert(value) } else { value };
    };
    let extended =
        |value: u64, width: u8, signed: bool| Size { bytes: width, signed }.convert(value);
    let risc = program.arch == Arch::RiscV;
    match ins {
        Ins::Set { d, value } => put(&mut next, *d, *value),
        Ins::Compute { op, wide, d, a, b } => {
            let value = if is_c {
                arithmetic(
                    *op,
                    r(*a),
                    program.registers[t][*a].size,
                    r(*b),
                    program.registers[t][*b].size,
                )
            } else {
                let bits = if *wide { 64 } else { 32 };
                let narrow = Size { bytes: if *wide { 8 } else { 4 }, signed: true };
                let (x, y) = (low(r(*a), bits), low(r(*b), bits));
                let value = match op {
                    Op::Shl => x << (y as u32 % bits),
                    Op::Shr => x >> (y as u32 % bits),
                    Op::Sar => (narrow.number(x) >> (y as u32 % bits)) as u64,
                    Op::Less => u64::from(narrow.number(x) < narrow.number(y)),
                    Op::Below => u64::from(x < y),
                    op => combine(*op, x, y, 8),
                };
                if *wide { value } else { extended(value, 4, risc) }
            };
            put(&mut next, *d, value);
        }
        Ins::Load { d, var, at, width, signed, .. } => {
            let signed = if is_c { program.variables[*var].size.signed } else { *signed };
            let value = extended(state.read(*var, *at, *width), *width, signed);
            put(&mut next, *d, value);
        }
        Ins::Store { s, var, at, width, .. } => next.write(t, *var, *at, *width, r(*s)),
        Ins::Fetch { op, d, s, var, at, width, .. } => {
            let old = state.read(*var, *at, *width);
            next.write(t, *var, *at, *width, combine(*op, old, r(*s), *width));
            if let Some(d) = d {
                let signed = if is_c { program.variables[*var].size.signed } else { risc };
                put(&mut next, *d, extended(old, *width, signed));
            }
        }
        Ins::Compare { e, s, var, at, width, .. } => {
            let old = state.read(*var, *at, *width);
            if old == low(r(*e), u32::from(*width) * 8) {
                next.write(t, *var, *at, *width, r(*s));
            }
            put(&mut next, *e, old);
        }
        Ins::Pair { load, r: pair, var } => {
            // The halves are unordered.
            for i in [0, 1].into_iter().filter(|i| state.half[t] >> i & 1 == 0) {
                let mut after = state.clone();
                let at = 4 * i as u8;
                if *load {
                    after.registers[t][pair[i]] = state.read(*var, at, 4);
                } else {
                    after.write(t, *var, at, 4, r(pair[i]));
                }
                after.half[t] |= 1 << i;
                if after.half[t] == 3 {
                    (after.half[t], after.at[t]) = (0, state.at[t] + 1);
                }
                todo.push(after);
            }
            return;
        }
        Ins::Reserve { d, var, at, width, .. } => {
            next.reserved[t] = Some((*var, *at, *width));
            put(&mut next, *d, extended(state.read(*var, *at, *width), *width, risc));
        }
        Ins::Conditional { t: status, s, var, at, width, .. } => {
            let reserved = next.reserved[t].take();
            let mut failed = next.clone();
            failed.registers[t][*status] = 1;
            todo.push(failed);
            if reserved != Some((*var, *at, *width)) {
                return;
            }
            next.write(t, *var, *at, *width, r(*s));
            next.registers[t][*status] = 0;
        }
        Ins::Fence(_) => {}
        Ins::Skip { when, wide, a, b } => {
            let size = |signed| Size { bytes: if *wide { 8 } else { 4 }, signed };
            let pair = |signed: bool| match is_c {
                true => {
                    convert_to_common(
                        r(*a),
                        program.registers[t][*a].size,
                        r(*b),
                        program.registers[t][*b].size,
                    )
                    .0
                }
                false => (size(signed).number(r(*a)), size(signed).number(r(*b))),
            };
            let ((x, y), (i, j)) = (pair(true), pair(false));
            let zero = if is_c { r(*a) == 0 } else { size(false).number(r(*a)) == 0 };
            let taken = match when {
                Branch::Eq => x == y,
                Branch::Ne => x != y,
                Branch::Less => x < y,
                Branch::LessEqual => x <= y,
                Branch::Greater => x > y,
                Branch::GreaterEqual => x >= y,
                Branch::Below => i < j,
                Branch::BelowEqual => i <= j,
                Branch::Above => i > j,
                Branch::AboveEqual => i >= j,
                Branch::Zero => zero,
                Branch::NotZero => !zero,
            };
            next.at[t] += usize::from(taken);
        }
    }
    todo.push(next);
}

/// Applies an operator of a read-modify-write, or a plain one, to the lowest bytes of two values.
fn combine(op: Op, old: u64, given: u64, width: u8) -> u64 {
    let number = |v: u64, signed: bool| Size { bytes: width, signed }.number(v);
    let pick = |signed: bool, greater: bool| {
        if (number(old, signed) > number(given, signed)) == greater { old } else { given }
    };
    match op {
        Op::Add => old.wrapping_add(given),
        Op::Sub => old.wrapping_sub(given),
        Op::Mul => old.wrapping_mul(given),
        Op::And => old & given,
        Op::Or => old | given,
        Op::Clear => old & !given,
        Op::Xor => old ^ given,
        Op::Max => pick(true, true),
        Op::Min => pick(true, false),
        Op::MaxU => pick(false, true),
        Op::MinU => pick(false, false),
        _ => given,
    }
}

/// Converts two values of C to their common type, which is returned too.
fn convert_to_common(a: u64, ta: Size, b: u64, tb: Size) -> ((i128, i128), Size) {
    let int = Size { bytes: 4, signed: true };
    let promoted = |t: Size| if t.bytes < 4 { int } else { t };
    let (pa, pb) = (promoted(ta), promoted(tb));
    let common = match pa.bytes.cmp(&pb.bytes) {
        std::cmp::Ordering::Greater => pa,
        std::cmp::Ordering::Less => pb,
        std::cmp::Ordering::Equal => Size { bytes: pa.bytes, signed: pa.signed && pb.signed },
    };
    ((common.number(ta.convert(a)), common.number(tb.convert(b))), common)
}

fn arithmetic(op: Op, a: u64, ta: Size, b: u64, tb: Size) -> u64 {
    let ((x, y), common) = convert_to_common(a, ta, b, tb);
    if op == Op::Less {
        return u64::from(x < y);
    }
    common.convert(combine(op, x as u64, y as u64, 8))
}
