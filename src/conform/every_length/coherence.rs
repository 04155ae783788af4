//! Monitors of violations at one address: coherence, atomicity, and the commits themselves.
//!
//! | kind | what happens, by one processor unless stated otherwise |
//! |---|---|
//! | `WriteRead` | stores s2, then loads s1, which commits before s2 |
//! | `WriteReadInitial` | stores s2, then loads the initial value |
//! | `ReadRead` | loads s2, then s1, which commits before s2 |
//! | `ReadReadInitial` | loads s2, then the initial value |
//! | `ReadWrite` | loads s1 before it stores s1 itself |
//! | `ReadWriteOther` | loads s2, then stores s1, which commits before s2 |
//! | `WriteWrite` | stores s2, then s1, which commits before s2 |
//! | `ThinAir` | any processor loads a value that none stored at this address |
//! | `ThinCommit` | memory receives a value that none stored at this address |
//! | `Once` | a store commits before it is issued, twice, or at another address |
//! | `Atomic` | an update reads s1 although s2, of another processor, has committed after it |
//! | `AtomicInitial` | an update reads the initial value although a store of others has committed |
//! | `Absorbed` | s1 is absorbed otherwise than the proof needs |
//!
//! An absorbed store commits with the store that absorbs it, directly before it
//! (docs/memory-models.md). `Absorbed` follows s1 and the next store s2 of the processor to the
//! address. Its alarm: s1 is absorbed although it is not pending, or s2 is not, or a fence or an
//! update is between them, or another processor has loaded s1; or it commits or is loaded after it
//! is absorbed. In the other guesses, a run in which a distinguished store is absorbed is forbidden
//! if the violation then occurs with the absorbing store too.
//!
//! State: two bits for s1 (none, issued, committed, absorbed), two for s2, two for the stage, and
//! one that is set if s1 is issued before s2.

use super::effects::Effect;
use super::monitor::{Roles, Size};

/// The kind of a violation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ViolationKind {
    /// A store, then a load of an older store.
    WriteRead,
    /// A store, then a load of the initial value.
    WriteReadInitial,
    /// Loads of two stores against the order of their commits.
    ReadRead,
    /// A load of a store, then of the initial value.
    ReadReadInitial,
    /// A load of a later store of the same processor.
    ReadWrite,
    /// A load, then a store that commits before the one that was loaded.
    ReadWriteOther,
    /// Stores that commit against program order.
    WriteWrite,
    /// A load of a value from nowhere.
    ThinAir,
    /// A commit of a value from nowhere.
    ThinCommit,
    /// A commit without its store.
    Once,
    /// A store between the two halves of an update.
    Atomic,
    /// A store before an update that reads the initial value.
    AtomicInitial,
    /// An absorbed store that the construction does not cover.
    Absorbed,
}

impl ViolationKind {
    const ALL: [ViolationKind; 13] = [
        ViolationKind::WriteRead,
        ViolationKind::WriteReadInitial,
        ViolationKind::ReadRead,
        ViolationKind::ReadReadInitial,
        ViolationKind::ReadWrite,
        ViolationKind::ReadWriteOther,
        ViolationKind::WriteWrite,
        ViolationKind::ThinAir,
        ViolationKind::ThinCommit,
        ViolationKind::Once,
        ViolationKind::Atomic,
        ViolationKind::AtomicInitial,
        ViolationKind::Absorbed,
    ];
    /// True if s1 must commit before s2.
    pub fn is_ordered(self) -> bool {
        matches!(
            self,
            ViolationKind::WriteRead
                | ViolationKind::ReadRead
                | ViolationKind::ReadWriteOther
                | ViolationKind::WriteWrite
                | ViolationKind::Atomic
        )
    }
    fn reads_initial(self) -> bool {
        matches!(
            self,
            ViolationKind::WriteReadInitial
                | ViolationKind::ReadReadInitial
                | ViolationKind::AtomicInitial
        )
    }
    fn is_atomic(self) -> bool {
        matches!(self, ViolationKind::Atomic | ViolationKind::AtomicInitial)
    }
    /// True if the violation is one of the commits alone, which no load shows.
    pub fn is_of_commits(self) -> bool {
        matches!(self, ViolationKind::ThinCommit | ViolationKind::Once | ViolationKind::Absorbed)
    }
    /// True if the processor of the guess does not matter.
    pub(super) fn is_shared(self) -> bool {
        matches!(self, ViolationKind::ThinAir | ViolationKind::ThinCommit | ViolationKind::Once)
    }
    /// Returns the name in certificates.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            ViolationKind::WriteRead => "write-read",
            ViolationKind::WriteReadInitial => "write-initial",
            ViolationKind::ReadRead => "read-read",
            ViolationKind::ReadReadInitial => "read-initial",
            ViolationKind::ReadWrite => "read-own",
            ViolationKind::ReadWriteOther => "read-write",
            ViolationKind::WriteWrite => "write-write",
            ViolationKind::ThinAir => "thin-load",
            ViolationKind::ThinCommit => "thin-commit",
            ViolationKind::Once => "once",
            ViolationKind::Atomic => "update",
            ViolationKind::AtomicInitial => "update-initial",
            ViolationKind::Absorbed => "absorbed",
        }
    }
    fn name(self) -> &'static str {
        match self {
            ViolationKind::WriteRead => "loads an older store after its own store",
            ViolationKind::WriteReadInitial => "loads the initial value after its own store",
            ViolationKind::ReadRead => "loads an older store after a newer one",
            ViolationKind::ReadReadInitial => "loads the initial value after a store",
            ViolationKind::ReadWrite => "loads its own later store",
            ViolationKind::ReadWriteOther => {
                "stores after a load, and commits before what it loaded"
            }
            ViolationKind::WriteWrite => "commits its stores against program order",
            ViolationKind::ThinAir => "some processor loads a value that none stored there",
            ViolationKind::ThinCommit => "memory receives a value that none stored there",
            ViolationKind::Once => {
                "a store commits twice, before it is issued, or at another address"
            }
            ViolationKind::Atomic | ViolationKind::AtomicInitial => {
                "an update does not read the last value"
            }
            ViolationKind::Absorbed => {
                "a store is absorbed although it is not pending, its next store is not, or a fence is between them; or it is loaded by another processor, or used after it is absorbed"
            }
        }
    }
}

