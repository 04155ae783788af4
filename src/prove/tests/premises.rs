//! Tests of the premises of a proof: processes interact only through memory, claims name the
//! observer of memory, initial states exist. Prover, verifier and machine agree on a system, or
//! prover and verifier both reject it.

use mu_base::limits::Budget;
use mu_base::source::SourceMap;
use mu_cubicle::System;
use mu_prove::premises::premises;
use mu_prove::rules::Memory;
use mu_prove::verify::Rejection;
use mu_prove::{ProofOutcome, ProofVerdict, ProverOptions, UnknownReason, prove, verify};

fn system(text: &str) -> System {
    let mut map = SourceMap::default();
    let id = map.add("test.cub".to_string(), text.to_string());
    mu_cubicle::check(&mu_cubicle::parse(id, text).expect("parses")).expect("is well typed")
}

fn outcome(system: &System, memory: Memory) -> ProofOutcome {
    prove(
        system,
        ProverOptions { memory, work: Some(30_000), ..ProverOptions::default() },
        &Budget::default(),
    )
}

/// Returns the number of processes of the run to an unsafe state.
fn run_of(system: &System, memory: Memory) -> Option<u32> {
    match outcome(system, memory).verdict {
        ProofVerdict::Unsafe(run) => Some(run.processes),
        _ => None,
    }
}

fn is_safe(system: &System, memory: Memory) -> bool {
    matches!(outcome(system, memory).verdict, ProofVerdict::Safe { .. })
}

/// Returns the reason why a proof under total store order is rejected, with the text at its
/// position.
fn refusal(text: &str) -> Option<(String, String)> {
    let refusal = premises(&system(text), Memory::Tso).err()?;
    let span = refusal.place.0;
    Some((refusal.message, text[span.start as usize..span.end as usize].to_string()))
}

const HANDSHAKE: &str = "
type place = Start | Sent | Done
type state = Free | Given | Used
array At[proc] : place
array Has[proc] : state
weak var Flag : bool
weak var Seen : bool
init (p) { At[p] = Start && Has[p] = Free && Flag = False && Seen = False }
unsafe (p) { Has[p] = Used }
transition send ([p]) requires { At[p] = Start } { Flag := True; At[p] := Sent }
transition give (GIVER) requires { At[p] = Sent && Has[q] = Free } { Has[q] := Given }
transition use ([q]) requires { Has[q] = Given && Flag = False } { Seen := True; Has[q] := Used }
";

#[test]
fn a_transition_has_one_acting_process_for_all_symbols() {
    // Each array alone has an owner, `p` and `q`; together they have none. The machine needs two
    // processes.
    let text = HANDSHAKE.replace("GIVER", "p q");
    let both = system(&text);
    assert!(is_safe(&both, Memory::Sc));
    assert_eq!(run_of(&both, Memory::Tso), Some(2));
    let (message, place) = refusal(&text).unwrap();
    assert!(message.contains("`At[p]`, `Has[q]`"), "{message}");
    assert_eq!(place, "give");
    for giver in ["[p] q", "p [q]", "q p"] {
        assert!(refusal(&HANDSHAKE.replace("GIVER", giver)).is_some(), "{giver}");
    }
    // With one process for both, which need not be the first parameter.
    let own = text
        .replace("Has[q] = Free } { Has[q]", "Has[p] = Free } { Has[p]")
        .replace("give (p q)", "give (q p)");
    assert_eq!(refusal(&own), None);
    assert!(is_safe(&system(&own), Memory::Sc));
}

#[test]
fn the_index_of_an_owner_is_the_same_in_all_transitions() {
    let text = "array Link[proc, proc] : bool weak var Flag : bool init (p q) { Link[p, q] = False && Flag = False }
unsafe (p q) { Link[p, q] = True && p @ Flag = True }
transition one ([p] q) { Link[p, q] := True } transition two ([p] q) { SECOND; Flag := False }";
    assert_eq!(refusal(&text.replace("SECOND", "Link[p, q] := False")), None);
    let (message, place) = refusal(&text.replace("SECOND", "Link[q, p] := False")).unwrap();
    assert!(message.contains("through memory only"), "{message}");
    assert!(["one", "two"].contains(&place.as_str()));
}

