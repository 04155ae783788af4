//! List decision diagrams: sets of `u32` vectors of one length, shared and canonical.
//!
//! After Blom and van de Pol, "Symbolic reachability for process algebras with recursive data
//! types" (ICTAC 2008), and the LDD operations of Sylvan (van Dijk, van de Pol, "Sylvan: multi-core
//! framework for decision diagrams", 2017), with three differences. Operations walk the `right`
//! list by a loop and recurse on `down` only, so the stack depth is the vector length, and the
//! cache has one entry for each list, not for each list cell. The actions of an operation at each
//! level are a [`Plan`], a hash-consed list with shared suffixes, so that relations with equal
//! footprints share their cache entries. Threads do not divide operations, but compute the same
//! ones in different orders ([`Team`]).
//!
//! Input -> output: sets and relations as [`Ldd`] ids -> ids, counts, vectors. Knows nothing but
//! vectors of numbers.
//!
//! Cost: set operations are linear in the product of the operands' nodes (as for BDDs), usually far
//! below; 12 bytes a node, 6 to 12 bytes of index a node, 16 bytes a cache entry.
//!
//! Invariants: the values of a `right` list ascend strictly; `down` is never empty; equal sets have
//! equal ids; all vectors of a set have the same length (so an id fixes its level). [`Ldd::EMPTY`]
//! is the empty set, [`Ldd::UNIT`] the set of the empty vector. Operations never collect: ids stay
//! valid until [`Manager::collect`], which preserves all nodes reachable from its roots and the
//! scratch stack.

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
use mu_base::narrow;
pub use paths::Paths;
use plan::Plans;
pub use plan::{LevelAction, Plan};
pub use prefetch::{LentManager, Task, Team};
use std::sync::Arc;
use store::Tables;
pub use table::LddNode;
use table::{Ids, Marks};

/// A set of vectors, by the id of its node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Ldd(pub(crate) u32);

impl Ldd {
    /// The empty set.
    pub const EMPTY: Ldd = Ldd(0);
    /// The set of the empty vector only.
    pub const UNIT: Ldd = Ldd(1);

    /// True if the set is empty.
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
    /// First code for operations defined outside of this module.
    pub const EXTERNAL: u32 = 10 << 26;
}

/// Sizes and limits of a manager.
#[derive(Clone, Debug)]
pub struct ManagerSettings {
    /// Initial entries of node index and cache, as powers of two.
    pub initial_bits: u32,
    /// Limit on the entries of the operation cache, as a power of two.
    pub max_cache_bits: u32,
    /// Number of nodes in use at which the first collection is due.
    pub collect_at: usize,
    /// Limit on the bytes of tables; close to it the cache shrinks in favour of nodes, and at the
    /// limit the manager halts.
    pub max_bytes: Option<u64>,
    /// Limit on the nodes created, including collected ones; at the limit the manager halts.
    pub max_made: Option<u64>,
}

impl Default for ManagerSettings {
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

/// Minimum size of the cache, as a fraction of the table's bytes.
const LEAST_CACHE: u64 = 16;

/// Polled every few tens of thousands of steps; `true` halts the manager.
pub type Watch = Box<dyn FnMut() -> bool>;

/// Reason for a halt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halt {
    /// The limit on bytes was reached.
    Memory,
    /// The limit on created nodes was reached.
    Effort,
    /// The watch requested it, or [`Manager::halt`] was called.
    Watch,
}

/// The node table with its operations; belongs to an owner, or is lent to a helper.
///
/// After a halt (memory, effort, or [`Watch`]) every operation returns at once with a meaningless
/// id: callers check [`Manager::halt_reason`] before they use a result.
pub struct Manager {
    tables: Arc<Tables>,
    plans: Arc<Plans>,
    settings: ManagerSettings,
    /// Ids for new nodes.
    ids: Ids,
    /// Cache entries lost since the cache was last enlarged.
    lost: usize,
    /// The helpers; for a helper, the team, and the round.
    team: Option<Arc<Team>>,
    helping: Option<u64>,
    /// 0 for the owner; distinguishes helpers.
    pub(crate) rank: usize,
    /// Pairs from which operations build a list, starting at its end; a root of collections.
    pub(crate) stack: Vec<(u32, Ldd)>,
    halt: Option<Halt>,
    watch: Option<Watch>,
    ticks: u32,
    due: usize,
    peak: usize,
    made: u64,
    collections: u64,
    /// Numbers of relations with their plans, for the cache codes of preimages; numbers of
    /// collected relations are dropped.
    befores: AHashMap<(Ldd, Plan), u32>,
    next_before: u32,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Manager({} nodes)", self.used_nodes())
    }
}

impl Default for Manager {
    fn default() -> Self {
        Self::new(ManagerSettings::default())
    }
}

