//! Initial states of a machine: the solutions of `init` for all choices of processes.
//!
//! Equations propagate, and so do instances of `init` with one cube that may hold. An instance with
//! several cubes splits the state by the values of a cell that many cubes read, and only if no such
//! cell has finitely many values, by its cubes: several instances of one formula have exponentially
//! many combinations of cubes. Other conditions on open cells split the state too, and so do cells
//! that an assumption mentions. Other unread cells stay open ([`ANY`]), unless the caller requests
//! all values. If no state of the processes 1 to n satisfies `init`, each cell of processes may
//! contain one process beyond them, too: for example, `Home <> p` for all `p` means that the home
//! does not participate otherwise. Equivalent formulas have the same states, so this holds for
//! cells that `init` does not mention. Cost: the number of values of the cells that no false
//! instance excludes, times the instances of `init`.

use crate::ground::{GroundAtom, GroundCube, GroundTerm, for_each_read_cell, sort, tuples};
use crate::literals;
use crate::machine::{Machine, StepObstacle};
use crate::system::{ComparisonOp, TypeId, residue};
use crate::value::ANY;
use mu_base::{Diagnostic, Stage};
use num_rational::BigRational;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Limit on the number of initial states; more are an error.
const MAX_VALUES: usize = 1 << 20;

struct StartSearch<'m, 's> {
    machine: &'m Machine<'s>,
    /// True to enumerate every value of finite sorts; otherwise open cells stay open.
    eager: bool,
    found: BTreeSet<Vec<u32>>,
}

impl Machine<'_> {
    /// Returns the initial states; open cells stay open.
    ///
    /// # Errors
    ///
    /// An undetermined number that `init` compares, if the setup has no candidates; more than 2^20
    /// states.
    pub fn initial_states(&self) -> Result<Vec<Vec<u32>>, Diagnostic> {
        self.start(false)
    }
    pub(crate) fn start(&self, eager: bool) -> Result<Vec<Vec<u32>>, Diagnostic> {
        let mut atoms = self.initial_values()?;
        let mut choices = Vec::new();
        for procs in tuples(self.layout.n, self.system.init.params.len()) {
            let Some(mut dnf) = self.grounder(procs).dnf(&self.system.init.dnf) else { continue };
            match dnf.len() {
                0 => return Ok(Vec::new()),
                1 => atoms.append(&mut dnf[0]),
                _ if choices.contains(&dnf) => {}
                _ => choices.push(dnf),
            }
        }
        let mut search = StartSearch { machine: self, eager, found: BTreeSet::new() };
        self.beyond.store(false, Ordering::Relaxed);
        let all = || choices.iter().map(|dnf| dnf.iter().collect()).collect();
        search.solve(vec![ANY; self.width()], atoms.clone(), all())?;
        if search.found.is_empty() && self.system.symbols.iter().any(|s| s.sort == TypeId::PROC) {
            self.beyond.store(true, Ordering::Relaxed);
            search.solve(vec![ANY; self.width()], atoms, all())?;
        }
        let mut out: Vec<_> = search.found.into_iter().collect();
        if self.memory == crate::machine::Memory::Tso {
            let cells = self.layout.cells as usize;
            out.iter_mut().for_each(|s| s[cells..].fill(0));
        }
        out.retain(|s| self.respects_assumptions(s));
        Ok(out)
    }
    /// Returns the initial values of the setup.
    fn initial_values(&self) -> Result<GroundCube, Diagnostic> {
        let mut out = Vec::new();
        for (symbol, args, value) in &self.setup.start {
            let slot = self.layout.slot(*symbol, args.iter().copied());
            let value = match sort(self.system, &self.layout, slot).bits() {
                Some(bits) => residue(value, bits),
                None => value.clone(),
            };
            let code = GroundTerm::Code(self.numbers.code(&value));
            out.push(GroundAtom::Numbers(
                GroundTerm::Cell(crate::ground::GroundCell { slot, by: None }),
                ComparisonOp::Eq,
                code,
            ));
        }
        for (name, value) in &self.setup.given {
            let Some(at) = self.system.symbols.iter().position(|s| s.name == *name) else {
                let message = format!(
                    "`-D {name}={value}`: the system has no variable, array or constant `{name}`"
                );
                return Err(Diagnostic::new(Stage::Usage, message));
            };
            for slot in
                (0..self.layout.cells).filter(|s| self.layout.symbol[*s as usize].index() == at)
            {
                let code = self
                    .parse_value(sort(self.system, &self.layout, slot), value)
                    .ok_or_else(|| {
                        let sort = sort(self.system, &self.layout, slot);
                        let of = &self.system.type_of(sort).name;
                        let range = sort.bits().map_or_else(String::new, |bits| {
                            let (least, most) = literals::literal_range(bits);
                            format!(", expected a number from {least} to {most}")
                        });
                        let message = format!(
                            "`-D {name}={value}`: `{value}` is not a value of type `{of}`{range}"
                        );
                        Diagnostic::new(Stage::Usage, message)
                    })?;
                let cell = crate::ground::GroundCell { slot, by: None };
                out.push(GroundAtom::Codes(
                    GroundTerm::Cell(cell),
                    ComparisonOp::Eq,
                    GroundTerm::Code(code),
                ));
            }
        }
        Ok(out)
    }
    /// Parses the text of a value to its code.
    fn parse_value(&self, sort: TypeId, text: &str) -> Option<u32> {
        if sort == TypeId::PROC {
            return text
                .strip_prefix('#')
                .unwrap_or(text)
                .parse::<u32>()
                .ok()?
                .checked_sub(1)
                .filter(|p| *p < self.layout.n);
        }
        if sort.is_numeric() {
            let value = match text.split_once('.') {
                None => text.parse::<BigRational>().ok()?,
                Some((whole, part)) => format!("{whole}{part}/1{}", "0".repeat(part.len()))
                    .parse::<BigRational>()
                    .ok()?,
            };
            let value = match sort.bits() {
                Some(bits) if !literals::fits(&value, bits) => return None,
                Some(bits) => residue(&value, bits),
                None => value,
            };
            return (sort == TypeId::REAL || value.is_integer()).then(|| self.numbers.code(&value));
        }
        self.system
            .type_of(sort)
            .constructors
            .iter()
            .find(|c| self.system.constructor(**c).name == text)
            .map(|c| c.number())
    }
}

