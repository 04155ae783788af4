//! Temporary folder of a server, for files that pass between its runs.
//!
//! In: nothing. Out: a folder that is removed when the server ends. A server that is killed leaves
//! its folder behind; the next one removes it. Invariant: a folder in use is locked, so that no
//! other server removes it.

use mu_base::host::{FolderLock, lock_folder};
use std::path::Path;
use std::time::Duration;

/// First letters of the names of such folders; [`LETTERS`] random ones follow. A folder of another
/// purpose, such as `mu-check-studio-demo`, has no such name and is never removed.
const PREFIX: &str = "mu-check-studio-scratch-";
/// Number of random letters and digits at the end of a name.
const LETTERS: usize = 12;
/// Age from which a folder without a lock belongs to no server: a new one is locked at once.
const AGE: Duration = Duration::from_secs(60);

/// The folder.
pub(crate) struct Scratch {
    folder: tempfile::TempDir,
    _lock: Option<FolderLock>,
}

impl Scratch {
    /// Creates a folder, and removes those of servers that were killed.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub(crate) fn new() -> std::io::Result<Self> {
        let parent = std::env::temp_dir();
        remove_abandoned(&parent, AGE);
        Self::new_in(&parent)
    }

    fn new_in(parent: &Path) -> std::io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix(PREFIX).rand_bytes(LETTERS).tempdir_in(parent)?;
        let lock = lock_folder(folder.path(), true);
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// True if a server gives a folder such a name.
fn is_name(name: &str) -> bool {
    let letters = name.strip_prefix(PREFIX).unwrap_or("");
    letters.len() == LETTERS && letters.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Removes the folders that no server has locked, if they are of this age. A folder that cannot be
/// removed, or of a file system without locks, remains.
fn remove_abandoned(parent: &Path, age: Duration) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok) {
        let is_ours = is_name(&entry.file_name().to_string_lossy());
        let old = |m: std::fs::Metadata| {
            m.is_dir() && m.modified().is_ok_and(|t| t.elapsed().is_ok_and(|e| e >= age))
        };
        // Metadata of the entry itself: a link is no folder.
        if !is_ours || !entry.metadata().is_ok_and(old) {
            continue;
        }
        if lock_folder(&entry.path(), true).is_some_and(|lock| lock.is_effective()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_killed_servers_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = Scratch::new_in(parent.path()).unwrap();
        let left = parent.path().join(format!("{PREFIX}Left12345678"));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("rows.csv"), "n").unwrap();
        // Folders of users, which have similar names.
        let others =
            ["mu-check-other", "mu-check-studio-test-4N6z57", "mu-check-studio-scratch-mine"]
                .map(|name| parent.path().join(name));
        others.iter().for_each(|other| std::fs::create_dir(other).unwrap());
        // A young folder may be about to be locked.
        remove_abandoned(parent.path(), AGE);
        assert!(left.exists());
        remove_abandoned(parent.path(), Duration::ZERO);
        assert!(!left.exists() && used.path().exists());
        assert!(others.iter().all(|other| other.exists()), "folders of users remain");
        let path = used.path().to_path_buf();
        drop(used);
        assert!(!path.exists());
    }
}
