//! Reading of labels for the check of certificates: what happens at a label, in order.
//!
//! In: an interface, and labels as lists of actions with the texts of their arguments. Out: for
//! each label its [`OperationPart`]s. MachineNames are numbered as in the certificate. Nothing of
//! the alphabet, or of the effects of the search, takes part.

use super::fails;
use crate::interface::{ArgumentRole, Interface, Label, Operation};
use ahash::AHashMap;
use mu_axioms::EventKind;
use mu_base::Diagnostic;

/// An action of a label, with the texts of its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelPart {
    /// The name of the action.
    pub action: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

impl LabelPart {
    /// Prints the action as in a label.
    pub fn text(&self) -> String {
        if self.arguments.is_empty() {
            return self.action.clone();
        }
        format!("{}({})", self.action, self.arguments.join(", "))
    }
}

/// A memory operation, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OperationPart {
    /// An operation of a processor begins: the number of its beginning.
    Begin(usize, usize),
    /// The operation of a processor in progress ends, with these fields.
    End(usize, Fields),
    /// An operation of a processor.
    Whole(usize, Fields),
    /// A value reaches memory at an address.
    Commit(usize, usize),
    /// The store of a value by a processor to an address gives way to the next one.
    Absorb(usize, usize, usize),
}

/// The fields of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Fields {
    /// The line of the interface.
    pub line: usize,
    /// The address.
    pub address: Option<usize>,
    /// The value that is loaded or stored.
    pub value: Option<usize>,
    /// The value that an update writes.
    pub written: Option<usize>,
    /// The number of the operation, as text.
    pub number: Option<String>,
}

impl Fields {
    /// Joins the fields of a beginning and an end; `None` if they contradict each other.
    pub fn join(&self, end: &Fields) -> Option<Fields> {
        fn one<T: Clone + PartialEq>(a: &Option<T>, b: &Option<T>) -> Option<Option<T>> {
            match (a, b) {
                (Some(x), Some(y)) => (x == y).then(|| a.clone()),
                _ => Some(a.clone().or_else(|| b.clone())),
            }
        }
        let same = self.line == end.line && self.number == end.number;
        Some(Fields {
            line: self.line,
            address: one(&self.address, &end.address)?,
            value: one(&self.value, &end.value)?,
            written: one(&self.written, &end.written)?,
            number: self.number.clone(),
        })
        .filter(|_| same)
    }
}

/// Numbers of names, in the order of a list.
pub type Numbers = AHashMap<String, usize>;

/// The names of a machine.
#[derive(Clone, Debug, Default)]
pub struct MachineNames {
    /// Processors.
    pub processors: Numbers,
    /// Addresses.
    pub addresses: Numbers,
    /// Values, as they occur.
    pub values: Numbers,
    /// Beginnings of operations: the text, the processor, and the fields.
    pub begun: Vec<(String, usize, Fields)>,
}

/// The reader of labels.
pub struct Labels<'a> {
    /// The interface.
    pub interface: &'a Interface,
    /// The names.
    pub names: MachineNames,
    /// Lines with an operation that has ended.
    pub ended: Vec<bool>,
    /// Lines with an operation that has begun.
    pub started: Vec<bool>,
}

