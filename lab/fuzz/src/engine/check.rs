//! Invariants of every engine, checked after each operation.

use std::fmt::Write as _;

use isolane_wire::{
    guid::GuidPrefix,
    rtps::{HEADER_BYTES, Header, Submessages},
};

use super::{
    states::{Seen, note_engine, note_reader, note_seen, note_writer},
    world::{LIMITS, Node, World},
};

impl World {
    /// Checks that ledgers balance, tables respect their limits, and every datagram was counted.
    pub(super) fn check(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            let engine = &node.engine;
            let counters = engine.counters();
            assert_eq!(
                counters.messages + counters.malformed_messages,
                node.received,
                "node {index}: datagrams received, {counters:?}"
            );
            note_engine(counters);
            let participants = engine.remote_participants().count();
            assert!(participants <= usize::from(LIMITS.participants));
            let endpoints = engine.remote_endpoints().count();
            assert!(endpoints <= usize::from(LIMITS.remote_endpoints));
            if participants > 0 {
                note_seen(Seen::Participant);
            }
            if endpoints > 0 {
                note_seen(Seen::Endpoint);
            }
            assert_eq!(engine.local_writers().count(), node.writers.len());
            assert_eq!(engine.local_readers().count(), node.readers.len());
            let mut matches = 0;
            for &writer in &node.writers {
                let ledger = engine.writer_ledger(writer).expect("it exists");
                assert!(ledger.balances(), "node {index}: {ledger:?}");
                matches += engine.matched_readers(writer);
                note_writer(&ledger);
                let _ = engine.has_room(writer, None);
                let readers = engine.matched_readers(writer);
                if readers > 0 {
                    note_seen(Seen::MatchedReader);
                }
                if engine.all_acknowledged(writer) && readers > 0 && ledger.sent > 0 {
                    note_seen(Seen::Acknowledged);
                }
            }
            assert!(matches <= usize::from(LIMITS.matches), "{matches} matches");
            let mut matches = 0;
            for &reader in &node.readers {
                let ledger = engine.reader_ledger(reader).expect("it exists");
                assert!(ledger.balances(), "node {index}: {ledger:?}");
                matches += engine.matched_writers(reader);
                note_reader(&ledger);
                if engine.matched_writers(reader) > 0 {
                    note_seen(Seen::MatchedWriter);
                }
                let done = engine.matched_writer_progress(reader);
                for (guid, done) in done {
                    assert!(done.get() >= 0, "{guid} is done with {done}");
                }
            }
            assert!(matches <= usize::from(LIMITS.matches), "{matches} matches");
        }
    }
}

/// Checks that a sent datagram is a complete, valid message of its engine.
pub(super) fn sent(datagram: &[u8], prefix: GuidPrefix) {
    let header = Header::parse(datagram).expect("an engine sends RTPS");
    assert_eq!(header.prefix, prefix);
    let mut count = 0;
    for submessage in Submessages::new(datagram, HEADER_BYTES) {
        if let Err(error) = submessage {
            panic!("an engine sends what it would not read: {error} in {datagram:02x?}");
        }
        count += 1;
    }
    assert!(count > 0, "an empty message");
}

/// State of the engines as text.
pub(super) fn describe(nodes: &[Node]) -> String {
    let mut text = String::new();
    for (index, node) in nodes.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "node {index}: {:?}", node.engine.counters());
        for &writer in &node.writers {
            let _ = writeln!(text, "  {writer:?} {:?}", node.engine.writer_ledger(writer));
        }
        for &reader in &node.readers {
            let _ = writeln!(text, "  {reader:?} {:?}", node.engine.reader_ledger(reader));
        }
    }
    text
}
