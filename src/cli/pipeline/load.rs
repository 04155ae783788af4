//! Loading of models for all commands, by the registry of [`mu_frontends`].
//!
//! In: a path. Out: a [`Loaded`] model with typed labels. The session supplies the context of the
//! reading: options, limits, and a journal that prints. Invariant: no command inspects the kind of
//! a file in order to read it; `stored` is set for commands that can use a transition system
//! directly.

use crate::output;
use crate::pipeline::Session;
use mu_base::ids::LabelId;
use mu_base::{Budget, Diagnostic, SourceMap, Span, Stage};
use mu_compile::Confluence;
use mu_compile::typed::typed_declarations;
use mu_frontends::mcrl2::with_parameter;
use mu_frontends::{FrontEnd, Input, Journal, LoadOptions, Loading, Properties, formats};
use mu_lts::relabel::Relabel;
use mu_lts::typed::TypedDeclarations;
use mu_process::linearise;
use mu_process::spec::{Proc, ProcKind, ProcSpec};
use mu_process::typecheck::check_specification;
use mu_syntax::ast::Specification;
use std::cell::RefCell;
use std::path::Path;

pub(crate) use mu_frontends::Loaded;

/// Returns the typed data of the labels seen so far, renamed, for a file to be written; `None` if
/// the format of the file has no declarations or nothing was declared.
pub(crate) fn typed_labels(
    loaded: &Loaded,
    path: &Path,
    relabel: &Relabel,
) -> Option<TypedDeclarations> {
    if !formats::of(path).is_some_and(|f| f.is_typed()) || !loaded.declared {
        return None;
    }
    output::begin_stage("describing the data");
    let all = (0..loaded.model.label_count()).map(LabelId::new);
    match typed_declarations(
        &loaded.data,
        &loaded.actions,
        all.map(|l| (loaded.model.label_text(l), loaded.labels.multi_action(l))),
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

/// Returns the properties of the files of the front end that reads a file.
pub(crate) fn properties(path: &Path) -> Properties {
    mu_frontends::by_name(path).properties()
}

/// Returns the steps with priority for a value of `--confluence`.
pub(crate) fn confluence(value: &str) -> Confluence {
    match value {
        "none" => Confluence::None,
        "auto" => Confluence::Auto,
        names => Confluence::Named(names.split(',').map(|n| n.trim().to_string()).collect()),
    }
}

/// Journal of a session: stages, lines under `-v`, and warnings on standard error.
pub(crate) struct PrintedJournal<'s> {
    /// True if details are printed.
    verbose: bool,
    quiet: bool,
    budget: &'s Budget,
    /// The warnings with places, as JSON.
    warnings: RefCell<Vec<serde_json::Value>>,
}

impl<'s> PrintedJournal<'s> {
    pub(crate) fn new(common: &crate::args::Common, budget: &'s Budget) -> Self {
        let verbose = common.verbose > 0 && !common.quiet;
        Self { verbose, quiet: common.quiet, budget, warnings: RefCell::default() }
    }
}

impl Journal for PrintedJournal<'_> {
    fn begin_stage(&self, name: &'static str) {
        output::begin_stage(name);
    }
    fn log(&self, line: &str) {
        if self.verbose {
            eprintln!("[{:9.3} s] {line}", self.budget.elapsed().as_secs_f64());
        }
    }
    fn warn(&self, text: &str) {
        eprintln!("warning: {text}");
    }
    fn warn_at(&self, sources: &SourceMap, warnings: &[(Span, String)]) {
        self.warnings
            .borrow_mut()
            .extend(crate::output::notes::warn(sources, self.quiet, warnings));
    }
    fn record_parameters(&self, parameters: &[(String, String)]) {
        output::record_parameters(parameters.iter().cloned());
    }
}

/// Returns the options of front ends for the arguments of a command.
fn options(session: &Session, confluence: Confluence) -> LoadOptions {
    let reading = &session.reading;
    LoadOptions {
        confluence,
        threads: reading.threads_of,
        memory: mu_frontends::ProgramMemory {
            model: reading.memory.model.model(),
            buffer: reading.memory.buffer,
        },
        data: reading.data.clone(),
        internal: reading.internal_labels(),
        conditions: session.conditions.clone(),
        shown: session.shown.clone(),
        relabel: session.relabel.clone(),
    }
}

/// Origin of a specification.
pub(crate) enum Origin<'a> {
    /// A file.
    File(&'a Path),
    /// A text, with a name for messages and its front end.
    Text(String, &'a str, &'static dyn FrontEnd),
}

impl<'a> Origin<'a> {
    /// Returns the input, and the front end that reads it.
    fn input(&'a self) -> (Input<'a>, &'static dyn FrontEnd) {
        match self {
            Origin::File(path) => {
                let input = Input::file(path);
                (input, mu_frontends::of(&input))
            }
            Origin::Text(name, text, front_end) => {
                (Input::text_named(Path::new(name), text), *front_end)
            }
        }
    }
    /// Returns the front end.
    pub(crate) fn front_end(&self) -> &'static dyn FrontEnd {
        self.input().1
    }
}

