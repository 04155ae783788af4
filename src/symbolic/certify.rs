//! Verification of a player's winning region and strategy in an [`Arena`]. Shares no code with the
//! solver.
//!
//! The conditions are those of `game::verify`, over sets: (1) at the player's own vertices a choice
//! leads into the region, unless they are won by themselves; (2) all moves of the opponent, and all
//! choices, stay in the region; (3) no cycle remains with a highest priority of the opponent. Moves
//! are followed forwards here, while the solver works backwards. A strategy may permit several
//! moves; then all are checked.
//!
//! For (3), for each such priority: vertices of higher priorities are removed; vertices without an
//! infinite play are removed layer by layer; of the rest, only vertices remain from which a vertex
//! of the priority can be reached infinitely often (Emerson and Lei, "Efficient model checking in
//! fragments of the propositional mu-calculus", LICS 1986). None may remain.
//!
//! Cost: an image for each move, and for each priority a preimage for each choice and layer.
//! Invariant: only the sets of a choice are used.

use super::arena::{Arena, Family, Player};
use super::ldd::Ldd;
use super::zielonka::{MoveChoice, Region};
use std::collections::BTreeSet;

/// Moves that the player's strategy permits: from some states to others (`None`: from all to all).
#[derive(Clone, Copy)]
struct PermittedMove {
    by: usize,
    only: Option<(Ldd, Ldd)>,
}

/// Reason for rejecting a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// The region contains a vertex that is not in the game.
    NoVertex,
    /// The region contains a vertex that the opponent wins by itself.
    Decided,
    /// The player has no choice at one of its vertices.
    NoChoice,
    /// A choice is not a move, or leaves the region.
    BadChoice,
    /// The opponent can leave the region.
    Leaves,
    /// A cycle remains that the opponent wins.
    Cycle,
}

impl Arena<'_, '_> {
    /// Returns a flaw of the region; `None` if it is correct. The result is meaningless after a
    /// halt.
    pub fn flaw(&mut self, player: Player, region: &Region) -> Option<Flaw> {
        let won = &region.won;
        let mut by_place: Vec<Vec<MoveChoice>> = vec![Vec::new(); self.places.len()];
        for &choice in &region.choices {
            by_place[self.moves[choice.by].from].push(choice);
        }
        let base = self.hold(won);
        // The remaining game: the vertices that are not won by themselves, and the permitted moves.
        let (mut open, mut left) = (self.nothing(), Vec::new());
        for place in 0..self.places.len() {
            let vertices = self.vertices[place];
            if !self.search.manager.includes(vertices, won[place]) {
                return Some(Flaw::NoVertex);
            }
            let settled = self.decided_states(place, won[place]);
            let own = self.places[place].owner == player;
            if !own && !settled.is_empty() {
                return Some(Flaw::Decided);
            }
            open[place] = self.search.manager.minus(won[place], settled);
            if own {
                if let Some(flaw) =
                    self.check_choices(won, open[place], &by_place[place], &mut left)
                {
                    return Some(flaw);
                }
                continue;
            }
            for by in self.places[place].out.clone() {
                let image = self.image(self.moves[by].by, open[place]);
                if !self.search.manager.includes(won[self.moves[by].to], image) {
                    return Some(Flaw::Leaves);
                }
                if !image.is_empty() {
                    left.push(PermittedMove { by, only: None });
                }
                self.tidy(&[&open], &[]);
            }
        }
        self.hold(&open);
        let theirs = |p: &usize| {
            !open[*p].is_empty() && Player::of_priority(self.places[*p].priority) != player
        };
        let priorities: BTreeSet<u32> =
            (0..open.len()).filter(theirs).map(|p| self.places[p].priority).collect();
        let cycle = priorities.into_iter().any(|priority| self.has_cycle(&open, &left, priority));
        self.release(base);
        cycle.then_some(Flaw::Cycle)
    }

    /// Checks that the choices of a place are moves within the region and cover its open vertices.
    fn check_choices(
        &mut self,
        won: &Family,
        open: Ldd,
        choices: &[MoveChoice],
        left: &mut Vec<PermittedMove>,
    ) -> Option<Flaw> {
        let mut rest = open;
        for choice in choices {
            let arrow = self.moves[choice.by];
            let from = self.search.manager.intersect(choice.from, open);
            let image = self.image(arrow.by, from);
            let to = self.search.manager.intersect(image, choice.to);
            let movers = self.predecessors(arrow.by, to, from);
            if movers != from || !self.search.manager.includes(won[arrow.to], to) {
                return Some(Flaw::BadChoice);
            }
            rest = self.search.manager.minus(rest, from);
            if !from.is_empty() {
                self.search.pinned.extend([from, to]);
                left.push(PermittedMove { by: choice.by, only: Some((from, to)) });
            }
        }
        (!rest.is_empty()).then_some(Flaw::NoChoice)
    }

