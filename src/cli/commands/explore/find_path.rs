//! Search for shortest paths (`explore --deadlock | --action | --divergence`), and classification
//! of deadlocks.
//!
//! A single path comes from the parallel search that rebuilds parents afterwards
//! ([`mu_explore::goal_search`]); several paths and cycles come from the search that stores parents
//! ([`mu_explore::multi_goal_search`]). Exit code 1: a path was found. The model distinguishes
//! deadlocks from terminations ([`mu_model::deadlock`]). In a stored transition system, a state
//! without outgoing transitions is a termination if all transitions into it are labelled
//! `Terminate` or have an action of `--terminal`.

use crate::args::{Format, GoalArgs};
use crate::commands::explore::plan::Exploration;
use crate::output;
use crate::output::answers::{self, Report};
use crate::output::page;
use crate::output::picture::Picture;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::files::{expect_writable, write, write_lts, write_text};
use crate::pipeline::load::{Loaded, properties, typed_labels};
use crate::pipeline::memory;
use crate::pipeline::operation_log;
use crate::pipeline::{Session, file_error};
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Span, Stage, Stop, label_time, narrow};
use mu_conform::interface::Interface;
use mu_data::typecheck::with_suggestions;
use mu_evidence::{Evidence, EvidenceStep, TakenStep};
use mu_explore::{
    LassoPath, PartialOrder, PathGoal, PathStep, ReductionObstacle, ReductionSavings, SearchTarget,
    Visibility, find, find_paths,
};
use mu_lts::relabel::{Relabel, name_of, parts, split};
use mu_lts::tau::reachable_states;
use mu_lts::typed::TypedDeclarations;
use mu_model::Model;
use mu_model::deadlock::{DeadlockExplainer, End};
use mu_report::chart::chart;
use mu_report::page::PageResult;
use mu_report::printed_evidence::{PrintedEvidence, explain_ending, story};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::BufWriter;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Numbers of states without outgoing transitions, by kind.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct EndCounts {
    pub terminated: u64,
    pub finished: u64,
    pub hangs: u64,
}

impl EndCounts {
    /// Adds a state that represents `count` states.
    pub(crate) fn add(&mut self, end: End, count: u64) {
        *match end {
            End::Terminated => &mut self.terminated,
            End::Finished => &mut self.finished,
            End::Hang => &mut self.hangs,
        } += count;
    }
    /// Returns a line of text that follows the number of deadlocks.
    pub(crate) fn text(&self, deadlocks: Option<u64>) -> String {
        let EndCounts { terminated, finished, hangs } = *self;
        let mut parts = Vec::new();
        let known = terminated + finished + hangs;
        let normal =
            if finished == 1 { "looks like a normal end" } else { "look like a normal end" };
        let stuck = if hangs == 1 {
            "hangs: no component can continue"
        } else {
            "hang: no component can continue"
        };
        for (n, what) in [(terminated, "terminated"), (finished, normal), (hangs, stuck)] {
            if n > 0 {
                parts.push(format!("{n} {what}"));
            }
        }
        if deadlocks.is_some_and(|d| d > known) {
            parts.push(format!("{} not classified", deadlocks.unwrap_or(known) - known));
        }
        if parts.is_empty() {
            String::new()
        } else {
            format!("of these     {}\n", parts.join("; "))
        }
    }
    /// Returns the numbers as an object.
    pub(crate) fn json(&self) -> Value {
        json!({ "terminated": self.terminated, "finished": self.finished, "hang": self.hangs })
    }
}

