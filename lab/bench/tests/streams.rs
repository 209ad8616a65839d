//! Reliable KEEP_ALL streams over sockets, with segmented bursts and without, where datagrams are lost or reordered, and
//! where the reader stops for a while. Every sample arrives once and in order, and all ledgers balance. They need root.

#[path = "cable/support.rs"]
#[allow(dead_code, reason = "the streams need some of it")]
mod support;

use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use isolane::{
    Datapath, DatapathFactory, Interfaces, NetworkConfig, Participant, Qos, Report, Timing,
    TopicType, UdpOptions, WriteError, limits::MAX_SAMPLE_BYTES,
};
use isolane_bench::namespace::{Host, TestHosts, TestHostsConfig};
use isolane_datapath::{Event, OpenError};
use isolane_hostnet::ethtool::Ethtool;
use isolane_rtps::WriteError as Refusal;
use isolane_testkit::{Fault, FaultPlan};

use support::{fast, testbed, with_cable};

/// The streams share two cores, so only one runs at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// Time limit, longer than any step needs on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Sample sizes in bytes, and the number of samples of a stream.
const STREAMS: [(usize, u32); 4] = [
    (1 << 10, 1_000),
    (64 << 10, 48),
    (1 << 20, 6),
    (MAX_SAMPLE_BYTES - 64, 2),
];
/// Bytes of samples that a history or a cache holds.
const MEMORY_BYTES: usize = 64 << 20;

#[derive(TopicType, PartialEq)]
struct Block {
    number: u32,
    #[topic(bound = 16_777_216)]
    bytes: Vec<u8>,
}

fn block(number: u32, bytes: usize) -> Block {
    let bytes = (0..bytes).map(|place| (place as u32).wrapping_mul(number + 1) as u8);
    let bytes = bytes.collect();
    Block { number, bytes }
}

/// One stream.
#[derive(Clone, Debug)]
struct Stream {
    sample_bytes: usize,
    samples: u32,
    sockets: UdpOptions,
    /// Faults of the packets that the reader's socket receives.
    faults: FaultPlan,
    /// Time for which the reader does not run, after a quarter of the samples.
    pause: Duration,
}

impl Stream {
    /// Streams of all sizes, with segmented bursts and without.
    fn all(faults: &FaultPlan, pause: Duration) -> Vec<Stream> {
        let streams = STREAMS.into_iter().flat_map(|(sample_bytes, samples)| {
            [true, false].map(|segmentation| Stream {
                sample_bytes,
                samples,
                sockets: UdpOptions::default().segmentation(segmentation),
                faults: faults.clone(),
                pause,
            })
        });
        streams.collect()
    }

    fn participant(&self, host: Host, datapath: impl DatapathFactory + 'static) -> Participant {
        let timing = Timing {
            announce_period: Duration::from_millis(200),
            // The reader's participant stays matched while it does not run.
            lease: Duration::from_secs(60),
            ..Timing::default()
        };
        Participant::builder(0)
            .interfaces(Interfaces::Named(vec![host.interface().to_owned()]))
            .datapath(datapath)
            .timing(timing)
            .sample_memory(256 << 20)
            .build()
            .unwrap()
    }

    fn qos(&self) -> Qos {
        Qos::reliable()
            .keep_all()
            .max_samples((MEMORY_BYTES / self.sample_bytes).min(32) as u16)
            .max_bytes(self.sample_bytes + 64)
    }

    /// Writes all samples and waits until they are acknowledged.
    fn write(&self) -> Report {
        let participant = self.participant(Host::A, self.sockets);
        let writer = participant.create_writer("Stream", &self.qos()).unwrap();
        let is_matched = || writer.matched_readers() == 1;
        assert!(participant.run_until(PATIENCE, is_matched), "{self:?}");
        for number in 0..self.samples {
            let sample = block(number, self.sample_bytes);
            let is_written = || match writer.write(&sample) {
                Ok(()) => true,
                Err(WriteError::Protocol(Refusal::HistoryFull)) => false,
                Err(error) => panic!("{self:?}: {error}"),
            };
            assert!(
                is_written() || participant.run_until(PATIENCE, is_written),
                "{self:?}: {number}"
            );
        }
        let all = participant.run_until(PATIENCE, || writer.all_acknowledged());
        let ledger = writer.ledger();
        let is_all = all && ledger.written == u64::from(self.samples);
        assert!(is_all && ledger.balances(), "{self:?}: {ledger:?}");
        participant.report()
    }

