//! Tests of failures of the interface and its neighbours.

use isolane_datapath::{Datapath, Lane, ReceiveBurst};
use isolane_datapath_xdp::xdp::counters;
use isolane_datapath_xdp::xdp::{OnFailure, XdpConfig};
use isolane_testkit::conformance::Options;
use isolane_wire::locator::Locator;

use crate::fixture::{config, xdp_on};
use crate::hosts::{eventually, ip};
use crate::network::{INTERFACE, Segment};
use crate::support::{
    BULK, CRITICAL, count, finish, participant, payload, receive, send, take_news,
};

#[test]
fn an_interface_that_goes_down_and_up_again_keeps_its_lanes() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let mut other = participant(segment.add_host(), &[CRITICAL], |_| {});
    let to = other.unicast(CRITICAL)[0];
    send(&mut one, CRITICAL, &payload(1, 64), &[to]);
    assert_eq!(receive(&mut other, CRITICAL, 1).len(), 1);

    other
        .host
        .enter(|| ip(&format!("link set {INTERFACE} down")));
    for number in 0..20 {
        other.check_interfaces();
        send(&mut one, CRITICAL, &payload(number, 64), &[to]);
        send(&mut other, CRITICAL, &payload(number, 64), &[to]);
    }
    other.host.enter(|| ip(&format!("link set {INTERFACE} up")));
    // While the interface was down, the kernel removed the neighbours of a test's host.
    let mut number = 100;
    eventually("lanes work again, both ways", || {
        number += 1;
        let back = one.unicast(CRITICAL)[0];
        for path in [&mut one, &mut other] {
            path.check_interfaces();
        }
        send(&mut one, CRITICAL, &payload(number, 64), &[to]);
        send(&mut other, CRITICAL, &payload(number, 64), &[back]);
        let mut burst = ReceiveBurst::new();
        let before = [&one, &other].map(|path| count(path, CRITICAL, counters::RECEIVED_BY_LANE));
        std::thread::sleep(std::time::Duration::from_millis(5));
        one.receive_burst(CRITICAL, 8, &mut burst);
        other.receive_burst(CRITICAL, 8, &mut burst);
        let after = [&one, &other].map(|path| count(path, CRITICAL, counters::RECEIVED_BY_LANE));
        (after[0] > before[0] && after[1] > before[1]).then_some(())
    });
    assert_eq!(other.warnings(), []);
    finish(one);
    finish(other);
}

#[test]
fn lanes_follow_an_address_that_changes() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL], |_| {});
    let mut other = participant(segment.add_host(), &[CRITICAL], |_| {});
    let flow = other.open_flow(CRITICAL).expect("a topic's port");
    let former = other.unicast(CRITICAL)[0];
    let of_topic = other.flow_unicast(flow)[0];
    send(&mut one, CRITICAL, &payload(1, 64), &[former]);
    assert_eq!(receive(&mut other, CRITICAL, 1).len(), 1);

    let address = other.host.address();
    let [a, b, c, d] = address.octets();
    other.host.enter(|| {
        ip(&format!("address del {address}/24 dev {INTERFACE}"));
        ip(&format!(
            "address add {a}.{b}.{c}.{}/24 dev {INTERFACE}",
            d + 100
        ));
    });
    eventually("the address is followed", || {
        other.check_interfaces().then_some(())
    });
    let at = |port| Locator::udpv4([a, b, c, d + 100], port as u16);
    assert_eq!(other.unicast(CRITICAL), [at(former.port)]);
    assert_eq!(other.flow_unicast(flow), [at(of_topic.port)]);
    let mut number = 100;
    for to in [at(former.port), at(of_topic.port)] {
        eventually("lanes work at the new address, both ways", || {
            number += 1;
            let back = one.unicast(CRITICAL)[0];
            for path in [&mut one, &mut other] {
                path.check_interfaces();
            }
            let before =
                [&one, &other].map(|path| count(path, CRITICAL, counters::RECEIVED_BY_LANE));
            send(&mut one, CRITICAL, &payload(number, 64), &[to]);
            send(&mut other, CRITICAL, &payload(number, 64), &[back]);
            let mut burst = ReceiveBurst::new();
            std::thread::sleep(std::time::Duration::from_millis(5));
            one.receive_burst(CRITICAL, 8, &mut burst);
            other.receive_burst(CRITICAL, 8, &mut burst);
            let after =
                [&one, &other].map(|path| count(path, CRITICAL, counters::RECEIVED_BY_LANE));
            (after[0] > before[0] && after[1] > before[1]).then_some(())
        });
    }
    assert_eq!(other.warnings(), []);
    finish(one);
    finish(other);
}

#[test]
fn an_interface_that_is_deleted_takes_its_lanes_along_and_sockets_go_on() {
    let mut segment = Segment::new();
    let mut one = participant(segment.add_host(), &[CRITICAL, BULK], |_| {});
    let mut other = participant(segment.add_host(), &[CRITICAL], |_| {});
    let nowhere = one.unicast(CRITICAL)[0];
    assert!(one.path.is_on_device(CRITICAL));
    let there = other.unicast(CRITICAL)[0];
    for number in 0..3 {
        send(&mut one, CRITICAL, &payload(number, 64), &[there]);
        assert_eq!(receive(&mut other, CRITICAL, 1), [payload(number, 64)]);
    }
    one.host.enter(|| ip(&format!("link delete {INTERFACE}")));
    eventually("the deletion is noticed", || {
        one.check_interfaces();
        (!one.path.is_on_device(CRITICAL)).then_some(())
    });
    let noted = one.warnings().iter().map(ToString::to_string);
    assert!(
        noted
            .clone()
            .any(|warning| warning.contains("its lanes are gone")),
        "{:?}",
        noted.collect::<Vec<_>>()
    );
    // The arrived frame counts as sent, although its completion was not read.
    let transmit = one.ledger().lane(CRITICAL).transmit;
    assert_eq!(
        (transmit.sent, transmit.refused(counters::DEVICE_GONE)),
        (3, 0)
    );
    finish(other);
    // No host has the address any more. The refusal has a name, and nothing panics or spins.
    let sent = send(&mut one, CRITICAL, &payload(1, 64), &[nowhere]);
    assert_eq!(sent.sent + sent.refused, 1);
    assert_eq!(one.peek_lanes(), None);
    finish(one);
}

