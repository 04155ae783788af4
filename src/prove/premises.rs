//! Premises of a proof: the well-formedness check of the typed system that the prover and the
//! verifier share, so that both reject the same systems.
//!
//! Input: typed system and memory model. Output: [`Premises`], or a [`Refusal`] with its position.
//! Both reason about cubes in which writes reach memory immediately ([`crate::stages`]). Under
//! total store order this describes the machine only if processes interact through memory alone:
//!
//! - A transition has one acting process, the same for all symbols. It accesses plain cells of that
//!   process only. Each plain array has one index that is the acting process in all transitions. A
//!   plain symbol that no transition updates is a constant.
//! - A claim names the process that reads memory. The content of memory while writes are in buffers
//!   is not the view of a process, so the reduction does not describe it.
//! - Only those `invariant`s are assumed that concern one process or constants.
//!
//! Limits of the representation (values in a type, indices, processes, bits of numbers) are checked
//! here too. Cost: linear in the system, times the choices of an index for arrays with several
//! indices.

use crate::atom::MAX_PROCESSES;
use crate::rules::Memory;
use mu_base::narrow;
use mu_base::source::Place;
use mu_cubicle::system::{
    AssignedValue, Atom, CellAccess, Claim, ComparisonOp, Cube, Proc, Sum, Symbol, SymbolKind,
    System, Term, Transition, Update, UpdateCase,
};
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::ToPrimitive;

/// Largest number of constructors of a type.
const MAX_CONSTRUCTORS: usize = 64;
/// Largest number of indices of an array.
const MAX_INDICES: usize = 3;
/// Largest number of parameters of a transition, a claim or `init`.
const MAX_PARAMETERS: usize = 60;

/// Largest absolute value of numbers in proofs; sums of a few have 64 bits.
const LARGEST: i64 = 1 << 60;

/// The assumption of systems with numbers.
pub const UNBOUNDED: &str = "numbers have no bounds";

/// The reason why a system has no proof, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub message: String,
    /// The construct.
    pub place: Place,
}

/// The assumptions of a proof beyond the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Premises {
    /// The memory model; [`Memory::Sc`] if nothing is in memory, where the models coincide.
    pub memory: Memory,
    /// True if the memory models coincide.
    pub memoryless: bool,
    /// For each plain array that transitions update, under total store order: the index by which
    /// the acting process owns its cells.
    pub owner: Vec<Option<usize>>,
    /// The indices of the assumed `invariant`s.
    pub assumed: Vec<usize>,
}

fn refuse<T>(place: Place, message: String) -> Result<T, Refusal> {
    Err(Refusal { message, place })
}

/// Checks the system for a proof under the memory model.
///
/// # Errors
///
/// The first unsupported construct.
pub fn premises(system: &System, memory: Memory) -> Result<Premises, Refusal> {
    let memoryless = !system.has_memory();
    let memory = if memoryless { Memory::Sc } else { memory };
    limits(system)?;
    let mut found = Premises {
        memory,
        memoryless,
        owner: vec![None; system.symbols.len()],
        assumed: Vec::new(),
    };
    if memory == Memory::Tso {
        observers(system)?;
        owners(system, &mut found.owner)?;
    }
    let is_assumed = |c: &Claim| memory == Memory::Sc || is_local(system, c);
    found.assumed =
        system.invariants.iter().enumerate().filter(|c| is_assumed(c.1)).map(|c| c.0).collect();
    Ok(found)
}

