//! Which values results of instructions may have, where these are few: what flags that unbounded numbers do not have can be told from.
//!
//! A program for any number of threads → for each instruction the results that the flags may come from. All threads run one code, so memory has one set of
//! values a variable, whoever writes and whenever; registers have one at each instruction. Sets of more than [`MOST`] values are given up, so that the fixed
//! point is there after few rounds. Cost: rounds times instructions times pairs of values of two operands.
//!
//! With the results known, x86's other flags follow: the parity is that of the result's lowest byte, nothing overflows where results have 31 bits, and the
//! carry of a comparison is its sign where both sides are no negative numbers.

use super::Options;
use mu_program::parametric::{Instruction, Number, Operand, Source};
use std::collections::{BTreeMap, BTreeSet};

/// How many values a set may have.
const MOST: usize = 64;

/// Values; none: any.
type Set = Option<BTreeSet<i64>>;

/// What the flags may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flags {
    /// The results.
    pub(super) results: Set,
    /// Whether the carry is set exactly where the result is negative.
    pub(super) carry: bool,
    /// Whether operands and result are numbers of 32 bits with a sign, so that nothing overflowed.
    pub(super) small: bool,
}

/// What is known before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Facts {
    registers: BTreeMap<String, Set>,
    flags: Flags,
}

/// For each instruction what the flags before it may come from; none where control never is.
pub(super) fn flags(source: &Source, options: Options) -> Vec<Option<Flags>> {
    let mut analysis = Analysis { source, options, memory: BTreeMap::new(), at: vec![None; source.code.len() + 1] };
    for v in &source.variables {
        let initial = match v.initial {
            Some(Number::Is(n)) if !v.counter => Some(BTreeSet::from([n])),
            _ => None,
        };
        analysis.memory.insert(v.name.clone(), initial);
    }
    // All flags are clear, as a result of one leaves them, unless they may be anything.
    let results = if options.any_registers { None } else { Some(BTreeSet::from([1])) };
    analysis.at[0] =
        Some(Facts { registers: BTreeMap::new(), flags: Flags { results, carry: !options.any_registers, small: !options.any_registers } });
    while analysis.round() {}
    analysis.at.into_iter().map(|f| f.map(|f| f.flags)).collect()
}

/// Whether the lowest byte of a number has an even number of ones.
pub(super) fn even(value: i64) -> bool {
    (value as u8).count_ones().is_multiple_of(2)
}

fn union(a: &Set, b: &Set) -> Set {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    let both: BTreeSet<i64> = a.union(b).copied().collect();
    (both.len() <= MOST).then_some(both)
}

fn each(a: &Set, f: impl Fn(i64) -> Option<i64>) -> Set {
    a.as_ref()?.iter().map(|x| f(*x)).collect()
}

fn pairs(a: &Set, b: &Set, f: impl Fn(i64, i64) -> Option<i64>) -> Set {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    let all: Option<BTreeSet<i64>> = a.iter().flat_map(|x| b.iter().map(|y| f(*x, *y))).collect();
    all.filter(|s| s.len() <= MOST)
}

/// Whether all values are from 0 to 2^31 - 1, where comparisons with and without signs are one.
fn unsigned(set: &Set) -> bool {
    set.as_ref().is_some_and(|s| s.iter().all(|v| (0..1 << 31).contains(v)))
}

/// Whether all values are numbers of 32 bits with a sign.
fn small(sets: &[&Set]) -> bool {
    sets.iter().all(|s| s.as_ref().is_some_and(|s| s.iter().all(|v| i32::try_from(*v).is_ok())))
}

struct Analysis<'a> {
    source: &'a Source,
    options: Options,
    memory: BTreeMap<String, Set>,
    at: Vec<Option<Facts>>,
}

