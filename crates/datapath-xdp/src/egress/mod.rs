//! Where a datagram leaves, and the headers in front of it.
//!
//! AF_XDP goes around the kernel's stack, so what the stack knows has to be known here: routes,
//! the Ethernet addresses of neighbours, the device's own addresses and MTU. An [`Egress`] reads
//! these tables once, then follows them by netlink ([`follow`](Egress::follow)), and turns them into
//! the headers of a flow ([`headers`](Egress::headers)), which a [`Template`] puts in front of a
//! payload.
//!
//! Whatever is not plainly this device's, or not known for sure, takes the kernel's way, by name
//! ([`Reason`]): a kernel socket is never wrong, and what it sends makes the kernel look for a
//! neighbour. No packet is ever sent from here, and no table of the kernel changed.
//!
//! # Neighbours
//!
//! The kernel believes an Ethernet address for half a minute or so after it was confirmed. Then it
//! is *stale*: usable, but confirmed again as soon as something is sent there. It does not see
//! what AF_XDP sends. So [`keep_fresh`](Egress::keep_fresh), called about once a second, tells the
//! kernel of stale neighbours that are in use (`NTF_USE`, the same word its own stack has for it):
//! it waits 5 s for a sign of life, asks at most three times a second apart, and finds out if there
//! is another address now, or none. A peer that changes its address without a word is so followed
//! within the time a kernel socket would take; one that announces it (as Linux does when an interface
//! comes up) at once.

mod header;
mod judgement;
mod observation;
mod remembered;
mod tables;
mod way;

use std::io;
use std::os::fd::BorrowedFd;

use isolane_hostnet::neighbour::Certainty;
use isolane_hostnet::route_monitor::{DeviceState, FollowCounts, Followed, RouteMonitor, Snapshot};

pub use self::header::{Flow, MAX_HEADER_BYTES, Template, UdpChecksum};
pub use self::judgement::{Judgement, Partial, judge};
pub use self::observation::{EgressObservation, NeighbourObservation, RouteObservation};
use self::remembered::{Entry, Remembered};
use self::tables::resolve;
pub use self::way::{Device, Reason, Way};
use crate::limits::{MAX_CONFIRMATIONS, MAX_FOLLOWED_DATAGRAMS, MAX_STARTING_CALLS};

/// Which device, and what frames look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EgressConfig {
    /// The device, in the network namespace of the thread that opens.
    pub interface_index: u32,
    /// The VLAN that frames are tagged with, the level their priority code point; 0: a tag with a
    /// priority and no VLAN; `None`: no tag.
    pub vlan: Option<u16>,
}

/// Why the tables cannot be followed, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// No such device.
    #[error(
        "there is no interface with the index {index} in this network namespace: it was deleted, or \
         moved to another one (ip link shows those that are here)"
    )]
    NoInterface {
        /// As configured.
        index: u32,
    },
    /// Netlink does not work.
    #[error(
        "cannot follow routes and neighbours by netlink: {source}. Allow the program sockets of the \
         family AF_NETLINK (in a systemd service: RestrictAddressFamilies)"
    )]
    Netlink {
        /// What the system said.
        source: io::Error,
    },
    /// The kernel's tables change faster than they can be read.
    #[error(
        "routes and neighbours change faster than they can be read: {readings} readings were begun. \
         Try again when the network is calmer"
    )]
    Restless {
        /// Readings begun.
        readings: u64,
    },
}

/// What was answered so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Headers given.
    pub by_device: u64,
    /// Refused, by [`Reason`]: its place is `reason as usize`.
    pub by_kernel: [u64; Reason::COUNT],
    /// Headers that had to be looked up and made.
    pub made: u64,
    /// Readings of a neighbour table that had no room for a neighbour.
    pub neighbours_refused: u64,
    /// Routes there is no room for now.
    pub routes_refused: u64,
    /// What happened on the netlink socket.
    pub follow: FollowCounts,
}

/// Where the headers of a flow are remembered: who asks for them again and again need not have them
/// searched for. Good until anything changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    place: usize,
    /// Of the tables, and of what is remembered.
    version: u64,
}

/// The ways out by one device.
pub struct Egress {
    vlan: Option<u16>,
    monitor: RouteMonitor,
    remembered: Remembered,
    generation: u64,
    counts: Counts,
}

impl Egress {
    /// Reads the tables of the calling thread's network namespace. Takes as long as the kernel
    /// takes to list them, usually less than a millisecond.
    ///
    /// # Errors
    /// [`EgressError`].
    pub fn open(config: &EgressConfig) -> Result<Egress, EgressError> {
        let monitor = RouteMonitor::open(config.interface_index)
            .map_err(|source| EgressError::Netlink { source })?;
        let mut egress = Egress {
            vlan: config.vlan,
            monitor,
            remembered: Remembered::new(),
            generation: 1,
            counts: Counts::default(),
        };
        // The kernel answers within the system call that asks.
        for _ in 0..MAX_STARTING_CALLS {
            egress.follow();
            if egress.tables().device.is_gone {
                return Err(EgressError::NoInterface {
                    index: config.interface_index,
                });
            }
            if egress.tables().is_synchronised {
                return Ok(egress);
            }
        }
        Err(EgressError::Restless {
            readings: egress.monitor.counts().readings,
        })
    }

