//! Receive queues of described flows, compared with the expected ones.

use std::net::Ipv4Addr;

use isolane_model::Steering;
use serde::Serialize;

use super::receive_queues::{Pair, QueueCounts, ReceiveQueueReport};
use crate::needs::{DescribedFlow, Direction, Needs};
use crate::plan::RULES_WITHOUT_PORTS;
use crate::steer::Tuple;

/// Measured receive queues of one described flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowReport {
    /// Level of the flow.
    pub level: u8,
    /// Topics of the flow.
    pub topics: Vec<String>,
    /// Direction of the flow.
    pub direction: Direction,
    /// Addresses and ports of the flow.
    pub tuple: Tuple,
    /// Critical queue of the receiver: critical flows must arrive there, others must not. `None` if the description
    /// names no queue.
    pub critical_queue: Option<u32>,
    /// True if the flow is critical.
    pub is_critical: bool,
    /// True if the receiver may steer by VLAN priority. Probes are untagged, so their queue then proves nothing.
    pub may_go_by_priority: bool,
    /// Queues on which the flow's probes arrived.
    pub receive_queues: QueueCounts,
    /// Questions without an answer.
    pub lost: u32,
}

impl FlowReport {
    /// Returns whether the flow arrived as expected; `None` if no queue is expected, or if probes cannot tell.
    pub fn is_as_expected(&self) -> Option<bool> {
        if self.may_go_by_priority {
            return None;
        }
        let queue = self.critical_queue?;
        Some(match self.is_critical {
            true => self.lost == 0 && self.receive_queues.single_queue() == Some(queue),
            false => {
                self.receive_queues.unknown == 0
                    && !self.receive_queues.by_queue.is_empty()
                    && !self.receive_queues.by_queue.contains_key(&queue)
            }
        })
    }
}

/// Returns whether the receiver of a flow may steer by VLAN priority. It may if the profile selects rules, both hosts
/// send in one VLAN, and the receiver may lack rules that match ports. `driver` is that of this host; the peer's driver
/// is unknown.
pub fn may_go_by_priority(
    needs: &Needs,
    flow: &DescribedFlow,
    steering: Steering,
    driver: Option<&str>,
) -> bool {
    let sees_ports = driver.is_some_and(|driver| !RULES_WITHOUT_PORTS.contains(&driver));
    let is_tagged = needs.vlan.is_some() && flow.peer_vlan == needs.vlan;
    steering == Steering::Rules
        && is_tagged
        && !(flow.direction == Direction::Receive && sees_ports)
}

