//! Model loader: a file of any front end becomes a [`Loaded`] model, which every command takes.
//!
//! In: a path; its extension selects the front end. Out: a [`Loaded`] model with typed labels. A
//! new front end is one entry of [`FRONT_ENDS`]: either it produces a specification, which is
//! linearised and compiled here, or it builds a model itself. Invariant: no command inspects the
//! kind of a file in order to read it; `stored` is set for commands that can use a transition
//! system directly.

use super::files::{FileKind, read_lts};
use super::output;
use super::pipeline::{Session, no_specification};
use super::program::read_any;
use mu_base::host::Instant;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, SourceMap, Span, Stage};
use mu_compile::typed::typed;
use mu_compile::{Compiled, Confluence};
use mu_data::expr::DataSpec;
use mu_formula::equations;
use mu_labels::declared::DeclaredLabels;
use mu_labels::inferred::InferredLabels;
use mu_labels::{ActionDecl, ActionLabels};
use mu_lts::Lts;
use mu_lts::relabel::{Relabel, with_internal};
use mu_lts::typed::Typed;
use mu_model::Model;
use mu_model::from_lts::LtsModel;
use mu_process::linearise;
use mu_process::spec::{Proc, ProcKind, ProcSpec};
use mu_process::typecheck::check_specification;
use mu_program::expansion::{ends, mcrl2};
use mu_program::machine::Machine;
use mu_syntax::ast::Specification;
use mu_syntax::template::{Expanded, Value};
use std::path::Path;
use std::sync::Arc;

/// Output of every front end: a model, and labels with typed arguments over the data that formulas
/// may use.
pub(super) struct Loaded {
    /// The model for the engines.
    pub model: Arc<dyn Model>,
    /// The labels for matching with formulas.
    pub labels: Arc<dyn ActionLabels>,
    /// Data types of the labels.
    pub data: DataSpec,
    /// The declared actions.
    pub actions: Vec<ActionDecl>,
    /// True if data and actions were declared, false if they were inferred from the texts of
    /// labels.
    pub declared: bool,
    /// The stored transition system, if the file contains one.
    pub stored: Option<Arc<Lts>>,
    /// The compiled specification, if the model is one.
    pub compiled: Option<Arc<Compiled>>,
}

impl From<Compiled> for Loaded {
    fn from(compiled: Compiled) -> Self {
        let compiled = Arc::new(compiled);
        let (data, actions) = (compiled.process().data.clone(), compiled.process().actions.clone());
        Self {
            model: compiled.clone(),
            labels: compiled.clone(),
            data,
            actions,
            declared: true,
            stored: None,
            compiled: Some(compiled),
        }
    }
}

impl Loaded {
    /// Returns the typed data of the labels seen so far, renamed; `None` if the format of the file
    /// has no declarations or nothing was declared.
    pub(super) fn typed(&self, path: &Path, relabel: &Relabel) -> Option<Typed> {
        if FileKind::of(path) != FileKind::Mcrl2 || !self.declared {
            return None;
        }
        output::begin_stage("describing the data");
        let all = (0..self.model.label_count()).map(LabelId::new);
        match typed(
            &self.data,
            &self.actions,
            all.map(|l| (self.model.label_text(l), self.labels.multi_action(l))),
        ) {
            Ok(mut typed) => {
                relabel.rename_typed(&mut typed);
                Some(typed)
            }
            Err(why) => {
                eprintln!(
                    "warning: {} is written without the data types of the model: {}",
                    path.display(),
                    why.message
                );
                None
            }
        }
    }
}

