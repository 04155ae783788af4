//! Run of a test under a model, with a report in the format of the herd tools.
//!
//! Input: a [`LitmusTest`], a [`Judge`]. Output: a [`TestReport`].

use crate::candidates::{self, CandidateExecution};
use crate::code::Arch;
use crate::condition::ObservedPlace;
use crate::file::LitmusTest;
use crate::judge::Judge;
use crate::paths::{self, PathBounds, Reads, Runs};
use mu_axioms::cat::{Session, ViolatedAxiom};
use mu_axioms::{Execution, Relation};
use mu_base::{Budget, Diagnostic, Stage, Stop};
use mu_program::outcome::Answer;

/// The result of a test.
#[derive(Clone, Debug)]
pub struct TestReport {
    /// The question with its answer.
    pub answer: Answer,
    /// Number of judged executions.
    pub executions: u64,
    /// The stop reason.
    pub stop: Stop,
    /// The bound on backward jumps, if a longer path was dropped.
    pub unrolled: Option<u32>,
    /// True if a path was dropped because it is too long.
    pub long: bool,
    /// True if values of reads may be missing, because the search for constants that stores may
    /// write ended at its limit.
    pub constants: bool,
    /// The instruction of a path that was dropped because its address is not that of a variable.
    pub strayed: Option<String>,
    /// The instruction of a path that was dropped because its behaviour is undefined.
    pub undefined: Option<String>,
}

/// Computes the paths of a test.
fn prepare(
    test: &mut LitmusTest,
    judge: &Judge,
    bounds: PathBounds,
    take: Reads,
    budget: &Budget,
) -> Result<Runs, Stop> {
    let mut requested = vec![Vec::new(); test.threads.len()];
    for o in &test.question.observed {
        if let ObservedPlace::Register(t, r) = o.place {
            requested[t as usize].push(r);
        }
    }
    paths::run(&test.threads, &mut test.layout, &requested, bounds, take, judge.inside, budget)
}

/// Rejects accesses that the semantics does not cover: those beyond their variables, and those of
/// mixed sizes if the architecture or the model does not define them.
fn expect_supported(test: &LitmusTest, runs: &Runs, judge: &Judge) -> Result<(), Diagnostic> {
    let at = |(t, i): (u32, u32), message: String| {
        let texts = test.threads.get(t as usize).map(|t| &t.texts);
        match texts.and_then(|texts| texts.get(i as usize)) {
            Some((_, span)) => Diagnostic::at(Stage::Unsupported, *span, message),
            None => Diagnostic::new(Stage::Unsupported, message),
        }
    };
    if let Some((t, i, v, width)) = runs.beyond {
        let variable = &test.layout.variables()[v as usize];
        let message = format!(
            "an access of {width} bytes goes beyond `{}`, which has {}",
            variable.name,
            variable.size()
        );
        return Err(at((t, i), message)
            .note("declare its type, such as `int64_t`, or the number of its elements"));
    }
    match (test.arch, runs.unaligned) {
        (_, [_, Some(place)]) => Err(at(
            place,
            "an access crosses a border of 16 bytes, so it is not atomic".to_string(),
        )),
        (Arch::RiscV | Arch::C | Arch::Linux, [Some(place), _]) => {
            Err(at(place, "an access is not aligned".to_string()))
        }
        _ => match runs.split {
            Some(place) if !judge.mixed_sizes => {
                let message = format!(
                    "accesses have several sizes, which the model `{}` does not define",
                    judge.model.name()
                );
                Err(at(place, message).note(
                    "the model does not say that the parts of an access are one (`si`, `sm`)",
                ))
            }
            _ => Ok(()),
        },
    }
}

/// Runs a test.
pub fn run(
    mut test: LitmusTest,
    judge: &Judge,
    bounds: PathBounds,
    budget: &Budget,
) -> Result<TestReport, Diagnostic> {
    applies(&test, judge)?;
    let (runs, found, stop) = match prepare(&mut test, judge, bounds, reads(judge), budget) {
        Ok(runs) => {
            expect_supported(&test, &runs, judge)?;
            let (found, stop) = candidates::search(&test, &runs, judge, budget)?;
            (runs, found, stop)
        }
        Err(stop) => (Runs::default(), candidates::Found::default(), stop),
    };
    let whole = !runs.cut && !runs.drops_paths() && found.strayed.is_none();
    let complete = stop == Stop::Complete && whole;
    let mut answer = Answer::new(
        &test.name,
        judge.model.name(),
        &test.question,
        &test.layout,
        &found.outcomes,
        complete,
    );
    answer.undefined = found.flags.iter().any(|f| judge.undefined.contains(f));
    if stop != Stop::Complete && !judge.undefined.is_empty() && !answer.undefined {
        // An execution that was not searched may make the program undefined.
        answer.reopen();
    } else if whole && found.decided && !complete {
        answer.decide();
    }
    answer.flags = found.flags.into_iter().collect();
    Ok(TestReport {
        answer,
        executions: found.judged,
        stop,
        unrolled: runs.cut.then_some(bounds.loops),
        long: runs.long,
        constants: runs.constants,
        strayed: found.strayed.map(|place| instruction(&test, place)),
        undefined: runs.undefined.map(|place| instruction(&test, place)),
    })
}

