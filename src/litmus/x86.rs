//! x86 tests, parsed by the layer `program`: the instruction table, initial states and conditions
//! are those of the machines.
//!
//! Input: the text of a test. Output: a [`LitmusTest`]. Each step of an instruction becomes
//! operations: a load, a store, a locked update (a read and a write, tagged `X` and `A` and related
//! by `amo`), a fence. An instruction that reads and writes memory without `lock` is two plain
//! accesses. Expressions of steps are those of the layer `program` ([`RegisterExpr::X86`]).

use crate::code::{Arch, Atomicity, Flow, Op, Register, RegisterExpr, Thread, Unary};
use crate::condition::{Observed, ObservedPlace};
use crate::file::LitmusTest;
use crate::layout::{IntegerType, MemoryLayout};
use mu_base::{Diagnostic, SourceId, narrow};
use mu_program::expr::{Expr as Value, Width};
use mu_program::litmus::{self, Read};
use mu_program::outcome::Question;
use mu_program::outcome_search::Observable;
use mu_program::variables::{self, Variables};
use mu_program::x86::table::{InstructionKind, mnemonic};
use mu_program::{Access, Fence, Next, Step};

/// Parses a test.
///
/// # Errors
///
/// As [`litmus::read`].
pub fn test(source: SourceId, text: &str, arch: Arch) -> Result<LitmusTest, Diagnostic> {
    let Read { name, info, threads, variables, question, unnamed, .. } =
        litmus::read(source, text)?;
    let mut threads: Vec<Thread> = threads.iter().map(|t| thread(t, arch)).collect();
    let observed = question
        .observed
        .iter()
        .map(|o| convert_observation(o, &variables, &mut threads))
        .collect();
    let question = Question {
        observed,
        listed: question.listed,
        filter: question.filter,
        quantifier: question.quantifier,
        prop: question.prop,
    };
    Ok(LitmusTest { arch, name, info, threads, layout: layout(&variables), question, unnamed })
}

/// Converts the type of a variable or register.
fn type_of(ty: variables::IntegerType) -> IntegerType {
    IntegerType::integer(bytes(ty.width), ty.signed)
}

/// Builds the layout with the variables at their addresses in the code.
fn layout(variables: &Variables) -> MemoryLayout {
    let mut layout = MemoryLayout::default();
    for v in variables.list() {
        let elements = v.array.then_some(narrow::index(v.initial.len()));
        layout.declare(&v.name, v.address, v.declared.map(type_of), elements, v.initial.clone());
    }
    layout
}

/// Converts an observation. Bits of a register that do not start at the lowest one are copied to a
/// separate register at the end.
fn convert_observation(
    o: &mu_program::condition::Observed,
    variables: &Variables,
    threads: &mut [Thread],
) -> Observed {
    let place = match o.what {
        Observable::Register(thread, register) if o.shift == 0 => {
            ObservedPlace::Register(thread, register)
        }
        Observable::Register(number, register) => {
            let thread = &mut threads[number as usize];
            let copy = thread.register(&format!("{}.copy", o.text));
            let bits = Value::Part(Box::new(Value::Register(register)), o.shift, o.shown.width);
            thread.ops.push(Op::Let(copy, value(&bits, None)));
            thread.instruction.push(narrow::index(thread.texts.len().saturating_sub(1)));
            ObservedPlace::Register(number, copy)
        }
        Observable::Cell(cell) => {
            let mut rest = cell as usize;
            let mut found = (0, 0);
            for (i, v) in variables.list().iter().enumerate() {
                if rest < v.initial.len() {
                    found = (narrow::index(i), narrow::index(rest) * narrow::word(v.element()));
                    break;
                }
                rest -= v.initial.len();
            }
            ObservedPlace::Memory(found.0, found.1)
        }
    };
    Observed { place, shown: type_of(o.shown), text: o.text.clone() }
}

/// Converts an expression, with the register of the loaded value, if any.
fn value(e: &Value, loaded: Option<Register>) -> RegisterExpr {
    match e {
        Value::Const(c) => RegisterExpr::Const(*c),
        Value::Register(r) => RegisterExpr::Register(*r),
        Value::Loaded => loaded.map_or(RegisterExpr::Loaded, RegisterExpr::Register),
        e => RegisterExpr::X86(Box::new(e.clone()), loaded),
    }
}

fn bytes(width: Width) -> u8 {
    u8::try_from(width.bytes()).expect("at most 8 bytes")
}

