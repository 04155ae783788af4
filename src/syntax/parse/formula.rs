//! State, regular and action formulas: from grammar pairs to trees. Cost: linear in the pairs.
//!
//! A regular formula and an action formula share their parentheses in the grammar. Both are built
//! as regular formulas; an operator of action formulas extracts the action formula from its
//! operands, or rejects them.

use super::operators::{Operands, OperatorStack, StackOperator};
use super::{Built, P, Rule, TreeBuilder};
use crate::ast::*;
use crate::precedence::{Assoc, action, regular, state};
use mu_base::{Diagnostic, Span, Stage};

enum StateOperator {
    Fix {
        least: bool,
        name: Ident,
        params: Vec<(VarDecl, Data)>,
        span: Span,
    },
    Quantified(Quantifier, Vec<VarDecl>, Span),
    Must(RegularFormula, Span),
    May(RegularFormula, Span),
    Not(Span),
    Minus(Span),
    /// `val(c) *`
    Scale(StateFormula),
    Infix(StateOp),
}

impl StackOperator for StateOperator {
    type Tree = StateFormula;
    fn reduce(self, operands: &mut Operands<StateFormula>) {
        let last = operands.pop();
        let end = last.span;
        let body = Box::new(last);
        let (kind, start) = match self {
            StateOperator::Fix { least, name, params, span } => {
                (StateFormulaKind::Fix { least, name, params, body }, span)
            }
            StateOperator::Quantified(quantifier, vars, span) => {
                (StateFormulaKind::Quantified(quantifier, vars, body), span)
            }
            StateOperator::Must(regular, span) => {
                (StateFormulaKind::Must(Box::new(regular), body), span)
            }
            StateOperator::May(regular, span) => {
                (StateFormulaKind::May(Box::new(regular), body), span)
            }
            StateOperator::Not(span) => (StateFormulaKind::Not(body), span),
            StateOperator::Minus(span) => (StateFormulaKind::Minus(body), span),
            StateOperator::Scale(factor) => {
                let span = factor.span;
                (StateFormulaKind::Binary(StateOp::Multiply, Box::new(factor), body), span)
            }
            StateOperator::Infix(op) => {
                let first = operands.pop();
                let span = first.span;
                (StateFormulaKind::Binary(op, Box::new(first), body), span)
            }
        };
        operands.push(Node::new(kind, start.to(end)));
    }
}

enum RegularOperator {
    Seq,
    Alt,
    Not(Span),
    Quantified(Quantifier, Vec<VarDecl>, Span),
    Infix(StateOp),
}

impl StackOperator for RegularOperator {
    type Tree = Built<RegularFormula>;
    fn reduce(self, operands: &mut Operands<Built<RegularFormula>>) {
        let last = operands.pop();
        let first = match self {
            RegularOperator::Not(_) | RegularOperator::Quantified(..) => None,
            _ => Some(operands.pop()),
        };
        operands.push(self.apply(first, last));
    }
}

impl RegularOperator {
    fn apply(
        self,
        first: Option<Built<RegularFormula>>,
        last: Built<RegularFormula>,
    ) -> Built<RegularFormula> {
        let first = first.transpose()?;
        let last = last?;
        let span = first.as_ref().map_or(last.span, |f| f.span.to(last.span));
        Ok(match (self, first) {
            (RegularOperator::Seq, Some(first)) => {
                Node::new(RegularKind::Seq(Box::new(first), Box::new(last)), span)
            }
            (RegularOperator::Alt, Some(first)) => {
                Node::new(RegularKind::Alt(Box::new(first), Box::new(last)), span)
            }
            (RegularOperator::Infix(op), Some(first)) => {
                let (first, last) = (as_action(first, op.symbol())?, as_action(last, op.symbol())?);
                lift(ActionFormulaKind::Binary(op, Box::new(first), Box::new(last)), span)
            }
            (RegularOperator::Not(start), _) => {
                lift(ActionFormulaKind::Not(Box::new(as_action(last, "!")?)), start.to(span))
            }
            (RegularOperator::Quantified(q, vars, start), _) => {
                let word = if q == Quantifier::Forall { "forall" } else { "exists" };
                lift(
                    ActionFormulaKind::Quantified(q, vars, Box::new(as_action(last, word)?)),
                    start.to(span),
                )
            }
            _ => unreachable!("an infix operator has two operands"),
        })
    }
}

fn lift(kind: ActionFormulaKind, span: Span) -> RegularFormula {
    Node::new(RegularKind::Action(Box::new(Node::new(kind, span))), span)
}

