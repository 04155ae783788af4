//! Unrolling of unbounded quantifiers over numbers: equations that try one number after another.
//!
//! `forall w: Nat. f(w)` is the instance `Q(0)` of the greatest fixed point
//! `Q(w) = f(w) && Q(w + 1)`, and `exists` one of the least: the infinite conjunction and
//! disjunction. These equations are the innermost: a play that returns to another equation
//! infinitely often is decided by that one, a play that counts forever by the sign of the new one.
//! A breadth-first solver of instances is fair to all numbers, also of several quantifiers, and
//! terminates if some number decides.
//!
//! A new equation has the parameters of its context that its text mentions. Cost: linear, with a
//! text for each operand of the unrolled quantifiers.

use super::{FixpointEquation, PositiveFormula, grow_stack};
use ahash::AHashMap;
use mu_base::Span;
use mu_syntax::ast::{BinaryOp, Data, DataKind, Node, SortKind, UnaryOp, VarDecl};
use mu_syntax::print;

/// Selection of quantified variables to unroll: all of integer sorts, or those declared at these
/// positions.
#[derive(Clone, Debug, Default)]
pub struct UnrollSelection {
    /// All.
    pub all: bool,
    /// Positions of declarations.
    pub places: Vec<Span>,
}

/// Unrolls quantifiers. Returns the positions of the integer variables that are still quantified.
pub(super) fn unroll(equations: &mut Vec<FixpointEquation>, which: &UnrollSelection) -> Vec<Span> {
    let names = equations.iter().map(|e| e.name.kind.clone()).collect();
    let mut it = Unroller { which, names, new: Vec::new(), left: Vec::new() };
    for e in equations.iter_mut() {
        let body = std::mem::replace(&mut e.body, PositiveFormula::Const(true));
        e.body = it.body(body, &e.params);
    }
    // By sign, so that there are at most two blocks.
    let (least, greatest): (Vec<FixpointEquation>, Vec<FixpointEquation>) =
        it.new.into_iter().partition(|e| e.least);
    equations.extend(greatest.into_iter().chain(least));
    it.left
}

struct Unroller<'a> {
    which: &'a UnrollSelection,
    names: Vec<String>,
    new: Vec<FixpointEquation>,
    left: Vec<Span>,
}

/// True for an integer sort.
pub(super) fn is_integral(var: &VarDecl) -> bool {
    matches!(var.sort.kind, SortKind::Pos | SortKind::Nat | SortKind::Int)
}

fn node(kind: DataKind, span: Span) -> Data {
    Node::new(kind, span)
}

/// Returns the first number of a sort, and the successor of a variable.
fn numbers(var: &VarDecl) -> (Data, Data) {
    let span = var.name.span;
    let number = |n: &str| node(DataKind::Number(n.into()), span);
    let name = || Box::new(node(DataKind::Name(var.name.kind.clone()), span));
    let binary = |op, a, b| node(DataKind::Binary(op, a, b), span);
    match var.sort.kind {
        SortKind::Int => {
            // 0, 1, -1, 2, -2, …
            let positive = binary(BinaryOp::Greater, name(), Box::new(number("0")));
            let opposite = node(DataKind::Unary(UnaryOp::Minus, name()), span);
            let next = binary(BinaryOp::Subtract, Box::new(number("1")), name());
            let choose = Box::new(node(DataKind::Name("if".into()), span));
            (number("0"), node(DataKind::Apply(choose, vec![positive, opposite, next]), span))
        }
        ref kind => {
            let first = if matches!(kind, SortKind::Pos) { "1" } else { "0" };
            (number(first), binary(BinaryOp::Add, name(), Box::new(number("1"))))
        }
    }
}

