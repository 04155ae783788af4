//! Stored transition systems in all formats of [`crate::formats`].
//!
//! Labels are typed by the model of [`crate::LoadOptions::data`], otherwise by the declarations in
//! the file, otherwise by inference from their texts.

use crate::formats::{self, Declarations};
use crate::relabelling::declare;
use crate::{FrontEnd, Input, LoadOptions, Loaded, Loading, Properties, specification};
use mu_base::Diagnostic;
use mu_base::ids::LabelId;
use mu_base::label_time;
use mu_lts::Lts;
use mu_lts::relabel::{
    Relabel, merge_orders, name_of, warn_of_no_action, with_internal, with_texts,
};
use mu_process::labels::ActionDecl;
use mu_process::labels::declared::DeclaredLabels;
use mu_process::typecheck::check_specification;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Transition systems.
pub const TRANSITION_SYSTEMS: TransitionSystems = TransitionSystems;

/// Label of the step of a successful end.
const TERMINATE: &str = "Terminate";

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
        let lts = with_internal(lts, &loading.options.internal);
        let stored = [merge_orders(lts)];
        let relabel = &loading.options.relabel;
        // A file does not say which actions exist, so a name may be one that does not occur.
        for name in relabel.unmatched_names(&stored) {
            loading.journal.warn(&warn_of_no_action(name, &stored));
        }
        let [mut lts] = relabel.apply(stored);
        let mut labels = declared_labels(input, loading, &lts.table.texts, declarations.clone())?;
        if let Some(texts) = labels.as_ref().and_then(|labels| texts_of_models(&lts, labels)) {
            lts = with_texts(lts, &texts);
            labels = declared_labels(input, loading, &lts.table.texts, declarations)?;
        }
        Loaded::from_lts(Arc::new(lts), labels)
    }
}

/// Returns the texts that a model prints for labels with binders (infinite sets and bags,
/// functions) and operators, where they differ from those of the file; `None` if none differs. A
/// file has terms in a form of its own, and equal labels must have equal texts. Times keep theirs.
fn texts_of_models(lts: &Lts, labels: &DeclaredLabels) -> Option<HashMap<String, String>> {
    let mut texts = HashMap::new();
    for (i, text) in lts.table.texts.iter().enumerate().skip(1) {
        let (actions, time) = label_time::split(text);
        if !has_operators(actions) {
            continue;
        }
        let printed = labels.text(LabelId::new(i));
        if printed != actions {
            let printed = match time {
                Some(time) => format!("{printed}{}{time}", label_time::TIME_MARK),
                None => printed,
            };
            texts.insert(text.clone(), printed);
        }
    }
    (!texts.is_empty()).then_some(texts)
}

/// True if a text may have binders or operators: a blank that follows no mark of an enumeration,
/// or a sign in brackets.
fn has_operators(text: &str) -> bool {
    let blanks = &mut text.match_indices(' ');
    blanks.any(|(at, _)| !text[..at].ends_with([',', ':'])) || text.contains("(-")
}

/// Reads a transition system, and the declarations in the file if any.
fn system(input: &Input<'_>) -> Result<(Lts, Declarations), Diagnostic> {
    let file = input.open()?;
    // A file without a registered ending was given this front end by a caller.
    let format = formats::of(input.path()).unwrap_or(formats::formats()[0]);
    format.read(file).map_err(|d| input.locate_error(d))
}

/// Declares the new names of renamed actions.
fn rename(actions: &mut Vec<ActionDecl>, loading: &Loading<'_>) {
    for (old, new) in &loading.options.relabel.rename {
        declare(actions, name_of(old), name_of(new));
    }
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
        // The names on the command line are those of the labels, not of this model.
        let options = LoadOptions { relabel: Relabel::default(), ..loading.options.clone() };
        let mut plain = Loading {
            sources: loading.sources,
            defines: loading.defines,
            budget: loading.budget,
            options: &options,
            journal: loading.journal,
        };
        let mut spec = specification(&Input::file(&model), &mut plain)?;
        // The step of a successful end has no declaration in the text.
        if texts.iter().any(|t| t == TERMINATE) && spec.actions.iter().all(|a| a.name != TERMINATE)
        {
            spec.actions.push(ActionDecl { name: TERMINATE.into(), sorts: Vec::new() });
        }
        rename(&mut spec.actions, loading);
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
        let mut spec = check_specification(&mu_syntax::parse_specification(source, &text)?)?;
        rename(&mut spec.actions, loading);
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
