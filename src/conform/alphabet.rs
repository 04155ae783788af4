//! Events of labels: the memory operations that an interface recognises in the text of a label.
//!
//! Invariant: processors, addresses and values are numbered in the order of their texts, shorter
//! ones first; value 0 is the initial one. A *word* is the sorted list of the events of one label.
//! It has at most one event per processor.

use crate::interface::{ArgumentRole, Dependency, Interface, Label};
use ahash::AHashMap;
use mu_axioms::history::Dependencies;
use mu_base::{Diagnostic, Stage, narrow};
use mu_lts::relabel::{name_of, parts};

/// Part of an operation that an event represents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Phase {
    /// The beginning.
    Begin,
    /// The end.
    End,
    /// The whole operation: beginning and end at once.
    Whole,
}

/// A memory operation, or its beginning or end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LabelEvent {
    /// The processor.
    pub processor: u32,
    /// The index of its line in the interface.
    pub operation: u32,
    /// The index of the first line with operations of this kind.
    pub class: u32,
    /// The part of the operation.
    pub phase: Phase,
    /// The address, if the label contains it.
    pub address: Option<u32>,
    /// The value, if the label contains it.
    pub value: Option<u32>,
    /// The value that an update writes, if the label contains it.
    pub written: Option<u32>,
    /// The number of the operation, if the label contains it.
    pub number: Option<u64>,
    /// The earlier operations on which it depends, as far as the label contains them. An operation
    /// without a number may depend on its own position, which means none.
    pub depends: Dependencies,
}

/// The names that occur in labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelNames {
    /// Processors.
    pub processors: Vec<String>,
    /// Addresses.
    pub addresses: Vec<String>,
    /// Values, the initial one first.
    pub values: Vec<String>,
}

/// The events and words of a machine.
#[derive(Clone, Debug, Default)]
pub struct Alphabet {
    /// Names.
    pub names: LabelNames,
    /// Events, by id.
    pub events: Vec<LabelEvent>,
    /// Words, by id: sorted ids of events.
    pub words: Vec<Vec<u32>>,
    /// The id of each word.
    pub by_word: AHashMap<Vec<u32>, u32>,
    /// The id of each event.
    pub by_event: AHashMap<LabelEvent, u32>,
    /// The word of each label that contains a memory operation.
    pub of_label: AHashMap<String, u32>,
    /// Parts of labels that match no line of the interface, not even an `internal` one: the first
    /// text for each action and number of arguments.
    pub unmatched: Vec<String>,
}

/// An event with the texts of its fields.
struct LabelFields<'t> {
    operation: u32,
    class: u32,
    phase: Phase,
    fields: Vec<(ArgumentRole, &'t str)>,
}

/// Splits the arguments of a label's part: texts separated by `,` outside brackets and quotes.
pub fn arguments(part: &str) -> Vec<&str> {
    let inner = part[name_of(part).len()..].trim();
    let Some(inner) = inner.strip_prefix('(').and_then(|i| i.strip_suffix(')')) else {
        return Vec::new();
    };
    let (mut depth, mut quoted, mut from) = (0usize, false, 0);
    let mut out = Vec::new();
    for (i, c) in inner.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(inner[from..i].trim());
                from = i + 1;
            }
            _ => {}
        }
    }
    out.push(inner[from..].trim());
    out
}

