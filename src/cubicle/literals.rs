//! Type checker of numbers in terms of words: each literal, and each term that is a number, must be
//! a number that some word of this width represents.
//!
//! A word of `n` bits is a number from 0 to 2^n - 1, and a negative literal is the remainder of a
//! signed number, so -2^(n-1) to 2^n - 1 are admitted. With `signed` these are -2^(n-1) to
//! 2^(n-1) - 1, with `mask` the numbers with bits of the mask only. Without these checks
//! `X < 256` is `X < 0` for a `word8`. Sums of words with variables wrap. Cost: linear in the term.

use crate::ast;
use crate::formula::{CheckResult, FormulaScope, NameMeaning, TermSort, refuse};
use crate::system::{Sum, Term, residue};
use crate::words::{SideForm, power};
use mu_base::source::Span;
use num_bigint::BigInt;
use num_rational::BigRational;

/// Returns the least and the greatest number that a word of a number of bits may be written as.
pub(crate) fn literal_range(bits: u32) -> (BigInt, BigInt) {
    (-power(bits - 1), power(bits) - 1)
}

/// True if a number is an integer between two others, which are admitted too.
fn lies_between(number: &BigRational, (least, most): &(BigInt, BigInt)) -> bool {
    number.is_integer() && *least <= number.to_integer() && number.to_integer() <= *most
}

/// True if a word of a number of bits may be written as this number.
pub(crate) fn fits(number: &BigRational, bits: u32) -> bool {
    lies_between(number, &literal_range(bits))
}

fn expect(
    number: &BigRational,
    range: &(BigInt, BigInt),
    place: Span,
    what: &str,
) -> CheckResult<()> {
    if lies_between(number, range) {
        return Ok(());
    }
    refuse(
        place,
        format!(
            "the number {number} does not fit in {what}, expected a number from {} to {}",
            range.0, range.1
        ),
    )
}

impl FormulaScope<'_, '_> {
    /// Checks the literals of a term of words, and its value if the term is a number.
    pub(crate) fn literals(&self, term: &ast::Term, sum: &Sum, bits: u32) -> CheckResult<()> {
        self.literals_inside(term, bits)?;
        match sum.as_constant() {
            Some(n) => self.literal(n, term.place().0, bits),
            None => Ok(()),
        }
    }
    fn literal(&self, number: &BigRational, place: Span, bits: u32) -> CheckResult<()> {
        expect(number, &literal_range(bits), place, &format!("`word{bits}`"))
    }
    fn literals_inside(&self, term: &ast::Term, bits: u32) -> CheckResult<()> {
        match term {
            ast::Term::Number(n, _, place) => self.literal(n, place.0, bits),
            ast::Term::Neg(a) => match &**a {
                ast::Term::Number(n, _, place) => self.literal(&-n, place.0, bits),
                other => self.literals_inside(other, bits),
            },
            ast::Term::Add(a, b) | ast::Term::Sub(a, b) | ast::Term::Mul(a, b) => {
                self.literals_inside(a, bits)?;
                self.literals_inside(b, bits)
            }
            // Arguments of predicates: of words they are checked at the call.
            ast::Term::Name(name) => match self.bindings.get(&name.text) {
                Some(NameMeaning::Term(Term::Sum(sum), TermSort::Whole)) => {
                    sum.as_constant().map_or(Ok(()), |n| self.literal(n, name.place.0, bits))
                }
                _ => Ok(()),
            },
            ast::Term::Signed(a) | ast::Term::Mask(a, _) => self.literals_inside(a, bits),
            ast::Term::Cell(..) | ast::Term::By(..) => Ok(()),
        }
    }
    /// Checks the masks of a comparison of words, and numbers compared with `signed` and `mask`.
    pub(crate) fn check_comparison(
        &self,
        (left, left_form): (&Sum, &SideForm),
        (right, right_form): (&Sum, &SideForm),
        (left_place, right_place): (Span, Span),
        bits: u32,
    ) -> CheckResult<()> {
        let sides = [
            (left_form, left_place, right, right_form, right_place),
            (right_form, right_place, left, left_form, left_place),
        ];
        for (form, place, other, other_form, other_place) in sides {
            let number = other.as_constant().filter(|_| *other_form == SideForm::Plain);
            match (form, number) {
                (SideForm::Signed, Some(n)) => {
                    let signed = (-power(bits - 1), power(bits - 1) - 1);
                    let what = format!("a signed word of {bits} bits");
                    expect(n, &signed, other_place, &what)?;
                }
                (SideForm::Mask(mask), number) => {
                    let words = (BigInt::ZERO, power(bits) - 1);
                    expect(mask, &words, place, &format!("a mask of `word{bits}`"))?;
                    let Some(n) = number else { continue };
                    let outside =
                        residue(n, bits).to_integer() & (power(bits) - 1 - mask.to_integer());
                    if outside != BigInt::ZERO {
                        let message = format!(
                            "the number {n} has bits that the mask {mask} has not, expected a number of bits of the mask, at most {mask}"
                        );
                        return refuse(other_place, message);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
