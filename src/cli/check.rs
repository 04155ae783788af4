//! `check`: formulas on a model, with verdicts, figures and evidence.

use super::args::{CheckArgs, Engine, Format};
use super::files::{Form, read_lts, write};
use super::game::solver;
use super::pipeline::Session;
use super::print;
use super::progress::Bar;
use crate::base::{Diagnostic, Stage, Stop};
use crate::data::expr::DataSpec;
use crate::evidence::checker::{self, Checked};
use crate::evidence::{Evidence, Taken};
use crate::explore;
use crate::formula::file_labels::FileLabels;
use crate::formula::typecheck::check_formula;
use crate::game::pg;
use crate::model::Model;
use crate::model::from_lts::LtsModel;
use crate::pbes::{Answer, Options, Route, Verdict, check};
use crate::process::linear::ActionLabels;
use crate::process::spec::ActionDecl;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// A model with what formulas need of it.
struct Subject<'a> {
    model: &'a dyn Model,
    labels: &'a dyn ActionLabels,
    data: &'a DataSpec,
    actions: &'a [ActionDecl],
}

pub(super) fn run(session: &mut Session, args: &CheckArgs) -> Result<u8, Diagnostic> {
    if Form::of(&args.model).is_lts() {
        let lts = Arc::new(read_lts(&args.model)?);
        let labels = FileLabels::new(&lts.table)?;
        let model = LtsModel::new(lts);
        let subject = Subject { model: &model, labels: &labels, data: labels.data(), actions: labels.actions() };
        all(session, args, &subject)
    } else {
        let model = session.model(&args.model, &args.confluence)?;
        let subject = Subject { model: &model, labels: &model, data: &model.process().data, actions: &model.process().actions };
        all(session, args, &subject)
    }
}

fn all(session: &mut Session, args: &CheckArgs, subject: &Subject) -> Result<u8, Diagnostic> {
    // Every formula is read before any is checked: a slip in the last one should not cost the work on the first.
    let mut formulas = Vec::new();
    for path in &args.formulas {
        let text = session.read(path)?;
        let source = session.sources.add(path.display().to_string(), text.clone());
        let tree = crate::syntax::parse_formula(source, &text)?;
        formulas.push((path, check_formula(&tree, subject.data, subject.actions)?));
    }
    let options = explore::Options { threads: session.threads(), ..Default::default() }.with_confluence_of(subject.model);
    if let Some(path) = &args.game {
        let [(_, formula)] = &formulas[..] else {
            return Err(Diagnostic::new(Stage::Usage, "`--game` takes one formula: a game is that of one"));
        };
        match crate::pbes::game::game(subject.model, subject.labels, formula, &options, &session.budget)? {
            Ok(game) => {
                write(path, |file| pg::write(&game, file))?;
                session.say(format!("wrote {}: {} vertices, {} moves", path.display(), game.vertex_count(), game.edge_count()));
            }
            Err(stop) => eprintln!("{}: not written, the game was not complete ({})", path.display(), stop.word()),
        }
    }
    let mut results = Vec::new();
    let (mut violated, mut unknown) = (false, false);
    for (path, formula) in &formulas {
        let start = Instant::now();
        let bar = Bar::new(!session.common.no_progress && !session.common.quiet);
        let model = (subject.model, subject.labels);
        let chosen = Options { solver: Some(solver(args.solver.as_ref())), progress: &bar, ..Options::new(&options) };
        let explicit = |budget: &_| check(subject.model, subject.labels, formula, chosen, budget);
        let (answer, why) = match args.engine {
            Engine::Explicit => (explicit(&session.budget)?, None),
            Engine::Symbolic => (super::symbolic::check(session, args, model, formula)?, None),
            Engine::Auto => super::symbolic::check_by_either(session, args, model, formula, &explicit).map(|(a, why)| (a, Some(why)))?,
        };
        bar.finish();
        if let Some(why) = &why {
            session.say(format!("engine {why}"));
        }
        let seconds = start.elapsed().as_secs_f64();
        session.say(format!(
            "{}: {} by {}, {} equations in {seconds:.3} s",
            path.display(),
            word(&answer.verdict).0,
            answer.route.word(),
            answer.equations
        ));
        if let Some(evidence) = &answer.evidence {
            match checker::check(evidence, subject.model, subject.labels, formula)? {
                Checked::Confirmed => session.say("evidence: every step was replayed and the verdict confirmed on it"),
                Checked::StepsOnly => {
                    session.say("evidence: every step was replayed; the formula was too large to evaluate on it directly")
                }
            }
        }
        vacuity(session, &answer);
        violated |= answer.verdict == Verdict::False;
        unknown |= matches!(answer.verdict, Verdict::Unknown(_));
        match session.common.format {
            Format::Json => {
                let mut object = as_json(path, subject, &answer, seconds);
                if let Some(why) = why {
                    object["engine_reason"] = why.into();
                }
                results.push(object);
            }
            Format::Text => print(&as_text(session, path, subject, &answer, seconds))?,
        }
    }
    if session.common.format == Format::Json {
        let object = json!({ "results": results, "peak_memory_bytes": session.peak_memory() });
        print(&format!("{object}\n"))?;
    }
    Ok(if violated {
        1
    } else if unknown {
        3
    } else {
        0
    })
}

