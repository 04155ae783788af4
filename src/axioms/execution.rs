//! Executions: events, the relations between them that a program determines, and a choice of
//! reads-from and coherence.
//!
//! A front end builds a [`Skeleton`]: the events of one path through each thread, with their
//! locations, and all relations that follow from the program text (program order, dependencies,
//! read-modify-write pairs, tags). It then tries choices of `rf` and `co`; a model judges each
//! [`Execution`]. The part of a model that depends on the skeleton alone is computed once for each
//! skeleton (`cat::Session`).
//!
//! Names are interned in a [`Vocabulary`], one for each architecture, which contains the names that
//! a model may use. A `cat` file that uses another name is rejected with its position, unless the
//! use is inside `try … with`.
//!
//! # Names
//!
//! Computed from the events (`Skeleton::new`) for every architecture:
//!
//! - `_` (`EXEC`): all events
//! - `R`, `W`, `M`: events that read, write, or do either; an [`EventKind::Update`] is in all three
//!   and in `RMW`
//! - `Exp`: `M`, since every access is explicit
//! - `F`, `B` (`BR`, `PoD`): fences, branches
//! - `IW`, `FW`: initial writes; the last writes of their locations in `co`
//! - `RMW`: events that read and write atomically (C11, RISC-V; others have two events related
//!   by `rmw`)
//! - `id`, `int`, `ext`, `loc` (`same-loc`): same event, same thread, different threads, same
//!   location; `int` excludes initial writes, and `ext` has no pair of two of them
//! - `po`: program order, transitive, from [`Event::thread`] and [`Event::index`]; events of one
//!   instruction (same index) are not ordered, as in the herd tools
//! - `rf`, `co`, `fr`: the choice; `fr` is `rf⁻¹;co` without the identity, and a read without a
//!   source is before every write to its location
//! - `rmw`: `amo ∪ lxsx`, and the pairs that the front end adds
//! - `si`, `sm`: same access; the identity on memory accesses unless the front end splits accesses
//! - `same-instance`: events of one execution of an instruction (equal [`Event::thread`] and
//!   [`Event::index`]), and the pairs that the front end adds
//!
//! Provided by the front end ([`Skeleton::relate`], [`Skeleton::tag`]): `addr`, `data`, `ctrl`,
//! `amo`, `lxsx`, and the tags.
//!
//! A name that never has an event (page tables, locks) is declared by [`Vocabulary::never`] and
//! denotes the empty set. A name of the herd tools that these front ends do not provide
//! (`equiv-spec`) is declared by [`Vocabulary::declare_missing`]. A model is rejected with the
//! position of such a name if an axiom or flag depends on it.
//!
//! Models that compute dependencies (`catdep`) read events of registers: `Rreg` and `Wreg`, with
//! the register as their location; `BCC` and `PRED`, the events of branches and of choices inside
//! instructions; `ADDR` and `DATA`, the reads of registers for an address and for data. The
//! relations `iico_data`, `iico_ctrl`, `iico_order` are inside an instruction.
//!
//! Tags by architecture (a front end adds them to its vocabulary with [`Vocabulary::set`]):
//!
//! - RISC-V: `Acq`, `Rel`, `AcqRel`, `Sc`, `EX` (lr/sc), `X`, `AMO`, `Fence.r.r` … `Fence.rw.rw`,
//!   `Fence.tso`, `Fence.i`
//! - AArch64: `A`, `L`, `Q`, `EX` (exclusives), `X`, `AMO`, `NoRet`, `ISB`, `DMB.SY` … `DSB.OSHST`
//! - X86: `MFENCE`, `LFENCE`, `SFENCE`, `X` (locked), `A`
//! - C11: `NA`, `RLX`, `CON`, `ACQ`, `REL`, `ACQ_REL`, `SC`, `A`, `NAL`
//!
//! `X` contains the accesses of atomic instructions. If a model does not mention `EX`, it belongs
//! to an older edition of the herd library, in which `X` also contains the accesses of exclusives.

use std::collections::{HashMap, HashSet};

use mu_base::id_types;

