//! Saturation: a diagram node at level `k` is closed under all relations that touch no level above `k` before it is put under another node.
//!
//! Ciardo, Lüttgen, Siminiceanu, "Saturation: an efficient iteration strategy for symbolic state-space generation" (TACAS 2001), for list
//! decision diagrams, with relations learned on the fly as in Meijer, Kant, Blom, van de Pol, "Read, write and copy dependencies for symbolic
//! model checking" (HVC 2014) and LTSmin: a relation fires at its top level on a node's list, so what it reads is cut out of that node alone.
//!
//! Why it is right: steps change single vectors, so closed sets are closed under union; a relation with top `k` sees only values from level `k`
//! on, and everything under a node is reachable below the values above it. Hence a node's closure does not depend on where it stands and is
//! cached for the whole search, also while relations grow: it is the closure under the whole relations, of which it has learned all that it met.
//!
//! Invariant: nodes in use are on the manager's stack whenever a collection may happen, which is at the head of [`Search::fire`] only.

use super::ldd::{Action, Ldd, Plan, op};
use super::reach::Search;
use std::cmp::Ordering;

/// Cache code: a list to its closure.
const CLOSURE: u32 = op::EXTERNAL;
/// Cache code: a list whose tails are closed to its closure.
const FIRE: u32 = op::EXTERNAL + (1 << 26);
/// Cache code: image with results closed.
const IMAGE: u32 = op::EXTERNAL + (2 << 26);
/// Cache code: image with results closed below the first level.
const IMAGE_TOP: u32 = op::EXTERNAL + (3 << 26);

/// The relations that fire at each level.
type Levels = Vec<Vec<usize>>;

impl Search<'_> {
    /// The closure of a set under all relations. On a halt, some of the closure.
    pub(super) fn saturate_all(&mut self, initial: Ldd) -> Ldd {
        let mut levels: Levels = vec![Vec::new(); self.model.slots().len()];
        for (i, r) in self.relations.iter().enumerate().filter(|r| r.1.writes) {
            levels[r.top].push(i);
        }
        let closure = self.saturate(&levels, initial, 0);
        if self.halted() { initial } else { closure }
    }

    fn saturate(&mut self, levels: &Levels, set: Ldd, level: usize) -> Ldd {
        if level == levels.len() || set.is_empty() {
            return set;
        }
        if let Some(r) = self.manager.cached(CLOSURE, set, Ldd::EMPTY) {
            return r;
        }
        if self.halted() {
            return Ldd::EMPTY;
        }
        self.manager.stack.push((0, set));
        let base = self.manager.stack.len();
        let mut same = self.manager.suffix(set);
        let mut at = set;
        while at != Ldd::EMPTY {
            let n = self.manager.node(at);
            let down = self.saturate(levels, n.down, level + 1);
            self.manager.stack.push((n.value, down));
            at = n.right;
            if down != n.down {
                same = self.manager.suffix(at);
            }
        }
        let below = self.manager.build_before(base, same);
        let r = self.fire(levels, below, level);
        self.manager.remember(CLOSURE, set, Ldd::EMPTY, r);
        self.manager.remember(CLOSURE, r, Ldd::EMPTY, r);
        self.manager.stack.pop();
        r
    }

    /// The closure of a list whose tails are closed.
    fn fire(&mut self, levels: &Levels, set: Ldd, level: usize) -> Ldd {
        if level == levels.len() || set.is_empty() || levels[level].is_empty() {
            return set;
        }
        if let Some(r) = self.manager.cached(FIRE, set, Ldd::EMPTY) {
            return r;
        }
        if self.halted() {
            return Ldd::EMPTY;
        }
        let place = self.manager.stack.len() + 1;
        self.manager.stack.extend([(0, set), (0, set)]);
        let mut closure = set;
        let here = &levels[level];
        let (mut next, mut quiet) = (0, 0);
        while quiet < here.len() && !self.halted() {
            self.tidy(&[]);
            let i = here[next];
            next = (next + 1) % here.len();
            self.learn(i, closure, true);
            let (relation, plan) = (self.relations[i].relation, self.relations[i].image[1]);
            let image = self.image(levels, closure, relation, plan, level, true);
            let all = self.manager.union(closure, image);
            quiet = if all == closure { quiet + 1 } else { 0 };
            closure = all;
            self.manager.stack[place].1 = closure;
        }
        self.manager.remember(FIRE, set, Ldd::EMPTY, closure);
        self.manager.remember(FIRE, closure, Ldd::EMPTY, closure);
        self.manager.stack.truncate(place - 1);
        closure
    }

    /// The image of a list whose tails are closed; its tails are closed, and unless `top` so is itself.
    fn image(&mut self, levels: &Levels, set: Ldd, relation: Ldd, plan: Plan, level: usize, top: bool) -> Ldd {
        if set.is_empty() || relation.is_empty() {
            return Ldd::EMPTY;
        }
        let Some((action, next)) = self.manager.step(plan) else { return set };
        let code = plan.code(if top { IMAGE_TOP } else { IMAGE });
        if let Some(r) = self.manager.cached(code, set, relation) {
            return r;
        }
        if self.halted() {
            return Ldd::EMPTY;
        }
        let base = self.manager.stack.len();
        let mut r = match action {
            Action::Read | Action::ReadWrite => {
                let (mut x, mut y) = (set, relation);
                while x != Ldd::EMPTY && y != Ldd::EMPTY {
                    let (n, m) = (self.manager.node(x), self.manager.node(y));
                    match n.value.cmp(&m.value) {
                        Ordering::Less => x = n.right,
                        Ordering::Greater => y = m.right,
                        Ordering::Equal => {
                            if action == Action::Read {
                                let down = self.image(levels, n.down, m.down, next, level + 1, false);
                                self.manager.stack.push((n.value, down));
                            } else {
                                let mut write = m.down;
                                while write != Ldd::EMPTY {
                                    let w = self.manager.node(write);
                                    let down = self.image(levels, n.down, w.down, next, level + 1, false);
                                    if !down.is_empty() {
                                        self.manager.stack.push((w.value, down));
                                    }
                                    write = w.right;
                                }
                            }
                            (x, y) = (n.right, m.right);
                        }
                    }
                }
                if action == Action::Read { self.manager.build(base, Ldd::EMPTY) } else { self.manager.build_unsorted(base) }
            }
            Action::Write => {
                let below = self.manager.tails(set);
                self.manager.stack.push((0, below));
                let mut write = relation;
                while write != Ldd::EMPTY {
                    let w = self.manager.node(write);
                    let down = self.image(levels, below, w.down, next, level + 1, false);
                    self.manager.stack.push((w.value, down));
                    write = w.right;
                }
                let r = self.manager.build(base + 1, Ldd::EMPTY);
                self.manager.stack.truncate(base);
                r
            }
            _ => {
                let mut same = self.manager.suffix(set);
                let mut at = set;
                while at != Ldd::EMPTY {
                    let n = self.manager.node(at);
                    let down = self.image(levels, n.down, relation, next, level + 1, false);
                    self.manager.stack.push((n.value, down));
                    at = n.right;
                    if down != n.down {
                        same = self.manager.suffix(at);
                    }
                }
                self.manager.build_before(base, same)
            }
        };
        if !top {
            r = self.fire(levels, r, level);
        }
        self.manager.remember(code, set, relation, r);
        r
    }
}
