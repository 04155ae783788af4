//! Iterative destruction of syntax trees, so that a chain of a hundred thousand operators does not
//! overflow the machine stack.
//!
//! Each kind of tree moves its children of the same kind to a list and drops them from there. Cost:
//! linear in the tree, one list during destruction, nothing for leaves. Consequence: parts of a
//! kind cannot be moved out of a pattern; borrow or take them.

use std::mem;

use super::ast::*;

/// Tree with subtrees of the same kind.
trait Tree: Sized {
    /// Returns a leaf without cost.
    fn leaf() -> Self;
    /// True if it has no subtrees of the kind.
    fn is_leaf(&self) -> bool;
    /// Visits the direct subtrees of the kind.
    fn each_child(&mut self, visit: &mut impl FnMut(&mut Self));
}

/// Moves the subtrees that have subtrees themselves.
fn take_children<T: Tree>(tree: &mut T, to: &mut Vec<T>) {
    tree.each_child(&mut |child: &mut T| {
        if !child.is_leaf() {
            to.push(mem::replace(child, T::leaf()));
        }
    });
}

fn dismantle<T: Tree>(tree: &mut T) {
    if tree.is_leaf() {
        return;
    }
    let mut rest = Vec::new();
    take_children(tree, &mut rest);
    while let Some(mut tree) = rest.pop() {
        take_children(&mut tree, &mut rest);
    }
}

macro_rules! drop_by_dismantling {
    ($($kind:ty),+) => {$(
        impl Drop for $kind {
            fn drop(&mut self) {
                dismantle(self);
            }
        }
    )+};
}
drop_by_dismantling!(
    SortKind,
    DataKind,
    ProcessKind,
    StateFormulaKind,
    RegularKind,
    ActionFormulaKind
);

impl Tree for SortKind {
    fn leaf() -> Self {
        SortKind::Bool
    }
    fn is_leaf(&self) -> bool {
        matches!(
            self,
            SortKind::Bool
                | SortKind::Pos
                | SortKind::Nat
                | SortKind::Int
                | SortKind::Real
                | SortKind::Name(_)
        )
    }
    fn each_child(&mut self, visit: &mut impl FnMut(&mut Self)) {
        match self {
            SortKind::Bool
            | SortKind::Pos
            | SortKind::Nat
            | SortKind::Int
            | SortKind::Real
            | SortKind::Name(_) => {}
            SortKind::List(s)
            | SortKind::Set(s)
            | SortKind::Bag(s)
            | SortKind::FSet(s)
            | SortKind::FBag(s) => visit(&mut s.kind),
            SortKind::Struct(constructors) => constructors
                .iter_mut()
                .flat_map(|c| &mut c.args)
                .for_each(|(_, s)| visit(&mut s.kind)),
            SortKind::Function(domain, range) => {
                domain.iter_mut().for_each(|s| visit(&mut s.kind));
                visit(&mut range.kind);
            }
        }
    }
}

impl Tree for DataKind {
    fn leaf() -> Self {
        DataKind::Name(String::new())
    }
    fn is_leaf(&self) -> bool {
        matches!(self, DataKind::Name(_) | DataKind::Number(_))
    }
    fn each_child(&mut self, visit: &mut impl FnMut(&mut Self)) {
        match self {
            DataKind::Name(_) | DataKind::Number(_) => {}
            DataKind::List(es) | DataKind::Set(es) => {
                es.iter_mut().for_each(|e| visit(&mut e.kind))
            }
            DataKind::Bag(es) => {
                for (element, count) in es {
                    visit(&mut element.kind);
                    visit(&mut count.kind);
                }
            }
            DataKind::Comprehension(_, e)
            | DataKind::Unary(_, e)
            | DataKind::Lambda(_, e)
            | DataKind::Forall(_, e)
            | DataKind::Exists(_, e) => visit(&mut e.kind),
            DataKind::Apply(head, args) => {
                visit(&mut head.kind);
                args.iter_mut().for_each(|e| visit(&mut e.kind));
            }
            DataKind::Update(a, b, c) => {
                visit(&mut a.kind);
                visit(&mut b.kind);
                visit(&mut c.kind);
            }
            DataKind::Binary(_, a, b) => {
                visit(&mut a.kind);
                visit(&mut b.kind);
            }
            DataKind::Where(e, definitions) => {
                visit(&mut e.kind);
                definitions.iter_mut().for_each(|(_, e)| visit(&mut e.kind));
            }
        }
    }
}

