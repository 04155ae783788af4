//! Strategy of `check` for every value of a parameter (`check -D NAME=any`).
//!
//! [`super::phases`] has the order of the methods. Proofs: along paths ([`super::path_proof`]),
//! verified by the checker of certificates; here, on the abstract models of [`mu_regions`], case by
//! case, with finer regions if a case is false. If all cases are true, the formula is true for
//! every value, and the verdict says if that is verified. Counterexamples: the concrete model for
//! 0, 1, 2, … until the formula is false; then the counterexample is replayed and printed, and its
//! value is the smallest one. Without either, the verdict is unknown, with the obstacle (a text
//! that depends on the value, an operation on numbers, a limit) and the cases that are true.
//!
//! For formulas with least fixed points, a proof that all runs terminate helps: see
//! [`mu_regions::measure`], and [`mu_regions::termination`] for any number of components. A
//! parameter that is the size of a sort ([`mu_regions::constant_counts`]) gets a value that
//! represents all values, and constants that the formula does not distinguish are merged
//! ([`mu_regions::sizes`]). If there are components for each constant, the distinguished ones are
//! tracked ([`mu_regions::thread_modular`]).

use super::Strategy;
use super::component_samples::ComponentText;
use super::instances::{numbers_in, numbers_in_model};
use super::phases::check_every_value;
use super::plan::CheckPlan;
use super::report::{CheckReport, FormulaOutcome, ReportedVerdict, Summary, with_text};
use super::sampled::{self, AuditedAnswer};
use super::verified::Verification;
use crate::output;
use crate::output::progress::count_text;
use crate::pipeline::properties::{self, FormulaText};
use crate::pipeline::{self, Session};
use mu_base::host::Instant;
use mu_base::{Budget, Diagnostic, Limits, Span, Stage, narrow, permutations};
use mu_compile::{Compiled, Confluence};
use mu_engines::Engine;
use mu_engines::auto::{Slice, alternate};
use mu_engines::explicit::Explicit;
use mu_engines::symbolic::Symbolic;
use mu_explore::{Cyclic, RejectedSymmetry, is_acyclic};
use mu_formula::typed::{StateKind, TypedFormula, TypedStateFormula};
use mu_frontends::FrontEnd;
use mu_frontends::mcrl2::MCRL2;
use mu_model::Model;
use mu_pbes::symbolic::{CheckOptions, SymbolicAnswer, check_with_options};
use mu_pbes::{
    Answer, Method, Options, PairResult, Verdict, check, constant_value, prove_by_pairs,
};
use mu_process::linear::{LinearProcess, ParamRole};
use mu_process::linearise::LineariserOptions;
use mu_process::spec::ProcSpec;
use mu_regions::constant_counts::{self, ConstantCount};
use mu_regions::replicas::{EXTRA_CONSTANTS, with_list};
use mu_regions::sizes::SIZE;
use mu_regions::thread_modular::LocalState;
use mu_regions::{
    AbstractableModel, Family, Least, Levels, Measure, MergedConstants, Replicas, Study,
    SymbolicConstants, TerminationResult, ThreadModularAbstraction, find_overload, least, measures,
    prove_termination, with_parameters,
};
use mu_syntax::ast::Specification;
use mu_syntax::template;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Number of constants of a sort of any size in the concrete models of cases.
const CONSTANTS_IN_CASES: usize = 2;

/// Returns the parameters that are set to `any`.
pub(crate) fn parameters(session: &Session) -> Vec<String> {
    let pairs = session.common.define.iter().filter_map(|d| d.split_once('='));
    pairs
        .filter(|(_, value)| value.trim() == "any")
        .map(|(name, _)| name.trim().to_string())
        .collect()
}

/// The model over parameters without a value.
pub(super) struct Abstract {
    /// Numbers in the text.
    pub literals: Vec<usize>,
    pub compiled: Compiled,
    /// The process before constants without a value became parameters, for checks of answers.
    pub process: LinearProcess,
    pub defined: SymbolicConstants,
    /// Sorts of any size.
    pub families: Vec<Family>,
    /// A sort of any size that has components for each constant.
    pub replicas: Option<Replicas>,
    /// Text of the model, to write instances with components.
    pub crowd: Option<ComponentText>,
    /// Obstacle to families or replicas: the process depends on their constants.
    pub refused: Option<Diagnostic>,
    measures: Vec<Measure>,
    /// Result of the termination proof, once computed.
    ends: Option<Termination>,
}

/// Termination of all runs, for all values.
#[derive(Clone, Default)]
struct Termination {
    /// True if termination is proved.
    proved: bool,
    /// Reasons as JSON: counters that grow below a bound.
    measures: Vec<Value>,
    /// Reasons as JSON: lists that get shorter.
    lists: Vec<Value>,
    /// Reason why the proof fails, if there is more to report.
    open: Option<String>,
}

/// Figures of a formula over all cases.
#[derive(Default)]
pub(super) struct Figures {
    /// Number of cases that are true.
    cases: usize,
    pub states: u64,
    equations: u64,
    /// Pairs of local states of the cases that pairs of components prove.
    pub pairs: u64,
    /// Longest time of the symbolic engine for a case, if it was used.
    symbolic_time: Option<Duration>,
    /// Size of the largest symmetry group that was used.
    symmetries: usize,
    dropped: Vec<RejectedSymmetry>,
    /// Reasons for termination, if it was used.
    measures: Vec<Value>,
    /// The same for lists.
    lists: Vec<Value>,
    /// Checks of the answer.
    checked: AuditedAnswer,
    /// The proof along paths, if there is one.
    paths: Option<mu_zones::Proof>,
    /// Verification by the checker of certificates.
    pub verification: Verification,
}

