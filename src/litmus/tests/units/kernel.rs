//! Tests of the Linux kernel: each primitive with answers from the definition of the model, and
//! folders of tests with answers.

use mu_base::{Budget, Diagnostic, Limits, SourceId, SourceMap};
use mu_litmus::file::{ParserOptions, parse};
use mu_litmus::judge::Judge;
use mu_litmus::kernel::KernelLanguage;
use mu_litmus::paths::PathBounds;
use mu_litmus::report::{TestReport, run};
use std::path::Path;
use std::time::{Duration, Instant};

/// Compiles a model with its language. `read` returns the text of a file.
fn kernel(stem: &str, read: &dyn Fn(&str) -> Option<String>) -> (KernelLanguage, Judge) {
    let file = |extension: &str| {
        let name = format!("{stem}.{extension}");
        let text = read(&name).unwrap_or_else(|| panic!("{name}"));
        (name, text)
    };
    let (bell, def, cat) = (file("bell"), file("def"), file("cat"));
    let mut sources = SourceMap::new();
    let made = KernelLanguage::parse(&mut sources, (&bell.0, &bell.1), (&def.0, &def.1), None)
        .and_then(|language| {
            let judge = Judge::of_kernel(&mut sources, &language, &cat.0, &cat.1, &read)?;
            Ok((language, judge))
        });
    made.unwrap_or_else(|d| panic!("{}", d.render(&sources)))
}

/// Returns the model of this repository.
fn lkmm() -> (KernelLanguage, Judge) {
    kernel("lkmm", &mu_axioms::models::file)
}

fn answer(
    text: &str,
    (language, judge): &(KernelLanguage, Judge),
) -> Result<TestReport, Diagnostic> {
    let test =
        parse(SourceId::FIRST, text, ParserOptions { pairs: false, kernel: Some(language) })?;
    run(test, judge, PathBounds { loops: 2 }, &Budget::default())
}

