//! Counting invariants: the number of processes at some places is a sum of words in memory. For
//! example, the tickets of a lock that are taken and not yet served are as many as the processes
//! that wait or are inside.
//!
//! If there are fewer than 2^bits processes, the sum has no other value modulo 2^bits than the
//! number itself. So named processes at these places bound the sum from below, and those elsewhere
//! from above ([`facts`]); no conjunction of facts about few processes implies that. These bounds
//! are part of each query of the decision procedure.
//!
//! Proof of the invariant: it holds initially, and a transition changes the sum by the change of
//! the number of its own processes at the places. The states in which it does not are further cubes
//! that must be unreachable ([`with`]): a state of a run before which the invariant holds. Both
//! proofs assume the invariant for the states before a step only, so this is an induction over the
//! run.
//!
//! Candidates are differences of two variables: one is written on entry to the places, the other
//! one on leaving. Cost: linear in the transitions, times the pairs of variables.

use crate::atom::{Atom, Cell, Literal, NONE, Signature, SymbolSort};
use crate::cube::Cube;
use crate::image::for_each_binding;
use crate::residues::{self, ResidueSum, Residues};
use crate::rules::{
    Comparison, ComparisonScope, FIXED, Rule, RuleValue, Rules, UpdateEffect, instantiate,
};
use crate::simplex::ZeroRelation;
use mu_base::narrow;
use mu_cubicle::system::ComparisonOp;
use std::ops::ControlFlow;

/// A counting invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The array of places.
    pub symbol: usize,
    /// The set of places.
    pub set: u64,
    /// Number of bits of the sum.
    pub bits: u32,
    /// The sum of memory now: its remainder is the number of processes at the places.
    pub sum: ResidueSum,
}

impl Count {
    /// Returns the largest number of processes for which the invariant may be used.
    pub fn most(&self) -> u64 {
        (1 << self.bits) - 1
    }
}

/// Returns the bounds of the sums that follow from the places of the named processes.
pub fn facts(signature: &Signature, processes: usize, atoms: &[Atom]) -> Vec<Atom> {
    let mut found = Vec::new();
    for count in &signature.counts {
        let mentions =
            |a: &Atom| a.cells().iter().any(|c| count.sum.terms.iter().any(|t| t.0 == *c));
        if !atoms.iter().any(mentions) {
            continue;
        }
        let (mut inside, mut outside) = (0, 0);
        for p in 0..narrow::byte(processes) {
            let cell = Cell::new(count.symbol, &[p]);
            let sets = atoms.iter().filter_map(|a| match a {
                Atom::In(c, set) if *c == cell => Some(*set),
                _ => None,
            });
            let set = sets
                .fold(signature.all_values(signature.sorts[count.symbol], processes), |s, x| s & x);
            inside += i64::from(set & !count.set == 0);
            outside += i64::from(set & count.set == 0);
        }
        let bounded = signature.most.map_or(count.most(), |m| count.most().min(m as u64)) as i64;
        let number = |n: i64| ResidueSum::constant(n.max(0), count.bits);
        let too_many = inside > bounded || outside > bounded;
        for literal in [
            Residues::compare(&number(inside), ZeroRelation::Le, &count.sum, count.bits),
            Residues::compare(&count.sum, ZeroRelation::Le, &number(bounded - outside), count.bits),
        ] {
            match literal {
                Literal::Atom(atom) if !too_many => found.push(atom),
                Literal::True if !too_many => {}
                _ => found.push(Atom::In(Cell::new(count.symbol, &[0]), 0)),
            }
        }
    }
    found
}

/// Returns the array with the places of processes: the largest enumeration that each process has a
/// value of.
pub fn places(signature: &Signature) -> Option<usize> {
    let own = |s: &usize| signature.arity[*s] == 1 && !signature.weak[*s];
    let size = |s: &usize| if let SymbolSort::Finite(n) = signature.sorts[*s] { n } else { 0 };
    (0..signature.sorts.len())
        .filter(own)
        .filter(|s| size(s) > 1)
        .max_by_key(|s| (size(s), std::cmp::Reverse(*s)))
}

