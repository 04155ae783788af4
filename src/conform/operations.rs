//! The execution of one run of a machine: its memory operations and the relations between them,
//! read from labels by an interface.
//!
//! Input: the actions of each step of a run, including hidden ones. Output: a [`Run`] with the
//! operations in the order of their beginnings and the arrows between them:
//!
//! - Program order is defined by the interface.
//! - A load reads from the only store that could have supplied its value. If there are several, it
//!   reads from the store that its processor observed last, if the value matches. Otherwise there
//!   is no arrow, and [`Operation::sources`] lists the candidates.
//! - Coherence contains only what the run implies: the order in which a processor observes the
//!   stores of an address; its own stores in program order; an update after the store that it
//!   reads; and the sources of two accesses in program order.
//! - From-reads follows from these.
//!
//! If the arrows at one address form a cycle, no order of its stores is consistent with the run. A
//! shortest such cycle is marked. Cost: cubic in the number of operations.

use crate::interface::{ArgumentRole, Interface, Label};
use fixedbitset::FixedBitSet;
use mu_axioms::EventKind;
use mu_axioms::models::MemoryOrdering;

/// A memory operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Load, store, update or fence.
    pub kind: EventKind,
    /// Acquire, release, or plain.
    pub mark: MemoryOrdering,
    /// Its processor.
    pub processor: String,
    /// Its address, if a label contains it.
    pub address: Option<String>,
    /// The value that it reads or stores.
    pub value: Option<String>,
    /// The value that an update writes.
    pub written: Option<String>,
    /// Its number.
    pub number: Option<String>,
    /// The steps of the run, from 0, at which it begins and ends.
    pub steps: (usize, Option<usize>),
    /// The stores that a load may read from; `None` in the list: the initial value.
    pub sources: Vec<Option<usize>>,
    line: usize,
}

impl Operation {
    fn reads(&self) -> bool {
        matches!(self.kind, EventKind::Read | EventKind::Update)
    }
    /// Returns the value that it leaves in memory.
    fn stores(&self) -> Option<&str> {
        match self.kind {
            EventKind::Write => self.value.as_deref(),
            EventKind::Update => self.written.as_deref(),
            _ => None,
        }
    }
}

/// An arrow: source, relation, target, and true if it is part of the marked cycle.
pub type Arrow = (usize, &'static str, usize, bool);

/// The memory operations of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The processors.
    pub processors: Vec<String>,
    /// The operations, in the order in which they begin.
    pub operations: Vec<Operation>,
    /// The relations between operations, sorted.
    pub arrows: Vec<Arrow>,
}

/// An observation: step, processor, store.
type Observation = (usize, String, usize);

/// The fields of a label, by role.
struct LabelFields<'t>(Vec<(ArgumentRole, &'t str)>);

impl<'t> LabelFields<'t> {
    fn of(label: &Label, name: &str, arguments: &[&'t str]) -> Option<Self> {
        Some(Self(
            label
                .match_arguments(name, arguments)?
                .into_iter()
                .map(|(r, t)| (r.clone(), t))
                .collect(),
        ))
    }
    /// Returns the argument with this role; `None` if it is absent or `_`.
    fn get(&self, role: &ArgumentRole) -> Option<&'t str> {
        self.0.iter().find(|f| f.0 == *role && f.1 != "_").map(|f| f.1)
    }
}

impl Run {
    /// Reads the actions of each step: names with the texts of their arguments.
    pub fn of(interface: &Interface, steps: &[Vec<(&str, Vec<&str>)>]) -> Run {
        let mut run = Run::default();
        let mut seen: Vec<Observation> = Vec::new();
        for (step, actions) in steps.iter().enumerate() {
            for (name, arguments) in actions {
                run.take(interface, step, name, arguments);
                seen.extend(
                    interface
                        .observed
                        .iter()
                        .find_map(|l| run.observation(l, step, name, arguments)),
                );
            }
        }
        run.processors = run.operations.iter().map(|o| o.processor.clone()).collect();
        run.processors.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        run.processors.dedup();
        run.relate(interface, &seen);
        run
    }

    fn take(&mut self, interface: &Interface, step: usize, name: &str, arguments: &[&str]) {
        for (line, of) in interface.operations.iter().enumerate() {
            let begins = of.begin.as_ref().and_then(|b| LabelFields::of(b, name, arguments));
            let (first, whole) = (begins.is_some(), of.begin.is_none());
            let Some(fields) = begins.or_else(|| LabelFields::of(&of.end, name, arguments)) else {
                continue;
            };
            let get = |role: ArgumentRole| fields.get(&role).map(String::from);
            let Some(processor) = get(ArgumentRole::Processor) else { continue };
            let fields = [
                get(ArgumentRole::Address),
                get(ArgumentRole::Value),
                get(ArgumentRole::Written),
                get(ArgumentRole::Number),
            ];
            if !first && !whole {
                self.end((line, step), &processor, fields);
            } else {
                let [address, value, written, number] = fields;
                let steps = (step, whole.then_some(step));
                let (kind, mark, sources) = (of.kind, of.mark, Vec::new());
                self.operations.push(Operation {
                    kind,
                    mark,
                    processor,
                    address,
                    value,
                    written,
                    number,
                    steps,
                    sources,
                    line,
                });
            }
            return;
        }
    }

