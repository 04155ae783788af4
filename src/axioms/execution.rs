//! Executions: events, the relations between them that a program fixes, and a choice of reads-from
//! and coherence.
//!
//! A front end makes a [`Skeleton`]: the events of one path through each thread, with their
//! locations, and all that follows from the program text (program order, dependencies,
//! read-modify-write pairs, tags). It then tries choices of `rf` and `co`; a model judges each
//! [`Execution`]. What a model computes from the skeleton alone is computed once for each skeleton
//! (`cat::Session`).
//!
//! Names are interned in a [`Vocabulary`], one for each architecture: it says which names a model
//! may use. A `cat` file that uses a name that the vocabulary does not have is refused with its
//! place, unless it asks with `try … with`.
//!
//! # Names
//!
//! Computed here from the events (`Skeleton::new`), for every architecture:
//!
//! | name | what |
//! |---|---|
//! | `_` (`EXEC`) | all events |
//! | `R`, `W`, `M` | events that read, that write, that do either; an [`Kind::Update`] is in all three and in `RMW` |
//! | `Exp` | `M`: every access is explicit |
//! | `F`, `B` (`BR`, `PoD`) | fences, branches |
//! | `IW`, `FW` | initial writes; the last writes of their locations in `co` |
//! | `RMW` | events that read and write at once (C11; other architectures have two events related by `rmw`) |
//! | `id`, `int`, `ext`, `loc` (`same-loc`) | the same event, thread, another thread (`int` leaves initial writes out, and `ext` has none between two of them), location |
//! | `po` | program order, transitive; from [`Event::thread`] and [`Event::index`]: events of one instruction (same index) are not ordered |
//! | `rf`, `co`, `fr` | the choice; `fr` is `rf⁻¹;co` without the identity, and a read without a source is before every write to its location |
//! | `rmw` | `amo ∪ lxsx`, and what the front end adds |
//! | `si`, `sm` | same access: identity on accesses to memory unless the front end splits accesses |
//! | `same-instance` | events of one run of an instruction: equal [`Event::thread`] and [`Event::index`], and what the front end adds |
//!
//! Given by the front end ([`Skeleton::relate`], [`Skeleton::tag`]): `addr`, `data`, `ctrl`, `amo`,
//! `lxsx`, and the tags.
//!
//! A name that no execution can have an event of (page tables, locks) is declared as such
//! ([`Vocabulary::never`]) and stands for the empty set. A name that the herd tools give and front
//! ends here do not (`Rreg`, `iico_data`) is declared as [`Vocabulary::missing`]: a model whose
//! axioms or flags depend on it is rejected with the place of the name. No name is silently empty.
//!
//! Tags by architecture (a front end adds them to its vocabulary with [`Vocabulary::set`]):
//!
//! | architecture | tags |
//! |---|---|
//! | RISC-V | `Acq`, `Rel`, `AcqRel`, `Sc`, `EX` (lr/sc), `X`, `AMO`, `Fence.r.r` … `Fence.rw.rw`, `Fence.tso`, `Fence.i` |
//! | AArch64 | `A`, `L`, `Q`, `EX` (exclusives), `X`, `AMO`, `NoRet`, `ISB`, `DMB.SY` … `DSB.OSHST` |
//! | X86 | `MFENCE`, `LFENCE`, `SFENCE`, `X` (locked), `A` |
//! | C11 | `NA`, `RLX`, `CON`, `ACQ`, `REL`, `ACQ_REL`, `SC`, `A`, `NAL` |
//!
//! `X` are the accesses of atomic instructions. A model that does not mention `EX` is of an older
//! edition of the herd library, where `X` has those of exclusives too.

use std::collections::{HashMap, HashSet};

use crate::relation::{Relation, Set};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);
        impl $name {
            /// The index as `usize`, for subscripting.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
id! {
    /// A named set of events in a [`Vocabulary`].
    SetId
}
id! {
    /// A named relation in a [`Vocabulary`].
    RelationId
}

/// What an event does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads and writes at once.
    Update,
    /// A fence of any kind.
    Fence,
    /// A branch.
    Branch,
    /// None of these: an access to a register, for instance.
    Other,
}

impl Kind {
    /// Whether it reads memory.
    pub fn reads(self) -> bool {
        matches!(self, Kind::Read | Kind::Update)
    }
    /// Whether it writes memory.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::Update)
    }
}

