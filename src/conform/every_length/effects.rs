//! Effects of labels: the memory operations and commits of a label, in the order in which monitors
//! process them.
//!
//! Input: an interface and the alphabet of a machine. Output: for each label a list of [`Effect`]s:
//! the operation first, then a store that is absorbed, then its commit. A store counts at the label
//! of its beginning, because other processors can read it from then on. A load, an update, or a
//! fence counts at its end. Invariant: a label has at most one memory operation; other labels are
//! rejected by name.

use crate::alphabet::{Alphabet, LabelEvent, Phase, arguments};
use crate::interface::{ArgumentRole, Interface, Label};
use mu_axioms::EventKind;
use mu_base::{Diagnostic, Stage, narrow};
use mu_lts::relabel::{name_of, parts};

/// An effect of a label on a monitor. Processors, addresses, and values are those of the alphabet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Effect {
    /// An operation begins that ends at another label: the event of the alphabet.
    Begin {
        /// Its processor.
        processor: u32,
        /// The id of its event.
        event: u32,
    },
    /// An operation ends that has begun at another label; its other effects follow.
    End {
        /// Its processor.
        processor: u32,
    },
    /// A load returns a value.
    Load {
        /// Its processor.
        processor: u32,
        /// Its address.
        address: u32,
        /// Its value.
        value: u32,
    },
    /// A store is issued.
    Store {
        /// Its processor.
        processor: u32,
        /// Its address.
        address: u32,
        /// Its value.
        value: u32,
    },
    /// A store reaches memory.
    Commit {
        /// The address.
        address: u32,
        /// The value.
        value: u32,
    },
    /// A store will not reach memory: the next store of its processor to its address does.
    Absorb {
        /// Its processor.
        processor: u32,
        /// Its address.
        address: u32,
        /// Its value.
        value: u32,
    },
    /// An update reads and writes memory.
    Update {
        /// Its processor.
        processor: u32,
        /// Its address.
        address: u32,
        /// The value that it reads.
        read: u32,
        /// The value that it writes.
        written: u32,
    },
    /// A fence.
    Fence {
        /// Its processor.
        processor: u32,
        /// True if it orders a store before it with a load after it.
        reads: bool,
        /// True if it orders a store before it with a store after it.
        writes: bool,
    },
}

impl Effect {
    /// Returns the effect with other values.
    #[must_use]
    pub fn with_values(self, image: impl Fn(u32) -> u32) -> Effect {
        match self {
            Effect::Load { processor, address, value } => {
                Effect::Load { processor, address, value: image(value) }
            }
            Effect::Store { processor, address, value } => {
                Effect::Store { processor, address, value: image(value) }
            }
            Effect::Commit { address, value } => Effect::Commit { address, value: image(value) },
            Effect::Absorb { processor, address, value } => {
                Effect::Absorb { processor, address, value: image(value) }
            }
            Effect::Update { processor, address, read, written } => {
                Effect::Update { processor, address, read: image(read), written: image(written) }
            }
            other => other,
        }
    }
}

/// The processor of a label, its address, and its value.
type Access = (Option<u32>, (u32, u32));

/// Reads effects from labels.
pub struct LabelReader<'a> {
    interface: &'a Interface,
    alphabet: &'a Alphabet,
}

impl<'a> LabelReader<'a> {
    /// Creates a reader. Error: the interface has a form that monitors do not support, with its
    /// place.
    pub fn new(interface: &'a Interface, alphabet: &'a Alphabet) -> Result<Self, Diagnostic> {
        for line in &interface.operations {
            let unsupported = |label: &Label, message: &str| {
                Err(Diagnostic::at(Stage::Unsupported, label.span, message))
            };
            if line.exclusive {
                return unsupported(
                    &line.end,
                    "a load-reserve and its store-conditional are two operations, and programs of every length need updates at one label",
                );
            }
            match &line.begin {
                None if line.end.roles.contains(&ArgumentRole::Number) => {
                    return unsupported(
                        &line.end,
                        "the place of this operation in program order is its number: expected a label for its beginning",
                    );
                }
                Some(begin) if line.kind == EventKind::Write => {
                    let missing = |r: &ArgumentRole| !begin.roles.contains(r);
                    if missing(&ArgumentRole::Address) || missing(&ArgumentRole::Value) {
                        return unsupported(
                            begin,
                            "the beginning of this store has no address or no value, so it is unknown from when on other processors can load it",
                        );
                    }
                }
                _ => {}
            }
        }
        Ok(LabelReader { interface, alphabet })
    }

