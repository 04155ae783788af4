//! Distributed search: the part of a search that one of several processes does.
//!
//! Each process stores and expands the states that it owns ([`partition`]), by a hash of their
//! [`partition_leaves`] ([`owner_hash`]), in a layout that a short search chooses ([`presearch`]).
//! States travel in batches ([`state_batch`]), with [`annotations`]; [`kahn`] decides if
//! obligations form a cycle, and paths are traced back together ([`trace`]). Representatives of
//! orbits are the same everywhere, by hashes of their values ([`stable_hash`]). A [`checkpoint`] is
//! of all processes. An implementation of [`peers::Peers`] moves the batches.
//!
//! Invariant: the counts are those of one process, for any number of processes and any owners.

pub(crate) mod annotations;
pub(crate) mod checkpoint;
pub(crate) mod kahn;
pub(crate) mod owner_hash;
pub(crate) mod partition;
pub(crate) mod partition_leaves;
pub(crate) mod peers;
pub(crate) mod presearch;
pub(crate) mod stable_hash;
pub(crate) mod state_batch;
pub(crate) mod trace;
