//! A measurement that is killed and resumed has each of its runs once.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Number of runs of the measurement: one for each payload.
const PAYLOADS: [u32; 4] = [16, 32, 64, 128];
/// Number of kills, unless `ISOLANE_KILLS` sets another.
const KILLS: u64 = 3;

fn measurement(folder: &Path, is_resumed: bool) -> Command {
    let payloads = PAYLOADS.map(|bytes| bytes.to_string()).join(",");
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolane"));
    command
        .args(["bench", "run", "rtt", "--set", "datapath=memory"])
        .args(["--set", "seconds=1", "--set", "rate_hz=1000"])
        .args(["--set", &format!("payload_bytes={payloads}"), "--folder"])
        .arg(folder)
        .args(is_resumed.then_some("--resume"))
        .env_remove("ISOLANE_DOMAIN")
        .env_remove("ISOLANE_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

#[test]
fn a_killed_measurement_is_resumed_with_the_runs_that_are_missing() {
    let kills =
        std::env::var("ISOLANE_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number"));
    let outer = tempfile::tempdir().expect("a folder");
    let mut seed = 7_u64;
    for number in 0..kills {
        let folder = outer.path().join(number.to_string());
        // A pseudo-random time, before all runs end.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let delay = Duration::from_millis((seed >> 33) % 7_000);
        let mut running = measurement(&folder, false).spawn().expect("it starts");
        thread::sleep(delay);
        running.kill().expect("it is ours");
        running.wait().expect("it ended");
        let has_begun = folder.join("manifest.json").exists();
        if !has_begun {
            std::fs::remove_dir_all(&folder).ok();
        }
        let resumed = measurement(&folder, has_begun).output().expect("it starts");
        let said = String::from_utf8_lossy(&resumed.stderr);
        assert!(
            resumed.status.code().is_some_and(|code| code <= 1),
            "{delay:?}: {said}"
        );
        let report = std::fs::read(folder.join("report.json")).expect("a report");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        let runs = report["runs"].as_array().expect("runs");
        let cells: Vec<_> = runs
            .iter()
            .map(|run| run["cell"]["payload_bytes"].as_u64())
            .collect();
        let expected: Vec<_> = PAYLOADS
            .iter()
            .map(|bytes| Some(u64::from(*bytes)))
            .collect();
        assert_eq!(cells, expected, "killed after {delay:?}");
        assert_eq!(report["is_complete"], true);
        let lines = std::fs::read_to_string(folder.join("runs.jsonl")).expect("runs");
        assert_eq!(lines.lines().count(), PAYLOADS.len(), "none is doubled");
        let files = std::fs::read_dir(folder.join("rounds.parquet")).expect("a data set");
        let names = files.map(|file| file.expect("an entry").file_name());
        let whole = names.filter(|name| name.to_string_lossy().starts_with("run-"));
        assert_eq!(whole.count(), PAYLOADS.len());
    }

    let other = measurement(&outer.path().join("0"), true)
        .args(["--set", "order=fifo"])
        .output();
    let other = other.expect("it starts");
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("of another scenario"));
}
