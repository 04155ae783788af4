//! `check -D N=any` on small models, each with one kind of dependence of a step on a number
//! elsewhere in the text: the answer is the right one, or unknown. Random models combine these,
//! compared with single values of the parameter.

use crate::support::mu_check;
use mu_check::base::random::Random;

/// Head of each model: the parameter and the constant that it defines.
const HEAD: &str = "$param N: Nat = 3;\n$param CAP: Nat = 4;\nmap M: Nat; eqn M = ${N};\n";
const NO_BAD: &str = "[true* . (exists x: Nat. bad(x))] false";

struct Case {
    name: &'static str,
    /// Declarations of its own.
    data: &'static str,
    process: &'static str,
    formula: &'static str,
    /// The verdict, and the least value if it is false.
    verdict: &'static str,
}

const fn case(
    name: &'static str,
    data: &'static str,
    process: &'static str,
    verdict: &'static str,
) -> Case {
    Case { name, data, process, formula: NO_BAD, verdict }
}

/// Returns a counter that may go up to the parameter, and a step `bad` on a condition.
fn text(case: &Case) -> String {
    let acts = "act u, bad: Nat; bads: Pos; l, r, c, d;\n";
    if case.process.contains("init") {
        return format!("{HEAD}{}\n{acts}{}\n", case.data, case.process);
    }
    let counter = "(n < M) -> u(n) . C(n + 1)";
    format!(
        "{HEAD}{}\n{acts}proc C(n: Nat) = {counter} + ({}) -> bad(n) . delta;\ninit C(0);\n",
        case.data, case.process
    )
}

