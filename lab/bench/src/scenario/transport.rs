//! What moves an end's datagrams, and what its receivers are protected with.

use isolane::XdpOptions;
use isolane_datapath::udp::{Interfaces, UdpConfig};
use isolane_datapath_xdp::xdp::{XdpConfig, why_not};
use serde::{Deserialize, Serialize};

use crate::namespace::{Host, Testbed, TestbedError};
use crate::report::{Order, ReceiveWork, Scenario, Stage};

/// The level of what is measured.
pub const CRITICAL_LEVEL: u8 = 7;
/// The level that strangers' bulk is for, where it is for a level of the participants.
pub const BULK_LEVEL: u8 = 1;

/// The device's queue of critical frames, where the link has one for each class.
pub const CRITICAL_QUEUE: u32 = 0;
/// The queue of all others.
pub const BULK_QUEUE: u32 = 1;

/// Entries of the ring of bulk, and buffers of the queue, where the ring takes more than there are.
const OVERCOMMITTED_ENTRIES: u32 = 2_048;
/// See above.
const OVERCOMMITTED_CHUNKS: u32 = 1_024;

/// The share of an end's datagrams that must have come by its lane, for a run to be about lanes.
pub(super) const LEAST_BY_LANE: f64 = 0.9;
/// What a device's lane calls datagrams that came by it.
pub(super) const BY_LANE: &str = "received_by_lane";

/// What moves datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Sockets.
    #[default]
    Udp,
    /// AF_XDP lanes.
    Xdp(Lanes),
}

/// How lanes are set up. All mechanisms are on unless a run is there to show what happens without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lanes {
    /// Frames are received in the queue of their class; else all in queue 0.
    pub are_steered: bool,
    /// The ring of bulk takes more buffers than there are: nothing but recycling keeps any for what is critical.
    pub overcommits: bool,
    /// Where few buffers are left, bulk is dropped before it takes one, and what waits of it taken back.
    pub recycles: bool,
    /// The level whose lane is the only one, if all levels share one.
    pub shared_level: Option<u8>,
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            are_steered: false,
            overcommits: false,
            recycles: true,
            shared_level: None,
        }
    }
}

impl Transport {
    /// The level of what bulk readers of a participant read.
    pub(super) fn bulk_level(&self) -> u8 {
        self.shared_level().unwrap_or(BULK_LEVEL)
    }

    /// The level whose lane is the only one, if all levels share one.
    pub(super) fn shared_level(&self) -> Option<u8> {
        match self {
            Transport::Udp => None,
            Transport::Xdp(lanes) => lanes.shared_level,
        }
    }
}

impl Lanes {
    /// The lanes of a scenario. Where there is none for each level, all that is of the participants shares
    /// the critical one's, with its ring, its buffers, its queue and its class on the link: what it has
    /// from the remedies before lanes stays, and bulk of the participants has it too. In FIFO order they
    /// share the lowest level's, as a participant's sockets do.
    pub fn of(scenario: &Scenario) -> Lanes {
        let shared_level = match scenario.order {
            Order::Fifo => Some(0),
            Order::Priority if scenario.stages.contains(&Stage::Lanes) => None,
            Order::Priority => Some(CRITICAL_LEVEL),
        };
        Lanes {
            are_steered: scenario.receive_work != ReceiveWork::Softirq,
            shared_level,
            ..Lanes::default()
        }
    }

    /// As the datapath takes it, on that interface.
    pub(super) fn options(&self, interface: &str) -> XdpOptions {
        let usual = XdpOptions::default();
        let bulk = usize::from(BULK_LEVEL);
        let mut options = XdpOptions {
            interface: Some(interface.to_owned()),
            // Those that runs have endpoints of.
            levels: match self.shared_level {
                Some(level) => 1 << level,
                None => 1 << CRITICAL_LEVEL | 1 << BULK_LEVEL,
            },
            queues: self.queues(),
            ..usual
        };
        if self.overcommits {
            options.receive_entries[bulk] = OVERCOMMITTED_ENTRIES;
            options.receive_frames = Some(OVERCOMMITTED_CHUNKS);
            options.overcommit = true;
        }
        options.recycling = self.recycles;
        options.enforcement.recycling = self.recycles;
        options
    }

    /// The device's queue of each level's lane.
    fn queues(&self) -> [u32; 8] {
        let mut queues = [CRITICAL_QUEUE; 8];
        if self.are_steered {
            queues[..usize::from(CRITICAL_LEVEL)].fill(BULK_QUEUE);
        }
        queues
    }
}

/// Why lanes do not work between the hosts of a testbed; `None` if nothing is known to be in their way.
/// Looks only, from inside one host.
pub fn lanes_impossible(testbed: &Testbed) -> Result<Option<String>, TestbedError> {
    let interface = Host::A.interface();
    let config = XdpConfig {
        udp: UdpConfig {
            interfaces: Interfaces::Named(vec![interface.to_owned()]),
            ..UdpConfig::default()
        },
        options: Lanes::default().options(interface),
    };
    testbed.run(Host::A, || why_not(&config))
}

