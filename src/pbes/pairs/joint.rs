//! Local states of components, and the groups of a model as steps of the components that take part.
//!
//! In: a model. Out: for each group its parts, the components with slots that it reads or writes;
//! for local states of these, the labels and the local states after its steps. The *view* of a
//! local state is the part of it that a group reads; a group is evaluated once for the views of its
//! parts. Cost: an evaluation for each combination of views.

use super::relations::Bits;
use ahash::AHashMap;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, narrow};
use mu_model::{Model, Slot, Steps, Worker};
use std::rc::Rc;

/// Limit on components: changes towards components are a mask of bits.
const MAX_COMPONENTS: usize = 64;

/// The view of a local state with another value in a required slot.
const DISABLED: u32 = u32::MAX;

/// Local states of one component.
struct Component {
    slots: Vec<Slot>,
    known: AHashMap<Box<[u32]>, u32>,
    all: Vec<Box<[u32]>>,
    /// The groups of which it is a part: group, number of the part.
    uses: Vec<(usize, usize)>,
}

/// A component as part of a group.
pub(super) struct Part {
    pub component: usize,
    /// Required values by place in the local state.
    requires: Vec<(usize, u32)>,
    /// Places in the local state and in the values that the group reads.
    reads: Vec<(usize, usize)>,
    /// Places in the local state and in the values that the group writes.
    writes: Vec<(usize, usize)>,
    /// By local state its view.
    view: Vec<u32>,
    known: AHashMap<Box<[u32]>, u32>,
    views: Vec<Box<[u32]>>,
    /// Local states with the required values.
    pub enabled: Bits,
    written: AHashMap<Box<[u32]>, u32>,
    all_written: Vec<Box<[u32]>>,
    /// By local state and written values the local state afterwards.
    after: AHashMap<(u32, u32), u32>,
}

/// A step of a group: its label, and for each part the values that it writes, by number.
type Answer = (LabelId, Box<[u32]>);

/// A group.
pub(super) struct Joint {
    pub parts: Vec<Part>,
    width: usize,
    /// By the views of the parts.
    answers: AHashMap<Box<[u32]>, Rc<[Answer]>>,
}

/// The components and groups of a model.
pub(super) struct Joints<'m> {
    worker: Box<dyn Worker + 'm>,
    components: Vec<Component>,
    pub groups: Vec<Joint>,
}

impl<'m> Joints<'m> {
    /// Divides a model; `None` if it has one component, or too many.
    pub fn new(model: &'m dyn Model) -> Option<Self> {
        let slots = model.slots();
        let mut used = vec![false; slots.len()];
        for group in model.groups() {
            let required = group.requires.iter().map(|r| &r.0);
            for slot in group.reads.iter().chain(&group.writes).chain(required) {
                used[*slot as usize] = true;
            }
        }
        let mut numbers: AHashMap<u32, usize> = AHashMap::new();
        let mut components: Vec<Component> = Vec::new();
        let mut place = vec![None; slots.len()];
        for (at, slot) in slots.iter().enumerate().filter(|(at, _)| used[*at]) {
            let component = *numbers.entry(slot.component).or_insert(components.len());
            if component == components.len() {
                components.push(Component {
                    slots: Vec::new(),
                    known: AHashMap::new(),
                    all: Vec::new(),
                    uses: Vec::new(),
                });
            }
            place[at] = Some((component, components[component].slots.len()));
            components[component].slots.push(narrow::index(at));
        }
        if components.len() < 2 || components.len() > MAX_COMPONENTS {
            return None;
        }
        let mut groups = Vec::new();
        for (g, group) in model.groups().iter().enumerate() {
            let mut parts: Vec<Part> = Vec::new();
            let mut part = |slot: Slot| {
                let (component, at) = place[slot as usize].unwrap_or_default();
                let own = parts.iter().position(|p| p.component == component);
                let own = own.unwrap_or_else(|| {
                    parts.push(Part::new(component));
                    parts.len() - 1
                });
                (own, at)
            };
            let required: Vec<_> = group.requires.iter().map(|r| (part(r.0), r.1)).collect();
            let reads: Vec<_> = group.reads.iter().map(|slot| part(*slot)).collect();
            let writes: Vec<_> = group.writes.iter().map(|slot| part(*slot)).collect();
            for ((own, at), value) in required {
                parts[own].requires.push((at, value));
            }
            for (i, (own, at)) in reads.into_iter().enumerate() {
                parts[own].reads.push((at, i));
            }
            for (i, (own, at)) in writes.into_iter().enumerate() {
                parts[own].writes.push((at, i));
            }
            for (i, own) in parts.iter().enumerate() {
                components[own.component].uses.push((g, i));
            }
            let width = group.writes.len();
            groups.push(Joint { parts, width, answers: AHashMap::new() });
        }
        Some(Self { worker: model.worker(), components, groups })
    }

    pub fn component_count(&self) -> usize {
        self.components.len()
    }

    /// Returns the number of local states of all components.
    pub fn local_count(&self) -> usize {
        self.components.iter().map(|c| c.all.len()).sum()
    }

