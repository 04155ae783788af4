//! Product of a machine and a monitor, as a model.
//!
//! Input: the model of a machine, its labels, the guesses of the monitor. Output: a [`Model`]
//! with those runs of the machine that a guess does not forbid, so that every search of models
//! applies. The first step chooses the guess. The group [`ALARM`] has a step in a state iff the
//! monitor's alarm is reached there.
//!
//! Slots in addition to the machine's: 1 after the first step, the guess (its number, from 1 on; 0
//! before the first step, so that symmetries keep the initial state), the monitor's state, for
//! each processor the operation that has begun and not ended (if operations have beginnings), and
//! what loads show of the order of commits (if a run is wanted that shows it). Groups without
//! memory operations are those of the machine; the others read and write the additional slots.
//! Cost: a group of the machine is evaluated once for each of its inputs and thread. Invariant: the
//! first slots of a state are a state of the machine.

use super::effects::{Effect, LabelReader};
use super::monitor::{Guess, Roles};
use super::orbits::Exchange;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage, narrow};
use mu_model::{Group, Model, Slot, SlotInfo, Steps, Symmetry, Worker};
use std::rc::Rc;

/// The group that chooses the guess.
const CHOICE: usize = 0;
/// The group with a step in the states in which the alarm is reached.
pub const ALARM: usize = 1;
/// Number of groups before those of the machine.
const OWN_GROUPS: usize = 2;
/// Largest number of processors: the bits of one slot limit it.
pub const MAX_PROCESSORS: usize = 4;

/// The states in which [`ALARM`] has a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// The alarm is reached.
    Alarm,
    /// In addition, all operations have ended.
    Finished,
    /// In addition, loads or stores of one processor show the order of the commits on which the
    /// alarm depends.
    Shown,
}

/// The product of a machine and a monitor.
pub struct Product<'m> {
    machine: &'m dyn Model,
    reader: &'m LabelReader<'m>,
    roles: Roles,
    guesses: &'m [Guess],
    goal: Goal,
    processors: usize,
    slots: Vec<SlotInfo>,
    groups: Vec<Group>,
    monitored: Vec<bool>,
    /// Number of slots of the machine.
    width: usize,
    /// Number of additional slots.
    added: usize,
    in_progress: bool,
    symmetries: Vec<Symmetry>,
    /// By symmetry: the image of what a monitor knows.
    exchanges: Vec<Exchange>,
}

impl<'m> Product<'m> {
    /// Builds the product. `actions`: the actions of the interface; a group that has none of them
    /// is independent of the monitor.
    pub fn new(
        machine: &'m dyn Model,
        reader: &'m LabelReader<'m>,
        actions: &AHashSet<String>,
        (roles, guesses): (Roles, &'m [Guess]),
        goal: Goal,
    ) -> Product<'m> {
        let processors = reader.alphabet().names.processors.len();
        let in_progress = reader.has_beginnings();
        let width = machine.slots().len();
        let component = machine.slots().iter().map(|s| s.component + 1).max().unwrap_or(0);
        let mut slots = machine.slots().to_vec();
        let mut add = |name: String, control: bool| {
            slots.push(SlotInfo { name, component, control });
        };
        add("chosen".into(), true);
        add("guess".into(), true);
        add("monitor".into(), false);
        if in_progress {
            (0..processors).for_each(|p| add(format!("operation of processor {p}"), false));
        }
        if goal == Goal::Shown {
            add("shown".into(), false);
        }
        let added = slots.len() - width;
        let own = |offset: usize| (width + offset) as Slot;
        let all: Vec<Slot> = (1..added).map(own).collect();
        let group =
            |name: &str, requires: (Slot, u32), reads: Vec<Slot>, writes: Vec<Slot>| Group {
                name: name.into(),
                requires: vec![requires],
                tests: reads.clone(),
                reads,
                writes,
                actions: Some(Vec::new()),
                hidden: Vec::new(),
                tau: true,
                confluent: false,
            };
        let mut groups = vec![
            group("choice", (own(0), 0), Vec::new(), vec![own(0), own(1)]),
            group("alarm", (own(0), 1), all.clone(), Vec::new()),
        ];
        let mut monitored = vec![false; OWN_GROUPS];
        for of in machine.groups() {
            let mut of = of.clone();
            let is_monitored =
                of.actions.as_ref().is_none_or(|a| a.iter().any(|a| actions.contains(a)));
            of.requires.push((own(0), 1));
            if is_monitored {
                of.reads.extend(&all);
                of.tests.extend(&all);
                of.writes.extend(&all[1..]);
                of.confluent = false;
            }
            groups.push(of);
            monitored.push(is_monitored);
        }
        Product {
            machine,
            reader,
            roles,
            guesses,
            goal,
            processors,
            slots,
            groups,
            monitored,
            width,
            added,
            in_progress,
            symmetries: Vec::new(),
            exchanges: Vec::new(),
        }
    }

