//! Exploration of Murphi models (`explore MODEL.m`): counts, checks, and a shortest path to a
//! failure.
//!
//! Runs the search of [`mu_murphi::search`], which checks everything that the language can claim.
//! Options that need a transition system of another kind (`--out`, `--reduce`, `--engine`,
//! `--deadlock`, and others) take the model of slots and groups instead, as for every front end.
//! Exit code 0 if nothing fails, 1 with a path otherwise, 3 if a limit ends the search.

use crate::args::{DeadlockKind, Reduction};
use crate::commands::explore::murphi_evidence;
use crate::commands::explore::murphi_proof::{self, Proof};
use crate::commands::explore::plan::Exploration;
use crate::output;
use crate::output::answers;
use crate::output::notes;
use crate::output::progress::{Bar, group_digits};
use crate::pipeline::Session;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Limits, Span, Stage, Stop};
use mu_engines::Engine;
use mu_engines::explicit::Explicit;
use mu_frontends::murphi::MURPHI;
use mu_frontends::{FrontEnd, Input};
use mu_murphi::code::{Fault, Program};
use mu_murphi::compile::fault_text;
use mu_murphi::model::{ERROR, VIOLATION};
use mu_murphi::order_check::Asymmetry;
use mu_murphi::path::{self, Path};
use mu_murphi::search::{
    Broken, Culprit, Deadlocks, Explored, Failure, SearchOptions, explore as search,
};
use mu_murphi::typed::{Claim, Model, TypeKind};
use mu_murphi::variables::{Variable, variables};
use mu_prove::audit::translation::TranslationAudit;
use serde_json::{Value, json};
use std::ops::RangeInclusive;

/// True if the search of this module answers the command.
pub(crate) fn applies(args: &Exploration) -> bool {
    MURPHI.has_ending(&args.model)
        && args.out.is_none()
        && args.reduce.is_none()
        && args.spill.is_none()
        && args.strategy.is_none()
        && args.goal.kind().is_none()
        && args.relabelling.relabel().is_ok_and(|r| r.is_empty())
        && !args.checkpoints.is_requested()
        && !args.distribution.is_requested()
        && args.confluence == "none"
        && args.engine.name() == Explicit.name()
}

/// Rejects `--deadlocks` where it has no meaning.
pub(crate) fn expect_no_deadlocks(args: &Exploration) -> Result<(), Diagnostic> {
    if args.deadlocks.is_none() {
        return Ok(());
    }
    let text = "`--deadlocks` is for the checks of `explore` on a Murphi model (.m), without options for other searches";
    Err(Diagnostic::new(Stage::Usage, text))
}

/// Warns that a search that only counts states checks no claims of a Murphi model.
pub(crate) fn warn_of_claims(session: &mut Session, args: &Exploration) {
    if MURPHI.has_ending(&args.model) {
        let text = format!(
            "this search counts states and checks no claim of the model: `{VIOLATION}(NAME)` and `{ERROR}` are steps for it; add `--action {VIOLATION}` or `--action {ERROR}` to search for one, or explore the model without the options that choose another search"
        );
        let shown = notes::warn(&session.sources, session.common.quiet, &[(Span::default(), text)]);
        session.warnings.extend(shown);
    }
}

/// Sizes of a scalarset that `-D NAME=any` searches.
const SIZES: RangeInclusive<u32> = 1..=3;
/// Sizes that are searched after a proof, up to [`SPOT_STATES`] states: the search does not use the
/// translation to a system, so it detects an error of it.
const SPOT_SIZES: RangeInclusive<u32> = 4..=5;
/// See [`SPOT_SIZES`].
const SPOT_STATES: u64 = 200_000;