const CASES: &[Case] = &[
    case("constant", "map K: Nat; eqn K = 6;", "n > K", "N = 7"),
    case("chain of constants", "map K, L: Nat; eqn L = K; K = 6;", "L < n", "N = 7"),
    case("other parameter", "map cap: Nat; eqn cap = ${CAP};", "n > cap", "N = 5"),
    case("constant as an offset", "map K: Nat; eqn K = 6;", "n == 1 + K", "N = 7"),
    case("structured constant", "sort S = struct s(f: Nat, g: Nat); map k: S; eqn k = s(1, 6);", "n > g(k)", "N = 7"),
    case("set", "map ks: FSet(Nat); eqn ks = {6};", "n in ks", "N = 6"),
    case("bag", "map ks: FBag(Nat); eqn ks = {6: 2};", "n in ks", "N = 6"),
    case("list", "map ks: List(Nat); eqn ks = [1, 6];", "n > rhead(ks)", "N = 7"),
    case("position in a list", "map ks: List(Nat); eqn ks = [1, 6];", "n > ks . 1", "N = 7"),
    case("lambda", "", "(lambda x: Nat. x > 6)(n)", "N = 7"),
    case("function from a mapping", "map f: Nat -> (Nat -> Bool); var x, y: Nat; eqn f(x) = lambda y: Nat. y > x;", "f(6)(n)", "N = 7"),
    case("constant function", "map f: Nat -> Bool; eqn f = lambda y: Nat. y > 6;", "f(n)", "N = 7"),
    case("where", "", "n > k whr k = 6 end", "N = 7"),
    case("pattern", "map f: Nat -> Bool; var x: Nat; eqn f(6) = true; x != 6 -> f(x) = false;", "f(n)", "N = 6"),
    case("condition of an equation", "map f: Nat -> Bool; var x: Nat; eqn x > 6 -> f(x) = true; x <= 6 -> f(x) = false;", "f(n)", "N = 7"),
    case("sum with a literal far away", "", "n + 2 == 9", "N = 7"),
    case("two numbers before a literal", "", "exists b: Bool. b && n + 1 == 12 && M == 11", "N = 11"),
    case(
        "function that is passed",
        "map t: (Nat -> Nat) # Nat -> Nat; var f: Nat -> Nat; x: Nat; eqn t(f, x) = f(f(f(f(f(x)))));",
        "n > 0 && t(lambda x: Nat. x + 1, n) == M",
        "N = 6",
    ),
    case("function in where", "", "(n > 0 && f(f(f(f(f(n))))) == M) whr f = lambda x: Nat. x + 1 end", "N = 6"),
    case("initial value", "", "proc C(n: Nat) = (n == 1) -> bad(n) . delta + (n < M) -> u(n) . delta; init C(if(M > 6, 1, 0));", "N = 7"),
    case(
        "sum over a structure",
        "sort P = struct p(f: Nat, g: Nat);",
        "proc C(n: Nat, m: Nat) = (n < M) -> u(n) . C(n + 1, m) + (m < n) -> u(m) . C(n, m + 1)
          + sum q: P. (m < f(q) && f(q) < g(q) && g(q) < n) -> bad(f(q)) . delta;
         init C(0, 0);",
        "N = 3",
    ),
    // True ones, which are not to be lost.
    case("true: constant", "map K: Nat; eqn K = 6;", "n > M + K", "true"),
    case("true: lambda", "", "(lambda x: Nat. x > M)(n)", "true"),
    Case {
        name: "least value of Pos",
        data: "",
        process: "proc C(n: Pos) = (n <= M) -> bads(n) . C(n + 1); init C(1);",
        formula: "[exists x: Pos. bads(x)] false",
        verdict: "N = 1",
    },
    Case {
        name: "Pos, quantified",
        data: "",
        process: "proc C(n: Pos) = (n <= M) -> bads(n) . C(n + 1); init C(1);",
        formula: "forall x: Pos. val(x <= M) => [true* . bads(x)] false",
        verdict: "N = 1",
    },
    Case {
        name: "true: Pos",
        data: "",
        process: "proc C(n: Pos) = (n <= M) -> bads(n) . C(n + 1); init C(1);",
        formula: "[true* . (exists x: Pos. bads(x) && val(x > M))] false",
        verdict: "true",
    },
    Case {
        name: "Int has no least value",
        data: "",
        process: "proc C(n: Nat) = (n < M) -> u(n) . C(n + 1); init C(0);",
        formula: "forall n: Int. (val(n + 2 >= 1 && n <= M) => [true* . u(0)] val(n + 1 >= 1))",
        verdict: "N = 1",
    },
    Case {
        name: "a quantifier beside a choice",
        data: "",
        process: "proc S = l . u(1) . bad(1) . delta + r . u(2) . bad(2) . delta; C(n: Nat) = (n < M) -> c . C(n + 1);
                  init allow({l, r, c, u, bad}, S || C(0));",
        formula: "nu X. (([l] X || [r] X) && (forall n: Nat. (val(n <= M + 2) => [u(n)] [bad(n)] false)))",
        verdict: "N = 0",
    },
];

fn run(
    folder: &std::path::Path,
    name: &str,
    spec: &str,
    formulas: &[&str],
    number: &str,
) -> (i32, Vec<serde_json::Value>, String) {
    let model = folder.join(format!("{}.spec", name.replace(|c: char| !c.is_alphanumeric(), "_")));
    std::fs::write(&model, spec).unwrap();
    let mut arguments =
        vec!["check".to_string(), model.display().to_string(), "-D".into(), number.into()];
    arguments.extend(["--threads", "1", "--max-states", "20000"].map(String::from));
    arguments.extend(formulas.iter().flat_map(|f| ["-f".to_string(), f.to_string()]));
    let outcome = mu_check(&arguments);
    (outcome.code, outcome.json["results"].as_array().cloned().unwrap_or_default(), outcome.stderr)
}

#[test]
fn numbers_that_stand_elsewhere_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    for case in CASES {
        let (_, results, stderr) =
            run(folder.path(), case.name, &text(case), &[case.formula], "N=any");
        assert_eq!(results.len(), 1, "{}: {stderr}", case.name);
        let found = match results[0]["verdict"].as_str().unwrap() {
            "false" => results[0]["for"].as_str().unwrap(),
            other => other,
        };
        assert_eq!(found, case.verdict, "{}: {}", case.name, results[0]);
    }
}

