//! Contradicting equations: pairs of unconditional equations of one mapping that apply to the same
//! term and give different values.
//!
//! Critical pairs at the root (Knuth and Bendix, 1970): the left-hand sides are unified, and the
//! right-hand sides differ if their constructors differ at the same position. Nothing is evaluated:
//! right-hand sides that differ only after rewriting are not found; a pair that is found is a
//! contradiction. Cost: the number of pairs of equations per mapping, up to `MAX_PAIRS`,
//! each linear in the terms.

use crate::expr::{DataSpec, Equation, Expr, ExprKind};
use crate::print::expression;
use crate::signature::{Builtin, OpKind};
use ahash::AHashSet;
use mu_base::Span;
use mu_base::ids::{OpId, SortId, VarId};
use std::collections::HashMap;

/// Limit on the compared pairs of a specification; further pairs are not compared.
const MAX_PAIRS: usize = 1_000_000;
/// Limit on the compared nodes of a pair; a larger pair is not a contradiction.
const MAX_NODES: usize = 10_000;

/// The equation of a pair that a term belongs to: their variables differ, also with one name.
type Side = usize;

/// Returns the equations that contradict an earlier one of the file, in order.
pub fn contradictions(data: &DataSpec) -> Vec<Contradiction> {
    let special = data.special_sorts();
    let mut by_mapping: HashMap<OpId, Vec<&Equation>> = HashMap::new();
    let mut out = Vec::new();
    let mut pairs = 0;
    for equation in data.equations.iter().filter(|e| e.condition.is_none()) {
        let Some(op) = equation.lhs.head() else { continue };
        if !matches!(data.signature.op(op).kind, OpKind::Mapping) {
            continue;
        }
        let earlier = by_mapping.entry(op).or_default();
        pairs += earlier.len();
        if pairs > MAX_PAIRS {
            return out;
        }
        let other = earlier.iter().find(|other| contradicts(data, &special, other, equation));
        if let Some(other) = other {
            out.push(Contradiction {
                span: equation.span,
                earlier: other.span,
                text: format!(
                    "this equation contradicts `{} = {}`: both apply to the same terms",
                    expression(&data.signature, &other.lhs),
                    expression(&data.signature, &other.rhs)
                ),
            });
        }
        earlier.push(equation);
    }
    out
}

/// An equation that contradicts an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// The later equation.
    pub span: Span,
    /// The earlier equation.
    pub earlier: Span,
    /// A sentence about the later equation.
    pub text: String,
}

fn contradicts(
    data: &DataSpec,
    special: &AHashSet<SortId>,
    first: &Equation,
    second: &Equation,
) -> bool {
    let mut pair = SidePair { data, special, bound: HashMap::new(), nodes: 0 };
    pair.unify(&first.lhs, &second.lhs) && pair.differ(&first.rhs, &second.rhs)
}

/// The state of the comparison of two equations.
struct SidePair<'a> {
    data: &'a DataSpec,
    special: &'a AHashSet<SortId>,
    bound: HashMap<(Side, VarId), (Side, &'a Expr)>,
    nodes: usize,
}

