//! The systems that are compared, and how their programs are built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::Metadata;
use crate::{Result, command, packages};

/// A system with its program.
#[derive(Debug)]
pub(super) struct System {
    /// Name, version and datapath, as in the JSON: "cyclonedds 0.10.2 udp".
    pub(super) identity: String,
    /// One end of a measurement.
    pub(super) program: PathBuf,
}

impl System {
    /// How many there are. The first is isolane, which the others are compared with.
    pub(super) const COUNT: usize = 3;

    /// Builds all programs that cargo does not. A system that is absent is an error that names it.
    pub(super) fn build_all(metadata: &Metadata) -> Result<[Self; Self::COUNT]> {
        let sources = metadata.workspace_root.join("tests/peers");
        let folder = |name| -> Result<PathBuf> {
            let folder = metadata.target_directory.join("peers").join(name);
            fs::create_dir_all(&folder)?;
            Ok(folder)
        };
        let (cyclonedds, fastdds) = (folder("cyclonedds")?, folder("fastdds")?);
        let isolane = Self {
            identity: "isolane udp".into(),
            program: metadata
                .target_directory
                .join("release/examples/measured_end"),
        };
        let cyclonedds = Self {
            identity: identity("cyclonedds", "cyclonedds-dev")?,
            program: build_cyclonedds(&sources, &cyclonedds)?,
        };
        let fastdds = Self {
            identity: identity("fastdds", "libfastrtps-dev")?,
            program: build_fastdds(&sources, &fastdds)?,
        };
        Ok([isolane, cyclonedds, fastdds])
    }
}

/// "NAME VERSION udp", the version being that of the package, without what Debian added.
fn identity(name: &str, package: &str) -> Result<String> {
    let version = packages::version(package)?.ok_or_else(|| {
        format!(
            "{name} is absent: {package} is not installed; `cargo xtask test` as root installs it"
        )
    })?;
    let upstream = version.split(['-', '+']).next().unwrap_or(&version);
    Ok(format!("{name} {upstream} udp"))
}

fn build_cyclonedds(sources: &Path, folder: &Path) -> Result<PathBuf> {
    let mut idlc = Command::new("idlc");
    idlc.arg(sources.join("Message.idl")).current_dir(folder);
    command::run(&mut idlc)?;
    let program = folder.join("end");
    let mut compiler = Command::new("gcc");
    compiler
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(folder)
        .arg(sources.join("cyclonedds/end.c"))
        .arg(folder.join("Message.c"))
        .arg("-o")
        .arg(&program)
        .arg("-lddsc");
    command::run(&mut compiler)?;
    Ok(program)
}

fn build_fastdds(sources: &Path, folder: &Path) -> Result<PathBuf> {
    let program = folder.join("end");
    let mut compiler = Command::new("g++");
    compiler
        .args(["-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror"])
        .arg(sources.join("fastdds/end.cpp"))
        .arg("-o")
        .arg(&program)
        .args(["-lfastrtps", "-lfastcdr"]);
    command::run(&mut compiler)?;
    Ok(program)
}
