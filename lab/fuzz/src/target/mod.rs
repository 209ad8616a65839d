//! Fuzz targets. Each target accepts any bytes, and panics if a check fails.

mod cdr;
mod datapath;
mod discovery;
mod frames;
mod participant;
mod rtps;

use isolane_model::System;

pub(crate) use self::cdr::samples as cdr_samples;
pub use self::{
    cdr::cdr, datapath::datapath, discovery::discovery, frames::frames, participant::participant,
    rtps::rtps,
};
pub use crate::protocol::protocol;

/// Target with its name. Its corpus, program and artifacts have the same name.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name of the target.
    pub name: &'static str,
    /// Function that runs an input.
    pub run: fn(&[u8]),
}

/// All targets.
pub const ALL: [Target; 8] = [
    target("rtps", rtps),
    target("discovery", discovery),
    target("cdr", cdr),
    target("frames", frames),
    target("protocol", protocol),
    target("datapath", datapath),
    target("participant", participant),
    target("model", model),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Returns the target with this name.
#[must_use]
pub fn named(name: &str) -> Option<Target> {
    ALL.into_iter().find(|target| target.name == name)
}

/// Target `model`: the text of a system description. The result must be a system that can be printed and parsed again,
/// or problems with locations in the text.
pub fn model(bytes: &[u8]) {
    match System::from_bytes(bytes, "input.toml", isolane::DATAPATHS) {
        Ok(system) => {
            let printed = system.to_toml();
            let again = System::from_toml(&printed, "printed.toml", isolane::DATAPATHS);
            let again = again.expect("what is printed reads back");
            assert_eq!(again.to_toml(), printed);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "refused without a reason");
            let text = String::from_utf8_lossy(bytes);
            for problem in problems {
                if let Some(span) = problem.span() {
                    assert!(
                        text.get(span.clone()).is_some(),
                        "{span:?} is not in the text"
                    );
                }
                assert!(!format!("{problem:#}").is_empty());
            }
        }
    }
}
