//! Conformance of a machine to memory models, up to a number of operations per processor
//! (`conform`).
//!
//! Each violation is confirmed in two ways that share no code with the search. The litmus test is
//! judged by the layer `litmus`. The run of the machine is replayed step by step on the model, and
//! its history is extracted again. A disagreement is an internal error.
//!
//! The verdict is "conforms" only if something was judged: some program loads a value, and every
//! operation and program that begins also ends ([`SearchResult::unjudged_reason`]).

pub(crate) mod certificate;
mod every_length;
mod faults;
mod junit;
mod monitored;
mod naive;
mod numbers;
mod program;
pub(crate) mod litmus_outcomes;
pub(crate) mod sorts;
mod results;
mod target;

use self::sorts::{Sorts, TypedMachine};
use crate::args::{ConformArgs, Operations};
use crate::commands::explore::find_path;
use crate::commands::litmus;
use crate::commands::models::{NamedModel, compile_models};
use crate::output;
use crate::output::page;
use crate::output::picture::Picture;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::files::{expect_writable, unknown_evidence_extension, write_text};
use crate::pipeline::load::{Loaded, Origin, properties};
use crate::pipeline::memory;
use crate::pipeline::{Session, file_error};
use mu_axioms::history::History;
use mu_axioms::models::Dialect;
use mu_axioms::views::Views;
use mu_base::{Diagnostic, Span, Stage, Stop, ends_in};
use mu_compile::Confluence;
use mu_conform::alphabet::Alphabet;
use mu_conform::completeness::{self, Completeness};
use mu_conform::interface::{Interface, Label};
use mu_conform::judge::{MemoryModel, ModelDefinition as Judging, Reason};
use mu_conform::machine::{IDLE, ReducedMachine};
use mu_conform::names::NameMap;
use mu_conform::search::{Bound, SearchResult, Violation, search_and_report};
use mu_conform::sequences::SequenceEntry;
use mu_conform::symmetry::SymmetryGroup;
use mu_conform::witness;
use mu_conform::write::{TestLanguage, litmus as test_of};
use mu_evidence::Evidence;
use mu_explore::{LassoPath, PathStep};
use mu_litmus::kernel;
use mu_litmus::paths::PathBounds;
use mu_litmus::report::DecidingExecution;
use mu_model::Model;
use mu_process::typecheck::check_specification;
use mu_report::execution_graph;
use mu_report::printed_evidence::{PrintedEvidence, story};
use mu_syntax::ast::{Section, Specification};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of operations per processor up to which the outcomes of a model are compared with those
/// of the machine.
const COMPARED_OPERATIONS: usize = 2;

/// Bound on operations from which a proof for programs of every length is tried first: histories
/// are then many.
const PROVED_FROM: u32 = 5;

/// Source of a model of axioms, from which it is compiled again for litmus tests.
struct ModelSource {
    text: String,
    folder: Option<PathBuf>,
}

/// A violation of a memory model, with its confirmation and evidence.
struct ConfirmedViolation {
    found: Violation,
    reason: Reason,
    language: TestLanguage,
    /// The litmus test.
    litmus: String,
    /// `Ok` if the litmus layer forbids the test too, otherwise the reason why it cannot judge it.
    litmus_confirmation: Result<(), String>,
    evidence: Evidence,
    story: PrintedEvidence,
    /// Observations of processors in the run.
    observed: Vec<witness::Observation>,
    /// Maps the names of the test to those of the machine.
    meaning: NameMap,
}

/// Results of a run.
struct ConformResults<'a> {
    args: &'a ConformArgs,
    names: Vec<String>,
    interface: &'a Interface,
    machine: &'a ReducedMachine,
    program: Option<String>,
    /// Processors without operations.
    idle: Vec<String>,
    group: &'a SymmetryGroup,
    answer: &'a SearchResult,
    shown: Vec<Option<ConfirmedViolation>>,
    /// Models of the table that cannot judge some operation, with the reason.
    unsupported: Vec<(String, String)>,
    /// The strongest models that the machine implements, by index, with their outcomes.
    strongest: Vec<(usize, Completeness)>,
    /// The number of operations per processor up to which outcomes are compared.
    compared: usize,
    seconds: f64,
    peak: u64,
}

