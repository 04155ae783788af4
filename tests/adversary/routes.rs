//! Table of routes: the steps of each from an input to an answer, the options that it covers, and
//! the generator that compares it with the main path.
//!
//! A value of a list (engines, solvers, equivalences, simplifications, reductions, forms of files)
//! without a row fails `every_value_of_every_list_has_a_row`.

use super::inside::Inside;
use super::plain::{Found, Main, Route};
use super::runs::Folder;
use super::{steps, systems};

/// Comparison of a route.
pub enum How {
    /// On specifications and formulas of the grammar.
    Plain(Route),
    /// `any` against instances, for a family of parameters.
    EveryValue(&'static str),
    /// The parameter layer against the plain text.
    Layer,
    /// Inputs that are refused by name.
    Refused,
    /// Values of formulas on systems with chance.
    Quantities,
    /// Within this process, with the operational rules and the direct evaluation as oracles.
    Within,
    /// By tests of other files, with generators of their own: file and name.
    Elsewhere(&'static [(&'static str, &'static str)]),
}

/// A route.
pub struct Row {
    pub name: &'static str,
    /// Covered options: `option=value` of the command line, `simplify NAME`, `form .EXT`.
    pub covers: &'static [&'static str],
    pub how: How,
}

const fn options(
    name: &'static str,
    covers: &'static [&'static str],
    check: &'static str,
    explore: &'static str,
) -> Row {
    Row { name, covers, how: How::Plain(Route::Options(check, explore)) }
}

const fn by(
    name: &'static str,
    covers: &'static [&'static str],
    run: fn(&Folder, &Main) -> Result<Found, String>,
    within: fn(&Inside, &Folder) -> Result<Found, String>,
) -> Row {
    Row { name, covers, how: How::Plain(Route::Steps(run, Some(within))) }
}

/// A route that files and processes make up, which has no other form.
const fn by_runs(
    name: &'static str,
    covers: &'static [&'static str],
    run: fn(&Folder, &Main) -> Result<Found, String>,
) -> Row {
    Row { name, covers, how: How::Plain(Route::Steps(run, None)) }
}

const fn elsewhere(
    name: &'static str,
    covers: &'static [&'static str],
    tests: &'static [(&'static str, &'static str)],
) -> Row {
    Row { name, covers, how: How::Elsewhere(tests) }
}

/// Returns all routes.
pub fn rows() -> Vec<Row> {
    let mut rows = vec![
        Row {
            name: "within the process",
            covers: &[
                "engine=explicit",
                "equivalence=strong",
                "equivalence=branching",
                "equivalence=divergence-branching",
                "equivalence=divergence-weak",
                "equivalence=weak",
                "equivalence=trace",
                "equivalence=weak-trace",
            ],
            how: How::Within,
        },
        Row { name: "any counters", covers: &["define=any"], how: How::EveryValue("counters") },
        Row { name: "any sorts", covers: &["define=any"], how: How::EveryValue("sorts") },
        Row { name: "any components", covers: &["define=any"], how: How::EveryValue("components") },
        Row { name: "parameter layer", covers: &["form .spec"], how: How::Layer },
        Row { name: "refused by name", covers: &[], how: How::Refused },
        Row {
            name: "values with chance",
            covers: &["equivalence=probabilistic", "reduce=probabilistic"],
            how: How::Quantities,
        },
    ];
    rows.extend(by_options());
    rows.extend(by_steps());
    rows.extend(of_others());
    rows
}

