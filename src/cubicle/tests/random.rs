//! Tests on random systems: the machine against the naive interpreter, the printer against the
//! parser.

use mu_base::random::Random;
use mu_base::{Budget, Diagnostic, SourceId};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::model::{GroupMove, SystemModel, UNSAFE};
use mu_cubicle::system::{SymbolId, System, TypeId};
use mu_cubicle::value::Val;
use mu_cubicle::{check, parse};
use mu_model::{Model, Steps};
use mu_testkit::cubicle_grammar::{self, generate};
use mu_testkit::cubicle_interpreter::{Naive, State};
use mu_testkit::cubicle_systems::{Shape, file};
use std::collections::{BTreeMap, BTreeSet};

fn seeds() -> std::ops::Range<u64> {
    // MU_CHECK_SEED=n replays one seed, MU_CHECK_RUNS=n sets their number.
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    match number("MU_CHECK_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MU_CHECK_RUNS").unwrap_or(400),
    }
}

fn shape(random: &mut Random) -> Shape {
    let mut flag = || random.chance(1, 2);
    let (weak, arithmetic, quantifiers, open) = (flag(), flag(), flag(), flag());
    Shape {
        weak,
        arithmetic,
        quantifiers,
        open,
        private: false,
        assumptions: flag(),
        transitions: 4,
    }
}

fn system(seed: u64) -> (String, System) {
    let mut random = Random::new(seed);
    let shape = shape(&mut random);
    let text = file(&mut random, shape).to_string();
    let tree =
        parse(SourceId::FIRST, &text).unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
    let system = check(&tree).unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
    (text, system)
}

#[test]
fn printed_systems_parse_to_themselves() {
    for seed in 0..4 * seeds().end {
        let mut random = Random::new(seed);
        let shape = shape(&mut random);
        let tree = file(&mut random, shape);
        let text = tree.to_string();
        let again =
            parse(SourceId::FIRST, &text).unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
        assert_eq!(again, tree, "seed {seed}\n{text}");
    }
}

type Entries = Vec<Vec<Vec<(SymbolId, Vec<u32>, Val)>>>;

/// Expands a state to the values of its cells and the entries of its buffers, enumerating open
/// cells.
fn concrete_states(machine: &Machine<'_>, state: &[u32]) -> Vec<(Vec<Val>, Entries)> {
    let system = machine.system();
    let n = machine.processes();
    let mut out = vec![Vec::new()];
    for (i, s) in system.symbols.iter().enumerate() {
        let mut tuples = vec![Vec::new()];
        for _ in 0..s.arity {
            tuples = tuples
                .iter()
                .flat_map(|t: &Vec<u32>| {
                    (0..n).map(|p| [&t[..], &[p]].concat()).collect::<Vec<_>>()
                })
                .collect();
        }
        for args in tuples {
            let values = match machine.value(state, SymbolId::new(i), &args) {
                Val::Any if s.sort == TypeId::PROC => {
                    (0..n + u32::from(machine.opens_beyond())).map(Val::Proc).collect()
                }
                Val::Any => {
                    system.type_of(s.sort).constructors.iter().map(|c| Val::Cons(*c)).collect()
                }
                v => vec![v],
            };
            let longer = |o: &Vec<Val>| {
                values
                    .iter()
                    .map(|v| [&o[..], std::slice::from_ref(v)].concat())
                    .collect::<Vec<_>>()
            };
            out = out.iter().flat_map(longer).collect();
        }
    }
    let buffers: Entries = (0..n).map(|p| machine.buffer(state, p)).collect();
    out.into_iter().map(|cells| (cells, buffers.clone())).collect()
}

/// Converts a state of the oracle likewise.
fn oracle_state(state: &mu_testkit::cubicle_interpreter::State) -> (Vec<Val>, Entries) {
    #[allow(clippy::type_complexity)]
    let entry = |e: &std::collections::BTreeMap<(SymbolId, Vec<u32>), Val>| {
        e.iter().map(|(c, v)| (c.0, c.1.clone(), v.clone())).collect()
    };
    (
        state.cells.values().cloned().collect(),
        state.buffers.iter().map(|b| b.iter().map(entry).collect()).collect(),
    )
}

