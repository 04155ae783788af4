//! State store, search, parallel workers, limits. Knows nothing of formulas.
