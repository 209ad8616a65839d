//! Two participants on one thread, each in its host's namespace, and topics between them.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use isolane::{
    BuildError, Builder, DataReader, DataWriter, DatapathFactory, Interfaces, Level, Participant,
    Qos, Timing, TopicType, XdpOptions,
};
use isolane_datapath::{Event, Lane, LaneLedger};
use isolane_datapath_xdp::xdp::counters;

use crate::hosts::{eventually, ip};
use crate::network::{Host, INTERFACE, Segment};

/// Time limit, longer than any step needs on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The most critical level in use, another one, and the level of bulk topics.
pub(crate) const CRITICAL: Level = Level::ALL[7];
pub(crate) const OTHER: Level = Level::ALL[5];
pub(crate) const BULK: Level = Level::ALL[1];

#[derive(TopicType, Debug, Clone, PartialEq)]
pub(crate) struct Block {
    #[topic(key)]
    pub(crate) number: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Configuration of a participant on its host's interface, with short periods, so that peers are discovered and removed
/// soon.
pub(crate) fn with(datapath: impl DatapathFactory + 'static) -> Builder {
    let timing = Timing {
        announce_period: Duration::from_millis(200),
        lease: Duration::from_secs(2),
        ..Timing::default()
    };
    Participant::builder(0)
        .interfaces(Interfaces::Named(vec![INTERFACE.to_owned()]))
        .datapath(datapath)
        .timing(timing)
        // Enough for two readers of 512 samples, and samples of up to 60,000 bytes.
        .sample_memory(64 << 20)
}

pub(crate) fn lanes(options: XdpOptions) -> Builder {
    with(options)
}

/// A participant on a host.
pub(crate) struct Side {
    pub(crate) host: Host,
    pub(crate) participant: Participant,
}

impl Side {
    pub(crate) fn new(host: &Host, builder: Builder) -> Result<Side, BuildError> {
        let participant = host.enter(|| builder.build())?;
        let host = host.clone();
        Ok(Side { host, participant })
    }

    /// Creates a participant on lanes with the default options.
    pub(crate) fn on_lanes(host: &Host) -> Side {
        Side::new(host, lanes(XdpOptions::default())).expect("lanes can be had")
    }

    pub(crate) fn reader(&self, topic: &str, qos: &Qos) -> Result<DataReader<Block>, BuildError> {
        let make = || self.participant.create_reader(topic, qos);
        self.host.enter(make)
    }

    pub(crate) fn writer(&self, topic: &str, qos: &Qos) -> Result<DataWriter<Block>, BuildError> {
        let make = || self.participant.create_writer(topic, qos);
        self.host.enter(make)
    }

    pub(crate) fn run(&self, time: Duration) {
        self.host.enter(|| self.participant.run_for(time));
    }

    pub(crate) fn ledger(&self, level: Level) -> LaneLedger {
        *self.participant.report().datagrams.lane(level.into())
    }

    pub(crate) fn count(&self, level: Level, what: Event) -> u64 {
        self.ledger(level).events.get(what)
    }

    pub(crate) fn ip(&self, arguments: &str) -> String {
        self.host.enter(|| ip(arguments))
    }

    /// Number of frames without a flow for which the classifier made this decision.
    pub(crate) fn decided(&self, reason: &str) -> u64 {
        let observed = self.participant.observe();
        let decisions = observed
            .interfaces
            .into_iter()
            .flat_map(|one| one.decisions);
        let of_reason = decisions.filter(|(name, _)| *name == reason);
        of_reason.map(|(_, count)| count).sum()
    }

    /// Port of this level.
    pub(crate) fn port(&self, level: Level) -> u16 {
        let flows = self.participant.observe().flows.into_iter();
        let mut own = flows.filter(|flow| {
            flow.lane == Lane::from(level)
                && flow.flow.is_none()
                && !flow.destination.is_multicast()
        });
        own.next().expect("a lane of the level").destination.port as u16
    }

