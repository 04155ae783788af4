//! Conditions on states in formulas: `val(state[n] = Exclusive)` over the variables of a model.
//!
//! In: the text of a formula, the names of a model's variables and functions. Out: a formula
//! without conditions, and the conditions for the front end, which adds two steps for each
//! ([`crate::Condition`]): `val_1(n)` where it is true, `not_val_1(n)` where it is false. So every
//! engine evaluates conditions, and no engine knows them.
//!
//! A condition becomes `[not_val_1(n)]false` or `<val_1(n)>true`. They are equivalent, because
//! exactly one of the two steps exists; the form is that of the modality around it, so that a
//! safety property remains one. All other action formulas exclude these steps: `true` becomes `true
//! && !(exists n: Node. val_1(n) || not_val_1(n))`, so a condition changes the meaning of no other
//! part. A condition is false for values of a variable outside of its type. Quantifiers over named
//! parts of sorts of numbers become bounded ones. Cost: linear.
//!
//! A `val` is a condition if it mentions one of the names, and the formula binds no variable of
//! that name there, or if it has operators of the model's language that data have not. Places stay:
//! a condition is replaced by a variable and blanks of its length.

use crate::Condition;
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};
pub use mu_murphi::labels::{NamedSubset, Values};
use mu_syntax::ast::{
    ActionFormula, ActionFormulaKind, BinaryOp, Data, DataKind, FormulaFile, Ident, Node,
    Quantifier, RegularFormula, RegularKind, SortKind, StateFormula, StateFormulaKind, StateOp,
    VarDecl,
};
use std::collections::BTreeSet;

/// Formula with its conditions.
#[derive(Clone, Debug)]
pub struct ConditionedFormula {
    /// The formula as written.
    written: String,
    /// The formula in which variables stand for the conditions.
    text: String,
    /// Names of these variables, with the conditions and the declarations of their variables.
    conditions: Vec<(String, Condition, Vec<VarDecl>)>,
}

/// Finds the conditions of a formula. `names`: the variables and functions of the model. `first`:
/// the number of earlier conditions.
///
/// # Errors
/// A condition in an action formula; a variable of a condition that has no type of the model.
pub fn find(
    source: SourceId,
    text: &str,
    names: &[String],
    first: usize,
) -> Result<ConditionedFormula, Diagnostic> {
    let mut out = ConditionedFormula::plain(text);
    let prefix = unused_prefix(text);
    let mut found: Vec<(Span, String, std::ops::Range<usize>)> = Vec::new();
    for (whole, part) in values(text) {
        let words = words(&text[part.clone()]);
        let mentioned = words.iter().any(|w| names.iter().any(|n| n == w));
        if !mentioned && !is_expression_of_model(&text[part.clone()], &words) {
            continue;
        }
        let name = format!("{prefix}{}", found.len());
        let length = whole.len().saturating_sub(name.len());
        out.text.replace_range(whole.clone(), &format!("{name}{}", " ".repeat(length)));
        let span =
            Span { source, start: narrow::index(whole.start), end: narrow::index(whole.end) };
        found.push((span, name, part));
    }
    if found.is_empty() {
        return Ok(out);
    }
    let file = mu_syntax::parse_formula(source, &out.text)?;
    let mut scopes: Vec<(String, Vec<VarDecl>)> = Vec::new();
    collect(&file.formula, &mut Vec::new(), &mut scopes);
    for (number, (span, name, part)) in found.into_iter().enumerate() {
        let Some((_, scope)) = scopes.iter().find(|s| s.0 == name) else {
            let message = "a condition on variables of the model in an action formula";
            return Err(Diagnostic::at(Stage::Unsupported, span, message)
                .note("expected it in a state formula: `[a] (val(x = 1) => …)`"));
        };
        let words = words(&text[part.clone()]);
        let mut own: Vec<VarDecl> = Vec::new();
        for v in scope.iter().rev() {
            let is_new = own.iter().all(|o| o.name.kind != v.name.kind);
            if is_new && words.contains(v.name.kind.as_str()) {
                own.push(v.clone());
            }
        }
        let ty = |v: &VarDecl| match &v.sort.kind {
            SortKind::Name(name) => Ok(name.clone()),
            SortKind::Bool => Ok("boolean".to_string()),
            _ => {
                let message = format!(
                    "`{}` is a variable of a condition, so its sort is a type of the model",
                    v.name.kind
                );
                Err(Diagnostic::at(Stage::Type, v.sort.span, message)
                    .note("expected the name of a type, or `Bool`"))
            }
        };
        let variables: Result<Vec<_>, Diagnostic> =
            own.iter().map(|v| Ok((v.name.kind.clone(), ty(v)?, v.name.span))).collect();
        let condition = Condition {
            name: format!("val_{}", first + number + 1),
            source,
            text: text.to_string(),
            part,
            variables: variables?,
        };
        out.conditions.push((name, condition, own));
    }
    Ok(out)
}

