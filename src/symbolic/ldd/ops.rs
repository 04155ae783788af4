//! Set operations: union, difference, intersection, building from vectors, membership, enumeration,
//! picking a member.
//!
//! The operands of a binary operation hold vectors of the same length. The recursion depth is this
//! length.

use super::{Ldd, Manager, op};
use std::cmp::Ordering;

impl Manager {
    /// Returns `a ∪ b`.
    pub fn union(&mut self, a: Ldd, b: Ldd) -> Ldd {
        if a == b || b == Ldd::EMPTY {
            return a;
        }
        if a == Ldd::EMPTY {
            return b;
        }
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        if let Some(r) = self.cached_result(op::UNION, a, b) {
            return r;
        }
        if self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        if self.helps() {
            let (mut x, mut y, mut parts) = (a, b, Vec::new());
            while let Some((n, m)) = self.next_common(&mut x, &mut y) {
                parts.push((n.down, m.down));
            }
            for &(n, m) in self.ahead(&parts) {
                self.union(n, m);
            }
        }
        let base = self.stack.len();
        let (mut x, mut y) = (a, b);
        let (mut same_a, mut same_b) = (self.suffix(a), self.suffix(b));
        while x != y && x != Ldd::EMPTY && y != Ldd::EMPTY {
            let (n, m) = (self.node(x), self.node(y));
            match n.value.cmp(&m.value) {
                Ordering::Less => {
                    self.stack.push((n.value, n.down));
                    x = n.right;
                    same_b = self.suffix(y);
                }
                Ordering::Greater => {
                    self.stack.push((m.value, m.down));
                    y = m.right;
                    same_a = self.suffix(x);
                }
                Ordering::Equal => {
                    let down = self.union(n.down, m.down);
                    self.stack.push((n.value, down));
                    (x, y) = (n.right, m.right);
                    if down != n.down {
                        same_a = self.suffix(x);
                    }
                    if down != m.down {
                        same_b = self.suffix(y);
                    }
                }
            }
        }
        if x == Ldd::EMPTY && y != Ldd::EMPTY {
            same_a = self.suffix(y);
        } else if y == Ldd::EMPTY && x != Ldd::EMPTY {
            same_b = self.suffix(x);
        }
        let r = self.build_before(base, if same_a.0 <= same_b.0 { same_a } else { same_b });
        self.remember(op::UNION, a, b, r);
        r
    }

    /// Returns `a \ b`.
    pub fn minus(&mut self, a: Ldd, b: Ldd) -> Ldd {
        if a == b || a == Ldd::EMPTY {
            return Ldd::EMPTY;
        }
        if b == Ldd::EMPTY {
            return a;
        }
        if let Some(r) = self.cached_result(op::MINUS, a, b) {
            return r;
        }
        if self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        let base = self.stack.len();
        let (mut x, mut y) = (a, b);
        let mut same = self.suffix(a);
        while x != Ldd::EMPTY && y != Ldd::EMPTY {
            if x == y {
                same = self.suffix(Ldd::EMPTY);
                break;
            }
            let (n, m) = (self.node(x), self.node(y));
            match n.value.cmp(&m.value) {
                Ordering::Less => {
                    self.stack.push((n.value, n.down));
                    x = n.right;
                }
                Ordering::Greater => y = m.right,
                Ordering::Equal => {
                    let down = self.minus(n.down, m.down);
                    (x, y) = (n.right, m.right);
                    if down.is_empty() {
                        same = self.suffix(x);
                    } else {
                        self.stack.push((n.value, down));
                        if down != n.down {
                            same = self.suffix(x);
                        }
                    }
                }
            }
        }
        let r = self.build_before(base, same);
        self.remember(op::MINUS, a, b, r);
        r
    }

