//! Tests of C11: types of constants, promotions and conversions, `_Bool`, scopes, memory orders,
//! undefined behaviour.

use super::{answer, default_judge, outcomes, parse_error};
use mu_litmus::code::Arch;
use mu_program::outcome::Verdict;

/// Asserts that a function body, with the initial value -1 of `x`, makes a condition true in its
/// only outcome.
fn holds(parameter: &str, body: &str, condition: &str) {
    let text = format!("C t\n{{ x=-1; }}\nP0 ({parameter}) {{ {body} }}\nforall ({condition})\n");
    let report = answer(&text, &default_judge(Arch::C));
    assert_eq!(
        (report.answer.verdict, report.answer.outcomes.len()),
        (Verdict::Ok, 1),
        "{text}{}",
        report.answer.text()
    );
}

/// Asserts the values of expressions of type `long`.
fn values(list: &[(&str, i64)]) {
    for (e, value) in list {
        holds(
            "atomic_int* x",
            &format!("int m = atomic_load(x); long r = {e};"),
            &format!("0:r={value}"),
        );
    }
}

#[test]
fn constants_have_the_first_type_that_fits() {
    values(&[
        ("-1 < 1u", 0),
        ("m < 1U", 0),
        ("m < 1l", 1),
        ("m < 1UL", 0),
        ("m == 4294967295", 0),
        ("m == 0xffffffff", 1),
        ("m == 037777777777", 1),
        ("2147483647 + 1L", 1 << 31),
        ("4294967295 + 1", 1 << 32),
        ("0xffffffff + 1", 0),
        ("0xffffffffl + 1", 1 << 32),
        ("-2147483648", -(1 << 31)),
        ("-0x80000000", 1 << 31),
        ("0x8000000000000000 > 0 && -0x8000000000000000 > 0", 1),
        ("010 + 0X1f + 0", 39),
        ("'a' + '\\n' + '\\x7f' + '\\101' + '\\0'", 97 + 10 + 127 + 65),
        ("'\\xff'", -1),
    ]);
    for (e, message) in [
        ("08", "`08` is not an octal constant"),
        ("1lL", "`1lL` is not an integer constant"),
        ("1f", "`1f` is not an integer constant"),
        ("0x", "`0x` is not an integer constant"),
        ("0xg", "`0xg` is not an integer constant"),
        ("9223372036854775808", "does not fit in `long`"),
        ("18446744073709551616u", "does not fit in 64 bits"),
        ("'ab'", "`'ab'` is unsupported"),
        ("'\\x100'", "no character of 8 bits"),
        ("'a", "this character constant is not closed"),
    ] {
        let error =
            parse_error(&format!("C t\n{{}}\nP0 (int* x) {{ int r = {e};\n }}\nexists (x=1)\n"));
        assert!(error.message.contains(message), "{e}: {}", error.message);
    }
}

#[test]
fn operators_promote_and_convert_their_operands() {
    values(&[
        ("(unsigned)m", 0xffff_ffff),
        ("(uint16_t)m + 1", 1 << 16),
        ("(unsigned char)m", 255),
        ("(int8_t)200", -56),
        ("(signed)m", -1),
        ("1 ? m : 0u", 0xffff_ffff),
        ("m + 0u", 0xffff_ffff),
        ("~(unsigned char)1", -2),
        ("1 << 31", -(1 << 31)),
        ("1l << 31", 1 << 31),
        ("m >> 1", -1),
        ("(m + 0u) >> 28", 15),
        ("(unsigned char)m << 1", 510),
        ("1 + 2 << 3 - 1 < 4", 0),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("m / 2u", 0x7fff_ffff),
        ("7 % -4l", 3),
        ("2147483647 + 1", -(1 << 31)),
    ]);
    holds(
        "atomic_int* x",
        "unsigned char r = 250; r += 10; r <<= 3; r /= 3; --r; short s = r; s -= 70000;",
        "0:r=9 /\\ 0:s=-4455",
    );
}

