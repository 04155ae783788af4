//! Routes of several steps within this process: files written and read again, quotients, equation
//! systems, games, states on disk.

use super::inside::{Inside, Settings, answer, at_stage, budget, compile, read};
use super::plain::Found;
use super::runs::{Answer, Folder};
use crate::support::random_text::Kind as Formulas;
use mu_check::base::ids::LabelId;
use mu_check::base::{Budget, Diagnostic, SourceId, SourceMap, Stage, Stop};
use mu_check::compile::Confluence;
use mu_check::compile::typed::typed_declarations;
use mu_check::explore::{self, CountExtras, Silent, Spill};
use mu_check::formula::equations::{self, UnrollSelection};
use mu_check::game::solve::{Solver, default_solver, solvers};
use mu_check::game::{Player, pg, verify};
use mu_check::lts::equivalence::{Equivalence, equivalent, reduce};
use mu_check::lts::preorder::{Preorder, excess};
use mu_check::lts::relabel::in_order;
use mu_check::lts::{Lts, aut, binary, fsm, mcrl2};
use mu_check::model::Model;
use mu_check::model::from_lts::LtsModel;
use mu_check::pbes::{Verdict, data_free, game, on_the_fly, print};
use mu_check::process::labels::declared::DeclaredLabels;
use mu_check::process::labels::inferred::InferredLabels;
use mu_check::process::labels::{ActionLabels, MultiAction};
use mu_check::process::linearise;
use mu_check::syntax::format::{self, is_same};
use mu_check::syntax::template;
use std::sync::Arc;

/// States that go to the disk after a few.
///
/// # Errors
/// Those of the search.
pub fn spill(inside: &Inside, folder: &Folder) -> Result<Found, String> {
    let seed = inside.main.seed;
    let extras = CountExtras {
        spill: Some(Spill { folder: folder.path(), most: Some(1 + seed % 40) }),
        ..CountExtras::default()
    };
    let threads = [1, 2, 7][(seed % 3) as usize];
    let options = explore::Options {
        threads,
        symmetry: seed.is_multiple_of(2),
        expected_states: 64,
        ..Default::default()
    };
    let found = explore::explore_with(&inside.model, &options, &Budget::default(), &Silent, extras)
        .map_err(at_stage("spill"))?;
    match found.stop {
        Stop::Complete => Ok(Found {
            counts: Some((found.states, found.transitions, found.deadlocks)),
            ..Found::default()
        }),
        stop => Err(format!("spill: stopped: {stop:?}")),
    }
}

/// Returns the options of `linearise --simplify` by name.
fn simplifications(name: &str) -> linearise::LineariserOptions {
    let mut options = linearise::LineariserOptions::plain();
    match name {
        "default" => options = linearise::LineariserOptions::default(),
        "all" => options = options.with_all(true),
        "none" => {}
        other => *options.simplification(other).expect("a simplification") = true,
    }
    options
}

/// Computes the answers on a specification as text, in place of the model.
fn read_again(inside: &Inside, text: &str, words: &str) -> Result<Found, String> {
    let spec = read(text).map_err(|d| format!("the text is refused: {}\n{text}", d.message))?;
    let process = linearise::linearise(&spec, &linearise::LineariserOptions::default())
        .map_err(at_stage("lineariser"))?;
    let model = compile(process, &Confluence::None)?;
    let process = model.process();
    inside.answers_on(words, (&model, &model), (&process.data, &process.actions))
}

/// Computes the answers on the linear process with some simplifications, in the binary form and as
/// text.
///
/// # Errors
/// Those of writing and reading.
pub fn simplify(inside: &Inside, name: &str) -> Result<Found, String> {
    let process = linearise::linearise(&inside.spec, &simplifications(name))
        .map_err(at_stage("lineariser"))?;
    let text = if inside.main.seed.is_multiple_of(3) {
        mu_check::process::print::linear_process(&process)
    } else {
        let typed = mu_check::compile::typed::process::process(&process)
            .map_err(at_stage("typed terms"))?;
        let mut bytes = Vec::new();
        mcrl2::write_process(&typed, &mut bytes).map_err(at_stage("writing terms"))?;
        mcrl2::read_process(&bytes[..]).map_err(at_stage("reading terms"))?
    };
    let mut found = read_again(inside, &text, "--threads 1")?;
    // `dead` merges states.
    found.counts = found.counts.filter(|_| !["dead", "all"].contains(&name));
    Ok(found)
}

