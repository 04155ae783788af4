//! Every output in JSON or CSV is read by a strict parser, with names, labels, and addresses that
//! have quotes, control characters, ends of lines, U+2028, and lone backslashes.

use crate::support::package;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Part of each file name.
const NAME: &str = "a\"b\\c\n\u{2028}\u{1}\t'd,e";
/// Labels of a transition system; a label has no end of line.
const LABELS: [&str; 5] =
    ["quote\"d", "back\\", "con\u{1}\u{7f}trol", "line\u{2028}end", "a(\"\")"];

/// Name of a trace and a location; strings of logs have no escapes.
const TRACE: &str = "t'\u{2028}\u{7f}<&";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        let mut system = format!("des (0,{0},{1})\n", LABELS.len(), LABELS.len() + 1);
        for (i, label) in LABELS.iter().enumerate() {
            system += &format!("({i},\"{label}\",{})\n", i + 1);
        }
        folder.write("aut", &system);
        folder.write(
            "mcrl2",
            "act a: Nat; proc P(n: Nat) = (n < 3) -> a(n) . P(n + 1); init P(0);\n",
        );
        folder.write("mcf", "[true* . a(2)]false\n");
        folder.write(
            "spec",
            "$param n: Nat = 2;\nact a: Nat; proc P(i: Nat) = (i < ${n}) -> a(i) . P(i + 1); init P(0);\n",
        );
        folder.write(
            "litmus",
            "X86 S\"B\\\n{ }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n",
        );
        folder.write("m", "var n: 0..3;\nstartstate \"a\\\"b\" n := 0; end;\nrule \"up'\u{2028}\" n < 3 ==> n := n + 1; end;\ninvariant \"in\\\\v\" n < 3;\n");
        folder.write(
            "jsonl",
            &[("store", 1), ("load", 0)]
                .map(|(operation, value)| format!("{{\"trace\": \"{TRACE}\", \"thread\": 0, \"operation\": \"{operation}\", \"address\": \"{TRACE}\", \"value\": {value}}}\n"))
                .concat(),
        );
        folder.write("pg", "parity 1;\n0 0 0 1 \"a\\b\u{2028}\";\n1 1 1 0;\n");
        folder.copy("cub", "specs/cubicle/naive_mutex_unsafe.cub");
        folder.copy("asm", "specs/x86/spinlock.asm");
        folder.copy("interface", "specs/machines/machine.interface");
        folder.copy("machine.spec", "specs/machines/tso.spec");
        folder
    }
    fn name(ending: &str) -> String {
        format!("{NAME}.{ending}")
    }
    fn write(&self, ending: &str, text: &str) {
        fs::write(self.0.path().join(Self::name(ending)), text).expect("a file");
    }
    fn copy(&self, ending: &str, from: &str) {
        self.write(ending, &fs::read_to_string(package(from)).expect("a file of the package"));
    }
    /// Runs words, in which `@x` is the file that ends in `.x`. Returns its standard output.
    fn run(&self, words: &str, code: i32) -> String {
        let word = |w: &str| match w.strip_prefix('@') {
            Some(ending) => Self::name(ending),
            None => w.to_string(),
        };
        let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .current_dir(self.0.path())
            .args(words.split(' ').map(word))
            .output()
            .expect("the command runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words}: {stderr}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }
    fn read(&self, ending: &str) -> String {
        fs::read_to_string(self.0.path().join(Self::name(ending))).expect("a written file")
    }
}

/// Reads JSON as strictly as the standard does, and collects all strings and keys.
fn strings(text: &str, what: &str) -> BTreeSet<String> {
    fn walk(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                into.insert(text.clone());
            }
            Value::Array(all) => all.iter().for_each(|v| walk(v, into)),
            Value::Object(all) => all.iter().for_each(|(key, v)| {
                into.insert(key.clone());
                walk(v, into);
            }),
            _ => {}
        }
    }
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{what}: {e}: {text}"));
    let mut all = BTreeSet::new();
    walk(&value, &mut all);
    all
}