pub(crate) fn run(session: &mut Session, args: &ConformArgs) -> Result<u8, Diagnostic> {
    let answer = run_conform(session, args);
    // Report the error in the JUnit file too: other tools may read nothing else.
    if let (Err(error), Some(path)) = (&answer, &args.junit) {
        junit::report_error(path, &args.model, error.render(&session.sources));
    }
    answer
}

fn run_conform(session: &mut Session, args: &ConformArgs) -> Result<u8, Diagnostic> {
    let execution = expect_options(args)?;
    Session::expect_machine(&args.model)?;
    if args.operations == Operations::Any {
        return every_length::run(session, args, execution);
    }
    if args.certificate.is_some() {
        let message =
            "`--certificate` is for programs of every length: expected `--operations any`";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    if args.operations.bound() >= PROVED_FROM
        && let Some(code) = every_length::try_proof(session, args)?
    {
        return Ok(code);
    }
    let (models, texts) = models(session, args)?;
    run_bounded(session, args, (models, texts), execution)
}

/// Checks the options for files. Returns the form of the drawn execution.
fn expect_options(args: &ConformArgs) -> Result<Option<litmus::Picture>, Diagnostic> {
    let one = args.against.len() == 1;
    let single = [
        ("--litmus", &args.litmus),
        ("--evidence", &args.evidence),
        ("--execution", &args.execution),
    ];
    for (option, path) in single.iter().filter_map(|(o, p)| p.as_ref().map(|p| (o, p))) {
        let is_page = *option == "--evidence" && page::is_page(path);
        if !one && !is_page {
            return Err(Diagnostic::new(
                Stage::Usage,
                format!("`{option}` is for one memory model: expected `--against` once"),
            ));
        }
        expect_writable(path)?;
    }
    args.evidence.as_deref().map(Picture::of).transpose()?;
    if args.execution.as_deref().is_some_and(page::is_page) {
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
    args.suite.as_deref().map(faults::expect_own_readme).transpose()?;
    Ok(execution)
}

fn run_bounded(
    session: &mut Session,
    args: &ConformArgs,
    (mut models, mut texts): (Vec<MemoryModel>, Vec<Option<ModelSource>>),
    execution: Option<litmus::Picture>,
) -> Result<u8, Diagnostic> {
    results::register(args, models.iter().map(|m| m.name.as_str()));
    let faulty = faults::read(session, args)?;
    let Read { interface, explored: ExploredMachine { model, machine, program, idle, .. } } =
        read(session, &args.model, &args.interface, args.operations.bound())?;
    let model = &*model;
    let mut unsupported: Vec<(String, String)> = Vec::new();
    let mut at = 0;
    while at < models.len() {
        match models[at].check(&interface, &machine.alphabet) {
            Ok(()) => at += 1,
            Err(d) if !args.against.is_empty() => return Err(d),
            Err(d) => {
                texts.remove(at);
                unsupported.push((models.remove(at).name, d.message));
            }
        }
    }
    let (models, texts) = (&models[..], &texts[..]);
    let known = results::register(args, models.iter().map(|m| m.name.as_str()));
    let group = symmetries(session, args, &machine);
    session.log(format!(
        "symmetries of order {}: {}",
        group.elements.len(),
        group.names.join(", ")
    ));
    output::begin_stage("searching histories");
    let operations = args.operations.bound() as usize;
    let compared = operations.min(COMPARED_OPERATIONS);
    let bound = Bound { collect: compared, ..Bound::of(operations, session.threads()) };
    let selected: Vec<&MemoryModel> = models.iter().collect();
    let mut shown: Vec<Option<ConfirmedViolation>> = models.iter().map(|_| None).collect();
    let mut answer = {
        let mut confirm = |m: usize, found: &Violation| {
            let (names, against) = (&machine.alphabet, (&models[m], texts[m].as_ref()));
            let confirmed = confirm_violation(session, &interface, model, names, against, found)?;
            let (name, single) = (&models[m].name, models.len() == 1);
            known.set(m, results::violation_answer(session, name, &confirmed, single));
            shown[m] = Some(confirmed);
            Ok(())
        };
        let input = (&interface, &machine, &group);
        search_and_report(input, &selected, bound, &session.budget, &mut confirm)?
    };
    // A limit that ends a confirmation leaves the model open.
    for (found, shown) in answer.found.iter_mut().zip(&shown) {
        *found = found.take().filter(|_| shown.is_some());
    }
    session.log(format!("{} histories judged", group_digits(answer.histories)));
    let conforming: Vec<usize> = (0..models.len()).filter(|&m| answer.found[m].is_none()).collect();
    let judged = answer.stop == Stop::Complete
        && answer.unjudged_reason(&interface, &machine.alphabet).is_none();
    let mut results = ConformResults {
        args,
        names: models.iter().map(|m| m.name.clone()).collect(),
        interface: &interface,
        machine: &machine,
        program,
        idle,
        group: &group,
        answer: &answer,
        shown,
        unsupported,
        strongest: Vec::new(),
        compared,
        seconds: session.budget.elapsed().as_secs_f64(),
        peak: session.peak_memory(),
    };
    results.register(session, None);
    if judged && !conforming.is_empty() {
        output::begin_stage("comparing outcomes");
        let small = |p: &History| p.threads.iter().all(|t| t.len() <= compared);
        let programs = answer.programs.iter().filter(small).collect();
        let executions = answer.judged_histories.iter().cloned().collect();
        let holding: Vec<(usize, &MemoryModel)> =
            conforming.iter().map(|&m| (m, &models[m])).collect();
        match completeness::strongest(&programs, &executions, &holding, &session.budget) {
            Ok(found) => results.strongest = found,
            // The verdicts are known; the comparison is left out.
            Err(d) if d.stop.is_some() => session.log("the comparison of outcomes was stopped"),
            Err(d) => return Err(d),
        }
        results.register(session, None);
    }
    let mut faults = None;
    if !faulty.is_empty() && !conforming.is_empty() && judged {
        let selected = faults::FaultSearch {
            args,
            interface: &interface,
            models,
            texts,
            correct: (&machine, &group),
            conforming: &conforming,
            bound: args.operations.bound(),
            monitored: false,
        };
        let mut register = |s: &Session, faults: &faults::Faults| results.register(s, Some(faults));
        faults = Some(selected.run(session, &faulty, &mut register)?);
    }
    results.seconds = session.budget.elapsed().as_secs_f64();
    results.peak = session.peak_memory();
    let faults = faults.as_ref();
    results.register(session, faults);
    let (interface, json) = (&interface, results.json(faults));
    let written = ViolationFiles { args, names: &results.names, shown: &results.shown, interface };
    write_files(session, &written, &json, model, (models, texts), execution)?;
    junit::publish(session, args, &json, results.code(faults))
}

/// A machine with its interface, explored.
struct Read {
    interface: Interface,
    explored: ExploredMachine,
}

/// A machine, explored.
struct ExploredMachine {
    /// The unreduced model; runs are runs of this model.
    model: Arc<dyn Model>,
    machine: ReducedMachine,
    /// The most general program, if it runs in parallel with the machine.
    program: Option<String>,
    /// Processors without operations.
    idle: Vec<String>,
    /// The interface, with values in the form of the labels.
    interface: Interface,
}

/// Finds the declarations of actions.
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
    Session::expect_machine(path)?;
    let (source, text) = session.read_interface(interface)?;
    let interface = Interface::parse(source, &text)?;
    let explored = explore_machine(session, &interface, &Origin::File(path), operations)?;
    Ok(Read { interface: explored.interface.clone(), explored })
}

/// A machine as models, not yet explored.
struct LoadedMachine {
    /// The unreduced model.
    whole: Loaded,
    /// The model that is searched, if it is another one.
    searched: Option<Arc<dyn Model>>,
    program: Option<String>,
    /// The interface, with values in the form of the labels.
    interface: Interface,
    /// The declarations of actions.
    declared: Vec<(String, Span)>,
}

impl LoadedMachine {
    fn typed_machine(&self) -> TypedMachine<'_> {
        TypedMachine {
            data: &self.whole.data,
            actions: &self.whole.actions,
            declared: self.whole.declared,
        }
    }
    fn searched_model(&self) -> &Arc<dyn Model> {
        self.searched.as_ref().unwrap_or(&self.whole.model)
    }
}