use crate::relation::{Relation, Set};

id_types! {
    /// A named set of events in a [`Vocabulary`].
    pub SetId,
    /// A named relation in a [`Vocabulary`].
    pub RelationId,
}

/// The effect of an event on memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum EventKind {
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
    /// Another event, for instance an access to a register.
    Other,
}

impl EventKind {
    /// True if it reads memory.
    pub fn reads(self) -> bool {
        matches!(self, EventKind::Read | EventKind::Update)
    }
    /// True if it writes memory.
    pub fn writes(self) -> bool {
        matches!(self, EventKind::Write | EventKind::Update)
    }
}

/// An event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Event {
    /// Its thread; `None` for an initial write.
    pub thread: Option<u32>,
    /// The position of its instruction in the thread.
    pub index: u32,
    /// Its effect.
    pub kind: EventKind,
    /// The location that it accesses; `None` if it does not access memory.
    pub location: Option<u32>,
    /// The number of bytes that it accesses; 0 if irrelevant.
    pub width: u8,
    /// The value that it writes or, for a read, reads. Models do not use it; drawings and outcomes
    /// do.
    pub value: u64,
}

impl Event {
    /// Creates an initial write.
    pub fn initial(location: u32, value: u64) -> Self {
        Self {
            thread: None,
            index: 0,
            kind: EventKind::Write,
            location: Some(location),
            width: 0,
            value,
        }
    }
    /// Creates an access to memory.
    pub fn access(thread: u32, index: u32, kind: EventKind, location: u32, value: u64) -> Self {
        Self { thread: Some(thread), index, kind, location: Some(location), width: 0, value }
    }
    /// Creates an event that does not access memory.
    pub fn other(thread: u32, index: u32, kind: EventKind) -> Self {
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
    /// The identity.
    ID = 0, "id";
    /// Events of one thread.
    INT = 1, "int";
    /// Events of different threads.
    EXT = 2, "ext";
    /// Accesses to one location.
    LOC = 3, "loc";
    /// Program order.
    PO = 4, "po";
    /// Reads-from: a write and a read that takes its value. Part of the choice.
    RF = 5, "rf";
    /// Coherence: a strict total order on the writes of each location. Part of the choice.
    CO = 6, "co";
    /// From-reads: a read and a write that is later in coherence than the source of the read.
    /// Derived from `rf` and `co`.
    FR = 7, "fr";
    /// Address dependencies.
    ADDR = 8, "addr";
    /// Data dependencies.
    DATA = 9, "data";
    /// Control dependencies.
    CTRL = 10, "ctrl";
    /// The read of a read-modify-write with its write.
    RMW = 11, "rmw";
    /// The pairs of `rmw` made by one instruction.
    AMO = 12, "amo";
    /// The pairs of `rmw` made by a load-reserve and a store-conditional.
    LXSX = 13, "lxsx";
    /// Data flow inside an instruction.
    IICO_DATA = 14, "iico_data";
    /// Control inside an instruction.
    IICO_CTRL = 15, "iico_ctrl";
    /// Order inside an instruction.
    IICO_ORDER = 16, "iico_order";
    /// A write to a register and a read that takes its value.
    RF_REG = 17, "rf-reg";
    /// Events of one access that was split.
    SI = 18, "si";
    /// Memory events of one access that was split.
    SM = 19, "sm";
    /// Events of one instruction.
    SAME_INSTANCE = 20, "same-instance";
}

/// The names of sets and relations of an architecture.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    sets: Vec<String>,
    relations: Vec<String>,
    by_name: HashMap<String, NameMeaning>,
    /// Names that are empty in every execution.
    never: HashSet<NameMeaning>,
    /// Names that no front end provides.
    missing: HashSet<NameMeaning>,
}

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NameMeaning {
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
    /// Creates the vocabulary of the names that all architectures share.
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
            ("BR", NameMeaning::Set(SetId::BRANCHES)),
            ("PoD", NameMeaning::Set(SetId::BRANCHES)),
            ("Exp", NameMeaning::Set(SetId::MEMORY)),
            ("EXEC", NameMeaning::Set(SetId::ALL)),
            ("same-loc", NameMeaning::Relation(RelationId::LOC)),
        ] {
            v.by_name.insert(alias.to_string(), of);
        }
        v
    }
    /// Declares a name that is empty in every execution.
    pub fn never(&mut self, name: NameMeaning) {
        self.never.insert(name);
    }
    /// True if a name is empty in every execution.
    pub fn is_never(&self, name: NameMeaning) -> bool {
        self.never.contains(&name)
    }
    /// Declares a name that no front end provides: models that depend on it are rejected.
    pub fn declare_missing(&mut self, name: NameMeaning) {
        self.missing.insert(name);
    }
    /// True if no front end provides a name.
    pub fn is_missing(&self, name: NameMeaning) -> bool {
        self.missing.contains(&name)
    }
    /// Declares another name of a set or relation.
    pub fn alias(&mut self, alias: &str, of: NameMeaning) {
        self.by_name.insert(alias.to_string(), of);
    }
    /// Returns the text of a name.
    pub fn name_of(&self, name: NameMeaning) -> &str {
        match name {
            NameMeaning::Set(id) => self.set_name(id),
            NameMeaning::Relation(id) => self.relation_name(id),
        }
    }
    /// Returns the set with a name, declaring it if necessary. Panics if the name is that of a
    /// relation.
    pub fn set(&mut self, name: &str) -> SetId {
        if let Some(found) = self.by_name.get(name) {
            match found {
                NameMeaning::Set(id) => return *id,
                NameMeaning::Relation(_) => panic!("`{name}` is a relation"),
            }
        }
        let id = SetId::new(self.sets.len());
        self.sets.push(name.to_string());
        self.by_name.insert(name.to_string(), NameMeaning::Set(id));
        id
    }
    /// Returns the relation with a name, declaring it if necessary. Panics if the name is that of a
    /// set.
    pub fn relation(&mut self, name: &str) -> RelationId {
        if let Some(found) = self.by_name.get(name) {
            match found {
                NameMeaning::Relation(id) => return *id,
                NameMeaning::Set(_) => panic!("`{name}` is a set"),
            }
        }
        let id = RelationId::new(self.relations.len());
        self.relations.push(name.to_string());
        self.by_name.insert(name.to_string(), NameMeaning::Relation(id));
        id
    }
    /// Looks up a name; `None` if it is not declared.
    pub fn find(&self, name: &str) -> Option<NameMeaning> {
        self.by_name.get(name).copied()
    }
    /// Returns all names, those of sets first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().chain(&self.relations).map(String::as_str)
    }
    /// Returns the number of sets.
    pub fn sets(&self) -> usize {
        self.sets.len()
    }
    /// Returns the number of relations.
    pub fn relations(&self) -> usize {
        self.relations.len()
    }
    /// Returns the name of a set.
    pub fn set_name(&self, id: SetId) -> &str {
        &self.sets[id.index()]
    }
    /// Returns the name of a relation.
    pub fn relation_name(&self, id: RelationId) -> &str {
        &self.relations[id.index()]
    }
}

