//! Host for browsers: a page runs one command in an instance of the module, provides files and
//! arguments, and receives the output.
//!
//! The state here is global, like the state of a process; an instance of the module corresponds to
//! a process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{BufRead, Error, ErrorKind, Read, Result, Write};
use std::ops::{Add, Sub};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Functions that the page provides.
#[derive(Clone, Copy)]
pub struct Host {
    /// Monotonic time since some fixed moment.
    pub now: fn() -> Duration,
    /// Receives bytes of a stream: 1 is standard output, 2 standard error.
    pub write: fn(u32, &[u8]),
    /// True if the user stops the run.
    pub stopped: fn() -> bool,
    /// Receives a file that the program has written completely.
    pub keep: fn(&Path, &[u8]),
    /// Runs the program with these arguments in an instance of its own, with all files of this one,
    /// to its end.
    pub start: fn(&[String]) -> Ended,
}

/// Exit code and output of another instance.
pub struct Ended {
    /// Its exit code; `None` if the instance crashed.
    pub code: Option<u8>,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: Vec<u8>,
}

/// True if the host is a page: no threads, no terminal, one process.
pub const IS_PAGE: bool = true;

/// State that the page provides and the program changes.
struct PageState {
    arguments: Vec<String>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Folders that the program has created.
    folders: BTreeSet<PathBuf>,
}

static HOST: OnceLock<Host> = OnceLock::new();
static PAGE_STATE: Mutex<PageState> = Mutex::new(PageState {
    arguments: Vec::new(),
    files: BTreeMap::new(),
    folders: BTreeSet::new(),
});

fn page_state() -> MutexGuard<'static, PageState> {
    PAGE_STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the host; only the first call has an effect.
pub fn install(host: Host) {
    HOST.get_or_init(|| host);
}

/// Sets the arguments of the command line, the program's name first.
pub fn begin(arguments: Vec<String>) {
    page_state().arguments = arguments;
}

/// Adds a file with these bytes, or removes it.
pub fn put(path: PathBuf, bytes: Option<Vec<u8>>) {
    match bytes {
        Some(bytes) => page_state().files.insert(path, bytes),
        None => page_state().files.remove(&path),
    };
}

/// Returns the paths of all files.
pub fn files() -> Vec<PathBuf> {
    page_state().files.keys().cloned().collect()
}

/// Returns the arguments of the command line, the program's name first.
pub fn arguments() -> Vec<String> {
    page_state().arguments.clone()
}

/// Returns the arguments as words of the system, the program's name first.
pub fn exact_arguments() -> Vec<OsString> {
    arguments().into_iter().map(OsString::from).collect()
}

/// Output stream that the page receives.
pub struct Stream(u32);

impl Stream {
    /// Returns the stream itself: there is no other writer.
    #[must_use]
    pub fn lock(self) -> Self {
        self
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        if let Some(host) = HOST.get() {
            (host.write)(self.0, bytes);
        }
        Ok(bytes.len())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Returns the standard output.
pub fn out() -> Stream {
    Stream(1)
}

/// Returns the standard error.
pub fn err() -> Stream {
    Stream(2)
}

/// Standard input, which a page does not have: reading from it is an error.
pub struct Input;

impl Input {
    /// Returns the input itself: there is no other reader.
    #[must_use]
    pub fn lock(self) -> Self {
        self
    }
}

fn no_input() -> Error {
    Error::new(ErrorKind::Unsupported, "a page has no standard input")
}

impl Read for Input {
    fn read(&mut self, _: &mut [u8]) -> Result<usize> {
        Err(no_input())
    }
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> Result<&[u8]> {
        Err(no_input())
    }
    fn consume(&mut self, _: usize) {}
}

/// Returns the standard input.
pub fn input() -> Input {
    Input
}

/// Returns a number for names of files that only this process writes.
pub fn process_id() -> u32 {
    1
}

/// True if the user stops the run. The page limits how often it polls.
pub fn is_stop_requested() -> bool {
    HOST.get().is_some_and(|host| (host.stopped)())
}

/// Runs the program with these arguments, the program's name first, in an instance of its own.
pub fn start(words: &[String]) -> Ended {
    match HOST.get() {
        Some(host) => (host.start)(words),
        None => Ended { code: None, out: Vec::new(), err: Vec::new() },
    }
}

/// Returns the bytes of a file.
///
/// # Errors
/// The page has not provided the file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path)
}

/// Opens a file for reading.
///
/// # Errors
/// There is no such file.
pub fn open(path: &Path) -> Result<fs::File> {
    fs::File::open(path)
}

/// Creates a file, or empties it.
///
/// # Errors
/// The name is that of a folder.
pub fn create(path: &Path) -> Result<fs::File> {
    fs::File::create(path)
}

/// Returns the entries of a folder.
///
/// # Errors
/// There is no such folder.
pub fn read_dir(path: &Path) -> Result<impl Iterator<Item = Result<fs::DirEntry>>> {
    fs::read_dir(path)
}

/// Drops a large value: the page lives longer than a run.
pub fn leave<T>(large: T) {
    drop(large);
}

/// True if there is a file of this name.
pub fn is_file(path: &Path) -> bool {
    page_state().files.contains_key(&fs::plain(path))
}

/// True if there is a folder of this name.
pub fn is_dir(path: &Path) -> bool {
    fs::has_folder(&page_state(), &fs::plain(path))
}

/// In-memory files with the interface of `std::fs`, as far as the program uses it. The page
/// receives a file when it is complete: when it is closed or renamed.
pub mod fs;

/// Returns the path without `.` and `..`.
pub fn real_path(path: &Path) -> PathBuf {
    fs::plain(path)
}

/// Returns the file that a name denotes: a page has no links.
pub fn link_target(path: &Path) -> PathBuf {
    path.to_path_buf()
}

/// Returns false: a page has no devices.
pub fn is_device(_path: &Path) -> bool {
    false
}

/// Does nothing: files of a page have no permissions.
///
/// # Errors
/// None.
pub fn copy_permissions(_from: &Path, _to: &Path) -> Result<()> {
    Ok(())
}

/// Lock on a folder: a page has no other process.
pub struct FolderLock;

impl FolderLock {
    /// Returns false: a page has no locks.
    pub fn is_effective(&self) -> bool {
        false
    }
}

/// Locks a folder. Never `None`, because no other process shares the files of a page.
pub fn lock_folder(_path: &Path, _alone: bool) -> Option<FolderLock> {
    Some(FolderLock)
}

/// Point in time, with the interface of `std::time::Instant`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self(HOST.get().map_or(Duration::ZERO, |host| (host.now)()))
    }
    /// Returns the time since then.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }
    /// Returns the time since an earlier point; zero if it is later.
    #[must_use]
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, more: Duration) -> Self {
        Self(self.0 + more)
    }
}

/// Bytes of a page of the module's memory.
const PAGE: u64 = 1 << 16;
/// Number of pages that 32-bit addresses can reach.
const MAX_PAGES: u64 = 1 << 16;

/// Returns the size of the module's memory, which never shrinks.
pub fn resident_bytes() -> u64 {
    core::arch::wasm32::memory_size::<0>() as u64 * PAGE
}

/// Returns the same: the memory never shrinks.
pub fn peak_resident_bytes() -> u64 {
    resident_bytes()
}

/// Returns the limit on the module's memory. Never `None`.
pub fn available_memory() -> Option<u64> {
    Some(MAX_PAGES * PAGE)
}