/// Reads a machine. For a specification, the state space is reduced: observations are hidden, and
/// steps that commute with all others have priority. With a bound on the operations, commits are
/// hidden too, and the ends of operations are such steps, because a history does not record when an
/// operation ends.
fn load_machine(
    session: &mut Session,
    interface: &Interface,
    origin: &Origin<'_>,
    operations: Operations,
) -> Result<LoadedMachine, Diagnostic> {
    let mut program = None;
    let mut interface = interface.clone();
    let mut declared = Vec::new();
    memory::show_values(session, &interface, origin)?;
    let spec = match origin {
        Origin::File(path) if properties(path).program => {
            let message = format!(
                "`{}` is a program, but `conform` checks a machine with every program",
                path.display()
            );
            let note = "expected a machine that chooses its operations; `litmus FILE --machine MODEL` runs a test on a machine";
            return Err(Diagnostic::new(Stage::Usage, message).note(note));
        }
        _ => {
            output::begin_stage("reading the specification");
            session.edited_specification(origin, &mut |sources, tree| {
                declared = declarations(tree);
                // Errors in the interface are reported there, not in the program that is generated
                // from it.
                let own = check_specification(tree)?;
                Sorts::check(
                    &mut interface,
                    TypedMachine { data: &own.data, actions: &own.actions, declared: true },
                )?;
                program = program::add(&interface, operations, sources, tree)?;
                Ok(())
            })?
        }
    };
    let (whole, searched) = match (&spec, origin) {
        (Some(spec), _) => {
            // Labels that the interface names must be visible.
            let bounded = operations != Operations::Any;
            let commits = interface.memory().filter(|_| !bounded);
            let shown: Vec<&str> = interface
                .operations
                .iter()
                .flat_map(|o| o.begin.iter().chain([&o.end]))
                .chain(commits.chain(&interface.observed))
                .map(|l| l.action.as_str())
                .collect();
            let whole = session.compile_showing(spec, (&shown, &[]), &Confluence::Auto)?;
            let judged: Vec<&str> = interface
                .operations
                .iter()
                .flat_map(|o| o.begin.iter().chain([&o.end]))
                .chain(interface.memory().filter(|_| !bounded))
                .map(|l| l.action.as_str())
                .collect();
            let observed: Vec<&str> = interface
                .observed
                .iter()
                .chain(interface.memory().filter(|_| bounded))
                .map(|l| l.action.as_str())
                .filter(|a| !judged.contains(a))
                .collect();
            let confluence =
                if bounded { Confluence::Commuting(interface.ends()) } else { Confluence::Auto };
            let searched = session.compile_showing(spec, (&judged, &observed), &confluence)?;
            (whole, Some(searched.model))
        }
        (None, origin) if interface.program.is_empty() => {
            let is_process = origin.front_end().properties().specification;
            let confluence = if is_process { "auto" } else { "none" };
            (session.load_origin(origin, confluence)?, None)
        }
        (None, _) => {
            let message = "a program can only be added to a specification";
            return Err(Diagnostic::at(
                Stage::Usage,
                interface.program.first().map_or_else(Span::default, |p| p.request.span),
                message,
            ));
        }
    };
    let typed =
        TypedMachine { data: &whole.data, actions: &whole.actions, declared: whole.declared };
    Sorts::check(&mut interface, typed)?;
    interface.failure.clone_from(&whole.failure);
    Ok(LoadedMachine { whole, searched, program, interface, declared })
}

