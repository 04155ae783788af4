//! What is said besides a verdict: actions of the formula that never happen, the part of a formula
//! that fails where no path shows it, loops that are unfair; and what of a model can never happen.
//! The criteria are in docs/explanations.md.
//!
//! In: a model, a formula, its answer. Out: notes with places. All of it is computed after the
//! verdict: static reasons from the summands and operators of the model, the rest from labels that
//! were met and from the states of the evidence. Cost: the labels and the steps of these states.

use super::pipeline::Session;
use super::progress::grouped;
use mu_base::{Diagnostic, SourceMap, Span, Stage};
use mu_data::engine::{Engine, Program};
use mu_data::expr::Expr;
use mu_evidence::{Evidence, Renumbered};
use mu_formula::action_names::{Mentioned, goes_on, innermost, mentioned};
use mu_formula::direct::holds_within;
use mu_formula::typed::{State, StateKind, TypedFormula};
use mu_labels::{ActionLabels, MultiAction};
use mu_model::Model;
use mu_model::deadlock::{Absence, Dead, DeadlockExplainer};
use mu_model::step_cache::StepCache;
use mu_pbes::{Answer, Verdict};
use mu_report::standing::{line, place_of, sentence};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A remark on an answer or a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Note {
    pub place: Span,
    /// Whether something is wrong, rather than good to know.
    pub warning: bool,
    pub text: String,
}

/// Elementary steps that the evaluation of a part of a formula on the evidence may take.
const FUEL: u64 = 200_000;
/// Most labels or steps that a note lists.
const SHOWN: usize = 4;

impl Note {
    pub(super) fn text(&self, sources: &SourceMap) -> String {
        let word = if self.warning { "warning" } else { "note" };
        if !self.place.is_somewhere() {
            return format!("{word}: {}", self.text);
        }
        let (line, column) = sources.line_column(self.place);
        format!("{}:{line}:{column}: {word}: {}", sources.get(self.place.source).name, self.text)
    }
    pub(super) fn json(&self, sources: &SourceMap) -> Value {
        let place = self.place.is_somewhere().then(|| sources.line_column(self.place));
        let file = self.place.is_somewhere().then(|| sources.get(self.place.source).name.clone());
        let kind = if self.warning { "warning" } else { "note" };
        json!({ "kind": kind, "text": self.text, "file": file, "line": place.map(|p| p.0), "column": place.map(|p| p.1) })
    }
}

/// A model as notes see it.
pub(super) struct Seen<'a> {
    pub model: &'a dyn Model,
    pub labels: &'a dyn ActionLabels,
    pub sources: &'a SourceMap,
    /// Whether the labels that were met are all here: not where other processes met some.
    pub whole: bool,
}

/// All notes on an answer.
pub(super) fn notes(
    seen: &Seen,
    formula: &TypedFormula,
    answer: &Answer,
) -> Result<Vec<Note>, Diagnostic> {
    let mut out = absent(seen, formula, answer)?;
    if answer.verdict == Verdict::False {
        let part = answer
            .evidence
            .as_ref()
            .map(|e| failing_conjunct(seen, formula, e))
            .transpose()?
            .flatten();
        if let Some(part) = &part {
            let text = format!(
                "of the parts that `&&` joins, `{}` fails",
                excerpt(seen.sources, part.formula.span)
            );
            out.push(Note { place: part.formula.span, warning: false, text });
        }
        let part = part.as_ref().unwrap_or(formula);
        out.extend(failing(seen, part, answer)?);
        if let Some(evidence) = &answer.evidence
            && matches!(innermost(part).kind, StateKind::Fix { .. })
        {
            out.extend(unfair(seen, evidence)?);
        }
    }
    Ok(out)
}

