//! Programs printed as mCRL2 specifications behave as their machines: strong bisimilarity of the
//! two transition systems.
//!
//! A failure prints the seed and the program; `MU_CHECK_SEED=n cargo test --release --test
//! expansion` begins there, `MU_CHECK_CASES=n` runs more.

use mu_check::base::random::Random;
use mu_check::base::{Budget, Limits, SourceId, Span, Stop};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{Options, Silent, explore_lts};
use mu_check::lts::Lts;
use mu_check::lts::equivalence::{Equivalence, equivalent};
use mu_check::process::{linearise, typecheck};
use mu_check::program::expansion::mcrl2;
use mu_check::program::expr::{BinOp, Expr, FlagTest, TestKind, Width};
use mu_check::program::machine::Machine;
use mu_check::program::model::ProgramModel;
use mu_check::program::{
    Access, Cell, Instruction, Next, Program, Step, Thread, axiomatic, litmus as tests, memory,
    nasm, outcome_search,
};
use mu_check::syntax;
use mu_testkit::litmus_tests::{Shape, litmus};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

fn system(model: &dyn mu_check::model::Model) -> Lts {
    explore_lts(model, &Options { threads: 1, ..Options::default() }, &Budget::default(), &Silent)
        .unwrap()
        .1
}

/// Counts the transitions of each label.
fn labels(lts: &Lts) -> String {
    let mut counts = std::collections::BTreeMap::new();
    lts.labels.iter().for_each(|l| *counts.entry(&lts.table.texts[l.index()]).or_insert(0) += 1);
    counts.iter().map(|(text, n)| format!("  {n} {text}\n")).collect()
}

/// Returns the number of states of the machine, after the comparison.
fn compare(
    program: &Program,
    memory: &'static dyn memory::MemoryModel,
    bound: Option<u32>,
    what: &str,
) -> usize {
    let machine = || Machine::new(program.clone(), memory, program.buffer_bound(bound), &[]);
    let text = mcrl2(&machine());
    let fail = |why: &str| -> ! { panic!("{what}, {}: {why}\n{text}", memory.name()) };
    let tree =
        syntax::parse_specification(SourceId::FIRST, &text).unwrap_or_else(|d| fail(&d.message));
    let spec = typecheck::check_specification(&tree).unwrap_or_else(|d| fail(&d.message));
    let process = linearise::linearise(&spec, &linearise::LineariserOptions::default())
        .unwrap_or_else(|d| fail(&d.message));
    let expanded =
        system(&Compiled::new(process, &Confluence::None).unwrap_or_else(|d| fail(&d.message)));
    let own = system(&ProgramModel::new(machine(), None));
    if !equivalent(&own, &expanded, Equivalence::STRONG, 1) {
        fail(&format!(
            "not bisimilar:\nthe machine\n{}the specification\n{}",
            labels(&own),
            labels(&expanded)
        ));
    }
    own.state_count()
}

#[test]
fn random_programs_are_bisimilar() {
    let (seed, cases) = (number("MU_CHECK_SEED", 1), number("MU_CHECK_CASES", 25));
    let mut states = 0;
    for seed in seed..seed + cases {
        let text = litmus(seed, Shape { threads: 2, instructions: 4, rich: true });
        let program = tests::parse(SourceId::FIRST, &text).unwrap().program;
        for memory in memory::ALL {
            states += compare(&program, memory, None, &format!("seed {seed}: {text}"));
        }
    }
    println!("{} programs, {states} states", cases * 3);
    assert!(states as u64 > cases * 30, "{states}");
}

