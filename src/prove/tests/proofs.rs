//! Tests of proofs of small systems; manipulated certificates are rejected.

use mu_base::limits::{Budget, Limits, Stop};
use mu_base::source::SourceMap;
use mu_cubicle::System;
use mu_prove::cube::Cube;
use mu_prove::initial::initial;
use mu_prove::oracle::Instances;
use mu_prove::parallel::Threads;
use mu_prove::rules::{Memory, Rules, translate};
use mu_prove::search::{BackwardSearch, Oracle, SearchEnd};
use mu_prove::verify::Rejection;
use mu_prove::{ProofVerdict, ProverOptions, UnknownReason, prove, verify};
use std::time::Duration;

fn system(text: &str) -> System {
    let mut map = SourceMap::default();
    let id = map.add("test.cub".to_string(), text.to_string());
    mu_cubicle::check(&mu_cubicle::parse(id, text).expect("parses")).expect("is well typed")
}

fn budget(milliseconds: u64) -> Budget {
    Budget::new(Limits { timeout: Some(Duration::from_millis(milliseconds)), ..Limits::default() })
}

fn word(system: &System, memory: Memory) -> (&'static str, String, usize) {
    let outcome =
        prove(system, ProverOptions { memory, ..ProverOptions::default() }, &budget(20_000));
    match outcome.verdict {
        ProofVerdict::Safe { certificate, .. } => ("safe", certificate, 0),
        ProofVerdict::Searched(..) => ("safe", String::new(), 0),
        ProofVerdict::Unsafe(run) => ("unsafe", String::new(), run.steps.len()),
        ProofVerdict::Unknown(why) => ("unknown", format!("{why:?}"), 0),
    }
}

const MUTEX: &str = "
type loc = Idle | Want | Crit
array PC[proc] : loc
weak array X[proc] : bool
init (p) { PC[p] = Idle && X[p] = False }
unsafe (p q) { PC[p] = Crit && PC[q] = Crit }
transition ask ([p]) requires { PC[p] = Idle } { PC[p] := Want; X[p] := True }
transition enter ([p]) requires { PC[p] = Want && FENCE forall_other q. X[q] = False } { PC[p] := Crit }
transition leave ([p]) requires { PC[p] = Crit } { PC[p] := Idle; X[p] := False }
";

#[test]
fn a_fence_makes_the_naive_mutex_safe() {
    let with = system(&MUTEX.replace("FENCE", "fence() &&"));
    let without = system(&MUTEX.replace("FENCE", ""));
    assert_eq!(word(&with, Memory::Tso).0, "safe");
    assert_eq!(word(&without, Memory::Sc).0, "safe");
    let (verdict, _, steps) = word(&without, Memory::Tso);
    assert_eq!((verdict, steps), ("unsafe", 4), "two writes in buffers, two reads");
}

#[test]
fn a_guard_of_all_others_looks_at_each_process_of_a_cube() {
    // The critical process blocks the step, whichever of two other processes of the cube it is.
    for third in [
        "PC[r] = Idle",
        "PC[r] = Want",
        "PC[r] <> Crit && X[r] = True",
        "X[r] = True",
        "X[r] = False",
    ] {
        let file = MUTEX.replace(
            "PC[q] = Crit }\ntransition ask",
            &format!("PC[q] = Crit && {third} }}\ntransition ask"),
        );
        let file = file
            .replace("unsafe (p q)", "unsafe (p q r)")
            .replace("FENCE forall_other q. X[q] = False", "forall_other q. PC[q] <> Crit");
        assert_eq!(word(&system(&file), Memory::Sc).0, "safe", "{file}");
    }
}

