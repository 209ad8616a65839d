//! Whose program it is, and where it is built.

use std::path::{Path, PathBuf};

use crate::foreign;
use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vendor {
    Isolane,
    CycloneDds,
    FastDds,
}

impl Vendor {
    pub(crate) const ALL: [Self; 3] = [Self::Isolane, Self::CycloneDds, Self::FastDds];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Isolane => "isolane",
            Self::CycloneDds => "cyclonedds",
            Self::FastDds => "fastdds",
        }
    }
}

/// The programs, built.
pub(crate) struct Programs {
    isolane: PathBuf,
    /// Of XCDR1 and of XCDR2: see its source.
    cyclonedds: [PathBuf; 2],
    fastdds: PathBuf,
}

impl Programs {
    pub(crate) fn build(metadata: &Metadata) -> Result<Self> {
        command::run(&mut build_commands())?;
        let sources = metadata.workspace_root.join("lab/interop/programs");
        let folder = metadata.target_directory.join("interop/shape_main");
        let cyclonedds = |representation: &str, options: &[&str]| {
            foreign::build_cyclonedds(
                &sources.join("cyclonedds/shape_main.c"),
                &sources.join("ShapeType.idl"),
                options,
                &folder.join("cyclonedds").join(representation),
            )
        };
        Ok(Self {
            isolane: metadata.isolane().with_file_name("isolane-shape-main"),
            cyclonedds: [
                cyclonedds("xcdr1", &["-D", "PLAIN"])?,
                cyclonedds("xcdr2", &[])?,
            ],
            fastdds: foreign::build_fastdds(
                &sources.join("fastdds/shape_main.cpp"),
                &folder.join("fastdds"),
            )?,
        })
    }

    /// The program for these options.
    pub(crate) fn of(&self, vendor: Vendor, options: &str) -> &Path {
        let sends_xcdr2 = options.contains("-x 2");
        match vendor {
            Vendor::Isolane => &self.isolane,
            Vendor::CycloneDds => &self.cyclonedds[usize::from(sends_xcdr2)],
            Vendor::FastDds => &self.fastdds,
        }
    }
}
