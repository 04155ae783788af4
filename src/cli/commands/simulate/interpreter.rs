//! Interpreter of simulator commands for both user interfaces: [`Command`] to [`Reply`], which has
//! a text and a JSON form.
//!
//! Invariant: a command that fails does not change the walk. Files are read and written here;
//! nothing is printed.

use super::command::{self, Command};
use crate::pipeline::files::write_text;
use crate::pipeline::operation_log::{self, LogForm};
use crate::pipeline::read_text;
use mu_base::{Budget, Diagnostic, SourceId, SourceMap, Stage, Stop, narrow};
use mu_conform::interface::Interface;
use mu_explore::walk::{Walk, WalkStep};
use mu_lts::relabel::{name_of, parts};
use mu_model::Model;
use mu_report::chart::chart;
use mu_report::printed_evidence::{PrintedEvidence, PrintedStep, printed_step, values};
use mu_report::trace;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A walk with the data that commands need.
pub struct Interpreter<'m> {
    /// The walk.
    pub walk: Walk<'m>,
    /// File name of the model, for titles.
    name: String,
    budget: Budget,
    /// The meaning of labels as memory operations, for logs.
    pub interface: Option<Interface>,
    /// The limit that ended a command.
    pub stopped: Option<Stop>,
}

/// A parameter in the current state.
pub struct Row {
    /// Its parallel component, if there are several.
    pub component: Option<String>,
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The value before the last step, if it differs.
    pub before: Option<String>,
}

/// Reply to a command.
pub enum Reply {
    /// The position changed: steps taken now, with their numbers, and a remark.
    Moved(Vec<(usize, PrintedStep)>, Option<String>),
    /// Parameters.
    State(Vec<Row>),
    /// Possible steps.
    Moves(Vec<PrintedStep>),
    /// The path, and the number of its steps up to the current state.
    Trace(Vec<PrintedStep>, usize),
    /// A message.
    Note(String),
    /// The commands.
    Help,
    /// Quit.
    Quit,
}

impl<'m> Interpreter<'m> {
    /// Starts at the initial state.
    pub fn new(
        model: &'m dyn Model,
        name: &Path,
        seed: u64,
        budget: &Budget,
    ) -> Result<Self, Diagnostic> {
        Ok(Self {
            walk: Walk::new(model, seed)?,
            name: name.display().to_string(),
            budget: budget.clone(),
            interface: None,
            stopped: None,
        })
    }

    /// Executes a command.
    pub fn execute(
        &mut self,
        command: &Command,
        sources: &mut SourceMap,
    ) -> Result<Reply, Diagnostic> {
        let reply = self.dispatch(command, sources);
        if let Err(Diagnostic { stop: Some(stop), .. }) = &reply {
            self.stopped = Some(stop.clone());
        }
        reply
    }

