//! Lowering of an instruction to steps.

use super::super::expr::{BinOp, Expr, FlagTest, Width};
use super::super::registers::View;
use super::super::variables::{Use, Variables};
use super::super::{Access, CARRIED, FLAGS, Next, Register};
use super::operand::Operand;
use super::statement::{Number, SourceOperand, Statement};
use super::table::{self, InstructionEntry, InstructionKind, Operands, UnaryOperation};
use super::{Assembler, OperandError, OperandOrder, encoding};
use mu_base::words::{Cursor, Token};
use mu_base::{Diagnostic, Span, Stage};

impl Assembler {
    /// Lowers the instruction at the cursor.
    pub(super) fn instruction(
        &mut self,
        cursor: &mut Cursor<'_, '_>,
        variables: &mut Variables,
    ) -> Result<(), OperandError> {
        let Head { word, entry, width, locked } = head(cursor)?;
        let kind = entry.kind;
        if let InstructionKind::Jump | InstructionKind::JumpIf(_) = kind {
            let target = cursor.name("a label")?;
            let label = SourceOperand::Label(target.text.into(), target.span);
            self.record_statement(&word, entry, width, locked, vec![label]);
            self.jumps.push((self.thread.steps.len(), target.text.into(), target.span));
            let next = match kind {
                InstructionKind::JumpIf(test) => {
                    Next::Branch(Expr::Test(test, Box::new(Expr::Register(FLAGS))), 0)
                }
                _ => Next::Jump(0),
            };
            self.push(Access::None, Vec::new(), next);
            return Ok(());
        }
        let (mut operands, mut written) = (Vec::new(), Vec::new());
        let mut number_size = None;
        while !(cursor.at_end() || ["|", ";", "\n"].iter().any(|s| cursor.is(s))) {
            let (operand, source_operands) = self.operand(cursor, variables)?;
            operands.push(operand);
            written.push(source_operands);
            number_size = number_size.or(self.immediate_size);
            if !cursor.eat(",") {
                break;
            }
        }
        if let Some(size) = number_size.filter(|_| entry.operands == Operands::Two) {
            size_memory(size, &mut operands, &mut written);
        }
        // The count of a shift is optional and 1 by default.
        if operands.len() == 1 && entry.operands == Operands::Count {
            let one = Operand::Immediate(1, word.span);
            let at = if self.order == OperandOrder::Intel { 1 } else { 0 };
            operands.insert(at, one);
            written.insert(at, SourceOperand::Immediate(Number::Literal(1), word.span));
        }
        // The herd tools write the memory operand of `cmpxchg` first in AT&T's order as well;
        // AT&T's own order with memory first has no encoding.
        if entry.kind == InstructionKind::CompareExchange
            && self.order == OperandOrder::Att
            && matches!(operands[..], [Operand::Memory(..), Operand::Register(..)])
        {
            operands.swap(0, 1);
            written.swap(0, 1);
        }
        self.record_statement(&word, entry, width, locked, written);
        let expected = match entry.operands {
            Operands::Any => operands.len(),
            Operands::None | Operands::Label => 0,
            Operands::One => 1,
            Operands::Two | Operands::Count => 2,
        };
        if operands.len() != expected {
            let text = format!(
                "`{}` has {expected} operand{}, found {}",
                word.text,
                if expected == 1 { "" } else { "s" },
                operands.len()
            );
            return Err(Diagnostic::at(Stage::Syntax, word.span, text).into());
        }
        let lowered =
            Lowered { word: word.text, span: word.span, width, locked, lockable: entry.lockable };
        // The destination of two operands is known only after their order.
        if locked && !operands.iter().any(Operand::is_memory) {
            return Err(Diagnostic::at(Stage::Type, word.span, super::unlockable(word.text)).into());
        }
        match kind {
            InstructionKind::Fence(fence) => {
                self.push(Access::Fence(fence), Vec::new(), Next::Fall)
            }
            // Loads are always in order, so the fence has no effect.
            InstructionKind::Nothing | InstructionKind::LoadFence => {
                self.push(Access::None, Vec::new(), Next::Fall)
            }
            InstructionKind::Return => {
                self.returns.push(self.thread.steps.len());
                self.push(Access::None, Vec::new(), Next::Jump(0));
            }
            InstructionKind::Set(test) => return self.set(&lowered, test, operands.remove(0)),
            InstructionKind::Unary(op) => {
                return self.unary(&lowered, op, operands.remove(0), variables);
            }
            _ => {
                let second = operands.remove(1);
                return self.binary(&lowered, kind, operands.remove(0), second, variables);
            }
        }
        Ok(())
    }

