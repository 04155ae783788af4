//! Comparison of two systems by an equivalence or preorder; a trace or formula that distinguishes
//! them (`compare`).
//!
//! The difference is confirmed before it is printed ([`confirm`]): a trace is followed state
//! by state; a formula is checked on both systems by the model checker. A difference that is
//! refuted is an internal error. The result reports if `check` can read the formula.

pub(crate) mod bound_names;
pub(crate) mod confirm;

use crate::args::{CompareArgs, Modulo};
use crate::commands::compare::confirm::{
    Checkable, LabelTyping, MAX_CHECKED_BYTES, Pair, checkable,
};
use crate::commands::lts::unknown_verdict;
use crate::output::answers;
use crate::pipeline::Session;
use crate::pipeline::files::{declared_actions, relabel_systems, system_and, write_text};
use crate::pipeline::load::Loaded;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stop};
use mu_lts::distinguish::Difference;
use mu_lts::equivalence::{Equivalence, Evidence, distinguish};
use mu_lts::preorder::{Preorder, excess};
use mu_lts::{Lts, relabel};
use serde_json::{Value, json};
use std::path::Path;

/// The requested relation.
#[derive(Clone, Copy)]
enum RequestedRelation {
    Equivalent(Equivalence),
    Refines(Preorder),
    /// The preorder in both directions.
    Mutual(Preorder),
}

impl RequestedRelation {
    /// True if internal steps do not count as steps.
    fn abstracts(self) -> bool {
        match self {
            RequestedRelation::Equivalent(e) => e.abstracts(),
            RequestedRelation::Refines(p) | RequestedRelation::Mutual(p) => p.abstracts(),
        }
    }
    /// True if taus are omitted from the trace of a difference.
    fn weak(self) -> bool {
        let evidence = match self {
            RequestedRelation::Equivalent(e) => e.evidence(),
            RequestedRelation::Refines(p) | RequestedRelation::Mutual(p) => p.evidence(),
        };
        evidence == Evidence::WeakTrace
    }
}

pub(crate) fn run(session: &mut Session, args: &CompareArgs) -> Result<u8, Diagnostic> {
    let question = match (args.preorder, args.equivalence) {
        (Some(p), _) if args.mutual => RequestedRelation::Mutual(p),
        (Some(p), _) => RequestedRelation::Refines(p),
        (None, Modulo::Labelled(e)) => RequestedRelation::Equivalent(e),
        (None, Modulo::Probabilistic) => return crate::commands::chance::compare(session, args),
    };
    let start = Instant::now();
    let relabel = args.relabelling.relabel()?;
    // Renamed labels have no declarations.
    let declared = |loaded: &Loaded| {
        let typing = if relabel.is_empty() { LabelTyping::from_declarations(loaded) } else { None };
        (typing, declared_actions(loaded))
    };
    let mut system = |file: &Path| system_and(session, file, declared);
    let systems = system(&args.a).and_then(|a| Ok((a, system(&args.b)?)));
    let ((a, (declared_in_a, actions_of_a)), (b, (declared_in_b, actions_of_b))) = match systems {
        Err(Diagnostic { stop: Some(stop), .. }) => return unknown_verdict(session, &stop),
        systems => systems?,
    };
    // Both a relation and a difference of parts of the systems may be untrue of the whole ones.
    if session.buffers_were_cut() {
        return unknown_verdict(session, &Stop::Buffer);
    }
    let [a, b] = relabel_systems(session, &relabel, [a, b], &[actions_of_a, actions_of_b])?;
    crate::commands::lts::note_internal(session, &[&a, &b], question.abstracts());
    let (a, b) = (relabel::in_order(a), relabel::in_order(b));
    crate::output::begin_stage("comparing");
    let threads = session.threads();
    let ask = |a: &Lts, b: &Lts| match question {
        RequestedRelation::Equivalent(e) => Ok(distinguish(a, b, e, threads)),
        RequestedRelation::Refines(p) => excess(a, b, p, threads, &session.budget),
        RequestedRelation::Mutual(p) => match excess(a, b, p, threads, &session.budget)? {
            None => Ok(excess(b, a, p, threads, &session.budget)?.map(of_the_second)),
            found => Ok(found),
        },
    };
    let pair = Pair::new(&a, &b);
    let difference = match ask(&pair.a, &pair.b) {
        Ok(difference) => difference,
        Err(stop) => return unknown_verdict(session, &stop),
    };
    session.log(format!("compared in {:.3} s", start.elapsed().as_secs_f64()));
    let typing = |declared: Option<LabelTyping>, lts| {
        declared.map_or_else(|| LabelTyping::from_texts(lts), Ok)
    };
    let register = |found: Option<&ConfirmedDifference>| {
        let of = |path: &Path, lts: &Lts| json!({ "file": path.display().to_string(), "states": lts.state_count(), "transitions": lts.transition_count() });
        let (equivalence, preorder) = match question {
            RequestedRelation::Equivalent(e) => (Some(e.name()), None),
            RequestedRelation::Refines(p) | RequestedRelation::Mutual(p) => (None, Some(p.name())),
        };
        let mut object = json!({
            "equivalence": equivalence,
            "preorder": preorder,
            "verdict": found.is_none().to_string(),
            "difference": found.map(|found| as_json(found, question)),
            "confirmed": found.is_some_and(|found| found.confirmed),
            "a": of(&args.a, &a),
            "b": of(&args.b, &b),
            "seconds": start.elapsed().as_secs_f64(),
            "peak_memory_bytes": session.peak_memory(),
            "stop": "complete",
        });
        if args.mutual {
            object["mutual"] = true.into();
        }
        let text = as_text(args, question, found);
        answers::set_complete(object, text, u8::from(found.is_some()));
    };
    let mut found = difference.as_ref().map(|named| ConfirmedDifference {
        difference: pair.with_original_labels(named),
        confirmed: false,
        checkable: None,
    });
    register(found.as_ref());
    if let (Some(named), Some(found)) = (&difference, &mut found) {
        found.confirmed = pair.confirm(session, named, question.weak())?;
        if let Some(formula) = formula_text(named, question.weak()) {
            let typings = [&typing(declared_in_a, &a)?, &typing(declared_in_b, &b)?];
            found.checkable = Some(checkable(session, &pair, &formula, first(named), typings)?);
        }
        register(Some(found));
    }
    if let (Some(path), Some(found)) = (&args.out, &found)
        && let Some(formula) = formula_text(&found.difference, question.weak())
    {
        write_text(path, &format!("{formula}\n"))?;
        if let Some(Checkable::No(why)) = &found.checkable {
            let path = path.display();
            eprintln!(
                "warning: `check` cannot read the formula in {path}: {why}; rename labels with `--rename`"
            );
        }
    }
    answers::finish(session.common.format)
}

