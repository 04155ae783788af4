//! Membership of machine states in the cubes of a certificate.
//!
//! Input: a certificate as text, a state with store buffers, an order in which their entries reach
//! memory. Output: the first cube that contains the state. A proof describes a run in which writes
//! reach memory immediately and reads read memory at earlier *moments*. Moment 0 is the state
//! itself, moment `i` follows `i` entries of the order; memory now is memory after all of them. The
//! view of a process at a moment is its newest entry that is not in memory then, else memory. The
//! stages of one process are non-decreasing moments. The shared stage (`p@*`) is one moment for all
//! processes, and no other stage is later.
//!
//! The parser and the semantics of facts are independent of the verifier. Cost: choices of
//! processes and moments, pruned by the facts that are decided.

use super::machine::{AuditMachine, MachineState};
use super::value::{AuditValue, Number, plus, times};
use mu_base::narrow;
use mu_cubicle::system::{SymbolKind, System, TypeId};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Zero;
use std::cmp::Ordering;

/// The number of the shared stage.
const SHARED: u16 = u16::MAX;

/// The process of a view, by name, and the stage.
type View = (usize, u16);

/// A cell with its view.
#[derive(Clone, Debug)]
pub(super) struct InvariantCell {
    pub(super) symbol: usize,
    pub(super) args: Vec<usize>,
    view: Option<View>,
}

/// A process: a name, or the content of a cell.
#[derive(Clone, Debug)]
pub(super) enum Point {
    Name(usize),
    Held(InvariantCell),
}

/// The comparison of a sum with zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    AtMost,
    Less,
    Zero,
    NotZero,
}

impl Sign {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Sign::AtMost => order.is_le(),
            Sign::Less => order.is_lt(),
            Sign::Zero => order.is_eq(),
            Sign::NotZero => order.is_ne(),
        }
    }
    /// Returns a value of the sum that satisfies the comparison.
    pub(super) fn offset(self) -> i64 {
        match self {
            Sign::AtMost | Sign::Zero => 0,
            Sign::Less | Sign::NotZero => -1,
        }
    }
}

/// A fact of a cube.
#[derive(Clone, Debug)]
pub(super) enum Fact {
    /// A cell contains one of the named processes, or an unnamed one.
    Processes { cell: InvariantCell, names: Vec<usize>, other: bool },
    /// A cell contains one of the constructors.
    Constructors(InvariantCell, Vec<u32>),
    /// Two cells are equal, or differ.
    Equal(InvariantCell, InvariantCell, bool),
    /// A process precedes another one, strictly or not.
    Before(Point, Point, bool),
    /// A sum compares with zero.
    Sum { terms: Vec<(Number, InvariantCell)>, constant: Number, sign: Sign },
    /// The remainders of two sums modulo 2^bits compare.
    Words { bits: u32, left: SumPart, sign: Sign, right: SumPart },
    /// All entries of a process are in memory at the stage.
    Fence(View),
}

/// A sum of words: cells with factors, and the constant part.
pub(super) type SumPart = (Vec<(i128, InvariantCell)>, i128);

/// A cube, with its facts grouped by the choice after which they are decided.
#[derive(Clone, Debug)]
pub struct Cube {
    /// Number of names; the first are `#1`, `#2`, ..
    pub names: usize,
    /// The views, sorted by process and stage, the shared one last.
    views: Vec<View>,
    /// For each number of choices: the facts that are then decided.
    facts: Vec<Vec<Fact>>,
}

impl Cube {
    /// Returns all facts.
    pub(super) fn all_facts(&self) -> impl Iterator<Item = &Fact> {
        self.facts.iter().flatten()
    }
}

/// The cubes of a certificate.
pub struct Invariant {
    /// True if the certificate is for total store order.
    pub tso: bool,
    /// The cubes, which contain no reachable state.
    pub cubes: Vec<Cube>,
    /// Number of names `#1`, `#2`, ..
    pub fixed: usize,
    /// Counting invariants: an array, the constructors that count, the number of bits, and the sum
    /// of memory after all buffers.
    counts: Vec<(usize, Vec<u32>, u32, SumPart)>,
}

