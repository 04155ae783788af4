//! Cache of runs: the decisions and effects of rules, as decision trees.
//!
//! A run of a rule depends only on the fields that it reads. The first run with certain contents is
//! executed by the interpreter under a [`Recorder`], which adds a path to the tree of the rule: a
//! node for each field that is read, with a child for each content, and nodes for the effects. All
//! that the interpreter computes between them is constant on the path. Later runs walk down the
//! tree: they read each field once, and write each word once, at the end. Copies of bits that
//! nothing depends on are effects of their own, so data does not multiply the paths. Guard and body
//! are one run.
//!
//! Invariant: a walk ends as the interpreter does, with the same state. Locals behind the state may
//! differ; every run writes them before it reads them. Cost: a few instructions for each field on
//! which the run depends. Memory: at most [`MOST_BYTES`], for all rules together. Runs that are
//! long, or rarely repeat, are left to the interpreter.

use crate::code::{MultisetShape, mask};
use crate::run::{Ended, Interpreter, Watch, count, equal, read, write};

/// Bytes of all trees at which no more runs are added.
const MOST_BYTES: usize = 1 << 24;
/// Most paths of a tree. Larger trees do not fit in the caches.
const MOST_PATHS: u32 = 1 << 13;
/// Most nodes of a path.
const LONGEST: u32 = 1 << 10;
/// Most backward jumps and calls of a run that is cached.
const MOST_REPEATS: u32 = 1 << 12;
/// Most bits of a field with one node.
const FIELD: u8 = 6;

/// Kinds of nodes, in the lowest [`KIND`] bits of the first number of a node. Nodes are sequences
/// of numbers, so that most steps of a walk read one line of the cache; the next node is behind the
/// last one unless a node chooses it.
mod kind {
    /// Chooses by the content of a field within one word: width (3 bits), shift (6), word; then the
    /// next node for each content.
    pub const FIELD: u32 = 0;
    /// Replaces bits of a word: word; then the mask and the bits, in two numbers each.
    pub const SET: u32 = 1;
    /// Copies up to 64 bits: their number; then the places to and from.
    pub const COPY: u32 = 2;
    /// Ends the run: 1 in the guard, else 0, and twice the number of words that are written; then
    /// the end in two numbers, and for each word its number, the mask and the bits.
    pub const END: u32 = 3;
    /// Chooses by the equality of bits: their number; then both places, and the next nodes if they
    /// differ and if they are equal.
    pub const EQUAL: u32 = 4;
    /// Chooses by the number of used slots of a multiset: capacity; then the first slot and the
    /// distance of slots, and the next node for each number.
    pub const COUNT: u32 = 5;
    /// Fulfils a claim `cover`: its number.
    pub const COVER: u32 = 6;
    /// Leaves the run to the interpreter.
    pub const UNKNOWN: u32 = 7;
}

/// Walks that alternate.
pub(crate) const LANES: usize = 8;
/// Bits of the kind of a node.
const KIND: u32 = 3;
/// Most of the first number of a node.
const MOST: usize = (1 << (32 - KIND)) - 1;

/// Tree of a rule or property.
#[derive(Clone, Copy, Debug, Default)]
struct Root {
    /// First node; 0 if there is none.
    node: u32,
    runs: u32,
    misses: u32,
    /// Misses that were recorded.
    records: u32,
    /// The tree is not used any more.
    is_off: bool,
}

/// Trees of all rules and properties.
pub(crate) struct RunCache {
    /// Words of a state.
    words: usize,
    /// Nodes one after the other. The node 0 is no node.
    nodes: Vec<u32>,
    roots: Vec<Root>,
    /// Scratch of the recorder.
    known: Vec<Known>,
}

/// End of a walk that is not the end of the run.
enum Missing {
    /// The tree has no path for the contents.
    Path,
    /// The run is left to the interpreter.
    Unknown,
}

