//! Files by their endings: transition systems, games; whole files or none.
//!
//! Invariant: a file is written beside its name and then renamed, so that its name never stands for
//! half of it.

use super::load::Loaded;
use super::output;
use super::pipeline::{Session, file_error};
use super::progress::{Bar, grouped};
use mu_base::host::fs::File;
use mu_base::{Diagnostic, SourceId, Stage, Stop};
use mu_formula::equations;
use mu_game::{Game, bes, moves, pg};
use mu_lts::relabel::Relabel;
use mu_lts::typed::Typed;
use mu_lts::{Lts, aut, binary, dot, fsm, mcrl2};
use mu_model::Model;
use mu_process::linearise;
use mu_process::typecheck::check_specification;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a file name says of its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Aut,
    AutGz,
    /// Our own binary form.
    Binary,
    /// mCRL2's binary form.
    Mcrl2,
    /// The text form of mCRL2's visualiser.
    Fsm,
    Dot,
    Pg,
    Bes,
    /// An equation system with data, as text or in mCRL2's binary form.
    Pbes,
    /// A linear process in mCRL2's binary form.
    Lps,
    /// An x86 program or a litmus test.
    Program,
    /// A system of any number of processes.
    System,
    /// Nothing known: a specification.
    Other,
}

impl Form {
    pub(super) fn of(path: &Path) -> Form {
        let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
        let ends = |ending: &str| name.ends_with(ending);
        match () {
            () if ends(".aut") => Form::Aut,
            () if ends(".aut.gz") => Form::AutGz,
            () if ends(".blts") => Form::Binary,
            () if ends(".lts") => Form::Mcrl2,
            () if ends(".fsm") => Form::Fsm,
            () if ends(".lps") => Form::Lps,
            () if ends(".dot") || ends(".gv") => Form::Dot,
            () if ends(".pg") || ends(".gm") => Form::Pg,
            () if ends(".bes") => Form::Bes,
            () if ends(".pbes") || ends(".pbes.txt") => Form::Pbes,
            () if ends(".asm") || ends(".litmus") => Form::Program,
            () if ends(".cub") => Form::System,
            () => Form::Other,
        }
    }
    pub(super) fn is_lts(self) -> bool {
        matches!(self, Form::Aut | Form::AutGz | Form::Binary | Form::Mcrl2 | Form::Fsm)
    }
    pub(super) fn is_game(self) -> bool {
        matches!(self, Form::Pg | Form::Bes | Form::Pbes)
    }
}

/// The error for evidence under a name that asks for none of the forms there are.
pub(super) fn no_form_of_evidence(path: &Path, forms: &str) -> Diagnostic {
    Diagnostic::new(
        Stage::Usage,
        format!("`--evidence {}`: unknown file name extension", path.display()),
    )
    .note(format!("expected a name that ends in {forms}"))
}

/// Refuses a name under which no file can be written, before any work is done.
pub(super) fn expect_writable(path: &Path) -> Result<(), Diagnostic> {
    if mu_base::host::is_dir(path) {
        return Err(Diagnostic::new(
            Stage::File,
            format!("cannot write `{}`: it is a folder", path.display()),
        ));
    }
    let beside = beside(path);
    mu_base::host::create(&beside)
        .and_then(|_| mu_base::host::fs::remove_file(&beside))
        .map_err(|e| file_error("cannot write", path, &e))
}

fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", mu_base::host::process_id()));
    PathBuf::from(beside)
}

/// Writes a file as a whole.
pub(super) fn write(
    path: &Path,
    content: impl FnOnce(&mut File) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let beside = beside(path);
    output::part(&beside);
    let result = mu_base::host::create(&beside)
        .map_err(|e| file_error("cannot write", path, &e))
        .and_then(|mut file| content(&mut file))
        .and_then(|()| {
            mu_base::host::fs::rename(&beside, path)
                .map_err(|e| file_error("cannot write", path, &e))
        });
    if result.is_err() {
        let _ = mu_base::host::fs::remove_file(&beside);
    }
    output::whole(&beside);
    result
}

/// Writes a text file as a whole.
pub(super) fn write_text(path: &Path, text: &str) -> Result<(), Diagnostic> {
    use std::io::Write;
    write(path, |file| {
        file.write_all(text.as_bytes()).map_err(|e| file_error("cannot write", path, &e))
    })
}

