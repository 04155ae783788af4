//! Translation of internal operations of mCRL2's binary files to expressions of the language with
//! the same meaning.
//!
//! The toolset rewrites its output: partially evaluated numbers, sets and bags contain operations
//! of its own, with names that start with `@`. Supported are those that equations in the toolset's
//! data library define (Groote and Mousavi, "Modeling and Analysis of Communicating Systems",
//! appendix B); all others are rejected by name. Cost: that of the text. Invariant: each operand is
//! in brackets, and duplicated only if necessary.

use super::Printer;
use crate::aterm::{Content, Term};
use crate::mcrl2::{MAX_TEXT, refuse};
use mu_base::Diagnostic;
use std::fmt::Write;

/// Templates of operations on numbers and finite collections: `%1` is the first operand.
const FORMS: [(&str, usize, &str); 22] = [
    ("@monus", 2, "if(%1 <= %2, 0, Int2Nat(%1 - %2))"),
    ("@redfrac", 2, "(%1 / %2)"),
    ("@redfracwhr", 3, "(%2 + %3 / %1)"),
    ("@redfrachlp", 2, "(1 / %1 + %2)"),
    ("@cDub", 2, "(2 * %2 + if(%1, 1, 0))"),
    ("@succ_nat", 1, "(%1 + 1)"),
    ("@succ_pos", 1, "(%1 + 1)"),
    ("@natpred", 1, "if(%1 == 0, 0, Int2Nat(%1 - 1))"),
    ("@pospred", 1, "if(%1 == 1, 1, Int2Pos(%1 - 1))"),
    ("@div2", 1, "(%1 div 2)"),
    ("@is_odd", 1, "(%1 mod 2 == 1)"),
    ("@even", 1, "(%1 mod 2 == 0)"),
    ("@fset_cinsert", 3, "if(%2, {%1} + %3, %3)"),
    ("@setfset", 1, "%1"),
    ("@bagfbag", 1, "%1"),
    ("@fset_union", 2, "(%1 + %2)"),
    ("@fset_inter", 2, "(%1 * %2)"),
    ("@fset_difference", 2, "(%1 - %2)"),
    ("@fbag_join", 2, "(%1 + %2)"),
    ("@fbag_inter", 2, "(%1 * %2)"),
    ("@fbag_diff", 2, "(%1 - %2)"),
    ("@fset2fbag", 1, "Set2Bag(%1)"),
];

/// Templates of pointwise operations on unary functions: `%1` is the first function, applied.
const POINTWISE: [(&str, usize, &str); 12] = [
    ("@true_", 0, "true"),
    ("@false_", 0, "false"),
    ("@zero_", 0, "0"),
    ("@one_", 0, "1"),
    ("@not_", 1, "!%1"),
    ("@and_", 2, "(%1 && %2)"),
    ("@or_", 2, "(%1 || %2)"),
    ("@add_", 2, "(%1 + %2)"),
    ("@min_", 2, "min(%1, %2)"),
    ("@monus_", 2, "if(%1 <= %2, 0, Int2Nat(%1 - %2))"),
    ("@Nat2Bool_", 1, "(%1 > 0)"),
    ("@Bool2Nat_", 1, "if(%1, 1, 0)"),
];

fn too_long() -> Diagnostic {
    refuse(format!("an expression has more than {MAX_TEXT} characters"))
}

/// Substitutes operands into a template.
fn instantiate(form: &str, operands: &[String], out: &mut String) {
    let mut parts = form.split('%');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (digit, rest) = part.split_at(1);
        let operand = digit.parse::<usize>().ok().and_then(|n| operands.get(n - 1));
        out.push_str(operand.map_or("", String::as_str));
        out.push_str(rest);
    }
}

