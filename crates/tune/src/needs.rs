//! What a description wants of one of its hosts.

use core::ops::Range;
use std::net::Ipv4Addr;

use isolane_model::{Host, Source, System, Topic, Tuning, XdpAttach, XdpMode, XdpWaiting};
use isolane_wire::level::Level;

use crate::limits::STALL_US;

mod flows;

pub use flows::{DescribedFlow, Way};

/// What one host of a system needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The system's domain.
    pub domain: u32,
    /// The host's name; `None`: it is not known which of the hosts this machine is.
    pub host: Option<String>,
    /// Names of all hosts.
    pub hosts: Vec<String>,
    /// The interface that carries its topics.
    pub interface: Option<String>,
    /// The executor's core.
    pub core: Option<u16>,
    /// The highest level among its topics.
    pub highest_level: Option<u8>,
    /// Datagrams that may wait at one socket while the host is kept from reading, and of which level
    /// they are: the level with the most.
    pub waiting_datagrams: Option<(u8, u64)>,
    /// Participants of the host that peers know without discovery.
    pub participants: Vec<DescribedPlace>,
    /// Its topics, in the order of the description.
    pub topics: Vec<NeededTopic>,
    /// The flows between described participants of this host and of others.
    pub flows: Vec<DescribedFlow>,
    /// The device's queue of each level's lane.
    pub lane_queues: [u32; Level::COUNT],
    /// Whether the description names them, rather than leaving them all on the first queue.
    pub names_queues: bool,
    /// Whether its executor never sleeps.
    pub spins: bool,
    /// Whether its lanes are to have the device read and write their frames itself, or not to be at all.
    pub asks_for_zero_copy: bool,
    /// The VLAN its frames are sent in.
    pub vlan: Option<u16>,
}

/// A topic that a host has to do with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededTopic {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: u8,
    /// The host sends it.
    pub is_sent: bool,
    /// The host receives it.
    pub is_received: bool,
}

/// Where a described participant is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedPlace {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its UDP ports, one a level.
    pub ports: Range<u16>,
}

impl Needs {
    /// The topics from a level on, of this host.
    pub fn topics_from(&self, level: u8) -> impl Iterator<Item = &NeededTopic> {
        self.topics.iter().filter(move |topic| topic.level >= level)
    }

    /// The level from which on topics are critical, by a profile: the one it names, else the highest there is.
    /// `None`: the host has none.
    pub fn critical_level(&self, tuning: &Tuning) -> Option<u8> {
        let highest = self.highest_level?;
        match tuning.critical_level.value {
            Some(level) => (highest >= level.get()).then(|| level.get()),
            None => Some(highest),
        }
    }

    /// The needs of the domain alone, where there is no description.
    pub fn of_domain(domain: u32) -> Self {
        Self {
            domain,
            ..Self::default()
        }
    }

    /// The needs of a host of a system: of that name, else the one that is called as the machine is,
    /// else the only one there is.
    ///
    /// # Errors
    /// There is no host of that name; the names of those there are.
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
        self.lane_queues = Level::ALL.map(|level| host.xdp.queue_of(level));
        self.names_queues = !host.xdp.queues.is_empty() || host.xdp.queue.source != Source::Default;
        self.spins = host.xdp.waiting.value != XdpWaiting::Sleep;
        self.asks_for_zero_copy =
            host.xdp.mode.value == XdpMode::ZeroCopy && host.xdp.attach.value == XdpAttach::Native;
        self.vlan = host.xdp.vlan.value;
        self.host = Some(name.clone());
    }
}

/// Datagrams of a topic that come while the host is kept from reading: one a period from each sender.
fn waiting(topic: &Topic) -> u64 {
    let senders = topic.from.value.len() as u64;
    let periods = match topic.period.value {
        Some(period) => u128::from(STALL_US).div_ceil(period.as_micros().max(1)) as u64,
        None => 1,
    };
    senders * periods
}
