//! Type checker: from a syntax tree to a typed [`System`], or an error with its position.
//!
//! Declarations may be in any order. A transition or claim with a disjunction as its formula
//! becomes several. The representation of each construct is described in [`crate::system`]. The
//! process that accesses memory in a transition is the parameter in brackets; without brackets it
//! is the process named first before `@`, or else the first parameter (x86-tso-programs, section
//! 2). Cost: linear, except for normal forms.

use crate::ast::{self, DeclarationKind, File, Formula, Item, Name, Right};
use crate::formula::{
    AllowedQuantifiers, CheckResult, Conjunct, DeclaredNames, FormulaScope, NameMeaning,
    PredicateSyntax, ReadingProcess, refuse,
};
use crate::model::FLUSH;
use crate::system::{
    AssignedValue, Atom, Claim, ConsId, Constructor, Init, Proc, Symbol, SymbolId, SymbolKind,
    System, Transition, TypeDecl, TypeId, Universal, Update, UpdateCase,
};
use mu_base::source::{Place, Span};
use mu_base::{Diagnostic, Stage, narrow};
use std::collections::{HashMap, HashSet};

/// Checks a file.
///
/// # Errors
///
/// The first fault: unknown or duplicate names, sort mismatches, wrong numbers of indices, memory
/// accesses by two processes, unsupported constructs, a missing `init`.
pub fn check(file: &File) -> Result<System, Diagnostic> {
    let mut names = DeclaredNames::default();
    let mut system = System {
        types: ["proc", "bool", "int", "real"]
            .map(|n| TypeDecl { name: n.into(), constructors: Vec::new() })
            .into(),
        constructors: ["False", "True"]
            .map(|n| Constructor { name: n.into(), of: TypeId::BOOL })
            .into(),
        symbols: Vec::new(),
        processes: None,
        fixed: 0,
        init: Init { params: Vec::new(), dnf: Vec::new(), place: Place::default() },
        invariants: Vec::new(),
        unsafes: Vec::new(),
        has_claim: file.items.iter().any(|i| matches!(i, Item::Unsafe(..))),
        transitions: Vec::new(),
    };
    system.types[TypeId::BOOL.index()].constructors = vec![ConsId::FALSE, ConsId::TRUE];
    types(file, &mut system, &mut names)?;
    symbols(file, &mut system, &mut names)?;
    bodies(file, &mut system, &names)?;
    find_largest_constant(&mut system, file)?;
    Ok(system)
}

fn types<'a>(
    file: &'a File,
    system: &mut System,
    names: &mut DeclaredNames<'a>,
) -> CheckResult<()> {
    for (i, t) in ["proc", "bool", "int", "real"].into_iter().enumerate() {
        names.types.insert(t, TypeId::new(i));
    }
    for (name, id) in crate::system::word_types() {
        names.types.insert(name, id);
    }
    names.constructors.extend([("False", ConsId::FALSE), ("True", ConsId::TRUE)]);
    for item in &file.items {
        let Item::Type(name, constructors) = item else { continue };
        let id = TypeId::new(system.types.len());
        if names.types.insert(&name.text, id).is_some() {
            return refuse(name.place.0, format!("the type `{}` is declared twice", name.text));
        }
        system.types.push(TypeDecl { name: name.text.clone(), constructors: Vec::new() });
        for c in constructors {
            let cons = ConsId::new(system.constructors.len());
            if let Some(other) = names.constructors.insert(&c.text, cons) {
                let of = &system.type_of(system.constructor(other).of).name;
                return refuse(
                    c.place.0,
                    format!("the constructor `{}` is declared already, in type `{of}`", c.text),
                );
            }
            system.constructors.push(Constructor { name: c.text.clone(), of: id });
            system.types[id.index()].constructors.push(cons);
        }
    }
    Ok(())
}

