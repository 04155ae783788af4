//! Tests of the obligations in SMT-LIB: a naive solver of this file, which tries all values of the
//! cells, finds each obligation of systems of small words unsatisfiable, and obligations of wrong
//! certificates satisfiable. It shares nothing with the prover and the verifier.

use mu_base::limits::Budget;
use mu_base::source::SourceId;
use mu_cubicle::System;
use mu_prove::rules::Memory;
use mu_prove::verify::obligations;
use mu_prove::{ProofVerdict, ProverOptions, prove};
use std::collections::HashMap;

/// An expression of SMT-LIB.
#[derive(Debug)]
enum Term {
    Name(String),
    List(Vec<Term>),
}

/// Parses the expressions of a text.
fn terms(text: &str) -> Vec<Term> {
    let mut open: Vec<Vec<Term>> = vec![Vec::new()];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' => 1,
            '|' => rest[1..].find('|').expect("a closed name") + 2,
            _ => rest.find(|c: char| c.is_whitespace() || "()|".contains(c)).unwrap_or(rest.len()),
        };
        match first {
            '(' => open.push(Vec::new()),
            ')' => {
                let list = open.pop().expect("a list");
                open.last_mut().expect("balanced").push(Term::List(list));
            }
            _ => open.last_mut().expect("balanced").push(Term::Name(rest[..length].into())),
        }
        rest = rest[length..].trim_start();
    }
    assert_eq!(open.len(), 1, "unbalanced: {text}");
    open.remove(0)
}

/// Evaluates an expression, booleans as 0 and 1; `None` if it depends on constants without a value.
fn value(term: &Term, values: &HashMap<String, i64>) -> Option<i64> {
    let list = match term {
        Term::Name(name) => {
            return match name.as_str() {
                "true" => Some(1),
                "false" => Some(0),
                name => name.parse().ok().or_else(|| values.get(name).copied()),
            };
        }
        Term::List(list) => list,
    };
    let Some(Term::Name(operator)) = list.first() else { panic!("no operator: {term:?}") };
    let arguments: Vec<Option<i64>> = list[1..].iter().map(|t| value(t, values)).collect();
    match operator.as_str() {
        "and" if arguments.contains(&Some(0)) => return Some(0),
        "or" if arguments.contains(&Some(1)) => return Some(1),
        "ite" => return if arguments[0]? == 1 { arguments[1] } else { arguments[2] },
        _ => {}
    }
    let known: Vec<i64> = arguments.into_iter().collect::<Option<_>>()?;
    let truth = |b: bool| i64::from(b);
    Some(match (operator.as_str(), known.as_slice()) {
        ("and", _) => 1,
        ("or", _) => 0,
        ("not", [a]) => 1 - a,
        ("=", [a, b]) => truth(a == b),
        ("distinct", all) => truth((1..all.len()).all(|i| !all[..i].contains(&all[i]))),
        ("<=", [a, b]) => truth(a <= b),
        ("<", [a, b]) => truth(a < b),
        ("+", all) => all.iter().sum(),
        ("*", all) => all.iter().product(),
        ("-", [a]) => -a,
        ("mod", [a, b]) => a.rem_euclid(*b),
        _ => panic!("`{operator}` is not supported: {term:?}"),
    })
}

/// Returns values that satisfy a text, of constants from 0 to 3 and processes in order; `None` if
/// there are none.
fn solution(text: &str) -> Option<HashMap<String, i64>> {
    let (mut constants, mut assertions, mut values) = (Vec::new(), Vec::new(), HashMap::new());
    for term in terms(text) {
        let Term::List(mut list) = term else { panic!("a name outside a list") };
        let last = list.pop();
        match (list.as_slice(), last) {
            ([Term::Name(word), Term::Name(name), ..], _) if word == "declare-const" => {
                match name.strip_prefix('p').and_then(|n| n.parse().ok()) {
                    Some(process) => {
                        values.insert(name.clone(), process);
                    }
                    None => constants.push(name.clone()),
                }
            }
            ([Term::Name(word)], Some(assertion)) if word == "assert" => assertions.push(assertion),
            _ => {}
        }
    }
    assert!(!assertions.is_empty() && text.ends_with("(check-sat)\n"), "{text}");
    fn search(
        constants: &[String],
        assertions: &[Term],
        values: &mut HashMap<String, i64>,
    ) -> bool {
        if assertions.iter().any(|a| value(a, values) == Some(0)) {
            return false;
        }
        let Some((first, rest)) = constants.split_first() else {
            return assertions.iter().all(|a| value(a, values) == Some(1));
        };
        for n in 0..4 {
            values.insert(first.clone(), n);
            if search(rest, assertions, values) {
                return true;
            }
        }
        values.remove(first);
        false
    }
    search(&constants, &assertions, &mut values).then_some(values)
}

fn parse_system(text: &str) -> System {
    let file = mu_cubicle::parse(SourceId::FIRST, text).expect(text);
    mu_cubicle::check(&file).expect(text)
}

/// Returns the obligations of a certificate.
fn obligation_texts(system: &System, certificate: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut write = |name: &str, text: &str| all.push((name.to_string(), text.to_string()));
    obligations(system, certificate, &mut write).expect(certificate);
    all
}

/// Returns the numbers of obligations of the kinds, after the check that each is unsatisfiable.
fn unsatisfiable(all: &[(String, String)]) -> HashMap<String, usize> {
    let mut kinds = HashMap::new();
    for (name, text) in all {
        let found = solution(text);
        assert!(found.is_none(), "{name} is satisfiable: {found:?}\n{text}");
        let kind = name.split_once('-').expect("a number").1;
        *kinds.entry(kind.to_string()).or_default() += 1;
    }
    kinds
}

