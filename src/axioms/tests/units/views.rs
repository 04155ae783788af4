//! Tests of serial views: against the same models in `cat`, against all permutations, and the
//! theorems of the study.

use mu_base::SourceMap;
use mu_base::random::Random;

use super::observation::{Observations, candidate, co_consistent, explains, global, is_asymmetric};
use mu_axioms::execution::{Event, EventKind, RelationId, SetId, Skeleton};
use mu_axioms::history::{History, HistoryChecker, Operation};
use mu_axioms::models::{Dialect, MemoryOrdering, by_name};
use mu_axioms::relation::{Relation, Set};
use mu_axioms::views::{ViewVerdict, Views, search};

const MODELS: &[(&str, &str)] = &[
    ("sc", include_str!("../../memory/sc.views")),
    ("pram", include_str!("../../memory/pram.views")),
    ("local", include_str!("../../memory/local.views")),
    ("causal", include_str!("../../memory/causal.views")),
    ("cache", include_str!("../../memory/cache.views")),
    ("slow", include_str!("../../memory/slow.views")),
    ("pc", include_str!("../../memory/pc.views")),
    ("location-order", include_str!("../../memory/location-order.views")),
];
const PAIRS: &str = include_str!("../../memory/pairs.views");

fn views(name: &str, text: &str) -> Views {
    let mut sources = SourceMap::new();
    Views::compile(&mut sources, name, text).unwrap_or_else(|e| panic!("{}", e.render(&sources)))
}
fn skeleton(h: &History) -> Skeleton {
    h.skeleton(Dialect::Plain, &Views::vocabulary(), None)
}
fn exist(v: &Views, h: &History) -> bool {
    let s = skeleton(h);
    let rf = h.sources(&s);
    match v.judge(&s, &rf).unwrap() {
        ViewVerdict::Views(list) => {
            list.iter()
                .for_each(|view| assert!(is_serial(&s, &view.order, &rf), "{} {view:?}", h.text()));
            true
        }
        ViewVerdict::None { .. } => false,
    }
}
/// Checks definition 15 for a list of operations.
fn is_serial(s: &Skeleton, order: &[usize], rf: &Relation) -> bool {
    let e = s.events();
    order.iter().enumerate().all(|(i, &r)| {
        let last = order[..i]
            .iter()
            .rev()
            .find(|&&w| e[w].kind.writes() && e[w].location == e[r].location);
        !e[r].kind.reads() || last.is_some_and(|&w| rf.contains(w, r))
    })
}

/// Generates a random history in which reads take any value that is written.
fn history(random: &mut Random, most: usize, threads: usize, locations: usize) -> History {
    let mut h = History { threads: vec![Vec::new(); threads], last: Vec::new() };
    let mut written = vec![0u64; locations];
    for _ in 0..2 + random.below(most - 1) {
        let (t, l) = (random.below(threads), random.below(locations));
        let write = random.chance(1, 2);
        let mark = match (random.chance(1, 3), write) {
            (false, _) => MemoryOrdering::Plain,
            (true, true) => MemoryOrdering::Release,
            (true, false) => MemoryOrdering::Acquire,
        };
        written[l] += u64::from(write);
        let kind = if write { EventKind::Write } else { EventKind::Read };
        let value = if write { written[l] } else { 0 };
        h.threads[t].push(Operation { mark, ..Operation::plain(kind, l as u32, value) });
    }
    for o in h.threads.iter_mut().flatten().filter(|o| o.kind == EventKind::Read) {
        o.value = random.below(written[o.location as usize] as usize + 1) as u64;
    }
    h.threads.retain(|t| !t.is_empty());
    h
}

