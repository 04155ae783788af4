//! Random programs that log their own accesses (`trace --generate`).

use crate::args::{Format, TraceArgs};
use crate::output::{print, print_object};
use crate::pipeline::files::write_text;
use crate::pipeline::{Session, file_error};
use mu_base::{Diagnostic, Stage};
use mu_traces::generate::{GeneratorSettings, ProgramLanguage, generate};
use serde_json::json;

/// Threads of a program without `--threads`.
const THREADS: u32 = 4;

/// Writes a program.
pub(super) fn write(session: &Session, args: &TraceArgs) -> Result<u8, Diagnostic> {
    let threads = args.common.threads.unwrap_or(THREADS);
    if u64::from(threads) * u64::from(args.operations) > 4_000_000 {
        let message = format!(
            "a program has at most 4,000,000 operations, not {threads} times {}",
            args.operations
        );
        return Err(Diagnostic::new(Stage::Usage, message));
    }
    let settings = GeneratorSettings {
        threads,
        addresses: args.addresses,
        operations: args.operations,
        seed: args.seed,
        language: args.language,
    };
    let files = generate(&settings);
    let Some(folder) = &args.out else {
        let [(_, text)] = &files[..] else {
            let message = format!(
                "a program in `{}` has several files: `--out DIR` sets their folder",
                args.language.name()
            );
            return Err(Diagnostic::new(Stage::Usage, message));
        };
        match args.common.format {
            Format::Text => print(text)?,
            Format::Json => print_object(json!({
                "files": [{ "name": "trace.c", "text": text }],
                "commands": commands(&["trace.c".to_string()], "./trace", args.language),
            }))?,
        }
        return Ok(0);
    };
    mu_base::host::fs::create_dir_all(folder)
        .map_err(|e| file_error("cannot create the folder", folder, &e))?;
    let mut written = Vec::new();
    for (name, text) in &files {
        let path = folder.join(name);
        write_text(&path, text)?;
        written.push(path.display().to_string());
    }
    let mut program = folder.join("trace").display().to_string();
    if !program.contains('/') {
        program = format!("./{program}");
    }
    let commands = commands(&written, &program, args.language);
    match args.common.format {
        Format::Json => print_object(json!({
            "files": written.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
            "commands": commands,
        }))?,
        Format::Text if session.common.quiet => {}
        Format::Text => print(&format!("wrote {}\n{}\n", written.join(", "), commands.join("\n")))?,
    }
    Ok(0)
}

/// Returns the commands that compile, run, and check a program.
fn commands(files: &[String], program: &str, language: ProgramLanguage) -> [String; 2] {
    let model = match language {
        ProgramLanguage::RiscV => "rvwmo",
        _ => "tso",
    };
    [
        format!("cc -O2 -pthread {} -o {program}", files.join(" ")),
        format!("{program} 10 | mu-check trace - --against {model}"),
    ]
}
