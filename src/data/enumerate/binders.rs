//! Quantifiers and comprehensions: a closure of such a binder -> its value, by trying the elements of a small sort or by search.
//!
//! If an unknown of an enclosing search occurs in a quantifier, its variables are eliminated where that needs no search; otherwise the
//! quantifier waits until the unknown has a value, as a comprehension does. Cost: that of the search.

use super::Search;
use crate::builtins::compare::builtin_of;
use crate::engine::compile::Program;
use crate::engine::machine::{MAX_SUSPENDED, Machine, Outcome};
use crate::expr::Binder;
use crate::signature::Builtin;
use crate::sort::SortKind;
use crate::value::{Closure, Rich, Value};
use mu_base::Stage;
use mu_base::ids::SortId;
use std::ops::ControlFlow;
use std::rc::Rc;

/// Most solutions of a comprehension over an infinite sort that are written out as a finite set.
const MAX_COMPREHENSION: usize = 1 << 16;
/// How many numbers without a bound a quantifier tries for one unknown, round by round.
const SPANS: [u64; 3] = [16, 128, u64::MAX];
/// Largest sort over which a quantifier is decided by trying every value.
const MAX_TRIED: usize = 32;

impl Machine {
    fn frame_of_unknowns(&mut self, p: &Program, closure: &Closure) -> (Outcome<Value>, Vec<u32>) {
        let frame = self.stack.len();
        let mut wanted = Vec::new();
        for (sort, var) in closure.lambda.sorts.iter().zip(&closure.lambda.vars) {
            let unknown = self.unknown(*sort);
            if let Some(last) = self.unknowns.last_mut() {
                last.var = Some(*var);
            }
            wanted.push(self.unknowns.len() as u32 - 1);
            self.stack.push(unknown);
        }
        self.stack.extend(closure.captures.iter().cloned());
        let body = self.enter(p, &closure.lambda.body, frame);
        (body, wanted)
    }

    /// What a condition that says that something exists says of it, with unknowns for it, which the caller takes away again.
    pub(super) fn opened(&mut self, p: &Program, condition: &Value) -> Outcome<Value> {
        let Some(closure) = existence(p, condition) else { return Ok(condition.clone()) };
        let (body, _) = self.frame_of_unknowns(p, closure);
        if closure.lambda.binder == Binder::Forall { Ok(self.not(p, body?)) } else { body }
    }

    /// What a condition that is [`universal`] says of each element.
    pub(super) fn for_each_element(&mut self, p: &Program, condition: &Value) -> Outcome<Value> {
        let Some(closure) = universal(p, condition) else { return Ok(condition.clone()) };
        let Some(values) = self.values_of(p, closure.lambda.sorts[0], MAX_TRIED)? else { return Ok(condition.clone()) };
        let mut all = Value::Bool(true);
        for v in values.iter() {
            let frame = self.stack.len();
            self.stack.push(v.clone());
            self.stack.extend(closure.captures.iter().cloned());
            let body = self.enter(p, &closure.lambda.body, frame)?;
            let body = if closure.lambda.binder == Binder::Exists { self.not(p, body) } else { body };
            all = self.and(p, all, body);
        }
        Ok(all)
    }

    /// A quantifier in which unknowns of an enclosing search occur: a condition on these, if its own variables can be eliminated.
    fn quantify_open(&mut self, p: &Program, closure: Closure) -> Outcome<Value> {
        if self.suspended > MAX_SUSPENDED {
            return Ok(Value::rich(Rich::Closure(closure)));
        }
        let forall = closure.lambda.binder == Binder::Forall;
        let count = self.unknowns.len();
        let (body, wanted) = self.frame_of_unknowns(p, &closure);
        let body = body?;
        let condition = if forall { self.not(p, body) } else { body };
        let left = self.eliminate(p, condition, &wanted)?;
        self.unknowns.truncate(count);
        Ok(match left {
            Some(left) if forall => self.not(p, left),
            Some(left) => left,
            None => Value::rich(Rich::Closure(closure)),
        })
    }

