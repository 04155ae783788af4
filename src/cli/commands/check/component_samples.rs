//! Audit of *true for every value* by sampled instances with components, before the verdict is
//! printed: [`mu_regions::audit_components`] for each case, with 1 to 6 components and with more
//! components than the abstraction has.
//!
//! Each instance is the text of the model for its number of components, expanded, type-checked and
//! linearised separately. Cost: the time that the caller allows, plus the linearisation of one
//! instance.

use super::every_value::{Abstract, FormulaInstance, with_merged_constants};
use crate::pipeline::Session;
use mu_base::host::Instant;
use mu_base::random::Random;
use mu_base::source::SourceMap;
use mu_base::{Diagnostic, Stage, narrow};
use mu_process::linearise;
use mu_regions::audit::AuditRequest;
use mu_regions::constant_counts;
use mu_regions::sizes::SIZE;
use mu_regions::thread_modular::LocalState;
use mu_regions::{
    Audit, Case, Components, ExpandedInstance, Family, Study, ThreadModularAbstraction,
    audit_components,
};
use mu_syntax::template;
use std::path::Path;
use std::time::Duration;

/// Numbers of components, in the order of trial.
const SIZES: [usize; 8] = [3, SIZE + 1, 2, 1, 4, SIZE + 3, 5, 6];

/// A text with a parameter that counts components.
pub(super) struct ComponentText {
    name: String,
    text: String,
    defines: Vec<(String, String)>,
    size: String,
}

impl ComponentText {
    /// Stores the text of the model. `sizes`: all parameters that count constants; `size`: the one
    /// that counts components.
    pub fn new(
        session: &Session,
        model: &Path,
        text: &str,
        (sizes, size): (&[String], &str),
    ) -> Self {
        let value = |name: &str, written: &str| {
            if sizes.iter().any(|s| s == name) { SIZE.to_string() } else { written.to_string() }
        };
        let pairs = session.common.define.iter().filter_map(|d| d.split_once('='));
        let defines =
            pairs.map(|(n, v)| (n.trim().to_string(), value(n.trim(), v.trim()))).collect();
        Self {
            name: model.display().to_string(),
            text: text.to_string(),
            defines,
            size: size.to_string(),
        }
    }

    /// Builds the instance with this number of components.
    fn instance(&self, session: &Session, size: usize) -> Result<ExpandedInstance, Diagnostic> {
        let mut sources = SourceMap::new();
        let mut parse = |size: usize| {
            let mut defines = self.defines.clone();
            defines.iter_mut().filter(|d| d.0 == self.size).for_each(|d| d.1 = size.to_string());
            // A number that the file excludes is no less an instance of the abstraction.
            let of = std::slice::from_ref(&self.size);
            let expanded = template::expand_representative(
                &self.name,
                &self.text,
                &defines,
                of,
                &mut sources,
            )?;
            mu_syntax::parse_specification(expanded.source, &expanded.text)
        };
        let (tree, above) = (parse(size)?, parse(size + 1)?);
        let depends = |d: constant_counts::ValueDependence| {
            Diagnostic::new(Stage::Unsupported, format!("{} depends on `{}`", d.what, self.size))
        };
        let names = constant_counts::constants(size, &tree, &above).map_err(depends)?.names;
        let spec = mu_process::typecheck::check_specification(&tree)?;
        let process =
            session.linearise(&spec, &linearise::LineariserOptions::of_any_number(&[]))?;
        Ok(ExpandedInstance { process, names })
    }
}

/// Input of the audit.
pub(super) struct ComponentAudit<'s, 'a> {
    pub session: &'a Session,
    pub model: &'a Abstract,
    pub studies: &'a [(&'s FormulaInstance, &'s Study<'s>)],
    /// By case: the local states of untracked components; none if the case needs no model.
    pub members: &'a [Vec<LocalState>],
    pub samples: usize,
    pub seed: u64,
    /// The time for all samples.
    pub limit: Duration,
}

/// Minimum time for a case and an instance.
const MIN_TIME: Duration = Duration::from_millis(50);
/// Minimum number of samples for a case and an instance.
const MIN_SAMPLES: usize = 20;

