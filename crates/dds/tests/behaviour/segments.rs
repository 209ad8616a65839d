//! Segmented bursts: what one activation sends and receives at a level for which a more urgent one waits.

use std::{cell::RefCell, os::fd::BorrowedFd, rc::Rc};

use isolane::{
    Builder, Datapath, DatapathFactory, Lane, NetworkConfig, Participant, Qos, TopicType,
    limits::{BURST_TIME, DATAGRAM_TIME, USUAL_LINK_BITS_PER_S},
};
use isolane_datapath::{
    Capabilities, Ledger, OpenError, Pool, ReceiveBurst, SendReport, TransmitBurst, memory::Memory,
};
use isolane_wire::locator::Locator;

use crate::support::{Message, Site, World, level};

/// Size of a sample in bytes, so large that no two share an Ethernet frame.
const SAMPLE_BYTES: usize = 1_000;

/// Number and size in bytes of the samples that a test writes: one datagram each, or 16 fragments each. They are more
/// than a frame holds.
const BULK: [(usize, usize); 2] = [(100, SAMPLE_BYTES), (10, 20_000)];

/// Bound of a burst of bulk in bytes: what a link of the usual rate carries in the time of a burst.
const BOUND_BYTES: usize =
    (BURST_TIME.as_nanos() as u64 * USUAL_LINK_BITS_PER_S / 8 / 1_000_000_000) as usize;

/// Bound of a burst of bulk in datagrams.
const BOUND_DATAGRAMS: usize = (BURST_TIME.as_nanos() / DATAGRAM_TIME.as_nanos()) as usize;

#[derive(TopicType)]
struct Large {
    number: u32,
    bytes: Vec<u8>,
}

fn large(number: u32, bytes: usize) -> Large {
    Large {
        number,
        bytes: vec![7; bytes],
    }
}

/// Call of a datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Poll,
    /// Frame sent, with its number of datagrams and of bytes.
    Sent(Lane, usize, usize),
    /// Frame received, with its number of datagrams.
    Received(Lane, usize),
}

/// Memory datapath that records its calls, and receives the waiting datagrams of equal size in one frame.
struct Recorder {
    memory: Memory,
    calls: Rc<RefCell<Vec<Call>>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Recorder").field(&self.memory).finish()
    }
}

impl DatapathFactory for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn open(self: Box<Self>, _network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        Ok(self)
    }
}

impl Datapath for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn capabilities(&self) -> &Capabilities {
        self.memory.capabilities()
    }

    fn pool(&self) -> &Pool {
        self.memory.pool()
    }

    fn open_lane(&mut self, lane: Lane) -> Result<(), OpenError> {
        self.memory.open_lane(lane)
    }

    fn unicast(&self, lane: Lane) -> &[Locator] {
        self.memory.unicast(lane)
    }

    fn multicast(&self, lane: Lane) -> &[Locator] {
        self.memory.multicast(lane)
    }

    fn receive_burst(&mut self, lane: Lane, limit: usize, burst: &mut ReceiveBurst) -> usize {
        if limit == 0 || self.memory.receive_burst(lane, 1, burst) == 0 {
            return 0;
        }
        let mut taken = 1;
        let mut next = ReceiveBurst::new();
        while taken < limit && self.memory.receive_burst(lane, 1, &mut next) > 0 {
            let received = next.pop().expect("one was taken");
            let Some(last) = burst.last_mut() else { break };
            let bytes = last.frame.datagram_at(0).map_or(0, <[u8]>::len);
            let is_last_whole = last.frame.len().is_multiple_of(bytes.max(1));
            let joins = received.frame.len() <= bytes && last.from == received.from;
            if joins && is_last_whole && last.frame.append(&received.frame).is_ok() {
                last.frame.set_segment_bytes(bytes as u16);
            } else {
                burst.push(received).expect("room");
                taken += 1;
            }
        }
        let frames = &burst[burst.len() - taken..];
        let calls = frames
            .iter()
            .map(|one| Call::Received(lane, one.frame.datagram_count()));
        self.calls.borrow_mut().extend(calls);
        taken
    }

    fn send_burst(&mut self, lane: Lane, burst: &mut TransmitBurst) -> SendReport {
        for message in burst.messages() {
            let frame = burst.frame(message);
            let call = Call::Sent(lane, frame.datagram_count(), frame.len());
            self.calls.borrow_mut().push(call);
        }
        self.memory.send_burst(lane, burst)
    }

    fn descriptors(&self) -> Vec<(Lane, BorrowedFd<'_>)> {
        self.memory.descriptors()
    }

    fn ready_lanes(&mut self) -> u16 {
        self.calls.borrow_mut().push(Call::Poll);
        self.memory.ready_lanes()
    }

    fn ledger(&self) -> Ledger {
        self.memory.ledger()
    }
}

/// Creates a participant whose datapath records its calls.
fn join(world: &mut World) -> (Participant, Rc<RefCell<Vec<Call>>>) {
    let Site::Memory(network) = &world.site else {
        panic!("a memory network");
    };
    let calls = Rc::default();
    let recorder = Recorder {
        memory: network.attach([10, 0, 0, 1]),
        calls: Rc::clone(&calls),
    };
    let builder: Builder = world.site.builder().datapath(recorder);
    let participant = builder.build().expect("a participant");
    world.drive(&participant);
    (participant, calls)
}

fn bulk(qos: Qos, bytes: usize) -> Qos {
    let qos = qos.max_samples(100).max_bytes(bytes + 100);
    qos.level(level(3))
}

fn critical() -> Qos {
    Qos::best_effort().level(level(7))
}

