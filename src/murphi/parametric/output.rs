//! The system as a syntax tree.

use super::path::{Cell, Literal, Path, Process, Universal, Value};
use super::symbols::{capital, unique, values};
use super::{Failure, Result, Step, Translation, Translator};
use crate::typed::TypeId;
use mu_base::source::Place;
use mu_base::{Diagnostic, Span, narrow};
use mu_cubicle::ast::{
    Cmp, DeclarationKind, File, Formula, Item, Name, QuantifierKind, Right, Term, Update,
    Value as Stored,
};
use mu_cubicle::parse::is_keyword;
use std::collections::{BTreeMap, BTreeSet};

/// Type of the system.
pub(super) struct Sort {
    name: String,
    /// Names of its values.
    pub values: BTreeMap<i64, String>,
    /// Name of its value for *undefined*, if a symbol may have it.
    pub undefined: Option<String>,
}

/// Names of the system.
pub(super) struct Names {
    /// Types, by their values in the model.
    sorts: BTreeMap<Vec<(i64, u64)>, Sort>,
    /// Symbols that are true if the one of the same number is defined, for elements of the
    /// scalarset.
    pub known: BTreeMap<u32, String>,
    /// The symbol that is true after a failure of a transition.
    pub failed: String,
    /// The symbol that is true after the choice of a start state, if it has parameters.
    pub started: Option<String>,
}

