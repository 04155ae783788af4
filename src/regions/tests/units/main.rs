//! Tests of regions on random processes with counters and random formulas: results for all values
//! agree with results for each value.

mod audit;
mod components;
mod thread_modular;
mod termination;
mod richer;
mod rows;
mod sample;
mod sizes;

use mu_base::random::Random;
use mu_base::{Budget, Diagnostic, Limits, SourceId};
use mu_compile::{Compiled, Confluence};
use mu_explore::{Cyclic, Silent, is_acyclic};
use mu_formula::typecheck::check_formula;
use mu_formula::typed::{StateKind, TypedFormula, TypedStateFormula};
use mu_pbes::{Options, PairResult, Verdict, check, prove_by_pairs};
use mu_process::linear::LinearProcess;
use mu_process::linearise::{self, linearise};
use mu_regions::{AbstractableModel, Levels, Study, measures, with_parameters};

fn budget() -> Budget {
    Budget::new(Limits { max_states: Some(20_000), ..Limits::default() })
}

fn process(text: &str) -> Result<LinearProcess, Diagnostic> {
    process_of_any_size(text, &[])
}

/// Linearises a specification with constants of sorts of any size.
fn process_of_any_size(text: &str, any_size: &[String]) -> Result<LinearProcess, Diagnostic> {
    let tree = mu_syntax::parse_specification(SourceId::FIRST, text)?;
    linearise(
        &mu_process::typecheck::check_specification(&tree)?,
        &linearise::LineariserOptions {
            any_size: any_size.to_vec(),
            ..linearise::LineariserOptions::of_any_size(&["N".into()])
        },
    )
}

fn formula(text: &str, model: &Compiled) -> Result<TypedFormula, Diagnostic> {
    let process = model.process();
    check_formula(
        &mu_syntax::parse_formula(SourceId::of(1), text)?,
        &process.data,
        &process.actions,
    )
}

/// Returns the verdict for one value of `N`.
fn concrete(specification: &str, text: &str, n: usize) -> Result<Verdict, Diagnostic> {
    let model =
        Compiled::new(process(&format!("{specification}\neqn N = {n};"))?, &Confluence::None)?;
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    check(
        &model,
        &model,
        &formula(text, &model)?,
        Options { evidence: false, ..Options::new(&options) },
        &budget(),
    )
    .map(|a| a.verdict)
}

/// Returns whether regions prove that all runs terminate.
fn runs_end(
    model: &Compiled,
    defined: &mu_regions::SymbolicConstants,
    found: &[mu_regions::Measure],
) -> bool {
    let process = model.process();
    let any = TypedStateFormula { kind: StateKind::True, span: mu_base::Span::default() };
    let any = TypedFormula {
        data: process.data.clone(),
        actions: process.actions.clone(),
        fix_names: Vec::new(),
        formula: any,
        as_written: false,
    };
    let Ok(study) = Study::new(model, defined, &any, Levels::Coarse) else { return false };
    study.cases().iter().all(|case| {
        let Ok(regions) = study.model(case) else { return false };
        let counts = |g: usize, _| !found.iter().any(|m| m.summands.contains(&model.summand_of(g)));
        let options = mu_explore::Options { threads: 1, ..Default::default() };
        matches!(
            is_acyclic(&regions, &options, &budget(), &Silent, Some(&counts), None),
            Ok(Cyclic::No(_))
        )
    })
}

/// Checks a formula on an abstract model. What pairs of components prove is not false there.
pub(crate) fn check_with_pairs(
    model: &dyn AbstractableModel,
    formula: &TypedFormula,
    chosen: Options,
) -> Result<Verdict, Diagnostic> {
    let verdict = check(model, model, formula, chosen, &budget())?.verdict;
    match prove_by_pairs(model, model, formula, &budget())? {
        PairResult::Proved(proof) => assert_ne!(verdict, Verdict::False, "{proof:?}"),
        PairResult::Open(_) => {}
    }
    Ok(verdict)
}

/// Returns whether regions prove a formula; an error if it is unsupported.
fn is_proved(specification: &str, text: &str) -> Result<bool, Diagnostic> {
    let (process, defined) = with_parameters(process(specification)?, &["N".into()])?;
    let found = measures(&process, &defined.rigid);
    let model = Compiled::new(process, &Confluence::None)?;
    let typed = formula(text, &model)?;
    let ends = runs_end(&model, &defined, &found);
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    'levels: for level in Levels::ALL {
        let study = Study::new(&model, &defined, &typed, level)?;
        for case in study.cases() {
            let regions = study.model(case)?;
            let chosen = Options { evidence: false, runs_end: ends, ..Options::new(&options) };
            if check_with_pairs(&regions, &study.formula(case)?, chosen)? != Verdict::True {
                continue 'levels;
            }
        }
        return Ok(true);
    }
    Ok(false)
}

