//! Coarsest stable partition by branching bisimulation, by a partition of the transitions that is
//! finer and finer.
//!
//! Jansen, Groote, Keiren, and Wijs, "An O(m log n) algorithm for branching bisimilarity on
//! labelled transition systems" (TACAS 2020). Transitions that are not inert are in *bunches*. A
//! block is stable if each of its bottom states, those without inert steps, has a transition in
//! each bunch in which some state of the block has one. A bunch with several labels or target
//! blocks is divided, the smaller part first, and the blocks are made stable again. A block that
//! is not stable has states that reach the bunch by inert steps, and others; two searches run in
//! turns, and the one that ends first finds the smaller part. Differences: a table counts the
//! transitions of a state in a bunch, in place of an order of its transitions; divergence is a
//! transition with a label of its own to a state without steps.
//!
//! Input: rows of visible and of (acyclic) tau steps. Output: block of each state. Cost:
//! O(transitions * log states), with about 80 bytes for each transition.
//!
//! Invariants: a transition is in a slice of its source block and bunch, and in one of its bunch,
//! label, and target block, or inert and in none. Between two divisions all blocks are stable. A
//! tau step between two blocks is in one bunch with all others between them.

use ahash::AHashMap;

use super::refine::Graph;
use super::tau::Rows;
use mu_base::ids::{LabelId, Maybe};
use mu_base::narrow;

/// Label of divergence; no label has it, since a table of labels has fewer than 2^32 - 1.
const DIVERGENCE: LabelId = LabelId::of(u32::MAX - 1);

#[derive(Clone, Copy)]
struct Transition {
    source: u32,
    label: LabelId,
    target: u32,
}

/// Partition of some transitions, refined by moving single ones.
#[derive(Default)]
struct Slices {
    members: Vec<Vec<u32>>,
    /// Slice of each transition, and its place there.
    of: Vec<Maybe>,
    place: Vec<u32>,
    /// Slice that receives the transitions that leave a slice during a division.
    twin: Vec<Maybe>,
    /// Slices with a twin, and their twins in ascending order.
    divided: Vec<(u32, u32)>,
}

impl Slices {
    fn new(transitions: usize) -> Self {
        Self { of: vec![Maybe::NONE; transitions], place: vec![0; transitions], ..Self::default() }
    }
    fn add(&mut self) -> u32 {
        self.members.push(Vec::new());
        self.twin.push(Maybe::NONE);
        narrow::index(self.members.len() - 1)
    }
    fn insert(&mut self, transition: u32, slice: u32) {
        let members = &mut self.members[slice as usize];
        self.of[transition as usize] = Maybe::some(slice);
        self.place[transition as usize] = narrow::index(members.len());
        members.push(transition);
    }
    /// Moves a transition from its slice to the twin of the slice.
    fn divide(&mut self, transition: u32) {
        let Some(from) = self.of[transition as usize].get() else { return };
        let twin = self.twin[from as usize].get().unwrap_or_else(|| {
            let twin = self.add();
            self.twin[from as usize] = Maybe::some(twin);
            self.divided.push((from, twin));
            twin
        });
        let place = self.place[transition as usize];
        let members = &mut self.members[from as usize];
        members.swap_remove(place as usize);
        if let Some(&moved) = members.get(place as usize) {
            self.place[moved as usize] = place;
        }
        self.insert(transition, twin);
    }
    /// Ends a division. Returns the divided slices and their twins.
    fn finish(&mut self) -> Vec<(u32, u32)> {
        let divided = std::mem::take(&mut self.divided);
        divided.iter().for_each(|&(from, _)| self.twin[from as usize] = Maybe::NONE);
        divided
    }
    fn is_empty(&self, slice: u32) -> bool {
        self.members[slice as usize].is_empty()
    }
}

/// Slice of the transitions of a bunch from one block.
#[derive(Clone, Copy)]
struct SourceSlice {
    block: u32,
    bunch: u32,
    /// True if it waits in the queue, because its block may not be stable under its bunch.
    queued: bool,
}

#[derive(Default)]
struct Bunch {
    slices: Vec<u32>,
    /// True if it waits to be divided.
    queued: bool,
}

#[derive(Default)]
struct Block {
    bottoms: Vec<u32>,
    others: Vec<u32>,
    slices: Vec<u32>,
}

/// Part of a block that is not stable under a bunch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The states that reach a transition of the bunch by inert steps.
    Reaching,
    /// All others.
    Avoiding,
}

/// Search for one part of a block, a transition at a time.
#[derive(Default)]
struct Search {
    found: Vec<u32>,
    /// Number of transitions of the slice, or of bottom states, that were read.
    start: usize,
    /// Number of found states with sources that were all read, and sources read of the next one.
    next: usize,
    source: usize,
}

