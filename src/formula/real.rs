//! Real-valued formulas: the value of a formula in a state is a number or an infinity. `true` is
//! above all numbers and `false` below them.
//!
//! In: the syntax tree of a formula file. Out: [`RealFormula`], over the data and actions of a
//! model. `&&`, `inf` and `[..]` are greatest lower bounds, `||`, `sup` and `<..>` least upper
//! bounds; a modality takes the mean over the distribution that a step leads to. After Groote and
//! Willemse, "Real equation systems with alternating fixed-points" (CONCUR 2023), with the
//! operators of the reference implementation. Regular modalities are expanded here: `<R*>F` is
//! `mu X. F || <R>X`. Cost: linear in the formula; the target of a regular formula is copied for
//! each alternative. Invariant: a fixed point occurs below an even number of negations.

use super::typecheck::{Formulas, formula_checker};
use super::typed::{Action, Regular};
use mu_base::ids::{FixId, SortId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{DataSpec, Expr};
use mu_data::sort::basic;
use mu_data::typecheck::error;
use mu_process::labels::ActionDecl;
use mu_syntax::ast::{self, Quantifier, StateFormulaKind, StateOp};

/// A real-valued formula with its position.
#[derive(Clone, Debug)]
pub struct Real {
    /// Its kind.
    pub kind: RealKind,
    /// Its position in the source.
    pub span: Span,
}

/// Kinds of real-valued formula.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum RealKind {
    /// Plus infinity for `true`, minus infinity for `false`.
    Truth(bool),
    /// A Bool or a number.
    Val(Expr),
    Negate(Box<Real>),
    And(Box<Real>, Box<Real>),
    Or(Box<Real>, Box<Real>),
    Add(Box<Real>, Box<Real>),
    /// A number times a formula.
    Scale(Expr, Box<Real>),
    Infimum(Vec<VarId>, Box<Real>),
    Supremum(Vec<VarId>, Box<Real>),
    Sum(Vec<VarId>, Box<Real>),
    /// All steps with such an action, or some.
    Must(Action, Box<Real>),
    May(Action, Box<Real>),
    Fix {
        least: bool,
        var: FixId,
        params: Vec<(VarId, Expr)>,
        body: Box<Real>,
    },
    Var(FixId, Vec<Expr>),
}

/// A typed real-valued formula with its data, see [`crate::typed::TypedFormula`].
#[derive(Clone, Debug)]
pub struct RealFormula {
    /// Data specification.
    pub data: DataSpec,
    /// Actions (the model's, then the formula file's own).
    pub actions: Vec<ActionDecl>,
    /// The formula.
    pub formula: Real,
}

/// Type checks a formula file as a real-valued formula.
pub fn check_real(
    file: &ast::FormulaFile,
    data: &DataSpec,
    actions: &[ActionDecl],
) -> Result<RealFormula, Diagnostic> {
    let checker = formula_checker(file, data, actions)?;
    let mut reals = Reals { all: checker, negated: false, fixes: Vec::new() };
    let formula = reals.formula(&file.formula)?;
    Ok(RealFormula { data: reals.all.data.data, actions: reals.all.actions.decls, formula })
}

/// True if a formula has an operator that only real-valued formulas have; `val` of a number is
/// another one, which is recognised only by types.
pub fn has_real_operator(formula: &ast::StateFormula) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &formula.kind {
        StateFormulaKind::Minus(_) => true,
        StateFormulaKind::Binary(StateOp::Add | StateOp::Multiply, ..) => true,
        StateFormulaKind::Quantified(
            Quantifier::Infimum | Quantifier::Supremum | Quantifier::Sum,
            ..,
        ) => true,
        StateFormulaKind::Binary(_, a, b) => has_real_operator(a) || has_real_operator(b),
        StateFormulaKind::Not(a)
        | StateFormulaKind::Quantified(_, _, a)
        | StateFormulaKind::Must(_, a)
        | StateFormulaKind::May(_, a)
        | StateFormulaKind::Fix { body: a, .. } => has_real_operator(a),
        _ => false,
    })
}

struct Reals {
    all: Formulas,
    /// True if the current part is below an odd number of negations.
    negated: bool,
    /// By fixed point: true if it is.
    fixes: Vec<bool>,
}

fn real(kind: RealKind, span: Span) -> Box<Real> {
    Box::new(Real { kind, span })
}

