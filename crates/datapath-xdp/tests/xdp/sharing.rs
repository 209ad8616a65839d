//! An unread lane costs the other lanes nothing.

use isolane_datapath::{Datapath, LaneLedger};
use isolane_datapath_xdp::classifier::Enforcement;
use isolane_datapath_xdp::xdp::counters;
use isolane_datapath_xdp::xdp::{XdpConfig, XdpError};

use crate::fixture::{On, xdp_on};
use crate::network::Segment;
use crate::support::{BULK, CRITICAL, count, finish, participant, payload, receive, send};
use isolane_datapath_xdp::xdp::Xdp;

/// Sends unread bulk, then critical datagrams that are read. Returns the counts of both.
fn flood(change: impl FnOnce(&mut XdpConfig)) -> (LaneLedger, LaneLedger, On<Xdp>) {
    const BULK_SENT: u32 = 2_000;
    const CRITICAL_SENT: u32 = 100;
    let mut segment = Segment::new();
    let mut sender = participant(segment.add_host(), &[BULK, CRITICAL], |_| {});
    let mut reader = participant(segment.add_host(), &[BULK, CRITICAL], change);
    let (bulk, critical) = (reader.unicast(BULK)[0], reader.unicast(CRITICAL)[0]);
    let mut arrived = 0;
    for number in 0..BULK_SENT {
        send(&mut sender, BULK, &payload(number, 200), &[bulk]);
        if number >= BULK_SENT - CRITICAL_SENT {
            send(&mut sender, CRITICAL, &payload(number, 64), &[critical]);
            arrived += receive_now(&mut reader);
        }
    }
    arrived += receive(&mut reader, CRITICAL, 0).len();
    std::thread::sleep(std::time::Duration::from_millis(50));
    arrived += receive_now(&mut reader);
    let ledger = reader.ledger();
    let lane = |lane| *ledger.lane(lane);
    assert_eq!(arrived as u64, lane(CRITICAL).receive.received);
    finish(sender);
    (lane(CRITICAL), lane(BULK), reader)
}

fn receive_now(reader: &mut On<Xdp>) -> usize {
    let mut burst = isolane_datapath::ReceiveBurst::new();
    let mut taken = 0;
    loop {
        let now = reader.receive_burst(CRITICAL, 16, &mut burst);
        burst.clear();
        taken += now;
        if now == 0 {
            return taken;
        }
    }
}

#[test]
fn unread_bulk_fills_its_own_ring_and_costs_critical_traffic_nothing() {
    let (critical, bulk, reader) = flood(|_| {});
    assert_eq!(critical.receive.received, 100);
    assert_eq!(critical.receive.dropped_total(), 0);
    assert_eq!(critical.events.get(counters::RESERVE_TOUCHED), 0);
    assert!(bulk.receive.dropped(counters::RING_FULL) > 1_000);
    assert_eq!(bulk.receive.dropped(counters::FILL_EMPTY), 0);
    finish(reader);
}

/// Fewer chunks than the ring of the bulk lane has entries.
fn too_few(config: &mut XdpConfig) {
    config.options.receive_frames = Some(200);
    config.options.overcommit = true;
}

#[test]
fn with_too_few_chunks_recycling_keeps_the_reserve_for_what_is_critical() {
    let (critical, bulk, reader) = flood(too_few);
    assert_eq!(critical.receive.received, 100);
    assert_eq!(critical.receive.dropped_total(), 0);
    assert_eq!(critical.events.get(counters::RESERVE_TOUCHED), 0);
    let recycled = bulk.receive.dropped(counters::RECYCLED_DRIVER)
        + bulk.receive.dropped(counters::RECYCLED_QUEUE);
    assert!(recycled > 1_000, "{bulk:?}");
    finish(reader);
}

#[test]
fn without_recycling_the_same_bulk_takes_the_reserve_and_what_is_critical_is_lost() {
    let (critical, _, reader) = flood(|config| {
        too_few(config);
        config.options.recycling = false;
    });
    assert!(critical.receive.dropped(counters::FILL_EMPTY) > 0);
    assert!(critical.events.get(counters::RESERVE_TOUCHED) > 0);
    finish(reader);
}