    /// Returns `a ∩ b`.
    pub fn intersect(&mut self, a: Ldd, b: Ldd) -> Ldd {
        if a == b {
            return a;
        }
        if a == Ldd::EMPTY || b == Ldd::EMPTY {
            return Ldd::EMPTY;
        }
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        if let Some(r) = self.cached_result(op::INTERSECT, a, b) {
            return r;
        }
        if self.halt_reason().is_some() {
            return Ldd::EMPTY;
        }
        let base = self.stack.len();
        let (mut x, mut y) = (a, b);
        let tail = loop {
            if x == y || x == Ldd::EMPTY {
                break x;
            }
            if y == Ldd::EMPTY {
                break y;
            }
            let (n, m) = (self.node(x), self.node(y));
            match n.value.cmp(&m.value) {
                Ordering::Less => x = n.right,
                Ordering::Greater => y = m.right,
                Ordering::Equal => {
                    let down = self.intersect(n.down, m.down);
                    self.stack.push((n.value, down));
                    (x, y) = (n.right, m.right);
                }
            }
        };
        let r = self.build(base, tail);
        self.remember(op::INTERSECT, a, b, r);
        r
    }

    /// Returns the set of one vector.
    pub fn singleton(&mut self, vector: &[u32]) -> Ldd {
        vector.iter().rev().fold(Ldd::UNIT, |set, &value| self.make(value, set, Ldd::EMPTY))
    }

    /// Returns the set with a vector added.
    pub fn insert_vector(&mut self, set: Ldd, vector: &[u32]) -> Ldd {
        let one = self.singleton(vector);
        self.union(set, one)
    }

    /// Returns the set of `count` vectors of length `width`, concatenated in any order.
    pub fn from_vectors(&mut self, vectors: &[u32], width: usize, count: usize) -> Ldd {
        if width == 0 {
            return if count == 0 { Ldd::EMPTY } else { Ldd::UNIT };
        }
        let mut rows: Vec<&[u32]> = vectors.chunks_exact(width).collect();
        rows.sort_unstable();
        rows.dedup();
        self.build_sorted(&rows, 0, width)
    }

    fn build_sorted(&mut self, rows: &[&[u32]], level: usize, width: usize) -> Ldd {
        if level == width {
            return Ldd::UNIT;
        }
        let base = self.stack.len();
        let mut from = 0;
        while from < rows.len() {
            let value = rows[from][level];
            let to = from + rows[from..].partition_point(|r| r[level] == value);
            let down = self.build_sorted(&rows[from..to], level + 1, width);
            self.stack.push((value, down));
            from = to;
        }
        self.build(base, Ldd::EMPTY)
    }

    /// Returns the set of tails after the first value `value`.
    #[inline]
    pub fn child(&self, mut set: Ldd, value: u32) -> Ldd {
        while set.0 > 1 {
            let n = self.node(set);
            if n.value >= value {
                return if n.value == value { n.down } else { Ldd::EMPTY };
            }
            set = n.right;
        }
        Ldd::EMPTY
    }

    /// True if the vector is in the set.
    pub fn contains(&self, mut set: Ldd, vector: &[u32]) -> bool {
        for &value in vector {
            set = self.child(set, value);
        }
        set == Ldd::UNIT
    }

    /// True if all vectors of `b` are in `a`.
    pub fn includes(&mut self, a: Ldd, b: Ldd) -> bool {
        self.minus(b, a).is_empty()
    }

    /// Returns the least vector of the set; `None` if the set is empty.
    pub fn pick(&self, mut set: Ldd) -> Option<Vec<u32>> {
        if set.is_empty() {
            return None;
        }
        let mut vector = Vec::new();
        while set != Ldd::UNIT {
            let n = self.node(set);
            vector.push(n.value);
            set = n.down;
        }
        Some(vector)
    }

    /// Calls `f` for each vector in lexicographic order.
    pub fn for_each(&self, set: Ldd, mut f: impl FnMut(&[u32])) {
        let (mut vector, mut lists) = (Vec::new(), Vec::new());
        let mut at = set;
        loop {
            while at.0 > 1 {
                let n = self.node(at);
                vector.push(n.value);
                lists.push(n.right);
                at = n.down;
            }
            if at == Ldd::UNIT {
                f(&vector);
            }
            at = Ldd::EMPTY;
            while at == Ldd::EMPTY {
                let Some(right) = lists.pop() else { return };
                vector.pop();
                at = right;
            }
        }
    }

    /// Returns all vectors, concatenated in lexicographic order.
    pub fn vectors(&self, set: Ldd) -> Vec<u32> {
        let mut all = Vec::new();
        self.for_each(set, |v| all.extend_from_slice(v));
        all
    }
}
