//! Tests of the thread-modular abstraction: random models with components, shared data and lists of
//! identities, and random formulas; a proved formula must hold for each tested number.

use super::{budget, check_with_pairs, formula};
use mu_base::random::Random;
use mu_base::{Diagnostic, SourceId, SourceMap};
use mu_compile::{Compiled, Confluence};
use mu_pbes::{Options, Verdict, check};
use mu_process::linearise::{self, linearise};
use mu_regions::constant_counts::{self, ConstantCount};
use mu_regions::replicas::{EXTRA_CONSTANTS, with_list};
use mu_regions::sizes::SIZE;
use mu_regions::words::{Letter, WordPart, WordRequest, abstract_word, longer, words};
use mu_regions::{
    Levels, Replicas, Study, SymbolicConstants, ThreadModularAbstraction, reachable_local_states,
    with_parameters,
};
use mu_syntax::template;

pub(crate) fn plain(text: &str, n: usize) -> String {
    template::expand("x", text, &[("n".into(), n.to_string())], &mut SourceMap::new()).unwrap().text
}

pub(crate) fn concrete(text: &str, property: &str, n: usize) -> Verdict {
    let model = Compiled::new(super::process(&plain(text, n)).unwrap(), &Confluence::None).unwrap();
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    let chosen = Options { evidence: false, ..Options::new(&options) };
    check(&model, &model, &formula(property, &model).unwrap(), chosen, &budget()).unwrap().verdict
}

/// Returns all permutations of the numbers below `n`.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let longer = |row: &Vec<usize>, i: usize| {
        (0..=row.len()).map(|at| [&row[..at], &[i], &row[at..]].concat()).collect::<Vec<_>>()
    };
    (0..n).fold(vec![Vec::new()], |rows, i| rows.iter().flat_map(|row| longer(row, i)).collect())
}

/// A model of any number of components, over symbolic constants.
pub(crate) struct Unbounded {
    pub model: Compiled,
    pub replicas: Replicas,
    pub defined: SymbolicConstants,
}

/// Builds that model from a text with the parameter `n` and these constants.
pub(crate) fn unbounded_model(text: &str, constants: &[String]) -> Result<Unbounded, Diagnostic> {
    assert_eq!(constant_counts::counting_parameters(text), ["n"], "{text}");
    let tree = |n: usize| mu_syntax::parse_specification(SourceId::FIRST, &plain(text, n)).unwrap();
    let (at, above) = (tree(SIZE), tree(SIZE + 1));
    let found = constant_counts::constants(SIZE, &at, &above);
    let found = found.map_err(|d| Diagnostic::new(mu_base::Stage::Unsupported, d.text("n")))?;
    assert!(found.counts_components());
    let linear = |tree, counted: &ConstantCount| {
        let (tree, names) =
            constant_counts::unbounded_specification(tree, counted, EXTRA_CONSTANTS);
        let spec = mu_process::typecheck::check_specification(&tree)?;
        let open: Vec<String> = constants.iter().chain(&counted.list).cloned().collect();
        let process = with_list(
            linearise(&spec, &linearise::LineariserOptions::of_any_number(&open))?,
            counted.list.as_deref(),
        )?;
        let (process, defined) = with_parameters(process, constants)?;
        Ok::<_, Diagnostic>((spec, process, defined, names))
    };
    let (spec, process, defined, names) = linear(&at, &found)?;
    let (_, larger, _, larger_names) = linear(&above, &found.larger())?;
    let model = Compiled::new(process, &Confluence::None)?;
    let replicas =
        Replicas::new(&model, &spec, &names, found.list.as_deref(), (&larger, &larger_names))?;
    Ok(Unbounded { model, replicas, defined })
}

