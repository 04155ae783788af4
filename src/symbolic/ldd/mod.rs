//! List decision diagrams: sets of `u32` vectors of one length, shared and canonical.
//!
//! After Blom and van de Pol, "Symbolic reachability for process algebras with recursive data
//! types" (ICTAC 2008), and the LDD operations of Sylvan (van Dijk, van de Pol, "Sylvan: multi-core
//! framework for decision diagrams", 2017), with three departures: operations walk the `right` list
//! by a loop and recurse on `down` only (so the stack is as deep as vectors are long, and the cache
//! holds one entry a list, not one a list cell), and what an operation does at each level is a
//! [`Plan`], a hash-consed list whose suffixes are shared, so that relations with equal footprints
//! share their cache entries; and threads do not split operations, but work ahead of each other on
//! the same ones in different orders ([`Team`]).
//!
//! Input -> output: sets and relations as [`Ldd`] ids -> ids, counts, vectors. Knows nothing but
//! vectors of numbers.
//!
//! Cost: set operations are linear in the product of the operands' nodes (as for BDDs), mostly far
//! below; 12 bytes a node, 6 to 12 bytes of index a node, 16 bytes a cache entry.
//!
//! Invariants: the values of a `right` list ascend strictly; `down` is never empty; equal sets have
//! equal ids; all vectors of a set have the same length (so an id fixes its level). [`Ldd::EMPTY`]
//! is the empty set, [`Ldd::UNIT`] the set of the empty vector. Operations never collect: ids stay
//! valid until [`Manager::collect`], which keeps what its roots and the scratch stack reach.

mod cache;
mod count;
mod ops;
mod paths;
mod plan;
mod relation;
mod store;
mod table;
mod prefetch;
#[cfg(all(test, not(any(loom, miri))))]
mod tests;
#[cfg(all(test, loom))]
mod loom;

use ahash::AHashMap;
pub use paths::Paths;
use plan::Plans;
pub use plan::{Action, Plan};
pub use prefetch::{Lent, Task, Team};
use std::sync::Arc;
use store::Tables;
pub use table::Node;
use table::{Ids, Marks};

/// A set of vectors, by the id of its node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Ldd(pub(crate) u32);

impl Ldd {
    /// The empty set.
    pub const EMPTY: Ldd = Ldd(0);
    /// The set that holds the empty vector only.
    pub const UNIT: Ldd = Ldd(1);

    /// Whether the set is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self == Ldd::EMPTY
    }
}

/// Operation codes in the cache, above the 26 bits of a plan.
pub(crate) mod op {
    pub const UNION: u32 = 1 << 26;
    pub const MINUS: u32 = 2 << 26;
    pub const INTERSECT: u32 = 3 << 26;
    pub const PROJECT: u32 = 4 << 26;
    pub const MATCH: u32 = 5 << 26;
    pub const RELPROD: u32 = 6 << 26;
    pub const TAILS: u32 = 7 << 26;
    pub const TWINS: u32 = 8 << 26;
    pub const BEFORE: u32 = 9 << 26;
    /// First code free for operations defined outside of this module.
    pub const EXTERNAL: u32 = 10 << 26;
}

/// Sizes of a manager.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Initial entries of node index and cache, as powers of two.
    pub initial_bits: u32,
    /// Most entries of the operation cache, as a power of two.
    pub max_cache_bits: u32,
    /// A collection is due when this many nodes are in use, at first.
    pub collect_at: usize,
    /// Most bytes of tables; near it the cache makes room for nodes, and reaching it halts the
    /// manager.
    pub max_bytes: Option<u64>,
    /// Most nodes made, collected ones included; reaching it halts the manager.
    pub max_made: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            initial_bits: 16,
            max_cache_bits: 26,
            collect_at: 1 << 22,
            max_bytes: None,
            max_made: None,
        }
    }
}

/// The cache is never made smaller than this part of the table's bytes.
const LEAST_CACHE: u64 = 16;

/// Polled every few tens of thousands of steps; answering `true` halts the manager.
pub type Watch = Box<dyn FnMut() -> bool>;