/// Warns of modalities that no transition ever fitted, if the whole state space was seen.
fn vacuity(session: &Session, answer: &Answer) {
    if session.common.quiet || answer.verdict != Verdict::True {
        return;
    }
    for span in &answer.never_met {
        let source = session.sources.get(span.source);
        let (line, column) = session.sources.line_column(*span);
        eprintln!(
            "{}:{line}:{column}: warning: no transition that was met ever fitted this modality, so nothing was tested here: {}",
            source.name,
            session.sources.text(*span).split_whitespace().collect::<Vec<_>>().join(" ")
        );
    }
}

fn word(verdict: &Verdict) -> (&'static str, String) {
    match verdict {
        Verdict::True => ("true", Stop::Complete.word().into()),
        Verdict::False => ("false", Stop::Complete.word().into()),
        Verdict::Unknown(stop) => ("unknown", stop.word().into()),
    }
}

/// What a step did, for people and machines.
struct Shown {
    action: String,
    hidden: Vec<String>,
    changed: Vec<(String, String)>,
}

fn shown(subject: &Subject, before: &[u32], taken: &Taken) -> Shown {
    let slots = subject.model.slots();
    let changed = (before.iter().zip(&taken.state).enumerate())
        .filter(|(_, (a, b))| a != b)
        .map(|(i, (_, b))| (slots[i].name.clone(), subject.model.value_text(i as u32, *b)))
        .collect();
    let hidden = subject.model.groups()[taken.group as usize].hidden.clone();
    Shown { action: subject.model.label_text(taken.label), hidden, changed }
}

/// The steps of evidence in the order of its path, or of its states if it branches: (from, to, step).
fn steps(subject: &Subject, evidence: &Evidence) -> Vec<(u32, u32, Shown)> {
    let order: Vec<usize> = evidence.linear().map_or_else(|| (0..evidence.steps.len()).collect(), |l| l.steps);
    let mut out = Vec::new();
    for i in order {
        let step = &evidence.steps[i];
        let mut before = evidence.states[step.from as usize].clone();
        for taken in &step.taken {
            out.push((step.from, step.to, shown(subject, &before, taken)));
            before.clone_from(&taken.state);
        }
    }
    out
}

fn as_json(path: &Path, subject: &Subject, answer: &Answer, seconds: f64) -> Value {
    let (verdict, reason) = word(&answer.verdict);
    let evidence: Vec<Value> = answer
        .evidence
        .iter()
        .flat_map(|e| steps(subject, e))
        .map(|(from, to, s)| {
            let changed: serde_json::Map<String, Value> = s.changed.into_iter().map(|(k, v)| (k, Value::String(v))).collect();
            json!({ "from": from, "to": to, "action": s.action, "hidden": s.hidden, "changed": changed })
        })
        .collect();
    json!({
        "formula": path.display().to_string(),
        "verdict": verdict,
        "reason": if reason == "complete" { answer.route.word().to_string() } else { reason },
        "equations": answer.equations,
        "states": answer.states,
        "engine": if answer.route == Route::Symbolic { "symbolic" } else { "explicit" },
        "seconds": seconds,
        "evidence": evidence,
    })
}

fn as_text(session: &Session, path: &Path, subject: &Subject, answer: &Answer, seconds: f64) -> String {
    let (verdict, reason) = word(&answer.verdict);
    let mut text = format!("{}: {verdict}", path.display());
    if reason != "complete" {
        text += &format!(" ({reason})");
    }
    if !session.common.quiet {
        text += &format!("  [{} equations, {seconds:.3} s]", answer.equations);
    }
    text.push('\n');
    let Some(evidence) = &answer.evidence else { return text };
    if evidence.steps.is_empty() || session.common.quiet {
        return text;
    }
    let linear = evidence.linear();
    let what = if evidence.verdict { "witness" } else { "counterexample" };
    let shape = match &linear {
        Some(l) if l.back_to.is_some() => "a path that ends in a loop",
        Some(_) => "a path",
        None => "a part of the transition system",
    };
    text += &format!("  {what}, {shape}:\n");
    for (n, (from, to, s)) in steps(subject, evidence).into_iter().enumerate() {
        let place = if linear.is_some() { format!("{:4}", n + 1) } else { format!("{from:4} -> {to}") };
        let hidden = if s.hidden.is_empty() { String::new() } else { format!("  (hidden: {})", s.hidden.join("|")) };
        let changed: Vec<String> = s.changed.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        text += &format!("  {place}  {}{hidden}\n", s.action);
        if session.common.verbose > 0 && !changed.is_empty() {
            text += &format!("          {}\n", changed.join(", "));
        }
    }
    if let Some(back) = linear.and_then(|l| l.back_to) {
        text += &format!("        and again from after step {back}\n");
    }
    text
}
