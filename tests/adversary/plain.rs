//! A route on a specification and formulas, compared with the main path: one thread, one process,
//! the explicit engine, no reduction.

use super::driver::Tally;
use super::formula::{formula, quantity};
use super::process::{Kind, Specification, specification};
use super::refused;
use super::runs::{Answer, Counts, Folder, Run};
use crate::agreement;
use crate::support::random_text::Kind as Formulas;
use crate::support::tape::Tape;

/// Larger systems are left out.
const MOST_STATES: u64 = 1500;
/// The main path.
const MAIN: &str = "--threads 1 --engine explicit --timeout 20";

/// How a route gets to its answers.
pub enum Route {
    /// By options of `check`, and of `explore` unless they are `-`.
    Options(&'static str, &'static str),
    /// By several runs.
    Steps(fn(&Folder, &Main) -> Result<Found, String>),
}

/// A case with what the main path answers.
pub struct Main {
    pub seed: u64,
    pub specification: Specification,
    pub formulas: Vec<String>,
    pub kinds: Vec<Formulas>,
    pub answers: Vec<Answer>,
    pub counts: Counts,
}

impl Main {
    /// The files of the formulas.
    pub fn files(&self) -> String {
        (0..self.formulas.len()).map(|i| format!("f{i}.mcf ")).collect()
    }
}

/// What a route answers; where it has no answer, nothing is compared.
#[derive(Default)]
pub struct Found {
    pub answers: Vec<Option<Answer>>,
    pub counts: Option<Counts>,
    /// Further comparisons that were made and found no difference.
    pub more: u64,
}

impl Found {
    /// The answers of a run, and no counts.
    ///
    /// # Errors
    /// Those of the run.
    pub fn checked(run: &Run, main: &Main) -> Result<Self, String> {
        let answers = run.answers(main.formulas.len())?;
        Ok(Self { answers: answers.into_iter().map(Some).collect(), ..Self::default() })
    }
}

/// Makes the files of a case and asks the main path; none if the system is too large or refused.
fn subject(seed: u64, tapes: &mut [Tape], folder: &Folder, tally: &mut Tally) -> Result<Option<Main>, String> {
    let kind = if seed % 12 == 11 { Kind::Timed } else { Kind::Usual };
    let made = specification(&mut tapes[0], kind);
    folder.write("m.mcrl2", &made.text);
    let kinds: Vec<Formulas> = (1..tapes.len()).map(|i| if i % 3 == 0 { Formulas::Weak } else { Formulas::Any }).collect();
    let texts = tapes[1..].iter_mut().zip(&kinds).map(|(tape, kind)| formula(tape, *kind, &made.mappings, made.bound));
    let formulas: Vec<String> = texts.collect();
    formulas.iter().enumerate().for_each(|(i, text)| folder.write(&format!("f{i}.mcf"), text));
    let explored = folder.run(&format!("explore m.mcrl2 {MAIN} --without symmetry,por --max-states {MOST_STATES}"));
    let counts = match explored.counts() {
        Ok(Some(counts)) => counts,
        Ok(None) => {
            tally.open("too large", 1);
            return Ok(None);
        }
        Err(_) if explored.code == 2 => {
            tally.open("refused specifications", 1);
            return Ok(None);
        }
        Err(e) => return Err(format!("main path, explore: {e}")),
    };
    let mut main = Main { seed, specification: made, formulas, kinds, answers: Vec::new(), counts };
    let run = folder.run(&format!("check m.mcrl2 {}{MAIN} --without symmetry,quotient,por", main.files()));
    main.answers = run.answers(main.formulas.len()).map_err(|e| format!("main path, check: {e}"))?;
    Ok(Some(main))
}

/// Compares one case by a route.
pub fn compare(name: &str, route: &Route, seed: u64, tapes: &mut [Tape], folder: &Folder, tally: &mut Tally) -> Result<(), String> {
    let main = subject(seed, tapes, folder, tally).map_err(|e| {
        let text = std::fs::read_to_string(folder.path().join("m.mcrl2")).unwrap_or_default();
        format!("{e}\n--- m.mcrl2\n{text}")
    })?;
    let Some(main) = main else { return Ok(()) };
    let found = match route {
        Route::Options(check, explore) => options(folder, &main, check, explore),
        Route::Steps(steps) => steps(folder, &main),
    };
    let said = |what: String, formula: Option<usize>| {
        let formula = formula.map_or(String::new(), |i| format!("--- f{i}.mcf\n{}\n", main.formulas[i]));
        format!("{name}: {what}\n{formula}--- m.mcrl2\n{}", main.specification.text)
    };
    let found = found.map_err(|e| said(e, None))?;
    tally.count("more", found.more);
    if let Some(counts) = found.counts {
        tally.count("counts", 1);
        if counts != main.counts {
            return Err(said(format!("counts: {counts:?}, main path {:?}", main.counts), None));
        }
    }
    for (i, (answer, main_answer)) in found.answers.iter().zip(&main.answers).enumerate() {
        match (answer, main_answer) {
            (Some(a @ (Answer::True | Answer::False)), m @ (Answer::True | Answer::False)) => {
                tally.count(if *m == Answer::True { "true" } else { "false" }, 1);
                if a != m {
                    return Err(said(format!("verdict: {a:?}, main path {m:?}"), Some(i)));
                }
            }
            (Some(Answer::Refused(why)), Answer::True | Answer::False) if !may_refuse(why) => {
                return Err(said(format!("refused: {why}"), Some(i)));
            }
            (Some(Answer::Refused(_)), _) => tally.open("refused", 1),
            (Some(Answer::Open(_)), _) | (_, Answer::Open(_)) => tally.open("open", 1),
            (None, _) | (_, Answer::Refused(_)) => {}
        }
    }
    Ok(())
}

