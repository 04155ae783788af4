//! Shared results: updates and arguments that several groups compute, evaluated once per state.
//!
//! In: an expression of a group. Out: the best form to compute it ([`Compute`]). For example, each
//! throw of two dice with the same sum moves a piece in the same way, and four summands that use a
//! rotated board rotate it once. Only expressions on the state alone are shared, since sum
//! variables differ in each group. Cost: each shared expression caches its last result with the
//! numbers of its inputs, because the groups of a state are evaluated one after the other.
//!
//! Invariant: a cached result is used only for equal inputs; a failure is not cached.

use super::GroupCode;
use super::as_var;
use ahash::{AHashMap, AHashSet};
use mu_base::Diagnostic;
use mu_base::ids::VarId;
use mu_data::engine::{Code, Engine, Value};
use mu_data::expr::Expr;

/// Minimum number of operations in a shared expression.
const MIN_OPERATIONS: usize = 3;

/// Form in which an argument or update is computed.
pub(super) enum Compute {
    /// Position in the environment.
    Copy(usize),
    Run(Code),
    /// Number of a shared expression, positions of its variables in the environment.
    Shared(usize, Box<[usize]>),
}

/// Expression that several groups share.
struct CachedResult {
    code: Code,
    vars: Vec<VarId>,
    /// Numbers of the inputs of the last evaluation, and its result.
    last: Option<(Vec<u32>, Value)>,
}

/// Shared expressions of the groups of a thread.
#[derive(Default)]
pub(super) struct SharedResults {
    numbers: AHashMap<Expr, usize>,
    all: Vec<CachedResult>,
}

/// Returns the expressions on the state alone that several groups compute.
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
        operations >= MIN_OPERATIONS
    };
    by.into_iter()
        .filter(|(e, (times, _))| *times > 1 && worth(e))
        .map(|(e, _)| e.clone())
        .collect()
}

impl SharedResults {
    /// Returns the form in which a group computes an expression over its environment, of which the
    /// first `reads` variables are the ones that it reads.
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
                self.all.push(CachedResult { code, vars, last: None });
                self.numbers.insert(e.clone(), self.all.len() - 1);
                self.all.len() - 1
            }
        };
        Ok(Compute::Shared(number, self.all[number].vars.iter().map(position).collect()))
    }

    /// Computes a form in an environment that begins with the values of the numbers `reads`.
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
