//! Decision procedure of the checker: constraints on differences of numbers, case by case.
//!
//! In: constraints `x - y <= c`. Out: the answer to each comparison, by the shortest paths between
//! the numbers (Floyd, Warshall), or as one more decision of the case. It shares nothing with the
//! matrices and the paths of the search. Invariant: the distances are those of all constraints and
//! decisions so far. Cost: cubic in the numbers for the first constraints, quadratic for each
//! decision.

use super::merged::{MergedSort, array};
use ahash::AHashMap;
use mu_base::ids::{OpId, VarId};
use mu_data::builtins::linear::least;
use mu_data::expr::{Expr, ExprKind};
use mu_data::naive::NumberOrder;
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::basic;
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

/// Widest range of a number with values that are distinguished.
const WIDEST: i64 = 64;
/// Limit on results that a case remembers.
const MAX_REMEMBERED: usize = 1 << 14;

/// A constraint `x - y <= c`; number 0 is zero.
pub(super) type Constraint = (usize, usize, i64);

/// A moment of a case: its decisions, numbers, and constants and entries so far.
type Moment = (u32, u32, u32);

/// Constants and entries of arrays that an evaluation has chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct ChosenEntries {
    /// For each sort of any size the number of its first constants that have a name.
    pub named: Vec<usize>,
    /// Entries of arrays, by the variable of the array and the constant.
    entries: Vec<((VarId, OpId), Expr)>,
}

/// A result, and what its evaluation has decided.
#[derive(Debug)]
struct CachedResult {
    result: Expr,
    /// The state of the case afterwards, if the evaluation has changed it.
    decided: Option<CaseDecisions>,
}

/// The constraints of a case, with all decisions and choices.
#[derive(Debug)]
struct CaseDecisions {
    far: Vec<Option<i64>>,
    taken: Vec<(u32, u32)>,
    atoms: Vec<Constraint>,
    picked: ChosenEntries,
}

/// Results of evaluations by their moment, for the next case: up to the decision that differs, it
/// is the same.
#[derive(Debug, Default)]
pub(super) struct Memory {
    by: AHashMap<(Moment, Expr), CachedResult>,
    /// The results in their order, with the number of decisions afterwards.
    order: Vec<(u32, (Moment, Expr))>,
}

impl Memory {
    /// Removes all results that depend on more than the first `most` decisions.
    pub fn keep(&mut self, most: usize) {
        while self.order.last().is_some_and(|o| o.0 as usize > most) {
            if let Some((_, key)) = self.order.pop() {
                self.by.remove(&key);
            }
        }
    }
}

/// The constraints and the decisions of one case.
#[derive(Debug, Default)]
pub(super) struct Case {
    size: usize,
    /// The least `c` with `x - y <= c`, at `x * size + y`; `None` if there is none.
    far: Vec<Option<i64>>,
    prefix: Vec<u32>,
    taken: Vec<(u32, u32)>,
    /// The constraints that were decided, not implied: `(x, y, c)` for `x - y <= c`.
    pub atoms: Vec<Constraint>,
    /// Constants of sorts of any size.
    pub picked: ChosenEntries,
    /// Results that are known in this case.
    pub memory: Memory,
}

/// Returns the length of two paths; a length outside of machine integers is none.
fn add(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    a?.checked_add(b?)
}

impl Case {
    /// Returns the case of these constraints on `size - 1` numbers; `None` if they have no
    /// solution.
    pub fn of(size: usize, constraints: &[Constraint]) -> Option<Self> {
        let mut far = vec![None; size * size];
        (0..size).for_each(|x| far[x * size + x] = Some(0));
        for (x, y, c) in constraints {
            let old: &mut Option<i64> = &mut far[x * size + y];
            if old.is_none_or(|old| *c < old) {
                *old = Some(*c);
            }
        }
        for via in 0..size {
            for x in 0..size {
                let Some(first) = far[x * size + via] else { continue };
                for y in 0..size {
                    let Some(new) = add(Some(first), far[via * size + y]) else { continue };
                    if far[x * size + y].is_none_or(|old| new < old) {
                        far[x * size + y] = Some(new);
                    }
                }
            }
        }
        let possible = (0..size).all(|x| far[x * size + x].is_some_and(|d| d >= 0));
        possible.then_some(Self { size, far, ..Self::default() })
    }

    /// Adds a number. Returns its index.
    pub fn number(&mut self, low: Option<i64>) -> usize {
        let (old, size) = (self.size, self.size + 1);
        let mut far = vec![None; size * size];
        for x in 0..old {
            far[x * size..x * size + old].copy_from_slice(&self.far[x * old..(x + 1) * old]);
        }
        far[size * size - 1] = Some(0);
        (self.size, self.far) = (size, far);
        if let Some(low) = low {
            self.constrain(0, old, -low);
        }
        old
    }

    /// Returns the least `c` with `x - y <= c` that the constraints imply.
    pub fn distance(&self, x: usize, y: usize) -> Option<i64> {
        self.far[x * self.size + y]
    }