#[test]
fn booleans_are_0_or_1_after_every_conversion() {
    holds(
        "atomic_int* x",
        "_Bool a = 256; bool b = 0 != 0; int c = (_Bool)0x100000000; a += 7;",
        "0:a=1 /\\ 0:a=5 /\\ 0:b=0 /\\ 0:c=1",
    );
    let text = "C t\n{ _Bool x=2; y=256; bool 0:unused=4; _Bool t[2]={7, 0}; }\n\
                P0 (atomic_bool* x, _Atomic _Bool* y, bool* z) { int r = atomic_exchange(x, 512); int s = atomic_load(y); *z = 1024; atomic_store(y, 0.0 == 1); }\n\
                forall (x=1 /\\ 0:r=1)\n";
    assert!(parse_error(text).message.contains("expected"), "no floating point");
    let report =
        answer(&text.replace("0.0 == 1", "m8").replace("m8", "2 == 1"), &default_judge(Arch::C));
    assert_eq!(outcomes(&report).into_iter().collect::<Vec<_>>(), ["0:r=1; [x]=1;"]);
    let exchange = "C t\n{ _Bool x=1; _Bool e=2; }\nP0 (atomic_bool* x, bool* e) { int r = atomic_compare_exchange_strong(x, e, 4); }\nforall (0:r=1 /\\ x=1 /\\ x=2)\n";
    assert_eq!(answer(exchange, &default_judge(Arch::C)).answer.verdict, Verdict::Ok);
    let add =
        parse_error("C t\n{}\nP0 (atomic_bool* x) { atomic_fetch_add(x, 1); }\nexists (x=1)\n");
    assert!(add.message.contains("does not apply to `atomic_bool`"));
}

#[test]
fn declarations_end_with_their_block() {
    let p = "atomic_int* x";
    holds(p, "int r = 1; { int r = 2; r++; { long r = 5; } } r += 10;", "0:r=11");
    holds(
        p,
        "int r = 1; if (r) { int r = 2; } else { int r = 3; } while (0) { int r = 4; }",
        "0:r=1",
    );
    holds(
        p,
        "int r = 9; int s = 0; for (int r = 0; r < 1; r++) s += r + 1; do { int s = 7; } while (0);",
        "0:r=9 /\\ 0:s=1",
    );
    holds(p, "if (1) { int r = 2; } else { int r = 3; }", "0:r=2");
    holds(p, "{ long r = 2; } int r = 3;", "0:r=3");
    holds(p, "if (1) int r = 2; int r = 4;", "0:r=4");
    for (body, message) in [
        ("int r = 1; int r = 2;", "`r` is declared twice in one block"),
        ("int x = 1;", "`x` is declared twice in one block"),
        ("{ int s = 1; } int r = s;", "`s` is no parameter or local variable that is visible here"),
        (
            "for (int i = 0; i < 1; i++) { } int r = i;",
            "`i` is no parameter or local variable that is visible here",
        ),
        (
            "{ int r = 1; } { long r = 2; }",
            "`r` is declared in several blocks of P0, with different types",
        ),
    ] {
        let error =
            parse_error(&format!("C t\n{{}}\nP0 (atomic_int* x) {{ {body} }}\nexists (0:r=1)\n"));
        assert!(error.message.contains(message), "{body}: {}", error.message);
    }
    let types =
        parse_error("C t\n{}\nP0 (atomic_int* x) { }\nP1 (atomic_long* x) { }\nexists (x=1)\n");
    assert!(types.message.contains("declared with another type"));
}

