//! Region abstraction of a model: counters are replaced by blocks of numbers, see [`crate::cuts`].
//!
//! Input: a compiled process over symbolic parameters, the results of [`crate::flow`] for it, a
//! case. Output: a model that has the states of the compiled process, with each counter replaced by
//! the number of its block. A group is evaluated at enough concrete numbers ([`crate::sample`]),
//! and the answers are abstracted and united: the model has a step if some concrete numbers of
//! these blocks, and some valuation of the case, have it (existential abstraction: Clarke,
//! Grumberg, Long 1994). Hence a formula without diamonds that holds in it holds for all valuations
//! of the case. Each choice of numbers is evaluated again with equivalent numbers. If the answers
//! differ, the analysis is wrong, and the verdict is unknown.
//!
//! Cost: one evaluation per sample for each query. There are few queries, because engines cache the
//! answers.

use crate::abstractable_model::delegate_to_inner;
use crate::cuts::{Case, CutLine, Grain};
use crate::numbers::{Layout, Layouts, has_bag};
use crate::sample::{Sample, SampleRequest, samples};
use crate::separation::Capacities;
use ahash::AHashMap;
use mu_base::ids::{ActId, LabelId, OpId, VarId};
use mu_base::{Diagnostic, Stage, narrow};
use mu_compile::Compiled;
use mu_data::engine::Engine;
use mu_data::expr::{Expr, Substitution};
use mu_data::signature::Signature;
use mu_model::{Group, Model, Slot, Steps, Symmetry, Worker};
use mu_process::labels::{ActionLabels, MultiAction};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// The content of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A symbolic parameter, by the number of its base.
    Parameter(usize),
    /// A value with the positions of its counters, if any.
    Value(Layout),
}

/// Results of the analysis for a group.
#[derive(Clone, Debug, Default)]
pub struct GroupFacts {
    /// Largest offset that its expressions add to a counter or to a symbolic parameter.
    pub growth: i64,
    /// Number of summed variables that are counters, except those that must equal one of the
    /// numbers that the group reads.
    pub sums: i64,
    /// Literals that counters are compared with.
    pub literals: Vec<i64>,
    /// True if one of its expressions may use a symbolic parameter.
    pub uses_symbolic: bool,
}

/// Results of the analysis for a compiled process.
#[derive(Clone, Debug, Default)]
pub struct AbstractionFacts {
    /// The content of each slot.
    pub contents: Vec<Content>,
    /// The layout of each argument of each action.
    pub arguments: Vec<Vec<Layout>>,
    /// The layouts of constructors' arguments.
    pub layouts: Layouts,
    /// The results for each group.
    pub groups: Vec<GroupFacts>,
    /// The results for all initial values together.
    pub start: GroupFacts,
    /// Initial values that use a symbolic parameter, with their slots.
    pub initial: Vec<(Slot, Expr)>,
    /// The variable of each symbolic parameter, base 1 first.
    pub parameters: Vec<VarId>,
}

/// The region abstraction for one case.
pub struct Regions<'a> {
    inner: &'a Compiled,
    facts: &'a AbstractionFacts,
    line: &'a CutLine,
    case: &'a Case,
    /// The granularity of each slot.
    grains: &'a [Grain],
    groups: Vec<Group>,
    /// For each group: the counter slots that the compiled group requires to have a value, with the
    /// value.
    required: Vec<Vec<(Slot, u32)>>,
    /// For each group: true if it compares the numbers that it reads only with each other.
    order_only: Vec<bool>,
    initial: Vec<u32>,
}

