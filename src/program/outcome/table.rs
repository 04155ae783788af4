//! Parser of the code of a litmus test as a table: a column per thread, rows of cells that end with
//! `;`.
//!
//! The heads of the columns are `P0 | P1 | … ;`. The caller parses the cells. The table ends where
//! a question starts.

use super::question::is_negated;
use mu_base::words::Cursor;
use mu_base::{Diagnostic, Stage};

/// Keywords that start a question.
const QUESTION: [&str; 7] =
    ["locations", "filter", "exists", "forall", "final", "observed", "cases"];

/// Parses the heads of the columns. Returns their number.
///
/// # Errors
///
/// Threads that are not numbered from 0 in order.
pub fn columns(cursor: &mut Cursor<'_, '_>) -> Result<usize, Diagnostic> {
    cursor.eat(";");
    for i in 0.. {
        let name = cursor.name("a thread: `P0`")?;
        if name.text != format!("P{i}") {
            return Err(Diagnostic::at(
                Stage::Syntax,
                name.span,
                format!("expected the thread `P{i}`, found `{}`", name.text),
            ));
        }
        if !cursor.eat("|") {
            cursor.expect(";")?;
            return Ok(i + 1);
        }
    }
    Err(cursor.unexpected("`;`"))
}

/// Parses all rows; `cell` parses a cell.
///
/// # Errors
///
/// Those of `cell`; a row with more cells than there are columns.
pub fn rows<'a, E: From<Diagnostic>>(
    cursor: &mut Cursor<'a, '_>,
    columns: usize,
    mut cell: impl FnMut(usize, &mut Cursor<'a, '_>) -> Result<(), E>,
) -> Result<(), E> {
    while !ends(cursor) {
        for i in 0.. {
            if i == columns {
                return Err(Diagnostic::at(
                    Stage::Syntax,
                    cursor.peek().span,
                    format!("more columns than the {columns} threads"),
                )
                .into());
            }
            cell(i, cursor)?;
            if cursor.eat("|") {
                continue;
            }
            if !cursor.eat(";") && !ends(cursor) {
                return Err(cursor.unexpected("`|` or `;`").into());
            }
            break;
        }
    }
    Ok(())
}

/// True if a question starts here. A variable may be called `exists`, but a label may not.
fn ends(cursor: &Cursor<'_, '_>) -> bool {
    let word = || QUESTION.iter().any(|w| cursor.is_word(w)) && cursor.ahead(1).text != ":";
    cursor.at_end() || cursor.is("~") || cursor.is("(") || is_negated(cursor) || word()
}
