//! Subsumption of cubes. Cube `v` covers cube `c` if there is a map under which `c` implies every
//! atom of `v`. The map sends processes of `v` to processes of `c`, and stages of `v` to stages of
//! `c` in the same order, or to *now*. The search assigns process after process and stage after
//! stage and tests each atom as soon as it is completely assigned.
//!
//! An index filters out cubes that cannot match: each cube has a set of features (symbols, symbols
//! with a single value) in 256 bits, and a cube that covers another has no feature that the other
//! lacks. The sets are in a trie ([`crate::trie`]): a query visits the possible ones, and matches
//! the few cubes that remain. Cubes that together cover another one are found if each requires one
//! further atom (see [`Index::is_covered`]).

use crate::atom::{Atom, Cell, JOINT, Literal, NONE, Signature, SymbolSort};
use crate::cube::{Cube, Mix};
use crate::decide::Decider;
use crate::simplex::SimplexAnswer;
use crate::stages;
use crate::trie::{Bits, Trie};
use mu_base::narrow;
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A set of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Features(Bits);

impl Features {
    fn insert(&mut self, value: impl Hash) {
        let mut hash = Mix::default();
        value.hash(&mut hash);
        let h = hash.finish() >> 40;
        self.0[(h & 3) as usize] |= 1 << (h >> 2 & 63);
    }
    /// True if the other set contains all features.
    pub fn is_within(&self, other: &Features) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }
    /// Returns the number of features that the other set lacks.
    pub fn count_missing(&self, other: &Features) -> usize {
        self.0.iter().zip(&other.0).map(|(a, b)| (a & !b).count_ones() as usize).sum()
    }
    /// Returns the features of a cube.
    pub fn of(signature: &Signature, cube: &Cube) -> Features {
        let mut found = Features::default();
        for a in &cube.atoms {
            for c in a.cells() {
                found.insert((c.symbol(), u64::MAX));
            }
            if let Atom::In(c, set) = a
                && set.is_power_of_two()
                && matches!(signature.sort(*c), SymbolSort::Finite(_))
            {
                found.insert((c.symbol(), *set));
            }
        }
        found
    }
}

#[derive(Clone, Copy)]
enum AssignmentStep {
    Process(u8),
    Stage(u8, u8),
    Joint,
}

/// A cube prepared for matching against others.
#[derive(Clone)]
pub struct CubePattern {
    /// The cube.
    pub cube: Cube,
    features: Features,
    /// The assignment steps, each with the atoms to test after it.
    plan: Vec<(AssignmentStep, Vec<usize>)>,
    /// Atoms that need no assignment.
    ground: Vec<usize>,
}

impl CubePattern {
    /// Prepares the cube.
    pub fn new(signature: &Signature, cube: Cube) -> CubePattern {
        let features = Features::of(signature, &cube);
        let mut weight: Vec<(usize, u8)> = (signature.fixed..cube.processes)
            .map(|p| {
                (
                    cube.atoms
                        .iter()
                        .filter(|a| a.processes(signature, cube.processes) & (1 << p) != 0)
                        .count(),
                    narrow::byte(p),
                )
            })
            .collect();
        // The most constrained processes first.
        weight.sort_unstable_by(|a, b| b.cmp(a));
        let mut steps: Vec<AssignmentStep> = Vec::new();
        let viewers = stages::viewers(&cube.atoms);
        for p in (0..narrow::byte(signature.fixed)).chain(weight.iter().map(|w| w.1)) {
            if usize::from(p) >= signature.fixed {
                steps.push(AssignmentStep::Process(p));
            }
            if viewers.contains(&p) {
                steps.extend(
                    stages::of(&cube.atoms, p)
                        .into_iter()
                        .filter(|s| *s != JOINT)
                        .map(|s| AssignmentStep::Stage(p, s)),
                );
            }
        }
        if viewers.iter().any(|p| stages::of(&cube.atoms, *p).contains(&JOINT)) {
            steps.push(AssignmentStep::Joint);
        }
        let mut plan: Vec<(AssignmentStep, Vec<usize>)> =
            steps.into_iter().map(|s| (s, Vec::new())).collect();
        let mut ground = Vec::new();
        for (i, a) in cube.atoms.iter().enumerate() {
            let used = a.processes(signature, cube.processes);
            let views: Vec<(u8, u8)> = match a {
                Atom::Fence(p, s) => vec![(*p, *s)],
                a => a.cells().iter().filter_map(|c| c.view()).collect(),
            };
            let last = plan.iter().rposition(|(s, _)| match s {
                AssignmentStep::Process(p) => used & (1 << p) != 0,
                AssignmentStep::Stage(p, s) => views.contains(&(*p, *s)),
                AssignmentStep::Joint => views.iter().any(|v| v.1 == JOINT),
            });
            match last {
                Some(at) => plan[at].1.push(i),
                None => ground.push(i),
            }
        }
        CubePattern { cube, features, plan, ground }
    }
    /// Returns the features of the cube.
    pub fn features(&self) -> &Features {
        &self.features
    }
}

