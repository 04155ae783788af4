//! Terminal interface of the simulator: key input and screen output. Every key that changes the
//! walk is a command of the interpreter.
//!
//! Parameters that the last step changed come first; long lines are wrapped and indented.
//! Invariant: the screen depends only on the interpreter, the selection, the scrolling and the
//! command line; it draws on any backend.

use super::command::{self, Command};
use super::interpreter::{Interpreter, Reply, lines};
use mu_base::{Diagnostic, SourceMap};
use mu_report::printed_evidence::PrintedStep;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};

const KEYS: &str = "↑↓ choose  Enter take  ←→ back, forward  r random  : command  ? help  q quit";
const HELP: &str = "up, down, k, j   choose a step            Enter       take it
left, b          back                     right, f    forward again
home             to the initial state     end         to the end of the path
r, R             a random step, ten       PgUp, PgDn  scroll the state
/                show parameters whose names contain a text
s, l             save, load a trace       :           type a command
q, Ctrl-C        quit                     ?           this\n\nCommands:\n";

/// The screen; see the module documentation.
pub struct Screen<'m> {
    interpreter: Interpreter<'m>,
    /// Index of the chosen step.
    chosen: usize,
    /// First visible row of the state.
    scroll: usize,
    /// Only parameters with this text in their names are visible.
    filter: String,
    /// The command that is being typed.
    typed: Option<String>,
    /// Message of the last command; true if it is an error.
    message: (String, bool),
    help: bool,
    colour: bool,
}

impl<'m> Screen<'m> {
    /// Starts at the state of the interpreter.
    pub fn new(interpreter: Interpreter<'m>, colour: bool) -> Self {
        let message = (format!("seed {}", interpreter.walk.seed()), false);
        Self {
            interpreter,
            chosen: 0,
            scroll: 0,
            filter: String::new(),
            typed: None,
            message,
            help: false,
            colour,
        }
    }

    /// Shows a message.
    pub fn log(&mut self, text: &str) {
        self.message = (text.trim_end().to_string(), false);
    }

