//! Traces: operations of threads in program order with the values that they load and store, in
//! flat columns.
//!
//! Readers fill a [`TraceBuilder`] in the order of the log. [`TraceBuilder::finish`] sorts the
//! operations by thread, and merges accesses to overlapping bytes into one location. An operation
//! has an index: those of thread 0 come first, in program order. Memory: 17 bytes an operation, 16
//! more for an update, 8 more for each time that the log has; twice as much while it is read.

mod open;

use std::ops::Range;

use ahash::AHashMap;
use mu_base::{Diagnostic, Stage, narrow};

pub use open::{OpenFact, fits};

/// Pairs of accesses that a fence orders, as a set: the first letter is an access before the fence,
/// the second one an access behind it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fence(u8);

impl Fence {
    /// Loads before loads.
    pub const RR: Fence = Fence(1);
    /// Loads before stores.
    pub const RW: Fence = Fence(2);
    /// Stores before loads.
    pub const WR: Fence = Fence(4);
    /// Stores before stores.
    pub const WW: Fence = Fence(8);
    /// Everything: `sync`, `mfence`, `fence rw,rw`, `dmb sy`.
    pub const FULL: Fence = Fence(15);
    /// Loads before everything: `fence r,rw`, `dmb ld`.
    pub const ACQUIRE: Fence = Fence(3);
    /// Everything before stores: `fence rw,w`.
    pub const RELEASE: Fence = Fence(10);
    /// All but stores before loads: `fence.tso`, `lwsync`.
    pub const TSO: Fence = Fence(11);

    /// Creates a fence between the accesses with the given letters: `r`, `w`, or both. Other
    /// letters (`i` and `o` of RISC-V) order nothing here.
    pub fn between(before: &str, after: &str) -> Fence {
        let mut bits = 0;
        for (letter, first, second) in [('r', 1, 2), ('w', 4, 8)] {
            if before.contains(letter) {
                bits |= if after.contains('r') { first } else { 0 };
                bits |= if after.contains('w') { second } else { 0 };
            }
        }
        Fence(bits)
    }
    /// True if it orders all pairs of the other one.
    pub fn includes(self, other: Fence) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns the pairs of both.
    #[must_use]
    pub fn union(self, other: Fence) -> Fence {
        Fence(self.0 | other.0)
    }
    /// True if it orders nothing.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Returns its name: `sync` for a full fence, else as in RISC-V.
    pub fn name(self) -> String {
        match self {
            Fence::FULL => "sync".to_string(),
            Fence::TSO => "fence.tso".to_string(),
            _ => {
                let (r, w) = (self.0 & 3, self.0 >> 2);
                let before = match (r != 0, w != 0) {
                    (true, true) => "rw",
                    (true, false) => "r",
                    (false, true) => "w",
                    (false, false) => "none",
                };
                let after = ["none", "r", "w", "rw"][usize::from(r | w)];
                format!("fence {before},{after}")
            }
        }
    }
}

/// Kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OperationKind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A load and a store of one location, with no other store between them: a swap, an AMO, a
    /// successful pair of load-reserved and store-conditional.
    Update,
    /// A fence.
    Fence(Fence),
}

impl OperationKind {
    /// True for a load and an update.
    pub fn loads(self) -> bool {
        matches!(self, OperationKind::Load | OperationKind::Update)
    }
    /// True for a store and an update.
    pub fn stores(self) -> bool {
        matches!(self, OperationKind::Store | OperationKind::Update)
    }
    fn pack(self) -> u8 {
        match self {
            OperationKind::Load => 0,
            OperationKind::Store => 1,
            OperationKind::Update => 2,
            OperationKind::Fence(Fence(bits)) => 16 | bits,
        }
    }
    fn unpack(byte: u8) -> OperationKind {
        match byte {
            0 => OperationKind::Load,
            1 => OperationKind::Store,
            2 => OperationKind::Update,
            bits => OperationKind::Fence(Fence(bits & 15)),
        }
    }
}

/// Annotations of an access, as a set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Annotations(u8);

impl Annotations {
    /// None.
    pub const PLAIN: Annotations = Annotations(0);
    /// An acquire: its load comes before all later accesses of its thread.
    pub const ACQUIRE: Annotations = Annotations(1);
    /// A release: its store comes after all earlier accesses of its thread.
    pub const RELEASE: Annotations = Annotations(2);
    /// An acquire that may overtake an earlier release (`ldapr`).
    pub const WEAK_ACQUIRE: Annotations = Annotations(4);
    /// Bit of a pair of a load-reserve and a store-conditional, and of one of them alone.
    const PAIR: u8 = 8;
    /// Distance between the annotations of the load and those of the store of a pair.
    const STORE: u8 = 4;