/// Compares a folder of tests with its answers.
///
/// `MU_KERNEL=…/LKMM MU_MODEL=cat/linux-kernel cargo test --release -p mu-check-litmus --
/// --ignored --nocapture folder_of_kernel_tests`; `MU_MODEL=lkmm` for the model of this repository;
/// `MU_ONLY` selects tests by a part of their names.
#[test]
#[ignore = "a folder of tests elsewhere"]
fn folder_of_kernel_tests() {
    let folder = std::env::var("MU_KERNEL").expect("MU_KERNEL");
    let folder = Path::new(&folder);
    let model = std::env::var("MU_MODEL").unwrap_or_else(|_| "lkmm".to_string());
    let only = std::env::var("MU_ONLY").unwrap_or_default();
    let limit = std::env::var("MU_SECONDS").ok().and_then(|s| s.parse().ok()).unwrap_or(20.0);
    let (place, stem) = model.rsplit_once('/').unwrap_or(("", &model));
    let made = if model == "lkmm" {
        lkmm()
    } else {
        kernel(stem, &|name| std::fs::read_to_string(folder.join(place).join(name)).ok())
    };
    let expected = std::fs::read_to_string(folder.join("expected.tsv")).expect("expected.tsv");
    let (mut right, mut wrong, mut refused, mut open) = (0, 0, 0, 0);
    let start = Instant::now();
    for line in expected.lines().skip(1).filter(|l| l.contains(&only)) {
        let columns: Vec<&str> = line.split('\t').collect();
        let (file, answers) = (columns[0], &columns[2..]);
        let text = std::fs::read_to_string(folder.join(file)).expect(file);
        let begin = Instant::now();
        let options = ParserOptions { pairs: false, kernel: Some(&made.0) };
        let limits = Limits { timeout: Some(Duration::from_secs_f64(limit)), ..Limits::default() };
        let budget = Budget::new(limits);
        let report = parse(SourceId::FIRST, &text, options)
            .and_then(|test| run(test, &made.1, PathBounds { loops: 2 }, &budget));
        let seconds = begin.elapsed().as_secs_f64();
        let report = match report {
            Ok(report) => report,
            Err(d) => {
                refused += 1;
                let at = d.span.map(|s| &text[s.start as usize..s.end as usize]);
                println!("REFUSED {file} {seconds:.2} {} {at:?}", d.message);
                continue;
            }
        };
        let a = &report.answer;
        let mut flags = a.flags.clone();
        flags.sort();
        let mut wanted: Vec<&str> = answers[4].split(';').filter(|f| *f != "-").collect();
        wanted.sort_unstable();
        let states = a.outcomes.len().to_string();
        let found = [a.word(), a.observation(), states.as_str()];
        let differs = (0..3).any(|i| answers[i] != "-" && answers[i] != found[i])
            || answers[1] != "-" && flags != wanted;
        let more = format!("{} executions {seconds:.2} s", report.executions);
        if a.word() == "Unknown" || a.observation() == "Unknown" {
            open += 1;
            println!("OPEN {file} {found:?} {flags:?} {:?} {more}", report.dropped_paths());
        } else if differs {
            wrong += 1;
            println!("WRONG {file} {found:?} {flags:?} expected {answers:?} {more}");
        } else {
            right += 1;
            if seconds > 1.0 {
                println!("slow {file} {more}");
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    println!("right {right} wrong {wrong} refused {refused} open {open} in {seconds:.1} s");
}

/// Answers of a test in a line: observation, number of outcomes, flags.
fn line(text: &str, made: &(KernelLanguage, Judge)) -> String {
    let report = answer(text, made).unwrap_or_else(|d| panic!("{d:?}\n{text}"));
    let a = &report.answer;
    let flags: String = a.flags.iter().map(|f| format!(" {f}")).collect();
    format!("{} {}{flags}", a.observation(), a.outcomes.len())
}

/// Builds a test of functions with the parameters `int *x, int *y, spinlock_t *s, spinlock_t *t`.
fn test(bodies: &[&str], question: &str) -> String {
    let mut text = "C test\n{}\n".to_string();
    for (i, body) in bodies.iter().enumerate() {
        text += &format!("P{i}(int *x, int *y, spinlock_t *s, spinlock_t *t) {{ {body} }}\n");
    }
    text + question
}

/// Message passing: the writer and the reader with fences between their accesses.
fn passing(writer: &str, reader: &str) -> String {
    test(
        &[
            &format!("WRITE_ONCE(*x, 1); {writer} WRITE_ONCE(*y, 1);"),
            &format!("int a; int b; a = READ_ONCE(*y); {reader} b = READ_ONCE(*x);"),
        ],
        "exists (1:a=1 /\\ 1:b=0)",
    )
}

/// Store buffering with an operation between the accesses of both threads.
fn buffering(between: &str) -> String {
    test(
        &[
            &format!("int a; int c; WRITE_ONCE(*x, 1); {between} a = READ_ONCE(*y);"),
            &format!("int a; int c; WRITE_ONCE(*y, 1); {between} a = READ_ONCE(*x);"),
        ],
        "exists (0:a=0 /\\ 1:a=0)",
    )
}

#[test]
fn fences_order_what_their_names_say() {
    let made = lkmm();
    for (writer, reader, expected) in [
        ("", "", "Sometimes 4"),
        ("smp_wmb();", "", "Sometimes 4"),
        ("smp_wmb();", "smp_rmb();", "Never 3"),
        ("smp_rmb();", "smp_wmb();", "Sometimes 4"),
        ("barrier();", "barrier();", "Sometimes 4"),
        ("smp_mb();", "smp_mb();", "Never 3"),
        ("synchronize_rcu();", "smp_rmb();", "Never 3"),
        ("synchronize_rcu_expedited();", "smp_rmb();", "Never 3"),
        ("smp_mb__before_atomic();", "smp_rmb();", "Sometimes 4"),
    ] {
        assert_eq!(line(&passing(writer, reader), &made), expected, "{writer} {reader}");
    }
    for (between, expected) in [
        ("", "Sometimes 4"),
        ("smp_wmb(); smp_rmb();", "Sometimes 4"),
        ("smp_mb();", "Never 3"),
        ("synchronize_rcu();", "Never 3"),
    ] {
        assert_eq!(line(&buffering(between), &made), expected, "{between}");
    }
}

#[test]
fn read_modify_writes_have_the_order_of_their_names() {
    let made = lkmm();
    let z = |operation: &str| buffering(&operation.replace("T", "s"));
    for (operation, expected) in [
        ("c = xchg(T, 1);", "Never 3"),
        ("c = xchg_relaxed(T, 1);", "Sometimes 4"),
        ("c = xchg_acquire(T, 1);", "Sometimes 4"),
        ("c = xchg_release(T, 1);", "Sometimes 4"),
        ("c = cmpxchg(T, 7, 1);", "Sometimes 4"),
        ("c = atomic_add_return(1, T);", "Never 3"),
        ("c = atomic_fetch_sub(1, T);", "Never 3"),
        ("c = atomic_inc_return_relaxed(T);", "Sometimes 4"),
        ("c = atomic_dec_and_test(T);", "Never 3"),
        ("atomic_inc(T);", "Sometimes 4"),
        ("smp_mb__before_atomic(); atomic_inc(T);", "Never 3"),
        ("atomic_add(2, T); smp_mb__after_atomic();", "Never 3"),
        ("c = atomic_add_unless(T, 1, 5);", "Never 3"),
        ("c = atomic_add_unless(T, 1, 0);", "Sometimes 4"),
    ] {
        assert_eq!(line(&z(operation), &made), expected, "{operation}");
    }
    let counters = test(
        &[
            "int a; a = atomic_fetch_add_relaxed(2, x);",
            "int a; a = atomic_fetch_add_relaxed(2, x);",
        ],
        "locations [0:a; 1:a]\nforall (x=4)",
    );
    assert_eq!(line(&counters, &made), "Always 2");
    for (operation, value) in [
        ("atomic_set(x, 6); atomic_and(3, x);", 2),
        ("atomic_set(x, 6); atomic_or(3, x);", 7),
        ("atomic_set(x, 6); atomic_xor(3, x);", 5),
        ("atomic_set(x, 6); atomic_andnot(2, x);", 4),
        ("atomic_set(x, 6); atomic_sub(8, x);", -2),
        ("int r; atomic_set(x, 6); r = atomic_add_negative(-8, x); WRITE_ONCE(*x, r);", 1),
        ("int r; r = atomic_cmpxchg(x, 0, 5); r = atomic_cmpxchg(x, 0, 6);", 5),
    ] {
        let text = test(&[operation], &format!("forall (x={value})"));
        assert_eq!(line(&text, &made), "Always 1", "{operation}");
    }
}

#[test]
fn dependencies_are_those_of_the_branches() {
    let made = lkmm();
    // Load buffering: dependencies of the stores.
    for (first, expected) in [
        ("a = READ_ONCE(*x); WRITE_ONCE(*y, 1);", "Sometimes 4"),
        ("a = READ_ONCE(*x); WRITE_ONCE(*y, 1 + (a & 0));", "Never 3"),
        ("a = READ_ONCE(*x); if (a) { WRITE_ONCE(*y, 1); } else { WRITE_ONCE(*y, 1); }", "Never 3"),
        // The store comes after the branches.
        ("a = READ_ONCE(*x); if (a) { smp_rmb(); } WRITE_ONCE(*y, 1);", "Sometimes 4"),
        ("int b = 1; a = READ_ONCE(*x); if (a) b = 1; if (b) WRITE_ONCE(*y, 1);", "Never 3"),
        ("a = smp_load_acquire(x); WRITE_ONCE(*y, 1);", "Never 3"),
        ("a = READ_ONCE(*x); smp_store_release(y, 1);", "Never 3"),
        ("int *p; a = READ_ONCE(*x); p = y + (a & 0); WRITE_ONCE(*p, 1);", "Never 3"),
        (
            "int b = 0; a = READ_ONCE(*x); while (b < 1) { b = b + 1; } WRITE_ONCE(*y, b);",
            "Sometimes 4",
        ),
    ] {
        let text = test(
            &[&format!("int a; {first}"), "int a; a = smp_load_acquire(y); WRITE_ONCE(*x, 1);"],
            "exists (0:a=1 /\\ 1:a=1)",
        );
        assert_eq!(line(&text, &made), expected, "{first}");
    }
}

#[test]
fn locks_exclude_and_order() {
    let made = lkmm();
    let critical = "spin_lock(s); WRITE_ONCE(*x, 1); WRITE_ONCE(*x, 0); spin_unlock(s);";
    let inside = test(
        &[critical, "int a; spin_lock(s); a = READ_ONCE(*x); spin_unlock(s);"],
        "exists (1:a=1)",
    );
    assert_eq!(line(&inside, &made), "Never 1");
    let tried = test(
        &[
            "int r; r = spin_trylock(s); if (r == 1) { WRITE_ONCE(*x, 1); spin_unlock(s); }",
            "int r; r = spin_trylock(s); if (r == 1) { WRITE_ONCE(*y, 1); spin_unlock(s); }",
        ],
        "exists (0:r=0 /\\ 1:r=0)",
    );
    assert_eq!(line(&tried, &made), "Never 3");
    let tested =
        test(&["spin_lock(s); spin_unlock(s);", "int r; r = spin_is_locked(s);"], "exists (1:r=1)");
    assert_eq!(line(&tested, &made), "Sometimes 2");
    // A lock that is taken twice by one thread never ends.
    let nested = test(&["spin_lock(s); spin_lock(s); WRITE_ONCE(*x, 1);"], "exists (x=1)");
    assert_eq!(line(&nested, &made), "Never 0");
    let unpaired = test(&["spin_unlock(s);"], "exists (x=0)");
    assert_eq!(line(&unpaired, &made), "Always 1 unmatched-unlock");
    let named = test(&[critical], "exists (s=0)");
    assert_eq!(line(&named, &made), "Always 1 lock-final");
    // The threads hand one lock over, which orders them; two locks alone are no full barriers.
    assert_eq!(line(&buffering("spin_lock(s); spin_unlock(s);"), &made), "Never 3");
    let apart = |fence: &str| {
        let thread = |lock, write, read| {
            format!(
                "int a; WRITE_ONCE(*{write}, 1); spin_lock({lock}); {fence} spin_unlock({lock}); a = READ_ONCE(*{read});"
            )
        };
        let bodies = [thread("s", "x", "y"), thread("t", "y", "x")];
        test(&bodies.each_ref().map(String::as_str), "exists (0:a=0 /\\ 1:a=0)")
    };
    for (fence, expected) in [
        ("", "Sometimes 4"),
        ("smp_mb__after_spinlock();", "Never 3"),
        ("smp_mb__after_unlock_lock();", "Sometimes 4"),
    ] {
        assert_eq!(line(&apart(fence), &made), expected, "{fence}");
    }
    // After an unlock and another lock, the fence is full.
    let again = "spin_lock(s); spin_unlock(s); spin_lock(t); FENCE spin_unlock(t);";
    for (fence, expected) in [("", "Never 3"), ("smp_mb__after_unlock_lock();", "Never 3")] {
        assert_eq!(line(&buffering(&again.replace("FENCE", fence)), &made), expected, "{fence}");
    }
}

#[test]
fn grace_periods_wait_for_sections() {
    let made = lkmm();
    let updater = |wait: &str| format!("WRITE_ONCE(*x, 1); {wait} WRITE_ONCE(*y, 1);");
    let reader = |enter: &str, leave: &str| {
        format!("int i; int a; int b; {enter} a = READ_ONCE(*x); b = READ_ONCE(*y); {leave}")
    };
    let question = "exists (1:a=0 /\\ 1:b=1)";
    for (wait, enter, leave, expected) in [
        ("", "", "", "Sometimes 4"),
        ("synchronize_rcu();", "", "", "Sometimes 4"),
        ("synchronize_rcu();", "rcu_read_lock();", "rcu_read_unlock();", "Never 3"),
        ("synchronize_rcu_expedited();", "rcu_read_lock();", "rcu_read_unlock();", "Never 3"),
        ("synchronize_srcu(s);", "i = srcu_read_lock(s);", "srcu_read_unlock(s, i);", "Never 3"),
        ("synchronize_rcu();", "i = srcu_read_lock(s);", "srcu_read_unlock(s, i);", "Sometimes 4"),
        ("synchronize_rcu();", "rcu_read_lock();", "", "Sometimes 4 unmatched-rcu-lock"),
        (
            "synchronize_rcu();",
            "rcu_read_lock(); rcu_read_lock();",
            "rcu_read_unlock(); rcu_read_unlock();",
            "Never 3",
        ),
        ("synchronize_srcu(s);", "i = srcu_read_lock(s);", "", "Sometimes 4 unmatched-srcu-lock"),
    ] {
        let text = test(&[&updater(wait), &reader(enter, leave)], question);
        assert_eq!(line(&text, &made), expected, "{wait} {enter}");
    }
}

#[test]
fn plain_accesses_race() {
    let made = lkmm();
    for (bodies, expected) in [
        (["*x = 1;", "int a; a = READ_ONCE(*x);"], "Sometimes 2 data-race"),
        (["WRITE_ONCE(*x, 1);", "int a; a = READ_ONCE(*x);"], "Sometimes 2"),
        (
            [
                "*x = 1; smp_store_release(y, 1);",
                "int a; int b; b = smp_load_acquire(y); if (b) a = *x;",
            ],
            "Sometimes 2",
        ),
        (
            ["*x = 1; WRITE_ONCE(*y, 1);", "int a; int b; b = READ_ONCE(*y); if (b) a = *x;"],
            "Sometimes 2 data-race",
        ),
        (
            [
                "spin_lock(s); *x = 1; spin_unlock(s);",
                "int a; spin_lock(s); a = *x; spin_unlock(s);",
            ],
            "Sometimes 2",
        ),
    ] {
        let text = test(&bodies, "exists (1:a=1)");
        assert_eq!(line(&text, &made), expected, "{bodies:?}");
    }
    // The filter drops executions with their flags.
    let text = test(&["*x = 1;", "int a; a = READ_ONCE(*x);"], "filter (1:a=2)\nexists (1:a=1)");
    assert_eq!(line(&text, &made), "Never 0");
    // Values out of thin air: the model allows any value.
    let text = test(&["int a; a = *x; *y = a;", "int a; a = *y; *x = a;"], "exists (~0:a=0)");
    assert_eq!(line(&text, &made), "Sometimes 2 data-race");
}

#[test]
fn initial_states_and_pointers() {
    let made = lkmm();
    let text = "C pointers\n{ int u = 1; int v = 2; int *p = &u; atomic_t c = ATOMIC_INIT(3); 0:k = 4; }\n\
        P0(int **p, int *v) { int **q; rcu_assign_pointer(*p, v); }\n\
        P1(int **p, atomic_t *c) { int *r; int a; int b; r = rcu_dereference(*p); a = READ_ONCE(*r); b = atomic_read(c); }\n\
        locations [1:r; 1:b; p; 0:k]\nexists (1:r=v /\\ 1:a=2 /\\ 1:b=3 /\\ p=v)";
    assert_eq!(line(text, &made), "Sometimes 2");
}

#[test]
fn what_the_language_lacks_is_rejected() {
    let made = lkmm();
    for (body, at, message) in [
        ("int a; a = READ_ONCE(x);", "x", "the argument of a load is no place"),
        ("int a; a = unknown(x);", "unknown(x)", "unknown function `unknown`"),
        ("xchg(x, 1);", "xchg(x, 1);", "the value of `xchg` is not used"),
        ("int a; a = smp_mb();", "smp_mb()", "`smp_mb` has no value"),
        ("int a; a = !a;", "!", "the operator `!` is not supported here"),
        ("for (;;) smp_mb();", "for", "the statement `for` is not supported"),
        ("WRITE_ONCE(*z, 1);", "z", "`z` is no parameter or local variable of P0"),
        ("unsigned a; a = 1;", "unsigned", "the type `unsigned` is not supported"),
        ("WRITE_ONCE(*x);", "WRITE_ONCE(*x);", "`WRITE_ONCE` has 2 arguments, not 1"),
        ("", "}", "a block without statements"),
        ("int a; if (a == 1 == 1) smp_mb();", "==", "comparisons in a row: expected parentheses"),
    ] {
        let text = test(&[body], "exists (x=0)");
        let e = answer(&text, &made).expect_err(body);
        let span = e.span.unwrap_or_else(|| panic!("{body}"));
        let place = &text[span.start as usize..span.end as usize];
        assert_eq!((place, e.message.as_str()), (at, message), "{body}");
    }
}

#[test]
fn macro_and_bell_files_are_checked() {
    let parse = |bell: &str, def: &str| {
        let mut sources = SourceMap::new();
        KernelLanguage::parse(&mut sources, ("a.bell", bell), ("a.def", def), None)
            .map_err(|d| d.render(&sources).lines().next().unwrap_or("").to_string())
    };
    let bell = "enum E = 'a || 'b-c\ninstructions R[E]\ninstructions F[{'a}]";
    let language = parse(bell, "f(X) __load{a}(*X)\ng() { __fence{b-c}; }").unwrap();
    assert_eq!(language.bell.annotations, ["a", "b-c"]);
    assert_eq!(language.sets()[1], ["B-c"]);
    assert!(language.bell.allows("F", "a") && !language.bell.allows("F", "b-c"));
    assert_eq!(language.macros.names(), ["f", "g"]);
    for (bell, def, error) in [
        ("enum E = a", "", "a.bell:1:10: error: unexpected `a`: expected a tag such as `'acquire`"),
        (
            "instructions R[E]",
            "",
            "a.bell:1:16: error: expected an enumeration of this file or a set of annotations",
        ),
        (bell, "f(X) __load{a}", "a.def:1:15: error: expected `(`, found the end of the text"),
        (bell, "f(X { }", "a.def:1:5: error: expected `,`, found `{`"),
    ] {
        assert_eq!(parse(bell, def).map(|_| ()).unwrap_err(), error);
    }
    // A macro that calls itself.
    let (bell, def) = ("enum E = 'a", "f(X) f(X)");
    let mut sources = SourceMap::new();
    let language = KernelLanguage::parse(&mut sources, ("b", bell), ("d", def), None).unwrap();
    let judge =
        Judge::of_kernel(&mut sources, &language, "m", "acyclic po", &mu_axioms::models::file)
            .unwrap();
    let e = answer(&test(&["int r; r = f(x);"], "exists (x=0)"), &(language, judge)).unwrap_err();
    assert_eq!(e.message, "the macro `f` calls itself");
}

/// Loads of one expression have no order, whatever their number.
#[test]
fn three_operands_of_the_kernel_have_no_order() {
    for (body, verdict) in [
        ("int r = READ_ONCE(*z) + smp_load_acquire(y) * 2 + READ_ONCE(*x);", "Ok"),
        ("int r = smp_load_acquire(y) * 2 + READ_ONCE(*x);", "Ok"),
        ("int r = smp_load_acquire(y) * 2; r = r + READ_ONCE(*x);", "No"),
    ] {
        let text = format!(
            "C t\n{{}}\nP0 (int *x, int *y) {{ WRITE_ONCE(*x, 1); smp_store_release(y, 1); }}\n\
             P1 (int *x, int *y, int *z) {{ {body} }}\nexists (1:r=2)\n"
        );
        let report = answer(&text, &lkmm()).unwrap_or_else(|d| panic!("{d:?}"));
        assert_eq!(report.answer.verdict.word(), verdict, "{body}");
    }
}
