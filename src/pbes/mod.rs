//! Parameterised boolean equation systems.