fn assigns(rule: &Rule, symbol: usize) -> bool {
    rule.changes.iter().any(|c| c.symbol() == symbol)
}

/// Returns the places from which and to which a rule leads, if it moves one process.
fn moves(rule: &Rule, places: usize) -> Option<(u32, u32)> {
    let test = |t: &Comparison| match (&t.left, t.op, &t.right) {
        (RuleValue::Cell(c), ComparisonOp::Eq, RuleValue::Constant(v))
        | (RuleValue::Constant(v), ComparisonOp::Eq, RuleValue::Cell(c))
            if c.symbol() == places =>
        {
            Some((c.args()[0], *v))
        }
        _ => None,
    };
    let (process, from) = rule.guard.iter().find_map(test)?;
    let to = rule.changes.iter().find_map(|c| match c {
        UpdateEffect::Assign(cell, RuleValue::Constant(v))
            if cell.symbol() == places && cell.args()[0] == process =>
        {
            Some(*v)
        }
        _ => None,
    });
    Some((from, to.unwrap_or(from)))
}

/// Returns the number to which `init` sets a variable.
fn initial_number(rules: &Rules, symbol: usize) -> Option<i64> {
    let [cube] = rules.init.1.as_slice() else { return None };
    cube.iter().find_map(|t| match (&t.left, t.op, &t.right) {
        (
            RuleValue::Sum { terms, constant: 0, scale: 1 },
            ComparisonOp::Eq,
            RuleValue::Sum { terms: none, constant, scale: 1 },
        )
        | (
            RuleValue::Sum { terms: none, constant, scale: 1 },
            ComparisonOp::Eq,
            RuleValue::Sum { terms, constant: 0, scale: 1 },
        ) if none.is_empty() && terms.as_slice() == [(Cell::new(symbol, &[]), 1)] => {
            Some(*constant)
        }
        _ => None,
    })
}

/// Returns possible counting invariants: for each two variables, the places between a transition
/// that writes the first and one that writes the second.
pub fn candidates(rules: &Rules) -> Vec<Count> {
    let signature = &rules.signature;
    let Some(places) = places(signature) else { return Vec::new() };
    let words: Vec<(usize, u32)> = (0..signature.sorts.len())
        .filter(|s| signature.arity[*s] == 0 && !signature.rigid[*s])
        .filter_map(|s| {
            if let SymbolSort::Word(bits) = signature.sorts[s] { Some((s, bits)) } else { None }
        })
        .collect();
    let mut found = Vec::new();
    for &(first, bits) in &words {
        for &(second, other) in &words {
            if first == second || bits != other {
                continue;
            }
            let Some(steps) = rules
                .rules
                .iter()
                .map(|r| Some((r, moves(r, places)?)))
                .collect::<Option<Vec<_>>>()
            else {
                continue;
            };
            let mut set = 0u64;
            loop {
                let before = set;
                for (rule, (from, to)) in &steps {
                    let enters = assigns(rule, first);
                    let stays = set & (1 << from) != 0 && !assigns(rule, second);
                    if enters || stays {
                        set |= 1 << to;
                    }
                }
                if before == set {
                    break;
                }
            }
            let leaves = steps.iter().any(|(r, m)| assigns(r, second) && set & (1 << m.1) == 0);
            let count = Count { symbol: places, set, bits, sum: ResidueSum::default() };
            let large = signature.most.is_some_and(|m| m as u64 > count.most());
            if set == 0 || !leaves || large {
                continue;
            }
            let start = initial_number(rules, second).unwrap_or(0)
                - initial_number(rules, first).unwrap_or(0);
            let terms = [(Cell::new(first, &[]), 1), (Cell::new(second, &[]), -1)];
            found.push(Count { sum: ResidueSum::new(terms, start.into(), bits), ..count });
        }
    }
    found
}

