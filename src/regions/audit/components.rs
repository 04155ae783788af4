//! Audit of the thread-modular abstraction by sampling: concrete instances with few components, and
//! with more than the abstraction tracks.
//!
//! Input: the abstract model of a case ([`ThreadModularAbstraction`]), the local states of
//! untracked components, the linear process of an instance with its components expanded. Output:
//! the number of sampled states; an internal error if an instance has a step that the abstract
//! model lacks. A concrete state is a state of a random run, or is drawn as follows: a reachable
//! abstract state, a random local state for each untracked component, random identities for the
//! constant that represents all untracked ones, random letters of lists. The audit requires of each
//! step of the direct semantics (`process::direct_steps`):
//!
//! - the shared data and the tracked components are covered by a step of the abstract state, under
//!   a label that the formula cannot distinguish,
//! - the next state of each component is one of the local states of untracked components.
//!
//! The instance is linearised separately. Values are translated by names ([`super::translate`]).
//! Tracked identities are a random subset of those of the instance, in the order of the list of all
//! identities. Cost: the time that the caller allows.

use super::draw::{count, in_sort, is_number, parts};
use super::translate::Translation;
use super::view::{FormulaEvaluator, FormulaView};
use super::{Audit, AuditRequest, CaseAudit, Explored, sort_actions};
use crate::abstractable_model::{AbstractableModel, constant};
use crate::merged_constants::map_constants;
use crate::replicas::{Replicas, owners};
use crate::sizes::SIZE;
use crate::thread_modular::{LocalState, ThreadModularAbstraction};
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, OpId, SortId};
use mu_base::random::Random;
use mu_base::{Diagnostic, Stage};
use mu_data::expr::{DataSpec, Expr};
use mu_data::naive::Naive;
use mu_model::{Model, Slot};
use mu_process::direct_steps::{ConcreteStep, DirectSteps, label_text, state_text, with_constants};
use mu_process::labels::MultiAction;
use mu_process::linear::LinearProcess;
use std::rc::Rc;

/// Number of steps of a run.
const LENGTH: usize = 12;
/// Number of drawn states for each state of a run.
const DRAWN: usize = 4;
/// Largest number of values tried for a summed variable.
const MAX_VALUES: usize = 24;

/// An instance with its components expanded.
pub struct ExpandedInstance {
    /// The process.
    pub process: LinearProcess,
    /// The names of the identities, in the order of the list of all identities.
    pub names: Vec<String>,
}

/// Input of the audit in addition to [`AuditRequest`], in which `base` is the abstract model.
pub struct Components<'a> {
    /// The abstract model.
    pub crowd: &'a ThreadModularAbstraction<'a>,
    /// The local states of untracked components.
    pub members: &'a [LocalState],
    /// An instance.
    pub instance: &'a ExpandedInstance,
}

/// The embedding of an instance into the model with [`SIZE`] components.
struct Embedding<'a> {
    inner: &'a dyn AbstractableModel,
    replicas: &'a Replicas,
    tracked: usize,
    members: AHashSet<LocalState>,
    list: &'a [LocalState],
    process: &'a LinearProcess,
    /// Number of identities.
    size: usize,
    /// The constants of the identities in the signature of the instance.
    constants: Vec<OpId>,
    /// The parameters of each identity. The last list is of the shared ones.
    owned: Vec<Vec<usize>>,
    /// The same in the order of this round: tracked identities first.
    local: Vec<Vec<usize>>,
    /// Shared slots, in order.
    shared: Vec<Slot>,
    /// The action of the model for each action of the instance.
    actions: Vec<ActId>,
    /// The initial values of the model.
    first: Vec<Expr>,
    /// The abstract initial state.
    initial: Vec<u32>,
    /// Translations between instance and model, for the tracked identities of this round.
    there: Translation,
    back: Translation,
    /// Local states of values in this round.
    known: AHashMap<(usize, Vec<Expr>), Option<LocalState>>,
}

