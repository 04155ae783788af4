//! A test run under a model, and what the herd tools would print of it.
//!
//! In: a [`Test`], a [`Judge`]. Out: a [`Report`]. The counts of the lines `Witnesses` and `Observation` are of outcomes; the herd tools count executions, of which several
//! may have one outcome.

use crate::candidates::{self, Met};
use crate::condition::{Place, Quantifier};
use crate::file::Test;
use crate::judge::Judge;
use crate::layout::Type;
use crate::paths::{self, Bounds, Runs};
use mu_axioms::cat::{Failure, Session};
use mu_axioms::{Execution, Relation};
use mu_base::{Budget, Diagnostic, Stage, Stop};

/// A verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The condition holds.
    Ok,
    /// It does not.
    No,
    /// A limit or a bound was reached before that was clear.
    Unknown,
}

impl Verdict {
    /// The word that is printed.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Ok => "Ok",
            Verdict::No => "No",
            Verdict::Unknown => "Unknown",
        }
    }
}

/// What came out of a test.
#[derive(Clone, Debug)]
pub struct Report {
    /// The test's name.
    pub name: String,
    /// The memory model's name.
    pub model: String,
    /// What is asked.
    pub quantifier: Quantifier,
    /// The proposition's text.
    pub condition: String,
    /// A line for each outcome: name and value of each thing observed.
    pub outcomes: Vec<Vec<(String, String)>>,
    /// Outcomes that satisfy the proposition.
    pub positive: u64,
    /// Outcomes that do not.
    pub negative: u64,
    /// The flags that the model raises, such as data races.
    pub flags: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Executions that the model was asked about.
    pub executions: u64,
    /// Why the search ended.
    pub stop: Stop,
    /// How often loops may jump back, if a longer path was dropped.
    pub unrolled: Option<u32>,
    /// Whether a path was dropped because it accessed what is no variable, or was too long.
    pub dropped: bool,
}

/// A test made ready: its paths.
fn prepare(test: &mut Test, bounds: Bounds, budget: &Budget) -> Result<Runs, Stop> {
    let mut asked = vec![Vec::new(); test.threads.len()];
    for o in &test.question.observed {
        if let Place::Register(t, r) = o.place {
            asked[t as usize].push(r);
        }
    }
    let runs = paths::run(&test.threads, &mut test.layout, &asked, bounds, budget)?;
    for o in &mut test.question.observed {
        if let Place::Memory(v, _) = o.place {
            let element = test.layout.variables()[v as usize].element().min(8) as u8;
            o.shown.get_or_insert(Type { width: element, signed: true });
        }
    }
    Ok(runs)
}

/// Runs a test.
pub fn run(mut test: Test, judge: &Judge, bounds: Bounds, budget: &Budget) -> Result<Report, Diagnostic> {
    applies(&test, judge)?;
    let (runs, found, stop) = match prepare(&mut test, bounds, budget) {
        Ok(runs) => {
            let (found, stop) = candidates::search(&test, &runs, judge, budget)?;
            (runs, found, stop)
        }
        Err(stop) => (Runs::default(), candidates::Found::default(), stop),
    };
    let question = &test.question;
    let counted = |o: &&Vec<u64>| question.filter.as_ref().is_none_or(|f| f.holds(&question.observed, o));
    let mut lines: Vec<(Vec<i128>, &Vec<u64>)> = (found.outcomes.iter().filter(counted))
        .map(|o| (question.observed.iter().zip(o).map(|(seen, &v)| seen.number(v)).collect(), o))
        .collect();
    lines.sort();
    lines.dedup_by(|a, b| a.0 == b.0);
    let positive = lines.iter().filter(|(_, o)| question.prop.holds(&question.observed, o)).count() as u64;
    let negative = lines.len() as u64 - positive;
    // What was found stays true whatever was not seen.
    let sure = match question.quantifier {
        Quantifier::Exists | Quantifier::NotExists => positive > 0,
        Quantifier::Forall => negative > 0,
    };
    let complete = stop == Stop::Complete && !runs.cut && !runs.long;
    let verdict = match question.quantifier.holds(positive, negative) {
        _ if !complete && !sure => Verdict::Unknown,
        true => Verdict::Ok,
        false => Verdict::No,
    };
    let shown =
        |o: &[u64]| question.observed.iter().zip(o).map(|(seen, &v)| (seen.text.clone(), seen.value_text(v, &test.layout))).collect();
    Ok(Report {
        name: test.name.clone(),
        model: judge.model.name().to_string(),
        quantifier: question.quantifier,
        condition: question.prop.text(&question.observed, &test.layout),
        outcomes: lines.iter().map(|(_, o)| shown(o)).collect(),
        positive,
        negative,
        flags: found.flags.into_iter().collect(),
        verdict,
        executions: found.judged,
        stop,
        unrolled: runs.cut.then_some(bounds.loops),
        dropped: runs.strayed || runs.long,
    })
}

fn applies(test: &Test, judge: &Judge) -> Result<(), Diagnostic> {
    if judge.is_for(test.arch) {
        return Ok(());
    }
    Err(Diagnostic::new(Stage::Usage, format!("the model was compiled for another architecture than {}", test.arch.name())))
}

/// An execution that decides a test, with all that a drawing needs.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Events, with their values.
    pub events: Vec<mu_axioms::Event>,
    /// The text of the instruction of each event.
    pub texts: Vec<String>,
    /// The name of the location of each event.
    pub locations: Vec<String>,
    /// Named relations, as pairs of events.
    pub relations: Vec<(String, Vec<(usize, usize)>)>,
    /// Whether the model allows it.
    pub allowed: bool,
    /// Why not, if it does not.
    pub failure: Option<Failure>,
    /// Its outcome in a line.
    pub outcome: String,
}