/// Calls `visit` with all candidate executions of a test, coherent or not; `test` then contains the
/// layout for printing outcomes. Returns also true if a path was dropped.
pub fn for_each_candidate(
    test: &mut LitmusTest,
    judge: &Judge,
    bounds: PathBounds,
    budget: &Budget,
    visit: candidates::Visit<'_>,
) -> Result<(Stop, bool), Diagnostic> {
    applies(test, judge)?;
    match prepare(test, judge, bounds, Reads::All, budget) {
        Ok(runs) => {
            expect_supported(test, &runs, judge)?;
            let (_, stop) = candidates::search_all(test, &runs, judge, budget, visit)?;
            Ok((stop, runs.cut || runs.drops_paths()))
        }
        Err(stop) => Ok((stop, false)),
    }
}

/// Prints an instruction with its thread.
fn instruction(test: &LitmusTest, (t, i): (u32, u32)) -> String {
    let text = test
        .threads
        .get(t as usize)
        .and_then(|t| t.texts.get(i as usize))
        .map_or("", |t| t.0.as_str());
    format!("`{text}` of P{t}")
}

fn applies(test: &LitmusTest, judge: &Judge) -> Result<(), Diagnostic> {
    if judge.is_for(test.arch) {
        return Ok(());
    }
    Err(Diagnostic::new(
        Stage::Usage,
        format!("the model was compiled for another architecture than {}", test.arch.name()),
    ))
}

/// An execution that decides a test, with the data for a drawing.
#[derive(Clone, Debug)]
pub struct DecidingExecution {
    /// Events, with their values.
    pub events: Vec<mu_axioms::Event>,
    /// The text of the instruction of each event.
    pub texts: Vec<String>,
    /// The name of the location of each event.
    pub locations: Vec<String>,
    /// Names of the threads; `P0`, `P1`, … if there are none.
    pub threads: Vec<String>,
    /// Named relations, as pairs of events.
    pub relations: Vec<(String, Vec<(usize, usize)>)>,
    /// Relations for the description that are not drawn: `fence`, which relates the last access
    /// before a fence to the first one after it; and `ghb`, global happens-before, if the model
    /// defines a relation of that name.
    pub undrawn_relations: Vec<(String, Vec<(usize, usize)>)>,
    /// True if the model allows it.
    pub allowed: bool,
    /// The reason if the model forbids it.
    pub failure: Option<ViolatedAxiom>,
    /// Its outcome in a line.
    pub outcome: String,
}

/// Finds an execution that decides a test: an allowed one that satisfies the proposition (for
/// `forall`, that violates it). If there is none, the forbidden execution with such an outcome and
/// the shortest forbidden cycle explains why.
pub fn find_deciding_execution(
    mut test: LitmusTest,
    judge: &Judge,
    bounds: PathBounds,
    budget: &Budget,
) -> Result<(Option<DecidingExecution>, Stop), Diagnostic> {
    applies(&test, judge)?;
    let (mut found, stop) = best_of(&mut test, judge, bounds, reads(judge), budget)?;
    if judge.coherent && stop == Stop::Complete && found.as_ref().is_none_or(|d| !d.allowed) {
        // A forbidden execution may be incoherent, and there may be too many incoherent ones.
        let (other, _) =
            best_of(&mut test, judge, bounds, Reads::AllWithin(INCOHERENT_STEPS), budget)?;
        if let Some(other) = other
            && found.as_ref().is_none_or(|d| length(&other) < length(d))
        {
            found = Some(other);
        }
    }
    Ok((found, stop))
}

/// Returns the values that reads may take under a model.
fn reads(judge: &Judge) -> Reads {
    if judge.coherent { Reads::Coherent } else { Reads::All }
}

/// Limit on the steps of a thread on incoherent paths in the search for an execution to draw.
const INCOHERENT_STEPS: u64 = 1 << 18;

/// Finds the best execution of some paths.
fn best_of(
    test: &mut LitmusTest,
    judge: &Judge,
    bounds: PathBounds,
    take: Reads,
    budget: &Budget,
) -> Result<(Option<DecidingExecution>, Stop), Diagnostic> {
    let runs = match prepare(test, judge, bounds, take, budget) {
        Ok(runs) => runs,
        Err(stop) => return Ok((None, stop)),
    };
    let test = &*test;
    expect_supported(test, &runs, judge)?;
    let mut best: Option<DecidingExecution> = None;
    let mut error = None;
    let mut visit = |candidate: &CandidateExecution<'_>| {
        if !test.question.is_decided_by(candidate.outcome) {
            return false;
        }
        match deciding_execution(test, judge, candidate) {
            Ok(d) => {
                if best.as_ref().is_none_or(|b| length(&d) < length(b)) {
                    best = Some(d);
                }
            }
            Err(d) => error = Some(d),
        }
        candidate.allowed || error.is_some()
    };
    // The search for outcomes drops some forbidden executions, so search all.
    let (_, stop) = candidates::search_all(test, &runs, judge, budget, &mut visit)?;
    match error {
        Some(d) => Err(d),
        None => Ok((best, stop)),
    }
}

