//! Normalisation of formulas to the form that regions support.
//!
//! Input: a typed formula. Output: an equal or stronger one, by two passes.
//! [`negation_normal_form`]: negations on tests only, modalities of single actions, stars, and
//! alternatives. [`Rewriter`]: no universal quantifiers over counters (or constants of a sort of
//! any size). If a single action determines the variable of a quantifier, the quantifier is moved
//! into its action formula (`forall n. [a(n)]f` becomes `[exists n. a(n)]f`). Any other quantifier
//! is moved to the front of the whole formula, `forall n. f` ([`Rewriter::outer_variables`]), and
//! `f` is then checked for each region of `n`. The result implies the formula. The converse holds
//! except where tests of a quantifier are dropped because its variable is not used elsewhere.
//!
//! A quantifier may be moved out of a conjunction, a box, another universal quantifier, and,
//! outside of all recursion, a disjunction. It may be moved out of a fixed point, or `R*`, if the
//! recursion makes no choice, neither on the path to the quantifier nor anywhere else in the fixed
//! point (`has_recursive_choice`), and if the quantifier does not depend on the recursion. Then
//! obligations are only propagated, each independently, and those of different numbers do not
//! interact (docs/regions.md). Cost: linear, times nesting depth.

use crate::flow::{Flow, FlowSort};
use crate::formula_constants::binds;
use mu_base::ids::{FixId, SortId, VarId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{Expr, Substitution};
use mu_data::signature::Signature;
use mu_data::sort::basic;
use mu_formula::normal::action_free_vars;
use mu_formula::typed::{Action, Regular, StateKind, TypedStateFormula};

fn deep<T>(f: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 4 << 20, f)
}

fn state(kind: StateKind, span: Span) -> TypedStateFormula {
    TypedStateFormula { kind, span }
}

/// Returns the formula (`sign` true) or its negation, with negations on tests only and sequences in
/// modalities expanded. Unlike `mu_formula::normal`, it keeps typed formulas, with their
/// quantifiers and `R*`.
pub fn negation_normal_form(
    signature: &mut Signature,
    f: &TypedStateFormula,
    sign: bool,
) -> TypedStateFormula {
    deep(|| {
        let both = |signature: &mut Signature,
                    a: &TypedStateFormula,
                    b: &TypedStateFormula,
                    signs: (bool, bool),
                    all: bool| {
            let (a, b) = (
                Box::new(negation_normal_form(signature, a, signs.0)),
                Box::new(negation_normal_form(signature, b, signs.1)),
            );
            if all { StateKind::And(a, b) } else { StateKind::Or(a, b) }
        };
        let kind = match &f.kind {
            StateKind::True | StateKind::False => {
                if matches!(f.kind, StateKind::True) == sign {
                    StateKind::True
                } else {
                    StateKind::False
                }
            }
            StateKind::Val(e) if sign => StateKind::Val(e.clone()),
            StateKind::Val(e) => StateKind::Val(Expr::negate(signature, e.clone())),
            StateKind::Not(g) => return negation_normal_form(signature, g, !sign),
            StateKind::And(a, b) => both(signature, a, b, (sign, sign), sign),
            StateKind::Or(a, b) => both(signature, a, b, (sign, sign), !sign),
            StateKind::Implies(a, b) => both(signature, a, b, (!sign, sign), !sign),
            StateKind::Forall(vars, g) | StateKind::Exists(vars, g) => {
                let inner = Box::new(negation_normal_form(signature, g, sign));
                if matches!(f.kind, StateKind::Forall(..)) == sign {
                    StateKind::Forall(vars.clone(), inner)
                } else {
                    StateKind::Exists(vars.clone(), inner)
                }
            }
            StateKind::Must(r, g) | StateKind::May(r, g) => {
                let inner = negation_normal_form(signature, g, sign);
                return modality(r, matches!(f.kind, StateKind::Must(..)) == sign, inner, f.span);
            }
            StateKind::Fix { least, var, params, body } => StateKind::Fix {
                least: *least == sign,
                var: *var,
                params: params.clone(),
                body: Box::new(negation_normal_form(signature, body, sign)),
            },
            // Recursion variables occur below an even number of negations, and `Fix` is dualised
            // with its body: the sign does not matter.
            StateKind::Var(x, args) => StateKind::Var(*x, args.clone()),
        };
        state(kind, f.span)
    })
}

