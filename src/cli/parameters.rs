//! `-D help`: the parameters of a specification.

use super::args::Format;
use super::output::{self, print};
use super::pipeline::Session;
use mu_base::Diagnostic;
use mu_syntax::template::Param;
use serde_json::{Value, json};
use std::path::Path;

/// Prints the parameters of the specification.
pub(super) fn print_parameters(session: &mut Session, model: &Path) -> Result<u8, Diagnostic> {
    session.common.define.clear();
    let params = session.expand(model)?.params;
    match session.common.format {
        Format::Json => output::print_object(json!({ "declared": parameters_json(&params) }))?,
        Format::Text if params.is_empty() => {
            print(&format!("{} has no parameters\n", model.display()))?
        }
        Format::Text => print(&params.iter().map(|p| format!("{p}\n")).collect::<String>())?,
    }
    Ok(0)
}

/// Returns the declarations of parameters as JSON.
pub(super) fn parameters_json(params: &[Param]) -> Value {
    let one = |p: &Param| {
        json!({
            "name": p.name,
            "sort": p.sort.word(),
            "default": p.default.to_string(),
            "value": p.value.to_string(),
            "constraint": p.constraint,
            "help": p.doc,
        })
    };
    params.iter().map(one).collect()
}
