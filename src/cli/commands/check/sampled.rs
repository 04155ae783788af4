//! Audit of *true for every value* by samples, before the verdict is printed: [`mu_regions::audit`]
//! for each case of each abstract model.
//!
//! A violation is an internal error with the concrete state. Cost: at most a tenth of the time of
//! the run, and at least some milliseconds.

use super::component_samples::ComponentAudit;
use super::every_value::{Abstract, FormulaInstance, with_merged_constants};
use crate::output::progress::count_text;
use crate::pipeline::Session;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage, narrow};
use mu_regions::audit::AuditRequest;
use mu_regions::thread_modular::LocalState;
use mu_regions::{Audit, Family, Study, audit};
use serde_json::{Value, json};
use std::time::Duration;

/// Minimum time for samples.
const MIN_TIME: Duration = Duration::from_millis(50);
/// The samples take one part in `PART` of the time of the run.
const PART: u32 = 10;
/// Seed of the samples; runs are deterministic except for limits.
const SEED: u64 = 0x5eed;

/// Result of the audit of an answer.
#[derive(Clone, Default)]
pub(super) struct AuditedAnswer {
    /// Samples of the abstract models.
    audit: Audit,
    /// True if the audit is switched off.
    off: bool,
}

impl AuditedAnswer {
    /// Returns the result of the audit of a proof along paths. `wanted`: number of samples.
    pub fn of_paths(proof: &mu_zones::Proof, wanted: usize) -> Self {
        let mu_zones::AuditCounts { samples, steps, undecided } = proof.audited;
        let audit = Audit { samples, steps, undecided, unchecked: None };
        Self { audit, off: wanted == 0 }
    }

    /// Returns the result for JSON.
    pub fn object(&self) -> Value {
        let Audit { samples, steps, undecided, unchecked } = &self.audit;
        let unchecked = if self.off { Some("`--check-samples 0`") } else { unchecked.as_deref() };
        json!({ "samples": samples, "steps": steps, "undecided": undecided, "unchecked": unchecked })
    }

    /// Returns a line for people.
    pub fn text(&self) -> String {
        let Audit { samples, steps, unchecked, .. } = &self.audit;
        match unchecked {
            _ if self.off => "not checked by samples (`--check-samples 0`)".into(),
            Some(what) => format!("not checked by samples ({what})"),
            None => format!(
                "checked: {} with {}",
                count_text(*samples as u64, "concrete state"),
                count_text(*steps as u64, "step")
            ),
        }
    }
}

/// Audits the abstract models of studies with true formulas. `wanted`: number of samples;
/// `members`: local states of untracked components, by case; `took`: time that it took to find the
/// answer.
pub(super) fn check<'s>(
    session: &Session,
    wanted: usize,
    model: &Abstract,
    (studies, members): (
        impl Iterator<Item = (&'s FormulaInstance, &'s Study<'s>)> + Clone,
        &[Vec<LocalState>],
    ),
    took: Duration,
) -> Result<AuditedAnswer, Diagnostic> {
    let mut checked = AuditedAnswer { off: wanted == 0, ..AuditedAnswer::default() };
    if checked.off {
        return Ok(checked);
    }
    let start = Instant::now();
    let limit = MIN_TIME.max(took / PART);
    if model.replicas.is_some() {
        let (studies, samples) = (studies.collect::<Vec<_>>(), wanted);
        checked.audit = ComponentAudit {
            session,
            model,
            studies: &studies,
            members,
            samples,
            seed: SEED,
            limit,
        }
        .run()?;
        return Ok(checked);
    }
    let cases = studies.clone().map(|(_, s)| s.cases().len()).sum::<usize>().max(1);
    let mut seen = 0;
    for (instance, study) in studies {
        let families: Vec<(&Family, usize)> =
            model.families.iter().zip(instance.tracked.iter().copied()).collect();
        study.all_covered(SEED)?;
        for case in study.cases() {
            seen += 1;
            let until = limit * seen / narrow::index(cases);
            let regions = study.model(case)?;
            let found = with_merged_constants(&regions, &families, &mut |base| {
                audit(&AuditRequest {
                    study,
                    case,
                    base,
                    process: &model.process,
                    samples: wanted.div_ceil(cases),
                    seed: SEED + u64::from(seen),
                    enough: &|| start.elapsed() > until || session.budget.check(0).is_err(),
                })
            });
            match found {
                Ok(found) => checked.audit.add(found),
                // A limit.
                Err(why) if why.stage != Stage::Internal => {}
                Err(why) => return Err(why),
            }
        }
    }
    Ok(checked)
}
