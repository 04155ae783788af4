//! Type checking of formulas: syntax tree -> [`TypedFormula`], over the data and the actions of a
//! model and the declarations of the formula file. Names become actions, data variables and
//! fixed-point variables; every binder creates fresh variables.
//!
//! Quantitative operators (`inf`, `sup`, `sum`, `+`, `*`, `-`, numbers in `val`) belong to
//! [`crate::real`], and are rejected by name here, as is time (`delay`, `yaled`, `@`). Cost: linear
//! in the formula, as for data expressions. Invariant: the model's ids of sorts, operations and
//! actions are preserved.

use super::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};
use ahash::AHashMap;
use mu_base::ids::{ActId, FixId, SortId, VarId};
use mu_base::similar::similar_names;
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{Binder, DataSpec, Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::basic;
use mu_data::typecheck::{Checker, error, with_suggestions};
use mu_process::labels::ActionDecl;
use mu_process::typecheck::Actions;
use mu_syntax::ast::{
    self, ActionFormulaKind, BinaryOp, DataKind, Quantifier, RegularKind, Section,
    StateFormulaKind, StateOp, UnaryOp,
};

/// Type checks a formula file. `data` and `actions` are the model's; the result extends copies of
/// them.
pub fn check_formula(
    file: &ast::FormulaFile,
    data: &DataSpec,
    actions: &[ActionDecl],
) -> Result<TypedFormula, Diagnostic> {
    let mut checker = formula_checker(file, data, actions)?;
    let formula = checker.state(&file.formula)?;
    let fix_names = checker.fixes.into_iter().map(|f| f.name).collect();
    Ok(TypedFormula {
        data: checker.data.data,
        actions: checker.actions.decls,
        fix_names,
        formula,
        as_written: false,
    })
}

/// Type checks a formula file over labels without declarations, with data and actions inferred from
/// their texts. A multi-action that no label can match is `false`, with a warning at its position;
/// other errors stay errors.
pub fn check_over_labels(
    file: &ast::FormulaFile,
    data: &DataSpec,
    actions: &[ActionDecl],
) -> Result<(TypedFormula, Vec<(Span, String)>), Diagnostic> {
    let mut checker = formula_checker(file, data, actions)?;
    checker.unmatched = Some(Vec::new());
    let formula = checker.state(&file.formula)?;
    let warnings = checker.unmatched.take().unwrap_or_default();
    let fix_names = checker.fixes.into_iter().map(|f| f.name).collect();
    Ok((
        TypedFormula {
            data: checker.data.data,
            actions: checker.actions.decls,
            fix_names,
            formula,
            as_written: false,
        },
        warnings,
    ))
}

/// Creates a checker with the declarations of a formula file in addition to the model's.
pub(crate) fn formula_checker(
    file: &ast::FormulaFile,
    data: &DataSpec,
    actions: &[ActionDecl],
) -> Result<Formulas, Diagnostic> {
    let mut data = Checker::new(data.clone());
    let mut actions = Actions::new(actions);
    data.allow_repeats();
    data.declare(&file.sections)?;
    actions.extend(&mut data, &file.sections)?;
    for section in &file.sections {
        let (word, span) = match section {
            Section::Globals(decls) => ("glob", decls.first().map(|d| d.name.span)),
            Section::Processes(equations) => ("proc", equations.first().map(|e| e.name.span)),
            Section::Init(process) => ("init", Some(process.span)),
            _ => continue,
        };
        return Err(error(
            span.unwrap_or_default(),
            format!("a formula file cannot have a section `{word}`"),
        ));
    }
    data.check_equations(&file.sections)?;
    Ok(Formulas {
        data,
        actions,
        fixes: Vec::new(),
        scope: Vec::new(),
        closed: AHashMap::new(),
        unmatched: None,
    })
}

/// A fixed-point variable.
pub(crate) struct Fix {
    name: String,
    sorts: Vec<SortId>,
}

pub(crate) struct Formulas {
    pub(crate) data: Checker,
    pub(crate) actions: Actions,
    /// All fixed-point variables by id.
    fixes: Vec<Fix>,
    /// The variables in scope, innermost last.
    pub(crate) scope: Vec<FixId>,
    /// By name: end of the scope of a fixed-point variable.
    closed: AHashMap<String, Span>,
    /// Multi-actions that no label can match, if actions are inferred from labels; `None` if they
    /// are declared.
    unmatched: Option<Vec<(Span, String)>>,
}

impl Formulas {
    fn state(&mut self, formula: &ast::StateFormula) -> Result<TypedStateFormula, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || {
            let kind = self.state_kind(formula)?;
            Ok(TypedStateFormula { kind, span: formula.span })
        })
    }

    fn boxed_formula(
        &mut self,
        formula: &ast::StateFormula,
    ) -> Result<Box<TypedStateFormula>, Diagnostic> {
        self.state(formula).map(Box::new)
    }

    fn state_kind(&mut self, formula: &ast::StateFormula) -> Result<StateKind, Diagnostic> {
        let span = formula.span;
        Ok(match &formula.kind {
            StateFormulaKind::True => StateKind::True,
            StateFormulaKind::False => StateKind::False,
            StateFormulaKind::Val(e) => StateKind::Val(self.value(e)?),
            StateFormulaKind::Var(name, args) => self.variable(name, args, span)?,
            StateFormulaKind::Not(f) => StateKind::Not(self.boxed_formula(f)?),
            StateFormulaKind::Minus(_) => return Err(quantitative("-", span)),
            StateFormulaKind::Binary(op, f, g) => match op {
                StateOp::Implies => {
                    StateKind::Implies(self.boxed_formula(f)?, self.boxed_formula(g)?)
                }
                StateOp::Or => StateKind::Or(self.boxed_formula(f)?, self.boxed_formula(g)?),
                StateOp::And => StateKind::And(self.boxed_formula(f)?, self.boxed_formula(g)?),
                StateOp::Add => return Err(quantitative("+", span)),
                StateOp::Multiply => return Err(quantitative("*", span)),
            },
            StateFormulaKind::Quantified(quantifier, decls, f) => {
                let word = quantifier_word(*quantifier, span)?;
                let (vars, body) =
                    self.below(decls, word, span, |checker| checker.boxed_formula(f))?;
                let forall = *quantifier == Quantifier::Forall;
                match test(&body, &mut self.data.data.signature) {
                    Some(e) => {
                        let binder = if forall { Binder::Forall } else { Binder::Exists };
                        StateKind::Val(Expr::new(
                            ExprKind::Bind(binder, vars, e),
                            basic::BOOL,
                            span,
                        ))
                    }
                    None if forall => StateKind::Forall(vars, body),
                    None => StateKind::Exists(vars, body),
                }
            }
            StateFormulaKind::Must(r, f) => {
                StateKind::Must(Box::new(self.regular(r)?), self.boxed_formula(f)?)
            }
            StateFormulaKind::May(r, f) => {
                StateKind::May(Box::new(self.regular(r)?), self.boxed_formula(f)?)
            }
            StateFormulaKind::Fix { least, name, params, body } => {
                self.fixed_point(*least, name, params, body, span)?
            }
            StateFormulaKind::Delay(_) => return Err(timed_error("delay", span)),
            StateFormulaKind::Yaled(_) => return Err(timed_error("yaled", span)),
        })
    }

    /// Checks a Bool in `val`; a number there belongs to quantitative formulas.
    fn value(&mut self, data: &ast::Data) -> Result<Expr, Diagnostic> {
        self.data.check(data, Some(basic::BOOL)).map_err(|e| {
            match self.data.check(data, Some(basic::REAL)) {
                Ok(_) => unsupported_error(
                    data.span,
                    "`val` of a number belongs to quantitative formulas, which are not supported"
                        .into(),
                ),
                Err(_) => e,
            }
        })
    }

    /// Declares a fixed-point variable, in scope until [`Self::close_fix`].
    pub(crate) fn declare_fix(&mut self, name: String, sorts: Vec<SortId>) -> FixId {
        let var = FixId::new(self.fixes.len());
        self.fixes.push(Fix { name, sorts });
        self.scope.push(var);
        var
    }

    pub(crate) fn close_fix(&mut self, name: String, span: Span) {
        self.scope.pop();
        self.closed.insert(name, span);
    }

    pub(crate) fn variable(
        &mut self,
        name: &ast::Ident,
        args: &[ast::Data],
        span: Span,
    ) -> Result<StateKind, Diagnostic> {
        let found =
            self.scope.iter().rev().copied().find(|f| self.fixes[f.index()].name == name.kind);
        if let Some(fix) = found {
            let sorts = self.fixes[fix.index()].sorts.clone();
            let (_, args) =
                self.data.check_call("fixed-point variable", &name.kind, span, args, &[sorts])?;
            return Ok(StateKind::Var(fix, args));
        }
        let mut diagnostic =
            error(name.span, format!("fixed-point variable `{}` is not declared", name.kind));
        if let Some(closed) = self.closed.get(&name.kind) {
            diagnostic = scope_ended(diagnostic, &name.kind, "fixed point", *closed, name.span);
        }
        if !self.actions.overloads(&name.kind).is_empty() {
            diagnostic = diagnostic
                .note(format!("`{0}` is an action: `<{0}>true` says that it is possible, `[{0}]false` that it is not", name.kind));
        } else if self.data.is_name(&name.kind) {
            diagnostic = diagnostic.note(format!(
                "`{0}` is data: a Bool is written `val({0})` in a formula",
                name.kind
            ));
        }
        if name.kind == "nil" {
            diagnostic = diagnostic.note("the formula that holds nowhere is `false`");
        }
        let names = self.scope.iter().map(|f| self.fixes[f.index()].name.as_str());
        let constants = similar_names(&name.kind, ["true", "false"]);
        let names = names.chain(constants);
        Err(with_suggestions(diagnostic, &name.kind, names, "fixed-point variables"))
    }

    fn fixed_point(
        &mut self,
        least: bool,
        name: &ast::Ident,
        params: &[(ast::VarDecl, ast::Data)],
        body: &ast::StateFormula,
        span: Span,
    ) -> Result<StateKind, Diagnostic> {
        let decls: Vec<ast::VarDecl> = params.iter().map(|p| p.0.clone()).collect();
        let vars = self.data.declare_vars(&decls)?;
        let sorts: Vec<SortId> =
            vars.iter().map(|v| self.data.data.signature.var(*v).sort).collect();
        let mut typed = Vec::with_capacity(params.len());
        for (((_, value), var), sort) in params.iter().zip(&vars).zip(&sorts) {
            typed.push((*var, self.data.check(value, Some(*sort))?));
        }
        let var = self.declare_fix(name.kind.clone(), sorts);
        let mark = self.data.open_scope();
        for (decl, var) in decls.iter().zip(&vars) {
            self.data.bind(&decl.name.kind, *var);
        }
        let body = self.boxed_formula(body)?;
        self.data.close_scope(mark, if least { "mu" } else { "nu" }, span);
        self.close_fix(name.kind.clone(), span);
        Ok(StateKind::Fix { least, var, params: typed, body })
    }

    /// Checks a part below a quantifier.
    fn below<T>(
        &mut self,
        decls: &[ast::VarDecl],
        word: &'static str,
        span: Span,
        body: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<(Vec<VarId>, T), Diagnostic> {
        let vars = self.data.declare_vars(decls)?;
        let mark = self.data.open_scope();
        for (decl, var) in decls.iter().zip(&vars) {
            self.data.bind(&decl.name.kind, *var);
        }
        let body = body(self)?;
        self.data.close_scope(mark, word, span);
        Ok((vars, body))
    }

    pub(crate) fn regular(&mut self, formula: &ast::RegularFormula) -> Result<Regular, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || {
            Ok(match &formula.kind {
                RegularKind::Action(a) => Regular::Action(self.action(a)?),
                RegularKind::Seq(r, s) => {
                    Regular::Seq(Box::new(self.regular(r)?), Box::new(self.regular(s)?))
                }
                RegularKind::Alt(r, s) => {
                    Regular::Alt(Box::new(self.regular(r)?), Box::new(self.regular(s)?))
                }
                RegularKind::Star(r) => Regular::Star(Box::new(self.regular(r)?)),
                RegularKind::Plus(r) => Regular::Plus(Box::new(self.regular(r)?)),
            })
        })
    }

    fn action(&mut self, formula: &ast::ActionFormula) -> Result<Action, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || {
            let (span, outer) = (formula.span, self.data.open_scope());
            Ok(match &formula.kind {
                ActionFormulaKind::True => Action::True,
                ActionFormulaKind::False => Action::False,
                ActionFormulaKind::Val(e) => Action::Val(self.value(e)?),
                ActionFormulaKind::MultiAction(actions) => match self.multi_action(actions) {
                    Ok(typed) => Action::Multi(typed),
                    Err(error) => {
                        // The error may be below a binder.
                        self.data.close_scope(outer, "lambda", span);
                        let named = self.named_arguments(actions, outer == 0);
                        if let Some(Ok(typed)) = named.map(|named| self.multi_action(&named)) {
                            return Ok(Action::Multi(typed));
                        }
                        let reason = self.without_label(actions, &error);
                        let (Some(unmatched), Some(reason)) = (&mut self.unmatched, reason) else {
                            return Err(error);
                        };
                        unmatched.push((span, reason));
                        Action::False
                    }
                },
                ActionFormulaKind::Not(a) => Action::Not(Box::new(self.action(a)?)),
                ActionFormulaKind::Binary(op, a, b) => {
                    let make = match op {
                        StateOp::Implies => Action::Implies,
                        StateOp::Or => Action::Or,
                        StateOp::And => Action::And,
                        StateOp::Add => return Err(quantitative("+", span)),
                        StateOp::Multiply => return Err(quantitative("*", span)),
                    };
                    make(Box::new(self.action(a)?), Box::new(self.action(b)?))
                }
                ActionFormulaKind::Quantified(quantifier, decls, a) => {
                    let word = quantifier_word(*quantifier, span)?;
                    let (vars, body) =
                        self.below(decls, word, span, |checker| checker.action(a).map(Box::new))?;
                    if *quantifier == Quantifier::Forall {
                        Action::Forall(vars, body)
                    } else {
                        Action::Exists(vars, body)
                    }
                }
                ActionFormulaKind::At(..) => return Err(timed_error("@", span)),
            })
        })
    }

    /// Returns the actions with each argument that is the text of an argument of a label as the
    /// name of that one. Inferred labels have a constant for each text that has no other value.
    /// `None` if there is none. `closed`: no variable of the formula is in scope, so any expression
    /// may be such a text.
    fn named_arguments(
        &self,
        actions: &[(ast::Ident, Vec<ast::Data>)],
        closed: bool,
    ) -> Option<Vec<(ast::Ident, Vec<ast::Data>)>> {
        self.unmatched.as_ref()?;
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        let constants: AHashMap<String, &str> = (self.data.data.signature.ops())
            .filter(|(_, op)| matches!(op.kind, OpKind::Constructor(_)))
            .map(|(_, op)| (plain(&op.name), op.name.as_str()))
            .collect();
        let mut found = false;
        let mut actions = actions.to_vec();
        for arg in actions.iter_mut().flat_map(|(_, args)| args) {
            let text = plain(&mu_syntax::print::data(arg));
            let denotes = closed || is_value(arg);
            if let Some(name) = constants.get(&text).filter(|_| denotes) {
                arg.kind = DataKind::Name((*name).to_string());
                found = true;
            }
        }
        found.then_some(actions)
    }

    /// Returns why no label is a multi-action that is not well typed over inferred actions; `None`
    /// if its arguments may be at fault.
    fn without_label(
        &self,
        actions: &[(ast::Ident, Vec<ast::Data>)],
        error: &Diagnostic,
    ) -> Option<String> {
        for (name, args) in actions {
            let mut overloads = self
                .actions
                .overloads(&name.kind)
                .iter()
                .map(|a| self.actions.decls[a.index()].sorts.len())
                .peekable();
            if overloads.peek().is_none() {
                return Some(format!(
                    "no label of the transition system has an action `{}`",
                    name.kind
                ));
            }
            if overloads.all(|n| n != args.len()) {
                let arguments = if args.len() == 1 { "argument" } else { "arguments" };
                return Some(format!(
                    "no label of the transition system has an action `{}` with {} {arguments}",
                    name.kind,
                    args.len()
                ));
            }
        }
        let values = actions.iter().all(|(_, args)| args.iter().all(is_value));
        values.then(|| format!("no label of the transition system matches: {}", error.message))
    }

    fn multi_action(
        &mut self,
        actions: &[(ast::Ident, Vec<ast::Data>)],
    ) -> Result<Vec<(ActId, Vec<Expr>)>, Diagnostic> {
        let mut typed = Vec::with_capacity(actions.len());
        for (name, args) in actions {
            let span = args.last().map_or(name.span, |a| name.span.to(a.span));
            let is_data = args.is_empty() && self.data.is_name(&name.kind);
            let action = self.actions.call(&mut self.data, name, args, span).map_err(|e| {
                if is_data && self.actions.overloads(&name.kind).is_empty() {
                    e.note(format!(
                        "`{0}` is data: a Bool is written `val({0})` in a formula",
                        name.kind
                    ))
                } else if name.kind == "nil" {
                    e.note("the path without steps is `false*`")
                } else {
                    e
                }
            })?;
            typed.push(action);
        }
        typed.sort_by_key(|a| a.0);
        Ok(typed)
    }
}

