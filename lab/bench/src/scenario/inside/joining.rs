//! Endpoint churn: a third participant on the pong end's host repeatedly creates and deletes 100 writers and 100
//! readers.
//!
//! No endpoint matches them. Their cost is discovery: reliable announcements of creation and deletion, in bursts of two
//! hundred.

use std::time::{Duration, Instant};

use isolane::{DataReader, DataWriter, Limits, Participant, Qos};
use serde::{Deserialize, Serialize};

use crate::process::{Note, Notes, pin_to_core};
use crate::report::Order;
use crate::scenario::end::{self, EndError};
use crate::scenario::transport::Transport;
use crate::scenario::{RttMessage, Site};
use crate::stop::Stop;

/// Endpoints of each kind, 200 together.
const ENDPOINTS_OF_A_KIND: usize = 100;

/// Time between creating all endpoints and deleting them, and the reverse.
const DWELL: Duration = Duration::from_millis(25);

/// Minimum number of announcements per second that each end must process for a valid run: one burst of creations or
/// deletions.
pub const LEAST_PER_S: f64 = 200.0;

/// Configuration of the churning participant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Location of the participant.
    pub site: Site,
    /// CPU core, at ordinary priority.
    pub core: Option<usize>,
}

/// Counts of the churning participant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Endpoints created.
    pub joined: u64,
    /// Endpoints deleted.
    pub left: u64,
}

/// Runs the churn in the calling process, from the parent's `Go` until its stop.
pub fn run_joining(
    config: &Config,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<Report, EndError> {
    let mut notes = Notes::default();
    if let Some(core) = config.core {
        notes.collect(pin_to_core(core));
    }
    let limits = Limits {
        local_endpoints: 2 * ENDPOINTS_OF_A_KIND as u16,
        ..Limits::default()
    };
    let participant = end::participant_with(
        config.site,
        Transport::Udp,
        "isolane joining",
        Order::Priority,
        limits,
    )?;
    let knows_both = || participant.participants().len() >= 2;
    let patience = Duration::from_secs(crate::limits::MATCH_SECONDS);
    if !end::run_until(&participant, stop, patience, knows_both)? {
        return Err(EndError::NotMatched);
    }
    ready(&notes.0);
    end::run_until_go(&participant, stop)?;
    let mut report = Report::default();
    while !stop.is_requested() {
        let endpoints = appear(&participant)?;
        report.joined += endpoints.count();
        dwell(&participant, stop);
        report.left += endpoints.count();
        drop(endpoints);
        dwell(&participant, stop);
    }
    Ok(report)
}

struct Endpoints {
    writers: Vec<DataWriter<RttMessage>>,
    readers: Vec<DataReader<RttMessage>>,
}

impl Endpoints {
    fn count(&self) -> u64 {
        (self.writers.len() + self.readers.len()) as u64
    }
}

fn appear(participant: &Participant) -> Result<Endpoints, EndError> {
    let qos = Qos::best_effort();
    let mut endpoints = Endpoints {
        writers: Vec::with_capacity(ENDPOINTS_OF_A_KIND),
        readers: Vec::with_capacity(ENDPOINTS_OF_A_KIND),
    };
    for number in 0..ENDPOINTS_OF_A_KIND {
        // Unique topics, which match no endpoint.
        let writer = participant.create_writer(&format!("Joining/written/{number}"), &qos)?;
        let reader = participant.create_view_reader(&format!("Joining/read/{number}"), &qos)?;
        endpoints.writers.push(writer);
        endpoints.readers.push(reader);
    }
    Ok(endpoints)
}

/// Runs the participant for the dwell time.
fn dwell(participant: &Participant, stop: &Stop) {
    let end = Instant::now() + DWELL;
    while !stop.is_requested() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        participant.run_for(left);
    }
}
