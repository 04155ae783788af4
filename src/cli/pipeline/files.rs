//! Formats of output files by name, reading of games, exploration to transition systems, and atomic
//! writing.
//!
//! Invariant: a file is written under a temporary name in the same folder and then renamed, so that
//! a partial file never has the final name. A symbolic link remains, and its target is written; a
//! device or a pipe is written directly.

use crate::output;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::load::{Loaded, typed_labels};
use crate::pipeline::{Session, file_error};
use mu_base::host::fs::File;
use mu_base::host::{copy_permissions, link_target};
use mu_base::{Diagnostic, Stage, Stop, ends_in};
use mu_formula::equations::UnrollSelection;
use mu_frontends::Input;
use mu_frontends::equation_systems::{EQUATION_SYSTEMS, EquationText};
use mu_frontends::{FrontEnd as _, formats};
use mu_game::{Game, bes, moves, pg};
use mu_lts::Lts;
use mu_lts::relabel::{Relabel, name_of, no_action, warn_of_no_action};
use mu_lts::typed::TypedDeclarations;
use mu_model::Model;
use mu_process::linearise;
use mu_process::typecheck::check_specification;
use mu_report::junit::{TestCase, suite};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// True if the name of a file is that of a parity game.
pub(crate) fn is_parity_game(path: &Path) -> bool {
    ends_in(path, "pg") || ends_in(path, "gm")
}

/// True if the name of a file is that of an equation system with data.
pub(crate) fn is_equation_system(path: &Path) -> bool {
    EQUATION_SYSTEMS.has_ending(path)
}

/// Returns the error for an evidence file with an unknown extension.
pub(crate) fn unknown_evidence_extension(path: &Path, forms: &str) -> Diagnostic {
    let error = Diagnostic::new(
        Stage::Usage,
        format!("`--evidence {}`: unknown file name extension", path.display()),
    )
    .note(format!("expected a name that ends in {forms}"));
    if ends_in(path, "trc") {
        return error.note("traces of the mCRL2 toolset (.trc) are not written; an .aut file has the same path, and `simulate --trace` reads a .json file");
    }
    error
}

/// Rejects `-`, which is no file here.
fn expect_name(path: &Path) -> Result<(), Diagnostic> {
    if path.as_os_str() != "-" {
        return Ok(());
    }
    let text = "`-` is no name of a file to be written";
    Err(Diagnostic::new(Stage::Usage, text).note("`/dev/stdout` is the standard output"))
}

/// Rejects a name under which no file can be written, before any work is done.
pub(crate) fn expect_writable(path: &Path) -> Result<(), Diagnostic> {
    expect_name(path)?;
    if mu_base::host::is_dir(path) {
        return Err(Diagnostic::new(
            Stage::File,
            format!("cannot write `{}`: it is a folder", path.display()),
        ));
    }
    // The reader of a pipe would take its first writer's end for the end of the text.
    if mu_base::host::is_device(path) {
        return Ok(());
    }
    let partial_path = partial_path(&link_target(path));
    mu_base::host::create(&partial_path)
        .and_then(|_| mu_base::host::fs::remove_file(&partial_path))
        .map_err(|e| file_error("cannot write", path, &e))
}

fn partial_path(path: &Path) -> PathBuf {
    let mut partial_path = path.as_os_str().to_owned();
    partial_path.push(format!(".{}.part", mu_base::host::process_id()));
    PathBuf::from(partial_path)
}

/// Writes a file atomically.
pub(crate) fn write(
    path: &Path,
    content: impl FnOnce(&mut File) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    expect_name(path)?;
    let failed = |e: std::io::Error| file_error("cannot write", path, &e);
    if mu_base::host::is_device(path) {
        return content(&mut mu_base::host::create(path).map_err(failed)?);
    }
    let target = link_target(path);
    let partial_path = partial_path(&target);
    output::register_partial_file(&partial_path);
    let result = mu_base::host::create(&partial_path)
        .map_err(failed)
        .and_then(|mut file| content(&mut file).map_err(|error| with_name(error, path)))
        .and_then(|()| {
            copy_permissions(&target, &partial_path)
                .and_then(|()| mu_base::host::fs::rename(&partial_path, &target))
                .map_err(failed)
        });
    if result.is_err() {
        let _ = mu_base::host::fs::remove_file(&partial_path);
    }
    output::unregister_partial_file(&partial_path);
    result
}

/// Adds the name of a file to an error of a writer that knows only its stream.
pub(crate) fn with_name(error: Diagnostic, path: &Path) -> Diagnostic {
    if error.stage != Stage::File {
        return error;
    }
    let words = ["cannot write: ", "cannot write a checkpoint: "];
    let Some(why) = words.iter().find_map(|w| error.message.strip_prefix(w)) else {
        return error;
    };
    let message = format!("cannot write `{}`: {why}", path.display());
    Diagnostic { message, ..error }
}

/// Writes a JUnit report of a model; to standard output if the file is `-`.
pub(crate) fn write_junit(path: &Path, model: &Path, cases: &[TestCase]) -> Result<(), Diagnostic> {
    let report = suite(&model.display().to_string(), cases);
    if path == Path::new("-") { output::print(&report) } else { write_text(path, &report) }
}

/// Writes a text file atomically.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), Diagnostic> {
    use std::io::Write;
    write(path, |file| {
        file.write_all(text.as_bytes()).map_err(|e| file_error("cannot write", path, &e))
    })
}

