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

/// How long anything may take before the test has failed.
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

/// Where participants meet.
#[derive(Clone)]
pub(crate) enum Site {
    /// On a network in memory.
    Memory(Network),
    /// On 127.0.0.1 by unicast.
    Loopback(Arc<Domain>),
}

impl Site {
    /// One of each kind.
    pub(crate) fn both() -> [Self; 2] {
        [Self::memory(), Self::loopback()]
    }

    pub(crate) fn memory() -> Self {
        Self::Memory(Network::new(1))
    }

    pub(crate) fn loopback() -> Self {
        Self::Loopback(Arc::new(Domain::claim()))
    }

    /// Datapath of a participant here.
    pub(crate) fn datapath(&self) -> Box<dyn DatapathFactory> {
        match self {
            Self::Memory(network) => Box::new(network.attach([10, 0, 0, 1])),
            Self::Loopback(_) => Box::new(UdpOptions),
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
        // Others of this host are more likely in the low ones.
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

    /// Where the first participant of the domain on 127.0.0.1 is announced to.
    pub(crate) fn first_participant(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, Self::port(self.number))
    }

    /// RTPS 2.5 §9.6.2.3, the metatraffic unicast port of participant 0.
    fn port(number: u32) -> u16 {
        u16::try_from(7_410 + 250 * number).expect("domains end at 232")
    }
}

/// Participants driven in turn.
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

    /// Two participants.
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

    /// Drives this participant with the others.
    pub(crate) fn drive(&mut self, participant: &Participant) {
        self.participants.push(participant.clone());
    }

    /// Drives a participant no longer: without other handles it is gone.
    pub(crate) fn leave(&mut self, participant: Participant) {
        self.participants
            .retain(|other| other.guid() != participant.guid());
    }

    /// Runs everybody until `done`.
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

    /// Runs everybody for a while.
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

    /// Nothing was lost without a name, and no frame is away that should be at home.
    #[track_caller]
    pub(crate) fn assert_balanced(&self) {
        for participant in &self.participants {
            assert_balanced(&participant.report(), matches!(self.site, Site::Memory(_)));
        }
    }
}

/// Every test ends by balancing what it did.
impl Drop for World {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.assert_balanced();
        }
    }
}

/// Every ledger of a participant balances and every frame is home; sockets keep frames armed.
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

/// Takes all samples that wait, as numbers.
pub(crate) fn take_numbers(reader: &DataReader<Message>) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some(sample) = reader.take().expect("samples of the type") {
        numbers.extend(sample.value.map(|message| message.number));
    }
    numbers
}
