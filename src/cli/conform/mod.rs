//! `conform`: a machine against memory models, up to a number of operations of each processor.
//!
//! What the search finds is confirmed on two routes that share no code with it: the litmus test is
//! judged by the layer `litmus`, and the run of the machine is taken step by step on the model, and
//! its history read off again. A disagreement is an internal error.
//!
//! "Conforms" is said only if something was judged: some program loads a value, and no operation or
//! program that begins never ends ([`SearchResult::unjudged`]).

mod faults;
mod program;
pub(super) mod shown;
pub(super) mod sorts;
mod told;

use self::sorts::{Sorts, Typed};
use super::args::{ConformArgs, Format};
use super::files::{FileKind, expect_writable, unknown_evidence_extension, write_text};
use super::load::{Loaded, Origin};
use super::models::{Named, named};
use super::picture::Picture;
use super::pipeline::{Session, file_error};
use super::progress::{Bar, grouped};
use super::{find_path, litmus, output, page, print};
use mu_axioms::history::History;
use mu_axioms::models::Dialect;
use mu_axioms::views::Views;
use mu_base::{Diagnostic, Span, Stage, Stop, ends_in};
use mu_compile::Confluence;
use mu_conform::interface::{Interface, Label};
use mu_conform::judge::{Form as Judging, MemoryModel, Reason};
use mu_conform::machine::{IDLE, Machine};
use mu_conform::names::NameMap;
use mu_conform::search::{Bound, SearchResult, Violation, search};
use mu_conform::sequences::Entry;
use mu_conform::symmetry::Group;
use mu_conform::witness;
use mu_conform::write::{Language, litmus as test_of};
use mu_evidence::Evidence;
use mu_explore::{LassoPath, PathStep};
use mu_litmus::paths::Bounds;
use mu_litmus::report::DecidingExecution;
use mu_model::Model;
use mu_process::typecheck::check_specification;
use mu_report::judged;
use mu_report::story::{Story, story};
use mu_syntax::ast::{Section, Specification};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a model of axioms is compiled again, for litmus tests.
struct Text {
    text: String,
    folder: Option<PathBuf>,
}

/// A memory model that forbids something that the machine does.
struct Shown {
    found: Violation,
    reason: Reason,
    language: Language,
    /// The test.
    litmus: String,
    /// Whether the litmus route forbids it too; why it was not asked otherwise.
    confirmed: Result<(), String>,
    evidence: Evidence,
    story: Story,
    /// What processors observe in the run.
    observed: Vec<witness::Observation>,
    /// The names of the test, mapped to those of the machine.
    meaning: NameMap,
}

/// Everything that an output speaks of.
struct Told<'a> {
    args: &'a ConformArgs,
    names: Vec<String>,
    interface: &'a Interface,
    machine: &'a Machine,
    program: Option<String>,
    /// Processors that do no operation.
    idle: Vec<String>,
    group: &'a Group,
    answer: &'a SearchResult,
    shown: Vec<Option<Shown>>,
    faults: Option<faults::Faults>,
    seconds: f64,
    peak: u64,
}

