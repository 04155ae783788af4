//! Enumeration: all solutions of a condition for some unknowns; finite sorts; quantifiers and
//! comprehensions.
//!
//! The condition is evaluated with unknowns, so that only its undecided part remains. If a conjunct
//! has the form `x == e`, it binds `x` (the one-point rule). Otherwise the search branches on the
//! choice with the fewest options: the elements that may match a pattern in a finite list, set or
//! bag; the integers between the bounds of comparisons; the constructors of a sort; the sides of a
//! disjunction; the variables of an `exists` together with the unknowns; finally the equations of a
//! function (`cases`). After each step the condition is evaluated again, which prunes. Terms of
//! infinite sorts grow constructor by constructor, up to a limit.
//!
//! Every solution occurs once: branches exclude each other, except for disjunctions and `exists`,
//! for which repeated solutions are dropped. Compare narrowing (Hanus, 1994) and mCRL2's enumerator
//! (Groote, Mousavi: "Modeling and Analysis of Communicating Systems", 2014). Cost: the number of
//! branches, each linear in the remaining condition.

mod binders;
mod bounds;
mod branch;
mod cases;
mod eliminate;
mod finite;
mod guesses;

pub(crate) use binders::{
    comprehend, equal_comprehensions, included_comprehensions, quantify, search_difference,
};
pub(crate) use finite::{least_size, values_of};

use bounds::bounds;
use branch::{branch, is_recursive};
use cases::{Split, split};
use eliminate::with_value;

use crate::builtins::compare::builtin_of;
use crate::builtins::linear::{numeric_sort, occurs};
use crate::builtins::number;
use crate::engine::compile::Program;
use crate::engine::machine::Outcome;
use crate::engine::terms::Terms;
use crate::signature::Builtin;
use crate::sort::{SortKind, basic};
use crate::value::{Lambda, Rich, Value};
use ahash::{AHashMap, AHashSet};
use mu_base::diagnostic::{Diagnostic, Stage};
use mu_base::ids::{OpId, SortId};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

/// Largest sort with elements that are listed to enumerate an unknown of it (sets over a finite
/// sort).
const MAX_LISTED: usize = 1 << 20;

/// Limit on the constructors of growing terms on one path of the search.
const MAX_GROWING: u32 = 1000;

/// Weight of a disjunction in options: its sides overlap, so solutions may repeat, and often a few
/// values of an unknown decide it.
const EITHER: u64 = 9;
/// Weight of an existential conjunct: its variables are enumerated with the others, and solutions
/// may repeat.
const WITNESS: u64 = 1 << 16;
/// Limit on existential conjuncts on one path of a search.
const MAX_WITNESSES: u32 = 32;

/// Default limit on candidates for unknowns of infinite sorts in one search.
const MAX_CANDIDATES: u64 = 100_000;

/// Receiver of solutions.
pub(crate) type Each<'a, T> = dyn FnMut(&mut T, &[Value]) -> Outcome<ControlFlow<()>> + 'a;

/// Caches and limits of the enumerations in one machine.
#[derive(Debug)]
pub(crate) struct Listings {
    /// Limit on candidates for unknowns of infinite sorts in one search.
    pub growth_limit: u64,
    /// Elements of sorts, by sort and limit.
    values: AHashMap<(SortId, usize), Option<Rc<[Value]>>>,
    /// Sorts with terms of unbounded size.
    recursive: AHashMap<SortId, bool>,
    /// Values of comprehensions without free variables, by the hash of the expression. Such a
    /// comprehension may contain others, so that its evaluation would evaluate each of them twice.
    closed: AHashMap<u64, (Arc<Lambda>, Value)>,
}

impl Default for Listings {
    fn default() -> Self {
        Listings {
            growth_limit: MAX_CANDIDATES,
            values: AHashMap::new(),
            recursive: AHashMap::new(),
            closed: AHashMap::new(),
        }
    }
}

