//! Equation systems as text: random formulas on random specifications, written out, read back,
//! instantiated and solved, against the check.
//!
//! `MU_CHECK_CASES` formulas from `MU_CHECK_SEED` on.

use crate::support::mu_check;
use crate::support::random_text::{Kind, formula, specification};
use crate::support::tape::Tape;
use mu_check::base::{Budget, Diagnostic, SourceId, Stop};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, Silent};
use mu_check::formula::equations;
use mu_check::formula::typecheck::check_formula;
use mu_check::game::solve::solvers;
use mu_check::game::{Player, moves, verify};
use mu_check::pbes::{Options, Verdict, check, print};
use mu_check::process::typecheck::check_specification;
use mu_check::process::{linear::LinearProcess, linearise};
use mu_check::syntax;

const MOST: u64 = 20_000;

fn process(text: &str) -> Result<LinearProcess, Diagnostic> {
    linearise::linearise(
        &check_specification(&syntax::parse_specification(SourceId::FIRST, text)?)?,
        &Default::default(),
    )
}

/// True if the first player wins the game of a system; `None` if it has too many states.
fn first_player_wins(text: &str, which: usize) -> Result<Option<bool>, Diagnostic> {
    let system = equations::read(SourceId::FIRST, text)?;
    let process =
        linearise::linearise(&check_specification(&system.specification)?, &Default::default())?;
    let model = Compiled::new(process, &Confluence::None)?;
    let budget =
        Budget::new(mu_check::base::Limits { max_states: Some(MOST), ..Default::default() });
    let (outcome, lts) = explore::explore_lts(
        &model,
        &explore::Options { threads: 1, ..Default::default() },
        &budget,
        &Silent,
    )?;
    if outcome.stop != Stop::Complete {
        return Ok(None);
    }
    let game = moves::game(&lts, &system.prefix, &system.least, &system.initial)?;
    let solver = solvers()[which % solvers().len()];
    let solution = solver.solve(&game, &Budget::default()).expect("no limit");
    verify::verify(&game, &solution).expect("a right solution");
    Ok(Some(solution.winner(game.initial) == Player::Even))
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

#[test]
fn probabilistic_processes_have_no_boolean_equations() {
    let text = "act a; proc P(n: Nat) = a . dist m: Nat[if(m < 2, 1 / 2, 0)] . P(m); init P(0);";
    let process = process(text).unwrap();
    let tree = syntax::parse_formula(SourceId::FIRST, "[true*]<true>true").unwrap();
    let formula = check_formula(&tree, &process.data, &process.actions).unwrap();
    let error = print::pbes(&formula, &process).unwrap_err();
    assert!(error.message.contains("probabilistic"), "{error:?}");
}

#[test]
fn systems_have_the_values_of_their_formulas() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 60));
    let (mut truths, mut compared, mut alternating) = (0, 0, 0);
    for seed in first..first + cases {
        let mut tape = Tape::new(seed);
        let (text, _) = specification(&mut tape);
        let process = process(&text).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
        let model = Compiled::new(process.clone(), &Confluence::None).unwrap();
        let budget =
            Budget::new(mu_check::base::Limits { max_states: Some(60), ..Default::default() });
        let options = explore::Options { threads: 1, ..Default::default() };
        match explore::explore(&model, &options, &budget, &Silent) {
            Ok(outcome) if outcome.stop == Stop::Complete => {}
            _ => continue,
        }
        let formula_text = formula(&mut tape, Kind::Any);
        let typed = check_formula(
            &syntax::parse_formula(SourceId::FIRST, &formula_text).unwrap(),
            &process.data,
            &process.actions,
        )
        .unwrap();
        let Ok(answer) = check(&model, &model, &typed, Options::new(&options), &Budget::default())
        else {
            continue;
        };
        let system = print::pbes(&typed, &process).unwrap();
        let found = match first_player_wins(&system, seed as usize) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(e) => panic!("seed {seed}: {e:?}\n{formula_text}\n{system}"),
        };
        assert_eq!(
            found,
            answer.verdict == Verdict::True,
            "seed {seed}\n{formula_text}\n{text}\n{system}"
        );
        compared += 1;
        truths += u64::from(found);
        alternating += u64::from(system.contains("\n  mu ") && system.contains("\n  nu "));
    }
    println!("{compared} systems compared, {truths} true, {alternating} with both fixed points");
    assert!(
        compared * 3 > cases
            && truths * 5 > compared
            && (compared - truths) * 5 > compared
            && alternating > 0,
        "{compared} {truths} {alternating}"
    );
}