const COUNT: &str = "map N: Nat; act a, b: Nat; c;
proc P(n: Nat) = (n < N) -> a(n) . P(n + 1) + (n == N) -> b(n) . Q(n);
     Q(n: Nat) = c . delta;
init P(0);";

#[test]
fn a_parameter_in_a_pattern_is_rejected() {
    // The pattern matches the value of the parameter, but no term that the constant stands for.
    let text = "map N: Nat; f: Nat -> Bool; var n: Nat; eqn f(N) = true; f(n) = false;
        act a: Nat; bad;
        proc P(n: Nat) = (n < 14) -> a(n) . P(n + 1) + (n == 14 && f(n)) -> bad . P(n);
        init P(0);";
    let why = is_proved(text, "[true* . bad] false").expect_err("false for N = 14");
    assert!(why.message.contains("the left-hand side of an equation"), "{why:?}");
}

#[test]
fn a_counter_up_to_a_bound() {
    for (text, expected) in [
        ("[true*] (forall k: Nat. (val(k <= N) => [a(k) . true* . a(k)] false))", true),
        ("[true* . exists n: Nat. val(n > N) && (a(n) || b(n))] false", true),
        ("[true* . exists n: Nat. val(n >= N) && a(n)] false", true),
        ("[true* . exists n: Nat. val(n != N) && b(n)] false", true),
        (
            "[true*] (forall k, m: Nat. (val(k <= N && m <= N) => [a(k) . true* . a(m)] val(k < m)))",
            true,
        ),
        ("[true* . c . true] false", true),
        ("mu X. [true] X", true),
        ("mu X. ([!c] X && [c] false)", false),
        ("[true* . exists n: Nat. val(n >= 3) && a(n)] false", false),
        ("[a(0) . a(1) . a(2)] false", false),
        (
            "[true*] (forall k, m: Nat. (val(k <= N && m <= N) => [a(k) . true* . a(m)] val(k + 1 == m)))",
            false,
        ),
        (
            "forall k, m: Nat. (val(k <= N && m <= N) => nu X(x: Nat = k, y: Nat = m). ([true] X(x, y) && val(x <= y)))",
            false,
        ),
        (
            "forall k, m: Nat. (val(k < m && m <= N) => nu X(x: Nat = k, y: Nat = m). ([true] X(x, y) && val(x <= y)))",
            true,
        ),
    ] {
        assert_eq!(is_proved(COUNT, text).unwrap(), expected, "{text}");
        let all = (0..6).all(|n| concrete(COUNT, text, n).unwrap() == Verdict::True);
        assert_eq!(all, expected, "{text}");
    }
}

#[test]
fn what_is_refused_is_named() {
    let refused =
        |specification: &str, text: &str| is_proved(specification, text).unwrap_err().message;
    let text = "[true*] (forall k: Nat. [a(k)] false)";
    assert!(refused(&COUNT.replace("n + 1", "n + n"), text).contains("added to another number"));
    assert!(refused(&COUNT.replace("n + 1", "2 * n"), text).contains("`*`"));
    assert!(refused(COUNT, "<true*> <c> true").contains("diamond"));
    assert!(
        refused(COUNT, "[true* . exists n: Nat. val(n + 1 < N) && b(n)] false")
            .contains("plus a literal")
    );
    assert!(
        refused(COUNT, "[true*] (exists k: Nat. (val(k <= N) && [a(k)] false))")
            .contains("`exists`")
    );
    assert!(
        refused(COUNT, "nu X(n: Nat = 0). ([true] X(n + 1) && val(n <= N))").contains("counts")
    );
    assert!(
        refused(COUNT, "nu X. (forall k: Nat. (val(k <= N) => [a(k)] (X && [b(k)] false)))")
            .contains("follow each other")
    );
}