/// Whether a file without declarations gives a reason to refuse a formula that the model does not.
fn may_refuse(why: &str) -> bool {
    ["is not declared", "has no action", "no action", "cannot be stored", "checkpoint", "declar", "sort", "ambiguous"]
        .iter()
        .any(|w| why.contains(w))
}

fn options(folder: &Folder, main: &Main, check: &str, explore: &str) -> Result<Found, String> {
    let mut found = Found::default();
    if explore != "-" {
        found.counts = folder.run(&format!("explore m.mcrl2 --timeout 20 {explore}")).counts().map_err(|e| format!("explore: {e}"))?;
    }
    if check != "-" {
        let run = folder.run(&format!("check m.mcrl2 {}--timeout 20 {check}", main.files()));
        found.answers = Found::checked(&run, main).map_err(|e| format!("check: {e}"))?.answers;
    }
    Ok(found)
}

/// Every route refuses what is refused by name.
pub fn refused(name: &str, tape: &mut Tape, folder: &Folder, tally: &mut Tally) -> Result<(), String> {
    let (text, formula) = refused::refused(tape);
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
            return Err(format!("{name}: exit {} with {options}: {}\n--- f0.mcf\n{formula}\n--- m.mcrl2\n{text}", run.code, run.stderr));
        }
    }
    for command in ["pbes m.mcrl2 f0.mcf", "check m.mcrl2 f0.mcf --checkpoint ck"] {
        let run = folder.run(command);
        tally.count("refused", 1);
        if run.code != 2 {
            return Err(format!("{name}: exit {} of {command}: {}\n--- f0.mcf\n{formula}\n--- m.mcrl2\n{text}", run.code, run.stderr));
        }
    }
    Ok(())
}

/// Values of formulas on systems with chance: by other numbers of threads, on the quotient.
pub fn quantities(name: &str, seed: u64, tapes: &mut [Tape], folder: &Folder, tally: &mut Tally) -> Result<(), String> {
    let made = specification(&mut tapes[0], Kind::Chance);
    folder.write("m.mcrl2", &made.text);
    let texts: Vec<String> = tapes[1..4].iter_mut().map(|tape| quantity(tape, &made.mappings, made.bound)).collect();
    texts.iter().enumerate().for_each(|(i, text)| folder.write(&format!("f{i}.mcf"), text));
    let said = |what: String| format!("{name}: {what}\n--- formulas\n{}\n--- m.mcrl2\n{}", texts.join("\n"), made.text);
    let value = |run: &Run, i: usize| {
        let result = &run.json["results"][i];
        let verdict = result["verdict"].as_str().filter(|v| *v != "unknown" && result["error"].is_null());
        verdict.map(|v| format!("{v} {}", result["value"]))
    };
    let asked = |model: &str, options: &str| {
        let run = folder.run(&format!("check {model} f0.mcf f1.mcf f2.mcf {options} --max-states 500 --timeout 10"));
        if run.code == 4 || run.code < 0 { Err(said(format!("exit {} of {model} {options}: {}", run.code, run.stderr))) } else { Ok(run) }
    };
    let main = asked("m.mcrl2", "--threads 1")?;
    if main.code == 2 && main.json["results"].is_null() {
        tally.open("refused", 1);
        return Ok(());
    }
    let threads = ["2", "7"][(seed % 2) as usize];
    let mut others = vec![("threads", asked("m.mcrl2", &format!("--threads {threads}"))?)];
    let reduced = folder.run("reduce m.mcrl2 -e probabilistic -o q.aut --max-states 500 --timeout 10");
    if reduced.code == 4 {
        return Err(said(format!("exit 4 of reduce: {}", reduced.stderr)));
    }
    if reduced.code == 0 {
        others.push(("quotient", asked("q.aut", "--threads 1")?));
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

/// The routes of `agreement`, within this process, on specifications of these generators.
pub fn within(name: &str, seed: u64, tapes: &mut [Tape], tally: &mut Tally) -> Result<(), String> {
    let made = specification(&mut tapes[0], Kind::Usual);
    let Some(rules) = &made.rules else {
        tally.open("no rules", 1);
        return Ok(());
    };
    let said = |what: String| format!("{name}: {what}\n--- m.mcrl2\n{}", made.text);
    // What an oracle does not take is no difference.
    let oracle = |e: &str| ["rules: ", "direct evaluation: ", "the text for the rules: "].iter().any(|o| e.starts_with(o));
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
        Err(e) if e.contains("explore: ") || e.contains("compile: ") || e.contains("lineariser: ") => {
            tally.open("refused", 1);
            return Ok(());
        }
        Err(e) => return Err(said(e)),
    };
    for (i, tape) in tapes[1..7].iter_mut().enumerate() {
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
