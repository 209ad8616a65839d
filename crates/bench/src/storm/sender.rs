//! One direction's source: paced datagrams to a group.

use std::net::{Ipv4Addr, UdpSocket};

use rustix::net::sockopt;

use super::{SenderConfig, SenderReport, StormError};
use crate::limits::BATCH_FRAMES;
use crate::pace::send_paced;
use crate::process::{self, Note, Notes};
use crate::stop::Stop;
use crate::system::batch;

/// Sends in the calling process and network namespace until `stop` or the end of the configured
/// time.
pub fn run_sender(
    config: &SenderConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<SenderReport, StormError> {
    config.check()?;
    let mut notes = Notes::default();
    if let Some(core) = config.core {
        notes.collect(process::pin_to_core(core));
    }
    notes.collect(process::exact_timers());
    let socket = open(config).map_err(StormError::system("open its sender"))?;
    let payload = config.target.content(config.payload_bytes);
    ready(&notes.0);

    let paced = send_paced(config.frames_per_s, config.seconds, stop, |mut due| {
        let mut sent = 0;
        while due > 0 {
            let batch = due.min(BATCH_FRAMES as u64);
            sent += batch::send_copies(&socket, &payload, batch as usize).unwrap_or(0) as u64;
            due -= batch;
        }
        sent
    })
    .map_err(StormError::system("wait"))?;
    Ok(SenderReport {
        sent: paced.sent,
        refused: paced.refused,
        missed: paced.missed,
        elapsed_ns: paced.elapsed_ns,
        notes: notes.0,
    })
}

fn open(config: &SenderConfig) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    sockopt::set_ip_multicast_if(&socket, &config.interface)?;
    // This host's own sockets are for the other one's storm.
    socket.set_multicast_loop_v4(false)?;
    socket.connect(config.group)?;
    Ok(socket)
}
