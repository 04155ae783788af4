//! Texts of other front ends: systems of any number of processes, x86 programs, litmus tests,
//! memory models, equation systems.
//!
//! The registry of [`mu_frontends`] supplies their readers, so that errors are those of the command
//! line. If a front end supplies the meaning of names ([`mu_base::naming::Naming`]), all features
//! of specifications work (`generic_language`). Otherwise outline and colours are lexical: a
//! [`Lexicon`] defines comments, reserved words, and the words that declare names. Cost: linear.
//! Invariant: tokens are ascending and do not overlap.

use crate::analysis::{Analysis, NameDeclaration, Occurrence};
use crate::names::{Key, NameKind};
use crate::workspace::normal;
use mu_base::naming::NameRole;
use mu_base::words::nested_comment;
use mu_base::{Diagnostic, Span};
use mu_frontends::{EditResult, Lexicon, Meaning};
use mu_syntax::tokens::{Token, TokenKind};
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

/// A named entity in a text of another front end.
#[derive(Clone)]
pub(crate) struct NamedEntity {
    pub(crate) key: Key,
    pub(crate) kind: NameKind,
    pub(crate) name: String,
    pub(crate) declaration: String,
    pub(crate) note: String,
    /// Its scope; `None`: everywhere.
    pub(crate) scope: Option<Range<usize>>,
    pub(crate) fixed: Option<&'static str>,
}

impl NamedEntity {
    /// True if an outline shows it: entities that are visible in more than one declaration, and
    /// labels of a thread's code.
    pub(crate) fn is_outlined(&self) -> bool {
        self.scope.is_none() || matches!(self.kind, NameKind::Of(NameRole::Claim | NameRole::Label))
    }
}

/// Returns the lexical rules of a file, by its name; `None` for mCRL2 and formulas.
pub(crate) fn lexicon_of(path: &Path) -> Option<&'static Lexicon> {
    mu_frontends::by_name(path).lexicon()
}

/// Returns the length of a comment at the start of a text; 0 if there is none.
fn comment(lexicon: &Lexicon, text: &str) -> usize {
    if lexicon.line.iter().any(|start| text.starts_with(start)) {
        return text.find('\n').unwrap_or(text.len());
    }
    if lexicon.block && text.starts_with("/*") {
        return text[2..].find("*/").map_or(text.len(), |end| end + 4);
    }
    if !lexicon.nested || !text.starts_with("(*") {
        return 0;
    }
    nested_comment(text.as_bytes()).unwrap_or(text.len())
}

/// Splits a text into words, numbers, signs and comments.
fn tokens(lexicon: &Lexicon, text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let run = |fits: &dyn Fn(char) -> bool| rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
        let comment = comment(lexicon, rest);
        let (kind, length) = match c {
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            _ if comment > 0 => (TokenKind::Comment, comment),
            '"' => (TokenKind::Text, rest[1..].find('"').map_or(rest.len(), |n| n + 2)),
            c if c.is_ascii_digit() => (TokenKind::Number, run(&|c| c.is_ascii_alphanumeric())),
            c if c.is_alphabetic() || c == '_' => {
                let length =
                    run(&|c| c.is_alphanumeric() || c == '_' || lexicon.inside.contains(c));
                (TokenKind::Word, rest[..length].trim_end_matches(['-', '.']).len())
            }
            c => (TokenKind::Sign, c.len_utf8()),
        };
        out.push(Token { kind, range: at..at + length });
        at += length;
    }
    out
}