/// Actions that never happen.
fn absent(seen: &Seen, formula: &TypedFormula, answer: &Answer) -> Result<Vec<Note>, Diagnostic> {
    let mut out = Vec::new();
    let mut standings = seen.model.deadlock_explainer(&[])?;
    let mut told = BTreeSet::new();
    let mut engine = None;
    for m in mentioned(formula) {
        let mut gone = false;
        for (action, _) in &m.acts {
            let name = &formula.actions[action.index()].name;
            let absence = match &mut standings {
                Some(standings) => standings.absence(name)?.map(|a| absence_text(&a, seen, name)),
                None => (!has_label(seen, |l| l.iter().any(|(a, _)| a == action)))
                    .then(|| "the transition system has none".into()),
            };
            let Some(why) = absence else { continue };
            gone = true;
            if told.insert(name.clone()) {
                let place = place_of(seen.sources, m.span, name);
                out.push(Note {
                    place,
                    warning: true,
                    text: format!("no step is ever labelled {name}: {why}"),
                });
            }
        }
        let decides = m.positive
            && (m.must == (answer.verdict == Verdict::True))
            && !matches!(answer.verdict, Verdict::Unknown(_));
        // A path that shows a formula false ends the search: what it did not meet says nothing.
        let whole = m.must || matches!(formula.formula.kind, StateKind::May(..));
        if gone || !decides || !whole || !seen.whole {
            continue;
        }
        let wanted = wanted(formula, &m, &mut engine)?;
        if has_label(seen, |label| fits(label, &wanted)) {
            continue;
        }
        let name = &formula.actions[m.acts[0].0.index()].name;
        let text = shape_text(formula, &wanted);
        let near: Vec<String> = labels_of(seen)
            .filter(|(_, l)| same_names(l, &wanted))
            .map(|(l, _)| seen.model.label_text(l))
            .collect();
        let others = match &near[..] {
            [] => "the model has such steps, but none was reached".to_string(),
            all => format!("met were {}", shortened(all)),
        };
        let place = place_of(seen.sources, m.span, name);
        if told.insert(text.clone()) {
            out.push(Note {
                place,
                warning: false,
                text: format!("no step that was met is labelled {text}: {others}"),
            });
        }
    }
    Ok(out)
}

/// A multi-action with values, where they are known.
type Wanted = Vec<(mu_base::ids::ActId, Vec<Option<Expr>>)>;

fn wanted(
    formula: &TypedFormula,
    m: &Mentioned,
    engine: &mut Option<Engine>,
) -> Result<Wanted, Diagnostic> {
    let mut out = Vec::new();
    for (action, args) in &m.acts {
        let sorts = &formula.actions[action.index()].sorts;
        let mut values = Vec::new();
        for (arg, sort) in args.iter().zip(sorts) {
            if !arg.is_closed() {
                values.push(None);
                continue;
            }
            if engine.is_none() {
                *engine = Some(Engine::new(Program::compile(&formula.data)?));
            }
            let engine = engine.as_mut().expect("made above");
            let value = engine.from_expr(arg)?;
            values.push(value.is_data().then(|| engine.to_expr_at(&value, *sort)));
        }
        out.push((*action, values));
    }
    Ok(out)
}

fn labels_of<'a>(
    seen: &'a Seen,
) -> impl Iterator<Item = (mu_base::ids::LabelId, std::sync::Arc<MultiAction>)> + 'a {
    (0..seen.model.label_count())
        .map(mu_base::ids::LabelId::new)
        .map(|l| (l, seen.labels.multi_action(l)))
}

fn has_label(seen: &Seen, test: impl Fn(&MultiAction) -> bool) -> bool {
    labels_of(seen).any(|(_, l)| test(&l))
}

fn same_names(label: &MultiAction, wanted: &Wanted) -> bool {
    label.len() == wanted.len() && label.iter().zip(wanted).all(|(a, b)| a.0 == b.0)
}

fn fits(label: &MultiAction, wanted: &Wanted) -> bool {
    // Equal names in one multi-action may be in any order: then the values are not compared.
    let doubled = wanted.windows(2).any(|w| w[0].0 == w[1].0);
    let agree = |a: &[Expr], b: &[Option<Expr>]| {
        a.iter().zip(b).all(|(a, b)| b.as_ref().is_none_or(|b| a == b))
    };
    same_names(label, wanted)
        && (doubled || label.iter().zip(wanted).all(|(a, b)| agree(&a.1, &b.1)))
}

fn shape_text(formula: &TypedFormula, wanted: &Wanted) -> String {
    let one = |(action, args): &(mu_base::ids::ActId, Vec<Option<Expr>>)| {
        let show = |a: &Option<Expr>| {
            a.as_ref()
                .map_or("_".to_string(), |e| mu_data::print::expression(&formula.data.signature, e))
        };
        let args: Vec<String> = args.iter().map(show).collect();
        let name = &formula.actions[action.index()].name;
        if args.is_empty() { name.clone() } else { format!("{name}({})", args.join(", ")) }
    };
    wanted.iter().map(one).collect::<Vec<_>>().join("|")
}

fn shortened(all: &[String]) -> String {
    let more = match all.len().saturating_sub(SHOWN) {
        0 => String::new(),
        1 => " and 1 other".into(),
        n => format!(" and {n} others"),
    };
    format!("{}{more}", all[..all.len().min(SHOWN)].join(", "))
}

