//! The verifier's own backward steps: for a cube and a transition, the conditions before the step,
//! as conjunctions. It reads the typed system itself.
//!
//! Under total store order it uses the meaning of stages defined in [`crate::stages`]: a write
//! reaches memory immediately, and each stage is either after it or reads the earlier memory. Here
//! *every* division that preserves the order of stages is tried; none is dropped for being covered.

use super::logic::{
    CertificateCell, Fact, JOINT, OTHER, Point, Set, ValueKind, World, cells, members, recell,
    singleton, stages_of,
};
use super::sums::{CellSum, LARGEST, Sign};
use super::words::{WordSum, Words};
use mu_base::narrow;
use mu_cubicle::system::{
    self, AssignedValue, Atom, CellAccess, ComparisonOp, Proc, System, Term, Transition, Update,
};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::ToPrimitive;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// A backward step.
pub struct BackwardStep<'a> {
    /// The system.
    pub system: &'a System,
    /// Kinds of symbols.
    pub kinds: &'a [ValueKind],
    /// True for each symbol that is written through store buffers.
    pub weak: &'a [bool],
    /// The index of each constructor in its type.
    pub index: &'a [u32],
    /// The transition.
    pub transition: &'a Transition,
    /// Its parameters.
    pub binding: &'a [u8],
    /// The processes.
    pub world: World<'a>,
    /// Set if a number is too large for a fact; then no answer counts.
    pub overflow: &'a AtomicBool,
}

/// A value before the step.
#[derive(Clone, Debug)]
enum PriorValue {
    Process(u8),
    Constant(u32),
    Cell(CertificateCell),
    Sum(ScaledSum),
}

/// Cells with integer factors and a constant, divided by a positive number.
#[derive(Clone, Debug)]
struct ScaledSum {
    terms: Vec<(CertificateCell, i128)>,
    constant: i128,
    scale: i128,
}

impl ScaledSum {
    /// Returns the sum as one of words; `None` if it has fractions.
    fn part(&self, bits: u32) -> Option<WordSum> {
        (self.scale == 1).then(|| WordSum::new(self.terms.iter().copied(), self.constant, bits))
    }
    /// True if it is, or contains, a value that an update leaves open.
    fn is_arbitrary(&self) -> bool {
        self.terms.iter().any(|(c, _)| c.look == FORGOTTEN)
    }
    /// Builds the comparison of a sum of these with factors as a fact.
    fn comparison(parts: &[(&ScaledSum, i128)], constant: i128, sign: Sign) -> Option<Fact> {
        let scale = parts.iter().fold(1, |l: i128, p| l.lcm(&p.0.scale));
        if scale > LARGEST {
            return None;
        }
        let (mut terms, mut sum) = (Vec::new(), constant.checked_mul(scale)?);
        for (part, by) in parts {
            let by = by.checked_mul(scale / part.scale)?;
            for (c, f) in &part.terms {
                terms.push((*c, f.checked_mul(by)?));
            }
            sum = sum.checked_add(part.constant.checked_mul(by)?)?;
        }
        CellSum::new(terms, sum, sign).map(Fact::Sum)
    }
}

/// The view of a value that an update overwrites with an arbitrary one.
const FORGOTTEN: Option<(u8, u8)> = Some((253, 253));

type Bound = Vec<(u32, u8)>;
/// A case: its condition, and the value; `None` if the cell is unchanged.
type Choice = (Vec<Fact>, Option<PriorValue>);

/// Translator of comparisons to facts, with processes and cells given by functions.
pub struct ComparisonTranslator<'a> {
    /// Maps a process.
    pub process: &'a dyn Fn(Proc) -> u8,
    /// Maps an access to its view.
    pub look: &'a dyn Fn(&CellAccess) -> Option<(u8, u8)>,
    /// The index of each constructor in its type.
    pub index: &'a [u32],
    /// The processes.
    pub world: World<'a>,
    /// Set if a number is too large for a fact.
    pub overflow: &'a AtomicBool,
}