impl RunCache {
    /// Creates empty trees. `words`: those of a state.
    pub fn new(words: usize, roots: usize) -> Self {
        Self {
            words,
            nodes: vec![kind::UNKNOWN],
            roots: vec![Root::default(); roots],
            known: Vec::new(),
        }
    }
    /// Walks down some trees until a node is no choice by a field of the state. The walks
    /// alternate, so that their accesses to memory overlap. `starts`: by walk its root, and the
    /// first word of its state in `block`. Returns the nodes; 0 if a tree has no path.
    #[inline(always)]
    pub fn descend(&self, starts: &[(usize, usize)], block: &[u64]) -> [u32; LANES] {
        let (mut at, mut base) = ([0u32; LANES], [0; LANES]);
        for (lane, (root, first)) in starts.iter().enumerate().take(LANES) {
            let tree = &self.roots[*root];
            at[lane] = if tree.is_off { 0 } else { tree.node };
            base[lane] = *first;
        }
        loop {
            let mut moves = false;
            for lane in 0..LANES {
                let first = self.nodes[at[lane] as usize];
                let rest = first >> KIND;
                let (width, shift, word) = (rest & 7, rest >> 3 & 63, (rest >> 9) as usize);
                let is = first & ((1 << KIND) - 1) == kind::FIELD && word < self.words;
                let word = if is { base[lane] + word } else { 0 };
                let raw = block[word] >> shift & mask((width as u8).max(1));
                let next = self.nodes[if is { at[lane] as usize + 1 + raw as usize } else { 0 }];
                at[lane] = if is { next } else { at[lane] };
                moves |= is;
            }
            if !moves {
                return at;
            }
        }
    }
    /// Runs a guard, if there is one, and a body, if there is one and the guard is true, in
    /// `state`, which the interpreter has. Each root is for one pair of them; a walk begins at
    /// `start` unless that is 0. Returns true if the run ended in the guard, and its end.
    #[inline(always)]
    pub fn run(
        &mut self,
        interpreter: &mut Interpreter,
        (root, start): (usize, u32),
        (guard, body): (Option<u32>, Option<u32>),
        state: &[u64],
    ) -> (bool, Ended) {
        let tree = &mut self.roots[root];
        if !tree.is_off {
            tree.runs = tree.runs.saturating_add(1);
            let from = if start == 0 { tree.node } else { start };
            match self.walk(from, interpreter) {
                Ok(end) => return end,
                Err(missing) => {
                    interpreter.memory[..state.len()].copy_from_slice(state);
                    if matches!(missing, Missing::Path) && self.accepts(root) {
                        return self.record(interpreter, root, (guard, body), state);
                    }
                }
            }
        }
        plain(interpreter, (guard, body))
    }
    #[inline(always)]
    fn walk(&self, mut at: u32, interpreter: &mut Interpreter) -> Result<(bool, Ended), Missing> {
        let memory = &mut interpreter.memory[..];
        loop {
            let node = &self.nodes[at as usize..];
            let (kind, rest) = (node[0] & ((1 << KIND) - 1), node[0] >> KIND);
            match kind {
                kind::FIELD => {
                    let (width, shift, word) = (rest & 7, rest >> 3 & 63, rest >> 9);
                    let raw = memory[word as usize] >> shift & mask(width as u8);
                    at = node[1 + raw as usize];
                }
                kind::SET => {
                    let [_, a, b, c, d, ..] = *node else { return Err(Missing::Unknown) };
                    let word = &mut memory[rest as usize];
                    *word = *word & !long(a, b) | long(c, d);
                    at += 5;
                }
                kind::COPY => {
                    let [_, to, from, ..] = *node else { return Err(Missing::Unknown) };
                    let raw = read(memory, from as usize, rest as u8);
                    write(memory, to as usize, rest as u8, raw);
                    at += 3;
                }
                kind::END => {
                    let [_, a, b, ref sets @ ..] = *node else { return Err(Missing::Unknown) };
                    let (sets, _) = sets.as_chunks::<5>();
                    for [word, a, b, c, d] in sets.iter().take(rest as usize >> 1) {
                        let word = &mut memory[*word as usize];
                        *word = *word & !long(*a, *b) | long(*c, *d);
                    }
                    return Ok((rest & 1 == 1, run_end(a, b)));
                }
                kind::EQUAL => {
                    let is_equal = equal(memory, node[1] as usize, node[2] as usize, rest as usize);
                    at = node[3 + usize::from(is_equal)];
                }
                kind::COUNT => {
                    let shape = MultisetShape { capacity: rest, stride: node[2] };
                    at = node[3 + count(memory, node[1] as usize, shape)];
                }
                kind::COVER => {
                    interpreter.covered[rest as usize] = true;
                    at += 1;
                }
                _ if at == 0 => return Err(Missing::Path),
                _ => return Err(Missing::Unknown),
            }
        }
    }
    /// Counts a miss. True if the run is to be recorded.
    #[cold]
    fn accepts(&mut self, root: usize) -> bool {
        let bytes = size_of_val(&self.nodes[..]);
        let tree = &mut self.roots[root];
        tree.misses += 1;
        tree.is_off = tree.runs > 1 << 12 && tree.misses > tree.runs / 2;
        let accepts = !tree.is_off && tree.records <= 64 + tree.runs / 16 && bytes < MOST_BYTES;
        let accepts = accepts && tree.records < MOST_PATHS;
        tree.records += u32::from(accepts);
        accepts
    }
    #[cold]
    #[inline(never)]
    fn record(
        &mut self,
        interpreter: &mut Interpreter,
        root: usize,
        (guard, body): (Option<u32>, Option<u32>),
        state: &[u64],
    ) -> (bool, Ended) {
        self.known.clear();
        let node = self.roots[root].node;
        let mut recorder = Recorder {
            cache: self,
            at: node,
            slot: Slot::Root(root),
            length: 0,
            repeats: 0,
            failed: false,
        };
        let mut end = (true, Ended::Yes);
        if let Some(guard) = guard {
            end.1 = interpreter.run_watched(guard, &mut recorder);
        }
        if let (Ended::Yes, Some(body)) = (end.1, body) {
            end = (false, interpreter.run_watched(body, &mut recorder));
        }
        let is_complete = recorder.repeats <= MOST_REPEATS && end.1 != Ended::Stopped;
        recorder.failed |= !is_complete;
        recorder.finish(end);
        if is_complete {
            return end;
        }
        interpreter.memory[..state.len()].copy_from_slice(state);
        plain(interpreter, (guard, body))
    }
}

