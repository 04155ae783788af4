//! `-D help`: the parameters of a model.

use crate::args::Format;
use crate::output::{self, print};
use crate::pipeline::Session;
use mu_base::Diagnostic;
use mu_frontends::{Input, Parameter};
use serde_json::{Value, json};
use std::path::Path;

/// Prints the parameters of a model.
pub(crate) fn print_parameters(session: &mut Session, model: &Path) -> Result<u8, Diagnostic> {
    session.common.define.clear();
    let input = Input::file(model);
    let params =
        session.with_loading(|loading| mu_frontends::of(&input).parameters(&input, loading))?;
    match session.common.format {
        Format::Json => output::print_object(json!({ "declared": parameters_json(&params) }))?,
        Format::Text if params.is_empty() => {
            print(&format!("{} has no parameters\n", model.display()))?
        }
        Format::Text => {
            let mut text: String = params.iter().map(|p| format!("{p}\n")).collect();
            if mu_frontends::of(&input).properties().mcrl2
                && params.iter().all(|p| p.help.is_empty())
            {
                text += "(a comment after the declaration of a parameter is its help text)\n";
            }
            print(&text)?
        }
    }
    Ok(0)
}

/// Returns the declarations of parameters as JSON.
pub(crate) fn parameters_json(params: &[Parameter]) -> Value {
    let one = |p: &Parameter| {
        json!({
            "name": p.name,
            "sort": p.sort,
            "default": p.default,
            "value": p.value,
            "constraint": p.constraint,
            "help": p.help,
        })
    };
    params.iter().map(one).collect()
}
