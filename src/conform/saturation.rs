//! Verdict of `sc`, `tso`, or `pso` on a history, by saturation of the coherence orders.
//!
//! Input: a history of plain accesses, updates, and full fences. Output: true if the order allows
//! it. For each read a source is chosen; most reads have one. What the sources and the order within
//! the processors imply about the coherence orders is then added until nothing changes: a store
//! that is before a read, or before another store of its address, in one of the two relations that
//! may have no cycle is before the source of that read, or before that store, in the coherence
//! order. Only pairs of stores that this leaves open are tried in both orders. The idea is that of
//! Manovit and Hangal, *Completely verifying memory consistency of test program executions*, HPCA
//! 2006. Cost: polynomial for each choice; histories of machines leave few choices.
//!
//! An update is one node. This changes nothing: the orders put what is before its read before its
//! write, and what is after its write after its read, and atomicity leaves no store between its
//! source and its write.

use crate::every_length::order::ProcessorOrder;
use mu_axioms::EventKind;
use mu_axioms::history::{History, Operation};

/// Largest number of accesses.
pub const LIMIT: usize = 64;

/// A set of accesses.
type Set = u64;

/// Returns the members of a set.
fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = (set != 0).then_some(set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        first
    })
}

/// A transitive relation without cycles.
#[derive(Clone)]
struct Closure {
    after: Vec<Set>,
    before: Vec<Set>,
    /// Number of pairs that were added and did not follow from others.
    additions: usize,
}

/// The relation would have a cycle.
struct Cycle;

impl Closure {
    fn new(accesses: usize) -> Self {
        Closure { after: vec![0; accesses], before: vec![0; accesses], additions: 0 }
    }
    fn has(&self, a: usize, b: usize) -> bool {
        self.after[a] >> b & 1 == 1
    }
    fn add(&mut self, a: usize, b: usize) -> Result<(), Cycle> {
        if self.has(a, b) {
            return Ok(());
        }
        if a == b || self.has(b, a) {
            return Err(Cycle);
        }
        self.additions += 1;
        let (from, to) = (self.before[a] | 1 << a, self.after[b] | 1 << b);
        members(from).for_each(|x| self.after[x] |= to);
        members(to).for_each(|y| self.before[y] |= from);
        Ok(())
    }
}

/// The source of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Open,
    Initial,
    Store(usize),
}

/// An access with its processor and its position there, fences included.
struct Access {
    operation: Operation,
    processor: usize,
    position: usize,
}

/// A history with what is known of an execution.
#[derive(Clone)]
struct State {
    /// `order | rfe | co | fr`.
    global: Closure,
    /// `po-loc | rf | co | fr`.
    local: Closure,
    sources: Vec<Source>,
}

struct Search<'h> {
    history: &'h History,
    accesses: Vec<Access>,
    /// The stores and updates of each location.
    stores: Vec<Set>,
}

/// Returns the verdict of an order on a history. `None`: it has more than [`LIMIT`] accesses.
/// Precondition: [`crate::cores::applies`].
pub fn allows(history: &History, order: ProcessorOrder) -> Option<bool> {
    let mut accesses = Vec::new();
    for (processor, thread) in history.threads.iter().enumerate() {
        for (position, operation) in thread.iter().enumerate() {
            if operation.kind != EventKind::Fence {
                accesses.push(Access { operation: *operation, processor, position });
            }
        }
    }
    if accesses.len() > LIMIT {
        return None;
    }
    let mut stores = Vec::new();
    for (i, access) in accesses.iter().enumerate() {
        let location = access.operation.location as usize;
        if stores.len() <= location {
            stores.resize(location + 1, 0);
        }
        if access.operation.kind.writes() {
            stores[location] |= 1 << i;
        }
    }
    let search = Search { history, accesses, stores };
    Some(search.start(order).is_ok_and(|state| search.solve(state)))
}

