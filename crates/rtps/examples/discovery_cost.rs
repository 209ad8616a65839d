//! Discovery of many endpoints, to be counted by a tool: what `cargo xtask discovery` runs.
//!
//! ```text
//! cargo build --release --package isolane-rtps --example discovery_cost
//! valgrind --tool=callgrind --toggle-collect='*::measured_discovery' discovery_cost 1000
//! ```
//!
//! Two local participants, one with writers and one with as many readers, each on its own topic, discover each other
//! and match them. Datagrams pass from one to the other without loss or delay, and nothing else runs. The count is
//! therefore the work of both participants, from the first announcement to the last match. It excludes the creation of
//! endpoints.

use std::{env, error::Error, process::ExitCode, time::Duration};

use isolane_rtps::{
    DeliveryMode, Destinations, EndpointConfig, Limits, LocalParticipant, MessageReceiver,
    ParticipantConfig, Priority, WriterId,
    limits::{MAX_DATA_PAYLOAD_BYTES, MAX_DATAGRAM_BYTES},
};
use isolane_wire::{
    builtin_data::LocatorList, guid::GuidPrefix, locator::Locator, qos::QosPolicies, time::Instant,
};

/// Longer than discovery takes, in virtual time.
const PATIENCE: Duration = Duration::from_secs(600);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("discovery_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let argument = env::args()
        .nth(1)
        .ok_or("usage: discovery_cost ENDPOINTS")?;
    let endpoints: u16 = argument.parse()?;
    let pairs = (endpoints / 2).max(1);
    let mut both = Both::new(pairs)?;
    let end = both.now + PATIENCE;
    while !both.is_matched() {
        if both.now > end || !measured_discovery(&mut both) {
            return Err("not all were matched".into());
        }
    }
    println!("endpoints {}", 2 * u32::from(pairs));
    println!("datagrams {}", both.datagrams);
    println!("virtual_ms {}", both.now.as_nanos() / 1_000_000);
    Ok(())
}

/// The two, and the time.
struct Both {
    participants: [LocalParticipant; 2],
    writers: Vec<WriterId>,
    now: Instant,
    buffer: Vec<u8>,
    datagrams: u64,
}

fn address(side: usize) -> Locator {
    Locator::udpv4([10, 0, 0, 1 + side as u8], 7410)
}

impl Both {
    fn new(pairs: u16) -> Result<Self, Box<dyn Error>> {
        let now = Instant::new(1);
        let protocol = |side: usize| {
            let mut prefix = [0; 12];
            prefix[..2].copy_from_slice(&isolane_wire::message::VENDOR_ID);
            prefix[11] = 1 + side as u8;
            let mut config = ParticipantConfig::new(0, GuidPrefix(prefix), 7);
            config.metatraffic_unicast = LocatorList::from_iter([address(side)]);
            config.announce_to = vec![address(1 - side)];
            config.multicast = false;
            config.limits = Limits {
                local_endpoints: pairs,
                participants: 4,
                remote_endpoints: 2 * pairs,
                matches: 4 * pairs + 8,
                fixed_memory: false,
                sample_bytes: 16 << 20,
            };
            LocalParticipant::new(config, now)
        };
        let mut both = Self {
            participants: [protocol(0), protocol(1)],
            writers: Vec::new(),
            now,
            buffer: vec![0; MAX_DATAGRAM_BYTES],
            datagrams: 0,
        };
        for number in 0..pairs {
            let topic_name = format!("vehicle/zone{}/signal{number:05}", number % 7);
            let config = |side| EndpointConfig {
                topic_name: &topic_name,
                type_name: "vehicle::LivelinessAssertion",
                keyed: false,
                key_of: None,
                qos: QosPolicies::default(),
                max_payload_bytes: 64,
                shares_long: false,
                max_datagram_bytes: MAX_DATA_PAYLOAD_BYTES,
                unicast: LocatorList::from_iter([address(side)]),
                multicast: LocatorList::new(),
            };
            let [one, other] = &mut both.participants;
            both.writers.push(one.create_writer(now, &config(0))?);
            other.create_reader(now, &config(1), DeliveryMode::Cache)?;
        }
        Ok(both)
    }

    fn is_matched(&self) -> bool {
        let is_matched = |&writer: &WriterId| self.participants[0].matched_readers(writer) == 1;
        let mut readers = self.participants[1].local_readers();
        self.writers.iter().all(is_matched)
            && readers.all(|reader| self.participants[1].matched_writers(reader) == 1)
    }

    /// All that one side has to do now. False: nothing.
    fn work(&mut self, side: usize) -> bool {
        let mut has_worked = false;
        loop {
            let protocol = &mut self.participants[side];
            while protocol.next_status().is_some() {}
            let ready = protocol.ready();
            let Some(priority) = Priority::descending().find(|at| ready >> at.get() & 1 == 1)
            else {
                return has_worked;
            };
            has_worked = true;
            let Some(work) = protocol.poll_transmit(self.now, priority, &mut self.buffer) else {
                continue;
            };
            let copies = match &work.to {
                Destinations::Writer(writer) => protocol.destinations(*writer).len(),
                Destinations::Announce => protocol.announce_to().len(),
                Destinations::Subset(_, places) => places.count_ones() as usize,
                Destinations::Listed(listed) => listed.len(),
            };
            for _ in 0..if work.bytes > 0 { copies } else { 0 } {
                self.datagrams += 1;
                let mut message = MessageReceiver::new(address(side));
                let bytes = &self.buffer[..work.bytes];
                let other = &mut self.participants[1 - side];
                while other.receive(self.now, &mut message, bytes).is_some() {}
            }
        }
    }
}

/// Everything due now, then the time of the next work. Returns false if nothing will be due. It does not look whether
/// all are matched, because that is not the participants' work.
#[inline(never)]
fn measured_discovery(both: &mut Both) -> bool {
    while both.work(0) | both.work(1) {}
    let times = both.participants.iter();
    let Some(next) = times.filter_map(LocalParticipant::next_time).min() else {
        return false;
    };
    both.now = next.max(both.now);
    for protocol in &mut both.participants {
        protocol.advance(both.now);
    }
    true
}
