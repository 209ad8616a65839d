//! Tests that changes of routes and neighbours are processed when they wake discovery's lane. These tests do no
//! housekeeping, and sending does not check for changes.

use isolane_datapath::{Datapath, Lane, ReceiveBurst};
use isolane_datapath_xdp::xdp::Xdp;
use isolane_datapath_xdp::xdp::counters;
use isolane_wire::ethernet::MacAddress;

use crate::fixture::On;
use crate::hosts::{eventually, ip, mac_of};
use crate::network::{Host, INTERFACE, Segment};
use crate::support::{CRITICAL, count, finish, participant, payload, receive, send, take_news};

/// Sets a permanent neighbour entry of a host for another one.
fn point(host: &Host, to: &Host, mac: [u8; 6]) {
    let (address, mac) = (to.address(), MacAddress(mac));
    let known = format!("neighbour replace {address} lladdr {mac} dev {INTERFACE} nud permanent");
    host.enter(|| ip(&known));
}

/// Number of frames that the classifier received for the right port and another host's address.
fn misled(path: &On<Xdp>) -> u64 {
    let interfaces = path.observe().interfaces;
    let decisions = interfaces.iter().flat_map(|one| &one.decisions);
    let others = decisions.filter(|(name, _)| *name == "unknown port");
    others.map(|(_, count)| count).sum()
}

#[test]
fn a_neighbour_is_sent_to_where_it_is_as_soon_as_the_kernel_says_so() {
    let mut segment = Segment::new();
    let hosts = [(); 3].map(|()| segment.add_host());
    let [here, there, elsewhere] = &hosts;
    let macs = [there, elsewhere].map(|host| host.enter(|| mac_of(INTERFACE)));
    let mut one = participant(here.clone(), &[Lane::Discovery, CRITICAL], |_| {});
    let mut others = [there, elsewhere].map(|host| participant(host.clone(), &[CRITICAL], |_| {}));
    let (home, to) = (one.unicast(CRITICAL)[0], others[0].unicast(CRITICAL)[0]);
    // The bridge learns the ports of the hosts.
    for other in &mut others {
        send(other, CRITICAL, &payload(1, 64), &[home]);
        assert_eq!(receive(&mut one, CRITICAL, 1).len(), 1);
    }

    point(here, there, macs[1]);
    let before = misled(&others[1]);
    eventually("frames go to the new address", || {
        take_news(&mut one);
        send(&mut one, CRITICAL, &payload(2, 64), &[to]);
        (misled(&others[1]) > before).then_some(())
    });
    point(here, there, macs[0]);
    eventually("frames go to the old address again", || {
        take_news(&mut one);
        send(&mut one, CRITICAL, &payload(3, 64), &[to]);
        let mut burst = ReceiveBurst::new();
        others[0].receive_burst(CRITICAL, 16, &mut burst);
        let mut received = burst.iter().map(|one| one.frame.to_vec());
        received.any(|bytes| bytes == payload(3, 64)).then_some(())
    });
    finish(one);
    others.into_iter().for_each(finish);
}

#[test]
fn an_interface_that_is_down_gets_no_frames_and_one_that_is_up_again_gets_them() {
    let mut segment = Segment::new();
    let host = segment.add_host();
    let mut one = participant(host.clone(), &[Lane::Discovery, CRITICAL], |_| {});
    let other = participant(segment.add_host(), &[CRITICAL], |_| {});
    let to = other.unicast(CRITICAL)[0];

    host.enter(|| ip(&format!("link set {INTERFACE} down")));
    eventually("the kernel's way is taken", || {
        take_news(&mut one);
        send(&mut one, CRITICAL, &payload(1, 64), &[to]);
        (count(&one, CRITICAL, counters::KERNEL_DOWN) > 0).then_some(())
    });
    let before = count(&one, CRITICAL, counters::SENT_BY_LANE);

    host.enter(|| ip(&format!("link set {INTERFACE} up")));
    eventually("the lane is taken again", || {
        take_news(&mut one);
        send(&mut one, CRITICAL, &payload(2, 64), &[to]);
        (count(&one, CRITICAL, counters::SENT_BY_LANE) > before).then_some(())
    });
    finish(one);
    finish(other);
}
