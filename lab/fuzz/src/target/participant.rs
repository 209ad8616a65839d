//! Target `participant`: participants on an in-memory network with an adversary. After every operation the ledgers must
//! balance and all frames must be accounted for.
//!
//! Time is real, so runs of an input differ slightly. The target `protocol` tests time-dependent behaviour.

use isolane::{
    DataReader, DataWriter, Level, Network, Participant, Qos, Report, TopicType, WriterHandle,
    types::BoundedString,
};
use isolane_datapath::{Datapath, Lane, Memory, ReceiveBurst, TransmitBurst};
use isolane_wire::{
    guid::{EntityId, GuidPrefix},
    locator::Locator,
};

use crate::{
    adversary::{Cast, TOPICS, message},
    input::Input,
    limits::{MAX_ENDPOINTS, MAX_OPERATIONS},
};

/// Maximum number of consecutive polls. Each poll has a bounded number of activations; then nothing must be left to do.
const MAX_POLLS: usize = 2000;
/// Levels of endpoints: the highest, a middle one, the lowest.
const LEVELS: [u8; 3] = [7, 3, 0];

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "T")]
struct Plain {
    number: u32,
    text: BoundedString<64>,
}

#[derive(TopicType, Debug, Clone, PartialEq, Default)]
#[topic(name = "T")]
struct Keyed {
    #[topic(key)]
    number: u32,
    text: String,
}

/// Participant with its user's endpoints.
struct Host {
    participant: Participant,
    writers: Vec<DataWriter<Plain>>,
    keyed_writers: Vec<DataWriter<Keyed>>,
    remote_writers: Vec<WriterHandle<Plain>>,
    readers: Vec<DataReader<Plain>>,
    keyed_readers: Vec<DataReader<Keyed>>,
}

struct World {
    network: Network,
    hosts: Vec<Host>,
    stranger: Memory,
    transmit: TransmitBurst,
    receive: ReceiveBurst,
}

/// Runs operations on two participants.
pub fn participant(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = World::new(&mut input);
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        world.operate(&mut input);
        world.check();
    }
    world.finish();
}

impl World {
    fn new(input: &mut Input<'_>) -> Self {
        let network = Network::new(1);
        let hosts = [1, 2].map(|last| {
            let builder = Participant::builder(0).memory(&network, [10, 0, 0, last]);
            Host {
                participant: builder.build().expect("a network in memory has room"),
                writers: Vec::new(),
                keyed_writers: Vec::new(),
                remote_writers: Vec::new(),
                readers: Vec::new(),
                keyed_readers: Vec::new(),
            }
        });
        let mut stranger = network.attach([10, 0, 0, 3]);
        for lane in [Lane::Discovery, Lane::ALL[8]] {
            let opened = stranger.open_lane(lane);
            opened.expect("a network in memory has room");
        }
        let mut world = Self {
            network,
            hosts: hosts.into(),
            stranger,
            transmit: TransmitBurst::new(),
            receive: ReceiveBurst::new(),
        };
        for _ in 0..input.byte() % 5 {
            world.create(input);
        }
        world.poll();
        world
    }

    fn operate(&mut self, input: &mut Input<'_>) {
        match input.byte() % 10 {
            0 => {
                let bytes = input.bytes(usize::from(u16::MAX));
                self.throw(input, bytes);
            }
            1 | 2 => {
                let lie = message(input, &self.cast());
                self.throw(input, &lie);
            }
            3 => self.poll(),
            4 | 5 => self.write(input),
            6 => self.take(input),
            7 => self.create(input),
            8 => self.delete(input),
            _ => {
                let loss = [0, 0, 100_000, 1_000_000];
                self.network.set_loss_per_million(input.pick(&loss));
            }
        }
    }

