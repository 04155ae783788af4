//! The local web page for a hostile client, over a bare socket: rejected requests, paths,
//! numbers of runs. Requests of the page itself: files, the language server, runs, walks. The page
//! in a browser is `tests/pages.rs`.

use mu_check::lts::equivalence::Equivalence;
use mu_check::lts::preorder::Preorder;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CHAIN: &str = "act enter, leave, give, take, mid: Nat;
proc First = sum n: Nat. (n < 2) -> enter(n) . give(n) . First;
proc Second(held: List(Nat)) = sum n: Nat. take(n) . leave(n) . Second([n]);
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First || Second([]))));
";
/// Its states never end.
const ENDLESS: &str =
    "act step: Nat;\nproc P(n: Nat) = step(n) . P(n + 1) + step(0) . P(2 * n + 1);\ninit P(0);\n";

struct Studio {
    process: Child,
    folder: tempfile::TempDir,
    /// `127.0.0.1:PORT`, and the token.
    host: String,
    token: String,
}

impl Drop for Studio {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// An answer: status, head, body.
struct Answer(u16, String, String);

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.2).unwrap_or_else(|e| panic!("{e}: {}", self.2))
    }
}

impl Studio {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        write("secret.mcf", "[true]false");
        write("in/chain.mcrl2", CHAIN);
        write("in/endless.mcrl2", ENDLESS);
        write("in/never.mcf", "% Nothing leaves.\n[true* . leave(1)]false\n");
        #[cfg(unix)]
        std::os::unix::fs::symlink("../secret.mcf", folder.path().join("in/link.mcf")).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(["studio", "in", "--threads", "1"])
            .args(options)
            .current_dir(folder.path())
            // A killed server leaves its temporary folder behind.
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address =
            line.trim().strip_prefix("http://").unwrap_or_else(|| panic!("no address: {line}"));
        let (host, token) = address.trim_end_matches('/').split_once('/').unwrap();
        assert!(host.starts_with("127.0.0.1:") && token.len() == 64, "{address}");
        Self { folder, host: host.to_string(), token: token.to_string(), process }
    }

    /// Sends bytes as they are, and reads the answer to its end.
    fn raw(&self, text: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) =
            text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
        Answer(head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_string(), body.to_string())
    }

    fn get_with(&self, path: &str, headers: &str) -> Answer {
        self.raw(&format!("GET /{}/{path} HTTP/1.1\r\n{headers}\r\n", self.token))
    }

    fn get(&self, path: &str) -> Answer {
        self.get_with(path, &format!("Host: {}\r\n", self.host))
    }

    fn post_with(&self, path: &str, headers: &str, body: &str) -> Answer {
        self.raw(&format!(
            "POST /{}/{path} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.token,
            body.len()
        ))
    }

    /// As the page posts.
    fn post(&self, path: &str, body: &Value) -> Answer {
        let host = &self.host;
        let headers =
            format!("Host: {host}\r\nOrigin: http://{host}\r\nContent-Type: application/json\r\n");
        self.post_with(path, &headers, &body.to_string())
    }

    /// Waits for the end of a run.
    fn wait_for_end(&self, id: u64) -> Value {
        let begin = Instant::now();
        loop {
            let run = self.get(&format!("api/run?id={id}")).json();
            if ["over", "stopped"].contains(&run["state"].as_str().unwrap()) {
                return run;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "{run}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }
}

#[test]
fn only_the_page_itself_is_answered() {
    let studio = Studio::start(&[]);
    let host = studio.host.clone();
    let own = format!("Host: {host}\r\n");
    assert_eq!(studio.get("api/files").0, 200);
    // The token.
    for token in ["", "x", &studio.token[..63], &"0".repeat(64), &format!("{}0", studio.token)] {
        assert_eq!(
            studio.raw(&format!("GET /{token}/api/files HTTP/1.1\r\n{own}\r\n")).0,
            404,
            "{token}"
        );
    }
    assert_eq!(studio.raw(&format!("GET / HTTP/1.1\r\n{own}\r\n")).0, 404);
    // The names of the server: a name that somebody lets lead here is none of them.
    for name in [
        "",
        "Host: evil.example\r\n",
        "Host: evil.example:80\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: 127.0.0.1:1\r\n",
    ] {
        assert_eq!(studio.get_with("api/files", name).0, 403, "{name}");
    }
    assert_eq!(
        studio.get_with("api/files", &format!("Host: {host}\r\nHost: evil.example\r\n")).0,
        400
    );
    let port = host.split_once(':').unwrap().1;
    assert_eq!(studio.get_with("api/files", &format!("Host: localhost:{port}\r\n")).0, 200);
    // Other origins, with the token too.
    for origin in [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        &format!("http://localhost:{port}"),
        "http://127.0.0.1:1",
    ] {
        assert_eq!(
            studio.get_with("api/files", &format!("{own}Origin: {origin}\r\n")).0,
            403,
            "{origin}"
        );
        let headers = format!("{own}Origin: {origin}\r\nContent-Type: application/json\r\n");
        let refused =
            studio.post_with("api/run", &headers, r#"{"kind":"explore","model":"chain.mcrl2"}"#);
        assert_eq!(refused.0, 403, "{origin}");
        assert!(refused.2.contains("are not allowed"), "{}", refused.2);
    }
    assert_eq!(
        studio.post_with("api/run", &format!("{own}Content-Type: application/json\r\n"), "{}").0,
        403
    );
    assert_eq!(
        studio.get_with("api/files", &format!("{own}Sec-Fetch-Site: cross-site\r\n")).0,
        403
    );
    assert_eq!(
        studio.get_with("api/files", &format!("{own}Sec-Fetch-Site: same-origin\r\n")).0,
        200
    );
    // Requests that a form could send without a preflight.
    assert_eq!(
        studio
            .post_with(
                "api/run",
                &format!("{own}Origin: http://{host}\r\nContent-Type: text/plain\r\n"),
                "{}"
            )
            .0,
        415
    );
    assert_eq!(
        studio
            .raw(&format!(
                "OPTIONS /{}/api/run HTTP/1.1\r\n{own}Origin: http://{host}\r\n\r\n",
                studio.token
            ))
            .0,
        405
    );
    assert_eq!(studio.get("api/runs").json(), json!([]), "nothing was started");
    for answer in [studio.get("api/files"), studio.get("")] {
        assert!(!answer.1.to_lowercase().contains("access-control-allow"), "{}", answer.1);
    }
}

#[test]
fn the_page_may_do_little_in_a_browser() {
    let studio = Studio::start(&[]);
    let page = studio.get("");
    let policy = page.1.lines().find_map(|l| l.strip_prefix("Content-Security-Policy: ")).unwrap();
    for part in [
        "default-src 'none'",
        "script-src 'self';",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let nonce = policy.split("'nonce-").nth(1).and_then(|p| p.split('\'').next()).unwrap();
    assert!(page.2.contains(nonce) && !studio.get("").1.contains(nonce), "a nonce is used once");
    for part in [
        "Cache-Control: no-store",
        "Referrer-Policy: no-referrer",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
    ] {
        assert!(page.1.contains(part), "{}", page.1);
    }
    assert!(studio.get("api/files").1.contains("Content-Security-Policy: default-src 'none'"));
    for (path, kind) in [("studio.js", "text/javascript"), ("studio.css", "text/css")] {
        assert!(studio.get(path).1.contains(kind));
    }
    assert_eq!((studio.get("studio.map").0, studio.get("../Cargo.toml").0), (404, 404));
}

/// Nobody reaches the server from another machine: it listens on the loopback interface.
#[cfg(target_os = "linux")]
#[test]
fn it_listens_on_the_loopback_interface_only() {
    let studio = Studio::start(&[]);
    let port = studio.host.split_once(':').unwrap().1.parse::<u16>().unwrap();
    let mut found = 0;
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        for line in std::fs::read_to_string(table).unwrap_or_default().lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.get(3) == Some(&"0A") && words[1].ends_with(&format!(":{port:04X}")) {
                assert_eq!(words[1].split(':').next(), Some("0100007F"), "{line}");
                found += 1;
            }
        }
    }
    assert_eq!(found, 1);
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let studio = Studio::start(&[]);
    let out = studio.folder.path().join("secret.mcf").display().to_string();
    let mut names = vec![
        "../secret.mcf",
        "..%2Fsecret.mcf",
        "in/../../secret.mcf",
        &out,
        ".",
        "",
        "/etc/passwd",
        "%2e%2e/secret.mcf",
        "..\\secret.mcf",
    ];
    if cfg!(unix) {
        names.push("link.mcf");
    }
    for name in names {
        let read = studio.get(&format!("api/file?path={name}"));
        assert!(read.0 == 403 && !read.2.contains("[true]false"), "{name}: {} {}", read.0, read.2);
        let write = studio.post(
            &format!("api/file?path={name}"),
            &json!({ "text": "x", "before": "[true]false" }),
        );
        assert_eq!(write.0, 403, "{name}");
        let plain = name.replace("%2F", "/").replace("%2e", ".");
        let run = studio.post(
            "api/run",
            &json!({ "kind": "check", "model": "chain.mcrl2", "formulas": [plain] }),
        );
        assert_eq!(run.0, 403, "{name}");
        let walk = studio.post("api/walk", &json!({ "kind": "simulate", "model": plain }));
        assert_eq!(walk.0, 403, "{name}");
    }
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "[true]false");
    let files = studio.get("api/files").json();
    assert_eq!(files["files"], json!(["chain.mcrl2", "endless.mcrl2", "never.mcf"]));
    // Only texts of models are written, and none that another program changed meanwhile.
    let write = |name: &str, body: Value| studio.post(&format!("api/file?path={name}"), &body).0;
    assert_eq!(
        [write("run.sh", json!({ "text": "" })), write(".bashrc", json!({ "text": "" }))],
        [403, 403]
    );
    assert_eq!(
        [write("new.mcf", json!({ "text": "true" })), write("new.mcf", json!({ "text": "false" }))],
        [200, 409]
    );
    assert_eq!(write("new.mcf", json!({ "text": "false", "before": "other" })), 409);
    assert_eq!(write("new.mcf", json!({ "text": "false", "before": "true" })), 200);
    assert_eq!(studio.get("api/file?path=new.mcf").json()["text"], "false");
}

/// A run opens only files of the folder: lists, includes, links, files next to the model.
#[cfg(unix)]
#[test]
fn no_run_reads_outside_the_folder() {
    let studio = Studio::start(&[]);
    let inside = |name: &str, text: &str| {
        std::fs::write(studio.folder.path().join("in").join(name), text).unwrap()
    };
    std::fs::write(studio.folder.path().join("passes.txt"), "swordfish : not a litmus test\n")
        .unwrap();
    inside("@up.txt", "../passes.txt\n");
    inside("@root.txt", &format!("{}\n", studio.folder.path().join("passes.txt").display()));
    inside("@list.txt", "@linked.txt\n");
    std::os::unix::fs::symlink("../passes.txt", studio.folder.path().join("in/@linked.txt"))
        .unwrap();
    std::os::unix::fs::symlink("../passes.txt", studio.folder.path().join("in/chain.interface"))
        .unwrap();
    for list in ["@up.txt", "@root.txt", "@list.txt"] {
        let started = studio.post("api/run", &json!({ "kind": "litmus", "model": list })).json();
        let run =
            studio.wait_for_end(started["id"].as_u64().unwrap_or_else(|| panic!("{started}")));
        assert!(!run.to_string().contains("swordfish"), "{list}: {run}");
        assert!(run.to_string().contains("outside the folder"), "{list}: {run}");
    }
    let started =
        studio.post("api/run", &json!({ "kind": "explore", "model": "chain.mcrl2" })).json();
    let run = studio.wait_for_end(started["id"].as_u64().unwrap());
    assert!(!run.to_string().contains("swordfish"), "{run}");
    assert_eq!(run["result"]["states"], 15, "{run}");
}

#[test]
fn requests_have_limits() {
    let studio = Studio::start(&[]);
    let own = format!(
        "Host: {0}\r\nOrigin: http://{0}\r\nContent-Type: application/json\r\n",
        studio.host
    );
    let path = format!("/{}/api/run", studio.token);
    assert_eq!(
        studio.raw(&format!("POST {path} HTTP/1.1\r\n{own}Content-Length: 99999999999\r\n\r\n")).0,
        413
    );
    assert_eq!(
        studio
            .raw(&format!(
                "POST {path} HTTP/1.1\r\n{own}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ))
            .0,
        501
    );
    assert_eq!(
        studio.raw(&format!("GET {path} HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000))).0,
        431
    );
    assert_eq!(studio.raw("nonsense\r\n\r\n").0, 400);
    for body in [
        "",
        "{",
        "[]",
        "{}",
        r#"{"kind":"convert","model":"chain.mcrl2"}"#,
        r#"{"kind":"explore","model":"chain.mcrl2","out":"x.aut"}"#,
    ] {
        assert_eq!(studio.post_with("api/run", &own, body).0, 400, "{body}");
    }
    // Connections that say nothing do not keep others away for ever, and beyond a number they are
    // refused.
    let idle: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(&studio.host).unwrap()).collect();
    let begin = Instant::now();
    while studio.get("api/files").0 != 503 {
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    drop(idle);
    while studio.get("api/files").0 != 200 {
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn runs_have_limits_and_can_be_stopped() {
    let studio = Studio::start(&["--runs", "1", "--timeout", "2s"]);
    let explore = json!({ "kind": "explore", "model": "endless.mcrl2" });
    let first = studio.post("api/run", &explore);
    assert_eq!(first.0, 200, "{}", first.2);
    let id = first.json()["id"].as_u64().unwrap();
    let second = studio.post("api/run", &explore);
    assert!(second.0 == 429 && second.2.contains("1 runs are active"), "{} {}", second.0, second.2);
    // Progress comes while it runs.
    let begin = Instant::now();
    while studio.get(&format!("api/run?id={id}")).json()["progress"]["states"]
        .as_u64()
        .is_none_or(|n| n == 0)
    {
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(studio.post(&format!("api/stop?id={id}"), &json!({})).0, 200);
    let run = studio.wait_for_end(id);
    assert_eq!(
        (&run["state"], &run["result"]["stop"]),
        (&json!("stopped"), &json!("interrupted")),
        "{run}"
    );
    // Its own time.
    let id = studio.post("api/run", &explore).json()["id"].as_u64().unwrap();
    let run = studio.wait_for_end(id);
    assert_eq!(
        (&run["state"], &run["result"]["stop"], &run["code"]),
        (&json!("over"), &json!("timeout"), &json!(3)),
        "{run}"
    );
    assert!(run["seconds"].as_f64().unwrap() < 60.0, "{run}");
    assert_eq!(
        (studio.post("api/stop?id=99", &json!({})).0, studio.get("api/run?id=x").0),
        (404, 400)
    );
}

/// A stopped sweep lists its missing rows, and names no folder of the server.
#[test]
fn a_stopped_sweep_names_no_scratch_folder() {
    let studio = Studio::start(&["--timeout", "600s"]);
    std::fs::write(
        studio.folder.path().join("in/any.spec"),
        "$param n: Pos = 1;\nact a; proc P(k: Nat) = (k < ${n}) -> a . P(k + 1); init P(0);\n",
    )
    .unwrap();
    let sweep =
        json!({ "kind": "sweep", "model": "any.spec", "defines": { "n": "1,1000000000000000" } });
    let started = studio.post("api/run", &sweep);
    assert_eq!(started.0, 200, "{}", started.2);
    let id = started.json()["id"].as_u64().unwrap();
    let begin = Instant::now();
    while studio.get(&format!("api/run?id={id}")).json()["rows"] != 1 {
        assert!(begin.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(studio.post(&format!("api/stop?id={id}"), &json!({})).0, 200);
    let run = studio.wait_for_end(id);
    let said: Vec<&str> =
        run["said"].as_array().unwrap().iter().filter_map(|s| s.as_str()).collect();
    assert!(
        said.iter()
            .any(|s| s.starts_with("interrupted: ") && s.contains(" rows are in the table, ")),
        "{run}"
    );
    assert!(!said.iter().any(|s| s.contains("mu-check-studio")), "{run}");
}

#[test]
fn runs_have_a_limit_of_memory() {
    let studio = Studio::start(&["--max-memory", "64M"]);
    let id = studio.post("api/run", &json!({ "kind": "explore", "model": "endless.mcrl2" })).json()
        ["id"]
        .as_u64()
        .unwrap();
    let run = studio.wait_for_end(id);
    assert_eq!(run["result"]["stop"], "max-memory", "{run}");
    assert!(run["result"]["peak_memory_bytes"].as_u64().unwrap() < 80 << 20, "{run}");
}

/// A result as one file: the page that `report` writes, of a run that has a result; no other client
/// can request it, and nothing of it remains.
#[test]
fn a_result_is_handed_out_as_one_file() {
    let studio = Studio::start(&[]);
    let id = studio
        .post(
            "api/run",
            &json!({ "kind": "check", "model": "chain.mcrl2", "formulas": ["never.mcf"] }),
        )
        .json()["id"]
        .as_u64()
        .unwrap();
    let run = studio.wait_for_end(id);
    let answer = studio.get(&format!("api/report?id={id}"));
    assert_eq!(answer.0, 200, "{}", answer.2);
    let page = answer.json()["text"].as_str().unwrap().to_string();
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("<title>chain.mcrl2</title>"),
        "{}",
        &page[..200]
    );
    assert!(
        page.contains("mu-check check chain.mcrl2 never.mcf")
            && page.contains("Content-Security-Policy")
    );
    // The page has the result as it is.
    let data = page.split(r#"id="data">"#).nth(1).unwrap().split("</script>").next().unwrap();
    assert_eq!(serde_json::from_str::<Value>(data).unwrap()["shown"][0]["value"], run["result"]);
    assert_eq!(studio.get(&format!("api/report?id={}", id + 1)).0, 404);
    assert_eq!(studio.get("api/report?id=../../never").0, 400);
    let foreign = format!("Host: {}\r\nOrigin: http://evil.example\r\n", studio.host);
    assert_eq!(studio.get_with(&format!("api/report?id={id}"), &foreign).0, 403);
    let names: Vec<_> = std::fs::read_dir(studio.folder.path().join("in"))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|n| !n.to_string_lossy().contains("report")
                && !n.to_string_lossy().contains("result")),
        "{names:?}"
    );
    // A rejection is no result that a page shows; it is reported.
    std::fs::write(studio.folder.path().join("in/bad.mcf"), "[true*]<fly>true").unwrap();
    let id = studio
        .post(
            "api/run",
            &json!({ "kind": "check", "model": "chain.mcrl2", "formulas": ["bad.mcf"] }),
        )
        .json()["id"]
        .as_u64()
        .unwrap();
    studio.wait_for_end(id);
    assert_eq!(studio.get(&format!("api/report?id={id}")).0, 422);
}

/// The result of a run is the output of the command line: no view computes a verdict of its own.
#[test]
fn results_are_those_of_the_command_line() {
    let studio = Studio::start(&[]);
    let id = studio
        .post(
            "api/run",
            &json!({ "kind": "check", "model": "chain.mcrl2", "formulas": ["never.mcf"] }),
        )
        .json()["id"]
        .as_u64()
        .unwrap();
    let mut run = studio.wait_for_end(id);
    let folder: &Path = &studio.folder.path().join("in");
    let command = run["command"].as_str().unwrap().to_string();
    assert_eq!(command, "mu-check check chain.mcrl2 never.mcf");
    let line = format!("{} --format json --threads 1", command.strip_prefix("mu-check ").unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(line.split(' '))
        .current_dir(folder)
        .output()
        .unwrap();
    let mut printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    for object in [&mut run["result"], &mut printed] {
        for key in ["command", "peak_memory_bytes"] {
            object.as_object_mut().unwrap().remove(key);
        }
        object["results"][0]["seconds"] = json!(0);
    }
    assert_eq!(run["result"], printed);
    assert_eq!((&run["code"], &printed["results"][0]["verdict"]), (&json!(1), &json!("false")));
    // A rejected one has the reason.
    std::fs::write(folder.join("bad.mcf"), "[true*]<fly>true").unwrap();
    let id = studio
        .post(
            "api/run",
            &json!({ "kind": "check", "model": "chain.mcrl2", "formulas": ["bad.mcf"] }),
        )
        .json()["id"]
        .as_u64()
        .unwrap();
    let run = studio.wait_for_end(id);
    assert!(run["result"]["error"]["message"].as_str().unwrap().contains("fly"), "{run}");
    // A sweep has its rows, and resumes.
    let sweep = json!({ "kind": "sweep", "model": "chain.mcrl2", "formulas": ["never.mcf"] });
    let id = studio.post("api/run", &sweep).json()["id"].as_u64().unwrap();
    assert_eq!(studio.wait_for_end(id)["result"]["rows"].as_array().unwrap().len(), 2);
    assert!(!folder.join("sweep").exists(), "tables of a sweep are no files of the folder");
}

#[test]
fn walks_step_and_draw() {
    let studio = Studio::start(&[]);
    let start =
        |model: &str| studio.post("api/walk", &json!({ "kind": "simulate", "model": model }));
    let first = start("chain.mcrl2").json();
    assert_eq!(first["components"], json!(["First", "Second"]));
    let walk = first["walk"].as_u64().unwrap();
    let ask = |request: Value| studio.post(&format!("api/ask?walk={walk}"), &request);
    let action = |state: &Value| state["steps"][0]["action"].as_str().unwrap().to_string();
    assert_eq!(action(&first["first"]), "enter(0)");
    let next = ask(json!({ "state": first["first"]["steps"][0]["to"] })).json();
    assert_eq!((action(&next).as_str(), &next["steps"][0]["hidden"]), ("tau", &json!(["mid(0)"])));
    assert_eq!(ask(json!({ "state": 0 })).json(), first["first"]);
    let graph = ask(json!({ "graph": 1000 })).json();
    assert_eq!(
        (graph["complete"].as_bool(), graph["states"].as_array().unwrap().len()),
        (Some(true), 15)
    );
    let small = ask(json!({ "graph": 1000, "reduce": "branching" })).json();
    assert_eq!((small["levels"].as_array().unwrap().len(), &small["of"]), (7, &json!(15)));
    // States without their transitions in the picture are no deadlocks.
    let cut = ask(json!({ "graph": 3 })).json();
    assert_eq!(
        (&cut["complete"], &cut["cut"], &cut["edges"]),
        (&json!(false), &json!([1, 2]), &json!([[0, 1, 1], [0, 2, 2]]))
    );
    assert!(ask(json!({ "state": 10_000 })).json()["error"].as_str().unwrap().contains("10000"));
    assert!(ask(json!("nonsense")).json()["error"].is_string());
    // Not more walks than runs: the oldest makes room.
    let _ = (start("chain.mcrl2"), start("endless.mcrl2"));
    assert_eq!(ask(json!({ "state": 0 })).0, 404);
    std::fs::write(studio.folder.path().join("in/bad.mcrl2"), "init P;").unwrap();
    let bad = start("bad.mcrl2");
    assert!(bad.0 == 422 && bad.2.contains("`P`"), "{} {}", bad.0, bad.2);
}

/// A walk that has no answer ends in its time; as long as it is at it, there is no room for more
/// than the limit says.
#[test]
fn walks_have_limits() {
    let studio = Studio::start(&["--runs", "1", "--timeout", "2s"]);
    // The label of its first step takes longer than anybody waits.
    let slow = "map f: Nat -> Nat;\nvar n: Nat;\neqn n == 0 -> f(n) = 1;\nn > 0 -> f(n) = (f(Int2Nat(n - 1)) + f(Int2Nat(n - 1))) mod 7;
act a: Nat;\ninit a(f(60)) . delta;\n";
    std::fs::write(studio.folder.path().join("in/slow.mcrl2"), slow).unwrap();
    let start =
        |model: &str| studio.post("api/walk", &json!({ "kind": "simulate", "model": model }));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| start("slow.mcrl2"));
        std::thread::sleep(Duration::from_millis(700));
        let second = start("chain.mcrl2");
        assert!(second.0 == 429 && second.2.contains("busy"), "{} {}", second.0, second.2);
        let first = first.join().unwrap();
        assert!(first.0 == 504, "{} {}", first.0, first.2);
    });
    assert_eq!(start("chain.mcrl2").0, 200);
}

/// Diagnostics are those of the language server, over a stream of events.
#[test]
fn the_language_server_answers_the_page() {
    let studio = Studio::start(&[]);
    let mut stream = TcpStream::connect(&studio.host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(
        stream,
        "GET /{}/api/events?page=pageone1 HTTP/1.1\r\nHost: {}\r\n\r\n",
        studio.token, studio.host
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut event = |name: &str, fits: &dyn Fn(&Value) -> bool| loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "the stream ended");
        if line.trim_end() != format!("event: {name}") {
            continue;
        }
        line.clear();
        reader.read_line(&mut line).unwrap();
        let value: Value =
            serde_json::from_str(line.trim_end().strip_prefix("data: ").unwrap()).unwrap();
        if fits(&value) {
            return value;
        }
    };
    assert_eq!(event("hello", &|_| true)["language"], true);
    let send_message =
        |message: Value| assert_eq!(studio.post("api/language?page=pageone1", &message).0, 200);
    send_message(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "rootUri": "file:///studio", "capabilities": {} } }),
    );
    assert!(event("language", &|m| m["id"] == 1)["result"]["capabilities"].is_object());
    send_message(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
    let open = |name: &str, text: &str| {
        json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params":
            { "textDocument": { "uri": format!("file:///studio/{name}"), "languageId": "mcrl2", "version": 1, "text": text } } })
    };
    send_message(open("chain.mcrl2", &CHAIN.replace("give(n) . First", "give(m) . First")));
    let shown = event("language", &|m| m["method"] == "textDocument/publishDiagnostics");
    let problem = &shown["params"]["diagnostics"][0];
    assert!(
        problem["message"].as_str().unwrap().contains("`m`")
            && problem["range"]["start"]["line"] == 1,
        "{shown}"
    );
    // A formula's model is read from the folder, and from nowhere else.
    send_message(open("x.mcf", "% model: ../secret.mcf\n[true]false"));
    let shown = event("language", &|m| m["params"]["uri"] == "file:///studio/x.mcf");
    assert!(
        shown["params"]["diagnostics"][0]["message"].as_str().unwrap().contains("does not exist"),
        "{shown}"
    );
    let refused =
        |page: &str, message: Value| studio.post(&format!("api/language?page={page}"), &message).0;
    assert_eq!((refused("nobody00", json!({})), refused("pageone1", json!("x"))), (404, 400));
}

/// The page lists the equivalences and preorders of the program's tables.
#[test]
fn the_page_offers_all_equivalences_and_preorders() {
    let path = crate::support::package("studio/app/commands.ts");
    let text = std::fs::read_to_string(path).expect("the sources of the page");
    let listed = |constant: &str| -> Vec<String> {
        let line = text.lines().find(|l| l.starts_with(&format!("const {constant} ")));
        let values = line.and_then(|l| l.split_once("values: [")).and_then(|l| l.1.split_once(']'));
        let (values, _) = values.unwrap_or_else(|| panic!("`{constant}` lists no values"));
        values.split(',').map(|v| v.trim().trim_matches('"').to_string()).collect()
    };
    let mut equivalences: Vec<&str> = Equivalence::ALL.iter().map(|e| e.name()).collect();
    equivalences.push(mu_check::chance::bisimulation::NAME);
    let mut in_table = listed("EQUIVALENCE");
    in_table.sort_unstable();
    equivalences.sort_unstable();
    assert_eq!(in_table, equivalences);
    let preorders = Preorder::ALL.iter().map(|p| p.name());
    assert_eq!(listed("PREORDER"), [""].into_iter().chain(preorders).collect::<Vec<_>>());
}