/// A state with an order in which the entries of its buffers reach memory.
pub struct Timeline<'a> {
    machine: &'a AuditMachine<'a>,
    state: &'a MachineState,
    /// For each moment: the process of the next entry, and the position of the entry in its buffer.
    order: Vec<(u32, usize)>,
    /// True if a number overflowed, so that some cube was not decided.
    overflow: std::cell::Cell<bool>,
}

impl<'a> Timeline<'a> {
    /// Creates a timeline; `order` contains each process once for each entry of its buffer.
    pub fn new(machine: &'a AuditMachine<'a>, state: &'a MachineState, order: &[u32]) -> Self {
        let mut counts = vec![0; state.buffers.len()];
        let place = |p: &u32| {
            let count = &mut counts[*p as usize];
            *count += 1;
            (*p, *count - 1)
        };
        Self { machine, state, order: order.iter().map(place).collect(), overflow: false.into() }
    }

    /// True if some cube was not decided.
    pub fn is_undecided(&self) -> bool {
        self.overflow.get()
    }

    fn entry(&self, at: usize, slot: usize) -> Option<AuditValue> {
        let (p, place) = self.order[at];
        self.state.buffers[p as usize][place].iter().find(|w| w.0 == slot).map(|w| w.1)
    }

    /// Returns the value of memory at a moment.
    fn memory(&self, moment: usize, slot: usize) -> AuditValue {
        (0..moment).rev().find_map(|at| self.entry(at, slot)).unwrap_or(self.state.cells[slot])
    }

    /// Returns the view of a process at a moment.
    fn value_in_view(&self, process: u32, moment: usize, slot: usize) -> AuditValue {
        let own = (moment..self.order.len()).rev().filter(|at| self.order[*at].0 == process);
        own.into_iter()
            .find_map(|at| self.entry(at, slot))
            .unwrap_or_else(|| self.memory(moment, slot))
    }

    /// True if all entries of a process are in memory at a moment.
    fn is_empty(&self, process: u32, moment: usize) -> bool {
        self.order[moment..].iter().all(|e| e.0 != process)
    }
}

/// A partial choice for a cube: processes of names, moments of views.
struct PartialAssignment<'c, 't> {
    cube: &'c Cube,
    timeline: &'c Timeline<'t>,
    names: Vec<u32>,
    moments: Vec<usize>,
}

impl PartialAssignment<'_, '_> {
    /// True if the remaining choices can be made such that all facts hold.
    fn holds(&mut self) -> bool {
        let made = self.names.len() + self.moments.len();
        if !self.cube.facts[made].iter().all(|f| self.fact(f)) {
            return false;
        }
        if self.names.len() < self.cube.names {
            return (0..self.timeline.machine.n).any(|p| {
                if self.names.contains(&p) {
                    return false;
                }
                self.names.push(p);
                let found = self.holds();
                self.names.pop();
                found
            });
        }
        let Some(view) = self.cube.views.get(self.moments.len()) else { return true };
        let earlier = self
            .cube
            .views
            .iter()
            .zip(&self.moments)
            .filter(|(v, _)| view.1 == SHARED || v.0 == view.0);
        let least = earlier.map(|(_, at)| *at).max().unwrap_or(0);
        (least..=self.timeline.order.len()).any(|at| {
            self.moments.push(at);
            let found = self.holds();
            self.moments.pop();
            found
        })
    }

    fn moment(&self, view: View) -> usize {
        let is = |v: &View| if view.1 == SHARED { v.1 == SHARED } else { *v == view };
        let at = self.cube.views.iter().position(is).expect("a cube lists the views of its facts");
        self.moments[at]
    }

