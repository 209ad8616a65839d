//! Storm receivers of one host: sockets bound to one port and joined to one group, read only at the end.

use std::net::UdpSocket;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use super::{ReceiversConfig, ReceiversReport, StormError};
use crate::bulk::BulkError;
use crate::limits::{BATCH_FRAMES, SLOT_BYTES, STORM_RECEIVE_BYTES};
use crate::process::{self, Note, Notes};
use crate::stop::Stop;
use crate::system::{batch, option};

/// Holds the sockets in the calling process and network namespace until `stop`, then counts the datagrams each received
/// and dropped.
pub fn run_receivers(
    config: &ReceiversConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<ReceiversReport, StormError> {
    config.check()?;
    let mut notes = Notes::default();
    if let Some(core) = config.core {
        notes.collect(process::pin_to_core(core));
    }
    let sockets: Vec<UdpSocket> = (0..config.sockets)
        .map(|_| open(config))
        .collect::<Result<_, _>>()
        .map_err(BulkError::system("open its sockets"))?;
    ready(&notes.0);
    stop.wait();
    let mut report = ReceiversReport {
        sockets: config.sockets,
        least: u64::MAX,
        notes: notes.0,
        ..ReceiversReport::default()
    };
    let mut scratch = vec![0; SLOT_BYTES];
    for socket in &sockets {
        let received = drain(socket, &mut scratch).map_err(BulkError::system("receive"))?;
        let overflowed = option::overflowed(socket).map_err(BulkError::system("read its drops"))?;
        report.received += received;
        report.overflowed += overflowed;
        report.least = report.least.min(received + overflowed);
        report.most = report.most.max(received + overflowed);
    }
    Ok(report)
}

/// Empties a socket. Bounded by its buffer, because the senders have stopped.
fn drain(socket: &UdpSocket, scratch: &mut [u8]) -> std::io::Result<u64> {
    let mut received = 0;
    loop {
        let (datagrams, _) = batch::receive_and_count(socket, scratch)?;
        received += datagrams as u64;
        if datagrams < BATCH_FRAMES {
            return Ok(received);
        }
    }
}

fn open(config: &ReceiversConfig) -> std::io::Result<UdpSocket> {
    let socket = socket_with(
        AddressFamily::INET,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // SO_REUSEADDR has to precede bind, because all sockets share one address.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &config.group)?;
    sockopt::set_ip_add_membership(&socket, config.group.ip(), &config.interface)?;
    option::set_receive_buffer(&socket, STORM_RECEIVE_BYTES)?;
    Ok(socket.into())
}
