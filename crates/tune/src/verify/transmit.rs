//! Transmit queues of each level, measured with queueing discipline counters.
//!
//! Under `mq` and `mqprio` each transmit queue has its own discipline, whose counter the kernel reports. Datagrams of
//! one level are sent to the discard port, and the counters are read before and after. Other programs may send
//! meanwhile. So the check passes if the queues of the level's traffic class together sent at least one frame for each
//! datagram. Frames of other queues do not count.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};
use std::{io, thread};

use isolane_hostnet::qdisc::Queueing;
use isolane_hostnet::rx_queue_probe::{ProbeSocket, ReceiveQueues};
use isolane_wire::level::Level;
use serde::{Deserialize, Serialize};

use super::probe_server::MESSAGE_BYTES;
use crate::facts::{RootQdisc, TrafficClasses};
use crate::limits::{MAX_SENT_DATAGRAMS, TRANSMIT_TIMEOUT};
use crate::setting::SettingError;

/// Port of the discard service (RFC 863).
const DISCARD: u16 = 9;

/// Transmit queues of one level's datagrams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransmitReport {
    /// Level of the datagrams.
    pub level: u8,
    /// Number of datagrams sent.
    pub sent: u32,
    /// Number of frames that each transmit queue sent meanwhile, for all programs; queues without any are omitted.
    pub by_queue: BTreeMap<u32, u64>,
    /// Queues of the level's traffic class; empty without traffic classes.
    pub expected: Vec<u32>,
}

impl TransmitReport {
    /// Returns whether the queues of the level's class sent at least `sent` frames.
    pub fn is_as_expected(&self) -> bool {
        let of_class = self
            .expected
            .iter()
            .filter_map(|queue| self.by_queue.get(queue));
        self.expected.is_empty() || of_class.sum::<u64>() >= u64::from(self.sent)
    }
}

/// Sends `count` datagrams of each level to a neighbour, at most [`MAX_SENT_DATAGRAMS`], and returns their transmit
/// queues; `None` if the interface's queueing discipline does not count per queue.
///
/// # Errors
/// The interface is gone, a level's priority is refused, or the kernel does not report the counters.
pub fn transmit_reports(
    interface: &str,
    from: Ipv4Addr,
    to: Ipv4Addr,
    count: u32,
) -> Result<Option<Vec<TransmitReport>>, SettingError> {
    let failed = |error: io::Error| SettingError::System(error.to_string());
    let queues = ReceiveQueues::of(interface).ok_or(SettingError::Gone)?;
    let mut queueing = Queueing::open().map_err(failed)?;
    let root = queueing.root(interface)?;
    let mut found = Vec::new();
    for level in Level::ALL {
        let from = SocketAddrV4::new(from, 0);
        let port = ProbeSocket::bind(from, level, queues).map_err(failed)?;
        let before = queueing.sent(interface)?;
        if before.is_empty() {
            return Ok(None);
        }
        let sent = count.min(MAX_SENT_DATAGRAMS);
        for _ in 0..sent {
            // An ICMP port unreachable of the neighbour makes the next call fail.
            let _ = port.send(&[0; MESSAGE_BYTES], SocketAddrV4::new(to, DISCARD));
        }
        let expected = expected(root.as_ref(), level);
        let end = Instant::now() + TRANSMIT_TIMEOUT;
        let departure = loop {
            let departure = TransmitReport {
                level: level.get(),
                sent,
                by_queue: more(&before, &queueing.sent(interface)?),
                expected: expected.clone(),
            };
            let all: u64 = departure.by_queue.values().sum();
            // A queued frame is counted when it leaves.
            if all >= u64::from(sent) || Instant::now() >= end {
                break departure;
            }
            thread::sleep(Duration::from_millis(1));
        };
        found.push(departure);
    }
    Ok(Some(found))
}

fn expected(root: Option<&RootQdisc>, level: Level) -> Vec<u32> {
    let Some(RootQdisc::Mqprio(TrafficClasses {
        class_of_priority,
        queues,
        ..
    })) = root
    else {
        return Vec::new();
    };
    let class = class_of_priority.get(usize::from(level.get())).copied();
    let of_class = class.and_then(|class| queues.get(usize::from(class)));
    of_class.map_or_else(Vec::new, |(number, first)| {
        (0..*number)
            .map(|at| u32::from(*first) + u32::from(at))
            .collect()
    })
}

fn more(before: &BTreeMap<u32, u64>, now: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    now.iter()
        .map(|(queue, count)| {
            let before = before.get(queue).copied().unwrap_or(0);
            (*queue, count.saturating_sub(before))
        })
        .filter(|(_, more)| *more > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> RootQdisc {
        let mut class_of_priority = [0; 16];
        class_of_priority[6..8].fill(1);
        RootQdisc::Mqprio(TrafficClasses {
            class_of_priority,
            queues: vec![(3, 0), (1, 3)],
            offloaded: false,
        })
    }

    #[test]
    fn a_level_leaves_by_the_queues_of_its_class() {
        let level = |number| Level::new(number).expect("a level");
        assert_eq!(expected(Some(&classes()), level(7)), [3]);
        assert_eq!(expected(Some(&classes()), level(0)), [0, 1, 2]);
        let other = RootQdisc::Default { name: "mq".into() };
        assert_eq!(expected(Some(&other), level(7)), [0; 0]);
        assert_eq!(expected(None, level(7)), [0; 0]);
    }

    #[test]
    fn others_may_send_meanwhile_and_stand_for_none_of_ours() {
        let departure = |by_queue: &[(u32, u64)]| TransmitReport {
            level: 7,
            sent: 10,
            by_queue: by_queue.iter().copied().collect(),
            expected: vec![3],
        };
        assert!(departure(&[(3, 10)]).is_as_expected());
        assert!(departure(&[(0, 500), (3, 11)]).is_as_expected());
        assert!(!departure(&[(0, 500), (3, 9)]).is_as_expected());
        assert!(!departure(&[]).is_as_expected());
    }
}
