//! Counters in values: enumeration of all occurrences in order, and replacement.
//!
//! Input: a value as a closed normal form, and a [`Layout`], which gives the positions of counters
//! in values of a sort. A finite bag is treated as the list of its elements with multiplicity,
//! since elements that differ in their counters may have the same abstraction. Sets, functions and
//! infinite bags that contain counters are rejected, because multiplicities would be lost in the
//! abstraction. Cost: linear in the value.

use crate::flow::{Flow, FlowSort};
use ahash::AHashMap;
use mu_base::ids::{OpId, SortId};
use mu_base::{Diagnostic, Span, Stage};
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, OpKind, Signature};
use mu_data::sort::{SortKind, basic};
use num_traits::ToPrimitive;
use std::sync::Arc;

/// The positions of counters in values of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The value contains no counters.
    None,
    /// The value is a counter.
    Counter,
    /// A declared sort with constructors that have counters in their arguments: see [`Layouts`].
    Named(SortId),
    /// The elements of a list.
    List(Arc<Layout>),
    /// The elements of a finite bag.
    Bag(Arc<Layout>),
}

/// The layouts of the arguments of all constructors that contain counters.
#[derive(Clone, Debug, Default)]
pub struct Layouts {
    arguments: AHashMap<OpId, Vec<Layout>>,
    /// True if some counters have the sort Pos.
    pub positive: bool,
}

impl Layouts {
    /// Computes the layout of a type. Error: counters in positions where they cannot be
    /// distinguished.
    pub fn of(
        &mut self,
        flow: &mut Flow,
        signature: &Signature,
        ty: &FlowSort,
        finite: Option<SortId>,
    ) -> Result<Layout, Diagnostic> {
        if !flow.has_counter(ty) {
            return Ok(Layout::None);
        }
        let element = |sort: Option<SortId>| match sort.map(|s| signature.sorts.kind(s)) {
            Some(SortKind::List(e) | SortKind::FBag(e)) => Some(*e),
            _ => None,
        };
        let refuse = |what: &str| {
            let text =
                format!("{what} contains numbers that flow together with a symbolic parameter");
            Err(Diagnostic::new(Stage::Unsupported, text))
        };
        Ok(match ty {
            FlowSort::Number(_) => {
                self.positive |= finite.is_none_or(|s| s == basic::POS);
                Layout::Counter
            }
            FlowSort::List(e) => {
                Layout::List(Arc::new(self.of(flow, signature, e, element(finite))?))
            }
            FlowSort::Bag(e)
                if matches!(finite.map(|s| signature.sorts.kind(s)), Some(SortKind::FBag(_))) =>
            {
                Layout::Bag(Arc::new(self.of(flow, signature, e, element(finite))?))
            }
            FlowSort::Bag(_) => return refuse("an infinite bag"),
            FlowSort::Set(_) => return refuse("a set"),
            FlowSort::Function(..) => return refuse("a function"),
            FlowSort::Named(sort) => {
                let constructors = signature
                    .sorts
                    .declared_sort(*sort)
                    .map(|n| n.constructors.clone())
                    .unwrap_or_default();
                for constructor in constructors {
                    if self.arguments.contains_key(&constructor) {
                        continue;
                    }
                    let FlowSort::Function(types, _) = flow.type_of_op(constructor) else {
                        continue;
                    };
                    // Inserted before its arguments, which may be of the same sort.
                    self.arguments.insert(constructor, Vec::new());
                    let sorts = signature.domain_range(signature.op(constructor).sort).0;
                    let mut layouts = Vec::new();
                    for (t, s) in types.iter().zip(sorts) {
                        layouts.push(self.of(flow, signature, t, Some(*s))?);
                    }
                    self.arguments.insert(constructor, layouts);
                }
                Layout::Named(*sort)
            }
        })
    }

    /// Returns the largest number of counters in a value of a layout; `None` if it is unbounded.
    pub fn count(&self, signature: &Signature, layout: &Layout) -> Option<usize> {
        self.count_in(signature, layout, &mut Vec::new())
    }

    fn count_in(
        &self,
        signature: &Signature,
        layout: &Layout,
        open: &mut Vec<SortId>,
    ) -> Option<usize> {
        match layout {
            Layout::None => Some(0),
            Layout::Counter => Some(1),
            Layout::List(_) | Layout::Bag(_) => None,
            Layout::Named(sort) if open.contains(sort) => None,
            Layout::Named(sort) => {
                open.push(*sort);
                let constructors = signature
                    .sorts
                    .declared_sort(*sort)
                    .map(|n| n.constructors.as_slice())
                    .unwrap_or_default();
                let mut most = 0;
                for layouts in constructors.iter().filter_map(|c| self.arguments.get(c)) {
                    let own: Option<usize> =
                        layouts.iter().map(|l| self.count_in(signature, l, open)).sum();
                    most = most.max(own?);
                }
                open.pop();
                Some(most)
            }
        }
    }

    /// Returns all counters of a value in order.
    pub fn numbers(
        &self,
        signature: &Signature,
        layout: &Layout,
        e: &Expr,
    ) -> Result<Vec<i64>, Diagnostic> {
        let mut out = Vec::new();
        self.map(signature, layout, e, &mut |n| {
            out.push(n);
            n
        })?;
        Ok(out)
    }