impl Search {
    fn clear(&mut self) {
        self.found.clear();
        (self.start, self.next, self.source) = (0, 0, 0);
    }
    /// Returns the next transition to a found state, or `Some(None)` between two states; `None` at
    /// the end.
    fn step(&mut self, incoming: &Rows<u32>) -> Option<Option<u32>> {
        let &state = self.found.get(self.next)?;
        let transition = incoming.row(state).get(self.source).copied();
        if transition.is_some() {
            self.source += 1;
        } else {
            (self.next, self.source) = (self.next + 1, 0);
        }
        Some(transition)
    }
}

/// Knowledge of the searches about a state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Reaching,
    /// It has no transition in the bunch; the number of its inert steps to states that may reach
    /// one is in `Refiner::open_steps`.
    Candidate,
}

/// Both parts of a block that was split.
struct Split {
    reaching: u32,
    /// Slice of the transitions from `reaching` that were inert before; `None` if there are none.
    exposed: Option<u32>,
}

struct Refiner {
    transitions: Vec<Transition>,
    /// Starts of the transitions of each state.
    outgoing: Vec<u32>,
    incoming: Rows<u32>,
    /// Numbers of transitions of states in bunches, where there are any.
    counts: AHashMap<(u32, u32), u32>,
    block_of: Vec<u32>,
    /// Place of each state among the bottom or the other states of its block.
    place: Vec<u32>,
    inert_steps: Vec<u32>,
    blocks: Vec<Block>,
    /// Slices of the transitions of a bunch from one block.
    by_source: Slices,
    sources: Vec<SourceSlice>,
    /// Slices of the transitions of a bunch with one label into one block, and the bunch of each.
    by_target: Slices,
    bunch_of: Vec<u32>,
    bunches: Vec<Bunch>,
    /// Bunches with several target slices.
    divisible: Vec<u32>,
    queue: Vec<u32>,
    /// Slice that is followed to one part of each block that is split.
    followed: Option<u32>,
    mark: Vec<Mark>,
    open_steps: Vec<u32>,
    candidates: Vec<u32>,
    reaching: Search,
    avoiding: Search,
}

/// Refines until stable. Returns an upper bound of the names of blocks, and the block of each
/// state.
pub fn refine(graph: &Graph) -> (usize, Vec<u32>) {
    let states = graph.offsets.len() - 1;
    let mut refiner = Refiner::new(graph);
    refiner.run();
    refiner.block_of.truncate(states);
    (refiner.blocks.len(), refiner.block_of)
}

/// Lists the transitions in the order of their sources, with the starts of the sources.
fn list(graph: &Graph) -> (Vec<Transition>, Vec<u32>) {
    let states = narrow::index(graph.offsets.len() - 1);
    let mut transitions = Vec::new();
    let mut starts = vec![0];
    for source in 0..states {
        let s = source as usize;
        let range = graph.offsets[s] as usize..graph.offsets[s + 1] as usize;
        let steps = graph.labels[range.clone()].iter().zip(&graph.targets[range]);
        transitions.extend(steps.map(|(&label, target)| Transition {
            source,
            label,
            target: target.number(),
        }));
        let quiet = graph.tau.iter().flat_map(|tau| tau.row(source));
        transitions.extend(quiet.map(|&target| Transition { source, label: LabelId::TAU, target }));
        if graph.divergent.get(s) == Some(&true) {
            transitions.push(Transition { source, label: DIVERGENCE, target: states });
        }
        starts.push(narrow::index(transitions.len()));
    }
    // The state after divergence.
    if !graph.divergent.is_empty() {
        starts.push(narrow::index(transitions.len()));
    }
    (transitions, starts)
}

