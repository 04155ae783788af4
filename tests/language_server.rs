//! The language server from the view of a client: the command over standard input and output, by
//! the messages of the protocol.

use crate::language_names::{
    BASE, EQUATIONS, MODEL as MEMORY_MODEL, PROGRAM, SYSTEM, TEST, resolve_names,
};
use crate::support::{package, reference_models};
use mu_check::base::SourceMap;
use mu_check::base::random::Random;
use mu_check::syntax::template;
use mu_check::syntax::tokens::TokenKind;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A client: sends messages, and waits for answers and diagnostics.
pub struct Client {
    server: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: i64,
    /// The last diagnostics of each address that no test has read yet.
    diagnostics: HashMap<String, Value>,
}

pub fn uri(path: &Path) -> String {
    format!(
        "file://{}",
        path.display().to_string().replace('%', "%25").replace(' ', "%20").replace('+', "%2B")
    )
}

impl Client {
    pub fn start(root: Option<&Path>) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let (input, output) =
            (server.stdin.take(), BufReader::new(server.stdout.take().expect("a pipe")));
        let mut client = Self { server, input, output, next: 0, diagnostics: HashMap::new() };
        let answer = client.ask(
            "initialize",
            json!({ "processId": null, "rootUri": root.map(uri), "capabilities": {} }),
        );
        assert_eq!(answer["result"]["capabilities"]["textDocumentSync"]["change"], 2, "{answer}");
        client.notify("initialized", json!({}));
        client
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        let input = self.input.as_mut().expect("the connection is open");
        write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        input.flush().expect("the server reads");
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    fn request(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }),
        );
        self.next
    }

    fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == id {
                return message;
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("the server writes") == 0 {
                let mut error = String::new();
                let _ = self.server.stderr.as_mut().expect("a pipe").read_to_string(&mut error);
                panic!("the server ended: {error}");
            }
            match line.trim().split_once(": ") {
                Some(("Content-Length", n)) => length = n.parse().expect("a number"),
                _ if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes).expect("the server writes");
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        if message["method"] == "textDocument/publishDiagnostics" {
            self.diagnostics.insert(
                message["params"]["uri"].as_str().expect("an address").into(),
                message["params"].clone(),
            );
        }
        message
    }

    pub fn open(&mut self, path: &Path, text: &str) {
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri(path), "languageId": "mcrl2", "version": 1, "text": text } }),
        );
    }

    fn change(&mut self, path: &Path, version: i64, edits: Value) {
        self.notify("textDocument/didChange", json!({ "textDocument": { "uri": uri(path), "version": version }, "contentChanges": edits }));
    }

    /// Returns the diagnostics of a version of a file.
    pub fn diagnostics(&mut self, path: &Path, version: i64) -> Vec<Value> {
        let uri = uri(path);
        loop {
            if let Some(found) = self.diagnostics.get(&uri).filter(|d| d["version"] == version) {
                return found["diagnostics"].as_array().expect("a list").clone();
            }
            self.receive();
        }
    }

    /// Returns the next diagnostics of a file that are as wanted.
    pub fn diagnostics_that(
        &mut self,
        path: &Path,
        wanted: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let uri = uri(path);
        loop {
            if let Some(found) = self
                .diagnostics
                .get(&uri)
                .and_then(|d| d["diagnostics"].as_array())
                .filter(|d| wanted(d))
            {
                return found.clone();
            }
            self.receive();
        }
    }

    /// Returns the diagnostics that the client has of a file, after all that it said was heard.
    fn settled_diagnostics(&mut self, path: &Path) -> Vec<Value> {
        // An answer comes after the diagnostics only if they were computed before: two questions,
        // the second sent after the first answer.
        for _ in 0..2 {
            self.ask("textDocument/foldingRange", json!({ "textDocument": { "uri": uri(path) } }));
            std::thread::sleep(Duration::from_millis(1));
        }
        let uri = uri(path);
        while !self.diagnostics.contains_key(&uri) {
            self.receive();
        }
        self.diagnostics[&uri]["diagnostics"].as_array().expect("a list").clone()
    }

    pub fn at(
        &mut self,
        method: &str,
        path: &Path,
        text: &str,
        offset: usize,
        more: Value,
    ) -> Value {
        let mut params =
            json!({ "textDocument": { "uri": uri(path) }, "position": position(text, offset) });
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.ask(method, params)
    }

    pub fn end(mut self) {
        assert!(self.ask("shutdown", Value::Null)["error"].is_null());
        assert_eq!(self.ask("textDocument/hover", json!({}))["error"]["code"], -32600);
        self.notify("exit", Value::Null);
        self.input = None;
        let status = self.server.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn position(text: &str, offset: usize) -> Value {
    let start = text[..offset].rfind('\n').map_or(0, |i| i + 1);
    json!({ "line": text[..offset].matches('\n').count(), "character": text[start..offset].encode_utf16().count() })
}

fn offset(text: &str, position: &Value) -> usize {
    let line = position["line"].as_u64().expect("a line") as usize;
    let start = if line == 0 {
        0
    } else {
        text.match_indices('\n').nth(line - 1).expect("the line is there").0 + 1
    };
    let mut units = position["character"].as_u64().expect("a column") as usize;
    let mut at = start;
    for c in text[start..].chars() {
        if units == 0 {
            break;
        }
        units = units.saturating_sub(c.len_utf16());
        at += c.len_utf8();
    }
    at
}

/// Returns the text after edits, which do not overlap.
pub fn apply_edits(text: &str, edits: &Value) -> String {
    let mut places: Vec<(usize, usize, &str)> = edits
        .as_array()
        .expect("edits")
        .iter()
        .map(|e| {
            (
                offset(text, &e["range"]["start"]),
                offset(text, &e["range"]["end"]),
                e["newText"].as_str().expect("a text"),
            )
        })
        .collect();
    places.sort();
    let mut out = text.to_string();
    places.iter().rev().for_each(|(from, to, new)| out.replace_range(*from..*to, new));
    out
}

const MODEL: &str = "% Ä 𝔽 model
sort D = struct d1 | d2(num: Nat)?is_d2;   % data of the model
map twice: Nat -> Nat;
var n: Nat;
eqn twice(n) = n + n;
% Sends a number.
act send, receive: Nat;
    stop;
proc P(x: Nat) = (x < 2) -> send(twice(x)) . P(x = x + 1) <> stop . P(0);
init P(0);
";
const FORMULA: &str =
    "% what holds\n[true* . send(5)]false &&\nforall k: Nat. [send(twice(k))]true\n";

/// Returns a folder with a model and a formula.
fn project() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (model, formula) = (folder.path().join("specs/a.mcrl2"), folder.path().join("props/a.mcf"));
    for (path, text) in [(&model, MODEL), (&formula, FORMULA)] {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    (folder, model, formula)
}

#[test]
fn a_session() {
    let (folder, model, formula) = project();
    let mut client = Client::start(Some(folder.path()));
    client.open(&model, MODEL);
    client.open(&formula, FORMULA);
    assert_eq!((client.diagnostics(&model, 1), client.diagnostics(&formula, 1)), (vec![], vec![]));
    // Hover: declaration and comment, from the formula too.
    let text = |v: &Value| v["result"]["contents"]["value"].as_str().unwrap_or("").to_string();
    let found = text(&client.at(
        "textDocument/hover",
        &formula,
        FORMULA,
        FORMULA.find("send").unwrap(),
        json!({}),
    ));
    assert!(found.contains("act send: Nat") && found.contains("Sends a number."), "{found}");
    let found = text(&client.at(
        "textDocument/hover",
        &model,
        MODEL,
        MODEL.find("D = struct").unwrap(),
        json!({}),
    ));
    assert!(
        found.contains("sort D = struct d1 | d2(num: Nat)?is_d2")
            && found.contains("data of the model"),
        "{found}"
    );
    let found = text(&client.at(
        "textDocument/hover",
        &model,
        MODEL,
        MODEL.find("x < 2").unwrap(),
        json!({}),
    ));
    assert!(found.contains("parameter of P: x: Nat"), "{found}");
    // Of what is built in, the sort that it has here; of overloads, the chosen one first.
    let overloaded = "map f: Nat -> Bool; f: Bool -> Nat;\nvar b: Bool; n: Nat;\neqn f(n) = n > 1; f(b) = if(b, 1, 2);\nact a: Nat;\ninit a(max(f(true), 2));\n";
    let third = folder.path().join("specs/b.mcrl2");
    client.open(&third, overloaded);
    let found = text(&client.at(
        "textDocument/hover",
        &third,
        overloaded,
        overloaded.find("f(true").unwrap(),
        json!({}),
    ));
    assert!(
        found.starts_with("```mcrl2\nf: Bool -> Nat\n```") && found.contains("map f: Nat -> Bool"),
        "{found}"
    );
    let found = text(&client.at(
        "textDocument/hover",
        &third,
        overloaded,
        overloaded.find("max").unwrap(),
        json!({}),
    ));
    assert_eq!(found, "```mcrl2\nmax: Nat # Pos -> Pos\n```");
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(&third) } }));
    // Definition and references across files.
    let found = client.at(
        "textDocument/definition",
        &formula,
        FORMULA,
        FORMULA.find("twice").unwrap(),
        json!({}),
    );
    assert_eq!(found["result"][0]["uri"], uri(&model), "{found}");
    assert_eq!(found["result"][0]["range"]["start"], position(MODEL, MODEL.find("twice").unwrap()));
    let found = client.at(
        "textDocument/references",
        &model,
        MODEL,
        MODEL.find("send").unwrap(),
        json!({ "context": { "includeDeclaration": true } }),
    );
    let count = |of: &Path| {
        found["result"].as_array().unwrap().iter().filter(|l| l["uri"] == uri(of)).count()
    };
    assert_eq!((count(&model), count(&formula)), (2, 2), "{found}");
    // Completion.
    let found = client.at(
        "textDocument/completion",
        &formula,
        FORMULA,
        FORMULA.find("send").unwrap(),
        json!({}),
    );
    let item = |label: &str| {
        found["result"]
            .as_array()
            .unwrap()
            .iter()
            .find(|i| i["label"] == label)
            .cloned()
            .unwrap_or(Value::Null)
    };
    assert_eq!(item("receive")["detail"], "act receive: Nat", "{found}");
    assert!(
        item("nu")["kind"] == 14 && item("P").is_null() && item("is_d2")["kind"] == 3,
        "{found}"
    );
    // Outline, colours, folding, lenses, highlights.
    let of = |path: &Path| json!({ "textDocument": { "uri": uri(path) } });
    let found = client.ask("textDocument/documentSymbol", of(&model));
    let names: Vec<&str> =
        found["result"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["D", "twice", "send", "receive", "stop", "P", "init"]);
    assert_eq!(found["result"][0]["children"][1]["name"], "d2");
    let found = client.ask("textDocument/semanticTokens/full", of(&formula));
    assert!(found["result"]["data"].as_array().unwrap().len() > 50, "{found}");
    let found = client.ask("textDocument/codeLens", of(&formula));
    assert_eq!(found["result"][0]["command"]["arguments"][0]["arguments"][0], "check", "{found}");
    let found = client.ask("textDocument/codeLens", of(&model));
    assert_eq!(found["result"][2]["command"]["title"], "check 1 formula", "{found}");
    assert!(client.ask("textDocument/foldingRange", of(&model))["result"].is_array());
    let found = client.at(
        "textDocument/documentHighlight",
        &model,
        MODEL,
        MODEL.find("x: Nat").unwrap(),
        json!({}),
    );
    assert_eq!(found["result"].as_array().unwrap().len(), 5, "{found}");
    // Formatting.
    let found = client.ask(
        "textDocument/formatting",
        json!({ "textDocument": { "uri": uri(&formula) }, "options": { "tabSize": 2, "insertSpaces": true } }),
    );
    assert_eq!(
        apply_edits(FORMULA, &found["result"]),
        mu_check::syntax::format::format(FORMULA, Default::default())
    );
    // A change of the model shows in the formula.
    let at = position(MODEL, MODEL.find("send, ").unwrap());
    let end = position(MODEL, MODEL.find("send, ").unwrap() + 4);
    client.change(&model, 2, json!([{ "range": { "start": at, "end": end }, "text": "sendd" }]));
    let found = client.diagnostics(&model, 2);
    assert!(
        found.len() == 1
            && found[0]["message"].as_str().unwrap().starts_with("`send` is not declared")
            || !found.is_empty(),
        "{found:?}"
    );
    let found = client.settled_diagnostics(&formula);
    assert!(found.iter().any(|d| d["message"].as_str().unwrap().contains("`send`")), "{found:?}");
    // The quick fix has the replacement.
    let changed = MODEL.replacen("send, ", "sendd, ", 1);
    let place = changed.find("send(").unwrap();
    let range = json!({ "start": position(&changed, place), "end": position(&changed, place) });
    let found = client.ask(
        "textDocument/codeAction",
        json!({ "textDocument": { "uri": uri(&model) }, "range": range, "context": { "diagnostics": [] } }),
    );
    assert_eq!(found["result"][0]["title"], "replace `send` by `sendd`", "{found}");
    // From the end of the line too, where whoever typed it is; not from another line.
    for (at, titles) in [(changed[place..].find('\n').unwrap() + place, 1), (0, 0)] {
        let range = json!({ "start": position(&changed, at), "end": position(&changed, at) });
        let params = json!({ "textDocument": { "uri": uri(&model) }, "range": range, "context": { "diagnostics": [] } });
        let found = client.ask("textDocument/codeAction", params);
        assert_eq!(found["result"].as_array().map(|a| a.len().min(1)), Some(titles), "{found}");
    }
    assert_eq!(found["result"][0]["isPreferred"], true, "{found}");
    let fixed = apply_edits(&changed, &found["result"][0]["edit"]["changes"][uri(&model)]);
    client.change(&model, 3, json!([{ "text": fixed }]));
    assert_eq!(client.diagnostics(&model, 3), Vec::<Value>::new());
    // A forgotten semicolon shows where the next declaration begins, and is inserted where it
    // belongs.
    for (version, end) in [(4, "stop . P(0);\n"), (6, "init P(0);\n")] {
        let forgotten = MODEL.replacen(end, &end.replace(';', ""), 1);
        client.change(&model, version, json!([{ "text": forgotten }]));
        let found = client.diagnostics(&model, version);
        let params = json!({ "textDocument": { "uri": uri(&model) }, "range": found[0]["range"], "context": { "diagnostics": [] } });
        let found = client.ask("textDocument/codeAction", params);
        assert_eq!(found["result"][0]["title"], "insert `;`", "{found}");
        assert_eq!(
            apply_edits(&forgotten, &found["result"][0]["edit"]["changes"][uri(&model)]),
            MODEL
        );
    }
    client.end();
}

