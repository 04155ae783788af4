//! Corrections of formulas with misplaced parentheses.
//!
//! These correct two errors in published formulas. As in mCRL2, the operand of a modality ends
//! before a binary operator: `[R] forall x: S. a => b` is `([R] forall x: S. a) => b`, and `x` in
//! `b` is not bound. And `val(c && a(x))` has an action where only data is allowed;
//! `val(c) && a(x)` is meant. In: the text of such a formula. Out: the changes that make it well
//! typed; a pair of parentheses encloses a binder and the rest of its group. A correction is
//! returned only if the corrected text was parsed and type checked. Cost: a few checks of the
//! formula, after an error only.

use super::typecheck::check_formula;
use mu_base::{Diagnostic, SourceId, Span};
use mu_data::expr::DataSpec;
use mu_process::labels::ActionDecl;
use mu_syntax::ast::{StateFormula, StateFormulaKind};
use mu_syntax::parse_formula;

/// Limit on the corrections tried.
const MOST: usize = 8;

/// A correction, with byte positions in the formula's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Insert an opening parenthesis before one byte and a closing one before the other.
    Pair(usize, usize),
    /// Insert a closing parenthesis before the first byte, and remove the one at the second.
    Closes(usize, usize),
}

/// A change of the text: insert a character before a byte, or remove that byte.
type Change = (usize, Option<char>);

impl Correction {
    fn changes(self) -> [Change; 2] {
        match self {
            Correction::Pair(open, close) => [(open, Some('(')), (close, Some(')'))],
            Correction::Closes(here, there) => [(here, Some(')')), (there, None)],
        }
    }
}

/// Returns corrections for an error of this kind that make the formula well typed. `None` if a few
/// parentheses do not suffice.
pub fn corrections(
    text: &str,
    error: &Diagnostic,
    data: &DataSpec,
    actions: &[ActionDecl],
) -> Option<Vec<Correction>> {
    let mut error = error.clone();
    let (mut out, mut changes): (Vec<Correction>, Vec<Change>) = (Vec::new(), Vec::new());
    for _ in 0..MOST {
        let now = with(text, &changes);
        let file = parse_formula(SourceId::FIRST, &now).ok()?;
        let found = parentheses(&now, &file.formula, &error)
            .or_else(|| outside_data(&now, &error, actions))?;
        let place = |at| as_written(&changes, at);
        let found = match found {
            Correction::Pair(a, b) => Correction::Pair(place(a), place(b)),
            Correction::Closes(a, b) => Correction::Closes(place(a), place(b)),
        };
        out.push(found);
        changes.extend(found.changes());
        changes.sort_by_key(|c| c.0);
        let file = parse_formula(SourceId::FIRST, &with(text, &changes)).ok()?;
        match check_formula(&file, data, actions) {
            Ok(_) => return Some(out),
            Err(next) => error = next,
        }
    }
    None
}

/// Encloses a binder if its scope ended before the unknown name.
fn parentheses(text: &str, formula: &StateFormula, error: &Diagnostic) -> Option<Correction> {
    let open = binder(formula, error.related.first()?.0.end)? as usize;
    let close = end_of_group(text, open);
    ((error.span?.start as usize) < close).then_some(Correction::Pair(open, close))
}

/// Closes `val(c` before `&& a(x))`, where `a` is an action.
fn outside_data(text: &str, error: &Diagnostic, actions: &[ActionDecl]) -> Option<Correction> {
    let span = error.span?;
    let at = span.start as usize;
    let name = text.get(at..span.end as usize)?;
    if !actions.iter().any(|a| a.name == name) {
        return None;
    }
    let before = text[..at].trim_end().strip_suffix("&&")?.trim_end();
    let mut depth = 0;
    let open = before.char_indices().rev().find(|(_, c)| {
        depth += i32::from(*c == ')') - i32::from(*c == '(');
        depth < 0
    });
    text[..open?.0].trim_end().ends_with("val").then_some(())?;
    let close = end_of_group(text, at);
    let close = close + text[close..].find(')')?;
    Some(Correction::Closes(before.len(), close))
}

/// Applies ascending changes to the text.
fn with(text: &str, changes: &[Change]) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for &(place, put) in changes {
        out.push_str(&text[at..place]);
        out.extend(put);
        at = place + usize::from(put.is_none());
    }
    out + &text[at..]
}

/// Maps a position in the changed text to the original text.
fn as_written(changes: &[Change], place: usize) -> usize {
    changes
        .iter()
        .fold((place, 0isize), |(now, shift), &(at, put)| {
            match (put, at.checked_add_signed(shift)) {
                (Some(_), Some(at)) if at < place => (now - 1, shift + 1),
                (None, Some(at)) if at <= place => (now + 1, shift - 1),
                _ => (now, shift),
            }
        })
        .0
}

