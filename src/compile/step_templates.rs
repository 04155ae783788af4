//! Step templates: the steps of a group that are equal in many states except for the tails of lists
//! to which they prepend elements.
//!
//! In: the answer of a group in one state. Out: its answer in all states that agree on the slots
//! that its condition, its labels and its prepended elements read. For example, a channel that
//! accepts any of sixty messages prepends the same sixty to any queue. The template lists them, so
//! the longer queues get their numbers without evaluation and without building values. They are
//! looked up together to overlap the cache misses of memory. Cost: a hash of the values read, and a
//! lookup for each list. Templates are cached as long as they recur ([`super::answer_cache`]).
//!
//! Invariant: a template is derived from a computed answer; it omits only the tails of lists, which
//! occur only behind prepended elements.

use super::answer_cache::{AnswerCache, KeyProjection};
use super::{Compiled, GroupCode, as_var};
use mu_base::ids::{LabelId, VarId};
use mu_data::engine::Program;
use mu_data::expr::Expr;
use mu_data::terms::TermId;
use mu_model::{Slot, Steps};
use std::rc::Rc;

/// Value of a written slot.
enum Column {
    /// Determined by the key of the template.
    Fixed,
    /// Element in front of the list at this position among the slots that the group reads.
    Front(usize),
}

/// Steps of a group without the tails of lists.
struct StepTemplate {
    labels: Vec<LabelId>,
    /// By written slot.
    columns: Vec<Filling>,
}

/// Values that the steps write to a slot, or elements that they prepend there.
enum Filling {
    Numbers(Vec<u32>),
    Elements(Vec<TermId>),
}

/// Templates of one group.
pub(super) struct StepTemplates {
    /// Projection to the key of the templates.
    by: KeyProjection,
    columns: Vec<Column>,
    known: AnswerCache<Rc<StepTemplate>>,
    key: Vec<u32>,
    lists: Vec<TermId>,
}

impl StepTemplates {
    /// Creates the templates for a group with this condition. `None` if the group has no sum, or if
    /// the key contains all slots that it reads.
    pub(super) fn new(model: &Compiled, group: usize, condition: &Expr) -> Option<StepTemplates> {
        let (code, info) = (&model.codes[group], &model.groups[group]);
        if code.sum_vars.is_empty() || code.chance.is_some() {
            return None;
        }
        let mut used = Vec::new();
        condition.free_vars(&mut used);
        code.actions.iter().flat_map(|a| &a.args).for_each(|e| e.free_vars(&mut used));
        let mut columns = Vec::new();
        for (update, slot) in code.updates.iter().zip(&info.writes) {
            columns.push(match front(model, code, update, *slot) {
                Some((head, list)) => {
                    head.free_vars(&mut used);
                    Column::Front(list)
                }
                None => {
                    update.free_vars(&mut used);
                    Column::Fixed
                }
            });
        }
        let by = KeyProjection::new(&code.reads, &used)?;
        Some(StepTemplates {
            by,
            columns,
            known: AnswerCache::default(),
            key: Vec::new(),
            lists: Vec::new(),
        })
    }

    /// Appends the steps, if their template is cached. True if it was.
    pub(super) fn append_cached(
        &mut self,
        model: &Compiled,
        group: usize,
        reads: &[u32],
        out: &mut Steps,
    ) -> bool {
        self.by.project(reads, &mut self.key);
        let Some(known) = self.known.get(&self.key).cloned() else { return false };
        out.labels.extend_from_slice(&known.labels);
        let (info, width, from) = (&model.groups[group], self.columns.len(), out.values.len());
        out.values.resize(from + width * known.labels.len(), 0);
        for (at, (column, filling)) in self.columns.iter().zip(&known.columns).enumerate() {
            let mut places = out.values[from..].iter_mut().skip(at).step_by(width);
            let mut put = |number: u32| *places.next().expect("each step has an entry") = number;
            match (filling, column) {
                (Filling::Elements(heads), Column::Front(list)) => {
                    let tail =
                        model.tables[model.table_of[info.reads[*list] as usize]].get(reads[*list]);
                    model.terms.cons_all(heads, tail, &mut self.lists);
                    model.tables[model.table_of[info.writes[at] as usize]]
                        .intern_all(&self.lists, put);
                }
                (Filling::Numbers(numbers), _) => numbers.iter().for_each(|n| put(*n)),
                (Filling::Elements(_), Column::Fixed) => {
                    unreachable!("elements are put in front of lists")
                }
            }
        }
        true
    }

    /// Caches the template of an answer: labels, and the values that the steps write.
    pub(super) fn cache(
        &mut self,
        model: &Compiled,
        group: usize,
        reads: &[u32],
        (labels, values): (&[LabelId], &[u32]),
    ) {
        if self.known.is_disabled() {
            return;
        }
        let (info, width) = (&model.groups[group], self.columns.len());
        let mut columns = Vec::with_capacity(width);
        for (at, column) in self.columns.iter().enumerate() {
            let numbers = values.iter().skip(at).step_by(width).copied();
            columns.push(match column {
                Column::Fixed => Filling::Numbers(numbers.collect()),
                Column::Front(list) => {
                    let table = |slot: Slot| &model.tables[model.table_of[slot as usize]];
                    let tail = table(info.reads[*list]).get(reads[*list]);
                    let head = |number| {
                        let (head, rest) = model.terms.cell(table(info.writes[at]).get(number))?;
                        (rest == tail).then_some(head)
                    };
                    let Some(heads) = numbers.map(head).collect() else { return };
                    Filling::Elements(heads)
                }
            });
        }
        self.by.project(reads, &mut self.key);
        let size = self.key.len() + labels.len() + values.len();
        self.known.insert(
            &self.key,
            Rc::new(StepTemplate { labels: labels.to_vec(), columns }),
            size,
        );
    }
}

/// Returns the element and the position of the list, if an update prepends the one to the other.
/// `None` if the slot has conditions on values that are not data.
fn front<'e>(
    model: &Compiled,
    code: &GroupCode,
    update: &'e Expr,
    slot: Slot,
) -> Option<(&'e Expr, usize)> {
    let program: &Program = &model.program;
    let (head, tail) = program.as_cons(update)?;
    let list: VarId = as_var(tail)?;
    let position = code.reads.iter().position(|v| *v == list)?;
    let plain = model.conditions[slot as usize].is_empty();
    plain.then_some((head, position))
}