    /// Returns the annotations of a pair of a load-reserve and a store-conditional: of a
    /// load-exclusive and a store-exclusive in Arm.
    #[must_use]
    pub fn pair(load: Annotations, store: Annotations) -> Annotations {
        Annotations(load.0 & 7 | Self::PAIR | (store.0 & 7) << Self::STORE)
    }
    /// Returns the annotations of a load that an atomic instruction performs without a store: a
    /// load-reserve without its store-conditional, a comparison that fails. In RISC-V they stay in
    /// order with those of updates.
    #[must_use]
    pub fn atomic_load(load: Annotations) -> Annotations {
        if load == Self::PLAIN { load } else { Self::pair(load, Self::PLAIN) }
    }
    /// Returns the annotations of a store-conditional that is an operation of its own, because
    /// other operations separate it from its load.
    #[must_use]
    pub fn atomic_store(store: Annotations) -> Annotations {
        if store == Self::PLAIN { store } else { Self::pair(Self::PLAIN, store) }
    }
    /// True for a pair, which is two operations: the store may come later than the load. Also true
    /// for an annotated half of a pair without the other half ([`Annotations::atomic_load`],
    /// [`Annotations::atomic_store`]).
    pub fn is_pair(self) -> bool {
        self.0 & Self::PAIR != 0
    }
    /// Returns the annotations of the load of a pair; all annotations of another operation.
    #[must_use]
    pub fn of_load(self) -> Annotations {
        Annotations(self.0 & 7)
    }
    /// Returns the annotations of the store of a pair; all annotations of another operation.
    #[must_use]
    pub fn of_store(self) -> Annotations {
        if self.is_pair() { Annotations(self.0 >> Self::STORE & 7) } else { self }
    }

    /// Returns the annotations of both.
    #[must_use]
    pub fn union(self, other: Annotations) -> Annotations {
        Annotations(self.0 | other.0)
    }
    /// True if it has all annotations of the other one.
    pub fn has(self, other: Annotations) -> bool {
        self.0 & other.0 == other.0
    }
    /// True if it stays in order with other such annotations: an acquire that is not weak, or a
    /// release.
    pub fn is_strong(self) -> bool {
        self.0 & 3 != 0
    }
    /// True if it is an acquire of either kind.
    pub fn acquires(self) -> bool {
        self.0 & 5 != 0
    }
}

/// Optional time in 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Time(u64);

impl Default for Time {
    fn default() -> Self {
        Time(u64::MAX)
    }
}

impl Time {
    fn new(time: Option<u64>) -> Time {
        Time(time.unwrap_or(u64::MAX))
    }
    fn get(self) -> Option<u64> {
        (self.0 != u64::MAX).then_some(self.0)
    }
}

/// One operation, as readers create it and as [`Trace::operation`] returns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Kind.
    pub kind: OperationKind,
    /// Annotations.
    pub mark: Annotations,
    /// Location. For readers: the result of [`TraceBuilder::named_location`] or
    /// [`TraceBuilder::address`]; 0 for a fence.
    pub location: u32,
    /// First accessed byte of the location.
    pub offset: u16,
    /// Number of accessed bytes; 0 if the log has no sizes: the whole location.
    pub size: u8,
    /// Loaded value; 0 for a store or a fence.
    pub loaded: u64,
    /// Stored value; 0 for a load or a fence.
    pub stored: u64,
    /// Time at which the operation begins. Below `u64::MAX`.
    pub begin: Option<u64>,
    /// Time at which the operation ends. Below `u64::MAX`.
    pub end: Option<u64>,
    /// Position of its store among all stores in the order in which memory takes them, if the log
    /// has it (a time or a number). Below `u64::MAX`.
    pub commit: Option<u64>,
    /// Line in the log, from 1.
    pub line: u32,
}

impl Operation {
    fn of(kind: OperationKind, location: u32, loaded: u64, stored: u64, line: u32) -> Operation {
        Operation {
            kind,
            mark: Annotations::PLAIN,
            location,
            offset: 0,
            size: 0,
            loaded,
            stored,
            begin: None,
            end: None,
            commit: None,
            line,
        }
    }
    /// Creates a load.
    pub fn load(location: u32, value: u64, line: u32) -> Operation {
        Operation::of(OperationKind::Load, location, value, 0, line)
    }
    /// Creates a store.
    pub fn store(location: u32, value: u64, line: u32) -> Operation {
        Operation::of(OperationKind::Store, location, 0, value, line)
    }
    /// Creates an atomic update.
    pub fn update(location: u32, loaded: u64, stored: u64, line: u32) -> Operation {
        Operation::of(OperationKind::Update, location, loaded, stored, line)
    }
    /// Creates a fence.
    pub fn fence(fence: Fence, line: u32) -> Operation {
        Operation::of(OperationKind::Fence(fence), 0, 0, 0, line)
    }
}

/// Value of a location before all operations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Initial {
    /// 0.
    #[default]
    Zero,
    /// Not in the log: one value that all loads of the initial value agree on.
    Unknown,
    /// A known value.
    Value(u64),
    /// Bytes, the lowest address first; `None` if unknown. Only merged locations have them.
    Bytes(Box<[Option<u8>]>),
}

