//! Host for operating systems: a thin layer over the standard library.

use std::ffi::OsString;
use std::io::{Error, ErrorKind, Result, Stderr, Stdin, Stdout};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub use std::fs;
pub use std::time::Instant;

/// True if the host is a page. Here it is not: there are threads, signals and processes.
pub const IS_PAGE: bool = false;

/// Returns the arguments of the command line, the program's name first. Bytes that are not UTF-8
/// become U+FFFD, so that a message shows the argument.
pub fn arguments() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Returns the arguments as the system gave them, the program's name first.
pub fn exact_arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// Returns the standard output.
pub fn out() -> Stdout {
    std::io::stdout()
}

/// Returns the standard error.
pub fn err() -> Stderr {
    std::io::stderr()
}

/// Returns the standard input.
pub fn input() -> Stdin {
    std::io::stdin()
}

/// Returns a number for names of files that only this process writes.
pub fn process_id() -> u32 {
    std::process::id()
}

/// True if the user stops the run by a means other than signals.
#[inline]
pub const fn is_stop_requested() -> bool {
    false
}

/// Environment variables that confine a process and its children to two folders.
pub const CONFINED: [&str; 2] = ["MU_CHECK_CONFINED", "MU_CHECK_CONFINED_ALSO"];

/// Returns the folders to which this process is confined; empty if it is not.
fn allowed_folders() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let real = |f: PathBuf| std::fs::canonicalize(&f).unwrap_or(f);
        CONFINED.iter().filter_map(std::env::var_os).map(PathBuf::from).map(real).collect()
    })
}

/// Checks that a path stays within the folders to which this process is confined, links resolved.
///
/// # Errors
/// It does not, or its folder does not exist.
pub fn expect_within(path: &Path) -> Result<()> {
    let folders = allowed_folders();
    if folders.is_empty() {
        return Ok(());
    }
    let outside =
        || Error::new(ErrorKind::PermissionDenied, "it is outside the folder of this run");
    let real = match std::fs::symlink_metadata(path) {
        Ok(_) => std::fs::canonicalize(path).map_err(|_| outside())?,
        // For a new file, its folder decides.
        Err(_) => {
            let folder =
                path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
            std::fs::canonicalize(folder)
                .map_err(|_| outside())?
                .join(path.file_name().ok_or_else(outside)?)
        }
    };
    if folders.iter().any(|f| real.starts_with(f)) { Ok(()) } else { Err(outside()) }
}

/// True if there is a file of this name.
pub fn is_file(path: &Path) -> bool {
    path.is_file() && expect_within(path).is_ok()
}

/// True if there is a folder of this name.
pub fn is_dir(path: &Path) -> bool {
    path.is_dir() && expect_within(path).is_ok()
}

/// Opens a file for reading.
///
/// # Errors
/// The file cannot be opened, or is outside the folders of [`expect_within`].
pub fn open(path: &Path) -> Result<std::fs::File> {
    expect_within(path)?;
    std::fs::File::open(path)
}

/// Creates a file, or empties it.
///
/// # Errors
/// As those of [`open`].
pub fn create(path: &Path) -> Result<std::fs::File> {
    expect_within(path)?;
    std::fs::File::create(path)
}

/// Returns the entries of a folder.
///
/// # Errors
/// As those of [`open`].
pub fn read_dir(path: &Path) -> Result<std::fs::ReadDir> {
    expect_within(path)?;
    std::fs::read_dir(path)
}

/// Leaks a large value of many parts: the system frees the memory of the process at once.
pub fn leave<T>(large: T) {
    std::mem::forget(large);
}

/// Returns a path without links, so that two paths to one file are equal.
pub fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Limit on the links from a name to its file; beyond it the last one is the file.
const MAX_LINKS: usize = 40;

/// Returns the file that a name denotes: the target of symbolic links, which need not exist.
pub fn link_target(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else { break };
        target = target.parent().map_or_else(|| next.clone(), |folder| folder.join(&next));
    }
    target
}

/// True if a name denotes neither a file nor a folder, but a pipe, a terminal, or another device.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Gives a file the permissions of another one, if that exists.
///
/// # Errors
/// Those of the system.
pub fn copy_permissions(from: &Path, to: &Path) -> Result<()> {
    match fs::metadata(from) {
        Ok(known) => fs::set_permissions(to, known.permissions()),
        Err(_) => Ok(()),
    }
}

/// Lock on a folder, which ends with this value or with the process.
pub struct FolderLock {
    /// The open folder; `None` if its file system has no locks.
    folder: Option<fs::File>,
}

impl FolderLock {
    /// True if the file system has locks, so that the folder is locked.
    pub fn is_effective(&self) -> bool {
        self.folder.is_some()
    }
}

/// Locks a folder: exclusively if `alone`, else shared. The lock is that of the operating system on
/// the folder itself, so no lock file is needed. `None` if another process or another value holds a
/// conflicting lock.
pub fn lock_folder(path: &Path, alone: bool) -> Option<FolderLock> {
    let Ok(folder) = fs::File::open(path) else { return Some(FolderLock { folder: None }) };
    match if alone { folder.try_lock() } else { folder.try_lock_shared() } {
        Ok(()) => Some(FolderLock { folder: Some(folder) }),
        Err(fs::TryLockError::WouldBlock) => None,
        Err(fs::TryLockError::Error(_)) => Some(FolderLock { folder: None }),
    }
}

/// Returns the bytes of a file.
///
/// # Errors
/// The file cannot be read, or is outside the folders of [`expect_within`].
pub fn read(path: &Path) -> Result<Vec<u8>> {
    expect_within(path)?;
    std::fs::read(path)
}

/// Returns the resident bytes of this process; 0 if the system does not report them.
pub fn resident_bytes() -> u64 {
    status_kib("VmRSS:") * 1024
}

/// Returns the peak resident bytes of this process; 0 if the system does not report them.
pub fn peak_resident_bytes() -> u64 {
    status_kib("VmHWM:") * 1024
}

/// Reads the beginning of a small system file. It takes one read; reading to the end takes a dozen,
/// because the system does not report the length of such a file.
fn read_beginning(path: &str) -> Option<String> {
    use std::io::Read;
    let mut bytes = [0; 4096];
    let length = std::fs::File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

fn status_kib(key: &str) -> u64 {
    let Some(text) = read_beginning("/proc/self/status") else { return 0 };
    text.lines()
        .find_map(|l| l.strip_prefix(key))
        .and_then(|v| v.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Returns the bytes of memory that this process may use: those of the machine, or those of its
/// control group if less. `None` if the system reports neither.
pub fn available_memory() -> Option<u64> {
    let machine = read_beginning("/proc/meminfo").and_then(|text| {
        let kib: u64 = text
            .lines()
            .find_map(|l| l.strip_prefix("MemTotal:"))?
            .split_whitespace()
            .next()?
            .parse()
            .ok()?;
        Some(kib * 1024)
    });
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|p| read_beginning(p)?.trim().parse::<u64>().ok());
    match (machine, group) {
        (Some(m), Some(g)) => Some(m.min(g)),
        (m, g) => m.or(g),
    }
}
