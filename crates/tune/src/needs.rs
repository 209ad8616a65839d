//! Requirements of a description for one of its hosts, and flows between described participants of different hosts. The
//! addresses and ports of these flows follow from the description.

use core::ops::Range;
use std::net::Ipv4Addr;

use isolane_datapath::kind::{DeviceUse, Options};
use isolane_model::{
    DatapathSettings, Host, Participant, Reliability, Source, System, Topic, Tuning, Waiting,
};
use isolane_wire::level::Level;
use serde::{Deserialize, Serialize};

use crate::limits::STALL_US;
use crate::steer::Tuple;

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
            None => system.host_of_machine(hostname),
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
        self.flows = flows_of_host(system, name);
        self.spins = host.waiting.value == Waiting::Spin;
        let device = device_use(host);
        self.lane_queues = device.queues.unwrap_or_default();
        self.names_queues = device.queues.is_some();
        self.asks_for_zero_copy = device.needs_zero_copy;
        self.vlan = device.vlan;
        self.host = Some(name.clone());
    }
}

/// Use of a device by the host's lanes, as the first kind of datapath with lanes on a device reports it.
fn device_use(host: &Host) -> DeviceUse {
    let of_kind = |settings: &DatapathSettings| {
        let mut given = Options::default();
        for (spec, value) in settings.entries() {
            if let (Some(option), false) = (value.value, value.source == Source::Default) {
                given.set(spec, option);
            }
        }
        let device = settings.kind().device_use(&given);
        device.expect("the description was checked")
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

/// Datagrams of one level from one participant to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedFlow {
    /// Level of the flow.
    pub level: u8,
    /// Addresses and ports.
    pub tuple: Tuple,
    /// Direction from this host's point of view.
    pub direction: Direction,
    /// Host at the other end.
    pub peer: String,
    /// VLAN in which the peer's lanes send.
    pub peer_vlan: Option<u16>,
    /// Queue of this level on the receiving host.
    pub queue: u32,
    /// Topics that the flow carries or acknowledges.
    pub topics: Vec<String>,
}

/// Direction of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Direction {
    /// Received by this host.
    #[serde(rename = "in")]
    Receive,
    /// Sent by this host.
    #[serde(rename = "out")]
    Transmit,
}

/// Flows of a host, without duplicates, in the order of the description.
fn flows_of_host(system: &System, host: &str) -> Vec<DescribedFlow> {
    let mut flows: Vec<DescribedFlow> = Vec::new();
    for topic in system.topics() {
        for (writer, reader) in pairs(system, topic) {
            if writer.host.value != host && reader.host.value != host {
                continue;
            }
            add(&mut flows, system, host, topic, (writer, reader));
            // A reliable reader sends ACKNACKs at the topic's level.
            if topic.reliability.value == Reliability::Reliable {
                add(&mut flows, system, host, topic, (reader, writer));
            }
        }
    }
    flows
}

/// Writers and readers of a topic on different hosts.
fn pairs<'a>(
    system: &'a System,
    topic: &'a Topic,
) -> impl Iterator<Item = (&'a Participant, &'a Participant)> {
    let all = system.participants();
    let has = |topics: &[String]| topics.contains(&topic.name.value);
    let writers = all.iter().filter(move |it| has(&it.writes.value));
    writers.flat_map(move |writer| {
        let readers = all.iter().filter(move |it| has(&it.reads.value));
        readers
            .filter(|reader| reader.host.value != writer.host.value)
            .map(move |reader| (writer, reader))
    })
}

fn add(
    flows: &mut Vec<DescribedFlow>,
    system: &System,
    host: &str,
    topic: &Topic,
    (from, to): (&Participant, &Participant),
) {
    let level = topic.level.value;
    let port = |participant: &Participant| participant.port.value + u16::from(level.get());
    let tuple = Tuple {
        source: from.address.value,
        destination: to.address.value,
        source_port: port(from),
        destination_port: port(to),
    };
    let name = topic.name.value.clone();
    if let Some(known) = flows.iter_mut().find(|known| known.tuple == tuple) {
        if !known.topics.contains(&name) {
            known.topics.push(name);
        }
        return;
    }
    let is_received = to.host.value == host;
    let receiver = system.host(&to.host.value);
    let peer = &if is_received { from } else { to }.host.value;
    flows.push(DescribedFlow {
        level: level.get(),
        tuple,
        direction: if is_received {
            Direction::Receive
        } else {
            Direction::Transmit
        },
        peer: peer.clone(),
        peer_vlan: system.host(peer).and_then(|peer| device_use(peer).vlan),
        queue: receiver
            .and_then(|receiver| device_use(receiver).queues)
            .map_or(0, |queues| queues[usize::from(level.get())]),
        topics: vec![name],
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolane_datapath_xdp::xdp::XdpKind;

    const FILE: &str = r#"
        [host.left]
        interface = "eth0"
        xdp.queues = { 7 = 2 }
        [host.right]
        interface = "eth0"
        xdp.queue = 1
        xdp.vlan = 5
        [topic.Ping]
        type = "T"
        level = 7
        max_bytes = 64
        reliability = "best-effort"
        from = ["left"]
        to = ["right"]
        [topic.State]
        type = "T"
        level = 5
        max_bytes = 64
        reliability = "reliable"
        from = ["left"]
        to = ["right", "left"]
        [participant.a]
        host = "left"
        address = "10.0.0.1"
        port = 7000
        writes = ["Ping", "State"]
        [participant.a2]
        host = "left"
        address = "10.0.0.1"
        port = 7008
        reads = ["State"]
        [participant.b]
        host = "right"
        address = "10.0.0.2"
        port = 7016
        reads = ["Ping", "State"]
    "#;

    #[test]
    fn a_host_has_the_flows_of_its_participants_and_their_answers() {
        let system = System::from_toml(FILE, "isolane.toml", &[&XdpKind]).expect("a description");
        let said = |flow: &DescribedFlow| {
            let ports = (flow.tuple.source_port, flow.tuple.destination_port);
            (flow.level, flow.direction, ports, flow.queue)
        };
        let left: Vec<_> = flows_of_host(&system, "left").iter().map(said).collect();
        assert_eq!(
            left,
            [
                (7, Direction::Transmit, (7007, 7023), 1),
                (5, Direction::Transmit, (7005, 7021), 1),
                (5, Direction::Receive, (7021, 7005), 0),
            ],
            "best effort has no answer; within a host there is no device"
        );
        let vlan = |host: &str| flows_of_host(&system, host)[0].peer_vlan;
        assert_eq!((vlan("left"), vlan("right")), (Some(5), None));
        let right = flows_of_host(&system, "right");
        assert_eq!(right[0].direction, Direction::Receive);
        assert_eq!(right[0].peer, "left");
        assert_eq!(right[0].tuple.source.to_string(), "10.0.0.1");
    }
}