/// Reads and explores a machine.
fn explore_machine(
    session: &mut Session,
    interface: &Interface,
    origin: &Origin<'_>,
    operations: u32,
) -> Result<ExploredMachine, Diagnostic> {
    let loaded = load_machine(session, interface, origin, Operations::UpTo(operations))?;
    let mut interface = loaded.interface.clone();
    let typed = loaded.typed_machine();
    let sorts = Sorts::check(&mut interface, typed)?;
    let model = loaded.whole.model.clone();
    let searched = loaded.searched_model();
    let options = session.explore_options(&**searched, &[]);
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let explored =
        ReducedMachine::explore(&**searched, &interface, &options, &session.budget, &bar);
    bar.finish();
    let machine = explored.map_err(|d| {
        if d.message == IDLE {
            most_general(&interface, &loaded.whole).into_iter().fold(d, Diagnostic::note)
        } else {
            d
        }
    })?;
    session.log(format!(
        "{} states, {} after reduction",
        group_digits(machine.outcome.states),
        group_digits(machine.lts.state_count() as u64)
    ));
    sorts.expect_covered(&machine.alphabet, typed, &loaded.declared)?;
    let idle = sorts.idle(&machine.alphabet, typed);
    Ok(ExploredMachine { model, machine, program: loaded.program, idle, interface })
}

