//! Translation of a program with its memory model to mCRL2 text.
//!
//! Input: a [`Machine`]. Output: a specification with one process for each thread (its position and
//! registers) and one for memory with the store buffers. Threads and memory synchronise on reads,
//! writes, updates and fences; stores move to memory spontaneously. Actions have the texts of the
//! labels of [`super::model`], and the two transition systems are strongly bisimilar. This is one
//! more route from a program to its behaviour; it shares the steps of instructions, the cells of
//! addresses, and liveness with the machine. The only difference is an access to an address without
//! a cell: an error in the machine, a deadlock in the text.
//!
//! Values are natural numbers below 2^64 as in the machine; the arithmetic of instructions is
//! defined by equations. Cost: a summand for each step and, if it computes its address, for each
//! cell; in memory, summands of each kind for each thread and cell.

use super::expr::{BinOp, Expr, FlagTest, TestKind, Width};
use super::machine::Machine;
use super::model::{cell_names, identifier};
use super::{Access, Fence, Next, Register, Step};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Prefixes of the names that the text makes for cells, registers, and halves of communications.
/// No cell has such a name.
pub(super) const OWN_PREFIXES: [&str; 3] = ["m_", "r_", "t_"];

/// True if the text defines or binds a name itself, so that no cell can have it: see [`OWN_NAMES`],
/// the variable of a sum (`v`), and the names that are made for threads (`T0`, `at0`, `b0`). With
/// `_` behind it, each is another name.
pub(super) fn is_own_name(name: &str) -> bool {
    let is_of_thread = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    name == "v"
        || OWN_NAMES.contains(&name)
        || ["T", "at", "b"].iter().any(|prefix| is_of_thread(prefix))
}

/// Names of sorts, processes, constructors, mappings, and actions of the text.
const OWN_NAMES: [&str; 41] = [
    LOCAL,
    "Var",
    "Entry",
    "Memory",
    "store",
    "barrier",
    "is_store",
    "cell",
    "value",
    "bits",
    "signed",
    "unsigned",
    "see",
    "stores",
    "trim",
    "ready",
    "first",
    "remove",
    "merge",
    "minus",
    "sign",
    "band",
    "bor",
    "bxor",
    "base",
    "carry_of",
    "f_add",
    "f_sub",
    "f_inc",
    "f_dec",
    "f_bits",
    "f_parity",
    "even_bits",
    "f_shl",
    "f_shr",
    "f_sar",
    "shifts",
    "read",
    "write",
    "update",
    "flush",
];

/// The action of a step without memory access.
const LOCAL: &str = "local";

/// Equations for the arithmetic of instructions. Unless a line says otherwise, `m` is 2 to the
/// width, and `c` the width; flags are 1 zero, 2 sign, 4
/// carry, 8 overflow, 16 parity.
const ARITHMETIC: &str = "\
map signed: Pos # Nat -> Int;                         % the number that bits stand for; the width, the bits
    unsigned: Pos # Int -> Nat;
    merge: Nat # Nat # Pos # Pos -> Nat;              % old, new, 2 to the lowest bit replaced, 2 to the number of bits
    minus: Nat # Nat # Pos -> Nat;
    sign: Nat # Pos -> Bool;
    band, bor, bxor: Nat # Nat -> Nat;
    base: Nat # Pos -> Nat;                           % zero and sign of a result
    carry_of: Nat -> Nat;
    even_bits: Nat -> Bool;                           % whether an even number of bits is set
    f_parity: Nat # Nat -> Nat;                       % flags with the parity of a result
    f_add, f_sub, f_bits: Nat # Nat # Pos -> Nat;     % flags after an operation
    f_inc, f_dec: Nat # Nat # Pos # Nat -> Nat;
    f_shl, f_shr, f_sar: Nat # Nat # Pos # Nat # Pos -> Nat;
