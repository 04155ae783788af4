//! Reader of the logs of Rocket Chip's trace generator (`TraceGen`, formerly in the package
//! `groundtest`): requests to a memory system, and its responses.
//!
//! ```text
//! 0: store-req 5 0x80000008 #1 @65      thread 0, value 5, address, tag 1, time 65
//! 0: resp 0 #1 @71                      the response to the request with tag 1
//! 1: load-req 0x80000008 #0 @66
//! 1: resp 5 #0 @90                      the load returns 5
//! 0: fence-req @99                      and fence-resp
//! FINISHED 4                            printed by each generator that is done
//! ```
//!
//! An operation has the place of its request in the order of its thread. Responses arrive in any
//! order and name their request by its tag, which is free again then. `load-reserve-req` and the
//! `store-cond-req` after it are one update at the place of the load if the response is 0, else
//! only the load remains. A store-conditional that succeeds with another request before it is a
//! store, in doubt or impossible. A store has no end time, as in the script `toaxe.py` of that
//! package, and it remains if it has no response. Memory: the trace and the requests without a
//! response.

use super::lines::{Line, LineEffect, LineReader, Scanner, Word, read_lines};
use super::window::{Doubt, ProgramPosition, Window};
use super::{ReadOptions, Sink, TraceReader};
use crate::trace::{Fence, Operation, TraceBuilder};
use ahash::AHashMap;
use mu_base::Diagnostic;
use std::io::BufRead;

/// Logs of Rocket Chip's trace generator.
pub struct TraceGen;

/// Names of the requests with an address.
const REQUESTS: [&str; 5] =
    ["load-req", "load-reserve-req", "store-req", "store-cond-req", "swap-req"];

impl TraceReader for TraceGen {
    fn name(&self) -> &'static str {
        "tracegen"
    }
    fn summary(&self) -> &'static str {
        "Rocket Chip TraceGen: `0: store-req 5 0x80000008 #1 @65`, `0: resp 7 #2 @96`"
    }
    fn extensions(&self) -> &'static [&'static str] {
        &["tracegen"]
    }
    fn recognises(&self, start: &str) -> bool {
        start.lines().take(200).any(|line| {
            line.split_once(':').is_some_and(|(thread, rest)| {
                let command = rest.split_whitespace().next().unwrap_or("");
                thread.trim().parse::<u64>().is_ok()
                    && (REQUESTS.contains(&command) || command == "fence-req")
            })
        })
    }
    fn read(
        &self,
        log: &mut dyn BufRead,
        options: &ReadOptions,
        sink: &mut dyn Sink,
    ) -> Result<(), Diagnostic> {
        read_lines(TracegenReader::new(&options.file), log, options, sink)
    }
}

/// Kind of a request, with what its response needs.
#[derive(Clone, Copy, Debug)]
enum Request {
    Load,
    LoadReserved,
    Store,
    Swap(u64),
    /// The value, and the load-reserved request directly before it, if its address is the same.
    StoreConditional(u64, Option<Reservation>),
    /// The value of a store-conditional without such a request; true if the thread has a
    /// load-reserved request since its last store-conditional.
    Unpaired(u64, bool),
}

/// A load-reserved request. Its place stays open until the next request of its thread.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    place: ProgramPosition,
    address: u64,
}

/// A request without a response.
#[derive(Debug)]
struct Pending {
    request: Request,
    place: Option<ProgramPosition>,
    location: u32,
    begin: u64,
    /// Its line, for errors.
    line: (u64, String),
}

/// State of a thread.
#[derive(Debug, Default)]
struct Thread {
    id: u32,
    window: Window,
    pending: AHashMap<u64, Pending>,
    /// The last request, if it is load-reserved.
    reservation: Option<Reservation>,
    /// True if there is a load-reserved request since the last store-conditional.
    is_reserved: bool,
    /// Responses of load-reserved requests that wait for their store-conditional.
    loads: AHashMap<ProgramPosition, Operation>,
    fence: Option<(ProgramPosition, u64, u64, String)>,
}

#[derive(Debug)]
struct TracegenReader {
    file: String,
    traces: u64,
    builder: TraceBuilder,
    threads: AHashMap<String, Thread>,
}

