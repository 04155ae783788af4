//! Agreement of routes: random specifications and formulas, each compared over every route of the
//! tool.
//!
//! A specification: operational rules, lineariser with each simplification on and off, the printed
//! linear process read back, 1, 2, 7 threads, caches on, off and tiny, symmetries, confluence,
//! every reduction, the symbolic engine, a file written and read. A formula: direct evaluation
//! on the transition system, the product search, the parity game with each solver and from its
//! file, on the model, on the transition system, on its quotients, symbolically; evidence is
//! replayed.
//!
//! `cargo test --release --test agreement -- --ignored long --nocapture` runs at length:
//! `AGREEMENT_CASES` formulas, at most `AGREEMENT_SECONDS`, from `AGREEMENT_SEED` on. A failure is
//! made small and printed with its seed; `AGREEMENT_SEED=n AGREEMENT_CASES=1` replays it,
//! `AGREEMENT_SHRINK=0` leaves it as large as it is, `AGREEMENT_TRACE=1` prints each before it is
//! checked.

use crate::support::random_text::{Kind, formula, specification};
use crate::support::rules::{by_rules, with_sorted_labels};
use crate::support::tape::{Tape, shrink};
use mu_check::base::ids::{LabelId, StateId};
use mu_check::base::limits::resident_bytes;
use mu_check::base::{Budget, Diagnostic, SourceId, Stop};
use mu_check::compile::{Compiled, Confluence};
use mu_check::evidence::checker::{self, EvidenceCheck};
use mu_check::explore::{self, Silent};
use mu_check::formula::direct;
use mu_check::formula::typecheck::check_formula;
use mu_check::formula::typed::TypedFormula;
use mu_check::game::solve::solvers;
use mu_check::game::{Player, pg, verify};
use mu_check::lts::equivalence::{Equivalence, distinguish, equivalent, reduce};
use mu_check::lts::{Labels, Lts, aut};
use mu_check::model::Model;
use mu_check::model::from_lts::LtsModel;
use mu_check::pbes::game::game;
use mu_check::pbes::symbolic::check_symbolically;
use mu_check::pbes::{Answer, BatchSizes, Method, Options, Verdict, check};
use mu_check::process::labels::inferred::InferredLabels;
use mu_check::process::labels::{ActionLabels, MultiAction};
use mu_check::process::spec::ProcSpec;
use mu_check::process::{linearise, print, typecheck};
use mu_check::symbolic::{self, Strategy};
use mu_check::syntax;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Formulas for each specification.
const FORMULAS: usize = 6;
/// Specifications with more states are left out.
const MOST_STATES: usize = 300;

/// Numbers of comparisons.
#[derive(Default, Debug)]
pub struct Tally {
    specifications: u64,
    too_large: u64,
    states: u64,
    confluent: u64,
    symmetric: u64,
    printed: u64,
    formulas: u64,
    weak: u64,
    too_hard: u64,
    truths: u64,
    constants: u64,
    products: u64,
    /// Games on quotients by strong and by divergence-preserving branching bisimilarity.
    on_strong: u64,
    on_branching: u64,
    games: u64,
    symbolic: u64,
    on_files: u64,
    confirmed: u64,
    replayed: u64,
    pub comparisons: u64,
}

impl Tally {
    /// Fails if some route was not compared once. A short run cannot expect quotients, which few
    /// formulas need.
    fn missed_no_route(&self) {
        let routes = [
            ("specifications", self.specifications),
            ("formulas", self.formulas),
            ("comparisons", self.comparisons),
            ("products", self.products),
            ("parity games", self.games),
            ("the symbolic engine", self.symbolic),
            ("confluent steps", self.confluent),
            ("symmetries", self.symmetric),
            ("printed specifications", self.printed),
            ("files", self.on_files),
            ("evidence that is confirmed", self.confirmed),
            (
                "quotients by strong bisimilarity",
                if self.formulas < 500 { 1 } else { self.on_strong },
            ),
            (
                "quotients by branching bisimilarity",
                if self.formulas < 500 { 1 } else { self.on_branching },
            ),
        ];
        let missed: Vec<&str> = routes.iter().filter(|r| r.1 == 0).map(|r| r.0).collect();
        assert!(
            missed.is_empty() || self.formulas < 50 && self.comparisons > 0,
            "not met: {}; {self:?}",
            missed.join(", ")
        );
    }
}

