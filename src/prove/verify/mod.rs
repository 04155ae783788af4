//! The verifier: checks that a certificate is an inductive invariant that excludes what is unsafe. Code apart from the prover: it shares the typed system and
//! the form of certificates, has its own reading of both, its own steps backward ([`step`]) and its own decisions ([`logic`]).
//!
//! - *Safety*: every unsafe cube is inside the cubes of the certificate.
//! - *Consecution*: from outside, no transition leads into a cube. For each cube, transition and choice of processes, what must hold before is inside the
//!   cubes of the certificate, or of the file's `invariant`s, which are assumed.
//! - *Initiation*: no initial state is in a cube.
//!
//! Inside: for some instance of a cube all facts follow; otherwise a case is split on a fact of an instance and both halves are asked. Every answer that is not found
//! refuses the certificate.

pub mod logic;
pub mod read;
mod smt;
pub mod step;

use logic::{Cell, Fact, JOINT, Kind, OTHER, Point, World};
use mu_base::limits::{Budget, Stop};
use mu_cubicle::system::{Access, Claim, Proc, System, TypeId};
use step::{Reader, Step, cells, looks, recell, wider};

const MOST_CASES: u32 = 12;

/// A cube that no reachable state is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Never {
    /// How many processes it names, `#1`, `#2`, .. among them.
    pub named: usize,
    /// What holds of them.
    pub facts: Vec<Fact>,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Whether it is for total store order.
    pub tso: bool,
    /// The cubes.
    pub cubes: Vec<Never>,
}

/// How often what was asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Cubes.
    pub cubes: usize,
    /// Cubes compared with the initial states.
    pub initiation: usize,
    /// Cubes before a step, asked whether they are inside.
    pub consecution: usize,
    /// Unsafe cubes, asked whether they are inside.
    pub safety: usize,
    /// Questions whether a conjunction contradicts itself.
    pub decisions: u64,
}

/// Why a certificate is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It cannot be read.
    Unreadable(read::ReadError),
    /// A cube, by number, holds an initial state, or it was not found that it does not.
    Initiation(usize),
    /// A step by a transition into a cube comes, perhaps, from outside.
    Consecution {
        /// The cube.
        cube: usize,
        /// The transition.
        transition: usize,
    },
    /// An unsafe cube is not inside.
    Safety(usize),
    /// A limit.
    Stopped(Stop),
}

struct Verifier<'a> {
    system: &'a System,
    kinds: Vec<Kind>,
    weak: Vec<bool>,
    index: Vec<u32>,
    /// The certificate's cubes, then the assumptions.
    cubes: Vec<Never>,
    symbols: Vec<Vec<usize>>,
    asked: std::cell::Cell<u64>,
    budget: &'a Budget,
}

/// The kinds of the system's symbols.
pub fn kinds(system: &System) -> Vec<Kind> {
    let kind = |sort: TypeId| match sort {
        TypeId::PROC => Kind::Process,
        TypeId::INT => Kind::Integer,
        TypeId::REAL => Kind::Real,
        _ if system.type_of(sort).constructors.is_empty() => Kind::Opaque,
        _ => Kind::Values(system.type_of(sort).constructors.len() as u32),
    };
    system.symbols.iter().map(|s| kind(s.sort)).collect()
}

/// The certificate as text, read, with the assumptions of the file.
fn prepare<'a>(system: &'a System, text: &str, budget: &'a Budget) -> Result<(Verifier<'a>, usize), Refused> {
    let kinds = kinds(system);
    let certificate = read::read(system, &kinds, text).map_err(Refused::Unreadable)?;
    let mut index = vec![0; system.constructors.len()];
    for t in &system.types {
        t.constructors.iter().enumerate().for_each(|(i, c)| index[c.index()] = i as u32);
    }
    let weak = system.symbols.iter().map(|s| certificate.tso && s.kind == mu_cubicle::system::Kind::Weak).collect();
    let count = certificate.cubes.len();
    let mut verifier =
        Verifier { system, kinds, weak, index, cubes: certificate.cubes, symbols: Vec::new(), asked: std::cell::Cell::new(0), budget };
    let assumptions: Vec<Never> = system.invariants.iter().flat_map(|c| verifier.claim(c)).collect();
    verifier.cubes.extend(assumptions);
    verifier.symbols = verifier.cubes.iter().map(|c| symbols(&c.facts)).collect();
    Ok((verifier, count))
}