    /// Readable when the kernel has news.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.monitor.descriptor()
    }

    /// Takes in what the kernel has told, within a bound, and never waits. To be called at leisure; it
    /// allocates.
    pub fn follow(&mut self) -> Followed {
        self.follow_at_most(MAX_FOLLOWED_DATAGRAMS)
    }

    /// The same for so many netlink datagrams. When it returns,
    /// [`descriptor`](Self::descriptor) is readable if there is more to be taken in.
    pub fn follow_at_most(&mut self, datagrams: usize) -> Followed {
        let followed = self.monitor.follow(datagrams);
        if followed.has_changed {
            self.generation += 1;
        }
        followed
    }

    /// Has the kernel confirm stale neighbours that headers were asked for since the last call, a
    /// few system calls at most. To be called about once a second.
    pub fn keep_fresh(&mut self) {
        let mut stale = [[0; 4]; MAX_CONFIRMATIONS];
        let mut count = 0;
        let neighbours = &self.monitor.snapshot().neighbours;
        for address in self.remembered.take_used() {
            let is_stale = neighbours
                .get(address)
                .is_some_and(|known| known.certainty == Certainty::Stale);
            if is_stale && count < stale.len() && !stale[..count].contains(&address) {
                stale[count] = address;
                count += 1;
            }
        }
        for address in &stale[..count] {
            self.monitor.confirm(*address);
        }
    }

    /// The way to a destination, looked up in the tables: bounded, without a system call or an
    /// allocation. What is sent asks [`headers`](Self::headers) instead, which remembers.
    #[must_use]
    pub fn resolve(&self, destination: [u8; 4]) -> Way {
        match resolve(self.tables(), destination, self.vlan) {
            Ok(found) => Way::Device(found.device),
            Err(reason) => Way::Kernel(reason),
        }
    }

    /// The headers of a flow, for a UDP payload of so many bytes. Constant time if the flow was
    /// asked for since the tables changed, else that of [`resolve`](Self::resolve); no system call,
    /// no allocation.
    ///
    /// # Errors
    /// Why the datagram has to take the kernel's way.
    #[inline]
    pub fn headers(&mut self, flow: &Flow, payload_bytes: usize) -> Result<&Template, Reason> {
        let place = match self.remembered.find(flow, self.generation) {
            Some(place) => place,
            None => self.make(flow),
        };
        let counts = &mut self.counts;
        let answer = match self.remembered.at_mut(place) {
            Some(entry) => {
                entry.is_used = true;
                match &entry.answer {
                    Ok(template) if payload_bytes > template.max_payload_bytes() => {
                        Err(Reason::TooLong)
                    }
                    Ok(template) => Ok(template),
                    Err(reason) => Err(*reason),
                }
            }
            // Every place that was found or made is filled.
            None => Err(Reason::Synchronising),
        };
        match answer {
            Ok(_) => counts.by_device += 1,
            Err(reason) => counts.by_kernel[reason as usize] += 1,
        }
        answer
    }

    /// Where the headers of a flow are, if it is remembered and goes by the device. Nothing is counted.
    #[inline]
    pub fn find(&self, flow: &Flow) -> Option<Known> {
        let place = self.remembered.find(flow, self.generation)?;
        let entry = self.remembered.at(place)?;
        entry.answer.is_ok().then_some(Known {
            place,
            version: self.version(),
        })
    }

    /// The headers that were found there, if nothing has changed since and the payload fits one packet.
    /// `None`, and nothing is counted: ask [`headers`](Self::headers), which knows more.
    // Always: a call costs as much as what it does.
    #[inline(always)]
    pub fn known_headers(&mut self, known: Known, payload_bytes: usize) -> Option<&Template> {
        if !self.is_current(known) {
            return None;
        }
        let entry = self.remembered.at_mut(known.place)?;
        let template = entry.answer.as_ref().ok()?;
        if payload_bytes > template.max_payload_bytes() {
            return None;
        }
        entry.is_used = true;
        self.counts.by_device += 1;
        Some(template)
    }

    /// Whether all answers are still where, and what, they were then.
    #[inline]
    #[must_use]
    pub fn is_current(&self, known: Known) -> bool {
        known.version == self.version()
    }

    /// Both only grow: it is another one when either does.
    #[inline]
    fn version(&self) -> u64 {
        self.generation + self.counts.made
    }

    /// Makes the entry of a flow from the tables as they are.
    #[cold]
    fn make(&mut self, flow: &Flow) -> usize {
        let place = self.remembered.place_for(flow);
        let found = resolve(self.tables(), flow.destination, self.vlan);
        let entry = Entry {
            flow: *flow,
            generation: self.generation,
            answer: found.map(|found| Template::new(&found.device, flow)),
            neighbour: found.ok().and_then(|found| found.neighbour),
            is_used: true,
        };
        self.remembered.put(place, entry);
        self.counts.made += 1;
        place
    }

    fn tables(&self) -> &Snapshot {
        self.monitor.snapshot()
    }

    /// The device as the kernel last described it.
    #[must_use]
    pub fn device(&self) -> &DeviceState {
        &self.tables().device
    }

    /// This host's local and broadcast routes: address and prefix length.
    pub fn local_networks(&self) -> impl Iterator<Item = ([u8; 4], u8)> {
        let local = self.tables().routes.local();
        local.map(|route| (route.destination.to_be_bytes(), route.prefix_bits))
    }

    /// Changes whenever an answer may have changed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// What was answered so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            neighbours_refused: self.tables().neighbours.refused(),
            routes_refused: self.tables().routes.refused(),
            follow: self.monitor.counts(),
            ..self.counts
        }
    }

    /// The tables, for people. It allocates.
    #[must_use]
    pub fn observe(&self) -> EgressObservation {
        observation::observe(self.tables(), self.counts())
    }
}
