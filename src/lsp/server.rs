//! Protocol server: requests and notifications, in the order of arrival.
//!
//! A request that the client cancels before it is handled is answered as cancelled. Wrong
//! parameters of a request are an error answer and end nothing. Diagnostics are computed when no
//! message is pending: for the changed documents, and for all open formulas and texts with
//! includes, which may depend on them.

use crate::analysis::Analysis;
use crate::document::OpenDocument;
use crate::features::{self, diagnostic};
use crate::foreign::lexicon_of;
use crate::names::Key;
use crate::positions::Lines;
use crate::rename;
use crate::semantic_tokens;
use crate::workspace::{Files, Workspace, path_of};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use mu_base::source::char_boundary;
use mu_frontends::Input;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

/// Runs the server until shutdown or disconnect. Returns true after a clean `shutdown`/`exit`.
///
/// # Errors
/// The client does not begin with `initialize`.
pub fn serve(connection: &Connection, files: &dyn Files) -> Result<bool, String> {
    let (id, params) = connection.initialize_start().map_err(|e| e.to_string())?;
    // A disconnected client needs no answer.
    let mut server = Server::new(files, Box::new(|message| _ = connection.sender.send(message)));
    connection.initialize_finish(id, server.initialize(&params)).map_err(|e| e.to_string())?;
    // A connection delivers one message at a time. Pending messages must be visible, because they
    // may cancel requests, so a thread forwards them. It ends when the channel closes: lsp-server
    // closes it after `exit`; a client in memory drops its sender.
    Ok(std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        scope
            .spawn(move || connection.receiver.iter().try_for_each(|message| sender.send(message)));
        server.run(&receiver)
    }))
}

fn capabilities() -> Value {
    json!({
        "positionEncoding": "utf-16",
        "textDocumentSync": { "openClose": true, "change": 2, "save": true },
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "documentSymbolProvider": true,
        "foldingRangeProvider": true,
        "documentFormattingProvider": true,
        "renameProvider": { "prepareProvider": true },
        "completionProvider": { "triggerCharacters": ["$"] },
        "codeActionProvider": { "codeActionKinds": ["quickfix"] },
        "codeLensProvider": {},
        "semanticTokensProvider": { "full": true, "legend": { "tokenTypes": semantic_tokens::TOKEN_TYPES, "tokenModifiers": ["declaration"] } },
        "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
    })
}

/// Synchronous server, for environments with one thread: it gets one message at a time and answers
/// before that call returns.
pub struct SynchronousServer<'c>(Server<'c>);

impl<'c> SynchronousServer<'c> {
    /// Creates a server. `send` receives its messages.
    pub fn new(files: &'c dyn Files, send: impl Fn(Message) + 'c) -> Self {
        Self(Server::new(files, Box::new(send)))
    }
    /// Handles a message. `more`: true if another one is pending, so that diagnostics can wait.
    pub fn handle(&mut self, message: Message, more: bool) {
        match message {
            Message::Request(request) if request.method == "initialize" => {
                let answer = self.0.initialize(&request.params);
                self.0.send(Message::Response(Response::new_ok(request.id, answer)));
            }
            message => _ = self.0.handle(message, &VecDeque::new()),
        }
        if !more {
            self.0.publish();
        }
    }
}

/// Width to which documents are formatted without the setting `width`.
const DEFAULT_WIDTH: usize = 120;
/// Minimum of the setting `width`; smaller values are ignored.
const MIN_WIDTH: usize = 20;

struct Server<'c> {
    send: Box<dyn Fn(Message) + 'c>,
    workspace: Workspace<'c>,
    /// Documents with outdated diagnostics.
    changed: BTreeSet<PathBuf>,
    /// The last published diagnostics.
    published: BTreeMap<PathBuf, Value>,
    /// The setting `width`.
    width: usize,
    /// True after `shutdown`.
    is_shut_down: bool,
}

/// Error answer to a request.
struct RequestError(ErrorCode, String);

impl From<String> for RequestError {
    fn from(message: String) -> Self {
        RequestError(ErrorCode::RequestFailed, message)
    }
}

