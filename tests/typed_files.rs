//! Files of typed terms are well typed with every simplification, and mean the same.
//!
//! `MU_CHECK_CASES` random specifications from `MU_CHECK_SEED` on, with expressions that mix
//! numbers of all sorts with functions, records and lists, which unfolding rewrites. A writer
//! checks the types of all terms (`mu_lts::typed`), so each case is linearised with several
//! settings, written, read again and compared with the unchanged process.

use crate::support::mu_check;
use mu_check::base::random::Random;
use mu_check::base::{Budget, Limits, SourceId, Stop};
use mu_check::compile::typed::process::process as typed_process;
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, Silent};
use mu_check::lts::behaviour::{Process, Summand};
use mu_check::lts::equivalence::{Equivalence, reduce};
use mu_check::lts::mcrl2;
use mu_check::lts::typed::{self, NumberSort, Term, TermRef, TypedDeclarations};
use mu_check::process::linear::LinearProcess;
use mu_check::process::linearise::{self, LineariserOptions};
use mu_check::process::typecheck::check_specification;
use mu_check::syntax;
use std::collections::BTreeMap;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |v| v.parse().expect("a number"))
}

/// Sorts of expressions.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sort {
    Pos,
    Nat,
    Int,
    Real,
    Bool,
}

/// Parameters of the process: declaration, initial value, and what they give to expressions.
const PARAMETERS: [(&str, &str); 6] = [
    ("l: Nat", "0"),
    ("p: Pos", "1"),
    ("i: Int", "-1"),
    ("q: Nat -> Bool", "lambda x: Nat. false"),
    ("t: Record", "record(1, 0, true)"),
    ("s: List(Nat)", "[0, 1]"),
];

const HEAD: &str = "sort Record = struct record(num: Nat, low: Int, on: Bool);
map below: Nat # Nat -> Bool; lower: Int # Pos -> Int; half: Nat -> Nat; sum2: List(Nat) -> Nat;
var j, k: Nat; n: Int; m: Pos; x: List(Nat);
eqn below(j, k) = j < k; lower(n, m) = n - m; half(j) = j div 2;
    sum2([]) = 0; sum2(j |> x) = j + sum2(x);
act a: Nat; b: Int # Pos; c: Nat # Nat; d: Real; e: Bool;
";

/// Makes expressions over some parameters.
struct Maker<'r> {
    random: &'r mut Random,
    parameters: Vec<&'static str>,
    sum: Option<Sort>,
}

