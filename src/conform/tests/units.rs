//! Tests of the search against a naive version that stores every pair of state and history; of the
//! parsers; and of printed tests in all languages against the judges.

use mu_axioms::EventKind;
use mu_axioms::history::{Dependencies, History, Operation};
use mu_axioms::models::MemoryOrdering;
use mu_base::ids::{LabelId, StateId};
use mu_base::random::Random;
use mu_base::{Budget, Diagnostic, SourceId, SourceMap};
use mu_conform::alphabet::{Alphabet, Phase};
use mu_conform::every_length::decide::Subject;
use mu_conform::interface::Interface;
use mu_conform::judge::{MemoryModel, ModelDefinition, history};
use mu_conform::machine::ReducedMachine;
use mu_conform::search::{Bound, SearchResult, search};
use mu_conform::sequences::{SequenceEntry, State};
use mu_conform::suite::Cover;
use mu_conform::symmetry::SymmetryGroup;
use mu_conform::witness;
use mu_explore::{Options, Silent};
use mu_lts::{Labels, Lts};
use mu_model::from_lts::LtsModel;
use std::collections::BTreeSet;
use std::sync::Arc;

const WHOLE: &str = "initial v0; load ld(p, a, v); store st(p, a, v);";
const SPLIT: &str =
    "initial v0; load bl(p, a, n) -> el(p, v, n); store bs(p, a, v) -> es(p, a, v);";

fn interface(text: &str) -> Interface {
    Interface::parse(SourceId::FIRST, text).unwrap_or_else(|d| panic!("{text}: {}", d.message))
}

/// Generates a random system of processors and one shared number that determines which operations
/// are enabled and which values are read. `split`: operations have a beginning and an end.
fn random_lts(random: &mut Random, split: bool) -> Lts {
    let (shared, ops) = (3, 4);
    let mut table = Labels::default();
    let mut edges: Vec<(StateId, LabelId, StateId)> = Vec::new();
    // The position of a processor: 0 is idle, 1 + op is executing. The constant number identifies
    // the operation, since only one is active at a time.
    let place =
        |pc: [usize; 2], s: usize| StateId::of(((pc[0] * (ops + 1) + pc[1]) * shared + s) as u32);
    let label = |table: &mut Labels, text: String| match table.texts.iter().position(|t| *t == text)
    {
        Some(i) => LabelId::new(i),
        None => {
            table.texts.push(text);
            LabelId::new(table.texts.len() - 1)
        }
    };
    for s in 0..shared {
        for pc in (0..=ops).flat_map(|a| (0..=ops).map(move |b| [a, b])) {
            for p in 0..2 {
                for op in 0..ops {
                    let (kind, address) = (op / 2, op % 2);
                    let next = random.below(shared);
                    let value = random.below(3);
                    let mut moved = pc;
                    let text = if !split {
                        if pc != [0, 0] || random.chance(1, 3) {
                            continue;
                        }
                        if kind == 0 {
                            format!("ld(p{p}, a{address}, v{value})")
                        } else {
                            format!("st(p{p}, a{address}, v1)")
                        }
                    } else if pc[p] == 0 && random.chance(1, 2) {
                        moved[p] = 1 + op;
                        if kind == 0 {
                            format!("bl(p{p}, a{address}, 7)")
                        } else {
                            format!("bs(p{p}, a{address}, v1)")
                        }
                    } else if pc[p] == 1 + op && random.chance(2, 3) {
                        moved[p] = 0;
                        if kind == 0 {
                            format!("el(p{p}, v{value}, 7)")
                        } else {
                            format!("es(p{p}, a{address}, v1)")
                        }
                    } else {
                        continue;
                    };
                    let l = label(&mut table, text);
                    edges.push((place(pc, s), l, place(moved, next)));
                }
            }
            if random.chance(1, 3) {
                let l = if random.chance(1, 2) {
                    LabelId::TAU
                } else {
                    label(&mut table, "noise".into())
                };
                edges.push((place(pc, s), l, place(pc, random.below(shared))));
            }
        }
    }
    Lts::from_edges(place([0, 0], 0), (ops + 1) * (ops + 1) * shared, &edges, table)
}

