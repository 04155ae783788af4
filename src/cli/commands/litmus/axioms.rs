//! Litmus tests under an axiomatic model (`litmus --model FILE.cat`). The model is compiled once
//! for each architecture of the tests.

use super::kernel::KernelFiles;
use super::{Picture, Route, TestError, TestResult, complete};
use crate::args::LitmusArgs;
use crate::pipeline::{Session, read_text};
use mu_base::{Diagnostic, SourceId, SourceMap, Stage};
use mu_litmus::code::Arch;
use mu_litmus::file::{ParserOptions, architecture};
use mu_litmus::judge::family;
use mu_litmus::kernel::KernelLanguage;
use mu_litmus::paths::PathBounds;
use mu_litmus::report::find_deciding_execution;
use mu_litmus::{Judge, parse};
use mu_report::execution_graph;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A model, compiled on demand for each architecture.
pub(super) struct Axioms {
    name: String,
    text: String,
    /// The folders of files that it may include; none for a built-in model.
    folders: Vec<PathBuf>,
    /// The variants of the herd tools that a configuration enables.
    variants: Vec<String>,
    compiled: [OnceLock<Result<Compiled, TestError>>; 7],
    /// The language of tests in C if the model is one of the Linux kernel.
    kernel: Option<KernelFiles>,
    bounds: PathBounds,
}

/// The lines of a configuration file of the herd tools that matter here. The others choose
/// drawings.
#[derive(Debug, Default)]
struct HerdSettings {
    model: Option<String>,
    /// Annotations of the Linux kernel.
    bell: Option<String>,
    /// Macros of the Linux kernel.
    macros: Option<String>,
    variants: Vec<String>,
}

impl HerdSettings {
    fn parse(text: &str) -> Self {
        let mut out = Self::default();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            match line.split_once(char::is_whitespace) {
                Some(("model", file)) => out.model = Some(file.trim().to_string()),
                Some(("bell", file)) => out.bell = Some(file.trim().to_string()),
                Some(("macros", file)) => out.macros = Some(file.trim().to_string()),
                Some(("variant", list)) => {
                    out.variants.extend(list.split(',').map(|v| v.trim().to_string()));
                }
                _ => {}
            }
        }
        out
    }
}

/// A model for an architecture, with its files.
struct Compiled {
    judge: Judge,
    language: Option<KernelLanguage>,
    /// The files of the model. The first source is a placeholder for the test, so that a place
    /// belongs either to the test or to the model.
    sources: SourceMap,
}

