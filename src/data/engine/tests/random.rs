//! Random terms.