/// Explores a model and prints the result.
pub(crate) fn explore(
    session: &mut Session,
    args: &Exploration,
    start: Instant,
) -> Result<u8, Diagnostic> {
    output::expect_one_verdict();
    if !args.goal.terminal.is_empty() {
        let text = "`--terminal` is not for the checks of a Murphi model (.m): a deadlock there is what `--deadlocks` says";
        return Err(Diagnostic::new(Stage::Usage, text));
    }
    murphi_evidence::expect_possible(args)?;
    let defines = session.common.define.clone();
    let is_any = |d: &&String| d.split_once('=').is_some_and(|(_, value)| value.trim() == "any");
    let any: Vec<&String> = defines.iter().filter(is_any).collect();
    match any[..] {
        [] => {
            let run = search_instance(session, args, &defines)?;
            run.outcome(session, start).register(Vec::new());
            murphi_evidence::write(session, args, (&run, &defines), start)?;
            run.outcome(session, start).print(args)
        }
        [define] => every_size(session, args, start, define),
        _ => {
            let text = "`any` is for one size of a Murphi model";
            Err(Diagnostic::new(Stage::Usage, text))
        }
    }
}

/// Searches small sizes of a scalarset for a failure, which is one of the model for every size.
/// Without a failure, searches for a proof for every size.
fn every_size(
    session: &mut Session,
    args: &Exploration,
    start: Instant,
    define: &str,
) -> Result<u8, Diagnostic> {
    let name = define.split_once('=').map_or("", |d| d.0.trim()).to_string();
    let all = session.common.define.clone();
    let sizes = |model: &Model| -> Vec<u32> {
        let size = |ty: &mu_murphi::typed::Type| match ty.kind {
            TypeKind::Scalarset { size, .. } => Some(size),
            _ => None,
        };
        model.types.all.iter().filter_map(size).collect()
    };
    let defines = |size: u32| -> Vec<String> {
        let instance = |d: &String| if d == define { format!("{name}={size}") } else { d.clone() };
        all.iter().map(instance).collect()
    };
    let input = Input::file(&args.model);
    let mut read =
        |size| mu_frontends::murphi::model(&input, &mut session.sources, &defines(size)).ok();
    if let (Some(one), Some(two)) = (read(1), read(2))
        && sizes(&one) == sizes(&two)
    {
        let text = format!("`-D {define}`: `{name}` is the size of no scalarset");
        return Err(Diagnostic::new(Stage::Usage, text));
    }
    let mut last: Option<Run> = None;
    for size in SIZES {
        let defines = defines(size);
        let run = search_instance(session, args, &defines)?;
        if !["ok", "cover"].contains(&run.outcome(session, start).verdict()) {
            return print_instance(session, args, start, (&run, &defines), (&name, size));
        }
        last = Some(run);
    }
    let Some(run) = last else { return Err(Diagnostic::internal("no size")) };
    let proof = murphi_proof::prove(session, args, &all, &name)?;
    if let Proof::Every { .. } = proof {
        for size in SPOT_SIZES {
            let defines = defines(size);
            let Some(run) = spot_checked(session, args, &defines)? else { break };
            if run.outcome(session, start).has_failure() {
                session.log(format!("the proof is wrong: {name}={size} fails"));
                return print_instance(session, args, start, (&run, &defines), (&name, size));
            }
        }
    }
    let (reason, proof) = match proof {
        Proof::Every { cubes, audit } => {
            (undecided_claims(&run, args, &name), Some((cubes, audit)))
        }
        Proof::Fails { size } => {
            let defines = defines(size);
            let found = if size <= murphi_proof::MAX_SIZE {
                Some(search_instance(session, args, &defines)?)
            } else {
                spot_checked(session, args, &defines)?
            };
            let verdict = |run: &Run| run.outcome(session, start).verdict();
            match &found {
                Some(run) if run.outcome(session, start).has_failure() => {
                    return print_instance(session, args, start, (run, &defines), (&name, size));
                }
                Some(run) if verdict(run) != "unknown" => {
                    (Some(murphi_proof::spurious(size)), None)
                }
                _ => (Some(murphi_proof::unsearched_reason(size)), None),
            }
        }
        Proof::Open(reason) => (Some(reason), None),
    };
    let reason = reason.map(|reason| match proof {
        None => format!(
            "no size of {} to {} fails; for larger ones there is no proof, because {reason}",
            SIZES.start(),
            SIZES.end()
        ),
        Some(_) => reason,
    });
    if let Some(file) = &args.goal.evidence {
        eprintln!("note: {} is not written: no size fails that was searched", file.display());
    }
    let instance = Some((&*name, *SIZES.end()));
    MurphiResult { instance, reason, proof, ..run.outcome(session, start) }.print(args)
}

