//! Time in linear processes: semantics of `a@t` if states hold the time of the last action.
//!
//! In and out: [`LinearProcess`]. The times of timed actions are strictly ascending and positive;
//! an action without a time takes no observable time. [`stamp`] adds a parameter for the time of
//! the last timed action, and writes the time into the label; the reference explores time to the
//! same extent. [`untime`] removes the times: an action without a time then happens at some time,
//! as in the reference's `lpsuntime`. Cost: linear. Invariant: a process without times is
//! unchanged.

use crate::linear::{Act, LinearProcess, Param, ParamRole};
use mu_base::Place;
use mu_base::ids::{ActId, VarId};
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;
use mu_labels::{ActionDecl, TIME_STAMP};

fn real(signature: &mut Signature, n: u32) -> Expr {
    Expr::builtin(signature, Builtin::IntToReal, vec![Expr::number(n, basic::INT)], basic::REAL)
}

/// Adds the parameter for the time of the last action. Returns its variable.
fn with_clock(process: &mut LinearProcess, name: &str) -> VarId {
    let init = real(&mut process.data.signature, 0);
    let clock = process.data.signature.fresh_var(name, basic::REAL);
    process.params.push(Param { var: clock, role: ParamRole::Data(0), init });
    clock
}

/// Adds the times of actions to their labels, and requires them to ascend.
pub fn stamp(process: &mut LinearProcess) {
    if !process.is_timed() {
        return;
    }
    let clock = with_clock(process, "last_action_time");
    let last = process.params.len() - 1;
    let action = ActId::new(process.actions.len());
    process.actions.push(ActionDecl { name: TIME_STAMP.into(), sorts: vec![basic::REAL] });
    let signature = &mut process.data.signature;
    for summand in &mut process.summands {
        let Some(time) = summand.time.take() else { continue };
        let before = Expr::var(signature, clock);
        let later =
            Expr::builtin(signature, Builtin::Less, vec![before, time.clone()], basic::BOOL);
        summand.guard = Expr::and(signature, summand.guard.clone(), later);
        summand.updates.push((last, time.clone()));
        summand.actions.push(Act {
            action,
            args: vec![time],
            from: Vec::new(),
            place: Place(summand.span()),
        });
    }
}

/// Removes the times: only their order remains.
pub fn untime(process: &mut LinearProcess) {
    if !process.is_timed() {
        return;
    }
    let clock = with_clock(process, "last_action_time");
    let last = process.params.len() - 1;
    let signature = &mut process.data.signature;
    for summand in &mut process.summands {
        let time = summand.time.take().unwrap_or_else(|| {
            let some = signature.fresh_var("time_var", basic::REAL);
            summand.sum_vars.push(some);
            summand.had_sum = true;
            Expr::var(signature, some)
        });
        let (before, zero) = (Expr::var(signature, clock), real(signature, 0));
        for least in [before, zero] {
            let later =
                Expr::builtin(signature, Builtin::Greater, vec![time.clone(), least], basic::BOOL);
            summand.guard = Expr::and(signature, summand.guard.clone(), later);
        }
        summand.updates.push((last, time));
    }
}