    fn dispatch(
        &mut self,
        command: &Command,
        sources: &mut SourceMap,
    ) -> Result<Reply, Diagnostic> {
        self.budget.check(0).map_err(Diagnostic::stopped)?;
        let position = self.walk.position();
        match command {
            Command::Step(n) => match n.checked_sub(1) {
                Some(index) if self.walk.take(index)? => self.moved_reply(position, None),
                _ => Err(usage(format!("there is no step {n} in this state")).note(self.choice())),
            },
            Command::Take(action) => {
                let index = self.find_step(action)?;
                self.walk.take(index)?;
                self.moved_reply(position, None)
            }
            Command::Back(n) => {
                let (n, start) = ((*n).min(position), *n > 0 && position == 0);
                self.walk.go(position - n)?;
                self.moved_reply(
                    self.walk.position(),
                    start.then(|| "this is the initial state".into()),
                )
            }
            Command::Forward(n) => {
                let end = *n > 0 && position == self.walk.path().len();
                self.walk.go(position.saturating_add(*n))?;
                self.moved_reply(position, end.then(|| "this is the end of the path".into()))
            }
            Command::Goto(to) => {
                let length = self.walk.path().len();
                if to.is_some_and(|n| n > length) {
                    return Err(usage(format!("the path has {length} steps")));
                }
                self.walk.go(to.unwrap_or(length))?;
                self.moved_reply(self.walk.position(), None)
            }
            Command::Random(n) => {
                let mut remark = None;
                for taken in 0..*n {
                    // A limit ends the command; the steps so far are shown.
                    if let Err(stop) =
                        self.budget.check(0).and_then(|()| self.budget.check_memory())
                    {
                        remark = Some(format!(
                            "stopped ({}) after {taken} of {n} random steps",
                            stop.word()
                        ));
                        self.stopped = Some(stop);
                        break;
                    }
                    if !self.walk.random()? {
                        remark = Some(format!("a deadlock after {taken} of {n} random steps"));
                        break;
                    }
                }
                self.moved_reply(position, remark)
            }
            Command::Seed(seed) => {
                self.walk.reseed(*seed);
                Ok(Reply::Note(format!("seed {seed}")))
            }
            Command::State(text) => Ok(Reply::State(self.rows(text)?)),
            Command::Moves => Ok(Reply::Moves(self.moves()?)),
            Command::Trace => Ok(Reply::Trace(self.path()?, position)),
            Command::Load(path) => {
                let text = read_text(path)?;
                // A text becomes a source only if an error shows it.
                let trace = trace::from_json(SourceId::default(), &text).or_else(|_| {
                    trace::from_json(sources.add(path.display().to_string(), text.clone()), &text)
                })?;
                trace::replay(&trace, &mut self.walk)?;
                let again = trace.back_to.map_or_else(String::new, |n| {
                    format!("; it ends in a loop back to after step {n}")
                });
                Ok(Reply::Note(format!(
                    "replayed the {} of {}{again}; {}",
                    steps(trace.steps.len()),
                    path.display(),
                    self.place()
                )))
            }
            Command::Save(path) => {
                match mu_base::file_extension(path).as_deref() {
                    Some("svg") => {
                        let title = Path::new(&self.name)
                            .file_name()
                            .map_or_else(String::new, |n| n.to_string_lossy().into_owned());
                        let picture = chart(
                            &trace::story(&self.walk)?,
                            &title,
                            &format!("a trace of {}", steps(position)),
                        );
                        write_text(path, &picture.unwrap_or_default())?;
                    }
                    Some("json") => {
                        let mut object = trace::to_json(&self.walk)?;
                        object["model"] = json!(self.name);
                        write_text(path, &format!("{object:#}\n"))?;
                    }
                    Some("csv" | "jsonl") => {
                        let form = LogForm::of(path).unwrap_or(LogForm::Table);
                        let story = trace::story(&self.walk)?;
                        let text = operation_log::text(self.interface.as_ref(), &story, form)?;
                        write_text(path, &text)?;
                    }
                    _ => {
                        return Err(usage(format!(
                            "`{}`: expected a name that ends in .json, .svg, .csv, or .jsonl",
                            path.display()
                        )));
                    }
                }
                Ok(Reply::Note(format!("wrote {}: {}", path.display(), steps(position))))
            }
            Command::Help => Ok(Reply::Help),
            Command::Quit => Ok(Reply::Quit),
        }
    }

