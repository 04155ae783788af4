//! The declarations of a binary `.lts` file as mCRL2 text: sorts, constructors, mappings, equations, actions.
//!
//! The file holds them as typed terms: conversions between sorts of numbers are explicit there, numbers are built of constructors, and an operator is a function
//! like any other. The text has conversions by their names in the language (`Nat2Int`), digits, and operators between their arguments. Terms that no text
//! stands for (functions of the tool's own) are refused by name. Cost: linear in the text; terms share their parts and texts do not, so that a
//! declaration beyond a megabyte is refused.

use super::aterm::{Content, Reader, Term};
use super::mcrl2::{MOST_TEXT, Texts, refuse};
use mu_base::Diagnostic;
use std::fmt::Write;
use std::io::BufRead;

/// Operators that stand between two arguments.
const INFIX: [&str; 22] =
    ["&&", "||", "=>", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "div", "mod", ".", "++", "|>", "<|", "&", "|"];
/// Operators that stand before one.
const PREFIX: [&str; 3] = ["!", "-", "#"];

/// The text so far.
#[derive(Default)]
pub(super) struct Declarations {
    text: String,
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(|c| c.is_ascii_alphanumeric() || "_'".contains(c))
}

impl Declarations {
    /// The whole as a specification without behaviour.
    pub fn finish(mut self) -> String {
        self.text += "init delta;\n";
        self.text
    }

    /// Adds a declaration, of the data or of the actions.
    pub fn add<R: BufRead>(&mut self, stream: &Reader<R>, name: &str, parts: &[Term]) -> Result<(), Diagnostic> {
        let printer = Printer(Texts(stream));
        let mut line = String::new();
        match (name, parts) {
            ("SortId", [sort]) => write_line(&mut line, &["sort ", printer.0.name(*sort)]),
            ("SortRef", [new, of]) => {
                let (mut left, mut right) = (String::new(), String::new());
                printer.sort(*new, false, &mut left)?;
                printer.sort(*of, false, &mut right)?;
                write_line(&mut line, &["sort ", &left, " = ", &right]);
            }
            ("DataEqn", [vars, condition, left, right]) => {
                for (i, var) in printer.0.list(*vars)?.into_iter().enumerate() {
                    line += if i == 0 { "var " } else { " " };
                    printer.variable(var, &mut line)?;
                    line += ";";
                }
                line += "\n";
                line += "eqn ";
                let mut given = String::new();
                printer.expression(*condition, &mut given)?;
                if given != "true" {
                    line += &given;
                    line += " -> ";
                }
                printer.expression(*left, &mut line)?;
                line += " = ";
                printer.expression(*right, &mut line)?;
                line += ";\n";
            }
            _ => return Err(refuse(format!("the declaration `{name}` is not known"))),
        }
        self.text += &line;
        Ok(())
    }

    /// Adds a constructor (`cons`) or a mapping (`map`).
    pub fn add_operation<R: BufRead>(&mut self, stream: &Reader<R>, kind: &str, parts: &[Term]) -> Result<(), Diagnostic> {
        let printer = Printer(Texts(stream));
        let [name, sort, ..] = parts else { return Err(refuse("the file is damaged: an operation has no sort")) };
        let name = printer.0.name(*name);
        if !is_name(name) {
            return Err(refuse(format!("the operation `{name}` is no name")));
        }
        let mut of = String::new();
        printer.sort(*sort, false, &mut of)?;
        write_line(&mut self.text, &[kind, " ", name, ": ", &of]);
        Ok(())
    }

    /// Adds an action.
    pub fn add_action<R: BufRead>(&mut self, stream: &Reader<R>, action: Term) -> Result<(), Diagnostic> {
        let printer = Printer(Texts(stream));
        let Content::Apply("ActId", &[name, sorts]) = stream.content(action) else {
            return Err(refuse("the file is damaged: an action is none"));
        };
        let mut line = format!("act {}", printer.0.name(name));
        for (i, sort) in printer.0.list(sorts)?.into_iter().enumerate() {
            line += if i == 0 { ": " } else { " # " };
            printer.sort(sort, true, &mut line)?;
        }
        write_line(&mut self.text, &[&line]);
        Ok(())
    }
}