/// Audits an instance against the abstract model.
///
/// # Errors
///
/// Internal: the abstract model does not cover a step of the instance. Others from the abstract
/// model.
pub fn audit_components(
    wanted: &AuditRequest,
    components: &Components,
) -> Result<Audit, Diagnostic> {
    let process = &components.instance.process;
    if process.is_probabilistic() || process.is_timed() || !process.globals.is_empty() {
        return Ok(Audit {
            unchecked: Some("time, chance, and global variables".into()),
            ..Audit::default()
        });
    }
    let mut literals = super::draw::literals_of(process, &process.data);
    literals
        .extend(super::draw::literals_of(wanted.process, &wanted.study.rewritten_formula().data));
    let view = FormulaView::new(&wanted.study.rewritten_formula().formula);
    literals.extend(view.literals());
    let draw = super::draw::Draw::new(wanted.seed, &literals, wanted.base.engine());
    let mut check = CaseAudit {
        wanted,
        draw,
        explored: Explored::new(wanted.base),
        view,
        tests: wanted.study.tests(),
        audit: Audit::default(),
    };
    let mut two = check.eye(&wanted.case.valuation);
    let Some(mut embedding) = Embedding::new(components) else {
        let text = format!(
            "the process of {} components has other parameters",
            components.instance.names.len()
        );
        return Ok(Audit { unchecked: Some(text), ..check.audit });
    };
    while check.audit.samples < wanted.samples && (check.audit.samples == 0 || !(wanted.enough)()) {
        let before = check.audit.samples;
        embedding.choose(&mut check.draw.random);
        check.turn(&mut embedding, &mut two)?;
        if check.audit.samples == before {
            break;
        }
    }
    Ok(check.audit)
}

impl<'a> Embedding<'a> {
    /// Creates the embedding; `None` if the parameters of the instance differ from those of the
    /// model.
    fn new(components: &Components<'a>) -> Option<Self> {
        let (inner, replicas, tracked) = components.crowd.meaning();
        let process = &components.instance.process;
        let names = &components.instance.names;
        let size = names.len();
        let owner = owners(process, names).ok()?;
        let of = |i: Option<usize>| (0..owner.len()).filter(|p| owner[*p] == i).collect::<Vec<_>>();
        let local: Vec<Vec<usize>> = (0..size).map(Some).chain([None]).map(of).collect();
        let shared: Vec<Slot> = (0..replicas.owner.len())
            .filter(|s| replicas.owner[*s].is_none())
            .map(|s| s as Slot)
            .collect();
        let (ours, theirs) = (&process.data.signature, inner.signature());
        let sort = |p: usize| ours.sorts.text(ours.var(process.params[p].var).sort);
        let slot_sort =
            |s: Slot| theirs.sorts.text(theirs.var(inner.process().params[s as usize].var).sort);
        let alike = |params: &[usize], slots: &[Slot]| {
            params.iter().zip(slots).all(|(p, s)| sort(*p) == slot_sort(*s))
        };
        let all_match = local[..size]
            .iter()
            .all(|own| own.len() == replicas.local[0].len() && alike(own, &replicas.local[0]));
        if !all_match
            || local[size].len() > shared.len()
            || !alike(&local[size], &shared)
            || size > replicas.family.constants.len() - 2
        {
            return None;
        }
        let action = |a: &mu_process::labels::ActionDecl| {
            let text = |s: &SortId| ours.sorts.text(*s);
            let same = |b: &&mu_process::labels::ActionDecl| {
                b.name == a.name
                    && b.sorts.iter().map(|s| theirs.sorts.text(*s)).eq(a.sorts.iter().map(text))
            };
            inner.process().actions.iter().position(|b| same(&b)).map(ActId::new)
        };
        let initial = inner.initial();
        Some(Self {
            inner,
            replicas,
            tracked,
            members: components.members.iter().cloned().collect(),
            list: components.members,
            process,
            size,
            constants: names.iter().map(|name| constant(ours, name)).collect::<Option<_>>()?,
            local: local.clone(),
            owned: local,
            shared,
            actions: process.actions.iter().map(action).collect::<Option<_>>()?,
            first: initial
                .iter()
                .enumerate()
                .map(|(slot, id)| inner.value(slot as Slot, *id))
                .collect(),
            initial: components.crowd.initial(),
            there: Translation::new(ours, theirs),
            back: Translation::new(theirs, ours),
            known: AHashMap::new(),
        })
    }

