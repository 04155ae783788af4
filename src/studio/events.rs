//! What happens, told to all pages that are open: each listens on a stream of events.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pages that are open at a time.
const MOST_CLIENTS: usize = 16;

/// The pages that are open, by the names that they gave themselves.
#[derive(Default)]
pub(crate) struct Hub {
    clients: Mutex<HashMap<String, Sender<String>>>,
}

/// An event as the stream has it. JSON has no line breaks.
pub(crate) fn line(kind: &str, value: &Value) -> String {
    format!("event: {kind}\ndata: {value}\n\n")
}

impl Hub {
    fn clients(&self) -> MutexGuard<'_, HashMap<String, Sender<String>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a page: what it is told, and the end that tells it. `None`: the name is taken, or there
    /// are too many.
    pub(crate) fn join(&self, name: &str) -> Option<(Sender<String>, Receiver<String>)> {
        let mut clients = self.clients();
        if clients.len() >= MOST_CLIENTS || clients.contains_key(name) {
            return None;
        }
        let (sender, receiver) = channel();
        clients.insert(name.to_string(), sender.clone());
        Some((sender, receiver))
    }

    /// The page is closed.
    pub(crate) fn leave(&self, name: &str) {
        self.clients().remove(name);
    }

    /// Tells all pages. One that is closing needs not be told.
    pub(crate) fn tell(&self, kind: &str, value: &Value) {
        let text = line(kind, value);
        for client in self.clients().values() {
            let _ = client.send(text.clone());
        }
    }
}
