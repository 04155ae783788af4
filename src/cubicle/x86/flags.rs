//! Flags of instructions: flags that jumps read, the effect of operators on them, conditions of
//! jumps.
//!
//! `ZF` contains a result that is 0 if the zero flag is set. `SF` is negative if the sign flag is
//! set. `LF` is negative if sign and overflow differ, as for the unbounded sum. Both are one array
//! unless some result may overflow and jumps read both. If flags are initially open and jumps read
//! both, there is no `LF`, and tests compare `SF` with `OF`. `CF` is negative if the carry is set;
//! `OF` is not 0 if the overflow is set. Only flags that some jump reads are represented. Words
//! have 32 bits: an operator with a result that may leave them has a case for each kind of wrap.

use super::values::{GREATEST, LEAST, WordValues, apply};
use super::{Translator, compare, minus, number, own, plus, reject};
use crate::ast::{Cmp, Formula, Term, Update};
use mu_base::{Diagnostic, Span, Stage};
use mu_program::expr::{BinOp, FlagTest, TestKind, Width, flags};
use mu_program::parametric::ParametricProgram;
use mu_program::x86::table::InstructionKind;
use num_traits::Signed;

/// Number of words.
const WORDS: i64 = 1 << 32;
/// Limit on the pairs of operand values that are distinguished by cases; beyond it the operator is
/// unsupported.
const MAX_PAIRS: usize = 256;

/// The flags that jumps and conditional moves read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) zero: bool,
    pub(super) sign: bool,
    pub(super) less: bool,
    pub(super) carry: bool,
    pub(super) overflow: bool,
    pub(super) parity: bool,
    /// True if `LF` is a separate array.
    pub(super) separate_less: bool,
    /// True if tests for "less" compare `SF` with `OF`.
    pub(super) compared: bool,
}

impl Needs {
    pub(super) fn of(source: &ParametricProgram) -> Self {
        let mut needs = Needs::default();
        for i in &source.code {
            let Some(InstructionKind::JumpIf(test) | InstructionKind::MoveIf(test)) =
                i.entry.map(|e| e.kind)
            else {
                continue;
            };
            match test.kind {
                TestKind::Equal => needs.zero = true,
                TestKind::Sign => needs.sign = true,
                TestKind::Below => needs.carry = true,
                TestKind::Overflow => needs.overflow = true,
                TestKind::BelowOrEqual => (needs.zero, needs.carry) = (true, true),
                TestKind::Less => needs.less = true,
                TestKind::LessOrEqual => (needs.zero, needs.less) = (true, true),
                TestKind::Parity => (needs.zero, needs.parity) = (true, true),
            }
        }
        needs
    }
    /// Returns the arrays with their initial values: all flags are clear.
    pub(super) fn arrays(self) -> Vec<(&'static str, i64)> {
        let all = [
            ("ZF", self.zero, 1),
            ("SF", self.sign || self.less, 0),
            ("LF", self.separate_less, 0),
            ("CF", self.carry, 0),
            ("OF", self.overflow, 0),
        ];
        all.into_iter().filter(|a| a.1).map(|a| (a.0, a.2)).collect()
    }
}

/// One case of an operator.
#[derive(Clone, Debug)]
pub(super) struct FlagCase {
    /// The condition under which it applies.
    pub(super) guard: Vec<Formula>,
    /// The result.
    pub(super) result: Term,
    /// The flags; `None`: unchanged.
    pub(super) flags: Option<Flags>,
}

/// Flags of a case.
#[derive(Clone, Debug)]
pub(super) struct Flags {
    /// The result, or a term that is 0 if the result is 0.
    result: Term,
    /// Negative where sign and overflow differ.
    less: Term,
    /// Negative if the carry is set; `None`: unchanged.
    carry: Option<Term>,
    overflow: bool,
    /// Negative if the sign is set.
    sign: Term,
}