/// Verifies a certificate, as text, for the system.
///
/// # Errors
/// What the certificate fails to show.
pub fn verify(system: &System, text: &str, budget: &Budget) -> Result<Asked, Refused> {
    let (verifier, count) = prepare(system, text, budget)?;
    let mut asked = Asked { cubes: count, ..Asked::default() };
    for i in 0..count {
        asked.initiation += 1;
        if !verifier.is_not_initial(&verifier.cubes[i]) {
            return Err(Refused::Initiation(i));
        }
    }
    for (i, claim) in system.unsafes.iter().enumerate() {
        for never in verifier.claim(claim) {
            asked.safety += 1;
            if !verifier.inside(&never) {
                return Err(Refused::Safety(i));
            }
        }
    }
    for i in 0..count {
        for t in 0..system.transitions.len() {
            asked.consecution += verifier.consecution(i, t, &mut |before| verifier.inside(before))?;
        }
    }
    asked.decisions = verifier.asked.get();
    Ok(asked)
}

/// Writes the obligations of a certificate, each as a name and a text for SMT solvers.
///
/// # Errors
/// The certificate cannot be read.
pub fn obligations(system: &System, text: &str, write: &mut dyn FnMut(&str, &str)) -> Result<(), Refused> {
    let budget = Budget::default();
    let (verifier, count) = prepare(system, text, &budget)?;
    let mut smt = smt::Writer { verifier: &verifier, write, number: 0 };
    for i in 0..count {
        smt.initiation(i);
    }
    for claim in &system.unsafes {
        for never in verifier.claim(claim) {
            smt.inside("safety", &never);
        }
    }
    for i in 0..count {
        for t in 0..system.transitions.len() {
            verifier.consecution(i, t, &mut |before| {
                smt.inside("consecution", before);
                true
            })?;
        }
    }
    Ok(())
}