#[test]
fn what_is_critical_may_have_its_reserve_and_that_touches_nothing() {
    const CRITICAL_SENT: u32 = 40;
    let mut segment = Segment::new();
    let mut sender = participant(segment.add_host(), &[BULK, CRITICAL], |_| {});
    let mut reader = participant(segment.add_host(), &[BULK, CRITICAL], too_few);
    let (bulk, critical) = (reader.unicast(BULK)[0], reader.unicast(CRITICAL)[0]);
    for number in 0..400 {
        send(&mut sender, BULK, &payload(number, 100), &[bulk]);
    }
    for number in 0..CRITICAL_SENT {
        send(&mut sender, CRITICAL, &payload(number, 64), &[critical]);
    }
    let arrived = receive(&mut reader, CRITICAL, CRITICAL_SENT as usize);
    assert_eq!(arrived.len(), CRITICAL_SENT as usize);
    assert_eq!(count(&reader, CRITICAL, counters::RESERVE_TOUCHED), 0);
    finish(sender);
    finish(reader);
}

#[test]
fn a_reserve_that_was_eaten_counts_though_the_look_that_finds_it_so_gives_it_back() {
    let mut segment = Segment::new();
    let mut sender = participant(segment.add_host(), &[BULK, CRITICAL], |_| {});
    let mut reader = participant(segment.add_host(), &[BULK, CRITICAL], |config| {
        too_few(config);
        config.options.recycling = false;
        config.options.critical_reserve = 24;
        config.udp.pool.receive_frames[BULK.index()] = 64;
    });
    let to = reader.unicast(BULK)[0];
    for number in 0..400 {
        send(&mut sender, BULK, &payload(number, 100), &[to]);
    }
    crate::support::until(&reader, BULK, |ledger| {
        ledger.receive.dropped(counters::FILL_EMPTY) > 0
    });
    let mut bursts = [(); 3].map(|()| isolane_datapath::ReceiveBurst::new());
    for burst in &mut bursts {
        assert_eq!(reader.receive_burst(BULK, 16, burst), 16);
    }
    // Twice the reserve returns, and the device holds none of it.
    drop(bursts);
    assert_eq!(receive_now(&mut reader), 0);
    assert_eq!(count(&reader, CRITICAL, counters::RESERVE_TOUCHED), 1);
    assert_eq!(receive_now(&mut reader), 0);
    assert_eq!(count(&reader, CRITICAL, counters::RESERVE_TOUCHED), 1);
    finish(sender);
    finish(reader);
}

#[test]
fn without_the_drivers_part_queued_bulk_is_taken_back() {
    let (critical, bulk, reader) = flood(|config| {
        too_few(config);
        config.options.enforcement = Enforcement {
            recycling: false,
            ..Enforcement::default()
        };
    });
    assert!(
        bulk.receive.dropped(counters::RECYCLED_QUEUE) > 0,
        "{bulk:?}"
    );
    assert_eq!(bulk.receive.dropped(counters::RECYCLED_DRIVER), 0);
    assert!(critical.receive.received > 0);
    finish(reader);
}

#[test]
fn the_job_takes_queued_bulk_back_before_anything_critical_arrives() {
    let mut segment = Segment::new();
    let mut sender = participant(segment.add_host(), &[BULK, CRITICAL], |_| {});
    let mut reader = participant(segment.add_host(), &[BULK, CRITICAL], |config| {
        too_few(config);
        config.options.enforcement.recycling = false;
    });
    let to = reader.unicast(BULK)[0];
    for number in 0..400 {
        send(&mut sender, BULK, &payload(number, 100), &[to]);
    }
    crate::support::until(&reader, BULK, |ledger| {
        ledger.receive.dropped(counters::FILL_EMPTY) > 0
    });
    assert!(reader.wants_recycling());
    while reader.recycle() {}
    assert!(!reader.wants_recycling());
    let bulk = *reader.ledger().lane(BULK);
    assert!(bulk.receive.dropped(counters::RECYCLED_QUEUE) >= 64);
    assert!(count(&reader, CRITICAL, counters::RESERVE_TOUCHED) > 0);
    finish(sender);
    finish(reader);
}

#[test]
fn too_few_chunks_without_recycling_trusted_are_refused_with_the_numbers() {
    let mut segment = Segment::new();
    let mut config = crate::fixture::config(&isolane_testkit::conformance::Options::default());
    config.options.receive_frames = Some(200);
    let error = xdp_on(segment.add_host(), config).err().expect("too few");
    let isolane_datapath::OpenError::Device { source, class, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*class, isolane_datapath::ErrorClass::InvalidOption);
    let small = source.downcast_ref::<XdpError>();
    assert!(
        matches!(small, Some(XdpError::UmemTooSmall { chunks: 200, .. })),
        "{error}"
    );
}
