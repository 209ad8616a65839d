//! Receive queues of flows, as computed or measured.

use serde::{Deserialize, Serialize};

use crate::steer::Tuple;
use crate::verify::BootMark;

/// Known receive queues of flows, in both directions; may be empty. It is parsed from reports that contain further
/// fields (how they were measured), which are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowQueues {
    /// Flows with known placement.
    pub flows: Vec<FlowQueue>,
    /// Boot id of the asking machine: devices may get another hash key at the next boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// Boot mark of the answering machine, if it sent one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_boot: Option<BootMark>,
}

/// Placement of one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowQueue {
    /// Addresses and ports of the flow.
    pub tuple: Tuple,
    /// Placement of the flow.
    pub place: KnownQueue,
}

/// Placement of a flow, and how it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case", deny_unknown_fields)]
pub enum KnownQueue {
    /// Entry of the receiver's RSS table, computed from the key or learnt. The table maps it to a queue; that the
    /// device follows the table was not observed.
    Computed {
        /// Table entry.
        entry: u32,
    },
    /// Datagrams of the flow were sent, and the receiver counted them on this queue alone.
    Measured {
        /// Receive queue.
        queue: u32,
    },
}

impl FlowQueues {
    /// Returns whether the placement is known to be of another boot: this boot neither asked nor answered. Reboots of
    /// the other machine cannot be detected.
    pub fn is_of_other_boot(&self, boot_id: Option<&str>) -> bool {
        let known = self.boot_id.as_deref().filter(|known| !known.is_empty());
        let (Some(input), Some(boot_id)) = (known, boot_id.filter(|id| !id.is_empty())) else {
            return false;
        };
        let has_answered = self.peer_boot.is_some() && self.peer_boot == BootMark::of(boot_id);
        input != boot_id && !has_answered
    }

    /// RSS table entry of a flow at its receiver.
    pub fn entry_of(&self, tuple: Tuple) -> Option<u32> {
        self.of(tuple).find_map(|place| match place {
            KnownQueue::Computed { entry } => Some(entry),
            KnownQueue::Measured { .. } => None,
        })
    }

    /// Returns whether all datagrams of a flow were counted on queue `wanted`.
    pub fn is_measured_on(&self, tuple: Tuple, wanted: u32) -> bool {
        let mut queues = self.of(tuple).filter_map(|place| match place {
            KnownQueue::Measured { queue } => Some(queue),
            KnownQueue::Computed { .. } => None,
        });
        queues.next() == Some(wanted) && queues.all(|queue| queue == wanted)
    }

    fn of(&self, tuple: Tuple) -> impl Iterator<Item = KnownQueue> {
        let flows = self.flows.iter().filter(move |flow| flow.tuple == tuple);
        flows.map(|flow| flow.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_before_a_boot_is_of_another_one_at_both_ends() {
        let placement = FlowQueues {
            flows: Vec::new(),
            boot_id: Some(String::from("asker's")),
            peer_boot: BootMark::of("answerer's"),
        };
        for (boot_id, is_of_another) in [
            (Some("asker's"), false),
            (Some("answerer's"), false),
            (Some("next"), true),
            // Facts without a boot id.
            (None, false),
            (Some(""), false),
        ] {
            assert_eq!(
                placement.is_of_other_boot(boot_id),
                is_of_another,
                "{boot_id:?}"
            );
        }
        let unknown = FlowQueues::default();
        assert!(!unknown.is_of_other_boot(Some("next")));
        let older: FlowQueues = serde_json::from_str(r#"{"flows": []}"#).expect("as it was");
        assert_eq!(older, unknown);
    }
}