#[test]
fn all_that_the_language_has() {
    let text = |body: &str| {
        format!(
            "% data\nsort D = struct d1 | d2;\nmap f: D -> D; some_0: Nat;\neqn f(d1) = d2; f(d2) = d1; some_0 = 3;\npbes\n{body}"
        )
    };
    for (expected, body) in [
        (
            true,
            "nu X(n: Nat, d: D) = % a remark; with a semicolon\n (val(n < 3) => X(n + 1, f(d))) && (val(n >= 3) => val(d == f(d1))); init X(0, d1);",
        ),
        (
            false,
            "nu X(n: Nat, d: D) = (val(n < 3) => X(n + 1, f(d))) && (val(n >= 3) => val(d == d1)); init X(0, d1);",
        ),
        (false, "mu X = X; init X;"),
        (true, "nu X = X; init X;"),
        (false, "mu X = Y; nu Y = X; init Y;"),
        (true, "nu Y = X; mu X = Y; init X;"),
        (true, "nu X = !(!X || false) && !!true; init X;"),
        (false, "nu X = forall n: Nat. val(n < 5) => (val(n < 4) && X); init X;"),
        (
            true,
            "mu yes = exists n: Nat. val(n < some_0) && (forall m: Nat. val(m < n) => yes) && true; init yes;",
        ),
        (
            true,
            "nu some_1(n: Nat) = all_0(n) || val(n == 7); mu all_0(n: Nat) = val(n > 0) && all_0(Int2Nat(n - 1)) || val(n == 0) && some_1(2); init some_1(9);",
        ),
        (true, "nu X = val(true); init X;"),
        (false, "nu X = false; init X;"),
    ] {
        for which in 0..solvers().len() {
            assert_eq!(
                first_player_wins(&text(body), which).unwrap_or_else(|e| panic!("{body}: {e:?}")),
                Some(expected),
                "{body}"
            );
        }
    }
}

/// Systems of infinitely many instances, of which no finite part decides; whatever the data are,
/// the answer is the same.
#[test]
fn what_data_has_no_say_in_is_decided() {
    for (expected, body) in [
        (
            "true",
            "nu X(m: Nat, n: Nat) = X(m + 1, n + 1) || val(n > 1) && Y(m + 1); mu Y(m: Nat) = Y(m + 1); init X(0, 0);",
        ),
        (
            "true",
            "nu X(m: Nat, n: Nat) = X(n + 1, 1) && X(m + 1, m + 1) || val(m == n) && X(1, n + 1); init X(0, 0);",
        ),
        ("false", "mu X(n: Nat) = (val(n > 3) || X(n + 2)) && X(n + 1); init X(0);"),
        (
            "false",
            "mu X(n: Nat) = !(val(n > 5)) && Y(n); nu Y(n: Nat) = X(n + 1) || (exists b: Bool. val(b) && X(n + 2)); init Y(0);",
        ),
        // Here data decides, after as many instances.
        ("false", "nu X(n: Nat) = val(n < 9000) && X(n + 1); init X(0);"),
        ("true", "mu X(n: Nat) = val(n == 9000) || X(n + 1); init X(0);"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("system.pbes");
        std::fs::write(&path, format!("pbes {body}")).unwrap();
        let run = mu_check(&["solve", path.to_str().unwrap()]);
        assert_eq!(run.json["verdict"], expected, "{body}: {}", run.stderr);
    }
}

/// Decisions without data agree with decisions with data, on random systems of few instances.
#[test]
fn bare_systems_are_right() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 60) * 5);
    let (mut decided, mut truths) = (0, 0);
    for seed in first..first + cases {
        let mut tape = Tape::new(seed);
        let count = 1 + tape.below(4);
        let mut text = String::from("pbes\n");
        for i in 0..count {
            let sign = *tape.choose(&["mu", "nu"]);
            text += &format!(
                "  {sign} X{i}(b: Bool, c: Bool) = {};\n",
                right_hand_side(&mut tape, count, 4)
            );
        }
        text += "init X0(true, false);\n";
        let system = equations::read(SourceId::FIRST, &text).unwrap();
        let solver = solvers()[seed as usize % solvers().len()];
        let Some(bare) =
            mu_check::pbes::data_free::decide(&system, solver, &Budget::default()).unwrap()
        else {
            continue;
        };
        let solution = solver.solve(&bare.game, &Budget::default()).unwrap();
        verify::verify(&bare.game, &solution).unwrap();
        assert_eq!(solution.winner(bare.game.initial) == Player::Even, bare.value);
        assert_eq!(
            first_player_wins(&text, seed as usize).unwrap(),
            Some(bare.value),
            "seed {seed}\n{text}"
        );
        decided += 1;
        truths += u64::from(bare.value);
    }
    println!("{decided} of {cases} systems decided without their data, {truths} true");
    assert!(
        decided * 5 > cases && truths * 5 > decided && (decided - truths) * 5 > decided,
        "{decided} {truths}"
    );
}

