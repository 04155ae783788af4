//! Formatter of Murphi models (`fmt`).
//!
//! In: a text that parses. Out: the same tokens and comments with other white space. Line breaks
//! are preserved, so that the author decides the contents of a line; indentation follows blocks,
//! sections and brackets, two columns each; at most two blank lines remain. Spaces follow the kinds
//! of neighbouring tokens, except around `..`, where the author decides.
//!
//! ```text
//! rule "send"
//!   !full
//!   & state = Idle
//! ==>
//! var
//!   m: Message;
//! begin
//!   m.kind := Request;
//!   if urgent then
//!     put "urgent";
//!   end;
//! end;
//! ```
//!
//! A comment on a line of its own follows the line below, one behind code stays in its column if
//! the code leaves room. Cost: linear. Invariants: tokens and comments are unchanged and in order
//! ([`is_same`]); formatting is idempotent.

use crate::lexer::{Key, Piece, Tok, piece};

/// Token or comment with the white space before it.
struct Part<'a> {
    /// `None` for a comment.
    tok: Option<Tok>,
    text: &'a str,
    /// Number of line breaks before it.
    breaks: usize,
    /// True if white space precedes it.
    space: bool,
    /// Column in the source.
    column: usize,
}

impl Part<'_> {
    fn is(&self, sign: &str) -> bool {
        matches!(self.tok, Some(Tok::Sign(s)) if s == sign)
    }
    fn key(&self) -> Option<Key> {
        match self.tok {
            Some(Tok::Key(key)) => Some(key),
            _ => None,
        }
    }
    fn is_word(&self, word: &str) -> bool {
        self.tok == Some(Tok::Name) && self.text.eq_ignore_ascii_case(word)
    }
}

/// Returns the tokens and comments of a text. `None` if it has an invalid character.
fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    let mut out = Vec::new();
    let (mut at, mut breaks, mut space, mut line) = (0, 0, false, 0);
    if text.starts_with('\u{feff}') {
        (at, line) = (3, 3);
    }
    while let Some(first) = text[at..].chars().next() {
        if first.is_ascii_whitespace() || first == '\u{b}' {
            at += 1;
            space = true;
            if first == '\n' {
                breaks += 1;
                line = at;
            }
            continue;
        }
        let (found, length) = piece(&text[at..]).ok()?;
        let tok = match found {
            Piece::Token(tok) => Some(tok),
            Piece::Comment => None,
        };
        let column = text[line..at].chars().count();
        let written = text[at..at + length].trim_end();
        out.push(Part { tok, text: written, breaks, space, column });
        at += length;
        (breaks, space) = (0, false);
        // A comment or text of several lines moves the start of the line.
        if let Some(last) = text[at - length..at].rfind('\n') {
            line = at - length + last + 1;
        }
    }
    Some(out)
}

/// True if two texts have the same tokens and comments.
pub fn is_same(before: &str, after: &str) -> bool {
    let (Some(before), Some(after)) = (parts(before), parts(after)) else { return false };
    before.len() == after.len()
        && before.iter().zip(&after).all(|(a, b)| a.tok == b.tok && a.text == b.text)
}

/// Kind of an open construct.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Block {
    /// `const`, `type`, `var`.
    Section,
    /// Construct that `end` closes.
    Body,
    /// `ruleset`, `choose`, or `alias` around rules.
    Rules,
    /// `switch`.
    Switch,
    /// `case` or `else` in a `switch`.
    Case,
    /// `rule`, `function` and others up to `begin`, `==>` or the first statement.
    Header,
    /// `invariant` and others.
    Property,
    /// Bracket.
    Bracket,
}

#[derive(Clone, Copy)]
struct Open {
    block: Block,
    /// Indentation of the line on which it was opened.
    base: usize,
    /// Indentation of its contents.
    inner: usize,
}