/// Returns the two halves of a number.
fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

/// Returns the number with two halves.
#[inline(always)]
fn long(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Returns the end of a run as two numbers.
fn numbers(ended: Ended) -> [u32; 2] {
    match ended {
        Ended::Done => [0, 0],
        Ended::Yes => [1, 0],
        Ended::No => [2, 0],
        Ended::Discarded => [3, 0],
        Ended::Stopped => [4, 0],
        Ended::Fault(pc) => [5, pc],
    }
}

/// Returns the end of a run with two numbers.
#[inline(always)]
fn run_end(kind: u32, pc: u32) -> Ended {
    match kind {
        0 => Ended::Done,
        1 => Ended::Yes,
        2 => Ended::No,
        3 => Ended::Discarded,
        4 => Ended::Stopped,
        _ => Ended::Fault(pc),
    }
}

/// Runs a guard and a body by the interpreter.
fn plain(
    interpreter: &mut Interpreter,
    (guard, body): (Option<u32>, Option<u32>),
) -> (bool, Ended) {
    let decided = guard.map_or(Ended::Yes, |guard| interpreter.run(guard));
    match (decided, body) {
        (Ended::Yes, Some(body)) => (false, interpreter.run(body)),
        (ended, _) => (true, ended),
    }
}

/// Bits of a word of the memory that are constant on the path.
#[derive(Clone, Copy, Debug)]
struct Known {
    word: u32,
    /// Bits that are known, and their contents.
    bits: u64,
    raw: u64,
    /// Known bits that are not written to the memory yet.
    pending: u64,
}

/// Place of the next node of a path.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Root(usize),
    /// Number of a node that chooses it.
    Choice(usize),
    /// Behind the last node.
    Behind,
}

/// Observer that adds a run to a tree.
struct Recorder<'t> {
    cache: &'t mut RunCache,
    /// The node that the tree has here; 0 if it has none.
    at: u32,
    /// The place of a new node.
    slot: Slot,
    /// Nodes of the path.
    length: u32,
    repeats: u32,
    /// The run cannot be cached.
    failed: bool,
}