var w, m, k, c: Pos; a, b, r, f, n: Nat; i: Int;
eqn signed(w, a) = if(2 * a >= exp(2, w), a - exp(2, w), a);
    unsigned(w, i) = i mod exp(2, w);
    merge(a, b, k, m) = (a div (k * m)) * (k * m) + (b mod m) * k + a mod k;
    minus(a, b, m) = if(a mod m >= b mod m, Int2Nat(a mod m - b mod m), Int2Nat(a mod m + m - b mod m));
    sign(a, m) = 2 * (a mod m) >= m;
    band(a, b) = if(a == 0 || b == 0, 0, 2 * band(a div 2, b div 2) + (a mod 2) * (b mod 2));
    bor(a, b) = if(a == 0, b, if(b == 0, a, 2 * bor(a div 2, b div 2) + max(a mod 2, b mod 2)));
    bxor(a, b) = if(a == 0, b, if(b == 0, a, 2 * bxor(a div 2, b div 2) + (a mod 2 + b mod 2) mod 2));
    base(r, m) = if(r == 0, 1, 0) + if(sign(r, m), 2, 0);
    carry_of(f) = 4 * ((f div 4) mod 2);
    even_bits(n) = if(n == 0, true, (n mod 2 == 0) == even_bits(n div 2));
    f_parity(f, n) = f mod 16 + if(even_bits(n mod 256), 16, 0);
    f_add(a, b, m) = base((a + b) mod m, m) + if((a + b) mod m < a mod m, 4, 0)
      + if(sign(a, m) == sign(b, m) && sign(a + b, m) != sign(a, m), 8, 0);
    f_sub(a, b, m) = base(minus(a, b, m), m) + if(a mod m < b mod m, 4, 0)
      + if(sign(a, m) != sign(b, m) && sign(minus(a, b, m), m) != sign(a, m), 8, 0);
    f_inc(a, b, m, f) = base((a + b) mod m, m) + carry_of(f) + if(!sign(a, m) && sign(a + b, m), 8, 0);
    f_dec(a, b, m, f) = base(minus(a, b, m), m) + carry_of(f) + if(sign(a, m) && !sign(minus(a, b, m), m), 8, 0);
    f_bits(a, b, m) = base(a, m);
    f_shl(a, n, m, f, c) = if(n == 0, f, base((a * exp(2, n)) mod m, m) + 4 * (((a mod m) * exp(2, n) div m) mod 2)
      + if(sign(a * exp(2, n), m) != (((a mod m) * exp(2, n) div m) mod 2 == 1), 8, 0));
    f_shr(a, n, m, f, c) = if(n == 0, f, base(a mod m div exp(2, n), m) + 4 * (((a mod m) * 2 div exp(2, n)) mod 2) + if(sign(a, m), 8, 0));
    f_sar(a, n, m, f, c) = if(n == 0, f, base((signed(c, a mod m) div exp(2, n)) mod m, m) + 4 * ((signed(c, a mod m) * 2 div exp(2, n)) mod 2));
";

/// Equations for buffers, oldest store first. A barrier represents a store fence of PSO.
const BUFFERS: &str = "\
sort Entry = struct store(cell: Var, value: Nat) ? is_store | barrier;
map see: List(Entry) # Var # Nat -> Nat;              % a variable's value for the owner of a buffer, given that in memory
    stores: List(Entry) -> Nat;
    ready: List(Entry) # Var -> Bool;                 % whether a store to the variable may reach memory
    first: List(Entry) # Var -> Nat;
    remove: List(Entry) # Var -> List(Entry);
    trim: List(Entry) -> List(Entry);                 % without barriers that order nothing
var e: Entry; b: List(Entry); x: Var; n: Nat;
eqn see([], x, n) = n;
    see(e |> b, x, n) = see(b, x, if(is_store(e) && cell(e) == x, value(e), n));
    stores([]) = 0;
    stores(e |> b) = stores(b) + if(is_store(e), 1, 0);
    ready([], x) = false;
    ready(e |> b, x) = is_store(e) && (cell(e) == x || ready(b, x));
    first(e |> b, x) = if(cell(e) == x, value(e), first(b, x));
    remove(e |> b, x) = if(cell(e) == x, b, e |> remove(b, x));
    trim([]) = [];
    trim(e |> b) = if(is_store(e), e |> b, trim(b));
