//! Protocols in the language of Murphi (`.m`): each rule with values for its parameters is a
//! transition group. `expand` translates a model to mCRL2.
//!
//! A file that is not UTF-8 is read as Latin-1: comments of older models have such characters.

use crate::mcrl2::as_mcrl2;
use crate::{
    Condition, EditedText, FormulaNames, FrontEnd, Input, Lexicon, Loaded, Loading, Parameter,
};
use mu_base::host::Instant;
use mu_base::ids::LabelId;
use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId, SourceMap, Stage};
use mu_model::Model;
use mu_murphi::model::ProtocolModel;
use mu_murphi::parametric::Translation;
use mu_murphi::typed::{Constant, TypeId};
use mu_murphi::{Settings, typed};
use mu_process::labels::declared::DeclaredLabels;
use mu_process::typecheck::check_specification;
use mu_syntax::template::ExpandedText;
use std::io::Read as _;
use std::sync::Arc;

/// Protocols in the language of Murphi.
pub const MURPHI: Murphi = Murphi;

/// Front end of protocols in the language of Murphi.
pub struct Murphi;

impl FrontEnd for Murphi {
    fn language(&self) -> &'static str {
        "a Murphi model"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".m"]
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        let start = Instant::now();
        loading.journal.begin_stage("reading the model");
        let options = loading.options;
        let (source, text, settings) = source(input, loading.sources, loading.defines)?;
        let conditions = with_types(source, &text, &settings, &options.conditions)?;
        let typed = mu_murphi::read_with(source, &text, &settings, &conditions)?;
        expect_types(&typed, loading.defines)?;
        let parameters = settings.constants;
        let model = ProtocolModel::with(typed, options.conditions.len(), &options.shown)?;
        let model = Arc::new(model);
        loading.journal.log(&format!(
            "{}: {} slots, {} groups, {} instructions in {:.3} s",
            input.name(),
            model.slots().len(),
            model.groups().len(),
            model.program().code.len(),
            start.elapsed().as_secs_f64()
        ));
        for (name, new) in model.renamed_words() {
            loading.journal.warn(&match name.as_str() {
                "true" | "false" => {
                    format!("`{name}` in a union has the name `{new}` in labels and formulas")
                }
                _ => format!(
                    "`{name}` is a word of formulas, so labels and formulas have `{new}` for it"
                ),
            });
        }
        for (name, action) in model.numbered_actions() {
            loading.journal.warn(&format!(
                "the action of rule `{name}` is `{action}`, because another name or a word is equal"
            ));
        }
        let names = FormulaNames {
            start: model.start_action().map(str::to_string),
            subsets: model.subsets(),
        };
        let loaded = match declared_labels(&model) {
            Ok(labels) => Loaded::with_declared_labels(model, labels),
            // Names of the model that are words of specifications.
            Err(why) => {
                loading.journal.log(&format!("labels without declared types: {}", why.message));
                Loaded::with_inferred_labels(model)?
            }
        };
        let failure = Some(mu_murphi::model::ERROR.to_string());
        let parameters = parameters.into_iter().map(|(name, value)| (name, value.to_string()));
        Ok(Loaded { parameters: parameters.collect(), names, failure, ..loaded })
    }
    fn text(&self, input: &Input<'_>) -> Result<Option<String>, Diagnostic> {
        text(input).map(Some)
    }
    fn parameters(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<Vec<Parameter>, Diagnostic> {
        let written = model(input, loading.sources, &[])?;
        let given = model(input, loading.sources, loading.defines)?;
        let parameter = |(before, now): (&Constant, &Constant)| Parameter {
            name: before.name.clone(),
            sort: written.types.text(before.ty),
            default: written.types.value_text(before.ty, before.value),
            value: given.types.value_text(now.ty, now.value),
            constraint: String::new(),
            help: String::new(),
        };
        Ok(written.constants.iter().zip(&given.constants).map(parameter).collect())
    }
    fn expand(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ExpandedText, Diagnostic> {
        let model = model(input, loading.sources, loading.defines)?;
        let text = mu_murphi::expand(&model)?;
        let source = loading.sources.add(as_mcrl2(input), text.clone());
        Ok(ExpandedText { source, text, params: Vec::new(), constants: Vec::new() })
    }
    fn variables(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<Option<Vec<String>>, Diagnostic> {
        let model = model(input, loading.sources, loading.defines)?;
        let variables = model.globals.iter().map(|g| g.name.clone());
        Ok(Some(variables.chain(model.functions.iter().map(|f| f.name.clone())).collect()))
    }
    fn has_shown_values(&self) -> bool {
        true
    }
    fn lexicon(&self) -> Option<&'static Lexicon> {
        const LEXICON: Lexicon = Lexicon {
            line: &["--"],
            block: true,
            keywords: mu_murphi::lexer::KEYWORDS,
            any_case: true,
            ..Lexicon::PLAIN
        };
        Some(&LEXICON)
    }
    fn check(&self, text: &EditedText<'_>, sources: &mut SourceMap) -> Result<(), Diagnostic> {
        let source = sources.add(text.name(), text.text);
        mu_murphi::read(source, text.text, &Settings::default()).map(drop)
    }
    fn names(&self, source: SourceId, text: &str) -> Option<Naming> {
        Some(mu_murphi::names(source, text))
    }
    fn format(&self, text: &str, _width: usize) -> Result<Option<String>, Diagnostic> {
        let formatted = mu_murphi::format::format(text);
        if mu_murphi::format::is_same(text, &formatted) {
            return Ok(Some(formatted));
        }
        Err(Diagnostic::internal("formatting would change a token of the text"))
    }
}

/// Returns conditions with the types of the model in the place of their sorts.
fn with_types(
    source: SourceId,
    text: &str,
    settings: &Settings,
    conditions: &[Condition],
) -> Result<Vec<Condition>, Diagnostic> {
    let mut all = conditions.to_vec();
    if all.iter().any(|c| !c.variables.is_empty()) {
        let renamed = mu_murphi::labels::renamed_types(&mu_murphi::read(source, text, settings)?);
        for (_, sort, _) in all.iter_mut().flat_map(|c| &mut c.variables) {
            if let Some((ty, _)) = renamed.iter().find(|(_, new)| new == sort) {
                sort.clone_from(ty);
            }
        }
    }
    Ok(all)
}

/// Returns the text of a file.
fn text(input: &Input<'_>) -> Result<String, Diagnostic> {
    let mut bytes = Vec::new();
    let read = input.open()?.read_to_end(&mut bytes);
    read.map_err(|e| {
        input.locate_error(Diagnostic::new(Stage::File, format!("cannot be read: {e}")))
    })?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => error.as_bytes().iter().map(|b| char::from(*b)).collect(),
    })
}

