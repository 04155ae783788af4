//! Histories: small programs with the values that their reads take, as the input of a memory model.
//!
//! Text: threads separated by `||`, operations by `;`, as in `W x 1; R y 0 || W y 1; R x 0`.
//! `R.acq` is an acquire load, `W.rel` a release store, `F` a full fence; `U x 0 1` atomically
//! reads 0 and writes 1. All locations are initially 0. `~ x=2` at the end additionally requires
//! that the final value of `x` is 2. In a text, the writes to a location have distinct values other
//! than 0. The value of a read then determines the write from which it reads. Histories built by
//! other code need not satisfy this.
//!
//! A model allows a history if it allows one of its executions: for each read a write with its
//! value (`rf`), and for each location an order of its writes (`co`).

use std::collections::BTreeMap;
use std::fmt::Write;

use mu_base::Diagnostic;

use crate::cat::{Model, Session, Verdict};
use crate::execution::{Event, Kind, SetId, Skeleton, Vocabulary};
use crate::models::{Dialect, Mark};
use crate::relation::Relation;

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Operation {
    /// A read, a write, an update, or a fence.
    pub kind: Kind,
    /// Its location; 0 for a fence.
    pub location: u32,
    /// The value that it writes or, for a read, reads; 0 for a fence.
    pub value: u64,
    /// The value that an update reads; 0 for other operations.
    pub read: u64,
    /// Plain, acquire or release.
    pub mark: Mark,
}

impl Operation {
    /// Returns the value that a read or an update reads.
    pub fn taken(&self) -> u64 {
        if self.kind == Kind::Update { self.read } else { self.value }
    }
}

/// A program with the values of its reads.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct History {
    /// The operations of each thread.
    pub threads: Vec<Vec<Operation>>,
    /// Required final values of locations.
    pub last: Vec<(u32, u64)>,
}

/// Returns the name of a location.
pub fn location_name(l: u32) -> String {
    match l {
        0..3 => ["x", "y", "z"][l as usize].to_string(),
        _ => format!("a{}", l - 3),
    }
}

/// Calls `visit` with each permutation of `0..n` that begins with `order`.
fn each_permutation(n: usize, order: &mut Vec<usize>, visit: &mut dyn FnMut(&[usize])) {
    if order.len() == n {
        visit(order);
    }
    for i in 0..n {
        if !order.contains(&i) {
            order.push(i);
            each_permutation(n, order, visit);
            order.pop();
        }
    }
}

