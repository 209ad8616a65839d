//! Requirements of a description for one of its hosts.

use core::ops::Range;
use std::net::Ipv4Addr;

use isolane_datapath::kind::{DeviceUse, Options};
use isolane_model::{DatapathSettings, Host, Source, System, Topic, Tuning, Waiting};
use isolane_wire::level::Level;

use crate::limits::STALL_US;

mod flows;

pub use flows::{DescribedFlow, Direction};

/// Requirements of one host of a system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// DDS domain of the system.
    pub domain: u32,
    /// Host name; `None` if this machine matches no described host.
    pub host: Option<String>,
    /// Names of all hosts.
    pub hosts: Vec<String>,
    /// Interface that carries the host's topics.
    pub interface: Option<String>,
    /// Core of the executor.
    pub core: Option<u16>,
    /// Highest level among the host's topics.
    pub highest_level: Option<u8>,
    /// Level with the most datagrams that may queue at one socket during a stall, and their number.
    pub waiting_datagrams: Option<(u8, u64)>,
    /// Participants of this host that peers know without discovery.
    pub participants: Vec<DescribedPlace>,
    /// Topics of this host, in the order of the description.
    pub topics: Vec<NeededTopic>,
    /// Flows between described participants of this host and of other hosts.
    pub flows: Vec<DescribedFlow>,
    /// Device queue of each level's lane.
    pub lane_queues: [u32; Level::COUNT],
    /// True if the description names the queues; otherwise all lanes use the first queue.
    pub names_queues: bool,
    /// True if the executor never sleeps.
    pub spins: bool,
    /// True if lanes require zero-copy mode with a native attachment.
    pub asks_for_zero_copy: bool,
    /// VLAN of the host's frames.
    pub vlan: Option<u16>,
}

/// Topic that a host sends or receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededTopic {
    /// Topic name.
    pub name: String,
    /// Topic level.
    pub level: u8,
    /// True if the host sends it.
    pub is_sent: bool,
    /// True if the host receives it.
    pub is_received: bool,
}

/// Addresses of a described participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedPlace {
    /// Participant name.
    pub name: String,
    /// IPv4 address.
    pub address: Ipv4Addr,
    /// UDP ports, one per level.
    pub ports: Range<u16>,
}

impl Needs {
    /// Topics of this host at or above `level`.
    pub fn topics_from(&self, level: u8) -> impl Iterator<Item = &NeededTopic> {
        self.topics.iter().filter(move |topic| topic.level >= level)
    }

    /// Lowest critical level: the profile's, else the host's highest. `None` if the host has no critical topic.
    pub fn critical_level(&self, tuning: &Tuning) -> Option<u8> {
        let highest = self.highest_level?;
        match tuning.critical_level.value {
            Some(level) => (highest >= level.get()).then(|| level.get()),
            None => Some(highest),
        }
    }

    /// Requirements without a description: the domain alone.
    pub fn of_domain(domain: u32) -> Self {
        Self {
            domain,
            ..Self::default()
        }
    }

    /// Requirements of one host of a system: the host named `wanted`, else the one named like the machine, else the
    /// only one.
    ///
    /// # Errors
    /// No host is named `wanted`; holds the names of all hosts.
    pub fn of_system(
        system: &System,
        wanted: Option<&str>,
        hostname: &str,
    ) -> Result<Self, Vec<String>> {
        let names = || system.hosts().iter().map(|host| host.name.value.clone());
        let host = match wanted {
            Some(name) => Some(
                system
                    .host(name)
                    .ok_or_else(|| names().collect::<Vec<_>>())?,
            ),
            None => system.host(hostname).or(match system.hosts() {
                [only] => Some(only),
                _ => None,
            }),
        };
        let mut needs = Self {
            domain: system.domain().value.get(),
            hosts: names().collect(),
            ..Self::default()
        };
        if let Some(host) = host {
            needs.take_host(system, host);
        }
        Ok(needs)
    }

    fn take_host(&mut self, system: &System, host: &Host) {
        let name = &host.name.value;
        self.interface = Some(host.interface.value.clone());
        self.core = host.core.value;
        let level = |topic: &Topic| topic.level.value.get();
        self.highest_level = system
            .sends(name)
            .chain(system.receives(name))
            .map(level)
            .max();
        self.waiting_datagrams = Level::ALL
            .into_iter()
            .map(|level| {
                let topics = system
                    .receives(name)
                    .filter(|topic| topic.level.value == level);
                (level.get(), topics.map(waiting).sum())
            })
            .filter(|(_, datagrams)| *datagrams > 0)
            .max_by_key(|(_, datagrams)| *datagrams);
        let own = system.participants().iter();
        self.participants = own
            .filter(|participant| participant.host.value == *name)
            .map(|participant| DescribedPlace {
                name: participant.name.value.clone(),
                address: participant.address.value,
                ports: participant.ports(),
            })
            .collect();
        let needed = |topic: &Topic| NeededTopic {
            name: topic.name.value.clone(),
            level: level(topic),
            is_sent: topic.from.value.contains(name),
            is_received: topic.to.value.contains(name),
        };
        let all = system.topics().iter().map(needed);
        self.topics = all.filter(|it| it.is_sent || it.is_received).collect();
        self.flows = flows::of_host(system, name);
        self.spins = host.waiting.value == Waiting::Spin;
        let device = device_use(host);
        self.lane_queues = device.queues.unwrap_or_default();
        self.names_queues = device.queues.is_some();
        self.asks_for_zero_copy = device.needs_zero_copy;
        self.vlan = device.vlan;
        self.host = Some(name.clone());
    }
}

/// Use of a device by the host's lanes: that of the first kind of datapath that has lanes on a device.
fn device_use(host: &Host) -> DeviceUse {
    let of_kind = |settings: &DatapathSettings| {
        let mut given = Options::default();
        for (spec, value) in settings.entries() {
            if let (Some(option), false) = (value.value, value.source == Source::Default) {
                given.set(spec, option);
            }
        }
        settings.kind().device_use(&given)
    };
    host.datapaths.iter().find_map(of_kind).unwrap_or_default()
}

/// Datagrams of a topic that arrive during a stall: one per period from each sender.
fn waiting(topic: &Topic) -> u64 {
    let senders = topic.from.value.len() as u64;
    let periods = match topic.period.value {
        Some(period) => u128::from(STALL_US).div_ceil(period.as_micros().max(1)) as u64,
        None => 1,
    };
    senders * periods
}
