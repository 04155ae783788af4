//! Time in linear processes: semantics of `a@t` if states hold the time of the last action.
//!
//! In and out: [`LinearProcess`]. The times of timed actions are strictly ascending and positive;
//! an action without a time takes no observable time. [`stamp`] adds a parameter for the time of
//! the last timed action, and writes the time into the label; the reference explores time to the
//! same extent. [`untime`] removes the times: an action without a time then happens at some time,
//! as in the reference's `lpsuntime`. Cost: linear. Invariant: a process without times is
//! unchanged.

use crate::labels::{ActionDecl, TIME_STAMP};
use crate::linear::{Act, LinearProcess, Param, ParamRole};
use mu_base::Place;
use mu_base::ids::{ActId, VarId};
use mu_data::expr::Expr;
use mu_data::signature::{Builtin, Signature};
use mu_data::sort::basic;

fn real(signature: &mut Signature, n: u32) -> Expr {
    Expr::builtin(signature, Builtin::IntToReal, vec![Expr::number(n, basic::INT)], basic::REAL)
}

/// Adds the parameter for the time of the last action, with a variable of the signature. Returns
/// the variable.
fn with_clock(process: &mut LinearProcess, signature: &mut Signature) -> VarId {
    let init = real(signature, 0);
    let clock = signature.fresh_var("last_action_time", basic::REAL);
    process.params.push(Param { var: clock, role: ParamRole::Data(0), init });
    clock
}

/// Adds the times of actions to their labels, and requires them to ascend.
pub fn stamp(process: &mut LinearProcess) {
    if !process.is_timed() {
        return;
    }
    let action = ActId::new(process.actions.len());
    process.actions.push(ActionDecl { name: TIME_STAMP.into(), sorts: vec![basic::REAL] });
    for summand in &mut process.summands {
        let Some(time) = summand.time.clone() else { continue };
        summand.actions.push(Act {
            action,
            args: vec![time],
            from: Vec::new(),
            place: Place(summand.span()),
        });
    }
    let mut signature = std::mem::take(&mut process.data.signature);
    order(process, &mut signature);
    process.data.signature = signature;
}

/// Requires the times of actions to ascend, and removes them. Formulas, which match labels without
/// times, have the same values. Expressions are over `signature`, an extension of the process's.
pub fn order(process: &mut LinearProcess, signature: &mut Signature) {
    if !process.is_timed() {
        return;
    }
    let clock = with_clock(process, signature);
    let last = process.params.len() - 1;
    for summand in &mut process.summands {
        let Some(time) = summand.time.take() else { continue };
        let before = Expr::var(signature, clock);
        let later =
            Expr::builtin(signature, Builtin::Less, vec![before, time.clone()], basic::BOOL);
        summand.guard = Expr::and(signature, summand.guard.clone(), later);
        summand.updates.push((last, time));
    }
}

/// Removes the times: only their order remains.
pub fn untime(process: &mut LinearProcess) {
    if !process.is_timed() {
        return;
    }
    let mut signature = std::mem::take(&mut process.data.signature);
    let clock = with_clock(process, &mut signature);
    let last = process.params.len() - 1;
    for summand in &mut process.summands {
        let time = summand.time.take().unwrap_or_else(|| {
            let some = signature.fresh_var("time_var", basic::REAL);
            summand.sum_vars.push(some);
            summand.had_sum = true;
            Expr::var(&signature, some)
        });
        let (before, zero) = (Expr::var(&signature, clock), real(&mut signature, 0));
        for least in [before, zero] {
            let later = Expr::builtin(
                &mut signature,
                Builtin::Greater,
                vec![time.clone(), least],
                basic::BOOL,
            );
            summand.guard = Expr::and(&mut signature, summand.guard.clone(), later);
        }
        summand.updates.push((last, time));
    }
    process.data.signature = signature;
}
