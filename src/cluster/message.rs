//! Messages along the edges of the dataflow: bytes for one process, never split.
//!
//! In and out: timely's interfaces for containers. Cost: a copy of the bytes at each end.
//! Invariant: reading never fails: a malformed message becomes one without a sender, which the
//! search rejects.

use mu_base::narrow;
use timely::Accountable;
use timely::bytes::arc::Bytes;
use timely::communication::Push;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message};
use timely::progress::Stamp;

const HEAD: usize = 16;

/// A message; see the module header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Envelope {
    pub to: u32,
    /// The sender; `None` for a malformed message.
    pub from: Option<u32>,
    pub bytes: Vec<u8>,
}

impl Accountable for Envelope {
    fn record_count(&self) -> i64 {
        i64::from(self.from.is_some() || !self.bytes.is_empty())
    }
}

impl ContainerBytes for Envelope {
    fn from_bytes(bytes: Bytes) -> Self {
        let parse = || {
            let (head, rest) = bytes.split_at_checked(HEAD)?;
            let word = |at: usize| Some(u32::from_le_bytes(head.get(at..at + 4)?.try_into().ok()?));
            Some(Envelope {
                to: word(0)?,
                from: word(4)?.checked_sub(1),
                bytes: rest.get(..word(8)? as usize)?.to_vec(),
            })
        };
        parse().unwrap_or_else(|| Envelope { bytes: vec![0], ..Envelope::default() })
    }
    fn length_in_bytes(&self) -> usize {
        HEAD + self.bytes.len().next_multiple_of(8)
    }
    fn into_bytes<W: std::io::Write>(&self, writer: &mut W) {
        // Senders are numbered from 1 on the wire; 0: none.
        let from = self.from.map_or(0, |p| p + 1);
        let head =
            [self.to, from, narrow::index(self.bytes.len()), 0].map(u32::to_le_bytes).concat();
        let padding = [0; 8];
        let padding = &padding[..self.bytes.len().next_multiple_of(8) - self.bytes.len()];
        // Writing to memory cannot fail.
        let _ = writer
            .write_all(&head)
            .and_then(|()| writer.write_all(&self.bytes))
            .and_then(|()| writer.write_all(padding));
    }
}

/// Distributes each message to its receiver.
pub(super) struct ByAddress;

impl Distributor<Envelope> for ByAddress {
    fn partition<T: Clone, P: Push<Message<T, Envelope>>>(
        &mut self,
        envelope: &mut Envelope,
        stamp: &Stamp<T>,
        pushers: &mut [P],
    ) {
        let to = envelope.to as usize;
        Message::push_at(envelope, stamp.clone(), &mut pushers[to]);
    }
    fn flush<T: Clone, P: Push<Message<T, Envelope>>>(&mut self, _: &Stamp<T>, _: &mut [P]) {}
}