    /// Replaces each counter of a value by the result of `f`, in order. A bag's elements come one
    /// by one, in order of occurrence; the caller normalises the result.
    pub fn map(
        &self,
        signature: &Signature,
        layout: &Layout,
        e: &Expr,
        f: &mut dyn FnMut(i64) -> i64,
    ) -> Result<Expr, Diagnostic> {
        stacker::maybe_grow(128 << 10, 4 << 20, || self.map_layout(signature, layout, e, f))
    }

    fn map_layout(
        &self,
        signature: &Signature,
        layout: &Layout,
        e: &Expr,
        f: &mut dyn FnMut(i64) -> i64,
    ) -> Result<Expr, Diagnostic> {
        let stuck = || {
            let text = format!(
                "the value `{}` does not evaluate to data, so its numbers are unknown",
                mu_data::print::expression(signature, e)
            );
            Err(Diagnostic::new(Stage::Unsupported, text))
        };
        let node = |kind| Expr::new(kind, e.sort, Span::default());
        match layout {
            Layout::None => Ok(e.clone()),
            Layout::Counter => match &e.kind {
                ExprKind::Number(n) => match n.to_i64() {
                    Some(n) if n >= 0 => Ok(Expr::number(f(n), e.sort)),
                    Some(n) => {
                        let text = format!(
                            "a number that flows together with a symbolic parameter becomes {n}, which is negative"
                        );
                        Err(Diagnostic::new(Stage::Unsupported, text))
                    }
                    None => stuck(),
                },
                _ => stuck(),
            },
            Layout::List(of) => {
                // Iterate along the list, so that long lists do not overflow the stack.
                let (mut heads, mut at) = (Vec::new(), e);
                while let Some((Builtin::Cons, [head, tail])) = at.as_builtin(signature) {
                    heads.push((self.map(signature, of, head, f)?, at));
                    at = tail;
                }
                if !matches!(at.as_builtin(signature), Some((Builtin::EmptyList, _))) {
                    return stuck();
                }
                let mut list = at.clone();
                for (head, cell) in heads.into_iter().rev() {
                    let ExprKind::Apply(cons, _) = &cell.kind else { return stuck() };
                    list = Expr::new(
                        ExprKind::Apply(cons.clone(), vec![head, list]),
                        cell.sort,
                        Span::default(),
                    );
                }
                Ok(list)
            }
            Layout::Bag(of) => {
                let mut entries = Vec::new();
                let mut at = e;
                while let Some((Builtin::BagInsert, [element, count, rest])) =
                    at.as_builtin(signature)
                {
                    let ExprKind::Number(copies) = &count.kind else { return stuck() };
                    let Some(copies) = copies.to_u32().filter(|c| *c <= 64) else { return stuck() };
                    for _ in 0..copies {
                        entries.push((self.map(signature, of, element, f)?, at));
                    }
                    at = rest;
                }
                if !matches!(at.as_builtin(signature), Some((Builtin::EmptyBag, _))) {
                    return stuck();
                }
                let mut bag = at.clone();
                for (element, cell) in entries.into_iter().rev() {
                    let ExprKind::Apply(insert, args) = &cell.kind else { return stuck() };
                    let one = Expr::number(
                        1,
                        if args[1].sort == basic::POS { basic::POS } else { args[1].sort },
                    );
                    bag = Expr::new(
                        ExprKind::Apply(insert.clone(), vec![element, one, bag]),
                        cell.sort,
                        Span::default(),
                    );
                }
                Ok(bag)
            }
            Layout::Named(_) => match &e.kind {
                ExprKind::Op(_) => Ok(e.clone()),
                ExprKind::Apply(head, args) => {
                    let ExprKind::Op(op) = head.kind else { return stuck() };
                    if !matches!(signature.op(op).kind, OpKind::Constructor(_)) {
                        return stuck();
                    }
                    let Some(layouts) = self.arguments.get(&op) else { return Ok(e.clone()) };
                    let mut new = Vec::with_capacity(args.len());
                    for (layout, arg) in layouts.iter().zip(args) {
                        new.push(self.map(signature, layout, arg, f)?);
                    }
                    Ok(node(ExprKind::Apply(head.clone(), new)))
                }
                _ => stuck(),
            },
        }
    }
}

/// True if values of a layout must be normalised after [`Layouts::map`].
pub fn has_bag(layouts: &Layouts, layout: &Layout) -> bool {
    fn go(layouts: &Layouts, layout: &Layout, seen: &mut Vec<SortId>) -> bool {
        match layout {
            Layout::None | Layout::Counter => false,
            Layout::Bag(_) => true,
            Layout::List(e) => go(layouts, e, seen),
            // The constructors of this sort are unknown here, so check all.
            Layout::Named(sort) => {
                if seen.contains(sort) {
                    return false;
                }
                seen.push(*sort);
                layouts.arguments.values().any(|a| a.iter().any(|l| go(layouts, l, seen)))
            }
        }
    }
    go(layouts, layout, &mut Vec::new())
}
