//! Parameters that count the constants of a sort.
//!
//! In: a specification with parameters; its plain text for a value of one of them and for the next. Out: the names of parameters that occur only as the bound
//! of `$for i in 0 .. n { … }` with bodies of text and `${i}`, so that the texts for two values differ in the number of copies alone ([`counting`]); the
//! constants that are copied, if the two differ in one more constant of one structured sort and in nothing else ([`constants`]).
//! Words are looked for, not parsed: a parameter whose name occurs elsewhere, even as the name of something else, is not found. Cost: linear in the text, for
//! each parameter.

use mu_syntax::ast::{Section, SortKind, Specification, StructConstructor};

/// The parameters of a text that are such, in order.
pub fn counting(text: &str) -> Vec<String> {
    let plain: String = text.lines().map(|l| format!("{}\n", l.split('%').next().unwrap_or_default())).collect();
    let declared = plain.split("$param").skip(1).filter_map(|d| d.split(':').next()).map(|n| n.trim().to_string());
    declared.filter(|n| !n.is_empty() && only_bounds(&plain, n)).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// Whether a word stands in its declaration, and else only as the bound of a plain loop.
fn only_bounds(text: &str, name: &str) -> bool {
    let (mut declarations, mut bounds) = (0, 0);
    for (at, _) in text.match_indices(name) {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        if before.ends_with(is_word) || after.starts_with(is_word) {
            continue;
        }
        if before.trim_end().ends_with("$param") {
            declarations += 1;
        } else if is_bound(before, after) {
            bounds += 1;
        } else {
            return false;
        }
    }
    declarations == 1 && bounds > 0
}

/// Whether what stands around a word makes it the bound of a loop from 0 whose body has no directives but its variable.
fn is_bound(before: &str, after: &str) -> bool {
    let Some(before) = before.trim_end().strip_suffix("..").map(str::trim_end) else { return false };
    let Some(before) = before.strip_suffix('0').filter(|b| b.ends_with(char::is_whitespace)).map(str::trim_end) else { return false };
    let Some(before) = before.strip_suffix("in").filter(|b| b.ends_with(char::is_whitespace)).map(str::trim_end) else { return false };
    let start = before.trim_end_matches(is_word);
    let variable = &before[start.len()..];
    if variable.is_empty() || !start.trim_end().ends_with("$for") {
        return false;
    }
    let mut rest = after.trim_start();
    if let Some(join) = rest.strip_prefix("join") {
        let Some((_, behind)) = join.trim_start().strip_prefix('"').and_then(|j| j.split_once('"')) else { return false };
        rest = behind.trim_start();
    }
    let Some(body) = rest.strip_prefix('{') else { return false };
    let (mut depth, mut at) = (1, body);
    while let Some(next) = at.find(['{', '}', '$']) {
        let here = &at[next..];
        at = &here[1..];
        if here.starts_with('{') {
            depth += 1;
        } else if here.starts_with('}') {
            depth -= 1;
            if depth == 0 {
                return true;
            }
        } else {
            let Some((inside, behind)) = here.strip_prefix("${").and_then(|h| h.split_once('}')) else { return false };
            if inside.trim() != variable {
                return false;
            }
            at = behind;
        }
    }
    false
}

/// The names of the constants that a parameter counts, `size` of them, from the specification for `size` and the one for `size + 1`.
pub fn constants(size: usize, at: &Specification, above: &Specification) -> Option<Vec<String>> {
    if at.sections.len() != above.sections.len() {
        return None;
    }
    let mut found = None;
    for (a, b) in at.sections.iter().zip(&above.sections).filter(|(a, b)| a != b) {
        let (Section::Sorts(a), Section::Sorts(b)) = (a, b) else { return None };
        if a.len() != b.len() {
            return None;
        }
        for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
            let (Some(x), Some(y)) = (&a.1, &b.1) else { return None };
            let (SortKind::Struct(x), SortKind::Struct(y)) = (&x.kind, &y.kind) else { return None };
            if a.0 != b.0 || found.is_some() {
                return None;
            }
            found = Some(one_more(size, x, y)?);
        }
    }
    found
}

fn one_more(size: usize, x: &[StructConstructor], y: &[StructConstructor]) -> Option<Vec<String>> {
    if y.len() != x.len() + 1 {
        return None;
    }
    let behind = x.iter().rev().zip(y.iter().rev()).take_while(|(a, b)| a == b).count();
    let end = x.len() - behind;
    let own = x.get(end.checked_sub(size)?..end)?;
    let plain = own.iter().all(|c| c.args.is_empty() && c.recogniser.is_none());
    (plain && x[..end] == y[..end]).then(|| own.iter().map(|c| c.name.kind.clone()).collect())
}