    /// Records the current instruction as written.
    fn record_statement(
        &mut self,
        word: &Token<'_>,
        entry: InstructionEntry,
        width: Option<Width>,
        locked: bool,
        operands: Vec<SourceOperand>,
    ) {
        let (word, span) = (word.text.to_ascii_lowercase(), self.current_span());
        let first = self.thread.instructions.last().map_or(0, |i| i.first);
        self.statements.push(Statement { word, entry, locked, width, operands, span, first });
    }

    /// Lowers an instruction of two operands, given in the order of the text.
    fn binary(
        &mut self,
        i: &Lowered<'_>,
        kind: InstructionKind,
        first: Operand,
        second: Operand,
        variables: &mut Variables,
    ) -> Result<(), OperandError> {
        let (mut target, mut source) = (first, second);
        // The operands of `xchg` are symmetric.
        let swapped = match kind {
            InstructionKind::Exchange if source.is_memory() != target.is_memory() => {
                source.is_memory()
            }
            _ => self.order == OperandOrder::Att,
        };
        if swapped {
            std::mem::swap(&mut source, &mut target);
        }
        self.expect_encodable(i, kind, &target, &source)?;
        // `test` writes nothing, so either operand may be a number.
        let may_be_number = kind == InstructionKind::Compare(BinOp::And) && !source.is_immediate();
        if target.is_immediate() && !may_be_number {
            let error = Diagnostic::at(
                Stage::Type,
                target.span(),
                format!("a number cannot be the destination of `{}`", i.word),
            );
            return Err(OperandError { diagnostic: error, order: !source.is_immediate() });
        }
        if i.locked && !target.is_memory() {
            let error = Diagnostic::at(Stage::Type, i.span, super::unlockable(i.word));
            return Err(OperandError { diagnostic: error, order: true });
        }
        if target.is_memory() && source.is_memory() {
            let span = target.span().to(source.span());
            return Err(Diagnostic::at(
                Stage::Type,
                span,
                format!("both operands of `{}` are in memory", i.word),
            )
            .into());
        }
        match kind {
            InstructionKind::Mov => self.mov(i, target, source, variables),
            InstructionKind::Extend { signed, from } => {
                self.extend(i, signed, from, target, source, variables)
            }
            InstructionKind::Lea => self.lea(i, target, source, variables),
            InstructionKind::Arithmetic(op) => self.arithmetic(i, op, target, source, variables),
            InstructionKind::Compare(op) => self.compare(i, op, target, source, variables),
            InstructionKind::Exchange => self.exchange(i, target, source, variables),
            InstructionKind::ExchangeAdd => self.exchange_add(i, target, source, variables),
            InstructionKind::CompareExchange => self.compare_exchange(i, target, source, variables),
            InstructionKind::MoveIf(test) => self.move_if(i, test, target, source, variables),
            InstructionKind::Lock
            | InstructionKind::Jump
            | InstructionKind::JumpIf(_)
            | InstructionKind::Fence(_)
            | InstructionKind::LoadFence
            | InstructionKind::Nothing
            | InstructionKind::Return
            | InstructionKind::Unary(_)
            | InstructionKind::Set(_) => {
                Err(Diagnostic::internal(format!("`{}` does not have two operands", i.word)).into())
            }
        }
    }

