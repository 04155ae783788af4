//! Linear processes of small specifications.

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
