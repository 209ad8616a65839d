//! What was seen at one moment of all participants: the form of `--json`, a line each.

use std::time::SystemTime;

use isolane::observe::Snapshot;
use serde::Serialize;

use super::connection::Connection;
use super::rates::Rates;

/// All participants at one moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    pub(crate) schema: &'static str,
    /// RFC 3339.
    pub(crate) at: String,
    pub(crate) participants: Vec<Seen>,
    /// Why there are none.
    pub(crate) why_none: Option<&'static str>,
}

/// One participant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Seen {
    /// Its process, as this one sees it.
    pub(crate) pid: u32,
    /// Which of the process' participants it is.
    pub(crate) number: u32,
    pub(crate) program: Option<String>,
    pub(crate) user_id: Option<u32>,
    /// Why nothing new comes of it.
    pub(crate) problem: Option<String>,
    /// What it said last.
    pub(crate) snapshot: Option<Snapshot>,
    /// From the snapshot before that one on.
    pub(crate) rates: Option<Rates>,
}

/// Why nobody may be found although something runs.
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

    /// Whether all participants that were seen have rates.
    pub(crate) fn has_rates(&self) -> bool {
        let mut all = self.participants.iter();
        all.all(|seen| seen.rates.is_some())
    }

    /// Whether there is anything to be seen.
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

    /// The most critical level in use, which tells who comes first; 0 if none is, or it is not known.
    pub(super) fn highest_level(&self) -> u8 {
        let lanes = self.snapshot.iter().flat_map(|snapshot| &snapshot.lanes);
        lanes.filter_map(|lane| lane.level).max().unwrap_or(0)
    }
}
