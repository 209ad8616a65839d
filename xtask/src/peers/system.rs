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
    /// What it is told beside what all are told.
    pub(super) arguments: &'static [&'static str],
}

impl System {
    /// How many there are: isolane, Cyclone DDS and Fast DDS over sockets, and isolane over lanes.
    pub(super) const COUNT: usize = 4;
    /// Which are compared with which, by their places.
    pub(super) const COMPARED: [(usize, usize); 5] = [(0, 1), (0, 2), (3, 1), (3, 2), (3, 0)];

    /// Builds all programs that cargo does not. A system that is absent is an error that names it.
    pub(super) fn build_all(metadata: &Metadata) -> Result<[Self; Self::COUNT]> {
        let sources = metadata.workspace_root.join("tests/peers");
        let folder = metadata.target_directory.join("peers");
        let isolane = |datapath: &str, arguments| Self {
            identity: format!("isolane {datapath}"),
            program: metadata
                .target_directory
                .join("release/examples/measured_end"),
            arguments,
        };
        let cyclonedds = Self {
            identity: identity("cyclonedds", foreign::CYCLONEDDS)?,
            program: foreign::build_cyclonedds(
                &sources.join("cyclonedds/end.c"),
                &sources.join("Message.idl"),
                &[],
                &folder.join("cyclonedds"),
            )?,
            arguments: &[],
        };
        let fastdds = Self {
            identity: identity("fastdds", foreign::FASTDDS)?,
            program: foreign::build_fastdds(
                &sources.join("fastdds/end.cpp"),
                &folder.join("fastdds"),
            )?,
            arguments: &[],
        };
        // As long as datagrams of Cyclone DDS are: both leave longer ones than a frame to IP. By lane there
        // is no such choice.
        let by_socket = isolane("udp", &["--datagram-bytes", "14720"][..]);
        let by_lane = isolane("xdp", &["--datapath", "xdp"][..]);
        Ok([by_socket, cyclonedds, fastdds, by_lane])
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