/// Compares two routes: the search for views, and the `cat` models, which search for cycles.
#[test]
fn views_and_cat_models_agree() {
    let mut verdict_counts = vec![[0; 2]; MODELS.len()];
    for (i, (name, text)) in MODELS.iter().enumerate() {
        let views = views(name, text);
        let model = by_name(name).unwrap().compile(&mut SourceMap::new()).unwrap();
        let mut judge = HistoryChecker::new(&model, Dialect::Plain);
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let (threads, locations) = (1 + random.below(4), 1 + random.below(3));
            let h = history(&mut random, 7, threads, locations);
            let (a, b) = (exist(&views, &h), judge.allows(&h).unwrap());
            assert_eq!(a, b, "{name}, seed {seed}: {} (views, cat)", h.text());
            verdict_counts[i][usize::from(a)] += 1;
        }
    }
    assert!(verdict_counts.iter().all(|t| t[0] > 10 && t[1] > 10), "{verdict_counts:?}");
}

/// Compares the search with all permutations, where a read may have several sources.
#[test]
fn the_search_finds_what_permutations_find() {
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let h = history(&mut random, 5, 2, 2);
        let s = skeleton(&h);
        let mut rf = h.sources(&s);
        for r in s.set(SetId::READS).iter() {
            s.sources(r).filter(|_| random.chance(1, 4)).for_each(|w| rf.insert(w, r));
        }
        let n = s.len();
        let order = Relation::from_pairs(
            n,
            (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).filter(|_| random.chance(1, 5)),
        );
        let members = Set::from_events(n, (0..n).filter(|_| random.chance(5, 6)));
        let found = search::serial_view(&s, &members, &order, &rf);
        let is_view = |list: &[usize]| is_serial(&s, list, &rf);
        let exists = order.linear_extensions(&members, &mut |list| is_view(list));
        assert_eq!(found.is_some(), exists, "seed {seed}: {}", h.text());
        if let Some(list) = found {
            assert!(
                is_view(&list) && Set::from_events(n, list.iter().copied()) == members,
                "seed {seed}"
            );
            let at = |e: usize| list.iter().position(|&x| x == e);
            assert!(
                order.pairs().all(|(a, b)| at(a).is_none() || at(b).is_none() || at(a) < at(b)),
                "seed {seed}"
            );
        }
    }
}

/// Section 3.4.3: every pair of processors agrees, but there is no view of all.
#[test]
fn pairs_that_agree_do_not_make_a_view() {
    let text = "W x 1 || W x 2 || W x 3 || R x 1; R x 2 || R x 2; R x 3 || R x 3; R x 1";
    let h = History::parse(text).unwrap();
    assert!(exist(&views("pairs", PAIRS), &h));
    assert!(!exist(&views("sc", MODELS[0].1), &h));
    assert!(!exist(&views("cache", MODELS[4].1), &h));
    // The same by observation sets: those of any two readers of the study are co-consistent.
    let s = skeleton(&h);
    let po = s.relation(RelationId::PO).clone();
    let readers = [3, 4, 5];
    let e = s.events();
    // Definition 24 allows only one set without operations, so each pair is checked with the writes
    // that it observes.
    for (i, &p) in readers.iter().enumerate() {
        for &q in &readers[i + 1..] {
            let seen: Vec<u64> = (0..s.len())
                .filter(|&o| e[o].thread == Some(p) || e[o].thread == Some(q))
                .map(|o| e[o].value)
                .collect();
            let keep: Vec<Event> = e
                .iter()
                .filter(|x| {
                    x.thread == Some(p)
                        || x.thread == Some(q)
                        || x.kind.writes() && x.thread.is_some() && seen.contains(&x.value)
                })
                .cloned()
                .collect();
            let part = Skeleton::new(&Views::vocabulary(), keep);
            let order = part.relation(RelationId::PO).clone();
            let found = global(&part, p).iter().any(|a| {
                global(&part, q).iter().any(|b| co_consistent(&part, (p, a), (q, b), &order))
            });
            assert!(found, "P{p} and P{q} are not co-consistent");
        }
    }
    assert_eq!(po.len(), 3);
}

