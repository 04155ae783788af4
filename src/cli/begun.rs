//! The marker of a run that has stored no checkpoint yet.
//!
//! In: a folder of checkpoints, and the fingerprint of what is searched. Out: a file `begun` with
//! that text, from the start of the run until its first checkpoint. A run may end before: a game
//! has no checkpoints, a limit on the memory may leave no room for one. Then the marker is still
//! there, and `--resume` begins again instead of refusing a folder of another run.

use super::checkpoint::replace;
use super::pipeline::file_error;
use mu_base::Diagnostic;
use mu_base::host::fs;
use std::io::Write;
use std::path::Path;

/// Name of the file.
const NAME: &str = "begun";

/// Marks a folder.
pub(super) fn mark(folder: &Path, fingerprint: &str) -> Result<(), Diagnostic> {
    let failed = |e: std::io::Error| file_error("cannot write", &folder.join(NAME), &e);
    replace(folder, NAME, &|out: &mut dyn Write| {
        out.write_all(fingerprint.as_bytes()).map_err(failed)
    })
    .map(drop)
}

/// True if a folder has the marker of this search.
pub(super) fn is_marked(folder: &Path, fingerprint: &str) -> bool {
    fs::read(folder.join(NAME)).is_ok_and(|text| text == fingerprint.as_bytes())
}

/// Removes the marker, if there is one: a checkpoint is stored.
pub(super) fn remove(folder: &Path) {
    // A marker that stays does no harm: a checkpoint comes first.
    let _ = fs::remove_file(folder.join(NAME));
}

/// Reports that a run begins again, since nothing was stored of the one before.
pub(super) fn report(folder: &Path) {
    eprintln!(
        "{}: no checkpoint was written before the run ended; it begins again",
        folder.display()
    );
}
