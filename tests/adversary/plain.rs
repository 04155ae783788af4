//! A route on a specification and formulas, compared with the main path: one thread, one process,
//! the explicit engine, no reduction.

use super::driver::Tally;
use super::formula::{formula, quantity};
use super::inside::{Inside, Settings, budget, read};
use super::process::{Kind, Specification, specification};
use super::refused;
use super::runs::{Answer, Counts, Folder, Run};
use crate::agreement;
use crate::support::random_text::Kind as Formulas;
use crate::support::tape::Tape;
use mu_check::base::{Diagnostic, SourceId, Stage};
use mu_check::compile::{Compiled, Confluence};
use mu_check::formula::typecheck::check_formula;
use mu_check::process::linearise;
use mu_check::syntax;

/// A route to answers.
pub enum Route {
    /// By options of `check`, and of `explore` unless they are `-`.
    Options(&'static str, &'static str),
    /// By several runs of the program, and by the same stages within this process if that is
    /// possible.
    Steps(
        fn(&Folder, &Main) -> Result<Found, String>,
        Option<fn(&Inside, &Folder) -> Result<Found, String>>,
    ),
}

impl Route {
    /// True if it compares counts alone.
    pub fn only_counts(&self) -> bool {
        matches!(self, Route::Options("-", _))
    }
    /// Returns the answers within this process; none if it has no such form.
    pub fn answers_within(
        &self,
        inside: &Inside,
        folder: &Folder,
    ) -> Option<Result<Found, String>> {
        match self {
            Route::Options(check, explore) => Some(inside.by_options(check, explore)),
            Route::Steps(_, within) => within.map(|run| run(inside, folder)),
        }
    }
    /// Returns the answers of the program.
    pub fn by_program(&self, main: &Main, folder: &Folder) -> Result<Found, String> {
        folder.write("m.mcrl2", &main.specification.text);
        main.formulas
            .iter()
            .enumerate()
            .for_each(|(i, text)| folder.write(&format!("f{i}.mcf"), text));
        match self {
            Route::Options(check, explore) => options(folder, main, check, explore),
            Route::Steps(run, _) => run(folder, main),
        }
    }
}

/// A case with the answers of the main path.
pub struct Main {
    pub seed: u64,
    pub specification: Specification,
    pub formulas: Vec<String>,
    /// The tapes of the formulas.
    pub tapes: Vec<usize>,
    pub kinds: Vec<Formulas>,
    pub answers: Vec<Answer>,
    pub counts: Counts,
}

impl Main {
    /// Returns the files of the formulas.
    pub fn files(&self) -> String {
        (0..self.formulas.len()).map(|i| format!("f{i}.mcf ")).collect()
    }
}

/// Answers of a route; missing ones are not compared.
#[derive(Default)]
pub struct Found {
    pub answers: Vec<Option<Answer>>,
    pub counts: Option<Counts>,
    /// Further comparisons that were made and found no difference.
    pub more: u64,
}

impl Found {
    /// Returns the answers of a run, and no counts.
    ///
    /// # Errors
    /// Those of the run.
    pub fn from_check(run: &Run, main: &Main) -> Result<Self, String> {
        let answers = run.answers(main.formulas.len())?;
        Ok(Self { answers: answers.into_iter().map(Some).collect(), ..Self::default() })
    }
}

/// A difference, and the number of the formula that shows it.
#[derive(Debug)]
pub struct Difference {
    pub text: String,
    pub formula: Option<usize>,
}

/// Compares the answers of a route with the main path.
///
/// # Errors
/// The first difference.
pub fn judge(
    name: &str,
    main: &Main,
    found: Result<Found, String>,
    tally: &mut Tally,
) -> Result<(), Difference> {
    let said = |what: String, formula: Option<usize>| {
        let shown =
            formula.map_or(String::new(), |i| format!("--- f{i}.mcf\n{}\n", main.formulas[i]));
        Difference {
            text: format!("{name}: {what}\n{shown}--- m.mcrl2\n{}", main.specification.text),
            formula,
        }
    };
    let found = found.map_err(|e| said(e, None))?;
    tally.count("more", found.more);
    if let Some(counts) = found.counts {
        // States, transitions and deadlocks.
        tally.count("counts", 3);
        if counts != main.counts {
            return Err(said(format!("counts: {counts:?}, main path {:?}", main.counts), None));
        }
    }
    for (i, (answer, main_answer)) in found.answers.iter().zip(&main.answers).enumerate() {
        match answer {
            Some(a @ (Answer::True | Answer::False)) => {
                tally.count(if *main_answer == Answer::True { "true" } else { "false" }, 1);
                if a != main_answer {
                    return Err(said(
                        format!("verdict: {a:?}, main path {main_answer:?}"),
                        Some(i),
                    ));
                }
            }
            Some(Answer::Refused(why)) if !may_refuse(why) => {
                return Err(said(format!("refused: {why}"), Some(i)));
            }
            Some(Answer::Refused(_)) => tally.open("refused", 1),
            Some(Answer::Open(_)) => tally.open("open", 1),
            None => {}
        }
    }
    Ok(())
}

