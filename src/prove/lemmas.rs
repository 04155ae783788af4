//! Invariants of templates: comparisons of numbers of one or two processes at places, of which as
//! many are kept as confirm each other ("Houdini, an annotation assistant for ESC/Java", Flanagan
//! and Leino, 2001). They are for systems whose proof needs comparisons that no pre-image of what
//! is unsafe mentions, such as that two tickets differ.
//!
//! Candidates are cubes: where each process is (at one place of the largest enumeration of which
//! each process has a value, not there, or anywhere) and one comparison of two numbers, plain, in
//! memory now, or as a process sees them at its first stage. Those that an initial state or a state
//! of an instance is in are left out. Then each whose pre-images are not in the others or in what
//! is unsafe is taken out, until none is. What is left is inductive: runs that have met nothing
//! unsafe do not enter it. A search counts it as covered, and it is part of the certificate, which
//! the verifier checks as ever.
//!
//! Cost: candidates times rules times bindings; ends at an amount of work, counted like that of a
//! search.

use crate::atom::{Atom, Cell, Linear, Literal, Signature, Sort};
use crate::cube::Cube;
use crate::image::{bindings, pre_image};
use crate::oracle::Instances;
use crate::rules::Rules;
use crate::search::{MOST_OPEN, STEPS_OF_WORK};
use crate::simplex::Relation;
use crate::start::{assumptions, claims, initial};
use crate::subsume::{Index, Pattern, Target};
use mu_base::limits::Budget;

/// No more terms, and no more candidates, are made.
const MOST_TERMS: usize = 10;
const MOST_CANDIDATES: usize = 6000;

/// The numbers that two processes compare: cells without an index, and of each of the two.
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

/// Where a process may be: anywhere, at one place, anywhere but there.
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

/// The candidates: different cubes, each with one comparison.
fn candidates(signature: &Signature) -> Vec<Cube> {
    let terms = terms(signature);
    let (p, q) = (signature.fixed as u8, signature.fixed as u8 + 1);
    let processes = signature.fixed + 2;
    if terms.len() < 2 || terms.len() > MOST_TERMS || signature.most.is_some_and(|m| m < processes)
    {
        return Vec::new();
    }
    let mut found: Vec<Cube> = Vec::new();
    let mut met = std::collections::HashSet::new();
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
                        if found.len() < MOST_CANDIDATES && met.insert(cube.clone()) {
                            found.push(cube);
                        }
                    }
                }
            }
        }
    }
    found
}

/// A candidate's pre-images, each with the cube that covers it, where that is known.
type Images = Vec<(Cube, Option<usize>)>;

struct Houdini<'a> {
    rules: &'a Rules,
    index: Index,
    /// The position of the first candidate.
    first: usize,
    work: u64,
}

impl Houdini<'_> {
    fn spend(&mut self, work: u64) -> Option<()> {
        let enough = work <= self.work;
        self.work = self.work.saturating_sub(work);
        enough.then_some(())
    }
    /// The pre-images of a candidate that are no candidates of the same kind again; none if there
    /// is no room for one or the work is done.
    fn images(&mut self, cube: &Cube) -> Option<Images> {
        let mut found = Vec::new();
        for rule in &self.rules.rules {
            for (binding, processes) in
                bindings(rule.params, cube.processes, self.rules.signature.most).ok()?
            {
                let mut images = Vec::new();
                pre_image(self.rules, cube, rule, &binding, processes, &mut images).ok()?;
                self.spend(1)?;
                found.extend(images.into_iter().map(|(cube, _)| (cube, None)));
            }
        }
        Some(found)
    }
    /// Whether cubes that are left cover a pre-image; the position of one that does alone is kept.
    /// None if the work is done.
    fn is_covered(&mut self, image: &mut (Cube, Option<usize>)) -> Option<bool> {
        if image.1.is_some_and(|i| self.index.pattern(i).is_some()) {
            return Some(true);
        }
        let signature = &self.rules.signature;
        let mut target = Target::new(signature, &image.0);
        image.1 = self.index.cover(&mut target, None);
        let covered = image.1.is_some() || self.index.covered(&mut target, None, MOST_OPEN);
        let spent = target.spent / STEPS_OF_WORK;
        self.spend(spent)?;
        Some(covered)
    }
    /// Takes candidates out until those that are left confirm each other; none if the work is done
    /// before.
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

/// Cubes that runs never enter before they meet what is unsafe; none that another one covers.
/// `work` is taken from; where it ends before they are found, there are none.
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
