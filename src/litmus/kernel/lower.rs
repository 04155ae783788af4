//! Lowering of expanded functions of the kernel to intermediate code.
//!
//! Dependencies are those of the herd tools: a store depends by data on the loads of its value, by
//! address on those of its place; the write of an atomic operation depends on its read, except for
//! exchanges; the condition of an `if` controls its branches. Loads of one expression are not
//! ordered with each other if neither needs the other.

use super::syntax::{BinaryOperator, Exp, ExpressionKind, Statement, StatementForm};
use super::{KernelLanguage, tag};
use crate::code::{Atomicity, Binary, Flow, Op, Register, RegisterExpr, Thread, Unary};
use crate::layout::MemoryLayout;
use mu_base::{Diagnostic, Span, Stage, narrow};
use std::collections::HashSet;

/// Bytes of every variable.
const WIDTH: u8 = 4;

type Lowered<T> = Result<T, Diagnostic>;

/// Lowers a function.
pub(super) fn thread<'g>(
    language: &KernelLanguage,
    layout: &mut MemoryLayout,
    text: &str,
    number: u32,
    (parameters, body): (&[(String, Span)], &[Statement]),
    given: impl Iterator<Item = &'g str>,
) -> Lowered<Thread> {
    let mut known: HashSet<String> = given.map(str::to_string).collect();
    let mut lowering = Lowering {
        language,
        thread: Thread::default(),
        text,
        number,
        temporaries: 0,
        known: HashSet::new(),
        loads: [0, 0],
        joined: false,
        condition: None,
    };
    for (name, _) in parameters {
        known.insert(name.clone());
        let v = layout.variable(name);
        let variable = layout.variable_mut(v);
        variable.declared.get_or_insert(crate::layout::DEFAULT);
        let address = variable.address;
        let register = lowering.thread.register(name);
        lowering.thread.registers[register as usize].1 = address;
    }
    collect_assigned(body, &mut known);
    lowering.known = known;
    lowering.statements(body)?;
    Ok(lowering.thread)
}

/// Collects the variables that statements declare or assign.
fn collect_assigned(body: &[Statement], out: &mut HashSet<String>) {
    for s in body {
        match &s.form {
            StatementForm::Declare(name) | StatementForm::Set(name, _) => {
                out.insert(name.clone());
            }
            StatementForm::Block(list) => collect_assigned(list, out),
            StatementForm::If(_, yes, no) => {
                collect_assigned(std::slice::from_ref(yes), out);
                if let Some(no) = no {
                    collect_assigned(std::slice::from_ref(no), out);
                }
            }
            StatementForm::While(_, inner) => collect_assigned(std::slice::from_ref(inner), out),
            _ => {}
        }
    }
}

struct Lowering<'l> {
    language: &'l KernelLanguage,
    thread: Thread,
    text: &'l str,
    number: u32,
    temporaries: u32,
    /// The names of parameters and local variables.
    known: HashSet<String>,
    /// Number of loads so far, and of their places in program order.
    loads: [u32; 2],
    /// True if the next load is not ordered with the previous one.
    joined: bool,
    /// Inside of a condition: the addresses of its loads, on which its branches depend too.
    condition: Option<Vec<RegisterExpr>>,
}

