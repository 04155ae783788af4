//! The language, construct by construct: the examples of `docs/language.md` and the cases of
//! `tests/language/*.mcrl2`.
//!
//! In a document each block fenced as `mcrl2` is a case; in a file of cases a line `%% case TITLE`
//! begins one. Lines of a case that begin with `%%` say what it must give, the others are the
//! specification (`init delta;` is added where there is no `init`):
//!
//! ```text
//! %% states 4, transitions 5       counts of the explorer
//! %% value 7 div 2 is 3            the normal form of an expression
//! %% value head([]) is error TEXT  error of the evaluation
//! %% formula [true*]<true>true is false
//! %% formula mu X. !X is error TEXT
//! %% like a . b . delta            strongly bisimilar to the case with this initial process
//! %% refused TEXT                  a stage up to exploration fails with this text in the message
//! ```
//!
//! Expectations were worked out by hand; each answer is computed by a second route as well where
//! one applies: values by the naive rewriter, transition systems by the operational rules on
//! process terms and without simplification, verdicts by direct evaluation on the transition
//! system. `MU_CHECK_CASES=FILE cargo test --test language -- --nocapture` runs another file and
//! prints all that is found.

use crate::support::rules::{by_rules, with_sorted_labels};
use mu_check::base::ids::LabelId;
use mu_check::base::{Budget, Diagnostic, Limits, SourceId, SourceMap, Stop};
use mu_check::compile::{Compiled, Confluence};
use mu_check::data::engine::{Engine, Program};
use mu_check::data::expr::DataSpec;
use mu_check::data::naive::Naive;
use mu_check::data::print::expression;
use mu_check::data::typecheck::check_expression;
use mu_check::explore::{self, Silent};
use mu_check::formula::direct;
use mu_check::formula::typecheck::check_formula;
use mu_check::lts::Lts;
use mu_check::lts::equivalence::{Equivalence, equivalent};
use mu_check::pbes::{Options, Verdict, check};
use mu_check::process::labels::{ActionLabels, MultiAction};
use mu_check::process::linear::LinearProcess;
use mu_check::process::spec::ProcSpec;
use mu_check::process::{linearise, typecheck};
use mu_check::syntax;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// States that a case may have.
const MOST_STATES: u64 = 20_000;

/// One case of a file.
#[derive(Default)]
struct Case {
    title: String,
    text: String,
    expected: Vec<String>,
}

/// Number of answers by a second route.
#[derive(Default, Debug)]
struct Tally {
    cases: usize,
    values: usize,
    values_twice: usize,
    systems: usize,
    systems_twice: usize,
    verdicts: usize,
    verdicts_twice: usize,
    refusals: usize,
    likenesses: usize,
}

/// Cases of a document or of a file of cases.
fn cases(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let document = path.extension().is_some_and(|e| e == "md");
    let (mut out, mut title, mut open) = (Vec::<Case>::new(), String::new(), false);
    for (i, line) in text.lines().enumerate() {
        let mut begin = |title: String| {
            out.push(Case {
                title: format!("{}:{}: {title}", path.display(), i + 1),
                ..Case::default()
            })
        };
        if document {
            match line {
                "```mcrl2" => {
                    begin(title.clone());
                    open = true;
                    continue;
                }
                "```" => open = false,
                _ if line.starts_with('#') => title = line.trim_start_matches(['#', ' ']).into(),
                _ => {}
            }
        } else if let Some(name) = line.strip_prefix("%% case ") {
            begin(name.into());
            open = true;
            continue;
        }
        if let (true, Some(case)) = (open, out.last_mut()) {
            match line.strip_prefix("%% ") {
                Some(expected) => case.expected.push(expected.into()),
                None => case.text += &format!("{line}\n"),
            }
        }
    }
    out
}

fn parse(source: SourceId, text: &str) -> Result<ProcSpec, Diagnostic> {
    typecheck::check_specification(&syntax::parse_specification(source, text)?)
}

fn budget() -> Budget {
    Budget::new(Limits {
        max_states: Some(MOST_STATES),
        timeout: Some(Duration::from_secs(20)),
        ..Default::default()
    })
}

