//! Problems of an interface file for the editor: the parser of `conform`, over the edited text.
//!
//! In: a text. Out: the first error as the language server reports them: a range of lines and
//! columns from 0, columns in UTF-16 units, the message, and the severity. Cost: linear.

use mu_base::{Diagnostic, SourceMap};
use mu_conform::interface::Interface;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Returns the problems of a text, and the actions that its lines name if there is none.
pub(crate) fn problems(text: &str) -> Value {
    let mut sources = SourceMap::new();
    let source = sources.add("interface", text);
    match Interface::parse(source, text) {
        Ok(interface) => {
            let program =
                interface.program.iter().flat_map(|p| p.response.iter().chain([&p.request]));
            let internal = interface.internal.iter().map(|i| &i.label);
            let labels = interface.labels().chain(program).chain(internal);
            let actions: BTreeSet<&str> = labels.map(|l| l.action.as_str()).collect();
            json!({ "problems": [], "actions": actions })
        }
        Err(problem) => json!({ "problems": [problem_json(&sources, text, &problem)] }),
    }
}

fn problem_json(sources: &SourceMap, text: &str, problem: &Diagnostic) -> Value {
    let (line, column) = problem.span.map_or((1, 1), |s| sources.line_column(s));
    let length = problem.span.map_or(0, |s| sources.text(s).encode_utf16().count());
    let before = text.lines().nth(line - 1).unwrap_or_default().chars().take(column - 1);
    let start = before.map(char::len_utf16).sum::<usize>();
    let message = [&[problem.message.clone()][..], &problem.notes].concat().join("; ");
    json!({
        "range": {
            "start": { "line": line - 1, "character": start },
            "end": { "line": line - 1, "character": start + length.max(1) },
        },
        "severity": 1,
        "message": message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_line_has_its_place() {
        let good = "initial v0;\nload load(p, a, v);\nstore commit store(p, a, v);\n";
        let found = problems(good);
        assert_eq!(found["problems"], json!([]), "{found}");
        assert_eq!(found["actions"][0], "load");
        let bad = problems("initial v0;\nlaod load(p, a, v);\n");
        assert_eq!(bad["problems"][0]["range"]["start"], json!({ "line": 1, "character": 0 }));
        assert!(bad["problems"][0]["message"].as_str().unwrap().contains("laod"), "{bad}");
    }
}