pub(super) fn run(session: &mut Session, args: &ConformArgs) -> Result<u8, Diagnostic> {
    let one = args.against.len() == 1;
    let single = [
        ("--litmus", &args.litmus),
        ("--evidence", &args.evidence),
        ("--execution", &args.execution),
    ];
    for (option, path) in single.iter().filter_map(|(o, p)| p.as_ref().map(|p| (o, p))) {
        let is_page = *option == "--evidence" && page::is_named_so(path);
        if !one && !is_page {
            return Err(Diagnostic::new(
                Stage::Usage,
                format!("`{option}` is for one memory model: expected `--against` once"),
            ));
        }
        expect_writable(path)?;
    }
    args.evidence.as_deref().map(Picture::of).transpose()?;
    if args.execution.as_deref().is_some_and(page::is_named_so) {
        return Err(unknown_evidence_extension(
            args.execution.as_deref().unwrap_or(Path::new("")),
            ".svg, .dot or .json; `--evidence FILE.html` shows it too",
        ));
    }
    let execution = args
        .execution
        .as_deref()
        .map(|p| litmus::Picture::of(p, &[PathBuf::new()], false))
        .transpose()?;
    if args.suite.is_some() && !one {
        return Err(Diagnostic::new(
            Stage::Usage,
            "`--suite` is for one memory model: expected `--against` once",
        ));
    }
    let (models, texts) = models(session, args)?;
    let faulty = faults::read(session, args)?;
    let Read { interface, explored: Explored { model, machine, program, idle, .. } } =
        read(session, &args.model, &args.interface, args.operations)?;
    let model = &*model;
    models.iter().try_for_each(|m| m.check(&interface, &machine.alphabet))?;
    let group = symmetries(session, args, &machine);
    session.log(format!(
        "symmetries of order {}: {}",
        group.elements.len(),
        group.names.join(", ")
    ));
    output::begin_stage("searching histories");
    let bound = Bound::of(args.operations as usize, session.threads());
    let asked: Vec<&MemoryModel> = models.iter().collect();
    let answer = search(&interface, &machine, &group, &asked, bound, &session.budget)?;
    session.log(format!("{} histories judged", grouped(answer.histories)));
    let mut shown = Vec::new();
    for ((against, text), found) in models.iter().zip(&texts).zip(&answer.found) {
        let found = found
            .as_ref()
            .map(|f| show(session, &interface, model, &machine, (against, text.as_ref()), f))
            .transpose()?;
        shown.push(found);
    }
    let conforming: Vec<usize> = (0..models.len()).filter(|&m| answer.found[m].is_none()).collect();
    let mut faults = None;
    let judged =
        answer.stop == Stop::Complete && answer.unjudged(&interface, &machine.alphabet).is_none();
    if !faulty.is_empty() && !conforming.is_empty() && judged {
        let asked = faults::Asked {
            args,
            interface: &interface,
            models: &models,
            texts: &texts,
            right: (&machine, &group),
            conforming: &conforming,
        };
        faults = Some(asked.run(session, &faulty)?);
    }
    let names = models.iter().map(|m| m.name.clone()).collect();
    let (seconds, peak) = (session.budget.elapsed().as_secs_f64(), session.peak_memory());
    let (interface, group, answer) = (&interface, &group, &answer);
    let told = Told {
        args,
        names,
        interface,
        machine: &machine,
        program,
        idle,
        group,
        answer,
        shown,
        faults,
        seconds,
        peak,
    };
    write_files(session, &told, model, &models, &texts, execution)?;
    match session.common.format {
        Format::Json => output::print_object(told.json())?,
        Format::Text => print(&told.text(session))?,
    }
    Ok(told.code())
}

/// A machine with its interface, explored.
struct Read {
    interface: Interface,
    explored: Explored,
}

/// A machine, explored.
struct Explored {
    /// The model as it is: runs are runs of this one.
    model: Arc<dyn Model>,
    machine: Machine,
    /// The most general program, if it was put beside the machine.
    program: Option<String>,
    /// Processors that do no operation.
    idle: Vec<String>,
    /// The interface, with values as labels have them.
    interface: Interface,
}

/// Finds where actions are declared.
fn declarations(tree: &Specification) -> Vec<(String, Span)> {
    let of = |section: &Section| match section {
        Section::Actions(all) => all.iter().map(|a| (a.0.kind.clone(), a.0.span)).collect(),
        _ => Vec::new(),
    };
    tree.sections.iter().flat_map(of).collect()
}

fn read(
    session: &mut Session,
    path: &Path,
    interface: &Path,
    operations: u32,
) -> Result<Read, Diagnostic> {
    let (source, text) = session.read_source(interface)?;
    let interface = Interface::parse(source, &text)?;
    let explored = explored(session, &interface, &Origin::File(path), operations)?;
    Ok(Read { interface: explored.interface.clone(), explored })
}