    fn value(&self, cell: &InvariantCell) -> AuditValue {
        let t = self.timeline;
        let slot = t.machine.slot(cell.symbol, cell.args.iter().map(|a| self.names[*a]));
        if !t.machine.tso || t.machine.system.symbols[cell.symbol].kind != SymbolKind::Weak {
            return t.state.cells[slot];
        }
        match cell.view {
            Some(view) => t.value_in_view(self.names[view.0], self.moment(view), slot),
            None => t.memory(t.order.len(), slot),
        }
    }

    /// Returns the remainder of a sum of words.
    fn remainder(&self, (terms, constant): &SumPart, bits: u32) -> Option<i128> {
        let mut total = *constant;
        for (factor, cell) in terms {
            let AuditValue::Number(n) = self.value(cell) else { return None };
            total += factor * n.to_integer();
        }
        Some(total.rem_euclid(1 << bits))
    }

    fn point(&self, point: &Point) -> Option<u32> {
        match point {
            Point::Name(name) => Some(self.names[*name]),
            Point::Held(cell) => {
                if let AuditValue::Process(p) = self.value(cell) {
                    Some(p)
                } else {
                    None
                }
            }
        }
    }

    fn fact(&self, fact: &Fact) -> bool {
        match fact {
            Fact::Processes { cell, names, other } => {
                let AuditValue::Process(p) = self.value(cell) else { return false };
                if *other {
                    // A process that is not listed is among the names chosen so far, so it is
                    // excluded.
                    let at = self.names.iter().position(|n| *n == p);
                    at.is_none_or(|at| names.contains(&at))
                } else {
                    names.iter().any(|at| self.names[*at] == p)
                }
            }
            Fact::Constructors(cell, among) => {
                matches!(self.value(cell), AuditValue::Constructor(c) if among.contains(&c))
            }
            Fact::Equal(a, b, equal) => (self.value(a) == self.value(b)) == *equal,
            Fact::Before(a, b, strict) => match (self.point(a), self.point(b)) {
                (Some(a), Some(b)) => a < b || !*strict && a == b,
                _ => false,
            },
            Fact::Sum { terms, constant, sign } => {
                let mut total = *constant;
                for (factor, cell) in terms {
                    let AuditValue::Number(n) = self.value(cell) else { return false };
                    match times(*factor, n).and_then(|n| plus(total, n)) {
                        Some(sum) => total = sum,
                        None => {
                            self.timeline.overflow.set(true);
                            return false;
                        }
                    }
                }
                sign.accepts(total.cmp(&Number::zero()))
            }
            Fact::Words { bits, left, sign, right } => {
                match (self.remainder(left, *bits), self.remainder(right, *bits)) {
                    (Some(l), Some(r)) => sign.accepts(l.cmp(&r)),
                    _ => false,
                }
            }
            Fact::Fence(view) => self.timeline.is_empty(self.names[view.0], self.moment(*view)),
        }
    }
}

impl Invariant {
    /// Returns the largest number of processes of the certificate's claim; `None`: any number.
    pub fn most(&self) -> Option<u64> {
        self.counts.iter().map(|c| (1 << c.2) - 1).min()
    }
    /// True if a counting invariant does not hold in the state.
    fn miscounts(&self, timeline: &Timeline) -> Option<usize> {
        self.counts.iter().position(|(symbol, among, bits, (terms, constant))| {
            let (machine, state) = (timeline.machine, timeline.state);
            let counted = (0..machine.n).filter(|p| {
                let value = state.cells[machine.slot(*symbol, [*p].into_iter())];
                matches!(value, AuditValue::Constructor(c) if among.contains(&c))
            });
            let mut total = *constant;
            for (factor, cell) in terms {
                let slot = machine.slot(cell.symbol, [].into_iter());
                if let AuditValue::Number(n) = timeline.memory(timeline.order.len(), slot) {
                    total += factor * n.to_integer();
                }
            }
            total.rem_euclid(1 << bits) != counted.count() as i128
        })
    }
    /// Returns the index of a cube that contains the state, or of a counting invariant that does
    /// not hold, after the cubes; `None` if there is none.
    pub fn cube_of(&self, timeline: &Timeline) -> Option<usize> {
        if let Some(at) = self.miscounts(timeline) {
            return Some(self.cubes.len() + at);
        }
        self.cubes.iter().position(|cube| {
            if timeline.machine.n < narrow::index(cube.names)
                || timeline.machine.n < narrow::index(self.fixed)
            {
                return false;
            }
            // Facts at the first choices that name no process are decided with the fixed ones.
            let names = (0..narrow::index(self.fixed.min(cube.names))).collect();
            let mut choice = PartialAssignment { cube, timeline, names, moments: Vec::new() };
            let early =
                (0..choice.names.len()).all(|made| cube.facts[made].iter().all(|f| choice.fact(f)));
            early && choice.holds()
        })
    }