/// Prints the failure of an instance, and writes its evidence.
fn print_instance(
    session: &mut Session,
    args: &Exploration,
    start: Instant,
    (run, defines): (&Run, &[String]),
    instance: (&str, u32),
) -> Result<u8, Diagnostic> {
    let instance = Some(instance);
    MurphiResult { instance, ..run.outcome(session, start) }.register(Vec::new());
    murphi_evidence::write(session, args, (run, defines), start)?;
    MurphiResult { instance, ..run.outcome(session, start) }.print(args)
}

/// Searches a part of an instance. `None` if there is none of this size.
fn spot_checked(
    session: &mut Session,
    args: &Exploration,
    defines: &[String],
) -> Result<Option<Run>, Diagnostic> {
    let limits = *session.budget.limits();
    let most = limits.max_states.map_or(SPOT_STATES, |most| most.min(SPOT_STATES));
    let part = session.budget.with_limits(Limits { max_states: Some(most), ..limits });
    let whole = std::mem::replace(&mut session.budget, part);
    let run = search_instance(session, args, defines);
    session.budget = whole;
    match run {
        Err(error) if error.stage == Stage::Internal => Err(error),
        Err(_) => Ok(None),
        Ok(run) => Ok(Some(run)),
    }
}

/// Returns the claims that a proof of a model for every size of a scalarset does not decide.
fn undecided_claims(run: &Run, args: &Exploration, name: &str) -> Option<String> {
    let mut open = Vec::new();
    if args.deadlocks != Some(DeadlockKind::Off) {
        open.push("deadlocks (add `--deadlocks off` to leave them out)");
    }
    if run.model.properties.iter().any(|p| p.claim == Claim::Liveness) {
        open.push("liveness");
    }
    if !run.explored.uncovered.is_empty() || !run.explored.uncovered_claims.is_empty() {
        open.push("a claim `cover`");
    }
    let list = open.join(", ");
    (!open.is_empty()).then(|| {
        format!(
            "no invariant or assertion fails for any {name}, and there is no other error (proved); above {name}={} these are not decided: {list}",
            SIZES.end()
        )
    })
}

/// Search of a model that has ended.
pub(super) struct Run {
    pub model: Model,
    pub program: Program,
    pub explored: Explored,
    /// The path to the failure, if there is one.
    pub found: Option<Path>,
}

impl Run {
    pub fn outcome<'r>(&'r self, session: &'r Session, start: Instant) -> MurphiResult<'r> {
        MurphiResult {
            session,
            model: &self.model,
            program: &self.program,
            explored: &self.explored,
            found: self.found.as_ref(),
            start,
            instance: None,
            reason: None,
            proof: None,
        }
    }
}

/// Searches the model with values of constants.
fn search_instance(
    session: &mut Session,
    args: &Exploration,
    defines: &[String],
) -> Result<Run, Diagnostic> {
    output::begin_stage("reading the model");
    let input = Input::file(&args.model);
    let model = mu_frontends::murphi::model(&input, &mut session.sources, defines)?;
    let program = mu_murphi::compile(&model)?;
    session.log(format!(
        "{} rules with their parameters, {} bits for a state, {} instructions",
        program.rules.len(),
        program.layout.state_bits,
        program.code.len()
    ));
    output::begin_stage("exploring");
    let mut options = SearchOptions {
        deadlocks: match args.deadlocks.unwrap_or(DeadlockKind::Stuttering) {
            DeadlockKind::Stuttering => Deadlocks::Stuttering,
            DeadlockKind::Stuck => Deadlocks::Stuck,
            DeadlockKind::Off => Deadlocks::Off,
        },
        symmetry: !args.without.contains(&Reduction::Symmetry),
        checks: true,
    };
    let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
    let mut last = Instant::now();
    let mut show = |states: u64, rules: u64| {
        if last.elapsed().as_millis() >= 200 {
            last = Instant::now();
            bar.note(|| {
                format!("{} states, {} rules fired", group_digits(states), group_digits(rules))
            });
        }
    };
    let mut explored = search(&model, &program, options, &session.budget, &mut show);
    let mut found = path::path(&model, &program, &explored);
    if explored.failure.is_some() && found.is_none() && options.symmetry {
        eprintln!(
            "warning: the model distinguishes elements of a scalarset, so it is explored without symmetries"
        );
        options.symmetry = false;
        explored = search(&model, &program, options, &session.budget, &mut show);
        found = path::path(&model, &program, &explored);
    }
    bar.finish();
    for place in &explored.suspects {
        let (line, column) = session.sources.line_column(*place);
        session.log(format!("{line}:{column}: executed in every order of the elements"));
    }
    Ok(Run { model, program, explored, found })
}

