//! Achievement of a disturbance inside the participants.

use serde::{Deserialize, Serialize};

/// Counts of a disturbance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Endpoints created.
    pub endpoints_joined: Option<u64>,
    /// Endpoints deleted.
    pub endpoints_left: Option<u64>,
    /// Announcements processed by the ping end, including its peers' first ones.
    pub announcements_ping: Option<u64>,
    /// Announcements processed by the pong end, including its peers' first ones.
    pub announcements_pong: Option<u64>,
    /// Serialised size of a bulk sample, in bytes.
    pub bulk_payload_bytes: Option<u32>,
    /// Bulk samples written.
    pub bulk_written: Option<u64>,
    /// True when all bulk samples were acknowledged at the end.
    pub bulk_acknowledged: Option<bool>,
    /// Bulk samples passed to the reader's callback.
    pub bulk_delivered: Option<u64>,
    /// Bulk samples retransmitted.
    pub bulk_repaired: Option<u64>,
    /// Datagrams of bulk samples lost by the cable's seeded loss.
    pub bulk_lost: Option<u64>,
    /// Achieved rate per second: announcements at the end that processed fewer, or bulk samples delivered.
    pub achieved_per_s: f64,
    /// Minimum rate per second for a valid run.
    pub least_per_s: f64,
    /// True when the minimum was reached and, with losses, samples were retransmitted.
    pub enough: bool,
}

/// Count at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Count at the ping end.
    pub ping: u64,
    /// Count at the pong end.
    pub pong: u64,
    /// Sum of both.
    pub total: u64,
}

impl Counted {
    /// Creates the counts of both ends.
    pub fn new(ping: u64, pong: u64) -> Counted {
        Counted {
            ping,
            pong,
            total: ping + pong,
        }
    }
}

/// Priority inversions of a run: activations of less urgent jobs that began while a more urgent sample waited, not
/// counting the activation already running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inversions {
    /// Inversions of the measured samples at the ping end.
    pub ping: u64,
    /// Inversions of the measured samples at the pong end.
    pub pong: u64,
    /// Inversions of the measured samples at both ends.
    pub total: u64,
    /// Inversions of samples of all levels at both ends.
    pub all_levels: u64,
    /// Datagrams of the measured samples with a timestamp. Without any, the other counts are meaningless.
    #[serde(default)]
    pub judged: Counted,
}
