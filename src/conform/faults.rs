//! Seeded faults: named edits of a machine's text, for measuring the quality of its tests.
//!
//! ```text
//! fault "a fence does not wait";
//! define fences = 1;                                     // a parameter that the fault needs
//! replace "(${fences} == 1 && b == [])" with "(${fences} == 1)";
//! ```
//!
//! A file is a list of faults, each with its edits and parameters. The text that an edit replaces
//! must occur exactly once in the machine. An edit that no longer matches the machine is therefore
//! an error, and not a fault that no test finds. Text in quotes is taken literally and may span
//! lines.

use mu_base::words::{self, Cursor, LexicalForm, TokenKind as Word};
use mu_base::{Diagnostic, SourceId, Span, Stage, narrow};

/// The replacement of one text by another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The text to replace.
    pub from: String,
    /// The replacement.
    pub to: String,
    /// The position of `from` in the file of faults.
    pub span: Span,
}

/// A named fault: edits of the machine and values of its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineFault {
    /// Its name.
    pub name: String,
    /// Its edits, in order.
    pub edits: Vec<Edit>,
    /// Parameters of the machine, with their values.
    pub defines: Vec<(String, String)>,
}

impl MachineFault {
    /// Parses a file of faults.
    pub fn parse(source: SourceId, text: &str) -> Result<Vec<MachineFault>, Diagnostic> {
        let tokens = words::tokens(source, text, 0, LexicalForm::Free)?;
        let mut cursor = Cursor::new(&tokens);
        let mut out: Vec<MachineFault> = Vec::new();
        let mut places: Vec<Span> = Vec::new();
        while !cursor.at_end() {
            let word = cursor.name("`fault`, `replace` or `define`")?;
            match (word.text, out.last_mut()) {
                ("fault", _) => {
                    let (name, span) =
                        quoted_text(&mut cursor, "the name of the fault, in quotes")?;
                    if let Some(i) = out.iter().position(|f| f.name == name) {
                        let message = format!("two faults have the name \"{name}\"");
                        return Err(Diagnostic::at(Stage::Syntax, span, message)
                            .related(places[i], "the first one"));
                    }
                    out.push(MachineFault { name, edits: Vec::new(), defines: Vec::new() });
                    places.push(span);
                }
                ("replace", Some(fault)) => {
                    let (from, span) =
                        quoted_text(&mut cursor, "a text of the machine, in quotes")?;
                    if from.is_empty() {
                        return Err(Diagnostic::at(
                            Stage::Syntax,
                            span,
                            "an empty text cannot be replaced",
                        ));
                    }
                    if !cursor.eat_word("with") {
                        return Err(cursor.unexpected("`with` and a text in quotes"));
                    }
                    let (to, _) = quoted_text(&mut cursor, "the text that replaces it, in quotes")?;
                    fault.edits.push(Edit { from, to, span });
                }
                ("define", Some(fault)) => {
                    let name = cursor.name("a parameter of the machine")?.text.to_string();
                    cursor.expect("=")?;
                    let value = match cursor.peek().kind {
                        Word::Name | Word::Number | Word::Text => {
                            cursor.take().text.trim_matches('"').to_string()
                        }
                        _ => return Err(cursor.unexpected("a value, or a text in quotes")),
                    };
                    fault.defines.push((name, value));
                }
                ("replace" | "define", None) => {
                    return Err(Diagnostic::at(
                        Stage::Syntax,
                        word.span,
                        format!("`{}` occurs before the first fault", word.text),
                    )
                    .note("expected `fault \"NAME\";`"));
                }
                (other, _) => {
                    return Err(Diagnostic::at(
                        Stage::Syntax,
                        word.span,
                        format!("unknown keyword `{other}`"),
                    )
                    .note("expected `fault`, `replace` or `define`"));
                }
            }
            cursor.expect(";")?;
        }
        match out.iter().position(|f| f.edits.is_empty()) {
            Some(i) => Err(Diagnostic::at(Stage::Syntax, places[i], "the fault has no edits")
                .note("expected `replace … with …;`")),
            None if out.is_empty() => {
                let end = Span {
                    source,
                    start: narrow::index(text.len()),
                    end: narrow::index(text.len()),
                };
                Err(Diagnostic::at(Stage::Syntax, end, "the file contains no faults")
                    .note("expected `fault \"NAME\";`"))
            }
            None => Ok(out),
        }
    }
    /// Applies the edits to the text of the machine. Error: a text to replace does not occur
    /// exactly once.
    pub fn apply(&self, machine: &str) -> Result<String, Diagnostic> {
        let mut text = machine.to_string();
        for edit in &self.edits {
            let found = text.matches(edit.from.as_str()).count();
            if found != 1 {
                let message = format!("this text occurs {found} times in the machine, not once");
                return Err(Diagnostic::at(Stage::Type, edit.span, message)
                    .note(format!("the fault is \"{}\"", self.name)));
            }
            text = text.replacen(&edit.from, &edit.to, 1);
        }
        Ok(text)
    }
}

fn quoted_text(cursor: &mut Cursor<'_, '_>, what: &str) -> Result<(String, Span), Diagnostic> {
    let token = cursor.peek();
    if token.kind != Word::Text {
        return Err(cursor.unexpected(what));
    }
    cursor.take();
    Ok((token.text[1..token.text.len() - 1].to_string(), token.span))
}
