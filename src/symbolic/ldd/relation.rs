//! Operations with a [`Plan`]: projection, matching, image and preimage of short-vector relations.
//!
//! A relation over some levels is a set of short vectors: for each level that it touches, in order,
//! the value read (if it reads), then the value written (if it writes). Other levels do not occur
//! in it.

use super::{Ldd, LevelAction, Manager, Plan, op};

impl Manager {
    /// Returns the parts of an image at a level: pairs of a set and a relation from the next level
    /// on.
    pub(crate) fn image_parts(
        &mut self,
        set: Ldd,
        relation: Ldd,
        action: LevelAction,
    ) -> Vec<(Ldd, Ldd)> {
        let mut parts = Vec::new();
        match action {
            LevelAction::Read | LevelAction::ReadWrite => {
                let (mut x, mut y) = (set, relation);
                while let Some((n, m)) = self.next_common(&mut x, &mut y) {
                    if action == LevelAction::Read {
                        parts.push((n.down, m.down));
                    } else {
                        parts.extend(self.tails_of(m.down).into_iter().map(|down| (n.down, down)));
                    }
                }
            }
            LevelAction::Write => {
                let below = self.tails(set);
                parts.extend(self.tails_of(relation).into_iter().map(|down| (below, down)));
            }
            _ => parts.extend(self.tails_of(set).into_iter().map(|down| (down, relation))),
        }
        parts
    }
    /// Returns the tails of each first value.
    pub(crate) fn tails_of(&self, set: Ldd) -> Vec<Ldd> {
        let (mut all, mut at) = (Vec::new(), set);
        while at.0 > 1 {
            let n = self.node(at);
            all.push(n.down);
            at = n.right;
        }
        all
    }

    /// Returns the union of the tails: the set without its first level.
    pub fn tails(&mut self, set: Ldd) -> Ldd {
        let n = self.node(set);
        if n.right == Ldd::EMPTY {
            return n.down;
        }
        if let Some(r) = self.cached_result(op::TAILS, set, Ldd::EMPTY) {
            return r;
        }
        let (mut r, mut at) = (n.down, n.right);
        while at != Ldd::EMPTY {
            let n = self.node(at);
            r = self.union(r, n.down);
            at = n.right;
        }
        self.remember(op::TAILS, set, Ldd::EMPTY, r);
        r
    }

    /// Returns the projection of a set to the levels that the plan keeps (actions `Keep`, `Among`,
    /// `Drop`, `Require`; levels beyond the end are dropped).
    pub fn project(&mut self, set: Ldd, plan: Plan) -> Ldd {
        let Some((action, next)) = self.step(plan) else {
            return if set.is_empty() { Ldd::EMPTY } else { Ldd::UNIT };
        };
        if set.is_empty() || self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        if let LevelAction::Require(value) = action {
            let down = self.child(set, value);
            return self.project(down, next);
        }
        let code = plan.code(op::PROJECT);
        if let Some(r) = self.cached_result(code, set, Ldd::EMPTY) {
            return r;
        }
        // Not the tails of values that the plan excludes.
        if self.helps() && !matches!(action, LevelAction::Among(_)) {
            let parts = self.tails_of(set);
            for &down in self.ahead(&parts) {
                self.project(down, next);
            }
        }
        let mut at = set;
        let r = if let LevelAction::Among(list) = action {
            let (base, values) = (self.stack.len(), self.plans.values(list));
            let mut wanted = values.iter().copied().peekable();
            while at != Ldd::EMPTY
                && let Some(&value) = wanted.peek()
            {
                let n = self.node(at);
                if n.value == value {
                    let down = self.project(n.down, next);
                    self.stack.push((value, down));
                }
                if value <= n.value {
                    wanted.next();
                }
                if n.value <= value {
                    at = n.right;
                }
            }
            self.build(base, Ldd::EMPTY)
        } else if action == LevelAction::Keep {
            let base = self.stack.len();
            while at != Ldd::EMPTY {
                let n = self.node(at);
                let down = self.project(n.down, next);
                self.stack.push((n.value, down));
                at = n.right;
            }
            self.build(base, Ldd::EMPTY)
        } else {
            let mut r = Ldd::EMPTY;
            while at != Ldd::EMPTY {
                let n = self.node(at);
                let down = self.project(n.down, next);
                r = self.union(r, down);
                at = n.right;
            }
            r
        };
        self.remember(code, set, Ldd::EMPTY, r);
        r
    }

