//! Start and end of a search: the cubes of `unsafe` and `invariant`, and the intersection of a cube
//! with the initial states.

use crate::atom::{Atom, Cell, Literal, OTHER, Point, Signature, SymbolSort};
use crate::cube::{Cube, simplify};
use crate::decide::satisfiable;
use crate::image::{Binding, Trouble, for_each_binding};
use crate::rules::{Comparison, ComparisonScope, FIXED, RuleValue, Rules, instantiate};
use crate::simplex::SimplexAnswer;
use mu_base::narrow;
use std::ops::ControlFlow::{Break, Continue};

/// Number of further sizes that are tried for an initial state if `init` mentions an array over
/// processes. If none of them has one, larger numbers are undecided.
pub(crate) const MORE_SIZES: usize = 3;

/// With more instances of `init`, repetitions are not removed.
const MANY_INSTANCES: usize = 64;

/// Limit on the choices of processes for a claim or for `init`; more are [`Trouble::Cases`].
const MAX_BINDINGS: usize = 1 << 20;

fn process(template: u8, binding: &[u8]) -> u8 {
    if template >= FIXED { template - FIXED } else { binding[usize::from(template)] }
}

/// Returns the literals of the tests with bound template processes.
pub fn literals(
    rules: &Rules,
    tests: &[Comparison],
    binding: &[u8],
    processes: usize,
) -> Result<Vec<Literal>, Trouble> {
    let scope = ComparisonScope { signature: &rules.signature, processes };
    let value = |v: &RuleValue| instantiate(v, &|p| process(p, binding), &|c| c);
    tests.iter().map(|t| Ok(scope.test(t, &value)?)).collect()
}

/// Returns the cubes of claims: their parameters are distinct processes, fixed or not.
pub fn claims(rules: &Rules, claims: &[(usize, Vec<Comparison>)]) -> Result<Vec<Cube>, Trouble> {
    cubes(rules, claims, false)
}

/// Returns the cubes that are assumed to be empty. They retain unconstrained processes, because
/// with fewer processes nothing is assumed.
pub fn assumptions(rules: &Rules) -> Result<Vec<Cube>, Trouble> {
    cubes(rules, &rules.invariants, true)
}

fn cubes(
    rules: &Rules,
    claims: &[(usize, Vec<Comparison>)],
    all: bool,
) -> Result<Vec<Cube>, Trouble> {
    let fixed = rules.signature.fixed;
    let mut found: Vec<Cube> = Vec::new();
    for (params, tests) in claims {
        let mut bindings = Vec::new();
        let mut store = |binding: &Binding, processes: usize| {
            bindings.push((binding.clone(), processes));
            if bindings.len() > MAX_BINDINGS { Break(()) } else { Continue(()) }
        };
        if for_each_binding(*params, fixed, rules.signature.most, &mut store)?.is_break() {
            return Err(Trouble::Cases);
        }
        for (binding, processes) in bindings {
            let list = literals(rules, tests, &binding, processes)?;
            if list.contains(&Literal::False) {
                continue;
            }
            let atoms = list
                .into_iter()
                .filter_map(|l| if let Literal::Atom(a) = l { Some(a) } else { None })
                .collect();
            let Some(cube) = Cube::new(&rules.signature, processes, atoms) else { continue };
            let cube = if all { cube.add_processes(&rules.signature, processes) } else { cube };
            if !found.contains(&cube) {
                found.push(cube);
            }
        }
    }
    Ok(found)
}

/// Tries all choices of `count` distinct processes that begin with those in `chosen`, in order,
/// until `does` accepts one. Returns true if it did.
pub(crate) fn try_arrangements(
    count: usize,
    processes: u8,
    chosen: &mut Vec<u8>,
    does: &mut dyn FnMut(&[u8]) -> bool,
) -> bool {
    if chosen.len() >= count {
        return does(chosen);
    }
    (0..processes).any(|p| {
        if chosen.contains(&p) {
            return false;
        }
        chosen.push(p);
        let found = try_arrangements(count, processes, chosen, does);
        chosen.pop();
        found
    })
}

