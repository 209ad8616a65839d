//! One direction's source: paced datagrams in turn over many streams.
//!
//! What has become due is sent in batches, every batch on the next stream: over time all streams
//! carry the same, and a system call moves many datagrams.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use super::{FIRST_PORT, FloodError, SenderConfig, SenderReport};
use crate::limits::BATCH_FRAMES;
use crate::pace::send_paced;
use crate::process::{self, Note, Notes};
use crate::stop::Stop;
use crate::system::{batch, option};
use crate::target::{Target, level_group};

/// Kernel memory for datagrams the device has not taken: a quantum's worth at any sensible rate.
const SEND_BYTES: u32 = 4 << 20;

/// Sends in the calling process and network namespace until `stop` or the end of the configured
/// time.
pub fn run_sender(
    config: &SenderConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<SenderReport, FloodError> {
    config.check()?;
    let mut notes = Notes::default();
    if let Some(core) = config.core {
        notes.collect(process::pin_to_core(core));
    }
    notes.collect(process::exact_timers());
    let streams = open_streams(config)?;
    let payload = config.target.content(config.payload_bytes);
    ready(&notes.0);

    let mut turn = streams.iter().cycle();
    let paced = send_paced(config.datagrams_per_s, config.seconds, stop, |mut due| {
        let mut sent = 0;
        while due > 0
            && let Some(stream) = turn.next()
        {
            let batch = due.min(BATCH_FRAMES as u64);
            sent += batch::send_copies(stream, &payload, batch as usize).unwrap_or(0) as u64;
            due -= batch;
        }
        sent
    })
    .map_err(FloodError::system("wait"))?;
    Ok(SenderReport {
        sent: paced.sent,
        refused: paced.refused,
        missed: paced.missed,
        elapsed_ns: paced.elapsed_ns,
        notes: notes.0,
    })
}

fn open_streams(config: &SenderConfig) -> Result<Vec<UdpSocket>, FloodError> {
    let destination = |stream: u16| match config.target {
        Target::Strangers => SocketAddrV4::new(config.to, FIRST_PORT + stream),
        Target::Level(level) => level_group(level),
    };
    (0..config.streams)
        .map(|stream| {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            // What this host sends to a group is for the other one.
            socket.set_multicast_loop_v4(false)?;
            socket.connect(destination(stream))?;
            option::set_send_buffer(&socket, SEND_BYTES)?;
            Ok(socket)
        })
        .collect::<Result<_, _>>()
        .map_err(FloodError::system("open its streams"))
}
