//! Tests of the audit: it accepts correct abstractions, and finds a step that an abstraction lacks.

use super::{formula, process};
use mu_base::Diagnostic;
use mu_compile::{Compiled, Confluence};
use mu_regions::audit::AuditRequest;
use mu_regions::{Audit, Levels, Study, audit, with_parameters};

/// Audits the abstraction of a process with counters against another process of the same shape.
fn audit_abstraction(abstracted: &str, concrete: &str, text: &str) -> Result<Audit, Diagnostic> {
    let (linear, defined) = with_parameters(process(abstracted)?, &["N".into()])?;
    let compiled = Compiled::new(linear, &Confluence::None)?;
    let study = Study::new(&compiled, &defined, &formula(text, &compiled)?, Levels::Coarse)?;
    study.all_covered(7)?;
    let plain = process(concrete)?;
    let mut all = Audit::default();
    for case in study.cases() {
        let base = &study.model(case)?;
        let wanted = AuditRequest {
            study: &study,
            case,
            base,
            process: &plain,
            samples: 600,
            seed: 7,
            enough: &|| false,
        };
        all.add(audit(&wanted)?);
    }
    Ok(all)
}

/// Builds a model with a counter, and a copy of it in a structure, a list and a bag of earlier
/// values.
fn model(guard: &str, next: &str) -> String {
    format!(
        "sort Note = struct none | at(of: Nat, kind: Bool);
         map N: Nat; far: Nat -> Nat;
         var n: Nat;
         eqn far(n) = n + 2;
         act put, get, odd: Nat; note: Note;
         proc P(n: Nat, kept: Note, row: List(Nat), bag: FBag(Nat)) =
             (n < N) -> put(n) . P(n + 1, at(n, true), if(#row < 2, n |> row, []), if(#bag < 2, bag + {{n: 1}}, {{:}}))
           + sum m: Nat. (m in row) -> get(m) . P(row = [])
           + sum m: Nat. (m in bag && {guard}) -> odd(far(m)) . P(bag = bag - {{m: 1}})
           + (kept != none) -> note(kept) . P(kept = {next});
         init P(0, none, [], {{:}});"
    )
}

const FORMULA: &str = "[true* . (exists m: Nat. put(m) && val(m >= N))] false";

#[test]
fn right_abstractions_pass_and_missing_steps_are_found() {
    let right = model("m < n", "none");
    let found = audit_abstraction(&right, &right, FORMULA).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(found.samples >= 600 && found.steps > 300 && found.unchecked.is_none(), "{found:?}");
    assert!(found.undecided * 10 < found.steps as u64, "{found:?}");
    // The instance has a step, or a next state, that the abstraction of the other process lacks.
    for (one, two) in [
        (model("m < n && n < m", "none"), model("m < n", "none")),
        (right.clone(), model("m < n", "at(n, true)")),
    ] {
        let error = audit_abstraction(&one, &two, FORMULA).expect_err("a step is missing");
        assert_eq!(error.stage, mu_base::Stage::Internal, "{error:?}");
        assert!(error.message.contains("does not cover a step"), "{error:?}");
    }
    // A literal that the abstraction does not know.
    let small = "map N: Nat; act put: Nat; far; proc P(n: Nat) = (n < N) -> put(n) . P(n + 1) + (LIMIT) -> far . P(n); init P(0);";
    let text = "[true* . far] false";
    for (blind, limit) in [
        ("n > n", "n > 4"),
        ("n > n", "n > 4294967295"),
        ("n + 9 == n", "n + 9 == N"),
        ("n > n", "n > N"),
    ] {
        let blind = small.replace("LIMIT", blind);
        assert!(audit_abstraction(&blind, &blind, text).is_ok(), "{limit}");
        assert!(
            audit_abstraction(&blind, &small.replace("LIMIT", limit), text).is_err(),
            "{limit}"
        );
    }
}
