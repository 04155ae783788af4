//! Parses a specification and a formula and checks it: what `mu-check MODEL FORMULA` does, with the library.
//!
//! `cargo run --example parse_and_check`

use mu_check::base::{Budget, Diagnostic, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::formula::typecheck::check_formula;
use mu_check::pbes::{self, Verdict};
use mu_check::process::{linearise, typecheck::check_specification};
use mu_check::report::story::story;
use mu_check::{explore, syntax};

const BUFFER: &str = "act enter, leave: Nat;
proc Buffer = sum n: Nat. (n < 3) -> enter(n) . leave(n) . Buffer;
init Buffer;
";
const FORMULA: &str = "[true* . enter(2)] <leave(1)> true";

/// The verdict, and the evidence for it as text.
pub fn check(specification: &str, formula: &str) -> Result<(Verdict, String), Diagnostic> {
    let mut sources = SourceMap::new();
    let tree = syntax::parse_specification(sources.add("buffer.mcrl2", specification), specification)?;
    let process = linearise::linearise(&check_specification(&tree)?, &linearise::Options::default())?;
    let model = Compiled::new(process, &Confluence::None)?;
    let tree = syntax::parse_formula(sources.add("formula.mcf", formula), formula)?;
    let formula = check_formula(&tree, &model.process().data, &model.process().actions)?;
    let options = explore::Options::default();
    let answer = pbes::check(&model, &model, &formula, pbes::Options::new(&options), &Budget::default())?;
    let evidence = answer.evidence.map(|e| story(&e, &model, false, usize::MAX)).transpose()?;
    Ok((answer.verdict, evidence.map_or_else(String::new, |story| story.text(true))))
}

#[allow(dead_code)] // the test has a `main` of its own
fn main() {
    match check(BUFFER, FORMULA) {
        Ok((verdict, evidence)) => print!("{verdict:?}\n{evidence}"),
        Err(error) => eprintln!("{}", error.message),
    }
}
