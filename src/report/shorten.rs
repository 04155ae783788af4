//! Shortening of names in pictures: constants in the arguments of actions get shorter names, with a
//! key.
//!
//! A common prefix of all constants, up to an underscore, is left out. A long constant that
//! contains a number (`processor_core_0_id`) is named by the word before the number (`core_0`). No
//! two constants get the same name, and no constant gets a name with another meaning in the
//! picture; a constant without a free short name keeps its own. Cost: linear in the texts, after
//! one pass to collect.
//! in the texts, after one pass to collect.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of constants that are not shortened.
const SHORT: usize = 12;

/// Short names for the constants of some texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShortNames {
    names: BTreeMap<String, String>,
    prefix: String,
}

impl ShortNames {
    /// Computes short names for the constants in brackets in these texts.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> ShortNames {
        let mut constants = BTreeSet::new();
        // Names of actions and functions are not constants, and no constant may get their names.
        let mut taken = BTreeSet::new();
        for text in texts {
            for (word, inside, applied) in words(text) {
                if inside && !applied && !["true", "false"].contains(&word) {
                    constants.insert(word)
                } else {
                    taken.insert(word.to_string())
                };
            }
        }
        let prefix = common(&constants);
        let mut names = BTreeMap::new();
        let rest: Vec<(&str, &str)> = constants.iter().map(|c| (*c, &c[prefix.len()..])).collect();
        let plain: BTreeSet<&str> = rest.iter().map(|r| r.1).collect();
        for (constant, rest) in &rest {
            let short = numbered_word(rest).filter(|s| {
                rest.len() > SHORT && !plain.contains(s.as_str()) && !taken.contains(s)
            });
            // Constants without the prefix are still distinct; only a name with another meaning can
            // conflict.
            let short = short.or_else(|| (!taken.contains(*rest)).then(|| rest.to_string()));
            if let Some(short) = short.filter(|s| s != constant) {
                taken.insert(short.clone());
                names.insert(constant.to_string(), short);
            }
        }
        ShortNames { names, prefix: prefix.to_string() }
    }

    /// Replaces constants by their short names.
    pub fn text(&self, text: &str) -> String {
        if self.names.is_empty() {
            return text.to_string();
        }
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for (word, _, applied) in words(text) {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            if let Some(short) = self.names.get(word).filter(|_| !applied) {
                out += &text[end..start];
                out += short;
                end = start + word.len();
            }
        }
        out + &text[end..]
    }

    /// Returns the key of the short names; `None` if no name changed.
    pub fn key(&self) -> Option<String> {
        let without = |(long, short): &(&String, &String)| {
            long.strip_prefix(&self.prefix) == Some(short.as_str())
        };
        let other: Vec<String> = self
            .names
            .iter()
            .filter(|n| !without(n))
            .map(|(long, short)| format!("{short} = {long}"))
            .collect();
        let mut parts = Vec::new();
        if self.names.iter().any(|n| without(&n)) {
            parts.push(format!("names without their beginning {}", self.prefix));
        }
        parts.extend(other);
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Returns the identifiers of a text, each with two flags: inside brackets, and followed by an
/// opening bracket.
fn words(text: &str) -> Vec<(&str, bool, bool)> {
    let bytes = text.as_bytes();
    let part = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'\'';
    let (mut out, mut at, mut depth) = (Vec::new(), 0, 0usize);
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b if part(b) => {
                let start = at;
                while at < bytes.len() && part(bytes[at]) {
                    at += 1;
                }
                if !bytes[start].is_ascii_digit() {
                    out.push((&text[start..at], depth > 0, bytes.get(at) == Some(&b'(')));
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    out
}

/// Returns the longest common prefix that ends with an underscore and leaves valid names; empty for
/// a single constant.
fn common<'a>(constants: &BTreeSet<&'a str>) -> &'a str {
    // Sorted: the common prefix of the first and the last is common to all.
    let (Some(first), Some(last)) = (constants.first(), constants.last()) else { return "" };
    if constants.len() < 2 {
        return "";
    }
    let shared = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    let ends = first[..shared].match_indices('_').map(|(i, _)| i + 1);
    let fits = |end: &usize| {
        constants.iter().all(|c| c[*end..].starts_with(|c: char| c.is_ascii_alphabetic()))
    };
    ends.filter(fits).max().map_or("", |end| &first[..end])
}

/// Returns the last word before the first number, with the number: `core_0` for
/// `processor_core_0_id`.
fn numbered_word(name: &str) -> Option<String> {
    let words: Vec<&str> = name.split('_').collect();
    let at = words.iter().position(|w| !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit()))?;
    let before = words[..at].last().filter(|w| w.starts_with(|c: char| c.is_ascii_alphabetic()))?;
    Some(format!("{before}_{}", words[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_lead_back() {
        let texts = [
            "load(c_processor_core_0_id, c_addr_0, c_data_undefined, 1)",
            "store(c_processor_core_1_id, c_addr_1, [f(c_data_0)])",
        ];
        let short = ShortNames::of(texts.into_iter());
        assert_eq!(short.text(texts[0]), "load(core_0, addr_0, data_undefined, 1)");
        assert_eq!(short.text(texts[1]), "store(core_1, addr_1, [f(data_0)])");
        // Names that were not collected do not change.
        assert_eq!(short.text("load(c_addr_7)"), "load(c_addr_7)");
        let key = "names without their beginning c_, core_0 = c_processor_core_0_id, core_1 = c_processor_core_1_id";
        assert_eq!(short.key().as_deref(), Some(key));
    }

    #[test]
    fn no_name_stands_for_two_things() {
        // `x` is an action; `core_0` is already a constant; two constants would get the same name.
        let texts = [
            "x(c_x, c_core_0, c_processor_core_0_id)",
            "y(c_first_kind_of_core_1_a, c_second_kind_of_core_1_b)",
        ];
        let short = ShortNames::of(texts.into_iter());
        assert_eq!(short.text(texts[0]), "x(c_x, core_0, processor_core_0_id)");
        assert_eq!(short.text(texts[1]), "y(core_1, second_kind_of_core_1_b)");
        for (texts, wanted) in [
            (["a(c_1, c_2)"], "a(c_1, c_2)"),
            (["a(true, c_one)"], "a(true, c_one)"),
            (["a(1, 2)"], "a(1, 2)"),
        ] {
            let short = ShortNames::of(texts.into_iter());
            assert_eq!((short.text(texts[0]).as_str(), short.key()), (wanted, None));
        }
    }
}
