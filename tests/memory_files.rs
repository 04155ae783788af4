//! Files of memory models: the folders from which a model includes files, and configurations.

use crate::support::mu_check;
use std::fs;
use std::path::Path;

const TEST: &str = "AArch64 T\n{ 0:X1=x; 0:X2=y; 1:X1=y; 1:X2=x; 0:X0=1; }\nP0 | P1 ;\n\
                    STR W0,[X1] | LDR W3,[X1] ;\nSTR W0,[X2] | LDR W4,[X2] ;\n\
                    exists (1:X3=1 /\\ 1:X4=0)\n";

/// Returns a library that defines the order which models of these tests require.
fn library(order: &str) -> String {
    format!("let po-loc = po & loc\nlet required = {order}\n")
}

const MODEL: &str = "\"m\"\ninclude \"order.cat\"\nacyclic required | rf | co | fr as order\n";

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A model includes the files of its own folder, whatever other folders contain; built-in models
/// include no file.
#[test]
fn no_file_shadows_another_of_the_same_name() {
    let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let test = write(own.path(), "t.litmus", TEST);
    let model = write(own.path(), "m.cat", MODEL);
    write(own.path(), "order.cat", &library("po"));
    write(other.path(), "order.cat", &library("po & loc"));
    // A library that no model can use, and a model with the name of a built-in one.
    write(other.path(), "stdlib.cat", "let po-loc = unknown-name\nempty W as nothing\n");
    write(other.path(), "armv8.cat", "\"mine\"\nacyclic po | rf | co | fr as order\n");
    let folder = other.path().display().to_string();
    let verdict = |model: &str| {
        let outcome = mu_check(&["litmus", &test, "--model", model, "--include", &folder]);
        assert!(outcome.code < 2, "{model}: {}", outcome.stderr);
        outcome.json["tests"][0]["herd"].as_str().unwrap_or("").to_string()
    };
    // The library of the other folder is used if the model's folder has none.
    write(own.path(), "stdlib.cat", "let po-loc = po & loc\n");
    assert_eq!(verdict(&model), "No");
    assert_eq!(verdict("armv8"), "Ok");
    fs::remove_file(own.path().join("order.cat")).unwrap();
    assert_eq!(verdict(&model), "Ok");
}

/// An annotation that is added never allows more: `.aqrl` acquires as `.aq`, and releases as `.rl`.
#[test]
fn acquire_and_release_is_at_least_each_of_them() {
    let folder = tempfile::tempdir().unwrap();
    for (release, acquire) in [
        ("amoswap.w.rl x5,x12,(x21)", "amoor.w.aq x5,x0,(x21)"),
        ("amoswap.w.aqrl x5,x12,(x21)", "amoor.w.aq x5,x0,(x21)"),
        ("amoswap.w.rl x5,x12,(x21)", "amoor.w.aqrl x5,x0,(x21)"),
        ("amoswap.w.aqrl x5,x12,(x21)", "amoor.w.aqrl x5,x0,(x21)"),
    ] {
        let text = format!(
            "RISCV MP\n{{ 0:x12=1; 0:x20=x; 0:x21=y; 1:x21=y; 1:x20=x; }}\nP0 | P1 ;\n\
             sw x12,0(x20) | {acquire} ;\n{release} | lw x6,0(x20) ;\n\
             exists (1:x5=1 /\\ 1:x6=0)\n"
        );
        let test = write(folder.path(), "t.litmus", &text);
        for model in ["rcsc", "rcpc", "location-order", "rvwmo"] {
            let outcome = mu_check(&["litmus", &test, "--model", model]);
            let verdict = outcome.json["tests"][0]["herd"].as_str();
            assert_eq!(verdict, Some("No"), "{model}: {text}{}", outcome.stderr);
        }
    }
}

/// A configuration names the model and the variants of its conditions.
#[test]
fn configurations_name_models_and_variants() {
    let folder = tempfile::tempdir().unwrap();
    let test = write(folder.path(), "t.litmus", TEST);
    write(
        folder.path(),
        "m.cat",
        "\"m\"\nlet required = if \"strict\" then po else po & loc\n\
         acyclic required | rf | co | fr as order\n",
    );
    let lines = "# drawing\ngraph columns\nmodel m.cat\nshowevents noregs\n";
    let weak = write(folder.path(), "weak.cfg", lines);
    let strict = write(folder.path(), "strict.cfg", &format!("{lines}variant strict\n"));
    let none = write(folder.path(), "none.cfg", "graph columns\n");
    for (model, verdict) in [(&weak, "Ok"), (&strict, "No")] {
        let outcome = mu_check(&["litmus", &test, "--model", model]);
        assert_eq!(outcome.json["tests"][0]["herd"], verdict, "{}", outcome.stderr);
    }
    let outcome = mu_check(&["litmus", &test, "--model", &none]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("names no model"), "{}", outcome.stderr);
}

#[test]
fn models_say_which_architectures_they_judge() {
    let folder = tempfile::tempdir().unwrap();
    let test = folder.path().join("sb.litmus").display().to_string();
    let text = "X86 SB
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";
    std::fs::write(&test, text).unwrap();
    let outcome = mu_check(&["litmus", &test, "--model", "rvwmo"]);
    let printed = format!("{} {}", outcome.json, outcome.stderr);
    assert!(printed.contains("`rvwmo` does not judge tests"), "{printed}");
    assert!(printed.contains("RISC-V"), "{printed}");
    assert_eq!(outcome.code, 2, "{printed}");
}
