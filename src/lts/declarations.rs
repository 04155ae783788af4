//! Printer of the declarations of a binary `.lts` file as mCRL2 text: sorts, constructors,
//! mappings, equations, actions.
//!
//! The file contains them as typed terms: conversions between sorts of numbers are explicit,
//! numbers consist of constructors, and an operator is a function like any other. The text has
//! conversions by their names in the language (`Nat2Int`), digits, and infix operators. Terms
//! without text (functions of the toolset's own) are rejected by name. Cost: linear in the text;
//! terms share their parts and texts do not, so a declaration beyond a megabyte is rejected.

use super::aterm::{Content, Term, TermReader};
use super::mcrl2::{MAX_TEXT, Texts, refuse};
use ahash::AHashSet;
use mu_base::Diagnostic;
use std::borrow::Cow;
use std::fmt::Write;

mod internal;

/// Sort of arguments that were written without declarations.
pub(super) const INFERRED: &str = "Value";

/// Infix operators.
const INFIX: [&str; 22] = [
    "&&", "||", "=>", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "div", "mod",
    ".", "++", "|>", "<|", "&", "|",
];
/// Prefix operators.
const PREFIX: [&str; 3] = ["!", "-", "#"];

/// Text so far.
#[derive(Default)]
pub(super) struct Declarations {
    text: String,
    /// Names of operations.
    known: AHashSet<String>,
    overloaded: AHashSet<String>,
    /// True if arguments of labels are constants with their texts as names, as in a file that was
    /// written without declarations ([`super::mcrl2::write()`]).
    inferred: bool,
}

pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_'".contains(c))
}

impl Declarations {
    /// Returns the whole text as a specification without behaviour; `None` if the declarations were
    /// inferred from texts, which the reader of the labels does better.
    pub fn finish(mut self) -> Option<String> {
        self.text += "init delta;\n";
        (!self.inferred).then_some(self.text)
    }

    /// Rejects declarations that were inferred from texts.
    pub fn expect_declared(self) -> Result<Self, Diagnostic> {
        match self.inferred {
            false => Ok(self),
            true => {
                Err(refuse(format!("the sort `{INFERRED}` has constructors that are no names")))
            }
        }
    }

    /// Returns the text so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the names of the operations so far.
    pub fn operations(&self) -> AHashSet<String> {
        self.known.clone()
    }