/// Search in progress.
pub(crate) struct SolutionSearch {
    /// Wanted unknowns.
    wanted: Vec<u32>,
    /// True if numbers without an upper bound are tried one by one (for quantifiers: a solution
    /// ends the search).
    unbounded: bool,
    /// Limit on the tries of numbers without an upper bound for one unknown; `cut` is true if it
    /// was reached.
    span: u64,
    cut: bool,
    /// Set if an undecided condition is skipped and recorded here; `None` if it is an error.
    lenient: Option<bool>,
    /// Solutions so far, once they may repeat.
    seen: Option<AHashSet<Vec<Value>>>,
    grown: u64,
    /// Growing terms of infinite sorts on the current path.
    growing: u32,
    /// Calls split into cases on the current path.
    splits: Vec<Value>,
    /// Condition before the first split of a disjunction on the current path.
    whole: Option<Value>,
    /// Existential conjuncts on the current path.
    witnesses: u32,
    binder: &'static str,
}

enum VariableChoice {
    /// An unknown with its values.
    Interval(u32, i64, i64),
    Constructors(u32, Vec<OpId>),
    Bool(u32),
    List(u32, SortId),
    Values(u32, Rc<[Value]>),
    Upwards(u32, Option<i64>, Option<i64>),
    /// A membership conjunct, its element, and the candidates.
    Member(Value, Value, SortId, Vec<Value>),
    Either(Value, Value),
    Cases(Split),
    /// An unknown without a list of values, in a search for one solution.
    Guess(u32),
    /// An existential conjunct.
    Witness(Value),
    /// A universal conjunct over a small sort.
    Everywhere(Value),
}

impl SolutionSearch {
    pub fn new(wanted: Vec<u32>, unbounded: bool, lenient: bool, binder: &'static str) -> Self {
        SolutionSearch {
            wanted,
            unbounded,
            span: u64::MAX,
            cut: false,
            lenient: lenient.then_some(false),
            seen: None,
            grown: 0,
            growing: 0,
            splits: Vec::new(),
            whole: None,
            witnesses: 0,
            binder,
        }
    }

    /// Continues the search under a condition; ends early if `each` breaks. Bindings are undone.
    pub fn run<T: Terms>(
        &mut self,
        m: &mut T,
        p: &Program,
        condition: Value,
        each: &mut Each<T>,
    ) -> Outcome<ControlFlow<()>> {
        stacker::maybe_grow(256 << 10, 4 << 20, || {
            m.count_branch()?;
            let mark = m.mark();
            let result = step(m, p, self, condition, each);
            m.undo(mark);
            result
        })
    }
}

fn conjuncts<'v>(p: &Program, v: &'v Value, out: &mut Vec<&'v Value>) {
    let mut work = vec![v];
    while let Some(v) = work.pop() {
        match builtin_of(p, v) {
            Some((Builtin::And, [a, b])) => work.extend([b, a]),
            _ => out.push(v),
        }
    }
}

/// Returns sort, element, and elements of the bag, if a comparison implies that an unknown element
/// occurs in a bag.
fn bag_membership(
    p: &Program,
    part: &Value,
    a: &Value,
    b: &Value,
) -> Option<(SortId, Value, Vec<Value>)> {
    let (builtin, _) = builtin_of(p, part)?;
    let sides = if builtin == Builtin::Equal { vec![(a, b), (b, a)] } else { vec![(a, b)] };
    sides.into_iter().find_map(|(low, count)| {
        let &Value::Int(low) = low else { return None };
        let (op, _) = count.as_app()?;
        let Some((Builtin::Count, [element, bag])) = builtin_of(p, count) else { return None };
        let Some(Rich::Bag(_, entries)) = bag.as_rich() else { return None };
        let occurs = low > 0 || builtin == Builtin::Less && low == 0;
        (occurs && element.is_open() && !bag.is_open()).then(|| {
            (p.op(op).first, element.clone(), entries.iter().map(|e| e.0.clone()).collect())
        })
    })
}

