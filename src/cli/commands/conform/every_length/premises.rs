//! Premises of a proof for programs of every length: checks of the machine, and assumptions.

use crate::commands::conform::target::TargetMachine;
use crate::output::progress::group_digits;
use mu_conform::alphabet::{LabelEvent, Phase};
use mu_conform::every_length::decide::{Checks, ProductSearchResult, Survey};
use mu_conform::every_length::sampled::Samples;
use mu_conform::every_length::values::Merging;
use mu_conform::interface::Interface;

/// A check on which answers rest, or an assumption.
pub(in super::super) struct Premise {
    pub(super) key: &'static str,
    pub(in super::super) text: String,
}

/// The assumption on the labels of a machine.
pub(in super::super) const LABEL_ASSUMPTION: &str = "the interface is right: a load, an update, or a commit takes effect at its label, or between its beginning and its end";

impl Premise {
    pub(in super::super) fn new(key: &'static str, text: impl Into<String>) -> Self {
        Self { key, text: text.into() }
    }
}

/// Returns the reason why a proof would be vacuous: no load returns a value, or the operations of a
/// line of the interface never end.
pub(super) fn vacuity_reason(interface: &Interface, survey: &Survey) -> Option<String> {
    let events = &survey.alphabet.events;
    let line = |e: &LabelEvent| &interface.operations[e.operation as usize];
    let ends = |e: &&LabelEvent| e.phase != Phase::Begin;
    let open = events.iter().find(|b| {
        b.phase == Phase::Begin && !events.iter().filter(ends).any(|e| e.operation == b.operation)
    });
    if let Some(begin) = open {
        return Some(format!(
            "the {} that `{}` begins never ends",
            line(begin).name(),
            survey.alphabet.event_text(interface, begin)
        ));
    }
    let reads = events.iter().filter(ends).any(|e| line(e).kind.reads());
    (!reads).then(|| {
        "no label of the machine is a load that returns a value, so no memory model forbids anything"
            .to_string()
    })
}

/// Returns the reason why a search that found nothing proves nothing; `None` if it proves that no
/// program violates the model.
pub(super) fn unproved_premise(survey: &Survey, checks: Option<&Checks>) -> Option<String> {
    if !survey.size.commits {
        return Some("no label of the machine is a `commit` of the interface, so the order of stores in memory is unknown: faults are found, but nothing is proved".into());
    }
    let checks = checks?;
    if let Some(a) = checks.continuation.stuck {
        return Some(format!(
            "a store to `{}` may never reach memory after it is issued, so some violations would have no order of commits",
            survey.alphabet.names.addresses[a as usize]
        ));
    }
    if let Merging::NotMergeable(u, v) = &checks.merging {
        return Some(format!(
            "the machine treats `{u}` and `{v}` differently: a run with `{v}` in place of each `{u}` may not exist, so merging all other stores may lose executions"
        ));
    }
    if let Merging::NotInterchangeable(u, v) = &checks.merging {
        return Some(format!(
            "the machine treats `{u}` and `{v}` differently: exchanging them gives runs that it does not have, and the search follows no stores of `{u}`"
        ));
    }
    if let Merging::Dependent(u, v) = &checks.merging {
        return Some(format!(
            "the values of stores depend on each other: in some run a store of `{v}` cannot store `{u}` instead, so stores cannot be distinguished"
        ));
    }
    None
}

/// Returns the reason why a proof about a machine does not decide all of its sizes; `None` if all
/// sizes have values.
pub(super) fn unfixed_sizes_reason(sizes: &[(String, String)]) -> Option<String> {
    let any: Vec<String> = sizes.iter().map(|(name, _)| format!("{name}=any")).collect();
    let fixed: Vec<String> = sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!sizes.is_empty()).then(|| {
        format!(
            "no program violates it with {}; {} is not decided, because the monitors follow processors, addresses, and values by name: each number needs a proof of its own",
            fixed.join(", "),
            any.join(", ")
        )
    })
}

/// The premises of an answer.
#[derive(Default)]
pub(super) struct Premises {
    pub(super) checked: Vec<Premise>,
    pub(super) assumed: Vec<Premise>,
}

impl Premises {
    fn add_checked(&mut self, key: &'static str, text: impl Into<String>) {
        self.checked.push(Premise::new(key, text));
    }
    fn add_assumed(&mut self, key: &'static str, text: impl Into<String>) {
        self.assumed.push(Premise::new(key, text));
    }