/// Returns all states of a model and their steps, without the choice of the initial state.
fn explore_all(
    model: &SystemModel<'_>,
) -> Result<BTreeMap<(Vec<Val>, Entries), BTreeSet<(String, (Vec<Val>, Entries))>>, Diagnostic> {
    let (mut seen, mut todo, mut out) = (BTreeSet::new(), vec![model.initial()], BTreeMap::new());
    let mut worker = model.worker();
    while let Some(v) = todo.pop() {
        if !seen.insert(v.clone()) {
            continue;
        }
        let mut own = BTreeSet::new();
        let mut choice = false;
        for (at, g) in model.groups().iter().enumerate() {
            if g.requires.iter().any(|(s, value)| v[*s as usize] != *value) {
                continue;
            }
            let reads: Vec<u32> = g.reads.iter().map(|s| v[*s as usize]).collect();
            let mut steps = Steps::default();
            worker.steps(at, &reads, &mut steps)?;
            choice |= model.movement(at) == GroupMove::Init;
            for (i, label) in steps.labels.iter().enumerate() {
                let mut next = v.clone();
                g.writes
                    .iter()
                    .enumerate()
                    .for_each(|(j, s)| next[*s as usize] = steps.values[i * g.writes.len() + j]);
                own.insert((
                    model.label_text(*label).replace(", ", ","),
                    concrete_states(&model.machine, &model.state(&next)).remove(0),
                ));
                todo.push(next);
            }
        }
        if !choice {
            out.insert(concrete_states(&model.machine, &model.state(&v)).remove(0), own);
        }
    }
    Ok(out)
}

#[test]
fn equivalent_initial_formulas_have_the_same_states() {
    let states = |init: &str, n: u32| {
        let text = format!(
            "var Home : proc var Other : proc array Next[proc] : proc var T : bool
init (p) {{ {init} }}
unsafe (x) {{ Home = Other }}
transition t ([p]) requires {{ T = False }} {{ T := True }}
transition u ([p]) requires {{ T = True && Home = Other }} {{ Other := .; Next[p] := Other }}"
        );
        let tree = parse(SourceId::FIRST, &text).unwrap_or_else(|d| panic!("{}\n{text}", d));
        let system = check(&tree).unwrap_or_else(|d| panic!("{}\n{text}", d));
        assert!(compare(0, &text, &system) > 0, "{text}");
        let machine = Machine::new(&system, n, Memory::Sc, Setup::default())
            .unwrap_or_else(|d| panic!("{}\n{text}", d));
        let starts = machine.initial_states().unwrap_or_else(|d| panic!("{}\n{text}", d));
        starts.iter().flat_map(|s| concrete_states(&machine, s)).collect::<BTreeSet<_>>()
    };
    for n in 1..=3 {
        let short = states("Home <> p && T = False", n);
        // `Home` is the further process; `Other` and each cell of `Next` have any value.
        assert_eq!(short.len(), (n as usize + 1).pow(n + 1));
        assert_eq!(short, states("Home <> p && T = False && (Other = p || Other <> p)", n));
        assert_eq!(short, states("Home <> p && T = False && (Other = Home || Other <> Home)", n));
        let either = states("T = False && (Home <> p || Other <> p)", n);
        // Of the pairs, only those of a process of the instance in both cells violate a part.
        if n == 1 {
            assert_eq!(either.len(), 3 * 2);
        }
    }
}

#[test]
fn machine_and_oracle_reach_the_same() {
    let mut compared = 0;
    for seed in seeds() {
        let (text, system) = system(seed);
        compared += compare(seed, &text, &system);
    }
    assert!(
        seeds().end - seeds().start < 100 || compared as u64 > (seeds().end - seeds().start),
        "only {compared} compared"
    );
}