impl Figures {
    /// Adds the answer of a case. Returns the reason if the case is not true.
    fn add(
        &mut self,
        session: &Session,
        plan: &CheckPlan,
        what: &str,
        (answer, took): (Answer, Duration),
    ) -> Option<Diagnostic> {
        let named = if what.is_empty() { "all values" } else { what };
        if answer.method == Method::Pairs {
            session.log(format!("{named}: true, {} pairs of local states", answer.states));
            self.pairs += answer.states;
            self.states += answer.states;
            self.cases += 1;
            return None;
        }
        session.log(format!(
            "{named}: {:?}, {} states, {} equations",
            answer.verdict, answer.states, answer.equations
        ));
        if answer.method.is_symbolic() {
            self.symbolic_time = self.symbolic_time.max(Some(took));
        } else {
            session.log_symmetries(answer.symmetries, &plan.search.without, &answer.dropped);
        }
        self.states += answer.states;
        self.equations += answer.equations;
        self.symmetries = self.symmetries.max(answer.symmetries);
        self.dropped.extend(
            answer.dropped.into_iter().filter(|d| !self.dropped.contains(d)).collect::<Vec<_>>(),
        );
        match answer.verdict {
            Verdict::True => {
                self.cases += 1;
                None
            }
            Verdict::False => {
                let which = if what.is_empty() {
                    "all values".into()
                } else {
                    format!("the regions around {what}")
                };
                let text = format!(
                    "the abstraction of {which} has runs that violate the formula, but possibly no value has such a run"
                );
                Some(Diagnostic::new(Stage::Unsupported, text))
            }
            Verdict::Unknown(stop) => Some(Diagnostic::stopped(stop)),
        }
    }
}

/// Reason why a formula has no proof for all values.
pub(super) struct OpenFormula {
    why: Diagnostic,
    /// The case that is not true, and the number of all cases.
    case: Option<(String, usize)>,
    /// Text on the values that were checked one by one.
    pub tried: Option<String>,
}

impl From<Diagnostic> for OpenFormula {
    fn from(why: Diagnostic) -> Self {
        Self { why, case: None, tried: None }
    }
}

/// Result of a search for a proof for all values.
pub(super) struct EveryValueResult {
    pub figures: Figures,
    /// Reason why there is no proof; `None` if the formula is proved.
    pub open: Option<Box<OpenFormula>>,
    /// Parameter values that represent the cases of the abstraction.
    pub cases: Vec<Vec<usize>>,
}

impl EveryValueResult {
    /// Returns the result of a proof along paths.
    pub fn of_paths(plan: &CheckPlan, proof: mu_zones::Proof, verification: Verification) -> Self {
        let figures = Figures {
            cases: 1,
            states: proof.obligations as u64,
            equations: proof.moves as u64,
            checked: AuditedAnswer::of_paths(&proof, plan.search.samples),
            paths: Some(proof),
            verification,
            ..Figures::default()
        };
        Self { figures, open: None, cases: Vec::new() }
    }

    /// Adds the reason why there is no proof along paths.
    pub fn add_path_obstacle(&mut self, why: Option<&Diagnostic>) {
        if let (Some(open), Some(why)) = (&mut self.open, why)
            && open.why.stop.is_none()
            && !open.why.message.contains(&why.message)
        {
            open.why.message += &format!("; along paths: {}", why.message);
        }
    }

    /// Returns the result without a proof.
    pub fn open(open: impl Into<OpenFormula>) -> Self {
        Self { figures: Figures::default(), open: Some(Box::new(open.into())), cases: Vec::new() }
    }
}

/// The strategy.
pub(super) struct EveryValueStrategy;

impl Strategy for EveryValueStrategy {
    fn check(
        &mut self,
        session: &mut Session,
        plan: &CheckPlan,
        report: &mut CheckReport,
    ) -> Result<Summary, Diagnostic> {
        expect_supported(plan)?;
        let mut model = match build_abstract_model(session, &plan.model, &plan.any) {
            // An obstacle for all values need not be one for a single value; a limit leaves the
            // formulas unknown.
            Err(why) if !matches!(why.stage, Stage::Usage | Stage::File | Stage::Internal) => {
                Err(why)
            }
            model => Ok(model?),
        };
        output::begin_stage("reading the formulas");
        let mut formulas = Vec::new();
        for (index, text) in plan.texts.iter().enumerate() {
            let read = |m: &Abstract| {
                properties::read(text, &m.compiled.process().data, &m.compiled.process().actions)
            };
            match model.as_ref().ok().map(read).transpose() {
                Err(why) if plan.has_several() && why.stage != Stage::Internal => {
                    report.reject(session, index, &why)?;
                }
                formula => formulas.push((index, formula?)),
            }
        }
        for (index, formula) in &formulas {
            let name = &plan.texts[*index].name;
            output::begin_stage_on("checking a formula for every value", name);
            match check_every_value(session, plan, &mut model, (*index, formula.as_ref())) {
                Ok(outcome) => report.add(outcome)?,
                Err(why)
                    if plan.has_several() && why.stage != Stage::Internal && why.stop.is_none() =>
                {
                    report.reject(session, *index, &why)?;
                }
                Err(why) => return Err(why),
            }
        }
        Ok(Summary::default())
    }
}

