//! Programs in `examples`: results and printed commands.

#[path = "../examples/explore_with_visitor.rs"]
mod explore_with_visitor;
#[path = "../examples/own_model.rs"]
mod own_model;
#[path = "../examples/parse_and_check.rs"]
mod parse_and_check;

use crate::support::package;
use mu_check::Verdict;
use mu_check::explore::VisitEnd;

#[test]
fn parse_and_check() {
    let buffer = "act enter, leave: Nat;\nproc Buffer = sum n: Nat. (n < 3) -> enter(n) . leave(n) . Buffer;\ninit Buffer;\n";
    let (verdict, evidence) =
        parse_and_check::check(buffer, "[true* . enter(2)] <leave(1)> true").unwrap();
    assert!(verdict == Verdict::False && evidence.contains("enter(2)"), "{evidence}");
    assert_eq!(parse_and_check::check(buffer, "[true*] <true> true").unwrap().0, Verdict::True);
    assert!(
        parse_and_check::check("act a; init b;", "true").unwrap_err().message().contains("`b`")
    );
}

#[test]
fn explore_with_visitor() {
    let (census, end) = explore_with_visitor::census().unwrap();
    assert_eq!((census.states, census.steps, census.even.len(), end), (125, 300, 5, VisitEnd::All));
}

#[test]
fn own_model() {
    let (exclusive, lively) =
        ("[true* . enter(0) . (!leave(0))* . enter(1)] false", "[true*] <true> true");
    let of = |careful, formula| own_model::check(careful, formula).unwrap();
    assert_eq!((of(false, exclusive).1, of(false, lively)), (Verdict::False, (9, Verdict::True)));
    // Both flags set: neither goes in.
    assert_eq!((of(true, exclusive).1, of(true, lively).1), (Verdict::True, Verdict::False));
}

/// The commands of the workflow in `examples/ci`, as its steps have them, on models in the folders
/// that it names.
#[cfg(unix)]
#[test]
fn commands_of_the_workflow() {
    let workflow = std::fs::read_to_string(package("examples/ci/check-models.yml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("models/model.mcrl2", "act a;\nproc P = a . P;\ninit P;\n");
    write("formulas/good.mcf", "[true*]<a>true\n");
    let joined = workflow.replace("\\\n", " ");
    let steps: Vec<&str> = joined
        .lines()
        .map(|l| l.trim().trim_start_matches("run: "))
        .filter(|l| l.starts_with("mu-check ") || l.starts_with("mkdir "))
        .collect();
    assert_eq!(steps.len(), 3, "{steps:?}");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_mu-check"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let run = || -> Vec<i32> {
        let one = |step: &&str| {
            std::process::Command::new("sh")
                .args(["-c", step])
                .current_dir(folder.path())
                .env("PATH", &path)
                .output()
                .unwrap()
                .status
                .code()
                .unwrap()
        };
        steps.iter().map(one).collect()
    };
    assert_eq!(run(), [0, 0, 0]);
    let report = std::fs::read_to_string(folder.path().join("results/models.xml")).unwrap();
    assert!(
        report.contains("good.mcf") && folder.path().join("results/models.html").is_file(),
        "{report}"
    );
    write("formulas/bad.mcf", "[true*]<a>false\n");
    assert_eq!(run(), [0, 0, 1]);
    assert!(
        std::fs::read_to_string(folder.path().join("results/models.xml"))
            .unwrap()
            .contains("<failure")
    );
}
