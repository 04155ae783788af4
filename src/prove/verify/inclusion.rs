//! Inclusion of a cube in another one: the other's processes are mapped to the cube's, and its
//! stages to stages of the cube in order or to *now*, so that every fact of the other follows.
//! Processes are mapped one by one, the most constrained first, and each fact is decided as soon as
//! possible. Decisions of facts are cached for the cube, since instances share most of their facts.

use super::logic::{
    CertificateCell, Domains, Fact, JOINT, OTHER, Point, Set, ValueKind, World, cells, members,
    recell, singleton, stages_of,
};
use super::{ExcludedCube, Verifier};
use mu_base::narrow;
use std::collections::HashMap;

/// The images of stages: stages, or now.
pub(super) type Places = Vec<((u8, u8), Option<u8>)>;

/// A cube of the certificate prepared for matching.
pub(super) struct MatchingPlan {
    /// The order in which processes are mapped, after the fixed ones.
    order: Vec<u8>,
    /// For each number of mapped processes: the facts without stages that can then be decided;
    /// last, those at stages.
    steps: Vec<Vec<usize>>,
    staged: Vec<usize>,
    views: Vec<(u8, u8)>,
    /// The symbols that it mentions.
    pub(super) symbols: Vec<usize>,
    /// The symbols that each fact mentions.
    mentions: Vec<Vec<usize>>,
    /// The values that some cell of a symbol must be known to have.
    wanted: Vec<(usize, Set)>,
    /// True if it concerns one process alone, so that its end of the run may be any stage: the run
    /// up to that read is one too, and the process has the same cells there. Cells of others may be
    /// later.
    is_alone: bool,
}

/// Returns the symbols that facts mention.
pub(super) fn symbols(facts: &[Fact]) -> Vec<usize> {
    let mut found: Vec<usize> = facts.iter().flat_map(cells).map(|c| c.symbol()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the processes that must be mapped before the fact can be decided: a set of processes
/// that distinguishes named ones needs all of them.
fn needs(kinds: &[ValueKind], fact: &Fact, named: usize) -> Set {
    let mut found = cells(fact)
        .iter()
        .flat_map(|c| c.args().chain(c.look.map(|v| v.0)))
        .fold(0, |s, p| s | singleton(p.into()));
    match fact {
        Fact::Among(c, set) if kinds[c.symbol()] == ValueKind::Process => {
            found |= if set & singleton(OTHER) != 0 {
                singleton(narrow::index(named)) - 1
            } else {
                *set
            };
        }
        Fact::Ahead(a, b, _) => {
            for p in [a, b] {
                if let Point::Named(n) = p {
                    found |= singleton((*n).into());
                }
            }
        }
        Fact::Fence(p, _) => found |= singleton((*p).into()),
        _ => {}
    }
    found
}

impl MatchingPlan {
    /// Prepares the cube.
    pub(super) fn new(
        kinds: &[ValueKind],
        fixed: usize,
        cube: &ExcludedCube,
        is_alone: bool,
    ) -> MatchingPlan {
        let needed: Vec<Set> = cube.facts.iter().map(|f| needs(kinds, f, cube.named)).collect();
        let mut order: Vec<u8> = (narrow::byte(fixed)..narrow::byte(cube.named)).collect();
        order.sort_by_key(|p| {
            std::cmp::Reverse(needed.iter().filter(|n| **n & singleton((*p).into()) != 0).count())
        });
        let mut steps = vec![Vec::new(); order.len() + 1];
        let mut staged = Vec::new();
        for (i, f) in cube.facts.iter().enumerate() {
            if stages_of(f).is_empty() {
                let last = order.iter().rposition(|p| needed[i] & singleton((*p).into()) != 0);
                steps[last.map_or(0, |l| l + 1)].push(i);
            } else {
                staged.push(i);
            }
        }
        let mut views: Vec<(u8, u8)> = cube.facts.iter().flat_map(stages_of).collect();
        views.sort_unstable();
        views.dedup();
        let wanted = cube.facts.iter().filter_map(|f| match f {
            Fact::Among(c, set) if matches!(kinds[c.symbol()], ValueKind::Values(_)) => {
                Some((c.symbol(), *set))
            }
            _ => None,
        });
        let wanted = wanted.collect();
        let mentions = cube.facts.iter().map(|f| symbols(std::slice::from_ref(f))).collect();
        MatchingPlan {
            order,
            steps,
            staged,
            views,
            symbols: symbols(&cube.facts),
            mentions,
            wanted,
            is_alone,
        }
    }
}

/// The truth of a fact.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Truth {
    Yes,
    No,
    Open,
}

/// A cube that others are matched against.
pub(super) struct MatchedCube<'a> {
    verifier: &'a Verifier<'a>,
    cube: &'a ExcludedCube,
    world: World<'a>,
    domains: Domains,
    cells: Vec<CertificateCell>,
    /// Cells that equalities or differences relate to others.
    joined: Vec<CertificateCell>,
    stages: Vec<Vec<u8>>,
    judged: HashMap<Fact, Truth>,
    /// The facts of the best instance so far that do not follow, and the largest number of such
    /// facts.
    best: Option<Vec<Fact>>,
    most: usize,
    /// Facts that are the only one of some instance that does not follow, if they are collected.
    single: Option<Vec<Fact>>,
}

