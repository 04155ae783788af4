//! Transfer of sets of obligations to another process or a file. Each direction has its own
//! numbering, so each node of a set, and each formula state, is written once.
//!
//! ```text
//! set    = number of the set * 2 + 1 if something new comes with it, then
//!          count node*  count (formula state, length name)*
//! node   = 0 members-of-a-leaf | height left right
//! ```
//!
//! In and out: [`Sets`] of this process; formula states by local number, and by a name that is
//! equal in all processes. Cost: a byte or two for a set that the receiver knows; otherwise its new
//! nodes. A node is decoded for each position where it occurs. Invariant: malformed bytes are
//! rejected without a panic.

use super::obligations::{BLOCK, EMPTY, Operations, Set, each_bit, halves, height};
use ahash::{AHashMap, AHashSet};
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage, narrow};

/// Maximum height of a node: all numbers of formula states are below it.
const MAX_HEIGHT: u64 = 31;

/// A received node.
#[derive(Clone, Copy)]
enum ReceivedNode {
    Leaf(u64),
    Inner { height: u32, left: u32, right: u32 },
}

/// Encoder and decoder for one other process.
#[derive(Default)]
pub(super) struct Channel {
    /// Sent nodes with their numbers.
    written: AHashMap<Set, u64>,
    /// Nodes with the first block below each, after all their formula states were named.
    covered: AHashSet<(Set, u32)>,
    named: AHashSet<u32>,
    /// Received nodes, from number 1.
    nodes: Vec<ReceivedNode>,
    /// Formula states by the sender's number: the local numbers.
    states: AHashMap<u32, u32>,
    /// Received nodes with the first block below each: the local set.
    sets: AHashMap<(u32, u64), Set>,
}

fn malformed_error() -> Diagnostic {
    Diagnostic::new(Stage::File, "a malformed set of obligations")
}

impl Channel {
    /// Writes a set. `name` returns the name of a formula state.
    pub fn export(
        &mut self,
        operations: &Operations<'_>,
        set: Set,
        name: &mut dyn FnMut(u32) -> Result<Vec<u8>, Diagnostic>,
        out: &mut Vec<u8>,
    ) -> Result<(), Diagnostic> {
        if set == EMPTY {
            out.push(0);
            return Ok(());
        }
        if let (Some(number), true) = (self.written.get(&set), self.covered.contains(&(set, 0))) {
            put(out, number << 1);
            return Ok(());
        }
        let sets = operations.sets();
        let mut nodes = Vec::new();
        let mut count = 0u64;
        let mut todo = vec![(set, false)];
        while let Some((set, ready)) = todo.pop() {
            if set == EMPTY || self.written.contains_key(&set) {
                continue;
            }
            let record = sets.record(set);
            let (left, right) = halves(record);
            match height(record) {
                0 => {
                    nodes.push(0);
                    put(&mut nodes, record);
                }
                _ if !ready => {
                    todo.extend([(set, true), (right, false), (left, false)]);
                    continue;
                }
                high => {
                    // Numbers start at 1; 0 is the empty set.
                    let number = |set: Set| if set == EMPTY { 0 } else { self.written[&set] };
                    [u64::from(high), number(left), number(right)]
                        .into_iter()
                        .for_each(|n| put(&mut nodes, n));
                }
            }
            count += 1;
            self.written.insert(set, self.written.len() as u64 + 1);
        }
        let mut fresh = Vec::new();
        let mut todo = vec![(set, 0u32)];
        while let Some((set, base)) = todo.pop() {
            if set == EMPTY || !self.covered.insert((set, base)) {
                continue;
            }
            let record = sets.record(set);
            match height(record) {
                0 => each_bit(record, |bit| {
                    let state = base * BLOCK + bit;
                    if self.named.insert(state) {
                        fresh.push(state);
                    }
                }),
                high => {
                    let (left, right) = halves(record);
                    todo.extend([(right, base + (1 << (high - 1))), (left, base)]);
                }
            }
        }
        put(out, self.written[&set] << 1 | 1);
        put(out, count);
        out.extend(nodes);
        put(out, fresh.len() as u64);
        for state in fresh {
            put(out, state.into());
            let name = name(state)?;
            put(out, name.len() as u64);
            out.extend(name);
        }
        Ok(())
    }

    /// Reads a set. `state` returns the formula state with a name.
    pub fn import(
        &mut self,
        operations: &mut Operations<'_>,
        bytes: &mut &[u8],
        state: &mut dyn FnMut(&[u8]) -> Result<u32, Diagnostic>,
    ) -> Result<Set, Diagnostic> {
        let head = take(bytes).ok_or_else(malformed_error)?;
        if head & 1 == 1 {
            for _ in 0..take(bytes).ok_or_else(malformed_error)? {
                let node = self.node(bytes).ok_or_else(malformed_error)?;
                self.nodes.push(node);
            }
            for _ in 0..take(bytes).ok_or_else(malformed_error)? {
                let there =
                    take(bytes).and_then(|q| u32::try_from(q).ok()).ok_or_else(malformed_error)?;
                let length = take(bytes)
                    .and_then(|n| usize::try_from(n).ok())
                    .ok_or_else(malformed_error)?;
                let (name, rest) = bytes.split_at_checked(length).ok_or_else(malformed_error)?;
                *bytes = rest;
                if self.states.insert(there, state(name)?).is_some() {
                    return Err(malformed_error());
                }
            }
        }
        let number = u32::try_from(head >> 1)
            .ok()
            .filter(|n| *n as usize <= self.nodes.len())
            .ok_or_else(malformed_error)?;
        self.set(operations, number, 0).ok_or_else(malformed_error)
    }

