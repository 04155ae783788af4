//! Certificates: the reachable states of the products of a machine with the monitors, as a file.
//!
//! In: a machine that implements an order. Out: for each guess of a violation all states of the
//! product, an inductive invariant without an alarm. [`super::verify`] checks it by code of its
//! own. Text, one item a line:
//!
//! | line | meaning |
//! |---|---|
//! | `define N=V` | a parameter of the machine |
//! | `order tso` | the order within a processor |
//! | `processor P`, `address A` | names, numbered from 0 |
//! | `role first V` | the values of distinguished stores: `initial`, `first`, `second`, `other` |
//! | `value I TEXT` | a value of parameter I of the linear process, numbered from 0 by parameter |
//! | `state I J …` | a state of the machine: the number of each parameter's value |
//! | `open TEXT` | the label of a beginning, numbered from 0 |
//! | `guess cycle rf P A …`, `guess at read-read P A` | a guess: its visits; its pattern |
//! | `at M O … : I-J K …` | with monitor state M and the operations O in progress: states |
//!
//! The state of the monitor of a cycle has for each visit three digits: s1 (0 none, 1 issued, 2 in
//! memory), s2 (0, 1), the visit (0 outside, 1 entered, 2 ordered with a later exit, 3 left). At
//! one address: s1, s2, and the accesses of the pattern that have occurred. Cost: linear in the
//! states.

use super::decide::{Subject, Survey};
use super::effects::LabelReader;
use super::monitor::{Guess, coherence_guesses, cycle_guesses};
use super::order::ProcessorOrder;
use super::product::{Goal, Product};
use super::recheck;
use ahash::{AHashMap, AHashSet};
use mu_base::{Diagnostic, Stage, narrow};
use mu_model::Slot;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The first line of a file.
pub const HEAD: &str =
    "mu-check certificate of conformance for programs of every length, version 1";
/// The names of the roles of values.
pub const ROLES: [&str; 4] = ["initial", "first", "second", "other"];

/// States of the product with one state of the monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The state of the monitor.
    pub monitor: String,
    /// For each processor the number of the beginning of the operation in progress.
    pub open: Vec<Option<u32>>,
    /// States of the machine, ascending.
    pub states: Vec<u32>,
}

/// A certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Parameters of the machine, as `NAME=VALUE`.
    pub defines: Vec<String>,
    /// The name of the order.
    pub order: String,
    /// Processors.
    pub processors: Vec<String>,
    /// Addresses.
    pub addresses: Vec<String>,
    /// The values of the [`ROLES`].
    pub roles: [String; 4],
    /// Values of each parameter of the linear process.
    pub values: Vec<Vec<String>>,
    /// States of the machine: numbers of values.
    pub states: Vec<Vec<u32>>,
    /// Labels of beginnings of operations.
    pub begun: Vec<String>,
    /// Guesses with the states of their products.
    pub guesses: Vec<(String, Vec<Members>)>,
}

/// Writes a list of ascending numbers, consecutive ones as `first-last`.
fn ranges(numbers: &[u32]) -> String {
    let mut out = String::new();
    let mut i = 0;
    while i < numbers.len() {
        let mut j = i;
        while j + 1 < numbers.len() && numbers[j + 1] == numbers[j] + 1 {
            j += 1;
        }
        let _ = match j - i {
            0 => write!(out, " {}", numbers[i]),
            _ => write!(out, " {}-{}", numbers[i], numbers[j]),
        };
        i = j + 1;
    }
    out
}

impl Certificate {
    /// Returns the text of a file.
    pub fn text(&self) -> String {
        let mut out = format!("{HEAD}\n");
        let mut line = |word: &str, rest: &str| {
            let _ = writeln!(out, "{word} {rest}");
        };
        self.defines.iter().for_each(|d| line("define", d));
        line("order", &self.order);
        self.processors.iter().for_each(|p| line("processor", p));
        self.addresses.iter().for_each(|a| line("address", a));
        for (name, value) in ROLES.iter().zip(&self.roles) {
            line("role", &format!("{name} {value}"));
        }
        for (i, values) in self.values.iter().enumerate() {
            values.iter().for_each(|v| line("value", &format!("{i} {v}")));
        }
        for state in &self.states {
            let numbers: Vec<String> = state.iter().map(u32::to_string).collect();
            line("state", &numbers.join(" "));
        }
        self.begun.iter().for_each(|b| line("open", b));
        for (guess, all) in &self.guesses {
            line("guess", guess);
            for m in all {
                let open = m.open.iter().map(|o| o.map_or(" -".into(), |o| format!(" {o}")));
                let head = format!("{}{}", m.monitor, open.collect::<String>());
                line("at", &format!("{head} :{}", ranges(&m.states)));
            }
        }
        out
    }

