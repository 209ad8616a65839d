//! Transport of an end's datagrams, and policing of its receivers.

use isolane::XdpOptions;
use isolane_datapath::{Interfaces, NetworkConfig};
use isolane_datapath_xdp::limits::BUSY_POLL;
use isolane_datapath_xdp::xdp::{XdpConfig, why_not};
use serde::{Deserialize, Serialize};

use crate::namespace::{Host, TestHosts, TestHostsError};
use crate::report::{Order, ReceiveWork, RunSettings, Stage};

/// Level of the measured topics.
pub const CRITICAL_LEVEL: u8 = 7;
/// Level of bulk traffic to the participants.
pub const BULK_LEVEL: u8 = 1;

/// Device queue of critical frames on a link with a queue per class.
pub const CRITICAL_QUEUE: u32 = 0;
/// Device queue of all other frames.
pub const BULK_QUEUE: u32 = 1;

/// Ring entries of bulk when the ring exceeds the buffer pool.
const OVERCOMMITTED_ENTRIES: u32 = 2_048;
/// Buffers of the queue when the ring exceeds the buffer pool.
const OVERCOMMITTED_CHUNKS: u32 = 1_024;

/// Minimum share of datagrams received by the lane in a run over lanes.
pub(super) const LEAST_BY_LANE: f64 = 0.9;
/// Name of the counter of datagrams that a lane received.
pub(super) const BY_LANE: &str = "received_by_lane";

/// Transport of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Sockets.
    #[default]
    Udp,
    /// AF_XDP lanes.
    Xdp(Lanes),
}

/// Configuration of lanes. All mechanisms are on, except in runs that show what happens without one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lanes {
    /// True when frames are received in the queue of their class; otherwise all use queue 0.
    pub are_steered: bool,
    /// True when the bulk ring exceeds the buffer pool, so that only recycling protects buffers for critical frames.
    pub overcommits: bool,
    /// Recycling: when few buffers are free, bulk is dropped before it takes one, and the buffers of waiting bulk are
    /// taken back.
    pub recycles: bool,
    /// Level of the only lane, if all levels share one.
    pub shared_level: Option<u8>,
    /// True when the lanes' sockets busy-poll.
    pub busy_polls: bool,
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            are_steered: false,
            overcommits: false,
            recycles: true,
            shared_level: None,
            busy_polls: false,
        }
    }
}

impl Transport {
    /// Level of a participant's bulk readers.
    pub(crate) fn bulk_level(&self) -> u8 {
        self.shared_level().unwrap_or(BULK_LEVEL)
    }

    /// Level of the only lane, if all levels share one.
    pub(super) fn shared_level(&self) -> Option<u8> {
        match self {
            Transport::Udp => None,
            Transport::Xdp(lanes) => lanes.shared_level,
        }
    }
}

impl Lanes {
    /// Lanes of a run. Without a lane per level, all traffic of the participants shares the critical lane with its
    /// ring, buffers, queue and link class. The critical traffic thus keeps the benefits of the steps before lanes, and
    /// bulk gets them too. In FIFO order all levels share the lowest level's lane, as with sockets.
    pub fn of(settings: &RunSettings) -> Lanes {
        let shared_level = match settings.order {
            Order::Fifo => Some(0),
            Order::Priority if settings.stages.contains(&Stage::Lanes) => None,
            Order::Priority => Some(CRITICAL_LEVEL),
        };
        Lanes {
            are_steered: settings.receive_work != ReceiveWork::Softirq,
            shared_level,
            ..Lanes::default()
        }
    }

