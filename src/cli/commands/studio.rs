//! Page on this machine (`studio`). The server is the layer `studio`; runs are processes of this
//! program.

use crate::args::StudioArgs;
use crate::output;
use crate::pipeline::{Session, file_error};
use mu_base::limits::available_memory;
use mu_base::{Diagnostic, Stage};
use mu_studio::{Limits, ServerSettings, Studio};

/// Memory limit of a run if the machine's memory is unknown.
const MEMORY: u64 = 2 << 30;

/// Serves until an interrupt.
pub(crate) fn run(session: &Session, args: &StudioArgs) -> Result<u8, Diagnostic> {
    let program = std::env::current_exe().map_err(|e| {
        Diagnostic::new(
            Stage::Internal,
            format!("cannot locate this program to run what the page asks for: {e}"),
        )
    })?;
    let runs = usize::from(args.runs);
    let shared = available_memory().map_or(MEMORY, |m| m / 10 * 8 / (2 * u64::from(args.runs)));
    let limits = Limits {
        runs,
        time: args.timeout,
        memory: args.max_memory.unwrap_or(shared),
        threads: args.threads,
    };
    let studio = Studio::bind(ServerSettings {
        folder: args.folder.clone(),
        program,
        port: args.port,
        limits,
    })
    .map_err(|e| file_error("cannot serve", &args.folder, &e))?;
    output::print(&format!("{}\n", studio.address()))?;
    let failed =
        |e: std::io::Error| Diagnostic::new(Stage::Internal, format!("cannot serve the page: {e}"));
    studio.serve(&session.budget.interrupt_flag()).map_err(failed)?;
    Ok(0)
}
