//! Shared parts of the `cargo xtask` commands.
//!
//! The function `run` of a crate is the crate's command. The function `step`, which returns an
//! [`Outcome`](steps::Outcome), is its part of `cargo xtask test`. [`command`] and [`process`] run programs,
//! [`workspace`] builds them, and [`json`] writes results as JSON.

use std::error::Error;

pub mod command;
pub mod disturbance;
pub mod json;
pub mod packages;
pub mod process;
pub mod steps;
pub mod workspace;

/// Result of a command. Errors are only printed; no code distinguishes them.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Hidden command of `cargo xtask` that runs the emulated cable in its own process.
pub const CABLE_COMMAND: &str = "cable";
