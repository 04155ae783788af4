//! Abstraction that merges constants of a sort with any number of constants.
//!
//! Input: a model with [`Family::constants`], as many constants as its evaluations need
//! ([`crate::sizes`] finds these sorts, and shows why larger sizes make no difference), and the
//! number of tracked constants. Output: a model with states that contain the tracked constants, and
//! the next one for all others; an array over the sort has entries only at tracked constants. A
//! group is evaluated for each partition of the merged constants that it reads, and for the
//! possible contents of arrays at those and at as many more as the group sums over ([`covers`]).
//! The answers are abstracted and united (existential abstraction: Clarke, Grumberg, Long 1994).
//! Each choice is evaluated again with other constants. If the answers differ, the analysis is
//! wrong, and the verdict is unknown.
//!
//! Cost: partitions of the merged constants read (1, 2, 5, 15 for 1 to 4) times contents of arrays;
//! engines cache the answers.

use crate::abstractable_model::{AbstractableModel, CachedInner, delegate_to_inner, pack};
use crate::sizes::Family;
use ahash::AHashMap;
use mu_base::ids::{LabelId, OpId, SortId};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_compile::Compiled;
use mu_data::engine::Engine;
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_model::{Group, Model, Slot, StepPart, Steps, Symmetry, Worker};
use mu_process::labels::{ActionLabels, MultiAction};
use num_traits::ToPrimitive;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

/// Limit on the evaluations for one query; beyond it the query is an error.
const MAX_EVALUATIONS: usize = 50_000;
/// Limit on the number of cached values.
const MAX_CACHED: usize = 200_000;

/// An abstraction with merged constants.
pub struct MergedConstants<'a> {
    inner: &'a dyn AbstractableModel,
    family: &'a Family,
    tracked: usize,
    groups: Vec<Group>,
    initial: Vec<u32>,
    symmetries: Vec<Symmetry>,
    /// For each symmetry of the abstraction, that of the inner model.
    of: Vec<usize>,
}

impl<'a> MergedConstants<'a> {
    /// Creates the abstraction of `inner` that tracks the first `tracked` constants of the family.
    pub fn new(
        inner: &'a dyn AbstractableModel,
        family: &'a Family,
        tracked: usize,
    ) -> Result<Self, Diagnostic> {
        let groups = inner
            .groups()
            .iter()
            .map(|g| Group { confluent: false, tests: g.reads.clone(), ..g.clone() })
            .collect();
        let mut merged = Self {
            inner,
            family,
            tracked,
            groups,
            initial: Vec::new(),
            symmetries: Vec::new(),
            of: Vec::new(),
        };
        for (i, symmetry) in inner.symmetries().iter().enumerate() {
            let moved = inner.constructor_images(i).unwrap_or_default();
            if moved.iter().all(|(op, _)| family.constants.iter().skip(tracked).all(|c| c != op)) {
                merged.symmetries.push(symmetry.clone());
                merged.of.push(i);
            }
        }
        let mut thread = Evaluator::new(&merged);
        let mut initial = inner.initial();
        for slot in 0..initial.len() as Slot {
            initial[slot as usize] = thread.merge_value(slot, initial[slot as usize])?;
        }
        drop(thread);
        merged.initial = initial;
        Ok(merged)
    }

    /// Returns the meaning of abstract values: the constants from the given index on are merged.
    pub(crate) fn meaning(&self) -> (&'a dyn AbstractableModel, &'a Family, usize) {
        (self.inner, self.family, self.tracked)
    }

    fn position(&self, op: OpId) -> Option<usize> {
        self.family.constants.iter().position(|c| *c == op)
    }
}

impl AbstractableModel for MergedConstants<'_> {
    fn compiled_process(&self) -> &Compiled {
        self.inner.compiled_process()
    }
    fn constants(&self, sort: SortId) -> Vec<OpId> {
        let mut all = self.inner.constants(sort);
        if sort == self.family.sort {
            all.retain(|op| self.position(*op).is_none_or(|i| i <= self.tracked));
        }
        all
    }
}

impl Model for MergedConstants<'_> {
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
        &self.symmetries
    }
    fn parts(
        &self,
        group: usize,
        before: &[u32],
        label: LabelId,
        after: &[u32],
    ) -> Result<Vec<StepPart>, Diagnostic> {
        self.inner.parts(group, before, label, after)
    }
}