#[test]
fn an_interface_that_comes_back_by_its_name_gets_lanes_when_the_participant_is_made_again() {
    let mut segment = Segment::new();
    let host = segment.add_host();
    let mut one = participant(host.clone(), &[Lane::Discovery, CRITICAL], |_| {});
    host.enter(|| {
        ip(&format!("link delete {INTERFACE}"));
        ip(&format!("link add {INTERFACE} type veth peer name other"));
        ip(&format!(
            "address add {}/24 dev {INTERFACE}",
            host.address()
        ));
        ip("link set other up");
        ip(&format!("link set {INTERFACE} up"));
    });
    one.check_interfaces();
    let noted = one.warnings().iter().map(ToString::to_string);
    let noted: Vec<String> = noted
        .filter(|warning| warning.contains("lanes are gone"))
        .collect();
    assert_eq!(noted.len(), 1, "{noted:?}");
    // The kernel sockets continue there, also for lanes opened from now on.
    one.open_lane(BULK).expect("sockets can be had");
    for lane in [CRITICAL, BULK] {
        assert!(!one.path.is_on_device(lane));
        let here = one.unicast(lane)[0];
        send(&mut one, lane, &payload(1, 64), &[here]);
        assert_eq!(receive(&mut one, lane, 1), [payload(1, 64)]);
    }
    // The notifications that arrived meanwhile are processed, and then wake no thread any more.
    eventually("no news are left", || (!take_news(&mut one)).then_some(()));
    finish(one);

    let again = participant(host, &[CRITICAL], |_| {});
    assert!(again.path.is_on_device(CRITICAL));
    finish(again);
}

#[test]
fn a_queue_has_one_program_and_the_second_gets_an_error_or_goes_by_sockets() {
    let mut segment = Segment::new();
    let host = segment.add_host();
    let first = participant(host.clone(), &[CRITICAL], |_| {});

    let wanted = config(&Options::default());
    let mut second = xdp_on(host.clone(), wanted.clone()).expect("nothing is opened yet");
    let error = second.open_lane(CRITICAL).expect_err("the queue is taken");
    assert!(error.to_string().contains("queue 0"), "{error}");
    assert!(second.unicast(CRITICAL).is_empty(), "the lane stays closed");
    drop(second);

    let mut wanted = wanted;
    wanted.options.on_failure = OnFailure::Sockets;
    let mut third = xdp_on(host, wanted).expect("sockets do");
    third.open_lane(CRITICAL).expect("sockets do");
    assert!(!third.path.is_on_device(CRITICAL));
    let is_noted = third
        .warnings()
        .iter()
        .any(|warning| warning.code == isolane_datapath_xdp::xdp::warning::NO_DEVICE_LANES);
    assert!(is_noted, "{:?}", third.warnings());
    // Both participants are on one host, so the kernel carries their datagrams.
    let mut first = first;
    let to = third.unicast(CRITICAL)[0];
    send(&mut first, CRITICAL, &payload(1, 64), &[to]);
    assert_eq!(receive(&mut third, CRITICAL, 1), [payload(1, 64)]);
    finish(first);
    finish(third);
}

#[test]
fn frames_that_arrive_on_another_queue_come_by_the_socket() {
    let mut segment = Segment::with_queues(2);
    let mut sender = participant(segment.add_host(), &[CRITICAL, BULK], |config| {
        config.options.queues[1] = 1;
    });
    let mut reader = participant(segment.add_host(), &[CRITICAL], |_| {});
    let to = reader.unicast(CRITICAL)[0];
    // Without steering, a frame sent on a queue arrives on the queue with the same number.
    for number in 0..20 {
        send(&mut sender, BULK, &payload(number, 64), &[to]);
        send(&mut sender, CRITICAL, &payload(number, 64), &[to]);
        assert_eq!(receive(&mut reader, CRITICAL, 2).len(), 2);
    }
    let receive = reader.ledger().lane(CRITICAL).receive;
    assert_eq!(receive.received, 40);
    assert_eq!(receive.dropped_total(), 0);
    finish(sender);
    finish(reader);
}

#[test]
fn what_a_machine_lacks_is_seen_beforehand() {
    let mut segment = Segment::new();
    let host = segment.add_host();
    let mut wanted = config(&Options::default());
    wanted.options.on_failure = OnFailure::Refuse;
    let why_not = |config: &XdpConfig| host.enter(|| isolane_datapath_xdp::xdp::why_not(config));
    assert_eq!(why_not(&wanted), None);
    wanted.options.interface = Some("eth7".to_owned());
    let reason = why_not(&wanted).expect("there is no such interface");
    assert!(
        reason.contains("eth7") && reason.contains("eth0"),
        "{reason}"
    );
}
