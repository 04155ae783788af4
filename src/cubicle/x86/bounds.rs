//! Variables that the number of threads bounds: locked instructions increment and decrement them,
//! other instructions set them.
//!
//! For example, a spinlock counts the waiting threads: each decrements it, and the thread that
//! leaves sets it again. With fewer than 2^31 threads it does not wrap, but value analysis cannot
//! show that. So the system gets a *ghost*, a weak array of Booleans. Its element is set for a
//! thread that counts; all are cleared when the variable is set. Each happens in the same
//! transition as the access to the variable, so that both reach memory together. A thread that
//! counts while its ghost is set goes to an unsafe place. If that place is unreachable, each thread
//! has counted at most once since the variable was set. Its distance from the set value is then at
//! most the number of threads times the largest step.

use super::values::{GREATEST, LEAST};
use super::{SELF, Translator, compare, constant, name};
use crate::ast::{Cmp, Formula, Right, Term, Update, Value};
use mu_program::expr::BinOp;
use mu_program::parametric::{Instruction, Number, Operand};
use mu_program::x86::table::{InstructionKind, UnaryOperation};
use std::collections::BTreeMap;

/// The least bound on the number of threads that an assumption must allow.
const FEWEST: i64 = 1 << 20;

/// The ghost of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ghost {
    /// The array of Booleans.
    pub(super) array: String,
    /// The name of the variable in the program.
    pub(super) variable: String,
    /// Largest number of threads for which the variable stays in a word.
    pub(super) most_threads: u64,
}

/// The change of a variable by an access.
enum BoundChange {
    /// A step between these two numbers.
    Step(i64, i64),
    /// Assignment of a value between these two numbers.
    Set(i64, i64),
    /// Any change.
    Other,
}