impl<'a> Regions<'a> {
    /// Creates the abstraction of `inner` for a case. Error: the initial state depends on the
    /// valuation.
    pub fn new(
        inner: &'a Compiled,
        facts: &'a AbstractionFacts,
        line: &'a CutLine,
        case: &'a Case,
        grains: &'a [Grain],
    ) -> Result<Self, Diagnostic> {
        let counts =
            |slot: Slot| !matches!(facts.contents[slot as usize], Content::Value(Layout::None));
        let (mut groups, mut required, mut order_only) = (Vec::new(), Vec::new(), Vec::new());
        for group in inner.groups() {
            let (here, rest): (Vec<_>, Vec<_>) =
                group.requires.iter().copied().partition(|r| counts(r.0));
            let mut reads = group.reads.clone();
            reads.extend(here.iter().map(|r| r.0));
            reads.sort_unstable();
            reads.dedup();
            let own = &facts.groups[groups.len()];
            let plain =
                !own.uses_symbolic && own.growth == 0 && own.sums == 0 && own.literals.is_empty();
            let reads_base =
                |slot: &Slot| matches!(facts.contents[*slot as usize], Content::Parameter(_));
            order_only.push(plain && here.is_empty() && !reads.iter().any(reads_base));
            groups.push(Group {
                requires: rest,
                tests: reads.clone(),
                reads,
                confluent: false,
                ..group.clone()
            });
            required.push(here);
        }
        let mut regions = Self {
            inner,
            facts,
            line,
            case,
            grains,
            groups,
            required,
            order_only,
            initial: Vec::new(),
        };
        regions.initial = regions.start()?;
        Ok(regions)
    }

    fn start(&self) -> Result<Vec<u32>, Diagnostic> {
        let mut thread = Evaluator::new(self);
        let bound = self.line.reach().max(self.facts.start.growth) + 1;
        let wanted = SampleRequest {
            line: self.line,
            case: self.case,
            numbers: &[],
            literals: &self.facts.start.literals,
            bound,
        };
        let mut valuations: Vec<Vec<i64>> = vec![self.case.valuation.clone()];
        let Some(found) = samples(&wanted) else {
            return Err(Diagnostic::new(
                Stage::Unsupported,
                "the initial state depends on too many parameters at once",
            ));
        };
        valuations.extend(found.into_iter().flat_map(|(a, b)| [a.valuation, b.valuation]));
        let mut first: Option<Vec<u32>> = None;
        for valuation in &valuations {
            let mut state = self.inner.initial();
            for (slot, e) in &self.facts.initial {
                let by: Substitution = (self.facts.parameters.iter().zip(&valuation[1..]))
                    .map(|(v, n)| (*v, Expr::number(*n, self.signature().var(*v).sort)))
                    .collect();
                let value = thread.engine.from_expr(&e.substitute(&by))?;
                let normal = thread.engine.to_expr_at(&value, e.sort);
                state[*slot as usize] = self.inner.intern(*slot, &normal);
            }
            for slot in 0..state.len() as Slot {
                state[slot as usize] =
                    thread.abstract_value(slot, state[slot as usize], valuation)?;
            }
            let before = first.get_or_insert_with(|| state.clone());
            if let Some(slot) = (0..state.len()).find(|s| before[*s] != state[*s]) {
                let place = self.inner.process().params.get(slot).map(|p| p.init.span);
                return Err(Diagnostic::new(
                    Stage::Unsupported,
                    "the abstraction of the initial state depends on the value of a symbolic parameter",
                )
                .or_span(place.unwrap_or_default()));
            }
        }
        Ok(first.unwrap_or_default())
    }

    /// Returns the compiled process.
    pub fn inner(&self) -> &Compiled {
        self.inner
    }

    fn signature(&self) -> &Signature {
        &self.inner.process().data.signature
    }

    /// Returns the meaning of abstract values: the positions of counters, the case, the granularity
    /// of each slot.
    pub(crate) fn meaning(&self) -> (&'a AbstractionFacts, &'a Case, &'a [Grain]) {
        (self.facts, self.case, self.grains)
    }

    fn layout(&self, slot: Slot) -> &Layout {
        match &self.facts.contents[slot as usize] {
            Content::Parameter(_) => &Layout::Counter,
            Content::Value(layout) => layout,
        }
    }
}