/// Rejects options that a check for every value does not support.
fn expect_supported(plan: &CheckPlan) -> Result<(), Diagnostic> {
    let requested = [
        (plan.game.is_some(), "`--game`"),
        (plan.search.as_written, "`--count`"),
        (plan.checkpoints.folder().is_some(), "`--checkpoint`"),
    ];
    let front_end = mu_frontends::by_name(&plan.model);
    if front_end.language() != MCRL2.language() {
        let text = format!(
            "`-D {}=any`: {} has no answer for every value of a parameter",
            plan.any[0],
            front_end.language()
        );
        return Err(Diagnostic::new(Stage::Usage, text).note(format!(
            "formulas need a value; invariants of a Murphi model for every size: `explore FILE.m -D {}=any`; systems and programs for every number of processes: `prove FILE.cub`, `program FILE.asm --threads-of any`",
            plan.any[0]
        )));
    }
    match requested.iter().find(|(wanted, _)| *wanted) {
        None => Ok(()),
        Some((_, what)) => Err(Diagnostic::new(
            Stage::Usage,
            format!("{what} cannot be combined with a parameter that is set to `any`"),
        )),
    }
}

/// Builds the model of a file over the parameters `names`, which have no value.
pub(super) fn build_abstract_model(
    session: &mut Session,
    model: &Path,
    names: &[String],
) -> Result<Abstract, Diagnostic> {
    let text = session.read(model)?;
    let can = constant_counts::counting_parameters(&text);
    let sizes: Vec<String> = names.iter().filter(|n| can.contains(n)).cloned().collect();
    let expand = |session: &mut Session, more: Option<&String>| {
        let value = |name: &str, written: &str| match sizes.iter().find(|s| *s == name) {
            Some(size) => (SIZE + usize::from(more == Some(size))).to_string(),
            None => written.to_string(),
        };
        let pairs = session.common.define.iter().filter_map(|d| d.split_once('='));
        let defines: Vec<(String, String)> =
            pairs.map(|(n, v)| (n.trim().to_string(), value(n.trim(), v.trim()))).collect();
        let name = model.display().to_string();
        template::expand_representative(&name, &text, &defines, &sizes, &mut session.sources)
    };
    let parse = |expanded: &template::ExpandedText| {
        mu_syntax::parse_specification(expanded.source, &expanded.text)
    };
    let expanded = match expand(session, None) {
        Err(why) if why.stage == Stage::Unsupported => {
            // A directive that needs the value is reached before what makes the value matter.
            let other = names.iter().filter(|name| !sizes.contains(name)).find_map(|name| {
                let (start, end) = constant_counts::first_other_use(&text, name)?;
                Some((name, narrow::index(start), narrow::index(end)))
            });
            let Some((name, start, end)) = other else { return Err(why) };
            let source = session.sources.add(model.display().to_string(), &text);
            let message = format!("the text here depends on `{name}`, which is set to `any`");
            let note = format!(
                "`{name}` may only be the number of constants of a sort: the bound of `$for i in 0 .. {name} {{ … }}` with text and `${{i}}`"
            );
            let span = Span { source, start, end };
            return Err(Diagnostic::at(Stage::Unsupported, span, message).note(note));
        }
        expanded => expanded?,
    };
    let parameter_text = |p: &template::Param| {
        if sizes.contains(&p.name) { "any".to_string() } else { p.value.to_string() }
    };
    output::record_parameters(expanded.params.iter().map(|p| (p.name.clone(), parameter_text(p))));
    let tree = parse(&expanded)?;
    if let Some(why) = find_overload(&tree).filter(|_| !expanded.constants.is_empty()) {
        return Err(why);
    }
    let (mut counted, mut crowd, mut text_of_crowd) = (Vec::new(), None, None);
    for name in &sizes {
        let above = parse(&expand(session, Some(name))?)?;
        let found = constant_counts::constants(SIZE, &tree, &above).map_err(|depends| {
            let error = Diagnostic::new(Stage::Unsupported, depends.text(name));
            depends.span.map_or(error.clone(), |span| error.or_span(span))
        })?;
        if !found.counts_components() {
            counted.push(found);
        } else if crowd.is_some() {
            let text = format!(
                "`{name}` and another parameter that is set to `any` both count components"
            );
            return Err(Diagnostic::new(Stage::Unsupported, text));
        } else {
            text_of_crowd = Some(ComponentText::new(session, model, &text, (&sizes, name)));
            crowd = Some((found, above));
        }
    }
    let any_size: Vec<String> = counted.iter().flat_map(|c| c.names.clone()).collect();
    let SymbolicProcess { spec, plain, process, defined, names } = SymbolicProcess::new(
        session,
        (&tree, &any_size),
        &expanded.constants,
        crowd.as_ref().map(|(found, _)| found),
    )?;
    let measures = measures(&process, &defined.rigid);
    let compiled = Compiled::with_budget(process, &Confluence::None, &session.budget)?;
    let found = counted
        .iter()
        .map(|c| Family::new(&compiled, &spec, &c.names))
        .collect::<Result<_, _>>()
        .and_then(Family::sort_families);
    let found = found.and_then(|families| {
        let Some((found, above)) = &crowd else { return Ok((families, None)) };
        let larger = SymbolicProcess::new(
            session,
            (above, &any_size),
            &expanded.constants,
            Some(&found.larger()),
        )?;
        let list = found.list.as_deref();
        Replicas::new(&compiled, &spec, &names, list, (&larger.process, &larger.names))
            .map(|replicas| (families, Some(replicas)))
    });
    let ((families, replicas), refused) = match found {
        Ok(_) if plain.is_probabilistic() => {
            let text = "every value of a parameter of a process with chance (`dist`)";
            ((Vec::new(), None), Some(Diagnostic::new(Stage::Unsupported, text)))
        }
        Ok(found) => (found, None),
        Err(why) if why.stage == Stage::Internal => return Err(why),
        Err(why) => ((Vec::new(), None), Some(why)),
    };
    // Declarations of parameters and conditions on them are not in the expanded text.
    let mut literals = numbers_in(&expanded.text);
    literals.extend(numbers_in_model(&text));
    literals.sort_unstable();
    literals.dedup();
    Ok(Abstract {
        literals,
        compiled,
        process: plain,
        defined,
        families,
        replicas,
        crowd: text_of_crowd,
        refused,
        measures,
        ends: None,
    })
}