    /// Returns a printer that uses these declarations.
    pub fn printer<'a>(&'a self, stream: &'a TermReader<'a>) -> Printer<'a> {
        Printer { texts: Texts(stream), overloaded: Some(&self.overloaded), enumerates: false }
    }

    /// Records an operation.
    fn operation(&mut self, name: &str) {
        if !self.known.insert(name.into()) {
            self.overloaded.insert(name.into());
        }
    }

    /// Adds a declaration of data or actions.
    pub fn add(
        &mut self,
        stream: &TermReader<'_>,
        name: &str,
        parts: &[Term],
    ) -> Result<(), Diagnostic> {
        let printer = self.printer(stream);
        let mut line = String::new();
        match (name, parts) {
            ("SortId", [sort]) => write_line(&mut line, &["sort ", printer.texts.name(*sort)]),
            ("SortRef", [new, of]) => {
                let (mut left, mut right) = (String::new(), String::new());
                printer.sort(*new, false, &mut left)?;
                printer.sort(*of, false, &mut right)?;
                write_line(&mut line, &["sort ", &left, " = ", &right]);
                if let Content::Apply("SortStruct", &[constructors]) = stream.content(*of) {
                    for c in Texts(stream).list(constructors)? {
                        if let Content::Apply("StructCons", &[name, ..]) = stream.content(c) {
                            self.operation(Texts(stream).name(name));
                        }
                    }
                }
            }
            ("DataEqn", [vars, condition, left, right]) => {
                for (i, var) in printer.texts.list(*vars)?.into_iter().enumerate() {
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
                // A left-hand side is a pattern: its parts are printed without sort ascriptions.
                Printer { texts: Texts(stream), overloaded: None, enumerates: false }
                    .expression(*left, &mut line)?;
                line += " = ";
                printer.expression(*right, &mut line)?;
                line += ";\n";
            }
            _ => return Err(refuse(format!("the declaration `{name}` is unknown"))),
        }
        self.text += &line;
        Ok(())
    }

    /// Adds a constructor (`cons`) or a mapping (`map`).
    pub fn add_operation(
        &mut self,
        stream: &TermReader<'_>,
        kind: &str,
        parts: &[Term],
    ) -> Result<(), Diagnostic> {
        let texts = Texts(stream);
        let [name, sort, ..] = parts else {
            return Err(refuse("the file is damaged: an operation has no sort"));
        };
        let name = texts.name(*name);
        if !is_name(name) {
            let sort = stream.content(*sort);
            if kind == "cons"
                && matches!(sort, Content::Apply("SortId", [sort]) if texts.name(*sort) == INFERRED)
            {
                self.inferred = true;
                return Ok(());
            }
            return Err(refuse(format!("the operation `{name}` is not a name")));
        }
        let mut of = String::new();
        self.printer(stream).sort(*sort, false, &mut of)?;
        write_line(&mut self.text, &[kind, " ", name, ": ", &of]);
        self.operation(name);
        Ok(())
    }

    /// Adds an action.
    pub fn add_action(&mut self, stream: &TermReader<'_>, action: Term) -> Result<(), Diagnostic> {
        let printer = self.printer(stream);
        let Content::Apply("ActId", &[name, sorts]) = stream.content(action) else {
            return Err(refuse("the file is damaged: it has another term in place of an action"));
        };
        let mut line = format!("act {}", printer.texts.name(name));
        for (i, sort) in printer.texts.list(sorts)?.into_iter().enumerate() {
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

/// Printer of sorts, variables and expressions.
pub(super) struct Printer<'a> {
    pub texts: Texts<'a>,
    /// Names of several operations.
    overloaded: Option<&'a AHashSet<String>>,
    /// True if finite lists, sets, and bags are written as enumerations, as in labels.
    enumerates: bool,
}

/// Returns the text of a value that only an expression represents: a function, or a set
/// comprehension.
pub(super) fn value(stream: &TermReader<'_>, term: Term) -> Result<String, Diagnostic> {
    let mut out = String::new();
    Printer { texts: Texts(stream), overloaded: None, enumerates: true }
        .expression(term, &mut out)?;
    Ok(out)
}

impl Printer<'_> {
    /// Prints a sort; a function sort in brackets if it is `inner`.
    pub fn sort(&self, term: Term, inner: bool, out: &mut String) -> Result<(), Diagnostic> {
        match self.texts.0.content(term) {
            Content::Apply("SortId", &[name]) if is_name(self.texts.name(name)) => {
                out.push_str(self.texts.name(name))
            }
            Content::Apply("SortCons", &[kind, of]) => {
                let kind = self.texts.name(kind).strip_prefix("Sort").unwrap_or_default();
                _ = write!(out, "{kind}(");
                self.sort(of, false, out)?;
                out.push(')');
            }
            Content::Apply("SortArrow", &[domain, range]) => {
                out.push_str(if inner { "(" } else { "" });
                for (i, d) in self.texts.list(domain)?.into_iter().enumerate() {
                    out.push_str(if i > 0 { " # " } else { "" });
                    self.sort(d, true, out)?;
                }
                out.push_str(" -> ");
                self.sort(range, false, out)?;
                out.push_str(if inner { ")" } else { "" });
            }
            Content::Apply("SortStruct", &[constructors]) => {
                for (i, c) in self.texts.list(constructors)?.into_iter().enumerate() {
                    out.push_str(if i > 0 { " | " } else { "struct " });
                    self.constructor(c, out)?;
                }
            }
            Content::Apply(name, _) => {
                return Err(refuse(format!("the sort `{name}` has no text")));
            }
            Content::Int(_) => {
                return Err(refuse("the file is damaged: it has a number in place of a sort"));
            }
        }
        Ok(())
    }

    fn constructor(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        let Content::Apply("StructCons", &[name, projections, recogniser]) =
            self.texts.0.content(term)
        else {
            return Err(refuse(
                "the file is damaged: it has another term in place of a constructor",
            ));
        };
        out.push_str(self.texts.name(name));
        let projections = self.texts.list(projections)?;
        for (i, p) in projections.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "(" });
            let Content::Apply("StructProj", &[name, sort]) = self.texts.0.content(*p) else {
                return Err(refuse(
                    "the file is damaged: it has another term in place of an argument of a constructor",
                ));
            };
            if !self.texts.name(name).is_empty() {
                _ = write!(out, "{}: ", self.texts.name(name));
            }
            self.sort(sort, true, out)?;
        }
        out.push_str(if projections.is_empty() { "" } else { ")" });
        if !self.texts.name(recogniser).is_empty() {
            _ = write!(out, "?{}", self.texts.name(recogniser));
        }
        Ok(())
    }

    /// Prints a variable with its sort.
    pub fn variable(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        let Content::Apply("DataVarId" | "DataVarIdNoIndex", &[name, sort, ..]) =
            self.texts.0.content(term)
        else {
            return Err(refuse("the file is damaged: it has another term in place of a variable"));
        };
        let name = self.texts.name(name);
        if !is_name(name) {
            return Err(refuse(format!("the variable `{name}` is not a name")));
        }
        _ = write!(out, "{}: ", self.texts.0.variable_name(name));
        self.sort(sort, false, out)
    }

    /// Returns the name of a variable as it is printed; `None` if the term is not one.
    pub fn variable_name(&self, term: Term) -> Option<Cow<'_, str>> {
        match self.texts.0.content(term) {
            Content::Apply("DataVarId" | "DataVarIdNoIndex", &[name, ..]) => {
                Some(self.texts.0.variable_name(self.texts.name(name)))
            }
            _ => None,
        }
    }

    /// Prints variables with their sorts, in brackets.
    pub fn variables(&self, list: Term, out: &mut String) -> Result<(), Diagnostic> {
        for (i, var) in self.texts.list(list)?.into_iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            self.variable(var, out)?;
        }
        Ok(())
    }

    /// Prints an expression with an explicit sort.
    pub fn expression_at(
        &self,
        term: Term,
        sort: Term,
        out: &mut String,
    ) -> Result<(), Diagnostic> {
        out.push_str("(lambda x: ");
        self.sort(sort, false, out)?;
        out.push_str(". x)(");
        self.expression(term, out)?;
        out.push(')');
        Ok(())
    }

    /// Prints an expression.
    pub fn expression(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if out.len() > MAX_TEXT {
            return Err(refuse(format!("a declaration has more than {MAX_TEXT} characters")));
        }
        stacker::maybe_grow(64 << 10, 1 << 20, || self.expression_of(term, out))
    }

    fn expression_of(&self, term: Term, out: &mut String) -> Result<(), Diagnostic> {
        if let Some(n) = self.texts.numeral(term) {
            _ = if n < 0.into() { write!(out, "({n})") } else { write!(out, "{n}") };
            return Ok(());
        }
        if let Some(name) = self.variable_name(term).filter(|name| is_name(name)) {
            out.push_str(&name);
            return Ok(());
        }
        if let Some(name) = self.texts.operation(term) {
            if is_name(name) || ["[]", "{}", "{:}"].contains(&name) {
                out.push_str(name);
                return Ok(());
            }
            return self.internal(term, name, &[], out);
        }
        if self.enumerates
            && let Some(items) = self.texts.enumeration(term)
        {
            return self
                .texts
                .write_enumeration(term, items, out, |item, out| self.expression(item, out));
        }
        match self.texts.0.content(term) {
            Content::Apply("DataAppl", &[head, ref args @ ..]) => self.application(head, args, out),
            Content::Apply("Binder", &[kind, vars, body]) => {
                self.binder(self.texts.name(kind), vars, body, out)
            }
            Content::Apply("Whr", &[body, definitions]) => {
                out.push('(');
                self.expression(body, out)?;
                for (i, d) in self.texts.list(definitions)?.into_iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { " whr " });
                    let Content::Apply(_, &[var, value]) = self.texts.0.content(d) else {
                        return Err(refuse(
                            "the file is damaged: it has another term in place of a definition",
                        ));
                    };
                    _ = write!(out, "{} = ", self.variable_name(var).unwrap_or_default());
                    self.expression(value, out)?;
                }
                out.push_str(" end)");
                Ok(())
            }
            Content::Apply(name, _) => Err(refuse(format!("`{name}` has no text"))),
            Content::Int(_) => Err(refuse("a machine number has no text")),
        }
    }

    fn binder(
        &self,
        kind: &str,
        vars: Term,
        body: Term,
        out: &mut String,
    ) -> Result<(), Diagnostic> {
        let (open, dot, close) = match kind {
            "Lambda" => ("(lambda ", ". ", ")"),
            "Forall" => ("(forall ", ". ", ")"),
            "Exists" => ("(exists ", ". ", ")"),
            "SetComp" | "BagComp" => ("{ ", " | ", " }"),
            _ => return Err(refuse(format!("the binder `{kind}` is unknown"))),
        };
        out.push_str(open);
        self.variables(vars, out)?;
        out.push_str(dot);
        self.expression(body, out)?;
        out.push_str(close);
        Ok(())
    }

    fn application(&self, head: Term, args: &[Term], out: &mut String) -> Result<(), Diagnostic> {
        let name = self.texts.operation(head);
        let between =
            |out: &mut String, open: &str, parts: &[(Term, &str)]| -> Result<(), Diagnostic> {
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
            (Some("@cReal"), [x, y]) if self.texts.numeral(*y) == Some(1.into()) => {
                between(out, "Int2Real(", &[(*x, ")")])
            }
            (Some("@cReal"), [x, y]) => between(out, "(", &[(*x, " / "), (*y, ")")]),
            // Finite sets and bags, even if their sort is a general one.
            (Some("@fset_cons" | "@fset_insert"), [x, rest]) => {
                between(out, "({", &[(*x, "} + "), (*rest, ")")])
            }
            (Some("@fbag_cons" | "@fbag_insert" | "@fbag_cinsert"), [x, n, rest]) => {
                between(out, "({", &[(*x, ": "), (*n, "} + "), (*rest, ")")])
            }
            (Some("@set" | "@bag"), [f, finite])
                if matches!(self.texts.operation(*f), Some("@false_" | "@zero_")) =>
            {
                self.expression(*finite, out)
            }
            (Some("@func_update" | "@func_update_stable"), [f, x, v]) => {
                between(out, "(", &[(*f, ")["), (*x, " -> "), (*v, "]")])
            }
            (Some(op), [x, y]) if INFIX.contains(&op) => {
                between(out, "(", &[(*x, &format!(" {op} ")), (*y, ")")])
            }
            (Some(op), [x]) if PREFIX.contains(&op) => {
                between(out, &format!("({op}"), &[(*x, ")")])
            }
            (Some(op), _) if !is_name(op) => self.internal(head, op, args, out),
            _ => {
                let bracket = name.is_none();
                between(
                    out,
                    if bracket { "(" } else { "" },
                    &[(head, if bracket { ")" } else { "" })],
                )?;
                let sorts = self.ambiguous(head)?;
                for (i, a) in args.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "(" });
                    // The sorts of arguments select among several operations of a name: those of
                    // digits, of empty collections, and of finite collections as general ones are
                    // made explicit.
                    let sort = sorts.get(i).filter(|_| {
                        self.texts.numeral(*a).is_some() || self.is_empty(*a) || self.is_finite(*a)
                    });
                    match sort {
                        Some(sort) => self.expression_at(*a, *sort, out)?,
                        None => self.expression(*a, out)?,
                    }
                }
                out.push(')');
                Ok(())
            }
        }
    }

    /// True for a general set or bag that is printed as a finite one.
    fn is_finite(&self, term: Term) -> bool {
        match self.texts.0.content(term) {
            Content::Apply("DataAppl", &[head, f, _]) => {
                matches!(self.texts.operation(head), Some("@set" | "@bag"))
                    && matches!(self.texts.operation(f), Some("@false_" | "@zero_"))
            }
            _ => false,
        }
    }

    fn is_empty(&self, term: Term) -> bool {
        self.texts.operation(term).is_some_and(|name| ["[]", "{}", "{:}"].contains(&name))
    }

    /// Returns the sorts of the arguments of an operation, if others have its name.
    fn ambiguous(&self, head: Term) -> Result<Vec<Term>, Diagnostic> {
        let (Some(overloaded), Some(name)) = (self.overloaded, self.texts.operation(head)) else {
            return Ok(Vec::new());
        };
        match self.texts.0.content(head) {
            Content::Apply(_, &[_, sort, ..]) if overloaded.contains(name) => {
                match self.texts.0.content(sort) {
                    Content::Apply("SortArrow", &[domain, _]) => self.texts.list(domain),
                    _ => Ok(Vec::new()),
                }
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Splits the sort of an operation that is a function.
    fn arrow(&self, operation: Term) -> Result<(Vec<Term>, Term), Diagnostic> {
        let sort = match self.texts.0.content(operation) {
            Content::Apply(_, &[_, sort, ..]) => sort,
            _ => return Err(refuse("the file is damaged: an operation has no sort")),
        };
        match self.texts.0.content(sort) {
            Content::Apply("SortArrow", &[domain, range]) => Ok((self.texts.list(domain)?, range)),
            _ => Err(refuse("the file is damaged: it applies an operation that is not a function")),
        }
    }
}