/// Returns for each state of a stored transition system if there are transitions into it from
/// reachable states, and all of these are `Terminate` or have an action of `terminal`.
fn terminations(
    lts: &mu_lts::Lts,
    reachable: &[bool],
    terminal: &[String],
) -> Result<Vec<bool>, Diagnostic> {
    let by_label: Vec<Vec<&str>> =
        lts.table.texts.iter().map(|t| parts(t).into_iter().map(name_of).collect()).collect();
    let names: BTreeSet<&str> = by_label.iter().flatten().copied().collect();
    if let Some(unknown) = terminal.iter().find(|t| !names.contains(t.as_str())) {
        let message = format!("`--terminal {unknown}`: no transition has an action of this name");
        let error = Diagnostic::new(Stage::Usage, message);
        let name = name_of(unknown);
        return Err(match names.contains(name) {
            true => {
                error.note(format!("expected the name of an action without arguments, `{name}`"))
            }
            false => with_suggestions(error, unknown, names.iter().copied(), "actions"),
        });
    }
    let is_terminal: Vec<bool> = (by_label.iter())
        .map(|names| {
            *names == ["Terminate"] || names.iter().any(|name| terminal.iter().any(|t| t == name))
        })
        .collect();
    let mut ends = vec![None; lts.state_count()];
    let rows = lts.offsets.windows(2).zip(reachable).filter(|(_, reachable)| **reachable);
    for i in rows.flat_map(|(row, _)| row[0] as usize..row[1] as usize) {
        let end = &mut ends[lts.targets[i].index()];
        *end = Some(end.unwrap_or(true) && is_terminal[lts.labels[i].index()]);
    }
    Ok(ends.into_iter().map(|e| e == Some(true)).collect())
}

/// Classifies the deadlocks of a stored transition system among the reachable states.
pub(crate) fn stored_ends(
    lts: &mu_lts::Lts,
    reachable: &[bool],
    terminal: &[String],
) -> Result<EndCounts, Diagnostic> {
    let mut ends = EndCounts::default();
    let terminated = terminations(lts, reachable, terminal)?;
    let rows = terminated.into_iter().zip(lts.offsets.windows(2)).zip(reachable);
    for ((terminated, range), reachable) in rows {
        if *reachable && range[0] == range[1] {
            ends.add(if terminated { End::Terminated } else { End::Hang }, 1);
        }
    }
    Ok(ends)
}

/// Classifier of states without outgoing transitions, for models and stored transition systems.
struct EndClassifier<'m> {
    explainer: Option<Box<dyn DeadlockExplainer + 'm>>,
    /// By state of a stored transition system: true if it is a termination. The state is the value
    /// of the only slot.
    ends: Option<Vec<bool>>,
}

impl<'m> EndClassifier<'m> {
    /// Errors: an unknown name or a bad condition in `terminal`.
    fn new(
        model: &'m dyn Model,
        terminal: &[String],
        stored: Option<&mu_lts::Lts>,
    ) -> Result<Self, Diagnostic> {
        let ends = stored.map(|lts| terminations(lts, &reachable_states(lts), terminal));
        let explainer = model.deadlock_explainer(terminal)?;
        if explainer.is_none() && ends.is_none() && !terminal.is_empty() {
            return Err(Diagnostic::new(
                Stage::Usage,
                "`--terminal` is for models with known components, and for transition systems",
            ));
        }
        Ok(Self { explainer, ends: ends.transpose()? })
    }

    fn end(&mut self, state: &[u32]) -> Result<End, Diagnostic> {
        match (&mut self.explainer, &self.ends) {
            (Some(explainer), _) => explainer.end(state),
            (None, Some(ends))
                if state.first().is_some_and(|s| ends.get(*s as usize) == Some(&true)) =>
            {
                Ok(End::Terminated)
            }
            _ => Ok(End::Hang),
        }
    }
}