/// True if an expression has the form of a value: names, numbers, and constructions of them.
fn is_value(data: &ast::Data) -> bool {
    let all = |list: &[ast::Data]| list.iter().all(is_value);
    match &data.kind {
        DataKind::Name(_) | DataKind::Number(_) => true,
        DataKind::List(parts) | DataKind::Set(parts) => all(parts),
        DataKind::Bag(parts) => parts.iter().all(|(a, n)| is_value(a) && is_value(n)),
        DataKind::Apply(head, args) => is_value(head) && all(args),
        DataKind::Unary(UnaryOp::Minus, a) => is_value(a),
        DataKind::Binary(BinaryOp::Divide, a, b) => is_value(a) && is_value(b),
        _ => false,
    }
}

/// Type checks a multi-action such as a label: closed arguments, sorted by action id.
pub fn check_multi_action(
    actions: &[(ast::Ident, Vec<ast::Data>)],
    data: &mut DataSpec,
    declared: &[ActionDecl],
) -> Result<Vec<(ActId, Vec<Expr>)>, Diagnostic> {
    let checker = Checker::new(std::mem::take(data));
    let mut checker = Formulas {
        data: checker,
        actions: Actions::new(declared),
        fixes: Vec::new(),
        scope: Vec::new(),
        closed: AHashMap::new(),
        unmatched: None,
    };
    let result = checker.multi_action(actions);
    *data = checker.data.data;
    result
}