#[derive(Clone)]
struct Layout {
    open: Vec<Open>,
    /// True if the next token begins a statement, declaration or rule.
    fresh: bool,
    /// Number of `?` without their `:`, for each bracket.
    conditionals: Vec<usize>,
}

impl Layout {
    fn top(&self) -> Option<Block> {
        self.open.last().map(|o| o.block)
    }
    fn base(&self) -> usize {
        self.open.last().map_or(0, |o| o.base)
    }
    /// Removes constructs that end without a word of their own.
    fn close_implicit(&mut self, which: &[Block]) {
        while self.top().is_some_and(|b| which.contains(&b)) {
            self.open.pop();
        }
    }
    /// True if this token begins a rule or property here, and not a statement.
    fn begins_item(&self, part: &Part) -> bool {
        let at_items = self
            .open
            .iter()
            .all(|o| matches!(o.block, Block::Section | Block::Property | Block::Rules));
        match part.key() {
            Some(Key::Rule | Key::Ruleset | Key::Startstate | Key::Function | Key::Procedure) => {
                true
            }
            Some(Key::Invariant | Key::Assert | Key::Alias) => at_items,
            _ => false,
        }
    }
    /// Returns the indentation of a line that starts with this token, after closing what it ends.
    fn indent(&mut self, part: &Part) -> usize {
        if self.begins_item(part) {
            self.close_implicit(&[Block::Section, Block::Property]);
            return self.content();
        }
        match part.key() {
            Some(key) if key.text().starts_with("end") => {
                self.close_implicit(&[Block::Section, Block::Property, Block::Case]);
                return self.base();
            }
            Some(Key::Else | Key::Elsif | Key::Case) => {
                self.close_implicit(&[Block::Case]);
                let inner = if self.top() == Some(Block::Switch) { 2 } else { 0 };
                return self.base() + inner;
            }
            Some(Key::Begin | Key::Do | Key::Then) => {
                self.close_implicit(&[Block::Section]);
                return self.base();
            }
            Some(Key::Const | Key::Type) => {
                self.close_implicit(&[Block::Section, Block::Property]);
                return self.base();
            }
            Some(Key::Var) if self.top() != Some(Block::Bracket) => {
                self.close_implicit(&[Block::Section, Block::Property]);
                return self.base();
            }
            _ => {}
        }
        if part.is_word("endchoose") {
            self.close_implicit(&[Block::Section, Block::Property]);
            return self.base();
        }
        if part.is("==>") || matches!(part.tok, Some(Tok::Sign(")" | "]" | "}"))) {
            return self.base();
        }
        let continued = !self.fresh
            && !matches!(self.top(), Some(Block::Header | Block::Property | Block::Bracket));
        self.content() + if continued { 2 } else { 0 }
    }
    /// Returns the indentation of the contents of the innermost construct.
    fn content(&self) -> usize {
        self.open.last().map_or(0, |o| o.inner)
    }
    /// Updates the open constructs behind a token. `line` is the indentation of its line.
    fn advance(&mut self, part: &Part, line: usize, next: Option<&Part>) {
        let fresh = std::mem::replace(&mut self.fresh, false);
        if self.begins_item(part) {
            self.close_implicit(&[Block::Section, Block::Property]);
        }
        let open = |layout: &mut Layout, block| {
            layout.open.push(Open { block, base: line, inner: line + 2 })
        };
        match part.tok {
            Some(Tok::Sign(sign)) => self.advance_sign(sign, line),
            Some(Tok::Key(key)) => match key {
                Key::Ruleset => open(self, Block::Rules),
                Key::Alias => {
                    let rules = self.is_at_items();
                    open(self, if rules { Block::Rules } else { Block::Body });
                    self.fresh = true;
                }
                Key::If | Key::For | Key::While | Key::Forall | Key::Exists => {
                    open(self, Block::Body)
                }
                Key::Record => {
                    open(self, Block::Body);
                    self.fresh = true;
                }
                Key::Switch => open(self, Block::Switch),
                Key::Rule | Key::Startstate | Key::Function | Key::Procedure => {
                    open(self, Block::Header);
                }
                Key::Const | Key::Type | Key::Var if self.top() == Some(Block::Bracket) => {}
                Key::Const | Key::Type | Key::Var => {
                    self.close_implicit(&[Block::Section, Block::Property]);
                    open(self, Block::Section);
                    self.fresh = true;
                }
                Key::Begin => {
                    self.close_implicit(&[Block::Section]);
                    self.enter_body();
                }
                Key::Invariant | Key::Assert if fresh && self.is_at_items() => {
                    open(self, Block::Property);
                }
                Key::Then | Key::Do => self.fresh = true,
                Key::Else if self.top() != Some(Block::Switch) && !self.in_switch() => {
                    self.fresh = true;
                }
                Key::Case | Key::Else => {
                    self.close_implicit(&[Block::Case]);
                    let base = self.base() + 2;
                    self.open.push(Open { block: Block::Case, base, inner: base + 2 });
                    self.fresh = key == Key::Else;
                }
                _ if key.text().starts_with("end") => {
                    self.close_implicit(&[Block::Section, Block::Property, Block::Case]);
                    self.open.pop();
                    // A rule may follow without a semicolon, an operator in an expression may too.
                    self.fresh =
                        next.is_some_and(|n| n.tok != Some(Tok::Sign(";"))) && self.is_at_items();
                }
                _ => {}
            },
            Some(Tok::Name) => {
                let claim = ["assume", "cover", "liveness"].iter().any(|w| part.is_word(w));
                if part.is_word("choose") && fresh && self.is_at_items() {
                    open(self, Block::Rules);
                } else if part.is_word("endchoose") {
                    self.close_implicit(&[Block::Section, Block::Property]);
                    self.open.pop();
                } else if claim && fresh && self.is_at_items() {
                    open(self, Block::Property);
                }
            }
            _ => {}
        }
    }
    fn advance_sign(&mut self, sign: &str, line: usize) {
        match sign {
            "(" | "[" | "{" => {
                // Parameters and arguments stand further in than statements.
                let inner = line + if sign == "(" { 4 } else { 2 };
                self.open.push(Open { block: Block::Bracket, base: line, inner });
                self.conditionals.push(0);
            }
            ")" | "]" | "}" => {
                self.open.pop();
                if self.conditionals.len() > 1 {
                    self.conditionals.pop();
                }
            }
            ";" => {
                self.close_implicit(&[Block::Property]);
                // A head without `begin` ends with its first statement.
                self.enter_body();
                if let Some(last) = self.conditionals.last_mut() {
                    *last = 0;
                }
                self.fresh = true;
            }
            "==>" => self.enter_body(),
            ":" if self.top() == Some(Block::Case) => self.fresh = true,
            _ => {}
        }
    }
    /// Turns the head of a rule or function into its body.
    fn enter_body(&mut self) {
        self.fresh = true;
        if let Some(open) = self.open.last_mut().filter(|o| o.block == Block::Header) {
            open.block = Block::Body;
        }
    }
    fn in_switch(&self) -> bool {
        self.top() == Some(Block::Case)
    }
    /// True if rules and properties are expected here, and no statements.
    fn is_at_items(&self) -> bool {
        self.open.iter().all(|o| matches!(o.block, Block::Section | Block::Rules))
    }
}