/// Parses a formula without its model. Conditions with operators of the model's language are not
/// examined.
///
/// # Errors
/// The rest of the text is no formula.
pub fn parse_without_model(source: SourceId, text: &str) -> Result<FormulaFile, Diagnostic> {
    // A formula without operators of a model's language.
    if let Ok(file) = mu_syntax::parse_formula(source, text) {
        return Ok(file);
    }
    let found = find(source, text, &[], 0)?;
    found.parse(source, &[&found], &[])
}

impl ConditionedFormula {
    /// Creates a formula without conditions.
    pub fn plain(text: &str) -> Self {
        Self { written: text.to_string(), text: text.to_string(), conditions: Vec::new() }
    }
    /// True if this is the formula with the text.
    pub fn is_of(&self, text: &str) -> bool {
        self.written == text
    }
    /// Returns the conditions, in the order of the text.
    pub fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.conditions.iter().map(|c| &c.1)
    }
    /// Parses the formula. `all`: the formulas with conditions on the same model, this one
    /// included, in which case steps that show conditions exist. `subsets`: named parts of sorts.
    ///
    /// # Errors
    /// The text is no formula.
    pub fn parse(
        &self,
        source: SourceId,
        all: &[&ConditionedFormula],
        subsets: &[NamedSubset],
    ) -> Result<FormulaFile, Diagnostic> {
        let file = mu_syntax::parse_formula(source, &self.text)?;
        let shown: Vec<ActionFormula> =
            all.iter().flat_map(|f| &f.conditions).map(|c| steps(&c.1, &c.2, subsets)).collect();
        if shown.is_empty() && subsets.is_empty() {
            return Ok(file);
        }
        let rewriting = Rewriting { formula: self, shown, subsets };
        let formula = rewriting.state(&file.formula, true, true);
        Ok(FormulaFile { formula, ..file })
    }
}

/// Returns a text with which no word of the formula begins.
fn unused_prefix(text: &str) -> String {
    let letters = || 'A'..='Z';
    let all = letters().flat_map(|a| letters().map(move |b| format!("{a}{b}")));
    all.into_iter().find(|p| !text.contains(p.as_str())).unwrap_or_else(|| "Zz".to_string())
}

/// Returns the places of `val(…)`, and of the text in its parentheses.
fn values(text: &str) -> Vec<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'\'';
    while at < bytes.len() {
        if bytes[at] == b'%' {
            at += bytes[at..].iter().take_while(|b| **b != b'\n').count();
            continue;
        }
        let begins = (at == 0 || !is_word(bytes[at - 1])) && text.is_char_boundary(at);
        let length = 3 + bytes[(at + 3).min(bytes.len())..]
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        if !begins || !bytes[at..].starts_with(b"val") || bytes.get(at + length) != Some(&b'(') {
            at += 1;
            continue;
        }
        let (open, mut depth, mut end) = (at + length, 0, at + length);
        while end < bytes.len() {
            depth += i32::from(bytes[end] == b'(') - i32::from(bytes[end] == b')');
            end += 1;
            if depth == 0 {
                break;
            }
        }
        if depth == 0 {
            out.push((at..end, open + 1..end - 1));
        }
        at = end;
    }
    out
}

/// True if a text is an expression of the model's language and none of data, such as `x = 1`: a
/// misspelled name is then reported as one.
fn is_expression_of_model(text: &str, words: &BTreeSet<&str>) -> bool {
    let bytes = text.as_bytes();
    let is_equality = |at: usize| {
        let before = at.checked_sub(1).map_or(b' ', |b| bytes[b]);
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        bytes[at] == b'=' && !b"=<>!:".contains(&before) && !b"=>".contains(&after)
    };
    // `whr x = e end` is data.
    !words.contains("whr")
        && (["isundefined", "do", "end"].iter().any(|w| words.contains(w))
            || (0..bytes.len()).any(is_equality))
}

