//! Reader of mCRL2's binary `.lps` files, with the parts common to `.pbes` files
//! ([`super::equations`]), to equivalent specifications as text.
//!
//! After the mark follow the declarations as in an `.lts` file, then
//!
//! | `linear_process_specification` | `parameterised_boolean_equation_system` |
//! |---|---|
//! | the list of actions | global variables: a count and the items |
//! | global variables: a count and the items | equations: a count; sign, head, right-hand side |
//! | the list of parameters | the initial instance |
//! | summands: a count; distribution, variables, condition, actions, time, assignments | |
//! | conditions of deadlock: a count; variables, condition, time | |
//! | the initial values with a distribution | |
//!
//! The text passes the same front end as specifications by users, which rejects unsupported
//! constructs (time, probabilities) with their place. A deadlock without time has no effect and is
//! omitted. Cost: one pass, linear in the text; terms share their parts and texts do not: one
//! expression has at most a megabyte.

use super::super::aterm::{Content, StreamItem, Term, TermReader};
use super::super::declarations::{Declarations, Printer, is_name};
use super::{Texts, data, expect_term, refuse};
use mu_base::Diagnostic;
use std::fmt::Write;
use std::io::Read;

/// Limit on the total length of the text; beyond it, the file is rejected.
pub(super) const MAX_TOTAL: usize = 1 << 28;

/// Reads a linear process as a specification.
///
/// # Errors
/// The file is damaged, or an expression in it has no text.
pub fn read_process(input: impl Read) -> Result<String, Diagnostic> {
    process(Box::new(input))
}

fn process(input: Box<dyn Read + '_>) -> Result<String, Diagnostic> {
    let mut stream = start(input, "linear_process_specification", "linear process")?;
    let mut declarations = data(&mut stream)??.expect_declared()?;
    let actions = next_term(&mut stream)?;
    let actions = Texts(&stream).list(actions)?;
    for action in &actions {
        declarations.add_action(&stream, *action)?;
    }
    let mut out = declarations.text().to_string();
    globals(&mut stream, &declarations, &mut out)?;
    let parameters = next_term(&mut stream)?;
    let mut name = String::from("P");
    while actions.iter().any(|a| action_name(&stream, *a) == Some(&name)) {
        name.push('_');
    }
    _ = write!(out, "proc {name}");
    head(&declarations.printer(&stream), parameters, &mut out)?;
    out.push_str(" =");
    let mut first = true;
    let mut before = |out: &mut String| {
        out.push_str(if first { "\n    " } else { "\n  + " });
        first = false;
    };
    for _ in 0..count(&mut stream, "summands")? {
        let mut parts = [0; 6];
        for part in &mut parts {
            *part = next_term(&mut stream)?;
        }
        before(&mut out);
        let printer =
            Summands { printer: declarations.printer(&stream), actions: &actions, name: &name };
        printer.summand(&parts, &mut out)?;
        if out.len() > MAX_TOTAL {
            return Err(refuse(format!(
                "the text of the file has more than {MAX_TOTAL} characters"
            )));
        }
    }
    for _ in 0..count(&mut stream, "conditions of deadlock")? {
        let (vars, condition, time) =
            (next_term(&mut stream)?, next_term(&mut stream)?, next_term(&mut stream)?);
        let printer =
            Summands { printer: declarations.printer(&stream), actions: &actions, name: &name };
        if printer.is_untimed(time) {
            continue;
        }
        before(&mut out);
        printer.condition(vars, condition, &mut out)?;
        out.push_str("delta");
        printer.time(time, &mut out)?;
        out.push_str("))");
    }
    before(&mut out);
    out.push_str("delta;\ninit ");
    let start = next_term(&mut stream)?;
    let Content::Apply("LinearProcessInit", &[values, distribution]) = stream.content(start) else {
        return Err(refuse("the file is damaged: the linear process has no initial values"));
    };
    let printer =
        Summands { printer: declarations.printer(&stream), actions: &actions, name: &name };
    printer.distribution(distribution, &mut out)?;
    out.push_str(&name);
    printer.arguments(values, &mut out)?;
    out.push_str(";\n");
    end(&mut stream)?;
    Ok(out)
}

