//! The product route by several processes ([`mu_explore::Peers`]): each carries the obligations of
//! its own states, as [`super::parallel_product`] does on one machine.
//!
//! In: as there, and the processes. Out: the same verdict and the same numbers of states and
//! obligations, in all processes. Each process has an automaton and sets of its own; formula states
//! go to others by name, sets by [`super::channel`]. Steps are not left out, and confluent ones are
//! not taken at once: that is decided by what the whole search met.
//!
//! A formula that turns out to need a game is left to the first process ([`super::run`]). So is one
//! with least fixed points if obligations come to states from which others had gone on and go in a
//! circle, which the processes find out together.
//!
//! Where something decides, the processes search once more for a shortest way to it, without
//! symmetries, and go back from there together ([`mu_explore::Partition`]); then each replays the way.
//! Cost: as on one machine, and the traffic of the sets. Invariant: what differs between processes
//! decides nothing: they compare what each has to say.

use super::automaton::{Automaton, Demand, FormulaState};
use super::channel::Channel;
use super::confluence::{self, Priority};
use super::obligations::{EMPTY, Set, Sets};
use super::parallel_product::{Oracle, Searched, Symmetry, Task, Thread};
use super::product::{Figures, Kind, Outcome, Shape, local_value, loops_here};
use super::proviso::Order;
use super::transitions::Source;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, StateId};
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage, Stop};
use mu_evidence::Builder;
use mu_explore::{
    AnnotationWorker, JointOutcome, JointSearch, Partition, Peers, PortableAnnotator,
    ReductionObstacle, Symmetries, TraceState, Transfer, with_verified_symmetries,
};
use std::cell::RefCell;

/// Obligations that go to other processes.
struct Bearer<'a, 'o> {
    thread: Thread<'a, &'o RefCell<Oracle<'a>>>,
    oracle: &'o RefCell<Oracle<'a>>,
    initial: Set,
    channels: Vec<Channel>,
    /// By set, what of it must not go on for ever.
    lfp_part: AHashMap<Set, Set>,
}

impl AnnotationWorker for Bearer<'_, '_> {
    fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic> {
        self.thread.join(old, new)
    }
    fn enter(&mut self, pending: u32, labels: &[LabelId]) -> Result<Transfer, Diagnostic> {
        self.thread.enter(pending, labels)
    }
    fn step(&mut self, flow: u32, label: LabelId) -> Result<Transfer, Diagnostic> {
        self.thread.step(flow, label)
    }
    fn image(&mut self, element: usize, annotation: u32) -> Result<u32, Diagnostic> {
        self.thread.image(element, annotation)
    }
}