impl<'a> MatchedCube<'a> {
    /// Prepares a cube with a named process; `None` if its facts are contradictory.
    pub(super) fn new(
        verifier: &'a Verifier<'a>,
        cube: &'a ExcludedCube,
    ) -> Option<MatchedCube<'a>> {
        let world = verifier.world(cube.named);
        if verifier.contradicts(cube.named, &cube.facts) {
            return None;
        }
        let domains = world.domains(&cube.facts)?;
        let mut all: Vec<CertificateCell> = cube.facts.iter().flat_map(cells).collect();
        all.sort_unstable();
        all.dedup();
        let joined =
            cube.facts.iter().filter(|f| matches!(f, Fact::Twins(..))).flat_map(cells).collect();
        let mut stages = vec![Vec::new(); cube.named];
        for (p, s) in cube.facts.iter().flat_map(stages_of) {
            if !stages[usize::from(p)].contains(&s) {
                stages[usize::from(p)].push(s);
            }
        }
        stages.iter_mut().for_each(|s: &mut Vec<u8>| s.sort_unstable());
        Some(MatchedCube {
            verifier,
            cube,
            world,
            domains,
            cells: all,
            joined,
            stages,
            judged: HashMap::new(),
            best: None,
            most: 0,
            single: None,
        })
    }
    /// True if it mentions each of the symbols.
    pub(super) fn mentions(&self, symbols: &[usize]) -> bool {
        symbols.iter().all(|s| self.cells.binary_search_by_key(s, |c| c.symbol()).is_ok())
    }
    /// Returns the number of facts of the plan's cube with symbols that it does not mention: such a
    /// fact never follows.
    pub(super) fn lacks(&self, plan: &MatchingPlan) -> usize {
        if self.mentions(&plan.symbols) {
            0
        } else {
            plan.mentions.iter().filter(|m| !self.mentions(m)).count()
        }
    }
    /// True if each fact about values that the plan requires may follow for some cell.
    pub(super) fn may_hold(&self, plan: &MatchingPlan) -> bool {
        plan.wanted.iter().all(|(symbol, set)| {
            self.cells.iter().any(|c| {
                c.symbol() == *symbol && self.world.possible_values(&self.domains, c) & !set == 0
            })
        })
    }
    /// Returns the instance with the fewest facts, at most `most`, that do not follow, and without
    /// contradicted facts: these facts.
    pub(super) fn closest(
        &mut self,
        inner: &ExcludedCube,
        plan: &MatchingPlan,
        most: usize,
    ) -> Option<Vec<Fact>> {
        if inner.named > self.cube.named {
            return None;
        }
        (self.best, self.most) = (None, most);
        let mut names = vec![u8::MAX; inner.named];
        (0..self.world.fixed.min(inner.named)).for_each(|p| names[p] = narrow::byte(p));
        self.name(inner, plan, 0, &mut names, &mut Vec::new());
        self.best.take()
    }
    /// Returns the facts that are the only one of some instance that does not follow: if one of
    /// them holds, the target is inside.
    pub(super) fn singles(&mut self, inner: &ExcludedCube, plan: &MatchingPlan) -> Vec<Fact> {
        self.single = Some(Vec::new());
        self.closest(inner, plan, 1);
        self.single.take().unwrap_or_default()
    }
    fn is_done(&self) -> bool {
        self.best.as_ref().is_some_and(Vec::is_empty)
    }
    /// Decides the facts that can be decided now, then maps the next process.
    fn name(
        &mut self,
        inner: &ExcludedCube,
        plan: &MatchingPlan,
        at: usize,
        names: &mut Vec<u8>,
        open: &mut Vec<Fact>,
    ) {
        let before = open.len();
        if self.admits(inner, &plan.steps[at], names, &Vec::new(), open) {
            match plan.order.get(at) {
                None => self.place(inner, plan, names, &mut Vec::new(), open),
                Some(process) => {
                    for p in 0..narrow::byte(self.cube.named) {
                        if names.contains(&p) {
                            continue;
                        }
                        names[usize::from(*process)] = p;
                        self.name(inner, plan, at + 1, names, open);
                        names[usize::from(*process)] = u8::MAX;
                        if self.is_done() {
                            break;
                        }
                    }
                }
            }
        }
        open.truncate(before);
    }
    /// Maps the stages of the inner cube one by one: to stages of the cube in the same order, or to
    /// now.
    fn place(
        &mut self,
        inner: &ExcludedCube,
        plan: &MatchingPlan,
        names: &[u8],
        places: &mut Places,
        open: &mut Vec<Fact>,
    ) {
        if self.is_done() {
            return;
        }
        let Some(&view) = plan.views.get(places.len()) else {
            if !ends_last(places) {
                return;
            }
            let before = open.len();
            if self.admits(inner, &plan.staged, names, places, open) {
                if let Some(single) = &mut self.single {
                    single.extend(open.iter().cloned());
                } else if self.best.as_ref().is_none_or(|b| open.len() < b.len()) {
                    self.most = open.len();
                    self.best = Some(open.clone());
                }
            }
            open.truncate(before);
            return;
        };
        let process = names[usize::from(view.0)];
        let previous = places.iter().rfind(|x| x.0.0 == view.0).map(|x| x.1);
        let shared = places.iter().find(|x| x.0.1 == JOINT && view.1 == JOINT).map(|x| x.1);
        let options: Vec<Option<u8>> = if view.1 == JOINT && !plan.is_alone {
            // The end of the run is that of the cube, if there is one, or now. Any process has
            // a view of that moment.
            let shares = self.stages.iter().any(|s| s.contains(&JOINT));
            shares.then_some(Some(JOINT)).into_iter().chain([None]).collect()
        } else {
            self.stages[usize::from(process)].iter().copied().map(Some).chain([None]).collect()
        };
        for option in options {
            let in_order = match (previous, option) {
                (None, _) | (Some(_), None) => true,
                (Some(None), Some(_)) => false,
                (Some(Some(x)), Some(y)) => x <= y,
            };
            if in_order && shared.is_none_or(|s| s == option) {
                places.push((view, option));
                self.place(inner, plan, names, places, open);
                places.pop();
            }
        }
    }
    /// Decides facts of the inner cube. Returns false if one is contradicted, or too many do not
    /// follow.
    fn admits(
        &mut self,
        inner: &ExcludedCube,
        list: &[usize],
        names: &[u8],
        places: &Places,
        open: &mut Vec<Fact>,
    ) -> bool {
        for i in list {
            let fact =
                instance(&self.verifier.kinds, &inner.facts[*i], names, places, self.cube.named);
            match self.judge(&fact, names, places, &inner.facts[*i]) {
                Truth::Yes => {}
                Truth::No => return false,
                Truth::Open => open.push(fact),
            }
            // Only better instances are relevant.
            if open.len() > self.most {
                return false;
            }
        }
        true
    }
    fn judge(&mut self, fact: &Fact, names: &[u8], places: &Places, of: &Fact) -> Truth {
        match fact {
            Fact::Among(c, set) => {
                let domain = self.world.possible_values(&self.domains, c);
                if domain & !set == 0 {
                    return Truth::Yes;
                }
                if domain & set == 0 {
                    return Truth::No;
                }
                if !self.joined.contains(c) {
                    // Only its own domain constrains the cell.
                    return Truth::Open;
                }
            }
            Fact::Fence(..) => {
                let Fact::Fence(p, s) = of else { return Truth::No };
                let Some(stage) = places.iter().find(|x| x.0 == (*p, *s)).and_then(|x| x.1) else {
                    return Truth::Yes;
                };
                let q = names[usize::from(*p)];
                let holds = self
                    .cube
                    .facts
                    .iter()
                    .any(|f| matches!(f, Fact::Fence(r, t) if *r == q && *t <= stage));
                return if holds { Truth::Yes } else { Truth::No };
            }
            Fact::Twins(a, b, same) if a == b => return if *same { Truth::Yes } else { Truth::No },
            Fact::ExcludedCube => return Truth::No,
            Fact::Twins(..) | Fact::Sum(_) | Fact::Words(_) => {
                let own = cells(fact);
                if !own.is_empty() && own.iter().all(|c| self.cells.binary_search(c).is_err()) {
                    return Truth::Open;
                }
            }
            Fact::Ahead(..) => {}
        }
        if let Some(known) = self.judged.get(fact) {
            return *known;
        }
        let truth = self.decide(fact);
        self.judged.insert(fact.clone(), truth);
        truth
    }
    fn decide(&self, fact: &Fact) -> Truth {
        let facts = &self.cube.facts;
        if facts.contains(fact) {
            return Truth::Yes;
        }
        let with = |f: Fact| [facts.as_slice(), &[f]].concat();
        if self.verifier.contradicts(self.cube.named, &with(self.world.opposite(fact))) {
            Truth::Yes
        } else if self.verifier.contradicts(self.cube.named, &with(fact.clone())) {
            Truth::No
        } else {
            Truth::Open
        }
    }
}

