//! Concrete instances of parameters set to `any`: search for the smallest value that falsifies a
//! formula, and spot checks before a formula is called true.
//!
//! In: names of parameters, a formula. [`Instances::counterexample`] checks the models with the
//! values 0, 1, 2, … (several parameters: by their sum), then with the values that represent cases
//! of the abstraction. It stops if the formula is false, and returns the replayed evidence.
//! [`Instances::spot_check_counterexample`] checks a few small values, and the neighbours of each
//! number in the text, before a formula is called true. Spot checks do not use the abstraction, so
//! they detect its errors. Cost: both are bounded by numbers of states, never by time, so the
//! answer is deterministic.

use super::by_equations;
use super::explanation::{self, FormulaResult, ParameterValues};
use super::plan::CheckPlan;
use super::report::FormulaOutcome;
use crate::output;
use crate::pipeline::Session;
use crate::pipeline::load::Loaded;
use crate::pipeline::properties::{self, FormulaText};
use mu_base::host::Instant;
use mu_base::limits::Limits;
use mu_base::{Budget, Diagnostic, Stage};
use mu_formula::typed::TypedFormula;
use mu_pbes::{Answer, Options, Verdict, check};
use mu_regions::sizes::SIZE;
use std::collections::BTreeSet;

/// The search by sums ends after a model with more states than this.
const MAX_STATES: u64 = 2_000_000;
/// Beyond this number of models, the search by sums continues only while all models together have
/// at most [`CHEAP_STATES`].
const FEW_MODELS: usize = 24;
/// See [`FEW_MODELS`].
const CHEAP_STATES: u64 = 100_000;
/// Maximum number of models in the search by sums.
const MAX_MODELS: usize = 400;
/// The search by sums ends if the file excludes more values than this.
const MAX_EXCLUDED: usize = 4_000;
/// The search by sums ends at this sum, or at two above the greatest number in the text: a
/// comparison with `n` changes at `n + 1`, and a step can add one more.
const MAX_SUM: usize = 24;
/// Larger numbers in the text are ignored.
const MAX_LITERAL: usize = 300;
/// The search by sums ends if more values than this have no model.
const MAX_WITHOUT_MODEL: usize = 100;
/// Limit on values for which the formula is not defined, before one for which it is; beyond it the
/// search ends with the error of the formula. The model over parameters without a value has fewer
/// constants of a sort.
const MAX_WITHOUT_FORMULA: usize = SIZE + 1;
/// Spot checks explore at most this number of states, and one for each
/// [`PROOF_STATES_PER_SPOT_STATE`] states of the proof, up to [`MAX_EXTRA_SPOT_STATES`].
const BASE_SPOT_STATES: u64 = 1_000;
/// See [`BASE_SPOT_STATES`].
const PROOF_STATES_PER_SPOT_STATE: u64 = 50;
/// See [`BASE_SPOT_STATES`].
const MAX_EXTRA_SPOT_STATES: u64 = 20_000;
/// Maximum number of spot checks. Values that the file excludes do not count.
const MAX_SPOT_CHECKS: usize = 24;
/// Maximum number of models in the quick search, before the abstraction is tried. Values that the
/// file excludes do not count, up to [`MAX_QUICK`] values.
const QUICK_MODELS: usize = 12;
/// See [`QUICK_MODELS`].
const MAX_QUICK: usize = 200;
/// Maximum number of states of all models in the quick search.
const QUICK_STATES: u64 = 2_000;
/// Maximum number of valuations from the cases of the abstraction, and next to numbers in the text,
/// that are checked. Values that the file excludes do not count.
const MAX_CASES: usize = 24;
/// Limit on the states of a model from the cases of the abstraction.
const CASE_STATES: u64 = 25_000;
/// Maximum number of valuations of several parameters that are listed.
const MAX_LISTED: usize = 8;

