//! Distributed search by several processes, on one machine or on many.
//!
//! In: a model, the addresses of the processes, a shared secret. Out: the total counts, equal in
//! each process, or the reason for their absence. Each process stores the states that it owns by a
//! hash ([`mu_explore::Partition`]). Timely dataflow moves batches of successors along a feedback
//! loop, and detects when a level has arrived and when nothing is left (`dataflow`; Murray,
//! McSherry et al.: "Naiad: A Timely Dataflow System", SOSP 2013). Connections are established
//! here: both sides prove that they know the secret and run the same search ([`meet`]), and every
//! frame has a code that no third party can compute (`wire`).
//!
//! Invariants: counts are exact or the answer is unknown; a lost process ends the search of all
//! others within `wire::SILENCE`; no byte is used before its sender is authenticated. The traffic
//! is not encrypted.
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

pub use checkpoints::PartitionStore;
pub use handshake::{Identity, Party, Secret, meet};
pub use process_group::{
    ClusterOutcome, Connections, Extra, GroupPeers, GroupSearch, PartitionStores, ProcessPart,
    SearchGroup, explore,
};
