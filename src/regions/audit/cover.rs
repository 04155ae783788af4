//! Concretisation: the concrete states that an abstract state covers.
//!
//! Input: an abstract state, values of the parameters. Output: a concrete state that it covers,
//! drawn at random ([`Concretise::draw`]). Conversely, for a concrete state, the abstract state
//! that covers it ([`Concretise::image`]). States are vectors of normal forms, one for each slot of
//! the compiled process. Stacked abstractions compose: images are computed from the process
//! upwards, draws downwards. This module defines the meaning of abstract values. It shares no
//! evaluation with the abstractions, neither samples nor representatives. Cost: linear in the
//! values.

use super::draw::Draw;
use crate::abstractable_model::AbstractableModel;
use crate::abstraction::{AbstractionFacts, Content, Regions};
use crate::cuts::Grain;
use crate::merged_constants::{MergedConstants, map_constants};
use crate::numbers::Layout;
use crate::sizes::Family;
use mu_base::Span;
use mu_base::ids::{OpId, SortId};
use mu_compile::Compiled;
use mu_data::expr::{Expr, ExprKind};
use mu_data::signature::{Builtin, Signature};
use mu_process::labels::MultiAction;

/// The concretisation of an abstraction. Functions return `None` if a value does not have the
/// expected form, so that nothing can be concluded.
pub trait Concretise {
    /// Draws a concrete state that the abstract state covers under the drawn values of the
    /// parameters.
    fn draw(&self, state: &[Expr], draw: &mut Draw) -> Option<Vec<Expr>>;
    /// Returns the abstract state that covers a concrete one.
    fn image(&self, state: &[Expr], draw: &mut Draw) -> Option<Vec<Expr>>;
    /// Abstracts a concrete label.
    fn image_of_label(&self, label: &MultiAction, draw: &mut Draw) -> Option<MultiAction>;
    /// Describes the part of this abstraction that cannot be audited, for the verdict; `None` if
    /// there is none.
    fn unaudited_part(&self) -> Option<String> {
        None
    }
}

impl Concretise for Compiled {
    fn draw(&self, state: &[Expr], _draw: &mut Draw) -> Option<Vec<Expr>> {
        Some(state.to_vec())
    }
    fn image(&self, state: &[Expr], draw: &mut Draw) -> Option<Vec<Expr>> {
        state.iter().map(|e| draw.normal(e)).collect()
    }
    fn image_of_label(&self, label: &MultiAction, draw: &mut Draw) -> Option<MultiAction> {
        label
            .iter()
            .map(|(action, args)| {
                Some((*action, args.iter().map(|e| draw.normal(e)).collect::<Option<_>>()?))
            })
            .collect()
    }
}

impl Concretise for Regions<'_> {
    fn draw(&self, state: &[Expr], draw: &mut Draw) -> Option<Vec<Expr>> {
        let (facts, case, grains) = self.meaning();
        let valuation = draw.valuation.clone();
        let starts = case.starts(&valuation);
        let mut out = Vec::with_capacity(state.len());
        for (slot, e) in state.iter().enumerate() {
            out.push(match &facts.contents[slot] {
                Content::Parameter(base) => Expr::number(valuation[*base], e.sort),
                Content::Value(Layout::None) => e.clone(),
                Content::Value(layout) => {
                    let mut all = true;
                    let drawn = facts.layouts.map(self.signature(), layout, e, &mut |block| {
                        let found = draw.number(&starts, |n| {
                            case.abstract_number(grains[slot], n, &valuation) == block
                        });
                        all &= found.is_some();
                        found.unwrap_or(block)
                    });
                    let drawn = drawn.ok().filter(|_| all)?;
                    draw.has_values(&drawn).then_some(())?;
                    draw.normal(&drawn)?
                }
            });
        }
        Some(out)
    }
    fn image(&self, state: &[Expr], draw: &mut Draw) -> Option<Vec<Expr>> {
        let state = self.inner().image(state, draw)?;
        let (facts, case, grains) = self.meaning();
        let image = |(slot, e): (usize, &Expr)| match &facts.contents[slot] {
            Content::Parameter(base) => Some(Expr::number(case.valuation[*base], e.sort)),
            Content::Value(layout) => self.region(facts, layout, grains[slot], e, draw),
        };
        state.iter().enumerate().map(image).collect()
    }
    fn image_of_label(&self, label: &MultiAction, draw: &mut Draw) -> Option<MultiAction> {
        let label = self.inner().image_of_label(label, draw)?;
        let (facts, ..) = self.meaning();
        let mut out = MultiAction::new();
        for (action, args) in label {
            let mut images = Vec::new();
            for (i, e) in args.iter().enumerate() {
                let layout = facts
                    .arguments
                    .get(action.index())
                    .and_then(|l| l.get(i))
                    .unwrap_or(&Layout::None);
                images.push(self.region(facts, layout, Grain::Predicates, e, draw)?);
            }
            out.push((action, images));
        }
        Some(out)
    }
}

