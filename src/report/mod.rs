//! What users look at: evidence as a story and a chart, tables, plots. Values in, text out; files and terminals are the command line's.

pub mod branches;
pub mod chart;
pub mod execution;
pub mod plot;
pub mod reference;
pub mod story;
pub mod svg;
pub mod sweep;
pub mod trace;
