//! Lowering of the typed tree to register code: registers, labels, places, reads and writes.
//!
//! A body is lowered for given values of its parameters. What is known then is folded: indices
//! become constant offsets, conditions become jumps or nothing. Small functions are inlined, small
//! loops are unrolled. Expressions are in [`crate::lower_expr`], statements and calls in
//! [`crate::lower_stmt`].
//!
//! Registers are a stack: locals, then temporaries, which a statement frees. Locals of arrays,
//! records and multisets, and those that are passed to `var` parameters, are in memory: behind the
//! state for bodies and functions that are not recursive, on a stack for recursive functions.
//! Invariant: no code is emitted for an expression that is known.

use crate::code::{Bits, Fault, Instance, MultisetShape, Op, Program, Reg, Site, Table, UNDEFINED};
use crate::layout::{Layout, Shape, Simple};
use crate::peephole::shorten;
use crate::typed::{
    Argument, Expr, ExprKind, Frame, FunctionId, LocalId, LocalKind, Model, Place, Root, Step,
    Stmt, StmtKind, TypeId,
};
use crate::walk::{self, Part};
use ahash::AHashMap;
use mu_base::{Diagnostic, Span, Stage};

/// Registers of a window that code may use.
const REGISTERS: u16 = 250;
/// The register with the base of a recursive function's locals.
pub(crate) const BASE: Reg = 255;
/// Words of memory for the locals of one body.
const BODY_WORDS: u32 = 1 << 14;

/// Memory or register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loc {
    /// Register.
    Reg(Reg),
    /// Memory: an offset in bits, added to that in a register if there is one.
    At(Option<Reg>, u32),
}

/// Place of a value, with the type that determines its encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    pub loc: Loc,
    pub ty: TypeId,
}

/// Value of a simple type, or [`UNDEFINED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Val {
    Const(i64),
    Reg(Reg),
}

/// Meaning of a local in the current scope.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// Not bound yet.
    Nothing,
    /// Known value; [`UNDEFINED`] for an undefined argument.
    Const(i64),
    /// Register; `maybe` if it may be undefined.
    Reg { reg: Reg, maybe: bool },
    /// Place in memory, or a variable in a register through a reference.
    Spot(Spot),
}

/// Target of `return`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Returns {
    /// The body of a rule or start state ends.
    Body,
    /// The result goes to a spot, and control to a label.
    Inline { result: Option<Spot>, end: u32 },
    /// The function returns; a result of a simple type goes to register 0, others to the address in
    /// a register.
    Call { result: Option<Spot> },
}

/// Scope of a body.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'m> {
    pub frame: &'m Frame,
    pub bound: Vec<Bound>,
    pub returns: Returns,
    /// True for locals on the stack.
    pub recursive: bool,
}

/// Properties of a function that decide how it is called.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Called {
    /// Parts of the body with those of its callees.
    pub size: u32,
    pub recursive: bool,
}

/// Lowering of a model.
pub(crate) struct Lower<'m> {
    pub model: &'m Model,
    pub layout: Layout,
    pub code: Vec<Op>,
    pub sites: Vec<(u32, Site)>,
    pub ranges: Vec<(i64, i64)>,
    pub unions: Vec<Vec<(i64, i64)>>,
    pub tables: Vec<Table>,
    pub multisets: Vec<MultisetShape>,
    pub functions: Vec<Called>,
    pub entries: Vec<u32>,
    pub frames: Vec<u32>,
    /// Functions that are called but not lowered yet.
    pub pending: Vec<FunctionId>,
    pub scope: Scope<'m>,
    /// True if quantifiers over scalarsets evaluate all elements.
    pub strict: bool,
    /// Lowest free register.
    pub top: u16,
    /// Next free bit of memory for locals, and its limit.
    pub memory_top: u32,
    pub memory_limit: u32,
    /// Highest bit of memory for locals in this unit.
    pub memory_peak: u32,
    /// Positions of labels in the current unit.
    labels: Vec<u32>,
    /// First instruction and first table of the current unit.
    unit: (usize, usize),
    /// First bit of memory for functions that are not lowered yet.
    function_memory: u32,
}