/// Divides a field at the ends of words: word, shift, width, and the bits before.
fn pieces(at: usize, width: u8) -> impl Iterator<Item = (u32, u8, u8, u8)> {
    let (word, shift) = ((at / 64) as u32, (at % 64) as u8);
    let first = width.min(64 - shift);
    let second = (first < width).then_some((word + 1, 0, width - first, first));
    [(word, shift, first, 0)].into_iter().chain(second)
}

impl Recorder<'_> {
    /// Goes to the node that the tree has here, or adds one. Returns it.
    fn place<const N: usize>(&mut self, kind: u32, first: usize, more: [u32; N]) -> usize {
        self.length += 1;
        self.failed |= self.length > LONGEST;
        if self.at != 0 {
            let at = self.at as usize;
            let is_same = self.cache.nodes[at] == kind | (first as u32) << KIND;
            debug_assert!(is_same, "a run depends on something that no node has");
            self.failed |= !is_same;
            return at;
        }
        let at = self.cache.nodes.len();
        self.cache.nodes.push(kind | (first as u32) << KIND);
        self.cache.nodes.extend(more);
        match self.slot {
            Slot::Root(root) => self.cache.roots[root].node = at as u32,
            Slot::Choice(slot) => self.cache.nodes[slot] = at as u32,
            Slot::Behind => {}
        }
        self.slot = Slot::Behind;
        at
    }
    /// Adds an effect.
    fn effect<const N: usize>(&mut self, kind: u32, first: usize, more: [u32; N]) {
        self.failed |= first > MOST;
        if !self.failed {
            let is_old = self.at != 0;
            let at = self.place(kind, first, more);
            self.at = if is_old { at as u32 + 1 + N as u32 } else { 0 };
        }
    }
    /// Adds a node that chooses one of `count` next nodes.
    fn choice<const N: usize>(
        &mut self,
        (kind, first): (u32, usize),
        more: [u32; N],
        (count, chosen): (usize, usize),
    ) {
        self.failed |= first > MOST;
        if self.failed {
            return;
        }
        let is_old = self.at != 0;
        let at = self.place(kind, first, more);
        if !is_old {
            let end = self.cache.nodes.len() + count;
            self.cache.nodes.resize(end, 0);
        }
        let slot = at + 1 + N + chosen;
        (self.at, self.slot) = (self.cache.nodes[slot], Slot::Choice(slot));
    }
    /// Returns the entry of a word in `RunCache::known`.
    fn word(&mut self, word: u32) -> &mut Known {
        let known = &mut self.cache.known;
        let at = known.binary_search_by_key(&word, |k| k.word).unwrap_or_else(|at| {
            known.insert(at, Known { word, bits: 0, raw: 0, pending: 0 });
            at
        });
        &mut known[at]
    }
    /// Writes the pending bits of a word.
    fn write_pending(&mut self, word: u32) {
        let known = self.word(word);
        let (bits, raw) = (known.pending, known.raw & known.pending);
        known.pending = 0;
        if bits != 0 {
            let [a, b] = halves(bits);
            let [c, d] = halves(raw);
            self.effect(kind::SET, word as usize, [a, b, c, d]);
        }
    }
    /// Writes the pending bits of a field.
    fn write_field(&mut self, at: usize, width: u8) {
        for (word, shift, width, _) in pieces(at, width) {
            if self.word(word).pending & mask(width) << shift != 0 {
                self.write_pending(word);
            }
        }
    }
    /// Returns the known bits of a field, and their contents.
    fn field(&mut self, at: usize, width: u8) -> (u64, u64) {
        let mut all = (0, 0);
        for (word, shift, width, before) in pieces(at, width) {
            let Known { bits, raw, .. } = *self.word(word);
            let own = (bits >> shift & mask(width), raw >> shift & mask(width));
            all = (all.0 | own.0 << before, all.1 | (own.1 & own.0) << before);
        }
        all
    }
    /// Sets the known bits of a field. They are in the memory already.
    fn set_field(&mut self, at: usize, width: u8, (bits, raw): (u64, u64)) {
        for (word, shift, width, before) in pieces(at, width) {
            let own = mask(width) << shift;
            let known = self.word(word);
            known.bits = known.bits & !own | (bits >> before & mask(width)) << shift;
            known.raw = known.raw & !own | (raw >> before & mask(width)) << shift;
            known.pending &= !own;
        }
    }
    /// Ends the path.
    fn finish(&mut self, (in_guard, ended): (bool, Ended)) {
        if self.failed {
            // Behind a part of the run. A tree that has a node here keeps it.
            if self.at == 0 {
                self.place(kind::UNKNOWN, 0, []);
            }
            return;
        }
        let is_new = self.at == 0;
        let is_written = |k: &&Known| k.pending != 0 && (k.word as usize) < self.cache.words;
        let written: Vec<Known> = match ended {
            Ended::Done | Ended::Yes => {
                self.cache.known.iter().filter(is_written).copied().collect()
            }
            _ => Vec::new(),
        };
        self.place(kind::END, usize::from(in_guard) | written.len() << 1, numbers(ended));
        for Known { word, raw, pending, .. } in written.iter().filter(|_| is_new) {
            let ([a, b], [c, d]) = (halves(*pending), halves(raw & pending));
            self.cache.nodes.extend([*word, a, b, c, d]);
        }
    }
}

