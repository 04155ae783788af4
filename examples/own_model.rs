//! A model of one's own, without any specification language: slots, transition groups, closures. Here a lock that two threads take by
//! setting a flag each and looking at the other's, with and without waiting; explored, then checked against a formula.
//!
//! `cargo run --example own_model`

use mu_check::base::{Budget, Diagnostic, SourceMap};
use mu_check::explore::{Options, Silent, explore_lts};
use mu_check::formula::{file_labels::FileLabels, typecheck::check_formula};
use mu_check::model::{from_lts::LtsModel, toy::HandModel};
use mu_check::{pbes, syntax};
use std::sync::Arc;

/// Two threads, each with a program counter and a flag. `careful`: a thread looks at the other's flag before it enters.
pub fn lock(careful: bool) -> HandModel {
    let mut model = HandModel::new();
    let at = [0, 1].map(|i| model.slot(format!("at{i}"), i, true, 0));
    let flag = [0, 1].map(|i| model.slot(format!("flag{i}"), i, false, 0));
    for i in 0..2 {
        // A group: slots that must have these values, slots that it reads, slots that it writes (ascending), what it does.
        model.group("set", &[(at[i], 0)], &[], &[at[i], flag[i]], move |_, out| out.step(format!("set({i})"), &[1, 1]));
        model.group("enter", &[(at[i], 1)], &[flag[1 - i]], &[at[i]], move |read, out| {
            if !careful || read[0] == 0 {
                out.step(format!("enter({i})"), &[2]);
            }
        });
        model.group("leave", &[(at[i], 2)], &[], &[at[i], flag[i]], move |_, out| out.step(format!("leave({i})"), &[0, 0]));
    }
    model
}

/// States of the lock, and whether a formula holds.
pub fn check(careful: bool, formula: &str) -> Result<(u64, pbes::Verdict), Diagnostic> {
    let (options, budget) = (Options::default(), Budget::default());
    let (outcome, lts) = explore_lts(&lock(careful), &options, &budget, &Silent)?;
    let labels = FileLabels::new(&lts.table)?;
    let tree = syntax::parse_formula(SourceMap::new().add("formula", formula), formula)?;
    let formula = check_formula(&tree, labels.data(), labels.actions())?;
    let answer = pbes::check(&LtsModel::new(Arc::new(lts)), &labels, &formula, pbes::Options::new(&options), &budget)?;
    Ok((outcome.states, answer.verdict))
}

#[allow(dead_code)] // the test has a `main` of its own
fn main() {
    for (what, formula) in
        [("never two inside", "[true* . enter(0) . (!leave(0))* . enter(1)] false"), ("never stuck", "[true*] <true> true")]
    {
        for careful in [false, true] {
            match check(careful, formula) {
                Ok((states, verdict)) => println!("{what}, careful {careful}: {verdict:?} ({states} states)"),
                Err(error) => eprintln!("{}", error.message),
            }
        }
    }
}
