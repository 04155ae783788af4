//! Terminal loop: the screen is redrawn after each key.

use super::interpreter::{Interpreter, Reply};
use super::screen::Screen;
use crate::pipeline::Session;
use mu_base::{Diagnostic, Stage};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use std::time::Duration;

/// Draws and handles keys until the user quits or a limit is reached.
pub(super) fn in_terminal(
    session: &mut Session,
    interpreter: Interpreter,
    first: Option<&Reply>,
) -> Result<u8, Diagnostic> {
    let failed = |e: std::io::Error| {
        Diagnostic::new(Stage::File, format!("the terminal cannot be used: {e}"))
    };
    let mut screen =
        Screen::new(interpreter, std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()));
    if let Some(Reply::Note(text)) = first {
        screen.log(text);
    }
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let mut turn = || -> Result<u8, Diagnostic> {
        loop {
            if let Err(stop) = session.budget.check(0).and_then(|()| session.budget.check_memory())
            {
                return Err(Diagnostic::stopped(stop));
            }
            let mut drawn = Ok(());
            terminal.draw(|frame| drawn = screen.draw(frame)).map_err(failed)?;
            drawn?;
            // Check limits and signals while no key is pressed.
            while !event::poll(Duration::from_millis(200)).map_err(failed)? {
                session.budget.check(0).map_err(Diagnostic::stopped)?;
            }
            match event::read().map_err(failed)? {
                Event::Key(key) if key.kind != KeyEventKind::Release && screen.key(key) => {
                    return Ok(0);
                }
                _ => {}
            }
        }
    };
    let result = turn();
    ratatui::restore();
    result
}