/// Returns all maps from `params` to `processes`.
pub(crate) fn maps(params: usize, processes: usize) -> Vec<Vec<u8>> {
    let mut found = vec![Vec::new()];
    for _ in 0..params {
        found = found
            .iter()
            .flat_map(|m| (0..narrow::byte(processes)).map(move |p| [m.as_slice(), &[p]].concat()))
            .collect();
    }
    found
}

/// Returns the atoms with all views replaced by memory now, since in an initial state memory has no
/// past. `None` if a linear atom has too large numbers. A contradiction gives one atom that is
/// false.
pub fn flatten_views(atoms: &[Atom]) -> Option<Vec<Atom>> {
    let mut found = Vec::with_capacity(atoms.len());
    for a in atoms {
        let now = |c: &Cell| c.current();
        let literal = match a {
            Atom::Fence(..) => continue,
            Atom::In(c, set) => Literal::Atom(Atom::In(now(c), *set)),
            Atom::Same(x, y, equal) => Atom::equality(now(x), now(y), *equal),
            Atom::Before(x, y, strict) => {
                let point = |p: &Point| match p {
                    Point::Cell(c) => Point::Cell(now(c)),
                    v => *v,
                };
                Atom::order(point(x), point(y), *strict, 0)
            }
            Atom::Linear(l) => {
                let terms = l.terms.iter().map(|t| (now(&t.0), t.1)).collect();
                // Over reals nothing is rounded; the decision procedure rounds if all variables are
                // integers.
                crate::atom::LinearConstraint::new(terms, l.constant, l.relation, false).ok()?
            }
            Atom::Residues(r) => r.map(&|c| c.current()),
        };
        match literal {
            Literal::True => {}
            Literal::False => return Some(vec![Atom::In(Cell::new(0, &[]), 0)]),
            Literal::Atom(a) => found.push(a),
        }
    }
    Some(found)
}

/// Returns an initial state in the cube, as a satisfiable conjunction over `max(1, processes)`
/// processes; `None` if there is none. An undecided conjunction counts as one.
pub fn initial(rules: &Rules, cube: &Cube) -> Result<Option<Vec<Atom>>, Trouble> {
    let processes = cube.processes.max(1);
    let signature = &rules.signature;
    let mut atoms = Vec::new();
    for a in flatten_views(&cube.atoms).ok_or(Trouble::Number)? {
        match a {
            Atom::In(c, set) if signature.sort(c) == SymbolSort::Process => {
                atoms
                    .push(Atom::In(c, crate::atom::map_set(set, cube.processes, processes, |p| p)));
            }
            a => atoms.push(a),
        }
    }
    Ok(meet(signature, processes, atoms, &instances(rules, processes)?, Certainty::Possible))
}

/// Returns the distinct instances of `init` for all maps of its parameters to the processes, except
/// those that always hold; of each, one of the conjunctions must hold.
fn instances(rules: &Rules, processes: usize) -> Result<Vec<Vec<Vec<Literal>>>, Trouble> {
    let count = u32::try_from(rules.init.0).ok().and_then(|params| processes.checked_pow(params));
    if count.is_none_or(|count| count > MAX_BINDINGS) {
        return Err(Trouble::Cases);
    }
    let mut instances: Vec<Vec<Vec<Literal>>> = Vec::new();
    for map in maps(rules.init.0, processes) {
        let mut cubes = Vec::new();
        for tests in &rules.init.1 {
            let list = literals(rules, tests, &map, processes)?;
            if !list.contains(&Literal::False) {
                cubes.push(list.into_iter().filter(|l| *l != Literal::True).collect());
            }
        }
        let is_new = || instances.len() >= MANY_INSTANCES || !instances.contains(&cubes);
        if !cubes.iter().any(Vec::is_empty) && is_new() {
            instances.push(cubes);
        }
    }
    instances.sort_by_key(Vec::len);
    Ok(instances)
}

