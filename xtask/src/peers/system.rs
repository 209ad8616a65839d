//! The systems that are compared, and their programs.

use std::path::PathBuf;

use crate::workspace::Metadata;
use crate::{Result, foreign, packages};

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
        let folder = metadata.target_directory.join("peers");
        let isolane = Self {
            identity: "isolane udp".into(),
            program: metadata
                .target_directory
                .join("release/examples/measured_end"),
        };
        let cyclonedds = Self {
            identity: identity("cyclonedds", foreign::CYCLONEDDS)?,
            program: foreign::build_cyclonedds(
                &sources.join("cyclonedds/end.c"),
                &sources.join("Message.idl"),
                &[],
                &folder.join("cyclonedds"),
            )?,
        };
        let fastdds = Self {
            identity: identity("fastdds", foreign::FASTDDS)?,
            program: foreign::build_fastdds(
                &sources.join("fastdds/end.cpp"),
                &folder.join("fastdds"),
            )?,
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
    Ok(format!("{name} {} udp", foreign::upstream(&version)))
}