/// Describes the first difference.
fn expect_same<T: PartialEq + std::fmt::Debug>(
    tally: &mut Tally,
    what: impl FnOnce() -> String,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    tally.comparisons += 1;
    if found == expected {
        Ok(())
    } else {
        Err(format!("{}: {found:?} where {expected:?} was expected", what()))
    }
}

fn alike(
    tally: &mut Tally,
    what: &str,
    a: &Lts,
    b: &Lts,
    equivalence: Equivalence,
) -> Result<(), String> {
    tally.comparisons += 1;
    if equivalent(a, b, equivalence, 1) {
        return Ok(());
    }
    let (x, y, name) = (a.state_count(), b.state_count(), equivalence.name());
    Err(format!(
        "{what}: not {name} equivalent, {x} and {y} states: {:?}",
        distinguish(a, b, equivalence, 1)
    ))
}

fn parse_specification(text: &str) -> Result<ProcSpec, Diagnostic> {
    typecheck::check_specification(&syntax::parse_specification(SourceId::FIRST, text)?)
}

fn at_stage(what: &str) -> impl Fn(Diagnostic) -> String {
    let what = what.to_string();
    move |d| format!("{what}: {}", d.message)
}

/// Multi-actions of a label table by the texts of a model's labels.
struct Table(Vec<Arc<MultiAction>>);

impl ActionLabels for Table {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.0[label.index()].clone()
    }
}

impl Table {
    fn new(labels: &Labels, model: &Compiled) -> Self {
        let known: HashMap<String, LabelId> =
            (0..model.label_count()).map(LabelId::new).map(|l| (model.label_text(l), l)).collect();
        let of =
            |text: &String| known.get(text).map_or_else(Arc::default, |l| model.multi_action(*l));
        Self(labels.texts.iter().map(of).collect())
    }
}

/// One thread, caches off and on in turn with the case.
fn options(threads: usize, cache: bool) -> explore::Options {
    explore::Options { threads, cache, ..Default::default() }
}

/// A specification with its transition system, ready for formulas.
pub struct Subject {
    model: Compiled,
    plain: Compiled,
    confluent: Compiled,
    lts: Arc<Lts>,
    file: Arc<Lts>,
    strong: Arc<Lts>,
    branching: Arc<Lts>,
    weak: Arc<Lts>,
}

/// Counts states, transitions, and deadlocks by the explorer.
fn counts(model: &dyn Model, options: &explore::Options) -> Result<(u64, u64, u64), String> {
    let found = explore::explore(model, options, &Budget::default(), &Silent)
        .map_err(at_stage("explore"))?;
    match found.stop {
        Stop::Complete => Ok((found.states, found.transitions, found.deadlocks)),
        stop => Err(format!("explore stopped: {stop:?}")),
    }
}

