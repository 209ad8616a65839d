//! Monitor of one link, its IPv4 addresses, and the namespace's IPv4 routes and neighbours.
//!
//! A [`RouteMonitor`] dumps the kernel's tables into a [`Snapshot`], and then follows the multicast groups of
//! rtnetlink(7). Its socket never blocks and allows one dump at a time. Notifications that arrive during a dump are
//! applied in the kernel's order. Each dump has a number, its *round*; an entry that the dump did not contain is
//! removed at its end. If the kernel drops notifications (ENOBUFS), or a table changes during its dump, the dump is
//! repeated. Until the repeated dump has ended, the snapshot is not synchronised, and users cannot rely on it.

mod message;

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, ParseableParametrized};
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

use crate::limits::NETLINK_DATAGRAM_BYTES;
pub use crate::link::{Address, DeviceState};
use crate::neighbour::Neighbours;
use crate::netlink::{
    DONE, ERROR, FIRST_OF_FAMILY, Message, Messages, end_of_dump, outcome, payload, request_bytes,
};
use crate::route::Routes;

/// Multicast groups (linux/rtnetlink.h): links, neighbours, IPv4 addresses, routes, rules.
const GROUPS: [u32; 5] = [1, 3, 5, 7, 8];

/// Relevant policy rules: only the kernel's default rules are interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// True if the default rule for the table `local` exists.
    pub has_local: bool,
    /// True if the default rule for the table `main` exists.
    pub has_main: bool,
    /// Number of other rules.
    pub others: u32,
}

impl Rules {
    /// Returns whether there are only the default rules.
    #[must_use]
    pub fn are_default(&self) -> bool {
        self.has_local && self.has_main && self.others == 0
    }
}

/// Copy of the kernel's tables, as far as they have been read.
#[derive(Debug)]
pub struct Snapshot {
    /// The monitored link.
    pub device: DeviceState,
    /// Policy rules.
    pub rules: Rules,
    /// IPv4 routes of all links.
    pub routes: Routes,
    /// IPv4 neighbours of the monitored link.
    pub neighbours: Neighbours,
    /// True if all tables have been read, and no notification was lost since.
    pub is_synchronised: bool,
}

impl Snapshot {
    /// Empty tables for a link, not synchronised.
    #[must_use]
    pub fn new(interface_index: u32) -> Snapshot {
        Snapshot {
            device: DeviceState::new(interface_index),
            rules: Rules::default(),
            routes: Routes::new(),
            neighbours: Neighbours::new(),
            is_synchronised: false,
        }
    }
}

/// Table to dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Table {
    /// The link itself: one message.
    Device,
    Addresses,
    Rules,
    Routes,
    Neighbours,
}

impl Table {
    const ALL: [Table; 5] = [
        Table::Device,
        Table::Addresses,
        Table::Rules,
        Table::Routes,
        Table::Neighbours,
    ];
    /// All tables, as bits.
    const EVERYTHING: u8 = 0b1_1111;

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Result of one call of [`RouteMonitor::follow`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed {
    /// Netlink datagrams received.
    pub datagrams: usize,
    /// True if none are left, as far as can be known.
    pub is_drained: bool,
    /// True if the snapshot has changed.
    pub has_changed: bool,
}

/// Counters of a monitor's socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowCounts {
    /// Messages received.
    pub messages: u64,
    /// Number of times the kernel dropped notifications because the socket buffer was full.
    pub overruns: u64,
    /// Number of dumps of all tables, the initial one included.
    pub readings: u64,
    /// Answers dropped for lack of buffer space, and requested again.
    pub lost_answers: u64,
    /// Messages that could not be parsed.
    pub unreadable: u64,
    /// Neighbours that the kernel was asked to confirm.
    pub confirmations: u64,
    /// Requests that the kernel refused.
    pub refused: u64,
}

/// Dump in progress.
#[derive(Clone, Copy, Debug)]
struct Running {
    table: Table,
    sequence: u32,
    /// True if something was lost or changed meanwhile: the dump must be repeated.
    is_spoilt: bool,
}

/// Netlink socket, and the snapshot that it keeps up to date.
pub struct RouteMonitor {
    snapshot: Snapshot,
    socket: Socket,
    port: u32,
    buffer: Vec<u8>,
    sequence: u32,
    /// Current round, recorded in entries that its dump contained or that changed since it began.
    round: u32,
    /// Tables to dump, as bits.
    wanted: u8,
    /// Tables whose dump must end before the snapshot is synchronised again.
    owed: u8,
    running: Option<Running>,
    counts: FollowCounts,
}

impl RouteMonitor {
    /// Opens the socket in the calling thread's network namespace, without reading anything.
    ///
    /// # Errors
    /// The system error.
    pub fn open(interface_index: u32) -> io::Result<RouteMonitor> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        let port = socket.bind_auto()?.port_number();
        socket.set_non_blocking(true)?;
        for group in GROUPS {
            socket.add_membership(group)?;
        }
        Ok(RouteMonitor {
            snapshot: Snapshot::new(interface_index),
            socket,
            port,
            buffer: Vec::with_capacity(NETLINK_DATAGRAM_BYTES),
            sequence: 0,
            round: 0,
            wanted: Table::EVERYTHING,
            owed: Table::EVERYTHING,
            running: None,
            counts: FollowCounts {
                readings: 1,
                ..FollowCounts::default()
            },
        })
    }