/// Reads the events of a label. Appends the parts that match no line to `unmatched`.
fn label_events<'t>(
    interface: &Interface,
    text: &'t str,
    unmatched: &mut Vec<(&'t str, usize, &'t str)>,
) -> Result<Vec<LabelFields<'t>>, Diagnostic> {
    let mut out = Vec::new();
    for part in parts(text) {
        let (name, arguments) = (name_of(part), arguments(part));
        let mut found: Option<&Label> = None;
        for (i, o) in interface.operations.iter().enumerate() {
            let end = if o.begin.is_some() { Phase::End } else { Phase::Whole };
            for (phase, label) in o.begin.iter().map(|b| (Phase::Begin, b)).chain([(end, &o.end)]) {
                let Some(fields) = label.match_arguments(name, &arguments) else { continue };
                if let Some(other) = found {
                    return Err(Diagnostic::at(
                        Stage::Type,
                        label.span,
                        format!("the label `{part}` matches two lines of the interface"),
                    )
                    .related(other.span, "the other one"));
                }
                found = Some(label);
                let fields = fields.into_iter().map(|(role, text)| (role.clone(), text)).collect();
                out.push(LabelFields {
                    operation: narrow::index(i),
                    class: interface.class(i),
                    phase,
                    fields,
                });
            }
        }
        let observed = || {
            let mut all = interface.observed.iter().chain(interface.memory());
            all.any(|o| o.match_arguments(name, &arguments).is_some())
        };
        if found.is_none() && !observed() && !interface.is_internal(name, &arguments) {
            unmatched.push((name, arguments.len(), part));
        }
    }
    Ok(out)
}

/// Reads the numbers of a dependency, one or a list or set, as bits by positions. Numbers before
/// the first one are no dependency.
fn dependencies(label: &str, text: &str, first: u64) -> Result<u32, Diagnostic> {
    let wrong = || {
        let message = format!("`{text}` in the label `{label}` is not the number of a load");
        Diagnostic::new(Stage::Type, message).note("expected a number, or a list or set of numbers")
    };
    let within = |open, close| text.strip_prefix(open).and_then(|t| t.strip_suffix(close));
    let list = within('[', ']').or(within('{', '}')).unwrap_or(text);
    let mut out = 0;
    for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let number: i128 = part.parse().map_err(|_| wrong())?;
        let Ok(at) = usize::try_from(number - i128::from(first)) else { continue };
        if at >= Dependencies::LIMIT {
            let message = format!(
                "the label `{label}` depends on operation {number}: dependencies are supported on the first {} operations of a processor",
                Dependencies::LIMIT
            );
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
        out |= 1 << at;
    }
    Ok(out)
}

fn sort_names(mut names: Vec<String>) -> Vec<String> {
    names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    names.dedup();
    names
}