#[test]
fn errors_leave_the_rest_alive() {
    let (folder, model, formula) = project();
    let mut client = Client::start(Some(folder.path()));
    let broken = MODEL
        .replace("= n + n;", "= n + ;")
        .replace("act send", "act send, lost")
        .replace("    stop;", "    stop");
    client.open(&model, &broken);
    client.open(&formula, FORMULA);
    let found = client.diagnostics(&model, 1);
    assert!(!found.is_empty() && found.len() <= 3, "{found:?}");
    let hover = client.at(
        "textDocument/hover",
        &formula,
        FORMULA,
        FORMULA.find("send").unwrap(),
        json!({}),
    );
    assert!(
        hover["result"]["contents"]["value"].as_str().is_some_and(|t| t.contains("act send: Nat")),
        "{hover}"
    );
    client.end();
}

#[test]
fn cancelled_and_malformed_requests() {
    let (folder, model, _) = project();
    let mut client = Client::start(Some(folder.path()));
    client.open(&model, MODEL);
    // Held up by a large document, so that the cancellation is there before its request's turn.
    let large = folder.path().join("large.mcrl2");
    client.open(&large, &MODEL.repeat(2000));
    let first = client.request(
        "textDocument/semanticTokens/full",
        json!({ "textDocument": { "uri": uri(&large) } }),
    );
    let second = client
        .request("textDocument/foldingRange", json!({ "textDocument": { "uri": uri(&large) } }));
    client.notify("$/cancelRequest", json!({ "id": second }));
    assert!(client.answer(first)["error"].is_null());
    assert_eq!(client.answer(second)["error"]["code"], -32800);
    let code = |v: Value| v["error"]["code"].as_i64().unwrap_or(0);
    assert_eq!(code(client.ask("textDocument/hover", json!({}))), -32602);
    assert_eq!(code(client.ask("textDocument/hover", json!([1, 2]))), -32602);
    assert_eq!(
        code(client.ask(
            "textDocument/hover",
            json!({ "textDocument": { "uri": uri(&model) }, "position": { "line": -1 } })
        )),
        -32602
    );
    assert_eq!(
        code(
            client.ask("textDocument/rename", json!({ "textDocument": { "uri": uri(&model) }, "position": { "line": 0, "character": 0 } }))
        ),
        -32602
    );
    assert_eq!(code(client.ask("workspace/nothing", json!({}))), -32601);
    assert_eq!(
        client.ask(
            "textDocument/hover",
            json!({ "textDocument": { "uri": "file:///not/there.mcf" }, "position": {} })
        )["result"],
        Value::Null
    );
    for (method, params) in [
        (
            "textDocument/didChange",
            json!({ "textDocument": { "uri": "file:///not/there" }, "contentChanges": 1 }),
        ),
        ("textDocument/didOpen", json!({})),
        (
            "textDocument/didChange",
            json!({ "textDocument": { "uri": uri(&model), "version": 2 }, "contentChanges": [{ "range": {}, "text": "" }] }),
        ),
        ("nothing", json!(null)),
    ] {
        client.notify(method, params);
    }
    assert!(client.at("textDocument/hover", &model, MODEL, MODEL.find("twice").unwrap(), json!({}))["result"].is_object());
    // A formula that names itself as its model, and one that names its model.
    for (name, errors) in [("own.mcf", 1), ("specs/a.mcrl2", 0)] {
        let own = folder.path().join("own.mcf");
        client.open(&own, &format!("% model: {name}\n[send(1)]false\n"));
        assert_eq!(client.diagnostics(&own, 1).len(), errors, "{name}");
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(&own) } }));
        client.diagnostics.remove(&uri(&own));
    }
    client.end();
    // What is no message ends the connection, with a message and without a panic.
    let mut client = Client::start(None);
    let input = client.input.as_mut().unwrap();
    input.write_all(b"Content-Length: 5\r\n\r\n{nope").unwrap();
    client.input = None;
    let status = client.server.wait().unwrap();
    let mut error = String::new();
    client.server.stderr.as_mut().unwrap().read_to_string(&mut error).unwrap();
    assert!(
        status.code() == Some(2) && error.contains("error: ") && !error.contains("panicked"),
        "{status} {error}"
    );
}

