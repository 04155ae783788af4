//! Answers along paths: on small models, and on random ones compared with instances.

use mu_base::random::Random;
use mu_base::{Budget, Diagnostic, Limits, SourceId};
use mu_compile::{Compiled, Confluence};
use mu_formula::typecheck::check_formula;
use mu_formula::typed::TypedFormula;
use mu_pbes::{Options, Verdict, check};
use mu_process::linear::LinearProcess;
use mu_process::linearise::{self, linearise};
use mu_regions::with_parameters;
use mu_zones::{Answer, Question, Samples, Verified, confirm, prove, verify};
use std::time::{Duration, Instant};

fn process(text: &str) -> Result<LinearProcess, Diagnostic> {
    let tree = mu_syntax::parse_specification(SourceId::FIRST, text)?;
    let spec = mu_process::typecheck::check_specification(&tree)?;
    linearise(&spec, &linearise::LineariserOptions::of_any_size(&["N".into()]))
}

fn formula(text: &str, model: &Compiled) -> Result<TypedFormula, Diagnostic> {
    let process = model.process();
    check_formula(
        &mu_syntax::parse_formula(SourceId::of(1), text)?,
        &process.data,
        &process.actions,
    )
}

/// Returns the verdict for one value of `N`; `None` if a limit is reached.
fn concrete(specification: &str, text: &str, n: usize) -> Result<Option<bool>, Diagnostic> {
    let text_of_n = format!("{specification}\neqn N = {n};");
    let model = Compiled::new(process(&text_of_n)?, &Confluence::None)?;
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    let chosen = Options { evidence: false, ..Options::new(&options) };
    let budget = Budget::new(Limits { max_states: Some(4_000), ..Limits::default() });
    let verdict = check(&model, &model, &formula(text, &model)?, chosen, &budget)?.verdict;
    Ok(match verdict {
        Verdict::True => Some(true),
        Verdict::False => Some(false),
        Verdict::Unknown(_) => None,
    })
}

/// Poses a formula on a specification for every value of `N`.
fn with_question<T>(
    specification: &str,
    text: &str,
    most: usize,
    then: impl FnOnce(&Question) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    let (process, defined) = with_parameters(process(specification)?, &["N".into()])?;
    let model = Compiled::new(process, &Confluence::None)?;
    let symbolic: Vec<(usize, i64)> = defined.rigid.iter().map(|r| (r.param, r.least)).collect();
    then(&Question {
        process: model.process(),
        initial: &defined.initial,
        symbolic: &symbolic,
        names: &["N".into()],
        constants: &defined.constants,
        formula: &formula(text, &model)?,
        budget: &Budget::default(),
        most: Some(most),
        certificate: true,
        identities: None,
        sizes: &[],
    })
}

fn answer(specification: &str, text: &str, most: usize) -> Result<Answer, Diagnostic> {
    with_question(specification, text, most, |question| {
        prove(question, &Samples { most: 200, seed: 1, enough: &|| false })
    })
}

/// Checks a certificate against a specification.
fn check_certificate(
    specification: &str,
    text: &str,
    certificate: &str,
) -> Result<Verified, Diagnostic> {
    with_question(specification, text, 1, |question| verify(question, certificate))
}

/// Proves a formula by cells, in a second.
fn confirm_by_cells(specification: &str, text: &str) -> Result<Verified, Diagnostic> {
    let start = Instant::now();
    let enough = || start.elapsed() > Duration::from_secs(1);
    with_question(specification, text, 1, |question| confirm(question, &enough))
}

/// Returns `true`, or the reason why there is no proof.
fn verdict(specification: &str, text: &str) -> String {
    match answer(specification, text, 4_000) {
        Ok(Answer::True(proof)) => {
            assert!(proof.audited.samples > 0, "no samples: {text}");
            let certificate = proof.certificate.expect("it was wanted");
            match check_certificate(specification, text, &certificate) {
                Ok(_) => "true".into(),
                Err(why) => format!("true, but the certificate is refused: {why:?}\n{certificate}"),
            }
        }
        Ok(Answer::Unknown(open) | Answer::Limit(open)) => open.why.message,
        Err(why) => panic!("{specification}\n{text}: {why:?}"),
    }
}