/// Returns relation 7→ of definition 12, with every write that has the value.
fn all_writers(s: &Skeleton) -> Relation {
    let e = s.events();
    let reads: Vec<usize> = s.set(SetId::READS).iter().collect();
    Relation::from_pairs(
        s.len(),
        reads.into_iter().flat_map(|r| {
            s.sources(r)
                .filter(move |&w| e[w].value == e[r].value)
                .map(move |w| (w, r))
                .collect::<Vec<_>>()
        }),
    )
}
/// Generates a random execution in which several writes may have the same value.
fn execution(random: &mut Random, most: usize, threads: u32, locations: u32) -> Skeleton {
    let mut events: Vec<Event> = (0..locations).map(|l| Event::initial(l, 0)).collect();
    let mut index = vec![0; threads as usize];
    for _ in 0..2 + random.below(most - 1) {
        let t = random.below(threads as usize) as u32;
        let kind = *random.choose(&[EventKind::Read, EventKind::Write]);
        let value = if kind == EventKind::Write {
            1 + random.below(2) as u64
        } else {
            random.below(3) as u64
        };
        events.push(Event::access(
            t,
            index[t as usize],
            kind,
            random.below(locations as usize) as u32,
            value,
        ));
        index[t as usize] += 1;
    }
    Skeleton::new(&Views::vocabulary(), events)
}

/// Theorem 1: an ordered global observation sequence, self-observing, gives a local view, if `rf`
/// contains every write of the value, and initial writes are observed first.
#[test]
fn theorem_1() {
    let local = views("local", MODELS[2].1);
    let mut satisfied = 0;
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let (threads, locations) = (1 + random.below(2) as u32, 1 + random.below(2) as u32);
        let s = execution(&mut random, 6, threads, locations);
        let rf = all_writers(&s);
        let processors: Vec<u32> =
            (0..threads).filter(|&p| s.events().iter().any(|e| e.thread == Some(p))).collect();
        if processors.iter().all(|&p| global(&s, p).iter().any(|o| o.starts_initially(&s))) {
            satisfied += 1;
            let seen = local.judge(&s, &rf).unwrap();
            assert!(matches!(seen, ViewVerdict::Views(_)), "seed {seed}: {:?}", s.events());
        }
    }
    assert!(satisfied > 40, "only {satisfied} executions had observation sequences");
}

/// Theorem 1 requires that `rf` contains every write of the value: with fewer writes its premises
/// hold and there is no view.
#[test]
fn theorem_1_needs_every_writer() {
    let a = |t, i, kind, value| Event::access(t, i, kind, 0, value);
    use EventKind::{Read, Write};
    let events = vec![
        Event::initial(0, 0),
        a(0, 0, Read, 0),
        a(0, 1, Read, 1),
        a(0, 2, Write, 1),
        a(0, 3, Read, 1),
        a(1, 0, Write, 1),
    ];
    let s = Skeleton::new(&Views::vocabulary(), events);
    assert!(!global(&s, 0).is_empty());
    let local = views("local", MODELS[2].1);
    assert!(matches!(local.judge(&s, &all_writers(&s)).unwrap(), ViewVerdict::Views(_)));
    let fewer = Relation::from_pairs(6, [(0, 1), (5, 2), (5, 4)]);
    assert!(matches!(local.judge(&s, &fewer).unwrap(), ViewVerdict::None { .. }));
}

/// Theorem 1 does not require that initial writes are observed first: if an operation observes one
/// again, the premises hold, but there is no view.
#[test]
fn theorem_1_needs_initial_writes_first() {
    let h = History::parse("W x 1; R x 0").unwrap();
    let s = skeleton(&h);
    assert!(!global(&s, 0).is_empty() && global(&s, 0).iter().all(|o| !o.starts_initially(&s)));
    assert!(!exist(&views("local", MODELS[2].1), &h));
}