#[test]
fn what_no_transition_updates_is_a_constant() {
    let text =
        "var Limit : bool array Kind[proc] : bool weak var Flag : bool init (p) { Flag = False }
unsafe (p q) { Kind[p] = True && Limit = True && q @ Flag = True }
transition set ([p] q) requires { Kind[q] = True && Limit = False } { Flag := True }";
    assert_eq!(refusal(text), None);
    assert!(is_safe(&system(text), Memory::Tso));
    assert!(refusal(&format!("{text} transition change (p) {{ Kind[p] := False }}")).is_some());
    assert!(refusal(&format!("{text} transition change () {{ Limit := True }}")).is_some());
}

const STORE: &str = "type place = Before | After array At[proc] : place weak var Cell : bool
init (p) { At[p] = Before && Cell = False }
unsafe (p) { At[p] = After && READ = False }
transition store ([p]) requires { At[p] = Before } { Cell := True; At[p] := After }";

#[test]
fn a_claim_about_memory_names_who_reads_it() {
    // The store is in the buffer while memory still has the old value.
    let text = STORE.replace("READ", "Cell");
    assert_eq!(run_of(&system(&text), Memory::Tso), Some(1));
    assert!(is_safe(&system(&text), Memory::Sc));
    let (message, place) = refusal(&text).unwrap();
    assert!(message.contains("`p @ Cell`"), "{message}");
    assert_eq!(place, "unsafe");
    assert!(is_safe(&system(&STORE.replace("READ", "p @ Cell")), Memory::Tso));
}

#[test]
fn the_verifier_rejects_what_the_prover_rejects() {
    let shared = "type place = Before | Middle | After var Turn : bool array At[proc] : place weak var Flag : bool weak var Seen : bool
init (p) { At[p] = Before && Turn = False && Flag = False && Seen = False } unsafe (p) { At[p] = After }
transition write ([p]) requires { At[p] = Before } { Flag := True; Turn := True; At[p] := Middle }
transition read ([q]) requires { At[q] = Before && Turn = True && Flag = False } { Seen := True; At[q] := After }";
    for text in
        [shared.to_string(), HANDSHAKE.replace("GIVER", "p q"), STORE.replace("READ", "Cell")]
    {
        let system = system(&text);
        let ProofVerdict::Safe { certificate, .. } = outcome(&system, Memory::Sc).verdict else {
            panic!("safe under sc\n{text}")
        };
        assert!(verify(&system, &certificate, &Budget::default()).is_ok());
        let certificate = certificate.replace("memory sc", "memory tso");
        let found = verify(&system, &certificate, &Budget::default());
        assert!(matches!(found, Err(Rejection::Premise(_))), "{found:?}\n{text}");
    }
}

/// Without buffers, and of plain symbols, all processes see one value, so a certificate that
/// distinguishes views of them has no meaning.
#[test]
fn only_memory_under_total_store_order_has_views() {
    let text = "type t = A | B weak array W[proc] : bool array At[proc] : t
init (p) { At[p] = A && W[p] = False }
unsafe (a b) { At[a] = B && b @ W[a] = True }
transition t ([p]) requires { At[p] = A } { At[p] := B; W[p] := True }";
    let system = system(text);
    assert!(run_of(&system, Memory::Sc).is_some());
    for (memory, fact) in [
        ("sc", "p2@0.W[p1] in {True}"),
        ("sc", "p2@*.W[p1] in {True}"),
        ("sc", "same p1@0.W[p1] p2@0.W[p1]"),
        ("sc", "fence p1@0"),
        ("tso", "p2@0.At[p1] in {B}"),
        ("tso", "p2@*.At[p1] in {B}"),
    ] {
        let proof = format!("mu-check certificate 1\nmemory {memory}\nnever p1 p2\n  {fact}\n");
        let refused = verify(&system, &proof, &Budget::default()).expect_err(fact);
        let Rejection::Unreadable(error) = &refused else { panic!("{fact}: {refused:?}") };
        let place = error.line.as_ref().map(|l| (l.number, l.column));
        let word = fact.split(' ').position(|word| word.contains('@')).unwrap_or(0);
        let column = 3 + if fact.starts_with("same") { 5 * word } else { 0 };
        assert_eq!(place, Some((4, column)), "{fact}: {refused:?}");
    }
    // A proof under total store order is none without buffers.
    let handshake = self::system(HANDSHAKE_OF_ONE);
    let ProofVerdict::Safe { certificate, .. } = outcome(&handshake, Memory::Tso).verdict else {
        panic!("no proof")
    };
    assert!(certificate.contains('@'), "{certificate}");
    let other = certificate.replacen("memory tso", "memory sc", 1);
    let refused = verify(&handshake, &other, &Budget::default()).expect_err("views");
    assert!(matches!(refused, Rejection::Unreadable(_)), "{refused:?}");
}