/// Lowers the steps of a thread.
fn thread(code: &mu_program::Thread, arch: Arch) -> Thread {
    let registers = code.registers.iter().map(|r| (r.name.clone(), r.initial)).collect();
    let texts = code.instructions.iter().map(|i| (i.text.clone(), i.span)).collect();
    let mut lowering = Lowering {
        arch,
        thread: Thread { registers, texts, ..Thread::default() },
        jumps: Vec::new(),
    };
    let mut first = Vec::with_capacity(code.steps.len() + 1);
    for step in &code.steps {
        first.push(narrow::index(lowering.thread.ops.len()));
        lowering.step(step, &code.instructions[step.instruction as usize].text);
    }
    first.push(narrow::index(lowering.thread.ops.len()));
    for (at, to) in std::mem::take(&mut lowering.jumps) {
        if let Op::Branch { to: target, .. } = &mut lowering.thread.ops[at] {
            *target = first[(to as usize).min(code.steps.len())];
        }
    }
    lowering.thread
}

struct Lowering {
    arch: Arch,
    thread: Thread,
    /// Branches: the operation, and the step that it jumps to.
    jumps: Vec<(usize, u32)>,
}

impl Lowering {
    fn push(&mut self, op: Op, step: &Step) {
        self.thread.ops.push(op);
        self.thread.instruction.push(step.instruction);
    }

    /// Lowers a step.
    fn step(&mut self, step: &Step, text: &str) {
        let mut loaded = None;
        match &step.access {
            Access::None => {
                if is_load_fence(text) {
                    self.push(Op::Fence(self.arch.tag("LFENCE")), step);
                }
            }
            Access::Fence(fence) => {
                let tag = if *fence == Fence::Full { "MFENCE" } else { "SFENCE" };
                self.push(Op::Fence(self.arch.tag(tag)), step);
            }
            Access::Read { address, width } => {
                let into = self.thread.register(".loaded");
                loaded = Some(into);
                let load = Op::Load {
                    into: Some(into),
                    value: RegisterExpr::Loaded,
                    address: value(address, None),
                    width: bytes(*width),
                    tags: 0,
                    reserve: false,
                    joined: false,
                };
                self.push(load, step);
            }
            Access::Write { address, width, value: stored, when } => {
                let skip = when.as_ref().map(|when| {
                    let not = RegisterExpr::unary(Unary::IsZero, value(when, None));
                    self.push(Op::Branch { when: Some(not), to: 0 }, step);
                    self.thread.ops.len() - 1
                });
                let store = Op::Store {
                    address: value(address, None),
                    width: bytes(*width),
                    value: value(stored, None),
                    tags: 0,
                    joined: false,
                };
                self.push(store, step);
                let after = narrow::index(self.thread.ops.len());
                if let Some(Op::Branch { to, .. }) = skip.map(|at| &mut self.thread.ops[at]) {
                    *to = after;
                }
            }
            Access::Update { address, width, value: stored, when } => {
                let into = self.thread.register(".loaded");
                loaded = Some(into);
                let tags = self.arch.tag("X") | self.arch.tag("A");
                let update = Op::Update {
                    into: Some((into, RegisterExpr::Loaded)),
                    address: value(address, None),
                    width: bytes(*width),
                    value: value(stored, None),
                    when: when.as_ref().map(|w| value(w, None)),
                    read: tags,
                    write: tags,
                    failed: tags,
                    atomicity: Atomicity::Pair,
                    flow: Flow::Plain,
                    joined: false,
                };
                self.push(update, step);
            }
        }
        self.assign(step, loaded);
        match &step.next {
            Next::Fall => {}
            Next::Jump(to) => self.jump(None, *to, step),
            Next::Branch(test, to) => self.jump(Some(value(test, loaded)), *to, step),
        }
    }

    /// Lowers the assignments of a step, which all read the registers before the step.
    fn assign(&mut self, step: &Step, loaded: Option<Register>) {
        if let [(register, e)] = step.assigns.as_slice() {
            self.push(Op::Let(*register, value(e, loaded)), step);
            return;
        }
        let mut moves = Vec::new();
        for (i, (register, e)) in step.assigns.iter().enumerate() {
            let new = self.thread.register(&format!(".new.{i}"));
            self.push(Op::Let(new, value(e, loaded)), step);
            moves.push((*register, new));
        }
        for (register, new) in moves {
            self.push(Op::Let(register, RegisterExpr::Register(new)), step);
        }
    }

    fn jump(&mut self, when: Option<RegisterExpr>, to: u32, step: &Step) {
        self.jumps.push((self.thread.ops.len(), to));
        self.push(Op::Branch { when, to: 0 }, step);
    }
}

fn is_load_fence(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or("").to_ascii_lowercase();
    mnemonic(&word).is_some_and(|(entry, _)| entry.kind == InstructionKind::LoadFence)
}