/// So many datagrams in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// Datagrams.
    pub capacity: u32,
    /// The period, in microseconds.
    pub period_us: u32,
}

/// What receivers are protected with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policing {
    /// All that is not ours: a storm or a flood of strangers.
    pub others: Option<Allowance>,
    /// What is for the level that bulk comes in at.
    pub bulk: Option<Allowance>,
}

impl Policing {
    /// As runs with budgets have it: 500 datagrams of strangers a second each, one at a time. One that
    /// 250 sockets take is tens of microseconds of receive work, which a burst of several would make a
    /// wait that shows.
    pub const OF_STRANGERS: Policing = Policing {
        others: Some(Allowance {
            capacity: 1,
            period_us: 2_000,
        }),
        bulk: None,
    };

    /// The same where bulk of a level is read too: of it, 500 datagrams a second, one at a time, are worth the
    /// receive work.
    #[must_use]
    pub fn of_bulk(self) -> Policing {
        Policing {
            bulk: self.others,
            ..self
        }
    }

    /// Nothing is protected.
    pub fn is_off(&self) -> bool {
        *self == Policing::default()
    }
}

/// Who reads bulk: what a flood sends to a level of the participants, and what they send each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BulkReader {
    /// A reader of the participant, whose lane the executor empties when nothing is more urgent.
    Drains,
    /// The same, and beside it a reader of the other end's own bulk topic, reliable and KEEP_ALL, from which
    /// nobody takes a sample: its cache fills, then the history of the other end's writer, and what is
    /// sent again finds no room.
    Keeps,
    /// The same reader, which does not get to it: a job between the two levels takes all the time that the
    /// critical one leaves, as long as there are round trips. The lane of bulk is open, and fills.
    DoesNotDrain,
}

impl BulkReader {
    /// All.
    pub const ALL: [BulkReader; 3] = [
        BulkReader::Drains,
        BulkReader::Keeps,
        BulkReader::DoesNotDrain,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Publisher, Step};
    use crate::scenario::plan;

    #[test]
    fn steered_lanes_are_on_the_queues_that_the_link_fills() {
        let by_priority = |receive_work| {
            let lanes = plan::scenario("xdp", Publisher::Thread, 64, None);
            let scenario = Scenario {
                receive_work,
                ..lanes
            };
            Lanes::of(&scenario)
        };
        let steered = by_priority(ReceiveWork::Threads).options("host-a");
        assert_eq!(steered.queues[usize::from(CRITICAL_LEVEL)], CRITICAL_QUEUE);
        assert_eq!(steered.queues[usize::from(BULK_LEVEL)], BULK_QUEUE);
        let plain = by_priority(ReceiveWork::Softirq).options("host-a");
        assert_eq!(plain.queues, [CRITICAL_QUEUE; 8]);
        assert_eq!(
            plain.levels.count_ones(),
            2,
            "one of what is measured, one of bulk"
        );
    }

    #[test]
    fn without_a_lane_a_level_bulk_is_in_the_critical_ones_ring_and_queue() {
        let lanes = plan::scenario("xdp", Publisher::Thread, 64, None);
        let one = Lanes::of(&Step::Xdp.of(lanes.clone()));
        assert_eq!(one.options("host-a").levels, 1 << CRITICAL_LEVEL);
        let queues = one.options("host-a").queues;
        assert_eq!(queues[usize::from(CRITICAL_LEVEL)], CRITICAL_QUEUE);
        assert_eq!(Transport::Xdp(one).bulk_level(), CRITICAL_LEVEL);
        let each = Lanes::of(&Step::Lane.of(lanes.clone()));
        assert_eq!(Transport::Xdp(each).bulk_level(), BULK_LEVEL);
        let fifo = Lanes::of(&lanes.in_order(Order::Fifo));
        assert_eq!(fifo.options("host-a").levels, 1, "the lowest, for all");
    }

    #[test]
    fn only_where_it_is_asked_for_there_are_fewer_buffers_than_the_rings_take() {
        let usual = Lanes::default().options("host-a");
        assert!(!usual.overcommit && usual.recycling && usual.receive_frames.is_none());
        let lanes = Lanes {
            overcommits: true,
            ..Lanes::default()
        };
        let overcommitted = lanes.options("host-a");
        let ring = overcommitted.receive_entries[usize::from(BULK_LEVEL)];
        assert!(overcommitted.overcommit && overcommitted.receive_frames < Some(ring));
    }

    #[test]
    fn without_recycling_lanes_differ_in_recycling_alone() {
        let overcommitted = Lanes {
            overcommits: true,
            ..Lanes::default()
        };
        let unrecycled = Lanes {
            recycles: false,
            ..overcommitted
        };
        let mut options = overcommitted.options("host-a");
        options.recycling = false;
        options.enforcement.recycling = false;
        assert_eq!(unrecycled.options("host-a"), options);
    }
}