";

/// Printer of a thread's expressions, with the texts of its registers and of the loaded value.
struct ExprPrinter<'a> {
    registers: &'a [String],
    loaded: String,
}

fn power(bits: u32) -> u128 {
    1 << bits
}

impl ExprPrinter<'_> {
    /// Prints an expression as a number.
    fn print_number(&self, e: &Expr) -> String {
        let of = |e: &Expr| self.print_number(e);
        match e {
            Expr::Const(c) => c.to_string(),
            Expr::Register(r) => self.registers[*r as usize].clone(),
            Expr::Loaded => self.loaded.clone(),
            Expr::Part(e, 0, width) => format!("({} mod {})", of(e), power(width.bits())),
            Expr::Part(e, shift, width) => {
                format!("({} div {} mod {})", of(e), power(*shift), power(width.bits()))
            }
            Expr::Merge(old, new, shift, width) => {
                format!(
                    "merge({}, {}, {}, {})",
                    of(old),
                    of(new),
                    power(*shift),
                    power(width.bits())
                )
            }
            Expr::Op(op, width, a, b) => operation(*op, *width, &of(a), &of(b)),
            Expr::Flags(op, width, a, b, before) => {
                flags(*op, *width, &of(a), &of(b), || of(before))
            }
            Expr::Parity(f, result) => format!("f_parity({}, {})", of(f), of(result)),
            Expr::Test(..) => format!("if({}, 1, 0)", self.print_condition(e)),
            Expr::SignExtend(width, e) => format!(
                "unsigned(64, signed({}, {} mod {}))",
                width.bits(),
                of(e),
                power(width.bits())
            ),
            Expr::If(c, a, b) => format!("if({}, {}, {})", self.print_condition(c), of(a), of(b)),
        }
    }
    /// Prints the condition that an expression is not zero.
    fn print_condition(&self, e: &Expr) -> String {
        match e {
            Expr::Const(c) => (*c != 0).to_string(),
            Expr::Test(test, f) => condition(*test, &self.print_number(f)),
            e => format!("{} != 0", self.print_number(e)),
        }
    }
}

fn operation(op: BinOp, width: Width, a: &str, b: &str) -> String {
    let m = power(width.bits());
    let count = format!("{b} mod {}", if width == Width::W64 { 64 } else { 32 });
    match op {
        BinOp::Add | BinOp::Inc => format!("(({a} + {b}) mod {m})"),
        BinOp::Sub | BinOp::Dec => format!("minus({a}, {b}, {m})"),
        BinOp::And => format!("(band({a}, {b}) mod {m})"),
        BinOp::Or => format!("(bor({a}, {b}) mod {m})"),
        BinOp::Xor => format!("(bxor({a}, {b}) mod {m})"),
        BinOp::Shl => format!("(({a} * exp(2, {count})) mod {m})"),
        BinOp::Shr => format!("({a} mod {m} div exp(2, {count}))"),
        BinOp::Sar => {
            format!("((signed({}, {a} mod {m}) div exp(2, {count})) mod {m})", width.bits())
        }
        BinOp::Mul => format!("(({a} * {b}) mod {m})"),
    }
}

fn flags(op: BinOp, width: Width, a: &str, b: &str, before: impl Fn() -> String) -> String {
    let (m, bits) = (power(width.bits()), width.bits());
    let count = format!("({b} mod {m}) mod {}", if width == Width::W64 { 64 } else { 32 });
    match op {
        BinOp::Add => format!("f_add({a}, {b}, {m})"),
        BinOp::Sub => format!("f_sub({a}, {b}, {m})"),
        BinOp::Inc => format!("f_inc({a}, {b}, {m}, {})", before()),
        BinOp::Dec => format!("f_dec({a}, {b}, {m}, {})", before()),
        BinOp::And | BinOp::Or | BinOp::Xor => {
            format!("f_bits({}, 0, {m})", operation(op, width, a, b))
        }
        BinOp::Shl => format!("f_shl({a}, {count}, {m}, {}, {bits})", before()),
        BinOp::Shr => format!("f_shr({a}, {count}, {m}, {}, {bits})", before()),
        BinOp::Sar => format!("f_sar({a}, {count}, {m}, {}, {bits})", before()),
        BinOp::Mul => before(),
    }
}