    pub fn implies(&self, x: usize, y: usize, c: i64) -> bool {
        self.distance(x, y).is_some_and(|d| d <= c)
    }

    /// Adds a constraint that some solution satisfies.
    fn constrain(&mut self, x: usize, y: usize, c: i64) {
        // Each new shortest path leads from `a` to the new edge and on to `b`.
        let n = self.size;
        for a in 0..n {
            let Some(to) = add(self.far[a * n + x], Some(c)) else { continue };
            for b in 0..n {
                let Some(new) = add(Some(to), self.far[y * n + b]) else { continue };
                if self.far[a * n + b].is_none_or(|old| new < old) {
                    self.far[a * n + b] = Some(new);
                }
            }
        }
    }

    /// Decides `x - y <= c`, by the constraints or as the next decision.
    pub fn at_most(&mut self, x: usize, y: usize, c: i64) -> Option<bool> {
        if x == y {
            return Some(c >= 0);
        }
        let negation = c.checked_neg()?.checked_sub(1)?;
        if self.implies(x, y, c) {
            return Some(true);
        }
        if self.implies(y, x, negation) {
            return Some(false);
        }
        let yes = self.choose(2) == 0;
        self.atoms.push((x, y, c));
        match yes {
            true => self.constrain(x, y, c),
            false => self.constrain(y, x, negation),
        }
        Some(yes)
    }

    /// Returns the value of a number, after decisions if it has few; `None` if its range is wider.
    pub fn value(&mut self, x: usize, widest: i64) -> Option<i64> {
        loop {
            let (high, low) = (self.distance(x, 0)?, self.distance(0, x)?.checked_neg()?);
            if high.checked_sub(low)? > widest {
                return None;
            }
            if high <= low {
                return Some(low);
            }
            self.at_most(x, 0, low)?;
        }
    }

    /// Chooses one of `options` options.
    pub fn choose(&mut self, options: usize) -> usize {
        if options <= 1 {
            return 0;
        }
        let chosen = self.prefix.get(self.taken.len()).copied().unwrap_or(0);
        self.taken.push((chosen, options as u32));
        chosen as usize
    }

    /// Returns the case of the same constraints with these first decisions.
    pub fn with(&self, prefix: Vec<u32>) -> Self {
        let (far, taken, atoms) = (self.far.clone(), self.taken.clone(), self.atoms.clone());
        let picked = self.picked.clone();
        Self { size: self.size, far, prefix, taken, atoms, picked, memory: Memory::default() }
    }

    /// Returns the moment of the case.
    pub fn moment(&self) -> Moment {
        let ChosenEntries { named, entries } = &self.picked;
        let picked = named.iter().sum::<usize>() + entries.len();
        (self.taken.len() as u32, self.size as u32, picked as u32)
    }

    /// Returns the result of an evaluation at this moment in an earlier case, and repeats its
    /// decisions.
    pub fn recall(&mut self, e: &Expr) -> Option<Expr> {
        let known = self.memory.by.get(&(self.moment(), e.clone()))?;
        if let Some(CaseDecisions { far, taken, atoms, picked }) = &known.decided {
            self.far.clone_from(far);
            self.taken.clone_from(taken);
            self.atoms.clone_from(atoms);
            self.picked.clone_from(picked);
        }
        Some(known.result.clone())
    }

    /// Remembers the result of an evaluation that began at a moment.
    pub fn remember(&mut self, before: Moment, e: &Expr, result: &Expr) {
        let after = self.moment();
        if before.1 != after.1 || self.memory.order.len() >= MAX_REMEMBERED {
            return;
        }
        let decided = (before != after).then(|| CaseDecisions {
            far: self.far.clone(),
            taken: self.taken.clone(),
            atoms: self.atoms.clone(),
            picked: self.picked.clone(),
        });
        let key = (before, e.clone());
        self.memory.order.push((after.0, key.clone()));
        self.memory.by.insert(key, CachedResult { result: result.clone(), decided });
    }

    /// Returns the decisions of the next case; `None` after the last.
    pub fn next(&self) -> Option<Vec<u32>> {
        let last = self.taken.iter().rposition(|(chosen, all)| chosen + 1 < *all)?;
        let mut prefix: Vec<u32> = self.taken[..=last].iter().map(|t| t.0).collect();
        prefix[last] += 1;
        Some(prefix)
    }
}

/// The numbers of an evaluation: variables with their places in the constraints.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    pub of: RefCell<AHashMap<VarId, usize>>,
    pub case: RefCell<Case>,
    /// The sorts of any size.
    pub merged: RefCell<Vec<MergedSort>>,
}

impl Numbers {
    /// Chooses a value of a sort of any size that may be any one.
    pub fn any_constant(&self, signature: &Signature, sort: usize) -> Option<Expr> {
        let merged = self.merged.borrow();
        let mut case = self.case.borrow_mut();
        let mut named = *case.picked.named.get(sort)?;
        let e = merged[sort]
            .choose_value(signature, &mut named, &mut |options| case.choose(options))?;
        case.picked.named[sort] = named;
        Some(e)
    }

