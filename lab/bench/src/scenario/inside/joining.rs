//! Endpoints that appear and leave: a third participant, on the host of the pong end, whose 100
//! writers and 100 readers both ends are told of, and told that they are gone, again and again.
//!
//! Nobody matches them. What they cost is discovery: an announcement each way of being, reliable, in
//! bursts of two hundred.

use std::time::{Duration, Instant};

use isolane::{DataReader, DataWriter, Limits, Participant, Qos};
use serde::{Deserialize, Serialize};

use crate::process::{Note, Notes, pin_to_core};
use crate::report::Order;
use crate::scenario::end::{self, EndError};
use crate::scenario::transport::Transport;
use crate::scenario::{RttMessage, Site};
use crate::stop::Stop;

/// Endpoints of each kind: together 200.
const ENDPOINTS_OF_A_KIND: usize = 100;

/// From the appearance of all to their end, and from that to their appearance.
const DWELL: Duration = Duration::from_millis(25);

/// Announcements a second that each end must have taken in, or the run does not count: a wave that
/// comes, or one that goes.
pub const LEAST_PER_S: f64 = 200.0;

/// What the participant that comes and goes is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Where it is.
    pub site: Site,
    /// The core it runs on, at ordinary priority.
    pub core: Option<usize>,
}

/// What it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Endpoints created.
    pub joined: u64,
    /// Endpoints deleted.
    pub left: u64,
}

/// The whole of it, in the calling process, from the word to go until it is told to stop.
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
        // Topics of their own: they meet neither each other nor anybody else.
        let writer = participant.create_writer(&format!("Joining/written/{number}"), &qos)?;
        let reader = participant.create_view_reader(&format!("Joining/read/{number}"), &qos)?;
        endpoints.writers.push(writer);
        endpoints.readers.push(reader);
    }
    Ok(endpoints)
}

/// Lets what is filed go out, and time pass.
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