impl Tree for ProcessKind {
    fn leaf() -> Self {
        ProcessKind::Delta
    }
    fn is_leaf(&self) -> bool {
        matches!(
            self,
            ProcessKind::Call { .. }
                | ProcessKind::CallAssign(..)
                | ProcessKind::Delta
                | ProcessKind::Tau
        )
    }
    fn each_child(&mut self, visit: &mut impl FnMut(&mut Self)) {
        match self {
            ProcessKind::Call { .. }
            | ProcessKind::CallAssign(..)
            | ProcessKind::Delta
            | ProcessKind::Tau => {}
            ProcessKind::Choice(p, q)
            | ProcessKind::Seq(p, q)
            | ProcessKind::Parallel(p, q)
            | ProcessKind::LeftMerge(p, q)
            | ProcessKind::Sync(p, q)
            | ProcessKind::BoundedInit(p, q) => {
                visit(&mut p.kind);
                visit(&mut q.kind);
            }
            ProcessKind::If(_, p, q) => {
                visit(&mut p.kind);
                if let Some(q) = q {
                    visit(&mut q.kind);
                }
            }
            ProcessKind::At(p, _)
            | ProcessKind::Sum(_, p)
            | ProcessKind::Dist(_, _, p)
            | ProcessKind::Block(_, p)
            | ProcessKind::Allow(_, p)
            | ProcessKind::Hide(_, p)
            | ProcessKind::Rename(_, p)
            | ProcessKind::Comm(_, p) => visit(&mut p.kind),
        }
    }
}

impl Tree for StateFormulaKind {
    fn leaf() -> Self {
        StateFormulaKind::True
    }
    fn is_leaf(&self) -> bool {
        use StateFormulaKind as K;
        matches!(self, K::True | K::False | K::Val(_) | K::Var(..) | K::Delay(_) | K::Yaled(_))
    }
    fn each_child(&mut self, visit: &mut impl FnMut(&mut Self)) {
        use StateFormulaKind as K;
        match self {
            K::True | K::False | K::Val(_) | K::Var(..) | K::Delay(_) | K::Yaled(_) => {}
            K::Not(f)
            | K::Minus(f)
            | K::Quantified(_, _, f)
            | K::Must(_, f)
            | K::May(_, f)
            | K::Fix { body: f, .. } => visit(&mut f.kind),
            K::Binary(_, f, g) => {
                visit(&mut f.kind);
                visit(&mut g.kind);
            }
        }
    }
}

impl Tree for RegularKind {
    fn leaf() -> Self {
        RegularKind::Action(Box::new(Node::new(ActionFormulaKind::True, Default::default())))
    }
    fn is_leaf(&self) -> bool {
        matches!(self, RegularKind::Action(_))
    }
    fn each_child(&mut self, visit: &mut impl FnMut(&mut Self)) {
        match self {
            RegularKind::Action(_) => {}
            RegularKind::Seq(r, s) | RegularKind::Alt(r, s) => {
                visit(&mut r.kind);
                visit(&mut s.kind);
            }
            RegularKind::Star(r) | RegularKind::Plus(r) => visit(&mut r.kind),
        }
    }
}

impl Tree for ActionFormulaKind {
    fn leaf() -> Self {
        ActionFormulaKind::True
    }
    fn is_leaf(&self) -> bool {
        use ActionFormulaKind as K;
        matches!(self, K::True | K::False | K::Val(_) | K::MultiAction(_))
    }
    fn each_child(&mut self, visit: &mut impl FnMut(&mut Self)) {
        use ActionFormulaKind as K;
        match self {
            K::True | K::False | K::Val(_) | K::MultiAction(_) => {}
            K::Not(a) | K::Quantified(_, _, a) | K::At(a, _) => visit(&mut a.kind),
            K::Binary(_, a, b) => {
                visit(&mut a.kind);
                visit(&mut b.kind);
            }
        }
    }
}
