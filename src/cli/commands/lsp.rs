//! Language server on standard input and output (`lsp`).

use crate::pipeline::read_text;
use lsp_server::Connection;
use mu_base::{Diagnostic, Stage};
use mu_lsp::Files;
use std::path::{Path, PathBuf};

/// Files on disk.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> Option<String> {
        read_text(path).ok()
    }
    fn list(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
        let mut found: Vec<(PathBuf, bool)> =
            entries.filter_map(|e| Some((e.path(), e.file_type().ok()?.is_dir()))).collect();
        found.sort();
        found
    }
}

/// Serves one client.
pub(crate) fn run() -> Result<u8, Diagnostic> {
    let (connection, threads) = Connection::stdio();
    let served = mu_lsp::serve(&connection, &Disk);
    // The writer thread ends with the connection.
    drop(connection);
    let ended = threads.join().map_err(|e| format!("the connection to the client broke: {e}"));
    let message = match (served, ended) {
        (Ok(true), _) => return Ok(0),
        (Ok(false), Ok(())) => "the client closed the connection without `exit`".to_string(),
        (Ok(false), Err(message)) | (Err(message), _) => message,
    };
    Err(Diagnostic::new(Stage::File, message)
        .note("this command uses the Language Server Protocol on standard input and output; see docs/editors.md"))
}