/// Two processes with a flag each, which wait for their stores.
const HANDSHAKE_OF_ONE: &str = "
type place = Idle | Asks | Holds
array At[proc] : place
weak array Flag[proc] : bool
init (p) { At[p] = Idle && Flag[p] = False }
unsafe (p q) { At[p] = Holds && At[q] = Holds }
transition ask ([p]) requires { At[p] = Idle } { Flag[p] := True; At[p] := Asks }
transition hold ([p]) requires { At[p] = Asks && fence() && forall_other q. Flag[q] = False } { At[p] := Holds }
transition leave ([p]) requires { At[p] = Holds } { Flag[p] := False; At[p] := Idle }
";

/// A transition of ten processes has too many choices of processes to store them.
#[test]
fn limits_hold_for_transitions_of_many_processes() {
    let params: Vec<String> = (0..10).map(|i| format!("p{i}")).collect();
    let guard: Vec<String> = params.iter().map(|p| format!("X[{p}] = False")).collect();
    let text = format!(
        "array X[proc] : bool init (p) {{ X[p] = False }} unsafe (p q) {{ X[p] = True && X[q] = True }}
transition t ({}) requires {{ {} }} {{ X[p0] := True }}",
        params.join(" "),
        guard.join(" && ")
    );
    let system = system(&text);
    for threads in [1, 2] {
        let timeout = std::time::Duration::from_millis(300);
        let limits = mu_base::Limits { timeout: Some(timeout), ..mu_base::Limits::default() };
        let begin = std::time::Instant::now();
        let options = ProverOptions { threads: threads.into(), ..ProverOptions::default() };
        let found = prove(&system, options, &Budget::new(limits));
        assert!(matches!(found.verdict, ProofVerdict::Unknown(_)), "{:?}", found.verdict);
        // A loaded machine is slow; without the limit the run takes minutes.
        assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{:?}", begin.elapsed());
    }
}