/// The same where the values that are checked one by one are far from the literal.
#[test]
fn a_number_that_is_far_away_is_seen_by_the_abstraction() {
    let folder = tempfile::tempdir().unwrap();
    for case in CASES.iter().filter(|c| c.data.contains('6') || c.process.contains('6')) {
        let far = |text: &str| text.replace("ks . 1", "ks . 01").replace('6', "900");
        let spec = far(&text(case)).replace("ks . 01", "ks . 1");
        let (_, results, stderr) = run(folder.path(), case.name, &spec, &[case.formula], "N=any");
        assert_eq!(results.len(), 1, "{}: {stderr}", case.name);
        let verdict = results[0]["verdict"].as_str().unwrap();
        assert!(verdict != "true" || case.verdict == "true", "{}: {}", case.name, results[0]);
    }
}

#[test]
fn what_cannot_be_decided_of_one_formula_leaves_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let many = "act u, bad: Nat; proc C(n, m, k, l, p: Nat) = (n < M) -> u(n) . C(n + 1, n, m, k, l)
          + (n < m + 3 && m < k + 3 && k < l + 2 && l < p + 3 && n < M) -> bad(n) . C(n + 1, l, k, m, n);
        init C(0, 0, 0, 0, 0);";
    let formulas = [
        "mu X. [true] X",
        "forall k: Nat. nu X. ([true] X && [u(k)] X && val(k != M))",
        "val(true)",
    ];
    let (code, results, stderr) =
        run(folder.path(), "many", &format!("{HEAD}{many}"), &formulas, "N=any");
    let verdicts: Vec<&str> = results.iter().map(|r| r["verdict"].as_str().unwrap()).collect();
    // The second one is false for every value, with k = M, which equations decide.
    assert_eq!((code, verdicts), (1, vec!["unknown", "false", "true"]), "{stderr}");
    assert!(
        results[0]["reason"].as_str().unwrap().contains("too many numbers at once"),
        "{}",
        results[0]
    );
}

/// Declarations that random models use: literals in constants of all kinds, functions that compare,
/// choose and increase.
const DATA: &str = "sort S = struct s(f: Nat, g: Nat);
map K, L, cap: Nat; k: S; ks: List(Nat); set: FSet(Nat); inc, low: Nat -> Nat; below, one: Nat -> Bool; cmp: Nat -> (Nat -> Bool);
    ap: (Nat -> Bool) # Nat -> Bool; apn: (Nat -> Nat) # Nat -> Nat; mem: Nat # List(Nat) -> Bool;
var x, y: Nat; h: Nat -> Bool; i: Nat -> Nat; l: List(Nat);
eqn cap = ${CAP}; K = @; L = K; k = s(@, M); ks = [@, @]; set = {@, K}; inc(x) = x + 1; below(x) = x < cap; one(@) = true;
    x < L -> low(x) = x; x >= L -> low(x) = L; cmp(x) = lambda y: Nat. x < y; ap(h, x) = h(x); apn(i, x) = i(i(x));
    mem(x, []) = false; mem(x, y |> l) = x == y || mem(x, l);\n";

/// Returns a number or a condition over the variables `n` and `m`; `#` stands for a number, `@` for
/// a literal.
fn random_term(random: &mut Random, of: &[&str], depth: usize) -> String {
    const NUMBERS: [&str; 18] = [
        "n",
        "m",
        "M",
        "@",
        "K",
        "L",
        "cap",
        "f(k)",
        "g(k)",
        "head(ks)",
        "ks . 1",
        "(# + @)",
        "inc(#)",
        "low(#)",
        "max(#, #)",
        "(lambda z: Nat. z + 2)(#)",
        "(w + 1 whr w = # end)",
        "apn(lambda z: Nat. #, #)",
    ];
    let shape = if depth > 1 { of[random.below(of.len().min(11))] } else { random.choose(of) };
    let mut text = String::new();
    for c in shape.chars() {
        match c {
            '#' => text += &random_term(random, &NUMBERS, depth + 1),
            '@' => text += &random.below(8).to_string(),
            c => text.push(c),
        }
    }
    text
}

