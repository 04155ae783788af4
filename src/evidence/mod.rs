//! Counterexamples, witnesses, and their checker.