fn symbols(facts: &[Fact]) -> Vec<usize> {
    let mut found: Vec<usize> = facts.iter().flat_map(cells).map(|c| c.symbol).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// All lists of `count` processes below `named`, distinct or not.
fn choices(count: usize, named: usize, distinct: bool) -> Vec<Vec<u8>> {
    let mut list: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..count {
        list = list
            .iter()
            .flat_map(|l| (0..named as u8).filter(move |p| !distinct || !l.contains(p)).map(move |p| [l.as_slice(), &[p]].concat()))
            .collect();
    }
    list
}

impl Verifier<'_> {
    fn world(&self, named: usize) -> World<'_> {
        let closed = self.system.processes.is_some_and(|m| m as usize == named);
        World { kinds: &self.kinds, named, fixed: self.system.fixed as usize, closed }
    }
    fn contradicts(&self, named: usize, facts: &[Fact]) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.world(named).contradicts(facts)
    }
    /// Lists of distinct processes for parameters beside those named: old ones, then new ones in order; with the number of names then.
    fn bindings(&self, params: usize, named: usize) -> Vec<(Vec<u8>, usize)> {
        let most = self.system.processes.map_or(usize::MAX, |m| m as usize);
        choices(params, named + params, true)
            .into_iter()
            .filter_map(|b| {
                let mut next = named;
                for p in &b {
                    if usize::from(*p) > next {
                        return None;
                    }
                    next = next.max(usize::from(*p) + 1);
                }
                (next <= most).then_some((b, next))
            })
            .collect()
    }
    /// The cubes of a claim.
    fn claim(&self, claim: &Claim) -> Vec<Never> {
        let fixed = self.system.fixed as usize;
        let mut found = Vec::new();
        for (binding, named) in self.bindings(claim.params.len(), fixed) {
            let process = |p: Proc| match p {
                Proc::Var(v) => binding[v as usize],
                Proc::Fixed(n) => (n - 1) as u8,
            };
            let look = |a: &Access| if self.weak[a.symbol.index()] { a.by.map(|p| (process(p), JOINT)) } else { None };
            let reader = Reader { process: &process, look: &look, index: &self.index, world: self.world(named) };
            let (facts, _) = reader.facts(&claim.cube);
            if !self.contradicts(named, &facts) {
                found.push(Never { named, facts });
            }
        }
        found
    }
    /// What a cube says of an initial state, where all reads look at memory now.
    fn at_the_start(&self, cube: &Never) -> Vec<Fact> {
        let named = cube.named.max(1);
        let now = |c: &Cell| Cell { look: None, ..c.clone() };
        let facts = cube.facts.iter().filter(|f| !matches!(f, Fact::Fence(..))).map(|f| recell(f, &now)).map(|f| match f {
            Fact::Among(c, set) if self.kinds[c.symbol] == Kind::Process => Fact::Among(c, wider(&set, cube.named, named)),
            Fact::Twins(a, b, false) if a == b => Fact::Never,
            f => f,
        });
        facts.filter(|f| !matches!(f, Fact::Twins(a, b, true) if a == b)).collect()
    }
    /// The instances of `init` for so many processes: of each, one of the conjunctions holds.
    fn initial(&self, named: usize) -> Vec<Vec<Vec<Fact>>> {
        choices(self.system.init.params.len(), named, false)
            .into_iter()
            .map(|map| {
                let process = |p: Proc| match p {
                    Proc::Var(v) => map[v as usize],
                    Proc::Fixed(n) => (n - 1) as u8,
                };
                let reader = Reader { process: &process, look: &|_| None, index: &self.index, world: self.world(named) };
                self.system.init.dnf.iter().map(|c| reader.facts(c).0).collect()
            })
            .collect()
    }
    /// Whether no initial state is in the cube.
    fn is_not_initial(&self, cube: &Never) -> bool {
        let named = cube.named.max(1);
        self.meets_none(named, self.at_the_start(cube), &self.initial(named))
    }
    fn meets_none(&self, named: usize, facts: Vec<Fact>, instances: &[Vec<Vec<Fact>>]) -> bool {
        // Where `init` is one conjunction, all instances hold at once.
        let (single, several): (Vec<_>, Vec<_>) = instances.iter().partition(|i| i.len() == 1);
        let mut facts = facts;
        facts.extend(single.into_iter().flat_map(|i| i[0].clone()));
        if self.contradicts(named, &facts) {
            return true;
        }
        let Some((first, rest)) = several.split_first() else { return false };
        let rest: Vec<Vec<Vec<Fact>>> = rest.iter().map(|r| (*r).clone()).collect();
        first.iter().all(|c| self.meets_none(named, [facts.as_slice(), c].concat(), &rest))
    }
    /// The number of questions; all had the right answer.
    fn consecution(&self, cube: usize, transition: usize, ask: &mut dyn FnMut(&Never) -> bool) -> Result<usize, Refused> {
        let t = &self.system.transitions[transition];
        let never = &self.cubes[cube];
        let mut asked = 0;
        let set: Vec<usize> = t.updates.iter().map(|u| u.symbol().index()).collect();
        if !self.symbols[cube].iter().any(|s| set.contains(s)) {
            // Nothing that the cube mentions changes; a read before it asks for more, not less.
            return Ok(0);
        }
        for (binding, named) in self.bindings(t.params.len(), never.named) {
            self.budget.check(0).map_err(Refused::Stopped)?;
            let world = self.world(named);
            let facts: Vec<Fact> = never
                .facts
                .iter()
                .map(|f| match f {
                    Fact::Among(c, set) if self.kinds[c.symbol] == Kind::Process => Fact::Among(c.clone(), wider(set, never.named, named)),
                    f => f.clone(),
                })
                .collect();
            let step = Step {
                system: self.system,
                kinds: &self.kinds,
                weak: &self.weak,
                index: &self.index,
                transition: t,
                binding: &binding,
                world,
            };
            for before in step.before(&facts) {
                asked += 1;
                let before = Never { named, facts: before };
                if !ask(&before) {
                    return Err(Refused::Consecution { cube, transition });
                }
            }
        }
        Ok(asked)
    }
    /// Whether the cube is inside the union of the certificate's and the assumed cubes.
    fn inside(&self, cube: &Never) -> bool {
        self.split(cube, MOST_CASES)
    }
    fn split(&self, cube: &Never, depth: u32) -> bool {
        if self.contradicts(cube.named, &cube.facts) {
            return true;
        }
        let present = symbols(&cube.facts);
        // Instances with the facts that do not follow: one without any covers the cube.
        let mut open: Option<Vec<Fact>> = None;
        for (i, c) in self.cubes.iter().enumerate() {
            let missing = self.symbols[i].iter().filter(|s| present.binary_search(s).is_err()).count();
            if c.named > cube.named.max(1) || missing > 1 || (missing > 0 && depth == 0) {
                continue;
            }
            let most = open.as_ref().map_or(3, |o| o.len().saturating_sub(1));
            if let Some(rest) = self.closest(c, cube, most) {
                if rest.is_empty() {
                    return true;
                }
                open = Some(rest);
            }
        }
        let Some(open) = open else { return false };
        if depth == 0 {
            return false;
        }
        let world = self.world(cube.named);
        let with = |f: Fact| Never { named: cube.named, facts: cube.facts.iter().cloned().chain([f]).collect() };
        self.split(&with(world.opposite(&open[0])), depth - 1) && self.split(&with(open[0].clone()), depth - 1)
    }
    /// The instance of `inner` of which the fewest facts, at most `most`, do not follow from the cube, and none is contradicted.
    fn closest(&self, inner: &Never, cube: &Never, most: usize) -> Option<Vec<Fact>> {
        let fixed = self.system.fixed as usize;
        let mut search = Matching { verifier: self, inner, cube, best: None, most };
        let mut names: Vec<u8> = (0..fixed as u8).collect();
        search.name(&mut names);
        search.best
    }
}