/// A cube that patterns are matched against.
pub struct MatchedCube<'a> {
    signature: &'a Signature,
    cube: Cow<'a, Cube>,
    features: Features,
    decider: Decider<'a>,
    stages: Vec<Vec<u8>>,
    fences: Vec<Option<u8>>,
    /// True if the end of the run is a moment in it.
    ending: bool,
    /// Cached decisions of atoms, which instances of many cubes share.
    known: HashMap<Atom, Option<bool>, BuildHasherDefault<Mix>>,
    /// Number of processes and stages that the current query may still assign.
    steps: u32,
    /// Number of assignments of all queries so far.
    pub spent: u64,
}

/// Limits on the assignments of processes and stages while a cube is matched, and while instances
/// are collected, which also limits their number. A cube of many processes or stages has too many
/// maps into another; it then does not count as covering it, which costs search but is never wrong.
const MAX_STEPS: u32 = 1 << 20;
const MAX_COLLECTED: u32 = 1 << 14;

/// The image of a stage: a stage of the target, or now.
type StageImage = Option<u8>;

struct Assignment {
    to: Vec<u8>,
    stage: Vec<((u8, u8), StageImage)>,
    joint: Option<StageImage>,
    /// Number of atoms that may be open: 0 if all must hold.
    most: usize,
    /// The open atoms.
    open: Vec<Atom>,
}

impl Assignment {
    fn place(&self, view: (u8, u8)) -> StageImage {
        if view.1 == JOINT {
            return self.joint.flatten();
        }
        self.stage.iter().find(|s| s.0 == view).and_then(|s| s.1)
    }
    fn cell(&self, c: Cell) -> Cell {
        let to = c.map(|p| self.to[usize::from(p)]);
        match c.view() {
            None => to,
            Some(view) => to.with_view(self.place(view).map(|s| (self.to[usize::from(view.0)], s))),
        }
    }
}

