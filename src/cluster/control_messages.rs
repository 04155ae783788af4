//! Control messages between the processes of a search, and their encoding.
//!
//! In and out: a [`ControlMessage`]. Cost: tens of bytes. Invariant: malformed bytes are rejected
//! with an error.

use mu_base::varint::{put, take};
use mu_base::{Diagnostic, SourceId, Span, Stage, Stop};
use mu_explore::Tally;

/// Reason for an early end of the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EndReason {
    /// A limit or an interrupt.
    Stopped(Stop),
    /// A symmetry was refuted: all processes restart without it.
    Broken,
    /// An error of the model.
    Failed(Box<Diagnostic>),
    /// An annotation decides.
    Decided,
}

impl From<Diagnostic> for EndReason {
    fn from(error: Diagnostic) -> Self {
        match error.stop {
            Some(stop) => EndReason::Stopped(stop),
            None => EndReason::Failed(Box::new(error)),
        }
    }
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControlMessage {
    /// Progress of the sender.
    Tally(Tally),
    /// The search is to end; `drain`: batches in transit must arrive first.
    Halt { drain: bool },
    /// The random number of this run, from process 0.
    Run(u64),
    /// Process 0 requests the checkpoint with this number.
    RequestCheckpoint(u64),
    /// For that checkpoint: the first level that the sender has not begun.
    Next { number: u64, level: u64 },
    /// The sender has written its partition.
    Written(u64),
    /// The sender could not write: the checkpoint is void.
    Unwritten(u64),
    /// The sender has reached the goal in this level.
    GoalReached(u64),
    /// The sender has completed that level.
    LevelDone,
    /// The predecessor of the last state of the path in this level; empty if the sender has none.
    Predecessor { level: u64, state: Vec<u8> },
    /// Final report: totals, peak memory, the reason for an early end, refuted symmetries, the
    /// caller's report, consistency of the partition, and a goal state.
    Last {
        tally: Tally,
        memory: u64,
        why: Option<EndReason>,
        failed: Vec<usize>,
        final_report: Vec<u8>,
        consistent: bool,
        hit: Option<Vec<u8>>,
    },
}

const STOPS: [Stop; 7] = [
    Stop::Complete,
    Stop::States,
    Stop::Memory,
    Stop::Time,
    Stop::Interrupted,
    Stop::Lost,
    Stop::Buffer,
];
const STAGES: [Stage; 10] = [
    Stage::Usage,
    Stage::File,
    Stage::Syntax,
    Stage::Type,
    Stage::Unsupported,
    Stage::Process,
    Stage::Formula,
    Stage::Data,
    Stage::Limit,
    Stage::Internal,
];

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn take_text(bytes: &mut &[u8]) -> Option<String> {
    String::from_utf8(take_bytes(bytes)?).ok()
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend(bytes);
}

fn take_bytes(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(take(bytes)?).ok()?;
    let (own, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(own.to_vec())
}

fn truth(bytes: &mut &[u8]) -> Option<bool> {
    match take(bytes)? {
        n @ 0..=1 => Some(n == 1),
        _ => None,
    }
}

fn put_tally(out: &mut Vec<u8>, t: &Tally) {
    for n in [
        t.states,
        t.stored,
        t.transitions,
        t.deadlocks,
        t.levels,
        t.waiting,
        t.sent,
        t.sent_bytes,
        t.values_sent,
        t.store_bytes,
    ] {
        put(out, n);
    }
}

fn take_tally(bytes: &mut &[u8]) -> Option<Tally> {
    let mut next = || take(bytes);
    Some(Tally {
        states: next()?,
        stored: next()?,
        transitions: next()?,
        deadlocks: next()?,
        levels: next()?,
        waiting: next()?,
        sent: next()?,
        sent_bytes: next()?,
        values_sent: next()?,
        store_bytes: next()?,
    })
}

/// Returns the index of a stop or a stage in its list; both lists are complete.
fn place<T: PartialEq>(list: &[T], item: &T) -> u64 {
    list.iter().position(|i| i == item).unwrap_or(list.len() - 1) as u64
}

impl EndReason {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            EndReason::Stopped(stop) => {
                out.push(1);
                put(out, place(&STOPS, stop));
            }
            EndReason::Broken => out.push(2),
            EndReason::Decided => out.push(4),
            EndReason::Failed(e) => {
                out.push(3);
                put(out, place(&STAGES, &e.stage));
                put_text(out, &e.message);
                match e.span {
                    Some(span) => [
                        1,
                        u64::from(span.source.number()),
                        u64::from(span.start),
                        u64::from(span.end),
                    ]
                    .map(|n| put(out, n)),
                    None => [0; 4].map(|n| put(out, n)),
                };
                put(out, e.notes.len() as u64);
                e.notes.iter().for_each(|n| put_text(out, n));
                put(out, u64::from(e.open));
                put(out, e.related.len() as u64);
                for (span, text) in &e.related {
                    let at = [
                        u64::from(span.source.number()),
                        u64::from(span.start),
                        u64::from(span.end),
                    ];
                    at.into_iter().for_each(|n| put(out, n));
                    put_text(out, text);
                }
            }
        }
    }
    fn read(bytes: &mut &[u8]) -> Option<Option<EndReason>> {
        let word = |n: u64| u32::try_from(n).ok();
        Some(match take(bytes)? {
            0 => None,
            1 => Some(EndReason::Stopped(STOPS.get(take(bytes)? as usize)?.clone())),
            2 => Some(EndReason::Broken),
            4 => Some(EndReason::Decided),
            3 => {
                let mut error = Diagnostic::new(*STAGES.get(take(bytes)? as usize)?, "");
                error.message = take_text(bytes)?;
                let [some, source, start, end] =
                    [take(bytes)?, take(bytes)?, take(bytes)?, take(bytes)?];
                error.span = (some == 1).then_some(Span {
                    source: SourceId::of(u16::try_from(source).ok()?),
                    start: word(start)?,
                    end: word(end)?,
                });
                for _ in 0..take(bytes)? {
                    error.notes.push(take_text(bytes)?);
                }
                error.open = take(bytes)? == 1;
                for _ in 0..take(bytes)? {
                    let [source, start, end] = [take(bytes)?, take(bytes)?, take(bytes)?];
                    let span = Span {
                        source: SourceId::of(u16::try_from(source).ok()?),
                        start: word(start)?,
                        end: word(end)?,
                    };
                    error.related.push((span, take_text(bytes)?));
                }
                Some(EndReason::Failed(Box::new(error)))
            }
            _ => return None,
        })
    }
}

