//! `litmus --machine`: litmus tests on the machines of the project.

use crate::support::{mu_check, package};
use serde_json::json;

/// A test that the command names and that does not run is no success. Without `--operations` the
/// machine is searched up to the longest test.
#[test]
fn tests_that_are_not_run_are_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let test = folder.path().join("sbf.litmus").display().to_string();
    let text = "X86 SBF
{ x=0; y=0; }
 P0          | P1          ;
 MOV [x],$1  | MOV [y],$1  ;
 MOV EBX,[x] | MOV EBX,[y] ;
 MOV EAX,[y] | MOV EAX,[x] ;
exists (0:EAX=0 /\\ 1:EAX=0)
";
    std::fs::write(&test, text).unwrap();
    let (spec, interface) =
        (package("specs/machines/tso.spec"), package("specs/machines/machine.interface"));
    let words = ["litmus", &test, "--machine", &spec, "--interface", &interface];
    let outcome = mu_check(&words);
    assert_eq!((outcome.code, &outcome.json["operations"]), (0, &json!(3)), "{}", outcome.json);
    let short = mu_check(&[&words[..], &["--operations", "2"]].concat());
    assert_eq!(short.code, 3, "{}", short.json);
    assert!(short.json["tests"][0]["not_asked"].is_string(), "{}", short.json);
}

/// A machine that loads values from nowhere: from no store, from another address, before the store,
/// and into a register that a branch tests.
#[test]
fn values_that_no_store_writes_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let machine = |name: &str, load: &str| {
        let text = format!(
            "sort P = struct p0 | p1; A = struct a0 | a1; V = struct v0 | v1;
act ld, st: P # A # V;
proc M(m: A -> V) = sum p: P, a: A. ld(p, a, m(a)) . M()
  + sum p: P, a: A. st(p, a, v1) . M(m[a -> v1])
  + {load} . M();
init M(lambda a: A. v0);
"
        );
        file(name, &text)
    };
    let interface = file("i.interface", "initial v0;\nload ld(p, a, v);\nstore st(p, a, v);\n");
    let nowhere = machine("nowhere.mcrl2", "ld(p0, a0, v1)");
    let right = machine("right.mcrl2", "delta");
    let alias = machine("alias.mcrl2", "sum p: P, a, b: A. ld(p, a, m(b))");
    let single =
        file("single.litmus", "X86 single\n{ }\n P0 ;\n MOV EAX,[x] ;\nexists (0:EAX=1)\n");
    let other = file(
        "other.litmus",
        "X86 other\n{ }\n P0 | P1 ;\n MOV EAX,[x] | MOV [y],$1 ;\nexists (0:EAX=1)\n",
    );
    let any = file(
        "any.litmus",
        "X86 any\n{ }\n P0 ;\n MOV EAX,[x] ;\n MOV EBX,[x] ;\nexists (0:EAX=0 /\\ 0:EBX=7)\n",
    );
    let later = file(
        "later.litmus",
        "X86 later\n{ }\n P0 ;\n MOV EAX,[x] ;\n MOV [x],$1 ;\nexists (0:EAX=1)\n",
    );
    let branch = file(
        "branch.litmus",
        "X86 branch\n{ }\n P0 ;\n MOV EAX,[x] ;\n CMP EAX,$1 ;\n JNE L ;\n MOV EBX,[y] ;\n L: ;\n\
         exists (0:EAX=1)\n",
    );
    let run = |test: &str, machine: &str| {
        mu_check(&[
            "litmus",
            test,
            "--machine",
            machine,
            "--interface",
            &interface,
            "--model",
            "sc",
        ])
    };
    for (test, machine, shown) in [
        (&single, &nowhere, "0:EAX=1;"),
        (&other, &nowhere, "0:EAX=1;"),
        (&other, &alias, "0:EAX=1;"),
        (&any, &nowhere, "0:EAX=0; 0:EBX=7;"),
        (&later, &nowhere, "0:EAX=1;"),
        (&branch, &nowhere, "0:EAX=1;"),
    ] {
        let outcome = run(test, machine);
        let forbidden = &outcome.json["tests"][0]["forbidden_but_shown"];
        let forbidden: Vec<&str> =
            forbidden.as_array().unwrap().iter().map(|o| o.as_str().unwrap()).collect();
        assert!(forbidden.contains(&shown), "{test} {machine}: {}", outcome.json);
        assert_eq!(outcome.code, 1, "{test} {machine}: {}", outcome.json);
    }
    for test in [&single, &other, &any, &later, &branch] {
        assert_eq!(run(test, &right).code, 0, "{test}");
    }
    assert_eq!(run(&single, &alias).code, 0);
}

