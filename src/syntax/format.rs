//! Formatting of specifications, with their parameter layer, and of formulas.
//!
//! In: a text, which need not parse. Out: the same tokens and comments with other white space. Line
//! breaks are preserved, so that the author decides the contents of a line; lines longer than the
//! width are broken at their outermost comma or operator. Spaces follow the kinds of neighbouring
//! tokens, and indentation follows sections, brackets and the operators that lines start with:
//!
//! ```text
//! proc P(n: Nat) =
//!     (n < 2) -> a . P(n + 1)      % operands are indented two columns more than their operators
//!   + b . (
//!       c . P(n)
//!     );
//! ```
//!
//! A comment after code stays in its column if the code leaves room. A comment in the first column
//! stays there; one with a line of its own gets the indentation of the line below. If white space
//! may matter (`core_${i}`, after the brace of a directive), there is a space if there was white
//! space.
//!
//! Cost: linear in the text, once for each round of line breaking. Invariants: tokens are unchanged
//! and in order. Formatting is idempotent: existing line breaks are preserved, and rounds end when
//! no break is added.

use crate::template;
use crate::tokens::{self, Token, TokenKind, is_reserved};
use mu_base::SourceMap;

mod layout;
mod spaces;

/// Formatting options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatOptions {
    /// Maximum width of a line in characters, if possible.
    pub width: usize,
}

impl Default for FormatOptions {
    fn default() -> Self {
        Self { width: 120 }
    }
}

/// Token with its layout.
struct LayoutToken<'a> {
    token: Token,
    text: &'a str,
    /// Number of line breaks before it.
    breaks: usize,
    /// True if a space precedes it on its line.
    space: bool,
    /// Syntactic role.
    role: spaces::SymbolRole,
    /// Column in the source.
    column: usize,
}

impl LayoutToken<'_> {
    fn is(&self, sign: &str) -> bool {
        self.token.kind == TokenKind::Sign && self.text == sign
    }
    fn is_comment(&self) -> bool {
        self.token.kind == TokenKind::Comment
    }
    fn is_word(&self, words: &[&str]) -> bool {
        self.token.kind == TokenKind::Word && words.contains(&self.text)
    }
    fn width(&self) -> usize {
        self.text.chars().count() + usize::from(self.space)
    }
}

/// Formats a specification or a formula; the tokens decide which of both it is.
pub fn format(text: &str, options: FormatOptions) -> String {
    let tokens = tokens::tokens(text);
    let formula = tokens::is_formula(text, &tokens);
    let mut pieces = pieces(text, tokens);
    spaces::decide(&mut pieces, formula);
    // Each round adds breaks; the process ends when a round adds none.
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

/// Returns the tokens with the line breaks and spaces before them.
fn pieces(text: &str, tokens: Vec<Token>) -> Vec<LayoutToken<'_>> {
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
        pieces.push(LayoutToken {
            text: token.text(text),
            // At most two blank lines remain.
            breaks: breaks.min(3),
            space: !gap.is_empty(),
            role: spaces::SymbolRole::Other,
            column,
            token,
        });
    }
    pieces
}

/// True if two texts are equivalent without type checking: they differ in white space only, and if
/// one expands and parses, the other expands and parses to the same tree.
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

/// True if a token ends an operand, so that a following operator is not a prefix.
fn ends_operand(piece: &LayoutToken) -> bool {
    match piece.token.kind {
        TokenKind::Word => {
            !is_reserved(piece.text)
                || tokens::SORTS.contains(&piece.text)
                || matches!(piece.text, "true" | "false" | "end")
        }
        TokenKind::Number | TokenKind::Value => true,
        TokenKind::Sign => match piece.role {
            spaces::SymbolRole::ModalityClose => false,
            spaces::SymbolRole::Postfix => true,
            _ => matches!(piece.text, ")" | "]" | "}" | "{:}"),
        },
        _ => false,
    }
}