/// Reads and explores a machine. Where it is a specification, what is explored has fewer states:
/// what processors observe is hidden, and steps are taken at once as far as they commute with all
/// others; ends of operations are such steps too, since a history does not say when an operation
/// ends.
fn explored(
    session: &mut Session,
    interface: &Interface,
    origin: &Origin<'_>,
    operations: u32,
) -> Result<Explored, Diagnostic> {
    let mut program = None;
    let mut interface = interface.clone();
    let mut declared = Vec::new();
    let spec = match origin {
        Origin::File(path) if FileKind::of(path) == FileKind::Program => {
            let message = format!(
                "`{}` is a program: `conform` asks what a machine does with every program",
                path.display()
            );
            let beside = "expected a machine that chooses its operations; `litmus FILE --machine MODEL` runs a test on a machine";
            return Err(Diagnostic::new(Stage::Usage, message).note(beside));
        }
        _ => {
            output::begin_stage("reading the specification");
            session.edited_specification(origin, &mut |sources, tree| {
                declared = declarations(tree);
                // An error in the interface has its place there, and not in the program that is
                // made of it.
                let own = check_specification(tree)?;
                Sorts::check(
                    &mut interface,
                    Typed { data: &own.data, actions: &own.actions, declared: true },
                )?;
                program = program::add(&interface, operations, sources, tree)?;
                Ok(())
            })?
        }
    };
    let (whole, searched) = match (&spec, origin) {
        (Some(spec), _) => {
            // What the interface speaks of is not hidden.
            let shown: Vec<&str> = interface.labels().map(|l| l.action.as_str()).collect();
            let whole = session.compile_showing(spec, (&shown, &[]), &Confluence::Auto)?;
            let judged: Vec<&str> = interface
                .operations
                .iter()
                .flat_map(|o| o.begin.iter().chain([&o.end]))
                .map(|l| l.action.as_str())
                .collect();
            let observed: Vec<&str> = interface
                .observed
                .iter()
                .map(|l| l.action.as_str())
                .filter(|a| !judged.contains(a))
                .collect();
            let searched = session.compile_showing(
                spec,
                (&judged, &observed),
                &Confluence::Commuting(interface.ends()),
            )?;
            (whole, Some(searched.model))
        }
        (None, Origin::File(path)) if interface.program.is_empty() => {
            let form = FileKind::of(path);
            (
                session.load(
                    path,
                    if form.is_lts() || form == FileKind::System { "none" } else { "auto" },
                )?,
                None,
            )
        }
        (None, _) => {
            let message = "a program can be put beside a specification only";
            return Err(Diagnostic::at(
                Stage::Usage,
                interface.program.first().map_or_else(Span::default, |p| p.request.span),
                message,
            ));
        }
    };
    let typed = Typed { data: &whole.data, actions: &whole.actions, declared: whole.declared };
    let sorts = Sorts::check(&mut interface, typed)?;
    let interface = interface;
    let model = whole.model.clone();
    let searched = searched.as_ref().unwrap_or(&model);
    let options = session.explore_options(&**searched, &[]);
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let explored = Machine::explore(&**searched, &interface, &options, &session.budget, &bar);
    bar.finish();
    let machine = explored.map_err(|d| {
        if d.message == IDLE {
            most_general(&interface, &whole).into_iter().fold(d, Diagnostic::note)
        } else {
            d
        }
    })?;
    session.log(format!(
        "{} states, {} after reduction",
        grouped(machine.outcome.states),
        grouped(machine.lts.state_count() as u64)
    ));
    sorts.covered(&machine.alphabet, typed, &declared)?;
    let idle = sorts.idle(&machine.alphabet, typed);
    Ok(Explored { model, machine, program, idle, interface })
}

/// What to add to a machine that does nothing since it waits for a program: the program that may do
/// everything.
fn most_general(interface: &Interface, loaded: &Loaded) -> Vec<String> {
    let offer = |label: &Label| {
        let action = loaded
            .actions
            .iter()
            .find(|a| a.name == label.action && a.sorts.len() == label.roles.len())?;
        let names: Vec<String> = (1..=action.sorts.len()).map(|i| format!("x{i}")).collect();
        let sort = |id| mu_data::print::sort(&loaded.data.signature, id);
        let sums: Vec<String> =
            names.iter().zip(&action.sorts).map(|(n, s)| format!("{n}: {}", sort(*s))).collect();
        let (sum, arguments) = match &names[..] {
            [] => (String::new(), String::new()),
            _ => (format!("sum {} . ", sums.join(", ")), format!("({})", names.join(", "))),
        };
        Some(format!("({sum}do_{}{arguments} . Program)", label.action))
    };
    let offers: Vec<String> = interface
        .operations
        .iter()
        .filter_map(|o| offer(o.begin.as_ref().unwrap_or(&o.end)))
        .collect();
    vec![
        "lines such as `program load do_load(p, a);` in the interface put a program beside a machine that waits for one (docs/memory-models.md)".to_string(),
        "or write one that may do everything, in communication with the machine's actions:".to_string(),
        format!("proc Program = {};", offers.join(" + ")),
    ]
}

/// The symmetries of a machine, if they are to be used.
fn symmetries(session: &Session, args: &ConformArgs, machine: &Machine) -> Group {
    if args.without_symmetry {
        Group::trivial(&machine.alphabet, &machine.lts)
    } else {
        Group::find(&machine.alphabet, &machine.lts, session.threads())
    }
}

