//! Random small programs as litmus tests, for the comparison of independent routes.
//!
//! In: a seed, the most threads and instructions a thread. Out: the text of a test of architecture
//! `X86` whose outcomes tell all registers and cells. The same seed gives the same text, so a
//! failure replays from the seed.

use mu_base::random::Random;
use std::fmt::Write;

const REGISTERS: [&str; 3] = ["EAX", "EBX", "ECX"];
const CELLS: [&str; 3] = ["x", "y", "z"];

/// What programs are made of.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Most threads.
    pub threads: usize,
    /// Most instructions of a thread.
    pub instructions: usize,
    /// Whether there are locked instructions, unlocked read-modify-write, and jumps, beside loads,
    /// stores and fences.
    pub rich: bool,
}

/// A test.
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
            // A jump over what follows it, to the end.
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