impl Initial {
    /// Returns a byte, the lowest address first; `None` if it is unknown. Bytes behind a known
    /// value are 0.
    pub fn byte(&self, at: usize) -> Option<u8> {
        match self {
            Initial::Zero => Some(0),
            Initial::Unknown => None,
            Initial::Value(v) => Some(v.to_le_bytes().get(at).copied().unwrap_or(0)),
            Initial::Bytes(all) => all.get(at).copied().unwrap_or(Some(0)),
        }
    }
}

/// Location: a cell of memory, or bytes that accesses of different sizes share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// Name as in the log.
    pub name: String,
    /// Address of its first byte, if the log has addresses.
    pub address: Option<u64>,
    /// Number of bytes; 0 if the log has no sizes.
    pub bytes: u16,
    /// True if some access covers only a part of it.
    pub mixed: bool,
    /// Value before all operations.
    pub initial: Initial,
}

/// Required value of a location after all operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Final {
    /// Location.
    pub location: u32,
    /// First byte of the location.
    pub offset: u16,
    /// Number of bytes; 0: the whole location.
    pub size: u8,
    /// Value.
    pub value: u64,
    /// Line in the log, from 1.
    pub line: u32,
}

/// Trace: threads with their operations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trace {
    /// Name, as a comment before the trace gives it; `None` if there is none.
    pub name: Option<String>,
    /// Position in its log, from 1.
    pub number: u64,
    /// Name of the log.
    pub file: String,
    /// Names of the threads, as in the log.
    pub threads: Vec<String>,
    /// Locations.
    pub locations: Vec<Location>,
    /// Final values.
    pub finals: Vec<Final>,
    /// Facts that the log leaves open.
    pub open: Vec<OpenFact>,
    /// Lines of the log that were skipped because of an error. Any operation may be in them.
    pub skipped: Vec<u32>,
    /// Line of an access without a size that shares bytes with accesses that have one, or may share
    /// them. The answer for such a trace is unknown.
    pub unknown_bytes: Option<u32>,
    starts: Vec<u32>,
    kinds: Vec<u8>,
    places: Vec<u32>,
    /// Loaded values; of stores, the stored ones.
    values: Vec<u64>,
    /// Stored values of updates, by operation, in ascending order.
    stored: Vec<(u32, u64)>,
    lines: Vec<u32>,
    // Each further column is empty if all operations have the default.
    marks: Vec<Annotations>,
    sizes: Vec<u8>,
    offsets: Vec<u16>,
    begins: Vec<Time>,
    ends: Vec<Time>,
    commits: Vec<Time>,
}

