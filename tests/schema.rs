//! Outputs of real runs match `docs/schema/*.json`, and the schemas are strict: a missing or
//! additional key fails.
//!
//! The validator (`report::schema`) knows just the keywords of JSON Schema (draft 2020-12) that
//! these schemas use; a schema with any other is refused here.

use crate::support::package;
use mu_check::report::schema::Schema;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Two buffers of one place in a row.
const CHAIN: &str = "act enter, leave, give, take, mid: Nat;
proc First = sum n: Nat. (n < 2) -> enter(n) . give(n) . First;
proc Second = sum n: Nat. take(n) . leave(n) . Second;
init hide({mid}, allow({enter, leave, mid}, comm({give|take -> mid}, First || Second)));
";
/// As many states as one likes.
const LARGE: &str = "$param n: Nat = 3;\nact a, leave: Nat;\nproc P(i: Nat) = (i < 1000000000) -> a(i) . P(i + 1);\ninit P(0) || P(${n});\n";
const LITMUS: &str = "X86 SB\n{ x=0; y=0; }\n P0          | P1          ;\n MOV [x],$1  | MOV [y],$1  ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=0)\n";

/// Schema, command line (files of the run's folder after `@`, of the package after `^`), exit code,
/// the file that is checked if it is not standard output.
const RUNS: &[(&str, &str, i32, Option<&str>)] = &[
    ("explore", "explore @chain.mcrl2", 0, None),
    ("explore", "explore @counter.m --deadlocks off", 0, None),
    ("explore", "explore @counter.m", 1, None),
    ("explore", "explore @counter.m --max-states 2", 3, None),
    ("explore", "explore @counter.m --engine symbolic", 0, None),
    ("check", "check @counter.m -f [true*.up(3)]false", 1, None),
    ("error", "explore @chain.mcrl2 --deadlocks off", 2, None),
    ("explore", "explore @chain.mcrl2 --action leave --all 2 --trace-dir @traces", 1, None),
    ("explore", "explore ^tests/broken/locks.mcrl2 --deadlock", 1, None),
    (
        "evidence",
        "explore ^tests/broken/locks.mcrl2 --deadlock --evidence @why.json",
        1,
        Some("why.json"),
    ),
    ("explore", "explore ^tests/broken/bus.mcrl2", 0, None),
    ("explore", "explore @chain.mcrl2 --divergence", 0, None),
    ("check", "check ^tests/broken/bus.mcrl2 @absent.mcf @always.mcf", 1, None),
    ("explore", "explore @chain.mcrl2 --engine symbolic", 0, None),
    ("explore", "explore @chain.mcrl2 --processes 2", 0, None),
    ("explore", "explore @chain.mcrl2 --engine symbolic --strategy breadth-first", 0, None),
    ("explore", "explore @chain.mcrl2 --engine auto --strategy chaining", 0, None),
    ("explore", "explore @chain.mcrl2 --engine auto --reduce branching", 0, None),
    ("explore", "explore @large.mcrl2 --max-states 100", 3, None),
    ("explore", "explore @large.mcrl2 --timeout 0s", 3, None),
    (
        "check",
        "check @chain.mcrl2 @never.mcf @always.mcf @live.mcf --evidence @why.json --timings @timings.json",
        1,
        None,
    ),
    ("evidence", "check @chain.mcrl2 @never.mcf --evidence @why.json", 1, Some("why.json")),
    ("evidence", "check @chain.mcrl2 @live.mcf --evidence @why.json", 1, Some("why.json")),
    ("evidence", "check @chain.mcrl2 @some.mcf --evidence @why.json", 0, Some("why.json")),
    ("evidence", "simulate @chain.mcrl2 --script @saves.txt", 0, Some("saved.json")),
    ("check", "check @chain.mcrl2 @never.mcf --full-states --engine auto", 1, None),
    ("check", "check @chain.mcrl2 @never.mcf @vacuous.mcf --engine symbolic", 1, None),
    ("check", "check @large.mcrl2 @never.mcf --timeout 0s", 3, None),
    ("check", "check @chain.mcrl2 @never.mcf @bad.mcf -f [true*]<true>true", 2, None),
    ("check", "check @large.mcrl2 @never.mcf @vacuous.mcf --max-states 50", 3, None),
    (
        "check",
        "check ^specs/arcx.spec ^formulas/1a.gos.mcf -D memcommands_size=2 -D max_operation_id=1 --confluence auto",
        1,
        None,
    ),
    ("timings", "check @chain.mcrl2 @never.mcf --timings @timings.json", 1, Some("timings.json")),
    (
        "timings",
        "explore @large.mcrl2 --max-states 9 --timings @timings.json",
        3,
        Some("timings.json"),
    ),
    ("sweep", "sweep @large.mcrl2 @vacuous.mcf -D n=0..3 --max-states 50 --out @sweep", 3, None),
    (
        "sweep",
        "sweep ^specs/arcx.spec -D max_operation_id=0 --out @sweep2",
        0,
        Some("sweep2/sweep.json"),
    ),
    ("litmus", "litmus @SB.litmus", 0, None),
    ("litmus", "litmus @SB.litmus @bad.litmus --model sc", 2, None),
    ("litmus", "litmus @SB.litmus --expected @wanted.txt", 1, None),
    (
        "litmus",
        "litmus @SB.litmus @bad.litmus --model ^specs/memory/tso.cat --expected @wanted.txt",
        2,
        None,
    ),
    ("trace", "trace ^specs/traces/several.axe", 1, None),
    (
        "trace",
        "trace ^specs/traces/several.axe --against sc,tso --explain --witness --litmus @tests",
        1,
        None,
    ),
    ("trace", "trace ^specs/traces/litmus7.log --against tso", 0, None),
    ("trace", "trace @bad.csv --against tso --repair", 0, None),
    ("trace", "trace ^specs/traces/several.axe --timeout 0s", 3, None),
    ("trace", "trace --generate --operations 5", 0, None),
    ("trace", "trace --generate --language x86 --operations 5 --out @program", 0, None),
    ("error", "trace @bad.csv --against tso", 2, None),
    ("prove", "prove ^specs/cubicle/naive_mutex.cub --certificate @mutex.proof", 0, None),
    ("prove", "prove ^specs/cubicle/naive_mutex_unsafe.cub", 1, None),
    (
        "evidence",
        "prove ^specs/cubicle/naive_mutex_unsafe.cub --evidence @why.json",
        1,
        Some("why.json"),
    ),
    ("prove", "prove ^specs/cubicle/arbiter_v2.cub --max-states 3", 3, None),
    ("prove", "program ^specs/x86/spinlock.asm --threads-of any", 0, None),
    ("verify", "verify ^specs/cubicle/naive_mutex.cub @mutex.proof", 0, None),
    ("verify", "verify ^specs/cubicle/naive_mutex_unsafe.cub @mutex.proof", 1, None),
    ("program", "program ^specs/x86/spinlock.asm", 0, None),
    ("program", "program ^specs/x86/spinlock_unsafe.asm --model tso", 1, None),
    ("program", "program ^specs/x86/spinlock.asm --max-states 5", 3, None),
    ("models", "models sc tso pc --operations 3 --plain 4", 0, None),
    ("models", "models sc tso --timeout 0s", 3, None),
    (
        "conform",
        "conform ^specs/machines/tso.spec --interface ^specs/machines/machine.interface",
        0,
        None,
    ),
    (
        "conform",
        "conform ^specs/machines/tso.spec --interface ^specs/machines/machine.interface --against sc --operations 3",
        1,
        None,
    ),
    ("explore", "explore @large.mcrl2 --deadlock --timeout 0s", 3, None),
    (
        "conform",
        "conform ^specs/machines/tso.spec --interface ^specs/machines/machine.interface --timeout 0s",
        3,
        None,
    ),
    (
        "conform-any",
        "conform ^specs/machines/tso.spec --interface ^specs/machines/machine.interface -D values=3 --operations any --against tso --timeout 0s",
        3,
        None,
    ),
    (
        "conform",
        "conform ^specs/machines/tso.spec --interface ^specs/machines/machine.interface --max-states 200",
        3,
        None,
    ),
    (
        "conform",
        "conform ^specs/machines/sc.spec --interface ^specs/machines/machine.interface --against sc --fault ^specs/machines/sc.faults --suite @tests",
        0,
        None,
    ),
    (
        "conform-any",
        "conform ^specs/machines/sc.spec --interface ^specs/machines/direct.interface -D values=3 --operations any --certificate @sc.proof",
        0,
        None,
    ),
    (
        "verify",
        "verify ^specs/machines/sc.spec ^specs/machines/direct.interface @sc.proof",
        0,
        None,
    ),
    (
        "verify",
        "verify ^specs/machines/pso.spec ^specs/machines/buffer.interface @sc.proof",
        1,
        None,
    ),
    (
        "conform-any",
        "conform ^specs/machines/tso.spec --interface ^specs/machines/machine.interface -D values=3 --operations any",
        3,
        None,
    ),
    (
        "litmus",
        "litmus @SB.litmus @bad.litmus @inc.litmus --machine ^specs/machines/tso.spec --interface ^specs/machines/machine.interface",
        2,
        None,
    ),
    ("error", "conform ^specs/machines/tso.spec --interface ^specs/arcx.interface", 2, None),
    ("robust", "robust ^specs/x86/dekker.asm", 1, None),
    ("robust", "robust ^specs/x86/spinlock.asm --fences", 0, None),
    ("robust", "robust ^specs/x86/dekker.asm --count --preemptions 1", 1, None),
    ("robust", "robust @inc.litmus --fences", 0, None),
    ("robust", "robust ^specs/x86/naive_mutex.asm --assert", 1, None),
    (
        "check",
        "check ^specs/arcx.spec ^formulas/1b.gos.mcf -f [true*]<true>true -D max_operation_id=0 --confluence auto",
        1,
        None,
    ),
    (
        "check",
        "check ^specs/arcx.spec ^formulas/1c.gos.mcf -D max_operation_id=any -D address_size=1 -D byte_size=1",
        0,
        None,
    ),
    (
        "check",
        "check ^specs/arcx.spec ^formulas/1c.gos.mcf -D max_operation_id=any --max-states 9",
        3,
        None,
    ),
    (
        "check",
        "check ^specs/arcx.spec ^formulas/1c.gos.mcf -D num_cores=any -D max_operation_id=0",
        0,
        None,
    ),
    (
        "check",
        "check ^specs/arcx.spec ^formulas/1a.gos.mcf -D memcommands_size=any -D max_operation_id=0",
        3,
        None,
    ),
    (
        "sweep",
        "sweep ^specs/arcx.spec -D max_operation_id=0 --confluence auto --confluence reset --out @sweep3",
        0,
        None,
    ),
    ("info", "info @chain.mcrl2", 0, None),
    ("info", "info @game.pg", 0, None),
    ("info", "info @large.mcrl2 --max-states 100", 3, None),
    ("compare", "compare @chain.mcrl2 @chain.mcrl2", 0, None),
    ("compare", "compare @chain.mcrl2 @other.mcrl2 -e weak", 1, None),
    ("compare", "compare @other.mcrl2 @chain.mcrl2 --preorder trace", 1, None),
    ("compare", "compare @chain.mcrl2 @large.mcrl2 --max-states 100", 3, None),
    ("solve", "solve @game.pg", 1, None),
    ("solve", "solve @game.bes --solver zielonka", 0, None),
    ("reduce", "reduce @chain.mcrl2 -e weak-trace", 0, None),
    ("reduce", "reduce @large.mcrl2 --max-states 100", 3, None),
    ("text", "expand ^specs/arcx.spec -D num_cores=3", 0, None),
    ("text", "linearise @chain.mcrl2", 0, None),
    ("text", "pbes @chain.mcrl2 @never.mcf", 0, None),
    ("eval", "eval 2+3*4", 0, None),
    ("error", "eval i+1 @large.mcrl2", 2, None),
    ("new", "new cpu @mine", 0, None),
    ("parameters", "check ^specs/arcx.spec @never.mcf -D help", 0, None),
    ("parameters", "explore @chain.mcrl2 -D help", 0, None),
    ("error", "explore @bad.mcrl2", 2, None),
    ("error", "explore @missing.mcrl2", 2, None),
    ("error", "reduce @bad.aut", 2, None),
    ("error", "explore @chain.mcrl2 --threads none", 2, None),
    ("error", "explor @chain.mcrl2", 2, None),
    ("simulate", "simulate @chain.mcrl2 --script @script.txt", 0, None),
    ("simulate", "simulate @chain.mcrl2 --trace @saved.json --script @script.txt", 0, None),
];

