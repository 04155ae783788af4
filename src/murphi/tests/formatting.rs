//! The formatter: layout, idempotence, and unchanged tokens.

use mu_base::SourceMap;
use mu_murphi::format::{format, is_same};
use mu_murphi::{Settings, parse, read};

/// A model with every construct, badly laid out.
const MODEL: &str = include_str!("models/constructs.m");

#[test]
fn formats_every_construct() {
    let formatted = format(MODEL);
    let expected = include_str!("models/constructs.formatted.m");
    assert_eq!(formatted, expected, "found:\n{formatted}");
    assert!(is_same(MODEL, &formatted));
    assert_eq!(format(&formatted), formatted, "a second run changes the text");
    let mut sources = SourceMap::new();
    for text in [MODEL, &formatted] {
        let source = sources.add("constructs.m", text);
        if let Err(error) = read(source, text, &Settings::default()) {
            panic!("{}", error.render(&sources));
        }
    }
}

#[test]
fn comments_and_texts_stay() {
    let text = "/* a\n   b */ const N : 3 ;-- three\n\n\n\n\nvar x:0..N;   -- x\nrule \"r\" begin x:=N ;end";
    let formatted = format(text);
    assert_eq!(
        formatted,
        "/* a\n   b */ const N: 3;  -- three\n\n\nvar x: 0..N;  -- x\nrule \"r\" begin x := N; end\n"
    );
    let source = SourceMap::new().add("x.m", text);
    assert!(parse(source, &formatted).is_ok());
    assert!(!is_same(text, &formatted.replace("three", "four")));
}

#[test]
fn operators_with_one_operand() {
    let text = "rule -x<- 1&!  ( y)|a [- 1]=~ b ==> begin x:=c?- 1:f (x)- 1 end";
    let expected = "rule -x < -1 & !(y) | a[-1] = ~b ==> begin x := c ? -1 : f(x) - 1 end\n";
    assert_eq!(format(text), expected);
}

#[test]
fn two_minus_signs_are_no_comment() {
    let text = "rule x>= - -1&3 -  -1=4&~ - - y=0 ==> begin x:= - - 1; end";
    let expected = "rule x >= - -1 & 3 - -1 = 4 & ~- -y = 0 ==> begin x := - -1; end\n";
    assert_eq!(format(text), expected);
    assert_eq!(format(expected), expected);
    assert!(is_same(text, expected));
}
