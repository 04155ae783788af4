//! Folder of the page: path validation, listing, reading and writing of files.
//!
//! Invariant: no path leaves the folder, by `..`, from the root, or along a symbolic link; none
//! names a hidden file. Only files with the extensions of the program's text formats are written. A
//! file is written under a temporary name first, so that it is never incomplete.

use crate::http::{HttpError, refusal};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};

/// Endings of files, other than those of models, that the page shows and may write.
const OTHER_TEXTS: [&str; 6] = [".mcf", ".interface", ".faults", ".views", ".md", ".txt"];
/// Endings of logs, which the page lists for `trace`; with them it lists models that are not texts.
const LOGS: [&str; 5] = [".axe", ".log", ".csv", ".jsonl", ".trace"];
/// Limit on the bytes of a file.
const MOST_BYTES: u64 = 4 << 20;
/// Limits on the listed files and on the depth of folders.
const MOST_FILES: usize = 2_000;
const MOST_DEPTH: usize = 8;

/// The folder; see the module documentation.
pub(crate) struct Folder {
    root: PathBuf,
}

impl Folder {
    /// Opens the folder at a path.
    pub(crate) fn new(path: &Path) -> std::io::Result<Self> {
        let root = fs::canonicalize(path)?;
        if !root.is_dir() {
            return Err(std::io::Error::other("not a folder"));
        }
        Ok(Self { root })
    }

    /// Returns the path of the folder, without links.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a name within the folder; the file need not exist.
    pub(crate) fn resolve(&self, name: &str) -> Result<PathBuf, HttpError> {
        let out = || HttpError(403, format!("`{name}` is not a path in this folder"));
        if name.is_empty() || name.len() > 1024 || name.contains(['\0', '\\']) {
            return Err(out());
        }
        let plain = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(':');
        let path = Path::new(name);
        if !name.split('/').all(plain)
            || !path.components().all(|c| matches!(c, Component::Normal(_)))
        {
            return Err(out());
        }
        let whole = self.root.join(path);
        let real = match fs::symlink_metadata(&whole) {
            // A dangling link is rejected here too.
            Ok(_) => fs::canonicalize(&whole).map_err(|_| out())?,
            Err(_) => {
                let parent =
                    whole.parent().and_then(|p| fs::canonicalize(p).ok()).ok_or_else(out)?;
                parent.join(whole.file_name().ok_or_else(out)?)
            }
        };
        if real.starts_with(&self.root) && real != self.root { Ok(real) } else { Err(out()) }
    }

    /// Reads the text of a file.
    pub(crate) fn read(&self, name: &str) -> Result<String, HttpError> {
        let path = self.resolve(name)?;
        let meta = fs::metadata(&path)
            .map_err(|e| HttpError(404, format!("cannot read `{name}`: {e}")))?;
        if !meta.is_file() {
            return refusal(404, format!("`{name}` is not a file"));
        }
        if meta.len() > MOST_BYTES {
            return refusal(413, format!("`{name}` has more than {MOST_BYTES} bytes"));
        }
        let bytes =
            fs::read(&path).map_err(|e| HttpError(404, format!("cannot read `{name}`: {e}")))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| HttpError(415, format!("`{name}` is not UTF-8 text")))?;
        Ok(text.strip_prefix('\u{feff}').map(String::from).unwrap_or(text))
    }

    /// Writes a file. `before`: the text that it must still have; `None`: it must not exist.
    pub(crate) fn write(
        &self,
        name: &str,
        text: &str,
        before: Option<&str>,
    ) -> Result<(), HttpError> {
        let path = self.resolve(name)?;
        if !is_text(&path) {
            return refusal(
                403,
                format!("`{name}`: expected a name that ends in {}", texts().join(", ")),
            );
        }
        if text.len() as u64 > MOST_BYTES {
            return refusal(413, format!("the text has more than {MOST_BYTES} bytes"));
        }
        match before {
            None if path.exists() => return refusal(409, format!("`{name}` already exists")),
            Some(before) if self.read(name)? != before => {
                return refusal(409, format!("`{name}` was changed by another program"));
            }
            _ => {}
        }
        let failed = |e: std::io::Error| HttpError(500, format!("cannot write `{name}`: {e}"));
        let folder = path.parent().unwrap_or(&self.root);
        let mut part = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        part.write_all(text.as_bytes()).map_err(failed)?;
        if let Ok(meta) = fs::metadata(&path) {
            fs::set_permissions(part.path(), meta.permissions()).map_err(failed)?;
        }
        part.persist(&path).map_err(|e| failed(e.error))?;
        Ok(())
    }

    /// Lists the files that the page shows, by name, folders first: `files` are texts, `data` are
    /// other models, and logs.
    pub(crate) fn list(&self) -> Value {
        let mut names = Vec::new();
        self.gather(Path::new(""), 0, &mut names);
        names.sort_by(|a, b| a.split('/').cmp(b.split('/')));
        let all = names.len() < MOST_FILES;
        let (files, data): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| is_text(Path::new(name)));
        let name = self.root.file_name().map(|n| n.to_string_lossy());
        json!({ "name": name, "files": files, "data": data, "all": all })
    }

    fn gather(&self, below: &Path, depth: usize, names: &mut Vec<String>) {
        let entries = self.entries(below);
        for (name, is_folder) in entries {
            if names.len() >= MOST_FILES {
                return;
            }
            let path = below.join(&name);
            if is_folder && depth < MOST_DEPTH && name != "target" && name != "node_modules" {
                self.gather(&path, depth + 1, names);
            } else if !is_folder && (is_text(&path) || is_data(&path)) {
                let name = path.to_string_lossy().replace('\\', "/");
                names.extend(self.resolve(&name).is_ok().then_some(name));
            }
        }
    }

    /// Lists a folder below this one without hidden entries; the flag is true for folders. Links to
    /// folders are left out.
    pub(crate) fn entries(&self, below: &Path) -> Vec<(String, bool)> {
        let entries = fs::read_dir(self.root.join(below)).into_iter().flatten().flatten();
        let mut found: Vec<(String, bool)> = entries
            .filter_map(|e| Some((e.file_name().into_string().ok()?, e.file_type().ok()?.is_dir())))
            .collect();
        found.retain(|(name, _)| !name.starts_with('.'));
        found.sort();
        found
    }
}

