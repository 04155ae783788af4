//! Parser of templates: splits a specification text into directives and plain text. Linear;
//! comments are plain text, braces in plain text nest.

use super::expression::{self, Cursor, TemplateExpr};
use super::{ParameterSort, TemplateFault};
use mu_base::Stage;

/// Part of a template.
#[derive(Debug)]
pub(super) enum TemplateItem {
    /// Plain text: bytes `.0 .. .1`.
    Text(usize, usize),
    /// `${expr}`, with the position of the `$`.
    Value(usize, TemplateExpr),
    /// `$param …;` up to and with the semicolon.
    Param(ParamItem),
    /// `$for …`
    For(ForItem),
    /// `$if …`: the arms in order; the `$else` arm has no condition.
    If(Vec<(Option<TemplateExpr>, Body)>),
}

/// `$param name: ParameterSort = default where constraint;`
#[derive(Debug)]
pub(super) struct ParamItem {
    pub name: String,
    pub sort: ParameterSort,
    pub default: TemplateExpr,
    pub constraint: Option<TemplateExpr>,
    pub doc: String,
    pub start: usize,
    pub end: usize,
}

/// `$for variable in from .. to join "text" { body }`
#[derive(Debug)]
pub(super) struct ForItem {
    pub variable: String,
    pub from: TemplateExpr,
    pub to: TemplateExpr,
    pub inclusive: bool,
    /// Separator of copies: as given, followed by a line break with the body's indentation if the
    /// body is a block.
    pub separator: String,
    pub body: Body,
    pub start: usize,
    pub end: usize,
}

/// Contents of the braces of a directive, without white space at both ends.
#[derive(Debug)]
pub(super) struct Body {
    pub items: Vec<TemplateItem>,
}

const DIRECTIVES: &str =
    "directives are `${expression}`, `$param`, `$for … { … }`, `$if … { … } $else { … }`";

/// Parses a whole file.
pub(super) fn parse(text: &str) -> Result<Vec<TemplateItem>, TemplateFault> {
    let mut cursor = Cursor::new(text);
    items(&mut cursor, false)
}

/// Parses plain text and directives, to the end of the file or to the brace that closes a body.
fn items(cursor: &mut Cursor<'_>, in_body: bool) -> Result<Vec<TemplateItem>, TemplateFault> {
    let mut found = Vec::new();
    let mut braces = 0usize;
    let mut from = cursor.at;
    loop {
        let Some(step) = cursor.rest().find(['$', '%', '{', '}']) else {
            cursor.at = cursor.text.len();
            break;
        };
        cursor.at += step;
        match cursor.text.as_bytes()[cursor.at] {
            b'%' => cursor.at += cursor.rest().find('\n').unwrap_or(cursor.rest().len()),
            b'{' => {
                braces += 1;
                cursor.at += 1;
            }
            b'}' if braces == 0 && in_body => break,
            b'}' => {
                braces = braces.saturating_sub(1);
                cursor.at += 1;
            }
            _ => {
                push_text(&mut found, from, cursor.at);
                found.push(cursor.nest(|c| directive(c, in_body))?);
                from = cursor.at;
            }
        }
    }
    push_text(&mut found, from, cursor.at);
    Ok(found)
}

fn push_text(found: &mut Vec<TemplateItem>, from: usize, to: usize) {
    if from < to {
        found.push(TemplateItem::Text(from, to));
    }
}

fn directive(cursor: &mut Cursor<'_>, in_body: bool) -> Result<TemplateItem, TemplateFault> {
    let start = cursor.at;
    cursor.at += 1;
    if cursor.rest().starts_with('{') {
        cursor.at += 1;
        let value = expression::parse(cursor)?;
        cursor.expect("}", "to close `${`")?;
        return Ok(TemplateItem::Value(start, value));
    }
    let word = cursor.peek_word();
    let place = (start, start + 1 + word.len());
    cursor.at += word.len();
    match word {
        "param" if in_body => Err(TemplateFault::at(
            Stage::Syntax,
            place.0,
            place.1,
            "`$param` is inside a directive",
        )
        .note("parameters are declared outside of `$for` and `$if`")),
        "param" => Ok(TemplateItem::Param(param(cursor, start)?)),
        "for" => Ok(TemplateItem::For(for_loop(cursor, start)?)),
        "if" => conditional(cursor),
        "else" => Err(TemplateFault::at(Stage::Syntax, place.0, place.1, "`$else` without `$if`")
            .note("`$else` follows the closing brace of an `$if`")),
        "" => Err(TemplateFault::at(
            Stage::Syntax,
            place.0,
            place.1,
            "`$` does not start a directive",
        )
        .note(DIRECTIVES)),
        _ => Err(TemplateFault::at(
            Stage::Syntax,
            place.0,
            place.1,
            format!("unknown directive `${word}`"),
        )
        .note(DIRECTIVES)),
    }
}