pub(super) fn start<'a>(
    input: Box<dyn Read + 'a>,
    mark: &str,
    what: &str,
) -> Result<TermReader<'a>, Diagnostic> {
    let mut stream = TermReader::new(input, 1 << 16)?;
    match stream.item()? {
        StreamItem::Apply(s, _) if stream.name(s) == mark => Ok(stream),
        StreamItem::Apply(s, _) => {
            let found: String = stream.name(s).chars().take(60).collect();
            Err(refuse(format!("this mCRL2 file contains no {what}"))
                .note(format!("expected `{mark}`, found `{found}`")))
        }
        _ => Err(refuse(format!("this mCRL2 file contains no {what}"))
            .note(format!("expected `{mark}`"))),
    }
}

/// Reads the next term.
pub(super) fn next_term(stream: &mut TermReader<'_>) -> Result<Term, Diagnostic> {
    let (symbol, parts) = expect_term(stream)?;
    stream.store(symbol, parts).ok_or_else(|| refuse("the file has too many terms"))
}

pub(super) fn count(stream: &mut TermReader<'_>, what: &str) -> Result<u64, Diagnostic> {
    match stream.item()? {
        StreamItem::Int(count) => Ok(count),
        _ => Err(refuse(format!("the file is damaged: the number of {what} is missing"))),
    }
}

pub(super) fn end(stream: &mut TermReader<'_>) -> Result<(), Diagnostic> {
    match stream.item()? {
        StreamItem::End => Ok(()),
        _ => Err(refuse("the file is damaged: there is data after its end")),
    }
}

pub(super) fn globals(
    stream: &mut TermReader<'_>,
    declarations: &Declarations,
    out: &mut String,
) -> Result<(), Diagnostic> {
    for _ in 0..count(stream, "global variables")? {
        let variable = next_term(stream)?;
        out.push_str("glob ");
        declarations.printer(stream).variable(variable, out)?;
        out.push_str(";\n");
    }
    Ok(())
}

/// Prints parameters in brackets, if there are any.
pub(super) fn head(
    printer: &Printer<'_>,
    parameters: Term,
    out: &mut String,
) -> Result<(), Diagnostic> {
    let mut text = String::new();
    printer.variables(parameters, &mut text)?;
    if !text.is_empty() {
        _ = write!(out, "({text})");
    }
    Ok(())
}

fn action_name<'a>(stream: &'a TermReader<'a>, action: Term) -> Option<&'a str> {
    match stream.content(action) {
        Content::Apply("ActId", &[name, _]) => match stream.content(name) {
            Content::Apply(name, _) => Some(name),
            Content::Int(_) => None,
        },
        _ => None,
    }
}

/// Printer of summands and predicates.
struct Summands<'a> {
    printer: Printer<'a>,
    /// The declared actions.
    actions: &'a [Term],
    /// Name of the process.
    name: &'a str,
}

