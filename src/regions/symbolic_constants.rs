//! Conversion of symbolic constants to constant parameters of the process.
//!
//! Input: a linear process over a constant without an equation (`max_operation_id` under `-D
//! max_operation_id=any`). Output: the process with one more parameter for each such constant,
//! which replaces it everywhere, so that the read slots of a transition group show whether its
//! answer depends on it. Constants that equations define through it (`m_ip_prog_len =
//! max_operation_id + 1`) are expanded. If the equations of a mapping with arguments use it, the
//! mapping would hide that dependence. If a summand may use such a mapping, it is rejected with its
//! position. Cost: linear in the process. Invariant: for each value, the instance of the result's
//! parameter is the process with the constant defined by that value.

use ahash::{AHashMap, AHashSet};
use mu_base::ids::{OpId, VarId};
use mu_base::{Diagnostic, Span, Stage, narrow};
use mu_data::expr::{DataSpec, Equation, Expr, Substitution};
use mu_data::signature::OpKind;
use mu_data::sort::basic;
use mu_process::linear::{LinearProcess, Param, ParamRole};
use mu_process::open_constants::OpenConstants;

/// A symbolic constant.
#[derive(Clone, Debug)]
pub struct SymbolicConstant {
    /// Its name.
    pub name: String,
    /// The operation that formulas use.
    pub op: OpId,
    /// The variable of its parameter in the process.
    pub var: VarId,
    /// Index of the parameter.
    pub param: usize,
    /// Its least value: 1 for a constant of sort `Pos`, else 0.
    pub least: i64,
}

/// The symbolic constants of a process, with the constants that depend on them.
#[derive(Clone, Debug, Default)]
pub struct SymbolicConstants {
    /// The symbolic constants.
    pub rigid: Vec<SymbolicConstant>,
    /// These and the constants that equations define through them, as expressions over the
    /// parameters.
    pub constants: AHashMap<OpId, Expr>,
    /// Initial values of parameters that depend on them, likewise. The process contains the values
    /// for the least constants.
    pub initial: Vec<(usize, Expr)>,
}

/// Replaces the constants with these names by parameters. Errors: a name that is not an undefined
/// number constant; a mapping that hides one.
pub fn with_parameters(
    mut process: LinearProcess,
    names: &[String],
) -> Result<(LinearProcess, SymbolicConstants), Diagnostic> {
    let mut rigid = Vec::new();
    let component = narrow::index(process.components.len().max(1));
    let mut by: AHashMap<OpId, Expr> = AHashMap::new();
    for name in names {
        let signature = &mut process.data.signature;
        let found = signature.ops().find(|(_, o)| {
            o.name == *name
                && o.kind == OpKind::Mapping
                && [basic::NAT, basic::POS].contains(&o.sort)
        });
        let Some((op, sort)) = found.map(|(id, o)| (id, o.sort)) else {
            return Err(Diagnostic::new(
                Stage::Internal,
                format!("the constant `{name}` does not exist of sort Nat or Pos"),
            ));
        };
        let var = signature.fresh_var(name.clone(), sort);
        by.insert(op, Expr::var(signature, var));
        let least = i64::from(sort == basic::POS);
        rigid.push(SymbolicConstant {
            name: name.clone(),
            op,
            var,
            param: process.params.len(),
            least,
        });
        process.params.push(Param {
            var,
            role: ParamRole::Data(component),
            init: Expr::number(least, sort),
        });
    }
    while process.components.len() <= component as usize {
        process.components.push("parameters".into());
    }
    let in_pattern = |e: &&Equation| {
        let mut found = false;
        e.lhs.each_op(&mut |op| found |= by.contains_key(&op));
        found
    };
    if let Some(equation) = process.data.equations.iter().find(in_pattern) {
        let text =
            "the left-hand side of an equation has a symbolic parameter, which no term matches";
        let out = "a variable and a condition can have the place of the parameter";
        return Err(Diagnostic::new(Stage::Unsupported, text).note(out).or_span(equation.span));
    }
    let OpenConstants { constants: by, hiding } = OpenConstants::new(&process.data.equations, by);
    let reached = |e: &Expr| find_hiding(&process.data, e, &hiding);
    for summand in &process.summands {
        let parts = std::iter::once(&summand.guard).chain(summand.updates.iter().map(|u| &u.1));
        let parts =
            parts.chain(summand.actions.iter().chain(&summand.hidden).flat_map(|a| &a.args));
        if let Some((op, span)) = parts.into_iter().find_map(reached) {
            let name = &process.data.signature.op(op).name;
            let name = format!(
                "the equations of `{name}` use a symbolic parameter, and a step depends on them"
            );
            let out = "an argument of the mapping can have the value of the parameter instead";
            return Err(Diagnostic::new(Stage::Unsupported, name)
                .note(out)
                .or_span(span)
                .or_span(summand.span()));
        }
    }
    if let Some((op, span)) = process.params.iter().find_map(|p| reached(&p.init)) {
        let name = &process.data.signature.op(op).name;
        let text = format!(
            "the equations of `{name}` use a symbolic parameter, and the initial state depends on them"
        );
        return Err(Diagnostic::new(Stage::Unsupported, text).or_span(span));
    }
    for summand in &mut process.summands {
        summand.guard = summand.guard.replace_operations(&by);
        summand.updates.iter_mut().for_each(|u| u.1 = u.1.replace_operations(&by));
        summand
            .actions
            .iter_mut()
            .chain(&mut summand.hidden)
            .flat_map(|a| &mut a.args)
            .for_each(|e| *e = e.replace_operations(&by));
    }
    let least: Substitution = rigid
        .iter()
        .map(|r| (r.var, Expr::number(r.least, process.data.signature.var(r.var).sort)))
        .collect();
    let mut initial = Vec::new();
    for (i, param) in process.params.iter_mut().enumerate() {
        let init = param.init.replace_operations(&by);
        if !init.is_closed() {
            param.init = init.substitute(&least);
            initial.push((i, init));
        }
    }
    Ok((process, SymbolicConstants { rigid, constants: by, initial }))
}

/// Finds an operation that hides a constant and that the evaluation of an expression may use.
fn find_hiding(data: &DataSpec, e: &Expr, hiding: &AHashMap<OpId, Span>) -> Option<(OpId, Span)> {
    if hiding.is_empty() {
        return None;
    }
    let mut seen: AHashSet<OpId> = AHashSet::new();
    let mut todo = Vec::new();
    e.each_op(&mut |op| todo.push(op));
    while let Some(op) = todo.pop() {
        if let Some(span) = hiding.get(&op) {
            return Some((op, *span));
        }
        if seen.insert(op) {
            for equation in data.equations.iter().filter(|e| e.lhs.head() == Some(op)) {
                equation.rhs.each_op(&mut |op| todo.push(op));
                equation.condition.iter().for_each(|c| c.each_op(&mut |op| todo.push(op)));
            }
        }
    }
    None
}
