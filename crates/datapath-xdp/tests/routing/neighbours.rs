//! Tests of neighbours that appear, change their address, and stop answering.

use std::time::{Duration, Instant};

use isolane_datapath_xdp::routing::{Reason, Router};
use isolane_hostnet::neighbour::Certainty;
use isolane_wire::ethernet::MacAddress;

use crate::hosts::{Hosts, THERE, eventually, ip, mac_of, set};
use crate::{device, follow, headers, meet, reason, router, send_by_kernel};

const OTHER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x77]);

/// Shortens the kernel's timeouts, so that neighbours become stale soon and are queried quickly.
fn be_impatient() {
    for (name, value) in [
        ("base_reachable_time_ms", "100"),
        ("delay_first_probe_time", "0"),
        ("retrans_time_ms", "50"),
    ] {
        set(&format!("net/ipv4/neigh/host-a/{name}"), value);
    }
}

fn mac(router: &mut Router) -> Option<MacAddress> {
    device(router, THERE).map(|device| device.destination_mac)
}

fn certainty(router: &mut Router) -> Option<Certainty> {
    follow(router);
    let neighbour = router.tables().neighbours.get(THERE.octets());
    neighbour.map(|known| known.certainty)
}

#[test]
fn a_neighbour_is_sent_to_once_the_kernel_has_found_it() {
    let hosts = Hosts::new();
    let mut router = router();
    assert_eq!(reason(&mut router, THERE), Some(Reason::NeighbourUnknown));
    assert!(headers(&mut router, THERE).is_err());
    let before = router.generation();
    meet();
    let there = MacAddress(hosts.there(|| mac_of("host-b")));
    assert_eq!(mac(&mut router), Some(there));
    assert!(headers(&mut router, THERE).is_ok());
    assert!(router.generation() > before);
}

#[test]
fn a_neighbour_that_announces_another_address_is_followed_at_once() {
    let hosts = Hosts::new();
    let mut router = router();
    meet();
    assert!(mac(&mut router).is_some());
    hosts.there(|| {
        set("net/ipv4/conf/host-b/arp_notify", "1");
        ip(&format!("link set host-b address {OTHER_MAC}"));
    });
    // The kernel ignores the first announcement for up to a second after a confirmation (net.ipv4.neigh.*.locktime).
    // The next one, or any message of the neighbour, is accepted.
    eventually("the new address is followed", || {
        hosts.there(|| send_by_kernel(crate::hosts::HERE));
        (mac(&mut router) == Some(OTHER_MAC)).then_some(())
    });
}

/// Does what a datapath does: requests headers, sends by the kernel if there are none, and refreshes neighbours during
/// housekeeping.
fn carry_on(router: &mut Router, keeps_fresh: bool) {
    if headers(router, THERE).is_err() {
        send_by_kernel(THERE);
    }
    if keeps_fresh {
        router.keep_fresh();
    }
}

#[test]
fn a_neighbour_that_changes_its_address_without_a_word_is_found_again() {
    let hosts = Hosts::new();
    be_impatient();
    let mut router = router();
    meet();
    let old = mac(&mut router);
    assert!(old.is_some());
    hosts.there(|| {
        // The neighbour announces nothing, so only a query can find the new address.
        set("net/ipv4/conf/host-b/arp_notify", "0");
        ip("link set host-b arp off");
        ip(&format!("link set host-b address {OTHER_MAC}"));
        ip("link set host-b arp on");
    });
    // Comparison run: without refreshing, the old address stays valid forever.
    eventually("the address becomes stale", || {
        carry_on(&mut router, false);
        (certainty(&mut router) == Some(Certainty::Stale)).then_some(())
    });
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        carry_on(&mut router, false);
        assert_eq!(mac(&mut router), old);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(router.counts().follow.confirmations, 0);

    eventually("the new address is found", || {
        carry_on(&mut router, true);
        (mac(&mut router) == Some(OTHER_MAC)).then_some(())
    });
    let counts = router.counts();
    assert!(counts.follow.confirmations > 0, "{counts:?}");
    assert_eq!(counts.follow.refused, 0, "{counts:?}");
}

#[test]
fn a_neighbour_in_use_that_stops_answering_is_left_to_the_kernel() {
    let hosts = Hosts::new();
    be_impatient();
    let mut router = router();
    meet();
    hosts.there(|| ip("link set host-b arp off"));
    eventually("the neighbour is given up", || {
        carry_on(&mut router, true);
        let reason = reason(&mut router, THERE);
        matches!(
            reason,
            Some(Reason::NeighbourFailed | Reason::NeighbourUnknown)
        )
        .then_some(())
    });
    hosts.there(|| ip("link set host-b arp on"));
    eventually("the neighbour is found again", || {
        carry_on(&mut router, true);
        mac(&mut router)
    });
}

#[test]
fn the_kernel_is_not_asked_about_neighbours_that_are_not_sent_to() {
    let _hosts = Hosts::new();
    be_impatient();
    let mut router = router();
    meet();
    eventually("the address becomes stale", || {
        (certainty(&mut router) == Some(Certainty::Stale)).then_some(())
    });
    for _ in 0..10 {
        follow(&mut router);
        router.keep_fresh();
    }
    assert_eq!(router.counts().follow.confirmations, 0);
}

#[test]
fn a_permanent_neighbour_stays_one() {
    let _hosts = Hosts::new();
    ip(&format!(
        "neighbour replace {THERE} lladdr {OTHER_MAC} dev host-a nud permanent"
    ));
    let mut router = router();
    for _ in 0..3 {
        assert!(headers(&mut router, THERE).is_ok());
        router.keep_fresh();
    }
    assert_eq!(mac(&mut router), Some(OTHER_MAC));
    assert!(ip("neighbour show").contains("PERMANENT"));
    assert_eq!(router.counts().follow.confirmations, 0);
}

#[test]
fn more_neighbours_than_the_socket_holds_are_read_again() {
    let _hosts = Hosts::new();
    let mut router = router();
    // Room for only a few messages.
    let bytes: libc::c_int = 8 << 10;
    // SAFETY: the option's value is an int, alive during the call.
    let set = unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&router.descriptor()),
            libc::SOL_SOCKET,
            libc::SO_RCVBUF,
            (&raw const bytes).cast(),
            size_of_val(&bytes) as libc::socklen_t,
        )
    };
    assert_eq!(set, 0);
    for last in 2..=60 {
        ip(&format!(
            "neighbour add 10.78.0.{last} lladdr {OTHER_MAC} dev host-a nud permanent"
        ));
    }
    follow(&mut router);
    let counts = router.counts();
    assert!(counts.follow.overruns > 0, "{counts:?}");
    let tables = router.tables();
    assert!(tables.is_synchronised);
    assert_eq!(tables.neighbours.iter().count(), 59);
    assert_eq!(mac(&mut router), Some(OTHER_MAC));
}
