//! The only place that reads arguments and touches files and terminals.