    fn node(&self, bytes: &mut &[u8]) -> Option<ReceivedNode> {
        match take(bytes)? {
            0 => {
                take(bytes).filter(|mask| *mask != 0 && mask >> BLOCK == 0).map(ReceivedNode::Leaf)
            }
            high @ 1..=MAX_HEIGHT => {
                let known =
                    |n: u64| u32::try_from(n).ok().filter(|n| *n as usize <= self.nodes.len());
                let (left, right) = (known(take(bytes)?)?, known(take(bytes)?)?);
                let high = narrow::word(high);
                let below = |n: u32| match n.checked_sub(1).map(|at| self.nodes[at as usize]) {
                    None | Some(ReceivedNode::Leaf(_)) => true,
                    Some(ReceivedNode::Inner { height, .. }) => height < high,
                };
                (right != 0 && below(left) && below(right)).then_some(ReceivedNode::Inner {
                    height: high,
                    left,
                    right,
                })
            }
            _ => None,
        }
    }

    /// Returns the local set of a received node at a block.
    fn set(&mut self, operations: &mut Operations<'_>, node: u32, base: u64) -> Option<Set> {
        let Some(at) = node.checked_sub(1) else { return Some(EMPTY) };
        if let Some(known) = self.sets.get(&(node, base)) {
            return Some(*known);
        }
        let set = match self.nodes[at as usize] {
            ReceivedNode::Leaf(mask) => {
                let mut members = Vec::new();
                let mut whole = true;
                each_bit(mask, |bit| {
                    let there = u32::try_from(base * u64::from(BLOCK) + u64::from(bit)).ok();
                    match there.and_then(|q| self.states.get(&q)) {
                        Some(here) => members.push(*here),
                        None => whole = false,
                    }
                });
                members.sort_unstable();
                members.dedup();
                whole.then(|| operations.sets().from_members(&members))?
            }
            ReceivedNode::Inner { height, left, right } => {
                let left = self.set(operations, left, base)?;
                let right = self.set(operations, right, base + (1 << (height - 1)))?;
                operations.join(left, right).0
            }
        };
        self.sets.insert((node, base), set);
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::obligations::Sets;
    use mu_base::random::Random;
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    /// Two processes number formula states differently: a set written by one is the same set in the
    /// other, by names.
    #[test]
    fn sets_come_back_with_the_same_members_in_other_numbers() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (here, there) = (Sets::default(), Sets::default());
            let (own, mut other) = (Operations::new(&here), Operations::new(&there));
            let (mut out, mut into) = (Channel::default(), Channel::default());
            // By name, in the order of arrival.
            let numbers: RefCell<Vec<u32>> = RefCell::default();
            let mut written = Vec::new();
            for _ in 0..200 {
                let most = if random.below(3) == 0 { 3000 } else { 40 };
                let members: BTreeSet<u32> =
                    (0..random.below(30)).map(|_| random.below(most) as u32).collect();
                let members: Vec<u32> = members.into_iter().collect();
                let mut bytes = Vec::new();
                let before = bytes.len();
                out.export(
                    &own,
                    here.from_members(&members),
                    &mut |q| Ok(q.to_be_bytes().to_vec()),
                    &mut bytes,
                )
                .unwrap();
                assert!(bytes.len() > before);
                written.push((members, bytes));
            }
            for (members, bytes) in &written {
                let rest = &mut &bytes[..];
                let mut name = |name: &[u8]| {
                    let q = u32::from_be_bytes(name.try_into().map_err(|_| malformed_error())?);
                    let mut numbers = numbers.borrow_mut();
                    numbers.push(q);
                    Ok(numbers.len() as u32 - 1)
                };
                let set = into.import(&mut other, rest, &mut name).unwrap();
                assert!(rest.is_empty(), "seed {seed}");
                let mut found: Vec<u32> =
                    there.members(set).into_iter().map(|q| numbers.borrow()[q as usize]).collect();
                found.sort_unstable();
                assert_eq!(&found, members, "seed {seed}");
            }
            // Known sets take few bytes.
            let mut bytes = Vec::new();
            out.export(
                &own,
                here.from_members(&written[7].0),
                &mut |_| Err(malformed_error()),
                &mut bytes,
            )
            .unwrap();
            assert!(bytes.len() <= 2, "seed {seed}: {bytes:?}");
        }
    }

    #[test]
    fn damaged_sets_are_refused_not_panics() {
        let mut random = Random::new(11);
        let here = Sets::default();
        let own = Operations::new(&here);
        let mut refused = 0;
        for _ in 0..3000 {
            let members: BTreeSet<u32> = (0..12).map(|_| random.below(2000) as u32).collect();
            let set = here.from_members(&members.into_iter().collect::<Vec<_>>());
            let mut bytes = Vec::new();
            Channel::default().export(&own, set, &mut |q| Ok(vec![q as u8]), &mut bytes).unwrap();
            match random.below(3) {
                0 => bytes.truncate(random.below(bytes.len())),
                _ => {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
            }
            let there = Sets::default();
            let rest = &mut &bytes[..];
            let mut next = 0;
            let mut name = |_: &[u8]| {
                next += 1;
                Ok(next)
            };
            let read = Channel::default().import(&mut Operations::new(&there), rest, &mut name);
            refused += usize::from(read.is_err() || !rest.is_empty());
        }
        assert!(refused > 1500, "{refused} refused");
    }
}
