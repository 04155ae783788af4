//! Indentation, and breaks of long lines.
//!
//! The innermost open group determines the position of a line: a section, a declaration, a bracket,
//! the body of a directive. If the first line of a group is an operand and other lines start with
//! operators, operands are indented further, by the width of the operators.

use super::LayoutToken;
use super::spaces::SymbolRole;
use crate::tokens::{SECTIONS, TokenKind};

/// Indentation of one level.
const STEP: usize = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GroupKind {
    Bracket,
    /// A body of a directive; contains the columns of the section and of the declarations around
    /// it, if it contains declarations.
    Block(Option<(usize, usize)>),
    Declaration,
    /// A formula without sections.
    Formula,
}

struct LayoutGroup {
    kind: GroupKind,
    /// Piece that opened it.
    id: usize,
    /// Column of its closing bracket if that starts a line.
    close: usize,
    /// Column of its lines.
    content: usize,
}

struct PrintLayout<'p, 'a> {
    pieces: &'p [LayoutToken<'a>],
    formula: bool,
    stack: Vec<LayoutGroup>,
    /// Column of sections.
    base: usize,
    column: usize,
    /// Keyword of the section, and true if a declaration may follow on its line.
    section: (&'a str, bool),
    /// True between the keyword of a directive and its brace.
    header: bool,
    /// Width of the operators at the start of a group's lines, by the piece that opened the group.
    hang: Vec<usize>,
    /// First piece of the first line within a group.
    first: Vec<Option<usize>>,
}

/// Returns the width of an operator that indents operands further.
fn hangs(piece: &LayoutToken) -> Option<usize> {
    (piece.token.kind == TokenKind::Sign
        && piece.role == SymbolRole::Other
        && matches!(piece.text, "+" | "||" | "|" | "&&" | "||_" | "<<"))
    .then(|| piece.text.len() + 1)
}

/// Returns the indentation of each piece that starts a line; zero for others.
pub(super) fn indents(pieces: &[LayoutToken], formula: bool) -> Vec<usize> {
    let run = |hang| {
        let mut layout = PrintLayout {
            pieces,
            formula,
            stack: Vec::new(),
            base: 0,
            column: 0,
            section: ("", false),
            header: false,
            hang,
            first: vec![None; pieces.len()],
        };
        let indents = layout.run();
        (indents, layout.hang)
    };
    // The first run finds the operators at the start of lines, the second computes the positions.
    let (_, hang) = run(vec![0; pieces.len()]);
    let (mut indents, _) = run(hang);
    // Comments have the position of the line below, within the open groups.
    let mut below: Option<(usize, bool)> = None;
    for i in (0..pieces.len()).rev() {
        if i > 0 && pieces[i].breaks == 0 {
            continue;
        }
        if pieces[i].is_comment() {
            let place = below.map_or(0, |(indent, closes)| indent + if closes { STEP } else { 0 });
            indents[i] = if pieces[i].column == 0 { 0 } else { place };
        } else {
            below = Some((indents[i], is_close(&pieces[i])));
        }
    }
    indents
}

fn is_close(piece: &LayoutToken) -> bool {
    match piece.role {
        SymbolRole::ModalityClose | SymbolRole::DirectiveClose => true,
        _ => piece.token.kind == TokenKind::Sign && matches!(piece.text, ")" | "]" | "}"),
    }
}

impl PrintLayout<'_, '_> {
    fn run(&mut self) -> Vec<usize> {
        let pieces = self.pieces;
        let mut indents = vec![0; pieces.len()];
        // Position of the line, and the reference column of groups opened on it.
        let (mut line, mut operand) = (0, 0);
        for (i, piece) in pieces.iter().enumerate() {
            if piece.is_comment() {
                continue;
            }
            // A comment of several lines may intervene.
            if i == 0 || piece.breaks > 0 {
                line = self.indent(i);
                indents[i] = line;
                operand = line + hangs(piece).unwrap_or(0);
            }
            self.step(i, line, operand);
        }
        indents
    }

