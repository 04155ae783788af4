//! C11 tests: functions `P0 (atomic_int* x, int* y) { … }` with atomic operations, plain accesses,
//! `if`, `while`, `do`, `for`, local variables.
//!
//! Input: tokens. Output: threads. Local variables are registers; parameters are the addresses of
//! the variables with their names. As in the herd tools, the loads and single-event updates of the
//! operands of an operator are not ordered with each other (the standard orders them in one of both
//! ways), and an access through `*` is not atomic, whatever the type. A read-modify-write is one
//! event, or two if the model requires it ([`crate::file::ParserOptions`]). A weak
//! compare-and-exchange may fail although the values are equal. `a ? b : c` evaluates only one of
//! its sides, as `if` does.
//!
//! A declaration is visible up to the end of its block, and hides one of an outer block.
//! Declarations with the same name in disjoint blocks share a register, so that a condition can
//! refer to a variable that is declared in a block.

mod atomics;
mod expression;
mod literal;

use crate::code::{Arch, Binary, Op, Register, RegisterExpr, Thread, Unary};
use crate::init::type_of;
use crate::layout::{IntegerType, MemoryLayout};
use mu_base::words::{Cursor, Token, TokenKind};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_program::outcome::question::DEPTH;
use std::collections::{HashMap, HashSet};

const INT: IntegerType = IntegerType::integer(4, true);
const POINTER: IntegerType = IntegerType::integer(8, false);

/// A value with its type; for a pointer also the type of its target.
#[derive(Clone)]
struct Typed {
    e: RegisterExpr,
    ty: IntegerType,
    pointee: Option<IntegerType>,
}

/// The types of local variables, by register.
#[derive(Clone, Debug, Default)]
pub struct Locals {
    /// The types.
    pub types: HashMap<Register, IntegerType>,
    /// The registers of variables that are declared in several blocks with different types.
    pub several: HashSet<Register>,
}

/// A local variable or a parameter.
#[derive(Clone, Copy)]
struct Local {
    register: Register,
    ty: IntegerType,
    /// The type of a pointer's target.
    pointee: Option<IntegerType>,
}

/// A thread with the types of its local variables.
pub struct CThread {
    /// The thread.
    pub thread: Thread,
    /// Types of registers.
    pub locals: Locals,
}

/// Parses all functions.
pub fn functions(
    cursor: &mut Cursor<'_, '_>,
    layout: &mut MemoryLayout,
    pairs: bool,
    text: &str,
) -> Result<Vec<CThread>, Diagnostic> {
    let mut list = Vec::new();
    while cursor.peek().kind == TokenKind::Name
        && cursor.ahead(1).text == "("
        && cursor.peek().text == format!("P{}", list.len())
    {
        cursor.take();
        let mut lowering = Lowering::new(pairs, text);
        lowering.scopes.push(HashMap::new());
        lowering.parameters(cursor, layout)?;
        cursor.expect("{")?;
        lowering.statements(cursor, 0)?;
        lowering.check_exact(cursor.previous().span)?;
        list.push(CThread { thread: lowering.thread, locals: lowering.locals });
    }
    let name = cursor.peek();
    let is_thread = name.text.strip_prefix('P').is_some_and(|n| n.parse::<u32>().is_ok());
    if is_thread && cursor.ahead(1).text == "(" {
        let message = format!("the function `{}` is not `P{}`", name.text, list.len());
        return Err(Diagnostic::at(Stage::Syntax, name.span, message)
            .note("expected functions that are numbered from `P0`, in this order"));
    }
    if list.is_empty() {
        return Err(cursor.unexpected("a function: `P0 (…) { … }`"));
    }
    Ok(list)
}

struct Lowering<'s> {
    thread: Thread,
    locals: Locals,
    /// The visible names, innermost block last. The first block is the body of the function.
    scopes: Vec<HashMap<String, Local>>,
    /// The registers of variables of the body.
    of_body: HashSet<Register>,
    pairs: bool,
    temporaries: u32,
    text: &'s str,
    /// Numbers of accesses so far, and of their places in program order.
    accesses: [u32; 2],
    /// True if the next access is not ordered with the previous one.
    joined: bool,
    /// True if an expression may have a value of 128 bits that 64 bits do not represent.
    inexact: bool,
}