    /// True if the remaining game has a cycle with this highest priority.
    fn has_cycle(&mut self, open: &Family, left: &[PermittedMove], priority: u32) -> bool {
        let mut rest: Family = self.nothing();
        for place in 0..open.len() {
            if self.places[place].priority <= priority {
                rest[place] = open[place];
            }
        }
        let inside = |arena: &Self, l: &&PermittedMove| {
            [arena.moves[l.by].from, arena.moves[l.by].to]
                .iter()
                .all(|&p| arena.places[p].priority <= priority)
        };
        let left: Vec<PermittedMove> = left.iter().filter(|l| inside(self, l)).copied().collect();
        let is_goal: Vec<bool> = self.places.iter().map(|p| p.priority == priority).collect();
        while !self.search.is_halted() {
            self.trim(&mut rest, &left);
            let goals: Family = rest
                .iter()
                .zip(&is_goal)
                .map(|(&set, &is)| if is { set } else { Ldd::EMPTY })
                .collect();
            if goals.iter().all(|set| set.is_empty()) {
                return false;
            }
            let able = self.backward_closure(goals, &rest, &left);
            if able == rest {
                return true;
            }
            rest = able;
        }
        false
    }

    /// Returns the members of `within` with a permitted move into a set.
    fn permitted_predecessors(&mut self, l: PermittedMove, goal: Ldd, within: Ldd) -> Ldd {
        let by = self.moves[l.by].by;
        match l.only {
            None => self.predecessors(by, goal, within),
            Some((from, to)) => {
                let goal = self.search.manager.intersect(goal, to);
                let within = self.search.manager.intersect(within, from);
                self.predecessors(by, goal, within)
            }
        }
    }

    /// Removes vertices without an infinite play.
    fn trim(&mut self, rest: &mut Family, left: &[PermittedMove]) {
        let count = self.places.len();
        let (mut out, mut into) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for l in left {
            out[self.moves[l.by].from].push(*l);
            into[self.moves[l.by].to].push(*l);
        }
        // Candidates for removal, by place: initially all.
        let mut frontier = rest.clone();
        let mut gone = self.nothing();
        let mut queue: BTreeSet<usize> = (0..count).collect();
        while let Some(place) = queue.pop_first() {
            if self.search.is_halted() {
                return;
            }
            let mut dead = self.search.manager.intersect(frontier[place], rest[place]);
            frontier[place] = Ldd::EMPTY;
            for l in &out[place] {
                if dead.is_empty() {
                    break;
                }
                let alive = self.permitted_predecessors(*l, rest[self.moves[l.by].to], dead);
                dead = self.search.manager.minus(dead, alive);
                self.tidy(&[rest, &frontier, &gone], &[dead]);
            }
            if !dead.is_empty() {
                rest[place] = self.search.manager.minus(rest[place], dead);
                gone[place] = dead;
                for l in &into[place] {
                    let from = self.moves[l.by].from;
                    let near = self.permitted_predecessors(*l, dead, rest[from]);
                    if !near.is_empty() {
                        frontier[from] = self.search.manager.union(frontier[from], near);
                        queue.insert(from);
                    }
                    self.tidy(&[rest, &frontier, &gone], &[]);
                }
            }
        }
    }

    /// Returns the vertices of a family that reach `goals` by at least one step within it.
    fn backward_closure(
        &mut self,
        goals: Family,
        within: &Family,
        left: &[PermittedMove],
    ) -> Family {
        let mut found = self.nothing();
        let mut fresh = goals;
        let base = self.hold(within);
        while let Some(place) = (0..fresh.len()).find(|&p| !fresh[p].is_empty()) {
            if self.search.is_halted() {
                break;
            }
            let goal = std::mem::take(&mut fresh[place]);
            for l in
                left.iter().filter(|l| self.moves[l.by].to == place).copied().collect::<Vec<_>>()
            {
                let from = self.moves[l.by].from;
                let before = self.permitted_predecessors(l, goal, within[from]);
                let new = self.search.manager.minus(before, found[from]);
                found[from] = self.search.manager.union(found[from], new);
                fresh[from] = self.search.manager.union(fresh[from], new);
                self.tidy(&[&found, &fresh], &[goal]);
            }
        }
        self.release(base);
        found
    }
}