/// Returns notes for a machine that does nothing because it needs a program: how to add the most
/// general program.
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
        "lines such as `program load do_load(p, a);` in the interface add a program to a machine that needs one (docs/memory-models.md)".to_string(),
        "or write a program that may do everything, in communication with the machine's actions:".to_string(),
        format!("proc Program = {};", offers.join(" + ")),
    ]
}

/// Returns the symmetries of a machine, unless they are switched off.
fn symmetries(session: &Session, args: &ConformArgs, machine: &ReducedMachine) -> SymmetryGroup {
    if args.without_symmetry {
        SymmetryGroup::trivial(&machine.alphabet, &machine.lts)
    } else {
        SymmetryGroup::find(&machine.alphabet, &machine.lts, session.threads())
    }
}

/// Returns the languages for a history under a model, the preferred one first.
fn language_of(against: &MemoryModel, history: &History) -> &'static [TestLanguage] {
    let dialect = match &against.form {
        Judging::Cat { dialect, .. } => *dialect,
        Judging::Views(_) => Dialect::Plain,
    };
    TestLanguage::of(dialect, history)
}

/// Reads the memory models of `--against`, and the sources of those made of axioms.
fn models(
    session: &mut Session,
    args: &ConformArgs,
) -> Result<(Vec<MemoryModel>, Vec<Option<ModelSource>>), Diagnostic> {
    let mut out = (Vec::new(), Vec::new());
    let words: Vec<Option<&String>> =
        if args.against.is_empty() { vec![None] } else { args.against.iter().map(Some).collect() };
    for word in words {
        if let Some(word) = word.filter(|w| ends_in(Path::new(w), "views")) {
            let path = Path::new(word);
            let text = crate::pipeline::read_text(path)?;
            let views = Views::compile(&mut session.sources, word, &text)?;
            out.0.push(MemoryModel { name: find_path::stem(path), form: Judging::Views(views) });
            out.1.push(None);
            continue;
        }
        for n in compile_models(session, word.map_or(&[], std::slice::from_ref))? {
            out.0.push(MemoryModel {
                name: n.name,
                form: Judging::Cat { model: n.model, dialect: n.dialect },
            });
            out.1.push(Some(ModelSource { text: n.text, folder: n.folder }));
        }
    }
    Ok(out)
}

/// Compiles a model for a litmus test, and parses the test.
fn judge(
    against: &MemoryModel,
    text: &ModelSource,
    litmus: &str,
) -> Result<(mu_litmus::Judge, mu_litmus::LitmusTest), Diagnostic> {
    let mut sources = mu_base::SourceMap::new();
    let source = sources.add("the smallest test", litmus);
    let arch = mu_litmus::file::architecture(source, litmus)?;
    let included = |name: &str| NamedModel::included_file(text.folder.as_deref(), name);
    // A model of the kernel has its own language.
    let files = kernel::files_of(&against.name, &mu_axioms::models::file);
    let language = match files.filter(|_| text.folder.is_none() && arch == mu_litmus::Arch::C) {
        Some([bell, def]) => {
            let (bell, def) =
                ((bell.0.as_str(), bell.1.as_str()), (def.0.as_str(), def.1.as_str()));
            Some(kernel::KernelLanguage::parse(&mut sources, bell, def, None)?)
        }
        None => None,
    };
    let (name, axioms) = (&against.name, &text.text);
    let judge = match &language {
        Some(own) => mu_litmus::Judge::of_kernel(&mut sources, own, name, axioms, &included)?,
        None => mu_litmus::Judge::compile(&mut sources, arch, name, axioms, &included)?,
    };
    let options = mu_litmus::file::ParserOptions { pairs: judge.pairs, kernel: language.as_ref() };
    let test = mu_litmus::parse(source, litmus, options)?;
    Ok((judge, test))
}