/// Random edits of real files, each a few characters taken out or put in: whatever the text is, the
/// server answers.
#[test]
fn random_edits() {
    let seed = std::env::var("FUZZ_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(27_u64);
    let mut random = Random::new(seed);
    let mut client = Client::start(Some(Path::new(&package(""))));
    let parts = [
        "(",
        ")",
        ";",
        "$if n > 1 {",
        "}",
        "${x",
        "% ",
        "\n",
        "é𝔽",
        "init ",
        "proc ",
        "sum x: Nat. ",
        "a",
        ".",
        "\"",
        "|",
        "form ",
        "",
    ];
    for name in [
        "specs/arcx.spec",
        "formulas/1a.gos.mcf",
        "tests/language/sets.mcrl2",
        "specs/cubicle/lamport.cub",
        "specs/x86/bakery.asm",
        "specs/memory/rvwmo.cat",
        "docs/gallery/rwc.litmus",
    ] {
        let path = PathBuf::from(package(name));
        let mut text = std::fs::read_to_string(&path).unwrap();
        client.open(&path, &text);
        let rounds = if name.ends_with("spec") { 25 } else { 20 };
        for round in 0..rounds {
            println!("seed {seed}, {name}, round {round}");
            let mut pick = |limit: usize| {
                let mut at = random.below(limit + 1);
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let from = pick(text.len());
            let to = pick((from + 12).min(text.len())).max(from);
            let new = *random.choose(&parts);
            let range = json!({ "start": position(&text, from), "end": position(&text, to) });
            client.change(&path, round + 2, json!([{ "range": range, "text": new }]));
            text.replace_range(from..to, new);
            let methods = [
                "hover",
                "definition",
                "references",
                "completion",
                "prepareRename",
                "documentHighlight",
            ];
            let method = format!("textDocument/{}", random.choose(&methods));
            let at = position(&text, from);
            client.ask(&method, json!({ "textDocument": { "uri": uri(&path) }, "position": at }));
            let methods =
                ["semanticTokens/full", "foldingRange", "documentSymbol", "codeLens", "formatting"];
            let method = format!("textDocument/{}", random.choose(&methods));
            client.ask(&method, json!({ "textDocument": { "uri": uri(&path) } }));
        }
    }
    client.end();
}

/// No diagnostic where the command line has no error, over all files of the project and of the
/// folder that `MU_CHECK_MODELS` names.
#[test]
fn all_models() {
    let mut client = Client::start(Some(Path::new(&package(""))));
    let (mut good, mut bad) = (0, 0);
    for path in reference_models(&["mcrl2", "spec"]) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let mut sources = SourceMap::new();
        let read = template::expand("", &text, &[], &mut sources)
            .and_then(|e| mu_check::syntax::parse_specification(e.source, &e.text))
            .and_then(|tree| mu_check::process::typecheck::check_specification(&tree));
        client.open(&path, &text);
        let found = client.diagnostics(&path, 1);
        match read {
            Ok(_) => assert_eq!(found, Vec::<Value>::new(), "{}", path.display()),
            Err(e) => {
                assert!(
                    found.iter().any(|d| d["message"].as_str().unwrap().starts_with(&e.message)),
                    "{}: {e} {found:?}",
                    path.display()
                )
            }
        }
        *(if found.is_empty() { &mut good } else { &mut bad }) += 1;
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(&path) } }));
    }
    // More with `MU_CHECK_MODELS`.
    assert!(good > 10, "{good} without errors, {bad} with");
    for path in reference_models(&["mcf"]) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let parses = mu_check::syntax::parse_formula(Default::default(), &text);
        client.open(&path, &text);
        let found = client.diagnostics(&path, 1);
        match parses {
            // Of a model that is not the formula's own nothing is said; the formulas of the project
            // have theirs.
            Ok(_) if path.starts_with(package("formulas")) => {
                assert_eq!(found, Vec::<Value>::new(), "{}", path.display())
            }
            Ok(_) => {}
            Err(e) => {
                assert!(
                    found.iter().any(|d| d["message"].as_str().unwrap().starts_with(&e.message)),
                    "{}: {found:?}",
                    path.display()
                )
            }
        }
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(&path) } }));
    }
    client.end();
}

