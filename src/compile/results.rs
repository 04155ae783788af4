//! What groups compute: updates and arguments of actions, once in a state for all groups that
//! compute the same.
//!
//! In: an expression of a group. Out: how it is best computed ([`Compute`]). A throw of two dice
//! that comes to five moves a piece in the same way, whichever dice show it; a board that four
//! summands look at is turned once. Only what reads the state alone is shared, since a sum has
//! other values in each group. Cost: of each shared expression the last result is kept, with the
//! numbers of what it was computed from: the groups of a state are asked one after the other.
//!
//! Invariant: a result is used for the same numbers of values only, so it is what the expression
//! comes to; a failure is not kept.

use super::GroupCode;
use super::as_var;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::engine::{Code, Engine, Value};
use mu_data::expr::Expr;

/// Fewest operations in an expression that is worth to be shared.
const WORTH: usize = 3;

/// One argument or update, as it is best computed.
pub(super) enum Compute {
    /// Position in the environment.
    Copy(usize),
    Run(Code),
    /// Number of a shared expression, positions of its variables in the environment.
    Shared(usize, Box<[usize]>),
}

/// An expression that several groups compute.
struct Known {
    code: Code,
    vars: Vec<VarId>,
    /// The numbers of the values that it was computed from last, and what it came to.
    last: Option<(Vec<u32>, Value)>,
}

/// All expressions that the groups of a thread share.
#[derive(Default)]
pub(super) struct Results {
    numbers: AHashMap<Expr, usize>,
    all: Vec<Known>,
}

/// The expressions on the state alone that several groups compute.
pub(super) fn common(codes: &[GroupCode]) -> AHashSet<Expr> {
    let mut by: AHashMap<&Expr, (usize, usize)> = AHashMap::new();
    let mut vars = Vec::new();
    for (group, code) in codes.iter().enumerate() {
        for e in code.actions.iter().flat_map(|a| &a.args).chain(&code.updates) {
            vars.clear();
            e.free_vars(&mut vars);
            if !vars.is_empty() && vars.iter().all(|v| code.reads.contains(v)) {
                let (times, last) = by.entry(e).or_insert((0, usize::MAX));
                *times += usize::from(std::mem::replace(last, group) != group);
            }
        }
    }
    let worth = |e: &Expr| {
        let mut operations = 0;
        e.each_op(&mut |_| operations += 1);
        operations >= WORTH
    };
    by.into_iter()
        .filter(|(e, (times, _))| *times > 1 && worth(e))
        .map(|(e, _)| e.clone())
        .collect()
}

impl Results {
    /// How a group computes an expression over its environment, of which the first `reads`
    /// variables are what it reads.
    pub(super) fn compute(
        &mut self,
        engine: &mut Engine,
        e: &Expr,
        env: &[VarId],
        common: &AHashSet<Expr>,
    ) -> Result<Compute, Diagnostic> {
        let position = |v: &VarId| {
            env.iter().position(|x| x == v).expect("free variables are read or summed over")
        };
        if let Some(v) = as_var(e) {
            return Ok(Compute::Copy(position(&v)));
        }
        if !common.contains(e) {
            return engine.code(e, env).map(Compute::Run);
        }
        let number = match self.numbers.get(e) {
            Some(&known) => known,
            None => {
                let mut vars = Vec::new();
                e.free_vars(&mut vars);
                let code = engine.code(e, &vars)?;
                self.all.push(Known { code, vars, last: None });
                self.numbers.insert(e.clone(), self.all.len() - 1);
                self.all.len() - 1
            }
        };
        Ok(Compute::Shared(number, self.all[number].vars.iter().map(position).collect()))
    }

    /// What an expression comes to in an environment that begins with the values of these numbers.
    pub(super) fn of(
        &mut self,
        engine: &mut Engine,
        c: &Compute,
        reads: &[u32],
        full: &[Value],
    ) -> Result<Value, Diagnostic> {
        match c {
            Compute::Copy(i) => Ok(full[*i].clone()),
            Compute::Run(code) => engine.eval(code, full),
            Compute::Shared(number, positions) => {
                let known = &mut self.all[*number];
                if let Some((key, value)) = &known.last
                    && positions.iter().zip(key).all(|(&i, k)| reads[i] == *k)
                {
                    return Ok(value.clone());
                }
                let values: Vec<Value> = positions.iter().map(|&i| full[i].clone()).collect();
                let value = engine.eval(&known.code, &values)?;
                known.last = Some((positions.iter().map(|&i| reads[i]).collect(), value.clone()));
                Ok(value)
            }
        }
    }
}
