//! Checkpoints of a distributed search in a folder that all processes share:
//! `round-NUMBER.PROCESS-of-PROCESSES.share`, see [`mu_explore::Stamp`].
//!
//! In: the partition of a process. Out: a file, written under a temporary name and then renamed. A
//! checkpoint is complete if the files of all processes exist with the same run and number. Any
//! number of processes can resume from the newest complete checkpoint. Process 0 removes older
//! ones.
//!
//! Each search of a formula has a subfolder, named by the formula and a checksum of its text
//! ([`Rack`]).
//!
//! Invariant: if a process is killed at any time, the folder still contains the last complete
//! checkpoint.

use crate::args::CheckpointArgs;
use crate::output;
use crate::pipeline::begun;
use crate::pipeline::checkpoint::{of_file, replace};
use crate::pipeline::file_error;
use mu_base::host::Instant;
use mu_base::{Diagnostic, Stage};
use mu_cluster::{PartitionStore, PartitionStores};
use mu_explore::{Partition, Stamp, expect_sound};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Extension of all files.
const ENDING: &str = ".share";

/// Checkpoint store of a distributed search.
pub(crate) struct Shares {
    folder: PathBuf,
    every: Duration,
    last: Mutex<Instant>,
    fingerprint: String,
    log: bool,
    me: usize,
    processes: usize,
    /// The folder and stamp of the checkpoint to resume from.
    from: Option<(PathBuf, Stamp)>,
    /// The folder with the marker of the run, see [`begun`].
    marked: PathBuf,
}

/// Marks the folder of a run that begins. This happens before the processes connect, because a
/// limit may end the run before.
pub(crate) fn mark(checkpoints: &CheckpointArgs, fingerprint: &str) -> Result<(), Diagnostic> {
    checkpoints.folder().map_or(Ok(()), |folder| begun::mark(folder, fingerprint))
}

fn name(number: u64, process: u32, processes: u32) -> String {
    format!("round-{number:06}.{process}-of-{processes}{ENDING}")
}

/// Returns the number and the process count of a file's checkpoint.
fn parse(path: &Path) -> Option<(u64, u32)> {
    let name = path.file_name()?.to_str()?.strip_prefix("round-")?.strip_suffix(ENDING)?;
    let (number, rest) = name.split_once('.')?;
    let (_, processes) = rest.split_once("-of-")?;
    Some((number.parse().ok()?, processes.parse().ok()?))
}

/// Returns the partition files in a folder, including partially written ones.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    let unread = |e: std::io::Error| file_error("cannot read the folder", folder, &e);
    let mut found = Vec::new();
    for entry in mu_base::host::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        let text = path.to_string_lossy();
        if text.ends_with(ENDING) || text.ends_with(&format!("{ENDING}.part")) {
            found.push(path);
        }
    }
    Ok(found)
}

fn stamp(path: &Path) -> Result<Stamp, Diagnostic> {
    let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
    Stamp::read(&mut BufReader::new(file)).map_err(|d| of_file(path, d))
}

/// Returns the newest complete checkpoint in a folder: the stamp of its first file.
fn newest(folder: &Path) -> Result<Stamp, Diagnostic> {
    let all: BTreeSet<(u64, u32)> = files(folder)?.iter().filter_map(|path| parse(path)).collect();
    let mut why = Vec::new();
    for (number, processes) in all.into_iter().rev() {
        let mut first: Option<Stamp> = None;
        let missing = (0..processes).find_map(|process| {
            let path = folder.join(name(number, process, processes));
            let own = match stamp(&path) {
                Ok(own) => own,
                Err(error) => return Some(error.message),
            };
            let named = (own.number, own.process, own.processes) == (number, process, processes);
            if !named {
                return Some(format!(
                    "{}: it is damaged, or another file of a checkpoint under a wrong name",
                    path.display()
                ));
            }
            let same_run = first.get_or_insert_with(|| own.clone()).is_same_checkpoint(&own);
            (!same_run).then(|| {
                format!(
                    "{} and {}: they belong to different runs, or one of them is damaged",
                    folder.join(name(number, 0, processes)).display(),
                    path.display()
                )
            })
        });
        match (first, missing) {
            (Some(first), None) => return Ok(first),
            (_, missing) => why.extend(missing),
        }
    }
    let message =
        format!("{}: there is no complete checkpoint of a distributed search", folder.display());
    let error = Diagnostic::new(Stage::File, message)
        .note("all processes must share this folder, with the files of all processes");
    Err(why.into_iter().take(3).fold(error, Diagnostic::note))
}

