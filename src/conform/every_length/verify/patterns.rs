//! Violations as patterns of accesses, for the check of certificates.
//!
//! A pattern of a cycle is a list of *places*, one for each address of the cycle. At a place, an
//! *exit* access of the visit before it communicates with the *entry* access of its own visit,
//! directly or by a store of a third processor between them. A pattern at one address is a pair of
//! accesses of one processor. The definition of docs/memory-models.md is coded once more here,
//! access by access, with none of the monitors of the search.
//!
//! A run is *excluded* by a pattern if it stores a distinguished value otherwise than the pattern
//! says, or if the second store reaches memory before the first one where their order matters. A
//! run is excluded too if a distinguished store is absorbed in such a way that the store that
//! absorbs it has the same violation. The pattern `absorbed` is a store that is absorbed otherwise
//! than the proof allows.

use super::fails;
use mu_base::Diagnostic;

/// The role of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Store {
    /// The initial value.
    Initial,
    /// The first distinguished store of an address.
    First,
    /// The second one.
    Second,
}

/// An access of a processor, or a store that reaches memory; values are numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PatternAccess {
    /// A load of a value.
    Load(usize, usize, usize),
    /// A store of a value.
    Store(usize, usize, usize),
    /// A value reaches memory.
    Commit(usize, usize),
    /// A fence: true if it orders stores with later loads, with later stores.
    Fence(usize, bool, bool),
    /// An update: the value read, and the value written.
    Update(usize, usize, usize, usize),
    /// A store that gives way to the next one of its processor at its address.
    Absorb(usize, usize, usize),
}

/// The values of the roles, as numbers.
#[derive(Clone, Copy, Debug)]
pub struct RoleValues {
    /// The initial value.
    pub initial: usize,
    /// The value of the first distinguished store.
    pub first: usize,
    /// The value of the second distinguished store.
    pub second: usize,
    /// The value of all other stores.
    pub other: usize,
}

impl RoleValues {
    fn of(&self, store: Store) -> usize {
        match store {
            Store::Initial => self.initial,
            Store::First => self.first,
            Store::Second => self.second,
        }
    }
}

/// The accesses that have the order of the model without a fence between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Strength {
    /// All.
    Sc,
    /// All but a store before a load.
    Tso,
    /// A load before anything.
    Pso,
}

impl Strength {
    /// Returns the order of a name.
    pub fn from_name(name: &str) -> Option<Strength> {
        match name {
            "sc" => Some(Strength::Sc),
            "tso" => Some(Strength::Tso),
            "pso" => Some(Strength::Pso),
            _ => None,
        }
    }
    fn keeps(self, earlier_stores: bool, later_stores: bool) -> bool {
        match (self, earlier_stores, later_stores) {
            (Strength::Sc, ..) | (_, false, _) => true,
            (Strength::Tso, true, later) => later,
            (Strength::Pso, true, _) => false,
        }
    }
    fn waits(self, store_load: bool, store_store: bool) -> bool {
        store_load && (self != Strength::Pso || store_store)
    }
}

/// The communication at a place of a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct CyclePlace {
    processor: usize,
    address: usize,
    /// The access that leaves the visit before it: the store it loads, or is.
    exit: (Store, bool),
    /// The access that enters its visit.
    entry: (Store, bool),
    /// The second store is a store of a third processor.
    between: bool,
}

/// The communications by name: exit and entry (the store, true if it is that store, false for a
/// load of it), and true if a third processor stores between.
const COMMUNICATIONS: [(&str, (Store, bool), (Store, bool), bool); 7] = [
    ("rf", (Store::First, true), (Store::First, false), false),
    ("co", (Store::First, true), (Store::Second, true), false),
    ("fr", (Store::First, false), (Store::Second, true), false),
    ("fi", (Store::Initial, false), (Store::Second, true), false),
    ("co-rf", (Store::First, true), (Store::Second, false), true),
    ("fr-rf", (Store::First, false), (Store::Second, false), true),
    ("fi-rf", (Store::Initial, false), (Store::Second, false), true),
];

impl CyclePlace {
    /// True if the order of the two stores in memory matters.
    fn is_ordered(&self) -> bool {
        self.exit.0 == Store::First && self.entry.0 == Store::Second
    }
}

/// An access of a pattern at one address: `true` for a store.
type Step = (bool, Store);