/// An edit of a syntax tree before type checking; added texts become sources.
pub(crate) type Change<'a> =
    dyn FnMut(&mut SourceMap, &mut Specification) -> Result<(), Diagnostic> + 'a;

impl Session {
    /// Loads a model of any front end and rejects probabilistic models. Errors: those of reading; a
    /// limit.
    pub(crate) fn load(&mut self, path: &Path, confluence: &str) -> Result<Loaded, Diagnostic> {
        self.load_origin(&Origin::File(path), confluence)
    }

    /// Loads a model from a file or text, as [`Session::load`].
    pub(crate) fn load_origin(
        &mut self,
        origin: &Origin<'_>,
        confluence: &str,
    ) -> Result<Loaded, Diagnostic> {
        let loaded = self.load_any_origin(origin, confluence)?;
        if loaded.model.is_probabilistic() {
            let message = format!(
                "`{}` is probabilistic (`dist`), which this command does not support",
                origin.input().0.name()
            );
            let note = "supported by `explore`, `check`, and by `reduce` and `compare` with `--equivalence probabilistic`";
            return Err(Diagnostic::new(Stage::Unsupported, message).note(note));
        }
        Ok(loaded)
    }

    /// Loads a model of any front end. `confluence`: the value of `--confluence`.
    pub(crate) fn load_any(&mut self, path: &Path, confluence: &str) -> Result<Loaded, Diagnostic> {
        self.load_any_origin(&Origin::File(path), confluence)
    }

    fn load_any_origin(
        &mut self,
        origin: &Origin<'_>,
        confluence: &str,
    ) -> Result<Loaded, Diagnostic> {
        let confluence = self::confluence(confluence);
        let (input, front_end) = origin.input();
        let loaded = self.with_loading_by(confluence, |loading| {
            mu_frontends::load_with(front_end, &input, loading)
        })?;
        self.buffers.extend(loaded.buffers.clone());
        Ok(loaded)
    }

    /// Runs a function in the context of reading a file.
    pub(crate) fn with_loading_by<T>(
        &mut self,
        confluence: Confluence,
        run: impl FnOnce(&mut Loading<'_>) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        let options = options(self, confluence);
        let journal = PrintedJournal::new(&self.common, &self.budget);
        let result = run(&mut Loading {
            sources: &mut self.sources,
            defines: &self.common.define,
            budget: &self.budget,
            options: &options,
            journal: &journal,
        });
        self.warnings.extend(journal.warnings.into_inner());
        result
    }

    /// Does the same without steps with priority.
    pub(crate) fn with_loading<T>(
        &mut self,
        run: impl FnOnce(&mut Loading<'_>) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        self.with_loading_by(Confluence::None, run)
    }

    /// Edits the syntax tree of a specification and type checks it; `None` if the front end of the
    /// file has no syntax tree of a specification.
    pub(crate) fn edited_specification(
        &mut self,
        origin: &Origin<'_>,
        change: &mut Change<'_>,
    ) -> Result<Option<ProcSpec>, Diagnostic> {
        self.with_loading(|loading| {
            let (input, front_end) = origin.input();
            let Some(mut tree) = front_end.syntax_tree(&input, loading)? else { return Ok(None) };
            change(loading.sources, &mut tree)
                .and_then(|()| check_specification(&tree))
                .map(Some)
                .map_err(|error| with_parameter(error, loading.sources))
        })
    }

    /// Compiles a typed specification that hides no action of `shown`, and all actions of `hidden`.
    pub(crate) fn compile_showing(
        &mut self,
        spec: &ProcSpec,
        (shown, hidden): (&[&str], &[&str]),
        confluence: &Confluence,
    ) -> Result<Loaded, Diagnostic> {
        let mut spec = spec.clone();
        show_actions(&mut spec, shown);
        hide_actions(&mut spec, hidden);
        let process = self.linearise(&spec, &linearise::LineariserOptions::default())?;
        self.compile_with(process, confluence).map(Loaded::from)
    }

    /// Reads a typed specification, for commands on its text or its linear process. Error: the
    /// front end of the file has none.
    pub(crate) fn specification(&mut self, path: &Path) -> Result<ProcSpec, Diagnostic> {
        self.with_loading(|loading| mu_frontends::specification(&Input::file(path), loading))
    }
}

/// Hides actions of a specification.
pub(crate) fn hide_actions(spec: &mut ProcSpec, hidden: &[&str]) {
    if hidden.is_empty() {
        return;
    }
    let delta = Proc { kind: ProcKind::Delta, span: Span::default() };
    let init = std::mem::replace(&mut spec.init, delta);
    let span = init.span;
    let names = hidden.iter().map(ToString::to_string).collect();
    spec.init = Proc { kind: ProcKind::Hide(names, Box::new(init)), span };
}

/// Removes names from all `hide` operators of a specification.
pub(crate) fn show_actions(spec: &mut ProcSpec, names: &[&str]) {
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