/// Returns the action formula that a regular formula consists of. Error: it is not a single one.
fn as_action(formula: RegularFormula, operator: &str) -> Built<ActionFormula> {
    let span = formula.span;
    let mut kind = formula.kind;
    if let RegularKind::Action(action) = &mut kind {
        return Ok(std::mem::replace(&mut **action, Node::new(ActionFormulaKind::True, span)));
    }
    Err(Diagnostic::at(Stage::Syntax, span, format!("`{operator}` is applied to a regular formula"))
        .note("`!`, `&&`, `||`, `=>`, `forall`, `exists` and `@` combine action formulas, which describe one step, without `.`, `+` and `*`"))
}

impl TreeBuilder {
    /// Builds a `state` pair.
    pub(super) fn state(&self, pair: P) -> Built<StateFormula> {
        let mut pairs = self.parts(pair).peekable();
        let mut stack = OperatorStack::<StateOperator>::new();
        loop {
            let Some(p) = pairs.next() else {
                unreachable!("the grammar ends a formula with an operand")
            };
            let span = self.span(&p);
            match p.as_rule() {
                Rule::not => {
                    stack.prefix(state::UNARY, StateOperator::Not(span));
                    continue;
                }
                Rule::minus => {
                    stack.prefix(state::UNARY, StateOperator::Minus(span));
                    continue;
                }
                Rule::must => {
                    let regular = self.regular(self.only_part(p))?;
                    stack.prefix(state::MODALITY, StateOperator::Must(regular, span));
                    continue;
                }
                Rule::may => {
                    let regular = self.regular(self.only_part(p))?;
                    stack.prefix(state::MODALITY, StateOperator::May(regular, span));
                    continue;
                }
                Rule::state_quantifier => {
                    let (quantifier, vars) = self.quantifier(p)?;
                    stack.prefix(
                        state::QUANTIFIER,
                        StateOperator::Quantified(quantifier, vars, span),
                    );
                    continue;
                }
                Rule::fix => {
                    stack.prefix(state::FIX, self.fix(p)?);
                    continue;
                }
                // A number multiplies its direct operand independent of preceding operators, except
                // before a last number: that multiplies everything before it.
                Rule::val if is_factor(pairs.clone()) => {
                    stack.prefix(state::MODALITY, StateOperator::Scale(self.state_primary(p)?));
                    pairs.next();
                    continue;
                }
                _ => stack.operand(self.state_primary(p)?),
            }
            let Some(p) = pairs.next() else { break };
            let op = state_op(&p);
            let (level, assoc) = op.state_level();
            stack.infix(level, assoc, StateOperator::Infix(op));
        }
        Ok(stack.finish())
    }

    fn quantifier(&self, pair: P) -> Built<(Quantifier, Vec<VarDecl>)> {
        let mut inner = self.parts(pair);
        let quantifier = match self.next(&mut inner).as_str() {
            "forall" => Quantifier::Forall,
            "exists" => Quantifier::Exists,
            "inf" => Quantifier::Infimum,
            "sup" => Quantifier::Supremum,
            _ => Quantifier::Sum,
        };
        Ok((quantifier, self.var_decls(self.next(&mut inner))?))
    }

    fn fix(&self, pair: P) -> Built<StateOperator> {
        let span = self.span(&pair);
        let mut inner = self.parts(pair);
        let least = self.next(&mut inner).as_str() == "mu";
        let name = self.ident(self.next(&mut inner));
        let mut params = Vec::new();
        for p in inner.flat_map(|p| self.parts(p)) {
            let mut parts = self.parts(p);
            let name = self.ident(self.next(&mut parts));
            let sort = self.sort(self.next(&mut parts))?;
            params.push((VarDecl { name, sort }, self.data(self.next(&mut parts))?));
        }
        Ok(StateOperator::Fix { least, name, params, span })
    }