fn by_options() -> Vec<Row> {
    vec![
        elsewhere(
            "any counters without verification",
            &["without=verify"],
            &[("tests/unbounded_numbers.rs", "differences_of_counters_are_proved_and_certified")],
        ),
        options("as it comes", &["format=json", "count=merged"], "", ""),
        options("2 threads", &["threads=2"], "--threads 2", "--threads 2"),
        options("7 threads", &["threads=7"], "--threads 7", "--threads 7"),
        options(
            "engine symbolic",
            &["engine=symbolic", "strategy=saturation"],
            "--engine symbolic --threads 1",
            "--engine symbolic --threads 2",
        ),
        options("engine auto", &["engine=auto"], "--engine auto", "--engine auto"),
        options(
            "breadth first",
            &["strategy=breadth-first"],
            "-",
            "--engine symbolic --strategy breadth-first",
        ),
        options("chaining", &["strategy=chaining"], "-", "--engine symbolic --strategy chaining"),
        options(
            "2 processes",
            &["engine=cluster", "processes=2"],
            "--processes 2",
            "--processes 2",
        ),
        options("3 processes", &["processes=3"], "--processes 3", "--processes 3"),
        options(
            "4 processes, no reduction",
            &["processes=4"],
            "--processes 4 --without symmetry,quotient,por",
            "--processes 4 --without symmetry",
        ),
        options("symmetry alone", &[], "--without quotient,por", "--without por"),
        options("quotient alone", &[], "--without symmetry,por", "-"),
        options("partial orders alone", &[], "--without symmetry,quotient", "-"),
        options(
            "without symmetry",
            &["without=symmetry"],
            "--without symmetry",
            "--without symmetry",
        ),
        options(
            "without quotient",
            &["without=quotient"],
            "--without quotient",
            "--without quotient",
        ),
        options("without partial orders", &["without=por"], "--without por", "--without por"),
        options(
            "confluence alone",
            &["confluence=auto"],
            "--confluence auto --without symmetry,quotient,por --threads 1",
            "-",
        ),
        options("all reductions", &["confluence=auto"], "--confluence auto --threads 2", "-"),
        options(
            "all reductions, 2 processes",
            &["confluence=auto"],
            "--confluence auto --processes 2",
            "-",
        ),
        options(
            "counts of all parameters",
            &["count=all-parameters"],
            "--count all-parameters",
            "-",
        ),
        options(
            "solver zielonka",
            &["solver=zielonka"],
            "--solver zielonka --without symmetry",
            "-",
        ),
        options("solver promotion", &["solver=promotion"], "--solver promotion", "-"),
        options("solver auto", &["solver=auto"], "--solver auto", "-"),
    ]
}