#[test]
fn operations_have_the_memory_orders_that_c_allows() {
    let call = |call: &str| {
        format!("C t\n{{}}\nP0 (atomic_int* x, int* e) {{ int r = {call}; }}\nexists (x=1)\n")
    };
    let orders = ["relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"];
    let check = |text: &str, order: &str, allowed: bool| match mu_litmus::parse(
        mu_base::SourceId::FIRST,
        text,
        Default::default(),
    ) {
        Ok(_) => assert!(allowed, "{text}"),
        Err(error) => {
            assert!(
                !allowed && error.message.contains("the behaviour is undefined"),
                "{text}: {}",
                error.message
            );
            let at = error.span.map(|s| &text[s.start as usize..s.end as usize]);
            assert_eq!(at, Some(format!("memory_order_{order}").as_str()));
        }
    };
    for (i, order) in orders.into_iter().enumerate() {
        let load = call(&format!("atomic_load_explicit(x, memory_order_{order})"));
        check(&load, order, !matches!(order, "release" | "acq_rel"));
        let store = call(&format!("1; atomic_store_explicit(x, 1, memory_order_{order})"));
        check(&store, order, matches!(order, "relaxed" | "release" | "seq_cst"));
        check(&call(&format!("atomic_exchange_explicit(x, 1, memory_order_{order})")), order, true);
        check(&call(&format!("1; atomic_thread_fence(memory_order_{order})")), order, true);
        for (j, failure) in orders.into_iter().enumerate() {
            let exchange = call(&format!(
                "atomic_compare_exchange_weak_explicit(x, e, 1, memory_order_{order}, memory_order_{failure})"
            ));
            // A failure order is not stronger than the success order, and has no release.
            let allowed =
                matches!(failure, "relaxed" | "consume" | "acquire" | "seq_cst") && j <= i;
            check(&exchange, failure, allowed);
        }
    }
}

#[test]
fn undefined_behaviour_leaves_the_answer_open() {
    for body in [
        "int r = 1 / (m + 1);",
        "int r = -2147483647 - 1; r %= m;",
        "int r = 1 << 32;",
        "int r = 1 << m;",
        "long r = 1; r >>= 64;",
    ] {
        let text = format!(
            "C t\n{{ x=-1; }}\nP0 (atomic_int* x) {{ int m = atomic_load(x); {body} }}\nexists (0:r=1)\n"
        );
        let report = answer(&text, &default_judge(Arch::C));
        assert_eq!(
            (report.answer.verdict, report.answer.observation()),
            (Verdict::Unknown, "Unknown"),
            "{text}"
        );
        assert!(report.dropped_paths().iter().any(|line| line.contains("undefined")), "{text}");
    }
    // Only the evaluated side counts.
    holds(
        "atomic_int* x",
        "int m = atomic_load(x); int r = m == -1 || 1 / (m + 1); int s = m + 1 ? 1 << 99 : 4;",
        "0:r=1 /\\ 0:s=4",
    );
}

#[test]
fn comments_and_shifts_are_distinguished() {
    let text = "C t\n{ (*initial*) x=6; }\n(* before *)\nP0 (int* x) { (* in *) int r = (*x) << 2 >> 1; /* two */ }\n(*last*)\nforall (*\n*) (0:r=12)\n";
    assert_eq!(answer(text, &default_judge(Arch::C)).answer.verdict, Verdict::Ok);
    let error = parse_error("C t\n{}\nP0 (int* x) { }\nexists (*x=1)\n");
    assert!(error.message.contains("this comment is not closed"));
    assert!(error.notes.iter().any(|n| n.contains("`[x]` is the location `x`")));
}

#[test]
fn differences_of_pointers_count_elements() {
    let text = |body: &str, condition: &str| {
        format!(
            "C t\n{{ int x[4]; long z[4]; }}\nP0 (int* x, long* z) {{ {body} }}\nforall ({condition})\n"
        )
    };
    for (body, condition) in [
        ("int *p = x + 3; int r = p - x; long s = x - p;", "0:r=3 /\\ 0:s=-3"),
        ("long *p = z + 2; int r = p - z; int s = p > z;", "0:r=2 /\\ 0:s=1"),
        ("int *p = x + 3; p = p - 1; int r = p - x; int s = r / 2;", "0:r=2 /\\ 0:s=1"),
    ] {
        let report = answer(&text(body, condition), &default_judge(Arch::C));
        assert_eq!(report.answer.verdict, Verdict::Ok, "{body}");
    }
}