impl Analysis<'_> {
    /// Goes through the code once; whether something is new.
    fn round(&mut self) -> bool {
        let before = (self.at.clone(), self.memory.clone());
        for at in 0..self.source.code.len() {
            let Some(facts) = self.at[at].clone() else { continue };
            let i = &self.source.code[at];
            let after = self.step(i, facts);
            let target = match i.operands.as_slice() {
                [Operand::Label(l, _)] => self.source.code.iter().position(|i| i.labels.iter().any(|own| own == l)),
                _ => None,
            };
            if let Some(target) = target {
                self.join(target, &after);
            }
            if i.word != "jmp" {
                self.join(at + 1, &after);
            }
        }
        before != (self.at.clone(), self.memory.clone())
    }
    fn join(&mut self, at: usize, more: &Facts) {
        let Some(old) = &self.at[at] else {
            self.at[at] = Some(more.clone());
            return;
        };
        let names = old.registers.keys().chain(more.registers.keys());
        let registers = names.map(|r| (r.clone(), union(&self.register(old, r), &self.register(more, r)))).collect();
        let (a, b) = (&old.flags, &more.flags);
        let flags = Flags { results: union(&a.results, &b.results), carry: a.carry && b.carry, small: a.small && b.small };
        self.at[at] = Some(Facts { registers, flags });
    }
    fn register(&self, facts: &Facts, name: &str) -> Set {
        let start = if self.options.any_registers { None } else { Some(BTreeSet::from([0])) };
        facts.registers.get(name).cloned().unwrap_or(start)
    }
    fn value(&self, facts: &Facts, operand: &Operand) -> Set {
        match operand {
            Operand::Register(r, _) => self.register(facts, r),
            Operand::Memory(v, _) | Operand::Element(v, _, _) => self.memory.get(v).cloned().flatten(),
            Operand::Immediate(Number::Is(n), _) => Some(BTreeSet::from([*n])),
            Operand::Immediate(Number::Threads, _) | Operand::Label(..) => None,
        }
    }
    fn store(&mut self, facts: &mut Facts, operand: &Operand, value: Set) {
        match operand {
            Operand::Register(r, _) => {
                facts.registers.insert(r.clone(), value);
            }
            Operand::Memory(v, _) | Operand::Element(v, _, _) => {
                if let Some(old) = self.memory.get_mut(v) {
                    *old = union(old, &value);
                }
            }
            Operand::Immediate(..) | Operand::Label(..) => {}
        }
    }
    /// What is known after an instruction.
    fn step(&mut self, i: &Instruction, mut facts: Facts) -> Facts {
        let zero = Some(BTreeSet::from([0]));
        let counter = |o: &Operand| matches!(o, Operand::Memory(v, _) if self.source.variables.iter().any(|d| d.counter && d.name == *v));
        let word = i.word.as_str();
        if i.operands.first().is_some_and(counter) {
            if word != "mov" {
                facts.flags = Flags { results: None, carry: false, small: false };
            }
            return facts;
        }
        match (word, i.operands.as_slice()) {
            ("mov", [target, source]) => {
                let value = self.value(&facts, source);
                self.store(&mut facts, target, value);
            }
            ("add" | "sub" | "cmp" | "xadd", [target, source]) => {
                let (a, b) = (self.value(&facts, target), self.value(&facts, source));
                let minus = matches!(word, "sub" | "cmp");
                let result = pairs(&a, &b, |x, y| if minus { x.checked_sub(y) } else { x.checked_add(y) });
                facts.flags = Flags { small: small(&[&a, &b, &result]), results: result.clone(), carry: unsigned(&a) && unsigned(&b) };
                if word == "xadd" {
                    self.store(&mut facts, source, a);
                }
                if word != "cmp" {
                    self.store(&mut facts, target, result);
                }
            }
            ("inc" | "dec", [target]) => {
                let old = self.value(&facts, target);
                let result = each(&old, |x| x.checked_add(if word == "inc" { 1 } else { -1 }));
                // The carry stays as it was.
                facts.flags = Flags { small: small(&[&old, &result]), results: result.clone(), carry: false };
                self.store(&mut facts, target, result);
            }
            ("neg", [target]) => {
                let old = self.value(&facts, target);
                let result = each(&old, i64::checked_neg);
                facts.flags = Flags { small: small(&[&old, &result]), results: result.clone(), carry: unsigned(&old) };
                self.store(&mut facts, target, result);
            }
            ("not", [target]) => {
                let result = each(&self.value(&facts, target), |x| Some(!x));
                self.store(&mut facts, target, result);
            }
            // Of one register: others are refused.
            ("test", [a, _]) => {
                let results = self.value(&facts, a);
                facts.flags = Flags { carry: unsigned(&results), small: small(&[&results]), results };
            }
            ("xor", [target, _]) => {
                facts.flags = Flags { results: zero.clone(), carry: true, small: true };
                self.store(&mut facts, target, zero);
            }
            ("xchg", [a, b]) => {
                let (x, y) = (self.value(&facts, a), self.value(&facts, b));
                self.store(&mut facts, a, y);
                self.store(&mut facts, b, x);
            }
            ("cmpxchg", [target, source]) => {
                let (x, new, eax) = (self.value(&facts, target), self.value(&facts, source), self.register(&facts, "eax"));
                let result = pairs(&eax, &x, i64::checked_sub);
                facts.flags = Flags { small: small(&[&eax, &x, &result]), results: result, carry: unsigned(&eax) && unsigned(&x) };
                let stored = union(&x, &new);
                self.store(&mut facts, target, stored);
                facts.registers.insert("eax".into(), union(&eax, &x));
            }
            _ => {}
        }
        facts
    }
}