#[test]
fn machine_and_oracle_reach_the_same_of_systems_of_the_grammar() {
    let mut compared = 0;
    for seed in seeds().step_by(3) {
        let mut random = Random::new(seed);
        let private = random.chance(1, 2);
        let text = generate(&mut random, cubicle_grammar::Shape { private, transitions: 3 }).text;
        let tree =
            parse(SourceId::FIRST, &text).unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
        let again = parse(SourceId::FIRST, &tree.to_string())
            .unwrap_or_else(|d| panic!("seed {seed}: {}\n{tree}", d));
        assert_eq!(again, tree, "seed {seed}\n{text}");
        let Ok(system) = check(&tree) else { continue };
        // The oracle enumerates values, and abstract types have infinitely many.
        let open = |t: &mu_cubicle::system::TypeDecl| t.constructors.is_empty();
        if !system.types[4..].iter().any(open) && system.fixed <= 2 {
            compared += compare(seed, &text, &system);
        }
    }
    assert!(
        seeds().end - seeds().start < 100 || compared as u64 > (seeds().end - seeds().start) / 3,
        "only {compared} compared"
    );
}

/// Compares the machine with the oracle for two and three processes. Returns the number of
/// comparisons.
fn compare(seed: u64, text: &str, system: &System) -> usize {
    let mut compared = 0;
    // The initial numbers.
    let numbers = cubicle_grammar::BOUNDARIES
        .iter()
        .chain(&["0", "1/2", "5/4"])
        .map(|n| n.parse().unwrap_or_else(|_| panic!("{n}")));
    let candidates: Vec<num_rational::BigRational> = numbers.collect();
    for (memory, n) in [(Memory::Sc, 2), (Memory::Tso, 2), (Memory::Sc, 3)] {
        let naive = Naive {
            system,
            n,
            tso: memory == Memory::Tso,
            most: 2,
            candidates: candidates.clone(),
        };
        let open = system.symbols.iter().filter(|s| s.arity == 2).count() > 0 && n > 2;
        if open {
            continue;
        }
        let Some(expected) = naive.reach(1500) else { continue };
        let setup = Setup { buffer: Some(2), ..Setup::default() };
        let machine = Machine::new(system, n, memory, setup)
            .unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
        let reach = machine
            .reach(1 << 20, false, &Budget::default())
            .unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
        let ours: BTreeSet<_> =
            reach.states.iter().flat_map(|s| concrete_states(&machine, s)).collect();
        let theirs: BTreeSet<_> = expected.keys().map(oracle_state).collect();
        assert!(
            ours == theirs,
            "seed {seed}, {memory:?}, {n} processes: {} and {} states\n{text}",
            ours.len(),
            theirs.len()
        );
        let bad = expected.keys().any(|s| system.unsafes.iter().any(|c| naive.claim(s, c)));
        assert_eq!(
            reach.violation.is_some(),
            bad,
            "seed {seed}, {memory:?}, {n} processes\n{text}"
        );
        if let Some((state, claim, procs)) = &reach.violation {
            let run = reach.run(*state);
            let acts: Vec<_> = run.steps.iter().map(|s| s.0.clone()).collect();
            let fires: Vec<_> = acts
                .iter()
                .filter(|a| matches!(a, mu_cubicle::machine::Act::Fire(..)))
                .cloned()
                .collect();
            machine
                .replay(&acts, &system.unsafes[*claim], procs)
                .unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
            machine
                .replay(&fires, &system.unsafes[*claim], procs)
                .unwrap_or_else(|d| panic!("seed {seed}: {}\n{text}", d));
        }
        let setup = Setup { buffer: Some(2), ..Setup::default() };
        let eager = Machine::new(system, n, memory, setup).and_then(SystemModel::new);
        match eager.and_then(|m| explore_all(&m)) {
            Err(d) => assert!(expected.is_empty(), "seed {seed}: {}\n{text}", d),
            Ok(ours) => {
                let steps = |(s, steps): (&State, &BTreeSet<(String, State)>)| {
                    let mut all: BTreeSet<_> =
                        steps.iter().map(|(l, s)| (l.clone(), oracle_state(s))).collect();
                    if system.unsafes.iter().any(|c| naive.claim(s, c)) {
                        all.insert((UNSAFE.to_string(), oracle_state(s)));
                    }
                    (oracle_state(s), all)
                };
                let theirs: BTreeMap<_, _> = expected.iter().map(steps).collect();
                assert!(
                    ours == theirs,
                    "seed {seed}, {memory:?}, {n} processes: steps of the model\n{text}"
                );
            }
        }
        compared += 1;
    }
    compared
}