/// Simplifies a condition until a branching is necessary.
fn step<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    condition: Value,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    let mut rest = condition;
    loop {
        if rest.is_false() {
            return Ok(ControlFlow::Continue(()));
        }
        let mut parts = Vec::new();
        conjuncts(p, &rest, &mut parts);
        if let Some((u, value)) = one_point(m, p, &parts, &|_| true) {
            rest = with_value(m, p, u, value, &rest)?;
            continue;
        }
        let mut open = Vec::new();
        let in_condition = rest.is_open();
        if in_condition {
            m.unknowns().collect_unbound(&rest, &mut open);
        }
        if open.is_empty() {
            if !rest.is_true() {
                // A conjunct without a value may be irrelevant if another side of a disjunction
                // holds.
                if let Some(whole) = s.whole.clone() {
                    let whole = m.reevaluate(p, &whole)?;
                    if whole.is_true() || whole.is_false() {
                        rest = whole;
                        continue;
                    }
                }
                match &mut s.lenient {
                    Some(stuck) => *stuck = true,
                    None => return Err(undecided_error(m, p, s, &rest)),
                }
                return Ok(ControlFlow::Continue(()));
            }
            for &w in &s.wanted {
                m.unknowns().collect_unbound(&Value::Unknown(w), &mut open);
            }
            if open.is_empty() {
                return solution(m, p, s, each);
            }
        }
        let choice = choose(m, p, s, &open, &parts, &rest)?;
        return branch(m, p, s, choice, &rest, each);
    }
}

/// Returns an unknown with its value, if a conjunct determines it.
fn one_point<T: Terms>(
    m: &T,
    p: &Program,
    parts: &[&Value],
    of: &dyn Fn(u32) -> bool,
) -> Option<(u32, Value)> {
    for part in parts {
        if !part.is_open() {
            continue;
        }
        if let Value::Unknown(u) = part
            && of(*u)
        {
            return Some((*u, Value::Bool(true)));
        }
        match builtin_of(p, part) {
            Some((Builtin::Not, [Value::Unknown(u)])) if of(*u) => {
                return Some((*u, Value::Bool(false)));
            }
            Some((Builtin::Equal, [x, y])) => {
                for (x, y) in [(x, y), (y, x)] {
                    let Value::Unknown(u) = x else { continue };
                    if m.unknowns().is_rigid(*u) {
                        continue;
                    }
                    let sort = m.unknowns().sort(*u);
                    let narrower = sort.number() < basic::REAL.number()
                        && sort.number() > basic::BOOL.number()
                        && !y.is_number()
                        && numeric_sort(p, &|u| m.unknowns().sort(u), y) == basic::REAL;
                    if of(*u) && !narrower && !occurs(y, x) {
                        return Some((*u, y.clone()));
                    }
                }
            }
            _ => {}
        }
    }
    None
}

fn solution<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    each: &mut Each<T>,
) -> Outcome<ControlFlow<()>> {
    let mut values = Vec::with_capacity(s.wanted.len());
    for &w in &s.wanted {
        let v = m.reevaluate(p, &Value::Unknown(w))?;
        if v.is_number() && !number::in_sort(&v, m.unknowns().sort(w)) {
            return Ok(ControlFlow::Continue(()));
        }
        values.push(v);
    }
    if let Some(seen) = &mut s.seen
        && !seen.insert(values.clone())
    {
        return Ok(ControlFlow::Continue(()));
    }
    each(m, &values)
}