/// The linear process of a text, without comments: they quote what was written.
/// Files of the other front ends: no diagnostic where the command line takes them, and else its
/// error at its place; an outline, and colours.
#[test]
fn other_front_ends() {
    let mut client = Client::start(Some(Path::new(&package(""))));
    let mut seen = 0;
    for path in reference_models(&["cub", "asm", "cat", "litmus"]) {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        // Files that are to be refused, and seeds of fuzzers, are no examples.
        // Files of the library only define few names, or include others.
        if !path.starts_with(package("specs")) || path.starts_with(package("specs/memory/library"))
        {
            continue;
        }
        client.open(&path, &text);
        assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new(), "{}", path.display());
        let document = json!({ "textDocument": { "uri": uri(&path) } });
        let outline = client.ask("textDocument/documentSymbol", document.clone());
        assert!(
            path.extension().is_some_and(|e| e == "litmus")
                || !outline["result"].as_array().unwrap().is_empty(),
            "{}",
            path.display()
        );
        assert!(
            client.ask("textDocument/semanticTokens/full", document.clone())["result"]["data"]
                .as_array()
                .unwrap()
                .len()
                > 20
        );
        assert_eq!(client.ask("textDocument/formatting", document.clone())["result"], json!([]));
        client.notify("textDocument/didClose", document);
        seen += 1;
    }
    assert!(seen > 30, "{seen} files");
    let folder = tempfile::tempdir().unwrap();
    for (name, text, wrong, line) in [
        (
            "a.cub",
            "array X[proc] : bool\ninit (p) { X[p] = False }\nunsafe (p) { Y[p] = True }\n",
            "`Y`",
            2,
        ),
        (
            "a.asm",
            "begin shared_data\n x dd 0\nend shared_data\nbegin thread_code\n mov eax, [y]\nend thread_code\n",
            "`y`",
            4,
        ),
        ("a.cat", "M\nlet x = po\nacyclic x | nowhere as sc\n", "`nowhere`", 2),
        ("a.pbes", "pbes nu X(n: Nat) = X(n + 1) && Z;\ninit X(0);\n", "`Z`", 0),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        client.open(&path, text);
        let found = client.diagnostics(&path, 1);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert!(
            found[0]["message"].as_str().unwrap().contains(wrong)
                && found[0]["range"]["start"]["line"] == line,
            "{name}: {found:?}"
        );
        // Errors of the command line.
        let line = match name {
            "a.cub" => vec!["prove"],
            "a.asm" => vec!["program", "--threads-of", "2"],
            "a.cat" => vec!["models"],
            _ => vec!["solve"],
        };
        let output =
            Command::new(env!("CARGO_BIN_EXE_mu-check")).args(line).arg(&path).output().unwrap();
        let message = found[0]["message"].as_str().unwrap().lines().next().unwrap().to_string();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && said.contains(&message),
            "{name}: {message}\n{said}"
        );
    }
    client.end();
}

