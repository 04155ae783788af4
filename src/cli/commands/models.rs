//! Comparison of memory models by strength, up to a bound, with a smallest test for each difference
//! (`models`).
//!
//! The models are the built-in ones, or those on the command line, including `cat` files. Text
//! output: the classes of models that allow the same tests, strong ones first, and for each edge of
//! the lattice the test that distinguishes its ends. Exit code: 3 if a limit was reached, otherwise
//! 0.

use crate::args::{Format, ModelsArgs};
use crate::output::{print, print_object};
use crate::pipeline::files::{expect_writable, write_text};
use crate::pipeline::{Session, file_error, read_text};
use mu_axioms::cat::CatModel;
use mu_axioms::lattice::{Bound, Lattice, LatticeModel, compare, draw};
use mu_axioms::models::{self, BuiltinModel, Dialect, KNOWN};
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, Stop};
use mu_frontends::FrontEnd as _;
use mu_frontends::rejected::MEMORY_MODELS;
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A compiled model with its name.
pub(crate) struct NamedModel {
    pub name: String,
    pub model: CatModel,
    pub dialect: Dialect,
    /// Its text.
    pub text: String,
    /// Its folder, if it is a file.
    pub folder: Option<PathBuf>,
}

impl NamedModel {
    fn compile_built_in(known: &BuiltinModel, session: &mut Session) -> Result<Self, Diagnostic> {
        let model = known.compile(&mut session.sources)?;
        Ok(NamedModel {
            name: known.name.to_string(),
            model,
            dialect: known.dialect,
            text: known.text.to_string(),
            folder: None,
        })
    }
    /// Returns the text of a file that the model may include.
    pub(crate) fn included_file(folder: Option<&Path>, name: &str) -> Option<String> {
        folder
            .and_then(|f| mu_base::files::read_text(&f.join(name)).ok())
            .or_else(|| models::file(name))
    }
}

pub(crate) fn run(session: &mut Session, args: &ModelsArgs) -> Result<u8, Diagnostic> {
    if let Some(path) = &args.svg {
        expect_writable(path)?;
    }
    let named = compile_models(session, &args.models)?;
    let start = Instant::now();
    crate::output::begin_stage("comparing memory models");
    let candidates: Vec<LatticeModel<'_>> = named
        .iter()
        .map(|n| LatticeModel { name: &n.name, model: &n.model, dialect: n.dialect })
        .collect();
    let bound = Bound {
        operations: args.operations as usize,
        plain: args.plain as usize,
        locations: args.locations,
        threads: session.threads(),
    };
    let lattice = compare(&candidates, bound, &session.budget)?;
    let seconds = start.elapsed().as_secs_f64();
    match session.common.format {
        Format::Json => print_object(as_json(&lattice, seconds))?,
        Format::Text => print(&as_text(&lattice, seconds))?,
    }
    if let Some(path) = &args.svg {
        write_text(path, &draw::svg(&lattice))?;
    }
    if let Some(folder) = &args.tests {
        write_tests(&lattice, folder)?;
    }
    Ok(if lattice.stop == Stop::Complete { 0 } else { 3 })
}

/// Compiles the named models, or all built-in ones if there are no names.
pub(crate) fn compile_models(
    session: &mut Session,
    words: &[String],
) -> Result<Vec<NamedModel>, Diagnostic> {
    if words.is_empty() {
        return KNOWN.iter().map(|known| NamedModel::compile_built_in(known, session)).collect();
    }
    words.iter().map(|word| compile_model(session, word)).collect()
}

/// Compiles the model of a name or a file.
fn compile_model(session: &mut Session, word: &str) -> Result<NamedModel, Diagnostic> {
    let path = Path::new(word);
    if let Some(known) = models::by_name(word) {
        return NamedModel::compile_built_in(known, session);
    }
    if !MEMORY_MODELS.has_ending(path) {
        if mu_base::ends_in(path, "views") {
            let message = format!("`{word}` has serial views; here models are axioms in `cat`");
            return Err(Diagnostic::new(Stage::Unsupported, message).note(
                "`conform --against FILE.views` and `trace --against FILE.views` read views",
            ));
        }
        let unknown = Diagnostic::new(Stage::Usage, format!("`{word}` is not a memory model"));
        return Err(unknown.note(format!("expected a file `.cat` or one of {}", builtin_names())));
    }
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    let included = |name: &str| NamedModel::included_file(Some(&folder), name);
    let (model, dialect) = Dialect::compile(&mut session.sources, word, &text, &included)?;
    let name = crate::commands::explore::find_path::stem(path);
    Ok(NamedModel { name, model, dialect, text, folder: Some(folder) })
}

