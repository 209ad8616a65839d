//! Tests of frames with a source address that no datagram from the network may have.

use std::time::Duration;

use isolane_datapath::{Datapath, ReceiveBurst};
use isolane_datapath_xdp::xdp::counters;
use isolane_wire::ethernet::MacAddress;

use crate::hosts::{eventually, index_of, ip, mac_of};
use crate::network::{INTERFACE, Segment};
use crate::packet_socket::PacketSocket;
use crate::support::{CRITICAL, count, finish, participant, payload, receive};
use crate::udp_frame::udp_frame;

#[test]
fn frames_from_the_hosts_own_addresses_are_dropped_also_after_these_have_changed() {
    let mut segment = Segment::new();
    let (forger, host) = (segment.add_host(), segment.add_host());
    // Address of another interface of this host, which the kernel rejects as well.
    let bridge = [192, 0, 2, 1];
    host.enter(|| {
        ip("link add bridge type bridge");
        ip("link set bridge up");
        ip("address add 192.0.2.1/24 dev bridge");
    });
    let mac = MacAddress(host.enter(|| mac_of(INTERFACE)));
    let mut device = forger.enter(|| PacketSocket::on(index_of(INTERFACE)));
    let former = host.address().octets();
    let mut other = participant(host, &[CRITICAL], |_| {});
    let port = other.unicast(CRITICAL)[0].port as u16;

    let broadcast = [former[0], former[1], former[2], 255];
    for source in [former, bridge, broadcast, [127, 0, 0, 1]] {
        device.send(&udp_frame(source, mac, former, port, &payload(1, 64)));
    }
    let neighbour = forger.address().octets();
    device.send(&udp_frame(neighbour, mac, former, port, &payload(2, 64)));
    assert_eq!(receive(&mut other, CRITICAL, 1), [payload(2, 64)]);
    assert_eq!(martians(&other), 4);

    let [a, b, c, d] = former;
    let now = [a, b, c, d + 100];
    other.host.enter(|| {
        ip(&format!("address del {a}.{b}.{c}.{d}/24 dev {INTERFACE}"));
        let added = d + 100;
        ip(&format!(
            "address add {a}.{b}.{c}.{added}/24 dev {INTERFACE}"
        ));
    });
    eventually("the former address is a neighbour's", || {
        other.check_interfaces();
        device.send(&udp_frame(former, mac, now, port, &payload(3, 64)));
        std::thread::sleep(Duration::from_millis(5));
        let before = count(&other, CRITICAL, counters::RECEIVED_BY_LANE);
        other.receive_burst(CRITICAL, 8, &mut ReceiveBurst::new());
        (count(&other, CRITICAL, counters::RECEIVED_BY_LANE) > before).then_some(())
    });
    let before = martians(&other);
    device.send(&udp_frame(now, mac, now, port, &payload(4, 64)));
    device.send(&udp_frame(neighbour, mac, now, port, &payload(5, 64)));
    eventually("what comes last is received", || {
        let received = receive(&mut other, CRITICAL, 1);
        assert_ne!(received, [payload(4, 64)]);
        (received == [payload(5, 64)]).then_some(())
    });
    assert_eq!(martians(&other), before + 1);
    finish(other);
}

fn martians(path: &impl Datapath) -> u64 {
    let ledger = path.ledger();
    ledger
        .lane(CRITICAL)
        .receive
        .dropped(counters::MARTIAN_SOURCE)
}
