//! Type checker of specifications: syntax tree to [`ProcSpec`]. Names are resolved to actions,
//! process instances, variables and operations; overloads by the sorts of their arguments;
//! `P(x = e)` gets all its arguments.
//!
//! Declarations may come in any order. Invariant: in the result every argument has exactly the sort
//! of its parameter.

use super::spec::{NameSet, Proc, ProcDef, ProcKind, ProcSpec};
use crate::labels::ActionDecl;
use ahash::{AHashMap, AHashSet};
use mu_base::ids::{ActId, ProcId, SortId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{DataSpec, Expr, ExprKind};
use mu_data::sort::basic;
use mu_data::typecheck::{Checker, error, with_suggestions};
use mu_syntax::ast::{self, ProcessKind, Section};

/// Type checks a specification.
pub fn check_specification(specification: &ast::Specification) -> Result<ProcSpec, Diagnostic> {
    let sections = &specification.sections;
    let mut data = Checker::new(DataSpec::default());
    data.declare(sections)?;
    let mut actions = Actions::default();
    actions.declare(&mut data, sections)?;
    let globals = data.declare_globals(sections)?;
    let mut checker = Processes {
        data,
        actions,
        procs: Vec::new(),
        by_name: AHashMap::new(),
        own: None,
        warnings: Vec::new(),
    };
    let bodies = checker.declare(sections)?;
    let mut init = None;
    for section in sections {
        if let Section::Init(process) = section
            && init.replace(process).is_some()
        {
            return Err(error(
                process.span,
                "a second `init`: a specification has one initial process",
            ));
        }
    }
    // Global variables belong to processes; equations of the data specification cannot use them.
    let mut hidden = Vec::new();
    for &var in &globals {
        hidden.push((checker.data.data.signature.var(var).name.clone(), var));
    }
    checker.data.close_scope(0, "glob", Span::default());
    checker.data.check_equations(sections)?;
    for (name, var) in &hidden {
        checker.data.bind(name, *var);
    }
    let mut procs = Vec::with_capacity(bodies.len());
    for (i, equation) in bodies.into_iter().enumerate() {
        let Header { name, params, span } = checker.procs[i].clone();
        let mark = checker.data.open_scope();
        for (decl, var) in equation.params.iter().zip(&params) {
            checker.data.bind(&decl.name.kind, *var);
        }
        checker.own = Some(params.clone());
        let body = checker.process(&equation.body)?;
        checker.data.close_scope(mark, "proc", span);
        procs.push(ProcDef { name, params, body, span });
    }
    checker.own = None;
    let Some(init) = init else {
        return Err(Diagnostic::at(
            Stage::Type,
            specification.end.0,
            "the specification has no `init`",
        )
        .note("expected: init P;"));
    };
    let init = checker.process(init)?;
    let mut warnings = checker.warnings;
    let contradictions = mu_data::contradictions::contradictions(&checker.data.data);
    warnings.extend(contradictions.into_iter().map(|c| (c.span, c.text)));
    // An overloaded call is completed once for each candidate.
    warnings.sort_by_key(|w| (w.0.source, w.0.start));
    warnings.dedup();
    Ok(ProcSpec {
        data: checker.data.data,
        globals,
        actions: checker.actions.decls,
        procs,
        init,
        warnings,
    })
}

/// Declared actions by name.
#[derive(Default)]
pub struct Actions {
    /// The declarations.
    pub decls: Vec<ActionDecl>,
    by_name: AHashMap<String, Vec<ActId>>,
}

impl Actions {
    /// Creates the tables for actions that are declared already.
    pub fn new(decls: &[ActionDecl]) -> Self {
        let mut actions = Self::default();
        for decl in decls {
            actions.add(decl.clone());
        }
        actions
    }

    fn add(&mut self, decl: ActionDecl) {
        self.by_name.entry(decl.name.clone()).or_default().push(ActId::new(self.decls.len()));
        self.decls.push(decl);
    }

    /// Reads the `act` sections.
    pub fn declare(&mut self, data: &mut Checker, sections: &[Section]) -> Result<(), Diagnostic> {
        self.read(data, sections, false)
    }

    /// Reads the `act` sections of a formula file, which may repeat earlier declarations.
    pub fn extend(&mut self, data: &mut Checker, sections: &[Section]) -> Result<(), Diagnostic> {
        self.read(data, sections, true)
    }

    fn read(
        &mut self,
        data: &mut Checker,
        sections: &[Section],
        may_repeat: bool,
    ) -> Result<(), Diagnostic> {
        for section in sections {
            let Section::Actions(decls) = section else { continue };
            for (name, sorts) in decls {
                let sorts = sorts.iter().map(|s| data.sort(s)).collect::<Result<Vec<_>, _>>()?;
                if self.overloads(&name.kind).iter().any(|a| self.decls[a.index()].sorts == sorts) {
                    if may_repeat {
                        continue;
                    }
                    let text = data.parameters_text(&sorts);
                    return Err(error(
                        name.span,
                        format!("action `{}`{text} is declared twice", name.kind),
                    ));
                }
                self.add(ActionDecl { name: name.kind.clone(), sorts });
            }
        }
        Ok(())
    }

    /// Returns the actions of a name.
    pub fn overloads(&self, name: &str) -> &[ActId] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns an action with its typed arguments; the name must be declared.
    pub fn call(
        &self,
        data: &mut Checker,
        name: &ast::Ident,
        args: &[ast::Data],
        span: Span,
    ) -> Result<(ActId, Vec<Expr>), Diagnostic> {
        let overloads = self.overloads(&name.kind);
        if overloads.is_empty() {
            return Err(self.undeclared_error(name));
        }
        let candidates: Vec<Vec<SortId>> =
            overloads.iter().map(|a| self.decls[a.index()].sorts.clone()).collect();
        let (i, args) = data.check_call("action", &name.kind, span, args, &candidates)?;
        Ok((overloads[i], args))
    }

    /// Returns the error for an undeclared action.
    fn undeclared_error(&self, name: &ast::Ident) -> Diagnostic {
        let names = self.by_name.keys().map(String::as_str);
        with_suggestions(
            error(name.span, format!("action `{}` is not declared", name.kind)),
            &name.kind,
            names,
            "actions",
        )
    }

    fn check_name(&self, name: &ast::Ident) -> Result<(), Diagnostic> {
        if self.by_name.contains_key(&name.kind) {
            Ok(())
        } else {
            Err(self.undeclared_error(name))
        }
    }
}

/// Left-hand side of a process equation.
#[derive(Clone)]
struct Header {
    name: String,
    params: Vec<VarId>,
    span: Span,
}

/// Variables, weight of a `dist`, and body below a binder.
type BinderBody = (Vec<VarId>, Option<Expr>, Box<Proc>);

/// Type checker of process terms.
struct Processes {
    data: Checker,
    actions: Actions,
    procs: Vec<Header>,
    by_name: AHashMap<String, Vec<ProcId>>,
    /// Parameters of the equation under check; `None` in `init`.
    own: Option<Vec<VarId>>,
    /// See [`ProcSpec::warnings`].
    warnings: Vec<(Span, String)>,
}

impl Processes {
    /// Reads the left-hand sides of all process equations.
    fn declare<'a>(
        &mut self,
        sections: &'a [Section],
    ) -> Result<Vec<&'a ast::ProcessEquation>, Diagnostic> {
        let mut bodies = Vec::new();
        for section in sections {
            let Section::Processes(equations) = section else { continue };
            for equation in equations {
                let name = &equation.name;
                if !self.actions.overloads(&name.kind).is_empty() {
                    return Err(error(
                        name.span,
                        format!("`{}` is declared as an action and as a process", name.kind),
                    ));
                }
                let params = self.data.declare_vars(&equation.params)?;
                let id = ProcId::new(self.procs.len());
                let sorts = self.sorts_of(&params);
                for &other in self.by_name.get(&name.kind).map_or(&[][..], Vec::as_slice) {
                    if self.sorts_of(&self.procs[other.index()].params) == sorts {
                        let text = self.data.parameters_text(&sorts);
                        return Err(error(
                            name.span,
                            format!("process `{}`{text} is declared twice", name.kind),
                        ));
                    }
                }
                self.procs.push(Header { name: name.kind.clone(), params, span: name.span });
                self.by_name.entry(name.kind.clone()).or_default().push(id);
                bodies.push(equation);
            }
        }
        Ok(bodies)
    }

    fn sorts_of(&self, vars: &[VarId]) -> Vec<SortId> {
        vars.iter().map(|v| self.data.data.signature.var(*v).sort).collect()
    }

    fn overloads(&self, name: &str) -> Vec<ProcId> {
        self.by_name.get(name).cloned().unwrap_or_default()
    }

    fn process(&mut self, process: &ast::Process) -> Result<Proc, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || {
            let kind = self.process_kind(process)?;
            Ok(Proc { kind, span: process.span })
        })
    }

    fn boxed_process(&mut self, process: &ast::Process) -> Result<Box<Proc>, Diagnostic> {
        self.process(process).map(Box::new)
    }

    fn process_kind(&mut self, process: &ast::Process) -> Result<ProcKind, Diagnostic> {
        let span = process.span;
        Ok(match &process.kind {
            ProcessKind::Call { name, args, parens } => self.call(name, args, *parens, span)?,
            ProcessKind::CallAssign(name, assignments) => {
                self.call_with_assignments(name, assignments, span)?
            }
            ProcessKind::Delta => ProcKind::Delta,
            ProcessKind::Tau => ProcKind::Tau,
            ProcessKind::Choice(p, q) => {
                ProcKind::Choice(self.boxed_process(p)?, self.boxed_process(q)?)
            }
            ProcessKind::Seq(p, q) => ProcKind::Seq(self.boxed_process(p)?, self.boxed_process(q)?),
            ProcessKind::Parallel(p, q) => {
                ProcKind::Parallel(self.boxed_process(p)?, self.boxed_process(q)?)
            }
            ProcessKind::LeftMerge(p, q) => {
                ProcKind::LeftMerge(self.boxed_process(p)?, self.boxed_process(q)?)
            }
            ProcessKind::Sync(p, q) => {
                ProcKind::Sync(self.boxed_process(p)?, self.boxed_process(q)?)
            }
            ProcessKind::BoundedInit(p, q) => {
                ProcKind::BoundedInit(self.boxed_process(p)?, self.boxed_process(q)?)
            }
            ProcessKind::At(p, time) => {
                ProcKind::At(self.boxed_process(p)?, self.data.check(time, Some(basic::REAL))?)
            }
            ProcessKind::If(condition, p, q) => {
                let condition = self.data.check(condition, Some(basic::BOOL))?;
                let then = self.boxed_process(p)?;
                let otherwise = match q {
                    Some(q) => Some(self.boxed_process(q)?),
                    None => None,
                };
                ProcKind::If(condition, then, otherwise)
            }
            ProcessKind::Sum(decls, p) => {
                let (vars, _, body) = self.below(decls, None, p, "sum", span)?;
                ProcKind::Sum(vars, body)
            }
            ProcessKind::Dist(decls, weight, p) => {
                let (vars, weight, body) = self.below(decls, Some(weight), p, "dist", span)?;
                match weight {
                    Some(weight) => ProcKind::Dist(vars, weight, body),
                    None => ProcKind::Sum(vars, body),
                }
            }
            ProcessKind::Block(names, p) => {
                ProcKind::Block(self.names(names)?, self.boxed_process(p)?)
            }
            ProcessKind::Hide(names, p) => {
                ProcKind::Hide(self.names(names)?, self.boxed_process(p)?)
            }
            ProcessKind::Allow(sets, p) => {
                let sets = sets
                    .iter()
                    .map(|s| self.names(&s.kind))
                    .collect::<Result<Vec<NameSet>, _>>()?;
                ProcKind::Allow(sets, self.boxed_process(p)?)
            }
            ProcessKind::Rename(pairs, p) => {
                ProcKind::Rename(self.check_renaming(pairs)?, self.boxed_process(p)?)
            }
            ProcessKind::Comm(rules, p) => {
                ProcKind::Comm(self.communications(rules)?, self.boxed_process(p)?)
            }
        })
    }

    /// Checks a process below binders, with the weight of a `dist`.
    fn below(
        &mut self,
        decls: &[ast::VarDecl],
        weight: Option<&ast::Data>,
        process: &ast::Process,
        word: &'static str,
        span: Span,
    ) -> Result<BinderBody, Diagnostic> {
        let vars = self.data.declare_vars(decls)?;
        let mark = self.data.open_scope();
        for (decl, var) in decls.iter().zip(&vars) {
            self.data.bind(&decl.name.kind, *var);
        }
        let weight = match weight {
            Some(weight) => Some(self.data.check(weight, Some(basic::REAL))?),
            None => None,
        };
        let body = self.boxed_process(process)?;
        self.data.close_scope(mark, word, span);
        Ok((vars, weight, body))
    }

    /// Checks `x`, `x()`, `x(e, …)`.
    fn call(
        &mut self,
        name: &ast::Ident,
        args: &[ast::Data],
        parens: bool,
        span: Span,
    ) -> Result<ProcKind, Diagnostic> {
        let procs = self.overloads(&name.kind);
        if procs.is_empty() {
            if self.actions.overloads(&name.kind).is_empty() {
                return Err(self.unknown_name_error(name));
            }
            if parens && args.is_empty() {
                return Err(error(
                    span,
                    format!(
                        "action `{}` is written without parentheses if it has no arguments",
                        name.kind
                    ),
                ));
            }
            let (action, args) = self.actions.call(&mut self.data, name, args, span)?;
            return Ok(ProcKind::Action(action, args));
        }
        if parens && args.is_empty() {
            return self.call_with_assignments(name, &[], span);
        }
        let candidates: Vec<Vec<SortId>> =
            procs.iter().map(|p| self.sorts_of(&self.procs[p.index()].params)).collect();
        let (i, args) = self.data.check_call("process", &name.kind, span, args, &candidates)?;
        Ok(ProcKind::Call(procs[i], args))
    }

    /// Checks `P(x = e, …)`: the other parameters of P get the values of the equation's parameters
    /// of the same names.
    fn call_with_assignments(
        &mut self,
        name: &ast::Ident,
        assignments: &[(ast::Ident, ast::Data)],
        span: Span,
    ) -> Result<ProcKind, Diagnostic> {
        let procs = self.overloads(&name.kind);
        if procs.is_empty() {
            if self.actions.overloads(&name.kind).is_empty() {
                return Err(self.unknown_name_error(name));
            }
            return Err(error(
                span,
                format!("`{}` is an action; only a process has parameters to assign to", name.kind),
            ));
        }
        let mut seen = AHashSet::new();
        for (param, _) in assignments {
            if !seen.insert(&param.kind) {
                return Err(error(
                    param.span,
                    format!("parameter `{}` is assigned twice", param.kind),
                ));
            }
        }
        let mut found = None;
        let mut first_error = None;
        for proc in procs {
            match self.complete(name, proc, assignments, span) {
                Ok(_) if found.is_some() => {
                    return Err(error(
                        span,
                        format!(
                            "`{}` is ambiguous here: several processes of this name have these parameters",
                            name.kind
                        ),
                    ));
                }
                Ok(call) => found = Some(call),
                Err(e) => first_error = first_error.or(Some(e)),
            }
        }
        match (found, first_error) {
            (Some(call), _) => Ok(call),
            (None, Some(e)) => Err(e),
            (None, None) => Err(self.unknown_name_error(name)),
        }
    }

    fn complete(
        &mut self,
        name: &ast::Ident,
        proc: ProcId,
        assignments: &[(ast::Ident, ast::Data)],
        span: Span,
    ) -> Result<ProcKind, Diagnostic> {
        let params = self.procs[proc.index()].params.clone();
        let mut given: Vec<Option<Expr>> = vec![None; params.len()];
        for (param, value) in assignments {
            let signature = &self.data.data.signature;
            let Some(i) = params.iter().position(|p| signature.var(*p).name == param.kind) else {
                let names: Vec<&str> =
                    params.iter().map(|p| signature.var(*p).name.as_str()).collect();
                let diagnostic = error(
                    param.span,
                    format!("process `{}` has no parameter `{}`", name.kind, param.kind),
                );
                return Err(diagnostic.note(if names.is_empty() {
                    format!("`{}` has no parameters", name.kind)
                } else {
                    format!("its parameters are {}", names.join(", "))
                }));
            };
            let sort = signature.var(params[i]).sort;
            given[i] = Some(self.data.check(value, Some(sort))?);
        }
        let mut args = Vec::with_capacity(params.len());
        for (param, given) in params.iter().zip(given) {
            let signature = &self.data.data.signature;
            let wanted = signature.var(*param);
            let mut hidden = false;
            let value = given.or_else(|| {
                let same = |v: &VarId| {
                    signature.var(*v).name == wanted.name && signature.var(*v).sort == wanted.sort
                };
                let own = match &self.own {
                    Some(own) => {
                        let own = own.iter().copied().find(same)?;
                        hidden = self.data.lookup_var(&wanted.name) != Some(own);
                        own
                    }
                    // In `init` a global variable may take its place.
                    None => self.data.lookup_var(&wanted.name).filter(same)?,
                };
                Some(Expr::new(ExprKind::Var(own), wanted.sort, span))
            });
            let Some(value) = value else {
                let sort = signature.sorts.text(wanted.sort);
                return Err(error(span, format!("parameter `{}` of process `{}` has no value here", wanted.name, name.kind)).note(
                    format!(
                        "a parameter that is not assigned gets the value of the equation's own parameter {}: {sort}, which does not exist",
                        wanted.name
                    ),
                ));
            };
            if hidden {
                let (process, param) = (&name.kind, &wanted.name);
                let text = format!(
                    "`{process}` keeps the value of the parameter `{param}` here, not that of the bound variable `{param}` that hides it: \
                     `{process}({param} = {param})` takes the variable"
                );
                self.warnings.push((span, text));
            }
            args.push(value);
        }
        Ok(ProcKind::Call(proc, args))
    }

    fn unknown_name_error(&self, name: &ast::Ident) -> Diagnostic {
        let diagnostic = error(
            name.span,
            format!("`{}` is declared neither as an action nor as a process", name.kind),
        );
        with_suggestions(
            diagnostic,
            &name.kind,
            self.by_name.keys().chain(self.actions.by_name.keys()).map(String::as_str),
            "actions or processes",
        )
    }

    /// Returns the names of declared actions, sorted.
    fn names(&self, names: &[ast::Ident]) -> Result<Vec<String>, Diagnostic> {
        let mut out = Vec::with_capacity(names.len());
        for name in names {
            self.actions.check_name(name)?;
            out.push(name.kind.clone());
        }
        out.sort();
        Ok(out)
    }

    fn sorts_by_name(&self, name: &str) -> Vec<&[SortId]> {
        self.actions
            .overloads(name)
            .iter()
            .map(|a| self.actions.decls[a.index()].sorts.as_slice())
            .collect()
    }

    fn check_renaming(
        &self,
        pairs: &[(ast::Ident, ast::Ident)],
    ) -> Result<Vec<(String, String)>, Diagnostic> {
        let mut out: Vec<(String, String)> = Vec::with_capacity(pairs.len());
        for (from, to) in pairs {
            self.actions.check_name(from)?;
            self.actions.check_name(to)?;
            if out.iter().any(|p| p.0 == from.kind) {
                return Err(error(from.span, format!("action `{}` is renamed twice", from.kind)));
            }
            let targets = self.sorts_by_name(&to.kind);
            if !self.sorts_by_name(&from.kind).iter().any(|s| targets.contains(s)) {
                return Err(self.sorts_note(
                    error(
                        to.span,
                        format!(
                            "`{}` cannot be renamed to `{}`: their sorts differ",
                            from.kind, to.kind
                        ),
                    ),
                    &[from, to],
                ));
            }
            out.push((from.kind.clone(), to.kind.clone()));
        }
        Ok(out)
    }

    fn communications(
        &self,
        rules: &[(ast::ActionNames, Option<ast::Ident>)],
    ) -> Result<Vec<(NameSet, Option<String>)>, Diagnostic> {
        let mut out = Vec::with_capacity(rules.len());
        let mut used: AHashMap<&str, usize> = AHashMap::new();
        for (i, (names, result)) in rules.iter().enumerate() {
            let lhs = self.names(&names.kind)?;
            if lhs.len() < 2 {
                return Err(error(
                    names.span,
                    "a communication needs at least two actions to synchronise",
                ));
            }
            for name in &names.kind {
                if used.insert(&name.kind, i).is_some_and(|j| j != i) {
                    return Err(error(
                        name.span,
                        format!("action `{}` occurs on the left of two communications", name.kind),
                    ));
                }
            }
            let mut involved: Vec<&ast::Ident> = names.kind.iter().collect();
            if let Some(result) = result {
                self.actions.check_name(result)?;
                involved.push(result);
            }
            let common = self
                .sorts_by_name(&involved[0].kind)
                .into_iter()
                .any(|s| involved.iter().all(|n| self.sorts_by_name(&n.kind).contains(&s)));
            if !common {
                return Err(self.sorts_note(
                    error(names.span, "the actions of this communication have no sorts in common"),
                    &involved,
                ));
            }
            out.push((lhs, result.as_ref().map(|r| r.kind.clone())));
        }
        for (i, (_, result)) in rules.iter().enumerate() {
            if let Some(result) = result
                && used.get(result.kind.as_str()).is_some_and(|j| *j != i)
            {
                return Err(error(
                    result.span,
                    format!(
                        "`{}` results from a communication and takes part in another",
                        result.kind
                    ),
                ));
            }
        }
        Ok(out)
    }

    fn sorts_note(&self, mut diagnostic: Diagnostic, names: &[&ast::Ident]) -> Diagnostic {
        for name in names {
            for sorts in self.sorts_by_name(&name.kind) {
                diagnostic =
                    diagnostic.note(format!("{}{}", name.kind, self.data.parameters_text(sorts)));
            }
        }
        diagnostic
    }
}
