//! Notes on verdicts: actions of the formula that never occur, the part of a formula that fails if
//! no path shows it, unfair loops, and dead parts of a model. The criteria are in
//! docs/explanations.md.
//!
//! In: a model, a formula, its answer. Out: notes with places. Notes are computed after the
//! verdict: static reasons from the summands and operators of the model, the others from the
//! reached labels and the states of the evidence. Cost: the labels, and the transitions of these
//! states.

use crate::output::progress::group_digits;
use crate::pipeline::Session;
use mu_base::{Diagnostic, SourceMap, Span, Stage, narrow};
use mu_data::engine::{Engine, Program};
use mu_data::expr::Expr;
use mu_evidence::{Evidence, RenumberedLabels};
use mu_formula::action_names::{NamedAction, goes_on, innermost, named_actions};
use mu_formula::direct::holds_within;
use mu_formula::typed::{StateKind, TypedFormula, TypedStateFormula};
use mu_model::Model;
use mu_model::deadlock::{Absence, Dead, DeadlockExplainer};
use mu_model::step_cache::StepCache;
use mu_pbes::{Answer, Verdict};
use mu_process::labels::{ActionLabels, MultiAction};
use mu_report::deadlock::{line, place_of, sentence};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A note on an answer or a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Note {
    pub place: Span,
    /// True if something is probably wrong, false for information.
    pub warning: bool,
    pub text: String,
}

/// Limit on elementary steps when a part of a formula is evaluated on the evidence; beyond it there
/// is no note.
const MAX_EVALUATION_STEPS: u64 = 200_000;
/// Maximum number of labels or steps in a note; the others are counted.
const MAX_LISTED: usize = 4;

impl Note {
    pub(crate) fn text(&self, sources: &SourceMap) -> String {
        let word = if self.warning { "warning" } else { "note" };
        if !self.place.is_somewhere() {
            return format!("{word}: {}", self.text);
        }
        let (line, column) = sources.line_column(self.place);
        format!("{}:{line}:{column}: {word}: {}", sources.get(self.place.source).name, self.text)
    }
    pub(crate) fn json(&self, sources: &SourceMap) -> Value {
        let place = self.place.is_somewhere().then(|| sources.line_column(self.place));
        let file = self.place.is_somewhere().then(|| sources.get(self.place.source).name.clone());
        let kind = if self.warning { "warning" } else { "note" };
        json!({ "kind": kind, "text": self.text, "file": file, "line": place.map(|p| p.0), "column": place.map(|p| p.1) })
    }
}

/// Input of the notes: a model after a search.
pub(crate) struct NoteContext<'a> {
    pub model: &'a dyn Model,
    pub labels: &'a dyn ActionLabels,
    pub sources: &'a SourceMap,
    /// True if all reached labels are known; false if other processes reached some, or no search
    /// took place.
    pub whole: bool,
}

/// Computes all notes on an answer.
pub(crate) fn notes(
    context: &NoteContext,
    formula: &TypedFormula,
    answer: &Answer,
) -> Result<Vec<Note>, Diagnostic> {
    let mut out = absent(context, formula, answer)?;
    if answer.verdict == Verdict::False {
        let part = answer
            .evidence
            .as_ref()
            .map(|e| failing_conjunct(context, formula, e))
            .transpose()?
            .flatten();
        if let Some(part) = &part {
            let text =
                format!("the conjunct `{}` fails", excerpt(context.sources, part.formula.span));
            out.push(Note { place: part.formula.span, warning: false, text });
        }
        let part = part.as_ref().unwrap_or(formula);
        out.extend(explain_failing_part(context, part, answer)?);
        if let Some(evidence) = &answer.evidence
            && matches!(innermost(part).kind, StateKind::Fix { .. })
        {
            out.extend(unfair(context, evidence)?);
        }
    }
    Ok(out)
}

