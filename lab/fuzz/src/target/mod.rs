//! Fuzz targets. Each accepts any bytes and panics on a violation.

mod cdr;
mod datapath;
mod discovery;
mod frames;
mod model;
mod participant;
mod rtps;

pub(crate) use self::cdr::samples as cdr_samples;
pub use self::{
    cdr::cdr, datapath::datapath, discovery::discovery, frames::frames, model::model,
    participant::participant, rtps::rtps,
};
pub use crate::protocol::protocol;

/// Target with its name, which its corpus, program and artifacts share.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the target.
    pub name: &'static str,
    /// Function that runs an input.
    pub run: fn(&[u8]),
}

/// All targets.
pub const ALL: [Target; 8] = [
    Target {
        name: "rtps",
        run: rtps,
    },
    Target {
        name: "discovery",
        run: discovery,
    },
    Target {
        name: "cdr",
        run: cdr,
    },
    Target {
        name: "frames",
        run: frames,
    },
    Target {
        name: "protocol",
        run: protocol,
    },
    Target {
        name: "datapath",
        run: datapath,
    },
    Target {
        name: "participant",
        run: participant,
    },
    Target {
        name: "model",
        run: model,
    },
];

/// Target with the given name.
#[must_use]
pub fn named(name: &str) -> Option<Target> {
    ALL.into_iter().find(|target| target.name == name)
}
