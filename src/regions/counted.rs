//! Parameters that count the constants of a sort.
//!
//! In: a specification with parameters; its plain text for a value of one of them and for the next. Out: the names of parameters that occur only as the bound
//! of `$for i in 0 .. n { … }` with bodies of text and `${i}`, so that the texts for two values differ in the number of copies alone ([`counting`]); the
//! constants that are copied, if the two differ in one more constant of one structured sort and in nothing else, or the place of what else differs
//! ([`constants`]).
//! Words are looked for, not parsed: a parameter whose name occurs elsewhere, even as the name of something else, is not found. Cost: linear in the text, for
//! each parameter.

use mu_base::Span;
use mu_syntax::ast::{Ident, Section, Sort, SortKind, Specification, StructConstructor};

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

/// Something that is not the same for one value of a parameter and the next, besides a sort with one more constant.
#[derive(Clone, Debug)]
pub struct Depends {
    /// What it is.
    pub what: String,
    /// Where it stands.
    pub span: Option<Span>,
}

impl Depends {
    fn on(what: impl Into<String>, span: Span) -> Self {
        Self { what: what.into(), span: Some(span) }
    }
}

/// The names of the constants that a parameter counts, `size` of them, from the specification for `size` and the one for `size + 1`; or what else
/// depends on it.
pub fn constants(size: usize, at: &Specification, above: &Specification) -> Result<Vec<String>, Depends> {
    let nothing = |what: &str| Depends { what: what.into(), span: None };
    if at.sections.len() != above.sections.len() {
        return Err(nothing("which sections there are"));
    }
    let mut found = None;
    for (a, b) in at.sections.iter().zip(&above.sections).filter(|(a, b)| a != b) {
        let (Section::Sorts(a), Section::Sorts(b)) = (a, b) else { return Err(differing(a, b)) };
        if a.len() != b.len() {
            return Err(nothing("which sorts there are"));
        }
        for (a, b) in a.iter().zip(b).filter(|(a, b)| a != b) {
            let more = || Depends::on(format!("more of the sort `{}` than how many constants it has", a.0.kind), a.0.span);
            let (Some(x), Some(y)) = (&a.1, &b.1) else { return Err(more()) };
            let (SortKind::Struct(x), SortKind::Struct(y)) = (&x.kind, &y.kind) else { return Err(more()) };
            if a.0 != b.0 {
                return Err(more());
            }
            if found.is_some() {
                return Err(Depends::on(format!("a second sort, `{}`,", a.0.kind), a.0.span));
            }
            found = Some(one_more(size, x, y).ok_or_else(more)?);
        }
    }
    found.ok_or_else(|| nothing("nothing"))
}

/// What two sections of one place in a specification have different.
fn differing(a: &Section, b: &Section) -> Depends {
    let declared = |what: &str, a: &[(Ident, Sort)], b: &[(Ident, Sort)]| {
        let first = a.iter().zip(b).find(|(a, b)| a != b).map(|(a, _)| a).or(a.last());
        Depends { what: format!("which {what} there are"), span: first.map(|f| f.0.span) }
    };
    match (a, b) {
        (Section::Equations(_, a), Section::Equations(_, b)) => {
            let first = a.iter().zip(b).find(|(a, b)| a != b).map(|(a, _)| a).or(a.last());
            Depends { what: "an equation".into(), span: first.map(|e| e.span) }
        }
        (Section::Processes(a), Section::Processes(b)) => match a.iter().zip(b).find(|(a, b)| a != b) {
            Some((a, _)) => Depends::on(format!("the process `{}`", a.name.kind), a.name.span),
            None => Depends { what: "which processes there are".into(), span: a.last().map(|p| p.name.span) },
        },
        (Section::Init(a), Section::Init(_)) => Depends::on("the initial process", a.span),
        (Section::Constructors(a), Section::Constructors(b)) => declared("constructors", a, b),
        (Section::Mappings(a), Section::Mappings(b)) => declared("mappings", a, b),
        _ => Depends { what: "which declarations there are".into(), span: None },
    }
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
