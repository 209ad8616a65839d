//! Users of writers, who write now, as soon as there is room, or periodically.

use std::time::Duration;

use isolane_rtps::{WriteError, limits::MAX_HEAD_BYTES};
use isolane_wire::sequence::SequenceNumber;

use crate::{
    endpoints::WriterHandle, node::NodeId, queue::Event, sample::Sample, user::Written,
    world::World,
};

impl World {
    /// Writes a sample once, now.
    ///
    /// # Errors
    /// Those of the local participant.
    pub fn write(
        &mut self,
        writer: WriterHandle,
        sample: Sample,
    ) -> Result<SequenceNumber, WriteError> {
        let (node, written) = self.try_write(writer.0, sample);
        self.settle(node);
        written
    }

    /// Writes samples in order, each as soon as there is room: a refused write is retried when the participant reports
    /// room ([`ROOM`](isolane_rtps::WriterStatus::ROOM)).
    pub fn enqueue(&mut self, writer: WriterHandle, samples: impl IntoIterator<Item = Sample>) {
        self.writers[writer.0].backlog.extend(samples);
        self.write_backlog(writer.0);
        self.settle(self.writers[writer.0].node);
    }

    /// Writes one sample each `period` from now on, as [`Self::enqueue`].
    pub fn publish(
        &mut self,
        writer: WriterHandle,
        period: Duration,
        samples: impl IntoIterator<Item = Sample>,
    ) {
        self.writers[writer.0].planned.extend(samples);
        let writer = writer.0;
        self.schedule(self.now, Event::Publish { writer, period });
    }

    /// Changes that a writer has accepted, in order.
    #[must_use]
    pub fn written(&self, writer: WriterHandle) -> &[Written] {
        &self.writers[writer.0].written
    }

    /// Number of samples that wait for room, or for their time.
    #[must_use]
    pub fn unwritten(&self, writer: WriterHandle) -> usize {
        let record = &self.writers[writer.0];
        record.backlog.len() + record.planned.len()
    }

    /// Number of writes that found no room.
    #[must_use]
    pub fn refused(&self, writer: WriterHandle) -> u64 {
        self.writers[writer.0].refused
    }

    fn try_write(
        &mut self,
        writer: usize,
        sample: Sample,
    ) -> (NodeId, Result<SequenceNumber, WriteError>) {
        let now = self.now;
        let record = &self.writers[writer];
        let (node, id, is_keyed) = (record.node, record.id, record.is_keyed);
        let stamped = now + self.nodes[node.0].config.stamps_ahead;
        let protocol = self.protocol_mut(node);
        let change = sample.to_write(is_keyed, protocol.timestamp(stamped));
        let payload = sample.payload();
        let is_kept = protocol.keeps_history(id);
        let at_once = is_kept && protocol.sends_at_once(id, payload.len());
        let written = if is_kept && !at_once {
            match protocol.reserve(id, change.key_hash, payload.len()) {
                Ok(slot) => {
                    let fits = payload.len().min(slot.len());
                    slot[..fits].copy_from_slice(&payload[..fits]);
                    protocol.commit(id, &change, payload.len())
                }
                Err(error) => Err(error),
            }
        } else {
            let mut frame = vec![0; MAX_HEAD_BYTES];
            frame.extend(payload);
            let place = MAX_HEAD_BYTES..frame.len();
            match protocol.write_best_effort(id, &change, &mut frame, place) {
                Ok(datagram) => {
                    let to = protocol.destinations(id).to_vec();
                    let ledger = protocol.writer_ledger(id).expect("it exists");
                    self.send(node, &frame[datagram], &to);
                    Ok(SequenceNumber(ledger.written as i64))
                }
                Err(error) => Err(error),
            }
        };
        if let Ok(sequence) = written {
            self.writers[writer].written.push(Written {
                at: now,
                sequence,
                sample,
            });
        }
        (node, written)
    }

    pub(crate) fn write_backlog(&mut self, writer: usize) {
        while let Some(&sample) = self.writers[writer].backlog.front() {
            match self.try_write(writer, sample).1 {
                Ok(_) => {
                    self.writers[writer].backlog.pop_front();
                }
                Err(WriteError::HistoryFull | WriteError::InstancesFull) => {
                    self.writers[writer].refused += 1;
                    return;
                }
                Err(error) => panic!("seed {}: {sample:?} was not written: {error}", self.seed),
            }
        }
    }

    pub(crate) fn publish_next(&mut self, writer: usize, period: Duration) {
        if !self.writer_exists(writer) {
            return;
        }
        let record = &mut self.writers[writer];
        let Some(sample) = record.planned.pop_front() else {
            return;
        };
        record.backlog.push_back(sample);
        let node = record.node;
        self.write_backlog(writer);
        self.schedule(self.now + period, Event::Publish { writer, period });
        self.settle(node);
    }

    pub(crate) fn writer_exists(&self, writer: usize) -> bool {
        let record = &self.writers[writer];
        let node = &self.nodes[record.node.0];
        !record.is_deleted && node.protocol.is_some() && node.incarnation == record.incarnation
    }
}