/// Builds the system that first chooses one of the images under swaps of processors and addresses,
/// so that it is symmetric in both.
fn symmetric(lts: &Lts) -> Lts {
    let n = lts.state_count();
    let mut table = lts.table.clone();
    let mut edges = Vec::new();
    for image in 0..4usize {
        let shift = |s: StateId| StateId::of((1 + image * n + s.index()) as u32);
        edges.push((StateId::of(0), LabelId::TAU, shift(lts.initial)));
        for s in 0..n {
            for (l, t) in lts.successors(StateId::new(s)) {
                let mut text = lts.table.texts[l.index()].clone();
                for (bit, letter) in ["p", "a"].into_iter().enumerate() {
                    if image >> bit & 1 == 1 {
                        text = text
                            .replace(&format!("{letter}0"), "#")
                            .replace(&format!("{letter}1"), &format!("{letter}0"));
                        text = text.replace('#', &format!("{letter}1"));
                    }
                }
                let id = table.texts.iter().position(|t| *t == text).unwrap_or_else(|| {
                    table.texts.push(text.clone());
                    table.texts.len() - 1
                });
                edges.push((shift(StateId::new(s)), LabelId::new(id), shift(t)));
            }
        }
    }
    Lts::from_edges(StateId::of(0), 4 * n + 1, &edges, table)
}

/// Computes all histories of at most `most` operations of each processor by storing every pair of
/// state and history.
fn naive(interface: &Interface, lts: &Lts, most: usize) -> BTreeSet<History> {
    let alphabet =
        Alphabet::of(interface, lts.table.texts.iter().skip(1).map(String::as_str)).unwrap();
    let mut visited: BTreeSet<(u32, String)> = BTreeSet::new();
    let mut open: Vec<(StateId, Vec<Vec<SequenceEntry>>)> =
        vec![(lts.initial, vec![Vec::new(); alphabet.names.processors.len()])];
    let mut out = BTreeSet::new();
    while let Some((state, lists)) = open.pop() {
        if !visited.insert((state.number(), format!("{lists:?}"))) {
            continue;
        }
        if lists.iter().flatten().all(|e| e.state == State::Done)
            && lists.iter().any(|l| !l.is_empty())
        {
            out.insert(
                history(interface, &lists.iter().map(Vec::as_slice).collect::<Vec<_>>())
                    .canonical(),
            );
        }
        for (l, t) in lts.successors(state) {
            let mut next = lists.clone();
            if let Some(word) = alphabet.of_label.get(&lts.table.texts[l.index()]) {
                let event = alphabet.events[alphabet.words[*word as usize][0] as usize];
                let list = &mut next[event.processor as usize];
                if event.phase == Phase::End {
                    let e = list.last_mut().unwrap();
                    (e.state, e.number, e.value) = (State::Done, None, e.value.or(event.value));
                } else {
                    let state =
                        if event.phase == Phase::Begin { State::Begun } else { State::Done };
                    list.push(SequenceEntry {
                        state,
                        operation: event.operation,
                        class: event.class,
                        address: event.address,
                        value: event.value,
                        written: None,
                        number: event.number,
                        depends: event.depends,
                    });
                }
                if list.len() > most {
                    continue;
                }
            }
            open.push((t, next));
        }
    }
    out
}

fn search_machine(
    interface: &Interface,
    lts: &Lts,
    symmetry: bool,
    models: &[MemoryModel],
    most: usize,
) -> (SearchResult, usize, ReducedMachine) {
    let model = LtsModel::new(Arc::new(lts.clone()));
    let options = Options { threads: 1, ..Options::default() };
    let machine =
        ReducedMachine::explore(&model, interface, &options, &Budget::default(), &Silent).unwrap();
    let group = if symmetry {
        SymmetryGroup::find(&machine.alphabet, &machine.lts, 1)
    } else {
        SymmetryGroup::trivial(&machine.alphabet, &machine.lts)
    };
    let bound = Bound { collect: usize::MAX, ..Bound::of(most, 2) };
    let models: Vec<&MemoryModel> = models.iter().collect();
    let answer = search(interface, &machine, &group, &models, bound, &Budget::default()).unwrap();
    (answer, group.elements.len(), machine)
}

