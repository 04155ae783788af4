//! Comparison of axioms and machines on random programs, and litmus facts of the literature by
//! axioms.

use super::super::litmus::{self, Litmus};
use super::super::machine::Machine;
use super::super::memory;
use super::super::outcome_search::{self as operational, observed_registers};
use super::{Axioms, execution, outcomes};
use mu_base::{Budget, SourceId};
use mu_testkit::litmus_tests::{self, Shape};

fn test(text: &str) -> Litmus {
    litmus::parse(SourceId::FIRST, text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// Compares both routes on a program under all models. Returns the number of outcomes.
fn compare(seed: u64, shape: Shape) -> usize {
    let text = litmus_tests::litmus(seed, shape);
    let test = test(&text);
    let observables = test.observables();
    let registers = observed_registers(&observables, test.program.threads.len());
    let mut count = 0;
    for axioms in Axioms::ALL {
        let machine = Machine::new(
            test.program.clone(),
            memory::by_name(axioms.name()).unwrap(),
            None,
            &registers,
        );
        let machine =
            operational::outcomes(&machine, &observables, true, &Budget::default()).unwrap();
        let graphs = outcomes(&test.program, axioms, &observables, &Budget::default()).unwrap();
        assert_eq!(machine.set, graphs.set, "seed {seed}, {shape:?}, {}\n{text}", axioms.name());
        count += graphs.set.len();
    }
    count
}

#[test]
fn axioms_and_machines_agree_on_random_programs() {
    let total: usize = (0..400)
        .map(|seed| compare(seed, Shape { threads: 3, instructions: 4, rich: seed % 2 == 0 }))
        .sum();
    assert!(total > 4000, "{total}");
    (1000..1100)
        .for_each(|seed| _ = compare(seed, Shape { threads: 4, instructions: 3, rich: false }));
}

/// Long version:
/// ```text
/// PROGRAMS=100000 SEED=1 cargo test --release -p mu-check-program \
///   at_length -- --ignored --nocapture
/// ```
#[test]
#[ignore = "minutes"]
fn axioms_and_machines_agree_at_length() {
    let of =
        |name: &str, or: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(or);
    let (programs, first) = (of("PROGRAMS", 100_000), of("SEED", 1 << 32));
    println!("seeds {first} to {}", first + programs - 1);
    use rayon::prelude::*;
    let total: usize = (first..first + programs)
        .into_par_iter()
        .map(|s| compare(s, Shape { threads: 4, instructions: 4, rich: s % 2 == 0 }))
        .sum();
    println!(
        "{programs} programs, {total} outcomes under three models: the same by machines and by axioms"
    );
}

/// Litmus facts of textbooks, each under SC, TSO, PSO.
#[test]
fn facts_of_the_literature() {
    let allowed = |text: &str| {
        let test = test(text);
        Axioms::ALL.map(|a| {
            let holds = |o: &[u64]| test.question.holds(o);
            execution(&test.program, a, &test.observables(), &Budget::default(), &holds)
                .unwrap()
                .is_some()
        })
    };
    let two = |a: &str, b: &str, condition: &str| {
        let (a, b): (Vec<&str>, Vec<&str>) = (a.split("; ").collect(), b.split("; ").collect());
        let rows: Vec<String> = (0..a.len().max(b.len()))
            .map(|i| format!("{} | {} ;", a.get(i).unwrap_or(&""), b.get(i).unwrap_or(&"")))
            .collect();
        format!("X86 t\n{{}}\nP0 | P1 ;\n{}\nexists ({condition})\n", rows.join("\n"))
    };
    let never = [false; 3];
    for (name, text, expected) in [
        (
            "SB",
            two("MOV [x],$1; MOV EAX,[y]", "MOV [y],$1; MOV EAX,[x]", "0:EAX=0 /\\ 1:EAX=0"),
            [false, true, true],
        ),
        (
            "SB+mfences",
            two(
                "MOV [x],$1; MFENCE; MOV EAX,[y]",
                "MOV [y],$1; MFENCE; MOV EAX,[x]",
                "0:EAX=0 /\\ 1:EAX=0",
            ),
            never,
        ),
        (
            "SB+xchg",
            two(
                "MOV EBX,$1; XCHG [x],EBX; MOV EAX,[y]",
                "MOV EBX,$1; XCHG [y],EBX; MOV EAX,[x]",
                "0:EAX=0 /\\ 1:EAX=0",
            ),
            never,
        ),
        (
            "MP",
            two("MOV [x],$1; MOV [y],$1", "MOV EAX,[y]; MOV EBX,[x]", "1:EAX=1 /\\ 1:EBX=0"),
            [false, false, true],
        ),
        (
            "MP+sfence",
            two(
                "MOV [x],$1; SFENCE; MOV [y],$1",
                "MOV EAX,[y]; MOV EBX,[x]",
                "1:EAX=1 /\\ 1:EBX=0",
            ),
            never,
        ),
        (
            "LB",
            two("MOV EAX,[x]; MOV [y],$1", "MOV EAX,[y]; MOV [x],$1", "0:EAX=1 /\\ 1:EAX=1"),
            never,
        ),
        (
            "2+2W",
            two("MOV [x],$1; MOV [y],$2", "MOV [y],$1; MOV [x],$2", "[x]=1 /\\ [y]=1"),
            [false, false, true],
        ),
        (
            "R",
            two("MOV [x],$1; MOV [y],$1", "MOV [y],$2; MOV EAX,[x]", "[y]=2 /\\ 1:EAX=0"),
            [false, true, true],
        ),
        (
            "S",
            two("MOV [x],$2; MOV [y],$1", "MOV EAX,[y]; MOV [x],$1", "[x]=2 /\\ 1:EAX=1"),
            [false, false, true],
        ),
        ("CoRR", two("MOV [x],$1", "MOV EAX,[x]; MOV EBX,[x]", "1:EAX=1 /\\ 1:EBX=0"), never),
        ("inc", two("INC [x]", "INC [x]", "[x]=1"), [true; 3]),
        ("lock inc", two("LOCK INC [x]", "LOCK INC [x]", "[x]=1"), never),
    ] {
        assert_eq!(allowed(&text), expected, "{name}");
    }
    let iriw = "X86 IRIW\n{}\nP0 | P1 | P2 | P3 ;\nMOV [x],$1 | MOV EAX,[x] | MOV [y],$1 | MOV EAX,[y] ;\n | MOV EBX,[y] | | MOV EBX,[x] ;\nexists (1:EAX=1 /\\ 1:EBX=0 /\\ 3:EAX=1 /\\ 3:EBX=0)\n";
    assert_eq!(allowed(iriw), never);
    let wrc = "X86 WRC\n{}\nP0 | P1 | P2 ;\nMOV [x],$1 | MOV EAX,[x] | MOV EAX,[y] ;\n | MOV [y],$1 | MOV EBX,[x] ;\nexists (1:EAX=1 /\\ 2:EAX=1 /\\ 2:EBX=0)\n";
    assert_eq!(allowed(wrc), never);
}

#[test]
fn loops_and_long_programs_are_refused() {
    let refused = |text: &str| {
        let test = test(text);
        outcomes(&test.program, Axioms::Tso, &test.observables(), &Budget::default())
            .expect_err(text)
            .message
    };
    assert!(refused("X86 l\n{}\nP0 ;\nL: JMP L ;\n").contains("loops"));
    let long = "MOV [x],$1 ;\n".repeat(65);
    assert!(refused(&format!("X86 l\n{{}}\nP0 ;\n{long}")).contains("more than 64 events"));
}
