//! Files of arguments: files, lists and folders. Cost: one access to each entry of the folders.

use crate::pipeline::{file_error, read_text};
use mu_base::{Diagnostic, Stage, ends_in};
use std::path::{Path, PathBuf};

/// Returns the files in a list, one per line, relative to its folder; lists may contain lists. The
/// herd tools call such a list `@all`.
fn collect_listed(
    list: &Path,
    within: &mut Vec<PathBuf>,
    files: &mut Vec<PathBuf>,
) -> Result<(), Diagnostic> {
    let text = read_text(list)?;
    if within.iter().any(|l| l == list) {
        return Err(Diagnostic::new(
            Stage::File,
            format!("the list `{}` includes itself", list.display()),
        ));
    }
    within.push(list.to_path_buf());
    let folder = list.parent().unwrap_or(Path::new(""));
    for name in text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let path = folder.join(name);
        if is_list(&path) { collect_listed(&path, within, files)? } else { files.push(path) }
    }
    within.pop();
    Ok(())
}

fn is_list(path: &Path) -> bool {
    path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('@'))
        && !mu_base::host::is_dir(path)
}

/// Expands lists, and searches folders for files with the extension. Returns the files, and true if
/// there were lists or folders.
pub(crate) fn collect(
    given: &[PathBuf],
    extension: &str,
) -> Result<(Vec<PathBuf>, bool), Diagnostic> {
    let mut files = Vec::new();
    let mut folders = false;
    for path in given {
        if is_list(path) {
            folders = true;
            let before = files.len();
            collect_listed(path, &mut Vec::new(), &mut files)?;
            if files.len() == before {
                let text = format!("the list `{}` has no file", path.display());
                return Err(Diagnostic::new(Stage::File, text));
            }
            continue;
        }
        if !mu_base::host::is_dir(path) {
            files.push(path.clone());
            continue;
        }
        folders = true;
        let before = files.len();
        let mut todo = vec![path.clone()];
        while let Some(folder) = todo.pop() {
            for entry in mu_base::host::read_dir(&folder)
                .map_err(|e| file_error("cannot read", &folder, &e))?
            {
                let entry = entry.map_err(|e| file_error("cannot read", &folder, &e))?;
                let kind =
                    entry.file_type().map_err(|e| file_error("cannot read", &entry.path(), &e))?;
                let path = entry.path();
                if kind.is_dir() {
                    todo.push(path);
                } else if ends_in(&path, extension) {
                    files.push(path);
                }
            }
        }
        files[before..].sort();
        if files.len() == before {
            return Err(Diagnostic::new(
                Stage::File,
                format!("no file in `{}` ends in .{extension}", path.display()),
            ));
        }
    }
    Ok((files, folders))
}