impl Premises {
    /// Describes the memory model in a few words.
    pub fn model(&self) -> &'static str {
        match (self.memoryless, self.memory) {
            (true, _) => "sc (no symbol is in memory, so tso is the same)",
            (_, Memory::Sc) => "sc",
            (_, Memory::Tso) => "tso",
        }
    }
    /// Lists the assumptions, one sentence each.
    pub fn assumptions(&self, system: &System) -> Vec<String> {
        let mut list = Vec::new();
        match self.memory {
            Memory::Sc if self.memoryless => {}
            Memory::Sc => list.push(
                "memory is sequentially consistent: a write is visible to all processes immediately".to_string(),
            ),
            Memory::Tso => {
                list.push("each process has an unbounded first-in-first-out store buffer (total store order)".to_string());
                let own = self
                    .owner
                    .iter()
                    .enumerate()
                    .filter_map(|(s, at)| at.map(|at| owned_cells(system, s, at)));
                let own: Vec<String> = own.collect();
                let cells = if own.is_empty() {
                    String::new()
                } else {
                    format!("; process `p` alone accesses {}", own.join(", "))
                };
                list.push(format!("processes interact through memory only (checked{cells})"));
            }
        }
        let unbounded = |s: &Symbol| s.sort.is_numeric() && s.sort.bits().is_none();
        if system.symbols.iter().any(unbounded) {
            list.push(UNBOUNDED.to_string());
        }
        match (self.assumed.len(), system.invariants.len()) {
            (_, 0) => {}
            (n, all) if n == all => list.push(format!("{n} `invariant` of the file")),
            (n, all) => {
                list.push(format!("{n} of {all} `invariant` of the file: the others mention memory or several processes"));
            }
        }
        list
    }
}

/// Prints the cells of an array that process `p` owns by an index.
fn owned_cells(system: &System, symbol: usize, at: usize) -> String {
    let s = &system.symbols[symbol];
    let args: Vec<&str> = (0..s.arity).map(|i| if i == at { "p" } else { "_" }).collect();
    format!("`{}[{}]`", s.name, args.join(", "))
}

/// Checks the sizes of types, arrays, lists of parameters and numbers.
fn limits(system: &System) -> Result<(), Refusal> {
    for s in &system.symbols {
        let of = system.type_of(s.sort);
        if of.constructors.len() > MAX_CONSTRUCTORS {
            let (name, n) = (&of.name, of.constructors.len());
            return refuse(
                s.place,
                format!(
                    "type `{name}` has {n} constructors; proofs support at most {MAX_CONSTRUCTORS}"
                ),
            );
        }
        if s.arity > MAX_INDICES {
            return refuse(
                s.place,
                format!(
                    "array `{}` has {} indices; proofs support at most {MAX_INDICES}",
                    s.name, s.arity
                ),
            );
        }
    }
    let claims = || system.invariants.iter().chain(&system.unsafes);
    if system.fixed as usize > MAX_PROCESSES {
        return refuse(
            system.init.place,
            format!(
                "`#{}` is named; proofs support at most {MAX_PROCESSES} processes",
                system.fixed
            ),
        );
    }
    let lists = claims()
        .map(|c| (c.params.len(), c.place))
        .chain(system.transitions.iter().map(|t| (t.params.len(), t.place)));
    for (n, place) in lists.chain([(system.init.params.len(), system.init.place)]) {
        if n > MAX_PARAMETERS {
            return refuse(
                place,
                format!("{n} parameters; proofs support at most {MAX_PARAMETERS}"),
            );
        }
    }
    let large = |place| {
        refuse(
            place,
            "a number needs more than 60 bits; proofs support only smaller ones".to_string(),
        )
    };
    for cube in &system.init.dnf {
        if !sums(cube).all(fits) {
            return large(system.init.place);
        }
    }
    for c in claims() {
        if !sums(&c.cube).all(fits) {
            return large(c.place);
        }
    }
    for t in &system.transitions {
        let conditions = t.universal.iter().flat_map(|u| &u.dnf).chain([&t.guard]);
        if !conditions.flat_map(sums).all(fits) {
            return large(t.place);
        }
        for u in &t.updates {
            match u {
                Update::Assign { value, place, .. } => {
                    if !sum_of(value).is_none_or(fits) {
                        return large(*place);
                    }
                }
                Update::Cases { cases, place, .. } => {
                    if !cases
                        .iter()
                        .all(|c| sums(&c.condition).all(fits) && sum_of(&c.value).is_none_or(fits))
                    {
                        return large(*place);
                    }
                }
            }
        }
    }
    Ok(())
}