fn by_steps() -> Vec<Row> {
    vec![
        by_runs(
            "checkpoint and resume",
            &["option checkpoint", "option resume"],
            steps::stop_and_resume,
        ),
        by_runs(
            "checkpoint and resume, 2 processes",
            &["option checkpoint", "option resume"],
            steps::resumed_by_two,
        ),
        by("spilling", &["option spill"], steps::spill, systems::spill),
        by(
            "simplify none",
            &["simplify none", "form .lps"],
            |f, m| steps::simplify(f, m, "none"),
            |i, _| systems::simplify(i, "none"),
        ),
        by(
            "simplify default",
            &["simplify default"],
            |f, m| steps::simplify(f, m, "default"),
            |i, _| systems::simplify(i, "default"),
        ),
        by(
            "simplify all",
            &["simplify all"],
            |f, m| steps::simplify(f, m, "all"),
            |i, _| systems::simplify(i, "all"),
        ),
        by(
            "simplify constants",
            &["simplify constants"],
            |f, m| steps::simplify(f, m, "constants"),
            |i, _| systems::simplify(i, "constants"),
        ),
        by(
            "simplify duplicates",
            &["simplify duplicates"],
            |f, m| steps::simplify(f, m, "duplicates"),
            |i, _| systems::simplify(i, "duplicates"),
        ),
        by(
            "simplify eliminate",
            &["simplify eliminate"],
            |f, m| steps::simplify(f, m, "eliminate"),
            |i, _| systems::simplify(i, "eliminate"),
        ),
        by(
            "simplify control",
            &["simplify control"],
            |f, m| steps::simplify(f, m, "control"),
            |i, _| systems::simplify(i, "control"),
        ),
        by(
            "simplify unfold",
            &["simplify unfold"],
            |f, m| steps::simplify(f, m, "unfold"),
            |i, _| systems::simplify(i, "unfold"),
        ),
        by(
            "simplify dead",
            &["simplify dead"],
            |f, m| steps::simplify(f, m, "dead"),
            |i, _| systems::simplify(i, "dead"),
        ),
        by(
            "simplify instantiate",
            &["simplify instantiate"],
            |f, m| steps::simplify(f, m, "instantiate"),
            |i, _| systems::simplify(i, "instantiate"),
        ),
        by(
            "equation systems, binary",
            &["form .pbes"],
            |f, m| steps::equations(f, m, "e.pbes"),
            |i, _| systems::equations(i, true),
        ),
        by(
            "equation systems, text",
            &["form .pbes.txt"],
            |f, m| steps::equations(f, m, "e.pbes.txt"),
            |i, _| systems::equations(i, false),
        ),
        by("games", &["form .pg", "form .gm"], steps::games, |i, _| systems::games(i)),
        by(
            "file .aut",
            &["form .aut"],
            |f, m| steps::convert(f, m, "s.aut"),
            |i, _| systems::convert(i, "aut"),
        ),
        by(
            "file .aut.gz",
            &["form .aut.gz"],
            |f, m| steps::convert(f, m, "s.aut.gz"),
            |i, _| systems::convert(i, "aut.gz"),
        ),
        by(
            "file .blts",
            &["form .blts"],
            |f, m| steps::convert(f, m, "s.blts"),
            |i, _| systems::convert(i, "blts"),
        ),
        by(
            "file .lts",
            &["form .lts"],
            |f, m| steps::convert(f, m, "s.lts"),
            |i, _| systems::convert(i, "lts"),
        ),
        by(
            "file .fsm",
            &["form .fsm"],
            |f, m| steps::convert(f, m, "s.fsm"),
            |i, _| systems::convert(i, "fsm"),
        ),
        by(
            "quotient strong",
            &["reduce=strong"],
            |f, m| steps::quotient(f, m, "strong", true),
            |i, _| systems::quotient(i, "strong", true),
        ),
        by(
            "quotient branching",
            &["reduce=branching"],
            |f, m| steps::quotient(f, m, "branching", true),
            |i, _| systems::quotient(i, "branching", true),
        ),
        by(
            "quotient divergence-branching",
            &["reduce=divergence-branching"],
            |f, m| steps::quotient(f, m, "divergence-branching", true),
            |i, _| systems::quotient(i, "divergence-branching", true),
        ),
        by(
            "quotient divergence-weak",
            &["reduce=divergence-weak"],
            |f, m| steps::quotient(f, m, "divergence-weak", true),
            |i, _| systems::quotient(i, "divergence-weak", true),
        ),
        by(
            "quotient weak",
            &["reduce=weak"],
            |f, m| steps::quotient(f, m, "weak", true),
            |i, _| systems::quotient(i, "weak", true),
        ),
        by(
            "quotient trace",
            &["reduce=trace"],
            |f, m| steps::quotient(f, m, "trace", false),
            |i, _| systems::quotient(i, "trace", false),
        ),
        by(
            "quotient weak-trace",
            &["reduce=weak-trace"],
            |f, m| steps::quotient(f, m, "weak-trace", false),
            |i, _| systems::quotient(i, "weak-trace", false),
        ),
        by(
            "preorders of a quotient",
            &[
                "preorder=trace",
                "preorder=weak-trace",
                "preorder=simulation",
                "preorder=ready-simulation",
                "preorder=coupled-simulation",
                "preorder=failures",
                "preorder=weak-failures",
                "preorder=failures-divergences",
                "preorder=impossible-futures",
            ],
            steps::preorders,
            |i, _| systems::preorders(i),
        ),
        by("expanded and formatted", &["form .mcrl2"], steps::expand, |i, _| systems::expand(i)),
    ]
}

