//! State of all participants at one time: the JSON form (`--json`), one line each.

use std::time::SystemTime;

use isolane::observe::Snapshot;
use serde::Serialize;

use super::connection::Connection;
use super::rates::Rates;

/// All participants at one time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) schema: &'static str,
    /// Time in RFC 3339 format.
    pub(crate) at: String,
    pub(crate) participants: Vec<Seen>,
    /// Reason why there are no participants.
    pub(crate) why_none: Option<&'static str>,
}

/// Observed participant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Seen {
    /// Process id in this namespace.
    pub(crate) pid: u32,
    /// Number of the participant within the process.
    pub(crate) number: u32,
    pub(crate) program: Option<String>,
    pub(crate) user_id: Option<u32>,
    /// Reason why no new snapshot arrives.
    pub(crate) problem: Option<String>,
    pub(crate) snapshot: Option<Snapshot>,
    /// Rates between the last two snapshots.
    pub(crate) rates: Option<Rates>,
}

/// Explanation of why running participants may not be found.
pub(crate) const WHY_NONE: &str = "no participant that can be looked at runs in this network \
    namespace: `isolane pub` and `sub` can be, a program of your own that is built with \
    Builder::observable(true), and nobody in another network namespace (ip netns exec NAME isolane \
    top; a container has its own)";

impl Sample {
    pub(super) fn new(participants: Vec<Seen>) -> Self {
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        Self {
            schema: "isolane/top/2",
            at: now.to_string(),
            why_none: participants.is_empty().then_some(WHY_NONE),
            participants,
        }
    }

    /// Returns whether all participants have rates.
    pub(crate) fn has_rates(&self) -> bool {
        let mut all = self.participants.iter();
        all.all(|seen| seen.rates.is_some())
    }

    /// Returns whether any participant has a snapshot.
    pub(crate) fn has_snapshot(&self) -> bool {
        let mut all = self.participants.iter();
        all.any(|seen| seen.snapshot.is_some())
    }
}

impl Seen {
    pub(super) fn of(connection: &Connection) -> Self {
        let process = connection.process.as_ref();
        let both = connection.before.as_ref().zip(connection.latest.as_ref());
        Self {
            pid: process.map_or(connection.address.pid, |process| process.pid),
            number: connection.address.number,
            program: process.and_then(|process| process.program.clone()),
            user_id: process.map(|process| process.user_id),
            problem: connection.problem(),
            snapshot: connection.latest.clone(),
            rates: both.and_then(|(before, now)| Rates::between(before, now)),
        }
    }

    /// Most critical level in use, which determines the order; 0 if unknown.
    pub(super) fn highest_level(&self) -> u8 {
        let lanes = self.snapshot.iter().flat_map(|snapshot| &snapshot.lanes);
        lanes.filter_map(|lane| lane.level).max().unwrap_or(0)
    }
}