/// Machines, axioms and the specification printed as mCRL2 on the same programs, of up to 4 threads
/// and 4 instructions: `MU_CHECK_SEED=1 MU_CHECK_CASES=10000 cargo test --release --test expansion
/// three_routes -- --ignored --nocapture`. Systems of more than `MU_CHECK_STATES` states are left
/// to machines and axioms.
#[test]
#[ignore = "minutes"]
fn three_routes_at_length() {
    use rayon::prelude::*;
    let (first, cases, most) = (
        number("MU_CHECK_SEED", 1),
        number("MU_CHECK_CASES", 1000),
        number("MU_CHECK_STATES", 20_000),
    );
    let (threads, budget) = (number("MU_CHECK_THREADS", 4) as usize, Budget::default());
    let sums = (first..first + cases).into_par_iter().map(|seed| {
        let text = litmus(seed, Shape { threads, instructions: 4, rich: seed % 2 == 0 });
        let test = tests::parse(SourceId::FIRST, &text).unwrap();
        let observables = test.observables();
        let registers =
            outcome_search::observed_registers(&observables, test.program.threads.len());
        let mut sums = [0usize; 4];
        for memory in memory::ALL {
            let machine =
                |observed: &[_]| Machine::new(test.program.clone(), memory, None, observed);
            let axioms = axiomatic::Axioms::by_name(memory.name()).unwrap();
            let by_axioms =
                axiomatic::outcomes(&test.program, axioms, &observables, &budget).unwrap();
            let by_machine =
                outcome_search::outcomes(&machine(&registers), &observables, true, &budget)
                    .unwrap();
            assert_eq!(by_axioms.set, by_machine.set, "seed {seed}, {}\n{text}", memory.name());
            sums[0] += by_machine.set.len();
            let size = Budget::new(Limits { max_states: Some(most), ..Limits::default() });
            let options = Options { threads: 1, ..Options::default() };
            let (own, _) =
                explore_lts(&ProgramModel::new(machine(&[]), None), &options, &size, &Silent)
                    .unwrap();
            if own.stop != Stop::Complete {
                sums[3] += 1;
                continue;
            }
            sums[1] += 1;
            sums[2] += compare(&test.program, memory, None, &format!("seed {seed}: {text}"));
        }
        sums
    });
    let sums = sums.reduce(|| [0; 4], |a, b| std::array::from_fn(|i| a[i] + b[i]));
    println!(
        "seeds {first} to {}: {cases} programs, {} outcomes the same by machines and axioms; {} systems of {} states bisimilar to those of \
         the specifications, {} larger ones left out",
        first + cases - 1,
        sums[0],
        sums[1],
        sums[2],
        sums[3]
    );
}

#[test]
fn programs_with_loops_are_bisimilar() {
    for name in [
        "spinlock",
        "spinlock_unsafe",
        "mutex_xchg",
        "mutex_cmpxchg",
        "naive_mutex",
        "barrier_single",
        "dekker",
        "bakery",
    ] {
        let text =
            std::fs::read_to_string(format!("{}/specs/x86/{name}.asm", env!("CARGO_MANIFEST_DIR")))
                .unwrap();
        let program = nasm::parse(SourceId::FIRST, &text, 2).unwrap().program;
        for memory in memory::ALL {
            assert!(compare(&program, memory, Some(2), name) > 10, "{name}");
        }
    }
}

/// Jumps, conditional moves and bytes by the parity: the lowest byte of 259 has two ones, that of
/// 263 three.
#[test]
fn the_parity_is_that_of_the_lowest_byte() {
    let program = |test: &str, n: u32| {
        format!(
            "begin shared_data\nx dd 0\ny dd 0\nend shared_data\nbegin unsafe_prop\neip[$t] = bad\nend unsafe_prop\nbegin thread_code\nmov eax, {n}\nadd eax, [x]\n{test}\n\
             mov dword [y], 1\ninc dword [x]\njp even\nmov dword [y], 2\neven: jmp even\nbad: nop\njmp bad\nend thread_code\n"
        )
    };
    let cases = [
        ("jp bad", 259, true),
        ("jnp bad", 259, false),
        ("jpe bad", 263, false),
        ("jpo bad", 263, true),
        ("setp bl\ncmp bl, 1\nje bad", 259, true),
    ];
    for (test, n, reached) in cases {
        let text = program(test, n);
        let program = nasm::parse(SourceId::FIRST, &text, 2)
            .unwrap_or_else(|d| panic!("{test}: {}", d))
            .program;
        for memory in [memory::SC, memory::TSO] {
            assert!(compare(&program, memory, Some(2), &text) > 5, "{test}");
        }
        let program = nasm::parse(SourceId::FIRST, &text, 1)
            .unwrap_or_else(|d| panic!("{test}: {}", d))
            .program;
        let machine = Machine::new(program.clone(), memory::SC, None, &[]);
        let (_, bad) = program.threads[0]
            .instructions
            .iter()
            .enumerate()
            .map(|(i, x)| (i, x.text.as_str()))
            .rfind(|x| x.1 == "jmp bad")
            .unwrap_or((0, ""));
        assert_eq!(bad, "jmp bad", "{text}");
        let model = ProgramModel::new(machine, None);
        let lts = system(&model);
        // The lines after `bad` are a loop without stores; those after the test write.
        let stores =
            lts.labels.iter().filter(|l| lts.table.texts[l.index()].contains("write")).count();
        assert_eq!(stores == 0, reached, "{test}: {}", labels(&lts));
    }
}

