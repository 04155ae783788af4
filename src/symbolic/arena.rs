//! Parity game over sets of states: the product of a model and an alternating observer.
//!
//! Input -> output: a [`Model`] and [`GameRules`] (a formula: obligations are its states with their
//! data) -> the reachable vertices, one set of states for each obligation, and the moves between
//! them. A vertex is a pair of obligation and state. Its owner chooses a move: to another
//! obligation at the same state, possibly only if it has some outgoing label, or along a step of
//! the model.
//!
//! The model alone is searched first, which completes the relations. Then each obligation's set is
//! closed by saturation under the steps that preserve it, as in `product.rs`. Solvers see families
//! of sets (one for each obligation), images and preimages, but no relations. Cf. Kant and van de
//! Pol, "Generating and solving symbolic parity games" (GRAPHITE 2014), where one relation holds
//! the formula's part too; here obligations are separate, so that their data needs no slot and sets
//! of different obligations share their nodes.
//!
//! Cost: for each obligation at most a search of the model. Invariants: the vertices are closed
//! under the moves of all vertices that are not decided by themselves; sets stored here are pinned
//! in the search.

use super::label_classes::Classes;
use super::ldd::Ldd;
use super::reach::ReachSearch;
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// A player of the game.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Player {
    /// Wins plays in which the highest priority that recurs is even; loses without a move.
    Even,
    /// The opponent of `Even`.
    Odd,
}

impl Player {
    /// Returns the opponent.
    pub fn opponent(self) -> Self {
        match self {
            Player::Even => Player::Odd,
            Player::Odd => Player::Even,
        }
    }
    /// Returns the player who wins a priority.
    pub fn of_priority(priority: u32) -> Self {
        if priority.is_multiple_of(2) { Player::Even } else { Player::Odd }
    }
}

/// Obligations (ascending); `None`: the owner of the vertex has won.
pub type Answer = Option<Rc<[u32]>>;

/// A game on the labels of a model. Obligations are numbers chosen by the implementation.
pub trait GameRules {
    /// Returns the representative of the labels that the game does not distinguish from this one.
    fn class(&mut self, label: LabelId) -> Result<LabelId, Diagnostic>;
    /// Returns the owner of an obligation.
    fn owner(&self, obligation: u32) -> Player;
    /// Returns the priority; the highest one that recurs decides a play.
    fn priority(&self, obligation: u32) -> u32;
    /// Returns the unconditional moves at the same state.
    fn moves_here(&mut self, obligation: u32) -> Result<Answer, Diagnostic>;
    /// Returns the moves at the same state that exist if this label leaves it.
    fn moves_here_if(&mut self, obligation: u32, label: LabelId) -> Result<Answer, Diagnostic>;
    /// Returns the moves along a step with this label.
    fn step(&mut self, obligation: u32, label: LabelId) -> Result<Answer, Diagnostic>;
}

/// Kind of a move.
#[derive(Clone, Copy, Debug)]
pub(super) enum MoveKind {
    /// Along steps of a relation.
    Step { relation: usize, rows: Ldd },
    /// Only the obligation changes, in these states (`None`: in all).
    Here { able: Option<Ldd> },
}

/// Moves from the vertices of one obligation to those of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArenaMove {
    pub from: usize,
    pub to: usize,
    pub by: MoveKind,
}

/// A reachable obligation.
#[derive(Debug)]
pub(super) struct ArenaPlace {
    pub obligation: u32,
    pub owner: Player,
    pub priority: u32,
    /// True if the owner has won in every state.
    pub decided: bool,
    /// Steps with which the owner wins.
    pub decides: Vec<(usize, Ldd)>,
    /// Indices of the moves from here.
    pub out: Vec<usize>,
}

/// A set of states for each place.
pub(super) type Family = Vec<Ldd>;

/// The relations, whole or in part, under which the set of a place is closed.
type Context = Arc<super::saturation::Context>;

/// The game.
pub(super) struct Arena<'a, 'm> {
    pub search: ReachSearch<'m>,
    pub rules: &'a mut dyn GameRules,
    /// The states of the model.
    pub all: Ldd,
    classes: Classes,
    pub places: Vec<ArenaPlace>,
    pub place_of: AHashMap<u32, usize>,
    pub moves: Vec<ArenaMove>,
    /// MoveKind place: the places with moves to it, and these moves.
    pub into: Vec<BTreeMap<usize, Vec<usize>>>,
    pub vertices: Family,
    contexts: Vec<Option<Context>>,
    /// Places that start the game.
    pub roots: Vec<usize>,
}