impl Trace {
    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }
    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }
    /// Returns the name, or the number if there is none.
    pub fn title(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.number.to_string())
    }
    /// Returns the operations of a thread.
    pub fn range(&self, thread: usize) -> Range<usize> {
        self.starts[thread] as usize..self.starts[thread + 1] as usize
    }
    /// Returns the thread of an operation. O(log threads).
    pub fn thread(&self, operation: usize) -> usize {
        self.starts.partition_point(|s| *s as usize <= operation) - 1
    }
    /// Returns an operation.
    pub fn operation(&self, i: usize) -> Operation {
        let time = |column: &[Time]| column.get(i).and_then(|t| t.get());
        Operation {
            kind: self.kind(i),
            mark: self.mark(i),
            location: self.places[i],
            offset: self.offsets.get(i).copied().unwrap_or(0),
            size: self.sizes.get(i).copied().unwrap_or(0),
            loaded: self.loaded_value(i),
            stored: self.stored_value(i),
            begin: time(&self.begins),
            end: time(&self.ends),
            commit: time(&self.commits),
            line: self.lines[i],
        }
    }
    /// Returns the kind of an operation.
    pub fn kind(&self, i: usize) -> OperationKind {
        OperationKind::unpack(self.kinds[i])
    }
    /// Returns the annotations of an operation.
    pub fn mark(&self, i: usize) -> Annotations {
        self.marks.get(i).copied().unwrap_or_default()
    }
    /// Returns the location of an operation; 0 for a fence.
    pub fn location(&self, i: usize) -> u32 {
        self.places[i]
    }
    /// Returns the value that an operation loads; 0 if it loads nothing.
    pub fn loaded_value(&self, i: usize) -> u64 {
        if self.kind(i).loads() { self.values[i] } else { 0 }
    }
    /// Returns the value that an operation stores; 0 if it stores nothing. O(log updates).
    pub fn stored_value(&self, i: usize) -> u64 {
        match self.kind(i) {
            OperationKind::Store => self.values[i],
            OperationKind::Update => {
                let at = self.stored.binary_search_by_key(&narrow::index(i), |s| s.0);
                self.stored[at.expect("an update has a stored value")].1
            }
            _ => 0,
        }
    }
    /// Returns the line of an operation in the log.
    pub fn line(&self, i: usize) -> u32 {
        self.lines[i]
    }
    /// True if an operation has a time.
    pub fn has_times(&self) -> bool {
        !(self.begins.is_empty() && self.ends.is_empty())
    }
    /// True if stores have positions in the order of memory.
    pub fn has_commits(&self) -> bool {
        !self.commits.is_empty()
    }
    /// Returns the trace without positions of stores in the order of memory.
    #[must_use]
    pub fn without_commits(&self) -> Trace {
        Trace { commits: Vec::new(), ..self.clone() }
    }
    /// True if accesses of different sizes share bytes.
    pub fn has_mixed_sizes(&self) -> bool {
        self.locations.iter().any(|l| l.mixed)
    }
    /// Returns the text of an operation in the form of Axe, without its thread.
    pub fn text(&self, i: usize) -> String {
        let o = self.operation(i);
        let place = || {
            let name = &self.locations[o.location as usize].name;
            let part = match (self.locations[o.location as usize].mixed, o.offset, o.size) {
                (false, ..) => String::new(),
                (true, offset, size) => format!("+{offset}:{size}"),
            };
            format!("M[{name}{part}]")
        };
        let loaded = if self.is_open(i) { "?".to_string() } else { o.loaded.to_string() };
        let text = match o.kind {
            OperationKind::Load => format!("{} == {loaded}", place()),
            OperationKind::Store => format!("{} := {}", place(), o.stored),
            OperationKind::Update => {
                format!("{{ {0} == {loaded}; {0} := {1} }}", place(), o.stored)
            }
            OperationKind::Fence(fence) => fence.name(),
        };
        let mark = o.mark.of_load().union(o.mark.of_store().of_load());
        let suffix = match (mark.acquires(), mark.has(Annotations::RELEASE)) {
            (true, true) => " acquire release",
            (true, false) => " acquire",
            (false, true) => " release",
            (false, false) => "",
        };
        format!("{text}{suffix}")
    }
    /// Returns the trace of some operations, in ascending order, with all threads but only the
    /// locations that they access, and without required final values. Of the updates `stores` only
    /// the stores remain. `initial` returns the initial value of a location.
    #[must_use]
    pub(crate) fn window(
        &self,
        operations: &[u32],
        stores: &[u32],
        initial: &dyn Fn(u32) -> Initial,
    ) -> Trace {
        let mut out = self.columns(operations);
        let at = |i: &u32| operations.binary_search(i).expect("it is one of the operations");
        out.make_stores(&stores.iter().map(at).collect::<Vec<_>>());
        let mut numbers: AHashMap<u32, u32> = AHashMap::new();
        for (_, place) in out.kinds.iter().zip(&mut out.places).filter(|a| *a.0 < 16) {
            *place = *numbers.entry(*place).or_insert_with(|| {
                let location = &self.locations[*place as usize];
                out.locations.push(Location { initial: initial(*place), ..location.clone() });
                narrow::index(out.locations.len()) - 1
            });
        }
        out
    }
    /// Leaves only the stores of updates; other operations do not change.
    pub(crate) fn make_stores(&mut self, operations: &[usize]) {
        for &i in operations {
            if self.kind(i) != OperationKind::Update {
                continue;
            }
            self.values[i] = self.stored_value(i);
            self.kinds[i] = OperationKind::Store.pack();
            if let Some(mark) = self.marks.get_mut(i) {
                *mark = mark.of_store();
            }
        }
        let kinds = &self.kinds;
        self.stored.retain(|s| kinds[s.0 as usize] == OperationKind::Update.pack());
    }
    /// Returns the trace of some operations, in ascending order, with all threads and locations.
    /// Of the required final values those with the indices `finals` remain.
    #[must_use]
    pub fn part(&self, operations: &[u32], finals: &[usize]) -> Trace {
        Trace {
            locations: self.locations.clone(),
            finals: finals.iter().map(|f| self.finals[*f]).collect(),
            ..self.columns(operations)
        }
    }
    /// Returns the trace with a location of its own for each access.
    #[must_use]
    pub(crate) fn with_separate_locations(&self) -> Trace {
        let location = |i: u32| Location {
            initial: Initial::Zero,
            ..self.locations[self.places[i as usize] as usize].clone()
        };
        let all: Vec<u32> = (0..narrow::index(self.len())).collect();
        let mut out = self.columns(&all);
        for i in (0..all.len()).filter(|i| self.kinds[*i] < 16) {
            out.places[i] = narrow::index(out.locations.len());
            out.locations.push(location(narrow::index(i)));
        }
        out
    }
    /// Returns the trace of some operations without locations.
    fn columns(&self, operations: &[u32]) -> Trace {
        fn pick<T: Copy>(column: &[T], operations: &[u32]) -> Vec<T> {
            if column.is_empty() {
                return Vec::new();
            }
            operations.iter().map(|&i| column[i as usize]).collect()
        }
        let starts = self
            .starts
            .iter()
            .map(|s| narrow::index(operations.partition_point(|o| o < s)))
            .collect();
        let updates = operations.iter().enumerate();
        let updates = updates.filter(|(_, i)| self.kind(**i as usize) == OperationKind::Update);
        Trace {
            name: self.name.clone(),
            number: self.number,
            file: self.file.clone(),
            threads: self.threads.clone(),
            open: self.open_of(operations),
            starts,
            kinds: pick(&self.kinds, operations),
            places: pick(&self.places, operations),
            values: pick(&self.values, operations),
            stored: updates
                .map(|(k, i)| (narrow::index(k), self.stored_value(*i as usize)))
                .collect(),
            lines: pick(&self.lines, operations),
            marks: pick(&self.marks, operations),
            sizes: pick(&self.sizes, operations),
            offsets: pick(&self.offsets, operations),
            begins: pick(&self.begins, operations),
            ends: pick(&self.ends, operations),
            commits: pick(&self.commits, operations),
            ..Trace::default()
        }
    }
}