/// Result of the search for a counterexample.
pub(super) enum InstanceSearchResult {
    /// The formula is false for a value.
    False(FormulaOutcome),
    /// The formula is true for all values that the constraints of the file admit: each of them has
    /// been checked. The text lists them.
    TrueForAll(String),
    /// The formula is false for no checked value. The text lists the values and the reason to stop,
    /// if known.
    Unknown(Option<String>),
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
    /// The formula is true.
    True,
    /// The formula is true, and the model is so large that the search ends.
    TrueAtLimit,
    /// The file excludes the value.
    Excluded,
    /// The file admits the value, but its model cannot be read or checked.
    NoModel,
    /// A limit: larger values would reach it too.
    Limit,
}

/// State of a search over instances.
#[derive(Default)]
struct InstanceSearch {
    /// Values for which the formula is true.
    satisfied: Vec<Vec<usize>>,
    /// Values that the file excludes.
    excluded: Vec<Vec<usize>>,
    /// Values that the file admits, without a model that can be read.
    without_model: Vec<Vec<usize>>,
    /// The first reason for a missing model.
    first_failure: Option<Diagnostic>,
    /// Number of these values that have a model, but the formula names what it does not have.
    without_formula: usize,
    /// All values up to this sum have been tried.
    complete: Option<usize>,
    /// True if a limit ended the search over small values.
    is_limited: bool,
    /// True if the search has continued with cases of the abstraction.
    in_case_phase: bool,
    /// Sum of the states of all models.
    states: u64,
    /// Reason for the end of the search.
    stop_reason: Option<String>,
}

impl InstanceSearch {
    /// True if each valuation with a smaller sum that the file admits has been checked, and
    /// satisfies the formula.
    fn is_least(&self, values: &[usize]) -> bool {
        let sum_of_values = sum(values);
        (!self.in_case_phase || sum_of_values <= self.complete.map_or(0, |sum| sum + 1))
            && self.without_model.iter().all(|without| sum(without) >= sum_of_values)
    }

    /// True if the formula may be undefined for one more value: an error of its types that all
    /// values have ends the search.
    fn may_lack_formula(&self) -> bool {
        !self.satisfied.is_empty() || self.without_formula < MAX_WITHOUT_FORMULA
    }

