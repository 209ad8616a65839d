//! Folders of this workspace, as cargo reports them, and its builds.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Result, command};

/// Returns a command of the cargo that runs this task, which may be one of several installed toolchains.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the command that builds `isolane` and `isolane-shape-main` in the release profile. Separate commands would
/// build the libraries twice, with different features.
pub fn build_commands() -> Command {
    let mut build = cargo();
    build.args(["build", "--release"]);
    build.args([
        "--package",
        "isolane-cli",
        "--package",
        "isolane-shape-main",
    ]);
    build
}

/// Builds examples of a package in the release profile.
pub fn build_examples(package: &str, examples: &[&str]) -> Result<()> {
    let mut build = cargo();
    build.args(["build", "--release", "--package", package]);
    for example in examples {
        build.args(["--example", example]);
    }
    command::run(&mut build)
}

/// Folders of the workspace, as `cargo metadata` reports them.
#[derive(Deserialize)]
pub struct Metadata {
    /// Folder of the workspace's manifest.
    pub workspace_root: PathBuf,
    /// Folder in which cargo builds, with environment and configuration taken into account.
    pub target_directory: PathBuf,
}

impl Metadata {
    /// Reads the folders from cargo.
    pub fn read() -> Result<Self> {
        cargo_metadata()
    }

    /// Path of the command `isolane` of the release build.
    pub fn isolane(&self) -> PathBuf {
        self.target_directory.join("release/isolane")
    }
}

/// Reads some fields of `cargo metadata`. All features are on, so optional dependencies are listed too.
pub fn cargo_metadata<T: DeserializeOwned>() -> Result<T> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--all-features"]);
    Ok(serde_json::from_slice(&command::output(&mut metadata)?)?)
}