/// Collector of operations in the order of the log.
///
/// An operation that the log completes later (a load with its value in the response) is added
/// when it is issued and changed by [`TraceBuilder::change`].
#[derive(Clone, Debug, Default)]
pub struct TraceBuilder {
    /// Name of the trace.
    pub name: Option<String>,
    /// Position in its log, from 1.
    pub number: u64,
    /// Name of the log.
    pub file: String,
    /// Value of locations of which nothing is known.
    pub initial: Initial,
    /// Lines of the log that were skipped.
    pub skipped: Vec<u32>,
    open: Vec<OpenFact>,
    /// True if operations were drained.
    is_drained: bool,
    /// Sizes of initial values with one.
    initial_sizes: Vec<(u32, u8)>,
    thread_names: AHashMap<String, u32>,
    threads: Vec<String>,
    names: AHashMap<String, u32>,
    addresses: AHashMap<u64, u32>,
    locations: Vec<Location>,
    finals: Vec<Final>,
    of: Blocks<u32>,
    kinds: Blocks<u8>,
    places: Blocks<u32>,
    values: Blocks<u64>,
    /// Stored values of updates, by operation, in ascending order.
    stored: Vec<(u32, u64)>,
    lines: Blocks<u32>,
    marks: Sparse<Annotations>,
    sizes: Sparse<u8>,
    begins: Sparse<Time>,
    ends: Sparse<Time>,
    commits: Sparse<Time>,
}

/// Operation of a builder, by the order in which operations were added.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OperationIndex(u32);