/// A pattern at one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Single {
    /// Two accesses of the processor; true if the first store must reach memory before the second.
    Pair(Step, Step, bool),
    /// A load of a value that was not stored at the address.
    ThinLoad,
    /// The same for a value that reaches memory.
    ThinCommit,
    /// A store that reaches memory once, after it is issued, at its address.
    Once,
    /// An update that reads this store although the second one, of another processor, is in memory.
    Update(Store),
    /// The first store is absorbed, and not by the second one, the next of its processor, or not
    /// while both are pending, or across a fence; or others load it, or it is used afterwards.
    Absorbed,
}

const fn load(store: Store) -> Step {
    (false, store)
}
const fn store(store: Store) -> Step {
    (true, store)
}

/// The patterns at one address by name.
const SINGLES: [(&str, Single); 13] = {
    use Store::{First, Initial, Second};
    [
        ("write-read", Single::Pair(store(Second), load(First), true)),
        ("write-initial", Single::Pair(store(Second), load(Initial), false)),
        ("read-read", Single::Pair(load(Second), load(First), true)),
        ("read-initial", Single::Pair(load(Second), load(Initial), false)),
        ("read-own", Single::Pair(load(First), store(First), false)),
        ("read-write", Single::Pair(load(Second), store(First), true)),
        ("write-write", Single::Pair(store(Second), store(First), true)),
        ("thin-load", Single::ThinLoad),
        ("thin-commit", Single::ThinCommit),
        ("once", Single::Once),
        ("update", Single::Update(First)),
        ("update-initial", Single::Update(Initial)),
        ("absorbed", Single::Absorbed),
    ]
};

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HistoryPattern {
    /// A cycle.
    Cycle(Vec<PlaceId>, Cycle),
    /// Accesses at one address: the pattern, the processor, the address.
    Single(SingleId),
}

/// The name of a place: communication, processor, address.
pub type PlaceId = (usize, usize, usize);
/// The name of a pattern at one address: its index, processor, address.
pub type SingleId = (usize, usize, usize);

/// The places of a cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle {
    places: Vec<CyclePlace>,
    strength: Strength,
}

/// State of a store: not issued, issued, in memory, absorbed.
type Issue = u8;
const ABSORBED: Issue = 3;
/// Added to the last digit of `write-read` if the first store is issued before the second one.
const EARLIER: u8 = 3;

/// The state of a pattern: for each place, or for the only address, three digits.
pub type Digits = Vec<u8>;

/// Size of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Dimensions {
    /// Number of processors.
    pub processors: usize,
    /// Number of addresses.
    pub addresses: usize,
    /// True if the machine has updates.
    pub updates: bool,
    /// True if stores are absorbed.
    pub absorbs: bool,
}

/// Largest number of places of a cycle.
pub const MAX_PLACES: usize = 6;