/// Returns the name of the constant that represents a parameter; no text can use it.
pub(crate) fn hidden_name(parameter: &str) -> String {
    format!("${{{parameter}}}")
}

/// A linear process over parameters without a value.
struct SymbolicProcess {
    spec: ProcSpec,
    /// The process before constants without a value became parameters.
    plain: LinearProcess,
    process: LinearProcess,
    defined: SymbolicConstants,
    /// The constants with a component each, and letters of lists.
    names: Vec<String>,
}

impl SymbolicProcess {
    /// Linearises a specification. `constants`: parameters without a value, and the constants that
    /// represent them. `crowd`: the sort with any number of components. `any_size`: the constants
    /// of the other sorts of any size.
    fn new(
        session: &Session,
        (tree, any_size): (&Specification, &[String]),
        constants: &[(String, String)],
        crowd: Option<&ConstantCount>,
    ) -> Result<Self, Diagnostic> {
        let larger = crowd.map(|counted| {
            constant_counts::unbounded_specification(tree, counted, EXTRA_CONSTANTS)
        });
        let (tree, names) = larger.as_ref().map_or((tree, Vec::new()), |l| (&l.0, l.1.clone()));
        let spec = mu_process::typecheck::check_specification(tree)?;
        let names_of_constants: Vec<String> = constants.iter().map(|c| c.1.clone()).collect();
        let options = if let Some(counted) = crowd {
            let lists = counted.list.iter();
            let open: Vec<String> = names_of_constants.iter().chain(lists).cloned().collect();
            LineariserOptions::of_any_number(&open)
        } else {
            LineariserOptions {
                any_size: any_size.to_vec(),
                ..LineariserOptions::of_any_size(&names_of_constants)
            }
        };
        let process = session.linearise(&spec, &options)?;
        let process = with_list(process, crowd.and_then(|c| c.list.as_deref()))?;
        let plain = process.clone();
        let (mut process, mut defined) = with_parameters(process, &names_of_constants)?;
        for (rigid, (parameter, _)) in defined.rigid.iter_mut().zip(constants) {
            rigid.name.clone_from(parameter);
            // A formula cannot use this name, just as it cannot use the parameter when that has a
            // value.
            process.data.signature.op_mut(rigid.op).name = hidden_name(parameter);
        }
        Ok(Self { spec, plain, process, defined, names })
    }
}

/// Applies `then` to the model in which the constants of each sort beyond the tracked ones are
/// merged.
pub(super) fn with_merged_constants<T>(
    base: &dyn AbstractableModel,
    families: &[(&Family, usize)],
    then: &mut dyn FnMut(&dyn AbstractableModel) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    match families.split_first() {
        None => then(base),
        Some(((family, tracked), rest)) => {
            with_merged_constants(&MergedConstants::new(base, family, *tracked)?, rest, then)
        }
    }
}