    /// Extends the symmetries of the machine to the product, as candidates.
    #[must_use]
    pub fn with_symmetries(mut self) -> Self {
        if self.goal == Goal::Shown {
            return self;
        }
        let own: Vec<Slot> = (self.width..self.slots.len()).map(|s| s as Slot).collect();
        for (i, symmetry) in self.machine.symmetries().iter().enumerate() {
            if let Some(found) = Exchange::of(self.machine, self.reader, self.guesses, i) {
                self.symmetries.push(found.extend_to_product(symmetry, &own));
                self.exchanges.push(found);
            }
        }
        self
    }

    /// Returns the number of slots of the machine, which are the first ones.
    pub fn machine_width(&self) -> usize {
        self.width
    }

    /// Returns the number of the guess of a state; `None` before the first step.
    pub fn guess_number(&self, state: &[u32]) -> Option<usize> {
        state[self.width + 1].checked_sub(1).map(|guess| guess as usize)
    }

    /// Returns the guess of a state; `None` before the first step.
    pub fn guess_of(&self, state: &[u32]) -> Option<&'m Guess> {
        self.guess_number(state).map(|guess| &self.guesses[guess])
    }

    /// True if the alarm is reached in a state, whatever the goal requires in addition.
    pub fn is_alarm(&self, state: &[u32]) -> bool {
        self.guess_of(state).is_some_and(|g| g.is_alarm(state[self.width + 2]))
    }

    /// True if the goal is reached; `own` are the additional slots after the first one.
    fn is_reached(&self, own: &[u32]) -> bool {
        let guess = &self.guesses[own[0] as usize - 1];
        if !guess.is_alarm(own[1]) {
            return false;
        }
        let progress = if self.in_progress { &own[2..2 + self.processors] } else { &[] };
        match self.goal {
            Goal::Alarm => true,
            Goal::Finished => progress.iter().all(|p| *p == 0),
            Goal::Shown => {
                let shown = own[own.len() - 1];
                let addresses = guess.ordered_addresses();
                progress.iter().all(|p| *p == 0)
                    && (0..addresses.len()).all(|i| shown & shown_bit(i, self.processors) != 0)
            }
        }
    }
}

/// Bit of the slot of shown orders: the order of the commits of ordered address `i` is shown.
fn shown_bit(i: usize, processors: usize) -> u32 {
    1 << (i * (processors + 1) + processors)
}

/// Records that a processor loads or stores a value. A processor that accesses s1 and later s2
/// shows that s1 is first.
fn show(
    roles: &Roles,
    guess: &Guess,
    processors: usize,
    mut shown: u32,
    (processor, address, value): (u32, u32, u32),
) -> u32 {
    let Some(i) = guess.ordered_addresses().iter().position(|a| *a == address) else {
        return shown;
    };
    let accessed = 1u32 << (i * (processors + 1) + processor as usize);
    if value == roles.second && shown & accessed != 0 {
        shown |= shown_bit(i, processors);
    }
    if value == roles.first {
        shown |= accessed;
    }
    shown
}

