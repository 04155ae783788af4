//! Spelling suggestions for a mistyped name.
//!
//! Restricted Damerau-Levenshtein distance (Damerau, 1964): insertions, deletions, replacements,
//! and swaps of neighbours. Cost: the product of the lengths, for each name of similar length.

/// Returns up to three names at a small distance, nearest first. None for a name of up to two
/// letters; distance 1 for up to five letters, 2 for longer names.
pub fn similar_names<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = match name.chars().count() {
        0..=2 => return Vec::new(),
        3..=5 => 1,
        _ => 2,
    };
    let word: Vec<char> = name.chars().collect();
    let distance = |n: &str| distance(&word, &n.chars().collect::<Vec<_>>(), limit);
    let mut similar: Vec<(usize, &str)> =
        names.into_iter().filter_map(|n| Some((distance(n)?, n))).collect();
    similar.sort();
    similar.dedup();
    similar.into_iter().take(3).map(|n| n.1).collect()
}

/// Returns the distance if it is at most `limit`.
fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    Some(rows[a.len()][b.len()]).filter(|d| *d <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_nearest_first() {
        let names = ["explore", "check", "eval", "reduce", "exploré"];
        let of = |word: &str| similar_names(word, names);
        assert_eq!(of("explor"), ["explore", "exploré"]);
        assert_eq!((of("chekc"), of("chck"), of("chk")), (vec!["check"], vec!["check"], vec![]));
        assert_eq!((of("ab"), of("solve"), of("eval")), (vec![], vec![], vec!["eval"]));
    }

    #[test]
    fn distances() {
        for (a, b, wanted) in [
            ("", "abc", 3),
            ("explor", "explore", 1),
            ("chekc", "check", 1),
            ("sweep", "solve", 4),
            ("info", "info", 0),
        ] {
            let (x, y): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            assert_eq!(
                (distance(&x, &y, 9), distance(&y, &x, 9)),
                (Some(wanted), Some(wanted)),
                "{a} {b}"
            );
            assert_eq!(distance(&x, &y, wanted.saturating_sub(1)).is_none(), wanted > 0, "{a} {b}");
        }
    }
}
