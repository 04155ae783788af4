//! Formatter of specifications and formulas (`fmt`).
//!
//! Invariant: a file is written only if the result parses to the same syntax tree.

use super::args::{FmtArgs, Format};
use super::files::write_text;
use super::output::{self, print};
use super::pipeline::Session;
use mu_base::{Diagnostic, Stage};
use mu_syntax::format::{Options, format, is_same};
use mu_syntax::{template, tokens};
use serde_json::json;
use std::io::Read as _;

/// Formats files in place, or standard input.
pub(super) fn run(session: &mut Session, args: &FmtArgs) -> Result<u8, Diagnostic> {
    let options = Options { width: usize::from(args.width) };
    if args.stdin {
        let mut text = String::new();
        let read = mu_base::host::input().lock().read_to_string(&mut text);
        read.map_err(|e| Diagnostic::new(Stage::File, format!("cannot read standard input: {e}")))?;
        let formatted = formatted(session, "standard input", &text, options)?;
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
        let formatted = formatted(session, &path.display().to_string(), &text, options)?;
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

/// Formats a text that parses.
fn formatted(
    session: &mut Session,
    name: &str,
    text: &str,
    options: Options,
) -> Result<String, Diagnostic> {
    if tokens::is_formula(text, &tokens::tokens(text)) {
        let source = session.sources.add(name, text);
        mu_syntax::parse_formula(source, text)?;
    } else {
        let expanded = template::expand(name, text, &[], &mut session.sources)?;
        mu_syntax::parse_specification(expanded.source, &expanded.text)?;
    }
    let formatted = format(text, options);
    if is_same(text, &formatted) {
        Ok(formatted)
    } else {
        Err(Diagnostic::internal(format!(
            "formatting `{name}` would change its meaning; the file is not changed"
        )))
    }
}
