//! Litmus tests from parts of traces, in the format of the herd tools: X86, RISC-V, or AArch64.
//!
//! In: operations of a trace. Out: a test with the condition that its loads read the values of the
//! trace (`exists`), so that a model that forbids the part forbids the condition. Locations become
//! `x`, `y`, `z`, `a0`, …; values become small numbers, the initial one 0. Not expressible:
//! accesses of mixed sizes, more registers or locations than the language has here.

use crate::trace::{Annotations, Fence, Initial, OpenFact, Operation, OperationKind, Trace};
use std::fmt::Write;

/// Language of a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestLanguage {
    /// x86.
    X86,
    /// RISC-V.
    RiscV,
    /// AArch64.
    AArch64,
}

/// Limits on the loads of a thread and on locations: registers of the languages.
const MAX_LOADS: usize = 6;
const MAX_LOCATIONS: usize = 10;

/// Returns the name of a location.
fn name(location: usize) -> String {
    match location {
        0..3 => ["x", "y", "z"][location].to_string(),
        _ => format!("a{}", location - 3),
    }
}

/// Small numbers for the locations and values of a part.
#[derive(Default)]
struct SmallNumbers {
    locations: Vec<u32>,
    /// For each location: the initial value, if it is known or read, then the others.
    values: Vec<(Option<u64>, Vec<u64>)>,
}

impl SmallNumbers {
    fn location(&mut self, trace: &Trace, l: u32) -> Result<usize, String> {
        if let Some(at) = self.locations.iter().position(|k| *k == l) {
            return Ok(at);
        }
        let location = &trace.locations[l as usize];
        if location.mixed {
            return Err(format!("accesses of several sizes share `{}`", location.name));
        }
        if self.locations.len() == MAX_LOCATIONS {
            return Err(format!("it has more than {MAX_LOCATIONS} locations"));
        }
        let initial = match &location.initial {
            Initial::Zero => Some(0),
            Initial::Value(v) => Some(*v),
            Initial::Bytes(_) | Initial::Unknown => None,
        };
        self.locations.push(l);
        self.values.push((initial, Vec::new()));
        Ok(self.locations.len() - 1)
    }
    fn value(&mut self, location: usize, value: u64) -> u64 {
        let (initial, values) = &mut self.values[location];
        if *initial == Some(value) {
            return 0;
        }
        let at = values.iter().position(|v| *v == value).unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        at as u64 + 1
    }
}

/// Returns the instructions of a fence.
fn fence(language: TestLanguage, fence: Fence) -> Vec<String> {
    let full = fence.includes(Fence::WR);
    match language {
        // Only a store before a load is out of order.
        TestLanguage::X86 => full.then(|| "MFENCE".to_string()).into_iter().collect(),
        TestLanguage::AArch64 => match fence {
            f if Fence::ACQUIRE.includes(f) => vec!["DMB LD".into()],
            Fence::WW => vec!["DMB ST".into()],
            _ => vec!["DMB SY".into()],
        },
        TestLanguage::RiscV => {
            let named = [
                (Fence::FULL, "fence rw,rw"),
                (Fence::TSO, "fence.tso"),
                (Fence::ACQUIRE, "fence r,rw"),
                (Fence::RELEASE, "fence rw,w"),
            ];
            if let Some((_, text)) = named.iter().find(|n| n.0 == fence) {
                return vec![(*text).to_string()];
            }
            [("r", "r"), ("r", "w"), ("w", "r"), ("w", "w")]
                .into_iter()
                .filter(|(a, b)| fence.includes(Fence::between(a, b)))
                .map(|(a, b)| format!("fence {a},{b}"))
                .collect()
        }
    }
}

