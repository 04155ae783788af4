//! Single values of parameters that are set to `any`: the least one for which a formula is false,
//! and a check of what is to be called true.
//!
//! In: names of parameters, a formula. [`Instances::counterexample`] checks the models with the
//! values 0, 1, 2, … (several parameters: by their sum) until the formula is false, which is then
//! printed as ever, with evidence that was replayed. [`Instances::refuted`] checks a few small
//! values, and those next to each number in the text, before a formula is called true: it knows
//! nothing of the abstraction, so it finds what that may have missed. Cost: both are bounded by the
//! states that they meet, never by time, so that the answer is always the same.

use super::args::CheckArgs;
use super::check::{Found, tell};
use super::load::Loaded;
use super::pipeline::Session;
use super::properties::{self, Text};
use mu_base::host::Instant;
use mu_base::limits::Limits;
use mu_base::{Diagnostic, Stage};
use mu_pbes::{Options, Verdict, check};
use std::collections::BTreeSet;

/// The search goes no further after a model with more states.
const MOST_STATES: u64 = 2_000_000;
/// Beyond this many models it goes on only while all of them together have at most
/// [`CHEAP_STATES`].
const FEW_VALUES: usize = 24;
/// See [`FEW_VALUES`].
const CHEAP_STATES: u64 = 100_000;
/// No more models than these are checked.
const MOST_VALUES: usize = 400;
/// Values up to this one are tried, and up to the numbers in the text.
const MOST_VALUE: usize = 24;
/// Larger numbers of the text are not tried.
const MOST_LITERAL: usize = 300;
/// About the most states that models may have which are checked before a formula is called true,
/// however long the proof is.
const MOST_SPOT_STATES: u64 = 20_000;
/// Models that are checked before a formula is called true.
const SPOTS: usize = 24;

/// What the search found.
pub(super) enum Tried {
    /// The formula is false for a value, which is printed.
    False,
    /// It is false for none that was tried; which ones, and why not more, if that is known.
    Open(Option<String>),
}

/// The models for single values.
pub(super) struct Instances<'a> {
    pub session: &'a mut Session,
    pub args: &'a CheckArgs,
    pub text: (&'a Text, bool),
    pub names: &'a [String],
    /// The numbers in the text of the model.
    pub literals: &'a [usize],
}

/// Why there is no model for a value.
enum Missing {
    /// The parameter cannot have it.
    Skip,
    /// A limit.
    Limit,
    /// It cannot be read or checked.
    Fails(Diagnostic),
}