/// Adds the end of the scope of a binder with this name to an error on an unknown name.
fn scope_ended(
    diagnostic: Diagnostic,
    name: &str,
    word: &str,
    scope: Span,
    at: Span,
) -> Diagnostic {
    if scope.source != at.source || scope.end > at.start {
        return diagnostic;
    }
    let end = Span { source: scope.source, start: scope.end.saturating_sub(1), end: scope.end };
    diagnostic
        .related(end, format!("the scope of the {word} of `{name}` ends here"))
        .note(format!("put parentheses around the whole scope of the {word} of `{name}`"))
}

/// Returns the condition that is equivalent to a formula on data only: the data engine handles
/// quantified conditions better than enumeration of their variables.
fn test(formula: &TypedStateFormula, signature: &mut Signature) -> Option<Expr> {
    stacker::maybe_grow(128 << 10, 2 << 20, || {
        let mut both = |a, b| Some((test(a, signature)?, test(b, signature)?));
        let (builtin, args) = match &formula.kind {
            StateKind::Val(e) => return Some(e.clone()),
            StateKind::True | StateKind::False => {
                return Some(Expr::boolean(signature, matches!(formula.kind, StateKind::True)));
            }
            StateKind::Not(f) => {
                let inner = test(f, signature)?;
                return Some(Expr::negate(signature, inner));
            }
            StateKind::And(a, b) => (Builtin::And, both(a, b)?),
            StateKind::Or(a, b) => (Builtin::Or, both(a, b)?),
            StateKind::Implies(a, b) => (Builtin::Implies, both(a, b)?),
            _ => return None,
        };
        Some(Expr::builtin(signature, builtin, vec![args.0, args.1], basic::BOOL))
    })
}

