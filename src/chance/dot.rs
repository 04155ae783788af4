//! Writer of Graphviz `.dot` digraphs. States are circles; a step with several outcomes leads to a
//! dot, and the edges from it have the probabilities. Cost: one pass.

use crate::{DistId, ProbabilisticSystem};
use mu_base::ids::StateId;
use mu_base::{Diagnostic, Stage};
use std::io::Write;

/// Writes a digraph.
pub fn write(system: &ProbabilisticSystem, output: impl Write) -> Result<(), Diagnostic> {
    let mut out = std::io::BufWriter::new(output);
    rows(system, &mut out)
        .and_then(|()| out.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

fn rows(system: &ProbabilisticSystem, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "digraph plts {{\n  node [shape=circle];")?;
    let mut shown = vec![false; system.distributions.len()];
    let mut place = |out: &mut dyn Write, dist: DistId| -> std::io::Result<String> {
        let outcomes: Vec<_> = system.distributions.outcomes(dist).collect();
        if let [(state, _)] = outcomes[..] {
            return Ok(state.number().to_string());
        }
        if !std::mem::replace(&mut shown[dist.index()], true) {
            writeln!(out, "  d{} [shape=point];", dist.0)?;
            for (state, weight) in outcomes {
                writeln!(
                    out,
                    "  d{} -> {} [label=\"{weight}\", style=dashed];",
                    dist.0,
                    state.number()
                )?;
            }
        }
        Ok(format!("d{}", dist.0))
    };
    let initial = place(out, system.initial)?;
    writeln!(out, "  start [shape=none, label=\"\"];\n  start -> {initial};")?;
    for s in 0..system.state_count() {
        writeln!(out, "  {s};")?;
        for (label, target) in system.steps(StateId::new(s)) {
            let text = system.table.texts[label.index()]
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let target = place(out, target)?;
            writeln!(out, "  {s} -> {target} [label=\"{text}\"];")?;
        }
    }
    writeln!(out, "}}")
}
