//! A page of this machine: files of one folder, an editor, runs of the command line, a model step
//! by step.
//!
//! In: a folder, the program that runs start, limits. Out: a server on the loopback interface until
//! its flag is set. No verdict is computed here: `runs` starts the command line and hands on its
//! JSON; `walks` talks to `simulate --requests`; `language` is the language server over the same
//! connection.
//!
//! Whoever may talk to the server may start programs, so each request passes `guard` first: a
//! random token in the address, the names that this server goes by, no other origin. `folder` lets
//! no path out of the folder. `asked` makes arguments from the few wishes that a page may have; a
//! page never says an argument itself. Limits: connections, sizes of requests, runs at a time, and
//! for each run time and memory. Cost: a thread for each connection, which serves one request;
//! pages are few.
#![warn(missing_docs)]

mod asked;
mod events;
mod folder;
mod guard;
mod http;
mod language;
mod page;
mod routes;
mod runs;
mod walks;

use events::Hub;
use folder::Folder;
use guard::Guard;
use language::Language;
use runs::Runs;
use std::collections::HashMap;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use walks::Walks;

pub use page::{HASHES, SCRIPT, STYLE};

/// Connections that are served at a time.
const MOST_CONNECTIONS: usize = 64;

/// What a page may start.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Runs at a time; and as many walks.
    pub runs: usize,
    /// Time of each run, and of each answer of a walk.
    pub time: Duration,
    /// Bytes of memory of each run, and of each row of a sweep.
    pub memory: u64,
    /// Threads of each run, if not all.
    pub threads: Option<u32>,
}

/// What is served, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder whose files the page shows.
    pub folder: PathBuf,
    /// The program that runs start: `mu-check`.
    pub program: PathBuf,
    /// The port; 0: any that is free.
    pub port: u16,
    /// What a page may start.
    pub limits: Limits,
    /// The reader of texts of other front ends, for the language server: path, text, and how files
    /// beside it are read.
    pub reader: Reader,
}

/// Says what is wrong with a text of another front end; see [`mu_lsp::Files::foreign`].
pub type Reader = fn(&Path, &str, &dyn Fn(&str) -> Option<String>) -> Option<mu_lsp::Read>;

/// A server that listens.
pub struct Studio {
    listener: TcpListener,
    shared: Arc<Shared>,
}

/// What all connections share.
struct Shared {
    guard: Guard,
    folder: Folder,
    hub: Arc<Hub>,
    runs: Arc<Runs>,
    walks: Walks,
    /// The language servers of the pages that listen, by the pages' names.
    languages: Mutex<HashMap<String, Language>>,
    reader: Reader,
    connections: AtomicUsize,
}

impl Studio {
    /// Listens on the loopback interface.
    ///
    /// # Errors
    /// The folder is not there, the port is taken, or the system gives no random numbers.
    pub fn bind(settings: Settings) -> std::io::Result<Self> {
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
            reader: settings.reader,
            connections: AtomicUsize::new(0),
        };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// The address of the page, with its token.
    pub fn address(&self) -> String {
        self.shared.guard.address()
    }

    /// Serves until the flag is set; all that the page started is ended then.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn serve(&self, stop: &AtomicBool) -> std::io::Result<()> {
        let (listener, shared) = (self.listener.try_clone()?, self.shared.clone());
        // It waits for connections for as long as this process lives.
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
                // What was to serve it is gone, and with it the connection.
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
