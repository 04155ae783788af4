//! Monitors of memory models: small automata over the effects of labels that reach their alarm iff
//! an execution violates a model.
//!
//! A monitor guesses the end points of the edges of a violation in its first step
//! ([`Guess`]) and is deterministic afterwards. The values of stores say which stores they are: the
//! initial value, two distinguished stores of each address, and one value for all others
//! ([`Roles`]). A monitor forbids stores that contradict its guess, and nothing else. A machine
//! with data independent values loses no execution by that.
//!
//! Two kinds of guesses: a cycle over several addresses ([`super::cycle`]), and a violation of
//! coherence, atomicity, or of the commits themselves at one address ([`super::coherence`]).
//! docs/memory-models.md has the proof that these are all. Cost: a few bits for each address.

use super::coherence::Coherence;
use super::cycle::Cycle;
use super::effects::Effect;
use super::order::ProcessorOrder;

/// The values that distinguish stores, as numbers of the alphabet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roles {
    /// The initial value of memory.
    pub initial: u32,
    /// The value of the first distinguished store of an address.
    pub first: u32,
    /// The value of the second distinguished store of an address.
    pub second: u32,
    /// The value of all other stores; equal to the initial value if the machine can store that.
    pub other: u32,
}

impl Roles {
    /// Returns the value of all other stores where it must differ from the initial value and the
    /// first store is absent.
    pub fn other_than_initial(&self) -> u32 {
        if self.other == self.initial { self.first } else { self.other }
    }
}

/// A guess: the end points of the edges of a violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Guess {
    /// A cycle over several addresses.
    Cycle(Cycle),
    /// A violation at one address.
    Coherence(Coherence),
}

impl Guess {
    /// Applies an effect to the state of the monitor; `None` if the guess forbids it.
    pub fn apply(&self, roles: &Roles, state: u32, effect: &Effect) -> Option<u32> {
        match self {
            Guess::Cycle(c) => c.apply(roles, state, effect),
            Guess::Coherence(c) => c.apply(roles, state, effect),
        }
    }
    /// Returns a state of the monitor as digits, for certificates.
    pub(super) fn digits(&self, state: u32) -> String {
        match self {
            Guess::Cycle(c) => c.digits(state),
            Guess::Coherence(_) => Coherence::digits(state),
        }
    }
    /// True if the execution so far has the violation.
    pub fn is_alarm(&self, state: u32) -> bool {
        match self {
            Guess::Cycle(c) => c.is_alarm(state),
            Guess::Coherence(c) => c.is_alarm(state),
        }
    }
    /// True if loads can show the violation.
    pub fn is_visible(&self) -> bool {
        !matches!(self, Guess::Coherence(c) if c.kind.is_of_commits())
    }
    /// True if stores of one processor to one address commit against program order.
    pub fn is_reordering(&self) -> bool {
        matches!(self, Guess::Coherence(c) if c.kind == super::coherence::ViolationKind::WriteWrite)
    }
    /// Lists the addresses at which the violation depends on the order of two commits.
    pub fn ordered_addresses(&self) -> Vec<u32> {
        match self {
            Guess::Cycle(c) => {
                c.visits.iter().filter(|v| v.kind.is_ordered()).map(|v| v.address).collect()
            }
            Guess::Coherence(c) if c.kind.is_ordered() => vec![c.address],
            Guess::Coherence(_) => Vec::new(),
        }
    }
    /// Prints the guess in the given names of processors and addresses.
    pub fn text(&self, processors: &[String], addresses: &[String]) -> String {
        match self {
            Guess::Cycle(c) => c.text(processors, addresses),
            Guess::Coherence(c) => c.text(processors, addresses),
        }
    }
}

/// The size of a machine, as far as guesses depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// Number of processors.
    pub processors: u32,
    /// Number of addresses.
    pub addresses: u32,
    /// True if the interface shows where stores reach memory.
    pub commits: bool,
    /// True if stores are absorbed by later ones.
    pub absorbs: bool,
    /// True if the machine has updates.
    pub updates: bool,
}

/// Lists the guesses at one address, which do not depend on the model.
pub fn coherence_guesses(size: Size) -> Vec<Guess> {
    Coherence::all(size).into_iter().map(Guess::Coherence).collect()
}

/// Lists the guesses of cycles under an order: all lengths from two to the number of addresses.
pub fn cycle_guesses(size: Size, order: ProcessorOrder) -> Vec<Guess> {
    Cycle::all(size, order).into_iter().map(Guess::Cycle).collect()
}