/// Writes the litmus test of a history, in the first language in which the litmus layer judges it
/// under the model; if there is none, in the first language that has its operations, with the
/// reason. The text is empty if no language has them.
fn written_test(
    session: &Session,
    (against, text): (&MemoryModel, Option<&ModelSource>),
    history: &History,
) -> Result<(TestLanguage, String, Result<(), String>), Diagnostic> {
    let name = format!("not-{}", against.name);
    let languages = language_of(against, history);
    let mut first: Option<(TestLanguage, String, String)> = None;
    let mut reasons = Vec::new();
    for &language in languages.iter().chain([&TestLanguage::RiscV]) {
        let litmus = match test_of(history, &name, language) {
            Ok(litmus) => litmus,
            Err(why) => {
                reasons.push(why);
                continue;
            }
        };
        let why = match text {
            Some(text) if languages.contains(&language) => {
                match confirm(session, against, text, &litmus)? {
                    Ok(()) => return Ok((language, litmus, Ok(()))),
                    Err(why) => why,
                }
            }
            Some(_) => reasons.first().cloned().unwrap_or_default(),
            None => "models of serial views cannot judge litmus tests".to_string(),
        };
        first.get_or_insert((language, litmus, why));
    }
    Ok(match first {
        Some((language, litmus, why)) => (language, litmus, Err(why)),
        None => (languages[0], String::new(), Err(reasons.swap_remove(0))),
    })
}

/// Confirms a violation with the litmus layer and by replaying a run.
fn confirm_violation(
    session: &Session,
    interface: &Interface,
    model: &dyn Model,
    alphabet: &Alphabet,
    (against, text): (&MemoryModel, Option<&ModelSource>),
    found: &Violation,
) -> Result<ConfirmedViolation, Diagnostic> {
    // A limit that ended the search does not apply to what it has found.
    let _grace = session.budget.grace();
    let (language, litmus, litmus_confirmation) =
        written_test(session, (against, text), &found.history)?;
    let options = session.explore_options(model, &[]);
    let steps =
        witness::run(model, interface, alphabet, &found.concrete, &options, &session.budget)?;
    let steps = steps.ok_or_else(|| {
        Diagnostic::internal("the machine has no run with the history of the violation")
    })?;
    let (walk, replayed) = witness::replay(model, interface, &alphabet.names, &steps)?;
    if replayed != found.concrete {
        return Err(Diagnostic::internal("the replayed run has another history"));
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
    let reason = against.worker_within(&session.budget).reason(&found.history)?;
    let labels: Vec<String> = walk.path().iter().map(|m| model.label_text(m.label)).collect();
    let observed = witness::observations(interface, labels.iter().map(String::as_str));
    let lists: Vec<&[SequenceEntry]> = found.concrete.iter().map(Vec::as_slice).collect();
    let meaning = NameMap::of(
        &found.history,
        &mu_conform::judge::history(interface, &lists),
        &alphabet.names,
    );
    let meaning = meaning
        .ok_or_else(|| Diagnostic::internal("a test and its history are in different classes"))?;
    let litmus = if litmus.is_empty() { litmus } else { meaning.annotate(&litmus) };
    Ok(ConfirmedViolation {
        found: found.clone(),
        reason,
        language,
        litmus,
        litmus_confirmation,
        evidence,
        story,
        observed,
        meaning,
    })
}

/// Returns `Ok` if the litmus layer forbids a test too, otherwise the reason why it cannot judge
/// it.
fn confirm(
    session: &Session,
    against: &MemoryModel,
    text: &ModelSource,
    litmus: &str,
) -> Result<Result<(), String>, Diagnostic> {
    let (judge, test) = match judge(against, text, litmus) {
        Ok(both) => both,
        Err(d) => return Ok(Err(format!("the litmus layer rejects the test: {}", d))),
    };
    let report = mu_litmus::run(test, &judge, PathBounds { loops: 1 }, &session.budget)?;
    match report.answer.verdict {
        mu_program::outcome::Verdict::No => Ok(Ok(())),
        mu_program::outcome::Verdict::Unknown => {
            Ok(Err(format!("the litmus layer stopped: {}", report.stop.word())))
        }
        mu_program::outcome::Verdict::Ok => Err(Diagnostic::internal(format!(
            "`{}` forbids a history but allows its litmus test: {litmus}",
            against.name
        ))),
    }
}

/// Returns the forbidden execution, judged as a litmus test; `None` if the litmus layer rejects the
/// test.
fn execution_of(
    session: &Session,
    against: &MemoryModel,
    text: &ModelSource,
    shown: &ConfirmedViolation,
) -> Result<Option<DecidingExecution>, Diagnostic> {
    let Ok((judge, test)) = judge(against, text, &shown.litmus) else { return Ok(None) };
    Ok(mu_litmus::report::find_deciding_execution(
        test,
        &judge,
        PathBounds { loops: 1 },
        &session.budget,
    )?
    .0)
}

/// The violations of models by name, for files.
struct ViolationFiles<'a> {
    args: &'a ConformArgs,
    names: &'a [String],
    shown: &'a [Option<ConfirmedViolation>],
    interface: &'a Interface,
}