impl ComparisonTranslator<'_> {
    fn cell(&self, a: &CellAccess) -> CertificateCell {
        CertificateCell::new(
            a.symbol.index(),
            a.args.iter().map(|p| (self.process)(*p)),
            (self.look)(a),
        )
    }
    fn prior_value(&self, term: &Term) -> PriorValue {
        match term {
            Term::Proc(p) => PriorValue::Process((self.process)(*p)),
            Term::Cons(c) => PriorValue::Constant(self.index[c.index()]),
            Term::Cell(a) => PriorValue::Cell(self.cell(a)),
            Term::Sum(s) => {
                let scale =
                    s.terms.iter().fold(s.constant.denom().clone(), |l, t| l.lcm(t.1.denom()));
                let by = BigRational::from_integer(scale.clone());
                let whole = |n: &BigRational| {
                    (n * &by).to_integer().to_i128().filter(|n| (-LARGEST..=LARGEST).contains(n))
                };
                let sum = || {
                    let terms = s
                        .terms
                        .iter()
                        .map(|(a, f)| Some((self.cell(a), whole(f)?)))
                        .collect::<Option<_>>()?;
                    Some(ScaledSum {
                        terms,
                        constant: whole(&s.constant)?,
                        scale: scale.to_i128().filter(|n| *n <= LARGEST)?,
                    })
                };
                PriorValue::Sum(sum().unwrap_or_else(|| {
                    self.overflow.store(true, Ordering::Relaxed);
                    ScaledSum { terms: Vec::new(), constant: 0, scale: 1 }
                }))
            }
        }
    }
    /// Builds a comparison of words; `None` if it always holds.
    fn words(&self, w: &system::Words) -> Option<Fact> {
        let part = |sum: &system::Sum| match self.prior_value(&Term::Sum(sum.clone())) {
            PriorValue::Sum(s) => self.part(&s, w.bits),
            _ => WordSum::default(),
        };
        let sign = match w.op {
            ComparisonOp::Eq => Sign::Zero,
            ComparisonOp::Neq => Sign::NotZero,
            ComparisonOp::Lt => Sign::Less,
            ComparisonOp::Le => Sign::AtMost,
        };
        word_fact(Words::new(w.bits, &part(&w.left), sign, &part(&w.right)))
    }
    fn part(&self, sum: &ScaledSum, bits: u32) -> WordSum {
        sum.part(bits).unwrap_or_else(|| {
            self.overflow.store(true, Ordering::Relaxed);
            WordSum::default()
        })
    }
    /// Returns the facts of a cube without fences, with true if it requires one.
    pub fn facts(&self, cube: &system::Cube) -> (Vec<Fact>, bool) {
        let mut facts = Vec::new();
        let mut fence = false;
        for atom in cube {
            match atom {
                Atom::False => facts.push(Fact::ExcludedCube),
                Atom::Fence(_) => fence = true,
                Atom::Compare(l, op, r) => facts.extend(compare(
                    self.world,
                    &self.prior_value(l),
                    *op,
                    &self.prior_value(r),
                    self.overflow,
                )),
                Atom::Words(w) => facts.extend(self.words(w)),
            }
        }
        (facts, fence)
    }
}

/// Returns a comparison of words as a fact; `None` if it always holds.
fn word_fact(words: Words) -> Option<Fact> {
    match words.truth() {
        Some(true) => None,
        Some(false) => Some(Fact::ExcludedCube),
        None => Some(Fact::Words(Box::new(words))),
    }
}

