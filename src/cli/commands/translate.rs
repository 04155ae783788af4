//! Specifications as other mCRL2 text (`expand` and `linearise`).

use crate::args::{ExpandArgs, Format, LineariseArgs, OutputLanguage, ReadArgs};
use crate::output;
use crate::output::print;
use crate::pipeline::Session;
use crate::pipeline::files::{write, write_text};
use mu_base::{Diagnostic, Stage};
use mu_frontends::FrontEnd as _;
use mu_frontends::mcrl2::LPS;
use mu_lts::mcrl2;
use mu_process::linearise::LineariserOptions;
use mu_syntax::template::ExpandedText;
use serde_json::json;
use std::path::Path;

/// Prints the instance, or the program with its memory, as plain mCRL2, after type checking; or the
/// translation to a `.cub` system, for `--to cubicle`.
pub(crate) fn expand(session: &mut Session, args: &ExpandArgs) -> Result<u8, Diagnostic> {
    if args.to == OutputLanguage::Cubicle {
        let file =
            crate::pipeline::systems::translate_file(session, &args.file, &args.translation)?;
        mu_cubicle::check(&file)?;
        print(&file.to_string())?;
        return Ok(0);
    }
    session.reading = ReadArgs {
        threads_of: args.threads_of,
        memory: args.memory.clone(),
        ..ReadArgs::default()
    };
    let ExpandedText { source, text, .. } = session.expand(&args.file)?;
    let tree = mu_syntax::parse_specification(source, &text)?;
    mu_process::typecheck::check_specification(&tree)?;
    text_result(session, "specification", text)
}

/// Reports that a file was written.
pub(crate) fn report_written(session: &Session, out: &Path) -> Result<u8, Diagnostic> {
    session.log(format!("wrote {}", out.display()));
    if session.common.format == Format::Json {
        output::print_object(json!({ "output": out.display().to_string() }))?;
    }
    Ok(0)
}

/// Prints a text as it is, or under a key of a JSON object.
pub(crate) fn text_result(session: &Session, key: &str, text: String) -> Result<u8, Diagnostic> {
    match session.common.format {
        Format::Json => output::print_object(json!({ key: text }))?,
        Format::Text => print(&text)?,
    }
    Ok(0)
}

/// Prints or writes the linear process.
pub(crate) fn linearise(session: &mut Session, args: &LineariseArgs) -> Result<u8, Diagnostic> {
    let mut options = LineariserOptions::plain();
    for name in &args.simplify {
        match name.as_str() {
            "default" => {
                let mut defaults = LineariserOptions::default();
                for name in LineariserOptions::SIMPLIFICATIONS {
                    if let (Some(on), Some(switch)) =
                        (defaults.simplification(name).map(|on| *on), options.simplification(name))
                    {
                        *switch |= on;
                    }
                }
            }
            "all" => options = options.with_all(true),
            "none" => {}
            other => match options.simplification(other) {
                Some(switch) => *switch = true,
                None => {
                    return Err(Diagnostic::new(
                        Stage::Usage,
                        format!("unknown simplification `{other}`"),
                    )
                    .note(format!(
                        "expected: {}, default, all, none",
                        LineariserOptions::SIMPLIFICATIONS.join(", ")
                    )));
                }
            },
        }
    }
    let mut process = session.linear_process(&args.model, &options)?;
    if args.untime {
        mu_process::time::untime(&mut process);
    }
    if let Some(out) = &args.out {
        if LPS.has_ending(out) {
            let typed = mu_compile::typed::process::process(&process)?;
            write(out, |file| mcrl2::write_process(&typed, file))?;
        } else {
            write_text(out, &mu_process::print::linear_process(&process))?;
        }
        return report_written(session, out);
    }
    text_result(session, "specification", mu_process::print::linear_process(&process))
}
