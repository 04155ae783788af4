//! C11 tests: functions `P0 (atomic_int* x, int* y) { … }` with atomic operations, plain accesses, `if`, `while`, `do`, `for`, local variables.
//!
//! In: tokens. Out: threads. Local variables are registers; parameters are the addresses of the variables of their names. Operands are evaluated from left to right.
//! An access through `*` is not atomic, whatever the type says, as the herd tools have it. A read-modify-write is one event, or two if the model asks for it
//! ([`crate::file::Options`]). A weak compare-and-exchange may fail although the values are equal. `a ? b : c` runs one of its sides, as `if` does.

use crate::code::{Arch, Atomicity, Binary, Expr, Flow, Op, Register, Thread, Unary};
use crate::init::type_of;
use crate::layout::{Layout, Type};
use mu_base::words::{Cursor, Kind, Token};
use mu_base::{Diagnostic, Span, Stage};
use mu_outcome::question::DEPTH;
use std::collections::HashMap;

const INT: Type = Type { width: 4, signed: true };

/// A value with its type; of a pointer also what it points to.
#[derive(Clone)]
struct Typed {
    e: Expr,
    ty: Type,
    pointee: Option<Type>,
}

/// The types of local variables, by register.
pub type Locals = HashMap<Register, Type>;

/// A thread with the types of its local variables.
pub struct Function {
    /// The thread.
    pub thread: Thread,
    /// Types of registers.
    pub locals: Locals,
}

/// Takes all functions.
pub fn functions(cursor: &mut Cursor<'_, '_>, layout: &mut Layout, pairs: bool, text: &str) -> Result<Vec<Function>, Diagnostic> {
    let mut list = Vec::new();
    while cursor.peek().kind == Kind::Name && cursor.ahead(1).text == "(" && cursor.peek().text == format!("P{}", list.len()) {
        cursor.take();
        let mut lowering = Lowering::new(pairs, text);
        lowering.parameters(cursor, layout)?;
        lowering.block(cursor, 0)?;
        list.push(Function { thread: lowering.thread, locals: lowering.types.into_iter().map(|(r, t)| (r, t.0)).collect() });
    }
    if list.is_empty() {
        return Err(cursor.unexpected("a function: `P0 (…) { … }`"));
    }
    Ok(list)
}

struct Lowering<'s> {
    thread: Thread,
    types: HashMap<Register, (Type, Option<Type>)>,
    pairs: bool,
    temporaries: u32,
    text: &'s str,
}

fn tag(name: &str) -> u64 {
    Arch::C.tag(name)
}

