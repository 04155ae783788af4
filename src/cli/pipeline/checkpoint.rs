//! Checkpoint store in a folder: each checkpoint is written to a temporary file and renamed, so
//! that an interrupted write leaves the previous one intact.
//!
//! In: the search between two rounds. Out: `DIR/search.checkpoint` for the states of a model,
//! `DIR/FORMULA_SEPARATOR-SUM-SEARCH.checkpoint` for each search of a formula. See
//! [`mu_explore::CheckpointImage`] for the format.
//!
//! Invariant: all files of a folder use the same numbering of the model's values; each file lists
//! the values that existed when it was written. Therefore a resumed run reads the longest list
//! first, and a new run removes old files. The same holds for the states of a formula.

use crate::output;
use crate::pipeline::begun;
use crate::pipeline::file_error;
use crate::pipeline::files::with_name;
use crate::pipeline::folder_lock::Locks;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use mu_explore::{CheckpointHeader, CheckpointImage, CheckpointWriter, RestoredSearch};
use mu_model::Model;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// File name for a search that counts states.
const NAME: &str = "search.checkpoint";
/// Extension of all files.
const ENDING: &str = ".checkpoint";
/// Separator of the model and the formula in a fingerprint.
const FORMULA_SEPARATOR: &str = "; formula: ";

/// A checkpoint folder for searches of one model.
pub(crate) struct Folder<'m> {
    model: &'m dyn Model,
    folder: PathBuf,
    every: Duration,
    last: Mutex<Instant>,
    log: bool,
    /// True after a value could not be written: no more checkpoints are written.
    unwritable: AtomicBool,
    _locks: Locks,
}

/// A checkpoint file in a folder.
pub(crate) struct CheckpointFile<'f> {
    folder: &'f Folder<'f>,
    name: String,
    fingerprint: String,
}

impl<'m> Folder<'m> {
    /// Creates the folder if needed. A folder that cannot be written and a model without
    /// checkpoints are errors now; values that cannot be written are reported later. `locks`: see
    /// [`Locks::of_checkpoints`].
    pub(crate) fn new(
        model: &'m dyn Model,
        folder: &Path,
        every: Duration,
        log: bool,
        locks: Locks,
    ) -> Result<Self, Diagnostic> {
        mu_base::host::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        let probe = folder.join(format!("{NAME}.probe"));
        mu_base::host::fs::write(&probe, b"")
            .map_err(|e| file_error("cannot write", &probe, &e))?;
        mu_base::host::fs::remove_file(&probe)
            .map_err(|e| file_error("cannot remove", &probe, &e))?;
        let unwritable = match model.export_values() {
            Ok(_) => false,
            Err(error) if model.fingerprint().is_some() && error.stage == Stage::Unsupported => {
                eprintln!("warning: {}, so no checkpoint is written", error.message);
                true
            }
            Err(error) => return Err(error),
        };
        if let (false, Some(slot)) = (unwritable, model.unexportable_slot()) {
            eprintln!(
                "warning: {slot} may contain functions; after a function that cannot be stored in a file, no more checkpoints are written"
            );
        }
        output::expect_checkpoint();
        Ok(Self {
            model,
            folder: folder.to_path_buf(),
            every,
            last: Mutex::new(Instant::now()),
            log,
            unwritable: AtomicBool::new(unwritable),
            _locks: locks,
        })
    }
    /// Marks the folder as that of a run without a checkpoint.
    pub(crate) fn mark(&self) -> Result<(), Diagnostic> {
        begun::mark(&self.folder, &fingerprint(self.model))
    }
    /// Returns the file of the search that counts states.
    pub(crate) fn counts(&self) -> CheckpointFile<'_> {
        CheckpointFile { folder: self, name: NAME.into(), fingerprint: fingerprint(self.model) }
    }
    /// Removes the checkpoints of formulas on this model.
    pub(crate) fn clear(&self) -> Result<(), Diagnostic> {
        for (path, _) in formula_checkpoints(self.model, &self.folder)? {
            mu_base::host::fs::remove_file(&path)
                .map_err(|e| file_error("cannot remove", &path, &e))?;
        }
        Ok(())
    }
}

/// Checkpoints of formulas to resume from: the folder and the headers.
pub(crate) struct FormulaCheckpoints {
    folder: PathBuf,
    headers: Vec<CheckpointHeader>,
}

