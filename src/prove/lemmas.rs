//! Template invariants: comparisons of numbers of one or two processes at places. A largest
//! inductive subset of the candidates is computed ("Houdini, an annotation assistant for ESC/Java",
//! Flanagan and Leino, 2001). They are for systems with a proof that needs comparisons that no
//! pre-image of an unsafe cube mentions, for example that two tickets differ.
//!
//! Candidates are cubes of two parts. The first is the place of each process: one place, any other
//! place, or any place, where places are the values of the largest enumeration that each process
//! has a value of. The second is one comparison of two numbers: plain, in memory now, or in the
//! view of a process at its first stage. Candidates that contain an initial state or a known state
//! of an instance are dropped. Then each candidate with a pre-image outside the others and the
//! unsafe cubes is removed, up to the fixed point. The remaining candidates are inductive relative
//! to safety: runs without unsafe states do not enter them. A search treats them as covered, and
//! they are part of the certificate, which the verifier checks as usual.
//!
//! Cost: candidates times rules times bindings, up to a limit on the work, in the units of a
//! search.

use crate::atom::{Atom, Cell, Linear, Literal, Signature, Sort};
use crate::cube::Cube;
use crate::image::{Binding, for_each_binding, pre_image};
use crate::initial::{assumptions, claims, initial};
use crate::oracle::Instances;
use crate::rules::Rules;
use crate::search::{MAX_OPEN, STEPS_OF_WORK};
use crate::simplex::Relation;
use crate::subsume::{Index, Pattern, Target};
use mu_base::limits::Budget;
use std::ops::ControlFlow;

/// Limits on the terms and on the candidates; beyond them no template is used.
const MAX_TERMS: usize = 10;
const MAX_CANDIDATES: usize = 6000;

/// Returns the numbers that two processes compare: cells without an index, and cells of each of the
/// two.
fn terms(signature: &Signature) -> Vec<Cell> {
    let (p, q) = (signature.fixed as u8, signature.fixed as u8 + 1);
    let mut found = Vec::new();
    for symbol in 0..signature.sorts.len() {
        let cells = match signature.arity[symbol] {
            _ if !signature.sorts[symbol].is_numeric() => continue,
            0 => vec![Cell::new(symbol, &[])],
            1 => vec![Cell::new(symbol, &[p]), Cell::new(symbol, &[q])],
            _ => continue,
        };
        for c in cells {
            found.push(c);
            if signature.weak[symbol] {
                found.extend([p, q].map(|by| c.seen(Some((by, 0)))));
            }
        }
    }
    found
}

/// Returns the possible places of a process: any, one place, any other place.
fn places(signature: &Signature, process: u8) -> Vec<Option<Atom>> {
    let own = |s: &usize| signature.arity[*s] == 1 && !signature.weak[*s];
    let size = |s: &usize| if let Sort::Finite(n) = signature.sorts[*s] { n } else { 0 };
    let Some(symbol) =
        (0..signature.sorts.len()).filter(own).max_by_key(|s| (size(s), std::cmp::Reverse(*s)))
    else {
        return vec![None];
    };
    let (count, cell) = (size(&symbol), Cell::new(symbol, &[process]));
    let all = signature.all(signature.sorts[symbol], 0);
    let mut found = vec![None];
    if count > 1 {
        found.extend((0..count).map(|k| Some(Atom::In(cell, 1 << k))));
    }
    if count > 2 {
        found.extend((0..count).map(|k| Some(Atom::In(cell, all & !(1 << k)))));
    }
    found
}

/// Returns the candidates: distinct cubes, each with one comparison.
fn candidates(signature: &Signature) -> Vec<Cube> {
    let terms = terms(signature);
    let (p, q) = (signature.fixed as u8, signature.fixed as u8 + 1);
    let processes = signature.fixed + 2;
    if terms.len() < 2 || terms.len() > MAX_TERMS || signature.most.is_some_and(|m| m < processes) {
        return Vec::new();
    }
    let mut found: Vec<Cube> = Vec::new();
    let mut distinct = std::collections::HashSet::new();
    for (i, a) in terms.iter().enumerate() {
        for b in &terms[i + 1..] {
            if signature.sort(*a) != signature.sort(*b) {
                continue;
            }
            let integer = signature.sort(*a) == Sort::Integer;
            for (sign, relation) in [
                (1, Relation::Le),
                (-1, Relation::Le),
                (1, Relation::Lt),
                (-1, Relation::Lt),
                (1, Relation::Eq),
            ] {
                let Ok(Literal::Atom(comparison)) =
                    Linear::new(vec![(*a, sign), (*b, -sign)], 0, relation, integer)
                else {
                    continue;
                };
                for here in places(signature, p) {
                    for there in places(signature, q) {
                        let atoms = [Some(comparison.clone()), here.clone(), there]
                            .into_iter()
                            .flatten()
                            .collect();
                        let Some(cube) = Cube::new(signature, processes, atoms) else { continue };
                        if found.len() < MAX_CANDIDATES && distinct.insert(cube.clone()) {
                            found.push(cube);
                        }
                    }
                }
            }
        }
    }
    found
}