fn condition(test: FlagTest, f: &str) -> String {
    let on = |bit: u32| format!("({f} div {bit}) mod 2 == 1");
    let less = format!("({f} div 2) mod 2 != ({f} div 8) mod 2");
    let text = match test.kind {
        TestKind::Equal => on(1),
        TestKind::Sign => on(2),
        TestKind::Below => on(4),
        TestKind::Overflow => on(8),
        TestKind::BelowOrEqual => format!("{} || {}", on(4), on(1)),
        TestKind::Less => less,
        TestKind::LessOrEqual => format!("{} || {less}", on(1)),
        TestKind::Parity => on(16),
    };
    if test.negated { format!("!({text})") } else { format!("({text})") }
}

/// The actions that occur in the text.
#[derive(Default)]
struct UsedActions {
    /// Widths of loads.
    reads: BTreeSet<Width>,
    writes: bool,
    updates: bool,
    fences: bool,
    store_fences: bool,
    flushes: bool,
}

/// Prints the specification.
pub fn mcrl2(machine: &Machine) -> String {
    let names = cell_names(&machine.program);
    let mut used = UsedActions::default();
    let mut processes = String::new();
    let mut starts = Vec::new();
    for thread in 0..machine.program.threads.len() {
        starts.push(thread_process(machine, thread, &names, &mut used, &mut processes));
    }
    starts.push(memory_process(machine, &names, &mut used, &mut processes));
    let mut out = String::new();
    let count = machine.program.threads.len();
    let threads = if count == 1 { "thread" } else { "threads" };
    let _ = writeln!(out, "% A program of {count} {threads} under {}.", machine.memory.name());
    if let Some(bound) = machine.bound.filter(|_| machine.memory.has_buffers()) {
        let _ = writeln!(out, "% A store buffer contains at most {bound} stores.");
    }
    let _ = writeln!(
        out,
        "\nsort Var = struct {};",
        if names.is_empty() { "none".into() } else { names.join(" | ") }
    );
    out += "map bits: Var -> Pos;\neqn ";
    for (name, cell) in names.iter().zip(&machine.program.cells) {
        let _ = writeln!(out, "bits({name}) = {};", cell.width.bits());
    }
    if names.is_empty() {
        out += "bits(none) = 8;\n";
    }
    out += ARITHMETIC;
    if machine.memory.has_buffers() {
        out += BUFFERS;
    }
    let _ = writeln!(out, "\n% The thread, the variable, values as signed numbers.\nact {LOCAL};");
    let (mut acts, mut allowed, mut communications) = (Vec::new(), Vec::new(), Vec::new());
    let mut shared = |name: &str, suffix: &str, sorts: &str| {
        // The result of a communication is declared once for all widths.
        let is_declared = allowed.iter().any(|a| a == name);
        let result = if is_declared { String::new() } else { format!("{name}, ") };
        acts.push(format!("act {result}t_{name}{suffix}, m_{name}{suffix}: {sorts};"));
        communications.push(format!("t_{name}{suffix} | m_{name}{suffix} -> {name}"));
        if !is_declared {
            allowed.push(name.to_string());
        }
    };
    for width in &used.reads {
        shared("read", &width.bits().to_string(), "Nat # Var # Int");
    }
    if used.writes {
        shared("write", "", "Nat # Var # Int");
    }
    if used.updates {
        shared("update", "", "Nat # Var # Int # Int");
    }
    if used.fences {
        shared("fence", "", "Nat");
    }
    if used.store_fences {
        shared("store_fence", "", "Nat");
    }
    if used.flushes {
        acts.push("act flush: Nat # Var # Int;".into());
        allowed.push("flush".into());
    }
    for act in acts {
        let _ = writeln!(out, "{act}");
    }
    out += &processes;
    let parts = starts.join(" || ");
    let composed = if communications.is_empty() {
        parts
    } else {
        format!("comm({{{}}},\n    {parts})", communications.join(", "))
    };
    // A thread's internal step is hidden last, so that it does not synchronise with another.
    allowed.push(LOCAL.into());
    let _ = writeln!(
        out,
        "\ninit hide({{{LOCAL}}}, allow({{{}}},\n  {composed}));",
        allowed.join(", ")
    );
    out
}