    /// Returns the alphabet.
    pub fn alphabet(&self) -> &'a Alphabet {
        self.alphabet
    }

    /// Returns the effects of a label; empty for internal labels. Error: the label has several
    /// operations.
    pub fn effects(&self, text: &str) -> Result<Vec<Effect>, Diagnostic> {
        if self.interface.failure.as_deref() == Some(text) {
            return Err(self.interface.failure_error(text));
        }
        let mut out = Vec::new();
        let words = self.alphabet.of_label.get(text);
        let events: &[u32] = words.map_or(&[], |w| &self.alphabet.words[*w as usize]);
        if events.len() > 1 {
            let message = format!(
                "the label `{text}` has several memory operations, which `--operations any` does not support"
            );
            return Err(Diagnostic::new(Stage::Unsupported, message));
        }
        if let Some(&id) = events.first() {
            self.operation(id, &mut out);
        }
        for fields in self.match_patterns(&self.interface.absorbs, text)? {
            let (processor, (address, value)) = fields;
            let processor = processor.ok_or_else(|| {
                let message = format!("the label `{text}` has a processor without operations");
                Diagnostic::new(Stage::Unsupported, message)
            })?;
            out.push(Effect::Absorb { processor, address, value });
        }
        // An update reaches memory at its own label.
        let updates = |id: &u32| {
            let event = &self.alphabet.events[*id as usize];
            self.interface.operations[event.operation as usize].kind == EventKind::Update
        };
        if events.iter().any(updates) {
            return Ok(out);
        }
        let commits = self.match_patterns(&self.interface.commits, text)?.into_iter();
        out.extend(commits.map(|(_, (address, value))| Effect::Commit { address, value }));
        Ok(out)
    }

    /// Returns the processor, if it is known, and the address and the value of each part of a label
    /// that matches one of these patterns.
    fn match_patterns(&self, labels: &[Label], text: &str) -> Result<Vec<Access>, Diagnostic> {
        let mut out = Vec::new();
        if labels.is_empty() {
            return Ok(out);
        }
        let names = &self.alphabet.names;
        for part in parts(text) {
            let (name, arguments) = (name_of(part), arguments(part));
            for label in labels {
                let Some(fields) = label.match_arguments(name, &arguments) else { continue };
                let field = |role: ArgumentRole, names: &[String]| {
                    let text = fields.iter().find(|f| *f.0 == role)?.1;
                    names.iter().position(|n| n == text).map(narrow::index)
                };
                let both = field(ArgumentRole::Address, &names.addresses)
                    .zip(field(ArgumentRole::Value, &names.values));
                let both = both.ok_or_else(|| {
                    let message = format!(
                        "the label `{text}` has an address or a value that no operation has"
                    );
                    Diagnostic::at(Stage::Unsupported, label.span, message)
                })?;
                out.push((field(ArgumentRole::Processor, &names.processors), both));
            }
        }
        Ok(out)
    }

    fn operation(&self, id: u32, out: &mut Vec<Effect>) {
        let event = &self.alphabet.events[id as usize];
        let processor = event.processor;
        match (event.phase, self.interface.operations[event.operation as usize].kind) {
            (Phase::Begin, EventKind::Write) => {
                out.push(Effect::Begin { processor, event: id });
                let (address, value) = (event.address.unwrap_or(0), event.value.unwrap_or(0));
                out.push(Effect::Store { processor, address, value });
            }
            (Phase::Begin, _) => out.push(Effect::Begin { processor, event: id }),
            (Phase::End, EventKind::Write) => out.push(Effect::End { processor }),
            (Phase::End, _) => out.push(Effect::End { processor }),
            (Phase::Whole, _) => out.extend(self.whole(event)),
        }
    }

    /// Returns the effect of an operation with all its fields; `None` if one is missing.
    pub fn whole(&self, event: &LabelEvent) -> Option<Effect> {
        let processor = event.processor;
        let line = &self.interface.operations[event.operation as usize];
        Some(match line.kind {
            EventKind::Read => {
                Effect::Load { processor, address: event.address?, value: event.value? }
            }
            EventKind::Write => {
                Effect::Store { processor, address: event.address?, value: event.value? }
            }
            EventKind::Update => Effect::Update {
                processor,
                address: event.address?,
                read: event.value?,
                written: event.written?,
            },
            _ => Effect::Fence {
                processor,
                reads: line.mark.orders(true, false),
                writes: line.mark.orders(true, true),
            },
        })
    }

    /// Returns the effect at the end of an operation, given the event of its beginning. `None` for
    /// stores, because they count at their beginning. Error: the end does not belong to it.
    pub fn end_effect(&self, begin: u32, text: &str) -> Result<Option<Effect>, Diagnostic> {
        let begin = &self.alphabet.events[begin as usize];
        let word = self.alphabet.of_label.get(text);
        let id = word.and_then(|w| self.alphabet.words[*w as usize].first());
        let end = id.map(|id| &self.alphabet.events[*id as usize]);
        let agree = |a: Option<u32>, b: Option<u32>| a.is_none() || b.is_none() || a == b;
        let matches = |e: &&LabelEvent| {
            e.operation == begin.operation
                && e.processor == begin.processor
                && e.number == begin.number
                && agree(e.address, begin.address)
                && agree(e.value, begin.value)
                && agree(e.written, begin.written)
        };
        let Some(end) = end.filter(matches) else {
            let message = format!(
                "`{text}` ends another operation than the one that its processor began last"
            );
            return Err(Diagnostic::new(Stage::Unsupported, message));
        };
        let both = LabelEvent {
            address: end.address.or(begin.address),
            value: end.value.or(begin.value),
            written: end.written.or(begin.written),
            ..*end
        };
        Ok(self.whole(&both).filter(|e| !matches!(e, Effect::Store { .. })))
    }

    /// True if the label at which the operation of an event begins has the value that it writes.
    pub fn is_written_at_beginning(&self, event: &LabelEvent) -> bool {
        let begin = &self.interface.operations[event.operation as usize].begin;
        begin.as_ref().is_some_and(|b| b.roles.contains(&ArgumentRole::Written))
    }

    /// True if some operation has separate labels for its beginning and its end.
    pub fn has_beginnings(&self) -> bool {
        self.interface.operations.iter().any(|o| o.begin.is_some())
    }
}