impl Analysis {
    /// Analyses a text of another front end. `read`: the result of its check.
    pub(crate) fn of_foreign(
        path: &Path,
        text: &str,
        lexicon: &'static Lexicon,
        read: Option<EditResult>,
    ) -> Self {
        let tokens = tokens(lexicon, text);
        let mut analysis = Analysis::default();
        (analysis.text, analysis.tokens, analysis.lexicon) =
            (text.to_string(), tokens, Some(lexicon));
        analysis.keywords = lexicon.keywords;
        match read.as_ref().and_then(|r| r.meaning.as_ref()) {
            Some(meaning) => analysis.add_meaning(path, meaning),
            None => analysis.add_lexical(),
        }
        if let Some(EditResult { error: Some(error), sources, .. }) = read {
            let own =
                |e: &Diagnostic| e.span.is_none_or(|s| sources.get(s.source).original == text);
            let error = if own(&error) {
                error
            } else {
                // The place is in an included file.
                let place = error
                    .span
                    .map(|s| (sources.get(s.source).name.clone(), sources.line_column(s)));
                let message = place.map_or(error.message.clone(), |(name, (line, column))| {
                    format!("{name}:{line}:{column}: {}", error.message)
                });
                Diagnostic { span: None, related: Vec::new(), message, ..error }
            };
            let error = Diagnostic {
                related: error
                    .related
                    .iter()
                    .filter(|r| sources.get(r.0.source).original == text)
                    .cloned()
                    .collect(),
                ..error
            };
            analysis.report(&error, &sources);
        }
        analysis
    }

    /// Returns the named entity of a key; `None` if there is none.
    pub(crate) fn entity(&self, key: &Key) -> Option<&NamedEntity> {
        self.entities.iter().find(|t| t.key == *key)
    }

    /// Adds the names with the meaning that the reader supplies.
    fn add_meaning(
        &mut self,
        path: &Path,
        Meaning { naming, sources, source, included }: &Meaning,
    ) {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let own: Rc<Path> = Rc::from(path);
        let file = |span: Span| {
            if span.source == *source {
                own.clone()
            } else {
                Rc::from(normal(&folder.join(&sources.get(span.source).name)))
            }
        };
        self.included = included
            .iter()
            .map(|(name, text)| (normal(&folder.join(name)), text.clone()))
            .collect();
        let range = |span: Span| span.start as usize..span.end as usize;
        let key_of = |of: usize| match &naming.bindings[of] {
            b if b.place.is_none() => Key::Given(b.name.clone()),
            b => b.place.map_or_else(
                || Key::Given(b.name.clone()),
                |p| Key::Placed(file(p), p.start as usize),
            ),
        };
        for (of, b) in naming.bindings.iter().enumerate() {
            let scope = b.scope.filter(|s| s.source == *source).map(range);
            let (declaration, note) = (b.declaration.clone(), b.note.clone());
            self.entities.push(NamedEntity {
                key: key_of(of),
                kind: NameKind::Of(b.role),
                name: b.name.clone(),
                declaration,
                note,
                scope,
                fixed: b.fixed,
            });
        }
        for mention in naming.mentions.iter().filter(|m| m.place.source == *source) {
            self.names.push(Occurrence {
                range: range(mention.place),
                key: key_of(mention.of),
                declares: mention.declares,
                is_literal: true,
            });
            let b = &naming.bindings[mention.of];
            if mention.declares && !self.declarations.iter().any(|d| d.key == key_of(mention.of)) {
                let (key, kind, extent) =
                    (key_of(mention.of), NameKind::Of(b.role), range(b.whole));
                let declaration = NameDeclaration {
                    key,
                    kind,
                    name: b.name.clone(),
                    range: range(mention.place),
                    extent,
                    signature: b.declaration.clone(),
                };
                self.declarations.push(declaration);
            }
        }
        self.parts = naming
            .parts
            .iter()
            .filter(|p| p.1.source == *source)
            .map(|p| (p.0.clone(), range(p.1)))
            .collect();
        self.order();
    }

    /// True if this word is reserved.
    pub(crate) fn is_keyword(&self, word: &str) -> bool {
        if self.lexicon.is_some_and(|l| l.any_case) {
            return self.keywords.contains(&word.to_ascii_lowercase().as_str());
        }
        self.keywords.contains(&word)
    }