impl<'a> MatchedCube<'a> {
    /// Prepares the cube. There is always a process, so a cube that names none gets one.
    pub fn new(signature: &'a Signature, cube: &'a Cube) -> MatchedCube<'a> {
        let cube = if cube.processes == 0 {
            Cow::Owned(cube.add_processes(signature, 1))
        } else {
            Cow::Borrowed(cube)
        };
        let processes = narrow::byte(cube.processes);
        let weak = signature.weak.contains(&true);
        MatchedCube {
            signature,
            features: Features::of(signature, &cube),
            decider: Decider::of(signature, cube.processes, &cube.atoms),
            stages: if weak {
                (0..processes).map(|p| stages::of(&cube.atoms, p)).collect()
            } else {
                Vec::new()
            },
            fences: if weak {
                (0..processes).map(|p| stages::fence(&cube.atoms, p)).collect()
            } else {
                Vec::new()
            },
            ending: weak && stages::has_end(&cube.atoms),
            cube,
            known: HashMap::default(),
            steps: 0,
            spent: 0,
        }
    }
    /// Returns the features.
    pub fn features(&self) -> &Features {
        &self.features
    }
    /// True if the pattern covers the cube.
    pub fn is_covered_by(&mut self, pattern: &CubePattern) -> bool {
        if pattern.cube.processes > self.cube.processes
            || !pattern.features.is_within(&self.features)
        {
            return false;
        }
        let mut assignment = self.start(pattern, 0);
        self.steps = MAX_STEPS;
        let found = self.admits(pattern, &pattern.ground, &mut assignment)
            && self.extend(pattern, 0, &mut assignment, &mut |_| true);
        self.spent += u64::from(MAX_STEPS - self.steps);
        found
    }
    fn start(&self, pattern: &CubePattern, most: usize) -> Assignment {
        let mut to = vec![62u8; pattern.cube.processes];
        for (p, t) in to.iter_mut().enumerate().take(self.signature.fixed) {
            *t = narrow::byte(p);
        }
        Assignment { to, stage: Vec::new(), joint: None, most, open: Vec::new() }
    }
    /// Maps an atom of the pattern by the assignment.
    fn image(&self, pattern: &CubePattern, atom: &Atom, assignment: &Assignment) -> Literal {
        use crate::atom::Point;
        let of = |c: &Cell| assignment.cell(*c);
        match atom {
            Atom::In(c, set) => {
                let set = if self.signature.sort(*c) == SymbolSort::Process {
                    crate::atom::map_set(*set, pattern.cube.processes, self.cube.processes, |p| {
                        assignment.to[usize::from(p)]
                    })
                } else {
                    *set
                };
                Literal::Atom(Atom::In(of(c), set))
            }
            Atom::Same(a, b, equal) => Atom::equality(of(a), of(b), *equal),
            Atom::Before(a, b, strict) => {
                let point = |p: &Point| match p {
                    Point::Variable(v) => Point::Variable(assignment.to[usize::from(*v)]),
                    Point::Cell(c) => Point::Cell(of(c)),
                };
                Atom::order(point(a), point(b), *strict, self.signature.fixed)
            }
            Atom::Linear(l) => {
                let terms = l.terms.iter().map(|t| (of(&t.0), t.1)).collect();
                let integer =
                    l.terms.iter().all(|t| self.signature.sort(t.0) == SymbolSort::Integer);
                crate::atom::LinearConstraint::new(terms, l.constant, l.relation, integer)
                    .unwrap_or_else(|_| Literal::Atom(atom.clone()))
            }
            Atom::Residues(r) => r.map(&|c| of(&c)),
            Atom::Fence(p, s) => {
                let q = assignment.to[usize::from(*p)];
                match assignment.place((*p, *s)) {
                    None => Literal::True,
                    Some(stage) if self.fences[usize::from(q)].is_some_and(|f| f <= stage) => {
                        Literal::True
                    }
                    Some(_) => Literal::False,
                }
            }
        }
    }
    /// Performs the assignment steps from `at` on. Calls `found` with each complete assignment
    /// until it returns true.
    fn extend(
        &mut self,
        pattern: &CubePattern,
        at: usize,
        assignment: &mut Assignment,
        found: &mut dyn FnMut(&Assignment) -> bool,
    ) -> bool {
        let Some((step, atoms)) = pattern.plan.get(at) else { return found(assignment) };
        match *step {
            AssignmentStep::Process(p) => {
                for q in narrow::byte(self.signature.fixed)..narrow::byte(self.cube.processes) {
                    if assignment.to.contains(&q) {
                        continue;
                    }
                    assignment.to[usize::from(p)] = q;
                    if self.step(pattern, at, atoms, assignment, found) {
                        return true;
                    }
                    assignment.to[usize::from(p)] = 62;
                }
            }
            AssignmentStep::Stage(p, s) => {
                let q = assignment.to[usize::from(p)];
                let previous = assignment.stage.last().filter(|x| x.0.0 == p).map(|x| x.1);
                let list: Vec<StageImage> =
                    self.stages[usize::from(q)].iter().map(|s| Some(*s)).chain([None]).collect();
                for place in list {
                    let in_order = match (previous, place) {
                        (None, _) | (Some(_), None) => true,
                        (Some(None), Some(_)) => false,
                        (Some(Some(x)), Some(y)) => x <= y,
                    };
                    if !in_order {
                        continue;
                    }
                    assignment.stage.push(((p, s), place));
                    if self.step(pattern, at, atoms, assignment, found) {
                        return true;
                    }
                    assignment.stage.pop();
                }
            }
            AssignmentStep::Joint => {
                for place in self.ends(pattern, assignment) {
                    assignment.joint = Some(place);
                    if self.step(pattern, at, atoms, assignment, found) {
                        return true;
                    }
                }
                assignment.joint = None;
            }
        }
        false
    }
    /// True if a cube concerns a process alone: its cells and views, and cells that never change.
    fn concerns(&self, cube: &Cube, process: u8) -> bool {
        let is_own = |c: &Cell| match c.view() {
            Some((p, _)) => p == process,
            None => {
                self.signature.rigid[c.symbol()]
                    || !self.signature.weak[c.symbol()]
                        && c.args().iter().all(|p| [NONE, process].contains(p))
            }
        };
        cube.atoms.iter().all(|a| match a {
            Atom::Fence(p, _) => *p == process,
            a => a.cells().iter().all(is_own),
        })
    }
    /// Returns the possible positions of the end of the run for the pattern: it is not before any
    /// stage.
    fn ends(&self, pattern: &CubePattern, assignment: &Assignment) -> Vec<StageImage> {
        let mut found: Vec<StageImage> = Vec::new();
        let past = assignment.stage.iter().all(|s| s.1.is_some());
        let members: Vec<u8> = stages::viewers(&pattern.cube.atoms)
            .into_iter()
            .filter(|p| stages::of(&pattern.cube.atoms, *p).contains(&JOINT))
            .collect();
        if let [alone] = members.as_slice()
            && past
            && assignment.stage.iter().all(|s| s.0.0 == *alone)
            && self.concerns(&pattern.cube, *alone)
        {
            // The view of a single process at the end may be at any stage that is not before its
            // others: the run up to that read is one too. Cells of other processes may be later.
            let last = assignment.stage.last().and_then(|s| s.1);
            let own = &self.stages[usize::from(assignment.to[usize::from(*alone)])];
            found.extend(
                own.iter()
                    .filter(|s| **s != JOINT && last.is_none_or(|l| l <= **s))
                    .map(|s| Some(*s)),
            );
        }
        found.extend((past && self.ending).then_some(Some(JOINT)));
        found.push(None);
        found
    }
    fn step(
        &mut self,
        pattern: &CubePattern,
        at: usize,
        atoms: &[usize],
        assignment: &mut Assignment,
        found: &mut dyn FnMut(&Assignment) -> bool,
    ) -> bool {
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        let before = assignment.open.len();
        let done = self.admits(pattern, atoms, assignment)
            && self.extend(pattern, at + 1, assignment, found);
        assignment.open.truncate(before);
        done
    }
    /// True if the atoms hold, or the number of open ones is within the limit.
    fn admits(
        &mut self,
        pattern: &CubePattern,
        atoms: &[usize],
        assignment: &mut Assignment,
    ) -> bool {
        for i in atoms {
            match self.image(pattern, &pattern.cube.atoms[*i], assignment) {
                Literal::True => {}
                Literal::False => return false,
                Literal::Atom(a) => match self.evaluate(&a) {
                    Some(true) => {}
                    Some(false) => return false,
                    None if assignment.open.contains(&a) => {}
                    None if assignment.open.len() == assignment.most => return false,
                    None => assignment.open.push(a),
                },
            }
        }
        true
    }
    fn evaluate(&mut self, atom: &Atom) -> Option<bool> {
        if let Atom::In(..) | Atom::Fence(..) = atom {
            return self.decider.evaluate(atom);
        }
        if let Some(known) = self.known.get(atom) {
            return *known;
        }
        let found = self.decider.evaluate(atom);
        self.known.insert(atom.clone(), found);
        found
    }
    /// Collects the atoms, at most `most`, that each instance of the pattern requires beyond the
    /// cube, up to the limit on assignments. An empty list means that it covers the cube.
    fn residues(&mut self, pattern: &CubePattern, most: usize, out: &mut Vec<Vec<Atom>>) {
        if pattern.cube.processes > self.cube.processes
            || pattern.features.count_missing(&self.features) > 2 * most
        {
            return;
        }
        let mut assignment = self.start(pattern, most);
        self.steps = MAX_COLLECTED;
        let mut visit = |assignment: &Assignment| {
            out.push(assignment.open.clone());
            false
        };
        if self.admits(pattern, &pattern.ground, &mut assignment) {
            self.extend(pattern, 0, &mut assignment, &mut visit);
        }
        self.spent += u64::from(MAX_COLLECTED - self.steps);
    }
}

