//! Names of equivalences and preorders on the command line, from the tables of `lts` and `chance`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mu_chance::bisimulation;
use mu_lts::equivalence::Equivalence;
use mu_lts::preorder::Preorder;

/// Equivalence by which a system is reduced or compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Modulo {
    /// Of transition systems.
    Labelled(Equivalence),
    /// Of probabilistic systems.
    Probabilistic,
}

/// Parses the name of an equivalence; the help lists the table.
pub fn modulo() -> impl TypedValueParser<Value = Modulo> {
    let known = Equivalence::ALL.into_iter().map(|e| {
        let help = format!("{}; preserves {}", e.full_name(), e.preserves());
        PossibleValue::new(e.name()).aliases(e.alias()).help(help)
    });
    let last = PossibleValue::new(bisimulation::NAME).help(bisimulation::ABOUT);
    PossibleValuesParser::new(known.chain([last])).try_map(|name| match name.as_str() {
        bisimulation::NAME => Ok(Modulo::Probabilistic),
        name => Equivalence::of_name(name)
            .map(Modulo::Labelled)
            .ok_or_else(|| format!("no equivalence is called `{name}`")),
    })
}

/// Parses the name of a preorder; the help lists the table.
pub fn preorder() -> impl TypedValueParser<Value = Preorder> {
    let known = Preorder::ALL.into_iter().map(|p| {
        let help = format!("{}; B passes on to A {}", p.meaning(), p.preserves());
        PossibleValue::new(p.name()).help(help)
    });
    PossibleValuesParser::new(known).try_map(|name| {
        Preorder::of_name(&name).ok_or_else(|| format!("no preorder is called `{name}`"))
    })
}
