//! Set-up of these tests.

use std::time::{Duration, Instant};

use isolane_datapath::{
    Datapath, Event, Lane, LaneLedger, ReceiveBurst, SendReport, TransmitBurst,
};
use isolane_datapath_xdp::xdp::{Xdp, XdpConfig};
use isolane_testkit::conformance::Options;
use isolane_wire::locator::Locator;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::fixture::{On, config, xdp_on};
use crate::network::{Host, Segment};

/// The most critical lane, and a bulk lane.
pub(crate) const CRITICAL: Lane = Lane::ALL[8];
pub(crate) const BULK: Lane = Lane::ALL[2];

/// Opens lanes on a host, with the defaults changed by `change`.
pub(crate) fn participant(
    host: Host,
    lanes: &[Lane],
    change: impl FnOnce(&mut XdpConfig),
) -> On<Xdp> {
    let mut wanted = config(&Options::default());
    change(&mut wanted);
    let mut path = xdp_on(host, wanted).expect("lanes can be had");
    for lane in lanes {
        let opened = path.open_lane(*lane);
        opened.unwrap_or_else(|error| panic!("{lane}: {error}"));
    }
    path
}

/// Two hosts that have resolved each other.
pub(crate) fn pair(lanes: &[Lane]) -> [On<Xdp>; 2] {
    let mut segment = Segment::new();
    // All hosts are created first, so that each knows its neighbours when its tables are read.
    let hosts = [(); 2].map(|()| segment.add_host());
    hosts.map(|host| participant(host, lanes, |_| {}))
}

/// Payload that the classifier accepts as RTPS.
pub(crate) fn payload(number: u32, bytes: usize) -> Vec<u8> {
    let mut payload = b"RTPS".to_vec();
    payload.extend(number.to_be_bytes());
    payload.resize(bytes.max(payload.len()), number as u8);
    payload
}

/// Sends one datagram to each of these destinations.
pub(crate) fn send(
    path: &mut impl Datapath,
    lane: Lane,
    bytes: &[u8],
    to: &[Locator],
) -> SendReport {
    let mut burst = TransmitBurst::new();
    let taken = path.pool().take_for(lane, bytes.len());
    let mut frame = taken.expect("a free frame");
    frame.append(bytes).expect("room in the frame");
    burst.push(frame).expect("room in the burst");
    for place in to {
        burst.address(*place).expect("room for the destination");
    }
    path.send_burst(lane, &mut burst)
}

/// Receives `count` datagrams; fewer if the others do not arrive in time.
pub(crate) fn receive(path: &mut impl Datapath, lane: Lane, count: usize) -> Vec<Vec<u8>> {
    let begin = Instant::now();
    let mut received = Vec::new();
    let mut burst = ReceiveBurst::new();
    while received.len() < count && begin.elapsed() < Duration::from_secs(5) {
        if path.receive_burst(lane, 16, &mut burst) == 0 {
            std::thread::yield_now();
        }
        received.extend(burst.iter().map(|one| one.frame.to_vec()));
        burst.clear();
    }
    received
}

/// Does what an idle loop does: waits for a short time for notifications about routes and neighbours, on discovery's
/// first descriptor, and processes them. Returns false if there was none.
pub(crate) fn take_news(path: &mut On<Xdp>) -> bool {
    let a_while = Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let is_readable = {
        let descriptors = path.descriptors();
        let mut of_discovery = descriptors
            .iter()
            .filter(|(lane, _)| *lane == Lane::Discovery);
        let (_, first) = of_discovery.next().expect("discovery's lane is open");
        let mut looked_at = [PollFd::new(first, PollFlags::IN)];
        poll(&mut looked_at, Some(&a_while)).expect("poll") > 0
    };
    if is_readable {
        path.set_readable(Lane::Discovery, 1);
        let taken = path.receive_burst(Lane::Discovery, 1, &mut ReceiveBurst::new());
        assert_eq!(taken, 0, "news are no datagrams");
    }
    is_readable
}

/// Waits until a condition holds for a lane's ledger.
pub(crate) fn until(path: &impl Datapath, lane: Lane, is_so: impl Fn(&LaneLedger) -> bool) {
    let begin = Instant::now();
    while !is_so(path.ledger().lane(lane)) {
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "{}",
            path.ledger()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn count(path: &impl Datapath, lane: Lane, what: Event) -> u64 {
    path.ledger().lane(lane).events.get(what)
}

/// Checks that every datagram is counted under a name, and that every frame returns.
pub(crate) fn finish(path: On<Xdp>) {
    let ledger = path.ledger();
    assert_eq!(ledger.balance(), Ok(()), "{ledger}");
    let pool = path.pool().clone();
    drop(path);
    assert_eq!(pool.outstanding(), 0, "a frame did not go home");
}
