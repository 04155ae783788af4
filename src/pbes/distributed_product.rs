//! Distributed product search ([`mu_explore::Peers`]): each process stores the obligations of its
//! own states, as [`super::parallel_product`] does in one process.
//!
//! In: the input of that module, and the processes. Out: the same verdict and the same numbers of
//! states and obligations, in all processes. Each process has its own automaton and sets; formula
//! states are sent by name, sets by [`super::channel`]. Steps are not left out. Confluent steps get
//! priority only if all formula states of the whole search permit it.
//!
//! A formula that requires a game is left to process 0 ([`super::run`]). So is a formula with least
//! fixed points, if obligations reach expanded states and have a cycle, which the processes detect
//! together.
//!
//! If some state decides, the processes search once more for a shortest path to it, without
//! symmetries, and reconstruct it backwards together ([`mu_explore::Partition`]); then each replays
//! the path. Cost: as in one process, plus the transfer of the sets. Invariant: differences between
//! processes affect no decision, because they compare their reports.

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::channel::Channel;
use super::obligations::{EMPTY, Set, Sets};
use super::parallel_product::{
    AutomatonOwner, ObligationWorker, ProductTask, SearchResult, Symmetry, group_name,
};
use super::priority::{self, Priority};
use super::product::{
    ObligationKind, ProductAnalysis, ProductCounts, ProductResult, has_cycle_without_transitions,
    local_value,
};
use super::proviso::ReductionUse;
use super::transitions::LazyTransitions;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, StateId};
use mu_base::varint::{put, take};
use mu_base::{Diagnostic, Stage, Stop, narrow};
use mu_evidence::Builder;
use mu_explore::{
    AnnotationWorker, JointOutcome, JointSearch, Partition, Peers, PortableAnnotator,
    ReductionObstacle, Symmetries, TraceState, Transfer, with_verified_symmetries,
};
use std::cell::RefCell;

/// Annotations of a distributed search: sets of obligations.
struct ObligationAnnotator<'a, 'o> {
    thread: ObligationWorker<'a, &'o RefCell<AutomatonOwner<'a>>>,
    oracle: &'o RefCell<AutomatonOwner<'a>>,
    initial: Set,
    channels: Vec<Channel>,
    /// By set: its obligations under a least fixed point.
    lfp_part: AHashMap<Set, Set>,
}

impl AnnotationWorker for ObligationAnnotator<'_, '_> {
    fn join(&mut self, old: u32, new: u32) -> Result<(u32, u32), Diagnostic> {
        self.thread.join(old, new)
    }
    fn enter(&mut self, pending: u32, labels: &[LabelId]) -> Result<Transfer, Diagnostic> {
        self.thread.enter(pending, labels)
    }
    fn step(&mut self, propagated: u32, label: LabelId) -> Result<Transfer, Diagnostic> {
        self.thread.step(propagated, label)
    }
    fn image(&mut self, element: usize, annotation: u32) -> Result<u32, Diagnostic> {
        self.thread.image(element, annotation)
    }
}

impl PortableAnnotator for ObligationAnnotator<'_, '_> {
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
        let mut name = |q: u32| oracle.borrow_mut().automaton.encode_state(FormulaState::of(q));
        channels[channel].export(&thread.operations, element, &mut name, out)
    }
    fn import(&mut self, channel: usize, bytes: &mut &[u8]) -> Result<u32, Diagnostic> {
        let Self { thread, oracle, channels, .. } = self;
        let mut state =
            |name: &[u8]| oracle.borrow_mut().automaton.decode_state(name).map(|q| q.number());
        let set = channels[channel].import(&mut thread.operations, bytes, &mut state)?;
        self.thread.result(set)
    }
    fn atoms(&mut self, element: u32) -> Result<Vec<(Vec<u8>, u32)>, Diagnostic> {
        let sets = self.thread.operations.sets();
        let mut oracle = self.oracle.borrow_mut();
        let one = |q: u32| {
            Ok((oracle.automaton.encode_state(FormulaState::of(q))?, sets.from_members(&[q])))
        };
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
        let q = self.oracle.borrow_mut().automaton.decode_state(name)?;
        Ok(self.thread.operations.sets().from_members(&[q.number()]))
    }
}

/// Final report of one process.
#[derive(Default)]
struct ProcessReport {
    counts: ProductCounts,
    forward: bool,
    loops: bool,
    /// The name of a formula state that distinguishes a tau step from no step, if confluent steps
    /// had priority.
    tau_sensitive: Option<Vec<u8>>,
}

