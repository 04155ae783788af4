//! Generator of random small programs as litmus tests, for the comparison of independent routes.
//!
//! Input: a seed, the largest number of threads and of instructions per thread. Output: the text of
//! a test of architecture `X86` that observes all registers and cells. The text depends only on the
//! seed, so a failure can be replayed.

use mu_base::random::Random;
use std::fmt::Write;

const REGISTERS: [&str; 3] = ["EAX", "EBX", "ECX"];
const CELLS: [&str; 3] = ["x", "y", "z"];

/// The ingredients of programs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Largest number of threads.
    pub threads: usize,
    /// Largest number of instructions of a thread.
    pub instructions: usize,
    /// True if programs also contain locked instructions, unlocked read-modify-write, and jumps.
    pub rich: bool,
}

/// Generates a test.
pub fn litmus(seed: u64, shape: Shape) -> String {
    let mut random = Random::new(seed);
    let threads = 1 + random.below(shape.threads);
    let threads = if threads == 1 && shape.threads > 1 { 2 } else { threads };
    let cells = &CELLS[..1 + random.below(3).max(random.below(3))];
    let mut used = vec![Vec::new(); threads];
    let columns: Vec<Vec<String>> = (0..threads)
        .map(|t| {
            let count = 1 + random.below(shape.instructions);
            let mut code: Vec<String> = (0..count)
                .map(|_| instruction(&mut random, shape.rich, cells, &mut used[t]))
                .collect();
            // A jump over the rest of the thread.
            if shape.rich && count > 2 && random.chance(1, 8) {
                let at = 1 + random.below(count - 1);
                code[at] = format!("{} L{t}", random.choose(&["JNE", "JE", "JS"]));
                code.push(format!("L{t}:"));
            }
            code
        })
        .collect();
    let mut text = format!("X86 random{seed}\n{{}}\n");
    let head: Vec<String> = (0..threads).map(|i| format!("P{i}")).collect();
    let _ = writeln!(text, "{} ;", head.join(" | "));
    for row in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
        let line: Vec<&str> =
            columns.iter().map(|c| c.get(row).map_or("", String::as_str)).collect();
        let _ = writeln!(text, "{} ;", line.join(" | "));
    }
    text += "locations [";
    for (t, registers) in used.iter().enumerate() {
        registers.iter().for_each(|r| _ = write!(text, "{t}:{r}; "));
    }
    cells.iter().for_each(|c| _ = write!(text, "{c}; "));
    text + "]\n"
}

fn instruction(
    random: &mut Random,
    rich: bool,
    cells: &[&str],
    used: &mut Vec<&'static str>,
) -> String {
    let cell = *random.choose(cells);
    let mut register = |random: &mut Random| {
        let r = *random.choose(&REGISTERS);
        if !used.contains(&r) {
            used.push(r);
        }
        r
    };
    let value = 1 + random.below(3);
    match random.below(if rich { 24 } else { 14 }) {
        0..5 => format!("MOV [{cell}],${value}"),
        5..11 => format!("MOV {},[{cell}]", register(random)),
        11 => "MFENCE".into(),
        12 => "SFENCE".into(),
        13 => format!("MOV [{cell}],{}", register(random)),
        14 => format!("XCHG [{cell}],{}", register(random)),
        15 => format!("MOV {},${value}", register(random)),
        16 => format!("LOCK INC [{cell}]"),
        17 => format!("LOCK XADD [{cell}],{}", register(random)),
        18 => {
            let source = register(random);
            if !used.contains(&"EAX") {
                used.push("EAX");
            }
            format!("LOCK CMPXCHG [{cell}],{source}")
        }
        19 => format!("ADD [{cell}],{}", register(random)),
        20 => format!("INC [{cell}]"),
        21 => format!("XADD [{cell}],{}", register(random)),
        22 => format!("CMP [{cell}],${}", value - 1),
        _ => format!("SUB {},[{cell}]", register(random)),
    }
}
