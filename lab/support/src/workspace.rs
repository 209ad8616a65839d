//! Folders and builds of this workspace, as cargo knows them.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Result, command};

/// The cargo that runs this task; also right where several toolchains are installed.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds `isolane` and `isolane-shape-main` in the release profile, in one call: separate calls would rebuild the
/// libraries with different features.
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

/// The folders of the workspace, as `cargo metadata` names them.
#[derive(Deserialize)]
pub struct Metadata {
    /// Folder of the workspace's manifest.
    pub workspace_root: PathBuf,
    /// Folder where cargo builds, whatever the environment or configuration says.
    pub target_directory: PathBuf,
}

impl Metadata {
    /// Reads it from cargo.
    pub fn read() -> Result<Self> {
        cargo_metadata()
    }

    /// The command `isolane` as a release build leaves it.
    pub fn isolane(&self) -> PathBuf {
        self.target_directory.join("release/isolane")
    }
}

/// Reads some fields of `cargo metadata`, with all features on, so that optional dependencies are listed too.
pub fn cargo_metadata<T: DeserializeOwned>() -> Result<T> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--all-features"]);
    Ok(serde_json::from_slice(&command::output(&mut metadata)?)?)
}