impl Axioms {
    /// Finds the model of `--model`. A name without an extension is a built-in model, if there is
    /// one. A file, also that of a configuration (`.cfg`), includes files of its folder first, then
    /// those of `--include`, and built-in files last. A built-in model includes built-in ones only.
    pub(super) fn find(args: &LitmusArgs) -> Result<Self, Diagnostic> {
        Self::from_name(&args.model, &args.include, args)
    }
    fn from_name(word: &str, include: &[PathBuf], args: &LitmusArgs) -> Result<Self, Diagnostic> {
        if let Some(known) = mu_axioms::models::by_name(word) {
            let kernel = KernelFiles::built_in(word);
            return Ok(Self { kernel, ..Self::built_in(word, known.text.to_string(), args) });
        }
        let given = PathBuf::from(word);
        let mut candidates = vec![given.clone()];
        for folder in include {
            candidates.extend([folder.join(&given), folder.join(format!("{word}.cat"))]);
        }
        let Some(path) = candidates.into_iter().find(|p| mu_base::host::is_file(p)) else {
            // `rvwmo.cat` is the built-in file if there is no other one.
            if let Some(text) = mu_axioms::models::file(word) {
                let stem = given.file_stem().and_then(|s| s.to_str());
                let kernel = stem.and_then(KernelFiles::built_in);
                return Ok(Self { kernel, ..Self::built_in(word, text, args) });
            }
            let error = Diagnostic::new(Stage::Usage, format!("there is no memory model `{word}`"));
            return Err(error.note(format!(
                "expected a built-in model ({}), a file in the language cat, or the name of one in a folder of --include",
                crate::commands::models::builtin_names()
            )));
        };
        let text = read_text(&path)?;
        let mut folders = vec![path.parent().unwrap_or(Path::new("")).to_path_buf()];
        folders.extend(include.iter().cloned());
        if mu_base::ends_in(&path, "cfg") {
            let settings = HerdSettings::parse(&text);
            let Some(model) = settings.model else {
                let message = format!("`{}` names no model", path.display());
                return Err(
                    Diagnostic::new(Stage::Usage, message).note("expected a line `model FILE.cat`")
                );
            };
            let mut found = Self::from_name(&model, &folders, args)?;
            if let (Some(bell), Some(macros)) = (settings.bell, settings.macros) {
                found.kernel =
                    Some(KernelFiles::find(&folders, &bell, &macros, &settings.variants)?);
            }
            found.variants = settings.variants;
            return Ok(found);
        }
        let kernel = KernelFiles::next_to(&path)?;
        Ok(Self { folders, kernel, ..Self::built_in(&path.display().to_string(), text, args) })
    }
    fn built_in(name: &str, text: String, args: &LitmusArgs) -> Self {
        Self {
            name: name.to_string(),
            text,
            folders: Vec::new(),
            variants: Vec::new(),
            compiled: Default::default(),
            kernel: None,
            bounds: PathBounds { loops: args.unroll },
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
            let variants: Vec<&str> = self.variants.iter().map(String::as_str).collect();
            let made = match &self.kernel {
                Some(files) if arch == Arch::Linux => {
                    files.language(&mut sources).and_then(|language| {
                        let name = &self.name;
                        Judge::of_kernel(&mut sources, &language, name, &self.text, &resolver)
                            .map(|judge| (judge, Some(language)))
                    })
                }
                _ => Judge::compile_with(
                    &mut sources,
                    arch,
                    &self.name,
                    &self.text,
                    &resolver,
                    &variants,
                )
                .map(|judge| (judge, None)),
            };
            match made {
                Ok((judge, language)) => Ok(Compiled { judge, language, sources }),
                Err(d) => {
                    Err(TestError::new(&self.other_architecture(arch).unwrap_or(d), &sources))
                }
            }
        });
        compiled.as_ref().map_err(Clone::clone)
    }
    /// Returns the error for a built-in model that judges tests of other architectures; `None` if
    /// the model is a file.
    fn other_architecture(&self, arch: Arch) -> Option<Diagnostic> {
        let model = mu_axioms::models::by_name(&self.name).filter(|m| m.text == self.text)?;
        let message = format!(
            "the model `{}` does not judge tests that are written for {}",
            self.name,
            arch.name()
        );
        let known = model.architectures().join(", ");
        Some(
            Diagnostic::new(Stage::Unsupported, message)
                .note(format!("it judges tests for {known}")),
        )
    }
    /// Returns the architecture of a test.
    fn arch(&self, source: SourceId, text: &str) -> Result<Arch, Diagnostic> {
        match architecture(source, text)? {
            Arch::C if self.kernel.is_some() => Ok(Arch::Linux),
            arch => Ok(arch),
        }
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
        let Compiled { judge, language, sources } = match self.judge(self.arch(source, text)?) {
            Ok(compiled) => compiled,
            Err(refused) => return Ok(Err(refused)),
        };
        let options = ParserOptions { pairs: judge.pairs, kernel: language.as_ref() };
        let test = parse(source, text, options)?;
        let unnamed = test.unnamed.clone();
        let report = match mu_litmus::run(test, judge, self.bounds, &session.budget) {
            Ok(report) => report,
            // A function or a `let rec` of the model that does not terminate.
            Err(d) if d.span.is_some_and(|s| s.source != source && sources.holds(s.source)) => {
                return Ok(Err(TestError::new(&d, sources)));
            }
            Err(d) => return Err(d),
        };
        let left_out = report.dropped_paths();
        let flags = report.answer.flags.clone();
        let dropped = report.long
            || report.constants
            || report.strayed.is_some()
            || report.undefined.is_some();
        Ok(Ok(TestResult {
            file: String::new(),
            answer: report.answer,
            stop: report.stop,
            effort: report.executions,
            left_out,
            full_buffer: false,
            unnamed,
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
    ) -> Result<Option<(String, usize)>, Diagnostic> {
        // A test is drawn after it was answered, so the model compiles.
        let Ok(Compiled { judge, language, .. }) = self.judge(self.arch(source, text)?) else {
            return Ok(None);
        };
        let options = ParserOptions { pairs: judge.pairs, kernel: language.as_ref() };
        let test = parse(source, text, options)?;
        let title = format!("{} under {}", test.name, judge.model.name());
        let (found, stop) = find_deciding_execution(test, judge, self.bounds, &session.budget)?;
        let Some(drawn) = found else { return complete(stop) };
        let drawing = match picture {
            Picture::Svg => execution_graph::svg(&drawn, &title),
            Picture::Dot => execution_graph::dot(&drawn, &title),
            Picture::Json | Picture::Page => execution_graph::json(&drawn, &title).to_string(),
        };
        Ok(Some((drawing, drawn.events.len())))
    }
}
