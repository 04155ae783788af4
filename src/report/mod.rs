//! Tables, JSON, CSV, plots.