fn quantifier_word(quantifier: Quantifier, span: Span) -> Result<&'static str, Diagnostic> {
    match quantifier {
        Quantifier::Forall => Ok("forall"),
        Quantifier::Exists => Ok("exists"),
        Quantifier::Infimum => Err(quantitative("inf", span)),
        Quantifier::Supremum => Err(quantitative("sup", span)),
        Quantifier::Sum => Err(quantitative("sum", span)),
    }
}

fn unsupported_error(span: Span, message: String) -> Diagnostic {
    Diagnostic::at(Stage::Unsupported, span, message)
}

fn quantitative(what: &str, span: Span) -> Diagnostic {
    unsupported_error(
        span,
        format!("`{what}` belongs to quantitative formulas, which are not supported"),
    )
}

fn timed_error(what: &str, span: Span) -> Diagnostic {
    unsupported_error(span, format!("`{what}` belongs to timed formulas, which are not supported"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_process::typecheck::check_specification;
    use mu_syntax::{parse_formula, parse_specification};

    const MODEL: &str = "sort D = struct d1 | d2(num: Nat)?is_d2; N = Nat; S;
        map f: D -> Nat; ready: Bool;
        act a; b: Nat; b: Bool; c: D # List(Nat);
        init a;";

    fn check(text: &str) -> Result<TypedFormula, Diagnostic> {
        let model =
            check_specification(&parse_specification(Default::default(), MODEL).unwrap()).unwrap();
        let file =
            parse_formula(Default::default(), text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        check_formula(&file, &model.data, &model.actions)
    }

    #[test]
    fn accepted_and_refused() {
        let cases = [
            ("[true*]<true>true", ""),
            ("[true* . b(1)]false && <a>true", ""),
            ("[b(true) + b(1)]false", ""),
            ("[b([])]false", "no action `b` matches arguments of sorts (List(?))"),
            ("[b]false", "no action `b` matches arguments of sorts ()"),
            ("[d]false", "action `d` is not declared"),
            ("[a|b(1)|a]false", ""),
            ("[c(d2(3), [])]false", ""),
            ("forall x: D. [c(x, [0])]val(is_d2(x))", ""),
            ("forall x: N, l: List(N). [c(d1, l)]val(x in l)", ""),
            ("[exists x: D. c(x, []) || val(x == d1)]false", ""),
            ("nu X(n: Nat = 0). val(n < 3) && [b(n)]X(n + 1)", ""),
            (
                "nu X(n: Nat = 0). val(n < 3) && [b(n)]X",
                "fixed-point variable `X` has 1 parameter, but none is given",
            ),
            ("nu X(n: Nat = n). X(n)", "`n` is not declared"),
            ("nu X(n: Nat = -1). X(n)", "expression of sort Int, where Nat is expected"),
            (
                "nu X(n: Pos = 1). X(n - 1)",
                "argument 1 of fixed-point variable `X` has sort Int, where Pos is expected",
            ),
            ("nu X. mu Y. [a]X || [true]Y", ""),
            ("nu X. mu X. [a]X", ""),
            ("nu X. [a]Y", "fixed-point variable `Y` is not declared"),
            ("(nu X. [a]X) && X", "fixed-point variable `X` is not declared"),
            ("val(3)", "`val` of a number belongs to quantitative formulas"),
            ("inf n: Nat. val(n)", "`inf` belongs to quantitative formulas"),
            ("sup n: Nat. val(n)", "`sup` belongs to quantitative formulas"),
            ("sum n: Nat. val(n)", "`sum` belongs to quantitative formulas"),
            ("delay", "`delay` belongs to timed formulas"),
            ("yaled @ 3", "`yaled` belongs to timed formulas"),
            ("[a @ 3]false", "`@` belongs to timed formulas"),
            ("forall s: T. true", "sort `T` is not declared"),
            ("sort T; map g: T -> Bool; act e: T; form forall t: T. [e(t)]val(g(t));", ""),
            (
                "sort D = struct d1 | d2(num: Nat)?is_d2; act a; act b: Nat; map f: D -> Nat; form [b(f(d1))]false;",
                "",
            ),
            ("sort D = struct d1; form true;", "`d1` is declared twice"),
            ("sort N = Pos; form true;", "sort `N` is declared twice, differently"),
            ("map f: Nat; f: Nat -> D; eqn f = 3; form val(f == 3);", ""),
        ];
        for (text, expected) in cases {
            match check(text) {
                Ok(_) => assert!(expected.is_empty(), "{text}: no error, expected {expected}"),
                Err(e) => assert!(
                    !expected.is_empty() && e.message.contains(expected),
                    "{text}: expected {expected}, found {}",
                    e.message
                ),
            }
        }
    }

    #[test]
    fn says_where_a_scope_ended() {
        // Reference precedence: the box binds tighter, so this is
        // `([true] forall x: D. [c(x, [])]false) => …`.
        let text = "[true] forall x: D. [c(x, [])]false => val(x == d1)";
        let e = check(text).unwrap_err();
        assert_eq!(e.message, "`x` is not declared");
        assert_eq!(e.related.len(), 1, "{e:?}");
        assert_eq!(e.related[0].0.end as usize, text.find(" =>").unwrap());
        assert!(e.notes.iter().any(|n| n.contains("parentheses")));
        let e = check("(nu X. [a]X) && X").unwrap_err();
        assert_eq!(e.related[0].0.end, 11);
    }

    #[test]
    fn notes_for_mixed_up_names() {
        assert!(
            check("nu X. a && X").unwrap_err().notes.iter().any(|n| n.contains("`a` is an action"))
        );
        assert!(check("ready").unwrap_err().notes.iter().any(|n| n.contains("val(ready)")));
        assert!(check("[ready]false").unwrap_err().notes.iter().any(|n| n.contains("val(ready)")));
    }

    #[test]
    fn ids_of_the_model_are_kept() {
        let model =
            check_specification(&parse_specification(Default::default(), MODEL).unwrap()).unwrap();
        let typed =
            check("act z; map g: Nat; form forall x: D. <b(g) + z>val(f(x) == 1);").unwrap();
        for (id, op) in model.data.signature.ops() {
            assert_eq!(typed.data.signature.op(id), op);
        }
        assert_eq!(typed.actions[..model.actions.len()], model.actions[..]);
        assert_eq!(typed.actions.len(), model.actions.len() + 1);
    }

    #[test]
    fn deep_formulas() {
        assert!(check(&format!("{}true", "[a]".repeat(10_000))).is_ok());
        assert!(check(&vec!["<a>true"; 10_000].join(" && ")).is_ok());
    }

    #[test]
    fn labels() {
        let mut model =
            check_specification(&parse_specification(Default::default(), MODEL).unwrap()).unwrap();
        let label =
            mu_syntax::parse_multi_action(Default::default(), "c(d2(3), [0, 1])|a").unwrap();
        let typed = check_multi_action(&label, &mut model.data, &model.actions).unwrap();
        assert_eq!(typed.iter().map(|a| a.0).collect::<Vec<_>>(), [ActId::of(0), ActId::of(3)]);
    }
}
