//! Solving a large game on a quotient of the system by an equivalence that the formula cannot
//! distinguish.
//!
//! Input: a model with a large game. Output: the quotient; evidence on it, translated back to the
//! states of the model. The formula cannot distinguish labels that no action of it matches (class
//! 0); these become tau. Then
//!
//! - strong bisimilarity always preserves the verdict;
//! - divergence-preserving branching bisimilarity preserves it if no formula state tests labels
//!   without following them and each one is unchanged by tau (`nu X. [tau]X && ..` is, `<true>true`
//!   is not): inert steps lead a play to the same obligations, and a play that stays in a class
//!   forever can do so from all states of the class.
//!
//! After Mateescu, Wijs, "Property-Dependent Reductions Adequate with Divergence-Sensitive
//! Branching Bisimilarity" (Science of Computer Programming 96, 2014), with the condition checked
//! on the formula's automaton instead of its text.
//!
//! Cost: the explored states and their transitions (8 bytes each) are stored once. At most as many
//! are explored as the game has vertices, so a game that is decided early, or on an infinite
//! system, loses only a constant factor. Invariant: states of the quotient are class numbers;
//! labels retain their numbers.

use super::automaton::{Automaton, FormulaState, ObligationSet};
use super::instantiate::GameInstance;
use super::transitions::LazyTransitions;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use mu_evidence::Builder;
use mu_lts::equivalence::Equivalence;
use mu_lts::reduce::{Partition, by_classes};
use mu_lts::tau::Rows;
use mu_lts::{Labels, Lts};
use mu_process::labels::ActionLabels;
use std::collections::VecDeque;
use std::sync::Arc;

/// Size of a quotient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotientSize {
    /// The equivalence.
    pub equivalence: Equivalence,
    /// Number of states.
    pub states: usize,
    /// Number of classes.
    pub classes: usize,
}

/// All states of a model with their transitions, with one label for all that the formula does not
/// name. States have the numbers of the source.
pub struct ExploredModel {
    lts: Lts,
    /// By label: its representative; `None` if no transition has the label.
    representative_label: Vec<Option<LabelId>>,
}

/// The classes of a model's states.
pub struct Quotient {
    /// The system of the classes.
    pub lts: Arc<Lts>,
    /// Size of the quotient.
    pub reduced: QuotientSize,
    partition: Partition,
}

/// True if no formula state so far distinguishes a tau step.
pub fn ignores_tau(
    automaton: &mut Automaton,
    labels: &dyn ActionLabels,
) -> Result<bool, Diagnostic> {
    if automaton.names(LabelId::TAU, labels)? {
        return Ok(false);
    }
    for q in FormulaState::all(automaton.state_count()) {
        if automaton.depends_on_labels_here(q) {
            return Ok(false);
        }
        let obligations = automaton.step(q, LabelId::TAU, labels)?;
        if obligations == ObligationSet::Decided
            || (automaton.set(obligations)[..] != [q] && automaton.follows_labels(q))
        {
            return Ok(false);
        }
    }
    Ok(true)
}

impl ExploredModel {
    /// Explores the rest of the model; `None` if there are more than `most` states.
    pub fn explore(
        source: &mut LazyTransitions,
        automaton: &mut Automaton,
        labels: &dyn ActionLabels,
        most: usize,
        budget: &Budget,
    ) -> Result<Result<Option<Self>, Stop>, Diagnostic> {
        let mut lts = Lts {
            initial: source.initial(),
            offsets: vec![0],
            labels: Vec::new(),
            targets: Vec::new(),
            table: Labels::default(),
        };
        // Tau, unless the formula names it: then the first label that it does not name.
        let mut other = (!automaton.names(LabelId::TAU, labels)?).then_some(LabelId::TAU);
        let mut representative_label: Vec<Option<LabelId>> = Vec::new();
        let mut row = Vec::new();
        let mut next = 0;
        while next < source.state_count() {
            if source.state_count() > most {
                return Ok(Ok(None));
            }
            if next.is_multiple_of(1024) {
                let stop = budget.check(source.state_count() as u64);
                if let Err(stop) = stop.and_then(|()| {
                    if next.is_multiple_of(1 << 16) { budget.check_memory() } else { Ok(()) }
                }) {
                    return Ok(Err(stop));
                }
            }
            source.successors(StateId::new(next), &mut row)?;
            for &(label, target) in &row {
                if representative_label.len() <= label.index() {
                    representative_label.resize(label.index() + 1, None);
                }
                let stands = match representative_label[label.index()] {
                    Some(stands) => stands,
                    None if automaton.names(label, labels)? => label,
                    None => *other.get_or_insert(label),
                };
                representative_label[label.index()] = Some(stands);
                lts.labels.push(stands);
                lts.targets.push(target);
            }
            lts.offsets.push(lts.targets.len() as u64);
            next += 1;
        }
        Ok(Ok(Some(Self { lts, representative_label })))
    }