/// Returns a transition system with its model.
fn explore_specification(
    spec: &ProcSpec,
    options: &linearise::LineariserOptions,
) -> Result<(Compiled, Lts), Diagnostic> {
    let process: LinearProcess = linearise::linearise(spec, options)?;
    let model = Compiled::with_budget(process, &Confluence::None, &budget())?;
    let options = explore::Options { threads: 1, ..Default::default() };
    let (outcome, lts) = explore::explore_lts(&model, &options, &budget(), &Silent)?;
    match outcome.stop {
        Stop::Complete => Ok((model, lts)),
        stop => Err(Diagnostic::stopped(stop)),
    }
}

/// Returns the normal form by the engine; and by the naive rewriter, if it finds one built like the
/// engine's.
fn value(spec: &ProcSpec, text: &str) -> Result<(String, Option<String>), Diagnostic> {
    let mut data: DataSpec = spec.data.clone();
    let e = check_expression(&syntax::parse_data(SourceId::FIRST, text)?, &mut data, None)?;
    let mut engine = Engine::new(Program::compile(&data)?);
    engine.set_step_limit(300_000);
    let found = engine.from_expr(&e)?;
    let shown = engine.text(&found, 2000);
    let mut naive = Naive::new(&data, 50_000);
    // What the naive rewriter gives is read back by printing it; terms that it does not know stay
    // longer than the engine's.
    let second = naive.normal(&e).map(|n| expression(naive.signature(), &n));
    Ok((shown, second))
}

/// Splits `EXPRESSION is ANSWER`.
fn answer(text: &str) -> (&str, &str) {
    if let Some(at) = text.find(" is error ") {
        return (&text[..at], &text[at + 4..]);
    }
    text.rsplit_once(" is ").unwrap_or_else(|| panic!("`{text}`: ` is ` and an answer are missing"))
}

/// True if an answer is the wanted value, or an error with the wanted text.
fn fits(wanted: &str, found: &Result<String, Diagnostic>) -> bool {
    match (wanted.strip_prefix("error "), found) {
        (Some(text), Err(d)) => d.message.contains(text) && d.exit_code() == 2,
        (None, Ok(found)) => found == wanted,
        _ => false,
    }
}

/// Multi-actions of a transition system's labels by the texts of a model's.
struct Table(Vec<Arc<MultiAction>>);

impl ActionLabels for Table {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        self.0[label.index()].clone()
    }
}

fn verdict(
    model: &Compiled,
    lts: &Lts,
    text: &str,
    tally: &mut Tally,
) -> Result<String, Diagnostic> {
    use mu_check::model::Model;
    let tree = syntax::parse_formula(SourceId::FIRST, text)?;
    let formula = check_formula(&tree, &model.process().data, &model.process().actions)?;
    let explore = explore::Options { threads: 1, ..Default::default() };
    let mut answers = Vec::new();
    for force_game in [false, true] {
        let found = check(
            model,
            model,
            &formula,
            Options { force_game, ..Options::new(&explore) },
            &budget(),
        )?;
        answers.push(match found.verdict {
            Verdict::True => "true",
            Verdict::False => "false",
            Verdict::Unknown(_) => "unknown",
        });
    }
    let known: HashMap<String, LabelId> =
        (0..model.label_count()).map(LabelId::new).map(|l| (model.label_text(l), l)).collect();
    let of = |text: &String| known.get(text).map_or_else(Arc::default, |l| model.multi_action(*l));
    let table = Table(lts.table.texts.iter().map(of).collect());
    if let Ok(Some(holds)) = direct::holds_within(&formula, lts, &table, 100_000) {
        tally.verdicts_twice += 1;
        answers.push(if holds { "true" } else { "false" });
    }
    let same = answers.iter().all(|a| *a == answers[0]);
    Ok(if same { answers[0].into() } else { format!("not one answer but {answers:?}") })
}

