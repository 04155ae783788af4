//! Tests on random x86 programs with words at their bounds: the system for any number of threads,
//! instantiated for two and three, against the machine with 32-bit words.
//!
//! For each program, both the machine of programs (`program::machine`) and that of systems compute
//! whether a claim holds in some state. If every word wraps in the translation, both agree. If it
//! assumes a bound, they agree unless the system reaches a place without a counterpart.
//! Instructions come from the instruction table, so that new ones are generated automatically.
//! `MU_CHECK_SEED=n` replays a program, `MU_CHECK_RUNS=n` sets their number.

mod machine;

use mu_base::random::Random;
use mu_base::{SourceId, Stage};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::x86::{Translation, TranslationOptions, translate};
use mu_program::expr::FlagTest;
use mu_program::nasm;
use mu_program::parametric;
use mu_program::x86::table::{InstructionKind, Operands, TABLE};
use std::collections::{BTreeSet, HashSet};

/// Words at the bounds, and a few small ones.
const LITERALS: [&str; 12] = [
    "0",
    "1",
    "2",
    "-1",
    "3",
    "2147483647",
    "2147483648",
    "4294967295",
    "-2147483648",
    "0xfffffffe",
    "1073741824",
    "259",
];
/// The conditions, one suffix for each.
const CONDITIONS: [&str; 16] =
    ["e", "ne", "s", "ns", "b", "ae", "o", "no", "be", "a", "l", "ge", "le", "g", "p", "np"];
const REGISTERS: [&str; 3] = ["eax", "ebx", "ecx"];
/// Largest number of states of an instance; larger instances are skipped.
const MOST: usize = 4_000;

/// A program with its mnemonics.
struct Program {
    text: String,
    used: BTreeSet<String>,
}

fn pick(random: &mut Random, list: &[&str]) -> String {
    random.choose(list).to_string()
}

fn program(random: &mut Random) -> Program {
    let mut used = BTreeSet::new();
    let memory = |r: &mut Random| pick(r, &["[x]", "[y]", "[own]", "[x]", "[own + $self]"]);
    let mut code = String::new();
    let count = 3 + random.below(4);
    for at in 0..count {
        // Jumps make values observable. Instructions without a counterpart are rare.
        let jump = TABLE[TABLE.len() - 3];
        let any = TABLE[random.below(TABLE.len())];
        let refused = matches!(
            any.kind,
            InstructionKind::Lock
                | InstructionKind::Lea
                | InstructionKind::Extend { .. }
                | InstructionKind::Set(_)
        ) && !random.chance(1, 8);
        let entry = if refused || random.chance(1, 4) { jump } else { any };
        let conditional = matches!(
            entry.kind,
            InstructionKind::JumpIf(_) | InstructionKind::Set(_) | InstructionKind::MoveIf(_)
        );
        let word = if conditional {
            format!("{}{}", entry.name, pick(random, &CONDITIONS))
        } else {
            entry.name.to_string()
        };
        let register = pick(random, &REGISTERS);
        let wide = |r: &mut Random| if r.chance(1, 2) { memory(r) } else { pick(r, &REGISTERS) };
        let line = match entry.operands {
            Operands::None | Operands::Any => word.clone(),
            Operands::Label => format!(
                "{word} {}",
                if random.chance(2, 3) { "bad".to_string() } else { format!("over{}", at + 1) }
            ),
            Operands::One => {
                let target = wide(random);
                let sized =
                    if target.starts_with('[') { format!("dword {target}") } else { target };
                format!("{word} {sized}")
            }
            Operands::Count => {
                format!("{word} {register}, {}", pick(random, &["1", "31", "0", "4", "cl"]))
            }
            Operands::Two => {
                let source = match random.below(4) {
                    0 | 1 => pick(random, &LITERALS),
                    2 => memory(random),
                    _ => pick(random, &REGISTERS),
                };
                let target = if source.starts_with('[') || random.chance(1, 2) {
                    register.clone()
                } else {
                    memory(random)
                };
                let sized =
                    if target.starts_with('[') { format!("dword {target}") } else { target };
                match entry.kind {
                    InstructionKind::Exchange
                    | InstructionKind::ExchangeAdd
                    | InstructionKind::CompareExchange => {
                        format!("{word} {}, {register}", wide(random))
                    }
                    _ => format!("{word} {sized}, {source}"),
                }
            }
        };
        let locked =
            entry.lockable && line.contains('[') && !line.contains(", [") && random.chance(1, 2);
        used.insert(entry.name.to_string());
        if conditional {
            used.insert(word);
        }
        code += &format!("over{at}: {}{line}\n", if locked { "lock " } else { "" });
    }
    let claims = [
        "eip[$t] = bad",
        "eip[$t] = bad && eip[$u] = bad",
        "eip[$t] = bad && x = 0",
        "eip[$t] = done && $u:x = 1",
        "eax[$t] < 0 && ebx[$t] = 2147483648",
        "eip[$t] = bad && own[$t] <> -1",
        "eax[$t] = 4294967295",
        "x > y",
        "eip[$t] = done && y = 2147483647",
        "eax[$t] <= ebx[$u]",
    ];
    let claim = pick(random, &claims);
    let (x, y, own) = (
        pick(random, &LITERALS),
        pick(random, &LITERALS),
        pick(random, &["0", "1", "-1", "2147483647"]),
    );
    let text = format!(
        "begin shared_data\nx dd {x}\ny dd {y}\nend shared_data\nbegin thread_data\nown dd {own}\nend thread_data\n\
         begin unsafe_prop\n{claim}\nend unsafe_prop\nbegin thread_code\n{code}over{count}: nop\n\
         done: jmp {}\nbad: jmp bad\nend thread_code\n",
        if random.chance(1, 4) { "over0" } else { "done" }
    );
    Program { text, used }
}