fn sum_of(value: &AssignedValue) -> Option<&Sum> {
    if let AssignedValue::Term(Term::Sum(s)) = value { Some(s) } else { None }
}

fn sums(cube: &Cube) -> impl Iterator<Item = &Sum> {
    cube.iter().flat_map(|a| match a {
        Atom::Compare(Term::Sum(l), _, Term::Sum(r)) => vec![l, r],
        Atom::Compare(Term::Sum(s), ..) | Atom::Compare(.., Term::Sum(s)) => vec![s],
        Atom::Words(w) => vec![&w.left, &w.right],
        _ => Vec::new(),
    })
}

/// True if the factors, over a common divisor, are small enough.
fn fits(sum: &Sum) -> bool {
    let scale = sum.terms.iter().fold(sum.constant.denom().clone(), |l, t| l.lcm(t.1.denom()));
    let small = |n: &BigRational| {
        (n * BigRational::from_integer(scale.clone()))
            .to_integer()
            .to_i64()
            .is_some_and(|n| (-LARGEST..=LARGEST).contains(&n))
    };
    scale.to_i64().is_some_and(|n| n <= LARGEST)
        && small(&sum.constant)
        && sum.terms.iter().all(|t| small(&t.1))
}

/// Returns the accesses of a term.
fn accesses(term: &Term) -> Vec<&CellAccess> {
    match term {
        Term::Cell(a) => vec![a],
        Term::Sum(s) => s.terms.iter().map(|t| &t.0).collect(),
        Term::Proc(_) | Term::Cons(_) => Vec::new(),
    }
}

fn accesses_of(cube: &Cube) -> impl Iterator<Item = &CellAccess> {
    cube.iter().flat_map(|atom| match atom {
        Atom::Compare(l, _, r) => [accesses(l), accesses(r)].concat(),
        Atom::Words(w) => w.left.terms.iter().chain(&w.right.terms).map(|t| &t.0).collect(),
        Atom::False | Atom::Fence(_) => Vec::new(),
    })
}

/// True if a transition updates the symbol.
fn is_updated(system: &System, symbol: usize) -> bool {
    system.transitions.iter().any(|t| t.updates.iter().any(|u| u.symbol().index() == symbol))
}

/// Rejects `unsafe` claims that read memory without an observer. Constants have the same value for
/// all observers.
fn observers(system: &System) -> Result<(), Refusal> {
    for claim in &system.unsafes {
        for a in accesses_of(&claim.cube) {
            let symbol = system.symbol(a.symbol);
            if symbol.kind == SymbolKind::Weak
                && a.by.is_none()
                && is_updated(system, a.symbol.index())
            {
                let name = &symbol.name;
                let who = claim.params.first().map_or("p", String::as_str);
                return refuse(
                    claim.place,
                    format!(
                        "`unsafe` reads `{name}` in memory without naming a process; under total store order writes may still be in buffers. \
                         Proofs support the view of a process: `{who} @ {name}`"
                    ),
                );
            }
        }
    }
    Ok(())
}

/// True if the claim concerns the cells of one process, or constants. If writes reach memory
/// immediately, states of several processes occur that the machine does not have: a process may be
/// before its write while another process, which wrote first, is further than on the machine.
fn is_local(system: &System, claim: &Claim) -> bool {
    let changing: Vec<&CellAccess> =
        accesses_of(&claim.cube).filter(|a| is_updated(system, a.symbol.index())).collect();
    let mut processes: Vec<&Proc> = changing.iter().flat_map(|a| &a.args).collect();
    processes.sort_unstable();
    processes.dedup();
    processes.len() <= 1
        && changing.iter().all(|a| system.symbol(a.symbol).kind != SymbolKind::Weak)
}

