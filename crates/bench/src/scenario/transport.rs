//! What moves an end's datagrams, and what its receivers are protected with.

use serde::{Deserialize, Serialize};

use crate::report::ReceiveWork;

/// The device's queue of critical frames, where the link has one for each class.
pub const CRITICAL_QUEUE: u32 = 0;
/// The queue of all others.
pub const BULK_QUEUE: u32 = 1;

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
    /// Buffers that only the critical lane may take are kept.
    pub keeps_reserve: bool,
}

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            are_steered: false,
            keeps_reserve: true,
        }
    }
}

impl Lanes {
    /// Lanes where receive work is done so.
    pub fn received_by(receive_work: ReceiveWork) -> Lanes {
        Lanes {
            are_steered: receive_work != ReceiveWork::Softirq,
            ..Lanes::default()
        }
    }

    /// The device's queue of each level's lane.
    pub fn queues(&self) -> [u32; 8] {
        let mut queues = [BULK_QUEUE; 8];
        queues[7] = CRITICAL_QUEUE;
        match self.are_steered {
            true => queues,
            false => [CRITICAL_QUEUE; 8],
        }
    }
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

    /// Nothing is protected.
    pub fn is_off(&self) -> bool {
        *self == Policing::default()
    }
}

/// Who reads the bulk that a flood sends to a level of the participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BulkReader {
    /// A reader of the participant, whose lane the executor empties when nothing is more urgent.
    Drains,
    /// Nobody takes anything: the level's lane is open and never looked at. Both ends are bare loops
    /// over the datapath then, since an executor looks at all its lanes.
    DoesNotDrain,
}