/// Index of the covered cubes.
#[derive(Default)]
pub struct Index {
    patterns: Vec<Option<CubePattern>>,
    features: Trie,
    /// The first cube that is not yet in the trie.
    settled: usize,
    live: usize,
}

impl Index {
    /// Adds a cube with the next index of the caller. Until [`Index::settle`], only
    /// [`Index::cover_new`] finds it.
    pub fn push(&mut self, pattern: CubePattern) -> usize {
        self.patterns.push(Some(pattern));
        self.live += 1;
        self.patterns.len() - 1
    }
    /// Adds the new cubes to the trie.
    pub fn settle(&mut self) {
        for i in self.settled..self.patterns.len() {
            if let Some(p) = &self.patterns[i] {
                self.features.insert(&p.features.0, i);
            }
        }
        self.settled = self.patterns.len();
    }
    /// Returns a cube added since [`Index::settle`] that covers the target alone; `None` if there
    /// is none.
    pub fn cover_new(&self, target: &mut MatchedCube<'_>) -> Option<usize> {
        (self.settled..self.patterns.len())
            .find(|i| self.patterns[*i].as_ref().is_some_and(|p| target.is_covered_by(p)))
    }
    /// Removes a cube.
    pub fn remove(&mut self, at: usize) {
        if self.patterns[at].take().is_some() {
            self.live -= 1;
        }
    }
    /// Returns the number of there are.
    pub fn len(&self) -> usize {
        self.live
    }
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }
    /// Returns the cube at an index, unless it was removed.
    pub fn pattern(&self, at: usize) -> Option<&CubePattern> {
        self.patterns.get(at)?.as_ref()
    }
    /// Iterates over the cubes.
    pub fn patterns(&self) -> impl Iterator<Item = (usize, &CubePattern)> {
        self.patterns.iter().enumerate().filter_map(|(i, p)| Some((i, p.as_ref()?)))
    }
    /// Returns a cube other than `but` that covers the target alone; `None` if there is none.
    pub fn cover(&self, target: &mut MatchedCube<'_>, but: Option<usize>) -> Option<usize> {
        let features = target.features;
        let mut found = None;
        self.features.subsets(&features.0, &mut |i| {
            if Some(i) != but
                && let Some(p) = &self.patterns[i]
                && target.is_covered_by(p)
            {
                found = Some(i);
            }
            found.is_some()
        });
        found
    }
    /// Returns the cubes that the pattern covers; adds the cost to `spent`.
    pub fn covered_cubes(
        &self,
        signature: &Signature,
        pattern: &CubePattern,
        spent: &mut u64,
    ) -> Vec<usize> {
        let mut found = Vec::new();
        self.features.supersets(&pattern.features.0, &mut |i| {
            let Some(p) = &self.patterns[i] else { return };
            let mut target = MatchedCube::new(signature, &p.cube);
            if target.is_covered_by(pattern) {
                found.push(i);
            }
            *spent += target.spent;
        });
        found
    }
    /// True if the cubes other than `but` together cover the target. It considers instances that
    /// require few atoms beyond the target. If it is impossible that some atom fails in each
    /// instance, each state of the target is in one of the cubes. *No* may be wrong, *yes* is not.
    pub fn is_covered(
        &self,
        target: &mut MatchedCube<'_>,
        but: Option<usize>,
        most: usize,
    ) -> bool {
        let mut open: Vec<Vec<Atom>> = Vec::new();
        for (_, p) in self.patterns().filter(|(i, _)| Some(*i) != but) {
            if open.len() >= MAX_COLLECTED as usize {
                break;
            }
            let before = open.len();
            target.residues(p, most, &mut open);
            open.truncate((MAX_COLLECTED as usize).max(before + 1));
            if open[before..].iter().any(Vec::is_empty) {
                return true;
            }
        }
        open.sort_unstable_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        open.dedup();
        open.truncate(MAX_CLAUSES);
        !open.is_empty() && target.cannot_avoid(&open, &mut MAX_BRANCHES.clone())
    }
}

