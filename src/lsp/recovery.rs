//! Error recovery: removal of the declaration around an error, so that the rest of the text parses.
//!
//! In: a text and the offset of an error. Out: the same text with one declaration replaced by
//! spaces, so that all other places are unchanged, and the names that it may have declared, about
//! which later errors are suppressed. Semicolons and section keywords always end declarations,
//! because no expression contains them; the body of a directive is never split.

use mu_syntax::tokens::{SECTIONS, Token, TokenKind, is_reserved, tokens};
use std::collections::HashSet;
use std::ops::Range;

/// The removed parts.
#[derive(Default)]
pub(crate) struct RemovedDeclarations {
    /// Names that may have been declared there; errors about them are suppressed.
    pub(crate) names: HashSet<String>,
    /// True if the initial process was removed.
    pub(crate) init: bool,
}

/// Tokens without comments, with the matching braces of directives.
struct Structure<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    partner: Vec<Option<usize>>,
    /// True for a token from the keyword of a directive to its brace.
    header: Vec<bool>,
}

impl<'a> Structure<'a> {
    fn new(text: &'a str) -> Self {
        let tokens: Vec<Token> =
            tokens(text).into_iter().filter(|t| t.kind != TokenKind::Comment).collect();
        let mut partner = vec![None; tokens.len()];
        let mut header = vec![false; tokens.len()];
        let (mut open, mut inside): (Vec<(usize, bool)>, bool) = (Vec::new(), false);
        for (i, token) in tokens.iter().enumerate() {
            inside |= token.kind == TokenKind::Directive && token.text(text) != "$param";
            header[i] = inside;
            if token.is_sign(text, "{") {
                open.push((i, std::mem::take(&mut inside)));
            } else if token.is_sign(text, "}")
                && let Some((at, true)) = open.pop()
            {
                (partner[at], partner[i]) = (Some(i), Some(at));
            } else if inside && (token.is_sign(text, ";") || SECTIONS.contains(&token.text(text))) {
                // The header is incomplete.
                inside = false;
                header[i] = false;
            }
        }
        Self { text, tokens, partner, header }
    }
    fn is(&self, i: usize, sign: &str) -> bool {
        self.tokens[i].is_sign(self.text, sign)
    }
    fn word(&self, i: usize) -> &'a str {
        self.tokens[i].text(self.text)
    }
    fn is_section(&self, i: usize) -> bool {
        self.tokens[i].kind == TokenKind::Word && SECTIONS.contains(&self.word(i))
    }
    /// True if a pair of braces contains declarations.
    fn holds_declarations(&self, open: usize, close: usize) -> bool {
        (open..close).any(|i| self.is(i, ";"))
    }
    /// Returns the token at an offset, otherwise the next one, otherwise the last one.
    fn at(&self, offset: usize) -> Option<usize> {
        let i = self.tokens.partition_point(|t| t.range.end <= offset);
        (!self.tokens.is_empty()).then(|| i.min(self.tokens.len() - 1))
    }

    /// Returns the declaration around a token.
    fn declaration(&self, at: usize) -> Range<usize> {
        // An error at a section keyword belongs to the declaration before it.
        let at = if self.is_section(at) && at > 0 { at - 1 } else { at };
        let mut from = at;
        while from > 0 {
            if self.word(from) == "$param" {
                break;
            }
            let left = from - 1;
            if self.is(left, ";")
                || self.is_section(left)
                || self.is(left, "{") && self.partner[left].is_some()
            {
                break;
            }
            match self.partner[left].filter(|p| *p < left) {
                Some(open) if self.holds_declarations(open, left) => break,
                Some(open) => from = open,
                None => from = left,
            }
        }
        let mut to = at;
        while to < self.tokens.len() {
            if self.is(to, ";") {
                to += 1;
                break;
            }
            if to > at && self.is_section(to)
                || self.is(to, "}") && self.partner[to].is_some_and(|p| p < from)
            {
                break;
            }
            match self.partner[to].filter(|p| *p > to) {
                Some(close) if self.holds_declarations(to, close) => break,
                Some(close) => to = close + 1,
                None => to += 1,
            }
        }
        from..to.max(from)
    }

    /// Returns the keyword of the section around a token.
    fn section(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|i| self.is_section(*i))
    }
}

