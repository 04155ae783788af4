//! Two routes to one transition system: the lineariser with the engine, and the operational rules
//! applied to process terms.
//!
//! Random small specifications are explored both ways; the results must be strongly bisimilar. A
//! failure prints the seed and the specification; `MU_CHECK_SEED=n cargo test --release --test
//! linearise_random` replays it, `MU_CHECK_CASES=n` runs more of them.

use crate::support::rules::{by_rules, with_sorted_labels};
use mu_check::base::random::Random;
use mu_check::base::{Budget, Diagnostic, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore;
use mu_check::lts::Lts;
use mu_check::lts::equivalence::{Equivalence, distinguish, equivalent};
use mu_check::process::spec::ProcSpec;
use mu_check::process::{linearise, typecheck};
use mu_check::syntax;

/// Writes random specifications that are finite most of the time.
struct Writer<'r> {
    random: &'r mut Random,
    stack: bool,
}

impl Writer<'_> {
    fn data(&mut self, vars: &[&str]) -> String {
        if !vars.is_empty() && self.random.chance(2, 3) {
            self.random.choose(vars).to_string()
        } else {
            self.random.choose(&["d1", "d2", "next(d1)", "next(d2)"]).to_string()
        }
    }
    fn condition(&mut self, vars: &[&str]) -> String {
        let (a, b) = (self.data(vars), self.data(vars));
        match self.random.below(4) {
            0 => format!("({a} == {b})"),
            1 => format!("({a} != {b})"),
            2 => format!("({a} == {b} || is_d1({a}))"),
            _ => format!("!(is_d1({a}) && {a} == {b})"),
        }
    }
    fn action(&mut self, vars: &[&str]) -> String {
        match self.random.below(9) {
            0 => "tau".into(),
            1 => "a|b".into(),
            2 => format!("c({})|a", self.data(vars)),
            3 | 4 => self.random.choose(&["a", "b"]).to_string(),
            _ => format!("{}({})", self.random.choose(&["c", "e", "f"]), self.data(vars)),
        }
    }
    /// Returns a process that begins with an action.
    fn process(&mut self, depth: u32, vars: &[&str], level: usize) -> String {
        match if depth == 0 { 0 } else { self.random.below(7) } {
            0 | 1 => {
                let action = self.action(vars);
                format!("{action} . {}", self.rest(depth, vars, level))
            }
            2 => format!(
                "({} + {})",
                self.process(depth - 1, vars, level),
                self.process(depth - 1, vars, level)
            ),
            3 => {
                let fresh = format!("v{depth}");
                let mut inner: Vec<&str> = vars.to_vec();
                inner.push(&fresh);
                format!("(sum {fresh}: D. {})", self.process(depth - 1, &inner, level))
            }
            4 => {
                let c = self.condition(vars);
                let p = self.process(depth - 1, vars, level);
                if self.random.chance(1, 2) {
                    format!("({c} -> {p})")
                } else {
                    format!("({c} -> {p} <> {})", self.process(depth - 1, vars, level))
                }
            }
            5 => format!(
                "({} . {})",
                self.process(depth - 1, vars, level),
                self.rest(depth - 1, vars, level)
            ),
            _ => self.action(vars),
        }
    }
    /// Writes a process that may follow an action: conditionals and calls too.
    fn rest(&mut self, depth: u32, vars: &[&str], level: usize) -> String {
        match self.random.below(9) {
            // Continues within the scope of a sum, by a step or by an equation, which may have the
            // same sums.
            8 if depth > 0 => {
                let callee = level + self.random.below(3 - level);
                format!("({} + {})", self.process(depth - 1, vars, level), self.call(callee, vars))
            }
            0 => "delta".into(),
            1 => self.action(vars),
            2 if depth > 0 => {
                let c = self.condition(vars);
                format!(
                    "({c} -> {} <> {})",
                    self.rest(depth - 1, vars, level),
                    self.rest(depth - 1, vars, level)
                )
            }
            3 if depth > 0 => format!("({})", self.process(depth - 1, vars, level)),
            // A call that is not the last: of a later equation (no recursion), or of any (a stack).
            4 if level < 2 || self.stack => {
                let callee = if self.stack {
                    self.random.below(3)
                } else {
                    level + 1 + self.random.below(2 - level)
                };
                format!(
                    "{} . {}",
                    self.call(callee, vars),
                    self.rest(depth.saturating_sub(1), vars, level)
                )
            }
            _ => {
                let callee = self.random.below(3);
                let own = self.random.chance(1, 2);
                self.call(if own { level } else { callee.max(level) }, vars)
            }
        }
    }
    fn call(&mut self, process: usize, vars: &[&str]) -> String {
        match process {
            0 => format!("X({}, {})", self.data(vars), self.data(vars)),
            1 => format!("Y({})", self.data(vars)),
            _ => "Z".into(),
        }
    }
    fn specification(&mut self) -> String {
        let mut text = String::from(
            "sort D = struct d1?is_d1 | d2?is_d2;\nmap next: D -> D;\neqn next(d1) = d2; next(d2) = d1;\nact a, b, g; c, e, f, h: D;\n",
        );
        let x = self.process(3, &["d", "k"], 0);
        let y = self.process(3, &["d"], 1);
        let z = self.process(2, &[], 2);
        text += &format!("proc X(d: D, k: D) = {x};\n     Y(d: D) = {y};\n     Z = {z};\n");
        let calls = ["X(d1, d2)", "Y(d1)", "Z", "Y(d2)", "a . Z + Y(d2)"];
        let mut init = self.random.choose(&calls).to_string();
        for _ in 0..self.random.below(3) {
            let other = self.random.choose(&calls);
            let op = self.random.choose(&["||", "||", "||", "||_", "|"]);
            init = format!("(({init}) {op} ({other}))");
            init = match self.random.below(8) {
                0 => format!("hide({{a, c}}, {init})"),
                1 => format!("block({{b}}, {init})"),
                2 => format!("rename({{a -> g, e -> h}}, {init})"),
                3 | 4 => format!("comm({{a|b -> g, c|e -> h}}, {init})"),
                5 => format!(
                    "allow({{g, h, f, a, b|f, e, a|b}}, comm({{c|e -> h, a|b -> g}}, {init}))"
                ),
                6 => format!(
                    "hide({{g}}, allow({{g, h, f, c|f, b}}, comm({{a|b -> g, c|e|e -> h}}, {init})))"
                ),
                _ => init,
            };
        }
        text + &format!("init {init};\n")
    }
}

