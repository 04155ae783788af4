//! Stored transition systems in all formats of [`crate::formats`].
//!
//! Labels are typed by the model of [`crate::Options::data`], otherwise by the declarations in the
//! file, otherwise by inference from their texts.

use crate::formats::{self, Declarations};
use crate::{FrontEnd, Input, Loaded, Loading, Properties, specification};
use mu_base::Diagnostic;
use mu_labels::declared::DeclaredLabels;
use mu_lts::Lts;
use mu_lts::relabel::with_internal;
use mu_process::typecheck::check_specification;
use std::sync::{Arc, LazyLock};

/// Transition systems.
pub const TRANSITION_SYSTEMS: TransitionSystems = TransitionSystems;

/// Front end of transition systems.
pub struct TransitionSystems;

impl FrontEnd for TransitionSystems {
    fn language(&self) -> &'static str {
        "a transition system"
    }
    fn endings(&self) -> &'static [&'static str] {
        static ENDINGS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
            let read = formats::formats().iter().filter(|f| f.is_read());
            read.flat_map(|f| f.endings()).copied().collect()
        });
        &ENDINGS
    }
    fn properties(&self) -> Properties {
        Properties { stored: true, ..Properties::default() }
    }
    fn text(&self, input: &Input<'_>) -> Result<Option<String>, Diagnostic> {
        // All formats are read as streams of bytes.
        input.open().map(|_| None)
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        loading.journal.begin_stage("reading a transition system");
        let (lts, declarations) = system(input)?;
        let lts = Arc::new(with_internal(lts, &loading.options.internal));
        let labels = declared_labels(input, loading, &lts.table.texts, declarations)?;
        Loaded::stored(lts, labels)
    }
}

/// Reads a transition system, and the declarations in the file if any.
fn system(input: &Input<'_>) -> Result<(Lts, Declarations), Diagnostic> {
    let file = input.open()?;
    // A file without a registered ending was given this front end by a caller.
    let format = formats::of(input.path()).unwrap_or(formats::formats()[0]);
    format.read(file).map_err(|d| input.located(d))
}

/// Returns the labels with the types of a model that the user named or of the declarations in the
/// file; `None` if there are none that fit.
fn declared_labels(
    input: &Input<'_>,
    loading: &mut Loading<'_>,
    texts: &[String],
    declarations: Declarations,
) -> Result<Option<DeclaredLabels>, Diagnostic> {
    if let Some(model) = loading.options.data.clone() {
        let spec = specification(&Input::file(&model), loading)?;
        let labels = DeclaredLabels::new(texts, spec.data, spec.actions);
        let labels = labels.map_err(|d| {
            d.note(format!(
                "the labels are from {}, the declarations from {}",
                input.name(),
                model.display()
            ))
        });
        return labels.map(Some);
    }
    loading.expect_no_parameters(input)?;
    let declared = |text: String| {
        let name = format!("the declarations of {}", input.name());
        let source = loading.sources.add(name, text.clone());
        let spec = check_specification(&mu_syntax::parse_specification(source, &text)?)?;
        DeclaredLabels::new(texts, spec.data, spec.actions)
    };
    match declarations.map(|text| text.and_then(declared)) {
        Some(Err(why)) => {
            loading.journal.warn(&format!(
                "the declarations in {} are ignored: {}; use `--data MODEL` to supply others",
                input.name(),
                why.message
            ));
            Ok(None)
        }
        labels => Ok(labels.and_then(Result::ok)),
    }
}