fn absence_text(absence: &Absence, seen: &Seen, name: &str) -> String {
    let names = seen.model.components();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let at = |place: Span| {
        line(seen.sources, place_of(seen.sources, place, name))
            .map(|l| format!(" in line {l}"))
            .unwrap_or_default()
    };
    match absence {
        Absence::Hidden(place) => format!("it is hidden{}", at(*place)),
        Absence::Renamed(place, to) => format!("it is renamed to {to}{}", at(*place)),
        Absence::Stopped(obstacles) => {
            let all: Vec<String> =
                obstacles.iter().map(|o| sentence(o, &names, seen.sources)).collect();
            if all.is_empty() { "nothing comes of it".into() } else { all.join("; ") }
        }
        Absence::Unreachable(place) => format!("what is written{} is never reached", at(*place)),
        Absence::NoComponent => "no component does it".into(),
    }
}

/// The steps of a state as texts, each once.
fn steps_of(
    evaluated: &mut StepCache,
    model: &dyn Model,
    state: &[u32],
) -> Result<Vec<String>, Diagnostic> {
    let mut out = BTreeSet::new();
    for group in 0..model.groups().len() {
        let labels = evaluated.steps(group as u32, state)?.labels.clone();
        for label in labels {
            let hidden = &model.groups()[group].hidden;
            let tau = label == mu_base::ids::LabelId::TAU && !hidden.is_empty();
            out.insert(if tau {
                format!("tau (hidden: {})", hidden.join("|"))
            } else {
                model.label_text(label)
            });
        }
    }
    Ok(out.into_iter().collect())
}

/// Longest excerpt of a formula in a line of text, in characters.
const EXCERPT: usize = 120;

/// The text at a place in one line, with the parentheses closed that are open in it, cut to a
/// readable length.
pub(super) fn excerpt(sources: &SourceMap, span: Span) -> String {
    let own = sources.text(span);
    let open = own.matches('(').count().saturating_sub(own.matches(')').count());
    let text = own.split_whitespace().collect::<Vec<_>>().join(" ") + &")".repeat(open);
    if text.chars().count() <= EXCERPT {
        text
    } else {
        text.chars().take(EXCERPT).chain(['…']).collect()
    }
}

/// The part among those that `&&` joins at the top of which the evidence shows that it is false in
/// the model. The evidence is made for such a part, which is false on its steps alone. So may
/// others be that ask for steps, since it has no others; those that ask for none are false in the
/// model then.
fn failing_conjunct(
    seen: &Seen,
    formula: &TypedFormula,
    evidence: &Evidence,
) -> Result<Option<TypedFormula>, Diagnostic> {
    let (mut open, mut parts) = (vec![&formula.formula], Vec::new());
    while let Some(state) = open.pop() {
        match &state.kind {
            StateKind::And(a, b) => open.extend([&**b, &**a]),
            _ => parts.push(state),
        }
    }
    if parts.len() < 2 {
        return Ok(None);
    }
    let (lts, behind) = evidence.lts(seen.model);
    let labels = Renumbered { labels: seen.labels, behind: &behind };
    let mut fail = Vec::new();
    for part in parts {
        let part = TypedFormula { formula: part.clone(), ..formula.clone() };
        match holds_within(&part, &lts, &labels, FUEL) {
            Ok(Some(true)) => {}
            Ok(Some(false)) => fail.push(part),
            // It takes long, or a condition has no value: then it is not known which part it is.
            Ok(None) => return Ok(None),
            Err(d) if d.stage == Stage::Data => return Ok(None),
            Err(d) => return Err(d),
        }
    }
    let at = if fail.len() == 1 {
        Some(0)
    } else {
        fail.iter().position(|p| !asks_for_steps(&p.formula))
    };
    Ok(at.map(|at| fail.swap_remove(at)))
}

/// Whether a formula has `<..>` where negations are pushed inwards.
fn asks_for_steps(formula: &State) -> bool {
    let mut open = vec![(formula, true)];
    while let Some((s, positive)) = open.pop() {
        match &s.kind {
            StateKind::True | StateKind::False | StateKind::Val(_) | StateKind::Var(..) => {}
            StateKind::Must(..) if !positive => return true,
            StateKind::May(..) if positive => return true,
            StateKind::Not(a) => open.push((a, !positive)),
            StateKind::And(a, b) | StateKind::Or(a, b) => {
                open.extend([(&**a, positive), (&**b, positive)])
            }
            StateKind::Implies(a, b) => open.extend([(&**a, !positive), (&**b, positive)]),
            StateKind::Forall(_, a)
            | StateKind::Exists(_, a)
            | StateKind::Fix { body: a, .. }
            | StateKind::Must(_, a)
            | StateKind::May(_, a) => open.push((a, positive)),
        }
    }
    false
}