/// A difference with its confirmation.
struct ConfirmedDifference {
    difference: Difference,
    confirmed: bool,
    /// Result of reading the formula with `check`; `None` if there is no formula.
    checkable: Option<Checkable>,
}

/// Returns the difference of two systems that is one of them in the other order.
fn of_the_second(difference: Difference) -> Difference {
    match difference {
        Difference::Trace { labels, first } => Difference::Trace { labels, first: !first },
        Difference::Formula(formula) => Difference::Formula(format!("!({formula})")),
        Difference::TooLong => Difference::TooLong,
    }
}

/// True if the first system satisfies the formula of a difference.
fn first(difference: &Difference) -> bool {
    !matches!(difference, Difference::Trace { first: false, .. })
}

/// Returns a formula that holds in exactly one of the systems; `None` if there is none of
/// reasonable length.
fn formula_text(difference: &Difference, weak: bool) -> Option<String> {
    match difference {
        Difference::Formula(text) => Some(text.clone()),
        Difference::Trace { labels, .. } if weak => Some(format!(
            "{}true",
            labels.iter().map(|l| format!("<tau* . {l}>")).collect::<String>()
        )),
        Difference::Trace { labels, .. } => {
            Some(format!("{}true", labels.iter().map(|l| format!("<{l}>")).collect::<String>()))
        }
        Difference::TooLong => None,
    }
}

fn as_json(found: &ConfirmedDifference, question: RequestedRelation) -> Value {
    let difference = &found.difference;
    let mut object = match difference {
        Difference::Trace { labels, .. } => json!({ "kind": "trace", "labels": labels }),
        Difference::Formula(_) => json!({ "kind": "formula" }),
        Difference::TooLong => return json!({ "kind": "too-long" }),
    };
    object["formula"] = formula_text(difference, question.weak()).into();
    object["only_in"] = if first(difference) { "a" } else { "b" }.into();
    object["checkable"] = match &found.checkable {
        Some(Checkable::Yes) => true.into(),
        Some(Checkable::No(_)) => false.into(),
        Some(Checkable::Open) | None => Value::Null,
    };
    if let Some(Checkable::No(why)) = &found.checkable {
        object["not_checkable"] = why.as_str().into();
    }
    object
}

fn as_text(
    args: &CompareArgs,
    question: RequestedRelation,
    found: Option<&ConfirmedDifference>,
) -> String {
    let (a, b) = (args.a.display(), args.b.display());
    let mut text = match (question, found.is_none()) {
        (RequestedRelation::Equivalent(e), true) => format!("equivalent ({})\n", e.name()),
        (RequestedRelation::Equivalent(e), false) => format!("not equivalent ({})\n", e.name()),
        (RequestedRelation::Mutual(p), true) => {
            format!("{a} and {b} refine each other ({})\n", p.name())
        }
        (RequestedRelation::Mutual(p), false) => {
            format!("{a} and {b} do not refine each other ({})\n", p.name())
        }
        (RequestedRelation::Refines(p), true) => format!("{a} refines {b} ({})\n", p.name()),
        (RequestedRelation::Refines(p), false) => {
            format!("{a} does not refine {b} ({})\n", p.name())
        }
    };
    let Some(ConfirmedDifference { difference, confirmed, checkable }) = found else { return text };
    match difference {
        Difference::Trace { labels, first } => {
            let (can, cannot) = if *first { (a, b) } else { (b, a) };
            text += &format!("  {can} can do this, {cannot} cannot:\n");
            labels.iter().for_each(|label| text += &format!("    {label}\n"));
        }
        Difference::Formula(formula) => {
            text += &format!("  this holds in {a} and not in {b}:\n    {formula}\n")
        }
        Difference::TooLong => text += "  the distinguishing formula is too long to print\n",
    }
    if !matches!(difference, Difference::TooLong) && !confirmed {
        let long =
            matches!(difference, Difference::Formula(formula) if formula.len() > MAX_CHECKED_BYTES);
        text += if long {
            "  (too long to be confirmed by the checker)\n"
        } else {
            "  (a limit was reached before this was confirmed)\n"
        };
    }
    if let (Difference::Formula(_), Some(Checkable::No(why))) = (difference, checkable) {
        text += &format!(
            "  (`check` cannot read this formula: {why}; rename labels with `--rename`)\n"
        );
    }
    text
}
