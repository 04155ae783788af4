//! A front end outside the registry, for lists of transitions: one file, three methods. The library
//! loads, explores, and checks its models; a list of front ends with it recognises its files.
//!
//! To add such a front end to the command line:
//!
//! 1. Move it to `src/frontends`, with a public constant of its type and imports from `crate`.
//! 2. Return [`mu_frontends::Properties`] with `stored: true`, which makes options for transition
//!    systems apply, and consult [`LoadOptions::data`] and [`LoadOptions::internal`].
//! 3. Add its module and its row of the registry to `src/frontends/lib.rs`.
//! 4. Add a row `form .transitions` to `tests/adversary/routes.rs`, and the ending to the list of
//!    models in `README.md`.
//! 5. Correct the last assertion of `names_and_contents_select_the_front_end` below.
//!
//! A format that stores a transition system needs less: a type and a row of
//! [`mu_frontends::formats`], which `convert` writes too.
//!
//! A language with behaviour of its own, not a stored system, implements [`mu_model::Model`] and
//! returns [`Loaded::with_inferred_labels`] (see `src/frontends/murphi.rs`), or builds a
//! [`mu_model::hand::HandModel`] (see `examples/own_model.rs`).

use mu_base::ids::{LabelId, StateId};
use mu_base::{Budget, Diagnostic, Limits, SourceMap, Span, Stage, narrow};
use mu_frontends::{
    EditedText, FrontEnd, Input, LoadOptions, Loaded, Loading, Silent, load_with, registry, select,
};
use mu_library::{Run, Specification, Verdict};
use mu_lts::{Labels, Lts};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Front end of lists of transitions: a line per transition (`0 "a(1)" 1`), from state 0.
struct Transitions;

/// Lines between two checks of the limits.
const POLL_INTERVAL: usize = 1024;

impl FrontEnd for Transitions {
    fn language(&self) -> &'static str {
        "a list of transitions"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".transitions"]
    }

    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        loading.expect_no_parameters(input)?;
        let (source, text) = input.source(loading.sources)?;
        let mut table = Labels::default();
        let mut label_of = HashMap::from([("tau".to_string(), LabelId::TAU)]);
        // Numbers in the text may have gaps; the states of the system have none.
        let mut state_of = HashMap::from([(0, StateId::of(0))]);
        let (mut edges, mut start) = (Vec::new(), 0);
        for (number, line) in text.split_inclusive('\n').enumerate() {
            if number.is_multiple_of(POLL_INTERVAL) {
                loading.budget.check(0).map_err(Diagnostic::stopped)?;
            }
            let end = start + narrow::index(line.trim_end().len());
            let place = Span { source, start, end };
            start += narrow::index(line.len());
            if line.trim().is_empty() {
                continue;
            }
            let (from, label, to) = transition(line).ok_or_else(|| {
                let message = "expected a state, a label in quotes, and a state, as in `0 \"a\" 1`";
                Diagnostic::at(Stage::Syntax, place, message)
            })?;
            let label = *label_of.entry(label.to_string()).or_insert_with(|| {
                table.texts.push(label.to_string());
                LabelId::new(table.texts.len() - 1)
            });
            let mut state = |number: u32| {
                let next = StateId::new(state_of.len());
                *state_of.entry(number).or_insert(next)
            };
            edges.push((state(from), label, state(to)));
        }
        let lts = Lts::from_edges(StateId::of(0), state_of.len(), &edges, table);
        Loaded::from_lts(Arc::new(lts), None)
    }
}

/// Splits a line into source state, label, and target state.
fn transition(line: &str) -> Option<(u32, &str, u32)> {
    let (from, rest) = line.split_once('"')?;
    let (label, to) = rest.split_once('"')?;
    Some((from.trim().parse().ok()?, label, to.trim().parse().ok()?))
}

const BUFFER: &str =
    "0 \"put(1)\" 1\n0 \"put(2)\" 2\n1 \"get(1)\" 0\n2 \"get(2)\" 0\n2 \"lose\" 3\n";

#[test]
fn models_are_explored_and_checked() {
    let model = Specification::in_language(&Transitions, "buffer.transitions", BUFFER);
    let model = model.model().unwrap();
    let counts = model.explore(&Run::new()).unwrap();
    assert_eq!((counts.states, counts.deadlocks), (4u32.into(), Some(1u32.into())));
    // Labels have typed arguments, so formulas quantify over them.
    let answer = |formula: &str| model.check(formula, &Run::new()).unwrap();
    let returned = "forall n: Nat. [true* . put(n)]<get(n)>true";
    assert_eq!(answer(returned).verdict, Verdict::True);
    let lost = answer("[true* . lose]<true>true");
    assert_eq!(lost.verdict, Verdict::False);
    assert_eq!(lost.evidence.unwrap().actions(), ["put(2)", "lose"]);
}