/// Returns the suffix of annotations, as `acquire`, `release`, or `both`.
fn annotation_suffix(mark: Annotations, words: [&'static str; 3]) -> &'static str {
    match (mark.acquires(), mark.has(Annotations::RELEASE)) {
        (true, true) => words[2],
        (true, false) => words[0],
        (false, true) => words[1],
        (false, false) => "",
    }
}

/// Returns the instructions of a pair of a load-reserve and a store-conditional, the register of
/// its result, and the register that is 0 if the store succeeds. `None` for a language without.
fn pair(
    language: TestLanguage,
    i: usize,
    mark: Annotations,
    (location, stored): (usize, u64),
) -> Option<(Vec<String>, String, String)> {
    let (base, success) = (20 + location, 13 + i);
    let (load, store) = (mark.of_load(), mark.of_store());
    match language {
        TestLanguage::X86 => None,
        TestLanguage::RiscV => {
            let words = [".aq", ".rl", ".aqrl"];
            let (load, store) = (annotation_suffix(load, words), annotation_suffix(store, words));
            let lines = vec![
                format!("ori x12,x0,{stored}"),
                format!("lr.w{load} x{},(x{base})", 5 + i),
                format!("sc.w{store} x{success},x12,(x{base})"),
            ];
            Some((lines, format!("x{}", 5 + i), format!("x{success}")))
        }
        TestLanguage::AArch64 => {
            let load = if load.acquires() { "LDAXR" } else { "LDXR" };
            let store = if store.has(Annotations::RELEASE) { "STLXR" } else { "STXR" };
            let lines = vec![
                format!("MOV W12,#{stored}"),
                format!("{load} W{i},[X{base}]"),
                format!("{store} W{success},W12,[X{base}]"),
            ];
            Some((lines, format!("X{i}"), format!("X{success}")))
        }
    }
}

/// Returns the instructions of an access, and the register of its result. `i`: the number of loads
/// before it in its thread.
fn access(
    language: TestLanguage,
    i: usize,
    o: &Operation,
    (location, stored): (usize, u64),
) -> (Vec<String>, String) {
    let (x, base) = (name(location), 20 + location);
    // A load or a store of a pair without the other half has the annotations of that half.
    let mark = if o.kind == OperationKind::Store { o.mark.of_store() } else { o.mark.of_load() };
    let (acquires, releases) = (mark.acquires(), mark.has(Annotations::RELEASE));
    match language {
        TestLanguage::X86 => {
            let r = ["EAX", "EBX", "ECX", "EDX", "ESI", "EDI"][i % MAX_LOADS];
            let lines = match o.kind {
                OperationKind::Load => vec![format!("MOV {r},[{x}]")],
                OperationKind::Store => vec![format!("MOV [{x}],${stored}")],
                _ => vec![format!("MOV {r},${stored}"), format!("XCHG [{x}],{r}")],
            };
            (lines, r.to_string())
        }
        TestLanguage::RiscV => {
            let r = format!("x{}", 5 + i);
            let put = format!("ori x12,x0,{stored}");
            let suffix = annotation_suffix(mark, [".aq", ".rl", ".aqrl"]);
            let lines = match o.kind {
                // A released load has no other instruction.
                OperationKind::Load if o.mark.is_pair() || releases => {
                    vec![format!("lr.w{suffix} {r},(x{base})")]
                }
                OperationKind::Load => vec![format!("lw{suffix} {r},0(x{base})")],
                OperationKind::Store => vec![put, format!("sw{suffix} x12,0(x{base})")],
                _ => vec![put, format!("amoswap.w{suffix} {r},x12,(x{base})")],
            };
            (lines, r)
        }
        TestLanguage::AArch64 => {
            let (r, put) = (format!("W{i}"), format!("MOV W12,#{stored}"));
            let suffix = annotation_suffix(mark, ["A", "L", "AL"]);
            let load = match (acquires, mark.has(Annotations::WEAK_ACQUIRE)) {
                (true, true) => "LDAPR",
                (true, false) => "LDAR",
                _ => "LDR",
            };
            let lines = match o.kind {
                OperationKind::Load => vec![format!("{load} {r},[X{base}]")],
                OperationKind::Store if releases => vec![put, format!("STLR W12,[X{base}]")],
                OperationKind::Store => vec![put, format!("STR W12,[X{base}]")],
                _ => vec![put, format!("SWP{suffix} W12,{r},[X{base}]")],
            };
            (lines, format!("X{i}"))
        }
    }
}

/// Writes a test. `finals`: indices of the required final values that belong to it.
///
/// # Errors
/// The reason why the part cannot be expressed.
pub fn litmus_test(
    trace: &Trace,
    operations: &[u32],
    finals: &[usize],
    title: &str,
    language: TestLanguage,
) -> Result<String, String> {
    let is_impossible = |o: &OpenFact| matches!(o, OpenFact::Impossible { operation, .. } if operations.contains(operation));
    if trace.open.iter().any(is_impossible) {
        return Err("a store-conditional succeeds without a reservation".into());
    }
    let mut names = SmallNumbers::default();
    // Unknown initial values: the value that some load reads and nobody stores.
    for &i in operations {
        let o = trace.operation(i as usize);
        if matches!(o.kind, OperationKind::Fence(_)) {
            continue;
        }
        let l = names.location(trace, o.location)?;
        let stored = operations.iter().any(|&s| {
            let s = trace.operation(s as usize);
            s.kind.stores() && s.location == o.location && s.stored == o.loaded
        });
        let is_known = o.kind.loads() && !trace.is_open(i as usize);
        if is_known && names.values[l].0.is_none() && !stored {
            names.values[l].0 = Some(o.loaded);
        }
    }
    let mut columns: Vec<Vec<String>> = Vec::new();
    let mut condition: Vec<String> = Vec::new();
    let mut used: Vec<Vec<usize>> = Vec::new();
    for thread in 0..trace.threads.len() {
        let range = trace.range(thread);
        let own = operations.iter().copied().filter(|i| range.contains(&(*i as usize)));
        let own: Vec<u32> = own.collect();
        if own.is_empty() {
            continue;
        }
        let number = columns.len();
        let (mut lines, mut loads, mut locations) = (Vec::new(), 0, Vec::new());
        for i in own {
            let o = trace.operation(i as usize);
            if let OperationKind::Fence(kind) = o.kind {
                lines.extend(fence(language, kind));
                continue;
            }
            let l = names.location(trace, o.location)?;
            let stored = if o.kind.stores() { names.value(l, o.stored) } else { 0 };
            let is_pair = o.kind == OperationKind::Update && o.mark.is_pair();
            let pair = is_pair.then(|| pair(language, loads, o.mark, (l, stored))).flatten();
            let (text, register) = match pair {
                Some((text, register, success)) => {
                    condition.push(format!("{number}:{success}=0"));
                    (text, register)
                }
                None => access(language, loads, &o, (l, stored)),
            };
            lines.extend(text);
            if !locations.contains(&l) {
                locations.push(l);
            }
            if o.kind.loads() && trace.is_open(i as usize) {
                loads += 1;
            } else if o.kind.loads() {
                loads += 1;
                condition.push(format!("{number}:{register}={}", names.value(l, o.loaded)));
            }
        }
        if loads > MAX_LOADS {
            return Err(format!("a thread has more than {MAX_LOADS} loads"));
        }
        columns.push(lines);
        used.push(locations);
    }
    for f in finals.iter().map(|f| &trace.finals[*f]) {
        if let Some(l) = names.locations.iter().position(|k| *k == f.location) {
            condition.push(format!("{}={}", name(l), names.value(l, f.value)));
        }
    }
    if condition.is_empty() {
        return Err("it has no load and no final value".into());
    }
    Ok(print(language, title, &names, &columns, &used, &condition))
}

/// Prints the head, the initial state, the table of code, and the condition.
fn print(
    language: TestLanguage,
    title: &str,
    names: &SmallNumbers,
    columns: &[Vec<String>],
    used: &[Vec<usize>],
    condition: &[String],
) -> String {
    let arch = match language {
        TestLanguage::X86 => "X86",
        TestLanguage::RiscV => "RISCV",
        TestLanguage::AArch64 => "AArch64",
    };
    let mut out = format!("{arch} {title}\n{{ ");
    if language == TestLanguage::X86 {
        for l in 0..names.locations.len() {
            let _ = write!(out, "{}=0; ", name(l));
        }
    } else {
        let register = if language == TestLanguage::RiscV { "x" } else { "X" };
        for (t, locations) in used.iter().enumerate() {
            for l in locations {
                let _ = write!(out, "{t}:{register}{}={}; ", 20 + l, name(*l));
            }
        }
    }
    out += "}\n";
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> =
        (columns.iter()).map(|c| c.iter().map(String::len).max().unwrap_or(0).max(2)).collect();
    let row = |cells: Vec<String>| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(c, w)| format!("{c:w$}")).collect();
        format!(" {} ;\n", padded.join(" | "))
    };
    out += &row((0..columns.len()).map(|t| format!("P{t}")).collect());
    for r in 0..rows {
        out += &row(columns.iter().map(|c| c.get(r).cloned().unwrap_or_default()).collect());
    }
    let _ = writeln!(out, "exists ({})", condition.join(" /\\ "));
    out
}