/// Returns the rules with a counting invariant, and with the cubes that must be unreachable so that
/// it holds; `None` if a rule changes the places or the sum in an unsupported way.
pub fn with(rules: &Rules, count: &Count) -> Option<Rules> {
    let mut found = rules.clone();
    found.signature.counts.push(count.clone());
    let mut cubes = Vec::new();
    for rule in &rules.rules {
        let signature = &found.signature;
        let mut step = |binding: &Vec<u8>, processes: usize| {
            let change = CountedStep { signature, rule, count, binding, processes };
            match change.wrong() {
                Some(list) => {
                    cubes.extend(list);
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            }
        };
        let flow =
            for_each_binding(rule.params, signature.fixed, signature.most, &mut step).ok()?;
        if flow.is_break() {
            return None;
        }
    }
    found.obligations.extend(cubes);
    Some(found)
}

/// A step of a rule with a counting invariant.
struct CountedStep<'a> {
    signature: &'a Signature,
    rule: &'a Rule,
    count: &'a Count,
    binding: &'a [u8],
    processes: usize,
}

impl CountedStep<'_> {
    fn process(&self, template: u8) -> u8 {
        if template >= FIXED { template - FIXED } else { self.binding[usize::from(template)] }
    }
    fn value(&self, value: &RuleValue) -> RuleValue {
        let locked = self.rule.reads && self.rule.writes;
        let actor = self.rule.actor.map_or(NONE, |a| self.process(a));
        let weak = &self.signature.weak;
        instantiate(value, &|p| self.process(p), &|c| {
            if !weak[c.symbol()] || locked { c } else { c.with_view(Some((actor, 0))) }
        })
    }
    /// Returns the states before the step in which it changes the sum by another number than that
    /// of the processes at the places; `None` if that cannot be represented.
    fn wrong(&self) -> Option<Vec<Cube>> {
        let Count { symbol, set, bits, sum } = self.count;
        // The sum after the step, and the processes with a new place: true if it counts.
        let (mut after, mut moved) = (Vec::new(), Vec::new());
        for change in &self.rule.changes {
            let own = sum.terms.iter().any(|t| t.0.symbol() == change.symbol());
            match change {
                UpdateEffect::Assign(cell, value) if cell.symbol() == *symbol => {
                    let RuleValue::Constant(v) = value else { return None };
                    moved.push((cell.map(|p| self.process(p)), set & (1 << v) != 0));
                }
                UpdateEffect::Assign(cell, value) if own => {
                    let RuleValue::Sum { terms, constant, scale } = self.value(value) else {
                        return None;
                    };
                    after.push((*cell, residues::whole(&terms, constant, scale, *bits).ok()?));
                }
                UpdateEffect::Cases(..) if own || change.symbol() == *symbol => return None,
                _ => {}
            }
        }
        if moved.is_empty() && after.is_empty() {
            return Some(Vec::new());
        }
        let scope = ComparisonScope { signature: self.signature, processes: self.processes };
        let mut base = Vec::new();
        for t in &self.rule.guard {
            match scope.test(t, &|v| self.value(v)).ok()? {
                Literal::True => {}
                Literal::False => return Some(Vec::new()),
                Literal::Atom(a) => base.push(a),
            }
        }
        if self.rule.fence && !(self.rule.reads && self.rule.writes) {
            base.push(Atom::Fence(self.process(self.rule.actor?), 0));
        }
        let next = sum.put(&|c| after.iter().find(|x| x.0 == c).map(|x| x.1.clone()), *bits);
        let all = self.signature.all_values(self.signature.sorts[*symbol], self.processes);
        let mut found = Vec::new();
        for choice in 0..1u32 << moved.len() {
            let (mut atoms, mut change) = (base.clone(), 0);
            for (i, (cell, counts)) in moved.iter().enumerate() {
                let counted = choice & (1 << i) != 0;
                atoms.push(Atom::In(*cell, if counted { *set } else { all & !set }));
                change += i64::from(*counts) - i64::from(counted);
            }
            let expected = ResidueSum::new(
                sum.terms.iter().map(|t| (t.0, t.1.into())),
                i128::from(sum.constant) + i128::from(change),
                *bits,
            );
            match Residues::compare(&next, ZeroRelation::Ne, &expected, *bits) {
                Literal::False => continue,
                Literal::True => {}
                Literal::Atom(a) => atoms.push(a),
            }
            found.extend(Cube::new(self.signature, self.processes, atoms));
        }
        Some(found)
    }
}
