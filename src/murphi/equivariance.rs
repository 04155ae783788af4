//! Static analysis of the symmetries of scalarsets: rules, start states and properties that may
//! depend on the order of a scalarset's elements.
//!
//! The language has no operation that distinguishes elements of a scalarset, but it visits them in
//! an order: loops execute one iteration after the other, and quantifiers end at the first element
//! that decides them. A loop does not depend on the order if its iterations commute: of two
//! accesses by different iterations to one place, one of which writes, both store the same
//! constant, both add to it (or both subtract), or both add elements to a multiset; or the place is
//! a local that each iteration writes before it reads it. A quantifier does not depend on the order
//! if its body writes nothing, cannot fail, and assumes nothing. All else is a [`Suspect`], which
//! the search checks by execution in all orders ([`crate::order_check`]). Ip and Dill (*Better
//! verification through symmetry*, 1996) require the conditions of loops from the user.
//!
//! An expression can fail if it reads an undefined value. A part of a global variable is always
//! defined if it is in the start states, which are computed here, and every write stores a defined
//! value: a least fixed point over the accesses of all rules. Cost: linear in the text with its
//! functions inlined, quadratic in the accesses of one loop to one variable.

use crate::accesses::{
    Access, Accesses, Base, Class, Construct, Iterations, MaybeUndefined, Part, Spot, Stored, Unit,
    accesses, scalarsets,
};
use crate::code::Program;
use crate::run::{Ended, Interpreter, read};
use crate::typed::{Model, TypeId, TypeKind};
use crate::variables::variables;
use mu_base::Span;

/// Most pairs of accesses that are compared for one loop.
const PAIRS: usize = 10_000_000;

/// Construct that may depend on the order of a scalarset's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Suspect {
    pub(crate) construct: Construct,
    pub(crate) span: Span,
    /// Mask of the scalarsets, by [`crate::accesses::scalarsets`].
    pub(crate) sets: u64,
}

/// Suspects of each rule, start state and property.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    pub(crate) rules: Vec<Vec<Suspect>>,
    pub(crate) starts: Vec<Vec<Suspect>>,
    pub(crate) properties: Vec<Vec<Suspect>>,
}

/// Finds the suspects of a model.
pub(crate) fn suspects(model: &Model, program: &Program) -> Suspects {
    if scalarsets(model).is_empty() {
        return Suspects::default();
    }
    let rules = model.rules.iter().map(Unit::Rule);
    let starts = model.starts.iter().map(Unit::Start);
    let properties = model.properties.iter().map(Unit::Property);
    let units: Vec<Unit<'_>> = rules.chain(properties).chain(starts).collect();
    let walk = |undefined: &MaybeUndefined| -> Vec<Accesses> {
        let all = units.iter().enumerate();
        all.map(|(n, unit)| accesses(model, *unit, n, undefined)).collect()
    };
    let mut undefined = MaybeUndefined::default();
    let first = walk(&undefined);
    // Start states write to variables that are undefined; their results are computed instead.
    let others = first.len() - model.starts.len();
    undefined.classes.extend(undefined_at_start(model, program));
    spread(&first[..others], &mut undefined);
    let locals = first[others..].iter().flat_map(|a| &a.undefined);
    undefined.classes.extend(locals.map(|base| (*base, Vec::new())));
    let globals = (0..model.globals.len()).map(|n| Base::Global(n as u32));
    let mut at_start = undefined.clone();
    at_start.classes.extend(globals.map(|base| (base, Vec::new())));
    let mut found = walk(&undefined);
    for (n, unit) in units.iter().enumerate().skip(others) {
        found[n] = accesses(model, *unit, n, &at_start);
    }
    let mut found: Vec<Vec<Suspect>> = found.iter().map(of_accesses).collect();
    let starts = found.split_off(others);
    let properties = found.split_off(model.rules.len());
    Suspects { rules: found, starts, properties }
}

// ---- undefined values ------------------------------------------------------------------------

