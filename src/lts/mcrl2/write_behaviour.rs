//! Writer of mCRL2's binary `.lps` and `.pbes` files from typed terms; the format is that of
//! [`super::behaviour`].
//!
//! Cost: one pass. Invariant: reading the file gives a text with the same meaning.

use super::super::aterm::{Term, TermWriter};
use super::super::behaviour::{Equations, Predicate, Process};
use super::super::typed::{NumberSort, TermRef};
use super::refuse;
use super::write::{
    Shared, action_declarations, constant, data_specification, multi_action, named_sort, number,
    output_list, share_needed,
};
use mu_base::Diagnostic;
use std::io::Write;

/// Writes a linear process.
///
/// # Errors
/// The file cannot be written, or a term is not well typed.
pub fn write_process(process: &Process, output: impl Write) -> Result<(), Diagnostic> {
    process.check()?;
    process_stream(process, Box::new(output)).map_err(|e| refuse(format!("cannot write: {e}")))
}

/// Writes an equation system.
///
/// # Errors
/// The file cannot be written, or a term is not well typed.
pub fn write_equations(equations: &Equations, output: impl Write) -> Result<(), Diagnostic> {
    equations.check()?;
    equations_stream(equations, Box::new(output)).map_err(|e| refuse(format!("cannot write: {e}")))
}

fn process_stream(process: &Process, output: Box<dyn Write + '_>) -> std::io::Result<()> {
    let mut out = TermWriter::with_contents(output, 1 << 16)?;
    let mark = out.symbol("linear_process_specification", 0)?;
    out.output(mark, &[])?;
    let shared = share_needed(&mut out, &process.typed, process.terms())?;
    data_specification(&mut out, &process.typed, &shared)?;
    let actions = action_declarations(&mut out, &process.typed, &shared)?;
    output_list(&mut out, &actions)?;
    globals(&mut out, &process.globals, &shared)?;
    output_list(&mut out, &shared.list(&process.parameters))?;
    let certain = point_distribution(&mut out)?;
    let untimed = untimed_term(&mut out)?;
    out.output_number(process.summands.len() as u64)?;
    for s in &process.summands {
        let distribution = out.symbol("Distribution", 2)?;
        out.output(distribution, &certain)?;
        output_list(&mut out, &shared.list(&s.variables))?;
        out.output_shared(shared.term(s.condition))?;
        let label = multi_action(&mut out, &actions, &shared, s.actions.iter())?;
        out.output_shared(label)?;
        out.output_shared(s.time.map_or(untimed, |t| shared.term(t)))?;
        let mut assignments = Vec::new();
        for (var, value) in &s.assignments {
            assignments
                .push(out.share("DataVarIdInit", &[shared.term(*var), shared.term(*value)])?);
        }
        output_list(&mut out, &assignments)?;
    }
    // Untimed deadlock is possible everywhere: it adds nothing.
    out.output_number(1)?;
    output_list(&mut out, &[])?;
    let always = constant(&mut out, "true", "Bool")?;
    out.output_shared(always)?;
    out.output_shared(untimed)?;
    let values = out.share_list(&shared.list(&process.initial))?;
    let distribution = out.share("Distribution", &certain)?;
    let start = out.symbol("LinearProcessInit", 2)?;
    out.output(start, &[values, distribution])?;
    out.finish()
}

fn equations_stream(system: &Equations, output: Box<dyn Write + '_>) -> std::io::Result<()> {
    let mut out = TermWriter::with_contents(output, 1 << 16)?;
    let mark = out.symbol("parameterised_boolean_equation_system", 0)?;
    out.output(mark, &[])?;
    let shared = share_needed(&mut out, &system.typed, system.terms().into_iter())?;
    data_specification(&mut out, &system.typed, &shared)?;
    globals(&mut out, &system.globals, &shared)?;
    out.output_number(system.equations.len() as u64)?;
    for e in &system.equations {
        let sign = out.symbol(if e.least { "Mu" } else { "Nu" }, 0)?;
        out.output(sign, &[])?;
        let (name, parameters) =
            (out.share(&e.name, &[])?, out.share_list(&shared.list(&e.parameters))?);
        let head = out.symbol("PropVarDecl", 2)?;
        out.output(head, &[name, parameters])?;
        let body = predicate(&mut out, &e.body, &shared)?;
        out.output_shared(body)?;
    }
    let (name, values) =
        (out.share(&system.initial.0, &[])?, out.share_list(&shared.list(&system.initial.1))?);
    let start = out.symbol("PropVarInst", 2)?;
    out.output(start, &[name, values])?;
    out.finish()
}

fn predicate(out: &mut TermWriter<'_>, p: &Predicate, shared: &Shared) -> std::io::Result<Term> {
    stacker::maybe_grow(64 << 10, 1 << 20, || match p {
        Predicate::Const(value) => truth(out, *value),
        Predicate::Data(e) => Ok(shared.term(*e)),
        Predicate::Junction(all, parts) => {
            let mut whole = None;
            for part in parts.iter().rev() {
                let part = predicate(out, part, shared)?;
                whole = Some(match whole {
                    None => part,
                    Some(rest) => {
                        out.share(if *all { "PBESAnd" } else { "PBESOr" }, &[part, rest])?
                    }
                });
            }
            match whole {
                Some(whole) => Ok(whole),
                None => truth(out, *all),
            }
        }
        Predicate::Quantifier(all, vars, body) => {
            let vars = out.share_list(&shared.list(vars))?;
            let body = predicate(out, body, shared)?;
            out.share(if *all { "PBESForall" } else { "PBESExists" }, &[vars, body])
        }
        Predicate::Call(name, values) => {
            let (name, values) = (out.share(name, &[])?, out.share_list(&shared.list(values))?);
            out.share("PropVarInst", &[name, values])
        }
    })
}

/// Shares a constant predicate: the toolset accepts only data constants.
fn truth(out: &mut TermWriter<'_>, value: bool) -> std::io::Result<Term> {
    constant(out, if value { "true" } else { "false" }, "Bool")
}

fn globals(out: &mut TermWriter<'_>, globals: &[TermRef], shared: &Shared) -> std::io::Result<()> {
    out.output_number(globals.len() as u64)?;
    globals.iter().try_for_each(|g| out.output_shared(shared.term(*g)))
}

/// Shares the distribution of a single value.
fn point_distribution(out: &mut TermWriter<'_>) -> std::io::Result<[Term; 2]> {
    Ok([out.share_list(&[])?, number(out, &1.into(), NumberSort::Real)?])
}

/// Shares the time of untimed terms.
pub(super) fn untimed_term(out: &mut TermWriter<'_>) -> std::io::Result<Term> {
    let (real, undefined) = (named_sort(out, "Real")?, out.share("@undefined_real", &[])?);
    out.share("DataVarId", &[undefined, real])
}