impl ActionLabels for MergedConstants<'_> {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.inner.multi_action(label)
    }
    fn constructor_images(&self, symmetry: usize) -> Option<&[(OpId, OpId)]> {
        self.inner.constructor_images(*self.of.get(symmetry)?)
    }
}

/// A concretisation: the class of each merged occurrence, and the contents of the arrays at each
/// class.
struct ClassChoice {
    classes: Vec<usize>,
    count: usize,
    entries: Vec<Vec<Option<OpId>>>,
}

/// The evaluator of one thread.
struct Evaluator<'m> {
    model: &'m MergedConstants<'m>,
    inner: CachedInner<'m>,
    engine: Engine,
    occurrences: Occurrences,
    images: AHashMap<(Slot, u32), u32>,
    labels: AHashMap<LabelId, LabelId>,
    /// Concretised values, by slot, value, [`pack`] constants and entries of arrays.
    concrete: AHashMap<(Slot, u32, u64, Vec<(usize, OpId)>), u32>,
}

impl<'m> Evaluator<'m> {
    fn new(model: &'m MergedConstants<'m>) -> Self {
        Self {
            model,
            inner: CachedInner::new(model.inner),
            engine: model.inner.engine(),
            occurrences: Occurrences::default(),
            images: AHashMap::new(),
            labels: AHashMap::new(),
            concrete: AHashMap::new(),
        }
    }

