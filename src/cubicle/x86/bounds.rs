//! Variables that the number of threads bounds: counted up and down by locked instructions, set by
//! others.
//!
//! A spinlock counts the threads that wait: each takes one away, and whoever leaves sets it again.
//! No wrap happens there with fewer than 2^31 threads, but that is no property of the values alone.
//! So a ghost, a weak array of truth values, is set for a thread that counts and cleared for all
//! when the variable is set, in the same transition: both reach memory at once. A thread that
//! counts while its ghost is set goes to a place that is unsafe. If no thread ever gets there, each
//! has counted at most once since the variable was set, so that it is at most the number of threads
//! times the greatest step away from the values that it is set to.

use super::values::{GREATEST, LEAST};
use super::{SELF, Translator, capital, compare, constant, name};
use crate::ast::{Cmp, Expr, Right, Term, Update, Value};
use mu_program::expr::BinOp;
use mu_program::parametric::{Instruction, Number, Operand};
use mu_program::x86::table::{Kind, Unary};
use std::collections::BTreeMap;

/// The assumption must leave room for as many threads.
const FEWEST: i64 = 1 << 20;

/// The ghost of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ghost {
    /// The array of truth values.
    pub(super) array: String,
    /// The variable, as the program calls it.
    pub(super) variable: String,
    /// With as many threads the variable stays in a word.
    pub(super) most_threads: u64,
}

/// An access to a variable that changes it.
enum Change {
    /// Steps from the first to the second number.
    Step(i64, i64),
    /// Values from the first to the second number.
    Set(i64, i64),
    /// Anything.
    Other,
}

impl Translator<'_> {
    /// The variables that may wrap unless the number of threads bounds them, with their ghosts.
    pub(super) fn bounded(&self) -> BTreeMap<String, Ghost> {
        let shared = self.source.variables.iter().filter(|v| !v.per_thread && !v.counter);
        let mut found = BTreeMap::new();
        for v in shared {
            let Some(Number::Literal(initial)) = v.initial else { continue };
            if let Some(most) = self.most_threads(&v.name, initial).filter(|most| *most >= FEWEST) {
                let mut array = format!("{}_counted", capital(&v.name));
                while self.source.variables.iter().any(|w| capital(&w.name) == array)
                    || self.points.contains(&array)
                {
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
    /// The most threads with which a variable stays in a word, if it may leave it and each thread
    /// counts at most once.
    fn most_threads(&self, variable: &str, initial: i64) -> Option<i64> {
        let (mut least, mut greatest) = (initial, initial);
        let (mut down, mut up) = (0, 0);
        for (at, i) in
            self.source.code.iter().enumerate().filter(|(at, _)| self.analysis.at[*at].is_some())
        {
            for change in self.changes(at, i, variable) {
                match change {
                    Change::Step(a, b) => (down, up) = (down.max(-a), up.max(b)),
                    Change::Set(a, b) => (least, greatest) = (least.min(a), greatest.max(b)),
                    Change::Other => return None,
                }
            }
        }
        let (low, high) = self.analysis.memory.get(variable)?.ends();
        let inside = low - down >= LEAST && high + up <= GREATEST;
        let of = |room: i64, step: i64| if step > 0 { room / step } else { i64::MAX };
        (!inside && (down > 0 || up > 0))
            .then(|| of(least - LEAST, down).min(of(GREATEST - greatest, up)))
    }
    /// What an instruction does to a variable.
    fn changes(&self, at: usize, i: &Instruction, variable: &str) -> Vec<Change> {
        let is = |o: &Operand| matches!(o, Operand::Memory(v, _) if v == variable);
        let ends = |o: &Operand| self.analysis.operand(at, o).ends();
        let Some(kind) = i.entry.map(|e| e.kind) else { return Vec::new() };
        let set = |o: &Operand| Change::Set(ends(o).0, ends(o).1);
        match (kind, i.operands.as_slice()) {
            (Kind::Compare(_), _) => Vec::new(),
            (Kind::Mov, [target, source]) if is(target) => vec![set(source)],
            (Kind::Exchange, [a, b]) if is(a) || is(b) => vec![set(if is(a) { b } else { a })],
            (Kind::CompareExchange, [target, source]) if is(target) => vec![set(source)],
            (Kind::Unary(Unary::Inc), [target]) if is(target) && i.lock => vec![Change::Step(0, 1)],
            (Kind::Unary(Unary::Dec), [target]) if is(target) && i.lock => {
                vec![Change::Step(-1, 0)]
            }
            (Kind::Arithmetic(BinOp::Add) | Kind::ExchangeAdd, [target, source])
                if is(target) && i.lock =>
            {
                vec![Change::Step(ends(source).0, ends(source).1)]
            }
            (Kind::Arithmetic(BinOp::Sub), [target, source]) if is(target) && i.lock => {
                vec![Change::Step(-ends(source).1, -ends(source).0)]
            }
            (_, [target, ..]) if is(target) => vec![Change::Other],
            _ => Vec::new(),
        }
    }
    /// The ghost of the variable that an instruction counts.
    pub(super) fn bound(&self, i: &Instruction) -> Option<&Ghost> {
        match i.operands.first() {
            Some(Operand::Memory(v, _)) if i.lock => self.bounds.get(v),
            _ => None,
        }
    }
    /// True if the number of threads keeps the result of an instruction in a word.
    pub(super) fn is_bounded(&self, i: &Instruction) -> bool {
        self.bound(i).is_some()
    }
    /// The condition that the acting thread has counted, or not.
    pub(super) fn is_marked(&self, ghost: &Ghost, marked: bool) -> Expr {
        compare(
            Term::Cell(name(&ghost.array), vec![name(SELF)]),
            Cmp::Eq,
            constant(if marked { "True" } else { "False" }),
        )
    }
    /// The update by which the acting thread counts.
    pub(super) fn mark(&self, ghost: &Ghost) -> Update {
        let right = Right::Value(Value::Term(constant("True")));
        Update { by: None, name: name(&ghost.array), args: vec![name(SELF)], right }
    }
    /// The update by which no thread has counted.
    pub(super) fn unmark(&self, ghost: &Ghost) -> Update {
        let right = Right::Cases(vec![(None, Value::Term(constant("False")))]);
        Update { by: None, name: name(&ghost.array), args: vec![name("k")], right }
    }
    /// True if some comparison or some sum may leave the words, so that sign and order differ.
    pub(super) fn overflows(&self) -> bool {
        self.source.code.iter().enumerate().any(|(at, i)| {
            if self.analysis.at[at].is_none() || self.is_bounded(i) {
                return false;
            }
            let values = |o: &Operand| self.analysis.operand(at, o);
            let one = super::values::Values::one;
            let ends = match (i.entry.map(|e| e.kind), i.operands.as_slice()) {
                (Some(Kind::Unary(op)), [a]) => {
                    let (op, a, b) = op.operation(values(a), one);
                    super::values::Values::exact(op, &a, &b)
                }
                (Some(Kind::Compare(op) | Kind::Arithmetic(op)), [a, b]) => {
                    super::values::Values::exact(op, &values(a), &values(b))
                }
                (Some(Kind::ExchangeAdd), [a, b]) => {
                    super::values::Values::exact(BinOp::Add, &values(a), &values(b))
                }
                (Some(Kind::CompareExchange), [a, _]) => {
                    let eax = values(&Operand::Register("eax".into(), i.span));
                    super::values::Values::exact(BinOp::Sub, &eax, &values(a))
                }
                _ => None,
            };
            ends.is_some_and(|(low, high)| low < LEAST || high > GREATEST)
        })
    }
}