/// Renames locations, and the values of each location, in the order of their first occurrence.
fn renamed<'t>(threads: impl Iterator<Item = &'t Vec<Operation>>) -> History {
    fn place<T: PartialEq>(names: &mut Vec<T>, name: T) -> usize {
        names.iter().position(|n| *n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    }
    let (mut locations, mut values): (Vec<u32>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
    let mut rename = |o: &Operation| {
        if o.kind == Kind::Fence {
            return *o;
        }
        let location = place(&mut locations, o.location);
        if values.len() <= location {
            values.push(vec![0]);
        }
        let mut name = |v: u64| place(&mut values[location], v) as u64;
        let read = if o.kind == Kind::Update { name(o.read) } else { 0 };
        Operation { location: location as u32, read, value: name(o.value), ..*o }
    };
    History {
        threads: threads.map(|t| t.iter().map(&mut rename).collect()).collect(),
        last: Vec::new(),
    }
}

impl History {
    /// Parses the text of a history. Error: a message.
    pub fn parse(text: &str) -> Result<History, String> {
        let mut names: Vec<String> = Vec::new();
        let mut number = |name: &str| match names.iter().position(|n| n == name) {
            Some(i) => i as u32,
            None => {
                names.push(name.to_string());
                names.len() as u32 - 1
            }
        };
        let value = |t: &str| t.parse::<u64>().map_err(|_| format!("`{t}` is no value"));
        let (program, last) = text.split_once('~').unwrap_or((text, ""));
        let mut history = History::default();
        for thread in program.split("||") {
            let mut list = Vec::new();
            for op in thread.split(';').map(str::trim).filter(|o| !o.is_empty()) {
                let words: Vec<&str> = op.split_whitespace().collect();
                let (kind, mark) = match words[0] {
                    "R" => (Kind::Read, Mark::Plain),
                    "R.acq" => (Kind::Read, Mark::Acquire),
                    "W" => (Kind::Write, Mark::Plain),
                    "W.rel" => (Kind::Write, Mark::Release),
                    "F" => (Kind::Fence, Mark::Plain),
                    "U" => (Kind::Update, Mark::Plain),
                    other => {
                        return Err(format!(
                            "`{other}` is no operation: expected `R`, `R.acq`, `W`, `W.rel`, `U` or `F`"
                        ));
                    }
                };
                list.push(match (kind, words.as_slice()) {
                    (Kind::Fence, [_]) => Operation { kind, location: 0, value: 0, read: 0, mark },
                    (Kind::Update, [_, l, r, v]) => Operation {
                        kind,
                        location: number(l),
                        value: value(v)?,
                        read: value(r)?,
                        mark,
                    },
                    (Kind::Read | Kind::Write, [_, l, v]) => {
                        Operation { kind, location: number(l), value: value(v)?, read: 0, mark }
                    }
                    _ => {
                        return Err(format!(
                            "`{op}` is no operation: expected `R x 0`, `W x 1`, `U x 0 1` or `F`"
                        ));
                    }
                });
            }
            history.threads.push(list);
        }
        for part in last.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (l, v) = part.split_once('=').ok_or_else(|| format!("`{part}`: expected `x=1`"))?;
            history.last.push((number(l.trim()), value(v.trim())?));
        }
        history.check()?;
        Ok(history)
    }
    fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.threads.iter().flatten()
    }
    /// Checks that the writes to a location have distinct values other than 0, and that each value
    /// read is written.
    fn check(&self) -> Result<(), String> {
        let mut written: BTreeMap<(u32, u64), usize> = BTreeMap::new();
        for o in self.operations().filter(|o| o.kind.writes()) {
            if o.value == 0 || written.insert((o.location, o.value), 1).is_some() {
                return Err(format!(
                    "the writes to `{}` must have distinct values other than 0",
                    location_name(o.location)
                ));
            }
        }
        let known = |l: u32, v: u64| v == 0 || written.contains_key(&(l, v));
        let wrong = self
            .operations()
            .filter(|o| o.kind.reads())
            .map(|o| (o.location, o.taken()))
            .find(|&(l, v)| !known(l, v));
        match wrong.or_else(|| self.last.iter().copied().find(|&(l, v)| !known(l, v))) {
            Some((l, v)) => Err(format!("no operation writes {v} to `{}`", location_name(l))),
            None => Ok(()),
        }
    }
    /// Returns the canonical representative under renaming: threads in another order, the longest
    /// first, without empty ones; locations, and the values at each, in the order of their first
    /// occurrence. The value 0 is fixed. Models do not distinguish the history from its
    /// representative.
    pub fn canonical(&self) -> History {
        let busy: Vec<&Vec<Operation>> = self.threads.iter().filter(|t| !t.is_empty()).collect();
        let mut best: Option<History> = None;
        each_permutation(busy.len(), &mut Vec::new(), &mut |order| {
            if order.windows(2).all(|w| busy[w[0]].len() >= busy[w[1]].len()) {
                let next = renamed(order.iter().map(|&i| busy[i]));
                if best.as_ref().is_none_or(|b| next < *b) {
                    best = Some(next);
                }
            }
        });
        best.unwrap_or_default()
    }
    /// Returns the program of the history: its canonical form with 0 as the value of all reads.
    pub fn program(&self) -> History {
        let mut out = self.clone();
        for o in out.threads.iter_mut().flatten() {
            match o.kind {
                Kind::Read => o.value = 0,
                Kind::Update => o.read = 0,
                _ => {}
            }
        }
        out.canonical()
    }
    /// True if each read has a possible source: a write with its value, or the initial value.
    pub fn is_sourced(&self) -> bool {
        let written = |l: u32, v: u64| {
            v == 0 || self.operations().any(|w| w.kind.writes() && (w.location, w.value) == (l, v))
        };
        self.operations().filter(|o| o.kind.reads()).all(|o| written(o.location, o.taken()))
    }
    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }
    /// True if it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of locations.
    pub fn locations(&self) -> u32 {
        let used = self.operations().filter(|o| o.kind != Kind::Fence).map(|o| o.location + 1);
        used.chain(self.last.iter().map(|l| l.0 + 1)).max().unwrap_or(0)
    }
    /// Returns its events: the initial writes, then the threads one after the other. An update is a
    /// read and a write.
    pub fn events(&self) -> Vec<(Event, Mark)> {
        let mut out: Vec<(Event, Mark)> =
            (0..self.locations()).map(|l| (Event::initial(l, 0), Mark::Plain)).collect();
        for (t, thread) in self.threads.iter().enumerate() {
            let t = t as u32;
            for (i, o) in thread.iter().enumerate() {
                let i = 2 * i as u32;
                match o.kind {
                    Kind::Fence => out.push((Event::other(t, i, Kind::Fence), o.mark)),
                    Kind::Update => {
                        out.push((Event::access(t, i, Kind::Read, o.location, o.read), o.mark));
                        out.push((
                            Event::access(t, i + 1, Kind::Write, o.location, o.value),
                            o.mark,
                        ));
                    }
                    kind => out.push((Event::access(t, i, kind, o.location, o.value), o.mark)),
                }
            }
        }
        out
    }
    /// Returns its events with the tags of a dialect, given the dialect's vocabulary.
    pub fn skeleton(&self, dialect: Dialect, vocabulary: &Vocabulary) -> Skeleton {
        let events = self.events();
        let mut skeleton = dialect.skeleton(vocabulary, &events);
        let mut at = self.locations() as usize;
        for o in self.operations() {
            if o.kind == Kind::Update {
                dialect.update(vocabulary, &mut skeleton, at, at + 1);
                at += 1;
            }
            at += 1;
        }
        skeleton
    }
    /// Returns all reads-from relations: for each read one write with its value. Empty if some read
    /// has no such write.
    pub fn reads_from(&self, s: &Skeleton) -> Vec<Relation> {
        let e = s.events();
        let mut out = vec![Relation::empty(s.len())];
        for r in s.set(SetId::READS).iter() {
            let sources: Vec<usize> = s.sources(r).filter(|&w| e[w].value == e[r].value).collect();
            if let [w] = sources[..] {
                out.iter_mut().for_each(|rf| rf.insert(w, r));
                continue;
            }
            let with = |rf: &Relation, w: usize| {
                let mut rf = rf.clone();
                rf.insert(w, r);
                rf
            };
            out = out.iter().flat_map(|rf| sources.iter().map(move |&w| with(rf, w))).collect();
        }
        out
    }
    /// Returns a relation from each write to all reads of its location with its value, for serial
    /// views.
    pub fn sources(&self, s: &Skeleton) -> Relation {
        let mut all = Relation::empty(s.len());
        let e = s.events();
        for r in s.set(SetId::READS).iter() {
            s.sources(r).filter(|&w| e[w].value == e[r].value).for_each(|w| all.insert(w, r));
        }
        all
    }
    /// Calls `visit` with each coherence order that gives the required final values, until `visit`
    /// returns true or fails. Returns true if `visit` returned true.
    pub fn coherence_orders(
        &self,
        s: &Skeleton,
        visit: &mut dyn FnMut(&Relation) -> Result<bool, Diagnostic>,
    ) -> Result<bool, Diagnostic> {
        let parts = s.writes_by_location();
        let e = s.events();
        let writes = || parts.iter().flat_map(|part| part.iter());
        // The write that is the last one of each location with a required final value.
        let mut choices: Vec<Vec<usize>> = vec![Vec::new()];
        for &(l, v) in &self.last {
            let stores = |w: &usize| e[*w].location == Some(l) && e[*w].value == v;
            let candidates: Vec<usize> = writes().filter(stores).collect();
            if candidates.is_empty() && v == 0 {
                continue;
            }
            let with = |choice: &Vec<usize>, w: usize| [&choice[..], &[w]].concat();
            choices = choices
                .iter()
                .flat_map(|choice| candidates.iter().map(move |w| with(choice, *w)))
                .collect();
        }
        let mut error = None;
        let mut found = false;
        for last in choices {
            let mut first = Relation::empty(s.len());
            for part in &parts {
                for a in part.iter() {
                    part.iter()
                        .filter(|&b| b != a && (e[a].thread.is_none() || last.contains(&b)))
                        .for_each(|b| first.insert(a, b));
                }
            }
            found =
                crate::cat::each_order(&parts, &first, &mut Relation::empty(s.len()), &mut |co| {
                    visit(co).unwrap_or_else(|e| {
                        error = Some(e);
                        true
                    })
                });
            if found {
                break;
            }
        }
        error.map_or(Ok(found), Err)
    }
    /// Prints the history.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (t, thread) in self.threads.iter().enumerate() {
            out += if t == 0 { "" } else { " || " };
            for (i, o) in thread.iter().enumerate() {
                out += if i == 0 { "" } else { "; " };
                let mark = match o.mark {
                    Mark::Plain => "",
                    Mark::Acquire => ".acq",
                    Mark::Release => ".rel",
                };
                let letter = if o.kind.reads() { "R" } else { "W" };
                let _ = match o.kind {
                    Kind::Fence => write!(out, "F"),
                    Kind::Update => {
                        write!(out, "U {} {} {}", location_name(o.location), o.read, o.value)
                    }
                    _ => write!(out, "{letter}{mark} {} {}", location_name(o.location), o.value),
                };
            }
        }
        for (i, (l, v)) in self.last.iter().enumerate() {
            let _ = write!(out, "{}{}={v}", if i == 0 { " ~ " } else { ", " }, location_name(*l));
        }
        out
    }
    /// Prints the history without the values of its reads.
    pub fn program_text(&self) -> String {
        let one = |o: &Operation| {
            let text = History { threads: vec![vec![*o]], last: Vec::new() }.text();
            let words: Vec<&str> = text.split_whitespace().collect();
            match o.kind {
                Kind::Read => words[..2].join(" "),
                Kind::Update => [words[0], words[1], words[3]].join(" "),
                _ => text,
            }
        };
        let threads = self.threads.iter().map(|t| t.iter().map(one).collect::<Vec<_>>().join("; "));
        threads.collect::<Vec<_>>().join(" || ")
    }
    /// Prints a litmus test in C with atomics, for the herd tools. Its condition is that all reads
    /// have their values. Plain accesses are relaxed.
    pub fn litmus(&self, name: &str) -> String {
        self.litmus_with_condition(name, None)
    }
    /// Prints a litmus test with another condition; `None`: that of [`History::litmus`]. Register
    /// `t:ri` holds the value that operation `i` of thread `t` reads.
    pub fn litmus_with_condition(&self, name: &str, question: Option<&str>) -> String {
        let mut out = format!("C {name}\n\n{{}}\n");
        let all: Vec<String> =
            (0..self.locations()).map(|l| format!("atomic_int* {}", location_name(l))).collect();
        let mut condition = Vec::new();
        for (t, thread) in self.threads.iter().enumerate() {
            let _ = write!(out, "\nP{t} ({}) {{\n", all.join(", "));
            for (i, o) in thread.iter().enumerate() {
                let l = location_name(o.location);
                let order = match o.mark {
                    Mark::Plain => "relaxed",
                    Mark::Acquire => "acquire",
                    Mark::Release => "release",
                };
                let _ = match o.kind {
                    Kind::Fence => writeln!(out, "  atomic_thread_fence(memory_order_seq_cst);"),
                    Kind::Write => writeln!(
                        out,
                        "  atomic_store_explicit({l}, {}, memory_order_{order});",
                        o.value
                    ),
                    Kind::Update => {
                        condition.push(format!("{t}:r{i}={}", o.read));
                        writeln!(
                            out,
                            "  int r{i} = atomic_exchange_explicit({l}, {}, memory_order_{order});",
                            o.value
                        )
                    }
                    _ => {
                        condition.push(format!("{t}:r{i}={}", o.value));
                        writeln!(
                            out,
                            "  int r{i} = atomic_load_explicit({l}, memory_order_{order});"
                        )
                    }
                };
            }
            out += "}\n";
        }
        condition.extend(self.last.iter().map(|(l, v)| format!("{}={v}", location_name(*l))));
        let condition =
            if condition.is_empty() { "true".to_string() } else { condition.join(" /\\ ") };
        let _ = match question {
            Some(question) => write!(out, "\n{question}\n"),
            None => write!(out, "\nexists ({condition})\n"),
        };
        out
    }
}