fn symbols<'a>(
    file: &'a File,
    system: &mut System,
    names: &mut DeclaredNames<'a>,
) -> CheckResult<()> {
    for item in &file.items {
        match item {
            Item::Symbol { declared, name, indices, sort } => {
                let type_of = |n: &Name| match names.types.get(n.text.as_str()) {
                    Some(t) => Ok(*t),
                    None => {
                        let known: Vec<_> =
                            system.types.iter().map(|t| format!("`{}`", t.name)).collect();
                        refuse(
                            n.place.0,
                            format!(
                                "`{}` is not a type, expected one of {}, `word1` to `word32`",
                                n.text,
                                known.join(", ")
                            ),
                        )
                    }
                };
                for index in indices {
                    if type_of(index)? != TypeId::PROC {
                        return refuse(
                            index.place.0,
                            format!("`{}` cannot be an index, expected `proc`", index.text),
                        );
                    }
                }
                let kind = match declared {
                    DeclarationKind::Constant => SymbolKind::Constant,
                    DeclarationKind::Plain => SymbolKind::Plain,
                    DeclarationKind::Weak => SymbolKind::Weak,
                };
                let symbol = Symbol {
                    name: name.text.clone(),
                    kind,
                    arity: indices.len(),
                    sort: type_of(sort)?,
                    place: name.place,
                };
                if names.constructors.contains_key(name.text.as_str()) {
                    return refuse(
                        name.place.0,
                        format!("`{}` is a constructor already", name.text),
                    );
                }
                if let Some(other) =
                    names.symbols.insert(&name.text, SymbolId::new(system.symbols.len()))
                {
                    let message = format!("`{}` is declared twice", name.text);
                    return Err(Diagnostic::at(Stage::Type, name.place.0, message)
                        .related(system.symbol(other).place.0, "first here"));
                }
                system.symbols.push(symbol);
            }
            Item::Predicate(name, params, body) => {
                distinct(params.iter())?;
                if names.predicates.insert(&name.text, PredicateSyntax { params, body }).is_some() {
                    return refuse(
                        name.place.0,
                        format!("predicate `{}` is declared twice", name.text),
                    );
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks that all names are distinct.
fn distinct<'a>(params: impl Iterator<Item = &'a Name>) -> CheckResult<()> {
    let mut seen = HashSet::new();
    for p in params {
        if !seen.insert(&p.text) {
            return refuse(p.place.0, format!("`{}` is bound twice", p.text));
        }
    }
    Ok(())
}

fn bodies(file: &File, system: &mut System, names: &DeclaredNames<'_>) -> CheckResult<()> {
    let mut init: Option<Init> = None;
    let mut processes = None;
    let (mut invariants, mut unsafes, mut transitions) = (Vec::new(), Vec::new(), Vec::new());
    for item in &file.items {
        match item {
            Item::Init(params, body, place) => {
                let mut scope = scope(
                    system,
                    names,
                    params.iter(),
                    ReadingProcess::Memory,
                    AllowedQuantifiers::None,
                )?;
                let dnf = scope.dnf(body, true)?.into_iter().map(|c| c.cube).collect();
                let made = Init { params: texts(params), dnf, place: *place };
                if let Some(first) = init.replace(made) {
                    let twice =
                        Diagnostic::at(Stage::Type, place.0, "a second `init`, expected one");
                    return Err(twice.related(first.place.0, "first here"));
                }
            }
            Item::Invariant(params, body, place) => {
                claims(system, names, params, body, *place, &mut invariants)?
            }
            Item::Unsafe(params, body, place) => {
                claims(system, names, params, body, *place, &mut unsafes)?
            }
            Item::Transition { name, params, requires, updates } => {
                TransitionDeclaration { name, params, requires: requires.as_ref(), updates }
                    .check(system, names, &mut transitions)?;
            }
            Item::Processes(n, place) => {
                if processes.replace(*n).is_some() {
                    return refuse(place.0, "a second `number_procs`, expected one");
                }
            }
            Item::Type(..) | Item::Symbol { .. } => {}
            // The sorts of a predicate are checked at its uses.
            Item::Predicate(..) => {}
        }
    }
    system.init = init.ok_or_else(|| {
        let message = "the file has no `init`, which describes the initial states";
        Diagnostic::at(Stage::Type, file.end.0, message)
    })?;
    (system.processes, system.invariants, system.unsafes, system.transitions) =
        (processes, invariants, unsafes, transitions);
    let flush = system.transitions.iter().find(|t| t.name == FLUSH).filter(|_| system.has_memory());
    if let Some(t) = flush {
        let message = "the transition `flush` has the name of the step in which a store reaches memory, expected another name";
        return refuse(t.place.0, message);
    }
    Ok(())
}

fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(|n| n.text.clone()).collect()
}

fn scope<'s, 'a, 'n>(
    system: &'s System,
    names: &'s DeclaredNames<'a>,
    params: impl Iterator<Item = &'n Name> + Clone,
    reader: ReadingProcess,
    allowed: AllowedQuantifiers,
) -> CheckResult<FormulaScope<'s, 'a>> {
    distinct(params.clone())?;
    let bindings: HashMap<_, _> = params
        .enumerate()
        .map(|(i, p)| (p.text.clone(), NameMeaning::Proc(Proc::Var(narrow::index(i)))))
        .collect();
    let declared = narrow::index(bindings.len());
    Ok(FormulaScope {
        system,
        names,
        bindings,
        reader,
        allowed,
        declared,
        next: declared,
        reads: false,
        unfolding: Vec::new(),
    })
}

fn claims(
    system: &System,
    names: &DeclaredNames<'_>,
    params: &[Name],
    body: &Formula,
    place: Place,
    out: &mut Vec<Claim>,
) -> CheckResult<()> {
    let mut scope =
        scope(system, names, params.iter(), ReadingProcess::Named, AllowedQuantifiers::Exists)?;
    for conjunct in scope.dnf(body, true)? {
        let mut params = texts(params);
        let mut cube = conjunct.cube;
        if let Some((number, name)) = conjunct.exists {
            let to = narrow::index(params.len());
            params.push(fresh(&params, &name));
            cube.iter_mut().for_each(|a| {
                a.map_procs(&mut |p| if p == Proc::Var(number) { Proc::Var(to) } else { p })
            });
        }
        out.push(Claim { params, cube, place });
    }
    Ok(())
}

/// Returns a name that no parameter has.
fn fresh(params: &[String], name: &str) -> String {
    let mut name = name.to_string();
    while params.contains(&name) {
        name.push('0');
    }
    name
}

/// A transition of the syntax tree.
struct TransitionDeclaration<'a> {
    name: &'a Name,
    params: &'a [(Name, bool)],
    requires: Option<&'a Formula>,
    updates: &'a [ast::Update],
}

impl TransitionDeclaration<'_> {
    fn check(
        &self,
        system: &System,
        names: &DeclaredNames<'_>,
        out: &mut Vec<Transition>,
    ) -> CheckResult<()> {
        let params = self.params.iter().map(|p| &p.0);
        let mut scope = scope(
            system,
            names,
            params.clone(),
            ReadingProcess::Actor(None),
            AllowedQuantifiers::Both,
        )?;
        let (actor, marked) = self.actor(&scope)?;
        scope.reader = ReadingProcess::Actor(actor);
        let guard = match self.requires {
            Some(e) => scope.dnf(e, true)?,
            None => vec![Conjunct::default()],
        };
        let is_fence = |a: &Atom| matches!(a, Atom::Fence(_));
        let fences = guard.iter().any(|c| {
            let universal = c.universal.iter().flat_map(|u| &u.dnf);
            universal.chain([&c.cube]).flatten().any(is_fence)
        });
        scope.allowed = AllowedQuantifiers::None;
        let updates =
            self.updates.iter().map(|u| update(&mut scope, u)).collect::<CheckResult<Vec<_>>>()?;
        self.overlaps(system, &updates)?;
        let writes = updates.iter().any(|u| system.symbol(u.symbol()).kind == SymbolKind::Weak);
        let accesses = scope.reads || writes || fences;
        let base = Transition {
            name: self.name.text.clone(),
            params: params.map(|p| p.text.clone()).collect(),
            declared: self.params.len(),
            actor: if accesses || marked { actor } else { None },
            locked: scope.reads && writes,
            guard: Vec::new(),
            universal: Vec::new(),
            updates,
            place: self.name.place,
        };
        for conjunct in guard {
            out.push(disjunct(&base, conjunct));
        }
        Ok(())
    }
    /// Returns the process that accesses memory, if there is one, and true if it is in brackets.
    fn actor(&self, scope: &FormulaScope<'_, '_>) -> CheckResult<(Option<Proc>, bool)> {
        let mut marked = self.params.iter().enumerate().filter(|p| p.1.1);
        if let Some((i, _)) = marked.next() {
            if let Some((_, (name, _))) = marked.next() {
                return refuse(
                    name.place.0,
                    "one process accesses memory in a transition, expected brackets around one parameter",
                );
            }
            return Ok((Some(Proc::Var(narrow::index(i))), true));
        }
        let named = self
            .requires
            .and_then(reader)
            .or_else(|| self.updates.iter().find_map(|u| u.by.as_ref()))
            .or_else(|| {
                let rights = self.updates.iter().flat_map(|u| match &u.right {
                    Right::Value(v) => vec![(None, v)],
                    Right::Cases(cases) => cases.iter().map(|(c, v)| (c.as_ref(), v)).collect(),
                });
                rights.into_iter().find_map(|(c, v)| {
                    c.and_then(reader).or(if let ast::Value::Term(t) = v { reads(t) } else { None })
                })
            });
        if let Some(name) = named {
            return Ok((Some(scope.process(name)?), false));
        }
        Ok(((!self.params.is_empty()).then_some(Proc::Var(0)), false))
    }
    /// Rejects two updates of one cell.
    fn overlaps(&self, system: &System, updates: &[Update]) -> CheckResult<()> {
        for (i, u) in updates.iter().enumerate() {
            for v in &updates[..i] {
                if u.symbol() != v.symbol() {
                    continue;
                }
                if let (Update::Assign { args: a, .. }, Update::Assign { args: b, .. }) = (u, v)
                    && a.iter().zip(b).any(|(p, q)| {
                        p != q
                            && matches!(
                                (p, q),
                                (Proc::Var(_), Proc::Var(_)) | (Proc::Fixed(_), Proc::Fixed(_))
                            )
                    })
                {
                    continue;
                }
                let name = &system.symbol(u.symbol()).name;
                let twice = format!(
                    "`{name}` is updated twice and the cells may be the same, expected one update, with `case`"
                );
                return Err(Diagnostic::at(Stage::Type, update_place(u), twice)
                    .related(update_place(v), "first here"));
            }
        }
        Ok(())
    }
}