/// Pairs of own and peer's port of all flows with a peer.
pub fn pairs_with(needs: &Needs, peer: Ipv4Addr) -> Vec<(u16, u16)> {
    let mut pairs: Vec<(u16, u16)> = with(needs, peer).map(pair_of).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Described flows with a peer and their receive queues; flows that were not probed are omitted. `critical`: lowest
/// critical level; `by_priority`: see [`may_go_by_priority`].
pub fn flow_reports(
    needs: &Needs,
    critical: u8,
    peer: Ipv4Addr,
    landings: &ReceiveQueueReport,
    by_priority: &dyn Fn(&DescribedFlow) -> bool,
) -> Vec<FlowReport> {
    let is_critical = |flow: &DescribedFlow| flow.level >= critical;
    let queue_of = |direction: Direction| {
        let mut flows =
            with(needs, peer).filter(|flow| flow.direction == direction && is_critical(flow));
        let queue = flows.next().map(|flow| flow.queue)?;
        needs.names_queues.then_some(queue)
    };
    let queues = [Direction::Receive, Direction::Transmit].map(queue_of);
    let landed = with(needs, peer).filter_map(|flow| {
        let is_meant = |pair: &&Pair| (pair.port, pair.peer_port) == pair_of(flow);
        let pair = landings.pairs.iter().find(is_meant)?;
        let (landing, critical_queue) = match flow.direction {
            Direction::Receive => (&pair.at_host, queues[0]),
            Direction::Transmit => (&pair.at_peer, queues[1]),
        };
        Some(FlowReport {
            level: flow.level,
            topics: flow.topics.clone(),
            direction: flow.direction,
            tuple: flow.tuple,
            critical_queue,
            is_critical: is_critical(flow),
            may_go_by_priority: by_priority(flow),
            receive_queues: landing.clone(),
            lost: pair.lost,
        })
    });
    landed.collect()
}

fn with(needs: &Needs, peer: Ipv4Addr) -> impl Iterator<Item = &DescribedFlow> {
    needs.flows.iter().filter(move |flow| match flow.direction {
        Direction::Receive => flow.tuple.source == peer,
        Direction::Transmit => flow.tuple.destination == peer,
    })
}

/// Own port and the peer's.
fn pair_of(flow: &DescribedFlow) -> (u16, u16) {
    match flow.direction {
        Direction::Receive => (flow.tuple.destination_port, flow.tuple.source_port),
        Direction::Transmit => (flow.tuple.source_port, flow.tuple.destination_port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn flow(level: u8, direction: Direction) -> DescribedFlow {
        let out = Tuple {
            source: OWN,
            destination: PEER,
            source_port: 7_000 + u16::from(level),
            destination_port: 7_100 + u16::from(level),
        };
        DescribedFlow {
            level,
            tuple: if direction == Direction::Transmit {
                out
            } else {
                out.reply()
            },
            direction,
            peer: String::from("right"),
            peer_vlan: None,
            queue: if level == 7 { 1 } else { 0 },
            topics: vec![format!("T{level}")],
        }
    }

    fn needs() -> Needs {
        Needs {
            flows: vec![
                flow(7, Direction::Transmit),
                flow(7, Direction::Receive),
                flow(0, Direction::Receive),
            ],
            names_queues: true,
            ..Needs::default()
        }
    }

    fn landing(queue: u32) -> QueueCounts {
        QueueCounts {
            by_queue: [(queue, 20)].into(),
            unknown: 0,
        }
    }

    fn pair(level: u16, there: u32, back: u32, lost: u32) -> Pair {
        Pair {
            port: 7_000 + level,
            peer_port: 7_100 + level,
            at_peer: landing(there),
            at_host: landing(back),
            lost,
        }
    }

    fn verdicts(needs: &Needs, pairs: Vec<Pair>) -> Vec<Option<bool>> {
        let landings = ReceiveQueueReport {
            pairs,
            ..ReceiveQueueReport::default()
        };
        let landed = flow_reports(needs, 7, PEER, &landings, &|flow| {
            may_go_by_priority(needs, flow, Steering::Rules, Some("igc"))
        });
        landed.iter().map(FlowReport::is_as_expected).collect()
    }

    #[test]
    fn both_ways_of_a_pair_are_asked_once() {
        assert_eq!(pairs_with(&needs(), PEER), [(7_000, 7_100), (7_007, 7_107)]);
        assert!(pairs_with(&needs(), Ipv4Addr::LOCALHOST).is_empty());
    }

    #[test]
    fn critical_flows_belong_on_their_queue_and_others_anywhere_else() {
        let good = vec![pair(7, 1, 1, 0), pair(0, 0, 0, 0)];
        assert_eq!(verdicts(&needs(), good), [Some(true); 3]);
        let reply_elsewhere = vec![pair(7, 1, 0, 0), pair(0, 0, 0, 0)];
        let expected = [Some(true), Some(false), Some(true)];
        assert_eq!(verdicts(&needs(), reply_elsewhere), expected);
        let bulk_among_critical = vec![pair(7, 1, 1, 0), pair(0, 0, 1, 0)];
        let expected = [Some(true), Some(true), Some(false)];
        assert_eq!(verdicts(&needs(), bulk_among_critical), expected);
        let lossy = vec![pair(7, 1, 1, 1)];
        assert_eq!(verdicts(&needs(), lossy), [Some(false); 2]);
    }

    #[test]
    fn what_may_go_by_the_priority_of_a_tag_is_not_judged_by_datagrams_without_one() {
        let mut tagged = Needs {
            vlan: Some(5),
            ..needs()
        };
        let elsewhere = || vec![pair(7, 0, 0, 0)];
        assert_eq!(verdicts(&tagged, elsewhere()), [Some(false); 2]);
        for flow in &mut tagged.flows {
            flow.peer_vlan = Some(5);
        }
        assert_eq!(verdicts(&tagged, elsewhere()), [None; 2]);
        let by = |flow: &DescribedFlow, steering, driver| {
            may_go_by_priority(&tagged, flow, steering, Some(driver))
        };
        let ways = [Direction::Transmit, Direction::Receive].map(|way| flow(7, way));
        let ways = ways.map(|flow| DescribedFlow {
            peer_vlan: Some(5),
            ..flow
        });
        assert!(!by(&ways[1], Steering::Auto, "igc"));
        assert!(!by(&ways[1], Steering::Rules, "ice"), "its rules see ports");
        assert!(
            by(&ways[0], Steering::Rules, "ice"),
            "what the peer has is not known"
        );
    }

    #[test]
    fn without_queues_in_the_description_nothing_is_judged() {
        let needs = Needs {
            names_queues: false,
            ..needs()
        };
        assert_eq!(verdicts(&needs, vec![pair(7, 0, 0, 0)]), [None; 2]);
    }
}
