//! Decision for programs of every length: searches of the product with the monitors, and the checks
//! on which their answer rests.
//!
//! Input: the model of a machine, its interface. Output: for each [`ProcessorOrder`] that no run of
//! the machine violates it, or a shortest run that does; and what was checked ([`Checks`]). One
//! search for violations at one address serves all orders, then one search of cycles for each
//! order. A violation found here follows the order of commits; [`Subject::run`] gives a run that
//! ends all its operations, for the judge of histories to confirm.

use super::effects::{Effect, LabelReader};
use super::extend::extend;
use super::monitor::{Guess, Roles, Size, coherence_guesses, cycle_guesses};
use super::order::ProcessorOrder;
use super::pending::{Continuation, continuation, stopping_processor};
use super::product::{ALARM, Goal, MAX_PROCESSORS, Product};
use super::values::{Merging, check_merging, unstored_value};
use super::{cycle, recheck};
use crate::alphabet::{Alphabet, arguments};
use crate::interface::{Interface, Label};
use crate::judge::{self, MemoryModel};
use crate::machine::with_used_labels;
use crate::search::Violation;
use crate::sequences::SequenceEntry;
use crate::witness::{self, RunStep};
use ahash::AHashSet;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, Stage, Stop, narrow};
use mu_explore::{Options, Outcome, Progress, SearchTarget, explore_lts, find, find_or_refute};
use mu_lts::relabel::{name_of, parts};
use mu_model::Model;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Limit on the states of a machine for the check that values can be merged; the check of larger
/// machines is omitted and reported.
const MERGING_LIMIT: u64 = 3_000_000;
/// Limit on the states of the products that [`recheck`] searches again; larger ones are sampled.
const RECHECK_LIMIT: u64 = 200_000;

/// Number of runs with an unconfirmed violation that are extended; further ones are not tried.
const EXTENDED_RUNS: usize = 8;

/// A machine with its labels.
pub struct Subject<'m> {
    /// The model. Its labels include those of all lines of the interface.
    pub machine: &'m dyn Model,
    /// The interface.
    pub interface: &'m Interface,
    /// Options of searches.
    pub options: &'m Options,
    /// Limits.
    pub budget: &'m Budget,
    /// Progress of searches.
    pub progress: &'m dyn Progress,
}

/// A machine explored once, so that all its labels are known.
pub struct Survey {
    /// All operations.
    pub alphabet: Alphabet,
    /// Counts of the exploration.
    pub outcome: Outcome,
    /// The size.
    pub size: Size,
    /// The values that distinguish stores.
    pub roles: Roles,
}

/// Number of labels that are recorded without a lock.
const FIRST_LABELS: usize = 1 << 16;

/// The labels of the steps of an exploration. A stored system has further ones, of unreachable
/// states.
struct VisitedLabels {
    first: Vec<AtomicBool>,
    others: Mutex<BTreeSet<LabelId>>,
}

impl Default for VisitedLabels {
    fn default() -> Self {
        let first = (0..FIRST_LABELS).map(|_| AtomicBool::new(false)).collect();
        Self { first, others: Mutex::default() }
    }
}

impl VisitedLabels {
    /// Records a label. Returns false, so that a search continues.
    fn insert(&self, label: LabelId) -> bool {
        match self.first.get(label.index()) {
            Some(place) if place.load(Ordering::Relaxed) => {}
            Some(place) => place.store(true, Ordering::Relaxed),
            None => {
                self.others.lock().unwrap_or_else(PoisonError::into_inner).insert(label);
            }
        }
        false
    }
    /// Returns the labels, in order.
    fn labels(self) -> Vec<LabelId> {
        let first = self.first.into_iter().enumerate().filter(|(_, v)| v.load(Ordering::Relaxed));
        let others = self.others.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map(|(i, _)| LabelId::new(i)).chain(others).collect()
    }
}

/// Result of a search of a product.
#[derive(Clone, Debug)]
pub struct ProductSearchResult {
    /// Number of guesses.
    pub guesses: usize,
    /// Counts.
    pub outcome: Outcome,
    /// The guess of a violation, if a run has one.
    pub violated: Option<Guess>,
    /// Number of states of the product that a second search computed again, and true if these
    /// are all. `None` if there is a violation.
    pub rechecked: Option<(u64, bool)>,
}

impl ProductSearchResult {
    /// True if the search is complete and found nothing.
    pub fn is_clean(&self) -> bool {
        self.violated.is_none() && self.outcome.stop == Stop::Complete
    }
}

/// The checks of a machine for which some search found nothing.
#[derive(Clone, Debug)]
pub struct Checks {
    /// Stores can commit, and processors can continue.
    pub continuation: Continuation,
    /// Values can be merged.
    pub merging: Merging,
}