/// Why a manager halted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halt {
    /// The tables reached their limit of bytes.
    Memory,
    /// As many nodes were made as the limit says.
    Effort,
    /// The watch said so, or [`Manager::halt`] was called.
    Watch,
}

/// The node table with its operations: that of an owner, or one lent to a helper.
///
/// When it halts (out of memory, or by its [`Watch`]) every operation returns at once with a
/// meaningless id: callers ask [`Manager::halted`] before they believe a result.
pub struct Manager {
    tables: Arc<Tables>,
    plans: Arc<Plans>,
    settings: Settings,
    /// Ids to use next.
    ids: Ids,
    /// Cache entries lost since it was last widened.
    lost: usize,
    /// Who helps; for a helper, whom it helps, and in which round.
    team: Option<Arc<Team>>,
    helping: Option<u64>,
    /// 0 for the owner; helpers are told apart by it.
    pub(crate) rank: usize,
    /// Pairs that operations collect before they build a list from its end; a root of collections.
    pub(crate) stack: Vec<(u32, Ldd)>,
    halt: Option<Halt>,
    watch: Option<Watch>,
    ticks: u32,
    due: usize,
    peak: usize,
    made: u64,
    collections: u64,
    /// Numbers of relations with their plans, for the cache codes of preimages; those of relations
    /// that were collected are forgotten.
    befores: AHashMap<(Ldd, Plan), u32>,
    next_before: u32,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Manager({} nodes)", self.used())
    }
}