fn random_model(random: &mut Random) -> String {
    const CONDITIONS: [&str; 14] = [
        "# < #",
        "# == #",
        "# != #",
        "# <= #",
        "# > #",
        "below(#)",
        "cmp(#)(#)",
        "# in ks",
        "# in set",
        "ap(below, #)",
        "ap(lambda z: Nat. z > #, #)",
        "(lambda z: Nat. z > @)(#)",
        "mem(#, ks)",
        "((q(#)) whr q = lambda z: Nat. z == # end)",
    ];
    let filled = |random: &mut Random, text: &str| -> String {
        text.chars()
            .map(|c| if c == '@' { random.below(8).to_string() } else { c.to_string() })
            .collect()
    };
    let condition = |random: &mut Random| random_term(random, &CONDITIONS, 0);
    let data = filled(random, DATA);
    let update = *random.choose(&["n + 1, m", "n + 1, n", "n, m + 1", "0, n"]);
    let (step, bad) = (condition(random), condition(random));
    let sum = if random.chance(1, 4) {
        format!(" + sum x: Nat. (x < n && {}) -> bad(x) . delta", condition(random))
    } else {
        String::new()
    };
    let start = *random.choose(&["0, 0", "0, K", "1, 0", "0, if(M > 5, 1, 2)"]);
    format!(
        "{HEAD}{data}act u, bad: Nat;\nproc C(n, m: Nat) = (n < M) -> u(n) . C(n + 1, m) + (n < M && m <= M && {step}) -> u(m) . C({update}) \
         + ({bad}) -> bad(n) . delta{sum};\ninit C({start});\n"
    )
}

/// Replay: `SEED=n cargo test … random_models_agree_with_single_values`.
#[test]
fn random_models_agree_with_single_values() {
    let formulas = [
        NO_BAD,
        "[true* . (exists x: Nat. bad(x) && val(x > K))] false",
        "forall x: Nat. val(x < M) => [true* . u(x) . true* . bad(x)] false",
        "nu X. ([exists x: Nat. u(x)] X && (forall x: Nat. [u(x)] [bad(x)] false))",
    ];
    let folder = tempfile::tempdir().unwrap();
    let only: Option<u64> = std::env::var("SEED").ok().map(|s| s.parse().unwrap());
    let seeds = only.map_or(0..COUNT, |s| s..s + 1);
    let mut counts = std::collections::BTreeMap::new();
    for seed in seeds {
        let spec = random_model(&mut Random::new(seed));
        let (_, any, stderr) = run(folder.path(), "random", &spec, &formulas, "N=any");
        assert_eq!(any.len(), formulas.len(), "seed {seed}: {stderr}\n{spec}");
        for result in &any {
            *counts.entry(result["verdict"].as_str().unwrap().to_string()).or_insert(0) += 1;
            let reason = result["reason"].as_str().unwrap();
            assert!(
                !reason.contains("considers equivalent") && !reason.contains("is wrong"),
                "seed {seed}: {reason}\n{spec}"
            );
        }
        if any.iter().all(|r| r["verdict"] != "true") {
            continue;
        }
        for n in [0, 5, 8, 9] {
            let (_, one, stderr) =
                run(folder.path(), "random", &spec, &formulas, &format!("N={n}"));
            assert_eq!(one.len(), formulas.len(), "seed {seed}: {stderr}\n{spec}");
            for (i, (all, one)) in any.iter().zip(&one).enumerate() {
                let wrong = all["verdict"] == "true" && one["verdict"] == "false";
                assert!(!wrong, "seed {seed}: `{}` is false for N = {n}\n{spec}", formulas[i]);
            }
        }
    }
    println!("{counts:?}");
    assert!(
        only.is_some() || ["true", "false"].iter().all(|v| counts.contains_key(*v)),
        "{counts:?}"
    );
}

/// Models of one run.
const COUNT: u64 = 24;

