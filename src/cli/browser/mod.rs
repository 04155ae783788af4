//! Program in a browser: commands, and two interactive sessions that would otherwise use standard
//! input.
//!
//! In: files and words that the page passed to [`mu_base::host`]. Out: the output of the command
//! line. A page runs each command in a separate instance of the module; [`SimulatorSession`] is
//! `simulate --requests`, [`BrowserLanguageServer`] is `lsp`. Invariant: nothing here computes a
//! verdict.

use crate::args::{Cli, Command};
use crate::commands::simulate::requests::States;
use crate::pipeline::Session;
use clap::Parser as _;
use lsp_server::Message;
use mu_base::{Diagnostic, Stage, host};
use mu_lsp::{Files, SynchronousServer};
use mu_model::Model;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A simulator session.
pub struct SimulatorSession {
    session: Session,
    states: States<'static>,
}

impl SimulatorSession {
    /// Starts a session as `simulate --requests` does. Returns it with the line that describes the
    /// model. Error: the text for standard error.
    pub fn begin() -> Result<(Self, String), String> {
        let cli = Cli::try_parse_from(host::arguments()).map_err(|e| e.to_string())?;
        let Command::Simulate(args) = &cli.command else {
            return Err("expected the command `simulate`".into());
        };
        let common = cli.command.common().cloned().unwrap_or_default();
        let mut session =
            Session::new(common, cli.command.read_options().cloned().unwrap_or_default());
        let loaded = session.load(&args.model, "none").map_err(|e| e.render(&session.sources))?;
        // The value lives as long as the instance, as in a process.
        let model: &'static Arc<dyn Model> = Box::leak(Box::new(loaded.model));
        let mut states = States::new(&**model, &session);
        let hello = states.description().map_err(|e| e.render(&session.sources))?;
        Ok((Self { session, states }, hello.to_string()))
    }

    /// Answers a request line. Error: the session cannot continue.
    pub fn answer(&mut self, line: &str) -> Result<String, String> {
        let answer = self.states.answer_line(line, &self.session.sources);
        answer.map(|a| a.to_string()).map_err(|e| e.render(&self.session.sources))
    }
}

/// The files of the page, below a virtual folder.
struct PageFiles;

/// Name of the virtual folder.
const ROOT: &str = "/studio";

impl Files for PageFiles {
    fn read(&self, path: &Path) -> Option<String> {
        String::from_utf8(host::read(path.strip_prefix(ROOT).ok()?).ok()?).ok()
    }
    fn list(&self, folder: &Path) -> Vec<(PathBuf, bool)> {
        let Ok(below) = folder.strip_prefix(ROOT) else { return Vec::new() };
        let mut entries: Vec<(PathBuf, bool)> = host::files()
            .iter()
            .filter_map(|file| {
                let mut rest = file.strip_prefix(below).ok()?.components();
                Some((folder.join(rest.next()?), rest.next().is_some()))
            })
            .collect();
        entries.sort();
        entries.dedup();
        entries
    }
}

/// Language server for the files of the page.
pub struct BrowserLanguageServer(SynchronousServer<'static>);

impl BrowserLanguageServer {
    /// Creates a server. `send` receives its messages, as JSON.
    pub fn new(send: impl Fn(&str) + 'static) -> Self {
        let send = move |message: Message| {
            if let Ok(text) = serde_json::to_string(&message) {
                send(&text);
            }
        };
        Self(SynchronousServer::new(&PageFiles, send))
    }

    /// Handles a message. `more`: true if another one waits.
    ///
    /// # Errors
    /// The text is not a message of the protocol.
    pub fn handle(&mut self, message: &str, more: bool) -> Result<(), Diagnostic> {
        let wrong =
            |e| Diagnostic::new(Stage::Usage, format!("not a message of the protocol: {e}"));
        self.0.handle(serde_json::from_str(message).map_err(wrong)?, more);
        Ok(())
    }
}
