//! Constants mentioned by a formula, directly or through the equations of the operations that it
//! uses.
//!
//! In: a typed formula. Out: the constructors that occur ([`mentions`]); `None` if some operation
//! compares values by an order. A permutation of the other constants commutes with the successors
//! of formula states along labels: the data language has no other means to distinguish constants of
//! a sort (parametricity; cf. Ip, Dill, "Better Verification Through Symmetry", 1996, for scalar
//! sets). Cost: linear in the formula and the equations that it reaches.

use ahash::AHashSet;
use mu_base::ids::OpId;
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::SortKind;
use mu_formula::typed::{Action, Regular, StateKind, TypedFormula, TypedStateFormula};

/// Returns the constructors that a formula mentions; `None` if it uses an order on sorts that have
/// no order of their own.
pub fn mentions(formula: &TypedFormula) -> Option<AHashSet<OpId>> {
    let mut reached = ConstantCollector {
        signature: &formula.data.signature,
        ops: AHashSet::new(),
        new: Vec::new(),
        ordered: false,
    };
    reached.state(&formula.formula);
    while let Some(op) = reached.new.pop() {
        for equation in formula.data.equations.iter().filter(|e| e.lhs.head() == Some(op)) {
            reached.expr(&equation.lhs);
            reached.expr(&equation.rhs);
            equation.condition.iter().for_each(|c| reached.expr(c));
        }
    }
    if reached.ordered {
        return None;
    }
    let signature = &formula.data.signature;
    let mut out = AHashSet::new();
    for op in reached.ops {
        match &signature.op(op).kind {
            OpKind::Constructor(_) => {
                out.insert(op);
            }
            OpKind::Recogniser(of) => out.extend(of),
            _ => {}
        }
    }
    Some(out)
}

struct ConstantCollector<'a> {
    signature: &'a Signature,
    ops: AHashSet<OpId>,
    new: Vec<OpId>,
    ordered: bool,
}

impl ConstantCollector<'_> {
    fn op(&mut self, op: OpId) {
        if !self.ops.insert(op) {
            return;
        }
        self.new.push(op);
        if let OpKind::Builtin(builtin) = self.signature.op(op).kind {
            let first = match self.signature.sorts.kind(self.signature.op(op).sort) {
                SortKind::Function(domain, _) => domain.first().copied(),
                _ => None,
            };
            let plain = first.is_some_and(|s| {
                use SortKind::{Bool, Int, Nat, Pos, Real};
                matches!(self.signature.sorts.kind(s), Bool | Pos | Nat | Int | Real)
            });
            self.ordered |= match builtin {
                Builtin::Less
                | Builtin::LessEqual
                | Builtin::Greater
                | Builtin::GreaterEqual
                | Builtin::Max
                | Builtin::Min => !plain,
                Builtin::Pick => true,
                _ => false,
            };
        }
    }

    fn expr(&mut self, e: &Expr) {
        e.each_op(&mut |op| self.op(op));
    }

    fn state(&mut self, s: &TypedStateFormula) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match &s.kind {
            StateKind::True | StateKind::False => {}
            StateKind::Val(e) => self.expr(e),
            StateKind::Not(a) | StateKind::Forall(_, a) | StateKind::Exists(_, a) => self.state(a),
            StateKind::And(a, b) | StateKind::Or(a, b) | StateKind::Implies(a, b) => {
                self.state(a);
                self.state(b);
            }
            StateKind::Must(r, a) | StateKind::May(r, a) => {
                self.regular(r);
                self.state(a);
            }
            StateKind::Fix { params, body, .. } => {
                params.iter().for_each(|p| self.expr(&p.1));
                self.state(body);
            }
            StateKind::Var(_, args) => args.iter().for_each(|a| self.expr(a)),
        })
    }

    fn regular(&mut self, r: &Regular) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match r {
            Regular::Action(a) => self.action(a),
            Regular::Seq(a, b) | Regular::Alt(a, b) => {
                self.regular(a);
                self.regular(b);
            }
            Regular::Star(a) | Regular::Plus(a) => self.regular(a),
        })
    }

    fn action(&mut self, a: &Action) {
        stacker::maybe_grow(64 << 10, 1 << 20, || match a {
            Action::True | Action::False => {}
            Action::Val(e) => self.expr(e),
            Action::Multi(acts) => acts.iter().flat_map(|a| &a.1).for_each(|e| self.expr(e)),
            Action::Not(a) | Action::Forall(_, a) | Action::Exists(_, a) => self.action(a),
            Action::And(a, b) | Action::Or(a, b) | Action::Implies(a, b) => {
                self.action(a);
                self.action(b);
            }
        })
    }
}
