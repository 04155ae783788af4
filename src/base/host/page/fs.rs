//! Files in memory, under the names that the standard library has for the same: those that the page
//! handed in, and those that the program wrote.
//!
//! In: paths, without regard to `.` and `..`. Out: bytes. Cost: a look-up in a map for each call.
//! Invariant: the page hears of a file when it is whole, so of none that is being written.

use super::{Given, HOST, given};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Component, Path, PathBuf};

/// A path without steps that lead nowhere; the root is the folder of the page.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            Component::ParentDir => _ = plain.pop(),
            Component::Normal(name) => plain.push(name),
        }
    }
    plain
}

pub(super) fn has_folder(given: &Given, plain: &Path) -> bool {
    plain.as_os_str().is_empty()
        || given.folders.contains(plain)
        || given.files.keys().any(|f| f != plain && f.starts_with(plain))
}

fn missing(what: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no such {what} on this page"))
}

/// The page hears of a file.
fn keep(path: &Path) {
    let bytes = given().files.get(path).cloned();
    if let (Some(host), Some(bytes)) = (HOST.get(), bytes) {
        (host.keep)(path, &bytes);
    }
}

/// An open file.
pub struct File {
    path: PathBuf,
    at: usize,
    /// It was made here: the page hears of it when it is closed.
    made: bool,
}

impl File {
    /// Makes a file, or empties it. Its folder is there with it: another instance may have made
    /// that, which hands on files only.
    ///
    /// # Errors
    /// The name is that of a folder.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = plain(path.as_ref());
        let mut given = given();
        if has_folder(&given, &path) {
            return Err(Error::new(ErrorKind::IsADirectory, "it is a folder"));
        }
        given.files.insert(path.clone(), Vec::new());
        Ok(Self { path, at: 0, made: true })
    }
    /// Opens a file to read it.
    ///
    /// # Errors
    /// It is not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = plain(path.as_ref());
        if given().files.contains_key(&path) {
            Ok(Self { path, at: 0, made: false })
        } else {
            Err(missing("file"))
        }
    }
    /// Memory is always up to date.
    ///
    /// # Errors
    /// None.
    pub fn sync_all(&self) -> Result<()> {
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.made {
            keep(&self.path);
        }
    }
}

impl Read for File {
    fn read(&mut self, into: &mut [u8]) -> Result<usize> {
        let given = given();
        let bytes = given.files.get(&self.path).ok_or_else(|| missing("file"))?;
        let rest = bytes.get(self.at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        given().files.get_mut(&self.path).ok_or_else(|| missing("file"))?.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// All bytes of a file.
///
/// # Errors
/// It is not there.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    given().files.get(&plain(path.as_ref())).cloned().ok_or_else(|| missing("file"))
}

/// A file as text.
///
/// # Errors
/// It is not there, or no UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|e| Error::new(ErrorKind::InvalidData, e))
}

/// Writes a file.
///
/// # Errors
/// As those of [`File::create`].
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<()> {
    File::create(path)?.write_all(bytes.as_ref())
}

/// Whether there is a file or a folder of this name.
///
/// # Errors
/// None.
pub fn exists(path: impl AsRef<Path>) -> Result<bool> {
    let path = plain(path.as_ref());
    let given = given();
    Ok(given.files.contains_key(&path) || has_folder(&given, &path))
}

/// Gives a file another name.
///
/// # Errors
/// It is not there.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    let to = plain(to.as_ref());
    let mut now = given();
    let bytes = now.files.remove(&plain(from.as_ref())).ok_or_else(|| missing("file"))?;
    now.files.insert(to.clone(), bytes);
    drop(now);
    keep(&to);
    Ok(())
}

/// Removes a file.
///
/// # Errors
/// It is not there.
pub fn remove_file(path: impl AsRef<Path>) -> Result<()> {
    given().files.remove(&plain(path.as_ref())).map(|_| ()).ok_or_else(|| missing("file"))
}

/// Makes a folder, and those that it is in.
///
/// # Errors
/// There is a file of this name.
pub fn create_dir_all(path: impl AsRef<Path>) -> Result<()> {
    let path = plain(path.as_ref());
    let mut given = given();
    for folder in path.ancestors().filter(|p| !p.as_os_str().is_empty()) {
        if given.files.contains_key(folder) {
            return Err(Error::new(ErrorKind::AlreadyExists, "there is a file of this name"));
        }
        given.folders.insert(folder.to_path_buf());
    }
    Ok(())
}

/// What a folder holds.
///
/// # Errors
/// It is not there.
pub fn read_dir(path: impl AsRef<Path>) -> Result<impl Iterator<Item = Result<DirEntry>>> {
    let (path, given) = (plain(path.as_ref()), given());
    if !has_folder(&given, &path) {
        return Err(missing("folder"));
    }
    let below = |p: &PathBuf| {
        p.strip_prefix(&path)
            .ok()
            .and_then(|rest| rest.components().next())
            .map(|first| path.join(first))
    };
    let mut names: Vec<PathBuf> =
        given.files.keys().chain(&given.folders).filter_map(below).collect();
    names.sort();
    names.dedup();
    let entry = |path: PathBuf| Ok(DirEntry { is_dir: !given.files.contains_key(&path), path });
    Ok(names.into_iter().map(entry).collect::<Vec<_>>().into_iter())
}

/// A file or a folder in a folder; its own kind as well.
#[derive(Clone)]
pub struct DirEntry {
    path: PathBuf,
    is_dir: bool,
}

impl DirEntry {
    /// Its path.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }
    /// What it is.
    ///
    /// # Errors
    /// None.
    pub fn file_type(&self) -> Result<Self> {
        Ok(self.clone())
    }
    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.is_dir
    }
}