    /// Reads a file. Error: a line is none of a certificate, with its place.
    pub fn read(text: &str) -> Result<Certificate, Diagnostic> {
        let mut out = Certificate::default();
        let mut lines = text.lines().enumerate();
        let wrong = |at: usize, line: &str, part: &str, wanted: &str| {
            let message = format!("expected {wanted}");
            Diagnostic::in_part(Stage::File, at as u64 + 1, line, part, message)
        };
        let first = lines.next().map_or("", |l| l.1);
        if first != HEAD {
            return Err(wrong(0, first, first, &format!("`{HEAD}`")));
        }
        for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, &line[line.len()..]));
            let wrong = |part: &str, wanted: &str| wrong(at, line, part, wanted);
            match word {
                "define" => out.defines.push(rest.into()),
                "order" => out.order = rest.into(),
                "processor" => out.processors.push(rest.into()),
                "address" => out.addresses.push(rest.into()),
                "role" => {
                    let pair = rest.split_once(' ');
                    let place = pair.and_then(|(r, v)| {
                        ROLES.iter().position(|known| *known == r).map(|i| (i, v))
                    });
                    let (i, value) = place.ok_or_else(|| wrong(rest, "a role and a value"))?;
                    out.roles[i] = value.into();
                }
                "value" => {
                    let pair = rest.split_once(' ');
                    let known = pair.and_then(|(i, v)| Some((i.parse::<usize>().ok()?, v)));
                    let (i, value) = known
                        .filter(|k| k.0 <= out.values.len())
                        .ok_or_else(|| wrong(rest, "a parameter and a value"))?;
                    if i == out.values.len() {
                        out.values.push(Vec::new());
                    }
                    out.values[i].push(value.into());
                }
                "state" => {
                    let numbers: Option<Vec<u32>> =
                        rest.split_whitespace().map(|n| n.parse().ok()).collect();
                    let within = |numbers: &Vec<u32>| {
                        numbers.len() == out.values.len()
                            && numbers.iter().zip(&out.values).all(|(n, v)| (*n as usize) < v.len())
                    };
                    let state = numbers.filter(within);
                    out.states.push(
                        state.ok_or_else(|| {
                            wrong(rest, "the number of a value of each parameter")
                        })?,
                    );
                }
                "open" => out.begun.push(rest.into()),
                "guess" => out.guesses.push((rest.into(), Vec::new())),
                "at" => {
                    let members = out.members(rest);
                    let members = members.ok_or_else(|| wrong(rest, "states of a product"))?;
                    let last = out.guesses.last_mut();
                    last.ok_or_else(|| wrong(word, "a guess"))?.1.push(members);
                }
                _ => return Err(wrong(word, "a line of a certificate")),
            }
        }
        Ok(out)
    }

    /// Reads the rest of an `at` line; `None` if it has another form.
    fn members(&self, text: &str) -> Option<Members> {
        let (head, list) = text.split_once(':')?;
        let mut words = head.split_whitespace();
        let monitor = words.next()?.to_string();
        let mut open = Vec::new();
        for word in words {
            let number = match word {
                "-" => None,
                n => Some(n.parse().ok().filter(|n| (*n as usize) < self.begun.len())?),
            };
            open.push(number);
        }
        let mut states: Vec<u32> = Vec::new();
        for word in list.split_whitespace() {
            let (from, to) = word.split_once('-').unwrap_or((word, word));
            let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
            let ascends = states.last().is_none_or(|last| *last < from);
            if from > to || to as usize >= self.states.len() || !ascends {
                return None;
            }
            states.extend(from..=to);
        }
        Some(Members { monitor, open, states })
    }
}

