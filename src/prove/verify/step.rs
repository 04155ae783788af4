//! The verifier's own steps: for a cube and a transition, what must hold before, as conjunctions. It reads the typed system itself.
//!
//! Under total store order it uses the same meaning of stages as the certificate ([`crate::stages`] says it): a write reaches memory at once, and each stage
//! looks either after it or at what memory was. Here *every* division is tried that keeps the order of stages; nothing is left out for being covered.

use super::logic::{Cell, Fact, JOINT, Kind, OTHER, Point, Sign, World};
use mu_cubicle::system::{self, Access, Atom, Op, Proc, System, Term, Transition, Update, Value};
use num_rational::BigRational;
use num_traits::{One, Zero};
use std::collections::BTreeMap;

/// What is left when a step is undone.
pub struct Step<'a> {
    /// The system.
    pub system: &'a System,
    /// Kinds of symbols.
    pub kinds: &'a [Kind],
    /// Which symbols go through store buffers.
    pub weak: &'a [bool],
    /// The index of each constructor in its type.
    pub index: &'a [u32],
    /// The transition.
    pub transition: &'a Transition,
    /// Its parameters.
    pub binding: &'a [u8],
    /// The processes.
    pub world: World<'a>,
}

/// A value before the step.
#[derive(Clone, Debug)]
enum Held {
    Process(u8),
    Constant(u32),
    Cell(Cell),
    Sum(BTreeMap<Cell, BigRational>, BigRational),
}

type Bound = Vec<(u32, u8)>;
/// A case: its condition, and the value; none if the cell keeps its own.
type Choice = (Vec<Fact>, Option<Held>);

/// The fact that a comparison is, for processes and cells given by functions.
pub struct Reader<'a> {
    /// The process of a name.
    pub process: &'a dyn Fn(Proc) -> u8,
    /// How an access is seen.
    pub look: &'a dyn Fn(&Access) -> Option<(u8, u8)>,
    /// The index of each constructor in its type.
    pub index: &'a [u32],
    /// The processes.
    pub world: World<'a>,
}

impl Reader<'_> {
    fn cell(&self, a: &Access) -> Cell {
        Cell { symbol: a.symbol.index(), args: a.args.iter().map(|p| (self.process)(*p)).collect(), look: (self.look)(a) }
    }
    fn held(&self, term: &Term) -> Held {
        match term {
            Term::Proc(p) => Held::Process((self.process)(*p)),
            Term::Cons(c) => Held::Constant(self.index[c.index()]),
            Term::Cell(a) => Held::Cell(self.cell(a)),
            Term::Sum(s) => {
                let mut terms: BTreeMap<Cell, BigRational> = BTreeMap::new();
                for (a, f) in &s.terms {
                    *terms.entry(self.cell(a)).or_insert_with(BigRational::zero) += f;
                }
                terms.retain(|_, f| !f.is_zero());
                Held::Sum(terms, s.constant.clone())
            }
        }
    }
    /// The facts of a cube without fences, and whether it asks for one.
    pub fn facts(&self, cube: &system::Cube) -> (Vec<Fact>, bool) {
        let mut facts = Vec::new();
        let mut fence = false;
        for atom in cube {
            match atom {
                Atom::False => facts.push(Fact::Never),
                Atom::Fence(_) => fence = true,
                Atom::Compare(l, op, r) => facts.extend(compare(self.world, &self.held(l), *op, &self.held(r))),
            }
        }
        (facts, fence)
    }
}

