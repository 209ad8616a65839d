//! Copies: dhat in its copy mode sees every `memcpy`, `memmove` and the like, with how much they
//! moved and who called them. What the compiler makes of small copies of a known size it does not
//! see: a payload of 1 KiB is neither.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::FUNCTIONS;
use isolane_support::Result;

/// A copy of at least so many bytes is one of the payload (definitions of the project: 1 KiB).
const PAYLOAD_BYTES: f64 = 1_024.0;

/// What takes in announcements.
const DISCOVERY: &str = "take_in_announcement";

/// The parts of dhat's file (version 2) that are used.
#[derive(Deserialize)]
struct Profile {
    mode: String,
    /// Program points.
    pps: Vec<Point>,
    /// Frames, by index.
    ftbl: Vec<String>,
}

/// All copies that were made by the same stack of calls.
#[derive(Deserialize)]
struct Point {
    /// Bytes, and copies.
    tb: u64,
    tbk: u64,
    /// The stack, by index of its frames.
    fs: Vec<usize>,
}

/// Payload copies a round, by side.
pub(super) fn copies_by_side(
    program: &Path,
    way: &str,
    rounds: u32,
    folder: &Path,
) -> Result<[f64; 2]> {
    let file = folder.join(format!("dhat.{way}.json"));
    let arguments = [
        "--quiet",
        "--tool=dhat",
        "--mode=copy",
        // Up to the halves, which are near the program's beginning.
        "--num-callers=64",
        &format!("--dhat-out-file={}", file.display()),
    ];
    super::quietly(&mut super::tool(
        "valgrind", &arguments, program, way, rounds,
    ))?;
    let profile = serde_json::from_slice::<Profile>(&fs::read(&file)?)?;
    if profile.mode != "copy" {
        return Err(format!("{}: the mode is {}", file.display(), profile.mode).into());
    }
    Ok(FUNCTIONS.map(|function| profile.payload_copies(function) as f64 / f64::from(rounds)))
}

impl Profile {
    /// Payload copies inside of a function. What discovery copies while it takes in an announcement, which
    /// falls into some rounds and not into others, is as large and no payload.
    fn payload_copies(&self, function: &str) -> u64 {
        let is_inside = |point: &&Point| {
            let frames = || point.fs.iter().filter_map(|&frame| self.ftbl.get(frame));
            frames().any(|frame| frame.contains(function))
                && !frames().any(|frame| frame.contains(DISCOVERY))
        };
        let is_payload = |point: &&Point| point.tb as f64 / point.tbk as f64 >= PAYLOAD_BYTES;
        let points = self.pps.iter().filter(is_inside).filter(is_payload);
        points.map(|point| point.tbk).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_copies_are_counted_where_they_were_made() {
        let profile: Profile = serde_json::from_str(
            r#"{
                "dhatFileVersion": 2, "mode": "copy", "te": 1,
                "pps": [
                    { "tb": 1028000, "tbk": 1000, "fs": [1, 3] },
                    { "tb": 1020000, "tbk": 1000, "fs": [1, 3] },
                    { "tb": 4096, "tbk": 1, "fs": [1, 2] },
                    { "tb": 1192, "tbk": 1, "fs": [1, 4, 3] },
                    { "tb": 2056000, "tbk": 2000, "fs": [2] }
                ],
                "ftbl": ["[root]", "0x1: memcpy", "0x2: budget::main", "0x3: budget::measured_get (main.rs:82)",
                    "0x4: take_in_announcement (mod.rs:140)"]
            }"#,
        )
        .unwrap();
        assert_eq!(profile.payload_copies("measured_get"), 1000);
        assert_eq!(profile.payload_copies("measured_give"), 0);
    }
}