    /// Returns the groups of which a component is a part, with the number of the part.
    pub fn uses(&self, component: usize) -> &[(usize, usize)] {
        &self.components[component].uses
    }

    /// Returns the local states of a state, adding new ones.
    pub fn locals(&mut self, state: &[u32]) -> Vec<u32> {
        let of = |own: &Component| own.slots.iter().map(|s| state[*s as usize]).collect();
        let values: Vec<Box<[u32]>> = self.components.iter().map(of).collect();
        values.into_iter().enumerate().map(|(c, own)| self.local(c, own)).collect()
    }

    /// Returns the number of a local state, adding a new one.
    fn local(&mut self, component: usize, values: Box<[u32]>) -> u32 {
        let own = &mut self.components[component];
        if let Some(id) = own.known.get(&values) {
            return *id;
        }
        let id = narrow::index(own.all.len());
        for (g, i) in &own.uses {
            self.groups[*g].parts[*i].add(id, &values);
        }
        own.known.insert(values.clone(), id);
        own.all.push(values);
        id
    }

    /// Returns the steps of a group for local states of its parts, if they are evaluated.
    pub fn find_answers(&self, g: usize, chosen: &[u32]) -> Option<&Rc<[Answer]>> {
        let group = &self.groups[g];
        let mut key = [0u32; MAX_COMPONENTS];
        let views = group.parts.iter().zip(chosen).map(|(p, local)| p.view[*local as usize]);
        key.iter_mut().zip(views).for_each(|(k, view)| *k = view);
        group.answers.get(&key[..chosen.len()])
    }

    /// Returns the steps of a group for local states of its parts.
    pub fn answers(&mut self, g: usize, chosen: &[u32]) -> Result<Rc<[Answer]>, Diagnostic> {
        let group = &mut self.groups[g];
        let mut key = [0u32; MAX_COMPONENTS];
        let key = &mut key[..chosen.len()];
        for ((k, part), local) in key.iter_mut().zip(&group.parts).zip(chosen) {
            *k = part.view[*local as usize];
        }
        if let Some(known) = group.answers.get(&*key) {
            return Ok(known.clone());
        }
        let count = group.parts.iter().map(|p| p.reads.len()).sum();
        let mut reads = vec![0; count];
        for (part, view) in group.parts.iter().zip(&*key) {
            if *view == DISABLED {
                return Ok([].into());
            }
            for ((_, i), value) in part.reads.iter().zip(&part.views[*view as usize]) {
                reads[*i] = *value;
            }
        }
        let mut steps = Steps::default();
        self.worker.steps(g, &reads, &mut steps)?;
        let mut out: Vec<Answer> = Vec::with_capacity(steps.labels.len());
        for (i, label) in steps.labels.iter().enumerate() {
            let row = &steps.values[i * group.width..(i + 1) * group.width];
            let written = group.parts.iter_mut().map(|part| part.number(row)).collect();
            out.push((*label, written));
        }
        let out: Rc<[Answer]> = out.into();
        group.answers.insert((&*key).into(), out.clone());
        Ok(out)
    }

    /// Returns the local state of a part of a group after a step.
    pub fn after(&mut self, g: usize, part: usize, local: u32, written: u32) -> u32 {
        let own = &self.groups[g].parts[part];
        if own.writes.is_empty() {
            return local;
        }
        if let Some(known) = own.after.get(&(local, written)) {
            return *known;
        }
        let component = own.component;
        let mut values = self.components[component].all[local as usize].clone();
        for ((at, _), value) in own.writes.iter().zip(&own.all_written[written as usize]) {
            values[*at] = *value;
        }
        let id = self.local(component, values);
        self.groups[g].parts[part].after.insert((local, written), id);
        id
    }
}

impl Part {
    fn new(component: usize) -> Self {
        Self {
            component,
            requires: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            view: Vec::new(),
            known: AHashMap::new(),
            views: Vec::new(),
            enabled: Bits::default(),
            written: AHashMap::new(),
            all_written: Vec::new(),
            after: AHashMap::new(),
        }
    }

    /// Adds a local state.
    fn add(&mut self, id: u32, values: &[u32]) {
        if self.requires.iter().any(|(at, value)| values[*at] != *value) {
            self.view.push(DISABLED);
            return;
        }
        let view: Box<[u32]> = self.reads.iter().map(|(at, _)| values[*at]).collect();
        let new = narrow::index(self.views.len());
        let number = *self.known.entry(view.clone()).or_insert(new);
        if number == new {
            self.views.push(view);
        }
        self.view.push(number);
        self.enabled.insert(id);
    }

    /// Returns the number of the values that a step writes in this part.
    fn number(&mut self, row: &[u32]) -> u32 {
        let own: Box<[u32]> = self.writes.iter().map(|(_, i)| row[*i]).collect();
        let new = narrow::index(self.all_written.len());
        let number = *self.written.entry(own.clone()).or_insert(new);
        if number == new {
            self.all_written.push(own);
        }
        number
    }
}