impl Refiner {
    fn new(graph: &Graph) -> Self {
        let (transitions, outgoing) = list(graph);
        let states = outgoing.len() - 1;
        let incoming = Rows::build(states, || {
            transitions.iter().zip(0u32..).map(|(t, number)| (t.target, number))
        });
        let mut refiner = Refiner {
            outgoing,
            incoming,
            counts: AHashMap::new(),
            block_of: vec![0; states],
            place: vec![0; states],
            inert_steps: vec![0; states],
            blocks: vec![Block::default()],
            by_source: Slices::new(transitions.len()),
            sources: Vec::new(),
            by_target: Slices::new(transitions.len()),
            bunch_of: Vec::new(),
            bunches: Vec::new(),
            divisible: Vec::new(),
            queue: Vec::new(),
            followed: None,
            mark: vec![Mark::None; states],
            open_steps: vec![0; states],
            candidates: Vec::new(),
            reaching: Search::default(),
            avoiding: Search::default(),
            transitions,
        };
        // One block, and one bunch of all transitions that are not tau.
        let bunch = refiner.add_bunch();
        let slice = refiner.add_source_slice(SourceSlice { block: 0, bunch, queued: true });
        refiner.queue.push(slice);
        let mut slices: AHashMap<LabelId, u32> = AHashMap::new();
        for number in 0..narrow::index(refiner.transitions.len()) {
            let Transition { source, label, .. } = refiner.transitions[number as usize];
            if label == LabelId::TAU {
                refiner.inert_steps[source as usize] += 1;
                continue;
            }
            let target = *slices.entry(label).or_insert_with(|| refiner.add_target_slice(bunch));
            refiner.by_target.insert(number, target);
            refiner.by_source.insert(number, slice);
            *refiner.counts.entry((source, bunch)).or_insert(0) += 1;
        }
        (0..narrow::index(states)).for_each(|s| refiner.enter(s, 0));
        refiner
    }

    fn run(&mut self) {
        self.stabilise_queued();
        while let Some(bunch) = self.divisible.pop() {
            self.bunches[bunch as usize].queued = false;
            let Some(part) = self.smaller_slice(bunch) else { continue };
            let new = self.add_bunch();
            self.bunch_of[part as usize] = new;
            self.bunches[new as usize].slices.push(part);
            self.enqueue_bunch(bunch);
            for i in 0..self.by_target.members[part as usize].len() {
                let transition = self.by_target.members[part as usize][i];
                self.by_source.divide(transition);
                let source = self.transitions[transition as usize].source;
                self.uncount(source, bunch);
                *self.counts.entry((source, new)).or_insert(0) += 1;
            }
            let divided = self.by_source.finish();
            for &(old, _) in &divided {
                let block = self.sources[old as usize].block;
                self.register_source_slice(SourceSlice { block, bunch: new, queued: false });
            }
            for (rest, moved) in divided {
                if self.by_source.is_empty(rest) {
                    continue;
                }
                // The states that avoid the new bunch are as stable under the old one as before.
                self.followed = Some(rest);
                self.stabilise(moved);
                if let Some(rest) = self.followed.take() {
                    self.stabilise(rest);
                }
                self.stabilise_queued();
            }
        }
    }

    /// Takes a target slice from a bunch with several ones: of the last two, the smaller. `None` if
    /// the bunch has only one.
    fn smaller_slice(&mut self, bunch: u32) -> Option<u32> {
        let slices = &mut self.bunches[bunch as usize].slices;
        let by_target = &self.by_target;
        while slices.last().is_some_and(|&s| by_target.is_empty(s)) {
            slices.pop();
        }
        while slices.len() > 1 && by_target.is_empty(slices[slices.len() - 2]) {
            slices.swap_remove(slices.len() - 2);
        }
        if slices.len() < 2 {
            return None;
        }
        let size = |s: &u32| by_target.members[*s as usize].len();
        let last = slices.len() - 1;
        let at = if size(&slices[last]) <= size(&slices[last - 1]) { last } else { last - 1 };
        Some(slices.swap_remove(at))
    }

    fn stabilise_queued(&mut self) {
        while let Some(slice) = self.queue.pop() {
            self.sources[slice as usize].queued = false;
            self.stabilise(slice);
        }
    }

    /// Makes the part of a block with old bottom states stable under the bunch of a slice; the
    /// slices of a block of new ones are queued.
    fn stabilise(&mut self, slice: u32) {
        let Some(first) = self.split(slice, None, Part::Reaching) else { return };
        let Some(exposed) = first.exposed else { return };
        // The states that reach one of the new transitions have no old bottom states.
        let bunch = self.sources[exposed as usize].bunch;
        let second = self.split(exposed, Some(bunch), Part::Avoiding);
        if second.is_none() {
            self.followed = None;
        }
        let block = second.map_or(first.reaching, |s| s.reaching);
        let mut slices = std::mem::take(&mut self.blocks[block as usize].slices);
        slices.retain(|&s| !self.by_source.is_empty(s));
        for &slice in &slices {
            if !std::mem::replace(&mut self.sources[slice as usize].queued, true) {
                self.queue.push(slice);
            }
        }
        self.blocks[block as usize].slices = slices;
    }

