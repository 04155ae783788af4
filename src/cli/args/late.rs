//! Arguments of a command that are described once it is named: a run describes its own command, not
//! all of them.
//!
//! Describing all commands takes longer than a small proof. What lists commands (help, completions,
//! manual pages) builds the whole description, which asks each command for its arguments then.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::ops::Deref;

/// Arguments `T` of a command, described when the command is.
#[derive(Debug)]
pub struct Late<T>(pub T);

impl<T> Deref for Late<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The description with the arguments; what the command is for stays what the list of commands
/// says.
fn described<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let command = T::augment_args(command).long_about(None);
    match about {
        Some(about) => command.about(about),
        None => command,
    }
}

impl<T: Args> Args for Late<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(described::<T>)
    }
    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Late<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Late)
    }
    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Late)
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