/// The part of a formula that fails where the evidence alone does not show it.
fn failing(seen: &Seen, formula: &TypedFormula, answer: &Answer) -> Result<Vec<Note>, Diagnostic> {
    let part: &State = innermost(formula);
    let text = |s: &State| excerpt(seen.sources, s.span);
    let is_safety = matches!(part.kind, StateKind::False | StateKind::Val(_));
    let mut evaluated = StepCache::new(seen.model);
    let possible = |evaluated: &mut StepCache, state: &[u32]| {
        let steps = steps_of(evaluated, seen.model, state)?;
        Ok::<_, Diagnostic>(if steps.is_empty() {
            "no step is possible".to_string()
        } else {
            format!("possible: {}", shortened(&steps))
        })
    };
    match &part.kind {
        _ if is_safety => Ok(Vec::new()),
        // No path shows that there is none.
        StateKind::May(_, body) if matches!(formula.formula.kind, StateKind::May(..)) => {
            let steps = possible(&mut evaluated, &seen.model.initial())?;
            let wanted = match body.kind {
                StateKind::True => "no path does what it asks for".to_string(),
                _ => format!("no path of its form leads to a state where `{}` holds", text(body)),
            };
            let place = if matches!(body.kind, StateKind::True) { part.span } else { body.span };
            let n = answer.states;
            let states = if n == 1 {
                "1 state that was met".to_string()
            } else {
                format!("{n} states that were met")
            };
            Ok(vec![Note {
                place,
                warning: false,
                text: format!("{wanted}, in {states}; at the start {steps}"),
            }])
        }
        // No step is needed to show it.
        _ if answer.evidence.as_ref().is_none_or(|e| e.steps.is_empty()) => {
            let steps = possible(&mut evaluated, &seen.model.initial())?;
            Ok(vec![Note {
                place: part.span,
                warning: false,
                text: format!("`{}` fails at the start; there {steps}", text(part)),
            }])
        }
        StateKind::Fix { .. } => Ok(Vec::new()),
        // A path led to where it fails.
        _ => {
            let Some(evidence) = &answer.evidence else { return Ok(Vec::new()) };
            let Some(path) = evidence.linear().filter(|p| p.back_to.is_none() && !goes_on(part))
            else {
                return Ok(Vec::new());
            };
            let n = path.steps.len();
            let last = path.steps.last().map_or(0, |i| evidence.steps[*i].to as usize);
            let place =
                if n == 1 { "after 1 step".to_string() } else { format!("after {n} steps") };
            let steps = possible(&mut evaluated, &evidence.states[last])?;
            Ok(vec![Note {
                place: part.span,
                warning: false,
                text: format!("`{}` fails {place}; there {steps}", text(part)),
            }])
        }
    }
}

/// A loop in which something is possible again and again and is never done.
fn unfair(seen: &Seen, evidence: &Evidence) -> Result<Vec<Note>, Diagnostic> {
    let Some(path) = evidence.linear() else { return Ok(Vec::new()) };
    let Some(back) = path.back_to else { return Ok(Vec::new()) };
    let mut evaluated = StepCache::new(seen.model);
    let around = &path.steps[back..];
    let taken: BTreeSet<String> =
        around.iter().map(|i| seen.model.label_text(evidence.steps[*i].label)).collect();
    let mut counts: std::collections::BTreeMap<String, usize> = Default::default();
    for i in around {
        let state = &evidence.states[evidence.steps[*i].from as usize];
        let mut here = BTreeSet::new();
        for group in 0..seen.model.groups().len() {
            let labels = evaluated.steps(group as u32, state)?.labels.clone();
            here.extend(labels.into_iter().map(|l| seen.model.label_text(l)));
        }
        here.into_iter()
            .filter(|l| !taken.contains(l) && l != "tau")
            .for_each(|l| *counts.entry(l).or_default() += 1);
    }
    let n = around.len();
    let always: Vec<String> = counts.iter().filter(|c| *c.1 == n).map(|c| c.0.clone()).collect();
    let sometimes: Vec<String> = counts.keys().cloned().collect();
    let verb = |all: &[String]| if all.len() > 1 { "are" } else { "is" };
    let text = match (&always[..], &sometimes[..]) {
        ([], []) => return Ok(Vec::new()),
        ([], some) => format!("{} {} possible again and again", shortened(some), verb(some)),
        (all, _) => format!("{} {} possible all the time", shortened(all), verb(all)),
    };
    let text = format!(
        "the loop may be unfair: in it {text} and never done; docs/explanations.md has formulas that ask for fair paths only"
    );
    Ok(vec![Note { place: Span::default(), warning: false, text }])
}

