//! Model file, or a text with the name of one.

use crate::machines;
use mu_base::files::{decode, file_error, read_text};
use mu_base::{Diagnostic, SourceId, SourceMap};
use std::io::Read;
use std::path::Path;

/// Model file, or a text with the name of one: an edited file, or a text of a program.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    path: &'a Path,
    text: Option<&'a str>,
}

impl<'a> Input<'a> {
    /// Names a file, which is read when its content is needed. If the file does not exist, the name
    /// may be that of a built-in machine.
    pub fn file(path: &'a Path) -> Self {
        let text = machines::machine(path).filter(|_| !mu_base::host::is_file(path));
        Self { path, text }
    }

    /// Names a text; the name selects the front end and occurs in messages.
    pub fn text_named(name: &'a Path, text: &'a str) -> Self {
        Self { path: name, text: Some(text) }
    }

    /// Returns the path of the file, or the name of the text.
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// Returns the path as text, for messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the text.
    ///
    /// # Errors
    /// The file cannot be read, or is not UTF-8.
    pub fn text(&self) -> Result<String, Diagnostic> {
        self.text.map_or_else(|| read_text(self.path), |text| Ok(text.to_string()))
    }

    /// Returns the text, registered as a source.
    ///
    /// # Errors
    /// As [`Input::text`].
    pub fn source(&self, sources: &mut SourceMap) -> Result<(SourceId, String), Diagnostic> {
        let text = self.text()?;
        Ok((sources.add(self.name(), text.clone()), text))
    }

    /// Opens the content as bytes.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(&self) -> Result<Box<dyn Read + 'a>, Diagnostic> {
        match self.text {
            Some(text) => Ok(Box::new(text.as_bytes())),
            None => mu_base::host::open(self.path)
                .map(|file| Box::new(file) as Box<dyn Read>)
                .map_err(|e| file_error("cannot read", self.path, &e)),
        }
    }

    /// True if the content begins with these bytes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn begins_with(&self, magic: &[u8]) -> Result<bool, Diagnostic> {
        let mut start = Vec::new();
        self.open()?
            .take(magic.len() as u64)
            .read_to_end(&mut start)
            .map_err(|e| file_error("cannot read", self.path, &e))?;
        Ok(start == magic)
    }

    /// Adds the name of the file to an error in its content.
    pub fn locate_error(&self, error: Diagnostic) -> Diagnostic {
        error.in_file(&self.name())
    }

    /// Decodes bytes of the file that begin at a line, counted from 1.
    ///
    /// # Errors
    /// The bytes are not UTF-8.
    pub fn decode(&self, bytes: Vec<u8>, first_line: u64) -> Result<String, Diagnostic> {
        decode(bytes, &self.name(), first_line)
    }
}