/// Returns for each thread the parameter of its position, and the condition that it has ended.
pub fn termination_conditions(machine: &Machine) -> Vec<(String, String)> {
    let threads = machine.program.threads.iter().enumerate();
    threads
        .map(|(t, thread)| (format!("at{t}"), format!("at{t} == {}", thread.steps.len())))
        .collect()
}

/// Prints the process of a thread. Returns its call.
fn thread_process(
    machine: &Machine,
    thread: usize,
    names: &[String],
    used: &mut UsedActions,
    out: &mut String,
) -> String {
    let code = &machine.program.threads[thread];
    let registers: Vec<String> =
        code.registers.iter().map(|r| format!("r_{}", identifier(&r.name))).collect();
    let mut occurs = vec![false; registers.len()];
    for step in &code.steps {
        super::liveness::registers_read(step, &mut |r| occurs[r as usize] = true);
        step.assigns.iter().for_each(|(r, _)| occurs[*r as usize] = true);
    }
    let stored: Vec<Register> =
        (0..registers.len() as Register).filter(|r| occurs[*r as usize]).collect();
    let parameters: String =
        stored.iter().map(|r| format!(", {}: Nat", registers[*r as usize])).collect();
    let _ = write!(out, "\n% {}\nproc T{thread}(at{thread}: Nat{parameters}) =\n", code.name);
    let body = Body { machine, thread, names, registers: &registers, stored: &stored };
    let mut summands = Vec::new();
    for (place, step) in code.steps.iter().enumerate() {
        let text = &code.instructions[step.instruction as usize].text;
        for summand in body.summands(place, step, used) {
            let plus = if summands.is_empty() { "    " } else { "  + " };
            summands.push(format!(
                "    % {}\n{plus}(at{thread} == {place}) -> {summand}",
                text.replace('\n', " ")
            ));
        }
    }
    if summands.is_empty() {
        summands.push("    delta".into());
    }
    let _ = writeln!(out, "{};", summands.join("\n"));
    let values: String = stored
        .iter()
        .map(|r| {
            format!(
                ", {}",
                if machine.live(thread, 0)[*r as usize] {
                    code.registers[*r as usize].initial
                } else {
                    0
                }
            )
        })
        .collect();
    format!("T{thread}(0{values})")
}

struct Body<'a> {
    machine: &'a Machine,
    thread: usize,
    names: &'a [String],
    registers: &'a [String],
    stored: &'a [Register],
}