/// Returns the checkpoint to resume from, if the user requested one. It is chosen before the
/// processes connect, so that all use the same. `reports`: true if this process reports.
pub(crate) fn resume_point(
    folder: Option<&Path>,
    fingerprint: &str,
    reports: bool,
) -> Result<Option<(PathBuf, Stamp)>, Diagnostic> {
    let Some(folder) = folder else { return Ok(None) };
    match newest(folder) {
        Ok(stamp) if stamp.fingerprint == fingerprint => Ok(Some((folder.to_path_buf(), stamp))),
        _ if begun::is_marked(folder, fingerprint) => {
            if reports {
                begun::report(folder);
            }
            Ok(None)
        }
        found => found.and_then(|_| Err(other(folder))),
    }
}

impl Shares {
    /// Creates the folder if needed. Fails now if the folder cannot be written later.
    pub(crate) fn new(
        folder: &Path,
        every: Duration,
        fingerprint: String,
        (me, processes): (usize, usize),
        from: Option<(PathBuf, Stamp)>,
        log: bool,
    ) -> Result<Self, Diagnostic> {
        std::fs::create_dir_all(folder)
            .map_err(|e| file_error("cannot create the folder", folder, &e))?;
        let probe = folder.join(format!("{me}.probe"));
        std::fs::write(&probe, b"").map_err(|e| file_error("cannot write", &probe, &e))?;
        std::fs::remove_file(&probe).map_err(|e| file_error("cannot remove", &probe, &e))?;
        output::expect_checkpoint();
        let (folder, last, marked) =
            (folder.to_path_buf(), Mutex::new(Instant::now()), folder.to_path_buf());
        Ok(Self { folder, every, last, fingerprint, log, me, processes, from, marked })
    }
    /// Returns the folder that checkpoints are written to.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
    fn remove(&self, stays: impl Fn(&Path) -> bool) -> Result<(), Diagnostic> {
        for path in files(&self.folder)?.into_iter().filter(|path| !stays(path)) {
            std::fs::remove_file(&path).map_err(|e| file_error("cannot remove", &path, &e))?;
        }
        Ok(())
    }
}

/// The current formula: the prefix of its folders, and its identity.
pub(crate) type Current = Rc<RefCell<(String, String)>>;

/// Checkpoint stores of the searches of formulas.
pub(crate) struct Rack {
    folder: PathBuf,
    every: Duration,
    fingerprint: String,
    places: (usize, usize),
    log: bool,
    current: Current,
    /// The folder to resume from, with its checkpoints by name.
    from: Option<(PathBuf, BTreeMap<String, Stamp>)>,
}

/// Returns the complete checkpoints in a folder, by name. The result is empty if the run ended
/// before the first one. `reports`: true if this process reports.
pub(crate) fn complete_checkpoints(
    folder: &Path,
    fingerprint: &str,
    reports: bool,
) -> Result<BTreeMap<String, Stamp>, Diagnostic> {
    let unread = |e: std::io::Error| file_error("cannot read the folder", folder, &e);
    let mut found = BTreeMap::new();
    for entry in mu_base::host::read_dir(folder).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        // A search without a complete checkpoint starts again.
        if let (true, Some(name)) = (path.is_dir(), path.file_name())
            && let Ok(stamp) = newest(&path)
        {
            found.insert(name.to_string_lossy().into_owned(), stamp);
        }
    }
    // Each process rejects other options before they connect, so that none loses another.
    let of_this_run = formula_fingerprint(fingerprint, "");
    if !found.is_empty() && !found.values().any(|s| s.fingerprint.starts_with(&of_this_run)) {
        return Err(other(folder));
    }
    if found.is_empty() && begun::is_marked(folder, fingerprint) {
        if reports {
            begun::report(folder);
        }
    } else if found.is_empty() {
        let message =
            format!("{}: there is no complete checkpoint of a distributed check", folder.display());
        return Err(Diagnostic::new(Stage::File, message)
            .note("all processes must share this folder, with the files of all processes"));
    }
    Ok(found)
}

