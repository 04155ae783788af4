//! `compare`: whether two systems are equivalent, or one refines the other; if not, a trace or formula that distinguishes them.
//!
//! The difference is confirmed on the systems as given before it is shown: a trace is followed state by state, a formula is checked
//! on both by the model checker. A difference that cannot be confirmed is an internal error.

use super::args::{CompareArgs, Format, Reduce};
use super::files::{transition_system, write_text};
use super::lts::unknown;
use super::output;
use super::pipeline::Session;
use super::print;
use mu_base::host::Instant;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage};
use mu_formula::typecheck::check_formula;
use mu_labels::inferred::InferredLabels;
use mu_lts::compare::disjoint_union;
use mu_lts::distinguish::{Difference, distinguish};
use mu_lts::preorder::{Preorder, excess};
use mu_lts::reduce::Equivalence;
use mu_lts::{Lts, relabel, trace};
use mu_model::from_lts::LtsModel;
use mu_pbes::{Options, Verdict, check};
use serde_json::{Value, json};
use std::sync::Arc;

/// What is asked.
#[derive(Clone, Copy)]
enum Question {
    Equivalent(Equivalence),
    Refines(Preorder),
}

impl Question {
    fn weak(self) -> bool {
        matches!(self, Question::Equivalent(Equivalence::WeakTrace) | Question::Refines(Preorder::WeakTrace))
    }
}

pub(super) fn run(session: &mut Session, args: &CompareArgs) -> Result<u8, Diagnostic> {
    if args.equivalence == Reduce::Probabilistic && args.preorder.is_none() {
        return super::chance::compare(session, args);
    }
    let start = Instant::now();
    let relabel = args.relabelling.relabel()?;
    let (a, b) = match (transition_system(session, &args.a)?, transition_system(session, &args.b)?) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(stop), _) | (_, Err(stop)) => return unknown(session, &stop),
    };
    let [a, b] = relabel.apply([a, b])?;
    let abstracts = match args.preorder {
        Some(preorder) => Preorder::from(preorder).abstracts(),
        None => args.equivalence.equivalence().abstracts(),
    };
    super::lts::note_internal(session, &[&a, &b], abstracts);
    let (a, b) = (relabel::in_order(a), relabel::in_order(b));
    super::output::stage("comparing");
    let threads = session.threads();
    let question = match args.preorder {
        Some(p) => Question::Refines(p.into()),
        None => Question::Equivalent(args.equivalence.equivalence()),
    };
    let ask = |a: &Lts, b: &Lts| match question {
        Question::Equivalent(e) => Ok(distinguish(a, b, e, threads)),
        Question::Refines(p) => excess(a, b, p, threads, &session.budget),
    };
    let difference = match ask(&a, &b) {
        Ok(difference) => difference,
        Err(stop) => return unknown(session, &stop),
    };
    session.say(format!("compared in {:.3} s", start.elapsed().as_secs_f64()));
    let confirmed = match &difference {
        Some(d) => confirm(session, d, (&a, &b), question, &ask)?,
        None => false,
    };
    if let (Some(path), Some(formula)) = (&args.out, difference.as_ref().and_then(|d| formula_text(d, question.weak()))) {
        write_text(path, &format!("{formula}\n"))?;
        if let Some(label) = foreign_label(&[&a, &b], &formula) {
            eprintln!(
                "warning: the label `{label}` is not an action of mCRL2, so the formula in {} cannot be checked; `--rename` gives labels \
                 other names",
                path.display()
            );
        }
    }
    match session.common.format {
        Format::Json => {
            let of = |path: &std::path::Path, lts: &Lts| json!({ "file": path.display().to_string(), "states": lts.state_count(), "transitions": lts.transition_count() });
            let (equivalence, preorder) = match question {
                Question::Equivalent(e) => (Some(e.name()), None),
                Question::Refines(p) => (None, Some(p.name())),
            };
            let object = json!({
                "equivalence": equivalence,
                "preorder": preorder,
                "verdict": difference.is_none().to_string(),
                "difference": difference.as_ref().map(|d| as_json(d, question)),
                "confirmed": confirmed,
                "a": of(&args.a, &a),
                "b": of(&args.b, &b),
                "seconds": start.elapsed().as_secs_f64(),
                "peak_memory_bytes": session.peak_memory(),
                "stop": "complete",
            });
            output::object(object)?;
        }
        Format::Text => print(&as_text(args, question, difference.as_ref(), confirmed))?,
    }
    Ok(u8::from(difference.is_some()))
}

/// A formula that holds in one system and not in the other; nothing if there is none of a reasonable length.
fn formula_text(difference: &Difference, weak: bool) -> Option<String> {
    match difference {
        Difference::Formula(text) => Some(text.clone()),
        Difference::Trace { labels, .. } if weak => {
            Some(format!("{}true", labels.iter().map(|l| format!("<tau* . {l}>")).collect::<String>()))
        }
        Difference::Trace { labels, .. } => Some(format!("{}true", labels.iter().map(|l| format!("<{l}>")).collect::<String>())),
        Difference::TooLong => None,
    }
}

/// Finds a label in a formula that is not a multi-action of mCRL2.
fn foreign_label<'a>(systems: &[&'a Lts], formula: &str) -> Option<&'a str> {
    let labels = systems.iter().flat_map(|lts| lts.table.texts.iter().skip(1)).map(String::as_str);
    let mut written = labels.filter(|l| [format!("<{l}>"), format!("[{l}]"), format!(". {l}")].iter().any(|part| formula.contains(part)));
    written.find(|label| mu_syntax::parse_multi_action(Default::default(), label).is_err())
}

/// Longest formula that is confirmed, in bytes: the checker takes longer for deep formulas than the comparison.
const LONGEST_CONFIRMED: usize = 1 << 14;

