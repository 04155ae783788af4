//! Dynamic check of the symmetries of scalarsets: execution of suspects in every order.
//!
//! In: the suspects of the static analysis (`equivariance`), and states. A rule that runs
//! in the image of a state under a permutation, with the images of its parameters, visits the
//! elements of a scalarset in another order. If the results are the images of the results for every
//! permutation, no order matters in any state of the orbit. So the check of the representatives
//! that a search stores is a proof, and a difference is an [`Asymmetry`], with which the search
//! starts again without that scalarset.
//!
//! The check runs the code of the model on images; it knows nothing of loops. If the only suspects
//! of a property are quantifiers, its *strict form*, which evaluates all elements, runs first: if
//! it does not fail, all orders have one result. Cost: one run of each selected suspect for each
//! permutation of its scalarsets, of which there may be at most `MAX_PERMUTATIONS`.

use crate::accesses::{Construct, bit, scalarsets};
use crate::code::{Instance, Program};
use crate::equivariance::{Suspect, names, suspects};
use crate::normal::Normal;
use crate::path::{property_name, rule_name, start_name};
use crate::run::{Ended, Interpreter};
use crate::run_cache::RunCache;
use crate::typed::{Binding, Claim, Frame, Model, TypeKind};
use crate::variables::variables;
use ahash::AHashMap;
use mu_base::Span;

/// Limit on the permutations under which a part of the model runs in each state; with more of them
/// the scalarset is no symmetry.
const MAX_PERMUTATIONS: usize = 720;

/// Scalarsets that are no symmetry of a model, or of its liveness properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asymmetry {
    /// Names of the scalarsets.
    pub types: Vec<String>,
    /// Places of the loops and quantifiers that may cause it; a deviation is in one of them. Or the
    /// liveness property.
    pub places: Vec<Span>,
    /// Sentence about the construct: that it depends on the order, with two results of one step; or
    /// about the liveness property.
    pub reason: String,
    /// Mask of the scalarsets.
    pub(crate) sets: u64,
}

/// For each instance of a rule: the states of a block in which it is selected, ascending, each with
/// the code that decides the guard.
pub(crate) type RuleSelection = [Vec<(u32, Option<u32>)>];

/// Kind of the parts of the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Rule,
    Start,
    Property,
}

/// Instances that differ only in the elements that `choose` binds.
#[derive(Clone, Debug)]
struct InstanceClass {
    kind: Kind,
    /// Index of the part in the typed model.
    number: u32,
    /// Values of the parameters, with marks of those that are elements.
    parameters: Vec<(i64, bool)>,
    instances: Vec<u32>,
    /// Index of the permutations in `OrderCheck::permutations`.
    permutations: usize,
}

/// Permutations of some scalarsets.
#[derive(Clone, Debug)]
struct Permutations {
    sets: u64,
    /// The permutations: the image of each element, and the scalarsets that change.
    all: Vec<(Vec<u32>, u64)>,
    /// For each permutation and class: the image of the class, if it has instances.
    images: Vec<Vec<Option<u32>>>,
}

/// Result of a run in one state.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    /// The property is false.
    False,
    /// The rule leads to this state.
    State(Vec<u64>),
    Discarded,
    /// The guard of the rule is true.
    Enabled,
    /// An instruction fails; the first failure depends on the order even if all orders fail.
    Fault,
}

/// Check of the symmetries in the states of one search; see the module header.
pub(crate) struct OrderCheck<'p> {
    model: &'p Model,
    program: &'p Program,
    suspects: crate::equivariance::Suspects,
    interpreter: Interpreter<'p>,
    /// Cached runs of the strict forms of properties.
    run_cache: RunCache,
    normal: Normal,
    classes: Vec<InstanceClass>,
    /// Suspect instances of rules, with their classes.
    rule_classes: Vec<(u32, u32)>,
    /// Groups of start states and of properties.
    starts: Vec<u32>,
    properties: Vec<u32>,
    permutations: Vec<Permutations>,
    /// True while rules are checked that a rule of higher priority hides: their guards only.
    hidden: bool,
}

