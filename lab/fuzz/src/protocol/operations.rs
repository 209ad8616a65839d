//! Operations on the local participants.

use std::time::Duration;

use isolane_rtps::{
    ChangeKind, InstanceState, RejectReason, WriteError, WriteSample,
    limits::{MAX_DATA_PAYLOAD_BYTES, MAX_HEAD_BYTES},
};
use isolane_wire::guid::Guid;

use super::{
    states::{Seen, note_seen},
    world::{STRANGER, World},
};
use crate::{
    adversary, eavesdropper,
    input::{Input, Script},
};

/// Operation codes.
const ARRIVAL: u8 = 0;
const LIE: u8 = 1;
const TIME: u8 = 2;
pub(crate) const OPERATIONS: u8 = 14;

/// Times that pass, in microseconds: from less than a step to more than the longest accepted lease.
const TIMES_US: [u64; 10] = [
    10,
    500,
    1_000,
    5_000,
    20_000,
    100_000,
    1_000_000,
    2_000_000,
    11_000_000,
    301_000_000,
];

/// Writes, for seeds, the operation in which `bytes` arrive at a node.
pub(crate) fn arrival(script: &mut Script, to: u8, bytes: &[u8]) {
    script.put(&[ARRIVAL, to]).put_bytes(bytes);
}

/// Writes, for seeds, the operation in which time passes.
pub(crate) fn time(script: &mut Script, choice: u8) {
    script.put(&[TIME, choice]);
}

impl World {
    /// Executes the next operation of the input.
    pub(super) fn operate(&mut self, input: &mut Input<'_>) {
        match input.byte() % OPERATIONS {
            ARRIVAL => {
                let to = input.index(self.nodes.len());
                let bytes = input.bytes(usize::from(u16::MAX));
                self.arrive(STRANGER, to, bytes);
            }
            LIE => {
                let to = input.index(self.nodes.len());
                let lie = adversary::message(input, &self.cast());
                self.arrive(STRANGER, to, &lie);
            }
            TIME => {
                let time = input.pick(&TIMES_US);
                self.pass(Duration::from_micros(time));
            }
            3 => self.write(input),
            4 => self.take(input),
            5 => self.create(input, true),
            6 => self.create(input, false),
            7 => self.delete(input),
            8 => self.tamper(input),
            9 => {
                // The oldest datagram in flight arrives twice, or is lost.
                if let Some(flying) = self.flying.pop_front()
                    && input.flag()
                {
                    self.arrive(flying.from, flying.to, &flying.bytes);
                    self.arrive(flying.from, flying.to, &flying.bytes);
                }
            }
            10 => {
                let index = input.index(self.nodes.len());
                if input.byte() < 64 {
                    self.restart(index);
                }
            }
            11 => self.say_farewell(input),
            12 => self.settle(),
            _ => {
                let to = input.index(self.nodes.len());
                let lie = eavesdropper::message(input, &self.lines(to), self.now.as_nanos());
                if !lie.is_empty() {
                    let from = (to + 1) % self.nodes.len();
                    self.arrive(from, to, &lie);
                }
            }
        }
    }

    fn write(&mut self, input: &mut Input<'_>) {
        let now = self.now;
        let index = input.index(self.nodes.len());
        let which = input.byte();
        let key = input.byte() % 6;
        let kind = input.pick(&[
            ChangeKind::Alive,
            ChangeKind::Alive,
            ChangeKind::Alive,
            ChangeKind::Dispose,
            ChangeKind::Unregister,
        ]);
        let length = 8 + 4 * usize::from(input.byte()) * if input.flag() { 1 } else { 70 };
        let node = &mut self.nodes[index];
        if node.writers.is_empty() {
            return;
        }
        let writer = node.writers[usize::from(which) % node.writers.len()];
        let keyed = node
            .protocol
            .writer_data(writer)
            .is_some_and(|data| data.guid.entity.is_keyed());
        let sample = WriteSample {
            kind: if keyed { kind } else { ChangeKind::Alive },
            key_hash: keyed.then_some([key % 4; 16]),
            timestamp: node.protocol.timestamp(now),
        };
        let before = node
            .protocol
            .writer_ledger(writer)
            .map(|ledger| ledger.written);
        let written = if node.protocol.keeps_history(writer) {
            match node.protocol.reserve(writer, sample.key_hash, length) {
                Ok(slot) => {
                    let length = length.min(slot.len());
                    fill(&mut slot[..length], key);
                    let committed = node.protocol.commit(writer, &sample, length);
                    committed.map(drop)
                }
                Err(error) => Err(error),
            }
        } else {
            self.write_best_effort(index, writer, &sample, key, length)
        };
        if let Err(WriteError::HistoryFull) = written {
            note_seen(Seen::Refused);
        }
        let after = self.nodes[index].protocol.writer_ledger(writer);
        assert_eq!(
            after.map(|ledger| ledger.written),
            before.map(|before| before + u64::from(written.is_ok())),
            "written, {written:?}"
        );
    }

