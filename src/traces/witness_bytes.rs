//! Check of an order of accesses of several sizes, independent of the search.
//!
//! In: a trace, a model, the events in memory order. Each pair of events that the model orders is
//! in this order, and each byte of a load has the value of the load value axiom. The rules are
//! written here once more, for pairs of operations, from the definitions of the models. Cost:
//! quadratic in the operations of a thread.

use std::ops::Range;

use ahash::AHashMap;
use mu_base::narrow;

use crate::model::TraceModel;
use crate::trace::{Fence, OperationKind, Trace};

/// Event of a memory order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OrderEvent {
    /// The load of an operation.
    Load(u32),
    /// The store of an operation.
    Store(u32),
    /// Both parts of an update.
    Whole(u32),
}

/// Numbers of the bytes of all locations.
#[derive(Debug)]
pub(crate) struct Bytes {
    /// First byte of each location, and the number of all bytes.
    starts: Vec<u32>,
    ranges: Vec<Range<u32>>,
    /// Initial values; `None` if unknown.
    pub initial: Vec<Option<u8>>,
}

impl Bytes {
    /// Numbers the bytes of a trace. A location without sizes has 8 bytes.
    pub fn of(trace: &Trace) -> Bytes {
        let mut bytes = Bytes { starts: vec![0], ranges: Vec::new(), initial: Vec::new() };
        for location in &trace.locations {
            let count = if location.bytes == 0 { 8 } else { usize::from(location.bytes) };
            bytes.initial.extend((0..count).map(|k| location.initial.byte(k)));
            bytes.starts.push(narrow::index(bytes.initial.len()));
        }
        for i in 0..trace.len() {
            let o = trace.operation(i);
            bytes.ranges.push(match o.kind {
                OperationKind::Fence(_) => 0..0,
                _ => bytes.part(o.location, o.offset, o.size),
            });
        }
        bytes
    }
    /// Returns the bytes of a part of a location; of at most 8 bytes if the size is 0.
    pub fn part(&self, location: u32, offset: u16, size: u8) -> Range<u32> {
        let (start, end) = (self.starts[location as usize], self.starts[location as usize + 1]);
        let from = (start + u32::from(offset)).min(end);
        let size = if size == 0 { 8 } else { u32::from(size) };
        from..(from + size).min(end)
    }
    /// Returns the bytes of an operation.
    pub fn range(&self, i: usize) -> Range<u32> {
        self.ranges[i].clone()
    }
    fn overlap(&self, i: usize, j: usize) -> bool {
        let (a, b) = (&self.ranges[i], &self.ranges[j]);
        a.start < b.end && b.start < a.end
    }
}

/// No position.
const NONE: u32 = u32::MAX;

struct MemoryOrder<'t> {
    trace: &'t Trace,
    bytes: Bytes,
    /// Positions of the load and of the store of each operation.
    load: Vec<u32>,
    store: Vec<u32>,
}

/// Checks an order of a trace.
///
/// # Errors
/// The first rule that does not hold.
pub(crate) fn check(
    trace: &Trace,
    model: &TraceModel,
    events: &[OrderEvent],
) -> Result<(), String> {
    let n = trace.len();
    let mut order =
        MemoryOrder { trace, bytes: Bytes::of(trace), load: vec![NONE; n], store: vec![NONE; n] };
    for (at, event) in events.iter().enumerate() {
        let (i, load, store) = match *event {
            OrderEvent::Load(i) => (i as usize, true, false),
            OrderEvent::Store(i) => (i as usize, false, true),
            OrderEvent::Whole(i) => (i as usize, true, true),
        };
        for (is_part, position) in [(load, &mut order.load[i]), (store, &mut order.store[i])] {
            if is_part && std::mem::replace(position, narrow::index(at)) != NONE {
                return Err(format!("line {} is there twice", trace.line(i)));
            }
        }
    }
    for i in 0..n {
        let kind = trace.kind(i);
        if kind.loads() != (order.load[i] != NONE) || kind.stores() != (order.store[i] != NONE) {
            return Err(format!("line {} is not complete", trace.line(i)));
        }
        let is_one = matches!(model, TraceModel::Rvwmo) && !model.splits(trace.mark(i));
        if kind == OperationKind::Update && is_one && order.load[i] != order.store[i] {
            return Err(format!("line {} is one operation", trace.line(i)));
        }
    }
    for thread in 0..trace.threads.len() {
        order.thread(model, trace.range(thread))?;
    }
    order.commits()?;
    order.values(model, events)
}

