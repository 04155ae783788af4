//! Built-in machines of memory models, with their interfaces and faults: a command reads them by
//! name, so that it needs no file of the project.
//!
//! A file of the same name has priority: [`crate::Input`] consults this table only if the file does
//! not exist. Invariant: each name is that of a file in `specs/machines`, without its ending.

use std::path::Path;

macro_rules! texts {
    ($ending:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("machines/", $name, ".", $ending)))),*]
    };
}

/// Names and texts of one kind of file.
type Texts = &'static [(&'static str, &'static str)];

const MACHINES: Texts = texts!("spec": "sc" "tso" "pso" "coalescing" "ooo" "msi");
const INTERFACES: Texts = texts!("interface": "machine" "direct" "buffer" "coalescing" "ooo" "msi");
const FAULTS: Texts = texts!("faults": "sc" "tso" "pso" "ooo" "msi");

/// Returns the text for a name without a folder, given with its ending or without it.
fn text(path: &Path, ending: &str, texts: Texts) -> Option<&'static str> {
    let word = path.to_str()?;
    let name = word.strip_suffix(ending).unwrap_or(word);
    texts.iter().find(|t| t.0 == name).map(|t| t.1)
}

/// Returns the text of a machine: `tso` or `tso.spec`. `None` if it is not built in.
pub fn machine(path: &Path) -> Option<&'static str> {
    text(path, ".spec", MACHINES)
}

/// Returns the text of an interface: `machine` or `machine.interface`. `None` if it is not built
/// in.
pub fn interface(path: &Path) -> Option<&'static str> {
    text(path, ".interface", INTERFACES)
}

/// Returns the text of the faults of a machine: `tso.faults`. `None` if they are not built in.
pub fn faults(path: &Path) -> Option<&'static str> {
    let word = path.to_str().filter(|w| w.ends_with(".faults"))?;
    text(Path::new(word), ".faults", FAULTS)
}

/// Returns the names of the machines.
pub fn machine_names() -> Vec<&'static str> {
    MACHINES.iter().map(|t| t.0).collect()
}

/// Returns the names of the interfaces.
pub fn interface_names() -> Vec<&'static str> {
    INTERFACES.iter().map(|t| t.0).collect()
}