impl Search<'_> {
    /// Returns the relations that hold in every execution.
    fn start(&self, order: ProcessorOrder) -> Result<State, Cycle> {
        let n = self.accesses.len();
        let sources = vec![Source::Open; n];
        let mut state = State { global: Closure::new(n), local: Closure::new(n), sources };
        for (j, later) in self.accesses.iter().enumerate() {
            for (i, earlier) in self.accesses[..j].iter().enumerate() {
                if earlier.processor != later.processor {
                    continue;
                }
                if self.is_ordered(earlier, later, order) {
                    state.global.add(i, j)?;
                }
                if earlier.operation.location == later.operation.location {
                    state.local.add(i, j)?;
                }
            }
        }
        Ok(state)
    }

    /// True if the order puts an access before a later one of its processor.
    fn is_ordered(&self, earlier: &Access, later: &Access, order: ProcessorOrder) -> bool {
        let kinds = (earlier.operation.kind, later.operation.kind);
        let thread = &self.history.threads[earlier.processor];
        let mut between = thread[earlier.position + 1..later.position].iter();
        kinds.0 == EventKind::Update
            || kinds.1 == EventKind::Update
            || order.orders(kinds.0.writes(), kinds.1.writes())
            || between.any(|o| matches!(o.kind, EventKind::Fence | EventKind::Update))
    }

    /// Returns the possible sources of a read.
    fn sources(&self, read: usize) -> Vec<Source> {
        let operation = &self.accesses[read].operation;
        let value = operation.read_value();
        let stores = self.stores[operation.location as usize] & !(1 << read);
        let initial = (value == 0).then_some(Source::Initial);
        let stores = members(stores).filter(|&w| self.accesses[w].operation.value == value);
        initial.into_iter().chain(stores.map(Source::Store)).collect()
    }

    /// True if an execution with the known relations exists.
    fn solve(&self, mut state: State) -> bool {
        if self.saturate(&mut state).is_err() {
            return false;
        }
        // The read with the fewest sources.
        let open = (0..self.accesses.len()).filter(|&r| {
            self.accesses[r].operation.kind.reads() && state.sources[r] == Source::Open
        });
        let open = open.map(|r| (r, self.sources(r))).min_by_key(|(_, sources)| sources.len());
        if let Some((read, sources)) = open {
            return sources.into_iter().any(|source| {
                let mut next = state.clone();
                self.read_from(&mut next, read, source).is_ok() && self.solve(next)
            });
        }
        let Some((a, b)) = self.open_pair(&state) else { return true };
        [(a, b), (b, a)].into_iter().any(|(a, b)| {
            let mut next = state.clone();
            self.order(&mut next, a, b).is_ok() && self.solve(next)
        })
    }

    /// Returns two stores of a location without an order.
    fn open_pair(&self, state: &State) -> Option<(usize, usize)> {
        self.stores.iter().find_map(|&stores| {
            members(stores).find_map(|a| {
                let open = stores & !(state.local.after[a] | state.local.before[a] | 1 << a);
                members(open).next().map(|b| (a, b))
            })
        })
    }

    /// Lets a read have a source.
    fn read_from(&self, state: &mut State, read: usize, source: Source) -> Result<(), Cycle> {
        state.sources[read] = source;
        let location = self.accesses[read].operation.location as usize;
        match source {
            Source::Store(store) => {
                state.local.add(store, read)?;
                if self.accesses[store].processor != self.accesses[read].processor {
                    state.global.add(store, read)?;
                }
            }
            Source::Initial => {
                for store in members(self.stores[location] & !(1 << read)) {
                    state.local.add(read, store)?;
                    state.global.add(read, store)?;
                }
            }
            Source::Open => {}
        }
        Ok(())
    }

    /// Puts a store before another one in the coherence order, and before it all reads of the
    /// first one.
    fn order(&self, state: &mut State, first: usize, second: usize) -> Result<(), Cycle> {
        state.local.add(first, second)?;
        state.global.add(first, second)?;
        for read in 0..self.accesses.len() {
            if read != second && state.sources[read] == Source::Store(first) {
                state.local.add(read, second)?;
                state.global.add(read, second)?;
            }
        }
        Ok(())
    }

    /// Adds what the relations imply until nothing changes.
    fn saturate(&self, state: &mut State) -> Result<(), Cycle> {
        loop {
            let additions = state.global.additions + state.local.additions;
            for &stores in &self.stores {
                for first in members(stores) {
                    let known = state.local.after[first] | state.global.after[first];
                    for second in members(known & stores) {
                        self.order(state, first, second)?;
                    }
                }
            }
            for read in 0..self.accesses.len() {
                let Source::Store(source) = state.sources[read] else { continue };
                let stores = self.stores[self.accesses[read].operation.location as usize];
                let earlier = state.local.before[read] | state.global.before[read];
                for store in members(earlier & stores & !(1 << source)) {
                    self.order(state, store, source)?;
                }
            }
            if additions == state.global.additions + state.local.additions {
                return Ok(());
            }
        }
    }
}
