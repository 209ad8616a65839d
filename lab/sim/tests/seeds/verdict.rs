//! Checks of a system after its faults have ended.

use std::collections::BTreeSet;

use isolane_sim::{NodeId, Received};
use isolane_wire::{guid::Guid, time::Instant};

use crate::{
    ordeal::{NODES, Ordeal, Plant, ReaderLife, WriterLife},
    topics::{KINDS, Kind},
};

impl Ordeal {
    /// Checks that each participant knows exactly the existing participants and endpoints, and that each endpoint
    /// matches exactly the existing ones of its topic.
    pub(crate) fn assert_nothing_is_stale(&mut self) {
        let world = &self.world;
        let seed = world.seed();
        for kind in KINDS {
            let (writers, readers) = (self.live_writers(kind), self.live_readers(kind));
            let readers_there: BTreeSet<Guid> =
                readers.iter().map(|&it| world.reader_guid(it)).collect();
            let writers_there: BTreeSet<Guid> =
                writers.iter().map(|&it| world.writer_guid(it)).collect();
            for &writer in &writers {
                let matched: BTreeSet<Guid> = world.matched_reader_guids(writer).collect();
                assert_eq!(matched, readers_there, "seed {seed}: readers of {writer:?}");
                self.tally.matches += matched.len() as u64;
            }
            for &reader in &readers {
                let matched: BTreeSet<Guid> = world.matched_writer_guids(reader).collect();
                assert_eq!(matched, writers_there, "seed {seed}: writers of {reader:?}");
            }
        }
        let of_node = |node| {
            let writers = self.writers.iter().filter(|life| !life.is_gone);
            let readers = self.readers.iter().filter(|life| !life.is_gone);
            let nodes = writers
                .map(|life| life.node)
                .chain(readers.map(|life| life.node));
            nodes.filter(|&of| of == node).count()
        };
        let nodes = || (0..NODES).map(NodeId);
        for node in nodes() {
            let protocol = world.protocol(node);
            let others = nodes().filter(|&other| other != node);
            let there: BTreeSet<_> = others
                .clone()
                .map(|other| world.protocol(other).guid_prefix())
                .collect();
            let known: BTreeSet<_> = protocol
                .remote_participants()
                .map(|peer| peer.data.guid.prefix)
                .collect();
            assert_eq!(
                known, there,
                "seed {seed}: participants that {node:?} knows"
            );
            let endpoints: usize = others.map(of_node).sum();
            let known = protocol.remote_endpoints().count();
            assert_eq!(
                known, endpoints,
                "seed {seed}: endpoints that {node:?} knows"
            );
        }
    }

    /// Checks all pairs of a writer and a reader that ever existed.
    pub(crate) fn judge(&mut self) {
        let (writers, readers) = (self.writers.clone(), self.readers.clone());
        let mut forgets = self.plant == Plant::ForgetsOneSample;
        for reader in &readers {
            for writer in writers.iter().filter(|it| it.kind == reader.kind) {
                let mut came = self.came(reader, writer);
                let are_there = !reader.is_gone && !writer.is_gone;
                if forgets && are_there && reader.kind == Kind::Journal && !came.is_empty() {
                    came.remove(0);
                    forgets = false;
                }
                self.assert_once_and_in_order(reader, writer, &came);
                if are_there {
                    self.assert_all_that_is_owed(reader, writer, &came);
                }
            }
            self.tally.late_readers += u64::from(reader.is_late);
        }
    }

    /// Changes that a reader got from a writer, in order. A writer that had the same GUID before or after is
    /// distinguished by time.
    fn came(&self, reader: &ReaderLife, writer: &WriterLife) -> Vec<Received> {
        let guid = self.world.writer_guid(writer.handle);
        let namesakes = self.writers.iter().filter(|other| {
            self.world.writer_guid(other.handle) == guid && other.created > writer.created
        });
        let next = namesakes.map(|other| other.created).min();
        let lived = |at: Instant| at >= writer.created && next.is_none_or(|next| at < next);
        let received = self.world.received(reader.handle).iter();
        received
            .filter(|received| received.was_sent() && received.info.writer == guid)
            .filter(|received| lived(received.info.received))
            .cloned()
            .collect()
    }

    /// Checks that received samples equal the written ones, and that within a match none comes twice or out of order.
    fn assert_once_and_in_order(
        &self,
        reader: &ReaderLife,
        writer: &WriterLife,
        came: &[Received],
    ) {
        let seed = self.world.seed();
        let written = self.world.written(writer.handle);
        let guid = self.world.writer_guid(writer.handle);
        let matches = self.world.matches_of_reader(reader.handle);
        let ended = |at: Instant| {
            let ends = matches.iter().filter(|it| !it.begins && it.peer == guid);
            ends.filter(|end| end.at <= at).count()
        };
        let mut last = None;
        for received in came {
            let number = received.info.sequence;
            let sent = written.get((number.get() - 1) as usize);
            assert_eq!(
                received.sample(),
                sent.map(|sent| sent.sample),
                "seed {seed}: {reader:?} was handed as #{number} of {writer:?} what that never wrote"
            );
            let place = (ended(received.info.received), number);
            assert!(
                last.is_none_or(|last| last < place),
                "seed {seed}: {reader:?} was handed #{number} of {writer:?} twice, or out of order: {last:?}, {place:?}"
            );
            last = Some(place);
        }
    }

    /// Checks that an existing reader has all samples that a writer owes it: all of a journal, and those of any
    /// KEEP_ALL writer since the notification of the match. The last sample of each instance was waited for before.
    fn assert_all_that_is_owed(
        &mut self,
        reader: &ReaderLife,
        writer: &WriterLife,
        came: &[Received],
    ) {
        if !writer.kind.keeps_all() {
            return;
        }
        let seed = self.world.seed();
        let guid = self.world.reader_guid(reader.handle);
        let matches = self.world.matches_of_writer(writer.handle).iter();
        let last = matches.rev().find(|change| change.peer == guid);
        let last = last.expect("they are matched");
        assert!(last.begins, "seed {seed}: {writer:?} has lost {reader:?}");
        let has_all = writer.kind.has_history();
        let came: BTreeSet<_> = came.iter().map(|received| received.info.sequence).collect();
        let written = self.world.written(writer.handle).iter();
        for written in written.filter(|written| has_all || written.at > last.at) {
            assert!(
                came.contains(&written.sequence),
                "seed {seed}: {reader:?} lacks #{} of {writer:?}",
                written.sequence
            );
            self.tally.owed += 1;
        }
    }
}
