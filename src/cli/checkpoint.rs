//! Checkpoints in a folder: written beside, then renamed, so that an interrupted writing leaves the one before whole.
//!
//! In: the search between two rounds. Out: `DIR/search.checkpoint`. See [`crate::explore::Image`] for the form.

use super::output;
use super::pipeline::file_error;
use crate::base::{Diagnostic, Stage};
use crate::compile::Compiled;
use crate::explore::{Header, Image, Keeper, Restored};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Name of the file in the folder.
const NAME: &str = "search.checkpoint";

/// Keeps the search in a folder.
pub(super) struct Folder<'m> {
    model: &'m Compiled,
    folder: PathBuf,
    every: Duration,
    last: Mutex<Instant>,
    say: bool,
}

impl<'m> Folder<'m> {
    /// Makes the folder if it is not there; a search that could not be kept later is refused now.
    pub(super) fn new(model: &'m Compiled, folder: &Path, every: Duration, say: bool) -> Result<Self, Diagnostic> {
        std::fs::create_dir_all(folder).map_err(|e| file_error("cannot make the folder", folder, &e))?;
        let probe = folder.join(format!("{NAME}.probe"));
        std::fs::write(&probe, b"").map_err(|e| file_error("cannot write", &probe, &e))?;
        std::fs::remove_file(&probe).map_err(|e| file_error("cannot remove", &probe, &e))?;
        model.export_values()?;
        Ok(Self { model, folder: folder.to_path_buf(), every, last: Mutex::new(Instant::now()), say })
    }
}

impl Keeper for Folder<'_> {
    fn due(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= self.every
    }
    fn keep(&self, image: &Image) -> Result<(), Diagnostic> {
        output::keeping(true);
        let kept = self.write(image);
        output::keeping(false);
        kept
    }
}

impl Folder<'_> {
    fn write(&self, image: &Image) -> Result<(), Diagnostic> {
        let (path, beside) = (self.folder.join(NAME), self.folder.join(format!("{NAME}.part")));
        let header = Header { fingerprint: self.model.fingerprint(), values: self.model.export_values()? };
        let failed = |e: std::io::Error| file_error("cannot write", &beside, &e);
        let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(&beside).map_err(failed)?);
        image.write(&header, &mut out)?;
        out.flush().map_err(failed)?;
        out.get_ref().sync_all().map_err(failed)?;
        std::fs::rename(&beside, &path).map_err(|e| file_error("cannot write", &path, &e))?;
        if self.say {
            eprintln!("checkpoint of {} states in {}", image.states(), path.display());
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(())
    }
}

/// Reads the search in a folder, and gives the model the numbering of values that goes with it.
pub(super) fn restore(model: &Compiled, folder: &Path) -> Result<Restored, Diagnostic> {
    let path = folder.join(NAME);
    let file = std::fs::File::open(&path).map_err(|e| file_error("cannot read", &path, &e))?;
    let mut accept = |header: &Header| {
        if header.fingerprint != model.fingerprint() {
            let message = "the checkpoint is of another model, or of other parameters or options";
            return Err(Diagnostic::new(Stage::File, message).note("give the model, the -D values and --confluence that it was made with"));
        }
        model.import_values(&header.values)
    };
    let restored = Restored::read(&mut BufReader::with_capacity(1 << 20, file), &mut accept);
    restored.map_err(|mut d| {
        d.message = format!("{}: {}", path.display(), d.message);
        d
    })
}