    /// Descriptor that is readable when there is something to follow.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Current snapshot.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Counters of the socket.
    #[must_use]
    pub fn counts(&self) -> FollowCounts {
        self.counts
    }

    /// Receives at most `datagrams` datagrams, and requests the dumps that are due. The kernel answers within the
    /// requesting call, so the descriptor stays readable while there is work.
    pub fn follow(&mut self, datagrams: usize) -> Followed {
        let mut followed = Followed::default();
        while followed.datagrams < datagrams {
            self.request_dump(&mut followed);
            match self.receive() {
                Ok(()) => {
                    followed.datagrams += 1;
                    self.take_datagram(&mut followed);
                }
                Err(error) => {
                    self.take_error(&error, &mut followed);
                    if followed.is_drained {
                        break;
                    }
                    followed.datagrams += 1;
                }
            }
        }
        self.request_dump(&mut followed);
        followed
    }

    /// Receives one datagram into the buffer.
    fn receive(&mut self) -> io::Result<()> {
        self.buffer.clear();
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        let (length, sender) = self.socket.recv_from(&mut self.buffer, flags)?;
        // Only messages of the kernel are accepted. A truncated datagram counts as lost.
        if sender.port_number() != 0 {
            self.buffer.clear();
        } else if length > self.buffer.len() {
            return Err(io::Error::from_raw_os_error(libc::ENOBUFS));
        }
        Ok(())
    }

