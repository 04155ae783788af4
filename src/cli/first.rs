//! The first hour: `new` writes a project to begin with, `eval` evaluates a data expression, `-D
//! help` lists a model's parameters.
//!
//! Invariant: `new` touches no file that is there.

use super::args::{EvalArgs, Format, NewArgs, Project};
use super::files::write_text;
use super::output::{self, print};
use super::pipeline::{Session, file_error};
use mu_base::similar::similar_names;
use mu_base::{Diagnostic, SourceMap, Stage};
use mu_data::engine::{Engine, Program};
use mu_data::expr::DataSpec;
use mu_data::print::expression;
use mu_data::typecheck::check_expression;
use mu_syntax::template::Param;
use serde_json::{Value, json};
use std::path::Path;

macro_rules! file {
    ($folder:literal, $name:literal) => {
        ($name, include_str!(concat!("projects/", $folder, "/", $name)))
    };
}

const CPU: &[(&str, &str)] = &[
    file!("cpu", "cpu.mcrl2"),
    file!("cpu", "own_stores.mcf"),
    file!("cpu", "no_invention.mcf"),
    file!("cpu", "store_buffering.mcf"),
    file!("cpu", "README.md"),
];
const PROTOCOL: &[(&str, &str)] = &[
    file!("protocol", "protocol.mcrl2"),
    file!("protocol", "each_once.mcf"),
    file!("protocol", "none_lost.mcf"),
    file!("protocol", "no_deadlock.mcf"),
    file!("protocol", "README.md"),
];
const MUTEX: &[(&str, &str)] = &[
    file!("mutex", "mutex.mcrl2"),
    file!("mutex", "mutual_exclusion.mcf"),
    file!("mutex", "no_deadlock.mcf"),
    file!("mutex", "can_enter.mcf"),
    file!("mutex", "README.md"),
];

/// Writes a project.
pub(super) fn new(session: &Session, args: &NewArgs) -> Result<u8, Diagnostic> {
    let files = match args.project {
        Project::Cpu => CPU,
        Project::Protocol => PROTOCOL,
        Project::Mutex => MUTEX,
    };
    let folder = &args.folder;
    mu_base::host::fs::create_dir_all(folder)
        .map_err(|e| file_error("cannot make the folder", folder, &e))?;
    let mut there =
        mu_base::host::read_dir(folder).map_err(|e| file_error("cannot read", folder, &e))?;
    if there.next().is_some() {
        let message = format!("the folder `{}` is not empty", folder.display());
        return Err(Diagnostic::new(Stage::File, message).note("name one that is not there yet"));
    }
    for (name, text) in files {
        write_text(&folder.join(name), text)?;
    }
    let formulas: Vec<&str> = files.iter().map(|f| f.0).filter(|n| n.ends_with(".mcf")).collect();
    let command = format!("mu-check {} {}", files[0].0, formulas.join(" "));
    match session.common.format {
        Format::Json => output::object(json!({
            "folder": folder.display().to_string(),
            "files": files.iter().map(|f| f.0).collect::<Vec<_>>(),
            "command": command,
        }))?,
        Format::Text => {
            let list: String = files.iter().map(|f| format!("  {}\n", f.0)).collect();
            print(&format!("{}:\n{list}next: cd {0} && {command}\n", folder.display()))?;
        }
    }
    Ok(0)
}

/// Evaluates an expression.
pub(super) fn eval(session: &mut Session, args: &EvalArgs) -> Result<u8, Diagnostic> {
    let mut data = match &args.model {
        Some(path) => session.specification(path)?.data,
        None => DataSpec::default(),
    };
    output::stage("evaluating");
    let source = session.sources.add("EXPRESSION", args.expression.clone());
    let tree = mu_syntax::parse_data(source, &args.expression)?;
    let typed = check_expression(&tree, &mut data, None)?;
    // The program has operations of its own, which values may use.
    let program = Program::compile(&data)?;
    let mut engine = Engine::new(program.clone()).limited(&session.budget);
    let value = engine.from_expr(&typed)?;
    let value = engine.to_expr_at(&value, typed.sort);
    let (value, sort) =
        (expression(program.signature(), &value), data.signature.sorts.text(typed.sort));
    match session.common.format {
        Format::Json => {
            output::object(json!({ "expression": args.expression, "value": value, "sort": sort }))?
        }
        Format::Text if session.common.verbose > 0 => print(&format!("{value}: {sort}\n"))?,
        Format::Text => print(&format!("{value}\n"))?,
    }
    Ok(0)
}

/// Lists the parameters of a specification: what `-D help` asks for.
pub(super) fn parameters(session: &mut Session, model: &Path) -> Result<u8, Diagnostic> {
    session.common.define.clear();
    let params = session.expand(model)?.params;
    match session.common.format {
        Format::Json => output::object(json!({ "declared": declared(&params) }))?,
        Format::Text if params.is_empty() => {
            print(&format!("{} has no parameters\n", model.display()))?
        }
        Format::Text => print(&params.iter().map(|p| format!("{p}\n")).collect::<String>())?,
    }
    Ok(0)
}

/// The declarations of parameters as JSON.
pub(super) fn declared(params: &[Param]) -> Value {
    let one = |p: &Param| {
        json!({
            "name": p.name,
            "sort": p.sort.word(),
            "default": p.default.to_string(),
            "value": p.value.to_string(),
            "constraint": p.constraint,
            "help": p.doc,
        })
    };
    params.iter().map(one).collect()
}

/// The refusal of a word that looks like a mistyped command: no file, no option, and near a
/// command's name.
pub(super) fn mistyped(words: &[String], commands: &[String]) -> Option<Diagnostic> {
    let word = words.get(1).filter(|w| !w.starts_with('-') && !w.contains(['.', '/']))?;
    if commands.contains(word) || mu_base::host::fs::exists(word).unwrap_or(false) {
        return None;
    }
    let near = similar_names(word, commands.iter().map(String::as_str));
    let command = near.first()?;
    let message = format!("there is no command and no file `{word}`");
    Some(Diagnostic::new(Stage::Usage, message).note(format!("did you mean `mu-check {command}`?")))
}

/// Prints a refusal that comes before there is a run.
pub(super) fn refused(diagnostic: &Diagnostic, json: bool) -> u8 {
    let sources = SourceMap::new();
    eprint!("{}", diagnostic.render(&sources));
    if json {
        output::error(diagnostic, &sources);
    }
    diagnostic.exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_guessed() {
        let commands: Vec<String> = ["check", "explore", "eval", "new"].map(String::from).to_vec();
        let guess = |word: &str| {
            mistyped(&["mu-check".into(), word.into()], &commands).map(|d| d.notes.join(""))
        };
        assert_eq!(guess("explor"), Some("did you mean `mu-check explore`?".into()));
        assert_eq!(guess("chekc"), Some("did you mean `mu-check check`?".into()));
        for word in ["model", "explore", "explor.mcrl2", "./explor", "-explor", "no"] {
            assert_eq!(guess(word), None, "{word}");
        }
    }
}
