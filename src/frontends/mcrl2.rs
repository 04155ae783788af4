//! mCRL2: specifications with or without the parameter layer, and linear processes as text or in
//! the binary format of the mCRL2 tools.
//!
//! Files with any other name than those of the registry are specifications too.

use crate::loading::values;
use crate::relabelling::relabel_specification;
use crate::{FrontEnd, Input, Loaded, Loading, Properties};
use mu_base::{Diagnostic, SourceMap, Stage};
use mu_lts::mcrl2;
use mu_process::spec::ProcSpec;
use mu_process::typecheck::check_specification;
use mu_syntax::template::{ExpandedText, TemplateValue};
use mu_syntax::{ast, format};

/// Specifications.
pub const MCRL2: Mcrl2 = Mcrl2;

/// Linear processes.
pub const LPS: LinearProcesses = LinearProcesses;

/// Front end of specifications.
pub struct Mcrl2;

/// Front end of linear processes.
pub struct LinearProcesses;

impl FrontEnd for Mcrl2 {
    fn language(&self) -> &'static str {
        "a specification"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".mcrl2", ".spec"]
    }
    fn properties(&self) -> Properties {
        Properties { specification: true, mcrl2: true, ..Properties::default() }
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        read(self, input, loading)
    }
    fn expand(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ExpandedText, Diagnostic> {
        loading.expand_text(&input.name(), &input.text()?)
    }
    fn syntax_tree(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<Option<ast::Specification>, Diagnostic> {
        let expanded = self.expand(input, loading)?;
        parse_expanded(&expanded, loading).map(Some)
    }
    fn specification(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ProcSpec, Diagnostic> {
        typed_specification(self, input, loading).map(|(spec, _)| spec)
    }
    fn format(&self, text: &str, width: usize) -> Result<Option<String>, Diagnostic> {
        let formatted = format::format(text, format::FormatOptions { width });
        if format::is_same(text, &formatted) {
            Ok(Some(formatted))
        } else {
            Err(Diagnostic::internal("formatting would change the meaning of the text"))
        }
    }
}

impl FrontEnd for LinearProcesses {
    fn language(&self) -> &'static str {
        "a linear process"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".lps"]
    }
    fn properties(&self) -> Properties {
        Properties { specification: true, ..Properties::default() }
    }
    fn text(&self, input: &Input<'_>) -> Result<Option<String>, Diagnostic> {
        if input.begins_with(&mcrl2::MAGIC)? { Ok(None) } else { input.text().map(Some) }
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        read(self, input, loading)
    }
    fn expand(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ExpandedText, Diagnostic> {
        if !input.begins_with(&mcrl2::MAGIC)? {
            return MCRL2.expand(input, loading);
        }
        loading.journal.begin_stage("reading terms");
        let text = mcrl2::read_process(input.open()?).map_err(|d| input.locate_error(d))?;
        loading.expand_text(&as_mcrl2(input), &text)
    }
    fn specification(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ProcSpec, Diagnostic> {
        typed_specification(self, input, loading).map(|(spec, _)| spec)
    }
}

/// Returns the name of the text that another format has as mCRL2.
pub(crate) fn as_mcrl2(input: &Input<'_>) -> String {
    format!("{} as mCRL2", input.name())
}

/// Reads, linearises and compiles a specification.
fn read(
    front_end: &dyn FrontEnd,
    input: &Input<'_>,
    loading: &mut Loading<'_>,
) -> Result<Loaded, Diagnostic> {
    let mut parameters = Vec::new();
    let spec = loading.read_timed(input, |loading| {
        let (spec, values) = typed_specification(front_end, input, loading)?;
        parameters = values;
        Ok(spec)
    })?;
    Ok(Loaded { parameters, ..Loaded::from(loading.compile_specification(&spec)?) })
}

/// Returns the typed specification of a file, and its parameters with their values.
fn typed_specification(
    front_end: &dyn FrontEnd,
    input: &Input<'_>,
    loading: &mut Loading<'_>,
) -> Result<(ProcSpec, Vec<(String, String)>), Diagnostic> {
    let expanded = front_end.expand(input, loading)?;
    let spec = check_specification(&parse_expanded(&expanded, loading)?)
        .map_err(|error| with_parameter(error, loading.sources))?;
    Ok((relabel_specification(spec, &loading.options.relabel)?, values(&expanded)))
}

/// Explains an undeclared name that is a parameter of its file: the value of a parameter is
/// substituted in the text, not declared.
pub fn with_parameter(error: Diagnostic, sources: &SourceMap) -> Diagnostic {
    let Some(span) = error.span.filter(|s| sources.holds(s.source)) else { return error };
    let name = sources.text(span);
    let is_parameter = |line: &str| {
        let rest = line.trim_start().strip_prefix("$param").map(str::trim_start);
        rest.and_then(|r| r.strip_prefix(name))
            .is_some_and(|r| !r.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '\''))
    };
    let undeclared = error.message == format!("`{name}` is not declared");
    if !undeclared || !sources.get(span.source).original.lines().any(is_parameter) {
        return error;
    }
    let note = format!("`{name}` is a parameter: write `${{{name}}}` for its value");
    Diagnostic { notes: vec![note], ..error }
}

/// Parses an expanded text.
///
/// # Errors
/// A syntax error; a parameter has the value `any`.
pub fn parse_expanded(
    expanded: &ExpandedText,
    loading: &Loading<'_>,
) -> Result<ast::Specification, Diagnostic> {
    for p in &expanded.params {
        if let TemplateValue::Any { .. } = p.value {
            let text = format!(
                "`{}=any` means every value, which only `check` with formulas on a specification supports",
                p.name
            );
            return Err(Diagnostic::new(Stage::Usage, text));
        }
        loading.journal.log(&format!("parameter {} = {}", p.name, p.value));
    }
    mu_syntax::parse_specification(expanded.source, &expanded.text)
}