fn schema(name: &str) -> Schema {
    let path = package(&format!("docs/schema/{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let root = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"));
    expect_known(&root, &root);
    Schema::new(root)
}

/// Panics at an unsupported keyword of the validator, or an unresolved reference.
fn expect_known(schema: &Value, root: &Value) {
    let Some(object) = schema.as_object() else {
        assert!(schema.is_boolean(), "no schema: {schema}");
        return;
    };
    for (keyword, value) in object {
        match keyword.as_str() {
            "$schema" => assert_eq!(value, "https://json-schema.org/draft/2020-12/schema"),
            "title" | "description" | "type" | "required" | "enum" | "const" | "minimum"
            | "minItems" | "maxItems" => {}
            "pattern" => assert_eq!(value, LARGE_NUMBER),
            "$ref" => {
                assert!(root.pointer(&value.as_str().unwrap()[1..]).is_some(), "{value} is nothing")
            }
            "properties" | "$defs" => {
                value.as_object().unwrap().values().for_each(|v| expect_known(v, root))
            }
            "additionalProperties" | "items" => expect_known(value, root),
            "anyOf" | "prefixItems" => {
                value.as_array().unwrap().iter().for_each(|v| expect_known(v, root))
            }
            _ => panic!("the validator does not know `{keyword}`"),
        }
    }
}