fn by_lineariser(
    spec: &ProcSpec,
    options: &linearise::LineariserOptions,
) -> Result<Lts, Diagnostic> {
    let process = linearise::linearise(spec, options)?;
    let model = Compiled::new(process, &Confluence::None)?;
    let (_, lts) = explore::explore_lts(
        &model,
        &explore::Options::default(),
        &Budget::default(),
        &explore::Silent,
    )?;
    Ok(with_sorted_labels(lts))
}

/// The rules recurse over terms, which grow with the stack of an infinite process: a large stack,
/// and a limit on states.
#[test]
fn lineariser_agrees_with_the_operational_rules() {
    let run =
        std::thread::Builder::new().stack_size(512 << 20).spawn(compare_all).expect("a thread");
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}

fn compare_all() {
    let cases: u64 =
        std::env::var("MU_CHECK_CASES").ok().and_then(|c| c.parse().ok()).unwrap_or(400);
    let seeds: Vec<u64> = match std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => vec![seed],
        // Seeds that found something once come first.
        None => [8391].into_iter().chain(0..cases).collect(),
    };
    let (mut compared, mut states, mut infinite) = (0, 0, 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        let stack = seed % 4 == 0;
        if std::env::var_os("MU_CHECK_TRACE").is_some() {
            eprintln!(
                "seed {seed}\n{}",
                Writer { random: &mut Random::new(seed), stack }.specification()
            );
        }
        let text = Writer { random: &mut random, stack }.specification();
        let mut sources = SourceMap::new();
        let source = sources.add("random", text.as_str());
        let fail = |what: &str, d: &Diagnostic| -> ! {
            panic!("seed {seed}: {what}: {}\n{text}", d.render(&sources))
        };
        let tree =
            syntax::parse_specification(source, &text).unwrap_or_else(|d| fail("syntax", &d));
        let spec = typecheck::check_specification(&tree).unwrap_or_else(|d| fail("types", &d));
        let expected = match by_rules(&spec, 600) {
            Ok(lts) => lts,
            Err(d) if d.message.starts_with("more than") => {
                infinite += 1;
                continue;
            }
            Err(d) => fail("rules", &d),
        };
        let all = linearise::LineariserOptions::default().with_all(true);
        let folded = linearise::LineariserOptions::default().with_all_folded();
        for (simplify, options) in [
            ("default", linearise::LineariserOptions::default()),
            ("none", linearise::LineariserOptions::plain()),
            ("all", all),
            ("folded", folded),
        ] {
            let got = by_lineariser(&spec, &options).unwrap_or_else(|d| fail("lineariser", &d));
            assert!(
                equivalent(&expected, &got, Equivalence::STRONG, 1),
                "seed {seed} (simplify {simplify}): {} states by the rules, {} by the lineariser: {:?}\n{text}",
                expected.state_count(),
                got.state_count(),
                distinguish(&expected, &got, Equivalence::TRACE, 1)
            );
        }
        compared += 1;
        states += expected.state_count();
    }
    println!("{compared} specifications agree, {states} states in all, {infinite} too large");
    assert!(compared > 0);
}