    /// Returns the vectors with each value at a `Keep` level doubled, and a last level of the value
    /// 0.
    pub fn twins(&mut self, set: Ldd, plan: Plan) -> Ldd {
        if set == Ldd::UNIT {
            return self.make(0, Ldd::UNIT, Ldd::EMPTY);
        }
        if set.is_empty() || self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        let code = plan.code(op::TWINS);
        if let Some(r) = self.cached_result(code, set, Ldd::EMPTY) {
            return r;
        }
        let (double, next) = self
            .step(plan)
            .map_or((false, Plan::END), |(action, next)| (action == LevelAction::Keep, next));
        let base = self.stack.len();
        let mut at = set;
        while at != Ldd::EMPTY {
            let n = self.node(at);
            let mut down = self.twins(n.down, next);
            if double {
                down = self.make(n.value, down, Ldd::EMPTY);
            }
            self.stack.push((n.value, down));
            at = n.right;
        }
        let r = self.build(base, Ldd::EMPTY);
        self.remember(code, set, Ldd::EMPTY, r);
        r
    }

    /// Returns the vectors with a projection to the `Read` levels in `short` that satisfy the
    /// `Require` levels.
    pub fn select_matches(&mut self, set: Ldd, short: Ldd, plan: Plan) -> Ldd {
        if set.is_empty() || short.is_empty() {
            return Ldd::EMPTY;
        }
        let Some((action, next)) = self.step(plan) else { return set };
        let code = plan.code(op::MATCH);
        if let Some(r) = self.cached_result(code, set, short) {
            return r;
        }
        if self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        let base = self.stack.len();
        let r = match action {
            LevelAction::Read => {
                let (mut x, mut y) = (set, short);
                while let Some((n, m)) = self.next_common(&mut x, &mut y) {
                    let down = self.select_matches(n.down, m.down, next);
                    self.stack.push((n.value, down));
                }
                self.build(base, Ldd::EMPTY)
            }
            LevelAction::Require(value) => {
                let down = self.child(set, value);
                let down = self.select_matches(down, short, next);
                self.make(value, down, Ldd::EMPTY)
            }
            _ => {
                let mut same = self.suffix(set);
                let mut at = set;
                while at != Ldd::EMPTY {
                    let n = self.node(at);
                    let down = self.select_matches(n.down, short, next);
                    self.stack.push((n.value, down));
                    at = n.right;
                    if down != n.down {
                        same = self.suffix(at);
                    }
                }
                self.build_before(base, same)
            }
        };
        self.remember(code, set, short, r);
        r
    }

    /// Returns the image of a set under a relation (actions `Skip`, `Read`, `Write`, `ReadWrite`).
    pub fn relprod(&mut self, set: Ldd, relation: Ldd, plan: Plan) -> Ldd {
        if set.is_empty() || relation.is_empty() {
            return Ldd::EMPTY;
        }
        let Some((action, next)) = self.step(plan) else { return set };
        let code = plan.code(op::RELPROD);
        if let Some(r) = self.cached_result(code, set, relation) {
            return r;
        }
        if self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        if self.helps() {
            let parts = self.image_parts(set, relation, action);
            for &(down, rest) in self.ahead(&parts) {
                self.relprod(down, rest, next);
            }
        }
        let base = self.stack.len();
        let r = match action {
            LevelAction::Read => {
                let (mut x, mut y) = (set, relation);
                while let Some((n, m)) = self.next_common(&mut x, &mut y) {
                    let down = self.relprod(n.down, m.down, next);
                    self.stack.push((n.value, down));
                }
                self.build(base, Ldd::EMPTY)
            }
            LevelAction::ReadWrite => {
                let (mut x, mut y) = (set, relation);
                while let Some((n, m)) = self.next_common(&mut x, &mut y) {
                    let mut write = m.down;
                    while write != Ldd::EMPTY {
                        let w = self.node(write);
                        let down = self.relprod(n.down, w.down, next);
                        if !down.is_empty() {
                            self.stack.push((w.value, down));
                        }
                        write = w.right;
                    }
                }
                self.build_unsorted(base)
            }
            LevelAction::Write => {
                let (below, mut write) = (self.tails(set), relation);
                while write != Ldd::EMPTY {
                    let w = self.node(write);
                    let down = self.relprod(below, w.down, next);
                    self.stack.push((w.value, down));
                    write = w.right;
                }
                self.build(base, Ldd::EMPTY)
            }
            _ => {
                let mut same = self.suffix(set);
                let mut at = set;
                while at != Ldd::EMPTY {
                    let n = self.node(at);
                    let down = self.relprod(n.down, relation, next);
                    self.stack.push((n.value, down));
                    at = n.right;
                    if down != n.down {
                        same = self.suffix(at);
                    }
                }
                self.build_before(base, same)
            }
        };
        self.remember(code, set, relation, r);
        r
    }