/// Searches for the goal of the options and reports the paths.
pub(crate) fn run(
    session: &Session,
    args: &Exploration,
    loaded: &Loaded,
) -> Result<u8, Diagnostic> {
    let model = &*loaded.model;
    let goal = &args.goal;
    if args.out.is_some()
        || args.reduce.is_some()
        || args.checkpoints.is_requested()
        || args.spill.is_some()
    {
        let message = "`--deadlock`, `--action` and `--divergence` search for paths; `--out`, `--reduce`, `--checkpoint`, `--resume` and `--spill` are for whole explorations";
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    if let Some(path) = &goal.evidence {
        Picture::of(path)?;
        expect_writable(path)?;
    }
    if let Some(action) = &goal.action {
        WantedAction::of(action).expect_known(session, loaded)?;
    }
    if let Some(folder) = &goal.trace_dir {
        mu_base::host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
    }
    let stories = Arc::new(Stories::new(session, args));
    answers::set(stories.clone());
    let mut replayed = Vec::new();
    let mut report = |way: &LassoPath| {
        let story = replay_path(session, goal, model, way)?;
        stories.add(session, args, goal, &story.1);
        replayed.push(story);
        Ok(())
    };
    let sought = SoughtGoal { goal, model, stored: loaded.stored.as_deref() };
    let mut found = match search(session, args, sought, &mut report)? {
        Ok(found) => found,
        Err(code) => return Ok(code),
    };
    if found.ways.is_empty() {
        found.stop = session.stop_with_bounds(found.stop);
    }
    // The paths are known, so a limit that ended the search does not apply to their output.
    let _grace = session.budget.grace();
    let code = match (&found.ways[..], &found.stop) {
        ([], Stop::Complete) => 0,
        ([], _) => 3,
        _ => 1,
    };
    let text = match session.common.format {
        Format::Text => text(session, args, goal, &found, &replayed),
        Format::Json => String::new(),
    };
    answers::set_complete(object(session, args, &found, &replayed), text, code);
    save(session, args, loaded, &found, &replayed)?;
    crate::output::notes::report_flaws(session, model)?;
    output::record("states", found.states.into());
    answers::finish(session.common.format)
}

/// The paths so far: the report of a search that a limit ends.
struct Stories {
    head: Value,
    paths: Mutex<Vec<(Value, String)>>,
}

impl Stories {
    fn new(session: &Session, args: &Exploration) -> Self {
        let head = match session.common.format {
            Format::Json => json!({
                "model": args.model.display().to_string(),
                "sought": args.goal.kind(),
                "action": args.goal.action,
                "clean_ends": 0,
                "states": 0,
            }),
            Format::Text => Value::Null,
        };
        Self { head, paths: Mutex::default() }
    }
    fn add(&self, session: &Session, args: &Exploration, goal: &GoalArgs, story: &PrintedEvidence) {
        let path = match session.common.format {
            Format::Json => (path_json(session, args, story), String::new()),
            Format::Text => (Value::Null, path_text(session, goal, story)),
        };
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
    fn lock(&self) -> MutexGuard<'_, Vec<(Value, String)>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Report for Stories {
    fn object(&self, _: Option<&Stop>) -> Value {
        let ways: Vec<Value> = self.lock().iter().map(|path| path.0.clone()).collect();
        let mut object = self.head.clone();
        object["found"] = ways.len().into();
        object["ways"] = ways.into();
        object
    }
    fn text(&self, stop: Option<&Stop>) -> String {
        let paths = self.lock();
        match (paths.is_empty(), stop) {
            (true, Some(stop)) => format!("unknown ({})\n", stop.word()),
            _ => paths.iter().map(|path| path.1.as_str()).collect(),
        }
    }
    fn code(&self, _: Option<&Stop>) -> u8 {
        if self.lock().is_empty() { 3 } else { 1 }
    }
    fn is_complete(&self) -> bool {
        false
    }
}

/// Finds a shortest path to a deadlock, as text.
pub(crate) fn shortest_deadlock(
    session: &Session,
    args: &Exploration,
    model: &dyn Model,
) -> Result<String, Diagnostic> {
    let goal = GoalArgs { deadlock: true, ..args.goal.clone() };
    let mut replayed = Vec::new();
    let mut report = |way: &LassoPath| {
        replayed.push(replay_path(session, &goal, model, way)?);
        Ok(())
    };
    let sought = SoughtGoal { goal: &goal, model, stored: None };
    let Ok(found) = search(session, args, sought, &mut report)? else { return Ok(String::new()) };
    Ok(text(session, args, &goal, &found, &replayed))
}

/// Returns a path as evidence, replayed, and as a story. A limit that the search just met does not
/// apply.
fn replay_path(
    session: &Session,
    goal: &GoalArgs,
    model: &dyn Model,
    way: &LassoPath,
) -> Result<(Evidence, PrintedEvidence), Diagnostic> {
    let _grace = session.budget.grace();
    let evidence = evidence(model, way);
    mu_evidence::checker::replay(&evidence, model)?;
    let mut story = story(&evidence, model, goal.full_states, usize::MAX)?;
    story.of_formula = false;
    story.ending = explain_ending(&evidence, model, &goal.terminal, &session.sources)?;
    Ok((evidence, story))
}

/// Result of a distributed search.
#[cfg_attr(not(feature = "cluster"), allow(dead_code))]
pub(crate) struct DistributedPath {
    /// The path, not yet replayed.
    pub way: Option<LassoPath>,
    pub states: u64,
    pub stop: Stop,
    /// Number of terminations that all processes reached.
    pub terminated: u64,
    /// Figures of the processes, as an object.
    pub processes: Value,
}

/// Result of a search.
struct FoundPaths {
    ways: Vec<LassoPath>,
    states: u64,
    stop: Stop,
    /// Number of terminations that the search reached.
    terminated: u64,
    /// Use of partial-order reduction, for JSON.
    partial_order: Option<Value>,
    /// True if partial-order reduction skipped states.
    reduced: bool,
    /// Figures of the processes, if there were several.
    processes: Option<Value>,
}

/// Largest number of actions that a warning lists.
const MAX_NAMES: usize = 12;

/// One of the actions of `--action`.
struct WantedPart<'a> {
    name: &'a str,
    /// The label without spaces, if it has arguments.
    label: Option<String>,
}

impl<'a> WantedPart<'a> {
    fn of(text: &'a str) -> Self {
        let name = name_of(text);
        Self { name, label: (name != text).then(|| without_spaces(text)) }
    }
    fn is(&self, part: &str) -> bool {
        match &self.label {
            Some(wanted) => without_spaces(part) == *wanted,
            None => name_of(part) == self.name,
        }
    }
}

/// The value of `--action`: a name, or a label with arguments; several of them, separated by `|`,
/// are a part of a multi-action. With a time, only steps at this time are meant.
struct WantedAction<'a> {
    /// Labels with arguments come first: what these do not need can match a name.
    parts: Vec<WantedPart<'a>>,
    time: Option<&'a str>,
}

