//! The netlink socket: asks for the tables, then hears of every change.
//!
//! One reading of a table runs at a time, since the kernel allows a socket no more; changes that
//! happen meanwhile come in between, in the kernel's order, so that applying all of it as it comes
//! ends with what is so. Each reading has a number, its *round*, and what was not seen in it is
//! forgotten when it ends. Where the kernel drops messages because they were not fetched in time
//! (ENOBUFS), or changed a table under a reading, everything is read again; meanwhile nothing that
//! was missed can be wrong, for all traffic takes the kernel's way.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkBuffer, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage,
};
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::rule::RuleMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::reading;
use super::tables::{Rules, Tables};
use crate::limits::NETLINK_DATAGRAM_BYTES;

/// Groups of messages (linux/rtnetlink.h): interfaces, neighbours, IPv4 addresses, routes, rules.
const GROUPS: [u32; 5] = [1, 3, 5, 7, 8];

/// A table that is read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The device itself: one message.
    Device,
    Addresses,
    Rules,
    Routes,
    Neighbours,
}

impl Reading {
    const ALL: [Reading; 5] = [
        Reading::Device,
        Reading::Addresses,
        Reading::Rules,
        Reading::Routes,
        Reading::Neighbours,
    ];

    /// As bits of what is still to be read.
    const EVERYTHING: u8 = 0b1_1111;

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// What was taken in by one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Netlink datagrams fetched.
    pub datagrams: usize,
    /// None are left, as far as can be known.
    pub is_drained: bool,
    /// Ways may have changed.
    pub has_changed: bool,
}

/// What happened on the socket so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowCounts {
    /// Messages taken in.
    pub messages: u64,
    /// How often the kernel dropped messages because they were not fetched in time.
    pub overruns: u64,
    /// How often everything was read, the start included.
    pub readings: u64,
    /// Answers that found no room, and were asked for again.
    pub lost_answers: u64,
    /// Messages that could not be understood.
    pub unreadable: u64,
    /// Neighbours that the kernel was asked to confirm.
    pub confirmations: u64,
    /// Requests that the kernel refused.
    pub refused: u64,
}

/// The reading that is under way.
#[derive(Clone, Copy, Debug)]
struct Running {
    reading: Reading,
    sequence: u32,
    /// Something was lost or changed in between: it has to be done again.
    is_spoilt: bool,
}

/// The socket, and where it stands.
pub(super) struct Follower {
    socket: Socket,
    port: u32,
    buffer: Vec<u8>,
    sequence: u32,
    /// The current round; entries that were seen in it, or changed since, carry it.
    round: u32,
    /// Readings to be made, as bits.
    wanted: u8,
    /// Of these, what must be finished before the tables are sure again.
    owed: u8,
    running: Option<Running>,
    counts: FollowCounts,
}

impl Follower {
    /// Opens it in the calling thread's network namespace; nothing is read yet.
    pub(super) fn open() -> io::Result<Follower> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        let port = socket.bind_auto()?.port_number();
        socket.set_non_blocking(true)?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        Ok(Follower {
            socket,
            port,
            buffer: Vec::with_capacity(NETLINK_DATAGRAM_BYTES),
            sequence: 0,
            round: 0,
            wanted: Reading::EVERYTHING,
            owed: Reading::EVERYTHING,
            running: None,
            counts: FollowCounts {
                readings: 1,
                ..FollowCounts::default()
            },
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open as long as `self`, whose borrow the result carries.
        unsafe { BorrowedFd::borrow_raw(self.socket.as_raw_fd()) }
    }

    pub(super) fn counts(&self) -> FollowCounts {
        self.counts
    }

    /// Fetches what has come, so many datagrams at most, and asks for what is to be read: an answer
    /// is there at once, so that the socket is readable for as long as there is something to do.
    pub(super) fn follow(&mut self, tables: &mut Tables, datagrams: usize) -> Followed {
        let mut followed = Followed::default();
        while followed.datagrams < datagrams {
            self.ask(tables, &mut followed);
            match self.fetch() {
                Ok(()) => {
                    followed.datagrams += 1;
                    self.take_datagram(tables, &mut followed);
                }
                Err(error) => {
                    self.take_error(&error, tables, &mut followed);
                    if followed.is_drained {
                        break;
                    }
                    followed.datagrams += 1;
                }
            }
        }
        self.ask(tables, &mut followed);
        followed
    }

    /// Fetches one datagram into the buffer.
    fn fetch(&mut self) -> io::Result<()> {
        self.buffer.clear();
        let (length, sender) = self
            .socket
            .recv_from(&mut self.buffer, libc::MSG_DONTWAIT | libc::MSG_TRUNC)?;
        // Only the kernel tells about itself; and what was cut off is as good as lost.
        if sender.port_number() != 0 {
            self.buffer.clear();
        } else if length > self.buffer.len() {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        Ok(())
    }

    fn take_error(&mut self, error: &io::Error, tables: &mut Tables, followed: &mut Followed) {
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ENOBUFS) => {
                self.counts.overruns += 1;
                self.begin_again(tables);
                followed.has_changed = true;
            }
            // Nothing there, or nothing that trying again would change. The kernel answers within
            // the call that asks: what has not come by now found no room.
            _ => match self.running.take() {
                Some(running) => {
                    self.counts.lost_answers += 1;
                    self.wanted |= running.reading.bit();
                }
                None => followed.is_drained = true,
            },
        }
    }

    /// Everything is read again, and until then nothing is sure.
    fn begin_again(&mut self, tables: &mut Tables) {
        tables.is_synchronised = false;
        self.wanted = Reading::EVERYTHING;
        self.owed = Reading::EVERYTHING;
        self.counts.readings += 1;
        if let Some(running) = &mut self.running {
            running.is_spoilt = true;
        }
    }

