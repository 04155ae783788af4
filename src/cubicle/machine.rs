//! Operational machine of a system for a fixed number of processes, under sequential consistency or
//! total store order.
//!
//! A state is a vector of codes ([`crate::value`]): one for each cell, then, under total store
//! order, one for each process's store buffer (an index in the table of buffers; 0 is empty). Steps
//! follow algorithm 1 of x86-tso-programs: a transition writes memory as one entry of its actor's
//! buffer; a locked one waits for the empty buffer and writes to memory directly; the oldest entry
//! of a buffer may reach memory at any time.
//!
//! Undetermined cells contain [`ANY`]. A step that reads one returns `StepObstacle`, and the caller
//! tries each value of the sort; such a state represents all its completions. (If cells may
//! initially contain the process beyond the instance, a step assigns values at once, because it
//! never assigns that one.) Numbers have infinitely many values: the caller lists candidates;
//! without candidates the step is rejected by name.
//! States that contradict an assumption (`invariant`) are unreachable. Therefore a cell that an
//! assumption mentions gets a value whenever a step writes it (except numbers without candidates):
//! an open cell would also represent excluded values. A state that is excluded only for some values
//! of an open number counts as reachable.
//!
//! Invariant: a step's result depends only on the cells that `Machine::reads` lists. Cost of a
//! step: its cells and cases; reading memory through a buffer is linear in the buffer.

use crate::ground::{
    Ground, GroundAtom, GroundCell, GroundCube, GroundLayout, GroundSum, GroundTerm, GroundValue,
    Grounder, choices, for_each_read_cell, holds, sort,
};
use crate::system::{Claim, ComparisonOp, Symbol, SymbolId, SymbolKind, System, TypeId, residue};
use crate::value::{ANY, InternTable, NOTHING, NumberTable, TransitionWrites, Val};
use mu_base::{Budget, Diagnostic, Stage, narrow};
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

/// The parameters of a machine.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Capacity of a store buffer; steps beyond it are dropped, and [`Machine::was_cut`] reports
    /// that. `None`: unlimited.
    pub buffer: Option<usize>,
    /// Candidate values of undetermined numbers. Empty: reading one is an error.
    pub candidates: Vec<BigRational>,
    /// Initial values of whole symbols, by name, in addition to `init`.
    pub given: Vec<(String, String)>,
    /// Initial numbers of cells: symbol, indices from 0, number.
    pub start: Vec<(SymbolId, Vec<u32>, BigRational)>,
    /// The limits of the run, which also end the choice of values for open cells. `None`: no limit.
    pub budget: Option<Budget>,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Act {
    /// A transition, by its index in [`System::transitions`], with the processes, from 0, of all
    /// its parameters.
    Fire(u32, Vec<u32>),
    /// The oldest entry of a process's buffer reaches memory.
    Flush(u32),
}

/// The reason why a step has no result yet.
#[derive(Clone, Debug)]
pub(crate) enum StepObstacle {
    /// The value of this slot is read and undetermined.
    Slot(u32),
    /// An error.
    Fault(Diagnostic),
}

/// An open word with at most this number of bits has each of its values; a larger one has the
/// candidates.
pub const FEW_BITS: u32 = 6;

type Evaluated<T> = Result<T, StepObstacle>;

/// The value that a step stores in a cell.
#[derive(Clone, Copy)]
enum StoredValue {
    Code(u32),
    Any,
}

/// A machine. Immutable except for its tables, which threads share.
pub struct Machine<'s> {
    pub(crate) system: &'s System,
    pub(crate) memory: Memory,
    pub(crate) layout: GroundLayout,
    pub(crate) numbers: NumberTable,
    pub(crate) buffers: InternTable<[TransitionWrites]>,
    pub(crate) setup: Setup,
    /// The transitions, for all choices of processes.
    pub(crate) ground: Vec<Ground>,
    /// The sets of cells that entries of buffers write.
    pub(crate) shapes: Vec<Vec<u32>>,
    pub(crate) shape_ids: HashMap<Vec<u32>, u32>,
    /// The assumptions, for all choices of processes: cubes that never hold.
    pub(crate) assumptions: Vec<GroundCube>,
    /// Cells that assumptions mention, except numbers without candidates; they must have values.
    pub(crate) assumed_cells: BTreeSet<u32>,
    cut: AtomicBool,
    /// True if cells of processes may initially contain the process beyond the instance. Computed
    /// with the initial states, before any step.
    pub(crate) beyond: AtomicBool,
    /// Number of value choices for open cells so far.
    choices: AtomicU64,
    /// True if a limit ended a choice of values.
    stopped: AtomicBool,
}

