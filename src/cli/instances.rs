//! Single values of parameters that are set to `any`: the least one for which a formula is false,
//! and a check of what is to be called true.
//!
//! In: names of parameters, a formula. [`Instances::counterexample`] checks the models with the
//! values 0, 1, 2, … (several parameters: by their sum), then with those that stand for cases of
//! the abstraction, until the formula is false, which is then printed with evidence that was
//! replayed. [`Instances::refuted`] checks a few small values, and those next to each number in the
//! text, before a formula is called true: it knows nothing of the abstraction, so it finds what
//! that may have missed. Cost: both are bounded by the states that they meet, never by time, so
//! that the answer is always the same.

use super::args::CheckArgs;
use super::check::{At, Found, tell};
use super::load::Loaded;
use super::output;
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

/// The search ends if the text is no model for more values than these.
const MOST_WITHOUT: usize = 100;
/// Most states of a model that is not reached one by one.
const CASE_STATES: u64 = 25_000;
/// Most values of several parameters that are named.
const MOST_NAMED: usize = 8;
/// Most values from the cases of the abstraction that are checked.
const MOST_CASES: usize = 24;

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

/// What a single value says.
enum Instance {
    /// The formula is false, which is printed.
    False,
    /// It is true, or there is no model: the search goes on.
    Next,
    /// A limit: larger values would meet it too.
    Last,
}

/// A search among single values.
#[derive(Default)]
struct Search {
    /// Values for which the formula is true.
    held: Vec<Vec<usize>>,
    /// Values that the file excludes.
    excluded: Vec<Vec<usize>>,
    /// Values for which the text is no model.
    without_model: Vec<Vec<usize>>,
    /// The first reason why the text is no model.
    failed: Option<Diagnostic>,
    /// All values up to this sum were looked at.
    complete: Option<usize>,
    /// True if a limit ended the search among small values.
    is_limited: bool,
    /// True once the search goes on among cases of the abstraction.
    is_past_sums: bool,
    /// States of all models.
    states: u64,
    /// Why the search ended.
    why: Option<String>,
}

impl Search {
    /// True if all smaller values were looked at.
    fn is_least(&self, values: &[usize]) -> bool {
        !self.is_past_sums || sum(values) <= self.complete.map_or(0, |sum| sum + 1)
    }