    /// Ends the first operation that has begun and matches.
    fn end(&mut self, (line, step): (usize, usize), processor: &str, fields: [Option<String>; 4]) {
        let agree = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        let matches = |o: &&mut Operation| {
            let known = [&o.address, &o.value, &o.written, &o.number];
            o.line == line
                && o.processor == processor
                && o.steps.1.is_none()
                && known.iter().zip(&fields).all(|(a, b)| agree(a, b))
        };
        let Some(operation) = self.operations.iter_mut().find(matches) else { return };
        let [address, value, written, number] = fields;
        operation.steps.1 = Some(step);
        operation.address = operation.address.take().or(address);
        operation.value = operation.value.take().or(value);
        operation.written = operation.written.take().or(written);
        operation.number = operation.number.take().or(number);
    }

    fn observation(
        &self,
        label: &Label,
        step: usize,
        name: &str,
        arguments: &[&str],
    ) -> Option<Observation> {
        let fields = LabelFields::of(label, name, arguments)?;
        let field = |role: &ArgumentRole| fields.get(role);
        let (of, number, value) = (
            field(&ArgumentRole::Other),
            field(&ArgumentRole::Number),
            field(&ArgumentRole::Value),
        );
        let matches = |o: &&Operation| {
            let same = |said: Option<&str>, own: Option<&str>| said.is_none() || said == own;
            let value_matches = same(value, o.stores());
            o.stores().is_some()
                && o.address.as_deref() == field(&ArgumentRole::Address)
                && value_matches
                && same(number, o.number.as_deref())
                && same(of, Some(&o.processor))
        };
        let mut found =
            self.operations.iter().enumerate().filter(|(_, o)| matches(o)).map(|(i, _)| i);
        let (store, other) = (found.next()?, found.next());
        other
            .is_none()
            .then(|| (step, field(&ArgumentRole::Processor).unwrap_or("").to_string(), store))
    }

    /// Returns the operations of each processor in program order.
    fn threads(&self) -> Vec<Vec<usize>> {
        let of = |p: &String| {
            let mut own: Vec<usize> = (0..self.operations.len())
                .filter(|&i| self.operations[i].processor == *p)
                .collect();
            let number =
                |i: &usize| self.operations[*i].number.as_ref().and_then(|n| n.parse::<u64>().ok());
            if own.iter().all(|i| number(i).is_some()) {
                own.sort_by_key(number);
            }
            own
        };
        self.processors.iter().map(of).collect()
    }

    fn find_sources(&mut self, interface: &Interface, seen: &[Observation]) {
        for i in 0..self.operations.len() {
            let o = &self.operations[i];
            let (true, Some(value), Some(address)) = (o.reads(), &o.value, &o.address) else {
                continue;
            };
            let end = o.steps.1.unwrap_or(usize::MAX);
            let may = |s: &usize| {
                let store = &self.operations[*s];
                let later = store.processor == o.processor && store.steps.0 > o.steps.0;
                *s != i
                    && !later
                    && store.steps.0 < end
                    && store.address.as_ref() == Some(address)
                    && store.stores() == Some(value)
            };
            let mut sources: Vec<Option<usize>> =
                (0..self.operations.len()).filter(may).map(Some).collect();
            if *value == interface.initial.text {
                sources.push(None);
            }
            let here = |s: &&Observation| {
                s.0 < end
                    && s.1 == o.processor
                    && self.operations[s.2].address.as_ref() == Some(address)
            };
            if let (true, Some(last)) = (sources.len() > 1, seen.iter().rev().find(here))
                && sources.contains(&Some(last.2))
            {
                sources = vec![Some(last.2)];
            }
            self.operations[i].sources = sources;
        }
    }