/// Replaces the declaration around an offset by spaces. Returns true if the text changed.
pub(crate) fn leave_out(text: &mut String, offset: usize, lost: &mut RemovedDeclarations) -> bool {
    let structure = Structure::new(text);
    let Some(at) = structure.at(offset) else { return false };
    let mut out: Vec<usize> = Vec::new();
    if structure.header[at]
        && structure.partner.iter().any(Option::is_some)
        && directive(&structure, at, &mut out)
    {
        // Its body stays.
    } else {
        let range = structure.declaration(at);
        declaration(&structure, range, lost, &mut out);
    }
    if out.is_empty() {
        out.push(at);
    }
    let places: Vec<Range<usize>> =
        out.iter().map(|i| structure.tokens[*i].range.clone()).collect();
    for place in &places {
        let spaces: String = text[place.clone()]
            .chars()
            .flat_map(|c| std::iter::repeat_n(' ', c.len_utf8()))
            .collect();
        text.replace_range(place.clone(), &spaces);
    }
    !places.is_empty()
}

/// Collects the braces and headers of a directive and of its other branches. Returns true if there
/// is such a directive.
fn directive(structure: &Structure, at: usize, out: &mut Vec<usize>) -> bool {
    let count = structure.tokens.len();
    let Some(mut start) =
        (0..=at).rev().find(|i| structure.tokens[*i].kind == TokenKind::Directive)
    else {
        return false;
    };
    loop {
        let Some(open) = (start..count).find(|i| structure.is(*i, "{")) else {
            return !out.is_empty();
        };
        let Some(close) = structure.partner[open] else { return !out.is_empty() };
        out.extend((start..=open).chain([close]));
        if close + 1 < count && structure.word(close + 1) == "$else" {
            start = close + 1;
        } else {
            return true;
        }
    }
}

/// Collects a declaration, and the keyword of its section if there is no other declaration.
fn declaration(
    structure: &Structure,
    range: Range<usize>,
    lost: &mut RemovedDeclarations,
    out: &mut Vec<usize>,
) {
    let section = structure.section(range.start);
    let word = section.map_or("", |s| structure.word(s));
    lost.init |= word == "init";
    for i in range.clone() {
        if word != "sort" && (structure.is(i, ":") || structure.is(i, "=")) {
            break;
        }
        if structure.tokens[i].kind == TokenKind::Word && !is_reserved(structure.word(i)) {
            lost.names.insert(structure.word(i).to_string());
        }
    }
    out.extend(range.clone());
    let last = range.end >= structure.tokens.len()
        || structure.is_section(range.end)
        || structure.partner[range.end].is_some();
    if let Some(mut at) = section.filter(|s| s + 1 == range.start && last) {
        out.push(at);
        // Variables of missing equations.
        if word == "eqn"
            && let Some(before) = structure.section(at).filter(|b| structure.word(*b) == "var")
        {
            at = at.max(before);
            out.extend(before..at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text without the declaration around the mark `^`.
    fn remove_marked(marked: &str) -> (String, Vec<String>) {
        let offset = marked.find('^').unwrap();
        let mut text = marked.replace('^', "");
        let mut lost = RemovedDeclarations::default();
        leave_out(&mut text, offset, &mut lost);
        let mut names: Vec<String> = lost.names.into_iter().collect();
        names.sort();
        (text.split_whitespace().collect::<Vec<_>>().join(" "), names)
    }

    #[test]
    fn one_declaration() {
        for (text, rest, names) in [
            ("map f: Nat; g: ^; h: Bool;", "map f: Nat; h: Bool;", "g"),
            ("map f: ^; init a;", "init a;", "f"),
            ("act a; proc P = a + ^init P;", "act a; init P;", "P"),
            ("var x: Nat; eqn f(x) = ^; init a;", "init a;", "f x"),
            ("eqn f(0) = 1; f(1) = (^2; f(2) = 3;", "eqn f(0) = 1; f(2) = 3;", "f"),
            ("$if n > 1 { act a: ^; } init a;", "$if n > 1 { } init a;", "a"),
            (
                "proc P = a $if n > 1 { + ^ } . P; Q = a;",
                "proc P = a $if n > 1 { } . P; Q = a;",
                "",
            ),
            ("$if n >^ { act a; } $else { act b; } init a;", "act a; act b; init a;", ""),
            (
                "sort S = struct c_$for i in 0 .. ^ { x }; init a;",
                "sort S = struct c_ x ; init a;",
                "",
            ),
            ("^", "", ""),
        ] {
            let (found, lost) = remove_marked(text);
            assert_eq!((found.as_str(), lost.join(" ")), (rest, names.to_string()), "{text}");
        }
    }
}