impl Reals {
    fn formula(&mut self, formula: &ast::StateFormula) -> Result<Real, Diagnostic> {
        stacker::maybe_grow(128 << 10, 2 << 20, || {
            let kind = self.kind(formula)?;
            Ok(Real { kind, span: formula.span })
        })
    }

    fn boxed_formula(&mut self, formula: &ast::StateFormula) -> Result<Box<Real>, Diagnostic> {
        self.formula(formula).map(Box::new)
    }

    fn negation(&mut self, formula: &ast::StateFormula) -> Result<Box<Real>, Diagnostic> {
        self.negated = !self.negated;
        let inner = self.boxed_formula(formula);
        self.negated = !self.negated;
        Ok(real(RealKind::Negate(inner?), formula.span))
    }

    fn kind(&mut self, formula: &ast::StateFormula) -> Result<RealKind, Diagnostic> {
        let span = formula.span;
        Ok(match &formula.kind {
            StateFormulaKind::True => RealKind::Truth(true),
            StateFormulaKind::False => RealKind::Truth(false),
            StateFormulaKind::Val(e) => RealKind::Val(self.value(e)?),
            StateFormulaKind::Not(f) | StateFormulaKind::Minus(f) => self.negation(f)?.kind,
            StateFormulaKind::Binary(op, f, g) => match op {
                StateOp::Implies => RealKind::Or(self.negation(f)?, self.boxed_formula(g)?),
                StateOp::Or => RealKind::Or(self.boxed_formula(f)?, self.boxed_formula(g)?),
                StateOp::And => RealKind::And(self.boxed_formula(f)?, self.boxed_formula(g)?),
                StateOp::Add => RealKind::Add(self.boxed_formula(f)?, self.boxed_formula(g)?),
                StateOp::Multiply => match (&f.kind, &g.kind) {
                    (StateFormulaKind::Val(c), _) => RealKind::Scale(
                        self.all.data.check(c, Some(basic::REAL))?,
                        self.boxed_formula(g)?,
                    ),
                    (_, StateFormulaKind::Val(c)) => RealKind::Scale(
                        self.all.data.check(c, Some(basic::REAL))?,
                        self.boxed_formula(f)?,
                    ),
                    _ => return Err(error(span, "`*` needs a number on one side: `val(c) * F`")),
                },
            },
            StateFormulaKind::Quantified(quantifier, decls, f) => {
                let make = match quantifier {
                    Quantifier::Forall | Quantifier::Infimum => RealKind::Infimum,
                    Quantifier::Exists | Quantifier::Supremum => RealKind::Supremum,
                    Quantifier::Sum => RealKind::Sum,
                };
                let vars = self.all.data.declare_vars(decls)?;
                let mark = self.all.data.open_scope();
                decls
                    .iter()
                    .zip(&vars)
                    .for_each(|(decl, var)| self.all.data.bind(&decl.name.kind, *var));
                let body = self.boxed_formula(f)?;
                self.all.data.close_scope(mark, "quantifier", span);
                make(vars, body)
            }
            StateFormulaKind::Must(r, f) => {
                let regular = self.all.regular(r)?;
                let body = self.boxed_formula(f)?;
                self.steps(&regular, false, body).kind
            }
            StateFormulaKind::May(r, f) => {
                let regular = self.all.regular(r)?;
                let body = self.boxed_formula(f)?;
                self.steps(&regular, true, body).kind
            }
            StateFormulaKind::Var(name, args) => match self.all.variable(name, args, span)? {
                crate::typed::StateKind::Var(fix, args) => {
                    if self.fixes[fix.index()] != self.negated {
                        let message = format!(
                            "fixed-point variable `{}` stands below an odd number of negations",
                            name.kind
                        );
                        return Err(error(name.span, message));
                    }
                    RealKind::Var(fix, args)
                }
                _ => {
                    return Err(Diagnostic::internal(
                        "a fixed-point variable became something else",
                    ));
                }
            },
            StateFormulaKind::Fix { least, name, params, body } => {
                self.fixed_point(*least, name, params, body, span)?
            }
            StateFormulaKind::Delay(_) | StateFormulaKind::Yaled(_) => {
                return Err(Diagnostic::at(
                    Stage::Unsupported,
                    span,
                    "`delay` and `yaled` belong to timed formulas, which are not supported",
                ));
            }
        })
    }

    /// Types a Bool or a number in `val`.
    fn value(&mut self, data: &ast::Data) -> Result<Expr, Diagnostic> {
        self.all
            .data
            .check(data, Some(basic::BOOL))
            .or_else(|_| self.all.data.check(data, Some(basic::REAL)))
    }