impl HistoryPattern {
    /// Reads a pattern of a certificate. Error: it is none of this machine.
    pub fn read(
        text: &str,
        size: Dimensions,
        strength: Strength,
    ) -> Result<HistoryPattern, Diagnostic> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let wrong = || fails(format!("`{text}` is no pattern of a violation"));
        let number = |word: &str, below: usize| {
            word.parse::<usize>().ok().filter(|n| *n < below).ok_or_else(wrong)
        };
        match words.split_first() {
            Some((&"at", [name, p, a])) => {
                let kind = SINGLES.iter().position(|s| s.0 == *name).ok_or_else(wrong)?;
                Ok(HistoryPattern::Single((
                    kind,
                    number(p, size.processors)?,
                    number(a, size.addresses)?,
                )))
            }
            Some((&"cycle", rest)) if !rest.is_empty() && rest.len().is_multiple_of(3) => {
                let mut ids = Vec::new();
                for place in rest.chunks(3) {
                    let kind = COMMUNICATIONS.iter().position(|c| c.0 == place[0]);
                    ids.push((
                        kind.ok_or_else(wrong)?,
                        number(place[1], size.processors)?,
                        number(place[2], size.addresses)?,
                    ));
                }
                Ok(HistoryPattern::cycle(ids, strength))
            }
            _ => Err(wrong()),
        }
    }

    /// Returns the text that [`HistoryPattern::read`] reads.
    pub fn text(&self) -> String {
        match self {
            HistoryPattern::Single((kind, p, a)) => format!("at {} {p} {a}", SINGLES[*kind].0),
            HistoryPattern::Cycle(ids, _) => {
                let place =
                    |&(kind, p, a): &PlaceId| format!(" {} {p} {a}", COMMUNICATIONS[kind].0);
                format!("cycle{}", ids.iter().map(place).collect::<String>())
            }
        }
    }

    fn cycle(ids: Vec<PlaceId>, strength: Strength) -> HistoryPattern {
        let place = |&(kind, processor, address): &PlaceId| {
            let (_, exit, entry, between) = COMMUNICATIONS[kind];
            CyclePlace { processor, address, exit, entry, between }
        };
        let places = ids.iter().map(place).collect();
        HistoryPattern::Cycle(ids, Cycle { places, strength })
    }

    /// Lists all patterns that an execution which violates an order can have.
    pub fn all(size: Dimensions, strength: Strength) -> Vec<HistoryPattern> {
        let mut out = Vec::new();
        for (kind, (_, single)) in SINGLES.iter().enumerate() {
            let shared = matches!(single, Single::ThinLoad | Single::ThinCommit | Single::Once);
            if matches!(single, Single::Update(_)) && !size.updates
                || *single == Single::Absorbed && !size.absorbs
            {
                continue;
            }
            for address in 0..size.addresses {
                let processors = if shared { 1 } else { size.processors };
                out.extend((0..processors).map(|p| HistoryPattern::Single((kind, p, address))));
            }
        }
        // All lists of places with different addresses, the least address first.
        let mut lists: Vec<Vec<PlaceId>> = vec![Vec::new()];
        for _ in 0..size.addresses.min(MAX_PLACES) {
            let mut longer = Vec::new();
            for list in &lists {
                for kind in 0..COMMUNICATIONS.len() {
                    for processor in 0..size.processors {
                        for address in 0..size.addresses {
                            let used = list.iter().any(|p| p.2 == address);
                            if !used && list.first().is_none_or(|p| p.2 < address) {
                                let mut next = list.clone();
                                next.push((kind, processor, address));
                                longer.push(next);
                            }
                        }
                    }
                }
            }
            let possible = longer.iter().filter(|l| is_possible(l, size));
            out.extend(possible.map(|l| HistoryPattern::cycle(l.clone(), strength)));
            lists = longer;
        }
        out
    }

    /// True if the pattern follows one store to memory; the address.
    pub fn follows(&self) -> Option<usize> {
        match self {
            HistoryPattern::Single((kind, _, address)) if SINGLES[*kind].1 == Single::Once => {
                Some(*address)
            }
            _ => None,
        }
    }

    /// Returns the state before the first access.
    pub fn start(&self) -> Digits {
        vec![0; self.digits()]
    }
    fn digits(&self) -> usize {
        match self {
            HistoryPattern::Cycle(_, c) => 3 * c.places.len(),
            HistoryPattern::Single(_) => 3,
        }
    }

    /// Reads a state; `None` if it has another form.
    pub fn state(&self, text: &str) -> Option<Digits> {
        let digits: Option<Digits> =
            text.bytes().map(|b| b.is_ascii_digit().then(|| b - b'0')).collect();
        let limits: [u8; 3] = match self {
            HistoryPattern::Cycle(..) => [2, 1, 3],
            HistoryPattern::Single(_) => [3, 2, 5],
        };
        let within = |d: &Digits| {
            d.len() == self.digits() && d.iter().enumerate().all(|(i, d)| *d <= limits[i % 3])
        };
        digits.filter(within)
    }

    /// True if an execution in this state has the violation.
    pub fn is_violation(&self, state: &Digits) -> bool {
        match self {
            HistoryPattern::Cycle(_, c) => c
                .places
                .iter()
                .zip(state.chunks(3))
                .all(|(place, d)| d[2] == 3 && (!place.is_ordered() || d[0] == 2 && d[1] == 1)),
            HistoryPattern::Single((kind, ..)) => {
                let ordered = match SINGLES[*kind].1 {
                    Single::Pair(_, _, ordered) => ordered,
                    Single::Update(of) => of == Store::First,
                    _ => false,
                };
                state[2] % EARLIER == 2 && (!ordered || state[0] == 2 && state[1] >= 1)
            }
        }
    }

    /// Applies an access to a state; `None` if the pattern excludes the run.
    pub fn apply(
        &self,
        values: &RoleValues,
        state: &Digits,
        access: PatternAccess,
    ) -> Option<Digits> {
        let mut next = state.clone();
        let allowed = match self {
            HistoryPattern::Cycle(_, cycle) => cycle.step(values, &mut next, access),
            HistoryPattern::Single(id) => single(id, values, &mut next, access),
        };
        allowed.then_some(next)
    }
}

