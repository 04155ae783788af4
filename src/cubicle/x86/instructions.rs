//! Translation of instructions on registers, shared data and thread data to transitions. See
//! [`super`].

use super::flags::{FlagCase, FlagPair, Flags};
use super::values::is_same_register;
use super::{Translator, compare, number, own, reject};
use crate::ast::{Cmp, Formula, Update};
use mu_base::Diagnostic;
use mu_base::source::Place;
use mu_program::expr::{BinOp, FlagTest};
use mu_program::parametric::{Instruction, Operand};
use mu_program::x86::table::InstructionKind;

impl Translator<'_> {
    /// Translates an instruction with a first operand that is not a counter.
    pub(super) fn plain(&mut self, at: usize, i: &Instruction) -> Result<(), Diagnostic> {
        let Some(entry) = i.entry else { return Ok(()) };
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        match (entry.kind, i.operands.as_slice()) {
            (
                InstructionKind::Nothing
                | InstructionKind::LoadFence
                | InstructionKind::Fence(mu_program::Fence::Store),
                _,
            ) => {
                self.add(format!("{}{at}", i.word), &from, Vec::new(), vec![self.goes(&to)], false);
                Ok(())
            }
            (InstructionKind::Fence(mu_program::Fence::Full), []) => {
                let guard = vec![Formula::Fence(None, Place::default())];
                self.add(format!("mfence{at}"), &from, guard, vec![self.goes(&to)], false);
                Ok(())
            }
            (InstructionKind::Return, []) => {
                let end = self.points[self.source.code.len()].clone();
                self.add(format!("ret{at}"), &from, Vec::new(), vec![self.goes(&end)], false);
                Ok(())
            }
            (InstructionKind::Mov, [target, source]) => {
                let value = self.value(source)?;
                self.both_memory(i, target, source)?;
                let updates = [self.stores(target, value)?, vec![self.goes(&to)]].concat();
                self.add(format!("mov{at}"), &from, Vec::new(), updates, false);
                Ok(())
            }
            (InstructionKind::MoveIf(test), [target @ Operand::Register(..), source]) => {
                let value = self.value(source)?;
                let stored = self.stores(target, value)?;
                self.either(at, test, i, [stored, vec![self.goes(&to)]].concat(), ["moved", "kept"])
            }
            (InstructionKind::Arithmetic(op), [target, source]) => {
                self.both_memory(i, target, source)?;
                let pair = self.pair(at, target, source)?;
                let cases = self.cases(op, &pair, true, self.is_bounded(i), i.span)?;
                self.modify(at, i, target, cases, None)
            }
            (InstructionKind::Unary(unary), [target]) => {
                let (old, held) = (self.value(target)?, self.analysis.operand(at, target));
                let (op, a, b) = unary.operation(old, number);
                let (_, av, bv) = unary.operation(held, super::values::WordValues::singleton);
                let cases = self.cases(
                    op,
                    &FlagPair { a, b, av, bv, same: false },
                    true,
                    self.is_bounded(i),
                    i.span,
                )?;
                let quiet =
                    |c: FlagCase| FlagCase { flags: c.flags.filter(|_| unary.sets_flags()), ..c };
                self.modify(at, i, target, cases.into_iter().map(quiet).collect(), None)
            }
            (InstructionKind::Compare(op), [a, b]) => {
                self.both_memory(i, a, b)?;
                let pair = self.pair(at, a, b)?;
                for (n, case) in self.cases(op, &pair, false, false, i.span)?.iter().enumerate() {
                    let updates = [self.all_flags(case), vec![self.goes(&to)]].concat();
                    self.add(case_name(&i.word, at, n), &from, case.guard.clone(), updates, false);
                }
                Ok(())
            }
            (InstructionKind::Exchange, [a, b]) => self.exchange(at, i, a, b),
            (InstructionKind::ExchangeAdd, [target, source @ Operand::Register(r, _)]) => {
                let pair = self.pair(at, target, source)?;
                let old = pair.a.clone();
                // With one register as both operands, the sum remains.
                let back = (!pair.same).then(|| Self::set(&self.register(r), old));
                let cases = self.cases(
                    BinOp::Add,
                    &FlagPair { same: false, ..pair },
                    true,
                    self.is_bounded(i),
                    i.span,
                )?;
                self.modify(at, i, target, cases, back)
            }
            (InstructionKind::CompareExchange, [target, Operand::Register(r, _)]) => {
                self.compare_exchange(at, i, target, r)
            }
            (InstructionKind::Jump, [Operand::Label(l, span)]) => {
                let target = self.label(l, *span)?;
                self.add(format!("jmp{at}"), &from, Vec::new(), vec![self.goes(&target)], false);
                Ok(())
            }
            (InstructionKind::JumpIf(test), [Operand::Label(l, span)]) => {
                let target = self.label(l, *span)?;
                self.either(at, test, i, vec![self.goes(&target)], ["taken", "not_taken"])
            }
            _ => reject(
                i.span,
                format!(
                    "`{}` with these operands has no counterpart in a system of any number of threads",
                    i.word
                ),
            ),
        }
    }
    /// Adds two transitions: one with the updates if the flags pass a test, one without if they do
    /// not.
    fn either(
        &mut self,
        at: usize,
        test: FlagTest,
        i: &Instruction,
        updates: Vec<Update>,
        called: [&str; 2],
    ) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let (yes, no) = self.condition(at, test, i.span)?;
        for (when, updates, called) in
            [(yes, updates, called[0]), (no, vec![self.goes(&to)], called[1])]
        {
            if let Some(when) = when {
                self.add(format!("{}{at}_{called}", i.word), &from, vec![when], updates, false);
            }
        }
        Ok(())
    }
    /// Returns the operands of an operator.
    fn pair(&mut self, at: usize, a: &Operand, b: &Operand) -> Result<FlagPair, Diagnostic> {
        let (av, bv) = (self.analysis.operand(at, a), self.analysis.operand(at, b));
        Ok(FlagPair { a: self.value(a)?, b: self.value(b)?, av, bv, same: is_same_register(a, b) })
    }
    fn all_flags(&self, case: &FlagCase) -> Vec<Update> {
        case.flags.as_ref().map_or_else(Vec::new, |f| self.flag_updates(f))
    }
    fn both_memory(&self, i: &Instruction, a: &Operand, b: &Operand) -> Result<(), Diagnostic> {
        if self.memory(a).is_some() && self.memory(b).is_some() {
            return reject(
                i.span,
                format!("`{}` has two operands in memory, expected one at most", i.word),
            );
        }
        Ok(())
    }
    /// Adds the transitions that store the results of an instruction's cases; `more` is an
    /// additional update when the operand is read.
    fn modify(
        &mut self,
        at: usize,
        i: &Instruction,
        target: &Operand,
        cases: Vec<FlagCase>,
        more: Option<Update>,
    ) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let word = &i.word;
        if self.memory(target).is_none() {
            for (n, case) in cases.iter().enumerate() {
                let stored = self.stores(target, case.result.clone())?;
                let updates = [
                    stored,
                    more.clone().into_iter().collect(),
                    self.all_flags(case),
                    vec![self.goes(&to)],
                ]
                .concat();
                self.add(case_name(word, at, n), &from, case.guard.clone(), updates, false);
            }
            return Ok(());
        }
        self.carries = true;
        if i.lock {
            let bounded = self.ghost_of(i).cloned();
            for (n, case) in cases.iter().enumerate() {
                let mut stored = match &bounded {
                    Some(ghost) => vec![self.store(target, case.result.clone())?, self.mark(ghost)],
                    None => self.stores(target, case.result.clone())?,
                };
                stored.push(Self::set("T", case.result.clone()));
                let updates = [
                    stored,
                    more.clone().into_iter().collect(),
                    self.all_flags(case),
                    vec![self.goes(&to)],
                ]
                .concat();
                let unmarked = bounded.iter().map(|ghost| self.is_marked(ghost, false));
                let guard = unmarked.chain(case.guard.iter().cloned()).collect();
                self.add(case_name(&format!("lock_{word}"), at, n), &from, guard, updates, false);
            }
            if let Some(ghost) = bounded {
                let out = self.limit_place(
                    format!(
                        "`{}` may be changed more than once by a thread before it is set again",
                        ghost.variable
                    ),
                    i.span,
                );
                let guard =
                    vec![self.is_marked(&ghost, true), Formula::Fence(None, Place::default())];
                self.add(
                    format!("lock_{word}{at}_again"),
                    &from,
                    guard,
                    vec![self.goes(&out)],
                    false,
                );
            }
            return Ok(());
        }
        let inside = self.inside(at, 'x');
        for (n, case) in cases.iter().enumerate() {
            let read = [
                vec![Self::set("T", case.result.clone())],
                more.clone().into_iter().collect(),
                self.all_flags(case),
            ]
            .concat();
            self.add(
                format!("{}_read", case_name(word, at, n)),
                &from,
                case.guard.clone(),
                [read, vec![self.goes(&inside)]].concat(),
                false,
            );
        }
        let second = [self.stores(target, own("T"))?, vec![self.goes(&to)]].concat();
        self.add(format!("{word}{at}_write"), &inside, Vec::new(), second, false);
        Ok(())
    }
    fn exchange(
        &mut self,
        at: usize,
        i: &Instruction,
        a: &Operand,
        b: &Operand,
    ) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let (memory, other) = if self.memory(a).is_some() { (a, b) } else { (b, a) };
        self.both_memory(i, a, b)?;
        let (x, r) = (self.value(memory)?, self.value(other)?);
        let atomic = self.memory(memory).is_none() || i.lock || !self.options.split_xchg;
        if is_same_register(a, b) {
            self.add(format!("xchg{at}"), &from, Vec::new(), vec![self.goes(&to)], false);
            return Ok(());
        }
        if atomic {
            let updates =
                [self.stores(memory, r)?, self.stores(other, x)?, vec![self.goes(&to)]].concat();
            self.add(format!("xchg{at}"), &from, Vec::new(), updates, false);
            return Ok(());
        }
        self.carries = true;
        let inside = self.inside(at, 'x');
        self.add(
            format!("xchg{at}_read"),
            &from,
            Vec::new(),
            vec![Self::set("T", x), self.goes(&inside)],
            false,
        );
        let second =
            [self.stores(memory, r)?, self.stores(other, own("T"))?, vec![self.goes(&to)]].concat();
        self.add(format!("xchg{at}_write"), &inside, Vec::new(), second, false);
        Ok(())
    }
    fn compare_exchange(
        &mut self,
        at: usize,
        i: &Instruction,
        target: &Operand,
        r: &str,
    ) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let accumulator = match self.source.bits {
            32 => "eax",
            16 => "ax",
            _ => "al",
        };
        let eax = Operand::Register(accumulator.into(), i.span);
        let pair = self.pair(at, &eax, target)?;
        let (x, register) = (pair.b.clone(), self.register(r));
        let same = compare(x.clone(), Cmp::Eq, pair.a.clone());
        let differs = compare(x.clone(), Cmp::Neq, pair.a.clone());
        let equal = self.flag_updates(&Flags::logical(number(0)));
        // If they differ, nothing is stored.
        let unequal = if pair.same {
            Vec::new()
        } else {
            self.cases(BinOp::Sub, &pair, false, false, i.span)?
        };
        let locked = i.lock || self.memory(target).is_none();
        let fence: Vec<Formula> =
            if i.lock { vec![Formula::Fence(None, Place::default())] } else { Vec::new() };
        for (n, case) in unequal.iter().enumerate() {
            let updates = [
                self.all_flags(case),
                vec![Self::set(&register_of(accumulator), x.clone()), self.goes(&to)],
            ]
            .concat();
            let guard = [vec![differs.clone()], case.guard.clone(), fence.clone()].concat();
            let which = if n == 0 { String::new() } else { format!("_{n}") };
            self.add(format!("cmpxchg{at}_unequal{which}"), &from, guard, updates, false);
        }
        let stored = self.stores(target, own(&register))?;
        if locked {
            self.add(
                format!("cmpxchg{at}_equal"),
                &from,
                vec![same],
                [stored, equal, vec![self.goes(&to)]].concat(),
                false,
            );
            return Ok(());
        }
        let inside = self.inside(at, 'x');
        self.add(
            format!("cmpxchg{at}_equal"),
            &from,
            vec![same],
            [equal, vec![self.goes(&inside)]].concat(),
            false,
        );
        self.add(
            format!("cmpxchg{at}_write"),
            &inside,
            Vec::new(),
            [stored, vec![self.goes(&to)]].concat(),
            false,
        );
        Ok(())
    }
}

/// Returns the name of a register's array.
fn register_of(register: &str) -> String {
    register.to_ascii_uppercase()
}

/// Returns the name of the transition of a case, numbered from the second one on.
fn case_name(word: &str, at: usize, case: usize) -> String {
    if case == 0 { format!("{word}{at}") } else { format!("{word}{at}_{case}") }
}