    /// Begins the next reading if none is under way.
    fn ask(&mut self, tables: &mut Tables, followed: &mut Followed) {
        if self.running.is_some() {
            return;
        }
        let is_wanted = |reading: &Reading| self.wanted & reading.bit() != 0;
        let Some(reading) = Reading::ALL.into_iter().find(is_wanted) else {
            return;
        };
        self.round = self.round.wrapping_add(1);
        let (message, flags) = match reading {
            Reading::Device => {
                let mut link = LinkMessage::default();
                link.header.index = tables.device.index;
                (RouteNetlinkMessage::GetLink(link), NLM_F_ACK)
            }
            Reading::Addresses => {
                let mut addresses = AddressMessage::default();
                addresses.header.family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetAddress(addresses), NLM_F_DUMP)
            }
            Reading::Rules => {
                tables.rules = Rules::default();
                followed.has_changed = true;
                let mut rules = RuleMessage::default();
                rules.header.family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetRule(rules), NLM_F_DUMP)
            }
            Reading::Routes => {
                tables.routes.begin_reading();
                let mut routes = RouteMessage::default();
                routes.header.address_family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetRoute(routes), NLM_F_DUMP)
            }
            Reading::Neighbours => {
                let mut neighbours = NeighbourMessage::default();
                neighbours.header.family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetNeighbour(neighbours), NLM_F_DUMP)
            }
        };
        // Refused for want of memory, if ever: the next call tries again.
        if let Ok(sequence) = self.send(message, flags) {
            self.wanted &= !reading.bit();
            self.running = Some(Running {
                reading,
                sequence,
                is_spoilt: false,
            });
        }
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        let kernel = SocketAddr::new(0, 0);
        self.socket
            .send_to(&bytes, &kernel, libc::MSG_DONTWAIT)
            .map(|_| self.sequence)
    }

    /// Takes in all messages of the datagram in the buffer.
    fn take_datagram(&mut self, tables: &mut Tables, followed: &mut Followed) {
        let buffer = std::mem::take(&mut self.buffer);
        let mut rest = buffer.as_slice();
        while let Ok(header) = NetlinkBuffer::new_checked(rest) {
            let length = header.length() as usize;
            self.take_message(&rest[..length], tables, followed);
            // Messages are padded to four bytes; the check has seen to it that there is a header.
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        self.buffer = buffer;
    }

    fn take_message(&mut self, bytes: &[u8], tables: &mut Tables, followed: &mut Followed) {
        self.counts.messages += 1;
        let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) else {
            // A kind or attribute that the library does not read: no route is known by it.
            self.counts.unreadable += 1;
            return;
        };
        let header = &message.header;
        let is_answer = header.port_number == self.port
            && self
                .running
                .is_some_and(|running| running.sequence == header.sequence_number);
        if is_answer
            && header.flags & NLM_F_DUMP_INTR != 0
            && let Some(running) = &mut self.running
        {
            running.is_spoilt = true;
        }
        match &message.payload {
            NetlinkPayload::InnerMessage(inner) => {
                let is_event = !is_answer;
                let effect = reading::take(tables, inner, header.flags, self.round, is_event);
                followed.has_changed |= effect.has_changed;
                if effect.rereads_routes {
                    self.wanted |= Reading::Routes.bit();
                }
                if effect.rereads_rules {
                    self.wanted |= Reading::Rules.bit();
                }
            }
            NetlinkPayload::Done(_) if is_answer => self.finish(None, tables, followed),
            NetlinkPayload::Error(error) if is_answer => {
                let code = error.code.map(|code| -code.get());
                self.finish(code, tables, followed);
            }
            NetlinkPayload::Error(error) if error.code.is_some() => self.counts.refused += 1,
            _ => {}
        }
    }

    /// The reading under way has ended, well or with the number of an error.
    fn finish(&mut self, error: Option<i32>, tables: &mut Tables, followed: &mut Followed) {
        let Some(running) = self.running.take() else {
            return;
        };
        let reading = running.reading;
        match (reading, error) {
            (Reading::Device, Some(libc::ENODEV)) => {
                tables.device.is_gone = true;
                followed.has_changed = true;
            }
            (_, Some(_)) => {
                self.counts.refused += 1;
                self.wanted |= reading.bit();
                return;
            }
            (_, None) if running.is_spoilt => {
                self.wanted |= reading.bit();
                return;
            }
            (_, None) => {}
        }
        followed.has_changed |= match reading {
            Reading::Device | Reading::Rules => true,
            Reading::Addresses => tables.device.end_reading(self.round),
            Reading::Routes => tables.routes.end_reading(self.round),
            Reading::Neighbours => tables.neighbours.end_reading(self.round),
        };
        self.owed &= !reading.bit();
        if self.owed == 0 && !tables.is_synchronised {
            tables.is_synchronised = true;
            followed.has_changed = true;
        }
    }

    /// Asks the kernel to confirm a neighbour, as it would if a socket of its own sent there.
    pub(super) fn confirm(&mut self, index: u32, neighbour: [u8; 4]) {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = index;
        message.header.flags = NeighbourFlags::Use;
        let destination = NeighbourAddress::Inet(Ipv4Addr::from(neighbour));
        message.attributes = vec![NeighbourAttribute::Destination(destination)];
        match self.send(RouteNetlinkMessage::NewNeighbour(message), 0) {
            Ok(_) => self.counts.confirmations += 1,
            Err(_) => self.counts.refused += 1,
        }
    }
}