    fn fixed_point(
        &mut self,
        least: bool,
        name: &ast::Ident,
        params: &[(ast::VarDecl, ast::Data)],
        body: &ast::StateFormula,
        span: Span,
    ) -> Result<RealKind, Diagnostic> {
        let decls: Vec<ast::VarDecl> = params.iter().map(|p| p.0.clone()).collect();
        let vars = self.all.data.declare_vars(&decls)?;
        let sorts: Vec<SortId> =
            vars.iter().map(|v| self.all.data.data.signature.var(*v).sort).collect();
        let mut typed = Vec::with_capacity(params.len());
        for (((_, value), var), sort) in params.iter().zip(&vars).zip(&sorts) {
            typed.push((*var, self.all.data.check(value, Some(*sort))?));
        }
        let var = self.all.declare_fix(name.kind.clone(), sorts);
        self.fixes.push(self.negated);
        let mark = self.all.data.open_scope();
        decls.iter().zip(&vars).for_each(|(decl, var)| self.all.data.bind(&decl.name.kind, *var));
        let body = self.boxed_formula(body)?;
        self.all.data.close_scope(mark, if least { "mu" } else { "nu" }, span);
        self.all.close_fix(name.kind.clone(), span);
        Ok(RealKind::Fix { least, var, params: typed, body })
    }

    /// Expands a modality; `may` for `<R>F`.
    fn steps(&mut self, regular: &Regular, may: bool, body: Box<Real>) -> Real {
        let span = body.span;
        let either = |a, b| if may { RealKind::Or(a, b) } else { RealKind::And(a, b) };
        let kind = match regular {
            Regular::Action(a) if may => RealKind::May(a.clone(), body),
            Regular::Action(a) => RealKind::Must(a.clone(), body),
            Regular::Seq(r, s) => {
                let body = self.steps(s, may, body);
                return self.steps(r, may, Box::new(body));
            }
            Regular::Alt(r, s) => {
                let (a, b) = (self.steps(r, may, body.clone()), self.steps(s, may, body));
                either(Box::new(a), Box::new(b))
            }
            Regular::Plus(r) => {
                let again = self.steps(&Regular::Star(r.clone()), may, body);
                return self.steps(r, may, Box::new(again));
            }
            Regular::Star(r) => {
                let var = self.all.declare_fix(String::from("R*"), Vec::new());
                self.fixes.push(self.negated);
                self.all.scope.pop();
                let again = self.steps(r, may, real(RealKind::Var(var, Vec::new()), span));
                RealKind::Fix {
                    least: may,
                    var,
                    params: Vec::new(),
                    body: real(either(body, Box::new(again)), span),
                }
            }
        };
        Real { kind, span }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_process::typecheck::check_specification;
    use mu_syntax::{parse_formula, parse_specification};

    #[test]
    fn accepted_and_refused() {
        let text = "act a; b: Nat; init a;";
        let model =
            check_specification(&parse_specification(Default::default(), text).unwrap()).unwrap();
        let cases = [
            ("val(3)", ""),
            ("val(1/2) * <a>val(1) + -val(2)", ""),
            ("<a>val(1) * val(2)", ""),
            ("<a>val(1) * <a>val(1)", ""),
            ("(<a>val(1)) * <a>val(1)", "needs a number"),
            ("sup n: Nat. <b(n)>val(n)", ""),
            ("inf b: Bool. sum c: Bool. val(if(b, 1, 2))", ""),
            ("mu X(n: Nat = 0). val(n) || <a . true* . a+>X(n + 1)", ""),
            ("mu X. -X", "odd number of negations"),
            ("mu X. -(-X)", ""),
            ("mu X. X => val(1)", "odd number"),
            ("-(mu X. <a>X)", ""),
            ("[a]Y", "fixed-point variable `Y` is not declared"),
            ("val([])", "List"),
            ("delay", "timed"),
        ];
        for (text, expected) in cases {
            let file =
                parse_formula(Default::default(), text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
            match check_real(&file, &model.data, &model.actions) {
                Ok(_) => assert!(expected.is_empty(), "{text}: no error, expected {expected}"),
                Err(e) => assert!(
                    !expected.is_empty() && e.message.contains(expected),
                    "{text}: expected {expected}, found {}",
                    e.message
                ),
            }
        }
    }
}