/// Builds `left op right`; `None` if it always holds.
fn compare(
    world: World<'_>,
    left: &PriorValue,
    op: ComparisonOp,
    right: &PriorValue,
    overflow: &AtomicBool,
) -> Option<Fact> {
    let known = |holds: bool| if holds { None } else { Some(Fact::ExcludedCube) };
    let equal = op == ComparisonOp::Eq;
    let among = |c: &CertificateCell, v: u32| {
        let set = if equal { singleton(v) } else { !singleton(v) };
        Some(Fact::Among(*c, world.all_values(c) & set))
    };
    let order = |a: Point, b: Point| match (&a, &b) {
        (Point::Named(x), Point::Named(y)) if x == y => known(op == ComparisonOp::Le),
        _ => Some(Fact::Ahead(a, b, op == ComparisonOp::Lt)),
    };
    let point = |h: &PriorValue| match h {
        PriorValue::Process(p) => Point::Named(*p),
        PriorValue::Cell(c) => Point::Held(*c),
        _ => unreachable!("the type checker lets only processes and numbers be ordered"),
    };
    match (left, right) {
        (PriorValue::Sum(a), PriorValue::Sum(b)) => {
            let sign = match op {
                ComparisonOp::Eq => Sign::Zero,
                ComparisonOp::Neq => Sign::NotZero,
                ComparisonOp::Lt => Sign::Less,
                ComparisonOp::Le => Sign::AtMost,
            };
            let fact = ScaledSum::comparison(&[(a, 1), (b, -1)], 0, sign);
            if fact.is_none() {
                overflow.store(true, Ordering::Relaxed);
            }
            fact
        }
        (l, r) if matches!(op, ComparisonOp::Lt | ComparisonOp::Le) => order(point(l), point(r)),
        (PriorValue::Process(a), PriorValue::Process(b)) => known((a == b) == equal),
        (PriorValue::Constant(a), PriorValue::Constant(b)) => known((a == b) == equal),
        (PriorValue::Cell(c), PriorValue::Constant(v))
        | (PriorValue::Constant(v), PriorValue::Cell(c)) => among(c, *v),
        (PriorValue::Cell(c), PriorValue::Process(p))
        | (PriorValue::Process(p), PriorValue::Cell(c)) => among(c, u32::from(*p)),
        (PriorValue::Cell(a), PriorValue::Cell(b)) if a == b => known(equal),
        (PriorValue::Cell(a), PriorValue::Cell(b)) => Some(Fact::Twins(*a, *b, equal)),
        _ => Some(Fact::ExcludedCube),
    }
}

/// A case of a step, for a counting invariant.
pub struct CountCase {
    /// The conditions before the step.
    pub before: Vec<Fact>,
    /// The assigned words, with their new values.
    pub sums: Vec<(CertificateCell, WordSum)>,
    /// The assigned cells of an enumeration, with their new values.
    pub values: Vec<(CertificateCell, u32)>,
}

