//! Texts of other front ends: systems of any number of processes, x86 programs, litmus tests, memory models, equation systems.
//!
//! Their readers are layers that this one does not know; whoever starts the server hands them over ([`crate::Files::foreign`]), so that an error here is
//! the command line's, word for word. Outline and colours need no more than words: a [`Lexicon`] says how comments look and after which words a name is
//! declared; which words are reserved the reader says, or the lexicon where the reader knows them by their places only. Cost: linear. Invariant: tokens are ascending and do not overlap.

use crate::analysis::{Analysis, Declaration, Name};
use crate::names::{Key, Kind};
use mu_base::words::nested_comment;
use mu_base::{Diagnostic, SourceMap};
use mu_syntax::tokens::{Kind as TokenKind, Token};
use std::path::Path;

/// What a front end says of a text.
pub struct Read {
    /// The first error, if there is one.
    pub refused: Option<Diagnostic>,
    /// The texts that it has places in.
    pub sources: SourceMap,
    /// The reserved words of its language.
    pub keywords: &'static [&'static str],
}

/// How texts of a kind are cut into words.
pub(crate) struct Lexicon {
    endings: &'static [&'static str],
    /// What comments to the end of the line begin with.
    line: &'static [&'static str],
    /// Whether `(* … *)` is a comment; it may nest.
    nested: bool,
    /// Reserved words that the reader does not name.
    keywords: &'static [&'static str],
    /// Words after which a name is declared, as what.
    declares: &'static [(&'static str, Kind)],
    /// Whether a name before a colon at the start of a line is declared.
    labels: bool,
}

const LEXICONS: [Lexicon; 5] = [
    Lexicon {
        endings: &["cub"],
        line: &[],
        nested: true,
        keywords: &[],
        declares: &[
            ("type", Kind::Sort),
            ("array", Kind::Mapping),
            ("var", Kind::Mapping),
            ("const", Kind::Parameter),
            ("predicate", Kind::Mapping),
            ("transition", Kind::Process),
        ],
        labels: false,
    },
    Lexicon {
        endings: &["asm"],
        line: &[";"],
        nested: false,
        keywords: &["begin", "end", "dd", "dw", "db", "dq", "as", "counter", "lock", "dword", "word", "byte", "qword", "start_threads"],
        declares: &[("begin", Kind::Process)],
        labels: true,
    },
    Lexicon {
        endings: &["cat"],
        line: &["//", "#"],
        nested: true,
        keywords: &[],
        declares: &[
            ("let", Kind::Mapping),
            ("and", Kind::Mapping),
            ("as", Kind::Action),
            ("procedure", Kind::Process),
            ("enum", Kind::Sort),
        ],
        labels: false,
    },
    Lexicon {
        endings: &["pbes"],
        line: &["%"],
        nested: false,
        keywords: &[
            "pbes", "mu", "nu", "init", "val", "forall", "exists", "true", "false", "sort", "cons", "map", "var", "eqn", "glob", "struct",
            "lambda", "whr", "end",
        ],
        declares: &[("mu", Kind::FixedPoint), ("nu", Kind::FixedPoint), ("sort", Kind::Sort), ("map", Kind::Mapping)],
        labels: false,
    },
    Lexicon {
        endings: &["litmus"],
        line: &["//"],
        nested: true,
        keywords: &["exists", "forall", "locations", "filter", "not", "and", "true", "false"],
        declares: &[],
        labels: false,
    },
];

impl Lexicon {
    /// That of a file, by its name.
    pub(crate) fn of(path: &Path) -> Option<&'static Lexicon> {
        let ending = path.extension()?.to_str()?;
        LEXICONS.iter().find(|l| l.endings.contains(&ending))
    }

    /// The length of a comment that begins a text; 0: none does.
    fn comment(&self, text: &str) -> usize {
        if self.line.iter().any(|start| text.starts_with(start)) {
            return text.find('\n').unwrap_or(text.len());
        }
        if !self.nested || !text.starts_with("(*") {
            return 0;
        }
        nested_comment(text.as_bytes()).unwrap_or(text.len())
    }

    /// The words, numbers, signs and comments of a text.
    fn tokens(&self, text: &str) -> Vec<Token> {
        let mut out = Vec::new();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            let rest = &text[at..];
            let run = |fits: &dyn Fn(char) -> bool| rest.find(|c: char| !fits(c)).unwrap_or(rest.len());
            let comment = self.comment(rest);
            let (kind, length) = match c {
                c if c.is_whitespace() => {
                    at += c.len_utf8();
                    continue;
                }
                _ if comment > 0 => (TokenKind::Comment, comment),
                '"' => (TokenKind::Text, rest[1..].find('"').map_or(rest.len(), |n| n + 2)),
                c if c.is_ascii_digit() => (TokenKind::Number, run(&|c| c.is_ascii_alphanumeric())),
                c if c.is_alphabetic() || c == '_' => {
                    let length = run(&|c| c.is_alphanumeric() || "_'-.".contains(c));
                    (TokenKind::Word, rest[..length].trim_end_matches(['-', '.']).len())
                }
                c => (TokenKind::Sign, c.len_utf8()),
            };
            out.push(Token { kind, range: at..at + length });
            at += length;
        }
        out
    }
}