/// Returns the classes of global variables with an undefined part in some start state.
fn undefined_at_start(model: &Model, program: &Program) -> Vec<Class> {
    let mut interpreter = Interpreter::new(program, model.claims.len(), || true);
    let all = variables(model, &program.layout);
    let mut found: Vec<Class> = Vec::new();
    for start in &program.starts {
        interpreter.memory.fill(0);
        match interpreter.run(start.body) {
            Ended::Done => {}
            // The search reports a failure.
            Ended::Fault(_) | Ended::Discarded => continue,
            _ => {
                return (0..model.globals.len())
                    .map(|n| (Base::Global(n as u32), vec![]))
                    .collect();
            }
        }
        for variable in &all {
            let unused = |at: u32| read(&interpreter.memory, at as usize, 1) == 0;
            if variable.is_slot || variable.slot.is_some_and(unused) {
                continue;
            }
            if read(&interpreter.memory, variable.offset as usize, variable.width) == 0
                && let Some(class) = class_of(model, &variable.name)
                && !found.contains(&class)
            {
                found.push(class);
            }
        }
    }
    found
}

/// Returns the class of a part by its name, such as `cache[Proc_1].state`.
fn class_of(model: &Model, name: &str) -> Option<Class> {
    let mut words: Vec<String> = vec![String::new()];
    let mut depth = 0;
    for c in name.chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            '.' if depth == 0 => words.push(String::new()),
            c if depth == 0 => words.last_mut()?.push(c),
            _ => {}
        }
    }
    let global = model.globals.iter().position(|g| g.name == words[0])?;
    let (mut ty, mut fields) = (model.globals[global].ty, Vec::new());
    for word in &words[1..] {
        while let TypeKind::Array { element, .. } | TypeKind::Multiset { element, .. } =
            model.types.kind(ty)
        {
            ty = *element;
        }
        let TypeKind::Record { fields: all } = model.types.kind(ty) else { return None };
        let at = all.iter().position(|f| f.name == *word)?;
        fields.push(at as u32);
        ty = all[at].ty;
    }
    Some((Base::Global(global as u32), fields))
}

/// Adds the classes that writes make undefined.
fn spread(all: &[Accesses], undefined: &mut MaybeUndefined) {
    undefined.all = all.iter().any(|a| a.opaque);
    let locals = all.iter().flat_map(|a| &a.undefined).map(|base| (*base, Vec::new()));
    undefined.classes.extend(locals);
    loop {
        let before = undefined.classes.len();
        for access in all.iter().flat_map(|a| &a.all) {
            let to = access.spot.class();
            match &access.stored {
                Some(Stored::Undefined | Stored::Unknown) => {
                    undefined.classes.insert(to);
                }
                Some(Stored::Copy(from) | Stored::Element(from)) => {
                    let from = from.class();
                    if undefined.contains(&from) {
                        undefined.classes.insert(to);
                        continue;
                    }
                    let inner = undefined
                        .classes
                        .iter()
                        .filter(|(base, fields)| *base == from.0 && fields.starts_with(&from.1));
                    let copied: Vec<Class> = inner
                        .map(|(_, fields)| {
                            let mut parts = to.1.clone();
                            parts.extend_from_slice(&fields[from.1.len()..]);
                            (to.0, parts)
                        })
                        .collect();
                    undefined.classes.extend(copied);
                }
                _ => {}
            }
        }
        if undefined.classes.len() == before {
            return;
        }
    }
}

// ---- loops -----------------------------------------------------------------------------------

fn of_accesses(of: &Accesses) -> Vec<Suspect> {
    let mut found: Vec<Suspect> = of
        .loops
        .iter()
        .filter(|l| l.ends || of.opaque || !commutes(of, l))
        .map(|l| Suspect { construct: Construct::Loop, span: l.span, sets: l.sets })
        .chain(of.others.iter().map(|(construct, span, sets)| Suspect {
            construct: *construct,
            span: *span,
            sets: *sets,
        }))
        .collect();
    found.sort_by_key(|s| (s.span.start, s.construct, s.sets));
    found.dedup();
    found
}

