//! IPv4 routes of a network namespace, and route look-up.
//!
//! The kernel searches its tables in the order local, main, default (the default policy rules), and takes the longest
//! prefix, then the smallest metric. [`Routes`] is sorted in that order: the first route that covers a destination is
//! the result.

use std::net::Ipv4Addr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::limits::MAX_ROUTES;
use crate::netlink::{NetlinkError, Rtnetlink};

/// Routing tables of the kernel's default policy rules, in order of look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// The host's own addresses and broadcasts.
    Local,
    /// Routes shown by `ip route`.
    Main,
    /// Default table, usually empty.
    Default,
}

/// Treatment of a packet that takes a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteKind {
    /// Forwarded through an interface.
    Unicast,
    /// Delivered locally: an address of this host.
    Local,
    /// Sent to the broadcast address.
    Broadcast,
    /// Refused: blackhole, unreachable, prohibit.
    Refused,
    /// Sent in a way that takes more than an Ethernet header: several paths, a tunnel, a gateway of another family, a
    /// route for one type of service.
    Intricate,
}

/// Route. Two values that differ only in `mtu_bytes` and `round` are the same route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Table of the route.
    pub table: Table,
    /// Destination network, as a number in host order.
    pub destination: u32,
    /// Length of its prefix.
    pub prefix_bits: u8,
    /// Metric; the smallest wins.
    pub metric: u32,
    /// Treatment of a packet.
    pub kind: RouteKind,
    /// Interface index; 0 if the route names none.
    pub interface: u32,
    /// Next hop, if the destination is not on the link.
    pub gateway: Option<[u8; 4]>,
    /// Preferred source address.
    pub source: Option<[u8; 4]>,
    /// Route MTU in bytes, if an administrator has set it.
    pub mtu_bytes: Option<u32>,
    /// Number of the last dump that contained the route.
    pub round: u32,
}

impl Route {
    fn covers(&self, address: u32) -> bool {
        let ignored = 32 - u32::from(self.prefix_bits.min(32));
        // Rust has no shift by all 32 bits.
        (address ^ self.destination)
            .checked_shr(ignored)
            .unwrap_or(0)
            == 0
    }

    /// Sort key: order of look-up.
    fn rank(&self) -> (Table, u8, u32) {
        (self.table, 32 - self.prefix_bits.min(32), self.metric)
    }

    fn is_same(&self, other: &Route) -> bool {
        let plain = |route: &Route| Route {
            mtu_bytes: None,
            round: 0,
            ..*route
        };
        plain(self) == plain(other)
    }
}

/// Routes of a namespace, at most [`MAX_ROUTES`].
#[derive(Debug)]
pub struct Routes {
    sorted: Vec<Route>,
    /// Routes refused since the last dump began, because the table was full.
    refused: u64,
    /// Routes refused before that dump began. They count until the dump ends, since any of them may be missing.
    refused_before: u64,
}

impl Routes {
    pub(crate) fn new() -> Routes {
        Routes {
            sorted: Vec::with_capacity(MAX_ROUTES),
            refused: 0,
            refused_before: 0,
        }
    }

    /// Adds or updates a route; returns whether anything changed.
    pub fn insert(&mut self, route: Route) -> bool {
        if let Some(known) = self.sorted.iter_mut().find(|known| known.is_same(&route)) {
            let has_changed = known.mtu_bytes != route.mtu_bytes;
            *known = route;
            return has_changed;
        }
        if self.sorted.len() == MAX_ROUTES {
            self.refused += 1;
            // The table `local` has precedence: the martian address filter needs it.
            let gives_way = self.sorted.last().map(|last| last.table);
            if route.table != Table::Local || gives_way == Some(Table::Local) {
                return true;
            }
            self.sorted.pop();
        }
        let rank = route.rank();
        let position = self.sorted.partition_point(|known| known.rank() <= rank);
        self.sorted.insert(position, route);
        true
    }

    /// Removes a route; returns whether it was known.
    pub(crate) fn remove(&mut self, route: &Route) -> bool {
        let position = self.sorted.iter().position(|known| known.is_same(route));
        position.map(|at| self.sorted.remove(at)).is_some()
    }

    /// Begins a dump of all routes.
    pub(crate) fn begin_dump(&mut self) {
        self.refused_before = self.refused();
        self.refused = 0;
    }

    /// Ends a dump: removes routes that the dump did not contain; returns whether anything changed.
    pub(crate) fn end_dump(&mut self, round: u32) -> bool {
        let before = (self.sorted.len(), self.refused());
        self.sorted.retain(|route| route.round == round);
        self.refused_before = 0;
        (self.sorted.len(), self.refused()) != before
    }

    /// Route that a destination takes.
    #[must_use]
    pub fn lookup(&self, destination: [u8; 4]) -> Option<&Route> {
        let address = u32::from_be_bytes(destination);
        self.sorted.iter().find(|route| route.covers(address))
    }

    /// Number of routes refused because the table was full. If not 0, the route of a destination may be missing.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.max(self.refused_before)
    }

    /// Routes to this host's own addresses and to the broadcast addresses of its networks.
    pub fn local(&self) -> impl Iterator<Item = &Route> {
        let own = self.sorted.iter();
        own.take_while(|route| route.table == Table::Local)
            .filter(|route| matches!(route.kind, RouteKind::Local | RouteKind::Broadcast))
    }

    /// All routes, in order of look-up.
    pub fn iter(&self) -> impl Iterator<Item = &Route> {
        self.sorted.iter()
    }
}