#[test]
fn histories_are_those_of_every_pair_of_state_and_history() {
    let (mut reduced, mut histories) = (0, 0);
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let split = seed % 2 == 1;
        let interface = interface(if split { SPLIT } else { WHOLE });
        let mut lts = random_lts(&mut random, split);
        if seed % 4 >= 2 {
            lts = symmetric(&lts);
        }
        let Some(most) = [2].into_iter().find(|_| lts.table.texts.len() > 4) else { continue };
        let expected = naive(&interface, &lts, most);
        for symmetry in [false, true] {
            let (answer, order, _) = search_machine(&interface, &lts, symmetry, &[], most);
            let found: BTreeSet<History> = answer.judged_histories.iter().cloned().collect();
            assert_eq!(found, expected, "seed {seed}, symmetry {symmetry}, order {order}");
            assert_eq!(found.len(), answer.judged_histories.len(), "seed {seed}: each class once");
            reduced += usize::from(order > 1);
        }
        histories += expected.len();
    }
    assert!(reduced >= 10 && histories > 500, "{reduced} symmetric systems, {histories} histories");
}

/// A violation is a smallest history that the model forbids, and the machine has a run with it.
#[test]
fn what_is_found_is_smallest_and_has_a_run() {
    let mut sources = SourceMap::new();
    let models: Vec<MemoryModel> = ["sc", "pso", "slow"]
        .into_iter()
        .map(|name| {
            let known = mu_axioms::models::by_name(name).unwrap();
            MemoryModel {
                name: name.into(),
                form: ModelDefinition::Cat {
                    model: known.compile(&mut sources).unwrap(),
                    dialect: known.dialect,
                },
            }
        })
        .collect();
    let mut shown = 0;
    for seed in 0..12 {
        let mut random = Random::new(100 + seed);
        let split = seed % 2 == 1;
        let interface = interface(if split { SPLIT } else { WHOLE });
        let lts = random_lts(&mut random, split);
        let (answer, _, machine) = search_machine(&interface, &lts, true, &models, 2);
        for (against, found) in models.iter().zip(&answer.found) {
            let mut worker = against.worker();
            let mut forbidden =
                answer.judged_histories.iter().filter(|h| !worker.allows(h).unwrap());
            let expected = forbidden.by_ref().min_by_key(|h| (h.len(), (*h).clone()));
            assert_eq!(
                found.as_ref().map(|f| &f.history),
                expected,
                "seed {seed}, {}",
                against.name
            );
            let Some(found) = found else { continue };
            let model = LtsModel::new(Arc::new(lts.clone()));
            let options = Options { threads: 1, ..Options::default() };
            let steps = witness::run(
                &model,
                &interface,
                &machine.alphabet,
                &found.concrete,
                &options,
                &Budget::default(),
            );
            let steps = steps.unwrap().unwrap_or_else(|| panic!("seed {seed}: no run"));
            let (walk, replayed) =
                witness::replay(&model, &interface, &machine.alphabet.names, &steps).unwrap();
            assert_eq!(
                (walk.position(), replayed),
                (steps.len(), found.concrete.clone()),
                "seed {seed}"
            );
            shown += 1;
        }
    }
    assert!(shown >= 12, "{shown} found");
}

/// Generates a random history of two or three threads and two locations. Values may be written
/// several times or never.
fn random_history(random: &mut Random, marks: bool) -> History {
    let mut history = History { threads: vec![Vec::new(); 2 + random.below(2)], last: Vec::new() };
    for t in 0..history.threads.len() {
        for _ in 0..1 + random.below(2) {
            let kind = *random.choose(&[
                EventKind::Read,
                EventKind::Read,
                EventKind::Write,
                EventKind::Write,
                EventKind::Update,
                EventKind::Fence,
            ]);
            let mark = match kind {
                EventKind::Read if marks && random.chance(1, 2) => MemoryOrdering::Acquire,
                EventKind::Write if marks && random.chance(1, 2) => MemoryOrdering::Release,
                _ => MemoryOrdering::Plain,
            };
            let [value, read] = [random.below(3) as u64, random.below(3) as u64];
            history.threads[t].push(match kind {
                EventKind::Fence => Operation::fence(mark),
                EventKind::Update => Operation::update(random.below(2) as u32, read, value),
                _ => Operation { mark, ..Operation::plain(kind, random.below(2) as u32, value) },
            });
        }
    }
    history
}

