//! Value analysis of words: small sets, otherwise ranges.
//!
//! Input: a program for any number of threads. Output: for each instruction the possible values of
//! registers and flags, for each variable the values that are ever stored. Words have 32 bits and
//! wrap; a word is represented by its signed value. All threads run one code, so memory has one set
//! of values for each variable, independent of thread and time; registers have one at each
//! instruction. A set of more than [`MAX_VALUES`] values becomes a range, and a growing range is
//! widened to the bounds of a word, so that the fixed point is reached after few rounds. Cost:
//! rounds times instructions times pairs of values of two operands.

use super::TranslationOptions;
use mu_program::expr::{BinOp, Width};
use mu_program::parametric::{Instruction, Number, Operand, ParametricProgram};
use mu_program::x86::table::InstructionKind;
use std::collections::{BTreeMap, BTreeSet};

/// Largest size of a set.
const MAX_VALUES: usize = 64;
/// The least word.
pub(super) const LEAST: i64 = i32::MIN as i64;
/// The greatest word.
pub(super) const GREATEST: i64 = i32::MAX as i64;

/// Values of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WordValues {
    /// One of these.
    Set(BTreeSet<i64>),
    /// Between the first and the second.
    Range(i64, i64),
}

impl WordValues {
    /// Every word.
    pub(super) const ALL: WordValues = WordValues::Range(LEAST, GREATEST);
    pub(super) fn singleton(n: i64) -> Self {
        WordValues::Set(BTreeSet::from([n]))
    }
    /// Returns the least and the greatest value.
    pub(super) fn ends(&self) -> (i64, i64) {
        match self {
            WordValues::Set(s) => (s.first().copied().unwrap_or(0), s.last().copied().unwrap_or(0)),
            WordValues::Range(a, b) => (*a, *b),
        }
    }
    /// Returns the values, if they are few.
    pub(super) fn few(&self) -> Option<&BTreeSet<i64>> {
        if let WordValues::Set(s) = self { Some(s) } else { None }
    }
    fn of(set: BTreeSet<i64>) -> Self {
        let range = || (set.first().copied().unwrap_or(0), set.last().copied().unwrap_or(0));
        if set.len() <= MAX_VALUES {
            WordValues::Set(set)
        } else {
            WordValues::Range(range().0, range().1)
        }
    }
    /// Joins two sets of values; a growing range is widened to the bounds of a word.
    fn join(&self, more: &WordValues) -> WordValues {
        if let (WordValues::Set(a), WordValues::Set(b)) = (self, more) {
            let all: BTreeSet<i64> = a.union(b).copied().collect();
            if all.len() <= MAX_VALUES {
                return WordValues::Set(all);
            }
        }
        let (a, b) = (self.ends(), more.ends());
        WordValues::Range(
            if b.0 < a.0 { LEAST } else { a.0 },
            if b.1 > a.1 { GREATEST } else { a.1 },
        )
    }
    /// Returns the range of an operator's results before wrapping; `None` if it is not a sum.
    pub(super) fn exact(op: BinOp, a: &WordValues, b: &WordValues) -> Option<(i64, i64)> {
        let ((a, c), (b, d)) = (a.ends(), b.ends());
        match op {
            BinOp::Add | BinOp::Inc => Some((a + b, c + d)),
            BinOp::Sub | BinOp::Dec => Some((a - d, c - b)),
            _ => None,
        }
    }
    /// Returns the results of an operator.
    pub(super) fn apply(op: BinOp, a: &WordValues, b: &WordValues) -> WordValues {
        if let (Some(x), Some(y)) = (a.few(), b.few())
            && x.len() * y.len() <= MAX_VALUES * MAX_VALUES
        {
            return WordValues::of(
                x.iter().flat_map(|x| y.iter().map(|y| apply(op, *x, *y))).collect(),
            );
        }
        match WordValues::exact(op, a, b) {
            Some((low, high)) if LEAST <= low && high <= GREATEST => WordValues::Range(low, high),
            // The complement reverses the range.
            None if op == BinOp::Xor && *b == WordValues::singleton(-1) => {
                WordValues::Range(-1 - a.ends().1, -1 - a.ends().0)
            }
            _ => WordValues::ALL,
        }
    }
}