impl Watch for Recorder<'_> {
    fn read(&mut self, memory: &[u64], at: usize, width: u8) {
        for (word, shift, width, _) in pieces(at, width) {
            if self.word(word).bits & mask(width) << shift == mask(width) << shift {
                continue;
            }
            self.write_field(word as usize * 64 + shift as usize, width);
            let parts = width.div_ceil(FIELD);
            for part in 0..parts {
                let start = |part| (u32::from(width) * u32::from(part) / u32::from(parts)) as u8;
                let (shift, width) = (shift + start(part), start(part + 1) - start(part));
                let raw = memory[word as usize] >> shift & mask(width);
                let first = usize::from(width) | usize::from(shift) << 3 | (word as usize) << 9;
                self.choice((kind::FIELD, first), [], (1 << width, raw as usize));
            }
            let raw = memory[word as usize] >> shift & mask(width);
            self.set_field(word as usize * 64 + shift as usize, width, (mask(width), raw));
        }
    }
    fn compare(&mut self, memory: &[u64], a: usize, b: usize, bits: usize) {
        for start in [a, b] {
            for from in (0..bits).step_by(64) {
                self.write_field(start + from, (bits - from).min(64) as u8);
            }
        }
        let is_equal = equal(memory, a, b, bits);
        let more = [a as u32, b as u32];
        self.choice((kind::EQUAL, bits), more, (2, usize::from(is_equal)));
    }
    fn count(&mut self, memory: &[u64], first: usize, shape: MultisetShape) {
        for slot in 0..shape.capacity as usize {
            self.write_field(first + slot * shape.stride as usize, 1);
        }
        let used = count(memory, first, shape);
        let capacity = shape.capacity as usize;
        let more = [first as u32, shape.stride];
        self.choice((kind::COUNT, capacity), more, (capacity + 1, used));
    }
    fn write(&mut self, at: usize, width: u8, raw: u64) {
        let (bits, old) = self.field(at, width);
        if bits == mask(width) && old == raw {
            return;
        }
        self.set_field(at, width, (mask(width), raw));
        for (word, shift, width, _) in pieces(at, width) {
            self.word(word).pending |= mask(width) << shift;
        }
    }
    fn copy(&mut self, _: &[u64], to: usize, from: usize, bits: usize) {
        if to == from {
            return;
        }
        for start in (0..bits).step_by(64) {
            let width = (bits - start).min(64) as u8;
            let (to, from) = (to + start, from + start);
            let (known, raw) = self.field(from, width);
            if known == mask(width) {
                self.write(to, width, raw);
                continue;
            }
            self.write_field(from, width);
            self.effect(kind::COPY, width as usize, [to as u32, from as u32]);
            self.set_field(to, width, (known, raw));
        }
    }
    fn cover(&mut self, claim: u32) {
        self.effect(kind::COVER, claim as usize, []);
    }
    fn repeat(&mut self) -> bool {
        self.repeats += 1;
        self.repeats <= MOST_REPEATS
    }
}