/// The languages in which a model is asked about a history, the first one first.
fn language_of(against: &MemoryModel, history: &History) -> &'static [Language] {
    let dialect = match &against.form {
        Judging::Cat { dialect, .. } => *dialect,
        Judging::Views(_) => Dialect::Plain,
    };
    Language::of(dialect, history)
}

/// The memory models that are asked, and the texts of those made of axioms.
fn models(
    session: &mut Session,
    args: &ConformArgs,
) -> Result<(Vec<MemoryModel>, Vec<Option<Text>>), Diagnostic> {
    let mut out = (Vec::new(), Vec::new());
    let words: Vec<Option<&String>> =
        if args.against.is_empty() { vec![None] } else { args.against.iter().map(Some).collect() };
    for word in words {
        if let Some(word) = word.filter(|w| ends_in(Path::new(w), "views")) {
            let path = Path::new(word);
            let text = super::pipeline::read_text(path)?;
            let views = Views::compile(&mut session.sources, word, &text)?;
            out.0.push(MemoryModel { name: find_path::stem(path), form: Judging::Views(views) });
            out.1.push(None);
            continue;
        }
        for n in named(session, word.map_or(&[], std::slice::from_ref))? {
            out.0.push(MemoryModel {
                name: n.name,
                form: Judging::Cat { model: n.model, dialect: n.dialect },
            });
            out.1.push(Some(Text { text: n.text, folder: n.folder }));
        }
    }
    Ok(out)
}

/// The judge of litmus tests that is made of a model's text.
fn judge(
    against: &MemoryModel,
    text: &Text,
    litmus: &str,
) -> Result<(mu_litmus::Judge, mu_litmus::Test), Diagnostic> {
    let mut sources = mu_base::SourceMap::new();
    let source = sources.add("the smallest test", litmus);
    let arch = mu_litmus::file::architecture(source, litmus)?;
    let beside = |name: &str| Named::beside(text.folder.as_deref(), name);
    let judge = mu_litmus::Judge::compile(&mut sources, arch, &against.name, &text.text, &beside)?;
    let test = mu_litmus::parse(source, litmus, mu_litmus::file::Options { pairs: judge.pairs })?;
    Ok((judge, test))
}

/// Confirms what was found: by the litmus route, and by a replay of a run.
fn show(
    session: &Session,
    interface: &Interface,
    model: &dyn Model,
    machine: &Machine,
    (against, text): (&MemoryModel, Option<&Text>),
    found: &Violation,
) -> Result<Shown, Diagnostic> {
    let languages = language_of(against, &found.history);
    let write =
        |language: Language| test_of(&found.history, &format!("not-{}", against.name), language);
    let (language, litmus) = (languages[0], write(languages[0]));
    let mut confirmed = Err("models of serial views judge no litmus tests".to_string());
    if let Some(text) = text {
        for language in languages {
            confirmed = confirm(session, against, text, &write(*language))?;
            if confirmed.is_ok() {
                break;
            }
        }
    }
    let options = session.explore_options(model, &[]);
    let steps = witness::run(
        model,
        interface,
        &machine.alphabet,
        &found.concrete,
        &options,
        &session.budget,
    )?;
    let steps = steps.ok_or_else(|| {
        Diagnostic::internal("no run of the machine has a history that it was found to have")
    })?;
    let (walk, replayed) = witness::replay(model, interface, &machine.alphabet.names, &steps)?;
    if replayed != found.concrete {
        return Err(Diagnostic::internal("the run that was replayed has another history"));
    }
    let steps = walk.path().iter().map(|m| PathStep {
        label: m.label,
        group: m.group as usize,
        state: m.state.clone(),
    });
    let evidence =
        find_path::evidence(model, &LassoPath { steps: steps.collect(), cycle_start: None });
    mu_evidence::checker::replay(&evidence, model)?;
    let story = story(&evidence, model, false, usize::MAX)?;
    let reason = against.worker().reason(&found.history)?;
    let labels: Vec<String> = walk.path().iter().map(|m| model.label_text(m.label)).collect();
    let observed = witness::observations(interface, labels.iter().map(String::as_str));
    let lists: Vec<&[Entry]> = found.concrete.iter().map(Vec::as_slice).collect();
    let meaning = NameMap::of(
        &found.history,
        &mu_conform::judge::history(interface, &lists),
        &machine.alphabet.names,
    );
    let meaning = meaning.ok_or_else(|| {
        Diagnostic::internal("a test is of another class than the history that it is made of")
    })?;
    let litmus = meaning.annotate(&litmus);
    Ok(Shown {
        found: found.clone(),
        reason,
        language,
        litmus,
        confirmed,
        evidence,
        story,
        observed,
        meaning,
    })
}

