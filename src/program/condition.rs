//! Observations of x86 litmus tests: bits of registers and cells, as observables of the layer
//! `outcome`.

use super::outcome_search::Observable;
use super::variables::{IntegerType, Variables};
use crate::outcome::{Addresses, question};

/// An observation: a range of bits with the type that prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The register or cell.
    pub what: Observable,
    /// The lowest bit.
    pub shift: u32,
    /// Width and signedness.
    pub shown: IntegerType,
    /// Its name.
    pub text: String,
}

impl question::Observed for Observed {
    fn is(&self, other: &Self) -> bool {
        self == other
    }
    fn bits(&self, value: u64) -> u64 {
        value >> self.shift & self.shown.width.mask()
    }
    fn equals(&self, value: u64, number: u64) -> bool {
        self.bits(value) == number & self.shown.width.mask()
    }
    fn number(&self, value: u64) -> i128 {
        let bits = self.bits(value);
        if self.shown.signed {
            i128::from(self.shown.width.to_signed(bits))
        } else {
            i128::from(bits)
        }
    }
    /// True if two registers are equal: they are compared in full, independent of their types.
    fn values_agree(&self, value: u64, other: &Self, of_other: u64) -> bool {
        match (self.what, other.what) {
            (Observable::Register(..), Observable::Register(..))
                if (self.shift, other.shift) == (0, 0) =>
            {
                value == of_other
            }
            _ => {
                question::Observed::number(self, value)
                    == question::Observed::number(other, of_other)
            }
        }
    }
    fn name(&self) -> &str {
        &self.text
    }
    fn thread(&self) -> Option<u32> {
        match self.what {
            Observable::Register(thread, _) => Some(thread),
            Observable::Cell(_) => None,
        }
    }
}

impl Addresses for Variables {
    fn address_text(&self, address: u64) -> Option<String> {
        Variables::address_text(self, address)
    }
}