    fn signature(&self) -> &'m Signature {
        self.model.inner.signature()
    }

    fn normal(&mut self, e: &Expr) -> Result<Expr, Diagnostic> {
        let value = self.engine.from_expr(e)?;
        Ok(self.engine.to_expr_at(&value, e.sort))
    }

    /// Replaces constants, see [`map_constants`].
    fn map(&self, e: &Expr, f: &mut dyn FnMut(usize) -> usize) -> Result<Expr, Diagnostic> {
        map_constants(self.signature(), self.model.family, e, f)
    }

    /// Checks a value, see [`expect_no_constants`].
    fn expect_no_constants(&self, e: &Expr) -> Result<(), Diagnostic> {
        expect_no_constants(self.signature(), self.model.family, e)
    }

    /// Abstracts the value of a slot.
    fn merge_value(&mut self, slot: Slot, value: u32) -> Result<u32, Diagnostic> {
        let model = self.model;
        if let Some(known) = self.images.get(&(slot, value)) {
            return Ok(*known);
        }
        let e = model.inner.value(slot, value);
        if !model.family.slots[slot as usize] {
            self.expect_no_constants(&e)?;
            self.images.insert((slot, value), value);
            return Ok(value);
        }
        let e = match model.family.arrays[slot as usize] {
            Some(entries) => self.at_tracked(&e, &model.inner.constants(entries))?,
            None => e,
        };
        let e = self.map(&e, &mut |i| i.min(model.tracked))?;
        let e = self.normal(&e)?;
        let image = model.inner.intern(slot, &e);
        self.images.insert((slot, value), image);
        Ok(image)
    }

    /// Removes the entries of an array at merged constants. `entries`: the possible ones.
    fn at_tracked(&self, e: &Expr, entries: &[OpId]) -> Result<Expr, Diagnostic> {
        let (mut retained, mut at) = (Vec::new(), e.clone());
        while let Some((Builtin::Update, [rest, key, entry])) =
            at.clone().as_builtin(self.signature())
        {
            if !entry.head().is_some_and(|op| entries.contains(&op)) {
                return reject_unevaluated(self.signature(), entry);
            }
            let untracked = key
                .head()
                .and_then(|op| self.model.position(op))
                .is_some_and(|i| i >= self.model.tracked);
            if !untracked {
                retained.push(at.clone());
            }
            at = rest.clone();
        }
        for cell in retained.into_iter().rev() {
            if let ExprKind::Apply(head, args) = &cell.kind {
                at = Expr::new(
                    ExprKind::Apply(head.clone(), vec![at, args[1].clone(), args[2].clone()]),
                    cell.sort,
                    Span::default(),
                );
            }
        }
        Ok(at)
    }

    /// Returns the constants of the family in a slot's value, in order.
    fn occurrences(&mut self, slot: Slot, value: u32) -> Result<Rc<[usize]>, Diagnostic> {
        let model = self.model;
        self.occurrences.of(model.inner, model.family, slot, value)
    }

    fn label(&mut self, label: LabelId) -> Result<LabelId, Diagnostic> {
        if let Some(known) = self.labels.get(&label) {
            return Ok(*known);
        }
        let model = self.model;
        let multi = model.inner.multi_action(label);
        let mut images: MultiAction = Vec::new();
        for (action, args) in multi.iter() {
            let mut new = Vec::new();
            for e in args {
                let image = if model.family.holds(e.sort) {
                    let image = self.map(e, &mut |i| i.min(model.tracked))?;
                    self.normal(&image)?
                } else {
                    self.expect_no_constants(e)?;
                    e.clone()
                };
                new.push(image);
            }
            images.push((*action, new));
        }
        let image = if images == **multi { label } else { model.inner.intern_label(images) };
        self.labels.insert(label, image);
        Ok(image)
    }

    /// Returns all concretisations for a number of merged occurrences, and arrays with these sorts
    /// of entries.
    fn choices(
        &self,
        group: usize,
        merged: usize,
        arrays: &[SortId],
    ) -> Result<Vec<ClassChoice>, Diagnostic> {
        let model = self.model;
        let name = &model.groups[group].name;
        let room = model.family.constants.len() - model.tracked;
        if merged + model.family.sums[group] > room {
            let text = format!(
                "a step `{name}` depends on too many constants of `{}` at once",
                model.family.name
            );
            return Err(Diagnostic::new(Stage::Unsupported, text));
        }
        // The possible contents of the arrays at one constant; first, no entry.
        let mut tuples: Vec<Vec<Option<OpId>>> = vec![Vec::new()];
        for sort in arrays {
            let values: Vec<Option<OpId>> = std::iter::once(None)
                .chain(model.inner.constants(*sort).into_iter().map(Some))
                .collect();
            tuples = tuples
                .iter()
                .flat_map(|t| values.iter().map(|v| [t.as_slice(), &[*v]].concat()))
                .collect();
        }
        let mut found = Vec::new();
        for classes in partitions(merged) {
            let read = classes.iter().max().map_or(0, |c| c + 1);
            let summed = if arrays.is_empty() {
                vec![Vec::new()]
            } else {
                covers(tuples.len(), model.family.sums[group], room - read)
            };
            let fillings = if arrays.is_empty() {
                Some(1)
            } else {
                tuples.len().checked_pow(narrow::index(read))
            };
            if fillings.is_none_or(|n| found.len() + n * summed.len() > MAX_EVALUATIONS) {
                let text = format!(
                    "a step `{name}` depends on too many constants of `{}`, or entries of arrays, at once",
                    model.family.name
                );
                return Err(Diagnostic::new(Stage::Unsupported, text));
            }
            let places = if arrays.is_empty() { 0 } else { read };
            for held in (0..places).fold(vec![Vec::new()], |rows, _| longer(&rows, tuples.len())) {
                for more in &summed {
                    let held: Vec<usize> = held.iter().chain(more).copied().collect();
                    let entries = (0..arrays.len())
                        .map(|a| held.iter().map(|t| tuples[*t][a]).collect())
                        .collect();
                    found.push(ClassChoice {
                        classes: classes.clone(),
                        count: read.max(held.len()),
                        entries,
                    });
                }
            }
        }
        Ok(found)
    }

    /// Concretises a slot's value: replaces merged constants, and adds entries if it is an array.
    fn concretise(
        &mut self,
        slot: Slot,
        value: u32,
        places: &[usize],
        entries: Vec<(usize, OpId)>,
    ) -> Result<u32, Diagnostic> {
        let model = self.model;
        let key = pack(places).map(|places| (slot, value, places, entries.clone()));
        if let Some(known) = key.as_ref().and_then(|key| self.concrete.get(key)) {
            return Ok(*known);
        }
        let mut next = places.iter();
        let e = model.inner.value(slot, value);
        let mut e = self.map(&e, &mut |i| {
            if i < model.tracked { i } else { next.next().copied().unwrap_or(i) }
        })?;
        for (at, entry) in entries {
            e = self.add_entry(e, model.family.constants[at], entry)?;
        }
        let e = self.normal(&e)?;
        let id = model.inner.intern(slot, &e);
        if let Some(key) = key {
            if self.concrete.len() >= MAX_CACHED {
                self.concrete.clear();
            }
            self.concrete.insert(key, id);
        }
        Ok(id)
    }

    /// Computes the abstract steps of a group for one concretisation. `place`: the index of the
    /// constant that represents a class.
    fn at(
        &mut self,
        group: usize,
        reads: &[u32],
        choice: &ClassChoice,
        place: &dyn Fn(usize) -> usize,
    ) -> Result<BTreeSet<(LabelId, Vec<u32>)>, Diagnostic> {
        let model = self.model;
        let (mut next, mut arrays) = (choice.classes.iter(), choice.entries.iter());
        let mut values = Vec::with_capacity(reads.len());
        for (&slot, &value) in model.groups[group].reads.iter().zip(reads) {
            if !model.family.slots[slot as usize] {
                values.push(value);
                continue;
            }
            let held = self.occurrences(slot, value)?;
            let untracked = held.iter().filter(|i| **i >= model.tracked);
            let places: Vec<usize> =
                untracked.map(|i| next.next().map_or(*i, |class| place(*class))).collect();
            let mut more = Vec::new();
            if model.family.arrays[slot as usize].is_some()
                && let Some(entries) = arrays.next()
            {
                more.extend(
                    entries
                        .iter()
                        .enumerate()
                        .filter_map(|(class, entry)| entry.map(|entry| (place(class), entry))),
                );
            }
            values.push(self.concretise(slot, value, &places, more)?);
        }
        let steps = self.inner.steps(group, values)?;
        let writes = &model.groups[group].writes;
        let mut out = BTreeSet::new();
        for (i, &label) in steps.labels.iter().enumerate() {
            let label = self.label(label)?;
            let mut target = Vec::with_capacity(writes.len());
            for (slot, value) in writes.iter().zip(&steps.values[i * writes.len()..]) {
                target.push(self.merge_value(*slot, *value)?);
            }
            out.insert((label, target));
        }
        Ok(out)
    }

    /// Adds an entry to an array.
    fn add_entry(&self, array: Expr, key: OpId, entry: OpId) -> Result<Expr, Diagnostic> {
        let signature = self.signature();
        let Some(update) = self.model.family.update_of(array.sort) else {
            return Err(Diagnostic::internal("an array over a sort of any size has no update"));
        };
        Ok(Expr::apply(
            signature,
            update,
            vec![array, Expr::op(signature, key), Expr::op(signature, entry)],
        ))
    }
}