impl ProcessReport {
    fn write(&self) -> Vec<u8> {
        let ProductCounts { equations, states, steps, .. } = self.counts;
        let mut out = vec![u8::from(self.forward), u8::from(self.loops)];
        [equations, states, steps].into_iter().for_each(|n| put(&mut out, n));
        // No name is empty.
        let tau_sensitive = self.tau_sensitive.as_deref().unwrap_or_default();
        put(&mut out, tau_sensitive.len() as u64);
        out.extend(tau_sensitive);
        out
    }
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(2)?;
        *bytes = rest;
        let (equations, states, steps) = (take(bytes)?, take(bytes)?, take(bytes)?);
        let length = usize::try_from(take(bytes)?).ok()?;
        let (tau_sensitive, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        let tau_sensitive = (!tau_sensitive.is_empty()).then(|| tau_sensitive.to_vec());
        let counts = ProductCounts { equations, states, steps, symmetries: 1 };
        Some(Self { counts, forward: head[0] == 1, loops: head[1] == 1, tau_sensitive })
    }
    /// Combines the reports of all processes; `learn` reads what each recorded about the formula.
    fn combine(
        final_report: &[Vec<u8>],
        learn: &mut dyn FnMut(&mut &[u8]) -> Result<(), Diagnostic>,
    ) -> Result<Self, Diagnostic> {
        let mut all = ProcessReport { forward: true, ..ProcessReport::default() };
        for bytes in final_report.iter().filter(|bytes| !bytes.is_empty()) {
            let bytes = &mut &bytes[..];
            let malformed =
                || Diagnostic::new(Stage::File, "the report of another process is malformed");
            let one = ProcessReport::read(bytes).ok_or_else(malformed)?;
            learn(bytes)?;
            all.counts.equations += one.counts.equations;
            all.counts.states += one.counts.states;
            all.counts.steps += one.counts.steps;
            all.forward &= one.forward;
            all.loops |= one.loops;
            all.tau_sensitive = match (all.tau_sensitive, one.tau_sensitive) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(all)
    }
}

/// Searches from the initial state with the given obligations; uses priority of confluent steps as
/// in one process ([`super::parallel_product::search`]).
pub(super) fn search(
    task: ProductTask<'_>,
    peers: &dyn Peers,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    roots: &[FormulaState],
) -> Result<SearchResult, Diagnostic> {
    let once = |task: ProductTask<'_>, automaton: &mut Automaton| {
        let mut tau_sensitive = None;
        let search = |symmetries: Option<&mut Symmetries>| {
            let (outcome, counts, distinguishes_tau) =
                search_with(task, peers, &mut *automaton, analysis, roots, symmetries)?;
            tau_sensitive = distinguishes_tau;
            Ok((outcome, counts))
        };
        let (found, dropped) = with_verified_symmetries(task.model, task.explore, search)?;
        let order = if task.explore.partial_order {
            ReductionUse::Unused(ReductionObstacle::Processes)
        } else {
            ReductionUse::Unused(ReductionObstacle::Disabled)
        };
        Ok::<_, Diagnostic>((
            SearchResult { found: Some(found), priority: Priority::None, order, dropped },
            tau_sensitive,
        ))
    };
    let plain = task.explore.without_confluence();
    let all_steps = ProductTask { explore: &plain, ..task };
    if !task.explore.confluent.iter().any(|c| *c) {
        return Ok(once(all_steps, automaton)?.0);
    }
    let priority = match priority::violated_condition(automaton, analysis) {
        Some(forbidden) => forbidden,
        None => {
            let (result, tau_sensitive) = once(task, automaton)?;
            // Otherwise a path may decide that does not exist in the full system, which has tau
            // steps between its steps.
            match (&result.found, tau_sensitive) {
                (Some((ProductResult::Verdict(_), _)), Some(name)) => {
                    let q = automaton.decode_state(&name)?;
                    priority::priority_of_states(automaton, task.labels, &[q.number()])?
                }
                _ => return Ok(SearchResult { priority: Priority::Used, ..result }),
            }
        }
    };
    Ok(SearchResult { priority, ..once(all_steps, automaton)?.0 })
}

