//! Lexer of Murphi models, in one pass.
//!
//! Keywords that both CMurphi and Rumur reserve are tokens of their own, in any case; words that
//! only one of them reserves are names, which the parser recognises by position. Rumur's operators
//! of one character (`≤`, `∀`) are read as the usual ones. Texts are kept as written. Cost: linear.

use mu_base::source::{SourceId, Span};
use mu_base::{Diagnostic, Stage};

macro_rules! keywords {
    ($($name:ident $word:literal),+ $(,)?) => {
        /// Word that both tools reserve.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Key { $($name),+ }
        impl Key {
            /// Returns the word.
            pub fn text(self) -> &'static str {
                match self { $(Key::$name => $word),+ }
            }
            fn of(word: &str) -> Option<Key> {
                match word { $($word => Some(Key::$name),)+ _ => None }
            }
        }
        /// Words that both tools reserve, and those that one of them reserves and that have a
        /// meaning at certain positions.
        pub const KEYWORDS: &[&str] = &[
            $($word,)+ "assume", "boolean", "choose", "cover", "endchoose", "false", "liveness",
            "multiset", "multisetadd", "multisetcount", "multisetremove", "multisetremovepred",
            "true", "undefined",
        ];
    };
}
keywords! {
    Alias "alias", Array "array", Assert "assert", Begin "begin", By "by", Case "case",
    Clear "clear", Const "const", Do "do", Else "else", Elsif "elsif", End "end",
    Endalias "endalias", Endexists "endexists", Endfor "endfor", Endforall "endforall",
    Endfunction "endfunction", Endif "endif", Endprocedure "endprocedure", Endrecord "endrecord",
    Endrule "endrule", Endruleset "endruleset", Endstartstate "endstartstate",
    Endswitch "endswitch", Endwhile "endwhile", Enum "enum", Error "error", Exists "exists",
    For "for", Forall "forall", Function "function", If "if", Invariant "invariant",
    Ismember "ismember", Isundefined "isundefined", Of "of", Procedure "procedure", Put "put",
    Record "record", Return "return", Rule "rule", Ruleset "ruleset", Scalarset "scalarset",
    Startstate "startstate", Switch "switch", Then "then", To "to", Type "type",
    Undefine "undefine", Union "union", Var "var", While "while",
}

/// Kind of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tok {
    /// Name.
    Name,
    /// Reserved word.
    Key(Key),
    /// Number.
    Number,
    /// Text in quotation marks.
    Text,
    /// Operator or bracket.
    Sign(&'static str),
    /// End of the file.
    End,
}

/// Token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// Kind.
    pub tok: Tok,
    /// Place.
    pub span: Span,
}

/// Operators and brackets, longer ones first.
const SIGNS: [&str; 36] = [
    "==>", ":=", "..", ">=", ">>", "->", "<=", "<<", "!=", "==", "&&", "||", "^", "~", "&", "!",
    "|", ":", "=", ">", "<", "-", "%", "+", ";", "{", "}", ",", "[", "]", ".", "(", ")", "/", "*",
    "?",
];
/// Operators of one character, with the operator or word that they stand for.
const SINGLE: [(char, Tok); 15] = [
    ('≔', Tok::Sign(":=")),
    ('≥', Tok::Sign(">=")),
    ('→', Tok::Sign("->")),
    ('≤', Tok::Sign("<=")),
    ('≠', Tok::Sign("!=")),
    ('⇒', Tok::Sign("==>")),
    ('¬', Tok::Sign("!")),
    ('∧', Tok::Sign("&&")),
    ('∨', Tok::Sign("||")),
    ('÷', Tok::Sign("/")),
    ('∕', Tok::Sign("/")),
    ('−', Tok::Sign("-")),
    ('×', Tok::Sign("*")),
    ('∀', Tok::Key(Key::Forall)),
    ('∃', Tok::Key(Key::Exists)),
];

/// Piece of a text: a token, or a comment.
pub enum Piece {
    /// Token.
    Token(Tok),
    /// Comment, without the line break after it.
    Comment,
}

/// Note of an error at a comment of another language.
pub(crate) const COMMENTS: &str = "a comment is `-- …` up to the end of the line, or `/* … */`";