impl Maker<'_> {
    fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|p| p.starts_with(name))
    }
    fn leaf(&mut self, sort: Sort) -> String {
        let mut all: Vec<&str> = match sort {
            Sort::Pos => vec!["1", "2", "3"],
            Sort::Nat => vec!["0", "1", "2"],
            Sort::Int => vec!["0", "-1", "2"],
            Sort::Real => vec!["1", "(1 / 2)"],
            Sort::Bool => vec!["true", "false"],
        };
        let names = [
            ("p:", "p", Sort::Pos),
            ("l:", "l", Sort::Nat),
            ("i:", "i", Sort::Int),
            ("t:", "num(t)", Sort::Nat),
            ("t:", "low(t)", Sort::Int),
            ("t:", "on(t)", Sort::Bool),
            ("s:", "head(s)", Sort::Nat),
            ("s:", "(s . 1)", Sort::Nat),
            ("s:", "sum2(s)", Sort::Nat),
        ];
        let own = names.into_iter().filter(|n| n.2 == sort && self.has(n.0)).map(|n| n.1);
        all.extend(own.flat_map(|n| [n, n]));
        if self.sum == Some(sort) {
            all.extend(["k", "k", "k"]);
        }
        (*self.random.choose(&all)).to_string()
    }
    fn of(&mut self, sort: Sort, depth: usize) -> String {
        if depth == 0 || self.random.chance(1, 4) {
            return self.leaf(sort);
        }
        let d = depth - 1;
        let way = self.random.below(10);
        match (sort, way) {
            (Sort::Pos, 0) => format!("({} + {})", self.of(Sort::Nat, d), self.of(Sort::Pos, d)),
            (Sort::Pos, 1) => format!("({} + {})", self.of(Sort::Pos, d), self.of(Sort::Nat, d)),
            (Sort::Pos, 2) => format!("succ({})", self.of(Sort::Nat, d)),
            (Sort::Pos, 3) => format!("max({}, {})", self.of(Sort::Pos, d), self.of(Sort::Int, d)),
            (Sort::Pos, 4) => format!("({} * {})", self.of(Sort::Pos, d), self.of(Sort::Pos, d)),
            (Sort::Pos, 5) => format!("min({}, {})", self.of(Sort::Pos, d), self.of(Sort::Pos, d)),
            (Sort::Nat, 0) => self.of(Sort::Pos, d),
            (Sort::Nat, 1) => format!("({} + {})", self.of(Sort::Nat, d), self.of(Sort::Nat, d)),
            (Sort::Nat, 2) => format!("({} mod {})", self.of(Sort::Nat, d), self.of(Sort::Pos, d)),
            (Sort::Nat, 3) => format!("({} mod {})", self.of(Sort::Int, d), self.of(Sort::Pos, d)),
            (Sort::Nat, 4) => format!("({} div {})", self.of(Sort::Nat, d), self.of(Sort::Pos, d)),
            (Sort::Nat, 5) => format!("abs({})", self.of(Sort::Int, d)),
            (Sort::Nat, 6) => format!("max({}, {})", self.of(Sort::Nat, d), self.of(Sort::Int, d)),
            (Sort::Nat, 7) => format!("pred({})", self.of(Sort::Pos, d)),
            (Sort::Nat, 8) => format!("half({})", self.of(Sort::Nat, d)),
            (Sort::Int, 0..=1) => self.of(Sort::Nat, d),
            (Sort::Int, 2) => format!("({} - {})", self.of(Sort::Nat, d), self.of(Sort::Nat, d)),
            (Sort::Int, 3) => format!("({} - {})", self.of(Sort::Int, d), self.of(Sort::Pos, d)),
            (Sort::Int, 4) => format!("({} + {})", self.of(Sort::Int, d), self.of(Sort::Nat, d)),
            (Sort::Int, 5) => format!("(-{})", self.of(Sort::Pos, d)),
            (Sort::Int, 6) => {
                format!("lower({}, {})", self.of(Sort::Int, d), self.of(Sort::Pos, d))
            }
            (Sort::Int, 7) => format!("floor({})", self.of(Sort::Real, d)),
            (Sort::Int, 8) => format!("pred({})", self.of(Sort::Nat, d)),
            (Sort::Real, 0..=2) => self.of(Sort::Int, d),
            (Sort::Real, 3..=5) => {
                format!("({} / {})", self.of(Sort::Int, d), self.of(Sort::Pos, d))
            }
            (Sort::Real, 6..=8) => {
                format!("({} + {})", self.of(Sort::Real, d), self.of(Sort::Nat, d))
            }
            (Sort::Bool, 0) => {
                format!("below({}, {})", self.of(Sort::Nat, d), self.of(Sort::Nat, d))
            }
            (Sort::Bool, 1) => format!(
                "({} in {{{}, {}}})",
                self.of(Sort::Nat, d),
                self.of(Sort::Nat, d),
                self.of(Sort::Pos, d)
            ),
            (Sort::Bool, 2) => format!("!{}", self.of(Sort::Bool, d)),
            (Sort::Bool, 3) => {
                format!("({} && {})", self.of(Sort::Bool, d), self.of(Sort::Bool, d))
            }
            (Sort::Bool, 4) => {
                format!("({} || {})", self.of(Sort::Bool, d), self.of(Sort::Bool, d))
            }
            (Sort::Bool, 5) if self.has("q:") => format!("q({})", self.of(Sort::Nat, d)),
            (Sort::Bool, 6) => format!("(exists j: Nat. j < 3 && j == {})", self.of(Sort::Int, d)),
            (Sort::Bool, _) => {
                let sorts = [Sort::Pos, Sort::Nat, Sort::Int, Sort::Real];
                let [one, other] = [*self.random.choose(&sorts), *self.random.choose(&sorts)];
                let relation = *self.random.choose(&["==", "!=", "<", "<=", ">", ">="]);
                format!("({} {relation} {})", self.of(one, d), self.of(other, d))
            }
            (_, _) => format!(
                "if({}, {}, {})",
                self.of(Sort::Bool, d),
                self.of(sort, d),
                self.of(sort, d)
            ),
        }
    }
    /// Makes a new value of a parameter, one of few.
    fn update(&mut self, parameter: &str) -> String {
        let nat = self.of(Sort::Nat, 2);
        match &parameter[..1] {
            "l" => format!("l = {nat} mod 3"),
            "p" => format!("p = {nat} mod 2 + 1"),
            "i" => format!("i = {nat} mod 3 - 1"),
            "q" => {
                let key = if self.sum.is_some() && self.random.chance(2, 3) {
                    "k".to_string()
                } else {
                    format!("{nat} mod 2")
                };
                format!("q = q[{key} -> {}]", self.of(Sort::Bool, 2))
            }
            "t" => format!(
                "t = record({nat} mod 2, {} mod 2 - 1, {})",
                self.of(Sort::Nat, 2),
                self.of(Sort::Bool, 1)
            ),
            _ => format!("s = [{nat} mod 2, {} mod 2]", self.of(Sort::Nat, 2)),
        }
    }
    fn summand(&mut self) -> String {
        self.sum = *self.random.choose(&[None, Some(Sort::Nat), Some(Sort::Pos)]);
        let sum = match self.sum {
            Some(Sort::Pos) => "sum k: Pos . (k <= 2 && ",
            Some(_) => "sum k: Nat . (k < 2 && ",
            None => "(true && ",
        };
        let condition = self.of(Sort::Bool, 3);
        let action = match self.random.below(5) {
            0 => format!("a({})", self.of(Sort::Nat, 3)),
            1 => format!("b({}, {})", self.of(Sort::Int, 2), self.of(Sort::Pos, 2)),
            2 => format!("c({}, {})", self.of(Sort::Nat, 2), self.of(Sort::Nat, 2)),
            3 => format!("d({})", self.of(Sort::Real, 2)),
            _ => format!("e({})", self.of(Sort::Bool, 3)),
        };
        let changed: Vec<&str> =
            self.parameters.clone().into_iter().filter(|_| self.random.chance(1, 2)).collect();
        let updates: Vec<String> = changed.iter().map(|p| self.update(p)).collect();
        format!("({sum}{condition}) -> {action} . X({}))", updates.join(", "))
    }
}