/// Returns whether a formula is proved for every `n`.
pub(crate) fn is_proved(text: &str, property: &str) -> Result<bool, Diagnostic> {
    let Unbounded { model, replicas, defined } = unbounded_model(text, &[])?;
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    for assigned in replicas.family.assignments(&formula(property, &model)?)? {
        let study = Study::new(&model, &defined, &assigned.formula, Levels::Coarse)?;
        for case in study.cases() {
            let (regions, own) = (study.model(case)?, study.formula(case)?);
            let members = reachable_local_states(&regions, &replicas)?;
            for order in orders(assigned.tracked) {
                let crowd = ThreadModularAbstraction::new(&regions, &replicas, &order, &members)?;
                let chosen = Options { evidence: false, ..Options::new(&options) };
                if check_with_pairs(&crowd, &own, chosen)? != Verdict::True {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

/// A lock with requests, and a message to all other components.
const LOCK: &str = "$param n: Pos = 2;
sort I = struct nobody $for i in 0 .. n join \"\" { | i${i} };
map all: List(I); without: I # List(I) -> List(I);
var p, c: I; cs: List(I);
eqn all = [$for i in 0 .. n join \", \" { i${i} }];
    without(p, c |> cs) = if(p == c, cs, c |> without(p, cs)); without(p, []) = [];
act ask, give, take, back, free, release, tell, told, hears: I; enter, leave: I;
proc P(id: I) = ask(id) . enter(id) . leave(id) . back(id) . P(id) + told(id) . P(id);
proc Lock(h: I, l: List(I)) =
    sum p: I. (h == nobody && l == []) -> give(p) . Lock(p, [])
  + (h != nobody) -> free(h) . Lock(nobody, without(h, all))
  + (l != []) -> tell(head(l)) . Lock(h, tail(l));
init allow({take, release, hears, enter, leave}, comm({ask | give -> take, back | free -> release, tell | told -> hears},
  $for i in 0 .. n join \"\" { P(i${i}) || } Lock(nobody, [])));";

#[test]
fn a_lock_for_any_number_of_components() {
    for (property, expected) in [
        (
            "forall p, q: I. [true* . enter(q) . leave(q) . true* . enter(p) . (!leave(p))* . enter(q)] false",
            true,
        ),
        ("forall p: I. [true* . enter(p) . (!leave(p))* . hears(p)] false", true),
        ("forall p: I. [true* . hears(p) . (!(exists q: I. release(q)))* . hears(p)] false", true),
        ("forall p: I. [true* . release(p) . (!(exists q: I. take(q)))* . hears(p)] false", true),
        ("forall p: I. [true* . enter(p) . true* . enter(p)] false", false),
        ("forall p, q: I. [true* . release(p) . true* . enter(q)] false", false),
    ] {
        assert_eq!(is_proved(LOCK, property).unwrap(), expected, "{property}");
        let all = (1..5).map(|n| concrete(LOCK, property, n)).all(|v| v == Verdict::True);
        assert_eq!(all, expected, "{property}");
    }
}

/// A property that three components have and two lack is not proved: that two others are notified
/// one after the other, and that there are three at all.
#[test]
fn what_needs_three_components_is_not_proved() {
    for property in [
        "forall p, q: I. (val(p == q) || [true* . hears(p) . hears(q)] false)",
        "forall p, q, r: I. (val(p == q || q == r || p == r) || [true* . enter(p) . true* . enter(q) . true* . enter(r)] false)",
    ] {
        assert_eq!(concrete(LOCK, property, 2), Verdict::True, "{property}");
        assert_eq!(concrete(LOCK, property, 3), Verdict::False, "{property}");
        assert!(!is_proved(LOCK, property).unwrap(), "{property}");
    }
}

#[test]
fn what_depends_on_the_number_of_components_is_refused_by_name() {
    let property = "forall p: I. [enter(p)] false";
    let refused = |text: &str| is_proved(text, property).expect_err(text).message;
    let edit = |from: &str, to: &str| {
        assert!(LOCK.contains(from), "{from}");
        LOCK.replace(from, to)
    };
    assert!(
        refused(&edit("(l != []) -> tell", "(#l > 1) -> tell"))
            .contains("a list of identities is used")
    );
    assert!(
        refused(&edit("(l != []) -> tell", "(l != all) -> tell"))
            .contains("two lists of identities")
    );
    assert!(refused(&edit("tail(l)", "tail(l) <| h")).contains("a list of identities is built"));
    assert!(
        refused(&edit("h == nobody && l == []", "h == nobody && p != i0"))
            .contains("is not the same for all components")
    );
    assert!(refused(&edit("h == nobody && l == []", "forall q: I. q != p")).contains("quantify"));
    assert!(refused(&edit("h == nobody && l == []", "h < p")).contains("ordered"));
    assert!(
        refused(&edit("|| } Lock(nobody", "|| tau . delta || } Lock(nobody"))
            .contains("one parallel process for each")
    );
    // `[i1]` is also what a list of the next instance may be, so a step shows it.
    for (to, reason) in [
        ("Lock(i0, [])", "`i0` is named outside of the processes"),
        ("Lock(nobody, [i1])", "a step is not the same for all components"),
    ] {
        let message = refused(&edit("Lock(nobody, [])", to));
        assert!(message.contains(reason), "{to}: {message}");
    }
    assert!(
        refused(&edit("ask(id) . enter", "tau . ask(id) . enter"))
            .contains("a step without an action")
    );
    let own = LOCK
        .replace("proc P(id: I) =", "proc P(id: I, l: List(I)) =")
        .replace(". P(id)", ". P(id, [id])")
        .replace("P(i${i})", "P(i${i}, [])");
    assert!(refused(&own).contains("has a list of"), "{}", refused(&own));
    let open = edit(
        "init allow({take, release, hears, enter, leave}, ",
        "init block({ask, give, back, free, tell, told}, ",
    );
    assert!(refused(&open).contains("no `allow` bounds"), "{}", refused(&open));
    assert!(
        refused(&edit("Lock(nobody, [])", "Lock(nobody, all)"))
            .contains("the initial value of `l` uses `all`")
    );
    assert!(
        refused(&edit("without(p, []) = [];", "without(p, []) = [p];"))
            .contains("a list of identities is built")
    );
    assert!(
        refused(&edit(
            "[$for i in 0 .. n join \", \" { i${i} }]",
            "[nobody $for i in 0 .. n join \"\" { , i${i} }]"
        ))
        .contains("an equation")
    );
    assert!(
        is_proved(LOCK, "forall p: I. <enter(p)> true").unwrap_err().message.contains("diamond")
    );
    assert!(is_proved(LOCK, "map f: I -> Bool; var p: I; eqn f(p) = head(all) == p; form forall p: I. [enter(p)] val(f(p));").is_err());
}

/// A property of every number of constants except two, or of all constants except one with an
/// argument, is not proved.
#[test]
fn sets_of_all_others_and_constants_with_arguments_are_refused() {
    const PAIRS: &str = "$param n: Pos = 2;
sort I = struct nobody | boss(Bool) $for i in 0 .. n join \"\" { | i${i} };
act put, get, c, e: I; bad;
proc P(id: I) = put(id) . P(id);
proc M(h: I, k: I) = sum p: I. get(p) . M(p, h) + (GUARD) -> bad . M(h, k) + e(boss(true)) . e(boss(true)) . M(h, k);
init allow({c, e, bad}, comm({put | get -> c}, $for i in 0 .. n join \"\" { P(i${i}) || } M(nobody, nobody)));";
    let plain = PAIRS.replace("GUARD", "h != h");
    assert!(is_proved(&plain, "[true* . bad] false").unwrap());
    let two = "forall p: I. [true* . e(p) . e(p)] false";
    assert_eq!(concrete(&plain, two, 1), Verdict::False);
    assert!(is_proved(&plain, two).unwrap_err().message.contains("constructors with arguments"));
    let sets = PAIRS
        .replace(" | boss(Bool)", "")
        .replace("nobody $for i in 0 .. n join \"\" { |", "$for i in 0 .. n join \"|\" {");
    let sets =
        sets.replace("boss(true)", "h").replace("M(nobody, nobody)", "(sum p: I. e(p) . M(p, p))");
    for (guard, at) in [("!{h} == {k}", 2), ("!{h} <= {k}", 1), ("{h} + {k} == !{}", 1)] {
        let text = sets.replace("GUARD", guard);
        assert_eq!(concrete(&text, "[true* . bad] false", at), Verdict::False, "{guard}");
        assert_eq!(concrete(&text, "[true* . bad] false", 3), Verdict::True, "{guard}");
        assert!(
            is_proved(&text, "[true* . bad] false").unwrap_err().message.contains("all but some"),
            "{guard}"
        );
    }
}

#[test]
fn words_stand_for_longer_ones() {
    let word = [WordPart::Block, WordPart::Tracked(0)];
    let wanted = WordRequest { names: 1, all: false, empty: false, longest: 2, front: None };
    let found = words(&word, &wanted, 1000).unwrap();
    // One or two unnamed letters, or the named one with up to two such letters on each side.
    assert_eq!(found.len(), 2 + 9);
    for w in &found {
        let letter = |l: &Letter| if let Letter::Tracked(i) = l { Some(*i) } else { None };
        assert_eq!(abstract_word(w.iter().map(letter)), word);
        assert_eq!(abstract_word(longer(w, 2).iter().map(letter)), word);
    }
    let all = WordRequest { all: true, empty: true, ..wanted };
    assert!(
        words(&[WordPart::Block, WordPart::Tracked(0), WordPart::Block], &all, 1000)
            .unwrap()
            .iter()
            .all(|w| w.contains(&Letter::Named(0)))
    );
    assert!(words(&word, &wanted, 5).is_none());
}

/// Generates a random model: components with a value and possibly an identity, a shared process
/// with a value, an identity and a list.
pub(crate) fn random_text(r: &mut Random) -> String {
    let value = |r: &mut Random, own: &str| (*r.choose(&[own, "a", "b"])).to_string();
    let mut steps = Vec::new();
    for _ in 0..2 + r.below(4) {
        let guard = *r.choose(&[
            "true",
            "x == a",
            "x == b",
            "k == id",
            "k != id",
            "k == nobody",
            "x == a && k != nobody",
        ]);
        let k = *r.choose(&["k", "k", "id", "nobody"]);
        let next = value(r, "x");
        steps.push(match r.below(6) {
            0 => format!("({guard}) -> own(id, {}) . P(id, {next}, {k})", value(r, "x")),
            1 => format!("({guard}) -> put(id, {}) . P(id, {next}, {k})", value(r, "x")),
            2 => format!(
                "sum y: D. ({guard}) -> get(id, y) . P(id, {}, {k})",
                r.choose(&["y", "x", "a"])
            ),
            3 => format!(
                "sum q: I. ({guard}) -> learn(id, q) . P(id, {next}, {})",
                r.choose(&["q", "k", "q"])
            ),
            4 => format!(
                "sum q: I. ({guard} && q != id) -> meet(id, q) . P(id, {next}, {})",
                r.choose(&["q", "k"])
            ),
            _ => format!(
                "sum q: I. ({guard}) -> met(q, id) . P(id, {next}, {})",
                r.choose(&["q", "k"])
            ),
        });
    }
    let mut shared = Vec::new();
    for _ in 0..2 + r.below(4) {
        let guard = *r.choose(&[
            "true",
            "m == a",
            "m == b",
            "h == nobody",
            "h != nobody",
            "l == []",
            "l != [] && head(l) != h",
        ]);
        let list = *r.choose(&[
            "l",
            "l",
            "[]",
            "all",
            "keep(h, l)",
            "without(h, all)",
            "if(l == [], all, tail(l))",
            "if(l == [], [], tail(l))",
        ]);
        let (h, m) = (*r.choose(&["h", "p", "p", "nobody"]), value(r, "m"));
        shared.push(match r.below(5) {
            0 => format!(
                "sum p: I, y: D. ({guard}) -> putting(p, y) . M({}, {h}, {list})",
                r.choose(&["y", "m"])
            ),
            1 => format!("sum p: I. ({guard} && p != h) -> getting(p, m) . M({m}, {h}, {list})"),
            2 => format!("sum p: I. ({guard}) -> teach(p, h) . M({m}, {h}, {list})"),
            3 => format!(
                "({guard} && l != []) -> teach(head(l), h) . M({m}, {}, {list})",
                r.choose(&["h", "head(l)", "nobody"])
            ),
            _ => format!(
                "({guard} && l != []) -> getting(head(l), {m}) . M({m}, {}, tail(l))",
                r.choose(&["h", "head(l)"])
            ),
        });
    }
    format!(
        "$param n: Pos = 2;\nsort I = struct nobody $for i in 0 .. n join \"\" {{ | i${{i}} }}; D = struct a | b;\n\
         map all: List(I); without, keep: I # List(I) -> List(I);\nvar p, c: I; cs: List(I);\n\
         eqn all = [$for i in 0 .. n join \", \" {{ i${{i}} }}];\n\
         without(p, c |> cs) = if(p == c, cs, c |> without(p, cs)); without(p, []) = [];\n\
         keep(p, c |> cs) = if(p == c, c |> keep(p, cs), keep(p, cs)); keep(p, []) = [];\n\
         act own, put, putting, puts, get, getting, gets: I # D; learn, teach, learns, meet, met, meets: I # I;\n\
         proc P(id: I, x: D, k: I) = {};\nproc M(m: D, h: I, l: List(I)) = {};\n\
         init allow({{own, puts, gets, learns, meets}}, comm({{put | putting -> puts, get | getting -> gets, learn | teach -> learns, meet | met -> meets}},\n\
         $for i in 0 .. n join \"\" {{ P(i${{i}}, a, nobody) || }} M(a, nobody, [])));",
        steps.join("\n  + "),
        shared.join("\n  + ")
    )
}

pub(crate) fn random_property(r: &mut Random) -> String {
    let two = r.chance(1, 2);
    let action = |r: &mut Random| {
        let who = if two { *r.choose(&["p", "q"]) } else { "p" };
        let inner = match r.below(7) {
            0 => format!("own({who}, {})", r.choose(&["a", "b"])),
            1 => format!("puts({who}, {})", r.choose(&["a", "b"])),
            2 => format!("gets({who}, {})", r.choose(&["a", "b"])),
            3 => format!("(exists z: I. learns({who}, z))"),
            4 => format!("learns({who}, {})", if two { "q" } else { "p" }),
            5 => format!("(exists z: I. val(z != {who}) && meets(z, {who}))"),
            _ => "(exists z: I, y: D. val(z != p) && (own(z, y) || puts(z, y)))".to_string(),
        };
        if r.chance(1, 5) { format!("!{inner}") } else { inner }
    };
    let mut steps = vec!["true*".to_string()];
    for _ in 0..1 + r.below(3) {
        let a = action(r);
        steps.push(if r.chance(1, 3) { format!("({a})*") } else { a });
    }
    steps.push(action(r));
    format!(
        "forall {}: I. {}[{}] false",
        if two { "p, q" } else { "p" },
        if two && r.chance(1, 2) { "val(p == q) || " } else { "" },
        steps.join(" . ")
    )
}

/// `CROWD_CASES=4000 CROWD_SEED=0` sets the number of cases and the first seed.
#[test]
fn what_is_proved_for_every_number_of_components_holds_for_each() {
    let number =
        |name: &str, or: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
    let (first, cases) = (number("CROWD_SEED", 0), number("CROWD_CASES", 40));
    let (mut both, mut alone, mut refused) = (0, 0, 0);
    for seed in first..first + cases {
        let mut r = Random::new(seed);
        let (text, property) = (random_text(&mut r), random_property(&mut r));
        let answer = match is_proved(&text, &property) {
            Ok(answer) => answer,
            Err(why) => {
                assert!(
                    why.stage != mu_base::Stage::Internal,
                    "seed {seed}: {} {:?}\n{text}\n{property}",
                    why.message,
                    why.notes
                );
                refused += 1;
                continue;
            }
        };
        let verdicts: Vec<Verdict> = (1..5).map(|n| concrete(&text, &property, n)).collect();
        let fails = verdicts.contains(&Verdict::False);
        assert!(!(answer && fails), "seed {seed}: proved, but {verdicts:?}\n{text}\n{property}");
        both += usize::from(answer);
        alone += usize::from(!answer && !fails);
    }
    println!(
        "{both} proved, {alone} true for all that were tried and not proved, {refused} refused"
    );
    assert!(both > alone / 2, "{both} proved, {alone} not");
}