#[test]
fn runs_that_end_are_distinguished() {
    let round = "map N: Nat; act a, b: Nat;
        proc P(n: Nat) = (n < N) -> a(n) . P(n + 1) + (n == N) -> b(n) . P(0); init P(0);";
    let again = "map N: Nat; act a, b: Nat;
        proc P(n: Nat) = (n < N) -> a(n) . P(n + 1) + (n < N) -> b(n) . Q(n + 1); Q(n: Nat) = b(n) . P(0); init P(0);";
    let hang = "map N: Nat; act a, b: Nat; proc P(n: Nat) = (n < N) -> a(n) . P(n + 1) + b(n) . P(n); init P(0);";
    assert!(is_proved(COUNT, "mu X. [true] X").unwrap());
    assert!(!is_proved(round, "mu X. [true] X").unwrap());
    assert!(!is_proved(again, "mu X. [true] X").unwrap());
    assert!(!is_proved(hang, "mu X. [true] X").unwrap());
    // Seed 1259: in the abstraction, the growing step and the step that cycles forever coincide.
    let turn = "map N: Nat; act c; proc P(x, y: Nat) = (x == y && x < N && y <= N) -> c . P(x + 1, y + 1) + c . P(0, y); init P(0, 0);";
    assert!(!is_proved(turn, "mu X. [true] X").unwrap());
    assert!(is_proved(hang, "(mu X. ([exists n: Nat. a(n)] X)) || (nu Y. [true] Y)").unwrap());
}

/// Generates a process of two to four names over two counters and a short list, alone or in
/// parallel with another process that receives its numbers.
fn random_specification(r: &mut Random) -> String {
    let names = ["P", "Q", "R"];
    let count = 1 + r.below(3);
    let term = |r: &mut Random| (*r.choose(&["x", "y", "N", "0", "1", "x", "y"])).to_string();
    let guard = |r: &mut Random| match r.below(8) {
        0 => "true".to_string(),
        1 => "x < N".to_string(),
        2 => "x == y".to_string(),
        3 => format!("{} < {}", term(r), term(r)),
        4 => format!("{} <= {}", term(r), term(r)),
        5 => format!("{} == {}", term(r), term(r)),
        6 => format!("{} != {} + 1", term(r), term(r)),
        _ => "x + 1 < N".to_string(),
    };
    let mut text = "map N: Nat; act a, b, s, t, h: Nat; c, d;\nproc\n".to_string();
    for name in &names[..count] {
        let mut summands = Vec::new();
        for _ in 0..1 + r.below(3) {
            let mut conditions = vec![guard(r)];
            if r.chance(1, 3) {
                conditions.push(guard(r));
            }
            let action = match r.below(6) {
                0 => "c".to_string(),
                1 => "d".to_string(),
                2 => format!("a({})", term(r)),
                3 => "b(y)".to_string(),
                4 => "s(y)".to_string(),
                _ => "a(x)".to_string(),
            };
            let mut update = |of: &str, conditions: &mut Vec<String>| match r.below(7) {
                0 | 1 => {
                    conditions.push(format!("{of} {} N", if r.chance(1, 2) { "<" } else { "<=" }));
                    format!("{of} + 1")
                }
                2 => "0".to_string(),
                3 => if of == "x" { "y" } else { "x" }.to_string(),
                4 if r.chance(1, 3) => "N".to_string(),
                _ => of.to_string(),
            };
            let (x, y) = (update("x", &mut conditions), update("y", &mut conditions));
            let list = match r.below(6) {
                0 => {
                    conditions.push("#l < 2".into());
                    "x |> l"
                }
                1 => {
                    conditions.push("l != []".into());
                    "tail(l)"
                }
                _ => "l",
            };
            let y = if list == "tail(l)" { "head(l)".into() } else { y };
            let next = *r.choose(&names[..count]);
            summands.push(format!(
                "({}) -> {action} . {next}({x}, {y}, {list})",
                conditions.join(" && ")
            ));
        }
        text += &format!("  {name}(x, y: Nat, l: List(Nat)) = {};\n", summands.join("\n    + "));
    }
    let start = format!("P({}, 0, [])", r.choose(&["0", "0", "1", "N"]));
    if r.chance(1, 2) {
        text += "  B(m: FBag(Nat)) = (#m < 2) -> sum n: Nat. t(n) . B(m + {n: 1}) + sum n: Nat. (n in m) -> b(n) . B(m - {n: 1});\n";
        text +=
            &format!("init allow({{a, b, c, d, h}}, comm({{s | t -> h}}, {start} || B({{:}})));");
    } else {
        text += &format!("init {start};");
    }
    text
}