/// Cache of the positions of a family's constants in values.
#[derive(Default)]
pub(crate) struct Occurrences(AHashMap<(Slot, u32), Rc<[usize]>>);

impl Occurrences {
    /// Returns the constants in a slot's value, by their indices in the family, in order.
    pub fn of(
        &mut self,
        inner: &dyn AbstractableModel,
        family: &Family,
        slot: Slot,
        value: u32,
    ) -> Result<Rc<[usize]>, Diagnostic> {
        if let Some(known) = self.0.get(&(slot, value)) {
            return Ok(known.clone());
        }
        let mut found = Vec::new();
        if family.slots[slot as usize] {
            map_constants(inner.signature(), family, &inner.value(slot, value), &mut |i| {
                found.push(i);
                i
            })?;
        }
        let found: Rc<[usize]> = found.into();
        self.0.insert((slot, value), found.clone());
        Ok(found)
    }
}

/// Replaces the constants of the family in a value, by their indices, in order; elements of a bag
/// are handled one by one.
pub(crate) fn map_constants(
    signature: &Signature,
    family: &Family,
    e: &Expr,
    f: &mut dyn FnMut(usize) -> usize,
) -> Result<Expr, Diagnostic> {
    stacker::maybe_grow(128 << 10, 4 << 20, || match &e.kind {
        ExprKind::Op(op) => Ok(match family.constants.iter().position(|c| c == op) {
            Some(i) => Expr::op(signature, family.constants[f(i)]),
            None => e.clone(),
        }),
        ExprKind::Number(_) => Ok(e.clone()),
        ExprKind::Apply(head, args) => {
            if let Some((Builtin::BagInsert, [element, count, rest])) = e.as_builtin(signature)
                && let ExprKind::Number(copies) = &count.kind
                && family.holds(element.sort)
            {
                let Some(copies) = copies.to_u32().filter(|c| (1..=64).contains(c)) else {
                    return reject_unevaluated(signature, e);
                };
                let elements = (0..copies)
                    .map(|_| map_constants(signature, family, element, f))
                    .collect::<Result<Vec<_>, _>>()?;
                let mut bag = map_constants(signature, family, rest, f)?;
                for element in elements {
                    let args = vec![element, Expr::number(1, count.sort), bag];
                    bag = Expr::new(ExprKind::Apply(head.clone(), args), e.sort, Span::default());
                }
                return Ok(bag);
            }
            let args = args
                .iter()
                .map(|a| map_constants(signature, family, a, f))
                .collect::<Result<Vec<_>, _>>()?;
            Ok(Expr::new(ExprKind::Apply(head.clone(), args), e.sort, Span::default()))
        }
        ExprKind::Var(_) | ExprKind::Bind(..) | ExprKind::Where(..) => {
            reject_unevaluated(signature, e)
        }
    })
}