impl TraceBuilder {
    /// Creates a builder for trace `number` of a file, with 0 as the initial value.
    pub fn new(file: &str, number: u64) -> Self {
        Self { file: file.to_string(), number, ..Self::default() }
    }
    /// Returns the thread with a name, and creates it if there is none.
    pub fn thread(&mut self, name: &str) -> u32 {
        if let Some(&t) = self.thread_names.get(name) {
            return t;
        }
        let t = narrow::index(self.threads.len());
        self.thread_names.insert(name.to_string(), t);
        self.threads.push(name.to_string());
        t
    }
    /// Returns the location with a name, without an address and without a size.
    pub fn named_location(&mut self, name: &str) -> u32 {
        if let Some(&l) = self.names.get(name) {
            return l;
        }
        let l = narrow::index(self.locations.len());
        self.names.insert(name.to_string(), l);
        self.locations.push(Location {
            name: name.to_string(),
            address: None,
            bytes: 0,
            mixed: false,
            initial: self.initial.clone(),
        });
        l
    }
    /// Returns the location at an address. [`TraceBuilder::finish`] merges locations with accesses
    /// to common bytes.
    pub fn address(&mut self, address: u64) -> u32 {
        if let Some(&l) = self.addresses.get(&address) {
            return l;
        }
        let l = narrow::index(self.locations.len());
        self.addresses.insert(address, l);
        self.locations.push(Location {
            name: format!("{address:#x}"),
            address: Some(address),
            bytes: 0,
            mixed: false,
            initial: self.initial.clone(),
        });
        l
    }
    /// Sets the initial value of a location. `size` is 0 if the log has none.
    pub fn set_initial(&mut self, location: u32, size: u8, initial: Initial) {
        self.locations[location as usize].initial = initial;
        if size != 0 {
            self.initial_sizes.push((location, size));
        }
    }
    /// Returns the address of a location. `None` if it has only a name.
    pub fn address_of(&self, location: u32) -> Option<u64> {
        self.locations[location as usize].address
    }
    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.of.len()
    }
    /// True if it has no operation and no final value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.finals.is_empty() && !self.is_drained
    }
    /// Returns the names of the threads.
    pub fn threads(&self) -> &[String] {
        &self.threads
    }
    /// Returns the locations.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }
    /// Returns the required final values.
    pub fn finals(&self) -> &[Final] {
        &self.finals
    }
    /// True if the log leaves facts open.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }
    /// Removes all operations, and returns them with their threads in the order of the log. Threads
    /// and locations remain.
    pub fn drain(&mut self) -> Vec<(u32, Operation)> {
        let all = (0..self.len()).map(|i| (self.of.get(i), self.operation(i))).collect();
        *self = TraceBuilder {
            is_drained: true,
            name: self.name.take(),
            number: self.number,
            file: std::mem::take(&mut self.file),
            initial: self.initial.clone(),
            skipped: std::mem::take(&mut self.skipped),
            open: std::mem::take(&mut self.open),
            initial_sizes: std::mem::take(&mut self.initial_sizes),
            thread_names: std::mem::take(&mut self.thread_names),
            threads: std::mem::take(&mut self.threads),
            names: std::mem::take(&mut self.names),
            addresses: std::mem::take(&mut self.addresses),
            locations: std::mem::take(&mut self.locations),
            finals: std::mem::take(&mut self.finals),
            ..TraceBuilder::default()
        };
        all
    }
    /// Adds an operation at the end of a thread. Its `offset` is ignored.
    pub fn push(&mut self, thread: u32, o: Operation) -> OperationIndex {
        let at = self.len();
        self.of.push(thread);
        self.kinds.push(o.kind.pack());
        self.places.push(o.location);
        self.values.push(if o.kind == OperationKind::Store { o.stored } else { o.loaded });
        if o.kind == OperationKind::Update {
            self.stored.push((narrow::index(at), o.stored));
        }
        self.lines.push(o.line);
        self.marks.set(at, o.mark);
        self.sizes.set(at, o.size);
        self.begins.set(at, Time::new(o.begin));
        self.ends.set(at, Time::new(o.end));
        self.commits.set(at, Time::new(o.commit));
        OperationIndex(narrow::index(at))
    }
    /// Returns an operation that was added before.
    fn operation(&self, at: usize) -> Operation {
        let kind = OperationKind::unpack(self.kinds.get(at));
        let value = self.values.get(at);
        let update = self.stored.binary_search_by_key(&narrow::index(at), |s| s.0);
        let stored = update.map_or(0, |k| self.stored[k].1);
        Operation {
            kind,
            mark: self.marks.get(at),
            location: self.places.get(at),
            offset: 0,
            size: self.sizes.get(at),
            loaded: if kind.loads() { value } else { 0 },
            stored: if kind == OperationKind::Store { value } else { stored },
            begin: self.begins.get(at).get(),
            end: self.ends.get(at).get(),
            commit: self.commits.get(at).get(),
            line: self.lines.get(at),
        }
    }
    /// Changes an operation that was added before.
    pub fn change(&mut self, added: OperationIndex, change: impl FnOnce(&mut Operation)) {
        let at = added.0 as usize;
        let mut o = self.operation(at);
        change(&mut o);
        self.kinds.set(at, o.kind.pack());
        self.places.set(at, o.location);
        self.values.set(at, if o.kind == OperationKind::Store { o.stored } else { o.loaded });
        match (self.stored.binary_search_by_key(&added.0, |s| s.0), o.kind) {
            (Ok(k), OperationKind::Update) => self.stored[k].1 = o.stored,
            (Ok(k), _) => drop(self.stored.remove(k)),
            (Err(k), OperationKind::Update) => self.stored.insert(k, (added.0, o.stored)),
            (Err(_), _) => {}
        }
        self.lines.set(at, o.line);
        self.marks.set(at, o.mark);
        self.sizes.set(at, o.size);
        self.begins.set(at, Time::new(o.begin));
        self.ends.set(at, Time::new(o.end));
        self.commits.set(at, Time::new(o.commit));
    }
    /// Requires a final value. `size` is 0 if the log has no sizes.
    pub fn last(&mut self, location: u32, size: u8, value: u64, line: u32) {
        self.finals.push(Final { location, offset: 0, size, value, line });
    }

    /// Returns the line of an access without a size, at an address where accesses have several
    /// sizes, or less than 8 bytes away from an access with a size.
    fn unknown_bytes(&self) -> Option<u32> {
        if self.sizes.is_empty() {
            return None;
        }
        let mut widths: std::collections::BTreeMap<u64, [u8; 2]> = Default::default();
        let accesses = || (0..self.len()).filter(|i| self.kinds.get(*i) < 16);
        let address = |i: usize| self.locations[self.places.get(i) as usize].address;
        for i in accesses().filter(|i| self.sizes.get(*i) != 0) {
            let Some(address) = address(i) else { continue };
            let size = self.sizes.get(i);
            let [least, greatest] = widths.entry(address).or_insert([size; 2]);
            (*least, *greatest) = ((*least).min(size), (*greatest).max(size));
        }
        let is_unknown = |i: &usize| {
            let Some(at) = address(*i).filter(|_| self.sizes.get(*i) == 0) else { return false };
            let from = at.saturating_sub(7);
            widths.range(from..=at.saturating_add(7)).any(|(&address, &[least, greatest])| {
                match address == at {
                    true => least != greatest,
                    false => address > at || address + u64::from(greatest) > at,
                }
            })
        };
        accesses().find(is_unknown).map(|i| self.lines.get(i))
    }
    /// Merges locations with common bytes. Returns the new location and offset of each.
    ///
    /// # Errors
    /// More than 65,535 bytes form a chain of overlapping accesses.
    fn merge(&mut self) -> Result<Vec<(u32, u16)>, Diagnostic> {
        let n = self.locations.len();
        let mut widest = vec![0u8; n];
        let mut sizes = vec![0u8; n];
        let mut several = vec![false; n];
        let sized = if self.sizes.is_empty() { 0 } else { self.len() };
        let accesses = (0..sized).filter(|i| self.kinds.get(*i) < 16);
        let all = accesses
            .map(|i| (self.places.get(i), self.sizes.get(i)))
            .chain(self.finals.iter().map(|f| (f.location, f.size)))
            .chain(self.initial_sizes.iter().copied());
        for (location, size) in all.filter(|a| a.1 != 0) {
            let l = location as usize;
            widest[l] = widest[l].max(size);
            several[l] |= sizes[l] != 0 && sizes[l] != size;
            sizes[l] = size;
        }
        for l in 0..n {
            if self.locations[l].address.is_none() {
                self.locations[l].bytes = u16::from(widest[l]);
                self.locations[l].mixed = several[l];
            }
            if several[l] {
                let part = (0, usize::from(widest[l]), narrow::index(l));
                let initial = self.merged_initial(part.1, &[part]);
                self.locations[l].initial = initial;
            }
        }
        let mut sorted: Vec<(u64, u32)> = (0..narrow::index(n))
            .filter_map(|l| Some((self.locations[l as usize].address?, l)))
            .collect();
        sorted.sort_unstable();
        let mut target: Vec<(u32, u16)> = (0..narrow::index(n)).map(|l| (l, 0)).collect();
        let mut at = 0;
        while at < sorted.len() {
            let (first, head) = sorted[at];
            let mut end = u128::from(first) + u128::from(widest[head as usize]);
            let mut next = at + 1;
            while next < sorted.len() && u128::from(sorted[next].0) < end {
                let (address, l) = sorted[next];
                end = end.max(u128::from(address) + u128::from(widest[l as usize]));
                next += 1;
            }
            let Ok(bytes) = u16::try_from(end - u128::from(first)) else {
                let message = format!(
                    "accesses from {first:#x} on overlap in a chain of more than 65,535 bytes"
                );
                return Err(Diagnostic::new(Stage::Unsupported, message));
            };
            self.locations[head as usize].bytes = bytes;
            self.locations[head as usize].mixed = next > at + 1 || several[head as usize];
            if next > at + 1 {
                let mut known = Vec::new();
                for &(address, l) in &sorted[at..next] {
                    target[l as usize] =
                        (head, u16::try_from(address - first).expect("it is within the chain"));
                    let width = usize::from(widest[l as usize]);
                    known.push(((address - first) as usize, width, l));
                }
                let initial = self.merged_initial(usize::from(bytes), &known);
                self.locations[head as usize].initial = initial;
            }
            at = next;
        }
        Ok(target)
    }
    /// Returns the initial value of merged locations, given as offset, width, and number.
    /// Bytes of explicit initial values precede those that only a wider access covers.
    fn merged_initial(&self, bytes: usize, parts: &[(usize, usize, u32)]) -> Initial {
        let explicit: AHashMap<u32, u8> = self.initial_sizes.iter().copied().collect();
        let initial = |l: u32| &self.locations[l as usize].initial;
        if parts.iter().all(|p| *initial(p.2) == Initial::Zero) {
            return Initial::Zero;
        }
        // An initial value may be narrower than the accesses.
        let is_narrow = |p: &(usize, usize, u32)| {
            explicit.get(&p.2).is_some_and(|size| usize::from(*size) < p.1)
        };
        let default = if self.initial == Initial::Unknown { None } else { Some(0) };
        if parts.iter().all(|p| *initial(p.2) == Initial::Unknown)
            && (default.is_none() || !parts.iter().any(is_narrow))
        {
            return Initial::Unknown;
        }
        let is_explicit = |l: u32| explicit.contains_key(&l) || *initial(l) != self.initial;
        let mut out = vec![default; bytes];
        for explicit_pass in [false, true] {
            for &(offset, width, l) in parts.iter().filter(|p| is_explicit(p.2) == explicit_pass) {
                let width = explicit.get(&l).map_or(width, |size| usize::from(*size));
                let value = initial(l);
                for (i, byte) in out[offset..].iter_mut().take(width).enumerate() {
                    *byte = value.byte(i);
                }
            }
        }
        Initial::Bytes(out.into())
    }
    /// Returns the trace.
    ///
    /// # Errors
    /// More than 2^32 - 2 operations; a chain of overlapping accesses that is too long.
    pub fn finish(mut self) -> Result<Trace, Diagnostic> {
        let n = self.len();
        if n >= u32::MAX as usize - 1 {
            let message = "a trace has at most 4,294,967,293 operations";
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
        let unknown_bytes = self.unknown_bytes();
        let target = self.merge()?;
        let mut renumbered = vec![0; target.len()];
        let mut locations = Vec::new();
        for (l, location) in std::mem::take(&mut self.locations).into_iter().enumerate() {
            if target[l].0 as usize == l {
                renumbered[l] = narrow::index(locations.len());
                locations.push(location);
            }
        }
        drop((std::mem::take(&mut self.addresses), std::mem::take(&mut self.names)));
        let place = |l: u32| {
            let (head, offset) = target[l as usize];
            (renumbered[head as usize], offset)
        };
        let mut starts = vec![0u32; self.threads.len() + 1];
        self.of.iter().for_each(|t| starts[t as usize + 1] += 1);
        (0..self.threads.len()).for_each(|t| starts[t + 1] += starts[t]);
        let mut next = starts.clone();
        let mut order = vec![0u32; n];
        for (i, t) in std::mem::take(&mut self.of).iter().enumerate() {
            order[next[t as usize] as usize] = narrow::index(i);
            next[t as usize] += 1;
        }
        let open = self.open_in(&order);
        let mut trace = Trace {
            name: self.name,
            number: self.number,
            file: self.file,
            threads: self.threads,
            locations,
            open,
            skipped: self.skipped,
            unknown_bytes,
            starts,
            ..Trace::default()
        };
        trace.finals = std::mem::take(&mut self.finals);
        for f in &mut trace.finals {
            (f.location, f.offset) = place(f.location);
        }
        // One column after the other, so that few are there twice.
        trace.kinds = reorder(std::mem::take(&mut self.kinds), &order);
        trace.values = reorder(std::mem::take(&mut self.values), &order);
        trace.lines = reorder(std::mem::take(&mut self.lines), &order);
        trace.marks = self.marks.reorder(&order);
        trace.sizes = self.sizes.reorder(&order);
        trace.begins = self.begins.reorder(&order);
        trace.ends = self.ends.reorder(&order);
        trace.commits = self.commits.reorder(&order);
        trace.places = reorder(std::mem::take(&mut self.places), &order);
        let mut offsets = Sparse::default();
        for (i, (kind, location)) in trace.kinds.iter().zip(&mut trace.places).enumerate() {
            let (head, offset) = if *kind < 16 { place(*location) } else { (0, 0) };
            *location = head;
            offsets.set(i, offset);
        }
        trace.offsets = offsets.into_column(n);
        let mut stored = std::mem::take(&mut self.stored);
        if !stored.is_empty() {
            // The position of each operation of the log among the sorted ones.
            let mut position = vec![0u32; n];
            order.iter().enumerate().for_each(|(k, i)| position[*i as usize] = narrow::index(k));
            stored.iter_mut().for_each(|s| s.0 = position[s.0 as usize]);
            stored.sort_unstable_by_key(|s| s.0);
        }
        trace.stored = stored;
        Ok(trace)
    }
}

