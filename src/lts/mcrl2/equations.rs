//! Reader of mCRL2's binary `.pbes` files to equivalent equation systems as text, with an outline.
//!
//! The outline gives the positions of the parts of the right-hand sides in the text. Terms of a
//! file share their parts, texts do not: a repeated term has the position of its first occurrence,
//! so a reader of the outline parses each data expression once. The format of the file is described
//! in [`super::behaviour`]. Cost: one pass, linear in the text; repeated parts are copied.

use super::super::aterm::{Content, Term};
use super::super::declarations::{Printer, is_name};
use super::behaviour::{MAX_TOTAL, count, end, globals, head, next_term, start};
use super::{MAX_TEXT, data, refuse};
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::io::Read;
use std::ops::Range;

/// Range of the text.
pub type TextRange = Range<usize>;

/// Equation system as text, with the positions of its parts.
#[derive(Clone, Debug)]
pub struct OutlinedSystem {
    /// The system in mCRL2.
    pub text: String,
    /// The equations in order.
    pub equations: Vec<OutlinedEquation>,
    /// The requested instance.
    pub initial: TextRange,
}

/// Equation of an outline.
#[derive(Clone, Debug)]
pub struct OutlinedEquation {
    /// True if the fixed point is the least.
    pub least: bool,
    /// The variable with its parameters.
    pub head: TextRange,
    /// The right-hand side.
    pub body: OutlinedPredicate,
}

/// Right-hand side, or a part of it.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum OutlinedPredicate {
    Constant(bool),
    /// A condition.
    Data(TextRange),
    Not(Box<OutlinedPredicate>),
    And(Box<[OutlinedPredicate; 2]>),
    Or(Box<[OutlinedPredicate; 2]>),
    Implies(Box<[OutlinedPredicate; 2]>),
    /// Universal or existential, the variables with their sorts, the body.
    Quantifier(bool, TextRange, Box<OutlinedPredicate>),
    /// The name of a variable, and arguments.
    Call(TextRange, Vec<TextRange>),
}

/// Reads an equation system as text, with its outline.
///
/// # Errors
/// The file is damaged, or an expression in it has no text.
pub fn read_equations(input: impl Read) -> Result<OutlinedSystem, Diagnostic> {
    equations(Box::new(input))
}

fn equations(input: Box<dyn Read + '_>) -> Result<OutlinedSystem, Diagnostic> {
    let mut stream = start(input, "parameterised_boolean_equation_system", "equation system")?;
    let declarations = data(&mut stream)??.expect_declared()?;
    let mut out = declarations.text().to_string();
    globals(&mut stream, &declarations, &mut out)?;
    out.push_str("pbes\n");
    let mut equations = Vec::new();
    let mut known = AHashMap::new();
    for _ in 0..count(&mut stream, "equations")? {
        let (sign, variable, body) =
            (next_term(&mut stream)?, next_term(&mut stream)?, next_term(&mut stream)?);
        let least = match stream.content(sign) {
            Content::Apply("Mu", []) => true,
            Content::Apply("Nu", []) => false,
            _ => return Err(refuse("the file is damaged: an equation has no sign")),
        };
        out.push_str(if least { "  mu " } else { "  nu " });
        let Content::Apply("PropVarDecl", &[name, parameters]) = stream.content(variable) else {
            return Err(refuse("the file is damaged: an equation has no variable"));
        };
        let mut predicates =
            Predicates { printer: declarations.printer(&stream), known, out, start: 0 };
        let from = predicates.out.len();
        predicates.name(name)?;
        head(&predicates.printer, parameters, &mut predicates.out)?;
        let head = from..predicates.out.len();
        predicates.out.push_str(" =\n      ");
        predicates.start = predicates.out.len();
        let body = predicates.predicate(body)?;
        predicates.out.push_str(";\n");
        Predicates { known, out, .. } = predicates;
        equations.push(OutlinedEquation { least, head, body });
        if out.len() > MAX_TOTAL {
            return Err(refuse(format!(
                "the text of the file has more than {MAX_TOTAL} characters"
            )));
        }
    }
    let instance = next_term(&mut stream)?;
    out.push_str("init ");
    let start = out.len();
    let mut predicates = Predicates { printer: declarations.printer(&stream), known, out, start };
    predicates.predicate(instance)?;
    let mut text = predicates.out;
    let initial = start..text.len();
    text.push_str(";\n");
    end(&mut stream)?;
    Ok(OutlinedSystem { text, equations, initial })
}