/// Computes the answers on each formula as an equation system, in the binary form or as text, which
/// is then solved.
///
/// # Errors
/// Those of writing and reading.
pub fn equations(inside: &Inside, in_terms: bool) -> Result<Found, String> {
    let mut found = Found::default();
    for formula in &inside.formulas {
        let system = match print::system(formula, &inside.linear) {
            Ok(system) => system,
            Err(d) if d.stage == Stage::Internal => return Err(format!("pbes: {}", d.message)),
            Err(d) => {
                found.answers.push(Some(Answer::Refused(d.message)));
                continue;
            }
        };
        let (text, outlined) = if in_terms {
            let typed = mu_check::cli::typed_equations(&system).map_err(at_stage("typed terms"))?;
            let mut bytes = Vec::new();
            mcrl2::write_equations(&typed, &mut bytes).map_err(at_stage("writing terms"))?;
            let outlined = mcrl2::read_equations(&bytes[..]).map_err(at_stage("reading terms"))?;
            (outlined.text.clone(), Some(outlined))
        } else {
            (print::text(&system), None)
        };
        let solved = solve(&text, outlined.as_ref())
            .map(|value| if value { Verdict::True } else { Verdict::False });
        let of_text = |e: String| format!("solve: {e}\n--- equations\n{text}");
        found.answers.push(match answer(solved).map_err(of_text)? {
            // An unbounded quantifier that the product search does not evaluate.
            Answer::Refused(why) if why.contains("no bound") || why.contains("too many") => None,
            answer => Some(answer),
        });
    }
    Ok(found)
}

/// Returns the value of an equation system. Quantifiers over numbers that nothing bounds try one
/// number after another.
fn solve(text: &str, outlined: Option<&mcrl2::OutlinedSystem>) -> Result<bool, Diagnostic> {
    let (budget, solver) = (budget(None, 4000), default_solver());
    let mut unrolled = UnrollSelection::default();
    loop {
        let system = match outlined {
            Some(outlined) => equations::read_outlined(SourceId::FIRST, outlined, &unrolled)?,
            None => equations::read_unrolled(SourceId::FIRST, text, &unrolled)?,
        };
        let why = match decide(&system, solver, &budget) {
            Err(why)
                if why.stop.is_none()
                    && why.stage == Stage::Data
                    && !system.quantified.is_empty() =>
            {
                why
            }
            other => return other,
        };
        match why.span.filter(|s| system.quantified.contains(s)) {
            Some(place) => unrolled.places.push(place),
            None => unrolled.all = true,
        }
    }
}

fn decide(
    system: &equations::System,
    solver: &dyn Solver,
    budget: &Budget,
) -> Result<bool, Diagnostic> {
    let options = linearise::LineariserOptions { dead: true, ..Default::default() };
    let spec = mu_check::process::typecheck::check_specification(&system.specification)?;
    let process = linearise::linearise(&spec, &options)?;
    let model = mu_check::compile::Compiled::with_budget(process, &Confluence::None, budget)?;
    let start = (system.prefix.as_str(), &system.least[..], system.initial.as_str());
    let otherwise = || data_free::decide(system, solver, budget);
    Ok(on_the_fly::decide(&model, start, (solver, &otherwise), budget)?.value)
}

/// Computes the answers on each formula as a game in a file, which each solver solves.
///
/// # Errors
/// A strategy that does not win, a game that cannot be read.
pub fn games(inside: &Inside) -> Result<Found, String> {
    let mut found = Found::default();
    let settings = Settings::of("--threads 1");
    for (i, formula) in inside.formulas.iter().enumerate() {
        let explore = settings.options(&inside.model).explore;
        let built =
            game::game(&inside.model, &inside.model, formula, &explore, &budget(None, 1000));
        let built = match built {
            Ok(game) => game,
            Err(d) if d.stage == Stage::Internal => return Err(format!("game: {}", d.message)),
            Err(_) => {
                found.answers.push(None);
                continue;
            }
        };
        let mut bytes = Vec::new();
        pg::write(&built, &mut bytes).map_err(at_stage("writing the game"))?;
        let game =
            pg::read(&String::from_utf8_lossy(&bytes)).map_err(at_stage("reading the game"))?;
        let solver = solvers()[(inside.main.seed as usize + i) % solvers().len()];
        let solution = match solver.solve(&game, &budget(None, 4000)) {
            Ok(solution) => solution,
            Err(_) => {
                found.answers.push(None);
                continue;
            }
        };
        verify::verify(&game, &solution)
            .map_err(|flaw| format!("game: solver {}: {flaw}", solver.name()))?;
        let even = solution.winner(game.initial) == Player::Even;
        found.answers.push(Some(if even { Answer::True } else { Answer::False }));
    }
    Ok(found)
}

/// The formulas and counts on a transition system, typed by declarations that it brings, or by what
/// occurs.
fn on_system(inside: &Inside, lts: Lts, declarations: Option<&str>) -> Result<Found, String> {
    let words = ["--threads 1", "--threads 2"][(inside.main.seed % 2) as usize];
    let texts = lts.table.texts.clone();
    let model = LtsModel::new(Arc::new(lts));
    match declarations {
        Some(text) => {
            let spec = read(text)
                .map_err(|d| format!("the declarations are refused: {}\n{text}", d.message))?;
            let labels = DeclaredLabels::new(&texts, spec.data, spec.actions)
                .map_err(at_stage("declared labels"))?;
            inside.answers_on(words, (&model, &labels), (labels.data(), labels.actions()))
        }
        None => {
            let labels = InferredLabels::new(&texts).map_err(at_stage("labels of the file"))?;
            inside.answers_on(words, (&model, &labels), (labels.data(), labels.actions()))
        }
    }
}