impl<'c> Server<'c> {
    fn new(files: &'c dyn Files, send: Box<dyn Fn(Message) + 'c>) -> Self {
        Self {
            send,
            workspace: Workspace::new(files),
            changed: BTreeSet::new(),
            published: BTreeMap::new(),
            width: DEFAULT_WIDTH,
            is_shut_down: false,
        }
    }

    /// Handles `initialize`.
    fn initialize(&mut self, params: &Value) -> Value {
        self.apply_settings(&params["initializationOptions"]);
        let folders = params["workspaceFolders"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|f| f["uri"].as_str());
        self.workspace.roots = folders.chain(params["rootUri"].as_str()).map(path_of).collect();
        json!({ "capabilities": capabilities(), "serverInfo": { "name": "mu-check", "version": env!("CARGO_PKG_VERSION") } })
    }

    fn run(&mut self, receiver: &Receiver<Message>) -> bool {
        let mut waiting: VecDeque<Message> = VecDeque::new();
        loop {
            waiting.extend(receiver.try_iter());
            let message = match waiting.pop_front() {
                Some(message) => message,
                None => {
                    self.publish();
                    match receiver.recv() {
                        Ok(message) => message,
                        Err(_) => return false,
                    }
                }
            };
            waiting.extend(receiver.try_iter());
            if self.handle(message, &waiting) {
                return self.is_shut_down;
            }
        }
    }

    /// Handles a message; pending messages may cancel it. Returns true if the client ends the
    /// session.
    fn handle(&mut self, message: Message, waiting: &VecDeque<Message>) -> bool {
        match message {
            Message::Request(request) => {
                let response = if waiting.iter().any(|m| cancels(m, &request.id)) {
                    Response::new_err(
                        request.id,
                        ErrorCode::RequestCanceled as i32,
                        "cancelled".into(),
                    )
                } else {
                    self.respond(request)
                };
                self.send(Message::Response(response));
            }
            Message::Notification(n) if n.method == "exit" => return true,
            Message::Notification(n) => {
                // Wrong parameters of a notification cannot be answered; it is ignored.
                let _ = self.handle_notification(&n);
            }
            Message::Response(_) => {}
        }
        false
    }

    fn send(&self, message: Message) {
        (self.send)(message);
    }

    fn respond(&mut self, request: Request) -> Response {
        if self.is_shut_down {
            return Response::new_err(
                request.id,
                ErrorCode::InvalidRequest as i32,
                "the server is shutting down".into(),
            );
        }
        match self.dispatch(&request.method, &request.params) {
            Ok(value) => Response::new_ok(request.id, value),
            Err(RequestError(code, message)) => Response::new_err(request.id, code as i32, message),
        }
    }