impl PortableAnnotator for Bearer<'_, '_> {
    fn initial(&self) -> u32 {
        self.initial
    }
    fn open(&mut self, channel: usize) {
        if self.channels.len() <= channel {
            self.channels.resize_with(channel + 1, Channel::default);
        }
        self.channels[channel] = Channel::default();
    }
    fn export(
        &mut self,
        channel: usize,
        element: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Diagnostic> {
        let Self { thread, oracle, channels, .. } = self;
        let mut name = |q: u32| oracle.borrow_mut().automaton.name(FormulaState(q));
        channels[channel].export(&thread.operations, element, &mut name, out)
    }
    fn import(&mut self, channel: usize, bytes: &mut &[u8]) -> Result<u32, Diagnostic> {
        let Self { thread, oracle, channels, .. } = self;
        let mut state = |name: &[u8]| oracle.borrow_mut().automaton.named(name).map(|q| q.0);
        let set = channels[channel].import(&mut thread.operations, bytes, &mut state)?;
        self.thread.result(set)
    }
    fn atoms(&mut self, element: u32) -> Result<Vec<(Vec<u8>, u32)>, Diagnostic> {
        let sets = self.thread.operations.sets();
        let mut oracle = self.oracle.borrow_mut();
        let one = |q: u32| Ok((oracle.automaton.name(FormulaState(q))?, sets.from_members(&[q])));
        sets.members(element).into_iter().map(one).collect()
    }
    fn lfp_part(&mut self, element: u32) -> Result<u32, Diagnostic> {
        if let Some(part) = self.lfp_part.get(&element) {
            return Ok(*part);
        }
        let sets = self.thread.operations.sets();
        let members = self.oracle.borrow().lfp_members(sets.members(element));
        let part = self.thread.result(sets.from_members(&members))?;
        self.lfp_part.insert(element, part);
        Ok(part)
    }
    fn atom(&mut self, name: &[u8]) -> Result<u32, Diagnostic> {
        let q = self.oracle.borrow_mut().automaton.named(name)?;
        Ok(self.thread.operations.sets().from_members(&[q.0]))
    }
}

/// What a process has to say of its share.
#[derive(Default)]
struct Said {
    figures: Figures,
    forward: bool,
    loops: bool,
    /// The name of a formula state met that tells a hidden step from none, if such steps were
    /// taken at once.
    telling: Option<Vec<u8>>,
}

impl Said {
    fn write(&self) -> Vec<u8> {
        let Figures { configurations, states, steps, .. } = self.figures;
        let mut out = vec![u8::from(self.forward), u8::from(self.loops)];
        [configurations, states, steps].into_iter().for_each(|n| put(&mut out, n));
        // No name is empty.
        let telling = self.telling.as_deref().unwrap_or_default();
        put(&mut out, telling.len() as u64);
        out.extend(telling);
        out
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(2)?;
        *bytes = rest;
        let (configurations, states, steps) = (take(bytes)?, take(bytes)?, take(bytes)?);
        let length = usize::try_from(take(bytes)?).ok()?;
        let (telling, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let telling = (!telling.is_empty()).then(|| telling.to_vec());
        let figures = Figures { configurations, states, steps, symmetries: 1 };
        Some(Self { figures, forward: head[0] == 1, loops: head[1] == 1, telling })
    }
    /// Of all processes together; `learn` gets what each met of the formula.
    fn together(
        said: &[Vec<u8>],
        learn: &mut dyn FnMut(&mut &[u8]) -> Result<(), Diagnostic>,
    ) -> Result<Self, Diagnostic> {
        let mut all = Said { forward: true, ..Said::default() };
        for bytes in said.iter().filter(|bytes| !bytes.is_empty()) {
            let bytes = &mut &bytes[..];
            let malformed = || {
                Diagnostic::new(Stage::File, "what another process says of its share is malformed")
            };
            let one = Said::read(bytes).ok_or_else(malformed)?;
            learn(bytes)?;
            all.figures.configurations += one.figures.configurations;
            all.figures.states += one.figures.states;
            all.figures.steps += one.figures.steps;
            all.forward &= one.forward;
            all.loops |= one.loops;
            all.telling = match (all.telling, one.telling) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(all)
    }
}

/// Searches from the initial state with the given obligations; confluent steps are taken at once as
/// one process does it ([`super::parallel_product::search`]).
pub(super) fn search(
    task: Task<'_>,
    peers: &dyn Peers,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
) -> Result<Searched, Diagnostic> {
    let once = |task: Task<'_>, automaton: &mut Automaton| {
        let mut telling = None;
        let search = |symmetries: Option<&mut Symmetries>| {
            let (outcome, figures, tells) =
                search_with(task, peers, &mut *automaton, shape, roots, symmetries)?;
            telling = tells;
            Ok((outcome, figures))
        };
        let (found, dropped) = with_verified_symmetries(task.model, task.explore, search)?;
        let order = if task.explore.partial_order {
            Order::Unused(ReductionObstacle::Processes)
        } else {
            Order::Unused(ReductionObstacle::Disabled)
        };
        Ok::<_, Diagnostic>((
            Searched { found: Some(found), priority: Priority::None, order, dropped },
            telling,
        ))
    };
    let plain = task.explore.without_confluence();
    let all_steps = Task { explore: &plain, ..task };
    if !task.explore.confluent.iter().any(|c| *c) {
        return Ok(once(all_steps, automaton)?.0);
    }
    let priority = match confluence::forbidden(automaton, shape) {
        Some(forbidden) => forbidden,
        None => {
            let (result, telling) = once(task, automaton)?;
            // Else a path may decide that is none of the full system, where steps of tau lie
            // between its steps.
            match (&result.found, telling) {
                (Some((Outcome::Verdict(_), _)), Some(name)) => {
                    let q = automaton.named(&name)?;
                    confluence::of_states(automaton, task.labels, &[q.0])?
                }
                _ => return Ok(Searched { priority: Priority::Used, ..result }),
            }
        }
    };
    Ok(Searched { priority, ..once(all_steps, automaton)?.0 })
}

/// A search, and the name of a formula state met that tells a hidden step from none, if such steps
/// were taken at once.
fn search_with(
    task: Task<'_>,
    peers: &dyn Peers,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
    symmetries: Option<&mut Symmetries>,
) -> Result<(Outcome, Figures, Option<Vec<u8>>), Diagnostic> {
    let sets = Sets::default();
    let mut oracle = Oracle::new(&mut *automaton, task.labels, shape, &sets, false);
    let at_once = |value: bool| Ok((Outcome::Verdict(value), Figures::default(), None));
    let Some(initial) = oracle.start(roots)? else { return at_once(!shape.universal) };
    if initial == EMPTY {
        return at_once(shape.universal);
    }
    let symmetries = oracle.stabiliser(symmetries, task, initial);
    oracle.symmetry =
        symmetries.and_then(|s| Symmetry::new(s, task.model, task.labels, oracle.automaton));
    oracle.group = symmetries;
    let order = symmetries.map_or(1, Symmetries::order);
    let confluent = task.explore.confluent.iter().any(|c| *c);
    let name = format!("{}{}s{order}", task.name, if confluent { "p" } else { "" });
    let oracle = RefCell::new(oracle);
    let mut said = |share: &mut Partition<'_>| {
        let mut figures = Figures { steps: share.tally().transitions, ..Figures::default() };
        let mut sizes = Vec::new();
        let mut known = AHashSet::new();
        share.each_annotated(&mut |carrier, set, orbit, fixed| {
            known.insert(set);
            let mut all = set;
            for element in fixed {
                let image = carrier.image(*element as usize - 1, set)?;
                all = carrier.join(all, image)?.0;
            }
            figures.states += orbit;
            figures.configurations += orbit * sets.size(all, &mut sizes);
            Ok(())
        })?;
        let automaton = &mut *oracle.borrow_mut().automaton;
        let met = sets.union(known);
        let states: Vec<FormulaState> = met.iter().map(|q| FormulaState(*q)).collect();
        let loops = loops_here(automaton, shape, &states)?;
        let telling = if confluent { telling(automaton, task, &met)? } else { None };
        let mut out = Said { figures, forward: share.is_forward(), loops, telling }.write();
        out.extend(automaton.experience());
        Ok(out)
    };
    // Whether cycles of obligations matter; what is malformed is told below.
    let lasts = |said: &[Vec<u8>]| {
        let all = Said::together(said, &mut |_| Ok(())).unwrap_or_default();
        !(shape.hostile.is_empty() || all.loops || all.forward || task.runs_end)
    };
    let met = run(
        task,
        peers,
        (&oracle, &sets, initial),
        symmetries,
        (&name, false),
        (&mut said, &lasts),
    )?;
    drop(oracle);
    let mut all = Said::together(&met.said, &mut |bytes| automaton.learn(bytes))?;
    all.figures.symmetries = order;
    let outcome = match met.stop {
        _ if met.decided => Outcome::Verdict(!shape.universal),
        Stop::Complete if all.loops || met.lasts == Some(true) => Outcome::Cycle,
        Stop::Complete => Outcome::Verdict(shape.universal),
        stop => Outcome::Stopped(stop),
    };
    Ok((outcome, all.figures, all.telling))
}

/// The least name of those of some formula states of which a hidden step makes something else.
fn telling(
    automaton: &mut Automaton,
    task: Task<'_>,
    met: &[u32],
) -> Result<Option<Vec<u8>>, Diagnostic> {
    let mut least: Option<Vec<u8>> = None;
    for q in met {
        if confluence::of_states(automaton, task.labels, &[*q])? != Priority::Used {
            let name = automaton.name(FormulaState(*q))?;
            least = Some(least.map_or(name.clone(), |l| l.min(name)));
        }
    }
    Ok(least)
}

/// One search by all. `trace`: whether the way to what decides is wanted.
fn run<'a>(
    task: Task<'a>,
    peers: &dyn Peers,
    (oracle, sets, initial): (&RefCell<Oracle<'a>>, &'a Sets, Set),
    symmetries: Option<&Symmetries>,
    (name, trace): (&str, bool),
    (said, lasts): (
        &mut dyn FnMut(&mut Partition<'_>) -> Result<Vec<u8>, Diagnostic>,
        &dyn Fn(&[Vec<u8>]) -> bool,
    ),
) -> Result<JointOutcome, Diagnostic> {
    let locals = oracle.borrow().has_locals();
    let carrier = Box::new(Bearer {
        thread: Thread::new(sets, oracle, locals),
        oracle,
        initial,
        channels: Vec::new(),
        lfp_part: AHashMap::new(),
    });
    let Task { model, explore: options, budget, progress, .. } = task;
    peers.annotate(JointSearch {
        model,
        options,
        budget,
        progress,
        carrier,
        symmetries,
        trace,
        name,
        said,
        lasts,
    })
}

/// A shortest path to what decides, of which it is known that it can be reached; none if a limit
/// comes first.
pub(super) fn shortest(
    task: Task<'_>,
    peers: &dyn Peers,
    source: &mut Source<'_>,
    automaton: &mut Automaton,
    shape: &Shape,
    roots: &[FormulaState],
) -> Result<Option<Builder>, Diagnostic> {
    let sets = Sets::default();
    let plain = mu_explore::Options { symmetry: false, ..task.explore.without_confluence() };
    let task = Task { explore: &plain, ..task };
    let mut oracle = Oracle::new(&mut *automaton, task.labels, shape, &sets, false);
    let Some(initial) = oracle.start(roots)? else {
        return Ok(Some(Builder::new((source.initial(), 0))));
    };
    let oracle = RefCell::new(oracle);
    let met = run(
        task,
        peers,
        (&oracle, &sets, initial),
        None,
        ("", true),
        (&mut |_| Ok(Vec::new()), &|_| false),
    );
    drop(oracle);
    let stations = match met {
        Ok(JointOutcome { way: Some(stations), .. }) => stations,
        Ok(_) => return Ok(None),
        Err(error) if error.stop.is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let stations: Vec<TraceState> =
        stations.iter().map(|s| TraceState::read(task.model, s)).collect::<Result<_, _>>()?;
    replay(task, source, automaton, shape, &stations).map(Some)
}

/// The way as evidence, step by step.
fn replay(
    task: Task<'_>,
    source: &mut Source<'_>,
    automaton: &mut Automaton,
    shape: &Shape,
    stations: &[TraceState],
) -> Result<Builder, Diagnostic> {
    let broken = || Diagnostic::internal("the stations of a way are not joined by steps");
    let mut at = source.initial();
    let mut builder = Builder::new((at, 0));
    let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
    for (n, pair) in stations.windows(2).enumerate() {
        let q = automaton.named(&pair[0].atom)?;
        let next = automaton.named(&pair[1].atom)?;
        source.successors(at, &mut transitions)?;
        let mut taken: Option<(String, LabelId, StateId)> = None;
        for &(label, target) in transitions.iter().filter(|t| source.vector(t.1) == pair[1].vector)
        {
            let text = task.model.label_text(label);
            if taken.as_ref().is_none_or(|t| text < t.0)
                && brings(task, automaton, shape, q, label, next)?
            {
                taken = Some((text, label, target));
            }
        }
        let (_, label, target) = taken.ok_or_else(broken)?;
        builder.step((at, n as u32), label, (target, n as u32 + 1));
        at = target;
    }
    let last = stations.last().ok_or_else(broken)?;
    let (q, n) = (automaton.named(&last.atom)?, stations.len() as u32 - 1);
    source.successors(at, &mut transitions)?;
    let mut shown = Vec::new();
    if last.local {
        local_value(automaton, q, &transitions, task.labels, &mut shown)?;
    } else {
        for &(label, target) in &transitions {
            if step(task, automaton, shape, q, label)?.is_none() {
                shown.push((label, target));
                break;
            }
        }
    }
    shown.into_iter().for_each(|(label, target)| builder.step((at, n), label, (target, n + 1)));
    Ok(builder)
}

/// What a formula state becomes along a label, with all that this demands at the same state; none:
/// decided.
fn step(
    task: Task<'_>,
    automaton: &mut Automaton,
    shape: &Shape,
    q: FormulaState,
    label: LabelId,
) -> Result<Option<Vec<FormulaState>>, Diagnostic> {
    let demand = automaton.step(q, label, task.labels)?;
    if demand == Demand::Decided {
        return Ok(None);
    }
    let closed = super::product::close(automaton, shape, &automaton.set(demand).clone())?;
    Ok(closed.map(|(flow, local)| flow.into_iter().chain(local).collect()))
}

/// Whether a formula state becomes, among others, the next one along a label.
fn brings(
    task: Task<'_>,
    automaton: &mut Automaton,
    shape: &Shape,
    q: FormulaState,
    label: LabelId,
    next: FormulaState,
) -> Result<bool, Diagnostic> {
    // One that is local goes nowhere.
    if shape.kinds.get(&automaton.node(q)) == Some(&Kind::Local) {
        return Ok(false);
    }
    Ok(step(task, automaton, shape, q, label)?.is_some_and(|set| set.contains(&next)))
}