impl Printer<'_> {
    /// Prints an operation of the toolset's own, with its arguments.
    pub(super) fn internal(
        &self,
        head: Term,
        name: &str,
        args: &[Term],
        out: &mut String,
    ) -> Result<(), Diagnostic> {
        match (name, args) {
            ("@set", [f, finite]) => return self.collection(head, true, *f, *finite, out),
            ("@bag", [f, finite]) => return self.collection(head, false, *f, *finite, out),
            ("@setcomp" | "@bagcomp", [f]) => return self.comprehension(head, *f, |f| f, out),
            _ => {}
        }
        // If the functions contain everything or nothing, the result is determined by the
        // collections: elements in exactly one of functions and collections.
        if let ("@fset_union" | "@fset_inter", [f, g, s, t]) = (name, args)
            && let (Some(f), Some(g)) = (self.constant_value(*f), self.constant_value(*g))
            && (f || g)
        {
            let form = match (name == "@fset_union", f, g) {
                (true, false, _) | (false, true, false) => "(%2 - %1)",
                (true, true, false) | (false, false, _) => "(%1 - %2)",
                (true, true, true) => "(%1 * %2)",
                (false, true, true) => "(%1 + %2)",
            };
            instantiate(form, &[self.operand(*s)?, self.operand(*t)?], out);
            return if out.len() > MAX_TEXT { Err(too_long()) } else { Ok(()) };
        }
        // If the functions contain nothing, the result is that of the collections.
        let args = match args {
            [f, g, rest @ ..]
                if rest.len() == 2 && self.is_constant_zero(*f) && self.is_constant_zero(*g) =>
            {
                rest
            }
            all => all,
        };
        if let Some((_, _, form)) =
            FORMS.iter().find(|(n, count, _)| *n == name && *count == args.len())
        {
            let operands = args.iter().map(|a| self.operand(*a)).collect::<Result<Vec<_>, _>>()?;
            instantiate(form, &operands, out);
            // Operands that occur twice grow fast.
            return if out.len() > MAX_TEXT { Err(too_long()) } else { Ok(()) };
        }
        if POINTWISE.iter().any(|(n, count, _)| *n == name && *count == args.len()) {
            let (sort, x) = (self.element(head, args)?, self.texts.0.unused_name());
            out.push_str(&format!("(lambda {x}: "));
            self.sort(sort, false, out)?;
            out.push_str(". ");
            out.push_str(&self.at(name, args)?);
            out.push(')');
            return Ok(());
        }
        Err(refuse(format!("`{name}` has no text")))
    }

    fn operand(&self, term: Term) -> Result<String, Diagnostic> {
        let mut text = String::from("(");
        self.expression(term, &mut text)?;
        text.push(')');
        Ok(text)
    }

    /// Returns the value of a constant function.
    fn constant_value(&self, function: Term) -> Option<bool> {
        match self.texts.operation(function)? {
            "@false_" => Some(false),
            "@true_" => Some(true),
            _ => None,
        }
    }

    /// True for a function that is false or zero everywhere.
    fn is_constant_zero(&self, function: Term) -> bool {
        matches!(self.texts.operation(function), Some("@false_" | "@zero_"))
    }

    /// Returns the argument sort of a pointwise operation.
    fn element(&self, head: Term, args: &[Term]) -> Result<Term, Diagnostic> {
        let (domain, range) = self.arrow(head)?;
        let of = if args.is_empty() { Some(domain) } else { None };
        let of = match of {
            Some(domain) => domain,
            None => match self.texts.0.content(range) {
                Content::Apply("SortArrow", &[domain, _]) => self.texts.list(domain)?,
                _ => {
                    return Err(refuse(
                        "the file is damaged: it has another term in place of a function",
                    ));
                }
            },
        };
        of.first().copied().ok_or_else(|| refuse("the file is damaged: a function has no argument"))
    }

    /// Prints a function applied to the unused variable.
    fn applied_to_x(&self, function: Term) -> Result<String, Diagnostic> {
        let (name, args) = match self.texts.0.content(function) {
            Content::Apply("DataAppl", [head, args @ ..]) => (self.texts.operation(*head), args),
            _ => (self.texts.operation(function), &[] as &[Term]),
        };
        match name.filter(|n| POINTWISE.iter().any(|(m, count, _)| m == n && *count == args.len()))
        {
            Some(name) => stacker::maybe_grow(64 << 10, 1 << 20, || self.at(name, args)),
            None => Ok(format!("{}({})", self.operand(function)?, self.texts.0.unused_name())),
        }
    }

    /// Prints a pointwise operation applied to the unused variable.
    fn at(&self, name: &str, args: &[Term]) -> Result<String, Diagnostic> {
        let operands = args.iter().map(|a| self.applied_to_x(*a)).collect::<Result<Vec<_>, _>>()?;
        let form = POINTWISE.iter().find(|p| p.0 == name).map_or("", |p| p.2);
        let mut out = String::new();
        instantiate(form, &operands, &mut out);
        if out.len() > MAX_TEXT {
            return Err(too_long());
        }
        Ok(out)
    }

    /// Prints the set or bag that a function describes; `change` maps the function's value
    /// at the unused variable to the body.
    fn comprehension(
        &self,
        head: Term,
        function: Term,
        change: impl FnOnce(String) -> String,
        out: &mut String,
    ) -> Result<(), Diagnostic> {
        let (domain, _) = self.arrow(head)?;
        let sort = domain
            .first()
            .copied()
            .ok_or_else(|| refuse("the file is damaged: a set has no function"))?;
        let Content::Apply("SortArrow", &[elements, _]) = self.texts.0.content(sort) else {
            return Err(refuse("the file is damaged: a set has no function"));
        };
        let element = *self
            .texts
            .list(elements)?
            .first()
            .ok_or_else(|| refuse("the file is damaged: a function has no argument"))?;
        let x = self.texts.0.unused_name();
        _ = write!(out, "{{ {x}: ");
        self.sort(element, false, out)?;
        _ = write!(out, " | {} }}", change(self.applied_to_x(function)?));
        Ok(())
    }

    /// Prints a comprehension with finitely many exceptions; a bag likewise.
    fn collection(
        &self,
        head: Term,
        is_set: bool,
        function: Term,
        finite: Term,
        out: &mut String,
    ) -> Result<(), Diagnostic> {
        if is_set && self.texts.operation(function) == Some("@true_") {
            out.push_str("(!");
            self.expression(finite, out)?;
            out.push(')');
            return Ok(());
        }
        let (given, empty) = (self.operand(finite)?, self.is_empty(finite));
        // A comprehension in the source has its own variable. It must not capture a variable of the
        // finite part.
        if let Content::Apply("Binder", &[kind, vars, body]) = self.texts.0.content(function)
            && self.texts.name(kind) == "Lambda"
            && let [var] = self.texts.list(vars)?[..]
            && let Some(name) = self.variable_name(var)
            && (empty || is_set && !given.contains(&*name))
        {
            out.push_str("{ ");
            self.variable(var, out)?;
            out.push_str(" | ");
            self.expression(body, out)?;
            if !empty {
                _ = write!(out, " != ({name} in {given})");
            }
            out.push_str(" }");
            return Ok(());
        }
        let x = self.texts.0.unused_name();
        self.comprehension(
            head,
            function,
            |f| match (empty, is_set) {
                (true, _) => f,
                (false, true) => format!("{f} != ({x} in {given})"),
                // The count in the finite part replaces that of the function, and equal counts give
                // none.
                (false, false) => format!("if(count({x}, {given}) == 0, {f}, if({f} == count({x}, {given}), 0, count({x}, {given})))"),
            },
            out,
        )
    }
}
