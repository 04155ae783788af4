//! Evidence files of formulas: the formats and their writers.

use crate::commands::check::CheckPlan;
use crate::commands::explore::find_path::file_name;
use crate::pipeline::files::{unknown_evidence_extension, write, write_lts, write_text};
use crate::pipeline::load::{Loaded, typed_labels};
use crate::pipeline::operation_log::{self, LogForm};
use crate::pipeline::properties::{self, FormulaText};
use crate::pipeline::{Session, file_error};
use mu_base::Diagnostic;
use mu_evidence::Evidence;
use mu_frontends::formats;
use mu_lts::relabel::Relabel;
use mu_report::caption::first_comment;
use mu_report::chart::chart;
use mu_report::evidence_tree::branches;
use mu_report::printed_evidence::PrintedEvidence;
use serde_json::json;
use std::io::BufWriter;
use std::path::Path;

/// Writes evidence to the file of `--evidence`; with several formulas, the formula's name precedes
/// the extension.
pub(crate) fn write_evidence(
    session: &Session,
    plan: &CheckPlan,
    subject: &Loaded,
    text: &FormulaText,
    (evidence, story): (&Evidence, &PrintedEvidence),
) -> Result<(), Diagnostic> {
    let Some(path) = &plan.output.evidence else { return Ok(()) };
    let formula = text.name.as_path();
    let path = properties::file_for(path, &text.stem, plan.has_several());
    match Picture::of(&path)? {
        Picture::Json => {
            let names = [("formula", formula), ("model", &plan.model)];
            let names =
                names.map(|(key, path)| (key.to_string(), json!(path.display().to_string())));
            write(&path, |file| {
                let written = story.write_json(names.into_iter().collect(), BufWriter::new(file));
                written.map_err(|e| file_error("cannot write", &path, &e))
            })?;
        }
        Picture::Lts => {
            let typed = typed_labels(subject, &path, &Relabel::default());
            write_lts(&evidence.lts(&*subject.model).0, typed.as_ref(), &path)?;
        }
        Picture::Log(form) => {
            write_text(&path, &operation_log::text(session.interface.as_ref(), story, form)?)?;
        }
        // One page shows all formulas; it is written when all are checked.
        Picture::Page => return Ok(()),
        Picture::Chart => {
            let names = format!("{} on {}", file_name(formula), file_name(&plan.model));
            let comment = first_comment(&text.text);
            let title = comment.as_ref().unwrap_or(&names);
            let what =
                if story.verdict { "holds; a witness" } else { "does not hold; a counterexample" };
            let n = story.steps.len();
            let of = if comment.is_some() { format!("{names}: ") } else { String::new() };
            let verdict = format!("{of}{what} of {n} step{}", if n == 1 { "" } else { "s" });
            let picture =
                chart(story, title, &verdict).unwrap_or_else(|| branches(story, title, &verdict));
            write_text(&path, &picture)?;
        }
    }
    session.log(format!("wrote {}", path.display()));
    Ok(())
}

/// Formats of evidence files.
pub(crate) enum Picture {
    Json,
    Lts,
    Chart,
    Page,
    Log(LogForm),
}

impl Picture {
    pub(crate) fn of(path: &Path) -> Result<Picture, Diagnostic> {
        if formats::of(path).is_some() {
            return Ok(Picture::Lts);
        }
        if let Some(form) = LogForm::of(path) {
            return Ok(Picture::Log(form));
        }
        match mu_base::file_extension(path).as_deref() {
            Some("json") => Ok(Picture::Json),
            Some("svg") => Ok(Picture::Chart),
            Some("html") => Ok(Picture::Page),
            _ => Err(unknown_evidence_extension(
                path,
                ".json, .svg, .html, .aut, .aut.gz, .blts, .lts, .dot, .csv or .jsonl",
            )),
        }
    }
}
