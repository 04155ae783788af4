//! Presentation: evidence as a story and a chart, tables, plots. Values in, text out; `cli` handles
//! files and terminals.
#![warn(missing_docs)]

pub mod accesses;
pub mod branches;
pub mod caption;
pub mod chart;
pub mod execution;
pub mod junit;
pub mod layers;
pub mod judged;
pub mod page;
pub mod plot;
pub mod reference;
pub mod schema;
pub mod shorten;
pub mod standing;
pub mod story;
pub mod svg;
pub mod sweep;
pub mod trace;
