//! Litmus tests under an axiomatic model (`litmus --model FILE.cat`). The model is compiled once
//! for each architecture of the tests.

use super::{Picture, Route, TestError, TestResult};
use crate::args::{LitmusArgs, LitmusMethod};
use crate::pipeline::{Session, read_text};
use mu_base::{Diagnostic, SourceId, SourceMap, Stage, Stop};
use mu_litmus::code::Arch;
use mu_litmus::file::{Options, architecture};
use mu_litmus::judge::family;
use mu_litmus::paths::Bounds;
use mu_litmus::report::deciding;
use mu_litmus::{Judge, parse};
use mu_report::judged_execution;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A model, compiled on demand for each architecture.
pub(super) struct Axioms {
    name: String,
    text: String,
    folders: Vec<PathBuf>,
    compiled: [OnceLock<Result<Compiled, TestError>>; 4],
    bounds: Bounds,
}

/// A model for an architecture, with its files.
struct Compiled {
    judge: Judge,
    /// The files of the model. The first source is a placeholder for the test, so that a place
    /// belongs either to the test or to the model.
    sources: SourceMap,
}

impl Axioms {
    /// Finds the model of `--model`.
    pub(super) fn find(args: &LitmusArgs) -> Result<Self, Diagnostic> {
        let mut folders = args.include.clone();
        let given = PathBuf::from(&args.model);
        let candidates = std::iter::once(given.clone())
            .chain(
                folders
                    .iter()
                    .flat_map(|f| [f.join(&given), f.join(format!("{}.cat", args.model))]),
            )
            .chain([Path::new("specs/memory").join(format!("{}.cat", args.model))]);
        // Built-in axioms of the machine models.
        if args.by == LitmusMethod::Axioms
            && mu_program::memory::by_name(&args.model).is_some()
            && let Some(text) = mu_axioms::models::file(&format!("{}.cat", args.model))
        {
            return Ok(Self::of(args.model.clone(), text, folders, args));
        }
        let Some(path) = candidates.into_iter().find(|p| mu_base::host::is_file(p)) else {
            // Built-in models need no file.
            let own = args.model.strip_suffix(".cat").unwrap_or(&args.model);
            if let Some(text) = mu_axioms::models::file(&format!("{own}.cat")) {
                return Ok(Self::of(args.model.clone(), text, folders, args));
            }
            let error =
                Diagnostic::new(Stage::Usage, format!("there is no memory model `{}`", args.model));
            return Err(error.note("expected sc, tso, pso, a file in the language cat, or the name of one in a folder of --include"));
        };
        let text = read_text(&path)?;
        folders.push(path.parent().unwrap_or(Path::new("")).to_path_buf());
        Ok(Self::of(path.display().to_string(), text, folders, args))
    }
    fn of(name: String, text: String, folders: Vec<PathBuf>, args: &LitmusArgs) -> Self {
        Self {
            name,
            text,
            folders,
            compiled: Default::default(),
            bounds: Bounds { loops: args.unroll },
        }
    }
    /// Returns the model for an architecture.
    fn judge(&self, arch: Arch) -> Result<&Compiled, TestError> {
        let place = &self.compiled[family(arch) as usize];
        let compiled = place.get_or_init(|| {
            let mut sources = SourceMap::new();
            sources.add("", "");
            let given =
                |name: &str| self.folders.iter().find_map(|f| read_text(&f.join(name)).ok());
            let resolver = |name: &str| given(name).or_else(|| mu_axioms::models::file(name));
            match Judge::compile(&mut sources, arch, &self.name, &self.text, &resolver) {
                Ok(judge) => Ok(Compiled { judge, sources }),
                Err(d) => Err(TestError::new(&d, &sources)),
            }
        });
        compiled.as_ref().map_err(Clone::clone)
    }
}

impl Route for Axioms {
    fn unit(&self) -> &'static str {
        "executions"
    }
    fn answer(
        &self,
        session: &Session,
        source: SourceId,
        text: &str,
    ) -> Result<Result<TestResult, TestError>, Diagnostic> {
        let Compiled { judge, sources } = match self.judge(architecture(source, text)?) {
            Ok(compiled) => compiled,
            Err(refused) => return Ok(Err(refused)),
        };
        let test = parse(source, text, Options { pairs: judge.pairs })?;
        let report = match mu_litmus::run(test, judge, self.bounds, &session.budget) {
            Ok(report) => report,
            // A function or a `let rec` of the model that does not terminate.
            Err(d) if d.span.is_some_and(|s| s.source != source && sources.holds(s.source)) => {
                return Ok(Err(TestError::new(&d, sources)));
            }
            Err(d) => return Err(d),
        };
        let left_out = report.left_out();
        let flags = report.answer.flags.clone();
        let dropped = report.long || report.strayed.is_some() || report.undefined.is_some();
        Ok(Ok(TestResult {
            file: String::new(),
            answer: report.answer,
            stop: report.stop,
            effort: report.executions,
            left_out,
            full_buffer: false,
            more: vec![
                ("flags", json!(flags)),
                ("unrolled", json!(report.unrolled)),
                ("paths_left_out", json!(dropped)),
            ],
        }))
    }
    fn draw(
        &self,
        session: &Session,
        source: SourceId,
        text: &str,
        picture: Picture,
    ) -> Result<Result<(String, usize), Stop>, Diagnostic> {
        // A test is drawn after it was answered, so the model compiles.
        let Ok(Compiled { judge, .. }) = self.judge(architecture(source, text)?) else {
            return Ok(Err(Stop::Complete));
        };
        let test = parse(source, text, Options { pairs: judge.pairs })?;
        let title = format!("{} under {}", test.name, judge.model.name());
        let (found, stop) = deciding(test, judge, self.bounds, &session.budget)?;
        let Some(drawn) = found else { return Ok(Err(stop)) };
        let drawing = match picture {
            Picture::Svg => judged_execution::svg(&drawn, &title),
            Picture::Dot => judged_execution::dot(&drawn, &title),
            Picture::Json | Picture::Page => judged_execution::json(&drawn, &title).to_string(),
        };
        Ok(Ok((drawing, drawn.events.len())))
    }
}