    /// Chooses the tracked identities: a random subset, in order.
    fn choose(&mut self, random: &mut Random) {
        let mut chosen: Vec<usize> = (0..self.size).collect();
        while chosen.len() > self.tracked {
            let at = random.below(chosen.len());
            chosen.remove(at);
        }
        let rest = (0..self.size).filter(|i| !chosen.contains(i));
        let order: Vec<usize> = chosen.iter().copied().chain(rest).collect();
        let pairs = || {
            order
                .iter()
                .map(|i| self.constants[*i])
                .zip(self.replicas.family.constants.iter().copied())
        };
        self.there.pair(pairs().collect::<Vec<_>>().into_iter());
        self.back.pair(pairs().map(|(a, b)| (b, a)).collect::<Vec<_>>().into_iter());
        self.local = order.iter().chain([&self.size]).map(|i| self.owned[*i].clone()).collect();
        self.known.clear();
    }

    /// Replaces constants, by position.
    fn map_constants(&self, e: &Expr, f: &mut dyn FnMut(usize) -> usize) -> Option<Expr> {
        map_constants(self.inner.signature(), &self.replicas.family, e, f).ok()
    }

    /// Returns the constant that represents all untracked identities.
    fn other(&self) -> usize {
        self.replicas.family.constants.len() - 2
    }

    /// Converts a state of the instance to a state of the model, in which the last identity with
    /// components is exchanged with `swapped`.
    fn whole(&self, state: &[Expr], parameters: &[Expr], swapped: usize) -> Option<Vec<Expr>> {
        let last = SIZE - 1;
        let swap = |i: usize| match i {
            _ if i == last => swapped,
            _ if i == swapped => last,
            _ => i,
        };
        let mut out = self.first.clone();
        let put = |out: &mut Vec<Expr>, slot: Slot, param: usize| {
            let e = self.there.value(&state[param])?;
            out[slot as usize] = self.map_constants(&e, &mut |i| swap(i))?;
            Some(())
        };
        for (slot, param) in self.shared.iter().zip(&self.local[self.size]) {
            put(&mut out, *slot, *param)?;
        }
        for (i, slots) in
            self.replicas.local.iter().enumerate().filter(|(i, _)| swap(*i) < self.size)
        {
            for (slot, param) in slots.iter().zip(&self.local[swap(i)]) {
                put(&mut out, *slot, *param)?;
            }
        }
        let own = out.len() - parameters.len();
        out[own..].clone_from_slice(parameters);
        Some(out)
    }

    /// Replaces all untracked identities by one constant.
    fn merge_untracked(&self, slot: usize, e: &Expr) -> Option<Expr> {
        if self.replicas.lists[slot] {
            let mut word: Vec<usize> = Vec::new();
            for letter in self.replicas.letters(self.inner.signature(), e)? {
                let letter = if letter < self.tracked { letter } else { self.other() };
                if letter < self.tracked || word.last() != Some(&letter) {
                    word.push(letter);
                }
            }
            return self.replicas.list_of(self.inner.signature(), &word).ok();
        }
        if !self.replicas.family.slots[slot] {
            return Some(e.clone());
        }
        self.map_constants(e, &mut |i| if i < self.tracked { i } else { self.other() })
    }
}