impl Model for Regions<'_> {
    delegate_to_inner!();
    fn groups(&self) -> &[Group] {
        &self.groups
    }
    fn initial(&self) -> Vec<u32> {
        self.initial.clone()
    }
    fn worker(&self) -> Box<dyn Worker + '_> {
        Box::new(Evaluator::new(self))
    }
    fn symmetries(&self) -> &[Symmetry] {
        self.inner.symmetries()
    }
}

impl ActionLabels for Regions<'_> {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.inner.multi_action(label)
    }
    fn constructor_images(&self, symmetry: usize) -> Option<&[(OpId, OpId)]> {
        self.inner.constructor_images(symmetry)
    }
}

/// Samples with their twins.
type Samples = Rc<Vec<(Sample, Sample)>>;
/// The key of cached samples: the blocks of the numbers, the literals, the bound.
type SamplesKey = (Vec<(Grain, i64)>, Vec<i64>, i64);

/// The evaluator of one thread.
struct Evaluator<'m> {
    regions: &'m Regions<'m>,
    inner: Box<dyn Worker + 'm>,
    engine: Engine,
    numbers: AHashMap<(Slot, u32), Rc<[i64]>>,
    concrete: AHashMap<(Slot, u32, Vec<i64>), u32>,
    samples: AHashMap<SamplesKey, Samples>,
    /// Interval capacities, by the number of numbers.
    rooms: AHashMap<usize, Option<Capacities>>,
    valuations: AHashMap<Vec<i64>, u32>,
    images: AHashMap<(Slot, u32, u32), u32>,
    labels: AHashMap<(LabelId, u32), LabelId>,
}

impl<'m> Evaluator<'m> {
    fn new(regions: &'m Regions<'m>) -> Self {
        Self {
            regions,
            inner: regions.inner.worker(),
            engine: regions.inner.engine(),
            numbers: AHashMap::new(),
            concrete: AHashMap::new(),
            samples: AHashMap::new(),
            rooms: AHashMap::new(),
            valuations: AHashMap::new(),
            images: AHashMap::new(),
            labels: AHashMap::new(),
        }
    }

    /// Returns the counters in a slot's value.
    fn numbers(&mut self, slot: Slot, value: u32) -> Result<Rc<[i64]>, Diagnostic> {
        if let Some(known) = self.numbers.get(&(slot, value)) {
            return Ok(known.clone());
        }
        let regions = self.regions;
        let found = match regions.layout(slot) {
            Layout::None => Vec::new(),
            layout => regions.facts.layouts.numbers(
                regions.signature(),
                layout,
                &regions.inner.value(slot, value),
            )?,
        };
        let found: Rc<[i64]> = found.into();
        self.numbers.insert((slot, value), found.clone());
        Ok(found)
    }

    /// Replaces the counters in a slot's value.
    fn with_numbers(&mut self, slot: Slot, value: u32, numbers: &[i64]) -> Result<u32, Diagnostic> {
        let key = (slot, value, numbers.to_vec());
        if let Some(known) = self.concrete.get(&key) {
            return Ok(*known);
        }
        let regions = self.regions;
        let mut next = numbers.iter();
        let e = regions.inner.value(slot, value);
        let id = self.map_numbers(slot, &e, &mut |n| next.next().copied().unwrap_or(n))?;
        self.concrete.insert(key, id);
        Ok(id)
    }

    fn map_numbers(
        &mut self,
        slot: Slot,
        e: &Expr,
        f: &mut dyn FnMut(i64) -> i64,
    ) -> Result<u32, Diagnostic> {
        let regions = self.regions;
        let layout = regions.layout(slot);
        let mut new = regions.facts.layouts.map(regions.signature(), layout, e, f)?;
        if has_bag(&regions.facts.layouts, layout) {
            let value = self.engine.from_expr(&new)?;
            new = self.engine.to_expr_at(&value, e.sort);
        }
        Ok(regions.inner.intern(slot, &new))
    }

