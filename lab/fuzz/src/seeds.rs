//! Initial corpus: captures of other implementations, samples of every type, and messages between local participants.
//! libFuzzer extended the saved corpus from these seeds.

use std::{fs, io, path::Path};

use isolane_wire::{
    BufferTooSmall,
    guid::{EntityId, GuidPrefix},
    locator::Locator,
    message::{
        ChecksumKind, Gap, GapGroup, HEADER_BYTES, Header, HeaderExtension, Heartbeat,
        HeartbeatGroup, InfoReplyIp4, MessageChecksum, MessageWriter, Submessage, Submessages,
    },
    sequence::{SequenceNumber, SequenceNumberSet},
    time::Timestamp,
};

use crate::{captures, input::Script, limits::MAX_INPUT_BYTES, protocol, target};

/// Folder with captures of other implementations.
const CAPTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../crates/wire/tests/captures"
);

/// Writes all seeds, one folder per target; returns their number.
///
/// # Errors
/// Captures cannot be read, or a file cannot be written.
pub fn write(folder: &Path) -> io::Result<usize> {
    let frames = captures::frames(Path::new(CAPTURES))?;
    let messages: Vec<&[u8]> = frames
        .iter()
        .filter_map(|frame| captures::rtps_message(frame))
        .collect();
    let announcements = messages.iter().flat_map(|message| announcements(message));
    let all = [
        ("frames", frames.clone()),
        (
            "rtps",
            messages
                .iter()
                .map(|message| message.to_vec())
                .chain(lacking())
                .collect(),
        ),
        ("discovery", announcements.collect()),
        ("cdr", target::cdr_samples()),
        ("protocol", protocol_scripts(&messages)),
        ("participant", user_scripts(9, 48)),
        ("datapath", user_scripts(255, 64)),
        ("model", descriptions()),
    ];
    let mut written = 0;
    for (target, inputs) in all {
        let folder = folder.join(target);
        fs::create_dir_all(&folder)?;
        for (number, input) in inputs.iter().enumerate() {
            if input.len() <= MAX_INPUT_BYTES {
                fs::write(folder.join(format!("seed-{number:04}")), input)?;
                written += 1;
            }
        }
    }
    Ok(written)
}

/// Returns the discovery payloads of a message.
fn announcements(message: &[u8]) -> Vec<Vec<u8>> {
    let data = Submessages::new(message, HEADER_BYTES).filter_map(|submessage| match submessage {
        Ok(Submessage::Data(data)) if data.writer.is_builtin() => Some(data),
        _ => None,
    });
    data.map(|data| data.bytes.to_vec()).collect()
}

/// Messages with features that the captures lack: header extensions with each checksum, groups, INFO_REPLY_IP4.
fn lacking() -> Vec<Vec<u8>> {
    let kinds = [ChecksumKind::Crc32c, ChecksumKind::Crc64, ChecksumKind::Md5];
    kinds
        .into_iter()
        .filter_map(|kind| extended(kind).ok())
        .collect()
}

fn extended(kind: ChecksumKind) -> Result<Vec<u8>, BufferTooSmall> {
    let (reader, writer) = (EntityId([0, 0, 9, 7]), EntityId([0, 0, 8, 2]));
    let one = SequenceNumber(1);
    let mut extension = HeaderExtension {
        message_bytes: Some(0),
        sent: Some(Timestamp::from_nanos(1_795_000_000_000_000_000)),
        u_extension: Some([1; 4]),
        w_extension: Some([2; 8]),
        checksum: Some(MessageChecksum::zero(kind)),
        parameters: None,
    };
    let mut buffer = [0; 512];
    let mut message = MessageWriter::new(&mut buffer, &Header::new(GuidPrefix([7; 12])))?;
    message
        .header_extension(&extension)?
        .info_reply_ip4(&InfoReplyIp4 {
            unicast: Locator::udpv4([10, 0, 0, 1], 7411),
            multicast: Some(Locator::udpv4([239, 255, 0, 1], 7401)),
        })?
        .heartbeat(&Heartbeat {
            reader,
            writer,
            first: one,
            last: one,
            count: 1,
            is_final: false,
            liveliness: true,
            group: Some(HeartbeatGroup {
                current: SequenceNumber(3),
                first: one,
                last: SequenceNumber(2),
                writers: [3; 4],
                secure_writers: [0; 4],
            }),
        })?
        .gap(&Gap {
            reader,
            writer,
            start: one,
            list: SequenceNumberSet::new(SequenceNumber(2)),
            group: Some(GapGroup {
                start: one,
                end: SequenceNumber(2),
            }),
            filtered: Some(1),
        })?;
    let length = message.len();
    extension.seal(&mut buffer[..length]);
    Ok(buffer[..length].to_vec())
}

/// Scripts in which captured messages arrive, time passes and users act. They have different numbers of local
/// participants and endpoints (`protocol::world`).
fn protocol_scripts(messages: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut scripts = Vec::new();
    for (number, some) in messages.chunks(3).enumerate() {
        let mut script = Script::default();
        script.put(&[0x22 | (number as u8 & 0x35), 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        for message in some {
            protocol::arrival(&mut script, number as u8 & 1, message);
            protocol::time(&mut script, 3);
        }
        scripts.push(script.finish());
    }
    scripts.extend(user_scripts(protocol::OPERATIONS, 64));
    scripts.extend((0..64).map(protocol_script));
    scripts
}

/// Scripts with random operations and choices.
fn user_scripts(operations: u8, count: u64) -> Vec<Vec<u8>> {
    (0..count)
        .map(|seed| user_script(operations, seed))
        .collect()
}

fn user_script(operations: u8, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut script = Script::default();
    script.put(&[random.u8(..)]);
    for _ in 0..40 {
        script.put(&[random.u8(..operations.max(1))]);
        for _ in 0..random.usize(2..12) {
            script.put(&[random.u8(..8)]);
        }
    }
    script.finish()
}

/// Script of operations after discovery, on local participants with all kinds of endpoints. Most operations are those
/// that lead to further states: users act, an eavesdropper sends, time passes.
#[must_use]
pub fn protocol_script(seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut script = Script::default();
    // Three endpoints of each kind, after discovery.
    script.put(&[0x32 | random.u8(..8)]);
    let policies = random.u8(..) & 0xf0;
    let topic = random.u8(..3);
    for at in 0..6 {
        // The bytes give node, topic, policies with sizes, and QoS. They are usually equal, so most endpoints match.
        let choice = policies | random.u8(..16);
        let qos = if random.u8(..4) > 0 {
            random.u8(..) & !1
        } else {
            random.u8(..)
        };
        script.put(&[at / 2 + at % 2, topic, choice, qos]);
    }
    for _ in 0..random.usize(20..60) {
        let operation = random.choice([1, 2, 2, 3, 3, 3, 4, 5, 6, 9, 12, 13, 13, 13]);
        script.put(&[operation.unwrap_or(12)]);
        for _ in 0..random.usize(3..16) {
            script.put(&[random.u8(..)]);
        }
    }
    script.finish()
}

/// Example description, whole and in parts.
fn descriptions() -> Vec<Vec<u8>> {
    let example = isolane_model::example();
    let parts = example.split("\n\n").map(|part| part.as_bytes().to_vec());
    std::iter::once(example.as_bytes().to_vec())
        .chain(parts)
        .collect()
}
