//! mCRL2's binary `.pbes` files: bits -> an equation system as text, which means the same, and its
//! outline.
//!
//! The outline says where the parts of the right-hand sides stand in the text. Terms of a file
//! share their parts, texts do not: one that occurs again has the place where it stands first, so
//! whoever goes by the outline reads each data expression once. The form of the file is told in
//! [`super::behaviour`]. Cost: one pass, linear in the text, of which what occurs again is copied.

use super::super::aterm::{Content, Term};
use super::super::declared::{Printer, is_name};
use super::behaviour::{MOST, count, end, globals, head, kept, start};
use super::{MOST_TEXT, data, refuse};
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::io::{BufRead, Read};
use std::ops::Range;

/// A part of the text.
pub type Place = Range<usize>;

/// An equation system: its text, and where what stands in it.
#[derive(Clone, Debug)]
pub struct Outlined {
    /// The system in mCRL2.
    pub text: String,
    /// The equations in order.
    pub equations: Vec<OutlinedEquation>,
    /// The instance that is asked for.
    pub initial: Place,
}

/// An equation of an outline.
#[derive(Clone, Debug)]
pub struct OutlinedEquation {
    /// Whether the fixed point is the least.
    pub least: bool,
    /// The variable with its parameters.
    pub head: Place,
    /// The right-hand side.
    pub body: OutlinedPredicate,
}

/// A right-hand side, or a part of it.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum OutlinedPredicate {
    Constant(bool),
    /// A condition.
    Data(Place),
    Not(Box<OutlinedPredicate>),
    And(Box<[OutlinedPredicate; 2]>),
    Or(Box<[OutlinedPredicate; 2]>),
    Implies(Box<[OutlinedPredicate; 2]>),
    /// Whether for all values, the variables with their sorts, the body.
    Quantifier(bool, Place, Box<OutlinedPredicate>),
    /// The name of a variable, and arguments.
    Call(Place, Vec<Place>),
}

/// An equation system as text, with its outline.
///
/// # Errors
/// The file is damaged, or an expression in it has no text.
pub fn read_equations(input: impl Read) -> Result<Outlined, Diagnostic> {
    let mut stream = start(input, "parameterised_boolean_equation_system", "equation system")?;
    let declarations = data(&mut stream)??;
    let mut out = declarations.text().to_string();
    globals(&mut stream, &declarations, &mut out)?;
    out.push_str("pbes\n");
    let mut equations = Vec::new();
    let mut known = AHashMap::new();
    for _ in 0..count(&mut stream, "equations")? {
        let (sign, variable, body) = (kept(&mut stream)?, kept(&mut stream)?, kept(&mut stream)?);
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
        if out.len() > MOST {
            return Err(refuse(format!("the text of the file has more than {MOST} characters")));
        }
    }
    let instance = kept(&mut stream)?;
    out.push_str("init ");
    let start = out.len();
    let mut predicates = Predicates { printer: declarations.printer(&stream), known, out, start };
    predicates.predicate(instance)?;
    let mut text = predicates.out;
    let initial = start..text.len();
    text.push_str(";\n");
    end(&mut stream)?;
    Ok(Outlined { text, equations, initial })
}

/// Prints predicates.
struct Predicates<'a, R> {
    printer: Printer<'a, R>,
    /// Where a data expression or a list of variables stands first.
    known: AHashMap<Term, Place>,
    /// The text so far.
    out: String,
    /// Where the equation begins in it.
    start: usize,
}

impl<R: BufRead> Predicates<'_, R> {
    /// A part that may have been printed before; the place where it stands first.
    fn shared(
        &mut self,
        term: Term,
        print: impl FnOnce(&Printer<'_, R>, &mut String) -> Result<(), Diagnostic>,
    ) -> Result<Place, Diagnostic> {
        if let Some(place) = self.known.get(&term) {
            self.out.extend_from_within(place.clone());
            return Ok(place.clone());
        }
        // Its length is its own.
        let mut text = String::new();
        print(&self.printer, &mut text)?;
        let place = self.out.len()..self.out.len() + text.len();
        self.out.push_str(&text);
        self.known.insert(term, place.clone());
        Ok(place)
    }

    fn expression(&mut self, term: Term) -> Result<Place, Diagnostic> {
        self.shared(term, |printer, out| printer.expression(term, out))
    }

    fn name(&mut self, term: Term) -> Result<Place, Diagnostic> {
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
        if self.out.len() - self.start > MOST_TEXT * 16 {
            return Err(refuse(format!("an equation has more than {} characters", MOST_TEXT * 16)));
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
                    // Each quantifier has its own place, also if its variables occur again: one may
                    // be unrolled and the other not.
                    let from = self.out.len();
                    self.shared(vars, |printer, out| printer.variables(vars, out))?;
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
