//! Results as one HTML file (`report`, and `--evidence FILE.html`). The page is `report::page`.

use crate::args::ReportArgs;
use crate::output;
use crate::pipeline::files::{expect_writable, write as write_file};
use crate::pipeline::{Session, file_error, read_text};
use mu_base::{Diagnostic, Stage, ends_in};
use mu_report::page::{self, PageResult};
use std::io::BufWriter;
use std::path::Path;

/// True if a file name ends in `.html`.
pub(crate) fn is_page(path: &Path) -> bool {
    ends_in(path, "html")
}

/// Writes a page.
pub(crate) fn write(
    session: &Session,
    path: &Path,
    title: &str,
    shown: &[PageResult],
) -> Result<(), Diagnostic> {
    write_file(path, |file| {
        let written = page::write(BufWriter::new(file), title, &output::command_line(), shown);
        written.map_err(|e| file_error("cannot write", path, &e))
    })?;
    session.log(format!("wrote {}", path.display()));
    Ok(())
}

/// Writes a page from files with results.
pub(crate) fn run(session: &Session, args: &ReportArgs) -> Result<u8, Diagnostic> {
    if !is_page(&args.out) {
        let message = format!("`--out {}`: expected a name that ends in .html", args.out.display());
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    expect_writable(&args.out)?;
    let mut shown = Vec::new();
    for path in &args.results {
        let name = path.display().to_string();
        let text = read_text(path)?;
        shown.push(
            PageResult::read(&name, &text)
                .map_err(|why| Diagnostic::new(Stage::File, format!("{name}: {why}")))?,
        );
    }
    let title = args.title.clone().unwrap_or_else(|| title(&shown));
    write(session, &args.out, &title, &shown)?;
    Ok(0)
}

/// Returns the distinct names of the models.
fn title(shown: &[PageResult]) -> String {
    let mut names: Vec<String> = Vec::new();
    for one in shown {
        let model = one.value.get("model").and_then(|m| m.as_str()).unwrap_or("result");
        let name = Path::new(model)
            .file_name()
            .map_or_else(|| model.to_string(), |n| n.to_string_lossy().into_owned());
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}
