//! Solvers of games.