/// Returns the endings of files that the page shows and may write: those that editors support.
fn texts() -> Vec<&'static str> {
    let edited = mu_frontends::registry().iter().filter(|f| f.is_edited());
    edited.flat_map(|f| f.endings()).copied().chain(OTHER_TEXTS).collect()
}

fn is_text(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    texts().iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

/// True for a model that is not a text that editors support, and for a log.
fn is_data(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_lowercase()).unwrap_or_default();
    let models = mu_frontends::registry().iter().filter(|f| !f.properties().rejected);
    let mut endings = models.flat_map(|f| f.endings()).chain(&LOGS);
    endings.any(|ending| name.len() > ending.len() && name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_stay_inside() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("in");
        fs::create_dir_all(root.join("below")).unwrap();
        fs::write(outer.path().join("secret.mcf"), "true").unwrap();
        fs::write(root.join("a.mcf"), "true").unwrap();
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        link("../secret.mcf", "out.mcf");
        link("..", "up");
        link("nowhere.mcf", "nowhere.mcf.mcf");
        link("a.mcf", "same.mcf");
        let folder = Folder::new(&root).unwrap();
        for name in [
            "../secret.mcf",
            "below/../../secret.mcf",
            "/etc/passwd",
            "out.mcf",
            "up/secret.mcf",
            "up/new.mcf",
            "nowhere.mcf.mcf",
            "",
            ".",
            "..",
            ".hidden.mcf",
            "below/.git/a.mcf",
            "a//b.mcf",
            "below/",
            "a\0.mcf",
            "..\\secret.mcf",
            "C:/a.mcf",
            "missing/a.mcf",
        ] {
            assert_eq!(folder.resolve(name).map_err(|r| r.0), Err(403), "{name:?}");
        }
        for name in ["a.mcf", "same.mcf", "below/new.mcf"] {
            assert!(folder.resolve(name).is_ok(), "{name}");
        }
        assert_eq!(folder.list()["files"], json!(["a.mcf", "same.mcf"]));
        assert_eq!(folder.write("below/run.sh", "", None).map_err(|r| r.0), Err(403));
        assert_eq!(folder.write("a.mcf", "x", Some("false")).map_err(|r| r.0), Err(409));
        assert_eq!(folder.write("a.mcf", "x", None).map_err(|r| r.0), Err(409));
        assert_eq!(folder.write("same.mcf", "false", Some("true")), Ok(()));
        assert_eq!(
            (folder.read("a.mcf"), folder.list()["all"].as_bool()),
            (Ok("false".into()), Some(true))
        );
    }
}
