//! Name resolution in litmus tests, for editors: variables, registers and local variables of
//! threads, labels.
//!
//! Input: a text of any architecture, possibly with errors. Output: a [`Naming`]. The tokens are
//! those of the parser ([`mu_base::words`]), and their roles follow from their positions. Registers
//! of an architecture cannot be renamed; local variables of C, symbolic registers (`%a`), variables
//! and labels can. Cost: linear.

use crate::code::Arch;
use crate::init::type_of;
use crate::{aarch64, arm, power, riscv};
use mu_base::naming::{NameRole, Naming, line};
use mu_base::words::{LexicalForm, Token, TokenKind, tokens};
use mu_base::{SourceId, Span};
use mu_program::outcome::head;
use std::collections::HashMap;

/// Keywords of questions.
const QUESTION: [&str; 14] = [
    "locations",
    "filter",
    "exists",
    "forall",
    "final",
    "observed",
    "cases",
    "not",
    "and",
    "or",
    "true",
    "false",
    "with",
    "fault",
];
/// Keywords of C.
const STATEMENTS: [&str; 10] =
    ["if", "else", "while", "do", "for", "static", "switch", "return", "break", "continue"];
/// Limit on the number of invalid characters that are treated as blanks.
const MAX_ERRORS: usize = 50;

/// Resolves the names of a test.
pub fn names(source: SourceId, text: &str) -> Naming {
    let Ok(found) = head(source, text, Arch::by_name, "") else { return Naming::default() };
    let form = if found.arch == Arch::C { LexicalForm::C } else { LexicalForm::Free };
    let mut blanked = text.to_string();
    for _ in 0..MAX_ERRORS {
        let wrong = tokens(source, &blanked, found.body, form).err().and_then(|e| e.span);
        let Some(Span { start, end, .. }) = wrong else { break };
        blanked.replace_range(start as usize..end as usize, &" ".repeat((end - start) as usize));
    }
    let list = tokens(source, &blanked, found.body, form).unwrap_or_default();
    let mut reader = NameReader {
        arch: found.arch,
        out: Naming::default(),
        text,
        list: &list,
        at: 0,
        known: HashMap::new(),
        pending: Vec::new(),
    };
    reader.initial();
    if found.arch == Arch::C {
        reader.functions();
    } else {
        reader.table();
    }
    reader.question();
    reader.jumps();
    reader.out
}

/// A name with its namespace.
#[derive(Clone, PartialEq, Eq, Hash)]
enum NamedItem {
    Variable(String),
    /// A register or a local variable of a thread.
    Register(u32, String),
    Label(u32, String),
}

struct NameReader<'t> {
    arch: Arch,
    out: Naming,
    text: &'t str,
    list: &'t [Token<'t>],
    at: usize,
    known: HashMap<NamedItem, usize>,
    /// Words of a thread's instructions that are labels if labels with these names exist.
    pending: Vec<(u32, Token<'t>)>,
}