fn write_line(out: &mut String, parts: &[&str]) {
    parts.iter().for_each(|p| out.push_str(p));
    out.push_str(";\n");
}

struct Printer<'a, R>(Texts<'a, R>);

impl<R: BufRead> Printer<'_, R> {
    /// A sort; a function sort in brackets if it is `inner`.
    fn sort(&self, term: Term, inner: bool, out: &mut String) -> Result<(), Diagnostic> {
        match self.0.0.content(term) {
            Content::Apply("SortId", &[name]) if is_name(self.0.name(name)) => out.push_str(self.0.name(name)),
            Content::Apply("SortCons", &[kind, of]) => {
                let kind = self.0.name(kind).strip_prefix("Sort").unwrap_or_default();
                _ = write!(out, "{kind}(");
                self.sort(of, false, out)?;
                out.push(')');
            }
            Content::Apply("SortArrow", &[domain, range]) => {
                out.push_str(if inner { "(" } else { "" });
                for (i, d) in self.0.list(domain)?.into_iter().enumerate() {
                    out.push_str(if i > 0 { " # " } else { "" });
                    self.sort(d, true, out)?;
                }
                out.push_str(" -> ");
                self.sort(range, false, out)?;
                out.push_str(if inner { ")" } else { "" });
            }
            Content::Apply("SortStruct", &[constructors]) => {
                for (i, c) in self.0.list(constructors)?.into_iter().enumerate() {
                    out.push_str(if i > 0 { " | " } else { "struct " });
                    self.constructor(c, out)?;
                }
            }
            Content::Apply(name, _) => return Err(refuse(format!("the sort `{name}` has no text"))),
            Content::Int(_) => return Err(refuse("the file is damaged: a number stands for a sort")),
        }
        Ok(())
    }

    fn constructor(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        let Content::Apply("StructCons", &[name, projections, recogniser]) = self.0.0.content(term) else {
            return Err(refuse("the file is damaged: a constructor is none"));
        };
        out.push_str(self.0.name(name));
        let projections = self.0.list(projections)?;
        for (i, p) in projections.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "(" });
            let Content::Apply("StructProj", &[name, sort]) = self.0.0.content(*p) else {
                return Err(refuse("the file is damaged: an argument of a constructor is none"));
            };
            if !self.0.name(name).is_empty() {
                _ = write!(out, "{}: ", self.0.name(name));
            }
            self.sort(sort, true, out)?;
        }
        out.push_str(if projections.is_empty() { "" } else { ")" });
        if !self.0.name(recogniser).is_empty() {
            _ = write!(out, "?{}", self.0.name(recogniser));
        }
        Ok(())
    }

    fn variable(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        let Content::Apply("DataVarId" | "DataVarIdNoIndex", &[name, sort, ..]) = self.0.0.content(term) else {
            return Err(refuse("the file is damaged: a variable is none"));
        };
        _ = write!(out, "{}: ", self.0.name(name));
        self.sort(sort, false, out)
    }

    fn expression(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if out.len() > MOST_TEXT {
            return Err(refuse(format!("a declaration has more than {MOST_TEXT} characters")));
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || self.expression_of(term, out))
    }

    fn expression_of(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if let Some(n) = self.0.numeral(term) {
            _ = if n < 0.into() { write!(out, "({n})") } else { write!(out, "{n}") };
            return Ok(());
        }
        if let Some(name) = self.0.operation(term) {
            if is_name(name) || ["[]", "{}", "{:}"].contains(&name) {
                out.push_str(name);
                return Ok(());
            }
            return Err(refuse(format!("`{name}` has no text")));
        }
        match self.0.0.content(term) {
            Content::Apply("DataAppl", &[head, ref args @ ..]) => self.application(head, args, out),
            Content::Apply("Binder", &[kind, vars, body]) => self.binder(self.0.name(kind), vars, body, out),
            Content::Apply("Whr", &[body, definitions]) => {
                out.push('(');
                self.expression(body, out)?;
                for (i, d) in self.0.list(definitions)?.into_iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { " whr " });
                    let Content::Apply(_, &[var, value]) = self.0.0.content(d) else {
                        return Err(refuse("the file is damaged: a definition is none"));
                    };
                    _ = write!(out, "{} = ", self.0.operation(var).unwrap_or_default());
                    self.expression(value, out)?;
                }
                out.push_str(" end)");
                Ok(())
            }
            Content::Apply(name, _) => Err(refuse(format!("`{name}` has no text"))),
            Content::Int(_) => Err(refuse("a machine number has no text")),
        }
    }

    fn binder(&self, kind: &str, vars: Term, body: Term, out: &mut String) -> Result<(), Diagnostic> {
        let (open, dot, close) = match kind {
            "Lambda" => ("(lambda ", ". ", ")"),
            "Forall" => ("(forall ", ". ", ")"),
            "Exists" => ("(exists ", ". ", ")"),
            "SetComp" | "BagComp" => ("{ ", " | ", " }"),
            _ => return Err(refuse(format!("the binder `{kind}` is not known"))),
        };
        out.push_str(open);
        for (i, var) in self.0.list(vars)?.into_iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            self.variable(var, out)?;
        }
        out.push_str(dot);
        self.expression(body, out)?;
        out.push_str(close);
        Ok(())
    }

    fn application(&self, head: Term, args: &[Term], out: &mut String) -> Result<(), Diagnostic> {
        let name = self.0.operation(head);
        let between = |out: &mut String, open: &str, parts: &[(Term, &str)]| -> Result<(), Diagnostic> {
            out.push_str(open);
            for (term, then) in parts {
                self.expression(*term, out)?;
                out.push_str(then);
            }
            Ok(())
        };
        match (name, args) {
            (Some("@cNat"), [x]) => between(out, "Pos2Nat(", &[(*x, ")")]),
            (Some("@cInt"), [x]) => between(out, "Nat2Int(", &[(*x, ")")]),
            (Some("@cNeg"), [x]) => between(out, "(-", &[(*x, ")")]),
            (Some("@cReal"), [x, y]) if self.0.numeral(*y) == Some(1.into()) => between(out, "Int2Real(", &[(*x, ")")]),
            (Some("@cReal"), [x, y]) => between(out, "(", &[(*x, " / "), (*y, ")")]),
            // Finite sets and bags, and those that are finite though their sort says nothing of it.
            (Some("@fset_cons" | "@fset_insert"), [x, rest]) => between(out, "({", &[(*x, "} + "), (*rest, ")")]),
            (Some("@fbag_cons" | "@fbag_insert"), [x, n, rest]) => between(out, "({", &[(*x, ": "), (*n, "} + "), (*rest, ")")]),
            (Some("@set" | "@bag"), [f, finite]) if matches!(self.0.operation(*f), Some("@false_" | "@zero_")) => {
                self.expression(*finite, out)
            }
            (Some("@func_update"), [f, x, v]) => between(out, "(", &[(*f, ")["), (*x, " -> "), (*v, "]")]),
            (Some(op), [x, y]) if INFIX.contains(&op) => between(out, "(", &[(*x, &format!(" {op} ")), (*y, ")")]),
            (Some(op), [x]) if PREFIX.contains(&op) => between(out, &format!("({op}"), &[(*x, ")")]),
            (Some(op), _) if !is_name(op) => Err(refuse(format!("`{op}` has no text"))),
            _ => {
                let bracket = name.is_none();
                between(out, if bracket { "(" } else { "" }, &[(head, if bracket { ")" } else { "" })])?;
                for (i, a) in args.iter().enumerate() {
                    between(out, if i > 0 { ", " } else { "(" }, &[(*a, "")])?;
                }
                out.push(')');
                Ok(())
            }
        }
    }
}
