//! Check for options without effect: each is rejected before anything is read, so that no option is
//! silently ignored.
//!
//! In: the command and the options on its command line; defaults do not count. Out: a usage error
//! with the option and its purpose. Some commands reject further options themselves.

use crate::args::{
    CheckArgs, Command, ExpandArgs, ExploreArgs, LitmusArgs, LitmusMethod, OutputLanguage,
    Reduction, ThreadCount,
};
use crate::pipeline::load::properties;
use clap::ArgMatches;
use clap::parser::ValueSource;
use mu_base::{Diagnostic, Stage};
use mu_engines::Engine as _;
use mu_engines::explicit::Explicit;
use mu_frontends::murphi::MURPHI;
use mu_frontends::programs::X86;
use mu_frontends::{FrontEnd as _, Properties};
use std::path::Path;

/// The ids of the options on a command line.
#[derive(Default)]
pub(crate) struct GivenOptions(Vec<String>);

impl GivenOptions {
    /// Collects the options on the command line of a subcommand.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let Some((_, matches)) = matches.subcommand() else { return Self::default() };
        let named = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
        Self(matches.ids().map(clap::Id::as_str).filter(named).map(String::from).collect())
    }
    fn has(&self, id: &str) -> bool {
        self.0.iter().any(|n| n == id)
    }
}

/// An option id, true if it has an effect on this run, and a description of the runs on which it
/// has one.
type OptionRow = (&'static str, bool, &'static str);

/// Rejects the first given option without effect.
pub(crate) fn expect_effect(command: &Command, named: &GivenOptions) -> Result<(), Diagnostic> {
    for (id, effective, applies_to) in rows(command) {
        if !effective && named.has(id) {
            return Err(without_effect(id, applies_to));
        }
    }
    Ok(())
}

fn without_effect(id: &str, applies_to: &str) -> Diagnostic {
    let option = match id {
        "define" => "-D".to_string(),
        "memory_model" => "--model".to_string(),
        "chosen_engine" => "--engine".to_string(),
        id => format!("--{}", id.replace('_', "-")),
    };
    Diagnostic::new(
        Stage::Usage,
        format!("`{option}` has no effect on this run: it applies to {applies_to}"),
    )
    .note("omit the option")
}

/// Returns all options of a command that may be without effect.
fn rows(command: &Command) -> Vec<OptionRow> {
    let mut rows = command.read_options().map_or_else(Vec::new, |_| of_reading(&inputs(command)));
    rows.extend(match command {
        Command::Program(a) => {
            let any = a.threads_of == ThreadCount::Any;
            // `prove` rejects `-D` itself.
            [
                of_translation(any, "any number of threads (`--threads-of any`)"),
                vec![("define", any, PARAMETERS)],
            ]
            .concat()
        }
        Command::Prove(a) => of_translation(is_asm(&a.file), ASM),
        Command::Verify(a) => [
            of_translation(is_asm(&a.file), ASM),
            vec![("max_states", false, "searches, which store states")],
            ["model", "check_samples", "smt_lib"]
                .map(|option| (option, a.of_formula.is_none(), PROOFS))
                .into(),
        ]
        .concat(),
        Command::Robust(a) => {
            vec![("threads_of", is_asm(&a.file), ASM), ("define", false, PARAMETERS)]
        }
        Command::Expand(a) => of_expand(a),
        Command::Litmus(a) => of_litmus(a),
        Command::Check(a) => of_check(a),
        Command::Explore(a) => of_explore(a),
        Command::Models(_) => vec![("define", false, PARAMETERS)],
        Command::Trace(a) => ["addresses", "operations", "seed", "language", "out"]
            .map(|option| (option, a.generate, "generated programs (`--generate`)"))
            .into(),
        _ => Vec::new(),
    });
    rows
}

const PROOFS: &str = "certificates of `prove`";
const ASM: &str = "x86 programs (`.asm`)";
const PARAMETERS: &str = "parameters of a specification";
const BUFFERED: &str = "models with store buffers: programs (`.asm`, `.litmus`) and systems of any number of processes (`.cub`)";

fn is_asm(path: &Path) -> bool {
    X86.has_ending(path)
}

/// Returns the models that a command reads.
fn inputs(command: &Command) -> Vec<&Path> {
    match command {
        Command::Compare(a) => vec![&a.a, &a.b],
        Command::Conform(a) => [&a.model].into_iter().chain(&a.fault).map(AsRef::as_ref).collect(),
        command => command.model().into_iter().collect(),
    }
}

