//! Tests of datagrams that leave by a lane or by the kernel, and of their counters.

use isolane_datapath::{Class, Datapath, Lane, TransmitBurst};
use isolane_datapath_xdp::xdp::counters;
use isolane_wire::locator::Locator;

use crate::hosts::{eventually, ip};
use crate::network::{INTERFACE, Segment};
use crate::support::{
    CRITICAL, count, finish, pair, participant, payload, receive, send, take_news,
};

#[test]
fn what_the_lane_reaches_goes_by_lane_without_a_copy_and_arrives_by_lane() {
    let [mut one, mut other] = pair(&[CRITICAL]);
    let to = other.unicast(CRITICAL)[0];
    for number in 0..100 {
        let sent = send(&mut one, CRITICAL, &payload(number, 64), &[to]);
        assert_eq!(sent.sent, 1);
        assert_eq!(receive(&mut other, CRITICAL, 1), [payload(number, 64)]);
    }
    assert_eq!(count(&one, CRITICAL, counters::SENT_BY_LANE), 100);
    assert_eq!(count(&one, CRITICAL, counters::DESTINATION_COPY), 0);
    assert_eq!(count(&other, CRITICAL, counters::RECEIVED_BY_LANE), 100);
    assert_eq!(count(&other, CRITICAL, counters::PARTIAL_CHECKSUM), 0);
    finish(one);
    finish(other);
}

#[test]
fn each_further_destination_is_a_copy_and_this_host_is_the_kernels() {
    let mut segment = Segment::new();
    let hosts = [(); 3].map(|()| segment.add_host());
    let [mut one, mut two, mut three] = hosts.map(|host| participant(host, &[CRITICAL], |_| {}));
    let to = [&one, &two, &three].map(|path| path.unicast(CRITICAL)[0]);
    assert_eq!(send(&mut one, CRITICAL, &payload(1, 80), &to).sent, 3);
    for path in [&mut one, &mut two, &mut three] {
        assert_eq!(receive(path, CRITICAL, 1), [payload(1, 80)]);
    }
    assert_eq!(count(&one, CRITICAL, counters::SENT_BY_LANE), 2);
    assert_eq!(count(&one, CRITICAL, counters::DESTINATION_COPY), 1);
    assert_eq!(count(&one, CRITICAL, counters::KERNEL_OWN_HOST), 1);
    finish(one);
    finish(two);
    finish(three);
}

#[test]
fn copies_find_the_chunks_of_single_frames_that_are_done() {
    let mut segment = Segment::new();
    let hosts = [(); 3].map(|()| segment.add_host());
    let [mut one, mut two, three] = hosts.map(|host| participant(host, &[CRITICAL], |_| {}));
    let to = [&two, &three].map(|path| path.unicast(CRITICAL)[0]);
    for number in 0..7 {
        send(&mut one, CRITICAL, &payload(number, 64), &to[..1]);
        assert_eq!(receive(&mut two, CRITICAL, 1), [payload(number, 64)]);
    }
    // Each frame and its copy together take all chunks.
    let chunks = one.pool().capacity(Class::Transmit(CRITICAL));
    let frames = u32::try_from(chunks / 2).expect("few");
    let mut burst = TransmitBurst::new();
    for number in 0..frames {
        let mut frame = one.pool().take(CRITICAL).expect("a free frame");
        frame.append(&payload(number, 64)).expect("room");
        burst.push(frame).expect("room in the burst");
        for to in to {
            burst.address(to).expect("room for the destination");
        }
    }
    assert_eq!(one.send_burst(CRITICAL, &mut burst).sent, 2 * frames);
    assert_eq!(
        count(&one, CRITICAL, counters::DESTINATION_COPY),
        u64::from(frames)
    );
    assert_eq!(count(&one, CRITICAL, counters::KERNEL_NO_CHUNK), 0);
    finish(one);
    finish(two);
    finish(three);
}

#[test]
fn a_frame_of_another_pool_is_copied_and_goes_home_there() {
    let [mut one, mut other] = pair(&[CRITICAL]);
    let to = other.unicast(CRITICAL)[0];
    // Both devices have chunks with the same numbers, and only one of them belongs to the sending device.
    let mut burst = TransmitBurst::new();
    for (path, number) in [(&other, 1), (&one, 2)] {
        let mut frame = path.pool().take(CRITICAL).expect("a free frame");
        frame.append(&payload(number, 64)).expect("room");
        burst.push(frame).expect("room in the burst");
        burst.address(to).expect("room for the destination");
    }
    one.send_burst(CRITICAL, &mut burst);
    let expected = [payload(1, 64), payload(2, 64)];
    assert_eq!(receive(&mut other, CRITICAL, 2), expected);
    assert_eq!(count(&one, CRITICAL, counters::SENT_BY_LANE), 2);
    assert_eq!(count(&one, CRITICAL, counters::DESTINATION_COPY), 1);
    finish(one);
    finish(other);
}

