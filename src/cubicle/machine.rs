//! The machine of a system for a fixed number of processes, under sequential consistency or total
//! store order.
//!
//! A state is a vector of codes ([`crate::value`]): one for each cell, then, under total store
//! order, one for each process's store buffer (a number in the table of buffers; 0 is empty). Steps
//! follow algorithm 1 of x86-tso-programs: a transition writes memory as one entry of its actor's
//! buffer; a locked one waits for the empty buffer and writes through; the oldest entry of a buffer
//! may reach memory at any time.
//!
//! Cells that nothing determines hold [`ANY`]. When a step asks for one, it is told so (`Need`) and
//! tries each value of the sort: such a state stands for all states that it can become. Numbers
//! have no end of values; the caller lists candidates, or there are none and the step is refused by
//! name. States that contradict an assumption (`invariant`) are not reached. So what an assumption
//! looks at has a value wherever a step writes it (numbers excepted): an open cell would stand for
//! values that are assumed never to be.
//!
//! Invariant: a step's result depends on the cells that `Machine::reads` lists and nothing else.
//! Cost of a step: its cells and cases; reading memory through a buffer is linear in the buffer.

use crate::ground::{
    Cell, Ground, GroundAtom, GroundCube, GroundSum, GroundTerm, GroundValue, Grounder, Layout,
    choices, holds, looked_at, sort,
};
use crate::system::{Claim, Op, SymbolId, System, TypeId};
use crate::value::{ANY, Entry, Interned, NOTHING, Numbers, Val};
use mu_base::{Budget, Diagnostic, Stage};
use num_rational::BigRational;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// Sequential consistency: weak symbols are plain ones.
    Sc,
    /// Total store order.
    Tso,
}

/// How a machine is made.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Most entries in a store buffer; steps beyond are left out, and [`Machine::was_cut`] says
    /// so. None: no bound.
    pub buffer: Option<usize>,
    /// Which numbers a cell that nothing determines may turn out to hold. Empty: asking for one is
    /// an error.
    pub candidates: Vec<BigRational>,
    /// Values at the start of whole symbols, by name, besides what `init` says.
    pub given: Vec<(String, String)>,
    /// Numbers that cells hold at the start: symbol, indices from 0, number.
    pub start: Vec<(SymbolId, Vec<u32>, BigRational)>,
    /// The limits of the run, which also end the choice of values for open cells. `None`: no limit.
    pub budget: Option<Budget>,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// A transition, by its index in [`System::transitions`], and the processes, from 0, of all its
    /// parameters.
    Fire(u32, Vec<u32>),
    /// The oldest entry of a process's buffer reaches memory.
    Flush(u32),
}

/// Why a step has no result yet.
#[derive(Clone, Debug)]
pub(crate) enum Need {
    /// The value of this slot is asked for and not determined.
    Slot(u32),
    /// An error.
    Fault(Diagnostic),
}

type Asked<T> = Result<T, Need>;

/// What a step stores in a cell.
#[derive(Clone, Copy)]
enum Stored {
    Code(u32),
    Any,
}

/// A machine. Immutable but for its tables, which threads share.
pub struct Machine<'s> {
    pub(crate) system: &'s System,
    pub(crate) memory: Memory,
    pub(crate) layout: Layout,
    pub(crate) numbers: Numbers,
    pub(crate) buffers: Interned<[Entry]>,
    pub(crate) setup: Setup,
    /// The transitions for all choices of processes.
    pub(crate) ground: Vec<Ground>,
    /// The sets of cells that entries of buffers write.
    pub(crate) shapes: Vec<Vec<u32>>,
    pub(crate) shape_ids: HashMap<Vec<u32>, u32>,
    /// What is assumed never to hold, for all choices of processes.
    pub(crate) assumptions: Vec<GroundCube>,
    /// Cells, no numbers, of which something is assumed: what it leaves is known only of values.
    pub(crate) spoken_of: BTreeSet<u32>,
    cut: AtomicBool,
    /// Choices of values for open cells so far.
    choices: AtomicU64,
    /// A limit ended a choice of values.
    stopped: AtomicBool,
}

