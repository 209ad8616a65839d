//! The targets. Each takes any bytes, and panics if something is wrong.

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
pub use crate::engine::engine;

/// A target, and what it is called everywhere: its corpus, its program, its artifacts.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// What takes the bytes.
    pub run: fn(&[u8]),
}

/// Every target.
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
        name: "engine",
        run: engine,
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

/// The target of this name.
#[must_use]
pub fn named(name: &str) -> Option<Target> {
    ALL.into_iter().find(|target| target.name == name)
}
