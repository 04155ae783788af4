//! Tests of initial states: random formulas with two parameters, of which 1 to 4 processes have 1
//! to 16 instances, against all valuations of the cells. `MU_CHECK_SEED=n` replays a formula.

use mu_base::SourceId;
use mu_base::random::Random;
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::value::ANY;
use mu_cubicle::{System, check, parse};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A formula about `Home`, `N[p]`, `N[q]`, and the parameters `p` and `q`.
enum Formula {
    /// Two terms, of 0 `Home`, 1 `N[p]`, 2 `N[q]`, 3 `p`, 4 `q`, and a sign.
    Compare(usize, &'static str, usize),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
    Implies(Box<Formula>, Box<Formula>),
}

const TERMS: [&str; 5] = ["Home", "N[p]", "N[q]", "p", "q"];

impl Formula {
    fn random(random: &mut Random, depth: usize) -> Formula {
        let one = |r: &mut Random| Box::new(Formula::random(r, depth - 1));
        match if depth == 0 { 0 } else { random.below(5) } {
            0 | 1 => {
                let sign = *random.choose(&["=", "<>", "<", "<=", "<>"]);
                Formula::Compare(random.below(5), sign, random.below(5))
            }
            2 => Formula::And(one(random), one(random)),
            3 => Formula::Or(one(random), one(random)),
            _ => Formula::Implies(one(random), one(random)),
        }
    }
    fn text(&self) -> String {
        match self {
            Formula::Compare(a, sign, b) => format!("{} {sign} {}", TERMS[*a], TERMS[*b]),
            Formula::And(a, b) => format!("({} && {})", a.text(), b.text()),
            Formula::Or(a, b) => format!("({} || {})", a.text(), b.text()),
            Formula::Implies(a, b) => format!("({} => {})", a.text(), b.text()),
        }
    }
    fn holds(&self, values: &[u32; 5]) -> bool {
        match self {
            Formula::Compare(a, sign, b) => {
                let (a, b) = (values[*a], values[*b]);
                match *sign {
                    "=" => a == b,
                    "<>" => a != b,
                    "<" => a < b,
                    _ => a <= b,
                }
            }
            Formula::And(a, b) => a.holds(values) && b.holds(values),
            Formula::Or(a, b) => a.holds(values) || b.holds(values),
            Formula::Implies(a, b) => !a.holds(values) || b.holds(values),
        }
    }
    /// Returns the values of `Home` and `N` that satisfy it for all `p` and `q`; if there are none,
    /// those with the process beyond the instance.
    fn solutions(&self, n: u32) -> BTreeSet<Vec<u32>> {
        for values in [n, n + 1] {
            let found: BTreeSet<Vec<u32>> = (0..values.pow(n + 1))
                .map(|at| (0..=n).map(|i| at / values.pow(i) % values).collect::<Vec<_>>())
                .filter(|cells| {
                    let all = (0..n).flat_map(|p| (0..n).map(move |q| (p, q)));
                    let cell = |p: u32| cells[1 + p as usize];
                    all.into_iter().all(|(p, q)| self.holds(&[cells[0], cell(p), cell(q), p, q]))
                })
                .collect();
            if !found.is_empty() {
                return found;
            }
        }
        BTreeSet::new()
    }
}

fn system(formula: &str) -> System {
    let text = format!("var Home : proc\narray N[proc] : proc\ninit (p q) {{ {formula} }}\n");
    parse(SourceId::FIRST, &text).and_then(|t| check(&t)).unwrap_or_else(|d| panic!("{text}: {d}"))
}

/// Returns the initial states of the machine, with each value of open cells.
fn states(formula: &str, n: u32) -> BTreeSet<Vec<u32>> {
    let system = system(formula);
    let machine = Machine::new(&system, n, Memory::Sc, Setup::default()).expect("a machine");
    let mut open = machine.initial_states().unwrap_or_else(|d| panic!("{formula}: {d}"));
    let values = n + u32::from(machine.opens_beyond());
    let mut found = BTreeSet::new();
    while let Some(state) = open.pop() {
        match state.iter().position(|v| *v == ANY) {
            None => {
                found.insert(state);
            }
            Some(at) => open.extend((0..values).map(|v| {
                let mut next = state.clone();
                next[at] = v;
                next
            })),
        }
    }
    found
}

#[test]
fn initial_states_are_those_of_all_valuations() {
    let one = std::env::var("MU_CHECK_SEED").ok().and_then(|v| v.parse().ok());
    let (mut some, mut none, mut beyond) = (0, 0, 0);
    for seed in one.map_or(0..150, |seed: u64| seed..seed + 1) {
        let formula = Formula::random(&mut Random::new(seed), 4);
        let text = formula.text();
        for n in 1..=3 {
            let expected = formula.solutions(n);
            assert_eq!(states(&text, n), expected, "seed {seed}, {n} processes: {text}");
            match expected.iter().flatten().max() {
                None => none += 1,
                Some(most) if *most == n => beyond += 1,
                Some(_) => some += 1,
            }
        }
    }
    if one.is_none() {
        assert!(some > 100 && none > 10 && beyond > 10, "{some} {none} {beyond}");
    }
}

#[test]
fn many_instances_of_a_disjunction_are_no_search_of_their_combinations() {
    // Each has instances for all pairs of processes, and each instance several cubes.
    let formulas = [
        (
            "((q < Home && Home <= p) || (Home <= q && q <> Home)) => ((q <> q => N[q] <> Home) && (Home <= N[q] => Home <> N[p]))",
            Some(41),
        ),
        ("Home <> Home && ((Home < q || Home <> p) && (Home < N[q] => N[p] <> q))", Some(0)),
        (
            "(Home < p || N[p] <> q) && (N[q] < p || N[p] = Home) && (Home <> q || N[q] <> N[p] || p = q)",
            None,
        ),
    ];
    let start = Instant::now();
    for (formula, count) in formulas {
        let found = states(formula, 3).len();
        assert!(count.is_none_or(|n| n == found), "{found}: {formula}");
        states(formula, 4);
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
