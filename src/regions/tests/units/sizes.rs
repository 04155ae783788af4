//! Tests of sorts of any size: random processes over values and arrays, and random formulas; a
//! proved formula must hold for each tested size.

use super::{budget, check_with_pairs, formula, process, process_of_any_size};
use mu_base::random::Random;
use mu_base::{Diagnostic, SourceId, SourceMap};
use mu_compile::{Compiled, Confluence};
use mu_pbes::{Options, Verdict, check};
use mu_regions::sizes::SIZE;
use mu_regions::{
    AbstractableModel, Family, Levels, MergedConstants, Study, constant_counts, with_parameters,
};
use mu_syntax::template;

/// Expands the text for these sizes.
fn plain(text: &str, sizes: &[(&str, usize)]) -> String {
    let defines: Vec<(String, String)> =
        sizes.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    template::expand("x", text, &defines, &mut SourceMap::new()).unwrap().text
}

/// Returns the verdict for these sizes.
fn concrete(text: &str, property: &str, sizes: &[(&str, usize)]) -> Verdict {
    let model = Compiled::new(process(&plain(text, sizes)).unwrap(), &Confluence::None).unwrap();
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    let chosen = Options { evidence: false, ..Options::new(&options) };
    check(&model, &model, &formula(property, &model).unwrap(), chosen, &budget()).unwrap().verdict
}

fn with_merged_constants<T>(
    base: &dyn AbstractableModel,
    families: &[(&Family, usize)],
    then: &mut dyn FnMut(&dyn AbstractableModel) -> T,
) -> Result<T, Diagnostic> {
    match families.split_first() {
        None => Ok(then(base)),
        Some(((family, tracked), rest)) => {
            with_merged_constants(&MergedConstants::new(base, family, *tracked)?, rest, then)
        }
    }
}

