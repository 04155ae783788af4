//! Termination tests for any number of components: one example and its variants for each rule, and
//! random models. If termination is proved, no tested instance has a cycle.

use super::budget;
use super::thread_modular::{Unbounded, plain, unbounded_model};
use mu_base::Diagnostic;
use mu_base::random::Random;
use mu_compile::{Compiled, Confluence};
use mu_explore::{Cyclic, Silent, is_acyclic};
use mu_formula::typed::{StateKind, TypedFormula, TypedStateFormula};
use mu_regions::{Least, Levels, Study, TerminationResult, least, prove_termination};

/// Returns the steps that may be taken infinitely often, for every `n`, and every `N` if the text
/// contains it.
fn termination_of(text: &str) -> Result<TerminationResult, Diagnostic> {
    let constants: Vec<String> =
        text.contains("map N").then(|| "N".to_string()).into_iter().collect();
    let Unbounded { model, replicas, defined } = unbounded_model(text, &constants)?;
    let process = model.process();
    let any = TypedStateFormula { kind: StateKind::True, span: mu_base::Span::default() };
    let (data, actions) = (process.data.clone(), process.actions.clone());
    let any =
        TypedFormula { data, actions, fix_names: Vec::new(), formula: any, as_written: false };
    let study = Study::new(&model, &defined, &any, Levels::Coarse)?;
    let mut all = TerminationResult::default();
    for case in study.cases() {
        all.with(prove_termination(&study.model(case)?, &replicas, &defined.rigid)?);
    }
    Ok(all)
}

/// Returns whether a model with `n` components has an infinite run; `None` if it is too large.
fn has_cycle(text: &str, n: usize, bound: usize) -> Option<bool> {
    let text = if text.contains("map N") {
        format!("{}\neqn N = {bound};", plain(text, n))
    } else {
        plain(text, n)
    };
    let model = Compiled::new(super::process(&text).unwrap(), &Confluence::None).unwrap();
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    match is_acyclic(&model, &options, &budget(), &Silent, None, None).unwrap() {
        Cyclic::No(_) => Some(false),
        Cyclic::Yes(..) => Some(true),
        Cyclic::Unknown(_) => None,
    }
}

/// Returns whether some small instance has an infinite run.
fn some_cycle(text: &str) -> Option<bool> {
    let bounds = if text.contains("map N") { 0..4 } else { 0..1 };
    let mut all = Some(false);
    for (n, bound) in (1..4).flat_map(|n| bounds.clone().map(move |b| (n, b))) {
        match has_cycle(text, n, bound) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => all = None,
        }
    }
    all
}

