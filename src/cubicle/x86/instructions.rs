//! Instructions on registers, shared data and thread data as transitions. See the head of [`super`].

use super::{Translator, compare, minus, number, own, plus, unsupported};
use crate::ast::{Cmp, Expr, Term, Update};
use mu_base::source::Place;
use mu_base::{Diagnostic, Stage};
use mu_program::parametric::{Instruction, Operand};

/// When a jump goes one way: the guard of that; none if it never does.
type When = Option<Vec<Expr>>;

impl Translator<'_> {
    /// An instruction whose first operand is no counter.
    pub(super) fn plain(&mut self, at: usize, i: &Instruction) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        match (i.word.as_str(), i.operands.as_slice()) {
            ("", []) => Ok(()),
            ("nop", []) => {
                self.add(format!("nop{at}"), &from, Vec::new(), vec![self.goes(&to)], false);
                Ok(())
            }
            ("mov", [target, source]) => {
                let value = self.value(source)?;
                self.both_memory(i, target, source)?;
                let updates = vec![self.store(target, value)?, self.goes(&to)];
                self.add(format!("mov{at}"), &from, Vec::new(), updates, false);
                Ok(())
            }
            ("add" | "sub" | "inc" | "dec" | "neg" | "not", [target, rest @ ..]) => self.arithmetic(at, i, target, rest),
            ("cmp", [a, b]) => {
                self.both_memory(i, a, b)?;
                let result = minus(self.value(a)?, self.value(b)?);
                self.flags_only(at, &from, &to, result);
                Ok(())
            }
            ("test", [Operand::Register(a, _), Operand::Register(b, _)]) if a == b => {
                let result = own(&self.register(a));
                self.flags_only(at, &from, &to, result);
                Ok(())
            }
            ("xor", [Operand::Register(a, _), Operand::Register(b, _)]) if a == b => {
                let register = self.register(a);
                let updates = [vec![Self::set(&register, number(0))], self.result(&number(0)), vec![self.goes(&to)]].concat();
                self.add(format!("xor{at}"), &from, Vec::new(), updates, false);
                Ok(())
            }
            ("xchg", [a, b]) => self.exchange(at, i, a, b),
            ("xadd", [target, Operand::Register(r, _)]) => self.exchange_add(at, i, target, r),
            ("cmpxchg", [target, Operand::Register(r, _)]) => self.compare_exchange(at, i, target, r),
            ("mfence", []) => {
                let guard = vec![Expr::Fence(None, Place::default())];
                self.add(format!("mfence{at}"), &from, guard, vec![self.goes(&to)], false);
                Ok(())
            }
            ("jmp", [Operand::Label(l, span)]) => {
                let target = self.label(l, *span)?;
                self.add(format!("jmp{at}"), &from, Vec::new(), vec![self.goes(&target)], false);
                Ok(())
            }
            (word, [Operand::Label(l, span)]) if word.starts_with('j') => {
                let (yes, no) = match condition(word) {
                    Some((yes, no)) => (Some(vec![yes]), Some(vec![no])),
                    None => self.by_results(at, i)?,
                };
                let target = self.label(l, *span)?;
                if let Some(yes) = yes {
                    self.add(format!("{word}{at}_taken"), &from, yes, vec![self.goes(&target)], false);
                }
                if let Some(no) = no {
                    self.add(format!("{word}{at}_not_taken"), &from, no, vec![self.goes(&to)], false);
                }
                Ok(())
            }
            (word, _) => {
                unsupported(i.span, format!("`{word}` with these operands has no counterpart in a system of any number of threads"))
            }
        }
    }
    /// When a jump on parity, overflow or carry is taken, and when not, told from the results that there may be; none: never.
    fn by_results(&self, at: usize, i: &Instruction) -> Result<(When, When), Diagnostic> {
        let word = i.word.as_str();
        let (kind, opposite) = match &word[1..] {
            "p" | "pe" => ("p", false),
            "np" | "po" => ("p", true),
            "o" => ("o", false),
            "no" => ("o", true),
            "b" | "c" | "nae" => ("b", false),
            "nb" | "nc" | "ae" => ("b", true),
            "be" | "na" => ("be", false),
            "nbe" | "a" => ("be", true),
            _ => {
                let error = Diagnostic::at(Stage::Unsupported, i.span, format!("unknown instruction `{word}`"));
                return Err(error.note("expected a jump on flags: je, jne, js, jns, jl, jle, jg, jge, jp, jnp, jo, jno, jb, jae, jbe, ja"));
            }
        };
        // Where control never is, nothing happens.
        let Some(flags) = self.results.get(at).and_then(Option::as_ref) else { return Ok((None, None)) };
        let refused = |what: &str, why: &str| {
            let error = Diagnostic::at(Stage::Unsupported, i.span, format!("`{word}` {what}, and {why}"));
            error.note("numbers have no bound here: it is supported where a result may have 64 values at most, which follow from the numbers in the code")
        };
        let both = |way: Option<(Expr, Expr)>| way.map(|(yes, no)| (Some(vec![yes]), Some(vec![no]))).unwrap_or_default();
        let (yes, no) = match (kind, &flags.results) {
            ("p", Some(results)) => {
                let among = |wanted: bool| {
                    let equal: Vec<Expr> = results
                        .iter()
                        .filter(|v| super::values::even(**v) == wanted)
                        .map(|v| compare(own("ZF"), Cmp::Eq, number(*v)))
                        .collect();
                    if equal.len() < 2 { equal.into_iter().next().map(|e| vec![e]) } else { Some(vec![Expr::Or(equal)]) }
                };
                (among(true), among(false))
            }
            ("p", None) => return Err(refused("tests the parity of the lowest byte of a result", "the result before it has no bound")),
            // What is in the range of 32 bits has not overflowed.
            ("o", _) if flags.small => (None, Some(Vec::new())),
            ("o", _) => return Err(refused("tests for an overflow", "the result before it is not known to fit 32 bits")),
            _ if !flags.carry => {
                return Err(refused("compares without signs", "what is compared before it is not known to be from 0 to 2^31 - 1"));
            }
            ("b", _) => both(condition("js")),
            _ => both(condition("jle")),
        };
        Ok(if opposite { (no, yes) } else { (yes, no) })
    }
    fn both_memory(&self, i: &Instruction, a: &Operand, b: &Operand) -> Result<(), Diagnostic> {
        if self.memory(a).is_some() && self.memory(b).is_some() {
            return unsupported(i.span, format!("`{}` has two operands in memory, expected one at most", i.word));
        }
        Ok(())
    }
    fn flags_only(&mut self, at: usize, from: &str, to: &str, result: Term) {
        let word = &self.source.code[at].word;
        let updates = [self.result(&result), vec![self.goes(to)]].concat();
        self.add(format!("{word}{at}"), from, Vec::new(), updates, false);
    }
    fn arithmetic(&mut self, at: usize, i: &Instruction, target: &Operand, rest: &[Operand]) -> Result<(), Diagnostic> {
        let old = self.value(target)?;
        let new = match (i.word.as_str(), rest) {
            ("inc", []) => plus(old, number(1)),
            ("dec", []) => minus(old, number(1)),
            ("neg", []) => Term::Neg(Box::new(old)),
            ("not", []) => minus(number(-1), old),
            ("add", [b]) => {
                self.both_memory(i, target, b)?;
                plus(old, self.value(b)?)
            }
            ("sub", [b]) => {
                self.both_memory(i, target, b)?;
                minus(old, self.value(b)?)
            }
            (word, _) => return unsupported(i.span, format!("`{word}` does not have so many operands")),
        };
        let flags = i.word != "not";
        self.modify(at, i, target, new, flags, Vec::new())
    }
    /// Stores what an instruction makes of an operand; `more` happens when it is read.
    fn modify(
        &mut self,
        at: usize,
        i: &Instruction,
        target: &Operand,
        new: Term,
        flags: bool,
        more: Vec<Update>,
    ) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let word = &i.word;
        let result = |s: &Self, t: &Term| if flags { s.result(t) } else { Vec::new() };
        if self.memory(target).is_none() {
            let updates = [vec![self.store(target, new.clone())?], more, result(self, &new), vec![self.goes(&to)]].concat();
            self.add(format!("{word}{at}"), &from, Vec::new(), updates, false);
            return Ok(());
        }
        self.carries = true;
        if i.lock {
            let stored = vec![self.store(target, new.clone())?, Self::set("T", new.clone())];
            let updates = [stored, more, result(self, &new), vec![self.goes(&to)]].concat();
            self.add(format!("lock_{word}{at}"), &from, Vec::new(), updates, false);
            return Ok(());
        }
        let inside = self.inside(at, 'x');
        let first = [vec![Self::set("T", new)], more, vec![self.goes(&inside)]].concat();
        self.add(format!("{word}{at}_read"), &from, Vec::new(), first, false);
        let second = [vec![self.store(target, own("T"))?], result(self, &own("T")), vec![self.goes(&to)]].concat();
        self.add(format!("{word}{at}_write"), &inside, Vec::new(), second, false);
        Ok(())
    }
    fn exchange(&mut self, at: usize, i: &Instruction, a: &Operand, b: &Operand) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let (memory, other) = if self.memory(a).is_some() { (a, b) } else { (b, a) };
        self.both_memory(i, a, b)?;
        let (x, r) = (self.value(memory)?, self.value(other)?);
        let atomic = self.memory(memory).is_none() || i.lock || !self.options.split_xchg;
        if atomic {
            let updates = vec![self.store(memory, r)?, self.store(other, x)?, self.goes(&to)];
            self.add(format!("xchg{at}"), &from, Vec::new(), updates, false);
            return Ok(());
        }
        self.carries = true;
        let inside = self.inside(at, 'x');
        self.add(format!("xchg{at}_read"), &from, Vec::new(), vec![Self::set("T", x), self.goes(&inside)], false);
        let second = vec![self.store(memory, r)?, self.store(other, own("T"))?, self.goes(&to)];
        self.add(format!("xchg{at}_write"), &inside, Vec::new(), second, false);
        Ok(())
    }
    fn exchange_add(&mut self, at: usize, i: &Instruction, target: &Operand, r: &str) -> Result<(), Diagnostic> {
        let old = self.value(target)?;
        let register = self.register(r);
        let new = plus(old.clone(), own(&register));
        self.modify(at, i, target, new, true, vec![Self::set(&register, old)])
    }
    fn compare_exchange(&mut self, at: usize, i: &Instruction, target: &Operand, r: &str) -> Result<(), Diagnostic> {
        let (from, to) = (self.points[at].clone(), self.points[at + 1].clone());
        let x = self.value(target)?;
        let (eax, register) = (self.register("eax"), self.register(r));
        let same = compare(x.clone(), Cmp::Eq, own(&eax));
        let differs = compare(x.clone(), Cmp::Neq, own(&eax));
        let result = minus(own(&eax), x.clone());
        let equal = self.result(&number(0));
        let unequal = [self.result(&result), vec![Self::set(&eax, x)]].concat();
        if i.lock || self.memory(target).is_none() {
            let fence: Vec<Expr> = if i.lock { vec![Expr::Fence(None, Place::default())] } else { Vec::new() };
            let stored = self.store(target, own(&register))?;
            self.add(format!("cmpxchg{at}_equal"), &from, vec![same], [vec![stored], equal, vec![self.goes(&to)]].concat(), false);
            let guard = [vec![differs], fence].concat();
            self.add(format!("cmpxchg{at}_unequal"), &from, guard, [unequal, vec![self.goes(&to)]].concat(), false);
            return Ok(());
        }
        let (yes, no) = (self.inside(at, 'x'), self.inside(at, 'y'));
        self.add(format!("cmpxchg{at}_equal"), &from, vec![same], [equal, vec![self.goes(&yes)]].concat(), false);
        self.add(format!("cmpxchg{at}_unequal"), &from, vec![differs], [unequal, vec![self.goes(&no)]].concat(), false);
        let (stored, back) = (self.store(target, own(&register))?, self.store(target, own(&eax))?);
        self.add(format!("cmpxchg{at}_write"), &yes, Vec::new(), vec![stored, self.goes(&to)], false);
        // It writes in any case: what it read, where the comparison fails.
        self.add(format!("cmpxchg{at}_write_back"), &no, Vec::new(), vec![back, self.goes(&to)], false);
        Ok(())
    }
}

/// When a conditional jump is taken, and when not.
fn condition(word: &str) -> Option<(Expr, Expr)> {
    let zero = |cmp| compare(own("ZF"), cmp, number(0));
    let sign = |cmp| compare(own("SF"), cmp, number(0));
    Some(match word {
        "je" | "jz" => (zero(Cmp::Eq), zero(Cmp::Neq)),
        "jne" | "jnz" => (zero(Cmp::Neq), zero(Cmp::Eq)),
        "js" | "jl" | "jnge" => (sign(Cmp::Lt), sign(Cmp::Ge)),
        "jns" | "jge" | "jnl" => (sign(Cmp::Ge), sign(Cmp::Lt)),
        "jle" | "jng" => (Expr::Or(vec![zero(Cmp::Eq), sign(Cmp::Lt)]), Expr::And(vec![zero(Cmp::Neq), sign(Cmp::Ge)])),
        "jg" | "jnle" => (Expr::And(vec![zero(Cmp::Neq), sign(Cmp::Ge)]), Expr::Or(vec![zero(Cmp::Eq), sign(Cmp::Lt)])),
        _ => return None,
    })
}
