//! Conditions of labels as trees of atoms: what each atom reads is small, so its value is known
//! from other labels.
//!
//! In: a condition of the formula, values of its atoms, as far as they are known. Out: its value,
//! if these decide it. The connectives are evaluated with three values, where an atom without a
//! value is unknown (Kleene, *Introduction to metamathematics*, 1952). Cost: linear in the
//! condition.

use super::evaluate::Term;
use ahash::AHashMap;
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, Signature};

/// A condition.
#[derive(Clone, Debug)]
enum Tree {
    Atom(usize),
    Not(Box<Tree>),
    And(Box<(Tree, Tree)>),
    Or(Box<(Tree, Tree)>),
}

/// A condition with its atoms.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    /// Number of the condition.
    pub number: u32,
    tree: Tree,
    /// Atoms with their numbers, the same in all conditions.
    pub atoms: Vec<(u32, Term)>,
}

impl Condition {
    /// Divides a condition at its connectives. `numbers`: those of atoms so far.
    pub fn new(
        signature: &Signature,
        number: u32,
        e: &Expr,
        numbers: &mut AHashMap<Expr, u32>,
    ) -> Self {
        let mut atoms = Vec::new();
        let tree = divide(signature, e, &mut atoms);
        let numbered = atoms.into_iter().map(|term| {
            let new = numbers.len() as u32;
            (*numbers.entry(term.e.clone()).or_insert(new), term)
        });
        Self { number, tree, atoms: numbered.collect() }
    }

    /// Returns the value of the condition for values of atoms; `None` if these do not decide it.
    pub fn truth(&self, known: &mut dyn FnMut(usize) -> Option<bool>) -> Option<bool> {
        tree_truth(&self.tree, known)
    }
}

fn divide(signature: &Signature, e: &Expr, atoms: &mut Vec<Term>) -> Tree {
    let both = |a: Tree, b: Tree| Box::new((a, b));
    stacker::maybe_grow(64 << 10, 1 << 20, || match e.as_builtin(signature) {
        Some((Builtin::Not, [a])) => Tree::Not(Box::new(divide(signature, a, atoms))),
        Some((Builtin::And, [a, b])) => {
            let a = divide(signature, a, atoms);
            Tree::And(both(a, divide(signature, b, atoms)))
        }
        Some((Builtin::Or, [a, b])) => {
            let a = divide(signature, a, atoms);
            Tree::Or(both(a, divide(signature, b, atoms)))
        }
        Some((Builtin::Implies, [a, b])) => {
            let a = Tree::Not(Box::new(divide(signature, a, atoms)));
            Tree::Or(both(a, divide(signature, b, atoms)))
        }
        _ => {
            let known = atoms.iter().position(|t| t.e == *e);
            Tree::Atom(known.unwrap_or_else(|| {
                atoms.push(Term::new(e));
                atoms.len() - 1
            }))
        }
    })
}

fn tree_truth(tree: &Tree, known: &mut dyn FnMut(usize) -> Option<bool>) -> Option<bool> {
    match tree {
        Tree::Atom(i) => known(*i),
        Tree::Not(inner) => tree_truth(inner, known).map(|b| !b),
        Tree::And(both) | Tree::Or(both) => {
            let decisive = matches!(tree, Tree::Or(_));
            let a = tree_truth(&both.0, known);
            if a == Some(decisive) {
                return a;
            }
            let b = tree_truth(&both.1, known);
            if b == Some(decisive) || a.is_some() {
                return b;
            }
            None
        }
    }
}