/// Returns the modality `[r]inner` (`all`) or `<r>inner` with sequences expanded.
fn modality(r: &Regular, all: bool, inner: TypedStateFormula, span: Span) -> TypedStateFormula {
    deep(|| match r {
        Regular::Seq(a, b) => {
            let rest = modality(b, all, inner, span);
            modality(a, all, rest, span)
        }
        Regular::Plus(a) => {
            let rest = modality(&Regular::Star(a.clone()), all, inner, span);
            modality(a, all, rest, span)
        }
        // The continuation of an alternative is not duplicated, so that its fixed points are bound
        // once.
        Regular::Action(_) | Regular::Star(_) | Regular::Alt(..) => {
            let (r, inner) = (Box::new(r.clone()), Box::new(inner));
            state(if all { StateKind::Must(r, inner) } else { StateKind::May(r, inner) }, span)
        }
    })
}

/// Collects the free data variables of a regular formula.
fn regular_vars(r: &Regular, out: &mut Vec<VarId>) {
    deep(|| match r {
        Regular::Action(a) => action_free_vars(a, out),
        Regular::Seq(a, b) | Regular::Alt(a, b) => {
            regular_vars(a, out);
            regular_vars(b, out);
        }
        Regular::Star(a) | Regular::Plus(a) => regular_vars(a, out),
    })
}

/// True if a data variable occurs free in a formula.
fn mentions(f: &TypedStateFormula, v: VarId) -> bool {
    let in_expr = |e: &Expr| {
        let mut free = Vec::new();
        e.free_vars(&mut free);
        free.contains(&v)
    };
    deep(|| match &f.kind {
        StateKind::True | StateKind::False => false,
        StateKind::Val(e) => in_expr(e),
        StateKind::Not(g) => mentions(g, v),
        StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
            mentions(a, v) || mentions(b, v)
        }
        StateKind::Forall(vars, g) | StateKind::Exists(vars, g) => {
            !vars.contains(&v) && mentions(g, v)
        }
        StateKind::Must(r, g) | StateKind::May(r, g) => {
            let mut free = Vec::new();
            regular_vars(r, &mut free);
            free.contains(&v) || mentions(g, v)
        }
        StateKind::Fix { params, body, .. } => {
            params.iter().any(|p| in_expr(&p.1))
                || (params.iter().all(|p| p.0 != v) && mentions(body, v))
        }
        StateKind::Var(_, args) => args.iter().any(in_expr),
    })
}

/// True if a formula contains a recursion variable that is bound outside.
fn has_free_recursion(f: &TypedStateFormula, bound: &mut Vec<FixId>) -> bool {
    deep(|| match &f.kind {
        StateKind::True | StateKind::False | StateKind::Val(_) => false,
        StateKind::Not(g)
        | StateKind::Forall(_, g)
        | StateKind::Exists(_, g)
        | StateKind::Must(_, g)
        | StateKind::May(_, g) => has_free_recursion(g, bound),
        StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
            has_free_recursion(a, bound) || has_free_recursion(b, bound)
        }
        StateKind::Fix { var, body, .. } => {
            bound.push(*var);
            let found = has_free_recursion(body, bound);
            bound.pop();
            found
        }
        StateKind::Var(x, _) => !bound.contains(x),
    })
}

/// True if the recursion in a formula makes a choice: both sides of a disjunction, or the instances
/// of `exists` or a diamond, contain a recursion variable that is bound outside.
fn has_recursive_choice(f: &TypedStateFormula) -> bool {
    let out = |g: &TypedStateFormula| has_free_recursion(g, &mut Vec::new());
    deep(|| match &f.kind {
        // The truth of a closed formula does not depend on the recursion.
        _ if !out(f) => false,
        StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => false,
        StateKind::Exists(..) | StateKind::May(..) => true,
        StateKind::Or(a, b) | StateKind::Implies(a, b) if out(a) && out(b) => true,
        StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
            has_recursive_choice(a) || has_recursive_choice(b)
        }
        StateKind::Not(g)
        | StateKind::Forall(_, g)
        | StateKind::Must(_, g)
        | StateKind::Fix { body: g, .. } => has_recursive_choice(g),
    })
}

