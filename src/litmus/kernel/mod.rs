//! Litmus tests in the C of the Linux kernel, with the primitives of its memory model (Alglave,
//! Maranget, McKenney, Parri, Stern: "Frightening Small Children and Disconcerting Grown-ups",
//! ASPLOS 2018).
//!
//! A [`KernelLanguage`] consists of a `.bell` file, which declares annotations, and a `.def` file,
//! which maps functions of the kernel to primitives with annotations ([`macros`]). Tests are parsed
//! ([`syntax`]), expanded, and lowered to intermediate code (`lower`). Nothing about a function
//! of the kernel is known here except its definition in the `.def` file.
//!
//! As in the herd tools, all values have 32 bits; a control dependency covers the branches of its
//! `if`, not the code after them; the read and the write of a read-modify-write are two events.

mod initial;
mod lower;
pub mod macros;
pub mod syntax;

use crate::code::{Op, Thread};
use crate::layout::MemoryLayout;
use macros::Macros;
use mu_axioms::cat::Bell;
use mu_base::words::Cursor;
use mu_base::{Diagnostic, SourceMap};
use std::collections::HashSet;

pub(crate) use initial::initial_state;

/// Bits of tags that do not depend on the `.bell` file, and the sets of each.
const FIXED: [(u64, &[&str]); 7] = [
    (tag::ATOMIC, &["X", "RMW"]),
    (tag::LOCK_READ, &["LK", "LKR"]),
    (tag::LOCK_WRITE, &["LK", "LKW"]),
    (tag::UNLOCK, &["UL"]),
    (tag::LOCK_FAIL, &["LF"]),
    (tag::READ_LOCKED, &["RL"]),
    (tag::READ_UNLOCKED, &["RU"]),
];

/// Tags that do not depend on the `.bell` file.
mod tag {
    /// An access of a read-modify-write.
    pub const ATOMIC: u64 = 1 << 56;
    /// The read of a successful lock operation.
    pub const LOCK_READ: u64 = 1 << 57;
    /// The write of a successful lock operation.
    pub const LOCK_WRITE: u64 = 1 << 58;
    /// An unlock.
    pub const UNLOCK: u64 = 1 << 59;
    /// A failed lock operation.
    pub const LOCK_FAIL: u64 = 1 << 60;
    /// A test of a lock that finds it locked.
    pub const READ_LOCKED: u64 = 1 << 61;
    /// A test of a lock that finds it unlocked.
    pub const READ_UNLOCKED: u64 = 1 << 62;
}

/// Largest number of annotations.
const MAX_ANNOTATIONS: usize = 56;

/// The language of tests of the kernel.
#[derive(Clone, Debug)]
pub struct KernelLanguage {
    /// The name and the text of the `.bell` file.
    pub bell_file: (String, String),
    /// Its declarations.
    pub bell: Bell,
    /// The macros of the `.def` file.
    pub macros: Macros,
    /// The variants of the model.
    pub variants: Vec<String>,
    /// True for the first edition, in which a full barrier of a read-modify-write is a fence before
    /// it and one after it (`lkmmv1`). In the second one, annotations stay on both accesses, and
    /// the model interprets them.
    first_edition: bool,
}

/// Returns the `.bell` file and the `.def` file with the name of a model, each as name and text;
/// `None` if `find` does not find both.
pub fn files_of(
    model: &str,
    find: &dyn Fn(&str) -> Option<String>,
) -> Option<[(String, String); 2]> {
    let file = |ending: &str| {
        let name = format!("{model}.{ending}");
        find(&name).map(|text| (name, text))
    };
    Some([file("bell")?, file("def")?])
}

impl KernelLanguage {
    /// Parses a `.bell` file and a `.def` file, each given as name and text. `variants` are the
    /// variants of a `.cfg` file; `None` if there is none: the variant `lkmmv2` then holds if the
    /// `.bell` file mentions it, or does not declare `'once`, which the first edition needs.
    ///
    /// # Errors
    ///
    /// A syntax error in one of the files, with a position in `sources`; too many annotations.
    pub fn parse(
        sources: &mut SourceMap,
        bell_file: (&str, &str),
        macros: (&str, &str),
        variants: Option<&[String]>,
    ) -> Result<Self, Diagnostic> {
        let source = sources.add(bell_file.0, bell_file.1);
        let bell = Bell::parse(source, bell_file.1)?;
        if bell.annotations.len() > MAX_ANNOTATIONS {
            return Err(Diagnostic::new(
                mu_base::Stage::Unsupported,
                format!("`{}` has more than {MAX_ANNOTATIONS} annotations", bell_file.0),
            ));
        }
        let source = sources.add(macros.0, macros.1);
        let macros = Macros::parse(source, macros.1)?;
        let second = "lkmmv2";
        let variants = match variants {
            Some(list) => list.to_vec(),
            None if bell.variants.contains(second)
                || !bell.annotations.iter().any(|a| a == "once") =>
            {
                vec![second.to_string()]
            }
            None => Vec::new(),
        };
        let first_edition = !variants.iter().any(|v| v == second);
        let bell_file = (bell_file.0.to_string(), bell_file.1.to_string());
        Ok(KernelLanguage { bell_file, bell, macros, variants, first_edition })
    }
    /// Returns the names of the sets of each bit of tags.
    pub fn sets(&self) -> Vec<Vec<String>> {
        let mut sets = vec![Vec::new(); 64];
        for (i, annotation) in self.bell.annotations.iter().enumerate() {
            sets[i].push(Bell::set_name(annotation));
        }
        for (bit, names) in FIXED {
            sets[bit.trailing_zeros() as usize].extend(names.iter().map(|n| (*n).to_string()));
        }
        sets
    }
    fn tag(&self, annotation: &str) -> Option<u64> {
        self.bell.annotations.iter().position(|a| a == annotation).map(|i| 1 << i)
    }
}

/// Parses all functions and lowers them. `given` contains the registers of each thread that the
/// initial state mentions.
pub(crate) fn threads(
    cursor: &mut Cursor<'_, '_>,
    layout: &mut MemoryLayout,
    language: &KernelLanguage,
    text: &str,
    given: &HashSet<(u32, String)>,
) -> Result<Vec<Thread>, Diagnostic> {
    let functions = syntax::KernelReader::new(cursor).functions()?;
    let threads: Result<Vec<Thread>, Diagnostic> = (0u32..)
        .zip(functions)
        .map(|(number, function)| {
            let body = language.macros.expand(&function.body)?;
            let given = given.iter().filter(|g| g.0 == number).map(|g| g.1.as_str());
            lower::thread(language, layout, text, number, (&function.parameters, &body), given)
        })
        .collect();
    let threads = threads?;
    // Plain stores of values that were loaded may justify each other in a circle: the model does
    // not forbid values out of thin air for plain accesses, and any value is possible.
    let copies = |op: &Op| match op {
        Op::Store { tags: 0, value, .. } => {
            let mut registers = false;
            value.sources(&mut |_| registers = true);
            registers
        }
        _ => false,
    };
    if threads.iter().flat_map(|t| &t.ops).any(copies) {
        layout.set_any(ANY);
    }
    Ok(threads)
}

/// The value that stands for any value out of thin air. It fits in 31 bits and is no address.
const ANY: u64 = 0x3a5c_7be1;
