//! Comparisons of words: remainders modulo a power of two, signed and unsigned order, masks.
//!
//! Input: two sums of words of one number of bits, each plain, `signed` or masked. Output: cubes of
//! comparisons of remainders as unsigned numbers ([`system::Words`](crate::system::Words)). The
//! signed order is the unsigned one of both sides plus 2^(bits-1). The lowest `k` bits of a word
//! are its remainder modulo 2^k. A mask in the middle of a word is a number of runs of ones, and
//! the bits of a run that begins at `low` and ends before `high` have a value `v` if the word minus
//! `v * 2^low` has a remainder modulo 2^high below 2^low. Cost: one comparison for each run.

use crate::ast;
use crate::system::{Atom, ComparisonOp, Cube, Sum, Words};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::ToPrimitive;

/// The form of a side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SideForm {
    /// The sum itself.
    Plain,
    /// The sum as a signed number.
    Signed,
    /// Some bits of the sum.
    Mask(BigRational),
}

impl SideForm {
    /// Returns the sum of a side of a comparison and its form.
    pub(crate) fn of(term: &ast::Term) -> (&ast::Term, SideForm) {
        match term {
            ast::Term::Signed(a) => (a, SideForm::Signed),
            ast::Term::Mask(a, mask) => (a, SideForm::Mask(mask.clone())),
            other => (other, SideForm::Plain),
        }
    }
}

pub(crate) fn power(bits: u32) -> BigInt {
    BigInt::from(1u64 << bits)
}

fn add_constant(mut sum: Sum, by: &BigInt) -> Sum {
    sum.constant += BigRational::from_integer(by.clone());
    sum
}

/// Returns a comparison of remainders as cubes, of which one must hold: none or an empty one if
/// both sides are constants.
fn remainders(left: Sum, op: ComparisonOp, right: Sum, bits: u32) -> Vec<Cube> {
    if let (Some(a), Some(b)) = (left.as_constant(), right.as_constant()) {
        let order = crate::system::residue(a, bits).cmp(&crate::system::residue(b, bits));
        return if crate::ground::holds(order, op) { vec![Vec::new()] } else { Vec::new() };
    }
    vec![vec![Atom::Words(Box::new(Words { left, op, right, bits }))]]
}

/// Compares two sums of words of a number of bits.
///
/// # Errors
///
/// A message: forms that cannot be compared.
pub(crate) fn compare(
    (left, left_form): (Sum, SideForm),
    op: ComparisonOp,
    (right, right_form): (Sum, SideForm),
    bits: u32,
) -> Result<Vec<Cube>, String> {
    let constant = |s: &Sum| s.as_constant().map(|c| c.to_integer());
    let is_left_mask = matches!(left_form, SideForm::Mask(_));
    match (left_form, right_form) {
        (SideForm::Plain, SideForm::Plain) => Ok(remainders(left, op, right, bits)),
        (SideForm::Mask(a), SideForm::Mask(b)) => {
            let (a, b) = (a.to_integer(), b.to_integer());
            match low_mask(&a, bits) {
                Some(low) if a == b => Ok(remainders(left, op, right, low)),
                _ => Err("expected the same mask of the lowest bits on both sides".into()),
            }
        }
        (SideForm::Mask(mask), other) | (other, SideForm::Mask(mask)) => {
            let turned = !is_left_mask;
            let (sum, value) = if turned { (right, &left) } else { (left, &right) };
            match constant(value).filter(|_| other == SideForm::Plain) {
                Some(value) => compare_masked(sum, &mask.to_integer(), op, &value, bits, turned),
                None => {
                    Err("a mask is compared with a number, or with the same mask of another word"
                        .into())
                }
            }
        }
        // A number that is compared with a signed word is signed too.
        (a, b)
            if (a == SideForm::Signed || constant(&left).is_some())
                && (b == SideForm::Signed || constant(&right).is_some()) =>
        {
            let half = power(bits - 1);
            Ok(remainders(add_constant(left, &half), op, add_constant(right, &half), bits))
        }
        _ => Err("expected `signed` on both sides".into()),
    }
}

/// Returns `k` if a mask has exactly the lowest `k` bits.
fn low_mask(mask: &BigInt, bits: u32) -> Option<u32> {
    (1..=bits).find(|k| *mask == power(*k) - 1)
}

/// Compares the masked bits of a sum with a constant, on the left if `turned`.
fn compare_masked(
    sum: Sum,
    mask: &BigInt,
    op: ComparisonOp,
    value: &BigInt,
    bits: u32,
    turned: bool,
) -> Result<Vec<Cube>, String> {
    let word = |n: &BigInt| n.mod_floor(&power(bits)).to_u64().expect("at most 64 bits");
    let (mask, value) = (word(mask), word(value));
    if mask == 0 {
        let order = if turned { value.cmp(&0) } else { 0.cmp(&value) };
        let holds = crate::ground::holds(order, op);
        return Ok(if holds { vec![Vec::new()] } else { Vec::new() });
    }
    let number = |n: u64| Sum::constant(BigRational::from_integer(n.into()));
    if let Some(low) = low_mask(&BigInt::from(mask), bits) {
        if value > mask {
            // The constant exceeds all masked values.
            let order = if turned { 1.cmp(&0) } else { 0.cmp(&1) };
            let holds = crate::ground::holds(order, op);
            return Ok(if holds { vec![Vec::new()] } else { Vec::new() });
        }
        let (left, right) = if turned { (number(value), sum) } else { (sum, number(value)) };
        return Ok(remainders(left, op, right, low));
    }
    if matches!(op, ComparisonOp::Lt | ComparisonOp::Le) {
        return Err("the order of masked words is for masks of the lowest bits only".into());
    }
    if value & !mask != 0 {
        return Ok(if op == ComparisonOp::Neq { vec![Vec::new()] } else { Vec::new() });
    }
    let mut cubes: Vec<Cube> = if op == ComparisonOp::Eq { vec![Vec::new()] } else { Vec::new() };
    let mut at = 0;
    while mask >> at != 0 {
        let low = at + (mask >> at).trailing_zeros();
        let high = low + (mask >> low).trailing_ones();
        let bits_of_run = value & ((1 << high) - (1 << low));
        let rest = add_constant(sum.clone(), &-BigInt::from(bits_of_run));
        let run = if op == ComparisonOp::Eq {
            remainders(rest, ComparisonOp::Lt, number(1 << low), high)
        } else {
            remainders(number(1 << low), ComparisonOp::Le, rest, high)
        };
        if op == ComparisonOp::Eq {
            // All runs have the value.
            let Some(atoms) = run.into_iter().next() else { return Ok(Vec::new()) };
            cubes.iter_mut().for_each(|c| c.extend(atoms.iter().cloned()));
        } else {
            cubes.extend(run);
        }
        at = high;
    }
    Ok(cubes)
}