    fn between_declarations(&self) -> bool {
        self.stack.last().is_none_or(|g| matches!(g.kind, GroupKind::Block(Some(_))))
            && !(self.formula && self.section.0.is_empty())
    }

    /// Returns the column of a line that starts with this piece.
    fn indent(&mut self, i: usize) -> usize {
        let piece = &self.pieces[i];
        if is_close(piece) {
            let more =
                self.pieces[i + 1..].iter().take_while(|p| is_close(p) && p.breaks == 0).count();
            let mut brackets = self
                .stack
                .iter()
                .rev()
                .filter(|g| matches!(g.kind, GroupKind::Bracket | GroupKind::Block(_)));
            return brackets.nth(more).or(self.stack.first()).map_or(0, |g| g.close);
        }
        if self.between_declarations() {
            return match piece.token.kind {
                TokenKind::Word if SECTIONS.contains(&piece.text) => self.base,
                TokenKind::Directive if self.holds_sections(i) => self.base,
                _ => self.column,
            };
        }
        let Some(group) = self.stack.last() else { return 0 };
        if group.kind == GroupKind::Formula {
            let before = self.pieces[..i].iter().rfind(|p| !p.is_comment());
            let continues = before.is_some_and(|p| {
                p.token.kind == TokenKind::Sign && matches!(p.text, "&&" | "||" | "=>")
            });
            return if continues || hangs(piece).is_some() || piece.is("=>") {
                0
            } else {
                group.content
            };
        }
        let first = self.first[group.id].get_or_insert(i);
        let operand_first = hangs(&self.pieces[*first]).is_none();
        match hangs(piece) {
            Some(width) if operand_first => {
                self.hang[group.id] = width.max(self.hang[group.id]);
                group.content
            }
            Some(_) => group.content,
            None if piece.token.kind == TokenKind::Directive => group.content,
            None => group.content + self.hang[group.id],
        }
    }

    /// True if the body of a directive starts with a section, or the directive is a parameter.
    fn holds_sections(&self, i: usize) -> bool {
        if self.pieces[i].text == "$param" {
            return true;
        }
        let brace = self.pieces[i..].iter().position(|p| p.role == SymbolRole::DirectiveOpen);
        let first = brace.and_then(|b| self.pieces[i + b + 1..].iter().find(|p| !p.is_comment()));
        first.is_some_and(|p| p.is_word(&SECTIONS))
    }

    fn push(&mut self, kind: GroupKind, id: usize, close: usize, content: usize) {
        self.stack.push(LayoutGroup { kind, id, close, content });
    }

    /// Processes a piece on a line.
    fn step(&mut self, i: usize, line: usize, operand: usize) {
        let pieces = self.pieces;
        let piece = &pieces[i];
        let between = self.between_declarations();
        match piece.role {
            SymbolRole::DirectiveOpen => {
                self.header = false;
                let around = between.then_some((self.base, self.column));
                self.push(GroupKind::Block(around), i, line, line + STEP);
                if between {
                    (self.base, self.column) = (line + STEP, line + STEP);
                }
                return;
            }
            _ if self.header => return,
            _ if is_close(piece) => return self.close(),
            _ => {}
        }
        if piece.token.kind == TokenKind::Directive && piece.text != "$param" {
            self.header = true;
            return;
        }
        if between && piece.is_word(&SECTIONS) {
            let alone =
                pieces[i + 1..].iter().find(|p| !p.is_comment()).is_none_or(|p| p.breaks > 0);
            self.column = self.base + if alone { STEP } else { piece.text.len() + 1 };
            self.section = (piece.text, !alone);
            return;
        }
        if between && !piece.is(";") {
            let body = matches!(self.section, ("proc" | "init" | "form", true));
            let content =
                if body || piece.text == "$param" { self.base } else { self.column } + STEP;
            self.push(GroupKind::Declaration, i, line, content);
        } else if self.stack.is_empty() {
            self.push(GroupKind::Formula, i, 0, STEP);
        }
        if piece.is(";") {
            if self.stack.last().is_some_and(|g| g.kind == GroupKind::Declaration) {
                self.stack.pop();
            }
        } else if piece.role == SymbolRole::ModalityOpen
            || piece.token.kind == TokenKind::Sign && matches!(piece.text, "(" | "[" | "{")
        {
            self.push(GroupKind::Bracket, i, operand, operand + STEP);
        }
    }

