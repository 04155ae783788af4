//! Calls with lazy arguments: an argument that only some equations use is evaluated after one of
//! these is chosen.
//!
//! The compiler determines the lazy arguments of equations ([`super::code::Func`]); only arguments
//! that contain a call are deferred. An argument that is the whole result replaces the call, so
//! that recursion through it needs no stack. Compare van de Pol: "JITty: a rewriter with strategy
//! annotations" (RTA 2002). Cost: that of a call, and a copy of the matched fields if an argument
//! is used.
//!
//! Invariant: neither a pattern nor a condition inspects a deferred argument, so its slot may hold
//! anything meanwhile.

use super::code::{CodeNode, Leaf, has};
use super::compile::Program;
use super::machine::{EvaluationMachine, MAX_DEPTH, Outcome, Selected};
use super::polling::CallState;
use crate::value::Value;
use mu_base::ids::OpId;

/// Result of a call with deferred arguments.
pub(super) enum LazyAnswer<'a> {
    /// No equation matches, or the match is undecided.
    Value(Value),
    /// The argument at this position, evaluated in the frame of the caller.
    Argument(usize),
    /// An equation; its frame has replaced that of the caller.
    Rule(&'a Leaf),
}

impl EvaluationMachine {
    /// Evaluates a call from the frame at `base`, which ends above `floor`.
    #[inline(never)]
    pub(super) fn lazy_call<'a>(
        &mut self,
        p: &'a Program,
        index: u32,
        args: &[CodeNode],
        state: CallState,
        base: usize,
        floor: usize,
    ) -> Outcome<LazyAnswer<'a>> {
        let (func, lazy) = (&p.funcs[index as usize], state.lazy);
        let frame = self.stack.len();
        for (i, a) in args.iter().enumerate() {
            let v = if has(lazy, i) { Value::Bool(false) } else { self.eval(p, a, base)? };
            self.stack.push(v);
        }
        let end = frame + args.len();
        let selected = self.select_rule(p, func, frame)?;
        let Selected::Rule(leaf) = selected else {
            self.stack.truncate(end);
            let undecided = matches!(selected, Selected::Undecided);
            self.run_suspended(undecided, |m| {
                (0..args.len())
                    .filter(|i| has(lazy, *i))
                    .try_for_each(|i| m.evaluate_at(p, &args[i], base, frame + i))
            })?;
            let args: Vec<Value> = self.stack.drain(frame..).collect();
            return Ok(LazyAnswer::Value(self.no_rule(p, func, args, undecided)?));
        };
        if self.meter.step() || self.depth > MAX_DEPTH {
            self.pause(p, func, frame, leaf.span, state)?;
        }
        let wanted = lazy & leaf.uses;
        if let CodeNode::Local(slot) = leaf.rhs
            && has(wanted, slot as usize)
        {
            self.stack.truncate(end);
            return Ok(LazyAnswer::Argument(slot as usize));
        }
        if wanted != 0 {
            let fields: Vec<Value> = self.stack.drain(end..).collect();
            (0..args.len())
                .filter(|i| has(wanted, *i))
                .try_for_each(|i| self.evaluate_at(p, &args[i], base, frame + i))?;
            self.stack.extend(fields);
        }
        self.stack.drain(floor..frame);
        Ok(LazyAnswer::Rule(leaf))
    }

    fn evaluate_at(
        &mut self,
        p: &Program,
        arg: &CodeNode,
        base: usize,
        slot: usize,
    ) -> Outcome<()> {
        self.stack[slot] = self.eval(p, arg, base)?;
        Ok(())
    }

    fn reevaluate_at(&mut self, p: &Program, slot: usize) -> Outcome<()> {
        let v = self.stack[slot].clone();
        self.stack[slot] = self.reevaluate(p, &v)?;
        Ok(())
    }

    /// Evaluates as if behind an undecided condition, so that recursion over an unknown ends.
    fn run_suspended(
        &mut self,
        undecided: bool,
        what: impl FnOnce(&mut Self) -> Outcome<()>,
    ) -> Outcome<()> {
        self.suspended += u32::from(undecided);
        let result = what(self);
        self.suspended -= u32::from(undecided);
        result
    }

    /// Re-evaluates a call with the current values of unknowns; `None` if the operation has no lazy
    /// arguments at this number of them.
    pub(super) fn reevaluate_lazy(
        &mut self,
        p: &Program,
        op: OpId,
        args: &[Value],
    ) -> Outcome<Option<Value>> {
        let info = p.op(op);
        if info.levels.get(1).is_none_or(|n| *n as usize != args.len()) || info.lazy[1] == 0 {
            return Ok(None);
        }
        let (Some(index), lazy) = (info.funcs[1], info.lazy[1]) else { return Ok(None) };
        let func = &p.funcs[index as usize];
        let frame = self.stack.len();
        for (i, a) in args.iter().enumerate() {
            let v = if has(lazy, i) { a.clone() } else { self.reevaluate(p, a)? };
            self.stack.push(v);
        }
        let end = frame + args.len();
        let selected = self.select_rule(p, func, frame)?;
        let Selected::Rule(leaf) = selected else {
            self.stack.truncate(end);
            let undecided = matches!(selected, Selected::Undecided);
            self.run_suspended(undecided, |m| {
                (0..args.len())
                    .filter(|i| has(lazy, *i))
                    .try_for_each(|i| m.reevaluate_at(p, frame + i))
            })?;
            let args: Vec<Value> = self.stack.drain(frame..).collect();
            return Ok(Some(self.no_rule(p, func, args, undecided)?));
        };
        if self.meter.step() || self.depth > MAX_DEPTH {
            self.pause(p, func, frame, leaf.span, CallState::default())?;
        }
        (0..args.len())
            .filter(|i| has(lazy & leaf.uses, *i))
            .try_for_each(|i| self.reevaluate_at(p, frame + i))?;
        let value = self.eval(p, &leaf.rhs, frame)?;
        self.stack.truncate(frame);
        Ok(Some(value))
    }
}
