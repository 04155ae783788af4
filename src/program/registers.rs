//! Names of the x86 registers, and the parts of full registers that they denote.

use super::expr::Width;

/// A part of a register, or all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Name of the full register, such as `rax`, or a symbolic name.
    pub full: String,
    /// Its width.
    pub width: Width,
    /// The lowest bit.
    pub shift: u32,
}

/// Parses the name of a register, in upper or lower case; `None` if it is none.
pub fn parse(name: &str) -> Option<View> {
    let name = name.to_ascii_lowercase();
    let view = |full: String, width, shift| Some(View { full, width, shift });
    // r8 to r15, with the suffixes d, w, b for parts.
    if let Some(rest) = name.strip_prefix('r')
        && rest.starts_with(|c: char| c.is_ascii_digit())
    {
        let digits = rest.trim_end_matches(['d', 'w', 'b']);
        let number: u32 = digits.parse().ok().filter(|n| (8..16).contains(n))?;
        let width = match &rest[digits.len()..] {
            "" => Width::W64,
            "d" => Width::W32,
            "w" => Width::W16,
            "b" => Width::W8,
            _ => return None,
        };
        return view(format!("r{number}"), width, 0);
    }
    // The eight registers with names: a, b, c, d have high bytes, the others do not.
    let stems = ["ax", "bx", "cx", "dx", "si", "di", "bp", "sp"];
    let (prefix, stem) =
        if name.len() == 3 && name.is_ascii() { name.split_at(1) } else { ("", name.as_str()) };
    if stems.contains(&stem) {
        let width = match prefix {
            "r" => Width::W64,
            "e" => Width::W32,
            "" => Width::W16,
            // sil, dil, bpl, spl are handled below.
            _ => return None,
        };
        return view(format!("r{stem}"), width, 0);
    }
    match name.as_bytes() {
        [a @ b'a'..=b'd', b'l'] => view(format!("r{}x", *a as char), Width::W8, 0),
        [a @ b'a'..=b'd', b'h'] => view(format!("r{}x", *a as char), Width::W8, 8),
        [.., b'l'] if stems[4..].contains(&&name[..name.len() - 1]) => {
            view(format!("r{}", &name[..2]), Width::W8, 0)
        }
        _ if ["rip", "cs", "ss", "ds"].contains(&name.as_str()) => view(name, Width::W64, 0),
        _ => None,
    }
}

/// Returns the name of the part of a full register with a width, for messages and outcomes: `rax`
/// at 32 bits is `eax`.
pub fn name_at(full: &str, width: Width) -> String {
    let Some(view) = parse(full).filter(|v| v.full == full) else { return full.to_string() };
    let stem = &view.full[1..];
    let numbered = stem.starts_with(|c: char| c.is_ascii_digit());
    match (width, numbered) {
        (Width::W64, _) => view.full,
        (Width::W32, true) => format!("r{stem}d"),
        (Width::W32, false) => format!("e{stem}"),
        (Width::W16, true) => format!("r{stem}w"),
        (Width::W16, false) => stem.to_string(),
        (Width::W8, true) => format!("r{stem}b"),
        (Width::W8, false) => format!("{}l", stem.trim_end_matches('x')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_parts() {
        let of = |n: &str| parse(n).map(|v| (v.full, v.width.bits(), v.shift));
        let is = |n: &str, bits, shift| Some((n.to_string(), bits, shift));
        assert_eq!(of("EAX"), is("rax", 32, 0));
        assert_eq!(of("rax"), is("rax", 64, 0));
        assert_eq!(of("ah"), is("rax", 8, 8));
        assert_eq!(of("bl"), is("rbx", 8, 0));
        assert_eq!(of("sil"), is("rsi", 8, 0));
        assert_eq!(of("si"), is("rsi", 16, 0));
        assert_eq!(of("r10d"), is("r10", 32, 0));
        assert_eq!(of("r8"), is("r8", 64, 0));
        for wrong in ["", "x", "r7", "r16", "eal", "xl", "rdw", "é", "aéx", "r8x", "el"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_name_has_its_way_back() {
        for full in ["rax", "rbx", "rsi", "rbp", "r8", "r15"] {
            for width in [Width::W8, Width::W16, Width::W32, Width::W64] {
                let view = parse(&name_at(full, width)).unwrap();
                assert_eq!((view.full.as_str(), view.width, view.shift), (full, width, 0));
            }
        }
        assert_eq!(name_at("symbolic", Width::W32), "symbolic");
    }
}