/// A locked instruction of x86 that fails orders as one that succeeds. Labels of machines have no
/// such operation, so these executions are not compared.
#[test]
fn failed_updates_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (spec, interface) =
        (package("specs/machines/tso.spec"), package("specs/machines/machine.interface"));
    for (old, outcomes) in [("0", 3), ("5", 0)] {
        let test = folder.path().join("cas.litmus").display().to_string();
        let text = format!(
            "X86_64 cas
{{ uint64_t x=0; uint64_t y=0; uint64_t z=0; 0:RAX={old}; 0:RCX=1; }}
 P0                   | P1          ;
 MOV [x],$1           | MOV [y],$1  ;
 LOCK CMPXCHG [z],RCX | MFENCE      ;
 MOV RBX,[y]          | MOV RAX,[x] ;
exists (0:RBX=0 /\\ 1:RAX=0)
"
        );
        std::fs::write(&test, text).unwrap();
        let words = ["litmus", &test, "--machine", &spec, "--interface", &interface];
        let parameters = ["addresses=3", "values=1", "fences=1", "updates=1"];
        let more = parameters.iter().flat_map(|p| ["-D", p]).chain(["--model", "tso"]);
        let outcome = mu_check(&words.into_iter().chain(more).collect::<Vec<_>>());
        let result = &outcome.json["tests"][0];
        if outcomes == 0 {
            assert_eq!(outcome.code, 3, "{result}");
            assert!(result["not_asked"].is_string(), "{result}");
        } else {
            assert_eq!(outcome.code, 0, "{result}");
            assert_eq!(result["shown"].as_array().unwrap().len(), outcomes, "{result}");
            assert_eq!(result["not_compared"], json!([]), "{result}");
        }
    }
}

/// An update that reads the value that only it stores.
#[test]
fn an_update_that_reads_its_own_value_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).unwrap();
        path
    };
    let interface = file("u.interface", "initial 0; load load(p,a,v); update update(p,a,v,w);\n");
    let test = file(
        "u.litmus",
        "X86 u\n{ x=0; }\n P0 ;\n MOV EAX,$1 ;\n XCHG [x],EAX ;\nforall (0:EAX=0)\n",
    );
    for (own, code) in [("(0,\"update(0,0,1,1)\",0)\n", 1), ("(0,\"load(0,0,0)\",0)\n", 0)] {
        let text = format!("des (0,3,1)\n{own}(0,\"update(0,0,0,1)\",0)\n(0,\"load(0,0,1)\",0)\n");
        let machine = file("u.aut", &text);
        let words = ["litmus", &test, "--machine", &machine, "--interface", &interface];
        let outcome = mu_check(&words.into_iter().chain(["--model", "tso"]).collect::<Vec<_>>());
        let result = &outcome.json["tests"][0];
        assert_eq!(outcome.code, code, "{result}");
        let forbidden = result["forbidden_but_shown"].as_array().unwrap();
        assert_eq!(forbidden.len() as i32, code, "{result}");
    }
}

/// A path on which a branch skips a store-conditional is compared; one on which it fails is not,
/// because labels do not contain it.
#[test]
fn a_skipped_store_conditional_is_no_failed_one() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str, branch: &str, condition: &str| {
        let test = folder.path().join(name).display().to_string();
        let text = format!(
            "RISCV lrb\n{{ x=0; 0:x20=x; 0:x6=1; }}\nP0 ;\nlr.w x5,(x20) ;\n{branch}\
             sc.w x29,x6,(x20) ;\nE: ;\nexists ({condition})\n"
        );
        std::fs::write(&test, text).unwrap();
        let words = ["litmus", &test, "--machine", "ooo", "--interface", "ooo", "-D"];
        let outcome = mu_check(&[&words[..], &["exclusives=1", "--model", "rvwmo"]].concat());
        let row = &outcome.json["tests"][0];
        [row["shown"].clone(), row["allowed"].clone(), row["not_compared"].clone()]
    };
    let (one, none) = (json!(["0:x5=0;"]), json!([]));
    for branch in ["beq x5,x0,E ;\n", ""] {
        assert_eq!(run("load.litmus", branch, "0:x5=0"), [one.clone(), one.clone(), none.clone()]);
    }
    // Without a branch the store fails or succeeds; its result is 1 or 0.
    let (succeeds, fails) = (json!(["0:x29=0;"]), json!(["0:x29=1;"]));
    assert_eq!(run("store.litmus", "", "0:x29=1"), [succeeds.clone(), succeeds, fails]);
}