/// Searches once. Also returns the name of a formula state that distinguishes a tau step from no
/// step, if confluent steps had priority.
fn search_with(
    task: ProductTask<'_>,
    peers: &dyn Peers,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    roots: &[FormulaState],
    symmetries: Option<&mut Symmetries>,
) -> Result<(ProductResult, ProductCounts, Option<Vec<u8>>), Diagnostic> {
    let sets = Sets::default();
    let mut oracle = AutomatonOwner::new(&mut *automaton, task.labels, analysis, &sets, false);
    let at_once = |value: bool| Ok((ProductResult::Verdict(value), ProductCounts::default(), None));
    let Some(initial) = oracle.start(roots)? else { return at_once(!analysis.conjunctive) };
    if initial == EMPTY {
        return at_once(analysis.conjunctive);
    }
    let symmetries = oracle.stabiliser(symmetries, task, initial);
    oracle.symmetry =
        symmetries.and_then(|s| Symmetry::new(s, task.model, task.labels, oracle.automaton));
    oracle.group = symmetries;
    let order = symmetries.map_or(1, Symmetries::order);
    let confluent = task.explore.confluent.iter().any(|c| *c);
    let priority = if confluent { "p" } else { "" };
    let name = format!("{}{priority}{}", task.name, group_name(symmetries));
    let oracle = RefCell::new(oracle);
    let mut final_report = |share: &mut Partition<'_>| {
        let mut counts =
            ProductCounts { steps: share.tally().transitions, ..ProductCounts::default() };
        let mut sizes = Vec::new();
        let mut known = AHashSet::new();
        share.each_annotated(&mut |carrier, set, orbit, fixed| {
            known.insert(set);
            let mut all = set;
            for element in fixed {
                let image = carrier.image(*element as usize - 1, set)?;
                all = carrier.join(all, image)?.0;
            }
            counts.states += orbit;
            counts.equations += orbit * sets.size(all, &mut sizes);
            Ok(())
        })?;
        let automaton = &mut *oracle.borrow_mut().automaton;
        let met = sets.union(known);
        let states: Vec<FormulaState> = met.iter().map(|q| FormulaState::of(*q)).collect();
        let loops = has_cycle_without_transitions(automaton, analysis, &states)?;
        let tau_sensitive = if confluent { tau_sensitive(automaton, task, &met)? } else { None };
        let mut out =
            ProcessReport { counts, forward: share.is_forward(), loops, tau_sensitive }.write();
        out.extend(automaton.match_record());
        Ok(out)
    };
    // True if cycles of obligations matter; malformed reports are rejected below.
    let needs_cycle_check = |final_report: &[Vec<u8>]| {
        let all = ProcessReport::combine(final_report, &mut |_| Ok(())).unwrap_or_default();
        !(analysis.hostile.is_empty() || all.loops || all.forward || task.runs_end)
    };
    let met = run(
        task,
        peers,
        (&oracle, &sets, initial),
        symmetries,
        (&name, false),
        (&mut final_report, &needs_cycle_check),
    )?;
    drop(oracle);
    let mut all =
        ProcessReport::combine(&met.final_report, &mut |bytes| automaton.merge_record(bytes))?;
    all.counts.symmetries = order;
    let outcome = match met.stop {
        _ if met.decided => ProductResult::Verdict(!analysis.conjunctive),
        Stop::Complete if all.loops || met.has_lfp_cycle == Some(true) => ProductResult::Cycle,
        Stop::Complete => ProductResult::Verdict(analysis.conjunctive),
        stop => ProductResult::Stopped(stop),
    };
    Ok((outcome, all.counts, all.tau_sensitive))
}

/// Returns the least name of the formula states that a tau step changes.
fn tau_sensitive(
    automaton: &mut Automaton,
    task: ProductTask<'_>,
    met: &[u32],
) -> Result<Option<Vec<u8>>, Diagnostic> {
    let mut least: Option<Vec<u8>> = None;
    for q in met {
        if priority::priority_of_states(automaton, task.labels, &[*q])? != Priority::Used {
            let name = automaton.encode_state(FormulaState::of(*q))?;
            least = Some(least.map_or(name.clone(), |l| l.min(name)));
        }
    }
    Ok(least)
}

/// Runs one search in all processes. `trace`: a path to the decision is wanted.
fn run<'a>(
    task: ProductTask<'a>,
    peers: &dyn Peers,
    (oracle, sets, initial): (&RefCell<AutomatonOwner<'a>>, &'a Sets, Set),
    symmetries: Option<&Symmetries>,
    (name, trace): (&str, bool),
    (final_report, needs_cycle_check): (
        &mut dyn FnMut(&mut Partition<'_>) -> Result<Vec<u8>, Diagnostic>,
        &dyn Fn(&[Vec<u8>]) -> bool,
    ),
) -> Result<JointOutcome, Diagnostic> {
    let locals = oracle.borrow().has_locals();
    let carrier = Box::new(ObligationAnnotator {
        thread: ObligationWorker::new(sets, oracle, locals),
        oracle,
        initial,
        channels: Vec::new(),
        lfp_part: AHashMap::new(),
    });
    let ProductTask { model, explore: options, budget, progress, .. } = task;
    peers.annotate(JointSearch {
        model,
        options,
        budget,
        progress,
        carrier,
        symmetries,
        trace,
        name,
        final_report,
        needs_cycle_check,
    })
}

