//! Vendors of shapes test programs: the build of each program, and the known deviations.

use std::path::{Path, PathBuf};

use isolane_support::workspace::{Metadata, build_commands};
use isolane_support::{Result, command};
use strum::{IntoStaticStr, VariantArray};

use crate::foreign;

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Vendor {
    Isolane,
    CycloneDds,
    FastDds,
}

impl Vendor {
    pub(crate) fn word(self) -> &'static str {
        self.into()
    }
}

/// The programs, built.
pub(crate) struct Programs {
    isolane: PathBuf,
    /// Programs for XCDR1 and for XCDR2: see the source.
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

    /// Returns the program for these options.
    pub(crate) fn of(&self, vendor: Vendor, options: &str) -> &Path {
        let sends_xcdr2 = options.contains("-x 2");
        match vendor {
            Vendor::Isolane => &self.isolane,
            Vendor::CycloneDds => &self.cyclonedds[usize::from(sends_xcdr2)],
            Vendor::FastDds => &self.fastdds,
        }
    }
}

/// Undocumented deviations of one implementation from the contract, as the subscriber or on either side. Each time, two
/// programs of that vendor are checked for the same deviation.
pub(super) const KNOWN: &[Known] = &[
    Known {
        case: "a short life",
        vendor: Vendor::FastDds,
        as_subscriber_only: true,
        why: "its readers keep what a writer's LIFESPAN has ended",
    },
    Known {
        case: "access of instances is less than of a topic",
        vendor: Vendor::FastDds,
        as_subscriber_only: false,
        why: "it does not compare PRESENTATION",
    },
    Known {
        case: "coherent is more than not",
        vendor: Vendor::FastDds,
        as_subscriber_only: false,
        why: "it does not compare PRESENTATION",
    },
    Known {
        case: "a partition with wildcards",
        vendor: Vendor::CycloneDds,
        as_subscriber_only: false,
        why: "its names have no sets of characters",
    },
    Known {
        case: "partitions apart",
        vendor: Vendor::CycloneDds,
        as_subscriber_only: false,
        why: "it reports a PARTITION that differs as an incompatible policy",
    },
    Known {
        case: "a time-based filter",
        vendor: Vendor::CycloneDds,
        as_subscriber_only: true,
        why: "its readers ignore the filter",
    },
    Known {
        case: "representations apart",
        vendor: Vendor::FastDds,
        as_subscriber_only: false,
        why: "it does not report representations that differ",
    },
    Known {
        case: "a writer that leaves",
        vendor: Vendor::FastDds,
        as_subscriber_only: true,
        why: "its readers report an end only where a writer has unregistered",
    },
];

/// Cases that fail between two other vendors although each passes with itself and with isolane, according to captures.
pub(super) const BETWEEN: &[Between] = &[
    Between {
        case: "instances unregistered",
        publisher: Vendor::CycloneDds,
        subscriber: Vendor::FastDds,
        why: "the publisher sends the key of an ended instance without its hash, which the subscriber ignores",
    },
    Between {
        case: "instances disposed",
        publisher: Vendor::FastDds,
        subscriber: Vendor::CycloneDds,
        why: "the publisher sends the key hash of an ended instance without the key, which the subscriber ignores",
    },
    Between {
        case: "no history for a volatile subscriber",
        publisher: Vendor::CycloneDds,
        subscriber: Vendor::FastDds,
        why: "the publisher offers its history to VOLATILE readers too, and the subscriber requests it",
    },
];

/// Known failure between a publisher's and a subscriber's vendor.
pub(super) struct Between {
    pub(super) case: &'static str,
    pub(super) publisher: Vendor,
    pub(super) subscriber: Vendor,
    pub(super) why: &'static str,
}

/// Known deviation of one implementation.
pub(super) struct Known {
    pub(super) case: &'static str,
    pub(super) vendor: Vendor,
    pub(super) as_subscriber_only: bool,
    pub(super) why: &'static str,
}

#[cfg(test)]
mod tests {
    use super::super::case::CASES;
    use super::*;

    #[test]
    fn what_is_known_is_of_a_case_that_there_is() {
        let known = KNOWN.iter().map(|known| known.case);
        for name in known.chain(BETWEEN.iter().map(|between| between.case)) {
            assert!(CASES.iter().any(|case| case.name == name), "{name}");
        }
    }

    #[test]
    fn what_two_do_not_agree_on_is_never_isolanes() {
        for between in BETWEEN {
            let sides = [between.publisher, between.subscriber];
            assert!(!sides.contains(&Vendor::Isolane), "{}", between.case);
            assert_ne!(between.publisher, between.subscriber);
        }
    }
}