/// Column in blocks: it grows without a copy.
#[derive(Clone, Debug)]
struct Blocks<T>(Vec<Vec<T>>);

/// Number of elements of a block.
const BLOCK: usize = 1 << 16;

impl<T> Default for Blocks<T> {
    fn default() -> Self {
        Blocks(Vec::new())
    }
}

impl<T: Copy> Blocks<T> {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * BLOCK + last.len())
    }
    fn push(&mut self, value: T) {
        match self.0.last_mut() {
            Some(last) if last.len() < BLOCK => last.push(value),
            last => {
                // The first block grows with its elements: many traces are small.
                let mut block = Vec::with_capacity(if last.is_some() { BLOCK } else { 0 });
                block.push(value);
                self.0.push(block);
            }
        }
    }
    fn get(&self, i: usize) -> T {
        self.0[i / BLOCK][i % BLOCK]
    }
    fn set(&mut self, i: usize, value: T) {
        self.0[i / BLOCK][i % BLOCK] = value;
    }
    fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.0.iter().flatten().copied()
    }
}

/// Column that is empty as long as all elements are the default.
#[derive(Clone, Debug, Default)]
struct Sparse<T>(Blocks<T>);

impl<T: Copy + Default + PartialEq> Sparse<T> {
    fn is_empty(&self) -> bool {
        self.0.len() == 0
    }
    fn get(&self, i: usize) -> T {
        if i < self.0.len() { self.0.get(i) } else { T::default() }
    }
    fn set(&mut self, i: usize, value: T) {
        if i < self.0.len() {
            self.0.set(i, value);
        } else if value != T::default() {
            while self.0.len() < i {
                self.0.push(T::default());
            }
            self.0.push(value);
        }
    }
    /// Returns the column with `n` elements, or an empty one.
    fn into_column(self, n: usize) -> Vec<T> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut out = Vec::with_capacity(n);
        out.extend(self.0.iter());
        out.resize(n, T::default());
        out
    }
    /// Returns the column in another order, or an empty one. The column is empty afterwards.
    fn reorder(&mut self, order: &[u32]) -> Vec<T> {
        let column = std::mem::take(self);
        match column.is_empty() {
            true => Vec::new(),
            false => order.iter().map(|i| column.get(*i as usize)).collect(),
        }
    }
}

/// Returns a column in another order.
fn reorder<T: Copy>(column: Blocks<T>, order: &[u32]) -> Vec<T> {
    order.iter().map(|i| column.get(*i as usize)).collect()
}