/// Elements that sums put in front of lists of any content, whatever else they rest on; two
/// equations have a say in what such a list is.
#[test]
fn lists_that_sums_make_longer_agree_with_the_operational_rules() {
    let data = "sort D = struct d1 | d2 | d3(of: D2)?is_d3; D2 = struct e1 | e2;
        map all: Set(D2); eqn all = {x: D2 | true};
        act put: D; took: D # D; more: Set(D2); twice;
        map some: D -> D; var x: D2; eqn some(d3(x)) = d3(x); some(d1) = d2;\n";
    let queues = "proc P(n: Nat, q, r: List(D)) = sum d: D. (n < 4) -> put(d) . P(n + 1, d |> q, r)
            + sum d: D. (n < 3 && is_d3(d)) -> took(d, if(q == [], d, head(q))) . P(n + 2, some(d) |> r, tail(d |> q))
            + sum x: D2. (n < 3) -> twice . P(n + 1, d3(x) |> d1 |> q, if(r == [], [d2], r))
            + (q != []) -> took(head(q), rhead(q)) . P(n, tail(q), r);
        init P(0, [], [d2]);";
    let sets = "proc P(n: Nat, q: List(Set(D2)), l: List(List(D2))) = sum x: D2, b: Bool. (n < 3) -> more({x}) . P(n + 1, if(b, {x} + {e1}, all - {x}) |> q, [x] |> l)
            + (q != [] && l != []) -> more(head(q) + {head(head(l))}) . P(n, tail(q), l);
        init P(0, [], []);";
    let numbers = "act say: Nat; proc P(n: Nat, q: List(Nat)) = sum b: Bool. (n < 4) -> say(n) . P(n + 1, if(b, n, n + 1) |> q)
            + (#q > 1) -> say(head(q) + rhead(q)) . P(n, q);
        init P(0, []);";
    let once = "var x: D; l: List(D); eqn x |> x |> l = x |> l;\n";
    let run = move || {
        let mut counts = Vec::new();
        for (name, text) in [
            ("queues", queues),
            ("sets", sets),
            ("numbers", numbers),
            ("queues without repetition", queues),
        ] {
            let equation = if name.ends_with("repetition") { once } else { "" };
            let text = format!("{data}{equation}{text}");
            let spec = syntax::parse_specification(Default::default(), &text)
                .and_then(|tree| typecheck::check_specification(&tree));
            let spec = spec.unwrap_or_else(|d| panic!("{name}: {d:?}"));
            let expected = by_rules(&spec, 5000).unwrap_or_else(|d| panic!("{name}: {d:?}"));
            for options in
                [linearise::LineariserOptions::default(), linearise::LineariserOptions::plain()]
            {
                let got =
                    by_lineariser(&spec, &options).unwrap_or_else(|d| panic!("{name}: {d:?}"));
                assert!(
                    equivalent(&expected, &got, Equivalence::STRONG, 1),
                    "{name}: {} and {} states",
                    expected.state_count(),
                    got.state_count()
                );
            }
            counts.push(expected.state_count());
        }
        assert!(
            counts[..3].iter().all(|n| *n > 50) && counts[3] > 50 && counts[3] < counts[0],
            "{counts:?}"
        );
    };
    let run = std::thread::Builder::new().stack_size(512 << 20).spawn(run).expect("a thread");
    if let Err(panic) = run.join() {
        std::panic::resume_unwind(panic);
    }
}
