//! Tests of the operations and arrows of one run, against results by hand.

use mu_base::SourceId;
use mu_conform::interface::Interface;
use mu_conform::operations::Run;

const INTERFACE: &str = "initial v0; load bl(p, a, n) -> el(p, a, v, n); store st(p, a, v, n); update up(p, a, v, w, n); fence f(p, n); observe ob(p, a, v, n, q);";

/// Reads a run of labels. Returns its operations as `processor value`, and its arrows, with `!` for
/// those in a cycle.
fn of(interface: &str, labels: &[&str]) -> (Vec<String>, Vec<String>) {
    let interface = Interface::parse(SourceId::FIRST, interface).unwrap();
    let step = |label: &&'static str| -> Vec<(&str, Vec<&str>)> {
        let (name, arguments) = label.trim_end_matches(')').split_once('(').unwrap();
        vec![(name, arguments.split(',').collect())]
    };
    let labels: Vec<&'static str> =
        labels.iter().map(|l| &*Box::leak(l.to_string().into_boxed_str())).collect();
    let run = Run::of(&interface, &labels.iter().map(step).collect::<Vec<_>>());
    let name = |i: usize| char::from(b'a' + i as u8);
    let operations = run
        .operations
        .iter()
        .map(|o| format!("{} {}", o.processor, o.value.as_deref().unwrap_or("?")))
        .collect();
    let arrows = run.arrows.iter().map(|(a, r, b, in_cycle)| {
        format!(
            "{}{r} {}{}",
            format_args!("{} ", name(*a)),
            name(*b),
            if *in_cycle { "!" } else { "" }
        )
    });
    (operations, arrows.collect())
}

#[test]
fn a_run_that_fits() {
    // Message passing: both values are read.
    let run =
        ["st(p,x,v1,0)", "st(p,y,v1,1)", "bl(q,y,0)", "el(q,y,v1,0)", "bl(q,x,1)", "el(q,x,v1,1)"];
    let (operations, arrows) = of(INTERFACE, &run);
    assert_eq!(operations, ["p v1", "p v1", "q v1", "q v1"]);
    assert_eq!(arrows, ["a po b", "a rf d", "b rf c", "c po d"]);
    // The second load reads the older value. Only a memory model can decide this; at a single
    // address it is consistent.
    let run =
        ["st(p,x,v1,0)", "st(p,y,v1,1)", "bl(q,y,0)", "el(q,y,v1,0)", "bl(q,x,1)", "el(q,x,v0,1)"];
    assert_eq!(of(INTERFACE, &run).1, ["a po b", "b rf c", "c po d", "d fr a"]);
    // An update reads and writes; a fence has a position in program order.
    let run = ["st(p,x,v1,0)", "up(q,x,v1,v2,0)", "f(q,1)", "bl(q,x,2)", "el(q,x,v2,2)"];
    assert_eq!(of(INTERFACE, &run).1, ["a co b", "a rf b", "b po c", "b rf d", "c po d"]);
    // A load that the run does not end has no value.
    assert_eq!(of(INTERFACE, &["bl(q,y,0)"]), (vec!["q ?".into()], vec![]));
}

#[test]
fn program_order_is_that_of_the_numbers() {
    let run = ["st(p,x,v2,1)", "st(p,x,v1,0)"];
    assert_eq!(of(INTERFACE, &run).1, ["b co a", "b po a"]);
}

#[test]
fn circles_are_marked() {
    // A processor misses its own store.
    let run = ["st(p,x,v1,0)", "bl(p,x,1)", "el(p,x,v0,1)"];
    assert_eq!(of(INTERFACE, &run).1, ["a po b!", "b fr a!"]);
    // Two processors observe two stores in opposite orders.
    let seen = ["ob(p,x,v1,0,p)", "ob(p,x,v2,0,q)", "ob(q,x,v2,0,q)", "ob(q,x,v1,0,p)"];
    let run: Vec<&str> = ["st(p,x,v1,0)", "st(q,x,v2,0)"].into_iter().chain(seen).collect();
    assert_eq!(of(INTERFACE, &run).1, ["a co b!", "b co a!"]);
    assert_eq!(of(INTERFACE, &run[..4]).1, ["a co b"]);
    // A third processor reads the old value after the new one.
    let run = [
        "st(p,x,v1,0)",
        "bl(q,x,0)",
        "el(q,x,v1,0)",
        "bl(q,y,1)",
        "el(q,y,v0,1)",
        "bl(q,x,2)",
        "el(q,x,v0,2)",
    ];
    assert_eq!(of(INTERFACE, &run).1, ["a rf b!", "b po c", "b po-loc d!", "c po d", "d fr a!"]);
}

#[test]
fn where_several_stores_fit_there_is_no_arrow() {
    let run = ["st(p,x,v1,0)", "st(r,x,v1,0)", "bl(q,x,0)", "el(q,x,v1,0)"];
    assert_eq!(of(INTERFACE, &run).1, Vec::<String>::new());
    // The last observation of the processor decides.
    let run = ["st(p,x,v1,0)", "st(r,x,v1,0)", "ob(q,x,v1,0,p)", "bl(q,x,0)", "el(q,x,v1,0)"];
    assert_eq!(of(INTERFACE, &run).1, ["a rf c"]);
    // Later stores of the same processor and stores that begin after the end of the load are no
    // candidates.
    let run = ["st(p,x,v1,0)", "bl(q,x,0)", "el(q,x,v1,0)", "st(q,x,v1,1)", "st(r,x,v1,0)"];
    assert!(of(INTERFACE, &run).1.contains(&"a rf b".to_string()));
}

#[test]
fn ends_without_numbers_go_to_the_first_that_fits() {
    let interface = "initial v0; load bl(p, a) -> el(p, a, v); store st(p, a, v);";
    let run = ["st(p,x,v1)", "bl(q,x)", "bl(q,y)", "el(q,y,v0)", "el(q,x,v1)"];
    let (operations, arrows) = of(interface, &run);
    assert_eq!(
        (operations, arrows),
        (vec!["p v1".into(), "q v1".into(), "q v0".into()], vec!["a rf b".into(), "b po c".into()])
    );
}
