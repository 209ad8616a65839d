//! Static descriptions of a world's participants. Nodes may have different ones, to test disagreement.

use isolane_rtps::{Announces, EndpointKind, StaticParticipant};

use crate::{node::NodeId, topic::Topic};

/// Described participants, each with the topics it writes and reads.
#[derive(Debug, Clone, Default)]
pub struct Description {
    participants: Vec<Described>,
}

#[derive(Debug, Clone)]
struct Described {
    node: NodeId,
    announces: Announces,
    writes: Vec<Topic>,
    reads: Vec<Topic>,
}

impl Description {
    /// Creates an empty description.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the participant of a node.
    #[must_use]
    pub fn with(
        mut self,
        node: NodeId,
        announces: Announces,
        writes: &[Topic],
        reads: &[Topic],
    ) -> Self {
        self.participants.push(Described {
            node,
            announces,
            writes: writes.to_vec(),
            reads: reads.to_vec(),
        });
        self
    }

    /// Description of a node's participant.
    #[must_use]
    pub fn of(&self, node: NodeId) -> Option<StaticParticipant> {
        let mut all = self.participants.iter();
        all.find(|one| one.node == node).map(Described::participant)
    }

    /// Descriptions of all other participants.
    pub(crate) fn peers_of(&self, node: NodeId) -> impl Iterator<Item = StaticParticipant> + '_ {
        let others = self.participants.iter().filter(move |one| one.node != node);
        others.map(Described::participant)
    }
}

impl Described {
    fn participant(&self) -> StaticParticipant {
        let name = format!("node {}", self.node.0);
        let mut described = StaticParticipant::new(&name, self.node.address(), self.announces);
        for (kind, topics) in [
            (EndpointKind::Writer, &self.writes),
            (EndpointKind::Reader, &self.reads),
        ] {
            for topic in topics {
                let config = topic.endpoint(self.node, kind == EndpointKind::Reader);
                let added = described.add(kind, &config);
                added.expect("endpoints of a description have names of their own");
            }
        }
        described
    }
}
