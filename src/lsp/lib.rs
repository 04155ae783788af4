//! A language server for specifications, with their parameter layer, formulas, and what other front
//! ends read: the Language Server Protocol 3.17 over any connection.
//!
//! In: messages of a client. Out: diagnostics while one types, and answers about places in texts.
//! `document` is a text that is being edited, `analysis` knows one text, `workspace` which
//! formula belongs to which specification, `features`, `colours` and `rename` answer, `plugged`
//! where another front end says what names mean, `server` speaks the protocol. The server computes
//! no verdict: code lenses name command lines, which the client runs.
//!
//! Cost of an edit: parsing and type checking the file, as the command line does it; diagnostics
//! wait until no further message is there. Invariant: a file in which the command line finds no
//! error has no diagnostic.
#![warn(missing_docs)]

mod analysis;
mod colours;
mod document;
mod features;
mod foreign;
mod kinds;
mod names;
mod plugged;
mod positions;
mod recovery;
mod rename;
mod server;
mod typed;
mod workspace;

pub use foreign::{Meaning, Read};
pub use server::{Turns, serve};
pub use workspace::Files;
