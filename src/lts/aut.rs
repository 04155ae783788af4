//! Reader and writer of Aldebaran files (`.aut`, also `.aut.gz`).
//!
//! ```text
//! des (0, 2, 2)
//! (0, "send(1)", 1)
//! (1, tau, 0)
//! ```
//! The header gives initial state, number of transitions and number of states; states are numbered
//! from 0. There is one transition per line. The source is read from the front of the line and the
//! target from its end; the text between is the label. So a label may contain quotes (CADP writes
//! `"PUT !"x""`), backslashes, and commas. Quotes around it are dropped and its text is unchanged,
//! so reading and writing are inverse to each other. Labels without quotes are trimmed.
//!
//! Cost: one pass, O(bytes); memory of the transitions and the distinct labels only. Memory is
//! never allocated by the header alone. A gzip stream is recognised by its magic number.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};

use ahash::AHashMap;

use super::{Labels, Lts};
use mu_base::files::drop_byte_order_mark;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage, narrow};

/// Options of the reader.
#[derive(Clone, Debug)]
pub struct AutOptions {
    /// Label texts that denote the internal action: `tau` in mCRL2, `i` in CADP.
    pub internal: Vec<String>,
}

impl Default for AutOptions {
    fn default() -> Self {
        Self { internal: vec!["tau".into()] }
    }
}

/// Reads an LTS, plain or compressed by gzip. An error names line, column and the text there.
pub fn read(input: impl Read, options: &AutOptions) -> Result<Lts, Diagnostic> {
    let input: Box<dyn Read + '_> = Box::new(input);
    read_any(BufReader::with_capacity(1 << 20, input), options)
}

fn read_any(input: BufReader<Box<dyn Read + '_>>, options: &AutOptions) -> Result<Lts, Diagnostic> {
    read_plain(decompress(input).map_err(|e| read_error(&e))?, options)
}

/// First bytes of a stream that is compressed by gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Returns the bytes of a stream, decompressed if it is compressed by gzip.
///
/// # Errors
/// The first bytes cannot be read.
pub fn decompress<'a>(mut input: impl BufRead + 'a) -> std::io::Result<Box<dyn BufRead + 'a>> {
    Ok(if input.fill_buf()?.starts_with(&GZIP) {
        let plain = flate2::bufread::MultiGzDecoder::new(input);
        Box::new(BufReader::with_capacity(1 << 20, plain))
    } else {
        Box::new(input)
    })
}

