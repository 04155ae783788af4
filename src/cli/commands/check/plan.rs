//! The plan of `check`: the arguments, converted once, in parts by the stage that uses them.

use crate::args::{
    CheckArgs, CheckpointArgs, Counting, DistributedArgs, EngineRef, Format, Reduction,
};
use crate::commands::game::solver;
use crate::output::page;
use crate::pipeline::Session;
use crate::pipeline::properties::{FormulaText, find_conditions, formula_texts};
use mu_base::{Diagnostic, Stage};
use mu_game::solve::Solver;
use std::path::{Path, PathBuf};

/// Request to check formulas on a model.
pub(crate) struct CheckPlan {
    /// The model.
    pub model: PathBuf,
    /// Interface of the model, if its file is given.
    pub interface: Option<PathBuf>,
    /// The formulas, in the order of the command line.
    pub texts: Vec<FormulaText>,
    /// True if a formula is read from standard input.
    pub reads_input: bool,
    /// Parameters that are set to `any`.
    pub any: Vec<String>,
    /// Method.
    pub search: SearchPlan,
    /// Processes that search together.
    pub distribution: DistributedArgs,
    /// Checkpoints to write and to resume.
    pub checkpoints: CheckpointArgs,
    /// File of the game of a single formula.
    pub game: Option<PathBuf>,
    /// File of the certificate of a single formula for every value.
    pub certificate: Option<PathBuf>,
    /// File of the time of each stage.
    pub timings: Option<PathBuf>,
    /// Results.
    pub output: OutputPlan,
}

/// Method of a check.
pub(crate) struct SearchPlan {
    /// Steps with priority: the value of `--confluence`.
    pub confluence: String,
    /// The engine, if one is given.
    pub chosen_engine: Option<EngineRef>,
    /// Algorithm for games.
    pub solver: &'static dyn Solver,
    /// True if equations are counted with all data variables in scope.
    pub as_written: bool,
    /// Reductions that are off.
    pub without: Vec<Reduction>,
    /// Number of samples by which an answer for every value is audited.
    pub samples: usize,
    /// True if evidence is computed for true formulas also.
    pub witnesses: bool,
}

/// Results of a check.
pub(crate) struct OutputPlan {
    /// The model, for names.
    pub model: PathBuf,
    /// True if each verdict is printed as a line; false if standard output is used otherwise.
    pub lines: bool,
    /// True if the results are needed as one object: for JSON, JUnit, or a page.
    pub object: bool,
    /// File of the JUnit report; `-` is standard output.
    pub junit: Option<PathBuf>,
    /// File of the evidence.
    pub evidence: Option<PathBuf>,
    /// True if all parameters are shown after each step of the evidence.
    pub full_states: bool,
    /// True if this process sees the whole state space.
    pub whole: bool,
}

impl SearchPlan {
    /// Returns the engine for a model without parameters set to `any`: the chosen one, or the
    /// first.
    pub fn engine(&self) -> EngineRef {
        self.chosen_engine.unwrap_or(mu_engines::engines()[0])
    }
}

impl OutputPlan {
    /// Returns the file of the page with all results, if the evidence is a page.
    pub fn page(&self) -> Option<&Path> {
        self.evidence.as_deref().filter(|path| page::is_page(path))
    }
}

impl CheckPlan {
    /// Converts the arguments and reads the texts of the formulas.
    ///
    /// # Errors
    /// A formula file that cannot be read; options that need a model without formulas; a condition
    /// on variables that the model does not have.
    pub fn new(session: &mut Session, args: &CheckArgs) -> Result<Self, Diagnostic> {
        if !args.terminal.is_empty() {
            return Err(Diagnostic::new(
                Stage::Usage,
                "`--terminal` is for the exploration of a model, and cannot be combined with formulas",
            )
            .note("omit the formula, or use `explore`, to count terminations"));
        }
        let mut texts = formula_texts(session, &args.formulas, &args.formula)?;
        // Every process reads all formulas; a formula without text has no checkpoint.
        let needs_all = args.distribution.is_requested() || args.checkpoints.is_requested();
        if let Some(error) = texts.iter().find_map(|t| t.unreadable.clone()).filter(|_| needs_all) {
            return Err(error);
        }
        find_conditions(session, &args.model, &mut texts)?;
        if !session.conditions.is_empty() && args.distribution.is_requested() {
            let message = "conditions on variables are not supported by distributed searches";
            return Err(Diagnostic::new(Stage::Unsupported, message)
                .note("expected actions only, such as `violation(NAME)`"));
        }
        let (format, junit) = (session.common.format, args.junit.clone());
        let evidence = args.evidence.clone();
        let is_page = evidence.as_deref().is_some_and(page::is_page);
        Ok(Self {
            model: args.model.clone(),
            interface: args.interface.clone(),
            texts,
            reads_input: args.formulas.iter().any(|f| f.as_os_str() == "-"),
            any: super::parameters(session),
            search: SearchPlan {
                confluence: args.confluence.clone(),
                chosen_engine: args.chosen_engine,
                solver: solver(args.solver.as_ref()),
                as_written: args.count == Counting::AllParameters,
                without: args.without.clone(),
                samples: args.check_samples,
                witnesses: evidence.is_some(),
            },
            distribution: args.distribution.clone(),
            checkpoints: args.checkpoints.clone(),
            game: args.game.clone(),
            certificate: args.certificate.clone(),
            timings: args.timings.clone(),
            output: OutputPlan {
                model: args.model.clone(),
                lines: format == Format::Text && junit.as_deref() != Some(Path::new("-")),
                object: format == Format::Json || junit.is_some() || is_page,
                junit,
                evidence,
                full_states: args.full_states,
                whole: !args.distribution.is_requested(),
            },
        })
    }

    /// True if there is more than one formula, so that a rejected one does not end the run.
    pub fn has_several(&self) -> bool {
        self.texts.len() > 1
    }
}
