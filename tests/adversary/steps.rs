//! Routes of several runs: files written and read again, stopped and resumed searches.

use super::plain::{Found, Main};
use super::runs::{Answer, Folder, Run};
use crate::support::random_text::Kind as Formulas;
use mu_check::lts::preorder::Preorder;

/// Fails unless a run ended well.
fn expect_success(what: &str, run: &Run) -> Result<(), String> {
    if run.code == 0 { Ok(()) } else { Err(format!("{what}: exit {}: {}", run.code, run.stderr)) }
}

/// Computes the answers on a search with a limit that writes a checkpoint, and one that resumes it.
fn stopped_and_resumed(
    folder: &Folder,
    main: &Main,
    first: &str,
    second: &str,
) -> Result<Found, String> {
    let mut found = Found::default();
    if main.counts.0 < 4 {
        return Ok(found);
    }
    let limit = 1 + main.seed % (main.counts.0 / 2).max(1);
    folder.remove("kept");
    folder.remove("kept2");
    let stopped =
        folder.run(&format!("explore m.mcrl2 --checkpoint kept --max-states {limit} {first}"));
    if stopped.code == 4 {
        return Err(format!("explore --checkpoint: exit 4: {}", stopped.stderr));
    }
    if stopped.code == 3 && folder.path().join("kept").exists() {
        let resumed = folder.run(&format!("explore m.mcrl2 --resume kept --timeout 20 {second}"));
        found.counts = resumed.counts().map_err(|e| format!("explore --resume: {e}"))?;
    }
    // A formula that is given twice has two searches.
    let twice = usize::from(main.seed.is_multiple_of(2) && !main.formulas.is_empty());
    let files = format!("{}{}", ["", "f0.mcf "][twice], main.files());
    let verdicts_of = |run: &Run| {
        let mut answers = run.answers(main.formulas.len() + twice)?;
        if twice == 1 && answers.remove(0) != answers[0] && run.code != 3 {
            return Err(format!("a formula that is given twice has two answers: {}", run.json));
        }
        Ok(answers.into_iter().map(Some).collect::<Vec<_>>())
    };
    let stopped = folder
        .run(&format!("check m.mcrl2 {files}--checkpoint kept2 --max-states {limit} {first}"));
    let before = verdicts_of(&stopped).map_err(|e| format!("check --checkpoint: {e}"))?;
    if stopped.code == 3
        && folder.path().join("kept2").read_dir().is_ok_and(|mut d| d.next().is_some())
    {
        let resumed =
            folder.run(&format!("check m.mcrl2 {files}--resume kept2 --timeout 20 {second}"));
        found.answers = verdicts_of(&resumed).map_err(|e| format!("check --resume: {e}"))?;
    } else {
        found.answers = before;
    }
    Ok(found)
}

/// Stopped and resumed, with other numbers of threads.
pub fn stop_and_resume(folder: &Folder, main: &Main) -> Result<Found, String> {
    let threads = [["1", "1"], ["1", "2"], ["2", "1"], ["7", "2"]][(main.seed % 4) as usize];
    stopped_and_resumed(
        folder,
        main,
        &format!("--threads {}", threads[0]),
        &format!("--threads {}", threads[1]),
    )
}

/// Stopped by two processes, and resumed by one to three.
pub fn resumed_by_two(folder: &Folder, main: &Main) -> Result<Found, String> {
    let second = ["--processes 2", "--processes 3", "--processes 1"][(main.seed % 3) as usize];
    stopped_and_resumed(folder, main, "--processes 2", second)
}

/// States on disk. Only the form within the process can set how few stay in memory.
pub fn spill(folder: &Folder, _: &Main) -> Result<Found, String> {
    let run = folder.run("explore m.mcrl2 --spill . --timeout 20");
    Ok(Found {
        counts: run.counts().map_err(|e| format!("explore --spill: {e}"))?,
        ..Found::default()
    })
}

/// Formulas that take two runs each.
const FEW: usize = 3;

/// Computes the answers on the linear process with some simplifications, in the binary form and as
/// text.
pub fn simplify(folder: &Folder, main: &Main, names: &str) -> Result<Found, String> {
    let name = if main.seed.is_multiple_of(3) { "l.mcrl2" } else { "l.lps" };
    expect_success(
        "linearise",
        &folder.run(&format!("linearise m.mcrl2 --simplify {names} --out {name}")),
    )?;
    let run = folder.run(&format!("check {name} {}--timeout 20 --threads 1", main.files()));
    let mut found = Found::from_check(&run, main).map_err(|e| format!("check {name}: {e}"))?;
    let explored = folder.run(&format!("explore {name} --timeout 20"));
    let counts = explored.counts().map_err(|e| format!("explore {name}: {e}"))?;
    // `dead` merges states.
    found.counts = counts.filter(|_| !["dead", "all"].contains(&names));
    Ok(found)
}