impl TracegenReader {
    fn new(file: &str) -> Self {
        Self {
            file: file.to_string(),
            traces: 1,
            builder: TraceBuilder::new(file, 1),
            threads: AHashMap::new(),
        }
    }
    fn request(
        &mut self,
        thread: &str,
        command: &Word<'_>,
        scan: &mut Scanner<'_>,
    ) -> Result<(), Diagnostic> {
        let line = scan.line;
        let stores = !command.text.starts_with("load");
        let value = if stores { scan.word(&['#', '@']).number("the value to store")? } else { 0 };
        let address = scan.word(&['#', '@']).hexadecimal("an address")?;
        scan.expect("#")?;
        let tag_word = scan.word(&['@']);
        let tag = tag_word.number("a tag")?;
        let begin = time(scan)?;
        scan.end()?;
        let state = self.threads.get_mut(thread).expect("the caller adds the thread");
        if let Some(old) = state.pending.get(&tag) {
            return Err(tag_word
                .error(format!("tag {tag} of thread {thread} is in use"))
                .note(format!("line {} uses it, and there is no response yet", old.line.0)));
        }
        let location = self.builder.address(address);
        let target = (&mut self.builder, state.id);
        let reservation = state.reservation.take();
        let is_conditional = command.text == "store-cond-req";
        let paired = reservation.filter(|r| is_conditional && r.address == address);
        if let (Some(r), None) = (reservation, paired)
            && let Some(load) = state.loads.remove(&r.place)
        {
            state.window.complete(r.place, load, target);
        }
        let place = paired.is_none().then(|| state.window.open());
        let request = match command.text {
            "load-req" => Request::Load,
            "load-reserve-req" => Request::LoadReserved,
            "store-req" => Request::Store,
            "swap-req" => Request::Swap(value),
            _ if paired.is_some() => Request::StoreConditional(value, paired),
            _ => Request::Unpaired(value, state.is_reserved),
        };
        state.is_reserved = match request {
            Request::LoadReserved => true,
            Request::StoreConditional(..) | Request::Unpaired(..) => false,
            _ => state.is_reserved,
        };
        if let (Request::LoadReserved, Some(place)) = (request, place) {
            state.reservation = Some(Reservation { place, address });
        }
        let target = (&mut self.builder, state.id);
        if let (Request::Store, Some(place)) = (request, place) {
            let mut operation = Operation::store(location, value, line.index());
            operation.begin = Some(begin);
            state.window.complete(place, operation, target);
        }
        let line = (line.number, line.text.to_string());
        state.pending.insert(tag, Pending { request, place, location, begin, line });
        Ok(())
    }
    fn response(&mut self, thread: &str, scan: &mut Scanner<'_>) -> Result<(), Diagnostic> {
        let value_word = scan.word(&['#', '@']);
        let value = value_word.number("the value of a response")?;
        scan.expect("#")?;
        let tag_word = scan.word(&['@']);
        let tag = tag_word.number("a tag")?;
        let end = time(scan)?;
        scan.end()?;
        let state = self.threads.get_mut(thread).expect("the caller adds the thread");
        let Some(pending) = state.pending.get(&tag) else {
            let message =
                format!("thread {thread} has no request with tag {tag} that waits for a response");
            return Err(tag_word.error(message));
        };
        if end < pending.begin {
            let message = format!(
                "the response of time {end} precedes its request of time {}",
                pending.begin
            );
            return Err(value_word.error(message));
        }
        let pending = state.pending.remove(&tag).expect("found above");
        let index = u32::try_from(pending.line.0).unwrap_or(u32::MAX);
        let target = (&mut self.builder, state.id);
        let load = || {
            let mut load = Operation::load(pending.location, value, index);
            (load.begin, load.end) = (Some(pending.begin), Some(end));
            load
        };
        match (pending.request, pending.place) {
            (Request::Load, Some(place)) => state.window.complete(place, load(), target),
            (Request::LoadReserved, Some(place)) => {
                // The pair is complete with the response of its store-conditional.
                let waits = state.reservation.is_some_and(|r| r.place == place)
                    || state.pending.values().any(|p| p.is_second_of(place));
                if waits {
                    state.loads.insert(place, load());
                } else {
                    state.window.complete(place, load(), target);
                }
            }
            (Request::Swap(stored), Some(place)) => {
                let mut update = Operation::update(pending.location, value, stored, index);
                update.begin = Some(pending.begin);
                state.window.complete(place, update, target);
            }
            (Request::StoreConditional(stored, Some(r)), _) => {
                let Some(mut operation) = state.loads.remove(&r.place) else {
                    let message = "a store-conditional has a response before its load-reserve";
                    return Err(value_word.error(message));
                };
                if value == 0 {
                    operation.kind = crate::trace::OperationKind::Update;
                    operation.stored = stored;
                }
                state.window.complete(r.place, operation, target);
            }
            (Request::Unpaired(stored, is_reserved), Some(place)) if value == 0 => {
                let mut store = Operation::store(pending.location, stored, index);
                store.begin = Some(pending.begin);
                let doubt = match is_reserved {
                    true => Doubt::Open(format!(
                        "the load-reserve of the store-conditional of line {index} is not directly before it or has another address"
                    )),
                    false => Doubt::Impossible(format!(
                        "the store-conditional of line {index} succeeds without a load-reserve since the last store-conditional of its thread"
                    )),
                };
                state.window.complete_in_doubt(place, (store, doubt), target);
            }
            (Request::Unpaired(..), Some(place)) => state.window.omit(place, target),
            _ => {}
        }
        Ok(())
    }
    fn fence(
        &mut self,
        thread: &str,
        begins: bool,
        scan: &mut Scanner<'_>,
    ) -> Result<(), Diagnostic> {
        let line = scan.line;
        let at = time(scan)?;
        scan.end()?;
        let state = self.threads.get_mut(thread).expect("the caller adds the thread");
        let target = (&mut self.builder, state.id);
        match (begins, state.fence.take()) {
            (true, None) => {
                if let Some(r) = state.reservation.take()
                    && let Some(load) = state.loads.remove(&r.place)
                {
                    state.window.complete(r.place, load, target);
                }
                let place = state.window.open();
                state.fence = Some((place, at, line.number, line.text.to_string()));
                Ok(())
            }
            (true, Some(old)) => {
                let message = format!("thread {thread} waits for the fence of line {}", old.2);
                state.fence = Some(old);
                Err(line.error(0, message))
            }
            (false, Some((place, begin, number, _))) => {
                let index = u32::try_from(number).unwrap_or(u32::MAX);
                let mut fence = Operation::fence(Fence::FULL, index);
                (fence.begin, fence.end) = (Some(begin), Some(at));
                state.window.complete(place, fence, target);
                Ok(())
            }
            (false, None) => {
                Err(line
                    .error(0, format!("thread {thread} has no fence that waits for a response")))
            }
        }
    }
}

