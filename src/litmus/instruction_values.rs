//! Instructions as values: `instr:"B .+4"`, `NOP`, and what a load from a label reads.
//!
//! Input: the text of an instruction, with labels or distances. Output: its normal form, with
//! distances in bytes, which two equal instructions share. Its value is a number that no variable
//! and no label has ([`crate::layout::MemoryLayout::instruction`]). As in the herd tools, aliases
//! of an instruction are different values. Code cannot be written.

use crate::code::{Thread, code_address};
use crate::layout::{IntegerType, MemoryLayout};
use mu_base::narrow;

/// The type of an instruction.
pub const INSTRUCTION: IntegerType = IntegerType::integer(4, false);

/// Returns the normal form of an instruction: its name in upper case, a blank, its operands
/// without blanks. `resolve` returns the distance in bytes to a label, if the operand is one.
pub fn normal_form(text: &str, resolve: &dyn Fn(&str) -> Option<i64>) -> String {
    let (name, operands) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let operand = |text: &str| {
        let text: String = text.split_whitespace().collect();
        match resolve(&text) {
            Some(distance) => format!(".{distance:+}"),
            None => text.to_ascii_uppercase(),
        }
    };
    let operands: Vec<String> =
        operands.split(',').filter(|o| !o.trim().is_empty()).map(operand).collect();
    let name = name.to_ascii_uppercase();
    if operands.is_empty() { name } else { format!("{name} {}", operands.join(",")) }
}

/// Adds the labelled instructions of all threads to memory, as variables that contain their values.
pub fn declare_code(threads: &[Thread], layout: &mut MemoryLayout) {
    for (t, thread) in threads.iter().enumerate() {
        let own = thread.sections.first().map_or(thread.texts.len(), |s| s.length as usize);
        let mut places: Vec<(u32, &str)> = thread.labels.iter().map(|l| (l.1, &*l.0)).collect();
        places.sort_unstable();
        places.dedup_by_key(|p| p.0);
        for (at, label) in places.into_iter().filter(|p| (p.0 as usize) < own) {
            let resolve = |operand: &str| {
                let to = thread.labels.iter().find(|l| l.0 == operand)?.1;
                Some((i64::from(to) - i64::from(at)) * 4)
            };
            let form = normal_form(&thread.texts[at as usize].0, &resolve);
            let value = layout.instruction(&form);
            let address = code_address(narrow::index(t), at);
            let name = format!("P{t}:{label}");
            layout.declare(&name, address, Some(INSTRUCTION), None, vec![value]);
        }
    }
}