    /// Returns the number of states.
    pub fn state_count(&self) -> usize {
        self.lts.state_count()
    }

    /// Returns the quotient by divergence-preserving branching bisimilarity if the formula does not
    /// distinguish tau steps, otherwise by strong bisimilarity.
    pub fn quotient(&self, blind: bool, threads: usize) -> Quotient {
        let (lts, partition) = by_classes(&self.lts, blind, threads);
        let equivalence =
            if blind { Equivalence::DIVERGENCE_BRANCHING } else { Equivalence::STRONG };
        let reduced =
            QuotientSize { equivalence, states: self.lts.state_count(), classes: partition.blocks };
        Quotient { lts: Arc::new(lts), reduced, partition }
    }

    /// Returns the transitions of the model that correspond to the winner's strategy on the
    /// quotient; `classes` is the source of the quotient. Adds the obligations to `obligations`.
    pub fn evidence(
        &self,
        quotient: &Quotient,
        instance: &GameInstance,
        value: bool,
        source: &mut LazyTransitions,
        classes: &LazyTransitions,
        obligations: &mut Vec<FormulaState>,
    ) -> Result<Builder, Diagnostic> {
        let class = |s: StateId| classes.vector(s)[0];
        let mut lift = Lift {
            whole: self,
            block_of: &quotient.partition.block_of,
            source,
            rows: AHashMap::new(),
            before: None,
            paths: AHashMap::new(),
            builder: Builder::new((StateId::of(0), 0)),
        };
        let mut seen: AHashSet<(StateId, u32)> = AHashSet::new();
        let mut queue = VecDeque::from([(lift.source.initial(), 0u32)]);
        seen.extend(&queue);
        let mut next = Vec::new();
        while let Some((s, v)) = queue.pop_front() {
            obligations.extend(instance.configurations[v as usize].1);
            next.clear();
            let block = |v: u32| class(instance.configurations[v as usize].0);
            if let Some(&(label, target)) = instance.deciding.get(&v) {
                lift.reach(s, label, class(target))?;
                continue;
            }
            if instance.arena.is_universal(v) != value {
                match instance.arena.chosen_edge(v) {
                    None => {}
                    Some(edge) => match edge.label {
                        None => next.push((s, edge.to)),
                        Some(label) => next.push((lift.reach(s, label, block(edge.to))?, edge.to)),
                    },
                }
            } else {
                let edges = instance.arena.edges(v);
                next.extend(edges.iter().filter(|e| e.label.is_none()).map(|e| (s, e.to)));
                for (representative_label, label, target) in lift.row(s)? {
                    let to = lift.block_of[target.index()];
                    // Not distinguished on the quotient: the same obligation continues.
                    let inert = quotient.reduced.equivalence != Equivalence::STRONG
                        && representative_label == LabelId::TAU
                        && to == lift.block_of[s.index()];
                    let fitting = edges
                        .iter()
                        .filter(|e| e.label == Some(representative_label) && block(e.to) == to)
                        .map(|e| e.to);
                    let before = next.len();
                    next.extend(fitting.chain(inert.then_some(v)).map(|v| (target, v)));
                    if next.len() > before {
                        lift.builder.step((s, 0), label, (target, 0));
                    }
                }
            }
            queue.extend(next.iter().filter(|n| seen.insert(**n)));
        }
        Ok(lift.builder)
    }
}

/// A transition: its label in the quotient, its own label, its target.
type LiftRow = Vec<(LabelId, LabelId, StateId)>;