    /// Determines the width of an instruction: its suffix, its registers, the size of its memory
    /// operand, the variable's type, or 32 bits.
    fn width(
        &self,
        i: &Lowered<'_>,
        operands: &[&Operand],
        variables: &Variables,
    ) -> Result<Width, OperandError> {
        let mut width = i.width;
        let mut symbolic = None;
        for o in operands {
            let Operand::Register(_, view, span) = o else { continue };
            // Symbolic registers have any width.
            if super::super::registers::parse(&view.full).is_none() {
                symbolic = Some(view.width);
                continue;
            }
            match width {
                None => width = Some(view.width),
                Some(w) if w != view.width => {
                    let text = format!(
                        "a register of {} bits where `{}` has {} bits",
                        view.width.bits(),
                        i.word,
                        w.bits()
                    );
                    return Err(Diagnostic::at(Stage::Type, *span, text).into());
                }
                Some(_) => {}
            }
        }
        for o in operands {
            if let (Operand::Memory(_, Some(said), span), Some(width)) = (o, width)
                && *said != width
            {
                let text = format!(
                    "an operand of {} bits where `{}` has {} bits",
                    said.bits(),
                    i.word,
                    width.bits()
                );
                return Err(Diagnostic::at(Stage::Type, *span, text).into());
            }
        }
        let of_memory = operands.iter().find_map(|o| match o {
            Operand::Memory(address, said, _) => Some(said.or_else(|| match address {
                Expr::Const(a) => variables.at(*a).and_then(|(v, _)| v.declared).map(|t| t.width),
                _ => None,
            })),
            _ => None,
        });
        let width = width.or(of_memory.flatten()).or(symbolic).unwrap_or(Width::W32);
        for o in operands {
            if let Operand::Immediate(n, span) = o
                && !width.holds(*n)
            {
                return Err(
                    Diagnostic::at(Stage::Type, *span, super::too_wide(*n, width, i.word)).into()
                );
            }
        }
        encoding::expect_small_number(i.word, width, operands)?;
        Ok(width)
    }

    fn note(&mut self, address: &Expr, width: Width, write: bool) {
        let known = if let Expr::Const(a) = address { Some(*a) } else { None };
        let span = self.current_span();
        self.uses.push(Use { address: known, width, write, span });
    }

    /// Builds the assignment of a value to a part of a register.
    fn assign(register: Register, view: &View, width: Width, value: Expr) -> (Register, Expr) {
        let value = match width {
            // The upper half becomes zero; values of this width have zeros there.
            Width::W64 | Width::W32 => value.part(0, width),
            _ => {
                Expr::Merge(Box::new(Expr::Register(register)), Box::new(value), view.shift, width)
            }
        };
        (register, value)
    }

    /// Returns the value of a register after two writes, of which the second may affect only a
    /// part.
    fn merge_writes(first: Expr, second: Expr) -> Expr {
        match second {
            Expr::Merge(_, new, shift, width) => Expr::Merge(Box::new(first), new, shift, width),
            whole => whole,
        }
    }

    /// Returns the value of an operand, `Loaded` for memory.
    fn value(o: &Operand, width: Width) -> Expr {
        match o {
            Operand::Register(r, view, _) => Expr::Register(*r).part(view.shift, width),
            Operand::Immediate(i, _) => Expr::Const(*i as u64 & width.mask()),
            Operand::Memory(..) => Expr::Loaded,
        }
    }

    /// Returns the access that loads an operand.
    fn load(&mut self, o: &Operand, width: Width) -> Access {
        match o {
            Operand::Memory(address, _, _) => {
                self.note(address, width, false);
                Access::Read { address: address.clone(), width }
            }
            _ => Access::None,
        }
    }

    fn store(&mut self, address: Expr, width: Width, value: Expr, when: Option<Expr>) {
        self.note(&address, width, true);
        self.push(Access::Write { address, width, value, when }, Vec::new(), Next::Fall);
    }

    fn mov(
        &mut self,
        i: &Lowered<'_>,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let width = self.width(i, &[&target, &source], variables)?;
        let value = Self::value(&source, width);
        match target {
            Operand::Memory(address, _, _) => self.store(address, width, value, None),
            Operand::Register(r, view, _) => {
                let access = self.load(&source, width);
                self.push(access, vec![Self::assign(r, &view, width, value)], Next::Fall);
            }
            Operand::Immediate(..) => {}
        }
        Ok(())
    }