impl Lowering<'_> {
    fn push(&mut self, op: Op) -> usize {
        self.thread.ops.push(op);
        self.thread.instruction.push(narrow::index(self.thread.texts.len()));
        self.thread.ops.len() - 1
    }
    /// Adds a fence, if there is one.
    fn fence(&mut self, tags: Option<u64>) {
        if let Some(tags) = tags {
            self.push(Op::Fence(tags));
        }
    }
    /// Ends an instruction, if it has operations.
    fn end(&mut self, span: Span) {
        if self.thread.instruction.last() == Some(&(narrow::index(self.thread.texts.len()))) {
            let written = self.text.get(span.start as usize..span.end as usize).unwrap_or("");
            let line = written.split_whitespace().collect::<Vec<_>>().join(" ");
            self.thread.texts.push((line, span));
        }
    }
    fn temporary(&mut self) -> Register {
        self.temporaries += 1;
        self.thread.register(&format!("temporary {}", self.temporaries))
    }
    fn land(&mut self, branch: usize) {
        let place = narrow::index(self.thread.ops.len());
        if let Op::Branch { to, .. } | Op::Either { to } = &mut self.thread.ops[branch] {
            *to = place;
        }
    }
    /// Returns the tags of annotations.
    fn tags(&self, annotations: &[String], span: Span) -> Lowered<u64> {
        annotations.iter().try_fold(0, |tags, a| match self.language.tag(a) {
            Some(bit) => Ok(tags | bit),
            None => {
                let file = &self.language.bell_file.0;
                let message = format!("the annotation `{a}` is not declared in `{file}`");
                Err(Diagnostic::at(Stage::Type, span, message))
            }
        })
    }
    /// Returns the address of a place `*p`.
    fn place(&mut self, place: &Exp, primitive: &str) -> Lowered<RegisterExpr> {
        match &place.node {
            ExpressionKind::Load(pointer, annotations) if annotations.is_empty() => {
                self.value(pointer)
            }
            _ => {
                let message = format!("the argument of {primitive} is no place");
                Err(Diagnostic::at(Stage::Type, place.span, message)
                    .note("expected `*p`, where `p` is a pointer"))
            }
        }
    }

    // Statements.

    fn statements(&mut self, list: &[Statement]) -> Lowered<()> {
        list.iter().try_for_each(|s| self.statement(s))
    }
    fn statement(&mut self, s: &Statement) -> Lowered<()> {
        match &s.form {
            StatementForm::Block(list) => return self.statements(list),
            StatementForm::If(condition, yes, no) => {
                self.push(Op::Enter);
                let skip = self.branch(condition)?;
                self.end(condition.span);
                self.statement(yes)?;
                if let Some(no) = no {
                    let over = self.push(Op::Branch { when: None, to: 0 });
                    self.land(skip);
                    self.statement(no)?;
                    self.land(over);
                } else {
                    self.land(skip);
                }
                self.push(Op::Leave);
            }
            StatementForm::While(condition, body) => {
                self.push(Op::Enter);
                let back = narrow::index(self.thread.ops.len());
                let out = self.branch(condition)?;
                self.end(condition.span);
                self.statement(body)?;
                self.push(Op::Branch { when: None, to: back });
                self.land(out);
                self.push(Op::Leave);
            }
            StatementForm::Declare(name) => {
                self.thread.register(name);
            }
            StatementForm::Set(name, e) => {
                let value = self.value(e)?;
                let register = self.thread.register(name);
                self.push(Op::Let(register, value));
            }
            StatementForm::Evaluate(e) => {
                self.value(e)?;
            }
            StatementForm::Store(place, e, annotations) => {
                let tags = self.tags(annotations, s.span)?;
                let address = self.place(place, "a store")?;
                let value = self.value(e)?;
                self.push(Op::Store { address, width: WIDTH, value, tags, joined: false });
            }
            StatementForm::Fence(annotations) => {
                let tags = self.tags(annotations, s.span)?;
                self.push(Op::Fence(tags));
            }
            StatementForm::Lock(lock) => {
                let address = self.value(lock)?;
                self.lock(address);
            }
            StatementForm::Unlock(lock) => {
                let address = self.value(lock)?;
                self.mark(address, tag::UNLOCK, None);
            }
            StatementForm::Atomic(pointer, op, e, annotations) => {
                let tags = self.tags(annotations, s.span)?;
                let (read, write) = if self.language.first_edition {
                    (self.edition("noreturn"), self.edition("once"))
                } else {
                    (tags, tags)
                };
                self.atomic((pointer, *op, e), (read, write), true, s.span)?;
            }
            StatementForm::Srcu(pointer, annotations, value) => {
                let tags = self.tags(annotations, s.span)?;
                let address = self.value(pointer)?;
                let value = match value {
                    Some(value) => self.value(value)?,
                    None => RegisterExpr::Const(0),
                };
                self.push(Op::Mark { into: None, address, tags, ordered: false, value });
            }
            StatementForm::Call(..) => return Err(Diagnostic::internal("a macro is not expanded")),
        }
        self.end(s.span);
        Ok(())
    }
    /// Adds a branch that is taken if a condition is false.
    fn branch(&mut self, condition: &Exp) -> Lowered<usize> {
        let outer = self.condition.replace(Vec::new());
        let value = self.value(condition)?;
        let addresses = std::mem::replace(&mut self.condition, outer).unwrap_or_default();
        let zero =
            addresses.into_iter().fold(RegisterExpr::unary(Unary::IsZero, value), |e, address| {
                if address.sources(&mut |_| ()) || matches!(address, RegisterExpr::Const(_)) {
                    return e;
                }
                let nothing = RegisterExpr::binary(Binary::And, address, RegisterExpr::Const(0));
                RegisterExpr::binary(Binary::Or, e, nothing)
            });
        Ok(self.push(Op::Branch { when: Some(zero), to: 0 }))
    }

    // Expressions.

    fn value(&mut self, e: &Exp) -> Lowered<RegisterExpr> {
        let loaded = || RegisterExpr::Loaded.extend_bytes(WIDTH, true);
        match &e.node {
            ExpressionKind::Number(v) => Ok(RegisterExpr::Const(*v as i32 as i64 as u64)),
            ExpressionKind::Name(name) => {
                if !self.known.contains(name) {
                    let number = self.number;
                    let message =
                        format!("`{name}` is no parameter or local variable of P{number}");
                    return Err(Diagnostic::at(Stage::Type, e.span, message)
                        .note("declare variables of the test as parameters, such as `int *x`"));
                }
                Ok(RegisterExpr::Register(self.thread.register(name)))
            }
            ExpressionKind::Load(pointer, annotations) => {
                let tags = self.tags(annotations, e.span)?;
                let address = if annotations.is_empty() {
                    self.value(pointer)?
                } else {
                    self.place(pointer, "a load")?
                };
                if let Some(addresses) = &mut self.condition {
                    addresses.push(address.clone());
                }
                let into = self.temporary();
                let joined = std::mem::take(&mut self.joined);
                self.loads = [self.loads[0] + 1, self.loads[1] + u32::from(!joined)];
                self.push(Op::Load {
                    into: Some(into),
                    value: loaded(),
                    address,
                    width: WIDTH,
                    tags,
                    reserve: false,
                    joined,
                });
                Ok(RegisterExpr::Register(into))
            }
            ExpressionKind::Binary(op, left, right) => {
                let before = self.loads;
                let left = self.value(left)?;
                // The first load of the right side has the place of those of the left side, if
                // they have one place.
                if self.loads[0] > before[0] {
                    self.joined = self.loads[1] <= before[1] + 1;
                }
                let right = self.value(right)?;
                self.joined = false;
                Ok(self.binary(*op, left, right))
            }
            ExpressionKind::Exchange(of, annotations) => {
                let tags = self.tags(annotations, e.span)?;
                let (read, write) = self.halves(annotations, tags);
                let address = self.value(&of[0])?;
                let value = self.value(&of[1])?;
                let around = self.barrier(annotations);
                self.fence(around);
                let into = self.temporary();
                let op = update(address, (into, loaded()), value, None, (read, write));
                self.update(op, e.span);
                self.fence(around);
                Ok(RegisterExpr::Register(into))
            }
            ExpressionKind::CompareExchange(of, annotations) => {
                let tags = self.tags(annotations, e.span)?;
                let address = self.value(&of[0])?;
                let old = self.value(&of[1])?;
                let new = self.value(&of[2])?;
                let when = RegisterExpr::binary(Binary::Eq, loaded(), old);
                let op = |into, tags| {
                    update(address.clone(), (into, loaded()), new.clone(), Some(when.clone()), tags)
                };
                self.conditional(op, (annotations, tags), e.span)
            }
            ExpressionKind::AddUnless(of, annotations) => {
                let tags = self.tags(annotations, e.span)?;
                let address = self.value(&of[0])?;
                let added = self.value(&of[1])?;
                let unless = self.value(&of[2])?;
                let when = RegisterExpr::binary(Binary::Ne, loaded(), unless);
                let sum =
                    RegisterExpr::binary(Binary::Add, loaded(), added).extend_bytes(WIDTH, true);
                let op = |into, tags| {
                    let result = (into, when.clone());
                    update(address.clone(), result, sum.clone(), Some(when.clone()), tags)
                };
                self.conditional(op, (annotations, tags), e.span)
            }
            ExpressionKind::Atomic { of, op, fetch, annotations } => {
                let tags = self.tags(annotations, e.span)?;
                let halves = self.halves(annotations, tags);
                let around = self.barrier(annotations);
                self.fence(around);
                let into = self.atomic((&of[0], *op, &of[1]), halves, !fetch, e.span)?;
                self.fence(around);
                Ok(RegisterExpr::Register(into))
            }
            ExpressionKind::TryLock(lock) => {
                let address = self.value(lock)?;
                let into = self.temporary();
                let fails = self.push(Op::Either { to: 0 });
                self.lock(address.clone());
                self.push(Op::Let(into, RegisterExpr::Const(1)));
                let over = self.push(Op::Branch { when: None, to: 0 });
                self.land(fails);
                self.push_test(address, tag::LOCK_FAIL, into, 0);
                self.land(over);
                Ok(RegisterExpr::Register(into))
            }
            ExpressionKind::IsLocked(lock) => {
                let address = self.value(lock)?;
                let into = self.temporary();
                let free = self.push(Op::Either { to: 0 });
                self.push_test(address.clone(), tag::READ_LOCKED, into, 1);
                let over = self.push(Op::Branch { when: None, to: 0 });
                self.land(free);
                self.push_test(address, tag::READ_UNLOCKED, into, 0);
                self.land(over);
                Ok(RegisterExpr::Register(into))
            }
            ExpressionKind::Srcu(pointer, annotations) => {
                let tags = self.tags(annotations, e.span)?;
                let address = self.value(pointer)?;
                let into = self.temporary();
                // An arbitrary value that identifies this operation.
                let key = u64::from(self.number + 1) * 307 + self.thread.ops.len() as u64 * 599;
                let value =
                    RegisterExpr::Const(if annotations == &["srcu-lock"] { key } else { 0 });
                let into = Some((into, value.clone()));
                self.push(Op::Mark { into: into.clone(), address, tags, ordered: false, value });
                Ok(into.map_or(RegisterExpr::Const(0), |i| RegisterExpr::Register(i.0)))
            }
            ExpressionKind::Call(..) => Err(Diagnostic::internal("a macro is not expanded")),
        }
    }
    fn binary(
        &mut self,
        op: BinaryOperator,
        left: RegisterExpr,
        right: RegisterExpr,
    ) -> RegisterExpr {
        let wrapped = |b, l, r| RegisterExpr::binary(b, l, r).extend_bytes(WIDTH, true);
        match op {
            BinaryOperator::Add => wrapped(Binary::Add, left, right),
            BinaryOperator::Sub => wrapped(Binary::Sub, left, right),
            BinaryOperator::Mul => wrapped(Binary::Mul, left, right),
            BinaryOperator::Div => {
                self.push(Op::Defined(right.clone()));
                wrapped(Binary::Div, left, right)
            }
            BinaryOperator::And => RegisterExpr::binary(Binary::And, left, right),
            BinaryOperator::Or => RegisterExpr::binary(Binary::Or, left, right),
            BinaryOperator::Xor => RegisterExpr::binary(Binary::Xor, left, right),
            BinaryOperator::AndNot => {
                RegisterExpr::binary(Binary::And, left, RegisterExpr::unary(Unary::Not, right))
            }
            BinaryOperator::Eq => RegisterExpr::binary(Binary::Eq, left, right),
            BinaryOperator::Ne => RegisterExpr::binary(Binary::Ne, left, right),
            BinaryOperator::Less => RegisterExpr::binary(Binary::Less, left, right),
            BinaryOperator::Greater => RegisterExpr::binary(Binary::Less, right, left),
            BinaryOperator::LessEqual => RegisterExpr::binary(Binary::LessEqual, left, right),
            BinaryOperator::GreaterEqual => RegisterExpr::binary(Binary::LessEqual, right, left),
        }
    }

    // Locks.

    fn mark(&mut self, address: RegisterExpr, tags: u64, into: Option<(Register, RegisterExpr)>) {
        let ordered = tags == tag::LOCK_WRITE;
        self.push(Op::Mark { into, address, tags, ordered, value: RegisterExpr::Const(0) });
    }
    fn lock(&mut self, address: RegisterExpr) {
        self.mark(address.clone(), tag::LOCK_READ, None);
        self.mark(address, tag::LOCK_WRITE, None);
    }
    /// Adds an event that finds a lock taken or free. The result depends on it, unless it is a
    /// condition itself.
    fn push_test(&mut self, address: RegisterExpr, tags: u64, into: Register, result: u64) {
        if self.condition.is_some() {
            self.mark(address, tags, None);
            self.push(Op::Let(into, RegisterExpr::Const(result)));
        } else {
            self.mark(address, tags, Some((into, RegisterExpr::Const(result))));
        }
    }

    // Read-modify-writes.

    /// Returns the tag of an annotation of the first edition; 0 if there is none.
    fn edition(&self, annotation: &str) -> u64 {
        self.language.tag(annotation).unwrap_or(0)
    }
    /// Returns the tags of the read and of the write of a read-modify-write.
    fn halves(&self, annotations: &[String], tags: u64) -> (u64, u64) {
        if !self.language.first_edition {
            return (tags, tags);
        }
        let once = self.edition("once");
        let only = |name: &str| annotations.len() == 1 && annotations[0] == name;
        (if only("acquire") { tags } else { once }, if only("release") { tags } else { once })
    }
    /// Returns the fence around a read-modify-write of the first edition.
    fn barrier(&self, annotations: &[String]) -> Option<u64> {
        let full = annotations.len() == 1 && annotations[0] == "mb";
        (full && self.language.first_edition).then(|| self.edition("mb"))
    }
    fn update(&mut self, op: Op, span: Span) {
        // A read-modify-write is an instruction of its own.
        self.end(span);
        self.loads = [self.loads[0] + 1, self.loads[1] + 2];
        self.joined = false;
        self.push(op);
        self.end(span);
    }
    /// Lowers an update that may fail. `op` builds it from the register of its result and its tags.
    fn conditional(
        &mut self,
        op: impl Fn(Register, (u64, u64)) -> Op,
        (annotations, tags): (&[String], u64),
        span: Span,
    ) -> Lowered<RegisterExpr> {
        let into = self.temporary();
        let halves = self.halves(annotations, tags);
        let adds = annotations.is_empty();
        let fence = self
            .barrier(annotations)
            .or_else(|| (adds && self.language.first_edition).then(|| self.edition("mb")));
        let Some(fence) = fence else {
            self.update(op(into, halves), span);
            return Ok(RegisterExpr::Register(into));
        };
        // Only a success has barriers.
        let Op::Update { when: Some(when), into: Some((_, result)), address, .. } =
            op(into, halves)
        else {
            return Err(Diagnostic::internal("an update without a condition"));
        };
        let fails = self.push(Op::Either { to: 0 });
        self.push(Op::Fence(fence));
        let success = self.temporary();
        let mut succeeds = op(into, halves);
        if let Op::Update { into: Some((register, value)), .. } = &mut succeeds {
            (*register, *value) = (success, RegisterExpr::Loaded.extend_bytes(WIDTH, true));
        }
        self.update(succeeds, span);
        let found = |e: &RegisterExpr, r: Register| with_loaded(e, r);
        self.push(Op::Assume(found(&when, success)));
        self.push(Op::Let(into, found(&result, success)));
        self.push(Op::Fence(fence));
        let over = self.push(Op::Branch { when: None, to: 0 });
        self.land(fails);
        self.end(span);
        self.push(Op::Load {
            into: Some(success),
            value: RegisterExpr::Loaded.extend_bytes(WIDTH, true),
            address,
            width: WIDTH,
            tags: self.edition("once") | tag::ATOMIC,
            reserve: false,
            joined: false,
        });
        self.push(Op::Assume(RegisterExpr::unary(Unary::IsZero, found(&when, success))));
        self.push(Op::Let(into, found(&result, success)));
        self.land(over);
        self.end(span);
        Ok(RegisterExpr::Register(into))
    }
    /// Lowers an atomic operation. The result is the new value if `new`, otherwise the old one; it
    /// depends on the operand in both cases.
    fn atomic(
        &mut self,
        (pointer, op, operand): (&Exp, BinaryOperator, &Exp),
        tags: (u64, u64),
        new: bool,
        span: Span,
    ) -> Lowered<Register> {
        let address = self.value(pointer)?;
        let operand = self.value(operand)?;
        let loaded = RegisterExpr::Loaded.extend_bytes(WIDTH, true);
        let value = self.binary(op, loaded.clone(), operand.clone());
        let result = if new {
            value.clone()
        } else {
            let nothing = RegisterExpr::binary(Binary::And, operand, RegisterExpr::Const(0));
            RegisterExpr::binary(Binary::Or, loaded, nothing)
        };
        let into = self.temporary();
        self.update(update(address, (into, result), value, None, tags), span);
        Ok(into)
    }
}

/// Builds a read-modify-write of two events.
fn update(
    address: RegisterExpr,
    into: (Register, RegisterExpr),
    value: RegisterExpr,
    when: Option<RegisterExpr>,
    (read, write): (u64, u64),
) -> Op {
    let read = read | tag::ATOMIC;
    Op::Update {
        into: Some(into),
        address,
        width: WIDTH,
        value,
        when,
        read,
        write: write | tag::ATOMIC,
        failed: read,
        atomicity: Atomicity::Pair,
        flow: Flow::Kernel,
        joined: false,
    }
}

/// Replaces the loaded value by a register.
fn with_loaded(e: &RegisterExpr, register: Register) -> RegisterExpr {
    match e {
        RegisterExpr::Loaded => RegisterExpr::Register(register),
        RegisterExpr::Unary(op, a) => RegisterExpr::unary(*op, with_loaded(a, register)),
        RegisterExpr::Binary(op, a, b) => {
            RegisterExpr::binary(*op, with_loaded(a, register), with_loaded(b, register))
        }
        other => other.clone(),
    }
}