    /// Sends bytes from the adversary to a port of a host.
    fn throw(&mut self, input: &mut Input<'_>, bytes: &[u8]) {
        let to = input.pick(&self.cast().locators);
        let Some(mut frame) = self.stranger.pool().take(Lane::ALL[8]) else {
            panic!("the stranger's own frames do not come home");
        };
        if frame.append(bytes).is_ok() && self.transmit.push(frame).is_ok() {
            let addressed = self.transmit.address(to);
            addressed.expect("one destination fits");
        }
        self.stranger.send_burst(Lane::ALL[8], &mut self.transmit);
    }

    fn cast(&self) -> Cast {
        let mut cast = Cast {
            entities: Cast::builtin(),
            ..Cast::default()
        };
        for host in &self.hosts {
            cast.prefixes.push(host.participant.guid().prefix);
        }
        // User-defined endpoints are numbered from 1.
        for number in 1..=4 {
            let kinds = [0x02, 0x03, 0x04, 0x07];
            cast.entities
                .extend(kinds.map(|kind| EntityId::user(number, kind)));
        }
        cast.prefixes.push(GuidPrefix([0xa1; 12]));
        for (participant, last) in [(0, 1), (1, 2)] {
            cast.locators
                .push(Locator::udpv4([10, 0, 0, last], 7410 + 2 * participant));
            for level in LEVELS {
                let port = 32_768 + 8 * participant + u16::from(level);
                cast.locators.push(Locator::udpv4([10, 0, 0, last], port));
            }
        }
        cast.locators.push(Locator::udpv4([239, 255, 0, 1], 7400));
        cast.locators.push(Locator::udpv4([239, 255, 23, 0], 7401));
        cast.locators
            .extend_from_slice(self.stranger.unicast(Lane::Discovery));
        cast
    }

    /// Polls all participants until nothing is due.
    fn poll(&mut self) {
        for _ in 0..MAX_POLLS {
            let ran: usize = self.hosts.iter().map(|host| host.participant.poll()).sum();
            if ran == 0 {
                return;
            }
        }
        panic!(
            "there is always something to do\n{}",
            self.hosts[0].participant.report()
        );
    }