/// True if a formula may be rejected on a file without declarations, but not on the model; if a
/// condition has no value that the main path does not evaluate; or if confluent steps form a cycle,
/// which several processes reject.
fn may_refuse(why: &str) -> bool {
    [
        "is not declared",
        "has no action",
        "no action",
        "cannot be stored",
        "checkpoint",
        "declar",
        "sort",
        "ambiguous",
        "neither true nor false",
        "confluent tau steps form a cycle",
    ]
    .iter()
    .any(|w| why.contains(w))
}

fn options(folder: &Folder, main: &Main, check: &str, explore: &str) -> Result<Found, String> {
    let mut found = Found::default();
    if explore != "-" {
        found.counts = folder
            .run(&format!("explore m.mcrl2 --timeout 20 {explore}"))
            .counts()
            .map_err(|e| format!("explore: {e}"))?;
    }
    if check != "-" {
        let run = folder.run(&format!("check m.mcrl2 {}--timeout 20 {check}", main.files()));
        found.answers = Found::from_check(&run, main).map_err(|e| format!("check: {e}"))?.answers;
    }
    Ok(found)
}

/// The stages of `check` reject unsupported constructs by name, with each engine.
pub fn rejections_within(name: &str, tape: &mut Tape, tally: &mut Tally) -> Result<(), String> {
    let (text, formula) = refused::unsupported_case(tape);
    let said =
        |what: String| Err(format!("{name}: {what}\n--- f0.mcf\n{formula}\n--- m.mcrl2\n{text}"));
    let mut refuses = |d: Diagnostic| {
        tally.count("refused", 1);
        if d.stage == Stage::Internal || d.message.is_empty() {
            said(format!("internal error: {}", d.message))
        } else {
            Ok(())
        }
    };
    let model = read(&text)
        .and_then(|spec| linearise::linearise(&spec, &linearise::LineariserOptions::default()))
        .and_then(|process| Compiled::new(process, &Confluence::None));
    let model = match model {
        Ok(model) => model,
        Err(d) => return refuses(d),
    };
    let process = model.process();
    let typed = syntax::parse_formula(SourceId::FIRST, &formula)
        .and_then(|tree| check_formula(&tree, &process.data, &process.actions));
    let typed = match typed {
        Ok(typed) => typed,
        Err(d) => return refuses(d),
    };
    for options in [
        "--threads 1",
        "--threads 7",
        "--engine symbolic",
        "--engine auto",
        "--threads 1 --without symmetry,quotient,por",
    ] {
        match Settings::of(options).check((&model, &model), &typed, &budget(None, 4000))? {
            Answer::Refused(_) => tally.count("refused", 1),
            other => return said(format!("{other:?} with {options}")),
        }
    }
    Ok(())
}

/// Every route rejects unsupported constructs by name.
pub fn rejections(
    name: &str,
    tape: &mut Tape,
    folder: &Folder,
    tally: &mut Tally,
) -> Result<(), String> {
    let (text, formula) = refused::unsupported_case(tape);
    folder.write("m.mcrl2", &text);
    folder.write("f0.mcf", &formula);
    for options in [
        "--threads 1",
        "--threads 7",
        "--engine symbolic",
        "--engine auto",
        "--processes 2",
        "--confluence auto",
        "--without symmetry,quotient,por",
    ] {
        let run = folder.run(&format!("check m.mcrl2 f0.mcf --timeout 20 {options}"));
        tally.count("refused", 1);
        if run.code != 2 || run.stderr.is_empty() {
            return Err(format!(
                "{name}: exit {} with {options}: {}\n--- f0.mcf\n{formula}\n--- m.mcrl2\n{text}",
                run.code, run.stderr
            ));
        }
    }
    for command in ["pbes m.mcrl2 f0.mcf", "check m.mcrl2 f0.mcf --checkpoint ck"] {
        let run = folder.run(command);
        tally.count("refused", 1);
        if run.code != 2 {
            return Err(format!(
                "{name}: exit {} of {command}: {}\n--- f0.mcf\n{formula}\n--- m.mcrl2\n{text}",
                run.code, run.stderr
            ));
        }
    }
    Ok(())
}