#[test]
fn what_is_assumed_of_several_processes_is_not_used_under_total_store_order() {
    // If writes reach memory immediately, the write of two comes first, and one process is at A
    // while another is at D. This is impossible on the machine, where both writes are issued before
    // either reaches memory.
    let file = system(
        "type loc = A | B | D
type value = None | One | Two
array PC[proc] : loc
weak var X : value
init (p) { PC[p] = A && X = None }
unsafe (p q) { PC[p] = B && PC[q] = D && p @ X = One && q @ X = One }
invariant (p q) { PC[p] = A && PC[q] = D }
transition one ([p]) requires { PC[p] = A } { PC[p] := B; X := One }
transition two ([p]) requires { PC[p] = A } { PC[p] := D; X := Two }",
    );
    assert_eq!(word(&file, Memory::Sc).0, "safe");
    let (verdict, why, steps) = word(&file, Memory::Tso);
    assert_eq!((verdict, steps), ("unsafe", 4), "{why}");
    // The place of one process is the same in both descriptions of the run.
    let own = "number_procs 2 type loc = A | B array PC[proc] : loc weak var X : bool init (p) { PC[p] = A && X = False }
unsafe (p) { PC[p] = B && p @ X = True } invariant (p) { PC[p] = B } transition t ([p]) requires { PC[p] = A } { PC[p] := B; X := True }";
    assert_eq!(word(&system(own), Memory::Tso).0, "safe");
    // Nor does the verifier use it: the certificate for sequential consistency is not valid for
    // total store order.
    let certificate =
        word(&file, Memory::Sc).1.replace("memory sc", "memory tso").replace(" X in", " p1@*.X in");
    assert!(verify(&file, &certificate, &budget(5000)).is_err());
}