    fn create(&mut self, input: &mut Input<'_>) {
        let index = input.index(self.hosts.len());
        let topic = input.pick(&TOPICS);
        let choice = input.byte();
        let qos = qos(input);
        let host = &mut self.hosts[index];
        // Endpoints of the second topic are keyed on all hosts.
        let is_keyed = topic == TOPICS[1];
        let participant = &host.participant;
        // Errors are expected: too many endpoints, or an invalid combination.
        match choice % 4 {
            0 if is_keyed && host.keyed_writers.len() < MAX_ENDPOINTS => {
                host.keyed_writers
                    .extend(participant.create_writer(topic, &qos).ok());
            }
            0 if host.writers.len() < MAX_ENDPOINTS => {
                host.writers
                    .extend(participant.create_writer(topic, &qos).ok());
            }
            1 if is_keyed && host.keyed_readers.len() < MAX_ENDPOINTS => {
                host.keyed_readers
                    .extend(participant.create_reader(topic, &qos).ok());
            }
            1 if host.readers.len() < MAX_ENDPOINTS => {
                host.readers
                    .extend(participant.create_reader(topic, &qos).ok());
            }
            2 if host.remote_writers.len() < 2 => {
                let topic = TOPICS[0];
                host.remote_writers
                    .extend(participant.create_writer_handle(topic, &qos).ok());
            }
            _ if host.readers.len() < MAX_ENDPOINTS => {
                if let Ok(reader) = participant.create_view_reader::<Plain>(TOPICS[0], &qos) {
                    reader.on_view(|sample| {
                        if let Some(value) = sample.value {
                            assert!(value.text.len() <= 64);
                        }
                    });
                    host.readers.push(reader);
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, input: &mut Input<'_>) {
        let index = input.index(self.hosts.len());
        let which = usize::from(input.byte());
        let number = u32::from(input.byte() % 6);
        let host = &mut self.hosts[index];
        let plain = Plain {
            number,
            text: "text".try_into().unwrap_or_default(),
        };
        // A refused write is in the ledger, so its error is ignored.
        match input.byte() % 3 {
            0 if !host.writers.is_empty() => {
                let _ = host.writers[which % host.writers.len()].write(&plain);
            }
            1 if !host.remote_writers.is_empty() => {
                let place = which % host.remote_writers.len();
                let _ = host.remote_writers[place].write(&plain);
            }
            _ if !host.keyed_writers.is_empty() => {
                let writer = &host.keyed_writers[which % host.keyed_writers.len()];
                let text = "t".repeat(usize::from(input.byte()));
                let keyed = Keyed { number, text };
                let _ = match input.byte() % 4 {
                    0 => writer.dispose(&keyed),
                    1 => writer.unregister(&keyed),
                    _ => writer.write(&keyed),
                };
            }
            _ => {}
        }
    }

    fn take(&mut self, input: &mut Input<'_>) {
        let index = input.index(self.hosts.len());
        let host = &self.hosts[index];
        let count = 1 + usize::from(input.byte() % 8);
        for _ in 0..count {
            for reader in &host.readers {
                let _ = reader.take();
            }
            for reader in &host.keyed_readers {
                let _ = reader.take();
            }
        }
        // Datagrams to the adversary are discarded.
        self.stranger
            .receive_burst(Lane::Discovery, 16, &mut self.receive);
        self.receive.clear();
    }

    fn delete(&mut self, input: &mut Input<'_>) {
        let index = input.index(self.hosts.len());
        let host = &mut self.hosts[index];
        match input.byte() % 5 {
            0 => drop(host.writers.pop()),
            1 => drop(host.keyed_writers.pop()),
            2 => drop(host.remote_writers.pop()),
            3 => drop(host.readers.pop()),
            _ => drop(host.keyed_readers.pop()),
        }
    }

    fn check(&self) {
        for host in &self.hosts {
            check(&host.participant.report());
        }
        let ledger = self.stranger.ledger();
        assert_eq!(ledger.balance(), Ok(()), "{ledger}");
    }

    /// Deletes endpoints, participants and the adversary, and checks that no frame is left.
    fn finish(mut self) {
        self.network.set_loss_per_million(0);
        self.poll();
        self.check();
        for host in self.hosts.drain(..) {
            let Host { participant, .. } = host;
            participant.poll();
            check(&participant.report());
        }
        self.receive.clear();
        assert_eq!(
            self.stranger.pool().outstanding(),
            0,
            "the stranger's frames"
        );
    }
}

/// Checks that every ledger balances, and that only writer handles hold frames.
fn check(report: &Report) {
    assert_eq!(report.balance(), Ok(()), "{}", report.datagrams);
    for writer in &report.writers {
        assert!(writer.ledger.balances(), "{writer:?}");
    }
    for reader in &report.readers {
        assert!(reader.ledger.balances(), "{reader:?}");
    }
    assert_eq!(report.frames_armed, 0, "received frames without a reader");
    assert_eq!(report.frames_out, report.frames_lent, "frames in flight");
}

fn qos(input: &mut Input<'_>) -> Qos {
    let bits = input.byte();
    let qos = if bits & 1 == 0 {
        Qos::reliable().max_blocking_time(std::time::Duration::ZERO)
    } else {
        Qos::best_effort()
    };
    let qos = qos.max_bytes(if bits & 32 == 0 { 256 } else { 1400 });
    let qos = if bits & 2 != 0 {
        qos.transient_local()
    } else {
        qos
    };
    let qos = if bits & 4 != 0 {
        qos.keep_all().max_samples(4)
    } else {
        qos.keep_last(1 + u16::from(bits >> 6))
    };
    let level = LEVELS[usize::from(bits >> 3 & 3) % LEVELS.len()];
    qos.level(Level::new(level).unwrap_or_default())
}