/// What of a model can never happen.
pub(super) fn dead(model: &dyn Model, sources: &SourceMap) -> Result<Vec<Note>, Diagnostic> {
    let Some(mut standings): Option<Box<dyn DeadlockExplainer>> = model.deadlock_explainer(&[])?
    else {
        return Ok(Vec::new());
    };
    let names = model.components();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = |list: &[u32]| {
        let all: Vec<String> =
            list.iter().map(|c| names.get(*c as usize).unwrap_or(&"?").to_string()).collect();
        shortened(&all)
    };
    let mut out = Vec::new();
    for entry in standings.dead()? {
        out.push(match entry {
            Dead::Allow { place, below } => {
                let text = format!(
                    "this `allow` lets nothing through: the components below it do {}",
                    shortened(&below)
                );
                Note { place, warning: true, text }
            }
            Dead::Action { action, place, components, obstacles, stuck } => {
                let why: Vec<String> =
                    obstacles.iter().map(|o| sentence(o, &names, sources)).collect();
                let verb = if stuck.len() > 1 { "are" } else { "is" };
                let stuck = if stuck.is_empty() {
                    String::new()
                } else {
                    format!("; so {} {verb} stuck from the start", of(&stuck))
                };
                let who = if names.len() > 1 {
                    format!(" of {}", of(&components))
                } else {
                    String::new()
                };
                Note {
                    place,
                    warning: true,
                    text: format!("{action}{who} never happens: {}{stuck}", why.join("; ")),
                }
            }
        });
    }
    out.sort();
    Ok(out)
}

/// Labels that were met in which a term has no value.
fn valueless(model: &dyn Model) -> Vec<Note> {
    let one = |v: mu_model::UndefinedLabel| {
        let text = format!(
            "in the label {} nothing says what `{}` is: it stands there as it is, a value of its own",
            v.action, v.term
        );
        Note { place: v.place, warning: true, text }
    };
    model.undefined_labels().into_iter().map(one).collect()
}

/// Least number of values of a parameter that grows.
const GROWN: u64 = 1000;

/// Which parameter has had the most values when a limit ended a search: perhaps it grows without
/// bound. Printed, and as JSON.
pub(super) fn tell_growth(session: &Session, model: &dyn Model, values: &[u64]) -> Vec<Value> {
    let data = model
        .slots()
        .iter()
        .enumerate()
        .zip(values)
        .filter(|((_, info), v)| !info.control && **v >= GROWN);
    let Some(((_, info), most)) = data.max_by_key(|(_, v)| **v) else { return Vec::new() };
    let components = model.components();
    let of = match components.get(info.component as usize) {
        Some(component) if components.len() > 1 => format!(" of {component}"),
        _ => String::new(),
    };
    let text = format!(
        "`{}`{of} has had {} values: is it to grow without bound?",
        info.name,
        grouped(*most)
    );
    tell(session, &[Note { place: Span::default(), warning: true, text }])
}

/// Prints notes; the same as JSON.
fn tell(session: &Session, notes: &[Note]) -> Vec<Value> {
    for note in notes.iter().filter(|_| !session.common.quiet) {
        eprintln!("{}", note.text(&session.sources));
    }
    notes.iter().map(|n| n.json(&session.sources)).collect()
}

/// Prints warnings about the text of a model, and returns them as JSON.
pub(super) fn warn(session: &Session, warnings: &[(Span, String)]) -> Vec<Value> {
    let note =
        |(place, text): &(Span, String)| Note { place: *place, warning: true, text: text.clone() };
    tell(session, &warnings.iter().map(note).collect::<Vec<_>>())
}

/// Says what of a model can never happen, and which labels that were met have no value; the same
/// for machines. To be asked for after the search.
pub(super) fn tell_flaws(session: &Session, model: &dyn Model) -> Result<Vec<Value>, Diagnostic> {
    let mut all = dead(model, &session.sources)?;
    all.extend(valueless(model));
    Ok(session.warnings.iter().cloned().chain(tell(session, &all)).collect())
}
