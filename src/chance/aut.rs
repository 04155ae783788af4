//! Reader and writer of Aldebaran files with probabilities, in the format of the reference.
//!
//! ```text
//! des (0 1/2 1, 2, 2)
//! (0, "head", 0 1/2 1)
//! (1, "tail", 0 1/2 1)
//! ```
//! A distribution takes the place of a state: states and their probabilities alternate,
//! `s0 p0 s1 p1 … sn`; the last state has the remaining probability. So a file without
//! probabilities is also valid. Cost: one pass. Errors name line, column and the expected text.

use crate::{DistId, Distributions, ProbabilisticSystem};
use ahash::AHashMap;
use mu_base::ids::{LabelId, StateId};
use mu_base::{Diagnostic, Stage, narrow};
use mu_lts::Labels;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use std::io::{BufRead, BufReader, Read, Write};

/// Writes a system as text.
pub fn write(system: &ProbabilisticSystem, output: impl Write) -> Result<(), Diagnostic> {
    let mut out = std::io::BufWriter::with_capacity(1 << 20, output);
    if let Some(bad) = system.table.texts.iter().find(|t| t.contains('\n')) {
        return Err(Diagnostic::new(
            Stage::File,
            format!("the label {bad:?} contains a line break, which an .aut file cannot hold"),
        ));
    }
    rows(system, &mut out)
        .and_then(|()| out.flush())
        .map_err(|e| Diagnostic::new(Stage::File, format!("cannot write: {e}")))
}

/// Returns a distribution as text.
pub fn text(distributions: &Distributions, dist: DistId) -> String {
    let mut text = String::new();
    let mut outcomes = distributions.outcomes(dist).peekable();
    while let Some((state, weight)) = outcomes.next() {
        text += &state.number().to_string();
        if outcomes.peek().is_some() {
            text += &format!(" {}/{} ", weight.numer(), weight.denom());
        }
    }
    text
}

fn rows(system: &ProbabilisticSystem, out: &mut impl Write) -> std::io::Result<()> {
    let initial = text(&system.distributions, system.initial);
    writeln!(out, "des ({initial},{},{})", system.step_count(), system.state_count())?;
    for s in 0..system.state_count() {
        for (label, target) in system.steps(StateId::new(s)) {
            writeln!(
                out,
                "({s},\"{}\",{})",
                system.table.texts[label.index()],
                text(&system.distributions, target)
            )?;
        }
    }
    Ok(())
}

/// Line of the input.
struct InputLine {
    number: u64,
    text: String,
}

impl InputLine {
    fn fault<T>(&self, at: &str, expected: &str) -> Result<T, Diagnostic> {
        let column = self.text.chars().count() - at.chars().count();
        let rest: String = at.chars().take(40).collect();
        let found =
            if rest.is_empty() { "the end of the line".into() } else { format!("{rest:?}") };
        let shown: String = self.text.chars().take(column + 200).collect();
        Err(Diagnostic::in_line(
            Stage::File,
            self.number,
            column + 1,
            shown,
            format!("expected {expected}, found {found}"),
        ))
    }

    fn number<'t>(&self, at: &'t str, expected: &str) -> Result<(u64, &'t str), Diagnostic> {
        let at = at.trim_start();
        let digits = at.len() - at.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        match at[..digits].parse() {
            Ok(n) => Ok((n, at[digits..].trim_start())),
            Err(_) => self.fault(at, expected),
        }
    }

    fn expect<'t>(&self, at: &'t str, sign: &str) -> Result<&'t str, Diagnostic> {
        match at.trim_start().strip_prefix(sign) {
            Some(rest) => Ok(rest.trim_start()),
            None => self.fault(at.trim_start(), &format!("`{sign}`")),
        }
    }

    /// Parses `s0 p0 s1 p1 … sn` up to the end.
    fn distribution(
        &self,
        mut at: &str,
        states: &mut u64,
        out: &mut Distributions,
    ) -> Result<DistId, Diagnostic> {
        let mut outcomes = Vec::new();
        let mut left = BigRational::one();
        loop {
            let start = at;
            let (state, rest) = self.number(at, "a state")?;
            let Some(number) = u32::try_from(state).ok().filter(|number| *number < u32::MAX) else {
                return self.fault(start, "a state below 4294967295");
            };
            *states = (*states).max(state + 1);
            let state = StateId::of(number);
            if rest.is_empty() {
                outcomes.push((state, left));
                return Ok(out.intern(outcomes));
            }
            let digits =
                |t: &str| t.len() - t.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let n = digits(rest);
            let above: BigInt = match rest[..n].parse() {
                Ok(above) => above,
                Err(_) => return self.fault(rest, "a probability such as `1/2`"),
            };
            let below = self.expect(&rest[n..], "/")?;
            let d = digits(below);
            let weight = match below[..d].parse::<BigInt>() {
                Ok(denominator) if !denominator.is_zero() => BigRational::new(above, denominator),
                _ => return self.fault(below, "a denominator above 0"),
            };
            left -= &weight;
            if left.is_negative() {
                return self.fault(rest, "probabilities with a sum of at most 1");
            }
            outcomes.push((state, weight));
            at = below[d..].trim_start();
        }
    }
}