/// Returns the datagrams and bytes of a lane between two polls, for each series that has some.
fn series_of(calls: &[Call], lane: Lane) -> Vec<(usize, usize)> {
    let series = calls.split(|call| *call == Call::Poll).map(|series| {
        let sent = series.iter().filter_map(|call| match call {
            Call::Sent(of, datagrams, bytes) if *of == lane => Some((datagrams, bytes)),
            _ => None,
        });
        sent.fold((0, 0), |(all, total), (datagrams, bytes)| {
            (all + datagrams, total + bytes)
        })
    });
    series.filter(|(datagrams, _)| *datagrams > 0).collect()
}

/// Writes samples, and returns the series in which they left.
fn sent_series(has_critical: bool, samples: usize, bytes: usize) -> Vec<(usize, usize)> {
    let mut world = World::new(Site::memory());
    let (alice, calls) = join(&mut world);
    let bob = world.join();
    let _brake = has_critical.then(|| {
        alice
            .create_writer::<Message>("Brake", &critical())
            .unwrap()
    });
    // A best-effort writer would send in the call that writes.
    let qos = bulk(Qos::reliable().keep_all(), bytes);
    let writer = alice.create_writer::<Large>("Bulk", &qos).unwrap();
    let reader = bob.create_reader::<Large>("Bulk", &qos).unwrap();
    world.until_matched(&writer, &reader);
    calls.borrow_mut().clear();
    for number in 0..samples as u32 {
        writer.write(&large(number, bytes)).unwrap();
    }
    world.until("all arrive", || reader.available() == samples);
    assert_eq!(writer.ledger().repaired, 0);
    let series = series_of(&calls.borrow(), Lane::Level(level(3)));
    let total: usize = series.iter().map(|(_, bytes)| bytes).sum();
    assert!(total > samples * bytes);
    series
}

#[test]
fn bulk_below_a_critical_topic_leaves_in_bursts_of_bounded_size() {
    for (samples, bytes) in BULK {
        let series = sent_series(true, samples, bytes);
        for (datagrams, bytes) in &series {
            assert!(*datagrams <= BOUND_DATAGRAMS, "{series:?}");
            // The size of the next datagram is estimated by the average.
            assert!(*bytes <= BOUND_BYTES + SAMPLE_BYTES / 8, "{series:?}");
        }
        let whole = samples * bytes / BOUND_BYTES;
        assert!(series.len() < 2 * whole, "bursts are used: {series:?}");
    }
}

#[test]
fn bulk_alone_leaves_in_whole_frames() {
    for (samples, bytes) in BULK {
        let series = sent_series(false, samples, bytes);
        let is_long = |(_, bytes): &(usize, usize)| *bytes > 50_000;
        assert!(series.iter().any(is_long), "{series:?}");
    }
}

#[test]
fn a_critical_datagram_is_handled_between_the_datagrams_of_a_coalesced_frame() {
    let mut world = World::new(Site::memory());
    let alice = world.join();
    let (bob, calls) = join(&mut world);
    let brake = alice.create_writer::<Message>("Brake", &critical());
    let qos = bulk(Qos::best_effort().keep_all(), SAMPLE_BYTES);
    let writer = alice.create_writer::<Large>("Bulk", &qos);
    let on_brake = bob.create_view_reader::<Message>("Brake", &critical());
    let on_bulk = bob.create_view_reader::<Large>("Bulk", &qos);
    let (brake, writer) = (brake.unwrap(), writer.unwrap());
    let (on_brake, on_bulk) = (on_brake.unwrap(), on_bulk.unwrap());
    world.until_matched(&brake, &on_brake);
    world.until_matched(&writer, &on_bulk);
    let receive = || {
        let report = bob.report();
        let job = report.jobs.iter().find(|job| job.name == "receive level 3");
        job.expect("a job").statistics.activations
    };

    const COUNT: usize = 40;
    let seen = Rc::new(RefCell::new(Vec::new()));
    let of_bulk = Rc::clone(&seen);
    on_bulk.on_view(move |sample| {
        let number = sample.value.unwrap().number;
        of_bulk.borrow_mut().push(Some(number));
        // The critical datagram arrives while the frame is processed.
        if number == 10 {
            brake.write(&Message::number(0)).unwrap();
            alice.poll();
        }
    });
    let of_brake = Rc::clone(&seen);
    on_brake.on_view(move |_| of_brake.borrow_mut().push(None));
    let before = receive();
    calls.borrow_mut().clear();
    for number in 0..COUNT as u32 {
        writer.write(&large(number, SAMPLE_BYTES)).unwrap();
    }
    world.until("all are seen", || seen.borrow().len() == COUNT + 1);

    let received = calls.borrow();
    let bulk_lane = Lane::Level(level(3));
    let largest = received.iter().filter_map(|call| match call {
        Call::Received(lane, datagrams) if *lane == bulk_lane => Some(*datagrams),
        _ => None,
    });
    assert_eq!(largest.max(), Some(COUNT), "one frame: {received:?}");
    let seen = seen.borrow();
    let critical = seen.iter().position(Option::is_none).expect("it was seen");
    let latest = 11 + BOUND_BYTES / SAMPLE_BYTES;
    assert!((11..=latest).contains(&critical), "{seen:?}");
    let bulk = seen.iter().flatten().copied();
    assert!(bulk.eq(0..COUNT as u32), "in order: {seen:?}");
    let least = COUNT / (BOUND_BYTES / SAMPLE_BYTES);
    assert!(
        receive() - before >= least as u64,
        "each has its activation"
    );
}