/// A chain of stores, each of the result of an operation or of its flags on random operands.
#[test]
fn arithmetic_is_that_of_the_machine() {
    use BinOp::{Add, And, Dec, Inc, Mul, Or, Sar, Shl, Shr, Sub, Xor};
    let seed = number("MU_CHECK_SEED", 1);
    let mut random = Random::new(seed);
    let mut thread = Thread::new("P0");
    thread.instructions.push(Instruction {
        text: "store".into(),
        span: Span::default(),
        first: 0,
        locked: None,
    });
    for _ in 0..1200 {
        let width = *random.choose(&[Width::W8, Width::W16, Width::W32, Width::W64]);
        let mut operand = |few: u64| -> Box<Expr> {
            let v = match random.below(4) {
                0 => random.below(few as usize + 2) as u64,
                1 => width.mask() - random.below(3) as u64,
                2 => (width.mask() >> 1) + random.below(3) as u64,
                _ => random.next_u64(),
            };
            Box::new(Expr::Const(v & width.mask()))
        };
        let (a, b, before) =
            (operand(3), operand(70), Box::new(Expr::Const(u64::from(random.below(32) as u32))));
        let op = *random.choose(&[Add, Sub, And, Or, Xor, Shl, Shr, Sar, Inc, Dec, Mul]);
        let value = match random.below(6) {
            0 | 1 => Expr::Op(op, width, a, b),
            2 => Expr::Flags(op, width, a, b, before),
            3 => Expr::Flags(op, width, a, b, before).with_parity(),
            4 => Expr::Merge(a, b, 8, *random.choose(&[Width::W8, Width::W16])),
            _ => {
                use TestKind::{
                    Below, BelowOrEqual, Equal, Less, LessOrEqual, Overflow, Parity, Sign,
                };
                let kind = *random.choose(&[
                    Equal,
                    Sign,
                    Below,
                    Overflow,
                    BelowOrEqual,
                    Less,
                    LessOrEqual,
                    Parity,
                ]);
                let test = Expr::Test(FlagTest { kind, negated: random.chance(1, 2) }, before);
                Expr::If(
                    Box::new(test),
                    Box::new(Expr::SignExtend(width, a)),
                    Box::new(Expr::Part(b, 8, Width::W8)),
                )
            }
        };
        let access =
            Access::Write { address: Expr::Const(16), width: Width::W64, value, when: None };
        thread.steps.push(Step { access, assigns: Vec::new(), next: Next::Fall, instruction: 0 });
    }
    let cell =
        Cell { name: "x".into(), address: 16, width: Width::W64, access: Width::W64, initial: 0 };
    let program = Program { cells: vec![cell], threads: vec![thread] };
    assert_eq!(compare(&program, memory::SC, None, &format!("seed {seed}")), 1201);
}

/// Names that mCRL2 or the text itself has already, and names that become alike.
#[test]
fn names_keep_out_of_the_way() {
    let text = "X86 names\n{ if=1; head=2; see=3; x_=4; }\n P0 | P1 ;\n MOV EAX,[if] | MOV [head],$1 ;\n MOV [see],$1 | MOV EBX,[x_] ;\nexists (0:EAX=1)\n";
    let program = tests::parse(SourceId::FIRST, text).unwrap().program;
    assert!(compare(&program, memory::TSO, None, text) > 10);
}

/// Each word of the text, as the name of a cell: the text still type checks.
#[test]
fn any_word_of_the_text_can_be_the_name_of_a_cell() {
    let test = |x: &str, y: &str| {
        format!(
            "X86 names\n{{ {x}=0; {y}=0; }}\n P0 | P1 ;\n MOV EAX,[{x}] | MOV [{y}],$1 ;\n \
             XCHG [{y}],EAX | INC [{x}] ;\nexists (0:EAX=1)\n"
        )
    };
    let expand = |x: &str, y: &str| {
        let program = tests::parse(SourceId::FIRST, &test(x, y)).unwrap().program;
        mcrl2(&Machine::new(program.clone(), memory::TSO, program.buffer_bound(None), &[]))
    };
    let text = expand("cell_of_the_test", "m_cell_of_the_test");
    let is_in_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: std::collections::BTreeSet<&str> = text
        .split(|c: char| !is_in_word(c))
        .filter(|w| w.starts_with(|c: char| c.is_ascii_alphabetic()))
        .collect();
    assert!(words.len() > 60, "{words:?}");
    for word in words {
        for (x, y) in [(word, "other"), ("other", word)] {
            if tests::parse(SourceId::FIRST, &test(x, y)).is_err() {
                // The name of a register.
                continue;
            }
            let text = expand(x, y);
            let tree = syntax::parse_specification(SourceId::FIRST, &text)
                .unwrap_or_else(|d| panic!("{word}: {}\n{text}", d.message));
            typecheck::check_specification(&tree)
                .unwrap_or_else(|d| panic!("{word}: {}\n{text}", d.message));
        }
    }
}