impl<'a, 'm> Arena<'a, 'm> {
    /// Creates a game from a search with complete relations. `all`: the states of the model, which
    /// must survive collections.
    pub fn new(
        mut search: ReachSearch<'m>,
        rules: &'a mut dyn GameRules,
        all: Ldd,
    ) -> Result<Self, Diagnostic> {
        let classes = Classes::new(&mut search, &mut |label| rules.class(label))?;
        Ok(Self {
            search,
            rules,
            all,
            classes,
            places: Vec::new(),
            place_of: AHashMap::new(),
            moves: Vec::new(),
            into: Vec::new(),
            vertices: Family::new(),
            contexts: Vec::new(),
            roots: Vec::new(),
        })
    }

    /// Computes all vertices reachable from these obligations at the initial state.
    pub fn explore(&mut self, start: &[u32]) -> Result<(), Diagnostic> {
        let initial = self.search.initial();
        self.search.pinned.push(initial);
        // States that are not processed yet, by place.
        let mut pending = Family::new();
        let mut queue = BTreeSet::new();
        for &q in start {
            let place = self.place(q);
            if !self.roots.contains(&place) {
                self.roots.push(place);
            }
            pending.resize(self.places.len(), Ldd::EMPTY);
            pending[place] = initial;
            queue.insert(place);
        }
        while let Some(i) = queue.pop_first() {
            let moves = self.outline(i)?;
            pending.resize(self.places.len(), Ldd::EMPTY);
            let fresh = self.close(i, pending[i]);
            pending[i] = Ldd::EMPTY;
            let base = self.hold(&[fresh]);
            for m in moves {
                let ArenaMove { to, by, .. } = self.moves[m];
                let image = self.image(by, fresh);
                let set = self.search.manager.minus(image, self.vertices[to]);
                if !set.is_empty() && to != i {
                    pending[to] = self.search.manager.union(pending[to], set);
                    queue.insert(to);
                }
                self.tidy(&[&pending], &[]);
                if self.search.is_halted() {
                    return Ok(());
                }
            }
            self.release(base);
        }
        self.into = vec![BTreeMap::new(); self.places.len()];
        for (m, arrow) in self.moves.iter().enumerate() {
            self.into[arrow.to].entry(arrow.from).or_default().push(m);
        }
        Ok(())
    }

    /// Adds states to a place, closed under the steps that preserve its obligation. Returns the new
    /// ones that are not decided by themselves.
    fn close(&mut self, i: usize, set: Ldd) -> Ldd {
        let seen = self.vertices[i];
        let new = self.search.manager.minus(set, seen);
        let mut fresh = new;
        if let Some(context) = self.contexts[i].clone() {
            self.search.manager.stack.push((0, new));
            let closure = self.search.saturate_in(&context, new);
            fresh = self.search.manager.minus(closure, seen);
            self.search.manager.stack.pop();
        }
        self.vertices[i] = self.search.manager.union(seen, fresh);
        let settled = self.decided_states(i, fresh);
        self.search.manager.minus(fresh, settled)
    }

    /// Returns the states of a set that the owner of a place has won by itself.
    pub fn decided_states(&mut self, place: usize, set: Ldd) -> Ldd {
        if self.places[place].decided {
            return set;
        }
        let mut settled = Ldd::EMPTY;
        for i in 0..self.places[place].decides.len() {
            let (relation, rows) = self.places[place].decides[i];
            let some = self.search.sources(set, relation, rows);
            settled = self.search.manager.union(settled, some);
        }
        settled
    }

    /// Returns the place of an obligation; adds it if it is new.
    fn place(&mut self, obligation: u32) -> usize {
        let fresh = self.places.len();
        let place = *self.place_of.entry(obligation).or_insert(fresh);
        if place == fresh {
            let (owner, priority) = (self.rules.owner(obligation), self.rules.priority(obligation));
            self.places.push(ArenaPlace {
                obligation,
                owner,
                priority,
                decided: false,
                decides: Vec::new(),
                out: Vec::new(),
            });
            self.vertices.push(Ldd::EMPTY);
            self.contexts.push(None);
        }
        place
    }

