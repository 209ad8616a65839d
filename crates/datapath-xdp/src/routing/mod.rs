//! Route decision for a datagram, and the headers before its payload.
//!
//! AF_XDP bypasses the kernel's stack, so routes, neighbours, and the device's addresses and MTU are needed here. A
//! [`Router`] follows the kernel's tables ([`RouteMonitor`]) and derives a flow's headers from them
//! ([`headers`](Router::headers)). A [`Template`] writes them before a payload.
//!
//! A datagram whose route is not certain to leave by this device goes through a kernel socket, with a [`Reason`]. The
//! kernel routes such a datagram correctly and resolves the neighbour. This module sends no packet and changes no
//! table.
//!
//! # Neighbours
//!
//! About 30 s after a confirmation a neighbour becomes *stale*. The kernel still uses the neighbour's address, and
//! confirms it on the next transmission, but does not see what AF_XDP sends. [`keep_fresh`](Router::keep_fresh),
//! called about once a second, therefore reports stale neighbours in use to the kernel (`NTF_USE`). The kernel waits 5
//! s for a confirmation, then probes at most three times at 1 s intervals. A silent address change is thus noticed as
//! fast as by a kernel socket, and an announced one (as by Linux when an interface comes up) at once.

mod checksum;
mod decision;
mod header;
mod header_cache;

use std::io;
use std::os::fd::BorrowedFd;

use isolane_hostnet::neighbour::Certainty;
use isolane_hostnet::route_monitor::{DeviceState, FollowCounts, Followed, RouteMonitor, Snapshot};

pub use self::checksum::{ChecksumState, Partial, verify};
use self::decision::resolve;
pub use self::decision::{Device, Reason, RouteDecision};
pub use self::header::{Flow, MAX_HEADER_BYTES, Template, UdpChecksum};
use self::header_cache::{Entry, HeaderCache};
use crate::limits::{MAX_CONFIRMATIONS, MAX_FOLLOWED_DATAGRAMS, MAX_STARTING_CALLS};

/// Device and frame format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouterConfig {
    /// Index of the device in the opening thread's network namespace.
    pub interface_index: u32,
    /// VLAN id of the tag, whose priority code point is the level. 0: priority tag without a VLAN. `None`: no tag.
    pub vlan: Option<u16>,
}

/// Error of following the kernel's tables.
#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    /// The device does not exist.
    #[error(
        "there is no interface with the index {index} in this network namespace: it was deleted, or \
         moved to another one (ip link shows those that are here)"
    )]
    NoInterface {
        /// Configured index.
        index: u32,
    },
    /// Netlink is unavailable.
    #[error(
        "cannot follow routes and neighbours by netlink: {source}. Allow the program sockets of the \
         family AF_NETLINK (in a systemd service: RestrictAddressFamilies)"
    )]
    Netlink {
        /// Error from the system.
        source: io::Error,
    },
    /// The kernel's tables change faster than they can be read.
    #[error(
        "routes and neighbours change faster than they can be read: {readings} readings were begun. \
         Try again when the network is calmer"
    )]
    Restless {
        /// Table dumps begun.
        readings: u64,
    },
}

/// Counters of route decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Datagrams sent by the device.
    pub by_device: u64,
    /// Datagrams left to the kernel, by `reason as usize`.
    pub by_kernel: [u64; Reason::COUNT],
    /// Cache misses: headers that were looked up and built.
    pub made: u64,
    /// Neighbours refused by the full table.
    pub neighbours_refused: u64,
    /// Routes refused by the full table.
    pub routes_refused: u64,
    /// Counters of the netlink socket.
    pub follow: FollowCounts,
}

/// Handle to a flow's cached headers, which saves the search. Valid until anything changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedHeader {
    place: usize,
    /// Version of the tables and the cache.
    version: u64,
}

/// Route decisions and cached headers for one device.
pub struct Router {
    vlan: Option<u16>,
    monitor: RouteMonitor,
    cache: HeaderCache,
    generation: u64,
    counts: Counts,
}

impl Router {
    /// Reads the tables of the calling thread's network namespace, usually in less than a millisecond.
    ///
    /// # Errors
    /// [`RouterError`].
    pub fn open(config: &RouterConfig) -> Result<Router, RouterError> {
        let monitor = RouteMonitor::open(config.interface_index)
            .map_err(|source| RouterError::Netlink { source })?;
        let mut router = Router {
            vlan: config.vlan,
            monitor,
            cache: HeaderCache::new(),
            generation: 1,
            counts: Counts::default(),
        };
        // The kernel answers a dump within the requesting system call.
        for _ in 0..MAX_STARTING_CALLS {
            router.follow();
            if router.tables().device.is_gone {
                return Err(RouterError::NoInterface {
                    index: config.interface_index,
                });
            }
            if router.tables().is_synchronised {
                return Ok(router);
            }
        }
        Err(RouterError::Restless {
            readings: router.monitor.counts().readings,
        })
    }