impl<'p> OrderCheck<'p> {
    /// Prepares the check. `None` if no part of the model is suspect.
    ///
    /// # Errors
    /// Scalarsets with too many permutations to check.
    pub(crate) fn new(
        model: &'p Model,
        program: &'p Program,
        normal: &Normal,
        poll: impl FnMut() -> bool + 'p,
    ) -> Result<Option<Self>, Asymmetry> {
        if normal.order() <= 1 {
            return Ok(None);
        }
        let mut check = OrderCheck {
            model,
            program,
            suspects: suspects(model, program),
            interpreter: Interpreter::new(program, model.claims.len(), poll),
            run_cache: RunCache::new(program.layout.words, program.properties.len()),
            normal: normal.clone(),
            classes: Vec::new(),
            rule_classes: Vec::new(),
            starts: Vec::new(),
            properties: Vec::new(),
            permutations: Vec::new(),
            hidden: false,
        };
        let rules = check.add_classes(Kind::Rule, &program.rules)?;
        for (class, instances) in rules {
            check.rule_classes.extend(instances.into_iter().map(|at| (at, class)));
        }
        let starts = check.add_classes(Kind::Start, &program.starts)?;
        check.starts = starts.into_iter().map(|g| g.0).collect();
        let properties = check.add_classes(Kind::Property, &program.properties)?;
        check.properties = properties.into_iter().map(|g| g.0).collect();
        if check.classes.is_empty() {
            return Ok(None);
        }
        check.find_images();
        Ok(Some(check))
    }
    fn suspects_of(&self, kind: Kind, number: u32) -> &[Suspect] {
        let all = match kind {
            Kind::Rule => &self.suspects.rules,
            Kind::Start => &self.suspects.starts,
            Kind::Property => &self.suspects.properties,
        };
        all.get(number as usize).map_or(&[], |s| &s[..])
    }
    /// Adds the classes of suspect instances.
    fn add_classes(
        &mut self,
        kind: Kind,
        all: &[Instance],
    ) -> Result<Vec<(u32, Vec<u32>)>, Asymmetry> {
        let first = self.classes.len();
        let in_use = self.in_use();
        for (at, instance) in all.iter().enumerate() {
            let suspects = self.suspects_of(kind, instance.number);
            let sets = suspects.iter().fold(0, |n, s| n | s.sets) & in_use;
            if sets == 0 {
                continue;
            }
            let id = match self.permutations.iter().position(|p| p.sets == sets) {
                Some(id) => id,
                None => {
                    let all = self
                        .permutations_of(sets)
                        .ok_or_else(|| self.too_many(kind, instance.number, sets))?;
                    self.permutations.push(Permutations { sets, all, images: Vec::new() });
                    self.permutations.len() - 1
                }
            };
            let parameters = self.parameters(kind, instance);
            let classes = &mut self.classes[first..];
            let same =
                |c: &&mut InstanceClass| c.number == instance.number && c.parameters == parameters;
            match classes.iter_mut().rev().find(same) {
                Some(class) => class.instances.push(at as u32),
                None => self.classes.push(InstanceClass {
                    kind,
                    number: instance.number,
                    parameters,
                    instances: vec![at as u32],
                    permutations: id,
                }),
            }
        }
        let added = self.classes.iter().enumerate().skip(first);
        Ok(added.map(|(n, c)| (n as u32, c.instances.clone())).collect())
    }
    /// Returns the mask of the scalarsets that the search uses.
    fn in_use(&self) -> u64 {
        let all = scalarsets(self.model);
        let uses = |ty: &crate::typed::TypeId| {
            let low = self.program.layout.simple(*ty).map(|s| s.low);
            low.is_some_and(|low| self.normal.element_of(low).is_some())
        };
        all.iter().enumerate().filter(|(_, ty)| uses(ty)).fold(0, |n, (at, _)| n | bit(at))
    }
    /// Returns the values of the parameters without those of `choose`.
    fn parameters(&self, kind: Kind, instance: &Instance) -> Vec<(i64, bool)> {
        let number = instance.number as usize;
        let (frame, bindings): (&Frame, &[Binding]) = match kind {
            Kind::Rule => (&self.model.rules[number].frame, &self.model.rules[number].bindings),
            Kind::Start => (&self.model.starts[number].frame, &self.model.starts[number].bindings),
            Kind::Property => {
                (&self.model.properties[number].frame, &self.model.properties[number].bindings)
            }
        };
        let chosen = |local| {
            let binds_local =
                |b: &Binding| matches!(b, Binding::Choose { local: l, .. } if *l == local);
            bindings.iter().any(binds_local)
        };
        let given = instance.parameters.iter().filter(|(local, _)| !chosen(*local));
        given
            .map(|(local, value)| {
                let kind = self.model.types.kind(frame.get(*local).ty);
                let is_element =
                    matches!(kind, TypeKind::Scalarset { .. } | TypeKind::Union { .. });
                (*value, is_element)
            })
            .collect()
    }
    /// Returns all permutations of some scalarsets except the identity, those of few scalarsets
    /// first; `None` if there are too many.
    fn permutations_of(&self, sets: u64) -> Option<Vec<(Vec<u32>, u64)>> {
        let ranges = self.normal.sets();
        let count: u32 = ranges.iter().map(|r| r.2).sum();
        let mut all: Vec<(Vec<u32>, u64)> = vec![((0..count).collect(), 0)];
        for (n, ty) in scalarsets(self.model).iter().enumerate() {
            let low = self.program.layout.simple(*ty)?.low;
            let Some((_, base, size)) = ranges.iter().find(|r| r.0 == low) else { continue };
            if sets & bit(n) == 0 {
                continue;
            }
            // The elements in place `at` or later are free.
            for at in 0..*size {
                let mut next = Vec::new();
                for (permutation, moved) in &all {
                    for other in at..*size {
                        let mut permutation = permutation.clone();
                        permutation.swap((base + at) as usize, (base + other) as usize);
                        let moved = if other == at { *moved } else { moved | bit(n) };
                        next.push((permutation, moved));
                    }
                }
                all = next;
                if all.len() > MAX_PERMUTATIONS {
                    return None;
                }
            }
        }
        all.retain(|(_, moved)| *moved != 0);
        all.sort_by_key(|(_, moved)| moved.count_ones());
        Some(all)
    }
    /// Computes the image of each class under each permutation.
    fn find_images(&mut self) {
        let mut places: AHashMap<(u8, u32, &[(i64, bool)]), u32> = AHashMap::default();
        for (n, class) in self.classes.iter().enumerate() {
            places.insert((class.kind as u8, class.number, &class.parameters), n as u32);
        }
        let mut found = Vec::new();
        for permutations in &self.permutations {
            let image = |permutation: &[u32], class: &InstanceClass| {
                let parameters: Vec<(i64, bool)> = class
                    .parameters
                    .iter()
                    .map(|(value, is_element)| match is_element {
                        true => (self.normal.image_of(*value, permutation), true),
                        false => (*value, false),
                    })
                    .collect();
                places.get(&(class.kind as u8, class.number, &parameters[..])).copied()
            };
            let images_under = |(permutation, _): &(Vec<u32>, u64)| {
                self.classes.iter().map(|c| image(permutation, c)).collect::<Vec<_>>()
            };
            found.push(permutations.all.iter().map(images_under).collect::<Vec<_>>());
        }
        for (permutations, images) in self.permutations.iter_mut().zip(found) {
            permutations.images = images;
        }
    }