/// Returns whether some threads reach an unsafe state on the machine of programs with 32-bit words;
/// `None` if it has too many states.
fn by_words(program: &nasm::X86Program) -> Option<bool> {
    let threads = program.program.threads.len();
    let mut watched = vec![Vec::new(); threads];
    for p in &program.unsafe_states {
        watched.iter_mut().zip(p.registers(threads)).for_each(|(w, r)| w.extend(r));
    }
    let machine = mu_program::machine::Machine::with_observed(
        program.program.clone(),
        mu_program::memory::TSO,
        None,
        &watched,
    );
    machine::reaches_unsafe(program, &machine, MOST)
}

/// Returns the claim that some processes reach: one of the program, one of places without a
/// counterpart, or none; outer `None` if there are too many states.
fn by_system(translation: &Translation, processes: u32) -> Option<Option<bool>> {
    let system = mu_cubicle::check(&translation.file)
        .unwrap_or_else(|d| panic!("{}\n{}", d, translation.file));
    let machine = Machine::new(&system, processes, Memory::Tso, Setup::default())
        .unwrap_or_else(|d| panic!("{}", d));
    let claims: Vec<_> = system.unsafes.iter().map(|c| machine.prepare_claim(c)).collect();
    let mut seen: HashSet<Vec<u32>> = HashSet::new();
    let mut todo: Vec<Vec<u32>> = machine.initial_states().unwrap_or_else(|d| panic!("{}", d));
    let mut reached = None;
    while let Some(state) = todo.pop() {
        if !seen.insert(state.clone()) {
            continue;
        }
        if seen.len() > MOST {
            return None;
        }
        for (at, claim) in claims.iter().enumerate() {
            if machine.may_hold(&state, claim).is_some() {
                if at < translation.claims {
                    return Some(Some(true));
                }
                reached = Some(false);
            }
        }
        machine
            .successors(&state, &mut |_, next| todo.push(next))
            .unwrap_or_else(|d| panic!("{}", d));
    }
    Some(reached)
}

#[test]
fn programs_with_words_at_their_bounds() {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seeds =
        number("MU_CHECK_SEED").map_or(0..number("MU_CHECK_RUNS").unwrap_or(700), |s| s..s + 1);
    let (mut compared, mut bad, mut refused, mut bounded, mut large) = (0, 0, 0, 0, 0);
    let mut of_words = 0;
    let mut used = BTreeSet::new();
    for seed in seeds.clone() {
        let Program { text, used: words } = program(&mut Random::new(seed));
        used.extend(words);
        let threads = if text.contains("$u") { 2 } else { 1 + (seed % 2) as usize };
        let Ok(machine) = nasm::parse(SourceId::FIRST, &text, threads) else {
            // The proof supports no more than the machine.
            assert!(
                parametric::parse(SourceId::FIRST, &text)
                    .and_then(|p| translate(&p, TranslationOptions::default()))
                    .is_err(),
                "seed {seed}\n{text}"
            );
            refused += 1;
            continue;
        };
        let Some(wanted) = by_words(&machine) else {
            large += 1;
            continue;
        };
        for (wrapping, words) in [(true, false), (false, false), (true, true)] {
            let options = TranslationOptions { wrapping, words, ..TranslationOptions::default() };
            let first = wrapping && !words;
            let translation = match parametric::parse(SourceId::FIRST, &text)
                .and_then(|p| translate(&p, options))
            {
                Ok(translation) => translation,
                Err(d) => {
                    assert!(
                        d.stage == Stage::Unsupported && d.span.is_some(),
                        "seed {seed}: {d}\n{text}"
                    );
                    refused += usize::from(first);
                    continue;
                }
            };
            // A claim on memory uses an additional thread.
            let extra = u32::from(translation.file.to_string().contains("Watch"));
            let Some(found) = by_system(&translation, threads as u32 + extra) else {
                large += usize::from(first);
                continue;
            };
            of_words += usize::from(words);
            bounded += usize::from(translation.bounded);
            if found != Some(false) || wrapping {
                assert_eq!(
                    found == Some(true),
                    wanted,
                    "seed {seed}, wrapping {wrapping}, words {words}\n{text}\n{}",
                    translation.file
                );
            }
            compared += usize::from(first);
            bad += usize::from(first && wanted);
        }
    }
    println!(
        "{compared} compared, of which {bad} reach it; {bounded} with a bound, {of_words} as words; {refused} refused, {large} too large"
    );
    if seeds.end - seeds.start >= 400 {
        assert!(
            compared > 150 && bad > 40 && compared - bad > 40 && bounded > 4 && of_words > 100,
            "{compared}, {bad}, {bounded}, {of_words}, {refused}, {large}"
        );
        for e in TABLE
            .iter()
            .filter(|e| !matches!(e.kind, InstructionKind::Lock | InstructionKind::Extend { .. }))
        {
            assert!(used.contains(e.name), "`{}` is never generated", e.name);
        }
        for c in CONDITIONS {
            assert!(
                FlagTest::of_suffix(c).is_some() && used.contains(&format!("j{c}")),
                "`j{c}` is never generated"
            );
        }
    }
}

