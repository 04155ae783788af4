//! Recognition of files with the ending `.m` that are in another language.
//!
//! Only called for a file that is no Murphi model. A line that no Murphi model can have, and that
//! is typical for another language, decides. Cost: linear.

use std::ops::Range;

/// Returns the language of a text that is not a Murphi model, with the line that shows it. `None`
/// if nothing shows another language.
pub fn language(text: &str) -> Option<(&'static str, Range<usize>)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at + (line.len() - line.trim_start().len());
        at += line.len();
        let trimmed = line.trim();
        if let Some(language) = of_line(trimmed) {
            return Some((language, start..start + trimmed.len()));
        }
    }
    None
}

/// Returns the language that this line shows.
fn of_line(line: &str) -> Option<&'static str> {
    let begins = |words: &[&str]| words.iter().any(|w| line.starts_with(w));
    let objective = [
        "#import",
        "@import",
        "@interface",
        "@implementation",
        "@protocol",
        "@property",
        "@synthesize",
        "@class",
        "#include <",
        "#include \"",
        "#pragma",
        "#define",
    ];
    if begins(&["#import", "#pragma"]) || line.starts_with('@') && begins(&objective) {
        return Some("Objective-C");
    }
    if begins(&["#include", "#define", "#if", "#ifdef", "#ifndef"]) {
        return Some("text for the preprocessor of C (`cpp -P file.m` expands it)");
    }
    if begins(&[":- module", ":- interface", ":- implementation", ":- import_module"]) {
        return Some("Mercury");
    }
    if begins(&["BeginPackage[", "Begin[\"`", "(* ::Package::"]) {
        return Some("Wolfram Language");
    }
    let command = ["clear all", "clc;", "clc", "close all", "classdef ", "%{"];
    if line.starts_with('%') || command.iter().any(|c| line == c.trim() || line.starts_with(c)) {
        return Some("MATLAB or Octave");
    }
    // `function [a, b] = name(…)`, `function a = name(…)`.
    let function = line.strip_prefix("function ")?;
    let head = function.split('(').next().unwrap_or("");
    (head.contains('=') || head.trim_start().starts_with('[')).then_some("MATLAB or Octave")
}