    /// Which values were checked, and why not more; `None` if none were and no reason is known.
    fn text(&self, names: &[String]) -> Option<String> {
        let within = |values: &&Vec<usize>| self.complete.is_some_and(|most| sum(values) <= most);
        let (held, beyond): (Vec<_>, Vec<_>) = self.held.iter().partition(|values| within(values));
        let excluded = self.excluded.iter().filter(within).count();
        let without_model = self.without_model.iter().filter(within).count();
        let numbers = |of: &[Vec<usize>]| {
            ranges(&of.iter().filter(within).map(|values| sum(values)).collect::<Vec<_>>())
        };
        let mut parts = Vec::new();
        if let Some(most) = self.complete.filter(|_| !held.is_empty()) {
            let none = excluded + without_model == 0;
            let mut text = match names {
                [name] if none => format!("true for {name} up to {most}, one by one"),
                [name] => format!("true for {name} = {}, one by one", numbers(&self.held)),
                _ if none => format!("true for values up to a sum of {most}, one by one"),
                _ => format!(
                    "true for {} of the {} values up to a sum of {most}, one by one",
                    held.len(),
                    held.len() + excluded + without_model
                ),
            };
            for (of, count, why) in [
                (&self.excluded, excluded, "the file excludes"),
                (&self.without_model, without_model, "there is no model for"),
            ] {
                if count > 0 {
                    let which = if names.len() == 1 { numbers(of) } else { count.to_string() };
                    text += &format!(
                        "; {why} {which}{}",
                        if names.len() == 1 { "" } else { " of them" }
                    );
                }
            }
            parts.push(text);
        }
        if !beyond.is_empty() {
            let at = |values: &&Vec<usize>| {
                names
                    .iter()
                    .zip(*values)
                    .map(|(n, v)| format!("{n} = {v}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let which = match names {
                [name] => {
                    let numbers: BTreeSet<usize> =
                        beyond.iter().map(|values| sum(values)).collect();
                    format!("{name} = {}", ranges(&numbers.into_iter().collect::<Vec<_>>()))
                }
                _ => {
                    let more = if beyond.len() > MOST_NAMED { "; …" } else { "" };
                    beyond.iter().take(MOST_NAMED).map(at).collect::<Vec<_>>().join("; ") + more
                }
            };
            parts.push(format!("true for {which}"));
        }
        parts.extend(self.why.clone());
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The sum of the values, which the search goes by.
fn sum(values: &[usize]) -> usize {
    values.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Ascending numbers as ranges, such as `0 to 4, 6`.
fn ranges(numbers: &[usize]) -> String {
    let part = |run: &[usize]| match run {
        [first, .., last] => format!("{first} to {last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    numbers.chunk_by(|a, b| a + 1 == *b).map(part).collect::<Vec<_>>().join(", ")
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
    /// Values as text.
    pub fn at(&self, values: &[usize]) -> String {
        self.names
            .iter()
            .zip(values)
            .map(|(n, v)| format!("{n} = {v}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// The model for these values.
    fn load(&mut self, values: &[usize]) -> Result<Loaded, Missing> {
        let written = self.session.common.define.clone();
        let of = |d: &String| {
            let name = d.split_once('=').map_or("", |p| p.0.trim());
            self.names
                .iter()
                .position(|n| n == name)
                .map_or_else(|| d.clone(), |i| format!("{name}={}", values[i]))
        };
        self.session.common.define = written.iter().map(of).collect();
        // The run is not of this model.
        let parameters = output::recorded_parameters();
        let loaded = self.session.load(&self.args.model, &self.args.confluence);
        output::restore_parameters(parameters);
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

    /// Searches for the least value for which the formula is false, then among values that stand
    /// for cases of the abstraction (`cases`), and prints the first.
    pub fn counterexample(&mut self, cases: &[Vec<usize>]) -> Result<Tried, Diagnostic> {
        let most = self.numbers().last().map_or(MOST_VALUE, |n| MOST_VALUE.max(n + 2));
        let mut search = Search::default();
        'sums: for sum in 0..=most {
            for values in valuations(self.names.len(), sum) {
                let tried = search.held.len();
                if tried >= FEW_VALUES && (search.states > CHEAP_STATES || tried >= MOST_VALUES) {
                    break 'sums;
                }
                match self.instance(values, &mut search, None)? {
                    Instance::False => return Ok(Tried::False),
                    Instance::Last => {
                        search.is_limited = true;
                        break 'sums;
                    }
                    Instance::Next if search.without_model.len() > MOST_WITHOUT => break 'sums,
                    Instance::Next => {}
                }
            }
            search.complete = Some(sum);
        }
        // A limit that a small value meets is met by larger ones too.
        if !search.is_limited {
            let cases = self.far_values(cases, search.complete)?;
            search.is_past_sums = true;
            // The limits of these are no reason to report.
            let why = search.why.clone();
            for values in cases {
                match self.instance(values, &mut search, Some(CASE_STATES))? {
                    Instance::False => return Ok(Tried::False),
                    Instance::Last => break,
                    Instance::Next => {}
                }
            }
            search.why = why;
        }
        match search.failed.take() {
            // No value gives a model.
            Some(error) if search.held.is_empty() && search.why.is_none() => return Err(error),
            _ => {}
        }
        Ok(Tried::Open(search.text(self.names)))
    }

    /// Returns values that stand for cases of the abstraction, and those next to numbers of the
    /// text, in ascending order; `complete`: the sum up to which all values are checked.
    /// Numbers above [`MOST_LITERAL`] are left out where a parameter counts constants, since a
    /// text is written for each.
    fn far_values(
        &mut self,
        cases: &[Vec<usize>],
        complete: Option<usize>,
    ) -> Result<Vec<Vec<usize>>, Diagnostic> {
        let counting = mu_regions::counted::counting(&self.session.read(&self.args.model)?);
        let most =
            if self.names.iter().any(|n| counting.contains(n)) { MOST_LITERAL } else { usize::MAX };
        let numbers = self.literals.iter().copied().chain(numbers_in(&self.text.0.text));
        let near = numbers.flat_map(neighbours).map(|n| vec![n]);
        let all = cases.iter().cloned().chain(near.filter(|_| self.names.len() == 1));
        let beyond = |values: &Vec<usize>| complete.is_none_or(|most| sum(values) > most);
        let values: BTreeSet<(usize, Vec<usize>)> = all
            .filter(|v| beyond(v) && sum(v) <= most)
            .map(|values| (sum(&values), values))
            .collect();
        Ok(values.into_iter().map(|v| v.1).take(MOST_CASES).collect())
    }

    /// Checks the formula for single values. `most`: the limit on states, for values that were not
    /// reached one by one.
    fn instance(
        &mut self,
        values: Vec<usize>,
        search: &mut Search,
        most: Option<u64>,
    ) -> Result<Instance, Diagnostic> {
        let start = Instant::now();
        let loaded = match self.load(&values) {
            Ok(loaded) => loaded,
            Err(Missing::Skip) => {
                search.excluded.push(values);
                return Ok(Instance::Next);
            }
            Err(Missing::Limit) => return Ok(Instance::Last),
            Err(Missing::Fails(error)) if error.stage == Stage::Internal => return Err(error),
            // For this value the text may be no model, such as one with a sort without constants
            // for 0.
            Err(Missing::Fails(error)) => {
                search.without_model.push(values);
                search.failed.get_or_insert(error);
                return Ok(Instance::Next);
            }
        };
        let formula = properties::read(self.text.0, &loaded.data, &loaded.actions)?;
        let (model, labels) = (&*loaded.model, &*loaded.labels);
        let options = self.session.explore_options(model, &self.args.without);
        let limits = self.session.budget.limits();
        let limits =
            Limits { max_states: limits.max_states.into_iter().chain(most).min(), ..*limits };
        let budget = self.session.budget.with_limits(limits);
        let answer = check(
            model,
            labels,
            &formula,
            Options { witnesses: false, ..Options::new(&options) },
            &budget,
        );
        let at = self.at(&values);
        let answer = match answer {
            Err(error) if error.stage == Stage::Internal => return Err(error),
            Err(error) => {
                search.why = search.why.take().or(Some(format!("{at}: {}", error.message)));
                return Ok(Instance::Last);
            }
            Ok(answer) => answer,
        };
        self.session.log(format!("{at}: {:?}, {} states", answer.verdict, answer.states));
        search.states += answer.states;
        let large = answer.states > MOST_STATES;
        match answer.verdict {
            Verdict::False => {
                let at = At { values: at, least: search.is_least(&values) };
                let found = Found {
                    answer,
                    why: None,
                    at: Some(at),
                    seconds: start.elapsed().as_secs_f64(),
                };
                tell(self.session, self.args, &loaded, self.text, &formula, found)?;
                return Ok(Instance::False);
            }
            Verdict::Unknown(stop) => {
                search.why = search.why.take().or(Some(format!("{at}: {}", stop.word())));
                return Ok(Instance::Last);
            }
            Verdict::True => search.held.push(values),
        }
        Ok(if large { Instance::Last } else { Instance::Next })
    }

    /// The values, if any, for which a formula is false that is about to be called true: of small
    /// ones and of those next to numbers in the text, as far as a part of the states that the proof
    /// met (`states`) goes.
    pub fn refuted(&mut self, states: u64) -> Result<Option<Vec<usize>>, Diagnostic> {
        let numbers = self.numbers();
        let near = numbers.into_iter().flat_map(neighbours);
        let values: BTreeSet<usize> = (0..4).chain(near).collect();
        let count = self.names.len();
        let mut spots: Vec<Vec<usize>> = Vec::new();
        for v in values {
            spots.push(vec![v; count]);
            if count > 1 {
                for i in 0..count {
                    spots.extend(
                        [1, 3].map(|other| {
                            (0..count).map(|j| if i == j { v } else { other }).collect()
                        }),
                    );
                }
            }
        }
        spots.sort_by_key(|v: &Vec<usize>| v.iter().sum::<usize>());
        spots.dedup();
        let mut left = 1_000 + (states / 50).min(MOST_SPOT_STATES);
        for values in spots.iter().take(SPOTS) {
            let Ok(loaded) = self.load(values) else { continue };
            let Ok(formula) = properties::read(self.text.0, &loaded.data, &loaded.actions) else {
                continue;
            };
            let (model, labels) = (&*loaded.model, &*loaded.labels);
            let options = self.session.explore_options(model, &self.args.without);
            let limits = self.session.budget.limits();
            let limits =
                Limits { max_states: Some(limits.max_states.unwrap_or(left).min(left)), ..*limits };
            let chosen = Options { evidence: false, witnesses: false, ..Options::new(&options) };
            let Ok(answer) =
                check(model, labels, &formula, chosen, &self.session.budget.with_limits(limits))
            else {
                continue;
            };
            match answer.verdict {
                Verdict::False => return Ok(Some(values.clone())),
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

/// Returns a number and those next to it.
fn neighbours(n: usize) -> [usize; 3] {
    [n.saturating_sub(1), n, n.saturating_add(1)]
}

/// Valuations of this many parameters, of one sum.
fn valuations(count: usize, sum: usize) -> Vec<Vec<usize>> {
    if count == 1 {
        return vec![vec![sum]];
    }
    (0..=sum)
        .flat_map(|first| {
            valuations(count - 1, sum - first)
                .into_iter()
                .map(move |rest| [vec![first], rest].concat())
        })
        .collect()
}
