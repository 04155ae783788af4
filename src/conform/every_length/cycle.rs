//! Monitor of cycles in `order | rfe | co | fr` over several addresses.
//!
//! A cycle is a list of *visits*. A processor enters a visit with an access at one address and
//! leaves it with a later access at the address of the next visit, which is ordered after the
//! entry. The *segment* at an address leads from the exit of one visit to the entry of the next.
//! Its kind uses the two distinguished stores of the address, s1 and s2, with the values
//! [`Roles::first`] and [`Roles::second`]:
//!
//! | kind | exit | entry | commits that are followed |
//! |---|---|---|---|
//! | `Rf` | stores s1 | loads s1 | none |
//! | `Co` | stores s1 | stores s2 | s1 before s2 |
//! | `Fr` | loads s1 | stores s2 | s1 before s2 |
//! | `FrInitial` | loads the initial value | stores s2 | none |
//! | `CoRf`, `FrRf`, `FrInitialRf` | as without `Rf` | loads s2 of a third processor | as without `Rf` |
//!
//! State: by address, two bits for s1 (none, issued, committed) and one for s2 (issued) of its
//! segment, two bits for the visit that the segment leads to (`Stage`). So an exchange of addresses
//! moves parts of the state. Entries are taken at the first occasion, which loses nothing because
//! loads are ordered before all that follows them and stores are unique.

use super::effects::Effect;
use super::monitor::{Roles, Size};
use super::order::ProcessorOrder;
use mu_base::narrow;

/// The kind of a segment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SegmentKind {
    /// Reads from.
    Rf,
    /// Coherence.
    Co,
    /// From a load of s1.
    Fr,
    /// From a load of the initial value.
    FrInitial,
    /// Coherence, then reads from.
    CoRf,
    /// From a load of s1 to a store that is loaded.
    FrRf,
    /// From a load of the initial value to a store that is loaded.
    FrInitialRf,
}

impl SegmentKind {
    const SIMPLE: [SegmentKind; 4] =
        [SegmentKind::Rf, SegmentKind::Co, SegmentKind::Fr, SegmentKind::FrInitial];
    const COMPOSED: [SegmentKind; 3] =
        [SegmentKind::CoRf, SegmentKind::FrRf, SegmentKind::FrInitialRf];

    /// True if s1 must commit before s2.
    pub fn is_ordered(self) -> bool {
        matches!(self, SegmentKind::Co | SegmentKind::Fr | SegmentKind::CoRf | SegmentKind::FrRf)
    }
    fn begins_with_initial(self) -> bool {
        matches!(self, SegmentKind::FrInitial | SegmentKind::FrInitialRf)
    }
    fn entry_writes(self) -> bool {
        matches!(self, SegmentKind::Co | SegmentKind::Fr | SegmentKind::FrInitial)
    }
    fn exit_writes(self) -> bool {
        matches!(self, SegmentKind::Rf | SegmentKind::Co | SegmentKind::CoRf)
    }
    fn is_composed(self) -> bool {
        Self::COMPOSED.contains(&self)
    }
    /// Returns the name in certificates.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            SegmentKind::Rf => "rf",
            SegmentKind::Co => "co",
            SegmentKind::Fr => "fr",
            SegmentKind::FrInitial => "fi",
            SegmentKind::CoRf => "co-rf",
            SegmentKind::FrRf => "fr-rf",
            SegmentKind::FrInitialRf => "fi-rf",
        }
    }
    fn name(self) -> &'static str {
        match self {
            SegmentKind::Rf => "rf",
            SegmentKind::Co => "co",
            SegmentKind::Fr => "fr",
            SegmentKind::FrInitial => "fr from the initial value",
            SegmentKind::CoRf => "co; rf",
            SegmentKind::FrRf => "fr; rf",
            SegmentKind::FrInitialRf => "fr from the initial value; rf",
        }
    }
}

/// A visit with the segment that leads to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Visit {
    /// The kind of the segment before it.
    pub kind: SegmentKind,
    /// The processor.
    pub processor: u32,
    /// The address of the segment and of the entry.
    pub address: u32,
}

