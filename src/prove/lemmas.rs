//! Template invariants: comparisons of numbers of one or two processes at places. A largest
//! inductive subset of the candidates is computed ("Houdini, an annotation assistant for ESC/Java",
//! Flanagan and Leino, 2001). They are for systems with a proof that needs comparisons that no
//! pre-image of an unsafe cube mentions, for example that two tickets differ.
//!
//! Candidates are cubes of two parts. The first is the place of each process: one place, any other
//! place, or any place, where places are the values of the largest enumeration that each process
//! has a value of. The second is one comparison of two numbers: plain, in memory now, or in the
//! view of a process at its first stage. Candidates that contain an initial state or a known state
//! of an instance are dropped. If words count processes ([`crate::counts`]), candidates compare
//! sums of words, and their pre-images are candidates as well. Then each candidate with a pre-image
//! outside the others and the unsafe cubes is removed, up to the fixed point. The remaining
//! candidates are inductive relative to safety: runs without unsafe states do not enter them. A
//! search treats them as covered, and they are part of the certificate, which the verifier checks
//! as usual.
//!
//! Cost: candidates times rules times bindings, up to a limit on the work, in the units of a
//! search.

use crate::atom::{Atom, Cell, LinearConstraint, Literal, Signature, SymbolSort};
use crate::counts::Count;
use crate::cube::Cube;
use crate::image::{Binding, for_each_binding, pre_image};
use crate::initial::{assumptions, claims, initial};
use crate::oracle::Instances;
use crate::residues::{ResidueSum, Residues};
use crate::rules::Rules;
use crate::search::{MAX_OPEN, STEPS_OF_WORK};
use crate::simplex::ZeroRelation;
use crate::subsume::{CubePattern, Index, MatchedCube};
use mu_base::limits::Budget;
use mu_base::narrow;
use std::ops::ControlFlow;

/// Limits on the terms and on the candidates; beyond them no template is used.
const MAX_TERMS: usize = 10;
const MAX_CANDIDATES: usize = 6000;
/// Limit on the number of steps by which pre-images of candidates become candidates.
const MAX_DEPTH: u8 = 4;

/// Returns the numbers that two processes compare: cells without an index, and cells of each of the
/// two.
fn terms(signature: &Signature) -> Vec<Cell> {
    let (p, q) = (narrow::byte(signature.fixed), narrow::byte(signature.fixed) + 1);
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
                found.extend([p, q].map(|by| c.with_view(Some((by, 0)))));
            }
        }
    }
    found
}

/// Returns the possible places of a process: any, one place, any other place.
fn places(signature: &Signature, process: u8) -> Vec<Option<Atom>> {
    let Some(symbol) = crate::counts::places(signature) else { return vec![None] };
    let SymbolSort::Finite(count) = signature.sorts[symbol] else { return vec![None] };
    let cell = Cell::new(symbol, &[process]);
    let all = signature.all_values(signature.sorts[symbol], 0);
    let mut found = vec![None];
    found.extend((0..count).map(|k| Some(Atom::In(cell, 1 << k))));
    if count > 2 {
        found.extend((0..count).map(|k| Some(Atom::In(cell, all & !(1 << k)))));
    }
    found
}