    // ---- checks ------------------------------------------------------------------------------

    /// Checks the properties and the selected rules in a block of states. `unhidden`: the part of
    /// `selected` in which no enabled rule has a higher priority (a lower number). If the
    /// interpreter stops at a limit, the rest of the block counts as checked, because the search
    /// ends as well.
    pub(crate) fn check_block(
        &mut self,
        block: &[u64],
        words: usize,
        (selected, unhidden): (&RuleSelection, &RuleSelection),
    ) -> Result<(), Asymmetry> {
        let (mut classes, mut hidden) = (Vec::new(), Vec::new());
        for (at, state) in block.chunks_exact(words).enumerate() {
            let selects = |all: &RuleSelection, rule: u32| {
                all[rule as usize].binary_search_by_key(&(at as u32), |s| s.0).is_ok()
            };
            classes.clear();
            hidden.clear();
            for (rule, class) in &self.rule_classes {
                if selects(unhidden, *rule) {
                    classes.push(*class);
                } else if selects(selected, *rule) {
                    hidden.push(*class);
                }
            }
            for list in [&mut classes, &mut hidden] {
                list.sort_unstable();
                list.dedup();
            }
            hidden.retain(|class| classes.binary_search(class).is_err());
            self.hidden = true;
            let checked = self.check_classes(state, &hidden);
            self.hidden = false;
            checked?;
            self.add_properties(state, &mut classes);
            self.check_classes(state, &classes)?;
        }
        Ok(())
    }
    /// Checks the properties in a state that one of them discards: in another order it may not.
    pub(crate) fn check_discarded(&mut self, state: &[u64]) -> Result<(), Asymmetry> {
        let mut classes = Vec::new();
        self.add_properties(state, &mut classes);
        self.check_classes(state, &classes)
    }
    /// Adds the classes of properties with results that may depend on an order.
    fn add_properties(&mut self, state: &[u64], classes: &mut Vec<u32>) {
        for n in 0..self.properties.len() {
            let class = self.properties[n];
            if !self.has_order_independent_result(class, state) {
                classes.push(class);
            }
        }
    }
    /// True if the strict forms of a class's properties do not fail: all orders have one result
    /// then.
    fn has_order_independent_result(&mut self, class: u32, state: &[u64]) -> bool {
        let class = &self.classes[class as usize];
        let suspects = self.suspects_of(class.kind, class.number);
        suspects.iter().all(|s| s.construct == Construct::Quantifier)
            && class.instances.iter().all(|at| {
                let Some(strict) = self.program.properties[*at as usize].strict else {
                    return false;
                };
                self.interpreter.memory[..state.len()].copy_from_slice(state);
                let (code, root) = ((Some(strict), None), (*at as usize, 0));
                let end = self.run_cache.run(&mut self.interpreter, root, code, state).1;
                matches!(end, Ended::Yes | Ended::No)
            })
    }
    /// Checks the start states.
    pub(crate) fn check_starts(&mut self) -> Result<(), Asymmetry> {
        let classes = self.starts.clone();
        self.check_classes(&vec![0; self.program.layout.words], &classes)
    }
    /// Returns the places of the suspects, in the order of the text.
    pub(crate) fn places(&self) -> Vec<Span> {
        let all = [&self.suspects.rules, &self.suspects.starts, &self.suspects.properties];
        let in_use = self.in_use();
        let suspects = all.into_iter().flatten().flatten().filter(|s| s.sets & in_use != 0);
        let mut places: Vec<Span> = suspects.map(|s| s.span).collect();
        places.sort_by_key(|s| (s.start, s.end));
        places.dedup();
        places
    }
    /// Returns the claims `cover` that a run of this check fulfilled, by number.
    pub(crate) fn covered_claims(&self) -> &[bool] {
        &self.interpreter.covered
    }
    /// Compares the outcomes of the classes in a state with their outcomes in each image of it.
    fn check_classes(&mut self, state: &[u64], classes: &[u32]) -> Result<(), Asymmetry> {
        for id in 0..self.permutations.len() {
            let uses_set = |c: &&u32| self.classes[**c as usize].permutations == id;
            let classes: Vec<u32> = classes.iter().filter(uses_set).copied().collect();
            if classes.is_empty() {
                continue;
            }
            let mut results = Vec::new();
            for class in &classes {
                let Some(found) = self.outcomes(Some(*class), state) else { return Ok(()) };
                results.push(found);
            }
            for n in 0..self.permutations[id].all.len() {
                let permutation = &self.permutations[id].all[n].0;
                let image = self.normal.permute(state, permutation).to_vec();
                for (class, found) in classes.iter().zip(&results) {
                    let mut expected = found.clone();
                    for outcome in &mut expected {
                        if let Outcome::State(to) = outcome {
                            let permutation = &self.permutations[id].all[n].0;
                            *to = self.normal.permute(to, permutation).to_vec();
                        }
                    }
                    expected.sort_unstable();
                    let other = self.permutations[id].images[n][*class as usize];
                    let Some(found) = self.outcomes(other, &image) else { return Ok(()) };
                    if found != expected {
                        return Err(self.difference(*class, id, n, (&expected, &found)));
                    }
                }
            }
        }
        Ok(())
    }
    /// Returns the outcomes of the instances of a class, sorted; `None` if the interpreter stops.
    fn outcomes(&mut self, class: Option<u32>, state: &[u64]) -> Option<Vec<Outcome>> {
        let Some(class) = class else { return Some(Vec::new()) };
        let (words, program) = (state.len(), self.program);
        let class = &self.classes[class as usize];
        let mut found = Vec::new();
        for at in &class.instances {
            self.interpreter.memory[..words].copy_from_slice(state);
            let instance = match class.kind {
                Kind::Rule => &program.rules[*at as usize],
                Kind::Start => &program.starts[*at as usize],
                Kind::Property => &program.properties[*at as usize],
            };
            let enabled = match class.kind {
                Kind::Start => Ended::Yes,
                _ => self.interpreter.run(instance.guard),
            };
            found.push(match (enabled, class.kind) {
                (Ended::Yes, Kind::Property) => continue,
                (Ended::No, Kind::Property) => Outcome::False,
                // Of invariants it discards the state; other properties count as false.
                (Ended::Discarded, Kind::Property) => {
                    match self.model.properties[class.number as usize].claim {
                        Claim::Assert => Outcome::Discarded,
                        _ => Outcome::False,
                    }
                }
                (Ended::Yes, _) if self.hidden => Outcome::Enabled,
                (Ended::Yes, _) => match self.interpreter.run(instance.body) {
                    Ended::Done => {
                        self.normal.sort(&mut self.interpreter.memory);
                        Outcome::State(self.interpreter.memory[..words].to_vec())
                    }
                    Ended::Discarded => Outcome::Discarded,
                    Ended::Stopped => return None,
                    _ => Outcome::Fault,
                },
                (Ended::Fault(_), _) => Outcome::Fault,
                (Ended::Stopped, _) => return None,
                _ => continue,
            });
        }
        found.sort_unstable();
        Some(found)
    }

