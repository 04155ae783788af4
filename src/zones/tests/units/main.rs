//! Tests of proofs along paths: constraints against enumeration, and answers against instances.

mod answers;
mod arcx;
mod constraints;
mod crowds;
mod sorts;
