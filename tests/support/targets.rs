//! Fuzz targets: each function takes any bytes and must neither panic nor overflow the stack nor
//! run for ever. The fuzz targets in `fuzz/` and the short deterministic runs in `tests/fuzzed.rs`
//! share them.

use mu_check::base::{Budget, Limits, SourceMap};
use mu_check::compile::{Compiled, Confluence};
use mu_check::explore::{self, RestoredSearch, Silent};
use mu_check::formula::equations as with_data;
use mu_check::formula::typecheck::check_formula;
use mu_check::game::solve::default_solver;
use mu_check::game::{bes, pg, verify};
use mu_check::lts::equivalence::{Equivalence, reduce};
use mu_check::lts::{aut, binary, mcrl2};
use mu_check::process::labels::inferred::InferredLabels;
use mu_check::process::{linearise, typecheck};
use mu_check::program::litmus;
use mu_check::syntax::{self, template};
use std::time::Duration;

/// Name and function of each target.
pub const TARGETS: [(&str, fn(&[u8])); 8] = [
    ("specification", specification),
    ("formula", formula),
    ("aut", lts),
    ("pg", parity_game),
    ("bes", equations),
    ("checkpoint", checkpoint),
    ("litmus", litmus_test),
    ("front_end", front_end),
];

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// The parameter layer and the parser of specifications; what parses is printed and parsed again to
/// the same text.
pub fn specification(data: &[u8]) {
    let mut sources = SourceMap::new();
    let expanded = match template::expand("fuzz", &text(data), &[], &mut sources) {
        Ok(expanded) => expanded,
        Err(d) => return drop(d.render(&sources)),
    };
    match syntax::parse_specification(expanded.source, &expanded.text) {
        Ok(tree) => {
            let printed = syntax::print::specification(&tree);
            let again = syntax::parse_specification(expanded.source, &printed)
                .expect("what is printed parses");
            assert_eq!(printed, syntax::print::specification(&again));
        }
        Err(d) => drop(d.render(&sources)),
    }
}

/// The parser and the type checker of formulas, over a few actions.
pub fn formula(data: &[u8]) {
    let text = text(data);
    let mut sources = SourceMap::new();
    let source = sources.add("fuzz", text.as_str());
    let labels = mu_check::lts::Labels {
        texts: ["tau", "a", "b(1)", "c(true)|a", "d(x)"].map(String::from).to_vec(),
    };
    let known = InferredLabels::new(&labels.texts).expect("the labels are well formed");
    let typed = syntax::parse_formula(source, &text)
        .and_then(|tree| check_formula(&tree, known.data(), known.actions()));
    if let Err(d) = typed {
        d.render(&sources);
    }
}

/// Files of transition systems, in any of the three forms: what is read is reduced, written and
/// read again.
pub fn lts(data: &[u8]) {
    let read = match data {
        d if d.starts_with(&binary::MAGIC) => binary::read(d),
        d if d.starts_with(&mcrl2::MAGIC) => mcrl2::read(d),
        d => aut::read(d, &aut::AutOptions::default()),
    };
    let Ok(mut lts) = read else { return };
    if lts.state_count() > 10_000 {
        return;
    }
    let small = reduce(&lts, Equivalence::BRANCHING, 1);
    assert!(small.state_count() <= lts.state_count());
    let mut bytes = Vec::new();
    binary::write(&lts, &mut bytes).expect("what was read can be written");
    assert_eq!(binary::read(&bytes[..]).expect("what is written can be read"), lts);
    bytes.clear();
    mcrl2::write(&lts, None, &mut bytes).expect("what was read can be written");
    let again = mcrl2::read(&bytes[..]).expect("what is written can be read");
    assert_eq!((again.offsets, again.targets), (lts.offsets.clone(), lts.targets.clone()));
    bytes.clear();
    // What text cannot hold is refused when it is written.
    lts.table.texts.iter_mut().for_each(|t| *t = t.replace(['\n', '\r'], ""));
    aut::write(&lts, &mut bytes).expect("what was read can be written");
    let again =
        aut::read(&bytes[..], &aut::AutOptions::default()).expect("what is written can be read");
    assert_eq!((again.offsets, again.targets), (lts.offsets, lts.targets));
    InferredLabels::new(&lts.table.texts).expect("labels of any form have a meaning");
}

fn expect_solvable(game: &mu_check::game::Game) {
    if game.vertex_count() < 10_000 {
        let solution = default_solver().solve(game, &budget()).expect("a small game is solved");
        verify::verify(game, &solution).expect("the solution is right");
    }
}

/// Files of parity games: parsed files are solved, written, and read again.
pub fn parity_game(data: &[u8]) {
    let Ok(game) = pg::read(&text(data)) else { return };
    expect_solvable(&game);
    let mut bytes = Vec::new();
    pg::write(&game, &mut bytes).expect("what was read can be written");
    let again = pg::read(&text(&bytes)).expect("what is written can be read");
    assert_eq!((again.offsets, again.priorities), (game.offsets, game.priorities));
}

/// Files of boolean equation systems, and of such with data.
pub fn equations(data: &[u8]) {
    if let Ok(game) = bes::read(&text(data)) {
        expect_solvable(&game);
    }
    let mut sources = SourceMap::new();
    let source = sources.add("fuzz", text(data));
    let system = with_data::read(source, &text(data));
    if let Err(d) = system.and_then(|system| typecheck::check_specification(&system.specification))
    {
        assert!(d.stage != mu_check::base::Stage::Internal, "{}", d.render(&sources));
        d.render(&sources);
    }
}

/// Checkpoints.
pub fn checkpoint(data: &[u8]) {
    let mut input = data;
    let _ = RestoredSearch::read(&mut input, &mut |_| Ok(()));
}

/// Litmus tests.
pub fn litmus_test(data: &[u8]) {
    let text = text(data);
    let mut sources = SourceMap::new();
    let source = sources.add("fuzz", text.as_str());
    if let Err(d) = litmus::parse(source, &text) {
        d.render(&sources);
    }
}

fn budget() -> Budget {
    Budget::new(Limits {
        max_states: Some(200),
        timeout: Some(Duration::from_secs(5)),
        ..Limits::default()
    })
}

/// From the text of a specification to the first states of its transition system.
pub fn front_end(data: &[u8]) {
    let mut sources = SourceMap::new();
    let run = |sources: &mut SourceMap| {
        let expanded = template::expand("fuzz", &text(data), &[], sources)?;
        let tree = syntax::parse_specification(expanded.source, &expanded.text)?;
        let spec = typecheck::check_specification(&tree)?;
        let process = linearise::linearise(
            &spec,
            &linearise::LineariserOptions { max_summands: 2000, ..Default::default() },
        )?;
        let model = Compiled::new(process, &Confluence::Auto)?;
        let options =
            explore::Options { threads: 1, ..Default::default() }.with_confluence_of(&model);
        explore::explore(&model, &options, &budget(), &Silent)
    };
    if let Err(d) = run(&mut sources) {
        assert!(d.stage != mu_check::base::Stage::Internal, "{}", d.render(&sources));
        d.render(&sources);
    }
}