    /// Returns the title for the terminal screen.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn title(&self) -> String {
        format!("mu-check simulate {}", self.name)
    }

    /// Describes the current position in a sentence.
    pub fn place(&self) -> String {
        let (at, length, n) =
            (self.walk.position(), self.walk.path().len(), self.walk.moves().len());
        let of = if at < length { format!(" of {length}") } else { String::new() };
        let moves = match n {
            0 => "a deadlock".to_string(),
            1 => "1 step".into(),
            n => format!("{n} steps"),
        };
        if at == 0 {
            format!("at the initial state: {moves}")
        } else {
            format!("after step {at}{of}: {moves}")
        }
    }

    /// Returns the parameters with a text in their names or in the names of their components.
    pub fn rows(&self, text: &str) -> Result<Vec<Row>, Diagnostic> {
        let (model, at) = (self.walk.model(), self.walk.position());
        let state = values(model, self.walk.state());
        let before = self.walk.state_after(at.saturating_sub(1));
        let components = model.components();
        let row = |(slot, value): (usize, Option<String>)| {
            let value = value?;
            let info = &model.slots()[slot];
            let component =
                components.get(info.component as usize).filter(|_| components.len() > 1).cloned();
            let changed = before[slot] != self.walk.state()[slot];
            let before = (changed && model.is_live(narrow::index(slot), before))
                .then(|| model.value_text(narrow::index(slot), before[slot]));
            Some(Row { component, name: info.name.clone(), value, before })
        };
        let fits = |r: &Row| {
            r.name.contains(text) || r.component.as_ref().is_some_and(|c| c.contains(text))
        };
        let rows: Vec<Row> = state.into_iter().enumerate().filter_map(row).filter(fits).collect();
        if rows.is_empty() && !text.is_empty() {
            let names: Vec<&str> = model.slots().iter().map(|s| s.name.as_str()).collect();
            let error = usage(format!("no parameter or component has `{text}` in its name"))
                .note(format!("parameters: {}", names.join(", ")));
            return Err(if components.len() > 1 {
                error.note(format!("components: {}", components.join(", ")))
            } else {
                error
            });
        }
        Ok(rows)
    }

    /// Returns the possible steps of the current state.
    pub fn moves(&self) -> Result<Vec<PrintedStep>, Diagnostic> {
        let move_text = |m: &WalkStep| {
            printed_step(self.walk.model(), self.walk.state(), &trace::taken_step(m), false)
        };
        self.walk.moves().iter().map(move_text).collect()
    }

    /// Returns the steps of the path.
    pub fn path(&self) -> Result<Vec<PrintedStep>, Diagnostic> {
        (0..self.walk.path().len()).map(|i| self.step(i)).collect()
    }

    /// Returns a step of the path.
    pub fn step(&self, i: usize) -> Result<PrintedStep, Diagnostic> {
        let mut step = printed_step(
            self.walk.model(),
            self.walk.state_after(i),
            &trace::taken_step(&self.walk.path()[i]),
            false,
        )?;
        (step.from, step.to) = (narrow::index(i), narrow::index(i) + 1);
        Ok(step)
    }

    /// Returns the steps since a position.
    fn moved_reply(&self, since: usize, remark: Option<String>) -> Result<Reply, Diagnostic> {
        let steps = (since..self.walk.position())
            .map(|i| Ok((i + 1, self.step(i)?)))
            .collect::<Result<_, Diagnostic>>()?;
        Ok(Reply::Moved(steps, remark))
    }

    /// Finds the step with an action: by its text, otherwise by its name, otherwise by the name of
    /// a hidden action in it.
    fn find_step(&self, action: &str) -> Result<usize, Diagnostic> {
        let moves = self.moves()?;
        let of = |fits: &dyn Fn(&PrintedStep) -> bool| {
            (0..moves.len()).filter(|&i| fits(&moves[i])).collect::<Vec<usize>>()
        };
        let ways: [&dyn Fn(&PrintedStep) -> bool; 3] = [
            &|m| trace::is_same_action(&m.action, action),
            &|m| parts(&m.action).iter().any(|a| trace::is_same_action(name_of(a), action)),
            &|m| {
                m.hidden_actions().iter().any(|h| {
                    trace::is_same_action(h, action) || trace::is_same_action(name_of(h), action)
                })
            },
        ];
        for fits in ways {
            match of(fits)[..] {
                [] => {}
                [one] => return Ok(one),
                ref several => {
                    let list: Vec<String> = several
                        .iter()
                        .map(|i| format!("{}: {}", i + 1, moves[*i].title()))
                        .collect();
                    return Err(usage(format!("`{action}` matches {} steps", list.len()))
                        .note(format!("choose one by its number: {}", list.join(", "))));
                }
            }
        }
        Err(usage(format!("`{action}` is not a step of this state")).note(self.choice()))
    }

    /// Lists the steps of this state, for messages.
    fn choice(&self) -> String {
        let list: Vec<String> = match self.moves() {
            Ok(moves) => {
                moves.iter().enumerate().map(|(i, m)| format!("{} {}", i + 1, m.title())).collect()
            }
            Err(_) => Vec::new(),
        };
        if list.is_empty() {
            "it has none: a deadlock".into()
        } else {
            format!("its steps: {}", list.join(", "))
        }
    }

    /// Formats the new values of a step: `name = value`, separated by commas.
    pub fn changes(&self, step: &PrintedStep) -> String {
        let slots = self.walk.model().slots();
        step.changed
            .iter()
            .map(|(slot, v)| format!("{} = {v}", slots[*slot as usize].name))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Formats a reply for people; ends with a newline.
    pub fn text(&self, reply: &Reply) -> String {
        let line = |mark: &str, number: usize, step: &PrintedStep| {
            let changes = self.changes(step);
            let below =
                if changes.is_empty() { String::new() } else { format!("\n          {changes}") };
            format!("{mark} {number:4}  {}{below}\n", step.title())
        };
        match reply {
            Reply::Moved(steps, remark) => {
                let mut text: String = steps.iter().map(|(n, s)| line(" ", *n, s)).collect();
                text += &remark.as_ref().map_or_else(String::new, |r| format!("{r}\n"));
                text + &format!("{}\n", self.place())
            }
            Reply::State(rows) => lines(rows).iter().map(|(line, _)| format!("{line}\n")).collect(),
            Reply::Moves(moves) if moves.is_empty() => "a deadlock: no steps\n".into(),
            Reply::Moves(moves) => {
                moves.iter().enumerate().map(|(i, m)| line(" ", i + 1, m)).collect()
            }
            Reply::Trace(steps, at) => {
                let mark = |i: usize| if i + 1 == *at { ">" } else { " " };
                let text: String =
                    steps.iter().enumerate().map(|(i, s)| line(mark(i), i + 1, s)).collect();
                format!("{text}{}\n", self.place())
            }
            Reply::Note(text) => format!("{text}\n"),
            Reply::Help => format!("{}\n", command::help()),
            Reply::Quit => String::new(),
        }
    }

    /// Formats a reply for programs.
    pub fn json(&self, reply: &Reply) -> Result<Value, Diagnostic> {
        let story = PrintedEvidence::without_steps(self.walk.model());
        let list = |steps: &[PrintedStep]| steps.iter().map(|s| s.json(&story)).collect::<Vec<_>>();
        Ok(match reply {
            Reply::Moved(steps, remark) => {
                let steps: Vec<Value> = steps.iter().map(|(_, s)| s.json(&story)).collect();
                json!({ "steps": steps, "at": self.walk.position(), "remark": remark })
            }
            Reply::State(rows) => json!({ "state": rows_json(rows) }),
            Reply::Moves(moves) => json!({ "moves": list(moves) }),
            Reply::Trace(steps, at) => json!({ "trace": list(steps), "at": at }),
            Reply::Note(text) => json!({ "note": text }),
            Reply::Help => json!({ "help": command::help() }),
            Reply::Quit => json!({}),
        })
    }

    /// Returns the final position, for programs.
    pub fn end_json(&self) -> Result<Value, Diagnostic> {
        let story = PrintedEvidence::without_steps(self.walk.model());
        let moves: Vec<Value> = self.moves()?.iter().map(|s| s.json(&story)).collect();
        Ok(json!({
            "model": self.name,
            "seed": self.walk.seed(),
            "at": self.walk.position(),
            "steps": self.walk.path().len(),
            "deadlock": moves.is_empty(),
            "state": rows_json(&self.rows("")?),
            "moves": moves,
        }))
    }
}

