//! Dependencies of the tool: every one comes from the one registry, under a compatible licence, and
//! the direct ones are those of Cargo.toml. `cargo deny check` (see deny.toml) also checks known
//! faults, where it is installed.

use serde_json::Value;
use std::process::Command;

/// Licences that may be chosen. An expression is taken apart at `OR` and `/`; one side must consist
/// of these.
const LICENCES: [&str; 8] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn fits(licence: &str) -> bool {
    let all = |side: &str| {
        side.split(" AND ").all(|l| LICENCES.contains(&l.trim()) || (l.contains(" OR ") && fits(l)))
    };
    let (mut depth, mut sides, mut start) = (0, Vec::new(), 0);
    let text = licence.replace('/', " OR ");
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ' ' if depth == 0 && text[i..].starts_with(" OR ") => {
                sides.push(&text[start..i]);
                start = i + 4;
            }
            _ => {}
        }
    }
    sides.push(&text[start..]);
    sides.iter().any(|side| match side.trim().strip_prefix('(').and_then(|s| s.split_once(')')) {
        Some((inner, rest)) => {
            fits(inner) && (rest.trim().is_empty() || all(rest.trim().trim_start_matches("AND ")))
        }
        None => all(side),
    })
}

#[test]
fn licences_are_read_as_they_are_meant() {
    for good in [
        "MIT",
        "MIT OR GPL-3.0",
        "MIT/Apache-2.0",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR MIT",
    ] {
        assert!(fits(good), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND GPL-3.0", ""] {
        assert!(!fits(bad), "{bad}");
    }
}

#[test]
fn dependencies_are_of_one_registry_and_freely_licensed() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--offline",
            "--filter-platform",
            "x86_64-unknown-linux-gnu",
        ])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    assert!(packages.len() > 20);
    let mut wrong = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or("?");
        let licence = package["license"].as_str().unwrap_or("");
        match package["source"].as_str() {
            None => assert!(name == "mu-check" || name.starts_with("mu-check-"), "{name}"),
            Some("registry+https://github.com/rust-lang/crates.io-index") => {}
            Some(other) => wrong.push(format!("{name} comes from {other}")),
        }
        if !fits(licence) {
            wrong.push(format!("{name} is under `{licence}`"));
        }
        // A build script that fetches something needs one of these.
        if ["reqwest", "ureq", "curl", "curl-sys", "openssl-sys", "hyper"].contains(&name) {
            wrong.push(format!("{name} reaches the network"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
