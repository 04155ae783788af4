//! Tests of the `cat` language: random models against a naive evaluator, the library functions
//! against their definitions, errors with their positions.

use std::collections::BTreeSet;

use mu_base::SourceMap;
use mu_base::random::Random;

use super::naive::{self, Naive, Pairs};
use super::sample;
use mu_axioms::cat::{CatModel, Session};
use mu_axioms::execution::{Event, EventKind, SetId, Skeleton, Vocabulary};
use mu_axioms::relation::Relation;

fn none(_: &str) -> Option<String> {
    None
}
fn vocabulary() -> (Vocabulary, Vec<(&'static str, SetId)>) {
    let mut v = Vocabulary::new();
    let tags = ["Acq", "Rel"].map(|t| (t, v.set(t))).to_vec();
    (v, tags)
}
fn compile(text: &str) -> Result<CatModel, String> {
    let mut sources = SourceMap::new();
    CatModel::compile(&mut sources, "test.cat", text, &none, &vocabulary().0, &["mixed"])
        .map_err(|e| e.render(&sources))
}
fn model(text: &str) -> CatModel {
    compile(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Expressions, three functions and `let rec`, on random executions.
#[test]
fn random_expressions_mean_what_the_definitions_say() {
    let (v, tags) = vocabulary();
    let ids: Vec<SetId> = tags.iter().map(|t| t.1).collect();
    for seed in 0..1500 {
        let mut random = Random::new(seed);
        let exp = naive::relation(&mut random, 4, false);
        let set = naive::set(&mut random, 3);
        let text = format!(
            "let twice(a) = a;a\nlet between(s, a) = a;[s];a\nlet x = {exp} | 0\nlet s = {set}\nacyclic x as ax\n~empty s as es\nirreflexive x as ix\nempty x \\ id as ex\nflag ~empty [s] as some\n"
        );
        let model = model(&text);
        let mut session = Session::new(&model);
        for _ in 0..3 {
            let skeleton = sample::skeleton(&mut random, &v, &ids);
            let mut run = session.start(&skeleton).unwrap();
            for _ in 0..2 {
                let (rf, co) = sample::choice(&mut random, &skeleton);
                let naive = Naive { skeleton: &skeleton, rf: &rf, co: &co, tags: &tags };
                let pairs = naive.relation(&exp, &Pairs::new());
                let events = naive.set(&set);
                let allowed = run.allows(&rf, &co).unwrap();
                let verdict = run.verdict(&rf, &co).unwrap();
                let context = || format!("seed {seed}\n{text}\n{skeleton:?}\nrf {rf:?}\nco {co:?}");
                if let Some(x) = run.defined_relation("x").unwrap() {
                    assert_eq!(x.pairs().collect::<Pairs>(), pairs, "{}", context());
                }
                let s = run.defined_relation("s").unwrap().expect("a set");
                assert_eq!(
                    s.pairs().map(|p| p.0).collect::<BTreeSet<_>>(),
                    events,
                    "{}",
                    context()
                );
                let relation = Relation::from_pairs(skeleton.len(), pairs.iter().copied());
                let acyclic = relation.is_acyclic();
                let loops = pairs.iter().any(|p| p.0 == p.1);
                let first = [
                    (acyclic, "ax"),
                    (!events.is_empty(), "es"),
                    (!loops, "ix"),
                    (pairs.iter().all(|p| p.0 == p.1), "ex"),
                ];
                let wanted = first.iter().find(|f| !f.0).map(|f| f.1.to_string());
                assert_eq!(
                    verdict.failed.as_ref().map(|f| f.axiom.clone()),
                    wanted,
                    "{}",
                    context()
                );
                assert_eq!(allowed, wanted.is_none(), "{}", context());
                assert_eq!(verdict.allowed, allowed, "{}", context());
                if allowed {
                    assert_eq!(verdict.flags, ["some"], "{}", context());
                }
            }
        }
    }
}

fn store_buffering() -> (Skeleton, Relation, Relation) {
    let (v, _) = vocabulary();
    let events = vec![
        Event::initial(0, 0),
        Event::initial(1, 0),
        Event::access(0, 0, EventKind::Write, 0, 1),
        Event::access(0, 1, EventKind::Read, 1, 0),
        Event::access(1, 0, EventKind::Write, 1, 1),
        Event::access(1, 1, EventKind::Read, 0, 0),
    ];
    let s = Skeleton::new(&v, events);
    (s, Relation::from_pairs(6, [(1, 3), (0, 5)]), Relation::from_pairs(6, [(0, 2), (1, 4)]))
}

/// Returns the violated axiom of store buffering under a model, and the events of its cycle, each
/// with the relation to the next one.
fn reason_of(text: &str) -> (String, BTreeSet<(usize, String)>) {
    let model = model(text);
    let (s, rf, co) = store_buffering();
    let mut session = Session::new(&model);
    let verdict = session.start(&s).unwrap().verdict(&rf, &co).unwrap();
    let failed = verdict.failed.expect("it is not sequentially consistent");
    let around = failed.events.iter().copied().zip(failed.edges).collect();
    (failed.axiom.to_string(), around)
}

/// Returns the cycle of store buffering in program order and from-reads.
fn cycle() -> BTreeSet<(usize, String)> {
    [(2, "po"), (3, "fr"), (4, "po"), (5, "fr")].map(|(e, l)| (e, l.to_string())).into()
}

/// The reason is a cycle, and its events are related as stated.
#[test]
fn a_reason_is_a_cycle() {
    let (axiom, around) =
        reason_of("let com = rf | co | fr\nlet ghb = po | com\nacyclic ghb as sc");
    assert_eq!(around, cycle());
    assert_eq!(axiom, "sc");
}

/// Takes the parts of an access for one event of the cycle.
#[test]
fn a_reason_has_no_steps_inside_an_access() {
    let (_, around) =
        reason_of("let com = rf | co | fr\nlet ghb = po | com\nacyclic ghb; si as sc");
    assert_eq!(around, cycle());
}

/// An order extends a relation on all events: a path through events outside the set counts.
#[test]
fn orders_extend_paths_through_other_events() {
    let through = "((po & (R * W)); (po & (W * R)))";
    let chosen = |name: &str| {
        format!("with s from {name}(R, (po & (R * W)) | (po & (W * R)))\nempty {through} & s as a")
    };
    let wanted = model(&format!("empty {through} as a"));
    let computed = "let f(s, r) = linearisations(s, r)\n";
    let models = [model(&chosen("linearisations")), model(&format!("{computed}{}", chosen("f")))];
    let (v, _) = vocabulary();
    let mut counts = [0, 0];
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let s = sample::skeleton(&mut random, &v, &[]);
        let (rf, co) = sample::choice(&mut random, &s);
        let allowed = |m| Session::new(m).start(&s).unwrap().allows(&rf, &co).unwrap();
        let expected = allowed(&wanted);
        assert!(models.iter().all(|m| allowed(m) == expected), "seed {seed}");
        counts[usize::from(expected)] += 1;
    }
    assert!(counts.iter().all(|c| *c > 5), "{counts:?}");
}

/// A memory order that is called `co` is chosen as under any other name.
#[test]
fn memory_orders_may_have_the_name_of_coherence() {
    let text = |name: &str| {
        format!(
            "let co0 = loc & (IW * (W \\ IW))\nwith {name} from linearisations(W, co0)\n\
             let fr = (rf^-1; ({name} & loc)) \\ id\nacyclic po | rf | {name} | fr as a"
        )
    };
    let [named, other, short] = [
        text("co"),
        format!("{}\nempty (mo & loc) \\ co", text("mo")),
        "acyclic po | rf | co | (rf^-1; co) \\ id as sc".to_string(),
    ]
    .map(|t| model(&t));
    let (v, _) = vocabulary();
    let mut counts = [0, 0];
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let s = sample::skeleton(&mut random, &v, &[]);
        let (rf, co) = sample::choice(&mut random, &s);
        let allowed = |m| Session::new(m).start(&s).unwrap().allows(&rf, &co).unwrap();
        let expected = allowed(&short);
        assert!(allowed(&named) == expected && allowed(&other) == expected, "seed {seed}");
        counts[usize::from(expected)] += 1;
    }
    assert!(counts.iter().all(|c| *c > 10), "{counts:?}");
}

/// Compares the coherence orders of the herd tools' library (inlined here) with the primitive.
#[test]
fn orders_of_a_recursive_function_are_those_of_the_primitive() {
    let program = "
        let locs (pco, wss) = let rec go wss = match wss with || {} -> {} || ws ++ wss -> linearisations(ws, pco) ++ go wss end in go wss
        let cross =
          let rec all (k, ys, oss) = match oss with
          || {} -> ys ++ k
          || os ++ oss ->
             let rec each (k, os) = match os with
             || {} -> k
             || o ++ os -> each (all (k, o | ys, oss), os)
             end in each (k, os)
          end in fun oss -> all ({}, 0, oss)
        let orders(s, pco) = cross (locs (pco, classes-loc s))
        with co from orders(W, loc & (IW * (W \\ IW)))
        let fr = (rf^-1; co) \\ id
        acyclic po | rf | co | fr as sc";
    let short = "let fr = (rf^-1; co) \\ id\nacyclic po | rf | co | fr as sc";
    let chosen = "with mine from linearisations(W, co)\nempty co \\ mine\nempty (mine & loc) \\ co\nacyclic po | rf | co | (rf^-1; co) \\ id as sc";
    let models = [model(program), model(short), model(chosen)];
    assert!(models[0].chooses_coherence() && !models[1].chooses_coherence());
    let (v, _) = vocabulary();
    let mut allowed = 0;
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let s = sample::skeleton(&mut random, &v, &[]);
        let (rf, co) = sample::choice(&mut random, &s);
        let answers: Vec<bool> = models
            .iter()
            .map(|m| Session::new(m).start(&s).unwrap().allows(&rf, &co).unwrap())
            .collect();
        assert!(answers.iter().all(|a| *a == answers[1]), "seed {seed}: {answers:?}");
        allowed += usize::from(answers[1]);
        // An order in which the initial write is not first is not one of the model's.
        let back = Relation::from_pairs(s.len(), co.pairs().map(|(a, b)| (b, a)));
        if !co.is_empty() {
            assert!(
                !Session::new(&models[0]).start(&s).unwrap().allows(&rf, &back).unwrap(),
                "seed {seed}"
            );
        }
    }
    assert!(allowed > 20, "{allowed}");
}

