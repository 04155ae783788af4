//! Systems of any number of processes (`.cub`): the instance with a fixed number is the model.

use crate::loaded::StoreBuffers;
use crate::{EditedText, FrontEnd, Input, Lexicon, Loaded, Loading, Parameter, Properties};
use mu_base::host::Instant;
use mu_base::naming::Naming;
use mu_base::{Diagnostic, SourceId, SourceMap, Stage};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::model::SystemModel;
use mu_cubicle::system::System;
use mu_model::Model;
use mu_program::memory::{MemoryModel, PSO, SC};
use std::sync::Arc;

/// Systems of any number of processes.
pub const CUBICLE: Cubicle = Cubicle;

/// Front end of systems of any number of processes.
pub struct Cubicle;

impl StoreBuffers for SystemModel<'_> {
    fn were_cut(&self) -> bool {
        self.machine.was_cut()
    }
}

impl FrontEnd for Cubicle {
    fn language(&self) -> &'static str {
        "a system of any number of processes"
    }
    fn endings(&self) -> &'static [&'static str] {
        &[".cub"]
    }
    fn properties(&self) -> Properties {
        Properties { buffered: true, ..Properties::default() }
    }
    fn read(&self, input: &Input<'_>, loading: &mut Loading<'_>) -> Result<Loaded, Diagnostic> {
        let start = Instant::now();
        loading.journal.begin_stage("reading the system");
        // The model, and therefore the system, lives until the process ends: leaking it is
        // harmless.
        let system: &'static System = Box::leak(Box::new(system(input, loading.sources)?));
        let (processes, setup) = setup(system, input, loading)?;
        let parameters = parameters(processes, &setup);
        let memory = memory(loading.options.memory.model)?;
        let model = Arc::new(SystemModel::new(Machine::new(system, processes, memory, setup)?)?);
        loading.journal.log(&format!(
            "{}: {processes} processes, {} slots, {} groups in {:.3} s",
            input.name(),
            model.slots().len(),
            model.groups().len(),
            start.elapsed().as_secs_f64()
        ));
        if let Some(action) = model.action_of_tau() {
            loading.journal.warn(&format!(
                "the action of transition `tau` is `{action}`, because `tau` is the hidden action"
            ));
        }
        let loaded = Loaded::with_inferred_labels(model.clone())?;
        Ok(Loaded { buffers: Some(model), parameters, ..loaded })
    }
    fn parameters(
        &self,
        input: &Input<'_>,
        loading: &mut Loading<'_>,
    ) -> Result<Vec<Parameter>, Diagnostic> {
        let processes = system(input, loading.sources)?.processes;
        let default = processes.map_or_else(String::new, |n| n.to_string());
        let given = loading.parameters()?.into_iter().find(|(name, _)| name == "processes");
        Ok(vec![Parameter {
            name: "processes".into(),
            sort: "Pos".into(),
            value: given.map_or_else(|| default.clone(), |(_, value)| value),
            default,
            constraint: "processes <= 64".into(),
            help: "number of processes".into(),
        }])
    }
    fn lexicon(&self) -> Option<&'static Lexicon> {
        const LEXICON: Lexicon =
            Lexicon { nested: true, keywords: mu_cubicle::parse::KEYWORDS, ..Lexicon::PLAIN };
        Some(&LEXICON)
    }
    fn check(&self, text: &EditedText<'_>, sources: &mut SourceMap) -> Result<(), Diagnostic> {
        let source = sources.add(text.name(), text.text);
        mu_cubicle::check(&mu_cubicle::parse(source, text.text)?).map(drop)
    }
    fn names(&self, source: SourceId, text: &str) -> Option<Naming> {
        Some(mu_cubicle::names(source, text))
    }
}

/// Reads a system.
///
/// # Errors
/// The file cannot be read; an error in the text, with its place.
pub fn system(input: &Input<'_>, sources: &mut SourceMap) -> Result<System, Diagnostic> {
    let (source, text) = input.source(sources)?;
    mu_cubicle::check(&mu_cubicle::parse(source, &text)?)
}

fn memory(model: &dyn MemoryModel) -> Result<Memory, Diagnostic> {
    match model.name() {
        name if name == SC.name() => Ok(Memory::Sc),
        name if name == PSO.name() => Err(Diagnostic::new(
            Stage::Unsupported,
            "partial store order is not supported for systems of any number of processes, expected `sc` or `tso`",
        )),
        _ => Ok(Memory::Tso),
    }
}

/// Returns the number of processes and the other values of parameters.
fn setup(
    system: &System,
    input: &Input<'_>,
    loading: &Loading<'_>,
) -> Result<(u32, Setup), Diagnostic> {
    let mut processes = system.processes;
    let buffer = loading.options.memory.buffer.map(|n| n as usize);
    let mut setup = Setup { buffer, ..Setup::default() };
    for d in loading.defines {
        match d.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("processes", value)) => match value.parse::<u32>() {
                Ok(n) if (1..=64).contains(&n) => processes = Some(n),
                _ => {
                    return Err(Diagnostic::new(
                        Stage::Usage,
                        format!("parameter `{d}`: expected a number of processes from 1 to 64"),
                    ));
                }
            },
            Some((name, value)) if !name.is_empty() => {
                setup.given.push((name.to_string(), value.to_string()))
            }
            _ => {
                return Err(Diagnostic::new(
                    Stage::Usage,
                    format!("parameter `{d}` is not of the form NAME=VALUE"),
                ));
            }
        }
    }
    let none = || {
        Diagnostic::new(Stage::Usage, format!("`{}` needs a number of processes", input.name()))
            .note("set the parameter `processes`, for example to 3")
    };
    Ok((processes.ok_or_else(none)?, setup))
}

fn parameters(processes: u32, setup: &Setup) -> Vec<(String, String)> {
    let first = ("processes".to_string(), processes.to_string());
    [first].into_iter().chain(setup.given.iter().cloned()).collect()
}
