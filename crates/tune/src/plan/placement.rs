//! What is known of where flows land.

use serde::{Deserialize, Serialize};

use crate::steer::Tuple;
use crate::verify::BootMark;

/// What is known of where flows land at their receivers, both ways. Empty: nothing. It is read from
/// whatever tells flows: what else stands there (how it was measured) is passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The flows of which something is known.
    pub flows: Vec<PlacedFlow>,
    /// The run of the machine that asked (the kernel's number of it): devices may take another key for
    /// their hash in the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The run of the machine that answered, where it told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_boot: Option<BootMark>,
}

/// Where one flow lands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacedFlow {
    /// The flow.
    pub tuple: Tuple,
    /// What is known.
    pub place: Place,
}

/// Where a flow lands, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Place {
    /// It picks this entry of its receiver's table: computed from the key, or learnt. Which queue that
    /// is follows from the table; that the device does as it says was not seen.
    Computed {
        /// The entry.
        entry: u32,
    },
    /// Datagrams of it were sent, and the receiver counted them on this queue, and on no other.
    Measured {
        /// The queue.
        queue: u32,
    },
}

impl Placement {
    /// Whether this is known not to be of that run of the machine: neither asked from it nor answered. What
    /// became of the other machine since nobody can tell.
    pub fn is_of_another_boot(&self, boot_id: Option<&str>) -> bool {
        let known = self.boot_id.as_deref().filter(|known| !known.is_empty());
        let (Some(asked), Some(boot_id)) = (known, boot_id.filter(|id| !id.is_empty())) else {
            return false;
        };
        let has_answered = self.peer_boot.is_some() && self.peer_boot == BootMark::of(boot_id);
        asked != boot_id && !has_answered
    }

    /// The entry that a flow picks at its receiver.
    pub fn entry_of(&self, tuple: Tuple) -> Option<u32> {
        self.of(tuple).find_map(|place| match place {
            Place::Computed { entry } => Some(entry),
            Place::Measured { .. } => None,
        })
    }

    /// Whether datagrams of a flow were counted on this queue, and none of them on another.
    pub fn is_measured_on(&self, tuple: Tuple, wanted: u32) -> bool {
        let mut queues = self.of(tuple).filter_map(|place| match place {
            Place::Measured { queue } => Some(queue),
            Place::Computed { .. } => None,
        });
        queues.next() == Some(wanted) && queues.all(|queue| queue == wanted)
    }

    fn of(&self, tuple: Tuple) -> impl Iterator<Item = Place> {
        let flows = self.flows.iter().filter(move |flow| flow.tuple == tuple);
        flows.map(|flow| flow.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_before_a_boot_is_of_another_one_at_both_ends() {
        let placement = Placement {
            flows: Vec::new(),
            boot_id: Some(String::from("asker's")),
            peer_boot: BootMark::of("answerer's"),
        };
        for (boot_id, is_of_another) in [
            (Some("asker's"), false),
            (Some("answerer's"), false),
            (Some("next"), true),
            // Facts that do not say so.
            (None, false),
            (Some(""), false),
        ] {
            assert_eq!(
                placement.is_of_another_boot(boot_id),
                is_of_another,
                "{boot_id:?}"
            );
        }
        let unknown = Placement::default();
        assert!(!unknown.is_of_another_boot(Some("next")));
        let older: Placement = serde_json::from_str(r#"{"flows": []}"#).expect("as it was");
        assert_eq!(older, unknown);
    }
}