impl<'a> SidePair<'a> {
    /// Unifies two left-hand sides. False if they have no common instance, or if this cannot be
    /// decided without evaluation.
    fn unify(&mut self, first: &'a Expr, second: &'a Expr) -> bool {
        // The head of both is the mapping; below it only constructors are decided.
        let mut work: Vec<((Side, &Expr), (Side, &Expr))> = match (&first.kind, &second.kind) {
            (ExprKind::Op(_), ExprKind::Op(_)) => Vec::new(),
            (ExprKind::Apply(f, xs), ExprKind::Apply(g, ys))
                if matches!((&f.kind, &g.kind), (ExprKind::Op(_), ExprKind::Op(_))) =>
            {
                xs.iter().zip(ys).map(|(x, y)| ((0, x), (1, y))).collect()
            }
            _ => return false,
        };
        while let Some((a, b)) = work.pop() {
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return false;
            }
            let (a, b) = (self.resolve(a), self.resolve(b));
            match (&a.1.kind, &b.1.kind) {
                (ExprKind::Var(v), ExprKind::Var(w)) if (a.0, v) == (b.0, w) => {}
                (ExprKind::Var(v), _) => {
                    self.bound.insert((a.0, *v), b);
                }
                (_, ExprKind::Var(w)) => {
                    self.bound.insert((b.0, *w), a);
                }
                (ExprKind::Number(n), ExprKind::Number(m)) if n == m => {}
                (ExprKind::Op(o), ExprKind::Op(p)) if o == p => {}
                _ => match (self.constructor_form(a.1), self.constructor_form(b.1)) {
                    (Some((f, xs)), Some((g, ys))) if f == g => {
                        work.extend(xs.iter().zip(ys).map(|(x, y)| ((a.0, x), (b.0, y))));
                    }
                    _ => return false,
                },
            }
        }
        true
    }

    /// True if two right-hand sides have different constructors or numbers at a position below
    /// constructors only.
    fn differ(&mut self, first: &'a Expr, second: &'a Expr) -> bool {
        let mut work = vec![((0, first), (1, second))];
        while let Some((a, b)) = work.pop() {
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return false;
            }
            let (a, b) = (self.resolve(a), self.resolve(b));
            if self.special.contains(&a.1.sort) {
                continue;
            }
            if let (ExprKind::Number(n), ExprKind::Number(m)) = (&a.1.kind, &b.1.kind) {
                if n != m {
                    return true;
                }
                continue;
            }
            let (Some((f, xs)), Some((g, ys))) =
                (self.constructor_form(a.1), self.constructor_form(b.1))
            else {
                continue;
            };
            if f != g {
                return true;
            }
            work.extend(xs.iter().zip(ys).map(|(x, y)| ((a.0, x), (b.0, y))));
        }
        false
    }

    /// Follows the bindings of a variable.
    fn resolve(&self, mut at: (Side, &'a Expr)) -> (Side, &'a Expr) {
        let mut steps = 0;
        while let ExprKind::Var(v) = &at.1.kind {
            match self.bound.get(&(at.0, *v)) {
                Some(next) if steps < MAX_NODES => at = *next,
                _ => break,
            }
            steps += 1;
        }
        at
    }

    /// Returns the constructor and the arguments of a term that begins with a constructor.
    fn constructor_form(&self, term: &'a Expr) -> Option<(OpId, &'a [Expr])> {
        let (op, arguments): (OpId, &[Expr]) = match &term.kind {
            ExprKind::Op(op) => (*op, &[]),
            ExprKind::Apply(head, arguments) => match head.kind {
                ExprKind::Op(op) => (op, arguments),
                _ => return None,
            },
            _ => return None,
        };
        self.is_constructor(op).then_some((op, arguments))
    }

    fn is_constructor(&self, op: OpId) -> bool {
        matches!(
            self.data.signature.op(op).kind,
            OpKind::Constructor(_)
                | OpKind::Builtin(
                    Builtin::True | Builtin::False | Builtin::EmptyList | Builtin::Cons
                )
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::typecheck::Checker;
    use mu_base::SourceId;

    /// Returns the texts of contradictions of a specification.
    fn contradiction_texts(text: &str) -> Vec<String> {
        let tree = mu_syntax::parse_specification(SourceId::FIRST, text).unwrap();
        let mut checker = Checker::new(DataSpec::default());
        checker.declare(&tree.sections).unwrap();
        checker.check_equations(&tree.sections).unwrap();
        contradictions(&checker.data).into_iter().map(|c| c.text).collect()
    }

    #[test]
    fn overlapping_equations_with_different_values() {
        let head = "sort D = struct d(Nat) | e; map f: Nat -> Nat; g: D # List(Nat) -> Bool; c: D; \
                    h: D -> D; var n, m: Nat; x, y: D; l, k: List(Nat); eqn ";
        for text in [
            "f(n) = 1; f(m) = 2;",
            "f(3) = 1; f(n) = 2;",
            "g(x, []) = true; g(e, l) = false;",
            "g(d(n), l) = true; g(y, m |> k) = false;",
            "c = e; c = d(1);",
            "h(x) = x; h(d(2)) = e;",
            "h(d(n)) = d(1); h(x) = d(2);",
            "g(x, l) = true; g(h(x), l) = false;",
        ] {
            assert_eq!(contradiction_texts(&format!("{head}{text}")).len(), 1, "{text}");
        }
        for text in [
            "f(3) = 1; f(4) = 2;",
            "f(n) = n; f(3) = 3;",
            "n < 2 -> f(n) = 1; f(n) = 2;",
            "g(x, []) = true; g(x, n |> l) = false;",
            "g(e, l) = true; g(d(n), l) = false;",
            "h(x) = x; h(e) = e;",
            "h(d(n)) = d(n); h(x) = x;",
            "f(n) = f(n + 1); f(m) = 2;",
        ] {
            assert_eq!(contradiction_texts(&format!("{head}{text}")), [""; 0], "{text}");
        }
    }
}