impl MemoryOrder<'_> {
    fn thread(&self, model: &TraceModel, range: Range<usize>) -> Result<(), String> {
        let (load, store) = (&self.load, &self.store);
        let mut begin = 0;
        let begins: Vec<u64> = range
            .clone()
            .map(|i| {
                let o = self.trace.operation(i);
                if !matches!(o.kind, OperationKind::Fence(_)) {
                    begin = o.begin.unwrap_or(begin);
                }
                begin
            })
            .collect();
        for i in range.clone() {
            let first = self.trace.operation(i);
            if matches!(first.kind, OperationKind::Fence(_)) {
                continue;
            }
            let mut fences = [false; 4];
            for j in i + 1..range.end {
                if let OperationKind::Fence(fence) = self.trace.kind(j) {
                    for (set, kind) in
                        fences.iter_mut().zip([Fence::RR, Fence::RW, Fence::WR, Fence::WW])
                    {
                        *set |= fence.includes(kind);
                    }
                    continue;
                }
                let same = self.bytes.overlap(i, j);
                let update = first.kind == OperationKind::Update
                    || self.trace.kind(j) == OperationKind::Update;
                let time = first.end.is_some_and(|end| end < begins[j - range.start]);
                // Load before load, load before store, store before load, store before store.
                let mut kept = match model {
                    TraceModel::Sc => [true; 4],
                    TraceModel::Tso => [true, true, update, true],
                    TraceModel::Pso => [true, true, false, same],
                    TraceModel::Wmo => [same || time, same || time, false, same],
                    TraceModel::Rvwmo | TraceModel::Armv8 => [false, same, false, same],
                    _ => return Err("the model has no order of bytes".to_string()),
                };
                kept.iter_mut().zip(fences).for_each(|(k, fence)| *k |= fence);
                let pairs = [
                    (load[i], load[j]),
                    (load[i], store[j]),
                    (store[i], load[j]),
                    (store[i], store[j]),
                ];
                for (k, (a, b)) in pairs.into_iter().enumerate() {
                    if kept[k] && a != NONE && b != NONE && a >= b {
                        let (i, j) = (self.trace.line(i), self.trace.line(j));
                        return Err(format!("line {j} is before line {i}"));
                    }
                }
            }
        }
        Ok(())
    }
    /// Checks the order of stores in memory that the log gives.
    fn commits(&self) -> Result<(), String> {
        let stores = (0..self.trace.len()).filter(|i| self.trace.kind(*i).stores());
        let mut all: Vec<(u32, u32, u64)> = stores
            .filter_map(|i| {
                let o = self.trace.operation(i);
                Some((o.location, self.store[i], o.commit?))
            })
            .collect();
        all.sort_unstable();
        match all.windows(2).any(|w| w[0].0 == w[1].0 && w[0].2 > w[1].2) {
            true => Err("it contradicts the order of memory of the log".to_string()),
            false => Ok(()),
        }
    }
    /// Checks the values of all loads, and the rules that depend on their sources.
    fn values(&self, model: &TraceModel, events: &[OrderEvent]) -> Result<(), String> {
        let thread_of: Vec<usize> = (0..self.trace.threads.len())
            .flat_map(|t| self.trace.range(t).map(move |_| t))
            .collect();
        // The stores of each thread to each byte, in program order.
        let mut own: AHashMap<(usize, u32), Vec<usize>> = AHashMap::new();
        for i in (0..self.trace.len()).filter(|i| self.trace.kind(*i).stores()) {
            for b in self.bytes.range(i) {
                own.entry((thread_of[i], b)).or_default().push(i);
            }
        }
        let mut memory: Vec<(Option<u8>, u32)> =
            self.bytes.initial.iter().map(|v| (*v, NONE)).collect();
        let mut sources: AHashMap<(usize, u32), u32> = AHashMap::new();
        let is_split = matches!(model, TraceModel::Rvwmo | TraceModel::Armv8);
        for (at, event) in events.iter().enumerate() {
            if let OrderEvent::Load(i) | OrderEvent::Whole(i) = *event {
                let i = i as usize;
                for (k, b) in self.bytes.range(i).enumerate() {
                    let buffered = own.get(&(thread_of[i], b)).into_iter().flatten();
                    let buffered = buffered
                        .filter(|s| **s < i && self.store[**s] > narrow::index(at))
                        .max_by_key(|s| self.store[**s]);
                    let wanted = byte(self.trace.loaded_value(i), k);
                    let (value, source) = match buffered {
                        Some(&s) => {
                            let at = b - self.bytes.range(s).start;
                            if is_split && self.trace.kind(s) == OperationKind::Update {
                                return Err("a load is before an update that it reads".to_string());
                            }
                            (Some(byte(self.trace.stored_value(s), at as usize)), narrow::index(s))
                        }
                        None => memory[b as usize],
                    };
                    match value {
                        None => memory[b as usize].0 = Some(wanted),
                        Some(value) if value == wanted => {}
                        Some(_) => {
                            let line = self.trace.line(i);
                            return Err(format!("line {line} finds another value"));
                        }
                    }
                    sources.insert((i, b), source);
                }
            }
            if let OrderEvent::Store(i) | OrderEvent::Whole(i) = *event {
                for (k, b) in self.bytes.range(i as usize).enumerate() {
                    memory[b as usize] = (Some(byte(self.trace.stored_value(i as usize), k)), i);
                }
            }
        }
        for f in &self.trace.finals {
            for (k, b) in self.bytes.part(f.location, f.offset, f.size).enumerate() {
                if memory[b as usize].0.is_some_and(|v| v != byte(f.value, k)) {
                    return Err(format!("the final value of line {} differs", f.line));
                }
            }
        }
        if is_split { self.loads_of_bytes(&thread_of, &sources) } else { Ok(()) }
    }
    /// Checks the rules of `rvwmo` and `armv8` that depend on sources.
    fn loads_of_bytes(
        &self,
        thread_of: &[usize],
        sources: &AHashMap<(usize, u32), u32>,
    ) -> Result<(), String> {
        let mut latest: AHashMap<(usize, u32), Vec<usize>> = AHashMap::new();
        for i in 0..self.trace.len() {
            let kind = self.trace.kind(i);
            for b in self.bytes.range(i) {
                let key = (thread_of[i], b);
                if kind.loads() {
                    let list = latest.entry(key).or_default();
                    let wrong = list.iter().any(|l| {
                        sources[&(*l, b)] != sources[&(i, b)] && self.load[*l] > self.load[i]
                    });
                    if wrong {
                        return Err("loads of one byte are not in order".to_string());
                    }
                    list.push(i);
                }
                if kind.stores() {
                    latest.remove(&key);
                }
            }
            // No other thread stores between the two events of an update.
            if kind == OperationKind::Update && self.load[i] != self.store[i] {
                let between = (0..self.trace.len()).any(|j| {
                    thread_of[j] != thread_of[i]
                        && self.trace.kind(j).stores()
                        && self.bytes.overlap(i, j)
                        && (self.load[i]..self.store[i]).contains(&self.store[j])
                });
                if between {
                    return Err("another store interrupts an update".to_string());
                }
            }
        }
        Ok(())
    }
}

/// Returns a byte of a value, the lowest one first; 0 beyond the value.
fn byte(value: u64, k: usize) -> u8 {
    value.to_le_bytes().get(k).copied().unwrap_or(0)
}