    fn extend(
        &mut self,
        i: &Lowered<'_>,
        signed: bool,
        from: Option<Width>,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let Operand::Register(r, view, _) = &target else {
            return Err(Diagnostic::at(
                Stage::Type,
                target.span(),
                format!("the destination of `{}` must be a register", i.word),
            )
            .into());
        };
        let implied = from.or(i.word.eq_ignore_ascii_case("movsxd").then_some(Width::W32));
        if let (Some(found), Some(implied)) = (source.width(), implied)
            && found != implied
        {
            let text = format!(
                "an operand of {} bits where `{}` extends {} bits",
                found.bits(),
                i.word,
                implied.bits()
            );
            return Err(Diagnostic::at(Stage::Type, source.span(), text).into());
        }
        let from = match (implied, &source) {
            (Some(from), _) => from,
            (None, Operand::Register(_, v, _)) => v.width,
            (None, _) => self.width(&Lowered { width: None, ..*i }, &[&source], variables)?,
        };
        let to = self.width(i, &[&target], variables)?;
        if from >= to || source.is_immediate() {
            return Err(Diagnostic::at(
                Stage::Type,
                source.span(),
                format!("`{}` extends to {} bits; this cannot be extended", i.word, to.bits()),
            )
            .into());
        }
        let value = Self::value(&source, from);
        let value =
            if signed { Expr::SignExtend(from, Box::new(value)).part(0, to) } else { value };
        let access = self.load(&source, from);
        self.push(access, vec![Self::assign(*r, view, to, value)], Next::Fall);
        Ok(())
    }

    fn lea(
        &mut self,
        i: &Lowered<'_>,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let (Operand::Register(r, view, span), Operand::Memory(address, _, _)) = (&target, source)
        else {
            return Err(Diagnostic::at(
                Stage::Type,
                i.span,
                format!("the destination of `{}` must be a register", i.word),
            )
            .into());
        };
        let width = self.width(i, &[&target], variables)?;
        if width == Width::W8 {
            let text = format!("`{}` of 8 bits, expected 16, 32 or 64", i.word);
            return Err(Diagnostic::at(Stage::Type, *span, text).into());
        }
        self.push(Access::None, vec![Self::assign(*r, view, width, address)], Next::Fall);
        Ok(())
    }