/// Reads a `.pg` or `.bes` file; a `.pbes` file is instantiated.
pub(crate) fn read_game(session: &mut Session, path: &Path) -> Result<Game, Diagnostic> {
    output::begin_stage("reading a game");
    if is_equation_system(path) {
        return instantiate_game(session, path);
    }
    session.expect_no_parameters(path)?;
    let text = session.read(path)?;
    let game = if ends_in(path, "bes") { bes::read(&text) } else { pg::read(&text) };
    game.map_err(|d| in_file(d, path))
}

/// Returns the game of an equation system with data, by exploring its instances.
fn instantiate_game(session: &mut Session, path: &Path) -> Result<Game, Diagnostic> {
    let equations =
        session.with_loading(|loading| EquationText::open(&Input::file(path), loading))?;
    let system = equations.read(&UnrollSelection::default())?;
    let process = session.linearise(
        &check_specification(&system.specification)?,
        &linearise::LineariserOptions::default(),
    )?;
    let model = session.compile(process, "none")?;
    let lts = explore_file(session, path, &model)?;
    moves::game(&lts, &system.prefix, &system.least, &system.initial)
}

fn in_file(diagnostic: Diagnostic, path: &Path) -> Diagnostic {
    diagnostic.in_file(&path.display().to_string())
}

/// Rejects a file name without a known extension of transition systems, before any work is done.
pub(crate) fn expect_lts_name(option: &str, path: &Path) -> Result<(), Diagnostic> {
    match formats::of(path) {
        Some(_) => Ok(()),
        None => Err(unknown_format(option, path)),
    }
}

/// Returns the error for a file name without a known extension of transition systems.
fn unknown_format(option: &str, path: &Path) -> Diagnostic {
    let message = format!(
        "`{option}{}`: expected a name that ends in {}",
        path.display(),
        formats::endings_text(false, "")
    );
    Diagnostic::new(Stage::Usage, message)
}

/// Writes a transition system in the format of the file name. `typed`: typed data of its labels.
pub(crate) fn write_lts(
    lts: &Lts,
    typed: Option<&TypedDeclarations>,
    path: &Path,
) -> Result<(), Diagnostic> {
    let mut known = typed;
    if let Some(label) = typed.and_then(|t| t.untyped_label(lts)) {
        eprintln!(
            "warning: {} is written without the data types of the model: the label `{label}` has no typed form",
            path.display()
        );
        known = None;
    }
    let format = formats::of(path).ok_or_else(|| unknown_format("", path))?;
    write(path, |file| format.write(lts, known, file))
}

/// Reads a transition system, or explores a model, with labels renamed and hidden, and with the
/// typed label data that a file `out` can store. Errors: those of reading; a limit.
pub(crate) fn relabelled_system(
    session: &mut Session,
    path: &Path,
    out: Option<&Path>,
    relabel: &Relabel,
) -> Result<(Lts, Option<TypedDeclarations>), Diagnostic> {
    let describe = |loaded: &Loaded| {
        (out.and_then(|out| typed_labels(loaded, out, relabel)), declared_actions(loaded))
    };
    let (lts, (typed, declared)) = system_and(session, path, describe)?;
    let [lts] = relabel_systems(session, relabel, [lts], &[declared])?;
    Ok((lts, typed))
}

/// Returns the names of a model's actions; `None` for a stored system, which does not say what
/// actions exist.
pub(crate) fn declared_actions(loaded: &Loaded) -> Option<Vec<String>> {
    let names = || loaded.actions.iter().map(|a| a.name.clone()).collect();
    loaded.stored.is_none().then(names)
}

/// Renames and hides labels of systems with these [`declared_actions`]. A name without a label is a
/// warning.
///
/// # Errors
/// The name is no action of the models.
pub(crate) fn relabel_systems<const N: usize>(
    session: &Session,
    relabel: &Relabel,
    systems: [Lts; N],
    declared: &[Option<Vec<String>>],
) -> Result<[Lts; N], Diagnostic> {
    for name in relabel.unmatched_names(&systems) {
        let action = name_of(name);
        let exists = |names: &Option<Vec<String>>| {
            names.as_ref().is_none_or(|names| names.iter().any(|n| n == action))
        };
        if !declared.iter().any(exists) {
            return Err(no_action(name, &systems));
        }
        if !session.common.quiet {
            eprintln!("warning: {}", warn_of_no_action(name, &systems));
        }
    }
    Ok(relabel.apply(systems))
}

/// Does the same without relabelling, and with the result of `then` on the explored model.
pub(crate) fn system_and<T>(
    session: &mut Session,
    path: &Path,
    then: impl FnOnce(&Loaded) -> T,
) -> Result<(Lts, T), Diagnostic> {
    let mut loaded = session.load(path, "none")?;
    let found = match &loaded.stored {
        Some(_) => None,
        None => Some(explore_file(session, path, &*loaded.model)?),
    };
    let more = then(&loaded);
    let stored = loaded.stored.take();
    drop(loaded);
    let lts =
        found.or_else(|| stored.map(Arc::unwrap_or_clone)).expect("a system is stored or explored");
    Ok((lts, more))
}

/// Explores a model. Errors: a limit.
fn explore_file(session: &Session, path: &Path, model: &dyn Model) -> Result<Lts, Diagnostic> {
    let options = mu_explore::Options { threads: session.threads(), ..Default::default() };
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let (outcome, lts) = mu_explore::explore_lts(model, &options, &session.budget, &bar)?;
    bar.finish();
    session.log(format!(
        "explored {}: {} states, {} transitions in {:.3} s",
        path.display(),
        group_digits(outcome.states),
        group_digits(outcome.transitions),
        outcome.elapsed.as_secs_f64()
    ));
    if outcome.stop == Stop::Complete { Ok(lts) } else { Err(Diagnostic::stopped(outcome.stop)) }
}
