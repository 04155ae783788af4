//! Reader and recogniser of a pest grammar: the alternatives of the derivation of a text.
//!
//! In: the text of a grammar; a start rule and a text. Out: the choice points of the grammar, and
//! those that the derivation of the text passes. A choice point is a rule, an alternative of a
//! choice, an option that is present or absent, a repetition that is empty, or that has one element
//! or several. The generators ask for alternatives by the name of their production, so a production
//! that is added to the grammar is a choice that no handler knows. Cost: backtracking as the
//! grammar asks for, without a memo.

use std::collections::HashMap;

/// A parsing expression. Numbers are the first choice point of the node.
#[derive(Debug)]
enum Expr {
    Text(String),
    Range(char, char),
    Rule(String),
    Sequence(Vec<Expr>),
    Choice(usize, Vec<Expr>),
    Optional(usize, Box<Expr>),
    /// At least and at most this many repetitions.
    Repeat(usize, usize, Box<Expr>),
    Predicate(bool, Box<Expr>),
}

#[derive(Debug)]
struct Rule {
    atomic: bool,
    point: usize,
    body: Expr,
}

/// A grammar with its choice points.
#[derive(Debug, Default)]
pub struct Grammar {
    rules: HashMap<String, Rule>,
    /// Names of the choice points: a rule, or `rule: what`.
    pub points: Vec<String>,
}

/// Lexical rules: their choices have no meaning.
const LEXICAL: [&str; 7] =
    ["WHITESPACE", "COMMENT", "id_start", "id_char", "ident", "number", "reserved"];

struct Reader<'t> {
    tokens: Vec<&'t str>,
    at: usize,
    rule: String,
    points: Vec<String>,
    /// Depth of predicates: their lookahead is no part of a text.
    ahead: usize,
}

/// Splits the text of a grammar into names, literals and signs.
fn tokens(text: &str) -> Vec<&str> {
    let (bytes, mut found, mut i) = (text.as_bytes(), Vec::new(), 0);
    while i < bytes.len() {
        let start = i;
        i += 1;
        match bytes[start] {
            b'/' if bytes.get(i) == Some(&b'/') => {
                i += text[i..].find('\n').unwrap_or(text.len() - i)
            }
            b'"' | b'\'' => {
                while bytes[i] != bytes[start] {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
                i += 1;
                found.push(&text[start..i]);
            }
            b'.' if bytes.get(i) == Some(&b'.') => {
                i += 1;
                found.push(&text[start..i]);
            }
            c if c.is_ascii_alphabetic() => {
                i += text[i..]
                    .bytes()
                    .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
                    .count();
                found.push(&text[start..i]);
            }
            c if c.is_ascii_whitespace() => {}
            _ => found.push(&text[start..i]),
        }
    }
    found
}

fn unquote(token: &str) -> String {
    let inner = &token[1..token.len() - 1];
    inner
        .replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace("\\r", "\r")
        .replace("\\\"", "\"")
        .replace("\\\\", "\\")
}

impl Reader<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }
    fn eat(&mut self, token: &str) -> bool {
        let found = self.peek() == token;
        self.at += usize::from(found);
        found
    }
    fn points(&mut self, what: &[String]) -> usize {
        let first = self.points.len();
        if self.ahead > 0 {
            return first;
        }
        self.points.extend(what.iter().map(|w| format!("{}: {w}", self.rule)));
        first
    }
    fn choice(&mut self) -> Expr {
        let mut all = Vec::new();
        let mut texts = Vec::new();
        self.eat("|");
        loop {
            let start = self.at;
            all.push(self.sequence());
            texts.push(self.tokens[start..self.at].join(" "));
            if !self.eat("|") {
                break;
            }
        }
        if all.len() == 1 { all.remove(0) } else { Expr::Choice(self.points(&texts), all) }
    }
    fn sequence(&mut self) -> Expr {
        let mut all = vec![self.repetition()];
        while self.eat("~") {
            all.push(self.repetition());
        }
        if all.len() == 1 { all.remove(0) } else { Expr::Sequence(all) }
    }
    fn repetition(&mut self) -> Expr {
        for (sign, positive) in [("!", false), ("&", true)] {
            if self.eat(sign) {
                self.ahead += 1;
                let inner = self.repetition();
                self.ahead -= 1;
                return Expr::Predicate(positive, Box::new(inner));
            }
        }
        let start = self.at;
        let mut found = self.primary();
        loop {
            let text = self.tokens[start..self.at].join(" ");
            if self.eat("?") {
                found = Expr::Optional(
                    self.points(&[format!("{text} present"), format!("{text} absent")]),
                    Box::new(found),
                );
            } else if self.eat("*") {
                let points = self.points(&[
                    format!("{text} none"),
                    format!("{text} one"),
                    format!("{text} several"),
                ]);
                found = Expr::Repeat(points, 0, Box::new(found));
            } else if self.eat("+") {
                // The first of the three is never taken, so it is the same as the second.
                let points = self
                    .points(&[format!("{text} one"), format!("{text} several")])
                    .saturating_sub(1);
                found = Expr::Repeat(points, 1, Box::new(found));
            } else {
                return found;
            }
        }
    }
    fn primary(&mut self) -> Expr {
        let token = self.tokens[self.at];
        self.at += 1;
        match token.as_bytes()[0] {
            b'(' => {
                let inner = self.choice();
                assert!(self.eat(")"), "a bracket of `{}` is not closed", self.rule);
                inner
            }
            b'"' => Expr::Text(unquote(token)),
            b'\'' => {
                assert!(self.eat(".."), "a range in `{}`", self.rule);
                let to = unquote(self.tokens[self.at]);
                self.at += 1;
                let letter = |text: String| text.chars().next().expect("a letter");
                Expr::Range(letter(unquote(token)), letter(to))
            }
            c if c.is_ascii_alphabetic() => Expr::Rule(token.to_string()),
            _ => panic!("`{token}` in `{}`", self.rule),
        }
    }
}