impl Manager {
    /// Creates an empty manager.
    pub fn new(settings: ManagerSettings) -> Self {
        let bits = settings.initial_bits.clamp(4, 30);
        let tables = Arc::new(Tables::new(bits, bits.min(settings.max_cache_bits)));
        Self::from_tables(tables, Arc::default(), settings)
    }
    fn from_tables(tables: Arc<Tables>, plans: Arc<Plans>, settings: ManagerSettings) -> Self {
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
    /// Creates a helper's manager.
    fn lend(
        tables: Arc<Tables>,
        plans: Arc<Plans>,
        rank: usize,
        team: Arc<Team>,
        round: u64,
    ) -> Self {
        let settings = ManagerSettings { collect_at: usize::MAX, ..ManagerSettings::default() };
        let mut manager = Self::from_tables(tables, plans, settings);
        (manager.rank, manager.team, manager.helping) = (rank, Some(team), Some(round));
        manager
    }
    /// Sets the helpers.
    pub fn set_team(&mut self, team: Arc<Team>) {
        self.team = Some(team);
    }
    /// Offers a task to the helpers and ends their current one.
    pub fn offer(&self, task: Task) {
        if let Some(team) = &self.team {
            team.offer(&self.tables, &self.plans, task);
        }
    }
    /// Stops the helpers.
    pub fn dismiss(&self) {
        if let Some(team) = &self.team {
            team.dismiss();
        }
    }
    /// Stops the helpers and waits until they have stopped. Returns their task, to be offered
    /// again. `None` if they have none.
    pub fn recall(&self) -> Option<Task> {
        self.team.as_ref().and_then(|team| team.call_off())
    }
    /// True for a helper's manager.
    #[inline]
    pub(crate) fn helps(&self) -> bool {
        self.helping.is_some()
    }
    /// Returns the parts in a helper's order: helpers start at distant positions, every other one
    /// backwards.
    pub(crate) fn ahead<'a, T>(&self, parts: &'a [T]) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.turns(parts.len()).map(|i| &parts[i])
    }
    /// Returns the positions of `n` parts in this order.
    pub(crate) fn turns(&self, n: usize) -> impl Iterator<Item = usize> + use<> {
        let pair = narrow::index(self.rank) / 2;
        // Start positions of pairs of helpers: 0, 1/2, 1/4, 3/4, 1/8, ...
        let start = ((n as u64 * u64::from(pair.reverse_bits())) >> 32) as usize;
        let backwards = self.rank % 2 == 1;
        (0..n).map(move |i| (if backwards { start + n - 1 - i } else { start + i }) % n)
    }
    /// Changes the tables while no other thread accesses them; afterwards helpers continue.
    fn alone(&mut self, change: impl FnOnce(&mut Tables)) {
        let task = self.recall();
        match Arc::get_mut(&mut self.tables) {
            Some(tables) => change(tables),
            // Impossible: only lent managers hold the tables. Halting is better than an endless
            // loop.
            None => self.halt = Some(Halt::Memory),
        }
        if let Some(task) = task {
            self.offer(task);
        }
    }
    /// Sets the limit on created nodes.
    pub fn set_max_made(&mut self, limit: Option<u64>) {
        self.settings.max_made = limit;
    }
    /// Returns the number of nodes created so far.
    pub fn created_nodes(&self) -> u64 {
        self.made
    }
    /// Sets the watch that is polled during operations.
    pub fn set_watch(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }
    /// Returns the node of a set that is neither empty nor the unit.
    #[inline]
    pub fn node(&self, set: Ldd) -> LddNode {
        self.tables.table.node(set)
    }
    /// Returns the next nodes of two lists with a common value, and advances the lists past them;
    /// `None` if no common value is left.
    #[inline]
    pub(crate) fn next_common(&self, x: &mut Ldd, y: &mut Ldd) -> Option<(LddNode, LddNode)> {
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
    /// Returns the number of nodes in use, including dead ones.
    pub fn used_nodes(&self) -> usize {
        self.tables.table.used_ids() - self.ids.unused_ids()
    }
    /// Returns the highest number of nodes in use so far.
    pub fn peak(&self) -> usize {
        self.peak.max(self.used_nodes())
    }
    /// Returns the number of collections so far.
    pub fn collections(&self) -> u64 {
        self.collections
    }
    /// Bytes of nodes, index and cache.
    pub fn bytes(&self) -> u64 {
        self.tables.bytes()
    }
    /// Returns the reason of the halt, if any. A helper's manager halts when its round is over.
    #[inline]
    pub fn halt_reason(&self) -> Option<Halt> {
        match (self.helping, &self.team) {
            (Some(round), Some(team)) if team.round() != round => Some(Halt::Watch),
            _ => self.halt,
        }
    }
    /// Stops all operations: they return at once from now on.
    pub fn halt(&mut self) {
        self.halt.get_or_insert(Halt::Watch);
    }
    /// Cancels a halt by request or by effort. Sets created before it are still valid.
    pub fn resume(&mut self) {
        self.halt.take_if(|why| *why != Halt::Memory);
    }

    /// Returns the set of `value` before each vector of `down`, united with `right`, which must
    /// have higher first values.
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
        let node = LddNode { value, down, right };
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

    fn insert(&mut self, mut at: usize, node: LddNode) -> Ldd {
        if self.halt_reason().is_some() {
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

    /// Gets ids for new nodes; if there are none, grows the owner's table, or halts a helper.
    /// Returns true if there are ids now.
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

    /// True if the table can grow within `max` bytes; shrinks the cache if necessary.
    fn room_for_growth(&mut self, max: u64) -> bool {
        let growth = self.tables.table.growth_bytes();
        while self.bytes() + growth > max {
            let (table, cache) = (self.tables.table.bytes(), self.tables.cache.bytes());
            // A smaller cache would repeat operations too often.
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

    /// Returns the plan that applies `action` at one level and continues with `next`.
    pub fn plan(&mut self, action: LevelAction, next: Plan) -> Plan {
        // Helpers may hold the current plans.
        self.plans
            .find(action, next)
            .unwrap_or_else(|| Arc::make_mut(&mut self.plans).intern(action, next))
    }
    /// Returns the action that keeps a level with some values only (ascending).
    pub fn restriction(&mut self, values: &[u32]) -> LevelAction {
        LevelAction::Among(Arc::make_mut(&mut self.plans).list(values))
    }
    /// Returns the plan of a list of actions, first level first. Omits trailing
    /// [`LevelAction::Skip`] and [`LevelAction::Drop`].
    pub fn plan_of(&mut self, actions: &[LevelAction]) -> Plan {
        let keep = actions
            .iter()
            .rposition(|a| !matches!(a, LevelAction::Skip | LevelAction::Drop))
            .map_or(0, |i| i + 1);
        actions[..keep].iter().rev().fold(Plan::END, |next, &action| self.plan(action, next))
    }
    /// Returns the first action of a plan and its rest; `None` at the end.
    #[inline]
    pub(crate) fn step(&self, plan: Plan) -> Option<(LevelAction, Plan)> {
        self.plans.step(plan)
    }

    #[inline]
    pub(crate) fn cached_result(&self, op: u32, a: Ldd, b: Ldd) -> Option<Ldd> {
        self.tables.cache.get(op, a, b)
    }
    #[inline]
    pub(crate) fn remember(&mut self, op: u32, a: Ldd, b: Ldd, result: Ldd) {
        if self.halt_reason().is_none() {
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
    /// Pops the last pair; the caller has checked that there is one.
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
    /// Marks `list` as the suffix of a list under construction, before the pairs pushed from now
    /// on.
    #[inline]
    pub(crate) fn suffix(&self, list: Ldd) -> (usize, Ldd) {
        (self.stack.len(), list)
    }
    /// Builds the list of the pairs from `base` to the start of the suffix, before the suffix.
    #[inline]
    pub(crate) fn build_before(&mut self, base: usize, suffix: (usize, Ldd)) -> Ldd {
        self.stack.truncate(suffix.0);
        self.build(base, suffix.1)
    }
    /// Builds the list of the pairs above `base`, in any order; unites those with equal values.
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

    /// True if enough nodes were created since the last collection.
    #[inline]
    pub fn collection_due(&self) -> bool {
        self.used_nodes() >= self.due
    }
    /// Deletes every node that is not reachable from `roots` or the scratch stack, with the cache
    /// entries that refer to it.
    ///
    /// The next collection is due at twice the nodes that made this one due, earlier if memory is
    /// scarce: results that only the cache refers to are deleted as well, and are expensive. The
    /// sets of an offered task must be among the roots.
    pub fn collect(&mut self, roots: impl IntoIterator<Item = Ldd>) {
        self.peak = self.peak();
        self.collections += 1;
        let before = self.used_nodes();
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
        let live = self.used_nodes();
        self.due = before.max(live).saturating_mul(2).max(self.settings.collect_at);
        if let Some(max) = self.settings.max_bytes {
            // 12 bytes and one and a half index entries a node, which doubling may leave half
            // empty.
            let room = usize::try_from((max.saturating_sub(self.tables.cache.bytes())) / 30)
                .unwrap_or(usize::MAX);
            self.due = self.due.min(room.max(live + live / 4 + 1));
        }
    }
    /// Returns the number of nodes of some sets together.
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
