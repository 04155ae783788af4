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
//! | `AtomicInitial` | an update reads the initial value although a store of another has committed
//! |
//!
//! State: two bits for s1 (none, issued, committed), two for s2, two for the stage.

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
}

impl ViolationKind {
    const ALL: [ViolationKind; 12] = [
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
        matches!(self, ViolationKind::ThinCommit | ViolationKind::Once)
    }
    /// True if the processor of the guess does not matter.
    fn is_shared(self) -> bool {
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
const DONE: u32 = 3;

/// The parts of the state.
#[derive(Clone, Copy)]
struct Parts {
    first: u32,
    second: u32,
    stage: u32,
}

impl Parts {
    fn of(state: u32) -> Parts {
        Parts { first: state & 3, second: state >> 2 & 3, stage: state >> 4 & 3 }
    }
    fn state(self) -> u32 {
        self.first | self.second << 2 | self.stage << 4
    }
}

impl Coherence {
    pub(super) fn all(size: Size) -> Vec<Coherence> {
        let mut out = Vec::new();
        for kind in ViolationKind::ALL {
            let needs_commits = kind.is_ordered() || kind.is_of_commits() || kind.is_atomic();
            if needs_commits && !size.commits || kind.is_atomic() && !size.updates {
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

    pub(super) fn apply(&self, roles: &Roles, state: u32, effect: &Effect) -> Option<u32> {
        let z = Parts::of(state);
        let next = match *effect {
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
        let z = Parts { second: ISSUED, ..z };
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

    pub(super) fn is_alarm(&self, state: u32) -> bool {
        let z = Parts::of(state);
        let committed = z.first == COMMITTED && z.second >= ISSUED;
        z.stage == DONE && (!self.kind.is_ordered() || committed)
    }

    /// Returns a state as three digits: s1, s2, and the accesses that have occurred.
    pub(super) fn digits(state: u32) -> String {
        let z = Parts::of(state);
        format!("{}{}{}", z.first, z.second, if z.stage == DONE { 2 } else { z.stage })
    }

    pub(super) fn text(&self, processors: &[String], addresses: &[String]) -> String {
        let address = &addresses[self.address as usize];
        if self.kind.is_shared() {
            return format!("at {address}: {}", self.kind.name());
        }
        format!("{} at {address}: {}", processors[self.processor as usize], self.kind.name())
    }
}