/// Movability of a quantifier.
struct Movability {
    /// True if it must be moved.
    required: bool,
    /// True if it may be moved to the front of the whole formula.
    to_front: bool,
}

/// Class of the quantifiers to move.
pub enum QuantifierClass<'f, 'a> {
    /// Those over counters.
    Counters(&'f mut Flow<'a>),
    /// Those over constants of a sort with any number of constants.
    Constants {
        /// The sort.
        sort: SortId,
        /// True if values of a sort contain such constants.
        holds: &'f dyn Fn(SortId) -> bool,
        /// The sort's name.
        name: &'f str,
    },
}

impl QuantifierClass<'_, '_> {
    /// Returns how a quantifier over a variable can be moved.
    fn movability(&mut self, signature: &Signature, v: VarId) -> Movability {
        match self {
            QuantifierClass::Counters(flow) => {
                let ty = flow.type_of_var(v);
                Movability {
                    required: flow.has_counter(&ty),
                    to_front: matches!(ty, FlowSort::Number(_)),
                }
            }
            QuantifierClass::Constants { sort, holds, .. } => Movability {
                required: holds(signature.var(v).sort),
                to_front: signature.var(v).sort == *sort,
            },
        }
    }

    /// Describes the domain of the quantifiers, for messages.
    fn domain_text(&self) -> String {
        match self {
            QuantifierClass::Counters(_) => {
                "a number that flows together with a symbolic parameter".into()
            }
            QuantifierClass::Constants { name, .. } => {
                format!("`{name}`, which may have any number of constants,")
            }
        }
    }
}

/// Rewriter that moves quantifiers over counters or constants in a formula in positive form.
pub struct Rewriter<'f, 'a> {
    /// Selects the quantifiers.
    pub class: QuantifierClass<'f, 'a>,
    /// The signature of new terms.
    pub signature: &'f mut Signature,
    /// The variables of quantifiers at the front of the whole formula.
    pub outer_variables: Vec<VarId>,
}

/// The path to the current subformula.
#[derive(Clone, Copy, Default)]
struct Path {
    /// True below a choice that may differ between numbers: `exists`, a disjunction with another
    /// recursive side, or a recursion that makes choices elsewhere.
    choice: bool,
}

impl Rewriter<'_, '_> {
    /// Rewrites a formula. Errors: diamonds, existential quantifiers over counters, quantifiers
    /// that cannot be moved: the abstraction has more runs than each instance, so only universal
    /// properties transfer.
    pub fn formula(&mut self, f: &TypedStateFormula) -> Result<TypedStateFormula, Diagnostic> {
        self.go(f, Path::default())
    }

    fn go(&mut self, f: &TypedStateFormula, path: Path) -> Result<TypedStateFormula, Diagnostic> {
        deep(|| {
            let kind = match &f.kind {
                StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => {
                    f.kind.clone()
                }
                StateKind::And(a, b) => {
                    StateKind::And(Box::new(self.go(a, path)?), Box::new(self.go(b, path)?))
                }
                StateKind::Or(a, b) => {
                    // Inside one side, the other side must not be recursive as well.
                    let with_sibling = |other: &TypedStateFormula| Path {
                        choice: path.choice || has_free_recursion(other, &mut Vec::new()),
                    };
                    StateKind::Or(
                        Box::new(self.go(a, with_sibling(b))?),
                        Box::new(self.go(b, with_sibling(a))?),
                    )
                }
                StateKind::Forall(vars, g) => return self.universal(vars, g, f.span, path),
                StateKind::Exists(vars, g) => {
                    if vars.iter().any(|v| self.must_move(*v)) {
                        let text = format!(
                            "`exists` over {} requires one value for all runs",
                            self.class.domain_text()
                        );
                        return Err(Diagnostic::new(Stage::Unsupported, text).or_span(f.span));
                    }
                    // One instance for all numbers is stronger than one for each.
                    StateKind::Exists(vars.clone(), Box::new(self.go(g, Path { choice: true })?))
                }
                StateKind::Must(r, g) => StateKind::Must(r.clone(), Box::new(self.go(g, path)?)),
                StateKind::May(..) => {
                    let text = "a diamond requires that a step exists, which regions cannot prove, because they may have more steps than the model";
                    return Err(Diagnostic::new(Stage::Unsupported, text).or_span(f.span));
                }
                StateKind::Fix { least, var, params, body } => {
                    let inside = Path { choice: path.choice || has_recursive_choice(body) };
                    let body = Box::new(self.go(body, inside)?);
                    StateKind::Fix { least: *least, var: *var, params: params.clone(), body }
                }
                StateKind::Not(_) | StateKind::Implies(..) => {
                    return Err(Diagnostic::new(
                        Stage::Internal,
                        "a formula in positive form has a negation",
                    )
                    .or_span(f.span));
                }
            };
            Ok(state(kind, f.span))
        })
    }

