//! What a disturbance inside the participants achieved: one that did not disturb shows nothing.

use serde::{Deserialize, Serialize};

/// What went on beside the round trips, as counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Endpoints that appeared.
    pub endpoints_joined: Option<u64>,
    /// Endpoints that left.
    pub endpoints_left: Option<u64>,
    /// Announcements the ping end took in, its peers' first ones included.
    pub announcements_ping: Option<u64>,
    /// Announcements the pong end took in, its peers' first ones included.
    pub announcements_pong: Option<u64>,
    /// The serialised size of a bulk sample.
    pub bulk_payload_bytes: Option<u32>,
    /// Bulk samples written.
    pub bulk_written: Option<u64>,
    /// Whether all were acknowledged in the end.
    pub bulk_acknowledged: Option<bool>,
    /// Bulk samples handed to the reader's callback.
    pub bulk_delivered: Option<u64>,
    /// Bulk samples sent again.
    pub bulk_repaired: Option<u64>,
    /// Datagrams of bulk samples that the cable lost on purpose.
    pub bulk_lost: Option<u64>,
    /// Announcements taken in by the end that took in fewer, or bulk samples delivered, a second.
    pub achieved_per_s: f64,
    /// How many a second make a disturbance.
    pub least_per_s: f64,
    /// Whether there were that many and, where losses are to be repaired, repairs.
    pub enough: bool,
}

/// A count of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// At the ping end.
    pub ping: u64,
    /// At the pong end.
    pub pong: u64,
    /// At both.
    pub total: u64,
}

impl Counted {
    /// The counts of both ends.
    pub fn new(ping: u64, pong: u64) -> Counted {
        Counted {
            ping,
            pong,
            total: ping + pong,
        }
    }
}

/// Priority inversions of a run: activations of less urgent jobs that began while a more urgent
/// sample was waiting, beyond the one that was running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inversions {
    /// That the measured samples suffered at the ping end.
    pub ping: u64,
    /// That they suffered at the pong end.
    pub pong: u64,
    /// That they suffered at both.
    pub total: u64,
    /// That samples of all levels suffered at both.
    pub all_levels: u64,
    /// Datagrams of the measured samples that were judged by a stamp. Without any, the counts above say
    /// nothing.
    #[serde(default)]
    pub judged: Counted,
}