/// An event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// Its thread; none for an initial write.
    pub thread: Option<u32>,
    /// Where its instruction comes in its thread.
    pub index: u32,
    /// What it does.
    pub kind: Kind,
    /// The location that it accesses, if it accesses memory. Two accesses are to the same location
    /// if these are equal.
    pub location: Option<u32>,
    /// How many bytes it accesses; 0 where that does not matter.
    pub width: u8,
    /// What it writes, or reads if it only reads. Models do not look at it; drawings and outcomes
    /// do.
    pub value: u64,
}

impl Event {
    /// An initial write.
    pub fn initial(location: u32, value: u64) -> Self {
        Self {
            thread: None,
            index: 0,
            kind: Kind::Write,
            location: Some(location),
            width: 0,
            value,
        }
    }
    /// An access to memory.
    pub fn access(thread: u32, index: u32, kind: Kind, location: u32, value: u64) -> Self {
        Self { thread: Some(thread), index, kind, location: Some(location), width: 0, value }
    }
    /// An event that accesses no memory.
    pub fn other(thread: u32, index: u32, kind: Kind) -> Self {
        Self { thread: Some(thread), index, kind, location: None, width: 0, value: 0 }
    }
}

macro_rules! standard {
    ($type:ident, $all:ident, $id:ident: $($(#[$doc:meta])* $const:ident = $number:literal, $name:literal;)+) => {
        #[doc = concat!("The names that every vocabulary has, in the order of their numbers: ", stringify!($id), ".")]
        pub const $all: &[&str] = &[$($name),+];
        impl $id {
            $($(#[$doc])* pub const $const: $id = $id($number);)+
        }
    };
}
standard! { sets, STANDARD_SETS, SetId:
    /// All events.
    ALL = 0, "_";
    /// Events that read.
    READS = 1, "R";
    /// Events that write.
    WRITES = 2, "W";
    /// Events that read or write.
    MEMORY = 3, "M";
    /// Fences.
    FENCES = 4, "F";
    /// Branches.
    BRANCHES = 5, "B";
    /// Initial writes.
    INITIAL = 6, "IW";
    /// The last writes of their locations. Depends on `co`.
    FINAL = 7, "FW";
    /// Events that read and write.
    UPDATES = 8, "RMW";
}
standard! { relations, STANDARD_RELATIONS, RelationId:
    /// Each event with itself.
    ID = 0, "id";
    /// Events of one thread.
    INT = 1, "int";
    /// Events of different threads.
    EXT = 2, "ext";
    /// Accesses to one location.
    LOC = 3, "loc";
    /// Program order.
    PO = 4, "po";
    /// A read takes the value of a write. The choice.
    RF = 5, "rf";
    /// Coherence: a strict total order on the writes of each location. The choice.
    CO = 6, "co";
    /// A read takes a value that is older than that of a write. Follows from `rf` and `co`.
    FR = 7, "fr";
    /// Address dependencies.
    ADDR = 8, "addr";
    /// Data dependencies.
    DATA = 9, "data";
    /// Control dependencies.
    CTRL = 10, "ctrl";
    /// The read of a read-modify-write with its write.
    RMW = 11, "rmw";
    /// Those made by one instruction.
    AMO = 12, "amo";
    /// Those made by a load-reserve and a store-conditional.
    LXSX = 13, "lxsx";
    /// Data flow inside an instruction.
    IICO_DATA = 14, "iico_data";
    /// Control inside an instruction.
    IICO_CTRL = 15, "iico_ctrl";
    /// Order inside an instruction.
    IICO_ORDER = 16, "iico_order";
    /// A read of a register takes the value of a write to it.
    RF_REG = 17, "rf-reg";
    /// Events of one access that was split.
    SI = 18, "si";
    /// Memory events of one access that was split.
    SM = 19, "sm";
    /// Events of one instruction.
    SAME_INSTANCE = 20, "same-instance";
}

/// Names for sets and relations, given by an architecture.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    sets: Vec<String>,
    relations: Vec<String>,
    by_name: HashMap<String, Name>,
    /// Names that stand for nothing in every execution.
    never: HashSet<Name>,
    /// Names that no front end supplies.
    missing: HashSet<Name>,
}

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Name {
    /// A set of events.
    Set(SetId),
    /// A relation.
    Relation(RelationId),
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self::new()
    }
}

impl Vocabulary {
    /// The names that every architecture has.
    pub fn new() -> Self {
        let mut v = Self {
            sets: Vec::new(),
            relations: Vec::new(),
            by_name: HashMap::new(),
            never: HashSet::new(),
            missing: HashSet::new(),
        };
        for name in STANDARD_SETS {
            v.set(name);
        }
        for name in STANDARD_RELATIONS {
            v.relation(name);
        }
        for (alias, of) in [
            ("BR", Name::Set(SetId::BRANCHES)),
            ("PoD", Name::Set(SetId::BRANCHES)),
            ("Exp", Name::Set(SetId::MEMORY)),
            ("EXEC", Name::Set(SetId::ALL)),
            ("same-loc", Name::Relation(RelationId::LOC)),
        ] {
            v.by_name.insert(alias.to_string(), of);
        }
        v
    }
    /// Declares that a name stands for nothing in every execution.
    pub fn never(&mut self, name: Name) {
        self.never.insert(name);
    }
    /// True if a name stands for nothing in every execution.
    pub fn is_never(&self, name: Name) -> bool {
        self.never.contains(&name)
    }
    /// Declares that no front end supplies a name: models that depend on it are rejected.
    pub fn missing(&mut self, name: Name) {
        self.missing.insert(name);
    }
    /// True if no front end supplies a name.
    pub fn is_missing(&self, name: Name) -> bool {
        self.missing.contains(&name)
    }
    /// Names a set that has a name already.
    pub fn alias(&mut self, alias: &str, of: Name) {
        self.by_name.insert(alias.to_string(), of);
    }
    /// A name as models write it.
    pub fn name_of(&self, name: Name) -> &str {
        match name {
            Name::Set(id) => self.set_name(id),
            Name::Relation(id) => self.relation_name(id),
        }
    }
    /// The set of a name, which becomes known if it was not. Panics if the name is that of a
    /// relation.
    pub fn set(&mut self, name: &str) -> SetId {
        if let Some(found) = self.by_name.get(name) {
            match found {
                Name::Set(id) => return *id,
                Name::Relation(_) => panic!("`{name}` is a relation"),
            }
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(name.to_string());
        self.by_name.insert(name.to_string(), Name::Set(id));
        id
    }
    /// The relation of a name, which becomes known if it was not. Panics if the name is that of a
    /// set.
    pub fn relation(&mut self, name: &str) -> RelationId {
        if let Some(found) = self.by_name.get(name) {
            match found {
                Name::Relation(id) => return *id,
                Name::Set(_) => panic!("`{name}` is a set"),
            }
        }
        let id = RelationId(self.relations.len() as u32);
        self.relations.push(name.to_string());
        self.by_name.insert(name.to_string(), Name::Relation(id));
        id
    }
    /// What a name stands for.
    pub fn find(&self, name: &str) -> Option<Name> {
        self.by_name.get(name).copied()
    }
    /// All names, those of sets first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().chain(&self.relations).map(String::as_str)
    }
    /// How many sets it names.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }
    /// How many relations it names.
    pub fn relations(&self) -> usize {
        self.relations.len()
    }
    /// The name of a set.
    pub fn set_name(&self, id: SetId) -> &str {
        &self.sets[id.index()]
    }
    /// The name of a relation.
    pub fn relation_name(&self, id: RelationId) -> &str {
        &self.relations[id.index()]
    }
}

/// Events with all that does not depend on which write a read takes or how writes are ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skeleton {
    events: Vec<Event>,
    sets: Vec<Set>,
    relations: Vec<Relation>,
}

impl Skeleton {
    /// Events of a vocabulary, with the standard sets and relations that follow from them. The
    /// other sets and relations are empty.
    pub fn new(vocabulary: &Vocabulary, events: Vec<Event>) -> Self {
        let n = events.len();
        let mut sets = vec![Set::empty(n); vocabulary.sets()];
        let mut relations = vec![Relation::empty(n); vocabulary.relations()];
        for (i, e) in events.iter().enumerate() {
            let mut mark = |id: SetId, holds: bool| {
                if holds {
                    sets[id.index()].insert(i);
                }
            };
            mark(SetId::ALL, true);
            mark(SetId::READS, e.kind.reads());
            mark(SetId::WRITES, e.kind.writes());
            mark(SetId::MEMORY, e.kind.reads() || e.kind.writes());
            mark(SetId::UPDATES, e.kind == Kind::Update);
            mark(SetId::FENCES, e.kind == Kind::Fence);
            mark(SetId::BRANCHES, e.kind == Kind::Branch);
            mark(SetId::INITIAL, e.thread.is_none() && e.kind.writes());
        }
        for (i, a) in events.iter().enumerate() {
            for (j, b) in events.iter().enumerate() {
                let mut relate = |id: RelationId, holds: bool| {
                    if holds {
                        relations[id.index()].insert(i, j);
                    }
                };
                let same_thread = a.thread.is_some() && a.thread == b.thread;
                relate(RelationId::INT, same_thread);
                relate(RelationId::EXT, a.thread != b.thread);
                relate(RelationId::LOC, a.location.is_some() && a.location == b.location);
                relate(RelationId::PO, same_thread && a.index < b.index);
                relate(RelationId::SAME_INSTANCE, same_thread && a.index == b.index);
                relate(RelationId::SI, i == j && a.location.is_some());
                relate(RelationId::SM, i == j && a.location.is_some());
            }
        }
        relations[RelationId::ID.index()].reflect();
        Self { events, sets, relations }
    }
    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
    /// The events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// Gives the events other values, in order. Models do not look at them.
    pub fn set_values(&mut self, values: impl IntoIterator<Item = u64>) {
        self.events.iter_mut().zip(values).for_each(|(e, v)| e.value = v);
    }
    /// Puts an event in a set of the vocabulary.
    pub fn tag(&mut self, set: SetId, event: usize) {
        self.sets[set.index()].insert(event);
    }
    /// Adds a pair to a relation of the vocabulary. What goes to `amo` or `lxsx` goes to `rmw` too.
    pub fn relate(&mut self, relation: RelationId, a: usize, b: usize) {
        self.relations[relation.index()].insert(a, b);
        if matches!(relation, RelationId::AMO | RelationId::LXSX) {
            self.relations[RelationId::RMW.index()].insert(a, b);
        }
    }
    /// A set of the vocabulary.
    pub fn set(&self, id: SetId) -> &Set {
        &self.sets[id.index()]
    }
    /// A relation of the vocabulary; `rf`, `co`, `fr` are empty.
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.index()]
    }
    /// A set of the vocabulary, to be changed.
    pub fn set_mut(&mut self, id: SetId) -> &mut Set {
        &mut self.sets[id.index()]
    }
    /// The writes to each location that has one, in the order of the locations.
    pub fn writes_by_location(&self) -> Vec<Set> {
        let mut by: std::collections::BTreeMap<u32, Set> = std::collections::BTreeMap::new();
        for (i, e) in self.events.iter().enumerate() {
            if let Some(l) = e.location.filter(|_| e.kind.writes()) {
                by.entry(l).or_insert_with(|| Set::empty(self.len())).insert(i);
            }
        }
        by.into_values().collect()
    }
    /// The writes from which a read may take its value: those to its location, itself excepted.
    pub fn sources(&self, read: usize) -> impl Iterator<Item = usize> + '_ {
        let loc = &self.relations[RelationId::LOC.index()];
        self.sets[SetId::WRITES.index()].iter().filter(move |&w| w != read && loc.has(w, read))
    }
}

/// A skeleton with a choice of reads-from and coherence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution<'s> {
    /// The events and what follows from the program.
    pub skeleton: &'s Skeleton,
    /// Each read with at most one source.
    pub rf: Relation,
    /// A strict total order on the writes of each location, initial writes first.
    pub co: Relation,
}

impl Execution<'_> {
    /// From-reads: into `fr`, which is of the same universe.
    pub fn from_reads(skeleton: &Skeleton, rf: &Relation, co: &Relation, fr: &mut Relation) {
        fr.clear();
        let loc = skeleton.relation(RelationId::LOC);
        for r in skeleton.set(SetId::READS).iter() {
            let mut sourced = false;
            for w in rf.before(r) {
                sourced = true;
                co.after(w).filter(|&later| later != r).for_each(|later| fr.insert(r, later));
            }
            if !sourced {
                skeleton
                    .set(SetId::WRITES)
                    .iter()
                    .filter(|&w| w != r && loc.has(r, w))
                    .for_each(|w| fr.insert(r, w));
            }
        }
    }
}