/// What a file with declarations brings: a specification without behaviour, or why there is no text
/// for it.
pub(super) type Brought = Option<Result<String, Diagnostic>>;

/// Reads a transition system in the form that the name says, and the declarations if the file
/// brings some.
pub(super) fn read_lts(path: &Path) -> Result<(Lts, Brought), Diagnostic> {
    output::stage("reading a transition system");
    let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
    match Form::of(path) {
        Form::Binary => binary::read(file).map(|lts| (lts, None)),
        Form::Mcrl2 => {
            mcrl2::read_with_declarations(file).map(|(lts, brought)| (lts, Some(brought)))
        }
        Form::Fsm => fsm::read(file).map(|lts| (lts, None)),
        _ => aut::read(file, &aut::AutOptions::default()).map(|lts| (lts, None)),
    }
    .map_err(|d| in_file(d, path))
}

/// The text of a specification or an equation system: of a file in mCRL2's binary form, what it
/// says in mCRL2.
pub(super) fn model_text(
    session: &mut Session,
    path: &Path,
) -> Result<(String, String), Diagnostic> {
    let form = Form::of(path);
    if !matches!(form, Form::Lps | Form::Pbes) || !is_binary(path)? {
        return Ok((path.display().to_string(), session.read(path)?));
    }
    output::stage("reading terms");
    let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
    let text = if form == Form::Lps {
        mcrl2::read_process(file)
    } else {
        mcrl2::read_equations(file).map(|read| read.text)
    };
    Ok((as_mcrl2(path), text.map_err(|d| in_file(d, path))?))
}

fn as_mcrl2(path: &Path) -> String {
    format!("{} as mCRL2", path.display())
}

/// An equation system that is to be read as often as needed, since its quantifiers may have to be
/// unrolled.
pub(super) struct Equations {
    source: SourceId,
    text: String,
    /// If it was in mCRL2's binary form.
    outlined: Option<mcrl2::Outlined>,
}

impl Equations {
    /// Opens a file.
    pub(super) fn open(session: &mut Session, path: &Path) -> Result<Self, Diagnostic> {
        if !is_binary(path)? {
            let expanded = session.expand(path)?;
            return Ok(Self { source: expanded.source, text: expanded.text, outlined: None });
        }
        output::stage("reading terms");
        let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
        let outlined = mcrl2::read_equations(file).map_err(|d| in_file(d, path))?;
        let expanded = session.expand_text(&as_mcrl2(path), &outlined.text)?;
        // Parts of a text that has changed stand elsewhere.
        let outlined = (expanded.text == outlined.text).then_some(outlined);
        Ok(Self { source: expanded.source, text: expanded.text, outlined })
    }
    /// The system, with some quantifiers unrolled.
    pub(super) fn read(
        &self,
        unrolled: &equations::Unrolled,
    ) -> Result<equations::System, Diagnostic> {
        match &self.outlined {
            Some(outlined) => equations::read_outlined(self.source, outlined, unrolled),
            None => equations::read_unrolled(self.source, &self.text, unrolled),
        }
    }
}

/// Whether a file begins as mCRL2's binary forms do.
fn is_binary(path: &Path) -> Result<bool, Diagnostic> {
    use std::io::Read;
    let mut start = Vec::new();
    let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
    file.take(mcrl2::MAGIC.len() as u64)
        .read_to_end(&mut start)
        .map_err(|e| file_error("cannot read", path, &e))?;
    Ok(start == mcrl2::MAGIC)
}

/// Reads a `.pg` or `.bes` file; a `.pbes` file is instantiated.
pub(super) fn read_game(session: &mut Session, path: &Path) -> Result<Game, Diagnostic> {
    output::stage("reading a game");
    match Form::of(path) {
        Form::Pbes => instantiated(session, path),
        form => {
            session.expect_no_parameters(path)?;
            let text = session.read(path)?;
            let game = if form == Form::Bes { bes::read(&text) } else { pg::read(&text) };
            game.map_err(|d| in_file(d, path))
        }
    }
}