/// The existence of an initial state for some number of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existence {
    /// Some number has one.
    Some,
    /// No number is known to have one, and some number up to the bound is undecided.
    Undecided,
    /// None has one.
    None,
    /// None up to this number has one, and larger numbers are undecided.
    NoneUpTo(usize),
}

/// Decides whether some number of processes, from `least` on, has an initial state, as the machine
/// defines them: cells of processes contain one of `1, .., n`; if no state satisfies `init` then,
/// also one further process, the same in all cells and after all others in the order. Assumptions
/// exclude states.
///
/// If `init` and the assumptions mention no array over processes, a state with many processes
/// remains one after restriction to the constants and the processes in its variables. So
/// `least + variables` numbers decide the question, unless `init` has states without the further
/// process for all of them: assumptions may exclude these states, and with more processes `init`
/// may have none of them, so that cells may contain the further process.
///
/// # Errors
///
/// A number or a set that the prover cannot represent.
pub fn existence(rules: &Rules, least: usize) -> Result<Existence, Trouble> {
    let assumed = rules.invariants.iter().map(|i| i.0).max().unwrap_or(0);
    let size = least.max(assumed);
    let cells = cells_of_processes(
        &[instances(rules, size)?, assumption_instances(rules, size)?].concat(),
        &rules.signature,
    );
    let (variables, arrays): (Vec<Cell>, Vec<Cell>) =
        cells.iter().partition(|c| c.processes().next().is_none());
    let may_differ = !cells.is_empty() && !rules.invariants.is_empty();
    let further_sizes = if arrays.is_empty() && !may_differ { 0 } else { MORE_SIZES };
    let bound = least + variables.len() + further_sizes;
    let most = rules.signature.most.unwrap_or(usize::MAX);
    let mut undecided = false;
    for processes in least..=bound.min(most) {
        if has_state(rules, processes, Certainty::Possible)? {
            if has_state(rules, processes, Certainty::Sure)? {
                return Ok(Existence::Some);
            }
            undecided = true;
        }
    }
    Ok(if undecided {
        Existence::Undecided
    } else if most <= bound || arrays.is_empty() && !(may_differ && has_state_inside(rules, bound)?)
    {
        Existence::None
    } else {
        Existence::NoneUpTo(bound)
    })
}

/// True if the machine of this number of processes is known to have no initial state without the
/// further process in a cell. A machine that tries some numbers may miss one.
pub(crate) fn needs_further_process(rules: &Rules, processes: usize) -> bool {
    matches!(has_state_inside(rules, processes), Ok(false))
}

/// True unless no state of exactly this number of processes satisfies `init` without the further
/// process in a cell. Assumptions do not count.
fn has_state_inside(rules: &Rules, processes: usize) -> Result<bool, Trouble> {
    let found = instances(rules, processes)?;
    let inside = cells_of_processes(&found, &rules.signature)
        .into_iter()
        .map(|c| Atom::In(c, (1 << processes) - 1))
        .collect();
    Ok(meet(&rules.signature, processes, inside, &found, Certainty::Possible).is_some())
}

/// Returns the cells of processes in instances of `init`.
fn cells_of_processes(instances: &[Vec<Vec<Literal>>], signature: &Signature) -> Vec<Cell> {
    let atoms = instances
        .iter()
        .flatten()
        .flatten()
        .filter_map(|l| if let Literal::Atom(a) = l { Some(a) } else { None });
    let mut cells: Vec<Cell> =
        atoms.flat_map(Atom::cells).filter(|c| signature.sort(*c) == SymbolSort::Process).collect();
    cells.sort_unstable();
    cells.dedup();
    cells
}

