//! Tests of the parsers, the printer, the formatter, and templates.

mod format;
mod parse;
mod print;
mod template;
mod tokens;