impl FormulaCheckpoints {
    /// Reads the headers of all searches in a folder, and sets the numbering of values of the
    /// model, which must be unexplored.
    pub(crate) fn read(model: &dyn Model, folder: &Path) -> Result<Self, Diagnostic> {
        let headers: Vec<CheckpointHeader> =
            formula_checkpoints(model, folder)?.into_iter().map(|(_, header)| header).collect();
        match headers.iter().max_by_key(|h| h.values.iter().map(Vec::len).sum::<usize>()) {
            Some(longest) => model.import_values(&longest.values)?,
            None if begun::is_marked(folder, &fingerprint(model)) => begun::report(folder),
            None => {
                let message = format!(
                    "{}: there is no checkpoint of a formula on this model",
                    folder.display()
                );
                return Err(Diagnostic::new(Stage::File, message).note(SAME_ARGUMENTS_NOTE));
            }
        }
        Ok(Self { folder: folder.to_path_buf(), headers })
    }
    /// True if there are no checkpoints.
    pub(crate) fn is_empty(&self) -> bool {
        self.headers.is_empty()
    }
}

/// Returns the files of searches of formulas on a model.
fn formula_checkpoints(
    model: &dyn Model,
    folder: &Path,
) -> Result<Vec<(PathBuf, CheckpointHeader)>, Diagnostic> {
    let unread = |e: std::io::Error| file_error("cannot read the folder", folder, &e);
    let ours = format!("{}{FORMULA_SEPARATOR}", fingerprint(model));
    let mut found = Vec::new();
    for entry in mu_base::host::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if path.to_string_lossy().ends_with(ENDING) {
            let file =
                mu_base::host::open(&path).map_err(|e| file_error("cannot read", &path, &e))?;
            let header =
                CheckpointHeader::read(&mut BufReader::new(file)).map_err(|d| of_file(&path, d))?;
            if header.fingerprint.starts_with(&ours) {
                found.push((path, header));
            }
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(found)
}

/// Checkpoint store of the searches of one formula.
pub(crate) struct Shelf<'f> {
    folder: &'f Folder<'f>,
    /// Prefix of the file names.
    stem: String,
    fingerprint: String,
    names: Vec<Vec<String>>,
    /// The folder to resume from.
    from: Option<&'f Path>,
}

impl<'f> Shelf<'f> {
    /// Opens the store of a formula. `path`: its file; `text`: its text.
    pub(crate) fn new(
        folder: &'f Folder<'f>,
        path: &Path,
        text: &str,
        kept: Option<&'f FormulaCheckpoints>,
    ) -> Self {
        let fingerprint = format!("{}{FORMULA_SEPARATOR}{text}", fingerprint(folder.model));
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let own = kept.iter().flat_map(|k| &k.headers).filter(|h| h.fingerprint == fingerprint);
        let names = own.max_by_key(|h| h.names.len()).map(|h| h.names.clone()).unwrap_or_default();
        let stem = format!("{stem}-{:08x}", crc32fast::hash(text.as_bytes()));
        Self { folder, stem, fingerprint, names, from: kept.map(|k| k.folder.as_path()) }
    }
    fn file(&self, search: &str) -> String {
        format!("{}-{search}{ENDING}", self.stem)
    }
}

impl mu_pbes::CheckpointStore for Shelf<'_> {
    fn names(&self) -> Vec<Vec<String>> {
        self.names.clone()
    }
    fn checkpoints(&self, search: &str) -> Box<dyn CheckpointWriter + '_> {
        Box::new(CheckpointFile {
            folder: self.folder,
            name: self.file(search),
            fingerprint: self.fingerprint.clone(),
        })
    }
    fn restore(&self, search: &str) -> Result<Option<RestoredSearch>, Diagnostic> {
        let Some(path) =
            self.from.map(|f| f.join(self.file(search))).filter(|p| mu_base::host::is_file(p))
        else {
            return Ok(None);
        };
        let agrees = |header: &CheckpointHeader| {
            if self.names.starts_with(&header.names) {
                return Ok(());
            }
            Err(Diagnostic::new(
                Stage::File,
                "the formula states in this checkpoint differ from those in the other checkpoints of the folder",
            ))
        };
        let restored = restore(self.folder.model, &path, &self.fingerprint, &agrees)?;
        if self.folder.log {
            eprintln!("resumes from {} states in {}", restored.states(), path.display());
        }
        Ok(Some(restored))
    }
}

