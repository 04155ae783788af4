//! A model of one's own, without any specification language: slots, transition groups, closures.
//! Here a lock that two threads take by setting a flag each and looking at the other's, with and
//! without waiting. Formulas are checked on the fly: nothing is explored first.
//!
//! `cargo run --example own_model`

use mu_check::base::ids::{ActId, LabelId};
use mu_check::base::{Budget, Diagnostic, SourceMap};
use mu_check::data::expr::{DataSpec, Expr};
use mu_check::data::sort::basic;
use mu_check::explore::Options;
use mu_check::formula::typecheck::check_formula;
use mu_check::model::{Model, hand::HandModel};
use mu_check::process::labels::{ActionDecl, ActionLabels, MultiAction};
use mu_check::{pbes, syntax};
use std::sync::Arc;

/// Two threads, each with a program counter and a flag. `careful`: a thread looks at the other's
/// flag before it enters.
pub fn lock(careful: bool) -> HandModel {
    let mut model = HandModel::new();
    let at = [0, 1].map(|i| model.slot(format!("at{i}"), i, true, 0));
    let flag = [0, 1].map(|i| model.slot(format!("flag{i}"), i, false, 0));
    for i in 0..2 {
        // A group: slots that must have these values, slots that it reads, slots that it writes
        // (ascending), what it does.
        model.group("set", &[(at[i], 0)], &[], &[at[i], flag[i]], move |_, out| {
            out.step(format!("set({i})"), &[1, 1])
        });
        model.group("enter", &[(at[i], 1)], &[flag[1 - i]], &[at[i]], move |read, out| {
            if !careful || read[0] == 0 {
                out.step(format!("enter({i})"), &[2]);
            }
        });
        model.group("leave", &[(at[i], 2)], &[], &[at[i], flag[i]], move |_, out| {
            out.step(format!("leave({i})"), &[0, 0])
        });
    }
    model
}

/// The actions of the lock; each has the number of a thread.
const ACTIONS: [&str; 3] = ["set", "enter", "leave"];

/// The labels of the lock with typed arguments, which formulas match.
struct LockLabels<'m>(&'m HandModel);

impl ActionLabels for LockLabels<'_> {
    fn multi_action(&self, label: LabelId) -> Arc<MultiAction> {
        let text = self.0.label_text(label);
        let act = text.strip_suffix(')').and_then(|t| t.split_once('('));
        let typed = |(name, thread): (&str, &str)| {
            let action = ACTIONS.iter().position(|a| *a == name)?;
            Some((ActId::new(action), vec![Expr::number(thread.parse::<u32>().ok()?, basic::NAT)]))
        };
        Arc::new(act.and_then(typed).into_iter().collect())
    }
}

/// Checks a formula. Returns the number of states of the search and the verdict.
pub fn check(careful: bool, formula: &str) -> Result<(u64, pbes::Verdict), Diagnostic> {
    let actions = ACTIONS.map(|name| ActionDecl { name: name.into(), sorts: vec![basic::NAT] });
    let tree = syntax::parse_formula(SourceMap::new().add("formula", formula), formula)?;
    let formula = check_formula(&tree, &DataSpec::default(), &actions)?;
    let (model, options) = (lock(careful), Options::default());
    let answer = pbes::check(
        &model,
        &LockLabels(&model),
        &formula,
        pbes::Options::new(&options),
        &Budget::default(),
    )?;
    Ok((answer.states, answer.verdict))
}

#[allow(dead_code)] // the test has a `main` of its own
fn main() {
    for (what, formula) in [
        ("never two inside", "[true* . enter(0) . (!leave(0))* . enter(1)] false"),
        ("never stuck", "[true*] <true> true"),
    ] {
        for careful in [false, true] {
            match check(careful, formula) {
                Ok((states, verdict)) => {
                    println!("{what}, careful {careful}: {verdict:?} ({states} states)")
                }
                Err(error) => eprintln!("{}", error.message),
            }
        }
    }
}