/// Returns the words of a text that may be names.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|w| !w.is_empty())
        .collect()
}

/// Collects the fixed-point variables with the data variables in scope.
fn collect(
    formula: &StateFormula,
    scope: &mut Vec<VarDecl>,
    out: &mut Vec<(String, Vec<VarDecl>)>,
) {
    stacker::maybe_grow(64 << 10, 1 << 20, || {
        let depth = scope.len();
        match &formula.kind {
            StateFormulaKind::Var(name, _) => out.push((name.kind.clone(), scope.clone())),
            StateFormulaKind::Not(a)
            | StateFormulaKind::Minus(a)
            | StateFormulaKind::Must(_, a)
            | StateFormulaKind::May(_, a) => collect(a, scope, out),
            StateFormulaKind::Binary(_, a, b) => {
                collect(a, scope, out);
                collect(b, scope, out);
            }
            StateFormulaKind::Quantified(_, variables, a) => {
                scope.extend(variables.iter().cloned());
                collect(a, scope, out);
            }
            StateFormulaKind::Fix { params, body, .. } => {
                scope.extend(params.iter().map(|p| p.0.clone()));
                collect(body, scope, out);
            }
            StateFormulaKind::True
            | StateFormulaKind::False
            | StateFormulaKind::Val(_)
            | StateFormulaKind::Delay(_)
            | StateFormulaKind::Yaled(_) => {}
        }
        scope.truncate(depth);
    });
}

/// Returns the action formula of all steps that show a condition.
fn steps(condition: &Condition, variables: &[VarDecl], subsets: &[NamedSubset]) -> ActionFormula {
    let span = variables.first().map_or_else(Span::default, |v| v.name.span);
    let either = [false, true].map(|negated| label(condition, variables, negated, span));
    let [a, b] = either;
    let both = node(ActionFormulaKind::Binary(StateOp::Or, Box::new(a), Box::new(b)), span);
    if variables.is_empty() {
        return both;
    }
    let bounds = variables.iter().filter_map(|v| bounds(v, subsets)).map(|data| {
        let span = data.span;
        node(ActionFormulaKind::Val(Box::new(data)), span)
    });
    let body = bounds.fold(both, |all, bound| {
        node(ActionFormulaKind::Binary(StateOp::And, Box::new(bound), Box::new(all)), span)
    });
    node(
        ActionFormulaKind::Quantified(Quantifier::Exists, variables.to_vec(), Box::new(body)),
        span,
    )
}

/// Returns the label of a condition as an action formula.
fn label(condition: &Condition, variables: &[VarDecl], negated: bool, span: Span) -> ActionFormula {
    let name = if negated { format!("not_{}", condition.name) } else { condition.name.clone() };
    let data = |v: &VarDecl| node(DataKind::Name(v.name.kind.clone()), span);
    let arguments = variables.iter().map(data).collect();
    let name: Ident = node(name, span);
    node(ActionFormulaKind::MultiAction(vec![(name, arguments)]), span)
}

fn node<K>(kind: K, span: Span) -> Node<K> {
    Node { kind, span }
}

/// Returns the condition that a variable is in the part of a sort that its sort names.
fn bounds(variable: &VarDecl, subsets: &[NamedSubset]) -> Option<Data> {
    let SortKind::Name(sort) = &variable.sort.kind else { return None };
    let subset = subsets.iter().find(|r| r.name == *sort)?;
    let span = variable.sort.span;
    let name = || node(DataKind::Name(variable.name.kind.clone()), span);
    let binary = |op, a: Data, b: Data| node(DataKind::Binary(op, Box::new(a), Box::new(b)), span);
    let number = |n: i64| {
        let magnitude = node(DataKind::Number(n.unsigned_abs().to_string()), span);
        match n {
            0.. => magnitude,
            _ => node(DataKind::Unary(mu_syntax::ast::UnaryOp::Minus, Box::new(magnitude)), span),
        }
    };
    match &subset.values {
        Values::Interval(low, high) => {
            let low = binary(BinaryOp::LessEqual, number(*low), name());
            Some(binary(BinaryOp::And, low, binary(BinaryOp::LessEqual, name(), number(*high))))
        }
        Values::Constants(all) => {
            let equal =
                |c: &String| binary(BinaryOp::Equal, name(), node(DataKind::Name(c.clone()), span));
            all.iter().map(equal).reduce(|a, b| binary(BinaryOp::Or, a, b))
        }
    }
}