/// Models that exist in both forms agree, also if values do not determine the write that is read.
#[test]
fn axioms_and_serial_views_judge_alike() {
    let mut counts = [0, 0];
    for name in ["sc", "pc", "pram", "causal", "cache", "slow", "local"] {
        let mut sources = SourceMap::new();
        let known = mu_axioms::models::by_name(name).unwrap();
        let cat = MemoryModel {
            name: name.into(),
            form: ModelDefinition::Cat {
                model: known.compile(&mut sources).unwrap(),
                dialect: known.dialect,
            },
        };
        let path = format!("{}/../../specs/memory/{name}.views", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let views = mu_axioms::views::Views::compile(&mut sources, name, &text).unwrap();
        let views = MemoryModel { name: name.into(), form: ModelDefinition::Views(views) };
        let (mut cat, mut views) = (cat.worker(), views.worker());
        for seed in 0..80 {
            let mut random = Random::new(seed);
            let mut history = random_history(&mut random, false);
            history
                .threads
                .iter_mut()
                .for_each(|t| t.retain(|o| matches!(o.kind, EventKind::Read | EventKind::Write)));
            let allows = cat.allows(&history).unwrap();
            assert_eq!(
                views.allows(&history).unwrap(),
                allows,
                "seed {seed}, {name}: {}",
                history.text()
            );
            if !allows {
                assert!(
                    !views.reason(&history).unwrap().axiom.is_empty()
                        && !cat.reason(&history).unwrap().axiom.is_empty()
                );
            }
            counts[usize::from(allows)] += 1;
        }
    }
    assert!(counts.iter().all(|n| *n > 50), "{counts:?}");
}

#[test]
fn canonical_histories_stand_for_their_class() {
    let interface = interface(
        "initial v0; load ld(p, a, v); store st(p, a, v); fence f(p); update u(p, a, v, w);",
    );
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let processors: Vec<Vec<SequenceEntry>> = (0..3)
            .map(|_| {
                let entry = |random: &mut Random| {
                    let operation = random.below(4) as u32;
                    let some = |n: usize| Some(n as u32).filter(|_| operation != 2);
                    let (a, v, w) = (random.below(3), random.below(3), random.below(3));
                    let written = some(w).filter(|_| operation == 3);
                    SequenceEntry {
                        state: State::Done,
                        operation,
                        class: operation,
                        address: some(a),
                        value: some(v),
                        written,
                        number: None,
                        depends: Dependencies::NONE,
                    }
                };
                (0..random.below(4)).map(|_| entry(&mut random)).collect()
            })
            .collect();
        let named = |l: &[Vec<SequenceEntry>]| {
            history(&interface, &l.iter().map(Vec::as_slice).collect::<Vec<_>>())
        };
        let first = named(&processors).canonical();
        // Rename: rotate processors and addresses, and swap the non-initial values at one address.
        let at = random.below(3) as u32;
        let turned = |e: &SequenceEntry| {
            let swap = |v: Option<u32>| {
                if e.address == Some(at) { v.map(|v| [0, 2, 1][v as usize]) } else { v }
            };
            SequenceEntry {
                address: e.address.map(|a| (a + 1) % 3),
                value: swap(e.value),
                written: swap(e.written),
                ..*e
            }
        };
        let mut others: Vec<Vec<SequenceEntry>> =
            processors.iter().map(|p| p.iter().map(turned).collect()).collect();
        others.rotate_left(random.below(3));
        assert_eq!(first, named(&others).canonical(), "seed {seed}");
        let run = named(&others).program();
        assert_eq!(run, first.program(), "seed {seed}");
        assert_eq!(run.len(), first.len(), "seed {seed}");
        assert!(
            run.threads.iter().flatten().all(|o| o.kind != EventKind::Read || o.value == 0),
            "seed {seed}"
        );
    }
}