impl Summands<'_> {
    fn name_of(&self, term: Term) -> Result<&str, Diagnostic> {
        match self.printer.texts.name(term) {
            name if is_name(name) => Ok(name),
            name => Err(refuse(format!(
                "`{}` is not a name",
                name.chars().take(60).collect::<String>()
            ))),
        }
    }

    fn list(&self, list: Term) -> Result<Vec<Term>, Diagnostic> {
        self.printer.texts.list(list)
    }

    /// Prints an expression; the limit on its length counts from its start.
    fn expression(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        let mut text = String::new();
        self.printer.expression(term, &mut text)?;
        out.push_str(&text);
        Ok(())
    }

    fn is_untimed(&self, time: Term) -> bool {
        self.printer.texts.operation(time) == Some("@undefined_real")
    }

    fn time(&self, time: Term, out: &mut String) -> Result<(), Diagnostic> {
        if self.is_untimed(time) {
            return Ok(());
        }
        out.push_str("@(");
        self.expression(time, out)?;
        out.push(')');
        Ok(())
    }

    /// Prints `(sum x: S. (condition) -> (`; two brackets remain open.
    fn condition(&self, vars: Term, condition: Term, out: &mut String) -> Result<(), Diagnostic> {
        out.push('(');
        if !self.list(vars)?.is_empty() {
            out.push_str("sum ");
            self.printer.variables(vars, out)?;
            out.push_str(". ");
        }
        if self.printer.texts.operation(condition) != Some("true") {
            out.push('(');
            self.expression(condition, out)?;
            out.push_str(") -> ");
        }
        out.push('(');
        Ok(())
    }

    fn summand(
        &self,
        &[distribution, vars, condition, actions, time, assignments]: &[Term; 6],
        out: &mut String,
    ) -> Result<(), Diagnostic> {
        self.condition(vars, condition, out)?;
        let actions = self.list(actions)?;
        out.push_str(if actions.is_empty() { "tau" } else { "(" });
        for (i, action) in actions.iter().enumerate() {
            out.push_str(if i > 0 { "|" } else { "" });
            self.action(*action, out)?;
        }
        out.push_str(if actions.is_empty() { "" } else { ")" });
        self.time(time, out)?;
        out.push_str(" . ");
        self.distribution(distribution, out)?;
        out.push_str(self.name);
        out.push('(');
        for (i, assignment) in self.list(assignments)?.into_iter().enumerate() {
            let Content::Apply(_, &[var, value]) = self.printer.texts.0.content(assignment) else {
                return Err(refuse(
                    "the file is damaged: it has another term in place of an assignment",
                ));
            };
            out.push_str(if i > 0 { ", " } else { "" });
            out.push_str(
                &self
                    .printer
                    .variable_name(var)
                    .filter(|n| is_name(n))
                    .ok_or_else(|| refuse("the file is damaged: an assignment has no variable"))?,
            );
            out.push_str(" = ");
            self.expression(value, out)?;
        }
        out.push_str(")))");
        Ok(())
    }

    fn action(&self, action: Term, out: &mut String) -> Result<(), Diagnostic> {
        let texts = &self.printer.texts;
        let parts = match texts.0.content(action) {
            Content::Apply("Action", &[declaration, arguments]) => {
                match texts.0.content(declaration) {
                    Content::Apply("ActId", &[name, sorts]) => Some((name, sorts, arguments)),
                    _ => None,
                }
            }
            _ => None,
        };
        let Some((name, sorts, arguments)) = parts else {
            return Err(refuse("the file is damaged: it has another term in place of an action"));
        };
        let (name, sorts, arguments) =
            (self.name_of(name)?, self.list(sorts)?, self.list(arguments)?);
        out.push_str(name);
        // The sorts of the arguments select among several actions of a name.
        let overloaded = self
            .actions
            .iter()
            .filter(|a| action_name(texts.0, **a) == Some(name))
            .nth(1)
            .is_some();
        for (i, argument) in arguments.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "(" });
            let mut text = String::new();
            match sorts.get(i).filter(|_| overloaded) {
                Some(sort) => self.printer.expression_at(*argument, *sort, &mut text)?,
                None => self.printer.expression(*argument, &mut text)?,
            }
            out.push_str(&text);
        }
        out.push_str(if arguments.is_empty() { "" } else { ")" });
        Ok(())
    }

    /// Prints `dist x: S[weight] . `, if there are variables.
    fn distribution(&self, distribution: Term, out: &mut String) -> Result<(), Diagnostic> {
        let Content::Apply("Distribution", &[vars, weight]) =
            self.printer.texts.0.content(distribution)
        else {
            return Err(refuse(
                "the file is damaged: it has another term in place of a distribution",
            ));
        };
        if self.list(vars)?.is_empty() {
            return Ok(());
        }
        out.push_str("dist ");
        self.printer.variables(vars, out)?;
        out.push('[');
        self.expression(weight, out)?;
        out.push_str("] . ");
        Ok(())
    }

    /// Prints arguments in brackets, if there are any.
    fn arguments(&self, values: Term, out: &mut String) -> Result<(), Diagnostic> {
        let values = self.list(values)?;
        for (i, value) in values.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "(" });
            self.expression(*value, out)?;
        }
        out.push_str(if values.is_empty() { "" } else { ")" });
        Ok(())
    }
}