/// Runs a case. Returns the problems.
fn run(case: &Case, tally: &mut Tally, show: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let text = if case.text.lines().any(|l| l.trim_start().starts_with("init")) {
        case.text.clone()
    } else {
        format!("{}\ninit delta;\n", case.text)
    };
    let mut sources = SourceMap::new();
    let source = sources.add("case", text.as_str());
    tally.cases += 1;
    let spec = parse(source, &text);
    let system = spec
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|spec| explore_specification(spec, &linearise::LineariserOptions::default()));
    let rendered = |d: &Diagnostic| d.render(&sources);
    if show {
        match &system {
            Ok((_, lts)) => {
                println!("  states {}, transitions {}", lts.state_count(), lts.transition_count())
            }
            Err(d) => println!("  refused {}", rendered(d)),
        }
    }
    if let Some(refused) = case.expected.iter().find_map(|e| e.strip_prefix("refused ")) {
        tally.refusals += 1;
        match &system {
            Ok(_) => wrong.push(format!("not refused: {refused}")),
            Err(d) if !d.message.contains(refused) || d.exit_code() != 2 => {
                wrong.push(format!("refused otherwise than with `{refused}`: {}", rendered(d)))
            }
            Err(_) => {}
        }
        return wrong;
    }
    let spec = match spec {
        Ok(spec) => spec,
        Err(d) => return vec![rendered(&d)],
    };
    if case.expected.iter().any(|e| ["states", "like", "formula"].iter().any(|w| e.starts_with(w)))
        && let Err(d) = &system
    {
        wrong.push(rendered(d));
    }
    if let Ok((_, lts)) = &system {
        tally.systems += 1;
        let own = with_sorted_labels(lts.clone());
        if let Ok(rules) = by_rules(&spec, MOST_STATES as usize / 10) {
            tally.systems_twice += 1;
            if !equivalent(&with_sorted_labels(rules), &own, Equivalence::STRONG, 1) {
                wrong.push("not strongly bisimilar to what the operational rules give".into());
            }
        }
        // Each simplification by itself, none, all; with all components folded.
        let names = linearise::LineariserOptions::SIMPLIFICATIONS;
        for name in names.into_iter().chain(["none", "all", "folded"]) {
            let mut options = linearise::LineariserOptions::plain().with_all(name == "all");
            if name == "folded" {
                options = linearise::LineariserOptions::default().with_all_folded();
            }
            if let Some(switch) = options.simplification(name) {
                *switch = true;
            }
            match explore_specification(&spec, &options) {
                Ok((_, other)) => {
                    let counts = |l: &Lts| (l.state_count(), l.transition_count());
                    if !equivalent(&with_sorted_labels(other.clone()), &own, Equivalence::STRONG, 1)
                    {
                        wrong.push(format!("simplification {name} changes the transition system"));
                    } else if !options.dead && counts(&other) != counts(lts) {
                        wrong.push(format!(
                            "simplification {name} changes the counts: {:?}, {:?}",
                            counts(lts),
                            counts(&other)
                        ));
                    }
                }
                Err(d) => wrong.push(format!("simplification {name}: {}", rendered(&d))),
            }
        }
    }
    for expected in &case.expected {
        let (word, rest) = expected.split_once(' ').unwrap_or((expected, ""));
        match word {
            "states" => {
                let Ok((_, lts)) = &system else { continue };
                let found =
                    format!("states {}, transitions {}", lts.state_count(), lts.transition_count());
                if *expected != found {
                    wrong.push(format!("expected {expected}, found {found}"));
                }
            }
            "value" => {
                let (expression, wanted) = answer(rest);
                let found = value(&spec, expression);
                tally.values += 1;
                if let Ok((engine, Some(naive))) = &found {
                    // Shorter is more evaluated: the naive rewriter leaves alone what it does not
                    // know.
                    let agrees = engine == naive;
                    tally.values_twice += usize::from(agrees);
                    if show && !agrees {
                        println!("  naive {expression}: {naive}");
                    }
                }
                let found = found.map(|f| f.0);
                if !fits(wanted, &found) {
                    wrong.push(format!(
                        "value {expression}: expected {wanted}, found {}",
                        found.unwrap_or_else(|d| rendered(&d))
                    ));
                }
            }
            "formula" => {
                let Ok((model, lts)) = &system else { continue };
                let (formula, wanted) = answer(rest);
                tally.verdicts += 1;
                let start = std::time::Instant::now();
                let found = verdict(model, lts, formula, tally);
                if show && start.elapsed() > Duration::from_millis(500) {
                    println!("  {formula} took {:.1?}", start.elapsed());
                }
                if !fits(wanted, &found) {
                    wrong.push(format!(
                        "formula {formula}: expected {wanted}, found {}",
                        found.unwrap_or_else(|d| d.message)
                    ));
                }
            }
            "like" => {
                let Ok((_, lts)) = &system else { continue };
                tally.likenesses += 1;
                let at = text.rfind("init").expect("an initial process");
                let other = format!("{}init {rest};\n", &text[..at]);
                match parse(source, &other).and_then(|s| {
                    explore_specification(&s, &linearise::LineariserOptions::default())
                }) {
                    Ok((_, other)) => {
                        if !equivalent(
                            &with_sorted_labels(other),
                            &with_sorted_labels(lts.clone()),
                            Equivalence::STRONG,
                            1,
                        ) {
                            wrong.push(format!("not strongly bisimilar to {rest}"));
                        }
                    }
                    Err(d) => wrong.push(format!("{rest}: {}", d.message)),
                }
            }
            _ => wrong.push(format!("`{expected}` is no expectation")),
        }
    }
    if case.expected.is_empty() && !show {
        wrong.push("nothing is expected".into());
    }
    wrong
}