/// Events with the sets and relations that do not depend on the choice of reads-from and coherence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skeleton {
    events: Vec<Event>,
    sets: Vec<Set>,
    relations: Vec<Relation>,
    /// The events that may be in `FW`; `None` for all writes.
    finals: Option<Set>,
}

impl Skeleton {
    /// Creates a skeleton with the standard sets and relations of its events. The other sets and
    /// relations are empty.
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
            mark(SetId::UPDATES, e.kind == EventKind::Update);
            mark(SetId::FENCES, e.kind == EventKind::Fence);
            mark(SetId::BRANCHES, e.kind == EventKind::Branch);
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
        relations[RelationId::ID.index()].close_reflexively();
        Self { events, sets, relations, finals: None }
    }
    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
    /// Returns the events.
    pub fn events(&self) -> &[Event] {
        &self.events
    }
    /// Replaces the values of the events, in order. Models do not use them.
    pub fn set_values(&mut self, values: impl IntoIterator<Item = u64>) {
        self.events.iter_mut().zip(values).for_each(|(e, v)| e.value = v);
    }
    /// Restricts `FW` to some events, such as the writes to observed locations.
    pub fn restrict_finals(&mut self, events: Set) {
        self.finals = Some(events);
    }
    /// Returns the events that may be in `FW`.
    pub fn finals(&self) -> &Set {
        self.finals.as_ref().unwrap_or(&self.sets[SetId::WRITES.index()])
    }
    /// Adds an event to a set.
    pub fn tag(&mut self, set: SetId, event: usize) {
        self.sets[set.index()].insert(event);
    }
    /// Adds a pair to a relation. Pairs of `amo` and `lxsx` are added to `rmw` too.
    pub fn relate(&mut self, relation: RelationId, a: usize, b: usize) {
        self.relations[relation.index()].insert(a, b);
        if matches!(relation, RelationId::AMO | RelationId::LXSX) {
            self.relations[RelationId::RMW.index()].insert(a, b);
        }
    }
    /// Returns a set of the vocabulary.
    pub fn set(&self, id: SetId) -> &Set {
        &self.sets[id.index()]
    }
    /// Returns a relation of the vocabulary; `rf`, `co`, `fr` are empty.
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.index()]
    }
    /// Removes events from the universe and from the relations that every skeleton has. Only the
    /// relations that a front end adds afterwards contain them, so that a model that does not
    /// range over events of registers can still compose relations through them.
    pub fn hide(&mut self, hidden: &Set) {
        let mut rest = hidden.clone();
        rest.complement();
        self.sets[SetId::ALL.index()].intersect(&rest);
        for id in [
            RelationId::ID,
            RelationId::INT,
            RelationId::EXT,
            RelationId::LOC,
            RelationId::PO,
            RelationId::SI,
            RelationId::SM,
        ] {
            self.relations[id.index()].restrict_domain(&rest);
            self.relations[id.index()].restrict_range(&rest);
        }
    }
    /// Returns a set for modification.
    pub fn set_mut(&mut self, id: SetId) -> &mut Set {
        &mut self.sets[id.index()]
    }
    /// Returns the writes to each location that has one, in the order of the locations.
    pub fn writes_by_location(&self) -> Vec<Set> {
        let mut by: std::collections::BTreeMap<u32, Set> = std::collections::BTreeMap::new();
        for (i, e) in self.events.iter().enumerate() {
            if let Some(l) = e.location.filter(|_| e.kind.writes()) {
                by.entry(l).or_insert_with(|| Set::empty(self.len())).insert(i);
            }
        }
        by.into_values().collect()
    }
    /// Returns the writes that a read may take its value from: those to its location, except
    /// itself.
    pub fn sources(&self, read: usize) -> impl Iterator<Item = usize> + '_ {
        let loc = &self.relations[RelationId::LOC.index()];
        self.sets[SetId::WRITES.index()].iter().filter(move |&w| w != read && loc.contains(w, read))
    }
}

/// A skeleton with a choice of reads-from and coherence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution<'s> {
    /// The events, with the sets and relations of the program.
    pub skeleton: &'s Skeleton,
    /// Reads-from: each read has at most one source.
    pub rf: Relation,
    /// Coherence: a strict total order on the writes of each location, initial writes first.
    pub co: Relation,
}

impl Execution<'_> {
    /// Computes from-reads in `fr`, which has the same universe.
    pub fn from_reads(skeleton: &Skeleton, rf: &Relation, co: &Relation, fr: &mut Relation) {
        fr.clear();
        let loc = skeleton.relation(RelationId::LOC);
        for r in skeleton.set(SetId::READS).iter() {
            let mut sourced = false;
            for w in rf.predecessors(r) {
                sourced = true;
                co.successors(w).filter(|&later| later != r).for_each(|later| fr.insert(r, later));
            }
            if !sourced {
                skeleton
                    .set(SetId::WRITES)
                    .iter()
                    .filter(|&w| w != r && loc.contains(r, w))
                    .for_each(|w| fr.insert(r, w));
            }
        }
    }
}
