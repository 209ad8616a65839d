//! Storm source of one direction: paced datagrams to a multicast group.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};

use rustix::net::sockopt;

use super::{SenderConfig, StormError};
use crate::bulk::SourceReport;
use crate::process::Note;
use crate::stop::Stop;

/// Sends in the calling process and network namespace until `stop` or the end of the configured time.
pub fn run_sender(
    config: &SenderConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<SourceReport, StormError> {
    config.check()?;
    let open = || Ok(vec![open(config)?]);
    Ok(config.source.run(open, stop, ready)?)
}

fn open(config: &SenderConfig) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    sockopt::set_ip_multicast_if(&socket, &config.interface)?;
    // This host's sockets receive only the other host's storm.
    socket.set_multicast_loop_v4(false)?;
    socket.connect(config.group)?;
    Ok(socket)
}