struct Matching<'a> {
    verifier: &'a Verifier<'a>,
    inner: &'a Never,
    cube: &'a Never,
    best: Option<Vec<Fact>>,
    most: usize,
}

impl Matching<'_> {
    fn done(&self) -> bool {
        self.best.as_ref().is_some_and(Vec::is_empty)
    }
    /// Names the processes of the inner cube one by one.
    fn name(&mut self, names: &mut Vec<u8>) {
        if self.done() {
            return;
        }
        if names.len() == self.inner.named {
            let views = {
                let mut v: Vec<(u8, u8)> = self.inner.facts.iter().flat_map(looks).collect();
                v.sort_unstable();
                v.dedup();
                v
            };
            self.place(names, &views, &mut Vec::new());
            return;
        }
        // A process that only looks, alone in its cube, may be one without a name where it looks now.
        for p in 0..self.cube.named.max(1) as u8 {
            if names.contains(&p) {
                continue;
            }
            names.push(p);
            if self.rest(names, None).is_some() {
                self.name(names);
            }
            names.pop();
        }
    }
    /// Places the stages of the inner cube one by one: at stages of the cube in the same order, or now.
    fn place(&mut self, names: &[u8], views: &[(u8, u8)], places: &mut Vec<Option<u8>>) {
        if self.done() {
            return;
        }
        let Some(view) = views.get(places.len()) else {
            if let Some(rest) = self.rest(names, Some((views, places)))
                && self.best.as_ref().is_none_or(|b| rest.len() < b.len())
            {
                self.most = rest.len();
                self.best = Some(rest);
            }
            return;
        };
        let process = names[usize::from(view.0)];
        let mut stages: Vec<u8> = self.cube.facts.iter().flat_map(looks).filter(|v| v.0 == process).map(|v| v.1).collect();
        stages.sort_unstable();
        stages.dedup();
        let previous = views.iter().zip(places.iter()).rfind(|(v, _)| v.0 == view.0).map(|x| *x.1);
        let shared = views.iter().zip(places.iter()).find(|(v, _)| v.1 == JOINT && view.1 == JOINT).map(|x| *x.1);
        let alone = views.iter().filter(|v| v.1 == JOINT).count() <= 1;
        let mut options: Vec<Option<u8>> = stages.into_iter().map(Some).chain([None]).collect();
        if view.1 == JOINT && !alone {
            // The moment that several share is that of the cube, or now.
            options = vec![Some(JOINT), None];
        }
        for option in options {
            let in_order = match (previous, option) {
                (None, _) | (Some(_), None) => true,
                (Some(None), Some(_)) => false,
                (Some(Some(x)), Some(y)) => x <= y,
            };
            if in_order && shared.is_none_or(|s| s == option) {
                places.push(option);
                self.place(names, views, places);
                places.pop();
            }
        }
    }
    /// The facts of the instance that do not follow; `None` if one is contradicted, or there are too many. Without places, facts at stages wait.
    fn rest(&self, names: &[u8], places: Option<(&[(u8, u8)], &[Option<u8>])>) -> Option<Vec<Fact>> {
        let mut rest = Vec::new();
        for fact in &self.inner.facts {
            let known = |p: u8| usize::from(p) < names.len();
            let all_known = cells(fact).iter().all(|c| c.args.iter().all(|a| known(*a)) && c.look.is_none_or(|v| known(v.0)))
                && looks(fact).iter().all(|v| known(v.0))
                && match fact {
                    Fact::Ahead(a, b, _) => [a, b].iter().all(|p| !matches!(p, Point::Named(n) if !known(*n))),
                    Fact::Among(c, set) if self.verifier.kinds[c.symbol] == Kind::Process => {
                        names.len() == self.inner.named || set.iter().all(|v| *v != OTHER && known(*v as u8))
                    }
                    _ => true,
                };
            if !all_known || (places.is_none() && !looks(fact).is_empty()) {
                continue;
            }
            match self.follows(fact, names, places) {
                Truth::Yes => {}
                Truth::No => return None,
                Truth::Open(f) => rest.push(f),
            }
            if rest.len() > self.most {
                return None;
            }
        }
        Some(rest)
    }
    fn follows(&self, fact: &Fact, names: &[u8], places: Option<(&[(u8, u8)], &[Option<u8>])>) -> Truth {
        let place = |view: (u8, u8)| {
            let (views, places) = places?;
            let at = views.iter().position(|v| *v == view)?;
            places[at].map(|s| (names[usize::from(view.0)], s))
        };
        let cell = |c: &Cell| Cell {
            symbol: c.symbol,
            args: c.args.iter().map(|a| names[usize::from(*a)]).collect(),
            look: c.look.and_then(place),
        };
        if let Fact::Fence(p, s) = fact {
            let Some((q, stage)) = place((*p, *s)) else { return Truth::Yes };
            let holds = self.cube.facts.iter().any(|f| matches!(f, Fact::Fence(r, t) if *r == q && *t <= stage));
            return if holds { Truth::Yes } else { Truth::No };
        }
        let image = match recell(fact, &cell) {
            Fact::Among(c, set) if self.verifier.kinds[c.symbol] == Kind::Process => {
                let mut image: Vec<u32> = set.iter().filter(|v| **v != OTHER).map(|v| u32::from(names[*v as usize])).collect();
                if set.contains(&OTHER) {
                    image.extend((0..self.cube.named as u32).filter(|p| names.iter().all(|n| u32::from(*n) != *p)));
                    image.push(OTHER);
                }
                Fact::Among(c, image)
            }
            Fact::Ahead(a, b, strict) => {
                let point = |p: Point| if let Point::Named(n) = p { Point::Named(names[usize::from(n)]) } else { p };
                Fact::Ahead(point(a), point(b), strict)
            }
            Fact::Twins(a, b, same) if a == b => return if same { Truth::Yes } else { Truth::No },
            f => f,
        };
        self.judge(image)
    }
    /// Whether the fact follows from the cube.
    fn judge(&self, fact: Fact) -> Truth {
        let facts = &self.cube.facts;
        if facts.contains(&fact) {
            return Truth::Yes;
        }
        let named = self.cube.named;
        let mut related: Vec<Cell> = cells(&fact);
        if let Fact::Among(c, set) = &fact
            && !facts.iter().any(|f| matches!(f, Fact::Twins(a, b, _) if a == c || b == c))
        {
            // Nothing but its own domain speaks of the cell.
            let mut domain = self.verifier.world(named).all(c);
            for f in facts {
                if let Fact::Among(d, s) = f
                    && d == c
                {
                    domain.retain(|v| s.contains(v));
                }
            }
            return if domain.iter().all(|v| set.contains(v)) {
                Truth::Yes
            } else if domain.iter().all(|v| !set.contains(v)) {
                Truth::No
            } else {
                Truth::Open(fact)
            };
        }
        related.retain(|c| facts.iter().any(|f| cells(f).contains(c)));
        if related.is_empty() && !matches!(fact, Fact::Ahead(..)) && !cells(&fact).is_empty() {
            return Truth::Open(fact);
        }
        let with = |f: Fact| [facts.as_slice(), &[f]].concat();
        if self.verifier.contradicts(named, &with(self.verifier.world(named).opposite(&fact))) {
            Truth::Yes
        } else if self.verifier.contradicts(named, &with(fact.clone())) {
            Truth::No
        } else {
            Truth::Open(fact)
        }
    }
}

enum Truth {
    Yes,
    No,
    Open(Fact),
}