impl<'a> WantedAction<'a> {
    fn of(text: &'a str) -> Self {
        let mut parts: Vec<_> = parts(text.trim()).into_iter().map(WantedPart::of).collect();
        parts.sort_by_key(|part| part.label.is_none());
        Self { parts, time: label_time::split(text.trim()).1 }
    }
    /// True if each of the actions is another one of a multi-action.
    fn is_in(&self, label: &str) -> bool {
        let mut left = parts(label);
        let mut take = |wanted: &WantedPart<'_>| {
            let place = left.iter().position(|part| wanted.is(part));
            place.map(|place| left.swap_remove(place)).is_some()
        };
        self.parts.iter().all(&mut take)
            && self.time.is_none_or(|time| label_time::split(label).1 == Some(time))
    }
    /// Returns the name of a hidden action that is this one; hidden actions have no arguments, and
    /// no others at their side.
    fn hidden_name(&self) -> Option<&'a str> {
        match &self.parts[..] {
            [WantedPart { name, label: None }] if self.time.is_none() => Some(name),
            _ => None,
        }
    }
    /// Returns the name of an action of each step that is sought.
    fn name(&self) -> &'a str {
        self.parts[0].name
    }
    /// Returns the number of arguments of a label; `None` if its brackets do not match.
    fn argument_count(label: &str) -> Option<usize> {
        let (_, rest) = label.split_once('(')?;
        let arguments = rest.strip_suffix(')')?;
        let count = split(arguments, ',').len();
        (label_time::is_balanced(arguments) && !arguments.is_empty()).then_some(count)
    }
    /// Warns if the model has no action of a name, or none with this number of arguments: then
    /// nothing is found.
    ///
    /// # Errors
    /// The text is neither a name nor a label.
    fn expect_known(&self, session: &Session, loaded: &Loaded) -> Result<(), Diagnostic> {
        self.parts.iter().try_for_each(|part| Self::expect_known_part(part, session, loaded))
    }

    fn expect_known_part(
        part: &WantedPart<'_>,
        session: &Session,
        loaded: &Loaded,
    ) -> Result<(), Diagnostic> {
        let WantedPart { name, label } = part;
        // Labels of stored systems may have arguments in the notation of CADP.
        let is_usual = |label: &&str| loaded.stored.is_none() || !label.contains(['!', '?']);
        let count = label.as_deref().filter(is_usual).map(Self::argument_count);
        if count == Some(None) && !loaded.actions.is_empty() {
            let label = label.as_deref().unwrap_or_default();
            let flaw = if label.contains('(') { ": its brackets do not match" } else { "" };
            let text = format!("`--action {label}` is no label{flaw}");
            return Err(Diagnostic::new(Stage::Usage, text)
                .note("expected a name, such as `a`, or a label, such as `a(1, true)`"));
        }
        let own: Vec<usize> =
            loaded.actions.iter().filter(|a| a.name == *name).map(|a| a.sorts.len()).collect();
        if let Some(Some(count)) = count
            && !own.is_empty()
            && !own.contains(&count)
        {
            let arities: Vec<String> = own.iter().map(ToString::to_string).collect();
            let text = format!(
                "the action `{name}` has not {count} but {} arguments",
                arities.join(" or ")
            );
            let warning = (Span::default(), text);
            crate::output::notes::warn(&session.sources, session.common.quiet, &[warning]);
        }
        let mut known: BTreeSet<&str> = loaded.actions.iter().map(|a| a.name.as_str()).collect();
        let stored = loaded.stored.iter().flat_map(|lts| &lts.table.texts);
        known.extend(stored.flat_map(|t| parts(t)).map(name_of));
        if loaded.actions.is_empty() || known.contains(name) {
            return Ok(());
        }
        let names: Vec<&str> = known.into_iter().take(MAX_NAMES).collect();
        let text = format!("the model has no action `{name}`; it has {}", names.join(", "));
        let warning = (Span::default(), text);
        crate::output::notes::warn(&session.sources, session.common.quiet, &[warning]);
        Ok(())
    }
}

fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}

/// A goal in a model, which may be a stored transition system.
struct SoughtGoal<'a> {
    goal: &'a GoalArgs,
    model: &'a dyn Model,
    stored: Option<&'a mu_lts::Lts>,
}

/// Searches for the goal. `report` receives each path as soon as it is found. `Err(code)`: another
/// process reports; `code` is the exit code.
fn search(
    session: &Session,
    args: &Exploration,
    SoughtGoal { goal, model, stored }: SoughtGoal<'_>,
    report: &mut dyn FnMut(&LassoPath) -> Result<(), Diagnostic>,
) -> Result<Result<FoundPaths, u8>, Diagnostic> {
    let options = session.explore_options(model, &args.without).without_confluence();
    // The classifier is used by one thread. An evaluation that fails ends the search, and is
    // reported after it.
    let classifier = RefCell::new((
        EndClassifier::new(model, &goal.terminal, stored)?,
        0u64,
        None::<Diagnostic>,
    ));
    let deadlocked = |state: &[u32]| {
        let (classifier, terminated, failed) = &mut *classifier.borrow_mut();
        match classifier.end(state) {
            Ok(end) if end.is_deadlock() => true,
            Ok(_) => {
                *terminated += 1;
                false
            }
            Err(error) => {
                failed.get_or_insert(error);
                true
            }
        }
    };
    let wanted = WantedAction::of(goal.action.as_deref().unwrap_or_default());
    let named = RefCell::new(Vec::<Option<bool>>::new());
    let has_name = |label: LabelId| wanted.is_in(&model.label_text(label));
    let is_hidden = |h: &String| wanted.hidden_name() == Some(h.as_str());
    let hidden: Vec<bool> = model.groups().iter().map(|g| g.hidden.iter().any(is_hidden)).collect();
    let of_name = |group: usize, label: LabelId| {
        let mut named = named.borrow_mut();
        if named.len() <= label.index() {
            named.resize(label.index() + 1, None);
        }
        hidden[group] || *named[label.index()].get_or_insert_with(|| has_name(label))
    };
    let path_goal = match goal.kind() {
        Some("deadlock") => PathGoal::Deadlock(&deadlocked),
        Some("action") => PathGoal::Step(&of_name),
        _ => PathGoal::Divergence,
    };
    let mut processes = None;
    let several = |report: &mut dyn FnMut(&LassoPath) -> Result<(), Diagnostic>| {
        let seen = find_paths(
            model,
            &options,
            &session.budget,
            path_goal,
            goal.all.unwrap_or(1) as usize,
            report,
        )?;
        Ok((seen.paths, seen.states, seen.stop, seen.partial_order))
    };
    let result = if args.distribution.is_requested() {
        let terminated = || classifier.borrow().1;
        match crate::pipeline::cluster::seek(session, args, model, path_goal, &terminated)? {
            Ok(distributed) => {
                processes = Some(distributed.processes);
                classifier.borrow_mut().1 = distributed.terminated;
                distributed.way.as_ref().map_or(Ok(()), &mut *report)?;
                Ok((
                    distributed.way.into_iter().collect(),
                    distributed.states,
                    distributed.stop,
                    PartialOrder::Unused(ReductionObstacle::Processes),
                ))
            }
            Err(code) => return Ok(Err(code)),
        }
    } else if goal.all.unwrap_or(1) > 1 || goal.divergence {
        several(report)
    } else {
        let step = |group: usize, label: LabelId| hidden[group] || has_name(label);
        let visibility = Visibility::action(model, wanted.name());
        let target = if goal.deadlock {
            SearchTarget::Deadlock
        } else {
            SearchTarget::StepOf(&visibility, &step)
        };
        let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
        let found = find(model, &options, &session.budget, &bar, target)?;
        bar.finish();
        let stop = if found.reached && found.path.is_none() {
            Stop::Memory
        } else {
            found.outcome.stop.clone()
        };
        let last = found
            .path
            .as_ref()
            .map(|p| p.last().map_or_else(|| model.initial(), |s| s.state.clone()));
        match last {
            // The nearest state is a termination: search on for a deadlock.
            Some(state) if goal.deadlock && !deadlocked(&state) => {
                classifier.borrow_mut().1 = 0;
                several(report)
            }
            _ => {
                let order = found.outcome.partial_order;
                let path = found.path.map(|steps| LassoPath { steps, cycle_start: None });
                path.as_ref().map_or(Ok(()), report)?;
                Ok((path.into_iter().collect(), found.outcome.states, stop, order))
            }
        }
    };
    let (ways, states, stop, order): (Vec<LassoPath>, u64, Stop, PartialOrder) = result?;
    let (_, terminated, failed) = classifier.into_inner();
    match failed {
        Some(error) => Err(error),
        None => {
            let reduced = matches!(order, PartialOrder::Used(ReductionSavings { states: 1.., .. }));
            Ok(Ok(FoundPaths {
                ways,
                states,
                stop,
                terminated,
                partial_order: session.log_partial_order(order.into()),
                reduced,
                processes,
            }))
        }
    }
}