/// Commands with a JSON output, their exit codes, and texts that must be in the output unchanged:
/// those after `@` are file names.
const RUNS: &[(&str, i32, &[&str])] = &[
    ("explore @aut", 0, &["@aut"]),
    ("explore @aut --deadlock", 1, &["@aut", "quote\"d", "back\\", "con\u{1}\u{7f}trol"]),
    ("explore @mcrl2", 0, &["@mcrl2"]),
    ("explore @m", 1, &["@m"]),
    ("explore @m --max-states 2", 3, &["@m"]),
    ("check @mcrl2 @mcf", 1, &["@mcrl2", "@mcf", "a(2)"]),
    ("check @aut -f [true*.\"back\\\"]false", 2, &[]),
    ("check @spec @mcf -D n=any", 1, &["@spec", "@mcf"]),
    ("sweep @spec @mcf -D n=1..=2 --out @out", 0, &["@spec"]),
    ("litmus @litmus", 0, &["@litmus", "S\"B\\"]),
    ("trace @jsonl", 1, &["@jsonl", TRACE]),
    ("trace @jsonl --against sc --explain", 1, &["@jsonl"]),
    ("conform @machine.spec --interface @interface --operations 1", 0, &["@machine.spec"]),
    ("prove @cub", 1, &[]),
    ("program @asm", 0, &[]),
    ("robust @asm", 0, &[]),
    ("compare @aut @mcrl2", 1, &["@aut", "@mcrl2"]),
    ("info @aut", 0, &["@aut"]),
    ("reduce @aut", 0, &[]),
    ("convert @aut @fsm", 2, &[]),
    ("solve @pg", 1, &["@pg"]),
    ("expand @spec", 0, &[]),
    ("linearise @mcrl2", 0, &[]),
    ("fmt @mcrl2 --check", 0, &[]),
    ("explore none@aut", 2, &[]),
    ("explore @none", 2, &[]),
];

#[test]
fn every_json_output_is_strict() {
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for (words, code, expected) in RUNS {
        let text = folder.run(&format!("{words} --format json"), *code);
        let all = strings(&text, words);
        for text in *expected {
            let text = match text.strip_prefix('@') {
                Some(ending) => Folder::name(ending),
                None => (*text).to_string(),
            };
            if !all.contains(&text) {
                wrong.push(format!("{words}: no {text:?} in {all:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_json_file_is_strict() {
    let folder = Folder::new();
    for (words, code, file) in [
        ("explore @aut --deadlock --evidence @json", 1, "json"),
        ("check @mcrl2 @mcf --evidence @json", 1, "json"),
        ("check @mcrl2 @mcf --timings @timings.json", 1, "timings.json"),
        ("explore @m --evidence @json", 1, "json"),
        ("litmus @litmus --evidence @json", 0, "json"),
        ("trace @jsonl --against sc --evidence @json", 1, "json"),
        ("prove @cub --evidence @json", 1, "json"),
        (
            "conform @machine.spec --interface @interface --operations 2 --against sc --evidence @json",
            1,
            "json",
        ),
    ] {
        folder.run(words, code);
        strings(&folder.read(file), words);
    }
    let timings = strings(&folder.read("timings.json"), "timings");
    assert!(timings.contains(&Folder::name("mcf")) || timings.contains(&Folder::name("mcrl2")));
}

/// Reads CSV by RFC 4180: fields with quotes are quoted as a whole, and rows have equal lengths.
fn table(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![]];
    let mut rest = text;
    while !rest.is_empty() {
        let (field, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let mut field = String::new();
                let mut from = 0;
                loop {
                    let quote = from + quoted[from..].find('"').expect("a quoted field ends");
                    field += &quoted[from..quote];
                    from = quote + 1;
                    if !quoted[from..].starts_with('"') {
                        break (field, &quoted[from..]);
                    }
                    field.push('"');
                    from += 1;
                }
            }
            None => {
                let end = rest.find([',', '\n']).expect("a row ends");
                let field = &rest[..end];
                assert!(!field.contains(['"', '\r']), "{field:?} is not quoted");
                (field.to_string(), &rest[end..])
            }
        };
        rows.last_mut().expect("a row").push(field);
        let ended = after.starts_with('\n');
        assert!(ended || after.starts_with(','), "{after:?} after a field");
        rest = &after[1..];
        if ended && !rest.is_empty() {
            rows.push(vec![]);
        }
    }
    assert!(rows.iter().all(|r| r.len() == rows[0].len()), "{rows:?}");
    rows
}

#[test]
fn tables_of_sweeps_are_strict() {
    let folder = Folder::new();
    folder.run("sweep @spec @mcf -D n=1..=2 --out @out --format json", 0);
    let out = folder.0.path().join(Folder::name("out"));
    let rows = table(&fs::read_to_string(out.join("sweep.csv")).expect("a table"));
    assert_eq!(rows.len(), 5, "{rows:?}");
    assert_eq!(rows[0][0], "job");
    assert!(rows.iter().any(|r| r[0] == NAME), "{rows:?}");
    let json = fs::read_to_string(out.join("sweep.json")).expect("a file");
    assert!(strings(&json, "sweep.json").contains(&Folder::name("spec")));
}

/// Checks the reader of this test.
#[test]
fn the_reader_of_tables_is_strict() {
    assert_eq!(table("a,\"b\"\"\n,\"\nc,d\n"), [["a", "b\"\n,"], ["c", "d"]]);
    for wrong in ["a\"b,c\n", "\"a\"b,c\n", "a,b\nc\n"] {
        assert!(std::panic::catch_unwind(|| table(wrong)).is_err(), "{wrong:?}");
    }
}