    /// Checks that every datagram is counted under a name, and that the interface is as it was before.
    pub(crate) fn finish(self) {
        let report = self.participant.report();
        assert_eq!(report.balance(), Ok(()), "{}", report.datagrams);
        let host = self.host;
        drop(self.participant);
        host.enter(assert_free);
    }
}

/// Two hosts that have resolved each other.
pub(crate) fn two_hosts() -> [Host; 2] {
    let mut segment = Segment::new();
    [(); 2].map(|()| segment.add_host())
}

/// Checks that the interface has no program, after some time at most: a process that another test starts may briefly
/// hold all descriptors of this process.
pub(crate) fn assert_free() {
    eventually("no program is on the interface", || {
        let shown = ip(&format!("-d link show dev {INTERFACE}"));
        (!shown.contains("xdp")).then_some(())
    });
}

/// Runs both participants until the condition holds, or the time limit ends.
pub(crate) fn until(sides: [&Side; 2], mut is_so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > end {
            return false;
        }
        for side in sides {
            side.run(Duration::from_millis(1));
        }
    }
    true
}

/// Topic from the first participant to the second.
pub(crate) struct Topic {
    pub(crate) writer: DataWriter<Block>,
    pub(crate) reader: DataReader<Block>,
}

impl Topic {
    pub(crate) fn new(sides: [&Side; 2], name: &str, qos: &Qos) -> Topic {
        let reader = sides[1].reader(name, qos).expect("a reader");
        let writer = sides[0].writer(name, qos).expect("a writer");
        let topic = Topic { writer, reader };
        let is_matched =
            || topic.writer.matched_readers() == 1 && topic.reader.matched_writers() == 1;
        assert!(until(sides, is_matched), "{name}: no peer is there");
        topic
    }

    /// Writes a sample as soon as there is room.
    pub(crate) fn write(&self, sides: [&Side; 2], number: u32, bytes: usize) {
        let sample = Block {
            number,
            bytes: vec![number as u8; bytes],
        };
        let written = until(sides, || self.writer.write(&sample).is_ok());
        assert!(written, "sample {number} cannot be written");
    }

    /// Numbers of the received samples.
    pub(crate) fn take(&self) -> Vec<u32> {
        let next = || self.reader.take().expect("a sample that was written");
        let samples = std::iter::from_fn(next);
        samples
            .filter_map(|sample| sample.value)
            .map(|value| {
                assert!(value.bytes.iter().all(|byte| *byte == value.number as u8));
                value.number
            })
            .collect()
    }

    /// Writes a sample and waits for it.
    pub(crate) fn pass(&self, sides: [&Side; 2], number: u32, bytes: usize) {
        self.write(sides, number, bytes);
        let came = until(sides, || self.take().contains(&number));
        let report = sides.map(|side| side.participant.report().datagrams.to_string());
        assert!(came, "sample {number} of {bytes} bytes: {report:#?}");
    }

    /// Sends samples until one passes entirely by lane.
    pub(crate) fn pass_by_lane(&self, sides: [&Side; 2], level: Level) {
        let counts = || {
            let sent = sides[0].count(level, counters::SENT_BY_LANE);
            (sent, sides[1].count(level, counters::RECEIVED_BY_LANE))
        };
        let end = Instant::now() + PATIENCE;
        for number in 1_000_000.. {
            let before = counts();
            self.pass(sides, number, 64);
            let after = counts();
            if after.0 > before.0 && after.1 > before.1 {
                return;
            }
            assert!(Instant::now() < end, "no lane any more: {after:?}");
        }
    }
}

/// QoS of a best-effort topic.
pub(crate) fn best_effort(level: Level) -> Qos {
    Qos::best_effort()
        .level(level)
        .keep_last(512)
        .max_bytes(60_000)
        .max_datagram_bytes(60_000)
}

/// QoS of a reliable topic.
pub(crate) fn reliable(level: Level) -> Qos {
    Qos::reliable().keep_all().level(level).max_bytes(1_400)
}

/// Checks that a datagram passes between two hosts by plain sockets.
pub(crate) fn assert_sockets_work(from: &Host, to: &Host) {
    let bind = |host: &Host| host.enter(|| UdpSocket::bind((host.address(), 0)));
    let receiver = bind(to).expect("a socket");
    let sender = bind(from).expect("a socket");
    let place = receiver.local_addr().expect("its port");
    receiver
        .set_read_timeout(Some(Duration::from_millis(100)))
        .expect("a timeout");
    let end = Instant::now() + PATIENCE;
    loop {
        // While an interface comes up again, the datagram may be refused.
        let _ = sender.send_to(b"others", place);
        let mut bytes = [0; 16];
        if receiver.recv(&mut bytes).is_ok_and(|count| count == 6) {
            return;
        }
        assert!(Instant::now() < end, "plain sockets do not work any more");
    }
}
