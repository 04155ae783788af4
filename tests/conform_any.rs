//! `conform --operations any`: the machines of the project, their seeded faults, and ARCx.

use crate::support::{Outcome, mu_check, package};
use mu_check::conform::faults::MachineFault;
use serde_json::Value;

fn conform(spec: &str, interface: &str, more: &[&str]) -> Outcome {
    let interface = package(&format!("specs/{interface}.interface"));
    let mut words = vec!["conform", spec, "--interface", &interface, "--operations", "any"];
    words.extend(more);
    mu_check(&words)
}

fn verdict(outcome: &Outcome, model: &str) -> String {
    let all = outcome.json["models"].as_array().unwrap_or_else(|| panic!("{}", outcome.stderr));
    let one = all.iter().find(|m| m["name"] == model).unwrap();
    one["verdict"].as_str().unwrap().to_string()
}

/// Interfaces and parameters of the machines, with the model that each implements.
const MACHINES: [(&str, &str, &str, &str); 4] = [
    ("sc", "machines/direct", "values=3", "sc"),
    ("tso", "machines/buffer", "values=3", "tso"),
    ("pso", "machines/buffer", "values=3", "pso"),
    ("msi", "machines/msi", "values=3", "sc"),
];

#[test]
fn machines_conform_for_programs_of_every_length() {
    for (machine, interface, values, strongest) in MACHINES.into_iter().take(3) {
        let spec = package(&format!("specs/machines/{machine}.spec"));
        let outcome = conform(&spec, interface, &["-D", values]);
        assert_eq!(outcome.code, 0, "{machine}: {}", outcome.stderr);
        assert_eq!(outcome.json["strongest"], strongest, "{machine}: {}", outcome.json);
        assert_eq!(outcome.json["bounded"], false, "{machine}");
        let orders = ["sc", "tso", "pso"];
        let at = orders.iter().position(|o| *o == strongest).unwrap();
        for (i, order) in orders.into_iter().enumerate() {
            let expected = if i < at { "false" } else { "true" };
            assert_eq!(verdict(&outcome, order), expected, "{machine}: {order}");
        }
        let checked = outcome.json["checked"].as_array().unwrap();
        let samples = checked.iter().find(|g| g["what"] == "samples").unwrap();
        let text = samples["text"].as_str().unwrap();
        assert!(text.contains(" random runs with "), "{machine}: {text}");
        // No acquires and releases, and the weaker models follow.
        assert_eq!(verdict(&outcome, "rvwmo"), "true", "{machine}");
        for search in outcome.json["searches"].as_array().unwrap() {
            if search["violated"].is_null() {
                assert!(search["rechecked"]["states"].as_u64() > Some(0), "{machine}: {search}");
            }
        }
    }
}

/// In a write-combining buffer, a store that is replaced never reaches memory by itself. Without
/// the line that says so, nothing is proved.
#[test]
fn a_coalescing_buffer_conforms_for_programs_of_every_length() {
    let spec = package("specs/machines/coalescing.spec");
    let more = ["-D", "values=3", "-D", "fences=1"];
    let outcome = conform(&spec, "machines/coalescing", &more);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(outcome.json["strongest"], "pso", "{}", outcome.json);
    for (model, expected) in [("sc", "false"), ("tso", "false"), ("pso", "true")] {
        assert_eq!(verdict(&outcome, model), expected, "{model}");
    }
    let checked = outcome.json["checked"].as_array().unwrap();
    assert!(checked.iter().any(|g| g["what"] == "absorbed"), "{checked:?}");

    let folder = tempfile::tempdir().unwrap();
    let interface = folder.path().join("m.interface");
    let text = std::fs::read_to_string(package("specs/machines/coalescing.interface")).unwrap();
    let line = "absorb combine(p, a, v, _);";
    assert!(text.contains(line));
    std::fs::write(&interface, text.replace(line, "")).unwrap();
    let words = ["conform", &spec, "--interface", interface.to_str().unwrap()];
    let words = [&words[..], &["--operations", "any", "--against", "pso"], &more].concat();
    let outcome = mu_check(&words);
    assert_eq!(outcome.code, 3, "{}", outcome.json);
    assert!(outcome.json.to_string().contains("`absorb`"), "{}", outcome.json);
}