    /// Closes the innermost bracket or body, with an incomplete declaration.
    fn close(&mut self) {
        let Some(at) = self
            .stack
            .iter()
            .rposition(|g| matches!(g.kind, GroupKind::Bracket | GroupKind::Block(_)))
        else {
            return;
        };
        if let GroupKind::Block(Some((base, column))) = self.stack[at].kind {
            (self.base, self.column) = (base, column);
        }
        self.stack.truncate(at);
    }
}

/// Breaks lines that are longer than the width. True if there were any.
pub(super) fn break_long_lines(
    pieces: &mut [LayoutToken],
    indents: &[usize],
    width: usize,
) -> bool {
    let mut broken = false;
    let mut start = 0;
    while start < pieces.len() {
        let end = (start + 1..pieces.len()).find(|i| pieces[*i].breaks > 0).unwrap_or(pieces.len());
        let (mut from, mut indent) = (start, indents[start]);
        while let Some(at) = place_to_break(&pieces[from..end], indent, width) {
            pieces[from + at].breaks = 1;
            from += at;
            // An estimate: the next round has the exact position, and breaks lines that are still
            // too long.
            indent = indents[start] + STEP;
            broken = true;
            // The comment at the end follows the last part.
            pieces[from..end].iter_mut().filter(|p| p.is_comment()).for_each(|p| p.column = 0);
        }
        start = end;
    }
    broken
}

/// Returns the piece before which a line that is too long is broken best: at the least depth of
/// brackets, as late as possible. `None` if there is no such piece.
fn place_to_break(line: &[LayoutToken], indent: usize, width: usize) -> Option<usize> {
    let code = line.iter().position(LayoutToken::is_comment).unwrap_or(line.len());
    let line = &line[..code];
    if indent + line.iter().map(LayoutToken::width).sum::<usize>() <= width
        || line.first().is_some_and(|p| p.text == "$param")
    {
        return None;
    }
    let (mut depth, mut column, mut header) = (0i32, indent, false);
    // Parts of a multi-action stay on one line if possible.
    let rank = |depth: i32, piece: &LayoutToken| 2 * depth + i32::from(piece.is("|"));
    let mut best: Option<(i32, usize)> = None;
    for (i, piece) in line.iter().enumerate() {
        if is_close(piece) {
            depth -= 1;
        }
        if column > width && best.is_some() {
            break;
        }
        if i > 0
            && piece.space
            && !header
            && may_break(&line[i - 1], piece)
            && best.is_none_or(|b| rank(depth, piece) <= b.0)
        {
            best = Some((rank(depth, piece), i));
        }
        column += piece.width();
        match piece.role {
            SymbolRole::DirectiveOpen => (header, depth) = (false, depth + 1),
            SymbolRole::ModalityOpen => depth += 1,
            _ if piece.token.kind == TokenKind::Directive => header = piece.text != "$param",
            _ if piece.token.kind == TokenKind::Sign && matches!(piece.text, "(" | "[" | "{") => {
                depth += 1
            }
            _ => {}
        }
    }
    best.map(|b| b.1)
}

fn may_break(first: &LayoutToken, second: &LayoutToken) -> bool {
    if second.token.kind == TokenKind::Directive
        || matches!(second.role, SymbolRole::DirectiveOpen | SymbolRole::DirectiveClose)
    {
        return false;
    }
    let sign = |p: &LayoutToken, list: &[&str]| {
        p.token.kind == TokenKind::Sign && p.role == SymbolRole::Other && list.contains(&p.text)
    };
    first.role == SymbolRole::BinderDot
        || sign(first, &[",", ";", ".", "->", "="])
        || hangs(second).is_some()
        || sign(second, &["=>", "<>"])
}