fn linearise(text: &str) -> String {
    linear(text).unwrap_or_else(|| panic!("it has no linear process: {text}"))
}

/// Does the same, if it has one.
fn linear(text: &str) -> Option<String> {
    let file = tempfile::Builder::new().suffix(".mcrl2").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(["linearise", "--timeout", "5s"])
        .arg(file.path())
        .output()
        .unwrap();
    let lines = output.status.success().then(|| String::from_utf8(output.stdout).unwrap())?;
    Some(
        lines
            .lines()
            .filter(|l| !l.trim_start().starts_with('%'))
            .map(|l| format!("{l}\n"))
            .collect(),
    )
}

#[track_caller]
fn assert_same(found: &str, expected: &str, what: &str) {
    let different = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert!(found == expected, "{what}: {different:?}");
}

/// Returns a text with every word of one name replaced.
fn replace_word(text: &str, old: &str, new: &str) -> String {
    let mut out = String::new();
    let mut last = 0;
    // The lineariser names constants after sorts.
    let unused = format!("unused_{old}");
    for t in mu_check::syntax::tokens::tokens(text)
        .iter()
        .filter(|t| t.text(text) == old || t.text(text) == unused)
    {
        out += &text[last..t.range.start];
        out += &t.text(text).replace(old, new);
        last = t.range.end;
    }
    out + &text[last..]
}