impl Alphabet {
    /// Builds the alphabet of the given labels.
    pub fn of<'t>(
        interface: &Interface,
        labels: impl Iterator<Item = &'t str> + Clone,
    ) -> Result<Alphabet, Diagnostic> {
        let mut names = LabelNames::default();
        let mut words_of_labels: Vec<(&str, Vec<LabelFields<'_>>)> = Vec::new();
        let mut unmatched = Vec::new();
        for label in labels {
            let label_events = label_events(interface, label, &mut unmatched)?;
            for (role, text) in label_events.iter().flat_map(|t| &t.fields) {
                match role {
                    ArgumentRole::Processor => names.processors.push((*text).to_string()),
                    ArgumentRole::Address => names.addresses.push((*text).to_string()),
                    ArgumentRole::Value | ArgumentRole::Written
                        if *text != interface.initial.text =>
                    {
                        names.values.push((*text).to_string())
                    }
                    _ => {}
                }
            }
            if !label_events.is_empty() {
                words_of_labels.push((label, label_events));
            }
        }
        words_of_labels.sort_by_key(|k| k.0);
        let mut values = sort_names(names.values);
        values.insert(0, interface.initial.text.clone());
        let names = LabelNames {
            processors: sort_names(names.processors),
            addresses: sort_names(names.addresses),
            values,
        };
        unmatched.sort_unstable();
        unmatched.dedup_by_key(|u| (u.0, u.1));
        let unmatched = unmatched.into_iter().map(|u| u.2.to_string()).collect();
        let mut out = Alphabet { names, unmatched, ..Alphabet::default() };
        for (label, label_events) in words_of_labels {
            let place =
                label_events.first().map(|t| interface.operations[t.operation as usize].end.span);
            let placed = |d: Diagnostic| place.map_or(d.clone(), |p| d.or_span(p));
            let events: Vec<LabelEvent> = label_events
                .iter()
                .map(|t| out.event(label, t, interface.first))
                .collect::<Result<_, _>>()
                .map_err(placed)?;
            out.add(label, events).map_err(placed)?;
        }
        Ok(out)
    }
    /// Prints an event as its label, with `_` for fields that the event does not contain.
    pub fn event_text(&self, interface: &Interface, event: &LabelEvent) -> String {
        let line = &interface.operations[event.operation as usize];
        let label = if event.phase == Phase::Begin {
            line.begin.as_ref().unwrap_or(&line.end)
        } else {
            &line.end
        };
        let name = |names: &[String], at: Option<u32>| {
            at.map_or("_".to_string(), |i| names[i as usize].clone())
        };
        let one = |r: &ArgumentRole| match r {
            ArgumentRole::Processor => name(&self.names.processors, Some(event.processor)),
            ArgumentRole::Address => name(&self.names.addresses, event.address),
            ArgumentRole::Value => name(&self.names.values, event.value),
            ArgumentRole::Written => name(&self.names.values, event.written),
            ArgumentRole::Number => event.number.map_or("_".to_string(), |n| n.to_string()),
            ArgumentRole::Text(t) => t.clone(),
            ArgumentRole::Depends(_) | ArgumentRole::Other | ArgumentRole::Any => "_".into(),
        };
        let arguments: Vec<String> = label.roles.iter().map(one).collect();
        if arguments.is_empty() {
            label.action.clone()
        } else {
            format!("{}({})", label.action, arguments.join(", "))
        }
    }
    fn event(
        &self,
        label: &str,
        label_events: &LabelFields<'_>,
        first: u64,
    ) -> Result<LabelEvent, Diagnostic> {
        let place =
            |names: &[String], text: &str| names.iter().position(|n| n == text).map(narrow::index);
        let mut event = LabelEvent {
            processor: 0,
            operation: label_events.operation,
            class: label_events.class,
            phase: label_events.phase,
            address: None,
            value: None,
            written: None,
            number: None,
            depends: Dependencies::NONE,
        };
        for (role, text) in &label_events.fields {
            match role {
                ArgumentRole::Processor => {
                    event.processor = place(&self.names.processors, text).unwrap_or(0)
                }
                ArgumentRole::Address => event.address = place(&self.names.addresses, text),
                ArgumentRole::Value => event.value = place(&self.names.values, text),
                ArgumentRole::Written => event.written = place(&self.names.values, text),
                ArgumentRole::Number => {
                    let wrong = || {
                        Diagnostic::new(
                            Stage::Type,
                            format!(
                                "`{text}` in the label `{label}` is not the number of an operation"
                            ),
                        )
                    };
                    event.number = Some(text.parse().map_err(|_| wrong())?);
                }
                ArgumentRole::Depends(kind) => {
                    let place = match kind {
                        Dependency::Address => &mut event.depends.address,
                        Dependency::Data => &mut event.depends.data,
                        Dependency::Control => &mut event.depends.control,
                    };
                    *place = dependencies(label, text, first)?;
                }
                ArgumentRole::Other | ArgumentRole::Any | ArgumentRole::Text(_) => {}
            }
        }
        Ok(event)
    }
    fn add(&mut self, label: &str, events: Vec<LabelEvent>) -> Result<(), Diagnostic> {
        let mut word: Vec<u32> = Vec::with_capacity(events.len());
        for e in &events {
            if events.iter().filter(|f| f.processor == e.processor).count() > 1 {
                let message = format!(
                    "the label `{label}` contains two operations of one processor: their program order is unknown"
                );
                return Err(Diagnostic::new(Stage::Unsupported, message));
            }
            let next = narrow::index(self.events.len());
            let id = *self.by_event.entry(*e).or_insert(next);
            if id == next {
                self.events.push(*e);
            }
            word.push(id);
        }
        word.sort_unstable();
        let next = narrow::index(self.words.len());
        let id = *self.by_word.entry(word.clone()).or_insert(next);
        if id == next {
            self.words.push(word);
        }
        self.of_label.insert(label.to_string(), id);
        Ok(())
    }
}