    fn relate(&mut self, interface: &Interface, seen: &[Observation]) {
        self.find_sources(interface, seen);
        let n = self.operations.len();
        let threads = self.threads();
        let same = |a: usize, b: usize| {
            self.operations[a].address.is_some()
                && self.operations[a].address == self.operations[b].address
        };
        // The store visible to the processor after an access: its own store, or the one that it
        // reads. Outer `None`: unknown.
        let visible = |i: usize| match &self.operations[i] {
            o if o.stores().is_some() => Some(Some(i)),
            o if o.sources.len() == 1 => Some(o.sources[0]),
            _ => None,
        };
        let mut co = vec![FixedBitSet::with_capacity(n); n];
        for p in &self.processors {
            let own: Vec<usize> = seen.iter().filter(|s| s.1 == *p).map(|s| s.2).collect();
            for (k, &a) in own.iter().enumerate() {
                own[k + 1..]
                    .iter()
                    .filter(|&&b| b != a && same(a, b))
                    .for_each(|&b| co[a].insert(b));
            }
        }
        let mut order = Vec::new();
        for thread in &threads {
            for (k, &a) in thread.iter().enumerate() {
                order.extend(thread[k + 1..].iter().filter(|&&b| same(a, b)).map(|&b| (a, b)));
            }
        }
        for &(a, b) in &order {
            if let (Some(Some(s)), Some(Some(t))) = (visible(a), visible(b))
                && s != t
            {
                co[s].insert(t);
            }
        }
        // An update stores immediately after the store that it reads.
        for (i, o) in
            self.operations.iter().enumerate().filter(|(_, o)| o.kind == EventKind::Update)
        {
            if let [Some(s)] = o.sources[..] {
                co[s].insert(i);
            }
        }
        let read: Vec<(usize, usize)> = (0..n)
            .filter_map(|i| {
                if let [Some(s)] = self.operations[i].sources[..] { Some((s, i)) } else { None }
            })
            .collect();
        // Only the first of the stores that come after the source of a load get an arrow.
        let mut fr = Vec::new();
        for i in (0..n).filter(|&i| self.operations[i].sources.len() == 1) {
            let after = |b: usize| match self.operations[i].sources[0] {
                Some(s) => co[s].contains(b),
                None => same(i, b) && self.operations[b].stores().is_some(),
            };
            let after: Vec<usize> = (0..n).filter(|&b| b != i && after(b)).collect();
            let first = |b: &usize| {
                !after.iter().any(|a| a != b && co[*a].contains(*b) && !co[*b].contains(*a))
            };
            fr.extend(after.iter().filter(|b| first(b)).map(|&b| (i, b)));
        }
        // A pair with a store between its two gets no arrow.
        let direct = |a: usize, b: usize| {
            !co[a]
                .ones()
                .any(|c| c != b && co[c].contains(b) && !co[c].contains(a) && !co[b].contains(c))
        };
        let direct_co: Vec<(usize, usize)> = (0..n)
            .flat_map(|a| co[a].ones().map(move |b| (a, b)))
            .filter(|&(a, b)| direct(a, b))
            .collect();
        let all: Vec<(usize, usize)> =
            order.iter().chain(&read).chain(&fr).chain(&direct_co).copied().collect();
        let cycle = shortest_cycle(n, &all);
        let cycle = |a: usize, b: usize| cycle.contains(&(a, b));
        let mut arrows: Vec<Arrow> = Vec::new();
        for thread in &threads {
            arrows.extend(
                thread
                    .windows(2)
                    .map(|w| (w[0], "po", w[1], same(w[0], w[1]) && cycle(w[0], w[1]))),
            );
        }
        let next: Vec<(usize, usize)> = arrows.iter().map(|a| (a.0, a.2)).collect();
        arrows.extend(
            order
                .iter()
                .filter(|(a, b)| cycle(*a, *b) && !next.contains(&(*a, *b)))
                .map(|&(a, b)| (a, "po-loc", b, true)),
        );
        for (relation, pairs) in [("rf", &read), ("co", &direct_co), ("fr", &fr)] {
            arrows.extend(pairs.iter().map(|&(a, b)| (a, relation, b, cycle(a, b))));
        }
        arrows.sort_unstable();
        self.arrows = arrows;
    }
}

/// Returns the arrows of a shortest cycle; empty if there is none.
fn shortest_cycle(n: usize, arrows: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut next = vec![Vec::new(); n];
    arrows.iter().for_each(|&(a, b)| next[a].push(b));
    let mut best: Vec<(usize, usize)> = Vec::new();
    for start in 0..n {
        // The predecessor by which each operation was first reached.
        let mut visited: Vec<Option<usize>> = vec![None; n];
        let mut queue = vec![start];
        let mut at = 0;
        while let Some(&a) = queue.get(at).filter(|_| visited[start].is_none()) {
            at += 1;
            for &b in next[a].iter().filter(|b| visited[**b].is_none()).collect::<Vec<_>>() {
                visited[b] = Some(a);
                queue.push(b);
            }
        }
        let mut cycle = Vec::new();
        let mut b = start;
        while let Some(a) = visited[b].filter(|_| visited[start].is_some()) {
            cycle.push((a, b));
            b = a;
            if b == start {
                break;
            }
        }
        if !cycle.is_empty() && (best.is_empty() || cycle.len() < best.len()) {
            best = cycle;
        }
    }
    best
}
