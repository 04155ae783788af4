//! Check of *true for every value* by samples of instances with components, before it is printed:
//! [`mu_regions::audit_components`] for each case, with 1 to 6 components and with more than the
//! abstraction has.
//!
//! Each instance is the text of the model for its number of components, expanded, type-checked and
//! linearised by itself. Cost: the time that the caller allows, beyond the linearisation of one instance.

use super::args::CheckArgs;
use super::pipeline::Session;
use super::unbounded::{Abstract, Instance as FormulaInstance, merged};
use mu_base::source::SourceMap;
use mu_base::{Diagnostic, Stage};
use mu_process::linearise;
use mu_regions::audit::Wanted;
use mu_regions::counted;
use mu_regions::crowd::Member;
use mu_regions::sizes::SIZE;
use mu_regions::{Audit, Components, Crowd, Family, Instance, Study, audit_components};
use mu_syntax::template;

/// The numbers of components, in the order in which they are tried.
const SIZES: [usize; 8] = [3, SIZE + 1, 2, 1, 4, SIZE + 3, 5, 6];

/// A text with a parameter that counts components.
pub(super) struct Crowded {
    name: String,
    text: String,
    defines: Vec<(String, String)>,
    size: String,
}

impl Crowded {
    /// The text of the model. `sizes`: all parameters that count constants; `size`: the one that
    /// counts components.
    pub fn new(session: &Session, args: &CheckArgs, text: &str, (sizes, size): (&[String], &str)) -> Self {
        let value = |name: &str, written: &str| if sizes.iter().any(|s| s == name) { SIZE.to_string() } else { written.to_string() };
        let pairs = session.common.define.iter().filter_map(|d| d.split_once('='));
        let defines = pairs.map(|(n, v)| (n.trim().to_string(), value(n.trim(), v.trim()))).collect();
        Self { name: args.model.display().to_string(), text: text.to_string(), defines, size: size.to_string() }
    }

    /// The instance of a number of components.
    fn instance(&self, session: &Session, size: usize) -> Result<Instance, Diagnostic> {
        let mut sources = SourceMap::new();
        let mut parse = |size: usize| {
            let mut defines = self.defines.clone();
            defines.iter_mut().filter(|d| d.0 == self.size).for_each(|d| d.1 = size.to_string());
            let expanded = template::expand(&self.name, &self.text, &defines, &mut sources)?;
            mu_syntax::parse_specification(expanded.source, &expanded.text)
        };
        let (tree, above) = (parse(size)?, parse(size + 1)?);
        let depends = |d: counted::Depends| Diagnostic::new(Stage::Unsupported, format!("{} depends on `{}`", d.what, self.size));
        let names = counted::constants(size, &tree, &above).map_err(depends)?.names;
        let spec = mu_process::typecheck::check_specification(&tree)?;
        let process = session.linearised(&spec, &linearise::Options::of_any_number())?;
        Ok(Instance { process, names })
    }
}

/// What is to be sampled.
pub(super) struct Sampled<'s, 'a> {
    pub session: &'a Session,
    pub model: &'a Abstract,
    pub studies: &'a [(&'s FormulaInstance, &'s Study<'s>)],
    /// By case: the local states of untracked components.
    pub members: &'a [Vec<Member>],
    pub samples: usize,
    pub seed: u64,
    /// True when a part of the time is used up.
    pub enough: &'a dyn Fn(f64) -> bool,
}

impl Sampled<'_, '_> {
    /// Checks all cases of all studies against instances.
    pub fn run(&self) -> Result<Audit, Diagnostic> {
        let (Some(crowd), Some(replicas)) = (&self.model.crowd, &self.model.replicas) else { return Ok(Audit::default()) };
        let mut all = Audit::default();
        let mut instances: Vec<Option<Instance>> = Vec::new();
        let mut why = None;
        let cases: Vec<_> = self.studies.iter().flat_map(|(f, s)| s.cases().iter().map(move |c| (*f, *s, c))).collect();
        let turns = cases.len().max(1) * SIZES.len();
        for (turn, ((formula, study, case), members)) in cases.into_iter().zip(self.members).enumerate() {
            let tracked = formula.tracked.last().copied().unwrap_or_default();
            let families: Vec<(&Family, usize)> = self.model.families.iter().zip(formula.tracked.iter().copied()).collect();
            let order: Vec<usize> = (0..tracked).collect();
            let regions = study.model(case)?;
            for (i, size) in SIZES.into_iter().enumerate() {
                let turn = turn * SIZES.len() + i + 1;
                let part = turn as f64 / turns as f64;
                if size < tracked || (self.enough)(part) {
                    continue;
                }
                while instances.len() <= i {
                    let size = SIZES[instances.len()];
                    instances.push(match crowd.instance(self.session, size) {
                        Ok(instance) => Some(instance),
                        Err(error) if error.stage == Stage::Internal => return Err(error),
                        Err(error) => {
                            why = Some(format!("the instance of {size} components: {}", error.message));
                            None
                        }
                    });
                }
                let Some(instance) = &instances[i] else { continue };
                let found = merged(&regions, &families, &mut |base| {
                    let crowd = Crowd::new(base, replicas, &order, members)?;
                    let wanted = Wanted {
                        study,
                        case,
                        base: &crowd,
                        process: &self.model.process,
                        samples: self.samples.div_ceil(turns),
                        seed: self.seed + turn as u64,
                        enough: &|| (self.enough)(part),
                    };
                    audit_components(&wanted, &Components { crowd: &crowd, members, instance })
                });
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
        }
        if all.samples == 0 {
            all.unchecked = Some(why.unwrap_or_else(|| "components of any number: no time for an instance".into()));
        }
        Ok(all)
    }
}