/// Returns the length of the cycle that forbids an execution; 0 if the model allows it.
fn length(d: &DecidingExecution) -> usize {
    d.failure.as_ref().map_or(0, |f| f.events.len().max(1))
}

fn deciding_execution(
    test: &LitmusTest,
    judge: &Judge,
    candidate: &CandidateExecution<'_>,
) -> Result<DecidingExecution, Diagnostic> {
    let Execution { skeleton, rf, co } = candidate.execution;
    let mut session = Session::new(&judge.model);
    let mut run = session.start(skeleton)?;
    let verdict = run.verdict(rf, co)?;
    let mut fr = Relation::empty(skeleton.len());
    Execution::from_reads(skeleton, rf, co, &mut fr);
    let mut relations = vec![
        ("rf".to_string(), rf.pairs().collect()),
        ("co".to_string(), steps(co)),
        ("fr".to_string(), fr.pairs().collect()),
    ];
    use mu_axioms::RelationId as Id;
    for (name, id) in [("addr", Id::ADDR), ("data", Id::DATA), ("ctrl", Id::CTRL), ("rmw", Id::RMW)]
    {
        relations.push((name.to_string(), skeleton.relation(id).pairs().collect()));
    }
    let mut undrawn_relations = vec![("fence".to_string(), fences(skeleton.events()))];
    if let Some(ghb) = run.defined_relation("ghb")? {
        undrawn_relations.push(("ghb".to_string(), ghb.pairs().collect()));
    }
    let layout = &test.layout;
    let location = |e: &mu_axioms::Event| match e.location {
        Some(c) => {
            let cell = &layout.cells()[c as usize];
            let variable = &layout.variables()[cell.variable as usize];
            layout
                .address_text(variable.address + u64::from(cell.offset))
                .unwrap_or_else(|| variable.name.clone())
        }
        None => String::new(),
    };
    let text = |i: &Option<(u32, u32)>| {
        i.and_then(|(t, n)| test.threads[t as usize].texts.get(n as usize))
            .map(|t| t.0.clone())
            .unwrap_or_default()
    };
    Ok(DecidingExecution {
        events: skeleton.events().to_vec(),
        texts: candidate.instructions.iter().map(text).collect(),
        locations: skeleton.events().iter().map(location).collect(),
        threads: Vec::new(),
        relations,
        undrawn_relations,
        allowed: verdict.allowed,
        failure: verdict.failed,
        outcome: test.question.outcome_text(candidate.outcome, layout),
    })
}

/// Relates the last access before each fence in its thread to the first one after it.
fn fences(events: &[mu_axioms::Event]) -> Vec<(usize, usize)> {
    use mu_axioms::EventKind;
    let accesses = |t: Option<u32>| {
        let of = move |e: &usize| {
            events[*e].thread == t
                && matches!(events[*e].kind, EventKind::Read | EventKind::Write | EventKind::Update)
        };
        (0..events.len()).filter(of)
    };
    let fences = (0..events.len()).filter(|f| events[*f].kind == EventKind::Fence);
    let mut found: Vec<(usize, usize)> = fences
        .filter_map(|f| {
            let (t, at) = (events[f].thread, events[f].index);
            let before =
                accesses(t).filter(|e| events[*e].index < at).max_by_key(|e| events[*e].index)?;
            let after =
                accesses(t).filter(|e| events[*e].index > at).min_by_key(|e| events[*e].index)?;
            Some((before, after))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the pairs of an order without an element between them.
fn steps(order: &Relation) -> Vec<(usize, usize)> {
    order.pairs().filter(|&(a, b)| !order.successors(a).any(|m| order.contains(m, b))).collect()
}

impl TestReport {
    /// Lists the dropped paths, one line for each reason.
    pub fn dropped_paths(&self) -> Vec<String> {
        let loops =
            self.unrolled.map(|bound| format!("Loops unrolled {bound}: longer paths are left out"));
        let long = self.long.then(|| "Paths left out: they are too long".to_string());
        let constants = self.constants.then(|| {
            "Paths left out: the branches have too many cases to find all constants that are stored"
                .to_string()
        });
        let strayed =
            self.strayed.as_ref().map(|at| format!("Paths left out: {at} accesses no variable"));
        let undefined = self.undefined.as_ref().map(|at| {
            format!(
                "Paths left out: {at} divides by zero or shifts by too much, which is undefined"
            )
        });
        loops.into_iter().chain(long).chain(constants).chain(strayed).chain(undefined).collect()
    }
}