/// Printer of predicates.
struct Predicates<'a> {
    printer: Printer<'a>,
    /// First positions of data expressions and lists of variables.
    known: AHashMap<Term, TextRange>,
    /// The text so far.
    out: String,
    /// Start of the current equation in the text.
    start: usize,
}

impl Predicates<'_> {
    /// Prints a part and returns its first position; a repeated part is copied.
    fn print_shared(
        &mut self,
        term: Term,
        print: impl FnOnce(&Printer<'_>, &mut String) -> Result<(), Diagnostic>,
    ) -> Result<TextRange, Diagnostic> {
        if let Some(place) = self.known.get(&term) {
            self.out.extend_from_within(place.clone());
            return Ok(place.clone());
        }
        // The limit on its length counts from its start.
        let mut text = String::new();
        print(&self.printer, &mut text)?;
        let place = self.out.len()..self.out.len() + text.len();
        self.out.push_str(&text);
        self.known.insert(term, place.clone());
        Ok(place)
    }

    fn expression(&mut self, term: Term) -> Result<TextRange, Diagnostic> {
        self.print_shared(term, |printer, out| printer.expression(term, out))
    }

    fn name(&mut self, term: Term) -> Result<TextRange, Diagnostic> {
        let name = self.printer.texts.name(term);
        if !is_name(name) {
            return Err(refuse(format!(
                "`{}` is no name",
                name.chars().take(60).collect::<String>()
            )));
        }
        let from = self.out.len();
        self.out.push_str(name);
        Ok(from..self.out.len())
    }

    fn two(
        &mut self,
        a: Term,
        op: &str,
        b: Term,
    ) -> Result<Box<[OutlinedPredicate; 2]>, Diagnostic> {
        self.out.push('(');
        let a = self.predicate(a)?;
        self.out.push_str(op);
        let b = self.predicate(b)?;
        self.out.push(')');
        Ok(Box::new([a, b]))
    }

    fn predicate(&mut self, term: Term) -> Result<OutlinedPredicate, Diagnostic> {
        if self.out.len() - self.start > MAX_TEXT * 16 {
            return Err(refuse(format!("an equation has more than {} characters", MAX_TEXT * 16)));
        }
        let stream = self.printer.texts.0;
        stacker::maybe_grow(64 << 10, 1 << 20, || {
            Ok(match stream.content(term) {
                Content::Apply(kind @ ("PBESTrue" | "PBESFalse"), []) => {
                    let value = kind == "PBESTrue";
                    self.out.push_str(if value { "true" } else { "false" });
                    OutlinedPredicate::Constant(value)
                }
                Content::Apply("PBESNot", &[inner]) => {
                    self.out.push_str("!(");
                    let inner = self.predicate(inner)?;
                    self.out.push(')');
                    OutlinedPredicate::Not(Box::new(inner))
                }
                Content::Apply("PBESAnd", &[a, b]) => {
                    OutlinedPredicate::And(self.two(a, " && ", b)?)
                }
                Content::Apply("PBESOr", &[a, b]) => OutlinedPredicate::Or(self.two(a, " || ", b)?),
                Content::Apply("PBESImp", &[a, b]) => {
                    OutlinedPredicate::Implies(self.two(a, " => ", b)?)
                }
                Content::Apply(kind @ ("PBESForall" | "PBESExists"), &[vars, body]) => {
                    let all = kind == "PBESForall";
                    self.out.push_str(if all { "(forall " } else { "(exists " });
                    // Each quantifier has its own position, even if its variables are repeated: one
                    // may be unrolled and the other not.
                    let from = self.out.len();
                    self.print_shared(vars, |printer, out| printer.variables(vars, out))?;
                    let vars = from..self.out.len();
                    self.out.push_str(". ");
                    let body = self.predicate(body)?;
                    self.out.push(')');
                    OutlinedPredicate::Quantifier(all, vars, Box::new(body))
                }
                Content::Apply("PropVarInst", &[name, values]) => {
                    let name = self.name(name)?;
                    let values = self.printer.texts.list(values)?;
                    let mut arguments = Vec::with_capacity(values.len());
                    for (i, value) in values.iter().enumerate() {
                        self.out.push_str(if i > 0 { ", " } else { "(" });
                        arguments.push(self.expression(*value)?);
                    }
                    self.out.push_str(if values.is_empty() { "" } else { ")" });
                    OutlinedPredicate::Call(name, arguments)
                }
                _ => {
                    self.out.push_str("val(");
                    let place = self.expression(term)?;
                    self.out.push(')');
                    OutlinedPredicate::Data(place)
                }
            })
        })
    }
}