/// Returns a path as evidence.
pub(crate) fn evidence(model: &dyn Model, way: &LassoPath) -> Evidence {
    let mut states = vec![model.initial()];
    let mut steps = Vec::new();
    for (i, PathStep { label, group, state }) in way.steps.iter().enumerate() {
        let to = match way.cycle_start {
            Some(back) if i + 1 == way.steps.len() => narrow::index(back),
            _ => {
                states.push(state.clone());
                narrow::index(i) + 1
            }
        };
        let taken =
            vec![TakenStep { group: narrow::index(*group), label: *label, state: state.clone() }];
        steps.push(EvidenceStep { from: narrow::index(i), label: *label, to, taken });
    }
    Evidence { verdict: false, states, steps, before: Vec::new(), values: Vec::new() }
}

fn save(
    session: &Session,
    args: &Exploration,
    loaded: &Loaded,
    found: &FoundPaths,
    stories: &[(Evidence, PrintedEvidence)],
) -> Result<(), Diagnostic> {
    let name = file_name(&args.model);
    if let Some(path) = args.goal.evidence.as_deref().filter(|p| page::is_page(p)) {
        let shown =
            PageResult::of("explore", output::with_head(object(session, args, found, stories)));
        page::write(session, path, &name, &[shown])?;
    } else if let (Some(path), Some((evidence, story))) = (&args.goal.evidence, stories.first()) {
        let n = story.steps.len();
        let what = format!(
            "a path of {n} step{} to {}",
            if n == 1 { "" } else { "s" },
            describe_goal(&args.goal)
        );
        let drawn = PathDrawing {
            model: &*loaded.model,
            typed: typed_labels(loaded, path, &Relabel::default()),
            evidence,
            story,
            interface: None,
        };
        write_drawing(
            session,
            path,
            &args.model,
            &drawn,
            (&format!("{} of {name}", describe_goal(&args.goal)), &what),
        )?;
    }
    if let Some(folder) = &args.goal.trace_dir {
        for (i, (_, story)) in stories.iter().enumerate() {
            let word = args.goal.kind().unwrap_or("trace");
            let path = folder.join(format!("{word}-{}.json", i + 1));
            as_json(story, &args.model, &path)?;
            session.log(format!("wrote {}", path.display()));
        }
    }
    Ok(())
}