impl Flags {
    /// Returns the flags of a result without overflow and carry.
    pub(super) fn logical(result: Term) -> Self {
        Flags {
            less: result.clone(),
            sign: result.clone(),
            result,
            carry: Some(number(0)),
            overflow: false,
        }
    }
    /// Returns the flags of a non-negative result of `inc` or `dec`; the carry is unchanged.
    pub(super) fn of_count(result: i64) -> Self {
        Flags {
            result: number(result),
            less: number(result),
            carry: None,
            overflow: false,
            sign: number(result),
        }
    }
    /// Returns the flags of a difference of two words without the sign bit, from its sign.
    pub(super) fn of_comparison(sign: i64) -> Self {
        Flags {
            result: number(sign),
            less: number(sign),
            carry: Some(number(sign.min(0))),
            overflow: false,
            sign: number(sign),
        }
    }
}

/// Operands of an operator, with their possible values.
pub(super) struct FlagPair {
    pub(super) a: Term,
    pub(super) b: Term,
    pub(super) av: WordValues,
    pub(super) bv: WordValues,
    /// True if both are one register.
    pub(super) same: bool,
}

impl Translator<'_> {
    /// Returns the updates of the represented flags.
    pub(super) fn flag_updates(&self, flags: &Flags) -> Vec<Update> {
        let needs = self.needs;
        let mut out = Vec::new();
        if needs.zero {
            out.push(Self::set("ZF", flags.result.clone()));
        }
        if needs.sign || needs.less {
            let merged = needs.less && !needs.separate_less && !needs.compared;
            let sign = if merged { &flags.less } else { &flags.sign };
            out.push(Self::set("SF", sign.clone()));
        }
        if needs.separate_less {
            out.push(Self::set("LF", flags.less.clone()));
        }
        if needs.carry
            && let Some(carry) = &flags.carry
        {
            out.push(Self::set("CF", carry.clone()));
        }
        if needs.overflow {
            out.push(Self::set("OF", number(i64::from(flags.overflow))));
        }
        out
    }

    /// Returns the cases of an operator. `stores`: its result is stored. `bounded`: the number of
    /// threads bounds it to a word.
    pub(super) fn cases(
        &mut self,
        op: BinOp,
        pair: &FlagPair,
        stores: bool,
        bounded: bool,
        span: Span,
    ) -> Result<Vec<FlagCase>, Diagnostic> {
        let of = |result: Term| {
            vec![FlagCase {
                guard: Vec::new(),
                flags: Some(Flags::logical(result.clone())),
                result,
            }]
        };
        if self.options.words
            && let Some(cases) = self.cases_of_words(op, pair, stores, span)?
        {
            return Ok(cases);
        }
        match op {
            BinOp::Xor | BinOp::Sub if pair.same => Ok(of(number(0))),
            BinOp::And | BinOp::Or if pair.same => Ok(of(pair.a.clone())),
            BinOp::Xor if pair.bv == WordValues::singleton(-1) => {
                Ok(of(minus(number(-1), pair.a.clone())))
            }
            BinOp::Add | BinOp::Sub | BinOp::Inc | BinOp::Dec => {
                Ok(self.sums(op, pair, stores, bounded, span))
            }
            _ => self.enumerate_cases(op, pair, span),
        }
    }

    /// Returns the cases of an operator on words: one for each combination of the flags that some
    /// jump reads. `None`: an operator with a case for each pair of values.
    fn cases_of_words(
        &self,
        op: BinOp,
        pair: &FlagPair,
        stores: bool,
        span: Span,
    ) -> Result<Option<Vec<FlagCase>>, Diagnostic> {
        let FlagPair { a, b, .. } = pair;
        let signed = |t: &Term| Term::Signed(Box::new(t.clone()));
        let negative = |t: &Term| (signed(t), Cmp::Lt, number(0));
        let needs = self.needs;
        let adds = matches!(op, BinOp::Add | BinOp::Inc);
        let never = || (number(1), Cmp::Lt, number(0));
        // The result, the conditions under which sign and overflow differ and under which the carry
        // is set, and the term that is zero if the result is.
        let (result, less, carry, zero) = match op {
            BinOp::Xor | BinOp::Sub if pair.same => (number(0), never(), never(), None),
            BinOp::And | BinOp::Or if pair.same => (a.clone(), negative(a), never(), None),
            BinOp::Xor if *b == number(-1) => {
                let result = minus(number(-1), a.clone());
                (result.clone(), negative(&result), never(), None)
            }
            BinOp::And if !stores => {
                let Term::Number(mask, ..) = b else { return Ok(None) };
                let masked = Term::Mask(Box::new(a.clone()), mask.clone());
                let top = num_rational::BigRational::from_integer(num_bigint::BigInt::from(
                    1u64 << (self.source.bits - 1),
                ));
                // The parity is that of the result, which `ZF` then contains.
                if (needs.sign || needs.less) && *mask >= top || needs.parity {
                    return Ok(None);
                }
                (number(0), never(), never(), Some(masked))
            }
            BinOp::Add | BinOp::Sub | BinOp::Inc | BinOp::Dec => {
                if needs.overflow || needs.parity {
                    return reject(span, "the overflow or the parity of words that may wrap");
                }
                let result =
                    if adds { plus(a.clone(), b.clone()) } else { minus(a.clone(), b.clone()) };
                let less = match (adds, b) {
                    (false, _) => (signed(a), Cmp::Lt, signed(b)),
                    // a + b < 0 without wrapping, for a constant.
                    (true, Term::Number(n, ..)) if n.is_positive() => {
                        (signed(a), Cmp::Lt, signed(&Term::Neg(Box::new(b.clone()))))
                    }
                    _ if needs.less => {
                        return reject(
                            span,
                            "the signed order of a sum of two words that may wrap",
                        );
                    }
                    _ => never(),
                };
                let carry = if adds {
                    (result.clone(), Cmp::Lt, a.clone())
                } else {
                    (a.clone(), Cmp::Lt, b.clone())
                };
                (result, less, carry, None)
            }
            _ => return Ok(None),
        };
        let keeps_carry = matches!(op, BinOp::Inc | BinOp::Dec);
        let is_zero = zero.is_some() || result == number(0);
        let is_negative = if is_zero { never() } else { negative(&result) };
        let mut cases = vec![FlagCase {
            guard: Vec::new(),
            flags: Some(Flags::logical(result.clone())),
            result,
        }];
        // Each condition splits the cases, and its flag is -1 or 0.
        let split = |cases: Vec<FlagCase>,
                     (left, cmp, right): (Term, Cmp, Term),
                     set: fn(&mut Flags, Term)| {
            let known = left == number(1) && right == number(0);
            let mut out = Vec::new();
            for case in cases {
                for holds in [true, false] {
                    if known && holds {
                        continue;
                    }
                    let mut case = case.clone();
                    if !known {
                        let opposite = if cmp == Cmp::Lt { Cmp::Ge } else { Cmp::Eq };
                        let cmp = if holds { cmp } else { opposite };
                        case.guard.push(compare(left.clone(), cmp, right.clone()));
                    }
                    if let Some(flags) = &mut case.flags {
                        set(flags, number(if holds { -1 } else { 0 }));
                    }
                    out.push(case);
                }
            }
            out
        };
        if needs.less {
            cases = split(cases, less, |f, v| f.less = v);
        }
        if needs.sign {
            cases = split(cases, is_negative, |f, v| f.sign = v);
        }
        if needs.carry && !keeps_carry {
            cases = split(cases, carry, |f, v| f.carry = Some(v));
        }
        if let Some(masked) = zero
            && needs.zero
        {
            // -1 if the result is not zero.
            cases = split(cases, (masked, Cmp::Neq, number(0)), |f, v| f.result = v);
        }
        for flags in cases.iter_mut().filter_map(|c| c.flags.as_mut()) {
            if keeps_carry {
                flags.carry = None;
            }
        }
        Ok(Some(cases))
    }

    /// Returns the cases of a sum or a difference.
    fn sums(
        &mut self,
        op: BinOp,
        pair: &FlagPair,
        stores: bool,
        bounded: bool,
        span: Span,
    ) -> Vec<FlagCase> {
        let FlagPair { a, b, av, bv, .. } = pair;
        let needs = self.needs;
        let exact = if matches!(op, BinOp::Add | BinOp::Inc) {
            plus(a.clone(), b.clone())
        } else {
            minus(a.clone(), b.clone())
        };
        let (low, high) = WordValues::exact(op, av, bv).unwrap_or((LEAST, GREATEST));
        let (over, under) = (high > GREATEST && !bounded, low < LEAST && !bounded);
        let is_observed = stores
            || needs.sign
            || needs.overflow
            || needs.parity
            || needs.zero && op == BinOp::Add;
        let mut wraps: Vec<(Vec<Formula>, Term, bool)> = Vec::new();
        if (over || under) && is_observed {
            if stores {
                self.wraps.push(span);
            }
            if low <= GREATEST && high >= LEAST {
                let least = under.then(|| compare(exact.clone(), Cmp::Ge, number(LEAST)));
                let greatest = over.then(|| compare(exact.clone(), Cmp::Le, number(GREATEST)));
                wraps.push((least.into_iter().chain(greatest).collect(), exact.clone(), false));
            }
            if over {
                wraps.push((
                    vec![compare(exact.clone(), Cmp::Gt, number(GREATEST))],
                    minus(exact.clone(), number(WORDS)),
                    true,
                ));
            }
            if under {
                wraps.push((
                    vec![compare(exact.clone(), Cmp::Lt, number(LEAST))],
                    plus(exact.clone(), number(WORDS)),
                    true,
                ));
            }
        } else {
            wraps.push((Vec::new(), exact.clone(), false));
        }
        let carries =
            if needs.carry { carries(op, pair, &exact) } else { vec![(Vec::new(), None)] };
        let mut out = Vec::new();
        for (guard, result, overflow) in &wraps {
            for (signs, carry) in &carries {
                let flags = Flags {
                    result: result.clone(),
                    less: exact.clone(),
                    carry: carry.clone(),
                    overflow: *overflow,
                    sign: result.clone(),
                };
                let guard = guard.iter().chain(signs).cloned().collect();
                out.push(FlagCase { guard, result: result.clone(), flags: Some(flags) });
            }
        }
        out
    }

    /// Returns the cases of an operator that is not a sum: one for each pair of values, if these
    /// are few.
    fn enumerate_cases(
        &self,
        op: BinOp,
        pair: &FlagPair,
        span: Span,
    ) -> Result<Vec<FlagCase>, Diagnostic> {
        let few = pair.av.few().zip(pair.bv.few()).filter(|(x, y)| x.len() * y.len() <= MAX_PAIRS);
        let Some((x, y)) = few else {
            let error = Diagnostic::at(
                Stage::Unsupported,
                span,
                "a bit operation on words with possibly many values",
            );
            return Err(error
                .note(format!("for any number of threads it is supported if its operands have at most {MAX_PAIRS} pairs of values")));
        };
        let mut out = Vec::new();
        for (v, w) in x.iter().flat_map(|v| y.iter().map(move |w| (*v, *w))) {
            let guard = [(&pair.a, x.len(), v), (&pair.b, y.len(), w)];
            let guard = guard
                .into_iter()
                .filter(|g| g.1 > 1)
                .map(|(term, _, n)| compare(term.clone(), Cmp::Eq, number(n)))
                .collect();
            let bits = |n: i64| n as u64 & Width::W32.mask();
            // A count of zero preserves all flags.
            let preserves_flags = op.flags(Width::W32, bits(v), bits(w), flags::CF) == flags::CF
                && matches!(op, BinOp::Shl | BinOp::Shr | BinOp::Sar)
                && w & 31 == 0;
            let set = op.flags(Width::W32, bits(v), bits(w), 0);
            let on = |flag: u64| set & flag != 0;
            let result = apply(op, v, w);
            let less = if on(flags::SF) == on(flags::OF) { 0 } else { -1 };
            let carry = Some(number(if on(flags::CF) { -1 } else { 0 }));
            let flags = Flags {
                result: number(result),
                less: number(less),
                carry,
                overflow: on(flags::OF),
                sign: number(if on(flags::SF) { -1 } else { 0 }),
            };
            out.push(FlagCase {
                guard,
                result: number(result),
                flags: (!preserves_flags).then_some(flags),
            });
        }
        Ok(out)
    }

    /// Returns the conditions under which a test of the flags passes and fails; `None`: never.
    pub(super) fn condition(
        &self,
        at: usize,
        test: FlagTest,
        span: Span,
    ) -> Result<(Option<Formula>, Option<Formula>), Diagnostic> {
        let flag = |array: &str, cmp| compare(own(array), cmp, number(0));
        let words = self.options.words;
        let negative = |array: &str| {
            if words {
                // Flags of words are 0 and -1.
                let set = |cmp| compare(own(array), cmp, number(-1));
                return (set(Cmp::Eq), set(Cmp::Neq));
            }
            (flag(array, Cmp::Lt), flag(array, Cmp::Ge))
        };
        let less = || {
            if !self.needs.compared {
                return negative(if self.needs.separate_less { "LF" } else { "SF" });
            }
            let differ = |overflow, none| {
                Formula::Or(vec![
                    Formula::And(vec![flag("SF", Cmp::Lt), flag("OF", overflow)]),
                    Formula::And(vec![flag("SF", Cmp::Ge), flag("OF", none)]),
                ])
            };
            (differ(Cmp::Eq, Cmp::Neq), differ(Cmp::Neq, Cmp::Eq))
        };
        let or_equal = |(yes, no): (Formula, Formula)| {
            let either = Formula::Or(vec![flag("ZF", Cmp::Eq), yes]);
            (either, Formula::And(vec![flag("ZF", Cmp::Neq), no]))
        };
        let (yes, no) = match test.kind {
            TestKind::Equal => (flag("ZF", Cmp::Eq), flag("ZF", Cmp::Neq)),
            TestKind::Sign => negative("SF"),
            TestKind::Less => less(),
            TestKind::Below => negative("CF"),
            TestKind::Overflow => (flag("OF", Cmp::Neq), flag("OF", Cmp::Eq)),
            TestKind::LessOrEqual => or_equal(less()),
            TestKind::BelowOrEqual => or_equal(negative("CF")),
            TestKind::Parity => {
                let (even, odd) = self.parity(at, span)?;
                return Ok(if test.negated { (odd, even) } else { (even, odd) });
            }
        };
        Ok(if test.negated { (Some(no), Some(yes)) } else { (Some(yes), Some(no)) })
    }

    /// Returns the conditions for an even and an odd number of ones in the lowest byte of the last
    /// result.
    fn parity(
        &self,
        at: usize,
        span: Span,
    ) -> Result<(Option<Formula>, Option<Formula>), Diagnostic> {
        // Unreachable code has no steps.
        let Some(facts) = &self.analysis.at[at] else { return Ok((None, None)) };
        let Some(results) = facts.results.few() else {
            let word = &self.source.code[at].word;
            return reject(
                span,
                format!(
                    "`{word}` tests the parity of the lowest byte of a result, and the result may have many values"
                ),
            );
        };
        let among = |wanted: bool| {
            let fits = results
                .iter()
                .filter(|v| v.to_le_bytes()[0].count_ones().is_multiple_of(2) == wanted);
            let mut equal: Vec<Formula> =
                fits.map(|v| compare(own("ZF"), Cmp::Eq, number(*v))).collect();
            if equal.len() < 2 { equal.pop() } else { Some(Formula::Or(equal)) }
        };
        Ok((among(true), among(false)))
    }
}

