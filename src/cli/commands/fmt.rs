//! Formatter of specifications, formulas, and texts of other front ends that have a formatter
//! (`fmt`).
//!
//! Invariant: a file is written only if the result has the same meaning.

use crate::args::{FmtArgs, Format};
use crate::output::{self, print};
use crate::pipeline::Session;
use crate::pipeline::files::write_text;
use mu_base::{Diagnostic, Stage};
use mu_frontends::mcrl2::MCRL2;
use mu_frontends::{EditedText, FrontEnd, Input};
use mu_syntax::{template, tokens};
use serde_json::json;
use std::io::Read as _;
use std::path::Path;

/// Formats files in place, or standard input.
pub(crate) fn run(session: &mut Session, args: &FmtArgs) -> Result<u8, Diagnostic> {
    let width = usize::from(args.width);
    if args.stdin {
        let mut text = String::new();
        let read = mu_base::host::input().lock().read_to_string(&mut text);
        read.map_err(|e| Diagnostic::new(Stage::File, format!("cannot read standard input: {e}")))?;
        let formatted = format_text(session, None, &text, width)?;
        let changed = formatted != text;
        match session.common.format {
            Format::Json => output::print_object(json!({ "text": formatted, "changed": changed }))?,
            Format::Text if args.check => {}
            Format::Text => print(&formatted)?,
        }
        return Ok(u8::from(args.check && changed));
    }
    let mut changed = Vec::new();
    for path in &args.files {
        let text = session.read(path)?;
        let formatted = format_text(session, Some(path), &text, width)?;
        if formatted == text {
            continue;
        }
        if !args.check {
            write_text(path, &formatted)?;
        }
        changed.push(path.display().to_string());
    }
    match session.common.format {
        Format::Json => {
            output::print_object(json!({ "changed": changed, "files": args.files.len() }))?
        }
        Format::Text => print(&changed.iter().map(|name| format!("{name}\n")).collect::<String>())?,
    }
    Ok(u8::from(args.check && !changed.is_empty()))
}

/// Formats a text that parses. `path`: the file, which selects the language; `None`: a
/// specification or a formula.
fn format_text(
    session: &mut Session,
    path: Option<&Path>,
    text: &str,
    width: usize,
) -> Result<String, Diagnostic> {
    let name = path.map_or_else(|| "standard input".to_string(), |p| p.display().to_string());
    let front_end = path
        .map_or(&MCRL2 as &dyn FrontEnd, |path| mu_frontends::of(&Input::text_named(path, text)));
    if !front_end.properties().mcrl2 {
        let path = path.unwrap_or(Path::new(""));
        let edited = EditedText { path, text, sibling: &|_| None };
        front_end.check(&edited, &mut session.sources)?;
    } else if tokens::is_formula(text, &tokens::tokens(text)) {
        let source = session.sources.add(name.clone(), text);
        mu_frontends::state_conditions::parse_without_model(source, text)?;
    } else {
        let expanded = template::expand(&name, text, &[], &mut session.sources)?;
        mu_syntax::parse_specification(expanded.source, &expanded.text)?;
    }
    let formatted = front_end.format(text, width).map_err(|e| e.in_file(&name))?;
    formatted.ok_or_else(|| {
        let message = format!("`{name}` is {}, which has no formatter", front_end.language());
        Diagnostic::new(Stage::Unsupported, message)
            .note("omit the file: `fmt` formats specifications, formulas, and Murphi models")
    })
}
