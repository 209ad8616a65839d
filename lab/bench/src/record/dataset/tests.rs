//! Tests of data sets: what is written is read, and nothing else.

use super::*;
use crate::cable::{Passages, RoundPassages};
use crate::record::{PingRecorder, PongRecorder, StampClock, nonce, stamp};

const SEED: u64 = 6;
const PERIOD_NS: u64 = 100_000;

/// Rounds of a run with a lost ping, a lost pong and a late ping.
fn rounds(count: u32, has_cable: bool) -> Rounds {
    let (mut ping, mut pong) = (
        PingRecorder::new(count, SEED),
        PongRecorder::new(count, SEED),
    );
    let mut passages = RoundPassages::default();
    for id in 0..count {
        let due_ns = 13_700_000_000_000 + u64::from(id) * PERIOD_NS;
        // A jitter of some microseconds, as timers have.
        let jitter_ns = u64::from(nonce(SEED, id) % 10_000);
        let sent_ns = due_ns + jitter_ns + if id == 4 { PERIOD_NS } else { 0 };
        ping.sent(id, due_ns, sent_ns);
        let is_lost = [2, 3].map(|lost| id == lost);
        if !is_lost[0] {
            pong.received(id, nonce(SEED, id), sent_ns + 40_000);
            pong.replied(id, sent_ns + 41_000 + jitter_ns / 3);
        }
        if is_lost == [false; 2] {
            ping.returned(id, nonce(SEED, id), sent_ns + 90_000 + jitter_ns);
        }
        for (direction, is_lost) in [
            (&mut passages.a_to_b, is_lost[0]),
            (&mut passages.b_to_a, is_lost[0] || is_lost[1]),
        ] {
            let Passages {
                arrived_ns,
                sent_ns,
            } = direction;
            arrived_ns.push(Some(stamp(due_ns)));
            sent_ns.push((!is_lost).then(|| stamp(due_ns + 30_000)));
        }
    }
    let clock = StampClock::of_this_process();
    let passages = has_cable.then_some(passages);
    Rounds::merge(ping, pong, passages, PERIOD_NS, [&clock; 2]).expect("rounds")
}

fn dataset() -> (tempfile::TempDir, Dataset) {
    let folder = tempfile::tempdir().expect("a folder");
    let dataset = Dataset::in_folder(folder.path());
    (folder, dataset)
}

/// Names of all files, in their order.
fn names(dataset: &Dataset) -> Vec<String> {
    let entries = fs::read_dir(dataset.path()).expect("a folder");
    let name = |entry: io::Result<fs::DirEntry>| entry.expect("a file").file_name();
    let mut names: Vec<String> = entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn the_rounds_of_a_run_are_read_as_they_were_written() {
    let (_folder, dataset) = dataset();
    // More rounds than a row group has.
    let with_cable = rounds(ROW_GROUP_ROUNDS as u32 + 7, true);
    let path = dataset.write(7, &with_cable).expect("a file");
    assert!(
        path.ends_with("rounds.parquet/run-0007.parquet"),
        "{path:?}"
    );
    let bytes = fs::metadata(&path).expect("a file").len();
    let per_round = bytes as f64 / with_cable.samples() as f64;
    assert!(per_round < 16.0, "{per_round} bytes each");
    let alone = rounds(10, false);
    dataset.write(12, &alone).expect("a file");
    assert_eq!(names(&dataset), ["run-0007.parquet", "run-0012.parquet"]);
    assert!(
        dataset.read(7).expect("rounds") == with_cable,
        "the rounds differ"
    );
    let read = dataset.read(12).expect("rounds");
    assert_eq!(read, alone);
    assert_eq!((read.samples(), read.lost(), read.late_sends()), (10, 2, 1));
    assert_eq!(read.one_way(), alone.one_way());
}

#[test]
fn ends_without_a_shared_clock_have_none_in_the_file() {
    let (_folder, dataset) = dataset();
    let (ping, pong) = (PingRecorder::new(3, SEED), PongRecorder::new(3, SEED));
    let unknown = StampClock::default();
    let silent = Rounds::merge(ping, pong, None, PERIOD_NS, [&unknown; 2]).expect("rounds");
    dataset.write(1, &silent).expect("a file");
    assert_eq!(dataset.read(1).expect("rounds"), silent);
}

#[test]
fn only_a_complete_file_has_the_name_of_a_run() {
    let (_folder, dataset) = dataset();
    dataset.write(1, &rounds(10, false)).expect("a file");
    // What a killed measurement leaves.
    fs::write(dataset.path().join(".run-0002.partial"), "PAR1").expect("a file");
    assert_eq!(names(&dataset), [".run-0002.partial", "run-0001.parquet"]);
    // The place of a run's file is taken by a folder, so the file cannot get its name.
    fs::create_dir(dataset.file(3)).expect("a folder");
    let error = dataset.write(3, &rounds(10, false)).expect_err("no file");
    assert!(error.to_string().contains("cannot write"), "{error}");
    assert!(!dataset.path().join(".run-0003.partial").exists());
}

#[test]
fn a_file_that_is_not_one_of_ours_is_refused_with_its_name() {
    let (_folder, dataset) = dataset();
    let path = dataset.write(1, &rounds(1_000, true)).expect("a file");
    let whole = fs::read(&path).expect("bytes");
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).expect("a file");
        let error = dataset.read(1).expect_err("a damaged file").to_string();
        assert!(
            error.contains("run-0001.parquet") && error.contains("measure again"),
            "{error}"
        );
    };
    refused(b"not a Parquet file");
    refused(b"");
    refused(&whole[..whole.len() / 2]);
    refused(&whole[..whole.len() - 1]);
    fs::write(dataset.file(2), &whole).expect("a file");
    let error = dataset.read(2).expect_err("the file of run 1").to_string();
    assert!(error.contains("another run"), "{error}");
    assert!(matches!(dataset.read(9), Err(DatasetError::Read { .. })));
}

#[test]
fn a_changed_byte_is_an_error_or_another_time() {
    let (_folder, dataset) = dataset();
    let path = dataset.write(1, &rounds(300, true)).expect("a file");
    let whole = fs::read(&path).expect("bytes");
    for at in (0..whole.len()).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&path, &bytes).expect("a file");
        // The file has no checksum, so another valid time is not noticed.
        match dataset.read(1) {
            Ok(read) => assert_eq!(read.samples(), 300, "byte {at}"),
            Err(error) => assert!(error.to_string().contains("run-0001"), "byte {at}: {error}"),
        }
    }
}