/// Checks the formula on the abstract models.
pub(super) fn for_all(
    session: &Session,
    plan: &CheckPlan,
    model: &mut Abstract,
    formula: &TypedFormula,
    pairs: PairSearch,
) -> Result<EveryValueResult, Diagnostic> {
    if let Some(why) = &model.refused {
        return Ok(EveryValueResult::open(why.clone()));
    }
    let mut formulas = vec![FormulaInstance {
        formula: formula.clone(),
        tracked: Vec::new(),
        what: String::new(),
    }];
    for family in model.families.iter().chain(model.replicas.as_ref().map(|r| &r.family)) {
        let mut next = Vec::new();
        for instance in &formulas {
            let assigned = match family.assignments(&instance.formula) {
                Err(why) if why.stage != Stage::Internal => return Ok(EveryValueResult::open(why)),
                assigned => assigned?,
            };
            next.extend(assigned.into_iter().map(|a| {
                FormulaInstance {
                    formula: a.formula,
                    tracked: [instance.tracked.as_slice(), &[a.tracked]].concat(),
                    what: [instance.what.as_str(), &a.what]
                        .iter()
                        .filter(|t| !t.is_empty())
                        .copied()
                        .collect::<Vec<_>>()
                        .join(", "),
                }
            }));
        }
        formulas = next;
    }
    let ends = match (least(&formula.formula), &model.replicas) {
        (Least::None, _) => Termination::default(),
        (Least::Unguarded, Some(_)) => Termination {
            open: Some("a least fixed point is not below a modality that takes a step".into()),
            ..Termination::default()
        },
        _ => match runs_end(session, plan, model) {
            // The formula may be true without the proof.
            Err(why) if why.stop.is_none() && why.stage != Stage::Internal => {
                Termination { open: Some(why.message), ..Termination::default() }
            }
            Err(why) if why.stop.is_some() => return Ok(EveryValueResult::open(why)),
            ends => ends?,
        },
    };
    // Without counters, finer regions change nothing.
    let levels = if model.defined.rigid.is_empty() { &Levels::ALL[..1] } else { &Levels::ALL[..] };
    let mut last = None;
    for &level in levels {
        match at_level(session, plan, model, &formulas, (level, pairs), &ends) {
            Ok(mut outcome) => match &mut outcome.open {
                // Finer regions do not help against a limit.
                Some(open) if open.why.stop.is_none() => {
                    if let Some(more) =
                        ends.open.as_ref().filter(|more| !open.why.message.contains(*more))
                    {
                        open.why.message += &format!("; {more}");
                    }
                    last = Some(outcome);
                }
                _ => return Ok(outcome),
            },
            Err(why) if why.stage == Stage::Internal => return Err(why),
            // The same error occurs at all levels.
            Err(why) => return Ok(EveryValueResult::open(why)),
        }
    }
    last.ok_or_else(|| Diagnostic::internal("no level was tried"))
}

/// Use of the proof by pairs of components. What it proves is printed only if it is verified.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PairSearch {
    /// For components of any number. Sets of states are fast where all components are known.
    Tried,
    /// The engines answer alone.
    Omitted,
}

/// A formula with constants for its quantified variables over sorts of any size, and the number of
/// tracked constants of each sort.
pub(super) struct FormulaInstance {
    formula: TypedFormula,
    pub tracked: Vec<usize>,
    what: String,
}

impl FormulaInstance {
    /// Returns the possible orders of tracked identities in the list of all.
    fn orders(&self, model: &Abstract) -> Vec<Vec<usize>> {
        let Some(replicas) = &model.replicas else { return vec![Vec::new()] };
        let tracked = self.tracked.last().copied().unwrap_or_default();
        if replicas.all.is_none() {
            vec![(0..tracked).collect()]
        } else {
            permutations::all(tracked)
        }
    }
}

/// Checks the formulas at one level of regions. Errors: obstacles at every level.
fn at_level(
    session: &Session,
    plan: &CheckPlan,
    model: &Abstract,
    formulas: &[FormulaInstance],
    (level, pairs): (Levels, PairSearch),
    ends: &Termination,
) -> Result<EveryValueResult, Diagnostic> {
    let study = |instance: &FormulaInstance| {
        Study::new(&model.compiled, &model.defined, &instance.formula, level)
    };
    let studies = formulas.iter().map(study).collect::<Result<Vec<_>, _>>()?;
    let all =
        formulas.iter().zip(&studies).map(|(f, s)| s.cases().len() * f.orders(model).len()).sum();
    // By formula and case: the local states of untracked components; none if the case needs none.
    let mut members = Vec::new();
    let mut figures = Figures {
        measures: ends.measures.clone(),
        lists: ends.lists.clone(),
        ..Figures::default()
    };
    let start = Instant::now();
    for (instance, study) in formulas.iter().zip(&studies) {
        let families: Vec<(&Family, usize)> =
            model.families.iter().zip(instance.tracked.iter().copied()).collect();
        for case in study.cases() {
            let regions = study.model(case)?;
            let own = study.formula(case)?;
            let what = [study.describe(case), instance.what.clone()];
            let what = what
                .iter()
                .filter(|t| !t.is_empty())
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(", ");
            if constant_value(&own, &session.budget)? == Some(true) {
                // No state needs to be known, and no local state of components of any number.
                for _ in instance.orders(model) {
                    let answer =
                        Answer { states: 1, ..Answer::new(Verdict::True, Method::Constant) };
                    figures.add(session, plan, &what, (answer, Duration::ZERO));
                }
                members.push(Vec::new());
                continue;
            }
            let mut open = None;
            let found = with_merged_constants(&regions, &families, &mut |base| {
                let mut judge = |base: &dyn AbstractableModel| {
                    let start = Instant::now();
                    let pairs = if model.replicas.is_some() { pairs } else { PairSearch::Omitted };
                    let answer =
                        verdict(session, plan, base, (&own, ends.proved), pairs, &figures)?;
                    let why = figures.add(session, plan, &what, (answer, start.elapsed()));
                    Ok(why.map(|why| open.insert(why)).is_none())
                };
                match &model.replicas {
                    None => judge(base),
                    Some(replicas) => for_each_order(
                        session,
                        base,
                        replicas,
                        &instance.orders(model),
                        &mut members,
                        &mut judge,
                    ),
                }
            });
            let why = match (found, open) {
                (Ok(_), None) => continue,
                (Ok(_), Some(why)) => why,
                // A limit inside an evaluation.
                (Err(why), _) if why.stop.is_some() => why,
                (Err(why), _) => return Err(why),
            };
            let cases = studies
                .iter()
                .flat_map(|s| s.cases().iter().map(|c| s.values(c)))
                .map(|values| valuation(plan, &values))
                .collect();
            return Ok(EveryValueResult {
                figures,
                open: Some(Box::new(OpenFormula { why, case: Some((what, all)), tried: None })),
                cases,
            });
        }
    }
    figures.checked = sampled::check(
        session,
        plan.search.samples,
        model,
        (formulas.iter().zip(&studies), &members),
        start.elapsed(),
    )?;
    Ok(EveryValueResult { figures, open: None, cases: Vec::new() })
}