    /// Returns the entry of an array at a constant that is not tracked: any value of a sort of
    /// constants, the same in a case.
    fn entry(&self, signature: &Signature, var: VarId, at: &Expr) -> Option<Expr> {
        use Builtin::{False, True};
        let sort = signature.var(var).sort;
        let (ExprKind::Op(op), range) = (&at.kind, signature.domain_range(sort).1) else {
            return None;
        };
        let own = {
            let merged = self.merged.borrow();
            let family = &merged[array(signature, &merged, sort)?];
            if family.position(at)? < family.tracked {
                return None;
            }
            merged.iter().position(|m| m.sort == range)
        };
        let key = (var, *op);
        let known = self.case.borrow().picked.entries.iter().find(|e| e.0 == key).cloned();
        if let Some((_, e)) = known {
            return Some(e);
        }
        let e = match own {
            Some(own) => self.any_constant(signature, own)?,
            None if range == basic::BOOL => {
                let truth = if self.case.borrow_mut().choose(2) == 0 { True } else { False };
                let kind = OpKind::Builtin(truth);
                Expr::op(signature, signature.ops().find(|(_, o)| o.kind == kind)?.0)
            }
            None => {
                let constructors = &signature.sorts.declared_sort(range)?.constructors;
                let constant = |op: &OpId| {
                    let own = signature.op(*op);
                    own.sort == range && matches!(own.kind, OpKind::Constructor(_))
                };
                if constructors.is_empty() || !constructors.iter().all(constant) {
                    return None;
                }
                let chosen = self.case.borrow_mut().choose(constructors.len());
                Expr::op(signature, constructors[chosen])
            }
        };
        self.case.borrow_mut().picked.entries.push((key, e.clone()));
        Some(e)
    }

    /// Returns a term as a number plus a literal; number 0 is zero.
    pub fn linear(&self, signature: &Signature, e: &Expr) -> Option<(usize, i64)> {
        use Builtin::*;
        match &e.kind {
            ExprKind::Number(n) => Some((0, n.to_i64()?)),
            ExprKind::Var(v) => self.of.borrow().get(v).map(|at| (*at, 0)),
            // An operation that the rewriter has added.
            _ if e.head().is_none_or(|op| op.index() >= signature.op_count()) => None,
            _ => match e.as_builtin(signature)? {
                (PosToNat | PosToInt | NatToInt, [a]) => self.linear(signature, a),
                (Succ, [a]) => plus(self.linear(signature, a)?, 1),
                (Pred, [a]) => plus(self.linear(signature, a)?, -1),
                (Add, [a, b]) => {
                    let ((x, c), (y, d)) = (self.linear(signature, a)?, self.linear(signature, b)?);
                    let base = if x == 0 { y } else { x };
                    (x == 0 || y == 0).then_some((base, c.checked_add(d)?))
                }
                (Subtract, [a, b]) => {
                    let ((x, c), (y, d)) = (self.linear(signature, a)?, self.linear(signature, b)?);
                    let c = c.checked_sub(d)?;
                    if y == 0 { Some((x, c)) } else { (x == y).then_some((0, c)) }
                }
                _ => None,
            },
        }
    }
}

fn plus((x, c): (usize, i64), d: i64) -> Option<(usize, i64)> {
    Some((x, c.checked_add(d)?))
}

/// The order of numbers in the current case.
#[derive(Debug)]
pub(super) struct CaseOrder {
    pub numbers: Rc<Numbers>,
    pub signature: Rc<Signature>,
}

impl CaseOrder {
    /// Decides whether a number belongs to its sort; `None` for what is no number.
    pub fn belongs(&self, e: &Expr, sort: mu_base::ids::SortId) -> Option<bool> {
        let Some(low) = least(sort) else { return Some(true) };
        Some(self.order(e, &Expr::number(low, e.sort))? != Ordering::Less)
    }
}

impl NumberOrder for CaseOrder {
    fn order(&self, a: &Expr, b: &Expr) -> Option<Ordering> {
        let (x, c) = self.numbers.linear(&self.signature, a)?;
        let (y, d) = self.numbers.linear(&self.signature, b)?;
        let mut case = self.numbers.case.borrow_mut();
        // a <= b, then b <= a
        if !case.at_most(x, y, d.checked_sub(c)?)? {
            return Some(Ordering::Greater);
        }
        let equal = case.at_most(y, x, c.checked_sub(d)?)?;
        Some(if equal { Ordering::Equal } else { Ordering::Less })
    }

    fn value(&self, e: &Expr) -> Option<BigInt> {
        let (x, c) = self.numbers.linear(&self.signature, e)?;
        let n = self.numbers.case.borrow_mut().value(x, WIDEST)?;
        Some(BigInt::from(n.checked_add(c)?))
    }

    fn entry(&self, array: &Expr, args: &[Expr]) -> Option<Expr> {
        match (&array.kind, args) {
            (ExprKind::Var(var), [at]) => self.numbers.entry(&self.signature, *var, at),
            _ => None,
        }
    }
}