/// Whether the litmus route forbids a test too.
fn confirm(
    session: &Session,
    against: &MemoryModel,
    text: &Text,
    litmus: &str,
) -> Result<Result<(), String>, Diagnostic> {
    let (judge, test) = match judge(against, text, litmus) {
        Ok(both) => both,
        Err(d) => return Ok(Err(format!("the litmus route does not take it: {}", d))),
    };
    let report = mu_litmus::run(test, &judge, Bounds { loops: 1 }, &session.budget)?;
    match report.answer.verdict {
        mu_outcome::Verdict::No => Ok(Ok(())),
        mu_outcome::Verdict::Unknown => {
            Ok(Err(format!("the litmus route stopped: {}", report.stop.word())))
        }
        mu_outcome::Verdict::Ok => Err(Diagnostic::internal(format!(
            "`{}` allows as a litmus test what it forbids as a history: {litmus}",
            against.name
        ))),
    }
}

/// The execution that a memory model forbids, judged as a litmus test; none if the litmus route
/// does not take the test.
fn execution_of(
    session: &Session,
    against: &MemoryModel,
    text: &Text,
    shown: &Shown,
) -> Result<Option<DecidingExecution>, Diagnostic> {
    let Ok((judge, test)) = judge(against, text, &shown.litmus) else { return Ok(None) };
    Ok(mu_litmus::report::deciding(test, &judge, Bounds { loops: 1 }, &session.budget)?.0)
}

fn write_files(
    session: &Session,
    told: &Told<'_>,
    model: &dyn Model,
    models: &[MemoryModel],
    texts: &[Option<Text>],
    execution: Option<litmus::Picture>,
) -> Result<(), Diagnostic> {
    let args = told.args;
    if let Some(folder) = &args.tests {
        mu_base::host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        for (name, shown) in told.names.iter().zip(&told.shown) {
            if let Some(shown) = shown {
                write_text(&folder.join(format!("{name}.litmus")), &shown.litmus)?;
            }
        }
    }
    if let Some(path) = args.evidence.as_deref().filter(|p| page::is_named_so(p)) {
        let mut object = told.json();
        for (i, shown) in told.shown.iter().enumerate() {
            let (Some(shown), Some(text)) = (shown, &texts[i]) else { continue };
            let title = format!("{} under {}", shown.found.history.text(), told.names[i]);
            if let Some(drawn) = execution_of(session, &models[i], text, shown)? {
                object["models"][i]["execution"] = judged::json(&drawn, &title);
            }
        }
        let title = find_path::file_name(&args.model);
        page::write(
            session,
            path,
            &title,
            &[mu_report::page::Shown::of("conform", output::with_head(object))],
        )?;
    }
    let (Some(Some(shown)), 1) = (told.shown.first(), told.shown.len()) else { return Ok(()) };
    if let Some(path) = &args.litmus {
        write_text(path, &shown.litmus)?;
    }
    let what = format!("{} is not {}", find_path::file_name(&args.model), told.names[0]);
    if let Some(path) = &args.evidence {
        let sentence = format!("a run with {}", shown.found.history.text());
        let drawn = find_path::PathDrawing {
            model,
            typed: None,
            evidence: &shown.evidence,
            story: &shown.story,
        };
        find_path::write_drawing(session, path, &args.model, &drawn, (&what, &sentence))?;
    }
    let (Some(path), Some(picture), Some(text)) = (&args.execution, execution, &texts[0]) else {
        return Ok(());
    };
    if let Some(drawn) = execution_of(session, &models[0], text, shown)? {
        let title = format!("{what}: {}", shown.found.history.text());
        let picture = match picture {
            litmus::Picture::Svg => judged::svg(&drawn, &title),
            litmus::Picture::Dot => judged::dot(&drawn, &title),
            litmus::Picture::Json | litmus::Picture::Page => {
                judged::json(&drawn, &title).to_string()
            }
        };
        write_text(path, &picture)?;
    }
    Ok(())
}