/// True if a list of places is one of a shortest cycle.
fn is_possible(list: &[PlaceId], size: Dimensions) -> bool {
    if list.len() < 2 || list.len() == 2 && list[0].1 == list[1].1 {
        return false;
    }
    (0..list.len()).all(|i| {
        let (kind, processor, _) = list[i];
        let before = list[(i + list.len() - 1) % list.len()].1;
        if COMMUNICATIONS[kind].3 {
            (0..size.processors).any(|third| third != processor && third != before)
        } else {
            processor != before
        }
    })
}

impl Cycle {
    /// Applies an access; false if the run is excluded.
    fn step(&self, values: &RoleValues, state: &mut Digits, access: PatternAccess) -> bool {
        match access {
            PatternAccess::Load(p, a, v) => {
                self.load(values, state, (p, a, v));
                true
            }
            PatternAccess::Store(p, a, v) => self.store(values, state, (p, a, v)),
            PatternAccess::Commit(a, v) => self.commit(values, state, a, v),
            PatternAccess::Absorb(_, a, v) => self.absorb(values, state, a, v),
            PatternAccess::Fence(p, store_load, store_store) => {
                if self.strength.waits(store_load, store_store) {
                    self.fence(state, p);
                }
                true
            }
            PatternAccess::Update(p, a, read, written) => {
                self.fence(state, p);
                self.load(values, state, (p, a, read));
                let allowed = self.store(values, state, (p, a, written))
                    && self.commit(values, state, a, written);
                self.fence(state, p);
                allowed
            }
        }
    }

    fn predecessor(&self, i: usize) -> usize {
        if i == 0 { self.places.len() - 1 } else { i - 1 }
    }

    /// Enters the visit of a place.
    fn enter(&self, state: &mut Digits, i: usize) {
        let exit = self.places[(i + 1) % self.places.len()].exit;
        let ordered = self.strength.keeps(self.places[i].entry.1, exit.1);
        state[3 * i + 2] = if ordered { 2 } else { 1 };
    }

    fn load(&self, values: &RoleValues, state: &mut Digits, (p, a, v): (usize, usize, usize)) {
        for (i, place) in self.places.iter().enumerate().filter(|(_, place)| place.address == a) {
            let (exit, entry, before) = (place.exit, place.entry, self.predecessor(i));
            let enters = !entry.1 && v == values.of(entry.0) && p == place.processor;
            let leaves = !exit.1 && v == values.of(exit.0) && p == self.places[before].processor;
            if enters && state[3 * i + 2] == 0 {
                self.enter(state, i);
            } else if leaves && state[3 * before + 2] == 2 {
                state[3 * before + 2] = 3;
            }
        }
    }

    fn store(
        &self,
        values: &RoleValues,
        state: &mut Digits,
        (p, a, v): (usize, usize, usize),
    ) -> bool {
        let Some(i) = self.places.iter().position(|place| place.address == a) else {
            return v == values.other;
        };
        let (place, before) = (self.places[i], self.predecessor(i));
        // Where the initial value is loaded, other stores differ from it.
        let from_initial = place.exit.0 == Store::Initial;
        let spare = if from_initial && values.other == values.initial {
            values.first
        } else {
            values.other
        };
        if v == spare {
            return true;
        }
        if v == values.first && !from_initial && state[3 * i] == 0 {
            state[3 * i] = 1;
            if !place.exit.1 {
                return true;
            }
            let leaves = p == self.places[before].processor && state[3 * before + 2] == 2;
            state[3 * before + 2] = 3;
            return leaves;
        }
        if v == values.second && place.entry.0 == Store::Second && state[3 * i + 1] == 0 {
            state[3 * i + 1] = 1;
            if place.between {
                return p != place.processor && p != self.places[before].processor;
            }
            let enters = p == place.processor && state[3 * i + 2] == 0;
            self.enter(state, i);
            return enters;
        }
        false
    }

    fn commit(&self, values: &RoleValues, state: &mut Digits, a: usize, v: usize) -> bool {
        for (i, place) in self.places.iter().enumerate() {
            if place.address == a && place.is_ordered() {
                if v == values.first {
                    state[3 * i] = 2;
                } else if v == values.second && state[3 * i] != 2 {
                    return false;
                }
            }
        }
        true
    }