    /// Netlink descriptor, readable when notifications are pending.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.monitor.descriptor()
    }

    /// Applies pending notifications, up to a bound, without blocking. Allocates.
    pub fn follow(&mut self) -> Followed {
        self.follow_at_most(MAX_FOLLOWED_DATAGRAMS)
    }

    /// Applies at most `datagrams` netlink datagrams. [`descriptor`](Self::descriptor) stays readable if more are
    /// pending.
    pub fn follow_at_most(&mut self, datagrams: usize) -> Followed {
        let followed = self.monitor.follow(datagrams);
        if followed.has_changed {
            self.generation += 1;
        }
        followed
    }

    /// Asks the kernel to confirm stale neighbours used since the last call, in a few system calls. Call it about once
    /// a second.
    pub fn keep_fresh(&mut self) {
        let mut stale = [[0; 4]; MAX_CONFIRMATIONS];
        let mut count = 0;
        let neighbours = &self.monitor.snapshot().neighbours;
        for address in self.cache.take_used() {
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

    /// Resolves the path to a destination, in bounded time, without system calls or allocation. Senders use
    /// [`headers`](Self::headers), which caches.
    #[must_use]
    pub fn resolve(&self, destination: [u8; 4]) -> RouteDecision {
        match resolve(self.tables(), destination, self.vlan) {
            Ok(found) => RouteDecision::Device(found.device),
            Err(reason) => RouteDecision::Kernel(reason),
        }
    }

    /// Headers of a flow for a UDP payload of `payload_bytes`. Constant time on a cache hit, otherwise that of
    /// [`resolve`](Self::resolve). No system call, no allocation.
    ///
    /// # Errors
    /// [`Reason`] that the datagram must go through the kernel.
    #[inline]
    pub fn headers(&mut self, flow: &Flow, payload_bytes: usize) -> Result<&Template, Reason> {
        let place = match self.cache.find(flow, self.generation) {
            Some(place) => place,
            None => self.make(flow),
        };
        let counts = &mut self.counts;
        let answer = match self.cache.at_mut(place) {
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
            // Unreachable: every found or made place is filled.
            None => Err(Reason::Synchronising),
        };
        match answer {
            Ok(_) => counts.by_device += 1,
            Err(reason) => counts.by_kernel[reason as usize] += 1,
        }
        answer
    }

    /// Handle to a flow's cached headers, if the flow goes by the device. Not counted.
    #[inline]
    pub fn find(&self, flow: &Flow) -> Option<CachedHeader> {
        let place = self.cache.find(flow, self.generation)?;
        let entry = self.cache.at(place)?;
        entry.answer.is_ok().then_some(CachedHeader {
            place,
            version: self.version(),
        })
    }

    /// Headers behind a handle, if the handle is still valid and the payload fits one packet. `None` is not counted;
    /// [`headers`](Self::headers) then gives the reason.
    // Inlined always: the call would cost as much as the body.
    #[inline(always)]
    pub fn known_headers(
        &mut self,
        known: CachedHeader,
        payload_bytes: usize,
    ) -> Option<&Template> {
        if !self.is_current(known) {
            return None;
        }
        let entry = self.cache.at_mut(known.place)?;
        let template = entry.answer.as_ref().ok()?;
        if payload_bytes > template.max_payload_bytes() {
            return None;
        }
        entry.is_used = true;
        self.counts.by_device += 1;
        Some(template)
    }

    /// Returns whether the handle is still valid.
    #[inline]
    #[must_use]
    pub fn is_current(&self, known: CachedHeader) -> bool {
        known.version == self.version()
    }

    /// Sum of two monotonic counters, so it changes with either.
    #[inline]
    fn version(&self) -> u64 {
        self.generation + self.counts.made
    }

    /// Builds the cache entry of a flow.
    #[cold]
    fn make(&mut self, flow: &Flow) -> usize {
        let place = self.cache.place_for(flow);
        let found = resolve(self.tables(), flow.destination, self.vlan);
        let entry = Entry {
            flow: *flow,
            generation: self.generation,
            answer: found.map(|found| Template::new(&found.device, flow)),
            neighbour: found.ok().and_then(|found| found.neighbour),
            is_used: true,
        };
        self.cache.put(place, entry);
        self.counts.made += 1;
        place
    }

    /// Kernel tables as last read.
    #[must_use]
    pub fn tables(&self) -> &Snapshot {
        self.monitor.snapshot()
    }

    /// Device state as last reported by the kernel.
    #[must_use]
    pub fn device(&self) -> &DeviceState {
        &self.tables().device
    }

    /// Local and broadcast routes of this host: address and prefix length.
    pub fn local_networks(&self) -> impl Iterator<Item = ([u8; 4], u8)> {
        let local = self.tables().routes.local();
        local.map(|route| (route.destination.to_be_bytes(), route.prefix_bits))
    }

    /// Counter that changes whenever a decision may have changed.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Counters of route decisions.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            neighbours_refused: self.tables().neighbours.refused(),
            routes_refused: self.tables().routes.refused(),
            follow: self.monitor.counts(),
            ..self.counts
        }
    }
}