/// Compares all routes to the transition system of a specification; none if it is too large.
pub fn subject(
    seed: u64,
    texts: &(String, String),
    tally: &mut Tally,
) -> Result<Option<Subject>, String> {
    let small = parse_specification(&texts.1).map_err(at_stage("the text for the rules"))?;
    let expected = match by_rules(&small, MOST_STATES) {
        Ok(lts) => with_sorted_labels(lts),
        Err(d) if d.message.starts_with("more than") => {
            tally.too_large += 1;
            return Ok(None);
        }
        Err(d) => return Err(at_stage("rules")(d)),
    };
    let spec = parse_specification(&texts.0).map_err(at_stage("the text for the tool"))?;
    let linear = |constants, duplicates| {
        let options = linearise::LineariserOptions { constants, duplicates, ..Default::default() };
        // One of four with its components folded.
        let options = if seed.is_multiple_of(4) { options.with_all_folded() } else { options };
        linearise::linearise(&spec, &options).map_err(at_stage("lineariser"))
    };
    let compiled =
        |process, confluence| Compiled::new(process, &confluence).map_err(at_stage("compile"));
    let full = |model: &Compiled, options: &explore::Options| {
        let (outcome, lts) = explore::explore_lts(model, options, &Budget::default(), &Silent)
            .map_err(at_stage("explore"))?;
        if outcome.stop == Stop::Complete {
            Ok(lts)
        } else {
            Err(format!("explore stopped: {:?}", outcome.stop))
        }
    };
    let process = linear(true, true)?;
    let printed = (seed.is_multiple_of(4)).then(|| print::linear_process(&process));
    let confluent = compiled(process.clone(), Confluence::Auto)?;
    let model = compiled(process, Confluence::None)?;
    let lts = full(&model, &options(1, true))?;
    alike(
        tally,
        "rules and lineariser",
        &expected,
        &with_sorted_labels(lts.clone()),
        Equivalence::STRONG,
    )?;
    tally.states += lts.state_count() as u64;
    // The same by other numbers of threads, caches, sizes: the same numbers, and the same
    // numbering.
    let base = counts(&model, &options(1, true))?;
    expect_same(
        tally,
        || "states kept and counted".into(),
        &(lts.state_count() as u64, lts.transition_count() as u64),
        &(base.0, base.1),
    )?;
    let tiny = explore::Options { cache_bytes: 2000, expected_states: 1, ..options(2, true) };
    for (name, options) in [
        ("cache off", options(1, false)),
        ("2 threads", options(2, true)),
        ("7 threads", options(7, true)),
        ("7 threads, cache off", options(7, false)),
        ("2 threads, a tiny cache", tiny),
        ("no symmetries", explore::Options { symmetry: false, ..options(1, true) }),
    ] {
        if options.threads == 7 && !seed.is_multiple_of(3) {
            continue;
        }
        expect_same(tally, || format!("counts, {name}"), &counts(&model, &options)?, &base)?;
        let mut other = full(&model, &options)?;
        expect_same(
            tally,
            || format!("transition system, {name}"),
            &sorted_rows(&mut other),
            &sorted_rows(&mut lts.clone()),
        )?;
    }
    let found = explore::explore(&model, &options(1, true), &Budget::default(), &Silent)
        .map_err(at_stage("explore"))?;
    tally.symmetric += u64::from(found.symmetries > 1);
    let plain = compiled(linear(false, false)?, Confluence::None)?;
    alike(tally, "unsimplified", &lts, &full(&plain, &options(1, true))?, Equivalence::STRONG)?;
    let one = compiled(linear(seed.is_multiple_of(2), !seed.is_multiple_of(2))?, Confluence::None)?;
    alike(tally, "one simplification", &lts, &full(&one, &options(1, true))?, Equivalence::STRONG)?;
    if let Some(text) = printed {
        tally.printed += 1;
        let again = parse_specification(&text)
            .map_err(|d| format!("the printed linear process: {}\n{text}", d.message))?;
        let again = linearise::linearise(&again, &Default::default())
            .map_err(at_stage("lineariser on the printed linear process"))?;
        let again = full(&compiled(again, Confluence::None)?, &options(1, true))?;
        alike(
            tally,
            "printed linear process",
            &with_sorted_labels(lts.clone()),
            &with_sorted_labels(again),
            Equivalence::STRONG,
        )?;
    }
    // Confluence.
    let prioritised = options(1, true).with_confluence_of(&confluent);
    if prioritised.confluent.contains(&true) {
        tally.confluent += 1;
        let less = full(&confluent, &prioritised)?;
        alike(tally, "confluence", &lts, &less, Equivalence::BRANCHING)?;
        let by_threads = explore::Options { threads: 2, cache: false, ..prioritised };
        let (mut a, mut b) = (full(&confluent, &by_threads)?, less);
        expect_same(
            tally,
            || "confluence, 2 threads, cache off".into(),
            &sorted_rows(&mut a),
            &sorted_rows(&mut b),
        )?;
    }
    // Quotients.
    let mut quotients = Vec::new();
    for equivalence in Equivalence::ALL {
        let quotient = reduce(&lts, equivalence, 1);
        alike(tally, "quotient", &lts, &quotient, equivalence)?;
        let again = reduce(&quotient, equivalence, 2);
        let sizes = |l: &Lts| (l.state_count(), l.transition_count());
        expect_same(
            tally,
            || format!("quotient of a quotient, {}", equivalence.name()),
            &sizes(&again),
            &sizes(&quotient),
        )?;
        quotients.push(quotient);
    }
    // Sets of states.
    let strategy =
        [Strategy::Saturation, Strategy::Chaining, Strategy::BreadthFirst][(seed % 3) as usize];
    let found = symbolic::reach(&model, &sets(strategy, seed), &Budget::default())
        .map_err(at_stage("symbolic"))?;
    let number =
        |n: Option<num_bigint::BigUint>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
    let symbolic = (number(Some(found.states)), number(found.transitions), number(found.deadlocks));
    expect_same(tally, || format!("symbolic counts, {strategy:?}"), &symbolic, &base)?;
    // The file.
    let mut bytes = Vec::new();
    aut::write(&lts, &mut bytes).map_err(at_stage("writing the file"))?;
    let file =
        aut::read(&bytes[..], &aut::AutOptions::default()).map_err(at_stage("reading the file"))?;
    let shape = |l: &Lts| (l.initial, l.offsets.clone(), l.targets.clone());
    expect_same(tally, || "file".into(), &shape(&file), &shape(&lts))?;
    alike(tally, "file", &lts, &file, Equivalence::STRONG)?;
    tally.specifications += 1;
    let mut quotients = quotients.into_iter().map(Arc::new);
    let strong = quotients.next().expect("strong");
    let branching = quotients.nth(1).expect("branching");
    let weak = quotients.next().expect("weak");
    Ok(Some(Subject {
        model,
        plain,
        confluent,
        lts: Arc::new(lts),
        file: Arc::new(file),
        strong,
        branching,
        weak,
    }))
}