/// Returns comparisons of words of a process for a counting invariant with the sum `first -
/// second`: a word is between the two, it is one of them or next to it, a view of the second is not
/// after it.
fn comparisons_of_words(signature: &Signature, count: &Count) -> Vec<Atom> {
    let p = narrow::byte(signature.fixed);
    let bits = count.bits;
    let cell = |c: Cell| ResidueSum::new([(c, 1)], 0, bits);
    let minus = |a: Cell, b: Cell, n: i128| ResidueSum::new([(a, 1), (b, -1)], n, bits);
    let Some((second, _)) = count.sum.terms.iter().find(|t| t.1 < 0) else { return Vec::new() };
    let mut own = Vec::new();
    for symbol in 0..signature.sorts.len() {
        let is_own = signature.arity[symbol] == 1 && !signature.weak[symbol];
        if is_own && signature.sorts[symbol] == SymbolSort::Word(bits) {
            own.push(Cell::new(symbol, &[p]));
        }
    }
    let view = signature.weak[second.symbol()].then(|| second.with_view(Some((p, 0))));
    let mut found: Vec<Literal> = Vec::new();
    let zero = ResidueSum::constant(0, bits);
    for (i, x) in own.iter().enumerate() {
        let behind = minus(*x, *second, 0);
        found.push(Residues::compare(&count.sum, ZeroRelation::Le, &behind, bits));
        let others = own[i + 1..].iter().chain([second]).chain(&view);
        for y in others {
            for n in [0, 1, -1] {
                let differ = Residues::compare(&minus(*x, *y, n), ZeroRelation::Ne, &zero, bits);
                found.push(differ);
            }
        }
        if let Some(view) = view {
            let seen = minus(*x, view, 0);
            found.push(Residues::compare(&seen, ZeroRelation::Lt, &behind, bits));
        }
    }
    if let Some(view) = view {
        found.push(Residues::compare(&cell(view), ZeroRelation::Ne, &cell(*second), bits));
    }
    found
        .into_iter()
        .filter_map(|l| if let Literal::Atom(a) = l { Some(a) } else { None })
        .collect()
}

/// Returns the candidates for words: comparisons at places of one process, and equal words of two
/// processes.
fn candidates_of_words(signature: &Signature) -> Vec<Cube> {
    let (p, q) = (narrow::byte(signature.fixed), narrow::byte(signature.fixed) + 1);
    let processes = signature.fixed + 2;
    let mut found: Vec<Cube> = Vec::new();
    let mut add = |atoms: Vec<Atom>| {
        let cube = Cube::new(signature, processes, atoms);
        found.extend(cube.filter(|c| !found.contains(c)));
    };
    for count in &signature.counts {
        for atom in comparisons_of_words(signature, count) {
            for here in places(signature, p) {
                add([Some(atom.clone()), here].into_iter().flatten().collect());
            }
        }
        for symbol in 0..signature.sorts.len() {
            let is_own = signature.arity[symbol] == 1 && !signature.weak[symbol];
            if !is_own || signature.sorts[symbol] != SymbolSort::Word(count.bits) {
                continue;
            }
            let (x, y) = (Cell::new(symbol, &[p]), Cell::new(symbol, &[q]));
            let side = |c: Cell| ResidueSum::new([(c, 1)], 0, count.bits);
            let same = Residues::compare(&side(x), ZeroRelation::Eq, &side(y), count.bits);
            let Literal::Atom(same) = same else { continue };
            for here in places(signature, p) {
                for there in places(signature, q) {
                    let one = |a: &Atom| matches!(a, Atom::In(_, s) if s.is_power_of_two());
                    let single = |a: &Option<Atom>| a.as_ref().is_some_and(one);
                    if single(&here) && single(&there) {
                        add([Some(same.clone()), here.clone(), there]
                            .into_iter()
                            .flatten()
                            .collect());
                    }
                }
            }
        }
    }
    found.truncate(MAX_CANDIDATES);
    found
}