/// Chooses the branching with the fewest options.
fn choose<T: Terms>(
    m: &mut T,
    p: &Program,
    s: &mut SolutionSearch,
    open: &[u32],
    parts: &[&Value],
    rest: &Value,
) -> Outcome<VariableChoice> {
    let mut best: Option<(u64, VariableChoice)> = None;
    let offer = |options: u64, choice: VariableChoice, best: &mut Option<(u64, VariableChoice)>| {
        if best.as_ref().is_none_or(|b| options < b.0) {
            *best = Some((options, choice));
        }
    };
    // Growing terms and counting upwards come last.
    const GROWING: u64 = 1 << 40;
    let bounds = bounds(m, p, open, parts);
    // Unknowns with the fewest options.
    let mut fewest = u64::MAX;
    let mut equal: Vec<(u32, VariableChoice)> = Vec::new();
    for (i, &u) in open.iter().enumerate() {
        let mut offer = |options: u64, choice: VariableChoice| {
            if options < fewest {
                fewest = options;
                equal.clear();
            }
            if options == fewest {
                equal.push((u, choice));
            }
        };
        let sort = m.unknowns().sort(u);
        match p.signature.sorts.kind(sort) {
            SortKind::Bool => offer(2, VariableChoice::Bool(u)),
            SortKind::Pos | SortKind::Nat | SortKind::Int => match bounds[i] {
                (Some(low), Some(high)) => {
                    let width = (high as i128 - low as i128 + 1).clamp(0, 1 << 39) as u64;
                    offer(width, VariableChoice::Interval(u, low, high));
                }
                (low, high) if s.unbounded => {
                    offer(GROWING * 4, VariableChoice::Upwards(u, low, high))
                }
                _ => {}
            },
            SortKind::Named(n) => {
                let constructors = p.signature.sorts.named[*n as usize].constructors.clone();
                if !constructors.is_empty() {
                    let growing = is_recursive(m, p, sort);
                    let options = constructors.len() as u64 + if growing { GROWING } else { 0 };
                    offer(options, VariableChoice::Constructors(u, constructors));
                }
            }
            SortKind::List(element) => offer(GROWING + 2, VariableChoice::List(u, *element)),
            SortKind::FSet(_) | SortKind::Set(_) | SortKind::Function(..) => {
                if let Some(values) = values_of(m, p, sort, MAX_LISTED)? {
                    offer(values.len() as u64, VariableChoice::Values(u, values));
                } else if s.unbounded {
                    offer(GROWING * 8, VariableChoice::Guess(u));
                }
            }
            SortKind::Real | SortKind::Bag(_) | SortKind::FBag(_) if s.unbounded => {
                offer(GROWING * 8, VariableChoice::Guess(u));
            }
            SortKind::Real | SortKind::Bag(_) | SortKind::FBag(_) => {}
        }
    }
    let at =
        if equal.len() > 1 && fewest < GROWING { most_constrained(m, p, &equal, parts) } else { 0 };
    if at < equal.len() {
        best = Some((fewest, equal.swap_remove(at).1));
    }
    for part in parts {
        match builtin_of(p, part) {
            Some((Builtin::In, [element, container]))
                if element.is_open() && !container.is_open() =>
            {
                let candidates: Option<Vec<Value>> = match container.as_rich() {
                    Some(Rich::Set(_, elements)) => Some(elements.to_vec()),
                    Some(Rich::Bag(_, entries)) => {
                        Some(entries.iter().map(|e| e.0.clone()).collect())
                    }
                    _ => container.list_elements().map(|mut elements| {
                        elements.sort();
                        elements.dedup();
                        elements
                    }),
                };
                if let (Some(candidates), Some((op, _))) = (candidates, part.as_app()) {
                    let sort = p.op(op).first;
                    offer(
                        candidates.len() as u64,
                        VariableChoice::Member((*part).clone(), element.clone(), sort, candidates),
                        &mut best,
                    );
                }
            }
            Some((Builtin::Less | Builtin::LessEqual | Builtin::Equal, [a, b])) => {
                if let Some((sort, element, candidates)) = bag_membership(p, part, a, b) {
                    offer(
                        candidates.len() as u64,
                        VariableChoice::Member((*part).clone(), element, sort, candidates),
                        &mut best,
                    );
                }
            }
            Some((Builtin::Or, [a, b])) => {
                offer(EITHER, VariableChoice::Either(a.clone(), b.clone()), &mut best)
            }
            _ if s.witnesses < MAX_WITNESSES && binders::existence(p, part).is_some() => {
                offer(WITNESS, VariableChoice::Witness((*part).clone()), &mut best);
            }
            _ if binders::universal(p, part).is_some() => {
                offer(WITNESS, VariableChoice::Everywhere((*part).clone()), &mut best)
            }
            _ => {}
        }
    }
    if best.as_ref().is_none_or(|b| b.0 >= GROWING)
        && let Some(split) = split(m, p, s, open, parts, &bounds)?
    {
        return Ok(VariableChoice::Cases(split));
    }
    match best {
        Some((_, choice)) => Ok(choice),
        None => Err(unbounded_error(m, p, s, open, rest)),
    }
}