    /// True if quantifiers over a variable must be moved.
    fn must_move(&mut self, v: VarId) -> bool {
        self.class.movability(self.signature, v).required
    }

    /// Rewrites `forall vars. g`: moves the quantifiers that must be moved.
    fn universal(
        &mut self,
        vars: &[VarId],
        g: &TypedStateFormula,
        span: Span,
        path: Path,
    ) -> Result<TypedStateFormula, Diagnostic> {
        let (counters, rest): (Vec<VarId>, Vec<VarId>) =
            vars.iter().partition(|v| self.must_move(**v));
        let mut body = g.clone();
        for v in counters {
            if let Some(moved) = self.inward(v, &[], &body) {
                body = moved;
                continue;
            }
            if !self.class.movability(self.signature, v).to_front {
                let text = format!("`forall` over data that contain {}", self.class.domain_text());
                return Err(Diagnostic::new(Stage::Unsupported, text).or_span(span));
            }
            if path.choice || has_free_recursion(&body, &mut Vec::new()) {
                let name = &self.signature.var(v).name;
                let text = if path.choice {
                    format!(
                        "`forall {name}` is below a choice (`exists`, or `||` in a recursion), which may differ for each `{name}`"
                    )
                } else {
                    format!(
                        "`forall {name}` depends on the recursion around it, so that different values may follow each other"
                    )
                };
                return Err(Diagnostic::new(Stage::Unsupported, text).or_span(span));
            }
            let sort = self.signature.var(v).sort;
            if [basic::INT, basic::REAL].contains(&sort) {
                let text = format!(
                    "`forall {}` is over `{}`, which has no least value",
                    self.signature.var(v).name,
                    self.signature.sorts.text(sort)
                );
                return Err(Diagnostic::new(Stage::Unsupported, text).or_span(span));
            }
            self.outer_variables.push(v);
        }
        let inner = self.go(&body, path)?;
        Ok(if rest.is_empty() {
            inner
        } else {
            state(StateKind::Forall(rest, Box::new(inner)), span)
        })
    }

    /// Moves the quantifier of `forall v. tests => f` into action formulas, if possible. It may
    /// drop tests: that strengthens the formula, so the result still implies it.
    fn inward(
        &mut self,
        v: VarId,
        tests: &[Expr],
        f: &TypedStateFormula,
    ) -> Option<TypedStateFormula> {
        if !mentions(f, v) {
            return Some(f.clone());
        }
        deep(|| {
            let kind = match &f.kind {
                StateKind::And(a, b) => StateKind::And(
                    Box::new(self.inward(v, tests, a)?),
                    Box::new(self.inward(v, tests, b)?),
                ),
                StateKind::Or(a, b) => {
                    // The side that is a test comes first, if there is one.
                    let (first, second) =
                        if matches!(b.kind, StateKind::Val(_)) { (b, a) } else { (a, b) };
                    if let StateKind::Val(test) = &first.kind
                        && mentions(first, v)
                    {
                        let mut tests = tests.to_vec();
                        tests.push(Expr::negate(self.signature, test.clone()));
                        return self.inward(v, &tests, second);
                    }
                    match (mentions(first, v), mentions(second, v)) {
                        (true, true) => return None,
                        (false, _) => {
                            StateKind::Or(first.clone(), Box::new(self.inward(v, tests, second)?))
                        }
                        _ => StateKind::Or(Box::new(self.inward(v, tests, first)?), second.clone()),
                    }
                }
                StateKind::Forall(vars, g) => {
                    StateKind::Forall(vars.clone(), Box::new(self.inward(v, tests, g)?))
                }
                StateKind::Must(r, g) => {
                    let mut free = Vec::new();
                    regular_vars(r, &mut free);
                    match &**r {
                        _ if !free.contains(&v) => {
                            StateKind::Must(r.clone(), Box::new(self.inward(v, tests, g)?))
                        }
                        Regular::Action(action) if !mentions(g, v) && binds(action, v) => {
                            let mut guarded = action.clone();
                            for test in tests {
                                guarded = Action::And(
                                    Box::new(Action::Val(test.clone())),
                                    Box::new(guarded),
                                );
                            }
                            StateKind::Must(
                                Box::new(Regular::Action(Action::Exists(
                                    vec![v],
                                    Box::new(guarded),
                                ))),
                                g.clone(),
                            )
                        }
                        _ => return None,
                    }
                }
                _ => return None,
            };
            Some(state(kind, f.span))
        })
    }
}

