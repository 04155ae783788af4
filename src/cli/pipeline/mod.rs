//! The stages that commands share: from files and options to models, formulas, engines, processes,
//! and checkpoints.

mod begun;
pub(crate) mod checkpoint;
#[cfg_attr(not(feature = "cluster"), path = "without_cluster.rs")]
pub(crate) mod cluster;
pub(crate) mod engines;
pub(crate) mod files;
pub(crate) mod folder_lock;
#[cfg(feature = "cluster")]
mod hosts;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod operation_log;
#[cfg_attr(target_arch = "wasm32", path = "../browser/process.rs")]
pub(crate) mod process;
pub(crate) mod properties;
mod session;
#[cfg(feature = "cluster")]
mod shares;
pub(crate) mod systems;

pub use self::session::Session;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use self::session::end_with_input;
pub(crate) use self::session::symmetries;
pub(crate) use mu_base::files::{file_error, read_source, read_text};