impl Body<'_> {
    fn texts(&self, loaded: String) -> ExprPrinter<'_> {
        ExprPrinter { registers: self.registers, loaded }
    }
    /// Returns the cells that an address may denote, each with the condition that it does.
    fn cells(&self, address: &Expr, accepts: impl Fn(Width) -> bool) -> Vec<(usize, String)> {
        let cells = &self.machine.program.cells;
        match address {
            Expr::Const(a) => {
                self.machine.program.cell_at(*a).into_iter().map(|c| (c, String::new())).collect()
            }
            e => {
                let text = self.texts(String::new()).print_number(e);
                (0..cells.len())
                    .filter(|&c| accepts(cells[c].access))
                    .map(|c| (c, format!("({text} == {}) -> ", cells[c].address)))
                    .collect()
            }
        }
    }
    /// Prints the content of a cell after a store of a width, as a signed number. A store that is
    /// narrower than its cell requires that no wider one exists (`Cell::access`), so that the upper
    /// part is the initial one.
    fn print_stored(&self, cell: usize, width: Width, value: &str) -> String {
        let c = &self.machine.program.cells[cell];
        let high = c.initial & !width.mask();
        let bits = if high == 0 { String::new() } else { format!("{high} + ") };
        format!("signed({}, {bits}{value} mod {})", c.width.bits(), power(width.bits()))
    }
    fn summands(&self, place: usize, step: &Step, used: &mut UsedActions) -> Vec<String> {
        let (t, names) = (self.thread, self.names);
        let none = self.texts("0".into());
        match &step.access {
            Access::None => vec![format!("{LOCAL} . {}", self.next(place, step, &none))],
            Access::Read { address, width } => {
                used.reads.insert(*width);
                let texts = self.texts(format!("unsigned({}, v)", width.bits()));
                let next = self.next(place, step, &texts);
                let one = |(c, when): (usize, String)| {
                    format!(
                        "{when}(sum v: Int. t_read{}({t}, {}, v) . {next})",
                        width.bits(),
                        names[c]
                    )
                };
                self.cells(address, |access| access >= *width).into_iter().map(one).collect()
            }
            Access::Write { address, width, value, when } => {
                used.writes = true;
                let next = self.next(place, step, &none);
                let stores = |(c, at): (usize, String)| {
                    format!(
                        "{at}t_write({t}, {}, {}) . {next}",
                        names[c],
                        self.print_stored(c, *width, &none.print_number(value))
                    )
                };
                let all = self.cells(address, |access| access == *width).into_iter().map(stores);
                match when {
                    None => all.collect(),
                    Some(e) => {
                        let truth = none.print_condition(e);
                        let mut out: Vec<String> =
                            all.map(|s| format!("({truth}) -> {s}")).collect();
                        out.push(format!("(!({truth})) -> {LOCAL} . {next}"));
                        out
                    }
                }
            }
            Access::Update { address, width, value, when } => {
                used.updates = true;
                let one = |(c, at): (usize, String)| {
                    let texts = self.texts(format!("unsigned({}, v)", width.bits()));
                    let new = self.print_stored(c, *width, &texts.print_number(value));
                    let new = match when {
                        None => new,
                        Some(e) => format!("if({}, {new}, v)", texts.print_condition(e)),
                    };
                    let next = self.next(place, step, &texts);
                    format!("{at}(sum v: Int. t_update({t}, {}, v, {new}) . {next})", names[c])
                };
                self.cells(address, |access| access == *width).into_iter().map(one).collect()
            }
            Access::Fence(fence) => {
                let name = match fence {
                    Fence::Full => {
                        used.fences = true;
                        "fence"
                    }
                    Fence::Store => {
                        used.store_fences = true;
                        "store_fence"
                    }
                };
                vec![format!("t_{name}({t}) . {}", self.next(place, step, &none))]
            }
        }
    }
    /// Prints the state of the thread after a step. Dead registers are zero, as in the machine.
    fn next(&self, place: usize, step: &Step, texts: &ExprPrinter) -> String {
        let fall = place + 1;
        let (at, targets) = match &step.next {
            Next::Fall => (fall.to_string(), [fall, fall]),
            Next::Jump(to) => (to.to_string(), [*to as usize; 2]),
            Next::Branch(test, to) => {
                (format!("if({}, {to}, {fall})", texts.print_condition(test)), [*to as usize, fall])
            }
        };
        let mut out = format!("T{}({at}", self.thread);
        for &r in self.stored {
            let [live_if_taken, live_if_not] =
                targets.map(|to| self.machine.live(self.thread, to)[r as usize]);
            let value = match step.assigns.iter().find(|a| a.0 == r) {
                _ if !live_if_taken && !live_if_not => "0".into(),
                Some((_, e)) => texts.print_number(e),
                None => self.registers[r as usize].clone(),
            };
            let _ = match (&step.next, live_if_taken, live_if_not) {
                (Next::Branch(test, _), true, false) => {
                    write!(out, ", if({}, {value}, 0)", texts.print_condition(test))
                }
                (Next::Branch(test, _), false, true) => {
                    write!(out, ", if({}, 0, {value})", texts.print_condition(test))
                }
                _ => write!(out, ", {value}"),
            };
        }
        out + ")"
    }
}