fn run_all(paths: &[PathBuf]) -> Tally {
    let show = std::env::var_os("MU_CHECK_CASES").is_some();
    let mut tally = Tally::default();
    let mut wrong = Vec::new();
    for case in paths.iter().flat_map(|p| cases(p)) {
        if show {
            println!("{}", case.title);
        }
        let start = std::time::Instant::now();
        let found = run(&case, &mut tally, show);
        if start.elapsed() > Duration::from_secs(2) {
            println!("{} took {:.1?}", case.title, start.elapsed());
        }
        for w in found {
            if show {
                println!("  WRONG {w}");
            }
            wrong.push(format!("{}: {w}", case.title));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), tally.cases, wrong.join("\n"));
    tally
}

/// Parameters, summands and sum variables of a linear process, and states and transitions if they
/// are few.
fn figures(text: &str, simplifications: &[&str]) -> ([usize; 3], Option<(usize, usize)>) {
    let spec = parse(SourceId::FIRST, text).expect("a specification");
    let mut options = linearise::LineariserOptions::plain();
    simplifications
        .iter()
        .for_each(|name| *options.simplification(name).expect("a simplification") = true);
    let process = linearise::linearise(&spec, &options).expect("a linear process");
    let sums = process.summands.iter().map(|s| s.sum_vars.len()).sum();
    let lts = explore_specification(&spec, &options)
        .ok()
        .map(|(_, lts)| (lts.state_count(), lts.transition_count()));
    ([process.params.len(), process.summands.len(), sums], lts)
}