/// The one pattern.
const LARGE_NUMBER: &str = "^[0-9]{20,}$";

#[test]
fn the_validator_refuses() {
    let root = serde_json::json!({
        "type": "object",
        "properties": {
            "n": { "anyOf": [{ "type": "integer", "minimum": 0 }, { "type": "string", "pattern": LARGE_NUMBER }] },
            "pairs": { "type": "array", "items": { "$ref": "#/$defs/pair" } },
            "word": { "enum": ["a", null] },
            "map": { "type": "object", "additionalProperties": { "const": true } },
        },
        "required": ["n"],
        "additionalProperties": false,
        "$defs": { "pair": { "type": "array", "prefixItems": [{ "type": "string" }, { "type": ["integer", "null"] }], "items": false, "minItems": 2 } },
    });
    expect_known(&root, &root);
    let schema = Schema::new(root);
    for good in [
        r#"{"n": 0}"#,
        r#"{"n": "18446744073709551616", "word": null}"#,
        r#"{"n": 1, "pairs": [["x", 1], ["y", null]], "map": {"k": true}, "word": "a"}"#,
    ] {
        schema.validate(&serde_json::from_str(good).unwrap()).unwrap();
    }
    for (bad, place) in [
        ("[]", ": "),
        ("{}", ": \"n\" is missing"),
        (r#"{"n": -1}"#, "/n: "),
        (r#"{"n": 1.5}"#, "/n: "),
        (r#"{"n": "12"}"#, "/n: "),
        (r#"{"n": 1, "more": 1}"#, "/more: no value is allowed"),
        (r#"{"n": 1, "word": "b"}"#, "/word: "),
        (r#"{"n": 1, "pairs": [["x"]]}"#, "/pairs/0: too few"),
        (r#"{"n": 1, "pairs": [["x", 1, 2]]}"#, "/pairs/0/2: no value is allowed"),
        (r#"{"n": 1, "pairs": [["x", "y"]]}"#, "/pairs/0/1: "),
        (r#"{"n": 1, "map": {"k": false}}"#, "/map/k: "),
    ] {
        let error = schema.validate(&serde_json::from_str(bad).unwrap()).unwrap_err();
        assert!(error.starts_with(place), "{bad}: {error}");
    }
}

const COUNTER: &str = "var x: 0..9; startstate x := 0; end;
ruleset n: 1..3 do rule \"up\" x + n <= 9 ==> x := x + n; end; end; invariant \"small\" x < 10;";

fn prepare(folder: &Path) {
    for (name, text) in [
        ("chain.mcrl2", CHAIN),
        ("other.mcrl2", &CHAIN.replace("give(n) . First;", "(give(n) . First + tau . First);")),
        ("large.mcrl2", LARGE),
        ("SB.litmus", LITMUS),
        ("counter.m", COUNTER),
        ("inc.litmus", &LITMUS.replace("MOV [x],$1 ", "INC [x]")),
        ("bad.litmus", "X86 bad\n{ }\n P0 ;\n FLY ;\nexists (x=1)\n"),
        ("bad.csv", "thread,operation,address,value\n0,jump,x,1\n0,store,x,1\n"),
        ("never.mcf", "[true* . leave(1)]false"),
        ("some.mcf", "<true* . leave(1)>true"),
        ("always.mcf", "[true*]<true>true"),
        ("live.mcf", "mu X. ([!leave(0)]X && <true>true)"),
        ("absent.mcf", "[true* . request(c0, a0)] false"),
        ("vacuous.mcf", "[true* . tau . tau . tau . tau]false"),
        ("bad.mcrl2", "act a;\ninit a . b;\n"),
        ("wanted.txt", "SB Forbidden\nMP Forbidden\n"),
        ("bad.mcf", "[true*]<fly>true"),
        ("bad.aut", "des (0, 1, 1)\n(0, \"a\", 7)\n"),
        ("game.pg", "parity 3;\n0 1 0 1,2;\n1 0 1 0;\n2 1 0 2;\n"),
        ("game.bes", "bes nu X = Y && X;\n mu Y = X || Y;\ninit X;\n"),
        (
            "script.txt",
            "moves\ntake enter(1)\n1\nstate\nback\ntrace\nrandom 4\nseed 2\nhelp\nquit\n",
        ),
        ("saves.txt", "random 6\nsave saved.json\n"),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn outputs_are_what_their_schemas_say() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path());
    let mut wrong = Vec::new();
    for (name, line, code, file) in RUNS {
        let words = line.split(' ').map(|w| match w.split_at(1) {
            ("^", path) => package(path),
            ("@", path) => path.to_string(),
            _ => w.to_string(),
        });
        let output = Command::new(env!("CARGO_BIN_EXE_mu-check"))
            .args(words)
            .args(["--format", "json"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(*code),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = file.map_or(output.stdout, |f| std::fs::read(folder.path().join(f)).unwrap());
        let value: Value = serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{line}: {e}"));
        let schema = schema(name);
        if let Err(error) = schema.validate(&value) {
            wrong.push(format!("{line}\n  {error}\n  {value}"));
            continue;
        }
        // Strict: each key that is always there must be there, and no other may.
        let mut more = value.clone();
        more["surprise"] = Value::Null;
        assert!(schema.validate(&more).is_err(), "{name} takes a key that it does not know");
        let required = [
            "states", "results", "steps", "rows", "tests", "verdict", "result", "winner",
            "vertices", "commands", "stages", "error", "declared", "value", "folder", "stop",
            "model",
        ];
        let Some(key) = required.iter().find(|k| value.get(**k).is_some()) else {
            panic!("{line}: {value}")
        };
        let mut less = value.clone();
        less.as_object_mut().unwrap().remove(*key);
        if less.get("stop").is_none_or(|s| s == "complete") {
            assert!(schema.validate(&less).is_err(), "{name} does without `{key}`: {less}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_schema_is_tested() {
    let tested: BTreeSet<String> = RUNS.iter().map(|r| r.0.to_string()).collect();
    let stem = |e: std::fs::DirEntry| e.path().file_stem().unwrap().to_string_lossy().into_owned();
    let there: BTreeSet<String> =
        std::fs::read_dir(package("docs/schema")).unwrap().map(|e| stem(e.unwrap())).collect();
    assert_eq!(tested, there);
    for name in there {
        schema(&name);
    }
}
