//! Formatting of specifications, with their parameter layer, and of formulas.
//!
//! In: a text, which need not parse. Out: the same words, signs and comments with other white
//! space. Line breaks stay where they are, so that the author decides what stands on one line;
//! lines longer than the width are broken at their outermost comma or operator. Spaces follow the
//! kinds of neighbouring tokens, and indentation follows sections, brackets and the operators that
//! lines start with:
//!
//! ```text
//! proc P(n: Nat) =
//!     (n < 2) -> a . P(n + 1)      % operands stand two further in than the operators between them
//!   + b . (
//!       c . P(n)
//!     );
//! ```
//!
//! A comment at the end of a line keeps its column if the code leaves room, one at the start of a
//! line stays there, others go with the line below. Where white space may matter (`core_${i}`, what
//! follows the brace of a directive), there is a space if there was white space.
//!
//! Cost: linear in the text, once for each time that a line must be broken again. Invariants: what
//! is not white space is unchanged and in order; formatting twice is formatting once (each line
//! break is decided by the breaks that are there, and breaking ends where no line gets shorter).

use crate::template;
use crate::tokens::{self, Kind, Token, is_reserved};
use mu_base::SourceMap;

mod layout;
mod spaces;
#[cfg(test)]
mod tests;

/// How to format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Characters that a line should have at most.
    pub width: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 120 }
    }
}

/// A token on its way to the result.
struct Piece<'a> {
    token: Token,
    text: &'a str,
    /// Line breaks before it.
    breaks: usize,
    /// Whether a space stands before it if no break does.
    space: bool,
    /// What kind of sign it is.
    role: spaces::Role,
    /// Column in the text as written.
    column: usize,
}

impl Piece<'_> {
    fn is(&self, sign: &str) -> bool {
        self.token.kind == Kind::Sign && self.text == sign
    }
    fn is_comment(&self) -> bool {
        self.token.kind == Kind::Comment
    }
    fn is_word(&self, words: &[&str]) -> bool {
        self.token.kind == Kind::Word && words.contains(&self.text)
    }
    fn width(&self) -> usize {
        self.text.chars().count() + usize::from(self.space)
    }
}

/// Formats a text.
pub fn format(text: &str, options: Options) -> String {
    let tokens = tokens::tokens(text);
    let formula = tokens::is_formula(text, &tokens);
    let mut pieces = pieces(text, tokens);
    spaces::decide(&mut pieces, formula);
    // Each round adds breaks; when none is added, all is decided.
    let mut indents = layout::indents(&pieces, formula);
    while layout::break_long_lines(&mut pieces, &indents, options.width) {
        indents = layout::indents(&pieces, formula);
    }
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut column = 0;
    for (i, piece) in pieces.iter().enumerate() {
        if piece.breaks > 0 || i == 0 {
            (0..if i == 0 { 0 } else { piece.breaks }).for_each(|_| out.push_str(end));
            column = indents[i];
            out.extend(std::iter::repeat_n(' ', column));
        } else {
            let spaces = if piece.is_comment() {
                piece.column.saturating_sub(column).max(1)
            } else {
                usize::from(piece.space)
            };
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        }
        out.push_str(piece.text);
        column += piece.text.chars().count();
    }
    if !pieces.is_empty() {
        out.push_str(end);
    }
    out
}

fn pieces(text: &str, tokens: Vec<Token>) -> Vec<Piece<'_>> {
    let (mut end, mut line) = (0, 0);
    let mut pieces = Vec::with_capacity(tokens.len());
    for token in tokens {
        let gap = &text[end..token.range.start];
        let bytes = gap.as_bytes();
        let is_break =
            |i: usize| bytes[i] == b'\n' || bytes[i] == b'\r' && bytes.get(i + 1) != Some(&b'\n');
        let breaks = (0..bytes.len()).filter(|i| is_break(*i)).count();
        if let Some(last) = (0..bytes.len()).rfind(|i| is_break(*i)) {
            line = end + last + 1;
        }
        let column = text[line..token.range.start].chars().count();
        end = token.range.end;
        pieces.push(Piece {
            text: token.text(text),
            // Two blank lines are enough.
            breaks: breaks.min(3),
            space: !gap.is_empty(),
            role: spaces::Role::Other,
            column,
            token,
        });
    }
    pieces
}

/// Whether two texts mean the same as far as can be seen without a type checker: they differ in
/// white space only, and if one is expanded and parsed, then so is the other, to the same tree.
pub fn is_same(before: &str, after: &str) -> bool {
    let dense = |text: &str| {
        text.chars().filter(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')).collect::<String>()
    };
    if dense(before) != dense(after) {
        return false;
    }
    let formula = tokens::is_formula(before, &tokens::tokens(before));
    let mut sources = SourceMap::new();
    if formula {
        let source = sources.add("", "");
        return match crate::parse_formula(source, before) {
            Ok(tree) => crate::parse_formula(source, after).is_ok_and(|other| other == tree),
            Err(_) => true,
        };
    }
    let mut tree = |text: &str| {
        let expanded = template::expand("", text, &[], &mut sources).ok()?;
        crate::parse_specification(expanded.source, &expanded.text).ok()
    };
    match tree(before) {
        Some(first) => tree(after).is_some_and(|other| other == first),
        None => true,
    }
}

/// Whether a token ends an operand, so that an operator after it is no prefix.
fn ends_operand(piece: &Piece) -> bool {
    match piece.token.kind {
        Kind::Word => {
            !is_reserved(piece.text)
                || tokens::SORTS.contains(&piece.text)
                || matches!(piece.text, "true" | "false" | "end")
        }
        Kind::Number | Kind::Value => true,
        Kind::Sign => match piece.role {
            spaces::Role::ModalityClose => false,
            spaces::Role::Postfix => true,
            _ => matches!(piece.text, ")" | "]" | "}" | "{:}"),
        },
        _ => false,
    }
}