    /// The value of a quantifier; itself while its condition stays undecided, or while an unknown occurs in it that matters.
    pub(crate) fn quantify(&mut self, p: &Program, closure: Closure) -> Outcome<Value> {
        if closure.captures.iter().any(Value::is_open) {
            return self.quantify_open(p, closure);
        }
        let forall = closure.lambda.binder == Binder::Forall;
        if let Some(value) = self.quantify_small(p, &closure, forall)? {
            return Ok(value);
        }
        let count = self.unknowns.len();
        let suspended = std::mem::take(&mut self.suspended);
        let (body, wanted) = self.frame_of_unknowns(p, &closure);
        let condition = if forall { self.not(p, body?) } else { body? };
        // Variables that do not matter need no values, if their sorts have any.
        let mut found = condition.is_true();
        let mut stuck = false;
        // Numbers without a bound are tried up to larger and larger ones, so that one unknown does not keep another from its turn.
        for span in SPANS {
            if found {
                break;
            }
            let mut search =
                Search::new(relevant(self, &condition, &wanted), true, true, if forall { "a `forall`" } else { "an `exists`" });
            search.span = span;
            let mut each = |_: &mut Machine, _: &[Value]| {
                found = true;
                Ok(ControlFlow::Break(()))
            };
            match self.search(p, &mut search, condition.clone(), &mut each) {
                Err(e) if e.stage == Stage::Limit || span == u64::MAX => return Err(e),
                Err(_) => {}
                Ok(_) => {
                    stuck = search.lenient == Some(true);
                    if !search.cut {
                        break;
                    }
                }
            }
            // It takes long: perhaps the variables can be reasoned away.
            if !found
                && span == SPANS[0]
                && let Some(Value::Bool(decided)) = self.eliminate(p, condition.clone(), &wanted)?
            {
                (found, stuck) = (decided, false);
                break;
            }
        }
        self.unknowns.truncate(count);
        self.suspended = suspended;
        if !found && stuck {
            return Ok(Value::rich(Rich::Closure(closure)));
        }
        Ok(Value::Bool(found != forall))
    }

    /// A quantifier over one variable of a small finite sort: the body for each value.
    fn quantify_small(&mut self, p: &Program, closure: &Closure, forall: bool) -> Outcome<Option<Value>> {
        let [sort] = closure.lambda.sorts[..] else { return Ok(None) };
        let Some(values) = self.values_of(p, sort, MAX_TRIED)? else { return Ok(None) };
        let suspended = std::mem::take(&mut self.suspended);
        let mut stuck = false;
        for v in values.iter() {
            let frame = self.stack.len();
            self.stack.push(v.clone());
            self.stack.extend(closure.captures.iter().cloned());
            match self.enter(p, &closure.lambda.body, frame)? {
                Value::Bool(b) if b != forall => {
                    self.suspended = suspended;
                    return Ok(Some(Value::Bool(b)));
                }
                Value::Bool(_) => {}
                _ => stuck = true,
            }
        }
        self.suspended = suspended;
        Ok(Some(if stuck {
            Value::rich(Rich::Closure(Closure { lambda: closure.lambda.clone(), captures: closure.captures.clone() }))
        } else {
            Value::Bool(forall)
        }))
    }

