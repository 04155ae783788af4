//! Confluence on random linear processes: few parameters, many hidden steps, so that steps often
//! write each other's parameters.
//!
//! What is explored with priority for the steps that are proven confluent must be branching
//! bisimilar to the whole system. A failure prints the seed and the specification; `MU_CHECK_SEED=n
//! cargo test --release --test confluence` replays it, `MU_CHECK_CASES=n` runs more of them.

use mu_check::base::ids::{LabelId, StateId};
use mu_check::base::random::Random;
use mu_check::base::{Budget, Diagnostic, SourceId, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, Options, Silent};
use mu_check::formula::typecheck::check_formula;
use mu_check::lts::Lts;
use mu_check::lts::equivalence::{Equivalence, equivalent};
use mu_check::pbes::{self, Verdict};
use mu_check::process::{linearise, typecheck};
use mu_check::syntax;

const VARS: [&str; 5] = ["x", "y", "z", "v", "w"];
const VALUES: [&str; 3] = ["d1", "d2", "d3"];

/// Returns a process of summands that each look at one or two of the parameters they name and set
/// one or two.
fn specification(random: &mut Random) -> String {
    let parameters = &VARS[..3 + random.below(3)];
    // Often one parameter is the location of the process, so that steps of different locations are
    // never enabled together.
    let control = random.chance(1, 2);
    let summands: Vec<String> =
        (0..5 + random.below(8)).map(|_| summand(random, parameters, control)).collect();
    let typed: Vec<String> = parameters.iter().map(|v| format!("{v}: D")).collect();
    let initial: Vec<&str> = parameters.iter().map(|_| *random.choose(&VALUES)).collect();
    format!(
        "sort D = struct d1 | d2 | d3;\nmap next: D -> D;\neqn next(d1) = d2; next(d2) = d3; next(d3) = d1;\nact a, b; c, e: D;\n\
         proc P({}) =\n    {};\ninit hide({{e}}, P({}));\n",
        typed.join(", "),
        summands.join("\n  + "),
        initial.join(", ")
    )
}

fn summand(random: &mut Random, parameters: &[&str], control: bool) -> String {
    let hidden = random.chance(2, 3);
    // Steps of one parameter are often confluent.
    let own = [*random.choose(parameters)];
    let near = if random.chance(2, 3) { &own[..] } else { parameters };
    let mut conditions = Vec::new();
    if control {
        conditions.push(format!("{} == {}", parameters[0], random.choose(&VALUES)));
    }
    for _ in usize::from(control)..1 + random.below(4) / 3 {
        let (v, k) = (*random.choose(near), *random.choose(&VALUES));
        conditions.push(match random.below(8) {
            0 => format!("{v} != {k}"),
            1 => format!("{v} == {}", random.choose(near)),
            _ => format!("{v} == {k}"),
        });
    }
    let action = match random.below(3) {
        // Arguments of a hidden action are forgotten.
        _ if hidden => format!("e({})", random.choose(parameters)),
        0 => "a".to_string(),
        1 => format!("c({})", random.choose(near)),
        _ => "b".to_string(),
    };
    let mut updates: Vec<String> = Vec::new();
    if control && random.chance(1, 3) {
        updates.push(format!("{} = {}", parameters[0], random.choose(&VALUES)));
    }
    for _ in 0..1 + random.below(4) / 3 {
        let v = *random.choose(near);
        if updates.iter().any(|u| u.starts_with(v)) {
            continue;
        }
        updates.push(match random.below(4) {
            0 | 1 => format!("{v} = next({v})"),
            2 => format!("{v} = {}", random.choose(near)),
            _ => format!("{v} = {}", random.choose(&VALUES)),
        });
    }
    format!("({}) -> {action} . P({})", conditions.join(" && "), updates.join(", "))
}

/// Returns the whole system, the one with priority for confluent steps, and whether there were such
/// steps.
fn explore_both(
    text: &str,
    confluence: &Confluence,
    sources: &mut SourceMap,
) -> Result<(Lts, Lts, bool), Diagnostic> {
    let tree = syntax::parse_specification(sources.add("random", text), text)?;
    let spec = typecheck::check_specification(&tree)?;
    let process = linearise::linearise(&spec, &linearise::LineariserOptions::default())?;
    let options = Options { threads: 1, ..Options::default() };
    let explored = |model: &Compiled, options: &Options| {
        Ok(explore::explore_lts(model, options, &Budget::default(), &Silent)?.1)
    };
    let whole = explored(&Compiled::new(process.clone(), &Confluence::None)?, &options)?;
    let confluent = Compiled::new(process, confluence)?;
    let options = options.with_confluence_of(&confluent);
    let prioritised = options.confluent.iter().chain(&options.first).any(|c| *c);
    Ok((whole, explored(&confluent, &options)?, prioritised))
}

