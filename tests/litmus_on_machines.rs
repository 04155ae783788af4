//! `litmus --machine`: litmus tests on the machines of the project.

use crate::support::{mu_check, package};
use serde_json::json;

/// A test that the command names and that does not run is no success. Without `--operations` the
/// machine is searched up to the longest test.
#[test]
fn tests_that_are_not_run_are_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let test = folder.path().join("sbf.litmus").display().to_string();
    let text = "X86 SBF
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EBX,[x] | MOV EBX,[y] ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";
    std::fs::write(&test, text).unwrap();
    let (spec, interface) =
        (package("specs/machines/tso.spec"), package("specs/machines/machine.interface"));
    let words = ["litmus", &test, "--machine", &spec, "--interface", &interface];
    let outcome = mu_check(&words);
    assert_eq!((outcome.code, &outcome.json["operations"]), (0, &json!(3)), "{}", outcome.json);
    let short = mu_check(&[&words[..], &["--operations", "2"]].concat());
    assert_eq!(short.code, 3, "{}", short.json);
    assert!(short.json["tests"][0]["not_asked"].is_string(), "{}", short.json);
}
