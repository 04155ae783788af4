//! Language server for specifications, with their parameter layer, formulas, and texts of other
//! front ends: the Language Server Protocol 3.17 over any connection.
//!
//! In: messages of a client. Out: diagnostics during typing, and answers about places in texts.
//! `document` is an edited text, `analysis` analyses one text, `workspace` assigns formulas to
//! specifications. `features`, `semantic_tokens` and `rename` compute answers, with
//! `generic_language` for other front ends. `server` implements the protocol. The server computes
//! no verdict: code lenses contain command lines, which the client runs.
//!
//! Cost of an edit: parsing and type checking the file, as on the command line; diagnostics wait
//! until no further message is pending. Invariant: a file that the command line accepts has no
//! diagnostic.
#![warn(missing_docs)]

mod analysis;
mod semantic_tokens;
mod document;
mod features;
mod foreign;
mod kinds;
mod names;
mod generic_language;
mod positions;
mod recovery;
mod rename;
mod server;
mod typed;
mod workspace;

pub use server::{SynchronousServer, serve};
pub use workspace::Files;
