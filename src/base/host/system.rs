//! The host is an operating system: the standard library has all of it.

use std::io::{Result, Stderr, Stdin, Stdout};
use std::path::{Path, PathBuf};

pub use std::fs;
pub use std::time::Instant;

/// The host is no page: there are threads, signals and processes.
pub const IS_PAGE: bool = false;

/// The words of the command line, the program's name first.
pub fn arguments() -> Vec<String> {
    std::env::args().collect()
}

/// Standard output.
pub fn out() -> Stdout {
    std::io::stdout()
}

/// Standard error.
pub fn err() -> Stderr {
    std::io::stderr()
}

/// Standard input.
pub fn input() -> Stdin {
    std::io::stdin()
}

/// A number for names of files that only this process writes.
pub fn process_id() -> u32 {
    std::process::id()
}

/// Whether the run is asked to end, where signals do not say it.
#[inline]
pub const fn stopped() -> bool {
    false
}

/// Whether there is a file of this name.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Whether there is a folder of this name.
pub fn is_dir(path: &Path) -> bool {
    path.is_dir()
}

/// Leaves what is large and made of many parts where it is until the process ends, whose memory the system takes back at once.
pub fn leave<T>(large: T) {
    std::mem::forget(large);
}

/// A path without links, so that two paths to one file are equal.
pub fn real_path(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// A lock on a folder, which ends with this value or with the process.
pub struct FolderLock {
    /// The open folder; `None` if its file system has no locks.
    _folder: Option<fs::File>,
}

/// Locks a folder, against all other locks if `alone`, else against locks that are alone. The lock
/// is that of the operating system on the folder itself, so no file is left behind. `None`: another
/// process or another value holds a lock that excludes this one.
pub fn lock_folder(path: &Path, alone: bool) -> Option<FolderLock> {
    let Ok(folder) = fs::File::open(path) else { return Some(FolderLock { _folder: None }) };
    match if alone { folder.try_lock() } else { folder.try_lock_shared() } {
        Ok(()) => Some(FolderLock { _folder: Some(folder) }),
        Err(fs::TryLockError::WouldBlock) => None,
        Err(fs::TryLockError::Error(_)) => Some(FolderLock { _folder: None }),
    }
}

/// The bytes of a file.
///
/// # Errors
/// The file cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path)
}

/// Resident bytes of this process now; 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    status_kib("VmRSS:") * 1024
}

/// Highest resident bytes of this process so far; 0 where the system does not say.
pub fn peak_resident_bytes() -> u64 {
    status_kib("VmHWM:") * 1024
}

/// The beginning of a small file of the system. One read, where reading to the end takes a dozen: the system does not say how long such a file is.
fn beginning(path: &str) -> Option<String> {
    use std::io::Read;
    let mut bytes = [0; 4096];
    let length = std::fs::File::open(path).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

fn status_kib(key: &str) -> u64 {
    let Some(text) = beginning("/proc/self/status") else { return 0 };
    text.lines().find_map(|l| l.strip_prefix(key)).and_then(|v| v.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Bytes of memory that this process may use: the machine's, or its control group's if that is less. `None` where nothing says.
pub fn available_memory() -> Option<u64> {
    let machine = beginning("/proc/meminfo").and_then(|text| {
        let kib: u64 = text.lines().find_map(|l| l.strip_prefix("MemTotal:"))?.split_whitespace().next()?.parse().ok()?;
        Some(kib * 1024)
    });
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .find_map(|p| beginning(p)?.trim().parse::<u64>().ok());
    match (machine, group) {
        (Some(m), Some(g)) => Some(m.min(g)),
        (m, g) => m.or(g),
    }
}
