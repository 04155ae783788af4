//! Mapping from the names of a litmus test to those of the machine.
//!
//! A test uses the names of a class of histories ([`History::canonical`]): threads `P0`, …,
//! locations `x`, …, values 0, 1, …. Input: a history in the names of the machine, and the
//! representative of its class that became the test. Output: the renaming between them
//! ([`NameMap`]). Cost: one comparison for each order of the threads.

use crate::alphabet::LabelNames;
use mu_axioms::EventKind;
use mu_axioms::history::{History, Operation, location_name};
use mu_base::narrow;
use std::fmt::Write;

/// The names of the machine, in the order of the names of the test.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NameMap {
    /// The processor of each thread.
    pub processors: Vec<String>,
    /// The address of each location, with the names of its values by number; 0 is the initial
    /// value.
    pub addresses: Vec<(String, Vec<String>)>,
}

/// A partial renaming from the test to the machine.
#[derive(Clone, Default)]
struct Renaming {
    locations: Vec<Option<u32>>,
    values: Vec<Vec<Option<u64>>>,
}

/// Maps one number to another; `None` if either is already mapped differently.
fn unify<T: Copy + PartialEq>(all: &mut Vec<Option<T>>, at: usize, to: T) -> Option<()> {
    if all.len() <= at {
        all.resize(at + 1, None);
    }
    match all[at] {
        Some(known) => (known == to).then_some(()),
        None if all.contains(&Some(to)) => None,
        None => {
            all[at] = Some(to);
            Some(())
        }
    }
}

impl Renaming {
    /// Extends the renaming so that an operation of the test becomes one of the machine; `None` if
    /// that is impossible.
    fn operation(&mut self, test: &Operation, machine: &Operation) -> Option<()> {
        let form = |o: &Operation| (o.kind, o.mark, o.exclusive, o.depends);
        if form(test) != form(machine) {
            return None;
        }
        if test.kind == EventKind::Fence {
            return Some(());
        }
        let at = test.location as usize;
        unify(&mut self.locations, at, machine.location)?;
        if self.values.len() <= at {
            self.values.resize(at + 1, vec![Some(0)]);
        }
        unify(&mut self.values[at], test.value as usize, machine.value)?;
        if test.kind == EventKind::Update {
            unify(&mut self.values[at], test.read as usize, machine.read)
        } else {
            Some(())
        }
    }
}

/// Finds the machine's thread for each thread of a test, and the renaming of the rest.
fn match_threads(
    test: &[Vec<Operation>],
    machine: &[Vec<Operation>],
    taken: &mut Vec<usize>,
    renaming: Renaming,
) -> Option<Renaming> {
    let Some(thread) = test.get(taken.len()) else { return Some(renaming) };
    for (i, own) in machine.iter().enumerate().filter(|(_, own)| own.len() == thread.len()) {
        if taken.contains(&i) {
            continue;
        }
        let mut next = renaming.clone();
        if thread.iter().zip(own).all(|(t, m)| next.operation(t, m).is_some()) {
            taken.push(i);
            let found = match_threads(test, machine, taken, next);
            if found.is_some() {
                return found;
            }
            taken.pop();
        }
    }
    None
}

impl NameMap {
    /// Maps the names of a test, given the same history in the names of the machine; `None` if the
    /// histories are in different classes.
    pub fn of(test: &History, machine: &History, names: &LabelNames) -> Option<NameMap> {
        let mut taken = Vec::new();
        let renaming =
            match_threads(&test.threads, &machine.threads, &mut taken, Renaming::default())?;
        // A test uses all numbers below its greatest one, so that each has a name.
        let value = |v: &Option<u64>| names.values.get(usize::try_from((*v)?).ok()?).cloned();
        let address = |(l, values): (&Option<u32>, &Vec<Option<u64>>)| {
            let name = names.addresses.get((*l)? as usize)?.clone();
            Some((name, values.iter().map(value).collect::<Option<_>>()?))
        };
        Some(NameMap {
            processors: taken.iter().map(|&i| names.processors[i].clone()).collect(),
            addresses: renaming
                .locations
                .iter()
                .zip(&renaming.values)
                .map(address)
                .collect::<Option<_>>()?,
        })
    }

    /// Prints a line for the processors, and a line for each address with its values.
    pub fn lines(&self) -> Vec<String> {
        let processors = self
            .processors
            .iter()
            .enumerate()
            .map(|(t, p)| format!("P{t} is {p}"))
            .collect::<Vec<_>>()
            .join(", ");
        let mut out = vec![processors];
        for (l, (address, values)) in self.addresses.iter().enumerate() {
            let values: Vec<String> =
                values.iter().enumerate().map(|(v, name)| format!("{v} is {name}")).collect();
            out.push(format!(
                "{} is {address}, where {}",
                location_name(narrow::index(l)),
                values.join(", ")
            ));
        }
        out
    }

    /// Inserts the names into a litmus test, as a comment below its first line.
    pub fn annotate(&self, litmus: &str) -> String {
        let (head, rest) = litmus.split_once('\n').unwrap_or((litmus, ""));
        let mut out = format!("{head}\n(* On the machine:\n");
        for line in self.lines() {
            // A name of the machine may contain the delimiters of comments.
            let line = line.replace("*)", "* )").replace("(*", "( *");
            let _ = writeln!(out, " * {line}");
        }
        out + " *)\n" + rest
    }
}
