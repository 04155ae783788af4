//! Simulator: a model step by step, in the terminal or by a script (`simulate`). Both user
//! interfaces send commands to one interpreter.
//!
//! In: a specification or an `.aut` file, commands. Out: with `--script`, the reply to each
//! command, as lines or as one JSON object; otherwise a screen. Invariant: without a terminal, the
//! output depends only on the model, the commands and the seed.

mod command;
mod interpreter;
pub(crate) mod requests;
#[cfg(not(target_arch = "wasm32"))]
mod screen;
#[cfg_attr(target_arch = "wasm32", path = "../../browser/terminal.rs")]
mod terminal;
#[cfg(test)]
mod tests;

use self::command::Command;
use self::interpreter::{Interpreter, Reply};
use self::terminal::in_terminal;
use crate::args::{Format, SimulateArgs};
use crate::output;
use crate::pipeline::{Session, file_error, memory};
use mu_base::files::decode;
use mu_base::{Diagnostic, SourceMap, Span, Stage, narrow};
use mu_model::Model;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::Path;

pub(crate) fn run(session: &mut Session, args: &SimulateArgs) -> Result<u8, Diagnostic> {
    session.relabel = args.relabelling.relabel()?;
    if args.requests {
        let loaded = session.load(&args.model, "none")?;
        return requests::serve(session, &*loaded.model);
    }
    if args.script.is_none() {
        if session.common.format == Format::Json {
            return Err(Diagnostic::new(
                Stage::Usage,
                "`--format json` is for the commands of a `--script`",
            ));
        }
        if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
            return Err(Diagnostic::new(Stage::Usage, "there is no terminal to simulate in").note(
                "`--script FILE` reads the commands from a file, `--script -` from standard input",
            ));
        }
    }
    memory::read_interface(session, &args.model, args.interface.as_deref())?;
    let loaded = session.load(&args.model, "none")?;
    memory::expect_actions(session, &args.model, args.interface.is_some(), &loaded)?;
    simulate(session, args, &*loaded.model)
}

fn simulate(
    session: &mut Session,
    args: &SimulateArgs,
    model: &dyn Model,
) -> Result<u8, Diagnostic> {
    output::begin_stage("simulating");
    let mut interpreter = Interpreter::new(model, &args.model, args.seed, &session.budget)?;
    interpreter.interface.clone_from(&session.interface);
    let mut replies = Vec::new();
    if let Some(path) = &args.trace {
        let reply = interpreter.execute(&Command::Load(path.clone()), &mut session.sources)?;
        replies.push((format!("load {}", path.display()), None, reply));
    }
    match &args.script {
        Some(path) => script(session, path, &mut interpreter, replies),
        None => in_terminal(session, interpreter, replies.first().map(|(_, _, reply)| reply)),
    }
}

/// Runs the commands of a file (`-`: standard input), each as soon as its line is available.
fn script(
    session: &mut Session,
    path: &Path,
    interpreter: &mut Interpreter,
    mut replies: Vec<(String, Option<usize>, Reply)>,
) -> Result<u8, Diagnostic> {
    let json = session.common.format == Format::Json;
    let (name, reader): (String, Box<dyn BufRead>) = if path == Path::new("-") {
        ("<standard input>".into(), Box::new(BufReader::new(mu_base::host::input())))
    } else {
        let file = mu_base::host::open(path).map_err(|e| file_error("cannot read", path, &e))?;
        (path.display().to_string(), Box::new(BufReader::new(file)))
    };
    let mut commands: Vec<Value> = Vec::new();
    let mut log = |interpreter: &Interpreter,
                   (line, number, reply): (String, Option<usize>, Reply)|
     -> Result<bool, Diagnostic> {
        if json {
            let mut object = json!({ "command": line, "reply": interpreter.json(&reply)? });
            if let Some(number) = number {
                object["line"] = json!(number);
            }
            commands.push(object);
        } else {
            output::print_part(&format!("> {line}\n{}", interpreter.text(&reply)))?;
        }
        Ok(matches!(reply, Reply::Quit))
    };
    for reply in replies.drain(..) {
        log(interpreter, reply)?;
    }
    let mut text = String::new();
    for (number, line) in reader.split(b'\n').enumerate() {
        let line = line.map_err(|e| file_error("cannot read", path, &e))?;
        let start = text.len();
        let line = decode(line, &name, number as u64 + 1)?;
        text += &line;
        text.push('\n');
        // Errors show their line: the script so far is a source.
        let place = |sources: &mut SourceMap, error: Diagnostic| {
            let trimmed = line.trim();
            let from = start + line.find(trimmed).unwrap_or(0);
            let span = Span {
                source: sources.add(name.clone(), text.clone()),
                start: narrow::index(from),
                end: narrow::index(from + trimmed.len()),
            };
            error.within(span, "by this command")
        };
        let command = match command::parse(&line) {
            Ok(Some(command)) => command,
            Ok(None) => continue,
            Err(error) => return Err(place(&mut session.sources, error)),
        };
        let reply = match interpreter.execute(&command, &mut session.sources) {
            Ok(reply) => reply,
            Err(error) if error.stop.is_some() => break,
            Err(error) => return Err(place(&mut session.sources, error)),
        };
        if log(interpreter, (line.trim().to_string(), Some(number + 1), reply))? {
            break;
        }
    }
    if json {
        let mut object = interpreter.end_json()?;
        object["commands"] = commands.into();
        if let Some(stop) = &interpreter.stopped {
            object["stop"] = json!(stop.word());
        }
        output::print_object(object)?;
    } else {
        output::print(
            &interpreter
                .stopped
                .as_ref()
                .map_or_else(String::new, |stop| format!("stopped      {}\n", stop.word())),
        )?;
    }
    Ok(if interpreter.stopped.is_some() { 3 } else { 0 })
}