/// Result of lowering.
pub(crate) type Lowered<T> = Result<T, Diagnostic>;

static NO_FRAME: Frame = Frame { locals: Vec::new() };

impl<'m> Lower<'m> {
    pub(crate) fn new(model: &'m Model) -> Lowered<Self> {
        let layout = Layout::new(model)?;
        let count = model.functions.len();
        let body = (layout.words as u32 + BODY_WORDS) * 64;
        Ok(Self {
            functions: measure_functions(model),
            strict: false,
            layout,
            model,
            code: Vec::new(),
            sites: Vec::new(),
            ranges: Vec::new(),
            unions: Vec::new(),
            tables: Vec::new(),
            multisets: Vec::new(),
            entries: vec![u32::MAX; count],
            frames: vec![0; count],
            pending: Vec::new(),
            scope: Scope {
                frame: &NO_FRAME,
                bound: Vec::new(),
                returns: Returns::Body,
                recursive: false,
            },
            top: 0,
            memory_top: 0,
            memory_limit: body,
            memory_peak: 0,
            labels: Vec::new(),
            unit: (0, 0),
            function_memory: body,
        })
    }
    /// Lowers the functions that are called and gives the program its parts.
    pub(crate) fn finish(
        mut self,
        rules: Vec<Instance>,
        starts: Vec<Instance>,
        properties: Vec<Instance>,
    ) -> Lowered<Program> {
        while let Some(function) = self.pending.pop() {
            self.function(function)?;
        }
        Ok(Program {
            layout: self.layout,
            code: self.code,
            sites: self.sites,
            ranges: self.ranges,
            unions: self.unions,
            tables: self.tables,
            multisets: self.multisets,
            entries: self.entries,
            frames: self.frames,
            memory: self.function_memory.div_ceil(64) as usize,
            rules,
            starts,
            properties,
        })
    }

    // ---- units -------------------------------------------------------------------------------

    /// Begins a body that is entered from outside; its code is complete at [`Lower::end_unit`].
    pub(crate) fn begin_unit(&mut self, frame: &'m Frame) -> u32 {
        self.unit = (self.code.len(), self.tables.len());
        self.labels.clear();
        self.scope = Scope {
            frame,
            bound: vec![Bound::Nothing; frame.locals.len()],
            returns: Returns::Body,
            recursive: false,
        };
        self.top = 0;
        self.memory_top = self.layout.words as u32 * 64;
        self.memory_limit = self.memory_top + BODY_WORDS * 64;
        self.memory_peak = self.memory_top;
        self.code.len() as u32
    }
    /// Replaces labels by positions.
    pub(crate) fn end_unit(&mut self) {
        let (start, tables) = (self.unit.0, &self.tables[self.unit.1..]);
        shorten(&mut self.code, start, &mut self.labels, &mut self.sites, tables);
        let place = |to: &mut u32| *to = self.labels[*to as usize];
        self.code[start..].iter_mut().filter_map(Op::target_mut).for_each(place);
        for table in &mut self.tables[self.unit.1..] {
            table.targets.iter_mut().for_each(place);
            place(&mut table.otherwise);
        }
    }
    /// Lowers a function that is called.
    fn function(&mut self, id: FunctionId) -> Lowered<()> {
        let function = &self.model.functions[id.index()];
        self.entries[id.index()] = self.begin_unit(&function.frame);
        let called = self.functions[id.index()];
        self.scope.recursive = called.recursive;
        (self.memory_top, self.memory_limit) = if called.recursive {
            (0, BODY_WORDS * 64)
        } else {
            (self.function_memory, self.function_memory + BODY_WORDS * 64)
        };
        self.memory_peak = self.memory_top;
        let parameters = function.parameters as usize;
        self.top = parameters as u16;
        for at in 0..parameters {
            let local = &function.frame.locals[at];
            self.scope.bound[at] = match local.kind {
                LocalKind::Value if self.layout.simple(local.ty).is_some() => {
                    Bound::Reg { reg: at as Reg, maybe: true }
                }
                _ => Bound::Spot(Spot { loc: Loc::At(Some(at as Reg), 0), ty: local.ty }),
            };
        }
        let result = match function.result {
            Some(ty) if self.layout.simple(ty).is_some() => Some(Spot { loc: Loc::Reg(0), ty }),
            Some(ty) => {
                let address = self.register()?;
                Some(Spot { loc: Loc::At(Some(address), 0), ty })
            }
            None => None,
        };
        self.scope.returns = Returns::Call { result };
        let used = self.addressed_locals(&function.body);
        self.locals(parameters, &used)?;
        self.statements(&function.body)?;
        if function.result.is_some() {
            self.fail(function.whole, Fault::NoReturn(function.name.clone()));
        } else {
            self.emit(Op::Return);
        }
        self.end_unit();
        if called.recursive {
            // At least one bit, which marks the function as recursive.
            self.frames[id.index()] = self.memory_peak.max(1);
        } else {
            self.function_memory = self.memory_peak;
        }
        Ok(())
    }