    /// Handles a key. Returns true to quit.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if let Some(mut typed) = self.typed.take() {
            match key.code {
                KeyCode::Enter => return self.line(&typed),
                KeyCode::Esc => return false,
                KeyCode::Backspace if typed.pop().is_none() => return false,
                KeyCode::Char(c) => typed.push(c),
                _ => {}
            }
            self.typed = Some(typed);
            return false;
        }
        if std::mem::take(&mut self.help) {
            return false;
        }
        let moves = self.interpreter.walk.moves().len();
        let command = match key.code {
            KeyCode::Up | KeyCode::Char('k') => return self.choose(self.chosen.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => {
                return self.choose((self.chosen + 1).min(moves.saturating_sub(1)));
            }
            KeyCode::PageDown => return self.scroll(self.scroll + 10),
            KeyCode::PageUp => return self.scroll(self.scroll.saturating_sub(10)),
            KeyCode::Char(':') => return self.begin_input(""),
            KeyCode::Char('/') => return self.begin_input("state "),
            KeyCode::Char('s') => return self.begin_input("save "),
            KeyCode::Char('l') => return self.begin_input("load "),
            KeyCode::Enter if moves == 0 => return false,
            KeyCode::Enter => Command::Step(self.chosen + 1),
            KeyCode::Left | KeyCode::Char('b') => Command::Back(1),
            KeyCode::Right | KeyCode::Char('f') => Command::Forward(1),
            KeyCode::Home => Command::Goto(Some(0)),
            KeyCode::End => Command::Goto(None),
            KeyCode::Char('r') => Command::Random(1),
            KeyCode::Char('R') => Command::Random(10),
            KeyCode::Char('?' | 'h') => Command::Help,
            KeyCode::Char('q') => Command::Quit,
            _ => return false,
        };
        self.execute(&command)
    }

    fn choose(&mut self, index: usize) -> bool {
        self.chosen = index;
        false
    }
    fn scroll(&mut self, row: usize) -> bool {
        self.scroll = row;
        false
    }
    fn begin_input(&mut self, text: &str) -> bool {
        self.typed = Some(text.into());
        false
    }

    /// Handles a typed line.
    fn line(&mut self, typed: &str) -> bool {
        match command::parse(typed) {
            Ok(None) => false,
            Ok(Some(command)) => self.execute(&command),
            Err(error) => self.fail(&error, &SourceMap::new()),
        }
    }

    fn fail(&mut self, error: &Diagnostic, sources: &SourceMap) -> bool {
        // Show the message and the note; the whole excerpt would not fit on the screen.
        let text: Vec<String> = error
            .render(sources)
            .lines()
            .filter(|l| !l.starts_with(' ') || l.starts_with("  note"))
            .map(str::to_string)
            .collect();
        self.message = (text.join(" "), true);
        false
    }

    /// Executes a command and shows its reply. Returns true to quit.
    fn execute(&mut self, command: &Command) -> bool {
        let mut sources = SourceMap::new();
        match self.interpreter.execute(command, &mut sources) {
            Err(error) => self.fail(&error, &sources),
            Ok(Reply::Quit) => true,
            Ok(reply) => {
                match (command, &reply) {
                    (Command::State(text), _) => (self.filter, self.scroll) = (text.clone(), 0),
                    (Command::Help, _) => self.help = true,
                    // These are always visible.
                    (Command::Moves | Command::Trace, _) => {}
                    (_, Reply::Moved(_, remark)) => {
                        self.chosen = 0;
                        self.message = (remark.clone().unwrap_or_default(), false);
                    }
                    (_, Reply::Note(text)) => {
                        self.chosen = 0;
                        self.log(&text.clone());
                    }
                    _ => {}
                }
                false
            }
        }
    }

    /// Draws the screen. Errors: a value or step that cannot be printed.
    pub fn draw(&mut self, frame: &mut Frame) -> Result<(), Diagnostic> {
        let [head, top, below, message, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Percentage(60),
            Constraint::Min(3),
            Constraint::Length(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(top);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(
            Paragraph::new(format!(" {}", self.interpreter.title())).style(bold),
            head,
        );
        self.draw_moves(frame, left)?;
        self.draw_state(frame, right)?;
        self.draw_path(frame, below)?;
        let (text, wrong) = &self.message;
        match &self.typed {
            Some(typed) => frame.render_widget(Paragraph::new(format!(":{typed}█")), message),
            None => frame.render_widget(
                Paragraph::new(format!(" {text}")).style(if *wrong {
                    self.colour_style(Color::Red)
                } else {
                    bold
                }),
                message,
            ),
        }
        frame.render_widget(
            Paragraph::new(format!(" {KEYS}")).style(Style::new().add_modifier(Modifier::DIM)),
            keys,
        );
        if self.help {
            let area = frame.area();
            let text = format!("{HELP}{}", command::help());
            frame.render_widget(Clear, area);
            frame.render_widget(
                Paragraph::new(text)
                    .wrap(Wrap { trim: false })
                    .block(Block::bordered().title(" Help: any key goes back ")),
                area,
            );
        }
        Ok(())
    }

    fn draw_moves(&self, frame: &mut Frame, area: Rect) -> Result<(), Diagnostic> {
        let moves = self.interpreter.moves()?;
        let title = if moves.is_empty() {
            " A deadlock ".into()
        } else {
            format!(" Steps ({}) ", moves.len())
        };
        let (width, height) = inside(area);
        let mut lines: Vec<Line> = Vec::new();
        let mut wanted = 0..0;
        for (i, m) in moves.iter().enumerate() {
            let mark = if i == self.chosen { '>' } else { ' ' };
            let start = lines.len();
            let folded = wrap(&format!("{mark}{:3} {}", i + 1, self.short(m)), width, 6);
            lines.extend(folded.into_iter().map(|text| self.selectable(text, i == self.chosen)));
            if i == self.chosen {
                wanted = start..lines.len();
            }
        }
        let first = window(wanted, height, lines.len());
        let lines: Vec<Line> = lines.into_iter().skip(first).take(height).collect();
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
        Ok(())
    }

    fn draw_state(&mut self, frame: &mut Frame, area: Rect) -> Result<(), Diagnostic> {
        let (changed, same): (Vec<_>, Vec<_>) =
            self.interpreter.rows(&self.filter)?.into_iter().partition(|r| r.before.is_some());
        let mut rows = lines(&changed);
        if !changed.is_empty() && !same.is_empty() {
            rows.push(("as before:".into(), None));
        }
        rows.extend(lines(&same));
        let (width, height) = inside(area);
        let fold = |(text, changed): (String, Option<bool>)| {
            wrap(&text, width, 6).into_iter().map(move |line| (line, changed))
        };
        let rows: Vec<(String, Option<bool>)> = rows.into_iter().flat_map(fold).collect();
        self.scroll = self.scroll.min(rows.len().saturating_sub(height));
        let line = |(text, changed): &(String, Option<bool>)| {
            let style = match changed {
                None => Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
                Some(true) => self.colour_style(Color::Yellow).add_modifier(Modifier::BOLD),
                Some(false) => Style::new(),
            };
            Line::styled(text.clone(), style)
        };
        let shown: Vec<Line> = rows.iter().skip(self.scroll).take(height).map(line).collect();
        let filter =
            if self.filter.is_empty() { String::new() } else { format!("with `{}` ", self.filter) };
        let of = if rows.len() > height {
            format!("{}-{} of {} ", self.scroll + 1, self.scroll + shown.len(), rows.len())
        } else {
            String::new()
        };
        frame.render_widget(
            Paragraph::new(shown).block(Block::bordered().title(format!(" State {filter}{of}"))),
            area,
        );
        Ok(())
    }

    fn draw_path(&self, frame: &mut Frame, area: Rect) -> Result<(), Diagnostic> {
        let (at, length) = (self.interpreter.walk.position(), self.interpreter.walk.path().len());
        let (width, height) = inside(area);
        let here = at.saturating_sub(1);
        let first = window(here..here + 1, height, length);
        let (mut lines, mut wanted) = (Vec::new(), 0..0);
        // Format visible steps only: paths can be long.
        for i in first..length.min(first + height) {
            let mark = if i + 1 == at { '>' } else { ' ' };
            let style =
                if i + 1 > at { Style::new().add_modifier(Modifier::DIM) } else { Style::new() };
            let start = lines.len();
            let text = format!("{mark}{:4} {}", i + 1, self.short(&self.interpreter.step(i)?));
            lines.extend(wrap(&text, width, 7).into_iter().map(|text| Line::styled(text, style)));
            if i == here {
                wanted = start..lines.len();
            }
        }
        let first = window(wanted, height, lines.len());
        let lines: Vec<Line> = lines.into_iter().skip(first).take(height).collect();
        let title = format!(" Path: {} ", self.interpreter.place());
        frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
        Ok(())
    }

    /// Formats a step with its changes on one line.
    fn short(&self, step: &PrintedStep) -> String {
        let changes = self.interpreter.changes(step);
        if changes.is_empty() { step.title() } else { format!("{}  → {changes}", step.title()) }
    }

    fn selectable(&self, text: String, selected: bool) -> Line<'static> {
        Line::styled(
            text,
            if selected { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() },
        )
    }

    fn colour_style(&self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Returns the columns and rows inside the border of an area.
fn inside(area: Rect) -> (usize, usize) {
    (area.width.saturating_sub(2) as usize, area.height.saturating_sub(2) as usize)
}

/// Returns the first visible line such that the wanted lines are visible, as far as there is room.
fn window(wanted: std::ops::Range<usize>, height: usize, lines: usize) -> usize {
    let rest = height.saturating_sub(wanted.len());
    wanted.start.saturating_sub(rest / 2).min(lines.saturating_sub(height))
}

/// Wraps a text to a width and indents all lines but the first; breaks after a comma or a space in
/// the second half of a line, if possible.
fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let indent = indent.min(width / 2);
    let mut rest: Vec<char> = text.chars().collect();
    let mut lines = Vec::new();
    while rest.len() > width && width > 1 {
        let at = (width / 2..width)
            .rev()
            .find(|i| [',', ' ', '|'].contains(&rest[*i]))
            .map_or(width, |i| i + 1);
        lines.push(rest[..at].iter().collect::<String>().trim_end().to_string());
        rest = std::iter::repeat_n(' ', indent)
            .chain(rest[at..].iter().copied().skip_while(|c| *c == ' '))
            .collect();
    }
    lines.push(rest.iter().collect());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_folded() {
        assert_eq!(wrap("short", 10, 2), ["short"]);
        assert_eq!(
            wrap("  1 put(c_core_0, c_addr_1, [])", 20, 4),
            ["  1 put(c_core_0,", "    c_addr_1, [])"]
        );
        assert_eq!(wrap("abcdefghijkl", 5, 2), ["abcde", "  fgh", "  ijk", "  l"]);
        assert_eq!(wrap("äöü äöü äöü", 8, 0), ["äöü äöü", "äöü"]);
        assert_eq!(wrap("abc", 0, 4), ["abc"]);
    }

    #[test]
    fn the_window_holds_what_is_wanted() {
        assert_eq!((window(0..1, 5, 20), window(10..11, 5, 20), window(19..20, 5, 20)), (0, 8, 15));
        // A step with four lines, and one with seven, in a window of five lines: its first lines
        // are visible.
        assert_eq!((window(10..14, 5, 20), window(10..17, 5, 20), window(0..2, 5, 3)), (10, 10, 0));
    }
}
