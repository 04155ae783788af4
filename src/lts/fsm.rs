//! Reader and writer of FSM files (`.fsm`), the format of mCRL2's state visualiser.
//!
//! ```text
//! full(2) Bool "false" "true"      parameters: name, number of values, sort, values
//! ---
//! 0                                a line for each state: the numbers of its parameters' values
//! 1
//! ---
//! 1 2 "enter"                      source, target, label
//! ---                              with the next line, may be absent: the initial state is 1 then
//! 1                                the initial state
//! ```
//! Reading: the lines of states are counted, and their values ignored. If the file lists states, a
//! transition that names another state is an error; otherwise the states are those that transitions
//! name, and those with smaller numbers. The first state always exists. Writing: the initial state
//! comes first. There are no parameters, except for a dummy one if some state has no transition and
//! would be lost. Labels with a quotation mark or a line break are rejected: the format cannot
//! represent them.
//!
//! Cost: one pass, O(bytes). Invariant: reading a written file gives the same system, up to the
//! number of the initial state.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};

use ahash::AHashMap;

use super::{Labels, Lts};
use mu_base::files::drop_byte_order_mark;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage};

/// Reads a system.
///
/// # Errors
/// A line that does not match the format, with its place; a distribution over states.
pub fn read(input: impl Read) -> Result<Lts, Diagnostic> {
    read_any(Box::new(input))
}

fn read_any(input: Box<dyn Read + '_>) -> Result<Lts, Diagnostic> {
    let mut input = BufReader::with_capacity(1 << 20, input);
    let (mut line, mut number, mut part) = (Vec::new(), 0u64, 0);
    let (mut parameters, mut valued, mut states) = (0usize, 0usize, 1usize);
    let mut table = Labels::default();
    let mut known: AHashMap<String, LabelId> = AHashMap::new();
    known.insert(table.texts[0].clone(), LabelId::TAU);
    let mut edges = Vec::new();
    let mut initial: Option<StateId> = None;
    loop {
        line.clear();
        number += 1;
        if input
            .read_until(b'\n', &mut line)
            .map_err(|e| Diagnostic::new(Stage::File, format!("cannot read: {e}")))?
            == 0
        {
            break;
        }
        if number == 1 {
            drop_byte_order_mark(&mut line);
        }
        let text = std::str::from_utf8(&line).map_err(|e| {
            let shown = String::from_utf8_lossy(&line).chars().take(200).collect::<String>();
            Diagnostic::in_line(
                Stage::File,
                number,
                e.valid_up_to() + 1,
                shown,
                "a byte here is not UTF-8 text",
            )
        })?;
        let text = text.trim_end_matches(['\n', '\r']);
        let fault = |column: usize, expected: &str| {
            let found: String = text.get(column..).unwrap_or_default().chars().take(40).collect();
            let found =
                if found.is_empty() { "the end of the line".into() } else { format!("{found:?}") };
            let column = text.get(..column).map_or(0, |t| t.chars().count());
            let shown: String = text.chars().take(column + 200).collect();
            Diagnostic::in_line(
                Stage::File,
                number,
                column + 1,
                shown,
                format!("expected {expected}, found {found}"),
            )
        };
        if text.trim() == "---" {
            part += 1;
            if part > 3 {
                return Err(fault(0, "the end of the file after the initial state"));
            }
            continue;
        }
        match part {
            _ if text.trim().is_empty() => valued += usize::from(part == 1 && parameters == 0),
            0 => {
                parameter(text).map_err(|(column, expected)| fault(column, expected))?;
                parameters += 1;
            }
            1 => {
                let values = text.split_ascii_whitespace();
                if values.clone().count() != parameters
                    || values.clone().any(|v| v.parse::<u64>().is_err())
                {
                    return Err(fault(
                        0,
                        &format!("a number for each of the {parameters} parameters"),
                    ));
                }
                valued += 1;
            }
            3 if initial.is_some() => return Err(fault(0, "the end of the file")),
            3 => {
                let (state, rest) =
                    state_number(text, 0, "the number of the initial state, from 1")
                        .map_err(|(column, expected)| fault(column, expected))?;
                if !text[rest..].trim().is_empty() {
                    return Err(fault(rest, "the end of the line"));
                }
                if state.index() >= states.max(valued) {
                    let expected = format!("a state up to {}", states.max(valued));
                    return Err(fault(0, &expected));
                }
                initial = Some(state);
            }
            _ => {
                let (from, to, label) =
                    transition(text).map_err(|(column, expected)| fault(column, expected))?;
                let lists = parameters > 0 && valued > 0;
                if lists && [from, to].iter().any(|s| s.index() >= valued) {
                    let expected =
                        format!("states up to {valued}, the number of states in the file");
                    return Err(fault(0, &expected));
                }
                states = states.max(from.index() + 1).max(to.index() + 1);
                let next = LabelId::new(table.texts.len());
                let label = match known.get(label) {
                    Some(label) => *label,
                    None => {
                        known.insert(label.to_string(), next);
                        table.texts.push(label.to_string());
                        next
                    }
                };
                edges.push((from, label, to));
            }
        }
    }
    if part < 2 {
        return Err(Diagnostic::new(Stage::File, "the file ends before its transitions")
            .note("expected two lines `---`, and transitions after the second"));
    }
    // A state costs memory even without transitions: a single number must not demand gigabytes.
    if states > valued && states > (1 << 24) + 16 * edges.len() {
        let message = format!(
            "the file has {} transitions, but one of them names state {states}",
            edges.len()
        );
        return Err(Diagnostic::new(Stage::File, message));
    }
    Ok(Lts::from_edges(initial.unwrap_or(StateId::of(0)), states.max(valued), &edges, table))
}

