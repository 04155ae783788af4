//! Marker of a run without a checkpoint.
//!
//! In: a checkpoint folder and the fingerprint of the search. Out: a file `begun` with the
//! fingerprint, from the start of the run until its first checkpoint. A run may end before its
//! first checkpoint: games have none, and a memory limit may leave no room. Then the marker still
//! exists, and `--resume` starts the search again instead of rejecting the folder.

use crate::pipeline::checkpoint::replace;
use crate::pipeline::file_error;
use mu_base::Diagnostic;
use mu_base::host::fs;
use std::io::Write;
use std::path::Path;

/// File name of the marker.
const NAME: &str = "begun";

/// Writes the marker.
pub(crate) fn mark(folder: &Path, fingerprint: &str) -> Result<(), Diagnostic> {
    let failed = |e: std::io::Error| file_error("cannot write", &folder.join(NAME), &e);
    replace(folder, NAME, &|out: &mut dyn Write| {
        out.write_all(fingerprint.as_bytes()).map_err(failed)
    })
    .map(drop)
}

/// True if a folder has the marker of this search, or contains nothing but a part of a marker: the
/// run ended while it wrote the marker, before the search.
pub(crate) fn is_marked(folder: &Path, fingerprint: &str) -> bool {
    fs::read(folder.join(NAME)).is_ok_and(|text| text == fingerprint.as_bytes())
        || has_only_a_part(folder)
}

fn has_only_a_part(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    matches!(paths.as_slice(), [path] if path.ends_with(format!("{NAME}.part")))
}

/// Removes the marker, because a checkpoint exists.
pub(crate) fn remove(folder: &Path) {
    // A remaining marker is harmless: a checkpoint takes precedence.
    let _ = fs::remove_file(folder.join(NAME));
}

/// Reports that the run starts again, because no checkpoint exists.
pub(crate) fn report(folder: &Path) {
    eprintln!("{}: the earlier run wrote no checkpoint; the search starts again", folder.display());
}
