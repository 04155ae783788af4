//! The interface for programs: parameters, counts, verdicts with evidence, walks, errors with
//! places, limits.

use mu_check::base::Limits;
use mu_check::{Priority, Run, Specification, Stop, Verdict};

const COUNTER: &str = "$param max: Nat = 3;\nact up, down: Nat;\nproc P(n: Nat) = (n < ${max}) -> up(n + 1) . P(n + 1) + (n > 0) -> down(n) . P(Int2Nat(n - 1));\ninit P(0);\n";

fn counter() -> Specification {
    Specification::new("counter.spec", COUNTER)
}

#[test]
fn parameters_have_values() {
    let model = counter().with("max", 5).model().unwrap();
    assert_eq!(model.parameters().collect::<Vec<_>>(), [("max", "5".to_string())]);
    for engine in ["explicit", "symbolic", "auto"] {
        let counts = model.explore(&Run::new().engine(engine).unwrap()).unwrap();
        assert_eq!(
            (counts.states, counts.transitions, counts.stop),
            (6u32.into(), Some(10u32.into()), Stop::Complete),
            "{engine}"
        );
    }
    let lts = model.transition_system(&Run::new()).unwrap();
    assert_eq!((lts.state_count(), lts.transition_count()), (6, 10));
}

#[test]
fn confluent_steps_have_priority_only_by_option() {
    let text = "act a, b, i; init hide({i}, allow({i, a, b}, i . a . delta || i . b . delta));";
    let of = |priority| Specification::new("two.mcrl2", text).priority(priority).model().unwrap();
    let (plain, proven) = (of(Priority::None), of(Priority::Proven));
    let states = |model: &mu_check::Model, engine| {
        model.explore(&Run::new().engine(engine).unwrap()).map(|c| c.states)
    };
    assert_eq!(states(&plain, "explicit").unwrap(), states(&plain, "symbolic").unwrap());
    assert!(states(&proven, "explicit").unwrap() < states(&plain, "explicit").unwrap());
    assert!(
        states(&proven, "symbolic").unwrap_err().message().contains("--confluence"),
        "it has no priority"
    );
}

#[test]
fn verdicts_bring_evidence() {
    let model = counter().model().unwrap();
    let judgement = model.check("[true* . up(3)]false", &Run::new().threads(1)).unwrap();
    assert_eq!(judgement.verdict, Verdict::False);
    let evidence = judgement.evidence.unwrap();
    assert_eq!(evidence.actions(), ["up(1)", "up(2)", "up(3)"]);
    assert!(
        !evidence.is_witness()
            && evidence.text().contains("up(3)")
            && evidence.svg().contains("<svg")
    );
    let json: serde_json::Value = serde_json::from_str(&evidence.json()).unwrap();
    assert_eq!(json["steps"].as_array().map(Vec::len), Some(3), "{json}");
    assert_eq!(model.check("[true*]<true>true", &Run::new()).unwrap().verdict, Verdict::True);
}

#[test]
fn errors_have_places() {
    let error = Specification::new("wrong.mcrl2", "act a;\ninit b;\n").model().unwrap_err();
    let place = error.place().unwrap();
    assert_eq!(
        (place.name.as_str(), place.line, place.column, place.text.as_str()),
        ("wrong.mcrl2", 2, 6, "b")
    );
    assert!(error.to_string().contains("wrong.mcrl2:2:6"), "{error}");
    let error = counter().model().unwrap().check("[true*", &Run::new()).unwrap_err();
    assert_eq!(error.place().map(|p| p.name.as_str()), Some("formula"));
    assert!(counter().with("least", 1).model().is_err());
    assert!(Run::new().engine("fast").unwrap_err().message().contains("symbolic"));
    assert!(Specification::open("no/such/file").unwrap_err().message().contains("no/such/file"));
}

#[test]
fn limits_and_interrupts_leave_it_unknown() {
    let model = counter().with("max", 100_000).model().unwrap();
    let counts = model
        .explore(&Run::with_limits(Limits { max_states: Some(1000), ..Limits::default() }))
        .unwrap();
    assert_eq!(counts.stop, Stop::States);
    let run = Run::new();
    run.interrupt().store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(
        model.check("[true*]<true>true", &run).unwrap().verdict,
        Verdict::Unknown(Stop::Interrupted)
    );
}

#[test]
fn walks_go_back_and_forth() {
    let model = counter().model().unwrap();
    let mut walk = model.walk(7).unwrap();
    assert_eq!(
        walk.enabled_steps().iter().map(|e| e.action.as_str()).collect::<Vec<_>>(),
        ["up(1)"]
    );
    assert!(walk.take(0).unwrap() && !walk.take(9).unwrap());
    assert_eq!(walk.labels_taken(), ["up(1)"]);
    assert!(
        walk.state().iter().any(|(_, value)| value.as_deref() == Some("1")),
        "{:?}",
        walk.state()
    );
    assert!(walk.back().unwrap() && !walk.back().unwrap() && walk.labels_taken().is_empty());
    let random = |seed| {
        let mut walk = model.walk(seed).unwrap();
        (0..20).for_each(|_| assert!(walk.random().unwrap()));
        walk.labels_taken()
    };
    assert_eq!(random(3), random(3));
}
