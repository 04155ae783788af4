//! Exploration with a visitor that counts states and transitions and collects some of the states,
//! if counts are not enough.
//!
//! `cargo run --example explore_with_visitor`

use mu_check::base::ids::{LabelId, StateId};
use mu_check::base::{Budget, Diagnostic};
use mu_check::explore::{Options, VisitEnd, Visitor, visit};
use mu_check::model::hand::HandModel;
use std::ops::ControlFlow;

/// Numbers of states and transitions, and the vectors with equal counters.
#[derive(Default)]
pub struct Census {
    pub states: u64,
    pub steps: u64,
    pub even: Vec<Vec<u32>>,
}

impl Visitor for Census {
    fn state(&mut self, _: StateId, vector: &[u32]) -> ControlFlow<()> {
        self.states += 1;
        if vector.windows(2).all(|w| w[0] == w[1]) {
            self.even.push(vector.to_vec());
        }
        ControlFlow::Continue(())
    }
    fn step(&mut self, _: StateId, _: LabelId, _: StateId) -> ControlFlow<()> {
        self.steps += 1;
        ControlFlow::Continue(())
    }
}

/// Explores three independent counters from 0 to 4.
pub fn census() -> Result<(Census, VisitEnd), Diagnostic> {
    let mut census = Census::default();
    let mut model = HandModel::new();
    for i in 0..3 {
        let counter = model.slot(format!("counter{i}"), i, false, 0);
        model.group(format!("up{i}"), &[], &[counter], &[counter], move |read, emit| {
            if read[0] < 4 {
                emit.step(format!("up({i})"), &[read[0] + 1]);
            }
        });
    }
    let end = visit(&model, &Options::default(), &Budget::default(), &mut census)?;
    Ok((census, end))
}

#[allow(dead_code)] // the test has its own `main`
fn main() {
    match census() {
        Ok((census, end)) => println!(
            "{end:?}: {} states, {} steps, counters equal in {:?}",
            census.states, census.steps, census.even
        ),
        Err(error) => eprintln!("{}", error.message),
    }
}