    /// Returns the constants of sums.
    pub fn numbers(&self) -> impl Iterator<Item = Number> {
        let facts = self.cubes.iter().flat_map(|c| c.facts.iter().flatten());
        facts.flat_map(|f| match f {
            Fact::Sum { constant, .. } => vec![*constant],
            Fact::Words { left, right, .. } => [left.1, right.1].map(Number::from_integer).to_vec(),
            _ => Vec::new(),
        })
    }
}

/// Parser of certificates.
struct InvariantReader<'a> {
    system: &'a System,
    names: usize,
}

type Read<T> = Result<T, String>;

/// Parses a certificate for a system.
///
/// # Errors
///
/// The first malformed line, with the expected input.
pub fn read(system: &System, text: &str) -> Read<Invariant> {
    let fixed = system.fixed as usize;
    let mut lines =
        text.lines().enumerate().map(|(i, l)| (i + 1, l.trim())).filter(|l| !l.1.is_empty());
    let header = lines.next().map(|l| l.1);
    if header != Some("mu-check certificate 1") {
        return Err("line 1: expected `mu-check certificate 1`".into());
    }
    let tso = match lines.next().map(|l| l.1) {
        Some("memory tso") => true,
        Some("memory sc") => false,
        _ => return Err("line 2: expected `memory sc` or `memory tso`".into()),
    };
    let mut found: Vec<(usize, Vec<Fact>)> = Vec::new();
    let mut counts = Vec::new();
    for (number, line) in lines {
        if let Some(count) = line.strip_prefix("count ") {
            let count = InvariantReader { system, names: 0 }.count(count);
            counts.push(count.ok_or_else(|| format!("line {number}: `{line}`: expected a count"))?);
            continue;
        }
        let mut words = line.split_whitespace();
        if words.next() == Some("never") {
            found.push((fixed + words.count(), Vec::new()));
            continue;
        }
        let Some((names, facts)) = found.last_mut() else {
            return Err(format!("line {number}: expected `never`"));
        };
        let fact = InvariantReader { system, names: *names }.fact(line);
        facts.push(fact.ok_or_else(|| format!("line {number}: `{line}`: expected a fact"))?);
    }
    Ok(Invariant {
        tso,
        cubes: found.into_iter().map(|(names, facts)| cube(names, facts)).collect(),
        fixed,
        counts,
    })
}