impl CheckpointWriter for CheckpointFile<'_> {
    fn due(&self) -> bool {
        !self.folder.unwritable.load(Ordering::Relaxed)
            && self.folder.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
                >= self.folder.every
    }
    fn keep(&self, image: &CheckpointImage) -> Result<(), Diagnostic> {
        if self.folder.unwritable.load(Ordering::Relaxed) {
            return Ok(());
        }
        output::set_checkpoint_in_progress(true);
        let kept = self.write(image);
        output::set_checkpoint_in_progress(false);
        match kept {
            Err(error) if error.stage == Stage::Unsupported => self.miss(&error),
            kept => kept,
        }
    }
    fn miss(&self, error: &Diagnostic) -> Result<(), Diagnostic> {
        if !self.folder.unwritable.swap(true, Ordering::Relaxed) {
            eprintln!("warning: {}, so no checkpoint is written", error.message);
        }
        Ok(())
    }
}

impl CheckpointFile<'_> {
    fn write(&self, image: &CheckpointImage) -> Result<(), Diagnostic> {
        let values = self.folder.model.export_values()?;
        let header = CheckpointHeader {
            fingerprint: self.fingerprint.clone(),
            values,
            names: image.names().to_vec(),
        };
        let path = replace(&self.folder.folder, &self.name, &|out| image.write(&header, out))?;
        if self.folder.log {
            eprintln!("checkpoint of {} states in {}", image.states(), path.display());
        }
        begun::remove(&self.folder.folder);
        *self.folder.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(())
    }
}

/// Writes a file under a temporary name and renames it when it is complete and on disk. Returns its
/// path.
pub(crate) fn replace(
    folder: &Path,
    name: &str,
    write: &dyn Fn(&mut dyn Write) -> Result<(), Diagnostic>,
) -> Result<PathBuf, Diagnostic> {
    let (path, temporary) = (folder.join(name), folder.join(format!("{name}.part")));
    let failed = |e: std::io::Error| file_error("cannot write", &temporary, &e);
    let file = mu_base::host::create(&temporary).map_err(failed)?;
    let complete = || {
        let mut out = BufWriter::with_capacity(1 << 20, file);
        write(&mut out).map_err(|error| with_name(error, &path))?;
        out.flush().map_err(failed)?;
        out.get_ref().sync_all().map_err(failed)?;
        mu_base::host::fs::rename(&temporary, &path)
            .map_err(|e| file_error("cannot write", &path, &e))
    };
    if let Err(error) = complete() {
        // A part of a checkpoint is of no use, and the disk may be full.
        let _ = mu_base::host::fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(path)
}

/// Note for users if their arguments differ from those of the first run.
const SAME_ARGUMENTS_NOTE: &str =
    "use the same model, formulas, -D values and --confluence as in the run that wrote it";

/// Restores the search that counts states, and sets the numbering of values of the model. `None`:
/// the run ended before its first checkpoint.
pub(crate) fn restore_counts(
    model: &dyn Model,
    folder: &Path,
) -> Result<Option<RestoredSearch>, Diagnostic> {
    let restored = restore(model, &folder.join(NAME), &fingerprint(model), &|_| Ok(()));
    if restored.is_err() && begun::is_marked(folder, &fingerprint(model)) {
        begun::report(folder);
        return Ok(None);
    }
    restored.map(Some)
}

fn restore(
    model: &dyn Model,
    path: &Path,
    fingerprint: &str,
    agrees: &dyn Fn(&CheckpointHeader) -> Result<(), Diagnostic>,
) -> Result<RestoredSearch, Diagnostic> {
    let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
    let mut accept = |header: &CheckpointHeader| {
        if header.fingerprint != fingerprint {
            let message =
                "the checkpoint belongs to another model, or to other parameters or options";
            return Err(Diagnostic::new(Stage::File, message).note(SAME_ARGUMENTS_NOTE));
        }
        agrees(header)?;
        model.import_values(&header.values)
    };
    RestoredSearch::read(&mut BufReader::with_capacity(1 << 20, file), &mut accept)
        .map_err(|d| of_file(path, d))
}

/// Returns the prefix of the fingerprints of all searches of a model.
fn fingerprint(model: &dyn Model) -> String {
    model.fingerprint().unwrap_or_default()
}

pub(crate) fn of_file(path: &Path, mut error: Diagnostic) -> Diagnostic {
    error.message = format!("{}: {}", path.display(), error.message);
    error
}