/// Origin of a specification.
pub(super) enum Origin<'a> {
    /// A file.
    File(&'a Path),
    /// A text, with a name for messages.
    Text(String, &'a str),
}

/// An edit of a syntax tree before type checking; added texts become sources.
pub(super) type Change<'a> =
    dyn FnMut(&mut SourceMap, &mut Specification) -> Result<(), Diagnostic> + 'a;

/// Reader of a front end.
enum Reader {
    /// Text that becomes a specification, which is linearised and compiled.
    Specification(fn(&mut Session, &Path) -> Result<ProcSpec, Diagnostic>),
    /// A model of its own.
    Model(fn(&mut Session, &Path) -> Result<Loaded, Diagnostic>),
    /// Rejected: the file contains no model; the text says what is expected.
    Rejected(&'static str),
}

/// A front end of the loader.
struct FrontEnd {
    /// True if this front end reads files of this kind.
    reads: fn(FileKind) -> bool,
    reader: Reader,
}

/// All front ends; the first that reads a kind is used.
const FRONT_ENDS: [FrontEnd; 6] = [
    FrontEnd { reads: FileKind::is_lts, reader: Reader::Model(load_lts) },
    FrontEnd { reads: |form| form == FileKind::Program, reader: Reader::Specification(program) },
    FrontEnd {
        reads: |form| form == FileKind::System,
        reader: Reader::Model(super::systems::load),
    },
    FrontEnd {
        reads: |form| form == FileKind::Pbes,
        reader: Reader::Specification(equation_system),
    },
    FrontEnd {
        reads: |form| form == FileKind::Dot || form.is_game(),
        reader: Reader::Rejected(
            "expected a specification, a program, an equation system with data, or an .aut, .aut.gz, .blts or .lts file",
        ),
    },
    FrontEnd { reads: |_| true, reader: Reader::Specification(specification) },
];

fn reader(path: &Path) -> &'static Reader {
    let form = FileKind::of(path);
    // The last front end reads all kinds.
    let at = FRONT_ENDS.iter().position(|f| (f.reads)(form)).unwrap_or(FRONT_ENDS.len() - 1);
    &FRONT_ENDS[at].reader
}

impl Session {
    /// Loads a model of any front end and rejects probabilistic models. Errors: those of reading; a
    /// limit.
    pub(super) fn load(&mut self, path: &Path, confluence: &str) -> Result<Loaded, Diagnostic> {
        let loaded = self.load_any(path, confluence)?;
        if loaded.model.is_probabilistic() {
            let message = format!(
                "`{}` is probabilistic (`dist`), which this command does not support",
                path.display()
            );
            let note = "supported by `explore`, `check`, and by `reduce` and `compare` with `--equivalence probabilistic`";
            return Err(Diagnostic::new(Stage::Unsupported, message).note(note));
        }
        Ok(loaded)
    }

    /// Loads a model of any front end.
    pub(super) fn load_any(&mut self, path: &Path, confluence: &str) -> Result<Loaded, Diagnostic> {
        let process = match reader(path) {
            Reader::Rejected(expected) => {
                return Err(Diagnostic::new(
                    Stage::Usage,
                    format!("`{}` is not a model", path.display()),
                )
                .note(*expected));
            }
            Reader::Model(read) => {
                if confluence != "none" {
                    let what = if FileKind::of(path).is_lts() {
                        "a transition system"
                    } else {
                        "no specification"
                    };
                    let message = format!(
                        "`--confluence` is for the hidden steps of a specification; `{}` is {what}",
                        path.display()
                    );
                    return Err(Diagnostic::new(Stage::Usage, message));
                }
                return read(self, path);
            }
            Reader::Specification(read) => {
                let spec = self.read_timed(path, *read)?;
                if let Some(machine) = self.machine.take() {
                    output::begin_stage("searching for full store buffers");
                    self.buffer_was_full |= mu_safety::buffers::are_full(&machine, &self.budget)?;
                }
                self.linearise(&spec, &linearise::Options::default())?
            }
        };
        let ends = std::mem::take(&mut self.terminations);
        self.compile(process, confluence).map(|c| Loaded::from(c.with_terminal_conditions(ends)))
    }

    /// Edits the syntax tree of a specification and type checks it; `None` if the front end of the
    /// file has no syntax tree of a specification.
    pub(super) fn edited_specification(
        &mut self,
        origin: &Origin<'_>,
        change: &mut Change<'_>,
    ) -> Result<Option<ProcSpec>, Diagnostic> {
        let expanded = match origin {
            Origin::File(path) if FileKind::of(path) == FileKind::Other => self.expand(path)?,
            Origin::File(_) => return Ok(None),
            Origin::Text(name, text) => self.expand_text(name, text)?,
        };
        let mut tree = parsed(self, &expanded)?;
        change(&mut self.sources, &mut tree)?;
        check_specification(&tree).map(Some)
    }

    /// Compiles a typed specification that hides no action of `shown`, and all actions of `hidden`.
    pub(super) fn compile_showing(
        &mut self,
        spec: &ProcSpec,
        (shown, hidden): (&[&str], &[&str]),
        confluence: &Confluence,
    ) -> Result<Loaded, Diagnostic> {
        let mut spec = spec.clone();
        show(&mut spec, shown);
        if !hidden.is_empty() {
            let init = std::mem::replace(
                &mut spec.init,
                Proc { kind: ProcKind::Delta, span: Span::default() },
            );
            let span = init.span;
            spec.init = Proc {
                kind: ProcKind::Hide(
                    hidden.iter().map(ToString::to_string).collect(),
                    Box::new(init),
                ),
                span,
            };
        }
        let process = self.linearise(&spec, &linearise::Options::default())?;
        self.compile_with(process, confluence).map(Loaded::from)
    }

    /// Reads a typed specification, for commands on its text or its linear process. Error: the
    /// front end of the file has none.
    pub(super) fn specification(&mut self, path: &Path) -> Result<ProcSpec, Diagnostic> {
        match reader(path) {
            Reader::Specification(read) => self.read_timed(path, *read),
            Reader::Model(_) | Reader::Rejected(_) => Err(no_specification(path)),
        }
    }

    fn read_timed(
        &mut self,
        path: &Path,
        read: fn(&mut Session, &Path) -> Result<ProcSpec, Diagnostic>,
    ) -> Result<ProcSpec, Diagnostic> {
        let start = Instant::now();
        output::begin_stage("reading the specification");
        let spec = read(self, path)?;
        let warnings = super::notes::warn(self, &spec.warnings);
        self.warnings.extend(warnings);
        self.log(format!(
            "parsed and type checked {} in {:.3} s",
            path.display(),
            start.elapsed().as_secs_f64()
        ));
        Ok(spec)
    }
}

/// Removes names from all `hide` operators of a specification.
fn show(spec: &mut ProcSpec, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    let mut open: Vec<&mut Proc> =
        spec.procs.iter_mut().map(|p| &mut p.body).chain([&mut spec.init]).collect();
    while let Some(p) = open.pop() {
        match &mut p.kind {
            ProcKind::Action(..) | ProcKind::Call(..) | ProcKind::Delta | ProcKind::Tau => {}
            ProcKind::Choice(a, b)
            | ProcKind::Seq(a, b)
            | ProcKind::Parallel(a, b)
            | ProcKind::LeftMerge(a, b)
            | ProcKind::Sync(a, b)
            | ProcKind::BoundedInit(a, b) => open.extend([&mut **a, &mut **b]),
            ProcKind::If(_, a, b) => {
                open.extend([Some(a), b.as_mut()].into_iter().flatten().map(|p| &mut **p))
            }
            ProcKind::Hide(hidden, a) => {
                hidden.retain(|h| !names.contains(&h.as_str()));
                open.push(a);
            }
            ProcKind::At(a, _)
            | ProcKind::Sum(_, a)
            | ProcKind::Dist(_, _, a)
            | ProcKind::Block(_, a)
            | ProcKind::Allow(_, a)
            | ProcKind::Rename(_, a)
            | ProcKind::Comm(_, a) => open.push(a),
        }
    }
}

/// Reads mCRL2, with or without parameters.
fn specification(session: &mut Session, path: &Path) -> Result<ProcSpec, Diagnostic> {
    let expanded = session.expand(path)?;
    check_specification(&parsed(session, &expanded)?)
}

/// Parses an expanded text. Error: a parameter has the value `any`.
fn parsed(session: &Session, expanded: &Expanded) -> Result<Specification, Diagnostic> {
    for p in &expanded.params {
        if let Value::Any { .. } = p.value {
            let text = format!(
                "`-D {}=any` means every value, which is only supported by `check` with formulas on a specification",
                p.name
            );
            return Err(Diagnostic::new(Stage::Usage, text));
        }
        session.log(format!("parameter {} = {}", p.name, p.value));
    }
    mu_syntax::parse_specification(expanded.source, &expanded.text)
}

/// Translates an x86 program or litmus test with its memory to mCRL2, as `expand` prints it.
fn program(session: &mut Session, path: &Path) -> Result<ProcSpec, Diagnostic> {
    session.expect_no_parameters(path)?;
    let program = read_any(session, path, session.reading.threads_of)?;
    let memory = &session.reading.memory;
    let bound = program.buffer_bound(memory.buffer);
    let machine = Machine::new(program, memory.model.model(), bound, &[]);
    let text = mcrl2(&machine);
    session.terminations = ends(&machine);
    let bounded = bound.is_some() && machine.memory.buffered();
    session.machine = bounded.then_some(machine);
    let source = session.sources.add(format!("{} as mCRL2", path.display()), text.clone());
    check_specification(&mu_syntax::parse_specification(source, &text)?)
}

/// Reads an equation system with data: states are its instances, transitions their dependencies.
fn equation_system(session: &mut Session, path: &Path) -> Result<ProcSpec, Diagnostic> {
    let expanded = session.expand(path)?;
    check_specification(&equations::read(expanded.source, &expanded.text)?.specification)
}

/// Reads a stored transition system. Its labels are typed by the model of `--data`, otherwise by
/// the declarations in the file, otherwise by inference from the labels.
fn load_lts(session: &mut Session, path: &Path) -> Result<Loaded, Diagnostic> {
    let (lts, brought) = read_lts(path)?;
    let lts = Arc::new(with_internal(lts, &session.reading.internal_labels()));
    let model = Arc::new(LtsModel::new(lts.clone()));
    let stored = Some(lts.clone());
    let texts = &lts.table.texts;
    let declares = match session.reading.data.clone() {
        Some(declares) => {
            let spec = session.specification(&declares)?;
            let labels = DeclaredLabels::new(texts, spec.data, spec.actions);
            Some(labels.map_err(|d| {
                d.note(format!(
                    "the labels are from {}, the declarations from {}",
                    path.display(),
                    declares.display()
                ))
            })?)
        }
        None => {
            session.expect_no_parameters(path)?;
            match brought.map(|text| text.and_then(|text| declared(session, path, texts, &text))) {
                Some(Err(why)) => {
                    let why = why.message;
                    eprintln!(
                        "warning: the declarations in {} are ignored: {why}; use `--data MODEL` to supply others",
                        path.display()
                    );
                    None
                }
                labels => labels.and_then(Result::ok),
            }
        }
    };
    if let Some(labels) = declares {
        let (data, actions) = (labels.data().clone(), labels.actions().to_vec());
        return Ok(Loaded {
            model,
            labels: Arc::new(labels),
            data,
            actions,
            declared: true,
            stored,
            compiled: None,
        });
    }
    let labels = InferredLabels::new(&lts.table.texts)?;
    let (data, actions) = (labels.data().clone(), labels.actions().to_vec());
    Ok(Loaded {
        model,
        labels: Arc::new(labels),
        data,
        actions,
        declared: false,
        stored,
        compiled: None,
    })
}

/// Types the labels of a transition system by the declarations in its file.
fn declared(
    session: &mut Session,
    path: &Path,
    texts: &[String],
    declarations: &str,
) -> Result<DeclaredLabels, Diagnostic> {
    let source = session
        .sources
        .add(format!("the declarations of {}", path.display()), declarations.to_string());
    let spec = check_specification(&mu_syntax::parse_specification(source, declarations)?)?;
    DeclaredLabels::new(texts, spec.data, spec.actions)
}