/// Returns the candidates: distinct cubes, each with one comparison.
fn candidates(signature: &Signature) -> Vec<Cube> {
    if !signature.counts.is_empty() {
        return candidates_of_words(signature);
    }
    let terms = terms(signature);
    let (p, q) = (narrow::byte(signature.fixed), narrow::byte(signature.fixed) + 1);
    let processes = signature.fixed + 2;
    if terms.len() < 2 || terms.len() > MAX_TERMS || signature.most.is_some_and(|m| m < processes) {
        return Vec::new();
    }
    let mut found: Vec<Cube> = Vec::new();
    let mut distinct = std::collections::HashSet::new();
    for (i, a) in terms.iter().enumerate() {
        for b in &terms[i + 1..] {
            if signature.sort(*a) != signature.sort(*b)
                || matches!(signature.sort(*a), SymbolSort::Word(_))
            {
                continue;
            }
            let integer = signature.sort(*a) == SymbolSort::Integer;
            for (sign, relation) in [
                (1, ZeroRelation::Le),
                (-1, ZeroRelation::Le),
                (1, ZeroRelation::Lt),
                (-1, ZeroRelation::Lt),
                (1, ZeroRelation::Eq),
            ] {
                let Ok(Literal::Atom(comparison)) =
                    LinearConstraint::new(vec![(*a, sign), (*b, -sign)], 0, relation, integer)
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

/// A candidate.
struct LemmaCandidate {
    cube: Cube,
    /// The number of steps back from a template.
    depth: u8,
    /// Its pre-images, once they are computed.
    images: Option<Images>,
}

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
        let mut target = MatchedCube::new(signature, &image.0);
        image.1 = self.index.cover(&mut target, None);
        let covered = image.1.is_some() || self.index.is_covered(&mut target, None, MAX_OPEN);
        let spent = target.spent / STEPS_OF_WORK;
        self.spend(spent)?;
        Some(covered)
    }
    /// Adds a pre-image as a candidate, if no initial or known state is in it. Returns its index in
    /// the index of cubes.
    fn extend(
        &mut self,
        image: &Cube,
        candidates: &mut Vec<LemmaCandidate>,
        depth: u8,
        oracle: &mut Instances<'_>,
    ) -> Option<usize> {
        let small = depth < MAX_DEPTH
            && candidates.len() < MAX_CANDIDATES
            && image.processes <= self.rules.signature.fixed + 2
            && !candidates.iter().any(|c| c.cube == *image);
        if !small || !matches!(initial(self.rules, image), Ok(None)) || !oracle.is_plausible(image)
        {
            return None;
        }
        candidates.push(LemmaCandidate { cube: image.clone(), depth: depth + 1, images: None });
        let at = self.index.push(CubePattern::new(&self.rules.signature, image.clone()));
        self.index.settle();
        Some(at)
    }
    /// Removes candidates up to the fixed point; `None` if the work limit is reached. If words are
    /// counted, a pre-image that is not covered first becomes a candidate itself.
    fn run(
        &mut self,
        candidates: &mut Vec<LemmaCandidate>,
        oracle: &mut Instances<'_>,
        budget: &Budget,
    ) -> Option<()> {
        let extends = !self.rules.signature.counts.is_empty();
        loop {
            let mut changed = false;
            let mut i = 0;
            while i < candidates.len() {
                i += 1;
                let at = i - 1;
                if self.index.pattern(self.first + at).is_none() {
                    continue;
                }
                budget.check(0).ok()?;
                let mut images = match candidates[at].images.take() {
                    Some(images) => images,
                    None => self.images(&candidates[at].cube)?,
                };
                let mut confirmed = true;
                for image in &mut images {
                    if self.is_covered(image)? {
                        continue;
                    }
                    let depth = candidates[at].depth;
                    image.1 = if extends {
                        self.extend(&image.0, candidates, depth, oracle)
                    } else {
                        None
                    };
                    if image.1.is_none() {
                        confirmed = false;
                        break;
                    }
                    changed = true;
                }
                if !confirmed {
                    self.index.remove(self.first + at);
                    changed = true;
                }
                candidates[at].images = Some(images);
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
    let (Ok(mut unsafe_cubes), Ok(assumed)) = (claims(rules, &rules.unsafes), assumptions(rules))
    else {
        return Vec::new();
    };
    unsafe_cubes.extend(rules.obligations.iter().cloned());
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
        houdini.first = houdini.index.push(CubePattern::new(signature, cube.clone())) + 1;
    }
    for cube in &found {
        houdini.index.push(CubePattern::new(signature, cube.clone()));
    }
    houdini.index.settle();
    let mut found: Vec<LemmaCandidate> =
        found.into_iter().map(|cube| LemmaCandidate { cube, depth: 0, images: None }).collect();
    let done = houdini.run(&mut found, oracle, budget);
    *work = houdini.work;
    if done.is_none() {
        return Vec::new();
    }
    let Houdini { mut index, first, .. } = houdini;
    for (i, LemmaCandidate { cube, .. }) in found.iter().enumerate() {
        if index.pattern(first + i).is_some()
            && index.cover(&mut MatchedCube::new(signature, cube), Some(first + i)).is_some()
        {
            index.remove(first + i);
        }
    }
    index.patterns().filter(|(i, _)| *i >= first).map(|(_, p)| p.cube.clone()).collect()
}