impl Row {
    /// Formats a line; changed values are marked.
    pub fn text(&self) -> String {
        match &self.before {
            Some(before) => format!("* {} = {}  (was {before})", self.name, self.value),
            None => format!("  {} = {}", self.name, self.value),
        }
    }
}

/// Formats rows as lines below the names of their components. The flag is true if the value
/// changed, and `None` for a component.
pub fn lines(rows: &[Row]) -> Vec<(String, Option<bool>)> {
    let mut lines = Vec::new();
    let mut component = &None;
    for row in rows {
        if row.component != *component {
            component = &row.component;
            lines.push((component.clone().unwrap_or_default(), None));
        }
        lines.push((row.text(), Some(row.before.is_some())));
    }
    lines
}

fn rows_json(rows: &[Row]) -> Value {
    let of = |r: &Row| {
        let mut object = Map::new();
        object.insert("value".into(), json!(r.value));
        if let Some(component) = &r.component {
            object.insert("component".into(), json!(component));
        }
        if let Some(before) = &r.before {
            object.insert("before".into(), json!(before));
        }
        (r.name.clone(), Value::Object(object))
    };
    rows.iter().map(of).collect::<Map<_, _>>().into()
}

fn steps(n: usize) -> String {
    format!("{n} step{}", if n == 1 { "" } else { "s" })
}

fn usage(message: String) -> Diagnostic {
    Diagnostic::new(Stage::Usage, message)
}
