//! Saturation: a diagram node at level `k` is closed under all relations that touch no level above
//! `k` before it becomes a child of another node.
//!
//! Ciardo, Lüttgen, Siminiceanu, "Saturation: an efficient iteration strategy for symbolic
//! state-space generation" (TACAS 2001), for list decision diagrams, with relations learned on the
//! fly as in Meijer, Kant, Blom, van de Pol, "Read, write and copy dependencies for symbolic model
//! checking" (HVC 2014) and LTSmin: a relation fires at its top level on a node's list, so the
//! values that it reads are in that node alone.
//!
//! Input -> output: a set and a [`Context`] (the relations to close under, by level) -> the
//! closure. There may be many contexts in one run, such as one for each obligation of a formula.
//! The relations of a level and below are numbered, and the number is a part of the cache's keys:
//! contexts that agree below some level share all work there.
//!
//! Correctness: steps change single vectors, so closed sets are closed under union. A relation with
//! top `k` depends only on values from level `k` on, and everything under a node is reachable below
//! the values above it. Hence a node's closure does not depend on its parents and is cached for the
//! whole search, also while relations grow: it is the closure under the complete relations, which
//! have learned all vectors in it.
//!
//! In the search of the model, a relation that fires again at a node fires on the new part only:
//! images distribute over unions, also closed ones.
//!
//! Invariants: nodes in use are on the manager's stack whenever a collection may happen, which is
//! at the head of [`ReachSearch::fire`] only; relations with a number are never collected.

use super::helpers::HelperTask;
use super::ldd::{Ldd, LevelAction, Plan, op};
use super::learned_steps::Board;
use super::reach::ReachSearch;
use ahash::AHashMap;
use mu_base::Stop;
use mu_base::narrow;
use std::cmp::Ordering;
use std::sync::Arc;

/// Cache code: a list to its closure.
const CLOSURE: u32 = op::EXTERNAL;
/// Cache code: a list with closed tails to its closure.
const FIRE: u32 = op::EXTERNAL + (1 << 26);
/// Cache code: image with closed results.
const IMAGE: u32 = op::EXTERNAL + (2 << 26);
/// Cache code: image with results closed below the first level.
const IMAGE_TOP: u32 = op::EXTERNAL + (3 << 26);

/// A relation that fires at some level.
struct Firing {
    /// Its number.
    index: usize,
    /// The part of it that fires; `None`: all of it, as learned at that time.
    part: Option<Ldd>,
    /// From its top on: the action at a level, and the cache code of the image from there; for the
    /// first level that without firing.
    steps: Arc<[(LevelAction, u32)]>,
}

/// The relations that a set is closed under.
pub(super) struct Context {
    /// By level: the number of the relations there and below, and the relations there.
    levels: Vec<(u32, Vec<Firing>)>,
    /// True if relations learn when they fire.
    pub learning: bool,
}

/// Numbers of parts of contexts. They are as long-lived as the manager's cache.
#[derive(Default)]
pub(super) struct ContextNumbers {
    /// By the relations at a level (0, or 1 + the id of a part) and the number below.
    below: AHashMap<Vec<u32>, u32>,
    /// By plan and the number of the first level's context.
    images: AHashMap<(Plan, u32), u32>,
}