fn sets(strategy: Strategy, seed: u64) -> symbolic::SymbolicOptions {
    let threads = [1, 2, 7][(seed / 3 % 3) as usize];
    let mut options = symbolic::SymbolicOptions {
        strategy,
        merge: !seed.is_multiple_of(5),
        threads,
        ..Default::default()
    };
    options.settings.initial_bits = 8;
    options
}

/// Returns each state's transitions in an order that depends on texts only.
fn sorted_rows(lts: &mut Lts) -> Vec<Vec<(String, u32)>> {
    (0..lts.state_count())
        .map(|s| {
            let mut row: Vec<(String, u32)> = lts
                .successors(StateId::new(s))
                .map(|(l, t)| (lts.table.texts[l.index()].clone(), t.number()))
                .collect();
            row.sort();
            row
        })
        .collect()
}

/// Fuel of the direct evaluation of a formula.
const FUEL: u64 = 60_000;
/// Fuel for the others in comparison: all routes are finite, some formulas have very many
/// obligations.
const MOST_PAIRS: u64 = 30_000;

/// Compares all routes to the verdict of a formula.
pub fn verdicts(
    seed: u64,
    subject: &Subject,
    text: &str,
    kind: Kind,
    tally: &mut Tally,
) -> Result<(), String> {
    let tree = syntax::parse_formula(SourceId::FIRST, text).map_err(at_stage("formula"))?;
    let typed = |model: &Compiled| {
        check_formula(&tree, &model.process().data, &model.process().actions)
            .map_err(at_stage("formula"))
    };
    let formula = typed(&subject.model)?;
    let table = Table::new(&subject.lts.table, &subject.model);
    let Some(expected) = direct::holds_within(&formula, &subject.lts, &table, FUEL)
        .map_err(at_stage("direct evaluation"))?
    else {
        tally.too_hard += 1;
        return Ok(());
    };
    tally.formulas += 1;
    tally.truths += u64::from(expected);
    let (auto, zielonka, promotion) = (solvers()[0], solvers()[1], solvers()[2]);
    let verdict = if expected { Verdict::True } else { Verdict::False };
    let plainly = explore::Options { symmetry: false, ..options(1, false) };
    let explore_options = [options(1, true), options(2, true), options(7, true), plainly];
    let threads = if seed.is_multiple_of(3) { 2 } else { 1 };
    // On the model: product where the shape allows, then the game by every solver.
    for (name, force_game, solver, explore) in [
        ("auto", false, auto, &explore_options[0]),
        ("least batches", false, auto, &explore_options[3]),
        ("more threads", false, zielonka, &explore_options[threads]),
        ("no cache, no symmetries", false, promotion, &explore_options[3]),
        ("game, auto", true, auto, &explore_options[0]),
        ("game, zielonka", true, zielonka, &explore_options[3]),
        ("game, promotion", true, promotion, &explore_options[0]),
        ("game on a quotient", true, auto, &explore_options[0]),
    ] {
        let quotient_at = (name == "game on a quotient").then_some(0);
        let batches = if name == "least batches" { BatchSizes::LEAST } else { BatchSizes::USUAL };
        let solver = Some(solver);
        let options = Options { force_game, quotient_at, batches, solver, ..Options::new(explore) };
        let answer = answer(&subject.model, &subject.model, &formula, options, name)?;
        let Some(answer) = answer else {
            tally.too_hard += 1;
            return Ok(());
        };
        expect_same(
            tally,
            || format!("model, {name} ({})", answer.method.word()),
            &answer.verdict,
            &verdict,
        )?;
        match answer.reduced.map(|r| r.equivalence) {
            None => {}
            Some(e) if e == Equivalence::STRONG => tally.on_strong += 1,
            Some(_) => tally.on_branching += 1,
        }
        match answer.method {
            Method::Constant => tally.constants += 1,
            Method::Product => tally.products += 1,
            Method::Game => tally.games += 1,
            Method::Symbolic | Method::SymbolicGame | Method::Pairs => {}
        }
        evidence(&answer, &subject.model, &subject.model, &formula, tally)
            .map_err(|e| format!("model, {name}: {e}"))?;
    }
    // On the transition system and its quotients, on the other linear process.
    let mut systems = vec![("file", &subject.file), ("strong quotient", &subject.strong)];
    if kind == Kind::Weak {
        tally.weak += 1;
        systems.push(("branching quotient", &subject.branching));
        systems.push(("weak quotient", &subject.weak));
    }
    for (name, lts) in systems {
        let (model, table) = (LtsModel::new(lts.clone()), Table::new(&lts.table, &subject.model));
        let options =
            Options { force_game: seed.is_multiple_of(2), ..Options::new(&explore_options[0]) };
        let Some(answer) = answer(&model, &table, &formula, options, name)? else { continue };
        expect_same(tally, || name.into(), &answer.verdict, &verdict)?;
        evidence(&answer, &model, &table, &formula, tally).map_err(|e| format!("{name}: {e}"))?;
    }
    // The formula on the labels of the file alone, if it needs no declarations.
    let labels =
        InferredLabels::new(&subject.file.table.texts).map_err(at_stage("labels of the file"))?;
    if let Ok(formula) = check_formula(&tree, labels.data(), labels.actions()) {
        let model = LtsModel::new(subject.file.clone());
        if let Some(answer) = answer(
            &model,
            &labels,
            &formula,
            Options::new(&explore_options[0]),
            "labels of the file",
        )? {
            tally.on_files += 1;
            expect_same(tally, || "labels of the file".into(), &answer.verdict, &verdict)?;
        }
    }
    let other = typed(&subject.plain)?;
    if let Some(answer) = answer(
        &subject.plain,
        &subject.plain,
        &other,
        Options::new(&explore_options[3]),
        "unsimplified",
    )? {
        expect_same(tally, || "unsimplified".into(), &answer.verdict, &verdict)?;
    }
    let prioritised = options(1, true).with_confluence_of(&subject.confluent);
    if prioritised.confluent.contains(&true) {
        let formula = typed(&subject.confluent)?;
        if let Some(answer) = answer(
            &subject.confluent,
            &subject.confluent,
            &formula,
            Options::new(&prioritised),
            "confluence",
        )? {
            expect_same(tally, || "confluence".into(), &answer.verdict, &verdict)?;
            evidence(&answer, &subject.confluent, &subject.confluent, &formula, tally)
                .map_err(|e| format!("confluence: {e}"))?;
        }
    }
    // Sets of states.
    match check_symbolically(
        &subject.model,
        &subject.model,
        &formula,
        &sets(Strategy::Saturation, seed),
        &Budget::default(),
    ) {
        Ok(answer) => {
            tally.symbolic += 1;
            expect_same(tally, || "symbolic".into(), &answer.verdict, &verdict)?;
            let answer = answer.into_answer();
            evidence(&answer, &subject.model, &subject.model, &formula, tally)
                .map_err(|e| format!("symbolic: {e}"))?;
        }
        Err(d) => return Err(at_stage("symbolic")(d)),
    }
    // The game in a file, by every solver.
    let limits =
        mu_check::base::Limits { timeout: Some(Duration::from_millis(500)), ..Default::default() };
    let budget = Budget::new(limits);
    let built = match game(&subject.model, &subject.model, &formula, &explore_options[0], &budget) {
        Err(d) if d.stop.is_some() => None,
        built => Some(built.map_err(at_stage("game"))?),
    };
    if let Some(built) = built
        && built.vertex_count() < MOST_PAIRS as usize
    {
        let mut bytes = Vec::new();
        pg::write(&built, &mut bytes).map_err(at_stage("writing the game"))?;
        let read =
            pg::read(&String::from_utf8_lossy(&bytes)).map_err(at_stage("reading the game"))?;
        let mut winners = None;
        for solver in solvers() {
            let solution = solver
                .solve(&read, &Budget::default())
                .map_err(|stop| format!("{}: {stop:?}", solver.name()))?;
            verify::verify(&read, &solution)
                .map_err(|flaw| format!("game file, {}: {flaw}", solver.name()))?;
            expect_same(
                tally,
                || format!("game file, {}", solver.name()),
                &(solution.winner(read.initial) == Player::Even),
                &expected,
            )?;
            let all = winners.get_or_insert_with(|| solution.winners.clone());
            expect_same(tally, || format!("winners, {}", solver.name()), &solution.winners, all)?;
        }
    }
    Ok(())
}