/// Computes the answers on each formula as an equation system in a file, which is then solved.
pub fn equations(folder: &Folder, main: &Main, name: &str) -> Result<Found, String> {
    let mut found = Found::default();
    for i in 0..main.formulas.len().min(FEW) {
        let written = folder.run(&format!("pbes m.mcrl2 f{i}.mcf --out {name}"));
        if written.code == 2 {
            found.answers.push(Some(Answer::Refused(written.stderr)));
            continue;
        }
        expect_success("pbes", &written)?;
        let solved =
            folder.run(&format!("solve {name} --timeout 10 --threads {}", 1 + main.seed % 2));
        found.answers.push(match solved.solution() {
            // An unbounded quantifier that the product search does not evaluate.
            Ok(Answer::Refused(why)) if why.contains("no bound") || why.contains("too many") => {
                None
            }
            answer => Some(
                answer.map_err(|e| format!("solve {name} of f{i}: {e}\n{}", main.formulas[i]))?,
            ),
        });
    }
    Ok(found)
}

/// Computes the answers on each formula as a game in a file, which each solver solves.
pub fn games(folder: &Folder, main: &Main) -> Result<Found, String> {
    let mut found = Found::default();
    let solvers = mu_check::game::solve::solvers();
    for i in 0..main.formulas.len().min(FEW) {
        let name = if i % 2 == 0 { "g.pg" } else { "g.gm" };
        folder.remove(name);
        let checked = folder.run(&format!("check m.mcrl2 f{i}.mcf --game g.pg --timeout 10"));
        if checked.code == 4 {
            return Err(format!("check --game: exit 4: {}", checked.stderr));
        }
        if name == "g.gm" {
            let _ = std::fs::rename(folder.path().join("g.pg"), folder.path().join(name));
        }
        if checked.code > 1 || !folder.path().join(name).exists() {
            found.answers.push(None);
            continue;
        }
        let solver = solvers[(main.seed as usize + i) % solvers.len()].name();
        found.answers.push(Some(
            folder.run(&format!("solve {name} --solver {solver} --timeout 10")).solution()?,
        ));
        folder.remove(name);
    }
    Ok(found)
}

/// Computes the answers on the transition system in a file.
pub fn convert(folder: &Folder, main: &Main, name: &str) -> Result<Found, String> {
    expect_success("convert", &folder.run(&format!("convert m.mcrl2 {name}")))?;
    let run = folder.run(&format!("check {name} {}--timeout 20", main.files()));
    let mut found = Found::from_check(&run, main).map_err(|e| format!("check {name}: {e}"))?;
    found.counts = folder
        .run(&format!("explore {name} --threads 1"))
        .counts()
        .map_err(|e| format!("explore {name}: {e}"))?;
    Ok(found)
}

/// Computes the answers on the quotient by an equivalence: it is equivalent, and the formulas that
/// it preserves have their values.
pub fn quotient(
    folder: &Folder,
    main: &Main,
    equivalence: &str,
    verdicts: bool,
) -> Result<Found, String> {
    expect_success("reduce", &folder.run(&format!("reduce m.mcrl2 -e {equivalence} --out q.lts")))?;
    expect_success("compare", &folder.run(&format!("compare m.mcrl2 q.lts -e {equivalence}")))?;
    let mut found = Found { more: 1, ..Found::default() };
    if verdicts {
        let run = folder.run(&format!("check q.lts {}--timeout 20", main.files()));
        found.answers =
            Found::from_check(&run, main).map_err(|e| format!("check q.lts: {e}"))?.answers;
        for (answer, kind) in found.answers.iter_mut().zip(&main.kinds) {
            if equivalence != "strong" && *kind != Formulas::Weak {
                *answer = None;
            }
        }
    }
    Ok(found)
}

/// A strongly bisimilar system refines and is refined in every preorder.
pub fn preorders(folder: &Folder, main: &Main) -> Result<Found, String> {
    let all = Preorder::ALL.map(Preorder::name);
    expect_success("reduce", &folder.run("reduce m.mcrl2 -e strong --out q.aut"))?;
    let preorder = all[(main.seed % all.len() as u64) as usize];
    for pair in ["m.mcrl2 q.aut", "q.aut m.mcrl2"] {
        let run = folder.run(&format!("compare {pair} -p {preorder} --timeout 10"));
        if run.code != 3 {
            expect_success(&format!("compare -p {preorder}"), &run)?;
        }
    }
    Ok(Found { more: 2, ..Found::default() })
}

/// Computes the answers on the specification as `expand` prints it and `fmt` lays it out.
pub fn expand(folder: &Folder, main: &Main) -> Result<Found, String> {
    let expanded = folder.run("expand m.mcrl2");
    expect_success("expand", &expanded)?;
    let text = expanded.json["specification"].as_str().ok_or("no specification")?;
    folder.write("x.mcrl2", text);
    expect_success("fmt", &folder.run("fmt x.mcrl2"))?;
    let run = folder.run(&format!("check x.mcrl2 {}--timeout 20", main.files()));
    let mut found = Found::from_check(&run, main).map_err(|e| format!("check x.mcrl2: {e}"))?;
    found.counts =
        folder.run("explore x.mcrl2").counts().map_err(|e| format!("explore x.mcrl2: {e}"))?;
    Ok(found)
}