/// Returns the values of all parameters that are set to `any`: the given ones, and
/// [`CONSTANTS_IN_CASES`] for the sizes of sorts.
fn valuation(plan: &CheckPlan, values: &[(String, usize)]) -> Vec<usize> {
    let of =
        |name: &String| values.iter().find(|v| v.0 == *name).map_or(CONSTANTS_IN_CASES, |v| v.1);
    plan.any.iter().map(of).collect()
}

/// Judges a model with any number of components, for each order of the tracked identities in the
/// list of all. Appends the local states of untracked components to `local_states`.
fn for_each_order(
    session: &Session,
    base: &dyn AbstractableModel,
    replicas: &Replicas,
    orders: &[Vec<usize>],
    local_states: &mut Vec<Vec<LocalState>>,
    judge: &mut dyn FnMut(&dyn AbstractableModel) -> Result<bool, Diagnostic>,
) -> Result<bool, Diagnostic> {
    let members = mu_regions::reachable_local_states(base, replicas)?;
    session.log(format!("components of any number: {} local states", members.len()));
    let Some(first) = orders.first() else { return Ok(true) };
    let mut crowd = ThreadModularAbstraction::new(base, replicas, first, &members)?;
    for order in orders {
        crowd.arrange(order)?;
        if !judge(&crowd)? {
            return Ok(false);
        }
    }
    local_states.push(members);
    Ok(true)
}

/// Checks a formula on an abstract model with the chosen engine; by default with both in time
/// slices, and by `pairs` before the symbolic one. `ends`: true if all runs of all values
/// terminate. `before`: figures of earlier cases.
fn verdict(
    session: &Session,
    plan: &CheckPlan,
    base: &dyn AbstractableModel,
    (formula, ends): (&TypedFormula, bool),
    pairs: PairSearch,
    before: &Figures,
) -> Result<Answer, Diagnostic> {
    let check_symbolic = |budget: &Budget| {
        let options =
            mu_symbolic::SymbolicOptions { threads: session.threads(), ..Default::default() };
        let wanted = CheckOptions { runs_end: ends, witnesses: false };
        check_with_options(base, base, formula, &options, wanted, budget)
            .map(SymbolicAnswer::into_answer)
    };
    let check_explicit = |budget: &Budget| {
        // Abstractions are verified on the transitions of the search: skip none.
        let options = mu_explore::Options {
            partial_order: false,
            ..session.explore_options(base, &plan.search.without)
        };
        let chosen =
            Options { evidence: false, witnesses: false, runs_end: ends, ..Options::new(&options) };
        check(base, base, formula, chosen, budget)
    };
    match plan.search.chosen_engine.map(|engine| engine.name()) {
        Some(name) if name == Symbolic.name() => check_symbolic(&session.budget),
        Some(name) if name == Explicit.name() => check_explicit(&session.budget),
        _ => {
            let mut pairs_open = pairs == PairSearch::Omitted;
            if before.pairs > 0 {
                if let Some(answer) = by_pairs(session, base, formula)? {
                    return Ok(answer);
                }
                pairs_open = true;
            }
            alternate(
                &session.budget,
                before.symbolic_time,
                |answer: &Answer| answer.verdict.stop(),
                &mut |turn, budget, _| match turn {
                    Slice::Symbolic => {
                        if !std::mem::replace(&mut pairs_open, true)
                            && let Some(answer) = by_pairs(session, base, formula)?
                        {
                            return Ok(answer);
                        }
                        check_symbolic(budget)
                    }
                    Slice::First | Slice::Explicit => check_explicit(budget),
                },
            )
        }
    }
}

/// Maximum time for a proof by pairs of components, without a limit of the run. Otherwise it is one
/// part in `PAIR_PART` of the time that is left.
const PAIR_TIME: Duration = Duration::from_secs(300);
const PAIR_PART: u32 = 4;

/// Proves a formula on an abstract model by pairs of components; `None` if that leaves it open.
fn by_pairs(
    session: &Session,
    base: &dyn AbstractableModel,
    formula: &TypedFormula,
) -> Result<Option<Answer>, Diagnostic> {
    let limits = *session.budget.limits();
    let past = session.budget.elapsed();
    let share = limits.timeout.map(|all| past + all.saturating_sub(past) / PAIR_PART);
    let timeout = share.or(Some(past + PAIR_TIME));
    let budget = session.budget.with_limits(Limits { timeout, ..limits });
    match prove_by_pairs(base, base, formula, &budget)? {
        PairResult::Proved(proof) => {
            session.log(format!(
                "by pairs of components: {} pairs of {} local states, {} sets of obligations, {} steps of walks covered",
                proof.pairs, proof.local_states, proof.nodes, proof.audited
            ));
            Ok(Some(Answer { states: proof.pairs, ..Answer::new(Verdict::True, Method::Pairs) }))
        }
        PairResult::Open(why) => {
            session.log(format!("by pairs of components: open: {why}"));
            Ok(None)
        }
    }
}