impl Translator<'_> {
    /// Returns the variables that may wrap unless the number of threads bounds them, with their
    /// ghosts.
    pub(super) fn bounded_variables(&self) -> BTreeMap<String, Ghost> {
        let shared = self.source.variables.iter().filter(|v| !v.per_thread && !v.counter);
        let mut found = BTreeMap::new();
        for v in shared {
            let Some(Number::Literal(initial)) = v.initial else { continue };
            if let Some(most) = self.most_threads(&v.name, initial).filter(|most| *most >= FEWEST) {
                let mut array = format!("{}_counted", self.own_name(&v.name));
                while self.variables.values().any(|w| *w == array) || self.points.contains(&array) {
                    array.push('_');
                }
                found.insert(
                    v.name.clone(),
                    Ghost { array, variable: v.name.clone(), most_threads: most as u64 },
                );
            }
        }
        found
    }
    /// Returns the largest number of threads for which a variable stays in a word if each thread
    /// counts at most once.
    fn most_threads(&self, variable: &str, initial: i64) -> Option<i64> {
        let (mut least, mut greatest) = (initial, initial);
        let (mut down, mut up) = (0, 0);
        for (at, i) in
            self.source.code.iter().enumerate().filter(|(at, _)| self.analysis.at[*at].is_some())
        {
            for change in self.changes(at, i, variable) {
                match change {
                    BoundChange::Step(a, b) => (down, up) = (down.max(-a), up.max(b)),
                    BoundChange::Set(a, b) => (least, greatest) = (least.min(a), greatest.max(b)),
                    BoundChange::Other => return None,
                }
            }
        }
        let (low, high) = self.analysis.memory.get(variable)?.ends();
        let inside = low - down >= LEAST && high + up <= GREATEST;
        let of = |room: i64, step: i64| if step > 0 { room / step } else { i64::MAX };
        (!inside && (down > 0 || up > 0))
            .then(|| of(least - LEAST, down).min(of(GREATEST - greatest, up)))
    }
    /// Returns the changes of a variable by an instruction.
    fn changes(&self, at: usize, i: &Instruction, variable: &str) -> Vec<BoundChange> {
        let is = |o: &Operand| matches!(o, Operand::Memory(v, _) if v == variable);
        let ends = |o: &Operand| self.analysis.operand(at, o).ends();
        let Some(kind) = i.entry.map(|e| e.kind) else { return Vec::new() };
        let set = |o: &Operand| BoundChange::Set(ends(o).0, ends(o).1);
        match (kind, i.operands.as_slice()) {
            (InstructionKind::Compare(_), _) => Vec::new(),
            (InstructionKind::Mov, [target, source]) if is(target) => vec![set(source)],
            (InstructionKind::Exchange, [a, b]) if is(a) || is(b) => {
                vec![set(if is(a) { b } else { a })]
            }
            (InstructionKind::CompareExchange, [target, source]) if is(target) => vec![set(source)],
            (InstructionKind::Unary(UnaryOperation::Inc), [target]) if is(target) && i.lock => {
                vec![BoundChange::Step(0, 1)]
            }
            (InstructionKind::Unary(UnaryOperation::Dec), [target]) if is(target) && i.lock => {
                vec![BoundChange::Step(-1, 0)]
            }
            (
                InstructionKind::Arithmetic(BinOp::Add) | InstructionKind::ExchangeAdd,
                [target, source],
            ) if is(target) && i.lock => {
                vec![BoundChange::Step(ends(source).0, ends(source).1)]
            }
            (InstructionKind::Arithmetic(BinOp::Sub), [target, source]) if is(target) && i.lock => {
                vec![BoundChange::Step(-ends(source).1, -ends(source).0)]
            }
            (_, [target, ..]) if is(target) => vec![BoundChange::Other],
            _ => Vec::new(),
        }
    }
    /// Returns the ghost of the variable that an instruction counts.
    pub(super) fn ghost_of(&self, i: &Instruction) -> Option<&Ghost> {
        match i.operands.first() {
            Some(Operand::Memory(v, _)) if i.lock => self.bounds.get(v),
            _ => None,
        }
    }
    /// True if the number of threads bounds the result of an instruction to a word.
    pub(super) fn is_bounded(&self, i: &Instruction) -> bool {
        self.ghost_of(i).is_some()
    }
    /// Builds the condition that the acting thread has counted, or has not.
    pub(super) fn is_marked(&self, ghost: &Ghost, marked: bool) -> Formula {
        compare(
            Term::Cell(name(&ghost.array), vec![name(SELF)]),
            Cmp::Eq,
            constant(if marked { "True" } else { "False" }),
        )
    }
    /// Builds the update that marks the acting thread.
    pub(super) fn mark(&self, ghost: &Ghost) -> Update {
        let right = Right::Value(Value::Term(constant("True")));
        Update { by: None, name: name(&ghost.array), args: vec![name(SELF)], right }
    }
    /// Builds the update that unmarks all threads.
    pub(super) fn unmark(&self, ghost: &Ghost) -> Update {
        let right = Right::Cases(vec![(None, Value::Term(constant("False")))]);
        Update { by: None, name: name(&ghost.array), args: vec![name("k")], right }
    }
    /// True if some comparison, sum, or shift may overflow, so that sign and order differ.
    pub(super) fn overflows(&self) -> bool {
        self.source.code.iter().enumerate().any(|(at, i)| {
            if self.analysis.at[at].is_none() || self.is_bounded(i) {
                return false;
            }
            if let Some(InstructionKind::Arithmetic(BinOp::Shl | BinOp::Shr)) =
                i.entry.map(|e| e.kind)
            {
                return true;
            }
            let values = |o: &Operand| self.analysis.operand(at, o);
            let one = super::values::WordValues::singleton;
            let ends = match (i.entry.map(|e| e.kind), i.operands.as_slice()) {
                (Some(InstructionKind::Unary(op)), [a]) => {
                    let (op, a, b) = op.operation(values(a), one);
                    super::values::WordValues::exact(op, &a, &b)
                }
                (Some(InstructionKind::Compare(op) | InstructionKind::Arithmetic(op)), [a, b]) => {
                    super::values::WordValues::exact(op, &values(a), &values(b))
                }
                (Some(InstructionKind::ExchangeAdd), [a, b]) => {
                    super::values::WordValues::exact(BinOp::Add, &values(a), &values(b))
                }
                (Some(InstructionKind::CompareExchange), [a, _]) => {
                    let eax = values(&Operand::Register("eax".into(), i.span));
                    super::values::WordValues::exact(BinOp::Sub, &eax, &values(a))
                }
                _ => None,
            };
            ends.is_some_and(|(low, high)| low < LEAST || high > GREATEST)
        })
    }
}