    /// Splits the block of a slice by the bunch of the slice. Tau steps between the parts join the
    /// bunch `into`, or a new one. `None` if the block is stable.
    fn split(&mut self, slice: u32, into: Option<u32>, follow: Part) -> Option<Split> {
        let old = self.sources[slice as usize].block;
        if self.size(old) == 1 || self.by_source.is_empty(slice) {
            return None;
        }
        let (part, states) = self.smaller_part(slice, old)?;
        let new = narrow::index(self.blocks.len());
        self.blocks.push(Block::default());
        for &s in &states {
            self.leave(s);
            self.enter(s, new);
        }
        for &s in &states {
            for transition in self.outgoing[s as usize]..self.outgoing[s as usize + 1] {
                self.by_source.divide(transition);
            }
            for &transition in self.incoming.row(s) {
                self.by_target.divide(transition);
            }
        }
        let twin = |s: u32| self.by_source.twin[s as usize].get();
        let own = if part == Part::Reaching { twin(slice) } else { Some(slice) };
        if part == follow
            && let Some(followed) = self.followed
        {
            self.followed = twin(followed);
        }
        for (from, to) in self.by_source.finish() {
            let SourceSlice { bunch, queued, .. } = self.sources[from as usize];
            self.register_source_slice(SourceSlice { block: new, bunch, queued });
            if queued {
                self.queue.push(to);
            }
        }
        for (from, to) in self.by_target.finish() {
            let bunch = self.bunch_of[from as usize];
            self.bunch_of.push(bunch);
            self.bunches[bunch as usize].slices.push(to);
            self.enqueue_bunch(bunch);
        }
        let (reaching, avoiding) = if part == Part::Reaching { (new, old) } else { (old, new) };
        let joined = into.map(|bunch| (bunch, own.expect("its transitions are of this part")));
        let exposed = self.expose(&states, reaching, avoiding, joined);
        Some(Split { reaching, exposed })
    }

    /// Searches for the smaller part of a block by the bunch of a slice. `None` if all bottom
    /// states have a transition in the bunch.
    fn smaller_part(&mut self, slice: u32, block: u32) -> Option<(Part, Vec<u32>)> {
        let size = self.size(block);
        let (mut reaching, mut avoiding) =
            (std::mem::take(&mut self.reaching), std::mem::take(&mut self.avoiding));
        reaching.clear();
        avoiding.clear();
        let (mut first, mut second) = (true, true);
        let part = loop {
            if first && self.reach(&mut reaching, slice) {
                break Part::Reaching;
            }
            if second && self.avoid(&mut avoiding, slice, block) {
                break Part::Avoiding;
            }
            first &= 2 * reaching.found.len() <= size;
            second &= 2 * avoiding.found.len() <= size;
        };
        reaching.found.iter().for_each(|&s| self.mark[s as usize] = Mark::None);
        for s in self.candidates.drain(..) {
            self.mark[s as usize] = Mark::None;
        }
        let found = match part {
            Part::Reaching => std::mem::take(&mut reaching.found),
            Part::Avoiding => std::mem::take(&mut avoiding.found),
        };
        (self.reaching, self.avoiding) = (reaching, avoiding);
        (!found.is_empty()).then_some((part, found))
    }

    /// Does a step of the search for states that reach a transition of a slice. Returns true at its
    /// end.
    fn reach(&mut self, search: &mut Search, slice: u32) -> bool {
        let transition = match self.by_source.members[slice as usize].get(search.start) {
            Some(&transition) => {
                search.start += 1;
                transition
            }
            None => match search.step(&self.incoming) {
                None => return true,
                Some(Some(t)) if self.is_inert(t) => t,
                Some(_) => return false,
            },
        };
        let source = self.transitions[transition as usize].source;
        if std::mem::replace(&mut self.mark[source as usize], Mark::Reaching) != Mark::Reaching {
            search.found.push(source);
        }
        false
    }

    /// Does a step of the search for states that reach no transition of the bunch of a slice.
    /// Returns true at its end.
    fn avoid(&mut self, search: &mut Search, slice: u32, block: u32) -> bool {
        let bunch = self.sources[slice as usize].bunch;
        if let Some(&bottom) = self.blocks[block as usize].bottoms.get(search.start) {
            search.start += 1;
            if !self.has(bottom, bunch) {
                search.found.push(bottom);
            }
            return false;
        }
        let transition = match search.step(&self.incoming) {
            None => return true,
            Some(Some(t)) if self.is_inert(t) => t,
            Some(_) => return false,
        };
        let source = self.transitions[transition as usize].source;
        let s = source as usize;
        if self.mark[s] == Mark::None && !self.has(source, bunch) {
            self.mark[s] = Mark::Candidate;
            self.open_steps[s] = self.inert_steps[s];
            self.candidates.push(source);
        }
        if self.mark[s] == Mark::Candidate {
            self.open_steps[s] -= 1;
            if self.open_steps[s] == 0 {
                search.found.push(source);
            }
        }
        false
    }