impl Translator<'_> {
    /// Returns the system, with the parts of a state that its symbols contain.
    pub(super) fn file(mut self) -> Result<Translation> {
        let names = self.names()?;
        let mut items = self.declarations(&names);
        let (bound, mut starts) = self.init(&names)?;
        let (mut claims, mut failing) = (Vec::new(), Vec::new());
        for Failure { mut path, span } in std::mem::take(&mut self.failures) {
            path.writes.clear();
            path.locals.clear();
            path.unknown.clear();
            path.places.clear();
            let all = if path.universals.is_empty() { &mut claims } else { &mut failing };
            if !all.iter().any(|f: &Failure| f.path == path) {
                all.push(Failure { path, span });
            }
        }
        let has_failed = !failing.is_empty();
        let nowhere = Span::default();
        for flag in names.started.iter().chain(has_failed.then_some(&names.failed)) {
            items.push(symbol(flag, 0, "bool", nowhere));
        }
        if let Some(started) = &names.started {
            starts = is(started, false);
        }
        if has_failed {
            starts = conjunction(vec![starts, is(&names.failed, false)]);
        }
        let start = self.model.starts.first().map_or(nowhere, |s| s.span);
        items.push(Item::Init(bound, starts, Place(start)));
        for Failure { path, span } in &claims {
            let formula = self.guard(&names, path, true)?;
            items.push(Item::Unsafe(parameters(path, *span), formula, Place(*span)));
        }
        if has_failed {
            items.push(Item::Unsafe(Vec::new(), is(&names.failed, true), Place::default()));
        }
        if claims.is_empty() && !has_failed {
            let never = Formula::Constant(false, Place::default());
            items.push(Item::Unsafe(Vec::new(), never, Place::default()));
        }
        for Failure { path, span } in &failing {
            let update = assign(&names.failed, true, *span);
            items.push(self.transition(&names, "failure", *span, path, vec![update])?);
        }
        if let Some(started) = &names.started {
            self.is_start = true;
            for path in self.starts.clone() {
                let mut updates = vec![assign(started, true, start)];
                for symbol in 0..narrow::index(self.symbols.all.len()) {
                    self.cases(&names, symbol, &path, start, &mut updates)?;
                }
                items.push(self.transition(&names, "start", start, &path, updates)?);
            }
            self.is_start = false;
        }
        for Step { name, span, path } in std::mem::take(&mut self.steps) {
            let updates = self.updates(&names, &path, span)?;
            if !updates.is_empty() {
                items.push(self.transition(&names, &name, span, &path, updates)?);
            }
        }
        let correspondence = self.correspondence(&names, has_failed)?;
        Ok(Translation { file: File { items, end: Place::default() }, correspondence })
    }
    /// Chooses the names of types and values.
    fn names(&self) -> Result<Names> {
        let mut used = self.symbols.names();
        let mut types: BTreeSet<String> =
            ["proc", "bool", "int", "real"].iter().map(ToString::to_string).collect();
        let mut known = BTreeMap::new();
        let mut sorts: BTreeMap<_, Sort> = BTreeMap::new();
        for (number, symbol) in self.symbols.all.iter().enumerate() {
            let number: u32 = narrow::index(number);
            let is_undefined = self.undefined.contains(&number);
            if symbol.ty == self.node {
                if is_undefined {
                    known.insert(number, unique(&mut used, format!("{}_known", symbol.name)));
                }
                continue;
            }
            let model = &self.model.types;
            let parts = model.parts(symbol.ty);
            let parts = parts.ok_or_else(|| Diagnostic::internal("a type without values"))?;
            let text = capital(&model.text(symbol.ty));
            if !sorts.contains_key(&parts) {
                let mut name = text.to_ascii_lowercase();
                if is_keyword(&name) || name.starts_with("word") {
                    name = format!("t_{name}");
                }
                let mut all = BTreeMap::new();
                for value in values(model, symbol.ty, self.node, symbol.span)? {
                    let of = model.value_text(symbol.ty, value).replace('-', "m");
                    let of = capital(&format!("{text}_{of}"));
                    all.insert(value, unique(&mut used, of));
                }
                let sort = Sort { name: unique(&mut types, name), values: all, undefined: None };
                sorts.insert(parts.clone(), sort);
            }
            if is_undefined
                && let Some(sort) = sorts.get_mut(&parts)
                && sort.undefined.is_none()
            {
                sort.undefined = Some(unique(&mut used, format!("{text}_undefined")));
            }
        }
        let failed = unique(&mut used, "Failed".into());
        let has_choice = |p: &Path| p.parameters > 0 || !p.literals.is_empty();
        let started = self.starts.iter().any(has_choice);
        let started = started.then(|| unique(&mut used, "Started".into()));
        Ok(Names { sorts, known, failed, started })
    }
    fn declarations(&self, names: &Names) -> Vec<Item> {
        let types = names.sorts.values().map(|sort| {
            let all = sort.values.values().chain(&sort.undefined);
            let all = all.map(|text| name(text, Span::default())).collect();
            Item::Type(name(&sort.name, Span::default()), all)
        });
        let mut items: Vec<Item> = types.collect();
        for (number, of) in self.symbols.all.iter().enumerate() {
            let sort = self.sort(names, of.ty).map_or("proc", |s| s.name.as_str());
            items.push(symbol(&of.name, of.arity, sort, of.span));
            let number: u32 = narrow::index(number);
            if let Some(known) = names.known.get(&number) {
                items.push(symbol(known, of.arity, "bool", of.span));
            }
        }
        items
    }
    pub(super) fn sort<'n>(&self, names: &'n Names, ty: TypeId) -> Option<&'n Sort> {
        names.sorts.get(&self.model.types.parts(ty)?).filter(|_| ty != self.node)
    }
    /// Returns a condition on the content of a cell.
    fn content_condition(
        &self,
        names: &Names,
        cell: &Cell,
        value: &Value,
        is: bool,
        span: Span,
    ) -> Result<Formula> {
        let sign = |is: bool| if is { Cmp::Eq } else { Cmp::Neq };
        if let (Value::Undefined, Some(known)) = (value, names.known.get(&cell.symbol)) {
            let known = access(known, &cell.args, span);
            let truth = Term::Name(name(if is { "False" } else { "True" }, span));
            return Ok(Formula::Compare(known, Cmp::Eq, truth));
        }
        let left = self.cell_term(cell, span);
        Ok(Formula::Compare(left, sign(is), self.term(names, cell.symbol, value, span)?))
    }
    fn cell_term(&self, cell: &Cell, span: Span) -> Term {
        access(&self.symbols.all[cell.symbol as usize].name, &cell.args, span)
    }
    /// Returns a value of a symbol as a term.
    fn term(&self, names: &Names, symbol: u32, value: &Value, span: Span) -> Result<Term> {
        let missing = || Diagnostic::internal("a value that a type has not");
        let sort = self.sort(names, self.symbols.all[symbol as usize].ty);
        Ok(match value {
            Value::Cell(cell) => self.cell_term(cell, span),
            Value::Process(p) => Term::Name(process(*p, span)),
            Value::Undefined => {
                let undefined = sort.and_then(|s| s.undefined.as_ref());
                Term::Name(name(undefined.ok_or_else(missing)?, span))
            }
            Value::Constant(number) => {
                let value = sort.and_then(|s| s.values.get(number));
                Term::Name(name(value.ok_or_else(missing)?, span))
            }
        })
    }
    fn literal(&self, names: &Names, literal: &Literal, span: Span) -> Result<Formula> {
        match literal {
            Literal::Is(cell, value, is) => self.content_condition(names, cell, value, *is, span),
            Literal::Same(a, b, is) => {
                let (a, b) = (Term::Name(process(*a, span)), Term::Name(process(*b, span)));
                Ok(Formula::Compare(a, if *is { Cmp::Eq } else { Cmp::Neq }, b))
            }
        }
    }
    fn cube(&self, names: &Names, cube: &[Literal], span: Span) -> Result<Formula> {
        let all = cube.iter().map(|l| self.literal(names, l, span));
        Ok(conjunction(all.collect::<Result<_>>()?))
    }
    /// Returns the conditions of a path, after or at the choice of a start state.
    fn guard(&self, names: &Names, path: &Path, has_started: bool) -> Result<Formula> {
        let span = Span::default();
        let mut all: Vec<Formula> = names.started.iter().map(|f| is(f, has_started)).collect();
        for literal in &path.literals {
            all.push(self.literal(names, literal, span)?);
        }
        for Universal { bound, parameters, cubes } in &path.universals {
            let of = |map: &[(u32, Process)]| -> Result<Formula> {
                let one = |cube: &Vec<Literal>| {
                    let cube: Vec<Literal> = cube.iter().map(|l| l.substitute(map)).collect();
                    self.cube(names, &cube, span)
                };
                let mut all: Vec<Formula> = cubes.iter().map(one).collect::<Result<_>>()?;
                Ok(match all.len() {
                    0 => Formula::Constant(false, Place::default()),
                    1 => all.remove(0),
                    _ => Formula::Or(all),
                })
            };
            for later in *parameters..path.parameters {
                all.push(of(&[(*bound, Process::Parameter(later))])?);
            }
            let kind = QuantifierKind { all: true, other: true };
            let variable = process(Process::Bound(*bound), span);
            all.push(Formula::Quantified(kind, vec![variable], Box::new(of(&[])?)));
        }
        Ok(conjunction(all))
    }
    fn transition(
        &self,
        names: &Names,
        of: &str,
        span: Span,
        path: &Path,
        updates: Vec<Update>,
    ) -> Result<Item> {
        let mut text = capital(of).to_ascii_lowercase();
        if is_keyword(&text) {
            text.push('_');
        }
        let requires = match self.guard(names, path, !self.is_start)? {
            Formula::Constant(true, _) => None,
            formula => Some(formula),
        };
        let params = parameters(path, span).into_iter().map(|p| (p, false)).collect();
        Ok(Item::Transition { name: name(&text, span), params, requires, updates })
    }
    /// Returns bound processes, as many as a symbol has indices.
    pub(super) fn bound_indices(&mut self, symbol: u32) -> Vec<Process> {
        let arity: u32 = narrow::index(self.symbols.all[symbol as usize].arity);
        self.bound = self.bound.max(arity);
        (self.bound..self.bound + arity).map(Process::Bound).collect()
    }
    /// Returns the initial states, with their bound processes.
    fn init(&mut self, names: &Names) -> Result<(Vec<Name>, Formula)> {
        if names.started.is_some() {
            return Ok((Vec::new(), Formula::Constant(true, Place::default())));
        }
        self.is_start = true;
        let (mut all, mut most) = (Vec::new(), Vec::new());
        for path in self.starts.clone() {
            let mut parts = Vec::new();
            for symbol in 0..narrow::index(self.symbols.all.len()) {
                let args = self.bound_indices(symbol);
                if args.len() > most.len() {
                    most.clone_from(&args);
                }
                let cell = Cell { symbol, args };
                let mut cases = Vec::new();
                let writes = path.writes.len();
                for (end, value) in self.content_before(path.clone(), &cell, writes)? {
                    let span = self.symbols.all[symbol as usize].span;
                    let mut case = vec![self.cube(names, &end.literals, span)?];
                    let has_value = value != Value::Undefined;
                    if let Some(known) = names.known.get(&symbol) {
                        let truth = name(if has_value { "True" } else { "False" }, span);
                        let known = access(known, &cell.args, span);
                        case.push(Formula::Compare(known, Cmp::Eq, Term::Name(truth)));
                    }
                    if has_value || !names.known.contains_key(&symbol) {
                        case.push(self.content_condition(names, &cell, &value, true, span)?);
                    }
                    cases.push(conjunction(case));
                }
                parts.push(match cases.len() {
                    1 => cases.remove(0),
                    _ => Formula::Or(cases),
                });
            }
            all.push(conjunction(parts));
        }
        self.is_start = false;
        let bound = most.into_iter().map(|p| process(p, Span::default())).collect();
        let formula = match all.len() {
            0 => Formula::Constant(false, Place::default()),
            1 => all.remove(0),
            _ => Formula::Or(all),
        };
        Ok((bound, formula))
    }
    /// Returns the writes of a path as updates.
    fn updates(&mut self, names: &Names, path: &Path, span: Span) -> Result<Vec<Update>> {
        let symbols: BTreeSet<u32> = path.writes.iter().map(|w| w.symbol).collect();
        let mut out = Vec::new();
        for symbol in symbols {
            let own = || path.writes.iter().filter(|w| w.symbol == symbol);
            let is_point = |w: &super::path::Write| {
                w.bound.is_empty()
                    && w.args.iter().all(|a| matches!(a, Process::Parameter(_)))
                    && matches!(w.cases[..], [(ref c, Some(_))] if c.is_empty())
            };
            if own().all(is_point) {
                let mut last: BTreeMap<Vec<Process>, Value> = BTreeMap::new();
                for write in own() {
                    let value = write.cases.first().and_then(|c| c.1.clone());
                    last.insert(write.args.clone(), value.unwrap_or(Value::Undefined));
                }
                for (args, value) in last {
                    let cell = Cell { symbol, args };
                    if value != Value::Cell(cell.clone()) {
                        self.assignment(names, &cell, &value, span, &mut out)?;
                    }
                }
                continue;
            }
            self.cases(names, symbol, path, span, &mut out)?;
        }
        Ok(out)
    }
    /// Adds the assignment of a cell.
    fn assignment(
        &self,
        names: &Names,
        cell: &Cell,
        value: &Value,
        span: Span,
        out: &mut Vec<Update>,
    ) -> Result<()> {
        let args: Vec<Name> = cell.args.iter().map(|a| process(*a, span)).collect();
        let mut add = |of: &str, term: Term| {
            let right = Right::Value(Stored::Term(term));
            out.push(Update { by: None, name: name(of, span), args: args.clone(), right });
        };
        let is_undefined = *value == Value::Undefined;
        if let Some(known) = names.known.get(&cell.symbol) {
            add(known, Term::Name(name(if is_undefined { "False" } else { "True" }, span)));
            if is_undefined {
                return Ok(());
            }
        }
        let of = &self.symbols.all[cell.symbol as usize].name;
        add(of, self.term(names, cell.symbol, value, span)?);
        Ok(())
    }
    /// Adds the update of all cells of a symbol.
    fn cases(
        &mut self,
        names: &Names,
        symbol: u32,
        path: &Path,
        span: Span,
        out: &mut Vec<Update>,
    ) -> Result<()> {
        let cell = Cell { symbol, args: self.bound_indices(symbol) };
        let ends = self.content_before(path.clone(), &cell, path.writes.len())?;
        let args: Vec<Name> = cell.args.iter().map(|a| process(*a, span)).collect();
        let (mut contents, mut knowns) = (Vec::new(), Vec::new());
        for (end, value) in ends {
            let news = end.literals.iter().filter(|l| !path.literals.contains(l));
            let news: Vec<Literal> = news.cloned().collect();
            let own = Value::Cell(cell.clone());
            if value == own {
                continue;
            }
            let condition = match news.is_empty() {
                true => None,
                false => Some(self.cube(names, &news, span)?),
            };
            if names.known.contains_key(&symbol) {
                let has_value = value != Value::Undefined;
                let truth = Term::Name(name(if has_value { "True" } else { "False" }, span));
                knowns.push((condition.clone(), Stored::Term(truth)));
                if !has_value {
                    continue;
                }
            }
            contents.push((condition, Stored::Term(self.term(names, symbol, &value, span)?)));
        }
        let mut add = |of: &str, cases: Vec<(Option<Formula>, Stored)>| {
            if !cases.is_empty() {
                let right = Right::Cases(cases);
                out.push(Update { by: None, name: name(of, span), args: args.clone(), right });
            }
        };
        if let Some(known) = names.known.get(&symbol) {
            add(known, knowns);
        }
        let of = self.symbols.all[symbol as usize].name.clone();
        add(&of, contents);
        Ok(())
    }
}