    /// Returns the comment of a declaration: after it on its line, otherwise the comments that end
    /// on the line above.
    pub(crate) fn comment_near(&self, declaration: &NameDeclaration) -> String {
        let Some(lexicon) = self.lexicon else { return String::new() };
        let of = |t: &Token| {
            let text = t.text(&self.text);
            let text = lexicon.line.iter().find_map(|l| text.strip_prefix(l)).unwrap_or(text);
            let text = [("(*", "*)"), ("/*", "*/")]
                .iter()
                .find_map(|(open, close)| text.strip_prefix(open)?.strip_suffix(close))
                .unwrap_or(text);
            text.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_string()
        };
        let comments = || self.tokens.iter().filter(|t| t.kind == TokenKind::Comment);
        let start = declaration.extent.start.min(declaration.range.start);
        let between = |from: usize, to: usize| self.text.get(from..to).unwrap_or("x");
        let end = self.text[declaration.range.end..]
            .find('\n')
            .map_or(self.text.len(), |i| declaration.range.end + i);
        if let Some(token) =
            comments().find(|t| (declaration.range.end..end).contains(&t.range.start))
        {
            return of(token);
        }
        let (mut at, mut found) = (start, Vec::new());
        for token in self.tokens.iter().rev().skip_while(|t| t.range.start >= start) {
            let gap = between(token.range.end, at);
            // Words on the same line, such as `let`, may precede the declared name.
            if token.kind != TokenKind::Comment && found.is_empty() && !gap.contains('\n') {
                at = token.range.start;
                continue;
            }
            if token.kind != TokenKind::Comment || gap.matches('\n').count() > 1 {
                break;
            }
            // A comment at the end of a line belongs to that line.
            let line = self.text[..token.range.start].rfind('\n').map_or(0, |i| i + 1);
            if !between(line, token.range.start).trim().is_empty() {
                break;
            }
            found.push(of(token));
            at = token.range.start;
        }
        found.reverse();
        found.join("\n")
    }

    /// Adds the declarations found by the words before them.
    fn add_lexical(&mut self) {
        let Some(lexicon) = self.lexicon else { return };
        let words: Vec<&Token> =
            self.tokens.iter().filter(|t| t.kind != TokenKind::Comment).collect();
        let is_keyword = |t: &Token| self.is_keyword(t.text(&self.text));
        let mut found: Vec<(NameKind, Token)> = Vec::new();
        for (i, token) in words.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word) {
            let word = token.text(&self.text);
            if let Some((_, role)) = lexicon.declares.iter().find(|(w, _)| *w == word) {
                let next = words[i + 1..].iter().find(|t| !is_keyword(t));
                found.extend(
                    next.filter(|t| t.kind == TokenKind::Word)
                        .map(|t| (NameKind::Of(*role), (*t).clone())),
                );
            }
        }
        for (kind, token) in found {
            let name = token.text(&self.text).to_string();
            let key = Key::Local(token.range.start);
            self.names.push(Occurrence {
                range: token.range.clone(),
                key: key.clone(),
                declares: true,
                is_literal: true,
            });
            let declaration = NameDeclaration {
                key,
                kind,
                name,
                range: token.range.clone(),
                extent: token.range.clone(),
                signature: String::new(),
            };
            if !self.declarations.contains(&declaration) {
                self.declarations.push(declaration);
            }
        }
        self.order();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::SourceMap;

    fn outline(name: &str, text: &str) -> (Vec<String>, usize) {
        let read = EditResult { error: None, sources: SourceMap::new(), meaning: None };
        let analysis = Analysis::of_foreign(
            Path::new(name),
            text,
            lexicon_of(Path::new(name)).unwrap(),
            Some(read),
        );
        let comments = analysis.tokens.iter().filter(|t| t.kind == TokenKind::Comment).count();
        (analysis.declarations.iter().map(|d| d.name.clone()).collect(), comments)
    }

    #[test]
    fn outlines() {
        let program = "; a lock\nbegin shared_data\n x dd 0 ; one\nend shared_data\nbegin thread_code\nspin: mov eax, 1\n  jmp spin\nend thread_code";
        assert_eq!(outline("a.asm", program), (Vec::new(), 2));
        assert_eq!(outline("a.cat", "(* a (* nested *) one *) let b = rf // end").1, 2);
        assert_eq!(
            outline("a.pbes", "pbes nu X(n: Nat) = Y; mu Y = X(1);\ninit X(0); % end").0,
            ["X", "Y"]
        );
        // No typed character ends the list of words.
        for text in ["(*", "\"", "(* (* *)", "é∧", "begin", "let rec", "0x", "*)"] {
            for name in ["a.cub", "a.asm", "a.cat", "a.pbes", "a.litmus"] {
                outline(name, text);
            }
        }
    }
}