/// Multi-actions of the labels of a model, with their texts.
fn labels(inside: &Inside) -> impl Iterator<Item = (String, Arc<MultiAction>)> + '_ {
    let all = (0..inside.model.label_count()).map(LabelId::new);
    all.map(|l| (inside.model.label_text(l), inside.model.multi_action(l)))
}

/// As a file of mCRL2's form, with the data of the labels, and read again.
fn through_terms(inside: &Inside, lts: &Lts) -> Result<(Lts, String), String> {
    let process = inside.model.process();
    let known = typed_declarations(&process.data, &process.actions, labels(inside))
        .map_err(at_stage("typed labels"))?;
    if let Some(label) = known.untyped_label(lts) {
        return Err(format!("typed labels: `{label}` has no typed form"));
    }
    let mut bytes = Vec::new();
    mcrl2::write(lts, Some(&known), &mut bytes).map_err(at_stage("writing the file"))?;
    let (lts, brought) =
        mcrl2::read_with_declarations(&bytes[..]).map_err(at_stage("reading the file"))?;
    let brought = brought.ok_or("the file has no declarations")?;
    Ok((lts, brought.map_err(at_stage("declarations of the file"))?))
}

/// Computes the answers on the transition system in a file.
///
/// # Errors
/// Those of writing and reading.
pub fn convert(inside: &Inside, form: &str) -> Result<Found, String> {
    let lts = inside.lts()?;
    if form == "lts" {
        let (lts, declarations) = through_terms(inside, lts)?;
        return on_system(inside, lts, Some(&declarations));
    }
    let mut bytes = Vec::new();
    let written = match form {
        "aut" => aut::write(lts, &mut bytes),
        "aut.gz" => aut::write_gz(lts, &mut bytes),
        "blts" => binary::write(lts, &mut bytes),
        "fsm" => fsm::write(lts, &mut bytes),
        other => panic!("`{other}` is no form of a transition system"),
    };
    written.map_err(at_stage("writing the file"))?;
    let read = match form {
        "blts" => binary::read(&bytes[..]),
        "fsm" => fsm::read(&bytes[..]),
        _ => aut::read(&bytes[..], &aut::AutOptions::default()),
    };
    on_system(inside, read.map_err(at_stage("reading the file"))?, None)
}

/// Computes the answers on the quotient by an equivalence: it is equivalent, no smaller one is, and
/// the formulas that it preserves have their values.
///
/// # Errors
/// The quotient is not equivalent or not the least.
pub fn quotient(inside: &Inside, name: &str, verdicts: bool) -> Result<Found, String> {
    let equivalence = Equivalence::of_name(name).expect("an equivalence");
    let lts = inside.lts()?;
    let threads = 1 + (inside.main.seed % 2) as usize;
    let small = reduce(lts, equivalence, threads);
    let (a, b) = (in_order(lts.clone()), in_order(small.clone()));
    if !equivalent(&a, &b, equivalence, threads) {
        return Err(format!(
            "quotient: not {name} equivalent, {} and {} states",
            a.state_count(),
            b.state_count()
        ));
    }
    let again = reduce(&small, equivalence, 1);
    let size = |l: &Lts| (l.state_count(), l.transition_count());
    if size(&again) != size(&small) {
        return Err(format!("quotient of a quotient: {:?} and {:?}", size(&again), size(&small)));
    }
    let mut found = Found { more: 2, ..Found::default() };
    if verdicts {
        let (small, declarations) = through_terms(inside, &small)?;
        found.answers = on_system(inside, small, Some(&declarations))?.answers;
        for (answer, kind) in found.answers.iter_mut().zip(&inside.main.kinds) {
            if name != "strong" && *kind != Formulas::Weak {
                *answer = None;
            }
        }
    }
    Ok(found)
}

/// A strongly bisimilar system refines and is refined in every preorder.
///
/// # Errors
/// It does not.
pub fn preorders(inside: &Inside) -> Result<Found, String> {
    let lts = inside.lts()?;
    if lts.state_count() > 60 {
        return Ok(Found::default());
    }
    let (a, b) = (in_order(lts.clone()), in_order(reduce(lts, Equivalence::STRONG, 1)));
    let mut found = Found::default();
    for preorder in Preorder::ALL {
        for (x, y) in [(&a, &b), (&b, &a)] {
            match excess(x, y, preorder, 1, &budget(None, 500)) {
                Ok(None) => found.more += 1,
                Ok(Some(difference)) => {
                    return Err(format!("preorder {}: {difference:?}", preorder.name()));
                }
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

/// Computes the answers on the specification as `expand` prints it and `fmt` lays it out.
///
/// # Errors
/// The layout changes the meaning of the text.
pub fn expand(inside: &Inside) -> Result<Found, String> {
    let mut sources = SourceMap::new();
    let expanded = template::expand("m.mcrl2", &inside.main.specification.text, &[], &mut sources)
        .map_err(at_stage("expand"))?;
    let options = format::FormatOptions { width: [60, 100, 160][(inside.main.seed % 3) as usize] };
    let text = format::format(&expanded.text, options);
    if !is_same(&expanded.text, &text) {
        return Err("fmt: the layout changes the text".into());
    }
    read_again(inside, &text, "--threads 2")
}