/// A guess of a violation at one address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coherence {
    /// The kind.
    pub kind: ViolationKind,
    /// The processor.
    pub processor: u32,
    /// The address.
    pub address: u32,
}

const ISSUED: u32 = 1;
const COMMITTED: u32 = 2;
/// State of s1 only: another store reaches memory in its place.
const ABSORBED: u32 = 3;
/// The last stage.
const DONE: u32 = 3;

/// The parts of the state.
#[derive(Clone, Copy)]
struct Parts {
    first: u32,
    second: u32,
    stage: u32,
    /// 1 if s1 is issued before s2; set for `WriteRead` if stores are absorbed.
    in_order: u32,
}

impl Parts {
    fn of(state: u32) -> Parts {
        Parts {
            first: state & 3,
            second: state >> 2 & 3,
            stage: state >> 4 & 3,
            in_order: state >> 6 & 1,
        }
    }
    fn state(self) -> u32 {
        self.first | self.second << 2 | self.stage << 4 | self.in_order << 6
    }
}

impl Coherence {
    pub(super) fn all(size: Size) -> Vec<Coherence> {
        let mut out = Vec::new();
        for kind in ViolationKind::ALL {
            let needs_commits = kind.is_ordered() || kind.is_of_commits() || kind.is_atomic();
            if needs_commits && !size.commits
                || kind.is_atomic() && !size.updates
                || kind == ViolationKind::Absorbed && !size.absorbs
            {
                continue;
            }
            for address in 0..size.addresses {
                let processors = if kind.is_shared() { 1 } else { size.processors };
                out.extend((0..processors).map(|processor| Coherence { kind, processor, address }));
            }
        }
        out
    }

    /// Returns the guess that follows the commits of one store at an address.
    pub fn once(address: u32) -> Coherence {
        Coherence { kind: ViolationKind::Once, processor: 0, address }
    }

    /// True if the store that a guess of kind `Once` follows is issued and not committed.
    pub fn is_pending(state: u32) -> bool {
        Parts::of(state).first == ISSUED
    }

    /// True if that store is absorbed.
    pub fn is_absorbed(state: u32) -> bool {
        Parts::of(state).first == ABSORBED
    }

    pub(super) fn apply(&self, roles: &Roles, state: u32, effect: &Effect) -> Option<u32> {
        let z = Parts::of(state);
        if self.kind == ViolationKind::Absorbed {
            return self.absorption(roles, z, effect).map(Parts::state);
        }
        let next = match *effect {
            Effect::Absorb { address, value, .. } => self.absorb(roles, z, address, value),
            Effect::Load { processor, address, value } => {
                Some(self.load(roles, z, processor, address, value))
            }
            Effect::Store { processor, address, value } => {
                self.store(roles, z, processor, address, value)
            }
            Effect::Commit { address, value } => self.commit(roles, z, address, value),
            Effect::Update { processor, address, read, written } => {
                let loaded = self.load(roles, z, processor, address, read);
                let stored = self.store(roles, loaded, processor, address, written);
                let next = stored.and_then(|s| self.commit(roles, s, address, written));
                let expected = if self.kind == ViolationKind::AtomicInitial {
                    roles.initial
                } else {
                    roles.first
                };
                let stale = self.kind.is_atomic()
                    && (address, processor) == (self.address, self.processor)
                    && z.second == COMMITTED
                    && read == expected;
                next.map(|n| if stale { Parts { stage: DONE, ..n } } else { n })
            }
            Effect::Fence { .. } | Effect::Begin { .. } | Effect::End { .. } => Some(z),
        };
        next.map(Parts::state)
    }