#[test]
fn an_empty_set_of_initial_states_is_reported() {
    let none = system(
        "type t = A | B array At[proc] : t init (p) { At[p] = A && At[p] = B } unsafe (p) { At[p] = A }",
    );
    for memory in [Memory::Sc, Memory::Tso] {
        assert!(matches!(
            outcome(&none, memory).verdict,
            ProofVerdict::Unknown(UnknownReason::NoInitialState)
        ));
    }
    let certificate = "mu-check certificate 1\nmemory sc\nnever p1\n  At[p1] in {A}\n";
    assert_eq!(verify(&none, certificate, &Budget::default()), Err(Rejection::NoInitialState));
    // One process beyond the instance does not represent two, and none precedes all others.
    let claim = "array D[proc] : bool unsafe (p) { D[p] = True }";
    let more = [
        "var X : proc var Y : proc init (p) { X <> p && Y <> p && X <> Y && D[p] = False }",
        "var X : proc init (p) { X < p && D[p] = False }",
        "array L[proc] : proc init (p q) { L[p] <> L[q] && D[p] = False }",
        "array L[proc] : proc init (p q) { p < L[p] && L[q] <= q && D[p] = False }",
    ];
    for text in more {
        let system = system(&format!("{text} {claim}"));
        assert!(
            matches!(
                outcome(&system, Memory::Tso).verdict,
                ProofVerdict::Unknown(UnknownReason::NoInitialState)
            ),
            "{text}"
        );
        let certificate = "mu-check certificate 1\nmemory tso\nnever p1\n  D[p1] in {True}\n";
        assert_eq!(
            verify(&system, certificate, &Budget::default()),
            Err(Rejection::NoInitialState),
            "{text}"
        );
    }
    // If there is one, small machines need not have it.
    let some = [
        "var X : proc var Y : proc var Z : proc init (p) { X <> Y && Y <> Z && X <> Z && D[p] = False }",
        "var X : proc var Y : proc init (p) { X <> p && Y <> p && D[p] = False }",
        "var X : proc init (p) { p < X && D[p] = False }",
        "array L[proc] : proc init (p) { p < L[p] && D[p] = False }",
    ];
    for text in some {
        assert!(is_safe(&system(&format!("{text} {claim}")), Memory::Tso), "{text}");
    }
    // From three processes on there is none.
    let few = system(
        "array At[proc, proc] : bool var Owner : proc init (p q) { p = Owner || p = #1 } unsafe (p) { At[p, p] = True }",
    );
    assert_eq!(outcome(&few, Memory::Sc).empty_from, Some(3));
}

/// With one and two processes `X` is one of them, which the invariant excludes. With three it is
/// the process beyond them.
#[test]
fn more_processes_may_have_an_initial_state_that_few_have_not() {
    let text = |init: &str| {
        format!(
            "var X : proc array D[proc] : bool init (p q r s) {{ D[p] = False && ({init} || X <> p) }}
invariant (p) {{ X = p }} unsafe (p) {{ D[p] = True }} transition t (p) {{ D[p] := True }}"
        )
    };
    let three = system(&text("p = q || q = r || p = r"));
    assert_eq!(run_of(&three, Memory::Sc), Some(3));
    let empty = "mu-check certificate 1\nmemory sc\n";
    assert_eq!(verify(&three, empty, &Budget::default()), Err(Rejection::Safety(0)));
    // Sizes beyond the tried ones are undecided.
    let open = system(&text("X = X"));
    let found = outcome(&open, Memory::Sc).verdict;
    let up_to = matches!(found, ProofVerdict::Unknown(UnknownReason::NoInitialStateUpTo(5)));
    assert!(up_to, "{found:?}");
    let refused = verify(&open, empty, &Budget::default());
    assert_eq!(refused, Err(Rejection::NoInitialStateUpTo(5)));
}

/// The second claim is not decided, and the first one needs three processes.
#[test]
fn a_run_has_at_most_the_processes_that_the_file_admits() {
    let text = "number_procs 2 var X : int var Y : int var Z : int var W : int array S[proc] : bool
init (z) { Z >= 0 && W >= 0 && Z + W < 1 && S[z] = False }
unsafe (p q r) { S[p] = False && S[q] = False }
unsafe () { X + X + X + Z + W > Y + Y + Y && X + X + X + Z + W < Y + Y + Y + 3 }";
    let found = outcome(&system(text), Memory::Sc).verdict;
    assert!(matches!(found, ProofVerdict::Unknown(_)), "{found:?}");
    assert_eq!(
        run_of(&system(&text.replace("number_procs 2", "number_procs 3")), Memory::Sc),
        Some(3)
    );
}

/// With `N = 0` some process is `X`, so there is no process beyond all, whatever number is tried.
#[test]
fn a_number_that_is_tried_makes_no_further_process() {
    let text = "var X : proc var N : int array A[proc] : bool
init (p) { A[p] = False && (X <> p || N = 0) } unsafe (q) { N = 1 && A[q] = False }";
    let found = outcome(&system(text), Memory::Sc).verdict;
    assert!(matches!(found, ProofVerdict::Unknown(_)), "{found:?}");
    let only = text.replace("|| N = 0", "&& N = 1");
    assert_eq!(run_of(&system(&only), Memory::Sc), Some(1));
}