impl ControlMessage {
    /// Encodes the report.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            ControlMessage::Tally(tally) => {
                out.push(0);
                put_tally(&mut out, tally);
            }
            ControlMessage::Halt { drain } => out.extend([1, u8::from(*drain)]),
            ControlMessage::Run(number)
            | ControlMessage::RequestCheckpoint(number)
            | ControlMessage::Written(number)
            | ControlMessage::Unwritten(number) => {
                out.push(match self {
                    ControlMessage::Run(_) => 3,
                    ControlMessage::RequestCheckpoint(_) => 4,
                    ControlMessage::Written(_) => 5,
                    _ => 6,
                });
                put(&mut out, *number);
            }
            ControlMessage::Next { number, level } => {
                out.push(7);
                put(&mut out, *number);
                put(&mut out, *level);
            }
            ControlMessage::GoalReached(level) => {
                out.push(8);
                put(&mut out, *level);
            }
            ControlMessage::LevelDone => out.push(9),
            ControlMessage::Predecessor { level, state } => {
                out.push(10);
                put(&mut out, *level);
                put_bytes(&mut out, state);
            }
            ControlMessage::Last { tally, memory, why, failed, final_report, consistent, hit } => {
                out.push(2);
                put_tally(&mut out, tally);
                put(&mut out, *memory);
                match why {
                    Some(why) => why.write(&mut out),
                    None => out.push(0),
                }
                put(&mut out, failed.len() as u64);
                failed.iter().for_each(|f| put(&mut out, *f as u64));
                put_bytes(&mut out, final_report);
                out.extend([u8::from(*consistent), u8::from(hit.is_some())]);
                put_bytes(&mut out, hit.as_deref().unwrap_or_default());
            }
        }
        out
    }
    /// Decodes a report.
    ///
    /// # Errors
    /// The bytes are malformed.
    pub fn read(bytes: &[u8]) -> Result<Self, Diagnostic> {
        Self::parse(bytes)
            .ok_or_else(|| Diagnostic::new(Stage::File, "a malformed report of another process"))
    }
    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let report = match take(bytes)? {
            0 => ControlMessage::Tally(take_tally(bytes)?),
            1 => ControlMessage::Halt { drain: truth(bytes)? },
            3 => ControlMessage::Run(take(bytes)?),
            4 => ControlMessage::RequestCheckpoint(take(bytes)?),
            5 => ControlMessage::Written(take(bytes)?),
            6 => ControlMessage::Unwritten(take(bytes)?),
            7 => ControlMessage::Next { number: take(bytes)?, level: take(bytes)? },
            8 => ControlMessage::GoalReached(take(bytes)?),
            9 => ControlMessage::LevelDone,
            10 => ControlMessage::Predecessor { level: take(bytes)?, state: take_bytes(bytes)? },
            2 => {
                let (tally, memory, why) =
                    (take_tally(bytes)?, take(bytes)?, EndReason::read(bytes)?);
                let mut failed = Vec::new();
                for _ in 0..take(bytes)? {
                    failed.push(usize::try_from(take(bytes)?).ok()?);
                }
                let final_report = take_bytes(bytes)?;
                let (consistent, some, state) = (truth(bytes)?, truth(bytes)?, take_bytes(bytes)?);
                ControlMessage::Last {
                    tally,
                    memory,
                    why,
                    failed,
                    final_report,
                    consistent,
                    hit: some.then_some(state),
                }
            }
            _ => return None,
        };
        bytes.is_empty().then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_come_back_as_they_were() {
        let tally = Tally { states: 1 << 40, stored: 300, sent_bytes: 7, ..Tally::default() };
        let mut error = Diagnostic::at(
            Stage::Data,
            Span { source: SourceId::of(1), start: 5, end: 9 },
            "division by 0",
        );
        error.notes.push("here".into());
        error.open = true;
        error.related.push((Span { source: SourceId::of(2), start: 0, end: 7 }, "for this".into()));
        let last = |why, failed| ControlMessage::Last {
            tally,
            memory: 5 << 30,
            why,
            failed,
            final_report: vec![1, 50],
            consistent: true,
            hit: Some(vec![0, 7]),
        };
        let mut reports = vec![
            ControlMessage::Tally(tally),
            ControlMessage::Halt { drain: true },
            ControlMessage::Halt { drain: false },
            last(None, vec![]),
            last(Some(EndReason::Broken), vec![3, 1]),
            last(Some(EndReason::Decided), vec![]),
        ];
        reports.extend([
            ControlMessage::Run(u64::MAX),
            ControlMessage::RequestCheckpoint(3),
            ControlMessage::Written(4),
            ControlMessage::Unwritten(5),
        ]);
        reports.push(ControlMessage::Next { number: 1, level: 1 << 33 });
        reports.extend([
            ControlMessage::GoalReached(3),
            ControlMessage::LevelDone,
            ControlMessage::Predecessor { level: 2, state: vec![1, 2] },
        ]);
        reports.extend(STOPS.map(|s| last(Some(EndReason::Stopped(s)), vec![])));
        reports.extend(STAGES.map(|s| {
            last(
                Some(EndReason::Failed(Box::new(Diagnostic { stage: s, ..error.clone() }))),
                vec![],
            )
        }));
        for report in reports {
            let bytes = report.write();
            assert_eq!(ControlMessage::read(&bytes).unwrap(), report);
            (0..bytes.len()).for_each(|n| {
                assert!(ControlMessage::read(&bytes[..n]).is_err(), "{report:?}, {n} bytes")
            });
        }
    }
}
