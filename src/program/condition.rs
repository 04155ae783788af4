//! What litmus tests of x86 observe: bits of registers and cells, for the questions of the layer
//! `outcome`.

use super::outcomes::Observable;
use super::variables::{Type, Variables};
use mu_outcome::{Addresses, question};

/// Something observed: which bits, how shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The register or cell.
    pub what: Observable,
    /// From which bit on.
    pub shift: u32,
    /// How many bits, and whether they have a sign.
    pub shown: Type,
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
        if self.shown.signed { i128::from(self.shown.width.signed(bits)) } else { i128::from(bits) }
    }
    /// Two registers are compared in full, whatever their types.
    fn same(&self, value: u64, other: &Self, of_other: u64) -> bool {
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
