//! Equation systems with data (`.pbes`), as text or in the binary format of the mCRL2 tools: states
//! are instances of the equations, transitions their dependencies.

use crate::editing::EditedText;
use crate::loading::values;
use crate::mcrl2::as_mcrl2;
use crate::{FrontEnd, Input, Lexicon, Loaded, Loading, Properties};
use mu_base::naming::{NameRole, Naming};
use mu_base::{Diagnostic, SourceId, SourceMap};
use mu_formula::equations;
use mu_lts::mcrl2;
use mu_process::spec::ProcSpec;
use mu_process::typecheck::check_specification;
use mu_syntax::template::ExpandedText;
use mu_syntax::tokens::{TokenKind, tokens};

/// Equation systems with data.
pub const EQUATION_SYSTEMS: EquationSystems = EquationSystems;

/// Front end of equation systems with data.
pub struct EquationSystems;

impl FrontEnd for EquationSystems {
    fn language(&self) -> &'static str {
        "an equation system"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".pbes", ".pbes.txt"]
    }
    fn properties(&self) -> Properties {
        Properties { specification: true, game: true, ..Properties::default() }
    }
    fn text(&self, input: &Input<'_>) -> Result<Option<String>, Diagnostic> {
        if input.begins_with(&mcrl2::MAGIC)? { Ok(None) } else { input.text().map(Some) }
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        let mut parameters = Vec::new();
        let spec = loading.read_timed(input, |loading| {
            let expanded = self.expand(input, loading)?;
            parameters = values(&expanded);
            typed_specification(&expanded)
        })?;
        Ok(Loaded { parameters, ..Loaded::from(loading.compile_specification(&spec)?) })
    }
    fn expand(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ExpandedText, Diagnostic> {
        if !input.begins_with(&mcrl2::MAGIC)? {
            return loading.expand_text(&input.name(), &input.text()?);
        }
        let outlined = terms(input, loading)?;
        loading.expand_text(&as_mcrl2(input), &outlined.text)
    }
    fn specification(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<ProcSpec, Diagnostic> {
        typed_specification(&self.expand(input, loading)?)
    }
    fn lexicon(&self) -> Option<&'static Lexicon> {
        const LEXICON: Lexicon = Lexicon {
            line: &["%"],
            inside: "'",
            keywords: &[
                "pbes", "mu", "nu", "init", "val", "forall", "exists", "true", "false", "sort",
                "cons", "map", "var", "eqn", "glob", "struct", "lambda", "whr", "end", "Bool",
                "Pos", "Nat", "Int", "Real", "List", "Set", "Bag", "FSet", "FBag", "in", "div",
                "mod",
            ],
            declares: &[
                ("mu", NameRole::FixedPoint),
                ("nu", NameRole::FixedPoint),
                ("sort", NameRole::Type),
                ("map", NameRole::Function),
            ],
            ..Lexicon::PLAIN
        };
        Some(&LEXICON)
    }
    fn check(&self, text: &EditedText<'_>, sources: &mut SourceMap) -> Result<(), Diagnostic> {
        typed_specification(&mu_syntax::template::expand(&text.name(), text.text, &[], sources)?)
            .map(drop)
    }
    /// The parameter layer has names of its own, which the naming does not cover.
    fn names(&self, source: SourceId, text: &str) -> Option<Naming> {
        let layered =
            tokens(text).iter().any(|t| matches!(t.kind, TokenKind::Directive | TokenKind::Value));
        (!layered).then(|| equations::names(source, text))
    }
}

fn typed_specification(expanded: &ExpandedText) -> Result<ProcSpec, Diagnostic> {
    check_specification(&equations::read(expanded.source, &expanded.text)?.specification)
}

/// Reads an equation system in the binary format.
fn terms(
    input: &Input<'_>,
    loading: &mut Loading<'_>,
) -> Result<mcrl2::OutlinedSystem, Diagnostic> {
    loading.journal.begin_stage("reading terms");
    mcrl2::read_equations(input.open()?).map_err(|d| input.locate_error(d))
}

/// Equation system that can be read repeatedly, because its quantifiers may have to be unrolled.
pub struct EquationText {
    source: SourceId,
    text: String,
    /// Term positions, if the file was in mCRL2's binary format.
    outlined: Option<mcrl2::OutlinedSystem>,
}

impl EquationText {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read; an error in the parameter layer, with its place.
    pub fn open(input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Self, Diagnostic> {
        if !input.begins_with(&mcrl2::MAGIC)? {
            let expanded = EQUATION_SYSTEMS.expand(input, loading)?;
            return Ok(Self { source: expanded.source, text: expanded.text, outlined: None });
        }
        let outlined = terms(input, loading)?;
        let expanded = loading.expand_text(&as_mcrl2(input), &outlined.text)?;
        // Positions are not valid in a text that expansion has changed.
        let outlined = (expanded.text == outlined.text).then_some(outlined);
        Ok(Self { source: expanded.source, text: expanded.text, outlined })
    }

    /// Reads the system with some quantifiers unrolled.
    ///
    /// # Errors
    /// An error in the text, with its place.
    pub fn read(
        &self,
        unrolled: &equations::UnrollSelection,
    ) -> Result<equations::System, Diagnostic> {
        match &self.outlined {
            Some(outlined) => equations::read_outlined(self.source, outlined, unrolled),
            None => equations::read_unrolled(self.source, &self.text, unrolled),
        }
    }
}