fn update_place(u: &Update) -> Span {
    match u {
        Update::Assign { place, .. } | Update::Cases { place, .. } => place.0,
    }
}

/// Returns the first process that a formula names before `@` or in `fence`.
fn reader(e: &Formula) -> Option<&Name> {
    match e {
        Formula::Constant(..) => None,
        Formula::Fence(by, _) => by.as_ref(),
        Formula::Compare(a, _, b) => reads(a).or_else(|| reads(b)),
        Formula::Call(_, args) => args.iter().find_map(reads),
        Formula::Not(a) | Formula::Quantified(_, _, a) => reader(a),
        Formula::And(all) | Formula::Or(all) => all.iter().find_map(reader),
        Formula::Implies(a, b) | Formula::Iff(a, b) => reader(a).or_else(|| reader(b)),
        Formula::If(a, b, c) => [a, b, c].into_iter().find_map(|e| reader(e)),
    }
}

fn reads(t: &ast::Term) -> Option<&Name> {
    match t {
        ast::Term::By(by, _) => Some(by),
        ast::Term::Add(a, b) | ast::Term::Sub(a, b) | ast::Term::Mul(a, b) => {
            reads(a).or_else(|| reads(b))
        }
        ast::Term::Neg(a) | ast::Term::Signed(a) | ast::Term::Mask(a, _) => reads(a),
        ast::Term::Number(..) | ast::Term::Name(_) | ast::Term::Cell(..) => None,
    }
}