fn name(text: &str, span: Span) -> Name {
    Name { text: text.into(), place: Place(span) }
}

/// Returns the condition that a flag has a value.
fn is(flag: &str, value: bool) -> Formula {
    let span = Span::default();
    let value = name(if value { "True" } else { "False" }, span);
    Formula::Compare(Term::Name(name(flag, span)), Cmp::Eq, Term::Name(value))
}

/// Returns the update of a flag.
fn assign(flag: &str, value: bool, span: Span) -> Update {
    let value = Term::Name(name(if value { "True" } else { "False" }, span));
    let right = Right::Value(Stored::Term(value));
    Update { by: None, name: name(flag, span), args: Vec::new(), right }
}

fn process(of: Process, span: Span) -> Name {
    match of {
        Process::Parameter(number) => name(&format!("p{}", number + 1), span),
        Process::Bound(number) => name(&format!("z{number}"), span),
    }
}

fn parameters(path: &Path, span: Span) -> Vec<Name> {
    (0..path.parameters).map(|p| process(Process::Parameter(p), span)).collect()
}

fn access(of: &str, args: &[Process], span: Span) -> Term {
    match args {
        [] => Term::Name(name(of, span)),
        _ => Term::Cell(name(of, span), args.iter().map(|a| process(*a, span)).collect()),
    }
}

fn symbol(of: &str, arity: usize, sort: &str, span: Span) -> Item {
    Item::Symbol {
        declared: DeclarationKind::Plain,
        name: name(of, span),
        indices: (0..arity).map(|_| name("proc", span)).collect(),
        sort: name(sort, span),
    }
}

/// Returns the conjunction of formulas.
fn conjunction(all: Vec<Formula>) -> Formula {
    let is_true = |f: &Formula| matches!(f, Formula::Constant(true, _));
    let mut parts = Vec::new();
    for formula in all.into_iter().filter(|f| !is_true(f)) {
        match formula {
            Formula::And(inner) => parts.extend(inner),
            formula => parts.push(formula),
        }
    }
    match parts.len() {
        0 => Formula::Constant(true, Place::default()),
        1 => parts.remove(0),
        _ => Formula::And(parts),
    }
}