impl Default for Manager {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl Manager {
    /// An empty manager.
    pub fn new(settings: Settings) -> Self {
        let bits = settings.initial_bits.clamp(4, 30);
        let tables = Arc::new(Tables::new(bits, bits.min(settings.max_cache_bits)));
        Self::on(tables, Arc::default(), settings)
    }
    fn on(tables: Arc<Tables>, plans: Arc<Plans>, settings: Settings) -> Self {
        Self {
            tables,
            plans,
            ids: Ids::default(),
            lost: 0,
            team: None,
            helping: None,
            rank: 0,
            due: settings.collect_at,
            settings,
            stack: Vec::new(),
            halt: None,
            watch: None,
            ticks: 0,
            peak: 0,
            made: 0,
            collections: 0,
            befores: AHashMap::new(),
            next_before: 0,
        }
    }
    /// A helper's.
    fn lend(
        tables: Arc<Tables>,
        plans: Arc<Plans>,
        rank: usize,
        team: Arc<Team>,
        round: u64,
    ) -> Self {
        let settings = Settings { collect_at: usize::MAX, ..Settings::default() };
        let mut manager = Self::on(tables, plans, settings);
        (manager.rank, manager.team, manager.helping) = (rank, Some(team), Some(round));
        manager
    }
    /// Takes helpers on.
    pub fn set_team(&mut self, team: Arc<Team>) {
        self.team = Some(team);
    }
    /// Offers a task to helpers, instead of what they do now.
    pub fn offer(&self, task: Task) {
        if let Some(team) = &self.team {
            team.offer(&self.tables, &self.plans, task);
        }
    }
    /// Tells helpers to stop.
    pub fn dismiss(&self) {
        if let Some(team) = &self.team {
            team.dismiss();
        }
    }
    /// Ends the helpers' work and waits until it has ended; what they were doing, to be offered
    /// again.
    pub fn recall(&self) -> Option<Task> {
        self.team.as_ref().and_then(|team| team.call_off())
    }
    /// Whether this is a helper's.
    #[inline]
    pub(crate) fn helps(&self) -> bool {
        self.helping.is_some()
    }
    /// In which order a helper does what the owner does first to last: helpers begin at places far
    /// from each other, every other one backwards.
    pub(crate) fn ahead<'a, T>(&self, parts: &'a [T]) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.turns(parts.len()).map(|i| &parts[i])
    }
    /// The same order of `n` parts, by their places.
    pub(crate) fn turns(&self, n: usize) -> impl Iterator<Item = usize> + use<> {
        let pair = self.rank as u32 / 2;
        // Places of the pairs: 0, 1/2, 1/4, 3/4, 1/8, ...
        let start = ((n as u64 * u64::from(pair.reverse_bits())) >> 32) as usize;
        let backwards = self.rank % 2 == 1;
        (0..n).map(move |i| (if backwards { start + n - 1 - i } else { start + i }) % n)
    }
    /// Changes the tables while nobody else looks at them; then helpers go on.
    fn alone(&mut self, change: impl FnOnce(&mut Tables)) {
        let task = self.recall();
        match Arc::get_mut(&mut self.tables) {
            Some(tables) => change(tables),
            // Not to be: only lent managers hold them. Better an end than a loop.
            None => self.halt = Some(Halt::Memory),
        }
        if let Some(task) = task {
            self.offer(task);
        }
    }
    /// Sets the limit of nodes made.
    pub fn set_max_made(&mut self, limit: Option<u64>) {
        self.settings.max_made = limit;
    }
    /// Nodes made so far.
    pub fn made(&self) -> u64 {
        self.made
    }
    /// Sets what is polled while operations run.
    pub fn set_watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }
    /// The node of a set that is neither empty nor the unit.
    #[inline]
    pub fn node(&self, set: Ldd) -> Node {
        self.tables.table.node(set)
    }
    /// The next nodes of two lists that have a value in common; the lists are left after these.
    #[inline]
    pub(crate) fn next_common(&self, x: &mut Ldd, y: &mut Ldd) -> Option<(Node, Node)> {
        while *x != Ldd::EMPTY && *y != Ldd::EMPTY {
            let (n, m) = (self.node(*x), self.node(*y));
            if n.value <= m.value {
                *x = n.right;
            }
            if m.value <= n.value {
                *y = m.right;
            }
            if n.value == m.value {
                return Some((n, m));
            }
        }
        None
    }
    /// Nodes in use, dead ones included.
    pub fn used(&self) -> usize {
        self.tables.table.used() - self.ids.unused()
    }
    /// Highest number of nodes in use so far.
    pub fn peak(&self) -> usize {
        self.peak.max(self.used())
    }
    /// Number of collections so far.
    pub fn collections(&self) -> u64 {
        self.collections
    }
    /// Bytes of nodes, index and cache.
    pub fn bytes(&self) -> u64 {
        self.tables.bytes()
    }
    /// Why it halted, if it did. A helper's halts when its round is over.
    #[inline]
    pub fn halted(&self) -> Option<Halt> {
        match (self.helping, &self.team) {
            (Some(round), Some(team)) if team.round() != round => Some(Halt::Watch),
            _ => self.halt,
        }
    }
    /// Halts: operations return at once from now on.
    pub fn halt(&mut self) {
        self.halt.get_or_insert(Halt::Watch);
    }
    /// Takes back a halt that was asked for, or by effort. Sets made before it are as they were.
    pub fn resume(&mut self) {
        self.halt.take_if(|why| *why != Halt::Memory);
    }

    /// The set of `value` before each vector of `down`, and the vectors of `right`, whose first
    /// values must be higher.
    #[inline]
    pub fn make(&mut self, value: u32, down: Ldd, right: Ldd) -> Ldd {
        if down == Ldd::EMPTY {
            return right;
        }
        debug_assert!(right.0 < 2 || self.tables.table.node(right).value > value);
        self.ticks += 1;
        if self.ticks & 0xFFFF == 0 {
            self.poll();
        }
        let node = Node { value, down, right };
        match self.tables.table.find(node) {
            Ok(id) => id,
            Err(at) => self.insert(at, node),
        }
    }

    fn poll(&mut self) {
        if self.halt.is_none() && self.watch.as_mut().is_some_and(|w| w()) {
            self.halt = Some(Halt::Watch);
        }
    }

    fn insert(&mut self, mut at: usize, node: Node) -> Ldd {
        if self.halted().is_some() {
            return Ldd::EMPTY;
        }
        if !self.ids.ready() {
            if !self.make_room() {
                return Ldd::EMPTY;
            }
            match self.tables.table.find(node) {
                Ok(id) => return id,
                Err(free) => at = free,
            }
        }
        if self.settings.max_made.is_some_and(|m| self.made >= m) {
            self.halt = Some(Halt::Effort);
            return Ldd::EMPTY;
        }
        let Some((id, new)) = self.tables.table.insert(at, node, &mut self.ids) else {
            return Ldd::EMPTY;
        };
        self.made += u64::from(new);
        id
    }

    /// Gets ids for new nodes; if there are none, lets the owner's table grow and halts a helper.
    /// Whether there are some now.
    #[cold]
    fn make_room(&mut self) -> bool {
        while !self.tables.hand_out(&mut self.ids) {
            let too_much = self.settings.max_bytes.is_some_and(|m| !self.room_for_growth(m));
            if self.helping.is_some() || too_much || self.tables.table.full() {
                self.halt = Some(Halt::Memory);
                return false;
            }
            self.alone(|tables| tables.table.grow());
            if self.halt.is_some() {
                return false;
            }
        }
        true
    }

    /// Whether the table can grow within so many bytes, if need be at the cache's expense: slower,
    /// but on.
    fn room_for_growth(&mut self, max: u64) -> bool {
        let growth = self.tables.table.growth_bytes();
        while self.bytes() + growth > max {
            let (table, cache) = (self.tables.table.bytes(), self.tables.cache.bytes());
            // With fewer entries operations would do their work again and again.
            let least = (table / LEAST_CACHE).max(1 << 10);
            if self.helping.is_some() || cache / 2 < least || table + growth + least > max {
                return false;
            }
            self.alone(|tables| tables.cache.halve());
            if self.halt.is_some() {
                return false;
            }
        }
        true
    }

    /// The plan that does `action` at one level and goes on with `next`.
    pub fn plan(&mut self, action: Action, next: Plan) -> Plan {
        // Helpers may hold the plans as they were.
        self.plans
            .known(action, next)
            .unwrap_or_else(|| Arc::make_mut(&mut self.plans).intern(action, next))
    }
    /// The action that keeps a level with some values only (ascending).
    pub fn among(&mut self, values: &[u32]) -> Action {
        Action::Among(Arc::make_mut(&mut self.plans).list(values))
    }
    /// The plan of a list of actions, first level first. Trailing [`Action::Skip`] and
    /// [`Action::Drop`] are left out.
    pub fn plan_of(&mut self, actions: &[Action]) -> Plan {
        let keep = actions
            .iter()
            .rposition(|a| !matches!(a, Action::Skip | Action::Drop))
            .map_or(0, |i| i + 1);
        actions[..keep].iter().rev().fold(Plan::END, |next, &action| self.plan(action, next))
    }
    /// First action of a plan and its rest; `None` at the end.
    #[inline]
    pub(crate) fn step(&self, plan: Plan) -> Option<(Action, Plan)> {
        self.plans.step(plan)
    }

    #[inline]
    pub(crate) fn cached(&self, op: u32, a: Ldd, b: Ldd) -> Option<Ldd> {
        self.tables.cache.get(op, a, b)
    }
    #[inline]
    pub(crate) fn remember(&mut self, op: u32, a: Ldd, b: Ldd, result: Ldd) {
        if self.halted().is_none() {
            self.lost += usize::from(self.tables.cache.put(op, a, b, result));
            if self.lost > self.tables.cache.len() {
                self.widen_cache();
            }
        }
    }
    #[cold]
    fn widen_cache(&mut self) {
        self.lost = 0;
        let (table, cache) = (self.tables.table.bytes(), self.tables.cache.bytes());
        let room = self.settings.max_bytes.is_none_or(|m| table + cache * 2 <= m / 4 * 3);
        if self.helping.is_none()
            && self.tables.cache.len() < 1 << self.settings.max_cache_bits
            && room
        {
            self.alone(|tables| tables.cache.grow());
        }
    }
    /// The pair pushed last; the caller has seen that there is one.
    #[inline]
    fn pop(&mut self) -> (u32, Ldd) {
        self.stack.pop().expect("the scratch stack is higher than its base")
    }
    /// Builds the list of the pairs above `base` (values ascending) before `tail`.
    #[inline]
    pub(crate) fn build(&mut self, base: usize, tail: Ldd) -> Ldd {
        let mut list = tail;
        while self.stack.len() > base {
            let (value, down) = self.pop();
            list = self.make(value, down, list);
        }
        list
    }
    /// Says that from the pair pushed next on, a list under construction is `list`, until the
    /// contrary is said.
    #[inline]
    pub(crate) fn suffix(&self, list: Ldd) -> (usize, Ldd) {
        (self.stack.len(), list)
    }
    /// Builds the list of the pairs from `base` to where the suffix begins, before the suffix.
    #[inline]
    pub(crate) fn build_before(&mut self, base: usize, suffix: (usize, Ldd)) -> Ldd {
        self.stack.truncate(suffix.0);
        self.build(base, suffix.1)
    }
    /// Builds the list of the pairs above `base`, in any order, uniting those with equal values.
    pub(crate) fn build_unsorted(&mut self, base: usize) -> Ldd {
        let pairs = &mut self.stack[base..];
        if !pairs.is_sorted_by_key(|p| p.0) {
            pairs.sort_unstable_by_key(|p| p.0);
        }
        let mut list = Ldd::EMPTY;
        while self.stack.len() > base {
            let (value, mut down) = self.pop();
            while self.stack.len() > base && self.stack[self.stack.len() - 1].0 == value {
                let (_, other) = self.pop();
                down = self.union(down, other);
            }
            list = self.make(value, down, list);
        }
        list
    }

    /// Whether enough nodes were made since the last collection to make one worthwhile.
    #[inline]
    pub fn collection_due(&self) -> bool {
        self.used() >= self.due
    }
    /// Deletes every node that neither `roots` nor the scratch stack reach; forgets cache entries
    /// that name one.
    ///
    /// The next collection is due at twice the nodes that made this one due, earlier if memory is
    /// short: the results of operations die with the nodes that only the cache knows, and are
    /// dear. The sets that a task on offer names must be among the roots.
    pub fn collect(&mut self, roots: impl IntoIterator<Item = Ldd>) {
        self.peak = self.peak();
        self.collections += 1;
        let before = self.used();
        let mut marks = Marks::new(self.tables.table.ids());
        let mut todo: Vec<Ldd> = self.stack.iter().map(|p| p.1).chain(roots).collect();
        while let Some(mut at) = todo.pop() {
            while marks.set(at.0) {
                let n = self.tables.table.node(at);
                todo.push(n.down);
                at = n.right;
            }
        }
        self.ids = Ids::default();
        self.befores.retain(|(relation, _), _| marks.get(relation.0));
        self.alone(|tables| {
            tables.forget_spare();
            tables.cache.sweep(&marks);
            tables.table.sweep(marks);
        });
        let live = self.used();
        self.due = before.max(live).saturating_mul(2).max(self.settings.collect_at);
        if let Some(max) = self.settings.max_bytes {
            // 12 bytes and an index entry and a half a node, which doubling may leave half empty.
            let room = usize::try_from((max.saturating_sub(self.tables.cache.bytes())) / 30)
                .unwrap_or(usize::MAX);
            self.due = self.due.min(room.max(live + live / 4 + 1));
        }
    }
    /// Number of nodes of some sets together.
    pub fn nodes_of(&self, roots: impl IntoIterator<Item = Ldd>) -> usize {
        let mut marks = Marks::new(self.tables.table.ids());
        let mut todo: Vec<Ldd> = roots.into_iter().collect();
        let mut count = 0;
        while let Some(mut at) = todo.pop() {
            while marks.set(at.0) {
                count += 1;
                let n = self.tables.table.node(at);
                todo.push(n.down);
                at = n.right;
            }
        }
        count
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.tables.give_up(std::mem::take(&mut self.ids));
    }
}