/// Decision procedure for histories: a model with the vocabulary of its dialect.
pub struct Judge<'m> {
    model: &'m Model,
    dialect: Dialect,
    session: Session<'m>,
}

impl<'m> Judge<'m> {
    /// Creates the procedure for a model that was compiled for the dialect's vocabulary.
    pub fn new(model: &'m Model, dialect: Dialect) -> Self {
        Self { model, dialect, session: Session::new(model) }
    }
    /// True if the model allows a history. Cost: a check for each reads-from relation and each
    /// coherence order.
    pub fn allows(&mut self, history: &History) -> Result<bool, Diagnostic> {
        let skeleton = history.skeleton(self.dialect, self.model.vocabulary());
        let mut run = self.session.on(&skeleton)?;
        if !run.holds() {
            return Ok(false);
        }
        for rf in history.reads_from(&skeleton) {
            if run.reads(&rf)?
                && history.coherence_orders(&skeleton, &mut |co| run.coherence(&rf, co))?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
    /// Returns the verdict on the first execution that is allowed or, if none is, on the first one,
    /// with its events, its reads-from relation, and its coherence order.
    pub fn verdict(
        &mut self,
        history: &History,
    ) -> Result<(Verdict, Skeleton, Relation, Relation), Diagnostic> {
        let skeleton = history.skeleton(self.dialect, self.model.vocabulary());
        let mut chosen: Option<(Relation, Relation)> = None;
        let mut run = self.session.on(&skeleton)?;
        for rf in history.reads_from(&skeleton) {
            let found = history.coherence_orders(&skeleton, &mut |co| {
                let allowed = run.allows(&rf, co)?;
                if allowed || chosen.is_none() {
                    chosen = Some((rf.clone(), co.clone()));
                }
                Ok(allowed)
            })?;
            if found {
                break;
            }
        }
        let (rf, co) = chosen
            .unwrap_or_else(|| (Relation::empty(skeleton.len()), Relation::empty(skeleton.len())));
        let verdict = run.verdict(&rf, &co)?;
        Ok((verdict, skeleton.clone(), rf, co))
    }
}