#[test]
fn interfaces_are_read_and_errors_have_places() {
    let i = interface(
        "initial 0; numbers from 1; load acquire a(\"r\", p, _, a, v, n); store release s(p, a, v) -> t(p); observe o(p, a, v, n, q);",
    );
    assert_eq!((i.first, i.operations.len(), i.observed.len()), (1, 2, 1));
    assert_eq!(
        (i.operations[0].mark, i.operations[1].mark),
        (MemoryOrdering::Acquire, MemoryOrdering::Release)
    );
    for (text, place, message) in [
        ("load ld(p, a, v);", "", "the initial value of memory is missing"),
        ("initial 0;", "", "the interface has no operations"),
        ("initial 0; initial 1;", "initial", "a second initial value"),
        ("initial 0; lode ld(p, a, v);", "lode", "unknown keyword `lode`"),
        ("initial 0; load ld(p, x, v);", "x", "`x` is not a role of an argument"),
        ("initial 0; load ld(p, p, v);", "p", "`p` occurs twice in one label"),
        ("initial 0; load ld(p, a);", "ld", "this load has no argument `v`"),
        ("initial 0; load ld(a, v);", "ld", "this load has no argument `p`"),
        ("initial 0; store s(p, a, v, w);", "s", "`w` is for updates"),
        ("initial 0; update u(p, a, v);", "u", "this update has no argument `w`"),
        ("initial 0; fence f(p, a);", "f", "a fence has neither"),
        ("initial 0; load b(p, a, n) -> e(p, v);", "b", "a load must have a number in both"),
        ("initial 0; load ld(p, a, v)", "", "expected"),
        ("initial 0; load ld(p, a, q, v);", "ld", "`q` is for observations"),
        ("initial 0; program read go(p, a);", "read", "`read` is not a kind of operation"),
        ("initial 0; program load go(p, q);", "go", "`q` is for observations"),
        ("initial 0; processors;", ";", "expected a value"),
    ] {
        let error = Interface::parse(SourceId::FIRST, text).unwrap_err();
        assert!(error.message.contains(message), "{text}: {}", error.message);
        let span = error.span.unwrap_or_else(|| panic!("{text}: no place"));
        assert_eq!(&text[span.start as usize..span.end as usize], place, "{text}");
    }
    let i = interface(
        "initial 0; load b(p, a, n) -> e(p, a, v, n); load b2(p, a) -> e2(p, v); store s(p, a, v, n); program load go(p, \"ld(a)\") -> took(p, v);\
         processors 1, 2; values \"f(1)\";",
    );
    assert_eq!(
        (i.ends(), i.program.len(), i.program[0].response.is_some()),
        (vec!["e".to_string()], 1, true)
    );
    let constants =
        i.constants.each_ref().map(|all| all.iter().map(|w| w.text.as_str()).collect::<Vec<_>>());
    assert_eq!(constants, [vec!["1", "2"], vec![], vec!["f(1)"]]);
    let i = interface("initial 0; load ld(p, a, v); store st(p, a, v);");
    let actions =
        |list: &[(&str, usize)]| list.iter().map(|(n, c)| (n.to_string(), *c)).collect::<Vec<_>>();
    i.check(&actions(&[("ld", 3), ("st", 3), ("x", 0)])).unwrap();
    for (list, message) in [
        (&[("ld", 3)][..], "the model has no action `st`"),
        (&[("ld", 2), ("st", 3)], "`ld` has 2 arguments"),
    ] {
        assert!(i.check(&actions(list)).unwrap_err().message.contains(message));
    }
}