/// Finds the index of each updated plain array that is the acting process in all transitions.
fn owners(system: &System, owner: &mut Vec<Option<usize>>) -> Result<(), Refusal> {
    let plain = |s: &usize| system.symbols[*s].kind == SymbolKind::Plain && is_updated(system, *s);
    let tracked: Vec<usize> = (0..system.symbols.len()).filter(plain).collect();
    for s in tracked.iter().filter(|s| system.symbols[**s].arity == 0) {
        let touches = |t: &&Transition| accessed_cells(t).iter().any(|a| a.symbol.index() == *s);
        if let Some(t) = system.transitions.iter().find(touches) {
            let name = &system.symbols[*s].name;
            return refuse(
                t.place,
                format!(
                    "`{name}` is not in memory, and transition `{}` accesses it: under total store order there are proofs for processes that \
                     interact through memory only, and this variable is shared. A `weak var` is in memory",
                    t.name
                ),
            );
        }
    }
    if assign(system, &tracked, owner) {
        return Ok(());
    }
    // The first transition that by itself excludes all choices of indices, else the first one.
    let alone = |t: &&Transition| {
        let mut own = vec![None; system.symbols.len()];
        !assign_within(system, std::slice::from_ref(*t), &tracked, &mut own)
    };
    let t = system
        .transitions
        .iter()
        .find(alone)
        .or_else(|| system.transitions.iter().find(|t| !accessed_cells(t).is_empty()));
    let Some(t) = t else { return Ok(()) };
    let mut cells: Vec<String> = Vec::new();
    for a in accessed_cells(t).into_iter().filter(|a| tracked.contains(&a.symbol.index())) {
        let text = cell_text(system, t, &a);
        if !cells.contains(&text) {
            cells.push(text);
        }
    }
    let who = match t.actor.map(|p| process_text(t, p)) {
        Some(actor) => format!("`{actor}` acts"),
        None => "no single process owns all of them".to_string(),
    };
    refuse(
        t.place,
        format!(
            "transition `{}` accesses {}, which are not in memory, and {who}: under total store order there are proofs for processes that interact \
             through memory only, so a transition may access plain cells of one process, the one that acts",
            t.name,
            cells.join(", ")
        ),
    )
}

fn process_text(t: &Transition, p: Proc) -> String {
    match p {
        Proc::Fixed(n) => format!("#{n}"),
        Proc::Var(v) => {
            let bound = t.updates.iter().flat_map(|u| {
                if let Update::Cases { bound, .. } = u { bound.as_slice() } else { &[] }
            });
            let inner =
                bound.map(|b| (b.0, &b.1)).chain(t.universal.iter().map(|u| (u.var, &u.name)));
            t.params
                .get(v as usize)
                .or_else(|| inner.into_iter().find(|b| b.0 == v).map(|b| b.1))
                .map_or("_", String::as_str)
                .to_string()
        }
    }
}

fn cell_text(system: &System, t: &Transition, a: &CellAccess) -> String {
    let args: Vec<String> = a.args.iter().map(|p| process_text(t, *p)).collect();
    format!("`{}[{}]`", system.symbol(a.symbol).name, args.join(", "))
}

/// Returns all cells that a transition reads or writes.
fn accessed_cells(t: &Transition) -> Vec<CellAccess> {
    let mut found: Vec<CellAccess> = t
        .universal
        .iter()
        .flat_map(|u| &u.dnf)
        .chain([&t.guard])
        .flat_map(accesses_of)
        .cloned()
        .collect();
    for u in &t.updates {
        match u {
            Update::Assign { symbol, args, value, .. } => {
                found.push(CellAccess { symbol: *symbol, args: args.clone(), by: None });
                found.extend(reads(value).into_iter().cloned());
            }
            Update::Cases { symbol, bound, cases, .. } => {
                found.push(CellAccess {
                    symbol: *symbol,
                    args: bound.iter().map(|b| Proc::Var(b.0)).collect(),
                    by: None,
                });
                found.extend(
                    cases
                        .iter()
                        .flat_map(|c| accesses_of(&c.condition).chain(reads(&c.value)))
                        .cloned(),
                );
            }
        }
    }
    found
}

