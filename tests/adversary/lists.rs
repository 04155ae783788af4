//! The lists of the program against the table of routes: each value needs a row, each row an
//! existing value, and each test in a row must exist.
//!
//! The lists come from the program: options with possible values on the command line, the names of
//! simplifications, the registries of engines and solvers, the endings of files.

use super::routes::{How, rows};
use clap::CommandFactory;
use mu_check::cli::args::Cli;
use mu_check::process::linearise;
use std::collections::BTreeSet;

/// Options that change the form of answers, not their computation.
const NO_ROUTE: [(&str, &str); 3] = [
    ("format", "the form of what is printed; `tests/schema.rs` compares the two"),
    ("evidence-form", "the form of evidence; `tests/sweep.rs`"),
    ("count", "only `check` and `sweep`, whose rows compare the verdicts of both"),
];

/// Endings of files that are no input or output of a route here.
const NO_FORM: [(&str, &str); 6] = [
    ("dot", "a picture"),
    ("gv", "a picture"),
    ("mcrl2", "the main path"),
    ("spec", "the main path"),
    ("cat", "no model of states"),
    ("mcrl2proj", "rejected by name"),
];

/// Returns all values of all lists, as rows name them.
fn values() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut command = Cli::command();
    command.build();
    for subcommand in command.get_subcommands().filter(|c| c.get_name() != "help") {
        for argument in subcommand.get_arguments().filter(|a| a.get_action().takes_values()) {
            let Some(name) = argument.get_long() else { continue };
            if NO_ROUTE.iter().any(|(n, _)| n == &name) {
                continue;
            }
            found.extend(
                argument.get_possible_values().iter().map(|v| format!("{name}={}", v.get_name())),
            );
        }
    }
    found.extend(
        linearise::LineariserOptions::SIMPLIFICATIONS.iter().map(|name| format!("simplify {name}")),
    );
    found.extend(mu_check::engines::engines().iter().map(|e| format!("engine={}", e.name())));
    found.extend(mu_check::game::solve::solvers().iter().map(|s| format!("solver={}", s.name())));
    found.extend(
        mu_check::lts::equivalence::Equivalence::ALL
            .iter()
            .map(|e| format!("equivalence={}", e.name())),
    );
    let endings = mu_check::frontends::registry().iter().flat_map(|f| f.endings());
    let forms = endings.map(|e| e.trim_start_matches('.'));
    found.extend(
        forms.filter(|e| !NO_FORM.iter().any(|(n, _)| n == e)).map(|e| format!("form .{e}")),
    );
    found
}

#[test]
fn every_value_of_every_list_has_a_row() {
    let wanted = values();
    assert!(wanted.len() > 45, "{} values", wanted.len());
    let covered: BTreeSet<String> =
        rows().iter().flat_map(|r| r.covers.iter().map(|c| c.to_string())).collect();
    let missing: Vec<&String> = wanted.iter().filter(|w| !covered.contains(*w)).collect();
    assert!(missing.is_empty(), "no route covers {missing:?}");
    // A value that a row names is one of the program's, if it is one of a list.
    let names: BTreeSet<&str> = wanted.iter().filter_map(|w| Some(w.split_once('=')?.0)).collect();
    let listed = |c: &str| {
        c.split_once('=').is_some_and(|(n, _)| names.contains(n)) || c.starts_with("simplify ")
    };
    let gone: Vec<&String> = covered
        .iter()
        .filter(|c| {
            listed(c)
                && !wanted.contains(*c)
                && !["simplify none", "simplify default", "simplify all"].contains(&c.as_str())
        })
        .collect();
    assert!(gone.is_empty(), "rows cover {gone:?}, which the program does not have");
}

#[test]
fn tests_that_rows_name_exist() {
    let mut named = 0;
    for row in rows() {
        let How::Elsewhere(tests) = row.how else { continue };
        assert!(!tests.is_empty(), "{} names no test", row.name);
        for (file, test) in tests {
            let text = std::fs::read_to_string(crate::support::package(file))
                .unwrap_or_else(|e| panic!("{}: {file}: {e}", row.name));
            let at = text
                .find(&format!("fn {test}("))
                .unwrap_or_else(|| panic!("{}: {file} has no `{test}`", row.name));
            assert!(
                text[..at].trim_end().ends_with(']'),
                "{}: `{test}` of {file} is no test",
                row.name
            );
            named += 1;
        }
    }
    assert!(named > 4, "{named}");
}