#[test]
fn reads_go_back_only_as_far_as_the_order_of_writes_lets_them() {
    // Message passing is safe under total store order; with the reads swapped it is not.
    let passing = |first: &str, second: &str| {
        format!(
            "number_procs 2
type loc = L1 | L2 | L3
array PC[proc] : loc
array R[proc] : bool
array S[proc] : bool
weak var X : bool
weak var Y : bool
init (p) {{ PC[p] = L1 && R[p] = False && S[p] = False && X = False && Y = False }}
unsafe (p q) {{ p = #1 && q = #2 && PC[q] = L3 && R[q] = True && S[q] = False }}
transition w1 ([p]) requires {{ p = #1 && PC[p] = L1 }} {{ X := True; PC[p] := L2 }}
transition w2 ([p]) requires {{ p = #1 && PC[p] = L2 }} {{ Y := True; PC[p] := L3 }}
transition r1 ([p]) requires {{ p = #2 && PC[p] = L1 }} {{ R[p] := {first}; PC[p] := L2 }}
transition r2 ([p]) requires {{ p = #2 && PC[p] = L2 }} {{ S[p] := {second}; PC[p] := L3 }}
"
        )
    };
    assert_eq!(word(&system(&passing("Y", "X")), Memory::Tso).0, "safe");
    assert_eq!(word(&system(&passing("X", "Y")), Memory::Tso).0, "unsafe");
}

#[test]
fn what_unsafe_sees_is_memory_at_the_end() {
    let seen = |unsafe_: &str, transitions: &str| {
        let file = format!(
            "type loc = A | B | C array PC[proc] : loc array Saw[proc] : bool weak var X : bool
init (p) {{ PC[p] = A && X = False && Saw[p] = False }} unsafe (p q) {{ {unsafe_} }} {transitions}"
        );
        word(&system(&file), Memory::Tso).0
    };
    let write = "transition write ([p]) requires { PC[p] = A } { PC[p] := B; X := True }";
    // The write of one process may still be in its buffer. If the transition also reads, or a fence
    // follows, it is in memory.
    assert_eq!(seen("PC[p] = A && PC[q] = B && p @ X = False", write), "unsafe");
    let swap =
        "transition swap ([p]) requires { PC[p] = A && X = False } { PC[p] := B; X := True }";
    assert_eq!(seen("PC[p] = A && PC[q] = B && p @ X = False", swap), "safe");
    let then = |guard: &str| {
        format!("{write} transition after ([p]) requires {{ PC[p] = B {guard} }} {{ PC[p] := C }}")
    };
    assert_eq!(seen("PC[p] = A && PC[q] = C && p @ X = False", &then("")), "unsafe");
    assert_eq!(seen("PC[p] = A && PC[q] = C && p @ X = False", &then("&& fence()")), "safe");
    // At the end, only the writing process can read a value that is not in memory.
    let look = format!(
        "{write} transition look ([p]) requires {{ PC[p] = A && X = True }} {{ PC[p] := C; Saw[p] := True }}"
    );
    assert_eq!(seen("PC[p] = A && Saw[q] = True && p @ X = False", &look), "safe");
    assert_eq!(seen("PC[p] = B && PC[q] = A && p @ X = True && q @ X = False", write), "unsafe");
    assert_eq!(seen("PC[p] = A && PC[q] = A && p @ X = True && q @ X = False", write), "safe");
    // The verifier considers that the write may be in the buffer at the end.
    let pending = system(&format!(
        "type loc = A | B array PC[proc] : loc weak var X : bool init (p) {{ PC[p] = A && X = False }}
unsafe (p q) {{ PC[p] = A && PC[q] = B && p @ X = False }} {write}"
    ));
    let certificate = "mu-check certificate 1\nmemory tso\nnever p1 p2\n  PC[p1] in {A}\n  PC[p2] in {B}\n  p1@*.X in {False}\n";
    assert!(matches!(
        verify(&pending, certificate, &budget(5000)),
        Err(Rejection::Consecution { cube: 0, transition: 0 })
    ));
    // Two processes add one each: the second to read is the second to write.
    let twice = system(
        "number_procs 2 type loc = A | B array PC[proc] : loc weak var X : int init (p) { PC[p] = A && X = 0 }
unsafe (p q) { PC[p] = B && PC[q] = B && p @ X <> 2 } transition add ([p]) requires { PC[p] = A } { PC[p] := B; X := X + 1 }",
    );
    assert_eq!(word(&twice, Memory::Tso).0, "safe");
}

#[test]
fn what_is_assumed_of_three_processes_is_not_used_where_there_are_two() {
    let file = |most: &str| {
        system(&format!(
            "{most} type loc = A | B array PC[proc] : loc init (p) {{ PC[p] = A }} unsafe (p) {{ PC[p] = B }}
invariant (p q r) {{ PC[p] = B }} transition t (p) requires {{ PC[p] = A }} {{ PC[p] := B }}"
        ))
    };
    assert_eq!(word(&file("number_procs 2"), Memory::Sc).0, "unsafe");
    assert_eq!(word(&file(""), Memory::Sc).0, "unsafe");
}

#[test]
fn large_systems_are_handled_or_refused_by_name() {
    let step = |i: usize| {
        format!("transition t{i} (p) requires {{ N[p] = {i} }} {{ N[p] := {} }}\n", i + 1)
    };
    let steps: String = (0..10_000).map(step).collect();
    let many =
        format!("array N[proc] : int init (p) {{ N[p] = 0 }} unsafe (p) {{ N[p] < 0 }} {steps}");
    assert_eq!(word(&system(&many), Memory::Sc).0, "safe");
    let cases: String = (0..100_000).map(|i| format!("| X = {i} : {}\n", i + 2)).collect();
    let wide = format!(
        "var X : int init () {{ X = 0 }} unsafe () {{ X = 200001 }} transition t (p) {{ X := case {cases} }}"
    );
    let (verdict, why, _) = word(&system(&wide), Memory::Sc);
    assert_eq!((verdict, why.as_str()), ("unknown", "Trouble(Cases)"));
    let names: Vec<String> = (0..30).map(|i| format!("p{i}")).collect();
    let all: Vec<String> = names.iter().map(|p| format!("B[{p}] = True")).collect();
    let deep = format!(
        "array B[proc] : bool init (p) {{ B[p] = False }} unsafe ({}) {{ {} }} transition t (p) {{ B[p] := True }}",
        names.join(" "),
        all.join(" && ")
    );
    let (verdict, why, _) = word(&system(&deep), Memory::Sc);
    assert_eq!((verdict, why.as_str()), ("unknown", "Trouble(Processes)"));
    // Infinitely many predecessors.
    let endless = system(
        "array X[proc] : int var T : int init (p) { X[p] = 0 && T = 0 } unsafe (p q) { X[p] = X[q] && X[p] = T && T = 5 }
transition t (p q) requires { X[p] < X[q] } { X[p] := X[p] + X[q] + 1; T := T + X[q] } transition u (p) { X[p] := X[p] + 2; T := T - 1 }",
    );
    let options =
        ProverOptions { memory: Memory::Sc, work: Some(2000), ..ProverOptions::default() };
    let verdict = prove(&endless, options, &Budget::default()).verdict;
    assert!(
        matches!(verdict, ProofVerdict::Unknown(UnknownReason::Stopped(Stop::States))),
        "{verdict:?}"
    );
}

#[test]
fn numbers_and_orders_are_proved() {
    let semaphore = |first: &str| {
        system(&format!(
            "
type loc = Idle | Crit
array PC[proc] : loc
var S : int
init (p) {{ PC[p] = Idle && S = {first} }}
unsafe (p q) {{ PC[p] = Crit && PC[q] = Crit }}
transition enter (p) requires {{ PC[p] = Idle && 0 < S }} {{ PC[p] := Crit; S := S - 1 }}
transition leave (p) requires {{ PC[p] = Crit }} {{ PC[p] := Idle; S := S + 1 }}
"
        ))
    };
    assert_eq!(word(&semaphore("1"), Memory::Sc).0, "safe");
    assert_eq!(word(&semaphore("2"), Memory::Sc).0, "unsafe");
    let first = system(
        "
type loc = Idle | Want | Crit
array PC[proc] : loc
init (p) { PC[p] = Idle }
unsafe (p q) { PC[p] = Crit && PC[q] = Crit }
transition ask (p) requires { PC[p] = Idle && forall_other q. (PC[q] = Idle || p < q) } { PC[p] := Want }
transition enter (p) requires { PC[p] = Want && forall_other q. (PC[q] = Idle || p < q) } { PC[p] := Crit }
transition leave (p) requires { PC[p] = Crit } { PC[p] := Idle }
",
    );
    assert_eq!(
        word(&first, Memory::Sc).0,
        "unsafe",
        "a lower process may come while a higher one is in"
    );
}

#[test]
fn a_certificate_without_a_cube_or_with_a_wrong_one_is_refused() {
    let system = system(&MUTEX.replace("FENCE", "fence() &&"));
    let (_, certificate, _) = word(&system, Memory::Tso);
    assert!(verify(&system, &certificate, &Budget::default()).is_ok());
    let blocks: Vec<&str> = certificate.split_inclusive('\n').collect();
    let starts: Vec<usize> =
        (0..blocks.len()).filter(|i| blocks[*i].starts_with("never")).collect();
    assert!(starts.len() > 3, "{certificate}");
    for (i, from) in starts.iter().enumerate() {
        let to = starts.get(i + 1).copied().unwrap_or(blocks.len());
        let without = [&blocks[..*from], &blocks[to..]].concat().concat();
        assert!(
            verify(&system, &without, &Budget::default()).is_err(),
            "cube {i} is not needed in\n{certificate}"
        );
    }
    let reachable = format!("{certificate}never p1\n  PC[p1] in {{Crit}}\n");
    assert!(verify(&system, &reachable, &Budget::default()).is_err(), "a reachable cube");
    let initial = format!("{certificate}never p1\n  PC[p1] in {{Idle}}\n");
    assert!(verify(&system, &initial, &Budget::default()).is_err(), "an initial cube");
    for wrong in [
        "",
        "mu-check certificate 1\n",
        "mu-check certificate 1\nmemory tso\nnever p1\n  Nothing in {True}\n",
    ] {
        assert!(verify(&system, wrong, &Budget::default()).is_err());
    }
}

/// Proposes invalid approximations: larger cubes that contain initial states.
struct Careless<'a>(&'a Rules, usize);

impl Oracle for Careless<'_> {
    fn instead(&mut self, cube: &Cube) -> Vec<Cube> {
        let alone = cube
            .atoms
            .iter()
            .filter_map(|a| Cube::new(&self.0.signature, cube.processes, vec![a.clone()]));
        let wrong: Vec<Cube> =
            alone.filter(|c| matches!(initial(self.0, c), Ok(Some(_)))).collect();
        self.1 += wrong.len();
        wrong
    }
}

#[test]
fn an_approximation_that_initial_states_are_in_is_not_taken() {
    let rules = translate(&system(&MUTEX.replace("FENCE", "")), Memory::Sc)
        .unwrap_or_else(|_| panic!("is handled"));
    let (limits, mut oracle) = (budget(20_000), Careless(&rules, 0));
    let mut search = BackwardSearch::new(&rules, &limits, 1.into());
    let SearchEnd::Fixpoint(cubes) = search.run(&mut oracle, 1000) else {
        panic!("without approximations the search ends")
    };
    assert_eq!((search.counts.approximations, oracle.1 > 0), (0, true));
    assert!(cubes.iter().all(|c| matches!(initial(&rules, c), Ok(None))));
}

/// Tickets need comparisons that no pre-image of an unsafe cube mentions: that two differ, and that
/// waiting ones are not served yet.
#[test]
fn comparisons_of_templates_that_confirm_each_other_are_part_of_a_proof() {
    let file = system(
        "type place = Idle | Wait | Critical
array At[proc] : place
array Mine[proc] : int
var Next : int
var Serving : int
init (p) { At[p] = Idle && Mine[p] = 0 && Next = 0 && Serving = 0 }
unsafe (p q) { At[p] = Critical && At[q] = Critical }
transition take (p) requires { At[p] = Idle } { At[p] := Wait; Mine[p] := Next; Next := Next + 1 }
transition enter (p) requires { At[p] = Wait && Mine[p] = Serving } { At[p] := Critical }
transition leave (p) requires { At[p] = Critical } { At[p] := Idle; Serving := Serving + 1 }",
    );
    let (verdict, certificate, _) = word(&file, Memory::Sc);
    assert_eq!(verdict, "safe", "{certificate}");
    let queries = verify(&file, &certificate, &budget(20_000)).unwrap_or_else(|r| panic!("{r:?}"));
    assert!(queries.cubes > 4, "{certificate}");
    // Without the comparison of two tickets, the rest is not inductive.
    let cubes: Vec<&str> = certificate.split("\nnever").collect();
    let retained: Vec<&str> =
        cubes.iter().copied().filter(|c| c.matches("Mine[").count() < 2).collect();
    assert!(retained.len() < cubes.len(), "{certificate}");
    assert!(
        matches!(
            verify(&file, &retained.join("\nnever"), &budget(20_000)),
            Err(Rejection::Consecution { .. })
        ),
        "{certificate}"
    );
}

/// A proof is found after some approximations were refuted; none of them is proposed again.
#[test]
fn what_was_refuted_is_not_proposed_again() {
    // Of three atoms, two places together seem unreachable in the instances; after a refutation
    // they are not proposed again.
    let file = system(&MUTEX.replace("FENCE", "").replace(
        "PC[q] = Crit }\ntransition ask",
        "PC[q] = Crit && X[p] = True }\ntransition ask",
    ));
    let rules = translate(&file, Memory::Sc).unwrap_or_else(|_| panic!("is handled"));
    let mut oracle = Instances::new(&rules, 1.into());
    oracle.grow(2, 1000, &|| false);
    let cube = mu_prove::initial::claims(&rules, &rules.unsafes)
        .unwrap_or_else(|_| panic!("has cubes"))
        .remove(0);
    let proposed = oracle.instead(&cube);
    assert_eq!(
        (cube.atoms.len(), proposed.iter().map(|c| c.atoms.len()).collect::<Vec<_>>()),
        (3, vec![2])
    );
    oracle.refute(proposed[0].clone(), &[]);
    assert!(oracle.has_refuted(&proposed[0]) && oracle.instead(&cube) != proposed);
    let system = system(include_str!("../../../specs/cubicle/lamport_full.cub"));
    let outcome = prove(
        &system,
        ProverOptions { memory: Memory::Sc, ..ProverOptions::default() },
        &budget(20_000),
    );
    assert!(matches!(outcome.verdict, ProofVerdict::Safe { .. }), "{:?}", outcome.verdict);
    assert!(
        outcome.refuted > 0 && outcome.repeated == 0,
        "{} refuted, {} again",
        outcome.refuted,
        outcome.repeated
    );
}

#[test]
fn a_cube_without_processes_is_judged_where_there_is_one() {
    // With one process the run `set` is unsafe. Both certificates state that no process differs
    // from `Turn`, which is true, and that `Bad` needs such a process. This seems to follow if a
    // cube without named processes does not imply that there is a process.
    let system = system(
        "var Turn : proc
var Bad : bool
var Start : bool
init (p) { Turn = p && Bad = False }
unsafe () { Bad = True }
transition set () requires { Start = True } { Bad := True }
",
    );
    assert_eq!(word(&system, Memory::Sc), ("unsafe", String::new(), 1));
    let never = "mu-check certificate 1\nmemory sc\nnever p1\n  Turn in {other}\n";
    assert_eq!(verify::verify(&system, never, &budget(20_000)), Err(verify::Rejection::Safety(0)));
    let bad = format!("{never}never\n  Turn in {{other}}\n  Bad in {{True}}\n");
    assert_eq!(
        verify::verify(&system, &bad, &budget(20_000)),
        Err(verify::Rejection::Consecution { cube: 1, transition: 0 })
    );
}

#[test]
fn a_case_is_split_on_a_fact_with_symbols_outside_the_cube() {
    // Before `lower`, `Flag` and `Sent` of `q` are open: one cube of the invariant has them
    // different, another one equal.
    let system = system(
        "type loc = A | B | C
array Pc[proc] : loc
array Flag[proc] : bool
array Sent[proc] : bool
var Count : int
var Y : loc
init (p) { (Pc[p] = A || Pc[p] = B) && Flag[p] = False && Count = 0 && Y = A && Sent[p] = False }
unsafe (x) { Count > 1 && Flag[x] <> Sent[x] }
unsafe (x y) { Pc[y] = C && Sent[x] = Flag[x] && Count > 2 }
transition raise ([p] q) requires { Pc[p] = A && Sent[p] = True } { Pc[q] := B; Flag[p] := True }
transition lower ([p] q) requires { Pc[p] = A } { Pc[p] := Pc[p]; Flag[q] := False; Sent[q] := False }
transition move ([p]) requires { Pc[p] = A } { Pc[p] := C; Flag[j] := case | p < p : True | Pc[j] = Y : True | _ : Flag[j] }
",
    );
    assert_eq!(word(&system, Memory::Sc).0, "safe");
}

#[test]
fn a_certificate_does_not_depend_on_the_number_of_threads() {
    for (text, cubes) in [
        (include_str!("../../../specs/challenges/dijkstra.cub"), mu_prove::search::MANY_CUBES),
        (include_str!("../../../specs/challenges/seqlock.cub"), 0),
    ] {
        let system = system(text);
        let of = |count: usize| {
            // Even if there is little to distribute.
            let threads = Threads { count, from: Duration::ZERO };
            let outcome = prove(
                &system,
                ProverOptions { threads, ..ProverOptions::default() },
                &budget(60_000),
            );
            let ProofVerdict::Safe { certificate, queries } = outcome.verdict else {
                panic!("{count} threads: {:?}", outcome.verdict)
            };
            (certificate, queries.decisions, outcome.counts, outcome.searches, outcome.refuted)
        };
        let one = of(1);
        assert!(one.2.nodes > cubes, "{:?}: nothing is shared", one.2);
        assert!(of(2) == one && of(3) == one, "two or three threads find something else");
    }
}

#[test]
fn states_on_refuted_runs_refute_other_approximations() {
    // Its instances are too large to be explored up to a writer's second version: most
    // approximations are refuted by states learnt from earlier ones.
    let system = system(include_str!("../../../specs/challenges/seqlock.cub"));
    let outcome = prove(
        &system,
        ProverOptions { work: Some(20_000), ..ProverOptions::default() },
        &budget(60_000),
    );
    assert!(matches!(outcome.verdict, ProofVerdict::Safe { .. }), "{:?}", outcome.verdict);
    assert!(outcome.refuted > 0, "{outcome:?}");
}

#[test]
fn any_value_stored_in_memory_is_seen() {
    let file = system(
        "type loc = A | B
array PC[proc] : loc
weak var Mode : loc
weak var X : bool
init (p) { PC[p] = A && Mode = A && X = False }
unsafe (x y z) { PC[z] <> A }
transition t1 ([p]) { X := . }
transition t2 ([p]) { PC[p] := Mode; Mode := case | X = True : B }",
    );
    assert_eq!(word(&file, Memory::Tso).0, "unsafe");
}

/// Cases for one process do not mention the others, so they do not double the number of
/// conjunctions for each of them.
#[test]
fn many_cases_of_one_process_are_verified() {
    let values: Vec<String> = (0..60).map(|i| format!("V{i}")).collect();
    let cases: Vec<String> =
        (0..57).map(|i| format!("| S[x] = V{i} && x = p : V{}", i + 1)).collect();
    let text = format!(
        "type t = {}\narray S[proc] : t\ninit (p) {{ S[p] = V0 }}\nunsafe (p q) {{ S[p] = V59 && S[q] = V59 }}\n\
         transition w ([p]) requires {{ S[p] = V0 }} {{ S[x] := case {} | _ : S[x] }}\n",
        values.join(" | "),
        cases.join(" ")
    );
    assert_eq!(word(&system(&text), Memory::Tso).0, "safe");
}

/// The unsafe claim mentions nine processes: their choices are tried one by one, and the first is
/// right.
#[test]
fn nine_processes_are_unsafe_together() {
    let names: Vec<String> = (0..9).map(|i| format!("p{i}")).collect();
    let all: Vec<String> = names.iter().map(|p| format!("F[{p}] = True")).collect();
    let text = format!(
        "array F[proc] : bool\ninit (p) {{ F[p] = False }}\nunsafe ({}) {{ {} }}\n\
         transition s ([p]) requires {{ F[p] = False }} {{ F[p] := True }}\n",
        names.join(" "),
        all.join(" && ")
    );
    let (verdict, _, steps) = word(&system(&text), Memory::Sc);
    assert_eq!((verdict, steps), ("unsafe", 9));
}

/// No pre-image states that two processes have two numbers: that follows from two of its atoms, or
/// from their order.
#[test]
fn locks_with_tickets_are_safe() {
    let system = system(include_str!("../../../specs/challenges/ticket.cub"));
    for memory in [Memory::Sc, Memory::Tso] {
        assert_eq!(word(&system, memory).0, "safe", "{memory:?}");
    }
}