    fn take_error(&mut self, error: &io::Error, followed: &mut Followed) {
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ENOBUFS) => {
                self.counts.overruns += 1;
                self.begin_again();
                followed.has_changed = true;
            }
            // No datagram, or an error that a retry would not change. An answer that has not arrived by now was dropped
            // for lack of buffer space.
            _ => match self.running.take() {
                Some(running) => {
                    self.counts.lost_answers += 1;
                    self.wanted |= running.table.bit();
                }
                None => followed.is_drained = true,
            },
        }
    }

    /// Requests a new dump of all tables; until then the snapshot is not synchronised.
    fn begin_again(&mut self) {
        self.snapshot.is_synchronised = false;
        self.wanted = Table::EVERYTHING;
        self.owed = Table::EVERYTHING;
        self.counts.readings += 1;
        if let Some(running) = &mut self.running {
            running.is_spoilt = true;
        }
    }

    /// Requests the next dump unless one is in progress.
    fn request_dump(&mut self, followed: &mut Followed) {
        if self.running.is_some() {
            return;
        }
        let is_wanted = |table: &Table| self.wanted & table.bit() != 0;
        let Some(table) = Table::ALL.into_iter().find(is_wanted) else {
            return;
        };
        self.round = self.round.wrapping_add(1);
        let (message, flags) = match table {
            Table::Device => {
                let mut link = LinkMessage::default();
                link.header.index = self.snapshot.device.index;
                (RouteNetlinkMessage::GetLink(link), NLM_F_ACK)
            }
            Table::Addresses => {
                let mut addresses = AddressMessage::default();
                addresses.header.family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetAddress(addresses), NLM_F_DUMP)
            }
            Table::Rules => {
                self.snapshot.rules = Rules::default();
                followed.has_changed = true;
                let mut rules = RuleMessage::default();
                rules.header.family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetRule(rules), NLM_F_DUMP)
            }
            Table::Routes => {
                self.snapshot.routes.begin_dump();
                let mut routes = RouteMessage::default();
                routes.header.address_family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetRoute(routes), NLM_F_DUMP)
            }
            Table::Neighbours => {
                let mut neighbours = NeighbourMessage::default();
                neighbours.header.family = AddressFamily::Inet;
                (RouteNetlinkMessage::GetNeighbour(neighbours), NLM_F_DUMP)
            }
        };
        // Fails for lack of memory only: the next call retries.
        if let Ok(sequence) = self.send(&message, flags) {
            self.wanted &= !table.bit();
            self.running = Some(Running {
                table,
                sequence,
                is_spoilt: false,
            });
        }
    }

    fn send(&mut self, message: &RouteNetlinkMessage, flags: u16) -> io::Result<u32> {
        self.sequence = self.sequence.wrapping_add(1);
        let kind = message.message_type();
        let bytes = request_bytes(kind, flags, self.sequence, &payload(message));
        let kernel = SocketAddr::new(0, 0);
        self.socket.send_to(&bytes, &kernel, libc::MSG_DONTWAIT)?;
        Ok(self.sequence)
    }

    fn take_datagram(&mut self, followed: &mut Followed) {
        let buffer = std::mem::take(&mut self.buffer);
        for message in Messages(&buffer) {
            self.counts.messages += 1;
            self.take_message(&message, followed);
        }
        self.buffer = buffer;
    }

    fn take_message(&mut self, message: &Message<'_>, followed: &mut Followed) {
        let is_of = |running: Running| running.sequence == message.sequence;
        let is_answer = message.port == self.port && self.running.is_some_and(is_of);
        if is_answer
            && message.flags & NLM_F_DUMP_INTR != 0
            && let Some(running) = &mut self.running
        {
            running.is_spoilt = true;
        }
        match message.kind {
            DONE if is_answer => {
                let error = end_of_dump(message.payload).err();
                self.end_dump(error.map(|error| error.error), followed);
            }
            ERROR => match outcome(message.payload, message.flags) {
                result if is_answer => {
                    self.end_dump(result.err().map(|error| error.error), followed);
                }
                Err(_) => self.counts.refused += 1,
                Ok(()) => {}
            },
            FIRST_OF_FAMILY.. => {
                let parsed = RouteNetlinkMessage::parse_with_param(message.payload, message.kind);
                let Ok(parsed) = parsed else {
                    // A type or attribute that the library does not know: no route has it.
                    self.counts.unreadable += 1;
                    return;
                };
                let seen = message::Seen {
                    flags: message.flags,
                    round: self.round,
                    is_notification: !is_answer,
                };
                let effect = message::take(&mut self.snapshot, &parsed, seen);
                followed.has_changed |= effect.has_changed;
                if effect.rereads_routes {
                    self.wanted |= Table::Routes.bit();
                }
                if effect.rereads_rules {
                    self.wanted |= Table::Rules.bit();
                }
            }
            _ => {}
        }
    }

    fn end_dump(&mut self, error: Option<io::Error>, followed: &mut Followed) {
        let Some(running) = self.running.take() else {
            return;
        };
        let table = running.table;
        match error.map(|error| error.raw_os_error()) {
            Some(Some(libc::ENODEV)) if table == Table::Device => {
                self.snapshot.device.is_gone = true;
                followed.has_changed = true;
            }
            Some(_) => {
                self.counts.refused += 1;
                self.wanted |= table.bit();
                return;
            }
            None if running.is_spoilt => {
                self.wanted |= table.bit();
                return;
            }
            None => {}
        }
        let snapshot = &mut self.snapshot;
        followed.has_changed |= match table {
            Table::Device | Table::Rules => true,
            Table::Addresses => snapshot.device.end_dump(self.round),
            Table::Routes => snapshot.routes.end_dump(self.round),
            Table::Neighbours => snapshot.neighbours.end_dump(self.round),
        };
        self.owed &= !table.bit();
        if self.owed == 0 && !snapshot.is_synchronised {
            snapshot.is_synchronised = true;
            followed.has_changed = true;
        }
    }

    /// Makes the kernel confirm a neighbour, as if a socket of the host sent to it (`NTF_USE`).
    pub fn confirm(&mut self, neighbour: [u8; 4]) {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.ifindex = self.snapshot.device.index;
        message.header.flags = NeighbourFlags::Use;
        let destination = NeighbourAddress::Inet(Ipv4Addr::from(neighbour));
        message.attributes = vec![NeighbourAttribute::Destination(destination)];
        match self.send(&RouteNetlinkMessage::NewNeighbour(message), 0) {
            Ok(_) => self.counts.confirmations += 1,
            Err(_) => self.counts.refused += 1,
        }
    }
}