/// Confirms a difference; false if it is too long, or a limit comes before the checker's verdict.
fn confirm<E>(
    session: &Session,
    difference: &Difference,
    (a, b): (&Lts, &Lts),
    question: Question,
    ask: &dyn Fn(&Lts, &Lts) -> Result<Option<Difference>, E>,
) -> Result<bool, Diagnostic> {
    let wrong = || Err(Diagnostic::new(Stage::Internal, "the distinguishing formula does not distinguish the systems"));
    match difference {
        Difference::TooLong => Ok(false),
        Difference::Formula(text) if text.len() > LONGEST_CONFIRMED => Ok(false),
        Difference::Trace { labels, first } => {
            let weak = question.weak();
            if trace::can(a, labels, weak) != *first || trace::can(b, labels, weak) == *first {
                return wrong();
            }
            Ok(true)
        }
        Difference::Formula(text) => {
            let (x, y) = one_table(a, b, |_, label| label.to_string());
            // Labels that no formula can speak of, such as those of other languages, are given names for the purpose.
            let verdicts = match (holds(session, x, text), holds(session, y, text)) {
                (Ok(x), Ok(y)) => (x, y),
                _ => {
                    let (x, y) = one_table(a, b, |i, _| format!("label_{i}"));
                    let Ok(Some(Difference::Formula(text))) = ask(&x, &y) else { return wrong() };
                    (holds(session, x, &text)?, holds(session, y, &text)?)
                }
            };
            match verdicts {
                (Verdict::Unknown(_), _) | (_, Verdict::Unknown(_)) => Ok(false),
                (Verdict::True, Verdict::False) => Ok(true),
                _ => wrong(),
            }
        }
    }
}

/// The verdict of a formula on a system, by the model checker.
fn holds(session: &Session, lts: Lts, formula: &str) -> Result<Verdict, Diagnostic> {
    let labels = InferredLabels::new(&lts.table.texts)?;
    let tree = mu_syntax::parse_formula(Default::default(), formula)?;
    let typed = check_formula(&tree, labels.data(), labels.actions())?;
    let explore = mu_explore::Options { threads: 1, ..Default::default() };
    let options = Options { evidence: false, ..Options::new(&explore) };
    Ok(check(&LtsModel::new(Arc::new(lts)), &labels, &typed, options, &session.budget)?.verdict)
}

/// Both systems with one label table, in which an action that only one of them has is known as well; its texts are given anew.
fn one_table(a: &Lts, b: &Lts, text: impl Fn(usize, &str) -> String) -> (Lts, Lts) {
    let (union, ..) = disjoint_union(a, b);
    let mut table = union.table;
    table.texts.iter_mut().enumerate().skip(1).for_each(|(i, t)| *t = text(i, t));
    let n = a.transition_count();
    let with = |lts: &Lts, labels: &[LabelId]| Lts { labels: labels.to_vec(), table: table.clone(), ..lts.clone() };
    (with(a, &union.labels[..n]), with(b, &union.labels[n..]))
}

fn as_json(difference: &Difference, question: Question) -> Value {
    match difference {
        Difference::Trace { labels, first } => json!({
            "kind": "trace",
            "labels": labels,
            "only_in": if *first { "a" } else { "b" },
            "formula": formula_text(difference, question.weak()),
        }),
        Difference::Formula(formula) => json!({ "kind": "formula", "formula": formula, "only_in": "a" }),
        Difference::TooLong => json!({ "kind": "too-long" }),
    }
}

fn as_text(args: &CompareArgs, question: Question, difference: Option<&Difference>, confirmed: bool) -> String {
    let (a, b) = (args.a.display(), args.b.display());
    let mut text = match (question, difference.is_none()) {
        (Question::Equivalent(e), true) => format!("equivalent ({})\n", e.name()),
        (Question::Equivalent(e), false) => format!("not equivalent ({})\n", e.name()),
        (Question::Refines(p), true) => format!("{a} refines {b} ({})\n", p.name()),
        (Question::Refines(p), false) => format!("{a} does not refine {b} ({})\n", p.name()),
    };
    match difference {
        None => {}
        Some(Difference::Trace { labels, first }) => {
            let (can, cannot) = if *first { (a, b) } else { (b, a) };
            text += &format!("  {can} can do this, {cannot} cannot:\n");
            labels.iter().for_each(|label| text += &format!("    {label}\n"));
        }
        Some(Difference::Formula(formula)) => text += &format!("  this holds in {a} and not in {b}:\n    {formula}\n"),
        Some(Difference::TooLong) => text += "  the formula that tells them apart is too long to be of use\n",
    }
    if matches!(difference, Some(Difference::Trace { .. } | Difference::Formula(_))) && !confirmed {
        let long = matches!(difference, Some(Difference::Formula(formula)) if formula.len() > LONGEST_CONFIRMED);
        text += if long { "  (too long to be confirmed by the checker)\n" } else { "  (a limit came before this was confirmed)\n" };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_lts::aut;

    #[test]
    fn labels_are_numbered_alike_in_both() {
        let read = |text: &str| aut::read(text.as_bytes(), &Default::default()).unwrap();
        let (a, b) = (read("des (0, 2, 1)\n(0, PUT !1, 0)\n(0, x, 0)\n"), read("des (0, 2, 1)\n(0, y, 0)\n(0, PUT !1, 0)\n"));
        let (x, y) = one_table(&a, &b, |i, _| format!("label_{i}"));
        assert_eq!(x.table, y.table);
        assert_eq!(x.table.texts, ["tau", "label_1", "label_2", "label_3"]);
        assert_eq!((x.labels, y.labels), (vec![LabelId(1), LabelId(2)], vec![LabelId(3), LabelId(1)]));
    }
}