/// Returns the result of an operator on words.
pub(super) fn apply(op: BinOp, a: i64, b: i64) -> i64 {
    Width::W32.to_signed(op.apply(
        Width::W32,
        a as u64 & Width::W32.mask(),
        b as u64 & Width::W32.mask(),
    ))
}

/// The facts before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InstructionFacts {
    registers: BTreeMap<String, WordValues>,
    /// The possible results that determine the flags.
    pub(super) results: WordValues,
}

/// The facts about a program.
pub(super) struct Analysis<'a> {
    source: &'a ParametricProgram,
    options: TranslationOptions,
    /// The possible values of each variable.
    pub(super) memory: BTreeMap<String, WordValues>,
    /// The facts before each instruction; `None` if it is unreachable.
    pub(super) at: Vec<Option<InstructionFacts>>,
}

impl<'a> Analysis<'a> {
    /// Analyses a program. Variables in `given` have the given values, independent of stores.
    pub(super) fn new(source: &'a ParametricProgram, options: TranslationOptions) -> Self {
        if source.bits != 32 {
            return Analysis::without_facts(source, options);
        }
        let mut analysis = Analysis {
            source,
            options,
            memory: BTreeMap::new(),
            at: vec![None; source.code.len() + 1],
        };
        for v in &source.variables {
            let initial = match v.initial {
                Some(Number::Literal(n)) if !v.counter => WordValues::singleton(n),
                _ => WordValues::ALL,
            };
            analysis.memory.insert(v.name.clone(), initial);
        }
        let results =
            if options.any_registers { WordValues::ALL } else { WordValues::singleton(1) };
        analysis.at[0] = Some(InstructionFacts { registers: BTreeMap::new(), results });
        while analysis.round() {}
        analysis
    }
    /// Returns no facts, for words of other widths.
    fn without_facts(source: &'a ParametricProgram, options: TranslationOptions) -> Self {
        let facts = InstructionFacts { registers: BTreeMap::new(), results: WordValues::ALL };
        Analysis {
            source,
            options: TranslationOptions { any_registers: true, ..options },
            memory: BTreeMap::new(),
            at: vec![Some(facts); source.code.len() + 1],
        }
    }
    /// Analyses the code once. Returns true if something is new.
    fn round(&mut self) -> bool {
        let before = (self.at.clone(), self.memory.clone());
        for at in 0..self.source.code.len() {
            let Some(facts) = self.at[at].clone() else { continue };
            let i = &self.source.code[at];
            let after = self.step(i, facts);
            let target = match i.operands.as_slice() {
                [Operand::Label(l, _)] => {
                    self.source.code.iter().position(|i| i.labels.iter().any(|own| own == l))
                }
                _ => None,
            };
            if let Some(target) = target {
                self.join(target, &after);
            }
            match i.entry.map(|e| e.kind) {
                Some(InstructionKind::Jump) => {}
                Some(InstructionKind::Return) => self.join(self.source.code.len(), &after),
                _ => self.join(at + 1, &after),
            }
        }
        before != (self.at.clone(), self.memory.clone())
    }
    fn join(&mut self, at: usize, more: &InstructionFacts) {
        let Some(old) = &self.at[at] else {
            self.at[at] = Some(more.clone());
            return;
        };
        let names = old.registers.keys().chain(more.registers.keys());
        let registers = names
            .map(|r| (r.clone(), self.register(old, r).join(&self.register(more, r))))
            .collect();
        self.at[at] =
            Some(InstructionFacts { registers, results: old.results.join(&more.results) });
    }
    fn register(&self, facts: &InstructionFacts, name: &str) -> WordValues {
        let start =
            || if self.options.any_registers { WordValues::ALL } else { WordValues::singleton(0) };
        facts.registers.get(name).cloned().unwrap_or_else(start)
    }
    fn value(&self, facts: &InstructionFacts, operand: &Operand) -> WordValues {
        match operand {
            Operand::Register(r, _) => self.register(facts, r),
            Operand::Memory(v, _) | Operand::Element(v, _, _) => {
                self.memory.get(v).cloned().unwrap_or(WordValues::ALL)
            }
            Operand::Immediate(Number::Literal(n), _) => WordValues::singleton(*n),
            Operand::Immediate(Number::Threads, _) | Operand::Label(..) => WordValues::ALL,
        }
    }
    /// Returns the possible values of an operand of an instruction.
    pub(super) fn operand(&self, at: usize, operand: &Operand) -> WordValues {
        self.at[at].as_ref().map_or(WordValues::ALL, |facts| self.value(facts, operand))
    }
    fn store(&mut self, facts: &mut InstructionFacts, operand: &Operand, value: WordValues) {
        match operand {
            Operand::Register(r, _) => {
                facts.registers.insert(r.clone(), value);
            }
            Operand::Memory(v, _) | Operand::Element(v, _, _) => {
                if let Some(old) = self.memory.get_mut(v) {
                    *old = old.join(&value);
                }
            }
            Operand::Immediate(..) | Operand::Label(..) => {}
        }
    }
    /// Returns the facts after an instruction.
    fn step(&mut self, i: &Instruction, mut facts: InstructionFacts) -> InstructionFacts {
        let counter = |o: &Operand| matches!(o, Operand::Memory(v, _) if self.source.variables.iter().any(|d| d.counter && d.name == *v));
        let Some(kind) = i.entry.map(|e| e.kind) else { return facts };
        if i.operands.first().is_some_and(counter) {
            if kind != InstructionKind::Mov {
                facts.results = WordValues::ALL;
            }
            return facts;
        }
        match (kind, i.operands.as_slice()) {
            (InstructionKind::Mov, [target, source]) => {
                let value = self.value(&facts, source);
                self.store(&mut facts, target, value);
            }
            (InstructionKind::MoveIf(_), [target, source]) => {
                let value = self.value(&facts, source).join(&self.value(&facts, target));
                self.store(&mut facts, target, value);
            }
            (
                InstructionKind::Arithmetic(_)
                | InstructionKind::Compare(_)
                | InstructionKind::ExchangeAdd,
                [target, source],
            ) => {
                let (a, b) = (self.value(&facts, target), self.value(&facts, source));
                let op = match kind {
                    InstructionKind::Arithmetic(op) | InstructionKind::Compare(op) => op,
                    _ => BinOp::Add,
                };
                let result =
                    results(op, &a, &b, target == source || is_same_register(target, source));
                // A shift by 0 modulo 32 preserves the flags.
                let keeps = matches!(op, BinOp::Shl | BinOp::Shr | BinOp::Sar)
                    && b.few().is_none_or(|counts| counts.iter().any(|n| n & 31 == 0));
                facts.results = if keeps { facts.results.join(&result) } else { result.clone() };
                if kind == InstructionKind::ExchangeAdd {
                    self.store(&mut facts, source, a);
                }
                if !matches!(kind, InstructionKind::Compare(_)) {
                    self.store(&mut facts, target, result);
                }
            }
            (InstructionKind::Unary(op), [target]) => {
                let (op2, a, b) = op.operation(self.value(&facts, target), WordValues::singleton);
                let result = WordValues::apply(op2, &a, &b);
                if op.sets_flags() {
                    facts.results = result.clone();
                }
                self.store(&mut facts, target, result);
            }
            (InstructionKind::Exchange, [a, b]) => {
                let (x, y) = (self.value(&facts, a), self.value(&facts, b));
                self.store(&mut facts, a, y);
                self.store(&mut facts, b, x);
            }
            (InstructionKind::CompareExchange, [target, source]) => {
                let (x, new, eax) = (
                    self.value(&facts, target),
                    self.value(&facts, source),
                    self.register(&facts, "eax"),
                );
                facts.results = WordValues::apply(BinOp::Sub, &eax, &x);
                let stored = x.join(&new);
                facts.registers.insert("eax".into(), eax.join(&x));
                self.store(&mut facts, target, stored);
            }
            // Others have no counterpart in a system; the translation reports that.
            _ => {}
        }
        facts
    }
}

/// True if both operands are one register.
pub(super) fn is_same_register(a: &Operand, b: &Operand) -> bool {
    matches!((a, b), (Operand::Register(x, _), Operand::Register(y, _)) if x == y)
}

/// Returns the results of an operator, of one register with itself if `same`.
fn results(op: BinOp, a: &WordValues, b: &WordValues, same: bool) -> WordValues {
    match op {
        BinOp::Xor | BinOp::Sub if same => WordValues::singleton(0),
        BinOp::And | BinOp::Or if same => a.clone(),
        _ => WordValues::apply(op, a, b),
    }
}
