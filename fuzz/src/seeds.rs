//! The inputs that the corpus began with: captures of other implementations, samples of every type,
//! and conversations of engines. libFuzzer grew the corpus from these.

use std::{fs, io, path::Path};

use isolane_wire::{
    guid::EntityId,
    rtps::{HEADER_BYTES, Submessage, Submessages},
};

use crate::{captures, engine, input::Script, limits::MAX_INPUT_BYTES, target};

/// What other implementations send.
const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/wire/tests/captures");

/// Writes all, a folder a target; returns how many.
///
/// # Errors
/// If captures cannot be read or a file cannot be written.
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
            messages.iter().map(|message| message.to_vec()).collect(),
        ),
        ("discovery", announcements.collect()),
        ("cdr", target::cdr_samples()),
        ("engine", engine_scripts(&messages)),
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

/// The payloads of discovery in a message.
fn announcements(message: &[u8]) -> Vec<Vec<u8>> {
    let data = Submessages::new(message, HEADER_BYTES).filter_map(|submessage| match submessage {
        Ok(Submessage::Data(data)) if data.writer.is_builtin() => Some(data),
        _ => None,
    });
    data.filter(|data| data.writer != EntityId::P2P_MESSAGE_WRITER)
        .map(|data| data.bytes.to_vec())
        .collect()
}

/// Every world, in which captured messages arrive, and in which time passes and users act.
fn engine_scripts(messages: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut scripts = Vec::new();
    for (number, some) in messages.chunks(3).enumerate() {
        let mut script = Script::default();
        script.put(&[0x22 | (number as u8 & 0x35), 0, 0, 0, 0, 0, 1, 0, 0, 0]);
        for message in some {
            engine::arrival(&mut script, number as u8 & 1, message);
            engine::time(&mut script, 3);
        }
        scripts.push(script.finish());
    }
    scripts.extend(user_scripts(13, 64));
    scripts
}

/// Operations in order, with choices that a generator makes.
fn user_scripts(operations: u8, count: u64) -> Vec<Vec<u8>> {
    let script = |seed| {
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
    };
    (0..count).map(script).collect()
}

/// The example, whole and line by line.
fn descriptions() -> Vec<Vec<u8>> {
    let example = isolane_model::example();
    let parts = example.split("\n\n").map(|part| part.as_bytes().to_vec());
    std::iter::once(example.as_bytes().to_vec())
        .chain(parts)
        .collect()
}
