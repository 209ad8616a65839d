//! What the commands of `cargo xtask` share.
//!
//! A command is a function `run` of its crate; what `cargo xtask test` runs of it is its function `step`, which
//! returns an [`Outcome`](steps::Outcome). Programs are started by [`command`], built as [`workspace`] says, and
//! results that programs read are written by [`json`].

use std::error::Error;

pub mod command;
pub mod disturbance;
pub mod json;
pub mod packages;
pub mod steps;
pub mod workspace;

/// The result of a command. Failures end up as text for a person; nobody matches on them.
pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The argument by which the cable's process is told from a person's commands.
pub const CABLE_COMMAND: &str = "cable";