impl Unroller<'_> {
    fn is_unrolled(&self, var: &VarDecl) -> bool {
        is_integral(var) && (self.which.all || self.which.places.contains(&var.name.span))
    }

    fn body(&mut self, formula: PositiveFormula, scope: &[VarDecl]) -> PositiveFormula {
        grow_stack(|| match formula {
            PositiveFormula::Const(_) | PositiveFormula::Val(_) | PositiveFormula::Call(..) => {
                formula
            }
            PositiveFormula::Junction(all, parts) => PositiveFormula::Junction(
                all,
                parts.into_iter().map(|p| self.body(p, scope)).collect(),
            ),
            PositiveFormula::Quantifier(all, mut vars, body) => {
                let Some(at) = vars.iter().position(|v| self.is_unrolled(v)) else {
                    self.left.extend(vars.iter().filter(|v| is_integral(v)).map(|v| v.name.span));
                    let inner = merge_scopes(scope, &vars);
                    return PositiveFormula::Quantifier(
                        all,
                        vars,
                        Box::new(self.body(*body, &inner)),
                    );
                };
                let var = vars.remove(at);
                let rest = if vars.is_empty() {
                    *body
                } else {
                    PositiveFormula::Quantifier(all, vars, body)
                };
                self.first_instance(all, var, rest, scope)
            }
        })
    }

    /// Returns the instance for the first number of a new equation.
    fn first_instance(
        &mut self,
        all: bool,
        var: VarDecl,
        body: PositiveFormula,
        scope: &[VarDecl],
    ) -> PositiveFormula {
        let mut words = AHashMap::new();
        collect_words(&body, &mut words);
        let inner = merge_scopes(scope, std::slice::from_ref(&var));
        let params: Vec<VarDecl> = inner
            .into_iter()
            .filter(|v| v.name.kind == var.name.kind || words.contains_key(&v.name.kind))
            .collect();
        let name = mu_data::print::unused_name("Q", |n| self.names.iter().any(|m| m == n));
        self.names.push(name.clone());
        let span = var.name.span;
        let (first, next) = numbers(&var);
        let call = |value: &Data| {
            let argument = |p: &VarDecl| {
                if p.name.kind == var.name.kind {
                    value.clone()
                } else {
                    node(DataKind::Name(p.name.kind.clone()), span)
                }
            };
            PositiveFormula::Call(
                Node::new(name.clone(), span),
                params.iter().map(argument).collect(),
            )
        };
        let (start, again) = (call(&first), call(&next));
        let here = self.body(body, &params);
        let body = match here {
            PositiveFormula::Junction(a, mut parts) if a == all => {
                parts.push(again);
                PositiveFormula::Junction(all, parts)
            }
            here => PositiveFormula::Junction(all, vec![here, again]),
        };
        self.new.push(FixpointEquation {
            least: !all,
            name: Node::new(name, span),
            params: params.clone(),
            body,
        });
        start
    }
}

/// Merges the variables of two scopes: a name refers to the last one.
fn merge_scopes(scope: &[VarDecl], more: &[VarDecl]) -> Vec<VarDecl> {
    let hidden = |v: &&VarDecl| !more.iter().any(|m| m.name.kind == v.name.kind);
    scope.iter().filter(hidden).chain(more).cloned().collect()
}

/// Collects the words of all expressions in a formula: a superset of its free variables.
pub(super) fn collect_words(formula: &PositiveFormula, words: &mut AHashMap<String, ()>) {
    let mut of = |data: &Data| {
        let text = print::data(data);
        let parts = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '\''));
        words.extend(parts.filter(|w| !w.is_empty()).map(|w| (w.to_string(), ())));
    };
    match formula {
        PositiveFormula::Const(_) => {}
        PositiveFormula::Val(data) => of(data),
        PositiveFormula::Call(_, args) => args.iter().for_each(of),
        PositiveFormula::Junction(_, parts) => {
            grow_stack(|| parts.iter().for_each(|p| collect_words(p, words)))
        }
        PositiveFormula::Quantifier(_, _, body) => grow_stack(|| collect_words(body, words)),
    }
}