    // ---- messages ----------------------------------------------------------------------------

    fn too_many(&self, kind: Kind, number: u32, sets: u64) -> Asymmetry {
        let suspects = self.suspects_of(kind, number);
        let reason = format!(
            "{} may depend on the order of its elements, and there are more than {MAX_PERMUTATIONS} orders",
            constructs(suspects)
        );
        self.asymmetry(suspects, sets, reason)
    }
    fn asymmetry(&self, suspects: &[Suspect], sets: u64, reason: String) -> Asymmetry {
        let places = suspects.iter().filter(|s| s.sets & sets != 0).map(|s| s.span).collect();
        Asymmetry { types: names(self.model, sets), places, reason, sets }
    }
    fn difference(
        &self,
        class: u32,
        id: usize,
        permutation: usize,
        (expected, found): (&[Outcome], &[Outcome]),
    ) -> Asymmetry {
        let class = &self.classes[class as usize];
        let at = class.instances[0];
        let name = match class.kind {
            Kind::Rule => rule_name(self.model, self.program, at),
            Kind::Start => start_name(self.model, self.program, at),
            Kind::Property => property_name(self.model, self.program, at),
        };
        let a = expected.iter().find(|o| !found.contains(o));
        let b = found.iter().find(|o| !expected.contains(o));
        let suspects = self.suspects_of(class.kind, class.number);
        let (a, b) = self.texts(a.or(expected.first()), b.or(found.first()));
        let sets = self.permutations[id].all[permutation].1;
        let reason = format!(
            "{} depends on the order of the elements: in one order {name} {a}, in another it {b}",
            constructs(suspects)
        );
        self.asymmetry(suspects, sets, reason)
    }
    /// Describes two outcomes by their first difference.
    fn texts(&self, a: Option<&Outcome>, b: Option<&Outcome>) -> (String, String) {
        let (model, layout) = (self.model, &self.program.layout);
        if let (Some(Outcome::State(a)), Some(Outcome::State(b))) = (a, b) {
            for variable in variables(model, layout) {
                let (x, y) = (variable.text(model, layout, a), variable.text(model, layout, b));
                if x != y {
                    return (
                        format!("leads to `{} = {x}`", variable.name),
                        format!("leads to `{} = {y}`", variable.name),
                    );
                }
            }
        }
        let text = |outcome: Option<&Outcome>| {
            match outcome {
                None => "has no step",
                Some(Outcome::False) => "is false",
                Some(Outcome::State(_)) => "has a step",
                Some(Outcome::Discarded) => "is discarded",
                Some(Outcome::Enabled) => "is enabled",
                Some(Outcome::Fault) => "fails",
            }
            .to_string()
        };
        (text(a), text(b))
    }
}

/// Names the constructs of some suspects.
fn constructs(suspects: &[Suspect]) -> &'static str {
    match suspects.first().map(|s| s.construct) {
        Some(Construct::Quantifier) => "a quantifier",
        Some(Construct::Predicate) => "a predicate on a multiset",
        Some(Construct::Comparison) => "a comparison of multisets",
        _ => "a loop",
    }
}