impl ReachSearch<'_> {
    /// Creates a context of whole relations (`None`) or parts of them; other relations do not fire.
    /// Parts must survive collections.
    pub(super) fn context(&mut self, parts: &[(usize, Option<Ldd>)], learning: bool) -> Context {
        let height = self.model.slots().len();
        let mut by_level: Vec<Vec<(usize, Option<Ldd>)>> = vec![Vec::new(); height];
        for &(i, part) in parts {
            if self.relations[i].writes && part != Some(Ldd::EMPTY) {
                by_level[self.relations[i].top].push((i, part));
            }
        }
        let mut levels = Vec::with_capacity(height);
        // Numbers of the processed levels, last level first, after the one beyond.
        let mut numbers = vec![0u32];
        for (level, here) in by_level.into_iter().enumerate().rev() {
            let below = numbers[numbers.len() - 1];
            let number = if here.is_empty() {
                below
            } else {
                let mut key = vec![below, narrow::index(level)];
                key.extend(
                    here.iter()
                        .flat_map(|&(i, part)| [narrow::index(i), part.map_or(0, |p| 1 + p.0)]),
                );
                let fresh = narrow::index(self.numbers.below.len()) + 1;
                *self.numbers.below.entry(key).or_insert(fresh)
            };
            numbers.push(number);
            let firings: Vec<Firing> = here
                .into_iter()
                .map(|(index, part)| {
                    let mut steps = Vec::new();
                    let mut plan = self.relations[index].image[1];
                    while let Some((action, next)) = self.manager.step(plan) {
                        let at = steps.len();
                        // The first level's image is closed only below.
                        let closed = numbers[(numbers.len() - 1).saturating_sub(at.max(1))];
                        let fresh = narrow::index(self.numbers.images.len()) + 1;
                        steps.push((
                            action,
                            *self.numbers.images.entry((plan, closed)).or_insert(fresh),
                        ));
                        plan = next;
                    }
                    let part =
                        if learning { part } else { part.or(Some(self.relations[index].relation)) };
                    Firing { index, part, steps: steps.into() }
                })
                .collect();
            levels.push((number, firings));
        }
        levels.reverse();
        if self.numbers.below.len().max(self.numbers.images.len()) >= 1 << 26 {
            self.halt(Stop::Memory);
        }
        Context { levels, learning }
    }

    /// Returns the closure of a set. Meaningless after a halt.
    pub(super) fn saturate_in(&mut self, context: &Arc<Context>, set: Ldd) -> Ldd {
        self.catch_up();
        // Helpers support neither goal labels nor bounds of values.
        let alike = self.evaluator.wanted.is_none() && self.evaluator.bound.is_none();
        if self.team.is_some() && !self.is_halted() && (!context.learning || alike) {
            let board = context.learning.then(|| Arc::new(Board::new(&self.relations)));
            self.board = board.clone().map(|board| (board, vec![0; self.relations.len()]));
            self.post(HelperTask::Closure { context: context.clone(), set, board });
        }
        let closure = self.saturate(context, set, 0);
        self.withdraw();
        self.catch_up();
        closure
    }

    /// Merges the steps that helpers have learned about sets with closures found in the cache. A
    /// halted search does this when it resumes.
    fn catch_up(&mut self) {
        let Some((board, mut known)) = self.board.take() else { return };
        // No task is on offer any more: wait for the last helper.
        self.manager.recall();
        for (i, known) in known.iter_mut().enumerate() {
            board.read(i, known, &mut self.relations[i], &mut self.manager);
        }
        self.evaluator.calls += board.take_calls();
        if self.is_halted() {
            self.board = Some((board, known));
        }
    }

    /// Returns the closure of a set under all relations. After a halt, returns the set.
    pub(super) fn saturate_all(&mut self, initial: Ldd) -> Ldd {
        let all: Vec<(usize, Option<Ldd>)> = (0..self.relations.len()).map(|i| (i, None)).collect();
        let context = Arc::new(self.context(&all, true));
        let closure = self.saturate_in(&context, initial);
        if self.is_halted() { initial } else { closure }
    }

    pub(super) fn saturate(&mut self, context: &Context, set: Ldd, level: usize) -> Ldd {
        if level == context.levels.len() || set.is_empty() {
            return set;
        }
        let code = CLOSURE | context.levels[level].0;
        if let Some(r) = self.manager.cached_result(code, set, Ldd::EMPTY) {
            return r;
        }
        if self.is_halted() {
            return Ldd::EMPTY;
        }
        let mut done = if self.manager.helps() {
            let parts = self.manager.tails_of(set);
            self.out_of_turn(&parts, |search, &down| search.saturate(context, down, level + 1))
        } else {
            Vec::new()
        }
        .into_iter();
        self.manager.stack.push((0, set));
        let base = self.manager.stack.len();
        let mut same = self.manager.suffix(set);
        let mut at = set;
        while at != Ldd::EMPTY {
            let n = self.manager.node(at);
            let down = done.next().unwrap_or_else(|| self.saturate(context, n.down, level + 1));
            self.manager.stack.push((n.value, down));
            at = n.right;
            if down != n.down {
                same = self.manager.suffix(at);
            }
        }
        let below = self.manager.build_before(base, same);
        let r = self.fire(context, below, level);
        self.manager.remember(code, set, Ldd::EMPTY, r);
        self.manager.remember(code, r, Ldd::EMPTY, r);
        self.manager.stack.pop();
        r
    }

    /// Returns the closure of a list with closed tails.
    fn fire(&mut self, context: &Context, set: Ldd, level: usize) -> Ldd {
        let Some((number, here)) = context.levels.get(level) else { return set };
        if here.is_empty() || set.is_empty() {
            return set;
        }
        let code = FIRE | number;
        if let Some(r) = self.manager.cached_result(code, set, Ldd::EMPTY) {
            return r;
        }
        if self.is_halted() {
            return Ldd::EMPTY;
        }
        // The set, its closure so far, the new part, and for each relation the set to which it was
        // last applied: its image is in the closure.
        let base = self.manager.stack.len();
        self.manager.stack.extend([(0, set), (0, set), (0, Ldd::EMPTY)]);
        self.manager.stack.extend(here.iter().map(|_| (0, Ldd::EMPTY)));
        let mut closure = set;
        let (mut next, mut quiet) = (0, 0);
        while quiet < here.len() && !self.is_halted() {
            self.tidy(&[]);
            let (firing, last) = (&here[next], base + 3 + next);
            next = (next + 1) % here.len();
            // Not so without learning: obligations share images of whole sets, and differences have
            // less in common.
            let new = if context.learning {
                self.manager.minus(closure, self.manager.stack[last].1)
            } else {
                closure
            };
            self.manager.stack[last].1 = closure;
            self.manager.stack[base + 2].1 = new;
            if new.is_empty() {
                quiet += 1;
                continue;
            }
            if context.learning {
                self.learn(firing.index, new, true);
            }
            let relation = firing.part.unwrap_or_else(|| self.relations[firing.index].relation);
            let image = self.image(context, new, relation, &firing.steps, level, true);
            let all = self.manager.union(closure, image);
            quiet = if all == closure { quiet + 1 } else { 0 };
            closure = all;
            self.manager.stack[base + 1].1 = closure;
        }
        self.manager.remember(code, set, Ldd::EMPTY, closure);
        self.manager.remember(code, closure, Ldd::EMPTY, closure);
        self.manager.stack.truncate(base);
        closure
    }

    /// Returns the results for all parts; a helper starts at another part.
    fn out_of_turn<T>(
        &mut self,
        parts: &[T],
        mut work: impl FnMut(&mut Self, &T) -> Ldd,
    ) -> Vec<Ldd> {
        let mut results = vec![Ldd::EMPTY; parts.len()];
        for i in self.manager.turns(parts.len()) {
            results[i] = work(self, &parts[i]);
        }
        results
    }

    /// Returns the image of a list with closed tails; its tails are closed, and unless `top` the
    /// list too.
    fn image(
        &mut self,
        context: &Context,
        set: Ldd,
        relation: Ldd,
        steps: &[(LevelAction, u32)],
        level: usize,
        top: bool,
    ) -> Ldd {
        if set.is_empty() || relation.is_empty() {
            return Ldd::EMPTY;
        }
        let Some((&(action, number), next)) = steps.split_first() else { return set };
        let code = number | if top { IMAGE_TOP } else { IMAGE };
        if let Some(r) = self.manager.cached_result(code, set, relation) {
            return r;
        }
        if self.is_halted() {
            return Ldd::EMPTY;
        }
        let mut done = if self.manager.helps() {
            let parts = self.manager.image_parts(set, relation, action);
            self.out_of_turn(&parts, |search, &(down, rest)| {
                search.image(context, down, rest, next, level + 1, false)
            })
        } else {
            Vec::new()
        }
        .into_iter();
        let base = self.manager.stack.len();
        let mut r = match action {
            LevelAction::Read | LevelAction::ReadWrite => {
                let (mut x, mut y) = (set, relation);
                while x != Ldd::EMPTY && y != Ldd::EMPTY {
                    let (n, m) = (self.manager.node(x), self.manager.node(y));
                    match n.value.cmp(&m.value) {
                        Ordering::Less => x = n.right,
                        Ordering::Greater => y = m.right,
                        Ordering::Equal => {
                            if action == LevelAction::Read {
                                let down = done.next().unwrap_or_else(|| {
                                    self.image(context, n.down, m.down, next, level + 1, false)
                                });
                                self.manager.stack.push((n.value, down));
                            } else {
                                let mut write = m.down;
                                while write != Ldd::EMPTY {
                                    let w = self.manager.node(write);
                                    let down = done.next().unwrap_or_else(|| {
                                        self.image(context, n.down, w.down, next, level + 1, false)
                                    });
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
                if action == LevelAction::Read {
                    self.manager.build(base, Ldd::EMPTY)
                } else {
                    self.manager.build_unsorted(base)
                }
            }
            LevelAction::Write => {
                let below = self.manager.tails(set);
                self.manager.stack.push((0, below));
                let mut write = relation;
                while write != Ldd::EMPTY {
                    let w = self.manager.node(write);
                    let down = done.next().unwrap_or_else(|| {
                        self.image(context, below, w.down, next, level + 1, false)
                    });
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
                    let down = done.next().unwrap_or_else(|| {
                        self.image(context, n.down, relation, next, level + 1, false)
                    });
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
            r = self.fire(context, r, level);
        }
        self.manager.remember(code, set, relation, r);
        r
    }
}
