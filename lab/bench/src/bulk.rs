//! Bulk traffic sources, shared by [flood](crate::flood) and [storm](crate::storm).
//!
//! A process per direction sends identical datagrams at a stated rate, in batches, round-robin over its sockets. It
//! reports how many datagrams the kernel accepted, because a slow machine may not reach the rate.

use std::io;
use std::net::UdpSocket;

use serde::{Deserialize, Serialize};

use crate::clock::NANOS_PER_SECOND;
use crate::limits::{BATCH_FRAMES, MAX_FLOOD_PAYLOAD_BYTES, MAX_FLOOD_SECONDS};
use crate::pace::send_paced;
use crate::process::{self, Note, Notes};
use crate::stop::Stop;
use crate::system::batch;
use crate::target::Target;

/// Configuration of one direction's source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Receivers the datagrams are addressed to.
    pub target: Target,
    /// UDP payload of each datagram, in bytes.
    pub payload_bytes: u32,
    /// Datagrams per second, summed over all sockets.
    pub datagrams_per_s: f64,
    /// Duration in seconds after which the source ends by itself.
    pub seconds: u32,
    /// CPU core to pin the source to.
    pub core: Option<usize>,
}

/// Counts of one source. Every due datagram was sent, refused or missed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Datagrams the kernel accepted.
    pub sent: u64,
    /// Datagrams the kernel did not accept.
    pub refused: u64,
    /// Datagrams given up because the source was delayed too long to catch up.
    pub missed: u64,
    /// Nanoseconds from the first quantum to the last.
    pub elapsed_ns: u64,
    /// Steps the machine did not allow.
    pub notes: Vec<Note>,
}

/// Reasons why a source cannot run.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// The datagrams would be fragmented.
    #[error("its payload must fit one frame: at most {MAX_FLOOD_PAYLOAD_BYTES} bytes")]
    Payload,
    /// The duration exceeds the bound.
    #[error("it lasts at most {MAX_FLOOD_SECONDS} seconds")]
    Seconds,
    /// The level is not within 0 to 7.
    #[error("it is for a level that there is not: levels are 0 to 7")]
    Level,
    /// A system call on the sockets failed.
    #[error("it cannot {action}: {source}")]
    System {
        /// Operation that failed.
        action: &'static str,
        /// The kernel's reason.
        source: io::Error,
    },
}

impl BulkError {
    pub(crate) fn system(action: &'static str) -> impl FnOnce(io::Error) -> BulkError {
        move |source| BulkError::System { action, source }
    }
}

impl Source {
    /// Checks the bounds, except the rate's: the caller bounds the rate, because the cost of a datagram depends on its
    /// receiver.
    pub fn check(&self) -> Result<(), BulkError> {
        if !self.target.exists() {
            return Err(BulkError::Level);
        }
        if self.payload_bytes > MAX_FLOOD_PAYLOAD_BYTES {
            return Err(BulkError::Payload);
        }
        if self.seconds > MAX_FLOOD_SECONDS {
            return Err(BulkError::Seconds);
        }
        Ok(())
    }

    /// Sends in the calling process and network namespace until `stop` or the end of the duration. Each batch is one
    /// system call on the next socket, so all sockets carry the same load over time.
    pub(crate) fn run(
        &self,
        open: impl FnOnce() -> io::Result<Vec<UdpSocket>>,
        stop: &Stop,
        ready: impl FnOnce(&[Note]),
    ) -> Result<SourceReport, BulkError> {
        let mut notes = Notes::default();
        if let Some(core) = self.core {
            notes.collect(process::pin_to_core(core));
        }
        notes.collect(process::exact_timers());
        let sockets = open().map_err(BulkError::system("open its sockets"))?;
        let payload = self.target.content(self.payload_bytes);
        ready(&notes.0);

        let mut turn = sockets.iter().cycle();
        let paced = send_paced(self.datagrams_per_s, self.seconds, stop, |mut due| {
            let mut sent = 0;
            while due > 0
                && let Some(socket) = turn.next()
            {
                let batch = due.min(BATCH_FRAMES as u64);
                sent += batch::send_copies(socket, &payload, batch as usize).unwrap_or(0) as u64;
                due -= batch;
            }
            sent
        })
        .map_err(BulkError::system("wait"))?;
        Ok(SourceReport {
            sent: paced.sent,
            refused: paced.refused,
            missed: paced.missed,
            elapsed_ns: paced.elapsed_ns,
            notes: notes.0,
        })
    }
}

impl SourceReport {
    /// Datagrams sent per second.
    pub(crate) fn sent_per_s(&self) -> f64 {
        match self.elapsed_ns {
            0 => 0.0,
            elapsed_ns => self.sent as f64 * NANOS_PER_SECOND as f64 / elapsed_ns as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_without_bounds_is_refused() {
        let source = Source {
            target: Target::Strangers,
            payload_bytes: 1024,
            datagrams_per_s: 1000.0,
            seconds: 60,
            core: None,
        };
        assert!(source.check().is_ok());
        let with = |change: fn(&mut Source)| {
            let mut source = source.clone();
            change(&mut source);
            source.check()
        };
        let long = with(|source| source.seconds = MAX_FLOOD_SECONDS + 1);
        assert!(matches!(long, Err(BulkError::Seconds)));
        let nowhere = with(|source| source.target = Target::Level(8));
        assert!(matches!(nowhere, Err(BulkError::Level)));
        let fragments = with(|source| source.payload_bytes = MAX_FLOOD_PAYLOAD_BYTES + 1);
        assert!(matches!(fragments, Err(BulkError::Payload)));
    }
}