    /// A store is absorbed; false if the run is excluded. The store that absorbs it is on the cycle
    /// too, unless the store is the entry of a visit that has ended.
    fn absorb(&self, values: &RoleValues, state: &Digits, a: usize, v: usize) -> bool {
        self.places.iter().zip(state.chunks(3)).filter(|(place, _)| place.address == a).all(
            |(place, digits)| {
                if v == values.first && place.exit.0 == Store::First {
                    return false;
                }
                v != values.second || place.entry == (Store::Second, true) && digits[2] == 3
            },
        )
    }

    fn fence(&self, state: &mut Digits, p: usize) {
        for (i, place) in self.places.iter().enumerate() {
            if place.processor == p && state[3 * i + 2] == 1 {
                state[3 * i + 2] = 2;
            }
        }
    }
}

/// Applies an access to a pattern at one address; false if the run is excluded.
fn single(id: &SingleId, values: &RoleValues, state: &mut Digits, access: PatternAccess) -> bool {
    let &(kind, processor, address) = id;
    let pattern = SINGLES[kind].1;
    if pattern == Single::Absorbed {
        return absorption((processor, address), values, state, access);
    }
    let reads_initial = match pattern {
        Single::Pair(a, b, _) => [a, b].contains(&load(Store::Initial)),
        Single::Update(of) => of == Store::Initial,
        _ => false,
    };
    let spare =
        if reads_initial && values.other == values.initial { values.first } else { values.other };
    match access {
        PatternAccess::Fence(..) => true,
        PatternAccess::Load(p, a, v) => {
            if a == address {
                apply_load(pattern, p == processor, values, state, v);
            }
            true
        }
        PatternAccess::Update(p, a, read, written) => {
            let stale = match pattern {
                Single::Update(of) => {
                    (p, a) == (processor, address) && state[1] == 2 && read == values.of(of)
                }
                _ => false,
            };
            if a == address {
                apply_load(pattern, p == processor, values, state, read);
            }
            let allowed = single(id, values, state, PatternAccess::Store(p, a, written))
                && single(id, values, state, PatternAccess::Commit(a, written));
            if stale {
                state[2] = 2;
            }
            allowed
        }
        PatternAccess::Store(_, a, v) if a != address => {
            let thin = matches!(pattern, Single::ThinLoad | Single::ThinCommit);
            v == values.other || thin && v == values.first
        }
        PatternAccess::Store(_, _, v) if v == spare => true,
        PatternAccess::Store(p, _, v) => apply_store(pattern, p == processor, values, state, v),
        PatternAccess::Commit(a, v) if a != address => {
            if pattern == Single::Once && v == values.first {
                state[2] = 2;
            }
            true
        }
        PatternAccess::Commit(_, v) => apply_arrival(pattern, values, state, v),
        PatternAccess::Absorb(_, a, _) if a != address => true,
        PatternAccess::Absorb(_, _, v) => {
            apply_absorption(pattern, (reads_initial, values), state, v)
        }
    }
}

/// A store at the address of a pattern is absorbed; false if the run is excluded.
fn apply_absorption(
    pattern: Single,
    (reads_initial, values): (bool, &RoleValues),
    state: &mut Digits,
    v: usize,
) -> bool {
    use Store::{First, Second};
    if v == values.first && !reads_initial {
        match pattern {
            Single::Once => {
                let pending = state[0] == 1;
                if pending {
                    state[0] = ABSORBED;
                } else {
                    state[2] = 2;
                }
            }
            // The second store may be the one that absorbs the first.
            Single::Pair((true, Second), (false, First), _) if state[2] >= EARLIER => state[0] = 2,
            Single::Pair((false, First), (true, First), _) => {}
            Single::Pair(..) | Single::Update(_) => return false,
            _ => {}
        }
        return true;
    }
    if v != values.second {
        return true;
    }
    match pattern {
        Single::Pair(_, (true, First), _) => {
            pattern == Single::Pair(load(First), store(First), false)
        }
        Single::Pair(..) => state[2] % EARLIER == 2,
        Single::Update(_) => false,
        _ => true,
    }
}