fn as_json(story: &PrintedEvidence, file: &Path, path: &Path) -> Result<(), Diagnostic> {
    let keys = [
        ("verdict", Value::Null),
        ("kind", json!("trace")),
        ("model", json!(file.display().to_string())),
    ];
    let head = keys.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    write(path, |out| {
        story
            .write_json(head, BufWriter::new(out))
            .map_err(|e| file_error("cannot write", path, &e))
    })
}

/// A path with the data for its output.
pub(crate) struct PathDrawing<'a> {
    /// The model that has the path.
    pub model: &'a dyn Model,
    /// The data of its labels, for formats with data.
    pub typed: Option<TypedDeclarations>,
    /// Its states and steps.
    pub evidence: &'a Evidence,
    /// The path for people.
    pub story: &'a PrintedEvidence,
    /// The meaning of its labels, if it is not that of the session.
    pub interface: Option<&'a Interface>,
}

/// Writes a path to a file in the format of its name. `file`: that of the model; `title`, `what`:
/// description of the path.
pub(crate) fn write_drawing(
    session: &Session,
    path: &Path,
    file: &Path,
    PathDrawing { model, typed, evidence, story, interface }: &PathDrawing,
    (title, what): (&str, &str),
) -> Result<(), Diagnostic> {
    match Picture::of(path)? {
        Picture::Json => as_json(story, file, path)?,
        Picture::Lts => write_lts(&evidence.lts(*model).0, typed.as_ref(), path)?,
        Picture::Chart => write_text(path, &chart(story, title, what).unwrap_or_default())?,
        Picture::Log(form) => {
            let interface = interface.or(session.interface.as_ref());
            write_text(path, &operation_log::text(interface, story, form)?)?;
        }
        // Callers write pages themselves, with more than one path.
        Picture::Page => return Ok(()),
    }
    session.log(format!("wrote {}", path.display()));
    Ok(())
}

/// Returns the goal for sentences.
fn describe_goal(goal: &GoalArgs) -> String {
    match (&goal.action, goal.kind()) {
        (Some(action), _) => format!("`{action}`"),
        (None, Some("divergence")) => "a divergence".into(),
        _ => "a deadlock".into(),
    }
}

/// Returns a file's name without its extension.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns a path as an object.
fn path_json(session: &Session, args: &Exploration, story: &PrintedEvidence) -> Value {
    let mut object = story.json();
    if let Some(graph) = memory::operations(session, &args.model, story) {
        object["execution"] = graph;
    }
    object
}