fn right_hand_side(tape: &mut Tape, count: usize, depth: usize) -> String {
    let data = |tape: &mut Tape| {
        (*tape.choose(&["b", "!b", "c", "b && c", "b == c", "true", "!true"])).to_string()
    };
    if depth == 0 || tape.chance(1, 5) {
        return match tape.below(6) {
            0 => format!("val({})", data(tape)),
            1 => (*tape.choose(&["true", "false"])).to_string(),
            _ => format!("X{}({}, {})", tape.below(count), data(tape), data(tape)),
        };
    }
    let part = |tape: &mut Tape| right_hand_side(tape, count, depth - 1);
    match tape.below(6) {
        0 => format!("(val(b) => {})", part(tape)),
        1 => format!("({} {}. {})", tape.choose(&["forall", "exists"]), "c: Bool", part(tape)),
        2 | 3 => format!("({} && {})", part(tape), part(tape)),
        _ => format!("({} || {})", part(tape), part(tape)),
    }
}

/// Errors are rejected with their place.
#[test]
fn refusals_have_places() {
    for (text, at, message) in [
        ("nu X = X; init X;", "X;", "unexpected"),
        ("pbes nu X = Y; init X;", "Y", "`Y` has no equation"),
        ("pbes nu X = X; init Z;", "Z", "`Z` has no equation"),
        ("pbes nu X = X; nu X = X; init X;", "X = X; init", "two equations"),
        ("pbes nu X = !X; init X;", "X; init", "odd number of negations"),
        ("pbes nu X = [true]X; init X;", "[true]", "a modality"),
        ("pbes nu X = mu Y. Y; init X;", "mu", "a fixed point"),
        ("pbes nu X(n: Nat) = X(n + tru); init X(0);", "tru", "`tru` is not declared"),
        ("pbes nu X(n: Nat) = X(0) init X(0);", "init", ""),
        ("act a; pbes nu X = X; init X;", "a;", "no actions"),
        ("pbes nu X = X; init X; more", "more", "unexpected `more`"),
        ("pbes nu X = X;", ";", "ends here"),
        ("pbes init X;", "init", "unexpected `init`"),
    ] {
        let error = match first_player_wins(text, 0) {
            Err(error) => error,
            Ok(value) => panic!("{text}: {value:?}"),
        };
        let span = error.span.unwrap_or_else(|| panic!("{text}: {error:?}"));
        assert!(error.message.contains(message), "{text}: {error:?}");
        let place = match text {
            "nu X = X; init X;" => 0,
            "pbes nu X = X;" => 13,
            _ => text
                .rfind(at)
                .filter(|_| !["two equations", ""].contains(&message))
                .or(text.find(at))
                .unwrap(),
        };
        assert_eq!(span.start as usize, place, "{text}: {error:?}");
    }
}

/// A quantifier with more instances than a batch of the stored search (64): the first batch meets
/// no cycle of the model, a later one does.
#[test]
fn each_batch_of_instances_looks_for_cycles_of_its_own_states() {
    let model = "act a, b: Nat; c, d;
        proc P = sum n: Nat. (n < 80) -> a(n) . Q(n);
             Q(n: Nat) = (n != 40) -> b(n) . delta <> c . R(n);
             R(n: Nat) = d . R(n);
        init P;";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mcrl2");
    std::fs::write(&path, model).unwrap();
    for (formula, code) in [
        ("forall n: Nat. val(n < 80) => nu Y(k: Nat = n). [a(k)] mu X. [!b(k)] X", 1),
        ("exists n: Nat. val(n < 80) && mu Y(k: Nat = n). <a(k)> nu X. <!b(k)> X", 0),
        ("forall n: Nat. val(n < 80 && n != 40) => nu Y(k: Nat = n). [a(k)] mu X. [!b(k)] X", 0),
    ] {
        for engine in ["explicit", "symbolic"] {
            let words = [path.to_str().unwrap(), "-f", formula, "--engine", engine];
            assert_eq!(mu_check(&words).code, code, "{formula}, {engine}");
        }
    }
}
