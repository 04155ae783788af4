//! Constants of C: integers with the types of section 6.4.4.1 of the C11 standard, and characters.
//!
//! Input: a token. Output: a value, extended to 64 bits, and a type. `int` has 4 bytes, `long` and
//! `long long` have 8, `char` is signed.

use super::INT;
use crate::layout::IntegerType;
use mu_base::words::Token;
use mu_base::{Diagnostic, Stage};

const UNSIGNED: IntegerType = IntegerType::integer(4, false);
const LONG: IntegerType = IntegerType::integer(8, true);
const UNSIGNED_LONG: IntegerType = IntegerType::integer(8, false);

/// Evaluates an integer constant. Its type is the first one in its row of the table that can
/// represent the value.
pub fn integer(token: &Token<'_>) -> Result<(u64, IntegerType), Diagnostic> {
    let wrong = |message: String| Diagnostic::at(Stage::Syntax, token.span, message);
    let text = token.text;
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', b'0'..=b'9', ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    let end =
        digits.bytes().position(|b| !char::from(b).is_digit(radix.max(10))).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    let lower = suffix.to_ascii_lowercase();
    let (unsigned, long) = match lower.as_str() {
        "" => (false, false),
        "u" => (true, false),
        "l" | "ll" => (false, true),
        "ul" | "lu" | "ull" | "llu" => (true, true),
        _ => {
            return Err(wrong(format!("`{text}` is not an integer constant"))
                .note("expected digits and a suffix of `u`, `l`, `ll`"));
        }
    };
    if suffix.contains("lL") || suffix.contains("Ll") {
        return Err(wrong(format!("`{text}` is not an integer constant"))
            .note("the suffix is `ll` or `LL`"));
    }
    if digits.is_empty() || !digits.chars().all(|d| d.is_digit(radix)) {
        let kind =
            if radix == 8 { "an octal constant: it begins with 0" } else { "an integer constant" };
        return Err(wrong(format!("`{text}` is not {kind}")));
    }
    let value = u64::from_str_radix(digits, radix)
        .map_err(|_| wrong(format!("`{text}` does not fit in 64 bits")))?;
    // A decimal constant without `u` has a signed type.
    let signed_only = radix == 10 && !unsigned;
    let is_representable =
        |ty: &IntegerType| ty.convert(value) == value && (!ty.signed || value <= i64::MAX as u64);
    let row = [INT, UNSIGNED, LONG, UNSIGNED_LONG];
    let allowed = |ty: &IntegerType| {
        !(long && ty.width < 8 || unsigned && ty.signed || signed_only && !ty.signed)
    };
    let ty = row.into_iter().filter(allowed).find(is_representable).ok_or_else(|| {
        wrong(format!("`{text}` does not fit in `long`"))
            .note(format!("`{text}u` is a constant without sign"))
    })?;
    Ok((value, ty))
}

/// Evaluates a character constant, which is an `int`.
pub fn character(token: &Token<'_>) -> Result<u64, Diagnostic> {
    let wrong = |message: &str| {
        Diagnostic::at(Stage::Syntax, token.span, format!("`{}` is {message}", token.text))
    };
    let inner = token.text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).unwrap_or("");
    let value = match inner.as_bytes() {
        [one] if one.is_ascii() && *one != b'\\' => u32::from(*one),
        [b'\\', b'x', digits @ ..]
            if !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit) =>
        {
            u32::from_str_radix(&inner[2..], 16).map_err(|_| wrong("no character of 8 bits"))?
        }
        [b'\\', digits @ ..]
            if (1..=3).contains(&digits.len())
                && digits.iter().all(|d| (b'0'..=b'7').contains(d)) =>
        {
            u32::from_str_radix(&inner[1..], 8).map_err(|_| wrong("no character of 8 bits"))?
        }
        [b'\\', escape] => match escape {
            b'n' => 10,
            b't' => 9,
            b'v' => 11,
            b'b' => 8,
            b'r' => 13,
            b'f' => 12,
            b'a' => 7,
            b'\\' | b'\'' | b'"' | b'?' => u32::from(*escape),
            _ => return Err(wrong("no character constant: this escape sequence is unknown")),
        },
        _ => return Err(wrong("unsupported: a character constant has one character of ASCII")),
    };
    if value > 0xff {
        return Err(wrong("no character of 8 bits"));
    }
    Ok(IntegerType::integer(1, true).convert(u64::from(value)))
}
