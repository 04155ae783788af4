//! Protocols in the language of Murphi (`.m`): each rule with values for its parameters is a
//! transition group.

use crate::{EditedText, FrontEnd, Input, Lexicon, Loaded, Loading};
use mu_base::host::Instant;
use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId, SourceMap, Stage};
use mu_model::Model;
use mu_murphi::model::ProtocolModel;
use mu_murphi::{Settings, typed};
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
        let typed = model(input, loading.sources, loading.defines)?;
        let parameters = parameters(loading.defines)?;
        let model = Arc::new(ProtocolModel::new(typed)?);
        loading.journal.log(&format!(
            "{}: {} slots, {} groups, {} instructions in {:.3} s",
            input.name(),
            model.slots().len(),
            model.groups().len(),
            model.program().code.len(),
            start.elapsed().as_secs_f64()
        ));
        let loaded = Loaded::inferred(model)?;
        let parameters = parameters.into_iter().map(|(name, value)| (name, value.to_string()));
        Ok(Loaded { parameters: parameters.collect(), ..loaded })
    }
    fn lexicon(&self) -> Option<&'static Lexicon> {
        const LEXICON: Lexicon =
            Lexicon { line: &["--"], keywords: mu_murphi::lexer::KEYWORDS, ..Lexicon::PLAIN };
        Some(&LEXICON)
    }
    fn check(&self, text: &EditedText<'_>, sources: &mut SourceMap) -> Result<(), Diagnostic> {
        let source = sources.add(text.name(), text.text);
        mu_murphi::read(source, text.text, &Settings::default()).map(drop)
    }
    fn names(&self, source: SourceId, text: &str) -> Option<Naming> {
        Some(mu_murphi::names(source, text))
    }
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
    let settings = Settings { constants: parameters(defines)? };
    let (source, text) = input.source(sources)?;
    mu_murphi::read(source, &text, &settings)
}

fn parameters(defines: &[String]) -> Result<Vec<(String, i64)>, Diagnostic> {
    let one = |define: &String| {
        let (name, value) = define.split_once('=').unwrap_or((define, ""));
        match value.trim() {
            "true" => Ok((name.trim().to_string(), 1)),
            "false" => Ok((name.trim().to_string(), 0)),
            value => value.parse().map(|n| (name.trim().to_string(), n)).map_err(|_| {
                let text = format!("`-D {define}` is not of the form NAME=NUMBER");
                Diagnostic::new(Stage::Usage, text)
            }),
        }
    };
    defines.iter().map(one).collect()
}
