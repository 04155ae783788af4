//! Formats of files of transition systems: one row per format, with its endings, reader, and
//! writer.
//!
//! A new format is a type here and a row of [`formats`]. All commands then write it, and the front
//! end of transition systems reads it.

use mu_base::{Diagnostic, Stage};
use mu_lts::typed::TypedDeclarations;
use mu_lts::{Lts, aut, binary, dot, fsm, mcrl2};
use std::io::{Read, Write};
use std::path::Path;

/// Declarations in a file: a specification without behaviour, or the reason why there is no text
/// for it. `None` if the format has no declarations.
pub type Declarations = Option<Result<String, Diagnostic>>;

/// Format of files of transition systems.
pub trait Format: Sync {
    /// Returns the endings of file names: in lower case, with their dots.
    fn endings(&self) -> &'static [&'static str];

    /// True if its files can be read.
    fn is_read(&self) -> bool {
        true
    }

    /// True if its files contain the data types of labels.
    fn is_typed(&self) -> bool {
        false
    }

    /// Reads a transition system, and the declarations in the file if any.
    ///
    /// # Errors
    /// The file is damaged, or its format is only written.
    fn read(&self, input: Box<dyn Read + '_>) -> Result<(Lts, Declarations), Diagnostic>;

    /// Writes a transition system. `typed`: the data types of its labels, for typed formats.
    ///
    /// # Errors
    /// A label that the format cannot express; the output fails.
    fn write(
        &self,
        lts: &Lts,
        typed: Option<&TypedDeclarations>,
        output: &mut dyn Write,
    ) -> Result<(), Diagnostic>;
}

/// Aldebaran text; a compressed file is recognised by its content.
struct Aldebaran;

/// Aldebaran text, compressed.
struct CompressedAldebaran;

/// Compact binary format with a checksum.
struct Compact;

/// Binary format of the mCRL2 tools.
struct Mcrl2;

/// Text format of mCRL2's visualiser.
struct StateMachine;

/// Picture by Graphviz.
struct Picture;

/// Pictures, which are only written.
pub const PICTURE: &dyn Format = &Picture;

/// Returns all formats.
pub fn formats() -> &'static [&'static dyn Format] {
    &[&Aldebaran, &CompressedAldebaran, &Compact, &Mcrl2, &StateMachine, PICTURE]
}

/// Returns the first endings of all formats, as a list for texts: ".aut, .blts or .lts", each
/// ending between two quotes. `is_read`: only of formats that are read.
pub fn endings_text(is_read: bool, quote: &str) -> String {
    let listed = formats().iter().filter(|f| f.is_read() || !is_read);
    let all: Vec<String> =
        listed.filter_map(|f| Some(format!("{quote}{}{quote}", f.endings().first()?))).collect();
    match all.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}

/// Returns the format of a file, by its name; `None` if no format has its ending.
pub fn of(path: &Path) -> Option<&'static dyn Format> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    formats().iter().copied().find(|f| f.endings().iter().any(|e| name.ends_with(e)))
}

impl Format for Aldebaran {
    fn endings(&self) -> &'static [&'static str] {
        &[".aut"]
    }
    fn read(&self, input: Box<dyn Read + '_>) -> Result<(Lts, Declarations), Diagnostic> {
        Ok((aut::read(input, &aut::AutOptions::default())?, None))
    }
    fn write(
        &self,
        lts: &Lts,
        _: Option<&TypedDeclarations>,
        out: &mut dyn Write,
    ) -> Result<(), Diagnostic> {
        aut::write(lts, out)
    }
}

impl Format for CompressedAldebaran {
    fn endings(&self) -> &'static [&'static str] {
        &[".aut.gz"]
    }
    fn read(&self, input: Box<dyn Read + '_>) -> Result<(Lts, Declarations), Diagnostic> {
        Aldebaran.read(input)
    }
    fn write(
        &self,
        lts: &Lts,
        _: Option<&TypedDeclarations>,
        out: &mut dyn Write,
    ) -> Result<(), Diagnostic> {
        aut::write_gz(lts, out)
    }
}

impl Format for Compact {
    fn endings(&self) -> &'static [&'static str] {
        &[".blts"]
    }
    fn read(&self, input: Box<dyn Read + '_>) -> Result<(Lts, Declarations), Diagnostic> {
        Ok((binary::read(input)?, None))
    }
    fn write(
        &self,
        lts: &Lts,
        _: Option<&TypedDeclarations>,
        out: &mut dyn Write,
    ) -> Result<(), Diagnostic> {
        binary::write(lts, out)
    }
}

impl Format for Mcrl2 {
    fn endings(&self) -> &'static [&'static str] {
        &[".lts"]
    }
    fn is_typed(&self) -> bool {
        true
    }
    fn read(&self, input: Box<dyn Read + '_>) -> Result<(Lts, Declarations), Diagnostic> {
        let (lts, declarations) = mcrl2::read_with_declarations(input)?;
        Ok((lts, declarations))
    }
    fn write(
        &self,
        lts: &Lts,
        typed: Option<&TypedDeclarations>,
        out: &mut dyn Write,
    ) -> Result<(), Diagnostic> {
        mcrl2::write(lts, typed, out)
    }
}

impl Format for StateMachine {
    fn endings(&self) -> &'static [&'static str] {
        &[".fsm"]
    }
    fn read(&self, input: Box<dyn Read + '_>) -> Result<(Lts, Declarations), Diagnostic> {
        Ok((fsm::read(input)?, None))
    }
    fn write(
        &self,
        lts: &Lts,
        _: Option<&TypedDeclarations>,
        out: &mut dyn Write,
    ) -> Result<(), Diagnostic> {
        fsm::write(lts, out)
    }
}

impl Format for Picture {
    fn endings(&self) -> &'static [&'static str] {
        &[".dot", ".gv"]
    }
    fn is_read(&self) -> bool {
        false
    }
    fn read(&self, _: Box<dyn Read + '_>) -> Result<(Lts, Declarations), Diagnostic> {
        Err(Diagnostic::new(Stage::File, "a picture of a transition system is not read back"))
    }
    fn write(
        &self,
        lts: &Lts,
        _: Option<&TypedDeclarations>,
        out: &mut dyn Write,
    ) -> Result<(), Diagnostic> {
        dot::write(lts, out)
    }
}