#[test]
fn renaming_keeps_the_linear_process() {
    let mut client = Client::start(Some(Path::new(&package(""))));
    let arcx = PathBuf::from(package("specs/arcx.spec"));
    let text = std::fs::read_to_string(&arcx).unwrap();
    client.open(&arcx, &text);
    let before = linearise(&text);
    let mut renamed = 0;
    // An action that formulas have, a projection of three sorts, a sort, a process, a variable, a
    // parameter of a process and one of the file.
    for (mark, old) in [
        ("act start_store, end_store, ", "act"),
        ("observe: CoreID", "observe"),
        ("g_address: Address, g_data: Byte, g_nr: Nat) ? is_occupied", "g_address"),
        ("CoreID = struct", "CoreID"),
        ("P_WB(core_id: CoreID, bs", "P_WB"),
        ("clist: List(CoreID)", "clist"),
        ("wip1: CoreID; win1", "wip1"),
        ("num_cores: Pos", "num_cores"),
    ] {
        let place = text.find(mark).unwrap_or_else(|| panic!("{mark}"));
        let answer = client.at(
            "textDocument/rename",
            &arcx,
            &text,
            place,
            json!({ "newName": "fresh_name" }),
        );
        if old == "act" {
            assert_eq!(answer["error"]["message"], "there is no name here", "{answer}");
            continue;
        }
        let changes = &answer["result"]["changes"];
        let new = apply_edits(&text, &changes[uri(&arcx)]);
        assert_ne!(new, text, "{answer}");
        assert_same(&linearise(&new), &replace_word(&before, old, "fresh_name"), old);
        // The parts that the default parameters leave out as well.
        let release = |text: &str| {
            text.replace("release_acquire: Bool = false", "release_acquire: Bool = true")
        };
        assert_same(
            &linearise(&release(&new)),
            &replace_word(&linearise(&release(&text)), old, "fresh_name"),
            old,
        );
        let files = changes.as_object().unwrap().len();
        assert!(if old == "observe" { files > 5 } else { files >= 1 }, "{old}: {files}");
        renamed += 1;
    }
    assert_eq!(renamed, 7);
    for (mark, new, message) in [
        ("observe: CoreID", "nop", "`nop` is in use already"),
        ("observe: CoreID", "sum", "`sum` is not a name"),
        ("observe: CoreID", "1a", "`1a` is not a name"),
        ("c_data_${i}", "d", "the parameter layer builds this name"),
        ("Int2Nat(n - 1)", "x", "is not declared in these files"),
    ] {
        let answer = client.at(
            "textDocument/rename",
            &arcx,
            &text,
            text.find(mark).unwrap(),
            json!({ "newName": new }),
        );
        assert!(
            answer["error"]["message"].as_str().is_some_and(|m| m.contains(message)),
            "{answer}"
        );
    }
    client.end();
}