/// Builds the transition of one disjunct, with process variables numbered consecutively.
fn disjunct(base: &Transition, conjunct: Conjunct) -> Transition {
    let mut t = base.clone();
    let (mut guard, mut universal) = (conjunct.cube, conjunct.universal);
    if let Some((number, name)) = conjunct.exists {
        // The new parameter is the first after the declared ones, so bound variables are
        // renumbered.
        let to = narrow::index(t.declared);
        let mut map = |p: Proc| match p {
            Proc::Var(v) if v == number => Proc::Var(to),
            Proc::Var(v) if v >= to && v < number => Proc::Var(v + 1),
            p => p,
        };
        t.params.push(fresh(&t.params, &name));
        guard.iter_mut().for_each(|a| a.map_procs(&mut map));
        for u in &mut universal {
            u.map_procs(&mut map);
        }
        t.updates.iter_mut().for_each(|u| u.map_procs(&mut map));
    }
    (t.guard, t.universal) = (guard, universal);
    t
}

fn update(scope: &mut FormulaScope<'_, '_>, u: &ast::Update) -> CheckResult<Update> {
    let symbol = scope.symbol(&u.name)?;
    let info = scope.system.symbol(symbol);
    let (kind, arity, sort) = (info.kind, info.arity, info.sort);
    if kind == SymbolKind::Constant {
        return refuse(
            u.name.place.0,
            format!("`{}` is a constant and cannot be updated", u.name.text),
        );
    }
    if arity != u.args.len() {
        return refuse(
            u.name.place.0,
            format!("`{}` is used with {} indices, expected {arity}", u.name.text, u.args.len()),
        );
    }
    writer(scope, u, kind)?;
    let place = u.name.place;
    match &u.right {
        Right::Value(value) => {
            let args = u.args.iter().map(|a| scope.process(a)).collect::<CheckResult<_>>()?;
            Ok(Update::Assign { symbol, args, value: self::value(scope, value, sort)?, place })
        }
        Right::Cases(cases) => {
            distinct(u.args.iter())?;
            let mut bound = Vec::new();
            for arg in &u.args {
                if arg.text.starts_with('#') || scope.bindings.contains_key(&arg.text) {
                    let message = format!(
                        "`{}` is a process already; `case` updates all cells, expected a new name for their index",
                        arg.text
                    );
                    return refuse(arg.place.0, message);
                }
                bound.push((scope.next, arg.text.clone()));
                scope.next += 1;
            }
            for (number, name) in &bound {
                scope.bindings.insert(name.clone(), NameMeaning::Proc(Proc::Var(*number)));
            }
            let mut out = Vec::new();
            for (condition, value) in cases {
                let conditions = match condition {
                    Some(e) => scope.dnf(e, true)?,
                    None => vec![Conjunct::default()],
                };
                let value = self::value(scope, value, sort)?;
                for conjunct in conditions {
                    if conjunct.cube.iter().any(|a| matches!(a, Atom::Fence(_))) {
                        return refuse(place.0, "`fence` is for guards, expected none in a case");
                    }
                    out.push(UpdateCase { condition: conjunct.cube, value: value.clone() });
                }
            }
            for (_, name) in &bound {
                scope.bindings.remove(name);
            }
            Ok(Update::Cases { symbol, bound, cases: out, place })
        }
    }
}