    // ---- emission ----------------------------------------------------------------------------

    pub(crate) fn emit(&mut self, op: Op) {
        self.code.push(op);
    }
    /// Emits an instruction that can fail.
    pub(crate) fn emit_at(&mut self, op: Op, span: Span, fault: Fault) {
        self.sites.push((self.code.len() as u32, Site { span, fault }));
        self.code.push(op);
    }
    pub(crate) fn fail(&mut self, span: Span, fault: Fault) {
        self.emit_at(Op::Fail, span, fault);
    }
    pub(crate) fn label(&mut self) -> u32 {
        self.labels.push(u32::MAX);
        self.labels.len() as u32 - 1
    }
    pub(crate) fn place_label(&mut self, label: u32) {
        self.labels[label as usize] = self.code.len() as u32;
    }
    pub(crate) fn register(&mut self) -> Lowered<Reg> {
        if self.top >= REGISTERS {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                "a rule or function needs more than 250 registers",
            )
            .note("divide it into functions"));
        }
        self.top += 1;
        Ok((self.top - 1) as Reg)
    }
    /// Allocates memory of a body.
    pub(crate) fn memory(&mut self, bits: u32) -> Lowered<Loc> {
        let at = self.memory_top;
        if bits > self.memory_limit - at {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                "the variables of a rule or function are too large",
            )
            .note(format!("together they may have {} bits", BODY_WORDS * 64)));
        }
        self.memory_top += bits;
        self.memory_peak = self.memory_peak.max(self.memory_top);
        Ok(Loc::At(self.scope.recursive.then_some(BASE), at))
    }
    /// Returns a register with the value.
    pub(crate) fn in_register(&mut self, value: Val) -> Lowered<Reg> {
        Ok(match value {
            Val::Reg(reg) => reg,
            Val::Const(value) => {
                let d = self.register()?;
                self.emit(Op::Const { d, value });
                d
            }
        })
    }
    /// Writes a value to a register.
    pub(crate) fn move_to(&mut self, d: Reg, value: Val) {
        match value {
            Val::Reg(a) if a == d => {}
            Val::Reg(a) => self.emit(Op::Move { d, a }),
            Val::Const(value) => self.emit(Op::Const { d, value }),
        }
    }
    /// Writes a value that is not used otherwise to a register: by the read that just produced it,
    /// if there is one.
    pub(crate) fn result_to(&mut self, to: Reg, value: Val) {
        let end = self.code.len() as u32;
        if let (Val::Reg(a), Some(last)) = (value, self.code.last_mut())
            && a > to
            && !self.labels.contains(&end)
        {
            match last {
                Op::Load { d, .. }
                | Op::Peek { d, .. }
                | Op::LoadSpan { d, .. }
                | Op::LoadAt { d, .. }
                | Op::PeekAt { d, .. }
                    if *d == a =>
                {
                    *d = to;
                    return;
                }
                _ => {}
            }
        }
        self.move_to(to, value);
    }
    /// Returns a register with the address of memory.
    pub(crate) fn address(&mut self, loc: Loc) -> Lowered<Reg> {
        match loc {
            Loc::At(None, offset) => self.in_register(Val::Const(i64::from(offset))),
            Loc::At(Some(at), 0) => Ok(at),
            Loc::At(Some(a), offset) => {
                let d = self.register()?;
                self.emit(Op::Offset { d, a, value: i64::from(offset) });
                Ok(d)
            }
            Loc::Reg(_) => Err(Diagnostic::internal("a register has no address")),
        }
    }

    // ---- reads and writes --------------------------------------------------------------------

    pub(crate) fn simple(&self, ty: TypeId) -> Lowered<Simple> {
        self.layout
            .simple(ty)
            .cloned()
            .ok_or_else(|| Diagnostic::internal("a value of this type is in no field"))
    }
    /// Reads a value; `checked` if an undefined one is an error.
    pub(crate) fn load(&mut self, spot: Spot, checked: bool, span: Span) -> Lowered<Reg> {
        let (at, offset) = match spot.loc {
            Loc::Reg(a) => {
                if checked {
                    self.emit_at(Op::Defined { a }, span, Fault::Undefined);
                }
                return Ok(a);
            }
            Loc::At(at, offset) => (at, offset),
        };
        let simple = self.simple(spot.ty)?;
        let (width, bias) = (simple.width, simple.bias());
        let d = self.register()?;
        let Ok(small) = i32::try_from(bias) else {
            self.raw_to(d, spot.loc, width)?;
            let (absent, end) = (self.label(), self.label());
            self.emit(Op::JumpUnless { a: d, to: absent });
            self.emit(Op::Offset { d, a: d, value: bias });
            self.emit(Op::Jump { to: end });
            self.place_label(absent);
            if checked {
                self.fail(span, Fault::Undefined);
            } else {
                self.emit(Op::Const { d, value: UNDEFINED });
            }
            self.place_label(end);
            return Ok(d);
        };
        let bias = small;
        let op = match (at, Bits::new(offset, width)) {
            (None, Some(from)) if checked => Op::Load { d, from, bias },
            (None, Some(from)) => Op::Peek { d, from, bias },
            (None, None) if checked => Op::LoadSpan { d, width, offset, bias },
            _ => {
                let at = self.base(at, d);
                if checked {
                    Op::LoadAt { d, at, width, offset, bias }
                } else {
                    Op::PeekAt { d, at, width, offset, bias }
                }
            }
        };
        if checked {
            self.emit_at(op, span, Fault::Undefined);
        } else {
            self.emit(op);
        }
        Ok(d)
    }
    /// Returns the base register, or a scratch register with 0.
    fn base(&mut self, at: Option<Reg>, scratch: Reg) -> Reg {
        at.unwrap_or_else(|| {
            self.emit(Op::Const { d: scratch, value: 0 });
            scratch
        })
    }
    /// Reads the content of a field to a register.
    pub(crate) fn raw_to(&mut self, d: Reg, loc: Loc, width: u8) -> Lowered<()> {
        let Loc::At(at, offset) = loc else {
            return Err(Diagnostic::internal("a register has no content"));
        };
        match (at, Bits::new(offset, width)) {
            (None, Some(from)) => self.emit(Op::Raw { d, from }),
            _ => {
                let at = self.base(at, d);
                self.emit(Op::RawAt { d, at, width, offset });
            }
        }
        Ok(())
    }
    /// Writes a value of the type, or nothing for [`UNDEFINED`] if `maybe`.
    pub(crate) fn store(&mut self, spot: Spot, value: Val, maybe: bool) -> Lowered<()> {
        let (at, offset) = match spot.loc {
            Loc::Reg(d) => {
                self.move_to(d, value);
                return Ok(());
            }
            Loc::At(at, offset) => (at, offset),
        };
        let simple = self.simple(spot.ty)?;
        let (width, bias) = (simple.width, simple.bias());
        let mark = self.top;
        if let Val::Const(value) = value {
            let raw = if value == UNDEFINED { 0 } else { simple.code(value) };
            self.put(at, offset, width, raw)?;
            return Ok(());
        }
        let a = self.in_register(value)?;
        let Ok(small) = i32::try_from(bias) else {
            let d = self.register()?;
            let end = self.label();
            if maybe {
                let absent = self.in_register(Val::Const(UNDEFINED))?;
                let defined = self.label();
                self.emit(Op::JumpCompare {
                    relation: crate::code::Relation::Differ,
                    a,
                    b: absent,
                    to: defined,
                });
                self.put(at, offset, width, 0)?;
                self.emit(Op::Jump { to: end });
                self.place_label(defined);
            }
            self.emit(Op::Offset { d, a, value: bias.wrapping_neg() });
            self.put_register(at, offset, width, d)?;
            self.place_label(end);
            self.top = mark;
            return Ok(());
        };
        let bias = small;
        match (at, Bits::new(offset, width)) {
            (None, Some(to)) if maybe => self.emit(Op::StoreMaybe { a, to, bias }),
            (None, Some(to)) => self.emit(Op::Store { a, to, bias }),
            _ => {
                let at = match at {
                    Some(at) => at,
                    None => self.in_register(Val::Const(0))?,
                };
                self.emit(if maybe {
                    Op::StoreMaybeAt { a, at, width, offset, bias }
                } else {
                    Op::StoreAt { a, at, width, offset, bias }
                });
            }
        }
        self.top = mark;
        Ok(())
    }
    /// Writes a known content of a field.
    pub(crate) fn put(&mut self, at: Option<Reg>, offset: u32, width: u8, raw: u64) -> Lowered<()> {
        if let (None, Some(to), Ok(raw)) = (at, Bits::new(offset, width), u32::try_from(raw)) {
            self.emit(Op::SetRaw { to, raw });
            return Ok(());
        }
        if let (Some(at), Ok(raw)) = (at, u32::try_from(raw)) {
            self.emit(Op::SetRawAt { at, width, offset, raw });
            return Ok(());
        }
        let mark = self.top;
        let a = self.in_register(Val::Const(raw as i64))?;
        self.put_register(at, offset, width, a)?;
        self.top = mark;
        Ok(())
    }
    fn put_register(&mut self, at: Option<Reg>, offset: u32, width: u8, a: Reg) -> Lowered<()> {
        let mark = self.top;
        match (at, Bits::new(offset, width)) {
            (None, Some(to)) => self.emit(Op::Put { a, to }),
            _ => {
                let at = match at {
                    Some(at) => at,
                    None => self.in_register(Val::Const(0))?,
                };
                self.emit(Op::PutAt { a, at, width, offset });
            }
        }
        self.top = mark;
        Ok(())
    }
    /// Clears memory.
    pub(crate) fn zero(&mut self, loc: Loc, bits: u32) -> Lowered<()> {
        let Loc::At(at, offset) = loc else {
            return Err(Diagnostic::internal("a register has no bits"));
        };
        if bits == 0 {
            return Ok(());
        }
        if bits <= 64 && (at.is_some() || Bits::new(offset, bits as u8).is_some()) {
            return self.put(at, offset, bits as u8, 0);
        }
        let mark = self.top;
        let at = self.address(loc)?;
        self.emit(Op::ZeroBits { at, bits });
        self.top = mark;
        Ok(())
    }
    /// Fails unless the value, if there is one, belongs to the type.
    pub(crate) fn check_range(&mut self, value: Val, ty: TypeId, span: Span) -> Lowered<()> {
        let Some(simple) = self.layout.simple(ty).cloned() else { return Ok(()) };
        let fault = || Fault::OutOfRange(self.model.types.text(ty));
        match value {
            Val::Const(value) if value == UNDEFINED || simple.contains(value) => {}
            Val::Const(_) => {
                let fault = fault();
                self.fail(span, fault);
            }
            Val::Reg(a) => {
                let fault = fault();
                if simple.is_interval() {
                    self.ranges.push((simple.low, simple.high));
                    let range = self.ranges.len() as u32 - 1;
                    self.emit_at(Op::Within { a, range }, span, fault);
                } else {
                    let union = self.union(&simple);
                    self.emit_at(Op::Member { a, union }, span, fault);
                }
            }
        }
        Ok(())
    }
    /// Returns the number of a set of intervals.
    pub(crate) fn union(&mut self, simple: &Simple) -> u32 {
        let at = self.unions.iter().position(|u| *u == simple.parts);
        at.unwrap_or_else(|| {
            self.unions.push(simple.parts.clone());
            self.unions.len() - 1
        }) as u32
    }
    /// Returns the number of a multiset's layout.
    pub(crate) fn multiset(&mut self, ty: TypeId) -> Lowered<u32> {
        let Shape::Multiset { capacity, stride, .. } = *self.layout.shape_of(ty) else {
            return Err(Diagnostic::internal("this type is no multiset"));
        };
        let shape = MultisetShape { capacity, stride };
        let at = self.multisets.iter().position(|m| *m == shape);
        Ok(at.unwrap_or_else(|| {
            self.multisets.push(shape);
            self.multisets.len() - 1
        }) as u32)
    }

    // ---- places ------------------------------------------------------------------------------

    /// Evaluates a place.
    pub(crate) fn place(&mut self, place: &'m Place) -> Lowered<Spot> {
        let mut spot = match place.root {
            Root::Global(global) => Spot {
                loc: Loc::At(None, self.layout.globals[global.index()]),
                ty: self.model.globals[global.index()].ty,
            },
            Root::Local(local) => {
                let ty = self.scope.frame.get(local).ty;
                match self.scope.bound[local.index()] {
                    Bound::Spot(spot) => spot,
                    Bound::Reg { reg, .. } => Spot { loc: Loc::Reg(reg), ty },
                    Bound::Const(value) => {
                        let reg = self.in_register(Val::Const(value))?;
                        Spot { loc: Loc::Reg(reg), ty }
                    }
                    Bound::Nothing => {
                        return Err(Diagnostic::internal(format!(
                            "local `{}` is not bound",
                            self.scope.frame.get(local).name
                        )));
                    }
                }
            }
        };
        for step in &place.steps {
            spot = self.step(spot, step)?;
        }
        Ok(spot)
    }
    fn step(&mut self, spot: Spot, step: &'m Step) -> Lowered<Spot> {
        let Loc::At(base, offset) = spot.loc else {
            return Err(Diagnostic::internal("a part of a value in a register"));
        };
        Ok(match step {
            Step::Field { field, .. } => {
                let Shape::Record(fields) = self.layout.shape_of(spot.ty) else {
                    return Err(Diagnostic::internal("this type is no record"));
                };
                let (at, ty) = fields[*field as usize];
                Spot { loc: Loc::At(base, offset + at), ty }
            }
            Step::Index { index, span, .. } => {
                let Shape::Array { low, count, stride, element, index: over } =
                    *self.layout.shape_of(spot.ty)
                else {
                    return Err(Diagnostic::internal("this type is no array"));
                };
                let over = self.simple(over)?;
                if let Some(loc) =
                    self.select_element(index, &over, (base, offset, count, stride))?
                {
                    return Ok(Spot { loc, ty: element });
                }
                let value = self.value(index)?;
                let fault = Fault::Index(match self.model.types.kind(spot.ty) {
                    crate::typed::TypeKind::Array { index, .. } => self.model.types.text(*index),
                    _ => String::new(),
                });
                let loc = match value {
                    Val::Const(value) if over.contains(value) => {
                        Loc::At(base, offset + (value - low) as u32 * stride)
                    }
                    Val::Const(_) => {
                        self.fail(*span, fault);
                        Loc::At(base, offset)
                    }
                    Val::Reg(a) => {
                        if !over.is_interval() {
                            let union = self.union(&over);
                            self.emit_at(Op::Member { a, union }, *span, fault.clone());
                        }
                        let (a, low) = match i32::try_from(low) {
                            Ok(low) => (a, low),
                            Err(_) => {
                                let d = self.register()?;
                                self.emit(Op::Offset { d, a, value: low.wrapping_neg() });
                                (d, 0)
                            }
                        };
                        self.index_element(base, offset, (a, low, count, stride), *span, fault)?
                    }
                };
                Spot { loc, ty: element }
            }
            Step::Element { position, span, .. } => {
                let Shape::Multiset { capacity, stride, element } = *self.layout.shape_of(spot.ty)
                else {
                    return Err(Diagnostic::internal("this type is no multiset"));
                };
                let loc = match self.position(*position)? {
                    Val::Const(slot) => Loc::At(base, offset + slot as u32 * stride + 1),
                    Val::Reg(a) => self.index_element(
                        base,
                        offset + 1,
                        (a, 0, capacity, stride),
                        *span,
                        Fault::NoElement,
                    )?,
                };
                Spot { loc, ty: element }
            }
        })
    }
    /// Returns the place of an element that a variable selects, if all its values are indices:
    /// then it only has to be defined. Without another element the place is that of the first.
    fn select_element(
        &mut self,
        index: &'m Expr,
        over: &Simple,
        (base, offset, count, stride): (Option<Reg>, u32, u32, u32),
    ) -> Lowered<Option<Loc>> {
        let ExprKind::Read(place) = &index.kind else { return Ok(None) };
        if self.constant(index).is_some() {
            return Ok(None);
        }
        let Some((from, own)) = self.static_field(index) else {
            let is_value = self.layout.simple(index.ty).is_some_and(|own| own.parts == over.parts);
            if count == 1 && is_value {
                self.value(index)?;
                return Ok(Some(Loc::At(base, offset)));
            }
            return Ok(None);
        };
        if !own.parts.iter().all(|p| over.parts.iter().any(|q| q.0 <= p.0 && p.1 <= q.1)) {
            return Ok(None);
        }
        let Ok(bias) = i16::try_from(own.bias() - over.low) else { return Ok(None) };
        let d = self.register()?;
        let op = Op::LoadIndex { d, from, bias, stride, count };
        self.emit_at(op, place.span, Fault::Undefined);
        if count == 1 {
            return Ok(Some(Loc::At(base, offset)));
        }
        if let Some(b) = base {
            self.emit(Op::AddOffset { d, a: d, b });
        }
        Ok(Some(Loc::At(Some(d), offset)))
    }
    fn index_element(
        &mut self,
        base: Option<Reg>,
        offset: u32,
        (a, low, count, stride): (Reg, i32, u32, u32),
        span: Span,
        fault: Fault,
    ) -> Lowered<Loc> {
        let d = self.register()?;
        self.emit_at(Op::Index { d, a, low, count, stride }, span, fault);
        if let Some(b) = base {
            self.emit(Op::AddOffset { d, a: d, b });
        }
        Ok(Loc::At(Some(d), offset))
    }
    /// Returns the slot of a bound position.
    pub(crate) fn position(&self, local: LocalId) -> Lowered<Val> {
        match self.scope.bound[local.index()] {
            Bound::Const(slot) => Ok(Val::Const(slot)),
            Bound::Reg { reg, .. } => Ok(Val::Reg(reg)),
            _ => Err(Diagnostic::internal("a position without a slot")),
        }
    }

    // ---- locals ------------------------------------------------------------------------------

    /// Binds the variables of a frame from a number on: undefined, in registers, or in memory if
    /// their address is used or they are not simple.
    pub(crate) fn locals(&mut self, from: usize, addressed: &[bool]) -> Lowered<()> {
        let frame = self.scope.frame;
        let mut many = 0;
        for (at, local) in frame.locals.iter().enumerate().skip(from) {
            if local.kind != LocalKind::Variable {
                continue;
            }
            let simple = self.layout.simple(local.ty).is_some();
            many += 1;
            self.scope.bound[at] = if simple && !addressed[at] && many < 100 {
                let d = self.register()?;
                self.emit(Op::Const { d, value: UNDEFINED });
                Bound::Reg { reg: d, maybe: true }
            } else {
                let bits = self.layout.size(local.ty);
                let loc = self.memory(bits)?;
                self.zero(loc, bits)?;
                Bound::Spot(Spot { loc, ty: local.ty })
            };
        }
        Ok(())
    }
    /// Marks the locals that are passed to `var` parameters, also through aliases.
    pub(crate) fn addressed_locals(&self, body: &'m [Stmt]) -> Vec<bool> {
        let mut marks = vec![false; self.scope.frame.locals.len()];
        let mut aliases: AHashMap<usize, usize> = AHashMap::default();
        let mut roots = Vec::new();
        walk::statements(body, &mut |part| match part {
            Part::Argument(Argument::Place(place)) => roots.extend(root(place)),
            Part::Stmt(Stmt { kind: StmtKind::Alias { aliases: all, .. }, .. }) => {
                for alias in all {
                    if let crate::typed::AliasTarget::Place(place) = &alias.target {
                        aliases.extend(root(place).map(|r| (alias.local.index(), r)));
                    }
                }
            }
            _ => {}
        });
        while let Some(at) = roots.pop() {
            if !marks[at] {
                marks[at] = true;
                roots.extend(aliases.get(&at));
            }
        }
        marks
    }
}

