//! Proof by pairs of components: an invariant that knows which local states of each two components
//! occur together.
//!
//! In: a case of [`Product`]. Out: the formula is shown, or a violation is possible in the
//! abstraction. A *node* is a set of modalities that must hold; it has the pairs of local states in
//! which it is reached ([`Relations`]). A step of a summand involves the components that it reads
//! or writes. It is taken from local states of these if all pairs of them are known, and if each
//! other component has a local state that is known to occur with all of them. Afterwards, the new
//! local states occur with each other, and with those of the other components; if the node is
//! another one, pairs of other components are those that occur with the involved ones.
//!
//! *Invariant.* Of each reachable state with a node that must hold there, all pairs of local states
//! are in the relations of the node. *Proof.* By induction over steps, as above. ∎ So all steps of
//! the process are covered, and the proof is coarser than one by states: three components may occur
//! together if each two do.
//!
//! *Components of any number.* Those of untracked identities ([`super::identities`]) are *loose*: a
//! node has the local states in which any of them may be, and no pairs. Each participant of a step
//! may be in any of these; the others stay where they are.
//!
//! Cost: quadratic in local states, where states are their product.

use super::evaluate::fails;
use super::product::{Answer, Product, State, Stop};
use super::relations::{Bits, Relations};
use ahash::AHashMap;
use mu_base::Diagnostic;
use mu_process::linear::ParamRole;
use std::rc::Rc;

/// Limit on pairs of local states over all nodes.
const MAX_PAIRS: usize = 80_000_000;
/// Passes over summands after which an exploration with places that are vague by now ends.
const PASSES: u32 = 64;

/// Local states of a component.
#[derive(Default)]
struct Locals {
    /// Parameters of the state.
    params: Vec<usize>,
    /// True for a component of untracked identities.
    loose: bool,
    known: AHashMap<Vec<u16>, u32>,
    all: Vec<Vec<u16>>,
}

/// A component that takes part in a step: its number, and its place among untracked ones.
type Part = (usize, usize);

/// A component that takes part in a step, with its local state.
#[derive(Clone, Copy)]
struct StepParticipant {
    component: usize,
    participant: usize,
    local: u32,
}

/// The steps of a summand from chosen local states: labels, and the local states afterwards.
type Moves = Rc<[(u32, Box<[StepParticipant]>)]>;

/// A set of modalities with the pairs in which it must hold.
struct Node {
    set: u32,
    relations: Relations,
    /// For each summand the time of its last pass.
    passed: Vec<u32>,
    /// True for a summand with steps to other nodes.
    leaves: Vec<bool>,
    /// Time of the last passes over steps to other nodes.
    left: u32,
}

/// The local states of two components by the values that a summand reads.
#[derive(Default)]
struct Views {
    /// For both components, by local state its view, and the local states of each view.
    of: [Vec<u32>; 2],
    known: [AHashMap<Vec<u16>, u32>; 2],
    members: [Vec<Bits>; 2],
    /// By view of the first component.
    fits: Vec<MatchingStates>,
}

/// The local states of the second component with which a summand has a step from a view of the
/// first.
#[derive(Default)]
struct MatchingStates {
    yes: Bits,
    no: Bits,
    /// By view of the second component.
    known: AHashMap<u32, bool>,
    /// Number of local states that are in `yes` or `no` if their view is known.
    sorted: usize,
}

/// An exploration by pairs.
pub(super) struct Pairs {
    locals: Vec<Locals>,
    /// For each parameter its component, its place in the local state, and in a step.
    place: Vec<Option<(usize, usize, usize)>>,
    /// For each component and participant the parameters that its local state stands for.
    stands: AHashMap<Part, Vec<usize>>,
    /// For each summand the components that take part; `None` for one that is the image of another.
    involved: Vec<Option<Vec<Part>>>,
    /// For each summand and component the local states that its condition does not exclude.
    enabled: Vec<Vec<Bits>>,
    views: Vec<Views>,
    /// Steps by summand and at most three local states.
    moves: AHashMap<(u32, [u32; 3]), Moves>,
    /// For reuse by [`Pairs::compute_others`].
    others: Vec<(usize, Bits)>,
    nodes: Vec<Node>,
    numbers: AHashMap<u32, usize>,
    /// Nodes after a label, by node and label.
    after: Vec<Vec<Option<Rc<[usize]>>>>,
    clock: u32,
    fired: u64,
}