/// Limits on the instances and the cases of a query whether cubes together cover another one.
const MAX_CLAUSES: usize = 200;
const MAX_BRANCHES: u32 = 60;

impl MatchedCube<'_> {
    /// True if it is contradictory that an atom of each list fails: unit propagation, then cases of
    /// the shortest list.
    fn cannot_avoid(&mut self, lists: &[Vec<Atom>], branches: &mut u32) -> bool {
        self.decider.push();
        let found = self.splits(lists, branches);
        self.decider.pop();
        found
    }
    fn splits(&mut self, lists: &[Vec<Atom>], branches: &mut u32) -> bool {
        let mut left: Vec<Vec<Atom>> = lists.to_vec();
        let mut failing = 0;
        loop {
            // In a list of one atom, that atom fails.
            let (units, longer): (Vec<_>, Vec<_>) = left.into_iter().partition(|l| l.len() == 1);
            for unit in &units {
                if !self.deny(&unit[0]) {
                    return true;
                }
            }
            failing += units.len();
            if !units.is_empty() && self.decider.check() == SimplexAnswer::Unsatisfiable {
                return true;
            }
            if units.is_empty() && failing > 0 || longer.is_empty() {
                left = longer;
                break;
            }
            left = Vec::new();
            for list in longer {
                let mut rest = Vec::new();
                let mut fails = false;
                for a in list {
                    match self.decider.evaluate(&a) {
                        Some(true) => {}
                        Some(false) => fails = true,
                        None => rest.push(a),
                    }
                }
                match (fails, rest.is_empty()) {
                    (true, _) => {}
                    (false, true) => return true,
                    (false, false) => left.push(rest),
                }
            }
            failing += 1;
        }
        let Some(at) = (0..left.len()).min_by_key(|i| left[*i].len()) else { return false };
        let list = left.swap_remove(at);
        for (i, a) in list.iter().enumerate() {
            if *branches == 0 {
                return false;
            }
            *branches -= 1;
            self.decider.push();
            list[..i].iter().for_each(|b| self.decider.assert(b));
            let closed = !self.deny(a)
                || self.decider.check() == SimplexAnswer::Unsatisfiable
                || self.cannot_avoid(&left, branches);
            self.decider.pop();
            if !closed {
                return false;
            }
        }
        true
    }
    /// Asserts the negation of the atom. Returns false on a contradiction.
    fn deny(&mut self, atom: &Atom) -> bool {
        match atom.negate(self.signature, self.cube.processes) {
            Ok(Literal::Atom(opposite)) => self.decider.assert(&opposite),
            Ok(Literal::False) => return false,
            Ok(Literal::True) | Err(_) => {}
        }
        true
    }
}
