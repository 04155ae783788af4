//! Temporary folder of a server, for files that pass between its runs.
//!
//! In: nothing. Out: a folder that is removed when the server ends. A server that is killed leaves
//! its folder behind; the next one removes it. Invariant: a folder in use is locked, so that no
//! other server removes it.

use mu_base::host::{FolderLock, lock_folder};
use std::path::Path;
use std::time::Duration;

/// First letters of the names of such folders.
const PREFIX: &str = "mu-check-studio";
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
        Self::within(&parent)
    }

    fn within(parent: &Path) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = lock_folder(folder.path(), true);
        Ok(Self { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders that no server has locked, if they are of this age. A folder that cannot be
/// removed, or of a file system without locks, remains.
fn remove_abandoned(parent: &Path, age: Duration) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok) {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
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
        let used = Scratch::within(parent.path()).unwrap();
        let left = parent.path().join(format!("{PREFIX}Left"));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("rows.csv"), "n").unwrap();
        let other = parent.path().join("mu-check-other");
        std::fs::create_dir(&other).unwrap();
        // A young folder may be about to be locked.
        remove_abandoned(parent.path(), AGE);
        assert!(left.exists());
        remove_abandoned(parent.path(), Duration::ZERO);
        assert!(!left.exists() && other.exists() && used.path().exists());
        let path = used.path().to_path_buf();
        drop(used);
        assert!(!path.exists());
    }
}