/// Returns the warnings of a search: a complete search without a state, which says nothing about
/// the model; the scalarsets that are no symmetry, with a place that distinguishes their elements.
fn warnings(model: &Model, explored: &Explored) -> Vec<(Span, String)> {
    let warning = |a: &Asymmetry| {
        let place = a.places.first().copied().unwrap_or_default();
        let types: Vec<String> = a.types.iter().map(|t| format!("`{t}`")).collect();
        (place, format!("symmetry of {} is off, because {}", types.join(", "), a.reason))
    };
    let is_complete = explored.stop == Stop::Complete && explored.failure.is_none();
    let nothing = (explored.states == 0 && is_complete).then(|| {
        let reason = if model.starts.is_empty() {
            "the model has no start state"
        } else {
            "no start state satisfies the assumptions"
        };
        (Span::default(), format!("{reason}, so no claim was checked"))
    });
    nothing.into_iter().chain(explored.asymmetries.iter().map(warning)).collect()
}

/// Result of a search with all that its output needs.
pub(super) struct MurphiResult<'r> {
    session: &'r Session,
    model: &'r Model,
    program: &'r Program,
    explored: &'r Explored,
    /// The path to the failure, if there is one.
    found: Option<&'r Path>,
    pub start: Instant,
    /// Size of a scalarset in the model, for `any`.
    instance: Option<(&'r str, u32)>,
    /// Reason why the answer for every size is unknown.
    reason: Option<String>,
    /// Number of cubes of a proof for every size, and its audit by samples.
    proof: Option<(u64, Option<TranslationAudit>)>,
}