/// The same system where `b` is tau, and whether steps `b` go in a circle.
fn without_b(mut lts: Lts) -> (Lts, bool) {
    let b = lts.table.texts.iter().position(|t| t == "b");
    let Some(b) = b.map(LabelId::new) else { return (lts, false) };
    let steps: Vec<Vec<usize>> = (0..lts.state_count())
        .map(|s| {
            lts.successors(StateId::new(s))
                .filter(|(l, _)| *l == b)
                .map(|(_, t)| t.index())
                .collect()
        })
        .collect();
    let mut left: Vec<bool> = vec![true; steps.len()];
    while let Some(s) = (0..steps.len()).find(|&s| left[s] && steps[s].iter().all(|&t| !left[t])) {
        left[s] = false;
    }
    lts.labels.iter_mut().filter(|l| **l == b).for_each(|l| *l = LabelId::TAU);
    (lts, left.contains(&true))
}

/// Compares what is explored with priority with the whole; `also`: what is made of both before, and
/// whether the case does not count.
fn compare(confluence: &Confluence, also: &dyn Fn(Lts) -> (Lts, bool)) {
    let number = |name: &str| std::env::var(name).ok().and_then(|c| c.parse().ok());
    let (cases, one) = (number("MU_CHECK_CASES").unwrap_or(700u64), number("MU_CHECK_SEED"));
    let seeds = one.map_or(0..cases, |seed| seed..seed + 1);
    let (mut all, mut kept, mut applied) = (0, 0, 0);
    for seed in seeds {
        let text = specification(&mut Random::new(seed));
        let mut sources = SourceMap::new();
        let (whole, less, prioritised) = explore_both(&text, confluence, &mut sources)
            .unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d.render(&sources)));
        let ((whole, _), (less, skipped)) = (also(whole), also(less));
        if skipped {
            continue;
        }
        assert!(
            equivalent(&whole, &less, Equivalence::BRANCHING, 1),
            "seed {seed}: {} states, {} with priority for confluent steps\n{text}",
            whole.state_count(),
            less.state_count()
        );
        applied += u64::from(prioritised);
        all += whole.state_count();
        kept += less.state_count();
    }
    println!("{applied} of {cases} processes have confluent steps; {kept} of {all} states kept");
    assert!(
        one.is_some() || (applied > cases / 20 && kept < all),
        "{applied} processes, {kept} of {all} states"
    );
}

#[test]
fn priority_of_confluent_steps_keeps_branching_bisimilarity() {
    compare(&Confluence::Auto, &|lts| (lts, false));
}

/// The sharper analysis; and visible steps `b` that come first, where they do not go in a circle:
/// hidden, they are confluent.
#[test]
fn priority_of_commuting_steps_keeps_branching_bisimilarity() {
    compare(&Confluence::Commuting(Vec::new()), &|lts| (lts, false));
    compare(&Confluence::Commuting(vec!["b".into()]), &without_b);
}

/// A formula that distinguishes tau from no transition must not be checked on the system without
/// it, be it true or false.
#[test]
fn formulas_that_see_silence_are_checked_on_the_whole_system() {
    let silent = "act a; init tau . a . delta;";
    let between = "act a, b; init a . tau . b . delta;";
    let cases = [
        (silent, "<tau => a>true", false),
        (silent, "<a>true", false),
        (silent, "[a]false", true),
        (silent, "<tau><a>true", true),
        (silent, "<tau* . a>true", true),
        (silent, "[tau* . a]false", false),
        (between, "<a><b>true", false),
        (between, "<a . tau* . b>true", true),
        (between, "[a][b]false", true),
        (between, "<true* . b>true", true),
        (between, "mu X. (<!b>X || <a><b>true)", false),
    ];
    let mut applied = 0;
    for (model, text, expected) in cases {
        let spec = typecheck::check_specification(
            &syntax::parse_specification(SourceId::FIRST, model).unwrap(),
        )
        .unwrap();
        let process =
            linearise::linearise(&spec, &linearise::LineariserOptions::default()).unwrap();
        let tree = syntax::parse_formula(SourceId::FIRST, text).unwrap();
        for confluence in [Confluence::None, Confluence::Auto] {
            let model = Compiled::new(process.clone(), &confluence).unwrap();
            let formula =
                check_formula(&tree, &model.process().data, &model.process().actions).unwrap();
            let options = Options { threads: 1, ..Options::default() }.with_confluence_of(&model);
            applied += usize::from(options.confluent.contains(&true));
            let answer = pbes::check(
                &model,
                &model,
                &formula,
                pbes::Options::new(&options),
                &Budget::default(),
            )
            .unwrap();
            assert_eq!(
                answer.verdict,
                if expected { Verdict::True } else { Verdict::False },
                "{text} on {spec:?}, {confluence:?}"
            );
        }
    }
    assert_eq!(applied, cases.len());
}