/// Finds actions that never occur.
fn absent(
    context: &NoteContext,
    formula: &TypedFormula,
    answer: &Answer,
) -> Result<Vec<Note>, Diagnostic> {
    let mut out = Vec::new();
    let mut standings = context.model.deadlock_explainer(&[])?;
    let mut reported = BTreeSet::new();
    let mut engine = None;
    for m in named_actions(formula) {
        let mut gone = false;
        for (action, _) in &m.acts {
            let name = &formula.actions[action.index()].name;
            let absence = match &mut standings {
                Some(standings) => {
                    standings.absence(name)?.map(|a| absence_text(&a, context, name))
                }
                None => (!has_label(context, |l| l.iter().any(|(a, _)| a == action)))
                    .then(|| "the transition system has none".into()),
            };
            let Some(why) = absence else { continue };
            gone = true;
            if reported.insert(name.clone()) {
                let place = place_of(context.sources, m.span, name);
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
        // A path that refutes the formula ends the search early: absent labels prove nothing then.
        let whole = m.must || matches!(formula.formula.kind, StateKind::May(..));
        if gone || !decides || !whole || !context.whole {
            continue;
        }
        let label_pattern = label_pattern(formula, &m, &mut engine)?;
        if has_label(context, |label| matches_pattern(label, &label_pattern)) {
            continue;
        }
        let name = &formula.actions[m.acts[0].0.index()].name;
        let text = shape_text(formula, &label_pattern);
        let similar: Vec<String> = labels_of(context)
            .filter(|(_, l)| same_names(l, &label_pattern))
            .map(|(l, _)| context.model.label_text(l))
            .collect();
        let others = match &similar[..] {
            [] => "the model has such steps, but none was reached".to_string(),
            all => format!("it saw {}", list_of_names(all)),
        };
        let place = place_of(context.sources, m.span, name);
        if reported.insert(text.clone()) {
            out.push(Note {
                place,
                warning: false,
                text: format!("the search saw no step labelled {text}; {others}"),
            });
        }
    }
    Ok(out)
}

/// A multi-action with values, where they are known.
type LabelPattern = Vec<(mu_base::ids::ActId, Vec<Option<Expr>>)>;

fn label_pattern(
    formula: &TypedFormula,
    m: &NamedAction,
    engine: &mut Option<Engine>,
) -> Result<LabelPattern, Diagnostic> {
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
    context: &'a NoteContext,
) -> impl Iterator<Item = (mu_base::ids::LabelId, std::sync::Arc<MultiAction>)> + 'a {
    (0..context.model.label_count())
        .map(mu_base::ids::LabelId::new)
        .map(|l| (l, context.labels.multi_action(l)))
}

fn has_label(context: &NoteContext, test: impl Fn(&MultiAction) -> bool) -> bool {
    labels_of(context).any(|(_, l)| test(&l))
}

fn same_names(label: &MultiAction, label_pattern: &LabelPattern) -> bool {
    label.len() == label_pattern.len() && label.iter().zip(label_pattern).all(|(a, b)| a.0 == b.0)
}

fn matches_pattern(label: &MultiAction, label_pattern: &LabelPattern) -> bool {
    // Equal names in one multi-action may be in any order: then the values are not compared.
    let doubled = label_pattern.windows(2).any(|w| w[0].0 == w[1].0);
    let agree = |a: &[Expr], b: &[Option<Expr>]| {
        a.iter().zip(b).all(|(a, b)| b.as_ref().is_none_or(|b| a == b))
    };
    same_names(label, label_pattern)
        && (doubled || label.iter().zip(label_pattern).all(|(a, b)| agree(&a.1, &b.1)))
}

fn shape_text(formula: &TypedFormula, label_pattern: &LabelPattern) -> String {
    let one = |(action, args): &(mu_base::ids::ActId, Vec<Option<Expr>>)| {
        let show = |a: &Option<Expr>| {
            a.as_ref()
                .map_or("_".to_string(), |e| mu_data::print::expression(&formula.data.signature, e))
        };
        let args: Vec<String> = args.iter().map(show).collect();
        let name = &formula.actions[action.index()].name;
        if args.is_empty() { name.clone() } else { format!("{name}({})", args.join(", ")) }
    };
    label_pattern.iter().map(one).collect::<Vec<_>>().join("|")
}

fn list_of_names(all: &[String]) -> String {
    let more = match all.len().saturating_sub(MAX_LISTED) {
        0 => String::new(),
        1 => " and 1 other".into(),
        n => format!(" and {n} others"),
    };
    format!("{}{more}", all[..all.len().min(MAX_LISTED)].join(", "))
}

fn absence_text(absence: &Absence, context: &NoteContext, name: &str) -> String {
    let names = context.model.components();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let at = |place: Span| {
        line(context.sources, place_of(context.sources, place, name))
            .map(|l| format!(" in line {l}"))
            .unwrap_or_default()
    };
    match absence {
        Absence::Hidden(place) => format!("it is hidden{}", at(*place)),
        Absence::Renamed(place, to) => format!("it is renamed to {to}{}", at(*place)),
        Absence::Stopped(obstacles) => {
            let all: Vec<String> =
                obstacles.iter().map(|o| sentence(o, &names, context.sources)).collect();
            if all.is_empty() { "it is blocked".into() } else { all.join("; ") }
        }
        Absence::Unreachable(place) => format!("its occurrence{} is unreachable", at(*place)),
        Absence::NoComponent => "no component performs it".into(),
    }
}

/// Returns the distinct labels of the transitions of a state.
fn steps_of(
    evaluated: &mut StepCache,
    model: &dyn Model,
    state: &[u32],
) -> Result<Vec<String>, Diagnostic> {
    let mut out = BTreeSet::new();
    for group in 0..model.groups().len() {
        let labels = evaluated.steps(narrow::index(group), state)?.labels.clone();
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

/// Maximum length of an excerpt of a formula, in characters; longer ones are cut.
const MAX_EXCERPT: usize = 120;

/// Returns the text of a span in one line, cut to a readable length, with unclosed parentheses
/// closed.
pub(crate) fn excerpt(sources: &SourceMap, span: Span) -> String {
    let own = sources.text(span);
    let open = own.matches('(').count().saturating_sub(own.matches(')').count());
    let text = own.split_whitespace().collect::<Vec<_>>().join(" ") + &")".repeat(open);
    if text.chars().count() <= MAX_EXCERPT {
        text
    } else {
        text.chars().take(MAX_EXCERPT).chain(['…']).collect()
    }
}

/// Finds the top-level conjunct that the evidence proves false in the model. The evidence refutes
/// one conjunct on its transitions alone. Other conjuncts with diamonds may also be false on it,
/// because the evidence lacks transitions of the model. Conjuncts without diamonds that are false
/// on it are false in the model.
fn failing_conjunct(
    context: &NoteContext,
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
    let (lts, behind) = evidence.lts(context.model);
    let labels = RenumberedLabels { labels: context.labels, behind: &behind };
    let mut fail = Vec::new();
    for part in parts {
        let part = TypedFormula { formula: part.clone(), ..formula.clone() };
        match holds_within(&part, &lts, &labels, MAX_EVALUATION_STEPS) {
            Ok(Some(true)) => {}
            Ok(Some(false)) => fail.push(part),
            // It takes too long, or a condition has no value: the conjunct is unknown.
            Ok(None) => return Ok(None),
            Err(d) if d.stage == Stage::Data => return Ok(None),
            Err(d) => return Err(d),
        }
    }
    let at =
        if fail.len() == 1 { Some(0) } else { fail.iter().position(|p| !has_diamond(&p.formula)) };
    Ok(at.map(|at| fail.swap_remove(at)))
}

/// True if the formula in positive normal form has a diamond `<..>`.
fn has_diamond(formula: &TypedStateFormula) -> bool {
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

/// Finds the part of a formula that fails, if the evidence alone does not show it.
fn explain_failing_part(
    context: &NoteContext,
    formula: &TypedFormula,
    answer: &Answer,
) -> Result<Vec<Note>, Diagnostic> {
    let part: &TypedStateFormula = innermost(formula);
    let text = |s: &TypedStateFormula| excerpt(context.sources, s.span);
    let is_safety = matches!(part.kind, StateKind::False | StateKind::Val(_));
    let mut evaluated = StepCache::new(context.model);
    let possible = |evaluated: &mut StepCache, state: &[u32]| {
        let steps = steps_of(evaluated, context.model, state)?;
        Ok::<_, Diagnostic>(if steps.is_empty() {
            "no step is possible".to_string()
        } else {
            format!("possible: {}", list_of_names(&steps))
        })
    };
    match &part.kind {
        _ if is_safety => Ok(Vec::new()),
        // No path shows the absence of a path.
        StateKind::May(_, body) if matches!(formula.formula.kind, StateKind::May(..)) => {
            let steps = possible(&mut evaluated, &context.model.initial())?;
            let label_pattern = match body.kind {
                StateKind::True => "no path matches it".to_string(),
                _ => format!("no matching path leads to a state where `{}` holds", text(body)),
            };
            let place = if matches!(body.kind, StateKind::True) { part.span } else { body.span };
            let n = answer.states;
            let states =
                if n == 1 { "1 reached state".to_string() } else { format!("{n} reached states") };
            Ok(vec![Note {
                place,
                warning: false,
                text: format!("{label_pattern}, in {states}; at the start {steps}"),
            }])
        }
        // No transition is needed to refute it.
        _ if answer.evidence.as_ref().is_none_or(|e| e.steps.is_empty()) => {
            let steps = possible(&mut evaluated, &context.model.initial())?;
            Ok(vec![Note {
                place: part.span,
                warning: false,
                text: format!("`{}` fails at the start; there {steps}", text(part)),
            }])
        }
        StateKind::Fix { .. } => Ok(Vec::new()),
        // A path leads to the state where it fails.
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

/// Finds steps that are possible again and again in a loop but never taken.
fn unfair(context: &NoteContext, evidence: &Evidence) -> Result<Vec<Note>, Diagnostic> {
    let Some(path) = evidence.linear() else { return Ok(Vec::new()) };
    let Some(back) = path.back_to else { return Ok(Vec::new()) };
    let mut evaluated = StepCache::new(context.model);
    let loop_steps = &path.steps[back..];
    let taken: BTreeSet<String> =
        loop_steps.iter().map(|i| context.model.label_text(evidence.steps[*i].label)).collect();
    let mut counts: std::collections::BTreeMap<String, usize> = Default::default();
    for i in loop_steps {
        let state = &evidence.states[evidence.steps[*i].from as usize];
        let mut here = BTreeSet::new();
        for group in 0..context.model.groups().len() {
            let labels = evaluated.steps(narrow::index(group), state)?.labels.clone();
            here.extend(labels.into_iter().map(|l| context.model.label_text(l)));
        }
        here.into_iter()
            .filter(|l| !taken.contains(l) && l != "tau")
            .for_each(|l| *counts.entry(l).or_default() += 1);
    }
    let n = loop_steps.len();
    let always: Vec<String> = counts.iter().filter(|c| *c.1 == n).map(|c| c.0.clone()).collect();
    let sometimes: Vec<String> = counts.keys().cloned().collect();
    let verb = |all: &[String]| if all.len() > 1 { "are" } else { "is" };
    let text = match (&always[..], &sometimes[..]) {
        ([], []) => return Ok(Vec::new()),
        ([], some) => format!("{} {} possible again and again", list_of_names(some), verb(some)),
        (all, _) => format!("{} {} possible all the time", list_of_names(all), verb(all)),
    };
    let text = format!(
        "the loop may be unfair: in it {text} and never done; docs/explanations.md shows formulas for fair paths only"
    );
    Ok(vec![Note { place: Span::default(), warning: false, text }])
}

/// Finds actions and operators of a model that can never have an effect.
pub(crate) fn dead(model: &dyn Model, sources: &SourceMap) -> Result<Vec<Note>, Diagnostic> {
    let Some(mut standings): Option<Box<dyn DeadlockExplainer>> = model.deadlock_explainer(&[])?
    else {
        return Ok(Vec::new());
    };
    let names = model.components();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = |list: &[u32]| {
        let all: Vec<String> =
            list.iter().map(|c| names.get(*c as usize).unwrap_or(&"?").to_string()).collect();
        list_of_names(&all)
    };
    let mut out = Vec::new();
    for entry in standings.dead()? {
        out.push(match entry {
            Dead::Allow { place, below } => {
                let text = format!(
                    "this `allow` blocks everything: the components below it do {}",
                    list_of_names(&below)
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

/// Finds reached labels that contain a term without a value.
fn valueless(model: &dyn Model) -> Vec<Note> {
    let one = |v: mu_model::UndefinedLabel| {
        let text = format!(
            "in the label {} no equation defines `{}`: the term is treated as a value of its own",
            v.action, v.term
        );
        Note { place: v.place, warning: true, text }
    };
    model.undefined_labels().into_iter().map(one).collect()
}

/// Minimum number of values of a parameter that is reported as growing.
const MIN_GROWTH: u64 = 1000;

/// Reports the parameter with the most values when a limit ended a search: it may grow without
/// bound. Prints it and returns it as JSON.
pub(crate) fn report_growth(session: &Session, model: &dyn Model, values: &[u64]) -> Vec<Value> {
    let data = model
        .slots()
        .iter()
        .enumerate()
        .zip(values)
        .filter(|((_, info), v)| !info.control && **v >= MIN_GROWTH);
    let Some(((_, info), most)) = data.max_by_key(|(_, v)| **v) else { return Vec::new() };
    let components = model.components();
    let of = match components.get(info.component as usize) {
        Some(component) if components.len() > 1 => format!(" of {component}"),
        _ => String::new(),
    };
    let text = format!(
        "`{}`{of} has the most values so far, {}; if it grows without bound, so does the number of states",
        info.name,
        group_digits(*most)
    );
    print_notes(
        &session.sources,
        session.common.quiet,
        &[Note { place: Span::default(), warning: true, text }],
    )
}

/// Prints notes, unless the run is quiet, and returns them as JSON.
fn print_notes(sources: &SourceMap, quiet: bool, notes: &[Note]) -> Vec<Value> {
    for note in notes.iter().filter(|_| !quiet) {
        eprintln!("{}", note.text(sources));
    }
    notes.iter().map(|n| n.json(sources)).collect()
}

/// Prints warnings about the text of a model, and returns them as JSON.
pub(crate) fn warn(sources: &SourceMap, quiet: bool, warnings: &[(Span, String)]) -> Vec<Value> {
    let note =
        |(place, text): &(Span, String)| Note { place: *place, warning: true, text: text.clone() };
    print_notes(sources, quiet, &warnings.iter().map(note).collect::<Vec<_>>())
}

/// Reports dead parts of a model and reached labels without values: prints them and returns them as
/// JSON. Call it after the search.
pub(crate) fn report_flaws(session: &Session, model: &dyn Model) -> Result<Vec<Value>, Diagnostic> {
    let mut all = dead(model, &session.sources)?;
    all.extend(valueless(model));
    Ok(session
        .warnings
        .iter()
        .cloned()
        .chain(print_notes(&session.sources, session.common.quiet, &all))
        .collect())
}
