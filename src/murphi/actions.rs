//! Actions of rules: one identifier for each name of a rule.
//!
//! The groups of a model ([`crate::model`]) and its translation ([`crate::expand`]) label the steps
//! of a rule with the same action, so a formula has the same meaning for both. Invariant: equal
//! names have equal actions, different names different ones, and no action is a word of formulas,
//! of specifications, or of this front end. Cost: linear in the names.

use crate::typed::Model;
use ahash::AHashMap;
use std::collections::BTreeSet;

/// Action of a step that shows an error of a guard or a rule.
pub const ERROR: &str = "error";
/// Name of the action of a step that shows a violated invariant.
pub const VIOLATION: &str = "violation";
/// Action of the choice of a start state.
pub(crate) const START: &str = "startstate";

/// Words of specifications and formulas, which no rule has as its action.
pub(crate) const WORDS: &str = "act allow block comm cons delta dist div end eqn exists forall \
    form glob hide if in inf init lambda map mod mu nu nil proc rename sort struct sum sup tau \
    true false var whr yaled delay val pbes Bool Pos Nat Int Real List Set Bag FSet FBag";

/// Functions of data in formulas, which no constant has as its name.
const FUNCTIONS: &str = "Pos2Nat Pos2Int Pos2Real Nat2Pos Nat2Int Nat2Real Int2Pos Int2Nat \
    Int2Real Real2Pos Real2Nat Real2Int max min abs succ pred sqrt div mod exp floor ceil round \
    head tail rhead rtail in Set2Bag Bag2Set count pick";

/// True for a word that is no name in a formula.
pub(crate) fn is_word(name: &str) -> bool {
    WORDS.split_whitespace().any(|w| w == name)
}

/// Returns the words that are no names of constants.
pub(crate) fn words_of_constants() -> Vec<&'static str> {
    WORDS.split_whitespace().chain(FUNCTIONS.split_whitespace()).collect()
}

/// Returns the action of each rule, in the order of the text. Rules with one name share it; a rule
/// without a name has its number.
pub(crate) fn rule_actions(model: &Model) -> Vec<String> {
    let written = model.rules.iter().enumerate().map(|(n, rule)| match &rule.name {
        Some(name) => name.trim().to_string(),
        None => format!("rule_{}", n + 1),
    });
    let reserved: Vec<&str> = WORDS.split_whitespace().chain([ERROR, VIOLATION, START]).collect();
    identifiers(written, &reserved)
}

/// Returns the names of rules with actions that another name or word has taken, and these actions,
/// each once.
pub(crate) fn numbered_actions<'m>(
    model: &'m Model,
    actions: &'m [String],
) -> Vec<(&'m str, &'m str)> {
    let mut found = Vec::new();
    for (rule, action) in model.rules.iter().zip(actions) {
        let Some(name) = rule.name.as_deref().map(str::trim) else { continue };
        if identifier(name) != *action && !found.contains(&(name, action.as_str())) {
            found.push((name, action));
        }
    }
    found
}

/// Returns identifiers for names: equal ones for equal names, others for other names. If the
/// identifier of a name is taken or reserved, a number from 2 on follows.
pub(crate) fn identifiers(names: impl Iterator<Item = String>, reserved: &[&str]) -> Vec<String> {
    let mut known: AHashMap<String, String> = AHashMap::new();
    let mut used: BTreeSet<String> = reserved.iter().map(|r| r.to_string()).collect();
    let is_condition = |name: &str| {
        let number = name.strip_prefix("not_").unwrap_or(name).strip_prefix("val_");
        number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    names
        .map(|name| {
            known
                .entry(name)
                .or_insert_with_key(|name| {
                    let base = identifier(name);
                    let mut found = base.clone();
                    let mut number = 1;
                    while is_condition(&found) || !used.insert(found.clone()) {
                        number += 1;
                        found = match is_condition(&format!("{base}_1")) || is_condition(&base) {
                            true => format!("rule_{base}_{number}"),
                            false => format!("{base}_{number}"),
                        };
                    }
                    found
                })
                .clone()
        })
        .collect()
}

/// Returns a name with letters, digits and `_` only, and no digit first.
fn identifier(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c != '_' || !text.ends_with('_') {
            text.push(c);
        }
    }
    let text = text.trim_matches('_');
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit()) {
        format!("rule_{text}")
    } else {
        text.to_string()
    }
}