fn reads(value: &AssignedValue) -> Vec<&CellAccess> {
    if let AssignedValue::Term(t) = value { accesses(t) } else { Vec::new() }
}

fn assign(system: &System, tracked: &[usize], owner: &mut Vec<Option<usize>>) -> bool {
    assign_within(system, &system.transitions, tracked, owner)
}

/// Chooses an index for each tracked array by depth-first search, so that each transition has one
/// acting process for all of them.
fn assign_within(
    system: &System,
    transitions: &[Transition],
    tracked: &[usize],
    owner: &mut Vec<Option<usize>>,
) -> bool {
    let Some((s, rest)) = tracked.split_first() else { return true };
    for at in 0..system.symbols[*s].arity {
        owner[*s] = Some(at);
        if transitions.iter().all(|t| acts_alone(t, owner))
            && assign_within(system, transitions, rest, owner)
        {
            return true;
        }
    }
    owner[*s] = None;
    false
}

/// True if some process owns all cells that the transition accesses.
fn acts_alone(t: &Transition, owner: &[Option<usize>]) -> bool {
    match t.actor {
        Some(actor) => owns_all(t, owner, actor),
        None => {
            let fixed = accessed_cells(t)
                .into_iter()
                .flat_map(|a| a.args)
                .filter(|p| matches!(p, Proc::Fixed(_)));
            let own: Vec<Proc> =
                (0..narrow::index(t.params.len())).map(Proc::Var).chain(fixed).collect();
            own.into_iter().any(|p| owns_all(t, owner, p))
                || t.params.is_empty() && owns_all(t, owner, Proc::Var(u32::MAX))
        }
    }
}

/// True if the actor owns all cells of owned arrays that the transition accesses.
fn owns_all(t: &Transition, owner: &[Option<usize>], actor: Proc) -> bool {
    let own = |a: &CellAccess| owner[a.symbol.index()].is_none_or(|at| a.args[at] == actor);
    let conditions = t.universal.iter().flat_map(|u| &u.dnf).chain([&t.guard]);
    if !conditions.flat_map(accesses_of).all(own) {
        return false;
    }
    t.updates.iter().all(|u| match u {
        Update::Assign { symbol, args, value, .. } => {
            own(&CellAccess { symbol: *symbol, args: args.clone(), by: None })
                && reads(value).into_iter().all(own)
        }
        Update::Cases { symbol, bound, cases, .. } => {
            let target = CellAccess {
                symbol: *symbol,
                args: bound.iter().map(|b| Proc::Var(b.0)).collect(),
                by: None,
            };
            cases.iter().all(|case| {
                let fits = |a: &CellAccess| {
                    own(a)
                        || owner[a.symbol.index()]
                            .is_some_and(|at| is_actor(case, a.args[at], actor))
                };
                let unchanged = reads(&case.value)
                    .into_iter()
                    .any(|a| a.symbol == *symbol && a.args == target.args)
                    && is_whole(&case.value);
                accesses_of(&case.condition).all(fits)
                    && (unchanged || fits(&target) && reads(&case.value).into_iter().all(fits))
            })
        }
    })
}

/// True if the value is a cell without an offset.
fn is_whole(value: &AssignedValue) -> bool {
    match value {
        AssignedValue::Term(Term::Cell(_)) => true,
        AssignedValue::Term(Term::Sum(s)) => s.as_cell().is_some(),
        _ => false,
    }
}

/// True if the condition of the case equates a bound variable with the acting process.
fn is_actor(case: &UpdateCase, variable: Proc, actor: Proc) -> bool {
    case.condition.iter().any(|atom| match atom {
        Atom::Compare(Term::Proc(a), ComparisonOp::Eq, Term::Proc(b)) => {
            (*a, *b) == (variable, actor) || (*b, *a) == (variable, actor)
        }
        _ => false,
    })
}
