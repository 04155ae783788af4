//! Deferred argument descriptions: clap builds the description of a command only if that command is
//! used.
//!
//! Describing all commands takes longer than a small proof. Only help, completions and manual pages
//! build the whole description, including the deferred parts.

use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use std::ops::Deref;

/// Arguments `T` of a command, with a description that is built on demand.
#[derive(Debug)]
pub struct DeferredArgs<T>(pub T);

impl<T> Deref for DeferredArgs<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Adds the arguments to the description; the summary from the list of commands stays.
fn with_arguments<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let command = T::augment_args(command).long_about(None);
    match about {
        Some(about) => command.about(about),
        None => command,
    }
}

impl<T: Args> Args for DeferredArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(with_arguments::<T>)
    }
    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for DeferredArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(DeferredArgs)
    }
    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(DeferredArgs)
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}