/// The state of a monitor, with the operations in progress.
type PatternState = (String, Vec<Option<u32>>);

/// Computes the certificate of an order that no run violates. `subject.machine` is the machine
/// without reductions, `value_text` prints the value of a parameter. Error: a limit.
pub fn certificate(
    subject: &Subject<'_>,
    survey: &Survey,
    order: ProcessorOrder,
    value_text: &dyn Fn(Slot, u32) -> String,
) -> Result<Certificate, Diagnostic> {
    let mut guesses = coherence_guesses(survey.size);
    guesses.extend(cycle_guesses(survey.size, order));
    let reader = LabelReader::new(subject.interface, &survey.alphabet)?;
    let actions = subject.actions();
    let product =
        Product::new(subject.machine, &reader, &actions, (survey.roles, &guesses), Goal::Alarm);
    let sorted = |states: AHashSet<Vec<u32>>| {
        let mut all: Vec<Vec<u32>> = states.into_iter().collect();
        all.sort_unstable();
        all
    };
    let machine = sorted(recheck::states_of(subject.machine, subject.budget)?);
    let reached = sorted(recheck::states(&product, subject.budget)?);
    let width = product.machine_width();
    let names = &survey.alphabet.names;
    let name = |v: u32| names.values[v as usize].clone();
    let roles = [survey.roles.initial, survey.roles.first, survey.roles.second, survey.roles.other];
    let mut out = Certificate {
        order: order.name().into(),
        processors: names.processors.clone(),
        addresses: names.addresses.clone(),
        roles: roles.map(name),
        values: vec![Vec::new(); width],
        ..Certificate::default()
    };
    // The initial state is state 0.
    let initial = subject.machine.initial();
    let mut numbers: Vec<AHashMap<u32, u32>> = vec![AHashMap::new(); width];
    let mut places: AHashMap<&[u32], u32> = AHashMap::new();
    for state in std::iter::once(&initial).chain(machine.iter().filter(|s| **s != initial)) {
        let mut row = Vec::with_capacity(width);
        for (slot, value) in state.iter().enumerate() {
            let next = narrow::index(out.values[slot].len());
            row.push(*numbers[slot].entry(*value).or_insert_with(|| {
                out.values[slot].push(value_text(slot as Slot, *value));
                next
            }));
        }
        places.insert(state, narrow::index(out.states.len()));
        out.states.push(row);
    }
    let mut begun: AHashMap<u32, u32> = AHashMap::new();
    let mut all: Vec<BTreeMap<PatternState, Vec<u32>>> = vec![BTreeMap::new(); guesses.len()];
    for state in &reached {
        let (own, added) = state.split_at(width);
        // Before the choice of a guess.
        let Some(guess) = product.guess_number(state) else { continue };
        let at = *places.get(own).ok_or_else(|| {
            Diagnostic::internal("the machine of a product is in a state that it does not reach")
        })?;
        let open = added[3..].iter().map(|event| {
            let event = event.checked_sub(1)?;
            let next = narrow::index(out.begun.len());
            Some(*begun.entry(event).or_insert_with(|| {
                let event = &survey.alphabet.events[event as usize];
                out.begun.push(survey.alphabet.event_text(subject.interface, event));
                next
            }))
        });
        let mut open: Vec<Option<u32>> = open.collect();
        open.resize(names.processors.len(), None);
        all[guess].entry((guesses[guess].digits(added[2]), open)).or_default().push(at);
    }
    for (guess, members) in guesses.iter().zip(all) {
        let members = members.into_iter().map(|((monitor, open), mut states)| {
            states.sort_unstable();
            Members { monitor, open, states }
        });
        out.guesses.push((guess.file_text(), members.collect()));
    }
    Ok(out)
}

impl Guess {
    /// Prints the guess for a file.
    fn file_text(&self) -> String {
        match self {
            Guess::Cycle(c) => {
                let visits = c
                    .visits
                    .iter()
                    .map(|v| format!(" {} {} {}", v.kind.file_name(), v.processor, v.address));
                format!("cycle{}", visits.collect::<String>())
            }
            Guess::Coherence(c) => {
                format!("at {} {} {}", c.kind.file_name(), c.processor, c.address)
            }
        }
    }
}