fn specification(seed: u64) -> String {
    let mut random = Random::new(seed);
    let chosen: Vec<_> = PARAMETERS.iter().filter(|_| random.chance(1, 2)).take(3).collect();
    let chosen = if chosen.is_empty() { vec![&PARAMETERS[3]] } else { chosen };
    let mut maker =
        Maker { random: &mut random, parameters: chosen.iter().map(|c| c.0).collect(), sum: None };
    let summands: Vec<String> = (0..2 + maker.random.below(2)).map(|_| maker.summand()).collect();
    let list = |at: fn(&(&'static str, &'static str)) -> &'static str| {
        chosen.iter().map(|c| at(c)).collect::<Vec<_>>().join(", ")
    };
    format!(
        "{HEAD}proc X({}) =\n    {};\ninit X({});\n",
        list(|c| c.0),
        summands.join("\n  + "),
        list(|c| c.1)
    )
}

fn linear(seed: u64, text: &str, options: &LineariserOptions) -> LinearProcess {
    let tree = syntax::parse_specification(SourceId::FIRST, text)
        .unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
    let spec = check_specification(&tree).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"));
    linearise::linearise(&spec, options).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{text}"))
}

/// Counts states up to strong bisimilarity and labels; `None` if there are many states.
fn figures(process: LinearProcess) -> Option<(usize, BTreeMap<String, usize>)> {
    let model = Compiled::new(process, &Confluence::None).ok()?;
    let budget = Budget::new(Limits { max_states: Some(400), ..Default::default() });
    let options = explore::Options { threads: 1, ..Default::default() };
    let (outcome, lts) = explore::explore_lts(&model, &options, &budget, &Silent).ok()?;
    let lts = (outcome.stop == Stop::Complete).then(|| reduce(&lts, Equivalence::STRONG, 1))?;
    let mut labels = BTreeMap::new();
    lts.labels
        .iter()
        .for_each(|l| *labels.entry(lts.table.texts[l.index()].clone()).or_default() += 1);
    Some((lts.state_count(), labels))
}