impl CaseAudit<'_> {
    /// Samples a random run and states drawn along it, for one choice of tracked identities and
    /// parameters.
    fn turn(
        &mut self,
        embedding: &mut Embedding,
        two: &mut FormulaEvaluator,
    ) -> Result<(), Diagnostic> {
        let (study, case) = (self.wanted.study, self.wanted.case);
        if !self.draw.valuate(&study.sorts(), |v| case.has(&self.tests, v)) {
            self.draw.valuation.clone_from(&case.valuation);
        }
        let valuation = self.draw.valuation.clone();
        let constants = study.constants(&valuation);
        let constants: Vec<_> =
            constants.iter().filter_map(|(op, n)| Some((embedding.back.op(*op)?, *n))).collect();
        let signature = &embedding.process.data.signature;
        let data: DataSpec = with_constants(&embedding.process.data, signature, &constants);
        let mut direct = DirectSteps::new(embedding.process, data);
        let mut one = self.eye(&valuation);
        self.draw.start_state();
        let Some(mut state) = direct.initial() else {
            self.audit.undecided += 1;
            return Ok(());
        };
        self.audit.samples += 1;
        if self
            .shared_image(embedding, &state)
            .is_some_and(|image| *image != *self.explored.states[0])
        {
            return Err(self.failure(
                "the abstraction does not cover the initial state",
                embedding,
                &state,
                None,
            ));
        }
        for i in 0..embedding.size {
            if self.member(embedding, &state, i).is_some_and(|m| !embedding.members.contains(&m)) {
                return Err(self.failure(
                    "the abstraction does not cover the start of a component",
                    embedding,
                    &state,
                    None,
                ));
            }
        }
        let mut at = 0;
        for _ in 0..LENGTH {
            let steps = self.covered_steps(embedding, at, &state, &mut direct, (&mut one, two))?;
            for _ in 0..DRAWN {
                if self.audit.samples >= self.wanted.samples || (self.wanted.enough)() {
                    break;
                }
                self.draw.start_state();
                // Most samples are of abstract states with known steps.
                let from = match self.draw.random.chance(3, 4) && !self.explored.expanded.is_empty()
                {
                    true => *self.draw.random.choose(&self.explored.expanded),
                    false => self.draw.random.below(self.explored.states.len()),
                };
                let Some(drawn) = self.concrete(embedding, from) else { continue };
                let all = (0..embedding.size).all(|i| {
                    self.member(embedding, &drawn, i)
                        .is_some_and(|m| embedding.members.contains(&m))
                });
                if !all
                    || self
                        .shared_image(embedding, &drawn)
                        .is_none_or(|image| image != self.explored.states[from])
                {
                    continue;
                }
                self.audit.samples += 1;
                self.covered_steps(embedding, from, &drawn, &mut direct, (&mut one, two))?;
            }
            if steps.is_empty()
                || self.audit.samples >= self.wanted.samples
                || (self.wanted.enough)()
            {
                break;
            }
            state = steps[self.draw.random.below(steps.len())].target.clone();
            let Some(image) = self.shared_image(embedding, &state) else { break };
            let Some(found) = self.explored.states.iter().position(|s| *s == image) else { break };
            at = found;
            self.audit.samples += 1;
        }
        self.audit.undecided += direct.undecided;
        Ok(())
    }

    /// Returns the steps of a concrete state, after checking that the abstract state covers them.
    fn covered_steps(
        &mut self,
        embedding: &mut Embedding,
        at: usize,
        state: &[Expr],
        direct: &mut DirectSteps,
        (one, two): (&mut FormulaEvaluator, &mut FormulaEvaluator),
    ) -> Result<Vec<ConcreteStep>, Diagnostic> {
        state.iter().for_each(|e| self.draw.record_numbers(e));
        let draw = &mut self.draw;
        let steps = direct.steps(state, &mut |sort, naive, state| values(draw, sort, naive, state));
        let Some(successors) = self.explored.successors(at, self.wanted.enough)? else {
            return Ok(Vec::new());
        };
        for step in &steps {
            let target = self.shared_image(embedding, &step.target);
            let label = self.labels(embedding, &step.label);
            let (Some(target), Some((concrete, label))) = (target, label) else {
                self.audit.undecided += 1;
                continue;
            };
            self.audit.steps += 1;
            if !successors.contains(&(sort_actions(&label), target)) {
                return Err(self.failure(
                    "the abstraction does not cover a step of an instance",
                    embedding,
                    state,
                    Some(step),
                ));
            }
            if self.view.differs((one, &concrete), (two, &label)) {
                let text =
                    "the formula distinguishes a label from the abstract label that covers it";
                return Err(self.failure(text, embedding, state, Some(step)));
            }
            for i in 0..embedding.size {
                let changed = embedding.local[i].iter().any(|p| state[*p] != step.target[*p]);
                if changed
                    && self
                        .member(embedding, &step.target, i)
                        .is_some_and(|m| !embedding.members.contains(&m))
                {
                    return Err(self.failure(
                        "the abstraction does not cover a step of a component",
                        embedding,
                        state,
                        Some(step),
                    ));
                }
            }
        }
        Ok(steps)
    }

    fn parameters(&self) -> Vec<Expr> {
        self.wanted.study.parameter_values(&self.draw.valuation)
    }

    /// Returns the abstract state that covers the shared data and the tracked components.
    fn shared_image(&mut self, embedding: &Embedding, state: &[Expr]) -> Option<Rc<[u32]>> {
        let whole = embedding.whole(state, &self.parameters(), SIZE - 1)?;
        let image = embedding.inner.image(&whole, &mut self.draw)?;
        let mut out = embedding.initial.clone();
        for (slot, e) in image.iter().enumerate() {
            let untracked = embedding.replicas.owner[slot].is_some_and(|i| i >= embedding.tracked);
            if !untracked && embedding.replicas.all != Some(slot as Slot) {
                let e = self.draw.normal(&embedding.merge_untracked(slot, e)?)?;
                out[slot] = embedding.inner.intern(slot as Slot, &e);
            }
        }
        Some(out.into())
    }

    /// Returns the local state of a component.
    fn member(
        &mut self,
        embedding: &mut Embedding,
        state: &[Expr],
        identity: usize,
    ) -> Option<LocalState> {
        let key = (
            identity,
            embedding.local[identity].iter().map(|p| state[*p].clone()).collect::<Vec<_>>(),
        );
        if let Some(known) = embedding.known.get(&key) {
            return known.clone();
        }
        let found = self.local_state(embedding, state, identity);
        embedding.known.insert(key, found.clone());
        found
    }

    fn local_state(
        &mut self,
        embedding: &Embedding,
        state: &[Expr],
        identity: usize,
    ) -> Option<LocalState> {
        let own = SIZE - 1;
        let image = embedding
            .inner
            .image(&embedding.whole(state, &self.parameters(), identity)?, &mut self.draw)?;
        let mut out = LocalState::new();
        for slot in &embedding.replicas.local[own] {
            let mut e = image[*slot as usize].clone();
            if embedding.replicas.family.slots[*slot as usize] {
                e = embedding
                    .map_constants(&e, &mut |i| embedding.other() + usize::from(i == own))?;
            }
            out.push(embedding.inner.intern(*slot, &self.draw.normal(&e)?));
        }
        Some(out)
    }

    /// Converts a label of the instance to one of the model, and abstracts it.
    fn labels(
        &mut self,
        embedding: &Embedding,
        label: &MultiAction,
    ) -> Option<(MultiAction, MultiAction)> {
        let mut concrete = MultiAction::new();
        for (action, args) in label {
            let args = args
                .iter()
                .map(|e| self.draw.normal(&embedding.there.value(e)?))
                .collect::<Option<_>>()?;
            concrete.push((embedding.actions[action.index()], args));
        }
        let mut image = embedding.inner.image_of_label(&concrete, &mut self.draw)?;
        for e in image.iter_mut().flat_map(|(_, args)| args) {
            if embedding.replicas.family.holds(e.sort) {
                *e = self.draw.normal(&embedding.map_constants(e, &mut |i| {
                    if i < embedding.tracked { i } else { embedding.other() }
                })?)?;
            }
        }
        Some((concrete, image))
    }

    /// Draws a concrete state of the instance that an abstract state covers.
    fn concrete(&mut self, embedding: &Embedding, at: usize) -> Option<Vec<Expr>> {
        let (tracked, size) = (embedding.tracked, embedding.size);
        let abstract_state = self.explored.states[at].clone();
        let mut whole = embedding.first.clone();
        for (slot, id) in abstract_state.iter().enumerate() {
            if embedding.replicas.owner[slot].is_some_and(|i| i >= tracked)
                || embedding.replicas.all == Some(slot as Slot)
            {
                continue;
            }
            let e = embedding.inner.value(slot as Slot, *id);
            whole[slot] = if embedding.replicas.lists[slot] {
                self.draw_list(embedding, &e)?
            } else if embedding.replicas.family.slots[slot] {
                if size == tracked && holds(embedding, &e) {
                    return None;
                }
                let random = &mut self.draw.random;
                embedding.map_constants(&e, &mut |i| {
                    if i < tracked { i } else { tracked + random.below((size - tracked).max(1)) }
                })?
            } else {
                e
            };
        }
        let drawn = embedding.inner.draw(&whole, &mut self.draw)?;
        let mut state: Vec<Option<Expr>> = vec![None; embedding.process.params.len()];
        for (slot, param) in embedding.shared.iter().zip(&embedding.local[size]) {
            state[*param] = embedding.back.value(&drawn[*slot as usize]);
        }
        for i in 0..tracked {
            for (slot, param) in embedding.replicas.local[i].iter().zip(&embedding.local[i]) {
                state[*param] = embedding.back.value(&drawn[*slot as usize]);
            }
        }
        let own = SIZE - 1;
        for i in tracked..size {
            let member = if embedding.list.is_empty() {
                return None;
            } else {
                self.draw.random.choose(embedding.list).clone()
            };
            let mut whole = whole.clone();
            for (slot, id) in embedding.replicas.local[own].iter().zip(member) {
                let e = embedding.inner.value(*slot, id);
                let e = if embedding.replicas.family.slots[*slot as usize] {
                    if size == 1 && holds_other(embedding, &e) {
                        return None;
                    }
                    let random = &mut self.draw.random;
                    let anyone = &mut |c: usize| {
                        if c == embedding.other() + 1 {
                            return i;
                        }
                        let j = random.below((size - 1).max(1));
                        j + usize::from(j >= i)
                    };
                    embedding.map_constants(&e, anyone)?
                } else {
                    e
                };
                whole[*slot as usize] = e;
            }
            let drawn = embedding.inner.draw(&whole, &mut self.draw)?;
            for (slot, param) in embedding.replicas.local[own].iter().zip(&embedding.local[i]) {
                state[*param] = embedding.back.value(&drawn[*slot as usize]);
            }
        }
        state.into_iter().collect()
    }

    /// Draws a list: random distinct letters for each block of untracked identities.
    fn draw_list(&mut self, embedding: &Embedding, e: &Expr) -> Option<Expr> {
        let word = embedding.replicas.letters(embedding.inner.signature(), e)?;
        let mut free: Vec<usize> = (embedding.tracked..embedding.size).collect();
        let mut blocks = word.iter().filter(|l| **l >= embedding.tracked).count();
        let mut letters = Vec::new();
        for letter in word {
            if letter < embedding.tracked {
                letters.push(letter);
                continue;
            }
            blocks -= 1;
            let room = free.len().checked_sub(blocks).filter(|r| *r > 0)?;
            for _ in 0..=self.draw.random.below(room) {
                let at = self.draw.random.below(free.len());
                letters.push(free.swap_remove(at));
            }
        }
        embedding.replicas.list_of(embedding.inner.signature(), &letters).ok()
    }

    fn failure(
        &self,
        text: &str,
        embedding: &Embedding,
        state: &[Expr],
        step: Option<&ConcreteStep>,
    ) -> Diagnostic {
        let (process, signature) = (embedding.process, &embedding.process.data.signature);
        let mut error = Diagnostic::new(
            Stage::Internal,
            format!("the check of the answer by samples failed: {text}"),
        );
        let names = self.wanted.study.names();
        let values =
            names.iter().zip(&self.draw.valuation[1..]).map(|(name, n)| format!("{name} = {n}"));
        error = error
            .note(format!("components: {}, {} of them tracked", embedding.size, embedding.tracked));
        if !names.is_empty() {
            error = error.note(format!("parameters: {}", values.collect::<Vec<_>>().join(", ")));
        }
        error = error.note(format!("state: {}", state_text(process, signature, state)));
        if let Some(step) = step {
            error = error.note(format!("step: {}", label_text(process, signature, &step.label)));
            error =
                error.note(format!("next state: {}", state_text(process, signature, &step.target)));
        }
        error.note(format!("seed: {}", self.wanted.seed))
    }
}