/// Checks the writing process of an update.
fn writer(scope: &FormulaScope<'_, '_>, u: &ast::Update, kind: SymbolKind) -> CheckResult<()> {
    let ReadingProcess::Actor(actor) = scope.reader else { return Ok(()) };
    match (&u.by, kind) {
        (Some(by), SymbolKind::Weak) if actor != Some(scope.process(by)?) => refuse(
            by.place.0,
            "all accesses to memory of a transition are by one process, expected the same as before",
        ),
        (Some(by), SymbolKind::Plain | SymbolKind::Constant) => refuse(
            by.place.0,
            format!("`{}` is not in memory, expected it without `{} @`", u.name.text, by.text),
        ),
        (None, SymbolKind::Weak) if actor.is_none() => refuse(
            u.name.place.0,
            format!(
                "`{}` is in memory: expected a process that writes it, a parameter in brackets `[p]`",
                u.name.text
            ),
        ),
        _ => Ok(()),
    }
}

fn value(
    scope: &mut FormulaScope<'_, '_>,
    v: &ast::Value,
    sort: TypeId,
) -> CheckResult<AssignedValue> {
    match v {
        ast::Value::Any => Ok(AssignedValue::Any),
        ast::Value::Term(t) => Ok(AssignedValue::Term(scope.term_of(t, sort)?)),
    }
}

/// Finds the largest `#n`.
fn find_largest_constant(system: &mut System, file: &File) -> CheckResult<()> {
    let mut most = 0;
    let mut see = |p: Proc| {
        if let Proc::Fixed(n) = p {
            most = most.max(n);
        }
        p
    };
    let cubes = system
        .init
        .dnf
        .iter_mut()
        .chain(system.invariants.iter_mut().chain(&mut system.unsafes).map(|c| &mut c.cube));
    for atom in cubes.flatten() {
        atom.map_procs(&mut see);
    }
    for t in &mut system.transitions {
        // Its memory may be accessed by writes alone, which do not name it.
        if let Some(actor) = t.actor {
            see(actor);
        }
        t.guard.iter_mut().for_each(|a| a.map_procs(&mut see));
        t.universal.iter_mut().for_each(|u: &mut Universal| u.map_procs(&mut see));
        t.updates.iter_mut().for_each(|u| u.map_procs(&mut see));
    }
    system.fixed = most;
    if let Some(n) = system.processes.filter(|n| *n < most) {
        let place = file
            .items
            .iter()
            .find_map(|i| if let Item::Processes(_, p) = i { Some(p.0) } else { None })
            .unwrap_or_default();
        return refuse(
            place,
            format!(
                "the file names process #{most}, expected at least {most} processes, found {n}"
            ),
        );
    }
    Ok(())
}
