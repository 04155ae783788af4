//! One search by several processes, on one machine or on many.
//!
//! In: a model, where the processes are, a secret that they share. Out: the counts of the whole,
//! the same in each process, or why there are none. Each process holds the states that are its own
//! by a hash ([`mu_explore::Partition`]); timely dataflow moves batches of successors along a feedback
//! loop and tells when a level has arrived and when nothing is left (`flow`; Murray, McSherry et
//! al.: "Naiad: A Timely Dataflow System", SOSP 2013). The connections are made here: both sides
//! prove that they know the secret and run the same search ([`meet`]), and every frame carries a
//! code that nobody else can compute (`wire`).
//!
//! Invariants: counts are exact or the answer is unknown; a process that is lost ends the search of
//! all others within `wire::SILENCE`; not a byte is believed before its sender has proven itself.
//! What is sent is not encrypted.
#![warn(missing_docs)]

mod leader_work;
mod dataflow;
mod handshake;
mod message;
mod control_messages;
mod checkpoints;
mod process_group;
mod trace;
mod wire;

pub use checkpoints::Shelf;
pub use handshake::{Identity, Party, Secret, meet};
pub use process_group::{
    Allies, Connections, Extra, Outcome, Part, Shelves, Task, Together, explore,
};