/// Applies an access to the pattern of an absorbed store of a processor at an address; false if the
/// run is excluded. Last digit 1: the store must not be absorbed.
fn absorption(
    (processor, address): (usize, usize),
    values: &RoleValues,
    state: &mut Digits,
    access: PatternAccess,
) -> bool {
    let place = |p: usize, a: usize| p == processor && a == address;
    match access {
        PatternAccess::Load(p, a, v) => {
            if a == address && v == values.first {
                if state[0] == ABSORBED {
                    state[2] = 2;
                } else if p != processor && state[2] == 0 {
                    state[2] = 1;
                }
            }
            true
        }
        PatternAccess::Store(_, a, v) if a != address => v == values.other,
        PatternAccess::Store(p, a, v) => {
            let next = place(p, a) && state[0] != 0 && state[1] == 0;
            if v == values.first {
                let begins = place(p, a) && state[0] == 0;
                state[0] = state[0].max(1);
                begins
            } else if v == values.second {
                state[1] = state[1].max(1);
                next
            } else {
                !next
            }
        }
        PatternAccess::Commit(a, v) => {
            if a == address && v == values.first {
                match state[0] {
                    ABSORBED => state[2] = 2,
                    1 => state[0] = 2,
                    _ => {}
                }
            } else if a == address && v == values.second && state[1] == 1 {
                state[1] = 2;
            }
            true
        }
        PatternAccess::Absorb(p, a, v) => {
            if v == values.first {
                if place(p, a) && state[..] == [1, 1, 0] {
                    state[0] = ABSORBED;
                } else {
                    state[2] = 2;
                }
            } else if v == values.second && a == address {
                state[1] = 2;
            }
            true
        }
        PatternAccess::Fence(p, store_load, store_store) => {
            let between = p == processor && state[0] == 1 && state[1] == 0;
            if between && (store_load || store_store) && state[2] == 0 {
                state[2] = 1;
            }
            true
        }
        PatternAccess::Update(p, a, read, written) => [
            PatternAccess::Fence(p, true, true),
            PatternAccess::Load(p, a, read),
            PatternAccess::Store(p, a, written),
            PatternAccess::Commit(a, written),
        ]
        .into_iter()
        .all(|one| absorption((processor, address), values, state, one)),
    }
}

/// A load at the address of a pattern.
fn apply_load(pattern: Single, own: bool, values: &RoleValues, state: &mut Digits, v: usize) {
    match pattern {
        Single::ThinLoad if v == values.first => state[2] = 2,
        Single::Pair(first, second, _) if own => {
            let (stage, earlier) = (state[2] % EARLIER, state[2] / EARLIER * EARLIER);
            // A load of a store that is issued later: the store must not be issued yet.
            let early = second != store(Store::First) || first.1 != Store::First || state[0] == 0;
            if stage == 0 && !first.0 && v == values.of(first.1) && early {
                state[2] = 1 + earlier;
            } else if stage == 1 && !second.0 && v == values.of(second.1) {
                state[2] = 2 + earlier;
            }
        }
        _ => {}
    }
}

/// A store of a distinguished value at the address of a pattern; false if the run is excluded.
fn apply_store(
    pattern: Single,
    own: bool,
    values: &RoleValues,
    state: &mut Digits,
    v: usize,
) -> bool {
    let place = if v == values.first {
        0
    } else if v == values.second {
        1
    } else {
        return false;
    };
    let role = if place == 0 { Store::First } else { Store::Second };
    let once = state[place] == 0;
    state[place] = 1;
    match pattern {
        Single::Once => once && role == Store::First,
        Single::Update(of) => once && if place == 0 { of == Store::First } else { !own },
        Single::Pair(first, second, _) => {
            if !once || ![first.1, second.1].contains(&role) {
                return false;
            }
            if second == store(role) {
                let allowed = own && state[2] == 1;
                state[2] = 2;
                return allowed;
            }
            if first == store(role) {
                state[2] = state[2].max(1);
                if second == load(Store::First) && state[0] != 0 {
                    state[2] += EARLIER;
                }
                return own;
            }
            true
        }
        Single::ThinLoad | Single::ThinCommit | Single::Absorbed => false,
    }
}

/// A value reaches memory at the address of a pattern; false if the run is excluded.
fn apply_arrival(pattern: Single, values: &RoleValues, state: &mut Digits, v: usize) -> bool {
    let (first, second): (bool, bool) = (v == values.first, v == values.second);
    let in_memory: Issue = 2;
    match pattern {
        Single::ThinCommit if first => state[2] = 2,
        Single::Once if first && state[0] != 1 => state[2] = 2,
        Single::Once if first => state[0] = in_memory,
        Single::Pair(_, _, true) if first => state[0] = in_memory,
        Single::Pair(_, _, true) if second => return state[0] == in_memory,
        Single::Update(Store::First) if first => state[0] = in_memory,
        Single::Update(of) if second => {
            if of == Store::First && state[0] != in_memory {
                return false;
            }
            state[1] = in_memory;
        }
        _ => {}
    }
    true
}
