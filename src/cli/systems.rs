//! Systems of any number of processes (`.cub`): instances with a fixed number as models; x86
//! programs as systems.

use super::args::{MemoryName, TranslationArgs};
use super::load::Loaded;
use super::output;
use super::pipeline::Session;
use mu_base::host::Instant;
use mu_base::ids::LabelId;
use mu_base::{Diagnostic, Stage, Stop, ends_in};
use mu_cubicle::machine::{Machine, Memory, Setup};
use mu_cubicle::model::SystemModel;
use mu_cubicle::system::System;
use mu_formula::typed::{Modalities, TypedFormula};
use mu_labels::inferred::InferredLabels;
use mu_model::Model;
use mu_pbes::Verdict;
use std::path::Path;
use std::sync::Arc;

/// Reads a system.
pub(super) fn read(session: &mut Session, path: &Path) -> Result<System, Diagnostic> {
    let (source, text) = session.read_source(path)?;
    mu_cubicle::check(&mu_cubicle::parse(source, &text)?)
}

/// Translates an x86 program to a system of any number of processes.
pub(super) fn translated(
    session: &mut Session,
    path: &Path,
    args: &TranslationArgs,
) -> Result<mu_cubicle::ast::File, Diagnostic> {
    if !ends_in(path, "asm") {
        let message = format!(
            "`{}` is not an x86 program, expected a file that ends in .asm",
            path.display()
        );
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    let file = super::threads::translate(session, path, args, false)?.translation.file;
    let columns = mu_cubicle::x86::columns(&file);
    session.log(format!(
        "{} registers, {} weak variables, {} transitions",
        columns.registers, columns.weak, columns.transitions
    ));
    Ok(file)
}

fn memory(name: MemoryName) -> Result<Memory, Diagnostic> {
    match name {
        MemoryName::Tso => Ok(Memory::Tso),
        MemoryName::Sc => Ok(Memory::Sc),
        MemoryName::Pso => Err(Diagnostic::new(
            Stage::Unsupported,
            "partial store order is not supported for systems of any number of processes, expected `sc` or `tso`",
        )),
    }
}

/// Returns the number of processes and the other values of `-D`.
fn setup(session: &Session, system: &System, path: &Path) -> Result<(u32, Setup), Diagnostic> {
    let mut processes = system.processes;
    let mut setup =
        Setup { buffer: session.reading.memory.buffer.map(|n| n as usize), ..Setup::default() };
    for d in &session.common.define {
        match d.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            Some(("processes", value)) => match value.parse::<u32>() {
                Ok(n) if (1..=64).contains(&n) => processes = Some(n),
                _ => {
                    return Err(Diagnostic::new(
                        Stage::Usage,
                        format!("`-D {d}`: expected a number of processes from 1 to 64"),
                    ));
                }
            },
            Some((name, value)) if !name.is_empty() => {
                setup.given.push((name.to_string(), value.to_string()))
            }
            _ => {
                return Err(Diagnostic::new(
                    Stage::Usage,
                    format!("`-D {d}` is not of the form NAME=VALUE"),
                ));
            }
        }
    }
    let none = || {
        Diagnostic::new(Stage::Usage, format!("`{}` needs a number of processes", path.display()))
            .note("set it with `-D processes=3`")
    };
    Ok((processes.ok_or_else(none)?, setup))
}

/// Loads the instance of a system with the number of processes of `-D processes=N` or
/// `number_procs`.
pub(super) fn load(session: &mut Session, path: &Path) -> Result<Loaded, Diagnostic> {
    let start = Instant::now();
    output::begin_stage("reading the system");
    // The model, and therefore the system, lives until the process ends: leaking it is harmless.
    let system: &'static System = Box::leak(Box::new(read(session, path)?));
    let (processes, setup) = setup(session, system, path)?;
    let machine = Machine::new(system, processes, memory(session.reading.memory.model)?, setup)?;
    let model = Arc::new(SystemModel::new(machine)?);
    session.log(format!(
        "{}: {processes} processes, {} slots, {} groups in {:.3} s",
        path.display(),
        model.slots().len(),
        model.groups().len(),
        start.elapsed().as_secs_f64()
    ));
    session.systems.push(model.clone());
    let texts: Vec<String> =
        (0..model.label_count()).map(|l| model.label_text(LabelId::new(l))).collect();
    let labels = InferredLabels::new(&texts)?;
    let (data, actions) = (labels.data().clone(), labels.actions().to_vec());
    Ok(Loaded {
        model,
        labels: Arc::new(labels),
        data,
        actions,
        declared: false,
        stored: None,
        compiled: None,
    })
}

impl Session {
    /// True if a bound on store buffers cut transitions from a searched model.
    pub(super) fn buffers_were_cut(&self) -> bool {
        self.buffer_was_full || self.systems.iter().any(|s| s.machine.was_cut())
    }
}

/// Returns the exit code if a bound on store buffers may have cut transitions: success becomes
/// unknown, unless the command has already decided that.
pub(super) fn exit_code_with_bounds(session: &Session, code: u8, decided: bool) -> u8 {
    if !session.buffers_were_cut() {
        return code;
    }
    eprintln!(
        "warning: a store buffer was full; behaviour that needs more capacity was not searched (--buffer)"
    );
    if code == 0 && !decided { 3 } else { code }
}

/// Returns the verdict for all transitions, given the verdict for a part of them: the same if the
/// part is decisive.
pub(super) fn verdict_for_all_steps(verdict: Verdict, formula: &TypedFormula) -> Verdict {
    let Modalities { may, must } = formula.modalities();
    match verdict {
        Verdict::True if must => Verdict::Unknown(Stop::Buffer),
        Verdict::False if may => Verdict::Unknown(Stop::Buffer),
        decided => decided,
    }
}