impl<'m> Subject<'m> {
    /// Explores the machine. Error: an interface or a machine that is not supported, with the
    /// reason; a limit.
    pub fn survey(&self) -> Result<Survey, Diagnostic> {
        let options = Options { symmetry: false, ..self.options.clone() };
        let visited = VisitedLabels::default();
        let target = SearchTarget::Step(&|_, label| visited.insert(label));
        let outcome = find(self.machine, &options, self.budget, self.progress, target)?.outcome;
        if outcome.stop != Stop::Complete {
            return Err(Diagnostic::stopped(outcome.stop));
        }
        let labels = visited.labels().into_iter();
        let texts: Vec<String> = labels.map(|l| self.machine.label_text(l)).collect();
        let alphabet = Alphabet::of(self.interface, texts.iter().map(String::as_str))?;
        if alphabet.words.is_empty() {
            return Err(Diagnostic::new(Stage::Type, crate::machine::IDLE));
        }
        let reader = LabelReader::new(self.interface, &alphabet)?;
        let (processors, addresses) =
            (alphabet.names.processors.len(), alphabet.names.addresses.len());
        let unsupported = |message: String| Err(Diagnostic::new(Stage::Unsupported, message));
        if processors > MAX_PROCESSORS {
            return unsupported(format!(
                "{processors} processors: at most {MAX_PROCESSORS} are supported for programs of every length"
            ));
        }
        if addresses > cycle::MAX_VISITS as usize {
            return unsupported(format!(
                "{addresses} addresses: at most {} are supported for programs of every length",
                cycle::MAX_VISITS
            ));
        }
        let occurs = |labels: &[Label]| {
            texts.iter().flat_map(|text| parts(text)).any(|part| {
                let (name, arguments) = (name_of(part), arguments(part));
                labels.iter().any(|l| l.match_arguments(name, &arguments).is_some())
            })
        };
        let commits = occurs(&self.interface.commits);
        let absorbs = occurs(&self.interface.absorbs);
        let mut effects = Vec::new();
        for text in &texts {
            effects.extend(reader.effects(text)?);
        }
        let updates = alphabet.events.iter().any(|e| {
            self.interface.operations[e.operation as usize].kind == mu_axioms::EventKind::Update
        });
        let roles = roles(&alphabet, &effects)?;
        let size = Size {
            processors: narrow::index(processors),
            addresses: narrow::index(addresses),
            commits,
            absorbs,
            updates,
        };
        Ok(Survey { alphabet, outcome, size, roles })
    }

    /// Returns the actions of the lines that monitors observe.
    pub(super) fn actions(&self) -> AHashSet<String> {
        let lines = self.interface.operations.iter();
        let labels = lines.flat_map(|o| o.begin.iter().chain([&o.end]));
        labels.chain(self.interface.memory()).map(|l| l.action.clone()).collect()
    }

    /// Searches for violations at one address.
    pub fn search_coherence(&self, survey: &Survey) -> Result<ProductSearchResult, Diagnostic> {
        self.search(survey, &coherence_guesses(survey.size))
    }

    /// Searches for cycles under an order.
    pub fn search_cycles(
        &self,
        survey: &Survey,
        order: ProcessorOrder,
    ) -> Result<ProductSearchResult, Diagnostic> {
        self.search(survey, &cycle_guesses(survey.size, order))
    }

    fn search(
        &self,
        survey: &Survey,
        guesses: &[Guess],
    ) -> Result<ProductSearchResult, Diagnostic> {
        let reader = LabelReader::new(self.interface, &survey.alphabet)?;
        let actions = self.actions();
        let product =
            Product::new(self.machine, &reader, &actions, (survey.roles, guesses), Goal::Alarm)
                .with_symmetries();
        let options = self.options.clone().with_confluence_of(&product);
        let target = SearchTarget::Step(&|group, _| group == ALARM);
        let found = find_or_refute(&product, &options, self.budget, self.progress, target)?;
        let last = found.path.as_ref().and_then(|p| p.last());
        let violated = last.and_then(|s| product.guess_of(&s.state)).cloned();
        if found.reached && violated.is_none() {
            return Err(Diagnostic::stopped(found.outcome.stop));
        }
        let rechecked = if violated.is_none() && found.outcome.stop == Stop::Complete {
            let all = found.outcome.states <= RECHECK_LIMIT;
            let states = if all {
                recheck::search(&product, self.budget)?
            } else {
                recheck::sample(&product, RECHECK_LIMIT, self.budget)?
            };
            Some((states, all))
        } else {
            None
        };
        Ok(ProductSearchResult {
            guesses: guesses.len(),
            outcome: found.outcome,
            violated,
            rechecked,
        })
    }

    /// Finds a shortest run of the machine with a violation in which all operations end; with
    /// `shown`, loads or stores also show the order of the commits. `None` if there is none.
    pub fn run(
        &self,
        survey: &Survey,
        guesses: &[Guess],
        shown: bool,
    ) -> Result<Option<Vec<RunStep>>, Diagnostic> {
        let reader = LabelReader::new(self.interface, &survey.alphabet)?;
        let actions = self.actions();
        let goal = if shown { Goal::Shown } else { Goal::Finished };
        let product = Product::new(self.machine, &reader, &actions, (survey.roles, guesses), goal);
        let options = self.options.clone().with_confluence_of(&product);
        let target = SearchTarget::Step(&|group, _| group == ALARM);
        let found = find(&product, &options, self.budget, self.progress, target)?;
        if found.outcome.stop != Stop::Complete || found.reached && found.path.is_none() {
            return Err(Diagnostic::stopped(found.outcome.stop));
        }
        let width = product.machine_width();
        let Some(path) = found.path else { return Ok(None) };
        // The choice of the guess comes first, the alarm last.
        let own = path.iter().filter(|s| s.group > ALARM);
        Ok(Some(
            own.map(|s| RunStep { label: s.label, state: s.state[..width].to_vec() }).collect(),
        ))
    }

