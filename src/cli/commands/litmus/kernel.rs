//! Files of the language of a model of the Linux kernel: `.bell` and `.def`.
//!
//! A configuration of the herd tools names them. A `.cat` file belongs to the kernel if files with
//! its name and these endings are in its folder.

use crate::pipeline::read_text;
use mu_base::{Diagnostic, SourceMap, Stage};
use mu_litmus::kernel::{KernelLanguage, files_of};
use std::path::{Path, PathBuf};

/// The files of the language of tests.
pub(super) struct KernelFiles {
    bell: (String, String),
    macros: (String, String),
    variants: Option<Vec<String>>,
}

impl KernelFiles {
    /// Returns the files of a built-in model; `None` if it is no model of the kernel.
    pub(super) fn built_in(name: &str) -> Option<Self> {
        let [bell, macros] = files_of(name, &mu_axioms::models::file)?;
        Some(Self { bell, macros, variants: None })
    }
    /// Finds the files next to a model; `None` if there are none.
    pub(super) fn next_to(model: &Path) -> Result<Option<Self>, Diagnostic> {
        let (bell, macros) = (model.with_extension("bell"), model.with_extension("def"));
        if !(mu_base::host::is_file(&bell) && mu_base::host::is_file(&macros)) {
            return Ok(None);
        }
        Ok(Some(Self { bell: text_of(&bell)?, macros: text_of(&macros)?, variants: None }))
    }
    /// Finds the files that a configuration names in some folders.
    pub(super) fn find(
        folders: &[PathBuf],
        bell: &str,
        macros: &str,
        variants: &[String],
    ) -> Result<Self, Diagnostic> {
        let find = |name: &str| {
            let found = folders.iter().map(|f| f.join(name)).find(|p| mu_base::host::is_file(p));
            let missing = || Diagnostic::new(Stage::File, format!("there is no file `{name}`"));
            text_of(&found.ok_or_else(missing)?)
        };
        Ok(Self { bell: find(bell)?, macros: find(macros)?, variants: Some(variants.to_vec()) })
    }
    /// Parses the files.
    pub(super) fn language(&self, sources: &mut SourceMap) -> Result<KernelLanguage, Diagnostic> {
        let (bell, macros) = (&self.bell, &self.macros);
        let variants = self.variants.as_deref();
        KernelLanguage::parse(sources, (&bell.0, &bell.1), (&macros.0, &macros.1), variants)
    }
}

fn text_of(path: &Path) -> Result<(String, String), Diagnostic> {
    Ok((path.display().to_string(), read_text(path)?))
}