    fn valuation(&mut self, valuation: &[i64]) -> u32 {
        if let Some(known) = self.valuations.get(valuation) {
            return *known;
        }
        let next = narrow::index(self.valuations.len());
        self.valuations.insert(valuation.to_vec(), next);
        next
    }

    /// Abstracts a slot's value.
    fn abstract_value(
        &mut self,
        slot: Slot,
        value: u32,
        valuation: &[i64],
    ) -> Result<u32, Diagnostic> {
        let regions = self.regions;
        match &regions.facts.contents[slot as usize] {
            Content::Value(Layout::None) => return Ok(value),
            Content::Parameter(base) => {
                let sort = regions.signature().var(regions.facts.parameters[base - 1]).sort;
                return Ok(regions
                    .inner
                    .intern(slot, &Expr::number(regions.case.valuation[*base], sort)));
            }
            Content::Value(_) => {}
        }
        let key = (slot, value, self.valuation(valuation));
        if let Some(known) = self.images.get(&key) {
            return Ok(*known);
        }
        let grain = regions.grains[slot as usize];
        let e = regions.inner.value(slot, value);
        let image =
            self.map_numbers(slot, &e, &mut |n| regions.case.abstract_number(grain, n, valuation))?;
        self.images.insert(key, image);
        Ok(image)
    }

    /// Abstracts a label.
    fn label(&mut self, label: LabelId, valuation: &[i64]) -> Result<LabelId, Diagnostic> {
        let key = (label, self.valuation(valuation));
        if let Some(known) = self.labels.get(&key) {
            return Ok(*known);
        }
        let regions = self.regions;
        let layouts_of = |action: ActId| regions.facts.arguments.get(action.index());
        let multi = regions.inner.multi_action(label);
        let plain = multi
            .iter()
            .all(|(a, _)| layouts_of(*a).is_none_or(|l| l.iter().all(|l| *l == Layout::None)));
        let image = if plain {
            label
        } else {
            let mut images: MultiAction = Vec::new();
            for (action, args) in multi.iter() {
                let mut new = Vec::new();
                for (i, e) in args.iter().enumerate() {
                    let layout =
                        layouts_of(*action).and_then(|l| l.get(i)).unwrap_or(&Layout::None);
                    let abstracted =
                        &mut |n| regions.case.abstract_number(Grain::Predicates, n, valuation);
                    let mut image =
                        regions.facts.layouts.map(regions.signature(), layout, e, abstracted)?;
                    if has_bag(&regions.facts.layouts, layout) {
                        let value = self.engine.from_expr(&image)?;
                        image = self.engine.to_expr_at(&value, e.sort);
                    }
                    new.push(image);
                }
                images.push((*action, new));
            }
            regions.inner.intern_label(images)
        };
        self.labels.insert(key, image);
        Ok(image)
    }

    fn samples(&mut self, group: usize, numbers: Vec<(Grain, i64)>) -> Result<Samples, Diagnostic> {
        let regions = self.regions;
        let facts = &regions.facts.groups[group];
        // The bound 0 is unused, so it marks such groups in the key.
        let order_only = regions.order_only[group];
        let bound = if order_only {
            0
        } else {
            (regions.line.reach().max(facts.growth) + 1) * (facts.sums + 1)
        };
        let key = (numbers, facts.literals.clone(), bound);
        if let Some(known) = self.samples.get(&key) {
            return Ok(known.clone());
        }
        let found = if order_only {
            let rooms = self
                .rooms
                .entry(key.0.len())
                .or_insert_with(|| Capacities::new(regions.line, regions.case, key.0.len()));
            rooms.as_ref().and_then(|rooms| rooms.samples(regions.case, &key.0))
        } else {
            samples(&SampleRequest {
                line: regions.line,
                case: regions.case,
                numbers: &key.0,
                literals: &key.1,
                bound,
            })
        };
        let Some(found) = found else {
            let name = &regions.groups[group].name;
            let text = format!("a step `{name}` depends on too many numbers at once");
            let summand = &regions.inner.process().summands[regions.inner.summand_of(group)];
            return Err(Diagnostic::new(Stage::Unsupported, text).or_span(summand.span()));
        };
        let found = Rc::new(found);
        self.samples.insert(key, found.clone());
        Ok(found)
    }