/// Returns the orders for which the study states theorem 2: program order, the relation of writes
/// to their reads, and the transitive closure of both.
fn orders_of_theorem_2(s: &Skeleton) -> [(&'static str, Relation); 3] {
    let po = s.relation(RelationId::PO).clone();
    let rf = all_writers(s);
    let mut both = po.clone();
    both.unite(&rf);
    both.close_transitively();
    [("po", po), ("rf", rf), ("(po | rf)+", both)]
}

/// Enumerates observations of both processors that satisfy the premises of theorem 2 for an order
/// on all operations.
fn premises_of_theorem_2(s: &Skeleton, order: &Relation) -> Vec<[(u32, Observations); 2]> {
    let (first, second) = (global(s, 0), global(s, 1));
    let mut out = Vec::new();
    for a in first.iter().filter(|o| o.starts_initially(s)) {
        for b in second.iter().filter(|o| o.starts_initially(s)) {
            let agree =
                co_consistent(s, (0, a), (1, b), order) && co_consistent(s, (1, b), (0, a), order);
            let pair = [(0, a.clone()), (1, b.clone())];
            if agree && explains(s, &pair, order) {
                out.push(pair);
            }
        }
    }
    out
}

/// The numbers of candidates with a property.
#[derive(Debug, Default)]
struct Candidates {
    /// All that satisfy the premises.
    all: usize,
    asymmetric: usize,
    /// Asymmetric ones with a cycle, which have no linear extension.
    cyclic: usize,
    /// Acyclic ones with a linear extension that is no serial view.
    unserial: usize,
    /// Acyclic ones without any serial view that respects the order.
    viewless: usize,
}

/// Theorem 2 for two processors, on all operations, for each order and each candidate of definition
/// 27 that satisfies the premises.
fn candidates(seeds: std::ops::Range<u64>) -> [Candidates; 3] {
    let mut counts = [(); 3].map(|()| Candidates::default());
    for seed in seeds {
        let mut random = Random::new(seed);
        let locations = 1 + random.below(2) as u32;
        let s = execution(&mut random, 5, 2, locations);
        let (rf, members) = (all_writers(&s), Set::full(s.len()));
        for ((_, order), counts) in orders_of_theorem_2(&s).iter().zip(&mut counts) {
            if !order.is_acyclic() {
                continue;
            }
            for pair in premises_of_theorem_2(&s, order) {
                let c = candidate(&s, &pair, order);
                counts.all += 1;
                if !is_asymmetric(&c) {
                    continue;
                }
                counts.asymmetric += 1;
                if !c.is_acyclic() {
                    counts.cyclic += 1;
                    continue;
                }
                let not_serial = &mut |list: &[usize]| !is_serial(&s, list, &rf);
                counts.unserial += usize::from(c.linear_extensions(&members, not_serial));
                let none = search::serial_view(&s, &members, order, &rf).is_none();
                counts.viewless += usize::from(none);
            }
        }
    }
    counts
}

/// Theorem 2 holds for each candidate that is acyclic: then some serial view respects the order.
/// Asymmetry, which the study requires, does not suffice, because a candidate may have a longer
/// cycle; and not each linear extension is a serial view, as the study states.
#[test]
fn theorem_2() {
    let counts = candidates(0..2500);
    for c in &counts {
        assert!(c.asymmetric > 100 && c.asymmetric < c.all, "{counts:?}");
        assert!(c.viewless == 0 && c.unserial > 0, "{counts:?}");
    }
    assert!(counts[0].cyclic > 0, "{counts:?}");
}

/// No operation reads the write of the first processor, so the candidate does not order it, and a
/// linear extension may put it between a write and its read.
#[test]
fn theorem_2_does_not_order_unread_writes() {
    let s = skeleton(&History::parse("R x 0; W x 1 || R x 0; W x 2; R x 2").unwrap());
    let rf = all_writers(&s);
    let pairs = premises_of_theorem_2(&s, &rf);
    assert!(!pairs.is_empty());
    let members = Set::full(s.len());
    for pair in &pairs {
        let c = candidate(&s, pair, &rf);
        assert!(is_asymmetric(&c) && c.is_acyclic());
        assert!(c.linear_extensions(&members, &mut |list| !is_serial(&s, list, &rf)));
        assert!(c.linear_extensions(&members, &mut |list| is_serial(&s, list, &rf)));
    }
}

/// Lemma 5 with load buffering, which satisfies the premises of theorem 2 and has no view of all
/// operations. The candidate is not asymmetric: each write is observed by the processor of the
/// other one when that writes, so each is before the other.
#[test]
fn lemma_5_and_load_buffering() {
    let h = History::parse("R y 1; W x 1 || R x 1; W y 1").unwrap();
    let s = skeleton(&h);
    let po = s.relation(RelationId::PO);
    let pairs = premises_of_theorem_2(&s, po);
    assert!(!pairs.is_empty());
    assert!(pairs.iter().all(|pair| !is_asymmetric(&candidate(&s, pair, po))));
    assert!(!exist(&views("sc", MODELS[0].1), &h));
}

/// Theorem 4: if each location has a location order, the C++ model for release and acquire allows
/// the execution.
#[test]
fn theorem_4() {
    let orders = views("location-order", MODELS[7].1);
    let model = by_name("cpp-ra").unwrap().compile(&mut SourceMap::new()).unwrap();
    let mut judge = HistoryChecker::new(&model, Dialect::Plain);
    let (mut satisfied, mut stricter) = (0, 0);
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let (threads, locations) = (1 + random.below(4), 1 + random.below(2));
        let h = history(&mut random, 7, threads, locations);
        let cpp = judge.allows(&h).unwrap();
        if exist(&orders, &h) {
            satisfied += 1;
            assert!(cpp, "seed {seed}: {}", h.text());
        } else {
            stricter += usize::from(cpp);
        }
    }
    assert!(satisfied > 200, "{satisfied} had location orders; {stricter} without were allowed");
}