/// The answer names the values that were checked, and no others: neither those that the file
/// excludes nor those for which the text is no model.
#[test]
fn only_values_that_were_checked_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let rest = "act u, bad: Nat; proc C(n: Nat) = (n < M) -> u(n) . C(n + 1) + (n == 5) -> bad(n) . delta; init C(0);";
    let tried = |name: &str, head: &str, number: &str| {
        let spec = format!("{head}\nmap M: Nat; eqn M = ${{N}}; {rest}");
        let (code, results, stderr) = run(folder.path(), name, &spec, &[NO_BAD], number);
        assert_eq!((code, &results[0]["verdict"]), (0, &"true".into()), "{name}: {stderr}");
        assert_eq!(results[0]["reason"], "instances", "{name}");
        results[0]["tried"].as_str().unwrap_or_default().to_string()
    };
    let one = tried("one", "$param N: Nat = 2 where N <= 4;", "N=any");
    assert_eq!(one, "true for N up to 4, one by one");
    // Other values that are excluded, and those beyond.
    let gaps = tried("gaps", "$param N: Nat = 2 where N < 2 || N == 4;", "N=any");
    assert_eq!(gaps, "true for N = 0 to 1, 4, one by one; the file excludes 2 to 3");
    let folder = tempfile::tempdir().unwrap();
    let spec = format!(
        "$param N: Nat = 2 where N <= 4;\n$param L: Nat = 1 where L < N;\nmap M, K: Nat; eqn M = ${{N}}; K = ${{L}}; {rest}"
    );
    let model = folder.path().join("two.spec");
    std::fs::write(&model, spec).unwrap();
    let arguments =
        ["check", &model.display().to_string(), "-D", "N=any", "-D", "L=any", "-f", NO_BAD]
            .map(String::from);
    let outcome = mu_check(&arguments);
    // N from 1 to 4 with L below.
    let two = outcome.json["results"][0]["tried"].as_str().unwrap_or_default();
    assert!(
        two.starts_with(
            "true for 10 of the 36 values up to a sum of 7, one by one; the file excludes 26 of them"
        ),
        "{}",
        outcome.json
    );
}

/// A value that stands for a case which is open is checked: it is far beyond those that are checked
/// one by one.
#[test]
fn values_of_open_cases_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    for (name, condition, least) in [
        ("sum", "M == 16 + 17", "N = 33"),
        ("below", "M > 18 + 19", "N = 38"),
        ("large", "M == 5000", "N = 5000"),
    ] {
        let spec = format!(
            "{HEAD}act u, bad: Nat; proc C(n: Nat) = (n < 1) -> u(n) . C(n + 1) + ({condition}) -> bad(n) . delta; init C(0);"
        );
        let (code, results, stderr) = run(folder.path(), name, &spec, &[NO_BAD], "N=any");
        assert_eq!(
            (code, &results[0]["for"]),
            (1, &least.into()),
            "{name}: {stderr}\n{}",
            results[0]
        );
    }
}

/// A limit or a refused formula leaves the answers of the others.
#[test]
fn answers_of_other_formulas_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let spec =
        format!("{HEAD}act u, bad: Nat; proc C(n: Nat) = (n < M) -> u(n) . C(n + 1); init C(0);");
    let formulas = [
        NO_BAD,
        "[true* . nothing]false",
        "<u(0)>true",
        "[true* . (exists x: Nat. bad(x) && val(x >= M))] false",
    ];
    let (code, results, stderr) = run(folder.path(), "refused", &spec, &formulas, "N=any");
    let found: Vec<_> = results.iter().map(|r| r["verdict"].as_str().unwrap()).collect();
    assert_eq!((code, &found[..]), (2, &["true", "unknown", "false", "true"][..]), "{stderr}");
    assert!(
        results[1]["error"]["message"].as_str().is_some_and(|m| m.contains("nothing")),
        "{}",
        results[1]
    );
    // The time is over before the model is there.
    let model = folder.path().join("refused.spec").display().to_string();
    let text = [
        "check",
        &model,
        "-D",
        "N=any",
        "--timeout",
        "0.000001",
        "-f",
        NO_BAD,
        "-f",
        "[u(0)]false",
    ]
    .map(String::from);
    let outcome = mu_check(&text);
    let reasons: Vec<_> = outcome.json["results"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|r| (&r["verdict"], &r["reason"]))
        .collect();
    assert!(
        reasons.len() == 2 && reasons.contains(&(&"unknown".into(), &"timeout".into())),
        "{}",
        outcome.json
    );
}