    /// Returns the members of `within` that the relation maps to a member of `goal`.
    pub fn relprev(&mut self, goal: Ldd, relation: Ldd, plan: Plan, within: Ldd) -> Ldd {
        if goal.is_empty() || relation.is_empty() || within.is_empty() {
            return Ldd::EMPTY;
        }
        let Some((action, next)) = self.step(plan) else { return self.intersect(goal, within) };
        let Some(code) = self.before_code(relation, plan) else { return Ldd::EMPTY };
        if let Some(r) = self.cached_result(code, goal, within) {
            return r;
        }
        if self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        let base = self.stack.len();
        match action {
            LevelAction::Read => {
                let (mut y, mut at) = (relation, within);
                while let Some((m, u)) = self.next_common(&mut y, &mut at) {
                    let below = self.child(goal, m.value);
                    let down = self.relprev(below, m.down, next, u.down);
                    self.stack.push((m.value, down));
                }
            }
            LevelAction::ReadWrite => {
                let (mut y, mut at) = (relation, within);
                while let Some((m, u)) = self.next_common(&mut y, &mut at) {
                    let down = self.prev_over(goal, m.down, next, u.down);
                    self.stack.push((u.value, down));
                }
            }
            LevelAction::Write => {
                let mut at = within;
                while at != Ldd::EMPTY {
                    let u = self.node(at);
                    let down = self.prev_over(goal, relation, next, u.down);
                    self.stack.push((u.value, down));
                    at = u.right;
                }
            }
            _ => {
                let (mut x, mut at) = (goal, within);
                while let Some((n, u)) = self.next_common(&mut x, &mut at) {
                    let down = self.relprev(n.down, relation, next, u.down);
                    self.stack.push((n.value, down));
                }
            }
        }
        let r = self.build(base, Ldd::EMPTY);
        self.remember(code, goal, within, r);
        r
    }

    /// Returns the union of the preimages over the written values.
    fn prev_over(&mut self, goal: Ldd, writes: Ldd, next: Plan, within: Ldd) -> Ldd {
        let (mut x, mut y) = (goal, writes);
        let mut r = Ldd::EMPTY;
        while let Some((n, m)) = self.next_common(&mut x, &mut y) {
            let down = self.relprev(n.down, m.down, next, within);
            r = self.union(r, down);
        }
        r
    }

    /// Returns the cache code of preimages under a relation, which leaves two operands for the
    /// sets. Numbers are assigned on first use, and never twice.
    fn before_code(&mut self, relation: Ldd, plan: Plan) -> Option<u32> {
        if let Some(&number) = self.befores.get(&(relation, plan)) {
            return Some(op::BEFORE | number);
        }
        let number = self.next_before;
        if number >= 1 << 26 {
            self.halt = Some(super::Halt::Memory);
            return None;
        }
        self.next_before += 1;
        self.befores.insert((relation, plan), number);
        Some(op::BEFORE | number)
    }
}