impl Grammar {
    /// Reads a grammar.
    pub fn read(text: &str) -> Self {
        let text: String = text
            .lines()
            .filter(|l| !l.trim_start().starts_with("//"))
            .map(|l| format!("{l}\n"))
            .collect();
        let mut reader = Reader {
            tokens: tokens(&text),
            at: 0,
            rule: String::new(),
            points: Vec::new(),
            ahead: 0,
        };
        let mut rules = HashMap::new();
        while !reader.peek().is_empty() {
            let name = reader.peek().to_string();
            reader.at += 1;
            assert!(reader.eat("="), "rule `{name}`");
            let atomic = reader.eat("@");
            let _ = reader.eat("_");
            assert!(reader.eat("{"), "rule `{name}`");
            reader.rule = name.clone();
            let point = reader.points.len();
            reader.points.push(name.clone());
            let body = reader.choice();
            assert!(reader.eat("}"), "rule `{name}` at `{}`", reader.peek());
            rules.insert(name, Rule { atomic, point, body });
        }
        Self { rules, points: reader.points }
    }

    /// Names of the rules that a production chooses between, and texts where an alternative is no
    /// rule.
    pub fn alternatives(&self, production: &str) -> Vec<String> {
        fn name(e: &Expr) -> String {
            match e {
                Expr::Rule(name) | Expr::Text(name) => name.clone(),
                Expr::Sequence(all) => name(&all[0]),
                Expr::Repeat(_, _, e) | Expr::Optional(_, e) => name(e),
                e => panic!("{e:?} has no name"),
            }
        }
        let body = |production: &str| {
            &self
                .rules
                .get(production)
                .unwrap_or_else(|| panic!("no production `{production}`"))
                .body
        };
        match body(production) {
            Expr::Choice(_, all) => all.iter().map(name).collect(),
            Expr::Sequence(all) => match all.iter().find(|e| matches!(e, Expr::Choice(..))) {
                Some(Expr::Choice(_, all)) => all.iter().map(name).collect(),
                _ => vec![name(&all[0])],
            },
            e => vec![name(e)],
        }
    }

    /// Returns the literal of a rule that is one, such as `op_plus`.
    pub fn literal(&self, rule: &str) -> String {
        match &self.rules[rule].body {
            Expr::Text(text) => text.clone(),
            Expr::Sequence(all) => match &all[0] {
                Expr::Text(text) => text.clone(),
                e => panic!("`{rule}` begins with {e:?}"),
            },
            e => panic!("`{rule}` is {e:?}"),
        }
    }