    fn dispatch(&mut self, method: &str, params: &Value) -> Result<Value, RequestError> {
        let wrong =
            |what: &str| RequestError(ErrorCode::InvalidParams, format!("`{method}` needs {what}"));
        if method == "shutdown" {
            self.is_shut_down = true;
            return Ok(Value::Null);
        }
        if !method.starts_with("textDocument/") {
            return Err(RequestError(
                ErrorCode::MethodNotFound,
                format!("there is no method `{method}`"),
            ));
        }
        let uri = params["textDocument"]["uri"]
            .as_str()
            .ok_or_else(|| wrong("the address of a document"))?;
        let path = &path_of(uri);
        let Some(analysis) = self.workspace.analysis(path) else { return Ok(Value::Null) };
        let lines = Lines::new(&analysis.text);
        let offset = |place: &Value| lines.offset(&analysis.text, place);
        let at = || offset(&params["position"]).ok_or_else(|| wrong("a position"));
        let workspace = &self.workspace;
        let found = match method {
            "textDocument/hover" => features::hover(workspace, path, at()?),
            "textDocument/definition" => features::definition(workspace, path, at()?),
            "textDocument/references" => features::references(
                workspace,
                path,
                at()?,
                params["context"]["includeDeclaration"].as_bool().unwrap_or(true),
            ),
            "textDocument/documentHighlight" => features::highlights(workspace, path, at()?),
            "textDocument/completion" => features::completion(workspace, path, at()?),
            "textDocument/documentSymbol" => features::symbols(workspace, path),
            "textDocument/semanticTokens/full" => semantic_tokens::semantic_tokens(workspace, path),
            "textDocument/foldingRange" => semantic_tokens::folding_ranges(workspace, path),
            "textDocument/codeLens" => features::lenses(workspace, path),
            "textDocument/codeAction" => {
                let place = &params["range"];
                let (Some(start), Some(end)) = (offset(&place["start"]), offset(&place["end"]))
                else {
                    return Err(wrong("a range"));
                };
                features::fixes(workspace, path, &(start..end))
            }
            "textDocument/formatting" => Some(self.formatting_edits(path, &analysis)),
            "textDocument/prepareRename" => Some(rename::prepare(workspace, path, at()?)?),
            "textDocument/rename" => {
                let name = params["newName"].as_str().ok_or_else(|| wrong("a new name"))?;
                Some(rename::rename(workspace, path, at()?, name)?)
            }
            _ => {
                return Err(RequestError(
                    ErrorCode::MethodNotFound,
                    format!("there is no method `{method}`"),
                ));
            }
        };
        Ok(found.unwrap_or(Value::Null))
    }

    /// Returns the edits that format a document; none if it has a syntax error.
    fn formatting_edits(&self, path: &Path, analysis: &Analysis) -> Value {
        let text = &analysis.text;
        if analysis.problems.iter().any(|p| p.stage == mu_base::Stage::Syntax) {
            return json!([]);
        }
        let front_end = mu_frontends::of(&Input::text_named(path, text));
        let Ok(Some(new)) = front_end.format(text, self.width) else { return json!([]) };
        if new == *text {
            return json!([]);
        }
        let lines = Lines::new(text);
        // Unchanged lines at the beginning are not part of the edit.
        let start = text.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        let start = text[..char_boundary(text, start)].rfind('\n').map_or(0, |i| i + 1);
        json!([{ "range": lines.range(text, &(start..text.len())), "newText": new[start..] }])
    }

    fn apply_settings(&mut self, options: &Value) {
        self.workspace.model =
            options["model"].as_str().filter(|m| !m.is_empty()).map(String::from);
        self.width = options["width"]
            .as_u64()
            .and_then(|w| usize::try_from(w).ok())
            .filter(|w| *w >= MIN_WIDTH)
            .unwrap_or(DEFAULT_WIDTH);
    }

