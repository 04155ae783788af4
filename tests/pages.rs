//! Pages of results: `--evidence FILE.html` and `report`; the committed bundle, compared with its
//! sources; all of it in a real browser.
//!
//! The browser's parts are `studio/test/report.mjs`, `studio/test/studio.mjs` and
//! `studio/test/web.mjs`; `studio/test/module.mjs` needs node only. They run where node, the
//! packages of `studio/package-lock.json` (`npm ci` in `studio/`) and Chromium are found; elsewhere
//! the tests say what is missing and do nothing.

use crate::support::package;
use mu_check::report::page::{HASHES, SCRIPT};
use mu_check::studio;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

fn run(folder: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_mu-check"))
        .args(line.split(' '))
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn code(folder: &Path, line: &str) -> i32 {
    run(folder, line).status.code().unwrap()
}

/// Returns the results that a page holds.
fn page_results(folder: &Path, name: &str) -> Vec<Value> {
    let page = std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(page.contains("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-"), "{name}");
    let from = page.find("id=\"data\">").unwrap() + 10;
    let data: Value =
        serde_json::from_str(&page[from..from + page[from..].find("</script>").unwrap()]).unwrap();
    data["shown"].as_array().unwrap().clone()
}

fn prepare() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "chain.mcrl2",
        "act enter, leave, give, take, mid: Nat;
proc First = sum n: Nat. (n < 2) -> enter(n) . give(n) . First;
proc Second(held: List(Nat)) = sum n: Nat. take(n) . leave(n) . Second([n]);
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First || Second([]))));
",
    );
    write("never.mcf", "\n% Nothing leaves.\n[true* . leave(1)]false\n");
    write("always.mcf", "[true*]<true>true");
    write("bad.mcf", "[true*]<fly>true");
    write(
        "SB.litmus",
        "X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n",
    );
    folder
}

#[test]
fn one_page_has_all_formulas() {
    let folder = prepare();
    let at = folder.path();
    assert_eq!(code(at, "check chain.mcrl2 never.mcf always.mcf bad.mcf --evidence all.html"), 2);
    let page = &page_results(at, "all.html")[0];
    assert_eq!((&page["kind"], &page["value"]["model"]), (&"check".into(), &"chain.mcrl2".into()));
    assert_eq!(
        page["value"]["command"],
        "mu-check check chain.mcrl2 never.mcf always.mcf bad.mcf --evidence all.html"
    );
    let results = page["value"]["results"].as_array().unwrap();
    let verdicts: Vec<&str> = results.iter().map(|r| r["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["false", "true", "unknown"]);
    let never = &results[0];
    assert_eq!(
        (&never["text"], &never["first_line"]),
        (&"% Nothing leaves.\n[true* . leave(1)]false".into(), &2.into())
    );
    assert_eq!(
        (&never["components"], &never["linear"]),
        (&serde_json::json!(["First", "Second"]), &true.into())
    );
    // `give` says a number and `take` any: the second learns it. What then means nothing any more
    // is said.
    let mid = &never["evidence"][1];
    assert_eq!(
        (&mid["parts"][0]["action"], &mid["parts"][0]["receiver"]),
        (&"mid(1)".into(), &"Second".into())
    );
    assert_eq!((&mid["meaning"]["held"], &mid["meaning"]["n"]), (&Value::Null, &Value::Null));
    assert!(mid["meaning"].as_object().unwrap().contains_key("held"));
    assert!(results[2]["error"]["message"].as_str().unwrap().contains("fly"));
    // The page has the printed JSON.
    let printed = run(at, "check chain.mcrl2 never.mcf --format json --evidence one.html");
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(page_results(at, "one.html")[0]["value"], printed);
}

/// The page has the first values and what each step says; that gives the values that
/// `--full-states` lists.
#[test]
fn steps_say_enough_for_all_values() {
    let folder = prepare();
    let arcx = format!(
        "check {} {} -D memcommands_size=2 -D max_operation_id=1",
        package("specs/arcx.spec"),
        package("formulas/1a.gos.mcf")
    );
    let mut begun = 0;
    for line in ["check chain.mcrl2 never.mcf", &arcx] {
        let output = run(folder.path(), &format!("{line} --full-states --format json"));
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        let result = &object["results"][0];
        let parameters = result["parameters"].as_array().unwrap();
        let mut values: BTreeMap<String, Value> = parameters
            .iter()
            .map(|p| (p["name"].as_str().unwrap().to_string(), p["initial"].clone()))
            .collect();
        for (n, step) in result["evidence"].as_array().unwrap().iter().enumerate() {
            begun += step["meaning"]
                .as_object()
                .map_or(0, |m| m.values().filter(|v| !v.is_null()).count());
            for key in ["changed", "meaning"] {
                values.extend(
                    step[key]
                        .as_object()
                        .into_iter()
                        .flatten()
                        .map(|(k, v)| (k.clone(), v.clone())),
                );
            }
            let known =
                values.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone()));
            assert_eq!(Value::Object(known.collect()), step["state"], "{line}, step {}", n + 1);
        }
    }
    assert!(begun > 0, "no parameter begins to mean something with the value that it had");
}