/// Initial writes come first in every view, whatever its order says: with `po` alone, a read takes
/// no initial value after a write of its own processor.
#[test]
fn initial_writes_come_first() {
    let [full, plain, none] = ["program-order", "po", "po & (R * R)"]
        .map(|order| views("m", &format!("view of M respecting {order}\n")));
    let mut counts = [0, 0];
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let (threads, locations) = (1 + random.below(3), 1 + random.below(2));
        let h = history(&mut random, 6, threads, locations);
        let expected = exist(&full, &h);
        assert_eq!(exist(&plain, &h), expected, "seed {seed}: {}", h.text());
        assert!(!expected || exist(&none, &h), "seed {seed}: {}", h.text());
        counts[usize::from(expected)] += 1;
    }
    assert!(counts.iter().all(|c| *c > 50), "{counts:?}");
    let stale = History::parse("W x 1; R x 0").unwrap();
    assert!(!exist(&plain, &stale) && !exist(&full, &stale));
}

#[test]
fn errors_have_places() {
    let cases = [
        ("view of W respecting R", "m.views:1:22: error: `R` after `respecting` is not a relation"),
        ("view of po respecting po", "m.views:1:9: error: `po` after `of` is not a set"),
        ("view of M respecting nothing", "m.views:1:22: error: `nothing` has an unknown name"),
        (
            "let a = po\nview for processor z of W respecting po",
            "m.views:2:1: error: unexpected `processor`",
        ),
        ("view for processor p of p || W respecting po", "m.views:1:27: error: unexpected `||`"),
        ("view W respecting po", "m.views:1:1: error: expected `of` and a set"),
        ("let a = po", "m.views:1:1: error: a model of serial views has at least one `view`"),
    ];
    for (text, wanted) in cases {
        let mut sources = SourceMap::new();
        let e = Views::compile(&mut sources, "m.views", text).expect_err(text).render(&sources);
        assert!(e.starts_with(wanted), "`{text}` gives {e}");
    }
}