/// True if a value contains an identity.
fn holds(embedding: &Embedding, e: &Expr) -> bool {
    let mut found = false;
    embedding.map_constants(e, &mut |i| {
        found |= i >= embedding.tracked;
        i
    });
    found
}

/// True if a local state contains an identity other than its own.
fn holds_other(embedding: &Embedding, e: &Expr) -> bool {
    let mut found = false;
    embedding.map_constants(e, &mut |i| {
        found |= i != embedding.other() + 1;
        i
    });
    found
}

/// Returns values of a sort of the instance: all values of a small sort, otherwise some from the
/// state and random numbers.
fn values(
    draw: &mut super::draw::Draw,
    sort: SortId,
    naive: &mut Naive,
    state: &[Expr],
) -> Vec<Expr> {
    let signature = naive.signature();
    if count(signature, sort, &mut Vec::new()).is_some_and(|n| n <= 64)
        && let Some(all) = naive.elements(sort)
    {
        return all;
    }
    let mut out = Vec::new();
    state.iter().for_each(|e| parts(e, sort, &mut out));
    if is_number(sort) {
        let numbers = (0..12).map(|_| draw.any_number()).filter(|n| in_sort(*n, sort));
        out.extend(numbers.map(|n| Expr::number(n, sort)));
    }
    let mut seen = AHashSet::new();
    out.retain(|e| seen.insert(e.clone()));
    out.truncate(MAX_VALUES);
    out
}
