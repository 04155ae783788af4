//! Histories: small programs with the values that their reads take, as the input of a memory model.
//!
//! Text: threads separated by `||`, operations by `;`, as in `W x 1; R y 0 || W y 1; R x 0`.
//! `R.acq`, `W.rel` are acquires and releases, `F` is a full fence, `U x 0 1` atomically reads 0
//! and writes 1 (`U.acq`, `U.rel`, `U.acqrel`). `F.w.rw` is a fence between writes before it and
//! all accesses after it; `F.acq`, `F.rel`, `F.tso` are others. `R.ex` and `W.ex` are a
//! load-reserve and its store-conditional. `@addr(0)`, `@data(0,2)`, `@ctrl(1)` after an operation
//! list the operations of its thread on which it depends, from 0. All locations are initially 0.
//! `~ x=2` at the end additionally requires that the final value of `x` is 2. In a text the writes
//! to a location have distinct values different from 0, so that the value of a read determines its
//! source. Histories built by other code need not satisfy this.
//!
//! A model allows a history if it allows one of its executions: for each read a write with its
//! value (`rf`), and for each location an order of its writes (`co`).

use mu_base::{narrow, permutations};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;

use mu_base::{Budget, Diagnostic};

use crate::cat::{CatModel, ModelVerdict, Session};
use crate::execution::{Event, EventKind, RelationId, SetId, Skeleton, Vocabulary};
use crate::execution_search::{self, SearchInput};
use crate::models::{Dialect, FenceSide, MemoryOrdering};
use crate::relation::Relation;

/// The dependencies of an operation on the values of earlier loads of its thread, as bits by the
/// positions of these loads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Dependencies {
    /// Those from which its address is computed.
    pub address: u32,
    /// Those from which the value that it writes is computed.
    pub data: u32,
    /// Those on which a branch before it depends. All later operations of the thread are after that
    /// branch too.
    pub control: u32,
}

impl Dependencies {
    /// No dependency.
    pub const NONE: Dependencies = Dependencies { address: 0, data: 0, control: 0 };
    /// The largest number of operations of a thread with dependencies.
    pub const LIMIT: usize = 32;

    /// Returns the positions of the bits.
    pub fn positions(bits: u32) -> impl Iterator<Item = usize> {
        (0..Self::LIMIT).filter(move |i| bits >> i & 1 == 1)
    }
    /// Returns the three sets with their names.
    pub fn named_sets(self) -> [(&'static str, u32); 3] {
        [("addr", self.address), ("data", self.data), ("ctrl", self.control)]
    }
}

/// One operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Operation {
    /// A read, a write, an update, or a fence.
    pub kind: EventKind,
    /// Its location; 0 for a fence.
    pub location: u32,
    /// The value that it writes or, for a read, reads; 0 for a fence.
    pub value: u64,
    /// The value that an update reads; 0 for other operations.
    pub read: u64,
    /// Plain, acquire or release; the accesses that a fence orders.
    pub mark: MemoryOrdering,
    /// True for a load-reserve, and for a store-conditional that succeeds.
    pub exclusive: bool,
    /// The loads on which it depends.
    pub depends: Dependencies,
}