    fn handle_notification(&mut self, notification: &Notification) -> Option<()> {
        let params = &notification.params;
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                let document = &params["textDocument"];
                let uri = document["uri"].as_str()?.to_string();
                let path = path_of(&uri);
                let open = OpenDocument::new(
                    uri,
                    document["text"].as_str()?.to_string(),
                    document["version"].as_i64().unwrap_or(0),
                );
                self.workspace.open.insert(path.clone(), open);
                self.mark_changed(path);
            }
            "textDocument/didChange" => {
                let path = path_of(params["textDocument"]["uri"].as_str()?);
                let document = &params["textDocument"];
                let edits = params["contentChanges"].as_array()?.clone();
                self.workspace.open.get_mut(&path)?.change(document["version"].as_i64(), edits);
                self.mark_changed(path);
            }
            "textDocument/didClose" => {
                let path = path_of(params["textDocument"]["uri"].as_str()?);
                self.changed.remove(&path);
                // Before the document is removed: the URI is that of the client.
                if self.published.remove(&path).is_some_and(|published| published != json!([])) {
                    self.send_diagnostics(&path, None, json!([]));
                }
                self.workspace.open.remove(&path);
                self.workspace.forget(&path);
                self.mark_dependents();
            }
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => self.mark_dependents(),
            "workspace/didChangeConfiguration" => {
                let settings = &params["settings"];
                self.apply_settings(settings.get("mu-check").unwrap_or(settings));
                self.mark_dependents();
            }
            "workspace/didChangeWorkspaceFolders" => {
                let paths = |list: &Value| -> Vec<PathBuf> {
                    list.as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(|f| f["uri"].as_str())
                        .map(path_of)
                        .collect()
                };
                let removed = paths(&params["event"]["removed"]);
                self.workspace.roots.retain(|r| !removed.contains(r));
                self.workspace.roots.extend(paths(&params["event"]["added"]));
                self.mark_dependents();
            }
            _ => {}
        }
        Some(())
    }

    /// Marks a changed document, and the formulas and texts that may depend on it.
    fn mark_changed(&mut self, path: PathBuf) {
        self.changed.insert(path);
        self.mark_dependents();
    }

    /// Marks the open formulas and texts with includes, which may depend on any document.
    fn mark_dependents(&mut self) {
        let depend = |p: &&PathBuf| {
            crate::workspace::is_formula(p) || lexicon_of(p).is_some_and(|l| l.includes)
        };
        let depending: Vec<PathBuf> = self.workspace.open.keys().filter(depend).cloned().collect();
        self.changed.extend(depending);
    }

    /// Computes the diagnostics of marked documents, and sends those that changed.
    fn publish(&mut self) {
        for path in std::mem::take(&mut self.changed) {
            let Some(version) = self.workspace.open.get(&path).map(|o| o.version) else { continue };
            let Some(analysis) = self.workspace.analysis(&path) else { continue };
            let diagnostics = self.diagnostics(&path, &analysis);
            // The diagnostics of a formula are unchanged if the change does not affect its model.
            if self.published.get(&path) != Some(&diagnostics) {
                self.send_diagnostics(&path, Some(version), diagnostics.clone());
                self.published.insert(path, diagnostics);
            }
        }
    }

    fn diagnostics(&self, path: &Path, analysis: &Analysis) -> Value {
        let (uri, lines) = (self.workspace.uri(path), Lines::new(&analysis.text));
        let mut all: Vec<Value> =
            analysis.problems.iter().map(|p| diagnostic(analysis, &uri, &lines, p)).collect();
        if analysis.formula {
            let hint = |range: &std::ops::Range<usize>, severity: u64, message: String| json!({ "range": lines.range(&analysis.text, range), "severity": severity, "source": "mu-check", "message": message });
            match self.workspace.named_model(path, &analysis.text) {
                Some((named, range)) if !self.workspace.is_model(&named) => {
                    all.push(hint(
                        &range,
                        2,
                        format!(
                            "the model `{}` does not exist, or is not a specification",
                            named.display()
                        ),
                    ));
                }
                // Without a model, action names are unknown: one hint in place of an error for
                // each.
                None if self.workspace.model_of(path).is_none()
                    && analysis.names.iter().any(|n| matches!(n.key, Key::Action(_))) =>
                {
                    let first = analysis.tokens.first().map_or(0..0, |t| t.range.clone());
                    let text = "no specification nearby declares an action of this formula: only its syntax is checked; a comment `% model: FILE` names its model";
                    all.push(hint(&first, 4, text.into()));
                }
                _ => {}
            }
        }
        Value::Array(all)
    }

    fn send_diagnostics(&self, path: &Path, version: Option<i64>, diagnostics: Value) {
        let mut params = json!({ "uri": self.workspace.uri(path), "diagnostics": diagnostics });
        if let Some(version) = version {
            params["version"] = json!(version);
        }
        self.send(Message::Notification(Notification::new(
            "textDocument/publishDiagnostics".into(),
            params,
        )));
    }
}

/// True if a message cancels a request.
fn cancels(message: &Message, id: &RequestId) -> bool {
    let Message::Notification(n) = message else { return false };
    let of = &n.params["id"];
    let named = match (of.as_i64().and_then(|i| i32::try_from(i).ok()), of.as_str()) {
        (Some(number), _) => RequestId::from(number),
        (_, Some(text)) => RequestId::from(text.to_string()),
        _ => return false,
    };
    n.method == "$/cancelRequest" && named == *id
}