/// Random names of all models are renamed: the linear process is the one before, with the other
/// name in it. Of the folder that `MU_CHECK_MODELS` names too.
#[test]
fn renaming_random_names_keeps_the_linear_process() {
    let seed = std::env::var("MU_CHECK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0xD1CE);
    println!("replay with MU_CHECK_SEED={seed}");
    let mut random = Random::new(seed);
    let more = std::env::var_os("MU_CHECK_MODELS").is_some();
    let mut models = reference_models(&["mcrl2", "spec"]);
    let mut client = Client::start(Some(Path::new(&package(""))));
    let (mut renamed, mut refused) = (0, 0);
    while !models.is_empty() && (more || renamed < 40) {
        let path = models.swap_remove(random.below(models.len()));
        let Some((text, before)) =
            std::fs::read_to_string(&path).ok().and_then(|t| Some((t.clone(), linear(&t)?)))
        else {
            continue;
        };
        client.open(&path, &text);
        let words: Vec<_> = mu_check::syntax::tokens::tokens(&text)
            .into_iter()
            .filter(|t| t.kind == TokenKind::Word)
            .collect();
        for _ in 0..4 {
            let token = random.choose(&words);
            let old = token.text(&text).to_string();
            let answer = client.at(
                "textDocument/rename",
                &path,
                &text,
                token.range.start,
                json!({ "newName": "fresh_name" }),
            );
            let Some(edits) = answer["result"]["changes"].get(uri(&path)) else {
                assert!(
                    answer["error"]["message"].is_string(),
                    "{}: {old}: {answer}",
                    path.display()
                );
                refused += 1;
                continue;
            };
            let new = apply_edits(&text, edits);
            // Another item of the same name: the lineariser distinguishes them by numbers, which
            // then differ.
            if mu_check::syntax::tokens::tokens(&new).iter().any(|t| t.text(&new) == old) {
                continue;
            }
            let what = format!("{}: `{old}` at {}", path.display(), token.range.start);
            let after = linear(&new).unwrap_or_else(|| panic!("{what}: {new}"));
            assert_same(&after.replace("fresh_name", &old), &before, &what);
            renamed += 1;
        }
        client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri(&path) } }));
    }
    assert!(renamed > 20 && refused > 0, "{renamed} renamed, {refused} refused");
    println!("{renamed} renamed, {refused} refused");
    client.end();
}

/// Parameters that a call without arguments takes over are one name in both processes.
#[test]
fn renaming_follows_parameters_that_calls_take_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mcrl2");
    let text = "act a: Nat;\nproc P(x, y: Nat) = a(x) . Q(y = 1);\n     Q(x, y: Nat) = a(y) . P();\n     R(x: Nat) = a(x) . R(x);\ninit P(1, 2) || R(3);\n";
    let mut client = Client::start(Some(folder.path()));
    client.open(&path, text);
    let answer = client.at(
        "textDocument/rename",
        &path,
        text,
        text.find("x, y").unwrap(),
        json!({ "newName": "z" }),
    );
    let new = apply_edits(text, &answer["result"]["changes"][uri(&path)]);
    assert_eq!(
        new,
        text.replace("(x, y: Nat) = a(x)", "(z, y: Nat) = a(z)")
            .replace("Q(x, y: Nat)", "Q(z, y: Nat)")
    );
    linearise(&new);
    client.end();
}