impl Operation {
    /// Creates an access without ordering or dependencies; `read` is 0. For a fence, `location` and
    /// `value` are 0.
    pub fn plain(kind: EventKind, location: u32, value: u64) -> Self {
        Self {
            kind,
            location,
            value,
            read: 0,
            mark: MemoryOrdering::Plain,
            exclusive: false,
            depends: Dependencies::NONE,
        }
    }
    /// Creates an update.
    pub fn update(location: u32, read: u64, value: u64) -> Self {
        Self { read, ..Self::plain(EventKind::Update, location, value) }
    }
    /// Creates a fence.
    pub fn fence(mark: MemoryOrdering) -> Self {
        Self { mark, ..Self::plain(EventKind::Fence, 0, 0) }
    }
    /// Returns the value that a read or an update reads.
    pub fn read_value(&self) -> u64 {
        if self.kind == EventKind::Update { self.read } else { self.value }
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

/// Renames locations, and the values of each location, in the order of their first occurrence.
fn normalise_names<'t>(threads: impl Iterator<Item = &'t Vec<Operation>>) -> History {
    fn place<T: PartialEq>(names: &mut Vec<T>, name: T) -> usize {
        names.iter().position(|n| *n == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        })
    }
    let (mut locations, mut values): (Vec<u32>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
    let mut rename = |o: &Operation| {
        if o.kind == EventKind::Fence {
            return *o;
        }
        let location = place(&mut locations, o.location);
        if values.len() <= location {
            values.push(vec![0]);
        }
        let mut name = |v: u64| place(&mut values[location], v) as u64;
        let read = if o.kind == EventKind::Update { name(o.read) } else { 0 };
        Operation { location: narrow::index(location), read, value: name(o.value), ..*o }
    };
    History {
        threads: threads.map(|t| t.iter().map(&mut rename).collect()).collect(),
        last: Vec::new(),
    }
}

fn parse_value(text: &str) -> Result<u64, String> {
    text.parse::<u64>().map_err(|_| format!("`{text}` is no value"))
}

/// The suffixes of operations, with their marks.
const MARKS: [(&str, MemoryOrdering); 5] = [
    ("", MemoryOrdering::Plain),
    (".acq", MemoryOrdering::Acquire),
    (".rel", MemoryOrdering::Release),
    (".acqrel", MemoryOrdering::AcquireRelease),
    (".tso", MemoryOrdering::AcquireRelease),
];

/// Returns the suffix of an operation's name.
fn suffix(o: &Operation) -> String {
    let mark = match o.mark {
        MemoryOrdering::Between(before, after) => {
            format!(".{}.{}", before.letters(), after.letters())
        }
        MemoryOrdering::AcquireRelease if o.kind == EventKind::Fence => ".tso".to_string(),
        mark => MARKS.iter().find(|m| m.1 == mark).map_or("", |m| m.0).to_string(),
    };
    if o.exclusive { format!(".ex{mark}") } else { mark }
}

/// Parses the dependencies after an operation.
fn dependencies(text: &str) -> Result<Dependencies, String> {
    let wrong = || format!("`@{text}`: expected `addr(0)`, `data(0,1)` or `ctrl(0)`");
    let mut out = Dependencies::NONE;
    for part in text.split('@').map(str::trim) {
        let (name, list) = part.split_once('(').ok_or_else(wrong)?;
        let list = list.strip_suffix(')').ok_or_else(wrong)?;
        let place = match name {
            "addr" => &mut out.address,
            "data" => &mut out.data,
            "ctrl" => &mut out.control,
            _ => return Err(wrong()),
        };
        for number in list.split(',') {
            let at: usize = number.trim().parse().map_err(|_| wrong())?;
            if at >= Dependencies::LIMIT {
                return Err(wrong());
            }
            *place |= 1 << at;
        }
    }
    Ok(out)
}

/// Parses an operation. `number` returns the number of a location.
fn operation(text: &str, number: &mut dyn FnMut(&str) -> u32) -> Result<Operation, String> {
    let (main, depends) = match text.split_once('@') {
        Some((main, rest)) => (main, dependencies(rest)?),
        None => (text, Dependencies::NONE),
    };
    let words: Vec<&str> = main.split_whitespace().collect();
    let unknown = || {
        format!(
            "`{text}` is no operation: expected `R x 0`, `W x 1`, `U x 0 1` or `F`, with suffixes such as `R.acq`"
        )
    };
    let Some(&first) = words.first() else { return Err(unknown()) };
    let (letter, rest) = first.split_at(first.chars().next().map_or(0, char::len_utf8));
    let kind = match letter {
        "R" => EventKind::Read,
        "W" => EventKind::Write,
        "U" => EventKind::Update,
        "F" => EventKind::Fence,
        _ => return Err(unknown()),
    };
    let (exclusive, rest) = match rest.strip_prefix(".ex") {
        Some(rest) if matches!(kind, EventKind::Read | EventKind::Write) => (true, rest),
        _ => (false, rest),
    };
    let mark = match MARKS.iter().find(|m| m.0 == rest) {
        Some(m) => m.1,
        None if kind == EventKind::Fence => {
            let parts: Vec<&str> = rest.split('.').skip(1).collect();
            let [before, after] = parts[..] else { return Err(unknown()) };
            let of = |t: &str| FenceSide::of_letters(t).ok_or_else(unknown);
            MemoryOrdering::between(of(before)?, of(after)?)
        }
        None => return Err(unknown()),
    };
    let allowed = match kind {
        EventKind::Read => !mark.releases() && rest != ".tso",
        EventKind::Write => !mark.acquires() && rest != ".tso",
        EventKind::Update => rest != ".tso",
        _ => rest != ".acqrel",
    };
    if !allowed {
        return Err(unknown());
    }
    let out = match (kind, words.as_slice()) {
        (EventKind::Fence, [_]) => Operation::fence(mark),
        (EventKind::Update, [_, l, r, v]) => {
            Operation::update(number(l), parse_value(r)?, parse_value(v)?)
        }
        (EventKind::Read | EventKind::Write, [_, l, v]) => {
            Operation::plain(kind, number(l), parse_value(v)?)
        }
        _ => return Err(unknown()),
    };
    Ok(Operation { mark, exclusive, depends, ..out })
}

impl History {
    /// Parses the text of a history. Error: a message.
    pub fn parse(text: &str) -> Result<History, String> {
        let mut names: Vec<String> = Vec::new();
        let mut number = |name: &str| match names.iter().position(|n| n == name) {
            Some(i) => narrow::index(i),
            None => {
                names.push(name.to_string());
                narrow::index(names.len()) - 1
            }
        };
        let (program, last) = text.split_once('~').unwrap_or((text, ""));
        let mut history = History::default();
        for thread in program.split("||") {
            let mut list = Vec::new();
            for op in thread.split(';').map(str::trim).filter(|o| !o.is_empty()) {
                list.push(operation(op, &mut number)?);
            }
            history.threads.push(list);
        }
        for part in last.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (l, v) = part.split_once('=').ok_or_else(|| format!("`{part}`: expected `x=1`"))?;
            history.last.push((number(l.trim()), parse_value(v.trim())?));
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
        for thread in &self.threads {
            for (i, o) in thread.iter().enumerate() {
                for (name, bits) in o.depends.named_sets() {
                    let wrong =
                        Dependencies::positions(bits).find(|&p| p >= i || !thread[p].kind.reads());
                    if let Some(p) = wrong {
                        return Err(format!(
                            "`@{name}({p})`: operation {p} of the thread is no earlier read"
                        ));
                    }
                }
                if o.depends.data != 0 && !o.kind.writes()
                    || o.depends.address != 0 && o.kind == EventKind::Fence
                {
                    return Err("a read has no data dependency, and a fence none of both".into());
                }
            }
        }
        let known = |l: u32, v: u64| v == 0 || written.contains_key(&(l, v));
        let wrong = self
            .operations()
            .filter(|o| o.kind.reads())
            .map(|o| (o.location, o.read_value()))
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
        let mut order: Vec<usize> = (0..busy.len()).collect();
        loop {
            if order.windows(2).all(|w| busy[w[0]].len() >= busy[w[1]].len()) {
                let next = normalise_names(order.iter().map(|&i| busy[i]));
                if best.as_ref().is_none_or(|b| next < *b) {
                    best = Some(next);
                }
            }
            if !permutations::advance(&mut order) {
                break;
            }
        }
        best.unwrap_or_default()
    }
    /// Removes dependencies on branches that an earlier operation of the thread has too, which mean
    /// nothing.
    pub fn normalise(&mut self) {
        for thread in &mut self.threads {
            let mut branched = 0;
            for o in thread {
                o.depends.control &= !branched;
                branched |= o.depends.control;
            }
        }
    }
    /// Returns the program of the history: its canonical form with 0 as the value of all reads.
    pub fn program(&self) -> History {
        let mut out = self.clone();
        for o in out.threads.iter_mut().flatten() {
            match o.kind {
                EventKind::Read => o.value = 0,
                EventKind::Update => o.read = 0,
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
        self.operations().filter(|o| o.kind.reads()).all(|o| written(o.location, o.read_value()))
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
        let used = self.operations().filter(|o| o.kind != EventKind::Fence).map(|o| o.location + 1);
        used.chain(self.last.iter().map(|l| l.0 + 1)).max().unwrap_or(0)
    }
    /// Returns the position of the load-reserve of each store-conditional in a thread: the last
    /// exclusive access before it, if that is a load of the same address. Without it, the store
    /// must fail.
    fn reservations(thread: &[Operation]) -> impl Iterator<Item = (usize, Option<usize>)> + '_ {
        let conditional = |o: &Operation| o.exclusive && o.kind == EventKind::Write;
        (0..thread.len()).filter(move |&i| conditional(&thread[i])).map(|i| {
            let last = (0..i).rev().find(|&j| thread[j].exclusive);
            let is_own = |j: &usize| {
                thread[*j].kind == EventKind::Read && thread[*j].location == thread[i].location
            };
            (i, last.filter(is_own))
        })
    }
    /// True if each store-conditional has a reservation.
    pub fn is_reserved(&self) -> bool {
        self.threads.iter().all(|t| Self::reservations(t).all(|(_, load)| load.is_some()))
    }
    /// Returns its events: the initial writes, then the threads one after the other. An update is a
    /// read and a write.
    pub fn events(&self) -> Vec<(Event, MemoryOrdering)> {
        let mut out: Vec<(Event, MemoryOrdering)> =
            (0..self.locations()).map(|l| (Event::initial(l, 0), MemoryOrdering::Plain)).collect();
        for (t, thread) in self.threads.iter().enumerate() {
            let t = narrow::index(t);
            for (i, o) in thread.iter().enumerate() {
                let i = 2 * narrow::index(i);
                match o.kind {
                    EventKind::Fence => out.push((Event::other(t, i, EventKind::Fence), o.mark)),
                    EventKind::Update => {
                        out.push((
                            Event::access(t, i, EventKind::Read, o.location, o.read),
                            o.mark,
                        ));
                        out.push((
                            Event::access(t, i + 1, EventKind::Write, o.location, o.value),
                            o.mark,
                        ));
                    }
                    kind => out.push((Event::access(t, i, kind, o.location, o.value), o.mark)),
                }
            }
        }
        out
    }
    /// Returns its events with the tags of a dialect, given the dialect's vocabulary. `model`: the
    /// model that judges them, if it is one of axioms.
    pub fn skeleton(
        &self,
        dialect: Dialect,
        vocabulary: &Vocabulary,
        model: Option<&CatModel>,
    ) -> Skeleton {
        let events = self.events().into_iter().map(|(event, mark)| match event.kind {
            EventKind::Fence => Event { kind: dialect.fence_kind(mark), ..event },
            _ => event,
        });
        let mut skeleton = Skeleton::new(vocabulary, events.collect());
        let mut at = self.locations() as usize;
        if let Dialect::Of(crate::Architecture::C11) = dialect {
            (0..at).for_each(|e| {
                dialect.tag(
                    vocabulary,
                    &mut skeleton,
                    e,
                    (EventKind::Write, MemoryOrdering::Plain, false),
                );
            });
        }
        for thread in &self.threads {
            // The event that reads, and the one that writes, of each operation.
            let mut places: Vec<(usize, usize)> = Vec::with_capacity(thread.len());
            for o in thread {
                let update = o.kind == EventKind::Update;
                let last = at + usize::from(update);
                let kinds =
                    if update { (EventKind::Read, EventKind::Write) } else { (o.kind, o.kind) };
                dialect.tag(vocabulary, &mut skeleton, at, (kinds.0, o.mark, update));
                if update {
                    dialect.tag(vocabulary, &mut skeleton, last, (kinds.1, o.mark, update));
                    dialect.update(vocabulary, &mut skeleton, at, last);
                }
                if o.exclusive {
                    dialect.exclusive(model, &mut skeleton, at);
                }
                places.push((at, last));
                at = last + 1;
            }
            for (store, load) in Self::reservations(thread) {
                if let Some(load) = load {
                    skeleton.relate(RelationId::LXSX, places[load].0, places[store].1);
                }
            }
            let mut branched = 0;
            for (o, &(first, last)) in thread.iter().zip(&places) {
                branched |= o.depends.control;
                for (relation, bits) in [
                    (RelationId::ADDR, o.depends.address),
                    (RelationId::DATA, o.depends.data),
                    (RelationId::CTRL, branched),
                ] {
                    for from in Dependencies::positions(bits).filter_map(|p| places.get(p)) {
                        if relation != RelationId::DATA && last != first {
                            skeleton.relate(relation, from.0, first);
                        }
                        skeleton.relate(relation, from.0, last);
                    }
                }
            }
        }
        skeleton
    }
    /// Calls `visit` with each reads-from relation, for each read one write with its value, until
    /// `visit` returns true or fails. There is none if some read has no such write. Memory: that of
    /// one relation. Returns true if `visit` returned true.
    pub fn reads_from(
        &self,
        s: &Skeleton,
        visit: &mut dyn FnMut(&Relation) -> Result<bool, Diagnostic>,
    ) -> Result<bool, Diagnostic> {
        let sources = execution_search::sources_by_value(s);
        if sources.iter().any(|(_, list)| list.is_empty()) {
            return Ok(false);
        }
        let mut rf = Relation::from_pairs(s.len(), sources.iter().map(|(r, list)| (list[0], *r)));
        let mut at = vec![0; sources.len()];
        loop {
            if visit(&rf)? {
                return Ok(true);
            }
            // The last read changes first.
            let mut place = sources.len();
            loop {
                let Some(i) = place.checked_sub(1) else { return Ok(false) };
                let (r, list) = &sources[i];
                rf.remove(list[at[i]], *r);
                at[i] = (at[i] + 1) % list.len();
                rf.insert(list[at[i]], *r);
                if at[i] > 0 {
                    break;
                }
                place = i;
            }
        }
    }
    /// True if all executions can be enumerated: at most this number of choices of sources and
    /// orders of writes.
    fn is_small(&self, s: &Skeleton, most: usize) -> bool {
        let factorial = |n: usize| (1..n).try_fold(1usize, |all, i| all.checked_mul(i));
        let sources =
            execution_search::sources_by_value(s).into_iter().map(|(_, list)| Some(list.len()));
        let orders = s.writes_by_location().into_iter().map(|part| factorial(part.len()));
        let all = sources.chain(orders).try_fold(1usize, |all, n| all.checked_mul(n?));
        all.is_some_and(|n| n <= most)
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
                let mark = suffix(o);
                let letter = if o.kind.reads() { "R" } else { "W" };
                let _ = match o.kind {
                    EventKind::Fence => write!(out, "F{mark}"),
                    EventKind::Update => {
                        write!(out, "U{mark} {} {} {}", location_name(o.location), o.read, o.value)
                    }
                    _ => write!(out, "{letter}{mark} {} {}", location_name(o.location), o.value),
                };
                for (name, bits) in o.depends.named_sets().into_iter().filter(|d| d.1 != 0) {
                    let list: Vec<String> =
                        Dependencies::positions(bits).map(|p| p.to_string()).collect();
                    let _ = write!(out, " @{name}({})", list.join(","));
                }
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
            let mut words: Vec<&str> = text.split_whitespace().collect();
            match o.kind {
                EventKind::Read | EventKind::Update => {
                    words.remove(2);
                    words.join(" ")
                }
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
                    MemoryOrdering::Plain if o.kind == EventKind::Fence => "seq_cst",
                    MemoryOrdering::Plain => "relaxed",
                    MemoryOrdering::Acquire => "acquire",
                    MemoryOrdering::Release => "release",
                    MemoryOrdering::AcquireRelease | MemoryOrdering::Between(..) => "acq_rel",
                };
                let _ = match o.kind {
                    EventKind::Fence => {
                        writeln!(out, "  atomic_thread_fence(memory_order_{order});")
                    }
                    EventKind::Write => writeln!(
                        out,
                        "  atomic_store_explicit({l}, {}, memory_order_{order});",
                        o.value
                    ),
                    EventKind::Update => {
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

/// Number of executions up to which all of them are enumerated, without a search.
const ENUMERATED: usize = 50_000;

/// Decision procedure for histories: a model with the vocabulary of its dialect.
pub struct HistoryChecker<'m> {
    model: &'m CatModel,
    dialect: Dialect,
    session: Session<'m>,
    /// The monotone lower bound of the model, for histories with many executions.
    bound: OnceCell<CatModel>,
    budget: Budget,
    enumerated: usize,
}

impl<'m> HistoryChecker<'m> {
    /// Creates the procedure for a model that was compiled for the dialect's vocabulary.
    pub fn new(model: &'m CatModel, dialect: Dialect) -> Self {
        Self {
            model,
            dialect,
            session: Session::new(model),
            bound: OnceCell::new(),
            budget: Budget::default(),
            enumerated: ENUMERATED,
        }
    }
    /// Sets a budget: a limit ends the decision about a history with many executions by an error.
    #[must_use]
    pub fn with_budget(mut self, budget: &Budget) -> Self {
        self.budget = budget.clone();
        self
    }
    /// Sets the number of executions up to which all of them are enumerated; for tests, which
    /// compare the enumeration with the search.
    #[must_use]
    pub fn with_enumeration_limit(mut self, executions: usize) -> Self {
        self.enumerated = executions;
        self
    }
    fn skeleton(&self, history: &History) -> Skeleton {
        history.skeleton(self.dialect, self.model.vocabulary(), Some(self.model))
    }
    /// True if the model allows a history. Cost: a check for each reads-from relation and each
    /// coherence order if they are few; otherwise that of a search, exponential at worst.
    pub fn allows(&mut self, history: &History) -> Result<bool, Diagnostic> {
        if !history.is_reserved() {
            return Ok(false);
        }
        let skeleton = self.skeleton(history);
        if !self.is_enumerated(history, &skeleton) {
            return Ok(self.find(&skeleton)?.is_some());
        }
        let mut run = self.session.start(&skeleton)?;
        if !run.holds() {
            return Ok(false);
        }
        history.reads_from(&skeleton, &mut |rf| {
            Ok(run.set_reads_from(rf)?
                && history.coherence_orders(&skeleton, &mut |co| run.set_coherence(rf, co))?)
        })
    }
    fn is_enumerated(&self, history: &History, skeleton: &Skeleton) -> bool {
        !history.last.is_empty() || history.is_small(skeleton, self.enumerated)
    }
    /// Searches for an allowed execution of a history without required final values.
    fn find(&mut self, skeleton: &Skeleton) -> Result<Option<(Relation, Relation)>, Diagnostic> {
        let bound = self.bound.get_or_init(|| self.model.lower_bound());
        let depends_on_coherence =
            self.model.reads_relation(RelationId::CO) || self.model.reads_set(SetId::FINAL);
        let mut run = self.session.start(skeleton)?;
        if !run.holds() {
            return Ok(None);
        }
        let mut session = Session::new(bound);
        let mut bound = session.start(skeleton)?;
        let input = SearchInput { skeleton, depends_on_coherence };
        execution_search::find(input, &mut run, &mut bound, &self.budget)
    }
    /// Returns the verdict on the first execution that is allowed or, if none is, on the first one,
    /// with its events, its reads-from relation, and its coherence order.
    pub fn verdict(
        &mut self,
        history: &History,
    ) -> Result<(ModelVerdict, Skeleton, Relation, Relation), Diagnostic> {
        let skeleton = self.skeleton(history);
        let mut chosen: Option<(Relation, Relation)> = None;
        let is_enumerated = self.is_enumerated(history, &skeleton);
        if !is_enumerated {
            chosen = self.find(&skeleton)?;
        }
        let mut run = self.session.start(&skeleton)?;
        if chosen.is_none() {
            history.reads_from(&skeleton, &mut |rf| {
                history.coherence_orders(&skeleton, &mut |co| {
                    let allowed = is_enumerated && run.allows(rf, co)?;
                    if allowed || chosen.is_none() {
                        chosen = Some((rf.clone(), co.clone()));
                    }
                    Ok(allowed || !is_enumerated)
                })
            })?;
        }
        let (rf, co) = chosen
            .unwrap_or_else(|| (Relation::empty(skeleton.len()), Relation::empty(skeleton.len())));
        let verdict = run.verdict(&rf, &co)?;
        Ok((verdict, skeleton.clone(), rf, co))
    }
}
