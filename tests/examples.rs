//! The programs in `examples` do what they say.

#[path = "../examples/explore_with_visitor.rs"]
mod explore_with_visitor;
#[path = "../examples/own_model.rs"]
mod own_model;
#[path = "../examples/parse_and_check.rs"]
mod parse_and_check;

use mu_check::Verdict;
use mu_check::explore::Visited;

#[test]
fn parse_and_check() {
    let buffer = "act enter, leave: Nat;\nproc Buffer = sum n: Nat. (n < 3) -> enter(n) . leave(n) . Buffer;\ninit Buffer;\n";
    let (verdict, evidence) = parse_and_check::check(buffer, "[true* . enter(2)] <leave(1)> true").unwrap();
    assert!(verdict == Verdict::False && evidence.contains("enter(2)"), "{evidence}");
    assert_eq!(parse_and_check::check(buffer, "[true*] <true> true").unwrap().0, Verdict::True);
    assert!(parse_and_check::check("act a; init b;", "true").unwrap_err().message().contains("`b`"));
}

#[test]
fn explore_with_visitor() {
    let (census, end) = explore_with_visitor::census().unwrap();
    assert_eq!((census.states, census.steps, census.even.len(), end), (125, 300, 5, Visited::All));
}

#[test]
fn own_model() {
    let (exclusive, lively) = ("[true* . enter(0) . (!leave(0))* . enter(1)] false", "[true*] <true> true");
    let of = |careful, formula| own_model::check(careful, formula).unwrap();
    assert_eq!((of(false, exclusive).1, of(false, lively)), (Verdict::False, (9, Verdict::True)));
    // Both flags set: neither goes in.
    assert_eq!((of(true, exclusive).1, of(true, lively).1), (Verdict::True, Verdict::False));
}
