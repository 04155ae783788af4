//! Writer of Graphviz `.dot` digraphs, for pictures of small systems. Cost: one pass.

use std::io::Write;

use super::Lts;
use mu_base::ids::StateId;
use mu_base::{Diagnostic, Stage};

/// Writes a digraph: states are circles with their numbers, the initial state is drawn doubled.
pub fn write(lts: &Lts, output: impl Write) -> Result<(), Diagnostic> {
    let output: Box<dyn Write + '_> = Box::new(output);
    rows(lts, std::io::BufWriter::new(output))
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

fn rows(lts: &Lts, mut out: std::io::BufWriter<Box<dyn Write + '_>>) -> std::io::Result<()> {
    writeln!(
        out,
        "digraph lts {{\n  node [shape=circle];\n  {} [shape=doublecircle];",
        lts.initial.number()
    )?;
    let texts: Vec<String> = lts.table.texts.iter().map(|t| escape(t)).collect();
    for s in 0..lts.state_count() {
        let state = StateId::new(s);
        if lts.offsets[s] == lts.offsets[s + 1] && state != lts.initial {
            writeln!(out, "  {s};")?;
        }
        for (label, target) in lts.successors(state) {
            writeln!(out, "  {s} -> {} [label=\"{}\"];", target.number(), texts[label.index()])?;
        }
    }
    writeln!(out, "}}")?;
    out.flush()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Labels;
    use mu_base::ids::LabelId;

    #[test]
    fn quotes_are_escaped() {
        let table = Labels { texts: vec!["tau".into(), "a(\"x\\\")".into()] };
        let lts = Lts::from_edges(
            StateId::of(0),
            2,
            &[(StateId::of(0), LabelId::of(1), StateId::of(1))],
            table,
        );
        let mut bytes = Vec::new();
        write(&lts, &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(r#"0 -> 1 [label="a(\"x\\\")"];"#), "{text}");
        assert!(text.contains("\n  1;\n"), "{text}");
    }
}
