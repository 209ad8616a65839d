//! Timestamps of round trips, as docs/reference/systems-under-test.md describes their file.

use std::path::Path;
use std::{fs, io};

use rustix::time::{ClockId, clock_gettime};

/// Timestamps of all rounds in nanoseconds, `N` for each; 0 means never.
pub(crate) struct Rounds<const N: usize> {
    seed: u64,
    pub(crate) stamps_ns: Vec<[u64; N]>,
}

impl<const N: usize> Rounds<N> {
    pub(crate) fn new(samples: usize, seed: u64) -> Self {
        Self {
            seed,
            stamps_ns: vec![[0; N]; samples],
        }
    }

    /// Nonce of a message, by which it is told from those of other runs.
    pub(crate) fn nonce(&self, id: u32) -> u32 {
        (mix(self.seed ^ mix(u64::from(id) + 1)) >> 32) as u32
    }

    /// Stamps a received message. Returns whether it is of this run and its first copy.
    pub(crate) fn received(&mut self, index: usize, id: u32, nonce: u32) -> bool {
        let now_ns = now_ns();
        let is_known = nonce == self.nonce(id);
        match self.stamps_ns.get_mut(id as usize) {
            Some(stamps) if is_known && stamps[index] == 0 => {
                stamps[index] = now_ns;
                true
            }
            _ => false,
        }
    }

    /// Writes all stamps, little-endian.
    pub(crate) fn write(&self, file: &Path) -> io::Result<()> {
        let stamps = self.stamps_ns.as_flattened();
        let bytes: Vec<u8> = stamps.iter().flat_map(|ns| ns.to_le_bytes()).collect();
        fs::write(file, bytes)
    }
}

fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Time of CLOCK_MONOTONIC, in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
