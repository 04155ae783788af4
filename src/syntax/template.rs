//! Parameter layer: expands a specification file with parameters to plain mCRL2 text, and maps
//! error places back to the file.
//!
//! A plain mCRL2 file is unchanged, since `$` does not occur in the language. The directives:
//!
//! ```text
//! $param cores: Pos = 2 where cores <= 8;      % a parameter; this comment is its help text
//! ${2 * cores - 1}                             % the value of an expression, also in core_${i}
//! $for i in 0 .. cores join " || " { P(${i}) } % copies; the bound is excluded (`..=`: included)
//! $if cores > 1 { a } $else $if cores == 1 { b } $else { c }
//! ```
//!
//! Sorts of parameters are Pos, Nat, Int and Bool. An empty range gives no copies.
//!
//! Expressions are integers and booleans over parameters declared above and loop variables, with
//! mCRL2's operators (`=> || && == != < <= > >= + - div mod * !`) and precedences. Braces in bodies
//! nest, so sets and allow lists need no escapes; comments are text, without directives. White
//! space at both ends of a body is dropped. Copies of a loop are separated by the `join` text (by
//! default a space); if the body starts on a line of its own, then also by a line break and
//! indentation. A `$param` line becomes a comment with the value. A parameter of sort Pos or Nat
//! may be set to `any`: it then has no value, `${n + 1}` becomes `(n + 1)`, and the text ends with
//! `map n: Nat;`; nothing in the text may depend on its value. Constraints on it do not apply: all
//! values include those that a constraint admits.
//!
//! Cost: linear in input plus output, both bounded ([`MAX_OUTPUT`], [`MAX_COPIES`]). Invariant: the
//! breakpoints of the result's [`Source::back`] are strictly ascending, and each range of copied
//! text maps to the bytes it was copied from.

mod expression;
mod parse;

use std::fmt;

pub use expression::TemplateValue;
use parse::{Body, ForItem, ParamItem, TemplateItem};

use mu_base::source::Source;
use mu_base::{Diagnostic, SourceId, SourceMap, Span, Stage, narrow};

/// Limit on the length of an expansion in bytes; beyond it, the expansion fails.
pub const MAX_OUTPUT: usize = 64 << 20;
/// Limit on the copies of all loops together; beyond it, the expansion fails.
pub const MAX_COPIES: u64 = 1_000_000;
/// Limit on the nesting of directives and of parentheses in their expressions.
const MAX_NESTING: usize = 200;

/// The sort of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterSort {
    /// 1, 2, 3, …
    Pos,
    /// 0, 1, 2, …
    Nat,
    /// Integers of 64 bits.
    Int,
    /// `true` and `false`
    Bool,
}

impl ParameterSort {
    const ALL: [ParameterSort; 4] =
        [ParameterSort::Pos, ParameterSort::Nat, ParameterSort::Int, ParameterSort::Bool];
    /// Returns the keyword.
    pub fn word(self) -> &'static str {
        match self {
            ParameterSort::Pos => "Pos",
            ParameterSort::Nat => "Nat",
            ParameterSort::Int => "Int",
            ParameterSort::Bool => "Bool",
        }
    }
    /// Describes its values, for messages.
    fn values(self) -> &'static str {
        match self {
            ParameterSort::Pos => "a number from 1",
            ParameterSort::Nat => "a number from 0",
            ParameterSort::Int => "an integer",
            ParameterSort::Bool => "true or false",
        }
    }
    fn has(self, value: TemplateValue) -> bool {
        match (self, value) {
            (ParameterSort::Pos, TemplateValue::Int(n)) => n >= 1,
            (ParameterSort::Nat, TemplateValue::Int(n)) => n >= 0,
            (ParameterSort::Int, TemplateValue::Int(_))
            | (ParameterSort::Bool, TemplateValue::Bool(_))
            | (ParameterSort::Pos | ParameterSort::Nat, TemplateValue::Any { .. }) => true,
            _ => false,
        }
    }
}

impl fmt::Display for ParameterSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Parameter of a specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its sort.
    pub sort: ParameterSort,
    /// Its value in this expansion.
    pub value: TemplateValue,
    /// Its default value (which may depend on other parameters).
    pub default: TemplateValue,
    /// Its constraint beyond its sort, as written; empty if there is none.
    pub constraint: String,
    /// Help text: the comment after its declaration.
    pub doc: String,
}

