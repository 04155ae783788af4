//! Safety of programs on weak memory.
//!
//! In: a program of `program` and a memory model. Out: whether an unsafe state is reached, with a shortest interleaving ([`reach`]).

pub mod reach;
#[cfg(test)]
mod tests;
