//! Parity games in flat arrays.