/// Values of 128 bits are accessed at once, and rejected where 64 bits may not represent them.
#[test]
fn values_of_128_bits() {
    for (declaration, body) in [
        ("__int128 x", "*x = 1; __int128 r = *x;"),
        ("unsigned __int128 x = 3", "__uint128_t r = *x; unsigned d = r == 3; *x = d; r = *x;"),
        ("_Atomic __int128 x", "atomic_store(x, 1); __int128_t r = atomic_load(x);"),
        ("__int128_t x = 5", "__int128 r = *x & 3; *x = r | 1;"),
    ] {
        let parameter = declaration.split(" x").next().unwrap_or_default();
        let text = format!(
            "C t\n{{ {declaration}; }}\nP0 ({parameter}* x) {{ {body} }}\nforall (0:r=1 /\\ x=1)\n"
        );
        let report = answer(&text, &default_judge(Arch::C));
        assert_eq!(report.answer.verdict, Verdict::Ok, "{text}{}", report.answer.text());
    }
    // One access: no reader sees a half.
    let report = answer(
        "C whole\n{ _Atomic __int128 x = 1; }\nP0 (_Atomic __int128* x) { atomic_store(x, 2); }\n\
         P1 (_Atomic __int128* x) { __int128 r = atomic_load(x); }\nlocations [1:r;] exists (1:r=2)\n",
        &default_judge(Arch::C),
    );
    assert_eq!(report.answer.outcomes.len(), 2, "{}", report.answer.text());
    for (parameter, body) in [
        ("__int128* x", "*x = *x + 1;"),
        ("__int128* x", "unsigned long r = 1; *x = r;"),
        ("__uint128_t* x", "int r = 1; *x = r;"),
        ("__int128* x", "__int128 r = -*x;"),
        ("__int128* x", "__int128 r = *x << 1;"),
        ("__int128* x", "if (*x / 2 == 1) { int r = 1; }"),
        ("_Atomic __int128* x", "atomic_fetch_add(x, 1);"),
    ] {
        let text = format!("C t\n{{ }}\nP0 ({parameter}) {{ {body} }}\nforall (true)\n");
        let error = parse_error(&text);
        assert!(error.message.contains("128-bit"), "{text}{error:?}");
    }
    let error = parse_error("C t\n{ __int128 x = -1; }\nP0 (__int128* x) { }\nforall (true)\n");
    assert!(error.message.contains("128 bits"), "{error:?}");
}

#[test]
fn regions_of_variables_are_skipped() {
    let text = "C t\n{ }\nP0 (int* x) { int r = 1; }\nregions: x:R, y:S\nforall (0:r=1)\n";
    assert_eq!(answer(text, &default_judge(Arch::C)).answer.verdict, Verdict::Ok);
}

#[test]
fn sums_unless_a_value_are_those_of_the_kernel() {
    for (initial, condition) in [(4, "0:r=0 /\\ x=4"), (3, "0:r=1 /\\ x=5")] {
        let text = format!(
            "C t\n{{ atomic_t x = ATOMIC_INIT({initial}); }}\n\
             P0 (atomic_int* x) {{ int r = __atomic_add_unless{{mb}}(x, 2, 4); }}\nforall ({condition})\n"
        );
        let report = answer(&text, &default_judge(Arch::C));
        assert_eq!(report.answer.verdict, Verdict::Ok, "{text}{}", report.answer.text());
    }
    let error = parse_error(
        "C t\n{ }\nP0 (int* x) { int r = __atomic_add_unless{wmb}(x, 1, 0); }\nforall (true)\n",
    );
    assert!(error.message.contains("`wmb`"), "{error:?}");
}