fn of_reading(inputs: &[&Path]) -> Vec<OptionRow> {
    let any = |is: &dyn Fn(Properties) -> bool| inputs.iter().any(|path| is(properties(path)));
    // A folder of faulty machines may contain models of all kinds.
    let folder = inputs.iter().any(|path| path.is_dir());
    let buffered = folder || any(&|p| p.buffered);
    let stored = folder || any(&|p| p.stored);
    vec![
        ("threads_of", folder || inputs.iter().any(|path| is_asm(path)), ASM),
        ("memory_model", buffered, BUFFERED),
        ("buffer", buffered, BUFFERED),
        ("data", stored, "transition systems"),
        ("internal", stored, "transition systems"),
    ]
}

fn of_translation(effective: bool, applies_to: &'static str) -> Vec<OptionRow> {
    vec![("initial", effective, applies_to), ("split_xchg", effective, applies_to)]
}

fn of_expand(args: &ExpandArgs) -> Vec<OptionRow> {
    let system = args.to == OutputLanguage::Cubicle;
    let program = properties(&args.file).program;
    let fixed = "a number of threads: a system (`--to cubicle`) has any number";
    let mut rows = of_translation(system, "`--to cubicle`");
    rows.push(("threads_of", is_asm(&args.file), ASM));
    for id in ["threads_of", "memory_model", "buffer"] {
        rows.push((id, !system, fixed));
    }
    for id in ["memory_model", "buffer"] {
        rows.push((id, program, "programs (`.asm`, `.litmus`)"));
    }
    rows
}

fn of_litmus(args: &LitmusArgs) -> Vec<OptionRow> {
    let shown = args.machine.is_some();
    let is_machine = mu_program::memory::by_name(&args.model).is_some();
    let runs = is_machine && args.by == LitmusMethod::Machine && !shown;
    let cat = "models in `cat`: `--model FILE.cat`, or `--by axioms`";
    vec![
        ("by", is_machine && !shown, "the models `sc`, `tso` and `pso` without `--machine`"),
        ("include", !runs && !shown, cat),
        ("unroll", !runs && !shown, cat),
        ("buffer", runs, "the machines `sc`, `tso` and `pso`"),
        ("define", shown, PARAMETERS),
    ]
}

const FORMULA: &str = "a check of formulas";

fn of_check(args: &CheckArgs) -> Vec<OptionRow> {
    let formulas = !args.formulas.is_empty() || !args.formula.is_empty();
    let any = is_any(&args.common.define);
    let claims = MURPHI.has_ending(&args.model);
    vec![
        (
            "check_samples",
            (formulas || claims) && any,
            "formulas, and the claims of a Murphi model, for every value of a parameter (`-D NAME=any`)",
        ),
        (
            "without",
            formulas && any || !args.without.contains(&Reduction::Verify),
            "with `verify` formulas for every value of a parameter (`-D NAME=any`)",
        ),
        (
            "certificate",
            args.formulas.len() + args.formula.len() == 1 && any,
            "one formula for every value of a parameter (`-D NAME=any`)",
        ),
        ("checkpoint_every", args.checkpoints.is_requested(), "`--checkpoint` and `--resume`"),
        ("solver", formulas, FORMULA),
        ("count", formulas, FORMULA),
        ("junit", formulas || claims, "formulas, and the claims of a Murphi model"),
        ("full_states", formulas || claims, "formulas, and the claims of a Murphi model"),
    ]
}

/// True if a parameter has any value.
fn is_any(defines: &[String]) -> bool {
    defines.iter().any(|d| d.split_once('=').is_some_and(|(_, value)| value.trim() == "any"))
}

fn of_explore(args: &ExploreArgs) -> Vec<OptionRow> {
    let sought = args.goal.kind().is_some();
    let claims = MURPHI.has_ending(&args.model);
    let path = "a path: `--deadlock`, `--action` or `--divergence`";
    let shown = "a path (`--deadlock`, `--action`, `--divergence`) or a failure of a Murphi model";
    let whole = "whole explorations, without `--deadlock`, `--action` and `--divergence`";
    let classifies = [Explicit.name(), "auto", "cluster"].contains(&args.engine.name());
    let symbolic = sought && !classifies;
    vec![
        ("all", sought, path),
        (
            "check_samples",
            claims && is_any(&args.common.define),
            "the claims of a Murphi model for every size of a scalarset (`-D NAME=any`)",
        ),
        ("evidence", sought || claims, shown),
        ("trace_dir", sought, path),
        ("full_states", sought || claims, shown),
        ("terminal", classifies && !args.goal.divergence, "searches that classify deadlocks"),
        ("confluence", !sought, whole),
        ("strategy", !sought, whole),
        ("engine", !symbolic, whole),
        (
            "without",
            !args.without.contains(&Reduction::Verify),
            "with `verify` checks of formulas for every value of a parameter (`-D NAME=any`)",
        ),
        ("checkpoint_every", args.checkpoints.is_requested(), "`--checkpoint` and `--resume`"),
    ]
}
