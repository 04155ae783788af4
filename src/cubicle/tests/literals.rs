//! Tests of numbers in terms of words: a number that no word of the width represents is rejected
//! with its place; each admitted number compares as the reader expects, for all words of 3 bits.

use mu_base::{Diagnostic, SourceMap};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::{System, check, parse};

fn read(text: &str) -> (Result<System, Diagnostic>, SourceMap) {
    let mut sources = SourceMap::new();
    let source = sources.add("x.cub", text.to_string());
    (parse(source, text).and_then(|tree| check(&tree)), sources)
}

const HEAD: &str = "var X : word8
array Y[proc] : word3
predicate below (n) { X < n }
predicate same (a, b) { a = b }
init () { X = 0 }
";

#[test]
fn numbers_outside_a_word_are_rejected_with_their_places() {
    // The text after the head, the column of the fault in line 6, and parts of the message.
    let word8 = "`word8`, expected a number from -128 to 255";
    let faults = [
        ("unsafe () { X < 256 }", 17, word8),
        ("unsafe () { X <= 300 }", 18, word8),
        ("unsafe () { 300 <> X }", 13, word8),
        ("unsafe () { X = 18446744073709551616 }", 17, word8),
        ("unsafe () { X + 256 > 0 }", 17, word8),
        ("unsafe () { X > -129 }", 18, word8),
        ("unsafe () { X = 128 + 128 }", 17, "the number 256 does not fit in `word8`"),
        ("unsafe () { X = 2 * 128 }", 17, "the number 256 does not fit"),
        ("unsafe () { 300 * X = 0 }", 13, word8),
        (
            "unsafe () { signed(X) < 200 }",
            25,
            "a signed word of 8 bits, expected a number from -128 to 127",
        ),
        ("unsafe () { 128 > signed(X) }", 13, "a signed word of 8 bits"),
        ("unsafe () { signed(X) > -200 }", 26, word8),
        (
            "unsafe () { mask(X, 256) <> 0 }",
            18,
            "a mask of `word8`, expected a number from 0 to 255",
        ),
        ("unsafe () { mask(X, 6) = 1 }", 26, "has bits that the mask 6 has not"),
        ("unsafe () { 8 > mask(X, 7) }", 13, "has bits that the mask 7 has not"),
        ("unsafe () { mask(X, 7) = -1 }", 27, "has bits that the mask 7 has not"),
        ("unsafe (p) { mask(Y[p], 7) < 9 }", 30, "`word3`, expected a number from -4 to 7"),
        ("unsafe () { not (X < 256) }", 22, word8),
        ("transition t () { X := 256 }", 24, word8),
        ("transition t () { X := X - 256 }", 28, word8),
        ("transition t (p) { Y[q] := case | X = 1 : 8 | _ : 0 }", 43, "`word3`"),
        ("transition t () requires { X < 65536 } { }", 32, word8),
        ("transition t () requires { same(X + 256, X) } { }", 37, word8),
    ];
    let mut wrong = Vec::new();
    for (text, column, message) in faults {
        let (system, sources) = read(&format!("{HEAD}{text}"));
        let fault = system.map(|_| ()).expect_err(text);
        let at = fault.span.map(|s| sources.line_column(s));
        if !fault.message.contains(message) || at != Some((6, column)) {
            wrong.push(format!("{text}\n{at:?} {}, expected {column} {message}", fault.message));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    // The place is in the predicate, and the use is related to it.
    let (system, sources) = read(&format!("{HEAD}unsafe () {{ below(256) }}"));
    let fault = system.map(|_| ()).expect_err("an argument");
    assert!(fault.message.contains(word8), "{}", fault.message);
    assert_eq!(fault.span.map(|s| sources.line_column(s)), Some((3, 27)));
}

#[test]
fn admitted_numbers_are_the_numbers_that_are_written() {
    // All numbers that `word3` admits in each form, with the value of the form of a word.
    type Value = fn(i64) -> i64;
    let plain: Value = |x| x;
    let signed: Value = |x| if x < 4 { x } else { x - 8 };
    let low: Value = |x| x & 3;
    let middle: Value = |x| x & 6;
    let all = ["=", "<>", "<", "<=", ">", ">="];
    let forms: [(&str, Value, Vec<i64>, &[&str]); 4] = [
        ("X", plain, (0..8).collect(), &all),
        ("signed(X)", signed, (-4..4).collect(), &all),
        ("mask(X, 3)", low, (0..4).collect(), &all),
        ("mask(X, 6)", middle, vec![0, 2, 4, 6], &all[..2]),
    ];
    let mut compared = 0;
    for (form, value, numbers, signs) in forms {
        for (number, sign) in numbers.iter().flat_map(|n| signs.iter().map(move |s| (*n, *s))) {
            let text =
                format!("var X : word3 init () {{ X = X }} unsafe () {{ {form} {sign} {number} }}");
            let system = read(&text).0.unwrap_or_else(|d| panic!("{text}: {d}"));
            for x in 0..8i64 {
                let v = value(x);
                let expected = match sign {
                    "=" => v == number,
                    "<>" => v != number,
                    "<" => v < number,
                    "<=" => v <= number,
                    ">" => v > number,
                    _ => v >= number,
                };
                let given = vec![("X".to_string(), x.to_string())];
                let setup = Setup { given, ..Setup::default() };
                let machine = Machine::new(&system, 1, Memory::Sc, setup).expect("a machine");
                let reach = machine.reach(10, true, &mu_base::Budget::default()).expect("a state");
                assert_eq!(reach.violation.is_some(), expected, "{text}, X = {x}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 8 * (6 * (8 + 8 + 4) + 2 * 4));
}

#[test]
fn an_initial_value_outside_a_word_is_rejected() {
    let (system, _) = read(HEAD);
    let system = system.expect("the head");
    for (value, admitted) in [("255", true), ("-128", true), ("256", false), ("-129", false)] {
        let given = vec![("X".to_string(), value.to_string())];
        let setup = Setup { given, ..Setup::default() };
        let machine = Machine::new(&system, 1, Memory::Sc, setup).expect("a machine");
        match machine.initial_states() {
            Ok(_) => assert!(admitted, "{value}"),
            Err(d) => {
                assert!(!admitted, "{value}: {d}");
                assert!(d.message.contains("expected a number from -128 to 255"), "{d}");
            }
        }
    }
}