/// True if the iterations of a loop commute.
fn commutes(of: &Accesses, l: &Iterations) -> bool {
    let (start, end) = l.accesses;
    let body = &of.all[start..end];
    // Locals of functions called in the loop belong to one iteration.
    let is_shared = |a: &&Access| !matches!(a.spot.base, Base::Local(frame, _) if frame >= l.inner);
    let writes: Vec<&Access> =
        body.iter().filter(|a| a.stored.is_some()).filter(is_shared).collect();
    if writes.len().saturating_mul(body.len()) > PAIRS {
        return false;
    }
    let mut temporaries: Vec<Base> = Vec::new();
    for write in writes {
        for other in body.iter().filter(|a| a.spot.base == write.spot.base) {
            if temporaries.contains(&write.spot.base)
                || are_disjoint(&write.spot, &other.spot, l.bound)
                || commute(write, other)
            {
                continue;
            }
            if is_temporary(of, l, write.spot.base) {
                temporaries.push(write.spot.base);
            } else {
                return false;
            }
        }
    }
    true
}

/// True if places of two iterations never overlap.
fn are_disjoint(a: &Spot, b: &Spot, bound: u32) -> bool {
    a.parts.iter().zip(&b.parts).any(|parts| match parts {
        (Part::Bound(a), Part::Bound(b)) => *a == bound && *b == bound,
        (Part::Field(a), Part::Field(b)) => a != b,
        (Part::At(a), Part::At(b)) => a != b,
        _ => false,
    })
}

/// True if a write and an access of one place by two iterations commute.
fn commute(write: &Access, other: &Access) -> bool {
    let (Some(a), Some(b)) = (&write.stored, &other.stored) else { return false };
    match (a, b) {
        (Stored::Constant(a), Stored::Constant(b)) => a == b,
        (Stored::Undefined, Stored::Undefined) | (Stored::Cleared, Stored::Cleared) => true,
        (Stored::Sum { up: a }, Stored::Sum { up: b }) => a == b,
        (Stored::Element(_), Stored::Element(_)) => true,
        // No iteration writes the global variable that is copied: its read would not commute.
        (Stored::Copy(a), Stored::Copy(b)) => {
            let fixed = |p: &Part| matches!(p, Part::Field(_) | Part::At(_));
            a == b && matches!(a.base, Base::Global(_)) && a.parts.iter().all(fixed)
        }
        _ => false,
    }
}

/// True if a variable is a local that each iteration writes as a whole before it reads it, and that
/// is written again before it is read outside of the loop.
fn is_temporary(of: &Accesses, l: &Iterations, base: Base) -> bool {
    if !matches!(base, Base::Local(..)) {
        return false;
    }
    let (start, end) = l.accesses;
    let is_inside = |at: usize| (start..end).contains(&at);
    let mut whole: Vec<(usize, &[u32])> = Vec::new();
    for (at, access) in of.all.iter().enumerate() {
        if access.spot.base != base {
            continue;
        }
        if access.spot.parts.is_empty() && access.stored.as_ref().is_some_and(is_whole) {
            whole.push((at, &access.block));
            continue;
        }
        // A write that no run between it and this access can skip, on this side of the loop.
        let common = l.block.iter().zip(&access.block).take_while(|(a, b)| a == b).count();
        let covers = |(earlier, block): &&(usize, &[u32])| {
            access.block.starts_with(block)
                && is_inside(*earlier) == is_inside(at)
                && (is_inside(at) || block.len() >= common && (*earlier >= end || at < start))
        };
        if !whole.iter().any(|w| covers(&w)) {
            return false;
        }
    }
    true
}

/// True if a write replaces the whole variable.
fn is_whole(stored: &Stored) -> bool {
    !matches!(stored, Stored::Sum { .. } | Stored::Element(_) | Stored::Removed)
}

/// Returns the type of a scalarset's number; for messages.
pub(crate) fn names(model: &Model, sets: u64) -> Vec<String> {
    let all = scalarsets(model);
    let chosen = |(n, _): &(usize, &TypeId)| sets & crate::accesses::bit(*n) != 0;
    all.iter().enumerate().filter(chosen).map(|(_, ty)| model.types.text(*ty)).collect()
}