/// Lists options with some simplifications each.
fn settings() -> Vec<(&'static str, LineariserOptions)> {
    let mut all = vec![
        ("default", LineariserOptions::default()),
        ("all", LineariserOptions::plain().with_all(true)),
    ];
    for name in LineariserOptions::SIMPLIFICATIONS {
        let mut options = LineariserOptions::plain();
        *options.simplification(name).expect("its own name") = true;
        all.push((name, options));
    }
    all
}

#[test]
fn files_are_well_typed_with_every_simplification_and_mean_the_same() {
    let (first, cases) = (number("MU_CHECK_SEED", 0), number("MU_CHECK_CASES", 40));
    println!("seeds {first} to {}", first + cases - 1);
    let (mut compared, mut unfolded) = (0, 0);
    for seed in first..first + cases {
        let text = specification(seed);
        let process = linear(seed, &text, &LineariserOptions::plain());
        let parameters = process.params.len();
        let expected = figures(process);
        for (name, options) in settings() {
            let process = linear(seed, &text, &options);
            unfolded += usize::from(name == "unfold" && process.params.len() > parameters);
            let typed = typed_process(&process)
                .unwrap_or_else(|e| panic!("seed {seed}, {name}: {e:?}\n{text}"));
            let mut bytes = Vec::new();
            mcrl2::write_process(&typed, &mut bytes)
                .unwrap_or_else(|e| panic!("seed {seed}, {name}: {}\n{text}", e.message));
            // Reading and exploring costs more than writing.
            if expected.is_none() || !["unfold", "default", "all"].contains(&name) {
                continue;
            }
            let again = mcrl2::read_process(&bytes[..])
                .unwrap_or_else(|e| panic!("seed {seed}, {name}: {e:?}\n{text}"));
            let found = figures(linear(seed, &again, &LineariserOptions::plain()));
            assert_eq!(found, expected, "seed {seed}, {name}\n{text}\n{again}");
            compared += 1;
        }
    }
    println!("{compared} files read again, {unfolded} of {cases} processes unfolded");
    assert!(
        compared as u64 * 2 > cases && unfolded as u64 * 5 > cases,
        "{compared} read again, {unfolded} unfolded"
    );
}

