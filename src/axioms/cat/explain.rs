//! Explanation of a pair in a relation by a path of pairs in simpler relations.
//!
//! A pair of `a ; b` is expanded to two pairs with an intermediate event, a pair of `r+` to a
//! shortest path, and a pair of a union to a pair of one of its parts. Other pairs are labelled
//! with the name that the model gave to the relation, or with its text; steps of the identity are
//! omitted. The path is read from the computed relations, so it exists in the execution.

use super::program::{CatNodeId, CatOp};
use super::run::ModelRun;
use crate::execution::RelationId;

/// Returns the steps from the first event of the first pair to the last event of the last: each
/// event with the name of the relation to the next one.
pub(super) fn path(
    run: &ModelRun<'_, '_>,
    node_id: CatNodeId,
    pairs: &[(usize, usize)],
) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for &pair in pairs {
        expand(run, node_id, pair, &mut out);
    }
    out
}

fn expand(
    run: &ModelRun<'_, '_>,
    node_id: CatNodeId,
    pair: (usize, usize),
    out: &mut Vec<(usize, String)>,
) {
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || expand_node(run, node_id, pair, out));
}
fn expand_node(
    run: &ModelRun<'_, '_>,
    node_id: CatNodeId,
    (a, b): (usize, usize),
    out: &mut Vec<(usize, String)>,
) {
    let program = &run.model().program;
    let has = |r: CatNodeId, x: usize, y: usize| run.relation_of(r).contains(x, y);
    match program.nodes[node_id.index()].op {
        CatOp::Union(..) => {
            let mut parts = Vec::new();
            program.parts(node_id, &mut parts);
            if let Some(&p) = parts.iter().find(|&&p| has(p, a, b)) {
                return expand(run, p, (a, b), out);
            }
        }
        CatOp::Compose(r, s) => {
            let middle = run.relation_of(r).successors(a).find(|&m| has(s, m, b));
            if let Some(m) = middle {
                expand(run, r, (a, m), out);
                return expand(run, s, (m, b), out);
            }
        }
        CatOp::From(_, r) | CatOp::To(r, _) => return expand(run, r, (a, b), out),
        CatOp::Optional(_) | CatOp::Star(_) | CatOp::Identity(_) if a == b => return,
        // A step inside one access shows nothing.
        CatOp::GivenRelation(RelationId::SI | RelationId::SM) if a == b => return,
        CatOp::Optional(r) => return expand(run, r, (a, b), out),
        CatOp::Plus(r) | CatOp::Star(r) => {
            if let Some(steps) = run.relation_of(r).path_before(a, b) {
                for (i, &from) in steps.iter().enumerate() {
                    expand(run, r, (from, steps.get(i + 1).copied().unwrap_or(b)), out);
                }
                return;
            }
        }
        _ => {}
    }
    out.push((a, label(run, node_id, 3)));
}

/// Returns the name or text of a node.
fn label(run: &ModelRun<'_, '_>, node_id: CatNodeId, depth: usize) -> String {
    let model = run.model();
    if let Some(name) = model.program.names.get(&node_id) {
        return name.clone();
    }
    let inner =
        |s: CatNodeId| if depth == 0 { "…".to_string() } else { label(run, s, depth - 1) };
    match model.program.nodes[node_id.index()].op {
        CatOp::GivenSet(id) => model.vocabulary.set_name(id).to_string(),
        CatOp::GivenRelation(id) => model.vocabulary.relation_name(id).to_string(),
        CatOp::Nothing => "0".to_string(),
        CatOp::Union(a, b) => format!("{} | {}", inner(a), inner(b)),
        CatOp::Intersection(a, b) => format!("{} & {}", inner(a), inner(b)),
        CatOp::Difference(a, b) => format!("{} \\ {}", inner(a), inner(b)),
        CatOp::Complement(a) => format!("~{}", inner(a)),
        CatOp::Compose(a, b) => format!("{};{}", inner(a), inner(b)),
        CatOp::Product(a, b) => format!("{} * {}", inner(a), inner(b)),
        CatOp::Identity(a) => format!("[{}]", inner(a)),
        CatOp::From(s, r) => format!("[{}];{}", inner(s), inner(r)),
        CatOp::To(r, s) => format!("{};[{}]", inner(r), inner(s)),
        CatOp::Plus(a) => format!("{}+", inner(a)),
        CatOp::Star(a) => format!("{}*", inner(a)),
        CatOp::Optional(a) => format!("{}?", inner(a)),
        CatOp::Inverse(a) => format!("{}^-1", inner(a)),
        CatOp::Domain(a) => format!("domain({})", inner(a)),
        CatOp::Range(a) => format!("range({})", inner(a)),
        _ => "…".to_string(),
    }
}