fn is_satisfiable(all: &[(String, String)], kind: &str) -> bool {
    all.iter()
        .filter(|o| o.0.split_once('-').is_some_and(|n| n.1 == kind))
        .any(|o| solution(&o.1).is_some())
}

/// Two tickets of words that wrap: the certificate counts.
const TICKETS: &str = "type t = A | B | C | D
array At[proc] : t
var X : word2
var Y : word2
array L[proc] : word2
array K[proc] : word2
init (p) { At[p] = A && X = 1 && Y = 1 && L[p] = 0 && K[p] = 0 }
unsafe (a b) { At[a] = C && At[b] = C }
transition t0 ([p])
requires { At[p] = A }
{ At[p] := B; L[p] := X; X := X + 1 }
transition t1 ([p])
requires { At[p] = B && L[p] = Y }
{ At[p] := C }
transition t2 ([p])
requires { At[p] = C }
{ At[p] := D; K[p] := Y + 1 }
transition t3 ([p])
requires { At[p] = D && X + 1 <> Y }
{ At[p] := A; Y := K[p] }
";

#[test]
fn obligations_with_counting_invariants_are_unsatisfiable() {
    let system = parse_system(TICKETS);
    let options = ProverOptions { memory: Memory::Sc, ..ProverOptions::default() };
    let ProofVerdict::Safe { certificate, .. } =
        prove(&system, options, &Budget::default()).verdict
    else {
        panic!("not safe")
    };
    let counts = certificate.lines().filter(|l| l.starts_with("count ")).count();
    assert!(counts > 0, "{certificate}");
    let all = obligation_texts(&system, &certificate);
    let kinds = unsatisfiable(&all);
    assert_eq!(kinds["count-initiation"], counts);
    // Each transition is compared with each counting invariant.
    assert!(kinds["count"] >= 4 * counts && kinds["consecution"] > 10, "{kinds:?}");
    // Without the counting facts some are satisfiable, so the facts are necessary.
    let without: Vec<(String, String)> = all
        .iter()
        .map(|(name, text)| {
            let lines = text.lines().filter(|l| !l.contains("(ite "));
            (name.clone(), lines.map(|l| format!("{l}\n")).collect())
        })
        .collect();
    assert!(is_satisfiable(&without, "consecution"));
}

#[test]
fn obligations_of_wrong_counting_invariants_are_satisfiable() {
    let text = "type t = A | B
array At[proc] : t
var X : word2
var Y : word2
init (p) { At[p] = A && X = 0 && Y = 0 }
unsafe (a) { At[a] = B && X = Y }
transition t0 ([p])
requires { At[p] = A }
{ At[p] := B; X := X + 1 }
transition t1 ([p])
requires { At[p] = B }
{ At[p] := A; Y := Y + 1 }
";
    let system = parse_system(text);
    let of = |count: &str| {
        let certificate = format!(
            "mu-check certificate 1\nmemory sc\ncount At in {count}\nnever p1\n  At[p1] in {{B}}\n  word 2 1 X + -1 Y + 0 = 0\n"
        );
        obligation_texts(&system, &certificate)
    };
    let kinds = unsatisfiable(&of("{B} = word 2 1 X + -1 Y + 0"));
    assert_eq!((kinds["count-initiation"], kinds["count"] >= 2), (1, true), "{kinds:?}");
    for (count, kind) in [
        ("{B} = word 2 1 X + -1 Y + 1", "count-initiation"),
        ("{A} = word 2 1 X + -1 Y + 0", "count-initiation"),
        ("{B} = word 2 1 X + 1 Y + 0", "count"),
        ("{B} = word 2 1 X + 0", "count"),
    ] {
        let certificate = of(count);
        assert!(is_satisfiable(&certificate, kind), "{count}: {kind}");
    }
}

#[test]
fn obligations_without_counting_invariants_are_unsatisfiable() {
    // No cube has a process, and no transition has a parameter.
    let text = "var X : word2
var Y : bool
init () { X = 0 && Y = False }
unsafe () { X = 3 }
transition t () requires { X < 2 } { X := X + 1; Y := True }
transition u () requires { X = 2 } { X := 0 }
";
    let system = parse_system(text);
    let options = ProverOptions { memory: Memory::Sc, ..ProverOptions::default() };
    let ProofVerdict::Safe { certificate, .. } =
        prove(&system, options, &Budget::default()).verdict
    else {
        panic!("not safe")
    };
    let kinds = unsatisfiable(&obligation_texts(&system, &certificate));
    assert!(kinds["initiation"] > 0 && kinds["safety"] == 1, "{kinds:?}");
}

/// Either process that `Home` contains excludes `Ready`, so both together exclude it.
#[test]
fn obligations_name_all_processes_if_the_file_limits_them() {
    let text = "number_procs 2 var Home : proc var Ready : bool var Bad : bool
init (p) { Ready = False && Bad = False }
unsafe () { Bad = True }
transition own (p) requires { Home = p && Ready = True } { Bad := True }
transition both (p q) requires { Ready = True } { Bad := True }
";
    let certificate = "mu-check certificate 1\nmemory sc\nnever\n  Bad in {True}
never p1\n  Home in {p1}\n  Ready in {True}\n";
    let system = parse_system(text);
    assert!(mu_prove::verify(&system, certificate, &Budget::default()).is_ok());
    let kinds = unsatisfiable(&obligation_texts(&system, certificate));
    assert!(kinds["consecution"] >= 2, "{kinds:?}");
    // With a third process it may be that one.
    let more = parse_system(&text.replace("number_procs 2", "number_procs 3"));
    assert!(mu_prove::verify(&more, certificate, &Budget::default()).is_err());
    assert!(is_satisfiable(&obligation_texts(&more, certificate), "consecution"));
}
