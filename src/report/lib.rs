//! Presentation: evidence as text and charts, tables, plots. Values in, text out; `cli` handles
//! files and terminals.
#![warn(missing_docs)]

pub mod memory_graph;
pub mod evidence_tree;
pub mod caption;
pub mod chart;
pub mod execution;
pub mod junit;
pub mod layers;
pub mod execution_graph;
pub mod page;
pub mod plot;
pub mod reference;
pub mod schema;
pub mod shorten;
pub mod deadlock;
pub mod printed_evidence;
pub mod svg;
pub mod sweep;
pub mod trace;