impl Instances<'_> {
    fn at(&self, values: &[usize]) -> String {
        self.names.iter().zip(values).map(|(n, v)| format!("{n} = {v}")).collect::<Vec<_>>().join(", ")
    }

    /// The model for these values.
    fn load(&mut self, values: &[usize]) -> Result<Loaded, Missing> {
        let written = self.session.common.define.clone();
        let of = |d: &String| {
            let name = d.split_once('=').map_or("", |p| p.0.trim());
            self.names.iter().position(|n| n == name).map_or_else(|| d.clone(), |i| format!("{name}={}", values[i]))
        };
        self.session.common.define = written.iter().map(of).collect();
        let loaded = self.session.load(&self.args.model, &self.args.confluence);
        self.session.common.define = written;
        loaded.map_err(|error| match error.stage {
            Stage::Usage => Missing::Skip,
            _ if error.stop.is_some() => Missing::Limit,
            _ => Missing::Fails(error),
        })
    }

    /// The numbers of the model and the formula, those in reach.
    fn numbers(&self) -> BTreeSet<usize> {
        let own = numbers_in(&self.text.0.text);
        self.literals.iter().copied().chain(own).filter(|n| *n <= MOST_LITERAL).collect()
    }

    /// Looks for the least value for which the formula is false, and prints it.
    pub fn counterexample(&mut self) -> Result<Tried, Diagnostic> {
        let count = self.names.len();
        let most = self.numbers().last().map_or(MOST_VALUE, |n| MOST_VALUE.max(n + 2));
        let (mut tried, mut states, mut complete, mut why) = (0, 0, None, None);
        let mut failed = None;
        'sums: for sum in 0..=most {
            for values in valuations(count, sum) {
                if tried >= FEW_VALUES && (states > CHEAP_STATES || tried >= MOST_VALUES) {
                    break 'sums;
                }
                let start = Instant::now();
                let loaded = match self.load(&values) {
                    Ok(loaded) => loaded,
                    Err(Missing::Skip) => continue,
                    Err(Missing::Limit) => break 'sums,
                    Err(Missing::Fails(error)) if error.stage == Stage::Internal => return Err(error),
                    // For this value the text may be no model, such as one with a sort without
                    // constants for 0.
                    Err(Missing::Fails(error)) => {
                        let is_first = failed.is_none();
                        failed.get_or_insert(error);
                        if is_first {
                            continue;
                        }
                        break 'sums;
                    }
                };
                let formula = properties::read(self.text.0, &loaded.data, &loaded.actions)?;
                tried += 1;
                let (model, labels) = (&*loaded.model, &*loaded.labels);
                let options = self.session.explore_options(model, &self.args.without);
                let answer = check(model, labels, &formula, Options { witnesses: false, ..Options::new(&options) }, &self.session.budget);
                let at = self.at(&values);
                let answer = match answer {
                    Err(error) if error.stage == Stage::Internal => return Err(error),
                    Err(error) => {
                        why = Some(format!("{at}: {}", error.message));
                        break 'sums;
                    }
                    Ok(answer) => answer,
                };
                self.session.say(format!("{at}: {:?}, {} states", answer.verdict, answer.states));
                states += answer.states;
                match answer.verdict {
                    Verdict::False => {
                        let found = Found { answer, why: None, at: Some(at), seconds: start.elapsed().as_secs_f64() };
                        tell(self.session, self.args, &loaded, self.text, &formula, found)?;
                        return Ok(Tried::False);
                    }
                    Verdict::Unknown(stop) => {
                        why = Some(format!("{at}: {}", stop.word()));
                        break 'sums;
                    }
                    Verdict::True if answer.states > MOST_STATES => break 'sums,
                    Verdict::True => {}
                }
            }
            if tried > 0 {
                complete = Some(sum);
            }
        }
        match (tried, failed) {
            // No value gives a model.
            (0, Some(error)) => return Err(error),
            (_, Some(error)) => why = why.or(Some(error.message)),
            (_, None) => {}
        }
        let found = complete.map(|sum| match self.names {
            [name] => format!("true for {name} up to {sum}, one by one"),
            _ => format!("true for values up to a sum of {sum}, one by one"),
        });
        let parts: Vec<String> = found.into_iter().chain(why).collect();
        Ok(Tried::Open((!parts.is_empty()).then(|| parts.join("; "))))
    }

    /// The values, if any, for which a formula is false that is about to be called true: of small
    /// ones and of those next to numbers in the text, as far as a part of the states that the proof
    /// met (`states`) goes.
    pub fn refuted(&mut self, states: u64) -> Result<Option<String>, Diagnostic> {
        let numbers = self.numbers();
        let near = numbers.iter().flat_map(|n| [n.saturating_sub(1), *n, n + 1]);
        let values: BTreeSet<usize> = (0..4).chain(near).collect();
        let count = self.names.len();
        let mut spots: Vec<Vec<usize>> = Vec::new();
        for v in values {
            spots.push(vec![v; count]);
            if count > 1 {
                for i in 0..count {
                    spots.extend([1, 3].map(|other| (0..count).map(|j| if i == j { v } else { other }).collect()));
                }
            }
        }
        spots.sort_by_key(|v: &Vec<usize>| v.iter().sum::<usize>());
        spots.dedup();
        let mut left = 1_000 + (states / 50).min(MOST_SPOT_STATES);
        for values in spots.iter().take(SPOTS) {
            let Ok(loaded) = self.load(values) else { continue };
            let Ok(formula) = properties::read(self.text.0, &loaded.data, &loaded.actions) else { continue };
            let (model, labels) = (&*loaded.model, &*loaded.labels);
            let options = self.session.explore_options(model, &self.args.without);
            let limits = self.session.budget.limits();
            let limits = Limits { max_states: Some(limits.max_states.unwrap_or(left).min(left)), ..*limits };
            let chosen = Options { evidence: false, witnesses: false, ..Options::new(&options) };
            let Ok(answer) = check(model, labels, &formula, chosen, &self.session.budget.with_limits(limits)) else { continue };
            match answer.verdict {
                Verdict::False => return Ok(Some(self.at(values))),
                Verdict::True if answer.states < left => left -= answer.states,
                _ => break,
            }
        }
        Ok(None)
    }
}

/// The numbers in a text.
pub(super) fn numbers_in(text: &str) -> Vec<usize> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'');
    let mut all: Vec<usize> = words.filter_map(|w| w.parse().ok()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Valuations of this many parameters, of one sum.
fn valuations(count: usize, sum: usize) -> Vec<Vec<usize>> {
    if count == 1 {
        return vec![vec![sum]];
    }
    (0..=sum).flat_map(|first| valuations(count - 1, sum - first).into_iter().map(move |rest| [vec![first], rest].concat())).collect()
}