/// A fence in a condition on the other processes waits for the first parameter too.
#[test]
fn a_fence_for_all_others_waits_for_the_acting_process() {
    let text = |guard: &str| {
        format!(
            "type loc = A | B | C weak var W : bool array At[proc] : loc
init (p) {{ At[p] = A && W = False }} unsafe (p q) {{ At[p] = C && q @ W = False }}
transition w ([p]) requires {{ At[p] = A }} {{ W := True; At[p] := B }}
transition t (p) requires {{ At[p] = B && {guard} }} {{ At[p] := C }}"
        )
    };
    assert!(is_safe(&system(&text("forall_other q. fence(p)")), Memory::Tso));
    assert_eq!(run_of(&system(&text("forall_other q. At[q] = At[q]")), Memory::Tso), Some(2));
}

/// A transition may have more bound variables than a template has numbers.
#[test]
fn a_transition_may_update_many_arrays_by_cases() {
    let count = 300;
    let each = |form: &dyn Fn(usize) -> String, by: &str| {
        (0..count).map(form).collect::<Vec<_>>().join(by)
    };
    let text = format!(
        "{} init (p) {{ {} }} unsafe (p q) {{ A299[p] = True && A299[q] = True }}
transition t (p) requires {{ forall_other q. A299[q] = False }} {{ {} }}",
        each(&|i| format!("array A{i}[proc] : bool"), " "),
        each(&|i| format!("A{i}[p] = False"), " && "),
        each(&|i| format!("A{i}[j{i}] := case | j{i} = p : True | _ : A{i}[j{i}]"), "; ")
    );
    assert!(is_safe(&system(&text), Memory::Sc));
}

#[test]
fn a_cell_that_is_no_process_of_the_instance_is_another_one() {
    let text = "var Home : proc array Ready[proc] : bool init (p) { Home <> p && Ready[p] = False }
unsafe (p) { Ready[p] = True } transition go (p) { Ready[p] := True }";
    assert_eq!(run_of(&system(text), Memory::Sc), Some(1));
    assert_eq!(run_of(&system(&format!("number_procs 1 {text}")), Memory::Sc), Some(1));
    let held = text.replace("{ Ready[p] := True }", "requires { Home = p } { Ready[p] := True }");
    assert!(is_safe(&system(&held), Memory::Sc));
    assert!(is_safe(&system(&format!("number_procs 2 {held}")), Memory::Sc));
    // A cell that `init` does not mention has any value, the other process as well.
    let unmentioned = "var Home : proc var Other : proc init (p) { Home <> p }
unsafe () { Home = Other } transition go (p) { Other := p }";
    assert_eq!(run_of(&system(unmentioned), Memory::Sc), Some(1));
}

/// `Z` and `W` are 0, so no multiple of three is between the bounds. Case splits of the unbounded
/// numbers do not end.
#[test]
fn a_proof_is_void_if_no_initial_state_is_known() {
    let text = |above: u32| {
        let sum = "X + X + X + Z + W";
        system(&format!(
            "var X : int var Y : int var Z : int var W : int array S[proc] : bool
init (z) {{ {sum} > Y + Y + Y && {sum} < Y + Y + Y + {above} && Z >= 0 && W >= 0 && Z + W < 1 && S[z] = False }}
unsafe (x) {{ S[x] = True }}
transition t ([p]) requires {{ S[p] = False }} {{ X := X + 1 }}"
        ))
    };
    for memory in [Memory::Sc, Memory::Tso] {
        let found = outcome(&text(3), memory).verdict;
        let is_undecided =
            matches!(found, ProofVerdict::Unknown(UnknownReason::InitialStateUndecided));
        assert!(is_undecided, "{found:?}");
        assert!(is_safe(&text(4), memory));
    }
}