    fn arithmetic(
        &mut self,
        i: &Lowered<'_>,
        op: BinOp,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let shift = matches!(op, BinOp::Shl | BinOp::Shr | BinOp::Sar);
        let width = if shift {
            self.width(i, &[&target], variables)?
        } else {
            self.width(i, &[&target, &source], variables)?
        };
        let by = if shift {
            match &source {
                Operand::Register(_, v, span)
                    if v.full != "rcx" || v.width != Width::W8 || v.shift != 0 =>
                {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        *span,
                        format!("the count of `{}` must be a number or cl", i.word),
                    )
                    .into());
                }
                Operand::Immediate(n, span) if !Width::W8.holds(*n) => {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        *span,
                        super::too_wide(*n, Width::W8, "a count"),
                    )
                    .into());
                }
                o => Self::value(o, Width::W8),
            }
        } else {
            Self::value(&source, width)
        };
        // `xor eax, eax` does not depend on the old value.
        if let (Operand::Register(r, view, _), Operand::Register(s, other, _)) = (&target, &source)
            && matches!(op, BinOp::Xor | BinOp::Sub)
            && (r, view) == (s, other)
        {
            let zero = Expr::Const(0);
            let flags = Expr::Const(op.flags(width, 0, 0, 0));
            self.push(
                Access::None,
                vec![Self::assign(*r, view, width, zero), (FLAGS, flags)],
                Next::Fall,
            );
            return Ok(());
        }
        let old = Self::value(&target, width);
        self.modify(
            i,
            target,
            &source,
            width,
            Expr::op(op, width, old.clone(), by.clone()),
            Some(Expr::flags(op, width, old, by)),
            Vec::new(),
        );
        Ok(())
    }

    fn unary(
        &mut self,
        i: &Lowered<'_>,
        op: UnaryOperation,
        target: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        if target.is_immediate() {
            return Err(Diagnostic::at(
                Stage::Type,
                target.span(),
                format!("a number cannot be an operand of `{}`", i.word),
            )
            .into());
        }
        let width = self.width(i, &[&target], variables)?;
        let old = Self::value(&target, width);
        let flags = op.sets_flags();
        let (op, a, b) = op.operation(old, |n| Expr::Const(n as u64 & width.mask()));
        let flags = flags.then(|| Expr::flags(op, width, a.clone(), b.clone()));
        let none = Operand::Immediate(0, i.span);
        self.modify(i, target, &none, width, Expr::op(op, width, a, b), flags, Vec::new());
        Ok(())
    }

    /// Assigns a computed value to a register or memory. `more` are further assignments in the step
    /// of the access.
    #[expect(clippy::too_many_arguments, reason = "the end of the instruction")]
    fn modify(
        &mut self,
        i: &Lowered<'_>,
        target: Operand,
        source: &Operand,
        width: Width,
        value: Expr,
        flags: Option<Expr>,
        mut more: Vec<(Register, Expr)>,
    ) {
        more.extend(flags.map(|f| (FLAGS, f)));
        match target {
            Operand::Register(r, view, _) => {
                let access = self.load(source, width);
                // The destination is written last: in `xadd eax, eax` its value remains.
                let (_, mut written) = Self::assign(r, &view, width, value);
                if let Some(at) = more.iter().position(|(other, _)| *other == r) {
                    written = Self::merge_writes(more.remove(at).1, written);
                }
                more.push((r, written));
                self.push(access, more, Next::Fall);
            }
            Operand::Memory(address, _, _) if i.locked => {
                self.note(&address, width, true);
                self.push(Access::Update { address, width, value, when: None }, more, Next::Fall);
            }
            Operand::Memory(address, _, _) => {
                self.note(&address, width, false);
                if i.lockable {
                    self.lockable(
                        Access::Update {
                            address: address.clone(),
                            width,
                            value: value.clone(),
                            when: None,
                        },
                        more.clone(),
                    );
                }
                more.push((CARRIED, value));
                // The instruction may change its own address register.
                let changed: Vec<Register> = more.iter().map(|(r, _)| *r).collect();
                let (read, write) = self.stable_address(address, &changed, &mut more);
                self.push(Access::Read { address: read, width }, more, Next::Fall);
                self.store(write, width, Expr::Register(CARRIED), None);
            }
            Operand::Immediate(..) => {}
        }
    }

    /// Returns an address for the read and for the write after it. It is saved in a separate
    /// register if the instruction changes its parts.
    fn stable_address(
        &mut self,
        address: Expr,
        changed: &[Register],
        more: &mut Vec<(Register, Expr)>,
    ) -> (Expr, Expr) {
        let mut depends = false;
        address.registers(&mut |r| depends |= changed.contains(&r));
        if !depends {
            return (address.clone(), address);
        }
        let saved_address = self.thread.register("address");
        more.push((saved_address, address.clone()));
        (address, Expr::Register(saved_address))
    }

    fn compare(
        &mut self,
        i: &Lowered<'_>,
        op: BinOp,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let width = self.width(i, &[&target, &source], variables)?;
        let flags =
            Expr::flags(op, width, Self::value(&target, width), Self::value(&source, width));
        let access =
            if target.is_memory() { self.load(&target, width) } else { self.load(&source, width) };
        self.push(access, vec![(FLAGS, flags)], Next::Fall);
        Ok(())
    }

    /// Returns the register operand of an exchange.
    fn register_operand<'o>(
        i: &Lowered<'_>,
        o: &'o Operand,
    ) -> Result<(Register, &'o View), OperandError> {
        match o {
            Operand::Register(r, view, _) => Ok((*r, view)),
            _ => Err(Diagnostic::at(
                Stage::Type,
                o.span(),
                format!("one operand of `{}` must be a register", i.word),
            )
            .into()),
        }
    }

    fn exchange(
        &mut self,
        i: &Lowered<'_>,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let width = self.width(i, &[&target, &source], variables)?;
        let (r, view) = Self::register_operand(i, &source)?;
        let back = Self::assign(r, view, width, Self::value(&target, width));
        let value = Self::value(&source, width);
        match target {
            Operand::Memory(address, _, _) => {
                self.note(&address, width, true);
                self.push(
                    Access::Update { address, width, value, when: None },
                    vec![back],
                    Next::Fall,
                );
            }
            Operand::Register(t, target_view, _) if t != r => {
                self.push(
                    Access::None,
                    vec![back, Self::assign(t, &target_view, width, value)],
                    Next::Fall,
                );
            }
            // Both operands are parts of one register.
            Operand::Register(t, target_view, _) => {
                let (_, swapped) = Self::assign(t, &target_view, width, value);
                self.push(Access::None, vec![(t, Self::merge_writes(swapped, back.1))], Next::Fall);
            }
            Operand::Immediate(..) => {}
        }
        Ok(())
    }

    fn exchange_add(
        &mut self,
        i: &Lowered<'_>,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let width = self.width(i, &[&target, &source], variables)?;
        let (r, view) = Self::register_operand(i, &source)?;
        let old = Self::value(&target, width);
        let by = Self::value(&source, width);
        let back = Self::assign(r, view, width, old.clone());
        let none = Operand::Immediate(0, i.span);
        self.modify(
            i,
            target,
            &none,
            width,
            Expr::op(BinOp::Add, width, old.clone(), by.clone()),
            Some(Expr::flags(BinOp::Add, width, old, by)),
            vec![back],
        );
        Ok(())
    }

    fn compare_exchange(
        &mut self,
        i: &Lowered<'_>,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let width = self.width(i, &[&target, &source], variables)?;
        Self::register_operand(i, &source)?;
        let accumulator = self.thread.register("rax");
        let view = View { full: "rax".into(), width, shift: 0 };
        let expected = Expr::Register(accumulator).part(0, width);
        let found = Self::value(&target, width);
        let new = Self::value(&source, width);
        let flags = Expr::flags(BinOp::Sub, width, expected.clone(), found.clone());
        let equal = Expr::Test(
            FlagTest { kind: super::super::expr::TestKind::Equal, negated: false },
            Box::new(flags.clone()),
        );
        let record_statement = Expr::Register(accumulator);
        let fetched = Self::assign(accumulator, &view, width, found.clone()).1;
        let back = (
            accumulator,
            Expr::If(
                Box::new(equal.clone()),
                Box::new(record_statement),
                Box::new(fetched.clone()),
            ),
        );
        match target {
            Operand::Memory(address, _, _) if i.locked => {
                self.note(&address, width, true);
                self.push(
                    Access::Update { address, width, value: new, when: Some(equal) },
                    vec![back, (FLAGS, flags)],
                    Next::Fall,
                );
            }
            Operand::Memory(address, _, _) => {
                self.note(&address, width, false);
                let update = Access::Update {
                    address: address.clone(),
                    width,
                    value: new.clone(),
                    when: Some(equal),
                };
                self.lockable(update, vec![back.clone(), (FLAGS, flags.clone())]);
                let mut assigns = vec![back, (FLAGS, flags), (CARRIED, new)];
                let (read, write) = self.stable_address(address, &[accumulator], &mut assigns);
                self.push(Access::Read { address: read, width }, assigns, Next::Fall);
                let when = Expr::Test(
                    FlagTest { kind: super::super::expr::TestKind::Equal, negated: false },
                    Box::new(Expr::Register(FLAGS)),
                );
                self.store(write, width, Expr::Register(CARRIED), Some(when));
            }
            Operand::Register(t, target_view, _) => {
                let set = Self::assign(t, &target_view, width, new).1;
                // The target may be a part of the accumulator: `cmpxchg ah, dl`. The upper half of
                // another target keeps its value, as processors do.
                let unequal = if t == accumulator { fetched } else { Expr::Register(t) };
                let chosen = Expr::If(Box::new(equal), Box::new(set), Box::new(unequal));
                let mut assigns = vec![(FLAGS, flags), (t, chosen)];
                if t != accumulator {
                    assigns.push(back);
                }
                self.push(Access::None, assigns, Next::Fall);
            }
            Operand::Immediate(..) => {}
        }
        Ok(())
    }

    fn set(
        &mut self,
        i: &Lowered<'_>,
        test: FlagTest,
        target: Operand,
    ) -> Result<(), OperandError> {
        let value = Expr::Test(test, Box::new(Expr::Register(FLAGS)));
        match target {
            Operand::Register(r, view, span) => {
                if view.width != Width::W8 {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        span,
                        format!(
                            "`{}` sets a byte, this register has {} bits",
                            i.word,
                            view.width.bits()
                        ),
                    )
                    .into());
                }
                self.push(Access::None, vec![Self::assign(r, &view, Width::W8, value)], Next::Fall);
            }
            Operand::Memory(_, Some(width), span) if width != Width::W8 => {
                let message =
                    format!("`{}` sets a byte, this operand has {} bits", i.word, width.bits());
                return Err(Diagnostic::at(Stage::Type, span, message).into());
            }
            Operand::Memory(address, _, _) => self.store(address, Width::W8, value, None),
            Operand::Immediate(_, span) => {
                return Err(Diagnostic::at(
                    Stage::Type,
                    span,
                    format!("a number cannot be an operand of `{}`", i.word),
                )
                .into());
            }
        }
        Ok(())
    }

    fn move_if(
        &mut self,
        i: &Lowered<'_>,
        test: FlagTest,
        target: Operand,
        source: Operand,
        variables: &Variables,
    ) -> Result<(), OperandError> {
        let width = self.width(i, &[&target, &source], variables)?;
        let Operand::Register(r, view, _) = &target else {
            return Err(Diagnostic::at(
                Stage::Type,
                target.span(),
                format!("the destination of `{}` must be a register", i.word),
            )
            .into());
        };
        let test = Expr::Test(test, Box::new(Expr::Register(FLAGS)));
        // Memory is read and the upper half is cleared even if the condition is false.
        let old = Expr::Register(*r).part(view.shift, width);
        let value = Expr::If(Box::new(test), Box::new(Self::value(&source, width)), Box::new(old));
        let access = self.load(&source, width);
        self.push(access, vec![Self::assign(*r, view, width, value)], Next::Fall);
        Ok(())
    }
}