/// Returns the names of the built-in models, for messages.
pub(super) fn builtin_names() -> String {
    KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

fn bound_text(lattice: &Lattice) -> String {
    let Bound { operations, plain, locations, .. } = lattice.bound;
    let (programs, tests) = (lattice.programs, lattice.tests);
    let plain = if plain > operations {
        format!(", and to {plain} plain reads and writes")
    } else {
        String::new()
    };
    format!(
        "{programs} programs with {tests} tests: up to {operations} operations (reads, writes, acquires, releases, fences){plain}, at most {locations} locations, each accessed twice and written"
    )
}

fn as_text(lattice: &Lattice, seconds: f64) -> String {
    let classes = lattice.classes();
    let title = |c: usize| {
        classes[c].iter().map(|&m| lattice.names[m].as_str()).collect::<Vec<_>>().join(" = ")
    };
    let mut out = String::new();
    let _ = writeln!(out, "{}, {seconds:.1} s", bound_text(lattice));
    if lattice.stop != Stop::Complete {
        let _ = writeln!(
            out,
            "stopped before the bound ({}): differences are certain, inclusions are not",
            lattice.stop.word()
        );
    }
    for c in (0..classes.len()).filter(|&c| classes[c].len() > 1) {
        let _ = writeln!(out, "equal up to this bound: {}", title(c));
    }
    for (a, b) in lattice.edges(&classes) {
        let test = lattice.separating[classes[b][0]][classes[a][0]]
            .as_ref()
            .map(|t| t.text())
            .unwrap_or_default();
        let _ = writeln!(out, "{:<16} is stronger than {:<16} {test}", title(a), title(b));
    }
    let mut pairs = String::new();
    for (i, x) in classes.iter().enumerate() {
        for (j, y) in classes.iter().enumerate().skip(i + 1) {
            if let (Some(s), Some(t)) =
                (&lattice.separating[x[0]][y[0]], &lattice.separating[y[0]][x[0]])
            {
                let (i, j) = (title(i), title(j));
                let _ = writeln!(pairs, "{i:<16} {}\n{j:<16} {}", s.text(), t.text());
            }
        }
    }
    if !pairs.is_empty() {
        out += "Incomparable pairs, each model with a test that it allows and the other forbids:\n";
        out += &pairs;
    }
    out
}

fn as_json(lattice: &Lattice, seconds: f64) -> serde_json::Value {
    let classes = lattice.classes();
    let mut separating = Vec::new();
    for (a, row) in lattice.separating.iter().enumerate() {
        for (b, test) in row.iter().enumerate() {
            if let Some(test) = test {
                separating.push(json!({ "allows": lattice.names[a], "forbids": lattice.names[b], "test": test.text() }));
            }
        }
    }
    let names = |c: &Vec<usize>| c.iter().map(|&m| lattice.names[m].clone()).collect::<Vec<_>>();
    json!({
        "classes": classes.iter().map(names).collect::<Vec<_>>(),
        "edges": lattice.edges(&classes).into_iter().map(|(a, b)| json!({ "stronger": a, "weaker": b })).collect::<Vec<_>>(),
        "separating": separating,
        "operations": lattice.bound.operations,
        "plain": lattice.bound.plain,
        "locations": lattice.bound.locations,
        "programs": lattice.programs,
        "tests": lattice.tests,
        "seconds": seconds,
        "stop": lattice.stop.word(),
    })
}

/// Writes a file for each distinct test that separates two models.
fn write_tests(lattice: &Lattice, folder: &Path) -> Result<(), Diagnostic> {
    mu_base::host::fs::create_dir_all(folder).map_err(|e| file_error("make", folder, &e))?;
    let mut done = std::collections::BTreeMap::new();
    for (a, row) in lattice.separating.iter().enumerate() {
        for (b, test) in row.iter().enumerate() {
            if let Some(test) = test {
                done.entry(test.clone())
                    .or_insert_with(|| format!("{}-not-{}", lattice.names[a], lattice.names[b]));
            }
        }
    }
    for (test, name) in &done {
        write_text(&folder.join(format!("{name}.litmus")), &test.litmus(name))?;
    }
    Ok(())
}
