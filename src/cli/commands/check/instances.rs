//! Concrete instances of parameters set to `any`: search for the smallest value that falsifies a
//! formula, and spot checks before a formula is called true.
//!
//! In: names of parameters, a formula. [`Instances::counterexample`] checks the models with the
//! values 0, 1, 2, … (several parameters: by their sum), then with the values that represent cases
//! of the abstraction. It stops if the formula is false, and returns the replayed evidence.
//! [`Instances::refuted`] checks a few small values, and the neighbours of each number in the text,
//! before a formula is called true. It does not use the abstraction, so it finds errors of the
//! abstraction. Cost: both are bounded by numbers of states, never by time, so the answer is
//! deterministic.

use super::explanation::{self, FormulaResult, ParameterValues};
use super::plan::CheckPlan;
use super::report::FormulaOutcome;
use crate::output;
use crate::pipeline::Session;
use crate::pipeline::load::Loaded;
use crate::pipeline::properties::{self, FormulaText};
use mu_base::host::Instant;
use mu_base::limits::Limits;
use mu_base::{Diagnostic, Stage};
use mu_pbes::{Options, Verdict, check};
use std::collections::BTreeSet;

/// The search ends after a model with more states than this.
const MOST_STATES: u64 = 2_000_000;
/// Beyond this number of models, the search continues only while all models together have at most
/// [`CHEAP_STATES`].
const FEW_VALUES: usize = 24;
/// See [`FEW_VALUES`].
const CHEAP_STATES: u64 = 100_000;
/// Maximum number of models that are checked.
const MOST_VALUES: usize = 400;
/// Values up to this one, and up to the numbers in the text, are checked.
const MOST_VALUE: usize = 24;
/// Larger numbers in the text are ignored.
const MOST_LITERAL: usize = 300;
/// Approximate limit on the states of all spot checks, for any length of the proof.
const MOST_SPOT_STATES: u64 = 20_000;
/// Maximum number of spot checks.
const MAX_SPOT_CHECKS: usize = 24;

/// Maximum number of models, and of their states together, before the regions are tried.
const SOON_VALUES: usize = 12;
/// See [`SOON_VALUES`].
const SOON_STATES: u64 = 2_000;
/// The search ends if more values than this have no model.
const MOST_WITHOUT: usize = 100;
/// Limit on the states of a model for a value that is not reached one by one.
const CASE_STATES: u64 = 25_000;
/// Maximum number of valuations of several parameters that are listed.
const MOST_NAMED: usize = 8;
/// Maximum number of valuations from the cases of the abstraction that are checked.
const MOST_CASES: usize = 24;

/// Result of the search for a counterexample.
pub(super) enum Tried {
    /// The formula is false for a value.
    False(FormulaOutcome),
    /// The formula is true for all values that the constraints of the file admit. The text lists
    /// them.
    All(String),
    /// The formula is false for no checked value. The text lists the values and the reason to stop,
    /// if known.
    Open(Option<String>),
}

/// Search over concrete instances.
pub(super) struct Instances<'a> {
    pub session: &'a mut Session,
    pub plan: &'a CheckPlan,
    /// Index of the formula.
    pub formula: usize,
    /// Numbers in the text of the model.
    pub literals: &'a [usize],
}

/// Result of a single instance.
enum InstanceResult {
    /// The formula is false.
    False(FormulaOutcome),
    /// The formula is true, or there is no model: the search continues.
    Next,
    /// A limit: larger values would reach it too.
    Last,
}

/// State of a search over instances.
#[derive(Default)]
struct InstanceSearch {
    /// Values for which the formula is true.
    held: Vec<Vec<usize>>,
    /// Values that the file excludes.
    excluded: Vec<Vec<usize>>,
    /// Values without a model.
    without_model: Vec<Vec<usize>>,
    /// The first reason for a missing model.
    failed: Option<Diagnostic>,
    /// All values up to this sum have been checked.
    complete: Option<usize>,
    /// True if a limit ended the search over small values.
    is_limited: bool,
    /// True if the search has continued with cases of the abstraction.
    is_past_sums: bool,
    /// Sum of the states of all models.
    states: u64,
    /// Reason for the end of the search.
    why: Option<String>,
}