/// The sorts of numbers that a rewriter does not see stay in what unfolding writes.
#[test]
fn conversions_survive_unfolding() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (text, states) in [
        // A sum of a natural and a positive number is positive; `mod` takes a natural one.
        (
            "act s: Nat; proc X(n: Nat, f: Nat -> Bool) = sum j: Nat . (j < 2) -> s((n + 3 + j) mod 5) . X((n + 1) mod 5, f[j -> true]); init X(0, lambda z: Nat . false);",
            16,
        ),
        // A comparison of sums becomes one of its terms with a number below all values of their
        // sort.
        (
            "act s: Pos; proc X(p: Pos, f: Nat -> Pos) = sum j: Nat . (j < 2 && p + j <= f(j) + 1) -> s(p + j) . X(if(p < 3, p + 1, 1), f[j -> p]); init X(1, lambda z: Nat . 1);",
            5,
        ),
    ] {
        std::fs::write(path("m.mcrl2"), text).unwrap();
        let expected = mu_check(&["explore", &path("m.mcrl2")]);
        assert_eq!(expected.json["states"], states, "{}", expected.stderr);
        for simplify in ["none", "unfold", "default"] {
            let written = mu_check(&[
                "linearise",
                &path("m.mcrl2"),
                "--simplify",
                simplify,
                "--out",
                &path("m.lps"),
            ]);
            assert_eq!(written.code, 0, "{simplify}: {}", written.stderr);
            assert_eq!(mu_check(&["explore", &path("m.lps")]).json["states"], states, "{simplify}");
        }
    }
}

/// A writer rejects ill-typed terms, with the term.
#[test]
fn terms_that_are_not_well_typed_are_refused() {
    type Broken = fn(&mut Process, Sorts);
    struct Sorts {
        nat: typed::SortRef,
        bool: typed::SortRef,
        plus: TermRef,
    }
    let process = || {
        let mut typed = TypedDeclarations::default();
        let [nat, bool] = ["Nat", "Bool"].map(|n| typed.sort(typed::Sort::Named(n.into())));
        let sum = typed.sort(typed::Sort::Function(vec![nat, nat], nat));
        let plus = typed.term(Term::Operation("+".into(), sum));
        let n = typed.term(Term::Variable("n".into(), nat));
        let one = typed.term(Term::Number(1.into(), NumberSort::Nat));
        let next = typed.term(Term::Apply(plus, vec![n, one]));
        let condition = typed.term(Term::Operation("true".into(), bool));
        let summand = Summand {
            variables: vec![],
            condition,
            actions: vec![],
            time: None,
            assignments: vec![(n, next)],
        };
        let all = Process {
            typed,
            globals: vec![],
            parameters: vec![n],
            summands: vec![summand],
            initial: vec![one],
        };
        (all, Sorts { nat, bool, plus })
    };
    mcrl2::write_process(&process().0, Vec::new()).unwrap();
    let broken: [(&str, Broken); 8] = [
        ("has arguments of the sorts Pos # Nat", |p, s| {
            let one = p.typed.term(Term::Number(1.into(), NumberSort::Pos));
            p.summands[0].assignments[0].1 =
                p.typed.term(Term::Apply(s.plus, vec![one, p.initial[0]]));
        }),
        ("no operation `plus` has the sort Nat", |p, s| {
            p.initial[0] = p.typed.term(Term::Operation("plus".into(), s.nat))
        }),
        ("a condition, `1: Nat`, has the sort Nat; expected Bool", |p, _| {
            p.summands[0].condition = p.initial[0]
        }),
        ("the variable `m` is not in scope", |p, s| {
            p.initial[0] = p.typed.term(Term::Variable("m".into(), s.nat))
        }),
        ("the variable `n` is not in scope", |p, _| p.initial[0] = p.parameters[0]),
        ("-1 is not a number of the sort Nat", |p, _| {
            p.initial[0] = p.typed.term(Term::Number((-1).into(), NumberSort::Nat))
        }),
        ("found 0 values, expected 1", |p, _| p.initial.clear()),
        ("is assigned, but is not a parameter", |p, s| {
            let b = p.typed.term(Term::Variable("b".into(), s.bool));
            p.summands[0].assignments[0].0 = b;
        }),
    ];
    for (message, change) in broken {
        let (mut changed, sorts) = process();
        change(&mut changed, sorts);
        let error = mcrl2::write_process(&changed, Vec::new()).unwrap_err();
        assert!(
            error.message.contains(message) && error.exit_code() == 4,
            "{message}: {}",
            error.message
        );
    }
}