/// Values of formulas on systems with chance: by other numbers of threads, on the quotient.
pub fn quantities(
    name: &str,
    seed: u64,
    tapes: &mut [Tape],
    folder: &Folder,
    tally: &mut Tally,
) -> Result<(), String> {
    let made = specification(&mut tapes[0], Kind::Chance);
    folder.write("m.mcrl2", &made.text);
    let texts: Vec<String> =
        tapes[1..].iter_mut().map(|tape| quantity(tape, &made.mappings, made.bound)).collect();
    texts.iter().enumerate().for_each(|(i, text)| folder.write(&format!("f{i}.mcf"), text));
    let files: String = (0..texts.len()).map(|i| format!("f{i}.mcf ")).collect();
    let said = |what: String| {
        format!("{name}: {what}\n--- formulas\n{}\n--- m.mcrl2\n{}", texts.join("\n"), made.text)
    };
    let value = |run: &Run, i: usize| {
        let result = &run.json["results"][i];
        let verdict =
            result["verdict"].as_str().filter(|v| *v != "unknown" && result["error"].is_null());
        verdict.map(|v| format!("{v} {}", result["value"]))
    };
    let verdicts_of = |model: &str, options: &str| {
        let run =
            folder.run(&format!("check {model} {files}{options} --max-states 500 --timeout 10"));
        if run.code == 4 || run.code < 0 {
            Err(said(format!("exit {} of {model} {options}: {}", run.code, run.stderr)))
        } else {
            Ok(run)
        }
    };
    let main = verdicts_of("m.mcrl2", "--threads 1")?;
    if main.code == 2 && main.json["results"].is_null() {
        tally.open("refused", 1);
        return Ok(());
    }
    let threads = ["2", "7"][(seed % 2) as usize];
    let mut others = vec![("threads", verdicts_of("m.mcrl2", &format!("--threads {threads}"))?)];
    let reduced =
        folder.run("reduce m.mcrl2 -e probabilistic -o q.aut --max-states 500 --timeout 10");
    if reduced.code == 4 {
        return Err(said(format!("exit 4 of reduce: {}", reduced.stderr)));
    }
    if reduced.code == 0 {
        others.push(("quotient", verdicts_of("q.aut", "--threads 1")?));
    }
    for (what, other) in &others {
        for i in 0..texts.len() {
            if let (Some(a), Some(b)) = (value(&main, i), value(other, i)) {
                tally.count(what, 1);
                if a != b {
                    return Err(said(format!("{what}: value {b}, main path {a}, formula {i}")));
                }
            }
        }
    }
    Ok(())
}

/// Returns the routes of `agreement`, within this process, on specifications of these generators.
pub fn answers_within(
    name: &str,
    seed: u64,
    tapes: &mut [Tape],
    tally: &mut Tally,
) -> Result<(), String> {
    let made = specification(&mut tapes[0], Kind::Usual);
    let Some(rules) = &made.rules else {
        tally.open("no rules", 1);
        return Ok(());
    };
    let said = |what: String| format!("{name}: {what}\n--- m.mcrl2\n{}", made.text);
    // What an oracle does not take is no difference.
    let oracle = |e: &str| {
        ["rules: ", "direct evaluation: ", "the text for the rules: "]
            .iter()
            .any(|o| e.starts_with(o))
    };
    let mut inner = agreement::Tally::default();
    let found = agreement::subject(seed, &(made.text.clone(), rules.clone()), &mut inner);
    let subject = match found {
        Ok(Some(subject)) => subject,
        Ok(None) => {
            tally.open("too large", 1);
            return Ok(());
        }
        Err(e) if oracle(&e) => {
            tally.open("rules", 1);
            return Ok(());
        }
        // A sum or condition that has no value is refused by every route.
        Err(e)
            if e.contains("explore: ") || e.contains("compile: ") || e.contains("lineariser: ") =>
        {
            tally.open("refused", 1);
            return Ok(());
        }
        Err(e) => return Err(said(e)),
    };
    for (i, tape) in tapes[1..].iter_mut().enumerate() {
        let kind = if i % 3 == 2 { Formulas::Weak } else { Formulas::Any };
        let text = formula(tape, kind, &made.mappings, made.bound);
        match agreement::verdicts(seed + i as u64, &subject, &text, kind, &mut inner) {
            Ok(()) => {}
            Err(e) if oracle(&e) => tally.open("direct evaluation", 1),
            Err(e) => return Err(said(format!("{e}\n--- formula\n{text}"))),
        }
    }
    tally.count("within", inner.comparisons);
    Ok(())
}