/// `left op right`; nothing if it always holds.
fn compare(world: World<'_>, left: &Held, op: Op, right: &Held) -> Option<Fact> {
    let known = |holds: bool| if holds { None } else { Some(Fact::Never) };
    let equal = op == Op::Eq;
    let among = |c: &Cell, v: u32| {
        let set = world.all(c).into_iter().filter(|x| (*x == v) == equal).collect();
        Some(Fact::Among(c.clone(), set))
    };
    let order = |a: Point, b: Point| match (&a, &b) {
        (Point::Named(x), Point::Named(y)) if x == y => known(op == Op::Le),
        _ => Some(Fact::Ahead(a, b, op == Op::Lt)),
    };
    let point = |h: &Held| match h {
        Held::Process(p) => Point::Named(*p),
        Held::Cell(c) => Point::Held(c.clone()),
        _ => unreachable!("the type checker lets only processes and numbers be ordered"),
    };
    match (left, right) {
        (Held::Sum(a, c), Held::Sum(b, d)) => {
            let mut terms = a.clone();
            for (cell, f) in b {
                *terms.entry(cell.clone()).or_insert_with(BigRational::zero) -= f;
            }
            terms.retain(|_, f| !f.is_zero());
            let sign = match op {
                Op::Eq => Sign::Zero,
                Op::Neq => Sign::NotZero,
                Op::Lt => Sign::Less,
                Op::Le => Sign::AtMost,
            };
            Some(Fact::Sum(terms, c - d, sign))
        }
        (l, r) if matches!(op, Op::Lt | Op::Le) => order(point(l), point(r)),
        (Held::Process(a), Held::Process(b)) => known((a == b) == equal),
        (Held::Constant(a), Held::Constant(b)) => known((a == b) == equal),
        (Held::Cell(c), Held::Constant(v)) | (Held::Constant(v), Held::Cell(c)) => among(c, *v),
        (Held::Cell(c), Held::Process(p)) | (Held::Process(p), Held::Cell(c)) => among(c, u32::from(*p)),
        (Held::Cell(a), Held::Cell(b)) if a == b => known(equal),
        (Held::Cell(a), Held::Cell(b)) => Some(Fact::Twins(a.clone(), b.clone(), equal)),
        _ => Some(Fact::Never),
    }
}

