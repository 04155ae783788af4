//! Commands of the simulator: parsing of a line of text to a [`Command`]. The help is generated
//! from the table of names.

use mu_base::{Diagnostic, Stage};
use std::path::PathBuf;

/// Maximum number of steps of one command; more are an error.
pub const MOST_STEPS: usize = 1_000_000;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Take the step with this number, from 1.
    Step(usize),
    /// Take the step with this action.
    Take(String),
    /// Go back this number of steps.
    Back(usize),
    /// Go forward again.
    Forward(usize),
    /// Go to the state after this number of steps; `None`: the last.
    Goto(Option<usize>),
    /// Take random steps.
    Random(usize),
    /// Restart the random generator with a seed.
    Seed(u64),
    /// Show the parameters with a text in their names.
    State(String),
    /// Show the steps of this state.
    Moves,
    /// Show the steps taken.
    Trace,
    /// Replay a trace.
    Load(PathBuf),
    /// Write the trace.
    Save(PathBuf),
    /// Show the commands.
    Help,
    /// Quit.
    Quit,
}

/// Names (the first is the main one), arguments, help text.
const TABLE: [(&[&str], &str, &str); 15] = [
    (&["step", "s"], "N", "take the step with this number; `N` alone is enough"),
    (
        &["take", "t"],
        "ACTION",
        "take the step with this action: its text, its name, or the name of a hidden action in it",
    ),
    (&["back", "b"], "[N]", "go back one step, or N"),
    (&["forward", "f", "redo"], "[N]", "go forward again"),
    (&["goto", "g"], "N", "go to the state after N steps of the path"),
    (&["start"], "", "go back to the initial state"),
    (&["end"], "", "go forward to the end of the path"),
    (&["random", "r"], "[N]", "take a random step, or N; stops at a deadlock"),
    (&["seed"], "N", "restart the random generator with this seed"),
    (
        &["state", "p"],
        "[TEXT]",
        "show the parameters (with TEXT in their name or component), changed ones marked",
    ),
    (&["moves", "m"], "", "show the steps of this state"),
    (&["trace"], "", "show the path"),
    (
        &["load", "l"],
        "FILE",
        "replay a trace: a file that `save` or `check --evidence FILE.json` wrote",
    ),
    (
        &["save", "w"],
        "FILE",
        "write the steps so far: .json, .svg (a message sequence chart), .csv or .jsonl (a log for `trace`)",
    ),
    (&["quit", "q", "exit"], "", "end"),
];

/// Returns the help text of all commands.
pub fn help() -> String {
    let mut text = String::new();
    for (names, arguments, about) in TABLE {
        let (name, short) = (names[0], names[1..].join(", "));
        let short = if short.is_empty() { String::new() } else { format!("({short})") };
        text += &format!(
            "{:<24} {about}\n",
            format!("{} {short}", format!("{name} {arguments}").trim_end())
        );
    }
    text + "help (h)                 show this"
}

/// Parses a line. `None`: it is empty or a comment (`#` or `%` to the end of the line). Errors:
/// unknown command, wrong arguments.
pub fn parse(line: &str) -> Result<Option<Command>, Diagnostic> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', '%']) {
        return Ok(None);
    }
    if line.bytes().all(|b| b.is_ascii_digit()) {
        return number(line, "a step").map(|n| Some(Command::Step(n)));
    }
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let Some((names, arguments, _)) = TABLE.iter().find(|(names, ..)| names.contains(&word)) else {
        if ["help", "h", "?"].contains(&word) {
            return Ok(Some(Command::Help));
        }
        let names: Vec<&str> = TABLE.iter().map(|(names, ..)| names[0]).chain(["help"]).collect();
        return Err(usage(format!("`{word}` is not a command"))
            .note(format!("commands: the number of a step, {}", names.join(", "))));
    };
    let name = names[0];
    match (*arguments, rest.is_empty()) {
        ("", false) => {
            return Err(usage(format!("`{name}` takes no argument, but got `{rest}`")));
        }
        (what, true) if !what.is_empty() && !what.starts_with('[') => {
            return Err(usage(format!("`{name}` needs an argument: {name} {what}")));
        }
        _ => {}
    }
    let count = || if rest.is_empty() { Ok(1) } else { number(rest, "a number of steps") };
    Ok(Some(match name {
        "step" => Command::Step(number(rest, "the number of a step")?),
        // The number of a step: no action has such a name.
        "take" if rest.bytes().all(|b| b.is_ascii_digit()) => {
            Command::Step(number(rest, "the number of a step")?)
        }
        "take" => Command::Take(rest.to_string()),
        "back" => Command::Back(count()?),
        "forward" => Command::Forward(count()?),
        "goto" => Command::Goto(Some(number(rest, "a number of steps")?)),
        "start" => Command::Goto(Some(0)),
        "end" => Command::Goto(None),
        "random" => Command::Random(count()?),
        "seed" => {
            Command::Seed(rest.parse().map_err(|_| {
                usage(format!("`{rest}` is not a seed: expected a number below 2^64"))
            })?)
        }
        "state" => Command::State(rest.to_string()),
        "moves" => Command::Moves,
        "trace" => Command::Trace,
        "load" => Command::Load(rest.into()),
        "save" => Command::Save(rest.into()),
        _ => Command::Quit,
    }))
}

fn number(text: &str, what: &str) -> Result<usize, Diagnostic> {
    match text.parse() {
        Ok(n) if n <= MOST_STEPS => Ok(n),
        _ => Err(usage(format!("`{text}` is not {what}"))
            .note(format!("expected a number up to {MOST_STEPS}"))),
    }
}

fn usage(message: String) -> Diagnostic {
    Diagnostic::new(Stage::Usage, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let ok = |line: &str| parse(line).unwrap();
        assert_eq!((ok(""), ok("  % remark"), ok("# remark")), (None, None, None));
        assert_eq!((ok(" 3 "), ok("s 3")), (Some(Command::Step(3)), Some(Command::Step(3))));
        assert_eq!(ok("take enter(1, 2)"), Some(Command::Take("enter(1, 2)".into())));
        assert_eq!(ok("take 2"), Some(Command::Step(2)));
        assert_eq!(
            (ok("b"), ok("back 4"), ok("end")),
            (Some(Command::Back(1)), Some(Command::Back(4)), Some(Command::Goto(None)))
        );
        assert_eq!(
            (ok("start"), ok("p core 1")),
            (Some(Command::Goto(Some(0))), Some(Command::State("core 1".into())))
        );
        assert_eq!(ok("save a b.json"), Some(Command::Save("a b.json".into())));
        for (wrong, why) in [
            ("jump", "is not a command"),
            ("back x", "not a number of steps"),
            ("back -1", "not a number"),
            ("random 99999999", "not a number"),
            ("18446744073709551616", "not a step"),
            ("moves 1", "no argument"),
            ("load", "needs an argument: load FILE"),
            ("seed x", "not a seed"),
        ] {
            assert!(parse(wrong).unwrap_err().message.contains(why), "{wrong}: {:?}", parse(wrong));
        }
    }

    /// Names are unique, and the help shows each.
    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = TABLE
            .iter()
            .flat_map(|(names, ..)| names.iter().copied())
            .chain(["help", "h", "?"])
            .collect();
        assert!(names.iter().take(15).all(|n| help().contains(n)));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