    /// Computes the abstract steps of a group for one choice of numbers.
    fn at(
        &mut self,
        group: usize,
        reads: &[u32],
        counts: &[usize],
        sample: &Sample,
    ) -> Result<BTreeSet<(LabelId, Vec<u32>)>, Diagnostic> {
        let regions = self.regions;
        let abstract_reads = &regions.groups[group].reads;
        let inner = &regions.inner.groups()[group];
        let mut left = &sample.numbers[..];
        let mut values = Vec::with_capacity(inner.reads.len());
        for (i, (&slot, &value)) in abstract_reads.iter().zip(reads).enumerate() {
            let (own, rest) = left.split_at(counts[i]);
            left = rest;
            let concrete = match &regions.facts.contents[slot as usize] {
                Content::Parameter(base) => {
                    self.with_numbers(slot, value, &[sample.valuation[*base]])?
                }
                Content::Value(Layout::None) => value,
                Content::Value(_) => self.with_numbers(slot, value, own)?,
            };
            if regions.required[group].iter().any(|(s, v)| *s == slot && *v != concrete) {
                return Ok(BTreeSet::new());
            }
            if inner.reads.binary_search(&slot).is_ok() {
                values.push(concrete);
            }
        }
        let mut steps = Steps::default();
        self.inner.steps(group, &values, &mut steps)?;
        let width = inner.writes.len();
        let mut out = BTreeSet::new();
        for (i, &label) in steps.labels.iter().enumerate() {
            let label = self.label(label, &sample.valuation)?;
            let mut target = Vec::with_capacity(width);
            for (slot, value) in inner.writes.iter().zip(&steps.values[i * width..(i + 1) * width])
            {
                target.push(self.abstract_value(*slot, *value, &sample.valuation)?);
            }
            out.insert((label, target));
        }
        Ok(out)
    }
}

impl Worker for Evaluator<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let regions = self.regions;
        let (mut numbers, mut counts) = (Vec::new(), Vec::new());
        for (&slot, &value) in regions.groups[group].reads.iter().zip(reads) {
            if matches!(regions.facts.contents[slot as usize], Content::Parameter(_)) {
                counts.push(0);
                continue;
            }
            let own = self.numbers(slot, value)?;
            counts.push(own.len());
            numbers.extend(own.iter().map(|n| (regions.grains[slot as usize], *n)));
        }
        let mut all = BTreeSet::new();
        for (sample, twin) in self.samples(group, numbers)?.iter() {
            let found = self.at(group, reads, &counts, sample)?;
            if found != self.at(group, reads, &counts, twin)? {
                let text = format!(
                    "numbers that the analysis considers equivalent give different answers in a step `{}`",
                    regions.groups[group].name
                );
                let note = format!("{sample:?} and {twin:?}");
                return Err(Diagnostic::new(Stage::Unsupported, text).note(note));
            }
            all.extend(found);
        }
        for (label, target) in all {
            out.labels.push(label);
            out.values.extend(target);
        }
        Ok(())
    }
    fn image(
        &mut self,
        symmetry: usize,
        slot: Slot,
        value: u32,
    ) -> Result<Option<u32>, Diagnostic> {
        self.inner.image(symmetry, slot, value)
    }
    fn image_label(
        &mut self,
        symmetry: usize,
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        self.inner.image_label(symmetry, label)
    }
}