    /// Puts tau steps between two parts into a bunch; `states` are one part. Returns their source
    /// slice; `None` if there are none.
    fn expose(
        &mut self,
        states: &[u32],
        reaching: u32,
        avoiding: u32,
        joined: Option<(u32, u32)>,
    ) -> Option<u32> {
        let inert = |t: &u32| self.is_inert(*t);
        let mut found = Vec::new();
        for &s in states {
            if self.block_of[s as usize] == reaching {
                let row = self.outgoing[s as usize]..self.outgoing[s as usize + 1];
                let target = |t: u32| self.transitions[t as usize].target;
                found.extend(
                    row.filter(|t| inert(t) && self.block_of[target(*t) as usize] == avoiding),
                );
            } else {
                let source = |t: u32| self.transitions[t as usize].source;
                found.extend(
                    self.incoming
                        .row(s)
                        .iter()
                        .copied()
                        .filter(|t| inert(t) && self.block_of[source(*t) as usize] == reaching),
                );
            }
        }
        if found.is_empty() {
            return None;
        }
        let (bunch, slice) = joined.unwrap_or_else(|| {
            let bunch = self.add_bunch();
            let info = SourceSlice { block: reaching, bunch, queued: false };
            (bunch, self.add_source_slice(info))
        });
        let target = self.add_target_slice(bunch);
        for transition in found {
            self.by_source.insert(transition, slice);
            self.by_target.insert(transition, target);
            let source = self.transitions[transition as usize].source;
            *self.counts.entry((source, bunch)).or_insert(0) += 1;
            // A state is where its number of inert steps puts it.
            let block = self.block_of[source as usize];
            if self.inert_steps[source as usize] == 1 {
                self.leave(source);
                self.inert_steps[source as usize] = 0;
                self.enter(source, block);
            } else {
                self.inert_steps[source as usize] -= 1;
            }
        }
        Some(slice)
    }

    /// True if a transition is a tau step within a block.
    fn is_inert(&self, transition: u32) -> bool {
        !self.by_source.of[transition as usize].is_some()
    }

    fn size(&self, block: u32) -> usize {
        let Block { bottoms, others, .. } = &self.blocks[block as usize];
        bottoms.len() + others.len()
    }

    fn has(&self, state: u32, bunch: u32) -> bool {
        self.counts.contains_key(&(state, bunch))
    }

    /// Counts one transition of a state in a bunch less.
    fn uncount(&mut self, state: u32, bunch: u32) {
        if let Some(count) = self.counts.get_mut(&(state, bunch)) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&(state, bunch));
            }
        }
    }

    /// Returns the list of a block with a state: its bottom states, or the others.
    fn list_of(&mut self, state: u32, block: u32) -> &mut Vec<u32> {
        let block = &mut self.blocks[block as usize];
        if self.inert_steps[state as usize] == 0 { &mut block.bottoms } else { &mut block.others }
    }

    fn enter(&mut self, state: u32, block: u32) {
        self.block_of[state as usize] = block;
        let list = self.list_of(state, block);
        let place = narrow::index(list.len());
        list.push(state);
        self.place[state as usize] = place;
    }

    fn leave(&mut self, state: u32) {
        let place = self.place[state as usize];
        let list = self.list_of(state, self.block_of[state as usize]);
        list.swap_remove(place as usize);
        if let Some(&moved) = list.get(place as usize) {
            self.place[moved as usize] = place;
        }
    }

    fn add_bunch(&mut self) -> u32 {
        self.bunches.push(Bunch::default());
        narrow::index(self.bunches.len() - 1)
    }

    fn add_source_slice(&mut self, info: SourceSlice) -> u32 {
        let slice = self.by_source.add();
        self.register_source_slice(info);
        slice
    }

    /// Describes the next slice that has no description.
    fn register_source_slice(&mut self, info: SourceSlice) {
        self.blocks[info.block as usize].slices.push(narrow::index(self.sources.len()));
        self.sources.push(info);
    }

    fn add_target_slice(&mut self, bunch: u32) -> u32 {
        let slice = self.by_target.add();
        self.bunch_of.push(bunch);
        self.bunches[bunch as usize].slices.push(slice);
        self.enqueue_bunch(bunch);
        slice
    }

    /// Queues a bunch that has several slices.
    fn enqueue_bunch(&mut self, bunch: u32) {
        let Bunch { slices, queued } = &mut self.bunches[bunch as usize];
        if slices.len() > 1 && !std::mem::replace(queued, true) {
            self.divisible.push(bunch);
        }
    }
}
