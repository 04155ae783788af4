//! Random x86 tests with narrow accesses and numbers at the bounds of their width: machine against
//! axioms, and registers against a naive interpreter of words. `MU_CHECK_SEED=n` replays a test,
//! `MU_CHECK_RUNS=n` sets their number.

use super::{by_machine, judge, outcomes};
use mu_base::random::Random;
use mu_base::{Budget, SourceId};
use mu_litmus::code::Arch;
use mu_litmus::file::{ParserOptions, parse};
use mu_litmus::paths::PathBounds;
use mu_litmus::report::run;
use std::fmt::Write;

/// A width: AT&T's suffix, bits, the C types of a variable.
const WIDTHS: [(&str, u32, [&str; 2]); 4] = [
    ("b", 8, ["int8_t", "uint8_t"]),
    ("w", 16, ["int16_t", "uint16_t"]),
    ("l", 32, ["int", "uint32_t"]),
    ("q", 64, ["int64_t", "uint64_t"]),
];
/// The parts of registers by width.
const REGISTERS: [[&str; 4]; 3] =
    [["al", "ax", "eax", "rax"], ["bl", "bx", "ebx", "rbx"], ["cl", "cx", "ecx", "rcx"]];

/// Chooses a number at the bounds of a width; for 64 bits one that an instruction can contain.
fn number(random: &mut Random, bits: u32) -> i64 {
    let bits = bits.min(32);
    let half = 1i64 << (bits - 1);
    *random.choose(&[0, 1, -1, half - 1, -half, half - 2, 2])
}

fn seeds(runs: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    number("MU_CHECK_SEED").map_or(0..number("MU_CHECK_RUNS").unwrap_or(runs), |s| s..s + 1)
}

/// Generates a test of two threads over two variables: loads, stores, locked and unlocked
/// read-modify-writes, comparisons and uses of their flags.
fn test(seed: u64) -> String {
    let random = &mut Random::new(seed);
    let kinds: Vec<usize> = (0..2).map(|_| random.below(4)).collect();
    let mut initial = String::new();
    for (name, kind) in ["x", "y"].iter().zip(&kinds) {
        let (_, bits, types) = WIDTHS[*kind];
        let _ = write!(initial, "{} {name}={}; ", random.choose(&types), number(random, bits));
    }
    let mut columns: Vec<Vec<String>> = Vec::new();
    for thread in 0..2 {
        let mut code = Vec::new();
        for at in 0..1 + random.below(3) {
            let variable = random.below(2);
            let name = ["x", "y"][variable];
            // Usually the whole variable, else a part of it.
            let kind = if random.chance(4, 5) {
                kinds[variable]
            } else {
                random.below(kinds[variable] + 1)
            };
            let (letter, bits, _) = WIDTHS[kind];
            let register = REGISTERS[random.below(3)][kind];
            let n = number(random, bits);
            let last = match random.below(13) {
                0 | 1 => format!("mov{letter} ${n},({name})"),
                2 | 3 => format!("mov{letter} ({name}),%{register}"),
                4 => format!("mov{letter} %{register},({name})"),
                5 => format!(
                    "{}{} ${n},({name})",
                    random.choose(&["lock add", "lock sub", "lock xor", "lock and", "add", "or"]),
                    letter
                ),
                6 => format!(
                    "{}{} ({name})",
                    random.choose(&["lock inc", "lock dec", "lock neg", "not", "inc"]),
                    letter
                ),
                7 => format!("lock xadd{letter} %{register},({name})"),
                8 => format!("xchg{letter} %{register},({name})"),
                9 => format!("lock cmpxchg{letter} %{register},({name})"),
                10 if kind < 2 => {
                    format!("{}{letter}l ({name}),%edx", random.choose(&["movz", "movs"]))
                }
                10 => format!("mov{letter} ${n},%{register}"),
                11 => {
                    let condition =
                        random.choose(&["l", "g", "b", "a", "o", "s", "e", "le", "be", "ae", "p"]);
                    code.push(format!("cmp{letter} ${n},({name})"));
                    code.push(format!("set{condition} %dl"));
                    format!("cmov{condition} %esi,%edi")
                }
                _ => {
                    code.push(format!("cmp{letter} ${n},%{register}"));
                    code.push(format!(
                        "j{} L{thread}{at}",
                        random.choose(&["l", "g", "b", "a", "o", "s", "e", "np"])
                    ));
                    code.push(format!("mov{letter} ${n},({name})"));
                    format!("L{thread}{at}:")
                }
            };
            code.push(last);
        }
        columns.push(code);
    }
    let mut text = format!("X86_64 words{seed}\n{{ {initial}1:rsi=7; 0:rax=-1; }}\n P0 | P1 ;\n");
    for row in 0..columns.iter().map(Vec::len).max().unwrap_or(0) {
        let cell = |c: &Vec<String>| c.get(row).cloned().unwrap_or_default();
        let _ = writeln!(text, " {} | {} ;", cell(&columns[0]), cell(&columns[1]));
    }
    let registers: String = (0..2)
        .flat_map(|t| ["rax", "rbx", "rcx", "rdx", "rdi"].map(|r| format!("{t}:{r}; ")))
        .collect();
    text + &format!("locations [{registers}x; y; ]\nexists (x=-1 /\\ 0:rax=255)\n")
}