impl InvariantReader<'_> {
    fn process(&self, text: &str) -> Option<usize> {
        let fixed = self.system.fixed as usize;
        let at = match (text.strip_prefix('#'), text.strip_prefix('p')) {
            (Some(n), _) => n.parse::<usize>().ok()?.checked_sub(1).filter(|n| *n < fixed)?,
            (_, Some(n)) => fixed + n.parse::<usize>().ok()?.checked_sub(1)?,
            _ => return None,
        };
        (at < self.names).then_some(at)
    }

    fn view(&self, text: &str) -> Option<View> {
        let (process, stage) = text.split_once('@')?;
        Some((
            self.process(process)?,
            if stage == "*" { SHARED } else { stage.parse::<u8>().ok()?.into() },
        ))
    }

    fn cell(&self, text: &str) -> Option<InvariantCell> {
        let (view, text) = match text.split_once('.') {
            Some((view, text)) => (Some(self.view(view)?), text),
            None => (None, text),
        };
        let (name, args) = match text.strip_suffix(']') {
            Some(text) => {
                text.split_once('[').map(|(name, args)| (name, args.split(',').collect()))?
            }
            None => (text, Vec::new()),
        };
        let symbol = self.system.symbols.iter().position(|s| s.name == name)?;
        let args: Vec<usize> =
            args.into_iter().map(|a: &str| self.process(a.trim())).collect::<Option<_>>()?;
        (args.len() == self.system.symbols[symbol].arity).then_some(InvariantCell {
            symbol,
            args,
            view,
        })
    }

    fn point(&self, text: &str) -> Option<Point> {
        self.process(text).map(Point::Name).or_else(|| self.cell(text).map(Point::Held))
    }

    fn fact(&self, line: &str) -> Option<Fact> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["same", a, b] => Some(Fact::Equal(self.cell(a)?, self.cell(b)?, true)),
            ["differ", a, b] => Some(Fact::Equal(self.cell(a)?, self.cell(b)?, false)),
            ["before", a, b] => Some(Fact::Before(self.point(a)?, self.point(b)?, true)),
            ["upto", a, b] => Some(Fact::Before(self.point(a)?, self.point(b)?, false)),
            ["fence", view] => Some(Fact::Fence(self.view(view)?)),
            ["sum", ..] => self.sum(&words[1..]),
            ["word", bits, ref rest @ ..] => {
                let at = rest.iter().position(|w| matches!(*w, "<=" | "<" | "=" | "!="))?;
                let sign = match rest[at] {
                    "<=" => Sign::AtMost,
                    "<" => Sign::Less,
                    "=" => Sign::Zero,
                    _ => Sign::NotZero,
                };
                let bits = bits.parse::<u32>().ok().filter(|b| (1..=32).contains(b))?;
                let (left, right) = (self.part(&rest[..at])?, self.part(&rest[at + 1..])?);
                Some(Fact::Words { bits, left, sign, right })
            }
            _ => self.membership(line),
        }
    }

    fn membership(&self, line: &str) -> Option<Fact> {
        let (cell, set) = line.split_once(" in {")?;
        let cell = self.cell(cell.trim())?;
        let listed: Vec<&str> =
            set.strip_suffix('}')?.split(',').map(str::trim).filter(|v| !v.is_empty()).collect();
        let sort = self.system.symbols[cell.symbol].sort;
        if sort == TypeId::PROC {
            let other = listed.contains(&"other");
            let names = listed
                .into_iter()
                .filter(|v| *v != "other")
                .map(|v| self.process(v))
                .collect::<Option<_>>()?;
            return Some(Fact::Processes { cell, names, other });
        }
        let all = &self.system.types[sort.index()].constructors;
        let constructor = |v: &str| {
            all.iter().find(|c| self.system.constructors[c.index()].name == v).map(|c| c.number())
        };
        Some(Fact::Constructors(cell, listed.into_iter().map(constructor).collect::<Option<_>>()?))
    }

    fn count(&self, text: &str) -> Option<(usize, Vec<u32>, u32, SumPart)> {
        let (array, sum) = text.split_once(" = word ")?;
        let (name, values) = array.split_once(" in {")?;
        let symbol = self.system.symbols.iter().position(|s| s.name == name.trim())?;
        let all = &self.system.type_of(self.system.symbols[symbol].sort).constructors;
        let values = values.strip_suffix('}')?.split(',').map(str::trim);
        let constructor = |v: &str| {
            all.iter().find(|c| self.system.constructors[c.index()].name == v).map(|c| c.number())
        };
        let among = values.map(constructor).collect::<Option<_>>()?;
        let words: Vec<&str> = sum.split_whitespace().collect();
        let (bits, sum) = words.split_first()?;
        let bits = bits.parse::<u32>().ok().filter(|b| (1..=32).contains(b))?;
        Some((symbol, among, bits, self.part(sum)?))
    }

    fn part(&self, words: &[&str]) -> Option<SumPart> {
        let number = |w: &str| w.parse::<i128>().ok().filter(|n| n.unsigned_abs() <= 1 << 33);
        let [parts @ .., constant] = words else { return None };
        let mut terms = Vec::new();
        for part in parts.chunks(3) {
            let [factor, cell, "+"] = part else { return None };
            terms.push((number(factor)?, self.cell(cell)?));
        }
        Some((terms, number(constant)?))
    }

    fn sum(&self, words: &[&str]) -> Option<Fact> {
        let number = |w: &str| {
            w.parse::<BigRational>()
                .ok()
                .filter(|n| *n.denom() != BigInt::zero())
                .and_then(|n| super::value::number(&n))
        };
        let [parts @ .., constant, sign, "0"] = words else { return None };
        let mut terms = Vec::new();
        for part in parts.chunks(3) {
            let [factor, cell, "+"] = part else { return None };
            terms.push((number(factor)?, self.cell(cell)?));
        }
        let sign = match *sign {
            "<=" => Sign::AtMost,
            "<" => Sign::Less,
            "=" => Sign::Zero,
            "!=" => Sign::NotZero,
            _ => return None,
        };
        Some(Fact::Sum { terms, constant: number(constant)?, sign })
    }
}