const HEAD: &str = "map N: Nat; act u, w, bad: Nat; a, b, c;\n";
const NO_BAD: &str = "[true* . (exists x: Nat. bad(x))] false";

#[track_caller]
fn table(cases: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (text, formula, expected) in cases {
        let formula = if formula.is_empty() { NO_BAD } else { formula };
        let found = verdict(&format!("{HEAD}{text}"), formula);
        if found != *expected && (*expected == "true" || !found.contains(expected)) {
            wrong.push(format!("{text}\n{formula}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn constants_without_a_value_are_no_values() {
    let violates = "violate the formula";
    let map = "map f: Nat -> Bool; var x: Nat; eqn f(9) = true; f(x) = false;";
    let one =
        |condition: &str| format!("{map} proc C = ({condition}) -> bad(0) . C + a . C; init C;");
    let hiding = "map lim: Nat -> Nat; var y: Nat; eqn lim(y) = y + N;";
    table(&[
        (&one("f(N)"), "", violates),
        (&one("((lambda z: Nat. true)[N -> false])(9) == false"), "", violates),
        (&one("f(M)").replacen("map", "map M: Nat; eqn M = N + 1; map", 1), "", violates),
        (
            &format!("{map} proc C(b: Bool) = b -> bad(0) . C(b) + a . C(f(N)); init C(false);"),
            "",
            violates,
        ),
        // Equations that use the constant are not evaluated without its value.
        (
            &format!("{map} {hiding} proc C(n: Nat) = (n < N) -> u(n) . C(n + 1); init C(0);"),
            "[true*] val(!f(lim(0)))",
            "use a symbolic parameter",
        ),
    ]);
}

/// Numbers have the names of the text in reasons.
#[test]
fn reasons_name_the_numbers_of_the_text() {
    let large = "9223372036854775808";
    table(&[
        (
            "proc C = sum k: Nat. (k == N) -> u(k) . C; init C;",
            &format!("[true* . u({large})] false"),
            &format!("neither true nor false: N == {large}"),
        ),
        (
            &format!("proc C = sum k: Nat. (k > {large}) -> u(k) . C; init C;"),
            "",
            &format!("{large} < k"),
        ),
        (
            &format!("proc C(n: Nat) = (n == {large}) -> u(n) . C(n) + a . C(n + 1); init C(N);"),
            "",
            &format!("neither true nor false: n == {large}"),
        ),
        (
            &format!(
                "sort S = struct s(p: Nat) | z; proc C(x: S) = (p(x) == {large}) -> a . C(z) \
                 + b . C(s(N)); init C(s(N));"
            ),
            "",
            &format!("neither true nor false: (a number) == {large}"),
        ),
    ]);
}

#[test]
fn numbers_of_a_certificate_belong_to_their_sorts() {
    let text = |condition: &str| {
        format!(
            "{HEAD}proc C(n: Nat, s: Bool) = (n < N && s) -> a . C(n + 1, s) + s -> b . C(0, false)
               + ({condition} && !s) -> bad(0) . C(n, s); init C(N, true);"
        )
    };
    let (never, violated) = (text("n == 1 && n == 2"), text("n == 0"));
    let Ok(Answer::True(proof)) = answer(&never, NO_BAD, 4_000) else { panic!("no proof") };
    let certificate = proof.certificate.expect("it was wanted");
    assert!(check_certificate(&never, NO_BAD, &certificate).is_ok());
    // Without zero, no obligation has a violation, but `b` leads to zero.
    let without_zero = certificate.replace("numbers Nat", "numbers Pos");
    assert_ne!(certificate, without_zero);
    for text in [never, violated] {
        assert!(check_certificate(&text, NO_BAD, &without_zero).is_err(), "{without_zero}");
    }
}

#[test]
fn a_certificate_rests_on_no_pattern_of_an_undecided_term() {
    let text = |condition: &str| {
        format!(
            "{HEAD}map g: Bool -> Bool; var p: Bool; eqn g(true) = true; g(p) = false;
             proc C(n: Nat) = (n < N) -> a . C(n + 1) + g({condition}) -> bad(n) . C(n); init C(0);"
        )
    };
    let never = text("false");
    let Ok(Answer::True(proof)) = answer(&never, NO_BAD, 4_000) else { panic!("no proof") };
    let certificate = proof.certificate.expect("it was wanted");
    assert!(check_certificate(&never, NO_BAD, &certificate).is_ok());
    // The rewriter does not evaluate the condition, so that the second equation seems to apply.
    let violated = text("exists i: Nat. i == n");
    assert!(check_certificate(&violated, NO_BAD, &certificate).is_err());
}

#[test]
fn counters_that_regions_leave_open() {
    table(&[
        // Decreasing.
        ("proc C(n: Nat) = (n > 0) -> u(n) . C(Int2Nat(n - 1)) + (n > N) -> bad(n) . C(n); init C(N);", "", "true"),
        // Differences that guards compare.
        ("proc C(n, m: Nat) = (n < N) -> u(n) . C(n + 1, m) + (m < n) -> w(m) . C(n, m + 1) + (m > n) -> bad(m) . C(n, m); init C(0, 0);", "", "true"),
        ("proc C(n, m: Nat) = (n < m + 3 && n < N) -> u(n) . C(n + 1, m) + (m < n) -> w(m) . C(n, m + 1) + (n > m + 3) -> bad(m) . delta; init C(0, 0);", "", "true"),
        // A structure with several counters.
        ("sort S = struct s(lo: Nat, hi: Nat);
          proc C(p: S) = (hi(p) < N) -> u(hi(p)) . C(s(lo(p), hi(p) + 1)) + (lo(p) < hi(p)) -> w(lo(p)) . C(s(lo(p) + 1, hi(p))) + (lo(p) > hi(p)) -> bad(0) . delta;
          init C(s(0, 0));", "", "true"),
        // A list of counters.
        ("proc C(n: Nat, l: List(Nat)) = (n < N && #l < 2) -> u(n) . C(n + 1, l <| n) + (#l > 0) -> w(head(l)) . C(n, tail(l)) + (#l > 0 && head(l) >= n) -> bad(n) . delta;
          init C(0, []);", "", "true"),
        // Increments in a function that is passed.
        ("map t: (Nat -> Nat) # Nat -> Nat; var f: Nat -> Nat; x: Nat; eqn t(f, x) = f(f(f(x)));
          proc C(n: Nat) = (n < N) -> u(n) . C(t(lambda z: Nat. z + 1, n)) + (n > N + 2) -> bad(n) . delta; init C(0);", "", "true"),
        // A function in a state: bound names of two terms differ.
        ("proc C(x: Nat, t: Nat -> Nat) = (x < N) -> u(x) . C(x + 1, t) + (x > N) -> bad(t(x)) . C(x, t[x -> x]); init C(0, lambda z: Nat. 0);", "", "true"),
        ("proc C(x: Nat, t: Nat -> Bool) = (x < N) -> u(x) . C(x + 1, lambda z: Nat. z < x) + (x > N) -> bad(x) . delta; init C(0, lambda z: Nat. false);", "", "which is undecided"),
        // A remainder of a small number.
        ("proc C(n, k: Nat) = (n < N) -> u(k) . C(n + 1, (k + 1) mod 3) + (k > 2) -> bad(k) . delta; init C(0, 0);", "", "true"),
        // A set and a bag of counters.
        ("proc C(n: Nat, s: FSet(Nat)) = (n < N && #s < 2) -> u(n) . C(n + 1, s + {n}) + (n in s) -> bad(n) . delta + c . C(n, {}); init C(0, {});", "", "true"),
        // An operation needs the value of a number that grows.
        ("proc C(n, k: Nat) = (n < N) -> u(n) . C(n + 1, k + 2) + (k mod 2 == 1) -> bad(k) . delta; init C(0, 0);", "", "takes more and more values"),
        // False.
        ("proc C(n: Nat) = (n < N) -> u(n) . C(n + 1) + (n > 4) -> bad(n) . delta; init C(0);", "", "is compared with more and more numbers"),
    ]);
}

#[test]
fn formulas_about_numbers() {
    let count =
        "proc C(n: Nat) = (n < N) -> u(n) . C(n + 1) + (n == N) -> w(n) . D; D = a . D; init C(0);";
    table(&[
        (count, "forall x: Nat. [true* . u(x) . true* . u(x)] false", "true"),
        (count, "forall x, y: Nat. [true* . u(x) . true* . u(y)] val(x < y)", "true"),
        (count, "[true* . (exists x: Nat. u(x) && val(x >= N))] false", "true"),
        (
            count,
            "[true*] forall x: Nat. [w(x)] (val(x == N) && nu X. [u(0)] false && [true] X)",
            "true",
        ),
        (count, "nu X(k: Nat = 0). (forall x: Nat. [u(x)] (val(x == k) && X(k + 1)))", "true"),
        (count, "[true* . a . true* . (exists x: Nat. u(x))] false", "true"),
        (count, "!<true* . a . true* . (exists x: Nat. u(x))> true", "true"),
        (count, "nu X. ([a] X || [exists x: Nat. u(x)] X) && [true] X", "true"),
        (
            count,
            "forall x: Nat. [true* . u(x)] val(x + 1 < N)",
            "is compared with more and more numbers",
        ),
        (count, "[true*] <true> true", "a diamond requires"),
    ]);
}

/// Returns a number or a condition over the counters `n`, `m` and the parameter; `#` stands for a
/// number.
fn term(random: &mut Random, shapes: &[&str], depth: usize) -> String {
    const NUMBERS: [&str; 12] = [
        "n",
        "m",
        "N",
        "@",
        "(# + @)",
        "max(#, #)",
        "f(#)",
        "head([#, #])",
        "(if(n < m, #, #))",
        "lo(s(#, #))",
        "g(lambda z: Nat. z + 1, #)",
        "Int2Nat(max(0, n - 1))",
    ];
    let shape = if depth > 2 { NUMBERS[random.below(4)] } else { *random.choose(shapes) };
    let mut out = String::new();
    for c in shape.chars() {
        match c {
            '#' => out += &term(random, &NUMBERS, depth + 1),
            '@' => out += &random.below(5).to_string(),
            c => out.push(c),
        }
    }
    out
}

fn random_model(random: &mut Random) -> String {
    const TRUTHS: [&str; 12] = [
        "# < #",
        "# == #",
        "# <= #",
        "# != #",
        "# in [#, #]",
        "n < N && # < #",
        "# in {#, @}",
        "m < n && # == #",
        "(exists k: Nat. k < 3 && # == k)",
        "n > m",
        "s(#, #) == s(#, #)",
        "# mod 2 == 1",
    ];
    const UPDATES: [&str; 9] = [
        "n + 1, m",
        "n, m + 1",
        "m, n",
        "0, m",
        "n, Int2Nat(max(0, m - 1))",
        "n, n",
        "f(n), m",
        "N, m",
        "n + 2, m",
    ];
    let data =
        "sort S = struct s(lo: Nat, hi: Nat); map f: Nat -> Nat; g: (Nat -> Nat) # Nat -> Nat;
var x: Nat; h: Nat -> Nat; eqn x < 3 -> f(x) = x + 1; x >= 3 -> f(x) = x; g(h, x) = h(h(x));\n";
    let mut steps = vec!["(n < N) -> u(n) . C(n + 1, m)".to_string()];
    for action in ["u(n)", "w(m)", "w(n)"].iter().take(1 + random.below(3)) {
        let (test, update) = (term(random, &TRUTHS, 0), random.choose(&UPDATES));
        steps.push(format!("(n <= N && m <= N && {test}) -> {action} . C({update})"));
    }
    if random.chance(1, 3) {
        let test = term(random, &TRUTHS, 0);
        steps.push(format!("sum k: Nat. (k < n && k < N && {test}) -> w(k) . C(n, k)"));
    }
    let test = term(random, &TRUTHS, 0);
    steps.push(format!("({test}) -> bad(m) . delta"));
    let start = *random.choose(&["0, 0", "0, N", "1, 0", "0, if(N > 2, 1, 0)"]);
    format!("{HEAD}{data}proc C(n, m: Nat) = {};\ninit C({start});", steps.join("\n  + "))
}

const FORMULAS: [&str; 8] = [
    NO_BAD,
    "[true* . (exists x: Nat. bad(x) && val(x > N))] false",
    "forall x: Nat. val(x > N + 2) => [true* . u(x)] false",
    "forall x: Nat. [true* . u(x) . true* . bad(x)] false",
    "forall x, y: Nat. [true* . u(x) . (exists z: Nat. w(z))* . u(y)] val(x <= y)",
    "nu X(k: Nat = 0). ((forall x: Nat. [u(x)] (val(x <= N) && X(x))) && [exists x: Nat. w(x)] X(k))",
    "nu X. (([exists x: Nat. w(x)] X || [exists x: Nat. u(x)] X) && [exists x: Nat. bad(x) && val(x == 3)] false)",
    "[true*] forall x: Nat. [w(x)] val(x <= N)",
];

/// Compares answers with instances. Replay: `SEED=n`; more: `ZONES_CASES=n`.
#[test]
fn random_models_agree_with_instances() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seeds = match (number("SEED"), number("ZONES_CASES")) {
        (Some(seed), _) => seed..seed + 1,
        (_, count) => 0..count.unwrap_or(30),
    };
    let (mut proved, mut all, mut holding, mut by_cells) = (0, 0, 0, 0);
    for seed in seeds.clone() {
        let mut random = Random::new(seed);
        let model = random_model(&mut random);
        let text = *random.choose(&FORMULAS);
        let found = answer(&model, text, 1_500)
            .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{model}\n{text}"));
        all += 1;
        let cells = confirm_by_cells(&model, text).is_ok();
        let proof = cells || matches!(found, Answer::True(_));
        by_cells += usize::from(cells);
        let mut every = true;
        for n in 0..=6 {
            let one = concrete(&model, text, n);
            every &= matches!(one, Ok(Some(true)));
            assert!(
                !(proof && matches!(one, Ok(Some(false)))),
                "seed {seed}: true (by cells: {cells}), but false for N = {n}\n{model}\n{text}"
            );
            if !every && !proof {
                break;
            }
        }
        holding += usize::from(every);
        proved += usize::from(proof);
    }
    println!("{all} models, {holding} true for 0 to 6, {proved} proved, {by_cells} by cells");
    assert!(seeds.end - seeds.start < 30 || proved * 4 > all / 2, "{proved} of {all}");
}

/// Returns a model with one digit or comparison changed.
fn mutate(random: &mut Random, model: &str) -> String {
    let start = model.find("proc C").expect("a process");
    let places: Vec<usize> = model
        .char_indices()
        .filter(|(at, c)| *at > start && (c.is_ascii_digit() || *c == '<' || *c == '+'))
        .map(|p| p.0)
        .collect();
    let at = *random.choose(&places);
    let new = match model.as_bytes()[at] {
        b'<' => ">",
        b'+' if model[at..].starts_with("+ 1") => "+ 1 +",
        b'+' => "+",
        _ => ["0", "1", "2", "3", "7"][random.below(5)],
    };
    format!("{}{new}{}", &model[..at], &model[at + 1..])
}

/// Certificates are accepted for their model, and refused for a changed one that violates the
/// formula. Replay: `SEED=n`; more: `ZONES_CASES=n`.
#[test]
fn certificates_are_checked() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seeds = match (number("SEED"), number("ZONES_CASES")) {
        (Some(seed), _) => seed..seed + 1,
        (_, count) => 0..count.unwrap_or(12),
    };
    let (mut proofs, mut open, mut refused) = (0, Vec::new(), 0);
    for seed in seeds.clone() {
        let mut random = Random::new(seed);
        let model = random_model(&mut random);
        let text = *random.choose(&FORMULAS);
        let Ok(Answer::True(proof)) = answer(&model, text, 100) else { continue };
        let certificate = proof.certificate.expect("it was wanted");
        proofs += 1;
        if let Err(why) = check_certificate(&model, text, &certificate) {
            open.push(format!("seed {seed}: {} {:?}\n{model}\n{text}", why.message, why.notes));
        }
        for _ in 0..3 {
            let other = mutate(&mut random, &model);
            let violated = (0..=6).any(|n| matches!(concrete(&other, text, n), Ok(Some(false))));
            if violated {
                let found = check_certificate(&other, text, &certificate);
                assert!(found.is_err(), "seed {seed}: accepted for\n{other}\n{text}");
                refused += 1;
            }
        }
    }
    println!("{proofs} certificates, {} not accepted, {refused} refused", open.len());
    let few = open.len() * 20 <= proofs;
    assert!(few, "{} of {proofs} are not accepted:\n{}", open.len(), open.join("\n\n"));
    assert!(seeds.end - seeds.start < 40 || refused > 0, "{refused}");
}

/// The answers of the checker without a certificate.
#[test]
fn cells_show_formulas_about_bounds() {
    let count =
        "proc C(n: Nat) = (n < N) -> u(n) . C(n + 1) + (n == N) -> w(n) . D; D = a . D; init C(0);";
    let bag = "proc C(n: Nat, b: FBag(Nat)) = (n < N && #b < 2) -> u(n) . C(n + 1, b + {n: 1})
      + sum k: Nat. (k in b) -> w(k) . C(n, b - {k: 1}) + sum k: Nat. (k in b && k > N) -> bad(k) . delta; init C(0, {:});";
    let small = "proc C(n, k: Nat) = (n < N) -> u(k) . C(n + 1, (k + 1) mod 3) + (k > 2) -> bad(k) . delta; init C(0, 0);";
    let holds = [
        (count, "[true* . (exists x: Nat. u(x) && val(x >= N))] false"),
        (count, "forall x: Nat. [true* . u(x) . true* . u(x)] false"),
        (count, "[true*] (forall x: Nat. (val(x <= N) => [u(x) . true* . u(x)] false))"),
        (count, "[true* . a . true* . (exists x: Nat. u(x))] false"),
        (count, "[true*] forall x: Nat. [w(x)] val(x == N)"),
        // Values that a label determines.
        (count, "[true*] (forall x: Nat. (val(x > N) => [w(x)] false))"),
        (count, "[true*] (forall x, y: Nat. (val(x >= N && y < 3) => [u(x)] false))"),
        (count, "[true*] (forall x: Nat. [u(x)] (forall y: Nat. (val(y < N) => [w(y)] false)))"),
        (bag, NO_BAD),
        (small, NO_BAD),
    ];
    for (text, formula) in holds {
        let found = confirm_by_cells(&format!("{HEAD}{text}"), formula);
        let found = found.unwrap_or_else(|why| panic!("{text}\n{formula}: {why:?}"));
        assert!(
            found.initiation > 0 && found.consecution > 0 && found.obligations > 0,
            "{found:?}"
        );
    }
    let ahead = "proc C(n, m: Nat) = (n < m + 3 && n < N) -> u(n) . C(n + 1, m) + (m < n) -> w(m) . C(n, m + 1) + (n > m + 3) -> bad(m) . delta; init C(0, 0);";
    let open = [
        // False.
        (count, "forall x: Nat. [true* . u(x)] val(x + 1 < N)", "do not show"),
        (count, "[true* . (exists x: Nat. w(x) && val(x > 3))] false", "do not show"),
        // Differences.
        (ahead, NO_BAD, "do not show"),
        (count, "nu X. ([a] X || [exists x: Nat. u(x)] X) && [true] X", "strategy"),
        (count, "mu X. [true] X", "least fixed point"),
        (count, "nu X. forall x: Nat. [u(x) . true* . u(x)] X", "below its own recursion"),
        // Values that a label determines, of false formulas.
        (count, "[true*] (forall x: Nat. (val(x > 3) => [w(x)] false))", "do not show"),
        (count, "[true*] (forall x: Nat. (val(x >= N) => [!u(x)] false))", "do not show"),
        (count, "[true*] (forall x, y: Nat. (val(y < 3) => [u(x) || w(y)] false))", "do not show"),
    ];
    for (text, formula, why) in open {
        let found = confirm_by_cells(&format!("{HEAD}{text}"), formula);
        let found = found.expect_err(formula).message;
        assert!(found.contains(why), "{text}\n{formula}: {found}");
    }
}

/// Returns the class of an obligation in the text of a certificate: its position and the shape of
/// its values.
fn class(obligation: &str) -> String {
    let lines = obligation.lines().enumerate();
    let kept = lines.filter(|(i, line)| *i == 0 || line.starts_with("value "));
    let text: Vec<&str> = kept.map(|(_, line)| line).collect();
    let mut out = String::new();
    let mut rest = text.join("\n");
    while let Some(at) = rest.find("number_") {
        out += &rest[..at];
        out.push('#');
        let after = rest[at + 7..].trim_start_matches(|c: char| c.is_ascii_digit()).to_string();
        rest = after;
    }
    out + &rest
}

/// Without the obligations of one class, or with ones that nothing satisfies in their place, a
/// certificate is refused: the exploration has reached the class from another one. Replay:
/// `SEED=n`; more: `ZONES_CASES=n`, for 10,000 refusals 2,500.
#[test]
fn mutated_certificates_are_refused() {
    let number = |name: &str| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let seeds = match (number("SEED"), number("ZONES_CASES")) {
        (Some(seed), _) => seed..seed + 1,
        (_, count) => 0..count.unwrap_or(10),
    };
    let mut refused = 0;
    for seed in seeds.clone() {
        let mut random = Random::new(seed);
        let model = random_model(&mut random);
        let text = *random.choose(&FORMULAS);
        // Obligations that no strategy needs may be left out.
        if text.contains("||") {
            continue;
        }
        let Ok(Answer::True(proof)) = answer(&model, text, 100) else { continue };
        let certificate = proof.certificate.expect("it was wanted");
        if check_certificate(&model, text, &certificate).is_err() {
            continue;
        }
        let parts: Vec<&str> = certificate.split("\nobligation ").collect();
        let (head, obligations) = (parts[0], &parts[1..]);
        for kind in 0..8 {
            let chosen = class(obligations[random.below(obligations.len())]);
            let mut out = head.to_string();
            for o in obligations {
                if class(o) != chosen {
                    out += &format!("\nobligation {o}");
                } else if kind % 2 == 1 && o.contains("number_0") {
                    out += &format!("\nobligation {}\nbound 1 0 4\nbound 0 1 -5\n", o.trim_end());
                }
            }
            let found = check_certificate(&model, text, &out);
            assert!(found.is_err(), "seed {seed}: accepted without {chosen}\n{model}\n{text}");
            refused += 1;
        }
    }
    println!("{refused} mutated certificates are refused");
    assert!(seeds.end - seeds.start < 10 || refused > 8, "{refused}");
}