/// A violation of one number of processors is a violation for `any`; a proof is about this number.
#[test]
fn numbers_of_processors_without_a_value_are_not_proved() {
    let spec = package("specs/machines/sc.spec");
    let more = ["-D", "values=3", "-D", "processors=any", "--against", "sc"];
    let outcome = conform(&spec, "machines/direct", &more);
    assert_eq!((outcome.code, &*verdict(&outcome, "sc")), (3, "unknown"), "{}", outcome.json);
    assert!(outcome.json["strongest"].is_null(), "{}", outcome.json);
    let reason = outcome.json["models"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("processors=2; processors=any is not decided"), "{reason}");
    let spec = package("specs/machines/tso.spec");
    let more = ["-D", "values=3", "-D", "slots=1", "-D", "processors=any", "--against", "sc"];
    let outcome = conform(&spec, "machines/buffer", &more);
    assert_eq!((outcome.code, &*verdict(&outcome, "sc")), (1, "false"), "{}", outcome.json);
}

/// The product with caches is larger: 20 s in a release build.
#[test]
#[ignore = "cargo test --release --test suite conform_any:: -- --ignored"]
fn caches_conform_for_programs_of_every_length() {
    let spec = package("specs/machines/msi.spec");
    let outcome = conform(&spec, "machines/msi", &["-D", "values=3"]);
    assert_eq!(outcome.json["strongest"], "sc", "{} {}", outcome.stderr, outcome.json);
}

/// Finds all faults of a machine under its model; each with a test that the litmus route forbids.
fn all_found(machine: &str) -> usize {
    let (_, interface, values, model) = MACHINES.into_iter().find(|m| m.0 == machine).unwrap();
    let text = |end: &str| {
        std::fs::read_to_string(package(&format!("specs/machines/{machine}.{end}"))).unwrap()
    };
    let (spec, faults) = (text("spec"), text("faults"));
    let folder = tempfile::tempdir().unwrap();
    let list = MachineFault::parse(mu_check::base::SourceId::FIRST, &faults).unwrap();
    for fault in &list {
        let path = folder.path().join("faulty.spec").display().to_string();
        std::fs::write(&path, fault.apply(&spec).unwrap()).unwrap();
        let mut more = vec!["-D".to_string(), values.to_string()];
        for (name, value) in &fault.defines {
            more.extend(["-D".to_string(), format!("{name}={value}")]);
        }
        more.extend(["--against".to_string(), model.to_string()]);
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let outcome = conform(&path, interface, &more);
        assert_eq!(outcome.code, 1, "{}: {} {}", fault.name, outcome.stderr, outcome.json);
        let found = &outcome.json["models"][0];
        assert_eq!(found["verdict"], "false", "{}", fault.name);
        assert_eq!(found["confirmed"]["litmus"], true, "{}: {found}", fault.name);
    }
    list.len()
}

#[test]
fn seeded_faults_of_machines_are_found() {
    assert_eq!(all_found("sc") + all_found("tso"), 11);
}

/// 40 s in a release build.
#[test]
#[ignore = "cargo test --release --test suite conform_any:: -- --ignored"]
fn seeded_faults_of_partial_store_order_and_of_caches_are_found() {
    assert_eq!(all_found("pso") + all_found("msi"), 10);
}

