//! Translation of instructions on counters of threads: one cell for each thread, and the value is
//! the number of cells with the value `True`.

use super::flags::Flags;
use super::{OTHER, SELF, Translator, compare, constant, name, own, reject};
use crate::ast::{Cmp, Formula, QuantifierKind, Right, Term, Update, Value};
use mu_base::source::Place;
use mu_base::{Diagnostic, Stage};
use mu_program::expr::BinOp;
use mu_program::parametric::{Declaration, Instruction, Number, Operand};
use mu_program::x86::table::{InstructionKind, UnaryOperation};

/// Builds `cell = value` for the acting thread's cell of a counter.
fn mine(counter: &str, value: &str) -> Formula {
    compare(own(counter), Cmp::Eq, constant(value))
}

fn counter_equals(counter: &str, thread: &str, value: &str) -> Formula {
    compare(Term::Cell(name(counter), vec![name(thread)]), Cmp::Eq, constant(value))
}

/// Builds the same for all threads that are not parameters.
fn all_counters_equal(counter: &str, value: &str) -> Formula {
    let q = QuantifierKind { all: true, other: true };
    Formula::Quantified(q, vec![name("u")], Box::new(counter_equals(counter, "u", value)))
}

fn some_counter_equals(counter: &str, value: &str) -> Formula {
    let q = QuantifierKind { all: false, other: true };
    Formula::Quantified(q, vec![name("u")], Box::new(counter_equals(counter, "u", value)))
}

fn write(counter: &str, thread: &str, value: &str) -> Update {
    let right = Right::Value(Value::Term(constant(value)));
    Update { by: None, name: name(counter), args: vec![name(thread)], right }
}

impl Translator<'_> {
    /// Translates an instruction with a counter as its first operand.
    pub(super) fn on_counter(
        &mut self,
        at: usize,
        i: &Instruction,
        counter: &Declaration,
    ) -> Result<(), Diagnostic> {
        let (own_name, declared) = (self.own_name(&counter.name), counter.name.as_str());
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let counter = own_name.as_str();
        let kind = i.entry.map(|e| e.kind);
        match (kind, &i.operands[1..]) {
            (
                Some(InstructionKind::Mov),
                [Operand::Immediate(n @ (Number::Literal(0) | Number::Threads), _)],
            ) => {
                let value = if *n == Number::Threads { "True" } else { "False" };
                let all = Right::Cases(vec![(None, Value::Term(constant(value)))]);
                let update =
                    Update { by: None, name: name(counter), args: vec![name("k")], right: all };
                let updates = vec![update, self.goes(&to)];
                self.add(format!("mov{at}"), &from, Vec::new(), updates, false);
                Ok(())
            }
            (
                Some(InstructionKind::Compare(BinOp::Sub)),
                [Operand::Immediate(n @ (Number::Literal(0) | Number::Threads), _)],
            ) => {
                // If all cells are equal, the counter is 0 or N; otherwise it is between. Both are
                // words without the sign bit, so the sign of the difference is that of the word and
                // the carry, and nothing overflows.
                let (all, one, sign) = if *n == Number::Threads {
                    ("True", "False", -1)
                } else {
                    ("False", "True", 1)
                };
                let flags = |sign, s: &Self| {
                    [s.flag_updates(&Flags::of_comparison(sign)), vec![s.goes(&to)]].concat()
                };
                let (equal, differs) = (flags(0, self), flags(sign, self));
                self.add(
                    format!("cmp{at}_equal"),
                    &from,
                    vec![mine(counter, all), all_counters_equal(counter, all)],
                    equal,
                    false,
                );
                self.add(
                    format!("cmp{at}_own"),
                    &from,
                    vec![mine(counter, one)],
                    differs.clone(),
                    false,
                );
                self.add(
                    format!("cmp{at}_other"),
                    &from,
                    vec![counter_equals(counter, OTHER, one)],
                    differs,
                    true,
                );
                Ok(())
            }
            (Some(InstructionKind::Unary(UnaryOperation::Inc)), []) => {
                let other = vec![mine(counter, "True"), counter_equals(counter, OTHER, "False")];
                self.count(
                    at,
                    i,
                    (declared, counter),
                    "True",
                    vec![(vec![mine(counter, "False")], 1, false), (other, 1, true)],
                )
            }
            (Some(InstructionKind::Unary(UnaryOperation::Dec)), []) => {
                let is_observed = self.needs.zero || self.needs.sign || self.needs.less;
                let down = if is_observed {
                    decrements(counter)
                } else {
                    decrements_without_flags(counter)
                };
                self.count(at, i, (declared, counter), "False", down)
            }
            _ => reject(
                i.span,
                format!(
                    "`{}` on a counter, which may be moved to 0 or N, incremented, decremented, and compared with 0 or N",
                    i.word
                ),
            ),
        }
    }
    /// Adds the transitions of a locked step of a counter: each has a guard, the flags' value, and
    /// true if it changes another thread's cell.
    fn count(
        &mut self,
        at: usize,
        i: &Instruction,
        (declared, counter): (&str, &str),
        value: &str,
        outcomes: Vec<(Vec<Formula>, i64, bool)>,
    ) -> Result<(), Diagnostic> {
        if !i.lock {
            let message = format!(
                "`{}` on a counter without `lock`: between its read and its write others may change the counter",
                i.word
            );
            let error = Diagnostic::at(Stage::Unsupported, i.span, message);
            return Err(error.note("x86 then writes the value read plus or minus one, which per-thread Booleans cannot represent"));
        }
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        for (n, (guard, flag, other)) in outcomes.into_iter().enumerate() {
            let stored = vec![write(counter, if other { OTHER } else { SELF }, value)];
            let updates =
                [stored, self.flag_updates(&Flags::of_count(flag)), vec![self.goes(&to)]].concat();
            self.add(format!("lock_{}{at}_{n}", i.word), &from, guard, updates, other);
        }
        // A count beyond the number of threads, or below zero, is not representable.
        let out = self.limit_place(
            format!("the counter `{}` may leave the range from 0 to N", declared),
            i.span,
        );
        let guard = vec![
            mine(counter, value),
            all_counters_equal(counter, value),
            Formula::Fence(None, Place::default()),
        ];
        self.add(format!("lock_{}{at}_out", i.word), &from, guard, vec![self.goes(&out)], false);
        Ok(())
    }
}

fn decrements_without_flags(counter: &str) -> Vec<(Vec<Formula>, i64, bool)> {
    vec![
        (vec![mine(counter, "True")], 1, false),
        (vec![mine(counter, "False"), counter_equals(counter, OTHER, "True")], 1, true),
    ]
}

/// Returns the cells that a decrement may clear, with the result that all are then clear. The
/// thread's own cell is preferred if it is set. The choice is free, since the set of cells has no
/// meaning, and this choice helps proofs: a thread that has not decremented is still counted.
fn decrements(counter: &str) -> Vec<(Vec<Formula>, i64, bool)> {
    vec![
        (vec![mine(counter, "True"), all_counters_equal(counter, "False")], 0, false),
        (vec![mine(counter, "True"), some_counter_equals(counter, "True")], 1, false),
        (
            vec![
                mine(counter, "False"),
                counter_equals(counter, OTHER, "True"),
                all_counters_equal(counter, "False"),
            ],
            0,
            true,
        ),
        (
            vec![
                mine(counter, "False"),
                counter_equals(counter, OTHER, "True"),
                some_counter_equals(counter, "True"),
            ],
            1,
            true,
        ),
    ]
}