/// An axiom inside a `forall` over a set that may be empty implies nothing.
#[test]
fn axioms_for_each_element_imply_no_coherence() {
    let axiom = "acyclic (po & loc) | rf | co | fr";
    assert!(model(axiom).is_coherent());
    assert!(model(&format!("with x from (po ++ (0 ++ {{}}))\n{axiom} | x & 0")).is_coherent());
    for body in ["", "with x from (po ++ (0 ++ {})) "] {
        let more = if body.is_empty() { "" } else { " | x" };
        let text = format!("forall e in classes([F]) do {body}{axiom}{more} end");
        assert!(!model(&text).is_coherent(), "{text}");
    }
}

#[test]
fn procedures_tags_and_variants() {
    let text = "
        enum orders = 'acq || 'rel
        instructions R[{'acq}]
        let pick t = match t with || 'acq -> Acq || _ -> Rel end
        procedure disjoint(a, b) = empty a & b end
        forall t in {'acq, 'rel} do call disjoint([pick t], [F]) as apart end
        let rec walk(a, b) = match a with || {} -> b || e ++ rest -> walk(rest, e ++ b) end
        let copy = walk(Acq, {})
        empty (copy \\ Acq) | (Acq \\ copy) as copied
        if \"mixed\" && not \"other\" acyclic po as one else irreflexive id as two end
        empty (if 'acq in orders then 0 else id) as tags
        empty (if \"other\" || not \"mixed\" then id else 0)
        let events = tag2events('acq)
        empty events \\ Acq as same
        let absent = try Nothing with emptyset
        empty absent";
    let text = format!("let emptyset = domain 0\n{text}");
    let m = model(&text);
    let names: Vec<&str> = m.axioms().collect();
    assert_eq!(names[..4], ["apart", "apart", "copied", "one"]);
    let (v, tags) = vocabulary();
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let s = sample::skeleton(&mut random, &v, &[tags[0].1]);
        let (rf, co) = sample::choice(&mut random, &s);
        let mut clash = s.set(tags[0].1).clone();
        clash.intersect(s.set(SetId::FENCES));
        let allowed = Session::new(&m).start(&s).unwrap().allows(&rf, &co).unwrap();
        assert_eq!(allowed, clash.is_empty(), "seed {seed}");
    }
}

#[test]
fn includes_inside_themselves_end() {
    let files = |name: &str| match name {
        "stdlib.cat" => Some("let po-loc = po & loc".to_string()),
        "a.cat" => Some("A\ninclude \"b.cat\"\nlet a = b".to_string()),
        "b.cat" => Some("include \"a.cat\"\nlet b = po-loc".to_string()),
        _ => None,
    };
    let mut sources = SourceMap::new();
    let text = "Name \"of it\"\ninclude \"a.cat\"\ninclude \"b.cat\"\nacyclic a";
    let m = CatModel::compile(&mut sources, "m.cat", text, &files, &vocabulary().0, &[]).unwrap();
    assert_eq!((m.name(), m.axioms().collect::<Vec<_>>()), ("of it", vec!["acyclic a"]));
    let e =
        CatModel::compile(&mut sources, "m.cat", "include \"c.cat\"", &files, &vocabulary().0, &[])
            .unwrap_err();
    assert!(
        e.render(&sources).contains("m.cat:1:1: error: the file `c.cat` is not found"),
        "{}",
        e.render(&sources)
    );
}

#[test]
fn errors_have_places() {
    let cases = [
        ("acyclic po | R", "test.cat:1:14: error: this is a set of events: expected a relation"),
        ("let x = po\nacyclic x | pp", "test.cat:2:13: error: unknown name `pp`"),
        ("let x = [po]", "test.cat:1:10: error: this is a relation: expected a set of events"),
        ("let f(a, b) = a;b\nacyclic f(po)", "test.cat:2:11: error: expected a tuple of 2"),
        (
            "acyclic po |",
            "test.cat:1:13: error: unexpected the end of the file: expected an expression",
        ),
        ("let = po", "test.cat:1:5: error: unexpected `=`: expected a name"),
        ("(* no end", "test.cat:1:1: error: this comment is not closed"),
        ("acyclic po §", "test.cat:1:12: error: `§` is not valid in the cat language"),
        ("acyclic 'tag", "test.cat:1:9: error: this is a tag: expected a relation"),
        ("call nothing(po)", "test.cat:1:1: error: `nothing` is not a procedure"),
        ("let f(x) = f(x)\nacyclic f(po)", "test.cat:1:12: error: unknown name `f`"),
        (
            "with x from po",
            "test.cat:1:13: error: this is a relation: expected a set of relations to choose from",
        ),
        (
            "let w = match po with || {} -> 0",
            "test.cat:1:33: error: unexpected the end of the file: expected `||`",
        ),
    ];
    for (text, wanted) in cases {
        let e = compile(text).err().unwrap_or_else(|| panic!("`{text}` compiles"));
        assert!(e.starts_with(wanted), "`{text}` gives {e}");
    }
}

/// Errors that depend on the execution have positions as well.
#[test]
fn late_errors_have_places() {
    let (s, rf, co) = store_buffering();
    let run = |text: &str| {
        let m = model(text);
        let mut session = Session::new(&m);
        let mut sources = SourceMap::new();
        sources.add("test.cat", text);
        let out = session.start(&s).and_then(|mut r| r.allows(&rf, &co));
        out.map_err(|e| e.render(&sources))
    };
    let e = run("let rec x = po \\ x\nacyclic x").unwrap_err();
    assert!(e.contains("test.cat:1:9: error: this `let rec` has no fixed point"), "{e}");
    let e = run("let rec f s = match s with || {} -> M || e ++ r -> f r end\nacyclic f(R)")
        .unwrap_err();
    assert!(e.contains("test.cat:2:9: error: this is a set of events: expected a relation"), "{e}");
    let e = run("let rec f s = f s\nacyclic f(R)").unwrap_err();
    assert!(e.contains("deep here"), "{e}");
    assert_eq!(run("assert empty 0\nacyclic po"), Ok(true));
    assert!(run("assert empty po as none").unwrap_err().contains("its assertion `none` fails"));
}

/// Deeply nested texts do not crash the program.
#[test]
fn deep_texts() {
    let deep = format!("acyclic {}po{}", "(".repeat(10_000), ")".repeat(10_000));
    let m = model(&deep);
    let (s, rf, co) = store_buffering();
    assert!(Session::new(&m).start(&s).unwrap().allows(&rf, &co).unwrap());
    let many: String = (0..5_000)
        .map(|i| {
            format!(
                "let x{} = {} | rf\n",
                i,
                if i == 0 { "po".to_string() } else { format!("x{};x{}", i - 1, i - 1) }
            )
        })
        .collect();
    model(&many);
}

/// A statement of a random model.
enum Statement {
    /// A test: its kind, true if negated, its relation, and the name if it is a flag.
    Test(&'static str, bool, Open, Option<String>),
    /// `with x from …`.
    With(String, Vec<Open>),
    /// `forall x in … do … end`.
    Forall(String, Vec<Open>, Vec<Statement>),
    /// A procedure with one parameter, called at once.
    Call(String, Open, Vec<Statement>),
}

/// A relation, and the name of the variable that its `v` stands for.
type Open = (naive::R, String);

/// A maker of random statements.
struct Maker {
    random: Random,
    count: usize,
}

impl Maker {
    fn fresh(&mut self, letter: &str) -> String {
        self.count += 1;
        format!("{letter}{}", self.count)
    }
    fn exp(&mut self, scope: &[String]) -> Open {
        if scope.is_empty() || self.random.chance(1, 3) {
            return (naive::relation(&mut self.random, 2, false), "v".into());
        }
        let var = self.random.choose(scope).clone();
        (naive::relation(&mut self.random, 2, true), var)
    }
    fn list(&mut self, scope: &[String]) -> Vec<Open> {
        (0..self.random.below(4)).map(|_| self.exp(scope)).collect()
    }
    fn body(&mut self, scope: &mut Vec<String>, depth: usize, flags: bool) -> Vec<Statement> {
        let mut out = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let pick = self.random.below(if depth == 0 { 5 } else { 9 });
            out.push(match pick {
                0..=4 => {
                    let kind = *self.random.choose(&["acyclic", "irreflexive", "empty"]);
                    let negated = self.random.chance(1, 3);
                    let exp = self.exp(scope);
                    let flag = flags && self.random.chance(1, 2);
                    let name = flag.then(|| self.fresh("flag"));
                    Statement::Test(kind, negated, exp, name)
                }
                5 | 6 => {
                    let list = self.list(scope);
                    let list = if list.is_empty() { vec![self.exp(scope)] } else { list };
                    let x = self.fresh("x");
                    scope.push(x.clone());
                    Statement::With(x, list)
                }
                7 => {
                    let list = self.list(scope);
                    let x = self.fresh("x");
                    let mut inner = scope.clone();
                    inner.push(x.clone());
                    Statement::Forall(x, list, self.body(&mut inner, depth - 1, false))
                }
                _ => {
                    let exp = self.exp(scope);
                    let x = self.fresh("x");
                    let mut inner = scope.clone();
                    inner.push(x.clone());
                    Statement::Call(x, exp, self.body(&mut inner, depth - 1, flags))
                }
            });
        }
        out
    }
}

/// Returns the text of a relation, with the variable for `v`.
fn relation_text((exp, var): &Open) -> String {
    let text = exp.to_string();
    let mut out = String::new();
    let chars: Vec<char> = text.chars().collect();
    for (i, c) in chars.iter().enumerate() {
        let word = |c: Option<&char>| c.is_some_and(|c| c.is_alphanumeric());
        let alone = *c == 'v'
            && !word(i.checked_sub(1).and_then(|j| chars.get(j)))
            && !word(chars.get(i + 1));
        if alone { out += var } else { out.push(*c) }
    }
    out
}

/// Adds the text of statements.
fn text_of(list: &[Statement], out: &mut String) {
    let set = |list: &[Open]| {
        list.iter().fold("{}".to_string(), |s, e| format!("({} ++ {s})", relation_text(e)))
    };
    for s in list {
        match s {
            Statement::Test(kind, negated, e, flag) => {
                let sign = if *negated { "~" } else { "" };
                let e = relation_text(e);
                *out += &match flag {
                    Some(f) => format!("flag {sign}{kind} ({e}) as {f}\n"),
                    None => format!("{sign}{kind} ({e})\n"),
                };
            }
            Statement::With(x, list) => *out += &format!("with {x} from {}\n", set(list)),
            Statement::Forall(x, list, body) => {
                *out += &format!("forall {x} in {} do\n", set(list));
                text_of(body, out);
                *out += "end\n";
            }
            Statement::Call(x, e, body) => {
                *out += &format!("procedure p{x}({x}) =\n");
                text_of(body, out);
                *out += &format!("end\ncall p{x}({})\n", relation_text(e));
            }
        }
    }
}

/// The value of each variable.
type Scope = std::collections::BTreeMap<String, Pairs>;
/// A choice of elements, with its flags.
type Choice = (Scope, BTreeSet<String>);

/// Returns the allowed choices, each extended by those of a list.
fn choices(n: &Naive<'_>, list: &[Statement], start: Vec<Choice>) -> Vec<Choice> {
    let value = |scope: &Scope, (e, v): &Open| n.relation(e, scope.get(v).unwrap_or(&Pairs::new()));
    let all = |scope: &Scope, list: &[Open]| {
        list.iter().map(|e| value(scope, e)).collect::<BTreeSet<Pairs>>()
    };
    let mut now = start;
    for s in list {
        let mut next = Vec::new();
        for (scope, flags) in now {
            match s {
                Statement::Test(kind, negated, e, flag) => {
                    let pairs = value(&scope, e);
                    let size = n.skeleton.len();
                    let relation = Relation::from_pairs(size, pairs.iter().copied());
                    let holds = match *kind {
                        "acyclic" => relation.is_acyclic(),
                        "irreflexive" => pairs.iter().all(|p| p.0 != p.1),
                        _ => pairs.is_empty(),
                    } != *negated;
                    match flag {
                        Some(f) if holds => {
                            let mut flags = flags;
                            flags.insert(f.clone());
                            next.push((scope, flags));
                        }
                        Some(_) => next.push((scope, flags)),
                        None if holds => next.push((scope, flags)),
                        None => {}
                    }
                }
                Statement::With(x, list) => {
                    for r in all(&scope, list) {
                        let mut scope = scope.clone();
                        scope.insert(x.clone(), r);
                        next.push((scope, flags.clone()));
                    }
                }
                Statement::Forall(x, list, body) => {
                    let ok = all(&scope, list).into_iter().all(|r| {
                        let mut inner = scope.clone();
                        inner.insert(x.clone(), r);
                        !choices(n, body, vec![(inner, BTreeSet::new())]).is_empty()
                    });
                    if ok {
                        next.push((scope, flags));
                    }
                }
                Statement::Call(x, e, body) => {
                    let mut inner = scope.clone();
                    inner.insert(x.clone(), value(&scope, e));
                    for (_, f) in choices(n, body, vec![(inner, flags)]) {
                        next.push((scope.clone(), f));
                    }
                }
            }
        }
        now = next;
    }
    now
}

#[test]
fn random_statements_mean_what_the_definitions_say() {
    let (v, tags) = vocabulary();
    let ids: Vec<SetId> = tags.iter().map(|t| t.1).collect();
    let mut count = [0; 2];
    for seed in 0..1500 {
        let mut maker = Maker { random: Random::new(seed), count: 0 };
        let list = maker.body(&mut Vec::new(), 2, true);
        let mut random = maker.random;
        let mut text = "let twice(a) = a;a\nlet between(s, a) = a;[s];a\n".to_string();
        text_of(&list, &mut text);
        let model = model(&text);
        let mut session = Session::new(&model);
        for _ in 0..3 {
            let skeleton = sample::skeleton(&mut random, &v, &ids);
            let mut run = session.start(&skeleton).unwrap();
            for _ in 0..3 {
                let (rf, co) = sample::choice(&mut random, &skeleton);
                let naive = Naive { skeleton: &skeleton, rf: &rf, co: &co, tags: &tags };
                let found = choices(&naive, &list, vec![(Scope::new(), BTreeSet::new())]);
                let context = || format!("seed {seed}\n{text}\n{skeleton:?}\nrf {rf:?}\nco {co:?}");
                let allowed = run.allows(&rf, &co).unwrap();
                assert_eq!(allowed, !found.is_empty(), "{}", context());
                count[usize::from(allowed)] += 1;
                if allowed {
                    let flags: BTreeSet<String> = run.flags().unwrap().into_iter().collect();
                    let all: BTreeSet<String> = found.into_iter().flat_map(|f| f.1).collect();
                    assert_eq!(flags, all, "{}", context());
                }
                let verdict = run.verdict(&rf, &co).unwrap();
                assert_eq!(verdict.allowed, allowed, "{}", context());
            }
        }
    }
    assert!(count.iter().all(|c| *c > 1000), "{count:?} forbidden and allowed");
}