/// `Id` is a permutation, so `Home` is the process beyond all. With seven processes the verifier
/// does not decide that no other state satisfies `init`.
#[test]
fn a_process_beyond_all_is_excluded_only_by_a_state_without_it() {
    for processes in [2, 7] {
        let names: Vec<String> = (0..processes).map(|i| format!("p{i}")).collect();
        let none: Vec<String> = names.iter().map(|p| format!("Home <> {p}")).collect();
        let text = format!(
            "number_procs {processes} array Id[proc] : proc var Home : proc var Went : bool
init (p q) {{ (p = q || Id[p] <> Id[q]) && Home <> Id[p] && Went = False }}
unsafe ({}) {{ {} && Went = True }}
transition go () requires {{ Went = False }} {{ Went := True }}",
            names.join(" "),
            none.join(" && ")
        );
        let system = system(&text);
        let empty = "mu-check certificate 1\nmemory sc\n";
        let refused = verify(&system, empty, &Budget::default());
        assert_eq!(refused, Err(Rejection::Safety(0)), "{processes}");
        if processes == 2 {
            assert_eq!(run_of(&system, Memory::Sc), Some(2));
        }
    }
    // Equations of numbers and an order do not hide a state without such a process.
    let text = "number_procs 2 var Home : proc var N : int var W : word8 array At[proc] : bool
init (p) { p <= Home && N = 3 && W = 200 && At[p] = False && N < 4 }
unsafe (p q) { Home <> p && Home <> q }
transition go (p) requires { At[p] = False } { At[p] := True; N := N + 1 }";
    assert!(is_safe(&system(text), Memory::Sc));
}

/// A process that waits with a store in its buffer reads memory before another one enters. The
/// first claim is about one moment, at which nobody is inside; the read of the second is before.
#[test]
fn a_read_before_a_claim_about_two_processes_is_not_its_moment() {
    let text = "type place = Start | Done | Bad | Idle | Crit
array At[proc] : place weak var X : bool weak var Z : bool
init (p) { (At[p] = Start || At[p] = Idle) && X = False && Z = False }
unsafe (p q) { At[p] = Done && p @ X = False && At[q] = Crit }
unsafe (p q) { At[p] = Bad && At[q] = Crit }
transition w ([p]) requires { At[p] = Start } { Z := True; At[p] := Done }
transition r ([p]) requires { At[p] = Done && X = False } { At[p] := Bad }
transition enter ([q]) requires { At[q] = Idle && Z = False } { X := True; At[q] := Crit }";
    let system = system(text);
    assert_eq!(run_of(&system, Memory::Tso), Some(2));
    let certificate = "mu-check certificate 1\nmemory tso
never p1 p2\n  At[p1] in {Crit}\n  At[p2] in {Done}\n  p2@*.X in {False}
never p1 p2\n  At[p1] in {Crit}\n  At[p2] in {Bad}
never p1 p2\n  At[p1] in {Bad}\n  At[p2] in {Idle}\n  Z in {False}
never p1 p2\n  At[p1] in {Crit}\n  At[p2] in {Start}\n  p2@*.X in {False}
never p1 p2\n  At[p1] in {Done}\n  At[p2] in {Idle}\n  p1@0.X in {False}\n  Z in {False}\n";
    let refused = verify(&system, certificate, &Budget::default()).expect_err("unsafe");
    assert_eq!(refused, Rejection::Consecution { cube: 1, transition: 1 });
    // Without the second claim and the read there is none.
    let first = text.replace("unsafe (p q) { At[p] = Bad && At[q] = Crit }", "");
    assert!(is_safe(&self::system(&first), Memory::Tso));
}