/// Symmetries save states of a product, and change no answer.
#[test]
fn symmetries_save_states_of_products() {
    let slots = ["-D", "values=3", "-D", "slots=1"];
    for (machine, interface, more) in
        [("sc", "machines/direct", &slots[..2]), ("tso", "machines/buffer", &slots[..])]
    {
        let spec = package(&format!("specs/machines/{machine}.spec"));
        let with = conform(&spec, interface, more).json;
        let without = conform(&spec, interface, &[more, &["--without-symmetry"]].concat()).json;
        let answers = |json: &Value| {
            let all = json["models"].as_array().unwrap().iter();
            all.map(|m| (m["name"].clone(), m["verdict"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(answers(&with), answers(&without), "{machine}");
        let searches = |json: &Value| json["searches"].as_array().unwrap().clone();
        for (a, b) in searches(&with).iter().zip(&searches(&without)) {
            assert_eq!((&a["states"], &a["violated"]), (&b["states"], &b["violated"]), "{machine}");
            assert_eq!((&b["stored"], &b["symmetries"]), (&b["states"], &1.into()), "{machine}");
            let (stored, states) = (a["stored"].as_u64().unwrap(), a["states"].as_u64().unwrap());
            assert!(stored <= states && (machine != "sc" || stored * 3 < states * 2), "{a}");
        }
    }
}

/// A large bound is answered by a proof for every length, if there is one.
#[test]
fn large_bounds_are_proved_for_every_length() {
    let spec = package("specs/machines/tso.spec");
    let interface = package("specs/machines/buffer.interface");
    let words = ["conform", &spec, "--interface", &interface, "-D", "values=3", "-D", "slots=1"];
    let more = ["--against", "tso", "--operations", "12"];
    let outcome = mu_check(&[&words[..], &more].concat());
    assert_eq!(outcome.code, 0, "{} {}", outcome.stderr, outcome.json);
    assert_eq!(outcome.json["operations"], "any", "{}", outcome.json);
    assert_eq!(verdict(&outcome, "tso"), "true");
    // A violation needs no proof: histories are searched.
    let more = ["--against", "sc", "--operations", "5"];
    let outcome = mu_check(&[&words[..], &more].concat());
    assert_eq!((outcome.code, &outcome.json["operations"]), (1, &5.into()), "{}", outcome.json);
}

/// Faulty machines are searched after a proof, with a suite.
#[test]
fn faults_are_searched_after_a_proof() {
    let folder = tempfile::tempdir().unwrap();
    let suite = folder.path().join("suite").display().to_string();
    let spec = package("specs/machines/sc.spec");
    let faults = package("specs/machines/sc.faults");
    let more = ["-D", "values=3", "--against", "sc", "--fault", &faults, "--suite", &suite];
    let outcome = conform(&spec, "machines/direct", &more);
    assert_eq!(outcome.code, 0, "{} {}", outcome.stderr, outcome.json);
    let all = outcome.json["faults"].as_array().unwrap();
    assert!(all.len() == 2 && all.iter().all(|f| f["operations"] == 2), "{}", outcome.json);
    assert_eq!(outcome.json["suite"]["least"], true);
    assert!(std::fs::exists(folder.path().join("suite/README.md")).unwrap());
}

/// Certificates of the machines are verified, and refused for every faulty machine.
#[test]
fn certificates_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let proof = folder.path().join("machine.proof").display().to_string();
    for (machine, interface, values, model) in MACHINES.into_iter().take(3) {
        let spec = package(&format!("specs/machines/{machine}.spec"));
        let slots = if machine == "sc" { vec![] } else { vec!["-D", "slots=1"] };
        let more = [&["-D", values, "--certificate", &proof][..], &slots].concat();
        let outcome = conform(&spec, interface, &more);
        // One slot does not change the order of stores.
        let model = if machine == "pso" { "tso" } else { model };
        assert_eq!(outcome.json["certificate"], model, "{machine}: {}", outcome.stderr);
        let interface = package(&format!("specs/{interface}.interface"));
        let verified = mu_check(&["verify", &spec, &interface, &proof]);
        assert_eq!(verified.code, 0, "{machine}: {} {}", verified.stderr, verified.json);
        assert_eq!(verified.json["model"], model, "{}", verified.json);
        let states = outcome.json["states"].as_u64();
        assert!(verified.json["verified"]["states"].as_u64() >= states, "{}", verified.json);
        let checked = verified.json["checked"].to_string();
        assert!(checked.contains("interchangeable"), "{checked}");
        let read = |end: &str| {
            std::fs::read_to_string(package(&format!("specs/machines/{machine}.{end}"))).unwrap()
        };
        let (text, faults) = (read("spec"), read("faults"));
        for fault in MachineFault::parse(mu_check::base::SourceId::FIRST, &faults).unwrap() {
            // Faults of fences, updates, and several slots leave this machine as it is.
            if !fault.defines.is_empty() || !["sc", "tso"].contains(&machine) {
                continue;
            }
            let path = folder.path().join("faulty.spec").display().to_string();
            std::fs::write(&path, fault.apply(&text).unwrap()).unwrap();
            let refused = mu_check(&["verify", &path, &interface, &proof]);
            let same = ["the buffer is a stack", "forwards the oldest entry"];
            let same = same.contains(&fault.name.as_str())
                || fault.name.starts_with("entries of two addresses");
            let expected = if same { 0 } else { 1 };
            assert_eq!(refused.code, expected, "{}: {}", fault.name, refused.json);
        }
    }
    let (spec, interface) =
        (package("specs/machines/sc.spec"), package("specs/machines/direct.interface"));
    let bounded = ["--operations", "2", "--certificate", &proof];
    let wrong = mu_check(&[&["conform", &spec, "--interface", &interface][..], &bounded].concat());
    assert!(wrong.stderr.contains("--operations any"), "{}", wrong.stderr);
    assert_eq!(wrong.code, 2);
}

#[test]
fn without_commits_faults_are_found_and_nothing_is_proved() {
    let spec = package("specs/machines/tso.spec");
    let outcome = conform(&spec, "machines/machine", &["-D", "values=3"]);
    assert_eq!(verdict(&outcome, "sc"), "false");
    assert_eq!(verdict(&outcome, "tso"), "unknown");
    let reason = outcome.json["models"][1]["reason"].as_str().unwrap();
    assert!(reason.contains("`commit`"), "{reason}");
    assert_eq!(outcome.code, 3, "{}", outcome.stderr);
}

/// A model that has no such fence does not judge the machine: it is listed with the reason, and
/// rejected if it is requested.
#[test]
fn models_without_an_operation_are_not_judged() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "initial v0;\nload load(p, a, v);\nfence rw,w fence(p);\n";
    let machines = [
        ("sc", "store commit store(p, a, v);"),
        ("pso", "store store(p, a, v);\ncommit flush(p, a, v);"),
    ];
    for (machine, stores) in machines {
        let interface = write_file(&folder, "partial.interface", &format!("{lines}{stores}\n"));
        let spec = package(&format!("specs/machines/{machine}.spec"));
        let words =
            ["conform", &spec, "--interface", &interface, "-D", "values=3", "-D", "fences=1"];
        let any = mu_check(&[&words[..], &["--operations", "any"]].concat());
        assert_eq!(any.code, 0, "{machine}: {}", any.stderr);
        let all = any.json["models"].as_array().unwrap();
        let armv8 = all.iter().find(|m| m["name"] == "armv8").unwrap();
        assert_eq!(armv8["verdict"], "unknown", "{machine}: {armv8}");
        assert!(armv8["reason"].as_str().unwrap().contains("`fence rw,w"), "{armv8}");
        let weaker = if machine == "sc" { "true" } else { "unknown" };
        assert_eq!(verdict(&any, "rvwmo"), weaker, "{machine}");
        for bound in ["any", "5"] {
            let one =
                mu_check(&[&words[..], &["--operations", bound, "--against", "armv8"]].concat());
            assert_eq!(one.code, 2, "{machine}: {}", one.json);
            assert!(one.stderr.contains("cannot judge"), "{machine}: {}", one.stderr);
        }
    }
}

#[test]
fn obstacles_are_reported() {
    let spec = package("specs/machines/tso.spec");
    // Two values do not distinguish three kinds of stores.
    let few = conform(&spec, "machines/buffer", &[]);
    assert_eq!(few.code, 2);
    assert!(few.stderr.contains("three values"), "{}", few.stderr);
    // A model without an order within a processor.
    let other = conform(&spec, "machines/buffer", &["-D", "values=3", "--against", "rc11"]);
    assert_eq!((other.code, verdict(&other, "rc11").as_str()), (3, "unknown"));
    // A machine that compares values: a store that repeats the youngest entry is dropped.
    let text = std::fs::read_to_string(&spec).unwrap();
    let silent = text.replace(
        "store(p, a, v) . Core(p, b <| entry(a, v))",
        "store(p, a, v) . Core(p, if(b != [] && rhead(b) == entry(a, v), b, b <| entry(a, v)))",
    );
    assert_ne!(text, silent);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("silent.spec").display().to_string();
    std::fs::write(&path, silent).unwrap();
    let silent = conform(&path, "machines/buffer", &["-D", "values=3", "--against", "tso"]);
    assert_eq!(silent.code, 3, "{} {}", silent.stderr, silent.json);
    let reason = silent.json["models"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("differently: a run with"), "{reason}");
    // A store that waits for ever.
    let stuck = text.replace(
        "  + (b != []) -> c_write(p, address(head(b)), value(head(b)))",
        "  + (b != [] && (#b > 1 || p == p1)) -> c_write(p, address(head(b)), value(head(b)))",
    );
    assert_ne!(text, stuck);
    std::fs::write(&path, stuck).unwrap();
    let stuck = conform(&path, "machines/buffer", &["-D", "values=3", "--against", "tso"]);
    assert_eq!(stuck.code, 0, "{} {}", stuck.stderr, stuck.json);
    let held =
        text.replace("  + (b != []) -> c_write(p,", "  + (b != [] && p == p1) -> c_write(p,");
    std::fs::write(&path, held).unwrap();
    let held = conform(&path, "machines/buffer", &["-D", "values=3", "--against", "tso"]);
    assert_eq!(held.code, 3, "{} {}", held.stderr, held.json);
    let reason = held.json["models"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("may never reach memory"), "{reason}");
}

/// After its last operation a core of ARCx observes nothing, so the memory may wait for it, and
/// stores of the other core never commit. A number of operations proves nothing; any number does.
/// Two processors, two addresses, and a memory that the text continues. Stores of `Core` are
/// `sc`, its loads `lc`; those of the memory are `sm` and `lm`.
fn machine(text: &str, components: &str, visible: &str) -> String {
    format!(
        "sort C = struct P | Q; A = struct X | Y; V = struct v0 | v1 | v2 | v3;
act load, store, lc, lm, sc, sm: C # A # V; issue: C # A # V; issue_load: C # A;
{text}
init allow({{load, store{visible}}}, comm({{lc|lm -> load, sc|sm -> store}}, Core(P) || Core(Q) || {components}));
"
    )
}

/// Writes a file of a folder. Returns its path.
fn write_file(folder: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name).display().to_string();
    std::fs::write(&path, text).unwrap();
    path
}

const SOUND_MEMORY: &str = "M(m: A -> V) = sum c: C, a: A. lm(c, a, m(a)). M() + sum c: C, a: A, v: V. sm(c, a, v). M(m[a -> v]);";

#[test]
fn values_of_stores_that_depend_on_each_other_prove_nothing() {
    // Each processor repeats its first value, so no run shows the fault with different values: two
    // stores of `P` to `X`, and none of `Q`, make a load return the initial value again.
    let text = "proc Core(c: C) = sum a: A, v: V. (v != v0) -> sc(c, a, v). Run(c, v)
    + sum a: A, w: V. lc(c, a, w). Core(c);
Run(c: C, v: V) = sum a: A. sc(c, a, v). Run(c, v) + sum a: A, w: V. lc(c, a, w). Run(c, v);
M(m: A -> V, n: Nat, q: Bool) = sum c: C, a: A. lm(c, a, m(a)). M()
    + (n == 2 && !q) -> lm(Q, X, v0). M()
    + sum c: C, a: A, v: V. sm(c, a, v). M(m = m[a -> v],
        n = if(c == P && a == X && n < 2, n + 1, n), q = q || (c == Q && a == X));";
    let folder = tempfile::tempdir().unwrap();
    let spec = write_file(&folder, "m.mcrl2", &machine(text, "M(lambda a: A. v0, 0, false)", ""));
    let lines = "initial v0; load load(p, a, v); store commit store(p, a, v);";
    let interface = write_file(&folder, "m.interface", lines);
    let words = ["conform", &spec, "--interface", &interface, "--against", "sc", "--operations"];
    let outcome = mu_check(&[&words[..], &["2"]].concat());
    assert_eq!(verdict(&outcome, "sc"), "false", "{}", outcome.json);
    let outcome = mu_check(&[&words[..], &["any"]].concat());
    assert_eq!(verdict(&outcome, "sc"), "unknown", "{}", outcome.json);
    let reason = outcome.json["models"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("cannot store"), "{reason}");
}

/// Machines that are wrong on a value without a role: `v4` of four, or `v0`, which only one
/// processor stores. Searches and certificates follow no stores of it.
#[test]
fn values_without_roles_prove_nothing() {
    let text = std::fs::read_to_string(package("specs/machines/sc.spec")).unwrap();
    let replaced = |changes: &[(&str, &str)]| {
        changes.iter().fold(text.clone(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        })
    };
    let (write, stores) = ("m_write(p, a, v) . Memory(m[a -> v])", "(v != v0) -> c_write");
    let unstored = (stores, "(v != v0 && v != v4) -> c_write");
    let read = "m_read(p, a, m(a)) . Memory(m))";
    let thin = format!("{read} + (sum p: Processor, a: Address. m_read(p, a, v4) . Memory(m))");
    let machines = [
        (
            "lost",
            "4",
            "v4",
            replaced(&[(write, "m_write(p, a, v) . Memory(if(v == v4, m, m[a -> v]))")]),
        ),
        ("thin", "4", "v4", replaced(&[unstored, (read, &thin)])),
        (
            "initial",
            "4",
            "v4",
            replaced(&[unstored, ("lambda a: Address. v0", "lambda a: Address. v4")]),
        ),
        (
            "one",
            "3",
            "v0",
            replaced(&[
                (stores, "(v != v0 || p == p0) -> c_write"),
                (write, "m_write(p, a, v) . Memory(if(v == v0, m, m[a -> v]))"),
            ]),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let interface = package("specs/machines/direct.interface");
    for (name, values, value, text) in &machines {
        let values = format!("values={values}");
        let spec = write_file(&folder, "m.spec", text);
        let own = ["-D", &values, "--against", "sc"];
        let outcome = conform(&spec, "machines/direct", &own);
        assert_eq!((outcome.code, &*verdict(&outcome, "sc")), (3, "unknown"), "{name}");
        let reason = outcome.json["models"][0]["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("`{value}`")), "{name}: {reason}");
        // The states of the right machine are a certificate of what the roles do.
        let proof = folder.path().join("m.proof").display().to_string();
        let sc = package("specs/machines/sc.spec");
        let more = [&own[..], &["--certificate", &proof]].concat();
        let right = conform(&sc, "machines/direct", &more);
        assert_eq!((right.code, &*verdict(&right, "sc")), (0, "true"), "{}", right.json);
        assert_eq!(mu_check(&["verify", &sc, &interface, &proof]).code, 0, "{values}");
        let refused = mu_check(&["verify", &spec, &interface, &proof]);
        assert_eq!(refused.code, 1, "{name}: {}", refused.json);
        if *name != "initial" {
            let why = refused.json.to_string() + &refused.stderr;
            assert!(why.contains(&format!("`{value}`")), "{name}: {why}");
        }
    }
    // No proof replaces a bounded search, which finds the lost store.
    let spec = write_file(&folder, "m.spec", &machines[0].3);
    let words = ["conform", &spec, "--interface", &interface, "-D", "values=4", "--against", "sc"];
    let bounded = mu_check(&[&words[..], &["--operations", "5"]].concat());
    assert_eq!((bounded.code, &*verdict(&bounded, "sc")), (1, "false"), "{}", bounded.json);
}

/// Models of one address have the same assumptions as the others.
#[test]
fn models_of_one_address_list_their_assumptions() {
    let spec = package("specs/machines/sc.spec");
    for model in ["cache", "slow", "local"] {
        let more = ["-D", "values=3", "--against", model];
        let outcome = conform(&spec, "machines/direct", &more);
        assert_eq!((outcome.code, &*verdict(&outcome, model)), (0, "true"), "{}", outcome.json);
        let assumed = outcome.json["assumed"].as_array().unwrap();
        for what in ["more_values", "labels"] {
            assert!(assumed.iter().any(|g| g["what"] == what), "{model}: {assumed:?}");
        }
    }
}

#[test]
fn machines_that_hold_instructions_are_proved() {
    let text = format!(
        "proc Core(c: C) = sum a: A, v: V. issue(c, a, v). sc(c, a, v). Core(c)
    + sum a: A. issue_load(c, a). (sum v: V. lc(c, a, v)). Core(c);
{SOUND_MEMORY}"
    );
    let folder = tempfile::tempdir().unwrap();
    let spec = machine(&text, "M(lambda a: A. v0)", ", issue, issue_load");
    let spec = write_file(&folder, "m.mcrl2", &spec);
    let lines = "initial v0; load load(p, a, v); store commit store(p, a, v);
internal issue, issue_load;";
    let interface = write_file(&folder, "m.interface", lines);
    let proof = folder.path().join("m.proof").display().to_string();
    let words = ["conform", &spec, "--interface", &interface, "--against", "sc"];
    let outcome =
        mu_check(&[&words[..], &["--operations", "any", "--certificate", &proof]].concat());
    assert_eq!(verdict(&outcome, "sc"), "true", "{}", outcome.json);
    let has = |list: &str, name: &str| {
        outcome.json[list].as_array().unwrap().iter().any(|g| g["what"] == name)
    };
    assert!(has("checked", "unbounded") && has("checked", "values"), "{}", outcome.json);
    assert!(!has("assumed", "bounded"), "{}", outcome.json);
    let verified = mu_check(&["verify", &spec, &interface, &proof]);
    assert_eq!(verified.code, 0, "{} {}", verified.stderr, verified.json);
}

#[test]
fn a_bounded_machine_says_so() {
    let spec = package("specs/arcx.spec");
    let bounds = ["-D", "max_operation_id=0", "-D", "byte_size=3", "--against", "tso"];
    let outcome = conform(&spec, "arcx", &bounds);
    assert_eq!(outcome.code, 3, "{} {}", outcome.stderr, outcome.json);
    assert_eq!(outcome.json["bounded"], Value::Bool(true));
    let reason = outcome.json["models"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("may never reach memory"), "{reason}");
}

/// Any number of operations: 26 million states, a minute in a release build.
#[test]
#[ignore = "cargo test --release --test suite conform_any:: -- --ignored"]
fn arcx_implements_tso_for_programs_of_every_length() {
    let spec = package("specs/arcx.spec");
    let any = ["-D", "max_operation_id=any", "-D", "byte_size=3"];
    let outcome = conform(&spec, "arcx", &any);
    assert_eq!(verdict(&outcome, "tso"), "true", "{} {}", outcome.stderr, outcome.json);
    assert_eq!(verdict(&outcome, "sc"), "false");
    assert_eq!(outcome.json["models"][0]["test"], "W x 1; R y 0 || W y 1; R x 0");
}

/// A violation is confirmed when it is found, so a limit that ends a long search does not lose it.
#[test]
fn limits_keep_the_violations_found_before() {
    let (spec, interface) =
        (package("specs/machines/tso.spec"), package("specs/machines/machine.interface"));
    let outcome = mu_check(&[
        "conform",
        &spec,
        "--interface",
        &interface,
        "--operations",
        "6",
        "--against",
        "sc,tso",
        "--timeout",
        "3",
    ]);
    assert_eq!(outcome.code, 1, "{}", outcome.json);
    let models = outcome.json["models"].as_array().unwrap();
    let verdicts: Vec<(&str, &str)> = models
        .iter()
        .map(|m| (m["name"].as_str().unwrap(), m["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(verdicts, [("sc", "false"), ("tso", "unknown")], "{}", outcome.json);
}

/// A model of a file is another one if a file that it includes is: here `slow` with views that
/// forbid each load.
#[test]
fn models_with_other_included_files_are_not_the_built_in_ones() {
    let folder = tempfile::tempdir().unwrap();
    let slow = std::fs::read_to_string(package("src/axioms/memory/slow.cat")).unwrap();
    let model = write_file(&folder, "slow.cat", &slow);
    write_file(&folder, "views.cat", "procedure view(some, order) =\n  empty R\nend\n");
    let spec = package("specs/machines/sc.spec");
    let against = |model: &str, more: &[&str]| {
        let more = [&["-D", "values=3", "--against", model], more].concat();
        conform(&spec, "machines/direct", &more)
    };
    assert_eq!(against(&model, &[]).code, 3);
    assert_eq!(against(&model, &["--against", "sc"]).code, 3);
    assert_eq!(against("slow", &[]).code, 0);
    // Each built-in model follows from `sc`, also if it is the only one.
    assert_eq!(against("pram", &[]).code, 0);
}

/// Returns a memory in which each operation is numbered, up to `N`. `store` is the summand of
/// stores, and `value` the value of a load at the address `a`.
fn numbered_memory(parameter: &str, store: &str, value: &str) -> String {
    format!(
        "$param N: {parameter};
        sort Processor = struct p0 | p1; Address = struct a0 | a1;
             Value = struct v0 | v1 | v2 | v3;
        act load, store: Processor # Address # Value;
        proc M(m: Address -> Value, n: Nat) =
            {store}
          + sum p: Processor, a: Address.
              (n < ${{N}}) -> load(p, a, {value}) . M(m, n + 1);
        init M(lambda a: Address. v0, 0);"
    )
}

/// Numbers without a value: the instance 0 may have no operation, the parameter may exclude small
/// values, and values may differ only where there are several operations.
#[test]
fn instances_of_numbers_confirm_violations_and_check_values() {
    let folder = tempfile::tempdir().unwrap();
    let plain = "sum p: Processor, a: Address, v: Value.
        (v != v0 && n < ${N}) -> store(p, a, v) . M(m[a -> v], n + 1)";
    let lines = "initial v0; load load(p, a, v); store commit store(p, a, v);";
    let interface = write_file(&folder, "m.interface", lines);
    let code = |name: &str, text: &str| {
        let spec = write_file(&folder, name, text);
        let words = ["conform", &spec, "--interface", &interface, "--operations", "any"];
        let outcome = mu_check(&[&words[..], &["-D", "N=any", "--against", "sc"]].concat());
        (outcome.code, format!("{} {}", outcome.json, outcome.stderr))
    };
    // Loads of `a1` miss stores.
    let wrong = numbered_memory("Nat = 2", plain, "if(a == a1, v0, m(a))");
    assert_eq!(code("wrong.spec", &wrong).0, 1);
    for parameter in ["Nat = 2", "Pos = 2", "Nat = 3 where N >= 2"] {
        let (code, text) = code("plain.spec", &numbered_memory(parameter, plain, "m(a)"));
        assert_eq!(code, 0, "{parameter}: {text}");
    }
    // A store of v1 in place of v1 clears the other address.
    let silent = "sum p: Processor, a: Address, v: Value.
        (v != v0 && n < ${N}) -> store(p, a, v) .
            M(if(v == v1 && m(a) == v1, (lambda b: Address. v0)[a -> v], m[a -> v]), n + 1)";
    let (code, text) = code("silent.spec", &numbered_memory("Nat = 2", silent, "m(a)"));
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("differently: a run with"), "{text}");
}