/// Substitutes values for variables.
pub fn substitute(f: &TypedStateFormula, by: &Substitution) -> TypedStateFormula {
    deep(|| {
        let all = |list: &[Expr]| list.iter().map(|e| e.substitute(by)).collect::<Vec<_>>();
        let go = |g: &TypedStateFormula| Box::new(substitute(g, by));
        let kind = match &f.kind {
            StateKind::True | StateKind::False => f.kind.clone(),
            StateKind::Val(e) => StateKind::Val(e.substitute(by)),
            StateKind::Not(g) => StateKind::Not(go(g)),
            StateKind::And(a, b) => StateKind::And(go(a), go(b)),
            StateKind::Or(a, b) => StateKind::Or(go(a), go(b)),
            StateKind::Implies(a, b) => StateKind::Implies(go(a), go(b)),
            StateKind::Forall(vars, g) => StateKind::Forall(vars.clone(), go(g)),
            StateKind::Exists(vars, g) => StateKind::Exists(vars.clone(), go(g)),
            StateKind::Must(r, g) => StateKind::Must(Box::new(in_regular(r, by)), go(g)),
            StateKind::May(r, g) => StateKind::May(Box::new(in_regular(r, by)), go(g)),
            StateKind::Fix { least, var, params, body } => {
                let params = params.iter().map(|(v, e)| (*v, e.substitute(by))).collect();
                StateKind::Fix { least: *least, var: *var, params, body: go(body) }
            }
            StateKind::Var(x, args) => StateKind::Var(*x, all(args)),
        };
        state(kind, f.span)
    })
}

fn in_regular(r: &Regular, by: &Substitution) -> Regular {
    deep(|| {
        let go = |r: &Regular| Box::new(in_regular(r, by));
        match r {
            Regular::Action(a) => Regular::Action(in_action(a, by)),
            Regular::Seq(a, b) => Regular::Seq(go(a), go(b)),
            Regular::Alt(a, b) => Regular::Alt(go(a), go(b)),
            Regular::Star(a) => Regular::Star(go(a)),
            Regular::Plus(a) => Regular::Plus(go(a)),
        }
    })
}

fn in_action(a: &Action, by: &Substitution) -> Action {
    deep(|| {
        let go = |a: &Action| Box::new(in_action(a, by));
        match a {
            Action::True | Action::False => a.clone(),
            Action::Val(e) => Action::Val(e.substitute(by)),
            Action::Multi(acts) => Action::Multi(
                acts.iter()
                    .map(|(a, args)| (*a, args.iter().map(|e| e.substitute(by)).collect()))
                    .collect(),
            ),
            Action::Not(a) => Action::Not(go(a)),
            Action::And(a, b) => Action::And(go(a), go(b)),
            Action::Or(a, b) => Action::Or(go(a), go(b)),
            Action::Implies(a, b) => Action::Implies(go(a), go(b)),
            Action::Forall(vars, a) => Action::Forall(vars.clone(), go(a)),
            Action::Exists(vars, a) => Action::Exists(vars.clone(), go(a)),
        }
    })
}
