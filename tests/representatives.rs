//! Cost of a set of one state of each orbit, compared with all states: the symbolic engine uses no
//! symmetries ([results](../results/symbolic.md)).
//!
//! The orbits are computed independently of the search's own reduction, by closing under the
//! generators that map reachable states to reachable ones. Other instances:
//!
//! ```sh
//! MU_CHECK_CORES=3 MU_CHECK_OPERATIONS=0 cargo test --release --test suite representatives --
//! --nocapture
//! ```

use crate::support::package;
use mu_check::base::Budget;
use mu_check::base::ids::StateId;
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{Options, VisitEnd, Visitor, visit};
use mu_check::model::Model;
use mu_check::process::{linearise, typecheck::check_specification};
use mu_check::symbolic::candidate_orders;
use mu_check::symbolic::ldd::Manager;
use mu_check::syntax::{parse_specification, template};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

#[derive(Default)]
struct All(Vec<Vec<u32>>);

impl Visitor for All {
    fn state(&mut self, _: StateId, vector: &[u32]) -> ControlFlow<()> {
        self.0.push(vector.to_vec());
        ControlFlow::Continue(())
    }
}

fn arcx(cores: &str, operations: &str) -> Compiled {
    let text = std::fs::read_to_string(package("specs/arcx.spec")).unwrap();
    let defines = [("num_cores", cores), ("max_operation_id", operations)]
        .map(|(k, v)| (k.to_string(), v.to_string()));
    let expanded =
        template::expand("arcx.spec", &text, &defines, &mut mu_check::base::SourceMap::new())
            .unwrap();
    let tree = parse_specification(expanded.source, &expanded.text).unwrap();
    let process = linearise::linearise(
        &check_specification(&tree).unwrap(),
        &linearise::LineariserOptions::default(),
    )
    .unwrap();
    Compiled::new(process, &Confluence::None).unwrap()
}

/// Returns the image of each state under each generator; `None` if it is unknown.
fn images(model: &Compiled, states: &[Vec<u32>]) -> Vec<Vec<Option<Vec<u32>>>> {
    let mut worker = model.worker();
    let mut known: HashMap<(usize, u32, u32), Option<u32>> = HashMap::new();
    let mut all = Vec::new();
    for (number, symmetry) in model.symmetries().iter().enumerate() {
        let mut image = |state: &Vec<u32>| {
            let mut to = vec![0; state.len()];
            for (slot, &value) in (0u32..).zip(state) {
                let image = *known
                    .entry((number, slot, value))
                    .or_insert_with(|| worker.image(number, slot, value).unwrap());
                to[symmetry.slots[slot as usize] as usize] = image?;
            }
            Some(to)
        };
        all.push(states.iter().map(&mut image).collect());
    }
    all
}

/// For each state the least of its orbit.
fn least(states: &[Vec<u32>], generators: &[Vec<usize>]) -> Vec<usize> {
    let mut least: Vec<Option<usize>> = vec![None; states.len()];
    for first in 0..states.len() {
        if least[first].is_some() {
            continue;
        }
        let (mut orbit, mut seen) = (vec![first], HashSet::from([first]));
        let mut at = 0;
        while at < orbit.len() {
            let from = orbit[at];
            for to in generators.iter().map(|g| g[from]) {
                if seen.insert(to) {
                    orbit.push(to);
                }
            }
            at += 1;
        }
        let one = orbit.iter().copied().min_by_key(|s| &states[*s]);
        orbit.iter().for_each(|s| least[*s] = one);
    }
    least.into_iter().map(|one| one.expect("each state is in an orbit")).collect()
}

#[test]
fn an_eighth_of_the_states_needs_most_of_the_nodes() {
    let of = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_string());
    let (cores, operations) = (of("MU_CHECK_CORES", "2"), of("MU_CHECK_OPERATIONS", "0"));
    let model = arcx(&cores, &operations);
    let mut all = All::default();
    assert_eq!(
        visit(&model, &Options::default(), &Budget::default(), &mut all).unwrap(),
        VisitEnd::All
    );
    // Vectors in the order in which diagrams have them, so that the least is the one that diagrams
    // would compare first.
    let order = candidate_orders(&model).swap_remove(0);
    let places: HashMap<&[u32], usize> =
        all.0.iter().enumerate().map(|(at, state)| (state.as_slice(), at)).collect();
    let whole = |images: &Vec<Option<Vec<u32>>>| {
        images
            .iter()
            .map(|i| places.get(i.as_ref()?.as_slice()).copied())
            .collect::<Option<Vec<_>>>()
    };
    let generators: Vec<Vec<usize>> = images(&model, &all.0).iter().filter_map(whole).collect();
    let vectors: Vec<Vec<u32>> =
        all.0.iter().map(|s| order.iter().map(|&slot| s[slot as usize]).collect()).collect();
    let least = least(&vectors, &generators);
    let kept: Vec<usize> = (0..vectors.len()).filter(|&at| least[at] == at).collect();

    let mut manager = Manager::default();
    let mut set = |states: &mut dyn Iterator<Item = usize>| {
        let states: Vec<u32> = states.flat_map(|at| vectors[at].iter().copied()).collect();
        let set = manager.from_vectors(&states, order.len(), states.len() / order.len());
        (states.len() / order.len(), manager.nodes_of([set]))
    };
    let (full, reduced) = (set(&mut (0..vectors.len())), set(&mut kept.iter().copied()));
    println!(
        "{cores} cores, operations to {operations}: {} states in {} nodes; {} orbits under {} of {} generators in {} nodes",
        full.0,
        full.1,
        reduced.0,
        generators.len(),
        model.symmetries().len(),
        reduced.1
    );
    assert!(!generators.is_empty() && reduced.0 < full.0);
    if (cores.as_str(), operations.as_str()) == ("2", "0") {
        assert_eq!(
            (full.0, reduced.0),
            (6052, 797),
            "as the search that stores representatives counts them"
        );
        assert!(reduced.1 * 2 > full.1, "{full:?} {reduced:?}: use them then");
    }
}