/// Reads a model. `defines`: values of constants, as `NAME=VALUE`.
///
/// # Errors
/// The file cannot be read; an error in the text or in a value, with its place.
pub fn model(
    input: &Input<'_>,
    sources: &mut SourceMap,
    defines: &[String],
) -> Result<typed::Model, Diagnostic> {
    let (source, text, settings) = source(input, sources, defines)?;
    let model = mu_murphi::read(source, &text, &settings)?;
    expect_types(&model, defines)?;
    Ok(model)
}

/// Reads a model with a scalarset of any size as a system of any number of processes. `defines`:
/// values of constants, of which `name` has any.
///
/// # Errors
/// The file cannot be read; an error in the text or in a value; a construct that has no
/// translation, with its place.
pub fn parametric(
    input: &Input<'_>,
    sources: &mut SourceMap,
    defines: &[String],
    name: &str,
) -> Result<mu_cubicle::ast::File, Diagnostic> {
    Ok(translation(input, sources, defines, name)?.0.file)
}

/// Reads a model as [`parametric`]. Returns the system with the declaration of its symbols, and the
/// scalarset.
///
/// # Errors
/// As those of [`parametric`].
pub fn translation(
    input: &Input<'_>,
    sources: &mut SourceMap,
    defines: &[String],
    name: &str,
) -> Result<(Translation, TypeId), Diagnostic> {
    let is_other = |d: &&String| d.split_once('=').is_none_or(|(n, _)| n.trim() != name);
    let others: Vec<String> = defines.iter().filter(is_other).cloned().collect();
    let (source, text, settings) = source(input, sources, &others)?;
    let sized = |size: i64| {
        let mut settings = settings.clone();
        settings.constants.push((name.to_string(), size));
        mu_murphi::read(source, &text, &settings)
    };
    let (model, other) = (sized(2)?, sized(3)?);
    let node = mu_murphi::parametric::scalarset_of_size(name, (source, &text), (&model, &other))?;
    Ok((mu_murphi::parametric::translate(&model, node)?, node))
}

/// Rejects a truth value for a number.
fn expect_types(model: &typed::Model, defines: &[String]) -> Result<(), Diagnostic> {
    for define in defines {
        let (name, value) = define.split_once('=').unwrap_or((define, ""));
        let constant = model.constants.iter().find(|c| c.name == name.trim());
        let Some(constant) = constant else { continue };
        let is_truth = ["true", "false"].contains(&value.trim());
        if is_truth && constant.ty != TypeId::BOOLEAN {
            return Err(Diagnostic::new(Stage::Usage, format!("`-D {define}`: expected a number")));
        }
    }
    Ok(())
}

/// Returns the registered text of a file, and the settings for reading it.
fn source(
    input: &Input<'_>,
    sources: &mut SourceMap,
    defines: &[String],
) -> Result<(SourceId, String, Settings), Diagnostic> {
    let settings = Settings { constants: parameters(defines)?, ..Settings::default() };
    let text = text(input)?;
    Ok((sources.add(input.name(), text.clone()), text, settings))
}

/// Types the labels of a model by the declarations of its types and rules.
fn declared_labels(model: &ProtocolModel) -> Result<DeclaredLabels, Diagnostic> {
    let text = format!("{}init delta;\n", model.declarations());
    let tree = mu_syntax::parse_specification(SourceId::default(), &text)?;
    let spec = check_specification(&tree)?;
    let labels = (0..model.label_count()).map(|l| model.label_text(LabelId::new(l)));
    let labels = labels.collect::<Vec<_>>();
    let labels = DeclaredLabels::with_overloads(&labels, spec.data, spec.actions)?;
    Ok(labels.with_exchanges(&model.exchanged_constants()))
}

fn parameters(defines: &[String]) -> Result<Vec<(String, i64)>, Diagnostic> {
    let one = |define: &String| {
        let (name, value) = define.split_once('=').unwrap_or((define, ""));
        match value.trim() {
            "true" => Ok((name.trim().to_string(), 1)),
            "false" => Ok((name.trim().to_string(), 0)),
            "any" => {
                let text = format!("`-D {define}`: a Murphi model has no answer for every value");
                Err(Diagnostic::new(Stage::Unsupported, text).note("expected a number").note(
                    "`explore` proves the claims of a Murphi model for every size of a scalarset",
                ))
            }
            value => value.parse().map(|n| (name.trim().to_string(), n)).map_err(|_| {
                let text = format!("parameter `{define}` is not of the form NAME=NUMBER");
                Diagnostic::new(Stage::Usage, text)
            }),
        }
    };
    defines.iter().map(one).collect()
}
