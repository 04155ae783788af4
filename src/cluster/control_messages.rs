//! What processes of a search tell each other beside states, as bytes.
//!
//! In and out: a [`Report`]. Cost: tens of bytes. Invariant: bytes that are no report are refused
//! with an error.

use mu_base::varint::{put, take};
use mu_base::{Diagnostic, SourceId, Span, Stage, Stop};
use mu_explore::Tally;

/// Why a process wants the search to end early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// A limit or an interrupt.
    Stopped(Stop),
    /// Something was found to be no symmetry: all begin again without it.
    Broken,
    /// An error of the model.
    Failed(Box<Diagnostic>),
    /// What some state carries decides.
    Decided,
}

impl From<Diagnostic> for Why {
    fn from(error: Diagnostic) -> Self {
        match error.stop {
            Some(stop) => Why::Stopped(stop),
            None => Why::Failed(Box::new(error)),
        }
    }
}

/// See the module's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Report {
    /// How far it is.
    Tally(Tally),
    /// The search is to end; whether what is on the way is to arrive first.
    Halt { drain: bool },
    /// The random number of this run, from process 0.
    Run(u64),
    /// Process 0 wants the checkpoint of this number.
    Ask(u64),
    /// For that checkpoint: the first level that the sender has not begun.
    Next { number: u64, level: u64 },
    /// The sender has written its share of it.
    Written(u64),
    /// It could not: that checkpoint does not count.
    Unwritten(u64),
    /// The sender has met what is sought in this level.
    Hit(u64),
    /// It is through with that level.
    Through,
    /// The state before the last one of the way, of this level, if it has one; else nothing.
    Before { level: u64, state: Vec<u8> },
    /// Its search has ended: what it holds, its memory at most, why it ended early, candidates for
    /// symmetries that failed, what its caller has to say, whether no state of it is missing,
    /// and a state of it that is sought.
    Last {
        tally: Tally,
        memory: u64,
        why: Option<Why>,
        failed: Vec<usize>,
        said: Vec<u8>,
        whole: bool,
        hit: Option<Vec<u8>>,
    },
}

const STOPS: [Stop; 6] =
    [Stop::Complete, Stop::States, Stop::Memory, Stop::Time, Stop::Interrupted, Stop::Lost];
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

/// The number of a stop or a stage in its list; both lists are whole.
fn place<T: PartialEq>(list: &[T], item: &T) -> u64 {
    list.iter().position(|i| i == item).unwrap_or(list.len() - 1) as u64
}

impl Why {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Why::Stopped(stop) => {
                out.push(1);
                put(out, place(&STOPS, stop));
            }
            Why::Broken => out.push(2),
            Why::Decided => out.push(4),
            Why::Failed(e) => {
                out.push(3);
                put(out, place(&STAGES, &e.stage));
                put_text(out, &e.message);
                match e.span {
                    Some(span) => {
                        [1, u64::from(span.source.0), u64::from(span.start), u64::from(span.end)]
                            .map(|n| put(out, n))
                    }
                    None => [0; 4].map(|n| put(out, n)),
                };
                put(out, e.notes.len() as u64);
                e.notes.iter().for_each(|n| put_text(out, n));
            }
        }
    }
    fn read(bytes: &mut &[u8]) -> Option<Option<Why>> {
        let word = |n: u64| u32::try_from(n).ok();
        Some(match take(bytes)? {
            0 => None,
            1 => Some(Why::Stopped(STOPS.get(take(bytes)? as usize)?.clone())),
            2 => Some(Why::Broken),
            4 => Some(Why::Decided),
            3 => {
                let mut error = Diagnostic::new(*STAGES.get(take(bytes)? as usize)?, "");
                error.message = take_text(bytes)?;
                let [some, source, start, end] =
                    [take(bytes)?, take(bytes)?, take(bytes)?, take(bytes)?];
                error.span = (some == 1).then_some(Span {
                    source: SourceId(u16::try_from(source).ok()?),
                    start: word(start)?,
                    end: word(end)?,
                });
                for _ in 0..take(bytes)? {
                    error.notes.push(take_text(bytes)?);
                }
                Some(Why::Failed(Box::new(error)))
            }
            _ => return None,
        })
    }
}