/// Returns the first piece of a text that does not start with white space, and its length.
///
/// # Errors
///
/// An invalid character, a text or comment without an end, a real number: a message and the length
/// of the offending text.
pub fn piece(text: &str) -> Result<(Piece, usize), (String, usize)> {
    let bytes = text.as_bytes();
    let first = text.chars().next().unwrap_or(' ');
    let sign = |tok, length| Ok((Piece::Token(tok), length));
    if text.starts_with("--") {
        // Neither tool ends a comment at a carriage return alone.
        let line = &text[..text.find('\n').unwrap_or(text.len())];
        return Ok((Piece::Comment, line.trim_end_matches('\r').len()));
    }
    if text.starts_with("/*") {
        let end = text.get(2..).and_then(|rest| rest.find("*/"));
        return match end {
            Some(end) => Ok((Piece::Comment, end + 4)),
            None => Err(("this comment is not closed, expected `*/`".into(), 2)),
        };
    }
    if first.is_ascii_alphabetic() {
        let length = word(bytes);
        let lower = text[..length].to_ascii_lowercase();
        return sign(Key::of(&lower).map_or(Tok::Name, Tok::Key), length);
    }
    if first == '_' {
        let length = word(bytes);
        let name = &text[..length];
        return Err((format!("`{name}` is no name: names begin with a letter"), length));
    }
    if first.is_ascii_digit() || first == '.' && bytes.get(1).is_some_and(u8::is_ascii_digit) {
        return number(text);
    }
    if matches!(first, '"' | '“') {
        return quoted_text(text, first);
    }
    if let Some(s) = SIGNS.iter().find(|s| text.starts_with(**s)) {
        return sign(Tok::Sign(s), s.len());
    }
    if let Some((c, tok)) = SINGLE.iter().find(|s| s.0 == first) {
        return sign(*tok, c.len_utf8());
    }
    Err((format!("unexpected character `{first}`"), first.len_utf8()))
}

/// Returns the length of a name or keyword.
fn word(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
}

fn number(text: &str) -> Result<(Piece, usize), (String, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    if bytes.len() > 2 && bytes[0] == b'0' && matches!(bytes[1], b'x' | b'X') {
        let length = bytes[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
        if length > 0 {
            return Ok((Piece::Token(Tok::Number), 2 + length));
        }
    }
    let whole = digits(0);
    if bytes.get(whole) == Some(&b'.') && bytes.get(whole + 1).is_some_and(u8::is_ascii_digit) {
        let length = whole + 1 + digits(whole + 1);
        let message = format!(
            "`{}` is a real number, which is not supported: expected an integer",
            &text[..length]
        );
        return Err((message, length));
    }
    Ok((Piece::Token(Tok::Number), whole))
}

/// Reads a text: from `"` to `"`, or from `“` to `”` or `"`. A backslash protects the character
/// that follows it.
fn quoted_text(text: &str, opener: char) -> Result<(Piece, usize), (String, usize)> {
    let mut characters = text.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => drop(characters.next()),
            '"' => return Ok((Piece::Token(Tok::Text), at + 1)),
            '”' if opener == '“' => return Ok((Piece::Token(Tok::Text), at + c.len_utf8())),
            _ => {}
        }
    }
    Err(("this text is not closed, expected `\"`".into(), opener.len_utf8()))
}

/// Returns the tokens of a text, the last of which is [`Tok::End`].
///
/// # Errors
///
/// Those of [`piece`]; a text of 4 GiB or more.
pub fn tokens(source: SourceId, text: &str) -> Result<Vec<Token>, Diagnostic> {
    if u32::try_from(text.len()).is_err() {
        return Err(Diagnostic::new(Stage::Syntax, "the file has 4 GiB or more"));
    }
    let span = |from: usize, to: usize| Span { source, start: from as u32, end: to as u32 };
    let mut out = Vec::with_capacity(text.len() / 4);
    let mut at = if text.starts_with('\u{feff}') { 3 } else { 0 };
    while let Some(first) = text[at..].chars().next() {
        if first.is_ascii_whitespace() || first == '\u{b}' {
            at += 1;
            continue;
        }
        match piece(&text[at..]) {
            Ok((Piece::Token(tok), length)) => {
                out.push(Token { tok, span: span(at, at + length) });
                at += length;
            }
            Ok((Piece::Comment, length)) => at += length,
            Err((message, length)) => {
                let real = first.is_ascii_digit() || first == '.';
                let stage = if real { Stage::Unsupported } else { Stage::Syntax };
                let error = Diagnostic::at(stage, span(at, at + length), message);
                return Err(if first == '#' { error.note(COMMENTS) } else { error });
            }
        }
    }
    // The end has the place of the last token: there is none behind the text.
    let end = out.last().map_or(span(0, 0), |t: &Token| t.span);
    out.push(Token { tok: Tok::End, span: end });
    Ok(out)
}