/// The pre-images of a candidate, each with the cube that covers it, if known.
type Images = Vec<(Cube, Option<usize>)>;

struct Houdini<'a> {
    rules: &'a Rules,
    index: Index,
    /// The index of the first candidate.
    first: usize,
    work: u64,
}

impl Houdini<'_> {
    fn spend(&mut self, work: u64) -> Option<()> {
        let enough = work <= self.work;
        self.work = self.work.saturating_sub(work);
        enough.then_some(())
    }
    /// Returns the pre-images of a candidate that are not subsets of it; `None` if one is not
    /// representable or the work limit is reached.
    fn images(&mut self, cube: &Cube) -> Option<Images> {
        let (mut found, rules) = (Vec::new(), self.rules);
        for rule in &rules.rules {
            let mut step = |binding: &Binding, processes: usize| {
                let mut images = Vec::new();
                let image = pre_image(rules, cube, rule, binding, processes, &mut images);
                if image.is_err() || self.spend(1).is_none() {
                    return ControlFlow::Break(());
                }
                found.extend(images.into_iter().map(|(cube, _)| (cube, None)));
                ControlFlow::Continue(())
            };
            let most = rules.signature.most;
            let all = for_each_binding(rule.params, cube.processes, most, &mut step).ok()?;
            if all.is_break() {
                return None;
            }
        }
        Some(found)
    }
    /// Returns whether remaining cubes cover a pre-image, storing a single covering cube; `None` if
    /// the work limit is reached.
    fn is_covered(&mut self, image: &mut (Cube, Option<usize>)) -> Option<bool> {
        if image.1.is_some_and(|i| self.index.pattern(i).is_some()) {
            return Some(true);
        }
        let signature = &self.rules.signature;
        let mut target = Target::new(signature, &image.0);
        image.1 = self.index.cover(&mut target, None);
        let covered = image.1.is_some() || self.index.covered(&mut target, None, MAX_OPEN);
        let spent = target.spent / STEPS_OF_WORK;
        self.spend(spent)?;
        Some(covered)
    }
    /// Removes candidates up to the fixed point; `None` if the work limit is reached.
    fn run(&mut self, candidates: &[Cube], budget: &Budget) -> Option<()> {
        let mut known: Vec<Option<Images>> = vec![None; candidates.len()];
        loop {
            let mut changed = false;
            for (i, cube) in candidates.iter().enumerate() {
                if self.index.pattern(self.first + i).is_none() {
                    continue;
                }
                budget.check(0).ok()?;
                let mut images = match known[i].take() {
                    Some(images) => images,
                    None => self.images(cube)?,
                };
                let mut confirmed = true;
                for image in &mut images {
                    if !self.is_covered(image)? {
                        confirmed = false;
                        break;
                    }
                }
                if !confirmed {
                    self.index.remove(self.first + i);
                    changed = true;
                }
                known[i] = Some(images);
            }
            if !changed {
                return Some(());
            }
        }
    }
}

/// Returns cubes that runs never enter before an unsafe state, without subsumed ones; empty if the
/// work limit is reached. Subtracts from `work`.
pub fn lemmas(
    rules: &Rules,
    oracle: &mut Instances<'_>,
    budget: &Budget,
    work: &mut u64,
) -> Vec<Cube> {
    let signature = &rules.signature;
    let (Ok(unsafe_cubes), Ok(assumed)) = (claims(rules, &rules.unsafes), assumptions(rules))
    else {
        return Vec::new();
    };
    let mut found: Vec<Cube> = Vec::new();
    for cube in candidates(signature) {
        if budget.check(0).is_err() {
            return Vec::new();
        }
        if matches!(initial(rules, &cube), Ok(None)) && oracle.is_plausible(&cube) {
            found.push(cube);
        }
    }
    let mut houdini = Houdini { rules, index: Index::default(), first: 0, work: *work };
    for cube in assumed.iter().chain(&unsafe_cubes) {
        houdini.first = houdini.index.push(Pattern::new(signature, cube.clone())) + 1;
    }
    for cube in &found {
        houdini.index.push(Pattern::new(signature, cube.clone()));
    }
    houdini.index.settle();
    let done = houdini.run(&found, budget);
    *work = houdini.work;
    if done.is_none() {
        return Vec::new();
    }
    let Houdini { mut index, first, .. } = houdini;
    for (i, cube) in found.iter().enumerate() {
        if index.pattern(first + i).is_some()
            && index.cover(&mut Target::new(signature, cube), Some(first + i)).is_some()
        {
            index.remove(first + i);
        }
    }
    index.patterns().filter(|(i, _)| *i >= first).map(|(_, p)| p.cube.clone()).collect()
}