fn root(place: &Place) -> Option<usize> {
    match place.root {
        Root::Local(local) => Some(local.index()),
        Root::Global(_) => None,
    }
}

/// Measures the functions and finds the recursive ones.
fn measure_functions(model: &Model) -> Vec<Called> {
    let count = model.functions.len();
    let mut own = vec![0u32; count];
    let mut calls: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (at, function) in model.functions.iter().enumerate() {
        walk::statements(&function.body, &mut |part| {
            own[at] += 1;
            match part {
                Part::Expr(e) => {
                    if let ExprKind::Call(f, _) = &e.kind {
                        calls[at].push(f.index());
                    }
                }
                Part::Stmt(s) => {
                    if let StmtKind::Call(f, _) = &s.kind {
                        calls[at].push(f.index());
                    }
                }
                _ => {}
            }
        });
    }
    let reaches = |from: usize| {
        let (mut seen, mut open) = (vec![false; count], calls[from].clone());
        while let Some(f) = open.pop() {
            if !std::mem::replace(&mut seen[f], true) {
                open.extend(&calls[f]);
            }
        }
        seen[from]
    };
    let mut all: Vec<Called> =
        (0..count).map(|f| Called { size: own[f], recursive: reaches(f) }).collect();
    // Functions may be called before their declaration, so sizes grow until they are stable.
    for _ in 0..count {
        let mut changed = false;
        for f in 0..count {
            let callees = calls[f].iter().fold(0u32, |n, c| n.saturating_add(all[*c].size));
            let size = own[f].saturating_add(callees).min(1 << 20);
            changed |= std::mem::replace(&mut all[f].size, size) != size;
        }
        if !changed {
            break;
        }
    }
    all
}
