//! Constants without a value, which stand for any value: a term that depends on one is not
//! evaluated.
//!
//! In: a data specification, names of constants that no equation defines. Out: the operations with
//! an evaluation that may use one of these; expressions over variables for those that are
//! constants. The rewriter takes a constant without equations for a value of its own: of
//! `f(400) = true; f(x) = false` the second equation applies to `f(N)`, which is wrong if `N`
//! stands for 400. With a variable in its place, the evaluation of `f(N)` stops. Cost: the
//! operations of all equations, for each level of calls.

use crate::linear::LinearProcess;
use ahash::AHashMap;
use mu_base::Span;
use mu_base::ids::OpId;
use mu_data::expr::{Equation, Expr, ExprKind, Substitution};
use mu_data::signature::{OpKind, Signature};

/// Operations that depend on constants without a value.
#[derive(Clone, Debug, Default)]
pub struct OpenConstants {
    /// The constants, and those that one unconditional equation defines through them, as
    /// expressions over variables.
    pub constants: AHashMap<OpId, Expr>,
    /// The other operations with equations that use one, with the position of such an equation.
    pub hiding: AHashMap<OpId, Span>,
}

impl OpenConstants {
    /// Analyses equations. `constants`: the constants without a value, with the expressions that
    /// replace them.
    pub fn new(equations: &[Equation], constants: AHashMap<OpId, Expr>) -> Self {
        let mut by = constants;
        if by.is_empty() {
            return Self::default();
        }
        let mut of_head: AHashMap<OpId, Vec<&Equation>> = AHashMap::new();
        for e in equations {
            if let Some(op) = e.lhs.head() {
                of_head.entry(op).or_default().push(e);
            }
        }
        let mut open: AHashMap<OpId, Span> = AHashMap::new();
        loop {
            let before = open.len();
            for e in equations {
                let Some(op) = e.lhs.head() else { continue };
                if open.contains_key(&op) || by.contains_key(&op) {
                    continue;
                }
                let mut uses = false;
                let mut see = |o| uses |= by.contains_key(&o) || open.contains_key(&o);
                // A pattern with the constant matches its value only.
                for part in [&e.lhs, &e.rhs].into_iter().chain(&e.condition) {
                    part.each_op(&mut see);
                }
                if uses {
                    open.insert(op, e.span);
                }
            }
            if open.len() == before {
                break;
            }
        }
        // A definition is complete if all that it uses is known.
        loop {
            let mut found = Vec::new();
            for op in open.keys() {
                let [equation] = of_head[op][..] else { continue };
                let mut complete = true;
                equation.rhs.each_op(&mut |o| complete &= !open.contains_key(&o));
                if complete
                    && matches!(equation.lhs.kind, ExprKind::Op(_))
                    && equation.condition.is_none()
                {
                    found.push((*op, equation.rhs.replace_operations(&by)));
                }
            }
            if found.is_empty() {
                return Self { constants: by, hiding: open };
            }
            for (op, definition) in found {
                open.remove(&op);
                by.insert(op, definition);
            }
        }
    }

    /// Analyses equations for constants with these names, which fresh variables replace. Returns
    /// these variables with the constants as well.
    pub(crate) fn with_names(
        signature: &mut Signature,
        equations: &[Equation],
        names: &[String],
    ) -> (Self, Substitution) {
        let (mut constants, mut back) = (AHashMap::new(), Substitution::new());
        for name in names {
            let found = signature.ops().find(|(_, o)| o.name == *name && o.kind == OpKind::Mapping);
            let Some((op, sort)) = found.map(|(op, o)| (op, o.sort)) else { continue };
            let var = signature.fresh_var(name.clone(), sort);
            constants.insert(op, Expr::var(signature, var));
            back.insert(var, Expr::op(signature, op));
        }
        (Self::new(equations, constants), back)
    }

    /// True if the evaluation of an expression may use a constant without a value.
    pub fn is_used_by(&self, e: &Expr) -> bool {
        self.find(e, &|op| self.constants.contains_key(&op) || self.hiding.contains_key(&op))
    }

    /// True if an expression contains an operation with equations that use a constant without a
    /// value.
    pub fn is_hidden_in(&self, e: &Expr) -> bool {
        self.find(e, &|op| self.hiding.contains_key(&op))
    }

    fn find(&self, e: &Expr, is: &dyn Fn(OpId) -> bool) -> bool {
        let mut found = false;
        if !self.constants.is_empty() {
            e.each_op(&mut |op| found |= is(op));
        }
        found
    }
}

/// Replaces all expressions of a process.
pub(crate) fn replace(process: &mut LinearProcess, by: &dyn Fn(&Expr) -> Expr) {
    process.params.iter_mut().for_each(|p| p.init = by(&p.init));
    process.chance.iter_mut().for_each(|c| c.weight = by(&c.weight));
    for summand in &mut process.summands {
        summand.guard = by(&summand.guard);
        let acts = summand.actions.iter_mut().chain(&mut summand.hidden);
        acts.flat_map(|a| &mut a.args).for_each(|e| *e = by(e));
        summand.updates.iter_mut().for_each(|u| u.1 = by(&u.1));
        let weight = summand.chance.iter_mut().map(|c| &mut c.weight);
        summand.time.iter_mut().chain(weight).for_each(|e| *e = by(e));
    }
}
