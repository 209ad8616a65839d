//! Network side of learning.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddrV4;

use isolane_hostnet::rx_queue_probe::ProbeSocket;

use super::super::landings::{Answered, ProbeError, ask};
use super::super::room::raise_descriptor_limit;
use super::{LearnError, LearnParameters};
use crate::limits::MAX_PROBE_ATTEMPTS;
use crate::steer::{Tuple, probed_ports};

pub(super) struct ProbeClient<'a> {
    lesson: &'a LearnParameters,
    sockets: BTreeMap<u16, ProbeSocket>,
    number: u32,
}

impl<'a> ProbeClient<'a> {
    /// Opens all sockets first, so that a failure precedes the first table change.
    pub(super) fn new(lesson: &'a LearnParameters) -> Result<Self, LearnError> {
        let [_, ports] = probed_ports();
        raise_descriptor_limit(ports.len(), lesson.queues);
        let mut sockets = BTreeMap::new();
        for port in ports {
            let address = SocketAddrV4::new(lesson.address, port);
            let socket = ProbeSocket::bind(address, lesson.level, lesson.queues)
                .map_err(|error| LearnError::Probe(ProbeError::Port(port, error)))?;
            sockets.insert(port, socket);
        }
        Ok(Self {
            lesson,
            sockets,
            number: 0,
        })
    }

    /// Receive queue of an answer whose addresses and ports are those of `datagram`.
    pub(super) fn landing(&mut self, datagram: Tuple) -> Result<u32, LearnError> {
        // Rounds contain no other ports.
        let Some(socket) = self.sockets.get(&datagram.destination_port) else {
            return Err(LearnError::Probe(ProbeError::Silent));
        };
        let peer = SocketAddrV4::new(datagram.source, datagram.source_port);
        for _ in 0..MAX_PROBE_ATTEMPTS {
            self.number += 1;
            let answer = ask(socket, (self.lesson.run, self.number), peer);
            let answer = answer.map_err(|error| LearnError::Probe(ProbeError::System(error)))?;
            match answer {
                Some(Answered {
                    back: Some(queue), ..
                }) => return Ok(queue),
                Some(_) => {
                    let why = "the kernel does not tell by which queue datagrams come";
                    return Err(LearnError::Probe(ProbeError::System(io::Error::other(why))));
                }
                None => {}
            }
        }
        Err(LearnError::Probe(ProbeError::Silent))
    }
}
