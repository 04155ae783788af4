//! `eval`: evaluation of a data expression.

use crate::args::{EvalArgs, Format};
use crate::output::{self, print};
use crate::pipeline::Session;
use mu_base::Diagnostic;
use mu_data::engine::{Engine, Program};
use mu_data::expr::DataSpec;
use mu_data::print::expression;
use mu_data::typecheck::check_expression;
use serde_json::json;

/// Evaluates the expression and prints its value.
pub(crate) fn evaluate(session: &mut Session, args: &EvalArgs) -> Result<u8, Diagnostic> {
    let mut data = match &args.model {
        Some(path) => session.specification(path)?.data,
        None => DataSpec::default(),
    };
    output::begin_stage("evaluating");
    let source = session.sources.add("EXPRESSION", args.expression.clone());
    let tree = mu_syntax::parse_data(source, &args.expression)?;
    let typed = check_expression(&tree, &mut data, None)?;
    // The compiled program adds operations, which values may contain.
    let program = Program::compile(&data)?;
    let mut engine = Engine::new(program.clone()).with_budget(&session.budget);
    let value = engine.from_expr(&typed)?;
    let value = engine.to_expr_at(&value, typed.sort);
    let (value, sort) =
        (expression(program.signature(), &value), data.signature.sorts.text(typed.sort));
    match session.common.format {
        Format::Json => output::print_object(
            json!({ "expression": args.expression, "value": value, "sort": sort }),
        )?,
        Format::Text if session.common.verbose > 0 => print(&format!("{value}: {sort}\n"))?,
        Format::Text => print(&format!("{value}\n"))?,
    }
    Ok(0)
}