impl Step<'_> {
    fn process(&self, p: Proc, bound: &Bound) -> u8 {
        match p {
            Proc::Fixed(n) => (n - 1) as u8,
            Proc::Var(v) => bound.iter().find(|b| b.0 == v).map_or_else(|| self.binding[v as usize], |b| b.1),
        }
    }
    fn actor(&self) -> Option<u8> {
        self.transition.actor.map(|p| self.process(p, &Vec::new()))
    }
    /// Whether it writes memory.
    fn writes(&self) -> bool {
        self.transition.updates.iter().any(|u| self.weak[u.symbol().index()])
    }
    fn locked(&self) -> bool {
        self.transition.locked && self.writes()
    }
    fn with<T>(&self, bound: &Bound, f: impl FnOnce(&Reader<'_>) -> T) -> T {
        let process = |p: Proc| self.process(p, bound);
        let actor = self.actor();
        let locked = self.locked();
        // What the actor reads, it reads at its first stage from here on, or now if the access is locked.
        let look = |a: &Access| if self.weak[a.symbol.index()] && !locked { actor.map(|p| (p, 0)) } else { None };
        f(&Reader { process: &process, look: &look, index: self.index, world: self.world })
    }
    /// All conjunctions from which the step may lead to the facts. None are left out but those that contradict themselves.
    pub fn before(&self, after: &[Fact]) -> Vec<Vec<Fact>> {
        let mut facts: Vec<Fact> = after.to_vec();
        // Room for the stage of this step.
        if let Some(p) = self.actor()
            && self.weak.contains(&true)
        {
            facts = facts.iter().map(|f| relook(f, &|v| if v.0 == p && v.1 != JOINT { (v.0, v.1 + 1) } else { v })).collect();
        }
        let mut views: Vec<(u8, u8)> = facts.iter().flat_map(looks).collect();
        views.sort_unstable();
        views.dedup();
        let mut found = Vec::new();
        for late in self.divisions(&facts, &views) {
            self.choices(&facts, &late, &mut found);
        }
        found
    }
    /// Which stages look after the write.
    fn divisions(&self, facts: &[Fact], views: &[(u8, u8)]) -> Vec<Vec<(u8, u8)>> {
        let mut sets: Vec<Vec<(u8, u8)>> = vec![Vec::new()];
        if !self.writes() {
            return sets;
        }
        // A stage may be late only if all later ones of its process are.
        for view in views.iter().rev() {
            let mut next = Vec::new();
            for s in &sets {
                let later = views.iter().filter(|v| v.0 == view.0 && v.1 > view.1).all(|v| s.contains(v));
                // The shared stage is one moment.
                let shared = view.1 == JOINT && views.iter().any(|v| v.1 == JOINT && v > view);
                let shared_late = shared && views.iter().any(|v| v.1 == JOINT && s.contains(v));
                let own = Some(view.0) == self.actor();
                let fenced =
                    own && (self.locked() || facts.iter().any(|f| matches!(f, Fact::Fence(p, st) if *p == view.0 && *st <= view.1)));
                if !(fenced || shared && shared_late) {
                    next.push(s.clone());
                }
                if later && (!shared || shared_late) {
                    next.push([s.as_slice(), &[*view]].concat());
                }
            }
            sets = next;
        }
        sets
    }
    fn choices(&self, facts: &[Fact], late: &[(u8, u8)], found: &mut Vec<Vec<Fact>>) {
        let actor = self.actor();
        let mut cells: Vec<Cell> = facts.iter().flat_map(cells).collect();
        cells.sort();
        cells.dedup();
        let (mut base, fence) = self.with(&Vec::new(), |r| r.facts(&self.transition.guard));
        let tso = self.weak.contains(&true) && !self.locked();
        if let Some(p) = actor
            && fence
            && tso
        {
            base.push(Fact::Fence(p, 0));
        }
        let mut values: BTreeMap<Cell, Vec<Choice>> = BTreeMap::new();
        for cell in cells {
            let now = Cell { look: None, ..cell.clone() };
            let stays = match cell.look {
                Some(v) if late.contains(&v) => false,
                Some(v) => {
                    if Some(v.0) != actor {
                        continue;
                    }
                    true
                }
                None => false,
            };
            let rest = if stays { cell.clone() } else { now.clone() };
            let mut list = self.set(&now);
            for c in &mut list {
                c.1.get_or_insert_with(|| self.own(&rest));
            }
            values.insert(cell, list);
        }
        let facts: Vec<Fact> = facts.iter().filter(|f| !matches!(f, Fact::Fence(p, s) if late.contains(&(*p, *s)))).cloned().collect();
        let order: Vec<&Cell> = values.keys().collect();
        self.combine(&facts, &order, &values, &mut BTreeMap::new(), base, found);
    }
    fn own(&self, cell: &Cell) -> Held {
        match self.kinds[cell.symbol] {
            Kind::Integer | Kind::Real => Held::Sum(BTreeMap::from([(cell.clone(), BigRational::one())]), BigRational::zero()),
            _ => Held::Cell(cell.clone()),
        }
    }
    /// The cell that stands for the value after an update to anything.
    fn forgotten(&self, cell: &Cell) -> Held {
        self.own(&Cell { look: Some((253, 253)), ..cell.clone() })
    }
    /// What the step sets a cell to.
    fn set(&self, cell: &Cell) -> Vec<Choice> {
        let value = |v: &Value, bound: &Bound| match v {
            Value::Any => self.forgotten(cell),
            Value::Term(t) => self.with(bound, |r| r.held(t)),
        };
        for u in &self.transition.updates {
            if u.symbol().index() != cell.symbol {
                continue;
            }
            match u {
                Update::Assign { args, value: v, .. } => {
                    if args.iter().map(|p| self.process(*p, &Vec::new())).eq(cell.args.iter().copied()) {
                        return vec![(Vec::new(), Some(value(v, &Vec::new())))];
                    }
                }
                Update::Cases { bound, cases, .. } => {
                    let bound: Bound = bound.iter().map(|b| b.0).zip(cell.args.iter().copied()).collect();
                    let mut list: Vec<Choice> = Vec::new();
                    let mut none_before: Vec<Vec<Fact>> = vec![Vec::new()];
                    for c in cases {
                        let (condition, _) = self.with(&bound, |r| r.facts(&c.condition));
                        let mut rest = Vec::new();
                        for n in &none_before {
                            let fits = [n.as_slice(), &condition].concat();
                            if !self.world.contradicts(&fits) {
                                list.push((fits, Some(value(&c.value, &bound))));
                            }
                            for f in &condition {
                                let opposite = if *f == Fact::Never { None } else { Some(self.world.opposite(f)) };
                                let fails: Vec<Fact> = n.iter().cloned().chain(opposite).collect();
                                if !self.world.contradicts(&fails) && !rest.contains(&fails) {
                                    rest.push(fails);
                                }
                            }
                        }
                        none_before = rest;
                    }
                    list.extend(none_before.into_iter().map(|n| (n, None)));
                    return list;
                }
            }
        }
        vec![(Vec::new(), None)]
    }
    fn combine(
        &self,
        facts: &[Fact],
        order: &[&Cell],
        values: &BTreeMap<Cell, Vec<Choice>>,
        chosen: &mut BTreeMap<Cell, Held>,
        so_far: Vec<Fact>,
        found: &mut Vec<Vec<Fact>>,
    ) {
        let Some((cell, rest)) = order.split_first() else {
            let mut before = so_far;
            for f in facts {
                before.extend(self.put(f, chosen));
            }
            let lost: Vec<Cell> = before.iter().flat_map(cells).filter(|c| c.look == Some((253, 253))).collect();
            if !lost.is_empty() && self.world.contradicts(&before) {
                return;
            }
            for c in lost {
                before = self.world.without(before, &c);
            }
            self.everyone(before, found);
            return;
        };
        for (condition, value) in &values[*cell] {
            let Some(value) = value else { continue };
            let next = [so_far.as_slice(), condition].concat();
            if values[*cell].len() > 1 && self.world.contradicts(&next) {
                continue;
            }
            chosen.insert((*cell).clone(), value.clone());
            self.combine(facts, rest, values, chosen, next, found);
            chosen.remove(*cell);
        }
    }
    /// The fact with the chosen values in it.
    fn put(&self, fact: &Fact, chosen: &BTreeMap<Cell, Held>) -> Option<Fact> {
        let of = |c: &Cell| chosen.get(c).cloned().unwrap_or_else(|| self.own(c));
        let point = |p: &Point| match p {
            Point::Named(n) => Held::Process(*n),
            Point::Held(c) => of(c),
        };
        let known = |holds: bool| if holds { None } else { Some(Fact::Never) };
        match fact {
            Fact::Among(c, set) => match of(c) {
                Held::Process(p) => known(set.contains(&u32::from(p))),
                Held::Constant(v) => known(set.contains(&v)),
                Held::Cell(c) => Some(Fact::Among(c, set.clone())),
                Held::Sum(..) => None,
            },
            Fact::Twins(a, b, same) => compare(self.world, &of(a), if *same { Op::Eq } else { Op::Neq }, &of(b)),
            Fact::Ahead(a, b, strict) => compare(self.world, &point(a), if *strict { Op::Lt } else { Op::Le }, &point(b)),
            Fact::Sum(terms, constant, sign) => {
                let mut sum: BTreeMap<Cell, BigRational> = BTreeMap::new();
                let mut constant = constant.clone();
                for (c, f) in terms {
                    if let Held::Sum(more, add) = of(c) {
                        for (d, g) in more {
                            *sum.entry(d).or_insert_with(BigRational::zero) += f * g;
                        }
                        constant += f * add;
                    }
                }
                sum.retain(|_, f| !f.is_zero());
                Some(Fact::Sum(sum, constant, *sign))
            }
            Fact::Fence(..) | Fact::Never => Some(fact.clone()),
        }
    }
    /// Lets `forall_other` hold of all named processes.
    fn everyone(&self, before: Vec<Fact>, found: &mut Vec<Vec<Fact>>) {
        let mut list = vec![before];
        for u in &self.transition.universal {
            for q in (0..self.world.named as u8).filter(|q| !self.binding[..self.transition.declared].contains(q)) {
                let bound = vec![(u.var, q)];
                let cubes: Vec<Vec<Fact>> = u
                    .dnf
                    .iter()
                    .map(|cube| {
                        let (mut facts, fence) = self.with(&bound, |r| r.facts(cube));
                        if fence
                            && self.weak.contains(&true)
                            && !self.locked()
                            && let Some(p) = self.actor()
                        {
                            facts.push(Fact::Fence(p, 0));
                        }
                        facts
                    })
                    .filter(|facts| !facts.contains(&Fact::Never))
                    .collect();
                if cubes.iter().any(Vec::is_empty) {
                    continue;
                }
                list = list
                    .iter()
                    .flat_map(|b| cubes.iter().map(move |c| [b.as_slice(), c].concat()))
                    .filter(|b| cubes.len() == 1 || !self.world.contradicts(b))
                    .collect();
            }
        }
        found.extend(list.into_iter().filter(|b| !self.world.contradicts(b)));
    }
}