    /// Finds a violation that a memory model confirms: a run in which all operations end, with a
    /// history that the model forbids. The lists of guesses are searched one after the other, then
    /// each guess alone; if the shortest run is allowed with another order of stores, one is
    /// searched in which loads show the order. At last such runs are extended at random. `None` if
    /// no run is confirmed.
    pub fn confirm(
        &self,
        survey: &Survey,
        lists: &[Vec<Guess>],
        model: &MemoryModel,
    ) -> Result<Option<Violation>, Diagnostic> {
        let mut worker = model.worker();
        let visible = |list: &Vec<Guess>| -> Vec<Guess> {
            list.iter().filter(|g| g.is_visible()).cloned().collect()
        };
        let lists: Vec<Vec<Guess>> = lists.iter().map(visible).collect();
        let mut allowed: Vec<Vec<RunStep>> = Vec::new();
        let single = lists.iter().flatten().map(|g| vec![g.clone()]);
        for guesses in lists.iter().cloned().chain(single) {
            for shown in [false, true] {
                let Some(steps) = self.run(survey, &guesses, shown)? else { break };
                let names = &survey.alphabet.names;
                let (_, concrete) = witness::replay(self.machine, self.interface, names, &steps)?;
                let lists: Vec<&[SequenceEntry]> = concrete.iter().map(Vec::as_slice).collect();
                let history = judge::history(self.interface, &lists).canonical();
                if !worker.allows(&history)? {
                    return Ok(Some(Violation { history, concrete }));
                }
                if allowed.len() < EXTENDED_RUNS && !allowed.contains(&steps) {
                    allowed.push(steps);
                }
            }
        }
        for steps in &allowed {
            if let Some(found) = extend(self, survey, steps, model)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Checks what the answer rests on. `running`: stores need to commit only while every processor
    /// can begin a further operation, for an instance of a machine with any number of operations.
    pub fn checks(&self, survey: &Survey, running: bool) -> Result<Checks, Diagnostic> {
        let reader = LabelReader::new(self.interface, &survey.alphabet)?;
        let actions = self.actions();
        let (outcome, lts) = explore_lts(self.machine, self.options, self.budget, self.progress)?;
        if outcome.stop != Stop::Complete {
            return Err(Diagnostic::stopped(outcome.stop));
        }
        let lts = with_used_labels(lts);
        let mut continuation = continuation(self, survey, (&reader, &actions), running)?;
        continuation.stopped = stopping_processor(&lts, &reader, survey.size.processors)?;
        let mut effects = Vec::new();
        for text in &lts.table.texts {
            effects.extend(reader.effects(text)?);
        }
        let merging = match unstored_value(survey, &effects) {
            Some(apart) => apart,
            None if survey.outcome.states > MERGING_LIMIT => Merging::Omitted,
            None => check_merging(self, survey, &reader, &lts)?,
        };
        Ok(Checks { continuation, merging })
    }
}

/// Chooses the values of distinguished stores among those that each processor can store at each
/// address.
fn roles(alphabet: &Alphabet, effects: &[Effect]) -> Result<Roles, Diagnostic> {
    let mut stores: Vec<(u32, u32, u32)> = effects
        .iter()
        .filter_map(|e| match *e {
            Effect::Store { processor, address, value } => Some((processor, address, value)),
            Effect::Update { processor, address, written, .. } => {
                Some((processor, address, written))
            }
            _ => None,
        })
        .collect();
    stores.sort_unstable();
    stores.dedup();
    let mut places: Vec<(u32, u32)> = stores.iter().map(|s| (s.0, s.1)).collect();
    places.dedup();
    let everywhere =
        |v: u32| places.iter().all(|(p, a)| stores.binary_search(&(*p, *a, v)).is_ok());
    let storable: Vec<u32> =
        (1..narrow::index(alphabet.names.values.len())).filter(|v| everywhere(*v)).collect();
    let initial = 0;
    let other = if everywhere(initial) { Some(initial) } else { storable.get(2).copied() };
    match (&storable[..], other) {
        ([first, second, ..], Some(other)) => {
            Ok(Roles { initial, first: *first, second: *second, other })
        }
        _ => {
            let message = format!(
                "programs of every length need three values that each processor can store at each address, to distinguish stores: the labels of the machine's stores have {}",
                storable.len()
            );
            Err(Diagnostic::new(Stage::Unsupported, message)
                .note("add values to the sort of the machine, by a parameter if it has one for their number"))
        }
    }
}
