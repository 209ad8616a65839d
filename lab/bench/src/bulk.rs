//! Bulk: what a [flood](crate::flood) and a [storm](crate::storm) share. In each direction a process
//! sends datagrams of one content at a stated rate, batches in turn over its sockets, and says how many
//! the kernel took: whether the rate was reached is part of the result, for a machine may be too slow
//! for its own bulk.

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

/// One direction's source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Whose bulk it is.
    pub target: Target,
    /// UDP payload of each datagram.
    pub payload_bytes: u32,
    /// Datagrams a second, of all sockets together.
    pub datagrams_per_s: f64,
    /// It ends by itself after this time.
    pub seconds: u32,
    /// The core it runs on.
    pub core: Option<usize>,
}

/// What a source did. Due datagrams were sent, refused or missed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceReport {
    /// Datagrams the kernel took.
    pub sent: u64,
    /// Datagrams the kernel did not take.
    pub refused: u64,
    /// Datagrams given up because the source was held up too long to catch up.
    pub missed: u64,
    /// From the first quantum to the last, in nanoseconds.
    pub elapsed_ns: u64,
    /// What the machine did not allow.
    pub notes: Vec<Note>,
}

/// Why there is no bulk.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// Its datagrams would be fragments.
    #[error("its payload must fit one frame: at most {MAX_FLOOD_PAYLOAD_BYTES} bytes")]
    Payload,
    /// It would last too long.
    #[error("it lasts at most {MAX_FLOOD_SECONDS} seconds")]
    Seconds,
    /// Levels are 0 to 7.
    #[error("it is for a level that there is not: levels are 0 to 7")]
    Level,
    /// Sockets.
    #[error("it cannot {action}: {source}")]
    System {
        /// What was tried.
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
    /// Whether it is within its bounds. The rate's is the caller's: what is too much depends on what
    /// becomes of a datagram.
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

    /// Sends in the calling process and network namespace until `stop` or the end of its time. A batch
    /// is one system call, each on the next socket: over time all of them carry the same.
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
    /// Datagrams sent a second.
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