/// A step: its nodes before and after, and the local states of all that take part afterwards.
struct Fired<'a> {
    from: usize,
    to: usize,
    after: &'a [StepParticipant],
    /// For each other component the local states that occur with those that take part.
    others: &'a [(usize, Bits)],
}

impl Pairs {
    /// Creates an exploration; `None` if the process has one component only.
    fn new(product: &Product) -> Option<Self> {
        let process = product.question.process;
        let crowd = product.crowd.as_deref();
        let mut places: AHashMap<u32, usize> = AHashMap::new();
        let mut locals: Vec<Locals> = Vec::new();
        let mut place = vec![None; process.params.len()];
        let mut stands: AHashMap<Part, Vec<usize>> = AHashMap::new();
        for (at, p) in process.params.iter().enumerate() {
            if product.base_of.contains_key(&at) {
                continue;
            }
            let participant = crowd.and_then(|crowd| crowd.participant[at]);
            let home = crowd.map_or(at, |crowd| crowd.canonical[at]);
            if home != at {
                let (component, i, _) = place[home]?;
                place[at] = Some((component, i, participant.unwrap_or(0)));
            } else {
                let (ParamRole::Control(c) | ParamRole::Data(c)) = p.role;
                let component = *places.entry(c).or_insert(locals.len());
                if component == locals.len() {
                    locals.push(Locals { loose: participant.is_some(), ..Locals::default() });
                }
                place[at] = Some((component, locals[component].params.len(), 0));
                locals[component].params.push(at);
            }
            let (component, _, k) = place[at]?;
            stands.entry((component, k)).or_default().push(at);
        }
        if locals.len() < 2 {
            return None;
        }
        let involved = (0..process.summands.len()).map(|g| {
            if crowd.is_some_and(|crowd| crowd.considered[g].is_none()) {
                return None;
            }
            let writes = process.summands[g].updates.iter().map(|(at, _)| *at);
            let all = product.groups[g].reads.iter().copied().chain(writes);
            let mut all: Vec<Part> =
                all.filter_map(|at| place[at].map(|(component, _, k)| (component, k))).collect();
            all.sort_unstable();
            all.dedup();
            Some(all)
        });
        let involved: Vec<Option<Vec<Part>>> = involved.collect();
        let enabled = vec![vec![Bits::default(); locals.len()]; involved.len()];
        let views = involved.iter().map(|_| Views::default()).collect();
        Some(Self {
            locals,
            place,
            stands,
            involved,
            enabled,
            views,
            moves: AHashMap::new(),
            others: Vec::new(),
            nodes: Vec::new(),
            numbers: AHashMap::new(),
            after: Vec::new(),
            clock: 1,
            fired: 0,
        })
    }

    /// Returns the number of a local state.
    fn local(&mut self, product: &Product, component: usize, values: Vec<u16>) -> u32 {
        let own = &mut self.locals[component];
        if let Some(id) = own.known.get(&values) {
            return *id;
        }
        let id = own.all.len() as u32;
        for (g, involved) in self.involved.iter().enumerate() {
            let parts = involved.iter().flatten();
            let enabled = parts.filter(|part| part.0 == component).any(|part| {
                let stands = &self.stands[part];
                stands.iter().zip(&values).all(|(param, value)| {
                    product.possible[*param][usize::from(*value)][g / 64] >> (g % 64) & 1 == 1
                })
            });
            if enabled {
                self.enabled[g][component].add(id);
            }
        }
        own.known.insert(values.clone(), id);
        own.all.push(values);
        id
    }

    /// Returns the node of a set of modalities.
    fn node(&mut self, set: u32) -> usize {
        let new = self.nodes.len();
        let at = *self.numbers.entry(set).or_insert(new);
        if at == new {
            let (components, summands) = (self.locals.len(), self.involved.len());
            self.nodes.push(Node {
                set,
                relations: Relations::new(components),
                passed: vec![0; summands],
                leaves: vec![false; summands],
                left: 0,
            });
        }
        at
    }