/// Judges a machine that is given by its transitions, from state 0, with at most three operations.
fn judge_machine(
    interface: &Interface,
    edges: &[(u32, &str, u32)],
) -> Result<SearchResult, Diagnostic> {
    let mut table = Labels::default();
    table.texts.extend(edges.iter().map(|e| e.1.to_string()));
    let last = edges.iter().map(|e| e.0.max(e.2)).max().unwrap_or(0);
    let edges: Vec<_> = edges
        .iter()
        .enumerate()
        .map(|(i, e)| (StateId::of(e.0), LabelId::new(i + 1), StateId::of(e.2)))
        .collect();
    let lts = Lts::from_edges(StateId::of(0), last as usize + 1, &edges, table);
    let model = LtsModel::new(Arc::new(lts));
    let options = Options { threads: 1, ..Options::default() };
    let machine =
        ReducedMachine::explore(&model, interface, &options, &Budget::default(), &Silent)?;
    let group = SymmetryGroup::find(&machine.alphabet, &machine.lts, 1);
    let bound = Bound { collect: usize::MAX, ..Bound::of(3, 1) };
    search(interface, &machine, &group, &[], bound, &Budget::default())
}

/// A gap in the numbers of one run is found although other runs have none; a number that comes
/// later, beyond the bound, leaves none.
#[test]
fn gaps_in_numbers_are_found_in_each_run() {
    let numbered = interface("initial v0; load ld(p, a, v, n); store st(p, a, v, n);");
    let good = [(0, "ld(p0, a0, v0, 0)", 1)];
    for (more, gap) in [
        (&[(0, "st(p0, a0, v1, 5)", 2), (2, "ld(p0, a0, v1, 6)", 3)][..], Some(0)),
        (&[(0, "st(p0, a0, v1, 4000000000)", 2)], Some(0)),
        (&[(1, "st(p0, a0, v1, 4)", 2), (2, "ld(p0, a0, v1, 2)", 3)], Some(1)),
        // Out of order, but complete: beyond the bound on operations.
        (
            &[
                (1, "st(p0, a0, v1, 3)", 2),
                (2, "ld(p0, a0, v1, 2)", 3),
                (3, "ld(p0, a0, v1, 1)", 4),
            ],
            None,
        ),
        // Numbers of another processor do not count.
        (&[(1, "st(p0, a0, v1, 3)", 2), (2, "st(p1, a0, v1, 0)", 3)], Some(1)),
    ] {
        let edges: Vec<_> = good.iter().chain(more).copied().collect();
        assert_eq!(judge_machine(&numbered, &edges).unwrap().gap, gap, "{more:?}");
    }
}

/// Numbers are places among all operations, so either all lines have one or none has.
#[test]
fn partly_numbered_interfaces_are_rejected() {
    for text in [
        "initial v0; load ld(p, a, v); store st(p, a, v, n);",
        "initial v0; store st(p, a, v, n); fence f(p);",
    ] {
        let error = Interface::parse(SourceId::FIRST, text).unwrap_err();
        assert!(error.message.contains("has no number `n`"), "{}", error.message);
    }
}

/// Labels that contradict the interface are errors.
#[test]
fn labels_that_make_no_sense_are_refused() {
    let run = |text: &str, labels: &[&str]| {
        let edges: Vec<_> =
            labels.iter().enumerate().map(|(i, l)| (i as u32, *l, i as u32 + 1)).collect();
        judge_machine(&interface(text), &edges)
    };
    let numbered = "initial v0; load ld(p, a, v, n); store st(p, a, v, n);";
    for (interface, labels, message) in [
        (SPLIT, &["el(p0, v0, 7)"][..], "an operation ends that has not begun"),
        (SPLIT, &["bl(p0, a0, 1)", "el(p0, v0, 2)"], "an operation ends that has not begun"),
        (numbered, &["ld(p0, a0, v0, x)"], "is not the number"),
        (numbered, &["ld(p0, a0, v0, 1)", "st(p0, a0, v0, 1)"], "two operations at position 1"),
        (WHOLE, &["other(p0)"], "no label of the machine is a memory operation"),
        (WHOLE, &["ld(p0, a0, v0)|st(p0, a0, v1)"], "contains two operations of one processor"),
    ] {
        let error = run(interface, labels).unwrap_err();
        assert!(error.message.contains(message), "{labels:?}: {}", error.message);
    }
    // Numbers give the program order; a history waits until the operations before are known.
    let answer =
        run(numbered, &["ld(p0, a0, v1, 1)", "st(p1, a0, v1, 0)", "st(p0, a0, v0, 0)"]).unwrap();
    let texts: Vec<String> = answer.judged_histories.iter().map(History::text).collect();
    assert_eq!(texts, ["W x 0; R x 1 || W x 1"]);
    // If a number never occurs, the operations after it have no position, so the result is not
    // "conforms".
    for (labels, number) in [
        (&["ld(p0, a0, v0, 0)", "st(p0, a0, v1, 2)", "ld(p0, a0, v0, 3)"][..], Some(1)),
        (&["ld(p0, a0, v0, 0)", "st(p0, a0, v1, 9)"], Some(1)),
        (&["st(p0, a0, v1, 1)"], Some(0)),
        (
            &["ld(p0, a0, v0, 0)", "ld(p0, a0, v0, 2)", "st(p0, a0, v1, 1)", "ld(p0, a0, v1, 3)"],
            None,
        ),
    ] {
        assert_eq!(run(numbered, labels).unwrap().gap, number, "{labels:?}");
    }
    // Two operations of different processors in one label.
    let answer = run(WHOLE, &["ld(p0, a0, v0)|st(p1, a0, v1)"]).unwrap();
    assert_eq!(
        answer.judged_histories.iter().map(History::text).collect::<Vec<_>>(),
        ["R x 0 || W x 1"]
    );
}

