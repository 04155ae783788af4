//! Real equation systems with fixed points: translation of real-valued formulas on probabilistic
//! transition systems, and exact solution.
//!
//! In: a formula and a system (`translate`) -> a [`system::RealEquations`] -> the value of its
//! first equation (`solve`): exact, or between bounds. After Groote and Willemse, "Real equation
//! systems with alternating fixed-points" (CONCUR 2023). They eliminate variables symbolically;
//! here systems are solved component by component: acyclic parts by evaluation, cycles of one fixed
//! point by strategy improvement (`strategy_improvement`) with linear systems over the rationals
//! (`linear`), cycles through several by iteration.
#![warn(missing_docs)]

mod additive;
mod fraction;
mod strategy_improvement;
mod linear;
pub mod number;
pub mod solve;
pub mod system;
pub mod translate;