    /// Adds a state to a node.
    fn begin(&mut self, product: &Product, node: usize, state: &[u16]) {
        let mut all = Vec::new();
        for c in 0..self.locals.len() {
            let values = self.locals[c].params.iter().map(|p| state[*p]).collect();
            all.push(self.local(product, c, values));
        }
        for a in 0..all.len() {
            for b in a..all.len() {
                if a == b || !self.locals[a].loose && !self.locals[b].loose {
                    self.nodes[node].relations.add(a, b, (all[a], all[b]), self.clock);
                }
            }
        }
    }

    /// Returns the components that take part in the steps of a summand.
    fn parts(&self, g: usize) -> &[Part] {
        self.involved[g].as_deref().unwrap_or_default()
    }

    /// Returns the local states of the next component of a summand that occur with the given ones,
    /// if one of these has a pair that is later than `last`.
    fn candidates(
        &self,
        (node, g): (usize, usize),
        last: u32,
        chosen: &[StepParticipant],
        changed: &mut Option<Bits>,
    ) -> Bits {
        let (component, _) = self.parts(g)[chosen.len()];
        let relations = &self.nodes[node].relations;
        let mut out = self.enabled[g][component].clone();
        out.keep(relations.present(component));
        if !self.locals[component].loose {
            for c in chosen.iter().filter(|c| !self.locals[c.component].loose) {
                out.keep(relations.row(c.component, component, c.local));
            }
        }
        // With two components, one of them must have changed.
        let [first] = chosen else { return out };
        let old = relations.changed_local(first.component, first.local) <= last;
        if self.parts(g).len() == 2 && old {
            let own = changed.get_or_insert_with(|| {
                let mut own = Bits::default();
                let all = self.enabled[g][component].iter();
                all.filter(|l| relations.changed_local(component, *l) > last).for_each(|l| {
                    own.add(l);
                });
                own
            });
            out.keep(own);
        }
        out
    }

    /// True if a pass over a summand may find new pairs of the node.
    fn is_due(&self, node: usize, g: usize) -> bool {
        let Node { relations, passed, .. } = &self.nodes[node];
        let all = 0..self.locals.len();
        let due = |a: usize| all.clone().any(|b| relations.last_change(a, b) > passed[g]);
        let Some(parts) = &self.involved[g] else { return false };
        passed[g] == 0 || parts.iter().any(|part| due(part.0))
    }

    /// True if steps to other nodes may find new pairs.
    fn may_leave(&self, node: usize) -> bool {
        let Node { relations, leaves, left, .. } = &self.nodes[node];
        let all = 0..self.locals.len();
        let late = |a: usize| all.clone().any(|b| relations.last_change(a, b) > *left);
        leaves.contains(&true) && all.clone().any(late)
    }

    /// Adds the pairs after a step.
    fn fire(&mut self, fired: &Fired) {
        let Fired { from, to, after, others } = *fired;
        let clock = self.clock;
        let relations = &mut self.nodes[to].relations;
        for (i, a) in after.iter().enumerate() {
            relations.add(a.component, a.component, (a.local, a.local), clock);
            if self.locals[a.component].loose {
                continue;
            }
            for b in after[i + 1..].iter().filter(|b| !self.locals[b.component].loose) {
                relations.add(a.component, b.component, (a.local, b.local), clock);
            }
            for (k, all) in others {
                relations.add_all(a.component, *k, a.local, all, clock);
            }
        }
        if from == to {
            return;
        }
        for c in (0..self.locals.len()).filter(|c| self.locals[*c].loose) {
            let all = self.nodes[from].relations.present(c).clone();
            for x in all.iter() {
                self.nodes[to].relations.add(c, c, (x, x), clock);
            }
        }
        for (i, (a, own)) in others.iter().enumerate() {
            for x in own.iter() {
                self.nodes[to].relations.add(*a, *a, (x, x), clock);
                for (b, all) in &others[i + 1..] {
                    let mut with = all.clone();
                    with.keep(self.nodes[from].relations.row(*a, *b, x));
                    self.nodes[to].relations.add_all(*a, *b, x, &with, clock);
                }
            }
        }
    }