/// Returns a shortest path to a decision that is known to be reachable; `None` if a limit ends the
/// search.
pub(super) fn shortest(
    task: ProductTask<'_>,
    peers: &dyn Peers,
    source: &mut LazyTransitions<'_>,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    roots: &[FormulaState],
) -> Result<Option<Builder>, Diagnostic> {
    let sets = Sets::default();
    let plain = mu_explore::Options { symmetry: false, ..task.explore.without_confluence() };
    let task = ProductTask { explore: &plain, ..task };
    let mut oracle = AutomatonOwner::new(&mut *automaton, task.labels, analysis, &sets, false);
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
    let path = match met {
        Ok(JointOutcome { path: Some(path), .. }) => path,
        Ok(_) => return Ok(None),
        Err(error) if error.stop.is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let path: Vec<TraceState> =
        path.iter().map(|s| TraceState::read(task.model, s)).collect::<Result<_, _>>()?;
    replay(task, source, automaton, analysis, &path).map(Some)
}

/// Replays the path as evidence, step by step.
fn replay(
    task: ProductTask<'_>,
    source: &mut LazyTransitions<'_>,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    path: &[TraceState],
) -> Result<Builder, Diagnostic> {
    let broken = || Diagnostic::internal("the states of a path are not joined by steps");
    let mut at = source.initial();
    let mut builder = Builder::new((at, 0));
    let mut transitions: Vec<(LabelId, StateId)> = Vec::new();
    for (n, pair) in path.windows(2).enumerate() {
        let q = automaton.decode_state(&pair[0].atom)?;
        let next = automaton.decode_state(&pair[1].atom)?;
        source.successors(at, &mut transitions)?;
        let mut taken: Option<(String, LabelId, StateId)> = None;
        for &(label, target) in transitions.iter().filter(|t| source.vector(t.1) == pair[1].vector)
        {
            let text = task.model.label_text(label);
            if taken.as_ref().is_none_or(|t| text < t.0)
                && leads_to(task, automaton, analysis, q, label, next)?
            {
                taken = Some((text, label, target));
            }
        }
        let (_, label, target) = taken.ok_or_else(broken)?;
        builder.step((at, narrow::index(n)), label, (target, narrow::index(n) + 1));
        at = target;
    }
    let last = path.last().ok_or_else(broken)?;
    let (q, n) = (automaton.decode_state(&last.atom)?, narrow::index(path.len()) - 1);
    source.successors(at, &mut transitions)?;
    let mut witnesses = Vec::new();
    if last.local {
        local_value(automaton, q, &transitions, task.labels, &mut witnesses)?;
    } else {
        for &(label, target) in &transitions {
            if step(task, automaton, analysis, q, label)?.is_none() {
                witnesses.push((label, target));
                break;
            }
        }
    }
    witnesses.into_iter().for_each(|(label, target)| builder.step((at, n), label, (target, n + 1)));
    Ok(builder)
}

/// Returns the successor obligations of a formula state along a label, closed at the target state;
/// `None`: decided.
fn step(
    task: ProductTask<'_>,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    q: FormulaState,
    label: LabelId,
) -> Result<Option<Vec<FormulaState>>, Diagnostic> {
    let obligations = automaton.step(q, label, task.labels)?;
    if obligations == ObligationSet::Decided {
        return Ok(None);
    }
    let closed = super::product::closure(automaton, analysis, &automaton.set(obligations).clone())?;
    Ok(closed.members())
}

/// True if the successors of a formula state along a label include `next`.
fn leads_to(
    task: ProductTask<'_>,
    automaton: &mut Automaton,
    analysis: &ProductAnalysis,
    q: FormulaState,
    label: LabelId,
    next: FormulaState,
) -> Result<bool, Diagnostic> {
    // A local formula state has no successors.
    if analysis.kinds.get(&automaton.node(q)) == Some(&ObligationKind::Local) {
        return Ok(false);
    }
    Ok(step(task, automaton, analysis, q, label)?.is_some_and(|set| set.contains(&next)))
}