impl<'t> NameReader<'t> {
    fn peek(&self, ahead: usize) -> Option<Token<'t>> {
        self.list.get(self.at + ahead).filter(|t| t.kind != TokenKind::End).copied()
    }
    fn is(&self, ahead: usize, text: &str) -> bool {
        self.peek(ahead).is_some_and(|t| t.text == text)
    }
    fn name(&self, ahead: usize) -> Option<Token<'t>> {
        self.peek(ahead).filter(|t| t.kind == TokenKind::Name)
    }
    /// Returns the range from a position to the last token read.
    fn span_since(&self, from: Span) -> Span {
        let end = self.list.get(self.at.saturating_sub(1)).map_or(from.end, |t| t.span.end);
        Span { end: end.max(from.end), ..from }
    }
    fn source_text(&self, span: Span) -> String {
        line(self.text.get(span.start as usize..span.end as usize).unwrap_or(""))
    }

    fn mention(&mut self, thing: NamedItem, role: NameRole, place: Span, says: String) -> usize {
        match self.known.get(&thing) {
            Some(of) => {
                self.out.mention(place, *of);
                *of
            }
            None => {
                let (NamedItem::Variable(name)
                | NamedItem::Register(_, name)
                | NamedItem::Label(_, name)) = &thing;
                let of = self.out.declare(role, name, place, place, says);
                self.known.insert(thing, of);
                of
            }
        }
    }
    fn variable(&mut self, token: Token<'t>) -> usize {
        self.mention(
            NamedItem::Variable(token.text.into()),
            NameRole::Storage,
            token.span,
            token.text.into(),
        )
    }
    /// Returns the full name of a register of the architecture.
    fn machine(&self, name: &str) -> Option<String> {
        match self.arch {
            Arch::RiscV => riscv::number(name).map(|n| format!("x{n}")),
            Arch::Power => power::number(name).map(|n| format!("r{n}")),
            Arch::Arm => arm::number(name).map(|n| format!("R{n}")),
            Arch::AArch64 => {
                aarch64::parse_register(name).map(|(full, _)| full.unwrap_or_else(|| "xzr".into()))
            }
            Arch::X86 | Arch::X86_64 => mu_program::registers::parse(name).map(|view| view.full),
            Arch::C | Arch::Linux => None,
        }
    }
    /// Records a register or local variable of a thread.
    fn register(&mut self, thread: u32, token: Token<'t>) {
        match self.machine(token.text) {
            Some(full) => {
                let says = format!("{thread}:{full}");
                let of = self.mention(
                    NamedItem::Register(thread, full),
                    NameRole::Register,
                    token.span,
                    says,
                );
                self.out.bindings[of].note = format!("a register of P{thread}");
                self.out.bindings[of].fixed = Some("a register of the architecture");
            }
            None => {
                let says = format!("{thread}:{}", token.text);
                let of = self.mention(
                    NamedItem::Register(thread, token.text.into()),
                    NameRole::Local,
                    token.span,
                    says,
                );
                self.out.bindings[of].note = format!("of P{thread}");
            }
        }
    }
    /// Reads `0:EAX` from its number on. Returns true if there is one.
    fn taken_register(&mut self) -> bool {
        let thread = |t: Token<'_>| match t.kind {
            TokenKind::Number => t.text.parse::<u32>().ok(),
            TokenKind::Name => t.text.strip_prefix('P')?.parse().ok(),
            _ => None,
        };
        let Some(thread) = self.peek(0).and_then(thread).filter(|_| self.is(1, ":")) else {
            return false;
        };
        self.at += 2;
        if self.is(0, "%") {
            self.at += 1;
        }
        if let Some(token) = self.name(0) {
            self.at += 1;
            self.register(thread, token);
        }
        true
    }

    /// Reads the initial state `{ int x; y=1; 0:EAX=x; }`.
    fn initial(&mut self) {
        self.at += usize::from(self.is(0, "{"));
        let (mut depth, mut item) = (0usize, self.peek(0));
        let mut declared = Vec::new();
        while let Some(token) = self.peek(0) {
            match token.text {
                "{" => depth += 1,
                "}" if depth == 0 => break,
                "}" => depth -= 1,
                ";" => item = self.peek(1),
                _ if self.taken_register() => continue,
                _ if token.kind == TokenKind::Name => {
                    let next = self.peek(1);
                    // A type is followed by a name, a number or a star.
                    let is_type = next.is_some_and(|n| {
                        matches!(n.kind, TokenKind::Name | TokenKind::Number) || n.text == "*"
                    });
                    if !is_type {
                        let value = self.at > 0
                            && matches!(self.list[self.at - 1].text, "=" | "&" | "{" | ",");
                        let new = !value
                            && !self.known.contains_key(&NamedItem::Variable(token.text.into()));
                        let of = self.variable(token);
                        declared.extend(item.filter(|_| new).map(|i| (of, i.span)));
                    }
                }
                _ => {}
            }
            self.at += 1;
            if self.is(0, ";") || self.is(0, "}") {
                for (of, from) in declared.drain(..) {
                    let whole = self.span_since(from);
                    self.out.bindings[of].whole = whole;
                    self.out.bindings[of].declaration = self.source_text(whole);
                }
            }
        }
        self.at += 1;
    }

    /// Adds a thread to the outline.
    fn thread(&mut self, token: Token<'t>, whole: Span) {
        self.out.parts.push((token.text.into(), whole));
    }

    /// Reads `P0 | P1 ; … | … ;` with an instruction in each cell.
    fn table(&mut self) {
        let mut columns = 0;
        while let Some(token) = self.peek(0) {
            self.at += 1;
            if token.kind == TokenKind::Name {
                self.thread(token, token.span);
                columns += 1;
            } else if token.text == ";" && columns > 0 {
                break;
            }
        }
        let mut column = 0;
        let mut starts = true;
        while let Some(token) = self.peek(0) {
            // A question starts at the beginning of a row.
            let question = QUESTION[..7].iter().any(|w| token.text.eq_ignore_ascii_case(w))
                && !self.is(1, ":");
            let negated =
                self.is(0, "~") || token.text.eq_ignore_ascii_case("not") && self.is(1, "exists");
            if starts && column == 0 && (question || negated || token.text == "(") {
                return;
            }
            match token.text {
                "|" => (column, starts) = (column + 1, true),
                ";" => (column, starts) = (0, true),
                _ if starts
                    && matches!(token.kind, TokenKind::Name | TokenKind::Number)
                    && self.is(1, ":") =>
                {
                    self.label(column, token);
                    self.at += 1;
                }
                _ if starts => {
                    self.cell(column);
                    starts = false;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }
    fn label(&mut self, thread: u32, token: Token<'t>) {
        let thing = NamedItem::Label(thread, token.text.into());
        let of = self.mention(thing, NameRole::Label, token.span, format!("{}:", token.text));
        self.out.bindings[of].note = format!("a label of P{thread}");
        if token.kind == TokenKind::Number {
            self.out.bindings[of].fixed = Some("it is a number");
        }
    }
    /// Reads an instruction and its operands.
    fn cell(&mut self, thread: u32) {
        if self.peek(0).is_some_and(|t| t.text.eq_ignore_ascii_case("lock")) {
            self.at += if self.is(1, ";") { 2 } else { 1 };
        }
        let Some(mnemonic) = self.peek(0) else { return };
        self.at += 1;
        let intel = matches!(self.arch, Arch::X86 | Arch::X86_64);
        let jumps = intel && mnemonic.text.starts_with(['j', 'J']);
        while let Some(token) = self.peek(0).filter(|t| t.text != ";" && t.text != "|") {
            let symbolic = self.at > 0 && self.list[self.at - 1].text == "%";
            self.at += 1;
            if token.kind != TokenKind::Name {
                continue;
            }
            if self.machine(token.text).is_some()
                || symbolic && !token.text.eq_ignore_ascii_case("rip")
            {
                self.register(thread, token);
            } else if intel && !jumps && !symbolic {
                self.variable(token);
            } else {
                self.pending.push((thread, token));
            }
        }
    }
    /// Resolves the labels of jumps, which may be forward. Other words belong to the instruction,
    /// as `SY` does.
    fn jumps(&mut self) {
        for (thread, token) in std::mem::take(&mut self.pending) {
            if let Some(of) = self.known.get(&NamedItem::Label(thread, token.text.into())) {
                self.out.mention(token.span, *of);
            }
        }
    }

    /// Reads functions of C: `P0 (atomic_int* x) { int r0 = … }`.
    fn functions(&mut self) {
        let mut thread = 0;
        while let Some(token) =
            self.name(0).filter(|t| self.is(1, "(") && t.text == format!("P{thread}"))
        {
            self.at += 2;
            while let Some(parameter) = self.peek(0) {
                self.at += 1;
                if parameter.text == ")" {
                    break;
                }
                if parameter.kind == TokenKind::Name
                    && (self.is(0, ",") || self.is(0, ")") || self.is(0, "["))
                {
                    let of = self.variable(parameter);
                    self.known.insert(NamedItem::Register(thread, parameter.text.into()), of);
                }
            }
            self.block(thread);
            let whole = self.span_since(token.span);
            self.thread(token, whole);
            thread += 1;
        }
    }
    fn block(&mut self, thread: u32) {
        let mut depth = 0usize;
        // True at the beginning of a statement; true in a declaration, and its depth of brackets.
        let (mut begins, mut declares, mut brackets) = (true, None, 0usize);
        while let Some(token) = self.peek(0) {
            self.at += 1;
            match token.text {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return;
                    }
                }
                "(" | "[" => brackets += 1,
                ")" | "]" => brackets = brackets.saturating_sub(1),
                _ => {}
            }
            match token.text {
                "{" | "}" | ";" => (begins, declares) = (true, None),
                // The first part of a `for` is a statement.
                "(" if self.at >= 2 && self.list[self.at - 2].text == "for" => begins = true,
                "=" if declares == Some((brackets, true)) => declares = Some((brackets, false)),
                "," if declares == Some((brackets, false)) => declares = Some((brackets, true)),
                _ if token.kind != TokenKind::Name => {}
                word if STATEMENTS.contains(&word) => begins = true,
                word if is_type(word) => {
                    if begins {
                        declares = Some((brackets, true));
                    }
                    begins = false;
                }
                word => {
                    begins = false;
                    let order = word.strip_prefix("memory_order_").is_some();
                    let local = NamedItem::Register(thread, word.into());
                    if declares == Some((brackets, true)) && !self.is(0, "(") {
                        self.register(thread, token);
                        declares = Some((brackets, false));
                    } else if !self.is(0, "(") && !order {
                        // A word that is not declared is an error, or the name of a memory order.
                        if let Some(of) = self.known.get(&local) {
                            self.out.mention(token.span, *of);
                        }
                    }
                }
            }
        }
    }

    fn question(&mut self) {
        if let (Some(first), Some(last)) =
            (self.peek(0), self.list.iter().rev().find(|t| t.kind != TokenKind::End))
        {
            self.out.parts.push((first.text.into(), first.span.to(last.span)));
        }
        // The depth of brackets in a list of locations.
        let mut listed = 0usize;
        while let Some(token) = self.peek(0) {
            if self.taken_register() {
                continue;
            }
            let before = self.at.checked_sub(1).map_or("", |i| self.list[i].text);
            self.at += 1;
            match token.text {
                "with" => return,
                "[" if listed > 0 || before.eq_ignore_ascii_case("locations") => listed += 1,
                "]" => listed = listed.saturating_sub(1),
                _ => {}
            }
            // In a list, a location is followed by its type, which is for other tools.
            let after_place = listed > 0 && !matches!(before, "[" | ";" | "*");
            let equation = self.is(0, "=") || self.is(0, "!=");
            let word = QUESTION.iter().any(|w| token.text.eq_ignore_ascii_case(w)) && !equation;
            if token.kind == TokenKind::Name && !word && !after_place {
                self.variable(token);
            }
        }
    }
}

/// True if a word is part of a type of C.
fn is_type(word: &str) -> bool {
    matches!(word, "unsigned" | "long" | "volatile" | "const" | "signed")
        || type_of(&[word], Arch::C).is_some()
}