/// The visits of a cycle, in order; the segment of the first one leads back from the last one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// The visits.
    pub visits: Vec<Visit>,
    /// The order within a processor.
    pub order: ProcessorOrder,
}

/// The stage of a visit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Not entered.
    None,
    /// Entered; a fence or an update must follow before the exit.
    Armed,
    /// Entered; the next exit completes it.
    Ready,
    /// Complete.
    Done,
}

impl Stage {
    /// Returns the two bits of the stage in a state.
    const fn bits(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Armed => 1,
            Self::Ready => 2,
            Self::Done => 3,
        }
    }
}

/// Bits of an address: s1 in bits 0 and 1, s2 in bit 2, the stage in bits 3 and 4.
const WIDTH: u32 = 5;
/// Largest number of visits that fit in a state. Machines with more addresses are unsupported.
pub const MAX_VISITS: u32 = 6;

const ISSUED: u32 = 1;
const COMMITTED: u32 = 2;

/// Returns the state in which each address has the part of the address that this list maps to it.
pub(super) fn permute_addresses(state: u32, addresses: &[u32]) -> u32 {
    let part = |(a, image): (usize, &u32)| {
        (state >> (narrow::index(a) * WIDTH) & ((1 << WIDTH) - 1)) << (image * WIDTH)
    };
    addresses.iter().enumerate().map(part).fold(0, |all, part| all | part)
}

impl Cycle {
    /// Lists all cycles of a machine of this size, one of the rotations of each.
    pub fn all(size: Size, order: ProcessorOrder) -> Vec<Cycle> {
        let mut out = Vec::new();
        for length in 2..=size.addresses.min(MAX_VISITS) {
            extend(size, order, length as usize, &mut Vec::new(), &mut out);
        }
        out
    }

    fn next(&self, i: usize) -> usize {
        (i + 1) % self.visits.len()
    }
    fn previous(&self, i: usize) -> usize {
        (i + self.visits.len() - 1) % self.visits.len()
    }
    /// Returns the segment at an address.
    fn segment(&self, address: u32) -> Option<usize> {
        self.visits.iter().position(|v| v.address == address)
    }
    /// Returns the position of the lowest bit of the address of a visit.
    fn shift(&self, i: usize) -> u32 {
        self.visits[i].address * WIDTH
    }
    /// Returns the state of s1 at segment `i`: 0, [`ISSUED`], or [`COMMITTED`].
    fn first_store(&self, state: u32, i: usize) -> u32 {
        state >> self.shift(i) & 3
    }
    fn with_first_store(&self, state: u32, i: usize, value: u32) -> u32 {
        let at = self.shift(i);
        state & !(3 << at) | value << at
    }
    /// True if s2 of segment `i` was issued.
    fn is_second_issued(&self, state: u32, i: usize) -> bool {
        state >> (self.shift(i) + 2) & 1 == 1
    }
    fn with_second_issued(&self, state: u32, i: usize) -> u32 {
        state | 1 << (self.shift(i) + 2)
    }
    /// Returns the stage of visit `i`.
    fn visit_stage(&self, state: u32, i: usize) -> Stage {
        match state >> (self.shift(i) + 3) & 3 {
            0 => Stage::None,
            1 => Stage::Armed,
            2 => Stage::Ready,
            _ => Stage::Done,
        }
    }
    fn with_visit_stage(&self, state: u32, i: usize, to: Stage) -> u32 {
        let at = self.shift(i) + 3;
        state & !(3 << at) | to.bits() << at
    }
    /// Returns the stage of visit `i` right after its entry.
    fn stage_after_entry(&self, i: usize) -> Stage {
        let (entry, exit) = (self.visits[i].kind, self.visits[self.next(i)].kind);
        if self.order.orders(entry.entry_writes(), exit.exit_writes()) {
            Stage::Ready
        } else {
            Stage::Armed
        }
    }