/// Returns the verdict with evidence; none if it takes too many obligations.
fn answer(
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    options: Options,
    name: &str,
) -> Result<Option<Answer>, String> {
    let limits =
        mu_check::base::Limits { timeout: Some(Duration::from_secs(2)), ..Default::default() };
    let answer =
        check(model, labels, formula, options, &Budget::new(limits)).map_err(at_stage(name))?;
    Ok((!matches!(answer.verdict, Verdict::Unknown(_))).then_some(answer))
}

fn evidence(
    answer: &Answer,
    model: &dyn Model,
    labels: &dyn ActionLabels,
    formula: &TypedFormula,
    tally: &mut Tally,
) -> Result<(), String> {
    let Some(evidence) = &answer.evidence else { return Ok(()) };
    if evidence.verdict != (answer.verdict == Verdict::True) {
        return Err("the evidence is of the other verdict".into());
    }
    match checker::check(evidence, model, labels, formula).map_err(at_stage("evidence"))? {
        EvidenceCheck::Confirmed => tally.confirmed += 1,
        EvidenceCheck::StepsOnly => tally.replayed += 1,
    }
    Ok(())
}

/// A specification and some formulas from tapes: the specification's, then one for each formula.
fn case(seed: u64, tapes: &mut [Tape], tally: &mut Tally) -> Result<(), String> {
    let texts = specification(&mut tapes[0]);
    let Some(subject) = subject(seed, &texts, tally)? else { return Ok(()) };
    for (i, tape) in tapes[1..].iter_mut().enumerate() {
        let kind = if (seed + i as u64) % 4 == 3 { Kind::Weak } else { Kind::Any };
        let text = formula(tape, kind);
        if is_traced() {
            println!("formula {i}: {text}");
        }
        let seed = seed + i as u64;
        verdicts(seed, &subject, &text, kind, tally)
            .map_err(|e| format!("{e}\nformula {i}: {text}"))?;
    }
    Ok(())
}

