//! Events for all open pages: each page listens on an event stream.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Limit on the open pages.
const MOST_CLIENTS: usize = 16;

/// The open pages, by the names that they chose.
#[derive(Default)]
pub(crate) struct Hub {
    clients: Mutex<HashMap<String, Sender<String>>>,
}

/// Formats an event for the stream. JSON has no line breaks.
pub(crate) fn line(kind: &str, value: &Value) -> String {
    format!("event: {kind}\ndata: {value}\n\n")
}

impl Hub {
    fn clients(&self) -> MutexGuard<'_, HashMap<String, Sender<String>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a page. Returns the sender and the receiver of its events. `None`: the name is in use,
    /// or there are too many pages.
    pub(crate) fn join(&self, name: &str) -> Option<(Sender<String>, Receiver<String>)> {
        let mut clients = self.clients();
        if clients.len() >= MOST_CLIENTS || clients.contains_key(name) {
            return None;
        }
        let (sender, receiver) = channel();
        clients.insert(name.to_string(), sender.clone());
        Some((sender, receiver))
    }

    /// Removes a closed page.
    pub(crate) fn leave(&self, name: &str) {
        self.clients().remove(name);
    }

    /// Sends an event to all pages. Pages that are closing may miss it.
    pub(crate) fn broadcast(&self, kind: &str, value: &Value) {
        let text = line(kind, value);
        for client in self.clients().values() {
            let _ = client.send(text.clone());
        }
    }
}