    /// Returns the state after an effect; `None` if the guess excludes the effect.
    pub(super) fn apply(&self, roles: &Roles, state: u32, effect: &Effect) -> Option<u32> {
        match *effect {
            Effect::Load { processor, address, value } => {
                Some(self.load(roles, state, processor, address, value))
            }
            Effect::Store { processor, address, value } => {
                self.store(roles, state, processor, address, value)
            }
            Effect::Commit { address, value } => self.commit(roles, state, address, value),
            Effect::Fence { processor, reads, writes } => {
                let orders = self.order.waits_for(reads, writes);
                Some(if orders { self.fence(state, processor) } else { state })
            }
            Effect::Update { processor, address, read, written } => {
                let state = self.fence(state, processor);
                let state = self.load(roles, state, processor, address, read);
                let state = self.store(roles, state, processor, address, written)?;
                let state = self.commit(roles, state, address, written)?;
                Some(self.fence(state, processor))
            }
            Effect::Absorb { address, value, .. } => self.absorb(roles, state, address, value),
            Effect::Begin { .. } | Effect::End { .. } => Some(state),
        }
    }

    /// Returns the state after a load, which may enter or leave a visit.
    fn load(&self, roles: &Roles, state: u32, processor: u32, address: u32, value: u32) -> u32 {
        let Some(i) = self.segment(address) else { return state };
        let (before, visit) = (self.previous(i), &self.visits[i]);
        let entry_value = match visit.kind {
            SegmentKind::Rf => Some(roles.first),
            k if k.is_composed() => Some(roles.second),
            _ => None,
        };
        if visit.processor == processor
            && self.visit_stage(state, i) == Stage::None
            && entry_value == Some(value)
        {
            return self.with_visit_stage(state, i, self.stage_after_entry(i));
        }
        let exit_value = if visit.kind.begins_with_initial() { roles.initial } else { roles.first };
        if self.visits[before].processor == processor
            && self.visit_stage(state, before) == Stage::Ready
            && !visit.kind.exit_writes()
            && value == exit_value
        {
            return self.with_visit_stage(state, before, Stage::Done);
        }
        state
    }

    /// Returns the state after a store is issued; `None` if the guess excludes the store.
    fn store(
        &self,
        roles: &Roles,
        state: u32,
        processor: u32,
        address: u32,
        value: u32,
    ) -> Option<u32> {
        let Some(i) = self.segment(address) else {
            return (value == roles.other).then_some(state);
        };
        let (before, visit) = (self.previous(i), &self.visits[i]);
        let kind = visit.kind;
        let plain =
            if kind.begins_with_initial() { roles.other_than_initial() } else { roles.other };
        if value == plain {
            return Some(state);
        }
        if value == roles.first {
            if kind.begins_with_initial() || self.first_store(state, i) != 0 {
                return None;
            }
            let state = self.with_first_store(state, i, ISSUED);
            if !kind.exit_writes() {
                return Some(state);
            }
            let is_exit = self.visits[before].processor == processor
                && self.visit_stage(state, before) == Stage::Ready;
            return is_exit.then(|| self.with_visit_stage(state, before, Stage::Done));
        }
        if value != roles.second || kind == SegmentKind::Rf || self.is_second_issued(state, i) {
            return None;
        }
        let marked = self.with_second_issued(state, i);
        if kind.is_composed() {
            let is_third_processor =
                processor != visit.processor && processor != self.visits[before].processor;
            return is_third_processor.then_some(marked);
        }
        let is_entry = processor == visit.processor && self.visit_stage(state, i) == Stage::None;
        is_entry.then(|| self.with_visit_stage(marked, i, self.stage_after_entry(i)))
    }

    /// Returns the state after a commit; `None` if the guess excludes this order of commits.
    fn commit(&self, roles: &Roles, state: u32, address: u32, value: u32) -> Option<u32> {
        let Some(i) = self.segment(address).filter(|&i| self.visits[i].kind.is_ordered()) else {
            return Some(state);
        };
        if value == roles.first {
            return Some(self.with_first_store(state, i, COMMITTED));
        }
        (value != roles.second || self.first_store(state, i) == COMMITTED).then_some(state)
    }