impl Model for Product<'_> {
    fn slots(&self) -> &[SlotInfo] {
        &self.slots
    }
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        let mut all = self.machine.initial();
        all.extend(std::iter::repeat_n(0, self.added));
        all
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(ProductWorker {
            product: self,
            machine: self.machine.worker(),
            answers: AHashMap::new(),
            labels: AHashMap::new(),
            ends: AHashMap::new(),
            addressed: Vec::new(),
        })
    }
    fn label_text(&self, label: LabelId) -> String {
        self.machine.label_text(label)
    }
    fn label_count(&self) -> usize {
        self.machine.label_count()
    }
    fn value_text(&self, slot: Slot, value: u32) -> String {
        if (slot as usize) < self.width {
            self.machine.value_text(slot, value)
        } else {
            value.to_string()
        }
    }
    fn is_priority_proven(&self) -> bool {
        self.machine.is_priority_proven()
    }
    fn symmetries(&self) -> &[Symmetry] {
        &self.symmetries
    }
    fn components(&self) -> Vec<String> {
        let mut all = self.machine.components();
        let last = self.slots.last().map_or(0, |s| s.component as usize);
        while all.len() < last {
            all.push("machine".into());
        }
        all.push("monitor".into());
        all
    }
}

/// The evaluator of one thread.
struct ProductWorker<'p> {
    product: &'p Product<'p>,
    machine: Box<dyn Worker + 'p>,
    /// Steps of the machine's groups, by their inputs.
    answers: AHashMap<(u32, Box<[u32]>), Rc<Steps>>,
    labels: AHashMap<LabelId, Rc<[Effect]>>,
    /// Effects of ends, by the event of the beginning.
    ends: AHashMap<(LabelId, u32), Option<Effect>>,
    addressed: Vec<u32>,
}

