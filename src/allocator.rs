//! The allocator of the program, and the one setting that it needs. Values are small and many: a search takes 3 to 12 % less time than with glibc's.
//!
//! Under a bound of the user's memory that is freed is given back at once, not a tenth of a second later: a search that spills its table to disk, or empties its
//! caches, looks at what the process holds to tell whether that was enough. Without a bound it would be a loss: runs of a few hundredths of a second take up to a
//! fifth longer.
//!
//! This is the only unsafe code of the program: two calls of C functions that read and write a number.

use std::ffi::{c_int, c_long};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of the option `purge_delay` in the allocator's second version, and its value unless someone sets it, in milliseconds.
const PURGE_DELAY: (c_int, c_long) = (15, 10);

unsafe extern "C" {
    fn mi_option_get(option: c_int) -> c_long;
    fn mi_option_set(option: c_int, value: c_long);
}

/// To be called first: in a run with a bound on its memory what is freed goes back to the system at once, unless the environment says otherwise
/// (`MIMALLOC_PURGE_DELAY`).
pub fn set_up() {
    let bounds = |word: std::ffi::OsString| word.to_string_lossy().starts_with("--max-memory");
    if !std::env::args_os().any(bounds) {
        return;
    }
    let (option, usual) = PURGE_DELAY;
    // SAFETY: both functions take any number of an option, check it, and read or write one number that the allocator holds in an atomic or looks at later;
    // no other thread is there yet. An option that has another value than this one usually has, because it was renumbered or set, is left alone.
    unsafe {
        if mi_option_get(option) == usual {
            mi_option_set(option, 0);
        }
    }
}