/// The game of an equation system with data: its states are explored.
fn instantiated(session: &mut Session, path: &Path) -> Result<Game, Diagnostic> {
    let system = Equations::open(session, path)?.read(&equations::Unrolled::default())?;
    let process = session
        .linearised(&check_specification(&system.specification)?, &linearise::Options::default())?;
    let model = session.compiled(process, "none")?;
    match explored(session, path, &model)? {
        Ok(lts) => moves::game(&lts, &system.prefix, &system.least, &system.initial),
        Err(stop) => Err(Diagnostic::stopped(stop)),
    }
}

fn in_file(diagnostic: Diagnostic, path: &Path) -> Diagnostic {
    diagnostic.in_file(&path.display().to_string())
}

/// Refuses a name for a transition system that has none of the endings, before any work is done.
pub(super) fn expect_lts_name(option: &str, path: &Path) -> Result<(), Diagnostic> {
    match Form::of(path) {
        form if form.is_lts() || form == Form::Dot => Ok(()),
        _ => {
            let message = format!(
                "`{option}{}`: expected a name that ends in .aut, .aut.gz, .blts, .lts, .fsm or .dot",
                path.display()
            );
            Err(Diagnostic::new(Stage::Usage, message))
        }
    }
}

/// Writes a transition system in the form that the name says, with what is known of the data in its
/// labels.
pub(super) fn write_lts(lts: &Lts, typed: Option<&Typed>, path: &Path) -> Result<(), Diagnostic> {
    let mut known = typed;
    if let Some(label) = typed.and_then(|t| t.unknown(lts)) {
        eprintln!(
            "warning: {} does not bring the data of the model: the label `{label}` has no typed form",
            path.display()
        );
        known = None;
    }
    write(path, |file| match Form::of(path) {
        Form::AutGz => aut::write_gz(lts, file),
        Form::Binary => binary::write(lts, file),
        Form::Mcrl2 => mcrl2::write(lts, known, file),
        Form::Fsm => fsm::write(lts, file),
        Form::Dot => dot::write(lts, file),
        _ => aut::write(lts, file),
    })
}

/// A transition system: a stored one, or a model explored; or why that ended early.
pub(super) fn transition_system(
    session: &mut Session,
    path: &Path,
) -> Result<Result<Lts, Stop>, Diagnostic> {
    Ok(system_for(session, path, None, &Relabel::default())?.map(|(lts, _)| lts))
}

/// The same, with its labels renamed and hidden, and what a file of this name holds of their data.
pub(super) fn system_for(
    session: &mut Session,
    path: &Path,
    out: Option<&Path>,
    relabel: &Relabel,
) -> Result<Result<(Lts, Option<Typed>), Stop>, Diagnostic> {
    let found =
        system_with(session, path, |loaded| out.and_then(|out| loaded.typed(out, relabel)))?;
    found
        .map(|(lts, typed)| relabel.apply([lts]).map(|[lts]| (lts, typed)))
        .map_or_else(|stop| Ok(Err(stop)), |system| system.map(Ok))
}

/// The same as it is, and what `then` takes of the model once it is explored.
pub(super) fn system_with<T>(
    session: &mut Session,
    path: &Path,
    then: impl FnOnce(&Loaded) -> T,
) -> Result<Result<(Lts, T), Stop>, Diagnostic> {
    let mut loaded = session.load(path, "none")?;
    let stored = loaded.stored.take();
    let found = match &stored {
        Some(_) => None,
        None => match explored(session, path, &*loaded.model)? {
            Ok(lts) => Some(lts),
            Err(stop) => return Ok(Err(stop)),
        },
    };
    let more = then(&loaded);
    drop(loaded);
    let lts =
        found.or_else(|| stored.map(Arc::unwrap_or_clone)).expect("a system is stored or explored");
    Ok(Ok((lts, more)))
}

/// The states and steps of a model; or why the search ended early.
fn explored(
    session: &Session,
    path: &Path,
    model: &dyn Model,
) -> Result<Result<Lts, Stop>, Diagnostic> {
    let options = mu_explore::Options { threads: session.threads(), ..Default::default() };
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let (outcome, lts) = mu_explore::explore_lts(model, &options, &session.budget, &bar)?;
    bar.finish();
    session.say(format!(
        "explored {}: {} states, {} transitions in {:.3} s",
        path.display(),
        grouped(outcome.states),
        grouped(outcome.transitions),
        outcome.elapsed.as_secs_f64()
    ));
    Ok(if outcome.stop == Stop::Complete { Ok(lts) } else { Err(outcome.stop) })
}
