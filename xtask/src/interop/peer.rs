//! The other implementations: their packages, their versions, and how their programs are built.
//!
//! The programs are ours, `tests/interop/NAME/shape.*`, and have one command line (`peer.h` there).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cell::Axis;
use crate::workspace::Metadata;
use crate::{command, packages};

/// An implementation of DDS to meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    CycloneDds,
    FastDds,
}

/// A peer as this machine has it.
pub(super) struct Installed {
    pub(super) peer: Peer,
    /// Name and version, as in the JSON: "cyclonedds 0.10.2".
    pub(super) identity: String,
    /// Its program, or why there is none.
    pub(super) program: Result<PathBuf, String>,
}

impl Axis for Peer {
    const ALL: &'static [Self] = &[Self::CycloneDds, Self::FastDds];

    fn word(self) -> &'static str {
        match self {
            Self::CycloneDds => "cyclonedds",
            Self::FastDds => "fastdds",
        }
    }
}

impl Peer {
    /// The Debian package whose version is the peer's.
    fn package(self) -> &'static str {
        match self {
            Self::CycloneDds => "cyclonedds-dev",
            Self::FastDds => "libfastrtps-dev",
        }
    }

    /// Finds the peer and builds its program under `target/interop/NAME`. That it is absent or
    /// does not build is a fact about its cells, not an error here.
    pub(super) fn install(self, metadata: &Metadata) -> Installed {
        let name = self.word();
        let (identity, program) = match packages::version(self.package()) {
            Ok(Some(version)) => (
                format!("{name} {}", upstream(&version)),
                self.build(metadata),
            ),
            Ok(None) => {
                let remedy = format!(
                    "{} is not installed: `cargo xtask test` as root installs it",
                    self.package()
                );
                (format!("{name} (absent)"), Err(remedy.into()))
            }
            Err(error) => (format!("{name} (unknown)"), Err(error)),
        };
        Installed {
            peer: self,
            identity,
            program: program.map_err(|error| error.to_string()),
        }
    }

    fn build(self, metadata: &Metadata) -> crate::Result<PathBuf> {
        let sources = metadata.workspace_root.join("tests/interop");
        let folder = metadata.target_directory.join("interop").join(self.word());
        fs::create_dir_all(&folder)?;
        match self {
            Self::CycloneDds => build_cyclonedds(&sources, &folder)?,
            Self::FastDds => build_fastdds(&sources, &folder)?,
        }
        Ok(folder.join("shape"))
    }
}

fn build_cyclonedds(sources: &Path, folder: &Path) -> crate::Result<()> {
    let mut idlc = Command::new("idlc");
    idlc.args(["-D", "PLAIN"])
        .arg(sources.join("ShapeType.idl"))
        .current_dir(folder);
    command::run(&mut idlc)?;
    let mut compiler = Command::new("gcc");
    compiler
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(folder)
        .arg(sources.join("cyclonedds/shape.c"))
        .arg(folder.join("ShapeType.c"))
        .arg("-o")
        .arg(folder.join("shape"))
        .arg("-lddsc");
    command::run(&mut compiler)
}

fn build_fastdds(sources: &Path, folder: &Path) -> crate::Result<()> {
    let mut compiler = Command::new("g++");
    compiler
        .args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"])
        .arg(sources.join("fastdds/shape.cpp"))
        .arg("-o")
        .arg(folder.join("shape"))
        .args(["-lfastrtps", "-lfastcdr"]);
    command::run(&mut compiler)
}

/// The version its authors gave it, out of Debian's `[epoch:]version[+repacked][-revision]`.
fn upstream(version: &str) -> &str {
    let version = version.split_once(':').map_or(version, |(_, rest)| rest);
    let version = version.rsplit_once('-').map_or(version, |(rest, _)| rest);
    version.split_once('+').map_or(version, |(rest, _)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upstream_version_is_without_what_the_distribution_added() {
        assert_eq!(upstream("0.10.2-2"), "0.10.2");
        assert_eq!(upstream("2.9.1+ds-1+deb12u2"), "2.9.1");
        assert_eq!(upstream("4:12.2.0-3"), "12.2.0");
    }
}