impl ProductWorker<'_> {
    fn answer(&mut self, group: usize, reads: &[u32]) -> Result<Rc<Steps>, Diagnostic> {
        let key = (narrow::index(group), Box::from(reads));
        if let Some(known) = self.answers.get(&key) {
            return Ok(known.clone());
        }
        let mut steps = Steps::default();
        self.machine.steps(group - OWN_GROUPS, reads, &mut steps)?;
        let steps = Rc::new(steps);
        self.answers.insert(key, steps.clone());
        Ok(steps)
    }

    fn effects(&mut self, label: LabelId) -> Result<Rc<[Effect]>, Diagnostic> {
        if let Some(known) = self.labels.get(&label) {
            return Ok(known.clone());
        }
        let effects = if label == LabelId::TAU {
            Vec::new()
        } else {
            self.product.reader.effects(&self.product.machine.label_text(label))?
        };
        let effects: Rc<[Effect]> = effects.into();
        self.labels.insert(label, effects.clone());
        Ok(effects)
    }

    fn end_effect(&mut self, label: LabelId, begin: u32) -> Result<Option<Effect>, Diagnostic> {
        if let Some(known) = self.ends.get(&(label, begin)) {
            return Ok(*known);
        }
        let product = self.product;
        let effect = product.reader.end_effect(begin, &product.machine.label_text(label))?;
        self.ends.insert((label, begin), effect);
        Ok(effect)
    }

    /// Applies a label to the additional slots after the first one; false if the guess forbids it.
    fn apply(&mut self, label: LabelId, own: &mut [u32]) -> Result<bool, Diagnostic> {
        let product = self.product;
        let mut begun = None;
        for effect in self.effects(label)?.iter() {
            match *effect {
                Effect::Begin { processor, event } => {
                    begun = Some(processor);
                    let place = &mut own[2 + processor as usize];
                    if *place != 0 {
                        return Err(self.overlap(label));
                    }
                    *place = event + 1;
                }
                Effect::End { processor } => {
                    let place = std::mem::take(&mut own[2 + processor as usize]);
                    let Some(begin) = place.checked_sub(1) else {
                        return Err(Diagnostic::new(
                            Stage::Type,
                            "by the interface, an operation ends that has not begun",
                        ));
                    };
                    if let Some(effect) = self.end_effect(label, begin)?
                        && !self.observe(&effect, own)
                    {
                        return Ok(false);
                    }
                }
                effect => {
                    let processor = match effect {
                        Effect::Load { processor, .. }
                        | Effect::Update { processor, .. }
                        | Effect::Fence { processor, .. } => Some(processor),
                        // A store with two labels counts at its beginning.
                        Effect::Store { processor, .. } => {
                            Some(processor).filter(|p| begun != Some(*p))
                        }
                        _ => None,
                    };
                    let busy = |p: u32| product.in_progress && own[2 + p as usize] != 0;
                    if processor.is_some_and(busy) {
                        return Err(self.overlap(label));
                    }
                    if !self.observe(&effect, own) {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    fn overlap(&self, label: LabelId) -> Diagnostic {
        let text = self.product.machine.label_text(label);
        let message = format!(
            "`{text}` begins an operation before the previous one of its processor has ended: operations that overlap are not supported for programs of every length"
        );
        Diagnostic::new(Stage::Unsupported, message)
    }

    /// Applies an effect to the monitor; false if the guess forbids it.
    fn observe(&mut self, effect: &Effect, own: &mut [u32]) -> bool {
        let product = self.product;
        let guess = &product.guesses[own[0] as usize - 1];
        let Some(next) = guess.apply(&product.roles, own[1], effect) else { return false };
        own[1] = next;
        if product.goal == Goal::Shown {
            let last = own.len() - 1;
            let mut record = |processor, address, value| {
                let access = (processor, address, value);
                own[last] = show(&product.roles, guess, product.processors, own[last], access);
            };
            match *effect {
                Effect::Load { processor, address, value }
                | Effect::Store { processor, address, value } => record(processor, address, value),
                Effect::Update { processor, address, read, written } => {
                    record(processor, address, read);
                    record(processor, address, written);
                }
                _ => {}
            }
        }
        true
    }
}

impl Worker for ProductWorker<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let product = self.product;
        match group {
            CHOICE => {
                for guess in 0..narrow::index(product.guesses.len()) {
                    out.labels.push(LabelId::TAU);
                    out.values.extend([1, guess + 1]);
                }
            }
            ALARM => {
                if product.is_reached(reads) {
                    out.labels.push(LabelId::TAU);
                }
            }
            _ if !product.monitored[group] => {
                let steps = self.answer(group, reads)?;
                out.labels.extend_from_slice(&steps.labels);
                out.values.extend_from_slice(&steps.values);
            }
            _ => {
                let own_from = reads.len() - (product.added - 1);
                let steps = self.answer(group, &reads[..own_from])?;
                let width = steps.values.len().checked_div(steps.labels.len()).unwrap_or(0);
                let mut own = std::mem::take(&mut self.addressed);
                for (i, &label) in steps.labels.iter().enumerate() {
                    own.clear();
                    own.extend_from_slice(&reads[own_from..]);
                    if self.apply(label, &mut own)? {
                        out.labels.push(label);
                        out.values.extend_from_slice(&steps.values[i * width..(i + 1) * width]);
                        out.values.extend_from_slice(&own[1..]);
                    }
                }
                self.addressed = own;
            }
        }
        Ok(())
    }
    fn image(
        &mut self,
        symmetry: usize,
        slot: Slot,
        value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        let product = self.product;
        let exchange = &product.exchanges[symmetry];
        let Some(own) = (slot as usize).checked_sub(product.width) else {
            return self.machine.image(exchange.candidate, slot, value);
        };
        Ok(match (own, value) {
            (0, _) | (1, 0) => Some(value),
            (1, guess) => exchange.guess_image(guess - 1).map(|g| g + 1),
            (2, state) => Some(exchange.monitor_image(state)),
            (_, 0) => Some(0),
            (_, begun) => exchange.event_image(begun - 1).map(|e| e + 1),
        })
    }
    fn image_label(
        &mut self,
        symmetry: usize,
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        self.machine.image_label(self.product.exchanges[symmetry].candidate, label)
    }
}
