//! Specifications without unused declarations: the cost of a check grows with the declarations, and
//! a case has many checks.
//!
//! In: a text that begins with all declarations ([`PRELUDE`], [`DECLARED`]). Out: the same text
//! with those that its processes, its own theory or some formulas need. The names of formulas are
//! those of the specification and of the first few formulas ([`Needed::allows`]).

use super::data::PRELUDE;
use super::process::DECLARED;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// A declaration or an equation.
struct Item {
    section: &'static str,
    text: &'static str,
    /// It is needed if one of these names is.
    names: Vec<&'static str>,
}

const SECTIONS: [&str; 6] = ["sort", "cons", "map", "var", "eqn", "act"];

/// Returns the words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|w| w.starts_with(|c: char| !c.is_ascii_digit()) && !w.is_empty())
}

/// Returns the declarations, in order.
fn items() -> &'static [Item] {
    static ITEMS: OnceLock<Vec<Item>> = OnceLock::new();
    ITEMS.get_or_init(|| {
        let mut found: Vec<Item> = Vec::new();
        let mut section = "";
        let parts = PRELUDE
            .split(';')
            .chain(DECLARED.split(';'))
            .map(str::trim)
            .filter(|part| !part.is_empty());
        for part in parts {
            let first = words(part).next().unwrap_or_default();
            let (text, begins) = match SECTIONS.iter().find(|s| **s == first) {
                Some(s) => (part[s.len()..].trim_start(), Some(*s)),
                None => (part, None),
            };
            section = begins.unwrap_or(section);
            let declared = text.split(':').next().unwrap_or_default();
            let names = match section {
                // A structure declares all its names.
                "sort" if text.contains('=') => {
                    words(text).filter(|w| !["struct", "Bool", "Nat", "List"].contains(w)).collect()
                }
                // A sort depends on its constructors.
                "cons" => words(declared).chain(words(text).last()).collect(),
                "eqn" => Vec::new(),
                _ => words(declared).collect(),
            };
            found.push(Item { section, text, names });
        }
        let sorts: Vec<&str> = found
            .iter()
            .filter(|i| i.section == "sort")
            .filter_map(|i| words(i.text).next())
            .collect();
        let mappings: Vec<&str> =
            found.iter().filter(|i| i.section == "map").flat_map(|i| i.names.clone()).collect();
        for item in &mut found {
            let own = words(item.text).next().unwrap_or_default();
            match item.section {
                "sort" => item.names.retain(|n| *n == own || !sorts.contains(n)),
                // An equation is of the first mapping in it.
                "eqn" => item.names.extend(words(item.text).find(|w| mappings.contains(w))),
                _ => {}
            }
        }
        found
    })
}

/// Declarations that some texts need.
pub struct Needed {
    names: BTreeSet<&'static str>,
    items: Vec<bool>,
}

impl Needed {
    /// Of a specification's own part and of some formulas.
    pub fn by(specification: &str, formulas: &[String]) -> Self {
        let own = specification.replacen(PRELUDE, "", 1).replacen(DECLARED, "", 1);
        let mut found = Self { names: BTreeSet::new(), items: vec![false; items().len()] };
        let mut open: Vec<String> = formulas.to_vec();
        open.push(own);
        while let Some(text) = open.pop() {
            let used: BTreeSet<&str> = words(&text).collect();
            for (i, item) in items().iter().enumerate() {
                if !found.items[i]
                    && item.names.iter().any(|n| used.contains(n))
                    && item.section != "var"
                {
                    found.items[i] = true;
                    open.push(item.text.to_string());
                }
            }
        }
        // Variables are those of the equations.
        let equations = items()
            .iter()
            .zip(&found.items)
            .filter(|(i, kept)| **kept && i.section == "eqn")
            .map(|(i, _)| i.text);
        let used: BTreeSet<&str> = equations.flat_map(words).collect();
        for (i, item) in items().iter().enumerate().filter(|(_, item)| item.section == "var") {
            found.items[i] = item.names.iter().any(|n| used.contains(n));
        }
        let kept =
            items().iter().zip(&found.items).filter(|(i, kept)| **kept && i.section != "var");
        found.names = kept.flat_map(|(i, _)| i.names.iter().copied()).collect();
        found
    }
    /// True if a formula needs no other declarations.
    pub fn allows(&self, formula: &str) -> bool {
        let all = items().iter().filter(|i| i.section != "var").flat_map(|i| i.names.iter());
        let missing: BTreeSet<&str> = all.copied().filter(|n| !self.names.contains(n)).collect();
        !words(formula).any(|w| missing.contains(w))
    }
    /// Returns the text with these declarations alone.
    pub fn cut(&self, specification: &str) -> String {
        let (mut prelude, mut declared, mut last) = (String::new(), String::new(), "");
        let mut own = None;
        for (item, _) in items().iter().zip(&self.items).filter(|(_, kept)| **kept) {
            // Variables precede the equations that use them.
            let begins = if last == item.section { "" } else { item.section };
            last = item.section;
            let to = if item.section == "act" { &mut declared } else { &mut prelude };
            *to += &format!("{begins} {};\n", item.text);
            own = Some(());
        }
        if own.is_none() {
            return specification.replacen(PRELUDE, "", 1).replacen(DECLARED, "", 1);
        }
        specification.replacen(PRELUDE, &prelude, 1).replacen(DECLARED, &declared, 1)
    }
}

/// Shrunk texts are well typed, and have fewer declarations.
#[test]
fn cut_specifications_are_well_typed() {
    use super::process::{Kind, specification};
    use crate::support::tape::Tape;
    let (mut before, mut after) = (0, 0);
    for seed in 0..120 {
        let made = specification(&mut Tape::new(seed), Kind::Usual);
        let cut = Needed::by(&made.text, &[]).cut(&made.text);
        if super::inside::read(&made.text).is_ok() {
            super::inside::read(&cut)
                .unwrap_or_else(|d| panic!("seed {seed}: {}\n{cut}", d.message));
            (before, after) = (before + made.text.len(), after + cut.len());
        }
    }
    assert!(after * 2 < before, "{after} of {before} bytes");
}