impl Pending {
    /// True if it is the store-conditional of the load-reserved request at a place.
    fn is_second_of(&self, place: ProgramPosition) -> bool {
        matches!(self.request, Request::StoreConditional(_, Some(r)) if r.place == place)
    }
}

/// Reads `@time`.
fn time(scan: &mut Scanner<'_>) -> Result<u64, Diagnostic> {
    scan.expect("@")?;
    scan.word(&[]).number("a time")
}

impl LineReader for TracegenReader {
    fn line(&mut self, line: Line<'_>) -> Result<LineEffect, Diagnostic> {
        let mut scan = line.scan();
        if scan.is_done() || scan.take("#") || is_message(line.text) {
            return Ok(LineEffect::More);
        }
        let thread = scan.word(&[':']);
        thread.number("the number of a thread, or `FINISHED`")?;
        scan.expect(":")?;
        let command = scan.word(&['@']);
        if !self.threads.contains_key(thread.text) {
            let id = self.builder.thread(thread.text);
            self.threads.insert(thread.text.to_string(), Thread { id, ..Thread::default() });
        }
        match command.text {
            "resp" => self.response(thread.text, &mut scan)?,
            "fence-req" => self.fence(thread.text, true, &mut scan)?,
            "fence-resp" => self.fence(thread.text, false, &mut scan)?,
            text if REQUESTS.contains(&text) => {
                self.request(thread.text, &command, &mut scan)?;
            }
            _ => {
                let commands =
                    format!("a command: {}, resp, fence-req, fence-resp", REQUESTS.join(", "));
                return Err(command.expected_error(&commands));
            }
        }
        Ok(LineEffect::More)
    }
    fn complete(&mut self) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        for (name, mut state) in self.threads.drain() {
            let target = &mut self.builder;
            // A load-reserved request at the end of the log.
            if let Some(r) = state.reservation.take()
                && let Some(load) = state.loads.remove(&r.place)
            {
                state.window.complete(r.place, load, (&mut *target, state.id));
            }
            let mut pending: Vec<Pending> = state.pending.drain().map(|(_, p)| p).collect();
            pending.sort_by_key(|p| p.line.0);
            for p in pending {
                match p.request {
                    Request::Store => continue,
                    Request::StoreConditional(_, Some(r)) => {
                        if let Some(load) = state.loads.remove(&r.place) {
                            state.window.complete(r.place, load, (&mut *target, state.id));
                        }
                    }
                    _ => {}
                }
                if let Some(place) = p.place {
                    state.window.omit(place, (&mut *target, state.id));
                }
                errors.push(unanswered_error(&self.file, p.line, &name));
            }
            if let Some((place, _, number, text)) = state.fence {
                let index = u32::try_from(number).unwrap_or(u32::MAX);
                let fence = Operation::fence(Fence::FULL, index);
                state.window.complete(place, fence, (&mut *target, state.id));
                errors.push(unanswered_error(&self.file, (number, text), &name));
            }
        }
        errors.sort_by_key(|e| e.line.as_ref().map_or(0, |l| l.number));
        errors
    }
    fn take(&mut self) -> TraceBuilder {
        self.traces += 1;
        let fresh = TraceBuilder::new(&self.file, self.traces);
        std::mem::replace(&mut self.builder, fresh)
    }
}

/// Creates the error for a request that has no response at the end of the log.
fn unanswered_error(file: &str, (number, text): (u64, String), thread: &str) -> Diagnostic {
    let line = Line { file, number, text: &text };
    line.error(0, format!("this request of thread {thread} has no response"))
        .note("the log is cut off, or the memory system lost the request")
}

/// True for lines of the simulator that are no operations.
fn is_message(text: &str) -> bool {
    let text = text.trim();
    ["FINISHED", "Completed", "*** ", "using random seed", "- ", "This emulator"]
        .iter()
        .any(|start| text.starts_with(start))
}