impl<'s> Machine<'s> {
    /// The machine of a system for `n` processes.
    ///
    /// # Errors
    /// Fewer processes than the system speaks of, too many cells.
    pub fn new(
        system: &'s System,
        n: u32,
        memory: Memory,
        setup: Setup,
    ) -> Result<Machine<'s>, Diagnostic> {
        if n < system.fixed.max(1) {
            let message = format!(
                "the system speaks of process #{}, expected at least so many processes, found {n}",
                system.fixed.max(1)
            );
            return Err(Diagnostic::new(Stage::Usage, message));
        }
        let too_large = || {
            Diagnostic::new(
                Stage::Unsupported,
                format!("the system has 2^24 cells or more for {n} processes"),
            )
        };
        let layout = Layout::new(system, n).ok_or_else(too_large)?;
        let mut machine = Machine {
            system,
            memory: if system.has_memory() { memory } else { Memory::Sc },
            layout,
            numbers: Numbers::default(),
            buffers: Interned::default(),
            setup,
            ground: Vec::new(),
            shapes: Vec::new(),
            shape_ids: HashMap::new(),
            assumptions: Vec::new(),
            spoken_of: BTreeSet::new(),
            cut: AtomicBool::new(false),
            choices: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        };
        machine.buffers.intern(Arc::from([]));
        machine.instantiate(n)?;
        Ok(machine)
    }
    fn instantiate(&mut self, n: u32) -> Result<(), Diagnostic> {
        let mut ground = Vec::new();
        for (index, t) in self.system.transitions.iter().enumerate() {
            for procs in choices(n, t.params.len()) {
                let mut grounder = self.grounder(procs);
                ground.extend(grounder.transition(index as u32, t));
            }
            if ground.len() > 4_000_000 {
                let message = format!(
                    "transition `{}` and those before have more than 4,000,000 instances for {n} processes",
                    t.name
                );
                return Err(Diagnostic::at(Stage::Unsupported, t.place.0, message));
            }
        }
        let assumptions: Vec<_> = self
            .system
            .invariants
            .iter()
            .flat_map(|c| self.claim_cubes(c))
            .map(|(_, cube)| cube)
            .collect();
        let mut spoken_of = BTreeSet::new();
        assumptions.iter().for_each(|cube| {
            looked_at(cube, &mut |c| {
                spoken_of.insert(c.slot);
            });
        });
        spoken_of.retain(|slot| !sort(self.system, &self.layout, *slot).is_numeric());
        for g in ground.iter().filter(|g| !g.shape.is_empty() && !g.locked) {
            let next = self.shapes.len() as u32;
            if let std::collections::hash_map::Entry::Vacant(slot) =
                self.shape_ids.entry(g.shape.clone())
            {
                slot.insert(next);
                self.shapes.push(g.shape.clone());
            }
        }
        (self.ground, self.assumptions, self.spoken_of) = (ground, assumptions, spoken_of);
        Ok(())
    }
    pub(crate) fn grounder(&self, env: Vec<u32>) -> Grounder<'_> {
        Grounder {
            system: self.system,
            layout: &self.layout,
            numbers: &self.numbers,
            buffers: self.memory == Memory::Tso,
            env,
        }
    }
    /// The instances of a claim that can hold, with their processes.
    pub(crate) fn claim_cubes(&self, claim: &Claim) -> Vec<(Vec<u32>, GroundCube)> {
        let all = choices(self.layout.n, claim.params.len()).into_iter();
        all.filter_map(|procs| self.grounder(procs.clone()).cube(&claim.cube).map(|c| (procs, c)))
            .collect()
    }
    /// The system.
    pub fn system(&self) -> &'s System {
        self.system
    }
    /// The number of processes.
    pub fn processes(&self) -> u32 {
        self.layout.n
    }
    /// Number of slots of a state.
    pub fn width(&self) -> usize {
        self.layout.cells as usize
            + if self.memory == Memory::Tso { self.layout.n as usize } else { 0 }
    }
    /// Counts a choice of a value, and polls the limits of the run now and then.
    ///
    /// # Errors
    /// A limit was reached.
    pub(crate) fn count_choice(&self) -> Result<(), Diagnostic> {
        let Some(budget) = &self.setup.budget else { return Ok(()) };
        let count = self.choices.fetch_add(1, Ordering::Relaxed);
        if count.is_multiple_of(1024) {
            budget.check(0).and_then(|()| budget.check_memory()).map_err(|stop| {
                self.stopped.store(true, Ordering::Relaxed);
                Diagnostic::stopped(stop)
            })?;
        }
        Ok(())
    }
    /// True if a limit ended a choice of values, so that states or claims were left out.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
    /// Whether a bound on buffers left steps out.
    pub fn was_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }
    pub(crate) fn buffer_slot(&self, process: u32) -> usize {
        (self.layout.cells + process) as usize
    }
    /// The value of a cell in memory.
    pub fn value(&self, state: &[u32], symbol: crate::system::SymbolId, args: &[u32]) -> Val {
        let slot = self.layout.slot(symbol, args.iter().copied());
        self.val(slot, state[slot as usize])
    }
    /// What a process sees of a cell: its own buffer first.
    pub fn seen(
        &self,
        state: &[u32],
        by: u32,
        symbol: crate::system::SymbolId,
        args: &[u32],
    ) -> Val {
        let slot = self.layout.slot(symbol, args.iter().copied());
        let buffered = self.memory == Memory::Tso
            && self.system.symbol(symbol).kind == crate::system::Kind::Weak;
        let by = buffered.then_some(by);
        self.val(slot, self.read(state, Cell { slot, by }))
    }
    /// Number of entries of a process's buffer.
    pub fn buffered(&self, state: &[u32], process: u32) -> usize {
        if self.memory == Memory::Sc {
            0
        } else {
            self.buffers.get(state[self.buffer_slot(process)]).len()
        }
    }
    /// The entries of a process's buffer, oldest first: what each writes to which cells.
    pub fn buffer(
        &self,
        state: &[u32],
        process: u32,
    ) -> Vec<Vec<(crate::system::SymbolId, Vec<u32>, Val)>> {
        if self.memory == Memory::Sc {
            return Vec::new();
        }
        let cell = |slot: u32, code: u32| {
            (
                self.layout.symbol[slot as usize],
                self.layout.args(self.system, slot),
                self.val(slot, code),
            )
        };
        let entry = |e: &Entry| {
            let writes =
                self.shapes[e.shape as usize].iter().zip(&e.values).filter(|w| *w.1 != NOTHING);
            writes.map(|(s, v)| cell(*s, *v)).collect()
        };
        self.buffers.get(state[self.buffer_slot(process)]).iter().map(entry).collect()
    }
    pub(crate) fn val(&self, slot: u32, code: u32) -> Val {
        let sort = sort(self.system, &self.layout, slot);
        match code {
            ANY => Val::Any,
            c if sort == TypeId::PROC => Val::Proc(c),
            c if sort.is_numeric() => Val::Number(self.numbers.number(c)),
            c if self.system.type_of(sort).constructors.is_empty() => Val::Element(c),
            c => Val::Cons(crate::system::ConsId(c)),
        }
    }
    /// The values of a slot's sort, if it has an end of them (or candidates, for numbers).
    pub(crate) fn domain(&self, slot: u32) -> Option<Vec<u32>> {
        let sort = sort(self.system, &self.layout, slot);
        if sort == TypeId::PROC {
            return Some((0..self.layout.n).collect());
        }
        if sort.is_numeric() {
            let fits =
                self.setup.candidates.iter().filter(|c| sort == TypeId::REAL || c.is_integer());
            return (!self.setup.candidates.is_empty())
                .then(|| fits.map(|c| self.numbers.code(c)).collect());
        }
        let constructors = &self.system.type_of(sort).constructors;
        if constructors.is_empty() {
            // An abstract type: as many elements as cells hold some, so that every pattern of
            // equalities is there.
            let cells =
                self.layout.symbol.iter().filter(|s| self.system.symbol(**s).sort == sort).count()
                    as u32;
            return Some((0..cells.max(1)).collect());
        }
        Some(constructors.iter().map(|c| c.0).collect())
    }
    /// The name of a slot's cell, `A[#1,#2]`.
    pub(crate) fn cell_name(&self, slot: u32) -> String {
        let name = &self.system.symbol(self.layout.symbol[slot as usize]).name;
        let args: Vec<_> =
            self.layout.args(self.system, slot).iter().map(|p| format!("#{}", p + 1)).collect();
        if args.is_empty() { name.clone() } else { format!("{name}[{}]", args.join(",")) }
    }
    pub(crate) fn undetermined(&self, slot: u32) -> Diagnostic {
        let id = self.layout.symbol[slot as usize];
        let symbol = self.system.symbol(id);
        let name = self.cell_name(slot);
        let stored = self
            .system
            .transitions
            .iter()
            .find(|t| t.updates.iter().any(|u| u.symbol() == id && u.stores_any()));
        let message = match stored {
            None => format!(
                "`{name}` is asked for and nothing determines it, expected a value in `init`"
            ),
            Some(t) => format!(
                "`{name}` is asked for and nothing determines it: `init` leaves it open, or `{}` has stored any number (`{} := .`)",
                t.name, symbol.name
            ),
        };
        let error = Diagnostic::at(Stage::Unsupported, symbol.place.0, message);
        let sort = sort(self.system, &self.layout, slot);
        let value = match self.system.type_of(sort).constructors.first() {
            _ if sort == TypeId::PROC => "#1".to_string(),
            _ if sort.is_numeric() => "NUMBER".to_string(),
            Some(first) => self.system.constructor(*first).name.clone(),
            // No text stands for an element of an abstract type.
            None => return error,
        };
        let note = format!("-D {}={value} gives it a value at the start", symbol.name);
        if stored.is_none() {
            error.note(note)
        } else {
            error.note(format!("{note}; `prove` takes any value that a step stores"))
        }
    }

    /// The code of a cell as `by` sees it; may be [`ANY`].
    fn read(&self, state: &[u32], cell: Cell) -> u32 {
        if let Some(by) = cell.by {
            let buffer = state[self.buffer_slot(by)];
            if buffer != 0 {
                for entry in self.buffers.get(buffer).iter().rev() {
                    let at = self.shapes[entry.shape as usize].iter().position(|s| *s == cell.slot);
                    if let Some(value) = at.map(|i| entry.values[i]).filter(|v| *v != NOTHING) {
                        return value;
                    }
                }
            }
        }
        state[cell.slot as usize]
    }
    fn asked(&self, state: &[u32], cell: Cell) -> Asked<u32> {
        match self.read(state, cell) {
            ANY => Err(Need::Slot(cell.slot)),
            code => Ok(code),
        }
    }
    fn sum(&self, state: &[u32], sum: &GroundSum) -> Asked<u32> {
        let codes =
            sum.terms.iter().map(|(_, c)| self.asked(state, *c)).collect::<Asked<Vec<_>>>()?;
        if let Some((constant, terms)) = &sum.small {
            // Factors and values are below 2^28, so that products are below 2^56: a hundred of them
            // do not overflow.
            let values = terms
                .iter()
                .zip(&codes)
                .map(|((f, _), c)| Numbers::as_small(*c).map(|v| f * v))
                .collect::<Option<Vec<_>>>();
            if let Some(values) = values.filter(|v| v.len() < 100) {
                let total = constant + values.iter().sum::<i64>();
                return Ok(Numbers::small(total).unwrap_or_else(|| {
                    self.numbers.code(&BigRational::from_integer(total.into()))
                }));
            }
        }
        let total = sum
            .terms
            .iter()
            .zip(&codes)
            .fold(sum.constant.clone(), |acc, ((f, _), c)| acc + f * self.numbers.number(*c));
        Ok(self.numbers.code(&total))
    }
    fn term(&self, state: &[u32], term: &GroundTerm) -> Asked<u32> {
        match term {
            GroundTerm::Code(code) => Ok(*code),
            GroundTerm::Cell(cell) => self.asked(state, *cell),
            GroundTerm::Sum(sum) => self.sum(state, sum),
        }
    }
    fn atom(&self, state: &[u32], atom: &GroundAtom) -> Asked<bool> {
        Ok(match atom {
            GroundAtom::Empty(p) => state[self.buffer_slot(*p)] == 0,
            GroundAtom::Codes(a, op, b) => {
                holds(self.term(state, a)?.cmp(&self.term(state, b)?), *op)
            }
            GroundAtom::Numbers(a, op, b) => {
                let (a, b) = (self.term(state, a)?, self.term(state, b)?);
                match (op, Numbers::as_small(a), Numbers::as_small(b)) {
                    (Op::Eq, ..) => a == b,
                    (Op::Neq, ..) => a != b,
                    (_, Some(a), Some(b)) => holds(a.cmp(&b), *op),
                    _ => holds(self.numbers.number(a).cmp(&self.numbers.number(b)), *op),
                }
            }
        })
    }
    /// Whether a cube holds. An atom that fails decides, whatever the others ask for.
    pub(crate) fn holds(&self, state: &[u32], cube: &GroundCube) -> Asked<bool> {
        let mut need = None;
        for atom in cube {
            match self.atom(state, atom) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(n) => need = need.or(Some(n)),
            }
        }
        need.map_or(Ok(true), Err)
    }
    fn enabled(&self, state: &[u32], g: &Ground) -> Asked<bool> {
        if let Some(actor) = g.actor.filter(|_| g.locked)
            && state[self.buffer_slot(actor)] != 0
        {
            return Ok(false);
        }
        let mut need = None;
        match self.holds(state, &g.guard) {
            Ok(false) => return Ok(false),
            Ok(true) => {}
            Err(n) => need = Some(n),
        }
        'universal: for dnf in &g.universal {
            let mut unknown = None;
            for cube in dnf {
                match self.holds(state, cube) {
                    Ok(true) => continue 'universal,
                    Ok(false) => {}
                    Err(n) => unknown = Some(n),
                }
            }
            match unknown {
                None => return Ok(false),
                Some(n) => need = need.or(Some(n)),
            }
        }
        need.map_or(Ok(true), Err)
    }
    /// The cell and code of an equation whose one side is an open cell and whose other side has a
    /// value.
    pub(crate) fn equation(&self, state: &[u32], atom: &GroundAtom) -> Option<(u32, u32)> {
        let (GroundAtom::Codes(a, Op::Eq, b) | GroundAtom::Numbers(a, Op::Eq, b)) = atom else {
            return None;
        };
        let assigns = |cell: &GroundTerm, to: &GroundTerm| match cell {
            GroundTerm::Cell(c) if state[c.slot as usize] == ANY => {
                Some((c.slot, self.term(state, to).ok()?))
            }
            _ => None,
        };
        let (slot, code) = assigns(a, b).or_else(|| assigns(b, a))?;
        // A fraction is no value of a cell that holds whole numbers.
        let whole = sort(self.system, &self.layout, slot) != TypeId::INT
            || self.numbers.number(code).is_integer();
        whole.then_some((slot, code))
    }
    /// What a transition stores in its cells: nothing if the guard does not hold.
    fn outcome(&self, state: &[u32], g: &Ground) -> Asked<Option<Vec<Option<Stored>>>> {
        if !self.enabled(state, g)? {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(g.updates.len());
        for update in &g.updates {
            let mut stored = None;
            for (condition, value) in &update.cases {
                if !self.holds(state, condition)? {
                    continue;
                }
                stored = Some(match value {
                    GroundValue::Any => Stored::Any,
                    // A number that nothing determines moves without being asked for, where there
                    // are no candidates.
                    GroundValue::Term(GroundTerm::Cell(c))
                        if self.read(state, *c) == ANY && self.domain(c.slot).is_none() =>
                    {
                        Stored::Code(ANY)
                    }
                    GroundValue::Term(t) => Stored::Code(self.term(state, t)?),
                });
                break;
            }
            out.push(stored);
        }
        Ok(Some(out))
    }
    /// The results of a transition: for each, the slots that change and their codes. `eager` makes
    /// all values of `:= .` where the sort has an end of them; else they stay open, unless
    /// something is assumed of them.
    pub(crate) fn fire(
        &self,
        state: &[u32],
        g: &Ground,
        eager: bool,
        out: &mut Vec<Vec<(u32, u32)>>,
    ) -> Asked<()> {
        let Some(stored) = self.outcome(state, g)? else { return Ok(()) };
        let mut results = vec![Vec::with_capacity(stored.len())];
        for (update, stored) in g.updates.iter().zip(stored) {
            let buffered = update.weak && !g.locked;
            let values = match stored {
                None if buffered => vec![NOTHING],
                None => continue,
                Some(Stored::Code(code)) => vec![code],
                Some(Stored::Any) if eager || buffered || self.spoken_of.contains(&update.slot) => {
                    self.domain(update.slot).unwrap_or_else(|| vec![ANY])
                }
                Some(Stored::Any) => vec![ANY],
            };
            results = results
                .iter()
                .flat_map(|r: &Vec<(u32, u32)>| {
                    values.iter().map(|v| r.iter().copied().chain([(update.slot, *v)]).collect())
                })
                .collect();
            if results.len() > 1 << 20 {
                let place = self.system.transitions[g.transition as usize].place.0;
                return Err(Need::Fault(Diagnostic::at(
                    Stage::Unsupported,
                    place,
                    "this transition has more than 2^20 results in one state",
                )));
            }
        }
        if !g.shape.is_empty() && !g.locked {
            self.enqueue(state, g, &mut results);
        }
        out.append(&mut results);
        Ok(())
    }
    /// Moves the weak part of results into an entry of the actor's buffer.
    fn enqueue(&self, state: &[u32], g: &Ground, results: &mut Vec<Vec<(u32, u32)>>) {
        let Some(actor) = g.actor else { return };
        let slot = self.buffer_slot(actor);
        let before = self.buffers.get(state[slot]);
        let shape = self.shape_ids[&g.shape];
        let weak: Vec<bool> = g.updates.iter().map(|u| u.weak).collect();
        results.retain_mut(|result| {
            // Before the entry is taken out, weak updates are all there: only plain ones are left
            // out where no case fits.
            let values: Box<[u32]> = g
                .shape
                .iter()
                .map(|s| result.iter().find(|r| r.0 == *s).map_or(NOTHING, |r| r.1))
                .collect();
            result.retain(|r| !g.updates.iter().zip(&weak).any(|(u, weak)| *weak && u.slot == r.0));
            if values.iter().all(|v| *v == NOTHING) {
                return true;
            }
            if self.setup.buffer.is_some_and(|most| before.len() >= most) {
                self.cut.store(true, Ordering::Relaxed);
                return false;
            }
            let buffer: Arc<[Entry]> =
                before.iter().cloned().chain([Entry { shape, values }]).collect();
            result.push((slot as u32, self.buffers.intern(buffer)));
            true
        });
    }
    /// What the flush of a process's oldest entry changes; none if its buffer is empty.
    pub(crate) fn flush(&self, state: &[u32], process: u32) -> Option<Vec<(u32, u32)>> {
        if self.memory == Memory::Sc {
            return None;
        }
        let slot = self.buffer_slot(process);
        let buffer = self.buffers.get(state[slot]);
        let (first, rest) = buffer.split_first()?;
        let shape = &self.shapes[first.shape as usize];
        let mut out: Vec<_> = shape
            .iter()
            .copied()
            .zip(first.values.iter().copied())
            .filter(|w| w.1 != NOTHING)
            .collect();
        out.push((slot as u32, self.buffers.intern(Arc::from(rest))));
        Some(out)
    }
    /// Whether no assumption is contradicted, whatever open cells hold: for these, those that ask
    /// are answered later.
    pub(crate) fn assumed(&self, state: &[u32]) -> bool {
        !self.assumptions.iter().any(|cube| matches!(self.holds(state, cube), Ok(true)))
    }
}
