//! Printer of state, regular and action formulas. See the parent module for the rules.

use super::{Context, Printer, deep};
use crate::ast::*;
use crate::precedence::{Assoc, action, regular, state};

impl Printer {
    pub(super) fn state(&mut self, f: &StateFormula, context: Context) {
        deep(|| self.state_step(f, context));
    }

    fn state_step(&mut self, f: &StateFormula, context: Context) {
        match &f.kind {
            StateFormulaKind::True => self.word("true"),
            StateFormulaKind::False => self.word("false"),
            StateFormulaKind::Val(e) => self.val(e),
            StateFormulaKind::Var(name, args) => self.application(name, args),
            StateFormulaKind::Delay(time) => self.timed_word("delay", time.as_deref()),
            StateFormulaKind::Yaled(time) => self.timed_word("yaled", time.as_deref()),
            StateFormulaKind::Not(inner) => {
                self.state_prefix(state::UNARY, context, inner, |p| p.word("!"))
            }
            StateFormulaKind::Minus(inner) => {
                self.state_prefix(state::UNARY, context, inner, |p| p.word("-"))
            }
            StateFormulaKind::Must(r, inner) => self.modality("[", r, "]", context, inner),
            StateFormulaKind::May(r, inner) => self.modality("<", r, ">", context, inner),
            StateFormulaKind::Quantified(quantifier, vars, inner) => {
                self.state_prefix(state::QUANTIFIER, context, inner, |p| {
                    p.quantifier(*quantifier, vars)
                });
            }
            StateFormulaKind::Fix { least, name, params, body } => {
                self.state_prefix(state::FIX, context, body, |p| {
                    p.word(if *least { "mu " } else { "nu " });
                    p.word(&name.kind);
                    if !params.is_empty() {
                        p.word("(");
                        p.list(params, ", ", |p, (var, value)| {
                            p.word(&var.name.kind);
                            p.word(": ");
                            p.sort(&var.sort);
                            p.word(" = ");
                            p.data(value, Context::TOP);
                        });
                        p.word(")");
                    }
                    p.word(". ");
                })
            }
            StateFormulaKind::Binary(op, left, right) => {
                let (level, assoc) = op.state_level();
                let opened = self.open(level < context.least);
                let context = self.inside(opened, context);
                let left_opened = self.open(
                    ends_in_looser_prefix(left, level)
                        || *op == StateOp::Multiply && ends_in_factor(left),
                );
                self.state(left, self.inside(left_opened, Context::left_of(level, assoc)));
                self.close(left_opened);
                self.word(" ");
                self.word(op.symbol());
                self.word(" ");
                self.state(right, context.right_of(level, assoc));
                self.close(opened);
            }
        }
    }

    fn state_prefix(
        &mut self,
        level: u8,
        context: Context,
        inner: &StateFormula,
        head: impl FnOnce(&mut Self),
    ) {
        let opened = self.open(level < context.before);
        head(self);
        self.state(inner, self.inside(opened, context).after_prefix(level));
        self.close(opened);
    }

    fn modality(
        &mut self,
        left: &str,
        r: &RegularFormula,
        right: &str,
        context: Context,
        inner: &StateFormula,
    ) {
        self.state_prefix(state::MODALITY, context, inner, |p| {
            p.word(left);
            p.regular(r, Context::TOP);
            p.word(right);
            if matches!(inner.kind, StateFormulaKind::Quantified(..) | StateFormulaKind::Fix { .. })
            {
                p.word(" ");
            }
        });
    }

    fn quantifier(&mut self, quantifier: Quantifier, vars: &[VarDecl]) {
        self.word(match quantifier {
            Quantifier::Forall => "forall ",
            Quantifier::Exists => "exists ",
            Quantifier::Infimum => "inf ",
            Quantifier::Supremum => "sup ",
            Quantifier::Sum => "sum ",
        });
        self.var_decls(vars);
        self.word(". ");
    }

    fn val(&mut self, e: &Data) {
        self.word("val(");
        self.data(e, Context::TOP);
        self.word(")");
    }

    fn application(&mut self, name: &Ident, args: &[Data]) {
        self.word(&name.kind);
        if !args.is_empty() {
            self.word("(");
            self.data_list(args);
            self.word(")");
        }
    }

    fn timed_word(&mut self, word: &str, time: Option<&Data>) {
        self.word(word);
        if let Some(time) = time {
            self.word(" @ ");
            self.data_unit(time);
        }
    }