/// Returns whether a formula is proved for every value of these parameters.
fn is_proved(text: &str, property: &str, names: &[&str]) -> Result<bool, Diagnostic> {
    assert_eq!(constant_counts::counting_parameters(text), names);
    let tree = |sizes: &[(&str, usize)]| {
        mu_syntax::parse_specification(SourceId::FIRST, &plain(text, sizes)).unwrap()
    };
    let at: Vec<(&str, usize)> = names.iter().map(|n| (*n, SIZE)).collect();
    let small = tree(&at);
    let spec = mu_process::typecheck::check_specification(&small)?;
    let mut constants = Vec::new();
    for name in names {
        let above: Vec<(&str, usize)> =
            at.iter().map(|(n, v)| (*n, v + usize::from(n == name))).collect();
        constants.push(constant_counts::constants(SIZE, &small, &tree(&above)).unwrap().names);
    }
    let process = process_of_any_size(&plain(text, &at), &constants.concat())?;
    let (process, defined) = with_parameters(process, &[])?;
    let model = Compiled::new(process, &Confluence::None)?;
    let mut families = Vec::new();
    for names in &constants {
        families.push(Family::new(&model, &spec, names)?);
    }
    families = Family::sort_families(families)?;
    let mut instances = vec![(formula(property, &model)?, Vec::new())];
    for family in &families {
        let mut next = Vec::new();
        for (f, tracked) in &instances {
            for assigned in family.assignments(f)? {
                next.push((assigned.formula, [tracked.as_slice(), &[assigned.tracked]].concat()));
            }
        }
        instances = next;
    }
    let options = mu_explore::Options { threads: 1, ..Default::default() };
    for (typed, tracked) in &instances {
        let study = Study::new(&model, &defined, typed, Levels::Coarse)?;
        for case in study.cases() {
            let (regions, own) = (study.model(case)?, study.formula(case)?);
            let pairs: Vec<(&Family, usize)> =
                families.iter().zip(tracked.iter().copied()).collect();
            let chosen = Options { evidence: false, ..Options::new(&options) };
            let verdict = with_merged_constants(&regions, &pairs, &mut |base| {
                check_with_pairs(base, &own, chosen)
            })??;
            if verdict != Verdict::True {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A one-place buffer before a memory.
const MEMORY: &str = "$param values: Pos = 2;\n$param addresses: Pos = 2;
sort V = struct none $for i in 0 .. values join \"\" { | v${i} }; A = struct $for i in 0 .. addresses join \" | \" { a${i} };
map start: A -> V; var a: A; eqn start(a) = none;
act store, load, done: A # V;
proc P(m: A -> V, full: Bool, a: A, v: V) =
    sum b: A, w: V. (w != none && !full) -> store(b, w) . P(m, true, b, w)
  + full -> done(a, v) . P(m[a -> v], false, a, none)
  + sum b: A. (!full || a != b) -> load(b, m(b)) . P(m, full, a, v);
init P(start, false, a0', none);";

#[test]
fn a_memory_of_any_size() {
    let text = MEMORY.replace("{ a${i} };", "{ a${i} } | a0';");
    let all = [("values", 1), ("values", 2), ("values", 3)];
    for (property, expected) in [
        // A load returns the last written value, until another is written.
        (
            "[true*] (forall a: A, v: V. [done(a, v) . (!(exists w: V. done(a, w)))* . (exists w: V. val(w != v) && load(a, w))] false)",
            true,
        ),
        (
            "[true*] (forall a: A, v: V. [done(a, v) . true* . (exists w: V. val(w != v) && load(a, w))] false)",
            false,
        ),
        (
            "forall a: A. [(!(exists v: V. done(a, v)))* . (exists v: V. val(v != none) && load(a, v))] false",
            true,
        ),
        ("forall a: A, v: V. [(!done(a, v))* . load(a, v)] val(v == none)", true),
        ("forall a: A. [true* . (exists v: V. val(v != none) && load(a, v))] false", false),
        (
            "[true*] (forall v, w: V. (val(v != w) => [(exists a: A. done(a, v)) . (exists a: A. done(a, w))] false))",
            true,
        ),
    ] {
        assert_eq!(
            is_proved(&text, property, &["values", "addresses"]).unwrap(),
            expected,
            "{property}"
        );
        for values in all {
            for addresses in 1..3 {
                let verdict = concrete(&text, property, &[values, ("addresses", addresses)]);
                assert!(!expected || verdict == Verdict::True, "{property} {values:?} {addresses}");
            }
        }
    }
}

/// Returns an array that a step writes at any constant and another one reads.
fn array_of(entries: &str, (first, other): (&str, &str)) -> String {
    format!(
        "$param addresses: Pos = 2;
         sort A = struct $for i in 0 .. addresses join \" | \" {{ a${{i}} }}; S;
         map start: A -> {entries}; s, t: S; var a: A; eqn start(a) = {first};
         act store: A; load: A # {entries};
         proc P(m: A -> {entries}) = sum a: A. store(a) . P(m[a -> {other}]) + sum a: A. load(a, m(a)) . P(m);
         init P(start);"
    )
}

#[test]
fn entries_of_arrays_at_merged_constants_are_not_lost() {
    let text = array_of("Bool", ("false", "true"));
    for (property, expected) in [
        ("[true* . (exists a: A. load(a, true))] false", false),
        (
            "[true*] (forall a: A. [store(a) . (exists b: A. val(b != a) && load(b, true))] false)",
            false,
        ),
        ("forall a: A. [(!store(a))* . load(a, true)] false", true),
    ] {
        assert_eq!(is_proved(&text, property, &["addresses"]).unwrap(), expected, "{property}");
        let verdict = concrete(&text, property, &[("addresses", 2)]);
        assert_eq!(verdict == Verdict::True, expected, "{property}");
    }
    // Numbers, and values of a sort without constructors, cannot be listed.
    for (entries, values) in [("Nat", ("0", "1")), ("S", ("s", "t"))] {
        let text = array_of(entries, values);
        let property = format!("[true* . (exists a: A. load(a, {}))] false", values.1);
        if entries == "Nat" {
            assert_eq!(concrete(&text, &property, &[("addresses", 1)]), Verdict::False);
        }
        let why = is_proved(&text, &property, &["addresses"]).expect_err(&text).message;
        assert!(why.contains("are not constants"), "{entries}: {why}");
    }
}

#[test]
fn what_depends_on_the_size_is_refused_by_name() {
    let text = MEMORY.replace("{ a${i} };", "{ a${i} } | a0';");
    let refused = |text: &str, property: &str| {
        let names = constant_counts::counting_parameters(text);
        let answer =
            is_proved(text, property, &names.iter().map(String::as_str).collect::<Vec<_>>());
        answer.expect_err(&format!("{property}\n{text}")).message
    };
    let property = "forall a: A, v: V. [store(a, v)] false";
    assert!(
        refused(&text.replace("w != none &&", "w != v0 &&"), property).contains("`v0` is named")
    );
    assert!(refused(&text.replace("w != none &&", "v < w &&"), property).contains("ordered"));
    assert!(
        refused(&text.replace("w != none &&", "(forall u: V. u == w) &&"), property)
            .contains("quantify")
    );
    assert!(
        refused(&text.replace("w != none &&", "(m != start || v == none) &&"), property)
            .contains("compared")
    );
    // A constructor with arguments may have the name of a constant.
    let overloaded = text.replace("A = struct", "X = struct a0(of: Bool) | x; A = struct");
    assert_ne!(overloaded, text);
    assert!(is_proved(&overloaded, property, &["values", "addresses"]).is_ok());
    assert!(
        refused(&overloaded.replace("w != none &&", "(forall u: A. u == b) &&"), property)
            .contains("quantify")
    );
    // Elements of lists, sets, and bags, and equal variables of a pattern are compared, too.
    for compared in
        ["!(m in [start])", "#({m} - {start}) == 0", "count(m, {start: 1}) == 0", "same(m, start)"]
    {
        let text = text.replace("w != none &&", &format!("{compared} &&")).replace(
            "map start",
            "map same: (A -> V) # (A -> V) -> Bool;\n  var s, t: A -> V; eqn same(s, s) = true;\nmap start",
        );
        let text = if compared.starts_with("same") {
            text
        } else {
            text.replace("eqn same(s, s)", "eqn same(s, t)")
        };
        assert!(refused(&text, property).contains("compared"), "{compared}");
    }
    // There is no case for more different values than there are constants.
    let names: Vec<String> = (0..=SIZE).map(|i| format!("x{i}")).collect();
    let equal = |i: usize| (0..i).map(move |j| format!("x{i} == x{j}"));
    let equal: Vec<String> = (0..=SIZE).flat_map(equal).collect();
    let (names, equal) = (names.join(", "), equal.join(" || "));
    let many = format!("forall {names}: V, a: A. [store(a, x0)] val({equal})");
    assert!(refused(&text, &many).contains("more than 7 constants"));
    assert!(refused(&text, "forall a: A. [store(a, v1)] false").contains("`v1` is named"));
    assert!(refused(&text, "exists a: A. [store(a, none)] false").contains("`exists`"));
    assert!(refused(&text, "forall a: A. <store(a, none)> true").contains("diamond"));
    assert!(
        refused(&text, "[exists v: V, a, b: A. load(a, v) && val(a == b)] false")
            .contains("no action determines")
    );
    // A property of every number of constants from two on does not hold for one: closed conditions,
    // and equations of the formula.
    let closed = text.replace(
        "+ full -> done",
        "+ (!(exists a, b: A. a != b)) -> store(a, none) . P(m, full, a, v)\n  + full -> done",
    );
    assert!(refused(&closed, "[true* . (exists a: A. store(a, none))] false").contains("quantify"));
    let own =
        "map f: A -> Bool; var x: A; eqn f(x) = exists y, z: A. y != z && y != x && z != x;\n";
    assert!(
        refused(&text, &format!("{own}form forall a: A, v: V. [done(a, v)] val(f(a));"))
            .contains("quantify")
    );
    // A mapping that is not defined on them.
    let stuck = text
        .replace("act store", "map f: V -> Nat; act other: Nat; store")
        .replace("init P", "proc Q = sum v: V. other(f(v)) . delta; init Q || P");
    assert!(
        refused(&stuck, "forall v: V, a: A. [store(a, v)] val(v != none)")
            .contains("does not evaluate to data")
    );
    assert_eq!(
        constant_counts::counting_parameters("$param n: Nat = 2;\nact a: Nat;\ninit a(${n});"),
        Vec::<String>::new()
    );
    assert_eq!(
        constant_counts::counting_parameters(
            "$param n: Nat = 2;\nsort S = struct $for i in 0 .. n join \"|\" { $if i > 3 { a } b${i} };"
        ),
        Vec::<String>::new()
    );
}

/// The place of a use of a parameter that makes more than the number of constants depend on it.
#[test]
fn uses_of_a_size_other_than_in_its_sort_have_a_place() {
    let sort =
        "$param n: Nat = 2; % n == 3\nsort S = struct $for i in 0 .. n join \" | \" { s${i} };\n";
    let place = |rest: &str| {
        let text = format!("{sort}{rest}");
        constant_counts::first_other_use(&text, "n").map(|(from, to)| text[from..to].to_string())
    };
    assert_eq!(place("init $if n == 30 { e . } P;").as_deref(), Some("n"));
    assert_eq!(place("init P $for k in 30 .. n { + e };").as_deref(), Some("n"));
    let squares = "eqn $for i in 0 .. n join \" \" { f(s${i}) = ${i * i}; }";
    assert_eq!(place(squares).as_deref(), Some("${i * i}"));
    let conditional = "eqn $for i in 0 .. n join \" \" { $if i > 2 { f(s${i}) = 1; } }";
    assert_eq!(place(conditional).as_deref(), Some("$"));
    assert_eq!(place("init $for i in 0 .. n join \" || \" { P(s${i}) };"), None);
    // A number of other things, which is no number of constants.
    let list = "$param n: Nat = 2;\neqn l = [$for i in 0 .. n join \", \" { c }]; m = ${n};";
    assert_eq!(constant_counts::first_other_use(list, "n"), None);
}

fn random_text(r: &mut Random) -> String {
    let term = |r: &mut Random| (*r.choose(&["x", "y", "none", "m(k)"])).to_string();
    let mut summands = Vec::new();
    for _ in 0..2 + r.below(4) {
        let condition = match r.below(7) {
            0 => "x == y".to_string(),
            1 => "x != y".into(),
            2 => "x == none".into(),
            3 => "k == j".into(),
            4 => "l != [] && head(l) == x".into(),
            5 => format!("m(j) {} {}", r.choose(&["==", "!="]), term(r)),
            _ => "true".into(),
        };
        let sum = match r.below(4) {
            0 => "sum w: V. ",
            1 => "sum i: A. ",
            2 => "sum w: V, i: A. ",
            _ => "",
        };
        let (value, address) =
            (if sum.contains('w') { "w" } else { "y" }, if sum.contains('i') { "i" } else { "j" });
        let action = match r.below(4) {
            0 => format!("a({address}, {})", term(r)),
            1 => format!("a(k, {value})"),
            2 => format!("b({value})"),
            _ => format!("b({})", term(r)),
        };
        let next_x = *r.choose(&["x", value, "none", "m(j)"]);
        let next_y = *r.choose(&["y", "x", value]);
        let next_m = r.choose(&["m", "m", "m[k -> x]", "m[j -> y]"]);
        let next_l = *r.choose(&["l", "l", "if(#l < 2, x |> l, [])", "[]"]);
        summands.push(format!("{sum}({condition}) -> {action} . P({next_x}, {next_y}, {address}, k, {next_m}, {next_l})"));
        if r.chance(1, 2) {
            summands.push(format!(
                "{sum}({condition}) -> c . P({next_x}, {next_y}, j, {address}, m, {next_l})"
            ));
        }
    }
    format!(
        "$param values: Pos = 2;\n$param addresses: Pos = 2;\nsort V = struct none $for i in 0 .. values join \"\" {{ | v${{i}} }};\n\
         A = struct nowhere $for i in 0 .. addresses join \"\" {{ | a${{i}} }};\nmap start: A -> V; var a: A; eqn start(a) = none;\n\
         act a: A # V; b: V; c;\nproc P(x, y: V, j, k: A, m: A -> V, l: List(V)) = {};\ninit P(none, none, nowhere, nowhere, start, []);",
        summands.join("\n  + ")
    )
}

fn random_property(r: &mut Random) -> String {
    let value = |r: &mut Random| (*r.choose(&["v", "w", "none", "v"])).to_string();
    let action = |r: &mut Random| {
        let inner = match r.below(6) {
            0 => "c".to_string(),
            1 => format!("a(p, {})", value(r)),
            2 => format!("b({})", value(r)),
            3 => format!("(exists u: V. val(u {} {}) && b(u))", r.choose(&["==", "!="]), value(r)),
            4 => format!("(exists i: A. val(i != p) && a(i, {}))", value(r)),
            _ => format!("(exists u: V, i: A. val(u != {}) && (a(i, u) || b(u)))", value(r)),
        };
        if r.chance(1, 4) { format!("!{inner}") } else { inner }
    };
    let mut steps = Vec::new();
    for _ in 0..1 + r.below(3) {
        let a = action(r);
        steps.push(match r.below(4) {
            0 => "true*".to_string(),
            1 => format!("({a})*"),
            _ => a,
        });
    }
    let end = match r.below(3) {
        0 => format!("val({} {} {})", value(r), r.choose(&["==", "!="]), value(r)),
        _ => "false".to_string(),
    };
    let condition = match r.below(3) {
        0 => "val(v != w) => ",
        1 => "val(v != none && w != none) => ",
        _ => "",
    };
    format!("[true*] (forall v, w: V, p: A. ({condition}[{}] {end}))", steps.join(" . "))
}

#[test]
fn what_is_proved_for_every_size_holds_for_each() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let (first, count) = (number("REGIONS_SEED", 1), number("REGIONS_CASES", 60));
    let (mut both, mut truths) = (0, 0);
    for seed in first..first + count {
        let r = &mut Random::new(seed);
        let (text, property) = (random_text(r), random_property(r));
        let verdicts: Vec<Verdict> = [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (3, 2)]
            .iter()
            .map(|(v, a)| concrete(&text, &property, &[("values", *v), ("addresses", *a)]))
            .collect();
        let holds = verdicts.iter().all(|v| *v == Verdict::True);
        truths += u64::from(holds);
        match is_proved(&text, &property, &["values", "addresses"]) {
            Ok(true) => {
                assert!(
                    !verdicts.contains(&Verdict::False),
                    "seed {seed}: {property}\n{text}\n{verdicts:?}"
                );
                both += u64::from(holds);
            }
            Ok(false) => {}
            Err(error) => {
                assert!(error.exit_code() != 4, "seed {seed}: {property}\n{text}\n{error:?}")
            }
        }
    }
    println!(
        "seeds {first}..{}: {both} proved of {truths} that are true up to 3 values and 2 addresses",
        first + count
    );
    assert!(both * 2 > truths && both * 3 < count * 2, "{both} proved of {truths}");
}

/// A sum over a sort of any size stays a sum, although its condition admits few constants of the
/// instance.
#[test]
fn sums_over_sorts_of_any_size_are_not_enumerated() {
    let text = "$param values: Pos = 2;
sort V = struct $for i in 0 .. values join \" | \" { v${i} };
map seen: V -> Bool; var v: V; eqn seen(v) = false;
act a: V;
proc P(x: V -> Bool) = sum i: V. (!x(i)) -> a(i) . P(x[i -> true]);
init P(seen);";
    let once = "forall i: V. [true* . a(i) . true* . a(i)] false";
    assert!(is_proved(text, once, &["values"]).unwrap());
    let never = "forall i: V. [true* . a(i)] false";
    assert!(!is_proved(text, never, &["values"]).unwrap());
}