/// Writes an LTS as text.
pub fn write(lts: &Lts, output: impl Write) -> Result<(), Diagnostic> {
    let output: Box<dyn Write + '_> = Box::new(output);
    let mut out = BufWriter::with_capacity(1 << 20, output);
    if let Some(bad) = lts.table.texts.iter().find(|t| t.contains('\n')) {
        return Err(Diagnostic::new(
            Stage::File,
            format!("the label {bad:?} contains a line break, which an .aut file cannot hold"),
        ));
    }
    write_rows(lts, &mut out)
        .and_then(|()| out.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

/// Writes an LTS as text compressed by gzip.
pub fn write_gz(lts: &Lts, output: impl Write) -> Result<(), Diagnostic> {
    let mut encoder = flate2::write::GzEncoder::new(output, flate2::Compression::fast());
    write(lts, &mut encoder)?;
    encoder
        .finish()
        .and_then(|mut o| o.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

fn write_rows(lts: &Lts, out: &mut BufWriter<Box<dyn Write + '_>>) -> std::io::Result<()> {
    writeln!(
        out,
        "des ({},{},{})",
        lts.initial.number(),
        lts.transition_count(),
        lts.state_count()
    )?;
    let middle: Vec<Vec<u8>> =
        lts.table.texts.iter().map(|t| format!(",\"{t}\",").into_bytes()).collect();
    let mut line = Vec::new();
    for s in 0..lts.state_count() {
        let source = StateId::new(s);
        for (label, target) in lts.successors(source) {
            line.clear();
            line.push(b'(');
            push_number(&mut line, source.number());
            line.extend_from_slice(&middle[label.index()]);
            push_number(&mut line, target.number());
            line.extend_from_slice(b")\n");
            out.write_all(&line)?;
        }
    }
    Ok(())
}

fn push_number(line: &mut Vec<u8>, mut n: u32) {
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + narrow::byte((n % 10) as usize);
        n /= 10;
        if n == 0 {
            break;
        }
    }
    line.extend_from_slice(&digits[at..]);
}

fn read_error(e: &std::io::Error) -> Diagnostic {
    Diagnostic::new(Stage::File, format!("cannot read: {e}"))
}

/// Syntax error in a line: column and expectation.
struct LineFault {
    column: usize,
    expected: String,
}

fn fault(column: usize, expected: impl Into<String>) -> LineFault {
    LineFault { column, expected: expected.into() }
}

/// Returns the diagnostic of a syntax error: place, offending text, expectation.
fn at_line(number: u64, line: &[u8], fault: &LineFault) -> Diagnostic {
    let text = String::from_utf8_lossy(line);
    let column = String::from_utf8_lossy(&line[..fault.column.min(line.len())]).chars().count();
    let rest: String = text.chars().skip(column).take(40).collect();
    let found = if rest.is_empty() { "the end of the line".into() } else { format!("{rest:?}") };
    // A line may be a megabyte long.
    let text: String = text.chars().take(column + 200).collect();
    if let Some(distribution) = distribution(line) {
        let message = format!("probabilities (`{distribution}`) are not supported here");
        let before = text.rfind(distribution).map_or(column, |at| text[..at].chars().count());
        return Diagnostic::in_line(Stage::Unsupported, number, before + 1, text, message).note(
            "`reduce` and `compare` read them with `--equivalence probabilistic`; values of \
             formulas need the model",
        );
    }
    Diagnostic::in_line(
        Stage::File,
        number,
        column + 1,
        text,
        format!("expected {}, found {found}", fault.expected),
    )
}

/// Returns the distribution in a line, states and probabilities in turn: `0 1/3 1 1/3 2`; `None` if
/// it has none.
fn distribution(line: &[u8]) -> Option<&str> {
    let is_one = |piece: &&str| {
        let words: Vec<&str> = piece.split_whitespace().collect();
        words.len() > 2
            && words.len() % 2 == 1
            && words.iter().enumerate().all(|(i, word)| {
                let numbers: Vec<&str> = word.split('/').collect();
                let is_number = |n: &&str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
                numbers.len() == 1 + i % 2 && numbers.iter().all(is_number)
            })
    };
    let text = std::str::from_utf8(line).ok()?.trim();
    // A header has it in the first place, a transition in the last one.
    let first = text.strip_prefix("des").map(|t| t.trim_start().trim_start_matches('('));
    let piece = match first {
        Some(text) => text.split(',').next(),
        None => text.strip_suffix(')')?.rsplit(',').next(),
    };
    piece.map(str::trim).filter(is_one)
}

fn skip_blanks(line: &[u8], mut at: usize) -> usize {
    while line.get(at).is_some_and(|b| matches!(b, b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// Expects one byte after blanks; returns the position after it.
fn expect(line: &[u8], at: usize, byte: u8) -> Result<usize, LineFault> {
    let at = skip_blanks(line, at);
    if line.get(at) == Some(&byte) {
        Ok(at + 1)
    } else {
        Err(fault(at, format!("'{}'", byte as char)))
    }
}

/// Reads a decimal number after blanks.
fn number(line: &[u8], at: usize, what: &str) -> Result<(u64, usize), LineFault> {
    let start = skip_blanks(line, at);
    let mut at = start;
    let mut value = 0u64;
    while let Some(d) = line.get(at).filter(|b| b.is_ascii_digit()) {
        value = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(d - b'0')))
            .ok_or_else(|| fault(start, format!("{what} below 2^64")))?;
        at += 1;
    }
    if at == start { Err(fault(start, what)) } else { Ok((value, at)) }
}

fn trim_end(line: &[u8]) -> &[u8] {
    let end =
        line.iter().rposition(|b| !matches!(b, b' ' | b'\t' | b'\r' | b'\n')).map_or(0, |i| i + 1);
    &line[..end]
}

/// Parses `des (initial, transitions, states)`.
fn header(line: &[u8]) -> Result<(u64, u64, u64), LineFault> {
    let at = skip_blanks(line, 0);
    if !line[at..].starts_with(b"des") {
        return Err(fault(at, "the header 'des (initial, transitions, states)'"));
    }
    let at = expect(line, at + 3, b'(')?;
    let (initial, at) = number(line, at, "the number of the initial state")?;
    let at = expect(line, at, b',')?;
    let (transitions, at) = number(line, at, "the number of transitions")?;
    let at = expect(line, at, b',')?;
    let states_at = skip_blanks(line, at);
    let (states, at) = number(line, at, "the number of states")?;
    let at = skip_blanks(line, expect(line, at, b')')?);
    if at != line.len() {
        return Err(fault(at, "the end of the line"));
    }
    if states > u64::from(u32::MAX) {
        return Err(fault(states_at, "fewer than 2^32 states"));
    }
    if initial >= states {
        return Err(fault(
            states_at,
            format!("more than {initial} states, as the initial state is {initial}"),
        ));
    }
    Ok((initial, transitions, states))
}

/// Parses `(source, label, target)`; the label without its quotes, with its column.
fn transition(line: &[u8], states: u64) -> Result<(u32, &[u8], usize, u32), LineFault> {
    let at = expect(line, 0, b'(')?;
    let source_at = skip_blanks(line, at);
    let (source, at) = number(line, at, "the number of the source state")?;
    let at = expect(line, at, b',')?;
    let label_at = skip_blanks(line, at);
    let Some(close) = line.len().checked_sub(1).filter(|&i| line[i] == b')' && i >= label_at)
    else {
        return Err(fault(line.len(), "')'"));
    };
    // From the end: `)`, blanks, digits, blanks, `,`.
    let before = |mut end: usize, keep: fn(u8) -> bool| {
        while end > label_at && keep(line[end - 1]) {
            end -= 1;
        }
        end
    };
    let blank: fn(u8) -> bool = |b| matches!(b, b' ' | b'\t');
    let digits_end = before(close, blank);
    let digits = before(digits_end, |b| b.is_ascii_digit());
    let comma = before(digits, blank);
    if digits == digits_end {
        return Err(fault(digits, "the number of the target state"));
    }
    if comma == label_at || line[comma - 1] != b',' {
        return Err(fault(digits, "a label, ',' and the number of the target state"));
    }
    let (target, _) = number(line, digits, "the number of the target state")?;
    let end = before(comma - 1, blank);
    let mut label = &line[label_at..end];
    let mut column = label_at;
    if label.first() == Some(&b'"') {
        if label.len() < 2 || label[label.len() - 1] != b'"' {
            return Err(fault(end, "'\"' at the end of the label"));
        }
        label = &label[1..label.len() - 1];
        column += 1;
    } else if label.is_empty() {
        return Err(fault(label_at, "a label"));
    }
    if source >= states {
        return Err(fault(
            source_at,
            format!("a state below {states}, the number of states in the header"),
        ));
    }
    if target >= states {
        return Err(fault(
            digits,
            format!("a state below {states}, the number of states in the header"),
        ));
    }
    // Both are below the number of states, which was checked to fit.
    Ok((narrow::word(source), label, column, narrow::word(target)))
}

fn read_plain(mut input: Box<dyn BufRead + '_>, options: &AutOptions) -> Result<Lts, Diagnostic> {
    let mut line = Vec::new();
    let mut number = 0u64;
    // The header may follow empty lines.
    let (initial, transitions, states) = loop {
        line.clear();
        number += 1;
        if input.read_until(b'\n', &mut line).map_err(|e| read_error(&e))? == 0 {
            return Err(Diagnostic::new(
                Stage::File,
                "the file is empty: expected the header 'des (initial, transitions, states)'",
            ));
        }
        if number == 1 {
            drop_byte_order_mark(&mut line);
        }
        let text = trim_end(&line);
        if !text.is_empty() {
            break header(text).map_err(|f| at_line(number, text, &f))?;
        }
    };
    let (header_line, header_text) =
        (number, String::from_utf8_lossy(trim_end(&line)).into_owned());

    let mut table = Labels::default();
    let mut ids: AHashMap<Vec<u8>, LabelId> = AHashMap::new();
    ids.insert(table.texts[0].clone().into_bytes(), LabelId::TAU);
    for text in &options.internal {
        ids.insert(text.clone().into_bytes(), LabelId::TAU);
    }
    if !options.internal.iter().any(|t| t == "tau") {
        // `tau` is then a visible label; it needs an id other than that of the internal action.
        ids.remove(b"tau".as_slice());
        if let Some(first) = options.internal.first() {
            table.texts[0].clone_from(first);
        }
    }
    let (mut sources, mut labels, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    let mut sorted = true;
    let mut last = 0u32;
    loop {
        line.clear();
        number += 1;
        if input.read_until(b'\n', &mut line).map_err(|e| read_error(&e))? == 0 {
            break;
        }
        let text = trim_end(&line);
        if text.is_empty() {
            continue;
        }
        let (source, label, column, target) =
            transition(text, states).map_err(|f| at_line(number, text, &f))?;
        let id = match ids.get(label) {
            Some(&id) => id,
            None => {
                let utf8 = std::str::from_utf8(label).map_err(|e| {
                    at_line(number, text, &fault(column + e.valid_up_to(), "a label in UTF-8"))
                })?;
                let id = LabelId::new(table.texts.len());
                table.texts.push(utf8.to_owned());
                ids.insert(label.to_vec(), id);
                id
            }
        };
        sorted &= last <= source;
        last = source;
        sources.push(source);
        labels.push(id);
        targets.push(StateId::of(target));
    }
    if targets.len() as u64 != transitions {
        return Err(Diagnostic::in_line(
            Stage::File,
            header_line,
            1,
            header_text.clone(),
            format!(
                "the header {header_text:?} announces {transitions} transitions, the file has {}",
                targets.len()
            ),
        ));
    }
    // Only rows can need much memory for a header alone.
    if states > (1 << 24) + 16 * transitions {
        return Err(Diagnostic::in_line(
            Stage::File,
            header_line,
            1,
            header_text.clone(),
            format!(
                "the header {header_text:?} announces {states} states, but most of them have no transition"
            ),
        ));
    }
    Ok(rows(
        StateId::new(initial as usize),
        states as usize,
        &sources,
        labels,
        targets,
        sorted,
        table,
    ))
}

fn rows(
    initial: StateId,
    states: usize,
    sources: &[u32],
    labels: Vec<LabelId>,
    targets: Vec<StateId>,
    sorted: bool,
    table: Labels,
) -> Lts {
    let mut offsets = vec![0u64; states + 1];
    for &s in sources {
        offsets[s as usize + 1] += 1;
    }
    for i in 0..states {
        offsets[i + 1] += offsets[i];
    }
    if sorted {
        return Lts { initial, offsets, labels, targets, table };
    }
    let mut fill = offsets[..states].to_vec();
    let mut ordered_labels = vec![LabelId::TAU; labels.len()];
    let mut ordered_targets = vec![StateId::of(0); targets.len()];
    for (i, &s) in sources.iter().enumerate() {
        let at = fill[s as usize] as usize;
        fill[s as usize] += 1;
        ordered_labels[at] = labels[i];
        ordered_targets[at] = targets[i];
    }
    Lts { initial, offsets, labels: ordered_labels, targets: ordered_targets, table }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_base::random::Random;

    fn parse(text: &str) -> Result<Lts, Diagnostic> {
        read(text.as_bytes(), &AutOptions::default())
    }

    #[test]
    fn labels_of_all_kinds() {
        let lts = parse(
            "\n des(1, 7, 3) \r\n(0,\"a(1, 2)\",1)\n(0, b(1,2) , 1)\n\n(1,\"PUT !\"x,y\",2)\"\", 2)\n(2,\"\",0)\n(2,tau,0)\n(2,\"tau\",1)\n(2,i,1)",
        )
        .unwrap();
        assert_eq!(lts.table.texts, ["tau", "a(1, 2)", "b(1,2)", "PUT !\"x,y\",2)\"", "", "i"]);
        assert_eq!(lts.initial, StateId::of(1));
        let labels: Vec<u32> = lts.labels.iter().map(|l| l.number()).collect();
        assert_eq!(labels, [1, 2, 3, 4, 0, 0, 5]);
        let cadp = read(
            "des (0,2,1)\n(0,i,0)\n(0,tau,0)\n".as_bytes(),
            &AutOptions { internal: vec!["i".into()] },
        )
        .unwrap();
        assert_eq!(cadp.labels, [LabelId::of(0), LabelId::of(1)]);
        assert_eq!(cadp.table.texts, ["i", "tau"]);
        let marked = parse("\u{feff}des (0,1,2)\n(0,\"a\",1)\n").unwrap();
        assert_eq!(marked.table.texts, ["tau", "a"]);
    }

    #[test]
    fn round_trip() {
        let mut random = Random::new(7);
        for seed in 0..50 {
            let states = 1 + random.below(30);
            let table = Labels {
                texts: vec![
                    "tau".into(),
                    "a".into(),
                    "b|c(\"q\")".into(),
                    "\\d,".into(),
                    "é ".into(),
                ],
            };
            let mut edges: Vec<_> = (0..random.below(100))
                .map(|_| {
                    (
                        StateId::new(random.below(states)),
                        LabelId::new(random.below(5)),
                        StateId::new(random.below(states)),
                    )
                })
                .collect();
            edges.sort();
            // Labels get their numbers in the order of the file.
            let lts = Lts::from_edges(StateId::new(random.below(states)), states, &edges, table);
            for gz in [false, true] {
                let mut bytes = Vec::new();
                if gz { write_gz(&lts, &mut bytes) } else { write(&lts, &mut bytes) }.unwrap();
                let back = read(bytes.as_slice(), &AutOptions::default()).unwrap();
                assert_eq!(
                    (back.initial, &back.offsets, &back.targets),
                    (lts.initial, &lts.offsets, &lts.targets),
                    "seed {seed}"
                );
                for (x, y) in back.labels.iter().zip(&lts.labels) {
                    assert_eq!(back.table.texts[x.index()], lts.table.texts[y.index()]);
                }
            }
        }
    }

    #[test]
    fn unsorted_rows_keep_their_order() {
        let lts = parse("des (0,4,2)\n(1,a,0)\n(0,b,1)\n(1,c,1)\n(0,a,0)\n").unwrap();
        assert_eq!(lts.offsets, [0, 2, 4]);
        let labels: Vec<u32> = lts.labels.iter().map(|l| l.number()).collect();
        assert_eq!(labels, [2, 1, 1, 3]);
    }

    #[test]
    fn refusals_name_place_and_text() {
        for (text, wanted) in [
            ("", "the file is empty"),
            (
                "dos (0,0,1)",
                "line 1, column 1: expected the header 'des (initial, transitions, states)', found \"dos (0,0,1)\"",
            ),
            ("des (0,0,1", "line 1, column 11: expected ')', found the end of the line"),
            ("des (3,0,2)", "line 1, column 10: expected more than 3 states"),
            ("des (0,0,99999999999)", "fewer than 2^32 states"),
            ("des (0,0,99999999999999999999999)", "below 2^64"),
            ("des (0,0,4000000000)", "but most of them have no transition"),
            ("des (0,2,1)\n(0,a,0)\n", "announces 2 transitions, the file has 1"),
            ("des (0,1,1)\n(0,a,1)\n", "line 2, column 6: expected a state below 1"),
            ("des (0,1,1)\n(7,a,0)\n", "line 2, column 2: expected a state below 1"),
            ("des (0,1,1)\n(0,\"a,0)\n", "expected '\"' at the end of the label"),
            ("des (0,1,1)\n(0,,0)\n", "line 2, column 4: expected a label"),
            ("des (0,1,1)\n(0,0)\n", "expected a label, ','"),
            (
                "des (0,1,1)\n(0,a,x)\n",
                "line 2, column 7: expected the number of the target state, found \")\"",
            ),
            (
                "des (0 1/2 1,0,2)\n",
                "line 1, column 6: probabilities (`0 1/2 1`) are not supported",
            ),
            (
                "des (0,1,3)\n(0,\"a,b\",0 1/3 1 1/3 2)\n",
                "line 2, column 10: probabilities (`0 1/3 1 1/3 2`) are not supported here",
            ),
            ("des (0,1,3)\n(0,a,0 1/3 1 1/3)\n", "expected a label, ','"),
            ("des (0,1,1)\n(0,a,0\n", "line 2, column 7: expected ')', found the end of the line"),
            ("des (0,1,1)\nhello\n", "line 2, column 1: expected '(', found \"hello\""),
            ("des (0,1,1)\n(", "expected the number of the source state"),
            ("des (0,1,1)\n(0,)", "expected the number of the target state"),
        ] {
            let d = parse(text).unwrap_err();
            let is_unsupported = wanted.contains("probabilities");
            assert_eq!(d.stage, if is_unsupported { Stage::Unsupported } else { Stage::File });
            assert!(d.to_string().contains(wanted), "{text:?}: {}", d);
        }
        let d =
            read(b"des (0,1,1)\n(0,\"a\xff\",0)\n".as_slice(), &AutOptions::default()).unwrap_err();
        assert!(d.to_string().contains("line 2, column 6: expected a label in UTF-8"), "{}", d);
        let d = read([0x1f, 0x8b, 8, 0].as_slice(), &AutOptions::default()).unwrap_err();
        assert!(d.message.starts_with("cannot read"), "{}", d.message);
    }

    #[test]
    fn damaged_files_never_panic() {
        let good = "des (0,3,2)\n(0,\"a\",1)\n(1,tau,0)\n(1, \"b\" ,1)\n".as_bytes();
        let mut random = Random::new(1);
        for _ in 0..20_000 {
            let mut bytes = good.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                match random.below(3) {
                    0 => bytes[at] = *random.choose(b"(),\"0 \n9des"),
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, *random.choose(b"(),\"0 \n9")),
                }
            }
            let _ = read(bytes.as_slice(), &AutOptions::default());
        }
    }
}