    pub(super) fn regular(&mut self, f: &RegularFormula, context: Context) {
        deep(|| match &f.kind {
            RegularKind::Action(a) => {
                // Not necessary, but `a || b . c` is easily misread.
                let opened = self.open(context.least > 0 && !is_step(a));
                self.action(a, Context::TOP);
                self.close(opened);
            }
            RegularKind::Seq(left, right) => {
                self.regular_infix(regular::SEQUENCE, Assoc::Right, " . ", left, right, context)
            }
            RegularKind::Alt(left, right) => {
                self.regular_infix(regular::ALTERNATIVE, Assoc::Left, " + ", left, right, context)
            }
            RegularKind::Star(inner) => self.repeat(inner, "*"),
            RegularKind::Plus(inner) => self.repeat(inner, "+"),
        });
    }

    fn regular_infix(
        &mut self,
        level: u8,
        assoc: Assoc,
        symbol: &str,
        left: &RegularFormula,
        right: &RegularFormula,
        context: Context,
    ) {
        let opened = self.open(level < context.least);
        let context = self.inside(opened, context);
        self.regular(left, Context::left_of(level, assoc));
        self.word(symbol);
        self.regular(right, context.right_of(level, assoc));
        self.close(opened);
    }

    fn repeat(&mut self, inner: &RegularFormula, symbol: &str) {
        self.regular(inner, Context::left_of(regular::REPEAT, Assoc::Left));
        self.word(symbol);
    }

    fn action(&mut self, f: &ActionFormula, context: Context) {
        deep(|| match &f.kind {
            ActionFormulaKind::True => self.word("true"),
            ActionFormulaKind::False => self.word("false"),
            ActionFormulaKind::Val(e) => self.val(e),
            ActionFormulaKind::MultiAction(actions) if actions.is_empty() => self.word("tau"),
            ActionFormulaKind::MultiAction(actions) => {
                self.list(actions, "|", |p, (name, args)| p.application(name, args))
            }
            ActionFormulaKind::Not(inner) => {
                let opened = self.open(action::NOT < context.before);
                self.word("!");
                self.action(inner, self.inside(opened, context).after_prefix(action::NOT));
                self.close(opened);
            }
            ActionFormulaKind::Quantified(quantifier, vars, inner) => {
                let opened = self.open(action::QUANTIFIER < context.before);
                self.quantifier(*quantifier, vars);
                self.action(inner, self.inside(opened, context).after_prefix(action::QUANTIFIER));
                self.close(opened);
            }
            ActionFormulaKind::At(inner, time) => {
                let opened = self.open(action::AT < context.least);
                self.action(inner, Context::left_of(action::AT, Assoc::Left));
                self.word(" @ ");
                self.data_unit(time);
                self.close(opened);
            }
            ActionFormulaKind::Binary(op, left, right) => {
                let level = op.action_level().unwrap_or(action::IMPLIES);
                let opened = self.open(level < context.least);
                let context = self.inside(opened, context);
                self.action(left, Context::left_of(level, Assoc::Right));
                self.word(" ");
                self.word(op.symbol());
                self.word(" ");
                self.action(right, context.right_of(level, Assoc::Right));
                self.close(opened);
            }
        });
    }
}

/// True if an action formula is short enough to be readable as one step.
fn is_step(f: &ActionFormula) -> bool {
    !matches!(
        f.kind,
        ActionFormulaKind::Binary(..)
            | ActionFormulaKind::Quantified(..)
            | ActionFormulaKind::At(..)
    )
}

/// True if the text of `f` ends in the operand of a prefix operator looser than `level`, without
/// parentheses around it.
fn ends_in_looser_prefix(mut f: &StateFormula, level: u8) -> bool {
    let mut within = false;
    loop {
        let (own, next) = match &f.kind {
            StateFormulaKind::Binary(op, _, right) if op.state_level().0 >= level => {
                (u8::MAX, right)
            }
            StateFormulaKind::Not(inner) | StateFormulaKind::Minus(inner) => (state::UNARY, inner),
            StateFormulaKind::Must(_, inner) | StateFormulaKind::May(_, inner) => {
                (state::MODALITY, inner)
            }
            StateFormulaKind::Quantified(_, _, inner) => (state::QUANTIFIER, inner),
            StateFormulaKind::Fix { body, .. } => (state::FIX, body),
            _ => return false,
        };
        if own < level {
            return within;
        }
        f = next;
        within = true;
    }
}

/// True if a number at the end would multiply the following text instead of the whole.
fn ends_in_factor(formula: &StateFormula) -> bool {
    let mut last = match &formula.kind {
        StateFormulaKind::Val(_) => return false,
        _ => formula,
    };
    loop {
        last = match &last.kind {
            StateFormulaKind::Val(_) => return true,
            StateFormulaKind::Not(inner)
            | StateFormulaKind::Minus(inner)
            | StateFormulaKind::Must(_, inner)
            | StateFormulaKind::May(_, inner) => inner,
            StateFormulaKind::Binary(StateOp::Multiply, _, right) => right,
            _ => return false,
        };
    }
}
