//! Normal forms of terms, solutions of conditions, and limits.

mod facts;
mod random;
mod solving;
mod terms;

use super::*;
use crate::expr::DataSpec;
use crate::typecheck::{check_data_specification, check_expression_with};
use mu_syntax::{parse_data, parse_specification};

/// A data specification; `glob` variables are in scope of the expressions under test.
pub struct Fixture {
    pub spec: DataSpec,
    pub vars: Vec<VarId>,
}

impl Fixture {
    pub fn new(text: &str) -> Self {
        let text = format!("{text}\ninit delta;");
        let ast = parse_specification(Default::default(), &text)
            .unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let (spec, vars) =
            check_data_specification(&ast).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        Self { spec, vars }
    }
    pub fn expr(&mut self, text: &str, sort: Option<SortId>) -> Expr {
        let data = parse_data(Default::default(), text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        check_expression_with(&data, &mut self.spec, &self.vars, sort)
            .unwrap_or_else(|e| panic!("{text}: {e:?}"))
    }
    /// Returns the normal form as text, or the error's message.
    pub fn normal(&mut self, text: &str) -> String {
        let e = self.expr(text, None);
        let mut engine =
            Engine::new(Program::compile(&self.spec).unwrap_or_else(|e| panic!("{e:?}")));
        engine.set_step_limit(1_000_000);
        match engine.from_expr(&e) {
            Ok(v) => {
                let back = engine.to_expr_at(&v, e.sort);
                let again = engine.from_expr(&back).unwrap_or_else(|e| panic!("{text}: {e:?}"));
                assert_eq!(engine.to_expr_at(&again, e.sort), back, "{text}: {v:?} is not stable");
                engine.text(&v, 1000)
            }
            Err(e) => format!("error: {}", e.message),
        }
    }
    /// Returns all solutions of a condition for the named unknowns, sorted, as text; the other
    /// variables must not occur.
    pub fn solutions(
        &mut self,
        unknowns: &[&str],
        condition: &str,
    ) -> Result<Vec<String>, Diagnostic> {
        let e = self.expr(condition, None);
        let mut engine = Engine::new(Program::compile(&self.spec)?);
        let wanted: Vec<VarId> = unknowns
            .iter()
            .map(|n| {
                *self
                    .vars
                    .iter()
                    .find(|v| self.spec.signature.var(**v).name == *n)
                    .unwrap_or_else(|| panic!("no variable {n}"))
            })
            .collect();
        let problem = engine.problem(&wanted, &e, &[])?;
        let mut out = Vec::new();
        engine.solve(&problem, &[], &mut |engine, values| {
            out.push(values.iter().map(|v| engine.text(v, 1000)).collect::<Vec<_>>().join(" "));
            Ok(ControlFlow::Continue(()))
        })?;
        let count = out.len();
        out.sort();
        out.dedup();
        assert_eq!(out.len(), count, "{condition}: a solution comes twice");
        Ok(out)
    }
}

#[track_caller]
pub fn table(declarations: &str, cases: &[(&str, &str)]) {
    let mut fixture = Fixture::new(declarations);
    let mut bad = Vec::new();
    for (text, expected) in cases {
        let found = fixture.normal(text);
        if !(found == *expected
            || expected
                .strip_prefix("error: ")
                .is_some_and(|e| found.starts_with("error: ") && found.contains(e)))
        {
            bad.push(format!("{text}: expected {expected}, found {found}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