/// Returns the unknown that occurs together with the fewest others in a conjunct other than a
/// bound: this conjunct is decided first.
fn most_constrained<T: Terms>(
    m: &T,
    p: &Program,
    choices: &[(u32, VariableChoice)],
    parts: &[&Value],
) -> usize {
    let mut others: Vec<Option<usize>> = vec![None; choices.len()];
    let mut inside = Vec::new();
    for part in parts {
        if let Some((Builtin::Less | Builtin::LessEqual, [a, b])) = builtin_of(p, part)
            && [(a, b), (b, a)]
                .into_iter()
                .any(|(u, n)| matches!(u, Value::Unknown(_)) && !n.is_open())
        {
            continue;
        }
        inside.clear();
        m.unknowns().collect_unbound(part, &mut inside);
        for (count, (u, _)) in others.iter_mut().zip(choices) {
            if inside.contains(u) {
                *count = Some(count.map_or(inside.len(), |c| c.min(inside.len())));
            }
        }
    }
    others.iter().enumerate().min_by_key(|(_, o)| (o.is_none(), **o)).map_or(0, |o| o.0)
}

fn unbounded_error<T: Terms>(
    m: &T,
    p: &Program,
    s: &SolutionSearch,
    open: &[u32],
    rest: &Value,
) -> Box<Diagnostic> {
    let mut names: Vec<String> = Vec::new();
    let mut example = "n".to_string();
    for (i, &u) in open.iter().enumerate() {
        let name = m.unknown_name(p, u);
        names.push(format!("`{name}: {}`", p.signature.sorts.text(m.unknowns().sort(u))));
        if i == 0 {
            example = name;
        }
    }
    let message =
        format!("cannot enumerate the values in {}: no bound for {}", s.binder, names.join(", "));
    let mut error = Diagnostic::new(Stage::Data, message);
    // A sort without constructors has values without names, so they cannot be listed.
    let abstract_sort = open.iter().map(|u| m.unknowns().sort(*u)).find(
        |sort| matches!(p.signature.sorts.kind(*sort), SortKind::Named(n) if p.signature.sorts.named[*n as usize].constructors.is_empty()),
    );
    if let Some(sort) = abstract_sort {
        let sort = p.signature.sorts.text(sort);
        error = error
            .note(format!("the sort `{sort}` has no constructors, so its values cannot be listed: declare them with `cons` or `struct`"));
    }
    // The enumerated variable, or one with too many values.
    let declared = |u: &u32| {
        m.unknowns()
            .var(*u)
            .filter(|v| v.index() < p.signature.var_count())
            .map(|v| p.signature.var(v).span)
    };
    if let Some(span) = open.iter().chain(&s.wanted).find_map(declared) {
        error = error.or_span(span);
    }
    let left = if rest.is_true() {
        "no remaining condition bounds it".to_string()
    } else {
        format!("the remaining condition: {}", m.value_text(p, rest))
    };
    let numeric = open.first().is_some_and(|&u| {
        (basic::POS.number()..=basic::INT.number()).contains(&m.unknowns().sort(u).number())
    });
    let help = if numeric {
        format!(
            "an upper bound such as `{example} < 5`, an equation such as `{example} == 5`, or membership in a finite set would bound it"
        )
    } else {
        format!("an equation `{example} == …` or membership in a finite set or list would bound it")
    };
    Box::new(Diagnostic { open: true, ..error.note(left).note(help) })
}

fn undecided_error<T: Terms>(
    m: &T,
    p: &Program,
    s: &SolutionSearch,
    rest: &Value,
) -> Box<Diagnostic> {
    let place = if s.wanted.is_empty() { String::new() } else { format!(" in {}", s.binder) };
    let message =
        format!("a condition{place} is neither true nor false: {}", m.value_text(p, rest));
    let error = Diagnostic::new(Stage::Data, message)
        .note("no equation determines its value: a case is missing, or a condition of its equations is undecided");
    Box::new(Diagnostic { open: true, ..error })
}
