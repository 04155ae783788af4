//! What several whole-program tests share: named edits of the ARCx specification, and runs of the command.

pub mod faults;
