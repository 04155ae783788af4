//! The `mu-check` command: all of it is in [`mu_check::cli`].

#[cfg(feature = "mimalloc")]
mod allocator;

fn main() -> std::process::ExitCode {
    #[cfg(feature = "mimalloc")]
    allocator::set_up();
    mu_check::cli::run()
}