    /// Applies the absorption of a store. `None` if the store is an end point of the cycle, except
    /// an entry of a complete visit.
    fn absorb(&self, roles: &Roles, state: u32, address: u32, value: u32) -> Option<u32> {
        let Some(i) = self.segment(address) else { return Some(state) };
        let kind = self.visits[i].kind;
        if value == roles.first && !kind.begins_with_initial() {
            return None;
        }
        let stays = kind.entry_writes() && self.visit_stage(state, i) == Stage::Done;
        (value != roles.second || stays).then_some(state)
    }

    /// Returns the state after a fence: armed visits of the processor become ready.
    fn fence(&self, state: u32, processor: u32) -> u32 {
        let armed = |state: u32, i: usize| {
            self.visits[i].processor == processor && self.visit_stage(state, i) == Stage::Armed
        };
        (0..self.visits.len()).fold(state, |state, i| {
            if armed(state, i) { self.with_visit_stage(state, i, Stage::Ready) } else { state }
        })
    }

    /// True if the cycle is complete.
    pub(super) fn is_alarm(&self, state: u32) -> bool {
        self.visits.iter().enumerate().all(|(i, visit)| {
            let committed =
                self.first_store(state, i) == COMMITTED && self.is_second_issued(state, i);
            self.visit_stage(state, i) == Stage::Done && (!visit.kind.is_ordered() || committed)
        })
    }

    /// Returns a state as three digits for each visit.
    pub(super) fn digits(&self, state: u32) -> String {
        let visit = |i: usize| {
            format!(
                "{}{}{}",
                self.first_store(state, i),
                u32::from(self.is_second_issued(state, i)),
                self.visit_stage(state, i).bits()
            )
        };
        (0..self.visits.len()).map(visit).collect()
    }

    /// Prints the cycle, such as `p0: a0 -rf a1-> p1: a1 -fr a0->`.
    pub(super) fn text(&self, processors: &[String], addresses: &[String]) -> String {
        let one = |i: usize| {
            let next = &self.visits[self.next(i)];
            format!(
                "{} —{} at {}→",
                processors[self.visits[i].processor as usize],
                next.kind.name(),
                addresses[next.address as usize]
            )
        };
        let all: Vec<String> = (0..self.visits.len()).map(one).collect();
        format!("{} {}", all.join(" "), processors[self.visits[0].processor as usize])
    }
}

/// Extends a list of visits in all ways, and collects the complete ones. The first visit has the
/// least address, so that only one rotation of a cycle is listed.
fn extend(
    size: Size,
    order: ProcessorOrder,
    length: usize,
    visits: &mut Vec<Visit>,
    out: &mut Vec<Cycle>,
) {
    if visits.len() == length {
        let joined = |i: usize| {
            let (before, visit) = (&visits[(i + length - 1) % length], &visits[i]);
            let same = before.processor == visit.processor;
            if visit.kind.is_composed() {
                // A third processor stores s2.
                size.processors > if same { 1 } else { 2 }
            } else {
                !same
            }
        };
        // Two visits of one processor alone would be a cycle in program order.
        let several = visits.iter().any(|v| v.processor != visits[0].processor);
        if (0..length).all(joined) && (length > 2 || several) {
            out.push(Cycle { visits: visits.clone(), order });
        }
        return;
    }
    let kinds = SegmentKind::SIMPLE.iter().chain(&SegmentKind::COMPOSED);
    for &kind in kinds.filter(|k| size.commits || !k.is_ordered()) {
        for processor in 0..size.processors {
            for address in 0..size.addresses {
                let taken = visits.iter().any(|v| v.address == address);
                let rotated = visits.first().is_some_and(|v| v.address > address);
                if !taken && !rotated {
                    visits.push(Visit { kind, processor, address });
                    extend(size, order, length, visits, out);
                    visits.pop();
                }
            }
        }
    }
}