impl Analysis {
    /// A text of another front end. `read`: what that says of it; nothing if nobody reads it here.
    pub(crate) fn of_foreign(text: &str, lexicon: &'static Lexicon, read: Option<Read>) -> Self {
        let tokens = lexicon.tokens(text);
        let mut analysis = Analysis::default();
        (analysis.text, analysis.tokens, analysis.lexicon) = (text.to_string(), tokens, Some(lexicon));
        analysis.keywords = [lexicon.keywords, read.as_ref().map_or(&[], |r| r.keywords)].concat();
        analysis.add_lexical();
        if let Some(Read { refused: Some(error), sources, .. }) = read {
            let own = |e: &Diagnostic| e.span.is_none_or(|s| sources.get(s.source).original == text);
            let error = if own(&error) {
                error
            } else {
                // The place is in a file that this one includes.
                let place = error.span.map(|s| (sources.get(s.source).name.clone(), sources.line_column(s)));
                let message =
                    place.map_or(error.message.clone(), |(name, (line, column))| format!("{name}:{line}:{column}: {}", error.message));
                Diagnostic { span: None, related: Vec::new(), message, ..error }
            };
            let error = Diagnostic {
                related: error.related.iter().filter(|r| sources.get(r.0.source).original == text).cloned().collect(),
                ..error
            };
            analysis.report(&error, &sources);
        }
        analysis
    }

    /// Declarations by the words before them.
    fn add_lexical(&mut self) {
        let Some(lexicon) = self.lexicon else { return };
        let words: Vec<&Token> = self.tokens.iter().filter(|t| t.kind != TokenKind::Comment).collect();
        let is_keyword = |t: &Token| self.keywords.contains(&t.text(&self.text));
        let mut found: Vec<(Kind, Token)> = Vec::new();
        for (i, token) in words.iter().enumerate().filter(|(_, t)| t.kind == TokenKind::Word) {
            let word = token.text(&self.text);
            if let Some((_, kind)) = lexicon.declares.iter().find(|(w, _)| *w == word) {
                let next = words[i + 1..].iter().find(|t| !is_keyword(t));
                found.extend(next.filter(|t| t.kind == TokenKind::Word).map(|t| (*kind, (*t).clone())));
            }
            let first = i == 0 || self.text[words[i - 1].range.end..token.range.start].contains('\n');
            let colon = words.get(i + 1).is_some_and(|t| t.text(&self.text) == ":");
            if lexicon.labels && first && colon {
                found.push((Kind::Action, (*token).clone()));
            }
        }
        for (kind, token) in found {
            let name = token.text(&self.text).to_string();
            let key = Key::Local(token.range.start);
            self.names.push(Name { range: token.range.clone(), key: key.clone(), declares: true, whole: true });
            let declaration =
                Declaration { key, kind, name, range: token.range.clone(), whole: token.range.clone(), signature: String::new() };
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

    fn outline(name: &str, text: &str) -> (Vec<String>, usize) {
        let read = Read { refused: None, sources: SourceMap::new(), keywords: &["weak", "var", "array", "rec"] };
        let analysis = Analysis::of_foreign(text, Lexicon::of(Path::new(name)).unwrap(), Some(read));
        let comments = analysis.tokens.iter().filter(|t| t.kind == TokenKind::Comment).count();
        (analysis.declarations.iter().map(|d| d.name.clone()).collect(), comments)
    }

    #[test]
    fn outlines() {
        let system = "(* a (* nested *) one *) type t = A | B\narray At[proc] : t weak var X : proc\ntransition go ([p]) requires { X = p } { X := p }";
        assert_eq!(outline("a.cub", system), (vec!["t".into(), "At".into(), "X".into(), "go".into()], 1));
        let program =
            "; a lock\nbegin shared_data\n x dd 0 ; one\nend shared_data\nbegin thread_code\nspin: mov eax, 1\n  jmp spin\nend thread_code";
        assert_eq!(outline("a.asm", program), (vec!["shared_data".into(), "thread_code".into(), "spin".into()], 2));
        let model = "\"M\" (* a *)\nlet rec com = rf | co\nand hb-x = com+\nacyclic po | com as sc // end";
        assert_eq!(outline("a.cat", model), (vec!["com".into(), "hb-x".into(), "sc".into()], 2));
        assert_eq!(outline("a.pbes", "pbes nu X(n: Nat) = Y; mu Y = X(1);\ninit X(0); % end").0, ["X", "Y"]);
        // Nothing that is typed ends the words.
        for text in ["(*", "\"", "(* (* *)", "é∧", "begin", "let rec", "0x", "*)"] {
            for name in ["a.cub", "a.asm", "a.cat", "a.pbes", "a.litmus"] {
                outline(name, text);
            }
        }
    }
}
