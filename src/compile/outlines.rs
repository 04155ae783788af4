//! Steps of a sum that are the same in many states, but for lists that they put elements in front
//! of.
//!
//! In: the answer of a group in one state. Out: its answer in all states that agree on what its
//! condition, its labels and its elements read. A channel that takes any of sixty messages puts the
//! same sixty in front of whatever its queue holds: known is which, so the longer queues get their
//! numbers without being evaluated, or built as values. They are looked up together, so that the
//! processor waits for memory once. Cost: a hash of the numbers of what is read, and a lookup for
//! each list. Outlines are kept as long as they recur ([`super::recall`]).
//!
//! Invariant: an outline is read off an answer that was computed; what it leaves out is the tail of
//! lists, which only stands behind what is put in front.

use super::recall::{Narrow, Recall};
use super::{Compiled, GroupCode, as_var};
use mu_base::ids::{LabelId, VarId};
use mu_data::engine::Program;
use mu_data::expr::Expr;
use mu_data::terms::TermId;
use mu_model::{Slot, Steps};
use std::rc::Rc;

/// What a written slot gets.
enum Column {
    /// What follows from what the outline is kept by.
    Kept,
    /// An element in front of the list at this position of what the group reads.
    Front(usize),
}

/// The answers of a group but for the lists behind elements.
struct Outline {
    labels: Vec<LabelId>,
    /// By written slot.
    columns: Vec<Filling>,
}

/// What the steps write to a slot, or put in front there.
enum Filling {
    Numbers(Vec<u32>),
    Elements(Vec<TermId>),
}

/// Outlines of one group.
pub(super) struct Outlines {
    /// What the outlines are kept by.
    by: Narrow,
    columns: Vec<Column>,
    known: Recall<Rc<Outline>>,
    key: Vec<u32>,
    lists: Vec<TermId>,
}

impl Outlines {
    /// For a group with this condition; none where it has no sum, or would not agree in more states
    /// than those in which it reads the same.
    pub(super) fn new(model: &Compiled, group: usize, condition: &Expr) -> Option<Outlines> {
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
                    Column::Kept
                }
            });
        }
        let by = Narrow::new(&code.reads, &used)?;
        Some(Outlines { by, columns, known: Recall::default(), key: Vec::new(), lists: Vec::new() })
    }

    /// Appends the steps, if their outline is known.
    pub(super) fn recall(
        &mut self,
        model: &Compiled,
        group: usize,
        reads: &[u32],
        out: &mut Steps,
    ) -> bool {
        self.by.ask(reads, &mut self.key);
        let Some(known) = self.known.get(&self.key).cloned() else { return false };
        out.labels.extend_from_slice(&known.labels);
        let (info, width, from) = (&model.groups[group], self.columns.len(), out.values.len());
        out.values.resize(from + width * known.labels.len(), 0);
        for (at, (column, filling)) in self.columns.iter().zip(&known.columns).enumerate() {
            let mut places = out.values[from..].iter_mut().skip(at).step_by(width);
            let mut put =
                |number: u32| *places.next().expect("there is a place for each step") = number;
            match (filling, column) {
                (Filling::Elements(heads), Column::Front(list)) => {
                    let tail =
                        model.tables[model.table_of[info.reads[*list] as usize]].get(reads[*list]);
                    model.terms.in_front(heads, tail, &mut self.lists);
                    model.tables[model.table_of[info.writes[at] as usize]]
                        .intern_all(&self.lists, put);
                }
                (Filling::Numbers(numbers), _) => numbers.iter().for_each(|n| put(*n)),
                (Filling::Elements(_), Column::Kept) => {
                    unreachable!("elements are put in front of lists")
                }
            }
        }
        true
    }

    /// Keeps the outline of an answer: labels, and the values that the steps write.
    pub(super) fn keep(
        &mut self,
        model: &Compiled,
        group: usize,
        reads: &[u32],
        (labels, values): (&[LabelId], &[u32]),
    ) {
        if self.known.is_given_up() {
            return;
        }
        let (info, width) = (&model.groups[group], self.columns.len());
        let mut columns = Vec::with_capacity(width);
        for (at, column) in self.columns.iter().enumerate() {
            let numbers = values.iter().skip(at).step_by(width).copied();
            columns.push(match column {
                Column::Kept => Filling::Numbers(numbers.collect()),
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
        self.by.ask(reads, &mut self.key);
        let size = self.key.len() + labels.len() + values.len();
        self.known.keep(&self.key, Rc::new(Outline { labels: labels.to_vec(), columns }), size);
    }
}

/// Element and position of the list, if an update puts the one in front of the other. Not where
/// conditions are asked of values that are no data.
fn front<'e>(
    model: &Compiled,
    code: &GroupCode,
    update: &'e Expr,
    slot: Slot,
) -> Option<(&'e Expr, usize)> {
    let program: &Program = &model.program;
    let (head, tail) = program.in_front(update)?;
    let list: VarId = as_var(tail)?;
    let position = code.reads.iter().position(|v| *v == list)?;
    let plain = model.conditions[slot as usize].is_empty();
    plain.then_some((head, position))
}
