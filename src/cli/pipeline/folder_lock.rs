//! Locks on the folders that a run writes to, so that concurrent runs do not mix their files.
//!
//! In: folders, and the kind of access. Out: a guard that holds the locks. Several runs may read a
//! folder; a run that writes excludes all others. Invariant: a folder that is given twice is locked
//! once, so a run never excludes itself.

use crate::args::CheckpointArgs;
use crate::pipeline::file_error;
use mu_base::host::{FolderLock, fs, lock_folder, real_path};
use mu_base::{Diagnostic, Stage};
use std::path::{Path, PathBuf};

/// Held locks; dropping this value releases them.
#[derive(Default)]
pub(crate) struct Locks {
    held: Vec<(PathBuf, FolderLock)>,
}

impl Locks {
    /// Locks the checkpoint folders: the written one, which is created if missing, and the read
    /// one.
    pub fn of_checkpoints(checkpoints: &CheckpointArgs) -> Result<Self, Diagnostic> {
        let mut locks = Self::default();
        if let Some(folder) = &checkpoints.checkpoint {
            fs::create_dir_all(folder)
                .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        }
        if let Some(folder) = checkpoints.folder() {
            locks.write(folder)?;
        }
        if let Some(folder) = &checkpoints.resume {
            locks.read(folder)?;
        }
        Ok(locks)
    }
    /// Locks a folder that this run writes to.
    pub fn write(&mut self, folder: &Path) -> Result<(), Diagnostic> {
        self.lock(folder, true)
    }
    /// Locks a folder that this run reads.
    pub fn read(&mut self, folder: &Path) -> Result<(), Diagnostic> {
        self.lock(folder, false)
    }
    fn lock(&mut self, folder: &Path, alone: bool) -> Result<(), Diagnostic> {
        let path = real_path(folder);
        if self.held.iter().any(|held| held.0 == path) {
            return Ok(());
        }
        let message = || format!("the folder `{}` is in use by another run", folder.display());
        let used = || {
            Diagnostic::new(Stage::File, message())
                .note("wait until that run ends, or give another folder")
        };
        let lock = lock_folder(folder, alone).ok_or_else(used)?;
        self.held.push((path, lock));
        Ok(())
    }
}
