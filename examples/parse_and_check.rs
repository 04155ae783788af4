//! Library example: checks a formula on a specification, like `mu-check MODEL -f FORMULA`.
//!
//! `cargo run --example parse_and_check`

use mu_check::{Error, Run, Specification, Verdict};

const BUFFER: &str = "act enter, leave: Nat;
proc Buffer = sum n: Nat. (n < 3) -> enter(n) . leave(n) . Buffer;
init Buffer;
";
const FORMULA: &str = "[true* . enter(2)] <leave(1)> true";

/// Returns the verdict, and its evidence as text.
pub fn check(specification: &str, formula: &str) -> Result<(Verdict, String), Error> {
    let model = Specification::new("buffer.mcrl2", specification).model()?;
    let judgement = model.check(formula, &Run::new())?;
    Ok((judgement.verdict, judgement.evidence.map_or_else(String::new, |evidence| evidence.text())))
}

#[allow(dead_code)] // the test has its own `main`
fn main() {
    match check(BUFFER, FORMULA) {
        Ok((verdict, evidence)) => print!("{verdict:?}\n{evidence}"),
        Err(error) => eprintln!("{error}"),
    }
}