fn param(cursor: &mut Cursor<'_>, start: usize) -> Result<ParamItem, TemplateFault> {
    let (name, _) = cursor.name("the name of the parameter")?;
    cursor.expect(":", "and the sort of the parameter")?;
    cursor.skip();
    let word = cursor.peek_word();
    let Some(sort) = ParameterSort::ALL.into_iter().find(|s| s.word() == word) else {
        return Err(cursor.unexpected("a sort, one of Pos, Nat, Int, Bool"));
    };
    cursor.at += word.len();
    cursor.expect("=", "and the default value of the parameter")?;
    let default = expression::parse(cursor)?;
    let constraint = if cursor.eat("where") { Some(expression::parse(cursor)?) } else { None };
    cursor.expect(";", "at the end of the parameter")?;
    let end = cursor.at;
    let line = cursor.rest().lines().next().unwrap_or("");
    let doc = match line.trim_start().strip_prefix('%') {
        Some(comment) => comment.trim_start_matches('%').trim().to_string(),
        None if line.trim().is_empty() => String::new(),
        None => {
            let at = end + line.len() - line.trim_start().len();
            return Err(TemplateFault::at(
                Stage::Syntax,
                at,
                end + line.trim_end().len(),
                "text after a `$param` on its line",
            )
            .note("only a comment may follow a `$param` on its line; it becomes the help text"));
        }
    };
    Ok(ParamItem { name: name.to_string(), sort, default, constraint, doc, start, end })
}

fn for_loop(cursor: &mut Cursor<'_>, start: usize) -> Result<ForItem, TemplateFault> {
    let (variable, _) = cursor.name("the loop variable")?;
    cursor.expect("in", "and the range of the loop")?;
    let from = expression::parse(cursor)?;
    cursor.expect(
        "..",
        "between the bounds of the loop (`a .. b` excludes `b`, `a ..= b` includes it)",
    )?;
    let inclusive = cursor.rest().starts_with('=');
    cursor.at += usize::from(inclusive);
    let to = expression::parse(cursor)?;
    let join = if cursor.eat("join") { Some(string(cursor)?) } else { None };
    let end = cursor.at;
    let (body, indent) = body(cursor)?;
    // Copies of a block are indented like the `$for` if that opens its line, else like the body's
    // first line.
    let line = &cursor.text[cursor.text[..start].rfind('\n').map_or(0, |i| i + 1)..start];
    let separator = match indent {
        Some(_) if line.trim().is_empty() => format!("{}\n{line}", join.unwrap_or_default()),
        Some(indent) => format!("{}\n{indent}", join.unwrap_or_default()),
        None => join.unwrap_or_else(|| " ".to_string()),
    };
    Ok(ForItem { variable: variable.to_string(), from, to, inclusive, separator, body, start, end })
}

fn conditional(cursor: &mut Cursor<'_>) -> Result<TemplateItem, TemplateFault> {
    let mut arms = Vec::new();
    loop {
        let condition = expression::parse(cursor)?;
        arms.push((Some(condition), body(cursor)?.0));
        let closed = cursor.at;
        cursor.at += cursor.rest().len() - cursor.rest().trim_start().len();
        if !cursor.eat_directive("else") {
            cursor.at = closed;
            return Ok(TemplateItem::If(arms));
        }
        cursor.skip();
        if cursor.eat_directive("if") {
            continue;
        }
        arms.push((None, body(cursor)?.0));
        return Ok(TemplateItem::If(arms));
    }
}

/// Parses `{ … }`. The second result is the indentation of the first line if the body starts on a
/// line of its own (a block).
fn body(cursor: &mut Cursor<'_>) -> Result<(Body, Option<String>), TemplateFault> {
    cursor.expect("{", "and the body of the directive")?;
    let open = cursor.at - 1;
    let mut items = cursor.nest(|c| items(c, true))?;
    if !cursor.rest().starts_with('}') {
        return Err(TemplateFault::at(Stage::Syntax, open, open + 1, "this `{` is not closed")
            .note("braces in the body of a directive nest; those in comments do not count"));
    }
    let raw = &cursor.text[open + 1..cursor.at];
    cursor.at += 1;
    let text = raw.trim_start();
    let lead = &raw[..raw.len() - text.len()];
    let indent = lead.rfind('\n').map(|i| lead[i + 1..].to_string());
    trim(cursor.text, &mut items);
    Ok((Body { items }, indent))
}

/// Removes white space at both ends; a comment at the end retains its line break, which ends it.
fn trim(text: &str, items: &mut Vec<TemplateItem>) {
    if let Some(TemplateItem::Text(from, to)) = items.first_mut() {
        let piece = &text[*from..*to];
        *from += piece.len() - piece.trim_start().len();
    }
    if let Some(TemplateItem::Text(from, to)) = items.last_mut() {
        let piece = &text[*from..*to];
        let trimmed = piece.trim_end();
        let comment = trimmed[trimmed.rfind('\n').map_or(0, |i| i + 1)..].contains('%');
        let break_end =
            piece[trimmed.len()..].find('\n').map_or(piece.len(), |i| trimmed.len() + i + 1);
        *to = *from + if comment { break_end } else { trimmed.len() };
    }
    items.retain(|i| !matches!(i, TemplateItem::Text(from, to) if from >= to));
}

/// Parses `"text"` with the escapes `\n`, `\t`, `\"`, `\\`.
fn string(cursor: &mut Cursor<'_>) -> Result<String, TemplateFault> {
    cursor.expect("\"", "and the text between two copies")?;
    let open = cursor.at - 1;
    let mut out = String::new();
    let mut chars = cursor.rest().char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => {
                cursor.at += i + 1;
                return Ok(out);
            }
            '\n' => break,
            '\\' => match chars.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, c @ ('"' | '\\'))) => out.push(c),
                _ => {
                    let at = cursor.at + i;
                    return Err(TemplateFault::at(
                        Stage::Syntax,
                        at,
                        at + 1,
                        "unknown escape in a text",
                    )
                    .note("escapes are \\n, \\t, \\\" and \\\\"));
                }
            },
            c => out.push(c),
        }
    }
    Err(TemplateFault::at(Stage::Syntax, open, open + 1, "this text is not closed on its line"))
}