/// The name of the parameter may mean something else in the file. It means nothing in a formula, as
/// where it has a value.
#[test]
fn the_name_of_a_parameter_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let step = "-> a(n) . C(n + 1) + (n > 5 + 5 + 5) -> bad(n) . delta;\ninit C(0);";
    let models = [
        ("parameter", format!("act a, bad: Nat; proc C(n: Nat) = (n < ${{n}}) {step}")),
        ("sum", "act a, bad: Nat; proc C(m: Nat) = sum n: Nat. (n == m && n < ${n}) -> a(n) . C(n + 1) + (m > 5 + 5 + 5) -> bad(m) . delta; init C(0);".into()),
        ("quantifier", "act a, bad: Nat; proc C(m: Nat) = (exists n: Nat. n == m && n < ${n}) -> a(m) . C(m + 1) + (m > 5 + 5 + 5) -> bad(m) . delta; init C(0);".into()),
        ("mapping", format!("map n: Nat; eqn n = ${{n}}; act a, bad: Nat; proc C(n: Nat) = (n < ${{n}}) {step}")),
        ("constructor", "sort S = struct n | m; act a, bad: Nat; b: S; proc C(k: Nat) = (k < ${n}) -> a(k) . C(k + 1) + (k > 5 + 5 + 5) -> bad(k) . delta + b(n) . C(k); init C(0);".into()),
        ("action", "act n, bad: Nat; proc C(k: Nat) = (k < ${n}) -> n(k) . C(k + 1) + (k > 5 + 5 + 5) -> bad(k) . delta; init C(0);".into()),
    ];
    for (name, text) in models {
        let spec = format!("$param n: Nat = 3;\n{text}");
        let formulas = [NO_BAD, "[true* . (exists k: Nat. bad(k) && val(k < n))]false"];
        let (code, results, stderr) = run(folder.path(), name, &spec, &formulas, "n=any");
        assert_eq!(results[0]["for"], "n = 16", "{name}: {stderr}");
        if !["mapping", "constructor"].contains(&name) {
            assert_eq!((code, &results[1]["reason"]), (2, &"error".into()), "{name}: {stderr}");
        }
    }
    // Which of two actions is meant depends on the value.
    let spec = "$param n: Nat = 3;\nact u: Pos; u: Nat; proc C = u(${n}) . C; init C;";
    let (_, results, stderr) =
        run(folder.path(), "overloaded", spec, &["[true* . u(5 + 7)]false"], "n=any");
    assert!(results[0]["verdict"] != "true", "{stderr}");
    // A literal is a positive number, a constant is none: that is no mistake of the file.
    let spec = "$param n: Nat = 3;\nact u: Pos; proc C = u(${n}) . C; init C;";
    let (code, results, stderr) =
        run(folder.path(), "literal", spec, &["[true* . u(3)]false"], "n=any");
    assert_eq!((code, &results[0]["for"]), (1, &"n = 3".into()), "{stderr}");
}