/// The cells of a fact.
pub fn cells(fact: &Fact) -> Vec<Cell> {
    match fact {
        Fact::Among(c, _) => vec![c.clone()],
        Fact::Twins(a, b, _) => vec![a.clone(), b.clone()],
        Fact::Ahead(a, b, _) => [a, b].into_iter().filter_map(|p| if let Point::Held(c) = p { Some(c.clone()) } else { None }).collect(),
        Fact::Sum(terms, ..) => terms.keys().cloned().collect(),
        Fact::Fence(..) | Fact::Never => Vec::new(),
    }
}

/// The stages that a fact mentions.
pub fn looks(fact: &Fact) -> Vec<(u8, u8)> {
    match fact {
        Fact::Fence(p, s) => vec![(*p, *s)],
        f => cells(f).into_iter().filter_map(|c| c.look).collect(),
    }
}

/// The fact with each cell replaced.
pub fn recell(fact: &Fact, to: &dyn Fn(&Cell) -> Cell) -> Fact {
    match fact {
        Fact::Among(c, set) => Fact::Among(to(c), set.clone()),
        Fact::Twins(a, b, same) => Fact::Twins(to(a), to(b), *same),
        Fact::Ahead(a, b, strict) => {
            let point = |p: &Point| if let Point::Held(c) = p { Point::Held(to(c)) } else { p.clone() };
            Fact::Ahead(point(a), point(b), *strict)
        }
        Fact::Sum(terms, constant, sign) => {
            let mut sum: BTreeMap<Cell, BigRational> = BTreeMap::new();
            for (c, f) in terms {
                *sum.entry(to(c)).or_insert_with(BigRational::zero) += f;
            }
            sum.retain(|_, f| !f.is_zero());
            Fact::Sum(sum, constant.clone(), *sign)
        }
        Fact::Fence(..) | Fact::Never => fact.clone(),
    }
}

fn relook(fact: &Fact, to: &dyn Fn((u8, u8)) -> (u8, u8)) -> Fact {
    match fact {
        Fact::Fence(p, s) => {
            let (p, s) = to((*p, *s));
            Fact::Fence(p, s)
        }
        f => recell(f, &|c| Cell { look: c.look.map(to), ..c.clone() }),
    }
}

/// The values of a set of processes when there are more names.
pub fn wider(set: &[u32], from: usize, named: usize) -> Vec<u32> {
    let mut set = set.to_vec();
    if set.contains(&OTHER) {
        set.extend(from as u32..named as u32);
    }
    set
}