/// Instances of `init`: of each, one cube must hold.
type Choices<'c> = Vec<Vec<&'c GroundCube>>;

impl StartSearch<'_, '_> {
    fn solve(
        &mut self,
        state: Vec<u32>,
        atoms: GroundCube,
        choices: Choices<'_>,
    ) -> Result<(), Diagnostic> {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.solve_inner(state, atoms, choices))
    }
    fn solve_inner(
        &mut self,
        mut state: Vec<u32>,
        mut atoms: GroundCube,
        mut choices: Choices<'_>,
    ) -> Result<(), Diagnostic> {
        let machine = self.machine;
        // Propagate to the fixed point; the remaining atoms and cubes depend on open cells.
        let mut open;
        loop {
            let before = atoms.len();
            let mut failed = false;
            open = None;
            atoms.retain(|atom| match machine.holds(&state, &vec![atom.clone()]) {
                Ok(holds) => {
                    failed |= !holds;
                    false
                }
                Err(need) => {
                    let assigned = machine.equation(&state, atom);
                    if let Some((slot, code)) = assigned {
                        state[slot as usize] = code;
                        return false;
                    }
                    open = Some(need);
                    true
                }
            });
            if failed {
                return Ok(());
            }
            if atoms.len() < before {
                continue;
            }
            let Some(more) = self.prune(&state, &mut choices) else { return Ok(()) };
            if more.is_empty() {
                break;
            }
            atoms.extend(more);
        }
        if let Some(slot) = self.shared_cell(&state, &choices) {
            return self.split(slot, &state, &atoms, &choices);
        }
        if let Some((first, rest)) = choices.split_first() {
            for cube in first {
                machine.count_choice()?;
                let more = [atoms.as_slice(), cube.as_slice()].concat();
                self.solve(state.clone(), more, rest.to_vec())?;
            }
            return Ok(());
        }
        let slot = match open {
            Some(StepObstacle::Slot(slot)) => Some(slot),
            Some(StepObstacle::Fault(d)) => return Err(d),
            None => {
                let wanted = |s: &u32| {
                    state[*s as usize] == ANY
                        && (self.eager || machine.assumed_cells.contains(s))
                        && machine.has_domain(*s)
                };
                (0..machine.layout.cells).find(wanted)
            }
        };
        let Some(slot) = slot else {
            self.found.insert(state);
            if self.found.len() > MAX_VALUES {
                let place = machine.system.init.place.0;
                let message =
                    "there are more than 2^20 initial states, expected `init` to determine more";
                return Err(Diagnostic::at(Stage::Unsupported, place, message));
            }
            return Ok(());
        };
        self.split(slot, &state, &atoms, &choices)
    }
    /// Solves for each value of an open cell.
    fn split(
        &mut self,
        slot: u32,
        state: &[u32],
        atoms: &GroundCube,
        choices: &Choices<'_>,
    ) -> Result<(), Diagnostic> {
        let machine = self.machine;
        for value in
            machine.open_domain(state, slot).ok_or_else(|| machine.undetermined_error(slot))?
        {
            machine.count_choice()?;
            let mut next = state.to_vec();
            next[slot as usize] = value;
            self.solve(next, atoms.clone(), choices.clone())?;
        }
        Ok(())
    }
    /// Removes the cubes that are false and the instances that are true. Returns the conditions of
    /// the instances with one cube left, which it removes too; `None` if an instance is false.
    fn prune(&self, state: &[u32], choices: &mut Choices<'_>) -> Option<GroundCube> {
        let (mut more, mut failed) = (GroundCube::new(), false);
        choices.retain_mut(|choice| {
            let mut is_true = false;
            choice.retain(|cube| {
                let holds = self.machine.holds(state, cube);
                is_true |= matches!(holds, Ok(true));
                !matches!(holds, Ok(false))
            });
            if is_true {
                return false;
            }
            if let [only] = choice.as_slice() {
                more.extend(only.iter().cloned());
            }
            failed |= choice.is_empty();
            choice.len() > 1
        });
        (!failed).then_some(more)
    }
    /// Returns the open cell that most cubes read, among those with finitely many values. Numbers
    /// have candidates only, so the equations of the cubes determine them.
    fn shared_cell(&self, state: &[u32], choices: &Choices<'_>) -> Option<u32> {
        let machine = self.machine;
        let mut uses: BTreeMap<u32, usize> = BTreeMap::new();
        for cube in choices.iter().flatten() {
            for_each_read_cell(cube, &mut |c| {
                if state[c.slot as usize] == ANY && machine.has_all_values(c.slot) {
                    *uses.entry(c.slot).or_default() += 1;
                }
            });
        }
        uses.into_iter().max_by_key(|(slot, n)| (*n, Reverse(*slot))).map(|(slot, _)| slot)
    }
}