/// Rejects a value that contains constants of the family although its sort does not: a mapping is
/// not defined on them.
pub(crate) fn expect_no_constants(
    signature: &Signature,
    family: &Family,
    e: &Expr,
) -> Result<(), Diagnostic> {
    let mut found = false;
    e.each_op(&mut |op| found |= family.constants.contains(&op));
    if found { reject_unevaluated(signature, e) } else { Ok(()) }
}

fn reject_unevaluated<T>(signature: &Signature, e: &Expr) -> Result<T, Diagnostic> {
    let text = format!(
        "the value `{}` does not evaluate to data, so its constants are unknown",
        mu_data::print::expression(signature, e)
    );
    let error = Diagnostic::new(Stage::Unsupported, text);
    Err(match e.kind {
        ExprKind::Bind(..) => error.note(
            "write a function as a mapping with an equation, as `map f: S -> Bool; var x: S; eqn f(x) = false;`",
        ),
        _ => error,
    })
}

/// Extends rows by each number below `n`.
fn longer(rows: &[Vec<usize>], n: usize) -> Vec<Vec<usize>> {
    rows.iter().flat_map(|row| (0..n).map(move |i| [row.as_slice(), &[i]].concat())).collect()
}

/// Computes contents of arrays at summed constants: rows of at most `places` of `tuples` contents,
/// so that any `sums` contents (with repetitions) occur at different constants of one of the rows,
/// where constants beyond a row have content 0. A sum ranges over all constants, so one evaluation
/// covers all contents of its row. The algorithm is greedy.
pub fn covers(tuples: usize, sums: usize, places: usize) -> Vec<Vec<usize>> {
    let wanted = (0..sums).fold(vec![Vec::new()], |rows, _| longer(&rows, tuples));
    let wanted: Vec<Vec<usize>> = wanted.into_iter().filter(|row| row.is_sorted()).collect();
    let copies = |row: &[usize], of: usize| row.iter().filter(|i| **i == of).count();
    let mut open: Vec<&Vec<usize>> = wanted.iter().collect();
    let mut rows = Vec::new();
    while let Some(first) = open.first() {
        let mut row = (*first).clone();
        open.retain(|next| {
            let lacking: Vec<usize> = (0..tuples)
                .flat_map(|i| vec![i; copies(next, i).saturating_sub(copies(&row, i))])
                .collect();
            let fits = row.len() + lacking.len() <= places;
            if fits {
                row.extend(lacking);
            }
            !fits
        });
        rows.push(row);
    }
    rows
}

/// Computes all partitions of `n` things, each thing with the number of its class; classes are
/// numbered in order of occurrence.
fn partitions(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |p: &Vec<usize>| {
            let next = p.iter().max().map_or(0, |c| c + 1);
            (0..=next).map(|c| [p.as_slice(), &[c]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

impl Worker for Evaluator<'_> {
    fn steps(&mut self, group: usize, reads: &[u32], out: &mut Steps) -> Result<(), Diagnostic> {
        let model = self.model;
        let (mut merged, mut arrays) = (0, Vec::new());
        for (&slot, &value) in model.groups[group].reads.iter().zip(reads) {
            merged +=
                self.occurrences(slot, value)?.iter().filter(|i| **i >= model.tracked).count();
            arrays.extend(model.family.arrays[slot as usize]);
        }
        let (first, last) = (model.tracked, model.family.constants.len() - 1);
        let mut all = BTreeSet::new();
        for choice in self.choices(group, merged, &arrays)? {
            let found = self.at(group, reads, &choice, &|class| first + class)?;
            if choice.count > 0 && found != self.at(group, reads, &choice, &|class| last - class)? {
                let text = format!(
                    "constants of `{}` that the analysis considers equivalent give different answers in a step `{}`",
                    model.family.name, model.groups[group].name
                );
                return Err(Diagnostic::new(Stage::Unsupported, text));
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
        self.inner.worker.image(self.model.of[symmetry], slot, value)
    }
    fn image_label(
        &mut self,
        symmetry: usize,
        label: LabelId,
    ) -> Result<Option<LabelId>, Diagnostic> {
        self.inner.worker.image_label(self.model.of[symmetry], label)
    }
}