/// True if this token is an operator with one operand.
fn is_prefix(part: &Part, before: Option<&Part>) -> bool {
    let operand = before.is_some_and(|b| match b.tok {
        Some(Tok::Name | Tok::Number | Tok::Text | Tok::Sign(")" | "]")) => true,
        Some(Tok::Key(key)) => key.text().starts_with("end"),
        _ => false,
    });
    match part.tok {
        Some(Tok::Sign("!" | "~")) => true,
        Some(Tok::Sign("+" | "-")) => !operand,
        _ => false,
    }
}

/// True if there is a space between two tokens of a line. `prefix`: the first one is an operator
/// with one operand; `conditional`: the second one is the colon of `?:`.
fn is_spaced(before: &Part, part: &Part, prefix: bool, conditional: bool) -> bool {
    let calls = matches!(before.key(), Some(Key::Isundefined | Key::Ismember | Key::Scalarset));
    match (before.tok, part.tok) {
        (None, _) | (_, None) => true,
        (_, Some(Tok::Sign(";" | "," | ")" | "]" | "}" | "."))) => false,
        (Some(Tok::Sign("(" | "[" | "{" | ".")), _) => false,
        (Some(Tok::Sign("..")), _) | (_, Some(Tok::Sign(".." | "{"))) => part.space,
        (_, Some(Tok::Sign(":"))) => conditional,
        // Two signs without a space would begin a comment.
        _ if prefix => before.is("-") && part.is("-"),
        (Some(tok), Some(Tok::Sign("("))) => tok != Tok::Name && !calls,
        (Some(Tok::Name | Tok::Sign("]" | ")")), Some(Tok::Sign("["))) => false,
        (_, Some(Tok::Sign("["))) => part.space,
        _ => true,
    }
}