impl MurphiResult<'_> {
    /// True if a claim fails, or a rule ends in an error; a limit of the search is none.
    fn has_failure(&self) -> bool {
        !["ok", "cover", "unknown"].contains(&self.verdict())
    }
    pub fn verdict(&self) -> &'static str {
        if self.reason.is_some() {
            return "unknown";
        }
        match &self.explored.failure {
            Some(failure) => match &failure.broken {
                Broken::Invariant(_) => "invariant",
                Broken::Liveness(_) => "liveness",
                Broken::Deadlock => "deadlock",
                Broken::Fault(Fault::Assertion(_), _) => "assertion",
                // A limit of the search, not a failure of the model.
                Broken::Fault(Fault::Depth, _) => "unknown",
                Broken::Fault(..) => "error",
            },
            None if self.explored.stop != Stop::Complete => "unknown",
            None if self.uncovered_claims().is_empty() => "ok",
            None => "cover",
        }
    }
    /// Returns the claims `cover` that never hold, with their places.
    fn uncovered_claims(&self) -> Vec<(String, Span)> {
        let properties = self.explored.uncovered.iter().map(|at| {
            let number = self.program.properties[*at as usize].number;
            let property = &self.model.properties[number as usize];
            (claim_name("cover", property.name.as_deref()), property.span)
        });
        let claims = self.explored.uncovered_claims.iter().map(|number| {
            let claim = &self.model.claims[*number as usize];
            (claim_name("cover", claim.message.as_deref()), claim.span)
        });
        properties.chain(claims).collect()
    }
    /// Returns a sentence about a failure, and its place.
    fn description(&self, failure: &Failure) -> (String, Option<Span>) {
        let (model, program) = (self.model, self.program);
        let property = |at: u32| {
            let number = program.properties[at as usize].number;
            (path::property_name(model, program, at), Some(model.properties[number as usize].span))
        };
        match &failure.broken {
            Broken::Invariant(at) => {
                let (name, span) = property(*at);
                (format!("invariant \"{name}\" is false"), span)
            }
            Broken::Liveness(at) => {
                let (name, span) = property(*at);
                (format!("no state in which \"{name}\" holds can be reached any more"), span)
            }
            Broken::Deadlock => ("deadlock: no rule leads to another state".into(), None),
            Broken::Fault(fault, span) => {
                let part = match failure.culprit {
                    Culprit::Guard(at) => {
                        format!(" in the guard of {}", path::rule_name(model, program, at))
                    }
                    Culprit::Rule(at) => format!(" in {}", path::rule_name(model, program, at)),
                    Culprit::Start(at) => format!(" in {}", path::start_name(model, program, at)),
                    Culprit::Property(at) => {
                        format!(" in {}", path::property_name(model, program, at))
                    }
                    Culprit::State => String::new(),
                };
                (format!("{}{part}", fault_text(model, fault)), Some(*span))
            }
        }
    }
    fn place(&self, span: Option<Span>) -> Option<(String, usize, usize)> {
        let span = span.filter(|s| s.is_somewhere())?;
        let (line, column) = self.session.sources.line_column(span);
        Some((self.session.sources.get(span.source).name.clone(), line, column))
    }
    /// Returns the failure: that of the path, if there is one.
    fn failure(&self) -> Option<&Failure> {
        self.found.map(|p| &p.failure).or(self.explored.failure.as_ref())
    }
    /// Returns the first failure as a sentence, or the first claim `cover` that never holds.
    pub fn first_failure(&self) -> String {
        match self.failure() {
            Some(failure) => self.description(failure).0,
            None => self
                .uncovered_claims()
                .first()
                .map_or_else(String::new, |(what, _)| format!("{what} never holds")),
        }
    }
    /// Returns the reason why the verdict is unknown.
    pub fn unknown_reason(&self) -> String {
        let stop = || self.explored.stop.word().to_string();
        self.reason.clone().unwrap_or_else(stop)
    }
    fn print(&self, args: &Exploration) -> Result<u8, Diagnostic> {
        let (session, warnings) = (self.session, warnings(self.model, self.explored));
        let warnings = notes::warn(&session.sources, session.common.quiet, &warnings);
        if let Some(path) = &args.junit {
            murphi_evidence::write_junit(path, &args.model, self)?;
        }
        self.register(warnings);
        match args.junit.as_deref() == Some(std::path::Path::new("-")) {
            // The report is on standard output.
            true => Ok(self.code()),
            false => answers::finish(session.common.format),
        }
    }
    fn code(&self) -> u8 {
        match self.verdict() {
            "ok" => 0,
            "unknown" => 3,
            _ => 1,
        }
    }
    /// Registers the result, before files that a limit may prevent.
    fn register(&self, warnings: Vec<Value>) {
        answers::set_complete(self.json(warnings), self.text(), self.code());
    }
    /// Returns the result for people.
    pub fn text(&self) -> String {
        let (explored, verdict) = (self.explored, self.verdict());
        let mut text = String::new();
        let at = |span| {
            self.place(span)
                .map_or(String::new(), |(f, line, column)| format!("{f}:{line}:{column}: "))
        };
        if let Some(failure) = self.failure() {
            let (what, span) = self.description(failure);
            text += &format!("{}{what}\n", at(span));
        }
        for (what, span) in self.uncovered_claims() {
            text += &format!("{}{what} never holds\n", at(Some(span)));
        }
        for (rule, changes) in self.found.map(|found| self.steps(found)).unwrap_or_default() {
            text += &format!("{rule}\n");
            for (name, value) in changes {
                text += &format!("    {name} = {value}\n");
            }
        }
        if let Some(reason) = &self.reason {
            text += &format!("unknown: {reason}\n");
        }
        if let Some((name, size)) = self.instance {
            text += &format!("instance     {name}={size}\n");
            if let Some((cubes, audit)) = &self.proof {
                text += &format!(
                    "proof        every {name}, {} cubes, verified\n",
                    group_digits(*cubes)
                );
                text += &format!("samples      {}\n", murphi_proof::text(audit.as_ref()));
            }
        }
        let orbits = if explored.symmetries > 1 { "  (one of each orbit)" } else { "" };
        text += &format!(
            "verdict      {verdict}\nstates       {}{orbits}\nrules fired  {}\nlongest path {}\n",
            explored.states, explored.rules, explored.depth
        );
        if explored.stop != Stop::Complete {
            text += &format!("stopped      {}\n", explored.stop.word());
        }
        text += &format!(
            "time         {:.3} s\nmemory       {:.1} bytes for a state\n",
            self.start.elapsed().as_secs_f64(),
            explored.memory as f64 / explored.states.max(1) as f64
        );
        text
    }
    /// Returns the rules of a path, each with names and values of the variables that it changes.
    fn steps<'p>(&self, found: &'p Path) -> Vec<(&'p str, Vec<(String, String)>)> {
        let all = variables(self.model, &self.program.layout);
        let mut before: Option<&[u64]> = None;
        let step = |(name, state): &'p (String, Vec<u64>)| {
            (name.as_str(), self.changes(&all, before.replace(state), state))
        };
        found.steps.iter().map(step).collect()
    }
    /// Returns the variables with new values; all that are defined in the first state.
    fn changes(
        &self,
        all: &[Variable],
        before: Option<&[u64]>,
        state: &[u64],
    ) -> Vec<(String, String)> {
        let layout = &self.program.layout;
        let text = |v: &Variable, state: &[u64]| v.text(self.model, layout, state);
        let changed = |v: &&Variable| match before {
            Some(before) => text(v, before) != text(v, state),
            None => !["undefined", "absent"].contains(&text(v, state).as_str()),
        };
        let shown = all.iter().filter(changed).map(|v| (v.name.clone(), text(v, state)));
        shown.filter(|(_, value)| !value.is_empty()).collect()
    }
    /// Returns the result as an object.
    pub fn json(&self, warnings: Vec<Value>) -> Value {
        let explored = self.explored;
        let item = |what: String, span: Option<Span>| {
            let mut object = json!({ "message": what });
            if let Some((_, line, column)) = self.place(span) {
                object["line"] = line.into();
                object["column"] = column.into();
            }
            object
        };
        let mut failed: Vec<Value> = Vec::new();
        failed.extend(self.failure().map(|f| {
            let (what, span) = self.description(f);
            item(what, span)
        }));
        failed.extend(
            self.uncovered_claims()
                .into_iter()
                .map(|(what, span)| item(format!("{what} never holds"), Some(span))),
        );
        let mut object = json!({
            "verdict": self.verdict(),
            "failed": failed,
            "states": explored.states,
            "rules": explored.rules,
            "depth": explored.depth,
            "symmetries": explored.symmetries,
            "store_bytes": explored.memory,
            "seconds": self.start.elapsed().as_secs_f64(),
            "peak_memory_bytes": self.session.peak_memory(),
            "stop": explored.stop.word(),
        });
        if let Some((name, size)) = self.instance {
            object["instance"] = json!({ name: size });
        }
        if let Some((cubes, audit)) = &self.proof {
            let samples = murphi_proof::object(audit.as_ref());
            object["proof"] = json!({ "cubes": cubes, "samples": samples });
        }
        if !warnings.is_empty() {
            object["warnings"] = warnings.into();
        }
        if let Some(reason) = &self.reason {
            object["reason"] = reason.as_str().into();
        }
        if let Some(found) = self.found {
            let steps = self.steps(found).into_iter().map(|(rule, changes)| {
                let changes = changes.into_iter().map(|(name, value)| (name, value.into()));
                json!({ "rule": rule, "changes": changes.collect::<serde_json::Map<_, _>>() })
            });
            object["path"] = steps.collect::<Vec<_>>().into();
        }
        object
    }
}

fn claim_name(what: &str, name: Option<&str>) -> String {
    name.map_or_else(|| what.to_string(), |name| format!("{what} \"{}\"", name.trim()))
}