impl Rack {
    /// `from`: the folder to resume from, with its checkpoints.
    pub(crate) fn new(
        folder: &Path,
        every: Duration,
        fingerprint: String,
        places: (usize, usize),
        from: Option<(PathBuf, BTreeMap<String, Stamp>)>,
        (log, current): (bool, Current),
    ) -> Self {
        Self { folder: folder.to_path_buf(), every, fingerprint, places, log, current, from }
    }
}

impl PartitionStores for Rack {
    fn shelf(&self, search: &str) -> Result<Box<dyn PartitionStore + '_>, Diagnostic> {
        let (stem, identity) = self.current.borrow().clone();
        let name = format!("{stem}-{search}");
        let fingerprint = formula_fingerprint(&self.fingerprint, &identity);
        let from = self
            .from
            .as_ref()
            .and_then(|(folder, kept)| Some((folder.join(&name), kept.get(&name)?.clone())));
        if let Some((folder, stamp)) = &from
            && stamp.fingerprint != fingerprint
        {
            return Err(other(folder));
        }
        let shares = Shares::new(
            &self.folder.join(&name),
            self.every,
            fingerprint,
            self.places,
            from,
            self.log,
        )?;
        Ok(Box::new(Shares { marked: self.folder.clone(), ..shares }))
    }
}

/// Returns the fingerprint of the search for a formula in a run.
fn formula_fingerprint(run: &str, formula: &str) -> String {
    format!("{run}; formula: {formula}")
}

fn other(folder: &Path) -> Diagnostic {
    let message = format!(
        "{}: the checkpoint belongs to another model, or to other parameters or options",
        folder.display()
    );
    Diagnostic::new(Stage::File, message).note(
        "use the same model, -D values, --confluence and --without as in the run that wrote it",
    )
}

impl PartitionStore for Shares {
    fn resume_stamp(&self) -> Option<&Stamp> {
        self.from.as_ref().map(|f| &f.1)
    }
    fn read(&self, share: &mut Partition<'_>) -> Result<(), Diagnostic> {
        let Some((folder, stamp)) = &self.from else {
            return Err(Diagnostic::internal("no checkpoint to go on from"));
        };
        let open = |path: &Path| {
            let file =
                mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
            Ok::<_, Diagnostic>(BufReader::with_capacity(1 << 20, file))
        };
        // With the same number of processes as before, each process has its own states.
        let alike = stamp.processes as usize == self.processes;
        for process in (0..stamp.processes).filter(|p| !alike || *p as usize == self.me) {
            let path = folder.join(name(stamp.number, process, stamp.processes));
            expect_sound(&mut open(&path)?).map_err(|d| of_file(&path, d))?;
            share
                .read(&mut open(&path)?, process as usize % self.processes == self.me)
                .map_err(|d| of_file(&path, d))?;
        }
        if self.log {
            eprintln!(
                "resumes from {} states of checkpoint {} by {} processes",
                share.tally().stored,
                stamp.number,
                stamp.processes
            );
        }
        Ok(())
    }
    fn keeps(&self) -> bool {
        true
    }
    fn due(&self) -> bool {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= self.every
    }
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }
    fn clear(&self) -> Result<(), Diagnostic> {
        self.remove(|_| false)
    }
    fn keep(&self, share: &mut Partition<'_>, stamp: &Stamp) -> Result<(), Diagnostic> {
        let stored = share.tally().stored;
        let share = RefCell::new(share);
        output::set_checkpoint_in_progress(true);
        let kept =
            replace(&self.folder, &name(stamp.number, stamp.process, stamp.processes), &|out| {
                share.borrow_mut().write(stamp, out)
            });
        output::set_checkpoint_in_progress(false);
        let path = kept?;
        if self.log {
            eprintln!("checkpoint {} of {stored} states in {}", stamp.number, path.display());
        }
        Ok(())
    }
    fn settle(&self, stamp: &Stamp) {
        // Files that cannot be removed are older; they are never resumed from.
        let _ = self.remove(|path| parse(path) == Some((stamp.number, stamp.processes)));
        begun::remove(&self.marked);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}