/// Generates a formula without diamonds.
fn random_formula(
    r: &mut Random,
    depth: usize,
    vars: &mut Vec<String>,
    fixes: &mut Vec<String>,
) -> String {
    let term = |r: &mut Random, vars: &[String]| {
        if !vars.is_empty() && r.chance(3, 4) {
            r.choose(vars).clone()
        } else {
            (*r.choose(&["N", "0", "1", "N + 1"])).to_string()
        }
    };
    let test = |r: &mut Random, vars: &[String]| {
        format!("{} {} {}", term(r, vars), r.choose(&["<", "<=", "==", "!="]), term(r, vars))
    };
    let action = |r: &mut Random, vars: &[String]| {
        let base = match r.below(7) {
            0 => "true".to_string(),
            1 => "c".to_string(),
            2 => format!("a({})", term(r, vars)),
            3 => format!("b({})", term(r, vars)),
            4 => format!(
                "(exists n: Nat. val(n {} {}) && (a(n) || b(n)))",
                r.choose(&["<", "<=", "==", "!=", ">"]),
                term(r, vars)
            ),
            5 => "(exists n: Nat. h(n))".to_string(),
            _ => format!("(a({}) || d)", term(r, vars)),
        };
        if r.chance(1, 4) { format!("!({base})") } else { base }
    };
    if depth == 0 {
        return match fixes.last() {
            Some(x) if r.chance(2, 3) => x.clone(),
            _ => ["false".to_string(), format!("val({})", test(r, vars))][r.below(2)].clone(),
        };
    }
    match r.below(10) {
        0 => format!(
            "({} && {})",
            random_formula(r, depth - 1, vars, fixes),
            random_formula(r, depth - 1, vars, fixes)
        ),
        1 => format!(
            "({} || {})",
            random_formula(r, depth - 1, vars, fixes),
            random_formula(r, depth - 1, vars, fixes)
        ),
        2 => format!("(val({}) => {})", test(r, vars), random_formula(r, depth - 1, vars, fixes)),
        3 | 4 => format!("[{}] {}", action(r, vars), random_formula(r, depth - 1, vars, fixes)),
        5 => format!("[({})*] {}", action(r, vars), random_formula(r, depth - 1, vars, fixes)),
        6 | 7 if vars.len() < 2 => {
            let v = format!("k{}", vars.len());
            vars.push(v.clone());
            let inner = random_formula(r, depth - 1, vars, fixes);
            vars.pop();
            format!("(forall {v}: Nat. (val({v} {} N) => {inner}))", r.choose(&["<", "<="]))
        }
        8 | 9 if fixes.len() < 2 => {
            let x = format!("X{}", fixes.len());
            fixes.push(x.clone());
            let (a, inner) = (action(r, vars), random_formula(r, depth - 1, vars, fixes));
            fixes.pop();
            format!("({} {x}. ([{a}] {x} && {inner}))", r.choose(&["nu", "nu", "mu"]))
        }
        _ => format!("[true*] {}", random_formula(r, depth - 1, vars, fixes)),
    }
}

/// Compares regions with the values 0 to 4 on random pairs. Returns the number of proved formulas,
/// and of those that are true for these values.
fn compare(seed: u64, count: u64) -> (usize, usize) {
    let (mut both, mut truths) = (0, 0);
    for at in seed..seed + count {
        let r = &mut Random::new(at);
        let specification = random_specification(r);
        let depth = 2 + r.below(4);
        let text = random_formula(r, depth, &mut Vec::new(), &mut Vec::new());
        let verdicts: Vec<_> = (0..=4).map(|n| concrete(&specification, &text, n)).collect();
        let holds = verdicts.iter().all(|v| matches!(v, Ok(Verdict::True)));
        let fails = verdicts.iter().any(|v| matches!(v, Ok(Verdict::False)));
        truths += usize::from(holds);
        match is_proved(&specification, &text) {
            Ok(true) => {
                assert!(!fails, "seed {at}: {text}\n{specification}\n{verdicts:?}");
                both += usize::from(holds);
            }
            Ok(false) => {}
            Err(error) => {
                assert!(error.exit_code() != 4, "seed {at}: {text}\n{specification}\n{error:?}")
            }
        }
    }
    (both, truths)
}

#[test]
fn regions_agree_with_values() {
    let count = std::env::var("REGIONS_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(120);
    let seed = std::env::var("REGIONS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let (proved, truths) = compare(seed, count);
    println!("seeds {seed}..{}: {proved} proved of {truths} that are true up to 4", seed + count);
    assert!(proved * 2 > truths, "{proved} proved of {truths}");
}