    /// Computes for each other component that is not loose the local states that occur with the
    /// chosen ones. False if there is none for some component.
    fn compute_others(&mut self, node: usize, chosen: &[StepParticipant]) -> bool {
        let relations = &self.nodes[node].relations;
        let mut count = 0;
        for k in (0..self.locals.len()).filter(|k| !self.locals[*k].loose) {
            if chosen.iter().any(|c| c.component == k) {
                continue;
            }
            if self.others.len() == count {
                self.others.push((k, Bits::default()));
            }
            let (component, with) = &mut self.others[count];
            *component = k;
            count += 1;
            let mut first = true;
            for c in chosen.iter().filter(|c| !self.locals[c.component].loose) {
                let row = relations.row(c.component, k, c.local);
                if first {
                    with.copy(row)
                } else {
                    with.keep(row)
                }
                first = false;
            }
            if first {
                with.copy(relations.present(k));
            }
            if with.is_empty() {
                return false;
            }
        }
        self.others.truncate(count);
        true
    }

    /// Writes the values of the chosen local states.
    fn write(&self, chosen: &[StepParticipant], state: &mut State) {
        for c in chosen {
            let stands = &self.stands[&(c.component, c.participant)];
            let own = &self.locals[c.component].all[c.local as usize];
            stands.iter().zip(own).for_each(|(param, value)| state[*param] = *value);
        }
    }

    /// Adds the views of new local states of two components.
    fn add_views(&mut self, product: &Product, g: usize) {
        for (side, part) in self.involved[g].iter().flatten().enumerate() {
            let (locals, views) = (&self.locals[part.0], &mut self.views[g]);
            if views.of[side].len() == locals.all.len() {
                continue;
            }
            let stands = &self.stands[part];
            for local in views.of[side].len()..locals.all.len() {
                let read = |param: &usize| product.groups[g].reads.contains(param);
                let values = stands.iter().zip(&locals.all[local]);
                let view: Vec<u16> = values.filter(|v| read(v.0)).map(|v| *v.1).collect();
                let new = views.members[side].len() as u32;
                let id = *views.known[side].entry(view).or_insert(new);
                if id == new {
                    views.members[side].push(Bits::default());
                }
                views.of[side].push(id);
                views.members[side][id as usize].add(local as u32);
            }
        }
        let views = &mut self.views[g];
        views.fits.resize_with(views.members[0].len(), MatchingStates::default);
    }
}