impl Rtnetlink {
    /// Adds a route to the main table that leaves by a link, without a gateway.
    pub fn add_route(
        &mut self,
        index: u32,
        destination: Ipv4Addr,
        prefix_length: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = prefix_length;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Link;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet(destination)),
            RouteAttribute::Oif(index),
        ];
        let message = RouteNetlinkMessage::NewRoute(message);
        self.request(&message, NLM_F_CREATE | NLM_F_EXCL).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(destination: [u8; 4], prefix_bits: u8, interface: u32) -> Route {
        Route {
            table: Table::Main,
            destination: u32::from_be_bytes(destination),
            prefix_bits,
            metric: 0,
            kind: RouteKind::Unicast,
            interface,
            gateway: None,
            source: None,
            mtu_bytes: None,
            round: 1,
        }
    }

    fn interface_for(routes: &Routes, destination: [u8; 4]) -> Option<u32> {
        routes.lookup(destination).map(|route| route.interface)
    }

    #[test]
    fn the_longest_prefix_is_taken() {
        let mut routes = Routes::new();
        routes.insert(route([0, 0, 0, 0], 0, 1));
        routes.insert(route([10, 0, 0, 0], 8, 2));
        routes.insert(route([10, 1, 0, 0], 16, 3));
        routes.insert(route([10, 1, 2, 3], 32, 4));
        assert_eq!(interface_for(&routes, [10, 1, 2, 3]), Some(4));
        assert_eq!(interface_for(&routes, [10, 1, 2, 4]), Some(3));
        assert_eq!(interface_for(&routes, [10, 9, 0, 1]), Some(2));
        assert_eq!(interface_for(&routes, [192, 0, 2, 1]), Some(1));
    }

    #[test]
    fn of_equal_prefixes_the_smallest_metric_is_taken_and_then_the_first() {
        let mut routes = Routes::new();
        let worse = Route {
            metric: 100,
            ..route([10, 0, 0, 0], 8, 1)
        };
        routes.insert(worse);
        routes.insert(route([10, 0, 0, 0], 8, 2));
        routes.insert(route([10, 0, 0, 0], 8, 3));
        assert_eq!(interface_for(&routes, [10, 0, 0, 1]), Some(2));
        assert!(routes.remove(&route([10, 0, 0, 0], 8, 2)));
        assert!(routes.remove(&route([10, 0, 0, 0], 8, 3)));
        assert_eq!(interface_for(&routes, [10, 0, 0, 1]), Some(1));
        assert!(!routes.remove(&route([10, 0, 0, 0], 8, 3)), "already gone");
    }

    #[test]
    fn the_local_table_is_asked_before_longer_prefixes_of_the_main_one() {
        let mut routes = Routes::new();
        routes.insert(route([127, 0, 0, 9], 32, 2));
        routes.insert(Route {
            table: Table::Local,
            kind: RouteKind::Local,
            ..route([127, 0, 0, 0], 8, 1)
        });
        assert_eq!(interface_for(&routes, [127, 0, 0, 9]), Some(1));
    }

    #[test]
    fn a_full_table_keeps_the_routes_of_the_local_table() {
        let mut routes = Routes::new();
        for nth in 0..=MAX_ROUTES as u16 {
            let [high, low] = nth.to_be_bytes();
            routes.insert(route([10, 0, high, low], 32, 1));
        }
        let local = |last| Route {
            table: Table::Local,
            kind: RouteKind::Local,
            ..route([192, 0, 2, last], 32, 1)
        };
        let before = routes.refused();
        for last in [1, 2] {
            assert!(routes.insert(local(last)));
        }
        let kept: Vec<_> = routes
            .local()
            .map(|route| route.destination & 0xff)
            .collect();
        assert_eq!(kept, [1, 2]);
        assert_eq!(routes.iter().count(), MAX_ROUTES);
        assert_eq!(routes.refused(), before + 2);
    }

    #[test]
    fn what_a_reading_did_not_show_is_gone() {
        let mut routes = Routes::new();
        routes.insert(route([10, 0, 0, 0], 8, 1));
        routes.insert(route([11, 0, 0, 0], 8, 1));
        routes.begin_dump();
        let seen = Route {
            round: 2,
            ..route([11, 0, 0, 0], 8, 1)
        };
        assert!(!routes.insert(seen), "nothing new");
        assert!(routes.end_dump(2));
        assert_eq!(interface_for(&routes, [10, 0, 0, 1]), None);
        assert_eq!(interface_for(&routes, [11, 0, 0, 1]), Some(1));
        assert!(!routes.end_dump(2), "and then nothing changes");
    }

    #[test]
    fn a_full_table_says_that_routes_are_missing_until_the_next_reading_is_at_its_end() {
        let mut routes = Routes::new();
        for number in 0..MAX_ROUTES as u32 + 3 {
            let [_, b, c, d] = number.to_be_bytes();
            routes.insert(route([b, c, d, 0], 24, 1));
        }
        assert_eq!(routes.refused(), 3);
        assert_eq!(routes.iter().count(), MAX_ROUTES);
        // A dump that restarts before its end has shown nothing.
        for _ in 0..2 {
            routes.begin_dump();
            assert_eq!(routes.refused(), 3);
        }
        assert!(routes.end_dump(2));
        assert_eq!(routes.refused(), 0);
    }
}
