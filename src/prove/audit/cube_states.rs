//! States close to a cube: all its facts are made true for random processes. A mutation then
//! violates one or two facts, so that one step may lead back into the cube.
//!
//! Memory and views agree: entries of buffers that write a cell of the cube are removed. Cost:
//! linear in the facts.

use super::InstanceAudit;
use super::invariant::{Fact, InvariantCell, Point};
use super::machine::{AuditMachine, MachineState};
use super::value::{AuditValue, Number, divide, plus, residue, times, whole};
use mu_cubicle::system::TypeId;

impl InstanceAudit<'_> {
    /// Draws a state that satisfies the facts of a random cube, as far as one pass can.
    pub(super) fn near_cube(
        &mut self,
        machine: &AuditMachine,
        from: &MachineState,
    ) -> MachineState {
        let mut state = if self.generator.random.chance(1, 4) {
            self.generator.random_state(machine)
        } else {
            from.clone()
        };
        let cube = self.generator.random.choose(&self.invariant.cubes).clone();
        if cube.names > machine.n as usize {
            return state;
        }
        let mut names: Vec<u32> = (0..machine.n).collect();
        for i in (self.invariant.fixed + 1..names.len()).rev() {
            names.swap(
                i,
                self.invariant.fixed + self.generator.random.below(i + 1 - self.invariant.fixed),
            );
        }
        names.truncate(cube.names);
        cube.all_facts().for_each(|fact| self.hold(machine, &mut state, &names, fact));
        state
    }

    fn hold(
        &mut self,
        machine: &AuditMachine,
        state: &mut MachineState,
        names: &[u32],
        fact: &Fact,
    ) {
        let slot =
            |cell: &InvariantCell| machine.slot(cell.symbol, cell.args.iter().map(|a| names[*a]));
        match fact {
            Fact::Processes { cell, names: listed, other } => {
                let mut among: Vec<u32> = listed.iter().map(|at| names[*at]).collect();
                if *other {
                    among.extend((0..machine.n).filter(|p| !names.contains(p)));
                }
                if !among.is_empty() {
                    write(
                        state,
                        slot(cell),
                        AuditValue::Process(*self.generator.random.choose(&among)),
                    );
                }
            }
            Fact::Constructors(cell, among) if !among.is_empty() => {
                write(
                    state,
                    slot(cell),
                    AuditValue::Constructor(*self.generator.random.choose(among)),
                );
            }
            Fact::Constructors(..) => {}
            Fact::Equal(a, b, equal) => {
                let value = if *equal {
                    state.cells[slot(b)]
                } else {
                    self.generator.value(machine, machine.sort(slot(a)), None)
                };
                write(state, slot(a), value);
                write(state, slot(b), state.cells[slot(b)]);
            }
            Fact::Before(a, b, _) => {
                for point in [a, b] {
                    if let Point::Held(cell) = point {
                        write(state, slot(cell), self.generator.value(machine, TypeId::PROC, None));
                    }
                }
            }
            Fact::Sum { terms, constant, sign } => {
                if let Some((at, n)) =
                    self.solve_sum(machine, state, terms, *constant, sign.offset(), &slot)
                {
                    write(state, at, AuditValue::Number(n));
                }
            }
            Fact::Words { bits, left, sign, right } => {
                // Without wrapping, the comparison of the remainders is that of the sums.
                let parts = left.0.iter().map(|t| (t.0, &t.1));
                let others = right.0.iter().map(|t| (-t.0, &t.1));
                let terms: Vec<(Number, InvariantCell)> = parts
                    .chain(others)
                    .map(|(f, c)| (Number::from_integer(f), c.clone()))
                    .collect();
                let constant = Number::from_integer(left.1 - right.1);
                if let Some((at, n)) =
                    self.solve_sum(machine, state, &terms, constant, sign.offset(), &slot)
                {
                    let own = machine.sort(at).bits().unwrap_or(*bits);
                    write(state, at, AuditValue::Number(residue(n, own)));
                }
            }
            Fact::Fence(view) => state.buffers[names[view.0] as usize].clear(),
        }
    }

    /// Solves a sum for one of its slots. Returns the slot and its number.
    fn solve_sum(
        &mut self,
        machine: &AuditMachine,
        state: &MachineState,
        terms: &[(Number, InvariantCell)],
        constant: Number,
        wanted: i64,
        slot: &dyn Fn(&InvariantCell) -> usize,
    ) -> Option<(usize, Number)> {
        if terms.is_empty() {
            return None;
        }
        let at = self.generator.random.below(terms.len());
        let mut total = constant;
        for (i, (factor, cell)) in terms.iter().enumerate() {
            let AuditValue::Number(n) = state.cells[slot(cell)] else { return None };
            if i != at {
                total = plus(total, times(*factor, n)?)?;
            }
        }
        let found = slot(&terms[at].1);
        let n = divide(plus(whole(wanted), -total)?, terms[at].0)?;
        Some((found, if machine.sort(found) == TypeId::INT { n.floor() } else { n }))
    }
}

/// Sets a cell in memory and in all views.
fn write(state: &mut MachineState, slot: usize, value: AuditValue) {
    state.cells[slot] = value;
    for buffer in &mut state.buffers {
        buffer.retain(|entry| entry.iter().all(|w| w.0 != slot));
    }
}
