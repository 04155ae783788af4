//! Detection of misspelled commands.

use crate::output;
use mu_base::similar::similar_names;
use mu_base::{Diagnostic, SourceMap, Stage};

/// Returns an error if the first word looks like a mistyped command: it is no file and no option,
/// and it is similar to the name of a command.
pub(crate) fn reject_misspelling(words: &[String], commands: &[String]) -> Option<Diagnostic> {
    let word = words.get(1).filter(|w| !w.starts_with('-') && !w.contains(['.', '/']))?;
    if commands.contains(word) || mu_base::host::fs::exists(word).unwrap_or(false) {
        return None;
    }
    let similar = similar_names(word, commands.iter().map(String::as_str));
    let command = similar.first()?;
    let message = format!("there is no command and no file `{word}`");
    Some(Diagnostic::new(Stage::Usage, message).note(format!("did you mean `mu-check {command}`?")))
}

/// Prints an error that occurs before a session exists. Returns the exit code.
pub(crate) fn print_error(diagnostic: &Diagnostic, json: bool) -> u8 {
    let sources = SourceMap::new();
    eprint!("{}", diagnostic.render(&sources));
    if json {
        output::print_error(diagnostic, &sources);
    }
    diagnostic.exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let commands: Vec<String> = ["check", "explore", "eval", "new"].map(String::from).to_vec();
        let guess = |word: &str| {
            reject_misspelling(&["mu-check".into(), word.into()], &commands)
                .map(|d| d.notes.join(""))
        };
        assert_eq!(guess("explor"), Some("did you mean `mu-check explore`?".into()));
        assert_eq!(guess("chekc"), Some("did you mean `mu-check check`?".into()));
        for word in ["model", "explore", "explor.mcrl2", "./explor", "-explor", "no"] {
            assert_eq!(guess(word), None, "{word}");
        }
    }
}
