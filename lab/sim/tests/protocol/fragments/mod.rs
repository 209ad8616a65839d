//! Samples longer than a datagram: the writer fragments them, the reader reassembles them, and single fragments are
//! repaired.

mod captures;
mod delivery;
mod hostile;
mod owed;
mod peers;
mod places;
mod shared;
mod turns;

use isolane_sim::{Sample, Topic};

/// Longest payload of these topics, including the bytes around the padding.
const MAX_BYTES: usize = (1 << 20) + 64;

/// Topic with samples that may be long.
fn large() -> Topic {
    Topic::new("Large").max_payload_bytes(MAX_BYTES)
}

/// Sample `value`, `bytes` bytes longer than the shortest.
fn padded(value: u64, bytes: u32) -> Sample {
    Sample::value(value).padded(bytes)
}