/// An instance that is no model is passed over, whatever the order of the parameters; results are
/// for every value of these.
#[test]
fn instances_that_are_no_models_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("sizes.spec").display().to_string();
    let spec = "$param N: Nat = 3;\n$param K: Nat = 2;\nsort V = struct $for i in 0 .. K join \"|\" { w${i} };\nact a: Nat; b: V;
        proc P(n: Nat) = (n < ${N}) -> a(n) . P(n + 1) + sum v: V. b(v) . P(n); init P(0);";
    std::fs::write(&model, spec).unwrap();
    for order in [["N=any", "K=any"], ["K=any", "N=any"]] {
        let words = ["check", &model, "-D", order[0], "-D", order[1], "-f", "[true* . a(6)]false"]
            .map(String::from);
        let outcome = mu_check(&words);
        let at = outcome.json["results"][0]["for"].as_str().unwrap_or_default();
        assert!(
            outcome.code == 1 && at.contains("N = 7") && at.contains("K = 1"),
            "{}: {}",
            outcome.json,
            outcome.stderr
        );
        assert_eq!(
            (&outcome.json["parameters"]["N"], &outcome.json["parameters"]["K"]),
            (&"any".into(), &"any".into())
        );
    }
}

/// Regions leave a formula on differences open, and evaluation along paths proves it; the
/// certificate is confirmed for its model, and refused for another one and with a part left out.
#[test]
fn differences_of_counters_are_proved_and_certified() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let model = |ahead: usize| {
        format!(
            "{HEAD}act u, w, bad: Nat; proc C(n, m: Nat) = (n < m + {ahead} && n < M) -> u(n) . C(n + 1, m)
              + (m < n) -> w(m) . C(n, m + 1) + (n > m + 3) -> bad(m) . delta; init C(0, 0);"
        )
    };
    std::fs::write(path("three.spec"), model(3)).unwrap();
    std::fs::write(path("four.spec"), model(4)).unwrap();
    std::fs::write(path("bad.mcf"), NO_BAD).unwrap();
    let (three, bad, proof) = (path("three.spec"), path("bad.mcf"), path("proof"));
    let proved = mu_check(&["check", &three, &bad, "-D", "N=any", "--certificate", &proof]);
    let result = &proved.json["results"][0];
    assert_eq!(
        (proved.code, &result["verdict"], &result["reason"]),
        (0, &"true".into(), &"paths".into()),
        "{}",
        proved.stderr
    );
    assert!(result["checked"]["samples"].as_u64().is_some_and(|n| n > 10), "{result}");
    let own = &result["verification"];
    assert!(
        result["verified"] == true
            && own["consecution"].as_u64().is_some_and(|n| n > 5)
            && own["ratio"].as_f64().is_some_and(|r| r > 0.0),
        "{result}"
    );
    let plain = mu_check(&["check", &three, &bad, "-D", "N=any", "--without", "verify"]);
    let result = &plain.json["results"][0];
    assert_eq!(
        (&result["verdict"], &result["verified"], &result["unverified"]),
        (&"true".into(), &false.into(), &"`--without verify`".into()),
        "{}",
        plain.stderr
    );
    let useless = mu_check(&["check", &three, &bad, "-D", "N=2", "--without", "verify"]);
    assert_eq!(useless.code, 2, "{}", useless.stderr);
    let verified = mu_check(&["verify", &three, &bad, &proof]);
    let checks = &verified.json["verified"];
    assert_eq!(
        (verified.code, &verified.json["for"]),
        (0, &"N = any".into()),
        "{}",
        verified.stderr
    );
    assert!(checks["consecution"].as_u64().is_some_and(|n| n > 5), "{checks}");
    let refused = |arguments: &[&str]| {
        let outcome = mu_check(arguments);
        assert_eq!(
            (outcome.code, outcome.json["certificate"].as_str()),
            (1, Some("refused")),
            "{arguments:?}: {}",
            outcome.stderr
        );
    };
    refused(&["verify", &path("four.spec"), &bad, &proof]);
    let text = std::fs::read_to_string(&proof).unwrap();
    let parts: Vec<&str> = text.split("\nobligation ").collect();
    let (first, others) = (parts[0], &parts[1..]);
    std::fs::write(
        path("short"),
        format!("{first}\nobligation {}", others[1..].join("\nobligation ")),
    )
    .unwrap();
    refused(&["verify", &three, &bad, &path("short")]);
    // No certificate at all.
    let unreadable = mu_check(&["verify", &three, &bad, &bad]);
    assert_eq!(unreadable.code, 2, "{}", unreadable.stderr);
}