/// Returns the text between the brackets of a line after `before`.
fn inside<'t>(line: &'t InputLine, before: &str) -> Result<&'t str, Diagnostic> {
    let start = line.expect(line.text.trim_end(), before)?;
    match line.expect(start, "(")?.strip_suffix(')') {
        Some(inside) => Ok(inside.trim_end()),
        None => line.fault("", "`)`"),
    }
}

/// Reads a system, with or without probabilities.
pub fn read(input: impl Read) -> Result<ProbabilisticSystem, Diagnostic> {
    let mut lines = BufReader::with_capacity(1 << 20, input).lines();
    let mut number = 0;
    let mut next = || -> Result<Option<InputLine>, Diagnostic> {
        for text in lines.by_ref() {
            number += 1;
            let text =
                text.map_err(|e| Diagnostic::new(Stage::File, format!("cannot read: {e}")))?;
            if !text.trim().is_empty() {
                return Ok(Some(InputLine { number, text }));
            }
        }
        Ok(None)
    };
    let Some(head) = next()? else {
        return Err(Diagnostic::new(Stage::File, "expected `des (…)`, found an empty file"));
    };
    let (mut distributions, mut states) = (Distributions::default(), 0u64);
    let body = inside(&head, "des")?;
    let parts: Vec<&str> = body.split(',').collect();
    let [initial, steps, count] = parts[..] else {
        return head
            .fault(body, "an initial distribution, the number of steps and the number of states");
    };
    let initial = head.distribution(initial.trim(), &mut states, &mut distributions)?;
    let (steps, _) = head.number(steps, "the number of steps")?;
    let (count, _) = head.number(count, "the number of states")?;
    let mut table = Labels::default();
    let mut known: AHashMap<String, LabelId> = AHashMap::from([("tau".to_string(), LabelId::TAU)]);
    let mut edges: Vec<(u32, LabelId, DistId)> = Vec::new();
    while let Some(line) = next()? {
        let body = inside(&line, "")?;
        let (source, rest) = line.number(body, "a state")?;
        let rest = line.expect(rest, ",")?;
        let Some(comma) = rest.rfind(',') else { return line.fault(rest, "a label and a target") };
        let (label, target) = (rest[..comma].trim(), rest[comma + 1..].trim());
        let label = label.strip_prefix('"').and_then(|l| l.strip_suffix('"')).unwrap_or(label);
        let target = line.distribution(target, &mut states, &mut distributions)?;
        if source >= count {
            return line.fault(body, &format!("a state below {count}"));
        }
        let label = *known.entry(label.to_string()).or_insert_with(|| {
            table.texts.push(label.to_string());
            LabelId::new(table.texts.len() - 1)
        });
        edges.push((narrow::word(source), label, target));
    }
    if states > count {
        return head.fault(body, &format!("at least {states} states, which the lines refer to"));
    }
    if edges.len() as u64 != steps {
        return head.fault(body, &format!("{} steps, the number of lines", edges.len()));
    }
    Ok(from_edges(initial, count as usize, edges, distributions, table))
}

/// Builds a system from steps in any order.
pub fn from_edges(
    initial: DistId,
    states: usize,
    mut edges: Vec<(u32, LabelId, DistId)>,
    distributions: Distributions,
    table: Labels,
) -> ProbabilisticSystem {
    edges.sort_by_key(|e| e.0);
    let mut offsets = vec![0u64; states + 1];
    edges.iter().for_each(|e| offsets[e.0 as usize + 1] += 1);
    (0..states).for_each(|i| offsets[i + 1] += offsets[i]);
    let labels = edges.iter().map(|e| e.1).collect();
    let targets = edges.iter().map(|e| e.2).collect();
    ProbabilisticSystem { initial, offsets, labels, targets, distributions, table }
}