fn write_files(
    session: &Session,
    results: &ViolationFiles<'_>,
    json: &serde_json::Value,
    model: &dyn Model,
    (models, texts): (&[MemoryModel], &[Option<ModelSource>]),
    execution: Option<litmus::Picture>,
) -> Result<(), Diagnostic> {
    let args = results.args;
    if let Some(folder) = &args.tests {
        mu_base::host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        for (name, shown) in results.names.iter().zip(results.shown) {
            if let Some(shown) = shown.as_ref().filter(|s| !s.litmus.is_empty()) {
                write_text(&folder.join(format!("{name}.litmus")), &shown.litmus)?;
            }
        }
    }
    if let Some(path) = args.evidence.as_deref().filter(|p| page::is_page(p)) {
        let mut object = json.clone();
        for (i, shown) in results.shown.iter().enumerate() {
            let (Some(shown), Some(text)) = (shown, &texts[i]) else { continue };
            let title = format!("{} under {}", shown.found.history.text(), results.names[i]);
            if let Some(drawn) = execution_of(session, &models[i], text, shown)? {
                object["models"][i]["execution"] = execution_graph::json(&drawn, &title);
            }
        }
        let title = find_path::file_name(&args.model);
        page::write(
            session,
            path,
            &title,
            &[mu_report::page::PageResult::of("conform", output::with_head(object))],
        )?;
    }
    let (Some(Some(shown)), 1) = (results.shown.first(), results.shown.len()) else {
        let pictures = args.evidence.as_deref().filter(|p| !page::is_page(p));
        let files = [args.litmus.as_deref(), pictures, args.execution.as_deref()];
        for file in files.into_iter().flatten() {
            eprintln!("note: {} is not written: no violation was found", file.display());
        }
        return Ok(());
    };
    if let Some(path) = &args.litmus {
        write_text(path, &shown.litmus)?;
    }
    let what = format!("{} is not {}", find_path::file_name(&args.model), results.names[0]);
    if let Some(path) = &args.evidence {
        let sentence = format!("a run with {}", shown.found.history.text());
        let drawn = find_path::PathDrawing {
            model,
            typed: None,
            evidence: &shown.evidence,
            story: &shown.story,
            interface: Some(results.interface),
        };
        find_path::write_drawing(session, path, &args.model, &drawn, (&what, &sentence))?;
    }
    let (Some(path), Some(picture), Some(text)) = (&args.execution, execution, &texts[0]) else {
        return Ok(());
    };
    if let Some(drawn) = execution_of(session, &models[0], text, shown)? {
        let title = format!("{what}: {}", shown.found.history.text());
        let picture = match picture {
            litmus::Picture::Svg => execution_graph::svg(&drawn, &title),
            litmus::Picture::Dot => execution_graph::dot(&drawn, &title),
            litmus::Picture::Json | litmus::Picture::Page => {
                execution_graph::json(&drawn, &title).to_string()
            }
        };
        write_text(path, &picture)?;
    }
    Ok(())
}