/// Proves that all runs terminate, for all values: no cycle remains without the transitions that
/// increase a counter below its bound. With any number of components: no transition remains that a
/// run can take forever.
fn runs_end(
    session: &Session,
    plan: &CheckPlan,
    model: &mut Abstract,
) -> Result<Termination, Diagnostic> {
    if let Some(known) = &model.ends {
        return Ok(known.clone());
    }
    let process = model.compiled.process();
    let any = TypedStateFormula { kind: StateKind::True, span: Span::default() };
    let formula = TypedFormula {
        data: process.data.clone(),
        actions: process.actions.clone(),
        fix_names: Vec::new(),
        formula: any,
        as_written: false,
    };
    let measured: Vec<bool> = (0..model.compiled.groups().len())
        .map(|g| model.measures.iter().any(|m| m.summands.contains(&model.compiled.summand_of(g))))
        .collect();
    let mut ends = Termination::default();
    let mut steps = TerminationResult::default();
    if let Ok(study) = Study::new(&model.compiled, &model.defined, &formula, Levels::Coarse) {
        ends.proved = true;
        for case in study.cases() {
            let regions = study.model(case)?;
            let families: Vec<(&Family, usize)> = model.families.iter().map(|f| (f, 0)).collect();
            let found =
                with_merged_constants(&regions, &families, &mut |base| match &model.replicas {
                    Some(replicas) => prove_termination(base, replicas, &model.defined.rigid)
                        .map(|found| steps.with(found)),
                    None => {
                        let options = session.explore_options(base, &plan.search.without);
                        // Symmetries may not preserve which transitions count.
                        let counts = |group: usize, _| !measured[group];
                        let found = is_acyclic(
                            base,
                            &options,
                            &session.budget,
                            &mu_explore::Silent,
                            Some(&counts),
                            None,
                        )?;
                        ends.proved &= matches!(found, Cyclic::No(_));
                        Ok(())
                    }
                });
            match found {
                Err(why) if model.replicas.is_some() && why.stage == Stage::Unsupported => {
                    ends = Termination { open: Some(why.message), ..Termination::default() };
                    break;
                }
                found => found?,
            }
        }
    }
    if !steps.left.is_empty() {
        let names =
            steps.left.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        ends = Termination {
            open: Some(format!("no proof that these steps end: {names}")),
            ..Termination::default()
        };
    }
    if ends.proved {
        ends.measures = measures_as_json(
            model,
            if model.replicas.is_some() { &steps.counters } else { &model.measures },
        );
        ends.lists = lists_as_json(model, &steps);
        for text in ends.measures.iter().map(measure_text).chain(ends.lists.iter().map(list_text)) {
            session.log(text);
        }
    }
    model.ends = Some(ends.clone());
    Ok(ends)
}

/// Returns the names of a process parameter and of its component.
fn parameter(process: &LinearProcess, at: usize) -> (String, String) {
    let name = mu_process::print::parameter_names(process)[at].clone();
    let (ParamRole::Control(c) | ParamRole::Data(c)) = process.params[at].role;
    (name, process.components.get(c as usize).cloned().unwrap_or_default())
}

/// Returns the counters that grow and their bounds, as JSON.
fn measures_as_json(model: &Abstract, measures: &[Measure]) -> Vec<Value> {
    let process = model.compiled.process();
    let of = |m: &Measure| {
        let (counter, component) = parameter(process, m.param);
        let below = mu_data::print::expression(&process.data.signature, &m.bound);
        // The process parameter has the name of the constant, which is unique in the file.
        let signature = &process.data.signature;
        let below = model
            .defined
            .rigid
            .iter()
            .fold(below, |text, r| text.replace(&signature.var(r.var).name, &r.name));
        json!({ "counter": counter, "component": component, "summands": m.summands.len(), "below": below })
    };
    measures.iter().map(of).collect()
}

/// Returns the lists that get shorter, as JSON.
fn lists_as_json(model: &Abstract, steps: &TerminationResult) -> Vec<Value> {
    let of = |at: &usize| {
        let (list, component) = parameter(model.compiled.process(), *at);
        json!({ "list": list, "component": component })
    };
    steps.lists.iter().map(of).collect()
}

fn list_text(list: &Value) -> String {
    let word = |key: &str| list[key].as_str().unwrap_or_default();
    format!("every run ends: `{}` of {} gets shorter", word("list"), word("component"))
}

fn measure_text(measure: &Value) -> String {
    let word = |key: &str| measure[key].as_str().unwrap_or_default();
    format!(
        "every run ends: `{}` of {} grows in {} summands, below {}",
        word("counter"),
        word("component"),
        measure["summands"],
        word("below")
    )
}

