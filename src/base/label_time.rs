//! Times of labels as text: `a(1)|b @ 3` is `a(1)|b` at time `3`.
//!
//! A time is a number, or an expression in parentheses. Cost: linear in the text. Invariant: the
//! two parts, joined by ` @ `, are the text.

/// Separates the actions of a label from its time.
pub const TIME_MARK: &str = " @ ";

/// Splits a label into its actions and its time, without the mark.
pub fn split(label: &str) -> (&str, Option<&str>) {
    let Some((actions, time)) = label.rsplit_once(TIME_MARK) else { return (label, None) };
    let number = !time.is_empty() && time.bytes().all(|b| b.is_ascii_digit());
    let bracketed = time.starts_with('(') && time.ends_with(')') && is_balanced(time);
    if !actions.is_empty() && is_balanced(actions) && (number || bracketed) {
        (actions, Some(time))
    } else {
        (label, None)
    }
}

/// Joins actions and the text of a time. A time that is not a number gets parentheses.
pub fn join(actions: &str, time: &str) -> String {
    if !time.is_empty() && time.bytes().all(|b| b.is_ascii_digit()) {
        format!("{actions}{TIME_MARK}{time}")
    } else {
        format!("{actions}{TIME_MARK}({time})")
    }
}

/// True if each bracket closes the latest open one of its kind.
pub fn is_balanced(text: &str) -> bool {
    let mut open = Vec::new();
    text.chars().all(|c| match c {
        '(' | '[' | '{' => {
            open.push(c);
            true
        }
        ')' => open.pop() == Some('('),
        ']' => open.pop() == Some('['),
        '}' => open.pop() == Some('{'),
        _ => true,
    }) && open.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_split_at_their_time_only() {
        assert_eq!(split("a @ 3"), ("a", Some("3")));
        assert_eq!(split("a(1)|b @ (1 / 2)"), ("a(1)|b", Some("(1 / 2)")));
        assert_eq!(split("tau @ 12"), ("tau", Some("12")));
        for whole in ["a", "a @ ", " @ 3", "a @ b", "a(x @ 3)", "a @ (1", "mail @ home"] {
            assert_eq!(split(whole), (whole, None));
        }
        assert_eq!(join("a", "3"), "a @ 3");
        assert_eq!(join("a", "1 / 2"), "a @ (1 / 2)");
    }
}