#[test]
fn pages_of_other_commands() {
    let folder = prepare();
    let at = folder.path();
    assert_eq!(code(at, "explore chain.mcrl2 --action leave --all 2 --evidence ways.html"), 1);
    assert_eq!(page_results(at, "ways.html")[0]["value"]["ways"].as_array().unwrap().len(), 2);
    assert_eq!(code(at, "litmus SB.litmus --evidence SB.html"), 0);
    let test = &page_results(at, "SB.html")[0]["value"]["tests"][0];
    let relations = |graph: &Value| {
        let mut all: Vec<String> = graph["edges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["relation"].as_str().unwrap().to_string())
            .collect();
        all.sort();
        all.join(" ")
    };
    assert_eq!(
        (relations(&test["execution"]), &test["execution"]["events"][0]["text"]),
        ("fr fr po po".into(), &"W x=1".into())
    );
    assert_eq!(code(at, "litmus SB.litmus --evidence SB.json"), 0);
    let graph: Value =
        serde_json::from_str(&std::fs::read_to_string(at.join("SB.json")).unwrap()).unwrap();
    assert_eq!(graph, test["execution"]);
    // The run of a program, with or without stores that wait in buffers.
    let old = "[true*.read(0,y,0).true*.read(1,x,0).true*.flush(0,x,1).true*.flush(1,y,1)]false";
    for (memory, formula, relations_of_run) in
        [("tso", old, "fr fr po po"), ("sc", "[true*.read(1,x,1)]false", "po rf")]
    {
        assert_eq!(
            code(at, &format!("check SB.litmus -f {formula} --model {memory} --evidence run.html")),
            1
        );
        let graph = &page_results(at, "run.html")[0]["value"]["results"][0]["execution"];
        assert_eq!(
            (relations(graph), graph["title"].as_str()),
            (relations_of_run.into(), Some("Memory operations of the run")),
            "{graph}"
        );
    }
    // The run of a specification with an interface of memory operations: given by option, or found
    // next to the model.
    let fault =
        crate::support::faults::FAULTS.iter().find(|f| f.name == "load_passes_buffer").unwrap();
    let broken = crate::support::faults::patch(
        &std::fs::read_to_string(package("specs/arcx.spec")).unwrap(),
        fault.edits,
    );
    std::fs::write(at.join("broken.spec"), broken).unwrap();
    let (interface, formula) =
        (package("specs/arcx.interface"), package("formulas/2.selfobserving.mcf"));
    let line = format!("check broken.spec {formula} -D max_operation_id=1 --evidence arcx.html");
    assert_eq!(code(at, &line), 1);
    assert!(page_results(at, "arcx.html")[0]["value"]["results"][0].get("execution").is_none());
    assert_eq!(code(at, &format!("{line} --interface {interface}")), 1);
    let named = page_results(at, "arcx.html")[0]["value"]["results"][0]["execution"].clone();
    // A store, and a load of its core that does not see it.
    assert_eq!(relations(&named), "fr po", "{named}");
    assert!(named["edges"].as_array().unwrap().iter().all(|e| e["forbids"] == true), "{named}");
    assert_eq!(
        (&named["threads"][0], &named["events"][0]["text"]),
        (&"core_0".into(), &"W addr_0=data_0".into())
    );
    assert_eq!(
        (&named["events"][1]["text"], &named["events"][1]["reads_initial"]),
        (&"R addr_0=data_undefined".into(), &true.into())
    );
    std::fs::copy(&interface, at.join("broken.interface")).unwrap();
    assert_eq!(code(at, &line), 1);
    assert_eq!(page_results(at, "arcx.html")[0]["value"]["results"][0]["execution"], named);
    assert_eq!(
        code(at, "explore broken.spec -D max_operation_id=1 --action end_load --evidence way.html"),
        1
    );
    assert_eq!(relations(&page_results(at, "way.html")[0]["value"]["ways"][0]["execution"]), "");
    let wrong = run(at, &format!("{line} --interface broken.spec"));
    assert_eq!(wrong.status.code(), Some(2), "{}", String::from_utf8_lossy(&wrong.stderr));
    let machine = (package("specs/machines/tso.spec"), package("specs/machines/machine.interface"));
    let line = format!(
        "conform {} --interface {} --against sc --operations 2 --evidence tso.html",
        machine.0, machine.1
    );
    assert_eq!(code(at, &line), 1);
    let model = &page_results(at, "tso.html")[0]["value"]["models"][0];
    let red = model["execution"]["edges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|e| e["forbids"] == true)
        .count();
    assert_eq!((red, model["evidence"]["steps"].as_array().unwrap().len()), (4, 4), "{model}");
    // Without findings there is a page as well, which reports this.
    assert_eq!(code(at, &line.replace("--against sc", "--against tso")), 0);
    assert_eq!(page_results(at, "tso.html")[0]["value"]["models"][0]["verdict"], "true");
    assert_eq!(code(at, "explore chain.mcrl2 --deadlock --evidence none.html"), 0);
    assert_eq!(page_results(at, "none.html")[0]["value"]["found"], 0);
    let refused = run(at, &line.replace("--evidence", "--execution"));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains(".svg, .dot or .json"),
        "{refused:?}"
    );
}

#[test]
fn reports_are_made_of_results() {
    let folder = prepare();
    let at = folder.path();
    let write =
        |name: &str, line: &str| std::fs::write(at.join(name), run(at, line).stdout).unwrap();
    write("check.json", "check chain.mcrl2 never.mcf always.mcf --format json");
    write("explore.json", "explore chain.mcrl2 --format json");
    write("litmus.json", "litmus SB.litmus --format json");
    write("error.json", "explore missing.mcrl2 --format json");
    std::fs::write(at.join("other.json"), "{}").unwrap();
    assert_eq!(code(at, "check chain.mcrl2 never.mcf --evidence why.json"), 1);
    assert_eq!(code(at, "sweep chain.mcrl2 always.mcf --out sweep"), 0);
    assert_eq!(
        code(
            at,
            "report check.json explore.json litmus.json why.json sweep/sweep.json --out all.html"
        ),
        0
    );
    let all = page_results(at, "all.html");
    let kinds: Vec<&str> = all.iter().map(|s| s["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["check", "explore", "litmus", "evidence", "sweep"]);
    assert_eq!(all[1]["file"], "explore.json");
    for (line, why) in [
        (
            "report error.json --out x.html",
            "error.json: it contains no result, because the command failed: cannot read",
        ),
        ("report other.json --out x.html", "other.json: not a result"),
        ("report chain.mcrl2 --out x.html", "chain.mcrl2: this is not JSON"),
        ("report check.json --out x.pdf", "expected a name that ends in .html"),
        ("report missing.json --out x.html", "missing.json"),
        ("report --out x.html", "RESULT.json"),
    ] {
        let output = run(at, line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "{line}: {said}");
        assert!(!at.join("x.html").exists(), "{line}");
    }
}

/// FNV-1a over names and contents, as `studio/build.mjs` computes it.
fn fingerprint(folders: &[&str]) -> String {
    let studio = PathBuf::from(package("studio"));
    let below = |folder: &&str| {
        let mut names: Vec<String> = std::fs::read_dir(studio.join(folder))
            .unwrap()
            .map(|e| format!("{folder}/{}", e.unwrap().file_name().into_string().unwrap()))
            .collect();
        names.sort();
        names
    };
    let sources = folders
        .iter()
        .flat_map(below)
        .chain(["package-lock.json", "tsconfig.json", "build.mjs"].map(String::from));
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for name in sources {
        let content = std::fs::read(studio.join(&name)).unwrap();
        for byte in format!("{name}\n").bytes().chain(content) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[test]
fn the_bundle_is_of_these_sources() {
    let advice = "the sources in studio/ changed: run `npm ci && npm run build` there and commit src/report/page and src/studio/page";
    for (folders, hashes, script) in
        [(&["src"][..], HASHES, SCRIPT), (&["src", "app"], studio::HASHES, studio::SCRIPT)]
    {
        let sources = format!("sources {}", fingerprint(folders));
        assert_eq!(hashes.lines().nth(2), Some(sources.as_str()), "{advice}");
        assert!(script.lines().next().unwrap().contains(&sources), "{advice}");
    }
}

/// Says that something was not tested. What a test that passes prints is kept from whoever runs it;
/// this is not.
fn aloud(said: &str) {
    let _ = writeln!(std::io::stderr(), "{said}");
}

/// True if node and the packages of `studio/` are installed; prints what is missing.
fn has_packages(test: &str) -> bool {
    let node = Command::new("node").arg("--version").output().is_ok_and(|o| o.status.success());
    let there = Path::new(&package("studio/node_modules")).is_dir();
    if !node {
        aloud(&format!("{test}: skipped, there is no node"));
    } else if !there {
        aloud(&format!(
            "{test}: skipped, there is no studio/node_modules: `npm ci` in studio/ fetches it"
        ));
    }
    node && there
}

/// True if Chromium is installed; prints a note if it is not.
fn has_browser(test: &str) -> bool {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let there =
        std::env::var_os("CHROMIUM").is_some() || places.iter().any(|p| Path::new(p).exists());
    if !there {
        aloud(&format!(
            "{test}: skipped, there is no Chromium; the variable CHROMIUM can say where it is"
        ));
    }
    there
}

/// One browser at a time: the tests measure the time to open a page.
static BROWSER: Mutex<()> = Mutex::new(());

fn node(arguments: &[&str]) {
    let output = Command::new("node")
        .args(arguments)
        .current_dir(package("studio"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{said}");
    assert!(output.status.success(), "{said}");
    said.lines().filter(|line| line.contains(": skipped, ")).for_each(aloud);
}

#[test]
fn building_the_sources_gives_the_bundle() {
    if has_packages("building_the_sources_gives_the_bundle") {
        node(&["build.mjs", "--check"]);
    }
}

#[test]
fn pages_in_a_browser() {
    if !has_packages("pages_in_a_browser") || !has_browser("pages_in_a_browser") {
        return;
    }
    let _alone = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
    node(&["test/report.mjs", env!("CARGO_BIN_EXE_mu-check")]);
}

/// The local web page: opened, a model broken and mended, checked, walked, drawn; a sweep run
/// and stopped; another page refused.
#[test]
fn studio_in_a_browser() {
    if has_packages("studio_in_a_browser") && has_browser("studio_in_a_browser") {
        let _alone = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
        node(&["test/studio.mjs", env!("CARGO_BIN_EXE_mu-check")]);
    }
}

/// The module of the page without a server, where `npm run web` has built it, under node: every
/// command answers as this program does, or refuses.
#[test]
fn module_under_node() {
    // It needs node alone, and reports itself if the module was not built.
    if Command::new("node").arg("--version").output().is_ok_and(|o| o.status.success()) {
        node(&["test/module.mjs", env!("CARGO_BIN_EXE_mu-check")]);
    } else {
        aloud("module_under_node: skipped, there is no node");
    }
}

/// The page without a server, where `npm run web` has built it: opened, a model broken and mended,
/// checked; what it prints is what this program prints.
#[test]
fn page_without_a_server_in_a_browser() {
    if has_packages("page_without_a_server_in_a_browser")
        && has_browser("page_without_a_server_in_a_browser")
    {
        let _alone = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
        // It reports itself if the module was not built.
        node(&["test/web.mjs", env!("CARGO_BIN_EXE_mu-check")]);
    }
}
