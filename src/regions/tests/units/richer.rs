//! Tests of components of any number with richer models than [`super::thread_modular`]: two
//! components for each identity, identities in messages, bags and lists of messages, several
//! actions in one step, steps of three components, renamed and hidden actions; formulas with fixed
//! points over identities, and quantifiers in many places. A proved formula must hold for each
//! tested number.

use super::thread_modular::{concrete, is_proved};
use mu_base::random::Random;
use mu_pbes::Verdict;

const HEAD: &str = "$param n: Pos = 2;
sort I = struct nobody $for i in 0 .. n join \"\" { | i${i} }; D = struct a | b; S = struct none | msg(who: I, what: D);
map all: List(I); without, keep, skip, behind: I # List(I) -> List(I);
var p, c: I; cs: List(I);
eqn all = [$for i in 0 .. n join \", \" { i${i} }];
  without(p, c |> cs) = if(p == c, cs, c |> without(p, cs)); without(p, []) = [];
  keep(p, c |> cs) = if(p == c, c |> keep(p, cs), keep(p, cs)); keep(p, []) = [];
  skip(p, c |> cs) = if(p == c, skip(p, cs), c |> skip(p, cs)); skip(p, []) = [];
  behind(p, c |> cs) = if(p == c, c |> cs, behind(p, cs)); behind(p, []) = [];
act own, puts, put, putting, gets, get, getting: I # D; flag: I; learns, learn, teach, meets, meet, met, pushes, push, pop, sees: I # I;
  sends, send, sent: I # S; all3, one, two, three: I # I # I; hush: I; lists: I # FBag(I); queues: List(S);
";

/// Generates the behaviour of a component of the identity `id`, with its number of parameters: `x:
/// D`, `k: I`, `s: S`.
fn component(r: &mut Random) -> String {
    let mut steps = Vec::new();
    for _ in 0..3 + r.below(5) {
        let guard = *r.choose(&[
            "true",
            "true",
            "true",
            "x == a",
            "x == b",
            "k == id",
            "k != id",
            "k == nobody",
            "k != nobody && x == a",
            "s == none",
            "s != none && who(s) != id",
            "s != none && who(s) == k",
        ]);
        let x = *r.choose(&["x", "x", "a", "b"]);
        let k = *r.choose(&["k", "k", "id", "nobody", "if(s == none, k, who(s))"]);
        let s = *r.choose(&["s", "s", "none", "msg(k, x)", "msg(id, a)"]);
        let q = *r.choose(&["q", "q", "k"]);
        let more = *r.choose(&[
            "true",
            "true",
            "q != id",
            "q != k",
            "q == k",
            "q != nobody",
            "q != id && q != k",
        ]);
        let next = |k: &str, s: &str| format!("P(id, {x}, {k}, {s})");
        steps.push(match r.below(12) {
            0 => format!("({guard}) -> own(id, x) . {}", next(k, s)),
            1 => format!("({guard}) -> own(id, x)|flag(id) . {}", next(k, s)),
            2 => format!("({guard}) -> put(id, x) . {}", next(k, s)),
            3 => format!(
                "sum y: D. ({guard}) -> get(id, y) . P(id, {}, {k}, {s})",
                r.choose(&["y", "x"])
            ),
            4 => format!("sum q: I. ({guard} && {more}) -> learn(id, q) . {}", next(q, s)),
            5 => format!("sum q: I. ({guard} && {more}) -> meet(id, q) . {}", next(q, s)),
            6 => format!("sum q: I. ({guard} && {more}) -> met(q, id) . {}", next(q, s)),
            7 => format!(
                "sum q: I, y: D. ({guard} && {more}) -> send(id, msg(q, y)) . {}",
                next(k, "msg(q, y)")
            ),
            8 => format!("({guard} && s != none) -> send(who(s), s) . {}", next(k, s)),
            9 => format!(
                "sum q, z: I. ({guard} && {more}) -> {} . {}",
                r.choose(&["one(id, q, z)", "two(q, id, z)", "three(q, z, id)"]),
                next(q, s)
            ),
            10 => format!("({guard}) -> push(id, {}) . {}", r.choose(&["k", "id"]), next(k, s)),
            _ => format!("({guard}) -> hush(id) . {}", next(k, s)),
        });
    }
    steps.join("\n  + ")
}

/// Generates a second component of the identity `id`, with an identity as a parameter.
fn second(r: &mut Random) -> String {
    let mut steps = vec![format!(
        "sum q: I. ({}) -> pop(id, q) . B(id, q)",
        r.choose(&["true", "k == nobody", "q != k"])
    )];
    for _ in 0..r.below(3) {
        let (guard, k) = (
            *r.choose(&["true", "k != id", "k == nobody", "k != nobody"]),
            *r.choose(&["k", "nobody", "id"]),
        );
        steps.push(match r.below(5) {
            0 => format!("({guard}) -> flag(id) . B(id, {k})"),
            1 => format!("({guard}) -> sees(id, k) . B(id, {k})"),
            2 => format!("({guard}) -> put(k, a) . B(id, {k})"),
            3 => format!(
                "sum q: I. ({guard} && q != id) -> met(q, id) . B(id, {})",
                r.choose(&["q", "k"])
            ),
            _ => format!("({guard}) -> own(k, b) . B(id, {k})"),
        });
    }
    steps.join("\n  + ")
}

/// Generates the shared process: `m: D`, `h: I`, `l: List(I)`, and a message, a bag or a list of
/// messages.
fn shared_process(r: &mut Random) -> (String, String) {
    let (sort, start, keeps, tests): (&str, &str, &[&str], &[&str]) = *r.choose(&[
        (
            "S",
            "none",
            &["w", "none", "msg(h, m)", "if(w == none, msg(h, m), msg(who(w), a))"] as &[&str],
            &["w == none", "w != none && who(w) == h", "w == msg(h, a)"] as &[&str],
        ),
        (
            "FBag(I)",
            "{:}",
            &["w", "{:}", "if(h in w, {:}, w + {h: 1})", "if(count(h, w) > 1, {:}, w + {h: 1})"],
            &["h in w", "count(h, w) == 0", "w == {:}"],
        ),
        (
            "List(S)",
            "[]",
            &["w", "[]", "if(#w < 2, msg(h, m) |> w, [])", "if(w == [], w, tail(w))"],
            &["w == []", "w != [] && who(head(w)) == h", "msg(h, a) in w"],
        ),
        (
            "D -> I",
            "start",
            &["w", "w[m -> h]", "w[a -> h]", "start"],
            &["w(a) == h", "w(m) != nobody", "w(a) == w(b)"],
        ),
    ]);
    let mut steps = Vec::new();
    for _ in 0..3 + r.below(6) {
        let mut guard = (*r.choose(&[
            "true",
            "true",
            "m == a",
            "m == b",
            "h == nobody",
            "h != nobody",
            "l == []",
            "l != [] && head(l) != h",
        ]))
        .to_string();
        if r.chance(1, 3) {
            guard = format!("{guard} && {}", r.choose(tests));
        }
        let list = r.choose(&[
            "l",
            "l",
            "[]",
            "all",
            "keep(@, l)",
            "skip(@, l)",
            "behind(@, l)",
            "without(@, all)",
            "behind(@, all)",
            "if(l == [], l, tail(l))",
            "if(l == [], l, without(@, tail(l)))",
            "without(@, skip(@, l))",
        ]);
        let name: &str = r.choose::<&str>(&["p", "h"]);
        let with_p = list.replace('@', name);
        let list = list.replace('@', "h");
        let (h, m, w) =
            (*r.choose(&["h", "p", "p", "nobody"]), *r.choose(&["m", "a", "b"]), *r.choose(keeps));
        let (list, end) = (&list, |h: &str, list: &str| format!("M({m}, {h}, {list}, {w})"));
        let own = *r.choose(&["h", "nobody", "h"]);
        steps.push(match r.below(9) {
            0 => format!(
                "sum p: I, y: D. ({guard}) -> putting(p, y) . M({}, {h}, {with_p}, {w})",
                r.choose(&["y", "m"])
            ),
            1 => format!("sum p: I. ({guard} && p != h) -> getting(p, m) . {}", end(h, &with_p)),
            2 => format!("sum p: I. ({guard}) -> teach(p, h) . {}", end(h, &with_p)),
            3 => {
                format!("({guard} && l != []) -> teach(head(l), h) . {}", end("head(l)", "tail(l)"))
            }
            4 => format!("({guard} && l != []) -> getting(head(l), m) . {}", end(own, "tail(l)")),
            5 => format!(
                "sum p: I, e: S. ({guard}) -> sent(p, e) . {}",
                end("if(e == none, p, who(e))", "l")
            ),
            6 if sort == "FBag(I)" => format!("({guard}) -> lists(h, w) . {}", end(own, list)),
            6 if sort == "List(S)" => format!("({guard}) -> queues(w) . {}", end(own, list)),
            7 => format!("({guard}) -> sees(h, h) . {}", end(own, list)),
            _ => format!("sum p: I. ({guard}) -> three(p, h, h) . {}", end(h, &with_p)),
        });
    }
    let steps = steps.join("\n  + ");
    (
        format!("proc M(m: D, h: I, l: List(I), w: {sort}) = {steps};"),
        format!("M(a, nobody, [], {start})"),
    )
}

pub(crate) fn random_text(r: &mut Random) -> String {
    let (first, other, rest) = (component(r), second(r), shared_process(r));
    let (shared, start) = rest;
    let both = r.chance(1, 2);
    let one = if r.chance(1, 4) {
        "rename({hush -> flag}, P(i${i}, a, nobody, none))"
    } else {
        "P(i${i}, a, nobody, none)"
    };
    let two = if both { " || B(i${i}, nobody)" } else { "" };
    let extra = r.choose(&["", ", own|own", ", own|flag", ", flag|flag, own|flag", ", puts|flag"]);
    let hide = if r.chance(1, 3) { ("hide({hush}, ", ")") } else { ("", "") };
    let function = if start.contains("start") {
        "map start: D -> I; var d: D; eqn start(d) = nobody;\n"
    } else {
        ""
    };
    format!(
        "{HEAD}{function}proc P(id: I, x: D, k: I, s: S) = {first};\nproc B(id: I, k: I) = {other};\n{shared}\n\
         init {}allow({{own, puts, gets, learns, meets, pushes, sends, all3, sees, flag, hush, lists, queues{extra}}},\n\
         comm({{put | putting -> puts, get | getting -> gets, learn | teach -> learns, meet | met -> meets, push | pop -> pushes, send | sent -> sends, one | two | three -> all3}},\n\
         $for i in 0 .. n join \"\" {{ {one}{two} || }} {start})){};",
        hide.0, hide.1
    )
}

fn random_action(r: &mut Random, names: &[&str]) -> String {
    let (who, other) = (*r.choose(names), *r.choose(names));
    match r.below(14) {
        0 => format!("own({who}, {})", r.choose(&["a", "b"])),
        1 => format!("(exists y: D. own({who}, y) || puts({who}, y))"),
        2 => format!("gets({who}, {})", r.choose(&["a", "b"])),
        3 => format!("(exists z: I. learns({who}, z))"),
        4 => format!("learns({who}, {other})"),
        5 => format!("(exists z: I. val(z != {other}) && meets(z, {who}))"),
        6 => format!("(exists z: I, y: D. val(z != {who}) && (own(z, y) || puts(z, y)))"),
        7 => format!("(exists z: I, e: S. val(z == {who} || e == msg({other}, a)) && sends(z, e))"),
        8 => format!("(exists z, y: I. val(z != {who}) && all3({who}, z, y))"),
        9 => format!("(exists y: D. own({who}, y)|flag({who}) || own({who}, y)|flag({other}))"),
        10 => format!("pushes({who}, {other})"),
        11 => {
            format!("(exists z: I. val(z != {who} && z != nobody) && (flag(z) || sees({who}, z)))")
        }
        12 => format!("(exists w: FBag(I). val(w != {{{who}: 1}}) && lists({other}, w))"),
        _ => format!("(exists w: List(S). val(w == [msg({who}, a)]) && queues(w))"),
    }
}

/// The texts that a model must contain so that an action occurs.
const LIVE: [(&str, &[&str]); 12] = [
    ("all3(", &["-> one(", "-> two(", "-> three("]),
    ("learns(", &["-> learn(", "-> teach("]),
    ("meets(", &["-> meet(", "-> met("]),
    ("sends(", &["-> send(", "-> sent("]),
    ("pushes(", &["-> push(", " || B("]),
    ("gets(", &["-> get(", "-> getting("]),
    ("|flag(", &["|flag(id)"]),
    ("own(", &["-> own("]),
    ("puts(", &["-> put(", "-> putting("]),
    ("lists(", &["-> lists("]),
    ("queues(", &["-> queues("]),
    ("flag(", &["flag(id)"]),
];

/// Generates a property, mostly of actions that occur in the model.
fn random_property(r: &mut Random, model: &str) -> String {
    let body = &model[HEAD.len()..];
    let action = |r: &mut Random, names: &[&str]| {
        let mut found = random_action(r, names);
        for _ in 0..8 {
            if LIVE
                .iter()
                .find(|l| found.contains(l.0))
                .is_some_and(|l| l.1.iter().all(|needed| body.contains(needed)))
            {
                break;
            }
            found = random_action(r, names);
        }
        if r.chance(1, 6) { format!("!{found}") } else { found }
    };
    let path = |r: &mut Random, names: &[&str], most: usize| {
        let mut steps = vec!["true*".to_string()];
        for _ in 0..r.below(most) {
            let a = action(r, names);
            steps.push(if r.chance(1, 3) { format!("({a})*") } else { a });
        }
        steps.push(action(r, names));
        steps.join(" . ")
    };
    let different = |r: &mut Random| {
        *r.choose(&[
            "",
            "val(p == q) || ",
            "val(p == nobody || p == q) || ",
            "val(p == nobody) || ",
        ])
    };
    let (one, two): (&[&str], &[&str]) = (&["p", "p", "nobody"], &["p", "q"]);
    match r.below(9) {
        0 => format!("forall p: I. [{}] false", path(r, one, 3)),
        1 | 2 => format!("forall p, q: I. {}[{}] false", different(r), path(r, two, 3)),
        3 => format!(
            "[true*] (forall p, q: I. {}[{}] [{}] false)",
            different(r),
            action(r, two),
            action(r, two)
        ),
        4 => format!(
            "forall p, q: I. nu X(c: I = {}, o: Bool = false). (val(!o || c != {}) || [{}] false) && [{}] X({}, !o) && [{}] X(c, {})",
            r.choose(&["p", "q", "nobody"]),
            r.choose(two),
            action(r, &["c", "p"]),
            action(r, two),
            r.choose(&["p", "q", "nobody", "if(c == p, q, p)"]),
            if r.chance(1, 2) { "true".to_string() } else { action(r, &["c", "q"]) },
            r.choose(&["o", "!o", "false"])
        ),
        5 => format!(
            "nu X. [true] X && (forall p: I. [{}] [{}] false)",
            action(r, one),
            action(r, one)
        ),
        6 => format!("forall p: I. [{}] mu X. [{}] X", path(r, one, 2), action(r, one)),
        7 => format!(
            "forall p, q: I. [true*] ({}[{}] (forall z: I. val(z == p) || [{}] false))",
            different(r),
            action(r, two),
            action(r, &["z", "q"])
        ),
        _ => format!(
            "nu X(o: Bool = false). forall p: I. ([{}] val(o)) && [true] X(true)",
            action(r, one)
        ),
    }
}

/// `RICHER_CASES=400 RICHER_SEED=0` sets the number of cases and the first seed. Some take minutes,
/// since steps have many concretisations.
#[test]
fn what_is_proved_of_richer_models_holds_for_each_number() {
    let number =
        |name: &str, or: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
    let (first, cases) = (number("RICHER_SEED", 0), number("RICHER_CASES", 20));
    let (mut proved_and, mut alone, mut refused, mut fail) = (0, 0, 0, 0);
    for seed in first..first + cases {
        let mut r = Random::new(seed);
        let text = random_text(&mut r);
        let property = random_property(&mut r, &text);
        let answer = match is_proved(&text, &property) {
            Ok(answer) => answer,
            Err(why) => {
                assert!(
                    why.stage != mu_base::Stage::Internal,
                    "seed {seed}: {} {:?}\n{text}\n{property}",
                    why.message,
                    why.notes
                );
                if std::env::var("RICHER_WHY").is_ok() {
                    println!("{seed}: {:?} {}", why.stage, why.message);
                }
                refused += 1;
                continue;
            }
        };
        let mut verdicts = Vec::new();
        for n in 1..5 {
            // An instance beyond a limit also takes long.
            let verdict = concrete(&text, &property, n);
            verdicts.push(verdict);
            if !matches!(verdicts.last(), Some(Verdict::True)) {
                break;
            }
        }
        let fails = verdicts.contains(&Verdict::False);
        assert!(!(answer && fails), "seed {seed}: proved, but {verdicts:?}\n{text}\n{property}");
        proved_and += usize::from(answer);
        fail += usize::from(fails);
        alone += usize::from(!answer && !fails);
    }
    println!(
        "seeds {first}..{}: {proved_and} proved, {fail} false for a number, {alone} neither, {refused} refused",
        first + cases
    );
    assert!(
        proved_and * 8 > cases as usize && fail * 12 > cases as usize,
        "{proved_and} proved, {fail} false"
    );
}