/// Report of a formula for all values.
pub(super) struct FormulaReport<'a> {
    pub session: &'a Session,
    pub plan: &'a CheckPlan,
    /// Index of the formula.
    pub index: usize,
    pub figures: &'a Figures,
    pub start: Instant,
}

impl FormulaReport<'_> {
    fn text(&self) -> &FormulaText {
        &self.plan.texts[self.index]
    }

    fn path(&self) -> String {
        self.text().name.display().to_string()
    }

    fn object(&self, verdict: &str, reason: &str) -> Value {
        let Figures { states, equations, symbolic_time, symmetries, dropped, .. } = self.figures;
        let every =
            self.plan.any.iter().map(|n| format!("{n} = any")).collect::<Vec<_>>().join(", ");
        let mut object = json!({
            "formula": self.path(), "verdict": verdict, "reason": reason, "for": every, "equations": equations, "states": states,
            "engine": if symbolic_time.is_some() { "symbolic" } else { "explicit" }, "seconds": self.start.elapsed().as_secs_f64(),
            "evidence": [], "evidence_left_out": 0, "back_to": null, "vacuous": [],
        });
        if symbolic_time.is_none() {
            object["symmetries"] =
                pipeline::symmetries(true, *symmetries, &self.plan.search.without, dropped);
        }
        object
    }

    /// Reports a formula that is proved for all values.
    pub fn is_true(&self) -> FormulaOutcome {
        let Figures { cases, equations, pairs, measures, lists, checked, paths, .. } = self.figures;
        let mut object = self.object("true", if paths.is_some() { "paths" } else { "regions" });
        object["cases"] = (*cases).into();
        if *pairs > 0 {
            object["pairs"] = (*pairs).into();
        }
        if let Some(proof) = paths {
            object["paths"] = json!({ "evaluated": proof.paths, "explorations": proof.rounds });
        }
        object["checked"] = checked.object();
        self.figures.verification.add_to(&mut object);
        if !measures.is_empty() {
            object["measures"] = measures.as_slice().into();
        }
        if !lists.is_empty() {
            object["lists"] = lists.as_slice().into();
        }
        let mut text = format!("{}: true for every {}", self.path(), self.plan.any.join(", "));
        if !self.session.common.quiet {
            let size = match paths {
                Some(proof) => format!(
                    "{}, {}",
                    count_text(proof.obligations as u64, "obligation"),
                    count_text(proof.paths, "path")
                ),
                None => {
                    let mut parts = vec![count_text(*cases as u64, "case")];
                    if *equations > 0 || *pairs == 0 {
                        parts.push(count_text(*equations, "equation"));
                    }
                    if *pairs > 0 {
                        parts.push(count_text(*pairs, "pair") + " of local states");
                    }
                    parts.join(", ")
                }
            };
            text += &format!("  [{size}, {:.3} s]", self.start.elapsed().as_secs_f64());
            let reasons = measures.iter().map(measure_text).chain(lists.iter().map(list_text));
            let checks = [self.figures.verification.text(), checked.text()];
            text.extend(reasons.chain(checks).map(|line| format!("\n  {line}")));
        }
        self.outcome(ReportedVerdict::NotViolated, object, text + "\n")
    }

    /// Reports a formula that is true for all values that the constraints of the file admit, each
    /// checked by itself.
    pub fn is_true_one_by_one(&self, tried: &str) -> FormulaOutcome {
        let mut object = self.object("true", "instances");
        object["tried"] = tried.into();
        let checks = Verification::Missing("each value was checked by itself".into());
        checks.add_to(&mut object);
        let text = format!(
            "{}: true for every {} that the file admits  [{tried}, {:.3} s]\n",
            self.path(),
            self.plan.any.join(", "),
            self.start.elapsed().as_secs_f64()
        );
        self.outcome(ReportedVerdict::NotViolated, object, text)
    }

    /// Reports a formula without a proof and without a counterexample.
    pub fn is_unknown(&self, open: &OpenFormula) -> FormulaOutcome {
        let mut why = match &open.why.stop {
            Some(stop) => stop.word().to_string(),
            None => open.why.message.clone(),
        };
        let mut object = self.object("unknown", &why);
        if let Some((case, cases)) = &open.case {
            object["cases"] = (*cases).into();
            object["cases_true"] = self.figures.cases.into();
            object["open_case"] = case.as_str().into();
            why += &format!("; {} of {cases} cases are true", self.figures.cases);
            if !case.is_empty() {
                why += &format!(", {case} is open");
            }
        }
        if let Some(tried) = &open.tried {
            object["tried"] = tried.as_str().into();
            why += &format!("; {tried}");
        }
        if open.why.stop.is_none() {
            eprint!("{}", open.why.render(&self.session.sources).replacen("error:", "open:", 1));
        }
        let verdict =
            ReportedVerdict::Unknown(object["reason"].as_str().unwrap_or_default().into());
        self.outcome(
            verdict,
            object,
            format!("{}: unknown for every {} ({why})\n", self.path(), self.plan.any.join(", ")),
        )
    }

    fn outcome(&self, verdict: ReportedVerdict, object: Value, line: String) -> FormulaOutcome {
        FormulaOutcome {
            formula: self.index,
            verdict,
            seconds: self.start.elapsed().as_secs_f64(),
            object: Some(with_text(object, self.text())),
            line: self.plan.output.lines.then_some(line),
        }
    }
}
