//! The host is a page, which runs one command in an instance of the module: it hands in the files
//! and the words, and takes what is written.
//!
//! The state here is global, as a process's is; an instance of the module is a process.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Error, ErrorKind, Read, Result, Write};
use std::ops::{Add, Sub};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// What the page can do.
#[derive(Clone, Copy)]
pub struct Host {
    /// Time since some moment, never less than before.
    pub now: fn() -> Duration,
    /// Takes bytes of a stream: 1 is standard output, 2 standard error.
    pub write: fn(u32, &[u8]),
    /// Whether the run is asked to end.
    pub stopped: fn() -> bool,
    /// Takes a file that the program wrote, which is whole.
    pub keep: fn(&Path, &[u8]),
    /// Runs the program with these words in an instance of its own, with all files of this one, to
    /// its end.
    pub start: fn(&[String]) -> Ended,
}

/// How another instance ended, and what it said.
pub struct Ended {
    /// Its exit code; none if it was lost.
    pub code: Option<u8>,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: Vec<u8>,
}

/// The host is a page: no threads, no terminal, one process.
pub const IS_PAGE: bool = true;

/// What was handed in, and what was written since.
struct Given {
    arguments: Vec<String>,
    files: BTreeMap<PathBuf, Vec<u8>>,
    /// Folders that were made.
    folders: BTreeSet<PathBuf>,
}

static HOST: OnceLock<Host> = OnceLock::new();
static GIVEN: Mutex<Given> =
    Mutex::new(Given { arguments: Vec::new(), files: BTreeMap::new(), folders: BTreeSet::new() });

fn given() -> MutexGuard<'static, Given> {
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says who the host is; the first one stays.
pub fn install(host: Host) {
    HOST.get_or_init(|| host);
}

/// The words of the command line, the program's name first.
pub fn begin(arguments: Vec<String>) {
    given().arguments = arguments;
}

/// A file is there, with these bytes, or is not there any more.
pub fn put(path: PathBuf, bytes: Option<Vec<u8>>) {
    match bytes {
        Some(bytes) => given().files.insert(path, bytes),
        None => given().files.remove(&path),
    };
}

/// The files that are there.
pub fn files() -> Vec<PathBuf> {
    given().files.keys().cloned().collect()
}

/// The words of the command line, the program's name first.
pub fn arguments() -> Vec<String> {
    given().arguments.clone()
}

/// A stream that the page takes.
pub struct Stream(u32);

impl Stream {
    /// Nobody else writes.
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

/// Standard output.
pub fn out() -> Stream {
    Stream(1)
}

/// Standard error.
pub fn err() -> Stream {
    Stream(2)
}

/// Standard input, which a page does not have: reading from it says so.
pub struct Input;

impl Input {
    /// Nobody else reads.
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

/// Standard input.
pub fn input() -> Input {
    Input
}

/// A number for names of files that only this process writes.
pub fn process_id() -> u32 {
    1
}

/// Whether the run is asked to end. The page says so; it decides how often it looks.
pub fn stopped() -> bool {
    HOST.get().is_some_and(|host| (host.stopped)())
}

/// Runs the program with these words, the program's name first, in an instance of its own.
pub fn start(words: &[String]) -> Ended {
    match HOST.get() {
        Some(host) => (host.start)(words),
        None => Ended { code: None, out: Vec::new(), err: Vec::new() },
    }
}

/// The bytes of a file.
///
/// # Errors
/// The file was not handed in.
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

/// Makes a file, or empties it.
///
/// # Errors
/// The name is that of a folder.
pub fn create(path: &Path) -> Result<fs::File> {
    fs::File::create(path)
}

/// The entries of a folder.
///
/// # Errors
/// There is no such folder.
pub fn read_dir(path: &Path) -> Result<impl Iterator<Item = Result<fs::DirEntry>>> {
    fs::read_dir(path)
}

/// Gives back what is large: the page lives longer than a run.
pub fn leave<T>(large: T) {
    drop(large);
}

/// Whether there is a file of this name.
pub fn is_file(path: &Path) -> bool {
    given().files.contains_key(&fs::plain(path))
}

/// Whether there is a folder of this name.
pub fn is_dir(path: &Path) -> bool {
    fs::has_folder(&given(), &fs::plain(path))
}

/// Files as the standard library has them, as far as the program uses them, in memory. A file is
/// told to the page when it is whole: when it is closed, or renamed.
pub mod fs;

/// A path without steps that lead nowhere.
pub fn real_path(path: &Path) -> PathBuf {
    fs::plain(path)
}

/// A lock on a folder: a page has no other process.
pub struct FolderLock;

/// Locks a folder.
pub fn lock_folder(_path: &Path, _alone: bool) -> Option<FolderLock> {
    Some(FolderLock)
}

/// A moment, as that of the standard library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    /// This one.
    #[must_use]
    pub fn now() -> Self {
        Self(HOST.get().map_or(Duration::ZERO, |host| (host.now)()))
    }
    /// Time since then.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }
    /// Time since an earlier moment; none if it is later.
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
/// Pages that addresses of 32 bits can tell.
const MOST_PAGES: u64 = 1 << 16;

/// Bytes of the module's memory, which grows and never shrinks.
pub fn resident_bytes() -> u64 {
    core::arch::wasm32::memory_size::<0>() as u64 * PAGE
}

/// The same.
pub fn peak_resident_bytes() -> u64 {
    resident_bytes()
}

/// Bytes that it may have.
pub fn available_memory() -> Option<u64> {
    Some(MOST_PAGES * PAGE)
}