#[test]
fn machine_and_axioms_agree_on_words() {
    let range = seeds(120);
    let models = ["sc", "tso"].map(|m| (m, judge(Arch::X86_64, m)));
    let (mut compared, mut mixed_sizes) = (0, 0);
    for seed in range.clone() {
        let text = test(seed);
        if let Err(d) = mu_program::litmus::parse(SourceId::FIRST, &text) {
            // The machines access a variable as a whole.
            assert!(d.message.contains("different sizes"), "seed {seed}: {d}\n{text}");
            mixed_sizes += 1;
            continue;
        }
        for (name, judge) in &models {
            let read = parse(
                SourceId::FIRST,
                &text,
                ParserOptions { pairs: judge.pairs, ..Default::default() },
            )
            .unwrap_or_else(|d| panic!("seed {seed}: {d:?}\n{text}"));
            let report = run(read, judge, PathBounds { loops: 2 }, &Budget::default())
                .unwrap_or_else(|d| panic!("seed {seed}: {d:?}\n{text}"));
            assert_eq!(outcomes(&report), by_machine(&text, name), "{name}, seed {seed}\n{text}");
            compared += 1;
        }
    }
    println!("{compared} compared, {mixed_sizes} of several sizes");
    assert!(
        range.end - range.start < 100 || compared > 100 && mixed_sizes > 5,
        "{compared}, {mixed_sizes}"
    );
}

/// Compares registers after the code of one thread with arithmetic on unbounded integers that are
/// truncated to a width.
#[test]
fn registers_are_those_of_a_naive_interpreter() {
    let cut = |n: i128, bits: u32| n & ((1i128 << bits) - 1);
    let sign = |n: i128, bits: u32| if n >> (bits - 1) & 1 == 1 { n - (1i128 << bits) } else { n };
    let range = seeds(150);
    for seed in range {
        let random = &mut Random::new(seed);
        let mut held = [0i128; 3];
        let mut code: Vec<String> = Vec::new();
        for _ in 0..6 {
            let (r, s, kind) = (random.below(3), random.below(3), random.below(4));
            let (letter, bits, _) = WIDTHS[kind];
            let (target, source) = (REGISTERS[r][kind], REGISTERS[s][kind]);
            let n = number(random, bits);
            let (old, other) = (cut(held[r], bits), cut(held[s], bits));
            let (line, new) = match random.below(12) {
                0 | 1 => (format!("mov{letter} ${n},%{target}"), i128::from(n)),
                2 => (format!("add{letter} ${n},%{target}"), old + i128::from(n)),
                3 => (format!("sub{letter} %{source},%{target}"), old - other),
                4 => (format!("and{letter} %{source},%{target}"), old & other),
                5 => (format!("or{letter} ${n},%{target}"), old | i128::from(n)),
                6 => (format!("xor{letter} %{source},%{target}"), old ^ other),
                7 => (format!("inc{letter} %{target}"), old + 1),
                8 => (format!("neg{letter} %{target}"), -old),
                9 => (format!("not{letter} %{target}"), !old),
                10 if kind < 2 => {
                    let (wide, signed) = (REGISTERS[r][2], random.chance(1, 2));
                    let value = if signed { sign(other, bits) } else { other };
                    held[r] = cut(value, 32);
                    code.push(format!(
                        "mov{}{letter}l %{source},%{wide}",
                        if signed { "s" } else { "z" }
                    ));
                    continue;
                }
                _ => {
                    // A signed comparison, evaluated by flags.
                    let less = sign(old, bits) < sign(other, bits);
                    code.push(format!("cmp{letter} %{source},%{target}"));
                    code.push(format!("cmovl{} %{},%{}", "q", REGISTERS[s][3], REGISTERS[r][3]));
                    held[r] = if less { held[s] } else { held[r] };
                    continue;
                }
            };
            code.push(line);
            // 32-bit writes clear the upper half, narrower ones preserve it.
            let preserved = if bits >= 32 { 0 } else { held[r] & !((1i128 << bits) - 1) };
            held[r] = preserved | cut(new, bits);
        }
        let wanted: Vec<String> = ["rax", "rbx", "rcx"]
            .iter()
            .zip(held)
            .map(|(name, n)| format!("0:{name}={n}"))
            .collect();
        let types = "uint64_t 0:rax; uint64_t 0:rbx; uint64_t 0:rcx;";
        let text = format!(
            "X86_64 one\n{{ {types} }}\n P0 ;\n {} ;\nforall ({})\n",
            code.join(" ;\n "),
            wanted.join(" /\\ ")
        );
        let machine = mu_program::litmus::parse(SourceId::FIRST, &text)
            .unwrap_or_else(|d| panic!("seed {seed}: {d:?}\n{text}"));
        let memory = mu_program::memory::by_name("tso").unwrap();
        let report = mu_program::herd::run(&machine, memory, None, &Budget::default()).unwrap();
        assert_eq!(
            report.answer.verdict,
            mu_program::outcome::Verdict::Ok,
            "seed {seed}: {:?}\n{text}",
            report.answer.outcomes
        );
    }
}