/// A class, a label that its states can take, possibly after inert steps, and the target class.
type ClassStep = (u32, LabelId, u32);

struct Lift<'a, 'm> {
    whole: &'a ExploredModel,
    block_of: &'a [u32],
    source: &'a mut LazyTransitions<'m>,
    rows: AHashMap<StateId, LiftRow>,
    /// The sources of the inert steps to each state, and the states of each class.
    before: Option<(Rows<u32>, Rows<u32>)>,
    /// For each state of the class: the next state on a shortest path to a state that can take the
    /// label to that class; `None` for such a state itself.
    paths: AHashMap<ClassStep, AHashMap<u32, Option<u32>>>,
    builder: Builder,
}

impl Lift<'_, '_> {
    fn row(&mut self, s: StateId) -> Result<LiftRow, Diagnostic> {
        if let Some(row) = self.rows.get(&s) {
            return Ok(row.clone());
        }
        let mut found = Vec::new();
        self.source.successors(s, &mut found)?;
        let row: LiftRow = found
            .into_iter()
            .map(|(l, t)| {
                let representative = self.whole.representative_label[l.index()];
                (representative.expect("the exploration met all labels of its rows"), l, t)
            })
            .collect();
        self.rows.insert(s, row.clone());
        Ok(row)
    }

    /// Returns the shortest paths of all states of a class to a transition with this label to that
    /// class; linear in the class and its inert steps.
    fn paths_to(&mut self, leap: ClassStep) -> &AHashMap<u32, Option<u32>> {
        let Self { whole, block_of, before, paths, .. } = self;
        paths.entry(leap).or_insert_with(|| {
            let (before, members) = before.get_or_insert_with(|| {
                let states = narrow::index(whole.lts.state_count());
                let steps =
                    |s: u32| whole.lts.successors(StateId::of(s)).map(move |(l, t)| (s, l, t));
                let inert = |&(s, l, t): &(u32, LabelId, StateId)| {
                    l == LabelId::TAU && block_of[s as usize] == block_of[t.index()]
                };
                let classes = block_of.iter().max().map_or(0, |b| *b as usize + 1);
                (
                    Rows::build(states as usize, || {
                        (0..states).flat_map(steps).filter(inert).map(|(s, _, t)| (t.number(), s))
                    }),
                    Rows::build(classes, || {
                        block_of.iter().enumerate().map(|(s, b)| (*b, narrow::index(s)))
                    }),
                )
            });
            let (home, label, class) = leap;
            let leaps = |s: u32| {
                whole
                    .lts
                    .successors(StateId::of(s))
                    .any(|(l, t)| l == label && block_of[t.index()] == class)
            };
            let mut queue: VecDeque<u32> =
                members.row(home).iter().copied().filter(|s| leaps(*s)).collect();
            let mut next: AHashMap<u32, Option<u32>> = queue.iter().map(|s| (*s, None)).collect();
            while let Some(s) = queue.pop_front() {
                for &b in before.row(s) {
                    next.entry(b).or_insert_with(|| {
                        queue.push_back(b);
                        Some(s)
                    });
                }
            }
            next
        })
    }

    /// Takes inert steps to a transition with this label to the class, and then that transition.
    /// Returns its target.
    fn reach(&mut self, from: StateId, label: LabelId, class: u32) -> Result<StateId, Diagnostic> {
        let lost =
            || Diagnostic::new(Stage::Internal, "a step of a class is not one of its states");
        let leap = (self.block_of[from.index()], label, class);
        let mut at = from;
        while let Some(next) = *self.paths_to(leap).get(&at.number()).ok_or_else(lost)? {
            let (_, own, _) = *self
                .row(at)?
                .iter()
                .find(|(l, _, t)| *l == LabelId::TAU && t.number() == next)
                .ok_or_else(lost)?;
            self.builder.step((at, 0), own, (StateId::of(next), 0));
            at = StateId::of(next);
        }
        let (_, own, target) = *self
            .row(at)?
            .iter()
            .find(|(l, _, t)| *l == label && self.block_of[t.index()] == class)
            .ok_or_else(lost)?;
        self.builder.step((at, 0), own, (target, 0));
        Ok(target)
    }
}