    fn write_best_effort(
        &mut self,
        index: usize,
        writer: isolane_rtps::WriterId,
        sample: &WriteSample,
        key: u8,
        length: usize,
    ) -> Result<(), WriteError> {
        self.with_buffer(|world, buffer| {
            let length = length.min(buffer.len() - MAX_HEAD_BYTES);
            let payload = MAX_HEAD_BYTES..MAX_HEAD_BYTES + length;
            fill(&mut buffer[payload.clone()], key);
            let protocol = &mut world.nodes[index].protocol;
            let datagram = protocol.write_best_effort(writer, sample, buffer, payload)?;
            super::check_sent(&buffer[datagram.clone()], protocol.guid_prefix());
            let to = protocol.destinations(writer).to_vec();
            world.send(index, &to, &buffer[datagram]);
            Ok(())
        })
    }

    fn take(&mut self, input: &mut Input<'_>) {
        let index = input.index(self.nodes.len());
        let which = input.byte();
        let count = input.byte() % 8;
        let reject = input.byte() == 255;
        let node = &mut self.nodes[index];
        if node.readers.is_empty() {
            return;
        }
        let reader = node.readers[usize::from(which) % node.readers.len()];
        for _ in 0..=count {
            let available = node.protocol.available(reader);
            let before = node.protocol.reader_ledger(reader);
            match node.protocol.sample(reader, 0) {
                Some(sample) => {
                    assert!(sample.payload.len() <= 70_000 && available > 0);
                    match sample.info.instance_state {
                        InstanceState::Alive => {}
                        InstanceState::NotAliveDisposed => note_seen(Seen::Disposed),
                        InstanceState::NotAliveNoWriters => note_seen(Seen::NoWriters),
                    }
                    if sample.payload.len() > MAX_DATA_PAYLOAD_BYTES {
                        note_seen(Seen::WholeSample);
                    }
                }
                None => assert_eq!(available, 0),
            }
            node.protocol.mark_read(reader, 0);
            node.protocol.remove_oldest(reader);
            let after = node.protocol.reader_ledger(reader);
            if let (Some(before), Some(after)) = (before, after) {
                let delivered = after.delivered - before.delivered;
                assert!(delivered <= 1, "one at a time");
            }
            if reject {
                node.protocol
                    .reject_delivered(reader, Guid::UNKNOWN, RejectReason::NotOfType);
            }
        }
    }

    fn delete(&mut self, input: &mut Input<'_>) {
        let now = self.now;
        let index = input.index(self.nodes.len());
        let which = usize::from(input.byte());
        let node = &mut self.nodes[index];
        if input.flag() && !node.writers.is_empty() {
            let writer = node.writers.remove(which % node.writers.len());
            node.protocol.delete_writer(now, writer);
            assert!(node.protocol.writer_ledger(writer).is_none());
        } else if !node.readers.is_empty() {
            let reader = node.readers.remove(which % node.readers.len());
            node.protocol.delete_reader(now, reader);
            assert!(node.protocol.reader_ledger(reader).is_none());
        }
    }

    /// Changes some bytes of a datagram in flight.
    fn tamper(&mut self, input: &mut Input<'_>) {
        let which = usize::from(input.byte());
        let changes = 1 + input.byte() % 4;
        let count = self.flying.len();
        for _ in 0..changes {
            let place = usize::from(input.any::<u16>());
            let value = input.byte();
            if count > 0 {
                let bytes = &mut self.flying[which % count].bytes;
                let place = place % bytes.len().max(1);
                if let Some(byte) = bytes.get_mut(place) {
                    *byte ^= value;
                }
            }
        }
    }

    /// Lets a participant announce its departure, and restarts it. Does nothing in three of four cases.
    fn say_farewell(&mut self, input: &mut Input<'_>) {
        let index = input.index(self.nodes.len());
        if input.byte() >= 64 {
            return;
        }
        self.with_buffer(|world, buffer| {
            let protocol = &mut world.nodes[index].protocol;
            let length = protocol.farewell(buffer);
            let to: Vec<_> = protocol.farewell_to().collect();
            world.send(index, &to, &buffer[..length]);
        });
        self.restart(index);
    }
}

/// Fills a payload with an encapsulation header, the key and constant bytes.
fn fill(payload: &mut [u8], key: u8) {
    payload.fill(0x5a);
    let head = [0, 1, 0, 0, key];
    let length = head.len().min(payload.len());
    payload[..length].copy_from_slice(&head[..length]);
}