/// The tags of the halves of a read-modify-write that is two events.
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
        Self { thread: Thread::default(), types: HashMap::new(), pairs, temporaries: 0, text }
    }
    fn push(&mut self, op: Op) {
        self.thread.ops.push(op);
        self.thread.instruction.push(self.thread.texts.len() as u32);
    }
    /// Ends the instruction whose text goes from a place to the cursor.
    fn end(&mut self, start: Span, cursor: &Cursor<'_, '_>) {
        let end = cursor.before().span.end;
        let written = self.text.get(start.start as usize..end as usize).unwrap_or("");
        self.thread.texts.push((written.split_whitespace().collect::<Vec<_>>().join(" "), Span { end, ..start }));
    }
    fn temporary(&mut self) -> Register {
        self.temporaries += 1;
        self.thread.register(&format!("temporary {}", self.temporaries))
    }
    fn here(&self) -> u32 {
        self.thread.ops.len() as u32
    }
    /// Jumps to a place that is not known yet.
    fn branch(&mut self, when: Option<Expr>) -> usize {
        self.push(Op::Branch { when, to: 0 });
        self.thread.ops.len() - 1
    }
    fn land(&mut self, branch: usize) {
        let place = self.here();
        if let Op::Branch { to, .. } | Op::Either { to } = &mut self.thread.ops[branch] {
            *to = place;
        }
    }
    fn parameters(&mut self, cursor: &mut Cursor<'_, '_>, layout: &mut Layout) -> Result<(), Diagnostic> {
        cursor.expect("(")?;
        while !cursor.eat(")") {
            let (mut words, start) = (Vec::new(), cursor.peek());
            while cursor.peek().kind == Kind::Name && cursor.ahead(1).kind == Kind::Name || cursor.ahead(1).text == "*" || cursor.is("*") {
                words.push(cursor.take().text);
            }
            let name = cursor.name("a parameter")?;
            if cursor.eat("[") {
                cursor.expect("]")?;
                words.push("*");
            }
            if words.pop() != Some("*") {
                return Err(Diagnostic::at(Stage::Unsupported, start.span, "a parameter that is no pointer"));
            }
            let Some((ty, atomic)) = type_of(&words, Arch::C) else {
                return Err(Diagnostic::at(Stage::Unsupported, start.span, format!("the type `{}`", words.join(" "))));
            };
            let v = layout.variable(name.text);
            let variable = layout.variable_mut(v);
            let pointee = *variable.declared.get_or_insert(ty);
            variable.atomic |= atomic;
            let address = variable.address;
            let register = self.thread.register(name.text);
            self.thread.registers[register as usize].1 = address;
            self.types.insert(register, (Type { width: 8, signed: false }, Some(pointee)));
            if !cursor.is(")") {
                cursor.expect(",")?;
            }
        }
        Ok(())
    }
    fn deeper(cursor: &Cursor<'_, '_>, depth: u32) -> Result<u32, Diagnostic> {
        if depth >= DEPTH {
            return Err(Diagnostic::at(Stage::Syntax, cursor.peek().span, format!("code that nests more than {DEPTH} deep")));
        }
        Ok(depth + 1)
    }
    fn block(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        cursor.expect("{")?;
        while !cursor.eat("}") {
            if cursor.at_end() {
                return Err(cursor.unexpected("`}`"));
            }
            self.statement(cursor, depth)?;
        }
        Ok(())
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
                self.statement(cursor, depth)?;
                if cursor.is_word("else") {
                    cursor.take();
                    let over = self.branch(None);
                    self.land(skip);
                    self.statement(cursor, depth)?;
                    self.land(over);
                } else {
                    self.land(skip);
                }
            }
            "while" => {
                cursor.take();
                let back = self.here();
                let out = self.condition(cursor, start.span, depth)?;
                self.statement(cursor, depth)?;
                self.push(Op::Branch { when: None, to: back });
                self.land(out);
            }
            "do" => {
                cursor.take();
                let back = self.here();
                self.statement(cursor, depth)?;
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
            "for" => self.for_loop(cursor, depth)?,
            "switch" | "goto" | "return" | "break" | "continue" => {
                return Err(Diagnostic::at(Stage::Unsupported, start.span, format!("the statement `{}`", start.text))
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
    /// `for (first; condition; step) body`, each of which may be empty. The step is read where it stands and again after the body, where it is run.
    fn for_loop(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        let start = cursor.take();
        cursor.expect("(")?;
        if !cursor.is(";") {
            self.simple(cursor, depth)?;
            self.end(start.span, cursor);
        }
        cursor.expect(";")?;
        let back = self.here();
        let mut out = None;
        if !cursor.is(";") {
            let place = cursor.peek().span;
            let value = self.expression(cursor, 0, depth)?;
            out = Some(self.branch(Some(Expr::unary(Unary::IsZero, value.e))));
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
        self.statement(cursor, depth)?;
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
    /// `( condition )`, and a branch that is taken if it does not hold.
    fn condition(&mut self, cursor: &mut Cursor<'_, '_>, start: Span, depth: u32) -> Result<usize, Diagnostic> {
        cursor.expect("(")?;
        let value = self.expression(cursor, 0, depth)?;
        cursor.expect(")")?;
        let branch = self.branch(Some(Expr::unary(Unary::IsZero, value.e)));
        self.end(start, cursor);
        Ok(branch)
    }
    /// A declaration, an assignment, or a call.
    fn simple(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(), Diagnostic> {
        if let Some((ty, mut pointer)) = self.take_type(cursor) {
            loop {
                while cursor.eat("*") {
                    pointer = true;
                }
                let name = cursor.name("a variable")?;
                let register = self.thread.register(name.text);
                let own = if pointer { (Type { width: 8, signed: false }, Some(ty)) } else { (ty, None) };
                self.types.insert(register, own);
                if cursor.eat("=") {
                    let value = self.expression(cursor, 0, depth)?;
                    self.push(Op::Let(register, value.e.extended(own.0.width, own.0.signed)));
                }
                if !cursor.eat(",") {
                    return Ok(());
                }
            }
        }
        let next = cursor.ahead(1).text;
        if cursor.peek().kind == Kind::Name
            && (matches!(next, "=" | "++" | "--") || matches!(next, "+" | "-" | "^" | "|" | "&") && cursor.ahead(2).text == "=")
        {
            let name = cursor.take();
            let register = self.local(&name)?;
            let ty = self.types.get(&register).map_or(INT, |t| t.0);
            let sign = cursor.take().text;
            let old = Expr::Register(register);
            let value = match sign {
                "=" => self.expression(cursor, 0, depth)?.e,
                "++" => Expr::binary(Binary::Add, old, Expr::Const(1)),
                "--" => Expr::binary(Binary::Sub, old, Expr::Const(1)),
                _ => {
                    cursor.expect("=")?;
                    let op = match sign {
                        "+" => Binary::Add,
                        "-" => Binary::Sub,
                        "^" => Binary::Xor,
                        "|" => Binary::Or,
                        _ => Binary::And,
                    };
                    Expr::binary(op, old, self.expression(cursor, 0, depth)?.e)
                }
            };
            self.push(Op::Let(register, value.extended(ty.width, ty.signed)));
            return Ok(());
        }
        if cursor.is("*") || cursor.peek().kind == Kind::Name && next == "[" {
            let (address, ty) = self.place(cursor, depth)?;
            cursor.expect("=")?;
            let value = self.expression(cursor, 0, depth)?;
            self.push(Op::Store { address, width: ty.width, value: value.e, tags: tag("NA"), joined: false });
            return Ok(());
        }
        self.expression(cursor, 0, depth).map(drop)
    }
    /// `*p`, `*(p+1)` or `p[i]`: an address, and the type of what is there.
    fn place(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<(Expr, Type), Diagnostic> {
        let depth = Self::deeper(cursor, depth)?;
        if cursor.eat("*") {
            let pointer = self.unary(cursor, depth)?;
            return Ok((pointer.e, pointer.pointee.unwrap_or(INT)));
        }
        let name = cursor.name("a variable")?;
        let register = self.local(&name)?;
        let pointee = self.types.get(&register).and_then(|t| t.1).unwrap_or(INT);
        cursor.expect("[")?;
        let index = self.expression(cursor, 0, depth)?;
        cursor.expect("]")?;
        let scaled = Expr::binary(Binary::Mul, index.e, Expr::Const(u64::from(pointee.width)));
        Ok((Expr::binary(Binary::Add, Expr::Register(register), scaled), pointee))
    }
    fn local(&self, name: &Token<'_>) -> Result<Register, Diagnostic> {
        let known = self.thread.registers.iter().position(|r| r.0 == name.text).filter(|i| self.types.contains_key(&(*i as Register)));
        known
            .map(|i| i as Register)
            .ok_or_else(|| Diagnostic::at(Stage::Type, name.span, format!("`{}` is no parameter or local variable", name.text)))
    }
    /// A type if one is here, with whether it is followed by a star.
    fn take_type(&self, cursor: &mut Cursor<'_, '_>) -> Option<(Type, bool)> {
        let mut words = Vec::new();
        let mut ahead = cursor.clone();
        while ahead.peek().kind == Kind::Name && type_of(&[ahead.peek().text], Arch::C).is_some()
            || matches!(ahead.peek().text, "unsigned" | "long" | "volatile" | "const" | "signed")
        {
            words.push(ahead.take().text);
        }
        let (ty, _) = type_of(&words, Arch::C)?;
        *cursor = ahead;
        Some((ty, false))
    }
    fn expression(&mut self, cursor: &mut Cursor<'_, '_>, level: u8, depth: u32) -> Result<Typed, Diagnostic> {
        let depth = Self::deeper(cursor, depth)?;
        let mut left = self.unary(cursor, depth)?;
        while let Some((own, op, swapped)) = operator(cursor.peek()).filter(|o| o.0 >= level) {
            let sign = cursor.take().text;
            if matches!(sign, "&&" | "||") {
                left = self.lazy(cursor, left, sign == "&&", own, depth)?;
                continue;
            }
            let right = self.expression(cursor, own + 1, depth)?;
            left = join(op, swapped, left, right);
        }
        if level == 0 && cursor.eat("?") {
            return self.conditional(cursor, left, depth);
        }
        Ok(left)
    }
    /// `a ? b : c` after the question mark.
    fn conditional(&mut self, cursor: &mut Cursor<'_, '_>, when: Typed, depth: u32) -> Result<Typed, Diagnostic> {
        let held = self.temporary();
        let skip = self.branch(Some(Expr::unary(Unary::IsZero, when.e)));
        let yes = self.expression(cursor, 0, depth)?;
        self.push(Op::Let(held, yes.e));
        let over = self.branch(None);
        self.land(skip);
        cursor.expect(":")?;
        let no = self.expression(cursor, 0, depth)?;
        self.push(Op::Let(held, no.e));
        self.land(over);
        // What arithmetic makes of the two types is the type of both.
        let side = |ty, pointee| Typed { e: Expr::Const(0), ty, pointee };
        let pointee = yes.pointee.or(no.pointee);
        let ty = if pointee.is_some() {
            Type { width: 8, signed: false }
        } else {
            join(Binary::Or, false, side(yes.ty, None), side(no.ty, None)).ty
        };
        Ok(Typed { e: Expr::Register(held).extended(ty.width, ty.signed), ty, pointee })
    }
    /// `&&` and `||`: the right side is run only if it decides, which shows if it touches memory.
    fn lazy(&mut self, cursor: &mut Cursor<'_, '_>, left: Typed, and: bool, own: u8, depth: u32) -> Result<Typed, Diagnostic> {
        let truth = |e: Expr| Expr::binary(Binary::Ne, e, Expr::Const(0));
        let held = self.temporary();
        let start = self.thread.ops.len();
        self.push(Op::Let(held, truth(left.e.clone())));
        let decided = if and { Expr::unary(Unary::IsZero, Expr::Register(held)) } else { Expr::Register(held) };
        let branch = self.branch(Some(decided));
        let right = self.expression(cursor, own + 1, depth)?;
        let boolean = |e| Typed { e, ty: INT, pointee: None };
        if self.thread.ops.len() == branch + 1 {
            self.thread.ops.truncate(start);
            self.thread.instruction.truncate(start);
            let op = if and { Binary::And } else { Binary::Or };
            return Ok(boolean(Expr::binary(op, truth(left.e), truth(right.e))));
        }
        self.push(Op::Let(held, truth(right.e)));
        self.land(branch);
        Ok(boolean(Expr::Register(held)))
    }
    fn unary(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Typed, Diagnostic> {
        let depth = Self::deeper(cursor, depth)?;
        let plain = |e| Typed { e, ty: INT, pointee: None };
        if cursor.is("*") {
            let (address, ty) = self.place(cursor, depth)?;
            return Ok(self.load(address, ty, tag("NA")));
        }
        for (sign, op) in [("-", Unary::Neg), ("~", Unary::Not), ("!", Unary::IsZero)] {
            if cursor.eat(sign) {
                let of = self.unary(cursor, depth)?;
                // Narrow operands become `int` first.
                let ty = if sign == "!" || of.ty.width < INT.width { INT } else { of.ty };
                return Ok(Typed { e: Expr::unary(op, of.e).extended(ty.width, ty.signed), ty, pointee: None });
            }
        }
        if cursor.eat("(") {
            if let Some((ty, _)) = self.take_type(cursor) {
                let pointer = cursor.eat("*");
                cursor.expect(")")?;
                let of = self.unary(cursor, depth)?;
                return Ok(match pointer {
                    true => Typed { e: of.e, ty: Type { width: 8, signed: false }, pointee: Some(ty) },
                    false => Typed { e: of.e.extended(ty.width, ty.signed), ty, pointee: None },
                });
            }
            let inner = self.expression(cursor, 0, depth)?;
            cursor.expect(")")?;
            return Ok(inner);
        }
        if cursor.peek().kind == Kind::Number {
            let number = cursor.number()?;
            // A number that is no `int` is a `long`.
            let ty = if i32::try_from(number).is_ok() { INT } else { Type { width: 8, signed: true } };
            return Ok(Typed { ty, ..plain(Expr::Const(number as u64)) });
        }
        let name = cursor.peek();
        if name.kind != Kind::Name {
            return Err(cursor.unexpected("an expression"));
        }
        match cursor.ahead(1).text {
            "(" => self.call(cursor, depth),
            "[" => {
                let (address, ty) = self.place(cursor, depth)?;
                Ok(self.load(address, ty, tag("NA")))
            }
            _ => {
                cursor.take();
                let register = self.local(&name)?;
                let (ty, pointee) = self.types.get(&register).copied().unwrap_or((INT, None));
                Ok(Typed { e: Expr::Register(register), ty, pointee })
            }
        }
    }
    fn load(&mut self, address: Expr, ty: Type, tags: u64) -> Typed {
        let into = self.temporary();
        let value = Expr::Loaded.extended(ty.width, ty.signed);
        self.push(Op::Load { into: Some(into), value, address, width: ty.width, tags, reserve: false, joined: false });
        Typed { e: Expr::Register(into), ty, pointee: None }
    }
    fn order(cursor: &mut Cursor<'_, '_>) -> Result<u64, Diagnostic> {
        let name = cursor.name("a memory order")?;
        let atomic = tag("A");
        Ok(atomic
            | match name.text.strip_prefix("memory_order_").unwrap_or(name.text) {
                "relaxed" => tag("RLX"),
                "consume" => tag("CON"),
                "acquire" => tag("ACQ"),
                "release" => tag("REL"),
                "acq_rel" => tag("ACQ_REL"),
                "seq_cst" => tag("SC"),
                _ => {
                    return Err(Diagnostic::at(Stage::Type, name.span, format!("`{}` is no memory order", name.text)));
                }
            })
    }
    fn call(&mut self, cursor: &mut Cursor<'_, '_>, depth: u32) -> Result<Typed, Diagnostic> {
        let name = cursor.take();
        cursor.expect("(")?;
        let (stem, explicit) = match name.text.strip_suffix("_explicit") {
            Some(stem) => (stem, true),
            None => (name.text, false),
        };
        let seq_cst = tag("SC") | tag("A");
        let order = |cursor: &mut Cursor<'_, '_>| {
            if !explicit {
                return Ok(seq_cst);
            }
            cursor.expect(",")?;
            Self::order(cursor)
        };
        let none = Typed { e: Expr::Const(0), ty: INT, pointee: None };
        let result = match stem {
            "atomic_thread_fence" => {
                let tags = Self::order(cursor)? & !tag("A");
                self.push(Op::Fence(tags));
                none
            }
            "atomic_load" => {
                let pointer = self.expression(cursor, 0, depth)?;
                let tags = order(cursor)?;
                self.load(pointer.e, pointer.pointee.unwrap_or(INT), tags)
            }
            "atomic_store" => {
                let pointer = self.expression(cursor, 0, depth)?;
                cursor.expect(",")?;
                let value = self.expression(cursor, 0, depth)?;
                let tags = order(cursor)?;
                let width = pointer.pointee.unwrap_or(INT).width;
                self.push(Op::Store { address: pointer.e, width, value: value.e, tags, joined: false });
                none
            }
            "atomic_exchange" | "atomic_fetch_add" | "atomic_fetch_sub" | "atomic_fetch_and" | "atomic_fetch_or" | "atomic_fetch_xor" => {
                let pointer = self.expression(cursor, 0, depth)?;
                cursor.expect(",")?;
                let operand = self.expression(cursor, 0, depth)?;
                let tags = order(cursor)?;
                let op = match stem {
                    "atomic_fetch_add" => Some(Binary::Add),
                    "atomic_fetch_sub" => Some(Binary::Sub),
                    "atomic_fetch_and" => Some(Binary::And),
                    "atomic_fetch_or" => Some(Binary::Or),
                    "atomic_fetch_xor" => Some(Binary::Xor),
                    _ => None,
                };
                let value = op.map_or(operand.e.clone(), |op| Expr::binary(op, Expr::Loaded, operand.e));
                let ty = pointer.pointee.unwrap_or(INT);
                self.update(pointer.e, ty, value, None, tags, tags)
            }
            "atomic_compare_exchange_strong" | "atomic_compare_exchange_weak" => {
                let pointer = self.expression(cursor, 0, depth)?;
                cursor.expect(",")?;
                let expected = self.expression(cursor, 0, depth)?;
                cursor.expect(",")?;
                let desired = self.expression(cursor, 0, depth)?;
                let success = order(cursor)?;
                let failure = order(cursor)?;
                let weak = stem.ends_with("weak");
                self.compare_exchange(pointer, expected.e, desired.e, (success, failure), weak)
            }
            _ => return Err(Diagnostic::at(Stage::Unsupported, name.span, format!("the function `{}`", name.text))),
        };
        cursor.expect(")")?;
        Ok(result)
    }
    /// A weak one has one path more, on which the value is the expected one and nothing is written.
    fn compare_exchange(&mut self, pointer: Typed, expected: Expr, desired: Expr, (success, failure): (u64, u64), weak: bool) -> Typed {
        let ty = pointer.pointee.unwrap_or(INT);
        let wanted = self.load(expected.clone(), ty, tag("NA"));
        let put = |value| Op::Store { address: expected.clone(), width: ty.width, value, tags: tag("NA"), joined: false };
        let refused = weak.then(|| {
            self.push(Op::Either { to: 0 });
            self.thread.ops.len() - 1
        });
        let when = Expr::binary(Binary::Eq, Expr::Loaded.extended(ty.width, ty.signed), wanted.e.clone());
        let old = self.update(pointer.e.clone(), ty, desired, Some(when), success, failure);
        let equal = Expr::binary(Binary::Eq, old.e.clone(), wanted.e.clone());
        let over = self.branch(Some(equal.clone()));
        self.push(put(old.e));
        self.land(over);
        let Some(refused) = refused else { return Typed { e: equal, ty: INT, pointee: None } };
        let result = self.temporary();
        self.push(Op::Let(result, equal));
        let done = self.branch(None);
        self.land(refused);
        let old = self.load(pointer.e, ty, failure);
        self.push(Op::Assume(Expr::binary(Binary::Eq, old.e.clone(), wanted.e)));
        self.push(put(old.e));
        self.push(Op::Let(result, Expr::Const(0)));
        self.land(done);
        Typed { e: Expr::Register(result), ty: INT, pointee: None }
    }
    fn update(&mut self, address: Expr, ty: Type, value: Expr, when: Option<Expr>, tags: u64, failed: u64) -> Typed {
        let into = self.temporary();
        let old = Expr::Loaded.extended(ty.width, ty.signed);
        let (read, write) = if self.pairs { halves(tags) } else { (tags, tags) };
        let atomicity = if self.pairs { Atomicity::Pair } else { Atomicity::One };
        self.push(Op::Update {
            into: Some((into, old)),
            address,
            width: ty.width,
            value,
            when,
            read,
            write,
            failed,
            atomicity,
            flow: Flow::Plain,
        });
        Typed { e: Expr::Register(into), ty, pointee: None }
    }
}

/// How tight an operator binds, what it is, and whether its operands change places.
fn operator(sign: Token<'_>) -> Option<(u8, Binary, bool)> {
    Some(match sign.text {
        _ if sign.kind != Kind::Sign => return None,
        "||" => (1, Binary::Or, false),
        "&&" => (2, Binary::And, false),
        "|" => (3, Binary::Or, false),
        "^" => (4, Binary::Xor, false),
        "&" => (5, Binary::And, false),
        "==" => (6, Binary::Eq, false),
        "!=" => (6, Binary::Ne, false),
        "<" => (7, Binary::Less, false),
        "<=" => (7, Binary::LessEqual, false),
        ">" => (7, Binary::Less, true),
        ">=" => (7, Binary::LessEqual, true),
        "+" => (9, Binary::Add, false),
        "-" => (9, Binary::Sub, false),
        "*" => (10, Binary::Mul, false),
        _ => return None,
    })
}

/// An operator on two values: pointers are scaled, numbers without sign wrap.
fn join(op: Binary, swapped: bool, left: Typed, right: Typed) -> Typed {
    let scaled = |number: Expr, pointee: Type| Expr::binary(Binary::Mul, number, Expr::Const(u64::from(pointee.width)));
    if let (Binary::Add | Binary::Sub, Some(pointee), None) = (op, left.pointee, right.pointee) {
        return Typed { e: Expr::binary(op, left.e, scaled(right.e, pointee)), ..left };
    }
    if let (Binary::Add, Some(pointee)) = (op, right.pointee) {
        return Typed { e: Expr::binary(op, scaled(left.e, pointee), right.e), ..right };
    }
    // Narrow operands become `int` first.
    let promoted = |ty: Type| if ty.width < INT.width { INT } else { ty };
    let (l, r) = (promoted(left.ty), promoted(right.ty));
    let wide = if l.width >= r.width { l } else { r };
    let ty = Type { width: wide.width, signed: wide.signed && (l.width != r.width || l.signed && r.signed) };
    let comparison = matches!(op, Binary::Eq | Binary::Ne | Binary::Less | Binary::LessEqual);
    let (mut a, mut b) = if swapped { (right.e, left.e) } else { (left.e, right.e) };
    let op = match op {
        Binary::Less if !ty.signed => Binary::Below,
        Binary::LessEqual if !ty.signed => Binary::BelowEqual,
        other => other,
    };
    if comparison && !ty.signed {
        (a, b) = (a.extended(ty.width, false), b.extended(ty.width, false));
    }
    let e = Expr::binary(op, a, b);
    if comparison {
        return Typed { e, ty: INT, pointee: None };
    }
    Typed { e: e.extended(ty.width, ty.signed), ty, pointee: None }
}