/// True if no stage is after the image of the end of the run. (If only one process has stages,
/// their order implies that.)
pub(super) fn ends_last(places: &Places) -> bool {
    let ends = places.iter().any(|p| p.0.1 == JOINT && p.1.is_some());
    !ends || places.iter().all(|p| p.1.is_some())
}

/// Maps the processes and stages of a fact, in a cube of `named` processes.
pub(super) fn instance(
    kinds: &[ValueKind],
    fact: &Fact,
    names: &[u8],
    places: &Places,
    named: usize,
) -> Fact {
    let name = |p: u8| names[usize::from(p)];
    let place =
        |v: (u8, u8)| places.iter().find(|p| p.0 == v).and_then(|p| p.1).map(|s| (name(v.0), s));
    let cell = |c: &CertificateCell| c.rename_indices(name).with_view(c.look.and_then(place));
    match fact {
        Fact::Among(c, set) if kinds[c.symbol()] == ValueKind::Process => {
            let mut image = members(set & !singleton(OTHER))
                .fold(0, |s, v| s | singleton(u32::from(names[v as usize])));
            if set & singleton(OTHER) != 0 {
                let taken = names
                    .iter()
                    .filter(|n| usize::from(**n) < named)
                    .fold(0, |s, n| s | singleton((*n).into()));
                image |= singleton(OTHER) | (singleton(narrow::index(named)) - 1) & !taken;
            }
            Fact::Among(cell(c), image)
        }
        Fact::Ahead(a, b, strict) => {
            let point = |p: &Point| match p {
                Point::Named(n) => Point::Named(name(*n)),
                Point::Held(c) => Point::Held(cell(c)),
            };
            Fact::Ahead(point(a), point(b), *strict)
        }
        f => recell(f, &cell),
    }
}