impl<'a> Labels<'a> {
    /// Creates a reader for these processors and addresses. Error: a form of interface that the
    /// construction does not support.
    pub fn new(
        interface: &'a Interface,
        processors: &[String],
        addresses: &[String],
    ) -> Result<Labels<'a>, Diagnostic> {
        for line in &interface.operations {
            let numbered = line.begin.is_none() && line.end.roles.contains(&ArgumentRole::Number);
            if line.exclusive || numbered {
                return Err(fails(format!("`{}` is not supported", line.text())));
            }
            let needs = [ArgumentRole::Address, ArgumentRole::Value];
            if let Some(begin) = &line.begin
                && line.kind == EventKind::Write
                && needs.iter().any(|r| !begin.roles.contains(r))
            {
                return Err(fails(format!("`{}` has no address or value", begin.text())));
            }
        }
        let numbered = |list: &[String]| list.iter().cloned().zip(0..).collect::<Numbers>();
        let mut values = Numbers::new();
        values.insert(interface.initial.text.clone(), 0);
        let names = MachineNames {
            processors: numbered(processors),
            addresses: numbered(addresses),
            values,
            begun: Vec::new(),
        };
        let lines = interface.operations.len();
        Ok(Labels { interface, names, ended: vec![false; lines], started: vec![false; lines] })
    }

    /// Returns the number of a value.
    pub fn value(&mut self, text: &str) -> usize {
        let next = self.names.values.len();
        *self.names.values.entry(text.into()).or_insert(next)
    }

    /// Returns the processor and the fields of an action that matches a pattern.
    fn fields(
        &mut self,
        line: usize,
        label: &Label,
        part: &LabelPart,
    ) -> Result<Option<(usize, Fields)>, Diagnostic> {
        let matches = label.action == part.action
            && label.roles.len() == part.arguments.len()
            && label.roles.iter().zip(&part.arguments).all(|(role, text)| match role {
                ArgumentRole::Text(wanted) => wanted == text,
                _ => true,
            });
        if !matches {
            return Ok(None);
        }
        let unknown =
            |what: &str, text: &str| fails(format!("`{text}` is no {what} of the certificate"));
        let mut processor = 0;
        let mut out = Fields { line, ..Fields::default() };
        for (role, text) in label.roles.iter().zip(&part.arguments) {
            match role {
                ArgumentRole::Processor => {
                    let known = self.names.processors.get(text.as_str());
                    processor = *known.ok_or_else(|| unknown("processor", text))?;
                }
                ArgumentRole::Address => {
                    let known = self.names.addresses.get(text.as_str());
                    out.address = Some(*known.ok_or_else(|| unknown("address", text))?);
                }
                ArgumentRole::Value => out.value = Some(self.value(text)),
                ArgumentRole::Written => out.written = Some(self.value(text)),
                ArgumentRole::Number => out.number = Some(text.clone()),
                ArgumentRole::Other
                | ArgumentRole::Depends(_)
                | ArgumentRole::Any
                | ArgumentRole::Text(_) => {}
            }
        }
        Ok(Some((processor, out)))
    }

    /// Lists what happens at a label: its operation, then what is absorbed, then what
    /// reaches memory. Error: several
    /// operations, or a name that the certificate does not list.
    pub fn happenings(&mut self, label: &[LabelPart]) -> Result<Vec<OperationPart>, Diagnostic> {
        let mut operations = Vec::new();
        let (mut absorbed, mut commits) = (Vec::new(), Vec::new());
        let interface = self.interface;
        for part in label {
            for (i, line) in interface.operations.iter().enumerate() {
                operations.extend(self.operation(i, line, part)?);
            }
            for pattern in &interface.absorbs {
                let Some((processor, fields)) = self.fields(usize::MAX, pattern, part)? else {
                    continue;
                };
                let (Some(address), Some(value)) = (fields.address, fields.value) else {
                    return Err(fails("an absorbed store without an address or a value"));
                };
                absorbed.push(OperationPart::Absorb(processor, address, value));
            }
            for pattern in &interface.commits {
                let found = self.fields(usize::MAX, pattern, part);
                let Some((_, fields)) = found? else { continue };
                let (Some(address), Some(value)) = (fields.address, fields.value) else {
                    return Err(fails("a commit without an address or a value"));
                };
                commits.push(OperationPart::Commit(address, value));
            }
        }
        if operations.len() > 1 {
            let text: Vec<String> = label.iter().map(LabelPart::text).collect();
            return Err(fails(format!("`{}` has several operations", text.join("|"))));
        }
        let updates = operations.iter().any(|h| match h {
            OperationPart::Whole(_, f) | OperationPart::End(_, f) => {
                interface.operations[f.line].kind == EventKind::Update
            }
            _ => false,
        });
        operations.append(&mut absorbed);
        if !updates {
            operations.append(&mut commits);
        }
        Ok(operations)
    }

    fn operation(
        &mut self,
        i: usize,
        line: &Operation,
        part: &LabelPart,
    ) -> Result<Vec<OperationPart>, Diagnostic> {
        let mut out = Vec::new();
        if let Some(begin) = &line.begin
            && let Some((processor, fields)) = self.fields(i, begin, part)?
        {
            self.started[i] = true;
            let text = part.text();
            let known = self.names.begun.iter().position(|b| b.0 == text);
            let number = known.unwrap_or(self.names.begun.len());
            if known.is_none() {
                self.names.begun.push((text, processor, fields));
            }
            out.push(OperationPart::Begin(processor, number));
        }
        if let Some((processor, fields)) = self.fields(i, &line.end, part)? {
            self.ended[i] = true;
            out.push(match &line.begin {
                None => OperationPart::Whole(processor, fields),
                Some(_) => OperationPart::End(processor, fields),
            });
        }
        Ok(out)
    }
}