    /// Returns the moves from a place; computes them on first use.
    fn outline(&mut self, i: usize) -> Result<Vec<usize>, Diagnostic> {
        if self.contexts[i].is_some() || self.places[i].decided {
            return Ok(self.places[i].out.clone());
        }
        let q = self.places[i].obligation;
        let Some(here) = self.rules.moves_here(q)? else {
            self.places[i].decided = true;
            return Ok(Vec::new());
        };
        for &to in here.iter() {
            self.add(i, to, MoveKind::Here { able: None });
        }
        // By target: the classes that lead there along a step, and those that lead there if they
        // leave.
        let mut targets: [BTreeMap<u32, BTreeSet<usize>>; 2] = Default::default();
        let mut deciding = BTreeSet::new();
        for (class, label) in self.classes.labels.clone().into_iter().enumerate() {
            for (way, answer) in [self.rules.step(q, label)?, self.rules.moves_here_if(q, label)?]
                .into_iter()
                .enumerate()
            {
                match answer {
                    None => _ = deciding.insert(class),
                    Some(all) => all
                        .iter()
                        .for_each(|&to| _ = targets[way].entry(to).or_default().insert(class)),
                }
            }
        }
        for (to, classes) in &targets[1] {
            let mut able = Ldd::EMPTY;
            for relation in 0..self.classes.relations() {
                let rows = self
                    .classes
                    .part(&mut self.search, relation, &|class| classes.contains(&class));
                let some = self.search.sources(self.all, relation, rows);
                able = self.search.manager.union(able, some);
            }
            self.search.pinned.push(able);
            self.add(i, *to, MoveKind::Here { able: Some(able) });
        }
        let mut keeps = Vec::new();
        for relation in 0..self.classes.relations() {
            let rows =
                self.classes.part(&mut self.search, relation, &|class| deciding.contains(&class));
            if !rows.is_empty() {
                self.search.pinned.push(rows);
                self.places[i].decides.push((relation, rows));
            }
            for (to, classes) in &targets[0] {
                if self.classes.of(relation).all(|class| !classes.contains(&class)) {
                    continue;
                }
                let whole = self.classes.of(relation).all(|class| classes.contains(&class));
                let rows = match whole {
                    true => self.search.relations[relation].relation,
                    false => self
                        .classes
                        .part(&mut self.search, relation, &|class| classes.contains(&class)),
                };
                self.search.pinned.push(rows);
                self.add(i, *to, MoveKind::Step { relation, rows });
                if *to == q {
                    keeps.push((relation, (!whole).then_some(rows)));
                }
            }
        }
        self.contexts[i] = Some(Arc::new(self.search.context(&keeps, false)));
        Ok(self.places[i].out.clone())
    }

    fn add(&mut self, from: usize, obligation: u32, by: MoveKind) {
        let to = self.place(obligation);
        self.places[from].out.push(self.moves.len());
        self.moves.push(ArenaMove { from, to, by });
    }

    /// Returns the image of a set under a move.
    pub fn image(&mut self, by: MoveKind, set: Ldd) -> Ldd {
        match by {
            MoveKind::Here { able: None } => set,
            MoveKind::Here { able: Some(able) } => self.search.manager.intersect(set, able),
            MoveKind::Step { relation, rows } => {
                let plan = self.search.relations[relation].image[0];
                self.search.manager.relprod(set, rows, plan)
            }
        }
    }
    /// Returns the members of `within` with a move into a set.
    pub fn predecessors(&mut self, by: MoveKind, goal: Ldd, within: Ldd) -> Ldd {
        match by {
            MoveKind::Here { able } => {
                let set = self.search.manager.intersect(goal, within);
                able.map_or(set, |able| self.search.manager.intersect(set, able))
            }
            MoveKind::Step { relation, rows } => {
                let plan = self.search.relations[relation].image[0];
                self.search.manager.relprev(goal, rows, plan, within)
            }
        }
    }
    /// Returns the members of a set that have such a move.
    pub fn movers(&mut self, by: MoveKind, set: Ldd) -> Ldd {
        match by {
            MoveKind::Here { able: None } => set,
            MoveKind::Here { able: Some(able) } => self.search.manager.intersect(set, able),
            MoveKind::Step { relation, rows } => self.search.sources(set, relation, rows),
        }
    }

    /// Protects sets from collections until they are released.
    pub fn hold(&mut self, sets: &[Ldd]) -> usize {
        let base = self.search.manager.stack.len();
        self.search.manager.stack.extend(sets.iter().map(|&set| (0, set)));
        base
    }
    /// Releases all sets protected since `base`.
    pub fn release(&mut self, base: usize) {
        self.search.manager.stack.truncate(base);
    }
    /// Collects dead nodes if a collection is due. Protects these families and sets, the held sets
    /// and the vertices.
    pub fn tidy(&mut self, families: &[&Family], sets: &[Ldd]) {
        if self.search.manager.collection_due() {
            let mut roots: Vec<Ldd> = families
                .iter()
                .flat_map(|f| f.iter().copied())
                .chain(sets.iter().copied())
                .collect();
            roots.extend(&self.vertices);
            self.search.tidy(&roots);
        }
    }

    /// Returns an empty family.
    pub fn nothing(&self) -> Family {
        vec![Ldd::EMPTY; self.places.len()]
    }
    /// Returns the difference of two families.
    pub fn difference(&mut self, family: &Family, other: &Family) -> Family {
        family.iter().zip(other).map(|(&a, &b)| self.search.manager.minus(a, b)).collect()
    }
    /// Returns the union of two families.
    pub fn with(&mut self, family: &Family, other: &Family) -> Family {
        family.iter().zip(other).map(|(&a, &b)| self.search.manager.union(a, b)).collect()
    }
}