    /// Reads all samples, and runs until `is_over`.
    fn read(&self, is_over: &AtomicBool) -> Report {
        let participant = self.participant(Host::B, self.clone());
        let reader = participant
            .create_reader::<Block>("Stream", &self.qos())
            .unwrap();
        let mut next = 0;
        let end = participant.run_until(2 * PATIENCE, || {
            while let Some(sample) = reader.take().expect("a sample that was written") {
                let Some(value) = sample.value else { continue };
                assert_eq!(value.number, next, "{self:?}");
                assert!(value == block(next, self.sample_bytes), "sample {next}");
                next += 1;
                if next == self.samples.div_ceil(4) {
                    thread::sleep(self.pause);
                }
            }
            is_over.load(Ordering::SeqCst)
        });
        let ledger = reader.ledger();
        assert!(end && ledger.balances(), "{self:?}: {ledger:?}");
        assert_eq!(next, self.samples, "{self:?}: {ledger:?}");
        participant.report()
    }

    /// Passes the stream from host A to host B, and prints the numbers of segmented bursts sent and received.
    fn pass(&self, testbed: &TestHosts) {
        let is_over = AtomicBool::new(false);
        let reports = thread::scope(|scope| {
            let reader = scope.spawn(|| testbed.run(Host::B, || self.read(&is_over)).unwrap());
            let writer = scope.spawn(|| testbed.run(Host::A, || self.write()).unwrap());
            let written = writer.join();
            is_over.store(true, Ordering::SeqCst);
            [written.unwrap(), reader.join().unwrap()]
        });
        for report in &reports {
            assert_eq!(report.balance(), Ok(()), "{self:?}: {}", report.datagrams);
        }
        let [sent, received] = reports.each_ref().map(|it| it.datagrams.total().events);
        let [sent, received] = [sent.get(Event::SEGMENTED), received.get(Event::COALESCED)];
        println!("{self:?}: {sent} bursts sent, {received} received");
        let is_segmented = sent > 0 && received > 0;
        // Small samples that are written while the history is full leave one by one.
        let may_differ = self.sockets.segmentation && self.sample_bytes == STREAMS[0].0;
        assert!(may_differ || is_segmented == self.sockets.segmentation);
    }
}

/// The reader's sockets, whose received packets have faults.
impl DatapathFactory for Stream {
    fn name(&self) -> &'static str {
        "fault"
    }

    fn open(self: Box<Self>, network: NetworkConfig) -> Result<Box<dyn Datapath>, OpenError> {
        let sockets = Box::new(self.sockets).open(network)?;
        Ok(Box::new(Fault::new(sockets, self.faults)))
    }
}

/// Two hosts whose devices pass segmented bursts as single packets; `None` without the rights.
fn joined() -> Option<TestHosts> {
    testbed()?;
    Some(TestHosts::without_cable(&TestHostsConfig::default()).unwrap())
}

/// Lets the kernel of host B join the frames of the cable to segmented bursts, as behind a network controller. The relay
/// delivers frame by frame, so GRO keeps each packet for a while.
fn coalesce(testbed: &TestHosts) {
    let device = Host::B.interface();
    let on = || Ethtool::open()?.set_features(device, &["rx-gro"], true);
    testbed.run(Host::B, on).unwrap().expect("rx-gro");
    let file = format!("/sys/class/net/{device}/gro_flush_timeout");
    let set = format!("mount -t sysfs sysfs /sys && echo 200000 > {file}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &set]);
    assert!(
        testbed
            .command(Host::B, command)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn whatever_share_of_the_frames_a_cable_loses_every_sample_arrives_once_and_in_order() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = testbed() else { return };
    coalesce(&testbed);
    let reordered = FaultPlan {
        delay_per_million: 200_000,
        duplication_per_million: 50_000,
        ..FaultPlan::new(2)
    };
    let lossy = [0.0, 0.01, 0.1, 0.3].map(|share| (share, FaultPlan::new(1)));
    for (probability, faults) in lossy.into_iter().chain([(0.01, reordered)]) {
        let mut config = fast();
        config.loss.probability = probability;
        with_cable(&testbed, &config, || {
            for stream in Stream::all(&faults, Duration::ZERO) {
                stream.pass(&testbed);
            }
        });
    }
}

#[test]
fn segmented_bursts_that_are_lost_reordered_or_repeated_as_a_whole_arrive_once_and_in_order() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = joined() else { return };
    for loss_per_million in [0, 10_000, 100_000, 300_000] {
        let faults = FaultPlan {
            loss_per_million,
            delay_per_million: 100_000,
            duplication_per_million: 50_000,
            ..FaultPlan::new(3)
        };
        for stream in Stream::all(&faults, Duration::ZERO) {
            stream.pass(&testbed);
        }
    }
}

#[test]
fn after_the_reader_stopped_for_a_while_every_sample_arrives_once_and_in_order() {
    let _one = ONE_AT_A_TIME.lock();
    let Some(testbed) = joined() else { return };
    let mut streams = Stream::all(&FaultPlan::new(4), Duration::from_secs(2));
    (streams[2].samples, streams[2].pause) = (200, Duration::from_secs(10));
    for stream in streams {
        stream.pass(&testbed);
    }
}