/// Prints the process of memory. Returns its call.
fn memory_process(
    machine: &Machine,
    names: &[String],
    used: &mut UsedActions,
    out: &mut String,
) -> String {
    let cells = &machine.program.cells;
    let threads = machine.program.threads.len();
    let buffered = machine.memory.has_buffers();
    let marks = machine.memory.marks_store_fences();
    let mut parameters: Vec<String> = names.iter().map(|n| format!("m_{n}: Nat")).collect();
    let mut values: Vec<String> = cells.iter().map(|c| c.initial.to_string()).collect();
    if buffered {
        parameters.extend((0..threads).map(|t| format!("b{t}: List(Entry)")));
        values.extend((0..threads).map(|_| "[]".to_string()));
    }
    let mut summands: Vec<String> = Vec::new();
    for t in 0..threads {
        let empty = if buffered { format!("(b{t} == []) -> ") } else { String::new() };
        for (cell, name) in cells.iter().zip(names) {
            let bits = cell.width.bits();
            let seen =
                if buffered { format!("see(b{t}, {name}, m_{name})") } else { format!("m_{name}") };
            for width in used.reads.iter().filter(|w| **w <= cell.access) {
                let part = if *width < cell.width {
                    format!("{seen} mod {}", power(width.bits()))
                } else {
                    seen.clone()
                };
                summands.push(format!(
                    "m_read{}({t}, {name}, signed({bits}, {part})) . Memory()",
                    width.bits()
                ));
            }
            if used.writes && !buffered {
                summands.push(format!(
                    "(sum v: Int. m_write({t}, {name}, v) . Memory(m_{name} = unsigned({bits}, v)))"
                ));
            }
            if used.updates {
                summands.push(format!(
                    "{empty}(sum v: Int. m_update({t}, {name}, signed({bits}, m_{name}), v) . Memory(m_{name} = unsigned({bits}, v)))"
                ));
            }
        }
        if used.writes && buffered {
            let room = machine.bound.map_or(String::new(), |n| format!("(stores(b{t}) < {n}) -> "));
            summands
                .push(format!("{room}(sum x: Var, v: Int. m_write({t}, x, v) . Memory(b{t} = b{t} <| store(x, unsigned(bits(x), v))))"));
            used.flushes = true;
            for name in names {
                let (when, rest) = if marks {
                    (format!("ready(b{t}, {name})"), format!("trim(remove(b{t}, {name}))"))
                } else {
                    (format!("b{t} != [] && cell(head(b{t})) == {name}"), format!("tail(b{t})"))
                };
                summands.push(format!(
                    "({when}) -> flush({t}, {name}, signed(bits({name}), first(b{t}, {name}))) . Memory(m_{name} = first(b{t}, {name}), b{t} = {rest})"
                ));
            }
        }
        if used.fences {
            summands.push(format!("{empty}m_fence({t}) . Memory()"));
        }
        if used.store_fences {
            let mark = if buffered && marks {
                format!("b{t} = trim(b{t} <| barrier)")
            } else {
                String::new()
            };
            summands.push(format!("m_store_fence({t}) . Memory({mark})"));
        }
    }
    if summands.is_empty() {
        summands.push("delta".into());
    }
    let head = if parameters.is_empty() {
        "Memory".to_string()
    } else {
        format!("Memory({})", parameters.join(", "))
    };
    let body = summands.join("\n  + ");
    let body = if parameters.is_empty() { body.replace("Memory()", "Memory") } else { body };
    let _ = writeln!(
        out,
        "\n% Memory{}\nproc {head} =\n    {body};",
        if buffered { " and the store buffers" } else { "" }
    );
    if values.is_empty() { "Memory".into() } else { format!("Memory({})", values.join(", ")) }
}