/// No initial state of one process satisfies the conditions on two.
#[test]
fn a_counting_invariant_holds_for_the_processes_that_the_file_admits() {
    let text = "number_procs 1 type place = Out | In array At[proc] : place var N : word8
init (p q) { p = q && At[p] = In && At[#1] = In && N = 0 }
unsafe (p) { At[p] = In && N = 0 } transition t (p) requires { At[p] = Out } { At[p] := Out }";
    let certificate = "mu-check certificate 1\nmemory sc\ncount At in {In} = word 8 1 N + 0\n";
    let found = verify(&system(text), certificate, &Budget::default());
    assert_eq!(found, Err(Rejection::Count(0, None)));
}

#[test]
fn a_run_passes_no_state_that_an_invariant_excludes() {
    // Each value of `X` is excluded at one of the places between.
    let text = "type place = A | B | C | D var X : int var At : place init () { At = A }
invariant () { X > 5 && At = B } invariant () { X < 6 && At = C } unsafe () { At = D }
transition one () requires { At = A } { At := B } transition two () requires { At = B } { At := C }
transition three () requires { At = C } { At := D }";
    assert_eq!(run_of(&system(text), Memory::Sc), None);
    let one = text.replace("invariant () { X < 6 && At = C }", "");
    assert_eq!(run_of(&system(&one), Memory::Sc), Some(1));
}

/// A store buffer may contain a further element, so three of them do not suffice.
#[test]
fn an_instance_with_elements_in_buffers_is_unsafe() {
    let text = "type t weak var X : t array K[proc] : t array Done[proc] : bool number_procs 2
init (p) { Done[p] = False }
unsafe (p q) { p@X <> q@X && p@X <> K[p] && p@X <> K[q] && q@X <> K[p] && q@X <> K[q] && K[p] <> K[q] }
transition store ([p]) requires { Done[p] = False } { X := .; Done[p] := True }";
    assert_eq!(run_of(&system(text), Memory::Tso), Some(2));
}

#[test]
fn a_run_has_numbers_that_satisfy_its_path() {
    let runs = [
        // Beyond all numbers of the file.
        "var Y : int init () { Y > 1000 } unsafe () { Y > 2000 } transition t () requires { Y < 1900 } { Y := Y + 250 }",
        "var X : int var Y : int init () { Y > 100 && X > Y + 7 } unsafe () { X = 2 * Y } transition t () { X := X + 11 }",
        "var K : int const N : int array P[proc] : int init (p) { P[p] = N && N > 500 && K = 0 } unsafe (p) { P[p] < 500 }
         transition t (p) requires { P[p] > K } { P[p] := P[p] - 1 }",
        // Between two numbers.
        "var R : real init () { R > 0 && R < 1 } unsafe () { 3 * R = 1 } transition t () { R := 2 * R }",
        // A number that a step stores depends on one that is unchanged.
        "var X : int var Y : int var F : bool init () { Y > 1000 && X = 0 && F = False } unsafe () { F = True }
         transition a () { X := . } transition z () requires { X = 3 * Y + 1 } { F := True }",
        "array A[proc] : int array B[proc] : int array F[proc] : bool init (p) { A[p] > 1000 && B[p] = 0 && F[p] = False }
         unsafe (p) { F[p] = True } transition a (p) { B[p] := . } transition z (p) requires { B[p] = A[p] + 7 } { F[p] := True }",
    ];
    for text in runs {
        let system = system(text);
        let ProofVerdict::Unsafe(run) = outcome(&system, Memory::Sc).verdict else {
            panic!("unsafe\n{text}")
        };
        // The machine with the run's numbers executes it from a complete initial state.
        let machine = run.machine(&system, Memory::Sc).unwrap();
        let acts: Vec<_> = run.replayed.steps.iter().map(|s| s.0.clone()).collect();
        let replayed = machine.replay(&acts, &system.unsafes[run.claim.0], &run.claim.1).unwrap();
        assert!(
            machine
                .choose_open_values(&replayed, &system.unsafes[run.claim.0], &run.claim.1)
                .is_some(),
            "{text}"
        );
    }
    // Two interdependent numbers, stored one after the other: no run is found, and the reason
    // mentions numbers.
    let text = "var X : int var Y : int var Z : int var S : int init () { S = 0 && X = 0 && Y = 0 && Z = 0 } unsafe () { S = 3 }
transition a () requires { S = 0 } { X := .; S := 1 } transition b () requires { S = 1 && X > 5000 } { Y := .; S := 2 }
transition c () requires { S = 2 && Y = 2 * X + 77 } { S := 3 }";
    match outcome(&system(text), Memory::Sc).verdict {
        ProofVerdict::Unsafe(_) | ProofVerdict::Unknown(UnknownReason::Numbers(_)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_claim_that_no_state_satisfies_is_safe() {
    for claim in ["false && X[p] = True", "1 = 2", "p <> p", "X[p] = True && X[p] = False"] {
        let text = format!(
            "array X[proc] : bool init (p) {{ X[p] = False }} unsafe (p) {{ {claim} }}
transition t ([p]) requires {{ X[p] = False }} {{ X[p] := True }}"
        );
        let system = system(&text);
        assert!(system.has_claim && is_safe(&system, Memory::Sc), "{claim}");
    }
}

#[test]
fn states_that_an_invariant_describes_are_no_initial_states() {
    let text = "type t = A | B array At[proc] : t init (p) { At[p] = B } invariant (INV) { COND } unsafe (p) { At[p] = B }
transition t (p) requires { At[p] = A } { At[p] := B }";
    let with = |parameters: &str, condition: &str| {
        system(&text.replace("INV", parameters).replace("COND", condition))
    };
    let certificate = "mu-check certificate 1\nmemory sc\nnever p1\n  At[p1] in {B}\n";
    let none = with("p", "At[p] = B");
    for memory in [Memory::Sc, Memory::Tso] {
        assert!(matches!(
            outcome(&none, memory).verdict,
            ProofVerdict::Unknown(UnknownReason::NoInitialState)
        ));
    }
    assert_eq!(verify(&none, certificate, &Budget::default()), Err(Rejection::NoInitialState));
    // A single process has an initial state.
    assert_eq!(run_of(&with("p q", "At[p] = B && At[q] = B"), Memory::Sc), Some(1));
}

#[test]
fn an_instance_decides_what_a_cube_cannot_represent() {
    let text = "var Large : int var Flag : int init () { Large = 9223372036854775807 && Flag = 0 } unsafe () { Flag = 1 }
transition t () requires { Large + Large > 9223372036854775807 } { Flag := 1 }";
    assert_eq!(run_of(&system(text), Memory::Sc), Some(1));
    // The sum counts processes: the verdict for every number is unknown, and small instances are
    // safe.
    let counter = system(
        "type place = Out | In array At[proc] : place var Count : int init (p) { At[p] = Out && Count = 0 } unsafe () { Count = -1 }
transition enter (p) requires { At[p] = Out } { At[p] := In; Count := Count + 1 }
transition leave (p) requires { At[p] = In } { At[p] := Out; Count := Count - 1 }",
    );
    let unknown = outcome(&counter, Memory::Sc);
    assert!(matches!(unknown.verdict, ProofVerdict::Unknown(_)), "{:?}", unknown.verdict);
}

/// The sum counts processes, so there is no invariant; but larger numbers are excluded, or have no
/// initial state.
#[test]
fn instances_are_a_proof_if_there_are_no_others() {
    let counter = |init: &str, step: &str| {
        let text = format!(
            "type place = Out | In array At[proc] : place var Count : int
init (p) {{ At[p] = Out && Count = 0 {init} }} unsafe () {{ Count = -1 }}
transition enter (p) requires {{ At[p] = Out }} {{ At[p] := In; Count := Count + 1 }}
transition leave (p) requires {{ At[p] = In }} {{ At[p] := Out; Count := Count {step} }}"
        );
        text
    };
    let of = |text: &str| outcome(&system(text), Memory::Sc).verdict;
    let bounded = of(&format!("number_procs 3 {}", counter("", "- 1")));
    assert!(
        matches!(bounded, ProofVerdict::Searched(1, 3) | ProofVerdict::Safe { .. }),
        "{bounded:?}"
    );
    let few = of(&counter("&& (p = #1 || p = #2)", "- 1"));
    assert!(!matches!(few, ProofVerdict::Unsafe(_)), "{few:?}");
    let wrong = of(&format!("number_procs 3 {}", counter("", "- 2")));
    assert!(matches!(wrong, ProofVerdict::Unsafe(_)), "{wrong:?}");
}