/// Returns the cells of a fact.
fn cells(fact: &Fact) -> Vec<&InvariantCell> {
    match fact {
        Fact::Processes { cell, .. } | Fact::Constructors(cell, _) => vec![cell],
        Fact::Equal(a, b, _) => vec![a, b],
        Fact::Before(a, b, _) => [a, b]
            .into_iter()
            .filter_map(|p| if let Point::Held(c) = p { Some(c) } else { None })
            .collect(),
        Fact::Sum { terms, .. } => terms.iter().map(|t| &t.1).collect(),
        Fact::Words { left, right, .. } => left.0.iter().chain(&right.0).map(|t| &t.1).collect(),
        Fact::Fence(_) => Vec::new(),
    }
}

/// Returns the views of a fact.
fn views(fact: &Fact) -> Vec<View> {
    match fact {
        Fact::Fence(view) => vec![*view],
        _ => cells(fact).into_iter().filter_map(|c| c.view).collect(),
    }
}

/// Groups the facts of a cube by the choice after which they are decided.
fn cube(names: usize, facts: Vec<Fact>) -> Cube {
    let mut all: Vec<View> = facts.iter().flat_map(views).collect();
    all.sort_unstable_by_key(|v| (v.1 == SHARED, *v));
    all.dedup_by(|a, b| a == b || a.1 == SHARED && b.1 == SHARED);
    let mut by_choice: Vec<Vec<Fact>> = vec![Vec::new(); names + all.len() + 1];
    for fact in facts {
        let seen = views(&fact);
        let is = |v: &View| seen.iter().any(|s| s == v || s.1 == SHARED && v.1 == SHARED);
        let at = match all.iter().rposition(is) {
            Some(at) => names + at + 1,
            None => needed_names(&fact, names),
        };
        by_choice[at].push(fact);
    }
    Cube { names, views: all, facts: by_choice }
}

/// Returns the number of names that need processes before a fact is decided.
fn needed_names(fact: &Fact, names: usize) -> usize {
    let args = cells(fact).into_iter().flat_map(|c| c.args.iter().copied()).max();
    let more = match fact {
        Fact::Processes { names: listed, other: false, .. } => listed.iter().copied().max(),
        Fact::Processes { names: listed, other: true, .. } => {
            (0..names).rfind(|n| !listed.contains(n))
        }
        Fact::Before(a, b, _) => [a, b]
            .into_iter()
            .filter_map(|p| if let Point::Name(n) = p { Some(*n) } else { None })
            .max(),
        _ => None,
    };
    args.max(more).map_or(0, |n| n + 1)
}
