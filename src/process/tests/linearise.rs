//! Linear processes of small specifications.

use mu_data::portable::encoding_fingerprint;
use mu_process::linear::LinearProcess;
use mu_process::linearise::{LineariserOptions, linearise};
use mu_process::print::linear_process;
use mu_process::typecheck::check_specification;
use mu_syntax::parse_specification;

fn linear(text: &str) -> LinearProcess {
    let spec = check_specification(&parse_specification(Default::default(), text).unwrap());
    linearise(&spec.unwrap(), &LineariserOptions::default()).unwrap()
}

/// Two steps that end a process on a stack and differ in their times only.
#[test]
fn ends_of_a_process_on_a_stack_differ_by_their_times() {
    let text = linear_process(&linear("act a, b, c; proc P = a@1 + a@2 + b@1 . P . c@5; init P;"));
    for step in ["a @ 1", "a @ 2"] {
        assert_eq!(text.matches(step).count(), 2, "{step}: to the frame and at the end\n{text}");
    }
}

/// Several processes of one search agree on the numbers of sorts, operations, and variables.
#[test]
fn a_specification_has_one_signature() {
    let text = "act a, b; \
        proc P(x: List(Nat)) = a . P([0]); \
        proc Q(y: List(Bool)) = b . Q([true]); \
        proc R(z: List(Pos), f: Bool -> Nat) = b . R([1], f[true -> 2]); \
        init allow({a, b}, P([1, 2]) || Q([false, true]) || R([3, 4], lambda x: Bool. 1));";
    let first = linear(text);
    for _ in 0..12 {
        let again = linear(text);
        assert_eq!(
            encoding_fingerprint(&again.data.signature),
            encoding_fingerprint(&first.data.signature)
        );
        assert_eq!(linear_process(&again), linear_process(&first));
    }
}
