//! The other implementations: their packages, their versions, and their programs.
//!
//! The programs are ours, `lab/interop/programs/NAME/shape.*`, and have one command line (`peer.h` there).

use std::path::PathBuf;

use super::cell::Axis;
use crate::foreign;
use isolane_support::packages;
use isolane_support::workspace::Metadata;

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
            Self::CycloneDds => foreign::CYCLONEDDS,
            Self::FastDds => foreign::FASTDDS,
        }
    }

    /// Finds the peer and builds its program under `target/interop/NAME`. That it is absent or
    /// does not build is a fact about its cells, not an error here.
    pub(super) fn install(self, metadata: &Metadata) -> Installed {
        let name = self.word();
        let (identity, program) = match packages::version(self.package()) {
            Ok(Some(version)) => (
                format!("{name} {}", foreign::upstream(&version)),
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

    fn build(self, metadata: &Metadata) -> isolane_support::Result<PathBuf> {
        let sources = metadata.workspace_root.join("lab/interop/programs");
        let folder = metadata.target_directory.join("interop").join(self.word());
        match self {
            Self::CycloneDds => foreign::build_cyclonedds(
                &sources.join("cyclonedds/shape.c"),
                &sources.join("ShapeType.idl"),
                &["-D", "PLAIN"],
                &folder,
            ),
            Self::FastDds => foreign::build_fastdds(&sources.join("fastdds/shape.cpp"), &folder),
        }
    }
}