    fn load(&self, roles: &Roles, z: Parts, processor: u32, address: u32, value: u32) -> Parts {
        if address != self.address {
            return z;
        }
        if self.kind == ViolationKind::ThinAir {
            return if value == roles.first { Parts { stage: DONE, ..z } } else { z };
        }
        if processor != self.processor {
            return z;
        }
        let stage = match (z.stage, self.kind) {
            (
                0,
                ViolationKind::ReadRead
                | ViolationKind::ReadReadInitial
                | ViolationKind::ReadWriteOther,
            ) if value == roles.second => 1,
            (0, ViolationKind::ReadWrite) if value == roles.first && z.first == 0 => 1,
            (1, ViolationKind::WriteRead | ViolationKind::ReadRead) if value == roles.first => DONE,
            (1, ViolationKind::WriteReadInitial | ViolationKind::ReadReadInitial)
                if value == roles.initial =>
            {
                DONE
            }
            (stage, _) => stage,
        };
        Parts { stage, ..z }
    }

    fn store(
        &self,
        roles: &Roles,
        z: Parts,
        processor: u32,
        address: u32,
        value: u32,
    ) -> Option<Parts> {
        let kind = self.kind;
        if address != self.address {
            let thin = matches!(kind, ViolationKind::ThinAir | ViolationKind::ThinCommit);
            let allowed = value == roles.other || thin && value == roles.first;
            return allowed.then_some(z);
        }
        let plain = if kind.reads_initial() { roles.other_than_initial() } else { roles.other };
        if value == plain {
            return Some(z);
        }
        let own = processor == self.processor;
        if value == roles.first {
            let thin = matches!(kind, ViolationKind::ThinAir | ViolationKind::ThinCommit);
            if kind.reads_initial() || thin || z.first != 0 {
                return None;
            }
            let z = Parts { first: ISSUED, ..z };
            return match kind {
                ViolationKind::ReadWrite
                | ViolationKind::ReadWriteOther
                | ViolationKind::WriteWrite => {
                    (own && z.stage == 1).then_some(Parts { stage: DONE, ..z })
                }
                _ => Some(z),
            };
        }
        let absent = kind.is_shared() || kind == ViolationKind::ReadWrite;
        if value != roles.second || absent || z.second != 0 {
            return None;
        }
        // Only an absorbed s1 needs the order of the two.
        let in_order = u32::from(kind == ViolationKind::WriteRead && z.first != 0);
        let z = Parts { second: ISSUED, in_order, ..z };
        match kind {
            ViolationKind::WriteRead
            | ViolationKind::WriteReadInitial
            | ViolationKind::WriteWrite => own.then_some(Parts { stage: z.stage.max(1), ..z }),
            ViolationKind::Atomic | ViolationKind::AtomicInitial => (!own).then_some(z),
            _ => Some(z),
        }
    }

    fn commit(&self, roles: &Roles, z: Parts, address: u32, value: u32) -> Option<Parts> {
        let kind = self.kind;
        if address != self.address {
            let misplaced = kind == ViolationKind::Once && value == roles.first;
            return Some(if misplaced { Parts { stage: DONE, ..z } } else { z });
        }
        if value == roles.first {
            return Some(match kind {
                ViolationKind::ThinCommit => Parts { stage: DONE, ..z },
                ViolationKind::ThinAir => z,
                ViolationKind::Once if z.first != ISSUED => Parts { stage: DONE, ..z },
                _ if kind.reads_initial() || kind == ViolationKind::ReadWrite => z,
                _ => Parts { first: COMMITTED, ..z },
            });
        }
        if value != roles.second || kind.reads_initial() && !kind.is_atomic() {
            return Some(z);
        }
        if kind.is_ordered() && z.first != COMMITTED {
            return None;
        }
        Some(if kind.is_atomic() { Parts { second: COMMITTED, ..z } } else { z })
    }

