//! Real equation systems with fixed points: what real-valued formulas on probabilistic transition
//! systems become, and their exact solution.
//!
//! In: a formula and a system (`translate`) -> a [`system::Equations`] -> the value of its first
//! equation (`solve`): exact, or between bounds. After Groote and Willemse, "Real equation systems
//! with alternating fixed-points" (CONCUR 2023). Where they eliminate variables symbolically,
//! systems are solved component by component here: what has no cycle by evaluation, cycles of one
//! fixed point by strategy improvement (`improve`) with linear systems over the rationals
//! (`linear`), cycles through several by iteration.
#![warn(missing_docs)]

mod additive;
mod fraction;
mod strategy_improvement;
mod linear;
pub mod number;
pub mod solve;
pub mod system;
#[cfg(test)]
mod tests;
pub mod translate;
