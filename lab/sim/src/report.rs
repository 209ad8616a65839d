//! Balance checks of the ledgers, and a description of the world for failure messages.

use std::fmt::Write;

use crate::{node::NodeId, world::World};

impl World {
    /// Describes the first ledger that does not balance; `None` if all do.
    ///
    /// Checks the link's ledger, the ledgers of every existing writer and reader, and the samples received by users
    /// against the delivered count. For each reader, the number of sequence numbers processed from its writers must
    /// equal the number that its ledger counts.
    #[must_use]
    pub fn imbalance(&self) -> Option<String> {
        if !self.ledger.balances() {
            return Some(format!(
                "the link's ledger does not balance: {:?}",
                self.ledger
            ));
        }
        let writers = (0..self.writers.len()).filter(|&writer| self.writer_exists(writer));
        let readers = (0..self.readers.len()).filter(|&reader| self.reader_exists(reader));
        writers
            .filter_map(|writer| self.writer_imbalance(writer))
            .chain(readers.filter_map(|reader| self.reader_imbalance(reader)))
            .next()
    }

    fn writer_imbalance(&self, writer: usize) -> Option<String> {
        let record = &self.writers[writer];
        let ledger = self.protocol(record.node).writer_ledger(record.id)?;
        // Ends of coherent sets have sequence numbers, too.
        let is_written = ledger.written == record.written.len() as u64 + ledger.set_ends;
        (!ledger.balances() || !is_written).then(|| {
            let accepted = record.written.len();
            format!("writer {writer}: {accepted} were accepted, the ledger says {ledger:?}")
        })
    }

    fn reader_imbalance(&self, reader: usize) -> Option<String> {
        let record = &self.readers[reader];
        let protocol = self.protocol(record.node);
        let ledger = protocol.reader_ledger(record.id)?;
        let taken = record
            .received
            .iter()
            .filter(|taken| taken.was_sent())
            .count();
        if !ledger.balances() || ledger.delivered != taken as u64 {
            return Some(format!(
                "reader {reader}: {taken} were taken, the ledger says {ledger:?}"
            ));
        }
        if record.matches.has_lost_any() {
            // The sequence numbers of writers that are no longer matched are only in the ledger.
            return None;
        }
        let progress = protocol.matched_writer_progress(record.id);
        // A hostile writer can announce any number, so the sum may wrap.
        let done = progress.fold(0u64, |sum, (_, done)| sum.wrapping_add(done.get() as u64));
        (done != ledger.accounted.wrapping_add(ledger.skipped)).then(|| {
            format!("reader {reader}: is done with {done} numbers, the ledger says {ledger:?}")
        })
    }

    pub(crate) fn assert_writer_balanced(&self, writer: usize) {
        let imbalance = self.writer_imbalance(writer);
        assert_eq!(imbalance, None, "seed {}", self.seed);
    }

    pub(crate) fn assert_reader_balanced(&self, reader: usize) {
        let imbalance = self.reader_imbalance(reader);
        assert_eq!(imbalance, None, "seed {}", self.seed);
    }

    /// Checks the ledgers of a node before it stops.
    pub(crate) fn assert_node_balanced(&self, node: NodeId) {
        for writer in (0..self.writers.len()).filter(|&writer| self.writer_exists(writer)) {
            if self.writers[writer].node == node {
                self.assert_writer_balanced(writer);
            }
        }
        for reader in (0..self.readers.len()).filter(|&reader| self.reader_exists(reader)) {
            if self.readers[reader].node == node {
                self.assert_reader_balanced(reader);
            }
        }
    }

    /// Describes the current state for failure messages.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut text = format!("after {:?}: {:?}\n", self.elapsed(), self.ledger);
        for (id, node) in self.nodes.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = match &node.protocol {
                None => writeln!(text, "node {id}: down"),
                Some(protocol) => {
                    let peers = protocol.remote_participants().count();
                    writeln!(text, "node {id}: {peers} peers, {:?}", protocol.counters())
                }
            };
        }
        for (writer, record) in self.writers.iter().enumerate() {
            let node = record.node.0;
            let _ = match self.writer_exists(writer) {
                false => writeln!(text, "writer {writer} on node {node}: gone"),
                true => {
                    let protocol = self.protocol(record.node);
                    writeln!(
                        text,
                        "writer {writer} on node {node}: {} readers, {} wait for room, {:?}",
                        protocol.matched_readers(record.id),
                        record.backlog.len(),
                        protocol.writer_ledger(record.id),
                    )
                }
            };
        }
        for (reader, record) in self.readers.iter().enumerate() {
            let node = record.node.0;
            let _ = match self.reader_exists(reader) {
                false => writeln!(text, "reader {reader} on node {node}: gone"),
                true => {
                    let protocol = self.protocol(record.node);
                    writeln!(
                        text,
                        "reader {reader} on node {node}: {} taken, {:?}, done with {:?}",
                        record.received.len(),
                        protocol.reader_ledger(record.id),
                        protocol
                            .matched_writer_progress(record.id)
                            .map(|(guid, done)| format!("{guid} {done}"))
                            .collect::<Vec<_>>(),
                    )
                }
            };
        }
        text
    }
}