/// Each component stores once; all others are notified, one after the other.
const NEWS: &str = "$param n: Pos = 2;
map N: Nat;
sort I = struct nobody $for i in 0 .. n join \"\" { | i${i} };
map all: List(I); without: I # List(I) -> List(I);
var p, c: I; cs: List(I);
eqn all = [$for i in 0 .. n join \", \" { i${i} }];
    without(p, c |> cs) = if(p == c, cs, c |> without(p, cs)); without(p, []) = [];
act put, get, puts, tell, told, hears: I; see: I; look;
proc P(id: I) = put(id) . Q(id) + told(id) . P(id);
     Q(id: I) = told(id) . Q(id);
     M(l: List(I)) = (l == []) -> sum p: I. get(p) . M(without(p, all)) + (l != []) -> tell(head(l)) . M(tail(l));
init allow({puts, hears, see, look}, comm({put | get -> puts, tell | told -> hears}, $for i in 0 .. n join \"\" { P(i${i}) || } M([])));";

fn edit(text: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(text.to_string(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

#[test]
fn each_rule_by_an_example_and_its_neighbours() {
    // Each row: edits of the text; whether all runs terminate; whether that is proved; by a list;
    // by how many counters; the remaining actions.
    let count = ("put(id) . Q(id) +", "(k < N) -> put(id) . P(id, k + 1) +");
    let counting = [
        ("P(id: I)", "P(id: I, k: Nat)"),
        ("told(id) . P(id)", "told(id) . P(id, k)"),
        ("P(i${i})", "P(i${i}, 0)"),
        count,
    ];
    let counting = |more: (&'static str, &'static str)| [counting.as_slice(), &[more]].concat();
    let shared = |grows: &'static str| {
        let tell = ("tell(head(l)) . M(tail(l))", grows);
        vec![
            ("M(l: List(I))", "M(l: List(I), k: Nat)"),
            ("M(without(p, all))", "M(without(p, all), k)"),
            ("M([])", "M([], 0)"),
            tell,
        ]
    };
    let cases: [(&[(&str, &str)], bool, bool, bool, usize, &[&str]); 18] = [
        (&[], true, true, true, 0, &[]),
        // The list is not shortened.
        (&[("M(tail(l))", "M(l)")], false, false, false, 0, &["hears"]),
        (&[("M(tail(l))", "M(if(l == [], tail(l), l))")], false, false, false, 0, &["hears"]),
        // It is shortened by other operations.
        (&[("M(tail(l))", "M([])")], true, true, false, 0, &[]),
        (&[("M(tail(l))", "M(without(nobody, tail(l)))")], true, true, true, 0, &[]),
        (&[("M(tail(l))", "M(if(tail(l) == [], [], tail(tail(l))))")], true, true, true, 0, &[]),
        // It is extended again.
        (&[("M(without(p, all))", "M(all)")], true, true, true, 0, &[]),
        (
            &[("M(tail(l))", "M(tail(l)) + look . M(all)")],
            false,
            false,
            false,
            0,
            &["hears", "look"],
        ),
        // A letter is removed from the list if it occurs, which may not be the case.
        (
            &[("tell(head(l)) . M(tail(l))", "sum p: I. tell(p) . M(without(p, l))")],
            false,
            false,
            true,
            0,
            &["hears"],
        ),
        // Components restart.
        (&[("put(id) . Q(id)", "put(id) . P(id)")], false, false, false, 0, &["hears", "puts"]),
        (
            &[("Q(id: I) = told(id) . Q(id)", "Q(id: I) = told(id) . P(id)")],
            false,
            false,
            false,
            0,
            &["hears", "puts"],
        ),
        // Each component stores `N` times.
        (&counting(("hears, see", "hears, see")), true, true, true, 1, &[]),
        (
            &counting(("told(id) . P(id, k)", "told(id) . P(id, 0)")),
            false,
            false,
            false,
            0,
            &["hears", "puts"],
        ),
        (
            &counting(("(k < N) -> put", "(k < N || N <= k) -> put")),
            false,
            false,
            false,
            0,
            &["hears", "puts"],
        ),
        // A counter of the shared process.
        (&shared("(k < N) -> tell(head(l)) . M(l, k + 1)"), true, true, false, 1, &[]),
        (
            &shared("(k < N) -> tell(head(l)) . M(l, k + 1) + look . M(l, 0)"),
            false,
            false,
            false,
            0,
            &["hears", "look"],
        ),
        (
            &shared(
                "(k < N) -> tell(head(l)) . M(l, k + 1) + (l != [] && k < N) -> look . M(tail(l), 0)",
            ),
            true,
            true,
            true,
            1,
            &[],
        ),
        // The list does not record who was notified.
        (
            &[("M(tail(l))", "R(head(l), l); R(h: I, l: List(I)) = look . M(without(h, l))")],
            true,
            false,
            true,
            0,
            &["hears", "look"],
        ),
    ];
    for (edits, ends, shown, list, counters, left) in cases {
        let text = edit(NEWS, edits);
        let found = termination_of(&text).unwrap();
        // A counter without a bound has no cycle, but infinitely many states.
        let cycle = some_cycle(&text);
        assert!(
            if ends { cycle == Some(false) } else { cycle != Some(false) },
            "{edits:?} {cycle:?}"
        );
        assert_eq!(found.ends(), shown, "{edits:?} {found:?}");
        assert_eq!(!found.lists.is_empty(), list, "{edits:?} {found:?}");
        assert_eq!(found.counters.len(), counters, "{edits:?} {found:?}");
        assert!(left.is_empty() || found.left.iter().eq(left), "{edits:?} {found:?}");
    }
}

#[test]
fn least_fixed_points_are_guarded_or_not() {
    let model =
        Compiled::new(super::process("act a, b; init a . b . delta;").unwrap(), &Confluence::None)
            .unwrap();
    for (text, expected) in [
        ("[true*] nu X. ([a] X && [b] false)", Least::None),
        ("!(nu X. (<a> X || X))", Least::Unguarded),
        ("!(mu X. (X || <a> X))", Least::None),
        ("mu X. [a] X", Least::Guarded),
        ("mu X. [a . b] (X && [true*] val(true))", Least::Guarded),
        ("mu X. ([a] X && X)", Least::Unguarded),
        ("mu X. [a*] X", Least::Unguarded),
        ("mu X. [a* . b] X", Least::Guarded),
        ("mu X. [a+] X", Least::Guarded),
        ("mu X. [a + b*] X", Least::Unguarded),
        ("mu X. nu Y. ([a] Y && X)", Least::Unguarded),
        ("mu X. nu Y. ([a] X && Y)", Least::Guarded),
        ("nu X. [a] mu Y. ([b] Y && X)", Least::Guarded),
        ("mu X(n: Nat = 0). [a] X(n + 1) && val(n < 3)", Least::Guarded),
        ("<a*> <b> true", Least::Unguarded),
        ("!([a*] [b] false)", Least::Unguarded),
    ] {
        assert_eq!(least(&super::formula(text, &model).unwrap().formula), expected, "{text}");
    }
}

/// Generates a random model in which most steps make progress: components with a control location,
/// a value, a counter and an identity; a shared process with a value, a counter, an identity and a
/// list, which participates in some of their steps.
fn random_text(r: &mut Random) -> String {
    let mut text = String::new();
    let places = 1 + r.below(3);
    for at in 0..places {
        let mut steps = Vec::new();
        if r.chance(2, 3) {
            steps.push(format!(
                "sum q: I. learn(id, q) . P{at}(id, x, c, {})",
                r.choose(&["k", "q"])
            ));
        }
        if at + 1 < places && r.chance(1, 2) {
            steps.push(format!("put(id, x) . P{}(id, x, c, k)", at + 1));
        }
        for _ in 0..1 + r.below(3) {
            let guard = *r.choose(&["true", "true", "x == a", "x == b", "k == id", "k != nobody"]);
            let passive = r.chance(1, 2);
            let stays = if passive { r.chance(4, 5) } else { at + 1 == places || r.chance(1, 3) };
            let to = if stays { at } else { (at + 1 + r.below(2)).min(places - 1) };
            let to = if r.chance(1, 12) { r.below(places) } else { to };
            let counts = r.chance(1, if passive { 6 } else { 2 })
                || (!passive && to <= at && r.chance(2, 3));
            let guard = format!(
                "{guard}{}",
                if counts { *r.choose(&[" && c < N", " && c <= N", " && c + 1 < N"]) } else { "" }
            );
            let c = if counts { "c + 1" } else { *r.choose(&["c", "c", "c", "c", "c", "0"]) };
            let x = if passive && r.chance(3, 4) { "x" } else { *r.choose(&["x", "a", "b"]) };
            let next = |x: &str, k: &str| format!("P{to}(id, {x}, {c}, {k})");
            let k = *r.choose(&["k", "k", "id", "nobody"]);
            let (y, q) = (*r.choose(&["y", "x"]), *r.choose(&["q", "k"]));
            steps.push(match (passive, r.below(3)) {
                (true, 0) => format!("sum y: D. ({guard}) -> get(id, y) . {}", next(y, k)),
                (true, 1) => format!("sum q: I. ({guard}) -> learn(id, q) . {}", next(x, q)),
                (true, _) => {
                    format!("sum q: I. ({guard} && q != id) -> met(q, id) . {}", next(x, q))
                }
                (false, 0) => format!("({guard}) -> own(id, x) . {}", next(x, k)),
                (false, 1) => format!("({guard}) -> put(id, x) . {}", next(x, k)),
                (false, _) => {
                    format!("sum q: I. ({guard} && q != id) -> meet(id, q) . {}", next(x, q))
                }
            });
        }
        text += &format!("proc P{at}(id: I, x: D, c: Nat, k: I) = {};\n", steps.join("\n  + "));
    }
    let places = 1 + r.below(2);
    for at in 0..places {
        let mut steps = Vec::new();
        if r.chance(2, 3) {
            steps.push(format!(
                "sum p: I, y: D. (l == []) -> putting(p, y) . M{at}(m, p, {}, e)",
                r.choose(&["all", "without(p, all)"])
            ));
        }
        for _ in 0..1 + r.below(4) {
            let guard =
                *r.choose(&["true", "true", "m == a", "h == nobody", "h != nobody", "l == []"]);
            let takes = r.chance(1, 3);
            // A step of the shared process alone should make progress, by its list, its counter or
            // its location, with few exceptions.
            let by = if takes { 3 + r.below(4) } else { r.below(4) };
            let (guard, list, e, to) = match by {
                0 => (
                    format!("{guard} && l != []"),
                    *r.choose(&["tail(l)", "tail(l)", "without(h, tail(l))", "[]"]),
                    "e",
                    at,
                ),
                1 => (format!("{guard} && e < N"), "l", "e + 1", at),
                2 => (guard.to_string(), "l", "e", (at + 1).min(places - 1)),
                _ => (
                    guard.to_string(),
                    *r.choose(&["l", "all", "without(p, all)", "keep(h, l)", "without(p, l)"]),
                    *r.choose(&["e", "0"]),
                    r.below(places),
                ),
            };
            let (h, m) = (*r.choose(&["h", "h", "p", "nobody"]), *r.choose(&["m", "m", "a", "b"]));
            let next = |m: &str, h: &str, list: &str| format!("M{to}({m}, {h}, {list}, {e})");
            let y = *r.choose(&["y", "m"]);
            steps.push(match (takes, r.below(3)) {
                (true, _) => {
                    format!("sum p: I, y: D. ({guard}) -> putting(p, y) . {}", next(y, h, list))
                }
                (false, 0) if by == 0 => {
                    let h = *r.choose(&["h", "head(l)"]);
                    format!(
                        "({guard}) -> teach(head(l), h) . {}",
                        next(m, h, if list == "[]" { list } else { "tail(l)" })
                    )
                }
                (false, 1) => format!("sum p: I. ({guard}) -> teach(p, h) . {}", next(m, h, list)),
                (false, _) => {
                    format!("sum p: I. ({guard}) -> getting(p, m) . {}", next(m, h, list))
                }
            });
        }
        text +=
            &format!("proc M{at}(m: D, h: I, l: List(I), e: Nat) = {};\n", steps.join("\n  + "));
    }
    format!(
        "$param n: Pos = 2;\nmap N: Nat;\nsort I = struct nobody $for i in 0 .. n join \"\" {{ | i${{i}} }}; D = struct a | b;\n\
         map all: List(I); without, keep: I # List(I) -> List(I);\nvar p, c: I; cs: List(I);\n\
         eqn all = [$for i in 0 .. n join \", \" {{ i${{i}} }}];\n\
         without(p, c |> cs) = if(p == c, cs, c |> without(p, cs)); without(p, []) = [];\n\
         keep(p, c |> cs) = if(p == c, c |> keep(p, cs), keep(p, cs)); keep(p, []) = [];\n\
         act own, put, putting, puts, get, getting, gets: I # D; learn, teach, learns, meet, met, meets: I # I;\n{text}\
         init allow({{own, puts, gets, learns, meets}}, comm({{put | putting -> puts, get | getting -> gets, learn | teach -> learns, meet | met -> meets}},\n\
         $for i in 0 .. n join \"\" {{ P0(i${{i}}, a, 0, nobody) || }} M0(a, nobody, [], 0)));"
    )
}

/// Compares the proofs for random models with small instances. Returns the numbers of models that
/// terminate and are proved, that terminate as far as tested and are not proved, that do not
/// terminate, that are rejected; and among the first those with list and with counter arguments.
fn compare_with_instances(
    seeds: std::ops::Range<u64>,
    text: &dyn Fn(&mut Random) -> String,
) -> [usize; 6] {
    let mut counts = [0; 6];
    for seed in seeds {
        let text = text(&mut Random::new(seed));
        let found = match termination_of(&text) {
            Ok(found) => found,
            Err(why) => {
                assert!(
                    why.stage != mu_base::Stage::Internal,
                    "seed {seed}: {} {:?}\n{text}",
                    why.message,
                    why.notes
                );
                counts[3] += 1;
                continue;
            }
        };
        let cycle = some_cycle(&text);
        assert!(
            !(found.ends() && cycle == Some(true)),
            "seed {seed}: shown to end, but there is a cycle\n{text}\n{found:?}"
        );
        if found.ends() {
            counts[4] += usize::from(!found.lists.is_empty());
            counts[5] += usize::from(!found.counters.is_empty());
        }
        counts[if found.ends() { 0 } else { 1 + usize::from(cycle != Some(false)) }] += 1;
        if std::env::var("ENDS_WHY").is_ok() && !found.ends() && cycle == Some(false) {
            println!("seed {seed} {:?}\n{text}", found.left);
        }
    }
    counts
}

/// `ENDS_CASES=4000 ENDS_SEED=0` sets the number of cases and the first seed.
#[test]
fn what_is_shown_to_end_has_no_cycle() {
    let number =
        |name: &str, or: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
    let (first, cases) = (number("ENDS_SEED", 0), number("ENDS_CASES", 60));
    let [both, alone, prove_termination, refused, lists, counters] =
        compare_with_instances(first..first + cases, &random_text);
    println!(
        "seeds {first}..{}: {both} shown to end, {alone} end and are not shown to, {prove_termination} do not, {refused} refused",
        first + cases
    );
    println!("of those that are shown to end {lists} by lists, {counters} by counters");
    assert!(
        both > alone && prove_termination > 0 && lists > 0 && counters > 0,
        "{both} {alone} {prove_termination} {lists} {counters}"
    );
    for text in [
        super::thread_modular::random_text as fn(&mut Random) -> String,
        super::richer::random_text,
    ] {
        let counts = compare_with_instances(first..first + cases / 6, &text);
        println!("the same of other models: {counts:?}");
    }
}