impl ComponentAudit<'_, '_> {
    /// Audits the cases on instances, in a random order.
    pub fn run(&self) -> Result<Audit, Diagnostic> {
        let Some(crowd) = &self.model.crowd else { return Ok(Audit::default()) };
        let start = Instant::now();
        let mut all = Audit::default();
        let mut instances: [Option<Result<ExpandedInstance, String>>; SIZES.len()] =
            Default::default();
        let cases: Vec<_> = self
            .studies
            .iter()
            .flat_map(|(f, s)| s.cases().iter().map(move |c| (*f, *s, c)))
            .collect();
        let mut pairs: Vec<(usize, usize)> =
            (0..cases.len()).flat_map(|c| (0..SIZES.len()).map(move |i| (c, i))).collect();
        pairs.retain(|(c, i)| {
            self.members.get(*c).is_some_and(|members| !members.is_empty())
                && SIZES[*i] >= cases[*c].0.tracked.last().copied().unwrap_or_default()
        });
        let mut random = Random::new(self.seed);
        for i in (1..pairs.len()).rev() {
            pairs.swap(i, random.below(i + 1));
        }
        let each = self.samples.div_ceil(pairs.len().max(1)).max(MIN_SAMPLES);
        let (count, mut why) = (pairs.len(), None);
        if count == 0 {
            why = Some("components of any number: no case needs a model".into());
        }
        for (turn, (c, i)) in pairs.into_iter().enumerate() {
            let used = start.elapsed();
            if turn > 0 && used > self.limit
                || all.samples >= self.samples
                || self.session.budget.check(0).is_err()
            {
                break;
            }
            let made = match &mut instances[i] {
                Some(made) => made,
                open => open.insert(match crowd.instance(self.session, SIZES[i]) {
                    Err(error) if error.stage == Stage::Internal => return Err(error),
                    made => made.map_err(|error| {
                        format!("the instance of {} components: {}", SIZES[i], error.message)
                    }),
                }),
            };
            let instance = match made {
                Ok(instance) => instance,
                Err(text) => {
                    why = Some(text.clone());
                    continue;
                }
            };
            let share =
                (self.limit.saturating_sub(used) / narrow::index(count - turn)).max(MIN_TIME);
            let begin = Instant::now();
            let enough = || begin.elapsed() > share || self.session.budget.check(0).is_err();
            let found = self.case(
                cases[c],
                &self.members[c],
                instance,
                (each, self.seed + turn as u64),
                &enough,
            );
            match found {
                Ok(mut found) => {
                    why = found.unchecked.take().or(why);
                    all.add(found);
                }
                // A limit.
                Err(error) if error.stage != Stage::Internal => {}
                Err(error) => return Err(error),
            }
        }
        if all.samples == 0 {
            all.unchecked = Some(
                why.unwrap_or_else(|| "components of any number: no time for an instance".into()),
            );
        }
        Ok(all)
    }

    /// Audits one case on one instance.
    fn case(
        &self,
        (formula, study, case): (&FormulaInstance, &Study, &Case),
        members: &[LocalState],
        instance: &ExpandedInstance,
        (samples, seed): (usize, u64),
        enough: &dyn Fn() -> bool,
    ) -> Result<Audit, Diagnostic> {
        let Some(replicas) = &self.model.replicas else { return Ok(Audit::default()) };
        let tracked = formula.tracked.last().copied().unwrap_or_default();
        let order: Vec<usize> = (0..tracked).collect();
        let families: Vec<(&Family, usize)> =
            self.model.families.iter().zip(formula.tracked.iter().copied()).collect();
        let regions = study.model(case)?;
        with_merged_constants(&regions, &families, &mut |base| {
            let crowd = ThreadModularAbstraction::new(base, replicas, &order, members)?;
            let process = &self.model.process;
            let wanted = AuditRequest { study, case, base: &crowd, process, samples, seed, enough };
            audit_components(&wanted, &Components { crowd: &crowd, members, instance })
        })
    }
}
