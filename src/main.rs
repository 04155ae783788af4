//! The `mu-check` command: all of it is in [`mu_check::cli`].

fn main() -> std::process::ExitCode {
    mu_check::cli::run()
}
