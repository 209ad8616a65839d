//! Degradations of a datapath that otherwise works.

use std::fmt;

use crate::lane::Lane;

/// Degradation of a datapath that otherwise works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Kind of degradation, for programs: "no_multicast".
    pub code: &'static str,
    /// Affected lane, if it is a single one.
    pub lane: Option<Lane>,
    /// Sentence for people: what, why, and what to do.
    pub text: String,
}

impl Warning {
    /// Creates a warning that concerns no single lane.
    #[must_use]
    pub fn new(code: &'static str, text: String) -> Warning {
        Warning {
            code,
            lane: None,
            text,
        }
    }

    /// Creates a warning about a lane.
    #[must_use]
    pub fn of_lane(code: &'static str, lane: Lane, text: String) -> Warning {
        Warning {
            code,
            lane: Some(lane),
            text,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
