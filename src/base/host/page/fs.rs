//! In-memory file system with the names of `std::fs`: files that the page provides and files that
//! the program writes.
//!
//! In: paths, in which `.` and `..` are resolved. Out: bytes. Cost: one map lookup per call.
//! Invariant: the page receives only complete files.

use super::{HOST, PageState, page_state};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::path::{Component, Path, PathBuf};

/// Resolves `.` and `..` in a path; the root is the folder of the page.
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

pub(super) fn has_folder(page_state: &PageState, plain: &Path) -> bool {
    plain.as_os_str().is_empty()
        || page_state.folders.contains(plain)
        || page_state.files.keys().any(|f| f != plain && f.starts_with(plain))
}

fn not_found(what: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no such {what} on this page"))
}

/// Sends a complete file to the page.
fn keep(path: &Path) {
    let bytes = page_state().files.get(path).cloned();
    if let (Some(host), Some(bytes)) = (HOST.get(), bytes) {
        (host.keep)(path, &bytes);
    }
}

/// Open file.
pub struct File {
    path: PathBuf,
    at: usize,
    /// True if this handle created the file: the page receives it when it is closed.
    made: bool,
}

impl File {
    /// Creates a file, or empties it. The folder is created as well: another instance may have made
    /// it, and instances exchange only files.
    ///
    /// # Errors
    /// The name is that of a folder.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = plain(path.as_ref());
        let mut page_state = page_state();
        if has_folder(&page_state, &path) {
            return Err(Error::new(ErrorKind::IsADirectory, "it is a folder"));
        }
        page_state.files.insert(path.clone(), Vec::new());
        Ok(Self { path, at: 0, made: true })
    }
    /// Opens a file for reading.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = plain(path.as_ref());
        if page_state().files.contains_key(&path) {
            Ok(Self { path, at: 0, made: false })
        } else {
            Err(not_found("file"))
        }
    }
    /// Does nothing: memory is always up to date.
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
        let page_state = page_state();
        let bytes = page_state.files.get(&self.path).ok_or_else(|| not_found("file"))?;
        let rest = bytes.get(self.at..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        page_state()
            .files
            .get_mut(&self.path)
            .ok_or_else(|| not_found("file"))?
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Returns all bytes of a file.
///
/// # Errors
/// The file does not exist.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    page_state().files.get(&plain(path.as_ref())).cloned().ok_or_else(|| not_found("file"))
}

/// Returns a file as text.
///
/// # Errors
/// The file does not exist, or is not UTF-8.
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

/// True if there is a file or a folder of this name.
///
/// # Errors
/// None.
pub fn exists(path: impl AsRef<Path>) -> Result<bool> {
    let path = plain(path.as_ref());
    let page_state = page_state();
    Ok(page_state.files.contains_key(&path) || has_folder(&page_state, &path))
}

/// Renames a file.
///
/// # Errors
/// The file does not exist.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<()> {
    let to = plain(to.as_ref());
    let mut now = page_state();
    let bytes = now.files.remove(&plain(from.as_ref())).ok_or_else(|| not_found("file"))?;
    now.files.insert(to.clone(), bytes);
    drop(now);
    keep(&to);
    Ok(())
}

/// Removes a file.
///
/// # Errors
/// The file does not exist.
pub fn remove_file(path: impl AsRef<Path>) -> Result<()> {
    page_state().files.remove(&plain(path.as_ref())).map(|_| ()).ok_or_else(|| not_found("file"))
}

/// Creates a folder and its parents.
///
/// # Errors
/// There is a file of this name.
pub fn create_dir_all(path: impl AsRef<Path>) -> Result<()> {
    let path = plain(path.as_ref());
    let mut page_state = page_state();
    for folder in path.ancestors().filter(|p| !p.as_os_str().is_empty()) {
        if page_state.files.contains_key(folder) {
            return Err(Error::new(ErrorKind::AlreadyExists, "there is a file of this name"));
        }
        page_state.folders.insert(folder.to_path_buf());
    }
    Ok(())
}

/// Returns the entries of a folder.
///
/// # Errors
/// The folder does not exist.
pub fn read_dir(path: impl AsRef<Path>) -> Result<impl Iterator<Item = Result<DirEntry>>> {
    let (path, page_state) = (plain(path.as_ref()), page_state());
    if !has_folder(&page_state, &path) {
        return Err(not_found("folder"));
    }
    let below = |p: &PathBuf| {
        p.strip_prefix(&path)
            .ok()
            .and_then(|rest| rest.components().next())
            .map(|first| path.join(first))
    };
    let mut names: Vec<PathBuf> =
        page_state.files.keys().chain(&page_state.folders).filter_map(below).collect();
    names.sort();
    names.dedup();
    let entry =
        |path: PathBuf| Ok(DirEntry { is_dir: !page_state.files.contains_key(&path), path });
    Ok(names.into_iter().map(entry).collect::<Vec<_>>().into_iter())
}

/// Entry of a folder; it serves as its own file type as well.
#[derive(Clone)]
pub struct DirEntry {
    path: PathBuf,
    is_dir: bool,
}

impl DirEntry {
    /// Returns its path.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }
    /// Returns its file type.
    ///
    /// # Errors
    /// None.
    pub fn file_type(&self) -> Result<Self> {
        Ok(self.clone())
    }
    /// True if it is a folder.
    pub fn is_dir(&self) -> bool {
        self.is_dir
    }
}