/// The same with words of 16 bits: registers are `ax`, `bx`, `cx`, variables `dw`.
#[test]
fn programs_with_words_of_16_bits() {
    let (mut compared, mut bad) = (0, 0);
    for seed in 0..300 {
        let mut text = program(&mut Random::new(seed)).text;
        for (from, to) in [
            ("dd ", "dw "),
            ("dword", "word"),
            ("eax", "ax"),
            ("ebx", "bx"),
            ("ecx", "cx"),
            ("2147483647", "32767"),
            ("2147483648", "32768"),
            ("4294967295", "65535"),
            ("0xfffffffe", "0xfffe"),
            ("1073741824", "16384"),
        ] {
            text = text.replace(from, to);
        }
        let threads = if text.contains("$u") { 2 } else { 1 };
        let Ok(machine) = nasm::parse(SourceId::FIRST, &text, threads) else { continue };
        let Some(wanted) = by_words(&machine) else { continue };
        let Ok(translation) = parametric::parse(SourceId::FIRST, &text).and_then(|p| {
            translate(&p, TranslationOptions { wrapping: true, ..TranslationOptions::default() })
        }) else {
            continue;
        };
        assert!(translation.bits == 16 && translation.file.to_string().contains(": word16"));
        let extra = u32::from(translation.file.to_string().contains("Watch"));
        let Some(found) = by_system(&translation, threads as u32 + extra) else { continue };
        assert_eq!(found == Some(true), wanted, "seed {seed}\n{text}\n{}", translation.file);
        compared += 1;
        bad += usize::from(wanted);
    }
    assert!(compared > 50 && bad > 10 && compared - bad > 10, "{compared}, {bad}");
}

/// A counter beyond the number of threads, and a thread that counts twice without a reset, lead to
/// places without a counterpart. A lock that is set in between does not; its proof is limited to
/// the number of threads for which it stays in a word.
#[test]
fn what_the_number_of_threads_does_not_bound() {
    let text = |data: &str, code: &str| {
        format!(
            "begin shared_data\n{data}\nend shared_data\nbegin unsafe_prop\neip[$t] = bad\nend unsafe_prop\n\
             begin thread_code\n{code}\nbad: jmp bad\nend thread_code\n"
        )
    };
    let reached = |text: &str| {
        let translation = parametric::parse(SourceId::FIRST, text)
            .and_then(|p| translate(&p, TranslationOptions::default()))
            .unwrap_or_else(|d| panic!("{d}"));
        (by_system(&translation, 2).flatten(), translation.most_threads, translation.bounded)
    };
    let counter = text(
        "c dd N ! as counter",
        "lock dec dword [c]\nlock dec dword [c]\nlock inc dword [c]\nend: jmp end",
    );
    assert_eq!(reached(&counter), (Some(false), Some(2_147_483_647), false));
    let counter =
        text("c dd 0 ! as counter", "lock inc dword [c]\nlock dec dword [c]\nend: jmp end");
    assert_eq!(reached(&counter).0, None);
    let twice = text("x dd 0", "again: lock inc dword [x]\njmp again");
    assert_eq!(reached(&twice), (Some(false), Some(2_147_483_647), true));
    let once = text("x dd 5", "again: lock sub dword [x], 2\nmov dword [x], 3\nmfence\njmp again");
    assert_eq!(reached(&once), (None, Some((3 + (1 << 31)) / 2), true));
}