impl fmt::Display for Param {
    /// Formats `name: ParameterSort = default where constraint  help text`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} = {}", self.name, self.sort, self.default)?;
        if !self.constraint.is_empty() {
            write!(f, " where {}", self.constraint)?;
        }
        if self.doc.is_empty() { Ok(()) } else { write!(f, "  {}", self.doc) }
    }
}

/// Specification with its parameters filled in.
#[derive(Clone, Debug)]
pub struct ExpandedText {
    /// Source to parse under: spans in `text` map to the file as written.
    pub source: SourceId,
    /// Plain mCRL2.
    pub text: String,
    /// The parameters in the order of their declarations.
    pub params: Vec<Param>,
    /// The parameters without a value, each with the constant that represents it. The name of the
    /// constant does not occur in the file.
    pub constants: Vec<(String, String)>,
}

/// Word of the error for a value that violates the constraint of its parameter.
const VIOLATES: &str = "violates";

/// Words of the error for a value that is not of the sort of its parameter.
const NOT_OF_SORT: &str = "is not of sort";

/// True if an error says that the file excludes a value: by the constraint of its parameter
/// (`where`), or by its sort (0 of `Pos`).
pub fn rejects_value(error: &Diagnostic) -> bool {
    let is_not_of_sort = error.stage == Stage::Usage
        && error.message.starts_with("parameter `")
        && error.message.contains(&format!("` {NOT_OF_SORT} "));
    is_not_of_sort || is_constraint_violation(error)
}

/// True if an error says that a value violates the constraint of its parameter (`where`).
pub fn is_constraint_violation(error: &Diagnostic) -> bool {
    let parts = error.message.split_once(&format!("` {VIOLATES} `"));
    error.stage == Stage::Usage && parts.is_some_and(|(value, _)| value.contains(" = "))
}

/// Splits `NAME=VALUE`, the argument of `-D`.
pub fn parse_define(argument: &str) -> Result<(String, String), Diagnostic> {
    let is_name = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '\'')
    };
    match argument.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
        Some((name, value)) if is_name(name) && !value.is_empty() => {
            Ok((name.to_string(), value.to_string()))
        }
        _ => {
            Err(Diagnostic::new(Stage::Usage, format!("`-D {argument}` does not set a parameter"))
                .note("expected -D NAME=VALUE, for instance -D cores=3"))
        }
    }
}

/// Expands the file `name` with contents `text` and adds the result to `sources`. `defines` sets
/// parameters (pairs of name and value). Errors in directives have a place; errors in `defines` are
/// of [`Stage::Usage`] and list the parameters.
pub fn expand(
    name: &str,
    text: &str,
    defines: &[(String, String)],
    sources: &mut SourceMap,
) -> Result<ExpandedText, Diagnostic> {
    expand_representative(name, text, defines, &[], sources)
}

/// Expands as [`expand`]. The values of the parameters `representatives` represent all values:
/// constraints (`where`) on them do not apply, as those on parameters with the value `any` do not.
pub fn expand_representative(
    name: &str,
    text: &str,
    defines: &[(String, String)],
    representatives: &[String],
    sources: &mut SourceMap,
) -> Result<ExpandedText, Diagnostic> {
    if u32::try_from(text.len()).is_err() {
        return Err(Diagnostic::new(Stage::File, format!("`{name}` is larger than 4 GiB")));
    }
    let run = || {
        let items = parse::parse(text)?;
        let mut expansion = Expansion {
            text,
            defines,
            unconstrained: representatives.to_vec(),
            out: String::new(),
            back: Vec::new(),
            params: Vec::new(),
            scope: Vec::new(),
            copies: 0,
            unended: None,
        };
        expansion.check_defines(&items)?;
        // A file without directives is one range, copied unchanged (and not limited).
        if let [TemplateItem::Text(..)] | [] = items[..] {
            expansion.out = text.to_string();
        } else {
            expansion.items(&items)?;
            expansion.constants(&items)?;
        }
        Ok(expansion)
    };
    match run() {
        Ok(expansion) => {
            let constants = expansion
                .without_value()
                .map(|p| (p.name.clone(), expansion.constant(&p.name)))
                .collect();
            let Expansion { out, back, params, .. } = expansion;
            let source = sources.add_source(Source {
                name: name.to_string(),
                original: text.to_string(),
                text: out.clone(),
                back,
            });
            Ok(ExpandedText { source, text: out, params, constants })
        }
        Err(TemplateFault { stage, place, message, notes }) => {
            let span = place.map(|(start, end)| Span {
                source: sources.add(name, text),
                start: narrow::index(start),
                end: narrow::index(end),
            });
            Err(Diagnostic { span, notes, ..Diagnostic::new(stage, message) })
        }
    }
}