    /// Adds the premises on operations at one address, if no violation was found there.
    fn add_coherence(&mut self, survey: &Survey) {
        self.add_checked(
            "sources",
            "no load returns a value that was not stored at its address, or a later one of its own",
        );
        self.add_checked(
            "in_order",
            "an operation of a processor begins only after the previous one has ended",
        );
        if survey.size.commits {
            self.add_checked(
                "commits",
                "no store commits twice, before it is issued, or at another address",
            );
        }
        if survey.size.absorbs {
            self.add_checked(
                "absorbed",
                "a store is absorbed only while it and the next store of its processor to its address are pending, with no fence between them, and no other processor loads it",
            );
        }
    }

    /// Adds the premises on the commits that the machine can do. `instance`: describes the
    /// instances on which they were checked.
    fn add_commits(
        &mut self,
        survey: &Survey,
        checks: &Checks,
        (any, instance): (&[String], &str),
    ) {
        let continuation = &checks.continuation;
        let states = group_digits(continuation.states);
        if continuation.stuck.is_none() {
            self.add_checked(
                "commits_possible",
                if any.is_empty() {
                    format!("every store that is issued can commit ({states} states)")
                } else {
                    format!("every store that is issued can commit as long as no processor has stopped ({states} states{instance})")
                },
            );
        }
        match continuation.stopped.filter(|_| any.is_empty()) {
            None if !any.is_empty() => self.add_assumed(
                "instances",
                format!("commits and values are checked{instance}, and assumed for other values"),
            ),
            None => {
                self.add_checked("unbounded", "every processor can always begin a further operation");
            }
            Some(p) => self.add_assumed(
                "bounded",
                format!(
                    "programs are those that the machine runs to their end: after some runs `{}` begins no further operation",
                    survey.alphabet.names.processors[p as usize]
                ),
            ),
        }
    }

    /// Adds the premise that values are interchangeable.
    fn add_values(&mut self, merging: &Merging, instance: &str) {
        match merging {
            Merging::Verified(pairs) => self.add_checked(
                "values",
                format!("values are interchangeable: in each of {pairs} pairs, one can replace the other everywhere, and at any one store{instance}"),
            ),
            Merging::Omitted => self.add_assumed(
                "values",
                "values are interchangeable: not checked, because the machine has too many states",
            ),
            Merging::NotMergeable(..) | Merging::Dependent(..) | Merging::NotInterchangeable(..) => {}
        }
    }
}

/// Lists the premises. `instance`: describes the instances on which commits and values were
/// checked.
pub(super) fn list_premises(
    (any, instance): (&[String], &str),
    survey: &Survey,
    coherence: &ProductSearchResult,
    checks: Option<&Checks>,
) -> Premises {
    let mut premises = Premises::default();
    if !any.is_empty() {
        premises.add_checked(
            "numbers",
            format!(
                "every value of {}: by an abstraction of numbers that is verified at every evaluation",
                any.join(", ")
            ),
        );
    }
    if coherence.is_clean() {
        premises.add_coherence(survey);
    }
    if let Some(checks) = checks {
        premises.add_commits(survey, checks, (any, instance));
        premises.add_values(&checks.merging, instance);
    }
    if coherence.is_clean() {
        premises.add_assumed(
            "more_values",
            format!(
                "with more than {} values, the machine treats them as it treats these",
                survey.alphabet.names.values.len()
            ),
        );
        premises.add_assumed("labels", LABEL_ASSUMPTION);
    }
    premises.add_checked(
        "symmetry",
        "none is assumed: the first step chooses processors and addresses; symmetries that save states are verified at every evaluation",
    );
    premises
}

/// Reports the random runs of a machine that a model allows.
pub(super) fn samples_premise(
    machine: &TargetMachine<'_>,
    model: &str,
    samples: Samples,
) -> Premise {
    let of = machine.values.last().map_or_else(String::new, |value| {
        let set: Vec<String> = machine.any.iter().map(|p| format!("{p}={value}")).collect();
        format!(" of the machine with {}", set.join(", "))
    });
    Premise::new(
        "samples",
        format!(
            "{} random runs{of} with {} operations, up to {} of a processor: the axioms of {model} allow each",
            group_digits(samples.runs),
            group_digits(samples.operations),
            samples.longest
        ),
    )
}