/// The least cover has the cost of the least of all subsets.
#[test]
fn covers_are_least() {
    let mut random = Random::new(25);
    for round in 0..300 {
        let (elements, sets) = (1 + random.below(6), 1 + random.below(9));
        let candidates: Vec<(Vec<usize>, usize)> = (0..sets)
            .map(|_| {
                ((0..elements).filter(|_| random.below(3) == 0).collect(), 1 + random.below(5))
            })
            .collect();
        let covered = |chosen: &[usize]| {
            chosen.iter().flat_map(|&c| candidates[c].0.clone()).collect::<BTreeSet<usize>>()
        };
        let cost = |chosen: &[usize]| {
            (chosen.len(), chosen.iter().map(|&c| candidates[c].1).sum::<usize>())
        };
        let all = covered(&(0..sets).collect::<Vec<_>>());
        let subsets = (0..1usize << sets)
            .map(|bits| (0..sets).filter(|i| bits >> i & 1 == 1).collect::<Vec<usize>>());
        let least = subsets.filter(|s| covered(s) == all).map(|s| cost(&s)).min().unwrap();
        let cover = Cover::least(elements, &candidates);
        assert!(cover.is_least && covered(&cover.taken) == all, "round {round}: {candidates:?}");
        assert_eq!(cost(&cover.taken), least, "round {round}: {candidates:?}");
    }
}

/// A stored system has labels of unreachable states, which are no operations of the machine.
#[test]
fn labels_of_unreachable_states_are_no_operations() {
    let interface = interface("initial v0; load ld(p, a, v); store commit st(p, a, v);");
    let mut table = Labels::default();
    let texts = ["st(p0, a0, v1)", "st(p0, a0, v2)", "st(p0, a0, v3)", "ld(p1, a1, v4)"];
    table.texts.extend(texts.map(String::from));
    let edge = |label: usize| {
        let state = StateId::new(usize::from(label == texts.len()));
        (state, LabelId::new(label), state)
    };
    let edges: Vec<_> = (1..=texts.len()).map(edge).collect();
    let model = LtsModel::new(Arc::new(Lts::from_edges(StateId::of(0), 2, &edges, table)));
    let (options, budget) = (Options { threads: 1, ..Options::default() }, Budget::default());
    let subject = Subject {
        machine: &model,
        interface: &interface,
        options: &options,
        budget: &budget,
        progress: &Silent,
    };
    let reduced = ReducedMachine::explore(&model, &interface, &options, &budget, &Silent).unwrap();
    for alphabet in [subject.survey().unwrap().alphabet, reduced.alphabet] {
        assert_eq!(alphabet.names.processors, ["p0"]);
        assert_eq!(alphabet.names.values, ["v0", "v1", "v2", "v3"]);
        assert_eq!(alphabet.events.len(), 3);
    }
}
