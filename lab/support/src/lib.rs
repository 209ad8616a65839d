//! Shared parts of the `cargo xtask` commands.
//!
//! A command is a function `run` of its crate; its part in `cargo xtask test` is the function `step`, which returns an
//! [`Outcome`](steps::Outcome). [`command`] and [`process`] run programs, [`workspace`] builds them, and [`json`]
//! writes results for programs.

use std::error::Error;

pub mod command;
pub mod disturbance;
pub mod json;
pub mod packages;
pub mod process;
pub mod steps;
pub mod workspace;

/// Result of a command. Failures become text for a person; no code matches on them.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Hidden command of the cable's process.
pub const CABLE_COMMAND: &str = "cable";