impl InstanceSearch {
    /// True if all smaller values have been checked.
    fn is_least(&self, values: &[usize]) -> bool {
        !self.is_past_sums || sum(values) <= self.complete.map_or(0, |sum| sum + 1)
    }

    /// Describes the checked values and the reason to stop; `None` if there are neither.
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
            let unsupported = self.failed.as_ref().filter(|why| why.stage == Stage::Unsupported);
            let missing = match unsupported {
                Some(why) => format!("not checked one by one ({}):", why.message),
                None => "there is no model for".into(),
            };
            for (of, count, why) in [
                (&self.excluded, excluded, "the file excludes"),
                (&self.without_model, without_model, missing.as_str()),
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

/// Returns the sum of the values, which orders the search.
fn sum(values: &[usize]) -> usize {
    values.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// Formats ascending numbers as ranges, such as `0 to 4, 6`.
fn ranges(numbers: &[usize]) -> String {
    let part = |run: &[usize]| match run {
        [first, .., last] => format!("{first} to {last}"),
        [one] => one.to_string(),
        [] => String::new(),
    };
    numbers.chunk_by(|a, b| a + 1 == *b).map(part).collect::<Vec<_>>().join(", ")
}

/// Reason why a value has no model.
enum Missing {
    /// The file excludes the value.
    Skip,
    /// A limit.
    Limit,
    /// The model cannot be read or checked.
    Fails(Diagnostic),
}

impl Instances<'_> {
    fn text(&self) -> &FormulaText {
        &self.plan.texts[self.formula]
    }

    /// Returns the values as text.
    pub fn at(&self, values: &[usize]) -> String {
        self.plan
            .any
            .iter()
            .zip(values)
            .map(|(n, v)| format!("{n} = {v}"))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Loads the model for these values.
    fn load(&mut self, values: &[usize]) -> Result<Loaded, Missing> {
        let written = self.session.common.define.clone();
        let of = |d: &String| {
            let name = d.split_once('=').map_or("", |p| p.0.trim());
            self.plan
                .any
                .iter()
                .position(|n| n == name)
                .map_or_else(|| d.clone(), |i| format!("{name}={}", values[i]))
        };
        self.session.common.define = written.iter().map(of).collect();
        // The run is not about this instance.
        let parameters = output::recorded_parameters();
        let loaded = self.session.load(&self.plan.model, &self.plan.search.confluence);
        output::restore_parameters(parameters);
        self.session.common.define = written;
        loaded.map_err(|error| match error.stage {
            Stage::Usage => Missing::Skip,
            _ if error.stop.is_some() => Missing::Limit,
            _ => Missing::Fails(error),
        })
    }

    /// Returns the numbers in the model and the formula, up to [`MOST_LITERAL`].
    fn numbers(&self) -> BTreeSet<usize> {
        let own = numbers_in(&self.text().text);
        self.literals.iter().copied().chain(own).filter(|n| *n <= MOST_LITERAL).collect()
    }

    /// Searches for the smallest value that falsifies the formula, then among values that represent
    /// cases of the abstraction (`cases`). Returns the first counterexample.
    pub fn counterexample(&mut self, cases: &[Vec<usize>]) -> Result<Tried, Diagnostic> {
        let most = self.numbers().last().map_or(MOST_VALUE, |n| MOST_VALUE.max(n + 2));
        let greatest = self.greatest_sum()?;
        let most = greatest.map_or(most, |sum| most.min(sum));
        let mut search = InstanceSearch::default();
        'sums: for sum in 0..=most {
            for values in valuations(self.plan.any.len(), sum) {
                let tried = search.held.len();
                if tried >= FEW_VALUES && (search.states > CHEAP_STATES || tried >= MOST_VALUES) {
                    break 'sums;
                }
                match self.instance(values, &mut search, None)? {
                    InstanceResult::False(outcome) => return Ok(Tried::False(outcome)),
                    InstanceResult::Last => {
                        search.is_limited = true;
                        break 'sums;
                    }
                    InstanceResult::Next if search.without_model.len() > MOST_WITHOUT => {
                        break 'sums;
                    }
                    InstanceResult::Next => {}
                }
            }
            search.complete = Some(sum);
        }
        if greatest.is_some() && greatest == search.complete && !search.held.is_empty() {
            return Ok(Tried::All(search.text(&self.plan.any).unwrap_or_default()));
        }
        // Larger values reach the same limit.
        if !search.is_limited {
            let cases = self.far_values(cases, search.complete)?;
            search.is_past_sums = true;
            // Limits of these instances are not reported.
            let why = search.why.clone();
            for values in cases {
                match self.instance(values, &mut search, Some(CASE_STATES))? {
                    InstanceResult::False(outcome) => return Ok(Tried::False(outcome)),
                    InstanceResult::Last => break,
                    InstanceResult::Next => {}
                }
            }
            search.why = why;
        }
        // No value has a model.
        if search.held.is_empty()
            && search.why.is_none()
            && let Some(error) = search.failed.take()
        {
            return Err(error);
        }
        Ok(Tried::Open(search.text(&self.plan.any)))
    }

    /// Checks the smallest values one by one, up to [`SOON_VALUES`] of them with [`SOON_STATES`]
    /// states together. Returns the outcome if the formula is false for one; errors and limits are
    /// left to the methods that follow.
    pub fn soon_false(&mut self) -> Result<Option<FormulaOutcome>, Diagnostic> {
        let mut search = InstanceSearch::default();
        let count = self.plan.any.len();
        for values in (0..SOON_VALUES).flat_map(|sum| valuations(count, sum)).take(SOON_VALUES) {
            let left = SOON_STATES.saturating_sub(search.states);
            match self.instance(values, &mut search, Some(left)) {
                Ok(InstanceResult::False(outcome)) => return Ok(Some(outcome)),
                Ok(InstanceResult::Next) => {}
                Err(why) if why.stage == Stage::Internal => return Err(why),
                Ok(InstanceResult::Last) | Err(_) => break,
            }
        }
        Ok(None)
    }

    /// Returns the greatest sum of values that the constraints of the file admit; `None` if one of
    /// the parameters has no upper bound.
    fn greatest_sum(&mut self) -> Result<Option<usize>, Diagnostic> {
        let text = self.session.read(&self.plan.model)?;
        let pairs = self.session.common.define.iter().filter_map(|d| d.split_once('='));
        let defines: Vec<_> =
            pairs.map(|(n, v)| (n.trim().to_string(), v.trim().to_string())).collect();
        let greatest = mu_syntax::template::greatest_values(&text, &defines);
        let of = |name: &String| {
            let known = greatest.iter().find(|g| g.0 == *name)?;
            usize::try_from(known.1.max(0)).ok()
        };
        let values: Option<Vec<usize>> = self.plan.any.iter().map(of).collect();
        Ok(values.map(|v| sum(&v)))
    }

    /// Returns values that represent cases of the abstraction, and the neighbours of numbers in the
    /// text, in ascending order. `complete`: the sum up to which all values are checked. If a
    /// parameter counts constants, numbers above [`MOST_LITERAL`] are left out, because each
    /// constant needs text.
    fn far_values(
        &mut self,
        cases: &[Vec<usize>],
        complete: Option<usize>,
    ) -> Result<Vec<Vec<usize>>, Diagnostic> {
        let counting = mu_regions::constant_counts::counting(&self.session.read(&self.plan.model)?);
        let most = if self.plan.any.iter().any(|n| counting.contains(n)) {
            MOST_LITERAL
        } else {
            usize::MAX
        };
        let numbers = self.literals.iter().copied().chain(numbers_in(&self.text().text));
        let neighbouring = numbers.flat_map(neighbours).map(|n| vec![n]);
        let all = cases.iter().cloned().chain(neighbouring.filter(|_| self.plan.any.len() == 1));
        let beyond = |values: &Vec<usize>| complete.is_none_or(|most| sum(values) > most);
        let values: BTreeSet<(usize, Vec<usize>)> = all
            .filter(|v| beyond(v) && sum(v) <= most)
            .map(|values| (sum(&values), values))
            .collect();
        Ok(values.into_iter().map(|v| v.1).take(MOST_CASES).collect())
    }

    /// Checks the formula for one valuation. `most`: the limit on states, for values that are not
    /// reached one by one.
    fn instance(
        &mut self,
        values: Vec<usize>,
        search: &mut InstanceSearch,
        most: Option<u64>,
    ) -> Result<InstanceResult, Diagnostic> {
        let start = Instant::now();
        let loaded = match self.load(&values) {
            Ok(loaded) => loaded,
            Err(Missing::Skip) => {
                search.excluded.push(values);
                return Ok(InstanceResult::Next);
            }
            Err(Missing::Limit) => return Ok(InstanceResult::Last),
            Err(Missing::Fails(error)) if error.stage == Stage::Internal => return Err(error),
            // A value may have no model: for example, 0 constants make a sort empty.
            Err(Missing::Fails(error)) => {
                search.without_model.push(values);
                search.failed.get_or_insert(error);
                return Ok(InstanceResult::Next);
            }
        };
        let formula = properties::read(self.text(), &loaded.data, &loaded.actions)?;
        let (model, labels) = (&*loaded.model, &*loaded.labels);
        let options = self.session.explore_options(model, &self.plan.search.without);
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
                return Ok(InstanceResult::Last);
            }
            Ok(answer) => answer,
        };
        self.session.log(format!("{at}: {:?}, {} states", answer.verdict, answer.states));
        search.states += answer.states;
        let large = answer.states > MOST_STATES;
        match answer.verdict {
            Verdict::False => {
                let at = ParameterValues { values: at, least: search.is_least(&values) };
                let found = FormulaResult {
                    answer,
                    why: None,
                    by_equations: false,
                    at: Some(at),
                    seconds: start.elapsed().as_secs_f64(),
                };
                let formula = (self.formula, &formula);
                let outcome =
                    explanation::outcome(self.session, self.plan, &loaded, formula, found)?;
                return Ok(InstanceResult::False(outcome));
            }
            Verdict::Unknown(stop) => {
                search.why = search.why.take().or(Some(format!("{at}: {}", stop.word())));
                return Ok(InstanceResult::Last);
            }
            Verdict::True => search.held.push(values),
        }
        Ok(if large { InstanceResult::Last } else { InstanceResult::Next })
    }