#[test]
fn errors_have_places() {
    let text = "0 \"a\" 1\n1 b 0\n";
    let error = Specification::in_language(&Transitions, "wrong.transitions", text).model();
    let error = error.unwrap_err();
    let place = error.place().unwrap();
    assert_eq!((place.line, place.column, place.text.as_str()), (2, 1, "1 b 0"));
    // Options of other languages do not apply.
    let model = Specification::in_language(&Transitions, "buffer.transitions", BUFFER);
    let error = model.clone().with("n", 1).model().unwrap_err();
    assert!(error.message().contains("parameter `n=1` is set"), "{error}");
    let error = model.priority(mu_library::Priority::Proven).model().unwrap_err();
    assert!(error.message().contains("is a list of transitions"), "{error}");
}

/// A large number of a state costs no memory, and the numbers of the text do not matter.
#[test]
fn numbers_of_states_may_have_gaps() {
    let text = "0 \"a\" 4000000000\n4000000000 \"b\" 7\n";
    let model = Specification::in_language(&Transitions, "gaps.transitions", text).model().unwrap();
    let counts = model.explore(&Run::new()).unwrap();
    assert_eq!((counts.states, counts.deadlocks), (3u32.into(), Some(1u32.into())));
}

#[test]
fn limits_stop_the_reader() {
    let input = Input::text_named(Path::new("buffer.transitions"), BUFFER);
    let limits = Limits { timeout: Some(Duration::ZERO), ..Limits::default() };
    let (mut sources, budget) = (SourceMap::new(), Budget::new(limits));
    let options = LoadOptions::default();
    let mut loading = Loading {
        sources: &mut sources,
        defines: &[],
        budget: &budget,
        options: &options,
        journal: &Silent,
    };
    let error = load_with(&Transitions, &input, &mut loading).err().unwrap();
    assert!(error.stop.is_some(), "{error}");
}

#[test]
fn editors_report_its_errors() {
    let check = |text: &str| {
        let path = Path::new("edited.transitions");
        Transitions.check_edit(&EditedText { path, text, sibling: &|_| None }).error
    };
    assert!(check(BUFFER).is_none());
    assert!(check("0 a 1").is_some());
}

/// A front end with the ending of another one, which the content distinguishes.
struct Commented;

impl FrontEnd for Commented {
    fn language(&self) -> &'static str {
        "a list of transitions with a title"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".transitions"]
    }
    fn recognises(&self, beginning: &[u8]) -> bool {
        beginning.starts_with(b"title")
    }
    fn read(&self, _: &Input<'_>, _: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        Err(Diagnostic::new(Stage::Unsupported, "titles are not supported"))
    }
}

#[test]
fn names_and_contents_select_the_front_end() {
    let list: Vec<&'static dyn FrontEnd> = [&Commented as &dyn FrontEnd, &Transitions]
        .into_iter()
        .chain(registry().to_vec())
        .collect();
    let language = |name: &str, text: &str| {
        select(&list, &Input::text_named(Path::new(name), text)).language()
    };
    for (name, text, expected) in [
        ("a.transitions", BUFFER, "a list of transitions"),
        ("a.transitions", "title", "a list of transitions with a title"),
        ("A.TRANSITIONS", "", "a list of transitions"),
        ("a.mcrl2", "", "a specification"),
        ("model", "", "a specification"),
        ("a.transitions.txt", "", "a specification"),
        ("SPIN.ASM", "", "an x86 program"),
        ("a.aut.gz", "", "a transition system"),
        ("a.cub", "", "a system of any number of processes"),
        ("a.pbes.txt", "", "an equation system"),
        ("a.dot", "", "a transition system"),
        ("a.pg", "", "a game"),
    ] {
        assert_eq!(language(name, text), expected, "{name}");
    }
    // The registry alone reads lists of transitions as mCRL2.
    assert_eq!(mu_frontends::by_name(Path::new("a.transitions")).language(), "a specification");
}

/// Each registered front end has an ending of its own, in lower case and with a dot.
#[test]
fn endings_are_distinct() {
    let mut seen = Vec::new();
    for ending in registry().iter().flat_map(|f| f.endings()) {
        assert!(ending.starts_with('.') && *ending == ending.to_lowercase(), "{ending}");
        seen.push(*ending);
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), count);
}

/// A file without a model is rejected with the same message for every command.
#[test]
fn files_without_a_model_are_rejected() {
    let rejected: Vec<_> = registry().iter().filter(|f| f.properties().rejected).collect();
    assert!(rejected.len() >= 2);
    for front_end in rejected {
        let name = format!("a{}", front_end.endings()[0]);
        let input = Input::text_named(Path::new(&name), "");
        let (mut sources, budget) = (SourceMap::new(), Budget::default());
        let options =
            LoadOptions { confluence: mu_compile::Confluence::Auto, ..LoadOptions::default() };
        let mut loading = Loading {
            sources: &mut sources,
            defines: &[],
            budget: &budget,
            options: &options,
            journal: &Silent,
        };
        let error = load_with(*front_end, &input, &mut loading).err().unwrap();
        assert!(error.message.starts_with(&format!("`{name}` is ")), "{}", error.message);
        assert!(error.message.ends_with("not a model"), "{}", error.message);
    }
}
