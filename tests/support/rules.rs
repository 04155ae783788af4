//! Transition systems by the operational rules, and labels in a canonical order, so that systems
//! compare by text.

use mu_check::base::Diagnostic;
use mu_check::base::ids::{ActId, LabelId, StateId};
use mu_check::data::print::expression;
use mu_check::lts::relabel::parts;
use mu_check::lts::{Labels, Lts};
use mu_check::process::direct;
use mu_check::process::spec::ProcSpec;
use std::collections::HashMap;

fn sorted_label(mut parts: Vec<String>) -> String {
    parts.sort();
    if parts.is_empty() { "tau".into() } else { parts.join("|") }
}

/// Does the same with the actions of each label in the order of their texts.
pub fn with_sorted_labels(mut lts: Lts) -> Lts {
    for text in &mut lts.table.texts {
        *text = sorted_label(parts(text).into_iter().map(str::to_string).collect());
    }
    lts
}

/// Explores by the rules, up to `max` states; labels are sorted.
pub fn by_rules(spec: &ProcSpec, max: usize) -> Result<Lts, Diagnostic> {
    let found = direct::explore(spec, max)?;
    let mut table = Labels::default();
    let mut ids: HashMap<String, usize> = HashMap::from([("tau".to_string(), 0)]);
    let mut edges = Vec::new();
    for (s, label, t) in found.transitions {
        let act = |(a, args): &(ActId, Vec<_>)| {
            let args: Vec<String> = args.iter().map(|e| expression(&found.signature, e)).collect();
            let name = &spec.actions[a.index()].name;
            if args.is_empty() { name.clone() } else { format!("{name}({})", args.join(", ")) }
        };
        let text =
            label.map_or("Terminate".into(), |multi| sorted_label(multi.iter().map(act).collect()));
        let id = *ids.entry(text).or_insert_with_key(|text| {
            table.texts.push(text.clone());
            table.texts.len() - 1
        });
        edges.push((StateId::of(s), LabelId::new(id), StateId::of(t)));
    }
    Ok(Lts::from_edges(StateId::of(0), found.states, &edges, table))
}
