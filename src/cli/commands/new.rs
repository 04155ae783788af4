//! `new`: example projects.
//!
//! Invariant: `new` never changes an existing file.

use crate::args::{Format, NewArgs, Project};
use crate::output::{self, print};
use crate::pipeline::files::write_text;
use crate::pipeline::{Session, file_error};
use mu_base::{Diagnostic, Stage};
use serde_json::json;

macro_rules! file {
    ($folder:literal, $name:literal) => {
        ($name, include_str!(concat!("projects/", $folder, "/", $name)))
    };
}

const CPU: &[(&str, &str)] = &[
    file!("cpu", "cpu.mcrl2"),
    file!("cpu", "cpu.interface"),
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

/// Writes the project; the folder must be new or empty.
pub(crate) fn write_project(session: &Session, args: &NewArgs) -> Result<u8, Diagnostic> {
    let files = match args.project {
        Project::Cpu => CPU,
        Project::Protocol => PROTOCOL,
        Project::Mutex => MUTEX,
    };
    let folder = &args.folder;
    mu_base::host::fs::create_dir_all(folder)
        .map_err(|e| file_error("cannot create the folder", folder, &e))?;
    let mut entries =
        mu_base::host::read_dir(folder).map_err(|e| file_error("cannot read", folder, &e))?;
    if entries.next().is_some() {
        let message = format!("the folder `{}` is not empty", folder.display());
        return Err(Diagnostic::new(Stage::File, message).note("give the name of a new folder"));
    }
    for (name, text) in files {
        write_text(&folder.join(name), text)?;
    }
    let formulas: Vec<&str> = files.iter().map(|f| f.0).filter(|n| n.ends_with(".mcf")).collect();
    let command = format!("mu-check {} {}", files[0].0, formulas.join(" "));
    // A machine with an interface is also compared with memory models.
    let interface = files.iter().map(|f| f.0).find(|n| n.ends_with(".interface"));
    let conform_commands = interface.map(|interface| {
        let machine = format!("mu-check conform {} --interface {interface}", files[0].0);
        [
            format!("{machine} --operations 3"),
            format!("{machine} --operations 3 --against tso --litmus smallest.litmus"),
            format!(
                "mu-check litmus smallest.litmus --machine {} --interface {interface}",
                files[0].0
            ),
            format!("{machine} -D values=2 --against tso --operations any"),
        ]
    });
    match session.common.format {
        Format::Json => output::print_object(json!({
            "folder": folder.display().to_string(),
            "files": files.iter().map(|f| f.0).collect::<Vec<_>>(),
            "command": command,
            "conform": conform_commands.iter().flatten().collect::<Vec<_>>(),
        }))?,
        Format::Text => {
            let list: String = files.iter().map(|f| format!("  {}\n", f.0)).collect();
            let folder = folder.display();
            let more: String = conform_commands
                .iter()
                .flatten()
                .map(|c| format!("      cd {folder} && {c}\n"))
                .collect();
            print(&format!("{folder}:\n{list}next: cd {folder} && {command}\n{more}"))?;
        }
    }
    Ok(0)
}
