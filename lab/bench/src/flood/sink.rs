//! Flood sink of one direction: reads, counts and discards datagrams.

use std::net::UdpSocket;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::{FIRST_PORT, FloodError, SinkConfig, SinkReport, check_streams};
use crate::bulk::BulkError;
use crate::limits::{BATCH_FRAMES, SINK_RECEIVE_BYTES, SLOT_BYTES};
use crate::process::{self, Note, Notes};
use crate::stop::Stop;
use crate::system::{batch, option};

/// Counts in the calling process and network namespace until `stop`, then counts the rest of its sockets' buffers.
pub fn run_sink(
    config: &SinkConfig,
    stop: &Stop,
    ready: impl FnOnce(&[Note]),
) -> Result<SinkReport, FloodError> {
    check_streams(config.streams)?;
    let mut notes = Notes::default();
    if let Some(core) = config.core {
        notes.collect(process::pin_to_core(core));
    }
    let streams = open_streams(config)?;
    ready(&notes.0);

    let mut report = SinkReport::default();
    let mut scratch = vec![0; SLOT_BYTES];
    loop {
        let mut sources: Vec<PollFd<'_>> = Vec::with_capacity(streams.len() + 1);
        sources.push(PollFd::from_borrowed_fd(stop.as_fd(), PollFlags::IN));
        sources.extend(
            streams
                .iter()
                .map(|stream| PollFd::new(stream, PollFlags::IN)),
        );
        match poll(&mut sources, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(BulkError::system("wait")(error.into()).into()),
        }
        let stopping = !sources[0].revents().is_empty();
        for (stream, source) in streams.iter().zip(&sources[1..]) {
            if stopping || !source.revents().is_empty() {
                count(stream, &mut scratch, &mut report)?;
            }
        }
        if stopping {
            for stream in &streams {
                let overflowed = option::overflowed(stream);
                report.overflowed += overflowed.map_err(BulkError::system("read its drops"))?;
            }
            report.notes = notes.0;
            return Ok(report);
        }
    }
}

/// Empties a stream. Bounded by its buffer and what arrives meanwhile.
fn count(stream: &UdpSocket, scratch: &mut [u8], report: &mut SinkReport) -> Result<(), BulkError> {
    loop {
        let (datagrams, bytes) =
            batch::receive_and_count(stream, scratch).map_err(BulkError::system("receive"))?;
        report.received += datagrams as u64;
        report.bytes += bytes;
        if datagrams < BATCH_FRAMES {
            return Ok(());
        }
    }
}

fn open_streams(config: &SinkConfig) -> Result<Vec<UdpSocket>, BulkError> {
    (0..config.streams)
        .map(|stream| {
            let socket = UdpSocket::bind((config.address, FIRST_PORT + stream))?;
            option::set_receive_buffer(&socket, SINK_RECEIVE_BYTES)?;
            Ok(socket)
        })
        .collect::<Result<_, _>>()
        .map_err(BulkError::system("open its streams"))
}
