//! Loads, stores, exclusives, and read-modify-writes of a path: their events and dependencies.
//!
//! Input: the state of a path before an operation. Output: its continuations, one for each value
//! that the operation may read and each outcome.

use super::{Data, EventShape, Events, KnownAccess, PathState, RESERVED, Runner, sources};
use crate::code::{Atomicity, Flow, Op, Register, RegisterExpr};
use crate::inside::{PathEvent, Port, memory};
use mu_axioms::EventKind;
use mu_base::Stop;
use mu_base::narrow;

impl Runner<'_> {
    /// Executes a store. Returns the path, unless it ends here.
    pub(super) fn store(&mut self, mut s: PathState, op: &Op, here: u32) -> Option<PathState> {
        let Op::Store { address, width, value, tags, joined } = op else { return None };
        let (instruction, atomic) = (self.thread.instruction[here as usize], self.thread.atomic);
        let access = match self.write_access(&s, address, *width) {
            Ok(access) => access,
            Err(strayed) => {
                self.stop(s, instruction, strayed);
                return None;
            }
        };
        if !joined {
            s.index += 1;
        }
        let mut data = Data::of(value, &s);
        let is_atomic = *tags & atomic != 0;
        if is_atomic {
            data.split(&s);
        }
        let from = self.sources(&mut s, address, Port::Address, 0);
        let with = self.sources(&mut s, value, Port::Data, 0);
        let value = value.value(&s.registers, 0);
        let written = self.write(&mut s, &access, value, data, *tags, here);
        if is_atomic {
            s.pair(atomic, written);
        }
        let written = memory(written);
        s.recorder.data(&from, &written);
        s.recorder.data(&with, &written);
        s.recorder.write(&written);
        Some(s)
    }
    /// Executes a load, once for each value that it may read. The paths are added to the list.
    pub(super) fn load(&mut self, mut s: PathState, op: &Op, here: u32, todo: &mut Vec<PathState>) {
        let Op::Load { into, value, address, width, tags, reserve, joined } = op else { return };
        let instruction = self.thread.instruction[here as usize];
        let access = match self.access(&s, address, *width) {
            Ok(access) => access,
            Err(strayed) => return self.stop(s, instruction, strayed),
        };
        if !joined {
            s.index += 1;
        }
        let from = self.sources(&mut s, address, Port::Address, 0);
        let first = narrow::index(s.shape.events.len());
        let event = EventShape::new(EventKind::Read, None, *tags, &s, instruction).at(&access);
        let mut one = first;
        match &mut s.reservation {
            // The loads of an exclusive pair are one access.
            Some((start, count, _)) if *reserve && *joined => {
                *count += access.count;
                one = *start;
            }
            reservation if *reserve => {
                *reservation = Some((first, access.count, access.address));
            }
            _ => {}
        }
        for loaded in self.choices(&s, &access) {
            let mut next = s.clone();
            let read = self.read(&mut next, &access, loaded, &event);
            if one < first {
                (first..first + access.count)
                    .for_each(|e| next.shape.events[e as usize].access = one);
            }
            next.recorder.data(&from, &memory(read));
            if *reserve {
                self.note_reservation(&mut next, &from);
            }
            self.assign(&mut next, *into, value, loaded, read);
            todo.push(next);
        }
    }
    /// Executes a store-conditional. The failing path is added to the list. Returns the succeeding
    /// path, if it is possible.
    pub(super) fn store_conditional(
        &mut self,
        mut s: PathState,
        op: &Op,
        here: u32,
        todo: &mut Vec<PathState>,
    ) -> Option<PathState> {
        let Op::StoreConditional { status, address, width, value, tags, carries, second } = op
        else {
            return None;
        };

        let reserved = s.reservation.take();
        let from = self.sources(&mut s, address, Port::Address, 0);
        // As in the herd tools, the data of a store-conditional are no `DATA`.
        let with = self.sources(&mut s, value, Port::Other, 0);
        let then = second.as_ref().map(|v| self.sources(&mut s, v, Port::Other, 0));
        let held = self.sources(&mut s, &RegisterExpr::Register(RESERVED), Port::Other, 0);
        let mut failed = s.clone();
        self.end_reservation(&mut failed, &held);
        failed.shape.fails = true;
        self.assign(&mut failed, *status, &RegisterExpr::Const(1), 0, 0);
        if let Some(r) = status {
            failed.chosen[*r as usize] = true;
        }
        todo.push(failed);
        let (load, count, at) = reserved?;
        let access = match self.write_access(&s, address, *width) {
            Ok(access) => access,
            Err(strayed) => {
                self.stop(s, self.thread.instruction[here as usize], strayed);
                return None;
            }
        };
        let next = match second {
            Some(_) => {
                Some(self.access(&s, &address.clone().plus(u64::from(*width)), *width).ok()?)
            }
            None => None,
        };
        let whole = access.count + next.as_ref().map_or(0, |n| n.count);
        if at != access.address || count != whole {
            return None;
        }
        s.index += 1;
        let first = narrow::index(s.shape.events.len());
        let mut written = 0;
        for (access, value, with) in [(Some(&access), Some(value), Some(&with))]
            .into_iter()
            .chain([(next.as_ref(), second.as_ref(), then.as_ref())])
        {
            let (Some(access), Some(value), Some(with)) = (access, value, with) else { continue };
            let data = Data::of(value, &s);
            let value = value.value(&s.registers, 0);
            let part = self.write(&mut s, access, value, data, *tags, here);
            let nodes = memory(part);
            s.recorder.data(&from, &nodes);
            s.recorder.data(with, &nodes);
            s.recorder.control(&from, &nodes);
            s.recorder.control(&held, &nodes);
            written |= part;
        }
        (first..first + whole).for_each(|e| s.shape.events[e as usize].access = first);
        (0..count).for_each(|i| s.shape.lxsx.push((load + i, first + i)));
        self.end_reservation(&mut s, &held);
        if let Some(r) = status {
            s.registers[*r as usize] = 0;
            s.chosen[*r as usize] = true;
            let sources = if *carries { written | access.sources } else { 0 };
            let picks = if *carries { written | access.picks } else { 0 };
            (s.sources[*r as usize], s.picks[*r as usize]) = (sources, picks);
            let known = |r: Register| self.is_temporary(r);
            s.recorder.assign_under(
                *r,
                if *carries { &from } else { &[] },
                if *carries { memory(written) } else { Vec::new() },
                &known,
            );
        }
        Some(s)
    }
    /// Executes a read-modify-write, once for each value that it may read and each outcome.
    pub(super) fn update(
        &mut self,
        mut s: PathState,
        op: &Op,
        here: u32,
        todo: &mut Vec<PathState>,
    ) -> Result<(), Stop> {
        let Op::Update { address, width, when, atomicity, flow, joined, .. } = op else {
            return Ok(());
        };
        let access = match self.write_access(&s, address, *width) {
            Ok(access) => access,
            Err(strayed) => {
                let instruction = self.thread.instruction[here as usize];
                self.stop(s, instruction, strayed);
                return Ok(());
            }
        };
        if !joined {
            s.index += 1;
        }
        for loaded in self.choices(&s, &access) {
            let writes = when.as_ref().is_none_or(|w| w.value(&s.registers, loaded) != 0);
            match flow {
                Flow::Plain if *atomicity == Atomicity::One && writes => {
                    todo.push(self.update_at_once(s.clone(), op, here, &access, loaded))
                }
                Flow::Plain | Flow::Kernel => todo.push(self.update_with(
                    s.clone(),
                    op,
                    here,
                    &access,
                    loaded,
                    AccessOutcome::of(writes),
                )),
                Flow::Pick => {
                    let outcomes = if writes {
                        [AccessOutcome::Written, AccessOutcome::Expected]
                    } else {
                        [AccessOutcome::Unwritten, AccessOutcome::Back]
                    };
                    for outcome in outcomes {
                        todo.push(self.update_with(s.clone(), op, here, &access, loaded, outcome));
                    }
                }
            }
        }
        Ok(())
    }
    /// Executes a read-modify-write as one event.
    fn update_at_once(
        &self,
        mut s: PathState,
        op: &Op,
        here: u32,
        access: &KnownAccess,
        loaded: u64,
    ) -> PathState {
        let Op::Update { into, value, when, read, address, .. } = op else { return s };
        let from = self.sources(&mut s, address, Port::Address, 0);
        let first = narrow::index(s.shape.events.len());
        let event = EventShape::new(
            EventKind::Update,
            None,
            *read,
            &s,
            self.thread.instruction[here as usize],
        )
        .at(access);
        let source = self.read(&mut s, access, loaded, &event);
        let with = self.sources(&mut s, value, Port::Data, 0);
        s.recorder.data(&from, &memory(source));
        s.recorder.data(&with, &memory(source));
        let data =
            sources(value, &s.sources, 0) | when.as_ref().map_or(0, |w| sources(w, &s.sources, 0));
        let new = value.value(&s.registers, loaded);
        let uses = value.sources(&mut |_| ()) || when.is_some();
        let (idle, copies) = match when {
            None => (s.idle(value, 0), value.is_copy(&|r| s.copies[r as usize])),
            Some(_) => (0, false),
        };
        for i in 0..access.count {
            let at = (first + i) as usize;
            s.shape.events[at].data = data;
            (s.shape.events[at].idle, s.shape.events[at].copies) = (idle, copies);
            s.shape.events[at].own = uses;
            s.writes[at] = self.part(access, i, new);
        }
        if let Some((r, e)) = into {
            self.assign(&mut s, Some(*r), e, loaded, source);
        }
        s
    }
    /// Executes a read-modify-write as a read and a write.
    fn update_with(
        &self,
        mut s: PathState,
        op: &Op,
        here: u32,
        access: &KnownAccess,
        loaded: u64,
        outcome: AccessOutcome,
    ) -> PathState {
        let Op::Update { into, address, value, when, read, write, failed, atomicity, flow, .. } =
            op
        else {
            return s;
        };
        let from = self.sources(&mut s, address, Port::Address, 0);
        let first = narrow::index(s.shape.events.len());
        let tags = if outcome == AccessOutcome::Unwritten { *failed } else { *read };
        let event = EventShape::new(
            EventKind::Read,
            None,
            tags,
            &s,
            self.thread.instruction[here as usize],
        )
        .at(access);
        let source = self.read(&mut s, access, loaded, &event);
        let loads = memory(source);
        s.recorder.data(&from, &loads);
        // The registers that the value read is compared with.
        let compared = match when {
            Some(when) => self.sources(&mut s, when, Port::Data, 0),
            None => Vec::new(),
        };
        if *flow == Flow::Pick {
            let both: Vec<PathEvent> = compared.iter().chain(&loads).copied().collect();
            s.recorder.choose(&both);
        }
        let decides = |of: &[Events]| when.as_ref().map_or(0, |w| sources(w, of, 0));
        let (expected, picked) = (decides(&s.sources), decides(&s.picks));
        if outcome != AccessOutcome::Unwritten {
            let from_loaded = outcome == AccessOutcome::Back || value.sources(&mut |_| ());
            let mut data =
                if outcome == AccessOutcome::Back { Data::default() } else { Data::of(value, &s) };
            data.within =
                [if from_loaded { source } else { 0 }, if when.is_some() { source } else { 0 }];
            match flow {
                Flow::Plain => {
                    data.sources |= expected;
                    data.idle &= !expected;
                }
                Flow::Kernel => {
                    let uses = value.sources(&mut |_| ());
                    data.sources |= if uses { source } else { 0 };
                    data.idle &= !source;
                    data.within = [0, 0];
                }
                Flow::Pick => data.picks |= picked,
            }
            let new = if outcome == AccessOutcome::Back {
                loaded
            } else {
                value.value(&s.registers, loaded)
            };
            s.index += 1;
            let second = narrow::index(s.shape.events.len());
            let with = if outcome == AccessOutcome::Back {
                loads.clone()
            } else {
                self.sources(&mut s, value, Port::Data, source)
            };
            let written = self.write(&mut s, access, new, data, *write, here);
            let nodes = memory(written);
            s.recorder.data(&from, &nodes);
            s.recorder.data(&with, &nodes);
            s.recorder.write(&nodes);
            if *flow == Flow::Plain {
                s.recorder.data(&compared, &nodes);
                if !from_loaded {
                    let after = second..second + access.count;
                    let pairs = (first..first + access.count)
                        .flat_map(|r| after.clone().map(move |w| (r, w)));
                    s.shape.order.extend(pairs);
                }
            }
            if *atomicity == Atomicity::Pair {
                (0..access.count).for_each(|i| s.shape.amo.push((first + i, second + i)));
            }
        }
        if let Some((r, e)) = into {
            s.assign(Some(*r), e, loaded, source);
            let is_temporary = |r: Register| self.is_temporary(r);
            if outcome == AccessOutcome::Expected {
                s.sources[*r as usize] = expected;
                s.picks[*r as usize] = picked | source;
                s.recorder.assign(*r, &compared, &is_temporary);
            } else {
                s.recorder.release();
                s.recorder.assign(*r, &loads, &is_temporary);
            }
        }
        s.recorder.release();
        s
    }
}

/// The outcome of a read-modify-write of two events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessOutcome {
    /// It writes; its result is the value read.
    Written,
    /// It writes; its result is the expected value.
    Expected,
    /// It does not write.
    Unwritten,
    /// It writes back the value read.
    Back,
}

impl AccessOutcome {
    fn of(writes: bool) -> Self {
        if writes { AccessOutcome::Written } else { AccessOutcome::Unwritten }
    }
}
