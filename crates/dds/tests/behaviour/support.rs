//! Set-up of these tests: participants that share a network, driven together on one thread.

use std::{
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use isolane::{
    Builder, DataReader, DataWriter, DatapathFactory, Level, Network, Participant, Report,
    TopicType, UdpOptions, types::BoundedString,
};

/// Order in which a participant's jobs run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    /// By priority, with a lane for each level.
    Priority,
    /// First in, first out, with one lane for all levels.
    Arrival,
}

impl Order {
    pub(crate) fn apply(self, builder: Builder) -> Builder {
        match self {
            Self::Priority => builder,
            Self::Arrival => builder
                .level_mapping(|_| Level::MIN)
                .priority_mapping(|_| 0)
                .discovery_level(Level::MIN),
        }
    }
}

/// Time limit of every step.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The type of most topics.
#[derive(TopicType, Debug, Clone, PartialEq, Default)]
pub(crate) struct Message {
    pub(crate) number: u32,
    pub(crate) text: BoundedString<64>,
}

impl Message {
    pub(crate) fn new(number: u32, text: &str) -> Self {
        let text = text.try_into().expect("a short text");
        Self { number, text }
    }

    pub(crate) fn number(number: u32) -> Self {
        Self::new(number, "")
    }
}

pub(crate) fn level(number: u8) -> Level {
    Level::new(number).expect("a level")
}

/// Network on which participants meet.
#[derive(Clone)]
pub(crate) enum Site {
    /// Memory network.
    Memory(Network),
    /// On 127.0.0.1 by unicast.
    Loopback(Arc<Domain>),
}

impl Site {
    /// One network of each kind.
    pub(crate) fn both() -> [Self; 2] {
        [Self::memory(), Self::loopback()]
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(Network::new(1))
    }

    pub(crate) fn loopback() -> Self {
        Self::Loopback(Arc::new(Domain::claim()))
    }

    /// Datapath for a participant on this network.
    pub(crate) fn datapath(&self) -> Box<dyn DatapathFactory> {
        match self {
            Self::Memory(network) => Box::new(network.attach([10, 0, 0, 1])),
            Self::Loopback(_) => Box::new(UdpOptions::default()),
        }
    }

    pub(crate) fn builder(&self) -> Builder {
        match self {
            Self::Memory(network) => Participant::builder(0).memory(network, [10, 0, 0, 1]),
            Self::Loopback(domain) => domain.builder().loopback(),
        }
    }

    pub(crate) fn participant(&self) -> Participant {
        self.builder().build().expect("a participant")
    }
}

/// Domain that only this test uses, until the value is dropped. Tests and checkouts run in parallel, so a socket on an
/// address that no participant uses claims the domain.
pub(crate) struct Domain {
    number: u32,
    _claim: UdpSocket,
}

impl Domain {
    pub(crate) fn claim() -> Self {
        // Other programs on this host probably use lower domains.
        let claimed = (100..=230).find_map(|number| {
            let address = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 2), Self::port(number));
            let claim = UdpSocket::bind(address).ok()?;
            let is_free = UdpSocket::bind((Ipv4Addr::LOCALHOST, Self::port(number))).is_ok();
            is_free.then_some((number, claim))
        });
        let (number, _claim) = claimed.expect("one of 130 domains is free");
        Self { number, _claim }
    }

    pub(crate) fn builder(&self) -> Builder {
        Participant::builder(self.number)
    }

    /// Discovery address of the domain's first participant on 127.0.0.1.
    pub(crate) fn first_participant(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, Self::port(self.number))
    }

    /// Metatraffic unicast port of participant 0 (RTPS 2.5 §9.6.2.3).
    fn port(number: u32) -> u16 {
        u16::try_from(7_410 + 250 * number).expect("domains end at 232")
    }
}

/// Participants that run in turn.
pub(crate) struct World {
    pub(crate) site: Site,
    participants: Vec<Participant>,
}

impl World {
    pub(crate) fn new(site: Site) -> Self {
        Self {
            site,
            participants: Vec::new(),
        }
    }

    /// Creates two participants.
    pub(crate) fn pair(site: Site) -> (Self, Participant, Participant) {
        let mut world = Self::new(site);
        let (alice, bob) = (world.join(), world.join());
        (world, alice, bob)
    }

    pub(crate) fn join(&mut self) -> Participant {
        let participant = self.site.participant();
        self.drive(&participant);
        participant
    }

    /// Runs this participant together with the others.
    pub(crate) fn drive(&mut self, participant: &Participant) {
        self.participants.push(participant.clone());
    }

    /// Stops running a participant. Without other handles it is deleted.
    pub(crate) fn leave(&mut self, participant: Participant) {
        self.participants
            .retain(|other| other.guid() != participant.guid());
    }

    /// Runs all participants until `done`.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done() {
            let ran: usize = self.participants.iter().map(Participant::poll).sum();
            if ran == 0 {
                thread::sleep(Duration::from_micros(50));
            }
            assert!(Instant::now() < end, "not in time: {what}\n{self}");
        }
    }

    /// Runs all participants for some time.
    pub(crate) fn run_for(&self, time: Duration) {
        let end = Instant::now() + time;
        self.until("time passes", || Instant::now() >= end);
    }

    #[track_caller]
    pub(crate) fn until_matched<W: TopicType, R: TopicType>(
        &self,
        writer: &DataWriter<W>,
        reader: &DataReader<R>,
    ) {
        self.until("the endpoints match", || {
            writer.matched_readers() == 1 && reader.matched_writers() == 1
        });
    }

    /// Checks that every loss is counted under a name, and that all frames have returned.
    #[track_caller]
    pub(crate) fn assert_balanced(&self) {
        for participant in &self.participants {
            assert_balanced(&participant.report(), matches!(self.site, Site::Memory(_)));
        }
    }
}

/// Every test ends by checking its ledgers.
impl Drop for World {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.assert_balanced();
        }
    }
}

/// Checks that every ledger of a participant balances, and that all frames have returned. Sockets keep some frames
/// armed.
#[track_caller]
pub(crate) fn assert_balanced(report: &Report, all_at_home: bool) {
    assert_eq!(report.balance(), Ok(()), "{}", report.datagrams);
    for writer in &report.writers {
        assert!(writer.ledger.balances(), "{writer:?}");
    }
    for reader in &report.readers {
        assert!(reader.ledger.balances(), "{reader:?}");
    }
    assert_eq!(
        report.frames_out,
        report.frames_armed + report.frames_lent,
        "frames in flight"
    );
    if all_at_home {
        assert_eq!(report.frames_armed, 0, "received frames");
    }
}

impl std::fmt::Display for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for participant in &self.participants {
            let report = participant.report();
            writeln!(f, "{report}{}{:#?}", report.datagrams, report.writers)?;
            writeln!(f, "{:#?}{:#?}", report.readers, report.counters)?;
        }
        Ok(())
    }
}

/// Takes all waiting samples, and returns their numbers.
pub(crate) fn take_numbers(reader: &DataReader<Message>) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some(sample) = reader.take().expect("samples of the type") {
        numbers.extend(sample.value.map(|message| message.number));
    }
    numbers
}