fn tapes(seed: u64) -> Vec<Tape> {
    (0..=FORMULAS as u64)
        .map(|i| Tape::new(seed.wrapping_mul(0x1_0001).wrapping_add(i << 48)))
        .collect()
}

/// Runs the same; a panic is a failure.
fn catch_panic(seed: u64, tapes: &mut [Tape], tally: &mut Tally) -> Result<(), String> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| case(seed, tapes, tally)))
        .unwrap_or_else(|panic| {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
            Err(format!("panic: {}", text.unwrap_or_default()))
        })
}

/// Shrinks a failure and prints it.
fn fail(seed: u64, tapes: &[Tape], error: &str) -> ! {
    // The formulas before the one that fails are of no interest.
    let failing = error
        .rsplit_once("\nformula ")
        .and_then(|(_, rest)| rest.split(':').next()?.parse::<usize>().ok());
    let seed_of = |kept: Option<usize>| kept.map_or(seed, |i| seed + i as u64);
    let mut start = vec![tapes[0].choices()];
    start.extend(failing.map(|i| tapes[1 + i].choices()));
    let run = |tapes: &[Vec<u32>]| {
        let mut tapes: Vec<Tape> = tapes.iter().map(|t| Tape::replay(t.clone())).collect();
        catch_panic(seed_of(failing), &mut tapes, &mut Tally::default()).err()
    };
    std::panic::set_hook(Box::new(|_| {}));
    // The smaller case has the same failure, up to the first colon.
    let what = |e: &str| e.split(':').next().unwrap_or_default().to_string();
    let wanted = what(error);
    let deadline = Instant::now() + Duration::from_secs(60);
    let tries = from_environment("AGREEMENT_SHRINK").map_or(5000, |t| t as usize);
    let small = shrink(start, tries, |tapes| {
        Instant::now() < deadline && run(tapes).is_some_and(|e| what(&e) == wanted)
    });
    let _ = std::panic::take_hook();
    let error = run(&small).unwrap_or_else(|| error.to_string());
    let text = specification(&mut Tape::replay(small[0].clone())).0;
    panic!(
        "AGREEMENT_SEED={seed} AGREEMENT_CASES=1 replays this:\n{error}\n{}",
        &text[text.find("act ").unwrap_or(0)..]
    );
}