/// Formats a model. A text with an invalid character stays as it is.
pub fn format(text: &str) -> String {
    let Some(parts) = parts(text) else { return text.to_string() };
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut layout = Layout { open: Vec::new(), fresh: true, conditionals: vec![0] };
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let (mut column, mut line, mut prefix) = (0, 0, false);
    for (i, part) in parts.iter().enumerate() {
        let before = i.checked_sub(1).map(|b| &parts[b]);
        let conditional = part.is(":")
            && layout.conditionals.last_mut().is_some_and(|n| {
                let open = *n > 0;
                *n -= usize::from(open);
                open
            });
        if part.is("?")
            && let Some(open) = layout.conditionals.last_mut()
        {
            *open += 1;
        }
        // A comment to the end of the line needs a line break behind it.
        let broken = part.breaks > 0 || i == 0;
        if broken {
            (0..if i == 0 { 0 } else { part.breaks.min(3) }).for_each(|_| out.push_str(end));
            line = match part.tok {
                Some(_) => layout.indent(part),
                None => comment_indent(&layout, &parts[i..]),
            };
            column = line;
            out.extend(std::iter::repeat_n(' ', column));
        } else if let Some(before) = before {
            let spaces = match part.tok {
                None => part.column.saturating_sub(column).max(1),
                Some(_) => usize::from(is_spaced(before, part, prefix, conditional)),
            };
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        }
        out.push_str(part.text);
        match part.text.rfind('\n') {
            Some(last) => column = part.text[last + 1..].chars().count(),
            None => column += part.text.chars().count(),
        }
        if part.tok.is_some() {
            let operand = parts[..i].iter().rev().find(|p| p.tok.is_some());
            prefix = is_prefix(part, operand);
            let next = parts[i + 1..].iter().find(|p| p.tok.is_some());
            layout.advance(part, line, next);
        }
    }
    if !parts.is_empty() {
        out.push_str(end);
    }
    out
}

/// Returns the indentation of the first of these parts, a comment: that of the next token, or of
/// the contents of a construct that the token ends. A comment at the start of a line stays there if
/// the next token does not.
fn comment_indent(layout: &Layout, parts: &[Part]) -> usize {
    let Some(next) = parts.iter().find(|p| p.tok.is_some()) else { return 0 };
    if parts[0].column == 0 && next.column > 0 {
        return 0;
    }
    let mut layout = layout.clone();
    let indent = layout.indent(next);
    let ends = next.key().is_some_and(|k| k.text().starts_with("end"))
        || next.is_word("endchoose")
        || matches!(next.key(), Some(Key::Else | Key::Elsif))
            && layout.top() != Some(Block::Switch);
    if ends { layout.content() } else { indent }
}