impl Report {
    /// As bytes.
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Report::Tally(tally) => {
                out.push(0);
                put_tally(&mut out, tally);
            }
            Report::Halt { drain } => out.extend([1, u8::from(*drain)]),
            Report::Run(number)
            | Report::Ask(number)
            | Report::Written(number)
            | Report::Unwritten(number) => {
                out.push(match self {
                    Report::Run(_) => 3,
                    Report::Ask(_) => 4,
                    Report::Written(_) => 5,
                    _ => 6,
                });
                put(&mut out, *number);
            }
            Report::Next { number, level } => {
                out.push(7);
                put(&mut out, *number);
                put(&mut out, *level);
            }
            Report::Hit(level) => {
                out.push(8);
                put(&mut out, *level);
            }
            Report::Through => out.push(9),
            Report::Before { level, state } => {
                out.push(10);
                put(&mut out, *level);
                put_bytes(&mut out, state);
            }
            Report::Last { tally, memory, why, failed, said, whole, hit } => {
                out.push(2);
                put_tally(&mut out, tally);
                put(&mut out, *memory);
                match why {
                    Some(why) => why.write(&mut out),
                    None => out.push(0),
                }
                put(&mut out, failed.len() as u64);
                failed.iter().for_each(|f| put(&mut out, *f as u64));
                put_bytes(&mut out, said);
                out.extend([u8::from(*whole), u8::from(hit.is_some())]);
                put_bytes(&mut out, hit.as_deref().unwrap_or_default());
            }
        }
        out
    }
    /// From bytes.
    ///
    /// # Errors
    /// They are no report.
    pub fn read(bytes: &[u8]) -> Result<Self, Diagnostic> {
        Self::parse(bytes)
            .ok_or_else(|| Diagnostic::new(Stage::File, "a malformed report of another process"))
    }
    fn parse(mut bytes: &[u8]) -> Option<Self> {
        let bytes = &mut bytes;
        let report = match take(bytes)? {
            0 => Report::Tally(take_tally(bytes)?),
            1 => Report::Halt { drain: truth(bytes)? },
            3 => Report::Run(take(bytes)?),
            4 => Report::Ask(take(bytes)?),
            5 => Report::Written(take(bytes)?),
            6 => Report::Unwritten(take(bytes)?),
            7 => Report::Next { number: take(bytes)?, level: take(bytes)? },
            8 => Report::Hit(take(bytes)?),
            9 => Report::Through,
            10 => Report::Before { level: take(bytes)?, state: take_bytes(bytes)? },
            2 => {
                let (tally, memory, why) = (take_tally(bytes)?, take(bytes)?, Why::read(bytes)?);
                let mut failed = Vec::new();
                for _ in 0..take(bytes)? {
                    failed.push(usize::try_from(take(bytes)?).ok()?);
                }
                let said = take_bytes(bytes)?;
                let (whole, some, state) = (truth(bytes)?, truth(bytes)?, take_bytes(bytes)?);
                Report::Last { tally, memory, why, failed, said, whole, hit: some.then_some(state) }
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
            Span { source: SourceId(1), start: 5, end: 9 },
            "division by 0",
        );
        error.notes.push("here".into());
        let last = |why, failed| Report::Last {
            tally,
            memory: 5 << 30,
            why,
            failed,
            said: vec![1, 50],
            whole: true,
            hit: Some(vec![0, 7]),
        };
        let mut reports = vec![
            Report::Tally(tally),
            Report::Halt { drain: true },
            Report::Halt { drain: false },
            last(None, vec![]),
            last(Some(Why::Broken), vec![3, 1]),
            last(Some(Why::Decided), vec![]),
        ];
        reports.extend([
            Report::Run(u64::MAX),
            Report::Ask(3),
            Report::Written(4),
            Report::Unwritten(5),
        ]);
        reports.push(Report::Next { number: 1, level: 1 << 33 });
        reports.extend([
            Report::Hit(3),
            Report::Through,
            Report::Before { level: 2, state: vec![1, 2] },
        ]);
        reports.extend(STOPS.map(|s| last(Some(Why::Stopped(s)), vec![])));
        reports.extend(STAGES.map(|s| {
            last(Some(Why::Failed(Box::new(Diagnostic { stage: s, ..error.clone() }))), vec![])
        }));
        for report in reports {
            let bytes = report.write();
            assert_eq!(Report::read(&bytes).unwrap(), report);
            (0..bytes.len())
                .for_each(|n| assert!(Report::read(&bytes[..n]).is_err(), "{report:?}, {n} bytes"));
        }
    }
}