    /// Spot-checks a formula that is about to be called true. Returns values that falsify it. It
    /// checks small values and the neighbours of numbers in the text, within a number of states
    /// that grows with the states of the proof (`states`). `None` if no checked values do.
    pub fn refuted(&mut self, states: u64) -> Result<Option<Vec<usize>>, Diagnostic> {
        let numbers = self.numbers();
        let neighbouring = numbers.into_iter().flat_map(neighbours);
        let values: BTreeSet<usize> = (0..4).chain(neighbouring).collect();
        let count = self.plan.any.len();
        let mut spot_checks: Vec<Vec<usize>> = Vec::new();
        for v in values {
            spot_checks.push(vec![v; count]);
            if count > 1 {
                for i in 0..count {
                    spot_checks.extend(
                        [1, 3].map(|other| {
                            (0..count).map(|j| if i == j { v } else { other }).collect()
                        }),
                    );
                }
            }
        }
        spot_checks.sort_by_key(|v: &Vec<usize>| v.iter().sum::<usize>());
        spot_checks.dedup();
        let mut left = 1_000 + (states / 50).min(MOST_SPOT_STATES);
        for values in spot_checks.iter().take(MAX_SPOT_CHECKS) {
            let Ok(loaded) = self.load(values) else { continue };
            let Ok(formula) = properties::read(self.text(), &loaded.data, &loaded.actions) else {
                continue;
            };
            let (model, labels) = (&*loaded.model, &*loaded.labels);
            let options = self.session.explore_options(model, &self.plan.search.without);
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

/// Returns the numbers in a text.
pub(super) fn numbers_in(text: &str) -> Vec<usize> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'');
    let mut all: Vec<usize> = words.filter_map(|w| w.parse().ok()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns a number and its neighbours.
fn neighbours(n: usize) -> [usize; 3] {
    [n.saturating_sub(1), n, n.saturating_add(1)]
}

/// Returns all valuations of `count` parameters with this sum.
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