/// Returns the greatest value that the constraints of a file admit for each parameter that is set
/// to `any`, if they have an upper bound. A file with errors has none.
pub fn greatest_values(text: &str, defines: &[(String, String)]) -> Vec<(String, i64)> {
    let (mut scope, mut greatest) = (Vec::new(), Vec::<(String, i64)>::new());
    let Ok(items) = parse::parse(text) else { return greatest };
    for item in &items {
        let TemplateItem::Param(p) = item else { continue };
        let set = defines.iter().find(|d| d.0 == p.name).map(|d| d.1.as_str());
        let value = match set {
            None => p.default.value(&scope).ok(),
            Some("any") => Some(TemplateValue::Any { param: narrow::index(scope.len()), plus: 0 }),
            Some(text) => parse_value(text),
        };
        let Some(value) = value else { return Vec::new() };
        scope.push((p.name.clone(), value));
        let Some(constraint) = &p.constraint else { continue };
        let open = scope.iter().filter(|s| matches!(s.1, TemplateValue::Any { .. }));
        for (name, _) in open.cloned().collect::<Vec<_>>() {
            if let Some(most) = constraint.greatest(&name, &scope, &greatest) {
                match greatest.iter_mut().find(|g| g.0 == name) {
                    Some(known) => known.1 = known.1.min(most),
                    None => greatest.push((name, most)),
                }
            }
        }
    }
    greatest.retain(|g| defines.iter().any(|d| d.0 == g.0 && d.1 == "any"));
    greatest
}

/// Error before it has a source for its place.
#[derive(Debug)]
struct TemplateFault {
    stage: Stage,
    place: Option<(usize, usize)>,
    message: String,
    notes: Vec<String>,
}

impl TemplateFault {
    fn at(stage: Stage, start: usize, end: usize, message: impl Into<String>) -> Self {
        TemplateFault {
            stage,
            place: Some((start, end)),
            message: message.into(),
            notes: Vec::new(),
        }
    }
    fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// Expansion in progress.
struct Expansion<'a> {
    text: &'a str,
    defines: &'a [(String, String)],
    /// Parameters to which constraints do not apply.
    unconstrained: Vec<String>,
    out: String,
    back: Vec<(u32, u32, bool)>,
    params: Vec<Param>,
    /// Parameters and loop variables, innermost last.
    scope: Vec<(String, TemplateValue)>,
    copies: u64,
    /// Directive of a constant for a parameter without a value, if the output ends with it.
    unended: Option<usize>,
}

