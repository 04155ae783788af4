//! Coverage of the generators: choice points of the grammar in generated texts, built-in
//! operations, directives of the parameter layer.
//!
//! A choice point that no text passes fails the test, unless [`NEVER`] gives the reason. The
//! measure is independent of the generators: texts are derived by the grammar again, and operations
//! are those of the type checker.

use super::builtins::{collect_builtins, required_operations};
use super::data::{grammar, operations};
use super::process::{Kind, specification};
use super::{formula, parameters, refused};
use crate::support::random_text::Kind as Formulas;
use crate::support::tape::Tape;
use mu_check::base::SourceId;
use mu_check::formula::typecheck::check_formula;
use mu_check::process::typecheck::check_specification;
use mu_check::syntax;
use std::collections::{BTreeMap, BTreeSet};

/// Choice points that no well-formed text passes, with the reason; a rule stands for its choices
/// too.
pub const NEVER: [(&str, &str); 3] = [
    ("section_word", "only looked for ahead"),
    ("ending", "only looked for ahead"),
    ("formula_file: ( formula_section | form_section ) none", "a section word is there"),
];

/// Counts of generated constructs.
#[derive(Default)]
pub struct Coverage {
    /// Number of uses of each choice point.
    points: BTreeMap<usize, u64>,
    /// Built-in operations at kinds of sorts.
    builtins: BTreeSet<String>,
    /// Number of texts of each shape.
    pub shapes: BTreeMap<&'static str, u64>,
    /// Texts, and those that the type checker refuses.
    pub texts: u64,
    pub refused: u64,
    /// Reasons of rejections.
    pub reasons: BTreeMap<String, u64>,
}

impl Coverage {
    fn text(&mut self, rule: &str, text: &str) {
        let points = grammar().derive(rule, text).unwrap_or_else(|at| {
            panic!("not a {rule} after {:?}:\n{text}", &text[at.saturating_sub(40)..at]);
        });
        for point in points {
            *self.points.entry(point).or_default() += 1;
        }
        self.texts += 1;
    }
    /// Adds a specification and a formula.
    fn add(&mut self, specification: &str, formula: &str) {
        self.text("specification", specification);
        self.text("formula_file", formula);
        let typed = syntax::parse_specification(SourceId::FIRST, specification)
            .and_then(|tree| check_specification(&tree));
        let typed = match typed {
            Ok(typed) => typed,
            Err(why) => return self.refuse(&why.message),
        };
        collect_builtins(&typed.data.signature, &mut self.builtins);
        let read = syntax::parse_formula(SourceId::FIRST, formula)
            .and_then(|tree| check_formula(&tree, &typed.data, &typed.actions));
        match read {
            Ok(read) => collect_builtins(&read.data.signature, &mut self.builtins),
            Err(why) => self.refuse(&why.message),
        }
    }
    fn refuse(&mut self, why: &str) {
        self.refused += 1;
        *self.reasons.entry(why.chars().take(50).collect()).or_default() += 1;
    }
    /// Choice points that were not passed.
    pub fn missing(&self) -> Vec<String> {
        let grammar = grammar();
        let missing = (0..grammar.points.len())
            .filter(|p| !self.points.contains_key(p) && !grammar.is_lexical(*p));
        let named = missing.map(|p| grammar.points[p].clone()).filter(|name| {
            !NEVER.iter().any(|n| n.0 == name || name.split(':').next() == Some(n.0))
        });
        let operations = required_operations()
            .into_iter()
            .filter(|w| !self.builtins.contains(w))
            .map(|w| format!("operation {w}"));
        named.chain(operations).collect()
    }
    /// Returns the choice points that were passed least often.
    pub fn report(&self) -> String {
        let mut all: Vec<(u64, &str)> =
            self.points.iter().map(|(p, n)| (*n, grammar().points[*p].as_str())).collect();
        all.sort();
        let rare: Vec<String> =
            all.iter().take(12).map(|(n, name)| format!("  {n:>6} {name}")).collect();
        format!(
            "{} texts ({} refused by the type checker), {} of {} choice points, {} operations at kinds of sorts; shapes {:?}; least often:\n{}",
            self.texts,
            self.refused,
            self.points.keys().filter(|p| !grammar().is_lexical(**p)).count(),
            (0..grammar().points.len()).filter(|p| !grammar().is_lexical(*p)).count(),
            self.builtins.len(),
            self.shapes,
            rare.join("\n")
        )
    }
}

/// Measures the coverage of seeds.
pub fn measure(seeds: std::ops::Range<u64>) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in 0..4 {
        coverage.add(&operations(&mut Tape::new(seed)), "true");
    }
    for seed in seeds {
        let kind =
            [Kind::Usual, Kind::Usual, Kind::Usual, Kind::Chance, Kind::Timed][(seed % 5) as usize];
        let made = specification(&mut Tape::new(seed), kind);
        for shape in &made.shapes {
            *coverage.shapes.entry(shape).or_default() += 1;
        }
        let mut tape = Tape::new(seed ^ (1 << 40));
        let formula = if kind == Kind::Chance {
            formula::quantity(&mut tape, &made.mappings, made.bound)
        } else {
            formula::formula(&mut tape, Formulas::Any, &made.mappings, made.bound)
        };
        coverage.add(&made.text, &formula);
        if seed % 4 == 0 {
            let (text, formula) = refused::unsupported_case(&mut Tape::new(seed));
            coverage.add(&text, &formula);
            made.rules.iter().for_each(|rules| coverage.text("specification", rules));
            // The parts that have rules of their own.
            let mut tape = Tape::new(seed);
            let parts = parameters::parts(&mut tape);
            for (rule, text) in parts {
                coverage.text(rule, &text);
            }
        }
    }
    coverage
}