/// Gives an operand in memory the size of a number, unless an operand has a size: `mov [x], byte
/// 1`.
fn size_memory(size: Width, operands: &mut [Operand], written: &mut [SourceOperand]) {
    if operands.iter().any(|o| o.width().is_some()) {
        return;
    }
    for (operand, text) in operands.iter_mut().zip(written) {
        if let (Operand::Memory(_, found, _), SourceOperand::Memory(_, in_text, _)) =
            (operand, text)
        {
            (*found, *in_text) = (Some(size), Some(size));
        }
    }
}

/// The instruction that is being lowered.
#[derive(Clone, Copy)]
pub(super) struct Lowered<'a> {
    pub(super) word: &'a str,
    span: Span,
    width: Option<Width>,
    locked: bool,
    /// True if it may be locked.
    lockable: bool,
}

/// The part of an instruction before its operands.
struct Head<'a> {
    word: Token<'a>,
    entry: InstructionEntry,
    width: Option<Width>,
    locked: bool,
}

fn head<'a>(cursor: &mut Cursor<'a, '_>) -> Result<Head<'a>, OperandError> {
    let mut locked = None;
    loop {
        let word = cursor.name("an instruction")?;
        let Some((entry, width)) = table::mnemonic(&word.text.to_ascii_lowercase()) else {
            return Err(table::unknown_instruction(&word).into());
        };
        if entry.kind == InstructionKind::Lock {
            locked = Some(word.span);
            // The herd tools allow the prefix as an instruction of its own.
            cursor.eat(";");
            continue;
        }
        if let Some(span) = locked.filter(|_| !entry.lockable) {
            return Err(Diagnostic::at(
                Stage::Type,
                span,
                format!("`lock` before `{}`, which does not support it", word.text),
            )
            .into());
        }
        return Ok(Head { word, entry, width, locked: locked.is_some() });
    }
}