/// True if each case is printed.
fn is_traced() -> bool {
    std::env::var_os("AGREEMENT_TRACE").is_some()
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|v| v.parse().ok())
}

/// Runs cases until `cases` formulas are compared or the time is over.
fn run(cases: u64, seconds: u64) {
    let first = from_environment("AGREEMENT_SEED");
    let cases = from_environment("AGREEMENT_CASES").unwrap_or(cases);
    let limit = Duration::from_secs(from_environment("AGREEMENT_SECONDS").unwrap_or(seconds));
    // The rules recurse over terms, which grow with the stack of an infinite process: a large
    // stack.
    let worker = move || {
        let (start, mut last_report) = (Instant::now(), Instant::now());
        let mut tally = Tally::default();
        let mut seed = first.unwrap_or(0);
        loop {
            let mut tapes = tapes(seed);
            if is_traced() {
                println!("seed {seed}\n{}", specification(&mut tapes[0].clone()).0);
            }
            if let Err(error) = catch_panic(seed, &mut tapes, &mut tally) {
                fail(seed, &tapes, &error);
            }
            seed += 1;
            if tally.formulas >= cases || start.elapsed() > limit {
                break;
            }
            if last_report.elapsed() > Duration::from_secs(30) {
                last_report = Instant::now();
                println!("{} formulas, seed {seed}, {} MB", tally.formulas, resident_bytes() >> 20);
            }
        }
        let share = |n: u64| n as f64 * 100.0 / tally.formulas.max(1) as f64;
        println!(
            "seeds {}..{seed}: no difference in {:.0} s, {:.0} formulas a second, {:.1} % true, {:.1} % false\n{tally:?}",
            first.unwrap_or(0),
            start.elapsed().as_secs_f64(),
            tally.formulas as f64 / start.elapsed().as_secs_f64(),
            share(tally.truths),
            share(tally.formulas - tally.truths)
        );
        // A replayed case may take any routes; a run must take every route.
        if first.is_none() || cases > 1 {
            tally.missed_no_route();
        }
        if tally.formulas > 100 {
            assert!(
                share(tally.truths) > 30.0 && share(tally.truths) < 70.0,
                "the formulas are nearly all of one kind"
            );
        }
    };
    let run = std::thread::Builder::new().stack_size(512 << 20).spawn(worker).expect("a thread");
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn every_route_gives_the_same_answer() {
    run(300, 20);
}

#[test]
#[ignore = "runs at length"]
fn long() {
    run(1_000_000, 400);
}

/// The generators stay within the language, and their tapes replay.
#[test]
fn a_tape_replays() {
    for seed in 0..20 {
        let mut tape = Tape::new(seed);
        let text = specification(&mut tape);
        assert_eq!(text, specification(&mut Tape::replay(tape.choices())));
        let mut tape = Tape::new(seed);
        let text = formula(&mut tape, Kind::Any);
        assert_eq!(text, formula(&mut Tape::replay(tape.choices()), Kind::Any));
    }
    // The smallest tape that makes a formula with a fixed point.
    let has = |tapes: &[Vec<u32>]| {
        formula(&mut Tape::replay(tapes[0].clone()), Kind::Any).contains("mu ")
    };
    let seed = (0..)
        .find(|s| formula(&mut Tape::new(*s), Kind::Any).contains("mu "))
        .expect("one of them");
    let mut tape = Tape::new(seed);
    let long = formula(&mut tape, Kind::Any);
    let small = shrink(vec![tape.choices()], 2000, has);
    let short = formula(&mut Tape::replay(small[0].clone()), Kind::Any);
    assert!(short.contains("mu ") && short.len() <= long.len() && short.len() < 60, "{short}");
}