/// Finds an execution that decides a test: an allowed one that satisfies the proposition (for `forall`, that does not), or if there is none the one with such an
/// outcome that breaks the fewest axioms' cycle, which shows why it is forbidden.
pub fn deciding(mut test: Test, judge: &Judge, bounds: Bounds, budget: &Budget) -> Result<(Option<Drawn>, Stop), Diagnostic> {
    applies(&test, judge)?;
    let runs = match prepare(&mut test, bounds, budget) {
        Ok(runs) => runs,
        Err(stop) => return Ok((None, stop)),
    };
    let mut best: Option<Drawn> = None;
    let mut error = None;
    let question = &test.question;
    let wanted = |o: &[u64]| {
        let counts = question.filter.as_ref().is_none_or(|f| f.holds(&question.observed, o));
        counts && question.prop.holds(&question.observed, o) == (question.quantifier != Quantifier::Forall)
    };
    let mut visit = |met: &Met<'_>| {
        if !wanted(met.outcome) {
            return false;
        }
        match drawn(&test, judge, met) {
            Ok(d) => {
                let length = |d: &Drawn| d.failure.as_ref().map_or(0, |f| f.events.len().max(1));
                if best.as_ref().is_none_or(|b| length(&d) < length(b)) {
                    best = Some(d);
                }
            }
            Err(d) => error = Some(d),
        }
        met.allowed || error.is_some()
    };
    // A forbidden execution may be one that the search would not show to the model.
    let (_, stop) = candidates::search_all(&test, &runs, judge, budget, &mut visit)?;
    match error {
        Some(d) => Err(d),
        None => Ok((best, stop)),
    }
}

fn drawn(test: &Test, judge: &Judge, met: &Met<'_>) -> Result<Drawn, Diagnostic> {
    let Execution { skeleton, rf, co } = met.execution;
    let mut session = Session::new(&judge.model);
    let mut run = session.on(skeleton)?;
    let verdict = run.verdict(rf, co)?;
    let mut fr = Relation::empty(skeleton.len());
    Execution::from_reads(skeleton, rf, co, &mut fr);
    let mut relations =
        vec![("rf".to_string(), rf.pairs().collect()), ("co".to_string(), steps(co)), ("fr".to_string(), fr.pairs().collect())];
    use mu_axioms::RelationId as Id;
    for (name, id) in [("addr", Id::ADDR), ("data", Id::DATA), ("ctrl", Id::CTRL), ("rmw", Id::RMW)] {
        relations.push((name.to_string(), skeleton.relation(id).pairs().collect()));
    }
    let layout = &test.layout;
    let location = |e: &mu_axioms::Event| match e.location {
        Some(c) => {
            let cell = &layout.cells()[c as usize];
            let variable = &layout.variables()[cell.variable as usize];
            layout.address_text(variable.address + u64::from(cell.offset)).unwrap_or_else(|| variable.name.clone())
        }
        None => String::new(),
    };
    let text = |i: &Option<(u32, u32)>| {
        i.and_then(|(t, n)| test.threads[t as usize].texts.get(n as usize)).map(|t| t.0.clone()).unwrap_or_default()
    };
    let outcome = test.question.observed.iter().zip(met.outcome).map(|(o, &v)| format!("{}={};", o.text, o.value_text(v, layout)));
    Ok(Drawn {
        events: skeleton.events().to_vec(),
        texts: met.instructions.iter().map(text).collect(),
        locations: skeleton.events().iter().map(location).collect(),
        relations,
        allowed: verdict.allowed,
        failure: verdict.failed,
        outcome: outcome.collect::<Vec<_>>().join(" "),
    })
}

/// The pairs of an order with nothing between them.
fn steps(order: &Relation) -> Vec<(usize, usize)> {
    order.pairs().filter(|&(a, b)| !order.after(a).any(|m| order.has(m, b))).collect()
}

impl Report {
    /// `Always`, `Sometimes` or `Never`.
    pub fn observation(&self) -> &'static str {
        match (self.positive, self.negative) {
            (0, _) => "Never",
            (_, 0) => "Always",
            _ => "Sometimes",
        }
    }
    /// The text, as the herd tools print it.
    pub fn text(&self) -> String {
        let mut out = format!("Test {} {}\nStates {}\n", self.name, self.quantifier.kind(), self.outcomes.len());
        for line in &self.outcomes {
            let items: Vec<String> = line.iter().map(|(name, value)| format!("{name}={value};")).collect();
            out += &items.join(" ");
            out.push('\n');
        }
        // The witnesses of `~exists` are those that speak for it.
        let (speak_for, against) = match self.quantifier {
            Quantifier::NotExists => (self.negative, self.positive),
            _ => (self.positive, self.negative),
        };
        out += &format!("{}\nWitnesses\nPositive: {speak_for} Negative: {against}\n", self.verdict.word());
        for flag in &self.flags {
            out += &format!("Flag {flag}\n");
        }
        out += &format!("Condition {} ({})\n", self.quantifier.word(), self.condition);
        out += &format!("Observation {} {} {} {}\n", self.name, self.observation(), self.positive, self.negative);
        if let Some(bound) = self.unrolled {
            out += &format!("Loops unrolled {bound}: longer paths are left out\n");
        }
        if self.dropped {
            out += "Paths left out: they access what is no variable, or are too long\n";
        }
        out
    }
}