#[test]
fn simplifications_by_name() {
    // `k` is counted and never looked at, also in the process that the first one becomes.
    let dead = "act a: Nat; b; c: Bool;
        proc P(n: Nat, k: Nat) = (n < 2) -> a(n) . P(n + 1, k + 1) + b . Q(k);
             Q(k: Nat) = sum x: Bool. c(x) . Q(k + 1);
        init P(0, 0);";
    assert_eq!(figures(dead, &[]), ([3, 3, 1], None));
    assert_eq!(figures(dead, &["dead"]), ([2, 3, 1], Some((4, 7))));
    assert_eq!(figures(dead, &["dead", "instantiate"]), ([2, 4, 0], Some((4, 7))));
    let constant =
        "act a: Nat # Nat; proc P(n, m: Nat) = (n < 3) -> a(n, m) . P(n + 1, m); init P(0, 7);";
    assert_eq!(figures(constant, &[]), ([2, 1, 0], Some((4, 3))));
    assert_eq!(figures(constant, &["constants"]), ([1, 1, 0], Some((4, 3))));
    let duplicate =
        "act a: Nat # Nat; proc P(n, m: Nat) = (n < 3) -> a(n, m) . P(n + 1, m + 1); init P(0, 0);";
    assert_eq!(figures(duplicate, &[]), ([2, 1, 0], Some((4, 3))));
    assert_eq!(figures(duplicate, &["duplicates"]), ([1, 1, 0], Some((4, 3))));
    let determined = "act a: Nat; init sum n, m: Nat. (n == m + 1 && m == 2) -> a(n) . delta;";
    assert_eq!(figures(determined, &[]), ([1, 1, 2], Some((2, 1))));
    assert_eq!(figures(determined, &["eliminate"]), ([1, 1, 0], Some((2, 1))));
    let narrower = "act a: Pos; proc P(x: Int) = sum p: Pos. (p == x) -> a(p) . P(x - 1) + (x < 1) -> a(9) . delta; init P(2);";
    assert_eq!(figures(narrower, &[]).0, [2, 2, 1]);
    assert_eq!(figures(narrower, &["eliminate"]), ([2, 2, 0], Some((4, 3))));
    let never = "act a: Nat; proc P(n: Nat, k: Pos) = (n < 3 && k > 2) -> a(n) . P(n + 1, k) + (n < 9 && k > 5) -> a(n) . P(n, k);
        init P(0, 3);";
    assert_eq!(figures(never, &["constants"]), ([1, 1, 0], Some((4, 3))));
    // The second component is never at the place where it would answer `d`.
    let control = "act a, b, c, d, e: Nat;
        proc P = a(0) . P + d(1) . P;
             Q(on: Bool) = on -> b(0) . Q(on) <> e(1) . Q(true);
        init allow({c, b}, comm({a|b -> c, d|e -> c}, P || Q(true)));";
    assert_eq!(figures(control, &[]), ([1, 3, 0], Some((1, 2))));
    assert_eq!(figures(control, &["control"]), ([1, 2, 0], Some((1, 2))));
    // A board: one or two squares are looked at by each instance of a sum.
    let board = "sort Piece = struct pin | empty; Board = struct board(Piece, Piece, Piece, Piece);
        map at: Pos # Board -> Piece; put: Pos # Piece # Board -> Board;
        var x, y, z, u, p: Piece; n: Pos;
        eqn at(1, board(x, y, z, u)) = x; at(2, board(x, y, z, u)) = y; at(3, board(x, y, z, u)) = z; at(4, board(x, y, z, u)) = u;
            put(1, p, board(x, y, z, u)) = board(p, y, z, u); put(2, p, board(x, y, z, u)) = board(x, p, z, u);
            put(3, p, board(x, y, z, u)) = board(x, y, p, u); put(4, p, board(x, y, z, u)) = board(x, y, z, p);
        act move: Pos # Pos;
        proc X(b: Board) = sum n, m: Pos. (n <= 4 && m <= 4 && at(n, b) == pin && at(m, b) == empty)
            -> move(n, m) . X(put(m, pin, put(n, empty, b)));
        init X(board(pin, pin, empty, empty));";
    assert_eq!(figures(board, &[]), ([1, 1, 2], Some((6, 24))));
    assert_eq!(figures(board, &["unfold"]), ([4, 16, 0], Some((6, 24))));
    // The same as a list of rows, and three pins in a row or a column end the game: a summand for
    // each line of the board.
    let rows = "sort Piece = struct pin | empty; Row = List(Piece);
        map at: Pos # Pos # List(Row) -> Piece; at: Pos # Row -> Piece; put: Pos # Pos # Piece # List(Row) -> List(Row); put: Pos # Piece # Row -> Row;
            line, column, full: List(Row) -> Bool; column: Pos # List(Row) -> Bool;
        var x, y: Pos; p, q: Piece; r: Row; b: List(Row);
        eqn y == 1 -> at(x, y, r |> b) = at(x, r); y > 1 -> at(x, y, r |> b) = at(x, Int2Pos(y - 1), b);
            x == 1 -> at(x, p |> r) = p; x > 1 -> at(x, p |> r) = at(Int2Pos(x - 1), r);
            y == 1 -> put(x, y, q, r |> b) = put(x, q, r) |> b; y > 1 -> put(x, y, q, r |> b) = r |> put(x, Int2Pos(y - 1), q, b);
            x == 1 -> put(x, q, p |> r) = q |> r; x > 1 -> put(x, q, p |> r) = p |> put(Int2Pos(x - 1), q, r);
            line([]) = false; line(r |> b) = r == [pin, pin, pin] || line(b);
            x <= 3 -> column(x, b) = if(at(x, 1, b) == pin, at(x, 2, b) == pin, false) || column(x + 1, b); x > 3 -> column(x, b) = false;
            full(b) = line(b) || column(1, b);
        act place: Pos # Pos; done;
        proc X(b: List(Row), n: Nat) = sum x, y: Pos. (x <= 3 && y <= 2 && n < 3 && at(x, y, b) == empty) -> place(x, y) . X(put(x, y, pin, b), n + 1)
            + full(b) -> done . X([[empty, empty, empty], [empty, empty, empty]], 3);
        init X([[empty, empty, empty], [empty, empty, empty]], 0);";
    let plain = figures(rows, &[]);
    assert_eq!(plain.0, [2, 2, 2]);
    // Six places, two rows, three columns.
    assert_eq!(figures(rows, &["unfold"]), ([7, 11, 0], plain.1));
    // Queues of variable length in a list of constant length; a list that grows is not unfolded.
    let queues = "map push: Pos # Nat # List(List(Nat)) -> List(List(Nat)); var x: Pos; n: Nat; q: List(Nat); l: List(List(Nat));
        eqn push(1, n, q |> l) = (q <| n) |> l; x > 1 -> push(x, n, q |> l) = q |> push(Int2Pos(x - 1), n, l);
        act a: Pos; proc P(l: List(List(Nat))) = sum x: Pos. (x <= 4 && #(l . Int2Nat(x - 1)) < 3) -> a(x) . P(push(x, x, l)); init P([[7], [7], [7], [7]]);";
    assert_eq!(figures(queues, &["unfold"]), ([4, 4, 0], Some((81, 216))));
    let grows = "act a: Nat; proc P(l: List(Nat)) = (#l < 5) -> a(#l) . P(l <| 1) + (#l > 4) -> a(0) . P(tail(l)); init P([1, 2]);";
    assert_eq!(figures(grows, &["unfold"]), ([1, 2, 0], figures(grows, &[]).1));
    // A board as a function of functions: conditions check three in a row for each row, and no move
    // follows. At the end the board is not live.
    let function = "sort Piece = struct none | pin; map start: Pos -> Pos -> Piece; full: (Pos -> Pos -> Piece) -> Bool;
        var x, y: Pos; b: Pos -> Pos -> Piece;
        eqn start(x)(y) = none; full(b) = exists i: Pos. i <= 3 && b(i)(1) == pin && b(i)(2) == pin && b(i)(3) == pin;
        act put: Pos # Pos; done;
        proc X(b: Pos -> Pos -> Piece) = full(b) -> done . delta
            <> sum i, j: Pos. (i <= 3 && j <= 3 && b(i)(j) == none) -> put(i, j) . X(b[i -> b(i)[j -> pin]]);
        init X(start);";
    let plain = figures(function, &[]);
    assert_eq!(plain, ([2, 2, 2], Some((491, 3 * 12 * 49 + 147))));
    assert_eq!(figures(function, &["unfold"]), ([10, 12, 0], plain.1));
    // A function that is updated at a parameter with few values is unfolded by these values.
    let somewhere = "act a: Nat; proc P(f: Nat -> Bool, n: Nat) = (n < 3) -> a(n) . P(f[n -> !f(n)], n + 1); init P(lambda x: Nat. x > 1, 0);";
    assert_eq!(figures(somewhere, &["unfold"]), ([4, 3, 0], figures(somewhere, &[]).1));
    let walk = "sort Field = struct free | trodden; Side = struct up | down | left | right; Row = List(Field);
        map at: Pos # Pos # List(Row) -> Field; at: Pos # Row -> Field; tread: Pos # Pos # List(Row) -> List(Row); tread: Pos # Row -> Row;
            x, y: Pos # Side -> Pos; inside: Pos # Pos # Side -> Bool;
        var n, m: Pos; p: Field; r: Row; b: List(Row);
        eqn m == 1 -> at(n, m, r |> b) = at(n, r); m > 1 -> at(n, m, r |> b) = at(n, Int2Pos(m - 1), b);
            n == 1 -> at(n, p |> r) = p; n > 1 -> at(n, p |> r) = at(Int2Pos(n - 1), r);
            m == 1 -> tread(n, m, r |> b) = tread(n, r) |> b; m > 1 -> tread(n, m, r |> b) = r |> tread(n, Int2Pos(m - 1), b);
            n == 1 -> tread(n, p |> r) = trodden |> r; n > 1 -> tread(n, p |> r) = p |> tread(Int2Pos(n - 1), r);
            x(n, up) = n; x(n, down) = n; x(n, left) = Int2Pos(n - 1); x(n, right) = n + 1;
            y(n, left) = n; y(n, right) = n; y(n, down) = Int2Pos(n - 1); y(n, up) = n + 1;
            inside(n, m, up) = m < 3; inside(n, m, down) = m > 1; inside(n, m, left) = n > 1; inside(n, m, right) = n < 3;
        act step: Pos # Pos; stay: Pos;
        proc Walk(n, m: Pos, b: List(Row)) =
            sum s: Side. (inside(n, m, s) && at(x(n, s), y(m, s), b) == free) -> step(x(n, s), y(m, s)) . Walk(x(n, s), y(m, s), tread(x(n, s), y(m, s), b))
            + (forall s: Side. !inside(n, m, s) || at(x(n, s), y(m, s), b) == trodden) -> stay(n) . delta;
        init Walk(2, 2, [[free, free, free], [free, trodden, free], [free, free, free]]);";
    let plain = figures(walk, &[]);
    assert_eq!(plain.0, [4, 2, 1]);
    assert_eq!(figures(walk, &["unfold"]), ([12, 33, 0], plain.1));
    // A parameter that all actions show, or that an unknown function yields, is not unfolded.
    let visible = "sort R = struct r(x: Nat, y: Bool); act a: R; proc P(p: R) = (x(p) < 3) -> a(p) . P(r(x(p) + 1, !y(p))); init P(r(0, true));";
    assert_eq!(figures(visible, &["unfold"]), ([1, 1, 0], Some((4, 3))));
    let unknown =
        "sort R = struct r(Bool, Bool); map f: Bool # R -> R; var b, c: Bool; eqn f(true, r(b, c)) = r(c, !b); f(false, r(b, c)) = r(b, c);
        act a: Bool; proc P(d: Bool, p: R) = a(d) . P(!d, f(d, p)) + (p == r(true, true)) -> a(d) . P(d, p); init P(true, r(false, true));";
    assert_eq!(figures(unknown, &["unfold"]), ([2, 2, 0], Some((8, 10))));
    // Records in records, choices of records, two parameters that hand over fields to each other.
    let nested = "sort In = struct inner(lo: Bool, hi: Bool); Out = struct outer(left: In, right: In, number: Nat);
        act a, b, c: Bool; n: Nat;
        proc P(p: Out, q: In) = a(lo(left(p))) . P(outer(inner(!lo(left(p)), hi(left(p))), right(p), number(p)), q)
            + b(hi(q)) . P(outer(left(p), q, number(p)), inner(hi(q), hi(right(p))))
            + (number(p) < 2) -> n(number(p)) . P(if(number(p) == 1, outer(left(p), right(p), 0), outer(left(p), right(p), 1)), q)
            + hi(right(p)) -> c(true) . P(p, inner(lo(right(p)), hi(q)));
        init P(outer(inner(true, false), inner(true, true), 0), inner(false, true));";
    let plain = figures(nested, &[]);
    assert_eq!(plain.0, [2, 4, 0]);
    assert_eq!(figures(nested, &["unfold"]), ([7, 4, 0], plain.1));
    // User-defined equality compares whole records.
    let own = "sort R; cons r: Nat # Nat -> R; map low: R -> Nat; var n, m, k, l: Nat; eqn r(n, m) == r(k, l) = n == k; low(r(n, m)) = m;
        act a: Nat; proc P(p: R) = (p == r(1, 7)) -> a(low(p)) . P(r(2, 2)); init P(r(1, 5));";
    assert_eq!(figures(own, &["unfold"]), ([1, 1, 0], Some((2, 1))));
    // A condition that has no value, negated again and again.
    let stuck = "act x: Bool; m: Nat; map g: Nat -> Bool;
        proc Y(k: Nat) = m(k) . Z(g(k)); Z(r: Bool) = r -> x(r) . Z(r) <> tau . Z(r => r);
        init Y(1);";
    assert_eq!(figures(stuck, &["control"]), ([3, 3, 0], None));
    // What comes after a process that never ends needs no stack, also behind one alternative of
    // several.
    let never_done = "act a, b, c; proc V = a . V . b; init V;";
    assert_eq!(figures(never_done, &[]), ([0, 1, 0], Some((1, 1))));
    let one_ends = "act a, b, c, d; proc W = a . (V + c) . b . delta; V = d . V . b; init W;";
    assert_eq!(figures(one_ends, &[]), ([1, 5, 0], Some((5, 5))));
    let by_turns = "act a, b, c, d; proc X = a . Y . c; Y = b . X . d; init X . (Y . c + d);";
    assert_eq!(figures(by_turns, &[]), ([1, 2, 0], Some((2, 2))));
    // A name for an instance of a process is no place of its own.
    let named = "act a: Nat; proc Cell(n: Nat) = (n < 2) -> a(n) . Cell(n + 1); New = Cell(0); Other(n: Nat) = Again(n + 1); Again(n: Nat) = Cell(n);
        init New || Other(0);";
    assert_eq!(
        figures(named, &[]).1,
        figures(&named.replace("init New || Other(0)", "init Cell(0) || Cell(1)"), &[]).1
    );
    // A stack without end, of one kind of frames and two places.
    let growing = "act a, b, c; proc Z = a . (b . Z + Z) . Z + c; init Z;";
    assert_eq!(figures(growing, &[]), ([2, 7, 0], None));
    // The same without an end: none of what comes after is reached.
    assert_eq!(figures(&growing.replace(" + c", ""), &[]), ([1, 3, 0], Some((2, 3))));
}

fn with_room(f: impl FnOnce() + Send + 'static) {
    // The operational rules recurse over terms.
    if let Err(panic) =
        std::thread::Builder::new().stack_size(256 << 20).spawn(f).expect("a thread").join()
    {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn labels_show_times_as_the_language_writes_them() {
    let spec =
        parse(SourceId::FIRST, "act a, b: Nat; init b(1)@3 . delta + a(0)@(5/2) . delta;").unwrap();
    let (_, lts) = explore_specification(&spec, &Default::default()).unwrap();
    let mut texts: Vec<String> =
        lts.table.texts.iter().filter(|t| t.contains('@')).cloned().collect();
    texts.sort();
    assert_eq!(texts, ["a(0) @ (5 / 2)", "b(1) @ 3"]);
    for text in texts {
        syntax::parse_process(SourceId::FIRST, &text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    }
}

#[test]
fn examples_of_the_document() {
    with_room(|| {
        let tally = run_all(&[Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/language.md")]);
        println!("{tally:?}");
        assert!(tally.cases > 20);
    });
}

#[test]
fn cases_of_each_construct() {
    with_room(|| {
        let mut paths: Vec<PathBuf> = match std::env::var_os("MU_CHECK_CASES") {
            Some(path) => vec![path.into()],
            None => {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language");
                folder
                    .read_dir()
                    .expect("the folder of cases")
                    .map(|f| f.expect("a file").path())
                    .collect()
            }
        };
        paths.sort();
        let tally = run_all(&paths);
        println!("{tally:?}");
    });
}