/// Column of a syntax error, and the text that was expected there.
type Fault = (usize, &'static str);

/// Checks the form of `name(3) Sort "x" "y" "z"`.
fn parameter(text: &str) -> Result<(), Fault> {
    let open = text
        .find('(')
        .ok_or((text.len(), "`(` and the number of values after the name of a parameter"))?;
    let close = text[open..]
        .find(')')
        .map(|i| open + i)
        .ok_or((text.len(), "`)` after the number of values"))?;
    match text[open + 1..close].trim().parse::<u64>() {
        Ok(_) => Ok(()),
        Err(_) => Err((open + 1, "the number of values of a parameter")),
    }
}

/// Parses the number of a state from a column on. Returns the column after it.
fn state_number(
    text: &str,
    from: usize,
    expected: &'static str,
) -> Result<(StateId, usize), Fault> {
    let at = text.len() - text[from..].trim_start().len();
    if text[at..].starts_with('[') {
        return Err((at, "a single state: distributions over states are not supported"));
    }
    let length = text[at..].bytes().take_while(u8::is_ascii_digit).count();
    let number = text[at..at + length].parse::<u32>().ok().filter(|n| *n > 0);
    Ok((StateId::of(number.ok_or((at, expected))? - 1), at + length))
}

/// Parses `1 2 "label"`.
fn transition(text: &str) -> Result<(StateId, StateId, &str), Fault> {
    let (from, at) = state_number(text, 0, "the number of the source state, from 1")?;
    let (to, mut at) = state_number(text, at, "the number of the target state, from 1")?;
    at += text[at..].len() - text[at..].trim_start().len();
    let rest = text[at..].trim_end();
    match rest.strip_prefix('"').and_then(|r| r.strip_suffix('"')) {
        Some(label) => Ok((from, to, label)),
        None => Err((at, "a label in quotation marks")),
    }
}

/// Writes a system.
///
/// # Errors
/// A label has a quotation mark or a line break; the file cannot be written.
pub fn write(lts: &Lts, output: impl Write) -> Result<(), Diagnostic> {
    if let Some(bad) = lts.table.texts.iter().find(|t| t.contains(['"', '\n', '\r'])) {
        return Err(Diagnostic::new(
            Stage::File,
            format!(
                "the label {bad:?} has a quotation mark or a line break, which an .fsm file cannot hold"
            ),
        ));
    }
    let output: Box<dyn Write + '_> = Box::new(output);
    let mut out = BufWriter::with_capacity(1 << 20, output);
    rows(lts, &mut out)
        .and_then(|()| out.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

/// Writes all three parts of the file.
fn rows(lts: &Lts, out: &mut BufWriter<Box<dyn Write + '_>>) -> std::io::Result<()> {
    // The initial state is swapped with the first.
    let number = |s: StateId| match s {
        s if s == lts.initial => 1,
        s if s.index() == 0 => u64::from(lts.initial.number()) + 1,
        s => u64::from(s.number()) + 1,
    };
    let mut named = vec![false; lts.state_count()];
    named[lts.initial.index()] = true;
    for s in 0..lts.state_count() {
        for (_, target) in lts.successors(StateId::new(s)) {
            (named[s], named[target.index()]) = (true, true);
        }
    }
    let lost = named.iter().any(|n| !n);
    out.write_all(if lost { b"state(1) Nat \"0\"\n---\n" } else { b"---\n" })?;
    if lost {
        named.iter().try_for_each(|_| out.write_all(b"0\n"))?;
    }
    out.write_all(b"---\n")?;
    for s in 0..lts.state_count() {
        let s = StateId::new(s);
        for (label, target) in lts.successors(s) {
            writeln!(
                out,
                "{} {} \"{}\"",
                number(s),
                number(target),
                lts.table.texts[label.index()]
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    fn rows_of(lts: &Lts) -> Vec<(u32, String, u32)> {
        let of = |s| {
            lts.successors(StateId::new(s))
                .map(move |(l, t)| (s as u32, lts.table.texts[l.index()].clone(), t.number()))
        };
        let mut all: Vec<_> = (0..lts.state_count()).flat_map(of).collect();
        all.sort();
        all
    }

    #[test]
    fn a_file_of_the_toolset_is_read() {
        let text = "n_P(3) Nat  \"0\" \"1\" \"2\"\nq_P(2) Bool  \"true\" \"false\"\n---\n0 0\n1 1\n2 0\n---\n1 1 \"tau\"\n1 2 \"a(0)\"\n3 1 \"a(3)|b\"\n";
        let lts = read(text.as_bytes()).unwrap();
        assert_eq!((lts.initial, lts.state_count()), (StateId::of(0), 3));
        assert_eq!(
            rows_of(&lts),
            [(0, "a(0)".into(), 1), (0, "tau".into(), 0), (2, "a(3)|b".into(), 0)]
        );
        assert_eq!(lts.labels[0], LabelId::TAU);
        let marked = read(format!("\u{feff}{text}").as_bytes()).unwrap();
        assert_eq!(rows_of(&marked), rows_of(&lts));
        // Without parameters, states have no lines.
        assert_eq!(read(&b"---\n---\n1 3 \"\"\n"[..]).unwrap().state_count(), 3);
        assert_eq!(read(&b"---\n---\n"[..]).unwrap().state_count(), 1);
    }

    #[test]
    fn systems_round_trip() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let states = 1 + random.below(9);
            let mut table = Labels::default();
            table.texts.extend(["a(1, [x])".to_string(), "b|c".into(), String::new()]);
            let edge = |random: &mut Random| {
                (
                    StateId::new(random.below(states)),
                    LabelId::new(random.below(4)),
                    StateId::new(random.below(states)),
                )
            };
            let edges: Vec<_> = (0..random.below(20)).map(|_| edge(&mut random)).collect();
            let initial = StateId::new(random.below(states));
            let lts = Lts::from_edges(initial, states, &edges, table);
            let mut bytes = Vec::new();
            write(&lts, &mut bytes).unwrap();
            let back = read(&bytes[..]).unwrap();
            let swap = |s: u32| {
                if s == initial.number() {
                    0
                } else if s == 0 {
                    initial.number()
                } else {
                    s
                }
            };
            let mut expected: Vec<_> =
                rows_of(&lts).into_iter().map(|(s, l, t)| (swap(s), l, swap(t))).collect();
            expected.sort();
            assert_eq!((back.state_count(), rows_of(&back)), (states, expected), "seed {seed}");
        }
    }

    #[test]
    fn damage_is_rejected_with_its_place() {
        let error = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert!(
            error("---\n---\n1 2 a\n").contains("a label in quotation marks"),
            "{}",
            error("---\n---\n1 2 a\n")
        );
        assert!(error("---\n---\n0 2 \"a\"\n").contains("from 1"));
        assert!(error("---\n---\n1 [2 1/2 3 1/2] \"a\"\n").contains("distributions"));
        assert!(error("x Nat\n---\n---\n").contains("number of values"));
        assert!(
            error("x(2) Nat \"0\" \"1\"\n---\n0 1\n---\n").contains("each of the 1 parameters")
        );
        let missing = error("x(2) Nat \"0\" \"1\"\n---\n0\n1\n---\n1 2 \"a\"\n1 3 \"b\"\n");
        assert!(missing.contains("line 7") && missing.contains("states up to 2"), "{missing}");
        let initial = read(&b"---\n---\n1 2 \"a\"\n---\n2\n"[..]).unwrap();
        assert_eq!((initial.initial, initial.state_count()), (StateId::of(1), 2));
        let after = |text: &str| error(&format!("---\n---\n1 2 \"a\"\n---\n{text}"));
        assert!(after("[1 1/2 2 1/2]\n").contains("distributions"));
        assert!(after("3\n").contains("a state up to 2"));
        assert!(after("1 2\n").contains("the end of the line"));
        assert!(after("1\n2\n").contains("the end of the file"));
        assert!(after("hello\n").contains("the initial state"));
        assert!(after("1\n---\n").contains("the end of the file"));
        assert!(error("---\n").contains("ends before its transitions"));
        assert!(error("---\n---\n1 4000000000 \"a\"\n").contains("4000000000"));
        let good = "x(2) Nat \"0\" \"1\"\n---\n0\n1\n---\n1 2 \"a\"\n2 1 \"b\"\n";
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let mut bad = good.as_bytes().to_vec();
            let at = random.below(bad.len());
            bad[at] ^= 1 << random.below(8);
            let _ = read(&bad[..]);
        }
        let mut table = Labels::default();
        table.texts.push("a\"b".into());
        let lts = Lts::from_edges(
            StateId::of(0),
            1,
            &[(StateId::of(0), LabelId::of(1), StateId::of(0))],
            table,
        );
        assert!(write(&lts, Vec::new()).unwrap_err().message.contains("quotation mark"));
    }
}
