//! Comparison of a bank of states with its states, queried one by one.

use mu_base::random::Random;
use mu_base::source::SourceMap;
use mu_prove::atom::{Atom, Cell, SymbolSort};
use mu_prove::bank::Bank;
use mu_prove::cube::Cube;
use mu_prove::instance::{Instance, InstanceState};
use mu_prove::rules::{Memory, translate};
use std::path::Path;

const PROCESSES: usize = 3;
/// The lag of the states of a bank.
const LAG: usize = 2;

/// Returns all choices of `count` different processes.
fn choices(count: usize) -> Vec<Vec<u8>> {
    (0..count).fold(vec![Vec::new()], |found: Vec<Vec<u8>>, _| {
        let longer = |c: Vec<u8>| {
            (0..PROCESSES as u8)
                .filter(|p| !c.contains(p))
                .map(|p| [&c[..], &[p]].concat())
                .collect::<Vec<_>>()
        };
        found.into_iter().flat_map(longer).collect()
    })
}

#[test]
fn columns_leave_out_no_state() {
    let seed = std::env::var("BANKS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed);
    let (mut contained, mut queried) = (0, 0);
    for (name, memory) in [
        ("mcs", Memory::Tso),
        ("dijkstra", Memory::Tso),
        ("one_bit", Memory::Tso),
        ("german", Memory::Sc),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../specs/challenges/{name}.cub"));
        let text = std::fs::read_to_string(path).unwrap();
        let source = SourceMap::new().add(name, &*text);
        let system = mu_cubicle::check(&mu_cubicle::parse(source, &text).unwrap()).unwrap();
        let rules = translate(&system, memory).unwrap();
        let signature = &rules.signature;
        let mut bank = Bank::new(&rules, PROCESSES, &[]);
        bank.explore(400, 1, &|| false);
        // The same states, explored here.
        let instance = Instance::new(&rules, PROCESSES, LAG);
        let states: Vec<InstanceState> = bank.states().to_vec();
        assert!(
            states.len() > 50
                && (memory == Memory::Sc || states.iter().any(|s| !s.writes.is_empty())),
            "{name}"
        );
        let finite: Vec<usize> = (0..signature.sorts.len())
            .filter(|s| matches!(signature.sorts[*s], SymbolSort::Finite(_)))
            .collect();
        for _ in 0..300 {
            let atoms = (0..1 + random.below(3)).map(|_| {
                let symbol = finite[random.below(finite.len())];
                let args: Vec<u8> =
                    (0..signature.arity[symbol]).map(|_| random.below(2) as u8).collect();
                let view = signature.weak[symbol] && random.below(4) > 0;
                let cell = Cell::new(symbol, &args)
                    .with_view(view.then(|| (random.below(2) as u8, random.below(2) as u8)));
                let all = signature.all_values(signature.sorts[symbol], 2);
                Atom::In(cell, all & random.next_u64())
            });
            let Some(cube) = Cube::new(signature, 2, atoms.collect()) else { continue };
            let one_by_one = choices(cube.processes).iter().any(|place| {
                let ready = instance.prepare(cube.atoms.iter(), place);
                states.iter().any(|s| instance.satisfies(s, &ready))
            });
            assert_eq!(
                bank.meets(signature, &cube, &mut 0),
                one_by_one,
                "BANKS_SEED={seed} {name}: {cube:?}"
            );
            queried += 1;
            contained += usize::from(one_by_one);
        }
    }
    assert!(contained > queried / 10 && contained < queried * 9 / 10, "{contained} of {queried}");
}