/// Returns the start of the outermost binder with a scope that ends at a position.
fn binder(formula: &StateFormula, end: u32) -> Option<u32> {
    let mut todo = vec![formula];
    let mut found: Option<Span> = None;
    while let Some(f) = todo.pop() {
        match &f.kind {
            StateFormulaKind::Quantified(_, _, body) | StateFormulaKind::Fix { body, .. } => {
                if f.span.end == end && found.is_none_or(|s| f.span.start < s.start) {
                    found = Some(f.span);
                }
                todo.push(body);
            }
            StateFormulaKind::Not(g)
            | StateFormulaKind::Minus(g)
            | StateFormulaKind::Must(_, g)
            | StateFormulaKind::May(_, g) => todo.push(g),
            StateFormulaKind::Binary(_, a, b) => todo.extend([&**a, &**b]),
            _ => {}
        }
    }
    found.map(|s| s.start)
}

/// Returns the end of the bracket group that contains a position: after its last character that is
/// neither blank nor in a comment.
fn end_of_group(text: &str, from: usize) -> usize {
    let (mut depth, mut comment, mut last) = (0u32, false, from);
    for (i, c) in text[from..].char_indices() {
        match c {
            '\n' => comment = false,
            _ if comment => continue,
            '%' => comment = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            // The end of a formula in a file with sections.
            ';' if depth == 0 => break,
            _ => {}
        }
        if !comment && !c.is_whitespace() {
            last = from + i + c.len_utf8();
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use mu_process::typecheck::check_specification;
    use mu_syntax::parse_specification;

    fn correction(text: &str) -> Option<String> {
        let model = "act a, b; c: Nat; init a;";
        let model =
            check_specification(&parse_specification(SourceId::FIRST, model).unwrap()).unwrap();
        let error = check_formula(
            &parse_formula(SourceId::FIRST, text).unwrap(),
            &model.data,
            &model.actions,
        )
        .err()?;
        let corrections = corrections(text, &error, &model.data, &model.actions)?;
        let mut changes: Vec<Change> = corrections.iter().flat_map(|c| c.changes()).collect();
        changes.sort_by_key(|c| c.0);
        Some(with(text, &changes))
    }

    #[test]
    fn parentheses_go_around_the_rest_of_the_group() {
        let same = |text: &str, expected: &str| {
            assert_eq!(correction(text).as_deref(), Some(expected), "{text}")
        };
        same(
            "[true*] forall n: Nat. val(n < 3) => [c(n)]false",
            "[true*] (forall n: Nat. val(n < 3) => [c(n)]false)",
        );
        same(
            "([a] forall n: Nat. val(n < 3) => [c(n)]false % so\n) && [b]false",
            "([a] (forall n: Nat. val(n < 3) => [c(n)]false) % so\n) && [b]false",
        );
        // Two that end at one position: the outer one encloses the rest of both.
        same(
            "[a] forall n: Nat. forall m: Nat. val(n < m) => [c(n)][c(m)]false % end\n",
            "[a] (forall n: Nat. forall m: Nat. val(n < m) => [c(n)][c(m)]false) % end\n",
        );
        same(
            "[a] mu X(n: Nat = 0). val(n < 3) || <a>X(n + 1)",
            "[a] (mu X(n: Nat = 0). val(n < 3) || <a>X(n + 1))",
        );
        // One after the other.
        same(
            "[a] forall n: Nat. val(n < 3) => [b] exists m: Nat. val(m < n) && <c(m)>true",
            "[a] (forall n: Nat. val(n < 3) => [b] (exists m: Nat. val(m < n) && <c(m)>true))",
        );
        // An action inside `val`, alone and with the other error.
        same(
            "[true* . exists n: Nat. (val(n < 3 && c(n)))]false",
            "[true* . exists n: Nat. (val(n < 3) && c(n))]false",
        );
        same(
            "[a] forall n: Nat. val((n < 3)) => [b . (exists m: Nat. (val(m != n && m < 9 && c(m))))]false",
            "[a] (forall n: Nat. val((n < 3)) => [b . (exists m: Nat. (val(m != n && m < 9) && c(m)))]false)",
        );
        assert_eq!(correction("[exists n: Nat. val(n < 3 || c(n))]false"), None);
        // No parentheses help: there is no correction.
        assert_eq!(correction("[c(n)] forall n: Nat. val(n < 3)"), None);
        assert_eq!(correction("[a] forall n: Nat. val(n < 3) => [c(n + true)]false"), None);
    }
}