fn tag(name: &str) -> u64 {
    Arch::C.tag(name)
}

/// Returns the tags of the read and the write of a read-modify-write that is two events.
fn halves(tags: u64) -> (u64, u64) {
    let rest = tags & !(tag("ACQ") | tag("REL") | tag("ACQ_REL") | tag("CON"));
    match tags {
        t if t & tag("ACQ_REL") != 0 => (rest | tag("ACQ"), rest | tag("REL")),
        t if t & tag("ACQ") != 0 => (t, rest | tag("RLX")),
        t if t & tag("CON") != 0 => (t, rest | tag("RLX")),
        t if t & tag("REL") != 0 => (rest | tag("RLX"), t),
        t => (t, t),
    }
}

impl<'s> Lowering<'s> {
    fn new(pairs: bool, text: &'s str) -> Self {
        Self {
            thread: Thread::default(),
            locals: Locals::default(),
            scopes: Vec::new(),
            of_body: HashSet::new(),
            pairs,
            temporaries: 0,
            text,
            accesses: [0, 0],
            joined: false,
            inexact: false,
        }
    }
    /// Counts an access with a number of places of its own. Returns true if its first one is that
    /// of the previous access.
    fn count(&mut self, places: u32) -> bool {
        let joined = std::mem::take(&mut self.joined);
        let places = places - u32::from(joined);
        self.accesses = [self.accesses[0] + 1, self.accesses[1] + places];
        joined
    }
    fn push(&mut self, op: Op) {
        self.thread.ops.push(op);
        self.thread.instruction.push(narrow::index(self.thread.texts.len()));
    }
    /// Ends the instruction with the text between a position and the cursor.
    fn end(&mut self, start: Span, cursor: &Cursor<'_, '_>) {
        let end = cursor.previous().span.end;
        let written = self.text.get(start.start as usize..end as usize).unwrap_or("");
        self.thread.texts.push((
            written.split_whitespace().collect::<Vec<_>>().join(" "),
            Span { end, ..start },
        ));
    }
    fn temporary(&mut self) -> Register {
        self.temporaries += 1;
        self.thread.register(&format!("temporary {}", self.temporaries))
    }
    fn next_operation(&self) -> u32 {
        narrow::index(self.thread.ops.len())
    }
    /// Adds a jump with a target that is set later.
    fn branch(&mut self, when: Option<RegisterExpr>) -> usize {
        self.push(Op::Branch { when, to: 0 });
        self.thread.ops.len() - 1
    }
    fn land(&mut self, branch: usize) {
        let place = self.next_operation();
        if let Op::Branch { to, .. } | Op::Either { to } = &mut self.thread.ops[branch] {
            *to = place;
        }
    }
    fn parameters(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        layout: &mut MemoryLayout,
    ) -> Result<(), Diagnostic> {
        cursor.expect("(")?;
        while !cursor.eat(")") {
            let (mut words, start) = (Vec::new(), cursor.peek());
            while cursor.peek().kind == TokenKind::Name && cursor.ahead(1).kind == TokenKind::Name
                || cursor.ahead(1).text == "*"
                || cursor.is("*")
            {
                words.push(cursor.take().text);
            }
            let name = cursor.name("a parameter")?;
            if cursor.eat("[") {
                cursor.expect("]")?;
                words.push("*");
            }
            if words.pop() != Some("*") {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    start.span,
                    "a parameter that is no pointer is not supported",
                )
                .note("expected such as `atomic_int* x`"));
            }
            let Some((ty, atomic)) = type_of(&words, Arch::C) else {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    start.span,
                    format!("the type `{}` is not supported", words.join(" ")),
                )
                .note("supported: integers and `_Bool`, plain and atomic"));
            };
            let v = layout.variable(name.text);
            let variable = layout.variable_mut(v);
            let declared = *variable.declared.get_or_insert(ty);
            if (declared.width, declared.boolean) != (ty.width, ty.boolean) {
                let text = words.join(" ");
                let message = format!(
                    "`{}` points to `{text}`, and the variable is declared with another type",
                    name.text
                );
                return Err(Diagnostic::at(Stage::Type, name.span, message)
                    .note("expected one type in the initial state and in all functions"));
            }
            variable.atomic |= atomic;
            let address = variable.address;
            let local = self.declare(&name, POINTER, Some(ty))?;
            self.thread.registers[local.register as usize].1 = address;
            if !cursor.is(")") {
                cursor.expect(",")?;
            }
        }
        Ok(())
    }
    fn deeper(cursor: &Cursor<'_, '_>, depth: u32) -> Result<u32, Diagnostic> {
        if depth >= DEPTH {
            return Err(Diagnostic::at(
                Stage::Syntax,
                cursor.peek().span,
                format!("code that nests more than {DEPTH} deep"),
            ));
        }
        Ok(depth + 1)
    }
    /// Parses a block with the scope of its declarations.
    fn block(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        cursor.expect("{")?;
        self.scopes.push(HashMap::new());
        self.statements(cursor, depth)?;
        self.scopes.pop();
        Ok(())
    }
    /// Parses statements up to the end of their block.
    fn statements(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        while !cursor.eat("}") {
            if cursor.at_end() {
                return Err(cursor.unexpected("`}`"));
            }
            self.statement(cursor, depth)?;
        }
        Ok(())
    }
    /// Parses the body of `if` or a loop, as a block.
    fn inner(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        self.scopes.push(HashMap::new());
        self.statement(cursor, depth)?;
        self.scopes.pop();
        Ok(())
    }
    /// Declares a name in the innermost block.
    fn declare(
        &mut self,
        name: &Token<'_>,
        ty: IntegerType,
        pointee: Option<IntegerType>,
    ) -> Result<Local, Diagnostic> {
        if self.scopes.last().is_some_and(|scope| scope.contains_key(name.text)) {
            return Err(Diagnostic::at(
                Stage::Type,
                name.span,
                format!("`{}` is declared twice in one block", name.text),
            ));
        }
        // A declaration that hides another has a separate register, to which conditions cannot
        // refer.
        let hides = self.scopes.iter().filter(|scope| scope.contains_key(name.text)).count();
        let register = match hides {
            0 => self.thread.register(name.text),
            _ => self.thread.register(&format!("{} hides {hides}", name.text)),
        };
        if self.scopes.len() == 1 {
            // Conditions refer to the variable of the body.
            self.of_body.insert(register);
            self.locals.types.insert(register, ty);
            self.locals.several.remove(&register);
        } else if !self.of_body.contains(&register)
            && *self.locals.types.entry(register).or_insert(ty) != ty
        {
            self.locals.several.insert(register);
        }
        let local = Local { register, ty, pointee };
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.text.to_string(), local);
        }
        Ok(local)
    }
    fn local(&self, name: &Token<'_>) -> Result<Local, Diagnostic> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name.text)).copied();
        found.ok_or_else(|| {
            let message =
                format!("`{}` is no parameter or local variable that is visible here", name.text);
            Diagnostic::at(Stage::Type, name.span, message)
        })
    }
    fn statement(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        let depth = Self::deeper(cursor, depth)?;
        let start = cursor.peek();
        if cursor.is("{") {
            return self.block(cursor, depth);
        }
        if cursor.eat(";") {
            return Ok(());
        }
        match start.text {
            "if" => {
                cursor.take();
                let skip = self.condition(cursor, start.span, depth)?;
                self.inner(cursor, depth)?;
                if cursor.is_word("else") {
                    cursor.take();
                    let over = self.branch(None);
                    self.land(skip);
                    self.inner(cursor, depth)?;
                    self.land(over);
                } else {
                    self.land(skip);
                }
            }
            "while" => {
                cursor.take();
                let back = self.next_operation();
                let out = self.condition(cursor, start.span, depth)?;
                self.inner(cursor, depth)?;
                self.push(Op::Branch { when: None, to: back });
                self.land(out);
            }
            "do" => {
                cursor.take();
                let back = self.next_operation();
                self.inner(cursor, depth)?;
                if !cursor.eat_word("while") {
                    return Err(cursor.unexpected("`while`"));
                }
                cursor.expect("(")?;
                let value = self.expression(cursor, 0, depth)?;
                cursor.expect(")")?;
                self.push(Op::Branch { when: Some(value.e), to: back });
                self.end(start.span, cursor);
                cursor.expect(";")?;
            }
            "for" => {
                self.scopes.push(HashMap::new());
                self.for_loop(cursor, depth)?;
                self.scopes.pop();
            }
            "switch" | "goto" | "return" | "break" | "continue" => {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    start.span,
                    format!("the statement `{}` is not supported", start.text),
                )
                .note("supported: if, while, do, for"));
            }
            _ => {
                self.simple(cursor, depth)?;
                self.end(start.span, cursor);
                cursor.expect(";")?;
            }
        }
        Ok(())
    }
    /// Parses `for (first; condition; step) body`, in which each part may be empty. The step is
    /// parsed twice: at its position, and after the body, where it is lowered.
    fn for_loop(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        let start = cursor.take();
        cursor.expect("(")?;
        if !cursor.is(";") {
            self.simple(cursor, depth)?;
            self.end(start.span, cursor);
        }
        cursor.expect(";")?;
        let back = self.next_operation();
        let mut out = None;
        if !cursor.is(";") {
            let place = cursor.peek().span;
            let value = self.expression(cursor, 0, depth)?;
            out = Some(self.branch(Some(RegisterExpr::unary(Unary::IsZero, value.e))));
            self.end(place, cursor);
        }
        cursor.expect(";")?;
        let mut step = cursor.clone();
        let mut open = 0usize;
        while open > 0 || !cursor.is(")") {
            if cursor.at_end() {
                return Err(cursor.unexpected("`)`"));
            }
            match cursor.take().text {
                "(" => open += 1,
                ")" => open -= 1,
                _ => {}
            }
        }
        cursor.expect(")")?;
        self.inner(cursor, depth)?;
        if !step.is(")") {
            let place = step.peek().span;
            self.simple(&mut step, depth)?;
            self.end(place, &step);
            if !step.is(")") {
                return Err(step.unexpected("`)`"));
            }
        }
        self.push(Op::Branch { when: None, to: back });
        if let Some(out) = out {
            self.land(out);
        }
        Ok(())
    }
    /// Parses `( condition )` and adds a branch that is taken if it is false.
    fn condition(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        start: Span,
        depth: u32,
    ) -> Result<usize, Diagnostic> {
        cursor.expect("(")?;
        let value = self.expression(cursor, 0, depth)?;
        cursor.expect(")")?;
        let branch = self.branch(Some(RegisterExpr::unary(Unary::IsZero, value.e)));
        self.end(start, cursor);
        Ok(branch)
    }
    /// Parses a declaration, an assignment, or a call.
    fn simple(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        let start = cursor.peek().span;
        self.assignment_or_expression(cursor, depth)?;
        self.check_exact(start)
    }
    /// Rejects values of 128 bits that 64 bits do not represent, and conditions before the place
    /// with such values.
    fn check_exact(&self, place: Span) -> Result<(), Diagnostic> {
        if !self.inexact {
            return Ok(());
        }
        let message = "arithmetic of 128-bit values is not supported";
        Err(Diagnostic::at(Stage::Unsupported, place, message).note(
            "supported: copies of one type, constants up to 2^63 - 1, comparisons, `&`, `|`, `^`",
        ))
    }
    fn assignment_or_expression(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        depth: u32,
    ) -> Result<(), Diagnostic> {
        if let Some((ty, _)) = self.take_type(cursor) {
            loop {
                let mut stars = 0;
                while cursor.eat("*") {
                    stars += 1;
                }
                let name = cursor.name("a variable")?;
                let (ty, pointee) = match stars {
                    0 => (ty, None),
                    1 => (POINTER, Some(ty)),
                    _ => (POINTER, Some(POINTER)),
                };
                let local = self.declare(&name, ty, pointee)?;
                if cursor.eat("=") {
                    let value = self.expression(cursor, 0, depth)?;
                    let value = self.convert(value, ty);
                    self.push(Op::Let(local.register, value));
                }
                if !cursor.eat(",") {
                    return Ok(());
                }
            }
        }
        if cursor.is("++") || cursor.is("--") {
            let sign = cursor.take().text;
            let name = cursor.name("a local variable")?;
            return self.step(&name, sign);
        }
        let next = cursor.ahead(1).text;
        if cursor.peek().kind == TokenKind::Name {
            if matches!(next, "++" | "--") {
                let name = cursor.take();
                let sign = cursor.take().text;
                return self.step(&name, sign);
            }
            if next == "=" {
                let local = self.local(&cursor.take())?;
                cursor.take();
                let value = self.expression(cursor, 0, depth)?;
                let value = self.convert(value, local.ty);
                self.push(Op::Let(local.register, value));
                return Ok(());
            }
            if let Some(op) = compound(next).filter(|_| cursor.ahead(2).text == "=") {
                let local = self.local(&cursor.take())?;
                cursor.take();
                cursor.take();
                let old = Typed {
                    e: RegisterExpr::Register(local.register),
                    ty: local.ty,
                    pointee: local.pointee,
                };
                let operand = self.expression(cursor, 0, depth)?;
                let value = self.join(op, false, old, operand);
                let value = self.convert(value, local.ty);
                self.push(Op::Let(local.register, value));
                return Ok(());
            }
        }
        if cursor.is("*") || cursor.peek().kind == TokenKind::Name && next == "[" {
            let (address, ty) = self.place(cursor, depth)?;
            cursor.expect("=")?;
            let value = self.expression(cursor, 0, depth)?;
            let value = self.convert(value, ty);
            self.push(Op::Store {
                address,
                width: ty.width,
                value,
                tags: tag("NA"),
                joined: false,
            });
            return Ok(());
        }
        self.expression(cursor, 0, depth).map(drop)
    }
    /// Parses `r++` or `r--`.
    fn step(&mut self, name: &Token<'_>, sign: &str) -> Result<(), Diagnostic> {
        let local = self.local(name)?;
        let old = Typed {
            e: RegisterExpr::Register(local.register),
            ty: local.ty,
            pointee: local.pointee,
        };
        let op = if sign == "++" { Binary::Add } else { Binary::Sub };
        let value = self.join(op, false, old, Typed::of(RegisterExpr::Const(1), INT));
        let value = self.convert(value, local.ty);
        self.push(Op::Let(local.register, value));
        Ok(())
    }
    /// Parses `*p`, `*(p+1)` or `p[i]`. Returns the address and the type of its target.
    fn place(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        depth: u32,
    ) -> Result<(RegisterExpr, IntegerType), Diagnostic> {
        let depth = Self::deeper(cursor, depth)?;
        if cursor.eat("*") {
            let pointer = self.unary(cursor, depth)?;
            return Ok((pointer.e, pointer.pointee.unwrap_or(INT)));
        }
        let name = cursor.name("a variable")?;
        let local = self.local(&name)?;
        let pointee = local.pointee.unwrap_or(INT);
        cursor.expect("[")?;
        let index = self.expression(cursor, 0, depth)?;
        cursor.expect("]")?;
        let scaled = RegisterExpr::binary(
            Binary::Mul,
            index.e,
            RegisterExpr::Const(u64::from(pointee.width)),
        );
        Ok((
            RegisterExpr::binary(Binary::Add, RegisterExpr::Register(local.register), scaled),
            pointee,
        ))
    }
    /// Parses a type, if there is one. Returns it with true if a star follows.
    fn take_type(&self, cursor: &mut Cursor<'_, '_>) -> Option<(IntegerType, bool)> {
        let mut words = Vec::new();
        let mut ahead = cursor.clone();
        while ahead.peek().kind == TokenKind::Name
            && type_of(&[ahead.peek().text], Arch::C).is_some()
            || matches!(ahead.peek().text, "unsigned" | "long" | "volatile" | "const" | "signed")
        {
            words.push(ahead.take().text);
        }
        let (ty, _) = type_of(&words, Arch::C)?;
        *cursor = ahead;
        Some((ty, false))
    }
}

/// Returns the operator of a compound assignment.
fn compound(sign: &str) -> Option<Binary> {
    Some(match sign {
        "+" => Binary::Add,
        "-" => Binary::Sub,
        "*" => Binary::Mul,
        "/" => Binary::Div,
        "%" => Binary::Rem,
        "^" => Binary::Xor,
        "|" => Binary::Or,
        "&" => Binary::And,
        "<<" => Binary::Shl,
        ">>" => Binary::Shr,
        _ => return None,
    })
}
