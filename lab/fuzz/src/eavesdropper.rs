//! Adversarial messages of an eavesdropper. They are in the name of one end of an existing match, with sequence numbers
//! near those that the other end expects. So they reach a reader's window, the fragments of a sample, and a writer's
//! history. The messages of `adversary` rarely do.

use isolane_wire::{
    BufferTooSmall,
    guid::Guid,
    message::{
        AckNack, DataFragPrefix, DataPrefix, Gap, Header, Heartbeat, HeartbeatFrag, MessageWriter,
        NackFrag, PayloadKind, StatusInfo,
    },
    sequence::{FragmentNumberSet, SequenceNumber, SequenceNumberSet},
    time::Timestamp,
};

use crate::input::Input;

/// Maximum length of a message in bytes: a few fragments.
const MESSAGE_BYTES: usize = 8192;
/// Maximum number of submessages in a message, or of series of fragments.
const MAX_PARTS: usize = 4;
/// Fragment sizes: the smallest accepted one, isolane's, and one of another implementation.
const FRAGMENT_BYTES: [u16; 3] = [512, 1312, 1344];
/// Offsets of a timestamp from the present time, in milliseconds.
const OFFSETS_MS: [i64; 6] = [0, -10, -50, -10_000, 50, 1 << 40];

/// Match of a writer and a reader, as known to an eavesdropper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) writer: Guid,
    pub(crate) reader: Guid,
    /// Sequence number that the reader expects next, or that it has not acknowledged.
    pub(crate) next: i64,
    /// Whether the reader is under test and the adversary acts as the writer.
    pub(crate) is_to_reader: bool,
}

impl Line {
    /// Chooses a sequence number near `next`.
    fn near(&self, input: &mut Input<'_>) -> SequenceNumber {
        let near = i64::from(input.byte() % 8) - 2;
        SequenceNumber(self.next.saturating_add(near).max(1))
    }
}

/// Composes a message on one of these matches; empty if there are no matches.
pub(crate) fn message(input: &mut Input<'_>, lines: &[Line], now_ns: u64) -> Vec<u8> {
    let place = input.index(lines.len());
    let Some(line) = lines.get(place) else {
        return Vec::new();
    };
    let speaker = if line.is_to_reader {
        line.writer
    } else {
        line.reader
    };
    let mut buffer = vec![0; MESSAGE_BYTES];
    let Ok(mut message) = MessageWriter::new(&mut buffer, &Header::new(speaker.prefix)) else {
        return Vec::new();
    };
    let parts = 1 + input.index(MAX_PARTS);
    for _ in 0..parts {
        // Submessages that do not fit are omitted.
        let _ = if line.is_to_reader {
            as_writer(input, line, now_ns, &mut message)
        } else {
            as_reader(input, line, &mut message)
        };
    }
    let length = message.len();
    buffer.truncate(length);
    buffer
}

/// Chooses the count of a HEARTBEAT or ACKNACK, which is usually a new one.
fn count(input: &mut Input<'_>) -> i32 {
    i32::from(input.byte()) << 8
}

fn as_writer(
    input: &mut Input<'_>,
    line: &Line,
    now_ns: u64,
    message: &mut MessageWriter<'_>,
) -> Result<(), BufferTooSmall> {
    let (reader, writer) = (line.reader.entity, line.writer.entity);
    match input.byte() % 8 {
        0 | 1 => {
            let offset_ms = input.pick(&OFFSETS_MS);
            let stamp_ns = now_ns.saturating_add_signed(offset_ms * 1_000_000);
            let head = DataPrefix {
                reader,
                writer,
                sequence: line.near(input),
                key_hash: None,
                status: None,
                payload: PayloadKind::Data,
            };
            let payload = sample(input, 16);
            let stamped = message.info_timestamp(Timestamp::from_nanos(stamp_ns))?;
            stamped.data(&head, &payload).map(drop)
        }
        2 => {
            let head = DataPrefix {
                reader,
                writer,
                sequence: line.near(input),
                key_hash: None,
                status: Some(StatusInfo {
                    disposed: input.flag(),
                    unregistered: input.flag(),
                }),
                payload: PayloadKind::Key,
            };
            let key = sample(input, 8);
            message.data(&head, &key).map(drop)
        }
        3 => {
            let heartbeat = Heartbeat {
                reader,
                writer,
                first: line.near(input),
                last: line.near(input),
                count: count(input),
                is_final: input.flag(),
                liveliness: input.flag(),
                group: None,
            };
            message.heartbeat(&heartbeat).map(drop)
        }
        4 => {
            let gap = Gap {
                reader,
                writer,
                start: line.near(input),
                list: SequenceNumberSet::new(line.near(input)),
                group: None,
                filtered: None,
            };
            message.gap(&gap).map(drop)
        }
        5 => {
            let heartbeat = HeartbeatFrag {
                reader,
                writer,
                sequence: line.near(input),
                last_fragment: u32::from(input.byte() % 5),
                count: count(input),
            };
            message.heartbeat_frag(&heartbeat).map(drop)
        }
        _ => fragments(input, line, message),
    }
}

/// Writes some or all fragments of a sample.
fn fragments(
    input: &mut Input<'_>,
    line: &Line,
    message: &mut MessageWriter<'_>,
) -> Result<(), BufferTooSmall> {
    let sequence = line.near(input);
    let fragment_size = input.pick(&FRAGMENT_BYTES);
    let total = 1 + u32::from(input.byte() % 4);
    let sample_size = total * u32::from(fragment_size) - u32::from(input.byte());
    let payload = sample(input, sample_size as usize);
    let which = input.byte();
    for number in (1..=total).filter(|number| which >> number & 1 == 0) {
        let start = (number as usize - 1) * usize::from(fragment_size);
        let end = (start + usize::from(fragment_size)).min(payload.len());
        let head = DataFragPrefix {
            reader: line.reader.entity,
            writer: line.writer.entity,
            sequence,
            first_fragment: number,
            fragments: 1,
            fragment_size,
            sample_size,
            key_hash: None,
            status: None,
            is_key: false,
        };
        message.data_frag(&head, &payload[start..end])?;
    }
    Ok(())
}

fn as_reader(
    input: &mut Input<'_>,
    line: &Line,
    message: &mut MessageWriter<'_>,
) -> Result<(), BufferTooSmall> {
    let (reader, writer) = (line.reader.entity, line.writer.entity);
    if input.flag() {
        let mut state = SequenceNumberSet::new(line.near(input));
        for _ in 0..input.byte() % 4 {
            state.insert(line.near(input));
        }
        let acknack = AckNack {
            reader,
            writer,
            state,
            count: count(input),
            is_final: input.flag(),
        };
        return message.acknack(&acknack).map(drop);
    }
    let mut state = FragmentNumberSet::new(1 + u32::from(input.byte() % 4));
    for _ in 0..input.byte() % 4 {
        state.insert(state.base() + u32::from(input.byte() % 64));
    }
    let nack = NackFrag {
        reader,
        writer,
        sequence: line.near(input),
        state,
        count: count(input),
    };
    message.nack_frag(&nack).map(drop)
}

/// Composes a payload as the target's users write it: an encapsulation header, the key and constant bytes.
fn sample(input: &mut Input<'_>, length: usize) -> Vec<u8> {
    let mut payload = vec![0x5a; length.max(5)];
    payload[..5].copy_from_slice(&[0, 1, 0, 0, input.byte() % 6]);
    payload
}