impl Product<'_> {
    /// Shows the formula in one case by pairs; `None` if the process has one component only.
    pub(super) fn pairs(&mut self) -> Option<Result<(), Stop>> {
        let pairs = Pairs::new(self)?;
        Some(self.explore_pairs(pairs))
    }

    fn explore_pairs(&mut self, mut pairs: Pairs) -> Result<(), Stop> {
        let start = self.closure(self.positions.start, &[], false)?;
        let start = pairs.node(start);
        for state in self.initial()? {
            pairs.begin(self, start, &state);
            self.found.initiation += 1;
        }
        // Steps of few components come first: they add most pairs.
        let mut order: Vec<usize> = (0..pairs.involved.len()).collect();
        order.sort_by_key(|g| pairs.parts(*g).len());
        let mut passes = 0u32;
        loop {
            let mut changed = false;
            let mut node = 0;
            while node < pairs.nodes.len() {
                // All pairs of the node, then the steps that leave it, once.
                while let Some(g) = order.iter().find(|g| pairs.is_due(node, **g)) {
                    self.pass(&mut pairs, (node, *g), false)?;
                    passes += 1;
                    if self.cuts.changed && passes.is_multiple_of(PASSES) {
                        return Err(Stop::Again);
                    }
                    changed = true;
                }
                if pairs.may_leave(node) {
                    pairs.nodes[node].left = pairs.clock;
                    pairs.clock += 1;
                    for g in 0..pairs.involved.len() {
                        if pairs.nodes[node].leaves[g] {
                            self.pass(&mut pairs, (node, g), true)?;
                        }
                    }
                    changed = true;
                }
                node += 1;
            }
            if self.cuts.changed {
                return Err(Stop::Again);
            }
            if !changed {
                break;
            }
        }
        let all: usize = pairs.nodes.iter().map(|n| n.relations.count()).sum();
        self.found.obligations += all;
        Ok(())
    }

    /// Takes all steps of a summand that may be new.
    fn pass(
        &mut self,
        pairs: &mut Pairs,
        (node, g): (usize, usize),
        leaves: bool,
    ) -> Result<(), Stop> {
        // A step to another node depends on pairs of other components, too.
        let last = if leaves { 0 } else { pairs.nodes[node].passed[g] };
        let time = pairs.clock;
        // What changes from now on is later than this pass.
        pairs.clock += 1;
        let parts = pairs.parts(g).to_vec();
        if parts.len() == 2 {
            pairs.add_views(self, g);
        }
        let mut state: State = vec![0; self.question.process.params.len()];
        if !leaves {
            pairs.nodes[node].passed[g] = time;
        }
        if parts.is_empty() {
            return self.steps(pairs, (node, g), (&[], leaves), &mut state);
        }
        let mut changed = None;
        // Choices of local states, depth first.
        let all = pairs.candidates((node, g), last, &[], &mut changed);
        let mut stack: Vec<(Vec<u32>, usize)> = vec![(all.iter().collect(), 0)];
        let mut chosen: Vec<StepParticipant> = Vec::new();
        while let Some((all, at)) = stack.last_mut() {
            let Some(local) = all.get(*at).copied() else {
                stack.pop();
                chosen.pop();
                continue;
            };
            *at += 1;
            let (component, participant) = parts[stack.len() - 1];
            chosen.push(StepParticipant { component, participant, local });
            if chosen.len() < parts.len() {
                let mut next = pairs.candidates((node, g), last, &chosen, &mut changed);
                if parts.len() == 2 && !next.is_empty() {
                    self.keep_fitting(pairs, g, local, &mut next, &mut state)?;
                }
                stack.push((next.iter().collect(), 0));
                continue;
            }
            let relations = &pairs.nodes[node].relations;
            let late = |c: &StepParticipant| relations.changed_local(c.component, c.local) > last;
            if chosen.iter().any(late) {
                self.steps(pairs, (node, g), (&chosen, leaves), &mut state)?;
            }
            chosen.pop();
        }
        Ok(())
    }

    /// Removes the local states of the second component of a summand with which it has no step from
    /// a local state of the first.
    fn keep_fitting(
        &mut self,
        pairs: &mut Pairs,
        g: usize,
        local: u32,
        next: &mut Bits,
        state: &mut State,
    ) -> Result<(), Stop> {
        let [one, two] = *pairs.parts(g) else { return Ok(()) };
        pairs.add_views(self, g);
        let view = pairs.views[g].of[0][local as usize] as usize;
        let mut fits = std::mem::take(&mut pairs.views[g].fits[view]);
        let views = &pairs.views[g];
        for (at, view) in (0u32..).zip(&views.of[1]).skip(fits.sorted) {
            match fits.known.get(view) {
                Some(true) => drop(fits.yes.add(at)),
                Some(false) => drop(fits.no.add(at)),
                None => {}
            }
        }
        fits.sorted = views.of[1].len();
        let mut open = next.clone();
        open.remove(&fits.yes);
        open.remove(&fits.no);
        let of = |part: Part, local: u32| StepParticipant {
            component: part.0,
            participant: part.1,
            local,
        };
        for at in open.iter() {
            let other = pairs.views[g].of[1][at as usize];
            if fits.known.contains_key(&other) {
                continue;
            }
            pairs.write(&[of(one, local), of(two, at)], state);
            let has_steps = !self.known_answers(g, state)?.is_empty();
            fits.known.insert(other, has_steps);
            let same = &pairs.views[g].members[1][other as usize];
            if has_steps { &mut fits.yes } else { &mut fits.no }.add_bits(same);
        }
        next.keep(&fits.yes);
        pairs.views[g].fits[view] = fits;
        Ok(())
    }

    /// Returns the steps of a summand.
    fn known_answers(&mut self, g: usize, state: &[u16]) -> Result<Rc<[Answer]>, Stop> {
        if self.is_excluded(g, state)? {
            return Ok([].into());
        }
        match self.groups[g].cached_answers(state) {
            Some(answers) => Ok(answers),
            None => self.answers(g, state),
        }
    }

    /// Takes the steps of a summand from local states of the components that take part: those that
    /// stay in the node, or those that leave it.
    fn steps(
        &mut self,
        pairs: &mut Pairs,
        (node, g): (usize, usize),
        (chosen, leaves): (&[StepParticipant], bool),
        state: &mut State,
    ) -> Result<(), Stop> {
        let moves = self.moves(pairs, g, chosen, state)?;
        let mut targets = Vec::with_capacity(moves.len());
        for (label, _) in moves.iter() {
            targets.push(self.nodes_after(pairs, *label, node)?);
        }
        let away = targets.iter().any(|t| t.iter().any(|to| *to != node));
        let stays = targets.iter().any(|t| t.contains(&node));
        pairs.nodes[node].leaves[g] |= away;
        if !(if leaves { away } else { stays }) || !pairs.compute_others(node, chosen) {
            return Ok(());
        }
        pairs.fired += 1;
        if pairs.fired.is_multiple_of(1024) {
            self.may_go_on(pairs)?;
        }
        let others = std::mem::take(&mut pairs.others);
        for ((_, after), targets) in moves.iter().zip(&targets) {
            for to in targets.iter().filter(|to| (**to != node) == leaves) {
                pairs.fire(&Fired { from: node, to: *to, after, others: &others });
            }
        }
        pairs.others = others;
        Ok(())
    }

    /// Returns the steps of a summand from local states of the components that take part.
    fn moves(
        &mut self,
        pairs: &mut Pairs,
        g: usize,
        chosen: &[StepParticipant],
        state: &mut State,
    ) -> Result<Moves, Stop> {
        let mut key = (g as u32, [u32::MAX; 3]);
        let short = chosen.len() <= key.1.len();
        key.1.iter_mut().zip(chosen).for_each(|(k, c)| *k = c.local);
        if short && let Some(known) = pairs.moves.get(&key) {
            return Ok(known.clone());
        }
        pairs.write(chosen, state);
        let answers = self.known_answers(g, state)?;
        let mut out = Vec::with_capacity(answers.len());
        for (label, written) in answers.iter() {
            let mut after = Vec::with_capacity(chosen.len());
            for c in chosen {
                let mut values = pairs.locals[c.component].all[c.local as usize].clone();
                let mut same = true;
                for (param, value) in written {
                    if let Some((component, at, participant)) = pairs.place[usize::from(*param)]
                        && (component, participant) == (c.component, c.participant)
                    {
                        same &= values[at] == *value;
                        values[at] = *value;
                    }
                }
                let local = if same { c.local } else { pairs.local(self, c.component, values) };
                after.push(StepParticipant { local, ..*c });
            }
            out.push((*label, after.into()));
        }
        let moves: Moves = out.into();
        if short {
            pairs.moves.insert(key, moves.clone());
        }
        Ok(moves)
    }

    /// Checks the limits.
    fn may_go_on(&self, pairs: &Pairs) -> Result<(), Diagnostic> {
        self.question.budget.check(pairs.fired).map_err(Diagnostic::stopped)?;
        if (self.enough)() {
            let (fired, steps) = (pairs.fired, self.found.consecution);
            return Err(fails(format!(
                "it takes longer than it may: {fired} pairs, {steps} steps"
            )));
        }
        if pairs.fired.is_multiple_of(1 << 16) {
            let all: usize = pairs.nodes.iter().map(|n| n.relations.count()).sum();
            if all > MAX_PAIRS {
                return Err(fails("there are too many pairs of local states"));
            }
        }
        Ok(())
    }

    /// Returns the nodes after a label: one for each modality of a node that it satisfies.
    fn nodes_after(
        &mut self,
        pairs: &mut Pairs,
        label: u32,
        node: usize,
    ) -> Result<Rc<[usize]>, Stop> {
        if let Some(Some(known)) = pairs.after.get(node).and_then(|all| all.get(label as usize)) {
            return Ok(known.clone());
        }
        let mut out: Vec<usize> = Vec::new();
        for m in self.all_sets[pairs.nodes[node].set as usize].clone() {
            let one = self.set(vec![m]);
            let next = self.modalities_after(label, one)?;
            if next != 0 {
                out.push(pairs.node(next));
            }
        }
        out.sort_unstable();
        out.dedup();
        let out: Rc<[usize]> = out.into();
        if pairs.after.len() <= node {
            pairs.after.resize(node + 1, Vec::new());
        }
        let all = &mut pairs.after[node];
        if all.len() <= label as usize {
            all.resize(label as usize + 1, None);
        }
        all[label as usize] = Some(out.clone());
        Ok(out)
    }
}
