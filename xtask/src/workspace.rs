//! What cargo knows about this workspace: where it is, where it builds, who depends on whom.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use crate::{Result, command};

/// The cargo that runs this task; also right where several toolchains are installed.
pub(crate) fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds `isolane` and `isolane-shape-main` as they are released; in one go, since each alone would have the
/// libraries built again with features of its own.
pub(crate) fn build_commands() -> Command {
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

/// The parts of `cargo metadata` that are used here.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    /// The folder of the workspace's manifest.
    pub(crate) workspace_root: PathBuf,
    /// Where cargo builds, whatever the environment or configuration says.
    pub(crate) target_directory: PathBuf,
    /// Package ids of this workspace's own packages.
    pub(crate) workspace_members: Vec<String>,
    pub(crate) packages: Vec<Package>,
    pub(crate) resolve: Resolve,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) manifest_path: PathBuf,
}

/// Who depends on whom, after features, renames and versions were settled.
#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Dependency>,
}

#[derive(Deserialize)]
pub(crate) struct Dependency {
    /// The name that sources use: after renaming, and of the library where it differs from the
    /// package's.
    pub(crate) name: String,
    pub(crate) dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
pub(crate) struct DependencyKind {
    /// `None` for a normal dependency, else "dev" or "build".
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// Asks cargo, with all features on, so that optional dependencies are listed too.
    pub(crate) fn read() -> Result<Self> {
        let mut metadata = cargo();
        metadata.args(["metadata", "--format-version", "1", "--all-features"]);
        Ok(serde_json::from_slice(&command::output(&mut metadata)?)?)
    }

    /// The command `isolane` as a release build leaves it.
    pub(crate) fn isolane(&self) -> PathBuf {
        self.target_directory.join("release/isolane")
    }
}