    fn state_primary(&self, pair: P) -> Built<StateFormula> {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::truth if pair.as_str() == "true" => StateFormulaKind::True,
            Rule::truth => StateFormulaKind::False,
            Rule::val => StateFormulaKind::Val(Box::new(self.data(self.only_part(pair))?)),
            Rule::delay => StateFormulaKind::Delay(self.instant(pair)?),
            Rule::yaled => StateFormulaKind::Yaled(self.instant(pair)?),
            Rule::state_group => return self.state(self.only_part(pair)),
            _ => {
                let (name, args) = self.action(pair)?;
                StateFormulaKind::Var(name, args)
            }
        };
        Ok(Node::new(kind, span))
    }

    fn instant(&self, pair: P) -> Built<Option<Box<Data>>> {
        self.parts(pair).next().map(|t| self.data(t).map(Box::new)).transpose()
    }

    /// Builds a name with arguments.
    pub(super) fn action(&self, pair: P) -> Built<(Ident, Vec<Data>)> {
        let mut inner = self.parts(pair);
        let name = self.ident(self.next(&mut inner));
        let args = inner.next().map(|a| self.args(a)).transpose()?.unwrap_or_default();
        Ok((name, args))
    }

    /// Builds a `regular` pair.
    pub(super) fn regular(&self, pair: P) -> Built<RegularFormula> {
        let mut pairs = self.parts(pair).peekable();
        let mut stack = OperatorStack::<RegularOperator>::new();
        loop {
            let Some(p) = pairs.next() else {
                unreachable!("the grammar ends a formula with an operand")
            };
            let span = self.span(&p);
            match p.as_rule() {
                Rule::not => {
                    stack.prefix(action::NOT, RegularOperator::Not(span));
                    continue;
                }
                Rule::action_quantifier => {
                    let (quantifier, vars) = self.quantifier(p)?;
                    stack.prefix(
                        action::QUANTIFIER,
                        RegularOperator::Quantified(quantifier, vars, span),
                    );
                    continue;
                }
                _ => stack.operand(Ok(self.regular_primary(p)?)),
            }
            while let Some(p) =
                pairs.next_if(|p| matches!(p.as_rule(), Rule::star | Rule::iterate | Rule::at))
            {
                let span = self.span(&p);
                if p.as_rule() == Rule::at {
                    let time = self.data(self.only_part(p))?;
                    stack.postfix(action::AT, |r| {
                        let r = r?;
                        let span = r.span.to(time.span);
                        Ok(lift(
                            ActionFormulaKind::At(Box::new(as_action(r, "@")?), Box::new(time)),
                            span,
                        ))
                    });
                    continue;
                }
                let make =
                    if p.as_rule() == Rule::star { RegularKind::Star } else { RegularKind::Plus };
                stack.postfix(regular::REPEAT, |r| {
                    let r = r?;
                    let span = r.span.to(span);
                    Ok(Node::new(make(Box::new(r)), span))
                });
            }
            let Some(p) = pairs.next() else { break };
            match p.as_rule() {
                Rule::op_plus => {
                    stack.infix(regular::ALTERNATIVE, Assoc::Left, RegularOperator::Alt)
                }
                Rule::op_dot => stack.infix(regular::SEQUENCE, Assoc::Right, RegularOperator::Seq),
                _ => {
                    let op = state_op(&p);
                    let level = op.action_level().unwrap_or(action::IMPLIES);
                    stack.infix(level, Assoc::Right, RegularOperator::Infix(op));
                }
            }
        }
        stack.finish()
    }

    fn regular_primary(&self, pair: P) -> Built<RegularFormula> {
        let span = self.span(&pair);
        let kind = match pair.as_rule() {
            Rule::truth if pair.as_str() == "true" => ActionFormulaKind::True,
            Rule::truth => ActionFormulaKind::False,
            Rule::val => ActionFormulaKind::Val(Box::new(self.data(self.only_part(pair))?)),
            Rule::tau => ActionFormulaKind::MultiAction(Vec::new()),
            Rule::regular_group => return self.regular(self.only_part(pair)),
            _ => ActionFormulaKind::MultiAction(self.multi_action(self.parts(pair))?),
        };
        Ok(lift(kind, span))
    }

    /// Builds actions between bars.
    pub(super) fn multi_action<'i>(
        &self,
        pairs: impl Iterator<Item = P<'i>>,
    ) -> Built<Vec<(Ident, Vec<Data>)>> {
        pairs.filter(|p| p.as_rule() == Rule::action).map(|p| self.action(p)).collect()
    }
}

/// True if a number is followed by `*` and an operand that it multiplies.
fn is_factor<'i>(mut rest: impl Iterator<Item = P<'i>>) -> bool {
    let times = |p: Option<P<'i>>| p.is_some_and(|p| state_op(&p) == StateOp::Multiply);
    times(rest.next())
        && (rest.next().is_some_and(|p| p.as_rule() != Rule::val) || times(rest.next()))
}

fn state_op(pair: &P) -> StateOp {
    match pair.as_rule() {
        Rule::op_implies => StateOp::Implies,
        Rule::op_or => StateOp::Or,
        Rule::op_and => StateOp::And,
        Rule::op_plus => StateOp::Add,
        _ => StateOp::Multiply,
    }
}