    /// Describes the checked values and the reason to stop; `None` if there are neither.
    fn text(&self, names: &[String]) -> Option<String> {
        let within = |values: &&Vec<usize>| self.complete.is_some_and(|most| sum(values) <= most);
        let (satisfied, beyond): (Vec<_>, Vec<_>) =
            self.satisfied.iter().partition(|values| within(values));
        let excluded = self.excluded.iter().filter(within).count();
        let without_model = self.without_model.iter().filter(within).count();
        let numbers = |of: &[Vec<usize>]| {
            ranges(&of.iter().filter(within).map(|values| sum(values)).collect::<Vec<_>>())
        };
        let mut parts = Vec::new();
        if let Some(most) = self.complete.filter(|_| !satisfied.is_empty()) {
            let none = excluded + without_model == 0;
            let mut text = match names {
                [name] if none => format!("true for {name} up to {most}, one by one"),
                [name] => format!("true for {name} = {}, one by one", numbers(&self.satisfied)),
                _ if none => format!("true for values up to a sum of {most}, one by one"),
                _ => format!(
                    "true for {} of the {} values up to a sum of {most}, one by one",
                    satisfied.len(),
                    satisfied.len() + excluded + without_model
                ),
            };
            let unsupported =
                self.first_failure.as_ref().filter(|why| why.stage == Stage::Unsupported);
            let missing = match unsupported {
                Some(why) => format!("not checked one by one ({}):", why.message),
                None if self.without_formula > 0 => {
                    "the model or the formula is not defined for".into()
                }
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
            let at = |values: &&Vec<usize>| valuation_text(names, values);
            let which = match names {
                [name] => {
                    let numbers: BTreeSet<usize> =
                        beyond.iter().map(|values| sum(values)).collect();
                    format!("{name} = {}", ranges(&numbers.into_iter().collect::<Vec<_>>()))
                }
                _ => {
                    let more = if beyond.len() > MAX_LISTED { "; …" } else { "" };
                    beyond.iter().take(MAX_LISTED).map(at).collect::<Vec<_>>().join("; ") + more
                }
            };
            parts.push(format!("true for {which}"));
        }
        parts.extend(self.stop_reason.clone());
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Formats a valuation, such as `n = 1, m = 2`.
fn valuation_text(names: &[String], values: &[usize]) -> String {
    let parts: Vec<String> =
        names.iter().zip(values).map(|(name, value)| format!("{name} = {value}")).collect();
    parts.join(", ")
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

/// Reason why a value has no instance.
enum NoInstance {
    /// The file excludes the value, by the sort or the constraint of the parameter.
    Excluded,
    /// A limit.
    Limit,
    /// The model cannot be read or checked.
    Error(Diagnostic),
}

impl Instances<'_> {
    fn text(&self) -> &FormulaText {
        &self.plan.texts[self.formula]
    }

    /// Returns the values as text.
    pub fn at(&self, values: &[usize]) -> String {
        valuation_text(&self.plan.any, values)
    }

    /// Loads the model for these values.
    fn load(&mut self, values: &[usize]) -> Result<Loaded, NoInstance> {
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
        // Loading records the parameters for the report: keep those of the command line.
        let parameters = output::recorded_parameters();
        let loaded = self.session.load(&self.plan.model, &self.plan.search.confluence);
        output::restore_parameters(parameters);
        self.session.common.define = written;
        loaded.map_err(|error| match error.stage {
            _ if error.stop.is_some() => NoInstance::Limit,
            _ if mu_syntax::template::rejects_value(&error) => NoInstance::Excluded,
            _ => NoInstance::Error(error),
        })
    }

    /// Returns the numbers in the model and the formula, up to [`MAX_LITERAL`].
    fn numbers(&self) -> BTreeSet<usize> {
        let own = numbers_in(&self.text().text);
        self.literals.iter().copied().chain(own).filter(|n| *n <= MAX_LITERAL).collect()
    }

    /// Searches for the smallest value that falsifies the formula, then among values that represent
    /// cases of the abstraction (`cases`). Returns the first counterexample.
    pub fn counterexample(
        &mut self,
        cases: &[Vec<usize>],
    ) -> Result<InstanceSearchResult, Diagnostic> {
        let most = self.numbers().last().map_or(MAX_SUM, |n| MAX_SUM.max(n + 2));
        let greatest = self.greatest_sum()?;
        let mut search = InstanceSearch::default();
        // The first sum of values with a model.
        let mut first = None;
        'sums: for sum in 0.. {
            let far = first.map_or(0, |first| first + MAX_SUM);
            if sum > greatest.map_or(most.max(far), |greatest| most.max(far).min(greatest)) {
                break;
            }
            for values in valuations(self.plan.any.len(), sum) {
                let tried = search.satisfied.len();
                if tried >= FEW_MODELS && (search.states > CHEAP_STATES || tried >= MAX_MODELS) {
                    break 'sums;
                }
                match self.instance(values, &mut search, None)? {
                    InstanceResult::False(outcome) => {
                        return Ok(InstanceSearchResult::False(outcome));
                    }
                    InstanceResult::Limit | InstanceResult::TrueAtLimit => {
                        search.is_limited = true;
                        break 'sums;
                    }
                    InstanceResult::NoModel if search.without_model.len() > MAX_WITHOUT_MODEL => {
                        break 'sums;
                    }
                    InstanceResult::Excluded if search.excluded.len() > MAX_EXCLUDED => {
                        break 'sums;
                    }
                    InstanceResult::NoModel | InstanceResult::Excluded => {}
                    InstanceResult::True => {
                        first.get_or_insert(sum);
                    }
                }
            }
            search.complete = Some(sum);
        }
        let is_complete = greatest.is_some() && greatest == search.complete;
        if is_complete && search.without_model.is_empty() && !search.satisfied.is_empty() {
            return Ok(InstanceSearchResult::TrueForAll(
                search.text(&self.plan.any).unwrap_or_default(),
            ));
        }
        // Larger values reach the same limit.
        if !search.is_limited {
            let cases = self.far_values(cases, search.complete)?;
            search.in_case_phase = true;
            // Limits of these instances are not reported.
            let stop_reason = search.stop_reason.clone();
            let mut left = MAX_CASES;
            for values in cases {
                match self.instance(values, &mut search, Some(CASE_STATES))? {
                    InstanceResult::False(outcome) => {
                        return Ok(InstanceSearchResult::False(outcome));
                    }
                    InstanceResult::Limit | InstanceResult::TrueAtLimit => break,
                    InstanceResult::Excluded => {}
                    InstanceResult::NoModel | InstanceResult::True => left -= 1,
                }
                if left == 0 {
                    break;
                }
            }
            search.stop_reason = stop_reason;
        }
        // No value has a model.
        if search.satisfied.is_empty()
            && search.stop_reason.is_none()
            && let Some(error) = search.first_failure.take()
        {
            return Err(error);
        }
        Ok(InstanceSearchResult::Unknown(search.text(&self.plan.any)))
    }

    /// Checks the smallest values one by one, up to [`QUICK_MODELS`] of them with [`QUICK_STATES`]
    /// states together. Returns the outcome if the formula is false for one. Limits, and errors
    /// other than internal ones, end this search without an answer.
    pub fn quick_counterexample(&mut self) -> Result<Option<FormulaOutcome>, Diagnostic> {
        let mut search = InstanceSearch::default();
        let (count, mut tried) = (self.plan.any.len(), 0);
        let small = (0..MAX_QUICK).flat_map(|sum| valuations(count, sum));
        for values in small.take(MAX_QUICK) {
            let left = QUICK_STATES.saturating_sub(search.states);
            match self.instance(values, &mut search, Some(left)) {
                Ok(InstanceResult::False(outcome)) => return Ok(Some(outcome)),
                Err(why) if why.stage == Stage::Internal => return Err(why),
                Ok(InstanceResult::Limit | InstanceResult::TrueAtLimit) | Err(_) => break,
                Ok(InstanceResult::Excluded) => {}
                Ok(InstanceResult::NoModel | InstanceResult::True) => tried += 1,
            }
            if tried == QUICK_MODELS {
                break;
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
    /// text, in ascending order; of several parameters, all choices of these. `complete`: the sum
    /// up to which all values are checked. If a parameter is the number of constants of a sort,
    /// numbers above [`MAX_LITERAL`] are left out, because the expanded text lists every constant.
    fn far_values(
        &mut self,
        cases: &[Vec<usize>],
        complete: Option<usize>,
    ) -> Result<Vec<Vec<usize>>, Diagnostic> {
        let counting =
            mu_regions::constant_counts::counting_parameters(&self.session.read(&self.plan.model)?);
        let most = if self.plan.any.iter().any(|n| counting.contains(n)) {
            MAX_LITERAL
        } else {
            usize::MAX
        };
        let numbers = self.literals.iter().copied().chain(numbers_in(&self.text().text));
        let numbers: BTreeSet<usize> = numbers.flat_map(neighbours).collect();
        let mut neighbouring = vec![Vec::new()];
        for _ in &self.plan.any {
            let longer = |values: &Vec<usize>| {
                numbers.iter().map(|n| [&values[..], &[*n]].concat()).collect::<Vec<_>>()
            };
            // Too many choices: those of the smallest numbers of the first parameters.
            let fewer = neighbouring.iter().take(MAX_EXCLUDED / numbers.len().max(1));
            neighbouring = fewer.flat_map(longer).collect();
        }
        let all = cases.iter().cloned().chain(neighbouring);
        let beyond = |values: &Vec<usize>| complete.is_none_or(|most| sum(values) > most);
        let values: BTreeSet<(usize, Vec<usize>)> = all
            .filter(|v| beyond(v) && sum(v) <= most)
            .map(|values| (sum(&values), values))
            .collect();
        Ok(values.into_iter().map(|v| v.1).take(MAX_EXCLUDED).collect())
    }

    /// Checks the formula for one valuation. `most`: the limit on states, for values that are not
    /// reached one by one.
    fn instance(
        &mut self,
        values: Vec<usize>,
        search: &mut InstanceSearch,
        most: Option<u64>,
    ) -> Result<InstanceResult, Diagnostic> {
        let sources = self.session.sources.clone();
        let found = self.check_instance(values, search, most);
        if let Ok(InstanceResult::Excluded | InstanceResult::True | InstanceResult::TrueAtLimit) =
            found
        {
            // No result has a place in the text of this instance.
            self.session.sources = sources;
        }
        found
    }

    /// Checks the instance with these values.
    fn check_instance(
        &mut self,
        values: Vec<usize>,
        search: &mut InstanceSearch,
        most: Option<u64>,
    ) -> Result<InstanceResult, Diagnostic> {
        let start = Instant::now();
        let loaded = match self.load(&values) {
            Ok(loaded) => loaded,
            Err(NoInstance::Excluded) => {
                search.excluded.push(values);
                return Ok(InstanceResult::Excluded);
            }
            Err(NoInstance::Limit) => return Ok(InstanceResult::Limit),
            Err(NoInstance::Error(error)) if error.stage == Stage::Internal => return Err(error),
            // A value may have no model: for example, 0 constants make a sort empty.
            Err(NoInstance::Error(error)) => {
                search.without_model.push(values);
                search.first_failure.get_or_insert(error);
                return Ok(InstanceResult::NoModel);
            }
        };
        let formula = match properties::read(self.text(), &loaded.data, &loaded.actions) {
            // The formula may name a constant that larger values declare.
            Err(error) if error.stage == Stage::Type && search.may_lack_formula() => {
                search.without_model.push(values);
                search.without_formula += 1;
                search.first_failure.get_or_insert(error);
                return Ok(InstanceResult::NoModel);
            }
            formula => formula?,
        };
        let options = self.session.explore_options(&*loaded.model, &self.plan.search.without);
        let limits = self.session.budget.limits();
        let limits =
            Limits { max_states: limits.max_states.into_iter().chain(most).min(), ..*limits };
        let budget = self.session.budget.with_limits(limits);
        let chosen = Options { witnesses: false, ..Options::new(&options) };
        let answer = self.answer(&loaded, &formula, chosen, &budget);
        let at = self.at(&values);
        let (answer, why) = match answer {
            Err(error) if error.stage == Stage::Internal => return Err(error),
            Err(error) => {
                search.stop_reason.get_or_insert_with(|| format!("{at}: {}", error.message));
                return Ok(InstanceResult::Limit);
            }
            Ok(answer) => answer,
        };
        self.session.log(format!("{at}: {:?}, {} states", answer.verdict, answer.states));
        search.states += answer.states;
        let large = answer.states > MAX_STATES;
        match answer.verdict {
            Verdict::False => {
                let at = ParameterValues { values: at, least: search.is_least(&values) };
                let found = FormulaResult {
                    answer,
                    by_equations: why.is_some(),
                    why,
                    at: Some(at),
                    seconds: start.elapsed().as_secs_f64(),
                };
                let formula = (self.formula, &formula);
                let outcome =
                    explanation::outcome(self.session, self.plan, &loaded, formula, found)?;
                return Ok(InstanceResult::False(outcome));
            }
            Verdict::Unknown(stop) => {
                search.stop_reason.get_or_insert_with(|| format!("{at}: {}", stop.word()));
                return Ok(InstanceResult::Limit);
            }
            Verdict::True => search.satisfied.push(values),
        }
        Ok(if large { InstanceResult::TrueAtLimit } else { InstanceResult::True })
    }

    /// Checks the formula on a model; as an equation system, with the reason, if the search of
    /// states lacks a value.
    fn answer(
        &self,
        loaded: &Loaded,
        formula: &TypedFormula,
        chosen: Options,
        budget: &Budget,
    ) -> Result<(Answer, Option<String>), Diagnostic> {
        let error = match check(&*loaded.model, &*loaded.labels, formula, chosen, budget) {
            Err(error) if by_equations::lacks_value(&error, loaded) => error,
            answer => return Ok((answer?, None)),
        };
        let solver = self.plan.search.solver;
        match by_equations::decide(self.session, loaded, formula, solver, budget) {
            Ok(Some((value, equations))) => {
                let why = by_equations::reason(&error);
                Ok((by_equations::answer(value, equations), Some(why)))
            }
            Err(Diagnostic { stop: Some(stop), .. }) => {
                Ok((explanation::answer_after_limit(stop, "explicit"), None))
            }
            Err(other) if other.stage == Stage::Internal => Err(other),
            // The first error names the place in the model.
            _ => Err(error),
        }
    }

    /// Spot-checks a formula that is about to be called true: small values, and the neighbours of
    /// numbers in the text, within a number of states that grows with the states of the proof
    /// (`states`). Returns values that falsify the formula; `None` if no checked values do.
    pub fn spot_check_counterexample(
        &mut self,
        states: u64,
    ) -> Result<Option<Vec<usize>>, Diagnostic> {
        let numbers = self.numbers();
        let neighbouring = numbers.into_iter().flat_map(neighbours);
        let values: BTreeSet<usize> = (0..4).chain(neighbouring).collect();
        let count = self.plan.any.len();
        let mut valuations = Vec::new();
        for v in values {
            valuations.push(vec![v; count]);
            for i in (0..count).filter(|_| count > 1) {
                let with_others =
                    |other| (0..count).map(|j| if i == j { v } else { other }).collect();
                valuations.extend([1, 3].map(with_others));
            }
        }
        let spot_checks: BTreeSet<(usize, Vec<usize>)> =
            valuations.into_iter().map(|values| (sum(&values), values)).collect();
        let mut left =
            BASE_SPOT_STATES + (states / PROOF_STATES_PER_SPOT_STATE).min(MAX_EXTRA_SPOT_STATES);
        let mut checks = 0;
        let sources = self.session.sources.clone();
        for (_, values) in &spot_checks {
            if checks == MAX_SPOT_CHECKS {
                break;
            }
            self.session.sources.clone_from(&sources);
            let loaded = match self.load(values) {
                Err(NoInstance::Excluded) => continue,
                Err(NoInstance::Limit) => break,
                loaded => loaded,
            };
            checks += 1;
            let loaded = match loaded {
                Ok(loaded) => loaded,
                Err(NoInstance::Error(error)) if error.stage == Stage::Internal => {
                    return Err(error);
                }
                Err(_) => continue,
            };
            let Ok(formula) = properties::read(self.text(), &loaded.data, &loaded.actions) else {
                continue;
            };
            let options = self.session.explore_options(&*loaded.model, &self.plan.search.without);
            let limits = self.session.budget.limits();
            let limits =
                Limits { max_states: Some(limits.max_states.unwrap_or(left).min(left)), ..*limits };
            let chosen = Options { evidence: false, witnesses: false, ..Options::new(&options) };
            let budget = self.session.budget.with_limits(limits);
            let Ok((answer, _)) = self.answer(&loaded, &formula, chosen, &budget) else {
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

/// Returns the numbers among the words of a text (comments included), ascending, each once.
pub(super) fn numbers_in(text: &str) -> Vec<usize> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'');
    let mut all: Vec<usize> = words.filter_map(|w| w.parse().ok()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Returns the numbers of a model with parameters, without comments, ascending, each once.
pub(super) fn numbers_in_model(text: &str) -> Vec<usize> {
    let lines = text.lines().map(|line| line.split_once('%').map_or(line, |(before, _)| before));
    numbers_in(&lines.collect::<Vec<&str>>().join("\n"))
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