/// Returns the carry of a sum or a difference by the signs of the operands: a term that is negative
/// if it is set; `None` if it is unchanged.
fn carries(op: BinOp, pair: &FlagPair, exact: &Term) -> Vec<(Vec<Formula>, Option<Term>)> {
    if matches!(op, BinOp::Inc | BinOp::Dec) {
        return vec![(Vec::new(), None)];
    }
    let signs = |values: &WordValues| -> Vec<bool> {
        let (low, high) = values.ends();
        [(low < 0, true), (high >= 0, false)].into_iter().filter(|s| s.0).map(|s| s.1).collect()
    };
    let (sa, sb) = (signs(&pair.av), signs(&pair.bv));
    let guard = |term: &Term, all: &[bool], negative: bool| {
        (all.len() > 1)
            .then(|| compare(term.clone(), if negative { Cmp::Lt } else { Cmp::Ge }, number(0)))
    };
    let mut out = Vec::new();
    for (x, y) in sa.iter().flat_map(|x| sb.iter().map(move |y| (*x, *y))) {
        let carry = match (op, x, y) {
            // A word with the sign bit is greater in the unsigned order.
            (BinOp::Sub, true, false) | (BinOp::Add, false, false) => number(0),
            (BinOp::Sub, false, true) | (BinOp::Add, true, true) => number(-1),
            (BinOp::Sub, ..) => exact.clone(),
            _ => minus(number(-1), exact.clone()),
        };
        let both = [guard(&pair.a, &sa, x), guard(&pair.b, &sb, y)];
        out.push((both.into_iter().flatten().collect(), Some(carry)));
    }
    out
}