    /// The value of a set or bag comprehension: a finite set or bag if its elements can be enumerated, else itself.
    pub(crate) fn comprehend(&mut self, p: &Program, closure: Closure) -> Outcome<Value> {
        if closure.captures.iter().any(Value::is_open) {
            return Ok(Value::rich(Rich::Closure(closure)));
        }
        let sort = closure.lambda.sort;
        let count = self.unknowns.len();
        let suspended = std::mem::take(&mut self.suspended);
        let value = if closure.lambda.binder == Binder::SetComprehension {
            let (body, wanted) = self.frame_of_unknowns(p, &closure);
            let mut elements = Vec::new();
            let mut search = Search::new(wanted, false, true, "a set comprehension");
            let mut each = |_: &mut Machine, values: &[Value]| {
                elements.extend(values.iter().cloned());
                Ok(if elements.len() > MAX_COMPREHENSION { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            };
            let flow = self.search(p, &mut search, body?, &mut each);
            self.unknowns.truncate(count);
            match flow {
                Err(e) if e.stage == Stage::Limit => return Err(e),
                Ok(ControlFlow::Continue(())) if search.lenient == Some(false) => Some(self.set_of(p, sort, elements)?),
                _ => None,
            }
        } else {
            match self.values_of(p, closure.lambda.sorts[0], MAX_COMPREHENSION)? {
                None => None,
                Some(values) => {
                    let mut bag = Value::rich(Rich::Bag(sort, Rc::new([])));
                    for v in values.iter().cloned() {
                        let frame = self.stack.len();
                        self.stack.push(v.clone());
                        self.stack.extend(closure.captures.iter().cloned());
                        let n = self.enter(p, &closure.lambda.body, frame)?;
                        bag = self.bag_add(p, sort, v, n, bag)?;
                    }
                    bag.as_bag().is_some().then_some(bag)
                }
            }
        };
        self.suspended = suspended;
        Ok(value.unwrap_or_else(|| Value::rich(Rich::Closure(closure))))
    }

    /// Equality of sets that are not both finite: a search for an element that makes the difference.
    pub(crate) fn equal_comprehensions(&mut self, p: &Program, sort: SortId, a: &Value, b: &Value) -> Outcome<Option<Value>> {
        let element = match p.signature.sorts.kind(sort) {
            SortKind::Set(e) => *e,
            _ => return Ok(None),
        };
        let Some(member) = p.sort(sort).member else { return Ok(None) };
        if a.is_open() || b.is_open() {
            return Ok(None);
        }
        let count = self.unknowns.len();
        let x = self.unknown(element);
        let in_a = self.contains(p, member, &x, a)?;
        let in_b = self.contains(p, member, &x, b)?;
        if in_a == in_b {
            self.unknowns.truncate(count);
            return Ok(Some(Value::Bool(true)));
        }
        let (not_a, not_b) = (self.not(p, in_a.clone()), self.not(p, in_b.clone()));
        let (one, other) = (self.and(p, in_a, not_b), self.and(p, not_a, in_b));
        let condition = self.or(p, one, other);
        let mut different = false;
        let mut search = Search::new(vec![count as u32], true, true, "a comparison of sets");
        search.span = SPANS[1];
        let flow = self.search(p, &mut search, condition, &mut |_, _| {
            different = true;
            Ok(ControlFlow::Break(()))
        });
        self.unknowns.truncate(count);
        Ok(match flow {
            Err(e) if e.stage == Stage::Limit => return Err(e),
            Err(_) => None,
            Ok(_) if different => Some(Value::Bool(false)),
            Ok(_) if search.lenient == Some(true) || search.cut => None,
            Ok(_) => Some(Value::Bool(true)),
        })
    }
}

/// The quantifier in a condition that says that something exists: an `exists`, or a `forall` that does not hold.
pub(super) fn existence<'v>(p: &Program, condition: &'v Value) -> Option<&'v Closure> {
    quantifier(p, condition, [Binder::Exists, Binder::Forall])
}

/// The quantifier over one variable in a condition that says something of all its values: a `forall`, or an `exists` that does not hold.
pub(super) fn universal<'v>(p: &Program, condition: &'v Value) -> Option<&'v Closure> {
    let one = quantifier(p, condition, [Binder::Forall, Binder::Exists]).filter(|c| c.lambda.sorts.len() == 1)?;
    let few = |sort: SortId| match p.signature.sorts.kind(sort) {
        SortKind::Bool => true,
        SortKind::Named(n) => {
            let constructors = &p.signature.sorts.named[*n as usize].constructors;
            !constructors.is_empty() && constructors.len() <= MAX_TRIED && constructors.iter().all(|c| p.op(*c).levels.len() == 1)
        }
        _ => false,
    };
    few(one.lambda.sorts[0]).then_some(one)
}

/// A quantifier by the first binder, or one by the second that does not hold.
fn quantifier<'v>(p: &Program, condition: &'v Value, [plain, negated]: [Binder; 2]) -> Option<&'v Closure> {
    let of = |v: &'v Value, binder| v.as_closure().filter(|c| c.lambda.binder == binder);
    of(condition, plain).or_else(|| match builtin_of(p, condition) {
        Some((Builtin::Not, [inner])) => of(inner, negated),
        _ => None,
    })
}

/// Those of the unknowns asked for that occur in a condition.
fn relevant(m: &Machine, condition: &Value, wanted: &[u32]) -> Vec<u32> {
    let mut open = Vec::new();
    m.unresolved(condition, &mut open);
    wanted.iter().copied().filter(|w| open.contains(w)).collect()
}