    /// Returns the choice points that the derivation of a text passes, each as often as it does.
    ///
    /// # Errors
    /// How far the text was read.
    pub fn derive(&self, rule: &str, text: &str) -> Result<Vec<usize>, usize> {
        let mut run = Run { grammar: self, text, log: Vec::new(), furthest: 0, quiet: 0 };
        match run.rule(rule, 0, false) {
            Some(_) => Ok(run.log),
            None => Err(run.furthest),
        }
    }

    /// True if a choice point belongs to a lexical rule.
    pub fn is_lexical(&self, point: usize) -> bool {
        let name = self.points[point].split(':').next().unwrap_or_default();
        LEXICAL.contains(&name)
    }
}

struct Run<'g> {
    grammar: &'g Grammar,
    text: &'g str,
    log: Vec<usize>,
    furthest: usize,
    /// Depth of predicates, in which nothing is recorded.
    quiet: usize,
}

impl Run<'_> {
    fn note(&mut self, point: usize) {
        if self.quiet == 0 {
            self.log.push(point);
        }
    }
    fn rule(&mut self, name: &str, at: usize, atomic: bool) -> Option<usize> {
        let grammar = self.grammar;
        match name {
            "SOI" => return (at == 0).then_some(at),
            "EOI" => return (at == self.text.len()).then_some(at),
            "ANY" => return self.text[at..].chars().next().map(|c| at + c.len_utf8()),
            _ => {}
        }
        let rule = grammar.rules.get(name).unwrap_or_else(|| panic!("no rule `{name}`"));
        let mark = self.log.len();
        self.note(rule.point);
        let end = self.expr(&rule.body, at, atomic || rule.atomic);
        if end.is_none() {
            self.log.truncate(mark);
        }
        end
    }
    fn skip(&mut self, mut at: usize, atomic: bool) -> usize {
        if atomic {
            return at;
        }
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => at += 1,
                Some(b'%') => {
                    at += bytes[at..].iter().take_while(|b| !matches!(b, b'\n' | b'\r')).count()
                }
                _ => return at,
            }
        }
    }
    fn expr(&mut self, e: &Expr, at: usize, atomic: bool) -> Option<usize> {
        self.furthest = self.furthest.max(at);
        match e {
            Expr::Text(text) => self.text[at..].starts_with(text.as_str()).then(|| at + text.len()),
            Expr::Range(from, to) => self.text[at..]
                .chars()
                .next()
                .filter(|c| from <= c && c <= to)
                .map(|c| at + c.len_utf8()),
            Expr::Rule(name) => self.rule(name, at, atomic),
            Expr::Sequence(all) => {
                let (mark, mut end) = (self.log.len(), at);
                for (i, e) in all.iter().enumerate() {
                    let from = if i == 0 { end } else { self.skip(end, atomic) };
                    match self.expr(e, from, atomic) {
                        Some(to) => end = to,
                        None => {
                            self.log.truncate(mark);
                            return None;
                        }
                    }
                }
                Some(end)
            }
            Expr::Choice(point, all) => all.iter().enumerate().find_map(|(i, e)| {
                let mark = self.log.len();
                self.note(point + i);
                let end = self.expr(e, at, atomic);
                if end.is_none() {
                    self.log.truncate(mark);
                }
                end
            }),
            Expr::Optional(point, e) => {
                let mark = self.log.len();
                self.note(*point);
                if let Some(end) = self.expr(e, at, atomic) {
                    return Some(end);
                }
                self.log.truncate(mark);
                self.note(point + 1);
                Some(at)
            }
            Expr::Repeat(point, least, e) => {
                let (mut end, mut count) = (at, 0);
                let mark = self.log.len();
                loop {
                    let from = if count == 0 { end } else { self.skip(end, atomic) };
                    match self.expr(e, from, atomic) {
                        Some(to) if to > from => (end, count) = (to, count + 1),
                        _ => break,
                    }
                }
                if count < *least {
                    self.log.truncate(mark);
                    return None;
                }
                self.note(point + count.min(2));
                Some(end)
            }
            Expr::Predicate(positive, e) => {
                let mark = self.log.len();
                self.quiet += 1;
                let found = self.expr(e, at, atomic).is_some();
                self.quiet -= 1;
                self.log.truncate(mark);
                (found == *positive).then_some(at)
            }
        }
    }
}