impl Expansion<'_> {
    /// Iterates over the parameters without a value.
    fn without_value(&self) -> impl Iterator<Item = &Param> {
        self.params.iter().filter(|p| matches!(p.value, TemplateValue::Any { .. }))
    }

    /// Returns the constant for a parameter without a value. The file cannot declare or bind its
    /// name.
    fn constant(&self, name: &str) -> String {
        let mut constant = format!("{name}_any");
        while self.text.contains(&constant) {
            constant.push('_');
        }
        constant
    }

    /// Returns the error for a constant that is a part of a word: the word depends on the value.
    fn part_of_a_word(&self, start: usize) -> TemplateFault {
        let length = self.text[start..].find('}').map_or(1, |n| n + 1);
        TemplateFault::at(
            Stage::Unsupported,
            start,
            start + length,
            "a word depends on a parameter that is set to `any`",
        )
        .note("a parameter with the value `any` may only occur in place of a number")
    }

    /// Checks that every define names a parameter, and none twice.
    fn check_defines(&self, items: &[TemplateItem]) -> Result<(), TemplateFault> {
        let declared: Vec<&ParamItem> = items
            .iter()
            .filter_map(|i| if let TemplateItem::Param(p) = i { Some(p) } else { None })
            .collect();
        let list = || match declared[..] {
            [] => vec!["the specification has no parameters".to_string()],
            _ => declared
                .iter()
                .map(|p| {
                    format!(
                        "parameter {}: {} = {}  {}",
                        p.name,
                        p.sort,
                        &self.text[p.default.start..p.default.end],
                        p.doc
                    )
                    .trim_end()
                    .to_string()
                })
                .collect(),
        };
        for (i, (name, _)) in self.defines.iter().enumerate() {
            let message = if !declared.iter().any(|p| p.name == *name) {
                format!("unknown parameter `{name}`")
            } else if self.defines[..i].iter().any(|d| d.0 == *name) {
                format!("parameter `{name}` is set twice")
            } else {
                continue;
            };
            return Err(TemplateFault { stage: Stage::Usage, place: None, message, notes: list() });
        }
        Ok(())
    }

    fn items(&mut self, items: &[TemplateItem]) -> Result<(), TemplateFault> {
        for item in items {
            match item {
                TemplateItem::Text(from, to) => self.copy(*from, *to)?,
                TemplateItem::Value(start, expr) => {
                    let value = expr.value(&self.scope)?;
                    let TemplateValue::Any { param, plus } = value else {
                        self.insert(&value.to_string(), *start)?;
                        continue;
                    };
                    let constant = self.constant(&self.params[param as usize].name);
                    if self.out.ends_with(is_in_word) {
                        return Err(self.part_of_a_word(*start));
                    }
                    self.insert(
                        &if plus == 0 { constant } else { format!("({constant} + {plus})") },
                        *start,
                    )?;
                    self.unended = Some(*start);
                }
                TemplateItem::Param(param) => self.param(param)?,
                TemplateItem::For(item) => self.for_loop(item)?,
                TemplateItem::If(arms) => self.conditional(arms)?,
            }
        }
        Ok(())
    }

    fn param(&mut self, p: &ParamItem) -> Result<(), TemplateFault> {
        self.check_new(&p.name, p.start, p.end)?;
        let default = p.default.value(&self.scope)?;
        let set = self.defines.iter().find(|d| d.0 == p.name).map(|d| d.1.as_str());
        let value = match set {
            None if p.sort.has(default) => default,
            None => {
                return Err(TemplateFault::at(
                    Stage::Type,
                    p.default.start,
                    p.default.end,
                    format!(
                        "the default of `{}` is {default}, which is not of sort {}",
                        p.name, p.sort
                    ),
                )
                .note(format!("expected {}", p.sort.values())));
            }
            Some("any") if matches!(p.sort, ParameterSort::Pos | ParameterSort::Nat) => {
                TemplateValue::Any { param: narrow::index(self.params.len()), plus: 0 }
            }
            Some(text) => parse_value(text).filter(|v| p.sort.has(*v)).ok_or_else(|| {
                TemplateFault::at(
                    Stage::Usage,
                    p.start,
                    p.end,
                    format!("parameter `{}`: `{text}` {NOT_OF_SORT} {}", p.name, p.sort),
                )
                .note(expected_value(p.sort, text))
            })?,
        };
        self.scope.push((p.name.clone(), value));
        let is_unconstrained = |name: &str| self.unconstrained.iter().any(|n| n == name);
        let depends = matches!(value, TemplateValue::Any { .. })
            || set.is_none() && p.default.mentions(&is_unconstrained);
        if depends && !is_unconstrained(&p.name) {
            self.unconstrained.push(p.name.clone());
        }
        let applies = |c: &expression::TemplateExpr| {
            !c.mentions(&|n| self.unconstrained.iter().any(|u| u == n))
        };
        if let Some(constraint) = &p.constraint
            && applies(constraint)
            && !constraint.boolean(&self.scope, "where")?
        {
            let message = format!(
                "`{} = {value}` {VIOLATES} `{}`",
                p.name,
                &self.text[constraint.start..constraint.end]
            );
            let values: Vec<String> =
                self.scope.iter().map(|(n, v)| format!("{n} = {v}")).collect();
            return Err(TemplateFault::at(Stage::Usage, constraint.start, constraint.end, message)
                .note(format!("values are {}", values.join(", "))));
        }
        let constraint = p
            .constraint
            .as_ref()
            .map_or_else(String::new, |c| self.text[c.start..c.end].to_string());
        self.params.push(Param {
            name: p.name.clone(),
            sort: p.sort,
            value,
            default,
            constraint,
            doc: p.doc.clone(),
        });
        self.insert(&format!("% {}: {} = {value};", p.name, p.sort), p.start)
    }

    /// Declares the parameters without a value, as constants without equations.
    fn constants(&mut self, items: &[TemplateItem]) -> Result<(), TemplateFault> {
        for item in items {
            if let TemplateItem::Param(p) = item
                && let Some(Param { sort, value: TemplateValue::Any { .. }, .. }) =
                    self.params.iter().find(|q| q.name == p.name)
            {
                let text = format!("\nmap {}: {sort};", self.constant(&p.name));
                self.insert(&text, p.start)?;
            }
        }
        Ok(())
    }

    fn for_loop(&mut self, f: &ForItem) -> Result<(), TemplateFault> {
        self.check_new(&f.variable, f.start, f.end)?;
        let from = f.from.integer(&self.scope, "$for")?;
        let to = f.to.integer(&self.scope, "$for")?;
        let count = (i128::from(to) - i128::from(from) + i128::from(f.inclusive)).max(0);
        for k in 0..count {
            self.copies += 1;
            if self.copies > MAX_COPIES {
                return Err(TemplateFault::at(
                    Stage::Usage,
                    f.start,
                    f.end,
                    format!("the expansion makes more than {MAX_COPIES} copies"),
                )
                .note(format!("this loop makes {count}, with {} = {from} and on", f.variable)));
            }
            if k > 0 {
                self.insert(&f.separator, f.start)?;
            }
            // No overflow: it is between `from` and `to`.
            let value = i64::try_from(i128::from(from) + k).unwrap_or(i64::MAX);
            self.scope.push((f.variable.clone(), TemplateValue::Int(value)));
            self.items(&f.body.items)?;
            self.scope.pop();
        }
        Ok(())
    }

    fn conditional(
        &mut self,
        arms: &[(Option<expression::TemplateExpr>, Body)],
    ) -> Result<(), TemplateFault> {
        for (condition, body) in arms {
            let holds = match condition {
                Some(c) => c.boolean(&self.scope, "$if")?,
                None => true,
            };
            if holds {
                return self.items(&body.items);
            }
        }
        Ok(())
    }

    fn check_new(&self, name: &str, start: usize, end: usize) -> Result<(), TemplateFault> {
        if self.scope.iter().any(|s| s.0 == name) {
            return Err(TemplateFault::at(
                Stage::Type,
                start,
                end,
                format!("`{name}` is already the name of a parameter or of an outer loop variable"),
            ));
        }
        Ok(())
    }

    /// Appends bytes `from..to` of the file.
    fn copy(&mut self, from: usize, to: usize) -> Result<(), TemplateFault> {
        self.mark(from, true);
        self.push(&self.text[from..to], from)
    }

    /// Appends a text that replaces the directive at `origin`.
    fn insert(&mut self, text: &str, origin: usize) -> Result<(), TemplateFault> {
        self.mark(origin, false);
        self.push(text, origin)
    }

    fn mark(&mut self, origin: usize, advances: bool) {
        let at = narrow::index(self.out.len());
        // Replaces the breakpoint of an insertion without text.
        if self.back.last().is_some_and(|b| b.0 == at) {
            self.back.pop();
        }
        self.back.push((at, narrow::index(origin), advances));
    }

    fn push(&mut self, text: &str, origin: usize) -> Result<(), TemplateFault> {
        if self.out.len() + text.len() > MAX_OUTPUT {
            return Err(TemplateFault::at(
                Stage::Usage,
                origin,
                origin + 1,
                format!("the expansion is longer than {} MiB", MAX_OUTPUT >> 20),
            ));
        }
        if let Some(start) = self.unended.filter(|_| !text.is_empty()) {
            if text.starts_with(is_in_word) {
                return Err(self.part_of_a_word(start));
            }
            self.unended = None;
        }
        self.out.push_str(text);
        Ok(())
    }
}

