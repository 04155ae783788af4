//! Language server for a page: the server of editors, over an in-memory connection, restricted to
//! files of the folder.
//!
//! The page names the folder `file:///studio`. Paths outside do not exist for the server, so that
//! neither a formula's `% model:` nor a definition leaves the folder.

use crate::events;
use crate::folder::Folder;
use lsp_server::{Connection, Message};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

/// Name of the folder for the page.
const ROOT: &str = "/studio";

struct Inside {
    folder: Folder,
}

impl mu_lsp::Files for Inside {
    fn read(&self, path: &Path) -> Option<String> {
        self.folder.read(path.strip_prefix(ROOT).ok()?.to_str()?).ok()
    }
    fn list(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
        let Ok(below) = folder.strip_prefix(ROOT) else { return Vec::new() };
        let inside = below.as_os_str().is_empty()
            || below.to_str().is_some_and(|b| self.folder.resolve(b).is_ok());
        let entries = if inside { self.folder.entries(below) } else { Vec::new() };
        entries.into_iter().map(|(name, is_folder)| (folder.join(name), is_folder)).collect()
    }
}

/// The page's end of a running language server. Dropping it ends the server.
pub(crate) struct LanguageServer(Connection);

impl LanguageServer {
    /// Starts a server that sends its messages to the page.
    pub(crate) fn start(folder: &Folder, page: Sender<String>) -> std::io::Result<Self> {
        let (server, client) = Connection::memory();
        let files = Inside { folder: Folder::new(folder.root())? };
        // A page that disconnects without `exit` is no error.
        std::thread::Builder::new()
            .name("language".into())
            .stack_size(8 << 20)
            .spawn(move || drop(mu_lsp::serve(&server, &files)))?;
        let messages = client.receiver.clone();
        std::thread::Builder::new().name("answers".into()).spawn(move || {
            for message in messages {
                let text = serde_json::to_value(&message).map(|v| events::line("language", &v));
                if text.is_ok_and(|t| page.send(t).is_err()) {
                    break;
                }
            }
        })?;
        Ok(Self(client))
    }

    /// Passes a message of the page to the server. Error: it is not a message of the protocol.
    pub(crate) fn send(&self, message: Value) -> Result<(), String> {
        let message: Message = serde_json::from_value(message)
            .map_err(|e| format!("not a message of the protocol: {e}"))?;
        self.0.sender.send(message).map_err(|_| "the language server has ended".to_string())
    }
}
