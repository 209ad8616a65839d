//! Target `protocol`: local participants in virtual time under arbitrary network and user behaviour.
//!
//! An input selects the number of local participants and their endpoints, then operations. Raw bytes, messages of
//! `adversary` and messages of `eavesdropper` arrive. Datagrams in flight are altered, duplicated or lost, and time
//! passes. Users write, take, create and delete. `World::check` examines every participant after each operation.

mod operations;
mod states;
mod world;

use std::fmt::Write as _;

use isolane_wire::{
    guid::GuidPrefix,
    message::{HEADER_BYTES, Header, Submessages},
};

pub(crate) use self::operations::{OPERATIONS, arrival, time};
pub use self::states::{Reached, reached};
use self::{
    states::{Seen, note_protocol, note_reader, note_seen, note_writer},
    world::{LIMITS, Node, World},
};
use crate::{input::Input, limits::MAX_OPERATIONS};

/// Runs operations on two or three local participants.
pub fn protocol(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut world = World::new(&mut input);
    world.check();
    for _ in 0..MAX_OPERATIONS {
        if input.is_empty() {
            break;
        }
        world.operate(&mut input);
        world.check();
    }
    world.finish();
}

impl World {
    /// Checks that ledgers balance, tables are within their limits, and every datagram was counted.
    fn check(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let protocol = &node.protocol;
            let counters = protocol.counters();
            assert_eq!(
                counters.messages + counters.malformed_messages,
                node.received,
                "node {index}: datagrams received, {counters:?}"
            );
            note_protocol(counters);
            let participants = protocol.remote_participants().count();
            assert!(participants <= usize::from(LIMITS.participants));
            let endpoints = protocol.remote_endpoints().count();
            assert!(endpoints <= usize::from(LIMITS.remote_endpoints));
            if participants > 0 {
                note_seen(Seen::Participant);
            }
            if endpoints > 0 {
                note_seen(Seen::Endpoint);
            }
            assert_eq!(protocol.local_writers().count(), node.writers.len());
            assert_eq!(protocol.local_readers().count(), node.readers.len());
            let mut matches = 0;
            for &writer in &node.writers {
                let ledger = protocol.writer_ledger(writer).expect("it exists");
                assert!(ledger.balances(), "node {index}: {ledger:?}");
                matches += protocol.matched_readers(writer);
                note_writer(&ledger);
                let _ = protocol.has_room(writer, None);
                let readers = protocol.matched_readers(writer);
                if readers > 0 {
                    note_seen(Seen::MatchedReader);
                }
                if protocol.all_acknowledged(writer) && readers > 0 && ledger.sent > 0 {
                    note_seen(Seen::Acknowledged);
                }
            }
            assert!(matches <= usize::from(LIMITS.matches), "{matches} matches");
            let mut matches = 0;
            for &reader in &node.readers {
                let ledger = protocol.reader_ledger(reader).expect("it exists");
                assert!(ledger.balances(), "node {index}: {ledger:?}");
                matches += protocol.matched_writers(reader);
                note_reader(&ledger);
                if protocol.matched_writers(reader) > 0 {
                    note_seen(Seen::MatchedWriter);
                }
                let done = protocol.matched_writer_progress(reader);
                for (guid, done) in done {
                    assert!(done.get() >= 0, "{guid} is done with {done}");
                }
            }
            assert!(matches <= usize::from(LIMITS.matches), "{matches} matches");
        }
    }
}

/// Checks that a sent datagram is a complete, valid message of the participant with this prefix.
fn check_sent(datagram: &[u8], prefix: GuidPrefix) {
    let header = Header::parse(datagram).expect("a participant sends RTPS");
    assert_eq!(header.prefix, prefix);
    let mut count = 0;
    for submessage in Submessages::new(datagram, HEADER_BYTES) {
        if let Err(error) = submessage {
            panic!("a participant sends what it would not read: {error} in {datagram:02x?}");
        }
        count += 1;
    }
    assert!(count > 0, "an empty message");
}

/// Formats the state of the local participants.
fn describe(nodes: &[Node]) -> String {
    let mut text = String::new();
    for (index, node) in nodes.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "node {index}: {:?}", node.protocol.counters());
        for &writer in &node.writers {
            let _ = writeln!(
                text,
                "  {writer:?} {:?}",
                node.protocol.writer_ledger(writer)
            );
        }
        for &reader in &node.readers {
            let _ = writeln!(
                text,
                "  {reader:?} {:?}",
                node.protocol.reader_ledger(reader)
            );
        }
    }
    text
}