/// True for the characters of names and numbers.
fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// Describes the values of a sort, for the error on the text of a value.
fn expected_value(sort: ParameterSort, text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    match sort {
        ParameterSort::Int | ParameterSort::Bool if text == "any" => {
            format!(
                "only a parameter of sort Pos or Nat has the value `any`; expected {}",
                sort.values()
            )
        }
        ParameterSort::Pos | ParameterSort::Nat | ParameterSort::Int
            if !digits.is_empty()
                && digits.bytes().all(|b| b.is_ascii_digit())
                && text.parse::<i64>().is_err() =>
        {
            format!("expected {}, of at most 64 bits: {} to {}", sort.values(), i64::MIN, i64::MAX)
        }
        _ if text.contains("..") || text.contains(',') => {
            format!("expected {}; `sweep` runs ranges and lists of values", sort.values())
        }
        _ => format!("expected {}", sort.values()),
    }
}

fn parse_value(text: &str) -> Option<TemplateValue> {
    match text {
        "true" => Some(TemplateValue::Bool(true)),
        "false" => Some(TemplateValue::Bool(false)),
        _ => {
            let digits = text.strip_prefix('-').unwrap_or(text);
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            if plain { text.parse().ok().map(TemplateValue::Int) } else { None }
        }
    }
}