/// Returns the routes with inputs other than mCRL2; their generators are next to their tests.
fn of_others() -> Vec<Row> {
    vec![
        elsewhere(
            "proofs against instances",
            &["form .cub", "model=tso", "to=cubicle"],
            &[
                ("src/prove/tests/random.rs", "random_systems_agree_with_the_machine"),
                (
                    "src/prove/tests/grammar.rs",
                    "prover_verifier_and_machine_give_systems_of_the_whole_grammar_one_meaning",
                ),
                ("src/prove/tests/grammar.rs", "every_production_is_generated"),
                ("src/cubicle/tests/random.rs", "machine_and_oracle_reach_the_same"),
                (
                    "src/cubicle/tests/random.rs",
                    "machine_and_oracle_reach_the_same_of_systems_of_the_grammar",
                ),
            ],
        ),
        elsewhere(
            "Murphi models against their groups",
            &["form .m", "deadlocks=stuttering", "deadlocks=stuck", "deadlocks=off"],
            &[
                ("src/murphi/tests/groups.rs", "small_models_agree"),
                ("src/murphi/tests/semantics.rs", "deadlocks_have_three_definitions"),
            ],
        ),
        elsewhere(
            "threads of any number against instances",
            &["option threads-of", "form .asm", "initial=zero", "initial=any"],
            &[("src/cubicle/tests/words.rs", "programs_with_words_at_their_bounds")],
        ),
        elsewhere(
            "machine against axioms",
            &["by=machine", "by=axioms", "form .litmus", "model=sc", "model=pso"],
            &[
                ("src/litmus/tests/units/main.rs", "machines_and_axioms_agree_on_x86"),
                ("src/litmus/tests/units/words.rs", "machine_and_axioms_agree_on_words"),
                ("src/program/axiomatic/tests.rs", "axioms_and_machines_agree_on_random_programs"),
            ],
        ),
        elsewhere(
            "executions against interleavings",
            &["form .litmus"],
            &[
                ("src/litmus/tests/units/grammar.rs", "interleavings_and_executions_agree"),
                ("src/litmus/tests/units/grammar.rs", "every_form_is_generated"),
            ],
        ),
        elsewhere(
            "programs as mCRL2 text",
            &["to=mcrl2"],
            &[("tests/expansion.rs", "random_programs_are_bisimilar")],
        ),
        elsewhere(
            "robustness against both models",
            &["option fences"],
            &[("src/safety/tests/robust.rs", "the_monitor_is_right_on_random_programs")],
        ),
        elsewhere(
            "conform against litmus",
            &["option against"],
            &[
                ("src/conform/tests/units.rs", "axioms_and_serial_views_judge_alike"),
                ("tests/conform.rs", "litmus_tests_are_looked_up_in_what_a_machine_does"),
                (
                    "tests/conform_random.rs",
                    "answers_are_those_of_a_simulation_and_errors_have_places",
                ),
            ],
        ),
        elsewhere(
            "readers of traces",
            &[
                "from=axe",
                "from=csv",
                "from=json",
                "from=tracegen",
                "from=spike",
                "from=rvfi",
                "from=whisper",
                "from=gem5",
                "from=litmus7",
            ],
            &[
                ("src/traces/tests/readers.rs", "damaged_logs"),
                ("tests/traces.rs", "examples_have_their_answers"),
            ],
        ),
        elsewhere(
            "programs that log their accesses",
            &["language=c", "language=x86", "language=riscv"],
            &[("tests/traces.rs", "generated_programs_repeat")],
        ),
        elsewhere(
            "boolean equation systems",
            &["form .bes"],
            &[
                ("src/game/tests/bes.rs", "systems_have_their_solutions"),
                (
                    "src/game/tests/bes_random.rs",
                    "random_systems_have_the_solutions_of_their_definition",
                ),
            ],
        ),
        elsewhere(
            "assignments of states to processes",
            &["option cluster"],
            &[("src/cluster/tests.rs", "all_processes_count_what_one_does")],
        ),
    ]
}
