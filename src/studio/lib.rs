//! Page on this machine: files of one folder, an editor, runs of the command line, and a simulator.
//!
//! In: a folder, the program for runs, limits. Out: a server on the loopback interface until its
//! flag is set. No verdict is computed here: `runs` starts the command line and passes on its JSON;
//! `walks` uses `simulate --requests`; `language` is the language server over the same connection.
//!
//! A client of the server can start programs, so each request passes `guard` first: a random token
//! in the address, the server's own names, no other origin. `folder` allows no path outside the
//! folder. `request_args` builds arguments from validated requests; a page never sends an argument
//! itself. Limits: connections, sizes of requests, concurrent runs, and for each run time and
//! memory. Cost: a thread for each connection, which serves one request.
#![warn(missing_docs)]

mod request_args;
mod events;
mod folder;
mod guard;
mod http;
mod interface;
mod language;
mod page;
mod routes;
mod runs;
mod scratch;
mod walks;

use events::Hub;
use folder::Folder;
use guard::Guard;
use language::LanguageServer;
use runs::Runs;
use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use walks::Walks;

pub use page::{HASHES, SCRIPT, STYLE};

/// Limit on the concurrent connections.
const MOST_CONNECTIONS: usize = 64;

/// Limits on runs and walks.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of concurrent runs, and of walks.
    pub runs: usize,
    /// Time limit of each run, and of each answer of a walk.
    pub time: Duration,
    /// Memory limit in bytes of each run, and of each row of a sweep.
    pub memory: u64,
    /// Threads of each run; `None`: all.
    pub threads: Option<u32>,
}

/// Settings of the server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The folder with the files of the page.
    pub folder: PathBuf,
    /// The program for runs: `mu-check`.
    pub program: PathBuf,
    /// The port; 0: any free port.
    pub port: u16,
    /// Limits on runs and walks.
    pub limits: Limits,
}

/// A listening server.
pub struct Studio {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// Shared state of all connections.
struct Shared {
    guard: Guard,
    folder: Folder,
    hub: Arc<Hub>,
    runs: Arc<Runs>,
    walks: Walks,
    /// The language servers of the open pages, by the pages' names.
    languages: Mutex<HashMap<String, LanguageServer>>,
    connections: AtomicUsize,
}

impl Studio {
    /// Listens on the loopback interface.
    ///
    /// # Errors
    /// The folder does not exist, the port is in use, or the system has no random numbers.
    pub fn bind(settings: ServerSettings) -> std::io::Result<Self> {
        let folder = Folder::new(&settings.folder)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, settings.port))?;
        let guard = Guard::new(listener.local_addr()?.port())?;
        let hub = Arc::new(Hub::default());
        let runs = Arc::new(Runs::new(&settings, folder.root().to_path_buf(), hub.clone())?);
        let walks = Walks::new(&settings, folder.root().to_path_buf());
        let shared = Shared {
            guard,
            folder,
            hub,
            runs,
            walks,
            languages: Mutex::default(),
            connections: AtomicUsize::new(0),
        };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Returns the address of the page, with its token.
    pub fn address(&self) -> String {
        self.shared.guard.address()
    }

    /// Serves until the flag is set; then ends all processes that pages started.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn serve(&self, stop: &AtomicBool) -> std::io::Result<()> {
        let (listener, shared) = (self.listener.try_clone()?, self.shared.clone());
        // The thread accepts connections until the process ends.
        std::thread::Builder::new().name("studio".into()).spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                let busy = shared.connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS;
                let serve = move || {
                    if busy {
                        http::refuse(stream);
                    } else {
                        routes::serve(&shared, stream);
                    }
                    shared.connections.fetch_sub(1, Ordering::Relaxed);
                };
                let failed =
                    std::thread::Builder::new().name("request".into()).spawn(serve).is_err();
                // The thread could not start; its connection is closed.
                if failed {
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        })?;
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.shared.runs.end();
        self.shared.walks.end();
        Ok(())
    }
}