    /// Applies that a store is absorbed; `None` if the violation would occur with the store that
    /// absorbs it too, or does not occur.
    fn absorb(&self, roles: &Roles, z: Parts, address: u32, value: u32) -> Option<Parts> {
        let kind = self.kind;
        if address != self.address {
            return Some(z);
        }
        if value == roles.first && !kind.reads_initial() {
            return match kind {
                ViolationKind::ThinAir | ViolationKind::ThinCommit | ViolationKind::ReadWrite => {
                    Some(z)
                }
                ViolationKind::Once if z.first == ISSUED => Some(Parts { first: ABSORBED, ..z }),
                ViolationKind::Once => Some(Parts { stage: DONE, ..z }),
                // s2 may be the store that absorbs s1, which is then directly before it.
                ViolationKind::WriteRead if z.in_order == 1 => {
                    Some(Parts { first: COMMITTED, ..z })
                }
                _ => None,
            };
        }
        if value == roles.second {
            return match kind {
                ViolationKind::WriteRead
                | ViolationKind::WriteReadInitial
                | ViolationKind::ReadRead
                | ViolationKind::ReadReadInitial => (z.stage == DONE).then_some(z),
                ViolationKind::WriteWrite
                | ViolationKind::ReadWriteOther
                | ViolationKind::Atomic
                | ViolationKind::AtomicInitial => None,
                _ => Some(z),
            };
        }
        Some(z)
    }

    /// Applies an effect to a guess of kind `Absorbed`. Stage 1: s1 must not be absorbed.
    fn absorption(&self, roles: &Roles, z: Parts, effect: &Effect) -> Option<Parts> {
        let is_own = |processor: u32| processor == self.processor;
        let fenced = |z: Parts| {
            let between = z.first == ISSUED && z.second == 0;
            Parts { stage: if between { z.stage.max(1) } else { z.stage }, ..z }
        };
        match *effect {
            Effect::Load { processor, address, value } => {
                let is_first = address == self.address && value == roles.first;
                Some(match (is_first, z.first) {
                    (true, ABSORBED) => Parts { stage: DONE, ..z },
                    (true, _) if !is_own(processor) => Parts { stage: z.stage.max(1), ..z },
                    _ => z,
                })
            }
            Effect::Store { processor, address, value } => {
                if address != self.address {
                    return (value == roles.other).then_some(z);
                }
                let follows = is_own(processor) && z.first != 0 && z.second == 0;
                match value {
                    v if v == roles.first => {
                        let begins = is_own(processor) && z.first == 0;
                        begins.then_some(Parts { first: ISSUED, ..z })
                    }
                    v if v == roles.second => follows.then_some(Parts { second: ISSUED, ..z }),
                    // The next store is s2.
                    _ => (!follows).then_some(z),
                }
            }
            Effect::Commit { address, value } if address == self.address => Some(match value {
                v if v == roles.first && z.first == ABSORBED => Parts { stage: DONE, ..z },
                v if v == roles.first && z.first == ISSUED => Parts { first: COMMITTED, ..z },
                v if v == roles.second && z.second == ISSUED => Parts { second: COMMITTED, ..z },
                _ => z,
            }),
            Effect::Absorb { processor, address, value } if value == roles.first => {
                let place = address == self.address && is_own(processor);
                let pending = (z.first, z.second) == (ISSUED, ISSUED);
                Some(if place && pending && z.stage == 0 {
                    Parts { first: ABSORBED, ..z }
                } else {
                    Parts { stage: DONE, ..z }
                })
            }
            Effect::Absorb { address, value, .. } => {
                let second = value == roles.second && address == self.address;
                Some(if second { Parts { second: COMMITTED, ..z } } else { z })
            }
            Effect::Fence { processor, reads, writes } if is_own(processor) => {
                Some(if reads || writes { fenced(z) } else { z })
            }
            Effect::Update { processor, address, read, written } => {
                let z = if is_own(processor) { fenced(z) } else { z };
                let load = Effect::Load { processor, address, value: read };
                let store = Effect::Store { processor, address, value: written };
                let commit = Effect::Commit { address, value: written };
                let z = self.absorption(roles, z, &load)?;
                let z = self.absorption(roles, z, &store)?;
                self.absorption(roles, z, &commit)
            }
            _ => Some(z),
        }
    }

    pub(super) fn is_alarm(&self, state: u32) -> bool {
        let z = Parts::of(state);
        let committed = z.first == COMMITTED && z.second >= ISSUED;
        z.stage == DONE && (!self.kind.is_ordered() || committed)
    }

    /// Returns a state as three digits: s1, s2, and the accesses that have occurred, plus 3 if s1
    /// is issued before s2 where that matters.
    pub(super) fn digits(state: u32) -> String {
        let z = Parts::of(state);
        let stage = if z.stage == DONE { 2 } else { z.stage };
        format!("{}{}{}", z.first, z.second, stage + 3 * z.in_order)
    }

    pub(super) fn text(&self, processors: &[String], addresses: &[String]) -> String {
        let address = &addresses[self.address as usize];
        if self.kind.is_shared() {
            return format!("at {address}: {}", self.kind.name());
        }
        format!("{} at {address}: {}", processors[self.processor as usize], self.kind.name())
    }
}