/// Returns the conditions of the assumptions for all choices of distinct processes: of each claim,
/// one atom is false.
fn assumption_instances(
    rules: &Rules,
    processes: usize,
) -> Result<Vec<Vec<Vec<Literal>>>, Trouble> {
    let mut found = Vec::new();
    for (params, tests) in &rules.invariants {
        let mut maps = Vec::new();
        try_arrangements(*params, narrow::byte(processes), &mut Vec::new(), &mut |map| {
            maps.push(map.to_vec());
            false
        });
        for map in maps {
            let list = literals(rules, tests, &map, processes)?;
            if list.contains(&Literal::False) {
                continue;
            }
            let mut choices = Vec::new();
            for literal in list {
                // Buffers are initially empty.
                if let Literal::Atom(atom) = literal
                    && !matches!(atom, Atom::Fence(..))
                    && let opposite @ Literal::Atom(_) = atom.negate(&rules.signature, processes)?
                {
                    choices.push(vec![opposite]);
                }
            }
            found.push(choices);
        }
    }
    Ok(found)
}

/// The treatment of conjunctions that are undecided within the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Certainty {
    /// They count as satisfiable.
    Possible,
    /// They count as unsatisfiable.
    Sure,
}

/// True if the machine of exactly this number of processes has an initial state. Undecided
/// conjunctions count according to `certainty`.
fn has_state(rules: &Rules, processes: usize, certainty: Certainty) -> Result<bool, Trouble> {
    let signature = &rules.signature;
    let found = instances(rules, processes)?;
    let excluded = assumption_instances(rules, processes)?;
    let all = [found.as_slice(), &excluded].concat();
    let cells = cells_of_processes(&all, signature);
    let named = |c: &Cell| Atom::In(*c, (1 << processes) - 1);
    let inside: Vec<Atom> = cells.iter().map(named).collect();
    let has = |instances: &[Vec<Vec<Literal>>], certainty| {
        meet(signature, processes, inside.clone(), instances, certainty).is_some()
    };
    if has(&found, Certainty::Possible) {
        let remains = excluded.is_empty() && certainty == Certainty::Possible;
        if remains || has(&all, certainty) {
            return Ok(true);
        }
        // Without certainty about this case, a state with the further process is possible only.
        if certainty == Certainty::Sure || has(&found, Certainty::Sure) {
            return Ok(false);
        }
    }
    // The first cell that contains the further process; other cells contain the same one or one of
    // the instance.
    Ok((0..cells.len()).any(|first| {
        let further = Point::Cell(cells[first]);
        let after =
            (0..narrow::byte(processes)).map(|p| Atom::Before(Point::Variable(p), further, true));
        let atoms = cells[..first]
            .iter()
            .map(named)
            .chain([Atom::In(cells[first], OTHER)])
            .chain(after)
            .collect();
        let same = |c: &Cell| {
            vec![vec![Literal::Atom(named(c))], vec![Atom::equality(*c, cells[first], true)]]
        };
        let choices: Vec<_> =
            all.iter().cloned().chain(cells[first + 1..].iter().map(same)).collect();
        meet(signature, processes, atoms, &choices, certainty).is_some()
    }))
}

fn meet(
    signature: &Signature,
    processes: usize,
    atoms: Vec<Atom>,
    instances: &[Vec<Vec<Literal>>],
    certainty: Certainty,
) -> Option<Vec<Atom>> {
    let Some((first, rest)) = instances.split_first() else {
        let mut simple = atoms;
        if !simplify(signature, processes, &mut simple) {
            return None;
        }
        let answer = satisfiable(signature, processes, &simple);
        let holds = match certainty {
            Certainty::Possible => answer != SimplexAnswer::Unsatisfiable,
            Certainty::Sure => answer == SimplexAnswer::Satisfiable,
        };
        return holds.then_some(simple);
    };
    for choice in first {
        let mut next = atoms.clone();
        next.extend(
            choice
                .iter()
                .filter_map(|l| if let Literal::Atom(a) = l { Some(a.clone()) } else { None }),
        );
        // Many conjuncts are independent, so check for a contradiction before the next choice.
        if rest.first().is_some_and(|r| r.len() > 1)
            && satisfiable(signature, processes, &next) == SimplexAnswer::Unsatisfiable
        {
            continue;
        }
        if let Some(found) = meet(signature, processes, next, rest, certainty) {
            return Some(found);
        }
    }
    None
}