impl BackwardStep<'_> {
    /// Returns the cases of the step with the new values of words and of cells of an enumeration;
    /// `None` if a new value is not a sum of words or no constant, or is arbitrary.
    pub fn changes(
        &self,
        words: &[CertificateCell],
        places: Vec<CertificateCell>,
        bits: u32,
    ) -> Option<Vec<CountCase>> {
        let (mut base, fence) = self.with(&Vec::new(), |r| r.facts(&self.transition.guard));
        if fence && self.weak.contains(&true) && !self.is_locked() {
            base.extend(self.actor().map(|p| Fact::Fence(p, 0)));
        }
        let start = CountCase { before: base, sums: Vec::new(), values: Vec::new() };
        let mut found = vec![start];
        for (cell, is_word) in
            words.iter().map(|c| (*c, true)).chain(places.into_iter().map(|c| (c, false)))
        {
            let mut next = Vec::new();
            for case in &found {
                for (condition, value) in self.set(&cell) {
                    let before = [case.before.as_slice(), &condition].concat();
                    let (mut sums, mut values) = (case.sums.clone(), case.values.clone());
                    match value {
                        None => {}
                        Some(PriorValue::Sum(s)) if is_word && !s.is_arbitrary() => {
                            sums.push((cell, s.part(bits)?));
                        }
                        Some(PriorValue::Constant(v)) if !is_word => values.push((cell, v)),
                        Some(_) => return None,
                    }
                    next.push(CountCase { before, sums, values });
                }
            }
            found = next;
        }
        found.retain(|c| !self.world.contradicts(&c.before));
        Some(found)
    }
    fn process(&self, p: Proc, bound: &Bound) -> u8 {
        match p {
            Proc::Fixed(n) => narrow::byte(n as usize - 1),
            Proc::Var(v) => {
                bound.iter().find(|b| b.0 == v).map_or_else(|| self.binding[v as usize], |b| b.1)
            }
        }
    }
    fn actor(&self) -> Option<u8> {
        self.transition.actor.map(|p| self.process(p, &Vec::new()))
    }
    /// True if it writes memory.
    fn writes(&self) -> bool {
        self.transition.updates.iter().any(|u| self.weak[u.symbol().index()])
    }
    fn is_locked(&self) -> bool {
        self.transition.locked && self.writes()
    }
    fn with<T>(&self, bound: &Bound, f: impl FnOnce(&ComparisonTranslator<'_>) -> T) -> T {
        let process = |p: Proc| self.process(p, bound);
        let actor = self.actor();
        let locked = self.is_locked();
        // The actor reads at its first stage from here on, or now if the access is locked.
        let look = |a: &CellAccess| {
            if self.weak[a.symbol.index()] && !locked { actor.map(|p| (p, 0)) } else { None }
        };
        f(&ComparisonTranslator {
            process: &process,
            look: &look,
            index: self.index,
            world: self.world,
            overflow: self.overflow,
        })
    }
    /// Returns all conjunctions from which the step may lead to the facts, except contradictory
    /// ones.
    pub fn predecessors(&self, after: &[Fact]) -> Vec<Vec<Fact>> {
        let mut facts: Vec<Fact> = after.to_vec();
        // Make room for the stage of this step.
        if let Some(p) = self.actor()
            && self.weak.contains(&true)
        {
            facts = facts
                .iter()
                .map(|f| relook(f, &|v| if v.0 == p && v.1 != JOINT { (v.0, v.1 + 1) } else { v }))
                .collect();
        }
        let mut views: Vec<(u8, u8)> = facts.iter().flat_map(stages_of).collect();
        views.sort_unstable();
        views.dedup();
        let mut found = Vec::new();
        for late in self.divisions(&facts, &views) {
            self.choices(&facts, &late, &mut found);
        }
        found
    }
    /// Returns the possible sets of stages after the write.
    fn divisions(&self, facts: &[Fact], views: &[(u8, u8)]) -> Vec<Vec<(u8, u8)>> {
        let mut sets: Vec<Vec<(u8, u8)>> = vec![Vec::new()];
        if !self.writes() {
            return sets;
        }
        // A stage may be after the write only if all later ones of its process are.
        for view in views.iter().rev() {
            let mut next = Vec::new();
            for s in &sets {
                let later =
                    views.iter().filter(|v| v.0 == view.0 && v.1 > view.1).all(|v| s.contains(v));
                // The shared stage is one moment.
                let shared = view.1 == JOINT && views.iter().any(|v| v.1 == JOINT && v > view);
                let shared_late = shared && views.iter().any(|v| v.1 == JOINT && s.contains(v));
                let own = Some(view.0) == self.actor();
                let fenced = own
                    && (self.is_locked()
                        || facts.iter().any(
                            |f| matches!(f, Fact::Fence(p, st) if *p == view.0 && *st <= view.1),
                        ));
                if !(fenced || shared && shared_late) {
                    next.push(s.clone());
                }
                if later && (!shared || shared_late) {
                    next.push([s.as_slice(), &[*view]].concat());
                }
            }
            sets = next;
        }
        // The run ends at the shared moment: no stage is later, and a write that its process has
        // seen in memory is not after it.
        let ends: Vec<&(u8, u8)> = views.iter().filter(|v| v.1 == JOINT).collect();
        let seen = self.is_locked()
            || facts.iter().any(|f| matches!(f, Fact::Fence(p, _) if Some(*p) == self.actor()));
        sets.retain(|s| {
            ends.is_empty() || ends.iter().all(|v| s.contains(v)) || s.is_empty() && !seen
        });
        sets
    }
    fn choices(&self, facts: &[Fact], late: &[(u8, u8)], found: &mut Vec<Vec<Fact>>) {
        let actor = self.actor();
        let mut cells: Vec<CertificateCell> = facts.iter().flat_map(cells).collect();
        cells.sort();
        cells.dedup();
        let (mut base, fence) = self.with(&Vec::new(), |r| r.facts(&self.transition.guard));
        let tso = self.weak.contains(&true) && !self.is_locked();
        if let Some(p) = actor
            && fence
            && tso
        {
            base.push(Fact::Fence(p, 0));
        }
        let mut values: BTreeMap<CertificateCell, Vec<Choice>> = BTreeMap::new();
        for cell in cells {
            let now = cell.with_view(None);
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
            let rest = if stays { cell } else { now };
            let mut list = self.set(&now);
            for c in &mut list {
                c.1.get_or_insert_with(|| self.own(&rest));
            }
            values.insert(cell, list);
        }
        let facts: Vec<Fact> = facts
            .iter()
            .filter(|f| !matches!(f, Fact::Fence(p, s) if late.contains(&(*p, *s))))
            .cloned()
            .collect();
        let order: Vec<&CertificateCell> = values.keys().collect();
        self.combine(&facts, &order, &values, &mut BTreeMap::new(), base, found);
    }
    fn own(&self, cell: &CertificateCell) -> PriorValue {
        match self.kinds[cell.symbol()] {
            ValueKind::Integer | ValueKind::Real | ValueKind::Word(_) => {
                PriorValue::Sum(ScaledSum { terms: vec![(*cell, 1)], constant: 0, scale: 1 })
            }
            _ => PriorValue::Cell(*cell),
        }
    }
    /// Returns the cell that represents an arbitrary value after an update.
    fn arbitrary_value(&self, cell: &CertificateCell) -> PriorValue {
        self.own(&cell.with_view(FORGOTTEN))
    }
    /// Returns the possible values that the step gives a cell.
    fn set(&self, cell: &CertificateCell) -> Vec<Choice> {
        let value = |v: &AssignedValue, bound: &Bound| match v {
            AssignedValue::Any => self.arbitrary_value(cell),
            AssignedValue::Term(t) => self.with(bound, |r| r.prior_value(t)),
        };
        for u in &self.transition.updates {
            if u.symbol().index() != cell.symbol() {
                continue;
            }
            match u {
                Update::Assign { args, value: v, .. } => {
                    if args.iter().map(|p| self.process(*p, &Vec::new())).eq(cell.args()) {
                        return vec![(Vec::new(), Some(value(v, &Vec::new())))];
                    }
                }
                Update::Cases { bound, cases, .. } => {
                    let bound: Bound = bound.iter().map(|b| b.0).zip(cell.args()).collect();
                    let mut list: Vec<Choice> = Vec::new();
                    let mut none_before: Vec<Vec<Fact>> = vec![Vec::new()];
                    for c in cases {
                        let (condition, _) = self.with(&bound, |r| r.facts(&c.condition));
                        // A case for other processes; including it would double the number of
                        // conjunctions.
                        if condition.contains(&Fact::ExcludedCube) {
                            continue;
                        }
                        let mut rest: Vec<Vec<Fact>> = Vec::new();
                        for n in &none_before {
                            let fits = [n.as_slice(), &condition].concat();
                            if !self.world.contradicts(&fits) {
                                list.push((fits, Some(value(&c.value, &bound))));
                            }
                            for f in &condition {
                                let fails: Vec<Fact> =
                                    n.iter().cloned().chain([self.world.opposite(f)]).collect();
                                let weaker = |r: &Vec<Fact>| r.iter().all(|f| fails.contains(f));
                                if !self.world.contradicts(&fails) && !rest.iter().any(weaker) {
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
        order: &[&CertificateCell],
        values: &BTreeMap<CertificateCell, Vec<Choice>>,
        chosen: &mut BTreeMap<CertificateCell, PriorValue>,
        so_far: Vec<Fact>,
        found: &mut Vec<Vec<Fact>>,
    ) {
        let Some((cell, rest)) = order.split_first() else {
            let mut before = so_far;
            for f in facts {
                before.extend(self.put(f, chosen));
            }
            let lost: Vec<CertificateCell> =
                before.iter().flat_map(cells).filter(|c| c.look == FORGOTTEN).collect();
            if !lost.is_empty() && self.world.contradicts(&before) {
                return;
            }
            for c in lost {
                before = self.world.eliminate_cell(before, &c);
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
            chosen.insert(**cell, value.clone());
            // Facts about this cell alone are now decidable.
            let fails = |f: &Fact| {
                self.put(f, chosen)
                    .is_some_and(|f| cells(&f).is_empty() && self.world.contradicts(&[f]))
            };
            if values[*cell].len() > 1 && facts.iter().any(|f| cells(f) == [**cell] && fails(f)) {
                chosen.remove(*cell);
                continue;
            }
            self.combine(facts, rest, values, chosen, next, found);
            chosen.remove(*cell);
        }
    }
    /// Substitutes the chosen values in a fact.
    fn put(&self, fact: &Fact, chosen: &BTreeMap<CertificateCell, PriorValue>) -> Option<Fact> {
        let of = |c: &CertificateCell| chosen.get(c).cloned().unwrap_or_else(|| self.own(c));
        let point = |p: &Point| match p {
            Point::Named(n) => PriorValue::Process(*n),
            Point::Held(c) => of(c),
        };
        let compare =
            |a: PriorValue, op, b: PriorValue| compare(self.world, &a, op, &b, self.overflow);
        let known = |holds: bool| if holds { None } else { Some(Fact::ExcludedCube) };
        match fact {
            Fact::Among(c, set) => match of(c) {
                PriorValue::Process(p) => known(set & singleton(u32::from(p)) != 0),
                PriorValue::Constant(v) => known(set & singleton(v) != 0),
                PriorValue::Cell(c) => Some(Fact::Among(c, *set)),
                PriorValue::Sum(..) => None,
            },
            Fact::Twins(a, b, same) => {
                compare(of(a), if *same { ComparisonOp::Eq } else { ComparisonOp::Neq }, of(b))
            }
            Fact::Ahead(a, b, strict) => compare(
                point(a),
                if *strict { ComparisonOp::Lt } else { ComparisonOp::Le },
                point(b),
            ),
            Fact::Sum(s) if s.terms.iter().all(|t| !chosen.contains_key(&t.0)) => {
                Some(fact.clone())
            }
            Fact::Sum(s) => {
                let values: Vec<(PriorValue, i128)> =
                    s.terms.iter().map(|(c, f)| (of(c), *f)).collect();
                let parts: Vec<(&ScaledSum, i128)> = values
                    .iter()
                    .filter_map(
                        |(v, f)| if let PriorValue::Sum(p) = v { Some((p, *f)) } else { None },
                    )
                    .collect();
                let fact = ScaledSum::comparison(&parts, s.constant, s.sign);
                if fact.is_none() {
                    self.overflow.store(true, Ordering::Relaxed);
                }
                fact
            }
            Fact::Words(w) => {
                let sum = |c: &CertificateCell| {
                    let PriorValue::Sum(s) = chosen.get(c)? else { return None };
                    let part = s.part(w.bits);
                    if part.is_none() {
                        self.overflow.store(true, Ordering::Relaxed);
                    }
                    part
                };
                word_fact(w.put(&sum))
            }
            Fact::Fence(..) | Fact::ExcludedCube => Some(fact.clone()),
        }
    }
    /// Adds `forall_other` for all named processes.
    fn everyone(&self, before: Vec<Fact>, found: &mut Vec<Vec<Fact>>) {
        let mut list = vec![before];
        for u in &self.transition.universal {
            for q in (0..narrow::byte(self.world.named))
                .filter(|q| !self.binding[..self.transition.declared].contains(q))
            {
                let bound = vec![(u.var, q)];
                let cubes: Vec<Vec<Fact>> = u
                    .dnf
                    .iter()
                    .map(|cube| {
                        let (mut facts, fence) = self.with(&bound, |r| r.facts(cube));
                        if fence
                            && self.weak.contains(&true)
                            && !self.is_locked()
                            && let Some(p) = self.actor()
                        {
                            facts.push(Fact::Fence(p, 0));
                        }
                        facts
                    })
                    .filter(|facts| !facts.contains(&Fact::ExcludedCube))
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

fn relook(fact: &Fact, to: &dyn Fn((u8, u8)) -> (u8, u8)) -> Fact {
    match fact {
        Fact::Fence(p, s) => {
            let (p, s) = to((*p, *s));
            Fact::Fence(p, s)
        }
        f => recell(f, &|c| c.with_view(c.look.map(to))),
    }
}

/// Converts a set of processes to more names.
pub fn wider(set: Set, from: usize, named: usize) -> Set {
    if set & singleton(OTHER) == 0 {
        set
    } else {
        set | members(singleton(narrow::index(named)) - 1)
            .filter(|v| *v >= narrow::index(from))
            .fold(0, |s, v| s | singleton(v))
    }
}