    pub(super) fn options(&self, interface: &str) -> XdpOptions {
        let usual = XdpOptions::default();
        let bulk = usize::from(BULK_LEVEL);
        let mut options = XdpOptions {
            interface: Some(interface.to_owned()),
            // Levels with endpoints in these runs.
            levels: match self.shared_level {
                Some(level) => 1 << level,
                None => 1 << CRITICAL_LEVEL | 1 << BULK_LEVEL,
            },
            queues: self.queues(),
            busy_poll: self.busy_polls.then_some(BUSY_POLL),
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

    /// Device queue of each level's lane.
    fn queues(&self) -> [u32; 8] {
        let mut queues = [CRITICAL_QUEUE; 8];
        if self.are_steered {
            queues[..usize::from(CRITICAL_LEVEL)].fill(BULK_QUEUE);
        }
        queues
    }
}

/// Reason why lanes do not work between a testbed's hosts; `None` if no obstacle is known. Checks from inside one host,
/// without changing anything.
pub fn lanes_impossible(testbed: &TestHosts) -> Result<Option<String>, TestHostsError> {
    let interface = Host::A.interface();
    let config = XdpConfig {
        udp: NetworkConfig {
            interfaces: Interfaces::Named(vec![interface.to_owned()]),
            ..NetworkConfig::default()
        },
        options: Lanes::default().options(interface),
    };
    testbed.run(Host::A, || why_not(&config))
}

/// Number of datagrams allowed per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// Datagrams.
    pub capacity: u32,
    /// Period in microseconds.
    pub period_us: u32,
}

/// Policing of receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policing {
    /// Allowance of all foreign traffic, such as a storm or flood outside of DDS.
    pub others: Option<Allowance>,
    /// Allowance of the bulk level.
    pub bulk: Option<Allowance>,
}

impl Policing {
    /// Policing of runs with budgets: 500 foreign datagrams per second, one at a time. A datagram for 250 sockets is
    /// tens of microseconds of receive work; a burst would cause a visible delay.
    pub const OF_FOREIGN: Policing = Policing {
        others: Some(Allowance {
            capacity: 1,
            period_us: 2_000,
        }),
        bulk: None,
    };

    /// Adds an equal allowance for a bulk level that is read: 500 datagrams per second, one at a time.
    #[must_use]
    pub fn of_bulk(self) -> Policing {
        Policing {
            bulk: self.others,
            ..self
        }
    }
}

/// Reader of bulk: of a flood to a level of the participants, and of their own bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BulkReader {
    /// A reader whose lane the executor drains when nothing is more urgent.
    Drains,
    /// A draining reader, and a reliable KEEP_ALL reader of the other end's bulk topic from which no sample is taken.
    /// That reader's cache fills, then the history of the matched writer, and retransmissions find no room.
    Keeps,
    /// A reader that is starved: a job at a level between bulk and critical takes all the time the critical level
    /// leaves, while there are round trips. The bulk lane is open and fills.
    DoesNotDrain,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Cell, Datapath};
    use crate::report::Step;

    fn lanes_of(cell: Cell) -> Lanes {
        Lanes::of(&cell.round_trips().settings)
    }

    #[test]
    fn steered_lanes_are_on_the_queues_that_the_link_fills() {
        let by_priority = |receive_work| {
            Lanes::of(&RunSettings {
                receive_work,
                ..RunSettings::new("xdp", 64)
            })
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
        let of_step = |step| {
            lanes_of(Cell {
                step: Some(step),
                ..Cell::default()
            })
        };
        let one = of_step(Step::Xdp);
        assert_eq!(one.options("host-a").levels, 1 << CRITICAL_LEVEL);
        let queues = one.options("host-a").queues;
        assert_eq!(queues[usize::from(CRITICAL_LEVEL)], CRITICAL_QUEUE);
        assert_eq!(Transport::Xdp(one).bulk_level(), CRITICAL_LEVEL);
        let each = of_step(Step::Lane);
        assert_eq!(Transport::Xdp(each).bulk_level(), BULK_LEVEL);
        let fifo = lanes_of(Cell {
            datapath: Datapath::Xdp,
            order: Order::Fifo,
            ..Cell::default()
        });
        assert_eq!(fifo.options("host-a").levels, 1, "the lowest, for all");
    }

    #[test]
    fn buffers_are_fewer_than_the_rings_take_on_request_only() {
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