#[test]
fn what_is_longer_than_a_frame_of_the_interface_leaves_and_arrives_by_the_kernel() {
    let [mut one, mut other] = pair(&[CRITICAL]);
    let to = other.unicast(CRITICAL)[0];
    for (bytes, by_kernel) in [(1_472, 0), (1_473, 1), (2_000, 2), (2_001, 3), (60_000, 4)] {
        send(&mut one, CRITICAL, &payload(1, bytes), &[to]);
        assert_eq!(receive(&mut other, CRITICAL, 1), [payload(1, bytes)]);
        assert_eq!(count(&one, CRITICAL, counters::KERNEL_TOO_LONG), by_kernel);
    }
    assert_eq!(count(&other, CRITICAL, counters::RECEIVED_BY_LANE), 1);
    finish(one);
    finish(other);
}

#[test]
fn a_group_is_one_frame_by_lane_and_one_copy_for_this_host() {
    let [mut one, mut other] = pair(&[CRITICAL]);
    let group = one.multicast(CRITICAL)[0];
    for number in 0..10 {
        let sent = send(&mut one, CRITICAL, &payload(number, 64), &[group]);
        assert_eq!((sent.sent, sent.refused), (1, 0));
        for path in [&mut one, &mut other] {
            assert_eq!(receive(path, CRITICAL, 1), [payload(number, 64)]);
        }
    }
    assert_eq!(count(&one, CRITICAL, counters::SENT_BY_LANE), 10);
    assert_eq!(count(&one, CRITICAL, counters::KERNEL_LOCAL_GROUP), 10);
    assert_eq!(count(&other, CRITICAL, counters::RECEIVED_BY_LANE), 10);
    // The kernel sends datagrams that are too long, and its sockets then have another TTL.
    send(&mut one, CRITICAL, &payload(11, 3_000), &[group]);
    send(&mut one, CRITICAL, &payload(12, 64), &[group]);
    for path in [&mut one, &mut other] {
        let mut received = receive(path, CRITICAL, 2);
        received.sort();
        assert_eq!(received, [payload(11, 3_000), payload(12, 64)]);
    }
    finish(one);
    finish(other);
}

#[test]
fn a_stranger_is_reached_by_the_kernel_first_and_by_lane_once_it_is_known() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[Lane::Discovery, CRITICAL], |_| {});
    let mut other = participant(segment.add_stranger(), &[CRITICAL], |_| {});
    let to = other.unicast(CRITICAL)[0];
    for number in 0..50 {
        take_news(&mut one);
        send(&mut one, CRITICAL, &payload(number, 64), &[to]);
        assert_eq!(receive(&mut other, CRITICAL, 1), [payload(number, 64)]);
    }
    let by_kernel = count(&one, CRITICAL, counters::KERNEL_NEIGHBOUR);
    let by_lane = count(&one, CRITICAL, counters::SENT_BY_LANE);
    assert!((1..10).contains(&by_kernel), "{by_kernel} by the kernel");
    assert_eq!(by_kernel + by_lane, 50);
    // The datagram came from the kernel's socket through a virtual interface.
    assert!(count(&other, CRITICAL, counters::PARTIAL_CHECKSUM) > 0);
    finish(one);
    finish(other);
}

#[test]
fn a_place_without_a_route_is_refused_by_name() {
    let [mut one, other] = pair(&[CRITICAL]);
    let nowhere = Locator::udpv4([192, 0, 2, 1], 7_411);
    let sent = send(&mut one, CRITICAL, &payload(1, 64), &[nowhere]);
    assert_eq!((sent.sent, sent.refused), (0, 1));
    assert_eq!(count(&one, CRITICAL, counters::KERNEL_NO_ROUTE), 1);
    finish(one);
    finish(other);
}

/// Number of a lane's transmit frames that are neither free nor chunks for reception.
fn in_transmission(path: &impl Datapath) -> usize {
    let class = Class::Transmit(CRITICAL);
    let pool = path.pool();
    pool.capacity(class) - pool.free(class)
}

#[test]
fn frames_that_a_late_kick_sends_come_home_although_nothing_is_sent_after_them() {
    const FRAMES: usize = 20;
    let [mut one, other] = pair(&[CRITICAL]);
    let to = other.unicast(CRITICAL)[0];
    // The lane has not been notified yet, so frames wait in the ring.
    one.host.enter(|| ip(&format!("link set {INTERFACE} down")));
    for number in 0..FRAMES {
        send(&mut one, CRITICAL, &payload(number as u32, 64), &[to]);
    }
    assert!(one.wants_recycling());
    assert_eq!(in_transmission(&one), FRAMES);
    one.host.enter(|| ip(&format!("link set {INTERFACE} up")));
    eventually("the kernel takes them", || {
        one.recycle();
        (!one.wants_recycling()).then_some(())
    });
    // This is all that the loop does for an idle lane.
    eventually("they come home", || {
        one.check_interfaces();
        (in_transmission(&one) == 0).then_some(())
    });
    finish(one);
    finish(other);
}