struct Rewriting<'f> {
    formula: &'f ConditionedFormula,
    /// Steps that show conditions.
    shown: Vec<ActionFormula>,
    subsets: &'f [NamedSubset],
}

impl Rewriting<'_> {
    /// Rewrites a formula. `positive`: it is under an even number of negations. `boxed`: the
    /// modality around it is `[…]` when negations are pushed inwards, or there is none.
    fn state(&self, formula: &StateFormula, positive: bool, boxed: bool) -> StateFormula {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let span = formula.span;
            let recur =
                |a: &StateFormula, positive, boxed| Box::new(self.state(a, positive, boxed));
            let kind = match &formula.kind {
                StateFormulaKind::Var(name, _) => {
                    let all = &self.formula.conditions;
                    match all.iter().find(|c| c.0 == name.kind) {
                        Some((_, condition, variables)) => {
                            let must = positive == boxed;
                            let action = label(condition, variables, must, span);
                            let one = node(RegularKind::Action(Box::new(action)), span);
                            let rest = match must {
                                true => StateFormulaKind::False,
                                false => StateFormulaKind::True,
                            };
                            let (one, rest) = (Box::new(one), Box::new(node(rest, span)));
                            let shown = match must {
                                true => StateFormulaKind::Must(one, rest),
                                false => StateFormulaKind::May(one, rest),
                            };
                            // Steps exist for the values of a type alone: for another value, as a
                            // parameter of a fixed point may have, the condition is false.
                            let bounds = variables.iter().filter_map(|v| bounds(v, self.subsets));
                            bounds.fold(shown, |all, data| {
                                let bound = node(StateFormulaKind::Val(Box::new(data)), span);
                                let all = Box::new(node(all, span));
                                StateFormulaKind::Binary(StateOp::And, Box::new(bound), all)
                            })
                        }
                        None => formula.kind.clone(),
                    }
                }
                StateFormulaKind::Not(a) => StateFormulaKind::Not(recur(a, !positive, boxed)),
                StateFormulaKind::Minus(a) => StateFormulaKind::Minus(recur(a, positive, boxed)),
                StateFormulaKind::Binary(op, a, b) => {
                    let first = if *op == StateOp::Implies { !positive } else { positive };
                    let a = recur(a, first, boxed);
                    StateFormulaKind::Binary(*op, a, recur(b, positive, boxed))
                }
                StateFormulaKind::Quantified(quantifier, variables, a) => {
                    let body = self.state(a, positive, boxed);
                    let body = Box::new(self.add_bounds(*quantifier, variables, body));
                    StateFormulaKind::Quantified(*quantifier, variables.clone(), body)
                }
                StateFormulaKind::Must(r, a) => {
                    StateFormulaKind::Must(Box::new(self.regular(r)), recur(a, positive, positive))
                }
                StateFormulaKind::May(r, a) => {
                    StateFormulaKind::May(Box::new(self.regular(r)), recur(a, positive, !positive))
                }
                StateFormulaKind::Fix { least, name, params, body } => StateFormulaKind::Fix {
                    least: *least,
                    name: name.clone(),
                    params: params.clone(),
                    body: recur(body, positive, boxed),
                },
                other => other.clone(),
            };
            node(kind, span)
        })
    }
    /// Adds the bounds of quantified variables: no other value counts.
    fn add_bounds(
        &self,
        quantifier: Quantifier,
        variables: &[VarDecl],
        body: StateFormula,
    ) -> StateFormula {
        variables.iter().filter_map(|v| bounds(v, self.subsets)).fold(body, |body, data| {
            let (span, place) = (body.span, data.span);
            let value = |data| Box::new(node(StateFormulaKind::Val(Box::new(data)), place));
            let joined = |op, data, body| StateFormulaKind::Binary(op, value(data), Box::new(body));
            let kind = match (quantifier, &body.kind) {
                // Right above a modality, a bound in the action keeps the form from which the
                // values of the variable are known.
                (Quantifier::Infimum, StateFormulaKind::Must(r, a)) if is_action(r) => {
                    StateFormulaKind::Must(Box::new(bounded_action(r, data)), a.clone())
                }
                (Quantifier::Supremum, StateFormulaKind::May(r, a)) if is_action(r) => {
                    StateFormulaKind::May(Box::new(bounded_action(r, data)), a.clone())
                }
                (Quantifier::Forall | Quantifier::Infimum, _) => {
                    joined(StateOp::Implies, data, body)
                }
                (Quantifier::Exists | Quantifier::Supremum, _) => joined(StateOp::And, data, body),
                // Zero times any value is zero.
                (Quantifier::Sum, _) => {
                    let name = |text: &str| node(DataKind::Name(text.to_string()), place);
                    let number = |n: &str| node(DataKind::Number(n.to_string()), place);
                    let factor =
                        DataKind::Apply(Box::new(name("if")), vec![data, number("1"), number("0")]);
                    joined(StateOp::Multiply, node(factor, place), body)
                }
            };
            node(kind, span)
        })
    }
    fn regular(&self, formula: &RegularFormula) -> RegularFormula {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let span = formula.span;
            let recur = |r: &RegularFormula| Box::new(self.regular(r));
            let kind = match &formula.kind {
                RegularKind::Action(a) => RegularKind::Action(Box::new(self.exclude_conditions(a))),
                RegularKind::Seq(a, b) => RegularKind::Seq(recur(a), recur(b)),
                RegularKind::Alt(a, b) => RegularKind::Alt(recur(a), recur(b)),
                RegularKind::Star(a) => RegularKind::Star(recur(a)),
                RegularKind::Plus(a) => RegularKind::Plus(recur(a)),
            };
            node(kind, span)
        })
    }
    /// Excludes the steps that show conditions from an action formula.
    fn exclude_conditions(&self, action: &ActionFormula) -> ActionFormula {
        let action = self.action(action);
        if names_only(&action) {
            return action;
        }
        let span = action.span;
        self.shown.iter().fold(action, |all, steps| {
            let not = node(ActionFormulaKind::Not(Box::new(steps.clone())), span);
            node(ActionFormulaKind::Binary(StateOp::And, Box::new(all), Box::new(not)), span)
        })
    }
    /// Adds the bounds of quantified variables over intervals to an action formula.
    fn action(&self, action: &ActionFormula) -> ActionFormula {
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            let span = action.span;
            let recur = |a: &ActionFormula| Box::new(self.action(a));
            let kind = match &action.kind {
                ActionFormulaKind::Not(a) => ActionFormulaKind::Not(recur(a)),
                ActionFormulaKind::Binary(op, a, b) => {
                    ActionFormulaKind::Binary(*op, recur(a), recur(b))
                }
                ActionFormulaKind::At(a, time) => ActionFormulaKind::At(recur(a), time.clone()),
                ActionFormulaKind::Quantified(quantifier, variables, a) => {
                    let op = match quantifier {
                        Quantifier::Forall => StateOp::Implies,
                        _ => StateOp::And,
                    };
                    let bounds = variables.iter().filter_map(|v| bounds(v, self.subsets));
                    let body = bounds.fold(self.action(a), |body, data| {
                        let place = data.span;
                        let bound = node(ActionFormulaKind::Val(Box::new(data)), place);
                        node(ActionFormulaKind::Binary(op, Box::new(bound), Box::new(body)), place)
                    });
                    ActionFormulaKind::Quantified(*quantifier, variables.clone(), Box::new(body))
                }
                other => other.clone(),
            };
            node(kind, span)
        })
    }
}

fn is_action(formula: &RegularFormula) -> bool {
    matches!(formula.kind, RegularKind::Action(_))
}

/// Adds a bound to a formula of a single action.
fn bounded_action(formula: &RegularFormula, data: Data) -> RegularFormula {
    let RegularKind::Action(action) = &formula.kind else { return formula.clone() };
    let bound = Box::new(node(ActionFormulaKind::Val(Box::new(data.clone())), data.span));
    let both = ActionFormulaKind::Binary(StateOp::And, bound, action.clone());
    node(RegularKind::Action(Box::new(node(both, formula.span))), formula.span)
}

/// True if an action formula matches no step but those that it names.
fn names_only(action: &ActionFormula) -> bool {
    stacker::maybe_grow(64 << 10, 1 << 20, || match &action.kind {
        ActionFormulaKind::MultiAction(_) | ActionFormulaKind::False => true,
        ActionFormulaKind::Binary(StateOp::Or, a, b) => names_only(a) && names_only(b),
        ActionFormulaKind::Binary(StateOp::And, a, b) => names_only(a) || names_only(b),
        ActionFormulaKind::Quantified(Quantifier::Exists, _, a) | ActionFormulaKind::At(a, _) => {
            names_only(a)
        }
        _ => false,
    })
}
