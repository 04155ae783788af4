//! `mu-check`: model checking of mCRL2 specifications against first-order modal mu-calculus
//! formulas, explicit and symbolic.
//!
//! A program needs four types: a [`Specification`] gives a [`Model`], which counts its states and
//! checks formulas as a [`Run`] says; what is wrong is an [`Error`] with its place.
//!
//! ```
//! use mu_check::{Run, Specification, Verdict};
//!
//! # fn main() -> Result<(), mu_check::Error> {
//! let text = "act enter, leave: Nat;
//!             proc Buffer = sum n: Nat. (n < 3) -> enter(n) . leave(n) . Buffer;
//!             init Buffer;";
//! let model = Specification::new("buffer.mcrl2", text).model()?;
//! assert_eq!(model.explore(&Run::new())?.states, 4u32.into());
//!
//! let judgement = model.check("[true* . enter(2)] <leave(1)> true", &Run::new())?;
//! assert_eq!(judgement.verdict, Verdict::False);
//! assert_eq!(judgement.evidence.expect("a path shows it").actions(), ["enter(2)"]);
//! # Ok(())
//! # }
//! ```
//!
//! Beyond that, data flows one way, from text to verdict. Each layer is a package of its own in
//! `src/`, re-exported here as a module, and depends only on layers above it (see ARCHITECTURE.md).
//! A program with a model of its own, without any language, begins at [`model`].
#![warn(missing_docs)]

/// Ids, places, diagnostics, limits.
pub use mu_base as base;

/// Grammars, parsers, syntax trees, the parameter layer.
pub use mu_syntax as syntax;

/// Sorts, values, rewriting, enumeration.
pub use mu_data as data;

/// Processes, labels as typed multi-actions, linearisation, static analyses.
pub use mu_process as process;

/// Transition systems: files, reductions, comparison.
pub use mu_lts as lts;

/// The waist between front ends and engines.
pub use mu_model as model;

/// Probabilistic transition systems.
pub use mu_chance as chance;

/// Litmus tests and x86 programs.
pub use mu_program as program;

/// Memory models as axioms: the `cat` language, serial views.
pub use mu_axioms as axioms;

/// Litmus tests as candidate executions.
pub use mu_litmus as litmus;

/// Memory traces judged by memory models.
pub use mu_traces as traces;

/// Systems of any number of processes.
pub use mu_cubicle as cubicle;

/// Protocols in Murphi.
pub use mu_murphi as murphi;

/// Linear processes as models.
pub use mu_compile as compile;

/// The explicit engine.
pub use mu_explore as explore;

/// Machines against memory models.
pub use mu_conform as conform;

/// Programs under weak memory: safety, robustness, fences.
pub use mu_safety as safety;

/// Safety for every number of processes.
pub use mu_prove as prove;

/// The symbolic engine.
pub use mu_symbolic as symbolic;

/// Formulas of the modal mu-calculus.
pub use mu_formula as formula;

/// Parity games and boolean equation systems, their solvers.
pub use mu_game as game;

/// Counterexamples, witnesses and their check.
pub use mu_evidence as evidence;

/// Formulas on models: the way to a verdict.
pub use mu_pbes as pbes;

/// Ways to count and to check.
pub use mu_engines as engines;

/// Real equation systems: real-valued formulas on probabilistic systems.
pub use mu_reals as reals;

/// One search by several processes.
#[cfg(feature = "cluster")]
pub use mu_cluster as cluster;

/// Parameters without a value.
pub use mu_regions as regions;

/// Numbers without a value: proofs by evaluation along paths.
pub use mu_zones as zones;

/// Results as text, JSON, tables and pictures.
pub use mu_report as report;

/// Readers of all languages of models, behind one registry.
pub use mu_frontends as frontends;

/// The language server.
pub use mu_lsp as lsp;

/// The interface for programs.
pub use mu_library as library;
pub use mu_library::{
    Counts, Enabled, Error, Evidence, Judgement, Model, Place, Priority, Run, Specification, Stop,
    Verdict, Walk,
};

/// The local web page.
pub use mu_studio as studio;

/// The command line.
pub use mu_cli as cli;
