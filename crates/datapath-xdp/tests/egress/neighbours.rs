//! Tests of neighbours that appear, change their address, and stop answering.

use std::time::{Duration, Instant};

use isolane_datapath_xdp::egress::{Egress, Reason};
use isolane_hostnet::neighbour::Certainty;
use isolane_wire::ethernet::MacAddress;

use crate::hosts::{Hosts, THERE, eventually, ip, mac_of, set};
use crate::{device, egress, follow, headers, meet, reason, send_by_kernel};

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

fn mac(egress: &mut Egress) -> Option<MacAddress> {
    device(egress, THERE).map(|device| device.destination_mac)
}

fn certainty(egress: &mut Egress) -> Option<Certainty> {
    follow(egress);
    let neighbours = egress.observe().neighbours;
    neighbours
        .iter()
        .find(|known| known.address == THERE)
        .map(|known| known.certainty)
}

#[test]
fn a_neighbour_is_sent_to_once_the_kernel_has_found_it() {
    let hosts = Hosts::new();
    let mut egress = egress();
    assert_eq!(reason(&mut egress, THERE), Some(Reason::NeighbourUnknown));
    assert!(headers(&mut egress, THERE).is_err());
    let before = egress.generation();
    meet();
    let there = MacAddress(hosts.there(|| mac_of("host-b")));
    assert_eq!(mac(&mut egress), Some(there));
    assert!(headers(&mut egress, THERE).is_ok());
    assert!(egress.generation() > before);
}

#[test]
fn a_neighbour_that_announces_another_address_is_followed_at_once() {
    let hosts = Hosts::new();
    let mut egress = egress();
    meet();
    assert!(mac(&mut egress).is_some());
    hosts.there(|| {
        set("net/ipv4/conf/host-b/arp_notify", "1");
        ip(&format!("link set host-b address {OTHER_MAC}"));
    });
    // The kernel ignores the first announcement for up to a second after a confirmation (net.ipv4.neigh.*.locktime).
    // The next one, or any message of the neighbour, is accepted.
    eventually("the new address is followed", || {
        hosts.there(|| send_by_kernel(crate::hosts::HERE));
        (mac(&mut egress) == Some(OTHER_MAC)).then_some(())
    });
}

/// Does what a datapath does: requests headers, sends by the kernel if there are none, and refreshes neighbours during
/// housekeeping.
fn carry_on(egress: &mut Egress, keeps_fresh: bool) {
    if headers(egress, THERE).is_err() {
        send_by_kernel(THERE);
    }
    if keeps_fresh {
        egress.keep_fresh();
    }
}

#[test]
fn a_neighbour_that_changes_its_address_without_a_word_is_found_again() {
    let hosts = Hosts::new();
    be_impatient();
    let mut egress = egress();
    meet();
    let old = mac(&mut egress);
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
        carry_on(&mut egress, false);
        (certainty(&mut egress) == Some(Certainty::Stale)).then_some(())
    });
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        carry_on(&mut egress, false);
        assert_eq!(mac(&mut egress), old);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(egress.counts().follow.confirmations, 0);

    eventually("the new address is found", || {
        carry_on(&mut egress, true);
        (mac(&mut egress) == Some(OTHER_MAC)).then_some(())
    });
    let counts = egress.counts();
    assert!(counts.follow.confirmations > 0, "{counts:?}");
    assert_eq!(counts.follow.refused, 0, "{counts:?}");
}

#[test]
fn a_neighbour_in_use_that_stops_answering_is_left_to_the_kernel() {
    let hosts = Hosts::new();
    be_impatient();
    let mut egress = egress();
    meet();
    hosts.there(|| ip("link set host-b arp off"));
    eventually("the neighbour is given up", || {
        carry_on(&mut egress, true);
        let reason = reason(&mut egress, THERE);
        matches!(
            reason,
            Some(Reason::NeighbourFailed | Reason::NeighbourUnknown)
        )
        .then_some(())
    });
    hosts.there(|| ip("link set host-b arp on"));
    eventually("the neighbour is found again", || {
        carry_on(&mut egress, true);
        mac(&mut egress)
    });
}

#[test]
fn the_kernel_is_not_asked_about_neighbours_that_are_not_sent_to() {
    let _hosts = Hosts::new();
    be_impatient();
    let mut egress = egress();
    meet();
    eventually("the address becomes stale", || {
        (certainty(&mut egress) == Some(Certainty::Stale)).then_some(())
    });
    for _ in 0..10 {
        follow(&mut egress);
        egress.keep_fresh();
    }
    assert_eq!(egress.counts().follow.confirmations, 0);
}

#[test]
fn a_permanent_neighbour_stays_one() {
    let _hosts = Hosts::new();
    ip(&format!(
        "neighbour replace {THERE} lladdr {OTHER_MAC} dev host-a nud permanent"
    ));
    let mut egress = egress();
    for _ in 0..3 {
        assert!(headers(&mut egress, THERE).is_ok());
        egress.keep_fresh();
    }
    assert_eq!(mac(&mut egress), Some(OTHER_MAC));
    assert!(ip("neighbour show").contains("PERMANENT"));
    assert_eq!(egress.counts().follow.confirmations, 0);
}

#[test]
fn more_neighbours_than_the_socket_holds_are_read_again() {
    let _hosts = Hosts::new();
    let mut egress = egress();
    // Room for only a few messages.
    let bytes: libc::c_int = 8 << 10;
    // SAFETY: the option's value is an int, alive during the call.
    let set = unsafe {
        libc::setsockopt(
            std::os::fd::AsRawFd::as_raw_fd(&egress.descriptor()),
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
    follow(&mut egress);
    let counts = egress.counts();
    assert!(counts.follow.overruns > 0, "{counts:?}");
    let observation = egress.observe();
    assert!(observation.is_synchronised);
    assert_eq!(observation.neighbours.len(), 59);
    assert_eq!(mac(&mut egress), Some(OTHER_MAC));
}
