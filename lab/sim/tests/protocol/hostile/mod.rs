//! Hostile peers: what they can do, what they cannot do, and which counters record it.
//!
//! `docs/explanation/threats.md` lists the attacks for users, each with its test; [`page`] checks that these exist.
//!
//! # Attacker model
//!
//! An attacker can send any datagram to any port of a participant, with any source address, in the name of any
//! participant whose GUID it has seen or invented, as often as it likes.
//!
//! # Guarantees
//!
//! - Nothing panics, and every ledger balances ([`noise`]).
//! - Every table stays within its limit, nothing is allocated, and a datagram files a bounded number of
//!   steps ([`floods`], `tests/hostile_memory.rs`).
//! - Matched endpoints continue: reliable KEEP_ALL topics deliver everything ([`floods`]).
//! - Announcements of others are processed, however fast the attacker announces itself, its endpoints or invented
//!   participants ([`announcers`]).
//! - An address from which a participant has not answered gets no samples, and at most three bytes for each received
//!   ([`amplification`]). A participant that answers cannot have samples sent to others ([`third_parties`]).
//!
//! # Remaining attacks without authentication
//!
//! An attacker that knows a participant's GUID, as every host in its network does, can send messages in its name. They
//! are accepted, and their effects are counted ([`forgery`]):
//!
//! - A forged GAP or HEARTBEAT of a matched writer makes its readers skip samples: `lost`.
//! - Forged DATA of a matched writer is delivered in place of the sample with its number. The true sample is a
//!   `duplicate`.
//! - A forged ACKNACK of a matched reader makes the writer release samples that the reader lacks: a GAP, `lost` at the
//!   reader. A reader that acknowledges nothing blocks a KEEP_ALL writer as long as it is matched.
//! - A forged dispose, or a zero lease, removes a participant from all others until it announces itself again.
//! - Another address in a forged announcement redirects the participant's traffic to that address.
//! - Answers with a forged source address have samples sent to that address, until the lease of the announced
//!   participant ends.
//! - Participants that renew their leases keep the tables full. New ones are refused, and counted, until there is room.

mod amplification;
mod announcers;
mod floods;
mod forgery;
mod jumps;
mod noise;
mod page;
mod third_parties;

use isolane_sim::{NodeId, ReaderHandle, World, WriterHandle};
use isolane_wire::{
    BufferTooSmall,
    guid::EntityId,
    message::{Header, MessageWriter},
};

use crate::{
    submessages::{gap, heartbeat, set},
    support::Pair,
};

/// A matched pair, whose GUIDs an attacker uses.
struct Forged {
    world: World,
    nodes: [NodeId; 2],
    /// Host of the attacker; `None` to send from the address of the named participant.
    attacker: Option<NodeId>,
    writer: WriterHandle,
    reader: ReaderHandle,
}

impl Forged {
    fn of((world, (a, b), writer, reader): Pair) -> Self {
        Self {
            world,
            nodes: [a, b],
            attacker: None,
            writer,
            reader,
        }
    }

    fn writer_entity(&self) -> EntityId {
        self.world.writer_guid(self.writer).entity
    }

    /// Sends a datagram in the name of one of the two participants to the other.
    fn forge(
        &mut self,
        of: usize,
        fill: impl FnOnce(&mut MessageWriter<'_>) -> Result<(), BufferTooSmall>,
    ) {
        let mut buffer = [0; 256];
        let header = Header::new(self.world.protocol(self.nodes[of]).guid_prefix());
        let mut message = MessageWriter::new(&mut buffer, &header).expect("it fits");
        fill(&mut message).expect("it fits");
        let length = message.len();
        let to = self.nodes[1 - of].discovery_locator();
        let from = self.attacker.unwrap_or(self.nodes[of]).discovery_locator();
        self.world.inject(to, from, &buffer[..length]);
    }

    /// Sends a HEARTBEAT in the writer's name.
    fn heartbeat(&mut self, range: (i64, i64), count: i32) {
        let heartbeat = heartbeat(self.writer_entity(), range, count);
        self.forge(0, |message| message.heartbeat(&heartbeat).map(drop));
    }

    /// Sends a GAP in the writer's name.
    fn gap(&mut self, start: i64, end: i64) {
        let gap = gap(self.writer_entity(), start, set(end, []));
        self.forge(0, |message| message.gap(&gap).map(drop));
    }
}
