//! Flood source of one direction: paced datagrams, round-robin over many streams.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use isolane_wire::level::Level;
use rustix::net::sockopt::set_ip_tos;

use super::{FIRST_PORT, FloodError, SenderConfig};
use crate::bulk::SourceReport;
use crate::process::Note;
use crate::scenario::transport::CRITICAL_LEVEL;
use crate::stop::Stop;
use crate::system::option;
use crate::target::{Target, level_group};

/// Send buffer in bytes, for datagrams the device has not taken: one quantum at any sensible rate.
const SEND_BYTES: u32 = 4 << 20;

/// Sends in the calling process and network namespace until `stop` or the end of the configured time.
pub fn run_sender(
    config: &SenderConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<SourceReport, FloodError> {
    config.check()?;
    let open = || {
        (0..config.streams)
            .map(|stream| open(config, stream))
            .collect()
    };
    Ok(config.source.run(open, stop, ready)?)
}

fn open(config: &SenderConfig, stream: u16) -> io::Result<UdpSocket> {
    let destination = match config.source.target {
        Target::Strangers => SocketAddrV4::new(config.to, FIRST_PORT + stream),
        Target::Level(level) => level_group(level),
    };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // The group's receivers on this host must not get the datagrams.
    socket.set_multicast_loop_v4(false)?;
    socket.connect(destination)?;
    option::set_send_buffer(&socket, SEND_BYTES)?;
    // Bulk normally has the least urgent class. To share the critical lane it needs that lane's class; otherwise the
    // link would put it on a queue outside the lane.
    if config.source.target == Target::Level(CRITICAL_LEVEL) {
        let class = Level::clamp(CRITICAL_LEVEL.into());
        set_ip_tos(&socket, class.dscp() << 2)?;
    }
    Ok(socket)
}