/// Returns a path as text.
fn path_text(session: &Session, goal: &GoalArgs, story: &PrintedEvidence) -> String {
    let goal = describe_goal(goal);
    let n = story.steps.len();
    let steps = format!("{n} step{}", if n == 1 { "" } else { "s" });
    let mut text = match &story.back_to {
        Some(back) => format!("{goal} after {back} steps\n"),
        None => format!("{goal} after {steps}\n"),
    };
    if !session.common.quiet {
        let heading = if n == 0 { "at the initial state" } else { "a shortest path" };
        text += &story.text_of(heading, session.common.verbose > 0);
    }
    text
}

/// Returns the result as an object.
fn object(
    session: &Session,
    args: &Exploration,
    found: &FoundPaths,
    stories: &[(Evidence, PrintedEvidence)],
) -> Value {
    let ways: Vec<Value> =
        stories.iter().map(|(_, story)| path_json(session, args, story)).collect();
    let mut object = json!({
        "model": args.model.display().to_string(),
        "sought": args.goal.kind(),
        "action": args.goal.action,
        "found": stories.len(),
        "ways": ways,
        "clean_ends": found.terminated,
        "states": found.states,
        "stop": found.stop.word(),
        "seconds": session.budget.elapsed().as_secs_f64(),
        "peak_memory_bytes": session.peak_memory(),
    });
    if let Some(processes) = found.processes.clone() {
        object["processes"] = processes;
    }
    if let Some(order) = found.partial_order.clone() {
        object["partial_order"] = order;
    }
    object
}

fn text(
    session: &Session,
    args: &Exploration,
    goal: &GoalArgs,
    found: &FoundPaths,
    stories: &[(Evidence, PrintedEvidence)],
) -> String {
    let mut text: String =
        stories.iter().map(|(_, story)| path_text(session, goal, story)).collect();
    let goal = describe_goal(goal);
    let deadlocked =
        |story: &PrintedEvidence| story.ending.as_ref().is_some_and(|e| e.end.is_deadlock());
    if properties(&args.model).program
        && stories.iter().any(|t| deadlocked(&t.1))
        && !session.common.quiet
    {
        text += &format!(
            "(line numbers refer to the output of `mu-check expand {}`)\n",
            args.model.display()
        );
    }
    if stories.is_empty() {
        let terminated = match found.terminated {
            0 => String::new(),
            1 => ", one terminated".into(),
            n => format!(", {} terminated", group_digits(n)),
        };
        text += &match found.stop {
            Stop::Complete if found.reduced => {
                format!(
                    "no path to {goal}: {} states searched, partial-order reduction skipped the rest{terminated}\n",
                    group_digits(found.states)
                )
            }
            Stop::Complete => format!(
                "no path to {goal}: all {} states searched{terminated}\n",
                group_digits(found.states)
            ),
            _ => format!(
                "no path to {goal} so far: {} states searched{terminated} ({})\n",
                group_digits(found.states),
                found.stop.word()
            ),
        };
    }
    text
}

/// Counter that classifies the deadlocks of an exploration.
pub(crate) struct EndCounter<'m> {
    classifier: EndClassifier<'m>,
    ends: EndCounts,
    failed: Option<Diagnostic>,
}

impl<'m> EndCounter<'m> {
    /// Returns `None` if the model has no known components.
    pub(crate) fn new(
        model: &'m dyn Model,
        terminal: &[String],
    ) -> Result<Option<Self>, Diagnostic> {
        let classifier = EndClassifier::new(model, terminal, None)?;
        Ok(classifier.explainer.is_some().then(|| Self {
            classifier,
            ends: EndCounts::default(),
            failed: None,
        }))
    }
    /// Classifies a state that represents `states` states.
    pub(crate) fn count(&mut self, state: &[u32], states: u64) {
        if self.failed.is_none() {
            match self.classifier.end(state) {
                Ok(end) => self.ends.add(end, states),
                Err(error) => self.failed = Some(error),
            }
        }
    }
    /// Returns the numbers. After a failed evaluation, states are not classified any more.
    pub(crate) fn ends(self) -> EndCounts {
        self.ends
    }
}