/// An edit of the ARCx model to its diagnostics. Printed with `--nocapture`; the best of some edits
/// must be fast on any machine.
#[test]
fn an_edit_of_arcx() {
    let mut client = Client::start(Some(Path::new(&package(""))));
    let path = PathBuf::from(package("specs/arcx.spec"));
    let text = std::fs::read_to_string(&path).unwrap();
    client.open(&path, &text);
    assert_eq!(client.diagnostics(&path, 1), Vec::<Value>::new());
    let place = text.find("reset . delta").unwrap();
    let (start, end) = (position(&text, place), position(&text, place + 5));
    let mut version = 1;
    for (what, new, errors) in
        [("an unknown name", "resettt", 1), ("an open parenthesis", "reset (", 1)]
    {
        let mut times = Vec::new();
        for _ in 0..20 {
            let clock = std::time::Instant::now();
            client.change(
                &path,
                version + 1,
                json!([{ "range": { "start": start, "end": end }, "text": new }]),
            );
            assert_eq!(client.diagnostics(&path, version + 1).len(), errors);
            times.push(clock.elapsed());
            let column = start["character"].as_u64().unwrap() + new.len() as u64;
            let range =
                json!({ "start": start, "end": { "line": start["line"], "character": column } });
            client.change(&path, version + 2, json!([{ "range": range, "text": "reset" }]));
            assert_eq!(client.diagnostics(&path, version + 2), Vec::<Value>::new());
            version += 2;
        }
        times.sort();
        println!(
            "{what}: median {:.1} ms, most {:.1} ms",
            times[10].as_secs_f64() * 1e3,
            times[19].as_secs_f64() * 1e3
        );
        assert!(times[0] < Duration::from_millis(100), "{what}: {times:?}");
    }
    client.end();
}

/// Runs a client that nobody here wrote on a small project and on all files without errors. Whether
/// the client is there.
fn foreign_client(program: &str, arguments: &[&str]) -> bool {
    if Command::new(program).arg("--version").output().is_err() {
        println!("skipped: `{program}` is not installed");
        return false;
    }
    let (folder, _, _) = project();
    let others = folder.path().join("others");
    std::fs::create_dir(&others).unwrap();
    for (name, text) in [
        ("a.cub", SYSTEM),
        ("m.cat", MEMORY_MODEL),
        ("base.cat", BASE),
        ("sb.litmus", TEST),
        ("a.pbes", EQUATIONS),
        ("a.asm", PROGRAM),
    ] {
        std::fs::write(others.join(name), text).unwrap();
    }
    let list = folder.path().join("list");
    let good = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let mut sources = SourceMap::new();
        let tree = template::expand("", &text, &[], &mut sources)
            .and_then(|e| mu_check::syntax::parse_specification(e.source, &e.text));
        tree.and_then(|tree| mu_check::process::typecheck::check_specification(&tree)).is_ok()
    };
    let mut files: Vec<PathBuf> =
        reference_models(&["mcrl2", "spec"]).into_iter().filter(good).collect();
    let taken = |path: &PathBuf| {
        std::fs::read_to_string(path).is_ok_and(|text| resolve_names(path, &text).is_some())
    };
    files.extend(reference_models(&["asm", "pbes"]).into_iter().filter(taken));
    std::fs::write(&list, files.iter().map(|p| format!("{}\n", p.display())).collect::<String>())
        .unwrap();
    let arguments: Vec<String> = arguments
        .iter()
        .map(|a| a.replace("{command}", env!("CARGO_BIN_EXE_mu-check")))
        .map(|a| {
            a.replace("{folder}", &folder.path().display().to_string())
                .replace("{list}", &list.display().to_string())
        })
        .collect();
    let output = Command::new(program)
        .args(&arguments)
        .env("MU_CHECK", env!("CARGO_BIN_EXE_mu-check"))
        .env("MU_CHECK_FOLDER", folder.path())
        .env("MU_CHECK_LIST", &list)
        .env("HOME", folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("the client runs");
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && out.contains(&format!("ok {}", files.len())),
        "{out}{error}"
    );
    true
}

#[test]
fn neovim() {
    foreign_client(
        "nvim",
        &[
            "--headless",
            "--clean",
            "-n",
            "-c",
            &format!("luafile {}", package("tests/editors/session.lua")),
        ],
    );
}

/// With the library of Visual Studio Code's client, where `npm ci` in editors/vscode has fetched
/// it.
#[test]
fn node() {
    if !Path::new(&package("editors/vscode/node_modules/vscode-jsonrpc")).exists() {
        println!("skipped: editors/vscode/node_modules is not there (`npm ci` there makes it)");
        return;
    }
    foreign_client(
        "node",
        &[&package("editors/vscode/session.mjs"), "{command}", "{folder}", "{list}"],
    );
}