impl Regions<'_> {
    fn region(
        &self,
        facts: &AbstractionFacts,
        layout: &Layout,
        grain: Grain,
        e: &Expr,
        draw: &mut Draw,
    ) -> Option<Expr> {
        if *layout == Layout::None {
            return Some(e.clone());
        }
        let (_, case, _) = self.meaning();
        let block = &mut |n| case.abstract_number(grain, n, &draw.valuation);
        let image = facts.layouts.map(self.signature(), layout, e, block).ok()?;
        draw.normal(&image)
    }
}

impl Concretise for MergedConstants<'_> {
    fn draw(&self, state: &[Expr], draw: &mut Draw) -> Option<Vec<Expr>> {
        let (inner, family, tracked) = self.meaning();
        let mut out = Vec::with_capacity(state.len());
        for (slot, e) in state.iter().enumerate() {
            if !family.slots[slot] {
                out.push(e.clone());
                continue;
            }
            let room = family.constants.len() - tracked;
            let mut e = map_constants(inner.signature(), family, e, &mut |i| {
                if i < tracked { i } else { tracked + draw.random.below(room) }
            })
            .ok()?;
            if let Some(entries) = family.arrays[slot] {
                e = add_entries(inner, family, tracked, e, entries, draw)?;
            }
            out.push(draw.normal(&e)?);
        }
        inner.draw(&out, draw)
    }
    fn image(&self, state: &[Expr], draw: &mut Draw) -> Option<Vec<Expr>> {
        let (inner, family, tracked) = self.meaning();
        let state = inner.image(state, draw)?;
        let image = |(slot, e): (usize, &Expr)| {
            if !family.slots[slot] {
                return Some(e.clone());
            }
            let e = if family.arrays[slot].is_some() {
                at_tracked(inner.signature(), family, tracked, e)
            } else {
                e.clone()
            };
            draw.normal(
                &map_constants(inner.signature(), family, &e, &mut |i| i.min(tracked)).ok()?,
            )
        };
        state.iter().enumerate().map(image).collect()
    }
    fn image_of_label(&self, label: &MultiAction, draw: &mut Draw) -> Option<MultiAction> {
        let (inner, family, tracked) = self.meaning();
        let label = inner.image_of_label(label, draw)?;
        let image = |e: &Expr, draw: &mut Draw| {
            if !family.holds(e.sort) {
                return Some(e.clone());
            }
            draw.normal(&map_constants(inner.signature(), family, e, &mut |i| i.min(tracked)).ok()?)
        };
        label
            .iter()
            .map(|(a, args)| {
                Some((*a, args.iter().map(|e| image(e, draw)).collect::<Option<_>>()?))
            })
            .collect()
    }
}

/// Adds entries to an array at some of the merged constants.
fn add_entries(
    inner: &dyn AbstractableModel,
    family: &Family,
    tracked: usize,
    array: Expr,
    entries: SortId,
    draw: &mut Draw,
) -> Option<Expr> {
    let (signature, held) = (inner.signature(), inner.constants(entries));
    let update = family.update_of(array.sort)?;
    let mut array = array;
    for key in &family.constants[tracked..] {
        if !held.is_empty() && draw.random.chance(1, 2) {
            let entry = *draw.random.choose(&held);
            array = Expr::apply(
                signature,
                update,
                vec![array, Expr::op(signature, *key), Expr::op(signature, entry)],
            );
        }
    }
    Some(array)
}

/// Removes the entries of an array at merged constants.
fn at_tracked(signature: &Signature, family: &Family, tracked: usize, array: &Expr) -> Expr {
    let merged = |op: OpId| family.constants[tracked..].contains(&op);
    match array.as_builtin(signature) {
        Some((Builtin::Update, [rest, key, entry])) => {
            let rest = at_tracked(signature, family, tracked, rest);
            match (&array.kind, key.head().is_some_and(merged)) {
                (ExprKind::Apply(head, _), false) => Expr::new(
                    ExprKind::Apply(head.clone(), vec![rest, key.clone(), entry.clone()]),
                    array.sort,
                    Span::default(),
                ),
                _ => rest,
            }
        }
        _ => array.clone(),
    }
}
