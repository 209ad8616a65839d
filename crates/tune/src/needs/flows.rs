//! Flows between described participants of different hosts. Addresses and ports follow from the description.

use super::device_use;
use isolane_model::{Participant, Reliability, System, Topic};
use serde::{Deserialize, Serialize};

use crate::steer::Tuple;

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
pub(super) fn of_host(system: &System, host: &str) -> Vec<DescribedFlow> {
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
        let left: Vec<_> = of_host(&system, "left").iter().map(said).collect();
        assert_eq!(
            left,
            [
                (7, Direction::Transmit, (7007, 7023), 1),
                (5, Direction::Transmit, (7005, 7021), 1),
                (5, Direction::Receive, (7021, 7005), 0),
            ],
            "best effort has no answer; within a host there is no device"
        );
        let vlan = |host: &str| of_host(&system, host)[0].peer_vlan;
        assert_eq!((vlan("left"), vlan("right")), (Some(5), None));
        let right = of_host(&system, "right");
        assert_eq!(right[0].direction, Direction::Receive);
        assert_eq!(right[0].peer, "left");
        assert_eq!(right[0].tuple.source.to_string(), "10.0.0.1");
    }
}