impl<'s> Machine<'s> {
    /// Creates the machine of a system for `n` processes.
    ///
    /// # Errors
    ///
    /// Fewer processes than the system names, too many cells.
    pub fn new(
        system: &'s System,
        n: u32,
        memory: Memory,
        setup: Setup,
    ) -> Result<Machine<'s>, Diagnostic> {
        if n < system.fixed.max(1) {
            let message = format!(
                "the system names process #{0}, expected at least {0} processes, found {n}",
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
        let layout = GroundLayout::new(system, n).ok_or_else(too_large)?;
        let mut machine = Machine {
            system,
            memory: if system.has_memory() { memory } else { Memory::Sc },
            layout,
            numbers: NumberTable::default(),
            buffers: InternTable::default(),
            setup,
            ground: Vec::new(),
            shapes: Vec::new(),
            shape_ids: HashMap::new(),
            assumptions: Vec::new(),
            assumed_cells: BTreeSet::new(),
            cut: AtomicBool::new(false),
            beyond: AtomicBool::new(false),
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
                ground.extend(grounder.transition(narrow::index(index), t));
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
        let mut assumed_cells = BTreeSet::new();
        assumptions.iter().for_each(|cube| {
            for_each_read_cell(cube, &mut |c| {
                assumed_cells.insert(c.slot);
            });
        });
        assumed_cells.retain(|slot| self.has_domain(*slot));
        for g in ground.iter().filter(|g| !g.shape.is_empty() && !g.locked) {
            let next = narrow::index(self.shapes.len());
            if let std::collections::hash_map::Entry::Vacant(slot) =
                self.shape_ids.entry(g.shape.clone())
            {
                slot.insert(next);
                self.shapes.push(g.shape.clone());
            }
        }
        (self.ground, self.assumptions, self.assumed_cells) = (ground, assumptions, assumed_cells);
        Ok(())
    }
    pub(crate) fn grounder(&self, processes: Vec<u32>) -> Grounder<'_> {
        Grounder {
            system: self.system,
            layout: &self.layout,
            numbers: &self.numbers,
            buffers: self.memory == Memory::Tso,
            env: processes.into_iter().map(Some).collect(),
        }
    }
    /// Returns the satisfiable instances of a claim, with their processes.
    pub(crate) fn claim_cubes(&self, claim: &Claim) -> Vec<(Vec<u32>, GroundCube)> {
        let all = choices(self.layout.n, claim.params.len()).into_iter();
        all.filter_map(|procs| self.grounder(procs.clone()).cube(&claim.cube).map(|c| (procs, c)))
            .collect()
    }
    /// Returns the system.
    pub fn system(&self) -> &'s System {
        self.system
    }
    /// Returns the number of processes.
    pub fn processes(&self) -> u32 {
        self.layout.n
    }
    /// Returns number of slots of a state.
    pub fn width(&self) -> usize {
        self.layout.cells as usize
            + if self.memory == Memory::Tso { self.layout.n as usize } else { 0 }
    }
    /// Counts a choice of a value, and regularly checks the limits of the run.
    ///
    /// # Errors
    ///
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
    /// True if a limit ended a choice of values, so that states or claims are missing.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
    /// True if a bound on buffers excluded steps.
    pub fn was_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }
    pub(crate) fn buffer_slot(&self, process: u32) -> usize {
        (self.layout.cells + process) as usize
    }
    /// Returns the value of a cell in memory.
    pub fn value(&self, state: &[u32], symbol: crate::system::SymbolId, args: &[u32]) -> Val {
        let slot = self.layout.slot(symbol, args.iter().copied());
        self.val(slot, state[slot as usize])
    }
    /// Returns the value of a cell as a process reads it, through its buffer.
    pub fn read_through_buffer(
        &self,
        state: &[u32],
        by: u32,
        symbol: crate::system::SymbolId,
        args: &[u32],
    ) -> Val {
        let slot = self.layout.slot(symbol, args.iter().copied());
        let buffered =
            self.memory == Memory::Tso && self.system.symbol(symbol).kind == SymbolKind::Weak;
        let by = buffered.then_some(by);
        self.val(slot, self.read(state, GroundCell { slot, by }))
    }
    /// Returns the number of entries of a process's buffer.
    pub fn buffer_length(&self, state: &[u32], process: u32) -> usize {
        if self.memory == Memory::Sc {
            0
        } else {
            self.buffers.get(state[self.buffer_slot(process)]).len()
        }
    }
    /// Returns the entries of a process's buffer, oldest first: the cells with their values.
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
        let entry = |e: &TransitionWrites| {
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
            c => Val::Cons(crate::system::ConsId::of(c)),
        }
    }
    /// Returns the possible values of an open cell, if there are finitely many (or the candidates,
    /// for numbers): those that a step may assign, and initially also the process beyond the
    /// instance.
    pub(crate) fn open_domain(&self, state: &[u32], slot: u32) -> Option<Vec<u32>> {
        let mut values = self.domain(state, slot, 1)?;
        if self.has_beyond(slot) {
            values.push(self.layout.n);
        }
        Some(values)
    }
    /// True if [`Self::open_domain`] has all values of a slot.
    pub(crate) fn has_all_values(&self, slot: u32) -> bool {
        let sort = sort(self.system, &self.layout, slot);
        !sort.is_numeric() || sort.bits().is_some_and(|bits| bits <= FEW_BITS)
    }
    /// True if open cells of processes may contain the process beyond the instance. Valid once the
    /// initial states are computed.
    pub fn opens_beyond(&self) -> bool {
        self.beyond.load(Ordering::Relaxed)
    }
    fn has_beyond(&self, slot: u32) -> bool {
        self.opens_beyond() && sort(self.system, &self.layout, slot) == TypeId::PROC
    }
    /// True if a step has values for an open slot: all of finitely many, or candidates.
    pub(crate) fn has_domain(&self, slot: u32) -> bool {
        self.has_all_values(slot) || !self.setup.candidates.is_empty()
    }
    /// True if a type is abstract, and store buffers may contain its elements. Then more elements
    /// may be in use than the type has cells.
    pub(crate) fn buffers_elements(&self, sort: TypeId) -> bool {
        let is_weak = |s: &Symbol| s.sort == sort && s.kind == SymbolKind::Weak;
        self.memory == Memory::Tso
            && sort != TypeId::PROC
            && !sort.is_numeric()
            && self.system.type_of(sort).constructors.is_empty()
            && self.system.symbols.iter().any(is_weak)
    }
    /// Returns the slots with values of the type of a slot, including the store buffers.
    pub(crate) fn slots_of_elements(&self, slot: u32) -> Vec<u32> {
        let of = sort(self.system, &self.layout, slot);
        let cells = (0..self.layout.cells).filter(|s| sort(self.system, &self.layout, *s) == of);
        let buffers = (0..self.layout.n).map(|p| narrow::index(self.buffer_slot(p)));
        cells.chain(buffers).collect()
    }
    /// Returns the elements of the abstract type of a slot that a state contains, and the least
    /// `fresh` others. Elements are interchangeable, so other ones need not be tried.
    fn elements(&self, state: &[u32], slot: u32, fresh: usize) -> Vec<u32> {
        let of = sort(self.system, &self.layout, slot);
        let mut used = BTreeSet::new();
        for s in self.slots_of_elements(slot) {
            let code = state[s as usize];
            if s < self.layout.cells {
                used.insert(code);
            } else if code != ANY {
                for entry in self.buffers.get(code).iter() {
                    let cells = self.shapes[entry.shape as usize].iter().zip(&entry.values);
                    let own = cells.filter(|w| sort(self.system, &self.layout, *w.0) == of);
                    used.extend(own.map(|w| *w.1));
                }
            }
        }
        used.retain(|code| *code != ANY && *code != NOTHING);
        let others: Vec<u32> = (0..).filter(|code| !used.contains(code)).take(fresh).collect();
        used.into_iter().chain(others).collect()
    }
    /// Returns the values that a step may assign to a slot in a state, if there are finitely many
    /// (or the candidates, for numbers). `fresh`: number of cells that the step assigns any element
    /// of an abstract type.
    pub(crate) fn domain(&self, state: &[u32], slot: u32, fresh: usize) -> Option<Vec<u32>> {
        let sort = sort(self.system, &self.layout, slot);
        if sort == TypeId::PROC {
            return Some((0..self.layout.n).collect());
        }
        if let Some(bits) = sort.bits().filter(|bits| *bits <= FEW_BITS) {
            return Some((0..1 << bits).filter_map(NumberTable::small).collect());
        }
        if sort.is_numeric() {
            let fits =
                self.setup.candidates.iter().filter(|c| sort == TypeId::REAL || c.is_integer());
            let mut codes: Vec<u32> = fits
                .map(|c| sort.bits().map_or_else(|| c.clone(), |bits| residue(c, bits)))
                .map(|c| self.numbers.code(&c))
                .collect();
            if sort.bits().is_some() {
                codes.sort_unstable();
                codes.dedup();
            }
            return (!self.setup.candidates.is_empty()).then_some(codes);
        }
        let constructors = &self.system.type_of(sort).constructors;
        if self.buffers_elements(sort) {
            return Some(self.elements(state, slot, fresh));
        }
        if constructors.is_empty() {
            // An abstract type needs as many elements as there are cells of it, so that every
            // pattern of equalities exists.
            let cells = narrow::index(
                self.layout.symbol.iter().filter(|s| self.system.symbol(**s).sort == sort).count(),
            );
            return Some((0..cells.max(1)).collect());
        }
        Some(constructors.iter().map(|c| c.number()).collect())
    }
    /// Returns the sort of a slot.
    pub(crate) fn sort_of(&self, slot: u32) -> TypeId {
        sort(self.system, &self.layout, slot)
    }
    /// Returns the name of a slot's cell, `A[#1,#2]`.
    pub(crate) fn cell_name(&self, slot: u32) -> String {
        let name = &self.system.symbol(self.layout.symbol[slot as usize]).name;
        let args: Vec<_> =
            self.layout.args(self.system, slot).iter().map(|p| format!("#{}", p + 1)).collect();
        if args.is_empty() { name.clone() } else { format!("{name}[{}]", args.join(",")) }
    }
    pub(crate) fn undetermined_error(&self, slot: u32) -> Diagnostic {
        let id = self.layout.symbol[slot as usize];
        let symbol = self.system.symbol(id);
        let name = self.cell_name(slot);
        let stored = self
            .system
            .transitions
            .iter()
            .find(|t| t.updates.iter().any(|u| u.symbol() == id && u.stores_any()));
        let message = match stored {
            None => format!("`{name}` is read before it has a value, expected a value in `init`"),
            Some(t) => format!(
                "`{name}` is read before it has a value: `init` does not determine it, or `{}` has stored any number (`{} := .`)",
                t.name, symbol.name
            ),
        };
        let error = Diagnostic::at(Stage::Unsupported, symbol.place.0, message);
        let sort = sort(self.system, &self.layout, slot);
        let value = match self.system.type_of(sort).constructors.first() {
            _ if sort == TypeId::PROC => "#1".to_string(),
            _ if sort.is_numeric() => "NUMBER".to_string(),
            Some(first) => self.system.constructor(*first).name.clone(),
            // Elements of an abstract type have no text.
            None => return error,
        };
        let note = format!("-D {}={value} sets its initial value", symbol.name);
        if stored.is_none() {
            error.note(note)
        } else {
            error.note(format!("{note}; `prove` supports steps that store any value"))
        }
    }

    /// Returns the code of a cell as `by` reads it, possibly [`ANY`].
    fn read(&self, state: &[u32], cell: GroundCell) -> u32 {
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
    fn determined_value(&self, state: &[u32], cell: GroundCell) -> Evaluated<u32> {
        match self.read(state, cell) {
            ANY => Err(StepObstacle::Slot(cell.slot)),
            code => Ok(code),
        }
    }
    fn sum(&self, state: &[u32], sum: &GroundSum) -> Evaluated<u32> {
        let codes = sum
            .terms
            .iter()
            .map(|(_, c)| self.determined_value(state, *c))
            .collect::<Evaluated<Vec<_>>>()?;
        if let Some((constant, terms)) = &sum.small {
            // Factors and values are below 2^28, so products are below 2^56, and a hundred of them
            // do not overflow.
            let values = terms
                .iter()
                .zip(&codes)
                .map(|((f, _), c)| NumberTable::as_small(*c).map(|v| f * v))
                .collect::<Option<Vec<_>>>();
            if let Some(values) = values.filter(|v| v.len() < 100) {
                let total = constant + values.iter().sum::<i64>();
                let total = sum.bits.map_or(total, |bits| total.rem_euclid(1 << bits));
                return Ok(NumberTable::small(total).unwrap_or_else(|| {
                    self.numbers.code(&BigRational::from_integer(total.into()))
                }));
            }
        }
        let total = sum
            .terms
            .iter()
            .zip(&codes)
            .fold(sum.constant.clone(), |acc, ((f, _), c)| acc + f * self.numbers.number(*c));
        let total = sum.bits.map_or(total.clone(), |bits| residue(&total, bits));
        Ok(self.numbers.code(&total))
    }
    fn term(&self, state: &[u32], term: &GroundTerm) -> Evaluated<u32> {
        match term {
            GroundTerm::Code(code) => Ok(*code),
            GroundTerm::Cell(cell) => self.determined_value(state, *cell),
            GroundTerm::Sum(sum) => self.sum(state, sum),
        }
    }
    fn atom(&self, state: &[u32], atom: &GroundAtom) -> Evaluated<bool> {
        Ok(match atom {
            GroundAtom::Empty(p) => state[self.buffer_slot(*p)] == 0,
            GroundAtom::Codes(a, op, b) => {
                holds(self.term(state, a)?.cmp(&self.term(state, b)?), *op)
            }
            GroundAtom::Numbers(a, op, b) => {
                let (a, b) = (self.term(state, a)?, self.term(state, b)?);
                match (op, NumberTable::as_small(a), NumberTable::as_small(b)) {
                    (ComparisonOp::Eq, ..) => a == b,
                    (ComparisonOp::Neq, ..) => a != b,
                    (_, Some(a), Some(b)) => holds(a.cmp(&b), *op),
                    _ => holds(self.numbers.number(a).cmp(&self.numbers.number(b)), *op),
                }
            }
        })
    }
    /// Returns whether a cube holds. A false atom decides, even if others depend on open cells.
    pub(crate) fn holds(&self, state: &[u32], cube: &GroundCube) -> Evaluated<bool> {
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
    /// Returns the error for a condition or value that cannot be evaluated.
    pub(crate) fn failure(&self, need: StepObstacle) -> Diagnostic {
        match need {
            StepObstacle::Slot(slot) => self.undetermined_error(slot),
            StepObstacle::Fault(error) => error,
        }
    }
    /// Returns whether a cube holds.
    ///
    /// # Errors
    ///
    /// It depends on an undetermined number.
    pub(crate) fn holds_or_fails(
        &self,
        state: &[u32],
        cube: &GroundCube,
    ) -> Result<bool, Diagnostic> {
        self.holds(state, cube).map_err(|need| self.failure(need))
    }
    fn is_enabled(&self, state: &[u32], g: &Ground) -> Evaluated<bool> {
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
    /// Returns the cell and code of an equation between an open cell and a value.
    pub(crate) fn equation(&self, state: &[u32], atom: &GroundAtom) -> Option<(u32, u32)> {
        let (GroundAtom::Codes(a, ComparisonOp::Eq, b)
        | GroundAtom::Numbers(a, ComparisonOp::Eq, b)) = atom
        else {
            return None;
        };
        let assigns = |cell: &GroundTerm, to: &GroundTerm| match cell {
            GroundTerm::Cell(c) if state[c.slot as usize] == ANY => {
                Some((c.slot, self.term(state, to).ok()?))
            }
            _ => None,
        };
        let (slot, code) = assigns(a, b).or_else(|| assigns(b, a))?;
        // A fraction is not a value of an integer cell, and a word has only its remainders.
        let sort = sort(self.system, &self.layout, slot);
        let fits = match sort.bits() {
            Some(bits) => {
                let number = self.numbers.number(code);
                residue(&number, bits) == number
            }
            None => sort != TypeId::INT || self.numbers.number(code).is_integer(),
        };
        fits.then_some((slot, code))
    }
    /// Computes the values that a transition stores; `None` if the guard is false.
    fn outcome(&self, state: &[u32], g: &Ground) -> Evaluated<Option<Vec<Option<StoredValue>>>> {
        if !self.is_enabled(state, g)? {
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
                    GroundValue::Any => StoredValue::Any,
                    // An undetermined number without candidates is copied without reading it.
                    GroundValue::Term(GroundTerm::Cell(c))
                        if self.read(state, *c) == ANY && !self.has_domain(c.slot) =>
                    {
                        StoredValue::Code(ANY)
                    }
                    GroundValue::Term(t) => StoredValue::Code(self.term(state, t)?),
                });
                break;
            }
            out.push(stored);
        }
        Ok(Some(out))
    }
    /// Computes the results of a transition: for each, the changed slots and their codes. `eager`
    /// enumerates all values of `:= .` for finite sorts; otherwise they stay open, unless an
    /// assumption mentions them.
    pub(crate) fn fire(
        &self,
        state: &[u32],
        g: &Ground,
        eager: bool,
        out: &mut Vec<Vec<(u32, u32)>>,
    ) -> Evaluated<()> {
        let Some(stored) = self.outcome(state, g)? else { return Ok(()) };
        let mut results = vec![Vec::with_capacity(stored.len())];
        let arbitrary = stored.iter().filter(|s| matches!(s, Some(StoredValue::Any))).count();
        for (update, stored) in g.updates.iter().zip(stored) {
            let buffered = update.weak && !g.locked;
            let values = match stored {
                None if buffered => vec![NOTHING],
                None => continue,
                Some(StoredValue::Code(code)) => vec![code],
                Some(StoredValue::Any)
                    if eager
                        || buffered
                        || self.assumed_cells.contains(&update.slot)
                        || self.has_beyond(update.slot) =>
                {
                    self.domain(state, update.slot, arbitrary).unwrap_or_else(|| vec![ANY])
                }
                Some(StoredValue::Any) => vec![ANY],
            };
            results = results
                .iter()
                .flat_map(|r: &Vec<(u32, u32)>| {
                    values.iter().map(|v| r.iter().copied().chain([(update.slot, *v)]).collect())
                })
                .collect();
            if results.len() > 1 << 20 {
                let place = self.system.transitions[g.transition as usize].place.0;
                return Err(StepObstacle::Fault(Diagnostic::at(
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
            // The entry contains all weak updates; only plain ones without a matching case are
            // dropped.
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
            let buffer: Arc<[TransitionWrites]> =
                before.iter().cloned().chain([TransitionWrites { shape, values }]).collect();
            result.push((narrow::index(slot), self.buffers.intern(buffer)));
            true
        });
    }
    /// Returns the changes by flushing a process's oldest entry; `None` if its buffer is empty.
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
        out.push((narrow::index(slot), self.buffers.intern(Arc::from(rest))));
        Some(out)
    }
    /// True if no assumption is contradicted for all values of open cells. Assumptions that depend
    /// on open cells are checked when these get values.
    pub(crate) fn respects_assumptions(&self, state: &[u32]) -> bool {
        !self.assumptions.iter().any(|cube| matches!(self.holds(state, cube), Ok(true)))
    }
}
